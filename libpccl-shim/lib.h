/* SPDX-License-Identifier: MIT
 *
 * The library as a whole: whether it may be used in this process, and what happens at fork().
 *
 * A child made by fork() shares nothing with its parent: the child's copies of descriptors are
 * closed right away, so that the agent sees the parent's end although the child lives on, and
 * whatever the parent made is refused there. What must be known to the fork handlers registers with
 * pccl_fork_add; the child forgets the list.
 */
#ifndef PCCL_SHIM_LIB_H
#define PCCL_SHIM_LIB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libpccl-shim/error.h"

/* pcclSuccess when pcclInit was called in this process. Sets no sentence then. */
pcclResult_t pccl_check_ready(void);
/* The handlers of fork() are there: for what needs no pcclInit. */
pcclResult_t pccl_prepare(void);
/* Differs between a process and its forked children. */
uint32_t pccl_generation(void);
/* Of the calling thread. Unlike a pthread_t it is never another one's, not even later. */
uint64_t pccl_thread_id(void);

/* Starts a thread of the library's own that never ends. It has all signals blocked but those of its
 * own faults, which are handled as in other threads: it may touch the application's memory. Returns
 * 0 or an errno value. */
int pccl_thread_start(void *(*run)(void *));

/* How long a wait may go on that somebody has to end. */
#define PCCL_LOOK_MS 50

/* Waits for the condition, PCCL_LOOK_MS at most. */
void pccl_wait_change(pthread_cond_t *cond, pthread_mutex_t *mutex);

/* A descriptor that forked children must not keep open. Part of the owner's object.
 *
 * The program may close it (closefrom) and be given its number for a file of its own. So whatever
 * is written to it, read from it or shut down is checked before, where that is not too dear, and
 * what was lost is never closed. */
struct pccl_fork_fd {
	_Atomic int fd; /* -1: none, or lost */
	dev_t dev;
	ino_t ino;
	mode_t type;
	struct pccl_fork_fd *next, *prev;
};

/* Registers fd (-1: does nothing but set f->fd). Any thread. */
void pccl_fork_add(struct pccl_fork_fd *f, int fd);
/* Is it still what was registered? Also in a signal handler. Of an eventfd it tells only that it is
 * something like that. */
bool pccl_fork_holds(const struct pccl_fork_fd *f);
/* After one was found lost: forgets all others that are, and all eventfds. These stay open, rather
 * than that a file of the program is closed. */
void pccl_fork_forget_lost(void);
/* Takes it off the list and closes it, unless it is lost. Any thread. */
void pccl_fork_close(struct pccl_fork_fd *f);

#endif
