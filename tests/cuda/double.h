/* SPDX-License-Identifier: MIT
 *
 * A test double of the driver of CUDA. tests/cuda/.libs/libcuda.so.1 has the functions of
 * kernels/cuda/driver.h, and those below, which tests find with dlsym (double_function).
 *
 * - No CPU can access the memory of a device at its addresses. Pages after it belong to nobody.
 *   The double works on the memory at other addresses. Freed addresses are not used again unless
 *   double_reuse says so.
 * - Each stream is a thread, so copies are asynchronous, and wrong orders show. Copies from and to
 *   host memory that is not registered are over when the call returns.
 * - Kernels are run by tests/cuda/emulate.h. If the hash kernel would read memory that nobody has,
 * the launch fails with a sticky error.
 * - An error that is sticky fails all later calls in its context, and the work that is queued there
 *   is dropped.
 * - Host memory must not be unregistered while a copy from or to it is under way: the process ends.
 * - In a forked child all functions fail.
 *
 * Environment: DOUBLE_DEVICES, the number of devices (default 2); DOUBLE_REGISTER_LIMIT, the bytes
 * of host memory that can be registered; DOUBLE_NO_KERNELS=1, no module can be loaded;
 * DOUBLE_VERSION, what cuDriverGetVersion returns (default 13000); DOUBLE_FAIL, the name of a
 * function that always fails with CUDA_ERROR_UNKNOWN; DOUBLE_STOP, a file: when it exists, the
 * next copy removes it and stops in its middle for ever.
 */
#ifndef TESTS_CUDA_DOUBLE_H
#define TESTS_CUDA_DOUBLE_H

#include <stdint.h>

#include <cuda.h>

struct double_functions {
	/* The n-th call from now on fails with this error, in any thread; 0: none does. Functions
	 * that name errors are not counted. A caller that asks again and again whether an event is
	 * reached counts as one call: how often it asks depends on the processor. Until fail_at is
	 * called with 0, devices work only while a thread waits for them. So a copy for which
	 * nobody waits after an error stays under way. */
	void (*fail_at)(uint64_t n, CUresult error);
	/* The n-th use from now on of the allocation that contains `at` frees this allocation
	 * first, as another thread may do; 0: none does. Copies, fills and launches of the hash
	 * kernel use it. */
	void (*free_at)(CUdeviceptr at, uint64_t n);
	/* Returns how many uses there were since the last call of free_at. */
	uint64_t (*uses)(void);
	/* Returns how many calls there were since the last call of fail_at. */
	uint64_t (*count)(void);
	/* Returns how many calls of this function there were, as "cuMemHostRegister". */
	uint64_t (*calls)(const char *function);
	/* Returns how many bytes were copied from devices (0) or to devices (1). */
	uint64_t (*bytes)(int to_device);
	/* Returns the address at which the double sees this memory of a device. */
	void *(*seen)(CUdeviceptr at);
	/* The stream does nothing from now on; or goes on. */
	void (*hold)(CUstream stream, int on);
	/* Later allocations get addresses that were freed. */
	void (*reuse)(int on);
	/* Returns how many bytes of host memory are registered. */
	uint64_t (*registered)(void);
	/* Destroys the primary context of a device, as cuDevicePrimaryCtxReset does. */
	void (*reset)(int device);
};

/* The table above. */
extern const struct double_functions double_functions;

#endif
