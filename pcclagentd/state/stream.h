/* SPDX-License-Identifier: MIT
 *
 * Streams to sources: connecting, requests, answers: stream.c. What becomes of a source that loses
 * one is in fetch.h.
 */
#ifndef STATE_STREAM_H
#define STATE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "common/cc_id.h"
#include "pcclagentd/state/state.h"
#include "pcclagentd/state/ste_internal.h"
#include "proto/wire_link.h"
#include "proto/wire_state.h"

#define STE_STREAMS_MAX 16u /* of one job */
#define STE_ASKS        64u /* requests of one stream without an answer */

struct ste_block;
struct ste_job;
struct ste_src;

struct ste_ask {
	struct wst_request req;
	uint64_t sent_ns;
	uint64_t len;   /* payload bytes expected */
	uint64_t ahead; /* all that were, with these */
};

enum ste_stream_state { STE_CONNECTING = 1, STE_GREETING, STE_UP };

struct ste_stream {
	struct ste_fd f;
	struct ste_job *j;
	struct ste_src *src;
	uint8_t state;  /* enum ste_stream_state */
	bool busy;      /* the payload of an answer is coming in */
	bool stalled;   /* a block has come, and there is no room for it */
	uint8_t narrow; /* which segments it has, of cc_tcp_sizes */
	uint32_t addr, number, next_id;
	struct cc_key proof;      /* of the hello */
	uint8_t in[WLK_ACK_SIZE]; /* answer to the hello, or header */
	uint32_t in_have;
	uint8_t out[STE_ASKS * WST_HDR_SIZE];
	uint32_t out_from, out_to;
	struct ste_ask asks[STE_ASKS]; /* ring; without cur */
	uint32_t ask_head, n_asks;
	uint64_t ahead, window; /* payload bytes asked for, and how many may be */
	uint64_t rate;          /* of late; 0: nothing has come */
	uint64_t opened_ns;
	struct cc_addr here; /* our end, when it is up */
	uint32_t segs_in; /* with data, as TCP counts them: also those behind one that got lost */
	uint64_t segs_ns; /* when it has counted one last, as far as was looked at */
	uint64_t heard_ns, answered_ns; /* or since when there has been something to wait for */
	uint64_t quiet_ns;              /* asks nothing before */
	struct ste_ask cur;             /* busy or stalled: what is answered */
	uint8_t *dst;
	uint32_t got, len, checked; /* bytes of the payload; leaves of it that are right */
	uint8_t member;             /* of the source, that the payload is of, see wst_answer */
	struct ste_block *block;    /* landing; NULL: hashes, or bytes that nobody wants any more */
	/* Hashes of one kind, of one tensor, that take several requests: those that are still to be
	 * asked for, none before the first ones were had. hash_end is 0 when there are no such. */
	uint8_t hash_kind;
	uint32_t hash_tensor;
	uint64_t hash_next, hash_end;
	struct ste_stream *next;
};

bool ste_stream_open(struct ste_job *j, struct ste_src *src, uint32_t addr, char why[STE_TEXT_MAX]);
void ste_stream_close(struct ste_stream *s); /* and takes it from the job's list */
void ste_stream_ready(struct ste_stream *s, uint32_t events);
void ste_stream_ask(struct ste_stream *s, struct wst_request *r, uint64_t len);
void ste_stream_flush(struct ste_stream *s);
void ste_stream_resume(struct ste_stream *s); /* stalled: is there room now? */

#endif
