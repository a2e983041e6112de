/* SPDX-License-Identifier: MIT
 *
 * Threads: those of the application, which the library tells apart, and its own. Any thread.
 */
#ifndef PCCL_SHIM_THREAD_H
#define PCCL_SHIM_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* Of the calling thread. Unlike a pthread_t it is never another one's, not even later. */
uint64_t pccl_thread_id(void);

/* Starts a thread of the library's own that never ends. It has all signals blocked but those of its
 * own faults, which are handled as in other threads: it may touch the application's memory. Returns
 * 0 or an errno value. */
int pccl_thread_start(void *(*run)(void *));

/* How long a wait may go on that somebody has to end. */
#define PCCL_LOOK_MS 50

/* Waits for the condition, PCCL_LOOK_MS at most. */
void pccl_thread_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

#endif
