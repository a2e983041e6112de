/* SPDX-License-Identifier: MIT
 *
 * Inside the topology solver. From the bottom to the top:
 *
 *   tpl_rate.c    rates of rings and plans
 *   tpl_time.c    costs that are times
 *   tpl_text.c    words and numbers of files
 *   tpl_matrix.c  matrix files of this project
 *   tpl_tsplib.c  files of TSPLIB
 *   tpl_costs.c   costs that the algorithms below can handle
 *   tpl_ap.c      the assignment problem
 *   tpl_cycles.c  cycles of an assignment, and patching them to a ring
 *   tpl_dp.c      exact rings of up to TPL_EXACT_HOSTS hosts
 *   tpl_search.c  local search with perturbation
 *   tpl_branch.c  branch and bound over assignments
 *   tpl_tree.c    a lower bound by trees
 *   tpl_sum.c     the ring with the lowest sum of costs
 *   tpl_neck.c    the ring with the fastest slowest link
 *   tpl_neckap.c  the upper bound of the slowest link
 *   tpl_lp.c      the linear program of a plan
 *   tpl_subset.c  the choice of a few rings
 *   tpl_plan.c    plans: column generation
 *   tpl.c         the interface
 */
#ifndef TPL_INTERNAL_H
#define TPL_INTERNAL_H

#include <math.h>

#include "common/cc_must.h"
#include "topology/tpl.h"

#define TPL_NONE UINT32_MAX

/* ---- random numbers ---- */

/* splitmix64 (Steele, Lea and Flood: Fast Splittable Pseudorandom Number Generators, 2014). */
static inline uint64_t tpl_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Returns a random number below n. */
static inline uint32_t tpl_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(((tpl_random(state) >> 32) * n) >> 32);
}

/* ---- rings ---- */

/* Returns the sum of costs. */
double tpl_ring_cost(uint32_t n, const double *cost, const uint32_t *ring);
/* Returns the rate of the slowest link. */
double tpl_ring_bottleneck(uint32_t n, const double *rate, const uint32_t *ring);
/* Returns the lowest known cap of all hosts, or INFINITY. */
double tpl_cap(uint32_t n, const double *out, const double *in);
/* Writes the ring so that it begins with host 0. */
void tpl_ring_turn(uint32_t n, const uint32_t *ring, uint32_t *ret);

/* ---- costs ---- */

/* A matrix of finite costs. Links that do not exist, and the diagonal, cost `never`, which exceeds
 * the sum of any ring of links that exist. */
struct tpl_costs {
	uint32_t n;
	double *c;
	double never;
	double eps;    /* smaller differences are rounding errors; 0 < eps < 1/2 if integral */
	bool integral; /* all costs are integers, so sums are exact and bounds can be rounded up */
};

/* Copies a matrix in which links that do not exist cost INFINITY. */
void tpl_costs_init(struct tpl_costs *c, uint32_t n, const double *cost);
void tpl_costs_clear(struct tpl_costs *c);
/* Returns whether this can be the cost of a ring of links that exist. */
static inline bool tpl_costs_possible(const struct tpl_costs *c, double sum)
{
	return sum < c->never / 2;
}
/* Returns the lowest cost that a ring can have if `bound` is a lower bound. */
double tpl_costs_round(const struct tpl_costs *c, double bound);
/* Returns whether links that exist lead from each host to each other host. */
bool tpl_costs_connected(const struct tpl_costs *c);

/* ---- the assignment problem ---- */

/* Assigns to each host its next host, with the lowest sum of costs, without regard to cycles. The
 * dual values prove the sum: u[i] + v[j] <= cost, with equality for assigned pairs. */
struct tpl_ap {
	uint32_t n;
	uint32_t *next, *prev; /* TPL_NONE: not assigned */
	double *u, *v;
	double *dist; /* scratch of a path */
	uint32_t *from, *queue;
	bool *fixed; /* hosts whose previous host must not change */
};

void tpl_ap_init(struct tpl_ap *a, uint32_t n);
void tpl_ap_clear(struct tpl_ap *a);
/* Chooses dual values, and assigns as much as they allow. */
void tpl_ap_begin(struct tpl_ap *a, const double *cost);
/* Assigns host i, which has no next host, and changes other assignments as needed. Returns the
 * growth of the sum of dual values. If the growth would reach `limit`, changes nothing and returns
 * a number that is at least `limit`. */
double tpl_ap_augment(struct tpl_ap *a, const double *cost, uint32_t i, double limit);
/* Returns the sum of dual values: a lower bound of the sum of costs. */
double tpl_ap_bound(const struct tpl_ap *a);
/* Changes the assignments `next` and `prev` along a path from host i to host j. from[k] is the host
 * from which the path comes to host k. */
void tpl_ap_follow(uint32_t *next, uint32_t *prev, const uint32_t *from, uint32_t i, uint32_t j);

/* ---- cycles ---- */

/* Numbers the cycles of an assignment. Returns how many there are. */
uint32_t tpl_cycles(uint32_t n, const uint32_t *next, uint32_t *ret_cycle_of);
/* Joins the two cycles that are cheapest to join (Karp: A patching algorithm for the nonsymmetric
 * traveling salesman problem, 1979). cycle_of is updated. */
void tpl_cycles_patch(uint32_t n, const double *cost, uint32_t *next, uint32_t *cycle_of);
/* Writes the order of the hosts along the only cycle. */
void tpl_cycle_order(uint32_t n, const uint32_t *next, uint32_t *ret);

/* ---- exact rings ---- */

/* The ring with the lowest sum by dynamic programming over sets of hosts (Bellman 1962; Held and
 * Karp 1962). */
struct tpl_dp {
	uint32_t n, at;     /* at: the next set */
	const double *cost; /* INFINITY: there is no link */
	double *best;       /* for each set and its last host */
};

void tpl_dp_init(struct tpl_dp *d, uint32_t n);
void tpl_dp_clear(struct tpl_dp *d);
void tpl_dp_begin(struct tpl_dp *d, const double *cost);
/* Treats the next sets. Returns whether all have been treated. */
bool tpl_dp_step(struct tpl_dp *d);
/* Returns the sum of the best ring and writes this ring; INFINITY: there is none. */
double tpl_dp_ring(const struct tpl_dp *d, uint32_t *ret_ring);

/* Returns whether there is a ring whose links have at least this rate. */
bool tpl_dp_exists(uint32_t n, const double *rate, double least);

/* ---- local search ---- */

#define TPL_NEAR 10u /* candidates for the next host of a host */

struct tpl_search {
	uint32_t n, k; /* k: candidates per host */
	const double *cost;
	double eps;
	uint32_t *near; /* k for each host, the cheapest first */
	uint32_t *tour, *pos, *kept, *kept_pos, *best, *piece;
	double now, best_cost;         /* the costs of `tour` and `best` */
	uint32_t *queue, head, queued; /* hosts whose links may be improved */
	bool *in_queue;
	uint32_t idle; /* perturbations since the last improvement */
	uint64_t random;
};

void tpl_search_init(struct tpl_search *s, uint32_t n, uint64_t seed);
void tpl_search_clear(struct tpl_search *s);
/* Begins with these costs. Before a search, tpl_search_near chooses candidates for every host. */
void tpl_search_begin(struct tpl_search *s, const struct tpl_costs *c);
/* Chooses the candidates of host i, by costs reduced by the dual values. */
void tpl_search_near(struct tpl_search *s, const struct tpl_ap *a, uint32_t i);
/* Continues from this ring. */
void tpl_search_set(struct tpl_search *s, const uint32_t *ring);
/* Improves up to `moves` times. Returns whether no improvement is left. */
bool tpl_search_improve(struct tpl_search *s, uint32_t moves);
/* Perturbs the ring, improves it, and keeps the better ring. Requires at least 8 hosts. */
void tpl_search_kick(struct tpl_search *s);

/* ---- branch and bound ---- */

struct tpl_node;

/* Best-first search over assignments: a cycle that is no ring is broken in all ways (Carpaneto,
 * Dell'Amico and Toth: Exact solution of large-scale, asymmetric traveling salesman problems,
 * 1995). */
struct tpl_branch {
	uint32_t n;
	const struct tpl_costs *costs;
	double *c;                     /* costs, changed by the constraints of the node */
	struct tpl_ap ap;              /* of the child that is being solved */
	struct tpl_node **heap, *node; /* node: is being expanded, or NULL */
	size_t n_heap, cap, bytes;
	uint32_t *cycle, n_cycle, child; /* hosts of the cycle that is being broken */
	uint32_t *cycle_of, *count;
	bool full;    /* the memory of nodes is exhausted: the search has ended without proof */
	double bound; /* no ring costs less, unless it has been found */
};

void tpl_branch_init(struct tpl_branch *b, const struct tpl_costs *c);
void tpl_branch_clear(struct tpl_branch *b);
/* Begins with the solved assignment. */
void tpl_branch_begin(struct tpl_branch *b, const struct tpl_ap *root);
/* Solves one child. *best is the cost of the best ring known; if a better one is found, lowers it
 * and writes the ring. Returns whether the search has ended. */
bool tpl_branch_step(struct tpl_branch *b, double *best, uint32_t *ret_ring);

/* ---- a lower bound by trees ---- */

struct tpl_tree {
	uint32_t n;
	const struct tpl_costs *costs;
	double *penalty, *change, factor; /* of hosts, added to the costs of their links */
	uint32_t idle;                    /* steps since the bound was raised */
	double *w, *next_w;         /* costs between the nodes of a level, and of the next one */
	uint32_t *link, *next_link; /* the links with these costs */
	uint32_t *in;               /* for each node, the node from which its picked link comes */
	uint32_t *pick;  /* for each level, the picked link into each node: from * n + to */
	uint32_t *at;    /* for each level, the node of each host */
	uint32_t *nodes; /* for each level, their number */
	uint32_t *part, *seen, *out;
	double bound;
};

/* The costs stay with the caller; the assignment is solved. */
void tpl_tree_init(struct tpl_tree *t, const struct tpl_costs *c, const struct tpl_ap *a);
void tpl_tree_clear(struct tpl_tree *t);
/* Changes the penalties once. best: the cost of a ring. Returns whether the bound is final. */
bool tpl_tree_step(struct tpl_tree *t, double best);

/* ---- the lowest sum ---- */

enum tpl_sum_phase {
	TPL_SUM_EXACT,
	TPL_SUM_ASSIGN,
	TPL_SUM_PATCH,
	TPL_SUM_NEAR,
	TPL_SUM_IMPROVE,
	TPL_SUM_SEARCH,
	TPL_SUM_DONE,
};

struct tpl_sum {
	uint32_t n, exact; /* exact: the most hosts for which dynamic programming is used */
	enum tpl_sum_phase phase;
	struct tpl_costs costs;
	double *cost; /* with INFINITY, for tpl_dp */
	struct tpl_dp dp;
	struct tpl_ap ap;
	struct tpl_search search;
	struct tpl_branch branch;
	struct tpl_tree tree;
	uint32_t at, n_cycles;
	uint32_t *next, *cycle_of;
	bool branching; /* branch and tree are in use */
	bool bounded;   /* tree's bound is final */
	/* the answer */
	uint32_t *ring;
	double best, bound; /* INFINITY: no ring is known; there is no ring */
};

void tpl_sum_init(struct tpl_sum *s, uint32_t n, uint32_t exact, uint64_t seed);
void tpl_sum_clear(struct tpl_sum *s);
/* Begins with these costs; INFINITY: there is no link. */
void tpl_sum_begin(struct tpl_sum *s, const double *cost);
/* Does one step. Returns whether the work is finished: the ring is optimal, or it is proven that
 * there is none. */
bool tpl_sum_step(struct tpl_sum *s);
/* Returns whether the search has passed its fixed beginning: a ring is known, unless there is none
 * or it is hard to find. */
static inline bool tpl_sum_begun(const struct tpl_sum *s)
{
	return s->phase >= TPL_SUM_SEARCH;
}

/* ---- the fastest slowest link ---- */

/* The highest rate such that links of this rate connect every host to every other one, and allow
 * an assignment: no ring has a faster slowest link. The assignment grows by paths whose slowest
 * link is as fast as possible (Derigs and Zimmermann: An augmenting path method for solving linear
 * bottleneck assignment problems, 1978). */
struct tpl_neckap {
	uint32_t n, at;
	const double *rate;
	uint32_t *next, *prev, *from;
	double *wide;
	bool *done;
	double bound;
};

void tpl_neckap_init(struct tpl_neckap *a, uint32_t n, const double *rate);
void tpl_neckap_clear(struct tpl_neckap *a);
/* Treats the next host. Returns whether `bound` is final; 0: there is no ring. */
bool tpl_neckap_step(struct tpl_neckap *a);

enum tpl_neck_phase {
	TPL_NECK_BOUND,
	TPL_NECK_EXISTS,
	TPL_NECK_BEGIN,
	TPL_NECK_TRY,
	TPL_NECK_DONE,
};

struct tpl_neck {
	uint32_t n;
	enum tpl_neck_phase phase;
	const double *rate;
	double *cost; /* second criterion; INFINITY: there is no link */
	double *part; /* the costs of links with at least the rate `target`; INFINITY for others */
	double target, low, high; /* rates: tried, known to be possible, not to be tried */
	struct tpl_neckap ap;
	struct tpl_sum sum;
	uint32_t left, patience; /* steps until the target is given up */
	bool polishing;          /* the ring that was found gets a lower cost; no target is tried */
	/* the answer */
	uint32_t *ring;
	double best, best_cost, bound; /* best: 0 without a ring. bound: 0: there is none */
};

/* The rates stay with the caller. trip may be NULL. */
void tpl_neck_init(
	struct tpl_neck *k, uint32_t n, const double *rate, const double *trip, uint64_t seed);
void tpl_neck_clear(struct tpl_neck *k);
/* Does one step. Returns whether the work is finished. */
bool tpl_neck_step(struct tpl_neck *k);
/* Returns whether all targets were tried, and the best ring was polished for a while if it is
 * proven to be the best one. */
bool tpl_neck_settled(const struct tpl_neck *k);

/* ---- the linear program ---- */

/* Maximizes the sum of the rates of rings: the rings that contain a link have at most the rate of
 * the link, and all rings at most the cap. A simplex method on a dictionary (Chvatal: Linear
 * Programming, 1983): basic variables are written as functions of the others. */
struct tpl_lp_row {
	double b;          /* value of the row's basic variable */
	uint32_t basic;    /* this variable: the slack of a constraint, or TPL_LP_RING + ring */
	uint32_t link;     /* link of the constraint with this number; n*n is the cap */
	uint32_t slack_at; /* the row of this constraint's slack, or TPL_LP_COLUMN + column */
};

struct tpl_lp {
	uint32_t n, most;   /* hosts; rings at most */
	const double *rate; /* matrix */
	double cap, lowered;
	size_t rows, row_cap, d_cap;
	uint32_t cols;
	struct tpl_lp_row *row; /* one row, and one constraint, per link of any ring */
	double *d;              /* rows * most */
	double *gain;           /* growth of the sum per unit of the variable of a column */
	uint32_t *nonbasic;     /* this variable */
	uint32_t *row_of;       /* constraint of each link, or TPL_NONE */
	double sum;
	uint32_t stuck; /* pivots since the last growth */
};

#define TPL_LP_RING   0x80000000u
#define TPL_LP_COLUMN 0x80000000u

/* most: the most rings at a time. lowered: the part by which rates are lowered at most. The rates
 * stay with the caller. */
void tpl_lp_init(struct tpl_lp *l, uint32_t n, const double *rate, uint32_t most, double lowered);
void tpl_lp_clear(struct tpl_lp *l);
/* Removes all rings. cap: INFINITY if there is none. */
void tpl_lp_reset(struct tpl_lp *l, double cap);
/* Adds a ring. Its number is the count of rings before. */
void tpl_lp_add(struct tpl_lp *l, const uint32_t *ring);
/* Does one pivot. Returns whether the program is solved. */
bool tpl_lp_step(struct tpl_lp *l);
/* Writes the rate of each ring. */
void tpl_lp_rates(const struct tpl_lp *l, double *ret);
/* Writes the dual value of each link into the matrix, and returns that of the cap. */
double tpl_lp_duals(const struct tpl_lp *l, double *ret);

/* ---- plans ---- */

#define TPL_CANDIDATES_MAX 48u
#define TPL_DROPPED_MAX    16u
#define TPL_USED           1e-6 /* a ring with a smaller part of the sum of a set is left out */

/* Rings with their rates. */
struct tpl_set {
	uint32_t n, column[TPL_RINGS_MAX];
	double x[TPL_RINGS_MAX], sum;
};

enum tpl_subset_phase {
	TPL_SUBSET_DROP,
	TPL_SUBSET_SWAP_DROPPED,
	TPL_SUBSET_ADD,
	TPL_SUBSET_SWAP_ADDED,
	TPL_SUBSET_DONE,
};

/* Chooses a few of many rings: by dropping the slowest ring of the linear program again and again,
 * and by adding the best ring again and again. Both sets are then improved by exchanges. */
struct tpl_subset {
	uint32_t n;
	double cap;
	enum tpl_subset_phase phase;
	struct tpl_lp lp;
	const uint32_t *rings; /* n hosts for each column */
	uint32_t candidate[TPL_CANDIDATES_MAX], n_candidates;
	uint32_t many[TPL_DROPPED_MAX], n_many; /* from which rings are dropped */
	struct tpl_set set, trial_best;
	uint32_t at, passes;
	bool improved;
	struct tpl_set best; /* the answer */
};

/* The rates stay with the caller, who sets s->cap before the first set. */
void tpl_subset_init(struct tpl_subset *s, uint32_t n, const double *rate);
void tpl_subset_clear(struct tpl_subset *s);
/* Begins with these rings; x: their rates in the linear program. The rings stay with the caller. */
void tpl_subset_begin(
	struct tpl_subset *s, const uint32_t *rings, uint32_t n_rings, const double *x);
/* Tries one set. Returns whether s->best is final. */
bool tpl_subset_step(struct tpl_subset *s);
/* Computes the rates of the set's rings, and their sum. */
void tpl_subset_solve(struct tpl_subset *s, const uint32_t *rings, struct tpl_set *set);

enum tpl_plan_phase {
	TPL_PLAN_NECK,
	TPL_PLAN_REFINE,
	TPL_PLAN_LP,
	TPL_PLAN_GUESS,
	TPL_PLAN_PRICE,
	TPL_PLAN_SUBSET,
	TPL_PLAN_DONE,
};

struct tpl_plan {
	uint32_t n;
	enum tpl_plan_phase phase;
	double scale; /* by which all rates and the cap are divided: see rescale */
	double *rate, cap;
	struct tpl_neck neck;
	struct tpl_lp lp;
	struct tpl_sum guess, price;
	struct tpl_subset subset;
	uint32_t *rings, n_rings; /* the rings of the linear program; the first one is the best
				     single ring */
	double *x;                /* their rates */
	double *dual, *cost, cap_dual;
	double blur;
	uint32_t left;          /* steps of the present search */
	uint32_t next_subset;   /* rings with which a subset is chosen next */
	bool last;              /* no more rings are added to the linear program */
	uint32_t most;          /* rings at most */
	struct tpl_set set;     /* is being refined */
	uint32_t place;         /* of the ring of the set that is being replaced */
	uint32_t failures;      /* places since the last improvement */
	double *rest;           /* the rates that the other rings of the set leave */
	struct tpl_neck refine; /* the best ring of these rates; in use if `refining` */
	bool refining;
	uint64_t seed;
	/* the answer, divided by scale; best.n is 0: the best single ring */
	struct tpl_set best;
	double one, bound; /* one: rate of the best single ring */
};

/* Copies what it needs of the problem. */
void tpl_plan_init(struct tpl_plan *p, const struct tpl_problem *problem, uint64_t seed);
void tpl_plan_clear(struct tpl_plan *p);
/* Does one step. Returns whether the work is finished. */
bool tpl_plan_step(struct tpl_plan *p);

#endif
