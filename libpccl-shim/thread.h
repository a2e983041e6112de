/* SPDX-License-Identifier: MIT
 *
 * Threads: ids for the application's threads, and threads of the library. Any thread.
 */
#ifndef PCCL_SHIM_THREAD_H
#define PCCL_SHIM_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* Returns the id of the calling thread. Unlike a pthread_t, an id is never used again for another
 * thread. */
uint64_t pccl_thread_id(void);

/* Starts a thread of the library that never ends. The thread has all signals blocked except those
 * of its own faults. Faults are handled as in other threads, because the thread may use the
 * application's memory. Returns 0 or an errno value. */
int pccl_thread_start(void *(*run)(void *));

/* The interval, in milliseconds, at which waits check whether they are to end. */
#define PCCL_LOOK_MS 50

/* Waits for the condition, for at most PCCL_LOOK_MS milliseconds. */
void pccl_thread_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

#endif
