/* SPDX-License-Identifier: MIT */
#include "proto/wire_journal.h"

#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"
#include "proto/journal.pb-c.h"
#include "proto/wire_bytes.h"
#include "proto/wire_pb.h"

#define ID_LIMIT "must be 16 bytes, not all zero"

/* Bytes of memory that protobuf-c may take per byte of payload. A member has at least 38 bytes of
 * payload. */
#define UNPACK_FACTOR 32

static const uint8_t magic[8] = {'P', 'C', 'C', 'L', 'J', 'R', 'N', 'L'};

/* Computes the CRC-32 of zlib, four bits at a time. */
static uint32_t checksum(const uint8_t *p, size_t len)
{
	static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
		0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8,
		0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
	uint32_t c = UINT32_MAX;

	for (; len > 0; len--, p++) {
		c = table[(c ^ *p) & 15] ^ (c >> 4);
		c = table[(c ^ (*p >> 4)) & 15] ^ (c >> 4);
	}
	return ~c;
}

void wire_journal_header(uint8_t buf[WJ_HEADER])
{
	memset(buf, 0, WJ_HEADER);
	memcpy(buf, magic, sizeof magic);
	wire_put32(buf + sizeof magic, WJ_VERSION);
}

int wire_journal_check(const uint8_t *buf, size_t len)
{
	if (len < WJ_HEADER)
		return CC_ERR_AGAIN;
	if (memcmp(buf, magic, sizeof magic) != 0)
		return CC_ERR_PROTO;
	return wire_get32(buf + sizeof magic) == WJ_VERSION ? 0 : CC_ERR_VERSION;
}

/* ---- encoding ---- */

static void put_revisions(struct wire_arena *a, const struct wj_record *r, Journal__Members *m)
{
	Journal__Revision *v = wire_arena_take(a, r->n_revisions, sizeof *v);

	m->revisions = wire_arena_take_pointers(a, r->n_revisions);
	if (v == NULL || m->revisions == NULL)
		return;
	for (; m->n_revisions < r->n_revisions; m->n_revisions++, v++) {
		journal__revision__init(v);
		v->group = r->revisions[m->n_revisions].group;
		v->revision = r->revisions[m->n_revisions].revision;
		v->lost = r->revisions[m->n_revisions].lost;
		m->revisions[m->n_revisions] = v;
	}
}

static void put_members(struct wire_arena *a, const struct wj_record *r, Journal__Members *m)
{
	Journal__Member *v = wire_arena_take(a, r->n, sizeof *v);

	journal__members__init(m);
	m->epoch = r->epoch;
	m->round = r->round;
	m->view_id = r->view_id;
	m->generation = r->generation;
	m->last_seq = r->last_seq;
	m->topo_ballot = r->topo_ballot;
	m->pending_ballot = r->pending_ballot;
	put_revisions(a, r, m);
	m->members = wire_arena_take_pointers(a, r->n);
	if (v == NULL || m->members == NULL)
		return;
	for (; m->n_members < r->n; m->n_members++, v++) {
		const struct wj_member *x = &r->members[m->n_members];

		journal__member__init(v);
		v->peer = wire_put_id(&x->peer);
		v->token = wire_put_id(&x->token);
		v->agent = wire_put_id(&x->agent);
		v->group = x->group;
		v->host = wire_put_text(a, x->host, sizeof x->host);
		v->name = wire_put_text(a, x->name, sizeof x->name);
		v->pid = x->pid;
		m->members[m->n_members] = v;
	}
}

static void put_lost(struct wire_arena *a, const struct wj_record *r, Journal__Lost *m)
{
	journal__lost__init(m);
	m->view_id = r->view_id;
	m->generation = r->generation;
	m->peers = wire_arena_take(a, r->n, sizeof *m->peers);
	if (m->peers == NULL)
		return;
	for (; m->n_peers < r->n; m->n_peers++)
		m->peers[m->n_peers] = wire_put_id(&r->members[m->n_peers].peer);
}

static int pack(const Journal__Record *m, uint8_t **ret, size_t *ret_len)
{
	size_t len = journal__record__get_packed_size(m);
	uint8_t *p;

	if (len > WJ_RECORD_MAX)
		return CC_ERR_LIMIT;
	p = malloc(WJ_RECORD_HDR + len);
	if (p == NULL)
		return CC_ERR_NOMEM;
	journal__record__pack(m, p + WJ_RECORD_HDR);
	wire_put32(p, (uint32_t)len);
	wire_put32(p + 4, checksum(p + WJ_RECORD_HDR, len));
	*ret = p;
	*ret_len = WJ_RECORD_HDR + len;
	return 0;
}

int wire_journal_encode(const struct wj_record *r, uint8_t **ret, size_t *ret_len)
{
	Journal__Record m = JOURNAL__RECORD__INIT;
	Journal__Run run = JOURNAL__RUN__INIT;
	struct wire_arena arena;
	Journal__Members members;
	Journal__Lost lost;
	int rc;

	wire_arena_init(&arena, SIZE_MAX);
	m.kind_case = (Journal__Record__KindCase)r->type;
	switch (r->type) {
	case WJ_RUN:
		run.run = wire_put_id(&r->run);
		run.run_key = wire_put_id(&r->run_key);
		run.term = r->term;
		m.run = &run;
		break;
	case WJ_MEMBERS:
		put_members(&arena, r, &members);
		m.members = &members;
		break;
	case WJ_LOST:
		put_lost(&arena, r, &lost);
		m.lost = &lost;
		break;
	}
	rc = arena.err != 0 ? arena.err : pack(&m, ret, ret_len);
	wire_arena_free(&arena);
	return rc;
}

/* ---- decoding ---- */

static int get_run(const Journal__Run *p, struct wj_record *r, const char **why)
{
	int rc;

	if (p->run.len == 0 && p->run_key.len == 0)
		return 0;
	rc = wire_get_id(&r->run, p->run, why, "run.run: " ID_LIMIT);
	if (rc == 0)
		rc = wire_get_id(&r->run_key, p->run_key, why, "run.run_key: " ID_LIMIT);
	if (rc == 0 && p->term < 1)
		return wire_bad(why, "run.term: must be at least 1");
	r->term = p->term;
	return rc;
}

static int get_member(const Journal__Member *p, struct wj_member *m, const char **why)
{
	int rc = wire_get_id(&m->peer, p->peer, why, "member.peer: " ID_LIMIT);

	if (rc == 0)
		rc = wire_get_id_or_none(
			&m->token, p->token, why, "member.token: must be 16 bytes");
	if (rc == 0)
		rc = wire_get_id(&m->agent, p->agent, why, "member.agent: " ID_LIMIT);
	if (rc == 0)
		rc = wire_get_text(m->host, sizeof m->host, p->host, why,
			"member.host: must be at most 63 bytes");
	if (rc == 0)
		rc = wire_get_text(m->name, sizeof m->name, p->name, why,
			"member.name: must be at most 63 bytes");
	m->group = p->group;
	m->pid = p->pid;
	return rc;
}

static int members_new(struct wj_record *r, size_t n, const char **why)
{
	if (n > WJ_MEMBERS_MAX)
		return wire_bad(why, "members: must be at most " WIRE_STR(WJ_MEMBERS_MAX));
	r->members = calloc(n != 0 ? n : 1, sizeof *r->members);
	if (r->members == NULL)
		return CC_ERR_NOMEM;
	r->n = (uint32_t)n;
	return 0;
}

static int compare_groups(const void *a, const void *b)
{
	const struct wj_revision *x = a, *y = b;

	return (x->group > y->group) - (x->group < y->group);
}

/* Decodes the revisions and sorts them by group. */
static int get_revisions(const Journal__Members *p, struct wj_record *r, const char **why)
{
	size_t n = p->n_revisions;

	if (n > WJ_GROUPS_MAX)
		return wire_bad(why, "members.revisions: must be at most " WIRE_STR(WJ_GROUPS_MAX));
	if (n == 0)
		return 0;
	r->revisions = calloc(n, sizeof *r->revisions);
	if (r->revisions == NULL)
		return CC_ERR_NOMEM;
	r->n_revisions = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		if (p->revisions[i]->revision < 1)
			return wire_bad(why, "members.revisions.revision: must be at least 1");
		r->revisions[i] = (struct wj_revision){.group = p->revisions[i]->group,
			.revision = p->revisions[i]->revision,
			.lost = p->revisions[i]->lost};
	}
	qsort(r->revisions, n, sizeof *r->revisions, compare_groups);
	for (size_t i = 1; i < n; i++)
		if (r->revisions[i].group == r->revisions[i - 1].group)
			return wire_bad(why, "members.revisions: must not name a group twice");
	return 0;
}

static int get_members(const Journal__Members *p, struct wj_record *r, const char **why)
{
	int rc = members_new(r, p->n_members, why);

	r->epoch = p->epoch;
	r->round = p->round;
	r->view_id = p->view_id;
	r->generation = p->generation;
	r->last_seq = p->last_seq;
	r->topo_ballot = p->topo_ballot;
	r->pending_ballot = p->pending_ballot;
	if (rc != 0 || r->members == NULL)
		return rc;
	for (size_t i = 0; rc == 0 && i < p->n_members; i++)
		rc = get_member(p->members[i], &r->members[i], why);
	return rc == 0 ? get_revisions(p, r, why) : rc;
}

static int get_lost(const Journal__Lost *p, struct wj_record *r, const char **why)
{
	int rc = members_new(r, p->n_peers, why);

	r->view_id = p->view_id;
	r->generation = p->generation;
	if (rc != 0 || r->members == NULL)
		return rc;
	for (size_t i = 0; rc == 0 && i < p->n_peers; i++)
		rc = wire_get_id(&r->members[i].peer, p->peers[i], why, "lost.peers: " ID_LIMIT);
	return rc;
}

static int get_record(const Journal__Record *p, struct wj_record *r, const char **why)
{
	switch (p->kind_case) {
	case JOURNAL__RECORD__KIND_RUN:
		r->type = WJ_RUN;
		return get_run(p->run, r, why);
	case JOURNAL__RECORD__KIND_MEMBERS:
		r->type = WJ_MEMBERS;
		return get_members(p->members, r, why);
	case JOURNAL__RECORD__KIND_LOST:
		r->type = WJ_LOST;
		return get_lost(p->lost, r, why);
	default:
		return wire_bad(why, "record: of no known kind");
	}
}

int wire_journal_get(const uint8_t *payload, size_t len, struct wj_record *ret, const char **why)
{
	struct wj_record r = {.type = WJ_RUN};
	struct wire_arena arena;
	Journal__Record *p;
	int rc = 0;

	p = wire_arena_unpack(
		&arena, &journal__record__descriptor, payload, len, UNPACK_FACTOR, &rc, why);
	if (p != NULL)
		rc = get_record(p, &r, why);
	wire_arena_free(&arena);
	if (rc != 0)
		wire_journal_clear(&r);
	else
		*ret = r;
	return rc;
}

int wire_journal_decode(
	const uint8_t *buf, size_t len, struct wj_record *ret, size_t *used, const char **why)
{
	uint32_t size;
	int rc;

	if (len < WJ_RECORD_HDR)
		return CC_ERR_AGAIN;
	size = wire_get32(buf);
	if (size > WJ_RECORD_MAX)
		return wire_bad(why, "record: longer than any valid one");
	if (len - WJ_RECORD_HDR < size)
		return CC_ERR_AGAIN;
	if (checksum(buf + WJ_RECORD_HDR, size) != wire_get32(buf + 4))
		return wire_bad(why, "record: its checksum is wrong");
	rc = wire_journal_get(buf + WJ_RECORD_HDR, size, ret, why);
	if (rc == 0)
		*used = WJ_RECORD_HDR + size;
	return rc;
}

void wire_journal_clear(struct wj_record *r)
{
	free(r->members);
	free(r->revisions);
	*r = (struct wj_record){.type = WJ_RUN};
}
