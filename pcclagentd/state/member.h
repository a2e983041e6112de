/* SPDX-License-Identifier: MIT
 *
 * Members of a job: member.c.
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

/* Of a receiver's tensor, see ste_diff. */
struct ste_diffs {
	_Atomic bool differs;
	_Atomic uint64_t leaves, of, bytes, done;
};

/* A member, as the thread sees it. */
struct ste_peer {
	struct ste_member m;
	uint32_t index;
	bool alike;                 /* has the job's table of tensors */
	struct ste_region *regions; /* sorted by id; owned */
	uint8_t **mem;              /* of each tensor; NULL: by commands; owned */
	bool windowed;              /* some tensor is reached by commands */
	struct ste_set blind;       /* whose memory its process could not map */
	uint8_t *lacks;             /* receivers: a bit for each leaf; owned */
	uint64_t lacking;           /* bytes, of leaves that are known to differ */
	bool touched;               /* its memory was written to */
	struct ste_diffs *diffs;    /* receivers: of each tensor; owned */
	struct ste_window w;
	_Atomic uint64_t tx_bytes, rx_bytes;
	_Atomic uint64_t total; /* bytes that were lacking once */
	_Atomic bool complete, failed, dropped;
	char text[STE_TEXT_MAX]; /* before failed */
	struct ste_job *j;
};

/* What it offered; makes it a holder, a receiver, or neither. */
void ste_peer_check(struct ste_job *j, struct ste_peer *p);
/* Its memory is about to be written to, not by commands. */
void ste_peer_touch(struct ste_peer *p);
/* A block's place in registered memory is about to be written to: maps its pages, all at once,
 * because a fault for each costs twice as much. What cannot be mapped so will be by faults. By any
 * thread. */
void ste_peer_map(const struct ste_peer *p, const struct ste_block *b);
void ste_peer_set_complete(struct ste_job *j, struct ste_peer *p);
__attribute__((format(printf, 3, 4))) void ste_peer_fail(
	struct ste_job *j, struct ste_peer *p, const char *fmt, ...);
void ste_peer_drop(struct ste_job *j, struct ste_peer *p);
/* What the tensor lies in, or NULL. */
const struct ste_region *ste_peer_region(const struct ste_peer *p, uint32_t tensor);

#endif
