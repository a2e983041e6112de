/* SPDX-License-Identifier: MIT
 *
 * Another all-reduce algorithm, added as HACKING.md describes. The agent uses it for the operations
 * that it supports, and for no other operations. All tests of this program use the table with this
 * algorithm instead of the agent's table.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pcclagentd/ops/ops_internal.h"
#include "proto/wire_codes.h"
#include "tests/agentio/fake_engine.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

#define COUNT ((uint64_t)400000) /* too many for the eager path */

/* ---- the algorithm: it reduces on one host, without copies, all at once ---- */

static _Atomic bool enabled;
static _Atomic unsigned started, released;

static bool at_once_can(const struct eng_xfer_spec *spec)
{
	for (uint32_t i = 0; i < spec->n_members; i++)
		if (spec->members[i].staged)
			return false;
	return enabled && spec->plan.hosts == 1;
}

static int at_once_start(struct eng_work *w, const struct eng_xfer_spec *spec)
{
	const void *srcs[ENG_MEMBERS_MAX];

	w->own = malloc(1);
	if (!w->own)
		return CC_ERR_NOMEM;
	started++;
	for (uint32_t i = 0; i < spec->n_members; i++)
		srcs[i] = spec->members[i].in;
	krn_reduce(spec->dtype, spec->op, spec->area, srcs, spec->n_members, spec->plan.count);
	for (uint32_t i = 0; i < spec->plan.n_segs; i++)
		atomic_store(&spec->flags[i], 1);
	op_xfer_done(w->owner, 0, 0);
	return 0;
}

static bool at_once_progress(const struct eng_work *w, struct eng_progress *ret)
{
	(void)w;
	(void)ret;
	return false;
}

static bool at_once_cancel(struct eng_work *w)
{
	(void)w;
	return false;
}

static void at_once_release(struct eng_work *w)
{
	free(w->own);
	released++;
}

static const struct eng_algo at_once = {
	.name = "at once",
	.outputs = ENG_OUTPUT(SHM_RESULT_AREA),
	.can = at_once_can,
	.start = at_once_start,
	.progress = at_once_progress,
	.cancel = at_once_cancel,
	.release = at_once_release,
};

const struct eng_algo *const op_algos[] = {&at_once, &op_eager, &eng_on_host, &eng_routed, NULL};

/* ---- the tests ---- */

static void fill(struct mem *mem, float first)
{
	float *v = (float *)(void *)mem->map;

	for (uint64_t i = 0; i < COUNT; i++)
		v[i] = first + (float)(i % 1000);
}

static void setup(void)
{
	pair_begin_with(NULL, COUNT * 4);
	fill(&ma, 1);
	fill(&mb, 2);
}

static void teardown(void)
{
	fx_check_alive(&f);
	pair_end();
}

static void all_reduce(uint64_t tag)
{
	struct shm_sqe ea = queue_sum(0, tag, COUNT, &ma), eb = queue_sum(0, tag, COUNT, &mb);

	queue_push(&qa, &ea);
	queue_push(&qb, &eb);
	master_finish_op(&m, master_start_op(&m, tag));
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
	ck_assert_uint_eq(queue_await(&qb, 0), WIRE_SUCCESS);
}

static void free_slots(void)
{
	queue_free_slot(&qa, 0);
	queue_free_slot(&qb, 0);
}

static void expect_sum(void)
{
	struct wl_request q = {.type = WL_REGION_MAP,
		.comm = qa.comm,
		.region = queue_slot(&qa, 0)->result_region};
	struct wl_reply r;
	const float *sum;
	int fd;

	client_call(&a, &q, &r, &fd, 1);
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
	sum = mmap(NULL, COUNT * 4, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(sum, MAP_FAILED);
	close(fd);
	for (uint64_t i = 0; i < COUNT; i++)
		ck_assert_float_eq(sum[i], (float)(3 + 2 * (i % 1000)));
	munmap((void *)(uintptr_t)sum, COUNT * 4);
}

START_TEST(an_added_algorithm_does_the_operations_that_it_can)
{
	struct eng_xfer_spec spec;

	enabled = true;
	all_reduce(1);
	expect_sum();
	ck_assert_uint_eq(started, 1);
	ck_assert_uint_eq(released, 1);
	ck_assert(!fake_last_spec(&spec));
	free_slots();

	enabled = false;
	all_reduce(2);
	ck_assert_uint_eq(started, 1);
	ck_assert(fake_last_spec(&spec));
	ck_assert_uint_eq(spec.tag, 2);
	free_slots();
}
END_TEST

Suite *algo_suite(void)
{
	Suite *s = suite_create("algo");
	TCase *tc = tcase_create("algo");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, an_added_algorithm_does_the_operations_that_it_can);
	suite_add_tcase(s, tc);
	return s;
}
