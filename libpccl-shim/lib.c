/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/lib.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cc_sys.h"
#include "libpccl-shim/copier.h"
#include "libpccl-shim/keeper.h"
#include "libpccl-shim/region.h"
#include "libpccl-shim/spawn.h"

enum { NOT_READY = 0, READY = 1, FORKED = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of fork_fds; held for moments only */
static struct pccl_fork_fd *fork_fds;
static _Atomic int state;
static _Atomic uint32_t generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int atfork_error;

/* The list must not be in the middle of a change when it is copied. */
static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* The only thread of the child runs this. Objects of the parent are left alone (other threads may
 * have been changing them), apart from their descriptors. */
static void after_fork_in_child(void)
{
	struct pccl_fork_fd *f;

	for (f = fork_fds; f; f = f->next)
		if (pccl_fork_holds(f))
			close(f->fd);
	fork_fds = NULL;
	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&generation, 1);
	if (atomic_load(&state) == READY)
		atomic_store(&state, FORKED);
	pccl_keeper_after_fork();
	pccl_copier_after_fork();
	pccl_agent_after_fork();
	pccl_region_after_fork();
}

static void register_handlers(void)
{
	atfork_error = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
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

/* With the lock held. */
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
		/* All that have no type, as eventfds, share an inode. */
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

uint64_t pccl_thread_id(void)
{
	static _Atomic uint64_t last;
	static _Thread_local uint64_t id;

	if (id == 0)
		id = atomic_fetch_add(&last, 1) + 1;
	return id;
}

int pccl_thread_start(void *(*run)(void *))
{
	/* A fault that is blocked kills the process, even if it has a handler. */
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t mask, old;
	pthread_t thread;
	int err;

	sigfillset(&mask);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		sigdelset(&mask, faults[i]);
	pthread_sigmask(SIG_SETMASK, &mask, &old);
	err = pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err == 0)
		pthread_detach(thread);
	return err;
}

void pccl_wait_change(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	uint64_t until = cc_now_ns() + (uint64_t)PCCL_LOOK_MS * 1000000;
	struct timespec t = {
		.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};

	(void)pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &t);
}

uint32_t pccl_generation(void)
{
	return atomic_load(&generation);
}

pcclResult_t pccl_check_ready(void)
{
	switch (atomic_load(&state)) {
	case READY:
		return pcclSuccess;
	case FORKED:
		return pccl_fail(pcclInvalidUsage,
			"this process was made by fork() and may not use its parent's objects: "
			"call pcclInit and make its own");
	default:
		return pccl_fail(pcclNotInitialized, "call pcclInit first");
	}
}

pcclResult_t pccl_prepare(void)
{
	pthread_once(&once, register_handlers);
	if (atfork_error)
		return pccl_fail(
			pcclInternalError, "the system has no memory for the handlers of fork()");
	return pcclSuccess;
}

pcclResult_t pcclInit(void)
{
	pcclResult_t r = pccl_prepare();

	if (r != pcclSuccess)
		return r;
	atomic_store(&state, READY);
	return pccl_ok();
}

pcclResult_t pcclGetBuildInfo(pcclBuildInfo_t *info)
{
	if (!info)
		return pccl_fail(pcclInvalidArgument, "info must not be NULL");
	info->has_cuda_support = false;
	return pccl_ok();
}

const char *pcclGetVersion(void)
{
	return PACKAGE_VERSION;
}
