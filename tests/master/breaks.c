/* SPDX-License-Identifier: MIT
 *
 * The master's core: links that can be opened, but break in each operation.
 */
#include <stdio.h>
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/fake.h"
#include "tests/master/suites.h"

static struct fk f;
static struct fk_host *h[4];
static struct fk_peer p[4];
/* for each host, the next agent in the last ring that the master sent */
static struct cc_id next[4];

static void watch(void *arg, struct fk_host *to, const struct wm_msg *msg)
{
	size_t i = (size_t)(to->name[0] - 'a');

	(void)arg;
	if (msg->type == WM_ROUND && msg->u.round.n_rings > 0)
		next[i] = msg->u.round.rings[0].next.agent;
}

static void setup(void)
{
	fk_init(&f, NULL);
	f.watch = watch;
}

static void teardown(void)
{
	fk_free(&f);
}

/* Connects n hosts "a", "b", ... with one accepted peer each in group 0. */
static void run_of(size_t n)
{
	fk_run_of(&f, h, p, n);
	fk_forget(&f);
}

/* Returns the order of the last ring that the master sent, starting at host a. */
static const char *ring(size_t n)
{
	static char text[5];
	size_t i, k, at = 0;

	for (i = 0; i < n; i++) {
		text[i] = h[at]->name[0];
		for (k = 0; !cc_id_eq(&h[k]->id, &next[at]);)
			ck_assert_uint_lt(++k, n);
		at = k;
	}
	ck_assert_uint_eq(at, 0);
	text[i] = '\0';
	return text;
}

static uint64_t start_op(size_t n, uint64_t count)
{
	struct wm_op_params params = fk_params;
	size_t i;

	params.count = count;
	fk_forget(&f);
	for (i = 0; i < n; i++)
		fk_vote_params(&p[i], 1, params);
	return fk_take(h[0], WM_OP_START)->u.op_start.seq;
}

static void succeed(size_t n, uint64_t count)
{
	uint64_t seq = start_op(n, count);
	size_t i;

	for (i = 0; i < n; i++)
		fk_report(h[i], seq, true);
}

static void say_lost(size_t at, size_t other, bool inbound)
{
	struct wm_msg m = {.type = WM_LINK_LOST};

	m.u.link_lost.agent = h[other]->id;
	m.u.link_lost.inbound = inbound;
	(void)snprintf(m.u.link_lost.text, sizeof m.u.link_lost.text, "reset by a router");
	fk_send(h[at], &m);
}

/* Reports that no large packet passed, and that the next link will use smaller segments. */
static void say_narrow(size_t at, size_t other)
{
	struct wm_msg m = {.type = WM_LINK_LOST};

	m.u.link_lost.agent = h[other]->id;
	m.u.link_lost.smaller = true;
	fk_send(h[at], &m);
}

static void report_all(void)
{
	size_t i;

	for (i = 0; i < f.n_hosts; i++)
		f.hosts[i]->auto_report = true;
	fk_settle(&f);
}

/* Breaks the link from h[from] to h[to] during an operation. Both ends report it. */
static void break_link(size_t n, uint64_t count, size_t from, size_t to)
{
	(void)start_op(n, count);
	fk_manual(&f);
	say_lost(from, to, false);
	say_lost(to, from, true);
	report_all();
}

static void break_links(size_t n, int times, size_t from, size_t to)
{
	while (times-- > 0)
		break_link(n, 1000, from, to);
}

START_TEST(the_ring_avoids_a_link_that_breaks_three_times_in_a_row)
{
	size_t i;

	run_of(3);
	break_links(3, 2, 1, 2);
	ck_assert_str_eq(ring(3), "abc");
	break_links(3, 1, 1, 2);
	ck_assert_str_eq(ring(3), "acb");
	assert_contains(f.log, "the link from host b to host c broke during each of the last 3 "
			       "operations: reset by a router");
	/* Each member gets one error, as after any loss. */
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_count(h[i], WM_OP_ABORT), 1);
	succeed(3, 1000);
	ck_assert_uint_eq(fk_count(h[2], WM_OP_DONE), 1);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

/* The host that has not opened the link sees the link closed, and only reports that its part of the
 * operation has failed. The report of the other host comes after the operation has ended. */
START_TEST(failed_report_counts_as_a_break)
{
	struct wm_msg m = {.type = WM_OP_REPORT};
	int i;

	run_of(3);
	for (i = 0; i < 3; i++) {
		m.u.op_report = (struct wm_op_report){.seq = start_op(3, 1000),
			.suspect = h[1]->id,
			.text = "closed by the other agent"};
		fk_manual(&f);
		fk_send(h[2], &m);
		say_lost(1, 2, false);
		report_all();
	}
	ck_assert_str_eq(ring(3), "acb");
}
END_TEST

START_TEST(ring_avoids_both_directions_if_possible)
{
	run_of(4);
	break_links(4, 3, 1, 2);
	ck_assert_str_eq(ring(4), "abdc");
}
END_TEST

START_TEST(break_of_the_other_direction_evicts_a_host)
{
	run_of(3);
	break_links(3, 3, 1, 2);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	break_links(3, 1, 2, 1);
	ck_assert_uint_eq(fk_status(&f).kicks, 1);
	ck_assert(fk_present(&p[0]));
}
END_TEST

START_TEST(one_of_two_hosts_is_kicked_with_the_reason)
{
	const struct wm_kick *k;

	run_of(2);
	/* breaks of both directions count */
	break_links(2, 2, 0, 1);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	break_links(2, 1, 1, 0);
	ck_assert_uint_eq(fk_status(&f).kicks, 1);
	k = &fk_take(h[0], WM_KICK)->u.kick;
	ck_assert_uint_eq(k->code, WIRE_RANK_CONNECTION_LOST);
	assert_contains(k->text,
		"the link from host b to host a broke during each of the last 3 operations");
	assert_contains(k->text, "reset by a router");
	ck_assert(fk_present(&p[1]));
	ck_assert_uint_eq(fk_count(h[1], WM_OP_ABORT), 1);
	assert_contains(fk_take(h[1], WM_OP_ABORT)->u.op_abort.text, "reset by a router");
}
END_TEST

START_TEST(success_resets_the_count_of_breaks)
{
	int i;

	run_of(3);
	for (i = 0; i < 5; i++) {
		break_links(3, 2, 1, 2);
		succeed(3, 1000);
	}
	ck_assert_str_eq(ring(3), "abc");
}
END_TEST

/* A router may let small operations pass. */
START_TEST(success_of_a_smaller_operation_does_not_reset_the_count)
{
	run_of(3);
	break_links(3, 2, 1, 2);
	succeed(3, 10);
	break_links(3, 1, 1, 2);
	ck_assert_str_eq(ring(3), "acb");
}
END_TEST

START_TEST(breaks_between_operations_do_not_count)
{
	int i;

	run_of(3);
	for (i = 0; i < 5; i++) {
		say_lost(1, 2, false);
		fk_settle(&f);
	}
	ck_assert_str_eq(ring(3), "abc");
	break_links(3, 2, 1, 2);
	ck_assert_str_eq(ring(3), "abc");
}
END_TEST

/* The agent chooses the segment sizes. The master must not kick a host before the agent has tried
 * the smallest size. */
START_TEST(break_before_smaller_segments_does_not_count)
{
	size_t i;

	run_of(2);
	for (i = 0; i < 6; i++) {
		size_t from = i % 2, to = 1 - from;
		bool first = i < 3;

		(void)start_op(2, 1000);
		fk_manual(&f);
		if (first)
			say_narrow(from, to);
		say_lost(to, from, true);
		if (!first)
			say_narrow(from, to);
		report_all();
		ck_assert_uint_eq(fk_status(&f).kicks, 0);
	}
	break_links(2, 2, 0, 1);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	break_links(2, 1, 0, 1);
	ck_assert_uint_eq(fk_status(&f).kicks, 1);
}
END_TEST

/* When an agent dies, its links break before its connection to the master. */
START_TEST(broken_links_of_a_dead_agent_do_not_count)
{
	run_of(2);
	break_links(2, 2, 0, 1);
	(void)start_op(2, 1000);
	fk_manual(&f);
	say_lost(0, 1, true);
	fk_round_report(h[0], NULL, NULL);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	fk_close(h[1], "killed");
	fk_settle(&f);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	ck_assert(fk_present(&p[0]));
}
END_TEST

/* The newcomer is, for example, a trainer that is started again on a repaired host. */
START_TEST(newcomer_on_a_host_resets_the_count_of_its_pairs)
{
	struct fk_peer more;

	run_of(3);
	break_links(3, 2, 1, 2);
	more = fk_admit(h[2], 1, p, 3);
	ck_assert(fk_present(&more));
	break_links(3, 2, 1, 2);
	ck_assert_str_eq(ring(3), "abc");
}
END_TEST

/* ---- a newcomer whose links break with all neighbours ---- */

/* Admits d. The hosts a, b and c have been members a little longer. */
static void admit_d(void)
{
	run_of(3);
	fk_tick(&f, 100);
	h[3] = fk_host(&f, "d", "10.0.0.4");
	p[3] = fk_admit(h[3], 0, p, 3);
	ck_assert_str_eq(ring(4), "abcd");
}

START_TEST(breaks_of_all_links_of_a_newcomer_count_together)
{
	size_t i;

	admit_d();
	break_links(4, 1, 3, 0);
	break_links(4, 1, 2, 3);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	break_links(4, 1, 3, 0);
	ck_assert_uint_eq(fk_status(&f).kicks, 1);
	ck_assert(!fk_present(&p[3]));
	assert_contains(fk_take(h[3], WM_KICK)->u.kick.text,
		"links of host d with several hosts broke during each of the last 3 operations: "
		"reset by a router");
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_count(h[i], WM_OP_ABORT), 1);
	ck_assert_str_eq(ring(3), "abc");
	/* The master remembers that this host has failed. */
	p[3] = fk_join(h[3], 0);
	for (i = 0; i < 3; i++)
		fk_topo(&p[i]);
	ck_assert_int_ne(fk_info(&p[3]).phase, CCM_PEER_ACCEPTED);
}
END_TEST

/* The path between these two hosts may be the cause. */
START_TEST(newcomer_stays_if_links_with_only_one_host_break)
{
	admit_d();
	break_links(4, 3, 3, 0);
	ck_assert_str_eq(ring(4), "abdc");
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	succeed(4, 1000);
	break_links(4, 2, 1, 3);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

START_TEST(break_with_a_second_host_evicts_a_newcomer)
{
	admit_d();
	break_links(4, 3, 3, 0);
	break_links(4, 1, 1, 3);
	ck_assert_uint_eq(fk_status(&f).kicks, 1);
	ck_assert(!fk_present(&p[3]));
}
END_TEST

START_TEST(two_breaks_in_one_operation_count_once)
{
	int i;

	admit_d();
	for (i = 0; i < 2; i++) {
		(void)start_op(4, 1000);
		fk_manual(&f);
		say_lost(3, 0, false);
		say_lost(2, 3, false);
		report_all();
	}
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	succeed(4, 1000);
	break_links(4, 1, 3, 0);
	break_links(4, 1, 2, 3);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

/* The neighbours died one after the other. Before that, their links with the newcomer broke. */
START_TEST(newcomer_is_not_suspected_if_its_neighbours_die)
{
	size_t i;

	admit_d();
	break_links(4, 1, 3, 0);
	break_links(4, 1, 2, 3);
	fk_leave(&p[0], WM_LEAVE_DIED);
	fk_settle(&f);
	fk_forget(&f);
	for (i = 1; i < 4; i++)
		fk_vote(&p[i], 1);
	fk_manual(&f);
	ck_assert_uint_eq(fk_count(h[3], WM_OP_START), 1);
	say_lost(2, 3, false);
	report_all();
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

START_TEST(breaks_of_older_members_count_for_each_pair)
{
	size_t i;

	admit_d();
	for (i = 0; i < 61; i++)
		fk_tick(&f, 1000);
	break_links(4, 1, 3, 0);
	break_links(4, 1, 2, 3);
	break_links(4, 1, 3, 0);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	ck_assert_str_eq(ring(4), "abcd");
}
END_TEST

Suite *breaks_suite(void)
{
	Suite *s = suite_create("breaks");
	TCase *tc = tcase_create("breaks");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, the_ring_avoids_a_link_that_breaks_three_times_in_a_row);
	tcase_add_test(tc, failed_report_counts_as_a_break);
	tcase_add_test(tc, ring_avoids_both_directions_if_possible);
	tcase_add_test(tc, break_of_the_other_direction_evicts_a_host);
	tcase_add_test(tc, one_of_two_hosts_is_kicked_with_the_reason);
	tcase_add_test(tc, success_resets_the_count_of_breaks);
	tcase_add_test(tc, success_of_a_smaller_operation_does_not_reset_the_count);
	tcase_add_test(tc, breaks_between_operations_do_not_count);
	tcase_add_test(tc, break_before_smaller_segments_does_not_count);
	tcase_add_test(tc, broken_links_of_a_dead_agent_do_not_count);
	tcase_add_test(tc, newcomer_on_a_host_resets_the_count_of_its_pairs);
	tcase_add_test(tc, breaks_of_all_links_of_a_newcomer_count_together);
	tcase_add_test(tc, newcomer_stays_if_links_with_only_one_host_break);
	tcase_add_test(tc, break_with_a_second_host_evicts_a_newcomer);
	tcase_add_test(tc, two_breaks_in_one_operation_count_once);
	tcase_add_test(tc, newcomer_is_not_suspected_if_its_neighbours_die);
	tcase_add_test(tc, breaks_of_older_members_count_for_each_pair);
	suite_add_tcase(s, tc);
	return s;
}
