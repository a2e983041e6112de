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

static enum pccl_buf_owned owns(const void *at)
{
	return (uintptr_t)at - (uintptr_t)dummy_memory() < DUMMY_SIZE ? PCCL_BUF_OWNED
								      : PCCL_BUF_NOT_OWNED;
}

uint8_t *dummy_seen(const void *at)
{
	if (owns(at) == PCCL_BUF_NOT_OWNED)
		abort();
	return contents + ((uintptr_t)at - (uintptr_t)memory);
}

static pcclResult_t copy_in(const struct pccl_buf *b, uint64_t off, void *to, size_t n)
{
	memcpy(to, dummy_seen(b->at + off), n);
	return pcclSuccess;
}

static pcclResult_t copy_out(
	const struct pccl_buf *b, uint64_t off, const void *from, size_t n, size_t whole)
{
	(void)whole;
	memcpy(dummy_seen(b->at + off), from, n);
	return pcclSuccess;
}

static pcclResult_t leaf(const struct pccl_buf *b, uint64_t off, size_t n, hsh_leaf_fn *of_host,
	uint64_t index, uint64_t *ret)
{
	*ret = of_host(dummy_seen(b->at + off), n, index);
	return pcclSuccess;
}

const struct pccl_buf_kind pccl_buf_dummy = {.device = pcclDeviceCuda,
	.piece = 4096,
	.lanes = 1,
	.owns = owns,
	.copy_in = copy_in,
	.start_out = copy_out,
	.leaf = leaf};
