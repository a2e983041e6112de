/* SPDX-License-Identifier: MIT
 *
 * Whether what is under way on a stream is delivered, by the kernel's counts.
 */
#ifndef FLOW_H
#define FLOW_H

#include <stdbool.h>
#include <stdint.h>

/* Streams are looked at so often while something is under way. */
#define FLOW_LOOK_MS 200u
/* Nobody should count on a host that is silent for so long: on an idle stream it is heard once a
 * second. */
#define FLOW_QUIET_MS 1500u

/*
 * A stream is stuck when its host is heard all the time and yet nothing of what is under way is
 * delivered, for CC_BOUND_STUCK and FLOW_STUCK_TRIES repetitions: mostly as large packets get lost
 * on the way. A host that takes no data has announced that it has no room: nothing is
 * under way to it then.
 */
#define FLOW_STUCK_TRIES 3u
#define FLOW_STUCK_TEXT  "large packets are lost: check the MTU"
struct flow {
	uint32_t segs_in, delivered, repeated;
	uint64_t looked_ns, heard_ns, since_ns;
};
/* To be called every FLOW_LOOK_MS, from zeroes on. */
bool flow_is_stuck(struct flow *f, int fd, uint32_t stuck_ms);

#endif
