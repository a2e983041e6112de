/* SPDX-License-Identifier: MIT */
#include "pcclagentd/local/local.h"

#include <stdlib.h>

#include "pcclagentd/local/loc_internal.h"

struct loc *loc_new(struct base *b)
{
	struct loc *loc = calloc(1, sizeof *loc);
	char why[WL_TEXT_MAX];

	if (!loc)
		rep_out_of_memory("the agent");
	loc->base = b;
	loc->last_session_ns = cc_now_ns();
	if (!loc_manifest_leaf_fn(loc, b->cfg.hash_type, why))
		cc_log(CC_LOG_ERR, "%s", why);
	else if (loc_checks_open(loc) == 0)
		return loc;
	loc_free(loc);
	return NULL;
}

void loc_set_ops(struct loc *loc, const struct loc_ops *ops, void *arg)
{
	loc->ops = ops;
	loc->arg = arg;
}

void loc_stop(struct loc *loc)
{
	loc_session_stop_listening(loc);
	loc_session_free_all(loc);
	loc_checks_free(loc);
}

void loc_free(struct loc *loc)
{
	if (!loc)
		return;
	loc_stop(loc);
	loc_comm_close_all(loc);
	loc_result_free_all(loc);
	free(loc);
}

void loc_get_stats(const struct loc *loc, struct loc_stats *ret)
{
	const struct loc_result *res;
	int n;

	DL_COUNT(loc->results, res, n);
	*ret = (struct loc_stats){.sessions = HASH_COUNT(loc->sessions),
		.comms = HASH_COUNT(loc->comms),
		.regions = loc->n_regions,
		.results = (uint32_t)n,
		.mem_used = loc->mem_used};
}

uint64_t loc_idle_ns(const struct loc *loc, uint64_t now)
{
	return loc->sessions || now < loc->last_session_ns ? 0 : now - loc->last_session_ns;
}
