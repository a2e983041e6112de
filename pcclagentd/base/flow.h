/* SPDX-License-Identifier: MIT
 *
 * Finds out from the kernel's counters whether data on a stream is delivered.
 */
#ifndef FLOW_H
#define FLOW_H

#include <stdbool.h>
#include <stdint.h>

/* While data is sent, streams are checked at this interval. */
#define FLOW_LOOK_MS 200u
/* A host that is silent for this long may be gone: an idle stream receives something once a second.
 */
#define FLOW_QUIET_MS 1500u

/* A stream is stuck if packets from its host keep arriving, but none of the sent data is delivered,
 * for CC_BOUND_STUCK and FLOW_STUCK_TRIES repetitions. The usual cause is that large packets are
 * lost on the path. If a host takes no data, it has announced that it has no room. Nothing is sent
 * to such a host, so the stream is not stuck. */
#define FLOW_STUCK_TRIES 3u
#define FLOW_STUCK_TEXT  "large packets are lost: check the MTU"
struct flow {
	uint32_t segs_in, delivered, repeated;
	uint64_t looked_ns, heard_ns, since_ns;
};
/* Checks whether the stream is stuck. To be called every FLOW_LOOK_MS. `f` must be zero at first.
 */
bool flow_is_stuck(struct flow *f, int fd, uint32_t stuck_ms);

#endif
