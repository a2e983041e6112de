/* SPDX-License-Identifier: MIT
 *
 * The master's core: agents that are disconnected while their peers may come back, and the members
 * that wait for them.
 */
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/trio.h"

START_TEST(disconnect_aborts_operations_and_removes_no_peer)
{
	const struct wm_view *w;
	const struct wm_op_abort *x;

	vote_all(1);
	fk_vote(&p, 2);
	fk_forget(&f);
	fk_cut(c, "reset");
	w = &fk_take(a, WM_VIEW)->u.view;
	ck_assert_uint_eq(w->global, 3);
	ck_assert_uint_eq(w->own[0].world_size, 3);
	ck_assert_uint_eq(w->own[0].generation, 1);
	x = &fk_take(a, WM_OP_ABORT)->u.op_abort;
	ck_assert_uint_eq(x->seq, 1);
	ck_assert_uint_eq(x->code, WIRE_RANK_CONNECTION_LOST);
	assert_contains(x->text, "the agent on c is gone (reset); its peers have 5.0 s");
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.tag, 2);
	ck_assert_uint_eq(fk_take(b, WM_OP_ABORT)->u.op_abort.seq, 1);
	ck_assert_uint_eq(fk_count(a, WM_KICK) + fk_count(a, WM_ROUND), 0);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	ck_assert_uint_eq(fk_status(&f).disconnected, 1);
	ck_assert_uint_eq(fk_status(&f).lost_members, 0);
}
END_TEST

START_TEST(nothing_continues_without_disconnected_agents)
{
	struct fk_peer x;

	fk_cut(c, "reset");
	fk_forget(&f);
	fk_vote(&p, 1);
	fk_vote(&q, 1);
	fk_pending(&p);
	fk_pending(&q);
	ck_assert_uint_eq(a->n, 0);
	fk_leave(&p, WM_LEAVE_DIED);
	fk_leave(&q, WM_LEAVE_DIED);
	/* The last accepted peer is disconnected, so a registered peer waits for it. */
	x = fk_join(a, 0);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_REGISTERED);
	ck_assert(!fk_status(&f).round_active);
	fk_tick(&f, 5200);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
	ck_assert_uint_eq(fk_status(&f).accepted, 1);
}
END_TEST

START_TEST(topology_vote_waits_for_disconnected_peers)
{
	struct fk_peer x;

	fk_topo(&r);
	fk_cut(c, "reset");
	x = fk_join(a, 0);
	fk_topo(&p);
	fk_topo(&q);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_REGISTERED);
	/* The return of the peer is not a vote. */
	c = fk_reconnect(c);
	r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
	fk_resumed(c);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_REGISTERED);
	fk_topo(&r);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
}
END_TEST

START_TEST(accepting_round_is_dropped_during_a_disconnect)
{
	struct fk_peer x;

	fk_manual(&f);
	x = fk_join(a, 0);
	topo_all();
	ck_assert(fk_status(&f).round_accepts);
	fk_cut(c, "reset");
	ck_assert(!fk_status(&f).round_active);
	fk_round_report(a, NULL, NULL);
	fk_round_report(b, NULL, NULL);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_REGISTERED);
	fk_tick(&f, 5200);
	/* The two remaining members have voted, so the round begins again without r. */
	ck_assert(fk_status(&f).round_accepts);
	ck_assert_uint_eq(a->round.rings[0].hosts, 2);
	ck_assert_uint_eq(a->round.rings[0].n_members, 2);
}
END_TEST

START_TEST(the_lease_ends_with_a_loss)
{
	const struct wm_view *w;

	fk_cut(c, "reset");
	fk_tick(&f, 4900);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	fk_forget(&f);
	fk_tick(&f, 300);
	ck_assert(!fk_present(&r));
	/* r had not voted, so no operation fails. */
	w = &fk_take(a, WM_VIEW)->u.view;
	ck_assert_uint_eq(w->global, 2);
	ck_assert_uint_eq(w->own[0].generation, 0);
	ck_assert_uint_eq(fk_take(a, WM_ROUND)->u.round.rings[0].hosts, 2);
	ck_assert_uint_eq(fk_take(a, WM_COMMIT)->u.commit.view.global, 2);
	ck_assert_uint_eq(fk_status(&f).lost_members, 1);
	ck_assert_uint_eq(fk_status(&f).disconnected, 0);
	fk_vote(&p, 1);
	fk_vote(&q, 1);
	ck_assert_uint_eq(fk_count(b, WM_OP_START), 1);
}
END_TEST

START_TEST(one_death_causes_one_error)
{
	vote_all(1);
	fk_forget(&f);
	fk_cut(c, "reset");
	ck_assert_uint_eq(fk_take(a, WM_VIEW)->u.view.own[0].generation, 1);
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.seq, 1);
	fk_vote(&p, 1);
	fk_vote(&q, 1);
	fk_forget(&f);
	fk_tick(&f, 5200);
	/* A repeated call does not fail again when the lease has expired. */
	ck_assert_uint_eq(fk_take(a, WM_VIEW)->u.view.own[0].generation, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
	ck_assert_uint_eq(fk_take(a, WM_OP_START)->u.op_start.seq, 2);
}
END_TEST

START_TEST(last_member_gets_an_error_when_the_lease_expires)
{
	fk_leave(&q, WM_LEAVE_CLEAN);
	fk_cut(c, "reset");
	fk_vote(&p, 1);
	fk_forget(&f);
	fk_tick(&f, 5200);
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.code, WIRE_TOO_FEW_PEERS);
}
END_TEST

START_TEST(view_ids_grow)
{
	uint64_t v;

	vote_all(1);
	fk_cut(c, "reset");
	v = fk_take(a, WM_VIEW)->u.view.view_id;
	ck_assert_uint_gt(v, 0);
	c = fk_reconnect(c);
	r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
	fk_resumed(c);
	ck_assert_uint_gt(fk_take(a, WM_COMMIT)->u.commit.view.view_id, v);
}
END_TEST

START_TEST(other_groups_continue_during_a_disconnect)
{
	struct fk_peer x = fk_join(a, 1), y = fk_join(b, 1);

	topo_all();
	fk_vote(&x, 1);
	fk_vote(&y, 1);
	fk_forget(&f);
	fk_cut(c, "died");
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
	fk_report(a, 1, true);
	fk_report(b, 1, true);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 1);
	fk_vote(&x, 2);
	fk_vote(&y, 2);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

START_TEST(only_a_closed_connection_has_a_lease)
{
	struct wm_msg bye = {.type = WM_REFUSE};

	fk_send(c, &bye);
	ck_assert(!fk_present(&r));
	fk_close(b, "it was refused");
	ck_assert(!fk_present(&q));
	ck_assert_uint_eq(fk_status(&f).disconnected, 0);
}
END_TEST

START_TEST(silent_agent_has_no_lease)
{
	fk_tick_silent(&f, 3200, c);
	ck_assert(!fk_present(&r));
	ck_assert_uint_eq(fk_status(&f).lost_members, 1);
}
END_TEST

/* An agent that knows only the name of the run does not delay the others. */
START_TEST(agent_without_state_of_the_run_is_not_awaited)
{
	struct fk_host *d;

	fk_cut(c, "died");
	d = fk_reconnect_as(c, 0, true);
	fk_leave(&q, WM_LEAVE_CLEAN);
	ck_assert_int_eq(fk_info(&p).rank, 0);
	ck_assert_uint_eq(fk_count(a, WM_ROUND), 1);
	ck_assert(d->open);
}
END_TEST

START_TEST(status_names_the_disconnected_agents)
{
	fk_cut(c, "reset");
	fk_tick(&f, 1200);
	assert_contains(fk_waiting(&f),
		"waiting for 1 of 3 peers to come back: agent c disconnected for 1.2 s");
	ck_assert_uint_eq(fk_info(&r).disconnected_ns, 1200000000);
}
END_TEST

START_TEST(a_suspended_master_starts_the_lease_again)
{
	fk_tick(&f, 100);
	fk_cut(c, "reset");
	fk_tick(&f, 4700);
	f.now += UINT64_C(1000000000);
	fk_tick(&f, 4900);
	ck_assert(fk_present(&r));
	fk_tick(&f, 300);
	ck_assert(!fk_present(&r));
}
END_TEST

/* Breaks c's connection and lets c return at once. Only the first bytes from the master reach c. */
static void flap(uint32_t after_ms)
{
	fk_tick(&f, after_ms);
	fk_cut(c, "silent");
	if (!fk_present(&r))
		return;
	c = fk_reconnect(c);
	r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
	fk_resumed(c);
}

START_TEST(flapping_agent_loses_its_peers_in_the_end)
{
	const struct wm_op_abort *x;
	uint64_t since = f.now;
	uint32_t n;

	for (n = 0; fk_present(&r); n++) {
		ck_assert_uint_lt(n, 20);
		vote_all(n + 1);
		fk_forget(&f);
		flap(2800);
	}
	ck_assert_uint_eq(n, 8);
	ck_assert_uint_lt(f.now - since, UINT64_C(30000000000));
	x = &fk_take(a, WM_OP_ABORT)->u.op_abort;
	assert_contains(x->text,
		"of group 0: its agent is gone: its connection to the master broke 8 "
		"times within 19.6 s, and no call of its peers ended in that time");
	ck_assert(fk_present(&p) && fk_present(&q));
	ck_assert_uint_eq(fk_status(&f).disconnected, 0);
	fk_vote(&p, 100);
	fk_vote(&q, 100);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

/* The same happens if the host has a new agent each time. */
START_TEST(flapping_with_new_agents_counts_too)
{
	uint32_t n;

	for (n = 0; fk_present(&r); n++) {
		ck_assert_uint_lt(n, 20);
		fk_tick(&f, 1000);
		fk_cut(c, "died");
		if (!fk_present(&r))
			break;
		c = fk_reconnect_as(c, 0, true);
		r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
		fk_resumed(c);
	}
	ck_assert_uint_eq(n, 7);
}
END_TEST

START_TEST(operation_between_breaks_resets_their_count)
{
	uint64_t seq;
	uint32_t n;

	for (n = 1; n < 30; n++) {
		fk_forget(&f);
		vote_all(n);
		seq = fk_take(c, WM_OP_START)->u.op_start.seq;
		fk_report(a, seq, true);
		fk_report(b, seq, true);
		fk_report(c, seq, true);
		flap(2800);
	}
	ck_assert(fk_present(&r));
}
END_TEST

START_TEST(new_vote_between_breaks_resets_their_count)
{
	uint32_t n;

	for (n = 0; n < 30; n++) {
		topo_all();
		flap(2800);
	}
	for (n = 0; n < 30; n++) {
		fk_pending(&p);
		fk_pending(&q);
		fk_pending(&r);
		flap(2800);
	}
	ck_assert(fk_present(&r));
	for (n = 0; fk_present(&r); n++) { /* the agent sends the same vote each time */
		ck_assert_uint_lt(n, 20);
		fk_pending(&r);
		flap(2800);
	}
	ck_assert_uint_eq(n, 8);
}
END_TEST

/* The agent has received heartbeats, or it would have closed the connection. */
START_TEST(connection_that_lasts_resets_the_count_of_breaks)
{
	uint32_t n;

	for (n = 0; n < 30; n++)
		flap(6000);
	ck_assert(fk_present(&r));
}
END_TEST

START_TEST(quick_breaks_are_tolerated_until_a_lease_has_passed)
{
	uint32_t n;

	for (n = 0; n < 40; n++)
		flap(100);
	ck_assert(fk_present(&r));
	for (; n < 60 && fk_present(&r); n++)
		flap(100);
	ck_assert(!fk_present(&r));
}
END_TEST

START_TEST(waiting_members_are_told_of_the_breaks)
{
	const struct wm_waits *w;

	flap(2800);
	flap(2800);
	flap(2800);
	fk_vote(&p, 1);
	fk_vote(&q, 1);
	fk_forget(&f);
	fk_tick(&f, 2500);
	w = &fk_take(a, WM_WAITS)->u.waits;
	assert_contains(w->text, "1 of 3 peers: train@c pid 109 (its agent has lost the master 3 "
				 "times in a row)");
}
END_TEST

Suite *disconnect_suite(void)
{
	Suite *s = suite_create("disconnect");
	TCase *tc = tcase_create("disconnect");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, disconnect_aborts_operations_and_removes_no_peer);
	tcase_add_test(tc, nothing_continues_without_disconnected_agents);
	tcase_add_test(tc, topology_vote_waits_for_disconnected_peers);
	tcase_add_test(tc, accepting_round_is_dropped_during_a_disconnect);
	tcase_add_test(tc, the_lease_ends_with_a_loss);
	tcase_add_test(tc, one_death_causes_one_error);
	tcase_add_test(tc, last_member_gets_an_error_when_the_lease_expires);
	tcase_add_test(tc, view_ids_grow);
	tcase_add_test(tc, other_groups_continue_during_a_disconnect);
	tcase_add_test(tc, only_a_closed_connection_has_a_lease);
	tcase_add_test(tc, silent_agent_has_no_lease);
	tcase_add_test(tc, agent_without_state_of_the_run_is_not_awaited);
	tcase_add_test(tc, status_names_the_disconnected_agents);
	tcase_add_test(tc, a_suspended_master_starts_the_lease_again);
	tcase_add_test(tc, flapping_agent_loses_its_peers_in_the_end);
	tcase_add_test(tc, flapping_with_new_agents_counts_too);
	tcase_add_test(tc, operation_between_breaks_resets_their_count);
	tcase_add_test(tc, new_vote_between_breaks_resets_their_count);
	tcase_add_test(tc, connection_that_lasts_resets_the_count_of_breaks);
	tcase_add_test(tc, quick_breaks_are_tolerated_until_a_lease_has_passed);
	tcase_add_test(tc, waiting_members_are_told_of_the_breaks);
	suite_add_tcase(s, tc);
	return s;
}
