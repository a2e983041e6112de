/* SPDX-License-Identifier: MIT
 *
 * Threads that copy beside the thread: pool.c.
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

/* NULL: no memory. */
struct ste_pool *ste_pool_new(uint32_t wanted);
void ste_pool_free(struct ste_pool *c);             /* NULL is fine */
uint64_t ste_pool_copied(const struct ste_pool *c); /* blocks; by any thread */

/* By the thread. */

/* False: to be copied at once, by whoever asks. Else ste_block_copied follows. */
bool ste_pool_give(struct ste_job *j, struct ste_block *b, struct ste_peer *p, uint8_t *dst);
bool ste_pool_help(struct ste *e); /* with one task; false: none waits */
bool ste_pool_has_done(const struct ste *e);
bool ste_pool_collect(struct ste *e); /* what is done */
void ste_pool_settle(struct ste *e);  /* likewise, until nothing is under way */
void ste_pool_tick(struct ste *e);    /* ends threads that are idle */
void ste_pool_end(struct ste *e);

#endif
