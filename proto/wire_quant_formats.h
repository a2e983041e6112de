/* SPDX-License-Identifier: MIT
 *
 * The formats of the kernels (kernels/qnt.h) for a mode of quantization. Pure.
 */
#ifndef WIRE_QUANT_FORMATS_H
#define WIRE_QUANT_FORMATS_H

#include "kernels/qnt.h"
#include "proto/wire_quant.h"

struct wire_quant_formats {
	struct qnt_format sum;    /* of operands and partial sums */
	struct qnt_format result; /* of final values */
};

/* q: a mode that wire_quant_get has decoded for elements of this type, not WIRE_QUANT_NONE. */
struct wire_quant_formats wire_quant_formats_of(const struct wire_quant *q, enum krn_dtype dtype);

#endif
