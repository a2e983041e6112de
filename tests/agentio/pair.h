/* SPDX-License-Identifier: MIT
 *
 * The set-up of most suites: an agent, its master, and two processes whose communicators are group
 * 1 of a run on this host alone.
 */
#ifndef PAIR_H
#define PAIR_H

#include "tests/agentio/other.h"
#include "tests/agentio/fixture.h"

extern struct fx f;
extern struct master m;
extern struct client a, b;
extern struct queue qa, qb;
extern struct mem ma, mb; /* for those who allocate */

void pair_begin(void (*tweak)(struct agentd_config *));
/* And `ma` and `mb` are registered memory of so many bytes. */
void pair_begin_with(void (*tweak)(struct agentd_config *), uint64_t bytes);
/* Closes what is still open, and stops the agent. */
void pair_end(void);
/* Instead of the second process another host: the first one is in a ring with it, links are open,
 * and its ends of the one to it are `fds`. */
void pair_begin_ring(struct other *x, uint32_t segment_max, int fds[2]);
void pair_end_ring(struct other *x, const int fds[2]);

#endif
