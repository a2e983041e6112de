/* SPDX-License-Identifier: MIT
 *
 * Streams between agents on the ports for p2p, shared state and benchmarks. A stream begins with a
 * hello and an answer of fixed size. Then come data headers, each followed by its payload. All
 * numbers are little-endian and encoded field by field. Pure.
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
/* The stream number of the eager path. Each link has one such stream. */
#define WLK_STREAM_EAGER 0xffffu
/* The stream number of a probe, which only finds out whether the agent can be reached. Its hello
 * has no run and no key. The connection is closed after the answer, unless both ends have WLK_BULK.
 * In this case each end sends WLK_BULK_SIZE bytes without meaning and then ends its stream. The end
 * that has connected begins. */
#define WLK_STREAM_PROBE 0xfffeu
#define WLK_BULK_SIZE    (64u << 10)

/* Offsets of the proofs. A proof follows all bytes that it covers. */
#define WLK_HELLO_PROOF (WLK_HELLO_SIZE - 32u)
#define WLK_ACK_PROOF   (WLK_ACK_SIZE - 32u)

/* A feature of WLK_SHARED_STATE: answers name the member whose memory was read (wire_state.h). */
#define WLK_MEMBERS 1u
/* A feature of a probe. */
#define WLK_BULK 2u

/* The records of a measurement (WLK_BENCHMARK), see wlk_count. */
#define WLK_COUNT_SIZE 40u

enum wlk_service { WLK_P2P = 1, WLK_SHARED_STATE = 2, WLK_BENCHMARK = 3 };

/* The first message of a stream. Proofs are MACs under a key that the master has given to the
 * connecting agent, and that the other end can compute (common/cc_seal.h). The proof of the hello
 * covers the hello up to the proof. The proof in the answer covers the proof of the hello, and the
 * answer up to the place of this proof. */
struct wlk_hello {
	uint16_t version_min, version_max;
	uint16_t service; /* enum wlk_service */
	uint64_t features;
	struct cc_id run;
	/* p2p and benchmark, stream 0: the first 8 bytes are a number that grows with each hello of
	 * this agent, the rest is random. Other streams: the nonce of the answer to stream 0.
	 * Shared state: random. */
	struct cc_id nonce;
	struct cc_id from, to; /* agent ids. A wrong `to` means that the address was wrong */
	uint64_t number;       /* of the round, attempt or measurement for which the key is valid */
	struct cc_key proof;
	/* stream < n_streams <= 64; or stream is WLK_STREAM_EAGER (only p2p) or WLK_STREAM_PROBE
	 * (not for a benchmark). */
	uint16_t stream, n_streams;
};

enum wlk_code {
	WLK_OK = 0,
	WLK_REFUSED_VERSION = 1,
	WLK_REFUSED_RUN = 2,     /* unknown run, or the proof is wrong */
	WLK_REFUSED_AGENT = 3,   /* the hello names another agent */
	WLK_REFUSED_SERVICE = 4, /* not offered on this port */
	WLK_REFUSED_LIMIT = 5,
};

struct wlk_ack {
	uint16_t version_min, version_max; /* versions of the answering side */
	uint16_t version;                  /* the chosen version; 0 if refused */
	uint16_t code;                     /* enum wlk_code */
	uint64_t features;
	char text[WLK_TEXT_MAX]; /* reason of a refusal, NUL-terminated */
	struct cc_id nonce;      /* random; this and the proof are zero if refused */
	struct cc_key proof;
};

enum wlk_phase { WLK_REDUCE = 1, WLK_GATHER = 2, WLK_EAGER = 3 };

/* The header before every segment, and before every operand of an eager operation. */
struct wlk_data {
	uint8_t phase; /* enum wlk_phase */
	uint32_t group;
	uint64_t epoch;
	uint64_t seq;
	uint64_t tag;
	/* Number of the segment in the plan; WLK_EAGER: ring position of the operand. */
	uint32_t seg;
	uint32_t len;    /* payload bytes, 1 .. WLK_LEN_MAX */
	uint64_t offset; /* bytes from the start of the operand to the payload */
};

/* A measurement: the agent that has connected sends bytes without meaning on all its streams. About
 * every 20 ms the other agent sends this record on stream 0. */
struct wlk_count {
	uint64_t bytes; /* received so far, on all streams together */
	uint64_t us;    /* microseconds since the first of these bytes */
	/* Bytes of the packets that have arrived so far. While a lost packet is missing, TCP keeps
	 * those behind it back, and they are not received yet. About as exact as one packet. */
	uint64_t arrived;
	uint64_t all; /* bytes that have arrived so far from all agents of the measurement */
	/* The host that receives needs its network for something else: stop sending, and measure
	 * later. */
	bool busy;
};

void wlk_hello_put(uint8_t buf[WLK_HELLO_SIZE], const struct wlk_hello *h);
/* Decodes a hello. Returns 0, or CC_ERR_PROTO with *why. A version outside of our range is not an
 * error here, because the caller answers it with WLK_REFUSED_VERSION. The first 8 bytes (magic,
 * version range) have the same meaning in every version. */
int wlk_hello_get(const uint8_t buf[WLK_HELLO_SIZE], struct wlk_hello *ret, const char **why);
void wlk_ack_put(uint8_t buf[WLK_ACK_SIZE], const struct wlk_ack *a);
int wlk_ack_get(const uint8_t buf[WLK_ACK_SIZE], struct wlk_ack *ret, const char **why);
void wlk_data_put(uint8_t buf[WLK_DATA_SIZE], const struct wlk_data *d);
int wlk_data_get(const uint8_t buf[WLK_DATA_SIZE], struct wlk_data *ret, const char **why);
void wlk_count_put(uint8_t buf[WLK_COUNT_SIZE], const struct wlk_count *c);
/* Any bytes are a record. The receiver compares it with the records before. */
void wlk_count_get(const uint8_t buf[WLK_COUNT_SIZE], struct wlk_count *ret);

#endif
