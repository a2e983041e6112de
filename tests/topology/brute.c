/* SPDX-License-Identifier: MIT */
#include "tests/topology/brute.h"

#include <math.h>
#include <string.h>

/* ---- random problems ---- */

static double random_rate(struct tl_rng *r, enum brute_kind kind, bool same_site)
{
	switch (kind) {
	case BRUTE_COARSE:
		return (double)tl_range(r, 1, 4);
	case BRUTE_SITES:
		if (same_site)
			return (double)tl_range(r, 500, 1000);
		return tl_range(r, 0, 3) == 0 ? 0 : (double)tl_range(r, 1, 50);
	case BRUTE_SPARSE:
		return tl_range(r, 0, 2) > 0 ? 0 : (double)tl_range(r, 1, 1000);
	default:
		return (double)tl_range(r, 1, 100000) / 100;
	}
}

void brute_fill(struct tl_rng *r, struct brute *b, uint32_t n, enum brute_kind kind)
{
	memset(b, 0, sizeof *b);
	b->n = n;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++) {
			double rate = random_rate(r, kind, (i < n / 2) == (j < n / 2));

			b->rate[i * n + j] = i == j ? NAN : rate;
			b->cost[i * n + j] = i == j ? NAN : rate > 0 ? 1 / rate : INFINITY;
		}
}

void brute_fill_caps(struct tl_rng *r, struct brute *b)
{
	for (uint32_t i = 0; i < b->n; i++) {
		b->out[i] = tl_range(r, 0, 3) == 0 ? 0 : (double)tl_range(r, 200, 2000);
		b->in[i] = tl_range(r, 0, 3) == 0 ? 0 : (double)tl_range(r, 200, 2000);
	}
}

/* ---- all rings ---- */

static void visit(uint32_t n, uint32_t *ring, uint32_t at,
	void (*fn)(void *arg, const uint32_t *ring), void *arg)
{
	if (at == n)
		fn(arg, ring);
	for (uint32_t i = at; i < n; i++) {
		uint32_t old = ring[at];

		ring[at] = ring[i];
		ring[i] = old;
		visit(n, ring, at + 1, fn, arg);
		ring[i] = ring[at];
		ring[at] = old;
	}
}

void brute_rings(uint32_t n, void (*fn)(void *arg, const uint32_t *ring), void *arg)
{
	uint32_t ring[BRUTE_MAX];

	for (uint32_t i = 0; i < n; i++)
		ring[i] = i;
	visit(n, ring, 1, fn, arg);
}

double brute_cost(const struct brute *b, const uint32_t *ring)
{
	double sum = 0;

	for (uint32_t i = 0; i < b->n; i++)
		sum += b->cost[ring[i] * b->n + ring[(i + 1) % b->n]];
	return sum;
}

struct walk {
	const struct brute *b;
	struct brute_best best;
};

static void compare_ring(void *arg, const uint32_t *ring)
{
	struct walk *w = arg;
	double cost = brute_cost(w->b, ring), slowest = INFINITY;

	for (uint32_t i = 0; i < w->b->n; i++)
		slowest = fmin(slowest, w->b->rate[ring[i] * w->b->n + ring[(i + 1) % w->b->n]]);
	w->best.cost = fmin(w->best.cost, cost);
	if (slowest > w->best.bottleneck) {
		w->best.bottleneck = slowest;
		w->best.its_cost = cost;
	} else if (slowest == w->best.bottleneck) {
		w->best.its_cost = fmin(w->best.its_cost, cost);
	}
}

struct brute_best brute_best(const struct brute *b)
{
	struct walk w = {b, {INFINITY, 0, INFINITY}};

	brute_rings(b->n, compare_ring, &w);
	return w.best;
}

/* ---- the linear program over all rings ---- */

#define ROWS 31
#define COLS (120 + ROWS + 1)

/* A tableau with slacks; the last column is the right side. */
struct tableau {
	const struct brute *b;
	int cols, basis[ROWS];
	double t[ROWS + 1][COLS];
};

static void add_column(void *arg, const uint32_t *ring)
{
	struct tableau *x = arg;
	uint32_t n = x->b->n;

	for (uint32_t i = 0; i < n; i++)
		x->t[ring[i] * (n - 1) + ring[(i + 1) % n] - (ring[(i + 1) % n] > ring[i])]
		    [x->cols] = 1;
	x->t[ROWS - 1][x->cols] = 1;
	x->t[ROWS][x->cols] = -1;
	x->cols++;
}

/* Bland's rule. Returns whether there was a pivot. */
static bool pivot(struct tableau *x)
{
	int col = 0, row = -1;

	while (col < COLS - 1 && x->t[ROWS][col] > -1e-10)
		col++;
	if (col == COLS - 1)
		return false;
	for (int i = 0; i < ROWS; i++) {
		double ratio = x->t[i][COLS - 1] / x->t[i][col];
		double least = row < 0 ? INFINITY : x->t[row][COLS - 1] / x->t[row][col];

		if (x->t[i][col] > 1e-10 &&
			(ratio < least - 1e-12 ||
				(ratio < least + 1e-12 && x->basis[i] < x->basis[row])))
			row = i;
	}
	ck_assert_int_ge(row, 0);
	for (int j = COLS - 1; j >= 0; j--)
		x->t[row][j] = j == col ? x->t[row][j] : x->t[row][j] / x->t[row][col];
	x->t[row][col] = 1;
	x->basis[row] = col;
	for (int i = 0; i <= ROWS; i++) {
		double f = x->t[i][col];

		for (int j = 0; i != row && f != 0 && j < COLS; j++)
			x->t[i][j] -= f * x->t[row][j];
		if (i != row)
			x->t[i][col] = 0;
	}
	return true;
}

double brute_plan(const struct brute *b, double cap, uint32_t *n_rings)
{
	static struct tableau x;

	ck_assert_uint_le(b->n, 6);
	memset(&x, 0, sizeof x);
	x.b = b;
	brute_rings(b->n, add_column, &x);
	for (uint32_t i = 0, row = 0; i < b->n; i++)
		for (uint32_t j = 0; j < b->n; j++)
			if (i != j)
				x.t[row++][COLS - 1] = b->rate[i * b->n + j];
	x.t[ROWS - 1][COLS - 1] = fmin(cap, 1e9);
	for (int i = 0; i < ROWS; i++) {
		x.t[i][120 + i] = 1;
		x.basis[i] = 120 + i;
	}
	while (pivot(&x))
		;
	*n_rings = 0;
	for (int i = 0; i < ROWS; i++)
		*n_rings += x.basis[i] < 120 && x.t[i][COLS - 1] > 1e-9;
	return x.t[ROWS][COLS - 1];
}

/* ---- up to 18 hosts ---- */

double brute_sum(const struct brute *b)
{
	size_t n = b->n, end = (size_t)1 << (n - 1);
	double *len = malloc(sizeof *len * end * (n - 1)), best = INFINITY;

	ck_assert_ptr_nonnull(len);
	for (size_t i = 0; i < end * (n - 1); i++)
		len[i] = INFINITY;
	for (size_t k = 0; k + 1 < n; k++)
		len[((size_t)1 << k) * (n - 1) + k] = b->cost[k + 1];
	for (size_t set = 1; set < end; set++)
		for (size_t k = 0; k + 1 < n; k++) {
			double from = len[set * (n - 1) + k];

			for (size_t to = 0; from < INFINITY && to + 1 < n; to++) {
				size_t at = (set | (size_t)1 << to) * (n - 1) + to;

				if (!(set >> to & 1))
					len[at] =
						fmin(len[at], from + b->cost[(k + 1) * n + to + 1]);
			}
		}
	for (size_t k = 0; k + 1 < n; k++)
		best = fmin(best, len[(end - 1) * (n - 1) + k] + b->cost[(k + 1) * n]);
	free(len);
	return best;
}

/* Looks for a path from `at` through all hosts that are not in the set and back to host 0. `dead`
 * has a bit for each set and host from which there is none. */
static bool closes(const struct brute *b, double least, uint32_t set, uint32_t at, uint8_t *dead)
{
	uint32_t state = set * b->n + at;

	if (set == (1u << b->n) - 1)
		return b->rate[(size_t)at * b->n] >= least;
	if (dead[state / 8] >> state % 8 & 1)
		return false;
	for (uint32_t to = 1; to < b->n; to++)
		if (!(set >> to & 1) && b->rate[at * b->n + to] >= least &&
			closes(b, least, set | 1u << to, to, dead))
			return true;
	dead[state / 8] |= (uint8_t)(1u << state % 8);
	return false;
}

static bool has_ring(const struct brute *b, double least)
{
	uint8_t *dead = calloc(1, ((size_t)b->n << b->n) / 8 + 1);
	bool found;

	ck_assert_ptr_nonnull(dead);
	found = closes(b, least, 1, 0, dead);
	free(dead);
	return found;
}

double brute_bottleneck(const struct brute *b)
{
	double low = 0, high = INFINITY;

	/* Between low, for which there is a ring, and high, for which there is none. */
	for (;;) {
		double middle[BRUTE_MAX * BRUTE_MAX];
		uint32_t n = 0, rank = 0;

		for (uint32_t k = 0; k < b->n * b->n; k++)
			if (k % (b->n + 1) != 0 && b->rate[k] > low && b->rate[k] < high)
				middle[n++] = b->rate[k];
		if (n == 0)
			return low;
		for (uint32_t k = 0; k < n; k++) { /* the median */
			rank = 0;
			for (uint32_t i = 0; i < n; i++)
				rank += middle[i] < middle[k] || (i < k && middle[i] == middle[k]);
			if (rank != n / 2)
				continue;
			if (has_ring(b, middle[k]))
				low = middle[k];
			else
				high = middle[k];
			break;
		}
	}
}

/* ---- answers ---- */

void brute_check_rings(uint32_t n, const struct tpl_best *best)
{
	double weights = 0;

	ck_assert_uint_le(best->n_rings, TPL_RINGS_MAX);
	for (uint32_t r = 0; r < best->n_rings; r++) {
		uint64_t seen = 0;

		ck_assert_uint_eq(best->ring[r][0], 0);
		for (uint32_t i = 0; i < n && n <= 64; i++)
			seen |= UINT64_C(1) << best->ring[r][i];
		ck_assert(n > 64 || seen == (n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1));
		ck_assert(best->weight[r] > 0);
		weights += best->weight[r];
	}
	ck_assert(best->n_rings == 0 || fabs(weights - 1) < 1e-12);
}
