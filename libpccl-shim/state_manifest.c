/* SPDX-License-Identifier: MIT
 *
 * Makes this peer's candidate for a synchronization: hashes the tensors and writes the manifest.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "libpccl-shim/torn.h"
#include "libpccl-shim/region.h"
#include "libpccl-shim/registered.h"
#include "libpccl-shim/session.h"
#include "libpccl-shim/state.h"
#include "proto/shm_state.h"
#include "proto/wire_bytes.h"

/* Another thread is started only if it gets at least about this many bytes to hash. */
#define THREAD_BYTES ((uint64_t)4 << 20)
#define KEY_FIXED    (SHM_STATE_KEY_MAX - WIRE_TENSOR_NAME_MAX)

_Static_assert((int)HSH_SIMPLE == (int)WM_HASH_SIMPLE, "the two enums must agree");
_Static_assert((int)HSH_CRC32C == (int)WM_HASH_CRC32C, "the two enums must agree");

/* Chooses the hash: PCCL_HASH_TYPE, or, if it is not set, the agent's setting. Runs in a thread of
 * the application, so it may read the environment (reconnector.h). */
static pcclResult_t pick_hash(
	const struct pccl_session *session, hsh_leaf_fn **ret, uint32_t *ret_type)
{
	const char *text = secure_getenv("PCCL_HASH_TYPE"), *whose;
	uint32_t type = pccl_session_hash_type(session);
	char why[128];

	whose = text && text[0] ? "the environment variable PCCL_HASH_TYPE"
				: "the agent's setting hash_type";
	if (text && strcmp(text, "simple") == 0)
		type = HSH_SIMPLE;
	else if (text && strcmp(text, "crc32c") == 0)
		type = HSH_CRC32C;
	else if (text && text[0])
		return pccl_fail(pcclInvalidUsage, "%s is \"%.64s\", it must be simple or crc32c",
			whose, text);
	*ret = hsh_leaf;
	*ret_type = type == HSH_CRC32C ? HSH_CRC32C : HSH_SIMPLE;
	if (type == HSH_CRC32C && !hsh_crc32c_load(ret, why, sizeof why))
		return pccl_fail(pcclInvalidUsage, "%s is crc32c: %s", whose, why);
	return pcclSuccess;
}

static unsigned count_threads(uint64_t bytes)
{
	uint64_t useful = bytes / THREAD_BYTES + 1;
	cpu_set_t set;
	int cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

	return useful < (uint64_t)cpus ? (unsigned)useful : (unsigned)cpus;
}

/* Gets a region for the manifest that has at least `size` bytes, but not more than twice as
 * many. */
static pcclResult_t get_region(struct pccl_attachment *a, uint64_t size)
{
	pcclResult_t r;

	if (a->state.base && a->state.size >= size && a->state.size <= 2 * size)
		return pcclSuccess;
	if (a->state.base)
		pccl_region_free(a->session, &a->state);
	r = pccl_region_alloc(a->session, size, WL_REGION_STATE, &a->state, NULL);
	if (r == pcclOutOfMemory) {
		pccl_staging_trim(a);
		r = pccl_region_alloc(a->session, size, WL_REGION_STATE, &a->state, NULL);
	}
	return r;
}

/* Tensors of the same kind and use that follow each other in `work`. */
struct batch {
	const struct pccl_buf *buf; /* of the first tensor */
	size_t first, n;            /* entries of `work` */
	uint64_t bytes;
};

static pcclResult_t hash_batch(struct pccl_state *st, const struct batch *b)
{
	return b->n == 0 ? pcclSuccess
			 : pccl_buf_hash(b->buf, st->leaf, st->work + b->first, b->n,
				   count_threads(b->bytes));
}

static pcclResult_t hash_tensors(
	struct pccl_state *st, const struct shm_state_header *h, uint8_t *base)
{
	uint64_t *leaves = (uint64_t *)(void *)(base + h->leaves_off);
	struct batch b = {.n = 0};
	pcclResult_t r = pcclSuccess;

	for (size_t i = 0; i < st->n && r == pcclSuccess; i++) {
		const struct pccl_tensor *t = &st->tensors[i];

		if (!t->may_differ) {
			if (b.n > 0 && (b.buf->kind != t->data.kind || b.buf->use != t->data.use)) {
				r = hash_batch(st, &b);
				b = (struct batch){.first = b.first + b.n};
			}
			if (b.n == 0)
				b.buf = &t->data;
			st->work[b.first + b.n++] = (struct hsh_tensor_work){
				.data = t->data.at, .bytes = t->bytes, .leaves = leaves};
			b.bytes += t->bytes;
		}
		leaves += wire_leaf_count(t->bytes);
	}
	return r == pcclSuccess ? hash_batch(st, &b) : r;
}

static void get_registered(struct pccl_state *st, const struct pccl_session *s)
{
	for (size_t i = 0; i < st->n; i++) {
		struct pccl_tensor *t = &st->tensors[i];

		if (t->bytes > 0)
			t->reg = pccl_registered_get(
				s, t->data.at, t->bytes, &t->region, &t->region_off);
	}
}

void pccl_state_put(struct pccl_state *st)
{
	for (size_t i = 0; st && i < st->n; i++) {
		pccl_registered_put(st->tensors[i].reg);
		st->tensors[i].reg = NULL;
	}
}

static struct shm_state_entry entry_of(const struct pccl_tensor *t)
{
	return (struct shm_state_entry){.count = t->count,
		.bytes = t->bytes,
		.region = t->reg ? t->region : 0,
		.region_off = t->reg ? t->region_off : 0,
		.name_len = t->name_len,
		.dtype = t->dtype,
		.flags = t->may_differ ? SHM_STATE_MAY_DIFFER : 0};
}

/* Writes the tables of the manifest. Also writes the inputs of the two digests, keys and hashes,
 * into `scratch`, and returns the number of bytes of each input. */
static void write_tables(const struct pccl_state *st, const struct shm_state_header *h,
	uint8_t *base, uint8_t *scratch, size_t *ret_keys, size_t *ret_hashes)
{
	struct shm_state_entry *table = (struct shm_state_entry *)(void *)(base + h->tensors_off);
	uint64_t name_off = 0, first_leaf = 0;
	uint8_t *keys = scratch, *hashes = scratch + KEY_FIXED * st->n + st->names_len;
	size_t n = 0;

	for (size_t i = 0; i < st->n; i++) {
		const struct pccl_tensor *t = &st->tensors[i];
		struct shm_state_entry e = entry_of(t);

		e.name_off = name_off;
		e.first_leaf = first_leaf;
		if (!t->may_differ) {
			e.hash = st->work[n].hash;
			wire_put64(hashes + 8 * n, e.hash);
			n++;
		}
		keys += shm_state_key_put(keys, &e, t->name);
		memcpy(base + h->names_off + name_off, t->name, t->name_len);
		table[i] = e;
		name_off += t->name_len;
		first_leaf += wire_leaf_count(t->bytes);
	}
	*ret_keys = (size_t)(keys - scratch);
	*ret_hashes = 8 * n;
}

pcclResult_t pccl_state_manifest(
	struct pccl_state *st, struct pccl_attachment *a, struct shm_sqe_sync *ret)
{
	size_t n_keys, n_hashes, cap = (KEY_FIXED + 8) * st->n + st->names_len;
	struct shm_state_header h;
	uint64_t size;
	uint8_t *scratch;
	pcclResult_t r;

	if (shm_state_plan(st->n, st->names_len, st->n_leaves, &h, &size) < 0)
		return pccl_fail(pcclInternalError, "the shared state cannot be described");
	r = pick_hash(a->session, &st->leaf, &ret->hash_type);
	if (r == pcclSuccess)
		r = get_region(a, size);
	if (r != pcclSuccess)
		return r;
	scratch = malloc(cap + 1);
	if (!scratch)
		return pccl_fail_memory("no memory for the digests of %zu tensors", st->n);
	memset(a->state.base, 0, SHM_STATE_TABLES);
	memcpy(a->state.base, &h, sizeof h);
	for (size_t i = 0; i < st->n; i++)
		pccl_buf_pin(&st->tensors[i].data, &a->state);
	r = hash_tensors(st, &h, a->state.base);
	if (r != pcclSuccess) {
		free(scratch);
		return r;
	}
	get_registered(st, a->session);
	write_tables(st, &h, a->state.base, scratch, &n_keys, &n_hashes);
	hsh_digest(scratch, n_keys, ret->keys);
	hsh_digest(scratch + KEY_FIXED * st->n + st->names_len, n_hashes, ret->content);
	free(scratch);
	st->window_off = h.window_off;
	ret->region = a->state.region;
	ret->bytes = st->bytes;
	ret->n_tensors = (uint32_t)st->n;
	memcpy(st->content, ret->content, sizeof st->content);
	ret->torn = st->torn || pccl_torn_known(st->content);
	return pcclSuccess;
}

bool pccl_state_digest(struct pccl_state *st, struct pccl_attachment *a, uint64_t ret[2])
{
	struct shm_state_header h;
	uint8_t *hashes = malloc(8 * st->n + 1);
	uint64_t size;
	size_t n = 0;

	/* Compute the header again: the agent may have changed the header in the manifest. */
	if (!hashes || shm_state_plan(st->n, st->names_len, st->n_leaves, &h, &size) < 0) {
		free(hashes);
		return false;
	}
	if (hash_tensors(st, &h, a->state.base) != pcclSuccess) {
		free(hashes);
		return false;
	}
	for (size_t i = 0; i < st->n; i++) {
		if (st->tensors[i].may_differ)
			continue;
		wire_put64(hashes + 8 * n, st->work[n].hash);
		n++;
	}
	hsh_digest(hashes, 8 * n, ret);
	free(hashes);
	return true;
}
