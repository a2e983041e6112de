/* SPDX-License-Identifier: MIT
 *
 * Plans on the wire: several weighted rings of one group (common/cc_rings.h). The structs are in
 * wire_member.h.
 */
#ifndef WIRE_PLAN_H
#define WIRE_PLAN_H

#include "common/cc_rings.h"
#include "proto/wire_member.h"

/* Converts a plan for a ring of this many hosts. Returns 0, or CC_ERR_INVAL if it does not have
 * each position once for each ring. */
int wm_plan_rings(const struct wm_plan *m, uint32_t hosts, struct cc_rings *ret);
/* Fills in an empty plan. The caller owns m->order. */
void wm_plan_fill(struct wm_plan *m, const struct cc_rings *rings);

#endif
