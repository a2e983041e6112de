/* SPDX-License-Identifier: MIT */
#include "pccl-bench/buffer.h"

#include <sys/mman.h>

#define PAGE 4096u

pcclResult_t bch_buffers_make(struct bch_buffers *ret, uint32_t lanes, size_t bytes, bool in_place,
	const struct bch_api *registered)
{
	struct bch_buffers b = {.registered = registered, .lanes = lanes, .in_place = in_place};
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	pcclResult_t r = pcclSuccess;
	void *memory = NULL;

	b.stride = (bytes + PAGE - 1) / PAGE * PAGE;
	b.size = b.stride * lanes * (in_place ? 1 : 2);
	if (registered) {
		r = registered->mem_alloc(b.size, &memory);
	} else {
		/* cppcheck-suppress invalidFunctionArg ; the mapping has no file */
		memory = mmap(NULL, b.size, PROT_READ | PROT_WRITE, flags, -1, 0);
		r = memory == MAP_FAILED ? pcclOutOfMemory : pcclSuccess;
	}
	if (r != pcclSuccess)
		return r;
	b.memory = memory;
	*ret = b;
	return pcclSuccess;
}

pcclResult_t bch_buffers_free(struct bch_buffers *b)
{
	if (b->registered)
		return b->registered->mem_free(b->memory);
	munmap(b->memory, b->size);
	return pcclSuccess;
}

static void *given(const struct bch_buffers *b, void *at)
{
	return b->device ? b->device + ((uint8_t *)at - b->memory) : at;
}

void *bch_given_operand(const struct bch_buffers *b, uint32_t lane)
{
	return given(b, bch_operand(b, lane));
}

void *bch_given_result(const struct bch_buffers *b, uint32_t lane)
{
	return given(b, bch_result_of(b, lane));
}

void *bch_operand(const struct bch_buffers *b, uint32_t lane)
{
	return b->memory + b->stride * lane;
}

void *bch_result_of(const struct bch_buffers *b, uint32_t lane)
{
	return bch_operand(b, b->in_place ? lane : b->lanes + lane);
}
