/* SPDX-License-Identifier: MIT
 *
 * Tests the parts of pccl-bench that compute and format.
 */
#include <json-c/json.h>
#include <string.h>

#include "common/cc_err.h"
#include "kernels/krn.h"
#include "pccl-bench/data.h"
#include "pccl-bench/options.h"
#include "pccl-bench/result.h"
#include "pccl-bench/size.h"
#include "pccl-bench/stats.h"
#include "tests/bench/suites.h"
#include "tests/common/testlib.h"

/* ---- sizes ---- */

START_TEST(sizes_follow_each_other)
{
	ck_assert_uint_eq(bch_size_next(4, 4, 64), 16);
	ck_assert_uint_eq(bch_size_next(16, 4, 64), 64);
	ck_assert_uint_eq(bch_size_next(64, 4, 64), 0);
	ck_assert_uint_eq(bch_size_next(16, 4, 63), 0);
	ck_assert_uint_eq(bch_size_next(BCH_SIZE_MAX, 1u << 20, BCH_SIZE_MAX), 0);
	ck_assert_uint_eq(bch_size_count(4, 4, 1 << 30), 15);
	ck_assert_uint_eq(bch_size_count(4, 2, 4), 1);
	ck_assert_uint_eq(bch_size_count(1, 2, BCH_SIZE_MAX), 41);
}
END_TEST

/* ---- statistics ---- */

START_TEST(statistics_of_few_times)
{
	const uint64_t t[] = {1, 3, 10, 100};
	struct bch_times got;

	bch_times_of(t, 1, &got);
	ck_assert(got.min == 1 && got.median == 1 && got.p99 == 1);
	bch_times_of(t, 2, &got);
	ck_assert(got.min == 1 && got.median == 2 && got.p99 == 3);
	bch_times_of(t, 3, &got);
	ck_assert(got.min == 1 && got.median == 3 && got.p99 == 10);
	bch_times_of(t, 4, &got);
	ck_assert(got.min == 1 && got.median == 6 && got.p99 == 100);
}
END_TEST

START_TEST(statistics_of_many_times)
{
	uint64_t t[1000];
	struct bch_times got;

	for (uint64_t i = 0; i < 1000; i++)
		t[i] = i + 1;
	bch_times_of(t, 100, &got);
	ck_assert_uint_eq(got.p99, 99);
	bch_times_of(t, 101, &got);
	ck_assert_uint_eq(got.p99, 100);
	ck_assert_uint_eq(got.median, 51);
	bch_times_of(t, 1000, &got);
	ck_assert_uint_eq(got.p99, 990);
	ck_assert_uint_eq(got.median, 500);
}
END_TEST

START_TEST(slowest_peer_determines_time)
{
	uint64_t t[] = {5, 9, 1, BCH_FAILED, 6, 2, 7, 3};

	ck_assert_uint_eq(bch_times_merge(t, 2, 4), 3);
	ck_assert(t[0] == 6 && t[1] == 7 && t[2] == 9);
	t[0] = BCH_FAILED;
	ck_assert_uint_eq(bch_times_merge(t, 1, 1), 0);
}
END_TEST

START_TEST(rates_follow_from_bytes_and_time)
{
	ck_assert_double_eq(bch_algbw(1000, 500), 2e9);
	ck_assert_double_eq(bch_algbw(1000, 0), 0);
	ck_assert_double_eq(bch_busbw(2e9, 2), 2e9);
	ck_assert_double_eq(bch_busbw(2e9, 4), 3e9);
}
END_TEST

/* ---- operands and results ---- */

static const uint32_t worlds[] = {2, 3, 4, 7, 8, 31, 125, BCH_PEERS_MAX};

/* Combines the contributions of n peers one after the other, beginning with peer `first`. The
 * result depends on the order if a sum is rounded or overflows. */
static void combine(void *ret, const struct bch_kind *kind, uint32_t n, uint32_t first)
{
	static uint64_t next[BCH_PATTERN_COUNT];
	const void *srcs[2] = {ret, next};

	for (uint32_t k = 0; k < n; k++) {
		bch_pattern_operand(k ? next : ret, kind, n, (first + k) % n, 5);
		if (k)
			krn_reduce((enum krn_dtype)kind->type, (enum krn_op)kind->op, ret, srcs, 2,
				BCH_PATTERN_COUNT);
	}
	if (kind->op == pcclAvg)
		krn_divide((enum krn_dtype)kind->type, ret, BCH_PATTERN_COUNT, n);
}

START_TEST(results_of_operands_are_known_exactly)
{
	static uint64_t got[BCH_PATTERN_COUNT], want[BCH_PATTERN_COUNT];
	struct bch_kind kind = {.op = (pcclRedOp_t)_i};

	for (kind.type = 0; kind.type <= pcclDouble; kind.type++) {
		size_t bytes = BCH_PATTERN_COUNT * bch_type_size(kind.type);

		for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
			bch_pattern_result(want, &kind, worlds[w], 5);
			for (uint32_t first = 0; first < worlds[w]; first += worlds[w] - 1) {
				combine(got, &kind, worlds[w], first);
				ck_assert_msg(memcmp(got, want, bytes) == 0, "%s of %u peers",
					bch_type_names[kind.type], worlds[w]);
			}
		}
	}
}
END_TEST

/* The check notices a contribution that is missing, that was added twice, or that comes from
 * another round. */
START_TEST(faulty_contributions_are_noticed)
{
	static uint32_t pattern[2][BCH_PATTERN_COUNT], want[BCH_PATTERN_COUNT];
	struct bch_kind kind = {.type = pcclInt32, .op = (pcclRedOp_t)_i};
	const void *srcs[2] = {pattern[0], pattern[1]};
	uint32_t other[BCH_PATTERN_COUNT];

	for (int fault = 0; fault < 3; fault++) {
		bch_pattern_operand(pattern[0], &kind, 2, 0, 1);
		bch_pattern_operand(pattern[1], &kind, 2, fault != 1, fault == 2 ? 2 : 1);
		bch_pattern_result(want, &kind, 2, 1);
		krn_reduce(KRN_I32, (enum krn_op)kind.op, other, srcs, fault == 0 ? 1 : 2,
			BCH_PATTERN_COUNT);
		ck_assert_uint_gt(
			bch_data_wrong(other, BCH_PATTERN_COUNT, 4, want), BCH_PATTERN_COUNT / 8);
	}
}
END_TEST

START_TEST(wrong_elements_are_counted)
{
	const struct bch_kind kind = {.type = pcclFloat16, .op = pcclSum};
	static uint16_t pattern[BCH_PATTERN_COUNT], buf[3 * BCH_PATTERN_COUNT + 5];
	size_t n = sizeof buf / sizeof buf[0];

	bch_pattern_result(pattern, &kind, 4, 9);
	bch_data_fill(buf, n, 2, pattern);
	ck_assert_uint_eq(bch_data_wrong(buf, n, 2, pattern), 0);
	buf[0] ^= 1;
	buf[1] ^= 0x8000;
	buf[(size_t)2 * BCH_PATTERN_COUNT] ^= 1;
	buf[n - 1] ^= 1;
	ck_assert_uint_eq(bch_data_wrong(buf, n, 2, pattern), 4);
	ck_assert_uint_eq(bch_data_wrong(buf, n - 1, 2, pattern), 3);
	bch_data_fill(buf, n, 2, pattern);
	memmove(buf, buf + 1024, 1024);
	ck_assert_uint_gt(bch_data_wrong(buf, n, 2, pattern), 100);
}
END_TEST

/* ---- options ---- */

#define WORDS_MAX 12

/* words: separated by single blanks */
static int parse(const char *words, struct bch_options *ret, char complaint[BCH_COMPLAINT_SIZE])
{
	static char copy[300];
	char *argv[WORDS_MAX + 2] = {(char *)"pccl-bench"}, *save;
	int n = 1;

	snprintf(copy, sizeof copy, "%s", words);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		ck_assert_int_le(n, WORDS_MAX);
		argv[n++] = w;
	}
	return bch_options_parse(ret, n, argv, complaint);
}

START_TEST(options_have_defaults)
{
	char complaint[BCH_COMPLAINT_SIZE];
	struct bch_options o;

	ck_assert_int_eq(parse("allreduce", &o, complaint), 0);
	ck_assert(o.todo == CC_OPTIONS_GO_ON && o.begin == 4 && o.end == 64 << 20 && o.factor == 4);
	ck_assert(o.iterations == 20 && o.warm_ups == 5 && o.peers == 2 && o.world_size == 2);
	ck_assert(o.kind.type == pcclFloat && o.kind.op == pcclSum && o.hosts == 1);
	ck_assert(o.streams == 1 && o.async == 0 && o.memory == BCH_STAGED && !o.in_place &&
		  !o.check);
	ck_assert(!o.disposable && o.quantize == BCH_MODE_NONE && o.benchmark == BCH_ALLREDUCE);
	ck_assert_int_eq(parse("quant", &o, complaint), 0);
	ck_assert(o.benchmark == BCH_QUANT && o.quantize == BCH_MODE_ALL && o.hosts == 0);
	ck_assert(o.count == 1 << 20 && o.seed == 1 && o.algorithm == 0 && !o.gradient);
	ck_assert_int_eq(parse("allreduce -t double", &o, complaint), 0);
	ck_assert_uint_eq(o.begin, 8);
	ck_assert_int_eq(parse("allreduce -t uint8 -e 2", &o, complaint), 0);
	ck_assert_uint_eq(o.begin, 2);
}
END_TEST

START_TEST(all_options_are_parsed)
{
	char complaint[BCH_COMPLAINT_SIZE];
	struct bch_options o;

	ck_assert_int_eq(parse("-b 8 -e 1G -f 8 -n 7 -w 0 allreduce", &o, complaint), 0);
	ck_assert(o.begin == 8 && o.end == 1 << 30 && o.factor == 8);
	ck_assert(o.iterations == 7 && o.warm_ups == 0);
	ck_assert_int_eq(parse("allreduce --type bfloat16 --op avg --peers 5 --hosts=5 --in-place "
			       "--check --json",
				 &o, complaint),
		0);
	ck_assert(o.kind.type == pcclBFloat16 && o.kind.op == pcclAvg && o.peers == 5);
	ck_assert(o.hosts == 5 && o.world_size == 5 && o.in_place && o.check && o.json);
	ck_assert(!o.disposable);
	ck_assert_int_eq(parse("allreduce --memory registered --streams 4 --async 64 --timeout 9",
				 &o, complaint),
		0);
	ck_assert(
		o.memory == BCH_REGISTERED && o.streams == 4 && o.async == 64 && o.timeout_s == 9);
	ck_assert_int_eq(parse("allreduce --memory registered --disposable", &o, complaint), 0);
	ck_assert(o.memory == BCH_REGISTERED && o.disposable && !o.in_place);
	ck_assert_int_eq(
		parse("allreduce --master [::1]:77 --world 9 --first-rank 7", &o, complaint), 0);
	ck_assert(o.master.family == CC_INET6 && o.master.port == 77);
	ck_assert(o.world_size == 9 && o.first_rank == 7);
	ck_assert_int_eq(parse("allreduce --library x.so --memory staged", &o, complaint), 0);
	ck_assert_str_eq(o.library, "x.so");
	bch_options_clear(&o);
	ck_assert_int_eq(
		parse("allreduce --quantize int4-mixed --op avg --check", &o, complaint), 0);
	ck_assert_str_eq(bch_mode_names[o.quantize], "int4-mixed");
	ck_assert_int_eq(parse("quant --quantize pccl1-minmax-uint8 --hosts 64 --count 5 --seed 0 "
			       "--gradient x --json",
				 &o, complaint),
		0);
	ck_assert(o.quantize == BCH_MODE_PCCL1 && o.hosts == 64 && o.count == 5 && o.seed == 0);
	ck_assert_str_eq(o.gradient, "x");
	bch_options_clear(&o);
	ck_assert_int_eq(parse("--help nonsense", &o, complaint), 0);
	ck_assert_int_eq(o.todo, CC_OPTIONS_HELP);
	ck_assert_int_eq(parse("allreduce --version", &o, complaint), 0);
	ck_assert_int_eq(o.todo, CC_OPTIONS_VERSION);
}
END_TEST

/* Wrong options. The sentence names the option and its allowed values. */
static const struct {
	const char *words, *option, *limit;
} refused[] = {
	{"", "allreduce", "quant"},
	{"sync", "sync", "allreduce and quant"},
	{"allreduce sync", "sync", "one"},
	{"quant allreduce", "allreduce", "one"},
	{"allreduce -b 4Q", "--begin", "1 to 1T"},
	{"allreduce -e 2T", "--end", "1 to 1T"},
	{"allreduce -f 1", "--factor", "2 to 1048576"},
	{"allreduce -n 0", "--iterations", "1 to 100000"},
	{"allreduce -w 100001", "--warm-ups", "0 to 100000"},
	{"allreduce -t real", "--type", "bfloat16"},
	{"allreduce -o mean", "--op", "avg"},
	{"allreduce --peers 127", "--peers", "1 to 126"},
	{"allreduce --peers 1", "--peers", "at least 2"},
	{"allreduce --hosts 65", "--hosts", "1 to 64"},
	{"allreduce --hosts 3", "--hosts", "2 peers"},
	{"allreduce --memory shared", "--memory", "staged, registered or cuda"},
	{"allreduce --streams 0", "--streams", "1 to 64"},
	{"allreduce --async 65", "--async", "1 to 64"},
	{"allreduce --timeout x", "--timeout", "1 to 86400"},
	{"allreduce --master localhost", "--master", "numeric"},
	{"allreduce --master 1.2.3.4:0", "--master", "PORT from 1 to 65535"},
	{"allreduce --world 3", "--world", "--master"},
	{"allreduce --master 1.2.3.4 --hosts 2", "--hosts", "--master"},
	{"allreduce --master 1.2.3.4 --first-rank 1", "--world", "--peers, 3"},
	{"allreduce -b 1M -e 1K", "--begin", "--end, 1024"},
	{"allreduce -b 4 -t double", "--begin", "8 bytes of one double"},
	{"allreduce --library x --memory registered", "--memory registered", "--library"},
	{"allreduce --in-place --disposable", "--disposable", "--in-place"},
	{"allreduce --library x --disposable", "--disposable", "--library"},
	{"allreduce --disposable=1", "--disposable", "no value"},
	{"allreduce --peers", "--peers", "value"},
	{"quant --hosts 1", "--hosts", "at least 2"},
	{"quant --hosts 65", "--hosts", "1 to 64"},
	{"quant --count 0", "--count", "1 to 16777216"},
	{"quant --count 16777217", "--count", "1 to 16777216"},
	{"quant --seed -1", "--seed", "0 to 4294967295"},
	{"quant --quantize int3", "--quantize", "int4-mixed"},
	{"quant --algorithm star", "--algorithm", "tree"},
	{"quant --quantize pccl1-minmax-uint8 --algorithm direct", "--algorithm", "ring"},
	{"quant --peers 2", "--peers", "quant"},
	{"quant --check", "--check", "quant"},
	{"quant --library x", "--library", "quant"},
	{"allreduce --count 5", "--count", "allreduce"},
	{"allreduce --seed 5", "--seed", "allreduce"},
	{"allreduce --gradient x", "--gradient", "allreduce"},
	{"allreduce --quantize all", "--quantize", "all"},
	{"allreduce --quantize pccl1-minmax-uint8", "--quantize", "pccl1-minmax-uint8"},
	{"allreduce --quantize int8 -t half", "--quantize", "half"},
	{"allreduce --quantize int8 -o max --check", "--quantize", "max"},
	{"allreduce --nonsense", "--nonsense", "no option"},
	{"allreduce --check=1", "--check", "no value"},
	{"allreduce -x", "-x", "no option"},
};

START_TEST(wrong_options_are_refused)
{
	char complaint[BCH_COMPLAINT_SIZE] = "";
	struct bch_options o = {.peers = 77};

	ck_assert_int_eq(parse(refused[_i].words, &o, complaint), CC_ERR_INVAL);
	ck_assert_uint_eq(o.peers, 77);
	ck_assert_msg(strstr(complaint, refused[_i].option) && strstr(complaint, refused[_i].limit),
		"%s: %s", refused[_i].words, complaint);
}
END_TEST

/* ---- output ---- */

static struct bch_options options;
static struct bch_row rows[2];
static const struct bch_result result = {
	.options = &options, .hosts = "2 hosts", .rows = rows, .n_rows = 2};

static void setup(void)
{
	char complaint[BCH_COMPLAINT_SIZE];

	ck_assert_int_eq(parse("allreduce --check --peers 4 --hosts 2", &options, complaint), 0);
	rows[0] = (struct bch_row){.bytes = 1048576,
		.count = 262144,
		.timed = true,
		.times = {.median = 1500000, .min = 1250000, .p99 = 2000049},
		.algbw = 2e9,
		.busbw = 3e9,
		.cpu_s_per_gb = 0.25,
		.agent_rss = 3 << 20,
		.trainer_rss = 5 << 19};
	rows[1] = (struct bch_row){.bytes = 16, .count = 4, .wrong = 3, .failed = 2};
}

static char *text;

static FILE *open_text(void)
{
	static size_t size;
	FILE *f = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(f);
	return f;
}

START_TEST(table_has_rows)
{
	FILE *f = open_text();
	const char *want[] = {"1048576", "262144", "float", "sum", "1500.0", "1250.0", "2000.0",
		"2.000", "3.000", "0", "0.25", "3.0", "2.5", "16", "4", "float", "sum", "-", "-",
		"-", "-", "-", "5", "0", "-", "-"};
	char *word, *save;
	size_t n = 0;

	bch_print_row(f, &options, &rows[0]);
	bch_print_row(f, &options, &rows[1]);
	fclose(f);
	for (word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		ck_assert_uint_lt(n, sizeof want / sizeof want[0]);
		ck_assert_str_eq(word, want[n++]);
	}
	ck_assert_uint_eq(n, sizeof want / sizeof want[0]);
	free(text);
}
END_TEST

START_TEST(all_lines_except_rows_are_comments)
{
	FILE *f = open_text();
	char *line, *save;
	size_t width = 0;

	bch_print_heading(f, &result);
	bch_print_ending(f, &result);
	bch_print_row(f, &options, &rows[0]);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(text, "4 peers on 2 hosts"));
	ck_assert_ptr_nonnull(strstr(text, "out of place"));
	ck_assert_ptr_null(strstr(text, "disposable"));
	ck_assert_ptr_null(strstr(text, "L2"));
	ck_assert_ptr_nonnull(strstr(text, "errors: 5"));
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		ck_assert(line[0] == '#' || strstr(line, "1048576"));
		if (strstr(line, "algbw"))
			width = strlen(line);
		else if (line[0] != '#')
			ck_assert_uint_eq(strlen(line), width);
	}
	free(text);
}
END_TEST

/* The tables of runs with and without disposable outputs must not look alike. */
START_TEST(disposable_outputs_are_shown)
{
	FILE *f = open_text();
	struct json_object *root, *v, *flag;

	options.disposable = true;
	bch_print_heading(f, &result);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(text, "out of place, disposable"));
	free(text);
	text = NULL;
	f = open_text();
	ck_assert_int_eq(bch_print_json(f, &result), 0);
	fclose(f);
	root = json_tokener_parse(text);
	ck_assert_ptr_nonnull(root);
	ck_assert(json_object_object_get_ex(root, "options", &v));
	ck_assert(json_object_object_get_ex(v, "disposable", &flag));
	ck_assert(json_object_get_boolean(flag));
	json_object_put(root);
	free(text);
}
END_TEST

/* Only runs that check quantized results have a column for their errors. */
START_TEST(quantization_is_shown)
{
	FILE *f = open_text();
	struct json_object *root, *list, *v;

	options.quantize = BCH_MODE_FIRST;
	rows[0].error = 0.0125;
	bch_print_heading(f, &result);
	bch_print_row(f, &options, &rows[0]);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(text, "quantized as half"));
	ck_assert_ptr_nonnull(strstr(text, " L2\n"));
	ck_assert_ptr_nonnull(strstr(text, " 0.0125\n"));
	free(text);
	text = NULL;
	f = open_text();
	ck_assert_int_eq(bch_print_json(f, &result), 0);
	fclose(f);
	root = json_tokener_parse(text);
	ck_assert(json_object_object_get_ex(root, "rows", &list));
	ck_assert(json_object_object_get_ex(json_object_array_get_idx(list, 0), "l2", &v));
	ck_assert_double_eq(json_object_get_double(v), 0.0125);
	ck_assert(json_object_object_get_ex(json_object_array_get_idx(list, 1), "l2", &v) && !v);
	json_object_put(root);
	free(text);
}
END_TEST

static uint64_t number(struct json_object *o, const char *key)
{
	struct json_object *v;

	ck_assert_msg(json_object_object_get_ex(o, key, &v) && v, "%s", key);
	return json_object_get_uint64(v);
}

START_TEST(json_has_all_fields)
{
	struct json_object *root, *list, *row, *v;
	FILE *f = open_text();

	ck_assert_int_eq(bch_print_json(f, &result), 0);
	fclose(f);
	root = json_tokener_parse(text);
	ck_assert_ptr_nonnull(root);
	ck_assert_uint_eq(number(root, "errors"), 5);
	ck_assert(json_object_object_get_ex(root, "options", &v));
	ck_assert_uint_eq(number(v, "peers"), 4);
	ck_assert(json_object_object_get_ex(root, "rows", &list));
	ck_assert_uint_eq(json_object_array_length(list), 2);
	row = json_object_array_get_idx(list, 0);
	ck_assert_uint_eq(number(row, "size"), 1048576);
	ck_assert_uint_eq(number(row, "time_median_ns"), 1500000);
	ck_assert_uint_eq(number(row, "time_p99_ns"), 2000049);
	ck_assert_uint_eq(number(row, "busbw"), 3000000000);
	ck_assert_uint_eq(number(row, "agent_rss"), 3 << 20);
	row = json_object_array_get_idx(list, 1);
	ck_assert_uint_eq(number(row, "wrong"), 3);
	ck_assert_uint_eq(number(row, "failed"), 2);
	ck_assert_uint_eq(number(row, "errors"), 5);
	ck_assert(json_object_object_get_ex(row, "time_min_ns", &v) && !v);
	ck_assert(json_object_object_get_ex(row, "agent_rss", &v) && !v);
	json_object_put(root);
	free(text);
}
END_TEST

Suite *bench_suite(void)
{
	Suite *s = suite_create("bench");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, sizes_follow_each_other);
	tcase_add_test(t, statistics_of_few_times);
	tcase_add_test(t, statistics_of_many_times);
	tcase_add_test(t, slowest_peer_determines_time);
	tcase_add_test(t, rates_follow_from_bytes_and_time);
	tcase_add_loop_test(t, results_of_operands_are_known_exactly, pcclSum, pcclMin + 1);
	tcase_add_loop_test(t, faulty_contributions_are_noticed, pcclSum, pcclMin + 1);
	tcase_add_test(t, wrong_elements_are_counted);
	tcase_add_test(t, options_have_defaults);
	tcase_add_test(t, all_options_are_parsed);
	tcase_add_loop_test(t, wrong_options_are_refused, 0, sizeof refused / sizeof refused[0]);
	tcase_add_test(t, table_has_rows);
	tcase_add_test(t, all_lines_except_rows_are_comments);
	tcase_add_test(t, disposable_outputs_are_shown);
	tcase_add_test(t, quantization_is_shown);
	tcase_add_test(t, json_has_all_fields);
	suite_add_tcase(s, t);
	return s;
}
