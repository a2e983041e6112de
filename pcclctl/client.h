/* SPDX-License-Identifier: MIT
 *
 * Asks a daemon through its admin socket. Blocks for at most 5 s.
 */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

#include <stddef.h>

#include "pcclctl/target.h"
#include "proto/wire_admin.h"

#define CTL_WHY_SIZE 1024

/* Sends the request `q` with the versions that this program speaks. Returns 0 and fills *ret, which
 * the caller owns: wa_reply_clear. Otherwise returns an exit status of sysexits.h, and `why` is a
 * sentence that says which path failed and what to try. */
int ctl_ask(const struct ctl_target *t, const struct wa_request *q, struct wa_reply *ret,
	char why[CTL_WHY_SIZE]);

#endif
