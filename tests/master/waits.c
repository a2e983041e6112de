/* SPDX-License-Identifier: MIT
 *
 * The master's core: who is awaited by what has not started, in words.
 */
#include <stdio.h>
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/fake.h"
#include "tests/master/suites.h"
#include "tests/master/takeover.h"

static struct fk f;
static struct fk_host *a, *b, *c;
static struct fk_peer p, q, q2, r; /* of group 0, on a, b, b, c */
static unsigned id_of_p;

static void setup(void)
{
	struct ccm_config cfg = {
		.run = {{1}}, .run_key = {{2}}, .segment_max = 4096, .evict_delay_ms = 250};

	fk_init(&f, &cfg);
	a = fk_host(&f, "a", "10.0.0.1");
	b = fk_host(&f, "b", "10.0.0.2");
	c = fk_host(&f, "c", "10.0.0.3");
	p = fk_join(a, 0);
	q = fk_join(b, 0);
	q2 = fk_join(b, 0);
	r = fk_join(c, 0);
	fk_topo(&p);
	fk_forget(&f);
	f.log[0] = '\0';
}

static void teardown(void)
{
	fk_free(&f);
}

/* "train@b pid 7" */
static const char *label(const struct fk_peer *x)
{
	static char text[2][3 * WM_NAME_MAX];
	struct ccm_peer_info i = fk_info(x);
	char *buf = text[id_of_p++ % 2];

	snprintf(buf, sizeof text[0], "%s@%s pid %u", i.name, i.host, i.pid);
	return buf;
}

static void keep_op(void *arg, const struct ccm_op_info *o)
{
	*(struct ccm_op_info *)arg = *o;
}

static const char *awaited(void)
{
	static struct ccm_op_info o;

	memset(&o, 0, sizeof o);
	ccm_each_op(f.m, f.now, keep_op, &o);
	return o.awaited;
}

static const char *told(struct fk_host *h)
{
	return fk_take(h, WM_WAITS)->u.waits.text;
}

static void stopped(const struct fk_peer *x, bool is)
{
	struct wm_msg m = {.type = WM_STOPPED, .u.stopped = {x->id, is}};

	fk_send(x->host, &m);
}

/* The same, and everybody has been told of it. */
static void stopped_before(const struct fk_peer *x, bool is)
{
	stopped(x, is);
	fk_tick(&f, 100);
	fk_forget(&f);
}

START_TEST(who_has_voted_is_told_of_who_has_not)
{
	char want[WM_TEXT_MAX];
	const struct wm_waits *w;

	fk_vote(&p, 7);
	fk_vote(&q, 7);
	fk_tick(&f, 1900);
	ck_assert_uint_eq(fk_count(a, WM_WAITS) + fk_count(b, WM_WAITS), 0);
	ck_assert_str_eq(f.log, "");
	fk_tick(&f, 100);
	snprintf(want, sizeof want, "2 of 4 peers: %s (has not called), %s (has not called)",
		label(&q2), label(&r));
	w = &fk_take(a, WM_WAITS)->u.waits;
	ck_assert(w->kind == WM_WAIT_OP && w->group == 0 && w->tag == 7 && w->waited_ms == 2000);
	ck_assert_str_eq(w->text, want);
	ck_assert_str_eq(told(b), want);
	ck_assert_str_eq(awaited(), want);
	ck_assert_uint_eq(fk_count(c, WM_WAITS), 0);
	assert_contains(f.log, "group 0 tag 7 has waited for 2.0 s for 2 of 4 peers: ");
	assert_contains(f.log, want);
	f.log[0] = '\0';
	fk_tick(&f, 4000);
	ck_assert_uint_eq(fk_count(a, WM_WAITS) + fk_count(b, WM_WAITS), 0);
	ck_assert_str_eq(f.log, "");
	fk_vote(&q2, 7);
	fk_tick(&f, 2000);
	ck_assert_uint_eq(fk_count(b, WM_WAITS), 1);
	snprintf(want, sizeof want, "1 of 4 peers: %s (has not called)", label(&r));
	ck_assert_str_eq(told(a), want);
	fk_vote(&r, 7);
	ck_assert_uint_eq(fk_count(c, WM_OP_START), 1);
	fk_forget(&f);
	fk_tick(&f, 4000);
	ck_assert_uint_eq(fk_count(a, WM_WAITS), 0);
	ck_assert_str_eq(f.log, "");
}
END_TEST

START_TEST(of_a_host_without_votes_it_is_not_known_who_has_called)
{
	fk_vote(&p, 7);
	fk_vote(&r, 7);
	ck_assert_str_eq(awaited(), "2 of 4 peers: b (none of its 2 peers has voted)");
}
END_TEST

START_TEST(the_stopped_are_named_first)
{
	char want[WM_TEXT_MAX];

	stopped_before(&r, true);
	fk_vote(&p, 7);
	fk_vote(&q, 7);
	fk_tick(&f, 2000);
	snprintf(want, sizeof want, "2 of 4 peers: %s (is stopped), %s (has not called)", label(&r),
		label(&q2));
	ck_assert_str_eq(told(a), want);
	snprintf(want, sizeof want, "2 of 4 peers: %s (is stopped, for 2.1 s), %s (has not called)",
		label(&r), label(&q2));
	ck_assert_str_eq(awaited(), want);
	stopped_before(&r, false);
	fk_tick(&f, 2000);
	assert_contains(told(a), "c pid");
	ck_assert_ptr_null(strstr(awaited(), "stopped"));
}
END_TEST

/* Who is stopped: everybody's agent is told, whether or not anything waits. */
START_TEST(all_are_told_of_the_stopped_at_once)
{
	const struct wm_waits *w;
	char want[WM_TEXT_MAX];

	stopped(&r, true);
	fk_tick(&f, 100);
	snprintf(want, sizeof want, "%s (is stopped)", label(&r));
	w = &fk_take(a, WM_WAITS)->u.waits;
	ck_assert(w->kind == WM_WAIT_STOPPED && w->group == 0 && w->tag == 0);
	ck_assert_str_eq(w->text, want);
	ck_assert_str_eq(told(b), want);
	ck_assert_str_eq(told(c), want);
	fk_vote(&p, 7);
	fk_vote(&r, 7);
	fk_tick(&f, 1000);
	ck_assert_uint_eq(fk_count(a, WM_WAITS), 0);
	fk_vote(&q, 7);
	fk_vote(&q2, 7); /* it starts */
	assert_contains(awaited(), label(&r));
	assert_contains(awaited(), " (is stopped, for 1.1 s); reports of a, b, c");
	stopped(&r, false);
	fk_tick(&f, 100);
	ck_assert_str_eq(told(a), "");
	stopped(&q, true);
	fk_tick(&f, 100);
	fk_forget(&f);
	fk_leave(&q, WM_LEAVE_DIED);
	fk_tick(&f, 100);
	ck_assert_str_eq(told(a), "");
}
END_TEST

START_TEST(one_of_a_host_without_votes_may_be_known_to_be_stopped)
{
	char want[WM_TEXT_MAX];

	fk_vote(&p, 7);
	fk_vote(&r, 7);
	stopped(&q, true);
	snprintf(want, sizeof want,
		"2 of 4 peers: %s (is stopped, for 0.0 s), b (none of its 2 peers has voted)",
		label(&q));
	ck_assert_str_eq(awaited(), want);
}
END_TEST

START_TEST(disconnected_agents_have_their_lease)
{
	fk_cut(b, "reset");
	fk_forget(&f);
	fk_vote(&p, 7);
	fk_vote(&r, 7);
	fk_tick(&f, 2000);
	ck_assert_str_eq(told(a), "2 of 4 peers: 2 peers on b (their agent is gone)");
	assert_contains(f.log, "2 peers on b (their agent is gone, 3.0 s of its lease left)");
	assert_contains(awaited(), "3.0 s of its lease left");
	fk_tick(&f, 2000);
	ck_assert_uint_eq(fk_count(a, WM_WAITS), 0);
	assert_contains(awaited(), "1.0 s of its lease left");
	fk_tick(&f, 1500);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1); /* nothing of theirs had been lost */
}
END_TEST

START_TEST(an_agent_may_be_silent)
{
	char want[WM_TEXT_MAX];

	fk_vote(&p, 7);
	fk_vote_many((struct fk_peer[]){q, q2}, 2, 7);
	fk_tick_silent(&f, 1500, c);
	snprintf(want, sizeof want, "1 of 4 peers: %s (its agent is silent)", label(&r));
	ck_assert_str_eq(awaited(), want);
}
END_TEST

START_TEST(what_is_known_of_a_process_goes_with_its_agent)
{
	struct fk_host *again;
	struct fk_peer x;

	stopped(&r, true);
	again = fk_reconnect(c);
	x = fk_join_again(&r, again, WM_JOIN_ACCEPTED);
	fk_resumed(again);
	fk_settle(&f);
	fk_vote(&p, 7);
	ck_assert_ptr_null(strstr(awaited(), "stopped"));
	stopped(&x, true);
	ck_assert_ptr_nonnull(strstr(awaited(), "stopped"));
	stopped(&r, false); /* by a connection that is gone */
}
END_TEST

START_TEST(many_are_not_all_named)
{
	struct fk_host *h[20];
	struct fk_peer x[20], two[2] = {q, q2};
	char name[WM_NAME_MAX];
	size_t i;

	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "%0*zu", _i ? WM_NAME_MAX - 1 : 3, i);
		h[i] = fk_host(&f, name, "10.0.1.1");
		x[i] = fk_join(h[i], 0);
	}
	fk_topo(&p);
	fk_topo(&r);
	fk_topo(&q);
	fk_topo(&q2);
	fk_vote(&p, 7);
	fk_vote_many(two, 2, 7);
	fk_vote(&r, 7);
	ck_assert_ptr_eq(strstr(awaited(), "20 of 24 peers: train@00"), awaited());
	assert_contains(awaited(), _i ? " and 17 more" : " and 16 more");
	stopped(&x[19], true);
	assert_contains(awaited(), "19 pid");
}
END_TEST

START_TEST(one_line_says_it_for_all_operations_that_wait_for_the_same)
{
	const uint64_t tags[] = {7, 8, 9};
	size_t i;

	for (i = 0; i < 3; i++) {
		fk_vote(&p, tags[i]);
		fk_vote(&r, tags[i]);
	}
	fk_vote(&q, 9);
	fk_tick(&f, 1900);
	f.log[0] = '\0';
	fk_tick(&f, 100);
	ck_assert_uint_eq(fk_count(a, WM_WAITS), 3);
	assert_contains(f.log, "tag 9 "); /* the last one: there was no line of 8 */
	fk_vote(&p, 10);
	fk_vote(&r, 10);
	fk_vote(&q, 10);
	f.log[0] = '\0';
	fk_tick(&f, 2000);
	ck_assert_str_eq(f.log, "");
}
END_TEST

START_TEST(many_late_operations_are_looked_at_in_turn)
{
	uint64_t tag;
	size_t n;

	for (tag = 0; tag < 40; tag++)
		fk_vote(&p, tag);
	fk_tick(&f, 2000);
	n = fk_count(a, WM_WAITS);
	ck_assert(n > 0 && n < 40);
	fk_tick(&f, 200);
	ck_assert_uint_eq(fk_count(a, WM_WAITS), 40);
	fk_forget(&f);
	stopped_before(&r, true);
	fk_tick(&f, 3000);
	ck_assert_uint_eq(fk_count(a, WM_WAITS), 40);
	fk_leave(&p, WM_LEAVE_CLEAN);
	fk_tick(&f, 3000);
}
END_TEST

START_TEST(a_topology_vote_names_who_is_late)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.4");
	const struct wm_waits *w;

	(void)fk_join(d, 0);
	fk_tick(&f, 3000);
	ck_assert_uint_eq(fk_count(d, WM_WAITS), 0); /* nobody has voted */
	stopped_before(&r, true);
	fk_topo(&p);
	fk_topo(&q);
	fk_tick(&f, 2000);
	w = &fk_take(d, WM_WAITS)->u.waits;
	ck_assert(w->kind == WM_WAIT_TOPOLOGY && w->waited_ms == 2000);
	assert_contains(w->text, "2 of 4 peers: ");
	assert_contains(w->text, "(is stopped), ");
	assert_contains(w->text, "(has not called)");
	ck_assert_uint_eq(fk_count(a, WM_WAITS), 1);
	ck_assert_uint_eq(fk_count(b, WM_WAITS), 1);
	ck_assert_uint_eq(fk_count(c, WM_WAITS), 0);
	assert_contains(f.log, "the topology vote has waited for 2.0 s for 2 of 4 peers: ");
	assert_contains(fk_status(&f).waiting, "(is stopped, for 2.1 s)");
	fk_forget(&f);
	fk_tick(&f, 4000);
	ck_assert_uint_eq(fk_count(a, WM_WAITS), 0);
	fk_topo(&q2);
	fk_tick(&f, 2000);
	ck_assert_uint_eq(fk_count(a, WM_WAITS), 1);
	fk_topo(&r);
	fk_forget(&f);
	fk_tick(&f, 4000);
	ck_assert_uint_eq(fk_count(d, WM_WAITS), 1); /* it is told who is stopped */
	ck_assert_uint_eq(fk_take(d, WM_WAITS)->u.waits.kind, WM_WAIT_STOPPED);
}
END_TEST

START_TEST(a_pending_vote_names_who_is_late)
{
	const struct wm_waits *w;

	fk_pending(&p);
	fk_tick(&f, 2000);
	w = &fk_take(a, WM_WAITS)->u.waits;
	ck_assert(w->kind == WM_WAIT_PENDING);
	assert_contains(w->text, "3 of 4 peers: train@b pid");
	ck_assert_uint_eq(fk_count(b, WM_WAITS), 0);
	assert_contains(f.log, "the vote on pending peers has waited for 2.0 s for 3 of 4 peers: ");
}
END_TEST

START_TEST(what_has_all_votes_waits_for_the_round)
{
	fk_manual(&f);
	fk_vote(&p, 7);
	fk_vote_many((struct fk_peer[]){q, q2}, 2, 7);
	fk_cut(c, "reset");
	fk_tick(&f, 5500); /* lost: a round rewires the ring */
	fk_forget(&f);
	fk_vote(&p, 8);
	fk_vote_many((struct fk_peer[]){q, q2}, 2, 8);
	fk_round_report(a, NULL, NULL);
	ck_assert_str_eq(awaited(), "the connection round: b");
	fk_round_report(b, a, "no answer");
	ck_assert_str_eq(awaited(), "the master to decide on a connection round that failed");
}
END_TEST

START_TEST(a_master_that_stood_still_suspects_nobody)
{
	fk_vote(&p, 7);
	fk_tick(&f, 100);
	f.now += 1100000000; /* more, and it takes its run over anew */
	fk_tick(&f, 1900);
	ck_assert_uint_eq(fk_count(a, WM_WAITS), 0);
	fk_tick(&f, 200);
	ck_assert_uint_eq(fk_count(a, WM_WAITS), 1);
}
END_TEST

static void tick_after(uint32_t ms)
{
	f.now += ms * UINT64_C(1000000) - 100000000;
	fk_tick(&f, 100);
}

/* A heartbeat has just been sent. */
static void await_beat(void)
{
	do {
		fk_forget(&f);
		fk_tick(&f, 100);
	} while (fk_count(a, WM_HEARTBEAT) == 0);
	fk_forget(&f);
}

/* All hosts have had one heartbeat, and it says so. */
static void assert_beat(bool awaited)
{
	struct fk_host *h[] = {a, b, c};
	size_t i;

	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(fk_count(h[i], WM_HEARTBEAT), 1);
		ck_assert_int_eq(fk_take(h[i], WM_HEARTBEAT)->u.heartbeat.awaited, awaited);
	}
}

static void vote(const struct fk_peer *x, int kind)
{
	switch (kind) {
	case 0:
		fk_vote(x, 7);
		break;
	case 1:
		fk_topo(x);
		break;
	case 2:
		fk_pending(x);
		break;
	default:
		fk_sync(x, fk_candidate(1, 1));
	}
}

START_TEST(that_somebody_is_awaited_is_told_at_once)
{
	await_beat();
	vote(&p, _i);
	vote(&q, _i);
	tick_after(49); /* who is a moment late is not awaited */
	ck_assert_uint_eq(fk_count(a, WM_HEARTBEAT), 0);
	tick_after(1);
	assert_beat(true);
	fk_tick(&f, 400); /* from then on with those that are due */
	ck_assert_uint_eq(fk_count(a, WM_HEARTBEAT), 0);
	fk_tick(&f, 100);
	assert_beat(true);
	fk_tick(&f, 2500); /* it is late by now */
	while (fk_count(a, WM_HEARTBEAT) > 1)
		(void)fk_take(a, WM_HEARTBEAT);
	ck_assert(fk_take(a, WM_HEARTBEAT)->u.heartbeat.awaited);
	await_beat();
	fk_tick(&f, 100);
	vote(&q2, _i);
	vote(&r, _i);
	fk_tick(&f, 300); /* the end of it is no news */
	ck_assert_uint_eq(fk_count(a, WM_HEARTBEAT), 0);
	fk_tick(&f, 100);
	assert_beat(false);
	fk_forget(&f);
	fk_tick(&f, 500); /* what runs waits for nobody's vote */
	assert_beat(false);
}
END_TEST

START_TEST(who_waits_often_is_not_told_of_with_each_tick)
{
	unsigned i, n = 0;

	await_beat();
	for (i = 0; i < 10; i++) {
		fk_pending(&p);
		fk_tick(&f, 100);
		fk_pending(&q);
		fk_pending(&q2);
		fk_pending(&r);
		fk_tick(&f, 100);
	}
	while (fk_count(a, WM_HEARTBEAT) > 0) {
		(void)fk_take(a, WM_HEARTBEAT);
		n++;
	}
	ck_assert_uint_ge(n, 4);
	ck_assert_uint_le(n, 8); /* in 2 s: two to a beat at most */
}
END_TEST

START_TEST(a_newcomer_awaits_nobody_who_votes)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.4");

	(void)fk_join(d, 0);
	await_beat();
	fk_tick(&f, 500);
	assert_beat(false);
}
END_TEST

START_TEST(while_the_master_was_suspended_nobody_waited)
{
	await_beat();
	fk_vote(&p, 7);
	f.now += 1100000000; /* more, and it takes its run over anew */
	tick_after(10);
	assert_beat(false);
	tick_after(40);
	ck_assert_uint_eq(fk_count(a, WM_HEARTBEAT), 0);
	tick_after(10);
	assert_beat(true);
}
END_TEST

START_TEST(a_recovering_master_shows_what_it_was_told)
{
	struct ccm_op_info o = {0};

	tk_connect(0);
	tk_join(0, WM_JOIN_ACCEPTED);
	fk_vote_seq(&tk.p[0], 7, 0);
	tk_end(0);
	tk_connect(1);
	tk_join(1, WM_JOIN_ACCEPTED);
	fk_vote_seq(&tk.p[1], 7, _i ? 5 : 0);
	ccm_each_op(tk.f.m, tk.f.now, keep_op, &o);
	ck_assert(o.tag == 7 && o.votes == 2 && o.world_size == 3 && o.bytes == 400);
	ck_assert_uint_eq(o.seq, _i ? 5 : 0);
	ck_assert_int_eq(
		o.state, _i ? CCM_PERFORM_COLLECTIVE_COMMS : CCM_VOTE_INITIATE_COLLECTIVE_COMMS);
	ck_assert_str_eq(o.awaited, "recovering: waiting for 1 of 3 peers");
}
END_TEST

Suite *waits_suite(void)
{
	Suite *s = suite_create("waits");
	TCase *tc = tcase_create("waits"), *recovering = tcase_create("recovering");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, who_has_voted_is_told_of_who_has_not);
	tcase_add_test(tc, of_a_host_without_votes_it_is_not_known_who_has_called);
	tcase_add_test(tc, the_stopped_are_named_first);
	tcase_add_test(tc, all_are_told_of_the_stopped_at_once);
	tcase_add_test(tc, one_of_a_host_without_votes_may_be_known_to_be_stopped);
	tcase_add_test(tc, disconnected_agents_have_their_lease);
	tcase_add_test(tc, an_agent_may_be_silent);
	tcase_add_test(tc, what_is_known_of_a_process_goes_with_its_agent);
	tcase_add_loop_test(tc, many_are_not_all_named, 0, 2);
	tcase_add_test(tc, one_line_says_it_for_all_operations_that_wait_for_the_same);
	tcase_add_test(tc, many_late_operations_are_looked_at_in_turn);
	tcase_add_test(tc, a_topology_vote_names_who_is_late);
	tcase_add_test(tc, a_pending_vote_names_who_is_late);
	tcase_add_test(tc, what_has_all_votes_waits_for_the_round);
	tcase_add_test(tc, a_master_that_stood_still_suspects_nobody);
	tcase_add_loop_test(tc, that_somebody_is_awaited_is_told_at_once, 0, 4);
	tcase_add_test(tc, who_waits_often_is_not_told_of_with_each_tick);
	tcase_add_test(tc, a_newcomer_awaits_nobody_who_votes);
	tcase_add_test(tc, while_the_master_was_suspended_nobody_waited);
	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(recovering, tk_setup, tk_teardown);
	tcase_add_loop_test(recovering, a_recovering_master_shows_what_it_was_told, 0, 2);
	suite_add_tcase(s, recovering);
	return s;
}
