/* SPDX-License-Identifier: MIT */
#include "pccl-bench/quant_run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "common/cc_sys.h"
#include "pccl-bench/modes.h"
#include "pccl-bench/quant.h"
#include "pccl-bench/sample.h"

#define SPEED_COUNT 65536u             /* elements of the segment that is measured */
#define SPEED_NS    UINT64_C(20000000) /* time for one measurement */

/* ---- the gradient ---- */

static uint32_t most_hosts(const struct bch_options *o)
{
	return o->hosts ? o->hosts : bch_quant_hosts[BCH_QUANT_STEPS - 1];
}

static int check_gradient(const struct bch_options *o, const struct bch_gradient *g)
{
	if (g->n < most_hosts(o)) {
		fprintf(stderr,
			"pccl-bench: %s has %" PRIu64 " numbers of 4 bytes, fewer than the "
			"%" PRIu32 " hosts\n",
			o->gradient, g->n, most_hosts(o));
		return EX_DATAERR;
	}
	for (uint64_t i = 0; i < g->n; i++) {
		if (isfinite(g->numbers[i]))
			continue;
		fprintf(stderr, "pccl-bench: %s: number %" PRIu64 " is infinite or NaN\n",
			o->gradient, i + 1);
		return EX_DATAERR;
	}
	return EX_OK;
}

/* Reads the file. *ret is the memory, which the caller frees, also after an error. */
static int read_gradient(const struct bch_options *o, float **ret, struct bch_gradient *g)
{
	FILE *f = fopen(o->gradient, "re");
	struct stat st;

	if (!f || fstat(fileno(f), &st) < 0) {
		fprintf(stderr, "pccl-bench: %s: %s\n", o->gradient, strerror(errno));
		if (f)
			fclose(f);
		return EX_NOINPUT;
	}
	*ret = malloc((size_t)st.st_size + 1);
	if (*ret)
		g->n = fread(*ret, sizeof **ret, (size_t)st.st_size / sizeof **ret, f);
	fclose(f);
	if (!*ret)
		return EX_OSERR;
	g->numbers = *ret;
	return check_gradient(o, g);
}

/* ---- speeds ---- */

/* The arrays of one segment. */
struct speed_arrays {
	float numbers[SPEED_COUNT], acc[SPEED_COUNT];
	uint8_t wire[8 * SPEED_COUNT]; /* no format needs more */
};

static void run_once(struct speed_arrays *a, const struct qnt_format *f, bool encode)
{
	const struct qnt_noise noise = {1, 0};

	if (encode)
		qnt_encode(f, a->wire, a->numbers, SPEED_COUNT, false, &noise);
	else
		qnt_decode_reduce(f, KRN_SUM, a->acc, a->wire, SPEED_COUNT);
}

/* Returns the speed of the fastest of many runs: disturbances only make a run slower. */
static double speed_of(struct speed_arrays *a, const struct qnt_format *f, bool encode)
{
	uint64_t best = UINT64_MAX, end = cc_now_ns() + SPEED_NS, now;

	do {
		uint64_t began = cc_now_ns();

		run_once(a, f, encode);
		now = cc_now_ns();
		if (now > began && now - began < best)
			best = now - began;
	} while (now < end);
	return SPEED_COUNT * sizeof(float) * 1e9 / (double)best;
}

static int measure_speeds(const struct bch_options *o, struct bch_quant_speed *speeds)
{
	struct speed_arrays *a = calloc(1, sizeof *a);

	if (!a)
		return EX_OSERR;
	bch_sample(a->numbers, SPEED_COUNT, BCH_NORMAL, 1);
	for (uint32_t mode = BCH_MODE_PCCL1; mode < bch_mode_count; mode++) {
		struct wire_quant_formats formats;

		if (o->quantize != BCH_MODE_ALL && o->quantize != mode)
			continue;
		formats = bch_mode_formats(mode);
		speeds[mode].encode = speed_of(a, &formats.sum, true);
		speeds[mode].reduce = speed_of(a, &formats.sum, false);
	}
	free(a);
	return EX_OK;
}

/* ---- the report ---- */

static int report(const struct bch_options *o, const struct bch_gradient *g)
{
	struct bch_quant_result r = {.speeds = calloc(bch_mode_count, sizeof *r.speeds)};
	int status = r.speeds ? measure_speeds(o, r.speeds) : EX_OSERR;

	if (status == EX_OK && bch_quant_compute(o, g, &r) < 0)
		status = EX_OSERR;
	if (status == EX_OK && !o->json)
		bch_quant_print(stdout, &r);
	else if (status == EX_OK && bch_quant_print_json(stdout, &r) < 0)
		status = EX_OSERR;
	bch_quant_free(&r);
	free(r.speeds);
	return status;
}

int bch_quant_run(const struct bch_options *o)
{
	struct bch_gradient g = {0};
	float *numbers = NULL;
	int status = o->gradient ? read_gradient(o, &numbers, &g) : EX_OK;

	if (status == EX_OK)
		status = report(o, &g);
	if (status == EX_OSERR)
		fputs("pccl-bench: no memory\n", stderr);
	free(numbers);
	return status;
}
