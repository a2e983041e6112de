/* SPDX-License-Identifier: MIT
 *
 * A run of three peers, each on its own host. Each suite that includes this file gets its own run.
 */
#ifndef TESTS_MASTER_TRIO_H
#define TESTS_MASTER_TRIO_H

#include "tests/master/fake.h"

static struct fk f;
static struct fk_host *a, *b, *c;
static struct fk_peer p, q, r; /* in group 0, on a, b, c */

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

/* Sends the topology votes of all three peers, so that all registered peers are accepted. */
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
