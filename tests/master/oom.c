/* SPDX-License-Identifier: MIT
 *
 * The master's core without memory. If any allocation fails, the step returns an error and
 * everything can be freed. The test is linked with --wrap for the allocator.
 */
#include <string.h>

#include "common/cc_err.h"
#include "tests/common/testlib.h"
#include "ccoip-masterd/core/ccm.h"
#include "tests/master/suites.h"

static long left;  /* allocations that will succeed */
static bool armed; /* true only within the core, because the test library allocates, too */
static bool failed;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static bool allowed(void)
{
	if (!armed)
		return true;
	if (left > 0) {
		left--;
		return true;
	}
	failed = true;
	return false;
}

void *__wrap_malloc(size_t n)
{
	return allowed() ? __real_malloc(n) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return allowed() ? __real_calloc(n, size) : NULL;
}

void *__wrap_realloc(void *p, size_t n)
{
	return allowed() ? __real_realloc(p, n) : NULL;
}

static struct ccm *m;
static struct ccm_actions out;
static int err;

static void step(uint32_t conn, enum ccm_event_type type, const struct wm_msg *msg)
{
	struct ccm_event ev = {.type = type, .conn = conn, .msg = msg, .text = "gone"};

	if (err)
		return;
	ev.addr.family = CC_INET4;
	ev.refused = conn == 4; /* agents other than 4 may come back */
	ev.addr.ip[0] = 10;
	armed = true;
	err = ccm_step(m, &ev, 1000000000, &out);
	armed = false;
	ccm_actions_clear(&out);
	ck_assert(!err || (err == CC_ERR_NOMEM && failed));
}

static void report(uint32_t conn, uint64_t round, const struct wm_failure *failure)
{
	struct wm_msg msg = {.type = WM_ROUND_REPORT};
	struct wm_failure copy;

	msg.u.round_report.round = round;
	if (failure) {
		copy = *failure;
		msg.u.round_report.n_failures = 1;
		msg.u.round_report.failures = &copy;
	}
	step(conn, CCM_EV_MSG, &msg);
}

static void join(uint32_t conn, uint32_t peer)
{
	struct wm_msg msg = {.type = WM_HELLO};

	step(conn, CCM_EV_OPEN, NULL);
	msg.u.hello.version_min = msg.u.hello.version_max = WM_VERSION_MIN;
	msg.u.hello.agent.b[0] = (uint8_t)conn;
	step(conn, CCM_EV_MSG, &msg);
	memset(&msg, 0, sizeof msg);
	msg.type = WM_JOIN;
	msg.u.join.peer.b[0] = (uint8_t)(100 + peer);
	msg.u.join.token.b[0] = 1;
	msg.u.join.phase = conn == peer ? WM_JOIN_NEW : WM_JOIN_ACCEPTED;
	msg.u.join.pool_size = 1;
	step(conn, CCM_EV_MSG, &msg);
}

static void vote(uint32_t conn, enum wm_type type, uint64_t tag)
{
	struct cc_id peer = {{(uint8_t)(100 + conn)}};
	struct wm_msg msg = {.type = type};

	if (type == WM_OP_VOTE)
		msg.u.op_vote = (struct wm_op_vote){.tag = tag, .n_peers = 1, .peers = &peer};
	else
		msg.u.peer = (struct wm_peer){peer, tag};
	step(conn, CCM_EV_MSG, &msg);
}

static void sync_vote(uint32_t conn, uint64_t content)
{
	struct cc_id peer = {{(uint8_t)(100 + conn)}};
	struct wm_msg msg = {.type = WM_OP_VOTE};

	msg.u.op_vote = (struct wm_op_vote){.n_peers = 1, .peers = &peer, .is_sync = true};
	msg.u.op_vote.sync.content.lo = content;
	step(conn, CCM_EV_MSG, &msg);
}

static void sync_report(uint32_t conn, uint64_t seq)
{
	struct wm_msg msg = {.type = WM_OP_REPORT, .u.op_report = {.seq = seq, .ok = true}};

	step(conn, CCM_EV_MSG, &msg);
}

static void probed(uint32_t conn, uint64_t number)
{
	struct wm_msg msg = {.type = WM_PROBED, .u.probed = {.number = number, .ok = true}};

	step(conn, CCM_EV_MSG, &msg);
}

/* Does a little of everything: admissions, operations, a failed link, losses, a disconnect and a
 * return. */
static void scenario(void)
{
	struct wm_failure failure = {.agent = {{2}}, .text = "refused"};
	uint32_t i;

	for (i = 1; i <= 4; i++)
		join(i, i);
	report(1, 1, NULL);
	for (i = 1; i <= 4; i++)
		probed(i, i);
	vote(1, WM_TOPO_VOTE, 1);
	for (i = 1; i <= 4; i++)
		report(i, 2, NULL);
	for (i = 1; i <= 4; i++)
		sync_vote(i, i / 4);
	for (i = 1; i <= 4; i++)
		sync_report(i, 1);
	for (i = 1; i <= 4; i++)
		vote(i, WM_OP_VOTE, 1);
	vote(1, WM_OP_VOTE, 2);
	step(4, CCM_EV_CLOSED, NULL);
	report(1, 3, &failure);
	report(2, 3, NULL);
	report(3, 3, NULL);
	for (i = 1; i <= 3; i++)
		report(i, 4, NULL);
	for (i = 1; i <= 3; i++)
		vote(i, WM_TOPO_VOTE, 2);
	step(2, CCM_EV_CLOSED, NULL);
	join(5, 2);
	for (i = 1; i <= 5; i++)
		if (i != 2 && i != 4)
			report(i, 6, NULL);
	step(3, CCM_EV_CLOSED, NULL);
}

START_TEST(every_allocation_may_fail)
{
	struct ccm_config cfg = {.log_level = CCM_LOG_DEBUG};
	struct ccm_status s;
	long n;

	for (n = 0;; n++) {
		failed = false;
		err = 0;
		left = n;
		armed = true;
		m = ccm_new(&cfg);
		armed = false;
		if (m)
			scenario();
		ck_assert(m || failed);
		/* If no step fails, the scenario has its full result. */
		if (m && !err) {
			ccm_get_status(m, 0, &s);
			ck_assert_uint_eq(s.accepted, 3);
			ck_assert_uint_eq(s.disconnected, 1);
			ck_assert_uint_eq(s.ops_started, 2);
			ck_assert_uint_eq(s.rounds, 5);
		}
		ccm_free(m);
		ccm_actions_free(&out);
		if (!failed)
			break;
	}
	ck_assert_int_gt(n, 50);
}
END_TEST

Suite *oom_suite(void)
{
	Suite *s = suite_create("oom");
	TCase *tc = tcase_create("no memory");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, every_allocation_may_fail);
	suite_add_tcase(s, tc);
	return s;
}
