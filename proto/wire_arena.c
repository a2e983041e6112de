/* SPDX-License-Identifier: MIT */
#include "proto/wire_arena.h"

#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"

#define ALIGN      16u
#define BLOCK_SIZE ((size_t)32 * 1024)
/* Bytes that the decoding of any message may use, independent of its length. */
#define UNPACK_BASE ((size_t)256 * 1024)

struct wire_arena_block {
	_Alignas(ALIGN) struct wire_arena_block *next;
};

static int add_block(struct wire_arena *a, size_t need)
{
	struct wire_arena_block *b;
	size_t size = need > BLOCK_SIZE ? need : BLOCK_SIZE;

	b = malloc(sizeof *b + size);
	if (b == NULL)
		return CC_ERR_NOMEM;
	b->next = a->blocks;
	a->blocks = b;
	a->at = (uint8_t *)(b + 1);
	a->end = a->at + size;
	return 0;
}

static void *take(struct wire_arena *a, size_t size)
{
	void *p;

	if (size > a->left) {
		a->err = CC_ERR_LIMIT;
		return NULL;
	}
	/* This cannot overflow, because left is far below SIZE_MAX. */
	size = (size + ALIGN - 1) / ALIGN * ALIGN;
	a->left -= size < a->left ? size : a->left;
	if (size > (size_t)(a->end - a->at) && add_block(a, size) != 0) {
		a->err = CC_ERR_NOMEM;
		return NULL;
	}
	p = a->at;
	a->at += size;
	return p;
}

static void *pb_alloc(void *data, size_t size)
{
	return take(data, size);
}

static void pb_free(void *data, void *p)
{
	(void)data;
	(void)p;
}

void wire_arena_init(struct wire_arena *a, size_t max)
{
	a->pb = (ProtobufCAllocator){.alloc = pb_alloc, .free = pb_free, .allocator_data = a};
	a->at = a->first;
	a->end = a->first + sizeof a->first;
	a->left = max < SIZE_MAX / 2 ? max : SIZE_MAX / 2;
	a->err = 0;
	a->blocks = NULL;
}

void *wire_arena_take(struct wire_arena *a, size_t n, size_t size)
{
	void *p;

	if (n != 0 && size > a->left / n) {
		a->err = CC_ERR_LIMIT;
		return NULL;
	}
	p = take(a, n * size);
	if (p != NULL)
		memset(p, 0, n * size);
	return p;
}

void *wire_arena_take_pointers(struct wire_arena *a, size_t n)
{
	return wire_arena_take(a, n, sizeof(void *));
}

void wire_arena_free(struct wire_arena *a)
{
	while (a->blocks != NULL) {
		struct wire_arena_block *b = a->blocks;

		a->blocks = b->next;
		free(b);
	}
}

void *wire_arena_unpack(struct wire_arena *a, const ProtobufCMessageDescriptor *type,
	const uint8_t *p, size_t len, size_t factor, int *err, const char **why)
{
	void *ret;

	wire_arena_init(a, UNPACK_BASE + factor * len);
	ret = protobuf_c_message_unpack(type, &a->pb, len, p);
	if (ret != NULL)
		return ret;
	*err = a->err != 0 ? a->err : CC_ERR_PROTO;
	if (*err == CC_ERR_NOMEM)
		*why = "message: no memory to decode it";
	else if (*err == CC_ERR_LIMIT)
		*why = "message: more fields than any valid one has";
	else
		*why = "message: not well-formed protobuf of a known type";
	return NULL;
}
