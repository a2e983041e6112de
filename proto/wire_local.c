/* SPDX-License-Identifier: MIT
 *
 * The tables of the messages between a shim and its agent, and their rules. The struct of all kinds
 * of requests is wl_request. Each kind uses some of its members.
 */
#include "proto/wire_local.h"

#include <string.h>

#include "proto/local.pb-c.h"
#include "proto/wire_table.h"

#define POOL_MAX      64u
#define MEMORY_FACTOR 16

_Static_assert(WL_NAME_MAX == 64 && WL_TEXT_MAX == 512, "limits named in texts");
_Static_assert(WL_SEQS_MAX == 64u, "wl_reply.done has a bit for each seq");

/* F(comm, U32): the member comm of struct wl_request is the field of the same name. */
#define F(m, ...)             WIRE_FIELD(struct wl_request, #m, m, __VA_ARGS__)
#define TABLE(message, lines) WIRE_TABLE(struct wl_request, local__##message##__descriptor, lines)

static const struct wire_field address_fields[] = {WIRE_ADDRESS(1)};
static const struct wire_table address = {
	WIRE_TABLE(struct cc_addr, local__address__descriptor, address_fields)};

#define ADDRESS_LIMIT ": must be 4 or 16 bytes, with a port of 1 to 65535"
#define MASTER(path)                                                                               \
	F(master, MESSAGE(address), .text = path ".master" ADDRESS_LIMIT,                          \
		.each = path ".master" ADDRESS_LIMIT)
#define MASTER_ADDR(path)                                                                          \
	F(master_addr, MESSAGE(address), .each = path ".master_addr" ADDRESS_LIMIT,                \
		.when = has_master_addr)
#define POOL_SIZE(path)   F(pool_size, U32_IN(0, POOL_MAX, path ".pool_size: must be at most 64"))
#define REGION_SIZE(path) F(size, U64_IN(1, WIRE_COUNT_MAX, path ".size: must be 1 to 2^48"))

CONDITION(has_master_addr, struct wl_request, m->master_addr.family != 0)
CONDITION(hello_versions, struct wl_request,
	wire_versions(m->version_min, m->version_max, WL_VERSION_MIN, WL_VERSION_MAX))
CONDITION(succeeded_fits, struct wl_request, m->n_succeeded <= m->n_seqs)

static const struct wire_field hello_fields[] = {
	F(version_min, U32),
	F(version_max, U32,
		RULE(hello_versions, "hello.version_min: must be 1 to hello.version_max, which "
				     "must be at most 65535")),
	F(features, FIXED64),
	F(name, NAME("hello.name: must be UTF-8 of at most 63 bytes without control characters")),
};
static const struct wire_table hello = {TABLE(hello, hello_fields)};

static const struct wire_field comm_create_fields[] = {
	MASTER("comm_create"),
	F(group, U32),
	POOL_SIZE("comm_create"),
	MASTER_ADDR("comm_create"),
};
static const struct wire_table comm_create = {TABLE(comm_create, comm_create_fields)};

static const struct wire_field comm_destroy_fields[] = {
	F(comm, U32),
	F(text, TEXT("comm_destroy.text: must be at most 511 bytes")),
	F(until_left, BOOL),
};
static const struct wire_table comm_destroy = {TABLE(comm_destroy, comm_destroy_fields)};

static const struct wire_field comm_connect_fields[] = {
	F(comm, U32),
	F(peer, ID("comm_connect.peer")),
	F(token, ID("comm_connect.token")),
	F(thread, U32),
};
static const struct wire_table comm_connect = {TABLE(comm_connect, comm_connect_fields)};

static const struct wire_field comm_vote_fields[] = {
	F(comm, U32),
	WIRE_FIELD(struct wl_request, "kind", ballot, BALLOT_FROM(0, "vote.kind")),
};
static const struct wire_table comm_vote = {TABLE(comm_vote, comm_vote_fields)};

static const struct wire_field comm_attach_fields[] = {
	MASTER("comm_attach"),
	F(group, U32),
	POOL_SIZE("comm_attach"),
	F(peer, ID("comm_attach.peer")),
	F(token, ID("comm_attach.token")),
	F(run, ID("comm_attach.run")),
	WIRE_LIST_FIELD(struct wl_request, "seqs", seqs, n_seqs,
		IN(0, WL_SEQS_MAX, "comm_attach.seqs: must be at most 64"),
		LIST_OF_ITEMS(U64_FROM_1("comm_attach.seqs"))),
	MASTER_ADDR("comm_attach"),
	WIRE_FIELD(struct wl_request, "succeeded", n_succeeded, U32,
		RULE(succeeded_fits, "comm_attach.succeeded: must be at most the number of seqs")),
	F(view_id, U64),
	F(global, U32),
	F(thread, U32),
	F(ballots, NUMBERS),
};
static const struct wire_table comm_attach = {TABLE(comm_attach, comm_attach_fields)};

static const struct wire_field region_alloc_fields[] = {
	F(comm, U32),
	REGION_SIZE("region_alloc"),
	F(use, U32_IN(WL_REGION_REGISTERED, WL_REGION_STATE, "region_alloc.use: must be 1 to 3")),
};
static const struct wire_table region_alloc = {TABLE(region_alloc, region_alloc_fields)};

static const struct wire_field region_adopt_fields[] = {REGION_SIZE("region_adopt")};
static const struct wire_table region_adopt = {TABLE(region_adopt, region_adopt_fields)};

static const struct wire_field region_fields[] = {
	F(comm, U32),
	F(region, U64),
};
static const struct wire_table region = {TABLE(region, region_fields)};

#define KIND(name, table) WIRE_KIND(struct wl_request, #name, table)
CONDITION(has_kind, struct wl_request, m->type != 0)

static const struct wire_field request_fields[] = {
	{KIND(hello, hello)},
	{KIND(comm_create, comm_create)},
	{KIND(comm_connect, comm_connect)},
	{KIND(comm_destroy, comm_destroy)},
	{KIND(vote, comm_vote)},
	{KIND(region_alloc, region_alloc)},
	{KIND(region_free, region)},
	{KIND(region_map, region)},
	{KIND(comm_attach, comm_attach)},
	{KIND(region_adopt, region_adopt)},
	F(req_id, U32_IN(1, UINT32_MAX, "request.req_id: must be at least 1"),
		RULE(has_kind, "request.kind: not one that this version knows")),
};
const struct wire_table wire_local_request = {TABLE(request, request_fields)};

/* ---- replies ---- */

#define R(m, ...)    WIRE_FIELD(struct wl_reply, #m, m, __VA_ARGS__)
#define VIEW(m, ...) WIRE_FIELD(struct wire_view, #m, m, __VA_ARGS__)

static const struct wire_field view_fields[] = {
	VIEW(view_id, U64_FROM_1("reply.view.view_id")),
	VIEW(global, U32),
	VIEW(group, U32),
	VIEW(groups, U32),
	VIEW(largest, U32),
};
static const struct wire_table view = {
	WIRE_TABLE(struct wire_view, local__view__descriptor, view_fields)};

CONDITION(has_view, struct wl_reply, m->view.view_id != 0)
CONDITION(reply_versions, struct wl_reply,
	m->version_max >= m->version_min && m->version_max <= UINT16_MAX)
CONDITION(handover_fits, struct wl_reply,
	!wire_local_is_handover(m) || (m->code == 0 && m->size != 0))

static const struct wire_field reply_fields[] = {
	R(req_id, U32),
	R(code, U32_IN(0, WIRE_CODE_MAX, "reply.code: must be at most 255")),
	R(text, TEXT("reply.text: must be at most 511 bytes")),
	R(version_min, U32),
	R(version_max, U32,
		RULE(reply_versions, "reply.version_max: must be version_min to 65535")),
	R(version, U32_IN(0, UINT16_MAX, "reply.version: must be at most 65535")),
	R(features, FIXED64),
	R(comm, U32),
	R(region, U64),
	R(size, U64_IN(0, WIRE_COUNT_MAX, "reply.size: must be at most 2^48"),
		RULE(handover_fits,
			"reply: a region that was not requested must have a size and no code")),
	R(flag, BOOL),
	R(run, ID_OR_NONE("reply.run")),
	R(generation, U64),
	R(done, FIXED64),
	R(view, MESSAGE(view), .when = has_view),
	R(hash_type, U32),
	R(ballots, NUMBERS),
};
const struct wire_table wire_local_reply = {
	WIRE_TABLE(struct wl_reply, local__reply__descriptor, reply_fields)};

/* ---- packets ---- */

int wire_local_put_request(const struct wl_request *r, uint8_t *buf)
{
	if (r->type < WL_HELLO || r->type > WL_REGION_ADOPT)
		return CC_ERR_INVAL;
	return wire_table_encode_to(&wire_local_request, r, buf, WL_PACKET_MAX);
}

int wire_local_put_reply(const struct wl_reply *r, uint8_t *buf)
{
	return wire_table_encode_to(&wire_local_reply, r, buf, WL_PACKET_MAX);
}

static int decode(
	const struct wire_table *t, const uint8_t *buf, size_t len, void *ret, const char **why)
{
	/* The buffer of the caller may be larger than the limit of packets. */
	if (len <= WL_PACKET_MAX)
		return wire_table_decode(t, buf, len, MEMORY_FACTOR, ret, why);
	*why = "packet: must be at most 4096 bytes";
	return CC_ERR_LIMIT;
}

int wire_local_get_request(const uint8_t *buf, size_t len, struct wl_request *ret, const char **why)
{
	struct wl_request r;
	int rc = decode(&wire_local_request, buf, len, &r, why);

	if (rc == 0)
		*ret = r;
	return rc;
}

int wire_local_get_reply(const uint8_t *buf, size_t len, struct wl_reply *ret, const char **why)
{
	struct wl_reply r;
	int rc = decode(&wire_local_reply, buf, len, &r, why);

	if (rc == 0)
		*ret = r;
	return rc;
}
