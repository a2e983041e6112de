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
#include <stdint.h>

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

/* A descriptor that forked children must not keep open. Part of the owner's object. */
struct pccl_fork_fd {
	int fd;
	struct pccl_fork_fd *next, *prev;
};

/* Registers fd (-1: does nothing but set f->fd). Any thread. */
void pccl_fork_add(struct pccl_fork_fd *f, int fd);
/* Takes it off the list; nothing if f->fd is -1. Any thread. */
void pccl_fork_forget(struct pccl_fork_fd *f);
/* The same, and closes it. */
void pccl_fork_close(struct pccl_fork_fd *f);

#endif
