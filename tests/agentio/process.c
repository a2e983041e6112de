/* SPDX-License-Identifier: MIT
 *
 * How the agent notices that a process is stopped or does not answer its beat, and how many
 * processes it checks in each tick. The processes are children of the test.
 */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cc_sys.h"
#include "pcclagentd/base/base.h"
#include "pcclagentd/local/beat.h"
#include "pcclagentd/local/local.h"
#include "pcclagentd/local/process.h"
#include "pcclagentd/options.h"
#include "tests/agentio/fixture.h"
#include "tests/agentio/suites.h"

static int sock; /* the test's end of the socket to the child */
static pid_t child;

/* Starts a child with a name that looks like a state in /proc/PID/stat. */
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

/* waitpid returns when the child has changed its state, so the test needs no pauses. */
START_TEST(process_is_stopped_and_continued)
{
	struct process p;
	int status;

	/* The test has made the socket, so the peer of the socket is the test itself. The process
	 * is found by its number. */
	loc_process_open(&p, -1, (uint32_t)child);
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

START_TEST(process_that_ends_does_not_count_as_stopped)
{
	struct process p, late;

	loc_process_open(&p, -1, (uint32_t)child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ck_assert(!loc_process_is_stopped(&p));
	loc_process_close(&p);
	/* Another process may have this number now. */
	loc_process_open(&late, -1, (uint32_t)child);
	ck_assert(!loc_process_is_stopped(&late));
	loc_process_close(&late);
	loc_process_open(&late, -1, 0);
	ck_assert(!loc_process_is_stopped(&late));
	loc_process_close(&late);
}
END_TEST

#define EVERY 100u

static struct beat asks;
static int other; /* the process's end of the beat channel */
static uint64_t now;

static bool look(struct process *p, bool due)
{
	return loc_beat_is_silent(&asks, p, EVERY, due, now);
}

/* Lets n intervals pass. Returns true if the process is silent after them. */
static bool pass(struct process *p, unsigned n)
{
	bool silent = look(p, true);

	while (n-- > 0) {
		now += EVERY;
		silent = look(p, true);
	}
	return silent;
}

/* Returns the number of intervals until the process is silent. This number is higher if other
 * threads run on this machine. */
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

/* Returns a process that cannot be looked up, like one in another PID namespace. */
static struct process unseen(void)
{
	struct process p;

	loc_process_open(&p, -1, 0);
	return p;
}

START_TEST(process_is_asked_when_the_question_is_due)
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
	/* A process that is not awaited any more is not asked and cannot become silent. */
	for (int i = 0; i < 20; i++, now += EVERY)
		ck_assert(!look(&p, false));
	ck_assert_uint_eq(read_asks(), 0);
}
END_TEST

START_TEST(process_counts_as_silent_until_it_answers)
{
	struct process p = unseen();

	for (int i = 0; i < 3; i++) {
		ck_assert(!pass(&p, BEAT_ASKS - 1));
		answer(); /* at the last moment */
		ck_assert(!pass(&p, 0));
		ck_assert(!pass(&p, BEAT_ASKS));
		ck_assert_uint_ge(until_silent(&p), 1);
		read_asks();
		ck_assert(pass(&p, 1000));
		ck_assert_uint_eq(read_asks(), 0); /* earlier questions have no answer yet */
		answer();
		ck_assert(!look(&p, true));
	}
	ck_assert_uint_ge(until_silent(&p), BEAT_ASKS);
	loc_beat_forget(&asks);
	ck_assert(!look(&p, true));
}
END_TEST

START_TEST(time_of_a_suspended_agent_counts_once)
{
	struct process p = unseen();

	ck_assert(!pass(&p, 1));
	now += UINT64_C(1000) * EVERY;
	ck_assert(!pass(&p, BEAT_ASKS - 3));
}
END_TEST

START_TEST(process_that_runs_is_not_silent)
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

START_TEST(silence_is_allowed_for_longer_on_a_busy_machine)
{
	ck_assert_uint_eq(loc_beat_parts("0.20 0.18 0.12 1/80 11206\n", 2), BEAT_PARTS);
	ck_assert_uint_eq(loc_beat_parts("9.20 9.18 9.12 2/80 11206\n", 2), BEAT_PARTS);
	ck_assert_uint_eq(loc_beat_parts("0.20 0.18 0.12 8/80 11206\n", 2), BEAT_PARTS / 4);
	ck_assert_uint_eq(loc_beat_parts("0.20 0.18 0.12 100000/200000 11206\n", 1), 1);
	ck_assert_uint_eq(loc_beat_parts("", 2), BEAT_PARTS);
	ck_assert_uint_eq(loc_beat_parts("0.20 0.18 0.12 8/80 11206\n", -1), BEAT_PARTS);
}
END_TEST

START_TEST(process_that_closes_its_beat_channel_is_not_asked)
{
	struct process p = unseen();
	unsigned fds = fx_count_fds();

	until_silent(&p);
	close(other);
	ck_assert(!look(&p, true));
	ck_assert_uint_eq(fx_count_fds(), fds - 2); /* the agent has closed its end, too */
	ck_assert(!pass(&p, 10 * BEAT_ASKS));
	other = -1;
}
END_TEST

#define MANY   150u         /* sessions of one process */
#define A_TICK UINT64_C(64) /* sessions that the agent checks in each tick */

/* ---- checks of sessions: local.h with a real core and a loop, all in this thread ---- */

static struct base base;
static struct loc *loc;
static struct cc_watch *ready;
static struct fx fx; /* only the folder and the names of the sockets */
static uint32_t stopped;
static uint64_t tick_ns;

static void carry_out(void *arg, struct agt_action *a)
{
	(void)arg;
	ck_assert_int_eq(a->type, AGT_ACT_LOG);
	if (strstr(a->u.text, " is stopped"))
		stopped++;
	else if (strstr(a->u.text, " runs again "))
		stopped--;
}

static uint32_t stamp(void *arg, const struct agt_event *ev)
{
	(void)arg;
	(void)ev;
	return 0;
}

static void after(void *arg)
{
	(void)arg;
}

static void loc_setup(void)
{
	static const struct ev_ops ops = {.carry_out = carry_out, .stamp = stamp, .after = after};
	const struct agt_config core = {.agent = {{1}}};

	fx_make_place(&fx);
	base = (struct base){0};
	agentd_config_init(&base.cfg);
	agentd_config_limits(&base.cfg);
	base.cfg.sessions_per_user = MANY;
	base.cfg.session_fd = cc_listen_unix(fx.path, SOCK_SEQPACKET, 0600);
	base.loop = cc_loop_new();
	base.core = agt_new(&core);
	base.events = ev_new(&ops, NULL);
	ck_assert_ptr_nonnull(base.loop);
	loc = loc_new(&base);
	ck_assert_ptr_nonnull(loc);
	ck_assert_int_eq(loc_session_listen(loc), 0);
	stopped = 0;
}

static void loc_teardown(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	cc_watch_free(ready);
	ev_hold(&base); /* the core gets no more events */
	loc_free(loc);
	ev_free(base.events);
	agt_free(base.core);
	cc_loop_free(base.loop);
	fx_remove_place(&fx);
}

static void open_many(int fd)
{
	static struct client clients[MANY];

	for (uint32_t i = 0; i < MANY; i++)
		client_open(&fx, &clients[i]);
	if (write(fd, "x", 1) != 1)
		return;
	for (;;)
		pause();
}

static void all_are_there(void *arg)
{
	(void)arg;
	cc_loop_stop(base.loop);
}

static void sessions_setup(void)
{
	int fds[2];

	loc_setup();
	ck_assert_int_eq(pipe(fds), 0);
	child = fork();
	if (child == 0) {
		open_many(fds[1]);
		_exit(1);
	}
	close(fds[1]);
	ready = cc_watch_new(base.loop, fds[0], false, all_are_there, NULL);
	ck_assert_int_eq(cc_loop_run(base.loop), 0);
	close(fds[0]);
	tick_ns = cc_now_ns();
}

static void child_is_to(int signo)
{
	int status;

	ck_assert_int_eq(kill(child, signo), 0);
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED | WCONTINUED), child);
}

/* Lets `ms` pass and ticks. Returns how many sessions are known to be stopped. */
static uint32_t tick(uint32_t ms)
{
	tick_ns += BASE_MS(ms);
	ev_hold(&base);
	loc_session_tick(loc, tick_ns);
	ev_release(&base);
	return stopped;
}

START_TEST(tick_checks_some_processes_and_all_stopped_ones)
{
	ck_assert_uint_eq(tick(BASE_TICK_MS), 0);
	child_is_to(SIGSTOP);
	ck_assert_uint_eq(tick(BASE_TICK_MS), A_TICK); /* the next A_TICK sessions */
	ck_assert_uint_eq(tick(BASE_TICK_MS), MANY - A_TICK);
	ck_assert_uint_eq(tick(BASE_TICK_MS), MANY);
	child_is_to(SIGCONT);
	ck_assert_uint_eq(tick(BASE_TICK_MS), 0); /* else a running session could count as lost */
}
END_TEST

START_TEST(quiet_agent_checks_all_in_every_fourth_tick)
{
	base.quiet = true;
	ck_assert_uint_eq(tick(AGT_QUIET_TICK_MS), 0);
	child_is_to(SIGSTOP);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(tick(AGT_QUIET_TICK_MS), 0);
	ck_assert_uint_eq(tick(AGT_QUIET_TICK_MS), MANY);
	base.quiet = false; /* as in the daemon while a process is stopped */
	child_is_to(SIGCONT);
	ck_assert_uint_eq(tick(BASE_TICK_MS), 0);
}
END_TEST

START_TEST(all_sessions_are_checked_when_an_operator_asks)
{
	base.quiet = true;
	ck_assert_uint_eq(tick(AGT_QUIET_TICK_MS), 0);
	child_is_to(SIGSTOP);
	loc_session_look(loc);
	ck_assert_uint_eq(stopped, MANY);
	child_is_to(SIGCONT);
	loc_session_look(loc);
	ck_assert_uint_eq(stopped, 0);
}
END_TEST

Suite *process_suite(void)
{
	Suite *s = suite_create("process");
	TCase *t = tcase_create("process");

	tcase_set_timeout(t, 20);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, process_is_stopped_and_continued);
	tcase_add_test(t, process_that_ends_does_not_count_as_stopped);
	suite_add_tcase(s, t);
	t = tcase_create("beat");
	tcase_set_timeout(t, 20);
	tcase_add_checked_fixture(t, beat_setup, beat_teardown);
	tcase_add_test(t, process_is_asked_when_the_question_is_due);
	tcase_add_test(t, process_counts_as_silent_until_it_answers);
	tcase_add_test(t, time_of_a_suspended_agent_counts_once);
	tcase_add_test(t, process_that_runs_is_not_silent);
	tcase_add_test(t, silence_is_allowed_for_longer_on_a_busy_machine);
	tcase_add_test(t, process_that_closes_its_beat_channel_is_not_asked);
	suite_add_tcase(s, t);
	t = tcase_create("looks");
	tcase_set_timeout(t, 60); /* the set-up opens many sessions */
	tcase_add_checked_fixture(t, sessions_setup, loc_teardown);
	tcase_add_test(t, tick_checks_some_processes_and_all_stopped_ones);
	tcase_add_test(t, quiet_agent_checks_all_in_every_fourth_tick);
	tcase_add_test(t, all_sessions_are_checked_when_an_operator_asks);
	suite_add_tcase(s, t);
	return s;
}
