/* SPDX-License-Identifier: MIT */
#include "proto/shm_submit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/cc_err.h"
#include "proto/wire_dtype.h"
#include "proto/wire_names.h"
#include "proto/wire_limits.h"

#define FLAGS                                                                                      \
	((uint32_t)(SHM_SQE_IN_REGISTERED | SHM_SQE_OUT_REGISTERED | SHM_SQE_OUT_DISPOSABLE |      \
		    SHM_SQE_MAIN | SHM_SQE_WAITED))
#define SYNC_FLAGS ((uint32_t)(SHM_SQE_SYNC | SHM_SQE_SYNCED))
#define NO_FLAGS   ((uint32_t)(SHM_SQE_SYNC | SHM_SQE_REFUSED | SHM_SQE_MAIN | SHM_SQE_WAITED))

_Static_assert(SHM_SLOTS == 64, "shm_submit_limits.busy has a bit for every slot");

__attribute__((format(printf, 2, 3))) static int refuse(char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, SHM_TEXT, fmt, ap);
	va_end(ap);
	return CC_ERR_INVAL;
}

static int check_slot(uint32_t slot, uint64_t busy, char *why)
{
	if (slot < SHM_SLOTS && !(busy >> slot & 1))
		return 0;
	(void)refuse(why, "slot %" PRIu32 " %s", slot,
		slot < SHM_SLOTS ? "is in use" : "does not exist");
	return CC_ERR_PROTO;
}

/* Checks the operation to be computed. *ret gets its mode of quantization. */
static int check_operation(const struct shm_sqe *e, struct wire_quant *ret, char *why)
{
	struct wire_quant_numbers n = {e->quant_algo, e->quant_dtype, e->src_hint};
	char text[WIRE_QUANT_TEXT];

	if (e->op > WIRE_OP_MAX)
		return refuse(why, "operation: %" PRIu32 " is not one of the %u pcclRedOp_t", e->op,
			WIRE_OP_MAX + 1);
	if (wire_quant_get(e->dtype, &n, ret, text) < 0)
		return refuse(why, "%s", text);
	if (ret->feedback && e->op > WIRE_OP_AVG)
		return refuse(why, "error feedback is only for sum and avg, not for %s",
			wire_op_name(e->op));
	return 0;
}

/* Checks type and count. *ret gets the bytes of the operand. */
static int check_size(const struct shm_sqe *e, uint64_t *ret, char *why)
{
	if (e->dtype > WIRE_DTYPE_MAX)
		return refuse(why, "data type: %" PRIu32 " is not one of the %u pcclDataType_t",
			e->dtype, WIRE_DTYPE_MAX + 1);
	if (e->count > WIRE_COUNT_MAX / wire_dtype_size[e->dtype])
		return refuse(
			why, "count: %" PRIu64 " elements are more than 2^48 bytes", e->count);
	*ret = e->count * wire_dtype_size[e->dtype];
	return 0;
}

/* Checks that the bytes at off lie in a region of `size` bytes. */
static int check_range(
	const char *field, uint64_t region, uint64_t size, uint64_t off, uint64_t bytes, char *why)
{
	if (size == 0)
		return refuse(why, "%s_region: this process has no memory region %" PRIu64, field,
			region);
	if (off > size || bytes > size - off)
		return refuse(why,
			"%s_off: %" PRIu64 " bytes at offset %" PRIu64 " do not lie in region "
			"%" PRIu64 " of %" PRIu64 " bytes",
			field, bytes, off, region, size);
	return 0;
}

static int check_window(const struct shm_sqe *e, char *why)
{
	if (e->window > SHM_WINDOW_MAX)
		return refuse(why, "window: %" PRIu32 " segments, must be at most %u", e->window,
			SHM_WINDOW_MAX);
	if (e->window > 0 && ((e->flags & SHM_SQE_IN_REGISTERED) || e->in_second > 0))
		return refuse(
			why, "window: only for operands that are staged from their beginning");
	return 0;
}

/* Checks SHM_SQE_OUT_DISPOSABLE. The output must be registered and must not overlap the operand,
 * which is never disposable. */
static int check_disposable(const struct shm_sqe *e, uint64_t bytes, char *why)
{
	if (!(e->flags & SHM_SQE_OUT_REGISTERED))
		return refuse(why, "flags: an output must be registered to be disposable");
	if (e->in_region == e->out_region && e->in_off < e->out_off + bytes &&
		e->out_off < e->in_off + bytes)
		return refuse(why, "out_off: the output overlaps the operand, which must be kept");
	return 0;
}

/* Checks the places of the operand and of the result. */
static int check_ranges(
	const struct shm_sqe *e, const struct shm_submit_limits *lim, uint64_t bytes, char *why)
{
	int err = check_range("in", e->in_region, lim->in_size, e->in_off,
		e->window > 0 ? shm_window_size(e->window) : bytes, why);

	if (err == 0 && e->in_second > bytes)
		err = refuse(why, "in_second: %" PRIu64 " is beyond the %" PRIu64 " bytes",
			e->in_second, bytes);
	if (err == 0 && e->in_start > e->in_second)
		err = refuse(why, "in_start: %" PRIu64 " is beyond in_second, %" PRIu64,
			e->in_start, e->in_second);
	if (err == 0 && (e->flags & SHM_SQE_OUT_REGISTERED))
		err = check_range("out", e->out_region, lim->out_size, e->out_off, bytes, why);
	if (err == 0 && (e->flags & SHM_SQE_OUT_DISPOSABLE))
		err = check_disposable(e, bytes, why);
	return err;
}

static int check_boundary(const struct shm_sqe *e, const char *field, uint64_t off, char *why)
{
	if (off % wire_dtype_size[e->dtype] == 0)
		return 0;
	return refuse(why, "%s: %" PRIu64 " is within an element of %d bytes", field, off,
		wire_dtype_size[e->dtype]);
}

/* Checks an entry of a synchronization of shared state. shm_state_get later checks whether the
 * manifest matches the entry. */
static int get_sync(const struct shm_sqe *e, const struct shm_submit_limits *lim,
	struct shm_submission *ret, char *why)
{
	const struct shm_sqe_sync *s = &e->sync;

	if (e->flags & ~SYNC_FLAGS)
		return refuse(why, "flags: unknown bits %#" PRIx32, e->flags & ~SYNC_FLAGS);
	if (s->torn > 1)
		return refuse(why, "torn: %" PRIu32 ", must be 0 or 1", s->torn);
	if (e->tag != 0)
		return refuse(why, "tag: must be 0");
	if (lim->in_size == 0)
		return refuse(why, "region: this process has no memory region %" PRIu64, s->region);
	if (s->strategy > WM_STRATEGY_SEND_ONLY)
		return refuse(why,
			"strategy: %" PRIu32 " is not one of the 3 pcclSharedStateSyncStrategy_t",
			s->strategy);
	if (s->hash_type < 1 || s->hash_type > WIRE_HASH_TYPE_MAX)
		return refuse(why, "hash_type: %" PRIu32 ", must be 1 to %u", s->hash_type,
			WIRE_HASH_TYPE_MAX);
	if (s->n_tensors > WIRE_TENSORS_MAX)
		return refuse(why, "count: %" PRIu32 " tensors, must be at most %u", s->n_tensors,
			WIRE_TENSORS_MAX);
	if (s->bytes > WIRE_STATE_MAX)
		return refuse(
			why, "tensors: %" PRIu64 " bytes in all are more than 2^48", s->bytes);
	*ret = (struct shm_submission){.slot = e->slot,
		.generation = e->generation,
		.by_main = true,
		.waited = true,
		.is_sync = true,
		.synced = e->flags & SHM_SQE_SYNCED,
		.sync = {.revision = s->revision,
			.strategy = s->strategy,
			.hash_type = s->hash_type,
			.keys = {.hi = s->keys[0], .lo = s->keys[1]},
			.content = {.hi = s->content[0], .lo = s->content[1]},
			.n_tensors = s->n_tensors,
			.bytes = s->bytes,
			.torn = s->torn == 1}};
	return 0;
}

/* Checks a refusal. The parameters of the operation are ignored. */
static int get_refused(const struct shm_sqe *e, struct shm_submission *ret, char *why)
{
	if (e->flags & ~NO_FLAGS)
		return refuse(why, "flags: unknown bits %#" PRIx32, e->flags & ~NO_FLAGS);
	if (e->refused < 1 || e->refused > WIRE_CODE_MAX)
		return refuse(
			why, "refused: %" PRIu32 ", must be 1 to %u", e->refused, WIRE_CODE_MAX);
	if ((e->flags & SHM_SQE_SYNC) && e->tag != 0)
		return refuse(why, "tag: must be 0");
	*ret = (struct shm_submission){.slot = e->slot,
		.tag = e->tag,
		.generation = e->generation,
		.is_sync = e->flags & SHM_SQE_SYNC,
		.by_main = e->flags & (SHM_SQE_SYNC | SHM_SQE_MAIN),
		.waited = e->flags & (SHM_SQE_SYNC | SHM_SQE_WAITED),
		.refused = e->refused};
	return 0;
}

static int check_reduce(const struct shm_sqe *e, const struct shm_submit_limits *lim,
	uint64_t *bytes, struct wire_quant *quant, char *why)
{
	int err = check_size(e, bytes, why);

	if (err == 0 && (e->flags & ~FLAGS))
		err = refuse(why, "flags: unknown bits %#" PRIx32, e->flags & ~FLAGS);
	if (err == 0)
		err = check_window(e, why);
	if (err == 0)
		err = check_ranges(e, lim, *bytes, why);
	if (err == 0)
		err = check_operation(e, quant, why);
	if (err == 0 && e->count == 0)
		err = refuse(why, "count: must be at least 1");
	if (err == 0)
		err = check_boundary(e, "in_start", e->in_start, why);
	if (err == 0)
		err = check_boundary(e, "in_second", e->in_second, why);
	return err;
}

static int get_reduce(const struct shm_sqe *e, const struct shm_submit_limits *lim,
	struct shm_submission *ret, char *why)
{
	struct wire_quant quant = {0};
	uint64_t bytes = 0;
	int err = check_reduce(e, lim, &bytes, &quant, why);

	if (err < 0)
		return err;
	*ret = (struct shm_submission){.slot = e->slot,
		.dtype = e->dtype,
		.op = e->op,
		.quant = wire_quant_put(&quant),
		.tag = e->tag,
		.count = e->count,
		.bytes = bytes,
		.in_registered = e->flags & SHM_SQE_IN_REGISTERED,
		.out_registered = e->flags & SHM_SQE_OUT_REGISTERED,
		.out_disposable = e->flags & SHM_SQE_OUT_DISPOSABLE,
		.in_off = e->in_off,
		.window = e->window,
		.in_start = e->in_start,
		.in_second = e->in_second,
		.out_off = e->flags & SHM_SQE_OUT_REGISTERED ? e->out_off : 0,
		.generation = e->generation,
		.by_main = e->flags & SHM_SQE_MAIN,
		.waited = e->flags & SHM_SQE_WAITED};
	return 0;
}

int shm_submission_get(const struct shm_sqe *e, const struct shm_submit_limits *lim,
	struct shm_submission *ret, char why[SHM_TEXT])
{
	int err = check_slot(e->slot, lim->busy, why);

	if (err < 0)
		return err;
	if (e->flags & SHM_SQE_REFUSED)
		return get_refused(e, ret, why);
	if (e->flags & SHM_SQE_SYNC)
		return get_sync(e, lim, ret, why);
	return get_reduce(e, lim, ret, why);
}
