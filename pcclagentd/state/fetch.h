/* SPDX-License-Identifier: MIT
 *
 * Sources: what is asked of whom, and who is given up: fetch.c.
 */
#ifndef STATE_FETCH_H
#define STATE_FETCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/state/state.h"
#include "proto/wire_state.h"

struct ste_job;
struct ste_stream;

struct ste_src {
	struct ste_source s;
	uint32_t n_streams; /* open, opening */
	_Atomic uint32_t n_up;
	int good_addr;      /* reached it once; -1: not yet */
	uint32_t next_addr; /* to be tried */
	uint32_t rounds;    /* in which no address was reached */
	uint64_t retry_ns;  /* no new stream before */
	uint32_t strikes;   /* times that streams were lost since something right came last */
	uint64_t struck_ns; /* the last of these */
	uint32_t wrong;     /* answers that did not fit their hashes, and no member is a suspect */
	uint64_t liars;     /* members that were, and are not asked any more: see wst_request */
	_Atomic uint32_t not_yet; /* such answers in a row */
	uint64_t not_yet_ns;      /* since then */
	uint64_t cursor;          /* others: leaf from which on they are asked */
	uint64_t base_ns;         /* shortest time of an answer; UINT64_MAX: none yet */
	uint64_t waiting;         /* see ste_load */
	bool exhausted;           /* of ours or theirs: what a stream takes; until one is up */
	char last[STE_TEXT_MAX];  /* what went wrong last; that, as long as it lasts */
	_Atomic uint64_t bytes;
	_Atomic bool lost;
	char text[STE_TEXT_MAX]; /* before lost */
};

enum ste_fault {
	STE_FAULT_NONE,
	STE_FAULT_LOST,  /* the stream */
	STE_FAULT_LIMIT, /* the other agent has reached one */
	STE_FAULT_SHORT, /* an answer without what is needed */
	STE_FAULT_WRONG,
	STE_FAULT_GONE,
};

void ste_fetch_begin(struct ste_job *j);
/* Opens streams, asks, looks at the time. */
void ste_fetch_step(struct ste_job *j);
void ste_fetch_end(struct ste_job *j);               /* closes all streams */
uint64_t ste_fetch_next_ns(const struct ste_job *j); /* when a step can have something to do */
/* What was asked of the stream will be asked anew, and the stream is closed. */
void ste_stream_lost(struct ste_stream *s, enum ste_fault fault, const char *why);
void ste_stream_up(struct ste_stream *up);
void ste_stream_not_yet(struct ste_stream *s);
void ste_stream_right(struct ste_stream *s, uint64_t bytes);
/* An ask that was not fulfilled. */
void ste_fetch_return(struct ste_job *j, const struct wst_request *r);

#endif
