/* SPDX-License-Identifier: MIT
 *
 * The shim can write to the manifest at any time. So every word is copied before it is checked, and
 * is never read again.
 */
#include "proto/shm_state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"
#include "proto/wire_bytes.h"
#include "proto/wire_dtype.h"
#include "proto/wire_text.h"

#define FLAGS  ((uint32_t)SHM_STATE_MAY_DIFFER)
#define WINDOW ((uint64_t)SHM_STATE_SLOTS * SHM_STATE_SLOT)
/* Bounds of the numbers in a header, so that computations with them do not overflow. */
#define NAMES_MAX  ((uint64_t)WIRE_TENSORS_MAX * WIRE_TENSOR_NAME_MAX)
#define LEAVES_MAX (WIRE_LEAVES_MAX + WIRE_TENSORS_MAX)
#define NAME_SHOWN 64

_Static_assert(WIRE_TENSOR_NAME_MAX <= UINT16_MAX, "shm_state_tensor.name_len");

/* ---- for the shim ---- */

int shm_state_plan(uint64_t n_tensors, uint64_t names_len, uint64_t n_leaves,
	struct shm_state_header *ret, uint64_t *ret_size)
{
	struct shm_state_header h = {.magic = SHM_STATE_MAGIC,
		.version = SHM_STATE_VERSION,
		.n_tensors = n_tensors,
		.names_len = names_len,
		.n_leaves = n_leaves,
		.tensors_off = SHM_STATE_TABLES};

	if (n_tensors > WIRE_TENSORS_MAX || names_len > NAMES_MAX || n_leaves > LEAVES_MAX)
		return CC_ERR_LIMIT;
	h.names_off = h.tensors_off + n_tensors * sizeof(struct shm_state_entry);
	h.leaves_off = (h.names_off + names_len + SHM_LINE - 1) / SHM_LINE * SHM_LINE;
	h.window_off = (h.leaves_off + n_leaves * sizeof(uint64_t) + SHM_STATE_PAGE - 1) /
		       SHM_STATE_PAGE * SHM_STATE_PAGE;
	*ret = h;
	*ret_size = h.window_off + WINDOW;
	return 0;
}

size_t shm_state_key_put(
	uint8_t buf[SHM_STATE_KEY_MAX], const struct shm_state_entry *e, const char *name)
{
	uint8_t *p = buf;

	wire_put32(p, e->name_len);
	memcpy(p + 4, name, e->name_len);
	p += 4 + e->name_len;
	wire_put32(p, e->dtype);
	wire_put64(p + 4, e->count);
	wire_put32(p + 12, e->flags);
	return (size_t)(p + 16 - buf);
}

bool shm_state_command_fits(const struct shm_state_command *c, uint64_t bytes)
{
	return (c->op == SHM_STATE_READ || c->op == SHM_STATE_WRITE) && c->slot < SHM_STATE_SLOTS &&
	       c->len >= 1 && c->len <= SHM_STATE_SLOT && c->off <= bytes &&
	       c->len <= bytes - c->off &&
	       (c->from == 0 || (c->op == SHM_STATE_WRITE && c->off % WIRE_LEAF == 0));
}

/* ---- for the agent ---- */

__attribute__((format(printf, 2, 3))) static int refuse(char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, SHM_TEXT, fmt, ap);
	va_end(ap);
	return CC_ERR_INVAL;
}

/* Copies from shared memory. Afterwards the caller reads only the copy: the fence keeps the
 * compiler from reading the source again. */
static void copy_out(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	atomic_signal_fence(memory_order_seq_cst);
}

/* Checks the offset of a table. The table must lie after the fixed part and in the region, and it
 * must be aligned. */
static int check_range(char *why, const char *field, uint64_t off, uint64_t n, uint64_t each,
	uint64_t align, uint64_t size)
{
	if (off < SHM_STATE_TABLES || off % align)
		return refuse(why,
			"%s_off: %" PRIu64 ", must be a multiple of %" PRIu64
			" and at least %" PRIu64,
			field, off, align, (uint64_t)SHM_STATE_TABLES);
	if (off > size || n > (size - off) / each)
		return refuse(why,
			"%s_off: %" PRIu64 " times %" PRIu64 " bytes at %" PRIu64 " do not lie in "
			"the region of %" PRIu64 " bytes",
			field, n, each, off, size);
	return 0;
}

static int check_header(
	const struct shm_state_header *h, const struct shm_state_limits *lim, char *why)
{
	int err;

	if (h->magic != SHM_STATE_MAGIC)
		return refuse(why, "magic: must be PCSM");
	if (h->version != SHM_STATE_VERSION)
		return refuse(why, "version: %" PRIu32 ", this agent knows %u", h->version,
			SHM_STATE_VERSION);
	if (h->n_tensors > WIRE_TENSORS_MAX)
		return refuse(why, "n_tensors: %" PRIu64 ", must be at most %u", h->n_tensors,
			WIRE_TENSORS_MAX);
	if (h->n_tensors != lim->vote->n_tensors)
		return refuse(why,
			"n_tensors: %" PRIu64 " in the manifest, %" PRIu64 " in the submission",
			h->n_tensors, lim->vote->n_tensors);
	err = check_range(why, "tensors", h->tensors_off, h->n_tensors,
		sizeof(struct shm_state_entry), sizeof(uint64_t), lim->size);
	if (err == 0)
		err = check_range(why, "names", h->names_off, h->names_len, 1, 1, lim->size);
	if (err == 0)
		err = check_range(why, "leaves", h->leaves_off, h->n_leaves, sizeof(uint64_t),
			sizeof(uint64_t), lim->size);
	if (err == 0)
		err = check_range(why, "window", h->window_off, SHM_STATE_SLOTS, SHM_STATE_SLOT,
			SHM_STATE_PAGE, lim->size);
	return err;
}

/* The state of reading the table. */
struct reader {
	const unsigned char *map;
	const struct shm_state_limits *lim;
	struct shm_state_header h; /* checked */
	char *why;
	uint64_t i;             /* index of the present tensor */
	uint64_t bytes, leaves; /* of the tensors before it */
	/* names of this tensor and of the previous tensor; their places alternate */
	unsigned char names[2][WIRE_TENSOR_NAME_MAX];
	uint32_t last_len;
};

static int check_shape(const struct reader *r, const struct shm_state_entry *e)
{
	uint64_t i = r->i;

	if (e->dtype > WIRE_DTYPE_MAX)
		return refuse(r->why,
			"tensor %" PRIu64 ": dtype: %d is not one of the %u "
			"pcclDataType_t",
			i, e->dtype, WIRE_DTYPE_MAX + 1);
	if (e->flags & ~FLAGS)
		return refuse(r->why, "tensor %" PRIu64 ": flags: unknown bits %#x", i,
			(unsigned)(e->flags & ~FLAGS));
	if (e->count > WIRE_STATE_MAX || e->bytes != e->count * wire_dtype_size[e->dtype])
		return refuse(r->why,
			"tensor %" PRIu64 ": bytes: %" PRIu64 " do not match %" PRIu64
			" elements of %d",
			i, e->bytes, e->count, wire_dtype_size[e->dtype]);
	if (e->bytes > WIRE_STATE_MAX - r->bytes)
		return refuse(r->why, "tensor %" PRIu64 ": bytes: more than 2^48 in all", i);
	if (e->first_leaf != r->leaves)
		return refuse(r->why,
			"tensor %" PRIu64 ": first_leaf: %" PRIu64 ", the tensors before it "
			"have %" PRIu64 " leaves",
			i, e->first_leaf, r->leaves);
	return 0;
}

static int check_memory(const struct reader *r, const struct shm_state_entry *e)
{
	uint64_t size;

	if (e->region == 0 && e->region_off == 0)
		return 0;
	size = e->region != 0 ? r->lim->region_size(r->lim->arg, e->region) : 0;
	if (size == 0)
		return refuse(r->why,
			"tensor %" PRIu64
			": region: this process has no registered memory %" PRIu64,
			r->i, e->region);
	if (e->region_off > size || e->bytes > size - e->region_off)
		return refuse(r->why,
			"tensor %" PRIu64 ": region_off: %" PRIu64 " bytes at %" PRIu64
			" do not lie in region %" PRIu64 " of %" PRIu64 " bytes",
			r->i, e->bytes, e->region_off, e->region, size);
	return 0;
}

/* Checks that the name lies in the names, and that it comes after the previous name. */
static int check_name(struct reader *r, const struct shm_state_entry *e)
{
	unsigned char *name = r->names[r->i % 2], *last = r->names[(r->i + 1) % 2];
	char shown[NAME_SHOWN];
	uint32_t len = e->name_len, both;
	int order;

	if (len < 1 || len > WIRE_TENSOR_NAME_MAX)
		return refuse(r->why,
			"tensor %" PRIu64 ": name: %" PRIu32 " bytes, must be 1 to %u", r->i, len,
			WIRE_TENSOR_NAME_MAX);
	if (e->name_off > r->h.names_len || len > r->h.names_len - e->name_off)
		return refuse(r->why,
			"tensor %" PRIu64 ": name_off: %" PRIu32 " bytes at %" PRIu64
			" do not lie in the names of %" PRIu64 " bytes",
			r->i, len, e->name_off, r->h.names_len);
	copy_out(name, r->map + r->h.names_off + e->name_off, len);
	if (memchr(name, '\0', len) != NULL)
		return refuse(
			r->why, "tensor %" PRIu64 ": name: must not contain a zero byte", r->i);
	both = len < r->last_len ? len : r->last_len;
	order = memcmp(last, name, both);
	if (order > 0 || (order == 0 && r->last_len >= len)) {
		wire_text_clean(shown, (char *)name, len < sizeof shown ? len : sizeof shown - 1);
		return refuse(r->why, "tensor %" PRIu64 ": name: \"%s\" %s", r->i, shown,
			order == 0 && r->last_len == len ? "appears twice" : "is not in order");
	}
	r->last_len = len;
	return 0;
}

static int get_tensor(struct reader *r, struct shm_state_tensor *ret)
{
	struct shm_state_entry e;
	int err;

	copy_out(&e, r->map + r->h.tensors_off + r->i * sizeof e, sizeof e);
	err = check_name(r, &e);
	if (err == 0)
		err = check_shape(r, &e);
	if (err == 0)
		err = check_memory(r, &e);
	if (err == 0 && r->lim->tensor)
		err = r->lim->tensor(r->lim->arg, &e, (const char *)r->names[r->i % 2], r->why);
	if (err < 0)
		return err;
	*ret = (struct shm_state_tensor){.count = e.count,
		.bytes = e.bytes,
		.first_leaf = e.first_leaf,
		.hash = e.hash,
		.region = e.region,
		.region_off = e.region_off,
		.name_off = r->h.names_off + e.name_off,
		.name_len = (uint16_t)e.name_len,
		.dtype = (uint8_t)e.dtype,
		.may_differ = e.flags & SHM_STATE_MAY_DIFFER};
	r->bytes += e.bytes;
	r->leaves += wire_leaf_count(e.bytes);
	return 0;
}

static int get_tensors(struct reader *r, struct shm_state_tensor *v)
{
	for (r->i = 0; r->i < r->h.n_tensors; r->i++) {
		int err = get_tensor(r, &v[r->i]);

		if (err < 0)
			return err;
	}
	if (r->leaves != r->h.n_leaves)
		return refuse(r->why, "n_leaves: %" PRIu64 ", the tensors have %" PRIu64 " leaves",
			r->h.n_leaves, r->leaves);
	if (r->bytes != r->lim->vote->bytes)
		return refuse(r->why,
			"bytes: %" PRIu64 " in the manifest, %" PRIu64 " in the submission",
			r->bytes, r->lim->vote->bytes);
	return 0;
}

int shm_state_get(const void *map, const struct shm_state_limits *lim, struct shm_state *ret,
	char why[SHM_TEXT])
{
	struct reader r = {.map = map, .lim = lim, .why = why};
	struct shm_state_tensor *v;
	int err;

	if (lim->size < SHM_STATE_TABLES)
		return refuse(why, "region: %" PRIu64 " bytes are too few", lim->size);
	copy_out(&r.h, map, sizeof r.h);
	err = check_header(&r.h, lim, why);
	if (err < 0)
		return err;
	v = calloc(r.h.n_tensors + 1, sizeof *v);
	if (v == NULL) {
		(void)refuse(why, "n_tensors: no memory for a table of %" PRIu64, r.h.n_tensors);
		return CC_ERR_NOMEM;
	}
	err = get_tensors(&r, v);
	if (err < 0) {
		free(v);
		return err;
	}
	*ret = (struct shm_state){.n_tensors = (uint32_t)r.h.n_tensors,
		.n_leaves = r.h.n_leaves,
		.bytes = r.bytes,
		.leaves_off = r.h.leaves_off,
		.window_off = r.h.window_off,
		.tensors = v};
	return 0;
}

void shm_state_clear(struct shm_state *s)
{
	free(s->tensors);
	*s = (struct shm_state){0};
}

const char *shm_state_name(
	const void *map, const struct shm_state_tensor *t, char *buf, size_t size)
{
	char name[WIRE_TENSOR_NAME_MAX];
	size_t len = t->name_len < size ? t->name_len : size - 1;

	copy_out(name, (const char *)map + t->name_off, len);
	wire_text_clean(buf, name, len);
	return buf;
}
