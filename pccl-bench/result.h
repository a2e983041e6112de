/* SPDX-License-Identifier: MIT
 *
 * What was measured, for people and for programs. Pure.
 */
#ifndef BCH_RESULT_H
#define BCH_RESULT_H

#include <stdbool.h>
#include <stdio.h>

#include "pccl-bench/options.h"
#include "pccl-bench/stats.h"

/* What was measured of one size. */
struct bch_row {
	uint64_t bytes, count; /* of the operand */
	bool timed;            /* an iteration has succeeded: times and rates are there */
	struct bch_times times;
	double algbw, busbw; /* bytes per second */
	uint64_t wrong;      /* elements of results; 0 if they are not checked */
	uint64_t failed;     /* calls */
	double cpu_s_per_gb;
	uint64_t agent_rss, trainer_rss; /* bytes; 0: not known */
};

struct bch_result {
	const struct bch_options *options;
	const char *hosts; /* what they are, for the heading */
	struct bch_row *rows;
	uint32_t n_rows;
};

/* The table: lines with # before and after the rows. */
void bch_print_heading(FILE *f, const struct bch_result *r);
void bch_print_row(FILE *f, const struct bch_options *o, const struct bch_row *row);
void bch_print_ending(FILE *f, const struct bch_result *r);

/* One JSON object. 0 or CC_ERR_NOMEM. */
int bch_print_json(FILE *f, const struct bch_result *r);

/* Wrong elements and failed calls of all rows. */
uint64_t bch_errors(const struct bch_result *r);

#endif
