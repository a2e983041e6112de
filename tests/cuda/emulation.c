/* SPDX-License-Identifier: MIT */
/*
 * The emulation: threads, barriers and shuffles behave as on a GPU, and mistakes of a kernel are
 * faults.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/gpu.h"
#include "tests/cuda/emulate.h"
#include "tests/cuda/suites.h"

#define THREADS 96

static const char *run(void (*kernel)(void **args), unsigned grid, unsigned threads, void *arg)
{
	struct emu_kernel k = {.name = "test", .run = kernel};

	return emu_launch(&k, grid, threads, THREADS * sizeof(uint32_t), (void *[]){arg});
}

/* ---- kernels ---- */

/* Each thread writes its number in the grid, and the position at which it ran. */
struct numbers {
	uint32_t position, order[4 * THREADS], count[4 * THREADS];
};

static void number(void **args)
{
	struct numbers *n = args[0];
	uint32_t me = gpu_block() * THREADS + gpu_thread();

	n->order[n->position++] = me;
	n->count[me] += gpu_blocks();
}

/* Each thread adds up what another warp wrote before a barrier. */
static void exchange(void **args)
{
	GPU_SHARED(uint32_t, shared);
	uint32_t *out = args[0], me = gpu_thread();

	for (uint32_t turn = 0; turn < 5; turn++) {
		shared[me] = turn + me * me;
		gpu_barrier();
		out[me] += shared[(me + 40) % THREADS];
		gpu_barrier();
	}
}

/* As exchange, with a barrier that is missing. */
static void race(void **args)
{
	GPU_SHARED(uint32_t, shared);
	uint32_t *out = args[0], me = gpu_thread();

	for (uint32_t turn = 0; turn < 5; turn++) {
		shared[me] = turn + me * me;
		gpu_barrier();
		out[me] += shared[(me + 40) % THREADS];
	}
}

static void add_up_warp(void **args)
{
	uint64_t sum = 1 + gpu_thread();

	for (uint32_t mask = 1; mask < GPU_WARP; mask *= 2)
		sum += gpu_shuffle_xor(sum, mask);
	((uint64_t *)args[0])[gpu_thread()] = sum;
}

static void half_at_barrier(void **args)
{
	(void)args;
	if (gpu_thread() % 2)
		gpu_barrier();
}

static void half_at_shuffle(void **args)
{
	(void)args;
	if (gpu_thread() % 2)
		(void)gpu_shuffle_xor(1, 1);
}

static void different_shuffles(void **args)
{
	(void)args;
	(void)gpu_shuffle_xor(1, 1 + gpu_thread() % 2);
}

static void misaligned(void **args)
{
	(void)gpu_load_vector((char *)args[0] + 8);
}

static void show_shared(void **args)
{
	if (gpu_thread() == 0)
		memcpy((char *)args[0] + gpu_block() * sizeof(uint64_t), gpu_shared(),
			sizeof(uint64_t));
}

/* What `exchange` computes. */
static uint32_t exchanged(uint32_t thread)
{
	uint32_t from = (thread + 40) % THREADS;

	return 5 * from * from + 10;
}

/* ---- tests ---- */

static void check_numbers(uint64_t order)
{
	struct numbers *n = calloc(1, sizeof(*n));
	bool sorted = true;

	ck_assert_ptr_nonnull(n);
	emu_order(order);
	ck_assert_ptr_null(run(number, 4, THREADS, n));
	for (uint32_t i = 0; i < 4 * THREADS; i++) {
		ck_assert_uint_eq(n->count[i], 4);
		sorted = sorted && n->order[i] == i;
	}
	ck_assert_int_eq(sorted, order == 0);
	free(n);
}

START_TEST(each_thread_runs_once)
{
	check_numbers(0);
	check_numbers(1);
	check_numbers(2);
}
END_TEST

START_TEST(barriers_order_shared_memory)
{
	uint32_t out[THREADS];

	for (uint64_t order = 0; order < 20; order++) {
		emu_order(order);
		memset(out, 0, sizeof(out));
		ck_assert_ptr_null(run(exchange, 1, THREADS, out));
		for (uint32_t i = 0; i < THREADS; i++)
			ck_assert_uint_eq(out[i], exchanged(i));
	}
}
END_TEST

START_TEST(shuffled_orders_find_a_missing_barrier)
{
	uint32_t out[THREADS];
	unsigned wrong = 0;

	for (uint64_t order = 1; order < 20; order++) {
		emu_order(order);
		memset(out, 0, sizeof(out));
		ck_assert_ptr_null(run(race, 1, THREADS, out));
		for (uint32_t i = 0; i < THREADS; i++)
			wrong += out[i] != exchanged(i);
	}
	ck_assert_uint_gt(wrong, 0);
}
END_TEST

START_TEST(shuffles_exchange_values_in_a_warp)
{
	uint64_t out[THREADS];

	for (uint64_t order = 0; order < 5; order++) {
		emu_order(order);
		ck_assert_ptr_null(run(add_up_warp, 1, THREADS, out));
		/* 1 + 2 + ... + 32, and 32 * 32 more for each warp */
		for (uint32_t i = 0; i < THREADS; i++)
			ck_assert_uint_eq(out[i], 528 + 1024 * (i / GPU_WARP));
	}
}
END_TEST

START_TEST(mistakes_of_kernels_are_faults)
{
	_Alignas(16) char bytes[32] = {0};
	const char *wait = "some threads wait at a barrier or shuffle that others never reach";

	for (uint64_t order = 0; order < 3; order++) {
		emu_order(order);
		ck_assert_str_eq(run(half_at_barrier, 1, THREADS, NULL), wait);
		ck_assert_str_eq(run(half_at_shuffle, 1, THREADS, NULL), wait);
		/* A warp that is not full */
		ck_assert_str_eq(run(add_up_warp, 1, 40, (uint64_t[THREADS]){0}), wait);
		ck_assert_str_eq(run(different_shuffles, 1, THREADS, NULL),
			"the threads of a warp call different shuffles");
		ck_assert_str_eq(run(misaligned, 1, THREADS, bytes),
			"a kernel loads a vector from an address that is not a multiple of 16");
	}
	ck_assert_ptr_nonnull(run(number, 0, THREADS, NULL));
	ck_assert_ptr_nonnull(run(number, 1, 1025, NULL));
	/* A launch after a fault works. */
	ck_assert_ptr_null(run(exchange, 1, THREADS, (uint32_t[THREADS]){0}));
}
END_TEST

START_TEST(shared_memory_starts_with_random_bytes)
{
	uint64_t first[2];

	ck_assert_ptr_null(run(show_shared, 2, THREADS, first));
	ck_assert_uint_ne(first[0], 0);
	ck_assert_uint_ne(first[0], first[1]);
}
END_TEST

static void *launch_many(void *out)
{
	for (int i = 0; i < 10; i++) {
		memset(out, 0, THREADS * sizeof(uint32_t));
		if (run(exchange, 1, THREADS, out))
			return NULL;
	}
	return out;
}

START_TEST(threads_of_the_process_launch_at_the_same_time)
{
	uint32_t out[4][THREADS];
	pthread_t threads[4];
	void *result;

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, launch_many, out[i]), 0);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(pthread_join(threads[i], &result), 0);
		ck_assert_ptr_eq(result, out[i]);
		for (uint32_t k = 0; k < THREADS; k++)
			ck_assert_uint_eq(out[i][k], exchanged(k));
	}
}
END_TEST

START_TEST(kernels_are_found_by_name)
{
	ck_assert_ptr_nonnull(emu_find("pccl_gpu_hash_leaves"));
	ck_assert_ptr_null(emu_find("pccl_gpu_hash"));
}
END_TEST

Suite *emulation_suite(void)
{
	Suite *suite = suite_create("emulation");
	TCase *all = tcase_create("all");

	tcase_set_timeout(all, 60);
	tcase_add_test(all, each_thread_runs_once);
	tcase_add_test(all, barriers_order_shared_memory);
	tcase_add_test(all, shuffled_orders_find_a_missing_barrier);
	tcase_add_test(all, shuffles_exchange_values_in_a_warp);
	tcase_add_test(all, mistakes_of_kernels_are_faults);
	tcase_add_test(all, shared_memory_starts_with_random_bytes);
	tcase_add_test(all, threads_of_the_process_launch_at_the_same_time);
	tcase_add_test(all, kernels_are_found_by_name);
	suite_add_tcase(suite, all);
	return suite;
}
