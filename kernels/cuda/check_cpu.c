/* SPDX-License-Identifier: MIT */
#include "kernels/cuda/check_cpu.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/gpu_check.h"
#include "kernels/hsh.h"

#define FUNCTION static inline
#include "kernels/cuda/check_value.h"

#define MAX_THREADS 64

/* ---- the functions ---- */

/* Defines a function by an expression in `bits`, x (the argument), y (the factor) and z (the
 * summand). */
#define ON_CPU(name, result, expression)                                                           \
	static void name##_on_cpu(uint32_t first, uint32_t n, void *results)                       \
	{                                                                                          \
		uint##result##_t *to = results;                                                    \
                                                                                                   \
		for (uint32_t i = 0; i < n; i++) {                                                 \
			uint32_t bits = first + i;                                                 \
			float x = krn_f32_from_bits(bits);                                         \
			float y = krn_f32_from_bits(gpu_check_factor(bits));                       \
			float z = krn_f32_from_bits(gpu_check_summand(bits));                      \
                                                                                                   \
			(void)x, (void)y, (void)z;                                                 \
			to[i] = expression;                                                        \
		}                                                                                  \
	}
#define ON_CPU_32(name, expression) ON_CPU(name, 32, gpu_check_result_32(krn_f32_bits(expression)))

/* The conversions are those of the library, whose NaN is the one that is hashed. */
ON_CPU(f32_to_f16, 16, krn_f32_to_f16(x))
ON_CPU(f32_to_bf16, 16, krn_f32_to_bf16(x))
ON_CPU(f16_to_f32, 32, krn_f32_bits(krn_f16_to_f32((uint16_t)bits)))
ON_CPU(bf16_to_f32, 32, krn_f32_bits(krn_bf16_to_f32((uint16_t)bits)))
ON_CPU_32(sqrtf, sqrtf(x))
ON_CPU_32(reciprocal, 1 / x)
ON_CPU_32(division, x / y)
ON_CPU_32(fmaf, fmaf(x, y, z))

#define EXACT(name, argument, result, text)                                                        \
	{#name, "pccl_gpu_check_" #name, text, argument, result, name##_on_cpu},
#define LIBRARY(name, argument, result, text)                                                      \
	{#name, "pccl_gpu_check_" #name, text, argument, result, NULL},

const struct gpu_check_function gpu_check_functions[] = {
	GPU_CHECK_EXACT(EXACT) GPU_CHECK_LIBRARY(LIBRARY)};
const size_t gpu_check_function_count = sizeof gpu_check_functions / sizeof gpu_check_functions[0];

const struct gpu_check_function *gpu_check_find(const char *name)
{
	for (size_t i = 0; i < gpu_check_function_count; i++)
		if (strcmp(gpu_check_functions[i].name, name) == 0)
			return &gpu_check_functions[i];
	return NULL;
}

uint64_t gpu_check_arguments(const struct gpu_check_function *f)
{
	return UINT64_C(1) << f->argument;
}

uint64_t gpu_check_leaves(const struct gpu_check_function *f, uint64_t n)
{
	return hsh_leaf_count(n * (f->result / 8));
}

/* ---- hashes ---- */

struct job {
	const struct gpu_check_function *f;
	uint64_t n;
	uint64_t *leaves;
	_Atomic uint64_t next; /* the first leaf that no thread has taken */
};

/* Computes leaves until none is left. */
static void *work(void *arg)
{
	struct job *job = arg;
	uint64_t in_leaf = HSH_LEAF / (job->f->result / 8);
	uint64_t leaf, first;
	_Alignas(8) unsigned char results[HSH_LEAF];

	while ((leaf = atomic_fetch_add(&job->next, 1)) < gpu_check_leaves(job->f, job->n)) {
		first = leaf * in_leaf;
		if (in_leaf > job->n - first)
			in_leaf = job->n - first;
		job->f->on_cpu((uint32_t)first, (uint32_t)in_leaf, results);
		job->leaves[leaf] = hsh_leaf(results, in_leaf * (job->f->result / 8), leaf);
	}
	return NULL;
}

bool gpu_check_on_cpu(
	const struct gpu_check_function *f, uint64_t n, unsigned threads, uint64_t *ret_hash)
{
	struct job job = {.f = f, .n = n};
	pthread_t others[MAX_THREADS];
	unsigned started = 0;

	job.leaves = malloc((gpu_check_leaves(f, n) + 1) * sizeof(*job.leaves));
	if (!job.leaves)
		return false;
	while (started + 1 < threads && started < MAX_THREADS &&
		pthread_create(&others[started], NULL, work, &job) == 0)
		started++;
	work(&job);
	for (unsigned i = 0; i < started; i++)
		pthread_join(others[i], NULL);
	*ret_hash = hsh_tensor(job.leaves, n * (f->result / 8));
	free(job.leaves);
	return true;
}
