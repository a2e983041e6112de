/* SPDX-License-Identifier: MIT
 *
 * Hosts to which large packets get lost: the segment size that passes to each host, and the time of
 * the next attempt with larger segments. Pure.
 */
#ifndef NARROW_H
#define NARROW_H

#include <stdint.h>

#include "common/cc_sys.h"
#include "proto/wire_master.h"

/* The time between two attempts with larger segments. */
#define NARROW_WAIT_MIN_MS 20000u
#define NARROW_WAIT_MAX_MS 3600000u

struct narrow {
	struct wm_endpoint to;
	uint32_t size; /* index of cc_tcp_sizes; CC_TCP_SIZES: segments of no size pass */
	uint32_t wait_ms;
	uint64_t since_ns; /* start of the wait */
	struct narrow *next;
};

/* Returns the largest segment size that is known to pass to `agent`, see narrow.size. */
uint32_t net_narrow_size(const struct narrow *list, const struct cc_id *agent);
/* Records that `size` is the largest segment size that passes on the path to `to`. Returns -1 if
 * there is no memory. */
int net_narrow_learn(
	struct narrow **list, const struct wm_endpoint *to, uint32_t size, uint64_t now_ns);
/* Larger segments still get lost: doubles the wait before the next attempt. */
void net_narrow_remains(struct narrow *list, const struct cc_id *agent);
/* Returns an entry for which larger segments are to be tried now, and starts its next wait, or
 * returns NULL. */
struct narrow *net_narrow_due(struct narrow *list, uint64_t now_ns);
void net_narrow_free(struct narrow **list);

#endif
