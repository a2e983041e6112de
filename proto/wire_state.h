/* SPDX-License-Identifier: MIT
 *
 * Streams of the shared-state port, which the agent of a receiver opens to a source. A stream
 * begins with the hello and the answer of wire_link.h (service WLK_SHARED_STATE). Then the receiver
 * sends requests, and the source sends answers in the same order. Each of them has a header of
 * fixed size, and an answer also has a payload. All numbers are little-endian and encoded field by
 * field. Pure.
 *
 * A request names the attempt and a part of the elected state:
 *
 *   TENSORS  hashes of tensors [tensor, tensor + n), 8 bytes each; 0 for a tensor that may differ
 *   LEAVES   hashes of leaves [first, first + n) of a tensor, 8 bytes each
 *   BLOCK    the bytes of leaves [first, first + n) of a tensor
 *
 * The receiver knows the content digest from the master. It checks the tensor hashes against this
 * digest, the leaf hashes against the tensor hashes, and the bytes against the leaf hashes. So it
 * does not need to trust the source.
 */
#ifndef WIRE_STATE_H
#define WIRE_STATE_H

#include <stdint.h>

#include "proto/wire_sync.h"

#define WST_MAGIC        0x54534350u /* "PCST" */
#define WST_HDR_SIZE     64u         /* bytes of the header of a request or an answer */
#define WST_HASHES_MAX   65536u      /* of one request */
#define WST_BLOCK_MAX    16u         /* leaves of one BLOCK */
#define WST_LEN_MAX      (WST_BLOCK_MAX * WIRE_LEAF) /* payload bytes of one answer */
#define WST_MEMBER_MAX   64u                         /* members of one source */
#define WST_PIPELINE_MAX 256u /* requests that may wait for their answers on one stream */

enum wst_kind { WST_TENSORS = 1, WST_LEAVES = 2, WST_BLOCK = 3 };

struct wst_request {
	uint8_t kind; /* enum wst_kind */
	uint32_t id;  /* chosen by the receiver and repeated in the answer */
	uint32_t group;
	uint64_t seq;    /* of OP_START, >= 1 */
	uint32_t tensor; /* < WIRE_TENSORS_MAX */
	uint64_t first;  /* first leaf; TENSORS: 0. first + n <= WIRE_LEAVES_MAX */
	uint32_t n;      /* 1 .. WST_HASHES_MAX, BLOCK: WST_BLOCK_MAX; TENSORS: tensor + n <=
			  * WIRE_TENSORS_MAX */
	/* Members of the source whose memory must not be read. Bit n - 1 stands for the member with
	 * the number n in answers. 0 until answers have named members. */
	uint64_t without;
};

enum wst_status {
	WST_OK = 0,
	/* The source does not have all requested leaves yet: ask later, or ask another source. */
	WST_NOT_YET = 1,
	/* The source does not take part in the attempt (any more), the leaf does not exist, or all
	 * members are in `without`. */
	WST_GONE = 2,
};

/* The header of an answer. It repeats the request, so that a stream that is out of step is noticed.
 */
struct wst_answer {
	struct wst_request req;
	uint8_t status; /* enum wst_status */
	/* OK: the member from whose memory the payload was read, 1 .. WST_MEMBER_MAX. If the
	 * source has more members than numbers, several members share a number. 0: the payload was
	 * read from memory of the agent itself, or one of the two ends lacks WLK_MEMBERS. */
	uint8_t member;
	/* Payload bytes: n * 8 for hashes; BLOCK: the bytes of n leaves, of which the last may be
	 * shorter; 0 unless OK. */
	uint32_t len;
};

void wst_request_put(uint8_t buf[WST_HDR_SIZE], const struct wst_request *r);
/* Decodes the header of a request. Returns 0, or CC_ERR_PROTO with *why (static text). */
int wst_request_get(const uint8_t buf[WST_HDR_SIZE], struct wst_request *ret, const char **why);
void wst_answer_put(uint8_t buf[WST_HDR_SIZE], const struct wst_answer *a);
int wst_answer_get(const uint8_t buf[WST_HDR_SIZE], struct wst_answer *ret, const char **why);

#endif
