/* SPDX-License-Identifier: MIT
 *
 * The memory of one encoding or decoding. It is taken piece by piece and freed as a whole. It is
 * bounded, so no message can make its receiver use memory or time out of proportion to its length.
 * Most messages need only the part that does not come from malloc.
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
	int err; /* reason of the first NULL: CC_ERR_NOMEM, or CC_ERR_LIMIT if max is reached */
	struct wire_arena_block *blocks;
	_Alignas(16) uint8_t first[2048];
};

/* Initialises an arena that gives at most `max` bytes. The arena must not be moved. */
void wire_arena_init(struct wire_arena *a, size_t max);
/* Takes zeroed memory for n objects, aligned for any type. Returns NULL only on failure, also for n
 * == 0, and stores the reason in err. */
void *wire_arena_take(struct wire_arena *a, size_t n, size_t size);
/* Takes zeroed memory for n pointers. */
void *wire_arena_take_pointers(struct wire_arena *a, size_t n);
void wire_arena_free(struct wire_arena *a);

/*
 * Decodes a protobuf message. `factor` bounds the memory to factor bytes for each byte of the
 * message, plus a constant. Returns NULL on failure, with *err CC_ERR_NOMEM, CC_ERR_LIMIT or
 * CC_ERR_PROTO, and a sentence in *why. The result is valid until wire_arena_free. The caller must
 * call wire_arena_free also after a failure.
 */
void *wire_arena_unpack(struct wire_arena *a, const ProtobufCMessageDescriptor *type,
	const uint8_t *p, size_t len, size_t factor, int *err, const char **why);

#endif
