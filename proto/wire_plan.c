/* SPDX-License-Identifier: MIT */
#include "proto/wire_plan.h"

#include "common/cc_err.h"
#include "common/cc_must.h"

int wm_plan_rings(const struct wm_plan *m, uint32_t hosts, struct cc_rings *ret)
{
	uint32_t r, i;

	if (m->n > CC_RINGS_MAX || hosts > CC_ROUTE_HOSTS_MAX || m->n_order != m->n * hosts)
		return CC_ERR_INVAL;
	*ret = (struct cc_rings){.n = m->n, .hosts = hosts};
	for (r = 0; r < m->n; r++) {
		ret->share[r] = m->shares[r];
		for (i = 0; i < hosts; i++)
			ret->order[r][i] = (uint8_t)m->order[r * hosts + i];
	}
	return cc_rings_complete(ret);
}

void wm_plan_fill(struct wm_plan *m, const struct cc_rings *rings)
{
	uint32_t r, i;

	m->n = rings->n;
	m->n_order = rings->n * rings->hosts;
	m->order = cc_must_zalloc(m->n_order, sizeof *m->order);
	for (r = 0; r < rings->n; r++) {
		m->shares[r] = rings->share[r];
		for (i = 0; i < rings->hosts; i++)
			m->order[r * rings->hosts + i] = rings->order[r][i];
	}
}
