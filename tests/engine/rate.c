/* SPDX-License-Identifier: MIT
 *
 * What a link carries: the estimate for series of counts, and the report of an engine whose streams
 * are limited to a rate.
 */
#include "pcclagentd/engine/rate.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_sys.h"
#include "proto/wire_link.h"
#include "tests/engine/net.h"
#include "tests/engine/suites.h"

#define LOOK_US   UINT64_C(200000)
#define LOOKS_MAX 1000u
#define STREAMS   3u
#define MBIT      UINT64_C(1000000)

static struct eng_rate link_rate;
static struct eng_rate_counts before[STREAMS], now[STREAMS];

static void setup(void)
{
	memset(&link_rate, 0, sizeof link_rate);
	memset(before, 0, sizeof before);
	memset(now, 0, sizeof now);
	for (unsigned i = 0; i < STREAMS; i++)
		before[i].known = now[i].known = true;
}

/* In the present interval, stream i was busy for so long, and had this rate then. */
static void stream(unsigned i, uint64_t busy_us, uint64_t rate)
{
	now[i].busy_us += busy_us;
	now[i].acked += rate / 8 * busy_us / 1000000;
	now[i].waits = busy_us > 0;
}

static uint64_t look(uint64_t us, bool counts)
{
	for (unsigned i = 0; i < STREAMS; i++) {
		eng_rate_add(&link_rate, &before[i], &now[i]);
		before[i] = now[i];
		now[i].waits = false;
	}
	return eng_rate_end_interval(&link_rate, us, counts);
}

/* Repeats intervals until a rate is reported, at most LOOKS_MAX times. */
#define REPEAT(looks, ret, interval)                                                               \
	for ((looks) = 0, (ret) = 0; (looks) < LOOKS_MAX && (ret) == 0; (looks)++) {               \
		interval;                                                                          \
		(ret) = look(LOOK_US, true);                                                       \
	}

static void expect_rate(uint64_t got, uint64_t want)
{
	ck_assert_msg(got >= want * 99 / 100 && got <= want * 101 / 100, "%llu instead of %llu",
		(unsigned long long)got, (unsigned long long)want);
}

START_TEST(rates_of_busy_streams_add_up)
{
	unsigned looks;
	uint64_t rate;

	REPEAT(looks, rate, stream(0, LOOK_US, 100 * MBIT); stream(1, LOOK_US, 50 * MBIT);
		stream(2, LOOK_US, 150 * MBIT))
	expect_rate(rate, 300 * MBIT);
	ck_assert_uint_eq(looks, ENG_RATE_PAUSE_US / LOOK_US);
	REPEAT(looks, rate, stream(0, LOOK_US, 100 * MBIT))
	expect_rate(rate, 100 * MBIT); /* without anything of the report before */
	ck_assert_uint_eq(looks, ENG_RATE_PAUSE_US / LOOK_US);
}
END_TEST

/* The last stream of an operation, or one that gets little, is busy at other times. */
START_TEST(streams_that_are_seldom_busy_add_only_their_bytes)
{
	unsigned looks;
	uint64_t rate;

	REPEAT(looks, rate, stream(0, LOOK_US, 90 * MBIT); stream(1, LOOK_US / 10, 100 * MBIT))
	expect_rate(rate, 100 * MBIT);
}
END_TEST

/* One stream set rests while another one sends. */
START_TEST(sets_that_take_turns_do_not_add_up)
{
	unsigned looks;
	uint64_t rate;

	REPEAT(looks, rate, stream(looks / 5 % STREAMS, LOOK_US, 100 * MBIT))
	expect_rate(rate, 100 * MBIT);
}
END_TEST

/* Between operations the link is idle. */
START_TEST(idle_time_is_left_out)
{
	unsigned looks;
	uint64_t rate;

	REPEAT(looks, rate, if (looks % 3 == 0) stream(0, LOOK_US * 3 / 4, 100 * MBIT))
	expect_rate(rate, 100 * MBIT);
	/* Ten such intervals, each of which is followed by two idle ones. */
	ck_assert_uint_eq(looks, 9 * 3 + 1);
}
END_TEST

START_TEST(streams_that_are_busy_for_less_than_half_of_the_time_show_nothing)
{
	unsigned looks;
	uint64_t rate;

	REPEAT(looks, rate,
		for (unsigned i = 0; i < STREAMS; i++) stream(i, LOOK_US * 49 / 100, 100 * MBIT))
	ck_assert_uint_eq(rate, 0);
}
END_TEST

/* On a path with a long round trip, a stream that is given a segment now and then is busy all the
 * time. */
START_TEST(streams_without_waiting_bytes_show_nothing)
{
	unsigned looks;
	uint64_t rate;

	REPEAT(looks, rate, stream(0, LOOK_US, MBIT); now[0].waits = false)
	ck_assert_uint_eq(rate, 0);
}
END_TEST

START_TEST(receiver_that_takes_no_data_shows_nothing)
{
	unsigned looks;
	uint64_t rate;

	REPEAT(looks, rate, stream(0, LOOK_US, MBIT); now[0].receiver_us += LOOK_US / 7)
	ck_assert_uint_eq(rate, 0);
	setup();
	REPEAT(looks, rate, stream(0, LOOK_US, MBIT); now[0].receiver_us += LOOK_US / 10)
	expect_rate(rate, MBIT);
}
END_TEST

START_TEST(kernel_without_the_counts_shows_nothing)
{
	unsigned looks;
	uint64_t rate;

	REPEAT(looks, rate, now[0].known = false; stream(0, LOOK_US, MBIT))
	ck_assert_uint_eq(rate, 0);
}
END_TEST

/* For instance because a host sends to all others. */
START_TEST(intervals_that_cannot_count_show_nothing)
{
	for (unsigned i = 0; i < LOOKS_MAX; i++) {
		stream(0, LOOK_US, MBIT);
		ck_assert_uint_eq(look(LOOK_US, false), 0);
	}
}
END_TEST

START_TEST(old_intervals_are_forgotten)
{
	unsigned looks;
	uint64_t rate;

	for (unsigned i = 0; i < 9; i++) {
		stream(0, LOOK_US, MBIT);
		ck_assert_uint_eq(look(LOOK_US, true), 0);
	}
	ck_assert_uint_eq(look(ENG_RATE_OLD_US, true), 0);
	REPEAT(looks, rate, stream(0, LOOK_US, 100 * MBIT))
	expect_rate(rate, 100 * MBIT);
	ck_assert_uint_eq(looks, ENG_RATE_WINDOW_US / LOOK_US);
}
END_TEST

START_TEST(link_that_delivers_nothing_is_not_reported)
{
	unsigned looks;
	uint64_t rate;

	REPEAT(looks, rate, stream(0, LOOK_US, 0))
	ck_assert_uint_eq(rate, 0);
}
END_TEST

/* ---- an engine ---- */

#define LIMIT UINT64_C(2000000)    /* bytes per second of a stream */
#define COUNT (UINT64_C(16) << 20) /* elements; half of them start here, for eight seconds */

/* Takes all data that has arrived. */
static void drain(int fd)
{
	static uint8_t buf[1 << 16];

	while (recv(fd, buf, sizeof buf, MSG_DONTWAIT) > 0)
		;
}

/* Starts to send a transfer to another host on two streams, each limited to LIMIT, along this
 * route. Returns the rate that the engine reports within `ms`, or 0. */
static uint64_t carried(enum cc_algo route, uint32_t ms)
{
	struct op o = {.seq = 1,
		.op = KRN_SUM,
		.count = COUNT,
		.segment_max = CC_PLAN_SEGMENT_MAX,
		.route = route};
	uint64_t looked_ns = 0, began_ns = cc_now_ns(), rate = 0;
	int pair[2][2];
	struct cc_plan plan;
	struct eng_event ev;
	struct net n;

	net_up(&n, 1, 1);
	for (unsigned i = 0; i < 2; i++) {
		tcp_pair(pair[i]);
		ck_assert_int_eq(setsockopt(pair[i][0], SOL_SOCKET, SO_MAX_PACING_RATE,
					 &(uint64_t){LIMIT}, sizeof(uint64_t)),
			0);
		ck_assert_int_eq(eng_add_tx_stream(n.h[0].e, 1, pair[i][0], ENG_NO_SET), 0);
	}
	start_alone(&n, &o, &plan);
	while (rate == 0 && cc_now_ns() - began_ns < ms * UINT64_C(1000000)) {
		if (cc_now_ns() - looked_ns >= FLOW_LOOK_MS * UINT64_C(1000000)) {
			looked_ns = cc_now_ns();
			eng_look(n.h[0].e, true);
		}
		drain(pair[0][1]);
		drain(pair[1][1]);
		if (!wait_event(&n.h[0], &ev, 5) || ev.type == ENG_LINK_HEARD)
			continue;
		ck_assert_int_eq(ev.type, ENG_LINK_RATE);
		ck_assert_uint_eq(ev.link, 1);
		ck_assert_uint_lt(ev.trip_us, 10000000);
		rate = ev.rate;
	}
	cancel_alone(&n, 1);
	net_down(&n);
	close(pair[0][1]);
	close(pair[1][1]);
	return rate;
}

START_TEST(engine_reports_what_a_slow_link_carries)
{
	uint64_t rate = carried(CC_ALGO_RING, WAIT_MS);

	/* The limit is for packets, with their headers. A loaded machine may be slower. */
	ck_assert_msg(rate > 2 * LIMIT * 8 / 8 && rate < 2 * LIMIT * 8 * 5 / 4, "%llu bit/s",
		(unsigned long long)rate);
}
END_TEST

/* Then the links of a host share what the host can send. */
START_TEST(engine_reports_nothing_of_other_routes)
{
	ck_assert_uint_eq(carried(CC_ALGO_DIRECT, 7000), 0);
}
END_TEST

Suite *rate_suite(void)
{
	Suite *s = suite_create("rate");
	TCase *tc = tcase_create("estimate");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, rates_of_busy_streams_add_up);
	tcase_add_test(tc, streams_that_are_seldom_busy_add_only_their_bytes);
	tcase_add_test(tc, sets_that_take_turns_do_not_add_up);
	tcase_add_test(tc, idle_time_is_left_out);
	tcase_add_test(tc, streams_that_are_busy_for_less_than_half_of_the_time_show_nothing);
	tcase_add_test(tc, streams_without_waiting_bytes_show_nothing);
	tcase_add_test(tc, receiver_that_takes_no_data_shows_nothing);
	tcase_add_test(tc, kernel_without_the_counts_shows_nothing);
	tcase_add_test(tc, intervals_that_cannot_count_show_nothing);
	tcase_add_test(tc, old_intervals_are_forgotten);
	tcase_add_test(tc, link_that_delivers_nothing_is_not_reported);
	suite_add_tcase(s, tc);
	tc = tcase_create("engine");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, engine_reports_what_a_slow_link_carries);
	tcase_add_test(tc, engine_reports_nothing_of_other_routes);
	suite_add_tcase(s, tc);
	return s;
}
