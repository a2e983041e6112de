/* SPDX-License-Identifier: MIT
 *
 * The master's core: the texts about the peers that an operation, a vote or a round waits for.
 */
#include <stdio.h>
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/fake.h"
#include "tests/master/suites.h"
#include "tests/master/takeover.h"

static struct fk f;
static struct fk_host *a, *b, *c;
static struct fk_peer p, q, q2, r; /* in group 0, on a, b, b, c */
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

/* Returns the label of a peer, for example "train@b pid 7". */
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

/* Does the same, and waits until all agents have been told. */
static void stopped_before(const struct fk_peer *x, bool is)
{
	stopped(x, is);
	fk_tick(&f, 100);
	fk_forget(&f);
}

START_TEST(voters_are_told_of_missing_voters)
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

START_TEST(text_names_a_host_without_votes_as_a_whole)
{
	fk_vote(&p, 7);
	fk_vote(&r, 7);
	ck_assert_str_eq(awaited(), "2 of 4 peers: b (none of its 2 peers has voted)");
}
END_TEST

START_TEST(stopped_peers_are_named_first)
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

/* All agents are told which peers are stopped, even if no call waits. */
START_TEST(all_agents_are_told_of_stopped_peers_at_once)
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
	fk_vote(&q2, 7); /* the operation starts */
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

START_TEST(stopped_peer_of_a_host_without_votes_is_named)
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

START_TEST(text_names_the_lease_of_disconnected_agents)
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
	/* No operation is aborted, because the lost peers had none. */
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

START_TEST(text_names_a_silent_agent)
{
	char want[WM_TEXT_MAX];

	fk_vote(&p, 7);
	fk_vote_many((struct fk_peer[]){q, q2}, 2, 7);
	fk_tick_silent(&f, 1500, c);
	snprintf(want, sizeof want, "1 of 4 peers: %s (its agent is silent)", label(&r));
	ck_assert_str_eq(awaited(), want);
}
END_TEST

START_TEST(stopped_state_of_a_peer_ends_with_its_agent)
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
	stopped(&r, false); /* this comes on a connection that is gone */
}
END_TEST

START_TEST(long_list_of_peers_is_cut)
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

START_TEST(one_log_line_covers_operations_with_the_same_wait)
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
	assert_contains(f.log, "tag 9 "); /* the last of these tags; tag 8 had no line */
	fk_vote(&p, 10);
	fk_vote(&r, 10);
	fk_vote(&q, 10);
	f.log[0] = '\0';
	fk_tick(&f, 2000);
	ck_assert_str_eq(f.log, "");
}
END_TEST

START_TEST(many_late_operations_are_checked_in_turn)
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

START_TEST(topology_vote_names_late_peers)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.4");
	const struct wm_waits *w;

	(void)fk_join(d, 0);
	fk_tick(&f, 3000);
	ck_assert_uint_eq(fk_count(d, WM_WAITS), 0); /* no peer has voted */
	stopped_before(&r, true);
	fk_topo(&p);
	fk_topo(&q);
	fk_tick(&f, 2000);
	w = &fk_take(d, WM_WAITS)->u.waits;
	ck_assert(w->kind == WM_WAIT_BALLOT && w->ballot == WIRE_TOPOLOGY && w->waited_ms == 2000);
	assert_contains(w->text, "2 of 4 peers: ");
	assert_contains(w->text, "(is stopped), ");
	assert_contains(w->text, "(has not called)");
	ck_assert_uint_eq(fk_count(a, WM_WAITS), 1);
	ck_assert_uint_eq(fk_count(b, WM_WAITS), 1);
	ck_assert_uint_eq(fk_count(c, WM_WAITS), 0);
	assert_contains(f.log, "the topology vote has waited for 2.0 s for 2 of 4 peers: ");
	assert_contains(fk_waiting(&f), "(is stopped, for 2.1 s)");
	fk_forget(&f);
	fk_tick(&f, 4000);
	ck_assert_uint_eq(fk_count(a, WM_WAITS), 0);
	fk_topo(&q2);
	fk_tick(&f, 2000);
	ck_assert_uint_eq(fk_count(a, WM_WAITS), 1);
	fk_topo(&r);
	fk_forget(&f);
	fk_tick(&f, 4000);
	ck_assert_uint_eq(
		fk_count(d, WM_WAITS), 1); /* d gets only the message about the stopped peer */
	ck_assert_uint_eq(fk_take(d, WM_WAITS)->u.waits.kind, WM_WAIT_STOPPED);
}
END_TEST

START_TEST(pending_vote_names_late_peers)
{
	const struct wm_waits *w;

	fk_pending(&p);
	fk_tick(&f, 2000);
	w = &fk_take(a, WM_WAITS)->u.waits;
	ck_assert(w->kind == WM_WAIT_BALLOT && w->ballot == WIRE_PENDING);
	assert_contains(w->text, "3 of 4 peers: train@b pid");
	ck_assert_uint_eq(fk_count(b, WM_WAITS), 0);
	assert_contains(f.log, "the vote on pending peers has waited for 2.0 s for 3 of 4 peers: ");
}
END_TEST

START_TEST(operation_with_all_votes_waits_for_a_round)
{
	fk_manual(&f);
	fk_vote(&p, 7);
	fk_vote_many((struct fk_peer[]){q, q2}, 2, 7);
	fk_cut(c, "reset");
	fk_tick(&f, 5500); /* c is lost, so a round rewires the ring */
	fk_forget(&f);
	fk_vote(&p, 8);
	fk_vote_many((struct fk_peer[]){q, q2}, 2, 8);
	fk_round_report(a, NULL, NULL);
	ck_assert_str_eq(awaited(), "the connection round: b");
	fk_round_report(b, a, "no answer");
	ck_assert_str_eq(awaited(), "the master to decide on a connection round that failed");
}
END_TEST

START_TEST(suspended_master_suspects_no_peer)
{
	fk_vote(&p, 7);
	fk_tick(&f, 100);
	f.now += 1100000000; /* after a longer pause the master takes over its run again */
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

/* Ticks until a heartbeat has just been sent. Empties the inboxes. */
static void await_beat(void)
{
	do {
		fk_forget(&f);
		fk_tick(&f, 100);
	} while (fk_count(a, WM_HEARTBEAT) == 0);
	fk_forget(&f);
}

/* Checks that each host got one heartbeat with this value of `awaited`. */
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

START_TEST(heartbeat_says_at_once_that_a_peer_is_awaited)
{
	await_beat();
	vote(&p, _i);
	vote(&q, _i);
	tick_after(49); /* a peer that is late by a moment is not awaited */
	ck_assert_uint_eq(fk_count(a, WM_HEARTBEAT), 0);
	tick_after(1);
	assert_beat(true);
	fk_tick(&f, 400); /* later this is sent only in regular heartbeats */
	ck_assert_uint_eq(fk_count(a, WM_HEARTBEAT), 0);
	fk_tick(&f, 100);
	assert_beat(true);
	fk_tick(&f, 2500); /* the missing peers are late now */
	while (fk_count(a, WM_HEARTBEAT) > 1)
		(void)fk_take(a, WM_HEARTBEAT);
	ck_assert(fk_take(a, WM_HEARTBEAT)->u.heartbeat.awaited);
	await_beat();
	fk_tick(&f, 100);
	vote(&q2, _i);
	vote(&r, _i);
	fk_tick(&f, 300); /* the end of the wait is not sent at once */
	ck_assert_uint_eq(fk_count(a, WM_HEARTBEAT), 0);
	fk_tick(&f, 100);
	assert_beat(false);
	fk_forget(&f);
	fk_tick(&f, 500); /* a running operation waits for no vote */
	assert_beat(false);
}
END_TEST

START_TEST(frequent_waits_do_not_cause_a_heartbeat_per_tick)
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
	ck_assert_uint_le(n, 8); /* in 2 s, at most two for each regular heartbeat */
}
END_TEST

START_TEST(newcomer_does_not_await_voters)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.4");

	(void)fk_join(d, 0);
	await_beat();
	fk_tick(&f, 500);
	assert_beat(false);
}
END_TEST

START_TEST(suspension_of_the_master_does_not_count_as_a_wait)
{
	await_beat();
	fk_vote(&p, 7);
	f.now += 1100000000; /* after a longer pause the master takes over its run again */
	tick_after(10);
	assert_beat(false);
	tick_after(40);
	ck_assert_uint_eq(fk_count(a, WM_HEARTBEAT), 0);
	tick_after(10);
	assert_beat(true);
}
END_TEST

START_TEST(recovering_master_shows_the_votes_of_snapshots)
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
	tcase_add_test(tc, voters_are_told_of_missing_voters);
	tcase_add_test(tc, text_names_a_host_without_votes_as_a_whole);
	tcase_add_test(tc, stopped_peers_are_named_first);
	tcase_add_test(tc, all_agents_are_told_of_stopped_peers_at_once);
	tcase_add_test(tc, stopped_peer_of_a_host_without_votes_is_named);
	tcase_add_test(tc, text_names_the_lease_of_disconnected_agents);
	tcase_add_test(tc, text_names_a_silent_agent);
	tcase_add_test(tc, stopped_state_of_a_peer_ends_with_its_agent);
	tcase_add_loop_test(tc, long_list_of_peers_is_cut, 0, 2);
	tcase_add_test(tc, one_log_line_covers_operations_with_the_same_wait);
	tcase_add_test(tc, many_late_operations_are_checked_in_turn);
	tcase_add_test(tc, topology_vote_names_late_peers);
	tcase_add_test(tc, pending_vote_names_late_peers);
	tcase_add_test(tc, operation_with_all_votes_waits_for_a_round);
	tcase_add_test(tc, suspended_master_suspects_no_peer);
	tcase_add_loop_test(tc, heartbeat_says_at_once_that_a_peer_is_awaited, 0, 4);
	tcase_add_test(tc, frequent_waits_do_not_cause_a_heartbeat_per_tick);
	tcase_add_test(tc, newcomer_does_not_await_voters);
	tcase_add_test(tc, suspension_of_the_master_does_not_count_as_a_wait);
	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(recovering, tk_setup, tk_teardown);
	tcase_add_loop_test(recovering, recovering_master_shows_the_votes_of_snapshots, 0, 2);
	suite_add_tcase(s, recovering);
	return s;
}
