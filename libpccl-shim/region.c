/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/region.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_shm.h"
#include "common/cc_sys.h"
#include "libpccl-shim/lib.h"
#include "libpccl-shim/keeper.h"

#define SIZE_LIMIT ((size_t)1 << 48) /* what the agent takes in a request */

struct pccl_registered {
	struct pccl_session *session; /* that knows it as map.region, a reference; may have ended */
	struct pccl_map map;
	struct pccl_fork_fd fd;
	uint32_t users; /* operations that name it; under the lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below; held for moments only */
static struct pccl_registered **table;                   /* sorted by address */
static size_t n_table, cap_table;
/* Held, before the other, while regions are presented, and while one is freed. */
static pthread_mutex_t adopting = PTHREAD_MUTEX_INITIALIZER;

void pccl_region_after_fork(void)
{
	/* Another thread of the parent may have held it, in the middle of a change. */
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&adopting, NULL);
	table = NULL;
	n_table = 0;
	cap_table = 0;
}

static pcclResult_t map_fd(int fd, size_t size, struct pccl_map *m)
{
	char limit[CC_LIMIT_TEXT];
	void *base;
	int err = cc_shm_map(fd, size, &base);

	if (err == CC_ERR_NOMEM)
		return pccl_fail(pcclOutOfMemory, "no address space for %zu bytes: %s", size,
			cc_limit_call_text("mmap", errno, size, limit, sizeof limit));
	if (err < 0)
		return pccl_fail(pcclInternalError,
			"the agent handed out memory that cannot be mapped: %s", cc_err_str(err));
	m->base = base;
	m->size = size;
	return pcclSuccess;
}

pcclResult_t pccl_map_alloc(struct pccl_session *s, uint64_t size, enum wl_region_use use,
	struct pccl_map *ret, int *ret_fd)
{
	struct wl_request request = {.type = WL_REGION_ALLOC, .size = size, .use = use};
	struct wl_request give_back = {.type = WL_REGION_FREE};
	struct pccl_map m = {0};
	struct wl_reply reply;
	pcclResult_t r;
	int fd;

	r = pccl_session_call(s, &request, &reply, &fd, 1);
	if (r != pcclSuccess)
		return r;
	m.region = reply.region;
	r = map_fd(fd, size, &m);
	if (r != pcclSuccess || !ret_fd)
		close(fd);
	if (r != pcclSuccess) {
		char text[PCCL_TEXT_MAX];

		/* The sentence about the mapping is the one to keep. */
		pccl_keep_text(text);
		give_back.region = m.region;
		(void)pccl_session_post(s, &give_back);
		return pccl_fail(r, "%s", text);
	}
	if (use != WL_REGION_REGISTERED)
		madvise(m.base, m.size, MADV_DONTFORK);
	if (ret_fd)
		*ret_fd = fd;
	*ret = m;
	return pcclSuccess;
}

pcclResult_t pccl_map_fd(int fd, uint64_t region, uint64_t size, struct pccl_map *ret)
{
	struct pccl_map m = {.region = region};
	pcclResult_t r;

	if (size > SIZE_MAX / 2)
		return pccl_fail(pcclInternalError, "the agent names an impossible size");
	r = map_fd(fd, (size_t)size, &m);
	if (r != pcclSuccess)
		return r;
	madvise(m.base, m.size, MADV_DONTFORK);
	*ret = m;
	return pcclSuccess;
}

pcclResult_t pccl_map_named(
	struct pccl_session *s, uint32_t comm, uint64_t region, struct pccl_map *ret)
{
	struct wl_request request = {.type = WL_REGION_MAP, .comm = comm, .region = region};
	struct wl_reply reply;
	pcclResult_t r;
	int fd;

	r = pccl_session_call(s, &request, &reply, &fd, 1);
	if (r != pcclSuccess)
		return r;
	r = pccl_map_fd(fd, region, reply.size, ret);
	close(fd);
	return r;
}

void pccl_map_drop(struct pccl_map *m)
{
	cc_shm_unmap(m->base, m->size);
	memset(m, 0, sizeof *m);
}

void pccl_map_free(struct pccl_session *s, struct pccl_map *m)
{
	struct wl_request request = {.type = WL_REGION_FREE, .region = m->region};

	(void)pccl_session_post(s, &request);
	pccl_map_drop(m);
}

/* With the lock held: how many regions start at or below p. */
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

/* The region after this address that the session does not know, or NULL. */
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

pcclResult_t pccl_region_adopt(struct pccl_session *s)
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

/* An agent that dies meanwhile is waited for like by every call; one that dies again and again, no
 * longer than one that does not come. */
static pcclResult_t allocate(size_t size, struct pccl_registered *r, int *ret_fd)
{
	uint64_t begin = cc_now_ns();
	pcclResult_t res;
	bool ended;

	do {
		res = pccl_session_get(NULL, &r->session);
		if (res != pcclSuccess)
			return res;
		res = pccl_map_alloc(r->session, size, WL_REGION_REGISTERED, &r->map, ret_fd);
		ended = res == pcclAgentUnavailable && pccl_session_may_return(r->session);
		if (res != pcclSuccess)
			pccl_session_unref(r->session);
	} while (ended && cc_now_ns() - begin < pccl_grace_ms() * (uint64_t)1000000);
	return res;
}

pcclResult_t pcclMemAlloc(size_t size, void **ptr_out)
{
	pcclResult_t res = pccl_check_ready();
	struct pccl_registered *r;
	int fd = -1;

	if (res != pcclSuccess)
		return res;
	if (!ptr_out)
		return pccl_fail(pcclInvalidArgument, "ptr_out must not be NULL");
	if (size == 0 || size > SIZE_LIMIT)
		return pccl_fail(pcclInvalidArgument,
			"size must be at least 1 and at most %zu, not %zu", SIZE_LIMIT, size);
	r = calloc(1, sizeof *r);
	if (!r)
		return pccl_fail_memory("no memory for a region's record");
	res = allocate(size, r, &fd);
	if (res != pcclSuccess)
		goto err_free;
	pccl_fork_add(&r->fd, fd);
	if (!insert(r)) {
		res = pccl_fail_memory("no memory for the table of regions");
		goto err_map;
	}
	*ptr_out = r->map.base;
	return pccl_ok();

err_map:
	pccl_fork_close(&r->fd);
	pccl_map_free(r->session, &r->map);
	pccl_session_unref(r->session);
err_free:
	free(r);
	return res;
}

pcclResult_t pcclMemFree(void *ptr)
{
	pcclResult_t res = pccl_check_ready();
	struct pccl_registered *r = NULL;
	size_t i;

	if (res != pcclSuccess)
		return res;
	if (!ptr)
		return pccl_ok();
	pthread_mutex_lock(&adopting);
	pthread_mutex_lock(&lock);
	i = upper_bound(ptr);
	if (i == 0 || table[i - 1]->map.base != ptr) {
		res = pccl_fail(pcclInvalidArgument,
			"%p is not the start of memory from pcclMemAlloc", ptr);
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
	pccl_map_free(r->session, &r->map);
	pccl_session_unref(r->session);
	free(r);
	return pccl_ok();
}
