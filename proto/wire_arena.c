/* SPDX-License-Identifier: MIT */
#include "proto/wire_arena.h"

#include <stdlib.h>

#include "proto/wire_limits.h"

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

static void *take(void *data, size_t size)
{
	struct wire_arena *a = data;
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

static void keep(void *data, void *p)
{
	(void)data;
	(void)p;
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

	a->pb = (ProtobufCAllocator){.alloc = take, .free = keep, .allocator_data = a};
	a->at = a->first;
	a->end = a->first + sizeof a->first;
	a->left = UNPACK_BASE + factor * len;
	a->err = 0;
	a->blocks = NULL;
	ret = protobuf_c_message_unpack(type, &a->pb, len, p);
	if (ret != NULL)
		return ret;
	*err = a->err;
	if (*err == CC_ERR_NOMEM)
		(void)wire_no_memory(why);
	else if (*err == CC_ERR_LIMIT)
		*why = "message: more fields than any valid one has";
	else
		*err = wire_bad(why, "message: not well-formed protobuf of a known type");
	return NULL;
}
