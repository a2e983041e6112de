/* SPDX-License-Identifier: MIT */
/*
 * The kernels of pcclctl gpu-check, emulated: where IEEE 754 defines the result, it has the bits
 * that the CPU computes.
 */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/check_cpu.h"
#include "kernels/cuda/gpu_check.h"
#include "kernels/hsh.h"
#include "tests/cuda/emulate.h"
#include "tests/cuda/random.h"
#include "tests/cuda/suites.h"

#define PART 4096 /* arguments of one launch */

/* Evaluates by the kernel into `results`, which has room for n words of 32 bits. */
static void evaluate(const struct gpu_check_function *f, uint32_t first, uint32_t n, void *results)
{
	struct gpu_check_args args = {
		.results = (uint64_t)(uintptr_t)results, .first = first, .n = n};
	const struct emu_kernel *kernel = emu_find(f->kernel);
	const char *fault;

	ck_assert_ptr_nonnull(kernel);
	fault = emu_launch(kernel, 3, GPU_CHECK_THREADS, 0, (void *[]){&args});
	ck_assert_msg(!fault, "%s", fault);
}

/* Compares the kernel with the CPU for n arguments. */
static void compare(const struct gpu_check_function *f, uint32_t first, uint32_t n)
{
	uint32_t gpu[PART + 1], cpu[PART];
	size_t bytes = n * (f->result / 8);

	memset(gpu, 0x55, sizeof(gpu));
	evaluate(f, first, n, gpu);
	f->on_cpu(first, n, cpu);
	if (memcmp(gpu, cpu, bytes) != 0)
		ck_abort_msg("%s: the results from %08" PRIx32 " on", f->name, first);
	/* The kernel writes nothing after the results. */
	ck_assert_uint_eq(((unsigned char *)gpu)[bytes], 0x55);
}

static const struct gpu_check_function *exact(int i)
{
	const struct gpu_check_function *f = &gpu_check_functions[i];

	ck_assert(f->on_cpu != NULL);
	return f;
}

/* At these arguments, and on both sides of them, the results change their kind. */
static const uint32_t special[] = {0x00000000, 0x00800000, 0x32ffffff, 0x33000000, 0x387fc000,
	0x38800000, 0x3f800000, 0x477ff000, 0x47800000, 0x7f7fffff, 0x7f800000, 0x7fc00000,
	0x80000000, 0x80800000, 0xb3000000, 0xc77ff000, 0xff800000, 0xffffff00};

START_TEST(exact_functions_equal_those_of_the_cpu)
{
	const struct gpu_check_function *f = exact(_i);
	uint64_t seed = 5;

	if (f->argument == 16) {
		for (uint32_t first = 0; first < 65536; first += PART)
			compare(f, first, PART);
		return;
	}
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		compare(f, special[i] - PART / 2, PART);
	for (int i = 0; i < 20; i++)
		compare(f, (uint32_t)random_bits(&seed), PART);
	compare(f, 12345, 1);
	compare(f, UINT32_C(0xfffffff0), 15);
}
END_TEST

/* The hash of a function is the hash of its results as a tensor. */
START_TEST(hash_of_a_function_is_that_of_a_tensor)
{
	const struct gpu_check_function *f = exact(_i);
	uint32_t n = 40000;
	void *results = malloc(n * sizeof(uint32_t));
	uint64_t leaves[3], hash, again;
	size_t bytes = n * (f->result / 8);

	ck_assert_ptr_nonnull(results);
	evaluate(f, 0, n, results);
	ck_assert_uint_le(hsh_leaf_count(bytes), 3);
	ck_assert_uint_eq(gpu_check_leaves(f, n), hsh_leaf_count(bytes));
	hsh_leaves(hsh_leaf, results, bytes, 0, 3, leaves);
	ck_assert(gpu_check_on_cpu(f, n, 1, &hash));
	ck_assert_uint_eq(hash, hsh_tensor(leaves, bytes));
	ck_assert(gpu_check_on_cpu(f, n, 3, &again));
	ck_assert_uint_eq(again, hash);
	free(results);
}
END_TEST

/* Functions that only the library of CUDA defines: here it is the C library that computes them. */
START_TEST(every_function_has_a_kernel)
{
	static const struct {
		const char *name;
		float x, y;
	} samples[] = {{"expf", 0, 1}, {"logf", 1, 0}, {"sinf", 0, 0}, {"cosf", 0, 1},
		{"rsqrtf", 4, 0.5F}, {"exp2f", 3, 8}, {"log2f", 8, 3}, {"powf_3", 2, 8},
		{"powf_1_5", 4, 8}, {"powf_of_0_9", 0, 1}, {"tanhf", 0, 0}, {"erff", 0, 0},
		{"expm1f", 0, 0}, {"log1pf", 0, 0}, {"division", 0, 0}, {"reciprocal", 4, 0.25F}};

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		const struct gpu_check_function *f = gpu_check_find(samples[i].name);
		uint32_t bits;
		float y;

		ck_assert_ptr_nonnull(f);
		memcpy(&bits, &samples[i].x, sizeof(bits));
		evaluate(f, bits, 1, &y);
		ck_assert_msg(y == samples[i].y, "%s", f->name);
	}
	for (size_t i = 0; i < gpu_check_function_count; i++)
		ck_assert_ptr_nonnull(emu_find(gpu_check_functions[i].kernel));
	ck_assert_ptr_null(gpu_check_find("exp"));
}
END_TEST

/* A NaN has one representation, whatever its sign and payload. */
START_TEST(nans_have_the_same_bits)
{
	static const uint32_t nans[] = {0x7f800001, 0x7fc00000, 0x7fffffff, 0xff800001, 0xffc12345};

	for (size_t i = 0; i < gpu_check_function_count; i++)
		for (size_t k = 0; k < sizeof(nans) / sizeof(nans[0]); k++) {
			const struct gpu_check_function *f = &gpu_check_functions[i];
			uint32_t y = 0;

			if (f->argument == 16)
				continue;
			evaluate(f, nans[k], 1, &y);
			if (f->result == 32)
				ck_assert_uint_eq(y, 0x7fc00000);
			else
				ck_assert_uint_eq(
					y, strcmp(f->name, "f32_to_f16") ? 0x7fc0 : 0x7e00);
		}
}
END_TEST

/* The hash of a function in the table, or 0. */
static uint64_t known(const char *path, const char *name)
{
	char word[64], arch[16], line[256];
	uint64_t hash;
	FILE *f = fopen(path, "re");

	ck_assert_msg(f != NULL, "%s", path);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %15s %16" SCNx64, word, arch, &hash) == 3 &&
			strcmp(word, name) == 0 && strcmp(arch, "*") == 0) {
			(void)fclose(f);
			return hash;
		}
	(void)fclose(f);
	return 0;
}

/* Of the functions with 2^32 arguments, only the program `known` computes all. */
START_TEST(table_has_the_hashes_of_exact_functions)
{
	const char *top = getenv("abs_top_srcdir");
	char path[4096];
	uint64_t hash;

	snprintf(path, sizeof(path), "%s/kernels/cuda/known.txt", top ? top : "../..");
	for (size_t i = 0; i < gpu_check_function_count; i++) {
		const struct gpu_check_function *f = &gpu_check_functions[i];

		if (!f->on_cpu)
			continue;
		ck_assert_msg(known(path, f->name) != 0, "%s", f->name);
		if (f->argument == 32)
			continue;
		ck_assert(gpu_check_on_cpu(f, gpu_check_arguments(f), 1, &hash));
		ck_assert_uint_eq(hash, known(path, f->name));
	}
}
END_TEST

Suite *gpu_check_suite(void)
{
	Suite *suite = suite_create("gpu_check");
	TCase *all = tcase_create("all");

	tcase_set_timeout(all, 120);
	tcase_add_loop_test(all, exact_functions_equal_those_of_the_cpu, 0, 8);
	tcase_add_loop_test(all, hash_of_a_function_is_that_of_a_tensor, 0, 8);
	tcase_add_test(all, every_function_has_a_kernel);
	tcase_add_test(all, nans_have_the_same_bits);
	tcase_add_test(all, table_has_the_hashes_of_exact_functions);
	suite_add_tcase(suite, all);
	return suite;
}
