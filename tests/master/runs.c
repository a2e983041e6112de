/* SPDX-License-Identifier: MIT
 *
 * The master's core chooses the run when agents know several: strangers, runs that newcomers have
 * founded before the members came, and masters that were replaced.
 */
#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/takeover.h"

START_TEST(second_run_is_not_taken_over)
{
	struct fk_host *x = fk_connect(&tk.f, "x", "10.0.0.7");
	struct wm_msg msg = fk_hello(x);

	tk_connect(0);
	msg.u.hello.run = (struct cc_id){{66}};
	msg.u.hello.run_key = (struct cc_id){{67}};
	msg.u.hello.term = 99;
	fk_send(x, &msg);
	ck_assert(!fk_take(x, WM_HELLO_ACK)->u.hello_ack.resume);
	ck_assert_uint_eq(fk_status(&tk.f).term, 2);
	ck_assert_uint_eq(fk_status(&tk.f).stale, 0);
}
END_TEST

/* Lets d found a run on this master, and lets e wait in it. Returns d. */
static struct fk_host *found_another(struct fk_host **e)
{
	struct fk_host *d = fk_host(&tk.f, "d", "10.0.0.4");
	struct fk_peer p = fk_join(d, 0);

	ck_assert_uint_eq(fk_status(&tk.f).accepted, 1);
	fk_vote(&p, 7);
	*e = fk_host(&tk.f, "e", "10.0.0.5");
	(void)fk_join(*e, 1);
	fk_forget(&tk.f);
	return d;
}

START_TEST(founded_run_is_yielded_to_an_older_run)
{
	struct fk_host *d, *e, *late = fk_connect(&tk.f, "b", "10.0.0.2");

	late->mute = true;
	d = found_another(&e);
	fk_tick(&tk.f, 2000);
	tk_connect(0);
	ck_assert(fk_take(tk.h[0], WM_HELLO_ACK)->u.hello_ack.resume);
	ck_assert(!d->open);
	ck_assert_uint_eq(fk_take(d, WM_KICK)->u.kick.code, WIRE_MASTER_CONNECTION_FAILED);
	ck_assert(strstr(fk_take(d, WM_REFUSE)->u.refuse.text, "connect again"));
	ck_assert(!e->open);
	ck_assert(late->open);
	tk_join(0, WM_JOIN_ACCEPTED);
	tk_come_back(1);
	tk_come_back(2);
	tk_all_end();
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 3);
	ck_assert_uint_eq(fk_status(&tk.f).lost_members, 0);
	tk_works();
	/* A redirected peer is admitted like any newcomer. */
	d = fk_host(&tk.f, "d", "10.0.0.4");
	(void)fk_admit(d, 0, tk.p, 3);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 4);
}
END_TEST

/* x waited for a master that never admitted it. */
START_TEST(founded_run_is_not_yielded_to_a_newcomer)
{
	struct fk_host *d, *e, *x = fk_connect(&tk.f, "x", "10.0.0.7");
	struct wm_msg msg = fk_hello(x);

	d = found_another(&e);
	msg.u.hello.run = (struct cc_id){{66}};
	msg.u.hello.newcomers = true;
	fk_send(x, &msg);
	ck_assert(!fk_take(x, WM_HELLO_ACK)->u.hello_ack.resume);
	ck_assert(d->open);
	ck_assert(e->open);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 1);
}
END_TEST

/* This master has no members yet, so members of that run may come. */
START_TEST(new_master_takes_over_the_run_of_a_newcomer)
{
	struct fk_host *x = fk_connect(&tk.f, "x", "10.0.0.7");
	struct wm_msg msg = fk_hello(x);

	msg.u.hello.run = (struct cc_id){{66}};
	msg.u.hello.newcomers = true;
	fk_send(x, &msg);
	ck_assert(fk_status(&tk.f).recovering);
}
END_TEST

START_TEST(founded_run_is_yielded_to_a_peer_with_a_new_agent)
{
	struct fk_host *d, *e;

	d = found_another(&e);
	tk.h[0] = fk_reconnect_as(tk.h[0], 0, true);
	ck_assert(!d->open);
	tk_connect(1); /* sends the key of the run */
	ck_assert(fk_take(tk.h[0], WM_HELLO_ACK)->u.hello_ack.resume);
	ck_assert(fk_take(tk.h[1], WM_HELLO_ACK)->u.hello_ack.resume);
}
END_TEST

START_TEST(founded_run_is_yielded_for_one_minute)
{
	struct fk_host *d, *e;

	d = found_another(&e);
	fk_tick(&tk.f, 59900);
	tk_connect(0);
	ck_assert(!d->open);
	fk_new_master(&tk.f, NULL);
	d = found_another(&e);
	fk_tick(&tk.f, 60000);
	tk_connect(0);
	ck_assert(!fk_take(tk.h[0], WM_HELLO_ACK)->u.hello_ack.resume);
	ck_assert(d->open);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 1);
	ck_assert(!fk_status(&tk.f).recovering);
}
END_TEST

START_TEST(run_that_was_taken_over_is_not_yielded)
{
	struct fk_host *x = fk_connect(&tk.f, "x", "10.0.0.7");
	struct wm_msg msg = fk_hello(x);

	tk_all_come_back();
	tk_all_end();
	fk_forget(&tk.f);
	msg.u.hello.run = (struct cc_id){{66}};
	msg.u.hello.run_key = (struct cc_id){{67}};
	msg.u.hello.term = 99;
	fk_send(x, &msg);
	ck_assert(!fk_take(x, WM_HELLO_ACK)->u.hello_ack.resume);
	tk_no_error();
	tk_works();
}
END_TEST

START_TEST(journal_belongs_to_the_run_that_was_taken_over)
{
	struct ccm_config cfg = {.run = {{9, 9}}, .run_key = {{9, 8}}, .journal = true};
	struct fk_host *d, *e;

	fk_new_master(&tk.f, &cfg);
	d = found_another(&e);
	tk_connect(0);
	ck_assert(!d->open);
	/* The master dies before all agents are back. */
	cfg.run = (struct cc_id){{8}};
	fk_restart(&tk.f, &cfg, tk.f.journal_len);
	tk_all_come_back();
	ck_assert(fk_take(tk.h[0], WM_HELLO_ACK)->u.hello_ack.resume);
	tk_all_end();
	cfg.run = (struct cc_id){{7}};
	fk_restart(&tk.f, &cfg, tk.f.journal_len);
	tk_connect(0);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 3);
	tk_join(0, WM_JOIN_ACCEPTED);
	tk_come_back(1);
	tk_come_back(2);
	tk_all_end();
	tk_works();
}
END_TEST

START_TEST(newcomers_of_a_yielded_run_connect_again)
{
	struct fk_host *d;

	d = fk_host(&tk.f, "d", "10.0.0.4");
	d->auto_report = false;
	(void)fk_join(d, 0);
	tk_connect(0);
	ck_assert(!d->open);
	ck_assert_uint_eq(fk_take(d, WM_REFUSE)->u.refuse.code, WIRE_MASTER_CONNECTION_FAILED);
	ck_assert(fk_take(tk.h[0], WM_HELLO_ACK)->u.hello_ack.resume);
	tk_join(0, WM_JOIN_ACCEPTED);
	tk_come_back(1);
	tk_come_back(2);
	tk_all_end();
	tk_works();
}
END_TEST

START_TEST(new_master_prefers_an_existing_run)
{
	struct ccm_config cfg = {.run = {{9}}, .run_key = {{9}}, .adopt_ms = 600};
	struct fk_host *d;
	struct wm_msg msg;

	fk_new_master(&tk.f, &cfg);
	d = fk_connect(&tk.f, "d", "10.0.0.4");
	msg = fk_hello(d);
	fk_send(d, &msg);
	ck_assert_uint_eq(d->n, 0);
	tk_connect(0);
	ck_assert(cc_id_eq(&fk_take(d, WM_HELLO_ACK)->u.hello_ack.run, &tk.f.run));
	ck_assert(!d->closed[0]);
	/* The master does not wait long for an existing run. */
	fk_new_master(&tk.f, &cfg);
	d = fk_connect(&tk.f, "d", "10.0.0.4");
	fk_send(d, &msg);
	fk_tick(&tk.f, 500);
	ck_assert_uint_eq(d->n, 0);
	fk_tick(&tk.f, 100);
	ck_assert_uint_eq(fk_count(d, WM_HELLO_ACK), 1);
	d = fk_host(&tk.f, "e", "10.0.0.5");
	ck_assert(d->open);
}
END_TEST

START_TEST(term_is_higher_than_all_known_terms)
{
	tk.h[0] = fk_reconnect_as(tk.h[0], 4, false);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_HELLO_ACK)->u.hello_ack.term, 5);
	tk.h[1] = fk_reconnect_as(tk.h[1], 7, false);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_HELLO_ACK)->u.hello_ack.term, 8);
	tk.h[2] = fk_reconnect_as(tk.h[2], 8, false);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_HELLO_ACK)->u.hello_ack.term, 9);
}
END_TEST

START_TEST(stale_master_refuses_all_agents)
{
	struct fk_host *x = fk_connect(&tk.f, "x", "10.0.0.7");
	struct wm_msg msg = fk_hello(x);

	tk_all_come_back();
	tk_all_end();
	fk_forget(&tk.f);
	msg.u.hello.run = tk.f.run;
	msg.u.hello.run_key = (struct cc_id){{1, 2, 3}}; /* not the key of the run */
	msg.u.hello.term = 3;
	fk_send(x, &msg);
	ck_assert(!fk_take(x, WM_HELLO_ACK)->u.hello_ack.resume);
	ck_assert_uint_eq(fk_status(&tk.f).stale, 0);
	x = fk_connect(&tk.f, "x", "10.0.0.7");
	msg.u.hello.run_key = tk.f.run_key;
	fk_send(x, &msg);
	assert_contains(fk_take(x, WM_REFUSE)->u.refuse.text,
		"a newer master (term 3) has taken this run over");
	ck_assert_uint_eq(
		fk_take(tk.h[0], WM_REFUSE)->u.refuse.code, WIRE_MASTER_CONNECTION_FAILED);
	ck_assert(!tk.h[1]->open);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 0);
	x = fk_connect(&tk.f, "y", "10.0.0.6");
	msg = fk_hello(x);
	fk_send(x, &msg);
	ck_assert_uint_eq(fk_count(x, WM_REFUSE), 1);
	ck_assert_uint_eq(fk_status(&tk.f).stale, 3);
}
END_TEST

Suite *runs_suite(void)
{
	Suite *s = suite_create("runs");
	TCase *tc = tcase_create("runs");

	tcase_add_checked_fixture(tc, tk_setup, tk_teardown);
	tcase_add_test(tc, second_run_is_not_taken_over);
	tcase_add_test(tc, founded_run_is_yielded_to_an_older_run);
	tcase_add_test(tc, founded_run_is_not_yielded_to_a_newcomer);
	tcase_add_test(tc, new_master_takes_over_the_run_of_a_newcomer);
	tcase_add_test(tc, founded_run_is_yielded_to_a_peer_with_a_new_agent);
	tcase_add_test(tc, founded_run_is_yielded_for_one_minute);
	tcase_add_test(tc, run_that_was_taken_over_is_not_yielded);
	tcase_add_test(tc, journal_belongs_to_the_run_that_was_taken_over);
	tcase_add_test(tc, newcomers_of_a_yielded_run_connect_again);
	tcase_add_test(tc, new_master_prefers_an_existing_run);
	tcase_add_test(tc, term_is_higher_than_all_known_terms);
	tcase_add_test(tc, stale_master_refuses_all_agents);
	suite_add_tcase(s, tc);
	return s;
}
