/* SPDX-License-Identifier: MIT
 *
 * Making, connecting and asking communicators; everything but the operations.
 */
#include "libpccl-shim/comm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_shm.h"
#include "common/cc_sys.h"
#include "libpccl-shim/address.h"
#include "libpccl-shim/session.h"
#include "proto/wire_master.h"

pcclResult_t pccl_comm_check(const pcclComm_t *c)
{
	pcclResult_t r = pccl_check_ready();

	if (r != pcclSuccess)
		return r;
	if (!c)
		return pccl_fail(pcclInvalidArgument, "the communicator must not be NULL");
	if (c->magic != PCCL_COMM_MAGIC)
		return pccl_fail(pcclInvalidArgument,
			"the pointer is not a communicator, or one that was destroyed");
	if (c->generation != pccl_generation())
		return pccl_fail(pcclInvalidUsage,
			"the communicator belongs to the process that this one was forked from");
	return pcclSuccess;
}

pcclResult_t pccl_comm_check_main(const pcclComm_t *c, const char *function)
{
	if (pthread_equal(c->main_thread, pthread_self()))
		return pcclSuccess;
	return pccl_fail(pcclInvalidUsage,
		"%s must be called by the communicator's main thread, the one that created it",
		function);
}

pcclResult_t pccl_comm_begin(pcclComm_t *c, const char *function, pcclResult_t busy)
{
	pcclResult_t r = pccl_comm_check_main(c, function);
	uint32_t n;

	if (r != pcclSuccess)
		return r;
	pthread_mutex_lock(&c->lock);
	n = c->n_ops;
	if (n == 0)
		c->main_call = function;
	pthread_mutex_unlock(&c->lock);
	if (n > 0)
		return pccl_fail(
			busy, "%u operations are in flight: await them before %s", n, function);
	return pcclSuccess;
}

void pccl_comm_end(pcclComm_t *c)
{
	pthread_mutex_lock(&c->lock);
	c->main_call = NULL;
	pthread_mutex_unlock(&c->lock);
}

void pccl_comm_told(pcclComm_t *c, uint64_t losses)
{
	uint64_t known = atomic_load(&c->losses);

	while (known < losses && !atomic_compare_exchange_weak(&c->losses, &known, losses))
		;
}

/* Text that the agent writes while it may be read: the version tells whether it was whole. */
static void load_text(char *to, const char *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = (char)atomic_load_explicit(
			(const _Atomic unsigned char *)(const void *)(from + i),
			memory_order_relaxed);
	to[size - 1] = '\0';
}

/* The agent writes rarely and briefly; if it died in the middle, or plays tricks, the last attempt
 * has to do: nothing here is relied upon but for sentences and numbers. */
static void read_attrs(const pcclComm_t *c, struct pccl_attrs *ret)
{
	struct shm_attr *a = pccl_comm_attr(c);
	uint32_t before, after;

	memset(ret, 0, sizeof *ret);
	for (unsigned i = 0; i < 100000; i++) {
		before = atomic_load_explicit(&a->version, memory_order_acquire);
		ret->state = atomic_load_explicit(&a->state, memory_order_relaxed);
		ret->global_world = atomic_load_explicit(&a->global_world, memory_order_relaxed);
		ret->group_world = atomic_load_explicit(&a->group_world, memory_order_relaxed);
		ret->groups = atomic_load_explicit(&a->groups, memory_order_relaxed);
		ret->largest_group = atomic_load_explicit(&a->largest_group, memory_order_relaxed);
		ret->hosts = atomic_load_explicit(&a->hosts, memory_order_relaxed);
		ret->pos = atomic_load_explicit(&a->pos, memory_order_relaxed);
		ret->code = atomic_load_explicit(&a->code, memory_order_relaxed);
		ret->text[0] = '\0';
		if (ret->state == SHM_COMM_LOST)
			load_text(ret->text, a->text, sizeof a->text);
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&a->version, memory_order_relaxed);
		if (before == after && before % 2 == 0)
			return;
	}
}

pcclResult_t pccl_comm_connected(const pcclComm_t *c, struct pccl_attrs *ret)
{
	if (!c->session)
		return pccl_fail(pcclInvalidUsage, "not connected: call pcclConnect first");
	if (!pccl_session_check(c->session))
		return pccl_session_fail(c->session);
	read_attrs(c, ret);
	if (ret->state == SHM_COMM_LOST)
		return pccl_fail(pcclInvalidUsage,
			"this peer is no longer part of the run: %s; call pcclConnect to join "
			"again",
			ret->text);
	if (ret->state != SHM_COMM_CONNECTED)
		return pccl_fail(pcclInvalidUsage, "not connected: call pcclConnect first");
	return pcclSuccess;
}

pcclResult_t pcclCreateCommunicator(const pcclCommCreateParams_t *params, pcclComm_t **comm_out)
{
	pcclResult_t r = pccl_check_ready();
	struct cc_addr master;
	pcclComm_t *c;

	if (r != pcclSuccess)
		return r;
	if (!params || !comm_out)
		return pccl_fail(pcclInvalidArgument, "params and comm_out must not be NULL");
	r = pccl_address_read(&params->master_address, &master);
	if (r != pcclSuccess)
		return r;
	if (params->p2p_connection_pool_size > WM_POOL_MAX)
		return pccl_fail(pcclInvalidArgument,
			"p2p_connection_pool_size is %u, the limit is %u",
			params->p2p_connection_pool_size, WM_POOL_MAX);
	c = calloc(1, sizeof *c);
	if (!c)
		return pccl_fail(pcclOutOfMemory, "no memory for a communicator");
	c->magic = PCCL_COMM_MAGIC;
	c->generation = pccl_generation();
	c->master = master;
	c->group = params->peer_group;
	c->pool_size = params->p2p_connection_pool_size;
	c->main_thread = pthread_self();
	c->submit_bell.fd = -1;
	c->data_bell.fd = -1;
	pthread_mutex_init(&c->lock, NULL);
	*comm_out = c;
	return pccl_ok();
}

static pcclResult_t map_queue(pcclComm_t *c, int fd)
{
	const struct shm_header *h;
	uint32_t version;
	void *map;
	int err = cc_shm_map(fd, SHM_SIZE, &map);

	if (err < 0)
		return pccl_fail(pcclInternalError, "the agent's queue pair cannot be mapped: %s",
			cc_err_str(err));
	h = map;
	version = h->version;
	if (h->magic != SHM_MAGIC || version != SHM_VERSION || h->slots != SHM_SLOTS ||
		h->size != SHM_SIZE) {
		cc_shm_unmap(map, SHM_SIZE);
		return pccl_fail(pcclVersionMismatch,
			"this library reads queue pairs of version %u, the agent made one of "
			"version "
			"%u or of another layout: install matching releases",
			SHM_VERSION, version);
	}
	c->queue = map;
	return pcclSuccess;
}

static pcclResult_t attach(pcclComm_t *c)
{
	struct wl_request request = {.type = WL_COMM_CREATE,
		.master = c->master,
		.group = c->group,
		.pool_size = c->pool_size};
	struct pccl_session *s;
	struct wl_reply reply;
	pcclResult_t r;
	int fds[3];

	r = pccl_session_get(&s);
	if (r != pcclSuccess)
		return r;
	r = pccl_session_call(s, &request, &reply, fds, 3);
	if (r != pcclSuccess)
		goto err_session;
	r = map_queue(c, fds[0]);
	close(fds[0]);
	if (r != pcclSuccess)
		goto err_bells;
	c->session = s;
	c->id = reply.comm;
	c->tail = 0;
	pccl_fork_add(&c->submit_bell, fds[1]);
	pccl_fork_add(&c->data_bell, fds[2]);
	return pcclSuccess;

err_bells:
	close(fds[1]);
	close(fds[2]);
err_session:
	pccl_session_unref(s);
	return r;
}

/* No operation is in flight. */
static void detach(pcclComm_t *c)
{
	if (!c->session)
		return;
	pccl_staging_free_all(c);
	pccl_result_free_all(c);
	pccl_fork_close(&c->submit_bell);
	pccl_fork_close(&c->data_bell);
	cc_shm_unmap(c->queue, SHM_SIZE);
	c->queue = NULL;
	pccl_session_unref(c->session);
	c->session = NULL;
}

/* A new peer each time: the master may know one of an earlier connect that failed. */
static pcclResult_t connect_request(pcclComm_t *c, struct wl_reply *reply)
{
	struct wl_request request = {.type = WL_COMM_CONNECT, .comm = c->id};

	cc_random_id(&request.peer);
	cc_random_id(&request.token);
	return pccl_session_call(c->session, &request, reply, NULL, 0);
}

static pcclResult_t simple_request(const pcclComm_t *c, enum wl_type type, struct wl_reply *reply)
{
	struct wl_request request = {.type = type,
		.comm = c->id,
		.topo_turn = atomic_load(&c->topo_turn),
		.pending_turn = atomic_load(&c->pending_turn)};

	return pccl_session_call(c->session, &request, reply, NULL, 0);
}

static pcclResult_t connect_comm(pcclComm_t *c)
{
	struct pccl_attrs attrs;
	struct wl_reply reply;
	pcclResult_t r;

	if (c->session && !pccl_session_check(c->session))
		detach(c);
	if (!c->session) {
		r = attach(c);
		if (r != pcclSuccess)
			return r;
	}
	read_attrs(c, &attrs);
	if (attrs.state == SHM_COMM_CONNECTED)
		return pccl_fail(pcclInvalidUsage, "the communicator is connected already");
	r = connect_request(c, &reply);
	if (r != pcclSuccess)
		return r;
	/* Of another membership than before, perhaps: lower numbers are possible. */
	atomic_store(&c->losses, reply.losses);
	atomic_store(&c->topo_turn, reply.topo_turn);
	atomic_store(&c->pending_turn, reply.pending_turn);
	return pcclSuccess;
}

pcclResult_t pcclConnect(pcclComm_t *c)
{
	pcclResult_t r = pccl_comm_check(c);

	if (r == pcclSuccess)
		r = pccl_comm_begin(c, "pcclConnect", pcclInvalidUsage);
	if (r != pcclSuccess)
		return r;
	r = connect_comm(c);
	pccl_comm_end(c);
	return r == pcclSuccess ? pccl_ok() : r;
}

/* Somebody is inside the library with it. */
static bool in_use(pcclComm_t *c)
{
	bool used = false;

	pthread_mutex_lock(&c->lock);
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		used = used || c->ops[i].state == PCCL_OP_LAUNCHING ||
		       c->ops[i].state == PCCL_OP_AWAITED;
	pthread_mutex_unlock(&c->lock);
	return used;
}

pcclResult_t pcclDestroyCommunicator(pcclComm_t *c)
{
	pcclResult_t r = pccl_comm_check(c);
	struct wl_reply reply;

	if (r == pcclSuccess)
		r = pccl_comm_check_main(c, "pcclDestroyCommunicator");
	if (r != pcclSuccess)
		return r;
	if (in_use(c))
		return pccl_fail(pcclInvalidUsage,
			"another thread launches or awaits an operation: it must have returned "
			"before pcclDestroyCommunicator");
	c->magic = 0;
	if (c->session) {
		/* Whatever the agent answers, it has no more use for the communicator. */
		if (pccl_session_check(c->session))
			simple_request(c, WL_COMM_DESTROY, &reply);
		pccl_reduce_abandon(c);
		detach(c);
	}
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		free(c->ops[i].copied);
	pthread_mutex_destroy(&c->lock);
	free(c);
	return pccl_ok();
}

pcclResult_t pcclGetAttribute(const pcclComm_t *c, pcclAttribute_t attribute, int *p_attribute_out)
{
	pcclResult_t r = pccl_comm_check(c);
	struct pccl_attrs attrs = {0};
	uint32_t value;

	if (r != pcclSuccess)
		return r;
	if (!p_attribute_out)
		return pccl_fail(pcclInvalidArgument, "p_attribute_out must not be NULL");
	if (attribute < PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE ||
		attribute > PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE)
		return pccl_fail(pcclInvalidArgument, "there is no attribute %d", (int)attribute);
	r = pccl_comm_connected(c, &attrs);
	if (r != pcclSuccess)
		return r;
	switch (attribute) {
	case PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE:
		value = attrs.global_world;
		break;
	case PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE:
		value = attrs.group_world;
		break;
	case PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS:
		value = attrs.groups;
		break;
	default:
		value = attrs.largest_group;
		break;
	}
	*p_attribute_out = value > INT32_MAX ? INT32_MAX : (int)value;
	return pccl_ok();
}

pcclResult_t pcclUpdateTopology(pcclComm_t *c)
{
	pcclResult_t r = pccl_comm_check(c);
	struct pccl_attrs attrs;
	struct wl_reply reply;

	if (r == pcclSuccess)
		r = pccl_comm_begin(c, "pcclUpdateTopology", pcclPendingAsyncOps);
	if (r != pcclSuccess)
		return r;
	r = pccl_comm_connected(c, &attrs);
	if (r == pcclSuccess)
		r = simple_request(c, WL_UPDATE_TOPOLOGY, &reply);
	if (r == pcclSuccess) {
		pccl_comm_told(c, reply.losses);
		atomic_store(&c->topo_turn, reply.topo_turn);
	}
	pccl_comm_end(c);
	return r == pcclSuccess ? pccl_ok() : r;
}

pcclResult_t pcclArePeersPending(const pcclComm_t *c, bool *peers_pending_out)
{
	pcclResult_t r = pccl_comm_check(c);
	struct pccl_attrs attrs;
	struct wl_reply reply;

	if (r == pcclSuccess)
		r = pccl_comm_check_main(c, "pcclArePeersPending");
	if (r != pcclSuccess)
		return r;
	if (!peers_pending_out)
		return pccl_fail(pcclInvalidArgument, "peers_pending_out must not be NULL");
	r = pccl_comm_connected(c, &attrs);
	if (r == pcclSuccess)
		r = simple_request(c, WL_ARE_PENDING, &reply);
	if (r != pcclSuccess)
		return r;
	atomic_store(&pccl_comm_own(c)->pending_turn, reply.pending_turn);
	*peers_pending_out = reply.flag;
	return pccl_ok();
}

pcclResult_t pcclAreNewPeersPending(const pcclComm_t *c, bool *new_peers_pending_out)
{
	return pcclArePeersPending(c, new_peers_pending_out);
}
