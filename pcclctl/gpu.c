/* SPDX-License-Identifier: MIT */
#include "pcclctl/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#ifndef HAVE_CUDA

int ctl_gpu_check(const struct ctl_gpu *c, bool json)
{
	(void)c;
	(void)json;
	fputs("pcclctl: gpu-check needs support of CUDA, which this program was built without: "
	      "install the toolkit of CUDA, and configure with --with-cuda\n",
		stderr);
	return EX_UNAVAILABLE;
}

#else

#include <inttypes.h>
#include <json-c/json.h>

#include "common/cc_must.h"
#include "pcclctl/gpu_device.h"
#include "pcclctl/gpu_table.h"

#define FILE_MAX     ((size_t)1 << 20)
#define EX_DIFFERENT 1

struct check {
	const struct ctl_gpu *c;
	struct ctl_gpu_device *device;
	struct ctl_gpu_table known, other; /* other: of the file, if one is given */
	struct json_object *functions;     /* NULL: text is printed */
	bool differs;
};

/* What is known about one function. */
struct answer {
	const struct gpu_check_function *f;
	uint64_t hash, cpu_hash;
	enum ctl_gpu_match known, cpu, compare;
};

static int fail(int code, const char *what, const char *why)
{
	fprintf(stderr, "pcclctl: %s%s%s\n", what, *what ? ": " : "", why);
	return code;
}

/* ---- the file ---- */

static int read_table(const char *path, struct ctl_gpu_table *ret)
{
	char *text = cc_must_zalloc(FILE_MAX + 1, 1), why[96];
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, FILE_MAX + 1, f) : 0;
	int code = EX_OK, line = 0;

	if (!f || ferror(f))
		code = fail(EX_NOINPUT, path, strerror(errno));
	else if (n > FILE_MAX)
		code = fail(EX_DATAERR, path, "the file has more than 1 MiB");
	else
		line = ctl_gpu_table_parse(text, ret);
	if (line > 0)
		snprintf(why, sizeof why,
			"line %d is not \"FUNCTION ARCHITECTURE HASH\", as gpu-check prints it",
			line);
	if (line)
		code = fail(EX_DATAERR, path,
			line > 0 ? why : "this is not what gpu-check --json prints");
	else if (code == EX_OK && ret->n == 0)
		code = fail(EX_DATAERR, path, "there is no hash in this file");
	if (f)
		(void)fclose(f);
	free(text);
	return code;
}

/* ---- answers ---- */

static const char *match_text(enum ctl_gpu_match v)
{
	return v == CTL_GPU_EQUAL ? "equal" : v == CTL_GPU_DIFFERS ? "differs" : "-";
}

static void print_head(const struct check *k)
{
	if (!k->functions)
		printf("%-12s %-12s %-16s  %-8s %-16s  %-8s %s\n", "function", "architecture",
			"hash", "known", "cpu_hash", "cpu", k->c->compare ? "compare" : "");
}

static void print_answer(const struct check *k, const struct answer *a)
{
	char cpu[17] = "-";

	if (a->cpu != CTL_GPU_UNKNOWN)
		snprintf(cpu, sizeof cpu, "%016" PRIx64, a->cpu_hash);
	printf("%-12s %-12s %016" PRIx64 "  %-8s %-16s  %-8s %s\n", a->f->name,
		ctl_gpu_architecture(k->device), a->hash, match_text(a->known), cpu,
		match_text(a->cpu), k->c->compare ? match_text(a->compare) : "");
	fflush(stdout);
}

static void add_string(struct json_object *o, const char *key, const char *value)
{
	struct json_object *v = json_object_new_string(value);

	if (!v || json_object_object_add(o, key, v) != 0)
		cc_must_exhausted();
}

static void add_hash(struct json_object *o, const char *key, uint64_t hash)
{
	char text[17];

	snprintf(text, sizeof text, "%016" PRIx64, hash);
	add_string(o, key, text);
}

static void add_match(struct json_object *o, const char *key, enum ctl_gpu_match v)
{
	if (v != CTL_GPU_UNKNOWN)
		add_string(o, key, match_text(v));
}

static void add_answer(const struct check *k, const struct answer *a)
{
	struct json_object *o = json_object_new_object();

	if (!o || json_object_array_add(k->functions, o) != 0)
		cc_must_exhausted();
	add_string(o, "function", a->f->name);
	add_string(o, "computes", a->f->text);
	add_string(o, "architecture", ctl_gpu_architecture(k->device));
	add_hash(o, "hash", a->hash);
	add_match(o, "known", a->known);
	if (a->cpu != CTL_GPU_UNKNOWN)
		add_hash(o, "cpu_hash", a->cpu_hash);
	add_match(o, "cpu", a->cpu);
	add_match(o, "compare", a->compare);
}

/* Prints one object and frees it. */
static void print_object(struct check *k)
{
	struct json_object *o = json_object_new_object();
	const char *text;

	if (!o || json_object_object_add(o, "functions", k->functions) != 0)
		cc_must_exhausted();
	add_string(o, "device", ctl_gpu_name(k->device));
	text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY);
	if (!text)
		cc_must_exhausted();
	printf("%s\n", text);
	json_object_put(o);
	k->functions = NULL;
}

/* ---- evaluation ---- */

/* On a terminal, shows what is computed now. */
static void show(const char *name, const char *doing)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s%s", name, doing);
}

static void show_percent(const struct gpu_check_function *f, unsigned percent)
{
	char text[32];

	snprintf(text, sizeof text, ": %u %%", percent);
	show(f->name, text);
}

static unsigned cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (unsigned)n : 1;
}

/* Evaluates one function and prints the answer. Returns an exit status. */
static int check_function(struct check *k, const struct gpu_check_function *f)
{
	const char *architecture = ctl_gpu_architecture(k->device);
	struct answer a = {.f = f};
	char why[CTL_GPU_WHY_SIZE];
	bool ok = ctl_gpu_evaluate(k->device, f, show_percent, &a.hash, why);

	if (ok && f->on_cpu) {
		show(f->name, " on the CPU");
		if (!gpu_check_on_cpu(f, gpu_check_arguments(f), cpus(), &a.cpu_hash))
			cc_must_exhausted();
		a.cpu = a.cpu_hash == a.hash ? CTL_GPU_EQUAL : CTL_GPU_DIFFERS;
	}
	show("", "");
	if (!ok)
		return fail(EX_UNAVAILABLE, f->name, why);
	a.known = ctl_gpu_table_compare(&k->known, f->name, architecture, a.hash);
	a.compare = ctl_gpu_table_compare(&k->other, f->name, NULL, a.hash);
	k->differs = k->differs || a.known == CTL_GPU_DIFFERS || a.cpu == CTL_GPU_DIFFERS ||
		     a.compare == CTL_GPU_DIFFERS;
	if (k->functions)
		add_answer(k, &a);
	else
		print_answer(k, &a);
	return EX_OK;
}

static int check_all(struct check *k, const struct gpu_check_function *one)
{
	int code = EX_OK;

	print_head(k);
	if (one)
		code = check_function(k, one);
	for (size_t i = 0; !one && code == EX_OK && i < gpu_check_function_count; i++)
		code = check_function(k, &gpu_check_functions[i]);
	if (k->functions)
		print_object(k);
	if (code != EX_OK || !k->differs)
		return code;
	return fail(EX_DIFFERENT, "",
		"at least one function differs: hosts whose hashes differ compute different bits");
}

/* Finds the function that is named. Returns an exit status; *ret is NULL for all functions. */
static int find_function(const char *name, const struct gpu_check_function **ret)
{
	*ret = gpu_check_find(name);
	if (*ret || name[0] == '\0' || strcmp(name, "all") == 0)
		return EX_OK;
	fprintf(stderr, "pcclctl: there is no function %s for --function, only all", name);
	for (size_t i = 0; i < gpu_check_function_count; i++)
		fprintf(stderr, ", %s", gpu_check_functions[i].name);
	fputc('\n', stderr);
	return EX_USAGE;
}

int ctl_gpu_check(const struct ctl_gpu *c, bool json)
{
	const struct gpu_check_function *one;
	struct check k = {.c = c};
	char why[CTL_GPU_WHY_SIZE];
	int code = find_function(c->function, &one);

	if (code == EX_OK && c->compare)
		code = read_table(c->compare, &k.other);
	if (code == EX_OK && ctl_gpu_table_parse(pccl_gpu_check_known, &k.known) != 0)
		code = fail(EX_SOFTWARE, "gpu-check", "the table of known hashes is damaged");
	if (code == EX_OK) {
		k.device = ctl_gpu_open(c->device, why);
		if (!k.device)
			code = fail(EX_UNAVAILABLE, "gpu-check", why);
	}
	if (code == EX_OK) {
		k.functions = json ? json_object_new_array() : NULL;
		code = check_all(&k, one);
		ctl_gpu_close(k.device);
	}
	ctl_gpu_table_clear(&k.known);
	ctl_gpu_table_clear(&k.other);
	return code;
}

#endif
