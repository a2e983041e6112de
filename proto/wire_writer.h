/* SPDX-License-Identifier: MIT
 *
 * Writes protobuf backwards, from the last byte of a message to the first. So the length of a
 * nested message is known when its head is written, and each message is encoded in one pass. The
 * caller writes the fields in the order of falling numbers, and of each field the value before the
 * head. The message then has the form that protobuf-c itself writes.
 */
#ifndef WIRE_WRITER_H
#define WIRE_WRITER_H

#include <stddef.h>
#include <stdint.h>

enum wire_type { WIRE_TYPE_VARINT = 0, WIRE_TYPE_64BIT = 1, WIRE_TYPE_LENGTH = 2 };

struct wire_writer {
	uint8_t *start, *at, *end; /* of the buffer; the bytes from `at` to `end` are written */
	size_t max;                /* bytes that may be written */
	uint8_t *owned;            /* the buffer if it comes from malloc, else NULL */
	int err;                   /* the first failure; nothing is written after it */
};

/* Initialises a writer that begins with the buffer of the caller, and allocates larger ones. */
void wire_writer_init(struct wire_writer *w, uint8_t *buf, size_t size, size_t max);
void wire_writer_free(struct wire_writer *w);
/* Makes room for n bytes. Returns 0, or the first failure: CC_ERR_NOMEM or CC_ERR_LIMIT. */
int wire_writer_grow(struct wire_writer *w, size_t n);
/* Writes n bytes; wire_write_text writes those that are not clean as '?' (wire_text.h). */
void wire_write_bytes(struct wire_writer *w, const void *p, size_t n);
void wire_write_text(struct wire_writer *w, const char *s, size_t n);
void wire_write_fixed64(struct wire_writer *w, uint64_t v);

static inline size_t wire_written(const struct wire_writer *w)
{
	return (size_t)(w->end - w->at);
}

/* Returns where the next n bytes belong, or NULL after a failure. */
static inline uint8_t *wire_room(struct wire_writer *w, size_t n)
{
	if (n > (size_t)(w->at - w->start) && wire_writer_grow(w, n) != 0)
		return NULL;
	return w->at -= n;
}

static inline void wire_write_varint(struct wire_writer *w, uint64_t v)
{
	/* A byte holds seven bits. 9 / 64 is slightly less than 1 / 7, and exact up to 64 bits. */
	unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1);
	uint8_t *p = wire_room(w, (bits * 9 + 64) / 64);

	if (p == NULL)
		return;
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p = (uint8_t)v;
}

static inline void wire_write_key(struct wire_writer *w, uint32_t field, enum wire_type type)
{
	wire_write_varint(w, (uint64_t)field << 3 | type);
}

/* Writes the head of a field. The value of the field is all that was written since wire_written
 * returned `before`. */
static inline void wire_write_head(struct wire_writer *w, uint32_t field, size_t before)
{
	wire_write_varint(w, wire_written(w) - before);
	wire_write_key(w, field, WIRE_TYPE_LENGTH);
}

#endif
