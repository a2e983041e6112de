/* SPDX-License-Identifier: MIT
 *
 * Agents die again and again while several threads reduce over their own communicators. Every
 * operation succeeds in the end, and every failed attempt leaves its buffers as they were.
 */
#include <pthread.h>

#include "tests/shim/resume.h"
#include "tests/shim/suites.h"

enum { THREADS = 4, ROUNDS = 40, DEATHS = 25 };

/* Serves operations, and dies now and then in the middle of one. */
static void *mortal_agent(void *arg)
{
	struct tl_rng rng = tl_rng_new(77);
	unsigned deaths = 0;

	(void)arg;
	for (;;) {
		struct fake_op op = fake_take(fx_agent);
		enum shm_result_mode mode = op.out ? SHM_RESULT_UNDO : SHM_RESULT_AREA;

		if (op.sqe.tag == UINT64_MAX) {
			fake_serve(&op, mode);
			return NULL;
		}
		if (deaths == DEATHS || tl_range(&rng, 0, 5) > 0) {
			fake_serve(&op, mode);
			continue;
		}
		deaths++;
		fake_begin(&op, mode, 3, SEGMENT);
		if (tl_range(&rng, 0, 1)) {
			fake_await_input(&op, op.bytes);
			for (uint32_t i = 0; i < op.plan.n_segs; i += 2)
				fake_segment(&op, i);
		}
		fake_hang_up(fx_agent);
	}
}

static void *persistent_peer(void *arg)
{
	unsigned salt = (unsigned)(uintptr_t)arg;
	pcclComm_t *c = fx_new_comm();
	bool flag;

	fx_assert_succeeds(pcclConnect(c));
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct buffers b =
			bf_new((enum placement)((i + salt) % PLACEMENTS), 20000 + 997 * i, i);
		pcclReduceDescriptor_t d = bf_descriptor(b.bytes, i);
		pcclResult_t r;

		while ((r = pcclAllReduce(b.send, b.recv, &d, c, NULL)) != pcclSuccess) {
			bf_assert_untouched(&b);
			/* Agents die at random here, so the peer tries again even after the error
			 * about two deaths. */
			ck_assert_msg((r == pcclRankConnectionLost &&
					      !strstr(pcclGetLastError(), "all other peers")) ||
					      (r == pcclInternalError &&
						      strstr(pcclGetLastError(), "died twice")),
				"%d: %s", (int)r, pcclGetLastError());
		}
		bf_assert_result(&b);
		bf_free(&b);
		if (i % 5 == salt) {
			fx_assert_succeeds(pcclUpdateTopology(c));
			fx_assert_succeeds(pcclArePeersPending(c, &flag));
		}
	}
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	return NULL;
}

START_TEST(threads_survive_many_deaths_of_agents)
{
	struct buffers b = bf_new(STAGED, 100, 1);
	pcclReduceDescriptor_t d = bf_descriptor(100, UINT64_MAX);
	pthread_t agent, t[THREADS];

	ck_assert_int_eq(pthread_create(&agent, NULL, mortal_agent, NULL), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, persistent_peer, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	fx_assert_succeeds(pcclAllReduce(b.send, b.recv, &d, fx_comm, NULL));
	pthread_join(agent, NULL);
	bf_free(&b);
}
END_TEST

Suite *resume_storm_suite(void)
{
	Suite *s = suite_create("resume_storm");
	TCase *tc = tcase_create("resume_storm");

	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, threads_survive_many_deaths_of_agents);
	suite_add_tcase(s, tc);
	return s;
}
