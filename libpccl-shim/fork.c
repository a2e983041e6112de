/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the lists; held for moments
							  * only */
static struct pccl_fork_fd *fork_fds;
static struct pccl_fork_handler *handlers;
static _Atomic uint32_t generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int atfork_error;

/* Takes the lock, so that the child does not get a copy of half-changed lists. */
static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* Runs in the only thread of the child. Closes the descriptors of the parent's objects and leaves
 * the objects themselves alone, because other threads may have been changing them. */
static void after_fork_in_child(void)
{
	for (struct pccl_fork_fd *f = fork_fds; f; f = f->next)
		if (pccl_fork_holds(f))
			close(f->fd);
	fork_fds = NULL;
	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&generation, 1);
	for (struct pccl_fork_handler *h = handlers; h; h = h->next)
		h->child();
}

static void register_handlers(void)
{
	atfork_error = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void pccl_fork_handle(struct pccl_fork_handler *h)
{
	pthread_mutex_lock(&lock);
	if (!h->added) {
		h->added = true;
		h->next = handlers;
		handlers = h;
	}
	pthread_mutex_unlock(&lock);
}

void pccl_fork_add(struct pccl_fork_fd *f, int fd)
{
	struct stat st = {0};

	f->fd = fd;
	if (fd < 0)
		return;
	(void)fstat(fd, &st);
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	f->type = st.st_mode & S_IFMT;
	pthread_mutex_lock(&lock);
	f->prev = NULL;
	f->next = fork_fds;
	if (fork_fds)
		fork_fds->prev = f;
	fork_fds = f;
	pthread_mutex_unlock(&lock);
}

bool pccl_fork_holds(const struct pccl_fork_fd *f)
{
	struct stat st;

	return fstat(f->fd, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino &&
	       (st.st_mode & S_IFMT) == f->type;
}

/* With the lock held: takes a descriptor off the list. */
static void take_off(struct pccl_fork_fd *f)
{
	if (f->prev)
		f->prev->next = f->next;
	else
		fork_fds = f->next;
	if (f->next)
		f->next->prev = f->prev;
	f->fd = -1;
}

void pccl_fork_forget_lost(void)
{
	struct pccl_fork_fd *f, *next;

	pthread_mutex_lock(&lock);
	for (f = fork_fds; f; f = next) {
		next = f->next;
		/* Files without a type, such as eventfds, share an inode, so the library cannot
		 * tell whether such a file is lost. */
		if (f->type == 0 || !pccl_fork_holds(f))
			take_off(f);
	}
	pthread_mutex_unlock(&lock);
}

void pccl_fork_close(struct pccl_fork_fd *f)
{
	int fd = -1;

	pthread_mutex_lock(&lock);
	if (f->fd >= 0) {
		fd = pccl_fork_holds(f) ? f->fd : -1;
		take_off(f);
	}
	pthread_mutex_unlock(&lock);
	if (fd >= 0)
		close(fd);
}

uint32_t pccl_fork_generation(void)
{
	return atomic_load(&generation);
}

pcclResult_t pccl_fork_prepare(void)
{
	pthread_once(&once, register_handlers);
	if (atfork_error)
		return pccl_fail(
			pcclInternalError, "the system has no memory for the handlers of fork()");
	return pcclSuccess;
}
