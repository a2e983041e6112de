/* SPDX-License-Identifier: MIT
 *
 * The differences that a job reports for each tensor, during the job and after its failure.
 */
#include <string.h>

#include "proto/wire_state.h"
#include "tests/state/host.h"
#include "tests/state/suites.h"

#define BYTES ((uint64_t)50000) /* size of each of two tensors: one command and one leaf */

static struct ste_source src[1];
static struct shape s;
static struct net n;
static struct member *to; /* its process carries out no commands at first */

static void setup(void)
{
	shape_init(&s, 2, 5);
	s.bytes[0] = s.bytes[1] = BYTES;
	net_newcomer(&n, &s, 1, REGISTERED, OWN, src);
	to = &n.h[0].m[0];
	atomic_store(&to->deaf, true);
	net_start(&n, &s, src, 1);
}

static void teardown(void)
{
	net_end(&n, &s);
}

static void until_commanded(void)
{
	struct ste_event ev;

	while (member_commands(to) < 2)
		ck_assert_msg(!net_event(&n, 0, &ev, 5), "%s", ev.text);
}

static void until_got(uint64_t bytes)
{
	struct ste_event ev;

	while (host_view(&n.h[0], 0).rx_bytes < bytes)
		ck_assert_msg(!net_event(&n, 0, &ev, 5), "%s", ev.text);
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, bytes);
}

/* Ends the only host that has the elected contents. */
static void lose_source(void)
{
	struct ste_event ev;

	ste_free(n.h[1].e);
	n.h[1].e = NULL;
	ck_assert(net_event(&n, 0, &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, STE_FAILED);
}

/* Checks that both tensors differ and that `done` bytes were written. Returns how many tensors are
 * complete. */
static unsigned expect_done(uint64_t done)
{
	uint64_t sum = 0;
	struct ste_diff d;
	unsigned whole = 0;

	for (uint32_t t = 0; t < 2; t++) {
		ck_assert(ste_next_diff(n.h[0].e, SEQ, 0, t, &d));
		ck_assert_uint_eq(d.tensor, t);
		ck_assert(d.leaves == 1 && d.of == 1 && d.bytes == BYTES);
		ck_assert(d.done == 0 || memcmp(to->data[t], n.h[1].m[0].data[t], BYTES) == 0);
		sum += d.done;
		whole += d.done == BYTES;
	}
	ck_assert(!ste_next_diff(n.h[0].e, SEQ, 0, 2, &d));
	ck_assert_uint_eq(sum, done);
	return whole;
}

/* Lets the process carry out one of its two commands. */
static void get_one(void)
{
	until_commanded();
	ck_assert_uint_eq(expect_done(0), 0);
	atomic_store(&to->limit, 1);
	atomic_store(&to->deaf, false);
	until_got(BYTES);
}

START_TEST(report_keeps_tensor_copied_before_the_failure)
{
	get_one();
	ck_assert_uint_eq(expect_done(BYTES), 1);
	lose_source();
	net_cancel(&n, 0);
	ck_assert_uint_eq(expect_done(BYTES), 1);
}
END_TEST

/* The process carries out its commands after the failure of the job. */
START_TEST(report_counts_tensors_written_after_the_failure)
{
	until_commanded();
	lose_source();
	ck_assert_uint_eq(expect_done(0), 0);
	atomic_store(&to->deaf, false);
	until_got(2 * BYTES);
	net_cancel(&n, 0);
	ck_assert_uint_eq(expect_done(2 * BYTES), 2);
}
END_TEST

/* The process has written the tensors, but the engine's thread has not yet read the
 * acknowledgements when the job is cancelled. */
START_TEST(report_counts_tensors_written_before_the_cancel)
{
	struct shm_state_commands *c = (void *)(to->map + SHM_STATE_CMD_OFF);
	struct shm_state_acks *a = (void *)(to->map + SHM_STATE_ACK_OFF);

	until_commanded();
	for (uint32_t i = 0; i < 2; i++) {
		const struct shm_state_command *v = &c->v[i];

		memcpy(to->data[v->tensor] + v->off,
			to->map + to->state.window_off + (size_t)v->slot * SHM_STATE_SLOT, v->len);
		atomic_store(&a->v[i], v->slot);
	}
	atomic_store(&a->tail, 2); /* without ringing the doorbell */
	net_cancel(&n, 0);
	ck_assert_uint_eq(expect_done(2 * BYTES), 2);
}
END_TEST

Suite *diff_suite(void)
{
	Suite *st = suite_create("diff");
	TCase *tc = tcase_create("diff");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, report_keeps_tensor_copied_before_the_failure);
	tcase_add_test(tc, report_counts_tensors_written_after_the_failure);
	tcase_add_test(tc, report_counts_tensors_written_before_the_cancel);
	suite_add_tcase(st, tc);
	return st;
}
