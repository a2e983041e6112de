/* SPDX-License-Identifier: MIT
 *
 * pool.c: the worker pool, whose threads copy for the engine's thread.
 */
#ifndef STATE_POOL_H
#define STATE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/state/state.h"

struct ste_block;
struct ste_job;
struct ste_peer;
struct ste_pool;

/* Creates a pool without threads. `wanted`: see ste_config.pool. Returns NULL if there is no
 * memory. */
struct ste_pool *ste_pool_new(uint32_t wanted);
void ste_pool_free(struct ste_pool *c); /* accepts NULL */
/* Returns the number of blocks that were copied as tasks. Any thread may call this. */
uint64_t ste_pool_copied(const struct ste_pool *c);

/* The engine's thread calls the functions below. */

/* Gives the pool the task to copy a block to `dst`. Calls ste_block_copied when the task is done.
 * Returns false if the pool does not take the task, so that the caller copies the block itself. */
bool ste_pool_give(struct ste_job *j, struct ste_block *b, struct ste_peer *p, uint8_t *dst);
/* Carries out one task. Returns false if none waits. */
bool ste_pool_help(struct ste *e);
/* Are there tasks that are done, but not collected? */
bool ste_pool_has_done(const struct ste *e);
/* Collects the tasks that are done. Returns false if there are none. */
bool ste_pool_collect(struct ste *e);
/* Waits until all tasks are done, and collects them. */
void ste_pool_settle(struct ste *e);
/* Ends the threads of the pool when they have been idle for a while. */
void ste_pool_tick(struct ste *e);
/* Ends the threads of the pool. */
void ste_pool_end(struct ste *e);

#endif
