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
extern struct mem ma, mb; /* for suites that allocate memory */

void pair_begin(void (*tweak)(struct agentd_config *));
/* The same, with `bytes` bytes of registered memory in `ma` and in `mb`. */
void pair_begin_with(void (*tweak)(struct agentd_config *), uint64_t bytes);
/* Closes everything that is still open, and stops the agent. */
void pair_end(void);
/* Starts another host instead of the second process. The first process is in a ring with this host,
 * and the links are open. `fds` are the other host's ends of the streams from the agent. */
void pair_begin_ring(struct other *x, uint32_t segment_max, int fds[2]);
void pair_end_ring(struct other *x, const int fds[2]);

#endif
