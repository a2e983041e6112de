/* SPDX-License-Identifier: MIT */
#include "topology/tpl_internal.h"

#define BYTES_MAX ((size_t)64 << 20) /* of all nodes */
#define FIXED     0x80000000u        /* of a constraint: the link is required, not excluded */

/* A set of constraints, with the cheapest assignment that fulfils them. */
struct tpl_node {
	double bound;
	uint32_t n_cycles, n_constraints;
	double *u, *v;
	uint32_t *next, *constraints; /* from << 16 | to, and FIXED */
};

static size_t node_bytes(uint32_t n, uint32_t n_constraints)
{
	return sizeof(struct tpl_node) + (size_t)2 * n * sizeof(double) +
	       ((size_t)n + n_constraints) * sizeof(uint32_t);
}

static struct tpl_node *node_new(struct tpl_branch *b, uint32_t n_constraints)
{
	size_t bytes = node_bytes(b->n, n_constraints);
	struct tpl_node *x = cc_must_zalloc(1, bytes);

	x->n_constraints = n_constraints;
	x->u = (double *)(void *)(x + 1);
	x->v = x->u + b->n;
	x->next = (uint32_t *)(void *)(x->v + b->n);
	x->constraints = x->next + b->n;
	b->bytes += bytes;
	return x;
}

static void node_free(struct tpl_branch *b, struct tpl_node *x)
{
	b->bytes -= node_bytes(b->n, x->n_constraints);
	free(x);
}

/* ---- the heap ---- */

/* The node with the lowest bound is first; among equal ones, the one that is closest to a ring. */
static bool is_before(const struct tpl_node *a, const struct tpl_node *b)
{
	return a->bound < b->bound || (a->bound == b->bound && a->n_cycles < b->n_cycles);
}

static void push(struct tpl_branch *b, struct tpl_node *x)
{
	size_t at;

	if (b->n_heap == b->cap)
		b->heap = cc_must_grow(b->heap, &b->cap, 64, sizeof(struct tpl_node *));
	for (at = b->n_heap++; at > 0 && is_before(x, b->heap[(at - 1) / 2]); at = (at - 1) / 2)
		b->heap[at] = b->heap[(at - 1) / 2];
	b->heap[at] = x;
}

static struct tpl_node *pop(struct tpl_branch *b)
{
	struct tpl_node *first, *last;
	size_t at = 0, child;

	if (b->n_heap == 0)
		return NULL;
	first = b->heap[0];
	last = b->heap[--b->n_heap];
	while ((child = 2 * at + 1) < b->n_heap) {
		if (child + 1 < b->n_heap && is_before(b->heap[child + 1], b->heap[child]))
			child++;
		if (!is_before(b->heap[child], last))
			break;
		b->heap[at] = b->heap[child];
		at = child;
	}
	b->heap[at] = last;
	return first;
}

static void drop_all(struct tpl_branch *b)
{
	struct tpl_node *x;

	while ((x = pop(b)) != NULL)
		node_free(b, x);
	if (b->node)
		node_free(b, b->node);
	b->node = NULL;
}

/* ---- the search ---- */

void tpl_branch_init(struct tpl_branch *b, const struct tpl_costs *c)
{
	*b = (struct tpl_branch){
		.n = c->n,
		.costs = c,
		.c = cc_must_copy(c->c, (size_t)c->n * c->n, sizeof *b->c),
		.cycle = cc_must_zalloc(c->n, sizeof *b->cycle),
		.cycle_of = cc_must_zalloc(c->n, sizeof *b->cycle_of),
		.count = cc_must_zalloc(c->n, sizeof *b->count),
		.bound = -INFINITY,
	};
	tpl_ap_init(&b->ap, c->n);
}

void tpl_branch_clear(struct tpl_branch *b)
{
	drop_all(b);
	free(b->heap);
	free(b->c);
	free(b->cycle);
	free(b->cycle_of);
	free(b->count);
	tpl_ap_clear(&b->ap);
}

static void save_state(const struct tpl_branch *b, const struct tpl_ap *from, struct tpl_node *to)
{
	memcpy(to->next, from->next, b->n * sizeof *to->next);
	memcpy(to->u, from->u, b->n * sizeof *to->u);
	memcpy(to->v, from->v, b->n * sizeof *to->v);
}

void tpl_branch_begin(struct tpl_branch *b, const struct tpl_ap *root)
{
	struct tpl_node *x = node_new(b, 0);

	x->bound = tpl_ap_bound(root);
	x->n_cycles = tpl_cycles(b->n, root->next, b->cycle_of);
	save_state(b, root, x);
	push(b, x);
}

static double *link_of(struct tpl_branch *b, uint32_t constraint)
{
	return &b->c[(size_t)((constraint & ~FIXED) >> 16) * b->n + (constraint & 0xffff)];
}

/* Applies the constraints of a node to the costs and to b->ap, or undoes this. */
static void constrain(struct tpl_branch *b, const struct tpl_node *x, bool apply)
{
	for (uint32_t i = 0; i < x->n_constraints; i++) {
		uint32_t k = x->constraints[i];

		if (k & FIXED)
			b->ap.fixed[k & 0xffff] = apply;
		else if (apply)
			*link_of(b, k) = b->costs->never;
		else
			*link_of(b, k) = b->costs->c[link_of(b, k) - b->c];
	}
}

/* Chooses the cycle with the fewest links that are not fixed: so there are the fewest children. The
 * hosts of these links become b->cycle. */
static void choose_cycle(struct tpl_branch *b)
{
	const uint32_t *next = b->node->next;
	uint32_t cycles = tpl_cycles(b->n, next, b->cycle_of), least = 0;

	memset(b->count, 0, b->n * sizeof *b->count);
	for (uint32_t i = 0; i < b->n; i++)
		b->count[b->cycle_of[i]] += !b->ap.fixed[next[i]];
	for (uint32_t k = 1; k < cycles; k++)
		if (b->count[k] < b->count[least])
			least = k;
	b->n_cycle = 0;
	for (uint32_t i = 0; i < b->n; i++)
		if (b->cycle_of[i] == least && !b->ap.fixed[next[i]])
			b->cycle[b->n_cycle++] = i;
	b->child = 0;
}

static void open_node(struct tpl_branch *b, struct tpl_node *x)
{
	b->node = x;
	constrain(b, x, true);
	choose_cycle(b);
}

/* Undoes everything that belongs to the node and its children. */
static void close_node(struct tpl_branch *b)
{
	constrain(b, b->node, false);
	for (uint32_t i = 0; i < b->n_cycle; i++)
		b->ap.fixed[b->node->next[b->cycle[i]]] = false;
	node_free(b, b->node);
	b->node = NULL;
}

static void load_state(struct tpl_branch *b)
{
	memcpy(b->ap.next, b->node->next, b->n * sizeof *b->ap.next);
	memcpy(b->ap.u, b->node->u, b->n * sizeof *b->ap.u);
	memcpy(b->ap.v, b->node->v, b->n * sizeof *b->ap.v);
	for (uint32_t i = 0; i < b->n; i++)
		b->ap.prev[b->ap.next[i]] = i;
}

/* Makes a node of the child that was solved: the constraints of its parent, the links of the cycle
 * before its own, which are fixed, and its own link, which is excluded. */
static void keep_child(struct tpl_branch *b, double bound, uint32_t n_cycles)
{
	const struct tpl_node *parent = b->node;
	struct tpl_node *x = node_new(b, parent->n_constraints + b->child + 1);
	uint32_t at = parent->n_constraints;

	x->bound = bound;
	x->n_cycles = n_cycles;
	save_state(b, &b->ap, x);
	if (at > 0)
		memcpy(x->constraints, parent->constraints, at * sizeof *x->constraints);
	for (uint32_t i = 0; i <= b->child; i++)
		x->constraints[at + i] =
			b->cycle[i] << 16 | parent->next[b->cycle[i]] | (i < b->child ? FIXED : 0);
	push(b, x);
}

/* Excludes the child's link from the parent's assignment, and solves the rest. */
static void solve_child(struct tpl_branch *b, double *best, uint32_t *ret_ring)
{
	uint32_t i = b->cycle[b->child], j = b->node->next[i], cycles;
	double *link = &b->c[(size_t)i * b->n + j];
	double limit = *best - b->costs->eps - b->node->bound, bound;

	load_state(b);
	*link = b->costs->never;
	b->ap.next[i] = TPL_NONE;
	b->ap.prev[j] = TPL_NONE;
	bound = b->node->bound + tpl_ap_augment(&b->ap, b->c, i, limit);
	*link = b->costs->c[link - b->c];
	if (!tpl_costs_possible(b->costs, bound) ||
		tpl_costs_round(b->costs, bound) >= *best - b->costs->eps)
		return;
	cycles = tpl_cycles(b->n, b->ap.next, b->cycle_of);
	if (cycles > 1) {
		keep_child(b, bound, cycles);
		return;
	}
	tpl_cycle_order(b->n, b->ap.next, ret_ring);
	*best = tpl_ring_cost(b->n, b->costs->c, ret_ring);
}

/* Takes the next node that can lead to a better ring. Returns whether there is one. */
static bool next_node(struct tpl_branch *b, double best)
{
	struct tpl_node *x = pop(b);

	if (!x) {
		b->bound = fmax(b->bound, best);
		return false;
	}
	b->bound = fmax(b->bound, fmin(tpl_costs_round(b->costs, x->bound), best));
	if (tpl_costs_round(b->costs, x->bound) >= best - b->costs->eps) {
		node_free(b, x);
		drop_all(b);
		b->bound = best;
		return false;
	}
	open_node(b, x);
	return true;
}

bool tpl_branch_step(struct tpl_branch *b, double *best, uint32_t *ret_ring)
{
	if (b->full)
		return true;
	if (!b->node && !next_node(b, *best))
		return true;
	if (b->child < b->n_cycle) {
		solve_child(b, best, ret_ring);
		/* The link is part of all later children. */
		b->ap.fixed[b->node->next[b->cycle[b->child]]] = true;
		b->child++;
	}
	if (b->child == b->n_cycle)
		close_node(b);
	if (b->bytes > BYTES_MAX) {
		b->full = true;
		drop_all(b);
	}
	return b->full;
}
