/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "pccl-bench/modes.h"
#include "pccl-bench/result.h"

static const char *plural(uint32_t n)
{
	return n == 1 ? "" : "s";
}

/* Is there a column for the errors of quantized results? */
static bool has_error(const struct bch_options *o)
{
	return o->check && o->quantize != BCH_MODE_NONE;
}

void bch_print_heading(FILE *f, const struct bch_result *r)
{
	const struct bch_options *o = r->options;
	char address[CC_ADDR_STR_SIZE];

	fprintf(f, "# pccl-bench %s: all-reduce, %" PRIu32 " peer%s on %s", PACKAGE_VERSION,
		o->peers, plural(o->peers), r->hosts);
	if (o->master.family)
		fprintf(f, ", %" PRIu32 " in the run of %s", o->world_size,
			cc_addr_str(&o->master, address));
	if (o->library)
		fprintf(f, "\n# library %s", o->library);
	fprintf(f, "\n# %s memory, %s, %" PRIu32 " stream%s per link, ", bch_memories[o->memory],
		o->in_place     ? "in place"
		: o->disposable ? "out of place, disposable"
				: "out of place",
		o->streams, plural(o->streams));
	if (o->async)
		fprintf(f, "%" PRIu32 " operation%s in flight", o->async, plural(o->async));
	else
		fputs("blocking calls", f);
	if (o->quantize != BCH_MODE_NONE)
		fprintf(f, ", quantized as %s", bch_mode_names[o->quantize]);
	fprintf(f, "\n# %" PRIu32 " iteration%s after %" PRIu32 " warm-up%s, results are %s\n#\n",
		o->iterations, plural(o->iterations), o->warm_ups, plural(o->warm_ups),
		o->check ? "checked" : "not checked");
	fprintf(f, "# %10s %12s %8s %5s %10s %10s %10s %8s %8s %6s %8s %8s %8s%s\n", "size",
		"count", "type", "redop", "time", "min", "99 %", "algbw", "busbw", "errors", "cpu",
		"agent", "trainer", has_error(o) ? "        L2" : "");
	fprintf(f, "# %10s %12s %8s %5s %10s %10s %10s %8s %8s %6s %8s %8s %8s%s\n", "(B)",
		"(elements)", "", "", "(us)", "(us)", "(us)", "(GB/s)", "(GB/s)", "", "(s/GB)",
		"(MiB)", "(MiB)", has_error(o) ? "          " : "");
}

static void put_times(FILE *f, const struct bch_row *row)
{
	if (row->timed)
		fprintf(f, " %10.1f %10.1f %10.1f %8.3f %8.3f", (double)row->times.median / 1e3,
			(double)row->times.min / 1e3, (double)row->times.p99 / 1e3,
			row->algbw / 1e9, row->busbw / 1e9);
	else
		fprintf(f, " %10s %10s %10s %8s %8s", "-", "-", "-", "-", "-");
}

static void put_mib(FILE *f, uint64_t bytes)
{
	if (bytes)
		fprintf(f, " %8.1f", (double)bytes / (1 << 20));
	else
		fprintf(f, " %8s", "-");
}

void bch_print_row(FILE *f, const struct bch_options *o, const struct bch_row *row)
{
	fprintf(f, "  %10" PRIu64 " %12" PRIu64 " %8s %5s", row->bytes, row->count,
		bch_type_names[o->kind.type], bch_op_names[o->kind.op]);
	put_times(f, row);
	fprintf(f, " %6" PRIu64 " %8.3g", row->wrong + row->failed, row->cpu_s_per_gb);
	put_mib(f, row->agent_rss);
	put_mib(f, row->trainer_rss);
	if (has_error(o))
		fprintf(f, " %9.3g", row->error);
	fputc('\n', f);
}

uint64_t bch_errors(const struct bch_result *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->n_rows; i++)
		n += r->rows[i].wrong + r->rows[i].failed;
	return n;
}

void bch_print_optimized(FILE *f, const struct bch_result *r)
{
	fprintf(f, "# pcclOptimizeTopology took %.3f s; after it:\n", (double)r->optimize_ns / 1e9);
}

/* Returns the mean of the rows that were measured before the optimization, or after it. */
static double mean_busbw(const struct bch_result *r, bool optimized)
{
	double sum = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n_rows; i++) {
		if (r->rows[i].optimized != optimized)
			continue;
		sum += r->rows[i].busbw;
		n++;
	}
	return n ? sum / n / 1e9 : 0;
}

void bch_print_ending(FILE *f, const struct bch_result *r)
{
	fprintf(f, "#\n# errors: %" PRIu64 "\n# mean of busbw: %.3f GB/s\n", bch_errors(r),
		mean_busbw(r, false));
	if (r->optimize_ns)
		fprintf(f, "# mean of busbw after the optimization: %.3f GB/s\n",
			mean_busbw(r, true));
}
