/* SPDX-License-Identifier: MIT
 *
 * A submission entry. The input begins with the limits that the entry is checked against.
 */
#include <string.h>

#include "common/cc_err.h"
#include "proto/wire_limits.h"
#include "tests/fuzz/fuzz.h"
#include "tests/proto/sample.h"

static void check_refused(const struct shm_sqe *e, const struct shm_submit_limits *lim, int err,
	const struct shm_submission *got, const char *why)
{
	bool mine = e->slot < SHM_SLOTS && !(lim->busy >> e->slot & 1);
	struct shm_submission was;

	FUZZ_CHECK(err == (mine ? CC_ERR_INVAL : CC_ERR_PROTO));
	FUZZ_CHECK(why[0] != '\0' && memchr(why, '\0', SHM_TEXT) != NULL);
	memset(&was, 0xa5, sizeof was);
	/* *got is unchanged. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
	FUZZ_CHECK(memcmp(got, &was, sizeof was) == 0);
}

/* Checks whether a range of at least one byte lies in a region. All numbers may be arbitrary. */
static bool lies_in(uint64_t off, uint64_t bytes, uint64_t size)
{
	return off + bytes > off && off + bytes <= size;
}

/* Checks an accepted submission against the limits, independently of the decoder. */
static void check_taken(const struct shm_submit_limits *lim, const struct shm_submission *s)
{
	uint64_t size = sample_dtype_size(s->dtype);

	FUZZ_CHECK(s->slot < SHM_SLOTS && !(lim->busy & (uint64_t)1 << s->slot));
	FUZZ_CHECK(size > 0 && s->op <= 4);
	FUZZ_CHECK(s->bytes > 0 && s->bytes <= (uint64_t)1 << 48);
	FUZZ_CHECK(s->bytes / size == s->count && s->bytes % size == 0);
	FUZZ_CHECK(s->window <= SHM_WINDOW_MAX);
	FUZZ_CHECK(lies_in(s->in_off,
		s->window > 0 ? (uint64_t)s->window * CC_PLAN_SEGMENT_MAX : s->bytes,
		lim->in_size));
	FUZZ_CHECK(s->in_start <= s->in_second && s->in_start % size == 0);
	FUZZ_CHECK(s->in_second <= s->bytes && s->in_second % size == 0);
	FUZZ_CHECK(s->window == 0 || (!s->in_registered && s->in_second == 0));
	FUZZ_CHECK(!s->out_disposable || s->out_registered);
	if (s->out_registered)
		FUZZ_CHECK(lies_in(s->out_off, s->bytes, lim->out_size));
	else
		FUZZ_CHECK(s->out_off == 0);
}

static void check_sync_taken(const struct shm_submit_limits *lim, const struct shm_submission *s)
{
	const struct wm_sync_vote *v = &s->sync;

	FUZZ_CHECK(s->slot < SHM_SLOTS && !(lim->busy & (uint64_t)1 << s->slot));
	FUZZ_CHECK(lim->in_size > 0 && s->tag == 0 && s->bytes == 0);
	FUZZ_CHECK(v->strategy <= 2 && v->hash_type >= 1 && v->hash_type <= 255);
	FUZZ_CHECK(v->n_tensors <= 1 << 20 && v->bytes <= (uint64_t)1 << 48);
}

static void check_refusal_taken(const struct shm_submit_limits *lim, const struct shm_submission *s)
{
	FUZZ_CHECK(s->slot < SHM_SLOTS && !(lim->busy & (uint64_t)1 << s->slot));
	FUZZ_CHECK(s->refused <= WIRE_CODE_MAX);
	FUZZ_CHECK(!s->is_sync || (s->tag == 0 && s->by_main && s->waited));
}

static struct shm_sqe refusal_entry(const struct shm_submission *s)
{
	return (struct shm_sqe){.slot = s->slot,
		.flags = SHM_SQE_REFUSED | (s->is_sync ? SHM_SQE_SYNC : 0u) |
			 (s->by_main && !s->is_sync ? SHM_SQE_MAIN : 0u) |
			 (s->waited && !s->is_sync ? SHM_SQE_WAITED : 0u),
		.tag = s->tag,
		.generation = s->generation,
		.refused = s->refused};
}

static struct shm_sqe sync_entry(const struct shm_submission *s)
{
	const struct wm_sync_vote *v = &s->sync;

	return (struct shm_sqe){.slot = s->slot,
		.flags = SHM_SQE_SYNC | (s->synced ? SHM_SQE_SYNCED : 0u),
		.sync = {.keys = {v->keys.hi, v->keys.lo},
			.content = {v->content.hi, v->content.lo},
			.revision = v->revision,
			.bytes = v->bytes,
			.n_tensors = (uint32_t)v->n_tensors,
			.strategy = v->strategy,
			.hash_type = v->hash_type,
			.torn = v->torn},
		.generation = s->generation};
}

static void check_again(const struct shm_submit_limits *lim, const struct shm_submission *s)
{
	struct shm_sqe e = {
		.slot = s->slot,
		.flags = (s->in_registered ? SHM_SQE_IN_REGISTERED : 0u) |
			 (s->out_registered ? SHM_SQE_OUT_REGISTERED : 0u) |
			 (s->out_disposable ? SHM_SQE_OUT_DISPOSABLE : 0u) |
			 (s->by_main ? SHM_SQE_MAIN : 0u) | (s->waited ? SHM_SQE_WAITED : 0u),
		/* A submission does not contain the regions' numbers. A disposable output needs two
		 * different regions. */
		.out_region = s->out_disposable,
		.tag = s->tag,
		.count = s->count,
		.dtype = s->dtype,
		.op = s->op,
		.in_off = s->in_off,
		.in_start = s->in_start,
		.in_second = s->in_second,
		.window = s->window,
		.out_off = s->out_off,
		.generation = s->generation,
	};
	struct shm_submission again;
	char why[SHM_TEXT];

	if (s->refused > 0)
		e = refusal_entry(s);
	else if (s->is_sync)
		e = sync_entry(s);
	FUZZ_CHECK(shm_submission_get(&e, lim, &again, why) == 0);
	FUZZ_CHECK(same_submission(s, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	struct shm_submit_limits lim;
	struct shm_submission got;
	struct shm_sqe e;
	char why[SHM_TEXT];
	int err;

	if (len < sizeof lim + sizeof e)
		return 0;
	memcpy(&lim, p, sizeof lim);
	memcpy(&e, p + sizeof lim, sizeof e);
	memset(&got, 0xa5, sizeof got);
	memset(why, 0xff, sizeof why);
	err = shm_submission_get(&e, &lim, &got, why);
	if (err < 0) {
		check_refused(&e, &lim, err, &got, why);
	} else {
		if (got.refused > 0)
			check_refusal_taken(&lim, &got);
		else if (got.is_sync)
			check_sync_taken(&lim, &got);
		else
			check_taken(&lim, &got);
		check_again(&lim, &got);
	}
	return 0;
}
