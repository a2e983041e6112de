/* SPDX-License-Identifier: MIT
 *
 * A run of up to eight hosts. Each host has one peer, which fk_run_of admits. Each suite that
 * includes this file gets its own run.
 */
#ifndef TESTS_MASTER_MANY_H
#define TESTS_MASTER_MANY_H

#include "tests/master/fake.h"

static struct fk f;
static struct fk_host *h[8];
static struct fk_peer p[8];

static void setup(void)
{
	fk_init(&f, NULL);
}

static void teardown(void)
{
	fk_free(&f);
}

static inline void vote_all(size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		fk_topo(&p[i]);
}

#endif
