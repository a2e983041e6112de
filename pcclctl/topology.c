/* SPDX-License-Identifier: MIT */
#include "pcclctl/topology.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "common/cc_err.h"
#include "common/cc_must.h"
#include "common/cc_sys.h"
#include "pcclctl/print.h"

#define FILE_MAX ((size_t)64 << 20) /* a matrix of 1,024 hosts has about 10 MB */
#define SEED     1

static const char *const names[] = {
	[TPL_BOTTLENECK] = "bottleneck", [TPL_SUM] = "sum", [TPL_PLAN] = "plan"};

/* What is known of an answer. */
struct solution {
	enum tpl_objective objective;
	bool tsplib;
	bool cost; /* the answer is a cost, otherwise a rate */
	const struct tpl_matrix *matrix;
	struct tpl_best best;
	double seconds;
};

static int fail(int code, const char *path, const char *why)
{
	fprintf(stderr, "pcclctl: %s: %s\n", path, why);
	return code;
}

/* ---- the file ---- */

/* Reads a file. Returns 0 and its contents, which the caller frees, or an exit status after a
 * message. */
static int read_file(const char *path, char **ret, size_t *ret_len)
{
	FILE *f = fopen(path, "re");
	size_t cap = 0, len = 0, n;
	char *text = NULL;
	int err;

	if (!f)
		return fail(EX_NOINPUT, path, strerror(errno));
	do {
		if (len == cap)
			text = cc_must_grow(text, &cap, 65536, 1);
		n = fread(text + len, 1, cap - len, f);
		len += n;
	} while (n > 0 && len <= FILE_MAX);
	err = ferror(f) ? errno : 0;
	(void)fclose(f);
	if (err == 0 && len <= FILE_MAX) {
		*ret = text;
		*ret_len = len;
		return 0;
	}
	free(text);
	if (err)
		return fail(EX_NOINPUT, path, strerror(err));
	return fail(EX_DATAERR, path, "the file has more than 64 MiB");
}

static int read_matrix(const char *path, struct tpl_matrix *ret)
{
	char *text = NULL, why[TPL_WHY_SIZE];
	size_t len = 0;
	int code = read_file(path, &text, &len);

	if (code)
		return code;
	if (tpl_matrix_parse(text, len, ret, why) < 0)
		code = fail(EX_DATAERR, path, why);
	free(text);
	return code;
}

/* ---- the answer for people ---- */

static const char *value_text(const struct solution *s, double v, char buf[PRINT_VALUE_SIZE])
{
	if (!s->tsplib && !s->cost)
		return print_bits(v, buf);
	snprintf(buf, PRINT_VALUE_SIZE, "%.10g%s", v, s->tsplib ? "" : " s/Mbit");
	return buf;
}

static void print_text(const struct solution *s)
{
	const struct tpl_best *b = &s->best;
	char buf[PRINT_VALUE_SIZE];

	printf("objective:   %s\n", names[s->objective]);
	printf("hosts:       %u\n", s->matrix->n);
	printf("%s %s\n", s->cost ? "cost:       " : "rate:       ", value_text(s, b->value, buf));
	printf("%s %s\n", s->cost ? "lower bound:" : "upper bound:", value_text(s, b->bound, buf));
	printf("gap:         %.2f %%\n", 100 * b->gap);
	printf("optimal:     %s\n", b->optimal ? "yes, proven" : "not proven");
	if (!s->cost)
		printf("all-reduce:  %s\n",
			value_text(s, tpl_allreduce_rate(s->matrix->n, b->value), buf));
	printf("time:        %.3f s\n", s->seconds);
	for (uint32_t r = 0; r < b->n_rings; r++) {
		printf("ring %u, %.2f %%:", r + 1, 100 * b->weight[r]);
		for (uint32_t i = 0; i < s->matrix->n; i++)
			printf(" %s", s->matrix->name[b->ring[r][i]]);
		putchar('\n');
	}
}

/* ---- the answer for programs ---- */

/* Adds `v` and takes it over. Returns whether this succeeded. */
static bool add(struct json_object *o, const char *key, struct json_object *v)
{
	if (v && json_object_object_add(o, key, v) == 0)
		return true;
	json_object_put(v);
	return false;
}

static bool add_number(struct json_object *o, const char *key, double v)
{
	if (!isfinite(v))
		return json_object_object_add(o, key, NULL) == 0;
	return add(o, key, json_object_new_double(v));
}

static bool add_ring(struct json_object *rings, const struct solution *s, uint32_t r)
{
	struct json_object *o = json_object_new_object(), *hosts = json_object_new_array();
	bool ok = o && json_object_array_add(rings, o) == 0 && hosts && add(o, "hosts", hosts) &&
		  add_number(o, "weight", s->best.weight[r]);

	for (uint32_t i = 0; ok && i < s->matrix->n; i++)
		ok = json_object_array_add(hosts,
			     json_object_new_string(s->matrix->name[s->best.ring[r][i]])) == 0;
	return ok;
}

static bool add_answer(struct json_object *o, const struct solution *s)
{
	const struct tpl_best *b = &s->best;
	struct json_object *rings;
	bool ok = add(o, "objective", json_object_new_string(names[s->objective])) &&
		  add(o, "hosts", json_object_new_int((int)s->matrix->n)) &&
		  add_number(o, s->cost ? "cost" : "rate", b->value) &&
		  add_number(o, s->cost ? "lower_bound" : "upper_bound", b->bound) &&
		  add_number(o, "gap", b->gap) &&
		  add(o, "optimal", json_object_new_boolean(b->optimal)) &&
		  (s->cost || add_number(o, "allreduce_rate",
				      tpl_allreduce_rate(s->matrix->n, b->value))) &&
		  add_number(o, "seconds", s->seconds);

	rings = ok ? json_object_new_array() : NULL;
	ok = ok && add(o, "rings", rings);
	for (uint32_t r = 0; ok && r < b->n_rings; r++)
		ok = add_ring(rings, s, r);
	return ok;
}

static int print_json_answer(const struct solution *s)
{
	struct json_object *o = json_object_new_object();
	const char *text = NULL;

	if (o && add_answer(o, s))
		text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY);
	if (text)
		printf("%s\n", text);
	else
		fputs("pcclctl: no memory\n", stderr);
	json_object_put(o);
	return text ? EX_OK : EX_OSERR;
}

/* ---- the command ---- */

/* The costs for TPL_SUM: 1/rate in seconds per Mbit, if the file has no costs. */
static double *make_costs(const struct tpl_matrix *m)
{
	size_t links = (size_t)m->n * m->n;
	double *cost = cc_must_zalloc(links, sizeof *cost);

	for (size_t k = 0; k < links; k++)
		cost[k] = m->cost ? m->cost[k] : m->rate[k] > 0 ? 1e6 / m->rate[k] : INFINITY;
	return cost;
}

/* The rates of a TSPLIB file, whose costs are times. */
static double *make_rates(const struct tpl_matrix *m)
{
	double *rate = cc_must_zalloc((size_t)m->n * m->n, sizeof *rate);

	tpl_time_rates(m->n, m->cost, rate);
	return rate;
}

static int begin(const struct ctl_topology *c, const struct tpl_problem *p,
	enum tpl_objective objective, struct tpl **ret)
{
	int err = tpl_new(p, objective, SEED, ret);
	char why[96];

	if (err == CC_ERR_LIMIT) {
		snprintf(why, sizeof why, "%u hosts are too many for a plan, which has at most %u",
			p->n, TPL_PLAN_HOSTS_MAX);
		return fail(EX_DATAERR, c->matrix, why);
	}
	return err < 0 ? fail(EX_SOFTWARE, c->matrix, cc_err_str(err)) : 0;
}

static int solve(const struct ctl_topology *c, struct solution *s, struct tpl **ret)
{
	const struct tpl_matrix *m = s->matrix;
	struct tpl_problem p = {m->n, m->rate, m->trip, m->out, m->in, NULL};
	uint64_t start = cc_now_ns(), budget = c->budget_ms * UINT64_C(1000000);
	double *cost = s->objective == TPL_SUM ? make_costs(m) : NULL;
	double *rate = s->tsplib && !cost ? make_rates(m) : NULL;
	int code;

	p.cost = cost;
	if (rate)
		p.rate = rate;
	code = begin(c, &p, s->objective, ret);
	while (code == 0 && !tpl_work(*ret, 1) && cc_now_ns() - start < budget)
		;
	if (code == 0)
		s->best = tpl_best(*ret);
	if (code == 0 && rate && s->objective == TPL_BOTTLENECK)
		tpl_time_bottleneck(m->n, m->cost, rate, &s->best);
	s->seconds = (double)(cc_now_ns() - start) / 1e9;
	free(cost);
	free(rate);
	return code;
}

static int answer(const struct ctl_topology *c, const struct solution *s, bool json)
{
	if (s->best.impossible)
		return fail(EX_UNAVAILABLE, c->matrix,
			"there is no ring: no order of all hosts has only links that exist");
	if (s->best.n_rings == 0)
		return fail(EX_UNAVAILABLE, c->matrix,
			"no ring was found, and it is not proven that there is none: raise "
			"--budget");
	if (json)
		return print_json_answer(s);
	print_text(s);
	return EX_OK;
}

int ctl_topology_solve(const struct ctl_topology *c, bool json)
{
	struct tpl_matrix m;
	struct solution s = {.matrix = &m};
	struct tpl *t = NULL;
	int code = read_matrix(c->matrix, &m);

	if (code)
		return code;
	s.tsplib = m.cost != NULL;
	s.objective = c->objective ? c->objective : s.tsplib ? TPL_SUM : TPL_PLAN;
	s.cost = s.objective == TPL_SUM || (s.tsplib && s.objective == TPL_BOTTLENECK);
	code = solve(c, &s, &t);
	if (code == 0)
		code = answer(c, &s, json);
	tpl_free(t);
	tpl_matrix_clear(&m);
	return code;
}
