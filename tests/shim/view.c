/* SPDX-License-Identifier: MIT
 *
 * Attributes have the values of the last call's answer. They do not change between calls, and never
 * go back to an earlier view.
 */
#include <pthread.h>

#include "tests/shim/resume.h"
#include "tests/shim/suites.h"

static void assert_view(uint32_t global, uint32_t group, uint32_t groups, uint32_t largest)
{
	const struct {
		pcclAttribute_t attribute;
		uint32_t want;
	} v[] = {{PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, global},
		{PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, group},
		{PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS, groups},
		{PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE, largest}};
	int value = -1;

	for (unsigned i = 0; i < sizeof v / sizeof v[0]; i++) {
		fx_assert_succeeds(pcclGetAttribute(fx_comm, v[i].attribute, &value));
		ck_assert_int_eq(value, (int)v[i].want);
	}
}

static void tell(
	uint64_t view_id, uint32_t global, uint32_t group, uint32_t groups, uint32_t largest)
{
	fake_view(fx_agent, (struct wire_view){view_id, global, group, groups, largest});
}

static void play(struct fake_op *op, uint32_t code)
{
	if (code == pcclSuccess)
		fake_serve(op, SHM_RESULT_AREA);
	else
		fake_end(op, code, "lost");
}

/* The view of an operation is not visible before the operation is awaited, whatever has ended
 * since. Bit 0 of _i: the second operation fails. Bit 1: the second operation is awaited first. */
START_TEST(an_awaited_operation_shows_the_view_of_its_end)
{
	uint32_t code = _i & 1 ? pcclRankConnectionLost : pcclSuccess;
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1), c = bf_new(STAGED_IN_PLACE, BYTES, 2);
	pcclAsyncReduceOp_t first = bf_launch(&b, 1), second = bf_launch(&c, 2);
	struct fake_op op = fake_take(fx_agent), other = fake_take(fx_agent);

	tell(2, 5, 3, 2, 3);
	play(&op, pcclSuccess);
	tell(3, 4, 2, 2, 2);
	play(&other, code);
	assert_view(2, 2, 1, 2);
	if (_i & 2) {
		ck_assert_int_eq(pcclAwaitAsyncReduce(&second, NULL), code);
		assert_view(4, 2, 2, 2);
		fx_assert_succeeds(pcclAwaitAsyncReduce(&first, NULL));
	} else {
		fx_assert_succeeds(pcclAwaitAsyncReduce(&first, NULL));
		assert_view(5, 3, 2, 3);
		ck_assert_int_eq(pcclAwaitAsyncReduce(&second, NULL), code);
	}
	assert_view(4, 2, 2, 2);
	bf_free(&b);
	bf_free(&c);
}
END_TEST

START_TEST(a_vote_shows_the_view_of_its_answer)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclAsyncReduceOp_t h;
	struct fake_op op;
	bool flag;

	tell(2, 3, 3, 1, 3);
	assert_view(2, 2, 1, 2);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	assert_view(3, 3, 1, 3);
	tell(4, 2, 2, 1, 2);
	h = bf_launch(&b, 1);
	assert_view(3, 3, 1, 3);
	fx_assert_succeeds(pcclArePeersPending(fx_comm, &flag));
	assert_view(2, 2, 1, 2);
	/* an operation that ended before the vote */
	tell(3, 3, 3, 1, 3);
	op = fake_take(fx_agent);
	play(&op, pcclSuccess);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	assert_view(2, 2, 1, 2);
	/* an answer that has no view */
	fake_script(
		fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), FAKE_REFUSE, pcclUpdateTopologyFailed, "later");
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclUpdateTopologyFailed, "later");
	assert_view(2, 2, 1, 2);
	bf_free(&b);
}
END_TEST

static void *serve(void *arg)
{
	struct fake_op op = fake_take(fx_agent);

	(void)arg;
	tell(7, 3, 2, 2, 2);
	play(&op, pcclRankConnectionLost);
	op = fake_take(fx_agent);
	tell(8, 2, 2, 1, 2);
	play(&op, pcclSuccess);
	return NULL;
}

START_TEST(a_call_with_retry_shows_the_view_of_its_end)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclReduceOpDescriptor_t d = {b.send, b.recv, bf_descriptor(BYTES, 1)};
	pcclReduceInfo_t info;
	pthread_t t;

	fx_assert_succeeds(pcclAllReduceMultipleWithRetry(&d, 0, fx_comm, &info, 1));
	ck_assert_uint_eq(info.local_world_size, 2);
	assert_view(2, 2, 1, 2);
	ck_assert_int_eq(pthread_create(&t, NULL, serve, NULL), 0);
	fx_assert_succeeds(pcclAllReduceMultipleWithRetry(&d, 1, fx_comm, &info, 1));
	pthread_join(t, NULL);
	assert_view(2, 2, 1, 2);
	bf_free(&b);
}
END_TEST

/* The next agent may know a later view. The next call shows this view. */
START_TEST(a_new_agent_does_not_change_attributes)
{
	tell(2, 3, 3, 1, 3);
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	assert_view(2, 2, 1, 2);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	assert_view(3, 3, 1, 3);
}
END_TEST

/* The agent died before the end of an operation that has succeeded on the other hosts. Then the
 * view of the operation's start counts. */
START_TEST(a_result_without_an_end_shows_the_view_of_its_start)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclAsyncReduceOp_t h;
	struct fake_op op;

	rs_warm(STAGED_IN_PLACE);
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	tell(2, 4, 2, 2, 2);
	rs_play_whole(&op, SHM_RESULT_AREA);
	fake_outcome(fx_agent, op.seq);
	tell(3, 3, 2, 1, 2);
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	assert_view(2, 2, 1, 2);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	assert_view(4, 2, 2, 2);
	bf_free(&b);
}
END_TEST

/* View ids of another run may be lower. */
START_TEST(a_new_membership_may_have_lower_view_ids)
{
	tell(9, 3, 3, 1, 3);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	fake_lose(fx_agent, pcclRankConnectionLost, "kicked");
	assert_view(3, 3, 1, 3);
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclUpdateTopologyFailed, "kicked");
	fx_assert_fails(pcclGetAttribute(fx_comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &(int){0}),
		pcclInvalidUsage, "kicked");
	tell(1, 1, 1, 1, 1);
	fx_assert_succeeds(pcclConnect(fx_comm));
	assert_view(1, 1, 1, 1);
}
END_TEST

Suite *view_suite(void)
{
	Suite *s = suite_create("view");
	TCase *t = tcase_create("calls");

	tcase_add_checked_fixture(t, fx_setup_comm, fx_teardown_comm);
	tcase_add_loop_test(t, an_awaited_operation_shows_the_view_of_its_end, 0, 4);
	tcase_add_test(t, a_vote_shows_the_view_of_its_answer);
	tcase_add_test(t, a_call_with_retry_shows_the_view_of_its_end);
	tcase_add_test(t, a_new_agent_does_not_change_attributes);
	tcase_add_test(t, a_result_without_an_end_shows_the_view_of_its_start);
	tcase_add_test(t, a_new_membership_may_have_lower_view_ids);
	suite_add_tcase(s, t);
	return s;
}
