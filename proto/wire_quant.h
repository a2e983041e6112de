/* SPDX-License-Identifier: MIT
 *
 * The modes of quantization, as numbers of the public header and decoded. Pure.
 *
 * The number of an algorithm (pcclQuantizationAlgorithm_t) consists of a kind, and of options from
 * bit 8 on:
 *
 *   bits 0 .. 7   enum wire_quant_kind
 *   bits 8 .. 11  log2 of the elements of a block, 5 .. 10; 0: the default
 *   bit 12        the scales are bf16
 *   bit 13        stochastic rounding
 *   bit 14        mixed: results are sent as int8 in blocks of 256, whatever the type of the sums
 *   bit 15        error feedback; not in the public header, because pcclSetErrorFeedback sets it
 */
#ifndef WIRE_QUANT_H
#define WIRE_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_quant_kind {
	WIRE_QUANT_NONE = 0,
	WIRE_QUANT_MIN_MAX = 1,
	WIRE_QUANT_ZERO_POINT = 2,
	WIRE_QUANT_BLOCKWISE = 64,
};

#define WIRE_QUANT_BLOCK_SHIFT 8u
#define WIRE_QUANT_BF16_SCALE  (1u << 12)
#define WIRE_QUANT_STOCHASTIC  (1u << 13)
#define WIRE_QUANT_MIXED       (1u << 14)
#define WIRE_QUANT_FEEDBACK    (1u << 15)
#define WIRE_QUANT_MIXED_BLOCK 256u             /* elements of a block of a result */
#define WIRE_QUANT_MAX         ((1u << 16) - 1) /* the largest number of an algorithm */

/* Values of pcclDataType_t that exist only on the network. */
#define WIRE_DTYPE_INT4      64u
#define WIRE_DTYPE_F8E4M3    65u
#define WIRE_DTYPE_F8E5M2    66u
#define WIRE_QUANT_DTYPE_MAX WIRE_DTYPE_F8E5M2

#define WIRE_HINT_MAX 2u /* pcclDistributionHint_t */

/* The numbers of one operation. */
struct wire_quant_numbers {
	uint32_t algo;  /* pcclQuantizationAlgorithm_t */
	uint32_t dtype; /* pcclDataType_t, on the network */
	uint32_t hint;  /* pcclDistributionHint_t */
};

struct wire_quant {
	enum wire_quant_kind kind;
	uint32_t dtype; /* on the network */
	uint32_t block; /* elements of a block; only of BLOCKWISE */
	bool bf16_scale, stochastic, mixed, feedback;
	uint32_t hint; /* only of BLOCKWISE */
};

#define WIRE_QUANT_TEXT 128

/*
 * Decodes the mode for operands of type `dtype` (pcclDataType_t). Returns 0, or CC_ERR_INVAL with
 * the reason in `why`, which names all numbers that do not fit together. Any numbers may be given.
 */
int wire_quant_get(uint32_t dtype, const struct wire_quant_numbers *n, struct wire_quant *ret,
	char why[WIRE_QUANT_TEXT]);
bool wire_quant_eq(const struct wire_quant_numbers *x, const struct wire_quant_numbers *y);
/* Returns the numbers of a mode in their normal form: defaults are written out, and numbers without
 * an effect are 0. So equal modes have equal numbers. */
struct wire_quant_numbers wire_quant_put(const struct wire_quant *q);

/* Writes the name of an algorithm for sentences, such as "minmax" or "blockwise of 32, mixed". */
#define WIRE_QUANT_NAME 80
const char *wire_quant_name(uint32_t algo, char buf[WIRE_QUANT_NAME]);
/* Returns the name of a type on the network. */
const char *wire_quant_dtype_name(uint32_t dtype);

#endif
