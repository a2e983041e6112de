/* SPDX-License-Identifier: MIT */
#include "proto/shm_result.h"

#include "common/cc_err.h"
#include "proto/wire_limits.h"

static bool is_possible(uint32_t mode, const struct shm_result_limits *lim)
{
	switch (mode) {
	case SHM_RESULT_AREA:
		return true;
	case SHM_RESULT_UNDO:
	case SHM_RESULT_DIRECT:
		return lim->out_registered;
	case SHM_RESULT_STAGED:
		return lim->staged;
	}
	return false;
}

int shm_result_get(const struct shm_result_words *w, const struct shm_result_limits *lim,
	struct shm_result *ret, const char **why)
{
	struct cc_shares shares = cc_shares_unpack(w->shares);
	struct cc_plan plan;

	if (!is_possible(w->mode, lim))
		return wire_bad(why, "mode");
	if (cc_plan_init_shares(&plan, lim->count, lim->esize, w->hosts, w->segment_max, &shares) <
		0)
		return wire_bad(why, "segments");
	*ret = (struct shm_result){.mode = (enum shm_result_mode)w->mode,
		.plan = plan,
		.off = w->off,
		.flags_off = w->flags_off};
	return 0;
}

static bool within(uint64_t off, uint64_t len, uint64_t size)
{
	return off <= size && len <= size - off;
}

int shm_result_fits(const struct shm_result *r, uint64_t region_size, const char **why)
{
	bool here = r->mode == SHM_RESULT_AREA || r->mode == SHM_RESULT_UNDO;

	if ((here && !within(r->off, r->plan.count * r->plan.esize, region_size)) ||
		!within(r->flags_off, r->plan.n_segs, region_size))
		return wire_bad(why, "offsets");
	return 0;
}
