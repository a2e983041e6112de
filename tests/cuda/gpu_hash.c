/* SPDX-License-Identifier: MIT */
/*
 * The kernel for simplehash, emulated: it gives the hashes that the CPU computes.
 *
 * With GPU_HASH_ALL, there are more tensors, and more orders of threads.
 */
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cuda/gpu_hash.h"
#include "kernels/hsh.h"
#include "tests/cuda/emulate.h"
#include "tests/cuda/random.h"
#include "tests/cuda/suites.h"

#define SENTINEL UINT64_C(0x5555555555555555)

static bool all(void)
{
	return getenv("GPU_HASH_ALL");
}

static void *allocate(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	ck_assert_ptr_nonnull(p);
	return p;
}

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* Launches the kernel on a device with few multiprocessors, so that blocks hash several leaves. */
static void launch(struct gpu_hash_args *args, uint64_t *leaves, unsigned multiprocessors)
{
	const struct emu_kernel *kernel = emu_find(GPU_HASH_KERNEL);
	const char *fault;

	ck_assert_ptr_nonnull(kernel);
	args->leaves = address(leaves);
	fault = emu_launch(kernel, gpu_hash_grid(args->n_leaves, multiprocessors), GPU_HASH_THREADS,
		GPU_HASH_SHARED, (void *[]){args});
	ck_assert_msg(!fault, "%s", fault);
}

/* ---- random tensors ---- */

/* Most tensors are smaller than a leaf, some end near a boundary, and some have several leaves. */
static size_t random_size(uint64_t *seed)
{
	static const size_t boundaries[] = {16, 128, 2048, 65536, 131072};
	uint64_t r = random_bits(seed);

	switch (r % 8) {
	case 0: /* near a multiple of a boundary */
		return boundaries[r / 8 % 5] + (r >> 32) % 33 - 16;
	case 1:
		return (size_t)(r >> 8) % 200000;
	default:
		return (size_t)(r >> 32) % ((size_t)1 << (r / 8 % 13));
	}
}

/* A tensor in memory that ends with it, so that AddressSanitizer finds reads beyond its end. */
struct tensor {
	unsigned char *memory, *data;
	size_t bytes;
	uint64_t at; /* of its first leaf hash */
};

static void make_tensor(struct tensor *t, uint64_t *seed)
{
	uint64_t r = random_bits(seed);
	size_t skip = r % 3 > 0 ? (size_t)(r >> 8) % 16 : 0;

	t->bytes = random_size(seed);
	t->memory = allocate(skip + t->bytes);
	t->data = t->memory + skip;
	random_bytes(t->data, t->bytes, seed);
}

static void check_tensor(const struct tensor *t, const uint64_t *leaves)
{
	uint64_t n = hsh_leaf_count(t->bytes);
	uint64_t *expected = allocate(n * sizeof(*expected));

	hsh_leaves(hsh_leaf, t->data, t->bytes, 0, n, expected);
	for (uint64_t i = 0; i < n; i++)
		ck_assert_msg(leaves[t->at + i] == expected[i],
			"%zu bytes at an address with remainder %u: leaf %u of %u", t->bytes,
			(unsigned)(address(t->data) % 16), (unsigned)i, (unsigned)n);
	ck_assert_uint_eq(hsh_tensor(leaves + t->at, t->bytes), hsh_tensor(expected, t->bytes));
	free(expected);
}

/* Hashes up to GPU_HASH_RANGES tensors in one launch. */
static void hash_together(unsigned n, uint64_t *seed)
{
	struct gpu_hash_args *args = calloc(1, sizeof(*args));
	struct tensor tensors[GPU_HASH_RANGES];
	uint64_t *leaves;

	ck_assert_ptr_nonnull(args);
	for (unsigned i = 0; i < n; i++) {
		make_tensor(&tensors[i], seed);
		tensors[i].at = args->n_leaves;
		ck_assert_uint_eq(gpu_hash_add(args, address(tensors[i].data), tensors[i].bytes, 0),
			hsh_leaf_count(tensors[i].bytes));
	}
	leaves = allocate((args->n_leaves + 1) * sizeof(*leaves));
	leaves[args->n_leaves] = SENTINEL;
	if (args->n_leaves > 0)
		launch(args, leaves, 1 + (unsigned)(random_bits(seed) % 4));
	ck_assert_uint_eq(leaves[args->n_leaves], SENTINEL);
	for (unsigned i = 0; i < n; i++) {
		check_tensor(&tensors[i], leaves);
		free(tensors[i].memory);
	}
	free(leaves);
	free(args);
}

/* _i is the seed of the order of threads: 0 is the fixed order. */
START_TEST(hashes_equal_those_of_the_cpu)
{
	uint64_t seed = 100 + (uint64_t)_i;
	unsigned tensors = all() ? 10000 : 5000, n;

	emu_order((uint64_t)_i);
	for (unsigned done = 0; done < tensors; done += n) {
		n = 1 + (unsigned)(random_bits(&seed) % GPU_HASH_RANGES);
		if (n > tensors - done)
			n = tensors - done;
		hash_together(n, &seed);
	}
}
END_TEST

/* ---- single properties ---- */

START_TEST(every_alignment_gives_the_same_hash)
{
	uint64_t seed = 1, leaf[3], expected[3];
	size_t bytes = 2 * HSH_LEAF + 1001;
	unsigned char *data = allocate(bytes);
	unsigned char *copy = aligned_alloc(64, 3 * HSH_LEAF);

	ck_assert_ptr_nonnull(copy);
	random_bytes(data, bytes, &seed);
	hsh_leaves(hsh_leaf, data, bytes, 0, 3, expected);
	for (size_t at = 0; at < 33; at++) {
		struct gpu_hash_args args = {0};

		memcpy(copy + at, data, bytes);
		gpu_hash_add(&args, address(copy + at), bytes, 0);
		launch(&args, leaf, 1);
		for (int i = 0; i < 3; i++)
			ck_assert_uint_eq(leaf[i], expected[i]);
	}
	free(copy);
	free(data);
}
END_TEST

/* A range may begin in the middle of a tensor. */
START_TEST(leaves_keep_their_numbers_in_the_tensor)
{
	uint64_t seed = 2, expected[6], leaf[5];
	size_t bytes = 5 * HSH_LEAF + 77;
	unsigned char *data = allocate(bytes);
	struct gpu_hash_args args = {0};

	random_bytes(data, bytes, &seed);
	hsh_leaves(hsh_leaf, data, bytes, 0, 6, expected);
	gpu_hash_add(&args, address(data + 4 * HSH_LEAF), bytes - 4 * HSH_LEAF, 4);
	gpu_hash_add(&args, address(data + HSH_LEAF), 3 * HSH_LEAF, 1);
	ck_assert_uint_eq(args.n_leaves, 5);
	launch(&args, leaf, 1);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(leaf[i], expected[4 + i]);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(leaf[2 + i], expected[1 + i]);
	free(data);
}
END_TEST

START_TEST(large_numbers_of_leaves_are_seeds)
{
	uint64_t leaf, index = UINT64_C(0x123456789ab);
	unsigned char data[100];
	struct gpu_hash_args args = {0};

	memset(data, 7, sizeof(data));
	gpu_hash_add(&args, address(data), sizeof(data), index);
	launch(&args, &leaf, 1);
	ck_assert_uint_eq(leaf, hsh_leaf(data, sizeof(data), index));
}
END_TEST

/* Without AddressSanitizer, too: the tensor lies between two pages that cannot be read. */
START_TEST(kernel_reads_only_the_tensor)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *pages =
		/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
		mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *data = pages + page;
	uint64_t seed = 3, leaf;

	ck_assert_ptr_ne(pages, MAP_FAILED);
	random_bytes(data, page, &seed);
	ck_assert_int_eq(mprotect(pages, page, PROT_NONE), 0);
	ck_assert_int_eq(mprotect(data + page, page, PROT_NONE), 0);
	for (size_t bytes = 1; bytes < 200; bytes++)
		for (int end = 0; end < 2; end++) {
			unsigned char *at = end ? data + page - bytes : data;
			struct gpu_hash_args args = {0};

			gpu_hash_add(&args, address(at), bytes, 0);
			launch(&args, &leaf, 1);
			ck_assert_uint_eq(leaf, hsh_leaf(at, bytes, 0));
		}
	munmap(pages, 3 * page);
}
END_TEST

START_TEST(any_grid_gives_the_same_hashes)
{
	uint64_t seed = 4, expected[20], leaf[20];
	size_t bytes = 19 * HSH_LEAF + 1;
	unsigned char *data = allocate(bytes);
	struct gpu_hash_args args = {0};

	random_bytes(data, bytes, &seed);
	hsh_leaves(hsh_leaf, data, bytes, 0, 20, expected);
	gpu_hash_add(&args, address(data), bytes, 0);
	args.leaves = address(leaf);
	for (unsigned grid = 1; grid < 30; grid += 4) {
		memset(leaf, 0, sizeof(leaf));
		ck_assert_ptr_null(emu_launch(emu_find(GPU_HASH_KERNEL), grid, GPU_HASH_THREADS,
			GPU_HASH_SHARED, (void *[]){&args}));
		ck_assert_mem_eq(leaf, expected, sizeof(leaf));
	}
	free(data);
}
END_TEST

START_TEST(grid_depends_on_the_device_and_the_leaves)
{
	ck_assert_uint_eq(gpu_hash_grid(3, 132), 3);
	ck_assert_uint_eq(gpu_hash_grid(UINT64_C(1) << 40, 132), 132 * GPU_HASH_RESIDENT);
}
END_TEST

Suite *gpu_hash_suite(void)
{
	Suite *suite = suite_create("gpu_hash");
	TCase *values = tcase_create("values");

	tcase_set_timeout(values, 300);
	tcase_add_loop_test(values, hashes_equal_those_of_the_cpu, 0, all() ? 1 + 8 : 1 + 1);
	tcase_add_test(values, every_alignment_gives_the_same_hash);
	tcase_add_test(values, leaves_keep_their_numbers_in_the_tensor);
	tcase_add_test(values, large_numbers_of_leaves_are_seeds);
	tcase_add_test(values, kernel_reads_only_the_tensor);
	tcase_add_test(values, any_grid_gives_the_same_hashes);
	tcase_add_test(values, grid_depends_on_the_device_and_the_leaves);
	suite_add_tcase(suite, values);
	return suite;
}
