/* SPDX-License-Identifier: MIT
 *
 * The master's core: the journal, and a run that is restored from it.
 */
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
		position[i] = (struct wm_ring_position){0, 3, (uint32_t)i};
		know[i] = (struct wm_resume){.epoch = 2,
			.round = 2,
			.topo_ballot = 2,
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

/* Leaves the name of the run, and the last list of its members. */
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

START_TEST(the_run_goes_on)
{
	const struct wm_hello_ack *ack;

	restart();
	fk_tick(&f, 100);
	ck_assert(fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	assert_contains(fk_status(&f).waiting, "recovering: waiting for 3 of 3 peers, agent a");
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

START_TEST(all_agents_may_have_died_with_it)
{
	uint64_t seq = 5;
	size_t i;

	restart();
	for (i = 0; i < 3; i++) {
		come_back(i, true);
		fk_query(&p[i], 1, &seq, 0);
	}
	fk_tick(&f, 300);
	/* All who were accepted are here, and have a result: perhaps each one another. */
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_take(h[i], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code,
			WIRE_RANK_CONNECTION_LOST);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	/* Their peers may have been told of more than is in the journal, but of no more than this.
	 */
	ck_assert_uint_gt(h[0]->generations[0].generation, 0);
	works(3);
}
END_TEST

/* c came by another agent than the journal says, while the last master was there: that agent says
 * what became of its part, and not c. */
START_TEST(who_came_by_another_agent_before_is_no_restarted_one)
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

START_TEST(the_token_is_asked_for)
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

START_TEST(who_does_not_come_back_is_lost)
{
	restart();
	fk_tick(&f, 60000); /* while nobody comes, it waits */
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

/* d was cut off before it heard that it was admitted, and the journal says that it was lost. */
START_TEST(who_was_lost_before_it_heard_of_its_commit_is_a_newcomer)
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
		know[i].topo_ballot = 3;
		come_back(i, false);
	}
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_REGISTERED);
	ck_assert_uint_eq(fk_count(d, WM_COMMIT), 0);
}
END_TEST

/* Its next agent had come to the last master, which gave the peer up before it was in a ring again:
 * that agent has the run's key, but no state. */
START_TEST(who_is_not_in_the_journal_is_lost_whatever_its_agent_knows)
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

/* d's agent stays for the sake of a newcomer. The others go on with the same call, under a number
 * of their own. */
START_TEST(who_is_not_in_the_journal_takes_no_part_in_operations)
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

START_TEST(peers_keep_their_names)
{
	struct ccm_peer_info before = fk_info(&p[2]), after;

	ck_assert_uint_gt(before.pid, 0);
	restart();
	fk_tick(&f, 100);
	after = fk_info(&p[2]);
	ck_assert_str_eq(after.name, before.name);
	ck_assert_uint_eq(after.pid, before.pid);
	ck_assert(after.disconnected);
}
END_TEST

START_TEST(the_generation_is_kept)
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

START_TEST(a_loss_is_written_before_it_is_told)
{
	struct wm_msg msg = {.type = WM_LEAVE, .u.leave = {.peer = p[1].id, .kind = WM_LEAVE_DIED}};
	struct ccm_event ev = {.type = CCM_EV_MSG, .conn = h[1]->conn, .msg = &msg};
	struct ccm_actions out = {0};
	size_t i, journal = 99, sent = 99;

	ck_assert_int_eq(ccm_step(f.m, &ev, f.now, &out), 0);
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

START_TEST(a_commit_that_nobody_heard_of_counts)
{
	struct fk_peer x;
	size_t i;

	/* The journal was written, the master died before it could tell. */
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
		h[i]->topo_ballot = 2;
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
	ck_assert_uint_eq(fk_take(h[0], WM_COMMIT)->u.commit.topo_ballot, 3);
}
END_TEST

START_TEST(the_term_grows_with_each_start)
{
	restart();
	fk_tick(&f, 100);
	ck_assert_uint_eq(fk_status(&f).term, 2);
	restart();
	fk_tick(&f, 100);
	ck_assert_uint_eq(fk_status(&f).term, 3);
}
END_TEST

START_TEST(agents_know_better_than_an_old_journal)
{
	size_t i;

	/* Another master has had the run meanwhile, and b is gone since then. */
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

START_TEST(a_stale_master_forgets_the_run)
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

START_TEST(a_run_without_members_begins_anew)
{
	uint64_t topo, pending;
	struct fk_host *d;
	struct fk_peer x;
	size_t i;

	/* What is answered then is in no journal, but agents remember it. */
	for (i = 0; i < 3; i++)
		fk_pending(&p[i]);
	pending = fk_take(h[0], WM_PENDING_ANSWER)->u.pending_answer.ballot;
	topo = h[0]->topo_ballot;
	for (i = 0; i < 3; i++)
		fk_leave(&p[i], WM_LEAVE_CLEAN);
	restart();
	d = fk_host(&f, "d", "10.0.0.4");
	x = fk_join(d, 0);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
	ck_assert_uint_gt(d->topo_ballot, topo);
	ck_assert_uint_gt(d->pending_ballot, pending);
}
END_TEST

/* Two masters have read the same journal, and were at work one after the other. */
START_TEST(a_run_that_begins_anew_twice_has_other_numbers)
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

/* Its end was damaged, and nothing but the name of the run is left. */
START_TEST(a_journal_without_members_is_none)
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

START_TEST(no_journal_no_records)
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

/* All three have offered this revision, and have it. */
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

/* Before anybody is told of it. */
START_TEST(revisions_are_in_the_journal)
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

/* Also of groups without members, and from one journal to the next. */
START_TEST(revisions_of_groups_without_members_are_in_the_journal)
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
	/* They can be seen. */
	left = (struct ccm_state_info){0};
	ccm_each_state(f.m, f.now, take_group_0, &left);
	ck_assert_uint_eq(left.expected, 8);
	ck_assert_uint_eq(left.peers, 0);
	x = fk_join(fk_host(&f, "e", "10.0.0.5"), 0);
	fk_settle(&f);
	ck_assert_uint_eq(fk_revision(x.host, 0), 8);
}
END_TEST

/* The journal ends with a list of so many revisions: of group 0, with members, and of groups
 * without. */
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

/* What somebody is told who comes to the group, and goes again. */
static uint64_t revision_of(struct fk_host *x, uint32_t group)
{
	struct fk_peer y = fk_admit(x, group, p, 3);
	uint64_t revision = fk_revision(x, group);

	fk_leave(&y, WM_LEAVE_DIED);
	return revision;
}

/* Of somebody alone in the group. */
static void sync_alone(struct fk_host *x, uint32_t group, uint64_t revision)
{
	struct fk_peer y = fk_admit(x, group, p, 3);

	fk_sync(&y, fk_candidate(revision, 1));
	fk_report(x, fk_status(&f).last_seq, true);
	ck_assert_uint_eq(fk_revision(x, group), revision + 1);
	fk_leave(&y, WM_LEAVE_DIED);
}

/* There is room for so many; of the groups without members, the one is forgotten that was
 * synchronized longest ago. */
START_TEST(the_oldest_revision_makes_room)
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

/* Everything died in the same moment. Whether the attempt was counted cannot be known. */
START_TEST(a_revision_in_doubt_is_none)
{
	uint64_t seq = 5;
	int i;

	sync_done(7);
	restart();
	for (i = 0; i < 3; i++) {
		h[i] = fk_reconnect_as(h[i], 1, true);
		p[i] = fk_join_again(&p[i], h[i], WM_JOIN_ACCEPTED);
		fk_query(&p[i], 1, &seq, _i ? 1 : 0); /* _i: they were told */
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
	tcase_add_test(tc, the_run_goes_on);
	tcase_add_test(tc, all_agents_may_have_died_with_it);
	tcase_add_test(tc, who_came_by_another_agent_before_is_no_restarted_one);
	tcase_add_test(tc, the_token_is_asked_for);
	tcase_add_test(tc, who_does_not_come_back_is_lost);
	tcase_add_test(tc, who_was_lost_before_it_heard_of_its_commit_is_a_newcomer);
	tcase_add_test(tc, who_is_not_in_the_journal_is_lost_whatever_its_agent_knows);
	tcase_add_test(tc, who_is_not_in_the_journal_takes_no_part_in_operations);
	tcase_add_test(tc, peers_keep_their_names);
	tcase_add_test(tc, the_generation_is_kept);
	tcase_add_test(tc, a_loss_is_written_before_it_is_told);
	tcase_add_test(tc, a_commit_that_nobody_heard_of_counts);
	tcase_add_test(tc, the_term_grows_with_each_start);
	tcase_add_test(tc, agents_know_better_than_an_old_journal);
	tcase_add_test(tc, a_stale_master_forgets_the_run);
	tcase_add_test(tc, a_run_without_members_begins_anew);
	tcase_add_test(tc, a_run_that_begins_anew_twice_has_other_numbers);
	tcase_add_test(tc, a_journal_without_members_is_none);
	tcase_add_test(tc, no_journal_no_records);
	tcase_add_test(tc, revisions_are_in_the_journal);
	tcase_add_test(tc, revisions_of_groups_without_members_are_in_the_journal);
	tcase_add_test(tc, the_oldest_revision_makes_room);
	tcase_add_loop_test(tc, a_revision_in_doubt_is_none, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
