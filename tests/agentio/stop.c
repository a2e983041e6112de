/* SPDX-License-Identifier: MIT
 *
 * The agent is told to end while it has processes. They will attach to the next agent.
 */
#include <string.h>
#include <unistd.h>

#include "proto/wire_codes.h"
#include "proto/wire_frame.h"
#include "tests/agentio/fake_engine.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

#define COUNT ((uint64_t)400000) /* too many for the eager path */

static void setup(void)
{
	pair_begin_with(NULL, COUNT * 4);
}

static void teardown(void)
{
	pair_end();
}

static void stop(struct agentd *d, void *arg)
{
	(void)arg;
	agentd_stop(d, "told to end");
}

/* Closes the session of a process, and stops the agent before it has noticed that the session has
 * ended. */
static void die_and_stop(struct agentd *d, void *arg)
{
	client_close(arg);
	agentd_stop(d, "told to end");
}

/* Reads the agent's messages until the end of the connection. Returns the number of leaves, and the
 * last peer that left. */
static unsigned leaves_until_the_end(struct cc_id *ret_peer)
{
	uint8_t buf[4096];
	size_t len = tcp_receive(m.fd, buf, sizeof buf), at = 0;
	const char *why;
	struct wm_msg msg;
	unsigned n = 0;

	ck_assert_uint_lt(len, sizeof buf);
	while (at < len) {
		int size = wire_frame_peek(buf + at, len - at, WIRE_KIND_MASTER);

		ck_assert_int_ge(size, 0);
		at += WIRE_FRAME_HDR;
		ck_assert_int_eq(wire_master_decode(buf + at, (size_t)size, &msg, &why), 0);
		at += (size_t)size;
		if (msg.type == WM_LEAVE) {
			ck_assert_uint_eq(msg.u.leave.kind, WM_LEAVE_DIED);
			*ret_peer = msg.u.leave.peer;
			n++;
		}
		wire_master_clear(&msg);
	}
	return n;
}

START_TEST(an_agent_that_ends_says_goodbye_and_reports_no_leave)
{
	struct shm_sqe ea = queue_sum(0, 5, COUNT, &ma), eb = queue_sum(0, 5, COUNT, &mb);
	char text[WL_TEXT_MAX];
	struct cc_id peer;

	if (_i == 1) { /* during a transfer */
		fake_set_auto_done(false);
		queue_push(&qa, &ea);
		queue_push(&qb, &eb);
		master_start_op(&m, 5);
		while (fake_counts().xfers == 0)
			usleep(1000);
	}
	fx_call(&f, stop, NULL);
	client_await_end(&a, text);
	ck_assert_str_eq(text, "told to end");
	ck_assert_uint_eq(fake_counts().xfers, 0); /* no thread writes to their memory any more */
	ck_assert_uint_ne(atomic_load(&queue_slot(&qa, 0)->state), SHM_SLOT_DONE);
	client_await_end(&b, text);
	ck_assert_str_eq(text, "told to end");
	ck_assert_uint_eq(leaves_until_the_end(&peer), 0);
}
END_TEST

START_TEST(an_agent_that_ends_reports_the_leave_of_a_dead_process)
{
	char text[WL_TEXT_MAX];
	struct cc_id peer;

	fx_call(&f, die_and_stop, &b);
	client_await_end(&a, text);
	ck_assert_str_eq(text, "told to end");
	ck_assert_uint_eq(leaves_until_the_end(&peer), 1);
	ck_assert(cc_id_eq(&peer, &(struct cc_id){{2}}));
}
END_TEST

Suite *stop_suite(void)
{
	Suite *s = suite_create("stop");
	TCase *t = tcase_create("stop");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, an_agent_that_ends_says_goodbye_and_reports_no_leave, 0, 2);
	tcase_add_test(t, an_agent_that_ends_reports_the_leave_of_a_dead_process);
	suite_add_tcase(s, t);
	return s;
}
