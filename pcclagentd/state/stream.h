/* SPDX-License-Identifier: MIT
 *
 * stream.c: streams to sources: connecting, requests, answers. fetch.c decides whether a source
 * that loses a stream is given up.
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

#define STE_STREAMS_MAX 16u /* streams of one job */
#define STE_ASKS        64u /* unanswered requests of one stream */

struct ste_block;
struct ste_job;
struct ste_src;

struct ste_ask {
	struct wst_request req;
	uint64_t sent_ns;
	uint64_t len;   /* payload bytes expected */
	uint64_t ahead; /* payload bytes expected on the stream at that time, including `len` */
};

enum ste_stream_state { STE_CONNECTING = 1, STE_GREETING, STE_UP };

struct ste_stream {
	struct ste_fd f;
	struct ste_job *j;
	struct ste_src *src;
	uint8_t state;  /* enum ste_stream_state */
	bool busy;      /* the payload of an answer is coming in */
	bool stalled;   /* a block is arriving, and there is no room for it */
	uint8_t narrow; /* its segment size: index of cc_tcp_sizes */
	uint32_t addr, number, next_id;
	struct cc_key proof;      /* proof of the hello */
	uint8_t in[WLK_ACK_SIZE]; /* answer to the hello, or header */
	uint32_t in_have;
	uint8_t out[STE_ASKS * WST_HDR_SIZE];
	uint32_t out_from, out_to;
	struct ste_ask asks[STE_ASKS]; /* ring of unanswered requests, without `cur` */
	uint32_t ask_head, n_asks;
	uint64_t ahead, window; /* payload bytes of unfinished answers, and their limit */
	uint64_t rate;          /* recent bytes per second; 0: unknown */
	uint64_t opened_ns;
	struct cc_addr here; /* the local address of a stream that is up */
	/* TCP's count of segments with data, also those that came after a lost segment. */
	uint32_t segs_in;
	uint64_t segs_ns; /* when that count was last seen to grow */
	/* When the last bytes came, and when the last answer ended. If no answer was awaited at
	 * that time, both are the time of the next request. */
	uint64_t heard_ns, answered_ns;
	uint64_t quiet_ns;  /* sends no request before this time */
	struct ste_ask cur; /* busy or stalled: the request that is being answered */
	uint8_t *dst;
	/* Bytes of the payload: received, in all; leaves of the payload that were found right. */
	uint32_t got, len, checked;
	uint8_t member; /* the member of the source that sent the payload, see wst_answer */
	struct ste_block *block; /* arrives now; NULL: hashes, or bytes that are not needed */
	/* Hashes of one kind (and one tensor) that need several requests. hash_next .. hash_end are
	 * still to be requested. hash_next and hash_end are equal until the first answer has come.
	 * Both are 0 if there are no such hashes. */
	uint8_t hash_kind;
	uint32_t hash_tensor;
	uint64_t hash_next, hash_end;
	struct ste_stream *next;
};

/* Opens a stream to one address of the source. Returns false with the reason in `why`. */
bool ste_stream_open(struct ste_job *j, struct ste_src *src, uint32_t addr, char why[STE_TEXT_MAX]);
/* Closes a stream and removes it from the job's list. */
void ste_stream_close(struct ste_stream *s);
void ste_stream_ready(struct ste_stream *s, uint32_t events);
/* Queues a request. `len`: payload bytes of the answer. */
void ste_stream_ask(struct ste_stream *s, struct wst_request *r, uint64_t len);
/* Sends the queued requests. */
void ste_stream_flush(struct ste_stream *s);
/* Continues a stalled stream if there is room now. */
void ste_stream_resume(struct ste_stream *s);

#endif
