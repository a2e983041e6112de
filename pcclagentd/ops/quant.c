/* SPDX-License-Identifier: MIT
 *
 * Converts the mode of quantization of an operation to formats of the kernels.
 */
#include "pcclagentd/ops/ops_internal.h"
#include "proto/wire_quant_formats.h"

int op_quant_get(const struct wm_op_params *p, struct eng_quant *ret)
{
	char why[WIRE_QUANT_TEXT];
	struct wire_quant_formats formats;
	struct wire_quant q;

	*ret = (struct eng_quant){0};
	if (wire_quant_get(p->dtype, &p->quant, &q, why) < 0)
		return CC_ERR_INVAL;
	if (q.kind == WIRE_QUANT_NONE)
		return 0;
	formats = wire_quant_formats_of(&q, (enum krn_dtype)p->dtype);
	*ret = (struct eng_quant){.on = true, .sum = formats.sum, .result = formats.result};
	return 0;
}
