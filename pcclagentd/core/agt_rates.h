/* SPDX-License-Identifier: MIT
 *
 * The rates that this agent process has measured to other agents, over all its runs. A master that
 * meets the agent later learns them from it. Pure.
 */
#ifndef AGT_RATES_H
#define AGT_RATES_H

#include <stddef.h>
#include <stdint.h>

#include "common/cc_id.h"
#include "proto/wire_member.h"

struct agt_rate {
	struct wm_rate v; /* without its age */
	uint64_t when_ns;
};

/* All zero: empty. */
struct agt_rates {
	struct agt_rate *v; /* the oldest first, at most WM_RATES_MAX; owned */
	size_t n, cap;
	/* What this host can send and receive in all, in bit/s, as a master has told; 0: not
	 * known. */
	uint64_t out, in, caps_ns;
};

/* Records a measurement. It replaces an older one of the same agent. If there is no room, it
 * replaces the oldest of all. */
void agt_rates_put(struct agt_rates *t, const struct agt_rate *x);
/* Takes the caps of this host from a master's message. */
void agt_rates_set_caps(struct agt_rates *t, const struct wm_rates *m, uint64_t now_ns);
/* Fills a message with all measurements. The caller owns ret->rates. */
void agt_rates_fill(const struct agt_rates *t, uint64_t now_ns, struct wm_rates *ret);
void agt_rates_free(struct agt_rates *t);

#endif
