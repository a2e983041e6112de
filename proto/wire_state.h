/* SPDX-License-Identifier: MIT
 *
 * Streams of the shared-state port, from a receiver's agent to a source's: hello and answer of
 * wire_link.h (service WLK_SHARED_STATE), then requests one way, and answers the other, in the
 * order of the requests, each a fixed header and its payload. All little endian, encoded field by
 * field. Pure.
 *
 * A request names the attempt and what it wants of the elected state:
 *
 *   TENSORS  hashes of tensors [tensor, tensor + n), 8 bytes each; 0 for one that may differ
 *   LEAVES   hashes of leaves [first, first + n) of a tensor, 8 bytes each
 *   BLOCK    the bytes of leaves [first, first + n) of a tensor
 *
 * The receiver knows the content digest from the master, holds the tensor hashes against it, leaf
 * hashes against those, and bytes against leaf hashes: it need not trust the source.
 */
#ifndef WIRE_STATE_H
#define WIRE_STATE_H

#include <stdint.h>

#include "proto/wire_sync.h"

#define WST_MAGIC        0x54534350u                 /* "PCST" */
#define WST_HDR_SIZE     64u                         /* of a request, and of an answer */
#define WST_HASHES_MAX   65536u                      /* of one request */
#define WST_BLOCK_MAX    16u                         /* leaves of one BLOCK */
#define WST_LEN_MAX      (WST_BLOCK_MAX * WIRE_LEAF) /* payload bytes of one answer */
#define WST_MEMBER_MAX   64u                         /* members of one source */
#define WST_PIPELINE_MAX 256u /* requests that may wait for their answers on one stream */

enum wst_kind { WST_TENSORS = 1, WST_LEAVES = 2, WST_BLOCK = 3 };

struct wst_request {
	uint8_t kind; /* enum wst_kind */
	uint32_t id;  /* chosen by the receiver: the answer has it again */
	uint32_t group;
	uint64_t seq;     /* of OP_START, >= 1 */
	uint32_t tensor;  /* < WIRE_TENSORS_MAX */
	uint64_t first;   /* leaf; TENSORS: 0. first + n <= WIRE_LEAVES_MAX */
	uint32_t n;       /* 1 .. WST_HASHES_MAX, BLOCK: WST_BLOCK_MAX; TENSORS: tensor + n <=
			   * WIRE_TENSORS_MAX */
	uint64_t without; /* members of the source whose memory is not to be read: bit n - 1 for
			   * the one that answers name n; 0 until they do */
};

enum wst_status {
	WST_OK = 0,
	WST_NOT_YET = 1, /* a receiver that does not have all of it: ask again later, or others */
	WST_GONE = 2,    /* the attempt is none here (any more), there is no such leaf, or no member
			  * but those in `without` */
};

/* req, so that a stream that has lost its place does not go unnoticed, and what came of it. */
struct wst_answer {
	struct wst_request req;
	uint8_t status; /* enum wst_status */
	/* OK: whose memory the payload was read from, 1 .. WST_MEMBER_MAX, which members share when
	 * there are more; 0: the agent's own, or the two have not agreed on WLK_MEMBERS */
	uint8_t member;
	uint32_t len; /* payload bytes: n * 8 for hashes; BLOCK: those of the leaves, n - 1 whole
		       * ones and up to one more; unless OK 0 */
};

void wst_request_put(uint8_t buf[WST_HDR_SIZE], const struct wst_request *r);
/* 0; CC_ERR_PROTO with *why (static text). */
int wst_request_get(const uint8_t buf[WST_HDR_SIZE], struct wst_request *ret, const char **why);
void wst_answer_put(uint8_t buf[WST_HDR_SIZE], const struct wst_answer *a);
int wst_answer_get(const uint8_t buf[WST_HDR_SIZE], struct wst_answer *ret, const char **why);

#endif
