/* SPDX-License-Identifier: MIT
 *
 * Asking a daemon through its admin socket. Blocks, for 5 s at most.
 */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

#include <stddef.h>

#include "pcclctl/target.h"
#include "proto/wire_admin.h"

#define CTL_WHY_SIZE 1024

/* Asks q (its versions are filled in here). 0 with *ret filled, owned by the caller:
 * wa_reply_clear; or an exit status of sysexits.h, and why is a sentence that says which path
 * failed and what to try. */
int ctl_ask(const struct ctl_target *t, const struct wa_request *q, struct wa_reply *ret,
	char why[CTL_WHY_SIZE]);

#endif
