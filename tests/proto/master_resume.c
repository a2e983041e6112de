/* SPDX-License-Identifier: MIT
 *
 * Tests every limit of the resume message, and of queries for outcomes.
 */
#include "tests/proto/master_check.h"
#include "tests/proto/suites.h"

static struct tl_rng rng;
static struct wm_msg m;

static void fresh(enum wm_type type)
{
	wire_master_clear(&m);
	sample_master(&rng, type, &m);
}

/* Makes a resume message without contents. */
static struct wm_resume *empty_resume(void)
{
	wire_master_clear(&m);
	m.type = WM_RESUME;
	return &m.u.resume;
}

static void setup(void)
{
	rng = tl_rng_new(5);
}

static void teardown(void)
{
	wire_master_clear(&m);
}

START_TEST(resume_without_fields_is_refused)
{
	/* A resume without any field, and a resume with an empty view. */
	static const uint8_t none[] = {0x52, 0}, world[] = {0x52, 2, 0x2a, 0};
	const char *why = NULL;
	struct wm_msg got;

	ck_assert_int_eq(wire_master_decode(none, sizeof none, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, "resume.view: must be there");
	ck_assert_int_eq(wire_master_decode(world, sizeof world, &got, &why), 0);
	ck_assert_uint_eq(got.u.resume.n_positions, 0);
	ck_assert_uint_eq(got.u.resume.n_outcomes, 0);
	wire_master_clear(&got);
	(void)empty_resume();
	accepted(&m);
}
END_TEST

START_TEST(limits_of_ring_positions_are_enforced)
{
	struct wm_resume *p = empty_resume();

	p->positions = calloc(WM_RINGS_MAX + 1, sizeof *p->positions);
	ck_assert_ptr_nonnull(p->positions);
	for (uint32_t i = 0; i <= WM_RINGS_MAX; i++)
		p->positions[i] = (struct wm_ring_position){.group = i, .hosts = 1};
	p->n_positions = WM_RINGS_MAX + 1;
	refused(&m, "resume.positions");
	p->n_positions = WM_RINGS_MAX;
	accepted(&m);
	p->positions[WM_RINGS_MAX - 1].group = 0;
	refused(&m, "resume.positions");
	p->n_positions = 2;
	p->positions[1].hosts = 0;
	refused(&m, "resume.positions.hosts");
	p->positions[1].hosts = WM_HOSTS_MAX + 1;
	refused(&m, "resume.positions.hosts");
	p->positions[1].hosts = p->positions[1].pos = WM_HOSTS_MAX;
	refused(&m, "resume.positions.pos");
	p->positions[1].pos--;
	accepted(&m);
}
END_TEST

START_TEST(limits_of_plans_in_a_resume_are_enforced)
{
	static const uint16_t order[] = {0, 1, 2, 1, 0, 2};
	struct wm_resume *p = empty_resume();
	struct wm_ring_position *x;

	p->n_positions = 1;
	x = p->positions = calloc(1, sizeof *p->positions);
	ck_assert_ptr_nonnull(x);
	*x = (struct wm_ring_position){.hosts = 3,
		.pos = 1,
		.plan = {.n = 2, .shares = {9, 1}, .n_order = 6, .order = calloc(1, sizeof order)}};
	ck_assert_ptr_nonnull(x->plan.order);
	memcpy(x->plan.order, order, sizeof order);
	accepted(&m);
	x->plan.shares[0] = 0;
	refused(&m, "resume.positions.plan.shares");
	x->plan.shares[0] = 1;
	x->plan.order[0] = 64;
	refused(&m, "resume.positions.plan.order");
	x->plan.order[0] = 1;
	refused(&m, "resume.positions.plan.order");
	x->plan.order[0] = 0;
	accepted(&m);
	x->hosts = 2;
	refused(&m, "resume.positions.plan.order");
}
END_TEST

START_TEST(limits_of_the_view_in_a_resume_are_enforced)
{
	struct wm_resume *p = empty_resume();

	p->view.own = calloc(2, sizeof *p->view.own);
	ck_assert_ptr_nonnull(p->view.own);
	p->view.n = 2;
	refused(&m, "view.own");
	p->view.own[1].group = 1;
	accepted(&m);
}
END_TEST

/* The longest resume fits into a frame, with numbers of all lengths. */
START_TEST(limits_of_outcomes_are_enforced)
{
	struct wm_resume *p = empty_resume();
	uint32_t n = WM_RESUME_OUTCOMES_MAX;

	p->outcomes = calloc(n + 1, sizeof *p->outcomes);
	ck_assert_ptr_nonnull(p->outcomes);
	for (uint32_t i = 0; i <= n; i++)
		p->outcomes[i] = (struct wm_outcome){.seq = 1, .code = i % 256};
	p->n_outcomes = n + 1;
	refused(&m, "resume.outcomes");
	p->n_outcomes = n;
	accepted(&m);
	for (uint32_t i = 0; i < n; i++)
		p->outcomes[i].seq = UINT64_MAX - i;
	accepted(&m);
	p->outcomes[n - 1].code = 256;
	refused(&m, "outcomes.codes");
	p->outcomes[n - 1] = (struct wm_outcome){.seq = 0, .code = 1};
	refused(&m, "outcomes.seqs");
}
END_TEST

/* The message has different numbers of codes and seqs. The encoder would not write it. */
START_TEST(outcomes_need_one_code_for_each_seq)
{
	/* A resume with a view, and with outcomes of two seqs and one code. */
	static const uint8_t resume[] = {0x52, 11, 0x2a, 0, 0x3a, 7, 0x0a, 2, 5, 6, 0x12, 1, 8};
	const char *why = NULL;
	struct wm_msg got;

	ck_assert_int_eq(wire_master_decode(resume, sizeof resume, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, "outcomes.codes: must be one for each of seqs");
}
END_TEST

START_TEST(limits_of_op_query_are_enforced)
{
	struct wm_op_query *q = &m.u.op_query;
	const char *why = NULL;
	struct wm_msg got;
	uint8_t raw[128] = {0x5a, 18 + 2 + WM_OUTCOMES_MAX + 1, 0x0a, 16};

	fresh(WM_OP_QUERY);
	q->peer = (struct cc_id){{0}};
	refused(&m, "op_query.peer");
	fresh(WM_OP_QUERY);
	q->seqs[q->n - 1] = 0;
	refused(&m, "op_query.seqs");
	q->n = 0;
	refused(&m, "op_query.seqs");
	fresh(WM_OP_QUERY);
	q->n = WM_OUTCOMES_MAX;
	for (uint32_t i = 0; i < WM_OUTCOMES_MAX; i++)
		q->seqs[i] = UINT64_MAX;
	q->n_succeeded = q->n;
	accepted(&m);
	q->n_succeeded++;
	refused(&m, "op_query.succeeded");
	memset(raw + 4, 1, 16);
	raw[20] = 0x12;
	raw[21] = WM_OUTCOMES_MAX + 1;
	memset(raw + 22, 1, WM_OUTCOMES_MAX + 1);
	ck_assert_int_eq(
		wire_master_decode(raw, 22 + WM_OUTCOMES_MAX + 1, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, "op_query.seqs: must be 1 to 64");
	raw[1]--;
	raw[21]--;
	ck_assert_int_eq(wire_master_decode(raw, 22 + WM_OUTCOMES_MAX, &got, &why), 0);
	ck_assert_uint_eq(got.u.op_query.n, WM_OUTCOMES_MAX);
}
END_TEST

START_TEST(limits_of_op_outcomes_are_enforced)
{
	struct wm_op_outcomes *o = &m.u.op_outcomes;
	const uint8_t n = WM_OUTCOMES_MAX + 1;
	const char *why = NULL;
	struct wm_msg got;
	/* op_outcomes of 156 bytes, with a peer and with outcomes of 134 bytes, which have 65 seqs
	 * and codes. */
	uint8_t raw[200] = {0xd2, 0x02, 0x9b, 0x01, 0x0a, 16};

	fresh(WM_OP_OUTCOMES);
	o->peer = (struct cc_id){{0}};
	refused(&m, "op_outcomes.peer");
	fresh(WM_OP_OUTCOMES);
	o->v[o->n - 1].seq = 0;
	refused(&m, "outcomes.seqs");
	o->v[o->n - 1] = (struct wm_outcome){.seq = 1, .code = 256};
	refused(&m, "outcomes.codes");
	o->v[o->n - 1].code = 255;
	accepted(&m);
	o->n = 0;
	refused(&m, "op_outcomes.outcomes");
	memset(raw + 6, 1, 16);
	raw[22] = 0x12;
	raw[23] = 0x86;
	raw[24] = 0x01;
	raw[25] = 0x0a;
	raw[26] = n;
	memset(raw + 27, 1, n);
	raw[27 + n] = 0x12;
	raw[28 + n] = n;
	memset(raw + 29 + n, 1, n);
	ck_assert_int_eq(wire_master_decode(raw, 29 + 2 * (size_t)n, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, "op_outcomes.outcomes: must be 1 to 64");
}
END_TEST

Suite *master_resume_suite(void)
{
	Suite *s = suite_create("master_resume");
	TCase *tc = tcase_create("limits");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, resume_without_fields_is_refused);
	tcase_add_test(tc, limits_of_ring_positions_are_enforced);
	tcase_add_test(tc, limits_of_plans_in_a_resume_are_enforced);
	tcase_add_test(tc, limits_of_the_view_in_a_resume_are_enforced);
	tcase_add_test(tc, limits_of_outcomes_are_enforced);
	tcase_add_test(tc, outcomes_need_one_code_for_each_seq);
	tcase_add_test(tc, limits_of_op_query_are_enforced);
	tcase_add_test(tc, limits_of_op_outcomes_are_enforced);
	suite_add_tcase(s, tc);
	return s;
}
