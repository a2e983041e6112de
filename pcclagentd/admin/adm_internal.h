/* SPDX-License-Identifier: MIT */
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

/* Shared state: groups, peers, jobs, keys. */
void adm_state(struct adm *a, uint64_t now, struct wa_reply *reply);

#endif
