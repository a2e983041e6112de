/* SPDX-License-Identifier: MIT
 *
 * The agent dies with operations under way: those whose result is at hand and known to the others
 * succeed, the others fail with pcclRankConnectionLost and leave the buffers as they were. The next
 * agent is told what this process knows.
 */
#include <pthread.h>
#include <sched.h>

#include "tests/shim/resume.h"
#include "tests/shim/suites.h"

/* Who was told that the operation is lost knows of the loss, whenever that was. */
START_TEST(a_loss_is_known_once)
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

/* The call is repeated before the next agent has said how many losses go with the death. */
START_TEST(a_loss_is_known_to_those_who_hurry)
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

START_TEST(results_of_which_the_others_know)
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

/* Nobody has looked at the socket between the beginning of the operation and the agent's death,
 * which may be in the middle of a request; other regions are on their way as well. */
START_TEST(results_that_were_handed_over)
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

/* An agent that was told to end is not attributed to what it carried out; one that crashes is. */
START_TEST(what_kills_agents_is_given_up)
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

/* What is handed over and never taken goes with the communicator. */
START_TEST(results_that_nobody_takes)
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
	ck_assert_uint_ge(mappings_of("region"), before + 10 + 10); /* the agent's own as well */
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	ck_assert_uint_le(mappings_of("region"), before + 10 + 10);
	bf_free(&b);
}
END_TEST

/* The others have the result, and this process has no way to it: it must not go on as their peer.
 */
START_TEST(results_that_are_lost)
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

/* In doubt over two deaths. */
START_TEST(doubts_outlive_agents)
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

/* Others ask for it, too, if nobody but us was told before the master died: we have to say that we
 * know. What is in doubt comes first. */
START_TEST(successes_are_told)
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
	/* Nobody answers for them; that changes nothing. */
	fx_assert_fails(pcclAwaitAsyncReduce(&unseen, NULL), pcclRankConnectionLost, "lost");
	fx_assert_fails(pcclAwaitAsyncReduce(&doubt, NULL), pcclRankConnectionLost, "died");
	bf_assert_result(&b);
	bf_free(&b);
	bf_free(&other);
	bf_free(&third);
}
END_TEST

/* Also one that the application has not awaited yet, and over several deaths. */
START_TEST(successes_are_told_unawaited)
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
		/* The answer has been taken when this returns. */
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

START_TEST(destroyed_while_detached)
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
		/* What the agent made for it meanwhile is given back. */
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
	tcase_add_loop_test(tc, a_loss_is_known_once, 0, 2);
	tcase_add_test(tc, a_loss_is_known_to_those_who_hurry);
	tcase_add_loop_test(tc, results_of_which_the_others_know, 0, PLACEMENTS);
	tcase_add_loop_test(tc, results_that_were_handed_over, 0, 4 * PLACEMENTS);
	tcase_add_loop_test(tc, what_kills_agents_is_given_up, 0, 2);
	tcase_add_test(tc, results_that_nobody_takes);
	tcase_add_loop_test(tc, results_that_are_lost, 0, 2);
	tcase_add_test(tc, doubts_outlive_agents);
	tcase_add_test(tc, successes_are_told);
	tcase_add_loop_test(tc, successes_are_told_unawaited, 0, 2);
	tcase_add_loop_test(tc, destroyed_while_detached, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
