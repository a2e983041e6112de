/* SPDX-License-Identifier: MIT
 *
 * Limits the log lines that agents without members cause, so that these lines cannot fill the log.
 */
#ifndef COMPLAINTS_H
#define COMPLAINTS_H

#include <stdint.h>

#include "common/cc_addr.h"

struct complaints {
	uint64_t since_ns, refused;
	uint32_t said, unsaid;
	/* The core's lines about agents without members: the number that may still be written, and
	 * the number that was left out. */
	uint32_t lines, unwritten;
	int unwritten_level; /* the most serious level of lines that were left out */
};

void complaints_init(struct complaints *c);
/* Counts a refused connection. Logs it if the limit allows. */
void complain(struct complaints *c, const struct cc_addr *addr, const char *reason);
/* Logs a line of the core about an agent without members, if the limit allows. */
void complaints_line(struct complaints *c, int level, const char *text);
void complaints_tick(struct complaints *c, uint64_t now);

#endif
