/* SPDX-License-Identifier: MIT
 *
 * The master's core without memory: each failed allocation of a step reaches the handler.
 */
#include "tests/exhaust.h"
#include "tests/master/suites.h"
#include "tests/master/trio_sync.h"

void __real_ccm_step(
	struct ccm *m, const struct ccm_event *ev, uint64_t now_ns, struct ccm_actions *out);
void __wrap_ccm_step(
	struct ccm *m, const struct ccm_event *ev, uint64_t now_ns, struct ccm_actions *out);

void __wrap_ccm_step(
	struct ccm *m, const struct ccm_event *ev, uint64_t now_ns, struct ccm_actions *out)
{
	exhaust_core(true);
	__real_ccm_step(m, ev, now_ns, out);
	exhaust_core(false);
}

/* A synchronization, an all-reduce, an admission, a disconnect, and a takeover by a new master. */
static void scenario(void)
{
	done_equal(0);
	vote_all(1);
	report_all(seq_now());
	ck_assert_uint_eq(fk_status(&f).ops_done, 2);
	(void)fk_join(fk_host(&f, "d", "10.0.0.4"), 1);
	topo_all();
	ck_assert_uint_eq(fk_status(&f).accepted, 4);
	fk_cut(c, "broken");
	ck_assert_uint_eq(fk_status(&f).disconnected, 1);
	fk_new_master(&f, NULL);
	(void)fk_reconnect(a);
	ck_assert(fk_status(&f).recovering);
}

START_TEST(exhausted_memory_in_a_step_reaches_the_handler)
{
	ck_assert_int_gt(exhaust(scenario), 50);
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
