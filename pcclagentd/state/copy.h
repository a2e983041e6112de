/* SPDX-License-Identifier: MIT
 *
 * copy.c: writes blocks into tensors, and copies blocks from holders on this host.
 */
#ifndef STATE_COPY_H
#define STATE_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/state/set.h"

#define STE_BLOCKS 64u /* blocks of one job */

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
	uint8_t state;       /* enum ste_block_state */
	bool bad;            /* its bytes are wrong: it must not be written to further members */
	uint32_t tensor, n;  /* n: leaves */
	uint64_t first;      /* the number of the first leaf in the tensor */
	uint64_t off;        /* offset of the first byte in the tensor */
	uint32_t len;        /* bytes */
	uint32_t writes;     /* commands without acknowledgement, and copies in progress */
	struct ste_set todo; /* members to which it is still to be written */
	uint8_t *data;
	struct ste_peer *home; /* the member in whose memory or window `data` lies */
	int home_slot;         /* -1: `data` lies in the member's memory */
};

/* Returns a free block, or NULL. */
struct ste_block *ste_block_take(struct ste_job *j);
/* Chooses the home of a block that comes from the network. `mask`: the receivers that lack the
 * block. Returns false if there is no room now. */
bool ste_block_land(struct ste_job *j, struct ste_block *b, const struct ste_set *mask);
/* The block lies at its home and has been verified: writes it to the other receivers. */
void ste_block_landed(struct ste_job *j, struct ste_block *b);
/* Frees a block that has not landed. Its leaves are missing again. */
void ste_block_drop(struct ste_job *j, struct ste_block *b);
/* The member's process has acknowledged the command in this slot. */
void ste_block_acked(struct ste_job *j, struct ste_peer *p, int slot);
/* The member's process could not carry out the command in this slot: it cannot map the block's
 * home, or (`wrong`) the bytes there did not match their hashes. */
void ste_block_refused(struct ste_job *j, struct ste_peer *p, int slot, bool wrong);
/* A member has failed: no block waits for it any longer. */
void ste_block_forget(struct ste_job *j, struct ste_peer *p);
/* Ends all blocks whose home is this member. To be called after ste_block_forget. */
void ste_block_evict(struct ste_job *j, struct ste_peer *p);
/* The worker pool has copied the block into the tensor of member `p`. `right`: the copy matches its
 * hashes. */
void ste_block_copied(struct ste_job *j, struct ste_block *b, struct ste_peer *p, bool right);
/* Continues blocks that wait for slots, and copies from holders. Returns true if there is more to
 * do at once. */
bool ste_copy_step(struct ste_job *j);

#endif
