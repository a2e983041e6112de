/* SPDX-License-Identifier: MIT
 *
 * The agent dies with operations in flight. An operation succeeds if its whole result is here and
 * the other hosts know of the success. Other operations fail with pcclRankConnectionLost and leave
 * the buffers as they were. The next agent gets all that this process knows.
 */
#include <pthread.h>
#include <sched.h>

#include "tests/shim/resume.h"
#include "tests/shim/suites.h"

/* A caller whose operation was lost knows of the loss, whether the communicator attached before or
 * after the caller was told. */
START_TEST(an_operation_after_a_loss_has_the_new_generation)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclAsyncReduceOp_t h = bf_launch(&b, 1);

	fake_take(fx_agent);
	fake_generation(fx_agent, 1);
	fake_hang_up(fx_agent);
	if (_i == 0)
		fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost, "died");
	rs_serve_next(&b, 1, 1);
	bf_free(&b);
}
END_TEST

struct launch {
	struct buffers *b;
	_Atomic pid_t tid;
};

static void *launch_and_await(void *arg)
{
	struct launch *l = arg;
	pcclAsyncReduceOp_t h;

	l->tid = gettid();
	h = bf_launch(l->b, 1);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	return NULL;
}

static void await_asleep(pid_t tid)
{
	char path[64], text[256], state = 0;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
	while (state != 'S') {
		FILE *f = fopen(path, "r");

		ck_assert_ptr_nonnull(f);
		ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
		state = strrchr(text, ')')[2];
		fclose(f);
		sched_yield();
	}
}

/* The call is repeated before the next agent has sent the new generation. */
START_TEST(an_early_retry_waits_for_the_new_generation)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclAsyncReduceOp_t h = bf_launch(&b, 1);
	struct launch again = {.b = &b};
	struct fake_op op;
	pthread_t t;

	fake_take(fx_agent);
	fake_generation(fx_agent, 1);
	fake_script(fx_agent, WL_COMM_ATTACH, FAKE_HOLD, 0, NULL);
	fake_hang_up(fx_agent);
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost, "died");
	ck_assert_int_eq(pthread_create(&t, NULL, launch_and_await, &again), 0);
	while (!again.tid)
		sched_yield();
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	await_asleep(again.tid);
	fake_release(fx_agent);
	op = fake_take(fx_agent);
	ck_assert_uint_eq(op.sqe.generation, 1);
	fake_serve(&op, bf_mode(b.placement));
	pthread_join(t, NULL);
	bf_assert_result(&b);
	bf_free(&b);
}
END_TEST

START_TEST(results_that_the_others_know_of_succeed)
{
	enum placement p = (enum placement)_i;
	struct buffers b, other;
	pcclAsyncReduceOp_t h, lost;
	pcclReduceInfo_t info = {0};
	struct fake_op op;

	rs_warm(p);
	b = bf_new(p, BYTES, 1);
	other = bf_new(STAGED_IN_PLACE, BYTES, 2);
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	lost = bf_launch(&other, 2);
	fake_take(fx_agent);
	rs_play_whole(&op, bf_mode(p));
	fake_outcome(fx_agent, op.seq);
	fake_hang_up(fx_agent);
	fx_assert_fails(pcclAwaitAsyncReduce(&lost, NULL), pcclRankConnectionLost, "died");
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, &info));
	ck_assert_uint_eq(info.local_world_size, 2);
	ck_assert_uint_eq(fake_last(fx_agent, WL_COMM_ATTACH).seqs[0], op.seq);
	bf_assert_result(&b);
	bf_assert_untouched(&other);
	bf_free(&b);
	bf_free(&other);
}
END_TEST

/* No thread reads the socket between the beginning of the operation and the agent's death. The
 * death may be in the middle of a request. Other regions are handed over at the same time. */
START_TEST(results_that_were_handed_over_before_the_death_count)
{
	enum placement p = (enum placement)(_i / 4);
	struct buffers b = bf_new(p, BYTES, 1), other = bf_new(p, BYTES, 2);
	pcclAsyncReduceOp_t h = bf_launch(&b, 1), second = bf_launch(&other, 2);
	struct fake_op op = fake_take(fx_agent), part = fake_take(fx_agent);

	fake_begin(&part, bf_mode(p), 3, SEGMENT);
	fake_await_input(&part, part.bytes);
	fake_segment(&part, 0);
	rs_play_whole(&op, bf_mode(p));
	if (_i % 2 == 0)
		fake_outcome(fx_agent, op.seq);
	else
		fake_end(&op, 0, NULL);
	if (_i / 2 % 2 == 0)
		fake_hang_up(fx_agent);
	else
		fake_goodbye(fx_agent, pcclAgentUnavailable, "ending");
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	fx_assert_fails(pcclAwaitAsyncReduce(&second, NULL), pcclRankConnectionLost, "died");
	bf_assert_result(&b);
	bf_assert_untouched(&other);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_MAP), 0);
	bf_free(&b);
	bf_free(&other);
}
END_TEST

/* An operation is given up if its agents crash, but not if they were told to end. */
START_TEST(an_operation_that_kills_agents_is_given_up)
{
	bool crashes = _i == 1;

	for (unsigned i = 0; i < 4; i++) {
		struct buffers b = bf_new(STAGED, BYTES, 1);
		pcclAsyncReduceOp_t h = bf_launch(&b, 1);

		if (!crashes || i < 2) {
			struct fake_op op = fake_take(fx_agent);

			fake_begin(&op, bf_mode(STAGED), 3, SEGMENT);
			if (crashes)
				fake_hang_up(fx_agent);
			else
				fake_goodbye(fx_agent, pcclAgentUnavailable, "ending");
			fake_await_seen(fx_agent, WL_COMM_ATTACH, i + 1);
			fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost,
				"call again");
		} else if (i == 2) {
			fx_assert_fails(
				pcclAwaitAsyncReduce(&h, NULL), pcclInternalError, "died twice");
		} else {
			struct fake_op op = fake_take(fx_agent);

			fake_serve(&op, bf_mode(STAGED));
			fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
		}
		bf_free(&b);
	}
}
END_TEST

static unsigned mappings_of(const char *name)
{
	char line[512];
	unsigned n = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f))
		n += strstr(line, name) != NULL;
	fclose(f);
	return n;
}

/* Regions that were handed over and never taken are unmapped with the communicator. */
START_TEST(results_that_are_never_taken_are_unmapped)
{
	struct buffers b = bf_new(STAGED, BYTES, 1);
	pcclComm_t *c = fx_new_comm();
	pcclReduceDescriptor_t d = bf_descriptor(BYTES, 1);
	pcclAsyncReduceOp_t h;
	unsigned before;

	fx_assert_succeeds(pcclConnect(c));
	before = mappings_of("region");
	for (unsigned i = 0; i < 10; i++) {
		struct fake_op op;

		d.tag = i;
		fx_assert_succeeds(pcclAllReduceAsync(b.send, b.recv, &d, c, &h));
		op = fake_take(fx_agent);
		fake_begin(&op, SHM_RESULT_AREA, 3, SEGMENT);
	}
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	/* mappings of the fake agent count, too */
	ck_assert_uint_ge(mappings_of("region"), before + 10 + 10);
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	ck_assert_uint_le(mappings_of("region"), before + 10 + 10);
	bf_free(&b);
}
END_TEST

/* The other hosts have the result, and this process cannot get it. It must not go on as their
 * peer. */
START_TEST(a_peer_leaves_if_it_cannot_get_a_known_result)
{
	struct buffers b = bf_new(STAGED, BYTES, 1), other = bf_new(STAGED, BYTES, 2);
	struct cc_id before = fake_last(fx_agent, WL_COMM_CONNECT).peer, after;
	pcclAsyncReduceOp_t h = bf_launch(&b, 1), second = bf_launch(&other, 2);
	struct fake_op op = fake_take(fx_agent);

	fake_asked(fx_agent);
	rs_play_whole(&op, SHM_RESULT_AREA);
	if (_i == 0)
		fake_outcome(fx_agent, op.seq);
	else
		fake_end(&op, 0, NULL);
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost, "all other peers");
	bf_assert_untouched(&b);
	ck_assert_int_eq(pcclAwaitAsyncReduce(&second, NULL), pcclRankConnectionLost);
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclUpdateTopologyFailed, "no longer part");
	fake_await_seen(fx_agent, WL_COMM_DESTROY, 1);
	fx_assert_succeeds(pcclConnect(fx_comm));
	after = fake_last(fx_agent, WL_COMM_CONNECT).peer;
	ck_assert(!cc_id_eq(&before, &after));
	rs_serve_next(&b, 1, 0);
	bf_free(&b);
	bf_free(&other);
}
END_TEST

/* The operation stays in doubt over two deaths. */
START_TEST(an_operation_can_stay_in_doubt_over_several_deaths)
{
	struct buffers b;
	pcclAsyncReduceOp_t h;
	struct fake_op op;

	rs_warm(STAGED_IN_PLACE);
	b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	rs_play_whole(&op, SHM_RESULT_AREA);
	fake_outcome(fx_agent, op.seq);
	fake_script(fx_agent, WL_COMM_ATTACH, FAKE_HOLD, 0, NULL);
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	fake_script(fx_agent, WL_COMM_ATTACH, FAKE_ANSWER, 0, NULL);
	fake_hang_up(fx_agent);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	ck_assert_uint_eq(fake_last(fx_agent, WL_COMM_ATTACH).seqs[0], op.seq);
	bf_assert_result(&b);
	bf_free(&b);
}
END_TEST

/* If the master died before it told other peers of a success, these peers may ask for the outcome.
 * So the process sends the successes that it knows to the next agent. Attempts in doubt come
 * first. */
START_TEST(the_next_agent_gets_the_known_successes)
{
	struct buffers b, other, third;
	pcclAsyncReduceOp_t h, unseen, doubt;
	struct fake_op op, ended, whole;
	struct wl_request q;

	for (unsigned i = 0; i < 70; i++)
		rs_warm(STAGED_IN_PLACE);
	b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	other = bf_new(STAGED_IN_PLACE, BYTES, 2);
	third = bf_new(STAGED_IN_PLACE, BYTES, 3);
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	unseen = bf_launch(&other, 2);
	ended = fake_take(fx_agent);
	doubt = bf_launch(&third, 3);
	whole = fake_take(fx_agent);
	fake_serve(&op, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	fake_end(&ended, pcclRankConnectionLost, "lost");
	rs_play_whole(&whole, SHM_RESULT_AREA);
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	q = fake_last(fx_agent, WL_COMM_ATTACH);
	ck_assert_uint_eq(q.n_seqs, WL_SEQS_MAX);
	ck_assert_uint_eq(q.n_succeeded, WL_SEQS_MAX - 1);
	ck_assert_uint_eq(q.seqs[0], whole.seq);
	ck_assert_uint_eq(q.seqs[1], op.seq);
	for (unsigned i = 2; i < WL_SEQS_MAX; i++)
		ck_assert_uint_eq(q.seqs[i], op.seq + 1 - i);
	/* The next agent knows nothing of these operations. They fail as usual. */
	fx_assert_fails(pcclAwaitAsyncReduce(&unseen, NULL), pcclRankConnectionLost, "lost");
	fx_assert_fails(pcclAwaitAsyncReduce(&doubt, NULL), pcclRankConnectionLost, "died");
	bf_assert_result(&b);
	bf_free(&b);
	bf_free(&other);
	bf_free(&third);
}
END_TEST

/* The process also sends a success that the application has not awaited yet, and sends it again
 * after each of several deaths. */
START_TEST(the_next_agent_gets_successes_not_awaited_yet)
{
	struct buffers b;
	pcclAsyncReduceOp_t h;
	struct fake_op op;
	struct wl_request q;

	rs_warm(STAGED_IN_PLACE);
	b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	rs_play_whole(&op, SHM_RESULT_AREA);
	if (_i == 0)
		fake_end(&op, 0, NULL);
	else
		fake_outcome(fx_agent, op.seq);
	for (unsigned i = 1; i <= 2; i++) {
		fake_hang_up(fx_agent);
		fake_await_seen(fx_agent, WL_COMM_ATTACH, i);
		/* When this call returns, the answer to the attach has been processed. */
		fx_assert_succeeds(pcclArePeersPending(fx_comm, &(bool){false}));
		q = fake_last(fx_agent, WL_COMM_ATTACH);
		ck_assert_uint_eq(q.n_seqs, 2);
		ck_assert_uint_eq(q.n_succeeded, i == 1 && _i == 1 ? 1 : 2);
		ck_assert_uint_eq(q.seqs[0], op.seq);
		ck_assert_uint_eq(q.seqs[1], op.seq - 1);
	}
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(&b);
	bf_free(&b);
}
END_TEST

START_TEST(a_detached_communicator_can_be_destroyed)
{
	struct buffers b[PLACEMENTS];

	for (unsigned i = 0; i < PLACEMENTS; i++) {
		struct fake_op op;

		b[i] = bf_new((enum placement)i, BYTES, i);
		rs_warm((enum placement)i);
		bf_launch(&b[i], i);
		op = fake_take(fx_agent);
		rs_play_whole(&op, bf_mode((enum placement)i));
	}
	fake_script(fx_agent, WL_COMM_ATTACH, FAKE_HOLD, 0, NULL);
	fake_hang_up(fx_agent);
	if (_i == 0)
		fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	for (unsigned i = 0; i < PLACEMENTS; i++)
		bf_assert_untouched(&b[i]);
	if (_i == 0) {
		/* The agent made a communicator meanwhile. The shim destroys it. */
		fake_release(fx_agent);
		fake_await_seen(fx_agent, WL_COMM_DESTROY, 1);
	}
	for (unsigned i = 0; i < PLACEMENTS; i++)
		bf_free(&b[i]);
	fx_comm = fx_new_comm();
}
END_TEST

Suite *resume_ops_suite(void)
{
	Suite *s = suite_create("resume_ops");
	TCase *tc = tcase_create("resume_ops");

	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, an_operation_after_a_loss_has_the_new_generation, 0, 2);
	tcase_add_test(tc, an_early_retry_waits_for_the_new_generation);
	tcase_add_loop_test(tc, results_that_the_others_know_of_succeed, 0, PLACEMENTS);
	tcase_add_loop_test(
		tc, results_that_were_handed_over_before_the_death_count, 0, 4 * PLACEMENTS);
	tcase_add_loop_test(tc, an_operation_that_kills_agents_is_given_up, 0, 2);
	tcase_add_test(tc, results_that_are_never_taken_are_unmapped);
	tcase_add_loop_test(tc, a_peer_leaves_if_it_cannot_get_a_known_result, 0, 2);
	tcase_add_test(tc, an_operation_can_stay_in_doubt_over_several_deaths);
	tcase_add_test(tc, the_next_agent_gets_the_known_successes);
	tcase_add_loop_test(tc, the_next_agent_gets_successes_not_awaited_yet, 0, 2);
	tcase_add_loop_test(tc, a_detached_communicator_can_be_destroyed, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
