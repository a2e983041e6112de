/* SPDX-License-Identifier: MIT
 *
 * The benchmark quant: the operands, the errors of simulated sums, and how they are printed.
 */
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"
#include "pccl-bench/modes.h"
#include "pccl-bench/quant.h"
#include "pccl-bench/sample.h"
#include "tests/bench/suites.h"

/* ---- modes ---- */

START_TEST(all_modes_are_valid)
{
	char why[WIRE_QUANT_TEXT];

	ck_assert_str_eq(bch_mode_names[BCH_MODE_ALL], "all");
	ck_assert_str_eq(bch_mode_names[BCH_MODE_NONE], "none");
	ck_assert_str_eq(bch_mode_names[BCH_MODE_PCCL1], "pccl1-minmax-uint8");
	ck_assert_ptr_null(bch_mode_names[bch_mode_count]);
	for (uint32_t mode = BCH_MODE_PCCL1; mode < bch_mode_count; mode++) {
		struct bch_quant_args args = bch_mode_args(mode);
		struct wire_quant_numbers n = {.algo = (uint32_t)args.options.algorithm,
			.dtype = (uint32_t)args.options.quantized_datatype,
			.hint = (uint32_t)args.hint};
		struct wire_quant_formats formats = bch_mode_formats(mode);
		struct wire_quant q;

		ck_assert_msg(
			wire_quant_get(pcclFloat, &n, &q, why) == 0 && q.kind != WIRE_QUANT_NONE,
			"%s: %s", bch_mode_names[mode], why);
		ck_assert(qnt_format_valid(&formats.sum) && qnt_format_valid(&formats.result));
	}
}
END_TEST

/* ---- operands ---- */

#define SAMPLES 200000

/* Returns the mean of |x|^power. */
static double moment(const float *x, double power)
{
	double sum = 0;

	for (size_t i = 0; i < SAMPLES; i++)
		sum += pow(fabs((double)x[i]), power);
	return sum / SAMPLES;
}

static size_t beyond(const float *x, float limit)
{
	size_t n = 0;

	for (size_t i = 0; i < SAMPLES; i++)
		n += fabsf(x[i]) > limit;
	return n;
}

static size_t differing(const float *x, const float *y, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += x[i] != y[i];
	return n;
}

START_TEST(numbers_have_their_distributions)
{
	static float x[SAMPLES], y[SAMPLES];
	double mean = 0;

	bch_sample(x, SAMPLES, BCH_NORMAL, 1);
	for (size_t i = 0; i < SAMPLES; i++)
		mean += (double)x[i] / SAMPLES;
	ck_assert(fabs(mean) < 0.01);
	ck_assert(fabs(moment(x, 2) - 1) < 0.02 && fabs(moment(x, 4) - 3) < 0.15);
	ck_assert_uint_lt(beyond(x, 5), 5);
	bch_sample(y, SAMPLES, BCH_NORMAL, 1);
	ck_assert_uint_eq(differing(x, y, SAMPLES), 0);
	bch_sample(y, SAMPLES, BCH_NORMAL, 2);
	for (size_t i = 0; i < SAMPLES; i++)
		y[i] += x[i];
	ck_assert(fabs(moment(y, 2) - 2) < 0.04); /* seeds are independent */

	bch_sample(x, SAMPLES, BCH_UNIFORM, 1);
	ck_assert(fabs(moment(x, 1) - 0.5) < 0.01 && fabs(moment(x, 2) - 1.0 / 3) < 0.01);
	ck_assert_uint_eq(beyond(x, 1), 0);

	/* |t| exceeds 5.841 with the probability 0.01, and 12.92 with 0.001. */
	bch_sample(x, SAMPLES, BCH_STUDENT_T, 1);
	ck_assert(abs((int)beyond(x, 5.841f) - SAMPLES / 100) < SAMPLES / 1000);
	ck_assert(abs((int)beyond(x, 12.92f) - SAMPLES / 1000) < SAMPLES / 5000);
}
END_TEST

START_TEST(error_of_an_all_reduce_is_measured)
{
	static float operand[2][BCH_PATTERN_COUNT], buf[BCH_PATTERN_COUNT + 100];
	static double sum[BCH_PATTERN_COUNT], mean[BCH_PATTERN_COUNT];
	double all = 0, before;

	bch_normal_operand(operand[0], 0, 7);
	bch_normal_operand(operand[1], 1, 7);
	bch_normal_result(sum, pcclSum, 2, 7);
	bch_normal_result(mean, pcclAvg, 2, 7);
	for (size_t i = 0; i < sizeof buf / sizeof buf[0]; i++) {
		size_t k = i % BCH_PATTERN_COUNT;

		buf[i] = operand[0][k] + operand[1][k];
		all += sum[k] * sum[k];
		ck_assert_double_eq(mean[k] * 2, sum[k]);
	}
	before = bch_normal_error(buf, sizeof buf / sizeof buf[0], sum);
	ck_assert(before > 0 && before < 1e-7);
	buf[BCH_PATTERN_COUNT + 99] += 10;
	ck_assert(fabs(bch_normal_error(buf, sizeof buf / sizeof buf[0], sum) - 10 / sqrt(all)) <
		  1e-6);
	bch_normal_operand(operand[1], 1, 8); /* another round */
	ck_assert_uint_gt(
		differing(operand[0], operand[1], BCH_PATTERN_COUNT), BCH_PATTERN_COUNT / 2);
	ck_assert(bch_normal_error(operand[1], BCH_PATTERN_COUNT, sum) > 0.1);
}
END_TEST

/* ---- errors ---- */

static struct bch_options options;
static struct bch_quant_result result;

static uint32_t mode_of(const char *name)
{
	uint32_t mode = 0;

	while (strcmp(bch_mode_names[mode], name) != 0)
		ck_assert_uint_lt(++mode, bch_mode_count);
	return mode;
}

static uint32_t algorithm_of(const char *name)
{
	uint32_t i = 0;

	while (strcmp(bch_algorithms[i], name) != 0)
		i++;
	return i;
}

/* Computes the rows of one mode, or of all modes. hosts 0: all numbers of hosts. */
static void compute(const char *mode, const char *algorithm, uint32_t hosts, uint64_t count)
{
	const struct bch_gradient none = {0};

	bch_quant_free(&result);
	options = (struct bch_options){.benchmark = BCH_QUANT,
		.quantize = mode_of(mode),
		.algorithm = algorithm_of(algorithm),
		.hosts = hosts,
		.count = count,
		.seed = 3};
	ck_assert_int_eq(bch_quant_compute(&options, &none, &result), 0);
}

static const struct bch_quant_error *error_of(const char *data, const char *mode, uint32_t step)
{
	for (uint32_t i = 0; i < result.n_rows; i++)
		if (strcmp(result.rows[i].data, data) == 0 && result.rows[i].mode == mode_of(mode))
			return &result.rows[i].errors[step];
	ck_abort_msg("no row for %s, %s", data, mode);
	return NULL;
}

static void teardown(void)
{
	bch_quant_free(&result);
}

/* The largest errors of sums of normal numbers of 16 hosts that exchange directly. */
static const struct {
	const char *mode;
	double l2, bytes;
} bounds[] = {
	{"none", 1e-6, 4},
	{"half", 0.0005, 2},
	{"bfloat16", 0.004, 2},
	{"minmax-uint8", 0.02, 1.01},
	{"minmax-uint16", 0.0001, 2.01},
	{"zero-point-uint8", 0.02, 1.01},
	{"zero-point-uint16", 0.0001, 2.01},
	{"int8", 0.0100, 1.01},
	{"int8-32", 0.0080, 1.07},
	{"int8-stochastic", 0.0150, 1.01},
	{"int4", 0.138, 0.565},
	{"int4-normal", 0.1165, 0.565},
	{"int4-uniform", 0.134, 0.565},
	{"int4-stochastic", 0.200, 0.565},
	{"int4-mixed", 0.0830, 0.79},
	{"e4m3", 0.040, 1.01},
	{"e5m2", 0.080, 1.01},
};

START_TEST(errors_are_within_their_bounds)
{
	const struct bch_quant_error *e;

	compute("all", "direct", 16, 65536);
	ck_assert_uint_eq(result.n_rows, (size_t)6 * (bch_mode_count - 1));
	for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
		e = error_of("normal", bounds[i].mode, 0);
		ck_assert_msg(e->l2 > 0 && e->l2 <= bounds[i].l2, "%s: %g", bounds[i].mode, e->l2);
		ck_assert_double_eq_tol(e->vnmse, e->l2 * e->l2, 1e-3 * e->vnmse);
		ck_assert_msg(e->bytes <= bounds[i].bytes && e->bytes > 0.98 * bounds[i].bytes,
			"%s: %g bytes", bounds[i].mode, e->bytes);
		ck_assert(e->hosts == 16 && e->count == 65536 && e->route == CC_ALGO_DIRECT);
	}
}
END_TEST

START_TEST(outlier_costs_only_its_block)
{
	compute("int8", "ring", 2, 1 << 20);
	ck_assert(error_of("far", "int8", 0)->l2 < 0.0100);
	ck_assert(error_of("rest", "int8", 0)->l2 < 0.0200);
	compute("int8-32", "ring", 2, 1 << 20);
	ck_assert(error_of("rest", "int8-32", 0)->l2 < 0.0100);
	compute("pccl1-minmax-uint8", "ring", 2, 1 << 20);
	ck_assert(error_of("rest", "pccl1-minmax-uint8", 0)->l2 > 1);
	ck_assert(error_of("far", "pccl1-minmax-uint8", 0)->l2 > 1);
	ck_assert(error_of("normal", "pccl1-minmax-uint8", 0)->l2 < 0.02);
}
END_TEST

/* On the ring errors grow with each hop. If hosts exchange directly, an operand is quantized once.
 */
START_TEST(routes_have_their_errors)
{
	double ring, direct, tree, few;

	compute("int8", "ring", 0, 65536);
	ck_assert_uint_eq(result.n_steps, 4);
	few = error_of("normal", "int8", 0)->l2;
	ring = error_of("normal", "int8", 3)->l2;
	ck_assert_int_eq(error_of("normal", "int8", 3)->route, CC_ALGO_RING);
	compute("int8", "tree", 0, 65536);
	tree = error_of("normal", "int8", 3)->l2;
	ck_assert_int_eq(error_of("normal", "int8", 3)->route, CC_ALGO_TREE);
	compute("int8", "auto", 0, 65536);
	direct = error_of("normal", "int8", 3)->l2;
	ck_assert_int_eq(error_of("normal", "int8", 3)->route, CC_ALGO_DIRECT);
	ck_assert_int_eq(error_of("normal", "int8", 0)->route, CC_ALGO_RING);
	ck_assert(ring > 1.8 * few && direct < 1.05 * few && tree > direct && tree < ring);
}
END_TEST

/* A scale for each of two segments is better than one for the whole chunk, unless both segments
 * have the same range. */
START_TEST(minmax_is_nearer_than_the_scheme_of_pccl1)
{
	static const char *const data[] = {"normal", "student-t", "rest", "far"};
	double segments[4];

	compute("minmax-uint8", "ring", 2, 1 << 18);
	for (size_t i = 0; i < 4; i++)
		segments[i] = error_of(data[i], "minmax-uint8", 0)->l2;
	compute("pccl1-minmax-uint8", "ring", 2, 1 << 18);
	for (size_t i = 0; i < 4; i++)
		ck_assert_msg(segments[i] < error_of(data[i], "pccl1-minmax-uint8", 0)->l2,
			"%s: %g", data[i], segments[i]);
	/* each of the two chunks has two binary32 numbers */
	ck_assert_double_eq(
		error_of("normal", "pccl1-minmax-uint8", 0)->bytes, 1 + 2 * 8.0 / (1 << 18));
}
END_TEST

START_TEST(seeds_change_the_operands)
{
	double first;

	compute("int8", "ring", 2, 5000);
	first = error_of("normal", "int8", 0)->l2;
	compute("int8", "ring", 2, 5000);
	ck_assert_double_eq(error_of("normal", "int8", 0)->l2, first);
	options.seed++;
	bch_quant_free(&result);
	ck_assert_int_eq(bch_quant_compute(&options, &(struct bch_gradient){0}, &result), 0);
	ck_assert_double_ne(error_of("normal", "int8", 0)->l2, first);
}
END_TEST

/* Each host has an equal part of the gradient. The first host has numbers from 125 to 127, the
 * second host only -126. */
START_TEST(hosts_share_the_gradient)
{
	static float numbers[2001];
	const struct bch_gradient g = {.numbers = numbers, .n = 2001};
	double error, exact = 0, coarse = 0;

	for (size_t i = 0; i < 1000; i++) {
		numbers[i] = i % 2 ? 127 : 127 - (float)(i % 200) / 100;
		numbers[1000 + i] = -126;
		exact += pow((double)numbers[i] - 126, 2);
		coarse += pow((double)(roundf(numbers[i]) - numbers[i]), 2);
	}
	numbers[2000] = 1e9f; /* belongs to no host */
	compute("int8", "ring", 2, 10);
	bch_quant_free(&result);
	ck_assert_int_eq(bch_quant_compute(&options, &g, &result), 0);
	ck_assert_uint_eq(error_of("gradient", "int8", 0)->count, 1000);
	error = error_of("gradient", "int8", 0)->l2;
	/* Quantization rounds the numbers of the first host to integers. */
	ck_assert_msg(error > 0.5 * sqrt(coarse / exact) && error < 2 * sqrt(coarse / exact), "%g",
		error);
}
END_TEST

START_TEST(a_few_elements_are_enough)
{
	for (uint64_t count = 1; count < 20; count++) {
		compute("all", "tree", 16, count);
		ck_assert_double_lt(error_of("normal", "none", 0)->l2, 1e-5);
	}
}
END_TEST

/* ---- output ---- */

static char *printed(bool json)
{
	static char *text;
	static size_t size;
	FILE *f = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(f);
	if (json)
		ck_assert_int_eq(bch_quant_print_json(f, &result), 0);
	else
		bch_quant_print(f, &result);
	fclose(f);
	return text;
}

static void compute_for_output(void)
{
	compute("int4", "auto", 0, 1000);
	result.speeds = calloc(bch_mode_count, sizeof *result.speeds);
	result.speeds[mode_of("int4")] = (struct bch_quant_speed){12.345e9, 0};
}

START_TEST(table_has_a_row_for_each_mode_and_data)
{
	size_t n = 0, width = 0, columns;
	char *text, *save, *rest;

	compute_for_output();
	text = printed(false);
	ck_assert_ptr_nonnull(strstr(text, "1000 elements, seed 3, algorithm auto"));
	ck_assert_ptr_nonnull(strstr(text, "16 hosts"));
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strstr(line, "vNMSE"))
			width = strlen(line);
		if (*line == '#')
			continue;
		ck_assert_uint_eq(strlen(line), width);
		ck_assert_ptr_nonnull(strstr(line, " int4 "));
		ck_assert_ptr_nonnull(strstr(line, " 12.35       - "));
		n++;
		columns = 0;
		for (char *w = strtok_r(line, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
			columns++;
		ck_assert_uint_eq(columns, 5 + 4 * 2);
	}
	ck_assert_uint_eq(n, 6);
	free(text);
	free(result.speeds);
}
END_TEST

static struct json_object *field(struct json_object *o, const char *key)
{
	struct json_object *v;

	ck_assert_msg(json_object_object_get_ex(o, key, &v), "%s", key);
	return v;
}

START_TEST(json_has_all_fields_of_quant)
{
	struct json_object *root, *rows, *row;
	const struct bch_quant_error *e;
	char *text;

	compute_for_output();
	result.rows[5].errors[3].l2 = (double)INFINITY;
	text = printed(true);
	root = json_tokener_parse(text);
	ck_assert_ptr_nonnull(root);
	ck_assert_str_eq(json_object_get_string(field(root, "benchmark")), "quant");
	row = field(root, "options");
	ck_assert_int_eq(json_object_get_int(field(row, "count")), 1000);
	ck_assert_int_eq(json_object_get_int(field(row, "seed")), 3);
	ck_assert_str_eq(json_object_get_string(field(row, "algorithm")), "auto");
	ck_assert_str_eq(json_object_get_string(field(row, "quantize")), "int4");
	ck_assert_str_eq(json_object_get_string(field(row, "gradient")), "");
	rows = field(root, "rows");
	ck_assert_uint_eq(json_object_array_length(rows), (size_t)6 * 4);
	row = json_object_array_get_idx(rows, 3);
	e = error_of("normal", "int4", 3);
	ck_assert_str_eq(json_object_get_string(field(row, "data")), "normal");
	ck_assert_str_eq(json_object_get_string(field(row, "mode")), "int4");
	ck_assert_str_eq(json_object_get_string(field(row, "algorithm")), "direct");
	ck_assert_int_eq(json_object_get_int(field(row, "hosts")), 16);
	ck_assert_int_eq(json_object_get_int(field(row, "count")), 1000);
	ck_assert_double_eq(json_object_get_double(field(row, "bytes_per_element")), e->bytes);
	ck_assert_double_eq(json_object_get_double(field(row, "l2")), e->l2);
	ck_assert_double_eq(json_object_get_double(field(row, "vnmse")), e->vnmse);
	ck_assert_double_eq(json_object_get_double(field(row, "encode")), 12.345e9);
	ck_assert_ptr_null(field(row, "reduce"));
	row = json_object_array_get_idx(rows, 5 * 4 + 3);
	ck_assert_str_eq(json_object_get_string(field(row, "data")), "far");
	ck_assert_ptr_null(field(row, "l2"));
	json_object_put(root);
	free(text);
	free(result.speeds);
}
END_TEST

Suite *quant_suite(void)
{
	Suite *s = suite_create("quant");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, all_modes_are_valid);
	tcase_add_test(t, numbers_have_their_distributions);
	tcase_add_test(t, error_of_an_all_reduce_is_measured);
	tcase_add_test(t, errors_are_within_their_bounds);
	tcase_add_test(t, outlier_costs_only_its_block);
	tcase_add_test(t, routes_have_their_errors);
	tcase_add_test(t, minmax_is_nearer_than_the_scheme_of_pccl1);
	tcase_add_test(t, seeds_change_the_operands);
	tcase_add_test(t, hosts_share_the_gradient);
	tcase_add_test(t, a_few_elements_are_enough);
	tcase_add_test(t, table_has_a_row_for_each_mode_and_data);
	tcase_add_test(t, json_has_all_fields_of_quant);
	suite_add_tcase(s, t);
	return s;
}
