/* SPDX-License-Identifier: MIT */
#include "common/cc_sm.h"

void cc_sm_move(const struct cc_sm *m, uint32_t from, uint32_t to, const char **broken)
{
	if (from >= m->n || to >= m->n || (m->states[from].next & CC_SM_TO(to)) == 0)
		*broken = m->broken;
}

const char *cc_sm_name(const struct cc_sm *m, uint32_t state)
{
	return state < m->n ? m->states[state].name : "?";
}
