/* SPDX-License-Identifier: MIT
 *
 * Partial sums whose local input has not been copied yet. They wait for it, but must not delay
 * other segments. The engine is the first host of two, and the test plays the other host.
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

#define PAUSE_MAX_NS UINT64_C(8000000) /* less than BLOCK_MAX_MS of the engine */
#define TRIES        200u

/* The memory in which the result is written. */
enum place { AREA, OPERAND, OUTPUT, PLACES };

struct scene {
	struct net n;
	struct host *h;
	struct op o;
	struct cc_plan plan;
	uint32_t own; /* the first segment of the chunk whose result this host computes */
	int in[STREAMS][2], out[2];
	uint8_t operand[COUNT * 4];
};

static struct scene s;

/* ---- segments from the engine ---- */

/* Receives and checks the next segment that the engine sends. Returns its number. `fill`: the bytes
 * of the partial sums that the test has sent, or NULL. */
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

/* ---- input of the engine ---- */

static void ring(void)
{
	uint64_t one = 1;

	ck_assert_int_eq(write(s.h->bell[0], &one, 8), 8);
}

/* Acts like a shim that has copied this many bytes of the input that is added to partial sums. */
static void copied(uint64_t bytes)
{
	atomic_store(&s.h->slot[0].in_done[1], bytes);
	ck_assert_msg(atomic_exchange(&s.h->slot[0].in_want, 0),
		"the engine does not request the doorbell");
	ring();
}

static void await_asked(void)
{
	uint64_t begin = cc_now_ns();

	while (!atomic_load(&s.h->slot[0].in_want)) {
		ck_assert_msg(cc_now_ns() - begin < WAIT_MS * UINT64_C(1000000),
			"the engine does not request the doorbell");
		sched_yield();
	}
}

/* Sends a partial sum whose input is missing, and waits until the engine waits for this input. */
static void hold(unsigned stream, uint32_t i, uint8_t fill)
{
	atomic_store(&s.h->slot[0].in_want, 0);
	send_segment(s.in[stream][0], &s.plan, s.o.seq, s.own + i, fill);
	await_asked();
}

/* Does the same with two partial sums, sent immediately one after the other. */
static void hold_two(unsigned stream, uint32_t i, const uint8_t *fill)
{
	static uint8_t buf[2 * (WLK_DATA_SIZE + SEGMENT)];
	size_t len = make_segment(buf, &s.plan, s.o.seq, s.own + i, fill[0]);

	len += make_segment(buf + len, &s.plan, s.o.seq, s.own + i + 1, fill[1]);
	atomic_store(&s.h->slot[0].in_want, 0);
	ck_assert_int_eq(send(s.in[stream][0], buf, len, 0), (ssize_t)len);
	await_asked();
}

/* Starts a transfer, and copies the input of all segments that start at this host. The
 * engine sends these segments at once. More input is needed only for partial sums that arrive. */
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

/* Stream i belongs to link 2 + i. */
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

/* Sends segment `from` and all later segments of the chunk over one stream. Checks the results. */
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

/* Waits until the engine has received this many segments. */
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

/* Segments that arrive behind a blocked segment go on. The blocked segment goes on when its input
 * is copied. */
START_TEST(doorbell_continues_blocked_segments)
{
	static const uint8_t fill[] = {1, 2, 3};
	struct cc_span span;
	uint32_t a, b;

	scene_up((enum place)_i);
	span = cc_plan_segment(&s.plan, s.own);
	hold_two(0, 0, fill);
	hold(1, 2, fill[2]);
	await_read(3);
	/* Copies almost all input of the first segment. */
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

/* Copies a little every millisecond, but not all that the engine waits for. Returns the longest
 * time between two copies, counted from `last`. */
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

/* While input is being copied, no segment is spilled, because that would take more memory. */
START_TEST(segment_is_not_spilled_during_a_slow_copy)
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
	/* If the test itself did not run all the time, its result means nothing. */
	if (pause <= PAUSE_MAX_NS)
		ck_assert_uint_eq(p.rx_bytes, WLK_DATA_SIZE + cc_plan_segment(&s.plan, s.own).len);
	scene_down();
}
END_TEST

/* If a process claims to copy but never finishes, it delays others only for a limited time. */
START_TEST(false_progress_blocks_a_stream_only_for_a_while)
{
	static const uint8_t fill[] = {1, 2};
	uint64_t begin_ns = cc_now_ns(), done = 0;
	struct eng_progress p;

	scene_up((enum place)_i);
	hold_two(0, 0, fill);
	do {
		poll(NULL, 0, 1);
		/* With AREA the claimed progress grows and shrinks, else it grows too slowly. */
		atomic_store(&s.h->slot[0].in_done[1], _i == AREA ? ++done % 2 : 4 + ++done / 4);
		ck_assert(eng_get_progress(s.h->e, s.o.seq, &p));
		ck_assert_msg(
			cc_now_ns() - begin_ns < UINT64_C(10000000000), "the stream stays blocked");
	} while (p.rx_bytes < UINT64_C(2) * WLK_DATA_SIZE + cc_plan_segment(&s.plan, s.own).len);
	scene_down();
}
END_TEST

/* All segments of the chunk wait at the same time. */
START_TEST(all_segments_can_wait_for_input)
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

/* After the cancel the memory is free, and the next transfer works. */
START_TEST(cancel_frees_blocked_and_spilled_segments)
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

/* Each segment of one stream waits for its input, one after the other. */
START_TEST(each_segment_waits_for_its_own_input)
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

/* A stream ends while it is blocked. The other stream works as before, and so does a new stream
 * that replaces the old one. */
START_TEST(other_streams_survive_the_end_of_a_blocked_stream)
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
	/* On a loaded machine the segment may be spilled before its link ends. Then the segment is
	 * not lost. */
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
	tcase_add_loop_test(tc, doorbell_continues_blocked_segments, 0, PLACES);
	tcase_add_loop_test(tc, segment_is_not_spilled_during_a_slow_copy, 0, PLACES);
	tcase_add_loop_test(tc, false_progress_blocks_a_stream_only_for_a_while, 0, PLACES);
	tcase_add_loop_test(tc, all_segments_can_wait_for_input, 0, PLACES);
	tcase_add_loop_test(tc, cancel_frees_blocked_and_spilled_segments, 0, 2 * PLACES);
	tcase_add_loop_test(tc, each_segment_waits_for_its_own_input, 0, PLACES);
	tcase_add_loop_test(tc, other_streams_survive_the_end_of_a_blocked_stream, 0, ENDS);
	suite_add_tcase(suite, tc);
	return suite;
}
