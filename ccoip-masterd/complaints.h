/* SPDX-License-Identifier: MIT
 *
 * Log lines that strangers cause: they must not be able to fill the log.
 */
#ifndef COMPLAINTS_H
#define COMPLAINTS_H

#include <stdint.h>

#include "common/cc_addr.h"

struct complaints {
	uint64_t since_ns, refused;
	uint32_t said, unsaid;
	uint32_t lines, unwritten; /* of the core's log for strangers: that are left; left out */
	int unwritten_level;       /* the gravest of those that were left out */
};

void complaints_init(struct complaints *c);
/* A connection is refused. */
void complain(struct complaints *c, const struct cc_addr *addr, const char *reason);
/* A line of the core's log about an agent without members. */
void complaints_line(struct complaints *c, int level, const char *text);
void complaints_tick(struct complaints *c, uint64_t now);

#endif
