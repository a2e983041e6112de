/* SPDX-License-Identifier: MIT
 *
 * Properties of cc_detect. The bound always stays within its limits and follows the jitter. Dead
 * peers are detected, and living peers do not count as gone.
 */
#include "common/cc_detect.h"

#include "tests/common/suites.h"
#include "tests/common/testlib.h"

#define MS   UINT64_C(1000000)
#define BEAT 500u  /* ms */
#define MAX  3000u /* ms */
#define MIN  2000u /* ms: 4 beats */

static struct cc_detect make(uint64_t now)
{
	struct cc_detect d;

	cc_detect_init(&d, BEAT, MAX, now);
	return d;
}

/* Returns the least bound that the header promises. */
static uint64_t least_ms(uint32_t beat_ms, uint32_t max_ms)
{
	uint64_t beats = (uint64_t)CC_DETECT_MIN_BEATS * beat_ms;
	uint64_t least = beats > CC_DETECT_MIN_MS ? beats : CC_DETECT_MIN_MS;

	return least < max_ms ? least : max_ms;
}

/* Simulates n beats. The time between two beats is gap_ms +- jitter_ms. Returns the time of the
 * last beat. */
static uint64_t beats(
	struct cc_detect *d, struct tl_rng *r, uint64_t now, int n, uint64_t gap, uint64_t jitter)
{
	for (int i = 0; i < n; i++) {
		now += (gap - jitter) * MS + tl_range(r, 0, 2 * jitter * MS);
		cc_detect_heard(d, now);
	}
	return now;
}

START_TEST(bound_stays_between_minimum_and_maximum)
{
	struct tl_rng r = tl_rng_new(1);

	for (int round = 0; round < 300; round++) {
		uint32_t beat = (uint32_t)tl_magnitude(&r, 22),
			 max = (uint32_t)tl_magnitude(&r, 22);
		uint64_t now = tl_magnitude(&r, 60);
		struct cc_detect d;

		cc_detect_init(&d, beat, max, now);
		for (int i = 0; i < 200; i++) {
			/* From time to time the clock jumps, forward or back. */
			now += tl_magnitude(&r, 44);
			if (tl_range(&r, 0, 30) == 0)
				now = tl_magnitude(&r, 60);
			switch (tl_range(&r, 0, 3)) {
			case 0:
				cc_detect_pause(&d, now);
				ck_assert(!cc_detect_gone(&d, now));
				break;
			case 1:
				ck_assert(!cc_detect_gone(&d, now) ||
					  cc_detect_silence(&d, now) > cc_detect_bound(&d));
				break;
			default:
				cc_detect_heard(&d, now);
				ck_assert(!cc_detect_gone(&d, now));
				ck_assert(cc_detect_gone(&d, now + max * MS + 1));
				break;
			}
			ck_assert_uint_ge(cc_detect_bound(&d), least_ms(beat, max) * MS);
			ck_assert_uint_le(cc_detect_bound(&d), max * MS);
		}
	}
}
END_TEST

/* Checks the bound of a host whose beats are all on time. */
static void expect_least(uint32_t beat_ms, uint32_t max_ms, uint64_t ms)
{
	struct tl_rng r = tl_rng_new(1);
	struct cc_detect d;

	cc_detect_init(&d, beat_ms, max_ms, 0);
	(void)beats(&d, &r, 0, CC_DETECT_WINDOW, beat_ms, 0);
	ck_assert_uint_eq(cc_detect_bound(&d), ms * MS);
}

START_TEST(minimum_of_the_bound_depends_on_beat_and_maximum)
{
	expect_least(500, 3000, 2000);
	expect_least(251, 3000, 1004);
	expect_least(249, 3000, 1000);
	expect_least(100, 300, 300);
	expect_least(3600000, 3600000, 3600000);
}
END_TEST

START_TEST(bound_is_the_maximum_until_there_are_enough_samples)
{
	struct cc_detect d = make(7 * MS);
	uint64_t now = 7 * MS;

	for (uint32_t i = 0; i < CC_DETECT_SAMPLES_MIN; i++) {
		ck_assert_uint_eq(cc_detect_bound(&d), MAX * MS);
		ck_assert(!cc_detect_gone(&d, now + MAX * MS));
		ck_assert(cc_detect_gone(&d, now + MAX * MS + 1));
		cc_detect_heard(&d, now += BEAT * MS);
	}
	ck_assert_uint_lt(cc_detect_bound(&d), MAX * MS);
}
END_TEST

START_TEST(equal_gaps_give_the_minimum_bound)
{
	struct cc_detect d = make(0);
	struct tl_rng r = tl_rng_new(2);
	uint64_t now = beats(&d, &r, 0, 1000, BEAT, 0);

	ck_assert_uint_eq(cc_detect_bound(&d), MIN * MS);
	ck_assert(!cc_detect_gone(&d, now + MIN * MS));
	ck_assert(cc_detect_gone(&d, now + MIN * MS + 1));
	/* All beats are late by the same amount. The gaps between them are equal, but do not count
	 * as exact. */
	beats(&d, &r, now, 100, 1200, 0);
	ck_assert_uint_eq(cc_detect_bound(&d), (1200 + 150 * 5612 / 1000) * MS + MS * 8 / 10);
}
END_TEST

START_TEST(jitter_widens_the_bound)
{
	uint64_t last = 0;

	for (uint64_t jitter = 100; jitter <= 400; jitter += 50) {
		struct cc_detect d = make(0);
		struct tl_rng r = tl_rng_new(3);

		uint64_t now = 0, sum = 0;

		for (int i = 0; i < 300; i++) {
			now = beats(&d, &r, now, 10, 1000, jitter);
			sum += cc_detect_bound(&d);
		}
		ck_assert_uint_ge(sum / 300, last);
		last = sum / 300;
	}
	ck_assert_uint_gt(last, (MIN + 200) * MS);
	ck_assert_uint_lt(last, MAX * MS);
}
END_TEST

START_TEST(long_silence_raises_the_bound_for_a_while)
{
	struct cc_detect d = make(0);
	struct tl_rng r = tl_rng_new(4);
	uint64_t now = beats(&d, &r, 0, 100, BEAT, 10);

	cc_detect_heard(&d, now += 1800 * MS);
	ck_assert_uint_eq(cc_detect_bound(&d), 2250 * MS);
	now = beats(&d, &r, now, (int)CC_DETECT_WINDOW, BEAT, 10);
	ck_assert_uint_gt(cc_detect_bound(&d), 2200 * MS);
	now = beats(&d, &r, now, (int)CC_DETECT_FADE, BEAT, 10);
	ck_assert_uint_eq(cc_detect_bound(&d), MIN * MS);
	cc_detect_heard(&d, now + 2500 * MS);
	ck_assert_uint_eq(cc_detect_bound(&d), MAX * MS);
}
END_TEST

START_TEST(burst_of_messages_does_not_change_the_bound)
{
	struct cc_detect d = make(0);
	struct tl_rng r = tl_rng_new(5);
	uint64_t now = beats(&d, &r, 0, 100, 1000, 400), before = cc_detect_bound(&d);

	ck_assert_uint_gt(before, MIN * MS);
	for (int i = 0; i < 10000; i++)
		cc_detect_heard(&d, now += tl_range(&r, 0, 240 * MS));
	ck_assert_uint_eq(cc_detect_bound(&d), before);
}
END_TEST

START_TEST(a_slow_path_adds_to_the_bound)
{
	struct cc_detect d;
	uint64_t ms = 1000000, bound;

	cc_detect_init(&d, 500, 2800, 0);
	bound = cc_detect_bound(&d);
	cc_detect_path(&d, 4000);
	ck_assert_uint_eq(cc_detect_bound(&d), bound + 4000 * ms);
	ck_assert(!cc_detect_gone(&d, bound + 4000 * ms));
	ck_assert(cc_detect_gone(&d, bound + 4000 * ms + 1));
	cc_detect_path(&d, 0);
	ck_assert_uint_eq(cc_detect_bound(&d), bound + 3500 * ms);
	for (int i = 0; i < 300; i++)
		cc_detect_path(&d, 0);
	ck_assert_uint_eq(cc_detect_bound(&d), bound);
}
END_TEST

START_TEST(standstill_of_the_observer_does_not_count_as_silence)
{
	struct cc_detect d = make(0);
	struct tl_rng r = tl_rng_new(6);
	uint64_t now = beats(&d, &r, 0, 100, BEAT, 0);

	ck_assert(cc_detect_blind(&d, MIN * MS / 2 + 1));
	ck_assert(!cc_detect_blind(&d, MIN * MS / 2));
	ck_assert(!cc_detect_gone(&d, now + MS * 2 * BEAT + MS * MIN / 2));
	now += 60000 * MS;
	cc_detect_pause(&d, now);
	ck_assert(!cc_detect_gone(&d, now + MIN * MS));
	cc_detect_heard(&d, now += 900 * MS);
	ck_assert_uint_eq(cc_detect_bound(&d), MIN * MS);
	ck_assert(cc_detect_gone(&d, now + MIN * MS + 1));
}
END_TEST

START_TEST(jumps_of_the_clock_restart_the_silence)
{
	struct tl_rng r = tl_rng_new(7);
	uint64_t now = 3600000 * MS;
	struct cc_detect d = make(now);

	now = beats(&d, &r, now, 100, BEAT, 0);
	/* The clock jumps back by an hour. The silence starts again at the new time and ends as
	 * usual. */
	now -= 3600000 * MS;
	ck_assert_uint_eq(cc_detect_silence(&d, now), 0);
	ck_assert(!cc_detect_gone(&d, now));
	ck_assert(cc_detect_gone(&d, now + MIN * MS + 1));
	cc_detect_heard(&d, now + BEAT * MS);
	ck_assert_uint_eq(cc_detect_bound(&d), MIN * MS);
	/* A message comes directly after a jump back, and another message after a jump forward. */
	now = beats(&d, &r, 10 * MS, 1, BEAT, 0);
	ck_assert_uint_eq(cc_detect_bound(&d), MIN * MS);
	cc_detect_heard(&d, now + 3600000 * MS);
	ck_assert_uint_ge(cc_detect_bound(&d), MIN * MS);
	ck_assert_uint_le(cc_detect_bound(&d), MAX * MS);
	ck_assert(!cc_detect_gone(&d, now + 3600000 * MS + MIN * MS));
}
END_TEST

/* Simulates beats that arrive 1 ms to 1 ms + spread_ms after they were sent. One beat in `rare` is
 * delayed by up to hold_ms more. Returns the number of gaps in a million after which the peer would
 * wrongly count as gone. */
static double false_positives(
	struct tl_rng *r, uint64_t spread, uint64_t rare, uint64_t hold, uint64_t *mean_bound)
{
	struct cc_detect d = make(0);
	uint64_t sent = 0, now = 0, sum = 0;
	const uint64_t n = 400000;
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = (sent += BEAT * MS) + MS;

		for (int k = 0; k < 4; k++)
			at += tl_range(r, 0, spread * MS / 4);
		if (tl_range(r, 1, rare) == 1)
			at += tl_range(r, 0, hold * MS);
		now = at > now ? at : now; /* a stream keeps the order of beats */
		wrong += cc_detect_gone(&d, now);
		sum += cc_detect_bound(&d);
		cc_detect_heard(&d, now);
	}
	*mean_bound = sum / n;
	return (double)wrong * 1e6 / (double)n;
}

START_TEST(living_peers_rarely_count_as_gone)
{
	struct tl_rng r = tl_rng_new(8);
	uint64_t bound;

	/* In a good network there is no wrong decision, and the bound is near its minimum. */
	ck_assert_double_eq(false_positives(&r, 20, 1000, 200, &bound), 0);
	ck_assert_uint_lt(bound, (MIN + 10) * MS);
	/* In a poor network the delay of a beat varies by more than the time between two beats. */
	ck_assert_double_eq(false_positives(&r, 800, 1000, 300, &bound), 0);
	ck_assert_uint_lt(bound, MAX * MS);
	/* A loaded host stands still for up to 1.6 s, often or from time to time. */
	ck_assert_double_lt(false_positives(&r, 50, 5, 1600, &bound), 100);
	ck_assert_uint_lt(bound, 2900 * MS);
	ck_assert_double_lt(false_positives(&r, 50, 100, 1600, &bound), 300);
	ck_assert_uint_lt(bound, 2500 * MS);
	/* A host that stands still seldom, and for less than three beats, never exceeds the minimum
	 * of the bound. */
	ck_assert_double_eq(false_positives(&r, 20, 500, 1470, &bound), 0);
}
END_TEST

Suite *detect_suite(void)
{
	Suite *s = suite_create("detect");
	TCase *tc = tcase_create("detect");

	tcase_add_test(tc, bound_stays_between_minimum_and_maximum);
	tcase_add_test(tc, minimum_of_the_bound_depends_on_beat_and_maximum);
	tcase_add_test(tc, bound_is_the_maximum_until_there_are_enough_samples);
	tcase_add_test(tc, equal_gaps_give_the_minimum_bound);
	tcase_add_test(tc, jitter_widens_the_bound);
	tcase_add_test(tc, long_silence_raises_the_bound_for_a_while);
	tcase_add_test(tc, burst_of_messages_does_not_change_the_bound);
	tcase_add_test(tc, a_slow_path_adds_to_the_bound);
	tcase_add_test(tc, standstill_of_the_observer_does_not_count_as_silence);
	tcase_add_test(tc, jumps_of_the_clock_restart_the_silence);
	tcase_add_test(tc, living_peers_rarely_count_as_gone);
	suite_add_tcase(s, tc);
	return s;
}
