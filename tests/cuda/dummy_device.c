/* SPDX-License-Identifier: MIT
 *
 * The second kind of user memory of tests/shim/kinds.c is the memory of a CUDA device.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/cuda/open.h"
#include "tests/shim/dummy.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint8_t *memory;

static void make(void)
{
	CUdeviceptr at;

	ck_assert_int_eq(open_device(0)->cuMemAlloc(&at, DUMMY_SIZE), CUDA_SUCCESS);
	memory = (uint8_t *)(uintptr_t)at;
}

uint8_t *dummy_memory(void)
{
	pthread_once(&once, make);
	return memory;
}

uint8_t *dummy_seen(const void *at)
{
	uint8_t *seen = open_double()->seen((CUdeviceptr)(uintptr_t)at);

	if (!seen)
		abort();
	return seen;
}
