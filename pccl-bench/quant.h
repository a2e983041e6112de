/* SPDX-License-Identifier: MIT
 *
 * The errors of quantized sums: for each kind of operands, each mode and each number of hosts, the
 * result of a simulated all-reduce (simulate.h) is compared with the sum in binary64. All
 * operations are simulated as if they were too large for the eager path, on which results are not
 * quantized. Pure.
 *
 * Let d be the difference of the two, and s the sum in binary64. The relative L2 error is |d| /
 * |s|, and vNMSE its square, |d|^2 / |s|^2.
 */
#ifndef BCH_QUANT_H
#define BCH_QUANT_H

#include <stdint.h>
#include <stdio.h>

#include "common/cc_route.h"
#include "pccl-bench/options.h"

/* The numbers of hosts that are simulated if none is given. */
#define BCH_QUANT_STEPS 4u
extern const uint32_t bch_quant_hosts[BCH_QUANT_STEPS];
/* The names of the routes, which are also in bch_algorithms. */
extern const char *const bch_route_names[CC_ALGO_FIXED_COUNT];

/* The only number of the data "outlier" that is not normal. */
#define BCH_OUTLIER 1e4f
/* The data "far" leave out the elements that are nearer to the outlier than this number of
 * elements. So they leave out the whole block of the outlier if a block has at most this many
 * elements. */
#define BCH_OUTLIER_REACH 256u

/* The errors of one mode with one kind of operands. */
struct bch_quant_error {
	uint32_t hosts;
	enum cc_algo route;
	uint64_t count; /* elements of an operand */
	double bytes;   /* per element and direction; the mean of the bytes of sums and results */
	double l2, vnmse;
};

struct bch_quant_row {
	const char *data;
	uint32_t mode;
	struct bch_quant_error errors[BCH_QUANT_STEPS];
};

/* The speed of a mode on one core, in bytes of binary32 operands per second. 0: not measured. */
struct bch_quant_speed {
	double encode, reduce; /* reduce: decode and add */
};

struct bch_quant_result {
	const struct bch_options *options;
	uint32_t n_steps; /* numbers of hosts */
	struct bch_quant_row *rows;
	uint32_t n_rows;
	struct bch_quant_speed *speeds; /* for each mode; bch_mode_count of them */
};

/* Numbers of a file: each host has an equal part. */
struct bch_gradient {
	const float *numbers; /* NULL: there is no file */
	uint64_t n;
};

/* Computes all rows. The caller provides r->speeds. Returns 0, or CC_ERR_NOMEM. Free with
 * bch_quant_free. */
int bch_quant_compute(
	const struct bch_options *o, const struct bch_gradient *g, struct bch_quant_result *ret);
void bch_quant_free(struct bch_quant_result *r);

/* Print the table and the JSON object. bch_quant_print_json returns 0 or CC_ERR_NOMEM. */
void bch_quant_print(FILE *f, const struct bch_quant_result *r);
int bch_quant_print_json(FILE *f, const struct bch_quant_result *r);

#endif
