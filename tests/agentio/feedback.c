/* SPDX-License-Identifier: MIT
 *
 * Error feedback: which residual the agent gives to the engine, when the agent drops a residual,
 * and how residuals count as memory. One process is on a ring of two hosts. The test plays the
 * other host.
 */
#include <stdio.h>
#include <string.h>

#include "proto/wire_codes.h"
#include "proto/wire_quant.h"
#include "tests/agentio/fake_engine.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

#define COUNT  ((uint64_t)400000) /* too many for the eager path */
#define BYTES  (COUNT * 4)        /* of an operand, and of a residual */
#define MEMORY ((uint64_t)8 << 20)

static struct other other;
static int out[2];

static void limit_memory(struct agentd_config *cfg)
{
	cfg->mem_total = cfg->mem_per_user = MEMORY;
}

static void begin(void (*tweak)(struct agentd_config *))
{
	pair_begin_ring(tweak, &other, CC_PLAN_SEGMENT_MAX, out);
	ck_assert_uint_eq(client_alloc(&a, BYTES, &ma), WIRE_SUCCESS);
	fake_set_auto_done(true);
}

static void setup(void)
{
	begin(NULL);
}

static void setup_limited(void)
{
	begin(limit_memory);
}

static bool uses(const struct agentd_stats *s, uint64_t bytes)
{
	return s->mem_used == bytes;
}

/* The agent may use up to 1 KiB more for its tables. */
static bool uses_about(const struct agentd_stats *s, uint64_t bytes)
{
	return s->mem_used >= bytes && s->mem_used < bytes + 1024;
}

static void teardown(void)
{
	pair_end_ring(&other, out);
}

static struct shm_sqe submission(uint64_t tag)
{
	struct shm_sqe e = queue_sum(0, tag, COUNT, &ma);

	e.quant_algo = WIRE_QUANT_MIN_MAX | WIRE_QUANT_FEEDBACK;
	e.quant_dtype = KRN_U8;
	return e;
}

/* Starts an operation. Returns what the agent gave to the engine. */
static struct eng_xfer_spec start(const struct shm_sqe *e)
{
	struct eng_xfer_spec spec = {.seq = 0};
	struct wm_msg msg;
	uint64_t seq;

	queue_push(&qa, e);
	master_expect(&m, WM_OP_VOTE, &msg);
	ck_assert_uint_eq(msg.u.op_vote.params.quant.algo, e->quant_algo);
	ck_assert_uint_eq(msg.u.op_vote.generation, e->generation);
	wire_master_clear(&msg);
	seq = master_started(&m, e->tag);
	while (!fake_last_spec(&spec) || spec.seq != seq)
		fx_stats(&f);
	return spec;
}

static struct eng_xfer_spec run(const struct shm_sqe *e)
{
	struct eng_xfer_spec spec = start(e);

	master_finish_op(&m, spec.seq);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
	queue_free_slot(&qa, 0);
	return spec;
}

static void abort_op(uint64_t tag, uint32_t code, const char *text)
{
	struct wm_msg msg = {.type = WM_OP_ABORT,
		.u.op_abort = {.group = 1, .tag = tag, .seq = m.seq, .code = code}};

	snprintf(msg.u.op_abort.text, sizeof msg.u.op_abort.text, "%s", text);
	master_send(&m, &msg);
}

/* Starts an operation, which the master aborts. */
static struct eng_xfer_spec run_aborted(const struct shm_sqe *e)
{
	struct eng_xfer_spec spec;

	fake_set_auto_done(false);
	spec = start(e);
	abort_op(e->tag, WIRE_OUT_OF_MEMORY, "another host has no memory");
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_OUT_OF_MEMORY);
	queue_free_slot(&qa, 0);
	fake_set_auto_done(true);
	return spec;
}

static void show_view(uint64_t generation, uint32_t world_size)
{
	struct wm_group_view own = {.group = 1, .world_size = world_size, .generation = generation};
	struct wm_msg msg = {.type = WM_VIEW,
		.u.view = {.view_id = 9,
			.global = world_size,
			.groups = 1,
			.largest = world_size,
			.n = 1,
			.own = &own}};
	const struct shm_attr *attr = (const struct shm_attr *)(void *)(qa.map + SHM_ATTR_OFF);

	master_send(&m, &msg);
	while (atomic_load(&attr->view_id) != msg.u.view.view_id)
		fx_stats(&f);
}

/* The loss of each operation is the residual of the next one, unless the operation failed. */
START_TEST(success_replaces_the_residual)
{
	struct shm_sqe e = submission(1), other_tag = submission(2);
	struct eng_xfer_spec first = run(&e), second, third, fourth;

	ck_assert_ptr_nonnull(first.loss);
	ck_assert_ptr_null(first.residual);
	second = run(&e);
	ck_assert_ptr_eq(second.residual, first.loss);
	ck_assert_ptr_ne(second.loss, first.loss);
	ck_assert_ptr_null(run(&other_tag).residual);
	for (int i = 0; i < 2; i++) {
		third = run_aborted(&e);
		ck_assert_ptr_eq(third.residual, second.loss);
		ck_assert_ptr_ne(third.loss, second.loss);
	}
	fourth = run(&e);
	ck_assert_ptr_eq(fourth.residual, second.loss);
	ck_assert_ptr_eq(fourth.loss, first.loss);
}
END_TEST

START_TEST(operation_without_quantization_keeps_the_residual)
{
	struct shm_sqe e = submission(1), plain = submission(1);
	struct eng_xfer_spec first = run(&e);

	plain.quant_algo = plain.quant_dtype = 0;
	ck_assert_ptr_null(run(&plain).loss);
	ck_assert_ptr_eq(run(&e).residual, first.loss);
}
END_TEST

static struct shm_sqe other_shape(int which)
{
	struct shm_sqe e = submission(1);

	switch (which) {
	case 0:
		e.count--;
		break;
	case 1:
		e.op = KRN_AVG;
		break;
	case 2:
		e.quant_dtype = KRN_I16;
		break;
	default:
		e.quant_algo &= ~WIRE_QUANT_FEEDBACK;
	}
	return e;
}

/* A successful operation with another shape under the same tag, or without feedback, drops the
 * residual. A failed operation keeps it. */
START_TEST(another_shape_drops_the_residual)
{
	struct shm_sqe e = submission(1), changed = other_shape(_i);
	struct eng_xfer_spec first = run(&e), spec;

	ck_assert_ptr_null(run_aborted(&changed).residual);
	ck_assert_ptr_eq(run(&e).residual, first.loss);
	spec = run(&changed);
	ck_assert_ptr_null(spec.residual);
	ck_assert(!spec.loss == (_i == 3));
	spec = run(&e);
	ck_assert_ptr_null(spec.residual);
	ck_assert_ptr_eq(run(&e).residual, spec.loss);
}
END_TEST

/* A peer has left (0), or joined (1). */
START_TEST(another_membership_drops_the_residual)
{
	struct shm_sqe e = submission(1);
	struct eng_xfer_spec spec;

	(void)run(&e);
	show_view(_i == 0 ? 3 : 0, _i == 0 ? 3 : 4);
	e.generation = _i == 0 ? 3 : 0;
	spec = run(&e);
	ck_assert_ptr_null(spec.residual);
	ck_assert_ptr_eq(run(&e).residual, spec.loss);
}
END_TEST

/* After a change of the group's members, an operation of any tag frees the residuals from before
 * the change. */
START_TEST(outdated_residuals_are_freed)
{
	struct shm_sqe e = submission(1), plain = submission(2);
	uint64_t without;

	plain.quant_algo = plain.quant_dtype = 0;
	(void)run(&plain);
	e.quant_algo &= ~WIRE_QUANT_FEEDBACK;
	(void)run(&e);
	without = fx_stats(&f).mem_used;
	e.quant_algo |= WIRE_QUANT_FEEDBACK;
	(void)run(&e);
	fx_await(&f, uses_about, without + BYTES);
	(void)run(&e);
	(void)run(&e);
	fx_await(&f, uses_about, without + 2 * BYTES);
	show_view(3, 2);
	plain.generation = 3;
	(void)run(&plain);
	fx_await(&f, uses, without);
}
END_TEST

START_TEST(residuals_end_with_the_communicator)
{
	struct shm_sqe e = submission(1);

	(void)run(&e);
	(void)run(&e);
	/* In case 1, one more operation is under way. */
	fake_set_auto_done(false);
	if (_i == 1)
		(void)start(&e);
	client_close(&a);
	fx_await(&f, uses, 0);
	client_open(&f, &a);
}
END_TEST

/* The memory of all tags together is limited. The sentence names the limit. */
START_TEST(residuals_count_as_memory)
{
	struct shm_sqe e = submission(1), second = submission(2);
	struct wm_msg msg;

	(void)run(&e);
	(void)run(&e);
	queue_push(&qa, &second);
	master_expect(&m, WM_OP_VOTE, &msg);
	wire_master_clear(&msg);
	(void)master_started(&m, 2);
	master_expect(&m, WM_OP_REPORT, &msg);
	ck_assert(!msg.u.op_report.ok);
	ck_assert_uint_eq(msg.u.op_report.code, WIRE_OUT_OF_MEMORY);
	ck_assert_ptr_nonnull(strstr(msg.u.op_report.text, "error feedback: "));
	ck_assert_ptr_nonnull(strstr(msg.u.op_report.text, "mem_per_user"));
	abort_op(2, WIRE_OUT_OF_MEMORY, msg.u.op_report.text);
	wire_master_clear(&msg);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_OUT_OF_MEMORY);
	queue_free_slot(&qa, 0);
	second.quant_algo &= ~WIRE_QUANT_FEEDBACK;
	(void)run(&second);
	/* When the first tag has no residual any more, there is memory for the second residual. */
	e.quant_algo &= ~WIRE_QUANT_FEEDBACK;
	(void)run(&e);
	second.quant_algo |= WIRE_QUANT_FEEDBACK;
	ck_assert_ptr_nonnull(run(&second).loss);
}
END_TEST

START_TEST(other_operators_are_refused)
{
	struct shm_sqe e = submission(1);

	for (e.op = KRN_PROD; e.op < KRN_OP_COUNT; e.op++) {
		queue_push(&qa, &e);
		ck_assert_uint_eq(queue_await(&qa, 0), WIRE_INVALID_ARGUMENT);
		ck_assert_ptr_nonnull(strstr(queue_slot(&qa, 0)->text, "error feedback"));
		queue_free_slot(&qa, 0);
	}
}
END_TEST

Suite *feedback_suite(void)
{
	Suite *s = suite_create("feedback");
	TCase *t = tcase_create("feedback"), *limited = tcase_create("limited memory");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, success_replaces_the_residual);
	tcase_add_test(t, operation_without_quantization_keeps_the_residual);
	tcase_add_loop_test(t, another_shape_drops_the_residual, 0, 4);
	tcase_add_loop_test(t, another_membership_drops_the_residual, 0, 2);
	tcase_add_test(t, outdated_residuals_are_freed);
	tcase_add_loop_test(t, residuals_end_with_the_communicator, 0, 2);
	tcase_add_test(t, other_operators_are_refused);
	suite_add_tcase(s, t);
	tcase_set_timeout(limited, 60);
	tcase_add_checked_fixture(limited, setup_limited, teardown);
	tcase_add_test(limited, residuals_count_as_memory);
	suite_add_tcase(s, limited);
	return s;
}
