/* SPDX-License-Identifier: MIT
 *
 * The memory that an attachment keeps between operations: staging regions for operands, and
 * mappings of the agent's result regions.
 */
#include <string.h>

#include "common/cc_sys.h"
#include "libpccl-shim/attach.h"
#include "libpccl-shim/region.h"
#include "libpccl-shim/session.h"

#define STAGING_MIN ((uint64_t)64 * 1024)
/* An idle mapping is kept for this time, and its memory stays allocated for as long. The agent
 * keeps an idle region for a shorter time, so every region that the agent believes to be mapped
 * here is mapped. */
#define RESULT_IDLE_NS ((uint64_t)10000000000)

/* Rounds a size up to one of four sizes per power of two. At most a quarter is wasted, and
 * operations of similar size use the same regions. */
static uint64_t size_class(uint64_t size)
{
	uint64_t step = STAGING_MIN;

	while (step * 8 <= size)
		step *= 2;
	return (size + step - 1) / step * step;
}

/* With the lock held: returns the smallest region that is free and large enough, or NULL. */
static struct pccl_staging *find_fitting(struct pccl_attachment *a, uint64_t size)
{
	struct pccl_staging *best = NULL;

	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		struct pccl_staging *s = &a->staging[i];

		if (!s->busy && s->map.size >= size && (!best || s->map.size < best->map.size))
			best = s;
	}
	return best;
}

/* With the lock held: returns the entry that is needed least: an empty one, or else the smallest
 * free one. There is always a free entry, because each operation has at most one region and this
 * operation has none yet. */
static struct pccl_staging *find_free(struct pccl_attachment *a)
{
	struct pccl_staging *best = NULL;

	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		struct pccl_staging *s = &a->staging[i];

		if (!s->busy && (!best || s->map.size < best->map.size))
			best = s;
	}
	return best;
}

void pccl_staging_trim(struct pccl_attachment *a)
{
	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		struct pccl_map m = {0};

		pthread_mutex_lock(&a->lock);
		if (!a->staging[i].busy) {
			m = a->staging[i].map;
			memset(&a->staging[i].map, 0, sizeof a->staging[i].map);
		}
		pthread_mutex_unlock(&a->lock);
		if (m.base)
			pccl_region_free(a->session, &m);
	}
}

pcclResult_t pccl_staging_get(struct pccl_attachment *a, uint64_t size, struct pccl_staging **ret)
{
	struct pccl_map old = {0}, m = {0};
	struct pccl_staging *s;
	pcclResult_t r;

	pthread_mutex_lock(&a->lock);
	s = find_fitting(a, size);
	if (s) {
		s->busy = true;
	} else {
		s = find_free(a);
		s->busy = true;
		old = s->map;
		memset(&s->map, 0, sizeof s->map);
	}
	pthread_mutex_unlock(&a->lock);
	*ret = s;
	if (s->map.base)
		return pcclSuccess;

	if (old.base)
		pccl_region_free(a->session, &old);
	r = pccl_region_alloc(a->session, size_class(size), WL_REGION_STAGING, &m, NULL);
	if (r == pcclOutOfMemory) {
		pccl_staging_trim(a);
		r = pccl_region_alloc(a->session, size_class(size), WL_REGION_STAGING, &m, NULL);
	}
	pthread_mutex_lock(&a->lock);
	s->map = m;
	s->busy = r == pcclSuccess;
	pthread_mutex_unlock(&a->lock);
	return r;
}

void pccl_staging_put(struct pccl_attachment *a, struct pccl_staging *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&a->lock);
	s->busy = false;
	pthread_mutex_unlock(&a->lock);
}

void pccl_staging_free_all(struct pccl_attachment *a)
{
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		if (a->staging[i].map.base)
			pccl_region_free(a->session, &a->staging[i].map);
}

/* With the lock held: returns the mapping of this region and counts a use, or returns NULL. */
static struct pccl_result *find_result(struct pccl_attachment *a, uint64_t region)
{
	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		struct pccl_result *r = &a->results[i];

		if (r->map.base && r->map.region == region) {
			r->users++;
			return r;
		}
	}
	return NULL;
}

/* With the lock held: returns the mapping without a user that was used longest ago, or NULL. */
static struct pccl_result *oldest_idle(struct pccl_attachment *a)
{
	struct pccl_result *oldest = NULL;

	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		struct pccl_result *r = &a->results[i];

		if (r->map.base && r->users == 0 &&
			(!oldest || r->last_use_ns < oldest->last_use_ns))
			oldest = r;
	}
	return oldest;
}

/* With the lock held: returns an entry without a mapping, or NULL. */
static struct pccl_result *empty_result(struct pccl_attachment *a)
{
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		if (!a->results[i].map.base)
			return &a->results[i];
	return NULL;
}

/* With the lock held: keeps a new mapping and counts a use. */
static struct pccl_result *keep_result(struct pccl_attachment *a, const struct pccl_map *m)
{
	struct pccl_result *r = empty_result(a);

	if (!r) {
		/* At least one mapping is idle: each user is an operation, and there are fewer
		 * operations than entries. */
		r = oldest_idle(a);
		pccl_map_drop(&r->map);
	}
	r->map = *m;
	r->users = 1;
	return r;
}

/* With the lock held: returns a mapping that is kept or was handed over, or NULL. */
static struct pccl_result *find_or_take(struct pccl_attachment *a, uint64_t region)
{
	struct pccl_result *r = find_result(a, region);
	struct pccl_map m;

	if (!r && pccl_session_take_result(a->session, a->id, region, &m))
		r = keep_result(a, &m);
	return r;
}

struct pccl_result *pccl_result_find(struct pccl_attachment *a, uint64_t region)
{
	struct pccl_result *r;

	pthread_mutex_lock(&a->lock);
	r = find_or_take(a, region);
	pthread_mutex_unlock(&a->lock);
	return r;
}

pcclResult_t pccl_result_get(struct pccl_attachment *a, uint64_t region, struct pccl_result **ret)
{
	struct pccl_result *r = pccl_result_find(a, region);
	struct pccl_map m = {0};
	pcclResult_t res;

	if (!r) {
		pccl_session_check(a->session); /* reads the packets in the socket */
		r = pccl_result_find(a, region);
	}
	*ret = r;
	if (r)
		return pcclSuccess;
	res = pccl_region_named(a->session, a->id, region, &m);
	pthread_mutex_lock(&a->lock);
	/* In the meantime another thread may have mapped the region, or may have read the packet
	 * that brought it; this may have been the last packet of an agent that died. */
	r = find_or_take(a, region);
	if (!r && res == pcclSuccess) {
		r = keep_result(a, &m);
		memset(&m, 0, sizeof m);
	}
	pthread_mutex_unlock(&a->lock);
	pccl_map_drop(&m);
	*ret = r;
	return r ? pcclSuccess : res;
}

void pccl_result_put(struct pccl_attachment *a, struct pccl_result *r)
{
	uint64_t now = cc_now_ns();

	if (!r)
		return;
	pthread_mutex_lock(&a->lock);
	r->users--;
	r->last_use_ns = now;
	r = oldest_idle(a);
	/* An idle mapping may belong to another operation in flight that has not asked for it yet.
	 * There is no such operation if only the communicator and this operation have references to
	 * the attachment. */
	if (r && atomic_load(&a->refs) <= 2 && now - r->last_use_ns > RESULT_IDLE_NS)
		pccl_map_drop(&r->map);
	pthread_mutex_unlock(&a->lock);
}

void pccl_result_free_all(struct pccl_attachment *a)
{
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		pccl_map_drop(&a->results[i].map);
}
