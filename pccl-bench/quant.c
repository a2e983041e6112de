/* SPDX-License-Identifier: MIT */
#include "pccl-bench/quant.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"
#include "common/cc_plan.h"
#include "pccl-bench/data.h"
#include "pccl-bench/modes.h"
#include "pccl-bench/sample.h"
#include "pccl-bench/simulate.h"

const uint32_t bch_quant_hosts[BCH_QUANT_STEPS] = {2, 4, 8, 16};
const char *const bch_route_names[CC_ALGO_FIXED_COUNT] = {
	[CC_ALGO_RING] = "ring", [CC_ALGO_DIRECT] = "direct", [CC_ALGO_TREE] = "tree"};

/* ---- operands ---- */

/* A kind of operands, or a part of the elements of such operands. A row has the errors of one of
 * these. */
struct data {
	const char *name;
	enum bch_distribution distribution;
	bool outlier, gradient;
	/* Elements that are nearer to the outlier than this are left out. */
	uint32_t reach;
};

static const struct data all_data[] = {
	{.name = "normal", .distribution = BCH_NORMAL},
	{.name = "uniform", .distribution = BCH_UNIFORM},
	{.name = "student-t", .distribution = BCH_STUDENT_T},
	{.name = "outlier", .outlier = true},
	{.name = "rest", .outlier = true, .reach = 1},
	{.name = "far", .outlier = true, .reach = BCH_OUTLIER_REACH},
	{.name = "gradient", .gradient = true},
};
#define DATA (sizeof all_data / sizeof all_data[0])

/* The operands of all hosts, one after another, their sum, and the result of a mode. */
struct operands {
	uint32_t hosts;
	uint64_t count;
	float *numbers;
	double *exact;
	float *result;
};

static uint64_t outlier_of(uint64_t count)
{
	return count / 3;
}

static void fill(
	struct operands *x, const struct data *d, const struct bch_gradient *g, uint64_t seed)
{
	if (d->gradient)
		memcpy(x->numbers, g->numbers, x->hosts * x->count * sizeof *x->numbers);
	for (uint32_t h = 0; !d->gradient && h < x->hosts; h++)
		bch_sample(x->numbers + h * x->count, x->count, d->distribution, bch_mix(seed) + h);
	if (d->outlier)
		x->numbers[outlier_of(x->count)] = BCH_OUTLIER;
	memset(x->exact, 0, x->count * sizeof *x->exact);
	for (uint32_t h = 0; h < x->hosts; h++)
		for (uint64_t i = 0; i < x->count; i++)
			x->exact[i] += (double)x->numbers[h * x->count + i];
}

static int operands_init(struct operands *x, uint32_t hosts, uint64_t count)
{
	*x = (struct operands){.hosts = hosts,
		.count = count,
		.numbers = calloc(hosts * count, sizeof *x->numbers),
		.exact = calloc(count, sizeof *x->exact),
		.result = calloc(count, sizeof *x->result)};
	return x->numbers && x->exact && x->result ? 0 : CC_ERR_NOMEM;
}

static void operands_free(struct operands *x)
{
	free(x->numbers);
	free(x->exact);
	free(x->result);
}

/* ---- one all-reduce ---- */

static void operand(const void *arg, uint32_t pos, uint64_t first, void *acc, size_t n)
{
	const struct operands *x = arg;

	memcpy(acc, x->numbers + pos * x->count + first, n * sizeof *x->numbers);
}

static uint64_t noise_key(const void *arg, uint32_t pos, enum bch_sim_use use)
{
	(void)arg;
	return (uint64_t)pos << 2 | use;
}

static enum cc_algo route_of(const struct bch_options *o, const struct operands *x, uint32_t mode)
{
	if (mode == BCH_MODE_PCCL1 || x->hosts < 3)
		return CC_ALGO_RING;
	if (o->algorithm == BCH_ALGORITHM_AUTO) /* as for large operations */
		return cc_route_choose(x->hosts, UINT64_MAX, mode != BCH_MODE_NONE);
	for (enum cc_algo route = 0; route < CC_ALGO_FIXED_COUNT; route++)
		if (strcmp(bch_route_names[route], bch_algorithms[o->algorithm]) == 0)
			return route;
	return CC_ALGO_RING;
}

static struct bch_sim simulation_of(
	const struct bch_options *o, const struct operands *x, uint32_t mode)
{
	struct bch_sim s = {.route = {.algo = route_of(o, x, mode), .hosts = x->hosts},
		.op = KRN_SUM,
		.world_size = x->hosts,
		.quantized = mode != BCH_MODE_NONE,
		.sum = {.dtype = KRN_F32},
		.result = {.dtype = KRN_F32},
		.operand = operand,
		.noise_key = noise_key,
		.arg = x};
	struct wire_quant_formats formats;

	if (s.quantized) {
		formats = bch_mode_formats(mode);
		s.sum = formats.sum;
		s.result = formats.result;
	}
	return s;
}

/* Reduces elements of a chunk, and adds their bytes on the network to *bytes. */
static int reduce_span(const struct bch_sim *s, struct operands *x, uint32_t chunk,
	struct cc_span span, double *bytes)
{
	uint64_t first = span.off / sizeof(float), n = span.len / sizeof(float);

	*bytes += (double)bch_sim_bytes(s, &s->sum, n) + (double)bch_sim_bytes(s, &s->result, n);
	return bch_sim_segment(s, chunk, first, x->result + first, n);
}

static int reduce(
	const struct bch_options *o, struct operands *x, uint32_t mode, struct bch_quant_error *ret)
{
	const struct bch_sim s = simulation_of(o, x, mode);
	struct cc_plan plan;
	double bytes = 0;
	int err = cc_plan_init(&plan, x->count, sizeof(float), x->hosts, CC_PLAN_SEGMENT_MAX);

	if (mode == BCH_MODE_PCCL1)
		for (uint32_t chunk = 0; !err && chunk < plan.hosts; chunk++)
			err = reduce_span(&s, x, chunk, cc_plan_chunk(&plan, chunk), &bytes);
	else
		for (uint32_t seg = 0; !err && seg < plan.n_segs; seg++)
			err = reduce_span(&s, x, seg / plan.segs_per_chunk,
				cc_plan_segment(&plan, seg), &bytes);
	*ret = (struct bch_quant_error){.hosts = x->hosts,
		.route = s.route.algo,
		.count = x->count,
		.bytes = bytes / 2 / (double)x->count};
	return err;
}

/* Is this element among those whose errors are measured? */
static bool counts(const struct operands *x, const struct data *d, uint64_t i)
{
	uint64_t at = outlier_of(x->count);

	return (i < at ? at - i : i - at) >= d->reach;
}

static void compare(const struct operands *x, const struct data *d, struct bch_quant_error *ret)
{
	double error = 0, all = 0;

	for (uint64_t i = 0; i < x->count; i++) {
		if (!counts(x, d, i))
			continue;
		error += pow((double)x->result[i] - x->exact[i], 2);
		all += pow(x->exact[i], 2);
	}
	ret->vnmse = error == 0 ? 0 : error / all;
	ret->l2 = sqrt(ret->vnmse);
}

/* ---- all of them ---- */

static bool is_wanted(const struct bch_options *o, uint32_t mode)
{
	return o->quantize == BCH_MODE_ALL ? mode != BCH_MODE_ALL : mode == o->quantize;
}

static uint32_t count_modes(const struct bch_options *o)
{
	return o->quantize == BCH_MODE_ALL ? bch_mode_count - 1 : 1;
}

/* Does the report have these data? */
static bool has(const struct data *d, const struct bch_gradient *g)
{
	return !d->gradient || g->numbers;
}

/* Returns how many entries of all_data, from `first` on, have the same operands. */
static size_t same_numbers(size_t first)
{
	size_t n = 1;

	while (all_data[first].outlier && first + n < DATA && all_data[first + n].outlier)
		n++;
	return n;
}

/* Computes one column of the rows for operands that are filled. The rows of d[0] for all modes come
 * first, then those of d[1], and so on. */
static int fill_rows(const struct bch_options *o, struct operands *x, const struct data *d,
	size_t n_data, struct bch_quant_row *rows, uint32_t step)
{
	uint32_t n_modes = count_modes(o), at = 0;
	int err = 0;

	for (uint32_t mode = 0; !err && mode < bch_mode_count; mode++) {
		struct bch_quant_error error;

		if (!is_wanted(o, mode))
			continue;
		err = reduce(o, x, mode, &error);
		for (size_t k = 0; !err && k < n_data; k++) {
			struct bch_quant_row *row = &rows[k * n_modes + at];

			compare(x, &d[k], &error);
			row->data = d[k].name;
			row->mode = mode;
			row->errors[step] = error;
		}
		at++;
	}
	return err;
}

static int compute(const struct bch_options *o, const struct bch_gradient *g,
	struct bch_quant_result *r, uint32_t step)
{
	uint32_t hosts = o->hosts ? o->hosts : bch_quant_hosts[step], row = 0;
	int err = 0;

	for (size_t d = 0, n; !err && d < DATA; d += n) {
		struct operands x;

		n = same_numbers(d);
		if (!has(&all_data[d], g))
			continue;
		err = operands_init(&x, hosts, all_data[d].gradient ? g->n / hosts : o->count);
		if (!err) {
			fill(&x, &all_data[d], g, o->seed);
			err = fill_rows(o, &x, &all_data[d], n, &r->rows[row], step);
		}
		operands_free(&x);
		row += (uint32_t)n * count_modes(o);
	}
	r->n_rows = row;
	return err;
}

int bch_quant_compute(
	const struct bch_options *o, const struct bch_gradient *g, struct bch_quant_result *ret)
{
	int err = 0;

	ret->options = o;
	ret->n_steps = o->hosts ? 1 : BCH_QUANT_STEPS;
	ret->rows = calloc(DATA * bch_mode_count, sizeof *ret->rows);
	if (!ret->rows)
		return CC_ERR_NOMEM;
	for (uint32_t step = 0; !err && step < ret->n_steps; step++)
		err = compute(o, g, ret, step);
	if (err)
		bch_quant_free(ret);
	return err;
}

void bch_quant_free(struct bch_quant_result *r)
{
	free(r->rows);
	r->rows = NULL;
	r->n_rows = 0;
}
