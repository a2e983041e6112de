/* SPDX-License-Identifier: MIT
 *
 * The memory that a communicator keeps between operations: staging regions for operands, and
 * mappings of the agent's result regions.
 */
#include <string.h>

#include "common/cc_sys.h"
#include "libpccl-shim/comm.h"
#include "libpccl-shim/session.h"

#define STAGING_MIN ((uint64_t)64 * 1024)
/* A mapping holds the memory. Longer than the agent keeps an idle region, so that one which the
 * agent takes to be mapped here is. */
#define RESULT_IDLE_NS ((uint64_t)10000000000)

/* Four sizes per power of two: at most a quarter is wasted, and similar operations share. */
static uint64_t size_class(uint64_t size)
{
	uint64_t step = STAGING_MIN;

	while (step * 8 <= size)
		step *= 2;
	return (size + step - 1) / step * step;
}

/* With the lock held. The smallest one that is free and large enough. */
static struct pccl_staging *find_fitting(pcclComm_t *c, uint64_t size)
{
	struct pccl_staging *best = NULL;

	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		struct pccl_staging *s = &c->staging[i];

		if (!s->busy && s->map.size >= size && (!best || s->map.size < best->map.size))
			best = s;
	}
	return best;
}

/* With the lock held. The place of least use: empty, or else the smallest free one. There is one:
 * each operation has at most one region, and this one's has none yet. */
static struct pccl_staging *find_place(pcclComm_t *c)
{
	struct pccl_staging *best = NULL;

	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		struct pccl_staging *s = &c->staging[i];

		if (!s->busy && (!best || s->map.size < best->map.size))
			best = s;
	}
	return best;
}

/* Gives what is not in use back to the agent. */
static void trim(pcclComm_t *c)
{
	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		struct pccl_map m = {0};

		pthread_mutex_lock(&c->lock);
		if (!c->staging[i].busy) {
			m = c->staging[i].map;
			memset(&c->staging[i].map, 0, sizeof c->staging[i].map);
		}
		pthread_mutex_unlock(&c->lock);
		if (m.base)
			pccl_map_free(c->session, &m);
	}
}

pcclResult_t pccl_staging_get(pcclComm_t *c, uint64_t size, struct pccl_staging **ret)
{
	struct pccl_map old = {0}, m = {0};
	struct pccl_staging *s;
	pcclResult_t r;

	pthread_mutex_lock(&c->lock);
	s = find_fitting(c, size);
	if (s) {
		s->busy = true;
	} else {
		s = find_place(c);
		s->busy = true;
		old = s->map;
		memset(&s->map, 0, sizeof s->map);
	}
	pthread_mutex_unlock(&c->lock);
	*ret = s;
	if (s->map.base)
		return pcclSuccess;

	if (old.base)
		pccl_map_free(c->session, &old);
	r = pccl_map_alloc(c->session, size_class(size), WL_REGION_STAGING, &m);
	if (r == pcclOutOfMemory) {
		trim(c);
		r = pccl_map_alloc(c->session, size_class(size), WL_REGION_STAGING, &m);
	}
	pthread_mutex_lock(&c->lock);
	s->map = m;
	s->busy = r == pcclSuccess;
	pthread_mutex_unlock(&c->lock);
	return r;
}

void pccl_staging_put(pcclComm_t *c, struct pccl_staging *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&c->lock);
	s->busy = false;
	pthread_mutex_unlock(&c->lock);
}

void pccl_staging_free_all(pcclComm_t *c)
{
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		if (c->staging[i].map.base)
			pccl_map_free(c->session, &c->staging[i].map);
}

/* With the lock held: a use of the mapping of this region, if there is one. */
static struct pccl_result *find_result(pcclComm_t *c, uint64_t region)
{
	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		struct pccl_result *r = &c->results[i];

		if (r->map.base && r->map.region == region) {
			r->users++;
			return r;
		}
	}
	return NULL;
}

/* With the lock held. The one without a user that was used longest ago. */
static struct pccl_result *oldest_idle(pcclComm_t *c)
{
	struct pccl_result *oldest = NULL;

	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		struct pccl_result *r = &c->results[i];

		if (r->map.base && r->users == 0 &&
			(!oldest || r->last_use_ns < oldest->last_use_ns))
			oldest = r;
	}
	return oldest;
}

/* With the lock held. */
static struct pccl_result *empty_result(pcclComm_t *c)
{
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		if (!c->results[i].map.base)
			return &c->results[i];
	return NULL;
}

pcclResult_t pccl_result_get(pcclComm_t *c, uint64_t region, struct pccl_result **ret)
{
	struct pccl_map m = {0};
	struct pccl_result *r;
	pcclResult_t res;

	pthread_mutex_lock(&c->lock);
	r = find_result(c, region);
	pthread_mutex_unlock(&c->lock);
	if (r) {
		*ret = r;
		return pcclSuccess;
	}
	res = pccl_map_result(c->session, c->id, region, &m);
	if (res != pcclSuccess)
		return res;
	pthread_mutex_lock(&c->lock);
	r = find_result(c, region); /* another thread may have been faster */
	if (!r) {
		r = empty_result(c);
		if (!r) {
			/* Each user is an operation, of which there are fewer than places. */
			r = oldest_idle(c);
			pccl_map_drop(&r->map);
		}
		r->map = m;
		r->users = 1;
		memset(&m, 0, sizeof m);
	}
	pthread_mutex_unlock(&c->lock);
	pccl_map_drop(&m);
	*ret = r;
	return pcclSuccess;
}

void pccl_result_put(pcclComm_t *c, struct pccl_result *r)
{
	uint64_t now = cc_now_ns();

	if (!r)
		return;
	pthread_mutex_lock(&c->lock);
	r->users--;
	r->last_use_ns = now;
	r = oldest_idle(c);
	/* Another operation in flight may be the user of a mapping that nobody has asked for yet.
	 */
	if (r && c->n_ops == 1 && now - r->last_use_ns > RESULT_IDLE_NS)
		pccl_map_drop(&r->map);
	pthread_mutex_unlock(&c->lock);
}

void pccl_result_free_all(pcclComm_t *c)
{
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		pccl_map_drop(&c->results[i].map);
}
