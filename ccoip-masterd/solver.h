/* SPDX-License-Identifier: MIT
 *
 * The thread that solves the problems of optimizations (CCM_ACT_SOLVE). It starts with the first
 * problem. Each problem gets an answer after at most about a second. If this answer is not proven
 * to be the best one, the thread goes on for a minute, or until another problem comes. It reports
 * better answers and lower bounds, and at last that it has ended.
 *
 * All functions are called by the loop thread.
 */
#ifndef SOLVER_H
#define SOLVER_H

#include "ccoip-masterd/core/ccm.h"

struct cc_loop;
struct solver;

/* `on_solved` is called by the loop thread, for each answer. Returns NULL when memory or
 * descriptors are exhausted. */
struct solver *solver_new(
	struct cc_loop *l, void (*on_solved)(void *arg, const struct ccm_solution *x), void *arg);
/* Takes the arrays of the problem. */
void solver_post(struct solver *s, struct ccm_problem *p);
/* Stops the thread. Accepts NULL. */
void solver_free(struct solver *s);

#endif
