/* SPDX-License-Identifier: MIT
 *
 * The command topology solve: computes rings for the hosts in a file, and prints them.
 */
#ifndef CTL_TOPOLOGY_H
#define CTL_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "topology/tpl.h"

struct ctl_topology {
	char *matrix; /* path of the file */
	uint32_t budget_ms;
	uint8_t objective; /* enum tpl_objective; 0: depends on the file */
};

/* Returns an exit status, after all messages were printed. */
int ctl_topology_solve(const struct ctl_topology *c, bool json);

#endif
