/* SPDX-License-Identifier: MIT
 *
 * The rows of the dictionary are  basic = b - sum of d * nonbasic,  and the sum of the rates is
 * sum + sum of gain * nonbasic.  A link gets its constraint, and a row, with the first ring that
 * contains it, so the dictionary stays small.
 *
 * A new ring x changes the constraint of a link from  slack = rate - ...  to  slack + x = rate -
 * ...,  so wherever the old slack stands, slack + x takes its place: the column of x is the sum of
 * the columns of the slacks of its links, and has an additional 1 in the rows of slacks that are
 * basic.
 *
 * The pivot rule is that of the largest gain. After many pivots without growth it is Bland's (New
 * finite pivoting rules for the simplex method, 1977), which cannot cycle, but is slow. Such pivots
 * are frequent if many rates are equal, so a large program lowers all rates a little, each by a
 * different part (Charnes: Optimality and degeneracy in linear programming, 1952).
 */
#include "topology/tpl_internal.h"

#define TINY      1e-9 /* smaller gains and pivots are rounding errors: both are sums of 1 and -1 */
#define TIE       1e-12
#define STUCK_MAX 100u

void tpl_lp_init(struct tpl_lp *l, uint32_t n, const double *rate, uint32_t most, double lowered)
{
	size_t links = (size_t)n * n + 1;

	*l = (struct tpl_lp){
		.n = n,
		.most = most,
		.lowered = lowered,
		.rate = rate,
		.gain = cc_must_zalloc(most, sizeof *l->gain),
		.nonbasic = cc_must_zalloc(most, sizeof *l->nonbasic),
		.row_of = cc_must_zalloc(links, sizeof *l->row_of),
	};
	for (size_t k = 0; k < links; k++)
		l->row_of[k] = TPL_NONE;
}

void tpl_lp_clear(struct tpl_lp *l)
{
	free(l->row);
	free(l->d);
	free(l->gain);
	free(l->nonbasic);
	free(l->row_of);
}

/* Returns the right side of the constraint of a link. */
static double right_side(const struct tpl_lp *l, uint32_t link)
{
	uint64_t state = link;
	double part = (double)(tpl_random(&state) >> 11) / 9007199254740992.0; /* below 1 */

	return (link == l->n * l->n ? l->cap : l->rate[link]) * (1 - l->lowered * part);
}

/* Returns the constraint of a link, which is new if no ring contains the link yet. */
static uint32_t constraint_of(struct tpl_lp *l, uint32_t link)
{
	uint32_t k = l->row_of[link];

	if (k != TPL_NONE)
		return k;
	if (l->rows == l->row_cap)
		l->row = cc_must_grow(l->row, &l->row_cap, 64, sizeof *l->row);
	if (l->rows == l->d_cap)
		l->d = cc_must_grow(l->d, &l->d_cap, 64, l->most * sizeof *l->d);
	k = (uint32_t)l->rows++;
	l->row_of[link] = k;
	l->row[k] = (struct tpl_lp_row){
		.b = right_side(l, link),
		.basic = k,
		.link = link,
		.slack_at = k,
	};
	memset(l->d + (size_t)k * l->most, 0, l->most * sizeof *l->d);
	return k;
}

void tpl_lp_reset(struct tpl_lp *l, double cap)
{
	for (size_t k = 0; k < l->rows; k++)
		l->row_of[l->row[k].link] = TPL_NONE;
	l->rows = l->cols = 0;
	l->cap = cap;
	l->sum = 0;
	l->stuck = 0;
}

/* Adds the part of a constraint to the column of a new ring. */
static void add_link(struct tpl_lp *l, uint32_t constraint, uint32_t col)
{
	uint32_t at = l->row[constraint].slack_at;

	if (!(at & TPL_LP_COLUMN)) {
		l->d[(size_t)at * l->most + col] += 1;
		return;
	}
	at &= ~TPL_LP_COLUMN;
	for (size_t i = 0; i < l->rows; i++)
		l->d[i * l->most + col] += l->d[i * l->most + at];
	l->gain[col] += l->gain[at];
}

void tpl_lp_add(struct tpl_lp *l, const uint32_t *ring)
{
	uint32_t col = l->cols++;

	l->nonbasic[col] = TPL_LP_RING + col;
	l->gain[col] = 1;
	for (uint32_t i = 0; i < l->n; i++)
		add_link(l, constraint_of(l, ring[i] * l->n + ring[i + 1 < l->n ? i + 1 : 0]), col);
	if (l->cap < INFINITY)
		add_link(l, constraint_of(l, l->n * l->n), col);
}

/* ---- pivots ---- */

/* Returns the column whose variable grows next, or TPL_NONE. */
static uint32_t choose_column(const struct tpl_lp *l)
{
	bool first = l->stuck > STUCK_MAX;
	uint32_t best = TPL_NONE;

	for (uint32_t j = 0; j < l->cols; j++) {
		if (l->gain[j] <= TINY)
			continue;
		if (best == TPL_NONE ||
			(first ? l->nonbasic[j] < l->nonbasic[best] : l->gain[j] > l->gain[best]))
			best = j;
	}
	return best;
}

/* Returns the row whose variable becomes 0 first when the variable of the column grows. */
static size_t choose_row(const struct tpl_lp *l, uint32_t col)
{
	bool first = l->stuck > STUCK_MAX;
	size_t best = SIZE_MAX;
	double least = INFINITY;

	for (size_t i = 0; i < l->rows; i++) {
		double d = l->d[i * l->most + col], limit = l->row[i].b / d;

		if (d <= TINY || limit > least + TIE)
			continue;
		if (limit >= least - TIE && best != SIZE_MAX &&
			!(first ? l->row[i].basic < l->row[best].basic
				: d > l->d[best * l->most + col]))
			continue;
		best = i;
		least = fmin(least, limit);
	}
	return best;
}

static void subtract_row(struct tpl_lp *l, double *to, const double *from, uint32_t col)
{
	double f = to[col], pivot = from[col];

	if (f == 0)
		return;
	for (uint32_t j = 0; j < l->cols; j++)
		to[j] -= f * from[j];
	to[col] = -f * pivot;
}

/* Notes where a variable stands, if it is the slack of a constraint. */
static void move(struct tpl_lp *l, uint32_t variable, uint32_t to)
{
	if (variable < TPL_LP_RING)
		l->row[variable].slack_at = to;
}

static void pivot(struct tpl_lp *l, size_t at, uint32_t col)
{
	double *own = l->d + at * l->most, inverse = 1 / own[col], f;
	uint32_t variable = l->row[at].basic;

	for (uint32_t j = 0; j < l->cols; j++)
		own[j] *= inverse;
	own[col] = inverse;
	l->row[at].b *= inverse;
	for (size_t i = 0; i < l->rows; i++) {
		f = l->d[i * l->most + col];
		if (i == at || f == 0)
			continue;
		l->row[i].b = fmax(0, l->row[i].b - f * l->row[at].b);
		subtract_row(l, l->d + i * l->most, own, col);
	}
	l->sum += l->gain[col] * l->row[at].b;
	l->stuck = l->gain[col] * l->row[at].b > TIE ? 0 : l->stuck + 1;
	subtract_row(l, l->gain, own, col);
	l->row[at].basic = l->nonbasic[col];
	l->nonbasic[col] = variable;
	move(l, l->row[at].basic, (uint32_t)at);
	move(l, variable, TPL_LP_COLUMN + col);
}

bool tpl_lp_step(struct tpl_lp *l)
{
	uint32_t col = choose_column(l);
	size_t at;

	if (col == TPL_NONE)
		return true;
	at = choose_row(l, col);
	if (at == SIZE_MAX) {
		/* Only rounding errors: every ring has a link whose rate bounds it. */
		l->gain[col] = 0;
		return false;
	}
	pivot(l, at, col);
	return false;
}

void tpl_lp_rates(const struct tpl_lp *l, double *ret)
{
	memset(ret, 0, l->cols * sizeof *ret);
	for (size_t i = 0; i < l->rows; i++)
		if (l->row[i].basic >= TPL_LP_RING)
			ret[l->row[i].basic - TPL_LP_RING] = l->row[i].b;
}

double tpl_lp_duals(const struct tpl_lp *l, double *ret)
{
	double cap = 0;

	memset(ret, 0, (size_t)l->n * l->n * sizeof *ret);
	for (uint32_t j = 0; j < l->cols; j++) {
		double y = fmax(0, -l->gain[j]);

		if (l->nonbasic[j] >= TPL_LP_RING)
			continue;
		if (l->row[l->nonbasic[j]].link == l->n * l->n)
			cap = y;
		else
			ret[l->row[l->nonbasic[j]].link] = y;
	}
	return cap;
}
