/* SPDX-License-Identifier: MIT
 *
 * A run outlives the connection to its master. Only the connection is made again, not the engine,
 * its links or the communicators.
 */
#include <string.h>
#include <unistd.h>

#include "common/cc_sys.h"
#include "proto/wire_codes.h"
#include "tests/agentio/fake_engine.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

#define COUNT ((uint64_t)1000)

static void short_lease(struct agentd_config *cfg)
{
	cfg->master_lease_ms = 400;
}

static void setup(void)
{
	pair_begin_with(NULL, COUNT * 4);
}

static void setup_short(void)
{
	pair_begin_with(short_lease, COUNT * 4);
}

static void teardown(void)
{
	fx_check_alive(&f);
	pair_end();
}

static void submit(uint32_t slot, uint64_t tag)
{
	struct shm_sqe ea = queue_sum(slot, tag, COUNT, &ma), eb = queue_sum(slot, tag, COUNT, &mb);

	queue_push(&qa, &ea);
	queue_push(&qb, &eb);
}

static void expect_success(uint32_t slot)
{
	ck_assert_uint_eq(queue_await(&qa, slot), WIRE_SUCCESS);
	ck_assert_uint_eq(queue_await(&qb, slot), WIRE_SUCCESS);
}

/* Another master of the run takes over. Counts the agent's messages by type, up to RESUME. */
static void resume(uint32_t counts[WM_RESUME + 1])
{
	struct wm_msg msg;

	memset(counts, 0, (WM_RESUME + 1) * sizeof *counts);
	master_take(&m, ++m.term, &msg);
	ck_assert(cc_id_eq(&msg.u.hello.run, &m.run));
	ck_assert(cc_id_eq(&msg.u.hello.run_key, &m.key));
	ck_assert_uint_eq(msg.u.hello.term, m.term - 1);
	do {
		master_next(&m, &msg);
		ck_assert_uint_le(msg.type, WM_RESUME);
		counts[msg.type]++;
		wire_master_clear(&msg);
	} while (counts[WM_RESUME] == 0);
	ck_assert_uint_eq(counts[WM_JOIN], 2);
	/* Nothing was created again. */
	ck_assert_uint_eq(fake_counts().engines, 1);
	ck_assert_uint_eq(fx_stats(&f).comms, 2);
}

START_TEST(a_run_goes_on_with_the_next_master)
{
	uint32_t counts[WM_RESUME + 1];
	uint64_t seq;

	submit(0, 1);
	seq = master_start_op(&m, 1);
	master_hang_up(&m);
	resume(counts);
	ck_assert_uint_eq(counts[WM_OP_VOTE], 1);
	ck_assert_uint_eq(counts[WM_OP_REPORT], 1);
	master_done(&m, seq);
	expect_success(0);
	submit(1, 2);
	master_finish_op(&m, master_start_op(&m, 2));
	expect_success(1);
}
END_TEST

START_TEST(the_agent_connects_until_a_master_answers)
{
	uint32_t counts[WM_RESUME + 1];
	struct cc_addr addr = m.addr;

	for (unsigned i = 0; i < 3; i++) {
		master_hang_up(&m);
		close(m.listener); /* connections are refused from here on */
		submit(i, 10 + i);
		fx_check_alive(&f);
		m.listener = cc_listen_tcp(&addr, 0);
		ck_assert_int_ge(m.listener, 0);
		resume(counts);
		ck_assert_uint_eq(counts[WM_OP_VOTE], 1);
		master_finish_op(&m, master_started(&m, 10 + i));
		expect_success(i);
	}
}
END_TEST

static void move(struct agentd *d, void *arg)
{
	agentd_set_masters(d, arg);
}

START_TEST(the_agent_finds_a_master_that_has_moved)
{
	struct agentd_masters moved = {.n = 1};
	uint32_t counts[WM_RESUME + 1];

	moved.v[0].from = m.addr;
	master_hang_up(&m);
	close(m.listener);
	m.addr.port = 0;
	m.listener = cc_listen_tcp(&m.addr, 0);
	moved.v[0].to = m.addr;
	fx_call(&f, move, &moved);
	resume(counts);
	submit(0, 1);
	master_finish_op(&m, master_start_op(&m, 1));
	expect_success(0);
}
END_TEST

static bool no_runs(const struct agentd_stats *s, uint64_t arg)
{
	(void)arg;
	return s->runs == 0;
}

START_TEST(a_run_without_a_master_ends_after_the_lease)
{
	uint64_t start = cc_now_ns();

	master_hang_up(&m);
	close(m.listener);
	m.listener = -1;
	submit(0, 1);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_MASTER_CONNECTION_FAILED);
	ck_assert_uint_eq(queue_await(&qb, 0), WIRE_MASTER_CONNECTION_FAILED);
	ck_assert_uint_ge(cc_now_ns() - start, 400000000u);
	fx_await(&f, no_runs, 0);
	ck_assert_uint_eq(fake_counts().engines, 0);
}
END_TEST

START_TEST(links_survive_breaks_of_the_masters_connection)
{
	uint32_t counts[WM_RESUME + 1];

	/* After each break, the agent sends the same snapshot. */
	for (unsigned i = 0; i < 5; i++) {
		master_hang_up(&m);
		resume(counts);
	}
	ck_assert_uint_eq(fake_counts().links_dropped, 0);
}
END_TEST

Suite *reconnect_suite(void)
{
	Suite *s = suite_create("reconnect");
	TCase *t = tcase_create("reconnect"), *over = tcase_create("over");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_run_goes_on_with_the_next_master);
	tcase_add_test(t, the_agent_connects_until_a_master_answers);
	tcase_add_test(t, the_agent_finds_a_master_that_has_moved);
	tcase_add_test(t, links_survive_breaks_of_the_masters_connection);
	suite_add_tcase(s, t);
	tcase_set_timeout(over, 60);
	tcase_add_checked_fixture(over, setup_short, teardown);
	tcase_add_test(over, a_run_without_a_master_ends_after_the_lease);
	suite_add_tcase(s, over);
	return s;
}
