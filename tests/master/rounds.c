/* SPDX-License-Identifier: MIT
 *
 * The master's core: connection rounds and rings.
 */
#include <stdio.h>
#include <string.h>

#include "proto/shm_queue.h"
#include "tests/common/testlib.h"
#include "tests/master/many.h"
#include "tests/master/suites.h"

/* Connects n hosts "a", "b", ... with one accepted peer each in group 0. Empties the inboxes. */
static void run_of(size_t n)
{
	fk_run_of(&f, h, p, n);
	fk_forget(&f);
}

/* Returns the order of the last ring of group 0, starting at h[0], for example "abc". */
static const char *ring(size_t hosts)
{
	static char text[8];
	struct fk_host *at = h[0];
	size_t i, k;

	for (i = 0; i < hosts; i++) {
		struct cc_id next;

		text[i] = at->name[0];
		ck_assert_uint_eq(at->round.rings[0].hosts, hosts);
		ck_assert_uint_eq(at->round.rings[0].pos, i);
		next = at->round.rings[0].next.agent;
		for (k = 0; k < f.n_hosts && !cc_id_eq(&f.hosts[k]->id, &next); k++)
			;
		ck_assert_uint_lt(k, f.n_hosts);
		ck_assert(cc_id_eq(&f.hosts[k]->round.rings[0].prev, &at->id));
		at = f.hosts[k];
	}
	ck_assert_ptr_eq(at, h[0]);
	text[i] = '\0';
	return text;
}

/* Lets the first n hosts report success. */
static void report_all(size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		fk_round_report(h[i], NULL, NULL);
}

START_TEST(ring_follows_the_order_of_registration)
{
	struct ccm_peer_info info;
	struct fk_peer second;

	run_of(3);
	second = fk_join(h[0], 0);
	fk_manual(&f);
	vote_all(3);
	ck_assert_str_eq(ring(3), "abc");
	ck_assert_uint_eq(h[0]->round.rings[0].n_members, 2);
	ck_assert(cc_id_eq(&h[0]->round.rings[0].members[0], &p[0].id));
	ck_assert(cc_id_eq(&h[0]->round.rings[0].members[1], &second.id));
	info = fk_info(&second);
	ck_assert_int_eq(info.phase, CCM_PEER_REGISTERED);
	ck_assert_int_eq(info.state, CCM_CONNECTING_TO_PEERS);
	report_all(2);
	ck_assert_uint_eq(fk_count(h[0], WM_COMMIT), 0);
	fk_round_report(h[2], NULL, NULL);
	ck_assert_uint_eq(fk_take(h[0], WM_COMMIT)->u.commit.view.global, 4);
	info = fk_info(&second);
	ck_assert_int_eq(info.phase, CCM_PEER_ACCEPTED);
	ck_assert_int_eq(info.rank, 1);
	info = fk_info(&p[2]);
	ck_assert_int_eq(info.rank, 3);
}
END_TEST

START_TEST(one_round_has_the_rings_of_all_groups_of_an_agent)
{
	struct fk_peer x, y;

	run_of(2);
	x = fk_join(h[0], 1);
	y = fk_join(h[1], 2);
	fk_manual(&f);
	vote_all(2);
	ck_assert_uint_eq(h[0]->round.n_rings, 2);
	ck_assert_uint_eq(h[0]->round.rings[1].group, 1);
	ck_assert_uint_eq(h[0]->round.rings[1].hosts, 1);
	ck_assert(cc_id_is_zero(&h[0]->round.rings[1].prev));
	ck_assert(cc_id_eq(&h[0]->round.rings[1].members[0], &x.id));
	ck_assert_uint_eq(h[1]->round.rings[1].group, 2);
	ck_assert(cc_id_eq(&h[1]->round.rings[1].members[0], &y.id));
}
END_TEST

START_TEST(pool_size_is_the_largest_of_all_members)
{
	struct wm_msg msg = {.type = WM_JOIN};

	run_of(2);
	msg.u.join.peer = fk_id(&f);
	msg.u.join.pool_size = 16;
	fk_send(h[1], &msg);
	fk_manual(&f);
	vote_all(2);
	ck_assert_uint_eq(h[0]->round.rings[0].pool_size, 16);
	ck_assert_uint_eq(h[1]->round.rings[0].pool_size, 16);
}
END_TEST

START_TEST(loss_is_sent_before_aborts_and_the_ring_is_rewired)
{
	run_of(3);
	fk_manual(&f);
	fk_vote(&p[0], 1);
	fk_close(h[1], "reset by peer");
	ck_assert_int_eq(h[0]->inbox[0].type, WM_VIEW);
	ck_assert_int_eq(h[0]->inbox[1].type, WM_OP_ABORT);
	ck_assert_int_eq(h[0]->inbox[2].type, WM_ROUND);
	ck_assert_uint_eq(fk_take(h[0], WM_VIEW)->u.view.global, 2);
	ck_assert(!fk_take(h[0], WM_ROUND)->u.round.accept);
	ck_assert_str_eq(ring(2), "ac");
	ck_assert_int_eq(h[2]->inbox[0].type, WM_VIEW);
	ck_assert_int_eq(h[2]->inbox[1].type, WM_ROUND);
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	ck_assert(!fk_take(h[0], WM_COMMIT)->u.commit.accept);
	ck_assert_uint_eq(h[0]->epoch, 4);
}
END_TEST

static void lose_link(struct fk_host *at, const struct fk_host *other, bool inbound)
{
	struct wm_msg m = {.type = WM_LINK_LOST};

	m.u.link_lost.agent = other->id;
	m.u.link_lost.inbound = inbound;
	(void)snprintf(m.u.link_lost.text, sizeof m.u.link_lost.text, "reset");
	fk_send(at, &m);
}

/* One of two hosts has reported. Then the link to the other host was reset, and only this other
 * host knows. */
START_TEST(lost_link_aborts_operations_and_is_reopened)
{
	run_of(2);
	fk_manual(&f);
	fk_vote(&p[0], 1);
	fk_vote(&p[1], 1);
	fk_report(h[0], fk_take(h[0], WM_OP_START)->u.op_start.seq, true);
	lose_link(h[1], h[0], true);
	ck_assert_ptr_nonnull(strstr(fk_take(h[0], WM_OP_ABORT)->u.op_abort.text,
		"the link from host a to host b broke: reset"));
	ck_assert_ptr_nonnull(fk_take(h[1], WM_OP_ABORT));
	ck_assert(fk_take(h[0], WM_ROUND)->u.round.rings[0].reopen);
	ck_assert(fk_take(h[1], WM_ROUND)->u.round.rings[0].prev_reopens);
	ck_assert(!h[1]->round.rings[0].reopen);
	fk_forget(&f);
	/* The link in the other direction breaks, too, so the round begins again. */
	lose_link(h[0], h[1], true);
	ck_assert(fk_take(h[0], WM_ROUND)->u.round.rings[0].reopen);
	ck_assert(fk_take(h[1], WM_ROUND)->u.round.rings[0].reopen);
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[1], NULL, NULL);
	ck_assert_ptr_nonnull(fk_take(h[0], WM_COMMIT));
	fk_forget(&f);
	lose_link(h[0], h[1], false); /* no operation is running, so nothing is aborted */
	ck_assert_int_eq(h[0]->inbox[0].type, WM_ROUND);
	ck_assert(!fk_take(h[0], WM_ROUND)->u.round.rings[0].reopen);
}
END_TEST

/* The ring of group 1 leads from b to d, and after d's death to c. Group 0 has a working link from
 * b to c. */
START_TEST(working_link_is_not_reopened_for_a_new_ring)
{
	struct fk_peer more[3];
	size_t i;

	run_of(4);
	fk_leave(&p[3], WM_LEAVE_CLEAN);
	more[0] = fk_admit(h[1], 1, p, 3);
	memcpy(&p[3], &more[0], sizeof p[3]);
	more[1] = fk_admit(h[3], 1, p, 4);
	p[4] = more[1];
	more[2] = fk_admit(h[2], 1, p, 5);
	ck_assert(fk_present(&more[2]));
	fk_manual(&f);
	fk_forget(&f);
	lose_link(h[3], h[1], true);
	ck_assert(h[1]->round.rings[0].reopen || h[1]->round.rings[1].reopen);
	fk_close(h[3], "killed");
	for (i = 0; i < 2; i++) {
		ck_assert(cc_id_eq(&h[1]->round.rings[i].next.agent, &h[2]->id));
		ck_assert(!h[1]->round.rings[i].reopen);
	}
}
END_TEST

/* A newcomer may keep a link from a dropped round although the other end has lost this link. An
 * agent that was told of the loss may have died since. */
START_TEST(links_outside_the_old_rings_are_reopened)
{
	run_of(2);
	h[2] = fk_host(&f, "c", "10.0.0.3");
	p[2] = fk_join(h[2], 0);
	fk_manual(&f);
	fk_forget(&f);
	fk_topo(&p[0]);
	fk_topo(&p[1]);
	ck_assert(!fk_take(h[0], WM_ROUND)->u.round.rings[0].reopen);
	ck_assert(h[0]->round.rings[0].prev_reopens);
	ck_assert(fk_take(h[1], WM_ROUND)->u.round.rings[0].reopen);
	ck_assert(!h[1]->round.rings[0].prev_reopens);
	ck_assert(fk_take(h[2], WM_ROUND)->u.round.rings[0].reopen);
	ck_assert(h[2]->round.rings[0].prev_reopens);
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[1], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	ck_assert_ptr_nonnull(fk_take(h[2], WM_COMMIT));
	lose_link(h[0], h[1], false);
	ck_assert(!fk_take(h[1], WM_ROUND)->u.round.rings[0].reopen);
	ck_assert(!fk_take(h[2], WM_ROUND)->u.round.rings[0].reopen);
}
END_TEST

START_TEST(accepting_round_restarts_without_lost_peers)
{
	struct ccm_peer_info info;
	struct fk_peer x, late;
	uint64_t round;

	run_of(3);
	fk_manual(&f);
	x = fk_join(h[2], 0);
	vote_all(3);
	round = h[0]->round.round;
	fk_round_report(h[0], NULL, NULL);
	late = fk_join(h[1], 0);
	fk_leave(&p[1], WM_LEAVE_DIED);
	ck_assert_uint_gt(h[0]->round.round, round);
	ck_assert(h[0]->round.accept);
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[1], NULL, NULL); /* h[1] has only a newcomer now */
	fk_round_report(h[2], NULL, NULL);
	info = fk_info(&x);
	ck_assert_int_eq(info.phase, CCM_PEER_ACCEPTED);
	info = fk_info(&late);
	ck_assert_int_eq(info.phase, CCM_PEER_ACCEPTED);
	ck_assert(fk_take(h[0], WM_COMMIT)->u.commit.accept);
	ck_assert_uint_eq(fk_count(h[0], WM_COMMIT), 0);
}
END_TEST

START_TEST(ballot_is_answered_if_its_newcomer_is_lost)
{
	struct fk_peer x;

	run_of(2);
	fk_manual(&f);
	x = fk_join(h[1], 3);
	vote_all(2);
	fk_leave(&x, WM_LEAVE_CLEAN);
	ck_assert(fk_take(h[0], WM_COMMIT)->u.commit.accept);
	ck_assert_uint_eq(h[0]->epoch, 2);
	ck_assert(!fk_status(&f).round_active);
}
END_TEST

START_TEST(reports_on_old_rounds_are_ignored)
{
	struct wm_msg msg = {.type = WM_ROUND_REPORT};

	run_of(3);
	msg.u.round_report.round = 1;
	fk_send(h[0], &msg);
	fk_manual(&f);
	fk_leave(&p[2], WM_LEAVE_CLEAN);
	fk_send(h[0], &msg);
	fk_send(h[0], &msg);
	ck_assert(h[0]->open);
	fk_round_report(h[1], NULL, NULL);
	ck_assert(fk_status(&f).round_active);
	fk_round_report(h[0], NULL, NULL);
	ck_assert(!fk_status(&f).round_active);
}
END_TEST

START_TEST(report_on_a_round_not_begun_is_a_violation)
{
	struct wm_msg msg = {.type = WM_ROUND_REPORT};

	run_of(2);
	msg.u.round_report.round = 100;
	fk_send(h[0], &msg);
	assert_contains(h[0]->closed, "has not begun");
}
END_TEST

START_TEST(a_second_report_is_a_violation)
{
	struct wm_msg msg = {.type = WM_ROUND_REPORT};

	run_of(3);
	fk_manual(&f);
	fk_leave(&p[2], WM_LEAVE_CLEAN);
	msg.u.round_report.round = h[0]->round.round;
	fk_send(h[0], &msg);
	fk_send(h[0], &msg);
	assert_contains(h[0]->closed, "second report");
}
END_TEST

START_TEST(report_from_outside_the_round_is_a_violation)
{
	struct wm_msg msg = {.type = WM_ROUND_REPORT};

	run_of(3);
	fk_manual(&f);
	fk_leave(&p[2], WM_LEAVE_CLEAN);
	msg.u.round_report.round = h[0]->round.round;
	fk_send(h[2], &msg);
	assert_contains(h[2]->closed, "unasked report");
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
}
END_TEST

START_TEST(reported_failure_must_name_the_next_host)
{
	run_of(3);
	fk_manual(&f);
	(void)fk_join(h[0], 0);
	vote_all(3);
	fk_round_report(h[0], h[2], "timeout");
	assert_contains(h[0]->closed, "not next in any ring");
}
END_TEST

/* The text does not mention ports, and the code is that of the shortage. */
START_TEST(kick_names_an_agent_without_descriptors)
{
	static const char why[] = "10.0.0.9:1003: Too many open files: the limit of open files "
				  "(RLIMIT_NOFILE) of pcclagentd (pid 7) on host b is 1024";
	const struct wm_kick *k;

	run_of(2);
	h[2] = fk_host(&f, "x", "10.0.0.9");
	(void)fk_join(h[2], 0);
	fk_manual(&f);
	vote_all(2);
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	fk_round_short(h[1], h[2], true, why);
	k = &fk_take(h[2], WM_KICK)->u.kick;
	ck_assert_uint_eq(k->code, WIRE_OUT_OF_MEMORY);
	assert_contains(k->text, "no link from host b to host x: ");
	assert_contains(k->text, why);
}
END_TEST

START_TEST(an_unreachable_newcomer_is_kicked_with_the_reason)
{
	const struct wm_kick *k;
	struct fk_peer x;

	run_of(2);
	h[2] = fk_host(&f, "nat-host", "10.0.0.9");
	x = fk_join(h[2], 0);
	fk_manual(&f);
	vote_all(2);
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	fk_round_report(h[1], h[2], "10.0.0.9:1003: connection timed out");
	k = &fk_take(h[2], WM_KICK)->u.kick;
	ck_assert_uint_eq(k->code, WIRE_RANK_CONNECTION_FAILED);
	assert_contains(k->text,
		"host b could not reach host nat-host (10.0.0.9:1003: connection timed out): if no "
		"packets are lost, open the latter's ports or set --advertise (PCCL_ADVERTISE)");
	assert_contains(k->text, "a private one ends 30 s after its last process");
	/* Callers get the whole text, unless names are very long. */
	ck_assert_uint_lt(strlen(k->text) + 25, SHM_TEXT);
	ck_assert(!fk_present(&x));
	ck_assert(h[2]->open);
	/* The ballot of the others is answered, and nothing has changed. */
	ck_assert(fk_take(h[0], WM_COMMIT)->u.commit.accept);
	ck_assert_uint_eq(h[0]->epoch, 2);
	ck_assert(!fk_status(&f).round_active);
	/* The newcomer may try again, but only after some time, because all had to wait. */
	x = fk_join(h[2], 0);
	fk_tick(&f, 4500);
	fk_forget(&f);
	vote_all(2);
	ck_assert_uint_eq(h[0]->round.rings[0].hosts, 3);
}
END_TEST

/* Ports are not the cause. Advertised addresses do not show what an agent can connect to. */
START_TEST(kick_names_hosts_without_a_common_address_family)
{
	static const char *const expected[] = {
		"host a could not reach host six ([fd00::9]:1002: Network is unreachable): host a "
		"has only IPv4 addresses, and host six only IPv6 ones: give the hosts of a run "
		"addresses of one family",
		"host six could not reach host a (10.0.0.1:1001: Network is unreachable): host six "
		"has only IPv6 addresses, and host a only IPv4 ones: ",
		"host six could not reach host a (10.0.0.1:1001: Network is unreachable): if no "
		"packets are lost"};
	struct wm_msg hello;

	run_of(1);
	h[1] = fk_connect(&f, "six", "fd00::9");
	hello = fk_hello(h[1]);
	if (_i == 2) {
		hello.u.hello.advertised = true;
		ck_assert_int_eq(cc_addr_parse("fd00::9", 0, &hello.u.hello.addrs[0]), 0);
		hello.u.hello.n_addrs = 1;
	}
	fk_send(h[1], &hello);
	(void)fk_take(h[1], WM_HELLO_ACK);
	(void)fk_join(h[1], 0);
	fk_manual(&f);
	vote_all(1);
	fk_round_report(h[_i == 0], NULL, NULL);
	fk_round_report(h[_i > 0], h[_i == 0],
		_i == 0 ? "[fd00::9]:1002: Network is unreachable"
			: "10.0.0.1:1001: Network is unreachable");
	assert_contains(fk_take(h[1], WM_KICK)->u.kick.text, expected[_i]);
}
END_TEST

/* The cause comes before the advice, and both fit into the SHM_TEXT bytes that callers get. */
START_TEST(long_reasons_are_cut_between_addresses)
{
	char text[SHM_TEXT];

	run_of(2);
	h[2] = fk_host(&f, "a-host-with-a-long-name", "10.0.0.9");
	(void)fk_join(h[2], 0);
	fk_manual(&f);
	vote_all(2);
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	fk_round_report(h[1], h[2],
		"[2001:db8:1234:5678:9abc:def0:1234:5678]:48150: no answer in time; "
		"192.0.2.111:48150: no answer in time; 198.51.100.7:48150: Connection refused");
	memcpy(text, fk_take(h[2], WM_KICK)->u.kick.text, sizeof text - 1);
	text[sizeof text - 1] = 0;
	assert_contains(text,
		"host b could not reach host a-host-with-a-long-name "
		"([2001:db8:1234:5678:9abc:def0:1234:5678]:48150: no answer in time; "
		"...): if no packets are lost, open the latter's ports or set --advertise "
		"(PCCL_ADVERTISE) and restart its agent");
}
END_TEST

START_TEST(a_newcomer_that_cannot_reach_the_others_is_kicked)
{
	struct fk_peer x, y;

	run_of(2);
	h[2] = fk_host(&f, "new", "10.0.0.9");
	x = fk_join(h[2], 0);
	y = fk_join(h[0], 0); /* on a member's host, so it is not suspected */
	fk_manual(&f);
	vote_all(2);
	report_all(2);
	fk_round_report(h[2], h[0], "refused");
	assert_contains(fk_take(h[2], WM_KICK)->u.kick.text,
		"host new could not reach host a (refused): if no packets are lost, open the "
		"latter's ports or set --advertise (PCCL_ADVERTISE)");
	ck_assert(!fk_present(&x));
	ck_assert(fk_present(&y));
	ck_assert_uint_eq(h[0]->round.rings[0].hosts, 2);
	ck_assert(h[0]->round.accept);
}
END_TEST

START_TEST(unreachable_one_of_two_newcomers_is_kicked)
{
	struct fk_peer x, y;

	run_of(1);
	h[1] = fk_host(&f, "b", "10.0.0.2");
	h[2] = fk_host(&f, "c", "10.0.0.3");
	x = fk_join(h[1], 0);
	y = fk_join(h[2], 0);
	fk_manual(&f);
	fk_topo(&p[0]);
	ck_assert_str_eq(ring(3), "abc");
	fk_round_report(h[1], h[2], "refused");
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	ck_assert(fk_present(&x));
	ck_assert(!fk_present(&y));
}
END_TEST

START_TEST(newcomers_continue_if_the_only_member_is_lost)
{
	struct fk_peer x;

	/* The only accepted peer is lost in the round that admits another one. */
	run_of(1);
	h[1] = fk_host(&f, "b", "10.0.0.2");
	x = fk_join(h[1], 0);
	fk_manual(&f);
	fk_topo(&p[0]);
	fk_close(h[0], "gone");
	ck_assert_uint_eq(h[1]->round.rings[0].hosts, 1);
	fk_round_report(h[1], NULL, NULL);
	ck_assert(fk_present(&x));
	ck_assert_uint_eq(fk_status(&f).accepted, 1);
}
END_TEST

/* Lets the link from a to b fail. All hosts are members. */
static void fail_ab(void)
{
	fk_manual(&f);
	fk_leave(&p[3], WM_LEAVE_CLEAN);
	ck_assert_str_eq(ring(3), "abc");
	fk_round_report(h[1], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	fk_round_report(h[0], h[1], "refused");
}

START_TEST(failed_link_between_members_changes_the_order)
{
	run_of(4);
	fail_ab();
	ck_assert_str_eq(ring(3), "acb");
	assert_contains(f.log, "host a could not reach host b");
	report_all(3);
	ck_assert_uint_eq(fk_take(h[0], WM_COMMIT)->u.commit.view.global, 3);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

START_TEST(a_failed_pair_is_avoided_in_both_directions)
{
	run_of(5);
	fk_manual(&f);
	fk_leave(&p[4], WM_LEAVE_CLEAN);
	ck_assert_str_eq(ring(4), "abcd");
	report_all(2);
	fk_round_report(h[3], NULL, NULL);
	fk_round_report(h[2], h[3], "refused");
	ck_assert_str_eq(ring(4), "acbd"); /* abdc would use the pair in the other direction */
}
END_TEST

/* A firewall may close the ports of only one of the two hosts. */
START_TEST(other_direction_is_tried_if_no_ring_avoids_the_pair)
{
	run_of(4);
	fail_ab();
	ck_assert_str_eq(ring(3), "acb");
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	fk_tick(&f, 1900); /* b may still report: this is within the time for any link */
	fk_round_report(h[1], NULL, NULL);
	ck_assert(!fk_status(&f).round_active);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

/* A peer of a leaves. The failed link may be tried again, but a link that was never tried comes
 * first. */
START_TEST(other_direction_comes_before_a_link_that_failed)
{
	struct fk_peer more;

	run_of(4);
	more = fk_admit(h[0], 0, p, 4);
	fail_ab();
	ck_assert_str_eq(ring(3), "acb");
	fk_leave(&more, WM_LEAVE_CLEAN);
	ck_assert_str_eq(ring(3), "acb");
	report_all(3);
	ck_assert(!fk_status(&f).round_active);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

START_TEST(failed_pairs_are_remembered_until_membership_changes)
{
	struct fk_peer x;

	run_of(4);
	fail_ab();
	report_all(3);
	x = fk_join(h[2], 0);
	vote_all(3);
	ck_assert_str_eq(ring(3), "acb");
	report_all(3);
	fk_leave(&x, WM_LEAVE_CLEAN);
	ck_assert_str_eq(ring(3), "acb");
	report_all(3);

	x = fk_join(h[1], 0); /* changes the membership on b */
	vote_all(3);
	ck_assert_str_eq(ring(3), "acb");
	report_all(3);
	(void)fk_join(h[2], 0);
	vote_all(2);
	fk_topo(&x);
	fk_topo(&p[2]);
	ck_assert_str_eq(ring(3), "abc");
}
END_TEST

/* A host that connected to the old addresses may have met another agent there, or no agent. */
START_TEST(host_with_new_addresses_is_tried_again)
{
	struct wm_msg msg = {.type = WM_ADDRESSES};
	uint64_t round;

	run_of(3);
	fk_manual(&f);
	fk_leave(&p[2], WM_LEAVE_CLEAN);
	round = h[0]->round.round;
	fk_round_report(h[0], h[1], "refused: this is agent 123");
	msg.u.addresses = (struct wm_addresses){.port_p2p = 48153};
	fk_send(h[1], &msg);
	fk_round_report(h[1], NULL, NULL);
	ck_assert_uint_gt(h[0]->round.round, round);
	ck_assert_str_eq(ring(2), "ab");
	ck_assert_uint_eq(h[0]->round.rings[0].next.port, 48153);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	/* A host is tried again only once for each change of its addresses. */
	fk_round_report(h[1], NULL, NULL);
	fk_round_report(h[0], h[1], "refused");
	ck_assert(!fk_present(&p[1]));
}
END_TEST

START_TEST(failure_of_the_link_that_closes_the_ring_counts)
{
	run_of(4);
	fk_manual(&f);
	fk_leave(&p[3], WM_LEAVE_CLEAN);
	report_all(2);
	fk_round_report(h[2], h[0], "refused");
	ck_assert_str_eq(ring(3), "acb");
}
END_TEST

START_TEST(new_order_without_newcomers_needs_a_round)
{
	/* In the ring abcd, a cannot reach b, and the newcomer d cannot be reached. */
	run_of(3);
	h[3] = fk_host(&f, "d", "10.0.0.4");
	fk_manual(&f);
	(void)fk_join(h[3], 0);
	vote_all(3);
	fk_round_report(h[0], h[1], "refused");
	fk_round_report(h[1], NULL, NULL);
	fk_round_report(h[2], h[3], "refused");
	fk_round_report(h[3], NULL, NULL);
	ck_assert_uint_eq(fk_count(h[3], WM_KICK), 1);
	ck_assert_uint_eq(fk_count(h[0], WM_COMMIT), 0);
	ck_assert_str_eq(ring(3), "acb");
	ck_assert(h[0]->round.accept);
}
END_TEST

START_TEST(loss_without_newcomers_needs_a_round)
{
	/* b is lost, and only b's vote was missing. The newcomer d cannot be reached. */
	run_of(3);
	h[3] = fk_host(&f, "d", "10.0.0.4");
	fk_manual(&f);
	(void)fk_join(h[3], 0);
	fk_topo(&p[0]);
	fk_topo(&p[2]);
	fk_close(h[1], "gone");
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], h[3], "refused");
	fk_round_report(h[3], NULL, NULL);
	ck_assert_uint_eq(fk_count(h[0], WM_COMMIT), 0);
	ck_assert_str_eq(ring(2), "ac");
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	ck_assert(fk_take(h[0], WM_COMMIT)->u.commit.accept);
}
END_TEST

START_TEST(member_is_kicked_if_no_ring_is_possible)
{
	run_of(3);
	fk_manual(&f);
	fk_leave(&p[2], WM_LEAVE_CLEAN);
	ck_assert_str_eq(ring(2), "ab");
	fk_round_report(h[1], NULL, NULL);
	fk_round_report(h[0], h[1], "refused");
	ck_assert(fk_present(&p[0]));
	ck_assert(!fk_present(&p[1]));
	assert_contains(fk_take(h[1], WM_KICK)->u.kick.text, "no ring of group 0 is possible: "
							     "host a could not reach host b");
	ck_assert_uint_eq(fk_take(h[0], WM_VIEW)->u.view.global, 2);
	ck_assert_uint_eq(fk_take(h[0], WM_VIEW)->u.view.global, 1);
	fk_round_report(h[0], NULL, NULL);
	ck_assert_uint_eq(fk_take(h[0], WM_COMMIT)->u.commit.view.global, 1);
}
END_TEST

/* Makes c unreachable for each host that comes before it in the ring. Each round takes `ms`
 * milliseconds. Returns the number of rounds until c is kicked. */
static size_t exclude_c(uint32_t ms)
{
	size_t rounds, i, k;

	run_of(7);
	fk_manual(&f);
	fk_leave(&p[6], WM_LEAVE_CLEAN);
	for (rounds = 0; fk_present(&p[2]); rounds++) {
		ck_assert_uint_lt(rounds, 6);
		fk_tick(&f, ms);
		for (i = k = 0; i < 6; i++)
			if (!cc_id_eq(&h[i]->round.rings[0].next.agent, &h[2]->id))
				fk_round_report(h[i], NULL, NULL);
			else
				k = i;
		fk_round_report(h[k], h[2], "refused");
	}
	ck_assert_uint_eq(fk_status(&f).accepted, 5);
	ck_assert_uint_eq(fk_status(&f).kicks, 1);
	return rounds;
}

START_TEST(orders_are_tried_while_rounds_are_quick)
{
	ck_assert_uint_eq(exclude_c(0), 5); /* then no other order is left */
	assert_contains(
		fk_take(h[2], WM_KICK)->u.kick.text, "no ring of group 0 is possible: host ");
}
END_TEST

START_TEST(orders_are_not_tried_for_longer_than_10_s)
{
	size_t i;

	/* A fifth round would end after 11.5 s. */
	ck_assert_uint_eq(exclude_c(2300), 4);
	assert_contains(fk_take(h[2], WM_KICK)->u.kick.text,
		"no ring of group 0 was found in 9.2 s: host ");
	/* The time starts again with the commit. */
	for (i = 0; i < 6; i++)
		if (i != 2)
			fk_round_report(h[i], NULL, NULL);
	fk_tick(&f, 3000);
	fk_leave(&p[5], WM_LEAVE_CLEAN);
	fk_tick(&f, 2300);
	fk_round_report(h[1], NULL, NULL);
	fk_round_report(h[3], NULL, NULL);
	fk_round_report(h[4], NULL, NULL);
	fk_round_report(h[0], h[1], "refused");
	ck_assert_uint_eq(fk_status(&f).kicks, 1);
}
END_TEST

/* Checks whether h[i] and h[k] reach each other. No host reaches c, except a and e if `two` is
 * true. */
static bool reach(size_t i, size_t k, bool two)
{
	size_t x = i == 2 ? k : i;

	return (i != 2 && k != 2) || (two && (x == 0 || x == 4));
}

static const char *probed(size_t i, size_t k, bool two)
{
	return reach(i, k, two) ? NULL : "no connection in time";
}

/* Advances the time by `ms`. Then the six hosts answer their probes and report on their links. */
static void answer_all(uint32_t ms, bool two)
{
	size_t i, k;

	fk_tick(&f, ms);
	for (i = 0; i < 6; i++) {
		if (i != 2 && fk_count(h[i], WM_PROBE))
			fk_probed(h[i], h[2], probed(i, 2, two));
		/* b's link has failed in the round. */
		if (i != 1 && i != 2 && fk_count(h[2], WM_PROBE))
			fk_probed(h[2], h[i], probed(2, i, two));
	}
	for (i = 0; i < 6; i++) {
		for (k = 0; !cc_id_eq(&h[k]->id, &h[i]->round.rings[0].next.agent); k++)
			;
		fk_round_report(h[i], reach(i, k, two) ? NULL : h[k], "no connection in time");
	}
}

/* While the second order is tried, all hosts find out whether they reach c. */
START_TEST(unreachable_member_is_kicked_after_two_rounds)
{
	size_t i;

	run_of(7);
	fk_manual(&f);
	for (i = 0; i < 6; i++)
		h[i]->auto_probed = false;
	fk_leave(&p[6], WM_LEAVE_CLEAN);
	answer_all(2300, _i == 0);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	answer_all(2300, _i == 0);
	ck_assert_int_eq(fk_present(&p[2]), _i == 0);
	if (_i == 0) {
		ck_assert_str_eq(ring(6) + 4, "ec");
		report_all(6);
		ck_assert(!fk_status(&f).round_active);
	}
	ck_assert_uint_eq(fk_status(&f).kicks, (uint64_t)_i);
}
END_TEST

/* Host a reaches neither b nor c, but the ring adbce is possible. */
START_TEST(two_failed_pairs_leave_time_for_a_third_order)
{
	size_t i, to;

	run_of(6);
	fk_manual(&f);
	fk_leave(&p[5], WM_LEAVE_CLEAN);
	for (to = 1; to <= 2; to++) {
		ck_assert(cc_id_eq(&h[0]->round.rings[0].next.agent, &h[to]->id));
		fk_tick(&f, 2300);
		for (i = 1; i < 5; i++)
			fk_round_report(h[i], NULL, NULL);
		fk_round_report(h[0], h[to], "no connection in time");
	}
	ck_assert_str_eq(ring(5), "adbce");
	report_all(5);
	ck_assert(!fk_status(&f).round_active);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

START_TEST(unreachable_newcomer_is_kicked_after_one_round)
{
	struct fk_peer x;
	size_t i;

	run_of(6);
	h[6] = fk_host(&f, "new", "10.0.0.9");
	x = fk_join(h[6], 0);
	fk_manual(&f);
	vote_all(6);
	fk_tick(&f, 2000);
	for (i = 0; i < 7; i++)
		if (cc_id_eq(&h[i]->round.rings[0].next.agent, &h[6]->id))
			fk_round_report(h[i], h[6], "timeout");
		else
			fk_round_report(h[i], NULL, NULL);
	ck_assert(!fk_present(&x));
	ck_assert(fk_take(h[0], WM_COMMIT)->u.commit.accept);
}
END_TEST

START_TEST(agents_that_do_not_report_are_kicked)
{
	run_of(3);
	fk_manual(&f);
	fk_leave(&p[2], WM_LEAVE_CLEAN);
	fk_round_report(h[0], NULL, NULL);
	fk_tick(&f, 4900);
	ck_assert(h[1]->open);
	fk_tick(&f, 300);
	ck_assert(!h[1]->open);
	assert_contains(h[1]->closed, "did not report on connection round");
	assert_contains(fk_take(h[1], WM_KICK)->u.kick.text, "within 5000 ms");
	ck_assert_uint_eq(h[0]->round.rings[0].hosts, 1);
	fk_round_report(h[0], NULL, NULL);
	ck_assert(!fk_status(&f).round_active);
}
END_TEST

/* The bound grows by five times the two longest paths. Each path counts for at most two seconds. */
START_TEST(reports_over_long_paths_may_take_longer)
{
	run_of(3);
	h[0]->path_ms = 100;
	h[1]->path_ms = 700;
	h[2]->path_ms = 9000;
	fk_tick(&f, 100);
	fk_manual(&f);
	fk_leave(&p[2], WM_LEAVE_CLEAN);
	(void)fk_join(h[2], 0);
	fk_round_report(h[0], NULL, NULL);
	fk_tick(&f, 5000 + 5 * (700 + 2000));
	ck_assert(h[1]->open);
	fk_tick(&f, 300);
	ck_assert(!h[1]->open);
	assert_contains(fk_take(h[1], WM_KICK)->u.kick.text, "within 18500 ms");
}
END_TEST

START_TEST(operator_sets_the_time_for_reports)
{
	struct ccm_config cfg = {.run = {{1}},
		.run_key = {{2}},
		.segment_max = 4096,
		.bounds = {.ms = {[CC_BOUND_NEW_LINK] = 4000}}};

	fk_free(&f);
	fk_init(&f, &cfg);
	run_of(2);
	fk_manual(&f);
	fk_leave(&p[1], WM_LEAVE_CLEAN);
	fk_tick(&f, 8900);
	ck_assert(h[0]->open);
	fk_tick(&f, 300);
	assert_contains(fk_take(h[0], WM_KICK)->u.kick.text, "within 9000 ms");
}
END_TEST

START_TEST(topology_vote_during_a_rewiring_is_answered_later)
{
	struct ccm_peer_info info;
	struct fk_peer x;

	run_of(3);
	fk_manual(&f);
	x = fk_join(h[0], 0);
	fk_leave(&p[2], WM_LEAVE_CLEAN);
	vote_all(2);
	info = fk_info(&p[0]);
	ck_assert_int_eq(info.state, CCM_VOTE_NO_NEW_PEERS_ESTABLISH_P2P_CONNECTIONS);
	ck_assert(!h[0]->round.accept);
	report_all(2);
	ck_assert(!fk_take(h[0], WM_COMMIT)->u.commit.accept);
	ck_assert(h[0]->round.accept);
	report_all(2);
	ck_assert(fk_take(h[0], WM_COMMIT)->u.commit.accept);
	info = fk_info(&x);
	ck_assert_int_eq(info.phase, CCM_PEER_ACCEPTED);
}
END_TEST

Suite *rounds_suite(void)
{
	Suite *s = suite_create("rounds");
	TCase *tc = tcase_create("rounds");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, ring_follows_the_order_of_registration);
	tcase_add_test(tc, one_round_has_the_rings_of_all_groups_of_an_agent);
	tcase_add_test(tc, pool_size_is_the_largest_of_all_members);
	tcase_add_test(tc, lost_link_aborts_operations_and_is_reopened);
	tcase_add_test(tc, working_link_is_not_reopened_for_a_new_ring);
	tcase_add_test(tc, links_outside_the_old_rings_are_reopened);
	tcase_add_test(tc, loss_is_sent_before_aborts_and_the_ring_is_rewired);
	tcase_add_test(tc, accepting_round_restarts_without_lost_peers);
	tcase_add_test(tc, ballot_is_answered_if_its_newcomer_is_lost);
	tcase_add_test(tc, reports_on_old_rounds_are_ignored);
	tcase_add_test(tc, report_on_a_round_not_begun_is_a_violation);
	tcase_add_test(tc, a_second_report_is_a_violation);
	tcase_add_test(tc, report_from_outside_the_round_is_a_violation);
	tcase_add_test(tc, reported_failure_must_name_the_next_host);
	tcase_add_test(tc, an_unreachable_newcomer_is_kicked_with_the_reason);
	tcase_add_test(tc, kick_names_an_agent_without_descriptors);
	tcase_add_loop_test(tc, kick_names_hosts_without_a_common_address_family, 0, 3);
	tcase_add_test(tc, long_reasons_are_cut_between_addresses);
	tcase_add_test(tc, a_newcomer_that_cannot_reach_the_others_is_kicked);
	tcase_add_test(tc, unreachable_one_of_two_newcomers_is_kicked);
	tcase_add_test(tc, newcomers_continue_if_the_only_member_is_lost);
	tcase_add_test(tc, failed_link_between_members_changes_the_order);
	tcase_add_test(tc, a_failed_pair_is_avoided_in_both_directions);
	tcase_add_test(tc, other_direction_is_tried_if_no_ring_avoids_the_pair);
	tcase_add_test(tc, other_direction_comes_before_a_link_that_failed);
	tcase_add_test(tc, failed_pairs_are_remembered_until_membership_changes);
	tcase_add_test(tc, host_with_new_addresses_is_tried_again);
	tcase_add_test(tc, failure_of_the_link_that_closes_the_ring_counts);
	tcase_add_test(tc, new_order_without_newcomers_needs_a_round);
	tcase_add_test(tc, loss_without_newcomers_needs_a_round);
	tcase_add_test(tc, member_is_kicked_if_no_ring_is_possible);
	tcase_add_test(tc, orders_are_tried_while_rounds_are_quick);
	tcase_add_test(tc, orders_are_not_tried_for_longer_than_10_s);
	tcase_add_loop_test(tc, unreachable_member_is_kicked_after_two_rounds, 0, 2);
	tcase_add_test(tc, two_failed_pairs_leave_time_for_a_third_order);
	tcase_add_test(tc, unreachable_newcomer_is_kicked_after_one_round);
	tcase_add_test(tc, agents_that_do_not_report_are_kicked);
	tcase_add_test(tc, reports_over_long_paths_may_take_longer);
	tcase_add_test(tc, operator_sets_the_time_for_reports);
	tcase_add_test(tc, topology_vote_during_a_rewiring_is_answered_later);
	suite_add_tcase(s, tc);
	return s;
}
