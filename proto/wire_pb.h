/* SPDX-License-Identifier: MIT
 *
 * Functions that the protobuf codecs share: checks of single fields, and conversions of plain
 * fields to protobuf fields. Decoding functions return 0, or CC_ERR_PROTO with *why = text.
 */
#ifndef WIRE_PB_H
#define WIRE_PB_H

#include <stdbool.h>

#include "common/cc_addr.h"
#include "common/cc_id.h"
#include "proto/wire_arena.h"

#define WIRE_STR_(x) #x
#define WIRE_STR(x)  WIRE_STR_(x) /* the value of a macro as a text */

#define WIRE_COUNT_MAX ((uint64_t)1 << 48) /* the largest number of elements or bytes */
#define WIRE_CODE_MAX  255u                /* pcclResult_t */
#define WIRE_DTYPE_MAX 11u                 /* pcclDataType_t */
#define WIRE_OP_MAX    4u                  /* pcclRedOp_t */
#define WIRE_QUANT_MAX 2u                  /* pcclQuantizationAlgorithm_t */

int wire_bad(const char **why, const char *text);
/* Decodes an id, which must have 16 bytes, not all zero. */
int wire_get_id(struct cc_id *ret, ProtobufCBinaryData b, const char **why, const char *text);
/* Does the same as wire_get_id, but also accepts an empty field and returns the zero id for it. */
int wire_get_id_or_none(
	struct cc_id *ret, ProtobufCBinaryData b, const char **why, const char *text);
/* Decodes a key, which must have 32 bytes, not all zero. */
int wire_get_key(struct cc_key *ret, ProtobufCBinaryData b, const char **why, const char *text);
/* Does the same, but also accepts an empty field and returns the zero key for it. */
int wire_get_key_or_none(
	struct cc_key *ret, ProtobufCBinaryData b, const char **why, const char *text);
/* Decode a name or a text into dst, which has `size` bytes. A name with unclean bytes is refused; a
 * text is cleaned. */
int wire_get_name(char *dst, size_t size, const char *s, const char **why, const char *text);
int wire_get_text(char *dst, size_t size, const char *s, const char **why, const char *text);
/* Decodes an address with a port from port_min to 65535. */
int wire_get_addr(struct cc_addr *ret, ProtobufCBinaryData ip, uint32_t port, uint32_t port_min,
	const char **why, const char *text);
/* Checks that min >= 1, max >= min and max <= 65535. */
int wire_check_versions(uint32_t min, uint32_t max, const char **why, const char *text);

/* Converts an id. The result points into `id`, which must stay valid. It is empty for the zero id.
 */
ProtobufCBinaryData wire_put_id(const struct cc_id *id);
/* Does the same for a key. */
ProtobufCBinaryData wire_put_key(const struct cc_key *key);
ProtobufCBinaryData wire_put_ip(const struct cc_addr *a);
/* Returns a clean copy of s, which has at most `size` bytes. Returns "" on failure, which the arena
 * remembers. */
char *wire_put_text(struct wire_arena *a, const char *s, size_t size);

#endif
