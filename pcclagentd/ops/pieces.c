/* SPDX-License-Identifier: MIT
 *
 * Quantized operands of the eager path. An operand is encoded in pieces, so that a host can decode
 * and reduce a piece while the next one arrives. Each host decodes the same bytes of all operands,
 * its own ones included, so all hosts compute the same result.
 */
#include <stdlib.h>

#include "pcclagentd/ops/ops_internal.h"

#define PIECE_BYTES ((uint64_t)64 << 10) /* bytes of the operand */

static uint64_t elements(const struct eng_xfer_spec *s)
{
	return PIECE_BYTES / s->plan.esize;
}

/* Returns the elements of the piece that begins with element `from`. */
static uint64_t length(const struct eng_xfer_spec *s, uint64_t from)
{
	uint64_t left = s->plan.count - from;

	return left < elements(s) ? left : elements(s);
}

uint64_t op_pieces_size(const struct eng_xfer_spec *s)
{
	const struct qnt_format *f = &s->quant.sum;
	uint64_t full = s->plan.count / elements(s), rest = s->plan.count % elements(s);

	return full * qnt_wire_size(f, elements(s)) + qnt_wire_size(f, rest);
}

void *op_pieces_buffer(struct ops *o)
{
	/* A piece has the most elements if each element has two bytes. In the accumulator type such
	 * an element has four bytes. */
	if (!o->piece)
		o->piece = aligned_alloc(64, 2 * PIECE_BYTES);
	return o->piece;
}

void op_pieces_encode(
	const struct eng_xfer_spec *s, void *acc, const uint8_t *operand, uint8_t *wire)
{
	const struct qnt_format *f = &s->quant.sum;

	for (uint64_t i = 0; i < s->plan.count; i += length(s, i)) {
		struct qnt_noise noise = {.key = eng_noise_key(s, 0), .first = i};
		uint64_t n = length(s, i);

		qnt_load(f, acc, operand + i * s->plan.esize, n);
		eng_add_residual(s, acc, i, n);
		if (s->loss)
			qnt_encode_loss(f, wire, acc, n, &noise,
				&(struct qnt_loss){.to = eng_loss_at(s, i), .factor = 1});
		else
			qnt_encode(f, wire, acc, n, false, &noise);
		wire += qnt_wire_size(f, n);
	}
}

static void reduce_piece(const struct eng_xfer_spec *s, void *acc, const void *const *wires,
	uint64_t off, uint64_t n)
{
	const struct qnt_format *f = &s->quant.sum;

	qnt_decode(f, acc, (const uint8_t *)wires[0] + off, n);
	for (uint32_t h = 1; h < s->plan.hosts; h++)
		qnt_decode_reduce(f, s->op, acc, (const uint8_t *)wires[h] + off, n);
	if (s->op == KRN_AVG)
		krn_divide(qnt_acc_dtype(f), acc, n, s->world_size);
}

uint64_t op_pieces_reduce(const struct eng_xfer_spec *s, void *acc, const void *const *wires,
	uint64_t from, uint64_t to)
{
	const struct qnt_format *f = &s->quant.sum;
	uint64_t full = qnt_wire_size(f, elements(s));
	uint64_t i = from / full * elements(s);

	while (i < s->plan.count && from + qnt_wire_size(f, length(s, i)) <= to) {
		uint64_t n = length(s, i);

		reduce_piece(s, acc, wires, from, n);
		qnt_store(f, s->area + i * s->plan.esize, acc, n);
		from += qnt_wire_size(f, n);
		i += n;
	}
	return from;
}
