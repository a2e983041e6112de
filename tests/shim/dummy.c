/* SPDX-License-Identifier: MIT */
#include "tests/shim/dummy.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libpccl-shim/buf.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint8_t *memory, *contents;

static void make(void)
{
	/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
	memory = mmap(NULL, DUMMY_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	contents =
		/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
		mmap(NULL, DUMMY_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || contents == MAP_FAILED)
		abort();
}

uint8_t *dummy_memory(void)
{
	pthread_once(&once, make);
	return memory;
}

static bool owns(const void *at)
{
	return (uintptr_t)at - (uintptr_t)dummy_memory() < DUMMY_SIZE;
}

uint8_t *dummy_seen(const void *at)
{
	if (!owns(at))
		abort();
	return contents + ((uintptr_t)at - (uintptr_t)memory);
}

static void *copy_in(void *to, const void *from, size_t n)
{
	return memcpy(to, dummy_seen(from), n);
}

static void copy_out(void *to, const void *from, size_t n, size_t whole)
{
	(void)whole;
	memcpy(dummy_seen(to), from, n);
}

static uint64_t leaf(hsh_leaf_fn *of_host, const void *at, size_t n, uint64_t index)
{
	return of_host(dummy_seen(at), n, index);
}

const struct pccl_buf_kind pccl_buf_dummy = {.device = pcclDeviceCuda,
	.owns = owns,
	.copy_in = copy_in,
	.copy_out = copy_out,
	.leaf = leaf};
