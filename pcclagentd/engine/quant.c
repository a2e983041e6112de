/* SPDX-License-Identifier: MIT
 *
 * Quantized transfers: segments are encoded for the network (kernels/qnt.h), and computed in the
 * accumulator type of the format. The encoded segments that this host sends on lie in the outbox.
 */
#include <stdlib.h>

#include "common/cc_err.h"
#include "pcclagentd/engine/eng_internal.h"

/* A segment has the most elements if each element has two bytes. In the accumulator type such an
 * element has four bytes. */
#define ACC_BYTES (2 * CC_PLAN_SEGMENT_MAX)

/* Uses of the noise, for eng_noise_key. */
enum noise_use { NOISE_OPERAND = 0, NOISE_SUM, NOISE_RESULT };

int eng_quant_buffers_new(struct eng_quant_buffers *b)
{
	if (b->acc)
		return 0;
	b->acc = aligned_alloc(64, ACC_BYTES);
	b->own = aligned_alloc(64, ACC_BYTES);
	b->native = aligned_alloc(64, CC_PLAN_SEGMENT_MAX);
	b->wire = aligned_alloc(64, ENG_BUFFER_BYTES);
	if (b->acc && b->own && b->native && b->wire)
		return 0;
	eng_quant_buffers_free(b);
	return CC_ERR_NOMEM;
}

void eng_quant_buffers_free(struct eng_quant_buffers *b)
{
	free(b->acc);
	free(b->own);
	free(b->native);
	free(b->wire);
	*b = (struct eng_quant_buffers){0};
}

/* One segment, as the functions below use it. */
struct part {
	const struct eng_xfer *x;
	const struct eng_xfer_spec *s;
	uint32_t seg;
	struct cc_span span;
	size_t n; /* elements */
	enum krn_dtype acc_type;
};

static struct part part_of(const struct eng_xfer *x, uint32_t seg)
{
	struct part p = {.x = x, .s = &x->spec, .seg = seg};

	p.span = cc_plan_segment(&p.s->plan, seg);
	p.n = p.span.len / p.s->plan.esize;
	p.acc_type = qnt_acc_dtype(&p.s->quant.sum);
	return p;
}

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t eng_noise_key(const struct eng_xfer_spec *spec, uint32_t use)
{
	return mix(mix(spec->seq) + ((uint64_t)spec->pos << 2 | use));
}

static uint64_t acc_size(const struct eng_xfer_spec *s)
{
	return krn_dtype_size(qnt_acc_dtype(&s->quant.sum));
}

void eng_add_residual(const struct eng_xfer_spec *spec, void *acc, uint64_t first, size_t n)
{
	const void *srcs[] = {acc, (const uint8_t *)spec->residual + first * acc_size(spec)};

	if (spec->residual)
		krn_reduce(qnt_acc_dtype(&spec->quant.sum), KRN_SUM, acc, srcs, 2, n);
}

void *eng_loss_at(const struct eng_xfer_spec *spec, uint64_t element)
{
	return (uint8_t *)spec->loss + element * acc_size(spec);
}

/* `acc` may be b->own only if the operand is encoded (NOISE_OPERAND). */
static void encode(const struct part *p, const struct eng_quant_buffers *b,
	const struct qnt_format *f, enum noise_use use, void *wire, void *acc, bool adopt)
{
	struct qnt_noise noise = {
		.key = eng_noise_key(p->s, use), .first = p->span.off / p->s->plan.esize};
	struct qnt_loss loss = {.factor = 1};

	if (!p->s->loss) {
		qnt_encode(f, wire, acc, p->n, adopt, &noise);
		return;
	}
	loss.to = eng_loss_at(p->s, noise.first);
	/* On a ring, the operand of this host was encoded before, and its loss was written. The
	 * loss of the partial sum or result is added to that loss. */
	if (use != NOISE_OPERAND && cc_route_is_chain(p->s->route))
		loss.buffer = b->own;
	/* The result is divided by the world size, but the operands are not. */
	if (use == NOISE_RESULT && p->s->op == KRN_AVG)
		loss.factor = p->s->world_size;
	qnt_encode_loss(f, wire, acc, p->n, &noise, &loss);
}

/* acc = the operands of this host, and its residual. On a ring, load_own quantizes these
 * operands, so that this host does not use digits that no other host has. */
static void load_operands(const struct part *p, const struct eng_quant_buffers *b, void *acc)
{
	const void *in = p->s->members[0].in + p->span.off;

	if (p->s->n_members > 1) {
		eng_xfer_combine_local(p->x, p->seg, b->native);
		in = b->native;
	}
	qnt_load(&p->s->quant.sum, acc, in, p->n);
	eng_add_residual(p->s, acc, p->span.off / p->s->plan.esize, p->n);
}

static void load_own(const struct part *p, const struct eng_quant_buffers *b, void *acc)
{
	load_operands(p, b, acc);
	if (cc_route_is_chain(p->s->route))
		encode(p, b, &p->s->quant.sum, NOISE_OPERAND, b->wire, acc, true);
}

/* acc = acc op the operands of this host, or these operands if there is nothing in acc yet. */
static void add_own(const struct part *p, const struct eng_quant_buffers *b, bool first)
{
	const void *srcs[] = {b->acc, b->own};

	load_own(p, b, first ? b->acc : b->own);
	if (!first)
		krn_reduce(p->acc_type, p->s->op, b->acc, srcs, 2, p->n);
}

static void add_wire(
	const struct part *p, const struct eng_quant_buffers *b, const uint8_t *wire, bool first)
{
	if (first)
		qnt_decode(&p->s->quant.sum, b->acc, wire, p->n);
	else
		qnt_decode_reduce(&p->s->quant.sum, p->s->op, b->acc, wire, p->n);
}

/* acc = the partial sums of all children and the operands of this host. */
static void sum_up(const struct part *p, const struct eng_quant_buffers *b, const uint8_t *with)
{
	struct cc_route route = eng_route_of(p->s);
	uint32_t list[CC_ROUTE_FANOUT_MAX], i = 0;
	uint32_t n = cc_route_children(&route, eng_chunk_of(p->s, p->seg), p->s->pos, list);

	if (n == 1) {
		add_wire(p, b, with, true);
		add_own(p, b, false);
		return;
	}
	for (; i < n && list[i] < p->s->pos; i++)
		add_wire(p, b, eng_xfer_input_at(p->x, p->seg, i), i == 0);
	add_own(p, b, i == 0);
	for (; i < n; i++)
		add_wire(p, b, eng_xfer_input_at(p->x, p->seg, i), false);
}

void eng_quant_origin(
	const struct eng_xfer *x, uint32_t seg, const struct eng_quant_buffers *b, uint8_t *wire)
{
	struct part p = part_of(x, seg);

	load_operands(&p, b, b->acc);
	encode(&p, b, &p.s->quant.sum, NOISE_OPERAND, wire, b->acc, false);
}

void eng_quant_reduce(const struct eng_xfer *x, uint32_t seg, const struct eng_quant_buffers *b,
	const uint8_t *with)
{
	struct part p = part_of(x, seg);

	sum_up(&p, b, with);
	encode(&p, b, &p.s->quant.sum, NOISE_SUM, eng_xfer_outbox_at(x, seg), b->acc, false);
}

void eng_quant_finish(const struct eng_xfer *x, uint32_t seg, const struct eng_quant_buffers *b,
	const uint8_t *with, uint8_t *dst)
{
	struct part p = part_of(x, seg);

	sum_up(&p, b, with);
	if (p.s->op == KRN_AVG)
		krn_divide(p.acc_type, b->acc, p.n, p.s->world_size);
	/* The owner adopts the values that the other hosts will decode. */
	encode(&p, b, &p.s->quant.result, NOISE_RESULT, eng_xfer_outbox_at(x, seg), b->acc, true);
	qnt_store(&p.s->quant.result, dst, b->acc, p.n);
}

void eng_quant_decode(const struct eng_xfer *x, uint32_t seg, const struct eng_quant_buffers *b,
	const uint8_t *wire, uint8_t *dst)
{
	struct part p = part_of(x, seg);

	qnt_decode(&p.s->quant.result, b->acc, wire, p.n);
	qnt_store(&p.s->quant.result, dst, b->acc, p.n);
}
