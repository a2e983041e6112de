/* SPDX-License-Identifier: MIT
 *
 * The master's core: the journal, and a run that is restored from it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/fake.h"
#include "tests/master/suites.h"

static const struct ccm_config first = {
	.run = {{1}}, .run_key = {{2}}, .segment_max = 4096, .journal = true};
static const struct ccm_config next = {
	.run = {{8}}, .run_key = {{9}}, .segment_max = 4096, .journal = true};

static struct fk f;
static struct fk_host *h[3];
static struct fk_peer p[3];
static struct wm_group_view own[3];
static struct wm_ring_position position[3];
static struct wm_resume know[3];

static void setup(void)
{
	size_t i;

	fk_init(&f, &first);
	h[0] = fk_host(&f, "a", "10.0.0.1");
	h[1] = fk_host(&f, "b", "10.0.0.2");
	h[2] = fk_host(&f, "c", "10.0.0.3");
	for (i = 0; i < 3; i++)
		p[i] = fk_join(h[i], 0);
	fk_topo(&p[0]);
	for (i = 0; i < 3; i++) {
		own[i] = (struct wm_group_view){.group = 0, .world_size = 3};
		position[i] = (struct wm_ring_position){.hosts = 3, .pos = (uint32_t)i};
		know[i] = (struct wm_resume){.epoch = 2,
			.round = 2,
			.ballots[WIRE_TOPOLOGY] = 4,
			.n_positions = 1,
			.positions = &position[i],
			.view = {.global = 3, .view_id = 2, .n = 1, .own = &own[i]}};
	}
}

static void teardown(void)
{
	fk_free(&f);
}

static void restart(void)
{
	fk_restart(&f, &next, f.journal_len);
}

/* Keeps only the name of the run and the last list of its members. */
static void compact(void)
{
	size_t at, used, run = 0, last = 0;
	struct wj_record r;
	const char *why;

	for (at = 0; at < f.journal_len; at += used) {
		ck_assert_int_eq(
			wire_journal_decode(f.journal + at, f.journal_len - at, &r, &used, &why),
			0);
		if (r.type == WJ_RUN)
			run = at + used;
		if (r.type == WJ_MEMBERS)
			last = at;
		wire_journal_clear(&r);
	}
	memmove(f.journal + run, f.journal + last, f.journal_len - last);
	f.journal_len = run + (f.journal_len - last);
}

static void come_back(size_t i, bool stateless)
{
	struct wm_msg msg = {.type = WM_RESUME};

	h[i] = fk_reconnect_as(h[i], 1, stateless);
	p[i] = fk_join_again(&p[i], h[i], WM_JOIN_ACCEPTED);
	if (!stateless)
		msg.u.resume = know[i];
	fk_send(h[i], &msg);
}

static void works(size_t n)
{
	uint64_t done = fk_status(&f).ops_done, seq;
	size_t i;

	fk_forget(&f);
	for (i = 0; i < n; i++)
		fk_vote(&p[i], 77);
	seq = fk_take(h[0], WM_OP_START)->u.op_start.seq;
	for (i = 0; i < n; i++)
		fk_report(h[i], seq, true);
	ck_assert_uint_eq(fk_status(&f).ops_done, done + 1);
}

START_TEST(run_continues_from_the_journal)
{
	const struct wm_hello_ack *ack;

	restart();
	fk_tick(&f, 100);
	ck_assert(fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	assert_contains(fk_waiting(&f), "recovering: waiting for 3 of 3 peers, agent a");
	come_back(0, false);
	ack = &fk_take(h[0], WM_HELLO_ACK)->u.hello_ack;
	ck_assert(ack->resume);
	ck_assert_uint_eq(ack->run.b[0], 1);
	ck_assert_uint_eq(ack->term, 2);
	come_back(1, false);
	ck_assert(fk_status(&f).recovering);
	come_back(2, false);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_count(h[0], WM_OP_ABORT) + fk_count(h[0], WM_KICK), 0);
	ck_assert_int_eq(fk_info(&p[2]).rank, 2);
	ck_assert_uint_eq(fk_status(&f).lost_members, 0);
	works(3);
}
END_TEST

START_TEST(run_continues_although_all_agents_died)
{
	uint64_t seq = 5;
	size_t i;

	restart();
	for (i = 0; i < 3; i++) {
		come_back(i, true);
		fk_query(&p[i], 1, &seq, 0);
	}
	fk_tick(&f, 300);
	/* All members are here and have a result, but perhaps not the same one. */
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_take(h[i], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code,
			WIRE_RANK_CONNECTION_LOST);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	/* The peers may know a later generation than the journal. The new generation is later
	 * still. */
	ck_assert_uint_gt(h[0]->generations[0].generation, 0);
	works(3);
}
END_TEST

/* Lets a's peer come back through a new agent, with this view from its last agent. */
static void come_back_with(uint64_t view_id)
{
	h[0] = fk_reconnect_as(h[0], 1, true);
	h[0]->peers.view_id = view_id;
	p[0] = fk_join_again(&p[0], h[0], WM_JOIN_ACCEPTED);
	fk_resumed(h[0]);
	come_back(1, false);
	come_back(2, false);
	fk_tick(&f, 3500);
	ck_assert(!fk_status(&f).recovering);
	ck_assert(fk_present(&p[1]) && fk_present(&p[2]));
}

/* The journal is a copy, and its master has continued the run with a. */
START_TEST(peer_with_a_later_view_than_the_journal_joins_again)
{
	restart();
	come_back_with(1000);
	ck_assert(!fk_present(&p[0]));
	ck_assert_uint_eq(fk_count(h[0], WM_KICK), 1);
}
END_TEST

START_TEST(view_for_a_returning_agent_is_in_the_journal)
{
	uint64_t view_id;

	fk_manual(&f); /* no commit follows, which would also be in the journal */
	fk_cut(h[0], "cable");
	h[0] = fk_reconnect(h[0]);
	p[0] = fk_join_again(&p[0], h[0], WM_JOIN_ACCEPTED);
	fk_resumed(h[0]);
	view_id = fk_take(h[0], WM_VIEW)->u.view.view_id;
	restart();
	come_back_with(view_id);
	ck_assert(fk_present(&p[0]));
}
END_TEST

/* Under the last master, c had come back through another agent than the one in the journal. This
 * agent reports the part of its host. c's process sends no query. */
START_TEST(agent_that_the_journal_does_not_know_reports_its_part)
{
	struct wm_outcome done = {1, WIRE_SUCCESS};
	struct wm_msg msg;
	size_t i;

	for (i = 0; i < 3; i++)
		know[i].last_seq = 1;
	restart();
	know[0].n_outcomes = know[1].n_outcomes = 1;
	know[0].outcomes = know[1].outcomes = &done;
	come_back(0, false);
	come_back(1, false);
	h[2] = fk_connect(&f, "c", "10.0.0.3");
	msg = fk_hello(h[2]);
	msg.u.hello.run = f.run;
	msg.u.hello.run_key = f.run_key;
	msg.u.hello.term = 1;
	fk_send(h[2], &msg);
	p[2] = fk_join_again(&p[2], h[2], WM_JOIN_ACCEPTED);
	fk_vote_seq(&p[2], 5, 1);
	fk_report(h[2], 1, true);
	msg = (struct wm_msg){.type = WM_RESUME, .u.resume = know[2]};
	fk_send(h[2], &msg);
	fk_tick(&f, 500);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_take(h[2], WM_OP_DONE)->u.op_done.seq, 1);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	ck_assert_uint_eq(fk_count(h[2], WM_KICK), 0);
}
END_TEST

START_TEST(join_needs_the_token_of_the_peer)
{
	struct fk_peer thief = p[0];

	restart();
	thief.token.b[0] ^= 1;
	h[0] = fk_reconnect_as(h[0], 1, true);
	(void)fk_join_again(&thief, h[0], WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_take(h[0], WM_KICK)->u.kick.code, WIRE_INVALID_USAGE);
	thief.id.b[9] ^= 1;
	(void)fk_join_again(&thief, h[0], WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_take(h[0], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	p[0] = fk_join_again(&p[0], h[0], WM_JOIN_ACCEPTED);
	ck_assert(!fk_info(&p[0]).disconnected);
}
END_TEST

START_TEST(member_that_does_not_come_back_is_lost)
{
	restart();
	fk_tick(&f, 60000); /* the master waits while no agent comes */
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	come_back(0, false);
	come_back(1, false);
	fk_tick(&f, 3200);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
	come_back(2, false);
	assert_contains(fk_take(h[2], WM_KICK)->u.kick.text, "declared lost");
	works(2);
}
END_TEST

/* d's connection broke before d received its commit, and the journal records d as lost. */
START_TEST(peer_lost_before_its_commit_arrived_is_a_newcomer)
{
	struct wm_msg msg = {.type = WM_RESUME, .u.resume = {.prepared = 3, .prepared_peers = 4}};
	struct fk_host *d = fk_host(&f, "d", "10.0.0.4");
	struct fk_peer x = fk_join(d, 0);
	size_t i;

	for (i = 0; i < 3; i++)
		fk_topo(&p[i]);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
	for (i = 0; i < 3; i++)
		h[i]->auto_report = false;
	fk_tick_silent(&f, 4000, d);
	ck_assert(!fk_present(&x));
	restart();
	d = fk_reconnect_as(d, 1, false);
	x = fk_join_again(&x, d, WM_JOIN_PREPARED);
	fk_send(d, &msg);
	for (i = 0; i < 3; i++) {
		know[i].epoch = know[i].round = know[i].ring_epoch = 3;
		know[i].ballots[WIRE_TOPOLOGY] = 6;
		come_back(i, false);
	}
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_REGISTERED);
	ck_assert_uint_eq(fk_count(d, WM_COMMIT), 0);
}
END_TEST

/* c's next agent had connected to the last master. That master lost the peer before the peer was in
 * a ring again, so this agent has the run's key, but no state. */
START_TEST(peer_that_is_not_in_the_journal_is_lost)
{
	struct wm_msg msg = {.type = WM_RESUME};

	fk_leave(&p[2], WM_LEAVE_DIED);
	know[0].epoch = know[1].epoch = h[0]->epoch;
	compact();
	restart();
	h[2] = fk_reconnect_as(h[2], 1, false);
	p[2] = fk_join_again(&p[2], h[2], WM_JOIN_ACCEPTED);
	fk_send(h[2], &msg);
	come_back(0, false);
	come_back(1, false);
	fk_tick(&f, 3200);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_take(h[2], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
	works(2);
}
END_TEST

/* d's agent stays connected because it also has a newcomer. The others continue with the same call
 * under a new number. */
START_TEST(peer_that_is_not_in_the_journal_has_no_operations)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.4");
	struct wm_msg msg = {.type = WM_RESUME};
	struct fk_peer stranger = p[0];
	size_t i;

	restart();
	d = fk_reconnect_as(d, 1, false);
	stranger.id.b[0] ^= 1;
	stranger = fk_join_again(&stranger, d, WM_JOIN_ACCEPTED);
	fk_join(d, 0);
	fk_vote_seq(&stranger, 77, 5);
	fk_report(d, 5, true);
	fk_send(d, &msg);
	for (i = 0; i < 3; i++) {
		h[i] = fk_reconnect_as(h[i], 1, false);
		p[i] = fk_join_again(&p[i], h[i], WM_JOIN_ACCEPTED);
		fk_vote_seq(&p[i], 77, 0);
		msg.u.resume = know[i];
		fk_send(h[i], &msg);
	}
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_gt(fk_take(h[0], WM_OP_START)->u.op_start.seq, 5);
	ck_assert_uint_eq(fk_status(&f).agents, 4);
}
END_TEST

START_TEST(peers_keep_their_names_and_pids)
{
	struct ccm_peer_info before = fk_info(&p[2]), after;
	char name[WM_NAME_MAX];

	ck_assert_uint_gt(before.pid, 0);
	(void)snprintf(name, sizeof name, "%s", before.name);
	restart();
	fk_tick(&f, 100);
	after = fk_info(&p[2]);
	ck_assert_str_eq(after.name, name);
	ck_assert_uint_eq(after.pid, before.pid);
	ck_assert(after.disconnected);
}
END_TEST

START_TEST(losses_in_the_journal_are_kept)
{
	fk_leave(&p[1], WM_LEAVE_DIED);
	know[0].view.global = know[2].view.global = own[0].world_size = own[2].world_size = 2;
	know[0].view.view_id = know[2].view.view_id = 4;
	restart();
	fk_tick(&f, 100);
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
	come_back(1, true);
	assert_contains(fk_take(h[1], WM_KICK)->u.kick.text, "declared lost");
	come_back(0, false);
	come_back(2, false);
	ck_assert(!fk_status(&f).recovering);
	p[1] = p[2];
	h[1] = h[2];
	works(2);
}
END_TEST

START_TEST(loss_is_in_the_journal_before_it_is_sent)
{
	struct wm_msg msg = {.type = WM_LEAVE, .u.leave = {.peer = p[1].id, .kind = WM_LEAVE_DIED}};
	struct ccm_event ev = {.type = CCM_EV_MSG, .conn = h[1]->conn, .msg = &msg};
	struct ccm_actions out = {0};
	size_t i, journal = 99, sent = 99;

	ccm_step(f.m, &ev, f.now, &out);
	for (i = out.n; i-- > 0;) {
		if (out.v[i].type == CCM_ACT_JOURNAL)
			journal = i;
		if (out.v[i].type == CCM_ACT_SEND)
			sent = i;
	}
	ck_assert_uint_lt(journal, sent);
	ck_assert_int_eq(out.v[journal].record.type, WJ_LOST);
	ck_assert(cc_id_eq(&out.v[journal].record.members[0].peer, &p[1].id));
	ccm_actions_free(&out);
}
END_TEST

START_TEST(commit_counts_although_no_agent_received_it)
{
	struct fk_peer x;
	size_t i;

	/* The master wrote the journal and died before it sent the commit. */
	h[0]->auto_report = h[1]->auto_report = h[2]->auto_report = false;
	x = fk_join(h[1], 0);
	for (i = 0; i < 3; i++)
		fk_topo(&p[i]);
	for (i = 0; i < 3; i++)
		fk_round_report(h[i], NULL, NULL);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
	restart();
	for (i = 0; i < 3; i++) {
		know[i].prepared = 3;
		h[i]->ballots[WIRE_TOPOLOGY] = 4;
		h[i]->epoch = 2;
	}
	h[1] = fk_reconnect_as(h[1], 1, false);
	x = fk_join_again(&x, h[1], WM_JOIN_PREPARED);
	p[1] = fk_join_again(&p[1], h[1], WM_JOIN_ACCEPTED);
	{
		struct wm_msg msg = {.type = WM_RESUME, .u.resume = know[1]};

		fk_send(h[1], &msg);
	}
	come_back(0, false);
	come_back(2, false);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 4);
	ck_assert_uint_eq(fk_take(h[1], WM_COMMIT)->u.commit.round, 3);
	ck_assert_uint_eq(fk_take(h[0], WM_COMMIT)->u.commit.ballots[WIRE_TOPOLOGY], 6);
}
END_TEST

START_TEST(term_grows_with_each_start_of_a_master)
{
	restart();
	fk_tick(&f, 100);
	ck_assert_uint_eq(fk_status(&f).term, 2);
	restart();
	fk_tick(&f, 100);
	ck_assert_uint_eq(fk_status(&f).term, 3);
}
END_TEST

START_TEST(agents_override_an_old_journal)
{
	size_t i;

	/* Another master has taken the run over since then, and has lost b. */
	restart();
	h[0] = fk_reconnect_as(h[0], 5, false);
	ck_assert_uint_eq(fk_take(h[0], WM_HELLO_ACK)->u.hello_ack.term, 6);
	ck_assert_uint_eq(fk_status(&f).stale, 0);
	fk_cut(h[0], "reset");
	for (i = 0; i < 3; i += 2) {
		know[i].view.global = own[i].world_size = position[i].hosts = 2;
		know[i].view.view_id = 9;
		know[i].epoch = know[i].round = 5;
		position[i].pos = i == 2;
	}
	come_back(0, false);
	come_back(2, false);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
	p[1] = p[2];
	h[1] = h[2];
	works(2);
}
END_TEST

START_TEST(stale_master_removes_the_run_from_its_journal)
{
	size_t i;

	restart();
	for (i = 0; i < 3; i++)
		come_back(i, false);
	(void)fk_reconnect_as(h[0], 9, false);
	ck_assert_uint_eq(fk_status(&f).stale, 9);
	restart();
	fk_tick(&f, 100);
	ck_assert_uint_eq(fk_status(&f).run.b[0], 8);
	ck_assert_uint_eq(fk_status(&f).accepted, 0);
	ck_assert(!fk_status(&f).recovering);
}
END_TEST

START_TEST(run_without_members_continues_its_ballot_numbers)
{
	uint64_t topo, pending;
	struct fk_host *d;
	struct fk_peer x;
	size_t i;

	/* These answers are not in the journal, but agents remember them. */
	for (i = 0; i < 3; i++)
		fk_pending(&p[i]);
	pending = fk_take(h[0], WM_BALLOT_END)->u.ballot_end.number;
	topo = h[0]->ballots[WIRE_TOPOLOGY];
	for (i = 0; i < 3; i++)
		fk_leave(&p[i], WM_LEAVE_CLEAN);
	restart();
	d = fk_host(&f, "d", "10.0.0.4");
	x = fk_join(d, 0);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
	ck_assert_uint_gt(d->ballots[WIRE_TOPOLOGY], topo);
	ck_assert_uint_gt(d->ballots[WIRE_PENDING], pending);
}
END_TEST

/* Two masters have read the same journal and have worked one after the other. */
START_TEST(two_starts_from_one_journal_use_different_numbers)
{
	struct ccm_config another = next;
	size_t i, len;
	struct ccm_status one, other;
	struct fk_peer x;

	for (i = 0; i < 3; i++)
		fk_leave(&p[i], WM_LEAVE_CLEAN);
	len = f.journal_len;
	restart();
	x = fk_join(fk_host(&f, "d", "10.0.0.4"), 0);
	fk_sync(&x, fk_candidate(0, 1));
	one = fk_status(&f);
	another.run.b[0] = 7;
	fk_restart(&f, &another, len);
	x = fk_join(fk_host(&f, "e", "10.0.0.5"), 0);
	fk_sync(&x, fk_candidate(0, 2));
	other = fk_status(&f);
	ck_assert(cc_id_eq(&one.run, &other.run));
	ck_assert_uint_ne(one.last_seq, other.last_seq);
	ck_assert_uint_ne(one.epoch, other.epoch);
	ck_assert_uint_ne(one.round, other.round);
}
END_TEST

/* The end of the journal was damaged, so only the name of the run is left. */
START_TEST(journal_without_members_counts_as_empty)
{
	struct wj_record r;
	const char *why;
	size_t used, i;

	ck_assert_int_eq(wire_journal_decode(f.journal, f.journal_len, &r, &used, &why), 0);
	ck_assert_int_eq(r.type, WJ_RUN);
	wire_journal_clear(&r);
	fk_restart(&f, &next, used);
	for (i = 0; i < 3; i++)
		come_back(i, false);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	works(3);
}
END_TEST

START_TEST(master_without_a_journal_writes_no_records)
{
	size_t len = f.journal_len;
	struct ccm_config quiet = next;

	ck_assert_uint_gt(len, 0);
	quiet.journal = false;
	fk_restart(&f, &quiet, len);
	come_back(0, false);
	come_back(1, false);
	come_back(2, false);
	works(3);
	ck_assert_uint_eq(f.journal_len, len);
}
END_TEST

/* Lets all three synchronize to this revision. */
static void sync_done(uint64_t revision)
{
	uint64_t seq;
	size_t i;

	fk_forget(&f);
	for (i = 0; i < 3; i++)
		fk_sync(&p[i], fk_candidate(revision, 1));
	seq = fk_take(h[0], WM_OP_START)->u.op_start.seq;
	for (i = 0; i < 3; i++)
		fk_report(h[i], seq, true);
	ck_assert_uint_eq(fk_take(h[2], WM_OP_DONE)->u.op_done.revision, revision);
}

static size_t len_at_done;

static void watch_done(void *arg, struct fk_host *x, const struct wm_msg *msg)
{
	(void)arg;
	if (msg->type == WM_VIEW && len_at_done == 0)
		len_at_done = x->fk->journal_len;
}

/* The master writes the revision before it sends it. */
START_TEST(revision_is_in_the_journal_before_it_is_sent)
{
	len_at_done = 0;
	f.watch = watch_done;
	sync_done(7);
	f.watch = NULL;
	fk_restart(&f, &next, len_at_done);
	come_back(0, false);
	come_back(1, false);
	come_back(2, false);
	ck_assert_uint_eq(fk_revision(h[0], 0), 8);
	sync_done(8);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

static void take_group_0(void *arg, const struct ccm_state_info *s)
{
	if (s->group == 0)
		*(struct ccm_state_info *)arg = *s;
}

/* The revision is also kept while the group has no members, and is copied to the next journal. */
START_TEST(journal_keeps_revisions_of_groups_without_members)
{
	struct ccm_state_info left;
	struct fk_peer x;
	int i;

	sync_done(7);
	for (i = 0; i < 3; i++)
		fk_leave(&p[i], WM_LEAVE_DIED);
	for (i = 0; i < 2; i++) {
		restart();
		x = fk_join(fk_host(&f, "d", "10.0.0.4"), i == 0);
		fk_settle(&f);
		ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
		fk_leave(&x, WM_LEAVE_DIED);
	}
	/* The status shows the group. */
	left = (struct ccm_state_info){0};
	ccm_each_state(f.m, f.now, take_group_0, &left);
	ck_assert_uint_eq(left.expected, 8);
	ck_assert_uint_eq(left.peers, 0);
	x = fk_join(fk_host(&f, "e", "10.0.0.5"), 0);
	fk_settle(&f);
	ck_assert_uint_eq(fk_revision(x.host, 0), 8);
}
END_TEST

/* Replaces the last list in the journal by one with n revisions: of group 0, which has members, and
 * of groups without members. */
static void fill_revisions(uint32_t n)
{
	struct wj_revision *v = calloc(n, sizeof *v);
	struct wj_record r;
	size_t at, used = 0, len;
	const char *why;
	uint8_t *buf;

	compact();
	for (at = 0; at < f.journal_len; at += used) {
		ck_assert_int_eq(
			wire_journal_decode(f.journal + at, f.journal_len - at, &r, &used, &why),
			0);
		if (r.type == WJ_MEMBERS)
			break;
		wire_journal_clear(&r);
	}
	ck_assert_uint_eq(at + used, f.journal_len);
	for (uint32_t i = 0; i < n; i++)
		v[i] = (struct wj_revision){.group = i, .revision = 8 + i};
	free(r.revisions);
	r.revisions = v;
	r.n_revisions = n;
	ck_assert_int_eq(wire_journal_encode(&r, &buf, &len), 0);
	f.journal = realloc(f.journal, at + len);
	memcpy(f.journal + at, buf, len);
	f.journal_len = at + len;
	free(buf);
	wire_journal_clear(&r);
}

/* Admits a member to the group and lets it die. Returns the revision that the member got. */
static uint64_t revision_of(struct fk_host *x, uint32_t group)
{
	struct fk_peer y = fk_admit(x, group, p, 3);
	uint64_t revision = fk_revision(x, group);

	fk_leave(&y, WM_LEAVE_DIED);
	return revision;
}

/* Lets one member synchronize alone in the group. */
static void sync_alone(struct fk_host *x, uint32_t group, uint64_t revision)
{
	struct fk_peer y = fk_admit(x, group, p, 3);

	fk_sync(&y, fk_candidate(revision, 1));
	fk_report(x, fk_status(&f).last_seq, true);
	ck_assert_uint_eq(fk_revision(x, group), revision + 1);
	fk_leave(&y, WM_LEAVE_DIED);
}

/* The journal has room for WJ_GROUPS_MAX revisions. Of the groups without members, the one that was
 * synchronized longest ago is forgotten. */
START_TEST(oldest_revision_makes_room_in_the_journal)
{
	struct fk_host *d;
	size_t i;

	sync_done(7);
	fill_revisions(WJ_GROUPS_MAX);
	restart();
	for (i = 0; i < 3; i++)
		come_back(i, false);
	d = fk_host(&f, "d", "10.0.0.4");
	sync_alone(d, 1, 9);
	sync_alone(d, 70000, 3);
	sync_alone(d, 70001, 3);
	ck_assert_uint_eq(revision_of(d, 1), 10);
	ck_assert_uint_eq(revision_of(d, 2), 0);
	ck_assert_uint_eq(revision_of(d, 3), 0);
	ck_assert_uint_eq(revision_of(d, 4), 12);
	ck_assert_uint_eq(revision_of(d, 70000), 4);
	sync_done(8);
}
END_TEST

/* All processes died at the same moment. So it is unknown whether the attempt was counted. */
START_TEST(revision_of_an_attempt_in_doubt_is_not_kept)
{
	uint64_t seq = 5;
	int i;

	sync_done(7);
	restart();
	for (i = 0; i < 3; i++) {
		h[i] = fk_reconnect_as(h[i], 1, true);
		p[i] = fk_join_again(&p[i], h[i], WM_JOIN_ACCEPTED);
		/* With _i == 1 the peers were told of the success. */
		fk_query(&p[i], 1, &seq, _i ? 1 : 0);
		fk_resumed(h[i]);
	}
	fk_tick(&f, 300);
	ck_assert(!fk_status(&f).recovering);
	fk_tick(&f, 100);
	ck_assert_uint_eq(fk_revision(h[0], 0), _i ? 8 : 0);
	sync_done(_i ? 8 : 7);
}
END_TEST

Suite *restore_suite(void)
{
	Suite *s = suite_create("restore");
	TCase *tc = tcase_create("restore");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, run_continues_from_the_journal);
	tcase_add_test(tc, run_continues_although_all_agents_died);
	tcase_add_test(tc, peer_with_a_later_view_than_the_journal_joins_again);
	tcase_add_test(tc, view_for_a_returning_agent_is_in_the_journal);
	tcase_add_test(tc, agent_that_the_journal_does_not_know_reports_its_part);
	tcase_add_test(tc, join_needs_the_token_of_the_peer);
	tcase_add_test(tc, member_that_does_not_come_back_is_lost);
	tcase_add_test(tc, peer_lost_before_its_commit_arrived_is_a_newcomer);
	tcase_add_test(tc, peer_that_is_not_in_the_journal_is_lost);
	tcase_add_test(tc, peer_that_is_not_in_the_journal_has_no_operations);
	tcase_add_test(tc, peers_keep_their_names_and_pids);
	tcase_add_test(tc, losses_in_the_journal_are_kept);
	tcase_add_test(tc, loss_is_in_the_journal_before_it_is_sent);
	tcase_add_test(tc, commit_counts_although_no_agent_received_it);
	tcase_add_test(tc, term_grows_with_each_start_of_a_master);
	tcase_add_test(tc, agents_override_an_old_journal);
	tcase_add_test(tc, stale_master_removes_the_run_from_its_journal);
	tcase_add_test(tc, run_without_members_continues_its_ballot_numbers);
	tcase_add_test(tc, two_starts_from_one_journal_use_different_numbers);
	tcase_add_test(tc, journal_without_members_counts_as_empty);
	tcase_add_test(tc, master_without_a_journal_writes_no_records);
	tcase_add_test(tc, revision_is_in_the_journal_before_it_is_sent);
	tcase_add_test(tc, journal_keeps_revisions_of_groups_without_members);
	tcase_add_test(tc, oldest_revision_makes_room_in_the_journal);
	tcase_add_loop_test(tc, revision_of_an_attempt_in_doubt_is_not_kept, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
