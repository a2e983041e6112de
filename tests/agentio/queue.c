/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_shm.h"
#include "kernels/krn.h"
#include "proto/wire_codes.h"
#include "tests/agentio/fake_engine.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

#define COUNT ((uint64_t)400000) /* too many for the eager path */

static uint64_t next_tag = 1;

static void short_lease(struct agentd_config *cfg)
{
	cfg->master_lease_ms = 300;
}

static void small_memory(struct agentd_config *cfg)
{
	/* room for the result of one_op, but not for the larger result that the test asks for
	 * first */
	cfg->mem_total = cfg->mem_per_user = 13200000;
}

static void setup(void)
{
	pair_begin_with(short_lease, COUNT * 4);
}

static void setup_small(void)
{
	pair_begin_with(small_memory, COUNT * 4);
}

static void teardown(void)
{
	fx_check_alive(&f);
	pair_end();
}

static void one_op(uint32_t slot)
{
	uint64_t tag = next_tag++;
	struct shm_sqe ea = queue_sum(slot, tag, COUNT, &ma), eb = queue_sum(slot, tag, COUNT, &mb);

	queue_push(&qa, &ea);
	queue_push(&qb, &eb);
	master_finish_op(&m, master_start_op(&m, tag));
	ck_assert_uint_eq(queue_await(&qa, slot), WIRE_SUCCESS);
	ck_assert_uint_eq(queue_await(&qb, slot), WIRE_SUCCESS);
	ck_assert_uint_eq(queue_slot(&qa, slot)->local_world_size, 2);
}

static bool results_are(const struct agentd_stats *s, uint64_t n)
{
	return s->results == n && s->transfers == 0;
}

START_TEST(an_operation_succeeds)
{
	const struct shm_slot *s = queue_slot(&qa, 5);
	struct eng_xfer_spec spec;

	one_op(5);
	ck_assert(fake_last_spec(&spec));
	ck_assert_uint_eq(spec.n_members, 2);
	ck_assert_uint_eq(spec.plan.count, COUNT);
	ck_assert_uint_eq(spec.plan.hosts, 1);
	ck_assert_ptr_null(spec.direct);
	ck_assert(!spec.members[0].staged);
	ck_assert_uint_eq(atomic_load(&s->mode), SHM_RESULT_AREA);
	ck_assert_uint_eq(s->hosts, 1);
	ck_assert_uint_eq(s->segment_max, 65536);
	ck_assert_uint_eq(s->result_region, queue_slot(&qb, 5)->result_region);
	ck_assert_uint_ge(s->flags_off_lo, COUNT * 4);
	/* Waits until the agent has finished the step in which it completed the slots. */
	fx_stats(&f);
	ck_assert_uint_eq(fake_counts().xfers, 0);
	ck_assert_uint_eq(fake_counts().bells, 2);
}
END_TEST

/* A shim needs the number of the attempt when its agent dies, so the slot has it before there is a
 * result. Each submission carries the generation that the shim knows, and each completion carries
 * the present generation. */
START_TEST(slots_show_attempts_and_generations)
{
	struct shm_sqe ea = queue_sum(2, 30, COUNT, &ma), eb = queue_sum(2, 30, COUNT, &mb);
	struct wm_group_view own = {.group = 1, .world_size = 2, .generation = 3};
	struct wm_msg msg = {.type = WM_VIEW,
		.u.view = {.view_id = 9, .global = 2, .groups = 1, .n = 1, .own = &own}};
	uint64_t seq;

	queue_push(&qa, &ea);
	queue_push(&qb, &eb);
	seq = master_start_op(&m, 30);
	while (atomic_load(&queue_slot(&qa, 2)->mode) == SHM_RESULT_NONE)
		fx_stats(&f);
	ck_assert_uint_eq(queue_slot(&qa, 2)->seq, seq);
	master_finish_op(&m, seq);
	ck_assert_uint_eq(queue_await(&qa, 2), WIRE_SUCCESS);
	ck_assert_uint_eq(queue_await(&qb, 2), WIRE_SUCCESS);
	ck_assert_uint_eq(queue_slot(&qa, 2)->generation, 0);
	master_send(&m, &msg);
	fx_check_alive(&f);
	/* The next operation of the application reports the loss. */
	ea.slot = 3;
	ea.tag = 31;
	queue_push(&qa, &ea);
	if (queue_await(&qa, 3) != WIRE_RANK_CONNECTION_LOST)
		ck_abort_msg("code %u", queue_slot(&qa, 3)->code);
	ck_assert_uint_eq(queue_slot(&qa, 3)->generation, 3);
	ea.slot = eb.slot = 4;
	ea.tag = eb.tag = 32;
	ea.generation = eb.generation = 3;
	queue_push(&qa, &ea);
	queue_push(&qb, &eb);
	seq = master_start_op(&m, 32);
	master_finish_op(&m, seq);
	ck_assert_uint_eq(queue_await(&qa, 4), WIRE_SUCCESS);
	ck_assert_uint_eq(queue_await(&qb, 4), WIRE_SUCCESS);
	ck_assert_uint_eq(queue_slot(&qa, 4)->seq, seq);
	ck_assert_uint_eq(queue_slot(&qa, 4)->generation, 3);
}
END_TEST

START_TEST(a_result_region_is_reused_when_all_have_read_it)
{
	uint64_t first, second;

	one_op(0);
	first = queue_slot(&qa, 0)->result_region;
	one_op(1); /* slot 0 has not been read yet */
	second = queue_slot(&qa, 1)->result_region;
	ck_assert_uint_ne(first, second);
	queue_free_slot(&qa, 0);
	one_op(2); /* only one of the two processes has read slot 0 */
	ck_assert_uint_ne(queue_slot(&qa, 2)->result_region, first);
	queue_free_slot(&qb, 0);
	one_op(3);
	ck_assert_uint_eq(queue_slot(&qa, 3)->result_region, first);
	fx_await(&f, results_are, 3);
	for (uint32_t i = 1; i < 4; i++) {
		queue_free_slot(&qa, i);
		queue_free_slot(&qb, i);
	}
	fx_await(&f, results_are, 0); /* idle regions are freed after a while */
}
END_TEST

START_TEST(only_members_can_map_a_result)
{
	struct wl_request q = {.type = WL_REGION_MAP};
	struct client stranger;
	struct wl_reply r;
	void *map;
	int fd;

	one_op(0);
	q.comm = qa.comm;
	q.region = queue_slot(&qa, 0)->result_region;
	client_call(&a, &q, &r, &fd, 1);
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
	ck_assert_int_eq(cc_shm_map(fd, (size_t)r.size, &map), 0);
	cc_shm_unmap(map, (size_t)r.size);
	close(fd);
	q.comm = qb.comm;
	client_call(&a, &q, &r, NULL, 0);
	ck_assert_uint_eq(r.code, WIRE_INVALID_USAGE);
	client_open(&f, &stranger);
	client_call(&stranger, &q, &r, NULL, 0);
	ck_assert_uint_eq(r.code, WIRE_INVALID_USAGE);
	client_close(&stranger);
}
END_TEST

/* The agent hands the result region to each process unasked, before the process knows of the
 * result. At the next operation, the process has the region already. */
START_TEST(result_regions_are_handed_over_unasked)
{
	struct wl_request q = {.type = WL_REGION_FREE};
	struct wl_reply r;

	one_op(0);
	client_call(&a, &q, &r, NULL, 0);
	client_call(&b, &q, &r, NULL, 0);
	ck_assert_uint_eq(a.n_handed, 1);
	ck_assert_uint_eq(a.handed[0].comm, qa.comm);
	ck_assert_uint_eq(a.handed[0].region, queue_slot(&qa, 0)->result_region);
	ck_assert_uint_eq(b.n_handed, 1);
	ck_assert_uint_eq(b.handed[0].comm, qb.comm);
	ck_assert_uint_eq(b.handed[0].region, a.handed[0].region);
	queue_free_slot(&qa, 0);
	queue_free_slot(&qb, 0);
	one_op(0);
	client_call(&a, &q, &r, NULL, 0);
	ck_assert_uint_eq(a.n_handed, 1);
}
END_TEST

/* A process that has mapped the result ends. Then the region is not used again. */
START_TEST(the_death_of_a_reader_frees_results)
{
	struct wl_request q = {.type = WL_REGION_MAP};
	struct wl_reply r;
	int fd;

	one_op(0);
	q.comm = qb.comm;
	q.region = queue_slot(&qb, 0)->result_region;
	client_call(&b, &q, &r, &fd, 1);
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
	close(fd);
	queue_free_slot(&qa, 0);
	client_close(&b);
	fx_await(&f, results_are, 0);
}
END_TEST

static void expect_refused(const struct shm_sqe *e, const char *field)
{
	queue_push(&qa, e);
	ck_assert_uint_eq(queue_await(&qa, e->slot), WIRE_INVALID_ARGUMENT);
	ck_assert_msg(strstr(queue_slot(&qa, e->slot)->text, field) != NULL, "\"%s\" in \"%s\"",
		field, queue_slot(&qa, e->slot)->text);
	queue_free_slot(&qa, e->slot);
}

START_TEST(forged_operands_are_refused)
{
	const struct shm_sqe good = queue_sum(0, 900, COUNT, &ma);
	struct shm_sqe e = good;
	static const uint64_t offsets[] = {
		1, 97, 4096, 4097, UINT64_MAX, UINT64_MAX - 3999, (uint64_t)1 << 63};

	e.in_region = mb.region; /* a region of another process */
	expect_refused(&e, "in_region");
	e.in_region = 0;
	expect_refused(&e, "in_region");
	e.in_region = UINT64_MAX;
	expect_refused(&e, "in_region");
	for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
		e = good;
		e.count = ma.size / 4;
		e.in_off = offsets[i];
		expect_refused(&e, "in_off");
	}
	e = good;
	e.count = UINT64_MAX;
	expect_refused(&e, "count");
	e.count = ((uint64_t)1 << 62) + 1;
	expect_refused(&e, "count");
	e.count = ma.size / 4 + 1;
	expect_refused(&e, "in_off");
	e = good;
	e.in_second = COUNT * 4 + 1;
	expect_refused(&e, "in_second");
	e = good;
	e.in_start = 4;
	expect_refused(&e, "in_start");
	e = good;
	e.flags |= SHM_SQE_OUT_REGISTERED;
	e.out_region = mb.region;
	expect_refused(&e, "out_region");
	e.out_region = ma.region;
	e.out_off = ma.size;
	expect_refused(&e, "out_off");
	e = good;
	e.flags |= 0x80;
	expect_refused(&e, "flags");
	e = good;
	e.window = SHM_WINDOW_MAX + 1;
	expect_refused(&e, "window");
	e = good;
	e.flags |= SHM_SQE_OUT_DISPOSABLE;
	expect_refused(&e, "flags");
	e = good;
	e.dtype = 12;
	expect_refused(&e, "data type");
	e.dtype = UINT32_MAX;
	expect_refused(&e, "data type");
	one_op(0);
}
END_TEST

static bool sessions_are(const struct agentd_stats *s, uint64_t n)
{
	return s->sessions == n;
}

static void expect_dropped(const char *text)
{
	char got[WL_TEXT_MAX];

	client_await_end(&a, got);
	ck_assert_msg(strstr(got, text) != NULL, "\"%s\" in \"%s\"", text, got);
	fx_await(&f, sessions_are, 1);
}

START_TEST(a_tail_beyond_the_ring_ends_the_session)
{
	queue_set_tail(&qa, SHM_SLOTS + 1);
	expect_dropped("malformed submission ring");
}
END_TEST

START_TEST(a_tail_that_goes_back_ends_the_session)
{
	struct shm_sqe e = queue_sum(0, 7, COUNT, &ma);

	queue_push(&qa, &e);
	queue_set_tail(&qa, 0);
	/* either no entry was new yet, or the ring seems to have 2^32 - 1 new entries */
	queue_set_tail(&qa, UINT32_MAX);
	expect_dropped("malformed submission ring");
}
END_TEST

START_TEST(a_slot_out_of_range_ends_the_session)
{
	struct shm_sqe e = queue_sum(SHM_SLOTS, 7, COUNT, &ma);

	queue_push(&qa, &e);
	expect_dropped("does not exist");
}
END_TEST

START_TEST(a_slot_in_use_ends_the_session)
{
	struct shm_sqe e = queue_sum(3, 7, COUNT, &ma);

	queue_push(&qa, &e);
	e.tag = 8;
	queue_push(&qa, &e);
	expect_dropped("in use");
}
END_TEST

START_TEST(random_entries_are_refused)
{
	srand(99);
	for (int i = 0; i < 2000; i++) {
		struct shm_sqe e;

		for (size_t j = 0; j < sizeof e; j++)
			((uint8_t *)&e)[j] = (uint8_t)rand();
		if (i % 2) {
			e.dtype %= 13;
			e.op %= 6;
			e.flags %= 4;
			e.window = 0;
			e.in_region %= 8;
		}
		e.slot = (uint32_t)i % SHM_SLOTS;
		queue_push(&qa, &e);
		ck_assert_uint_ne(queue_await(&qa, e.slot), WIRE_SUCCESS);
		queue_free_slot(&qa, e.slot);
	}
	one_op(9);
}
END_TEST

START_TEST(a_full_ring_is_read_at_once)
{
	/* All slots are used at once, and the doorbell is rung only for the last one. */
	struct shm_sqe *ring = (struct shm_sqe *)(void *)(qa.map + SHM_SQE_OFF);
	uint32_t from = qa.tail;

	for (uint32_t i = 0; i < SHM_SLOTS; i++) {
		ring[(from + i) % SHM_SLOTS] = queue_sum(i, 100 + i, 0, &ma);
		atomic_store(&queue_slot(&qa, i)->state, SHM_SLOT_PENDING);
	}
	queue_set_tail(&qa, from + SHM_SLOTS);
	for (uint32_t i = 0; i < SHM_SLOTS; i++)
		ck_assert_uint_eq(queue_await(&qa, i), WIRE_INVALID_ARGUMENT);
}
END_TEST

START_TEST(a_region_in_use_cannot_be_freed)
{
	struct shm_sqe ea = queue_sum(0, 50, COUNT, &ma), eb = queue_sum(0, 50, COUNT, &mb);
	struct wm_msg msg;
	uint64_t seq;

	fake_set_auto_done(false);
	queue_push(&qa, &ea);
	queue_push(&qb, &eb);
	seq = master_start_op(&m, 50);
	ck_assert_uint_eq(client_free(&a, ma.region), WIRE_INVALID_USAGE);
	msg = (struct wm_msg){.type = WM_OP_ABORT,
		.u.op_abort = {.group = 1,
			.tag = 50,
			.seq = seq,
			.code = WIRE_RANK_CONNECTION_LOST,
			.text = "a peer died"}};
	master_send(&m, &msg);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_RANK_CONNECTION_LOST);
	ck_assert_str_eq(queue_slot(&qa, 0)->text, "a peer died");
	ck_assert_uint_eq(client_free(&a, ma.region), WIRE_SUCCESS);
	ck_assert_uint_eq(client_free(&a, ma.region), WIRE_INVALID_ARGUMENT);
}
END_TEST

static bool idle(const struct agentd_stats *s, uint64_t arg)
{
	(void)arg;
	return s->transfers == 0 && s->regions == s->results + 1;
}

/* A process dies during an operation. Its memory stays until the engine has released it. */
START_TEST(memory_of_a_dead_member_stays_until_the_abort)
{
	struct shm_sqe ea = queue_sum(0, 60, COUNT, &ma), eb = queue_sum(0, 60, COUNT, &mb);
	struct wm_msg msg;
	uint64_t seq;

	fake_set_auto_done(false);
	queue_push(&qa, &ea);
	queue_push(&qb, &eb);
	seq = master_start_op(&m, 60);
	while (fake_counts().xfers == 0)
		usleep(1000);
	client_close(&b);
	master_expect(&m, WM_LEAVE, &msg);
	ck_assert_uint_eq(msg.u.leave.kind, WM_LEAVE_DIED);
	fx_await(&f, sessions_are, 1);
	ck_assert_uint_eq(fx_stats(&f).regions, 3); /* two operands and one result */
	msg = (struct wm_msg){.type = WM_OP_ABORT,
		.u.op_abort = {
			.group = 1, .tag = 60, .seq = seq, .code = WIRE_RANK_CONNECTION_LOST}};
	master_send(&m, &msg);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_RANK_CONNECTION_LOST);
	fx_await(&f, idle, 0);
}
END_TEST

START_TEST(the_engine_does_not_write_to_one_of_two_outputs)
{
	/* With one local member, the engine may write to the output. With two members it must
	 * not. */
	struct shm_sqe ea = queue_sum(0, 70, COUNT / 2, &ma), eb = queue_sum(0, 70, COUNT / 2, &mb);
	struct eng_xfer_spec spec;

	ea.flags |= SHM_SQE_OUT_REGISTERED;
	ea.out_region = ma.region;
	ea.out_off = COUNT * 2;
	queue_push(&qa, &ea);
	queue_push(&qb, &eb);
	master_finish_op(&m, master_start_op(&m, 70));
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
	ck_assert(fake_last_spec(&spec));
	ck_assert_ptr_null(spec.direct);
	ck_assert_uint_eq(atomic_load(&queue_slot(&qa, 0)->mode), SHM_RESULT_AREA);
}
END_TEST

START_TEST(an_operation_without_memory_for_its_result_fails)
{
	struct shm_sqe ea, eb;
	struct mem big_a, big_b;
	struct wm_msg msg;

	ck_assert_uint_eq(client_alloc(&a, 4000000, &big_a), WIRE_SUCCESS);
	ck_assert_uint_eq(client_alloc(&b, 4000000, &big_b), WIRE_SUCCESS);
	ea = queue_sum(0, 80, 1000000, &big_a);
	eb = queue_sum(0, 80, 1000000, &big_b);
	queue_push(&qa, &ea);
	queue_push(&qb, &eb);
	master_start_op(&m, 80);
	master_expect(&m, WM_OP_REPORT, &msg);
	ck_assert(!msg.u.op_report.ok);
	ck_assert_ptr_nonnull(strstr(msg.u.op_report.text, "mem_"));
	msg = (struct wm_msg){.type = WM_OP_ABORT,
		.u.op_abort = {.group = 1, .tag = 80, .seq = m.seq, .code = WIRE_OUT_OF_MEMORY}};
	master_send(&m, &msg);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_OUT_OF_MEMORY);
	one_op(1);
}
END_TEST

START_TEST(garbage_from_the_master_fails_operations)
{
	static const char junk[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
	struct shm_sqe e = queue_sum(0, 90, COUNT, &ma);

	queue_push(&qa, &e);
	tcp_send(m.fd, junk, sizeof junk - 1);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_MASTER_CONNECTION_FAILED);
	ck_assert_ptr_nonnull(strstr(queue_slot(&qa, 0)->text, "protocol"));
}
END_TEST

START_TEST(operations_fail_when_the_masters_lease_expires)
{
	struct shm_sqe ea = queue_sum(0, 91, COUNT, &ma), eb = queue_sum(0, 91, COUNT, &mb);

	fake_set_auto_done(false);
	queue_push(&qa, &ea);
	queue_push(&qb, &eb);
	master_start_op(&m, 91);
	while (fake_counts().xfers == 0)
		usleep(1000);
	close(m.fd);
	m.fd = -1;
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_MASTER_CONNECTION_FAILED);
	ck_assert_uint_eq(queue_await(&qb, 0), WIRE_MASTER_CONNECTION_FAILED);
	while (fake_counts().engines > 0)
		usleep(1000);
}
END_TEST

Suite *queue_suite(void)
{
	Suite *s = suite_create("queue");
	TCase *t = tcase_create("queue"), *small = tcase_create("small memory");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, an_operation_succeeds);
	tcase_add_test(t, slots_show_attempts_and_generations);
	tcase_add_test(t, a_result_region_is_reused_when_all_have_read_it);
	tcase_add_test(t, only_members_can_map_a_result);
	tcase_add_test(t, result_regions_are_handed_over_unasked);
	tcase_add_test(t, the_death_of_a_reader_frees_results);
	tcase_add_test(t, forged_operands_are_refused);
	tcase_add_test(t, a_tail_beyond_the_ring_ends_the_session);
	tcase_add_test(t, a_tail_that_goes_back_ends_the_session);
	tcase_add_test(t, a_slot_out_of_range_ends_the_session);
	tcase_add_test(t, a_slot_in_use_ends_the_session);
	tcase_add_test(t, random_entries_are_refused);
	tcase_add_test(t, a_full_ring_is_read_at_once);
	tcase_add_test(t, a_region_in_use_cannot_be_freed);
	tcase_add_test(t, memory_of_a_dead_member_stays_until_the_abort);
	tcase_add_test(t, the_engine_does_not_write_to_one_of_two_outputs);
	tcase_add_test(t, garbage_from_the_master_fails_operations);
	tcase_add_test(t, operations_fail_when_the_masters_lease_expires);
	suite_add_tcase(s, t);
	tcase_set_timeout(small, 60);
	tcase_add_checked_fixture(small, setup_small, teardown);
	tcase_add_test(small, an_operation_without_memory_for_its_result_fails);
	suite_add_tcase(s, small);
	return s;
}
