/* SPDX-License-Identifier: MIT
 *
 * How often the agent wakes up: seldom when nothing is under way, often enough when a process or an
 * operator waits. The tests stop a process and observe how soon the agent reports it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cc_sys.h"
#include "tests/agentio/ask.h"
#include "tests/agentio/suites.h"

#define WATCH_S 1u
/* The agent wakes up two or three times in WATCH_S seconds if it ticks every 450 ms, and 20 times
 * if it ticks every 50 ms. On a busy machine it wakes up less often. */
#define SELDOM 6u
#define MOST   100u
/* The longest time from a heartbeat to an action that does not wait for the next tick. Ticks come
 * every 50 ms. One of TRIES tries must succeed; other programs may delay the others. */
#define AT_ONCE_NS UINT64_C(30000000)
#define TRIES      5u

static struct fx f;
static struct master m;
static pid_t child;
static pid_t thread; /* the agent's thread */

static void get_thread(struct agentd *d, void *arg)
{
	(void)d;
	(void)arg;
	thread = gettid();
}

static void no_lost(struct agentd_config *cfg)
{
	cfg->stopped_timeout_ms = 600000;
}

/* A process whose communicator asks to take part in a run. */
static void join(struct fx *x, int fd)
{
	struct wl_request q = {.type = WL_COMM_CONNECT, .token = {{1}}, .peer = {{1}}};
	struct client c;
	struct queue queue;

	client_open(x, &c);
	client_comm(&c, &m.addr, 1, &queue);
	q.comm = queue.comm;
	client_send(&c, &q);
	for (;;)
		pause();
	(void)fd;
}

static void setup(void)
{
	struct wm_msg msg;

	master_listen(&m);
	fx_start_still(&f, no_lost);
	child = fx_fork(&f, join, -1);
	master_accept(&m);
	master_expect(&m, WM_JOIN, &msg);
	wire_master_clear(&msg);
	fx_call(&f, get_thread, NULL);
}

static void teardown(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	fx_stop(&f);
	master_close(&m);
}

static void child_is_to(int signo)
{
	int status;

	ck_assert_int_eq(kill(child, signo), 0);
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED | WCONTINUED), child);
}

/* Returns how often the agent's thread has gone to sleep until now. */
static unsigned long count_sleeps(void)
{
	static const char field[] = "voluntary_ctxt_switches:";
	char path[64], line[128];
	unsigned long n = 0;
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)thread);
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof line, file))
		if (strncmp(line, field, strlen(field)) == 0)
			n = strtoul(line + strlen(field), NULL, 10);
	fclose(file);
	return n;
}

static unsigned long count_wakes(void)
{
	unsigned long before = count_sleeps();

	sleep(WATCH_S);
	return count_sleeps() - before;
}

/* Waits until the agent wakes up seldom (if `seldom`) or often. Returns how often it woke up in the
 * last WATCH_S seconds. */
static unsigned long await_pace(bool seldom)
{
	uint64_t end = cc_now_ns() + FX_TIMEOUT_MS * UINT64_C(1000000);
	unsigned long n;

	while (((n = count_wakes()) <= SELDOM) != seldom)
		ck_assert_msg(cc_now_ns() < end, "the agent wakes up %lu times", n);
	return n;
}

static void await_seldom(void)
{
	(void)await_pace(true);
}

static void await_often(void)
{
	ck_assert_uint_lt(await_pace(false), MOST);
}

/* Expects that the agent reports the process to the master as stopped, or as running again. */
static void expect_stopped(bool is)
{
	struct wm_msg msg;

	master_expect(&m, WM_STOPPED, &msg);
	ck_assert(msg.u.stopped.is == is);
	wire_master_clear(&msg);
}

static bool is_shown_as_stopped(void)
{
	struct wa_reply r;
	bool ret;

	ask(&f, WA_PEERS, &r);
	ret = ask_number(ask_table(&r, "peers"), 0, "stopped") > 0;
	wa_reply_clear(&r);
	return ret;
}

/* ---- tests */

START_TEST(quiet_agent_wakes_up_seldom)
{
	await_seldom();
	child_is_to(SIGSTOP);
	expect_stopped(true);
	await_often(); /* while the process is stopped */
	child_is_to(SIGCONT);
	expect_stopped(false);
	await_seldom();
}
END_TEST

START_TEST(agent_wakes_up_at_once_when_an_operator_asks)
{
	await_seldom();
	child_is_to(SIGSTOP);
	ck_assert(is_shown_as_stopped());
	expect_stopped(true);
}
END_TEST

static void beat(bool awaited)
{
	const struct wm_msg msg = {.type = WM_HEARTBEAT, .u.heartbeat.awaited = awaited};

	master_send(&m, &msg);
}

/* Stops the process and waits until the agent has reported it. Returns the time that this takes. */
static uint64_t stop_and_await(void)
{
	uint64_t began, took;

	await_seldom();
	child_is_to(SIGSTOP);
	began = cc_now_ns();
	beat(true);
	expect_stopped(true);
	took = cc_now_ns() - began;
	child_is_to(SIGCONT);
	expect_stopped(false);
	return took;
}

START_TEST(agent_looks_at_once_at_an_awaited_process)
{
	for (unsigned i = 0; stop_and_await() > AT_ONCE_NS; i++) {
		ck_assert_uint_lt(i, TRIES);
		beat(false);
	}
	sleep(2 * WATCH_S);
	await_often(); /* until a heartbeat says that no process is awaited */
	beat(false);
	await_seldom();
}
END_TEST

Suite *quiet_suite(void)
{
	Suite *s = suite_create("quiet");
	TCase *t = tcase_create("quiet");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, quiet_agent_wakes_up_seldom);
	tcase_add_test(t, agent_wakes_up_at_once_when_an_operator_asks);
	tcase_add_test(t, agent_looks_at_once_at_an_awaited_process);
	suite_add_tcase(s, t);
	return s;
}
