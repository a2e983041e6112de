/* SPDX-License-Identifier: MIT */
#include "tests/cuda/open.h"

#include <check.h>
#include <dlfcn.h>
#include <stdlib.h>

/* The double gets the name libcuda.so.1 for later calls of dlopen. */
static void *load(void)
{
	void *library = NULL;

	if (!getenv("E2E_GPU"))
		library = dlopen(DOUBLE, RTLD_NOW);
	ck_assert_msg(library || getenv("E2E_GPU"), "%s", dlerror());
	return library;
}

const struct double_functions *open_double(void)
{
	void *library = load();

	return library ? dlsym(library, "double_functions") : NULL;
}

const struct gpu_driver *open_device(int device)
{
	const struct gpu_driver *gpu;
	char why[GPU_TEXT] = "";
	CUcontext ctx;

	/* cppcheck-suppress leakReturnValNotUsed ; it stays open */
	(void)load();
	gpu = gpu_driver_start(why);
	ck_assert_msg(gpu != NULL, "%s", why);
	ck_assert_int_eq(gpu->cuDevicePrimaryCtxRetain(&ctx, device), CUDA_SUCCESS);
	ck_assert_int_eq(gpu->cuCtxPushCurrent(ctx), CUDA_SUCCESS);
	return gpu;
}
