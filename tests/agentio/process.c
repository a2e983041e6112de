/* SPDX-License-Identifier: MIT
 *
 * Who is at the other end of a socket, and is it stopped? Children of the test are. Does it answer
 * when it is asked? How often the agent looks.
 */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pcclagentd/local/beat.h"
#include "pcclagentd/agentd_internal.h"
#include "pcclagentd/local/loc_internal.h"
#include "pcclagentd/local/process.h"
#include "tests/agentio/fixture.h"
#include "tests/agentio/suites.h"

static int sock; /* to the child */
static pid_t child;

/* A child that connects us, and calls itself something that looks like a state. */
static void setup(void)
{
	int pair[2];
	char c;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_NAME, "x) T (y) T 1");
		if (write(pair[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pair[1]);
	ck_assert_int_eq(read(pair[0], &c, 1), 1);
	sock = pair[0];
}

static void teardown(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(sock);
}

/* waitpid tells when the child has changed its state: nothing is waited for by time. */
START_TEST(stopped_and_continued)
{
	struct process p;
	int status;

	/* The socket was made here: its peer is this process. The number is looked up. */
	loc_process_open(&p, -1, (uint32_t)child);
	ck_assert_int_ge(p.pidfd, 0);
	ck_assert_int_ge(p.stat_fd, 0);
	ck_assert(!loc_process_is_stopped(&p));
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(kill(child, SIGSTOP), 0);
		ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
		ck_assert(loc_process_is_stopped(&p));
		ck_assert_int_eq(kill(child, SIGCONT), 0);
		ck_assert_int_eq(waitpid(child, &status, WCONTINUED), child);
		ck_assert(!loc_process_is_stopped(&p));
	}
	loc_process_close(&p);
}
END_TEST

START_TEST(its_end_is_no_stop)
{
	struct process p, late;

	loc_process_open(&p, -1, (uint32_t)child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ck_assert(!loc_process_is_stopped(&p));
	loc_process_close(&p);
	/* The number may be somebody else's now. */
	loc_process_open(&late, -1, (uint32_t)child);
	ck_assert(!loc_process_is_stopped(&late));
	loc_process_close(&late);
	loc_process_open(&late, -1, 0);
	ck_assert_int_eq(late.stat_fd, -1);
	loc_process_close(&late);
}
END_TEST

#define EVERY 100u

static struct beat asks;
static int other; /* the end of the process */
static uint64_t now;

static bool look(struct process *p, bool due)
{
	return loc_beat_is_silent(&asks, p, EVERY, due, now);
}

/* So many intervals pass. */
static bool pass(struct process *p, unsigned n)
{
	bool silent = look(p, true);

	while (n-- > 0) {
		now += EVERY;
		silent = look(p, true);
	}
	return silent;
}

/* After how many intervals it is silent: other threads of this machine make them more. */
static unsigned until_silent(struct process *p)
{
	unsigned n = 0;

	while (!pass(p, 1))
		n++;
	return n + 1;
}

static unsigned read_asks(void)
{
	unsigned n = 0;
	char c;

	while (recv(other, &c, 1, MSG_DONTWAIT) == 1)
		n++;
	return n;
}

static void answer(void)
{
	ck_assert_int_eq(send(other, "", 1, 0), 1);
}

static void beat_setup(void)
{
	ck_assert_int_eq(loc_beat_open(&asks, &other), 0);
	now = EVERY;
}

static void beat_teardown(void)
{
	loc_beat_close(&asks);
	close(other);
}

/* As of a process in another PID namespace. */
static struct process unseen(void)
{
	struct process p;

	loc_process_open(&p, -1, 0);
	return p;
}

START_TEST(asked_when_it_is_due)
{
	struct process p = unseen();

	for (int i = 0; i < 20; i++, now += EVERY)
		ck_assert(!look(&p, false));
	ck_assert_uint_eq(read_asks(), 0);
	ck_assert(!look(&p, true));
	ck_assert_uint_eq(read_asks(), 1);
	now += EVERY - 1;
	ck_assert(!look(&p, true));
	ck_assert_uint_eq(read_asks(), 0);
	/* nothing more when it is not awaited any more, and nothing counts then */
	for (int i = 0; i < 20; i++, now += EVERY)
		ck_assert(!look(&p, false));
	ck_assert_uint_eq(read_asks(), 0);
}
END_TEST

START_TEST(silent_until_it_answers)
{
	struct process p = unseen();

	for (int i = 0; i < 3; i++) {
		ck_assert(!pass(&p, BEAT_ASKS - 1));
		answer(); /* in the last moment */
		ck_assert(!pass(&p, 0));
		ck_assert(!pass(&p, BEAT_ASKS));
		ck_assert_uint_ge(until_silent(&p), 1);
		read_asks();
		ck_assert(pass(&p, 1000));
		ck_assert_uint_eq(read_asks(), 0); /* it has some to answer */
		answer();
		ck_assert(!look(&p, true));
	}
	ck_assert_uint_ge(until_silent(&p), BEAT_ASKS);
	loc_beat_forget(&asks);
	ck_assert(!look(&p, true));
}
END_TEST

START_TEST(the_time_of_an_agent_that_stood_still_counts_once)
{
	struct process p = unseen();

	ck_assert(!pass(&p, 1));
	now += UINT64_C(1000) * EVERY;
	ck_assert(!pass(&p, BEAT_ASKS - 3));
}
END_TEST

START_TEST(who_runs_is_not_silent)
{
	struct process p;
	pid_t busy = fork();
	int status;

	if (busy == 0)
		for (;;)
			;
	loc_process_open(&p, -1, (uint32_t)busy);
	ck_assert(!pass(&p, 10 * BEAT_ASKS));
	ck_assert_int_eq(kill(busy, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(busy, &status, WUNTRACED), busy);
	ck_assert_uint_ge(until_silent(&p), BEAT_ASKS);
	loc_process_close(&p);
	ck_assert_int_eq(kill(busy, SIGKILL), 0);
	ck_assert_int_eq(waitpid(busy, &status, 0), busy);
}
END_TEST

START_TEST(on_a_machine_that_is_busy_it_takes_longer)
{
	ck_assert_uint_eq(loc_beat_parts("0.20 0.18 0.12 1/80 11206\n", 2), BEAT_PARTS);
	ck_assert_uint_eq(loc_beat_parts("9.20 9.18 9.12 2/80 11206\n", 2), BEAT_PARTS);
	ck_assert_uint_eq(loc_beat_parts("0.20 0.18 0.12 8/80 11206\n", 2), BEAT_PARTS / 4);
	ck_assert_uint_eq(loc_beat_parts("0.20 0.18 0.12 100000/200000 11206\n", 1), 1);
	ck_assert_uint_eq(loc_beat_parts("", 2), BEAT_PARTS);
	ck_assert_uint_eq(loc_beat_parts("0.20 0.18 0.12 8/80 11206\n", -1), BEAT_PARTS);
}
END_TEST

START_TEST(a_process_may_do_without)
{
	struct process p = unseen();

	until_silent(&p);
	close(other);
	ck_assert(!look(&p, true));
	ck_assert_int_eq(asks.fd, -1);
	ck_assert(!pass(&p, 10 * BEAT_ASKS));
	other = -1;
}
END_TEST

#define MANY   150u         /* sessions of one process */
#define A_TICK UINT64_C(64) /* of them are looked at in each tick */

static struct fx f;

static void many_sessions(struct agentd_config *cfg)
{
	cfg->sessions_per_user = MANY + 2;
	cfg->stopped_timeout_ms = 600000;
}

static void open_many(struct fx *x, int ready)
{
	static struct client clients[MANY];

	for (uint32_t i = 0; i < MANY; i++)
		client_open(x, &clients[i]);
	if (write(ready, "x", 1) != 1)
		return;
	for (;;)
		pause();
}

static void agent_setup(void)
{
	int ready[2];
	char c;

	fx_start(&f, many_sessions);
	ck_assert_int_eq(pipe(ready), 0);
	child = fx_fork(&f, open_many, ready[1]);
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
}

static void agent_teardown(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	fx_stop(&f);
}

static uint32_t count_stopped(const struct agentd *d)
{
	const struct session *s;
	uint32_t n = 0;

	for (s = d->loc->sessions; s; s = s->hh.next)
		n += s->stopped;
	return n;
}

/* Everything between two ticks of the agent's own. */
static void stop_and_look(struct agentd *d, void *arg)
{
	uint32_t *seen = arg;
	int status;

	d->loc->looked = 0;
	ev_hold(&d->base);
	ck_assert_int_eq(kill(child, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
	for (int i = 0; i < 3; i++) {
		loc_session_tick(d->loc, cc_now_ns());
		seen[i] = count_stopped(d);
	}
	ck_assert_int_eq(kill(child, SIGCONT), 0);
	ck_assert_int_eq(waitpid(child, &status, WCONTINUED), child);
	loc_session_tick(d->loc, cc_now_ns());
	seen[3] = count_stopped(d);
	ev_release(&d->base);
}

START_TEST(so_many_in_each_tick_but_all_that_were_stopped)
{
	uint32_t seen[4];

	fx_call(&f, stop_and_look, seen);
	ck_assert_uint_eq(seen[0], A_TICK);
	ck_assert_uint_eq(seen[1], 2 * A_TICK);
	ck_assert_uint_eq(seen[2], MANY);
	ck_assert_uint_eq(seen[3], 0); /* before they can count as lost */
}
END_TEST

struct seen {
	bool look, quiet;
	uint32_t stopped, tick_ms;
};

static void see(struct agentd *d, void *arg)
{
	struct seen *s = arg;

	if (s->look)
		agentd_look(d);
	s->quiet = d->base.quiet;
	s->tick_ms = d->tick_ms;
	s->stopped = count_stopped(d);
}

/* Time alone brings it about. */
static void await_quiet(struct seen *s)
{
	do
		fx_call(&f, see, s);
	while (!s->quiet);
}

START_TEST(seldom_when_nothing_is_under_way)
{
	struct seen s = {.look = false};
	int status;

	await_quiet(&s);
	ck_assert_uint_eq(s.stopped, 0);
	ck_assert_int_eq(kill(child, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
	while (s.stopped < MANY)
		fx_call(&f, see, &s);
	ck_assert(!s.quiet);
	ck_assert_int_eq(kill(child, SIGCONT), 0);
	ck_assert_int_eq(waitpid(child, &status, WCONTINUED), child);
	await_quiet(&s);
	ck_assert_uint_eq(s.stopped, 0);
	/* but at once when somebody asks */
	ck_assert_int_eq(kill(child, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
	s.look = true;
	fx_call(&f, see, &s);
	ck_assert_uint_eq(s.stopped, MANY);
	ck_assert(!s.quiet);
}
END_TEST

static void beat(struct agentd *d, bool awaited)
{
	struct wm_msg m = {.type = WM_HEARTBEAT, .u.heartbeat.awaited = awaited};
	struct agt_event ev = {.type = AGT_EV_MASTER_MSG, .run = 1, .msg = &m};

	ev_post(&d->base, &ev);
}

/* What has been stopped since the last look is found with the next one: that is now. */
static void stop_and_await(struct agentd *d, void *arg)
{
	struct seen *s = arg;
	int status;

	s->quiet = d->base.quiet;
	if (!s->quiet)
		return;
	ck_assert_int_eq(kill(child, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
	beat(d, false);
	ck_assert(d->base.quiet);
	ck_assert_uint_eq(d->tick_ms, AGT_QUIET_TICK_MS);
	beat(d, true);
	ck_assert(!d->base.quiet);
	s->tick_ms = d->tick_ms;
	d->loc->looked = 0;
	loc_session_tick(d->loc, cc_now_ns());
	s->stopped = count_stopped(d);
}

static void not_awaited(struct agentd *d, void *arg)
{
	(void)arg;
	beat(d, false);
}

START_TEST(at_once_when_somebody_is_awaited)
{
	struct client a, b;
	struct queue qa, qb;
	struct master m;
	struct seen s = {.look = false};
	int status;

	master_listen(&m);
	master_join_two(&m, &f, &a, &qa, &b, &qb);
	do
		fx_call(&f, stop_and_await, &s);
	while (!s.quiet);
	ck_assert_uint_lt(s.tick_ms, BASE_TICK_MS);
	ck_assert_uint_eq(s.stopped, A_TICK);
	while (s.stopped < MANY)
		fx_call(&f, see, &s);
	do
		fx_call(&f, see, &s);
	while (s.tick_ms != BASE_TICK_MS); /* that one was for once */
	ck_assert(!s.quiet);
	/* it does not end by itself */
	ck_assert_int_eq(kill(child, SIGCONT), 0);
	ck_assert_int_eq(waitpid(child, &status, WCONTINUED), child);
	while (s.stopped > 0)
		fx_call(&f, see, &s);
	for (int i = 0; i < 300; i++) { /* of 5 ms at least */
		fx_call(&f, see, &s);
		ck_assert(!s.quiet);
	}
	fx_call(&f, not_awaited, NULL);
	await_quiet(&s);
	client_close(&a);
	client_close(&b);
	queue_close(&qa);
	queue_close(&qb);
	master_close(&m);
}
END_TEST

Suite *process_suite(void)
{
	Suite *s = suite_create("process");
	TCase *t = tcase_create("process");

	tcase_set_timeout(t, 20);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, stopped_and_continued);
	tcase_add_test(t, its_end_is_no_stop);
	suite_add_tcase(s, t);
	t = tcase_create("beat");
	tcase_set_timeout(t, 20);
	tcase_add_checked_fixture(t, beat_setup, beat_teardown);
	tcase_add_test(t, asked_when_it_is_due);
	tcase_add_test(t, silent_until_it_answers);
	tcase_add_test(t, the_time_of_an_agent_that_stood_still_counts_once);
	tcase_add_test(t, who_runs_is_not_silent);
	tcase_add_test(t, on_a_machine_that_is_busy_it_takes_longer);
	tcase_add_test(t, a_process_may_do_without);
	suite_add_tcase(s, t);
	t = tcase_create("looks");
	tcase_set_timeout(t, 120); /* there are many sessions to be made */
	tcase_add_checked_fixture(t, agent_setup, agent_teardown);
	tcase_add_test(t, so_many_in_each_tick_but_all_that_were_stopped);
	tcase_add_test(t, seldom_when_nothing_is_under_way);
	tcase_add_test(t, at_once_when_somebody_is_awaited);
	suite_add_tcase(s, t);
	return s;
}
