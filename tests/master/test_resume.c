/* SPDX-License-Identifier: MIT
 *
 * The master's core: a run is taken over from a master that died.
 */
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/fake.h"

#define SEQ 5 /* of the last start that the last master made */

static struct fk f;
static struct fk_host *h[4];
static struct fk_peer p[4]; /* of group 0, on h[i] */

/* What the agent of h[i] says of the run: as it was told last. */
static struct know {
	struct wm_resume r;
	struct wm_group_world own;
	struct wm_ring_place place;
	struct wm_outcome outcomes[4];
} know[4];

static void setup(void)
{
	size_t i;

	memset(know, 0, sizeof know);
	fk_init(&f, NULL);
	h[0] = fk_host(&f, "a", "10.0.0.1");
	h[1] = fk_host(&f, "b", "10.0.0.2");
	h[2] = fk_host(&f, "c", "10.0.0.3");
	for (i = 0; i < 3; i++)
		p[i] = fk_join(h[i], 0);
	fk_topo(&p[0]);
	for (i = 0; i < 3; i++) {
		know[i].r = (struct wm_resume){
			.epoch = 2, .round = 2, .wired = 2, .last_seq = SEQ, .topo_turn = 2};
		know[i].r.world = (struct wm_world){
			.global = 3, .groups = 1, .largest = 3, .version = 2, .n = 1};
		know[i].own = (struct wm_group_world){0, 3, 0};
		know[i].place = (struct wm_ring_place){0, 3, (uint32_t)i};
	}
	fk_new_master(&f, NULL);
}

static void teardown(void)
{
	fk_free(&f);
}

static void manual(void)
{
	uint32_t i;

	for (i = 0; i < f.n_hosts; i++)
		f.hosts[i]->auto_report = false;
}

/* A new connection of h[i]'s agent. */
static void dial(size_t i)
{
	h[i] = fk_redial_as(h[i], 1, false);
	p[i].host = h[i];
}

static void join(size_t i, enum wm_join_phase phase)
{
	p[i] = fk_join_again(&p[i], h[i], phase);
}

static void end(size_t i)
{
	struct wm_msg msg = {.type = WM_RESUME, .u.resume = know[i].r};

	msg.u.resume.world.own = &know[i].own;
	if (know[i].place.hosts) {
		msg.u.resume.n_places = 1;
		msg.u.resume.places = &know[i].place;
	}
	msg.u.resume.outcomes = know[i].outcomes;
	fk_send(h[i], &msg);
}

static void come_back(size_t i)
{
	dial(i);
	join(i, WM_JOIN_ACCEPTED);
}

static void all_come_back(void)
{
	size_t i;

	for (i = 0; i < 3; i++)
		come_back(i);
}

static void all_end(void)
{
	size_t i;

	for (i = 0; i < 3; i++)
		end(i);
}

static void vote(size_t i, uint64_t tag, uint64_t seq)
{
	struct cc_id id = p[i].id;
	struct wm_msg msg = {.type = WM_OP_VOTE};

	msg.u.op_vote = (struct wm_op_vote){
		.tag = tag, .params = fk_params, .n_peers = 1, .peers = &id, .seq = seq};
	fk_send(h[i], &msg);
}

static void outcome(size_t i, uint64_t seq, uint32_t code)
{
	know[i].outcomes[know[i].r.n_outcomes++] = (struct wm_outcome){seq, code};
}

/* Has the peer, who comes by a new agent, the whole result? Or has it been told of success? */
static void query(size_t i, uint64_t seq)
{
	struct wm_msg msg = {.type = WM_OP_QUERY};

	msg.u.op_query.peer = p[i].id;
	msg.u.op_query.n = 1;
	msg.u.op_query.seqs[0] = seq;
	fk_send(h[i], &msg);
}

static void none_of(enum wm_type type)
{
	uint32_t i;

	for (i = 0; i < f.n_hosts; i++)
		ck_assert_uint_eq(fk_count(f.hosts[i], type), 0);
}

/* Nobody was told of an error. */
static void no_error(void)
{
	none_of(WM_OP_ABORT);
	none_of(WM_KICK);
	none_of(WM_REFUSE);
	ck_assert_uint_eq(fk_status(&f).losses, 0);
}

/* All three do an operation. */
static void works(void)
{
	uint64_t done = fk_status(&f).ops_done, seq;
	size_t i;

	fk_forget(&f);
	for (i = 0; i < 3; i++)
		fk_vote(&p[i], 77);
	seq = fk_take(h[0], WM_OP_START)->u.op_start.seq;
	ck_assert_uint_gt(seq, SEQ);
	for (i = 0; i < 3; i++)
		fk_report(h[i], seq, true);
	ck_assert_uint_eq(fk_status(&f).ops_done, done + 1);
}

START_TEST(nobody_notices_when_only_the_master_died)
{
	const struct wm_hello_ack *ack;
	const struct wm_world *w;

	come_back(2);
	ack = &fk_take(h[2], WM_HELLO_ACK)->u.hello_ack;
	ck_assert(ack->resume);
	ck_assert(cc_id_eq(&ack->run, &f.run));
	ck_assert(cc_id_eq(&ack->run_key, &f.run_key));
	ck_assert_uint_eq(ack->term, 2);
	end(2);
	come_back(0);
	end(0);
	ck_assert(fk_status(&f).recovering);
	ck_assert_uint_eq(h[0]->n, 1);
	come_back(1);
	ck_assert(fk_status(&f).recovering);
	end(1);
	ck_assert(!fk_status(&f).recovering);
	no_error();
	w = &fk_take(h[0], WM_WORLD)->u.world;
	ck_assert_uint_eq(w->global, 3);
	ck_assert_uint_gt(w->version, 2);
	ck_assert_uint_eq(w->own[0].losses, 0);
	/* The ring is the one that was there, in whatever order they came. */
	ck_assert_int_eq(fk_info(&p[0]).rank, 0);
	ck_assert_int_eq(fk_info(&p[1]).rank, 1);
	ck_assert_int_eq(fk_info(&p[2]).rank, 2);
	ck_assert_uint_gt(fk_take(h[0], WM_ROUND)->u.round.round, 2);
	ck_assert_uint_ge(fk_take(h[0], WM_COMMIT)->u.commit.epoch, 2);
	works();
	no_error();
}
END_TEST

START_TEST(what_runs_goes_on)
{
	size_t i;

	all_come_back();
	for (i = 0; i < 3; i++)
		vote(i, 1, SEQ);
	fk_report(h[2], SEQ, true);
	all_end();
	none_of(WM_OP_START);
	no_error();
	ck_assert_int_eq(fk_info(&p[0]).state, CCM_COLLECTIVE_COMMUNICATIONS_RUNNING);
	fk_report(h[0], SEQ, true);
	none_of(WM_OP_DONE);
	fk_report(h[1], SEQ, true);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_take(h[i], WM_OP_DONE)->u.op_done.seq, SEQ);
	works();
}
END_TEST

START_TEST(a_report_may_come_between_resumption_and_the_end_of_it)
{
	size_t i;

	for (i = 0; i < 3; i++) {
		come_back(i);
		vote(i, 1, SEQ);
		end(i);
		if (i < 2)
			fk_report(h[i], SEQ, true);
	}
	fk_report(h[2], SEQ, true);
	ck_assert_uint_eq(fk_count(h[0], WM_OP_DONE), 1);
	no_error();
}
END_TEST

START_TEST(starts_that_did_not_arrive_are_repeated_in_order)
{
	uint64_t seq;

	know[1].r.last_seq = SEQ - 3;
	all_come_back();
	for (seq = SEQ; seq > SEQ - 3; seq--) {
		vote(0, seq, seq);
		vote(1, seq, 0);
		vote(2, seq, seq);
	}
	all_end();
	ck_assert_uint_eq(fk_count(h[0], WM_OP_START), 0);
	ck_assert_uint_eq(fk_count(h[2], WM_OP_START), 0);
	for (seq = SEQ - 2; seq <= SEQ; seq++) {
		const struct wm_op_start *s = &fk_take(h[1], WM_OP_START)->u.op_start;

		ck_assert_uint_eq(s->seq, seq);
		ck_assert_uint_eq(s->tag, seq);
		ck_assert_uint_eq(s->epoch, 2);
	}
	no_error();
	fk_report(h[0], SEQ, true);
	fk_report(h[1], SEQ, true);
	fk_report(h[2], SEQ, true);
	ck_assert_uint_eq(fk_take(h[1], WM_OP_DONE)->u.op_done.seq, SEQ);
}
END_TEST

START_TEST(what_all_have_reported_is_done)
{
	size_t i;

	all_come_back();
	for (i = 0; i < 3; i++) {
		vote(i, 1, SEQ);
		fk_report(h[i], SEQ, true);
	}
	all_end();
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_take(h[i], WM_OP_DONE)->u.op_done.seq, SEQ);
	no_error();
}
END_TEST

START_TEST(a_failure_that_was_not_told_aborts)
{
	size_t i;

	all_come_back();
	for (i = 0; i < 3; i++) {
		vote(i, 1, SEQ);
		fk_report(h[i], SEQ, i != 1);
	}
	all_end();
	for (i = 0; i < 3; i++)
		assert_contains(fk_take(h[i], WM_OP_ABORT)->u.op_abort.text, "host b reports");
	none_of(WM_OP_DONE);
	works();
}
END_TEST

START_TEST(what_one_knows_to_have_ended_has_ended_for_all)
{
	outcome(0, SEQ - 1, WIRE_SUCCESS);
	outcome(0, SEQ, WIRE_RANK_CONNECTION_FAILED);
	all_come_back();
	vote(1, 1, SEQ - 1);
	fk_report(h[1], SEQ - 1, true);
	vote(2, 1, SEQ - 1);
	fk_report(h[2], SEQ - 1, true);
	vote(1, 2, SEQ);
	vote(2, 2, SEQ);
	all_end();
	ck_assert_uint_eq(fk_take(h[1], WM_OP_DONE)->u.op_done.seq, SEQ - 1);
	ck_assert_uint_eq(fk_take(h[2], WM_OP_DONE)->u.op_done.seq, SEQ - 1);
	ck_assert_uint_eq(fk_take(h[1], WM_OP_ABORT)->u.op_abort.code, WIRE_RANK_CONNECTION_FAILED);
	ck_assert_uint_eq(fk_take(h[2], WM_OP_ABORT)->u.op_abort.seq, SEQ);
	ck_assert_uint_eq(fk_count(h[0], WM_OP_ABORT) + fk_count(h[0], WM_OP_DONE), 0);
	works();
}
END_TEST

START_TEST(an_attempt_that_somebody_has_not_voted_for_is_aborted)
{
	const struct wm_op_abort *x;

	know[1].r.last_seq = SEQ - 1;
	all_come_back();
	vote(0, 1, SEQ);
	vote(1, 1, 0); /* has not heard of the start */
	all_end();
	x = &fk_take(h[0], WM_OP_ABORT)->u.op_abort;
	ck_assert_uint_eq(x->seq, SEQ);
	x = &fk_take(h[1], WM_OP_ABORT)->u.op_abort;
	ck_assert_uint_eq(x->seq, 0);
	ck_assert_uint_eq(x->tag, 1);
	ck_assert_uint_eq(fk_count(h[2], WM_OP_ABORT), 0);
	works();
}
END_TEST

START_TEST(a_vote_of_an_attempt_that_failed_unheard_does_not_meet_the_next)
{
	struct wm_msg msg = {.type = WM_OP_VOTE};
	struct cc_id id = p[0].id;

	/* Attempt SEQ of tag 1 was aborted: c has not even heard of its start, a tries again. */
	outcome(0, SEQ, WIRE_RANK_CONNECTION_LOST);
	know[0].own.losses = 1;
	know[2].r.last_seq = SEQ - 1;
	all_come_back();
	msg.u.op_vote = (struct wm_op_vote){
		.tag = 1, .params = fk_params, .n_peers = 1, .peers = &id, .losses = 1};
	fk_send(h[0], &msg);
	vote(2, 1, 0);
	all_end();
	ck_assert_uint_eq(fk_count(h[0], WM_OP_ABORT), 0);
	ck_assert_uint_eq(fk_take(h[2], WM_OP_ABORT)->u.op_abort.tag, 1);
	ck_assert_uint_eq(fk_take(h[2], WM_WORLD)->u.world.own[0].losses, 1);
	fk_vote(&p[1], 1);
	fk_vote(&p[2], 1);
	ck_assert_uint_eq(fk_count(h[0], WM_OP_START), 1);
}
END_TEST

START_TEST(votes_for_what_has_not_started_stand)
{
	all_come_back();
	vote(0, 1, 0);
	vote(2, 1, 0);
	all_end();
	none_of(WM_OP_START);
	vote(1, 1, 0);
	/* The last master may have used some numbers after those that were heard. */
	ck_assert_uint_gt(fk_take(h[0], WM_OP_START)->u.op_start.seq, SEQ + 1000);
	no_error();
}
END_TEST

START_TEST(who_does_not_come_back_is_lost)
{
	const struct wm_world *w;

	come_back(0);
	come_back(2);
	vote(0, 1, SEQ);
	vote(2, 1, SEQ);
	fk_report(h[0], SEQ, true);
	end(0);
	end(2);
	fk_tick(&f, 2900);
	ck_assert(fk_status(&f).recovering);
	assert_contains(fk_status(&f).waiting, "recovering: waiting for 1 of 3 peers");
	fk_tick(&f, 300);
	ck_assert(!fk_status(&f).recovering);
	w = &fk_take(h[0], WM_WORLD)->u.world;
	ck_assert_uint_eq(w->global, 2);
	ck_assert_uint_eq(w->own[0].losses, 1);
	ck_assert_uint_eq(fk_take(h[0], WM_OP_ABORT)->u.op_abort.seq, SEQ);
	ck_assert_uint_eq(fk_take(h[2], WM_OP_ABORT)->u.op_abort.seq, SEQ);
	ck_assert_uint_eq(fk_take(h[0], WM_ROUND)->u.round.rings[0].hosts, 2);
	/* It comes too late. */
	come_back(1);
	ck_assert_uint_eq(fk_take(h[1], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	fk_vote(&p[0], 2);
	fk_vote(&p[2], 2);
	ck_assert_uint_eq(fk_count(h[2], WM_OP_START), 1);
}
END_TEST

START_TEST(newcomers_wait_for_the_end_of_it)
{
	struct fk_host *d;
	struct fk_peer x;

	come_back(0);
	end(0);
	d = fk_host(&f, "d", "10.0.0.4");
	x = fk_join(d, 0);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_REGISTERED);
	come_back(1);
	end(1);
	come_back(2);
	end(2);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_REGISTERED);
	ck_assert_uint_eq(d->n, 0);
	fk_topo(&p[0]);
	fk_topo(&p[1]);
	fk_topo(&p[2]);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
	ck_assert_int_eq(fk_info(&x).rank, 3);
	no_error();
}
END_TEST

/* The bound passes while a tells what it knows. Who is accepted then must not count votes in
 * another way than a does. */
START_TEST(turns_that_are_told_late_count)
{
	const struct wm_commit *c;
	struct fk_host *d;
	struct fk_peer x;

	come_back(0);
	h[0]->topo_turn = 0; /* what this master does not know yet */
	d = fk_host(&f, "d", "10.0.0.4");
	x = fk_join(d, 0);
	fk_tick(&f, 3100);
	ck_assert(!fk_status(&f).recovering);
	know[0].r.topo_turn = 4;
	know[0].r.pending_turn = 7;
	know[0].r.pending = true;
	end(0);
	h[0]->topo_turn = 4;
	fk_topo(&p[0]);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
	c = &fk_take(d, WM_COMMIT)->u.commit;
	ck_assert_uint_eq(c->topo_turn, 5);
	ck_assert_uint_eq(c->pending_turn, 7);
}
END_TEST

/* Its new agent has nothing else to say; the master's journal is older. */
START_TEST(a_peer_that_comes_by_a_new_agent_knows_its_turns)
{
	struct wm_msg msg = {.type = WM_JOIN};

	h[0] = fk_redial_as(h[0], 0, true);
	h[0]->topo_turn = 0;
	p[0].host = h[0];
	msg.u.join = (struct wm_join){.peer = p[0].id,
		.token = p[0].token,
		.pool_size = 1,
		.phase = WM_JOIN_ACCEPTED,
		.topo_turn = 5,
		.pending_turn = 3};
	fk_send(h[0], &msg);
	fk_resumed(h[0]);
	fk_tick(&f, 3200);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_take(h[0], WM_COMMIT)->u.commit.pending_turn, 3);
	ck_assert_uint_eq(h[0]->topo_turn, 5);
}
END_TEST

/* a and b were in round 3, which admitted d; d has not heard of its commit, nor has c. */
static void half_committed(void)
{
	size_t i;

	h[3] = fk_host(&f, "d", "10.0.0.4");
	h[3]->open = false;
	p[3] = (struct fk_peer){.host = h[3], .id = fk_id(&f), .token = {{4}}};
	fk_new_master(&f, NULL);
	know[3] = know[0];
	for (i = 0; i < 4; i++) {
		know[i].place.hosts = 4;
		know[i].r.round = know[i].r.wired = 3;
		know[i].r.epoch = 3;
		know[i].r.topo_turn = 3;
		know[i].r.world.version = 3;
		know[i].r.world.global = know[i].own.world = 4;
	}
	know[2] = (struct know){.r = {.epoch = 2,
					.round = 2,
					.wired = 2,
					.prepared = 3,
					.last_seq = SEQ,
					.topo_turn = 2,
					.world = {.global = 3, .version = 2, .n = 1}},
		.own = {0, 3, 0},
		.place = {0, 3, 2}};
	know[3] = (struct know){.r = {.prepared = 3}};
}

START_TEST(a_round_that_somebody_knows_to_be_committed_is_committed)
{
	const struct wm_commit *c;

	half_committed();
	manual();
	dial(3);
	join(3, WM_JOIN_PREPARED);
	end(3);
	all_come_back();
	all_end();
	ck_assert(!fk_status(&f).recovering);
	c = &fk_take(h[3], WM_COMMIT)->u.commit;
	ck_assert_uint_eq(c->round, 3);
	ck_assert_uint_eq(c->epoch, 3);
	ck_assert(c->accept);
	ck_assert_uint_eq(c->topo_turn, 3);
	ck_assert_uint_eq(c->world.global, 4);
	ck_assert_uint_eq(fk_take(h[2], WM_COMMIT)->u.commit.round, 3);
	ck_assert_uint_eq(fk_count(h[0], WM_COMMIT), 0);
	ck_assert_uint_eq(fk_status(&f).accepted, 4);
	ck_assert_uint_gt(fk_take(h[0], WM_ROUND)->u.round.round, 3);
}
END_TEST

START_TEST(a_round_that_nobody_knows_to_be_committed_is_not)
{
	size_t i;

	half_committed();
	for (i = 0; i < 2; i++) {
		know[i] = know[2];
		know[i].place.pos = (uint32_t)i;
	}
	dial(3);
	join(3, WM_JOIN_PREPARED);
	end(3);
	all_come_back();
	all_end();
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	ck_assert_int_eq(fk_info(&p[3]).phase, CCM_PEER_REGISTERED);
	ck_assert_uint_eq(fk_count(h[3], WM_COMMIT), 0);
	/* Numbers of rounds that were prepared are not used again. */
	ck_assert_uint_gt(fk_take(h[0], WM_ROUND)->u.round.round, 3);
	no_error();
}
END_TEST

/* The commit of the round that admits c and d was told to d alone; a and b, all of the members
 * before, know of its preparation. Who comes first must not decide that it was dropped. */
static void half_admitted(void)
{
	size_t i;

	half_committed();
	know[3] = know[0];
	know[3].place.pos = 3;
	for (i = 0; i < 3; i++) {
		know[i] = (struct know){.r = {.epoch = 2,
						.round = 2,
						.wired = 2,
						.prepared = 3,
						.prepared_peers = 4,
						.last_seq = SEQ,
						.topo_turn = 2,
						.world = {.global = 2, .version = 2, .n = 1}},
			.own = {0, 2, 0},
			.place = {0, 2, (uint32_t)i}};
	}
	know[2] = (struct know){.r = {.prepared = 3, .prepared_peers = 4}};
	manual();
	for (i = 0; i < 2; i++) {
		come_back(i);
		end(i);
	}
}

START_TEST(newcomers_may_know_of_the_commit)
{
	half_admitted();
	ck_assert(fk_status(&f).recovering);
	assert_contains(fk_status(&f).waiting, "committed");
	come_back(3);
	end(3);
	ck_assert(fk_status(&f).recovering);
	dial(2);
	join(2, WM_JOIN_PREPARED);
	end(2);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 4);
	ck_assert_uint_eq(fk_take(h[0], WM_COMMIT)->u.commit.round, 3);
	no_error();
}
END_TEST

START_TEST(who_may_know_of_the_commit_is_not_waited_for_for_ever)
{
	half_admitted();
	dial(2);
	join(2, WM_JOIN_PREPARED);
	end(2);
	fk_tick(&f, 2900);
	ck_assert(fk_status(&f).recovering);
	fk_tick(&f, 200);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
	ck_assert_int_eq(fk_info(&p[2]).phase, CCM_PEER_REGISTERED);
	no_error();
	come_back(3);
	ck_assert_uint_eq(fk_take(h[3], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
}
END_TEST

START_TEST(a_round_that_somebody_was_not_ready_for_is_not_committed)
{
	half_admitted();
	know[2] = (struct know){.r = {.unprepared = 3}};
	dial(2);
	join(2, WM_JOIN_NEW);
	end(2);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
	no_error();
}
END_TEST

START_TEST(who_was_in_the_round_and_left_is_not_waited_for)
{
	half_admitted();
	dial(2);
	join(2, WM_JOIN_PREPARED);
	fk_leave(&p[2], WM_LEAVE_DIED);
	dial(3);
	join(3, WM_JOIN_PREPARED);
	know[3] = know[2];
	end(2);
	ck_assert(fk_status(&f).recovering);
	end(3);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
	no_error();
}
END_TEST

/* Masters that take over do not number their rounds like those that they have not heard of. */
START_TEST(rounds_of_two_masters_are_not_mistaken_for_each_other)
{
	come_back(0);
	end(0);
	fk_tick(&f, 3100);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_gt(fk_take(h[0], WM_ROUND)->u.round.round, 2 + 1000000);
}
END_TEST

/* a and b have committed the round that c was not told of, and then a vote with nothing to do. */
START_TEST(a_vote_with_nothing_to_do_does_not_hide_the_commit_before)
{
	size_t i;

	for (i = 0; i < 2; i++) {
		know[i].r.epoch = know[i].r.wired = 3;
		know[i].r.round = 4;
		know[i].r.world.version = 4;
	}
	know[2].r.prepared = 3;
	know[2].r.prepared_peers = 3;
	all_come_back();
	all_end();
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_take(h[2], WM_COMMIT)->u.commit.round, 3);
	no_error();
	works();
}
END_TEST

START_TEST(a_topology_vote_that_was_answered_is_answered_again)
{
	struct wm_msg msg = {.type = WM_TOPO_VOTE};
	uint64_t round;

	know[0].r.topo_turn = know[1].r.topo_turn = 3;
	know[0].r.round = know[1].r.round = 3; /* nothing was changed by it */
	all_come_back();
	msg.u.peer = (struct wm_peer){p[2].id, 2};
	fk_send(h[2], &msg);
	all_end();
	ck_assert_uint_gt(fk_take(h[2], WM_ROUND)->u.round.round, 3);
	/* Either before or after that of the round that checks the rings. */
	round = fk_take(h[2], WM_COMMIT)->u.commit.round;
	if (round == 3)
		round = fk_take(h[2], WM_COMMIT)->u.commit.round;
	else
		ck_assert_uint_eq(fk_take(h[2], WM_COMMIT)->u.commit.round, 3);
	ck_assert_uint_gt(round, 3);
	ck_assert_uint_eq(h[2]->topo_turn, 3);
	ck_assert_uint_eq(fk_count(h[0], WM_COMMIT), 1);
	ck_assert_str_eq(fk_status(&f).waiting, "");
	no_error();
}
END_TEST

START_TEST(topology_votes_that_were_not_answered_count)
{
	size_t i;

	all_come_back();
	fk_topo(&p[0]);
	fk_topo(&p[2]);
	all_end();
	assert_contains(fk_status(&f).waiting, "waiting for 1 of 3 peers to vote on the topology");
	fk_forget(&f);
	fk_topo(&p[1]);
	for (i = 0; i < 3; i++) {
		const struct wm_commit *c = &fk_take(h[i], WM_COMMIT)->u.commit;

		ck_assert(c->accept);
		ck_assert_uint_eq(c->topo_turn, 3);
	}
	no_error();
}
END_TEST

START_TEST(pending_votes_are_answered_once)
{
	struct wm_msg msg = {.type = WM_PENDING_VOTE};
	const struct wm_pending_answer *x;

	know[0].r.pending_turn = 4;
	know[0].r.pending = true;
	all_come_back();
	msg.u.peer = (struct wm_peer){p[2].id, 3};
	fk_send(h[2], &msg);
	msg.u.peer = (struct wm_peer){p[0].id, 4};
	fk_send(h[0], &msg);
	all_end();
	x = &fk_take(h[2], WM_PENDING_ANSWER)->u.pending_answer;
	ck_assert(x->pending);
	ck_assert_uint_eq(x->turn, 4);
	ck_assert_uint_eq(fk_count(h[0], WM_PENDING_ANSWER), 0);
	msg.u.peer = (struct wm_peer){p[2].id, 4};
	fk_send(h[2], &msg);
	msg.u.peer = (struct wm_peer){p[1].id, 4};
	fk_send(h[1], &msg);
	x = &fk_take(h[0], WM_PENDING_ANSWER)->u.pending_answer;
	ck_assert(!x->pending);
	ck_assert_uint_eq(x->turn, 5);
	no_error();
}
END_TEST

START_TEST(without_the_key_the_greeting_waits)
{
	struct fk_host *d = fk_redial_as(h[2], 0, true), *e;

	ck_assert_uint_eq(d->n, 0);
	e = fk_connect(&f, "new", "10.0.0.8");
	{
		struct wm_msg msg = fk_hello(e);

		fk_send(e, &msg);
	}
	ck_assert_uint_eq(e->n, 0);
	dial(0);
	ck_assert(cc_id_eq(&fk_take(d, WM_HELLO_ACK)->u.hello_ack.run_key, &f.run_key));
	ck_assert(cc_id_eq(&fk_take(e, WM_HELLO_ACK)->u.hello_ack.run_key, &f.run_key));
	ck_assert(cc_id_eq(&fk_take(h[0], WM_HELLO_ACK)->u.hello_ack.run_key, &f.run_key));
}
END_TEST

START_TEST(the_greeting_does_not_wait_for_ever)
{
	struct fk_host *d = fk_redial_as(h[2], 0, true);
	const struct wm_hello_ack *ack;

	fk_tick(&f, 1700);
	ck_assert(d->open);
	ack = &fk_take(d, WM_HELLO_ACK)->u.hello_ack;
	ck_assert(ack->resume);
	ck_assert(!cc_id_is_zero(&ack->run_key));
}
END_TEST

START_TEST(another_run_is_not_ours)
{
	struct fk_host *x = fk_connect(&f, "x", "10.0.0.7");
	struct wm_msg msg = fk_hello(x);

	dial(0);
	msg.u.hello.run = (struct cc_id){{66}};
	msg.u.hello.run_key = (struct cc_id){{67}};
	msg.u.hello.term = 99;
	fk_send(x, &msg);
	ck_assert(!fk_take(x, WM_HELLO_ACK)->u.hello_ack.resume);
	ck_assert_uint_eq(fk_status(&f).term, 2);
	ck_assert_uint_eq(fk_status(&f).stale, 0);
}
END_TEST

START_TEST(a_run_of_its_own_is_not_given_up)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.4");

	(void)fk_join(d, 0);
	dial(0);
	ck_assert(!fk_take(h[0], WM_HELLO_ACK)->u.hello_ack.resume);
	ck_assert(d->open);
	ck_assert(!fk_status(&f).recovering);
}
END_TEST

START_TEST(newcomers_of_an_invented_run_connect_again)
{
	struct fk_host *d;

	d = fk_host(&f, "d", "10.0.0.4");
	d->auto_report = false;
	(void)fk_join(d, 0);
	dial(0);
	ck_assert(!d->open);
	ck_assert_uint_eq(fk_take(d, WM_REFUSE)->u.refuse.code, WIRE_MASTER_CONNECTION_FAILED);
	ck_assert(fk_take(h[0], WM_HELLO_ACK)->u.hello_ack.resume);
	join(0, WM_JOIN_ACCEPTED);
	come_back(1);
	come_back(2);
	all_end();
	works();
}
END_TEST

START_TEST(a_fresh_master_prefers_the_run_that_there_is)
{
	struct ccm_config cfg = {.run = {{9}}, .run_key = {{9}}, .adopt_ms = 600};
	struct fk_host *d;
	struct wm_msg msg;

	fk_new_master(&f, &cfg);
	d = fk_connect(&f, "d", "10.0.0.4");
	msg = fk_hello(d);
	fk_send(d, &msg);
	ck_assert_uint_eq(d->n, 0);
	dial(0);
	ck_assert(cc_id_eq(&fk_take(d, WM_HELLO_ACK)->u.hello_ack.run, &f.run));
	ck_assert(!d->closed[0]);
	/* Nor does it wait for one for long. */
	fk_new_master(&f, &cfg);
	d = fk_connect(&f, "d", "10.0.0.4");
	fk_send(d, &msg);
	fk_tick(&f, 500);
	ck_assert_uint_eq(d->n, 0);
	fk_tick(&f, 100);
	ck_assert_uint_eq(fk_count(d, WM_HELLO_ACK), 1);
	d = fk_host(&f, "e", "10.0.0.5");
	ck_assert(d->open);
}
END_TEST

START_TEST(the_term_is_higher_than_any_that_was_seen)
{
	h[0] = fk_redial_as(h[0], 4, false);
	ck_assert_uint_eq(fk_take(h[0], WM_HELLO_ACK)->u.hello_ack.term, 5);
	h[1] = fk_redial_as(h[1], 7, false);
	ck_assert_uint_eq(fk_take(h[1], WM_HELLO_ACK)->u.hello_ack.term, 8);
	h[2] = fk_redial_as(h[2], 8, false);
	ck_assert_uint_eq(fk_take(h[2], WM_HELLO_ACK)->u.hello_ack.term, 9);
}
END_TEST

START_TEST(a_stale_master_refuses_everybody)
{
	struct fk_host *x = fk_connect(&f, "x", "10.0.0.7");
	struct wm_msg msg = fk_hello(x);

	all_come_back();
	all_end();
	fk_forget(&f);
	msg.u.hello.run = f.run;
	msg.u.hello.run_key = (struct cc_id){{1, 2, 3}}; /* not the run's */
	msg.u.hello.term = 3;
	fk_send(x, &msg);
	ck_assert(!fk_take(x, WM_HELLO_ACK)->u.hello_ack.resume);
	ck_assert_uint_eq(fk_status(&f).stale, 0);
	x = fk_connect(&f, "x", "10.0.0.7");
	msg.u.hello.run_key = f.run_key;
	fk_send(x, &msg);
	assert_contains(fk_take(x, WM_REFUSE)->u.refuse.text,
		"a newer master (term 3) has taken this run over");
	ck_assert_uint_eq(fk_take(h[0], WM_REFUSE)->u.refuse.code, WIRE_MASTER_CONNECTION_FAILED);
	ck_assert(!h[1]->open);
	ck_assert_uint_eq(fk_status(&f).accepted, 0);
	x = fk_connect(&f, "y", "10.0.0.6");
	msg = fk_hello(x);
	fk_send(x, &msg);
	ck_assert_uint_eq(fk_count(x, WM_REFUSE), 1);
	ck_assert_uint_eq(fk_status(&f).stale, 3);
}
END_TEST

/* c's agent died with the master; its peer comes by a new one. */
static void restart_c(void)
{
	h[2] = fk_redial_as(h[2], 0, true);
	join(2, WM_JOIN_ACCEPTED);
	know[2] = (struct know){.r = {0}};
}

START_TEST(a_peer_may_come_by_a_new_agent)
{
	come_back(0);
	come_back(1);
	vote(0, 1, SEQ);
	vote(1, 1, SEQ);
	fk_report(h[0], SEQ, true);
	restart_c();
	all_end();
	ck_assert(fk_status(&f).recovering); /* its question may follow */
	fk_tick(&f, 300);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_take(h[0], WM_OP_ABORT)->u.op_abort.seq, SEQ);
	ck_assert_uint_eq(fk_take(h[1], WM_OP_ABORT)->u.op_abort.seq, SEQ);
	ck_assert_uint_eq(fk_take(h[0], WM_WORLD)->u.world.global, 3);
	ck_assert_uint_eq(h[2]->losses[0].losses, 1);
	ck_assert_uint_eq(fk_count(h[2], WM_COMMIT), 1);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	none_of(WM_KICK);
	works();
}
END_TEST

START_TEST(what_all_hosts_have_is_done)
{
	const struct wm_op_outcomes *o;

	/* Either the last master had told c's agent alone, or nobody. */
	come_back(0);
	come_back(1);
	vote(0, 1, SEQ);
	vote(1, 1, SEQ);
	fk_report(h[0], SEQ, true);
	fk_report(h[1], SEQ, true);
	restart_c();
	query(2, SEQ);
	all_end();
	ck_assert_uint_eq(fk_count(h[2], WM_OP_OUTCOMES), 0);
	fk_tick(&f, 300);
	ck_assert_uint_eq(fk_take(h[0], WM_OP_DONE)->u.op_done.seq, SEQ);
	ck_assert_uint_eq(fk_take(h[1], WM_OP_DONE)->u.op_done.seq, SEQ);
	o = &fk_take(h[2], WM_OP_OUTCOMES)->u.op_outcomes;
	ck_assert_uint_eq(o->v[0].code, WIRE_SUCCESS);
	none_of(WM_OP_ABORT);
	works();
}
END_TEST

START_TEST(what_a_host_does_not_have_is_not)
{
	come_back(0);
	come_back(1);
	vote(0, 1, SEQ);
	vote(1, 1, SEQ);
	fk_report(h[0], SEQ, true);
	fk_report(h[1], SEQ, true);
	restart_c();
	query(2, SEQ - 1);
	all_end();
	fk_tick(&f, 300);
	ck_assert_uint_eq(fk_count(h[0], WM_OP_ABORT), 1);
	ck_assert_uint_eq(fk_count(h[1], WM_OP_ABORT), 1);
	ck_assert_uint_eq(
		fk_take(h[2], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_RANK_CONNECTION_LOST);
	works();
}
END_TEST

/* All agents died with the master: what all peers have is done all the same. */
START_TEST(what_all_peers_have_is_done)
{
	uint32_t code = _i == 0 ? WIRE_SUCCESS : WIRE_RANK_CONNECTION_LOST;
	size_t i;

	for (i = 0; i < 3; i++) {
		h[i] = fk_redial_as(h[i], 0, true);
		join(i, WM_JOIN_ACCEPTED);
		know[i] = (struct know){.r = {.topo_turn = 2}}; /* as its peer says */
	}
	for (i = 0; i < 3; i++)
		query(i, i == 1 && _i == 1 ? SEQ - 1 : SEQ);
	all_end();
	fk_tick(&f, 4000);
	ck_assert(!fk_status(&f).recovering);
	for (i = 0; i < 3; i += 2)
		ck_assert_uint_eq(fk_take(h[i], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, code);
	works();
}
END_TEST

/* Somebody else is lost: those who are left have the result, all of them. */
START_TEST(what_all_who_are_left_have_is_done)
{
	come_back(0);
	vote(0, 1, SEQ);
	fk_report(h[0], SEQ, true);
	restart_c();
	query(2, SEQ);
	end(0);
	end(2);
	fk_tick(&f, 4000);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_take(h[0], WM_OP_DONE)->u.op_done.seq, SEQ);
	ck_assert_uint_eq(fk_take(h[2], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_SUCCESS);
	ck_assert_uint_eq(fk_count(h[0], WM_OP_ABORT), 0);
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
}
END_TEST

START_TEST(questions_of_the_last_masters_time_are_answered)
{
	outcome(1, SEQ, WIRE_SUCCESS);
	come_back(0);
	come_back(1);
	restart_c();
	all_end();
	fk_tick(&f, 300);
	query(2, SEQ);
	ck_assert_uint_eq(fk_take(h[2], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_SUCCESS);
}
END_TEST

START_TEST(losses_never_fall)
{
	struct ccm_config cfg = {.run = {{9}}, .run_key = {{9}}, .first_number = 1000};
	size_t i;

	/* All agents died with the master: nobody knows how far it had counted. */
	fk_new_master(&f, &cfg);
	for (i = 0; i < 3; i++) {
		h[i] = fk_redial_as(h[i], 0, true);
		join(i, WM_JOIN_ACCEPTED);
		know[i] = (struct know){.r = {.topo_turn = 2}}; /* as its peer says */
	}
	fk_tick(&f, 2000);
	all_end();
	fk_tick(&f, 2000);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(h[0]->losses[0].losses, 1001);
	works();
}
END_TEST

START_TEST(who_was_lost_before_is_not_let_in_again)
{
	size_t i;

	/* c was lost by the last master, but could not be told. */
	for (i = 0; i < 2; i++) {
		know[i].r.epoch = know[i].r.round = know[i].r.wired = 3;
		know[i].r.world.version = 4;
		know[i].r.world.global = know[i].own.world = 2;
		know[i].own.losses = 1;
		know[i].place.hosts = 2;
	}
	come_back(2);
	end(2);
	come_back(0);
	end(0);
	ck_assert(fk_status(&f).recovering);
	come_back(1);
	end(1);
	ck_assert(!fk_status(&f).recovering);
	assert_contains(fk_take(h[2], WM_KICK)->u.kick.text, "declared lost");
	ck_assert(fk_present(&p[0]) && fk_present(&p[1]) && !fk_present(&p[2]));
	none_of(WM_OP_ABORT);
}
END_TEST

START_TEST(who_left_meanwhile_is_not_waited_for)
{
	all_come_back();
	fk_leave(&p[1], WM_LEAVE_DIED);
	vote(0, 1, SEQ);
	vote(2, 1, SEQ);
	all_end();
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
	ck_assert_uint_eq(fk_count(h[0], WM_OP_ABORT), 1);
	ck_assert_uint_eq(h[0]->losses[0].losses, 1);
	ck_assert_uint_eq(fk_take(h[0], WM_ROUND)->u.round.rings[0].hosts, 2);
}
END_TEST

START_TEST(a_connection_may_break_again)
{
	come_back(0);
	end(0);
	come_back(1);
	vote(1, 1, SEQ);
	fk_cut(h[1], "reset");
	come_back(2);
	end(2);
	ck_assert(fk_status(&f).recovering);
	assert_contains(fk_status(&f).waiting, "agent b absent for 0.0 s");
	come_back(1);
	ck_assert(fk_status(&f).recovering);
	end(1);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	works();
}
END_TEST

START_TEST(whoever_says_that_he_was_accepted_must_know_the_run)
{
	struct fk_host *d;
	struct fk_peer x = {.id = {{5}}, .token = {{6}}};

	come_back(0);
	d = fk_host(&f, "d", "10.0.0.4");
	(void)fk_join_again(&x, d, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_take(d, WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	(void)fk_join_again(&p[0], d, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_status(&f).accepted, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("resume");
	TCase *tc = tcase_create("resume");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, nobody_notices_when_only_the_master_died);
	tcase_add_test(tc, what_runs_goes_on);
	tcase_add_test(tc, a_report_may_come_between_resumption_and_the_end_of_it);
	tcase_add_test(tc, starts_that_did_not_arrive_are_repeated_in_order);
	tcase_add_test(tc, what_all_have_reported_is_done);
	tcase_add_test(tc, a_failure_that_was_not_told_aborts);
	tcase_add_test(tc, what_one_knows_to_have_ended_has_ended_for_all);
	tcase_add_test(tc, an_attempt_that_somebody_has_not_voted_for_is_aborted);
	tcase_add_test(tc, a_vote_of_an_attempt_that_failed_unheard_does_not_meet_the_next);
	tcase_add_test(tc, votes_for_what_has_not_started_stand);
	tcase_add_test(tc, who_does_not_come_back_is_lost);
	tcase_add_test(tc, newcomers_wait_for_the_end_of_it);
	tcase_add_test(tc, turns_that_are_told_late_count);
	tcase_add_test(tc, a_peer_that_comes_by_a_new_agent_knows_its_turns);
	tcase_add_test(tc, a_round_that_somebody_knows_to_be_committed_is_committed);
	tcase_add_test(tc, a_round_that_nobody_knows_to_be_committed_is_not);
	tcase_add_test(tc, newcomers_may_know_of_the_commit);
	tcase_add_test(tc, who_may_know_of_the_commit_is_not_waited_for_for_ever);
	tcase_add_test(tc, a_round_that_somebody_was_not_ready_for_is_not_committed);
	tcase_add_test(tc, who_was_in_the_round_and_left_is_not_waited_for);
	tcase_add_test(tc, rounds_of_two_masters_are_not_mistaken_for_each_other);
	tcase_add_test(tc, a_vote_with_nothing_to_do_does_not_hide_the_commit_before);
	tcase_add_test(tc, a_topology_vote_that_was_answered_is_answered_again);
	tcase_add_test(tc, topology_votes_that_were_not_answered_count);
	tcase_add_test(tc, pending_votes_are_answered_once);
	tcase_add_test(tc, without_the_key_the_greeting_waits);
	tcase_add_test(tc, the_greeting_does_not_wait_for_ever);
	tcase_add_test(tc, another_run_is_not_ours);
	tcase_add_test(tc, a_run_of_its_own_is_not_given_up);
	tcase_add_test(tc, newcomers_of_an_invented_run_connect_again);
	tcase_add_test(tc, a_fresh_master_prefers_the_run_that_there_is);
	tcase_add_test(tc, the_term_is_higher_than_any_that_was_seen);
	tcase_add_test(tc, a_stale_master_refuses_everybody);
	tcase_add_test(tc, a_peer_may_come_by_a_new_agent);
	tcase_add_test(tc, what_all_hosts_have_is_done);
	tcase_add_test(tc, what_a_host_does_not_have_is_not);
	tcase_add_loop_test(tc, what_all_peers_have_is_done, 0, 2);
	tcase_add_test(tc, what_all_who_are_left_have_is_done);
	tcase_add_test(tc, questions_of_the_last_masters_time_are_answered);
	tcase_add_test(tc, losses_never_fall);
	tcase_add_test(tc, who_was_lost_before_is_not_let_in_again);
	tcase_add_test(tc, who_left_meanwhile_is_not_waited_for);
	tcase_add_test(tc, a_connection_may_break_again);
	tcase_add_test(tc, whoever_says_that_he_was_accepted_must_know_the_run);
	suite_add_tcase(s, tc);
	return tl_run(s);
}
