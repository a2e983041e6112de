/* SPDX-License-Identifier: MIT
 *
 * The functions of gpu_check.h, and what the CPU knows of them.
 */
#ifndef KERNELS_CUDA_CHECK_CPU_H
#define KERNELS_CUDA_CHECK_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu_check_function {
	const char *name, *kernel;
	const char *text; /* for people */
	uint8_t argument; /* bits: 16 or 32 */
	uint8_t result;   /* bits: 16 or 32 */
	/* Computes the results for `n` arguments from `first` on. NULL: only a GPU knows. */
	void (*on_cpu)(uint32_t first, uint32_t n, void *results);
};

/* All functions. */
extern const struct gpu_check_function gpu_check_functions[];
extern const size_t gpu_check_function_count;
/* The text of known.txt. */
extern const char pccl_gpu_check_known[];

/* Returns the function with this name, or NULL. */
const struct gpu_check_function *gpu_check_find(const char *name);
/* Returns the number of arguments: 2^16 or 2^32. */
uint64_t gpu_check_arguments(const struct gpu_check_function *f);
/* Returns the number of leaves that the results of n arguments have. */
uint64_t gpu_check_leaves(const struct gpu_check_function *f, uint64_t n);

/* Computes the hash of the results for the first n arguments, with this number of threads. `f` must
 * have `on_cpu`. Returns false if there is no memory. */
bool gpu_check_on_cpu(
	const struct gpu_check_function *f, uint64_t n, unsigned threads, uint64_t *ret_hash);

#endif
