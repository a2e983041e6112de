/* SPDX-License-Identifier: MIT */
#include "ccoip-masterd/complaints.h"

#include "common/cc_log.h"

#define COMPLAINTS_PER_S 10u
/* All agents without members together may cause LINES_MAX log lines at once. Each second adds
 * LINES_PER_S. */
#define LINES_MAX   200u
#define LINES_PER_S 20u

void complaints_init(struct complaints *c)
{
	*c = (struct complaints){.lines = LINES_MAX};
}

void complain(struct complaints *c, const struct cc_addr *addr, const char *reason)
{
	char text[CC_ADDR_STR_SIZE];

	c->refused++;
	if (c->said == COMPLAINTS_PER_S) {
		c->unsaid++;
		return;
	}
	c->said++;
	cc_log(CC_LOG_WARNING, "%s is refused: %s", cc_addr_str(addr, text), reason);
}

void complaints_line(struct complaints *c, int level, const char *text)
{
	if (c->lines == 0) {
		if (c->unwritten++ == 0 || level < c->unwritten_level)
			c->unwritten_level = level;
		return;
	}
	c->lines--;
	cc_log(level, "%s", text);
}

void complaints_tick(struct complaints *c, uint64_t now)
{
	if (now - c->since_ns < 1000000000u)
		return;
	if (c->unsaid)
		cc_log(CC_LOG_WARNING, "%u more connections were refused", c->unsaid);
	if (c->unwritten)
		cc_log(c->unwritten_level,
			"%u more lines about agents without members were left out", c->unwritten);
	c->since_ns = now;
	c->said = c->unsaid = c->unwritten = 0;
	c->lines = c->lines + LINES_PER_S < LINES_MAX ? c->lines + LINES_PER_S : LINES_MAX;
}
