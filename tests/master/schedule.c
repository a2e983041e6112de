/* SPDX-License-Identifier: MIT
 *
 * The master's core: which hosts measure at the same time.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_schedule.h"
#include "tests/common/testlib.h"
#include "tests/master/suites.h"

/* Are these the same edge, or two edges of one round that share a sender or a receiver, or lead
 * back and forth between two hosts? */
static bool collide(const struct ccm_edge *a, const struct ccm_edge *b)
{
	bool from = a->from == b->from, to = a->to == b->to;

	if (a->round != b->round)
		return from && to;
	return from || to || (a->from == b->to && a->to == b->from);
}

/* Checks the schedule of these edges, and returns the number of its rounds. */
static uint32_t check_schedule(struct ccm_edge *v, uint32_t n, uint32_t hosts)
{
	struct ccm_edge *before = malloc((n + 1) * sizeof *v);
	uint32_t rounds, i, k;

	ck_assert_ptr_nonnull(before);
	memcpy(before, v, n * sizeof *v);
	rounds = ccm_schedule(v, n, hosts);
	for (i = 0; i < n; i++) {
		ck_assert_uint_lt(v[i].round, rounds);
		ck_assert(i == 0 || v[i - 1].round <= v[i].round);
		for (k = 0; k < i && !collide(&v[i], &v[k]); k++)
			;
		ck_assert_uint_eq(k, i);
		for (k = 0; k < n && (before[k].from != v[i].from || before[k].to != v[i].to); k++)
			;
		ck_assert_uint_lt(k, n);
	}
	free(before);
	return rounds;
}

static uint32_t all_edges(struct ccm_edge *v, uint32_t hosts)
{
	uint32_t n = 0, i, k;

	for (i = 0; i < hosts; i++)
		for (k = 0; k < hosts; k++)
			if (i != k)
				v[n++] = (struct ccm_edge){.from = i, .to = k};
	return n;
}

START_TEST(schedule_of_all_edges_has_few_rounds)
{
	static struct ccm_edge v[40 * 39];
	uint32_t hosts = (uint32_t)_i, n = all_edges(v, hosts);

	ck_assert_uint_eq(check_schedule(v, n, hosts), hosts % 2 ? hosts - 1 : hosts);
}
END_TEST

/* Returns the most edges that lead from one host, or to one host. */
static uint32_t most_edges(const struct ccm_edge *v, uint32_t n)
{
	uint32_t from[20] = {0}, to[20] = {0}, most = 0, i;

	for (i = 0; i < n; i++) {
		from[v[i].from]++;
		to[v[i].to]++;
	}
	for (i = 0; i < 20; i++) {
		most = from[i] > most ? from[i] : most;
		most = to[i] > most ? to[i] : most;
	}
	return most;
}

START_TEST(schedule_of_some_edges_is_short)
{
	struct tl_rng r = tl_rng_new(7);
	static struct ccm_edge v[40 * 39];
	uint32_t hosts, n, all, i, k;

	for (i = 0; i < 300; i++) {
		hosts = (uint32_t)tl_range(&r, 2, 20);
		all = all_edges(v, hosts);
		n = (uint32_t)tl_range(&r, 1, all);
		for (k = 0; k < n; k++) {
			uint32_t at = (uint32_t)tl_range(&r, k, all - 1);
			struct ccm_edge x = v[at];

			v[at] = v[k];
			v[k] = x;
		}
		ck_assert_uint_le(check_schedule(v, n, hosts), 2ull * most_edges(v, n));
	}
}
END_TEST

START_TEST(schedule_of_nothing_has_no_rounds)
{
	ck_assert_uint_eq(ccm_schedule(NULL, 0, 3), 0);
}
END_TEST

Suite *schedule_suite(void)
{
	Suite *s = suite_create("schedule");
	TCase *tc = tcase_create("schedule");

	tcase_add_loop_test(tc, schedule_of_all_edges_has_few_rounds, 2, 41);
	tcase_add_test(tc, schedule_of_some_edges_is_short);
	tcase_add_test(tc, schedule_of_nothing_has_no_rounds);
	suite_add_tcase(s, tc);
	return s;
}
