/* SPDX-License-Identifier: MIT
 *
 * The master's core with many peers. The number of messages for each agent in a vote, an operation
 * or a loss does not grow with the size of the run.
 */
#include <stdio.h>

#include "tests/common/testlib.h"
#include "tests/master/fake.h"
#include "tests/master/suites.h"

#define PER_HOST 4u

static struct fk f;
static struct fk_host *h[FK_HOSTS_MAX];
static struct fk_peer p[FK_HOSTS_MAX][PER_HOST];
static uint32_t n_hosts;

/* Makes a run with one group. The vote of the first peer admits all others. */
static void run_of(uint32_t hosts)
{
	char name[16];
	uint32_t i, k;

	fk_init(&f, NULL);
	f.quiet = true;
	f.drop = true;
	n_hosts = hosts;
	for (i = 0; i < hosts; i++) {
		(void)snprintf(name, sizeof name, "h%u", i);
		h[i] = fk_host(&f, name, "10.0.0.1");
		for (k = 0; k < PER_HOST; k++)
			p[i][k] = fk_join(h[i], 0);
	}
	fk_topo(&p[0][0]);
	ck_assert_uint_eq(fk_status(&f).accepted, (uint64_t)hosts * PER_HOST);
	ck_assert_ptr_null(ccm_check(f.m));
	f.sent = 0;
}

static uint64_t sent(void)
{
	uint64_t n = f.sent;
	const char *bad = ccm_check(f.m);

	ck_assert_msg(!bad, "%s", bad ? bad : "");
	f.sent = 0;
	return n;
}

static void operation(uint64_t tag, uint64_t seq)
{
	uint32_t i;

	for (i = 0; i < n_hosts; i++)
		fk_vote_many(p[i], PER_HOST, tag);
	for (i = 0; i < n_hosts; i++)
		fk_report(h[i], seq, true);
}

START_TEST(messages_per_agent_are_few)
{
	uint32_t i, k;

	run_of(_i == 0 ? 50 : 500);
	operation(1, 1);
	ck_assert_uint_eq(sent(), UINT64_C(2) * n_hosts); /* START, DONE */
	ck_assert_uint_eq(fk_status(&f).ops_done, 1);

	for (i = 0; i < n_hosts; i++)
		for (k = 0; k < PER_HOST; k++)
			fk_topo(&p[i][k]);
	ck_assert_uint_eq(sent(), n_hosts); /* COMMIT */

	for (i = 0; i < n_hosts; i++)
		for (k = 0; k < PER_HOST; k++)
			fk_pending(&p[i][k]);
	ck_assert_uint_eq(sent(), n_hosts); /* PENDING_ANSWER */

	for (i = 0; i < n_hosts; i++)
		fk_vote_many(p[i], PER_HOST, 2);
	(void)sent();
	fk_close(h[1], "gone");
	ck_assert_uint_eq(sent(), UINT64_C(4) * (n_hosts - 1)); /* VIEW, ABORT, ROUND, COMMIT */
	fk_free(&f);
}
END_TEST

/* A ring of many hosts avoids failed links without a search through all orders. */
START_TEST(a_large_ring_avoids_failed_links)
{
	uint32_t i;

	run_of(400);
	for (i = 0; i < n_hosts; i++)
		h[i]->auto_report = false;
	fk_leave(&p[0][3], WM_LEAVE_DIED);
	for (i = 0; i < n_hosts; i++)
		fk_round_report(h[i], i % 2 || i + 2 >= n_hosts ? NULL : h[i + 1], "refused");
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	ck_assert(fk_status(&f).round_active);
	for (i = 0; i < n_hosts; i++) {
		ck_assert(i % 2 || i + 2 >= n_hosts ||
			  !cc_id_eq(&h[i]->round.rings[0].next.agent, &h[i + 1]->id));
		fk_round_report(h[i], NULL, NULL);
	}
	ck_assert(!fk_status(&f).round_active);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	(void)sent();
	fk_free(&f);
}
END_TEST

static bool reach(uint32_t i, uint32_t k)
{
	uint32_t last = n_hosts - 1;

	return (i != last && k != last) || i + k == last + 1 || i + k == last + 2;
}

static void report_on_link(uint32_t i)
{
	uint32_t k = 0;

	while (!cc_id_eq(&h[i]->round.rings[0].next.agent, &h[k]->id))
		k++;
	if (reach(i, k))
		fk_round_report(h[i], NULL, NULL);
	else
		fk_round_report(h[i], h[k], "refused");
}

/* The last host reaches only h1 and h2, and only these two reach the last host. So the last host
 * must have its position between them. */
START_TEST(a_host_that_two_hosts_reach_keeps_its_position)
{
	static const uint32_t sizes[] = {4, 8, 16, 100, 400};
	uint32_t i, rounds;

	run_of(sizes[_i]);
	for (i = 0; i < n_hosts; i++)
		h[i]->auto_report = false;
	fk_leave(&p[0][3], WM_LEAVE_DIED);
	for (rounds = 0; fk_status(&f).round_active; rounds++) {
		ck_assert_uint_lt(rounds, n_hosts);
		for (i = 0; i < n_hosts; i++)
			report_on_link(i);
		ck_assert_uint_eq(fk_status(&f).kicks, 0);
	}
	ck_assert_uint_eq(fk_status(&f).accepted, (uint64_t)n_hosts * PER_HOST - 1);
	(void)sent();
	fk_free(&f);
}
END_TEST

Suite *scale_suite(void)
{
	Suite *s = suite_create("scale");
	TCase *tc = tcase_create("scale");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, messages_per_agent_are_few, 0, 2);
	tcase_add_test(tc, a_large_ring_avoids_failed_links);
	tcase_add_loop_test(tc, a_host_that_two_hosts_reach_keeps_its_position, 0, 5);
	suite_add_tcase(s, tc);
	return s;
}
