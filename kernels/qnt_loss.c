/* SPDX-License-Identifier: MIT
 *
 * What quantization loses. Written so that the compiler can vectorize the loops.
 */
#include <string.h>

#include "kernels/qnt.h"

/* loss = (before - after) * factor, or with `more`, loss = loss + (before - after) * factor. If
 * this is NaN or infinite, it becomes 0. Without `more`, `before` and `loss` may be the same array.
 */
static void loss_f32(
	float *loss, const float *before, const float *after, size_t n, float factor, bool more)
{
	for (size_t i = 0; i < n; i++) {
		float x = (before[i] - after[i]) * factor + (more ? loss[i] : 0);

		loss[i] = x - x == 0 ? x : 0;
	}
}

static void loss_f64(
	double *loss, const double *before, const double *after, size_t n, double factor, bool more)
{
	for (size_t i = 0; i < n; i++) {
		double x = (before[i] - after[i]) * factor + (more ? loss[i] : 0);

		loss[i] = x - x == 0 ? x : 0;
	}
}

void qnt_encode_loss(const struct qnt_format *f, void *wire, void *acc, size_t n,
	const struct qnt_noise *noise, const struct qnt_loss *l)
{
	enum krn_dtype type = qnt_acc_dtype(f);
	void *before = l->buffer ? l->buffer : l->to;

	memcpy(before, acc, n * krn_dtype_size(type));
	qnt_encode(f, wire, acc, n, true, noise);
	if (type == KRN_F64)
		loss_f64(l->to, before, acc, n, l->factor, l->buffer);
	else
		loss_f32(l->to, before, acc, n, (float)l->factor, l->buffer);
}
