/* SPDX-License-Identifier: MIT
 *
 * Blocks on their way into tensors, and copies from holders on this host: copy.c.
 */
#ifndef STATE_COPY_H
#define STATE_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/state/set.h"

#define STE_BLOCKS 64u /* of one job */

struct ste_job;
struct ste_peer;

enum ste_block_state {
	STE_BLOCK_FREE = 0,
	STE_BLOCK_LANDING,
	STE_BLOCK_READING,
	STE_BLOCK_SPREADS
};

/* Consecutive leaves of a tensor that the same receivers lack. */
struct ste_block {
	uint8_t state; /* enum ste_block_state */
	bool bad;      /* what was not written yet is not to be */
	uint32_t tensor, n;
	uint64_t first;      /* leaf of the tensor */
	uint64_t off;        /* bytes, in the tensor */
	uint32_t len;        /* bytes */
	uint32_t writes;     /* commands not acknowledged, and copies under way */
	struct ste_set todo; /* members to be given it */
	uint8_t *data;
	struct ste_peer *home; /* data lies in its memory or its window */
	int home_slot;         /* -1: memory */
};

struct ste_block *ste_block_take(struct ste_job *j);
/* Where a block from the network is to be put. False: no room now. mask: receivers that lack it */
bool ste_block_land(struct ste_job *j, struct ste_block *b, const struct ste_set *mask);
/* It is there and right at home. */
void ste_block_landed(struct ste_job *j, struct ste_block *b);
void ste_block_drop(struct ste_job *j, struct ste_block *b);
void ste_block_acked(struct ste_job *j, struct ste_peer *p, int slot);
/* Its process cannot map the block's home, or what it found there was wrong. */
void ste_block_refused(struct ste_job *j, struct ste_peer *p, int slot, bool wrong);
/* A member failed: nothing waits for it any more. */
void ste_block_forget(struct ste_job *j, struct ste_peer *p);
/* Nothing is at home there any more; after the above. */
void ste_block_evict(struct ste_job *j, struct ste_peer *p);
/* What was given to the pool. */
void ste_block_copied(struct ste_job *j, struct ste_block *b, struct ste_peer *p, bool right);
/* Blocks that wait for slots; copies from holders. True: there is more to do at once. */
bool ste_copy_step(struct ste_job *j);

#endif
