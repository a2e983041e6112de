/* SPDX-License-Identifier: MIT
 *
 * The kernels that the emulation knows.
 */
#include <stddef.h>
#include <string.h>

#include "tests/cuda/emulate.h"

#define DECLARE(name) void name##_run(void **args);
#define ENTRY(name)   {#name, name##_run},
#define KERNELS(X)    X(pccl_gpu_hash_leaves)

KERNELS(DECLARE)

static const struct emu_kernel kernels[] = {KERNELS(ENTRY)};

const struct emu_kernel *emu_find(const char *name)
{
	for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
		if (strcmp(kernels[i].name, name) == 0)
			return &kernels[i];
	return NULL;
}
