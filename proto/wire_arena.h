/* SPDX-License-Identifier: MIT
 *
 * Memory of one encoding or decoding: taken piece by piece, given back at once, and bounded, so
 * that no message can make its receiver use memory or time out of proportion to its length. Most
 * messages fit into the part that needs no malloc.
 */
#ifndef WIRE_ARENA_H
#define WIRE_ARENA_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

struct wire_arena_block;

struct wire_arena {
	ProtobufCAllocator pb; /* takes from here; its free does nothing */
	uint8_t *at, *end;     /* what is left of the present block */
	size_t left;           /* bytes that may still be taken */
	int err;               /* 0, CC_ERR_NOMEM or CC_ERR_LIMIT (max reached): why NULL came */
	struct wire_arena_block *blocks;
	_Alignas(16) uint8_t first[2048];
};

/* At most max bytes will be taken. The arena must not be moved. */
void wire_arena_init(struct wire_arena *a, size_t max);
/* Zeroed, aligned for any type, never NULL for n == 0; NULL on failure, remembered in err. */
void *wire_arena_take(struct wire_arena *a, size_t n, size_t size);
/* The same for n pointers to something. */
void *wire_arena_take_pointers(struct wire_arena *a, size_t n);
void wire_arena_free(struct wire_arena *a);

/*
 * Decodes a protobuf message. `factor` bounds the memory: no more than factor bytes for each byte
 * of the message, and a constant. NULL on failure: *err is CC_ERR_NOMEM, CC_ERR_LIMIT or
 * CC_ERR_PROTO and *why says more. The result lives until wire_arena_free, which is due in any
 * case.
 */
void *wire_arena_unpack(struct wire_arena *a, const ProtobufCMessageDescriptor *type,
	const uint8_t *p, size_t len, size_t factor, int *err, const char **why);

#endif
