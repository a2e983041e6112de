/* SPDX-License-Identifier: MIT */
#include "pccl-bench/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"

struct segment {
	const struct bch_sim *s;
	uint32_t chunk;
	uint64_t first;
	size_t n;
	uint8_t *wires; /* what each host sends to its parent */
	size_t stride;  /* bytes of each */
	void *acc, *own, *before;
};

size_t bch_sim_bytes(const struct bch_sim *s, const struct qnt_format *f, size_t n)
{
	return s->quantized ? qnt_wire_size(f, n) : n * krn_dtype_size(qnt_acc_dtype(f));
}

static uint8_t *wire_of(const struct segment *g, uint32_t pos)
{
	return g->wires + pos * g->stride;
}

/* Encodes acc, and replaces it by what is decoded. */
static void encode(const struct segment *g, const struct qnt_format *f, uint32_t pos,
	enum bch_sim_use use, void *acc)
{
	const struct bch_sim *s = g->s;
	struct qnt_noise noise = {.first = g->first};

	if (!s->quantized) {
		memcpy(wire_of(g, pos), acc, bch_sim_bytes(s, f, g->n));
		return;
	}
	if (f->stochastic)
		noise.key = s->noise_key(s->arg, pos, use);
	if (s->encoded)
		memcpy(g->before, acc, g->n * krn_dtype_size(qnt_acc_dtype(f)));
	qnt_encode(f, wire_of(g, pos), acc, g->n, true, &noise);
	if (s->encoded)
		s->encoded(s->arg, pos, use, g->first, g->before, acc, g->n);
}

static void add(const struct segment *g, const void *more, bool first)
{
	enum krn_dtype type = qnt_acc_dtype(&g->s->sum);
	const void *srcs[] = {g->acc, more};

	if (first)
		memcpy(g->acc, more, g->n * krn_dtype_size(type));
	else
		krn_reduce(type, g->s->op, g->acc, srcs, 2, g->n);
}

static void add_wire(const struct segment *g, uint32_t pos, bool first)
{
	if (!g->s->quantized)
		add(g, wire_of(g, pos), first);
	else if (first)
		qnt_decode(&g->s->sum, g->acc, wire_of(g, pos), g->n);
	else
		qnt_decode_reduce(&g->s->sum, g->s->op, g->acc, wire_of(g, pos), g->n);
}

/* On the ring a host quantizes its own operand, too, before it adds it. */
static void add_own(const struct segment *g, uint32_t pos, bool first, bool leaf)
{
	const struct bch_sim *s = g->s;

	s->operand(s->arg, pos, g->first, g->own, g->n);
	if (s->route.algo == CC_ALGO_RING && !leaf)
		encode(g, &s->sum, pos, BCH_SIM_OPERAND, g->own);
	add(g, g->own, first);
}

/* acc = the sum of the host's operand and of what its children have sent, in the order of their
 * positions. Returns whether the host has no children. */
static bool sum_up(const struct segment *g, uint32_t pos)
{
	uint32_t children[CC_ROUTE_FANOUT_MAX], i = 0;
	uint32_t n = cc_route_children(&g->s->route, g->chunk, pos, children);

	for (; i < n && (n == 1 || children[i] < pos); i++)
		add_wire(g, children[i], i == 0);
	add_own(g, pos, i == 0, n == 0);
	for (; i < n; i++)
		add_wire(g, children[i], false);
	return n == 0;
}

/* Returns the position of the host that sends as number k, so that children come before their
 * parents. The owner is the last one. */
static uint32_t sender(const struct segment *g, uint32_t k)
{
	const struct cc_route *r = &g->s->route;
	uint32_t distance = r->algo == CC_ALGO_RING ? (k + 1) % r->hosts : r->hosts - 1 - k;

	return cc_route_after(r, cc_route_owner(r, g->chunk), distance);
}

static void run(const struct segment *g)
{
	const struct bch_sim *s = g->s;
	uint32_t owner = cc_route_owner(&s->route, g->chunk);

	for (uint32_t k = 0; k + 1 < s->route.hosts; k++) {
		uint32_t pos = sender(g, k);
		bool leaf = sum_up(g, pos);

		encode(g, &s->sum, pos, leaf ? BCH_SIM_OPERAND : BCH_SIM_SUM, g->acc);
	}
	(void)sum_up(g, owner);
	if (s->op == KRN_AVG)
		krn_divide(qnt_acc_dtype(&s->sum), g->acc, g->n, s->world_size);
	encode(g, &s->result, owner, BCH_SIM_RESULT, g->acc);
}

int bch_sim_segment(const struct bch_sim *s, uint32_t chunk, uint64_t first, void *acc, size_t n)
{
	struct segment g = {.s = s, .chunk = chunk, .first = first, .n = n, .acc = acc};
	size_t sum = bch_sim_bytes(s, &s->sum, n), result = bch_sim_bytes(s, &s->result, n);
	int err = CC_ERR_NOMEM;

	if (n == 0)
		return 0;
	g.stride = sum > result ? sum : result;
	g.wires = malloc(g.stride * s->route.hosts);
	g.own = malloc(n * krn_dtype_size(qnt_acc_dtype(&s->sum)));
	g.before = malloc(n * krn_dtype_size(qnt_acc_dtype(&s->sum)));
	if (g.wires && g.own && g.before) {
		run(&g);
		err = 0;
	}
	free(g.wires);
	free(g.own);
	free(g.before);
	return err;
}
