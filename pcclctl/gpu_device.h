/* SPDX-License-Identifier: MIT
 *
 * A GPU that evaluates functions (kernels/cuda/gpu_check.h).
 */
#ifndef CTL_GPU_DEVICE_H
#define CTL_GPU_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/check_cpu.h"

#define CTL_GPU_WHY_SIZE 512

struct ctl_gpu_device;

/* Opens the driver and the device with this number. Returns NULL on failure, and `why` is a
 * sentence. */
struct ctl_gpu_device *ctl_gpu_open(unsigned device, char why[CTL_GPU_WHY_SIZE]);
void ctl_gpu_close(struct ctl_gpu_device *d);

/* The name of the device, and its architecture, such as "sm_90". */
const char *ctl_gpu_name(const struct ctl_gpu_device *d);
const char *ctl_gpu_architecture(const struct ctl_gpu_device *d);

/* Computes the hash of the results for all arguments of `f`. Calls `progress` now and then with the
 * percentage that is done. Returns false on failure, and `why` is a sentence. */
bool ctl_gpu_evaluate(struct ctl_gpu_device *d, const struct gpu_check_function *f,
	void (*progress)(const struct gpu_check_function *f, unsigned percent), uint64_t *ret_hash,
	char why[CTL_GPU_WHY_SIZE]);

#endif
