/* SPDX-License-Identifier: MIT
 *
 * The algorithms that the RX and TX threads carry out. The threads handle segments differently for
 * each algorithm, but the loop thread treats all of them alike.
 */
#include "pcclagentd/engine/engine.h"

static int threads_start(struct eng_work *w, const struct eng_xfer_spec *spec)
{
	return eng_start(w->eng, spec);
}

static bool threads_progress(const struct eng_work *w, struct eng_progress *ret)
{
	return eng_get_progress(w->eng, w->seq, ret);
}

static bool threads_cancel(struct eng_work *w)
{
	eng_cancel(w->eng, w->seq);
	return true;
}

static void threads_release(struct eng_work *w)
{
	eng_release(w->eng, w->seq);
}

static bool routed_can(const struct eng_xfer_spec *spec)
{
	return spec->plan.hosts > 1 && !eng_has_windows(spec);
}

const struct eng_algo eng_routed = {
	.name = "routed",
	.outputs = ENG_OUTPUT(SHM_RESULT_AREA) | ENG_OUTPUT(SHM_RESULT_UNDO) |
		   ENG_OUTPUT(SHM_RESULT_STAGED) | ENG_OUTPUT(SHM_RESULT_DIRECT),
	.can = routed_can,
	.start = threads_start,
	.progress = threads_progress,
	.cancel = threads_cancel,
	.release = threads_release,
};

/* This algorithm uses the bytes of operands in their order, so operands may lie in windows. The
 * shim divides a window into segments of the largest size. */
static bool on_host_can(const struct eng_xfer_spec *spec)
{
	if (spec->plan.hosts > 1)
		return false;
	return !eng_has_windows(spec) ||
	       (spec->segment_max == CC_PLAN_SEGMENT_MAX && !eng_is_small(spec));
}

const struct eng_algo eng_on_host = {
	.name = "on the host",
	.outputs = ENG_OUTPUT(SHM_RESULT_AREA) | ENG_OUTPUT(SHM_RESULT_DIRECT),
	.can = on_host_can,
	.start = threads_start,
	.progress = threads_progress,
	.cancel = threads_cancel,
	.release = threads_release,
};
