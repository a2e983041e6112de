/* SPDX-License-Identifier: MIT */
#include "pcclagentd/engine/rate.h"

#define BUSY_PART     2u /* an interval counts if a stream was busy for at least 1/2 of it, */
#define RECEIVER_PART 8u /* and if windows were closed for at most 1/8 of the busy time */

void eng_rate_add(
	struct eng_rate *r, const struct eng_rate_counts *before, const struct eng_rate_counts *now)
{
	uint64_t busy_us;

	if (!before->known || !now->known)
		return;
	busy_us = now->busy_us - before->busy_us;
	r->bytes += now->acked - before->acked;
	r->busy_us += busy_us;
	r->receiver_us += now->receiver_us - before->receiver_us;
	if (busy_us > r->busiest_us)
		r->busiest_us = busy_us;
	r->waits |= now->waits;
}

static bool is_bounded_by_network(const struct eng_rate *r, uint64_t us)
{
	return r->waits && r->busiest_us >= us / BUSY_PART &&
	       r->receiver_us <= r->busy_us / RECEIVER_PART;
}

static void forget_intervals(struct eng_rate *r)
{
	r->sum_bytes = r->sum_busiest_us = r->sum_us = r->age_us = 0;
}

uint64_t eng_rate_end_interval(struct eng_rate *r, uint64_t us, bool counts)
{
	uint64_t rate;

	r->passed_us += us;
	if (r->age_us > 0)
		r->age_us += us;
	if (r->age_us > ENG_RATE_OLD_US)
		forget_intervals(r);
	if (counts && us > 0 && is_bounded_by_network(r, us)) {
		r->sum_bytes += r->bytes;
		r->sum_busiest_us += r->busiest_us;
		r->sum_us += us;
		r->age_us = r->age_us > 0 ? r->age_us : us;
	}
	r->bytes = r->busiest_us = r->busy_us = r->receiver_us = 0;
	r->waits = false;
	if (r->sum_us < ENG_RATE_WINDOW_US || r->passed_us < ENG_RATE_PAUSE_US)
		return 0;
	rate = (uint64_t)((double)r->sum_bytes * 8e6 / (double)r->sum_busiest_us);
	forget_intervals(r);
	r->passed_us = 0;
	return rate;
}
