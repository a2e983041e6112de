/* SPDX-License-Identifier: MIT
 *
 * The agent's core without memory: each failed allocation of a step reaches the handler.
 */
#include "tests/agent/fixture.h"
#include "tests/agent/sync.h"
#include "tests/exhaust.h"

static struct fx *f;

void __real_agt_step(
	struct agt *a, const struct agt_event *ev, uint64_t now_ns, struct agt_actions *out);
void __wrap_agt_step(
	struct agt *a, const struct agt_event *ev, uint64_t now_ns, struct agt_actions *out);

void __wrap_agt_step(
	struct agt *a, const struct agt_event *ev, uint64_t now_ns, struct agt_actions *out)
{
	exhaust_core(true);
	__real_agt_step(a, ev, now_ns, out);
	exhaust_core(false);
}

static void setup(void)
{
	f = fx_new();
}

static void teardown(void)
{
	fx_free(f);
}

/* An all-reduce, a synchronization, and the snapshot for the next master. */
static void scenario(void)
{
	uint32_t comms[2];

	fx_group(f, 2, 2, comms);
	fx_submit_all(f, comms, 2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	fx_op_done(f, 1, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	sy_candidate_all(f, comms, 2, 7, 1);
	sy_start(f, 2, 7, "1H2R");
	sy_done(f, 2);
	fx_orphan(f);
	fx_resume(f);
}

START_TEST(exhausted_memory_in_a_step_reaches_the_handler)
{
	ck_assert_int_gt(exhaust(scenario), 30);
}
END_TEST

Suite *must_suite(void)
{
	Suite *s = suite_create("must");
	TCase *tc = tcase_create("must");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, exhausted_memory_in_a_step_reaches_the_handler);
	suite_add_tcase(s, tc);
	return s;
}
