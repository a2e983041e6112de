/* SPDX-License-Identifier: MIT
 *
 * member.c: the members of a job.
 */
#ifndef STATE_MEMBER_H
#define STATE_MEMBER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/state/set.h"
#include "pcclagentd/state/state.h"
#include "pcclagentd/state/window.h"

struct ste_block;
struct ste_job;

/* The differences in one tensor of a receiver, see ste_diff. */
struct ste_diffs {
	_Atomic bool differs;
	_Atomic uint64_t leaves, of, bytes, done;
};

/* A member, as the engine's thread sees it. */
struct ste_peer {
	struct ste_member m;
	uint32_t index;
	bool alike;                 /* its table of tensors equals the job's */
	struct ste_region *regions; /* sorted by id; owned */
	uint8_t **mem;              /* address of each tensor; NULL: commands are needed; owned */
	bool windowed;              /* some of its tensors need commands */
	struct ste_set blind;       /* members whose memory its process could not map */
	uint8_t *lacks;             /* receivers: a bit for each leaf; owned */
	uint64_t lacking;           /* bytes of the leaves that it is known to lack */
	bool touched;               /* the agent has written to its memory */
	struct ste_diffs *diffs;    /* receivers: one for each tensor; owned */
	struct ste_window w;
	_Atomic uint64_t tx_bytes, rx_bytes;
	_Atomic uint64_t total; /* bytes of all leaves that it has ever lacked */
	_Atomic bool complete, failed, dropped;
	char text[STE_TEXT_MAX]; /* set before `failed` */
	struct ste_job *j;
};

/* Checks the member's manifest and makes the member a holder or a receiver, or fails it. */
void ste_peer_check(struct ste_job *j, struct ste_peer *p);
/* To be called before the agent writes to the member's memory itself (not by commands): marks the
 * manifest, see shm_state_end.touched. */
void ste_peer_touch(struct ste_peer *p);
/* Maps the pages of the member's registered memory to which a block is about to be written. One
 * call for all pages costs half as much as a page fault for each. Pages for which the call fails
 * are mapped by page faults. Any thread may call this. */
void ste_peer_map(const struct ste_peer *p, const struct ste_block *b);
void ste_peer_set_complete(struct ste_job *j, struct ste_peer *p);
__attribute__((format(printf, 3, 4))) void ste_peer_fail(
	struct ste_job *j, struct ste_peer *p, const char *fmt, ...);
void ste_peer_drop(struct ste_job *j, struct ste_peer *p);
/* Returns the registered memory that contains the tensor, or NULL. */
const struct ste_region *ste_peer_region(const struct ste_peer *p, uint32_t tensor);

#endif
