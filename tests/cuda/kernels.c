/* SPDX-License-Identifier: MIT
 *
 * The kernels that the emulation knows.
 */
#include <stddef.h>
#include <string.h>

#include "kernels/cuda/gpu_check.h"
#include "tests/cuda/emulate.h"

#define DECLARE(name) void name##_run(void **args);
#define ENTRY(name)   {#name, name##_run},
/* The kernels of gpu_check.h. */
#define DECLARE_CHECK(name, argument, result, text) DECLARE(pccl_gpu_check_##name)
#define CHECK_ENTRY(name, argument, result, text)   ENTRY(pccl_gpu_check_##name)

DECLARE(pccl_gpu_hash_leaves)
GPU_CHECK_FUNCTIONS(DECLARE_CHECK)

static const struct emu_kernel kernels[] = {
	ENTRY(pccl_gpu_hash_leaves) GPU_CHECK_FUNCTIONS(CHECK_ENTRY)};

const struct emu_kernel *emu_find(const char *name)
{
	for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
		if (strcmp(kernels[i].name, name) == 0)
			return &kernels[i];
	return NULL;
}
