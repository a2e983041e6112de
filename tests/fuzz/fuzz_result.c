/* SPDX-License-Identifier: MIT
 *
 * The fields of a slot that describe where a result lies.
 */
#include <string.h>

#include "common/cc_err.h"
#include "proto/shm_result.h"
#include "tests/fuzz/fuzz.h"

/* Checks whether a range lies in a region. All numbers may be arbitrary. */
static bool lies_in(uint64_t off, uint64_t bytes, uint64_t size)
{
	return off + bytes >= off && off + bytes <= size;
}

/* Checks that the shim does not read outside the region or write outside the caller's buffer when
 * it uses r. */
static void check_taken(const struct shm_result *r, const struct fuzz_result_input *in)
{
	uint64_t bytes = in->count * in->esize;
	uint32_t n = r->plan.n_segs;

	FUZZ_CHECK(in->esize > 0 && bytes / in->esize == in->count && bytes <= (uint64_t)1 << 48);
	if (r->mode == SHM_RESULT_AREA || r->mode == SHM_RESULT_UNDO)
		FUZZ_CHECK(lies_in(r->off, bytes, in->region_size));
	FUZZ_CHECK(n > 0 && lies_in(r->flags_off, n, in->region_size));
	for (uint32_t i = 0; i < 64; i++) {
		/* the first 32 segments and the last 32 */
		uint32_t seg = i < 32 ? i : n - 1 - (i - 32);
		struct cc_span span;

		if (seg >= n)
			continue;
		span = cc_plan_segment(&r->plan, seg);
		FUZZ_CHECK(lies_in(span.off, span.len, bytes));
		FUZZ_CHECK(span.len <= in->segment_max);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	struct fuzz_result_input in;
	struct shm_result_words w;
	struct shm_result_limits lim;
	struct shm_result got, was;
	const char *why = NULL;

	if (len < sizeof in)
		return 0;
	memcpy(&in, p, sizeof in);
	w = (struct shm_result_words){.mode = in.mode,
		.hosts = in.hosts,
		.segment_max = in.segment_max,
		.shares = in.shares,
		.off = in.off,
		.flags_off = in.flags_off};
	lim = (struct shm_result_limits){.count = in.count,
		.esize = in.esize,
		.staged = in.out_registered & 2,
		.out_registered = in.out_registered & 1};
	memset(&got, 0xa5, sizeof got);
	memset(&was, 0xa5, sizeof was);
	if (shm_result_get(&w, &lim, &got, &why) < 0) {
		FUZZ_CHECK(why != NULL);
		/* `got` is unchanged. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
		FUZZ_CHECK(memcmp(&got, &was, sizeof got) == 0);
		return 0;
	}
	FUZZ_CHECK(got.mode == SHM_RESULT_AREA ||
		   ((got.mode == SHM_RESULT_UNDO || got.mode == SHM_RESULT_DIRECT) &&
			   lim.out_registered) ||
		   (got.mode == SHM_RESULT_STAGED && lim.staged));
	if (shm_result_fits(&got, in.region_size, &why) < 0)
		FUZZ_CHECK(why != NULL);
	else
		check_taken(&got, &in);
	return 0;
}
