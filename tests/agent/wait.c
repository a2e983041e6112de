/* SPDX-License-Identifier: MIT
 *
 * Status and log lines about waits, and processes that are stopped while others wait for them.
 */
#include <stdio.h>

#include "tests/agent/fixture.h"

static struct fx *f;
static uint32_t comms[4];

static void setup(void)
{
	f = fx_new();
}

static void teardown(void)
{
	fx_free(f);
}

struct seen {
	char comm[WM_TEXT_MAX], op[WM_TEXT_MAX], state[16];
	uint64_t term, stopped;
};

static void see_comm(void *arg, const struct agt_comm_info *c)
{
	struct seen *s = arg;

	if (c->waiting[0])
		(void)snprintf(s->comm, sizeof s->comm, "%s", c->waiting);
	s->stopped += c->stopped_ns;
}

static void see_op(void *arg, const struct agt_op_info *o)
{
	struct seen *s = arg;

	(void)snprintf(s->op, sizeof s->op, "%s", o->awaited);
}

static void see_run(void *arg, const struct agt_run_info *r)
{
	struct seen *s = arg;

	(void)snprintf(s->state, sizeof s->state, "%s", r->state);
	s->term = r->term;
}

static struct seen look(void)
{
	struct seen s = {.term = 0};

	agt_each_comm(f->a, f->now, see_comm, &s);
	agt_each_op(f->a, f->now, see_op, &s);
	agt_each_run(f->a, f->now, see_run, &s);
	return s;
}

START_TEST(status_shows_a_reason_for_each_wait)
{
	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	ck_assert_str_eq(look().op, "waiting for local pid 1002 (trainer) to submit");
	fx_submit(f, comms[1], 0, 5, 8);
	ck_assert_str_eq(look().op, "waiting for the master to start it");
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_PENDING));
	fx_orphan(f);
	f->now += 1500 * MS;
	ck_assert_str_eq(look().op, "waiting for a master to take the run over");
	ck_assert_str_eq(look().comm, "waiting for a master to take the run over for 1.5 s");
	ck_assert_str_eq(look().state, "orphan");
	fx_greet(f);
	ck_assert_str_eq(look().state, "resuming");
	ck_assert_uint_eq(look().term, 1);
}
END_TEST

/* Passes n half seconds. The master sends a heartbeat in each. */
static void pass(unsigned n)
{
	struct wm_msg beat = {.type = WM_HEARTBEAT};

	for (; n > 0; n--) {
		fx_from_master(f, 1, &beat);
		fx_tick(f, 500);
	}
}

static void stopped(uint32_t session, bool is)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_STOPPED, .session = session, .stopped = is};

	fx_step(f, &ev);
}

START_TEST(stopped_process_is_lost_after_10_s)
{
	const struct agt_action *x;
	unsigned i;

	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	stopped(2, true);
	pass(19);
	stopped(2, false);
	stopped(2, true); /* the time of the stop starts again */
	f->now += 1200 * MS;
	ck_assert_str_eq(look().op, "waiting for local pid 1002 (trainer), which has been stopped "
				    "for 1.2 s, to submit");
	ck_assert_uint_eq(look().stopped, 1200 * (uint64_t)MS);
	f->now -= 1200 * MS;
	for (i = 0; i < 19; i++) {
		struct wm_msg beat = {.type = WM_HEARTBEAT};

		fx_tick(f, 500);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_SESSION_END), 0);
		fx_from_master(f, 1, &beat);
	}
	fx_tick(f, 500);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SESSION_END), 1);
	x = fx_get(f, AGT_ACT_SESSION_END, 0);
	ck_assert_uint_eq(x->session, 2);
	ck_assert_uint_eq(x->u.reply.req_id, 0);
	ck_assert_uint_eq(x->u.reply.code, WIRE_RANK_CONNECTION_LOST);
	ck_assert(strstr(x->u.reply.text, "was stopped for 10.0 s"));
	ck_assert_uint_eq(fx_msg(f, WM_LEAVE, 0)->u.leave.kind, WM_LEAVE_STOPPED);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_CLOSE), 1);
	fx_session_closed(f, 2);
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

START_TEST(stopped_process_is_kept_after_a_pause_of_the_agent)
{
	fx_group(f, 1, 1, comms);
	stopped(1, true);
	fx_tick(f, 500);
	fx_tick(f, 20000);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SESSION_END), 0);
}
END_TEST

/* Counts the log lines of the last step that contain the text and have level notice or worse. */
static unsigned lines(const char *text)
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < f->acts.n; i++)
		n += f->acts.v[i].type == AGT_ACT_LOG && f->acts.v[i].level <= 5 &&
		     strstr(f->acts.v[i].u.text, text);
	return n;
}

START_TEST(vote_is_sent_without_a_late_local_peer)
{
	const struct wm_op_vote *v;

	fx_group(f, 3, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_submit(f, comms[2], 0, 5, 8);
	fx_tick(f, 900);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 0);
	fx_tick(f, 100);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert(
		v->n_peers == 2 && fx_is(&v->peers[0], fx_id(1)) && fx_is(&v->peers[1], fx_id(3)));
	ck_assert_str_eq(look().op, "waiting for local pid 1002 (trainer) to submit");
	fx_tick(f, 100);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 0);
	fx_submit(f, comms[1], 0, 5, 8);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert(v->tag == 5 && v->n_peers == 1 && fx_is(&v->peers[0], fx_id(2)));
	ck_assert_str_eq(look().op, "waiting for the master to start it");
	pass(4);
	ck_assert_uint_eq(lines("local"), 0);
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.n_members, 3);
	ck_assert_uint_eq(lines("goes on"), 0);
}
END_TEST

START_TEST(late_vote_has_its_own_parameters)
{
	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	pass(2);
	fx_submit(f, comms[1], 0, 5, 9);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.params.count, 9);
	fx_op_abort(f, 1, 7, 5, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
}
END_TEST

START_TEST(partial_vote_is_sent_again_to_the_next_master)
{
	const struct wm_op_vote *v;

	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	pass(2);
	fx_orphan(f);
	fx_resume(f);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert(v->n_peers == 1 && v->seq == 0 && fx_is(&v->peers[0], fx_id(1)));
	fx_submit(f, comms[1], 0, 5, 8);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert(v->n_peers == 1 && fx_is(&v->peers[0], fx_id(2)));
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.n_members, 2);
}
END_TEST

START_TEST(the_log_names_a_late_process_once)
{
	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	pass(3);
	ck_assert_uint_eq(lines("local"), 0);
	stopped(2, _i == 1);
	fx_tick(f, 500);
	ck_assert_uint_eq(lines("tag 5 of group 7 of master 10.0.0.1:48148 has waited for 2.0 s "
				"for local pid 1002 (trainer)"),
		1);
	ck_assert_uint_eq(lines("which has been stopped for 0.5 s, to submit"), (unsigned)_i);
	pass(1);
	ck_assert_uint_eq(lines("local"), 0);
	fx_submit(f, comms[1], 0, 5, 8);
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert_uint_eq(
		lines("tag 5 of group 7 of master 10.0.0.1:48148 goes on after 2.5 s"), 1);
}
END_TEST

START_TEST(agent_that_was_suspended_suspects_no_process)
{
	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_tick(f, 500);
	fx_tick(f, 1500);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 0);
	fx_tick(f, 1000);
	ck_assert_uint_eq(lines("local"), 0);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
}
END_TEST

static void told(uint32_t kind, uint32_t ms, const char *text)
{
	struct wm_msg m = {.type = WM_WAITS, .u.waits = {.kind = kind, .waited_ms = ms}};

	if (kind == WM_WAIT_OP) {
		m.u.waits.group = 7;
		m.u.waits.tag = 5;
	}
	(void)snprintf(m.u.waits.text, sizeof m.u.waits.text, "%s", text);
	fx_from_master(f, 1, &m);
}

static void told_ballot(enum wire_ballot kind, uint32_t ms, const char *text)
{
	struct wm_msg m = {.type = WM_WAITS,
		.u.waits = {.kind = WM_WAIT_BALLOT, .ballot = kind, .waited_ms = ms}};

	(void)snprintf(m.u.waits.text, sizeof m.u.waits.text, "%s", text);
	fx_from_master(f, 1, &m);
}

START_TEST(wait_text_of_the_master_is_shown_and_logged_once)
{
	fx_group(f, 1, 2, comms);
	told(WM_WAIT_OP, 2000, "somebody"); /* this host has no such operation */
	fx_submit(f, comms[0], 0, 5, 8);
	pass(4);
	told(WM_WAIT_OP, 2000, "1 of 2 peers: x@y pid 3 (has not called)");
	ck_assert_uint_eq(lines("tag 5 of group 7 of master 10.0.0.1:48148 has waited for 2.0 s "
				"for 1 of 2 peers: x@y pid 3 (has not called)"),
		1);
	pass(1);
	ck_assert_str_eq(
		look().op, "waiting for 2.5 s for 1 of 2 peers: x@y pid 3 (has not called)");
	told(WM_WAIT_OP, 3000, "1 of 2 peers: x@y pid 3 (is stopped)");
	ck_assert_uint_eq(lines("stopped"), 0);
	ck_assert_str_eq(look().op, "waiting for 3.0 s for 1 of 2 peers: x@y pid 3 (is stopped)");
	if (_i == 0) {
		fx_op_start(f, 1, 7, 5, 1);
		ck_assert_uint_eq(lines("goes on after 2.5 s"), 1);
		ck_assert_str_eq(look().op, "data");
	} else { /* the next master may know more */
		fx_orphan(f);
		fx_resume(f);
		ck_assert_str_eq(look().op, "waiting for the master to start it");
	}
}
END_TEST

START_TEST(late_ballot_is_shown_and_logged)
{
	const struct fx_ring ring = {
		.group = 7, .hosts = 2, .world_size = 2, .n = 1, .members = {1}};
	struct wm_msg answer = {
		.type = WM_BALLOT_END, .u.ballot_end = {.kind = WIRE_PENDING, .number = 3}};

	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], _i ? FX_VOTE(WIRE_PENDING) : FX_VOTE(WIRE_TOPOLOGY));
	pass(4);
	told_ballot(_i ? WIRE_PENDING : WIRE_TOPOLOGY, 2500, "1 of 2 peers: x");
	ck_assert_uint_eq(lines("has waited for 2.5 s for 1 of 2 peers: x"), 1);
	ck_assert_str_eq(
		look().comm, _i ? "waiting for 2.0 s for the call of pcclArePeersPending by "
				  "1 of 2 peers: x"
				: "waiting for 2.0 s for the call of pcclUpdateTopology by "
				  "1 of 2 peers: x");
	told_ballot(_i ? WIRE_PENDING : WIRE_TOPOLOGY, 4500, "1 of 2 peers: y");
	ck_assert_uint_eq(lines("has waited"), 0);
	if (_i)
		fx_from_master(f, 1, &answer);
	else
		fx_commit(f, 1, 9, true, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 1);
	ck_assert_uint_eq(lines("is over after 4.5 s"), 1);
	ck_assert_str_eq(look().comm, "");
}
END_TEST

START_TEST(stopped_processes_are_reported_to_the_master)
{
	const struct wm_stopped *m;

	fx_group(f, 2, 2, comms);
	stopped(2, true);
	m = &fx_msg(f, WM_STOPPED, 0)->u.stopped;
	ck_assert(m->is && fx_is(&m->peer, fx_id(2)));
	fx_orphan(f);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_STOPPED), 1);
	m = &fx_msg(f, WM_STOPPED, 0)->u.stopped;
	ck_assert(m->is && fx_is(&m->peer, fx_id(2)));
	stopped(2, false);
	ck_assert(!fx_msg(f, WM_STOPPED, 0)->u.stopped.is);
}
END_TEST

Suite *wait_suite(void)
{
	Suite *s = suite_create("wait");
	TCase *t = tcase_create("wait");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, status_shows_a_reason_for_each_wait);
	tcase_add_test(t, stopped_process_is_lost_after_10_s);
	tcase_add_test(t, stopped_process_is_kept_after_a_pause_of_the_agent);
	tcase_add_test(t, vote_is_sent_without_a_late_local_peer);
	tcase_add_test(t, late_vote_has_its_own_parameters);
	tcase_add_test(t, partial_vote_is_sent_again_to_the_next_master);
	tcase_add_loop_test(t, the_log_names_a_late_process_once, 0, 2);
	tcase_add_test(t, agent_that_was_suspended_suspects_no_process);
	tcase_add_loop_test(t, wait_text_of_the_master_is_shown_and_logged_once, 0, 2);
	tcase_add_loop_test(t, late_ballot_is_shown_and_logged, 0, 2);
	tcase_add_test(t, stopped_processes_are_reported_to_the_master);
	suite_add_tcase(s, t);
	return s;
}
