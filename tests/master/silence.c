/* SPDX-License-Identifier: MIT
 *
 * The master's core: members that receive nothing from each other any more, and a master that was
 * suspended.
 */
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/fake.h"
#include "tests/master/suites.h"

static const struct ccm_config config = {
	.run = {{1}}, .run_key = {{2}}, .segment_max = 4096, .journal = true};

static struct fk f;
static struct fk_host *h[4];
static struct fk_peer p[4];

static void setup(void)
{
	fk_init(&f, &config);
}

static void teardown(void)
{
	fk_free(&f);
}

/* Connects n hosts "a", "b", ... with one accepted peer each in group 0. */
static void run_of(size_t n)
{
	fk_run_of(&f, h, p, n);
	fk_tick(&f, 100);
	fk_forget(&f);
}

/* Returns the order of the ring that the master sent last, starting at host a. */
static const char *ring(size_t n)
{
	static char text[5];
	size_t i, k, at = 0;

	for (i = 0; i < n; i++) {
		text[i] = h[at]->name[0];
		ck_assert_uint_eq(h[at]->round.rings[0].hosts, n);
		k = 0;
		while (k < 4 && h[k] && !cc_id_eq(&h[k]->id, &h[at]->round.rings[0].next.agent))
			k++;
		ck_assert(k < 4 && h[k]);
		at = k;
	}
	text[i] = '\0';
	return text;
}

static uint64_t start_op(size_t n)
{
	size_t i;

	fk_forget(&f);
	for (i = 0; i < n; i++)
		fk_vote(&p[i], 1);
	return fk_take(h[0], WM_OP_START)->u.op_start.seq;
}

/* Starts an operation. Then h[of] reports that its link with h[with] fell silent. All get an abort,
 * and all try again. */
static void fall_silent(size_t n, size_t of, size_t with)
{
	struct wm_msg msg = {.type = WM_OP_REPORT};
	size_t i;

	msg.u.op_report.seq = start_op(n);
	msg.u.op_report.suspect = h[with]->id;
	msg.u.op_report.silent = true;
	strcpy(msg.u.op_report.text, "not a word");
	fk_send(h[of], &msg);
	for (i = 0; i < n; i++) {
		ck_assert_uint_eq(fk_count(h[i], WM_OP_ABORT), 1);
		fk_vote(&p[i], 1);
	}
}

static void report_all(size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		fk_round_report(h[i], NULL, NULL);
}

START_TEST(silent_link_is_avoided_at_once)
{
	run_of(4);
	fk_manual(&f);
	/* either host may report the silence */
	fall_silent(4, _i == 0 ? 1 : 2, _i == 0 ? 2 : 1);
	ck_assert_str_eq(ring(4), "abdc");
	report_all(4);
	ck_assert_uint_eq(fk_count(h[0], WM_OP_START), 1);
	ck_assert_uint_eq(fk_count(h[0], WM_OP_ABORT), 1);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

/* Lets h[of] start an operation speculatively and report that its link with h[with] fell silent. No
 * other host has voted. */
static void fall_silent_spec(size_t n, size_t of, size_t with)
{
	struct wm_msg vote = {.type = WM_OP_VOTE}, report = {.type = WM_OP_REPORT};
	uint64_t seq = start_op(n), next;
	struct cc_id id = p[of].id;
	size_t i;

	for (i = 0; i < n; i++)
		fk_report(h[i], seq, true);
	next = fk_take(h[of], WM_OP_DONE)->u.op_done.next;
	ck_assert_uint_gt(next, seq);
	vote.u.op_vote = (struct wm_op_vote){
		.tag = 1, .params = fk_params, .n_peers = 1, .peers = &id, .spec_seq = next};
	vote.u.op_vote.generation = fk_generation(h[of], 0);
	fk_send(h[of], &vote);
	report.u.op_report = (struct wm_op_report){
		.seq = next, .suspect = h[with]->id, .silent = true, .text = "not a word"};
	fk_send(h[of], &report);
}

START_TEST(silent_link_of_a_speculative_start_is_avoided)
{
	run_of(4);
	fk_manual(&f);
	fall_silent_spec(4, 1, 2);
	ck_assert_str_eq(ring(4), "abdc");
	report_all(4);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	fk_vote(&p[0], 1);
	fk_vote(&p[2], 1);
	fk_vote(&p[3], 1);
	ck_assert_uint_eq(fk_count(h[0], WM_OP_START), 1);
}
END_TEST

START_TEST(one_host_is_kicked_soon_if_no_order_avoids_the_link)
{
	const struct wm_kick *k;
	size_t i;

	run_of(3);
	fk_manual(&f);
	fall_silent(3, 1, 2);
	ck_assert_str_eq(ring(3), "abc");
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	fk_tick(&f, 1100);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	fk_tick(&f, 200);
	ck_assert_uint_eq(fk_status(&f).kicks, 1);
	ck_assert(!fk_present(&p[2]));
	k = &fk_take(h[2], WM_KICK)->u.kick;
	ck_assert_uint_eq(k->code, WIRE_RANK_CONNECTION_LOST);
	assert_contains(k->text, "host b reports a failure with host c: not a word");
	ck_assert_str_eq(ring(2), "ab");
	report_all(2);
	/* The others wait for the kick, and get no second error. */
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(fk_count(h[i], WM_OP_ABORT), 1);
		ck_assert_uint_eq(fk_count(h[i], WM_OP_START), 1 + (i > 0));
	}
	fk_report(h[0], fk_take(h[0], WM_OP_START)->u.op_start.seq, true);
	ck_assert(h[1]->open);
}
END_TEST

START_TEST(new_link_replaces_a_silent_link)
{
	run_of(3);
	fk_manual(&f);
	fall_silent(3, 1, 2);
	report_all(3);
	ck_assert_uint_eq(fk_count(h[0], WM_OP_START), 1);
	fk_report(h[0], fk_take(h[0], WM_OP_START)->u.op_start.seq, false);
	/* The pair is not avoided. So the time for the round is the usual one. */
	ck_assert_str_eq(ring(3), "abc");
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	fk_tick(&f, 1500);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	fk_round_report(h[1], NULL, NULL);
	ck_assert(!fk_status(&f).round_active);
}
END_TEST

START_TEST(report_during_evict_delay_is_too_late)
{
	struct ccm_config cfg = config;

	fk_free(&f);
	cfg.evict_delay_ms = 250;
	fk_init(&f, &cfg);
	run_of(3);
	fk_manual(&f);
	fall_silent(3, 1, 2);
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	fk_tick(&f, 1300);
	fk_round_report(h[1], NULL, NULL);
	ck_assert(h[1]->open);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	fk_tick(&f, 300);
	ck_assert(!fk_present(&p[2]));
	ck_assert(fk_present(&p[1]));
}
END_TEST

START_TEST(no_kick_if_the_master_has_lost_the_silent_host)
{
	run_of(3);
	fk_manual(&f);
	fall_silent(3, 1, 2);
	fk_round_report(h[0], NULL, NULL);
	fk_close(h[2], "silent");
	ck_assert_str_eq(ring(2), "ab");
	fk_tick(&f, 2000);
	report_all(2);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	ck_assert(fk_present(&p[0]) && fk_present(&p[1]));
}
END_TEST

START_TEST(all_peers_of_a_host_are_kicked_together)
{
	struct fk_peer more;

	run_of(3);
	more = fk_join(h[2], 0);
	fk_topo(&p[0]);
	fk_topo(&p[1]);
	fk_topo(&p[2]);
	fk_manual(&f);
	fk_vote(&more, 1);
	fall_silent(3, 1, 2);
	fk_vote(&more, 1);
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	fk_round_report(h[1], h[2], "refused"); /* before the link times out */
	ck_assert(!fk_present(&p[2]) && !fk_present(&more));
	report_all(2);
	ck_assert_uint_eq(fk_count(h[1], WM_OP_ABORT), 1);
	ck_assert_uint_eq(fk_count(h[1], WM_OP_START), 2);
}
END_TEST

static const struct wm_ring *ring_of(const struct fk_host *host, uint32_t group)
{
	uint32_t i = 0;

	while (i < host->round.n_rings && host->round.rings[i].group != group)
		i++;
	ck_assert_uint_lt(i, host->round.n_rings);
	return &host->round.rings[i];
}

START_TEST(failed_pair_of_one_group_is_avoided_in_other_groups)
{
	struct fk_peer others[4];
	size_t i;

	run_of(4);
	fk_leave(&p[3], WM_LEAVE_CLEAN);
	for (i = 0; i < 4; i++)
		others[i] = fk_join(h[i], 1);
	for (i = 0; i < 3; i++)
		fk_topo(&p[i]);
	ck_assert(fk_present(&others[3]));
	fk_manual(&f);
	fall_silent(3, 1, 2);
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	fk_round_report(h[3], NULL, NULL);
	fk_round_report(h[1], h[2], "refused");
	ck_assert_uint_eq(fk_status(&f).kicks, 1);
	ck_assert_uint_eq(ring_of(h[1], 1)->hosts, 4);
	ck_assert(!cc_id_eq(&ring_of(h[1], 1)->next.agent, &h[2]->id));
	ck_assert(!cc_id_eq(&ring_of(h[2], 1)->next.agent, &h[1]->id));
}
END_TEST

/* ---- the master is suspended ---- */

static void stand_still(void)
{
	size_t i;

	f.now += UINT64_C(5500000000);
	fk_tick_silent(&f, 100, NULL);
	for (i = 0; i < 3; i++)
		ck_assert(!h[i]->open);
	ck_assert(fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	assert_contains(f.log, "suspended for 5.");
}

/* Lets h[i] come back. With `seq`, its host has done its part in this attempt. */
static void come_back(size_t i, uint64_t seq)
{
	struct wm_group_view own = {.world_size = 3};
	struct wm_ring_position position = {.hosts = 3, .pos = (uint32_t)i};
	struct wm_msg msg = {.type = WM_RESUME};

	h[i] = fk_reconnect_as(h[i], 1, false);
	p[i] = fk_join_again(&p[i], h[i], WM_JOIN_ACCEPTED);
	if (seq)
		fk_vote_seq(&p[i], 1, seq);
	if (seq)
		fk_report(h[i], seq, true);
	msg.u.resume = (struct wm_resume){.epoch = 4,
		.round = 4,
		.ring_epoch = 4,
		.last_seq = seq,
		.ballots[WIRE_TOPOLOGY] = 8,
		.n_positions = 1,
		.positions = &position,
		.view = {.global = 3, .view_id = 9, .n = 1, .own = &own}};
	fk_send(h[i], &msg);
}

START_TEST(suspension_counts_from_the_last_heartbeat)
{
	run_of(3);
	fk_forget(&f);
	while (fk_count(h[0], WM_HEARTBEAT) == 0)
		fk_tick(&f, 100);
	fk_tick(&f, 300);
	f.now += UINT64_C(1300000000);
	fk_tick_silent(&f, 100, NULL);
	ck_assert(!h[0]->open);
	ck_assert(fk_status(&f).recovering);
	assert_contains(f.log, "suspended for 1.4 s: it takes over its run again");
}
END_TEST

START_TEST(suspension_of_the_master_causes_no_error)
{
	uint64_t seq;
	size_t i;

	run_of(3);
	seq = start_op(3);
	fk_report(h[0], seq, true);
	stand_still();
	for (i = 0; i < 3; i++)
		come_back(i, seq);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	ck_assert_uint_eq(fk_status(&f).term, 1);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(fk_count(h[i], WM_OP_ABORT), 0);
		ck_assert_uint_eq(fk_count(h[i], WM_KICK), 0);
		ck_assert_uint_eq(fk_take(h[i], WM_OP_DONE)->u.op_done.seq, seq);
	}
	ck_assert_uint_gt(start_op(3), seq);
}
END_TEST

/* Only one agent received the success, and this agent is connected to another master. */
START_TEST(suspended_master_remembers_outcomes)
{
	uint64_t seq;
	size_t i;

	run_of(3);
	seq = start_op(3);
	for (i = 0; i < 3; i++)
		fk_report(h[i], seq, true);
	stand_still();
	come_back(1, seq);
	come_back(2, seq);
	fk_tick(&f, 3200);
	ck_assert(!fk_status(&f).recovering);
	for (i = 1; i < 3; i++) {
		ck_assert_uint_eq(fk_count(h[i], WM_OP_ABORT), 0);
		ck_assert_uint_eq(fk_take(h[i], WM_OP_DONE)->u.op_done.seq, seq);
	}
}
END_TEST

/* No agent knows of a loss that the master has sent, or of the aborts. No vote spans the loss. */
START_TEST(suspended_master_remembers_a_loss)
{
	uint64_t seq;
	size_t i;

	run_of(3);
	seq = start_op(3);
	fk_leave(&p[0], WM_LEAVE_DIED);
	f.now += UINT64_C(5500000000);
	fk_tick_silent(&f, 100, NULL);
	for (i = 1; i < 3; i++)
		come_back(i, seq);
	fk_tick(&f, 3200);
	ck_assert(!fk_status(&f).recovering);
	for (i = 1; i < 3; i++) {
		ck_assert_uint_eq(fk_take(h[i], WM_OP_ABORT)->u.op_abort.seq, seq);
		ck_assert_uint_gt(fk_generation(h[i], 0), 0);
	}
}
END_TEST

/* The first event after a suspension may be that an agent has disconnected. Its connection is
 * closed already. */
START_TEST(first_event_after_a_suspension_may_be_a_close)
{
	run_of(3);
	f.now += UINT64_C(5500000000);
	fk_close(h[1], "Connection reset by peer");
	ck_assert(!h[0]->open && !h[2]->open);
	fk_tick_silent(&f, 100, NULL);
	ck_assert(fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	ck_assert_str_eq(h[1]->closed, "");
}
END_TEST

START_TEST(peer_lost_before_a_suspension_stays_lost)
{
	struct fk_peer gone;

	run_of(4);
	gone = p[3];
	fk_leave(&gone, WM_LEAVE_DIED);
	stand_still();
	h[3] = fk_reconnect_as(h[3], 1, false);
	(void)fk_join_again(&gone, h[3], WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_take(h[3], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
}
END_TEST

START_TEST(another_master_may_take_over_during_a_suspension)
{
	run_of(3);
	stand_still();
	(void)fk_reconnect_as(h[0], 2, false);
	ck_assert_uint_eq(fk_status(&f).stale, 2);
	ck_assert(!fk_status(&f).recovering);
}
END_TEST

START_TEST(journal_can_be_restored_after_a_suspension)
{
	struct ccm_config next = config;

	run_of(3);
	stand_still();
	next.run.b[0] = 8;
	fk_restart(&f, &next, f.journal_len);
	fk_tick(&f, 100);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	ck_assert_uint_eq(fk_status(&f).run.b[0], 1);
	ck_assert_uint_eq(fk_status(&f).term, 2);
}
END_TEST

/* No agent drops the master within 1.5 s of the master's last heartbeat. The agents' bound is 2 s,
 * and no clock is faster by more than a third. */
START_TEST(short_suspension_is_tolerated)
{
	bool too_long = _i == 1;

	run_of(3);
	(void)start_op(3);
	f.now += too_long ? UINT64_C(1450000000) : UINT64_C(1350000000);
	fk_tick_silent(&f, 100, too_long ? NULL : h[0]);
	ck_assert_int_eq(fk_status(&f).recovering, too_long);
	ck_assert(h[0]->open == !too_long && h[1]->open == !too_long && h[2]->open == !too_long);
	assert_contains(f.log, too_long ? "takes over its run again" : "all bounds start again");
	ck_assert_uint_eq(fk_count(h[0], WM_OP_ABORT), 0);
}
END_TEST

/* ---- the network of the master's host fails ---- */

static void mute(size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++)
		h[i]->mute = true;
}

START_TEST(no_member_is_lost_when_all_fall_silent)
{
	uint64_t seq;
	size_t i;

	run_of(3);
	seq = start_op(3);
	fk_report(h[0], seq, true);
	mute(0, 3);
	fk_tick(&f, 3000);
	assert_contains(f.log, "its own network is down");
	for (i = 0; i < 3; i++)
		ck_assert(!h[i]->open);
	/* The master waits without a limit. */
	fk_tick(&f, 20000);
	ck_assert(fk_status(&f).recovering);
	for (i = 0; i < 3; i++) {
		come_back(i, seq);
		fk_tick(&f, 1000);
	}
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	ck_assert_uint_eq(fk_status(&f).term, 1);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(fk_count(h[i], WM_OP_ABORT), 0);
		ck_assert_uint_eq(fk_take(h[i], WM_OP_DONE)->u.op_done.seq, seq);
	}
}
END_TEST

/* Agents need not send more than one message in two heartbeats: they look at their clocks now and
 * then. */
START_TEST(no_member_is_lost_that_spoke_two_heartbeats_before_the_others)
{
	run_of(3);
	mute(2, 3);
	fk_tick(&f, 900);
	mute(0, 2);
	fk_tick(&f, 3000);
	ck_assert(fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

/* The master was suspended, and c has not come back since. Now all agents are silent. */
START_TEST(no_member_is_lost_when_all_fall_silent_again)
{
	size_t i;

	run_of(3);
	stand_still();
	for (i = 0; i < 2; i++)
		come_back(i, 0);
	mute(0, 2);
	fk_tick(&f, 4000);
	for (i = 0; i < 2; i++) {
		ck_assert(!h[i]->open);
		ck_assert_uint_eq(fk_count(h[i], WM_KICK), 0);
	}
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	fk_tick(&f, 20000);
	for (i = 0; i < 2; i++)
		come_back(i, 0);
	fk_tick(&f, 4000);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
	ck_assert_uint_eq(fk_count(h[0], WM_KICK), 0);
	ck_assert_uint_eq(fk_count(h[1], WM_KICK), 0);
}
END_TEST

/* Makes a run of three members. The first member is on the master's host. */
static void run_beside_the_master(void)
{
	f.local = true;
	h[0] = fk_host(&f, "a", "10.0.0.1");
	p[0] = fk_admit(h[0], 0, p, 0);
	f.local = false;
	h[1] = fk_host(&f, "b", "10.0.0.2");
	p[1] = fk_admit(h[1], 0, p, 1);
	h[2] = fk_host(&f, "c", "10.0.0.3");
	p[2] = fk_admit(h[2], 0, p, 2);
}

/* An agent on the master's host needs no network. */
START_TEST(local_agent_does_not_show_that_the_network_works)
{
	run_beside_the_master();
	mute(1, 3);
	fk_tick(&f, 3000);
	ck_assert(fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	/* The member on the master's host waits for the others, but not without a limit. */
	f.local = true;
	for (int i = 0; i < 2; i++) {
		ck_assert(fk_status(&f).recovering);
		come_back(0, 0);
		fk_tick(&f, 4000);
	}
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 1);
}
END_TEST

START_TEST(remote_agent_shows_that_the_network_works)
{
	struct fk_host *idle;

	run_of(2);
	idle = fk_host(&f, "idle", "10.0.0.9"); /* without members */
	mute(0, 2);
	fk_tick(&f, 2500);
	ck_assert(h[0]->open && h[1]->open);
	fk_tick(&f, 500);
	ck_assert(!h[0]->open && !h[1]->open && idle->open);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 0);
}
END_TEST

/* It is unknown which host has lost its network. Members on the master's host would wait for the
 * other host. */
START_TEST(only_other_host_is_lost_if_members_are_local)
{
	f.local = _i == 1;
	h[0] = fk_host(&f, "a", "10.0.0.1");
	p[0] = fk_admit(h[0], 0, p, 0);
	f.local = false;
	if (_i == 1) {
		h[1] = fk_host(&f, "b", "10.0.0.2");
		p[1] = fk_admit(h[1], 0, p, 1);
	}
	mute((size_t)_i, (size_t)_i + 1);
	fk_tick(&f, 3000);
	ck_assert(fk_status(&f).recovering == (_i == 0));
	ck_assert_uint_eq(fk_status(&f).accepted, 1);
	ck_assert_uint_eq(fk_status(&f).kicks, _i == 1);
}
END_TEST

/* By its own clock, the master was cut off for a little less than the agents' bound. */
START_TEST(connecting_agent_shows_that_the_network_had_failed)
{
	run_of(3);
	mute(0, 3);
	fk_tick(&f, 1300);
	(void)fk_connect(&f, "new", "10.0.0.9");
	ck_assert(fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	ck_assert(!h[0]->open && !h[1]->open && !h[2]->open);
}
END_TEST

/* Otherwise the old connection would be closed as half open, which aborts running operations. */
START_TEST(reconnecting_agent_shows_that_the_network_had_failed)
{
	uint64_t seq;
	size_t i;

	run_of(3);
	seq = start_op(3);
	fk_report(h[0], seq, true);
	mute(0, 3);
	fk_tick(&f, 1800);
	ck_assert(!fk_status(&f).recovering);
	for (i = 3; i-- > 0;)
		come_back(i, seq);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(fk_count(h[i], WM_OP_ABORT), 0);
		ck_assert_uint_eq(fk_take(h[i], WM_OP_DONE)->u.op_done.seq, seq);
	}
}
END_TEST

/* The lost messages are sent again, and those of some agents arrive later than those of others. */
START_TEST(all_bounds_start_again_when_one_agent_sends_again)
{
	run_of(3);
	mute(0, 3);
	fk_tick(&f, 1500);
	h[0]->mute = false;
	fk_tick(&f, 2500);
	ck_assert(h[0]->open && h[1]->open && h[2]->open);
	h[1]->mute = false;
	fk_tick(&f, 500);
	ck_assert(h[0]->open && h[1]->open && !h[2]->open);
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
}
END_TEST

/* The bound starts again only once. An agent that has sent nothing since then is lost. */
START_TEST(bound_does_not_start_again_twice)
{
	run_of(3);
	mute(0, 3);
	for (int i = 0; i < 3; i++) {
		fk_tick(&f, 1100);
		ck_assert(h[2]->open);
		h[0]->mute = false;
		fk_tick(&f, 100);
		h[0]->mute = true;
	}
	h[0]->mute = h[1]->mute = false;
	fk_tick(&f, 500);
	ck_assert(h[0]->open && !h[2]->open);
	ck_assert(!fk_status(&f).recovering);
}
END_TEST

/* The peers of the disconnected agent are awaited. Another silent agent may be silent for the same
 * reason. */
START_TEST(disconnected_agent_counts_as_another_host)
{
	run_beside_the_master();
	fk_cut(h[1], "killed");
	mute(2, 3);
	fk_tick(&f, 3000);
	ck_assert(fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

/* Connects a newcomer. With `again`, it has waited before, so its agent already knows the run. */
static struct fk_host *newcomer(bool local, bool again)
{
	struct fk_host *x;

	f.local = local;
	x = fk_host(&f, "new", "10.0.0.7");
	if (again)
		x = fk_reconnect_as(x, 1, false);
	(void)fk_join(x, 0);
	if (again)
		fk_resumed(x);
	return x;
}

/* A newcomer on the master's own host does not show that the others could connect. */
START_TEST(local_newcomers_wait_a_minute_for_the_members)
{
	struct fk_host *x;

	run_of(2);
	mute(0, 2);
	fk_tick(&f, 3000);
	ck_assert(fk_status(&f).recovering);
	x = newcomer(_i < 2, _i == 1);
	fk_tick(&f, _i < 2 ? 56000 : 2000);
	ck_assert(x->open && fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
	/* The newcomer is redirected once. The next newcomer waits for the usual time. */
	fk_tick(&f, _i < 2 ? 8000 : 2000);
	ck_assert(!x->open);
	(void)newcomer(false, false);
	fk_tick(&f, 4000);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 1);
}
END_TEST

START_TEST(bound_of_an_earlier_silence_does_not_start_again)
{
	run_of(3);
	mute(2, 3);
	fk_tick(&f, 1200);
	mute(0, 2);
	fk_tick(&f, 1100);
	h[0]->mute = h[1]->mute = false;
	fk_tick(&f, 400);
	ck_assert(h[2]->open);
	fk_tick(&f, 200);
	ck_assert(h[0]->open && h[1]->open && !h[2]->open);
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
}
END_TEST

Suite *silence_suite(void)
{
	Suite *s = suite_create("silence");
	TCase *tc = tcase_create("silence");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, silent_link_is_avoided_at_once, 0, 2);
	tcase_add_test(tc, silent_link_of_a_speculative_start_is_avoided);
	tcase_add_test(tc, one_host_is_kicked_soon_if_no_order_avoids_the_link);
	tcase_add_test(tc, new_link_replaces_a_silent_link);
	tcase_add_test(tc, report_during_evict_delay_is_too_late);
	tcase_add_test(tc, no_kick_if_the_master_has_lost_the_silent_host);
	tcase_add_test(tc, all_peers_of_a_host_are_kicked_together);
	tcase_add_test(tc, failed_pair_of_one_group_is_avoided_in_other_groups);
	tcase_add_test(tc, suspension_counts_from_the_last_heartbeat);
	tcase_add_test(tc, suspension_of_the_master_causes_no_error);
	tcase_add_test(tc, suspended_master_remembers_outcomes);
	tcase_add_test(tc, suspended_master_remembers_a_loss);
	tcase_add_test(tc, first_event_after_a_suspension_may_be_a_close);
	tcase_add_test(tc, peer_lost_before_a_suspension_stays_lost);
	tcase_add_test(tc, another_master_may_take_over_during_a_suspension);
	tcase_add_test(tc, journal_can_be_restored_after_a_suspension);
	tcase_add_loop_test(tc, short_suspension_is_tolerated, 0, 2);
	tcase_add_test(tc, no_member_is_lost_when_all_fall_silent);
	tcase_add_test(tc, no_member_is_lost_that_spoke_two_heartbeats_before_the_others);
	tcase_add_test(tc, no_member_is_lost_when_all_fall_silent_again);
	tcase_add_test(tc, local_agent_does_not_show_that_the_network_works);
	tcase_add_test(tc, remote_agent_shows_that_the_network_works);
	tcase_add_loop_test(tc, only_other_host_is_lost_if_members_are_local, 0, 2);
	tcase_add_test(tc, connecting_agent_shows_that_the_network_had_failed);
	tcase_add_test(tc, reconnecting_agent_shows_that_the_network_had_failed);
	tcase_add_test(tc, all_bounds_start_again_when_one_agent_sends_again);
	tcase_add_test(tc, bound_of_an_earlier_silence_does_not_start_again);
	tcase_add_test(tc, bound_does_not_start_again_twice);
	tcase_add_test(tc, disconnected_agent_counts_as_another_host);
	tcase_add_loop_test(tc, local_newcomers_wait_a_minute_for_the_members, 0, 3);
	suite_add_tcase(s, tc);
	return s;
}
