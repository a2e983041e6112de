/* SPDX-License-Identifier: MIT
 *
 * What users are told of those that wait, and processes that are stopped while others wait for
 * them.
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

START_TEST(every_wait_has_a_reason)
{
	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	ck_assert_str_eq(look().op, "waiting for local pid 1002 to submit");
	fx_submit(f, comms[1], 0, 5, 8);
	ck_assert_str_eq(look().op, "waiting for the master to start it");
	fx_request(f, 1, comms[0], WL_ARE_PENDING);
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

static void stopped(uint32_t session, bool is)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_STOPPED, .session = session, .stopped = is};

	fx_step(f, &ev);
}

START_TEST(a_stopped_process_is_lost_in_the_end)
{
	const struct agt_action *x;
	unsigned i;

	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	stopped(2, true);
	for (i = 0; i < 19; i++) {
		struct wm_msg beat = {.type = WM_HEARTBEAT};

		fx_tick(f, 500);
		fx_from_master(f, 1, &beat);
	}
	stopped(2, false);
	stopped(2, true); /* from the beginning */
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
	ck_assert_uint_eq(fx_msg(f, WM_LEAVE, 0)->u.leave.kind, WM_LEAVE_DIED);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_CLOSE), 1);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1); /* the other one need not wait */
	fx_session_closed(f, 2);
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

START_TEST(an_agent_that_was_stopped_too_forgives)
{
	fx_group(f, 1, 1, comms);
	stopped(1, true);
	fx_tick(f, 500);
	fx_tick(f, 20000);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SESSION_END), 0);
}
END_TEST

Suite *wait_suite(void)
{
	Suite *s = suite_create("wait");
	TCase *t = tcase_create("wait");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, every_wait_has_a_reason);
	tcase_add_test(t, a_stopped_process_is_lost_in_the_end);
	tcase_add_test(t, an_agent_that_was_stopped_too_forgives);
	suite_add_tcase(s, t);
	return s;
}
