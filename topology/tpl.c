/* SPDX-License-Identifier: MIT */
#include "topology/tpl.h"

#include "common/cc_err.h"
#include "topology/tpl_internal.h"

#define NUMBER_MAX 1e100 /* so that no sum is infinite */
#define PROVEN     1e-6  /* smaller relative differences of rates are rounding errors */

struct tpl {
	enum tpl_objective objective;
	struct tpl_problem problem; /* with own copies */
	union {
		struct tpl_neck neck;
		struct tpl_sum sum;
		struct tpl_plan plan;
	} u;
	uint32_t *out; /* the rings of the last answer */
};

/* ---- problems ---- */

/* Checks the elements of a matrix, except for the diagonal. */
static bool is_matrix(uint32_t n, const double *v, double most)
{
	for (size_t k = 0; k < (size_t)n * n; k++)
		if (k % (n + 1) != 0 && !(v[k] >= 0 && v[k] <= most))
			return false;
	return true;
}

static bool are_caps(uint32_t n, const double *v)
{
	for (uint32_t i = 0; v && i < n; i++)
		if (!(v[i] >= 0 && v[i] <= NUMBER_MAX))
			return false;
	return true;
}

static int check_problem(const struct tpl_problem *p, enum tpl_objective objective)
{
	uint32_t most = objective == TPL_PLAN ? TPL_PLAN_HOSTS_MAX : TPL_HOSTS_MAX;

	if (p->n < TPL_HOSTS_MIN || p->n > most)
		return CC_ERR_LIMIT;
	if (objective == TPL_SUM)
		return p->cost && is_matrix(p->n, p->cost, INFINITY) ? 0 : CC_ERR_INVAL;
	if (!p->rate || !is_matrix(p->n, p->rate, NUMBER_MAX))
		return CC_ERR_INVAL;
	if (p->trip && !is_matrix(p->n, p->trip, NUMBER_MAX))
		return CC_ERR_INVAL;
	return are_caps(p->n, p->out) && are_caps(p->n, p->in) ? 0 : CC_ERR_INVAL;
}

static double *copy_of(const double *v, size_t n)
{
	return v ? cc_must_copy(v, n, sizeof *v) : NULL;
}

int tpl_new(
	const struct tpl_problem *p, enum tpl_objective objective, uint64_t seed, struct tpl **ret)
{
	int err = check_problem(p, objective);
	size_t links = (size_t)p->n * p->n;
	struct tpl *t;

	if (err < 0)
		return err;
	t = cc_must_zalloc(1, sizeof *t);
	t->objective = objective;
	t->problem.n = p->n;
	t->out = cc_must_zalloc((size_t)p->n * TPL_RINGS_MAX, sizeof *t->out);
	if (objective == TPL_SUM) {
		tpl_sum_init(&t->u.sum, p->n, TPL_EXACT_HOSTS, seed);
		tpl_sum_begin(&t->u.sum, p->cost);
	} else {
		t->problem.rate = copy_of(p->rate, links);
		t->problem.out = copy_of(p->out, p->n);
		t->problem.in = copy_of(p->in, p->n);
		if (objective == TPL_PLAN)
			tpl_plan_init(&t->u.plan, p, seed);
		else
			tpl_neck_init(&t->u.neck, p->n, t->problem.rate, p->trip, seed);
	}
	*ret = t;
	return 0;
}

void tpl_free(struct tpl *t)
{
	if (!t)
		return;
	if (t->objective == TPL_SUM)
		tpl_sum_clear(&t->u.sum);
	else if (t->objective == TPL_PLAN)
		tpl_plan_clear(&t->u.plan);
	else
		tpl_neck_clear(&t->u.neck);
	free((void *)(uintptr_t)t->problem.rate);
	free((void *)(uintptr_t)t->problem.out);
	free((void *)(uintptr_t)t->problem.in);
	free(t->out);
	free(t);
}

static bool step(struct tpl *t)
{
	if (t->objective == TPL_SUM)
		return tpl_sum_step(&t->u.sum);
	if (t->objective == TPL_PLAN)
		return tpl_plan_step(&t->u.plan);
	return tpl_neck_step(&t->u.neck);
}

bool tpl_work(struct tpl *t, uint32_t steps)
{
	while (steps > 0 && !step(t))
		steps--;
	return steps > 0;
}

/* ---- answers ---- */

static void put_ring(struct tpl *t, struct tpl_best *b, const uint32_t *ring, double weight)
{
	uint32_t *out = t->out + (size_t)b->n_rings * t->problem.n;

	tpl_ring_turn(t->problem.n, ring, out);
	b->ring[b->n_rings] = out;
	b->weight[b->n_rings] = weight;
	b->n_rings++;
}

static void put_sum(struct tpl *t, struct tpl_best *b)
{
	const struct tpl_sum *s = &t->u.sum;

	if (s->best < INFINITY)
		put_ring(t, b, s->ring, 1);
	b->value = s->best;
	b->bound = s->bound;
	b->impossible = s->bound == INFINITY;
	b->optimal = b->n_rings > 0 && s->phase == TPL_SUM_DONE;
}

static void put_neck(struct tpl *t, struct tpl_best *b)
{
	const struct tpl_neck *k = &t->u.neck;

	if (k->best > 0)
		put_ring(t, b, k->ring, 1);
	b->value = k->best;
	b->bound = k->bound;
	b->impossible = k->bound <= 0;
	b->optimal = b->n_rings > 0 && k->best >= k->bound;
}

/* The linear program may leave rings that carry nothing in a set. */
static bool is_used(const struct tpl_set *set, uint32_t i)
{
	return set->x[i] > set->sum * TPL_USED;
}

static void put_plan(struct tpl *t, struct tpl_best *b)
{
	const struct tpl_plan *p = &t->u.plan;
	const struct tpl_set *set = &p->best;
	double sum = 0;

	for (uint32_t i = 0; i < set->n; i++)
		sum += is_used(set, i) ? set->x[i] : 0;
	for (uint32_t i = 0; i < set->n; i++)
		if (is_used(set, i))
			put_ring(t, b, p->rings + (size_t)set->column[i] * p->n, set->x[i] / sum);
	if (b->n_rings == 0 && p->one > 0)
		put_ring(t, b, p->neck.ring, 1);
	if (b->n_rings > 0)
		b->value = tpl_plan_rate(&t->problem, b->n_rings, b->ring, b->weight);
	b->bound = fmax(b->value, p->bound * p->scale);
	b->impossible = p->bound <= 0;
	b->optimal = b->n_rings > 0 && b->value >= b->bound * (1 - PROVEN);
}

struct tpl_best tpl_best(struct tpl *t)
{
	struct tpl_best b = {.n_rings = 0};

	if (t->objective == TPL_SUM)
		put_sum(t, &b);
	else if (t->objective == TPL_PLAN)
		put_plan(t, &b);
	else
		put_neck(t, &b);
	if (b.value != b.bound)
		b.gap = b.bound < INFINITY ? fabs(b.bound - b.value) / b.bound : INFINITY;
	return b;
}
