/* SPDX-License-Identifier: MIT
 *
 * Peers' candidates for synchronizations. The manifest is copied and checked before the core gets
 * the submission. Both digests are computed from this copy, so the candidate always agrees with the
 * manifest. A large manifest is checked in a thread, with at most one thread for each user.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kernels/hsh_run.h"
#include "pcclagentd/local/loc_internal.h"
#include "pcclagentd/state/state.h"

/* Bytes of table and names that are checked without a thread. This takes well below a millisecond.
 */
#define AT_ONCE     ((uint64_t)256 << 10)
#define THREADS_MAX 4u
#define WINDOW      ((uint64_t)SHM_STATE_SLOTS * SHM_STATE_SLOT)
/* The memory of manifest and job for each tensor and each leaf. */
#define TENSOR_BYTES ((uint64_t)sizeof(struct shm_state_tensor) + 32)
#define LEAF_BYTES   ((uint64_t)20)

/* A region of the process at the time of the submission. The loop may change the real regions
 * meanwhile. */
struct known {
	uint64_t id, size;
	bool used;
};

struct check {
	struct loc *loc;
	struct loc_comm *comm; /* referenced */
	struct shm_submission sub;
	struct loc_manifest *m;
	uint32_t n_known;
	struct known *known; /* sorted by id */
	uint8_t *keys;       /* the input of the keys digest */
	uint64_t keys_len, keys_max;
	uint64_t charged; /* bytes charged for the memory during the check */
	uint32_t code;
	char why[WL_TEXT_MAX];
	pthread_t thread;
	bool runs, threaded;
	_Atomic bool done;
	struct check *prev, *next;
};

struct checks {
	int event_fd;
	struct cc_watch *watch;
	struct check *list; /* in the order of their arrival */
	uint32_t n_threads;
	_Atomic bool stop;
};

/* ---- manifests ---- */

void loc_manifest_leave(struct loc_manifest *m)
{
	if (--m->users > 0)
		return;
	for (uint32_t i = 0; i < m->n_regions; i++)
		loc_region_unref(m->loc, m->regions[i]);
	free(m->regions);
	m->regions = NULL;
	m->n_regions = 0;
	loc_region_unref(m->loc, m->region);
	m->region = NULL;
}

void loc_manifest_unref(struct loc_manifest *m)
{
	if (--m->refs > 0)
		return;
	shm_state_clear(&m->state);
	loc_account_discharge(m->loc, m->uid, m->charged);
	free(m);
}

hsh_leaf_fn *loc_manifest_leaf_fn(struct loc *loc, uint32_t hash_type, char *text)
{
	char why[WL_TEXT_MAX / 2] = "";

	if (hash_type == HSH_SIMPLE)
		return hsh_leaf;
	if (hash_type != HSH_CRC32C) {
		snprintf(text, WL_TEXT_MAX, "hash_type: this agent does not know type %" PRIu32,
			hash_type);
		return NULL;
	}
	if (!loc->crc32c && !hsh_crc32c_load(&loc->crc32c, why, sizeof why))
		snprintf(text, WL_TEXT_MAX, "hash_type: CRC32C is not available to the agent: %s",
			why);
	return loc->crc32c;
}

/* ---- the check, in the loop thread or in a thread of its own ---- */

__attribute__((format(printf, 2, 3))) static void refuse(struct check *k, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(k->why, sizeof k->why, fmt, ap);
	va_end(ap);
	k->code = WIRE_INVALID_ARGUMENT;
}

static int by_id(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static uint64_t region_size(void *arg, uint64_t region)
{
	struct check *k = arg;
	struct known key = {.id = region}, *found;

	if (k->n_known == 0)
		return 0;
	found = bsearch(&key, k->known, k->n_known, sizeof key, by_id);
	if (!found)
		return 0;
	found->used = true;
	return found->size;
}

static int take_key(void *arg, const struct shm_state_entry *e, const char *name, char *why)
{
	struct check *k = arg;
	uint8_t buf[SHM_STATE_KEY_MAX];
	size_t len = shm_state_key_put(buf, e, name);

	if (atomic_load_explicit(&k->loc->checks->stop, memory_order_relaxed)) {
		snprintf(why, SHM_TEXT, "the agent ends");
		return CC_ERR_INVAL;
	}
	if (len > k->keys_max - k->keys_len) {
		snprintf(why, SHM_TEXT, "names_len: the names overlap, or lie in the window");
		return CC_ERR_INVAL;
	}
	memcpy(k->keys + k->keys_len, buf, len);
	k->keys_len += len;
	return 0;
}

static bool is_digest(const void *data, size_t len, const struct wm_digest *want)
{
	uint64_t v[2];

	hsh_digest(data, len, v);
	return v[0] == want->hi && v[1] == want->lo;
}

static void check_digests(struct check *k)
{
	const struct shm_state *s = &k->m->state;
	uint64_t *hashes = malloc(((size_t)s->n_tensors + 1) * sizeof *hashes);
	size_t n = 0;

	if (!hashes)
		rep_out_of_memory("manifests");
	for (uint32_t t = 0; t < s->n_tensors; t++)
		if (!s->tensors[t].may_differ)
			hashes[n++] = s->tensors[t].hash;
	if (!is_digest(k->keys, k->keys_len, &k->sub.sync.keys))
		refuse(k, "keys: the digest is not that of the names, types, counts and flags in "
			  "the manifest");
	else if (!is_digest(hashes, n * sizeof *hashes, &k->sub.sync.content))
		refuse(k, "content: the digest is not that of the tensors' hashes in the manifest");
	free(hashes);
}

void loc_manifest_at_work(const struct loc_manifest *m, bool at_work)
{
	struct shm_state_end *end = (void *)(m->region->map + SHM_STATE_END_OFF);

	atomic_store(&end->at_work, at_work);
}

static void check(struct check *k)
{
	struct shm_state_limits lim = {.size = k->m->region->size,
		.vote = &k->sub.sync,
		.region_size = region_size,
		.tensor = take_key,
		.arg = k};
	int err;

	loc_manifest_at_work(k->m, true);
	err = shm_state_get(k->m->region->map, &lim, &k->m->state, k->why);
	if (err == 0)
		check_digests(k);
	else
		k->code = err == CC_ERR_NOMEM ? WIRE_OUT_OF_MEMORY : WIRE_INVALID_ARGUMENT;
	loc_manifest_at_work(k->m, false);
}

static void *thread_main(void *arg)
{
	struct check *k = arg;
	struct checks *c = k->loc->checks;
	uint64_t one = 1;

	check(k);
	atomic_store(&k->done, true);
	/* Fails only if the counter is full; then the reader wakes up as well. */
	if (write(c->event_fd, &one, sizeof one) < 0)
		return NULL;
	return NULL;
}

/* ---- before and after the check ---- */

/* Lists the regions of the process in which tensors may lie. */
static void list_regions(struct check *k)
{
	const struct session *s = loc_session_find(k->loc, k->comm->session);
	struct loc_region *r;
	uint32_t n = 0;

	if (!s) /* the session's end is among the events that wait */
		return;
	DL_FOREACH (s->regions, r) {
		n += r->use == WL_REGION_REGISTERED;
	}
	k->known = calloc((size_t)n + 1, sizeof *k->known);
	if (!k->known)
		rep_out_of_memory("manifests");
	DL_FOREACH (s->regions, r) {
		if (r->use == WL_REGION_REGISTERED)
			k->known[k->n_known++] = (struct known){.id = r->id, .size = r->size};
	}
	qsort(k->known, n, sizeof *k->known, by_id);
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Charges and allocates the memory for the check. False: the user's limit or the system's memory
 * does not suffice. */
static bool get_memory(struct check *k)
{
	const struct wm_sync_vote *v = &k->sub.sync;
	uint64_t size = k->m->region->size, names = size > WINDOW ? size - WINDOW : size;
	uint64_t charge;

	names = at_most(names, v->n_tensors * WIRE_TENSOR_NAME_MAX);
	charge = v->n_tensors * (TENSOR_BYTES + 20) + names;
	k->keys_max = v->n_tensors * 20 + names;
	k->code = loc_account_charge(k->loc, k->m->uid, charge, k->why);
	if (k->code != WIRE_SUCCESS)
		return false;
	k->charged = charge;
	k->keys = malloc(k->keys_max + 1);
	if (k->keys)
		return true;
	k->code = WIRE_OUT_OF_MEMORY;
	snprintf(k->why, sizeof k->why, "the agent has no memory for the manifest's names");
	return false;
}

/* Charges the user for the memory that is kept after the check. */
static bool charge_for_good(struct check *k)
{
	struct loc_manifest *m = k->m;
	uint64_t bytes = m->state.n_tensors * TENSOR_BYTES + m->state.n_leaves * LEAF_BYTES;

	k->code = loc_account_charge(k->loc, m->uid, bytes, k->why);
	if (k->code != WIRE_SUCCESS)
		return false;
	m->charged = bytes;
	return true;
}

/* Takes references to the regions in which tensors lie. False: a region was freed meanwhile. */
static bool pin_regions(struct check *k)
{
	struct loc_manifest *m = k->m;

	m->regions = calloc((size_t)k->n_known + 1, sizeof(struct loc_region *));
	if (!m->regions)
		rep_out_of_memory("manifests");
	for (uint32_t i = 0; i < k->n_known; i++) {
		struct loc_region *r =
			k->known[i].used ? loc_region_find(k->loc, k->known[i].id) : NULL;

		if (!k->known[i].used)
			continue;
		if (!r || r->session != k->comm->session) {
			refuse(k, "region: the memory %" PRIu64 " was freed during the call",
				k->known[i].id);
			return false;
		}
		m->regions[m->n_regions++] = loc_region_ref(r);
	}
	return true;
}

static void finish(struct check *k)
{
	struct loc_comm *c = k->comm;
	struct loc *loc = k->loc;
	struct loc_manifest *m = k->m;

	if (k->charged > 0)
		loc_account_discharge(loc, m->uid, k->charged);
	if (k->code == WIRE_SUCCESS && !c->closed && charge_for_good(k))
		(void)pin_regions(k);
	if (k->code != WIRE_SUCCESS) {
		loc_manifest_leave(m);
		loc_manifest_unref(m);
		m = NULL;
	}
	loc_comm_checked(loc, c, &k->sub, m, k->code, k->why);
	loc_comm_unref(c);
	free(k->known);
	free(k->keys);
	free(k);
}

/* ---- threads ---- */

static bool may_run(const struct checks *c, const struct check *k)
{
	const struct check *other;

	if (k->runs || c->n_threads >= THREADS_MAX)
		return false;
	DL_FOREACH (c->list, other) {
		if (other->runs && other->m->uid == k->m->uid)
			return false;
	}
	return true;
}

static void run_next(struct checks *c)
{
	struct check *k;

	DL_FOREACH (c->list, k) {
		if (!may_run(c, k))
			continue;
		k->runs = true;
		c->n_threads++;
		k->threaded = pthread_create(&k->thread, NULL, thread_main, k) == 0;
		if (k->threaded)
			pthread_setname_np(k->thread, "pccl-manifest");
		else /* without a thread, the loop thread does the check */
			(void)thread_main(k);
	}
}

static void join(struct check *k)
{
	if (k->threaded)
		pthread_join(k->thread, NULL);
}

static void on_done(void *arg)
{
	struct loc *loc = arg;
	struct checks *c = loc->checks;
	struct check *k, *next;
	uint64_t count;

	if (read(c->event_fd, &count, sizeof count) < 0)
		return;
	DL_FOREACH_SAFE (c->list, k, next) {
		if (!atomic_load(&k->done))
			continue;
		join(k);
		c->n_threads--;
		DL_DELETE(c->list, k);
		finish(k);
		next = c->list; /* finish may have changed the list */
	}
	run_next(c);
}

void loc_manifest_check(struct loc *loc, struct loc_comm *c, const struct shm_submission *sub,
	struct loc_region *region)
{
	struct check *k = calloc(1, sizeof *k);
	struct loc_manifest *m = calloc(1, sizeof *m);

	if (!k || !m)
		rep_out_of_memory("manifests");
	*m = (struct loc_manifest){
		.loc = loc, .refs = 1, .users = 1, .region = loc_region_ref(region), .uid = c->uid};
	*k = (struct check){.loc = loc, .comm = c, .sub = *sub, .m = m};
	c->refs++;
	if (!loc_manifest_leaf_fn(loc, sub->sync.hash_type, k->why))
		k->code = WIRE_INVALID_ARGUMENT;
	if (k->code != WIRE_SUCCESS || !get_memory(k)) {
		finish(k);
		return;
	}
	list_regions(k);
	if (k->charged <= AT_ONCE) {
		check(k);
		finish(k);
		return;
	}
	c->checking = true;
	DL_APPEND(loc->checks->list, k);
	run_next(loc->checks);
}

int loc_checks_open(struct loc *loc)
{
	struct checks *c = calloc(1, sizeof *c);

	if (!c)
		return CC_ERR_NOMEM;
	loc->checks = c;
	c->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->event_fd < 0)
		return CC_ERR_IO;
	c->watch = cc_watch_new(loc->base->loop, c->event_fd, false, on_done, loc);
	return c->watch ? 0 : CC_ERR_NOMEM;
}

void loc_checks_free(struct loc *loc)
{
	struct checks *c = loc->checks;
	struct check *k, *next;

	if (!c)
		return;
	atomic_store(&c->stop, true);
	DL_FOREACH_SAFE (c->list, k, next) {
		if (k->runs)
			join(k);
		DL_DELETE(c->list, k);
		k->code = WIRE_AGENT_UNAVAILABLE;
		k->comm->closed = true; /* so the result is dropped */
		finish(k);
	}
	cc_watch_free(c->watch);
	if (c->event_fd >= 0)
		close(c->event_fd);
	free(c);
	loc->checks = NULL;
}

/* ---- for other parts of the agent ---- */

uint32_t loc_manifest_uid(const struct loc_manifest *m)
{
	return m->uid;
}

const struct shm_state *loc_manifest_state(const struct loc_manifest *m)
{
	return &m->state;
}

const uint8_t *loc_manifest_map(const struct loc_manifest *m)
{
	return m->region->map;
}

struct loc_region *loc_manifest_region(const struct loc_manifest *m, uint64_t id)
{
	if (m->region->id == id)
		return m->region;
	for (uint32_t i = 0; i < m->n_regions; i++)
		if (m->regions[i]->id == id)
			return m->regions[i];
	return NULL;
}

/* Returns the regions in which the member's tensors lie. */
static struct ste_region *fill_regions(const struct loc_manifest *m)
{
	struct ste_region *v = calloc((size_t)m->n_regions + 1, sizeof *v);

	if (!v)
		rep_out_of_memory("synchronizations");
	for (uint32_t i = 0; i < m->n_regions; i++) {
		struct loc_region *r = m->regions[i];

		if (!r->mapped)
			r->mapped = calloc((size_t)(r->size / STE_MAPPED) + 1, sizeof *r->mapped);
		if (!r->mapped)
			rep_out_of_memory("synchronizations");
		v[i] = (struct ste_region){.id = r->id,
			.map = r->map,
			.size = r->size,
			.fd = r->fd,
			.mapped = r->mapped};
	}
	return v;
}

void loc_manifest_fill(const struct loc_manifest *m, struct ste_member *ret)
{
	ret->uid = m->uid;
	ret->map = m->region->map;
	ret->region = m->region->fd >= 0 ? m->region->id : 0;
	ret->state = &m->state;
	ret->regions = fill_regions(m);
	ret->n_regions = m->n_regions;
}
