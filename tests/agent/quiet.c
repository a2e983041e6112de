/* SPDX-License-Identifier: MIT
 *
 * The conditions under which the agent may tick seldom ("quiet"), and the events that end this
 * state.
 */
#include "tests/agent/fixture.h"

static struct fx *f;
static uint32_t comms[2];

static void setup(void)
{
	f = fx_new();
}

static void teardown(void)
{
	fx_free(f);
}

static void beat(bool awaited)
{
	struct wm_msg m = {.type = WM_HEARTBEAT, .u.heartbeat.awaited = awaited};

	fx_from_master(f, 1, &m);
}

static void stopped(uint32_t session, bool is)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_STOPPED, .session = session, .stopped = is};

	fx_step(f, &ev);
}

START_TEST(agent_is_quiet_while_a_newcomer_or_member_only_waits)
{
	const struct fx_ring ring = {
		.group = 7, .hosts = 2, .world_size = 2, .n = 1, .members = {1}};

	ck_assert(agt_is_quiet(f->a));
	fx_session(f, 1, 1000);
	comms[0] = fx_create(f, 1, 7, 1);
	ck_assert(agt_is_quiet(f->a));
	fx_connect(f, 1, comms[0], 1); /* the connection to the master is being opened */
	ck_assert(!agt_is_quiet(f->a));
	fx_master_up(f, 1);
	ck_assert(agt_is_quiet(f->a)); /* a newcomer waits for the votes of the members */
	fx_round(f, 1, 1, true, &ring, 1);
	ck_assert(!agt_is_quiet(f->a));
	fx_link(f, AGT_EV_LINK_UP, 1, 100, false);
	ck_assert(!agt_is_quiet(f->a));
	fx_commit(f, 1, 1, true, &ring, 1);
	ck_assert(agt_is_quiet(f->a));
}
END_TEST

/* The agent asks a process for its beat while others may wait for this process. */
START_TEST(session_is_due_while_others_wait)
{
	fx_group(f, 2, 2, comms);
	ck_assert(!agt_session_is_due(f->a, 1));
	ck_assert(!agt_session_is_due(f->a, 77));
	beat(true);
	ck_assert(agt_session_is_due(f->a, 1));
	ck_assert(agt_session_is_due(f->a, 2));
	beat(false);
	ck_assert(!agt_session_is_due(f->a, 1));
	fx_submit(f, comms[0], 0, 5, 8);
	ck_assert(!agt_session_is_due(f->a, 2));
	fx_tick(f, 600);
	ck_assert(agt_session_is_due(f->a, 1));
	ck_assert(agt_session_is_due(f->a, 2));
}
END_TEST

START_TEST(agent_is_not_quiet_during_an_operation)
{
	fx_group(f, 2, 2, comms);
	ck_assert(agt_is_quiet(f->a));
	fx_submit(f, comms[0], 0, 5, 8); /* the operation waits for the other submission */
	ck_assert(!agt_is_quiet(f->a));
	fx_submit(f, comms[1], 0, 5, 8); /* the operation waits for the master */
	ck_assert(!agt_is_quiet(f->a));
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert(!agt_is_quiet(f->a));
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, WIRE_SUCCESS);
	ck_assert(!agt_is_quiet(f->a));
	fx_op_done(f, 1, 1);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, WIRE_SUCCESS);
	ck_assert(agt_is_quiet(f->a));
}
END_TEST

START_TEST(agent_is_not_quiet_without_a_master)
{
	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	ck_assert(!agt_is_quiet(f->a));
	fx_greet(f);
	ck_assert(!agt_is_quiet(f->a));
}
END_TEST

START_TEST(agent_is_not_quiet_while_a_process_is_stopped)
{
	fx_group(f, 2, 2, comms);
	stopped(1, true);
	stopped(2, true);
	stopped(1, false);
	ck_assert(!agt_is_quiet(f->a));
	if (_i)
		fx_session_closed(f, 2);
	else
		stopped(2, false);
	ck_assert(agt_is_quiet(f->a));
}
END_TEST

START_TEST(agent_is_not_quiet_while_a_peer_is_awaited)
{
	fx_group(f, 1, 2, comms);
	ck_assert(!agt_is_awaited(f->a));
	beat(true);
	ck_assert(!agt_is_quiet(f->a));
	ck_assert(agt_is_awaited(f->a));
	fx_tick(f, 900); /* the state lasts until the next heartbeat */
	ck_assert(!agt_is_quiet(f->a));
	beat(false);
	ck_assert(agt_is_quiet(f->a));
	ck_assert(!agt_is_awaited(f->a));
}
END_TEST

/* The next master has not said that it awaits a peer. */
START_TEST(next_master_starts_with_no_peer_awaited)
{
	fx_group(f, 1, 2, comms);
	beat(true);
	fx_orphan(f);
	ck_assert(!agt_is_awaited(f->a));
	fx_resume(f);
	ck_assert(!agt_is_awaited(f->a));
	ck_assert(agt_is_quiet(f->a));
	beat(true);
	ck_assert(!agt_is_quiet(f->a));
}
END_TEST

static const struct {
	uint32_t heartbeat_ms;
	unsigned ticks; /* ticks per heartbeat; 0: never quiet, because heartbeats would be late */
} masters[] = {{500, 1}, {1000, 2}, {1785, 3}, {499, 0}, {100, 0}};

START_TEST(rare_ticks_omit_no_heartbeat)
{
	const unsigned n = masters[_i].ticks;
	unsigned i;

	f->heartbeat_ms = masters[_i].heartbeat_ms;
	f->timeout_ms = 6000;
	fx_group(f, 1, 2, comms);
	ck_assert_int_eq(agt_is_quiet(f->a), n > 0);
	fx_tick(f, AGT_QUIET_TICK_MS);
	for (i = 0; i < 6 && n > 0; i++) {
		fx_request(f, 1, comms[0],
			FX_VOTE(WIRE_TOPOLOGY)); /* a message that is sent at once */
		beat(false);
		for (unsigned k = 1; k <= n; k++) {
			fx_tick(f, AGT_QUIET_TICK_MS + k % 2 * 5); /* ticks are not exact */
			ck_assert_uint_eq(fx_sent(f, WM_HEARTBEAT), k == n);
		}
	}
}
END_TEST

/* Each of two masters may end the quiet state. */
START_TEST(agent_is_quiet_only_if_all_runs_are)
{
	struct wm_msg m = {.type = WM_HEARTBEAT, .u.heartbeat.awaited = true};

	fx_group(f, 1, 2, comms);
	fx_session(f, 2, 1000);
	comms[1] = fx_create(f, 2, 7, 2);
	fx_connect(f, 2, comms[1], 2);
	ck_assert(!agt_is_quiet(f->a));
	fx_master_up(f, 2);
	ck_assert(agt_is_quiet(f->a));
	fx_from_master(f, 2, &m);
	ck_assert(!agt_is_quiet(f->a));
	ck_assert(agt_is_awaited(f->a));
	fx_session_closed(f, 2);
	ck_assert(agt_is_quiet(f->a));
}
END_TEST

Suite *quiet_suite(void)
{
	Suite *s = suite_create("quiet");
	TCase *t = tcase_create("quiet");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, agent_is_quiet_while_a_newcomer_or_member_only_waits);
	tcase_add_test(t, session_is_due_while_others_wait);
	tcase_add_test(t, agent_is_not_quiet_during_an_operation);
	tcase_add_test(t, agent_is_not_quiet_without_a_master);
	tcase_add_loop_test(t, agent_is_not_quiet_while_a_process_is_stopped, 0, 2);
	tcase_add_test(t, agent_is_not_quiet_while_a_peer_is_awaited);
	tcase_add_test(t, next_master_starts_with_no_peer_awaited);
	tcase_add_loop_test(t, rare_ticks_omit_no_heartbeat, 0, sizeof masters / sizeof masters[0]);
	tcase_add_test(t, agent_is_quiet_only_if_all_runs_are);
	suite_add_tcase(s, t);
	return s;
}
