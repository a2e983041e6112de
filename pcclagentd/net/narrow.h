/* SPDX-License-Identifier: MIT
 *
 * Hosts to which large packets get lost: which segments pass, and when larger ones are tried again.
 * Pure.
 */
#ifndef NARROW_H
#define NARROW_H

#include <stdint.h>

#include "common/cc_sys.h"
#include "proto/wire_master.h"

/* Between two attempts with larger segments. */
#define NARROW_WAIT_MIN_MS 20000u
#define NARROW_WAIT_MAX_MS 3600000u

struct narrow {
	struct wm_endpoint to;
	uint32_t size; /* its place in cc_tcp_sizes; CC_TCP_SIZES: none passes */
	uint32_t wait_ms;
	uint64_t since_ns; /* of the wait */
	struct narrow *next;
};

/* The largest that passes, as far as is known; see above. */
uint32_t net_narrow_size(const struct narrow *list, const struct cc_id *agent);
/* This is the largest that passes. Returns -1 when there is no memory. */
int net_narrow_learn(
	struct narrow **list, const struct wm_endpoint *to, uint32_t size, uint64_t now_ns);
/* Larger ones still get lost: the next attempt is later. */
void net_narrow_remains(struct narrow *list, const struct cc_id *agent);
/* One for which larger segments are to be tried now, or NULL. Its wait begins. */
struct narrow *net_narrow_due(struct narrow *list, uint64_t now_ns);
void net_narrow_free(struct narrow **list);

#endif
