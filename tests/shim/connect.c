/* SPDX-License-Identifier: MIT
 *
 * The thread that calls pcclConnect is the main thread of the communicator, even if another thread
 * created the communicator. The agent and the master get the thread's number with the first
 * request.
 */
#include <pthread.h>

#include "tests/shim/fixture.h"
#include "tests/shim/suites.h"

/* A communicator that another thread connects. */
struct guest {
	pcclComm_t *comm;
	pcclResult_t result;
	/* `number`: the thread number that the agent got; `own`: the same for a communicator that
	 * this thread created itself */
	uint32_t number, own;
	pcclResult_t update;
};

static uint32_t told(enum wl_type type)
{
	return fake_last(fx_agent, type).thread;
}

/* Returns the number of the calling thread. */
static uint32_t own_number(void)
{
	pcclComm_t *c = fx_new_comm();
	uint32_t number;

	fake_script(fx_agent, WL_COMM_CONNECT, FAKE_ANSWER, 0, NULL);
	fx_assert_succeeds(pcclConnect(c));
	number = told(WL_COMM_CONNECT);
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	return number;
}

static void *visit(void *arg)
{
	struct guest *g = arg;

	g->result = pcclConnect(g->comm);
	g->number = told(WL_COMM_CONNECT);
	g->update = pcclUpdateTopology(g->comm);
	g->own = own_number();
	return NULL;
}

static struct guest connect_elsewhere(pcclComm_t *comm)
{
	struct guest g = {.comm = comm};
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, visit, &g), 0);
	pthread_join(t, NULL);
	return g;
}

static void setup(void)
{
	fx_setup_agent();
	fx_comm = fx_new_comm();
}

START_TEST(the_thread_that_connects_is_the_main_thread)
{
	pcclComm_t *other = fx_new_comm();
	struct guest first = connect_elsewhere(fx_comm), second = connect_elsewhere(other);

	ck_assert_int_eq(first.result, pcclSuccess);
	ck_assert_int_eq(second.result, pcclSuccess);
	ck_assert_uint_eq(first.number, first.own);
	ck_assert_uint_eq(second.number, second.own);
	ck_assert_uint_ne(first.number, second.number);
	ck_assert_uint_ne(first.number, own_number());
	fx_assert_succeeds(pcclDestroyCommunicator(other));
}
END_TEST

static void *make(void *arg)
{
	*(pcclComm_t **)arg = fx_new_comm();
	return NULL;
}

START_TEST(the_connecting_thread_counts_if_the_creator_has_ended)
{
	uint32_t number = own_number();
	pcclComm_t *other;
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, make, &other), 0);
	pthread_join(t, NULL);
	fx_assert_succeeds(pcclConnect(other));
	ck_assert_uint_eq(told(WL_COMM_CONNECT), number);
	fx_assert_succeeds(pcclDestroyCommunicator(other));
}
END_TEST

/* Each agent gets the same number. */
START_TEST(the_next_agent_gets_the_same_thread_number)
{
	struct guest g;

	fake_script(fx_agent, WL_COMM_CONNECT, FAKE_HANG_UP_ONCE, 0, NULL);
	g = connect_elsewhere(fx_comm);
	ck_assert_int_eq(g.result, pcclSuccess);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_COMM_CONNECT), 3);
	ck_assert_uint_eq(g.number, g.own);
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	ck_assert_uint_eq(told(WL_COMM_ATTACH), g.own);
}
END_TEST

/* The failed connect does not change the main thread. The agent gets the number of the thread that
 * connects it later. */
START_TEST(a_failed_connect_does_not_change_the_main_thread)
{
	struct guest g;

	fake_script(fx_agent, WL_COMM_CONNECT, FAKE_REFUSE, pcclInvalidUsage, "not now");
	g = connect_elsewhere(fx_comm);
	ck_assert_int_eq(g.result, pcclInvalidUsage);
	ck_assert_uint_eq(g.number, g.own);
	ck_assert_int_eq(g.update, pcclInvalidUsage);
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclInvalidUsage, "not connected");
	fx_assert_succeeds(pcclConnect(fx_comm));
	ck_assert_uint_eq(told(WL_COMM_CONNECT), own_number());
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
}
END_TEST

Suite *connect_suite(void)
{
	Suite *s = suite_create("connect");
	TCase *t = tcase_create("threads");

	tcase_add_unchecked_fixture(t, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(t, setup, fx_teardown_comm);
	tcase_add_test(t, the_thread_that_connects_is_the_main_thread);
	tcase_add_test(t, the_connecting_thread_counts_if_the_creator_has_ended);
	tcase_add_test(t, the_next_agent_gets_the_same_thread_number);
	tcase_add_test(t, a_failed_connect_does_not_change_the_main_thread);
	suite_add_tcase(s, t);
	return s;
}
