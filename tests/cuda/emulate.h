/* SPDX-License-Identifier: MIT
 *
 * Runs kernels of kernels/cuda/ on the CPU. Each thread of a block is a coroutine. Between two
 * points at which threads wait for each other (barriers, shuffles) threads run one after the other,
 * in the order of their numbers or in a shuffled order. Blocks run one after the other, too.
 *
 * Stricter than a GPU: shared memory starts with random bytes, a load with a wrong alignment is a
 * fault, and so is a barrier or shuffle that some of its threads never reach. Under
 * AddressSanitizer an access outside of a buffer or of shared memory is an error.
 *
 * Several threads of the process may launch kernels at the same time.
 */
#ifndef TESTS_CUDA_EMULATE_H
#define TESTS_CUDA_EMULATE_H

#include <stddef.h>
#include <stdint.h>

struct emu_kernel {
	const char *name;
	/* Runs one thread. The array has a pointer to each parameter, as that of cuLaunchKernel. */
	void (*run)(void **args);
};

/* Returns the kernel with this name, or NULL. */
const struct emu_kernel *emu_find(const char *name);

/*
 * Runs `grid` blocks of `block` threads with `shared` bytes of shared memory. Addresses in the
 * parameters are those of this process. Returns when all threads have ended: NULL, or a sentence
 * that says which fault ended the launch. The sentence is a constant.
 */
const char *emu_launch(
	const struct emu_kernel *kernel, unsigned grid, unsigned block, size_t shared, void **args);

/* Sets the order of threads and blocks in all launches that start later: 0 is the order of their
 * numbers, and any other number is the seed of shuffled orders. */
void emu_order(uint64_t seed);

#endif
