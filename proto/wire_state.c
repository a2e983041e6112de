/* SPDX-License-Identifier: MIT
 *
 * PROTOCOL.md draws these headers. Bytes without a name in this file are sent as zero. The receiver
 * refuses other values, because a stream that is out of step must be noticed.
 */
#include "proto/wire_state.h"

#include <string.h>

#include "common/cc_err.h"
#include "proto/wire_bytes.h"

_Static_assert(WIRE_TENSORS_MAX == 1048576 && WST_HASHES_MAX == 65536 && WST_BLOCK_MAX == 16,
	"limits named in texts");
_Static_assert(WIRE_LEAVES_MAX == UINT64_C(1) << 32, "limits named in texts");

static int bad(const char **why, const char *text)
{
	*why = text;
	return CC_ERR_PROTO;
}

static void put(uint8_t buf[WST_HDR_SIZE], const struct wst_request *r)
{
	memset(buf, 0, WST_HDR_SIZE);
	wire_put32(buf, WST_MAGIC);
	buf[4] = r->kind;
	wire_put32(buf + 8, r->id);
	wire_put32(buf + 12, r->group);
	wire_put64(buf + 16, r->seq);
	wire_put64(buf + 24, r->first);
	wire_put32(buf + 32, r->tensor);
	wire_put32(buf + 36, r->n);
	wire_put64(buf + 48, r->without);
}

static int check_range(const struct wst_request *r, const char **why)
{
	if (r->kind == WST_BLOCK && (r->n < 1 || r->n > WST_BLOCK_MAX))
		return bad(why, "request.n: must be 1 to 16");
	if (r->n < 1 || r->n > WST_HASHES_MAX)
		return bad(why, "request.n: must be 1 to 65536");
	if (r->tensor >= WIRE_TENSORS_MAX)
		return bad(why, "request.tensor: must be below 1048576");
	if (r->kind == WST_TENSORS) {
		if (r->n > WIRE_TENSORS_MAX - r->tensor)
			return bad(why, "request.tensor: tensor + n must be at most 1048576");
		return r->first == 0 ? 0 : bad(why, "request.first: must be 0");
	}
	if (r->first > WIRE_LEAVES_MAX - r->n)
		return bad(why, "request.first: first + n must be at most 2^32");
	return 0;
}

static int get(const uint8_t buf[WST_HDR_SIZE], struct wst_request *r, const char **why)
{
	*r = (struct wst_request){
		.kind = buf[4],
		.id = wire_get32(buf + 8),
		.group = wire_get32(buf + 12),
		.seq = wire_get64(buf + 16),
		.first = wire_get64(buf + 24),
		.tensor = wire_get32(buf + 32),
		.n = wire_get32(buf + 36),
		.without = wire_get64(buf + 48),
	};
	if (wire_get32(buf) != WST_MAGIC)
		return bad(why, "request.magic: must be PCST");
	if (r->kind < WST_TENSORS || r->kind > WST_BLOCK)
		return bad(why, "request.kind: must be 1 to 3");
	if (r->seq < 1)
		return bad(why, "request.seq: must be at least 1");
	if ((buf[7] | wire_get32(buf + 44) | wire_get64(buf + 56)) != 0)
		return bad(why, "request.reserved: must be zero");
	return check_range(r, why);
}

void wst_request_put(uint8_t buf[WST_HDR_SIZE], const struct wst_request *r)
{
	put(buf, r);
}

int wst_request_get(const uint8_t buf[WST_HDR_SIZE], struct wst_request *ret, const char **why)
{
	struct wst_request r;
	int rc = get(buf, &r, why);

	if (rc != 0)
		return rc;
	if ((buf[5] | buf[6] | wire_get32(buf + 40)) != 0)
		return bad(why, "request.reserved: must be zero");
	*ret = r;
	return 0;
}

void wst_answer_put(uint8_t buf[WST_HDR_SIZE], const struct wst_answer *a)
{
	put(buf, &a->req);
	buf[5] = a->status;
	buf[6] = a->member;
	wire_put32(buf + 40, a->len);
}

static int check_len(const struct wst_answer *a, const char **why)
{
	const struct wst_request *r = &a->req;

	if (a->status != WST_OK)
		return a->len == 0 ? 0 : bad(why, "answer.len: must be 0 without success");
	if (r->kind != WST_BLOCK)
		return a->len == r->n * 8 ? 0 : bad(why, "answer.len: must be 8 for each hash");
	if (a->len > r->n * WIRE_LEAF || a->len <= (r->n - 1) * WIRE_LEAF)
		return bad(why, "answer.len: must be the length of n leaves, the last of which may "
				"be shorter");
	return 0;
}

int wst_answer_get(const uint8_t buf[WST_HDR_SIZE], struct wst_answer *ret, const char **why)
{
	struct wst_answer a = {.status = buf[5], .member = buf[6], .len = wire_get32(buf + 40)};
	int rc = get(buf, &a.req, why);

	if (rc != 0)
		return rc;
	if (a.status > WST_GONE)
		return bad(why, "answer.status: must be 0 to 2");
	if (a.member > (a.status == WST_OK ? WST_MEMBER_MAX : 0))
		return bad(why, "answer.member: must be 0 to 64, and 0 without success");
	rc = check_len(&a, why);
	if (rc == 0)
		*ret = a;
	return rc;
}
