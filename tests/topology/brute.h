/* SPDX-License-Identifier: MIT
 *
 * Slow and simple answers to the problems of topology/, and random problems.
 */
#ifndef TESTS_TOPOLOGY_BRUTE_H
#define TESTS_TOPOLOGY_BRUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/common/testlib.h"
#include "topology/tpl.h"

#define BRUTE_MAX 24u /* hosts of a matrix */

struct brute {
	uint32_t n;
	double rate[BRUTE_MAX * BRUTE_MAX];
	double cost[BRUTE_MAX * BRUTE_MAX];
	double out[BRUTE_MAX], in[BRUTE_MAX];
};

enum brute_kind {
	BRUTE_EVEN,   /* all rates are equally likely */
	BRUTE_COARSE, /* few different rates, so that many rings are equal */
	BRUTE_SITES,  /* two sites: slow links between them, and some links do not exist */
	BRUTE_SPARSE, /* most links do not exist */
	BRUTE_KINDS,
};

/* Fills rates, and costs that are 1/rate; INFINITY for links that do not exist. */
void brute_fill(struct tl_rng *r, struct brute *b, uint32_t n, enum brute_kind kind);
void brute_fill_caps(struct tl_rng *r, struct brute *b);

/* Calls fn for all rings, with host 0 first. */
void brute_rings(uint32_t n, void (*fn)(void *arg, const uint32_t *ring), void *arg);

/* Of all rings: */
struct brute_best {
	double cost;       /* the lowest sum of costs */
	double bottleneck; /* the fastest slowest link */
	double its_cost;   /* the lowest sum of costs of the rings with this slowest link */
};
struct brute_best brute_best(const struct brute *b);

/* The highest sum of the rates of all rings together, by a linear program with a column for each
 * ring. *n_rings: this many rings are enough. For up to 6 hosts. */
double brute_plan(const struct brute *b, double cap, uint32_t *n_rings);

/* Returns the lowest sum of costs by recursion over sets of hosts. For up to 18 hosts. */
double brute_sum(const struct brute *b);
/* Returns the highest rate such that links of this rate form a ring, or 0. For up to 16 hosts. */
double brute_bottleneck(const struct brute *b);

/* Fails unless the rings are valid: each contains each host once, and begins with host 0. */
void brute_check_rings(uint32_t n, const struct tpl_best *best);
double brute_cost(const struct brute *b, const uint32_t *ring);

#endif
