/* SPDX-License-Identifier: MIT
 *
 * Threads that copy beside the thread: pool.c.
 */
#ifndef STATE_POOL_H
#define STATE_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/state/state.h"

#define STE_TASKS 64u

struct ste_block;
struct ste_job;
struct ste_peer;

/* A block, and the receiver's tensor that it goes to. */
struct ste_task {
	struct ste_job *j;
	struct ste_block *b;
	struct ste_peer *p;
	uint8_t *dst;
	bool right;
	struct ste_task *next;
};

struct ste_pool {
	bool ready;
	pthread_mutex_t lock;
	pthread_cond_t work, news; /* for the pool; for the thread */
	struct ste_task *todo, **todo_end, *done;
	uint32_t n_running;
	_Atomic uint32_t n_done;
	bool quit;
	/* The thread's alone. */
	uint32_t max, n_threads, n_given;
	pthread_t threads[STE_POOL_MAX];
	struct ste_task tasks[STE_TASKS], *free;
	uint64_t used_ns;
	_Atomic uint64_t n_copied; /* L: reads */
};

/* By the thread, but for the first two. */
bool ste_pool_init(struct ste_pool *c, uint32_t wanted);
void ste_pool_destroy(struct ste_pool *c);
/* False: to be copied at once, by whoever asks. Else ste_block_copied follows. */
bool ste_pool_give(struct ste_job *j, struct ste_block *b, struct ste_peer *p, uint8_t *dst);
bool ste_pool_help(struct ste *e);    /* with one task; false: none waits */
bool ste_pool_collect(struct ste *e); /* what is done */
void ste_pool_settle(struct ste *e);  /* likewise, until nothing is under way */
void ste_pool_tick(struct ste *e);    /* ends threads that are idle */
void ste_pool_end(struct ste *e);

#endif
