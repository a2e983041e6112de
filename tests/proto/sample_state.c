/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/proto/sample.h"

#define MIB ((uint64_t)1 << 20)

struct wst_request sample_state_request(struct tl_rng *r)
{
	struct wst_request q = {
		.kind = (uint8_t)tl_range(r, WST_TENSORS, WST_BLOCK),
		.id = (uint32_t)tl_u64(r),
		.group = (uint32_t)tl_magnitude(r, 32),
		.seq = 1 + tl_magnitude(r, 63),
		.without = tl_magnitude(r, 64),
	};

	q.n = (uint32_t)tl_range(r, 1, q.kind == WST_BLOCK ? WST_BLOCK_MAX : WST_HASHES_MAX);
	if (q.kind == WST_TENSORS) {
		q.tensor = (uint32_t)tl_range(r, 0, WIRE_TENSORS_MAX - q.n);
	} else {
		q.tensor = (uint32_t)tl_range(r, 0, WIRE_TENSORS_MAX - 1);
		q.first = tl_range(r, 0, WIRE_LEAVES_MAX - q.n);
	}
	return q;
}

bool same_state_request(const struct wst_request *a, const struct wst_request *b)
{
	return a->kind == b->kind && a->id == b->id && a->group == b->group && a->seq == b->seq &&
	       a->tensor == b->tensor && a->first == b->first && a->n == b->n &&
	       a->without == b->without;
}

struct wst_answer sample_state_answer(struct tl_rng *r)
{
	struct wst_answer a = {
		.req = sample_state_request(r), .status = (uint8_t)tl_range(r, WST_OK, WST_GONE)};
	uint32_t n = a.req.n;

	if (a.status == WST_OK) {
		a.member = (uint8_t)tl_range(r, 0, WST_MEMBER_MAX);
		a.len = a.req.kind == WST_BLOCK
				? (n - 1) * WIRE_LEAF + (uint32_t)tl_range(r, 1, WIRE_LEAF)
				: n * 8;
	}
	return a;
}

uint64_t sample_region_size(void *arg, uint64_t region)
{
	(void)arg;
	return region >= 1 && region <= 8 ? region * MIB : 0;
}

/* Writes the name of tensor i, which is greater than the names before it. It begins with a few
 * bytes that contain the number, and random bytes follow. */
static uint32_t name_put(struct tl_rng *r, uint32_t i, char *ret)
{
	uint32_t len =
		3 + (uint32_t)(tl_range(r, 0, 99) ? tl_range(r, 0, 20) : tl_range(r, 0, 1021));

	ret[0] = (char)(1 + (i >> 14));
	ret[1] = (char)(1 + (i >> 7 & 127));
	ret[2] = (char)(1 + (i & 127));
	for (uint32_t k = 3; k < len; k++)
		ret[k] = (char)tl_range(r, 1, 255);
	return len;
}

/* Makes a tensor with a valid shape and place. */
static void tensor(struct tl_rng *r, struct shm_state_entry *e)
{
	uint64_t size;

	e->dtype = (uint16_t)tl_range(r, 0, 11);
	size = sample_dtype_size(e->dtype);
	e->count = tl_magnitude(r, 17);
	e->bytes = e->count * size;
	e->hash = tl_u64(r);
	e->flags = (uint16_t)(tl_range(r, 0, 3) ? 0 : SHM_STATE_MAY_DIFFER);
	if (tl_range(r, 0, 1)) {
		e->region = tl_range(r, 1, 8);
		e->region_off = tl_range(r, 0, sample_region_size(NULL, e->region) - e->bytes);
	}
}

/* Makes entries and names. `names` has room for 1024 bytes per name. */
static void table(struct tl_rng *r, uint32_t n, struct shm_state_entry *e, char *names,
	struct shm_state_header *h)
{
	for (uint32_t i = 0; i < n; i++) {
		tensor(r, &e[i]);
		e[i].name_off = h->names_len;
		e[i].name_len = name_put(r, i, names + h->names_len);
		e[i].first_leaf = h->n_leaves;
		h->names_len += e[i].name_len;
		h->n_leaves += wire_leaf_count(e[i].bytes);
	}
}

void sample_manifest(struct tl_rng *r, uint32_t n, struct sample_manifest *ret)
{
	struct shm_state_entry *e = calloc(n + 1, sizeof *e);
	char *names = malloc((size_t)n * WIRE_TENSOR_NAME_MAX + 1);
	struct shm_state_header h = {0};
	struct wm_sync_vote vote = {.n_tensors = n};
	uint64_t size;
	unsigned char *map;

	if (e == NULL || names == NULL)
		abort();
	table(r, n, e, names, &h);
	if (shm_state_plan(n, h.names_len, h.n_leaves, &h, &size) != 0)
		abort();
	map = aligned_alloc(SHM_STATE_PAGE, size);
	if (map == NULL)
		abort();
	memset(map, 0, h.window_off);
	memcpy(map, &h, sizeof h);
	memcpy(map + h.tensors_off, e, n * sizeof *e);
	memcpy(map + h.names_off, names, h.names_len);
	for (uint64_t i = 0; i < h.n_leaves; i++) {
		uint64_t hash = tl_u64(r);

		memcpy(map + h.leaves_off + 8 * i, &hash, sizeof hash);
	}
	for (uint32_t i = 0; i < n; i++)
		vote.bytes += e[i].bytes;
	free(e);
	free(names);
	*ret = (struct sample_manifest){.map = map,
		.h = (void *)map,
		.e = (void *)(map + h.tensors_off),
		.names = (char *)map + h.names_off,
		.vote = vote,
		.lim = {.size = size, .region_size = sample_region_size}};
	ret->lim.vote = &ret->vote;
}

void sample_manifest_free(struct sample_manifest *m)
{
	free(m->map);
	*m = (struct sample_manifest){0};
}
