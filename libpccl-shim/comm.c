/* SPDX-License-Identifier: MIT
 *
 * Making and asking communicators, votes, the rule of threads; connect.c connects them.
 */
#include "libpccl-shim/comm.h"

#include <stdlib.h>
#include <string.h>

#include "libpccl-shim/address.h"
#include "libpccl-shim/keeper.h"
#include "libpccl-shim/state.h"
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
	if (atomic_load(&c->main_thread) == pccl_thread_id())
		return pcclSuccess;
	return pccl_fail(pcclInvalidUsage,
		"%s must be called by the communicator's main thread, the one that connected it",
		function);
}

pcclResult_t pccl_comm_begin_any(pcclComm_t *c, const char *function, pcclResult_t busy)
{
	const char *other;
	uint32_t n;

	pthread_mutex_lock(&c->lock);
	n = c->n_ops + c->backlog.n;
	other = c->main_call;
	if (n == 0 && !other)
		c->main_call = function;
	pthread_mutex_unlock(&c->lock);
	if (other)
		return pccl_fail(pcclInvalidUsage,
			"%s is under way in another thread: it must have returned before %s", other,
			function);
	if (n > 0)
		return pccl_fail(
			busy, "%u operations are in flight: await them before %s", n, function);
	return pcclSuccess;
}

pcclResult_t pccl_comm_begin(pcclComm_t *c, const char *function, pcclResult_t busy)
{
	pcclResult_t r = pccl_comm_check_main(c, function);

	return r == pcclSuccess ? pccl_comm_begin_any(c, function, busy) : r;
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

void pccl_comm_told_world(pcclComm_t *c, const struct wire_world *world)
{
	pthread_mutex_lock(&c->lock);
	if (world->version > c->world.version)
		c->world = *world;
	pthread_mutex_unlock(&c->lock);
}

struct wire_world pccl_comm_world(pcclComm_t *c)
{
	struct wire_world world;

	pthread_mutex_lock(&c->lock);
	world = c->world;
	pthread_mutex_unlock(&c->lock);
	return world;
}

void pccl_comm_ref(pcclComm_t *c)
{
	atomic_fetch_add(&c->refs, 1);
}

void pccl_comm_unref(pcclComm_t *c)
{
	if (atomic_fetch_sub(&c->refs, 1) > 1)
		return;
	pccl_attachment_unref(c->att);
	pccl_state_free(c->state);
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		free(c->ops[i].copied);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

bool pccl_comm_is_resuming(const pcclComm_t *c)
{
	return c->link == PCCL_LINK_RESUMING ||
	       (c->link == PCCL_LINK_UP && !pccl_session_check(c->att->session));
}

/* With the lock held. */
static pcclResult_t take_attachment(
	pcclComm_t *c, bool waiting, struct pccl_attachment **ret, struct pccl_attrs *ret_attrs)
{
	if (c->link == PCCL_LINK_NONE)
		return pccl_fail(pcclInvalidUsage, "not connected: call pcclConnect first");
	if (c->link == PCCL_LINK_GONE)
		return pccl_comm_fail_gone(c, waiting);
	pccl_attachment_attrs(c->att, ret_attrs);
	if (ret_attrs->state == SHM_COMM_LOST)
		return pccl_comm_fail_lost(c, ret_attrs->code, ret_attrs->text, waiting);
	if (ret_attrs->state != SHM_COMM_CONNECTED)
		return pccl_fail(pcclInvalidUsage, "not connected: call pcclConnect first");
	*ret = pccl_attachment_ref(c->att);
	return pcclSuccess;
}

bool pccl_comm_stays(pcclComm_t *c)
{
	struct pccl_attrs attrs = {.state = SHM_COMM_CONNECTED};
	bool stays;

	pthread_mutex_lock(&c->lock);
	if (c->link == PCCL_LINK_UP)
		pccl_attachment_attrs(c->att, &attrs);
	stays = c->link == PCCL_LINK_RESUMING ||
		(c->link == PCCL_LINK_UP && attrs.state == SHM_COMM_CONNECTED);
	pthread_mutex_unlock(&c->lock);
	return stays;
}

pcclResult_t pccl_comm_connected(const pcclComm_t *communicator)
{
	pcclComm_t *c = pccl_comm_own(communicator);
	struct pccl_attachment *a = NULL;
	struct pccl_attrs attrs;
	pcclResult_t r;

	pthread_mutex_lock(&c->lock);
	r = take_attachment(c, false, &a, &attrs);
	pthread_mutex_unlock(&c->lock);
	if (r == pcclSuccess)
		pccl_attachment_unref(a);
	return r;
}

pcclResult_t pccl_comm_use(
	pcclComm_t *c, bool waiting, struct pccl_attachment **ret, struct pccl_attrs *ret_attrs)
{
	bool ended = false;
	pcclResult_t r;

	pthread_mutex_lock(&c->lock);
	while (pccl_comm_is_resuming(c)) {
		pccl_wait_change(&c->changed, &c->lock);
		pthread_mutex_unlock(&c->lock);
		ended = pccl_comm_interrupted(c) || ended; /* then it is gone */
		pthread_mutex_lock(&c->lock);
	}
	r = take_attachment(c, waiting, ret, ret_attrs);
	pthread_mutex_unlock(&c->lock);
	return r != pcclSuccess && ended ? pccl_comm_fail_interrupted(c) : r;
}

/* In a signal handler, perhaps: no lock, no sentence. */
pcclResult_t pcclInterrupt(pcclComm_t *c)
{
	if (!c || c->magic != PCCL_COMM_MAGIC)
		return pcclInvalidArgument;
	if (c->generation != pccl_generation())
		return pcclInvalidUsage;
	atomic_store(&c->interrupted, true);
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
		return pccl_fail_memory("no memory for a communicator");
	c->magic = PCCL_COMM_MAGIC;
	c->generation = pccl_generation();
	c->master = master;
	c->group = params->peer_group;
	c->pool_size = params->p2p_connection_pool_size;
	atomic_init(&c->main_thread, pccl_thread_id());
	atomic_init(&c->refs, 1);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	*comm_out = c;
	return pccl_ok();
}

/* Somebody is inside the library with it. */
static bool in_use(pcclComm_t *c)
{
	bool used;

	pthread_mutex_lock(&c->lock);
	used = c->main_call || c->asks || c->backlog.driving;
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		used = used || c->ops[i].state == PCCL_OP_LAUNCHING ||
		       c->ops[i].state == PCCL_OP_AWAITED;
	pthread_mutex_unlock(&c->lock);
	return used;
}

pcclResult_t pcclDestroyCommunicator(pcclComm_t *c)
{
	pcclResult_t r = pccl_comm_check(c);
	struct pccl_attachment *a;

	if (r != pcclSuccess)
		return r;
	if (in_use(c))
		return pccl_fail(pcclInvalidUsage,
			"another thread is in a call on the communicator: it must have returned "
			"before pcclDestroyCommunicator");
	c->magic = 0;
	pccl_keeper_remove(c);
	pthread_mutex_lock(&c->lock);
	c->closing = true;
	a = c->att;
	c->att = NULL;
	c->link = PCCL_LINK_NONE;
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		if (c->ops[i].job.comm)
			pccl_copier_cancel(&c->ops[i].job);
	if (a)
		pccl_attachment_leave(a);
	pccl_reduce_abandon(c);
	if (a)
		pccl_attachment_await_left(a);
	pccl_attachment_unref(a);
	pccl_comm_unref(c);
	return pccl_ok();
}

/* Is it a peer as far as the application knows? That changes when a call of it ends, not between.
 */
static pcclResult_t check_peer(pcclComm_t *c)
{
	bool out;

	pthread_mutex_lock(&c->lock);
	out = c->link == PCCL_LINK_NONE || c->told_gone;
	pthread_mutex_unlock(&c->lock);
	return out ? pccl_comm_connected(c) : pcclSuccess;
}

pcclResult_t pcclGetAttribute(const pcclComm_t *c, pcclAttribute_t attribute, int *p_attribute_out)
{
	pcclResult_t r = pccl_comm_check(c);
	struct wire_world world;
	uint32_t value;

	if (r != pcclSuccess)
		return r;
	if (!p_attribute_out)
		return pccl_fail(pcclInvalidArgument, "p_attribute_out must not be NULL");
	if (attribute < PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE ||
		attribute > PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE)
		return pccl_fail(pcclInvalidArgument, "there is no attribute %d", (int)attribute);
	r = check_peer(pccl_comm_own(c));
	if (r != pcclSuccess)
		return r;
	world = pccl_comm_world(pccl_comm_own(c));
	switch (attribute) {
	case PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE:
		value = world.global;
		break;
	case PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE:
		value = world.group;
		break;
	case PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS:
		value = world.groups;
		break;
	default:
		value = world.largest;
		break;
	}
	*p_attribute_out = value > INT32_MAX ? INT32_MAX : (int)value;
	return pccl_ok();
}

static bool end_vote(void *arg)
{
	return pccl_comm_interrupted(arg);
}

/* A vote is given again to the next agent if this one dies, under the same number. */
static pcclResult_t vote(pcclComm_t *c, enum wl_type type, struct wl_reply *reply)
{
	struct wl_request request = {.type = type,
		.topo_turn = atomic_load(&c->topo_turn),
		.pending_turn = atomic_load(&c->pending_turn)};
	struct pccl_attachment *a = NULL;
	struct pccl_attrs attrs;
	bool answered = false;
	struct pccl_ender end = {.end = end_vote, .arg = c};
	pcclResult_t r = pcclSuccess;

	for (bool waiting = false; !answered; waiting = true) {
		r = pccl_comm_use(c, waiting, &a, &attrs);
		if (r != pcclSuccess || !a)
			return waiting ? pccl_comm_spent(c, r) : r;
		request.comm = a->id;
		r = pccl_session_call_or(a->session, &request, reply, &end);
		if (end.ended) {
			pccl_attachment_unref(a);
			return pccl_comm_fail_interrupted(c);
		}
		answered = r == pcclSuccess || reply->req_id != 0 || pccl_session_check(a->session);
		if (r != pcclSuccess && answered)
			pccl_comm_told_code(c, a, (uint32_t)r);
		if (reply->req_id != 0)
			pccl_comm_told_world(c, &reply->world);
		pccl_attachment_unref(a);
	}
	return r == pcclSuccess ? r : pccl_comm_spent(c, r);
}

/* Of a peer that was put out, the first topology call says it by a code of its own, as in PCCL 1.0.
 * Later ones do not: programs repeat that code. */
static pcclResult_t removed_code(pcclComm_t *c, pcclResult_t r, pcclResult_t code)
{
	char text[PCCL_TEXT_MAX];
	bool first;

	if (r != pcclInvalidUsage && r != pcclRankConnectionLost)
		return r;
	pthread_mutex_lock(&c->lock);
	first = c->link != PCCL_LINK_NONE && c->told_gone && !c->told_removed;
	c->told_removed = c->told_removed || first;
	pthread_mutex_unlock(&c->lock);
	if (!first)
		return r;
	pccl_keep_text(text);
	return pccl_fail(code, "%s", text);
}

static pcclResult_t topology_vote(pcclComm_t *c, pcclResult_t code)
{
	struct wl_reply reply = {0};
	pcclResult_t r = vote(c, WL_UPDATE_TOPOLOGY, &reply);

	if (r != pcclSuccess)
		return removed_code(c, r, code);
	pccl_comm_told(c, reply.losses);
	atomic_store(&c->topo_turn, reply.topo_turn);
	return pcclSuccess;
}

pcclResult_t pcclUpdateTopology(pcclComm_t *c)
{
	pcclResult_t r = pccl_comm_check(c);

	if (r == pcclSuccess)
		r = pccl_comm_begin(c, "pcclUpdateTopology", pcclPendingAsyncOps);
	if (r != pcclSuccess)
		return r;
	r = topology_vote(c, pcclUpdateTopologyFailed);
	pccl_comm_end(c);
	return r == pcclSuccess ? pccl_ok() : r;
}

/* Nothing is measured in this release. It is the same vote as pcclUpdateTopology, so that peers
 * that call the one and the other meet. */
static pcclResult_t optimize(pcclComm_t *c)
{
	pcclResult_t r = check_peer(c);

	if (r != pcclSuccess)
		return removed_code(c, r, pcclTopologyOptimizationFailed);
	if (pccl_comm_world(c).global < 2)
		return pccl_fail(
			pcclInvalidUsage, "the run has one peer: there is no topology to optimize");
	return topology_vote(c, pcclTopologyOptimizationFailed);
}

pcclResult_t pcclOptimizeTopology(const pcclComm_t *communicator)
{
	pcclComm_t *c = pccl_comm_own(communicator);
	pcclResult_t r = pccl_comm_check(c);

	if (r == pcclSuccess)
		r = pccl_comm_begin(c, "pcclOptimizeTopology", pcclPendingAsyncOps);
	if (r != pcclSuccess)
		return r;
	r = optimize(c);
	pccl_comm_end(c);
	return r == pcclSuccess ? pccl_ok() : r;
}

static void set_asks(pcclComm_t *c, bool on)
{
	pthread_mutex_lock(&c->lock);
	c->asks = on;
	pthread_mutex_unlock(&c->lock);
}

pcclResult_t pcclArePeersPending(const pcclComm_t *c, bool *peers_pending_out)
{
	pcclResult_t r = pccl_comm_check(c);
	struct wl_reply reply = {0};

	if (r == pcclSuccess)
		r = pccl_comm_check_main(c, "pcclArePeersPending");
	if (r != pcclSuccess)
		return r;
	if (!peers_pending_out)
		return pccl_fail(pcclInvalidArgument, "peers_pending_out must not be NULL");
	set_asks(pccl_comm_own(c), true);
	r = vote(pccl_comm_own(c), WL_ARE_PENDING, &reply);
	set_asks(pccl_comm_own(c), false);
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
