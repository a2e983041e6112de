/* SPDX-License-Identifier: MIT */
#include "proto/wire_quant_formats.h"

static enum qnt_code code_of(const struct wire_quant *q)
{
	static const enum qnt_code codes[] = {[KRN_U8] = QNT_U8,
		[KRN_I8] = QNT_I8,
		[KRN_I16] = QNT_I16,
		[KRN_U16] = QNT_U16,
		[KRN_F16] = QNT_F16,
		[KRN_BF16] = QNT_BF16};

	switch (q->dtype) {
	case WIRE_DTYPE_INT4:
		/* The levels of QNT_N4 are not evenly spaced, so they cannot be rounded
		 * stochastically. */
		return q->hint == QNT_HINT_NORMAL && !q->stochastic ? QNT_N4 : QNT_I4;
	case WIRE_DTYPE_F8E4M3:
		return QNT_E4M3;
	case WIRE_DTYPE_F8E5M2:
		return QNT_E5M2;
	default:
		return codes[q->dtype];
	}
}

static enum qnt_scheme scheme_of(const struct wire_quant *q)
{
	if (q->kind == WIRE_QUANT_BLOCKWISE)
		return QNT_BLOCK;
	if (q->dtype == KRN_F16 || q->dtype == KRN_BF16)
		return QNT_CAST;
	return q->kind == WIRE_QUANT_MIN_MAX ? QNT_MIN_MAX : QNT_ZERO_POINT;
}

struct wire_quant_formats wire_quant_formats_of(const struct wire_quant *q, enum krn_dtype dtype)
{
	struct wire_quant_formats ret = {.sum = {.dtype = dtype,
						 .scheme = scheme_of(q),
						 .code = code_of(q),
						 .block = q->block,
						 .bf16_scale = q->bf16_scale,
						 .hint = (enum qnt_hint)q->hint,
						 .stochastic = q->stochastic}};

	ret.result = ret.sum;
	if (q->mixed) {
		ret.result.code = QNT_I8;
		ret.result.block = WIRE_QUANT_MIXED_BLOCK;
	}
	return ret;
}
