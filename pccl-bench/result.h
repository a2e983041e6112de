/* SPDX-License-Identifier: MIT
 *
 * The measurements, for people and for programs. Pure.
 */
#ifndef BCH_RESULT_H
#define BCH_RESULT_H

#include <stdbool.h>
#include <stdio.h>

#include "pccl-bench/options.h"
#include "pccl-bench/stats.h"

/* The measurements of one size. */
struct bch_row {
	bool optimized;        /* measured after pcclOptimizeTopology */
	uint64_t bytes, count; /* of an operand */
	bool timed;            /* an iteration has succeeded, so times and rates are valid */
	struct bch_times times;
	double algbw, busbw; /* bytes per second */
	uint64_t wrong;      /* wrong elements of results; 0 if results are not checked */
	uint64_t failed;     /* calls */
	double error;        /* the largest relative L2 error of a quantized result, if checked */
	double cpu_s_per_gb;
	uint64_t agent_rss, trainer_rss; /* bytes; 0: unknown */
};

struct bch_result {
	const struct bch_options *options;
	const char *hosts; /* description for the heading */
	struct bch_row *rows;
	uint32_t n_rows;
	uint64_t optimize_ns; /* how long pcclOptimizeTopology took; 0: it was not called */
};

/* Print the table. Lines before and after the rows begin with #. */
void bch_print_heading(FILE *f, const struct bch_result *r);
void bch_print_row(FILE *f, const struct bch_options *o, const struct bch_row *row);
/* Says how long pcclOptimizeTopology took. The rows that follow were measured after it. */
void bch_print_optimized(FILE *f, const struct bch_result *r);
void bch_print_ending(FILE *f, const struct bch_result *r);

/* Prints one JSON object. Returns 0 or CC_ERR_NOMEM. */
int bch_print_json(FILE *f, const struct bch_result *r);

/* Returns the number of wrong elements and failed calls in all rows. */
uint64_t bch_errors(const struct bch_result *r);

#endif
