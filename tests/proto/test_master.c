/* SPDX-License-Identifier: MIT
 *
 * The codec of the messages between agents and the master.
 */
#include <string.h>

#include "common/cc_err.h"
#include "proto/wire_frame.h"
#include "tests/proto/sample.h"

struct bytes {
	uint8_t *p; /* payload, malloc'd */
	size_t len;
};

static struct bytes encode(const struct wm_msg *m)
{
	struct bytes b;
	uint8_t *frame;
	size_t len;

	ck_assert_int_eq(wire_master_encode(m, &frame, &len), 0);
	ck_assert_int_eq(
		wire_frame_peek(frame, len, WIRE_KIND_MASTER), (int)(len - WIRE_FRAME_HDR));
	/* An allocation of its own, so that a sanitizer sees every byte too many. */
	b.len = len - WIRE_FRAME_HDR;
	b.p = malloc(b.len > 0 ? b.len : 1);
	ck_assert_ptr_nonnull(b.p);
	memcpy(b.p, frame + WIRE_FRAME_HDR, b.len);
	free(frame);
	return b;
}

/* What it encodes to is refused, and the reason names the field. */
static void refused_as(const struct wm_msg *m, int err, const char *field)
{
	struct bytes b = encode(m);
	struct wm_msg got = {.type = WM_KICK, .u.kick.code = 77};
	const char *why = NULL;

	ck_assert_int_eq(wire_master_decode(b.p, b.len, &got, &why), err);
	ck_assert_ptr_nonnull(why);
	ck_assert_msg(strncmp(why, field, strlen(field)) == 0 && why[strlen(field)] == ':',
		"expected %s, got \"%s\"", field, why);
	ck_assert_uint_eq(got.type, WM_KICK);
	ck_assert_uint_eq(got.u.kick.code, 77);
	free(b.p);
}

static void refused(const struct wm_msg *m, const char *field)
{
	refused_as(m, CC_ERR_PROTO, field);
}

static void accepted(const struct wm_msg *m)
{
	struct bytes b = encode(m);
	const char *why = "";
	struct wm_msg got;
	int rc = wire_master_decode(b.p, b.len, &got, &why);

	ck_assert_msg(rc == 0, "%s: %s", wire_master_type_name(m->type), why);
	ck_assert_msg(same_master(m, &got), "%s differs", wire_master_type_name(m->type));
	wire_master_clear(&got);
	free(b.p);
}

START_TEST(round_trip)
{
	struct tl_rng r = tl_rng_new(1);

	for (int i = 0; i < 40; i++) {
		for (size_t t = 0; t < sample_master_n_types; t++) {
			struct wm_msg m;

			sample_master(&r, sample_master_types[t], &m);
			accepted(&m);
			wire_master_clear(&m);
		}
	}
}
END_TEST

START_TEST(truncations)
{
	struct tl_rng r = tl_rng_new(2);

	for (size_t t = 0; t < sample_master_n_types; t++) {
		struct wm_msg m, got;
		struct bytes b;
		const char *why;

		sample_master(&r, sample_master_types[t], &m);
		b = encode(&m);
		for (size_t len = 0; len < b.len && len < 3000; len++) {
			uint8_t *cut = malloc(len > 0 ? len : 1);

			ck_assert_ptr_nonnull(cut);
			memcpy(cut, b.p, len);
			why = NULL;
			/* The outermost length counts every byte, so no part is whole. */
			ck_assert_int_eq(wire_master_decode(cut, len, &got, &why), CC_ERR_PROTO);
			ck_assert_ptr_nonnull(why);
			free(cut);
		}
		free(b.p);
		wire_master_clear(&m);
	}
}
END_TEST

/* Whatever decodes from damaged bytes is valid: it encodes and decodes to itself. */
START_TEST(damaged)
{
	struct tl_rng r = tl_rng_new(3);
	int decoded = 0;

	for (int i = 0; i < 3000; i++) {
		size_t t = tl_range(&r, 0, sample_master_n_types - 1);
		struct wm_msg m, got;
		struct bytes b;
		const char *why;

		sample_master(&r, sample_master_types[t], &m);
		b = encode(&m);
		for (uint64_t n = tl_range(&r, 1, 4); n > 0; n--)
			b.p[tl_range(&r, 0, (b.len < 64 ? b.len : 64) - 1)] = (uint8_t)tl_u64(&r);
		if (wire_master_decode(b.p, b.len, &got, &why) == 0) {
			decoded++;
			accepted(&got);
			wire_master_clear(&got);
		}
		free(b.p);
		wire_master_clear(&m);
	}
	ck_assert_int_gt(decoded, 50);
}
END_TEST

static struct tl_rng limits_rng;
static struct wm_msg m;

static void fresh(enum wm_type type)
{
	wire_master_clear(&m);
	sample_master(&limits_rng, type, &m);
}

static void limits_setup(void)
{
	limits_rng = tl_rng_new(4);
}

static void limits_teardown(void)
{
	wire_master_clear(&m);
}

START_TEST(hello_limits)
{
	struct wm_hello *h = &m.u.hello;

	fresh(WM_HELLO);
	h->agent = (struct cc_id){{0}};
	refused(&m, "hello.agent");
	fresh(WM_HELLO);
	h->port_p2p = 0;
	refused(&m, "hello.port_p2p");
	fresh(WM_HELLO);
	h->n_addrs = 1;
	h->addrs[0] = (struct cc_addr){0};
	refused(&m, "hello.addrs");
}
END_TEST

START_TEST(version_ranges)
{
	struct wm_msg got;
	const char *why;
	struct bytes b;

	fresh(WM_HELLO);
	m.u.hello.version_min = 0;
	refused(&m, "hello.version_min");
	m.u.hello.version_min = 3;
	m.u.hello.version_max = 2;
	refused(&m, "hello.version_min");
	m.u.hello.version_max = 65536;
	refused(&m, "hello.version_min");

	/* Of a hello that we cannot understand, the versions are known all the same. */
	m.u.hello.version_min = WM_VERSION_MAX + 1;
	m.u.hello.version_max = WM_VERSION_MAX + 2;
	m.u.hello.agent = (struct cc_id){{0}};
	m.u.hello.port_p2p = 0;
	b = encode(&m);
	ck_assert_int_eq(wire_master_decode(b.p, b.len, &got, &why), 0);
	ck_assert_uint_eq(got.u.hello.version_min, WM_VERSION_MAX + 1);
	ck_assert_uint_eq(got.u.hello.version_max, WM_VERSION_MAX + 2);
	ck_assert_uint_eq(got.u.hello.n_addrs, 0);
	wire_master_clear(&got);
	free(b.p);

	fresh(WM_HELLO_ACK);
	m.u.hello_ack.version = WM_VERSION_MAX + 1;
	refused_as(&m, CC_ERR_VERSION, "hello_ack.version");
	m.u.hello_ack.version = 0;
	refused_as(&m, CC_ERR_VERSION, "hello_ack.version");

	fresh(WM_REFUSE);
	m.u.refuse.version_min = m.u.refuse.version_max + 1;
	refused(&m, "refuse.version_min");
	fresh(WM_REFUSE);
	m.u.refuse.version_min = 7;
	m.u.refuse.version_max = 9;
	accepted(&m);
}
END_TEST

START_TEST(hello_ack_limits)
{
	struct wm_hello_ack *h = &m.u.hello_ack;

	fresh(WM_HELLO_ACK);
	h->run = (struct cc_id){{0}};
	refused(&m, "hello_ack.run");
	fresh(WM_HELLO_ACK);
	h->run_key = (struct cc_id){{0}};
	refused(&m, "hello_ack.run_key");
	fresh(WM_HELLO_ACK);
	h->heartbeat_ms = 0;
	refused(&m, "hello_ack.heartbeat_ms");
	h->heartbeat_ms = h->timeout_ms = 3600000;
	accepted(&m);
	h->timeout_ms = 3600001;
	refused(&m, "hello_ack.timeout_ms");
	h->heartbeat_ms = 3600001;
	refused(&m, "hello_ack.heartbeat_ms");
	h->heartbeat_ms = h->timeout_ms = 1;
	accepted(&m);
	h->heartbeat_ms = 2;
	refused(&m, "hello_ack.timeout_ms");
	fresh(WM_HELLO_ACK);
	h->segment_max = 63;
	refused(&m, "hello_ack.segment_max");
	h->segment_max = 64;
	accepted(&m);
	h->segment_max = WLK_LEN_MAX;
	accepted(&m);
	h->segment_max = WLK_LEN_MAX + 1;
	refused(&m, "hello_ack.segment_max");
}
END_TEST

START_TEST(peer_limits)
{
	fresh(WM_JOIN);
	m.u.join.peer = (struct cc_id){{0}};
	refused(&m, "join.peer");
	fresh(WM_JOIN);
	m.u.join.pool_size = 0;
	refused(&m, "join.pool_size");
	m.u.join.pool_size = 64;
	accepted(&m);
	m.u.join.pool_size = 65;
	refused(&m, "join.pool_size");
	fresh(WM_LEAVE);
	m.u.leave.kind = 2;
	refused(&m, "leave.kind");
	m.u.leave.kind = UINT32_MAX;
	refused(&m, "leave.kind");
	fresh(WM_LEAVE);
	m.u.leave.peer = (struct cc_id){{0}};
	refused(&m, "leave.peer");
	fresh(WM_TOPO_VOTE);
	m.u.peer.peer = (struct cc_id){{0}};
	refused(&m, "topo_vote.peer");
	m.type = WM_PENDING_VOTE;
	refused(&m, "pending_vote.peer");
	fresh(WM_KICK);
	m.u.kick.peer = (struct cc_id){{0}};
	refused(&m, "kick.peer");
	fresh(WM_KICK);
	m.u.kick.code = 0;
	refused(&m, "kick.code");
	m.u.kick.code = 255;
	accepted(&m);
	m.u.kick.code = 256;
	refused(&m, "kick.code");
}
END_TEST

START_TEST(op_params_limits)
{
	struct wm_op_params *p = &m.u.op_vote.params;

	fresh(WM_OP_VOTE);
	p->count = 0;
	refused(&m, "op_vote.params.count");
	p->count = (uint64_t)1 << 48;
	accepted(&m);
	p->count++;
	refused(&m, "op_vote.params.count");
	fresh(WM_OP_VOTE);
	p->dtype = 11;
	p->op = 4;
	p->quant_algo = 2;
	p->quant_dtype = 11;
	accepted(&m);
	p->dtype = 12;
	refused(&m, "op_vote.params.dtype");
	p->dtype = 0;
	p->op = 5;
	refused(&m, "op_vote.params.op");
	p->op = 0;
	p->quant_algo = 3;
	refused(&m, "op_vote.params.quant_algo");
	p->quant_algo = 64;
	refused(&m, "op_vote.params.quant_algo");
	p->quant_algo = 0;
	p->quant_dtype = 12;
	refused(&m, "op_vote.params.quant_dtype");
}
END_TEST

/* n ids, all different. */
static struct cc_id *many_ids(uint32_t n)
{
	struct cc_id *v = calloc(n, sizeof *v);

	ck_assert_ptr_nonnull(v);
	for (uint32_t i = 0; i < n; i++)
		v[i] = sample_id(&limits_rng);
	return v;
}

START_TEST(op_vote_peers)
{
	struct wm_op_vote *v = &m.u.op_vote;

	fresh(WM_OP_VOTE);
	v->n_peers = 0;
	refused(&m, "op_vote.peers");
	free(v->peers);
	v->peers = many_ids(WM_PEERS_MAX + 1);
	v->n_peers = WM_PEERS_MAX + 1;
	refused(&m, "op_vote.peers");
	v->n_peers = WM_PEERS_MAX;
	accepted(&m);
	v->peers[0] = v->peers[WM_PEERS_MAX - 1];
	refused(&m, "op_vote.peers");
	v->n_peers = 2;
	accepted(&m);
	v->peers[1] = (struct cc_id){{0}};
	refused(&m, "op_vote.peers");
}
END_TEST

START_TEST(report_limits)
{
	struct wm_round_report *p = &m.u.round_report;

	fresh(WM_OP_REPORT);
	m.u.op_report.seq = 0;
	refused(&m, "op_report.seq");
	fresh(WM_ROUND_REPORT);
	free(p->failures);
	p->failures = calloc(WM_FAILURES_MAX + 1, sizeof *p->failures);
	ck_assert_ptr_nonnull(p->failures);
	for (size_t i = 0; i <= WM_FAILURES_MAX; i++)
		p->failures[i].agent = sample_id(&limits_rng);
	p->n_failures = WM_FAILURES_MAX + 1;
	refused(&m, "round_report.failures");
	p->n_failures = WM_FAILURES_MAX;
	accepted(&m);
	p->failures[WM_FAILURES_MAX - 1].agent = (struct cc_id){{0}};
	refused(&m, "round_report.failures.agent");
}
END_TEST

/* A round with one ring of three hosts. */
static struct wm_ring *fresh_ring(void)
{
	struct wm_ring *ring;

	wire_master_clear(&m);
	m.type = WM_ROUND;
	m.u.round.n_rings = 1;
	ring = m.u.round.rings = calloc(1, sizeof *ring);
	ck_assert_ptr_nonnull(ring);
	*ring = (struct wm_ring){
		.hosts = 3,
		.pos = 2,
		.pool_size = 1,
		.next = {.agent = sample_id(&limits_rng), .port = 1, .n_addrs = 1},
		.prev = sample_id(&limits_rng),
		.n_members = 1,
		.members = many_ids(1),
	};
	ring->next.addrs[0] = sample_addr(&limits_rng, 1);
	return ring;
}

START_TEST(ring_limits)
{
	struct wm_ring *ring = fresh_ring();

	accepted(&m);
	ring->hosts = 0;
	refused(&m, "round.rings.hosts");
	ring->hosts = 65536;
	accepted(&m);
	ring->hosts = 65537;
	refused(&m, "round.rings.hosts");
	ring = fresh_ring();
	ring->pos = 3;
	refused(&m, "round.rings.pos");
	ring = fresh_ring();
	ring->pool_size = 0;
	refused(&m, "round.rings.pool_size");
	ring->pool_size = 65;
	refused(&m, "round.rings.pool_size");
	ring = fresh_ring();
	ring->prev = (struct cc_id){{0}};
	refused(&m, "round.rings.prev");
	ring = fresh_ring();
	ring->n_members = 0;
	refused(&m, "round.rings.members");
	ring->n_members = 1;
	ring->members[0] = (struct cc_id){{0}};
	refused(&m, "round.rings.members");
	/* A ring of one host has no neighbours. */
	ring = fresh_ring();
	ring->hosts = 1;
	ring->pos = 0;
	ring->next = (struct wm_endpoint){0};
	ring->prev = (struct cc_id){{0}};
	accepted(&m);
}
END_TEST

START_TEST(endpoint_limits)
{
	struct wm_endpoint *e = &fresh_ring()->next;

	e->agent = (struct cc_id){{0}};
	refused(&m, "round.rings.next.agent");
	e = &fresh_ring()->next;
	e->port = 0;
	refused(&m, "round.rings.next.port");
	e = &fresh_ring()->next;
	e->addrs[0].port = 0;
	refused(&m, "round.rings.next.addrs");
	e = &fresh_ring()->next;
	e->n_addrs = 0;
	refused(&m, "round.rings.next.addrs");
	e->at_master = true;
	accepted(&m);
	e->n_addrs = WM_ADDRS_MAX;
	for (size_t i = 0; i < WM_ADDRS_MAX; i++)
		e->addrs[i] = sample_addr(&limits_rng, 1);
	accepted(&m);
}
END_TEST

START_TEST(round_limits)
{
	struct wm_round *p = &m.u.round;

	wire_master_clear(&m);
	m.type = WM_ROUND;
	p->rings = calloc(WM_RINGS_MAX + 1, sizeof *p->rings);
	ck_assert_ptr_nonnull(p->rings);
	for (uint32_t i = 0; i <= WM_RINGS_MAX; i++)
		p->rings[i] = (struct wm_ring){.group = i,
			.hosts = 1,
			.pool_size = 1,
			.n_members = 1,
			.members = many_ids(1)};
	p->n_rings = WM_RINGS_MAX + 1;
	refused(&m, "round.rings");
	p->n_rings = WM_RINGS_MAX;
	accepted(&m);
	p->rings[WM_RINGS_MAX - 1].group = 0;
	refused(&m, "round.rings");
	p->n_rings = WM_RINGS_MAX + 1; /* so that all is freed */
}
END_TEST

START_TEST(world_limits)
{
	struct wm_world *w = &m.u.world;

	wire_master_clear(&m);
	m.type = WM_WORLD;
	w->own = calloc(WM_RINGS_MAX + 1, sizeof *w->own);
	ck_assert_ptr_nonnull(w->own);
	for (uint32_t i = 0; i <= WM_RINGS_MAX; i++)
		w->own[i].group = i;
	w->n = WM_RINGS_MAX + 1;
	refused(&m, "world.own");
	/* Two bytes each: the smallest elements of all must still fit into the memory bound. */
	w->n = WM_RINGS_MAX;
	accepted(&m);
	w->own[1].group = 0;
	refused(&m, "world.own");
}
END_TEST

START_TEST(op_limits)
{
	fresh(WM_OP_START);
	m.u.op_start.seq = 0;
	refused(&m, "op_start.seq");
	fresh(WM_OP_DONE);
	m.u.op_done.seq = 0;
	refused(&m, "op_done.seq");
	fresh(WM_OP_ABORT);
	m.u.op_abort.seq = 0;
	accepted(&m);
	m.u.op_abort.code = 0;
	refused(&m, "op_abort.code");
	m.u.op_abort.code = 256;
	refused(&m, "op_abort.code");
}
END_TEST

/* Bytes that our encoder would not write. */
static int decode_raw(const void *p, size_t len, struct wm_msg *got, const char **why)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);
	int rc;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, p, len);
	rc = wire_master_decode(copy, len, got, why);
	free(copy);
	return rc;
}

START_TEST(unknown_kinds)
{
	static const uint8_t other[] = {0x82, 0x06, 2, 0x08, 1}; /* field 96 */
	struct wm_msg got;
	const char *why = NULL;

	ck_assert_int_eq(decode_raw("", 0, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, "message.kind: not one that this version knows");
	ck_assert_int_eq(decode_raw(other, sizeof other, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, "message.kind: not one that this version knows");
}
END_TEST

START_TEST(unknown_fields)
{
	/* op_done with seq 5 and fields 9 and 10, in a message with field 99 */
	static const uint8_t msg[] = {
		0xba, 0x02, 8, 0x08, 5, 0x48, 7, 0x52, 2, 'h', 'i', 0x9a, 0x06, 1, 'x'};
	struct wm_msg got;
	const char *why = "";

	ck_assert_msg(decode_raw(msg, sizeof msg, &got, &why) == 0, "%s", why);
	ck_assert_uint_eq(got.type, WM_OP_DONE);
	ck_assert_uint_eq(got.u.op_done.seq, 5);
}
END_TEST

START_TEST(wrong_id_sizes)
{
	for (uint8_t n = 0; n <= 40; n++) {
		uint8_t msg[64] = {0x22, (uint8_t)(2 + n), 0x0a, n};
		struct wm_msg got;
		const char *why = NULL;

		memset(msg + 4, 'i', n);
		ck_assert_int_eq(decode_raw(msg, 4u + n, &got, &why), n == 16 ? 0 : CC_ERR_PROTO);
		if (n != 16)
			ck_assert_str_eq(why, "topo_vote.peer: must be 16 bytes, not all zero");
	}
}
END_TEST

/* kick with an id, a code and this text */
static int decode_kick(const char *text, size_t len, struct wm_msg *got, const char **why)
{
	uint8_t msg[600] = {0xca, 0x02};
	size_t inner = 18 + 2 + 3 + len, at = 2;

	msg[at++] = (uint8_t)(inner | 0x80);
	msg[at++] = (uint8_t)(inner >> 7);
	msg[at++] = 0x0a;
	msg[at++] = 16;
	memset(msg + at, 1, 16);
	at += 16;
	msg[at++] = 0x10;
	msg[at++] = 8;
	msg[at++] = 0x1a;
	msg[at++] = (uint8_t)(len | 0x80);
	msg[at++] = (uint8_t)(len >> 7);
	memcpy(msg + at, text, len);
	return decode_raw(msg, at + len, got, why);
}

START_TEST(texts)
{
	static const char dirty[] = "a\x01\n\x7f\xc2\x9b\xc2\xa0\xff\xc0\x80\xed\xa0\x80\xe2\x82";
	char longest[WM_TEXT_MAX];
	struct wm_msg got;
	const char *why = "";

	ck_assert_msg(decode_kick(dirty, strlen(dirty), &got, &why) == 0, "%s", why);
	ck_assert_str_eq(got.u.kick.text, "a?????\xc2\xa0????????");
	ck_assert_uint_eq(got.u.kick.code, 8);
	memset(longest, 'x', sizeof longest);
	ck_assert_int_eq(decode_kick(longest, WM_TEXT_MAX - 1, &got, &why), 0);
	ck_assert_uint_eq(strlen(got.u.kick.text), WM_TEXT_MAX - 1);
	ck_assert_int_eq(decode_kick(longest, WM_TEXT_MAX, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, "kick.text: must be at most 383 bytes");
}
END_TEST

/* join with an id, a pool and this name */
static int decode_join(const char *name, size_t len, struct wm_msg *got, const char **why)
{
	uint8_t msg[128] = {0x12, (uint8_t)(18 + 2 + 2 + len), 0x0a, 16};
	static const uint8_t pool[] = {0x18, 1};

	memset(msg + 4, 1, 16);
	memcpy(msg + 20, pool, sizeof pool);
	msg[22] = 0x2a;
	msg[23] = (uint8_t)len;
	memcpy(msg + 24, name, len);
	return decode_raw(msg, 24 + len, got, why);
}

START_TEST(names)
{
	static const char *const good[] = {"", "host-1", "h\xc3\xb6st", "\xf4\x8f\xbf\xbf"};
	static const char *const bad[] = {"\x1b[2J", "a\tb", "\x7f", "\xc2\x80", "\xc1\xbf", "\xc3",
		"\xe0\x9f\xbf", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\x80"};
	char longest[WM_NAME_MAX];
	struct wm_msg got;
	const char *why = "";

	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		ck_assert_int_eq(decode_join(good[i], strlen(good[i]), &got, &why), 0);
		ck_assert_str_eq(got.u.join.name, good[i]);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		ck_assert_int_eq(decode_join(bad[i], strlen(bad[i]), &got, &why), CC_ERR_PROTO);
		ck_assert_int_eq(strncmp(why, "join.name: ", 11), 0);
	}
	memset(longest, 'x', sizeof longest);
	ck_assert_int_eq(decode_join(longest, WM_NAME_MAX - 1, &got, &why), 0);
	ck_assert_int_eq(decode_join(longest, WM_NAME_MAX, &got, &why), CC_ERR_PROTO);
}
END_TEST

/* What we send is clean even when what we were given is not. */
START_TEST(encoder_cleans)
{
	struct wm_msg got;
	const char *why = "";
	struct bytes b;

	fresh(WM_HELLO);
	memset(m.u.hello.name, '\xc3', sizeof m.u.hello.name - 1);
	m.u.hello.name[WM_NAME_MAX - 1] = '\0';
	b = encode(&m);
	ck_assert_msg(wire_master_decode(b.p, b.len, &got, &why) == 0, "%s", why);
	ck_assert_uint_eq(strspn(got.u.hello.name, "?"), WM_NAME_MAX - 1);
	free(b.p);
}
END_TEST

START_TEST(encoder_limits)
{
	uint8_t *frame = NULL;
	size_t len = 7;

	wire_master_clear(&m);
	m.type = (enum wm_type)31;
	ck_assert_int_eq(wire_master_encode(&m, &frame, &len), CC_ERR_INVAL);
	/* 64 rings of 1024 members are more than a frame holds. */
	m.type = WM_ROUND;
	m.u.round.n_rings = 64;
	m.u.round.rings = calloc(64, sizeof *m.u.round.rings);
	ck_assert_ptr_nonnull(m.u.round.rings);
	for (uint32_t i = 0; i < 64; i++)
		m.u.round.rings[i] = (struct wm_ring){.group = i,
			.hosts = 1,
			.pool_size = 1,
			.n_members = WM_PEERS_MAX,
			.members = many_ids(WM_PEERS_MAX)};
	ck_assert_int_eq(wire_master_encode(&m, &frame, &len), CC_ERR_LIMIT);
	ck_assert_ptr_null(frame);
	ck_assert_uint_eq(len, 7);
	m.u.round.n_rings = 50;
	accepted(&m);
	m.u.round.n_rings = 64;
}
END_TEST

/* A frame full of the smallest elements is refused before it has cost much memory or time. */
START_TEST(hostile_repetition)
{
	static const uint8_t pattern[][4] = {
		{0x3a, 0, 0x3a, 0}, /* field 7, empty: addresses of a hello */
		{0x1a, 0, 0x1a, 0}, /* 3: rings */
		{0x12, 0, 0x12, 0}, /* 2: failures */
		{0x22, 0, 0x22, 0}, /* 4: peers, worlds */
		{0x08, 1, 0x08, 1}, /* 1: numbers */
		{0x7a, 0, 0x7a, 0}, /* 15: unknown everywhere */
	};
	size_t len = WIRE_FRAME_MAX;
	uint8_t *p = malloc(len);
	struct wm_msg got;
	const char *why;

	ck_assert_ptr_nonnull(p);
	for (size_t k = 0; k < sizeof pattern / sizeof pattern[0]; k++) {
		for (uint32_t field = 1; field <= 41; field++) {
			uint32_t tag = field << 3 | 2, n = (uint32_t)len - 5;
			uint8_t *at = p;

			*at++ = (uint8_t)(tag | 0x80);
			*at++ = (uint8_t)(tag >> 7);
			*at++ = (uint8_t)(n | 0x80);
			*at++ = (uint8_t)(n >> 7 | 0x80);
			*at++ = (uint8_t)(n >> 14);
			for (size_t i = 5; i < len; i++)
				p[i] = pattern[k][(i - 5) % 4];
			why = NULL;
			ck_assert_int_ne(wire_master_decode(p, len, &got, &why), 0);
			ck_assert_ptr_nonnull(why);
		}
	}
	/* The same part again and again, each time merged with what was there. */
	len -= len % 5;
	for (size_t i = 0; i < len; i += 5)
		memcpy(p + i, "\x92\x02\x02\x1a\x00", 5);
	ck_assert_int_ne(wire_master_decode(p, len, &got, &why), 0);
	free(p);
}
END_TEST

START_TEST(too_long)
{
	uint8_t *p = calloc(1, WIRE_FRAME_MAX + 1);
	struct wm_msg got;
	const char *why = NULL;

	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(wire_master_decode(p, WIRE_FRAME_MAX + 1, &got, &why), CC_ERR_LIMIT);
	ck_assert_str_eq(why, "message: must be at most 1 MiB");
	free(p);
}
END_TEST

START_TEST(type_names)
{
	for (size_t i = 0; i < sample_master_n_types; i++)
		for (size_t k = 0; k < i; k++)
			ck_assert_str_ne(wire_master_type_name(sample_master_types[i]),
				wire_master_type_name(sample_master_types[k]));
	ck_assert_str_eq(wire_master_type_name((enum wm_type)0), "unknown");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("master");
	TCase *tc = tcase_create("codec"), *limits = tcase_create("limits");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, round_trip);
	tcase_add_test(tc, truncations);
	tcase_add_test(tc, damaged);
	tcase_add_test(tc, unknown_kinds);
	tcase_add_test(tc, unknown_fields);
	tcase_add_test(tc, wrong_id_sizes);
	tcase_add_test(tc, texts);
	tcase_add_test(tc, names);
	tcase_add_test(tc, hostile_repetition);
	tcase_add_test(tc, too_long);
	tcase_add_test(tc, type_names);
	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(limits, limits_setup, limits_teardown);
	tcase_add_test(limits, hello_limits);
	tcase_add_test(limits, version_ranges);
	tcase_add_test(limits, hello_ack_limits);
	tcase_add_test(limits, peer_limits);
	tcase_add_test(limits, op_params_limits);
	tcase_add_test(limits, op_vote_peers);
	tcase_add_test(limits, report_limits);
	tcase_add_test(limits, ring_limits);
	tcase_add_test(limits, endpoint_limits);
	tcase_add_test(limits, round_limits);
	tcase_add_test(limits, world_limits);
	tcase_add_test(limits, op_limits);
	tcase_add_test(limits, encoder_cleans);
	tcase_add_test(limits, encoder_limits);
	suite_add_tcase(s, limits);
	return tl_run(s);
}
