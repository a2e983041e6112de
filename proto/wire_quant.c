/* SPDX-License-Identifier: MIT */
#include "proto/wire_quant.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/cc_err.h"
#include "proto/wire_names.h"

/* Numbers of pcclDataType_t. */
enum { U8 = 0, I8 = 1, I16 = 2, U16 = 3, F16 = 8, BF16 = 9, F32 = 10, F64 = 11 };

#define KIND_MASK   0xffu
#define BLOCK_MASK  0xfu
#define BLOCK_LEAST 5u  /* log2(32) */
#define BLOCK_MOST  10u /* log2(1024) */
#define OPTIONS     (WIRE_QUANT_BF16_SCALE | WIRE_QUANT_MIXED | BLOCK_MASK << WIRE_QUANT_BLOCK_SHIFT)

__attribute__((format(printf, 2, 3))) static int refuse(char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, WIRE_QUANT_TEXT, fmt, ap);
	va_end(ap);
	return CC_ERR_INVAL;
}

static bool is_integer(uint32_t dtype)
{
	return dtype <= U16 || dtype == WIRE_DTYPE_INT4;
}

static bool is_algorithm(uint32_t algo)
{
	uint32_t kind = algo & KIND_MASK;

	if (algo > WIRE_QUANT_MAX)
		return false;
	return kind == WIRE_QUANT_BLOCKWISE ||
	       ((kind == WIRE_QUANT_MIN_MAX || kind == WIRE_QUANT_ZERO_POINT) && !(algo & OPTIONS));
}

/* Can elements of type `from` be quantized to `to`? A cast must save bytes. */
static bool is_pair(enum wire_quant_kind kind, uint32_t from, uint32_t to)
{
	if (from < F16 || from > F64)
		return false;
	if (kind == WIRE_QUANT_BLOCKWISE)
		return to == I8 || (to >= WIRE_DTYPE_INT4 && to <= WIRE_QUANT_DTYPE_MAX);
	return to <= U16 || ((to == F16 || to == BF16) && from >= F32);
}

/* Decodes the options of a blockwise algorithm. */
static int get_block(uint32_t algo, struct wire_quant *q, char *why)
{
	uint32_t log = algo >> WIRE_QUANT_BLOCK_SHIFT & BLOCK_MASK;
	bool four_bits = q->dtype == WIRE_DTYPE_INT4;

	if (log != 0 && (log < BLOCK_LEAST || log > BLOCK_MOST))
		return refuse(why,
			"quantization in blocks of 2^%" PRIu32 " elements: must be 2^%u to 2^%u",
			log, BLOCK_LEAST, BLOCK_MOST);
	if (log == 0)
		log = four_bits ? 5 : 8;
	q->block = UINT32_C(1) << log;
	q->bf16_scale = algo & WIRE_QUANT_BF16_SCALE;
	q->mixed = algo & WIRE_QUANT_MIXED;
	if (q->mixed && !four_bits)
		return refuse(why, "mixed quantization is only for int4, not for %s",
			wire_quant_dtype_name(q->dtype));
	return 0;
}

int wire_quant_get(uint32_t dtype, const struct wire_quant_numbers *n, struct wire_quant *ret,
	char why[WIRE_QUANT_TEXT])
{
	struct wire_quant q = {.kind = (enum wire_quant_kind)(n->algo & KIND_MASK),
		.dtype = n->dtype,
		.stochastic = n->algo & WIRE_QUANT_STOCHASTIC,
		.feedback = n->algo & WIRE_QUANT_FEEDBACK};
	bool blockwise = q.kind == WIRE_QUANT_BLOCKWISE;
	char name[WIRE_QUANT_NAME];

	if (n->algo == WIRE_QUANT_NONE) {
		*ret = (struct wire_quant){0};
		return 0;
	}
	if (!is_algorithm(n->algo))
		return refuse(why, "there is no quantization algorithm %" PRId32, (int32_t)n->algo);
	if (!is_pair(q.kind, dtype, q.dtype))
		return refuse(why, "%s elements cannot be quantized to %s by %s",
			wire_dtype_name(dtype), wire_quant_dtype_name(q.dtype),
			wire_quant_name(q.kind, name));
	if (q.stochastic && !is_integer(q.dtype))
		return refuse(why, "stochastic rounding is only for integers, not for %s",
			wire_quant_dtype_name(q.dtype));
	if (blockwise && get_block(n->algo, &q, why) < 0)
		return CC_ERR_INVAL;
	if (blockwise && n->hint > WIRE_HINT_MAX)
		return refuse(why, "there is no distribution hint %" PRIu32, n->hint);
	if (blockwise)
		q.hint = n->hint;
	*ret = q;
	return 0;
}

bool wire_quant_eq(const struct wire_quant_numbers *x, const struct wire_quant_numbers *y)
{
	return x->algo == y->algo && x->dtype == y->dtype && x->hint == y->hint;
}

static uint32_t log2_of(uint32_t n)
{
	uint32_t k = 0;

	while (n > UINT32_C(1) << k)
		k++;
	return k;
}

struct wire_quant_numbers wire_quant_put(const struct wire_quant *q)
{
	struct wire_quant_numbers n = {.algo = q->kind, .dtype = q->dtype, .hint = q->hint};

	if (q->stochastic)
		n.algo |= WIRE_QUANT_STOCHASTIC;
	if (q->bf16_scale)
		n.algo |= WIRE_QUANT_BF16_SCALE;
	if (q->mixed)
		n.algo |= WIRE_QUANT_MIXED;
	if (q->feedback)
		n.algo |= WIRE_QUANT_FEEDBACK;
	if (q->block > 0)
		n.algo |= log2_of(q->block) << WIRE_QUANT_BLOCK_SHIFT;
	return n;
}

static const char *kind_name(uint32_t algo)
{
	switch (algo & KIND_MASK) {
	case WIRE_QUANT_NONE:
		return "none";
	case WIRE_QUANT_MIN_MAX:
		return "minmax";
	case WIRE_QUANT_ZERO_POINT:
		return "zero-point-scale";
	case WIRE_QUANT_BLOCKWISE:
		return "blockwise";
	default:
		return "unknown";
	}
}

const char *wire_quant_name(uint32_t algo, char buf[WIRE_QUANT_NAME])
{
	uint32_t log = algo >> WIRE_QUANT_BLOCK_SHIFT & BLOCK_MASK;
	char block[16] = "";

	if (log != 0)
		(void)snprintf(block, sizeof block, " of %u", 1u << log);
	(void)snprintf(buf, WIRE_QUANT_NAME, "%s%s%s%s%s%s", kind_name(algo), block,
		algo & WIRE_QUANT_BF16_SCALE ? ", bf16 scales" : "",
		algo & WIRE_QUANT_STOCHASTIC ? ", stochastic" : "",
		algo & WIRE_QUANT_MIXED ? ", mixed" : "",
		algo & WIRE_QUANT_FEEDBACK ? ", error feedback" : "");
	return buf;
}

const char *wire_quant_dtype_name(uint32_t dtype)
{
	static const char *const names[] = {"int4", "float8 e4m3", "float8 e5m2"};

	return dtype >= WIRE_DTYPE_INT4 && dtype <= WIRE_QUANT_DTYPE_MAX
		       ? names[dtype - WIRE_DTYPE_INT4]
		       : wire_dtype_name(dtype);
}
