/* SPDX-License-Identifier: MIT
 *
 * Structures and functions that the files of this folder share:
 *
 *   admin.c  requests, and the tables of the whole agent, runs, peers and operations
 *   state.c  the tables of shared state
 */
#ifndef ADM_INTERNAL_H
#define ADM_INTERNAL_H

#include "common/cc_log.h"
#include "common/cc_sys.h"
#include "daemon/cc_admin.h"
#include "pcclagentd/admin/adm.h"
#include "pcclagentd/base/base.h"
#include "pcclagentd/ops/ops.h"

struct adm {
	struct base *base;
	struct ops *o;
	const struct adm_ops *ops;
	void *arg;
	struct cc_admin *listener;
};

/* ---- state.c ---- */

/* Fills in the tables of shared state: groups, peers, jobs, keys. */
void adm_state(struct adm *a, uint64_t now, struct wa_reply *reply);

#endif
