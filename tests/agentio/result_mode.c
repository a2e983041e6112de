/* SPDX-License-Identifier: MIT
 *
 * The memory of an all-reduce: the mode that the agent chooses and publishes to the shims, and the
 * memory that it gives to its engine. There are two set-ups: two processes on a ring of this host
 * alone, and one process on a ring of three hosts, of which the test plays the other two.
 */
#include <string.h>
#include <unistd.h>

#include "proto/wire_codes.h"
#include "tests/agentio/fake_engine.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

#define COUNT  ((uint64_t)400000) /* too many for the eager path */
#define BYTES  (COUNT * 4)
#define WINDOW 3u

/* `ma` and `mb` have room for an operand and a result. */
static struct mem staged_a, staged_b; /* room for an operand at offset 64 */
static struct other other;
static int out[2];

static void alloc(struct client *c, struct mem *registered, struct mem *staged)
{
	ck_assert_uint_eq(client_alloc(c, 2 * BYTES, registered), WIRE_SUCCESS);
	ck_assert_uint_eq(client_alloc_use(c, BYTES + 64, WL_REGION_STAGING, staged), WIRE_SUCCESS);
}

static void begin_alone(uint32_t segment_max)
{
	fx_start(&f, NULL);
	master_listen(&m);
	m.segment_max = segment_max;
	master_join_two(&m, &f, &a, &qa, &b, &qb);
	alloc(&a, &ma, &staged_a);
	alloc(&b, &mb, &staged_b);
	fake_set_auto_done(false);
}

static void setup_alone(void)
{
	begin_alone(CC_PLAN_SEGMENT_MAX);
}

static void setup_short_segments(void)
{
	begin_alone(65536);
}

static void teardown_alone(void)
{
	fx_check_alive(&f);
	pair_end();
}

static void setup_ring(void)
{
	pair_begin_ring(NULL, &other, CC_PLAN_SEGMENT_MAX, out);
	alloc(&a, &ma, &staged_a);
	fake_set_auto_done(false);
}

static void teardown_ring(void)
{
	pair_end_ring(&other, out);
}

/* ---- operands ---- */

enum { REGISTERED = 1, OUT = 2, DISPOSABLE = 4 };

static struct shm_sqe operand(
	uint64_t tag, unsigned how, const struct mem *registered, const struct mem *staged)
{
	struct shm_sqe e = queue_sum(0, tag, COUNT, how & REGISTERED ? registered : staged);

	if (!(how & REGISTERED)) {
		e.flags = 0;
		e.in_off = 64;
		e.in_start = 400;
		e.in_second = 4000;
	}
	if (how & OUT) {
		e.flags |= SHM_SQE_OUT_REGISTERED;
		e.out_region = registered->region;
		e.out_off = BYTES;
	}
	if (how & DISPOSABLE)
		e.flags |= SHM_SQE_OUT_DISPOSABLE;
	return e;
}

static struct shm_sqe through_window(uint64_t tag, const struct mem *staged)
{
	struct shm_sqe e = queue_sum(0, tag, COUNT, staged);

	e.flags = 0;
	e.window = WINDOW;
	return e;
}

/* Checks that the engine's memory and the process's mapping are the same memory. */
static void expect_same(const uint8_t *engines, uint8_t *process)
{
	ck_assert_ptr_nonnull(engines);
	process[0] = (uint8_t)~engines[0];
	ck_assert_uint_eq(process[0], engines[0]);
	process[BYTES - 1] = (uint8_t)~engines[BYTES - 1];
	ck_assert_uint_eq(process[BYTES - 1], engines[BYTES - 1]);
}

static uint64_t result_size(struct client *c, const struct queue *q)
{
	struct wl_request ask = {
		.type = WL_REGION_MAP, .comm = q->comm, .region = queue_slot(q, 0)->result_region};
	struct wl_reply r;
	int fd;

	client_call(c, &ask, &r, &fd, 1);
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
	close(fd);
	return r.size;
}

/* Waits until the engine has the transfer, and checks it. */
static struct eng_xfer_spec started(const struct queue *q, uint64_t seq, enum shm_result_mode mode)
{
	struct eng_xfer_spec spec = {.seq = 0};

	while (!fake_last_spec(&spec) || spec.seq != seq)
		fx_stats(&f);
	ck_assert_uint_eq(atomic_load(&queue_slot(q, 0)->mode), mode);
	ck_assert_uint_eq(spec.plan.count, COUNT);
	for (uint32_t i = 0; i < spec.plan.n_segs; i++)
		ck_assert_uint_eq(atomic_load(&spec.flags[i]), 0);
	return spec;
}

static struct eng_xfer_spec start_both(
	const struct shm_sqe *ea, const struct shm_sqe *eb, enum shm_result_mode mode)
{
	struct eng_xfer_spec spec;

	queue_push(&qa, ea);
	queue_push(&qb, eb);
	spec = started(&qa, master_start_op(&m, ea->tag), mode);
	ck_assert_uint_eq(atomic_load(&queue_slot(&qb, 0)->mode), mode);
	ck_assert_uint_eq(spec.n_members, 2);
	return spec;
}

static struct eng_xfer_spec start_one(const struct shm_sqe *e, enum shm_result_mode mode)
{
	struct eng_xfer_spec spec;
	struct wm_msg msg;

	queue_push(&qa, e);
	master_expect(&m, WM_OP_VOTE, &msg);
	wire_master_clear(&msg);
	spec = started(&qa, master_started(&m, e->tag), mode);
	ck_assert_uint_eq(spec.n_members, 1);
	return spec;
}

static void expect_window_refused(void)
{
	struct wm_msg msg;

	master_expect(&m, WM_OP_REPORT, &msg);
	ck_assert(!msg.u.op_report.ok);
	ck_assert_msg(
		strstr(msg.u.op_report.text, "call again") != NULL, "\"%s\"", msg.u.op_report.text);
	ck_assert(cc_id_is_zero(&msg.u.op_report.suspect));
	msg = (struct wm_msg){.type = WM_OP_ABORT,
		.u.op_abort = {.group = 1,
			.tag = 1,
			.seq = m.seq,
			.code = WIRE_RANK_CONNECTION_LOST,
			.text = "call again"}};
	master_send(&m, &msg);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_RANK_CONNECTION_LOST);
	queue_free_slot(&qa, 0);
}

/* ---- one host, two processes ---- */

/* Results go to the outputs of both members. The result region has only flags. */
START_TEST(results_go_to_outputs_if_all_are_disposable)
{
	struct shm_sqe ea = operand(1, OUT | DISPOSABLE, &ma, &staged_a);
	struct shm_sqe eb = operand(1, OUT | DISPOSABLE | REGISTERED, &mb, &staged_b);
	struct eng_xfer_spec spec = start_both(&ea, &eb, SHM_RESULT_DIRECT);

	expect_same(spec.area, ma.map + BYTES);
	expect_same(spec.members[1].out, mb.map + BYTES);
	ck_assert_ptr_null(spec.members[0].out);
	ck_assert_ptr_null(spec.direct);
	ck_assert_uint_eq(queue_slot(&qa, 0)->flags_off_lo, 0);
	ck_assert_uint_lt(result_size(&a, &qa), BYTES);
	ck_assert_uint_eq(result_size(&b, &qb), result_size(&a, &qa));
	/* The operands stay where they were. */
	expect_same(spec.members[0].in, staged_a.map + 64);
	expect_same(spec.members[1].in, mb.map);
	ck_assert(spec.members[0].staged);
	ck_assert(!spec.members[1].staged);
	ck_assert_uint_eq(spec.members[0].in_start, 400);
	ck_assert_uint_eq(spec.members[0].in_second, 4000);
}
END_TEST

START_TEST(results_go_to_an_area_if_one_output_must_be_kept)
{
	struct shm_sqe ea = operand(1, _i == 0 ? OUT : OUT | DISPOSABLE, &ma, &staged_a);
	struct shm_sqe eb = operand(1, _i == 1 ? OUT : OUT | DISPOSABLE, &mb, &staged_b);
	struct eng_xfer_spec spec;

	if (_i == 2)
		eb = operand(1, 0, &mb, &staged_b);
	spec = start_both(&ea, &eb, SHM_RESULT_AREA);
	ck_assert_ptr_null(spec.members[0].out);
	ck_assert_ptr_null(spec.members[1].out);
	ck_assert_ptr_null(spec.direct);
	ck_assert_uint_ge(queue_slot(&qa, 0)->flags_off_lo, BYTES);
	ck_assert_uint_ge(result_size(&a, &qa), BYTES + spec.plan.n_segs);
}
END_TEST

/* Eager operations run in the agent's loop thread. Readers need the result in one place. */
START_TEST(eager_operations_have_a_result_area)
{
	struct shm_sqe ea = operand(1, OUT | DISPOSABLE, &ma, &staged_a);
	struct shm_sqe eb = operand(1, OUT | DISPOSABLE, &mb, &staged_b);

	ea.count = eb.count = 100;
	ea.in_start = ea.in_second = eb.in_start = eb.in_second = 0;
	memset(ma.map + BYTES, 0x3c, 400);
	memset(staged_a.map + 64, 0, 400);
	memset(staged_b.map + 64, 0, 400);
	queue_push(&qa, &ea);
	queue_push(&qb, &eb);
	atomic_store(&queue_slot(&qa, 0)->in_done[1], 400);
	atomic_store(&queue_slot(&qb, 0)->in_done[1], 400);
	master_finish_op(&m, master_start_op(&m, 1));
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
	ck_assert_uint_eq(queue_await(&qb, 0), WIRE_SUCCESS);
	ck_assert_uint_eq(atomic_load(&queue_slot(&qa, 0)->mode), SHM_RESULT_AREA);
	ck_assert_uint_eq(ma.map[BYTES], 0x3c);
}
END_TEST

/* One process copies through a window, or both do. The result goes to an area or to outputs. */
START_TEST(windows_are_accepted_on_one_host)
{
	struct shm_sqe ea = through_window(1, &staged_a), eb = operand(1, OUT, &mb, &staged_b);
	struct eng_xfer_spec spec;

	if (_i == 1)
		eb = through_window(1, &staged_b);
	if (_i == 2) {
		ea.flags = SHM_SQE_OUT_REGISTERED | SHM_SQE_OUT_DISPOSABLE;
		ea.out_region = ma.region;
		ea.out_off = BYTES;
		eb.flags |= SHM_SQE_OUT_DISPOSABLE;
	}
	spec = start_both(&ea, &eb, _i == 2 ? SHM_RESULT_DIRECT : SHM_RESULT_AREA);
	ck_assert_uint_eq(spec.segment_max, CC_PLAN_SEGMENT_MAX);
	ck_assert_uint_eq(spec.members[0].window, WINDOW);
	ck_assert(spec.members[0].staged);
	ck_assert_uint_eq(spec.members[1].window, _i == 1 ? WINDOW : 0);
}
END_TEST

/* All places of a window have the length of the longest segments. */
START_TEST(windows_are_refused_for_short_segments)
{
	struct shm_sqe ea = through_window(1, &staged_a), eb = operand(1, 0, &mb, &staged_b);

	queue_push(&qa, &ea);
	queue_push(&qb, &eb);
	master_start_op(&m, 1);
	expect_window_refused();
}
END_TEST

/* All callers get the code and the name of the agent that has no memory. */
START_TEST(an_engine_without_memory_fails_the_operation)
{
	struct shm_sqe ea = operand(1, 0, &ma, &staged_a), eb = operand(1, 0, &mb, &staged_b);
	struct wm_msg msg;

	fake_set_exhausted(true);
	queue_push(&qa, &ea);
	queue_push(&qb, &eb);
	master_start_op(&m, 1);
	master_expect(&m, WM_OP_REPORT, &msg);
	ck_assert(!msg.u.op_report.ok);
	ck_assert_uint_eq(msg.u.op_report.code, WIRE_OUT_OF_MEMORY);
	ck_assert_msg(strstr(msg.u.op_report.text, "(pid ") != NULL, "%s", msg.u.op_report.text);
	wire_master_clear(&msg);
}
END_TEST

/* ---- one process, several hosts ---- */

START_TEST(a_result_replaces_a_staged_operand)
{
	struct shm_sqe e = operand(1, _i == 0 ? 0 : OUT, &ma, &staged_a);
	struct eng_xfer_spec spec = start_one(&e, SHM_RESULT_STAGED);

	expect_same(spec.area, staged_a.map + 64);
	ck_assert_ptr_eq(spec.area, spec.members[0].in);
	ck_assert_ptr_null(spec.direct);
	ck_assert_ptr_null(spec.members[0].out);
	ck_assert(spec.members[0].staged);
	ck_assert_uint_eq(queue_slot(&qa, 0)->flags_off_lo, 0);
	ck_assert_uint_lt(result_size(&a, &qa), BYTES);
}
END_TEST

/* The contents of registered memory must be kept. */
START_TEST(a_result_does_not_replace_a_registered_operand)
{
	struct shm_sqe e = operand(1, REGISTERED, &ma, &staged_a);
	struct eng_xfer_spec spec = start_one(&e, SHM_RESULT_AREA);

	ck_assert_ptr_ne(spec.area, spec.members[0].in);
	expect_same(spec.members[0].in, ma.map);
	ck_assert_uint_ge(result_size(&a, &qa), BYTES + spec.plan.n_segs);
}
END_TEST

START_TEST(a_result_goes_to_a_disposable_output)
{
	struct shm_sqe e =
		operand(1, (_i == 0 ? REGISTERED : 0) | OUT | DISPOSABLE, &ma, &staged_a);
	struct eng_xfer_spec spec = start_one(&e, SHM_RESULT_DIRECT);

	expect_same(spec.area, ma.map + BYTES);
	ck_assert_ptr_null(spec.direct);
	ck_assert_ptr_null(spec.members[0].out);
	expect_same(spec.members[0].in, _i == 0 ? ma.map : staged_a.map + 64);
}
END_TEST

/* The process submits an operand that goes through a window, as if the ring had only this host. The
 * agent refuses this call. The same call succeeds without a window. */
START_TEST(windows_are_refused_between_hosts)
{
	struct shm_sqe e = through_window(1, &staged_a);
	struct wm_msg msg;

	queue_push(&qa, &e);
	master_expect(&m, WM_OP_VOTE, &msg);
	wire_master_clear(&msg);
	master_started(&m, 1);
	expect_window_refused();
	ck_assert_uint_eq(atomic_load(&queue_slot(&qa, 0)->mode), SHM_RESULT_NONE);
	fake_set_auto_done(true);
	e = operand(1, 0, &ma, &staged_a);
	start_one(&e, SHM_RESULT_STAGED);
	master_finish_op(&m, m.seq);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
}
END_TEST

Suite *result_mode_suite(void)
{
	Suite *s = suite_create("result_mode");
	TCase *t = tcase_create("one host"), *cut = tcase_create("short segments"),
	      *ring = tcase_create("ring");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup_alone, teardown_alone);
	tcase_add_test(t, results_go_to_outputs_if_all_are_disposable);
	tcase_add_loop_test(t, results_go_to_an_area_if_one_output_must_be_kept, 0, 3);
	tcase_add_test(t, eager_operations_have_a_result_area);
	tcase_add_loop_test(t, windows_are_accepted_on_one_host, 0, 3);
	tcase_add_test(t, an_engine_without_memory_fails_the_operation);
	suite_add_tcase(s, t);
	tcase_set_timeout(cut, 60);
	tcase_add_checked_fixture(cut, setup_short_segments, teardown_alone);
	tcase_add_test(cut, windows_are_refused_for_short_segments);
	suite_add_tcase(s, cut);
	tcase_set_timeout(ring, 60);
	tcase_add_checked_fixture(ring, setup_ring, teardown_ring);
	tcase_add_loop_test(ring, a_result_replaces_a_staged_operand, 0, 2);
	tcase_add_test(ring, a_result_does_not_replace_a_registered_operand);
	tcase_add_loop_test(ring, a_result_goes_to_a_disposable_output, 0, 2);
	tcase_add_test(ring, windows_are_refused_between_hosts);
	suite_add_tcase(s, ring);
	return s;
}
