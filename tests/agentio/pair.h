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
/* Does the same as pair_begin, with `bytes` bytes of registered memory in `ma` and in `mb`. */
void pair_begin_with(void (*tweak)(struct agentd_config *), uint64_t bytes);
/* Closes everything that is still open, and stops the agent. */
void pair_end(void);
/* Starts another host instead of the second process. The first process is in a ring with this host,
 * and the links are open. `fds` are the other host's ends of the streams from the agent. */
void pair_begin_ring(
	void (*tweak)(struct agentd_config *), struct other *x, uint32_t segment_max, int fds[2]);
void pair_end_ring(struct other *x, const int fds[2]);
/* Does the same with two other hosts, the next one x[0] and the previous one x[1]. The links from
 * the agent to both are open, and fds[i] are x[i]'s ends. */
void pair_begin_mesh(struct other x[2], int fds[2][2]);
/* Does the same, but only the link to x[0] is open. The agent begins to open the link to x[1]. */
void pair_begin_mesh_without_link(struct other x[2], int fds[2][2]);
void pair_end_mesh(struct other x[2], int fds[2][2]);

#endif
