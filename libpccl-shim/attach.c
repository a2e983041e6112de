/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/attach.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_shm.h"
#include "libpccl-shim/region.h"
#include "libpccl-shim/session.h"

#define LEAVE_MS 2000u /* the agent itself does not wait longer for the master */

static pcclResult_t map_queue(int fd, uint8_t **ret)
{
	char limit[CC_LIMIT_TEXT];
	const struct shm_header *h;
	uint32_t version;
	void *map;
	int err = cc_shm_map(fd, SHM_SIZE, &map);

	if (err == CC_ERR_NOMEM)
		return pccl_fail(pcclOutOfMemory, "no address space for a queue pair: %s",
			cc_limit_call_text("mmap", errno, SHM_SIZE, limit, sizeof limit));
	if (err < 0)
		return pccl_fail(pcclInternalError, "the agent's queue pair cannot be mapped: %s",
			cc_err_str(err));
	h = map;
	version = h->version;
	if (h->magic != SHM_MAGIC || version != SHM_VERSION || h->slots != SHM_SLOTS ||
		h->size != SHM_SIZE) {
		cc_shm_unmap(map, SHM_SIZE);
		return pccl_fail(pcclVersionMismatch,
			"this library reads queue pairs of version %u, but the agent's queue pair "
			"has version %u or another layout: install matching releases",
			SHM_VERSION, version);
	}
	*ret = map;
	return pcclSuccess;
}

pcclResult_t pccl_attachment_new(
	struct pccl_session *s, uint32_t id, const int fds[3], struct pccl_attachment **ret)
{
	struct pccl_attachment *a = calloc(1, sizeof *a);
	pcclResult_t r =
		a ? map_queue(fds[0], &a->queue) : pccl_fail_memory("no memory for an attachment");

	close(fds[0]);
	if (!a || r != pcclSuccess) {
		close(fds[1]);
		close(fds[2]);
		free(a);
		return r;
	}
	atomic_init(&a->refs, 1);
	a->session = pccl_session_ref(s);
	a->id = id;
	pthread_mutex_init(&a->lock, NULL);
	pccl_fork_add(&a->submit_bell, fds[1]);
	pccl_fork_add(&a->data_bell, fds[2]);
	*ret = a;
	return pcclSuccess;
}

struct pccl_attachment *pccl_attachment_ref(struct pccl_attachment *a)
{
	atomic_fetch_add(&a->refs, 1);
	return a;
}

void pccl_attachment_unref(struct pccl_attachment *a)
{
	if (!a || atomic_fetch_sub(&a->refs, 1) > 1)
		return;
	pccl_staging_free_all(a);
	if (a->state.base)
		pccl_region_free(a->session, &a->state);
	pccl_result_free_all(a);
	pccl_session_drop_results(a->session, a->id);
	pccl_fork_close(&a->submit_bell);
	pccl_fork_close(&a->data_bell);
	cc_shm_unmap(a->queue, SHM_SIZE);
	pccl_session_unref(a->session);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static void destroy(struct pccl_attachment *a, struct wl_request *request)
{
	uint32_t post;

	request->type = WL_COMM_DESTROY;
	request->comm = a->id;
	post = pccl_session_post(a->session, request);
	if (post > 0)
		atomic_store(&a->closing, post);
}

void pccl_attachment_close(struct pccl_attachment *a, const char *why)
{
	struct wl_request request = {0};

	(void)snprintf(request.text, sizeof request.text, "%s", why);
	destroy(a, &request);
}

void pccl_attachment_leave(struct pccl_attachment *a)
{
	struct wl_request request = {.until_left = true};

	destroy(a, &request);
}

void pccl_attachment_await_closed(struct pccl_attachment *a)
{
	uint32_t post = atomic_load(&a->closing);

	if (post > 0)
		pccl_session_await(a->session, post, 0);
}

void pccl_attachment_await_left(struct pccl_attachment *a)
{
	uint32_t post = atomic_load(&a->closing);

	if (post > 0)
		pccl_session_await(a->session, post, LEAVE_MS);
}

/* Copies a text that the agent may be writing. The caller checks by the version whether the text is
 * whole. */
static void load_text(char *to, const char *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = (char)atomic_load_explicit(
			(const _Atomic unsigned char *)(const void *)(from + i),
			memory_order_relaxed);
	to[size - 1] = '\0';
}

/* Copies the master's address. An invalid address becomes family 0. */
static void load_master_addr(struct cc_addr *to, const struct shm_attr *a)
{
	uint32_t family = atomic_load_explicit(&a->at_family, memory_order_relaxed);
	uint32_t port = atomic_load_explicit(&a->at_port, memory_order_relaxed);

	memset(to, 0, sizeof *to);
	if ((family != CC_INET4 && family != CC_INET6) || port < 1 || port > UINT16_MAX)
		return;
	to->family = (uint8_t)family;
	to->port = (uint16_t)port;
	for (unsigned i = 0; i < (family == CC_INET4 ? 4 : sizeof to->ip); i++)
		to->ip[i] =
			(uint8_t)(atomic_load_explicit(&a->at_ip[i / 4], memory_order_relaxed) >>
				  8 * (i % 4));
}

static void load_known(struct pccl_known *to, const struct shm_attr *a)
{
	to->view_id = atomic_load_explicit(&a->view_id, memory_order_relaxed);
	to->global = atomic_load_explicit(&a->global, memory_order_relaxed);
}

/* Reads the values until no write of the agent has changed them meanwhile; the agent writes rarely
 * and briefly. If the agent died while it was writing, or is hostile, the values of the last try
 * are used: they serve only for sentences and numbers. */
void pccl_attachment_attrs(const struct pccl_attachment *at, struct pccl_attrs *ret)
{
	struct shm_attr *a = pccl_attachment_attr(at);
	uint32_t before, after;

	memset(ret, 0, sizeof *ret);
	for (unsigned i = 0; i < 100000; i++) {
		before = atomic_load_explicit(&a->version, memory_order_acquire);
		ret->state = atomic_load_explicit(&a->state, memory_order_relaxed);
		ret->hosts = atomic_load_explicit(&a->hosts, memory_order_relaxed);
		ret->pos = atomic_load_explicit(&a->pos, memory_order_relaxed);
		ret->code = atomic_load_explicit(&a->code, memory_order_relaxed);
		ret->text[0] = '\0';
		if (ret->state == SHM_COMM_LOST)
			load_text(ret->text, a->text, sizeof a->text);
		load_master_addr(&ret->at, a);
		load_known(&ret->known, a);
		ret->round = atomic_load_explicit(&a->round, memory_order_relaxed);
		ret->rounds = atomic_load_explicit(&a->rounds, memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&a->version, memory_order_relaxed);
		if (before == after && before % 2 == 0)
			return;
	}
	ret->at.family = 0;
	ret->known.view_id = 0; /* the view id may not belong to the world size that was read,
				 * because the agent was writing */
}
