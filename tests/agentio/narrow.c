/* SPDX-License-Identifier: MIT
 *
 * Paths that lose large packets: the segment sizes that are remembered, and for how long.
 */
#include "common/cc_sys.h"
#include "pcclagentd/net/narrow.h"
#include "tests/agentio/suites.h"

#define MS 1000000ull

static struct narrow *list;

static struct wm_endpoint host(uint8_t number)
{
	return (struct wm_endpoint){.agent = {{number}}, .port = number};
}

static void learn(uint8_t number, uint32_t size, uint64_t now_ms)
{
	struct wm_endpoint to = host(number);

	ck_assert_int_eq(net_narrow_learn(&list, &to, size, now_ms * MS), 0);
}

static uint32_t size_of(uint8_t number)
{
	struct wm_endpoint to = host(number);

	return net_narrow_size(list, &to.agent);
}

static void teardown(void)
{
	net_narrow_free(&list);
	ck_assert_ptr_null(list);
}

START_TEST(paths_are_wide_until_the_agent_learns_otherwise)
{
	ck_assert_uint_eq(size_of(1), 0);
	learn(1, 0, 5);
	ck_assert_ptr_null(list);
	learn(1, 1, 5);
	learn(2, CC_TCP_SIZES, 5);
	ck_assert_uint_eq(size_of(1), 1);
	ck_assert_uint_eq(size_of(2), CC_TCP_SIZES);
	ck_assert_uint_eq(size_of(3), 0);
}
END_TEST

/* Returns the next time, from now_ms on, at which the path is due, in milliseconds. */
static uint64_t due_after(uint64_t now_ms)
{
	uint64_t at = now_ms;

	while (!net_narrow_due(list, at * MS)) {
		at += 1000;
		ck_assert_uint_le(at - now_ms, UINT64_C(2) * NARROW_WAIT_MAX_MS);
	}
	ck_assert_ptr_null(net_narrow_due(list, at * MS)); /* a path is due only once */
	return at;
}

START_TEST(larger_segments_are_tried_at_growing_intervals)
{
	struct wm_endpoint to = host(1);
	uint64_t now = 0, next, wait = NARROW_WAIT_MIN_MS;

	learn(1, 1, now);
	for (int i = 0; i < 10; i++) {
		next = due_after(now);
		ck_assert_uint_eq(next - now, wait);
		net_narrow_remains(list, &to.agent);
		now = next;
		wait = 2 * wait < NARROW_WAIT_MAX_MS ? 2 * wait : NARROW_WAIT_MAX_MS;
	}
}
END_TEST

START_TEST(a_path_that_narrows_again_is_tried_later_than_before)
{
	learn(1, 1, 0);
	learn(1, 0, due_after(0));
	ck_assert_uint_eq(size_of(1), 0);
	ck_assert_ptr_null(net_narrow_due(list, UINT64_C(10) * NARROW_WAIT_MAX_MS * MS));
	/* The path was narrow after all. The next attempt comes after a longer time than the first.
	 */
	learn(1, 1, 100000);
	ck_assert_uint_eq(due_after(100000) - 100000, UINT64_C(2) * NARROW_WAIT_MIN_MS);
}
END_TEST

Suite *narrow_suite(void)
{
	Suite *s = suite_create("narrow");
	TCase *t = tcase_create("narrow");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, paths_are_wide_until_the_agent_learns_otherwise);
	tcase_add_test(t, larger_segments_are_tried_at_growing_intervals);
	tcase_add_test(t, a_path_that_narrows_again_is_tried_later_than_before);
	suite_add_tcase(s, t);
	return s;
}
