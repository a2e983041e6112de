/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "pccl-bench/modes.h"
#include "pccl-bench/quant.h"

static void print_heading(FILE *f, const struct bch_quant_result *r)
{
	const struct bch_options *o = r->options;

	fprintf(f,
		"# pccl-bench %s: quantized sums of float, against sums in binary64\n"
		"# %" PRIu64 " elements, seed %" PRIu64 ", algorithm %s\n",
		PACKAGE_VERSION, o->count, o->seed, bch_algorithms[o->algorithm]);
	if (o->gradient)
		fprintf(f, "# gradient: %s\n", o->gradient);
	fprintf(f, "#\n# %9s %18s %8s %7s %7s", "data", "mode", "bytes", "encode", "reduce");
	for (uint32_t k = 0; k < r->n_steps; k++)
		fprintf(f, " %9" PRIu32 " hosts    ", r->rows[0].errors[k].hosts);
	fprintf(f, "\n# %9s %18s %8s %7s %7s", "", "", "(/elem)", "(GB/s)", "(GB/s)");
	for (uint32_t k = 0; k < r->n_steps; k++)
		fprintf(f, " %9s %9s", "L2", "vNMSE");
	fputc('\n', f);
}

static void put_speed(FILE *f, double speed)
{
	if (speed > 0)
		fprintf(f, " %7.2f", speed / 1e9);
	else
		fprintf(f, " %7s", "-");
}

void bch_quant_print(FILE *f, const struct bch_quant_result *r)
{
	print_heading(f, r);
	for (uint32_t i = 0; i < r->n_rows; i++) {
		const struct bch_quant_row *row = &r->rows[i];

		fprintf(f, "  %9s %18s %8.4f", row->data, bch_mode_names[row->mode],
			row->errors[r->n_steps - 1].bytes);
		put_speed(f, r->speeds[row->mode].encode);
		put_speed(f, r->speeds[row->mode].reduce);
		for (uint32_t k = 0; k < r->n_steps; k++)
			fprintf(f, " %9.3g %9.3g", row->errors[k].l2, row->errors[k].vnmse);
		fputc('\n', f);
	}
}
