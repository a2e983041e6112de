/* SPDX-License-Identifier: MIT
 *
 * The master's core: links that can be opened, and break in each operation.
 */
#include <stdio.h>
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/fake.h"
#include "tests/master/suites.h"

static struct fk f;
static struct fk_host *h[4];
static struct fk_peer p[4];
static struct cc_id next[4]; /* by host: in the ring that it was told last */

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

/* n hosts "a", "b", ... with one accepted peer each, in group 0. */
static void run_of(size_t n)
{
	fk_run_of(&f, h, p, n);
	fk_forget(&f);
}

/* The order of the ring that the hosts were told last, from a on. */
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

/* Nothing large got through, and the next one has smaller segments. */
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

/* Amid an operation, the link from h[from] to h[to] breaks: both ends say so. */
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
	/* Everybody had one error, as for any loss. */
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_count(h[i], WM_OP_ABORT), 1);
	succeed(3, 1000);
	ck_assert_uint_eq(fk_count(h[2], WM_OP_DONE), 1);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

/* The end that has not opened the link sees it closed, and says no more than that its part of the
 * operation has failed; what the other end says comes when nothing runs any more. */
START_TEST(a_failed_part_tells_of_a_break_too)
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

START_TEST(both_directions_are_avoided_where_that_is_possible)
{
	run_of(4);
	break_links(4, 3, 1, 2);
	ck_assert_str_eq(ring(4), "abdc");
}
END_TEST

START_TEST(the_other_direction_has_one_more_chance)
{
	run_of(3);
	break_links(3, 3, 1, 2);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	break_links(3, 1, 2, 1);
	ck_assert_uint_eq(fk_status(&f).kicks, 1);
	ck_assert(fk_present(&p[0]));
}
END_TEST

START_TEST(of_two_hosts_one_goes_and_hears_why)
{
	const struct wm_kick *k;

	run_of(2);
	/* whichever direction it is */
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

START_TEST(a_success_in_between_proves_the_pair)
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

/* A router lets small ones pass. */
START_TEST(the_success_of_a_smaller_one_proves_nothing)
{
	run_of(3);
	break_links(3, 2, 1, 2);
	succeed(3, 10);
	break_links(3, 1, 1, 2);
	ck_assert_str_eq(ring(3), "acb");
}
END_TEST

START_TEST(what_breaks_between_operations_does_not_count)
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

/* Its sizes are the agent's: the pair must not be given up before the smallest was tried. */
START_TEST(what_the_next_link_mends_does_not_count)
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

/* Links of an agent that dies break before its connection to the master does. */
START_TEST(who_dies_has_taken_his_links_along)
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

/* A trainer that is started anew, perhaps on a host that was repaired. */
START_TEST(a_newcomer_of_one_of_them_begins_anew)
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

/* ---- a newcomer whose links break, whoever its neighbours are ---- */

/* a, b and c have been members a little longer than d. */
static void admit_d(void)
{
	run_of(3);
	fk_tick(&f, 100);
	h[3] = fk_host(&f, "d", "10.0.0.4");
	p[3] = fk_admit(h[3], 0, p, 3);
	ck_assert_str_eq(ring(4), "abcd");
}

START_TEST(the_links_of_a_newcomer_count_together)
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
	/* It is remembered as a host that failed. */
	p[3] = fk_join(h[3], 0);
	for (i = 0; i < 3; i++)
		fk_topo(&p[i]);
	ck_assert_int_ne(fk_info(&p[3]).phase, CCM_PEER_ACCEPTED);
}
END_TEST

/* It may be the way between these two. */
START_TEST(a_newcomer_with_trouble_with_one_host_stays)
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

START_TEST(trouble_with_another_one_is_one_too_many)
{
	admit_d();
	break_links(4, 3, 3, 0);
	break_links(4, 1, 1, 3);
	ck_assert_uint_eq(fk_status(&f).kicks, 1);
	ck_assert(!fk_present(&p[3]));
}
END_TEST

START_TEST(both_links_of_a_newcomer_amid_one_operation_are_one_break)
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

/* Its neighbours died, one after the other, and their links with it broke first. */
START_TEST(a_newcomer_is_not_suspected_for_those_who_die)
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

START_TEST(old_members_are_judged_by_their_pairs)
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
	tcase_add_test(tc, a_failed_part_tells_of_a_break_too);
	tcase_add_test(tc, both_directions_are_avoided_where_that_is_possible);
	tcase_add_test(tc, the_other_direction_has_one_more_chance);
	tcase_add_test(tc, of_two_hosts_one_goes_and_hears_why);
	tcase_add_test(tc, a_success_in_between_proves_the_pair);
	tcase_add_test(tc, the_success_of_a_smaller_one_proves_nothing);
	tcase_add_test(tc, what_breaks_between_operations_does_not_count);
	tcase_add_test(tc, what_the_next_link_mends_does_not_count);
	tcase_add_test(tc, who_dies_has_taken_his_links_along);
	tcase_add_test(tc, a_newcomer_of_one_of_them_begins_anew);
	tcase_add_test(tc, the_links_of_a_newcomer_count_together);
	tcase_add_test(tc, a_newcomer_with_trouble_with_one_host_stays);
	tcase_add_test(tc, trouble_with_another_one_is_one_too_many);
	tcase_add_test(tc, both_links_of_a_newcomer_amid_one_operation_are_one_break);
	tcase_add_test(tc, a_newcomer_is_not_suspected_for_those_who_die);
	tcase_add_test(tc, old_members_are_judged_by_their_pairs);
	suite_add_tcase(s, tc);
	return s;
}
