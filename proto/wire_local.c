/* SPDX-License-Identifier: MIT */
#include "proto/wire_local.h"

#include <string.h>

#include "common/cc_err.h"
#include "proto/local.pb-c.h"
#include "proto/wire_pb.h"

#define POOL_MAX      64u
#define MEMORY_FACTOR 16

#define ID_LIMIT "must be 16 bytes, not all zero"

_Static_assert(WL_NAME_MAX == 64 && WL_TEXT_MAX == 512, "limits named in texts");
_Static_assert(WL_SEQS_MAX == 64u, "a bit of wl_reply.done for each");

struct request_parts {
	Local__Hello hello;
	Local__CommCreate comm_create;
	Local__Address master, at;
	Local__CommDestroy comm_destroy;
	Local__CommConnect comm_connect;
	Local__CommVote comm_vote;
	Local__CommAttach comm_attach;
	Local__RegionAlloc region_alloc;
	Local__Region region;
	Local__RegionAdopt region_adopt;
};

static void put_hello(struct wire_arena *a, const struct wl_request *r, Local__Hello *p)
{
	local__hello__init(p);
	p->version_min = r->version_min;
	p->version_max = r->version_max;
	p->features = r->features;
	p->name = wire_put_text(a, r->name, sizeof r->name);
}

static Local__Address *put_addr(const struct cc_addr *a, Local__Address *p)
{
	local__address__init(p);
	p->ip = wire_put_ip(a);
	p->port = a->port;
	return p;
}

static Local__Address *put_addr_or_none(const struct cc_addr *a, Local__Address *p)
{
	return a->family ? put_addr(a, p) : NULL;
}

static void put_comm_create(const struct wl_request *r, Local__CommCreate *p,
	Local__Address *master, Local__Address *at)
{
	local__comm_create__init(p);
	p->master = put_addr(&r->master, master);
	p->master_addr = put_addr_or_none(&r->master_addr, at);
	p->group = r->group;
	p->pool_size = r->pool_size;
}

static Local__CommDestroy *put_comm_destroy(
	struct wire_arena *a, const struct wl_request *r, Local__CommDestroy *p)
{
	local__comm_destroy__init(p);
	p->comm = r->comm;
	p->text = wire_put_text(a, r->text, sizeof r->text);
	p->until_left = r->until_left;
	return p;
}

static Local__CommConnect *put_comm_connect(const struct wl_request *r, Local__CommConnect *p)
{
	local__comm_connect__init(p);
	p->comm = r->comm;
	p->peer = wire_put_id(&r->peer);
	p->token = wire_put_id(&r->token);
	p->thread = r->thread;
	return p;
}

static Local__CommVote *put_comm_vote(const struct wl_request *r, Local__CommVote *p)
{
	local__comm_vote__init(p);
	p->comm = r->comm;
	p->topo_ballot = r->topo_ballot;
	p->pending_ballot = r->pending_ballot;
	return p;
}

static void put_comm_attach(struct wire_arena *a, const struct wl_request *r, Local__CommAttach *p,
	Local__Address *master, Local__Address *at)
{
	local__comm_attach__init(p);
	p->master = put_addr(&r->master, master);
	p->master_addr = put_addr_or_none(&r->master_addr, at);
	p->group = r->group;
	p->pool_size = r->pool_size;
	p->peer = wire_put_id(&r->peer);
	p->token = wire_put_id(&r->token);
	p->run = wire_put_id(&r->run);
	p->generation = r->generation;
	p->topo_ballot = r->topo_ballot;
	p->pending_ballot = r->pending_ballot;
	p->epoch = r->epoch;
	p->ring_epoch = r->ring_epoch;
	p->prepared = r->prepared;
	p->view_id = r->view_id;
	p->global = r->global;
	p->world_size = r->world_size;
	p->thread = r->thread;
	p->seqs = wire_arena_take(a, r->n_seqs, sizeof *p->seqs);
	if (p->seqs == NULL)
		return;
	p->n_seqs = r->n_seqs;
	p->succeeded = r->n_succeeded;
	memcpy(p->seqs, r->seqs, r->n_seqs * sizeof *p->seqs);
}

static void put_region_alloc(const struct wl_request *r, Local__RegionAlloc *p)
{
	local__region_alloc__init(p);
	p->comm = r->comm;
	p->size = r->size;
	p->use = (Local__RegionUse)r->use;
}

static Local__Region *put_region(const struct wl_request *r, Local__Region *p)
{
	local__region__init(p);
	p->comm = r->comm;
	p->region = r->region;
	return p;
}

static int put_request(struct wire_arena *a, const struct wl_request *r, Local__Request *p,
	struct request_parts *part)
{
	local__request__init(p);
	p->req_id = r->req_id;
	/* The field number of a kind equals its type number. */
	p->kind_case = (Local__Request__KindCase)r->type;
	switch (r->type) {
	case WL_HELLO:
		put_hello(a, r, &part->hello);
		p->hello = &part->hello;
		return 0;
	case WL_COMM_CREATE:
		put_comm_create(r, &part->comm_create, &part->master, &part->at);
		p->comm_create = &part->comm_create;
		return 0;
	case WL_COMM_CONNECT:
		p->comm_connect = put_comm_connect(r, &part->comm_connect);
		return 0;
	case WL_COMM_DESTROY:
		p->comm_destroy = put_comm_destroy(a, r, &part->comm_destroy);
		return 0;
	case WL_UPDATE_TOPOLOGY:
		p->update_topology = put_comm_vote(r, &part->comm_vote);
		return 0;
	case WL_ARE_PENDING:
		p->are_pending = put_comm_vote(r, &part->comm_vote);
		return 0;
	case WL_REGION_ALLOC:
		put_region_alloc(r, &part->region_alloc);
		p->region_alloc = &part->region_alloc;
		return 0;
	case WL_REGION_FREE:
		p->region_free = put_region(r, &part->region);
		return 0;
	case WL_REGION_MAP:
		p->region_map = put_region(r, &part->region);
		return 0;
	case WL_COMM_ATTACH:
		put_comm_attach(a, r, &part->comm_attach, &part->master, &part->at);
		p->comm_attach = &part->comm_attach;
		return 0;
	case WL_REGION_ADOPT:
		local__region_adopt__init(&part->region_adopt);
		part->region_adopt.size = r->size;
		p->region_adopt = &part->region_adopt;
		return 0;
	}
	return CC_ERR_INVAL;
}

/* Writes the packet. Returns its length or a negative enum cc_err. */
static int pack(const struct wire_arena *a, const ProtobufCMessage *p, uint8_t *buf)
{
	size_t len = protobuf_c_message_get_packed_size(p);

	if (a->err != 0)
		return a->err;
	if (len > WL_PACKET_MAX)
		return CC_ERR_LIMIT;
	return (int)protobuf_c_message_pack(p, buf);
}

int wire_local_put_request(const struct wl_request *r, uint8_t *buf)
{
	struct request_parts part;
	struct wire_arena arena;
	Local__Request p;
	int rc;

	wire_arena_init(&arena, WL_PACKET_MAX);
	rc = put_request(&arena, r, &p, &part);
	if (rc == 0)
		rc = pack(&arena, &p.base, buf);
	wire_arena_free(&arena);
	return rc;
}

static Local__View *put_view(const struct wire_view *w, Local__View *p)
{
	if (w->view_id == 0)
		return NULL;
	local__view__init(p);
	p->view_id = w->view_id;
	p->global = w->global;
	p->group = w->group;
	p->groups = w->groups;
	p->largest = w->largest;
	return p;
}

int wire_local_put_reply(const struct wl_reply *r, uint8_t *buf)
{
	Local__Reply p = LOCAL__REPLY__INIT;
	struct wire_arena arena;
	Local__View view;
	int rc;

	wire_arena_init(&arena, WL_PACKET_MAX);
	p.req_id = r->req_id;
	p.code = r->code;
	p.text = wire_put_text(&arena, r->text, sizeof r->text);
	p.version_min = r->version_min;
	p.version_max = r->version_max;
	p.version = r->version;
	p.features = r->features;
	p.hash_type = r->hash_type;
	p.comm = r->comm;
	p.region = r->region;
	p.size = r->size;
	p.flag = r->flag;
	p.run = wire_put_id(&r->run);
	p.generation = r->generation;
	p.done = r->done;
	p.topo_ballot = r->topo_ballot;
	p.pending_ballot = r->pending_ballot;
	p.view = put_view(&r->view, &view);
	rc = pack(&arena, &p.base, buf);
	wire_arena_free(&arena);
	return rc;
}

static int get_hello(const Local__Hello *p, struct wl_request *r, const char **why)
{
	int rc;

	r->version_min = p->version_min;
	r->version_max = p->version_max;
	rc = wire_check_versions(p->version_min, p->version_max, why,
		"hello.version_min: must be 1 to hello.version_max, which must be at most 65535");
	if (rc != 0)
		return rc;
	/* The rest of a hello of another version is not checked, because the agent refuses it. */
	if (p->version_min > WL_VERSION_MAX || p->version_max < WL_VERSION_MIN)
		return 0;
	r->features = p->features;
	return wire_get_name(r->name, sizeof r->name, p->name, why,
		"hello.name: must be UTF-8 of at most 63 bytes without control characters");
}

static int get_addr_or_none(
	struct cc_addr *ret, const Local__Address *p, const char **why, const char *limit)
{
	return p == NULL ? 0 : wire_get_addr(ret, p->ip, p->port, 1, why, limit);
}

static int get_comm_create(const Local__CommCreate *p, struct wl_request *r, const char **why)
{
	static const char limit[] =
		"comm_create.master: must be 4 or 16 bytes, with a port of 1 to 65535";
	int rc;

	if (p->master == NULL)
		return wire_bad(why, limit);
	if (p->pool_size > POOL_MAX)
		return wire_bad(why, "comm_create.pool_size: must be at most 64");
	r->group = p->group;
	r->pool_size = p->pool_size;
	rc = wire_get_addr(&r->master, p->master->ip, p->master->port, 1, why, limit);
	if (rc == 0)
		rc = get_addr_or_none(&r->master_addr, p->master_addr, why,
			"comm_create.master_addr: must be 4 or 16 bytes, with a port of 1 to "
			"65535");
	return rc;
}

static int get_comm_destroy(const Local__CommDestroy *p, struct wl_request *r, const char **why)
{
	r->comm = p->comm;
	r->until_left = p->until_left;
	return wire_get_text(r->text, sizeof r->text, p->text, why,
		"comm_destroy.text: must be at most 511 bytes");
}

static int get_who(ProtobufCBinaryData peer, ProtobufCBinaryData token, struct wl_request *r,
	const char **why, const char *peer_limit, const char *token_limit)
{
	int rc = wire_get_id(&r->peer, peer, why, peer_limit);

	return rc == 0 ? wire_get_id(&r->token, token, why, token_limit) : rc;
}

static int get_comm_connect(const Local__CommConnect *p, struct wl_request *r, const char **why)
{
	r->comm = p->comm;
	r->thread = p->thread;
	return get_who(p->peer, p->token, r, why, "comm_connect.peer: " ID_LIMIT,
		"comm_connect.token: " ID_LIMIT);
}

static int get_comm_vote(const Local__CommVote *p, struct wl_request *r)
{
	r->comm = p->comm;
	r->topo_ballot = p->topo_ballot;
	r->pending_ballot = p->pending_ballot;
	return 0;
}

static int get_comm_attach(const Local__CommAttach *p, struct wl_request *r, const char **why)
{
	static const char limit[] =
		"comm_attach.master: must be 4 or 16 bytes, with a port of 1 to 65535";
	int rc;

	if (p->master == NULL)
		return wire_bad(why, limit);
	rc = wire_get_addr(&r->master, p->master->ip, p->master->port, 1, why, limit);
	if (rc == 0)
		rc = get_addr_or_none(&r->master_addr, p->master_addr, why,
			"comm_attach.master_addr: must be 4 or 16 bytes, with a port of 1 to "
			"65535");
	if (rc == 0)
		rc = get_who(p->peer, p->token, r, why, "comm_attach.peer: " ID_LIMIT,
			"comm_attach.token: " ID_LIMIT);
	if (rc == 0)
		rc = wire_get_id(&r->run, p->run, why, "comm_attach.run: " ID_LIMIT);
	if (rc != 0)
		return rc;
	if (p->pool_size > POOL_MAX)
		return wire_bad(why, "comm_attach.pool_size: must be at most 64");
	if (p->n_seqs > WL_SEQS_MAX)
		return wire_bad(why, "comm_attach.seqs: must be at most 64");
	for (size_t i = 0; i < p->n_seqs; i++) {
		if (p->seqs[i] < 1)
			return wire_bad(why, "comm_attach.seqs: must be at least 1");
		r->seqs[i] = p->seqs[i];
	}
	if (p->succeeded > p->n_seqs)
		return wire_bad(why, "comm_attach.succeeded: must be at most as many as seqs");
	r->n_seqs = (uint32_t)p->n_seqs;
	r->n_succeeded = p->succeeded;
	r->group = p->group;
	r->pool_size = p->pool_size;
	r->generation = p->generation;
	r->topo_ballot = p->topo_ballot;
	r->pending_ballot = p->pending_ballot;
	r->epoch = p->epoch;
	r->ring_epoch = p->ring_epoch;
	r->prepared = p->prepared;
	r->view_id = p->view_id;
	r->global = p->global;
	r->world_size = p->world_size;
	r->thread = p->thread;
	return 0;
}

static int get_region_adopt(const Local__RegionAdopt *p, struct wl_request *r, const char **why)
{
	if (p->size < 1 || p->size > WIRE_COUNT_MAX)
		return wire_bad(why, "region_adopt.size: must be 1 to 2^48");
	r->size = p->size;
	return 0;
}

static int get_region_alloc(const Local__RegionAlloc *p, struct wl_request *r, const char **why)
{
	if (p->size < 1 || p->size > WIRE_COUNT_MAX)
		return wire_bad(why, "region_alloc.size: must be 1 to 2^48");
	if (p->use != LOCAL__REGION_USE__REGION_REGISTERED &&
		p->use != LOCAL__REGION_USE__REGION_STAGING &&
		p->use != LOCAL__REGION_USE__REGION_STATE)
		return wire_bad(why, "region_alloc.use: must be 1 to 3");
	r->comm = p->comm;
	r->size = p->size;
	r->use = (uint32_t)p->use;
	return 0;
}

static int get_region(const Local__Region *p, struct wl_request *r)
{
	r->comm = p->comm;
	r->region = p->region;
	return 0;
}

static int get_request(const Local__Request *p, struct wl_request *r, const char **why)
{
	if (p->req_id < 1)
		return wire_bad(why, "request.req_id: must be at least 1");
	r->req_id = p->req_id;
	r->type = (enum wl_type)p->kind_case;
	switch (r->type) {
	case WL_HELLO:
		return get_hello(p->hello, r, why);
	case WL_COMM_CREATE:
		return get_comm_create(p->comm_create, r, why);
	case WL_COMM_CONNECT:
		return get_comm_connect(p->comm_connect, r, why);
	case WL_COMM_DESTROY:
		return get_comm_destroy(p->comm_destroy, r, why);
	case WL_UPDATE_TOPOLOGY:
		return get_comm_vote(p->update_topology, r);
	case WL_ARE_PENDING:
		return get_comm_vote(p->are_pending, r);
	case WL_REGION_ALLOC:
		return get_region_alloc(p->region_alloc, r, why);
	case WL_REGION_FREE:
		return get_region(p->region_free, r);
	case WL_REGION_MAP:
		return get_region(p->region_map, r);
	case WL_COMM_ATTACH:
		return get_comm_attach(p->comm_attach, r, why);
	case WL_REGION_ADOPT:
		return get_region_adopt(p->region_adopt, r, why);
	}
	return wire_bad(why, "request.kind: not one that this version knows");
}

static int get_view(const Local__View *p, struct wire_view *ret, const char **why)
{
	if (!p)
		return 0;
	if (p->view_id == 0)
		return wire_bad(why, "reply.view.view_id: must be at least 1");
	*ret = (struct wire_view){.view_id = p->view_id,
		.global = p->global,
		.group = p->group,
		.groups = p->groups,
		.largest = p->largest};
	return 0;
}

static int get_reply(const Local__Reply *p, struct wl_reply *r, const char **why)
{
	int rc;

	if (p->code > WIRE_CODE_MAX)
		return wire_bad(why, "reply.code: must be at most 255");
	if (p->version_max < p->version_min || p->version_max > UINT16_MAX)
		return wire_bad(why, "reply.version_max: must be version_min to 65535");
	if (p->version > UINT16_MAX)
		return wire_bad(why, "reply.version: must be at most 65535");
	if (p->size > WIRE_COUNT_MAX)
		return wire_bad(why, "reply.size: must be at most 2^48");
	if (p->req_id == 0 && p->region != 0 && (p->code != 0 || p->size == 0))
		return wire_bad(why, "reply: a region without a request needs a size and no code");
	r->req_id = p->req_id;
	r->code = p->code;
	r->version_min = p->version_min;
	r->version_max = p->version_max;
	r->version = p->version;
	r->features = p->features;
	r->hash_type = p->hash_type;
	r->comm = p->comm;
	r->region = p->region;
	r->size = p->size;
	r->flag = p->flag;
	r->generation = p->generation;
	r->done = p->done;
	r->topo_ballot = p->topo_ballot;
	r->pending_ballot = p->pending_ballot;
	rc = get_view(p->view, &r->view, why);
	if (rc != 0)
		return rc;
	rc = wire_get_id_or_none(&r->run, p->run, why,
		"reply.run: must be empty, or 16 bytes that are not all zero");
	if (rc != 0)
		return rc;
	return wire_get_text(
		r->text, sizeof r->text, p->text, why, "reply.text: must be at most 511 bytes");
}

/* Decodes a packet. Returns NULL on failure, with *err and *why set. The caller must free the arena
 * in any case. */
static void *unpack(struct wire_arena *a, const ProtobufCMessageDescriptor *type,
	const uint8_t *buf, size_t len, int *err, const char **why)
{
	/* The buffer of the caller may be larger than the limit of packets. */
	if (len > WL_PACKET_MAX) {
		wire_arena_init(a, 0);
		*err = CC_ERR_LIMIT;
		*why = "packet: must be at most 4096 bytes";
		return NULL;
	}
	return wire_arena_unpack(a, type, buf, len, MEMORY_FACTOR, err, why);
}

int wire_local_get_request(const uint8_t *buf, size_t len, struct wl_request *ret, const char **why)
{
	struct wl_request r = {0};
	struct wire_arena arena;
	Local__Request *p;
	int rc = 0;

	p = unpack(&arena, &local__request__descriptor, buf, len, &rc, why);
	if (p != NULL)
		rc = get_request(p, &r, why);
	wire_arena_free(&arena);
	if (rc == 0)
		*ret = r;
	return rc;
}

int wire_local_get_reply(const uint8_t *buf, size_t len, struct wl_reply *ret, const char **why)
{
	struct wl_reply r = {0};
	struct wire_arena arena;
	Local__Reply *p;
	int rc = 0;

	p = unpack(&arena, &local__reply__descriptor, buf, len, &rc, why);
	if (p != NULL)
		rc = get_reply(p, &r, why);
	wire_arena_free(&arena);
	if (rc == 0)
		*ret = r;
	return rc;
}
