/* SPDX-License-Identifier: MIT
 *
 * For one suite each: a run of three peers, each on a host of its own.
 */
#ifndef TESTS_MASTER_TRIO_H
#define TESTS_MASTER_TRIO_H

#include "tests/master/fake.h"

static struct fk f;
static struct fk_host *a, *b, *c;
static struct fk_peer p, q, r; /* of group 0, on a, b, c */

static void setup(void)
{
	fk_init(&f, NULL);
	a = fk_host(&f, "a", "10.0.0.1");
	b = fk_host(&f, "b", "10.0.0.2");
	c = fk_host(&f, "c", "10.0.0.3");
	p = fk_join(a, 0);
	q = fk_join(b, 0);
	r = fk_join(c, 0);
	fk_topo(&p);
	fk_forget(&f);
}

static void teardown(void)
{
	fk_free(&f);
}

/* All vote on the topology: who has joined is accepted. */
static inline void topo_all(void)
{
	fk_topo(&p);
	fk_topo(&q);
	fk_topo(&r);
}

static inline void vote_all(uint64_t tag)
{
	fk_vote(&p, tag);
	fk_vote(&q, tag);
	fk_vote(&r, tag);
}

#endif
