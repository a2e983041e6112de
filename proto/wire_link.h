/* SPDX-License-Identifier: MIT
 *
 * Agent <-> agent streams (p2p, shared state, benchmark ports): a fixed hello, a fixed answer, then
 * data headers each followed by its payload. All little endian, encoded field by field. Pure.
 */
#ifndef WIRE_LINK_H
#define WIRE_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "common/cc_id.h"

#define WLK_MAGIC       0x4b4c4350u /* "PCLK" */
#define WLK_VERSION_MIN 2u
#define WLK_VERSION_MAX 2u
#define WLK_HELLO_SIZE  128u
#define WLK_ACK_SIZE    256u
#define WLK_DATA_SIZE   64u
#define WLK_TEXT_MAX    176u
#define WLK_LEN_MAX     (1u << 22) /* payload bytes of one segment */
/* Instead of a number, of the stream for small operations, which each link has. */
#define WLK_STREAM_EAGER 0xffffu
/* Likewise, of a connection that only finds out whether the agent can be reached: no run, no key.
 * It is closed after the answer, unless both ends have WLK_BULK: then each sends WLK_BULK_SIZE
 * bytes that mean nothing and the end of its stream, first who has connected. */
#define WLK_STREAM_PROBE 0xfffeu
#define WLK_BULK_SIZE    (64u << 10)

/* Where the proofs are: behind all that they prove. */
#define WLK_HELLO_PROOF (WLK_HELLO_SIZE - 32u)
#define WLK_ACK_PROOF   (WLK_ACK_SIZE - 32u)

/* Features. WLK_SHARED_STATE: answers say whose memory they are of (wire_state.h). */
#define WLK_MEMBERS 1u
/* Of a probe. */
#define WLK_BULK 2u

enum wlk_service { WLK_P2P = 1, WLK_SHARED_STATE = 2, WLK_BENCHMARK = 3 };

/* The proofs are MACs under the key that the master has given to who connects, and that the other
 * end knows (common/cc_seal.h): of the hello up to its proof; of the hello's proof and the answer
 * up to its own. */
struct wlk_hello {
	uint16_t version_min, version_max;
	uint16_t service; /* enum wlk_service */
	uint64_t features;
	struct cc_id run;
	struct cc_id nonce;    /* p2p, stream 0: a number in the first 8 bytes that grows with each
				* hello of this agent, the rest random; other streams of that link:
				* what the answer to it had. Other services: random */
	struct cc_id from, to; /* agents: a wrong `to` means a wrong address */
	uint64_t number;       /* of the round or attempt that the key is for */
	struct cc_key proof;
	uint16_t stream, n_streams; /* stream < n_streams <= 64, or p2p's WLK_STREAM_EAGER, or
				     * WLK_STREAM_PROBE, but not of a benchmark */
};

enum wlk_code {
	WLK_OK = 0,
	WLK_REFUSED_VERSION = 1,
	WLK_REFUSED_RUN = 2,     /* unknown run, or nothing is proven */
	WLK_REFUSED_AGENT = 3,   /* hello was meant for another agent */
	WLK_REFUSED_SERVICE = 4, /* not offered on this port */
	WLK_REFUSED_LIMIT = 5,
};

struct wlk_ack {
	uint16_t version_min, version_max; /* of the answering side */
	uint16_t version;                  /* chosen; 0 when refused */
	uint16_t code;                     /* enum wlk_code */
	uint64_t features;
	char text[WLK_TEXT_MAX]; /* why refused, NUL-terminated */
	struct cc_id nonce;      /* random; zero when refused, and so is the next */
	struct cc_key proof;
};

enum wlk_phase { WLK_REDUCE = 1, WLK_GATHER = 2, WLK_EAGER = 3 };

/* Precedes every segment, and every operand of a small operation. */
struct wlk_data {
	uint8_t phase; /* enum wlk_phase */
	uint32_t group;
	uint64_t epoch;
	uint64_t seq;
	uint64_t tag;
	uint32_t seg; /* number in the operation's plan; WLK_EAGER: ring position of the operand */
	uint32_t len; /* payload bytes, 1 .. WLK_LEN_MAX */
	uint64_t offset; /* of the payload in the operand, bytes */
};

void wlk_hello_put(uint8_t buf[WLK_HELLO_SIZE], const struct wlk_hello *h);
/* 0; CC_ERR_PROTO with *why. A version outside our range is not an error here: the caller answers
 * it with WLK_REFUSED_VERSION. The first 8 bytes (magic, version range) never change meaning. */
int wlk_hello_get(const uint8_t buf[WLK_HELLO_SIZE], struct wlk_hello *ret, const char **why);
void wlk_ack_put(uint8_t buf[WLK_ACK_SIZE], const struct wlk_ack *a);
int wlk_ack_get(const uint8_t buf[WLK_ACK_SIZE], struct wlk_ack *ret, const char **why);
void wlk_data_put(uint8_t buf[WLK_DATA_SIZE], const struct wlk_data *d);
int wlk_data_get(const uint8_t buf[WLK_DATA_SIZE], struct wlk_data *ret, const char **why);

#endif
