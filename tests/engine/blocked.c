/* SPDX-License-Identifier: MIT
 *
 * Partial sums whose local input is not there yet: they wait for it, and nothing else waits for
 * them. The engine is the first host of two, and the test is the other one.
 */
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_sys.h"
#include "proto/wire_link.h"
#include "tests/engine/net.h"
#include "tests/engine/suites.h"

#define STREAMS 2u
#define COUNT   UINT64_C(100000)
#define SEGMENT 16384u

#define PAUSE_MAX_NS UINT64_C(8000000) /* less than what the engine takes for a standstill */
#define TRIES        200u

/* Where the result stands. */
enum place { AREA, OPERAND, OUTPUT, PLACES };

struct scene {
	struct net n;
	struct host *h;
	struct op o;
	struct cc_plan plan;
	uint32_t own; /* the first segment of what this host computes */
	int in[STREAMS][2], out[2];
	uint8_t operand[COUNT * 4];
};

static struct scene s;

/* ---- what the engine sends ---- */

/* The next one that is sent: its number; every byte of what was sent here for it was `fill[]`. */
static uint32_t expect(enum wlk_phase phase, const uint8_t *fill)
{
	uint8_t hdr[WLK_DATA_SIZE], data[SEGMENT];
	struct wlk_data d;
	const char *why;

	receive_all(s.out[1], hdr, sizeof hdr);
	ck_assert_int_eq(wlk_data_get(hdr, &d, &why), 0);
	ck_assert_int_eq(d.phase, phase);
	ck_assert_uint_eq(d.seq, s.o.seq);
	ck_assert_uint_le(d.len, sizeof data);
	receive_all(s.out[1], data, d.len);
	for (uint32_t k = 0; k < d.len / 4; k++) {
		uint32_t got, want;

		memcpy(&got, data + (size_t)4 * k, 4);
		memcpy(&want, s.operand + d.offset + (size_t)4 * k, 4);
		want += fill ? 0x01010101u * fill[d.seg - s.own] : 0;
		ck_assert_msg(
			got == want, "segment %u, element %u: %#x, not %#x", d.seg, k, got, want);
	}
	return d.seg;
}

/* ---- its input ---- */

static void ring(void)
{
	uint64_t one = 1;

	ck_assert_int_eq(write(s.h->bell[0], &one, 8), 8);
}

/* A shim has copied so much of what is added to what comes in. */
static void copied(uint64_t bytes)
{
	atomic_store(&s.h->slot[0].in_done[1], bytes);
	ck_assert_msg(atomic_exchange(&s.h->slot[0].in_want, 0), "nobody asks for the bell");
	ring();
}

static void await_asked(void)
{
	uint64_t begin = cc_now_ns();

	while (!atomic_load(&s.h->slot[0].in_want)) {
		ck_assert_msg(cc_now_ns() - begin < WAIT_MS * UINT64_C(1000000),
			"nobody asks for the bell");
		sched_yield();
	}
}

/* Sends a partial sum whose input is not there, until somebody waits for that. */
static void hold(unsigned stream, uint32_t i, uint8_t fill)
{
	atomic_store(&s.h->slot[0].in_want, 0);
	send_segment(s.in[stream][0], &s.plan, s.o.seq, s.own + i, fill);
	await_asked();
}

/* Likewise, with another one right behind it. */
static void hold_two(unsigned stream, uint32_t i, const uint8_t *fill)
{
	static uint8_t buf[2 * (WLK_DATA_SIZE + SEGMENT)];
	size_t len = make_segment(buf, &s.plan, s.o.seq, s.own + i, fill[0]);

	len += make_segment(buf + len, &s.plan, s.o.seq, s.own + i + 1, fill[1]);
	atomic_store(&s.h->slot[0].in_want, 0);
	ck_assert_int_eq(send(s.in[stream][0], buf, len, 0), (ssize_t)len);
	await_asked();
}

/* All that this host has to send first is there, and on its way: nothing but what comes in needs
 * more. */
static void begin(uint64_t seq, enum place place)
{
	s.o = (struct op){.seq = seq,
		.count = COUNT,
		.op = KRN_SUM,
		.staged = true,
		.replaces = place == OPERAND,
		.direct = place == OUTPUT,
		.segment_max = SEGMENT};
	start_alone(&s.n, &s.o, &s.plan);
	memcpy(s.operand, s.h->in[0], sizeof s.operand);
	s.own = s.plan.segs_per_chunk;
	atomic_store(&s.h->slot[0].in_done[0], cc_plan_chunk(&s.plan, 0).len);
	ring();
	for (uint32_t i = 0; i < s.own; i++)
		expect(WLK_REDUCE, NULL);
}

/* Stream i has the link 2 + i. */
static void scene_up(enum place place)
{
	rng_state = 5;
	net_up(&s.n, 1, 1);
	s.h = &s.n.h[0];
	tcp_pair(s.out);
	ck_assert_int_eq(eng_add_tx_stream(s.h->e, 1, s.out[0], ENG_NO_SET), 0);
	for (unsigned i = 0; i < STREAMS; i++) {
		tcp_pair(s.in[i]);
		ck_assert_int_eq(eng_add_rx_stream(s.h->e, 2 + i, NULL, s.in[i][1]), 0);
	}
	begin(1, place);
}

static void scene_down(void)
{
	cancel_alone(&s.n, s.o.seq);
	net_down(&s.n);
	for (unsigned i = 0; i < STREAMS; i++)
		close(s.in[i][0]);
	close(s.out[1]);
}

/* All of the chunk but the first segments comes over one stream. */
static void finish(unsigned stream, uint32_t from)
{
	uint8_t fill[32];

	memset(fill, 9, sizeof fill);
	ck_assert_uint_le(s.own, sizeof fill);
	for (uint32_t i = from; i < s.own; i++)
		send_segment(s.in[stream][0], &s.plan, s.o.seq, s.own + i, 9);
	for (uint32_t i = from; i < s.own; i++)
		ck_assert_uint_eq(expect(WLK_GATHER, fill), s.own + i);
	for (uint32_t i = from; i < s.own; i++) {
		uint64_t start = cc_now_ns();

		while (!atomic_load(&s.h->flags[s.own + i]))
			ck_assert_msg(cc_now_ns() - start < WAIT_MS * UINT64_C(1000000),
				"segment %u is not flagged", s.own + i);
	}
}

/* ---- the tests ---- */

/* The first segments that were sent here have been read. */
static void await_read(uint32_t segments)
{
	uint64_t start = cc_now_ns(), len = 0;
	struct eng_progress p;

	for (uint32_t i = 0; i < segments; i++)
		len += WLK_DATA_SIZE + cc_plan_segment(&s.plan, s.own + i).len;
	do {
		ck_assert(eng_get_progress(s.h->e, s.o.seq, &p));
		ck_assert_msg(cc_now_ns() - start < WAIT_MS * UINT64_C(1000000),
			"%" PRIu64 " bytes have been read, not %" PRIu64, p.rx_bytes, len);
		sched_yield();
	} while (p.rx_bytes != len);
}

/* What comes behind it on the stream goes on, and each goes on as soon as its input is there. */
START_TEST(the_bell_lets_go)
{
	static const uint8_t fill[] = {1, 2, 3};
	struct cc_span span;
	uint32_t a, b;

	scene_up((enum place)_i);
	span = cc_plan_segment(&s.plan, s.own);
	hold_two(0, 0, fill);
	hold(1, 2, fill[2]);
	await_read(3);
	/* Not all of it. */
	copied(span.len - 4);
	await_asked();
	copied(span.len);
	ck_assert_uint_eq(expect(WLK_GATHER, fill), s.own);
	await_asked();
	copied(cc_plan_chunk(&s.plan, 1).len);
	a = expect(WLK_GATHER, fill);
	b = expect(WLK_GATHER, fill);
	ck_assert_uint_eq(a + b, 2 * s.own + 3);
	finish(0, 3);
	scene_down();
}
END_TEST

/* Copies a little every millisecond, but not what is waited for. Returns its longest pause, since
 * `last` on. */
static uint64_t copy_slowly(uint64_t last)
{
	uint64_t longest = 0;

	for (uint64_t done = 4; done <= 24; done++) {
		uint64_t now;

		poll(NULL, 0, 1);
		atomic_store(&s.h->slot[0].in_done[1], done);
		now = cc_now_ns();
		longest = now - last > longest ? now - last : longest;
		last = now;
	}
	return longest;
}

/* While something is copied nothing is spilled: that would be more memory. */
START_TEST(a_slow_one_is_waited_for)
{
	static const uint8_t fill[] = {1, 2};
	struct eng_progress p;
	uint64_t pause = UINT64_MAX;

	scene_up((enum place)_i);
	for (uint64_t seq = 2; pause > PAUSE_MAX_NS && seq < TRIES; seq++) {
		uint64_t last = cc_now_ns();

		hold_two(0, 0, fill);
		pause = copy_slowly(last);
		last = cc_now_ns();
		ck_assert(eng_get_progress(s.h->e, s.o.seq, &p));
		last = cc_now_ns() - last;
		pause = last > pause ? last : pause;
		cancel_alone(&s.n, s.o.seq);
		begin(seq, (enum place)_i);
	}
	/* A machine on which the test itself is not let run says nothing. */
	if (pause <= PAUSE_MAX_NS)
		ck_assert_uint_eq(p.rx_bytes, WLK_DATA_SIZE + cc_plan_segment(&s.plan, s.own).len);
	scene_down();
}
END_TEST

/* Who says that he copies, and never gets there, does not hold others up for ever. */
START_TEST(not_even_a_liar_holds_it_for_ever)
{
	static const uint8_t fill[] = {1, 2};
	uint64_t begin_ns = cc_now_ns(), done = 0;
	struct eng_progress p;

	scene_up((enum place)_i);
	hold_two(0, 0, fill);
	do {
		poll(NULL, 0, 1);
		/* Now more, now less; and ever more, but not enough of it. */
		atomic_store(&s.h->slot[0].in_done[1], _i == AREA ? ++done % 2 : 4 + ++done / 4);
		ck_assert(eng_get_progress(s.h->e, s.o.seq, &p));
		ck_assert_msg(cc_now_ns() - begin_ns < UINT64_C(10000000000), "it is blocked");
	} while (p.rx_bytes < UINT64_C(2) * WLK_DATA_SIZE + cc_plan_segment(&s.plan, s.own).len);
	scene_down();
}
END_TEST

/* However many they are. */
START_TEST(all_may_wait)
{
	uint8_t fill[32];
	bool seen[32] = {0};

	scene_up((enum place)_i);
	ck_assert_uint_lt(s.own, sizeof fill);
	for (uint32_t i = 0; i < s.own; i++) {
		fill[i] = (uint8_t)(i + 1);
		hold(i % STREAMS, i, fill[i]);
	}
	await_read(s.own);
	copied(cc_plan_chunk(&s.plan, 1).len);
	for (uint32_t i = 0; i < s.own; i++)
		seen[expect(WLK_GATHER, fill) - s.own] = true;
	for (uint32_t i = 0; i < s.own; i++)
		ck_assert_msg(seen[i], "segment %u", i);
	scene_down();
}
END_TEST

/* Its memory is free then, and the next one starts anew. */
START_TEST(a_cancel_lets_go)
{
	static const uint8_t fill[] = {1, 2};

	scene_up((enum place)(_i / 2));
	hold_two(0, 0, fill);
	hold(1, 2, 3);
	if (_i % 2)
		await_read(3);
	cancel_alone(&s.n, 1);
	begin(2, (enum place)(_i / 2));
	atomic_store(&s.h->slot[0].in_done[1], cc_plan_chunk(&s.plan, 1).len);
	finish(0, 0);
	cancel_alone(&s.n, 2);
	begin(3, (enum place)(_i / 2));
	atomic_store(&s.h->slot[0].in_done[1], cc_plan_chunk(&s.plan, 1).len);
	finish(1, 0);
	scene_down();
}
END_TEST

/* Again and again, on one stream, for each segment. */
START_TEST(each_segment_may_wait)
{
	uint8_t fill[32];

	memset(fill, 4, sizeof fill);
	scene_up((enum place)_i);
	for (uint32_t i = 0; i < s.own; i++) {
		struct cc_span span = cc_plan_segment(&s.plan, s.own + i);

		hold(0, i, 4);
		copied(span.off + span.len - cc_plan_chunk(&s.plan, 1).off);
		ck_assert_uint_eq(expect(WLK_GATHER, fill), s.own + i);
	}
	scene_down();
}
END_TEST

enum end { RESET, DROPPED, ENDS };

/* A stream ends while it is blocked: the others are as before, and so is one that replaces it. */
START_TEST(a_link_that_ends)
{
	static const struct linger at_once = {.l_onoff = 1};
	static const uint8_t fill[] = {1, 2, 3};
	struct eng_event ev;
	uint32_t seg;

	scene_up(AREA);
	hold(0, 0, fill[0]);
	hold(1, 2, fill[2]);
	if (_i == RESET) {
		setsockopt(s.in[0][0], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
		close(s.in[0][0]);
		ck_assert(wait_event(s.h, &ev, WAIT_MS));
		ck_assert_int_eq(ev.type, ENG_LINK_BROKEN);
		ck_assert_uint_eq(ev.link, 2);
	} else {
		eng_drop_link(s.h->e, 2);
		close(s.in[0][0]);
	}
	tcp_pair(s.in[0]);
	ck_assert_int_eq(eng_add_rx_stream(s.h->e, 9, NULL, s.in[0][1]), 0);
	copied(cc_plan_chunk(&s.plan, 1).len);
	seg = expect(WLK_GATHER, fill);
	/* On a loaded machine its sum was spilled before its link ended, and is not lost. */
	if (seg == s.own)
		seg = expect(WLK_GATHER, fill);
	ck_assert_uint_eq(seg, s.own + 2);
	finish(0, 3);
	scene_down();
}
END_TEST

Suite *blocked_suite(void)
{
	Suite *suite = suite_create("blocked");
	TCase *tc = tcase_create("blocked");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, the_bell_lets_go, 0, PLACES);
	tcase_add_loop_test(tc, a_slow_one_is_waited_for, 0, PLACES);
	tcase_add_loop_test(tc, not_even_a_liar_holds_it_for_ever, 0, PLACES);
	tcase_add_loop_test(tc, all_may_wait, 0, PLACES);
	tcase_add_loop_test(tc, a_cancel_lets_go, 0, 2 * PLACES);
	tcase_add_loop_test(tc, each_segment_may_wait, 0, PLACES);
	tcase_add_loop_test(tc, a_link_that_ends, 0, ENDS);
	suite_add_tcase(suite, tc);
	return suite;
}
