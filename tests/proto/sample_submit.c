/* SPDX-License-Identifier: MIT */
#include "tests/proto/sample.h"

#define OPERAND_MAX ((uint64_t)1 << 48)

uint64_t sample_dtype_size(uint32_t dtype)
{
	static const char sizes[] = "112244882248";

	return dtype < sizeof sizes - 1 ? (uint64_t)(sizes[dtype] - '0') : 1;
}

/* Returns the size of a region that contains the bytes at *ret_off. */
static uint64_t place(struct tl_rng *r, uint64_t bytes, uint64_t *ret_off)
{
	*ret_off = tl_magnitude(r, 48);
	return *ret_off + bytes + (tl_range(r, 0, 1) ? tl_magnitude(r, 48) : 0);
}

struct shm_sqe sample_entry(struct tl_rng *r, struct shm_submit_limits *ret_lim)
{
	struct shm_sqe e = {
		.slot = (uint32_t)tl_range(r, 0, SHM_SLOTS - 1),
		.flags = (uint32_t)tl_range(r, 0, SHM_SQE_IN_REGISTERED | SHM_SQE_OUT_REGISTERED),
		.tag = tl_u64(r),
		.dtype = (uint32_t)tl_range(r, 0, 11),
		.op = (uint32_t)tl_range(r, 0, 4),
		.src_hint = (uint32_t)tl_u64(r),
		.quant_dtype = (uint32_t)tl_u64(r),
		.in_region = tl_u64(r),
		.out_region = tl_u64(r),
	};
	uint64_t size = sample_dtype_size(e.dtype);

	e.count = 1 + tl_magnitude(r, 48) % (OPERAND_MAX / size);
	e.in_second = tl_range(r, 0, e.count) * size;
	e.in_start = tl_range(r, 0, e.in_second / size) * size;
	ret_lim->busy = tl_u64(r) & ~((uint64_t)1 << e.slot);
	ret_lim->in_size = place(r, e.count * size, &e.in_off);
	ret_lim->out_size = place(r, e.count * size, &e.out_off);
	if (!(e.flags & SHM_SQE_OUT_REGISTERED) && tl_range(r, 0, 1)) {
		ret_lim->out_size = 0;
		e.out_off = tl_u64(r);
	}
	return e;
}

struct shm_sqe sample_sync_entry(struct tl_rng *r, struct shm_submit_limits *ret_lim)
{
	struct shm_sqe e = {
		.slot = (uint32_t)tl_range(r, 0, SHM_SLOTS - 1),
		.flags = SHM_SQE_SYNC | (tl_range(r, 0, 1) ? SHM_SQE_SYNCED : 0),
		.sync = {.keys = {tl_u64(r), tl_u64(r)},
			.content = {tl_u64(r), tl_u64(r)},
			.region = tl_u64(r),
			.revision = tl_magnitude(r, 64),
			.bytes = tl_magnitude(r, 48),
			.n_tensors = (uint32_t)tl_magnitude(r, 20),
			.strategy = (uint32_t)tl_range(r, 0, 2),
			.hash_type = (uint32_t)tl_range(r, 1, 255),
			.torn = (uint32_t)tl_range(r, 0, 1)},
		.generation = tl_magnitude(r, 64),
	};

	ret_lim->busy = tl_u64(r) & ~((uint64_t)1 << e.slot);
	ret_lim->in_size = 1 + tl_magnitude(r, 48);
	ret_lim->out_size = 0;
	return e;
}

bool same_submission(const struct shm_submission *a, const struct shm_submission *b)
{
	return a->slot == b->slot && a->dtype == b->dtype && a->op == b->op && a->tag == b->tag &&
	       a->count == b->count && a->bytes == b->bytes &&
	       a->in_registered == b->in_registered && a->out_registered == b->out_registered &&
	       a->in_off == b->in_off && a->in_start == b->in_start &&
	       a->in_second == b->in_second && a->window == b->window &&
	       a->out_disposable == b->out_disposable && a->out_off == b->out_off &&
	       a->generation == b->generation && a->is_sync == b->is_sync &&
	       a->synced == b->synced && a->by_main == b->by_main && a->waited == b->waited &&
	       same_sync_vote(&a->sync, &b->sync);
}
