/* SPDX-License-Identifier: MIT
 *
 * When ticks may come seldom, and what ends it.
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

START_TEST(from_the_first_process_to_the_ring)
{
	const struct fx_ring ring = {
		.group = 7, .hosts = 2, .world_size = 2, .n = 1, .members = {1}};

	ck_assert(agt_is_quiet(f->a));
	fx_session(f, 1, 1000);
	comms[0] = fx_create(f, 1, 7, 1);
	ck_assert(agt_is_quiet(f->a));
	fx_connect(f, 1, comms[0], 1); /* the master is connected to */
	ck_assert(!agt_is_quiet(f->a));
	fx_master_up(f, 1);
	ck_assert(agt_is_quiet(f->a)); /* a newcomer waits for the others' votes */
	fx_round(f, 1, 1, true, &ring, 1);
	ck_assert(!agt_is_quiet(f->a));
	fx_link(f, AGT_EV_LINK_UP, 1, 100, false);
	ck_assert(!agt_is_quiet(f->a));
	fx_commit(f, 1, 1, true, &ring, 1);
	ck_assert(agt_is_quiet(f->a));
}
END_TEST

/* A process is asked for its beat when others may wait for it. */
START_TEST(due_while_somebody_waits)
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

START_TEST(not_while_an_operation_lives)
{
	fx_group(f, 2, 2, comms);
	ck_assert(agt_is_quiet(f->a));
	fx_submit(f, comms[0], 0, 5, 8); /* collects */
	ck_assert(!agt_is_quiet(f->a));
	fx_submit(f, comms[1], 0, 5, 8); /* votes */
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

START_TEST(not_while_the_master_is_gone)
{
	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	ck_assert(!agt_is_quiet(f->a));
	fx_greet(f);
	ck_assert(!agt_is_quiet(f->a));
}
END_TEST

START_TEST(not_while_a_process_is_stopped)
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

START_TEST(not_while_somebody_is_awaited)
{
	fx_group(f, 1, 2, comms);
	ck_assert(!agt_is_awaited(f->a));
	beat(true);
	ck_assert(!agt_is_quiet(f->a));
	ck_assert(agt_is_awaited(f->a));
	fx_tick(f, 900); /* until the master says otherwise */
	ck_assert(!agt_is_quiet(f->a));
	beat(false);
	ck_assert(agt_is_quiet(f->a));
	ck_assert(!agt_is_awaited(f->a));
}
END_TEST

/* What the last one said is nothing to the next one. */
START_TEST(another_master_begins_anew)
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
	unsigned ticks; /* to a heartbeat; 0: they would come too late */
} masters[] = {{500, 1}, {1000, 2}, {1785, 3}, {499, 0}, {100, 0}};

START_TEST(rare_ticks_leave_no_heartbeat_out)
{
	const unsigned n = masters[_i].ticks;
	unsigned i;

	f->heartbeat_ms = masters[_i].heartbeat_ms;
	f->timeout_ms = 6000;
	fx_group(f, 1, 2, comms);
	ck_assert_int_eq(agt_is_quiet(f->a), n > 0);
	fx_tick(f, AGT_QUIET_TICK_MS);
	for (i = 0; i < 6 && n > 0; i++) {
		fx_request(f, 1, comms[0], WL_UPDATE_TOPOLOGY); /* something is said, at once */
		beat(false);
		for (unsigned k = 1; k <= n; k++) {
			fx_tick(f, AGT_QUIET_TICK_MS + k % 2 * 5); /* they are no clockwork */
			ck_assert_uint_eq(fx_sent(f, WM_HEARTBEAT), k == n);
		}
	}
}
END_TEST

/* Of two masters each may have something. */
START_TEST(all_runs_count)
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
	tcase_add_test(t, from_the_first_process_to_the_ring);
	tcase_add_test(t, due_while_somebody_waits);
	tcase_add_test(t, not_while_an_operation_lives);
	tcase_add_test(t, not_while_the_master_is_gone);
	tcase_add_loop_test(t, not_while_a_process_is_stopped, 0, 2);
	tcase_add_test(t, not_while_somebody_is_awaited);
	tcase_add_test(t, another_master_begins_anew);
	tcase_add_loop_test(
		t, rare_ticks_leave_no_heartbeat_out, 0, sizeof masters / sizeof masters[0]);
	tcase_add_test(t, all_runs_count);
	suite_add_tcase(s, t);
	return s;
}
