/* SPDX-License-Identifier: MIT
 *
 * The topology solver: finds the order of the hosts in a ring, or a plan of several rings, from the
 * rates between hosts. Also reads files with such rates. README.md explains the model and the
 * algorithms.
 *
 * The code is pure and deterministic: the same problem, objective and seed, and the same number of
 * steps, give the same answer. There is no clock inside, so the caller decides when to stop. A
 * solver belongs to one thread at a time. Memory comes from common/cc_must.h.
 *
 * Terms. A *ring* is an order of all hosts; each host sends to the next one, the last host to the
 * first one. A *plan* divides the operand over up to TPL_RINGS_MAX rings, by their weights. The
 * *rate* of a ring or plan is what one host sends to others, over all rings together. The slowest
 * link bounds it: for each link the rates of the rings that contain this link add up to at most the
 * link's rate. The hosts' caps bound it, too, because every ring leaves and enters every host once.
 *
 * Matrices have n*n elements, row after row: element i*n + j is for the link from host i to host j.
 * Elements of the diagonal are ignored. Rates and caps are in any unit, but in the same one; the
 * results have this unit.
 */
#ifndef TPL_H
#define TPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TPL_HOSTS_MIN      2u
#define TPL_HOSTS_MAX      1024u /* of TPL_BOTTLENECK and TPL_SUM */
#define TPL_PLAN_HOSTS_MAX 128u  /* of TPL_PLAN: the linear program grows with the square of it */
#define TPL_EXACT_HOSTS    16u   /* up to this number, answers are proven */
#define TPL_RINGS_MAX      4u
#define TPL_PLAN_GAIN      1.05 /* a plan of several rings is this much faster than one ring */

/* ---- problems ---- */

enum tpl_objective {
	TPL_BOTTLENECK = 1, /* one ring: the fastest slowest link; among equal ones the lowest sum
			       of 1/rate, then the lowest sum of round trips */
	TPL_SUM,            /* one ring: the lowest sum of costs */
	TPL_PLAN,           /* up to TPL_RINGS_MAX rings with weights: the highest rate */
};

struct tpl_problem {
	uint32_t n;             /* hosts */
	const double *rate;     /* matrix; 0: there is no link. Not for TPL_SUM */
	const double *trip;     /* matrix of round trips, in any unit, or NULL. Not for TPL_SUM */
	const double *out, *in; /* what host i can send and receive; 0 or NULL: unknown */
	const double *cost;     /* matrix, for TPL_SUM only; INFINITY: there is no link */
};

/* ---- the solver ---- */

struct tpl;

/* Copies the problem. Returns 0 and the solver in *ret; tpl_free frees it. Returns CC_ERR_LIMIT if
 * the objective does not allow so many or so few hosts, CC_ERR_INVAL if a matrix is missing or
 * contains a number that is negative or no number, or an infinite rate, round trip or cap. */
int tpl_new(
	const struct tpl_problem *p, enum tpl_objective objective, uint64_t seed, struct tpl **ret);
void tpl_free(struct tpl *t);

/* Does a bounded amount of work. A step takes about a millisecond at most for up to 100 hosts, and
 * up to 20 ms for TPL_HOSTS_MAX. Returns whether the work is finished: further steps change
 * nothing. Without a proof the search for one ring never finishes. */
bool tpl_work(struct tpl *t, uint32_t steps);

struct tpl_best {
	uint32_t n_rings; /* 0: no ring has been found yet */
	/* n hosts each, beginning with host 0. Valid until the next call with this solver. */
	const uint32_t *ring[TPL_RINGS_MAX];
	double weight[TPL_RINGS_MAX]; /* the sum is 1 */
	double value; /* TPL_BOTTLENECK: rate of the slowest link. TPL_SUM: sum of costs.
			 TPL_PLAN: rate of the plan */
	double bound; /* no answer has a lower cost, or a higher rate. For TPL_PLAN: with any number
			 of rings */
	double gap;   /* |bound - value| / bound; 0 if both are equal */
	bool optimal; /* the value is proven to be the best one */
	bool impossible; /* it is proven that there is no ring */
};

/* Returns the best answer so far. */
struct tpl_best tpl_best(struct tpl *t);

/* ---- evaluation ---- */

/* Returns the rate of the n_rings rings with these weights, whose sum is 1: 0 if a ring uses a link
 * that does not exist. A single ring has the weight 1. */
double tpl_plan_rate(const struct tpl_problem *p, uint32_t n_rings, const uint32_t *const *ring,
	const double *weight);
/* Returns how fast an all-reduce of n hosts takes in its operand if the plan has this rate: a host
 * sends 2*(n-1)/n bytes per byte of the operand. */
double tpl_allreduce_rate(uint32_t n, double rate);

/* ---- costs that are times ---- */

#define TPL_NO_TIME 1e-6 /* see tpl_time_rates */

/* Takes costs for the times that links need for one unit, and fills the matrix ret_rate: the rate
 * of a link is 1/cost. A cost of 0 counts as TPL_NO_TIME times the lowest other cost. Such a link
 * is so fast that it limits no plan, unless a ring consists of such links only. If all costs are 0,
 * all rates are 1. */
void tpl_time_rates(uint32_t n, const double *cost, double *ret_rate);
/* Converts the best answer of TPL_BOTTLENECK for these rates to costs: the value is the highest
 * cost of a link of the ring, and no ring has a highest cost below the bound. */
void tpl_time_bottleneck(uint32_t n, const double *cost, const double *rate, struct tpl_best *best);

/* ---- files ---- */

#define TPL_NAME_SIZE 64u /* of a host's name, with the end */
#define TPL_WHY_SIZE  256u

/* The contents of a file. */
struct tpl_matrix {
	uint32_t n;
	char (*name)[TPL_NAME_SIZE];
	double *rate;     /* bit/s; NULL in a TSPLIB file */
	double *trip;     /* seconds; or NULL */
	double *out, *in; /* bit/s; or NULL */
	double *cost;     /* NULL except in a TSPLIB file */
};

/* Parses the text of a matrix file (pcclctl(1) has the format), or of a TSPLIB file of the type
 * ATSP whose edge weights are a full matrix. Returns 0 and fills *ret, which tpl_matrix_clear
 * frees. Returns CC_ERR_INVAL, and in `why` a sentence with line, field and limit. */
int tpl_matrix_parse(const char *text, size_t len, struct tpl_matrix *ret, char why[TPL_WHY_SIZE]);
void tpl_matrix_clear(struct tpl_matrix *m);

#endif
