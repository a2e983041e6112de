/* SPDX-License-Identifier: MIT
 *
 * The memory of one decoding. It is taken piece by piece and freed as a whole. It is bounded, so no
 * message can make its receiver use memory or time out of proportion to its length.
 * Most messages need only the first part, which does not come from malloc.
 */
#ifndef WIRE_ARENA_H
#define WIRE_ARENA_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

struct wire_arena_block;

struct wire_arena {
	ProtobufCAllocator pb; /* allocator that takes from the arena; its free does nothing */
	uint8_t *at, *end;     /* the free part of the present block */
	size_t left;           /* bytes that may still be taken */
	int err; /* reason of the first NULL: CC_ERR_NOMEM, or CC_ERR_LIMIT if nothing is left */
	struct wire_arena_block *blocks;
	_Alignas(16) uint8_t first[2048];
};

/* Decodes a protobuf message, and initialises the arena, which must not be moved afterwards.
 * `factor` bounds the memory to factor bytes for each byte of the message, plus a constant. Returns
 * NULL on failure. Then *err is CC_ERR_NOMEM, CC_ERR_LIMIT or CC_ERR_PROTO, and *why is a sentence
 * about the failure. The result is valid until wire_arena_free. The caller must call
 * wire_arena_free even after a failure. */
void *wire_arena_unpack(struct wire_arena *a, const ProtobufCMessageDescriptor *type,
	const uint8_t *p, size_t len, size_t factor, int *err, const char **why);
void wire_arena_free(struct wire_arena *a);

#endif
