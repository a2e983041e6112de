/* SPDX-License-Identifier: MIT
 *
 * Transfers that are divided among several rings: what suites for all routes do not show.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "proto/wire_link.h"
#include "tests/engine/net.h"
#include "tests/engine/suites.h"

static void fill_floats(struct host *h, uint64_t count)
{
	for (uint64_t k = 0; k < count; k++) {
		float f = (float)(int64_t)rng() * 0x1p-63f;

		f *= (float)(1u << rng() % 20);
		memcpy(h->in[0] + 4 * k, &f, 4);
	}
}

/* Adds the operands of a chunk in the order of its ring, beginning at the host after the owner. */
static void add_along(const struct net *n, const struct cc_rings *rings, uint32_t chunk,
	struct cc_span span, float *ret)
{
	const uint8_t *order = rings->order[chunk / n->hosts];

	for (uint64_t k = span.off / 4; k < (span.off + span.len) / 4; k++) {
		for (uint32_t i = 0; i < n->hosts; i++) {
			uint32_t at = (2 * n->hosts - chunk % n->hosts + i) % n->hosts;
			float v;

			memcpy(&v, n->h[order[at]].in[0] + 4 * k, 4);
			ret[k] = i == 0 ? v : ret[k] + v;
		}
	}
}

/* Rounding makes the sum of floats depend on the order. All hosts have the bits of the order of the
 * ring. Hosts with one member have the operands themselves, so no other sum comes before. */
START_TEST(floats_are_added_in_the_order_of_their_ring)
{
	const uint32_t hosts = 3 + (uint32_t)_i % 4;
	struct net n;

	rng_state = (uint64_t)_i + 1;
	net_up_mesh(&n, hosts, 1 + (uint32_t)_i % 3);
	for (uint32_t h = 0; h < hosts; h++)
		n.h[h].n_members = 1;
	for (uint64_t seq = 1; seq <= 4; seq++) {
		struct cc_rings rings = random_rings(hosts);
		struct op o = {.seq = seq,
			.count = seq * MANY(30011),
			.op = KRN_SUM,
			.floats = true,
			.route = CC_ALGO_RINGS,
			.rings = &rings,
			.segment_max = 16384};
		struct cc_plan plan = plan_op(&o, hosts);
		float *want = calloc(o.count, sizeof *want);
		struct eng_event ev;

		prepare(&n, &o);
		for (uint32_t h = 0; h < hosts; h++)
			fill_floats(&n.h[h], o.count);
		for (uint32_t c = 0; c < plan.n_chunks; c++)
			add_along(&n, &rings, c, cc_plan_chunk(&plan, c), want);
		for (uint32_t h = 0; h < hosts; h++)
			start_one(&n, &o, h, hosts);
		/* The engines have their own copies. */
		memset(&rings, 0xff, sizeof rings);
		for (uint32_t h = 0; h < hosts; h++) {
			ck_assert(wait_event(&n.h[h], &ev, WAIT_MS));
			ck_assert_int_eq(ev.type, ENG_XFER_DONE);
			ck_assert_msg(memcmp(n.h[h].area, want, o.count * 4) == 0,
				"host %u of %u has other bits", h, hosts);
			eng_release(n.h[h].e, seq);
		}
		free(want);
		cleanup(&n);
	}
	net_down(&n);
}
END_TEST

/* ---- one host ---- */

#define COUNT (1u << 20)

/* Two rings of two hosts, so both rings use the same link. The test plays host 1. */
struct scene {
	struct net n;
	struct cc_rings rings;
	struct op o;
	struct cc_plan plan;
	int out[2];
};

static void scene_up(struct scene *s, bool staged)
{
	*s = (struct scene){
		.rings = {.n = 2, .hosts = 2, .share = {2, 1}, .order = {{0, 1}, {1, 0}}},
		.o = {.seq = 1,
			.count = COUNT,
			.op = KRN_SUM,
			.staged = staged,
			.route = CC_ALGO_RINGS,
			.rings = &s->rings,
			.segment_max = CC_PLAN_SEGMENT_MAX}};
	ck_assert_int_eq(cc_rings_complete(&s->rings), 0);
	net_up(&s->n, 1, 1);
	tcp_pair(s->out);
	ck_assert_int_eq(eng_add_tx_stream(s->n.h[0].e, 1, s->out[0], ENG_NO_SET), 0);
	start_alone(&s->n, &s->o, &s->plan);
	ck_assert_uint_gt(s->plan.segs_per_chunk, 2);
}

static void scene_down(struct scene *s)
{
	cancel_alone(&s->n, 1);
	net_down(&s->n);
	close(s->out[1]);
}

/* Receives a segment of the first phase. Returns its number. */
static uint32_t next_segment(struct scene *s)
{
	static uint8_t data[CC_PLAN_SEGMENT_MAX];
	uint8_t hdr[WLK_DATA_SIZE];
	struct cc_span span;
	struct wlk_data d;
	const char *why;

	receive_all(s->out[1], hdr, sizeof hdr);
	ck_assert_int_eq(wlk_data_get(hdr, &d, &why), 0);
	ck_assert_int_eq(d.phase, WLK_REDUCE);
	span = cc_plan_segment(&s->plan, d.seg);
	ck_assert_uint_eq(d.offset, span.off);
	ck_assert_uint_eq(d.len, span.len);
	receive_all(s->out[1], data, d.len);
	ck_assert_mem_eq(data, s->n.h[0].in[0] + span.off, span.len);
	return d.seg;
}

/* The chunks that start at host 0: chunk 0 of ring 0, and chunk 1 of ring 1, because host 0 is the
 * second host of this ring. */
static uint32_t own_chunk(uint32_t ring)
{
	return ring == 0 ? 0 : 3;
}

START_TEST(rings_that_share_a_link_send_in_turn)
{
	struct scene s;
	uint32_t segs, next[2] = {0, 0}, first = 0;

	scene_up(&s, false);
	segs = s.plan.segs_per_chunk;
	for (uint32_t i = 0; i < 2 * segs; i++) {
		uint32_t seg = next_segment(&s), ring = seg / segs == own_chunk(1);

		first = i == 0 ? ring : first;
		ck_assert_uint_eq(ring, (first + i) % 2);
		ck_assert_uint_eq(seg, own_chunk(ring) * segs + next[ring]++);
	}
	scene_down(&s);
}
END_TEST

/* A ring whose input has not been copied yet does not hold up the other ring. */
START_TEST(ring_without_input_loses_its_turn)
{
	const uint32_t early = (uint32_t)_i;
	struct shm_slot *slot;
	struct scene s;
	uint64_t one = 1;
	uint32_t segs;

	scene_up(&s, true);
	segs = s.plan.segs_per_chunk;
	slot = &s.n.h[0].slot[0];
	/* The process first copies [0, half) and the rest, which is what the plan for one ring says
	 * of the host at position 0. Chunk 0 is at the beginning, and ring 1 has the last third. */
	atomic_store(&slot->in_done[early],
		early == 0 ? cc_plan_chunk(&s.plan, own_chunk(0)).len : s.o.count * 2);
	if (atomic_exchange(&slot->in_want, 0))
		ck_assert_int_eq(write(s.n.h[0].bell[0], &one, 8), 8);
	for (uint32_t i = 0; i < segs; i++)
		ck_assert_uint_eq(next_segment(&s), own_chunk(early) * segs + i);
	atomic_store(&slot->in_done[0], s.o.count * 2);
	atomic_store(&slot->in_done[1], s.o.count * 2);
	ck_assert_int_eq(write(s.n.h[0].bell[0], &one, 8), 8);
	for (uint32_t i = 0; i < segs; i++)
		ck_assert_uint_eq(next_segment(&s), own_chunk(1 - early) * segs + i);
	scene_down(&s);
}
END_TEST

/* Receives all that comes within 200 ms. Returns the bytes. */
static size_t receive_some(int fd)
{
	static uint8_t buf[1 << 16];
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t sum = 0;

	while (poll(&p, 1, 200) == 1) {
		ssize_t n = recv(fd, buf, sizeof buf, 0);

		ck_assert_int_gt(n, 0);
		sum += (size_t)n;
	}
	return sum;
}

/* Two rings of three hosts, in opposite directions, and an operation over both. */
static struct op opposite_rings(struct cc_rings *rings, size_t segment_max)
{
	*rings = (struct cc_rings){
		.n = 2, .hosts = 3, .share = {1, 1}, .order = {{0, 1, 2}, {0, 2, 1}}};
	ck_assert_int_eq(cc_rings_complete(rings), 0);
	return (struct op){.seq = 1,
		.count = COUNT,
		.op = KRN_SUM,
		.route = CC_ALGO_RINGS,
		.rings = rings,
		.segment_max = segment_max};
}

/* The next host of ring 1 takes no data. Ring 0 sends the chunk that starts here, and then no more
 * than the lead, although it has more. It goes on when ring 1 goes on. */
START_TEST(ring_waits_for_a_slower_ring)
{
	struct cc_rings rings;
	struct op o = opposite_rings(&rings, 16384);
	int to_1[2], to_2[2], from_2[2], small = 4096;
	struct eng_peer peers[3];
	struct cc_plan plan;
	size_t chunk, got;
	struct net n;

	plan = plan_op(&o, 3);
	chunk = plan.segs_per_chunk * (WLK_DATA_SIZE + cc_plan_segment(&plan, 0).len);
	net_up(&n, 1, 1);
	n.h[0].n_members = 1;
	prepare(&n, &o);
	n.mesh = true;
	n.hosts = 3;
	fill_peers(&n, 0, peers);
	tcp_pair(to_1);
	tcp_pair(to_2);
	tcp_pair(from_2);
	setsockopt(to_2[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	ck_assert_int_eq(eng_add_tx_stream(n.h[0].e, peers[1].link, to_1[0], ENG_NO_SET), 0);
	ck_assert_int_eq(eng_add_tx_stream(n.h[0].e, peers[2].link, to_2[0], ENG_NO_SET), 0);
	ck_assert_int_eq(eng_add_rx_stream(n.h[0].e, 300, &peers[2].agent, from_2[1]), 0);
	start_one(&n, &o, 0, 3);
	n.hosts = 1;
	n.mesh = false;
	got = receive_some(to_1[1]);
	ck_assert_uint_le(got, chunk + 1000);
	/* Ring 0 gets the partial sums of the chunk before its own. */
	for (uint32_t i = 0; i < plan.segs_per_chunk; i++)
		send_segment(from_2[0], &plan, 1, plan.segs_per_chunk + i, 0);
	got += receive_some(to_1[1]);
	ck_assert_uint_lt(got, chunk * 3 / 2);
	ck_assert_uint_gt(receive_some(to_2[1]), 0);
	got += receive_some(to_1[1]);
	ck_assert_uint_gt(got, chunk * 19 / 10);
	cancel_alone(&n, 1);
	net_down(&n);
	close(to_1[1]);
	close(to_2[1]);
	close(from_2[0]);
}
END_TEST

/* Host 0 receives chunks of ring 0 from host 2, and chunks of ring 1 from host 1. A segment that
 * comes from the host before it on the other ring breaks its link. */
START_TEST(segment_of_another_ring_breaks_its_link)
{
	static const uint32_t owned[] = {2, 2 + 3}; /* chunks that host 0 owns */
	struct cc_rings rings;
	struct op o = opposite_rings(&rings, CC_PLAN_SEGMENT_MAX);
	struct eng_peer peers[3];
	struct cc_plan plan;
	struct eng_event ev;
	struct net n;
	int pair[2];

	plan = plan_op(&o, 3);
	net_up_mesh(&n, 3, 1);
	n.h[0].n_members = n.h[1].n_members = n.h[2].n_members = 1;
	prepare(&n, &o);
	start_one(&n, &o, 0, 3);
	fill_peers(&n, 0, peers);
	tcp_pair(pair);
	ck_assert_int_eq(
		eng_add_rx_stream(n.h[0].e, 300, &peers[_i == 0 ? 1 : 2].agent, pair[1]), 0);
	send_segment(pair[0], &plan, 1, owned[_i] * plan.segs_per_chunk, 0);
	ck_assert(wait_event(&n.h[0], &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, ENG_LINK_BROKEN);
	ck_assert_uint_eq(ev.link, 300);
	ck_assert_msg(strstr(ev.text, "its sender does not send here") != NULL, "%s", ev.text);
	close(pair[0]);
	start_one(&n, &o, 1, 3);
	start_one(&n, &o, 2, 3);
	for (uint32_t h = 0; h < 3; h++) {
		ck_assert(wait_event(&n.h[h], &ev, WAIT_MS));
		ck_assert_int_eq(ev.type, ENG_XFER_DONE);
		eng_release(n.h[h].e, 1);
	}
	cleanup(&n);
	net_down(&n);
}
END_TEST

static int start_with(struct net *n, enum cc_algo route, const struct cc_rings *rings,
	const struct cc_shares *shares)
{
	static uint32_t in[1000], area[1000];
	static _Atomic uint8_t flags[64];
	static struct shm_slot slot;
	struct eng_member member = {.in = (uint8_t *)in, .slot = &slot};
	struct eng_peer peers[3];
	struct eng_xfer_spec s = {.seq = 1,
		.dtype = KRN_U32,
		.segment_max = CC_PLAN_SEGMENT_MAX,
		.route = route,
		.rings = rings,
		.peers = peers,
		.area = (uint8_t *)area,
		.flags = flags,
		.n_members = 1,
		.members = &member};

	fill_peers(n, 0, peers);
	ck_assert_int_eq(cc_plan_init_shares(&s.plan, 1000, 4, 3, s.segment_max, shares), 0);
	return eng_start(n->h[0].e, &s);
}

START_TEST(rings_and_plan_must_fit_each_other)
{
	const struct cc_shares one = {{0}}, two = {{1, 1}}, three = {{1, 1, 1}};
	struct cc_rings rings, more;
	struct net n;

	rng_state = 1;
	rings = random_rings(3);
	more = random_rings(4);
	rings.n = more.n = 2;
	net_up_mesh(&n, 3, 1);
	ck_assert_int_eq(start_with(&n, CC_ALGO_RINGS, NULL, &one), CC_ERR_INVAL);
	ck_assert_int_eq(start_with(&n, CC_ALGO_RINGS, &rings, &one), CC_ERR_INVAL);
	ck_assert_int_eq(start_with(&n, CC_ALGO_RINGS, &rings, &three), CC_ERR_INVAL);
	ck_assert_int_eq(start_with(&n, CC_ALGO_RINGS, &more, &two), CC_ERR_INVAL);
	ck_assert_int_eq(start_with(&n, CC_ALGO_RING, NULL, &two), CC_ERR_INVAL);
	ck_assert_int_eq(start_with(&n, CC_ALGO_TREE, NULL, &two), CC_ERR_INVAL);
	net_down(&n);
}
END_TEST

Suite *rings_suite(void)
{
	Suite *s = suite_create("rings");
	TCase *tc = tcase_create("rings");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, floats_are_added_in_the_order_of_their_ring, 0, 8);
	tcase_add_test(tc, rings_that_share_a_link_send_in_turn);
	tcase_add_loop_test(tc, ring_without_input_loses_its_turn, 0, 2);
	tcase_add_test(tc, ring_waits_for_a_slower_ring);
	tcase_add_loop_test(tc, segment_of_another_ring_breaks_its_link, 0, 2);
	tcase_add_test(tc, rings_and_plan_must_fit_each_other);
	suite_add_tcase(s, tc);
	return s;
}
