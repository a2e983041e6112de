/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/registered.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libpccl-shim/fork.h"
#include "libpccl-shim/region.h"
#include "libpccl-shim/session.h"

struct pccl_registered {
	/* A reference to the session in which the region has the number map.region. The session may
	 * have ended. */
	struct pccl_session *session;
	struct pccl_map map;
	struct pccl_fork_fd fd;
	uint32_t users; /* operations that use the region; guarded by the lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct pccl_registered **table;                   /* sorted by address */
static size_t n_table, cap_table;
/* Held while regions are presented to a session and while a region is freed. Taken before
 * `lock`. */
static pthread_mutex_t adopting = PTHREAD_MUTEX_INITIALIZER;

void pccl_registered_after_fork(void)
{
	/* Another thread of the parent may have held the lock, in the middle of a change. */
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&adopting, NULL);
	table = NULL;
	n_table = 0;
	cap_table = 0;
}

/* With the lock held: returns how many regions start at or below `p`. */
static size_t upper_bound(const uint8_t *p)
{
	size_t low = 0, high = n_table;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if ((uintptr_t)table[mid]->map.base <= (uintptr_t)p)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct pccl_registered *pccl_registered_get(const struct pccl_session *s, const void *p, size_t len,
	uint64_t *ret_region, uint64_t *ret_off)
{
	struct pccl_registered *r = NULL;
	uintptr_t off;
	size_t i;

	pthread_mutex_lock(&lock);
	i = upper_bound(p);
	if (i > 0) {
		r = table[i - 1];
		off = (uintptr_t)p - (uintptr_t)r->map.base;
		if (r->session != s || off >= r->map.size || len > r->map.size - off) {
			r = NULL;
		} else {
			r->users++;
			*ret_region = r->map.region;
			*ret_off = off;
		}
	}
	pthread_mutex_unlock(&lock);
	return r;
}

void pccl_registered_put(struct pccl_registered *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&lock);
	r->users--;
	pthread_mutex_unlock(&lock);
}

/* Returns the first region above this address that the session does not have, or NULL. */
static struct pccl_registered *next_unknown(const struct pccl_session *s, const uint8_t *after)
{
	struct pccl_registered *r = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = upper_bound(after); i < n_table && !r; i++)
		if (table[i]->session != s)
			r = table[i];
	pthread_mutex_unlock(&lock);
	return r;
}

pcclResult_t pccl_registered_adopt(struct pccl_session *s)
{
	const uint8_t *after = NULL;
	pcclResult_t res = pcclSuccess;
	struct pccl_registered *r;

	pthread_mutex_lock(&adopting);
	while ((r = next_unknown(s, after)) != NULL) {
		struct wl_request request = {.type = WL_REGION_ADOPT};
		struct pccl_session *old = NULL;
		struct wl_reply reply;
		struct stat st;

		after = r->map.base;
		if (!pccl_fork_holds(&r->fd) || fstat(r->fd.fd, &st) < 0)
			continue;
		request.size = (uint64_t)st.st_size;
		res = pccl_session_adopt(s, &request, r->fd.fd, &reply);
		if (res != pcclSuccess && reply.req_id == 0)
			break;
		if (res != pcclSuccess)
			continue;
		pthread_mutex_lock(&lock);
		old = r->session;
		r->session = pccl_session_ref(s);
		r->map.region = reply.region;
		pthread_mutex_unlock(&lock);
		pccl_session_unref(old);
	}
	pthread_mutex_unlock(&adopting);
	return res == pcclInterrupted ? res : pcclSuccess;
}

static bool insert(struct pccl_registered *r)
{
	bool done = false;
	size_t i;

	pthread_mutex_lock(&lock);
	if (n_table == cap_table) {
		size_t cap = cap_table ? cap_table * 2 : 16;
		struct pccl_registered **t = realloc(table, cap * sizeof(struct pccl_registered *));

		if (!t)
			goto out;
		table = t;
		cap_table = cap;
	}
	i = upper_bound(r->map.base);
	memmove(&table[i + 1], &table[i], (n_table - i) * sizeof(struct pccl_registered *));
	table[i] = r;
	n_table++;
	done = true;
out:
	pthread_mutex_unlock(&lock);
	return done;
}

pcclResult_t pccl_registered_add(struct pccl_session *s, size_t size, void **ret)
{
	struct pccl_registered *r = calloc(1, sizeof *r);
	pcclResult_t res;
	int fd;

	if (!r)
		return pccl_fail_memory("no memory for a region's record");
	res = pccl_region_alloc(s, size, WL_REGION_REGISTERED, &r->map, &fd);
	if (res != pcclSuccess)
		goto err_free;
	r->session = pccl_session_ref(s);
	pccl_fork_add(&r->fd, fd);
	if (!insert(r)) {
		res = pccl_fail_memory("no memory for the table of regions");
		goto err_map;
	}
	*ret = r->map.base;
	return pcclSuccess;

err_map:
	pccl_fork_close(&r->fd);
	pccl_region_free(r->session, &r->map);
	pccl_session_unref(r->session);
err_free:
	free(r);
	return res;
}

pcclResult_t pccl_registered_remove(const void *p)
{
	struct pccl_registered *r = NULL;
	pcclResult_t res = pcclSuccess;
	size_t i;

	pthread_mutex_lock(&adopting);
	pthread_mutex_lock(&lock);
	i = upper_bound(p);
	if (i == 0 || table[i - 1]->map.base != p) {
		res = pccl_fail(
			pcclInvalidArgument, "%p is not the start of memory from pcclMemAlloc", p);
	} else if (table[i - 1]->users > 0) {
		res = pccl_fail(
			pcclInvalidUsage, "operations in flight use the memory: await them first");
	} else {
		r = table[i - 1];
		memmove(&table[i - 1], &table[i], (n_table - i) * sizeof(struct pccl_registered *));
		n_table--;
	}
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&adopting);
	if (!r)
		return res;
	pccl_fork_close(&r->fd);
	pccl_region_free(r->session, &r->map);
	pccl_session_unref(r->session);
	free(r);
	return pcclSuccess;
}
