/* SPDX-License-Identifier: MIT
 *
 * The life of a communicator, from pcclCreateCommunicator to pcclDestroyCommunicator. If agents die
 * during pcclConnect, it joins as the same peer through the next agent.
 */
#include <poll.h>
#include <stdlib.h>

#include "common/cc_sys.h"
#include "libpccl-shim/address.h"
#include "libpccl-shim/backlog.h"
#include "libpccl-shim/reconnector.h"
#include "libpccl-shim/lib.h"
#include "proto/wire_master.h"

#define PAUSE_MS 50

static pcclResult_t fail_before_join(void)
{
	pccl_fail(pcclInterrupted,
		"pcclInterrupt ended pcclConnect: this peer is not in the run; call pcclConnect to "
		"try again");
	return pcclInterrupted;
}

/* Waits until the reconnector has finished. Then sets the link to NONE, and keeps the attachment if
 * it can still be used. */
static pcclResult_t begin(pcclComm_t *c)
{
	struct pccl_attachment *old = NULL;
	struct pccl_attrs attrs = {0};

	pthread_mutex_lock(&c->lock);
	while (pccl_comm_is_resuming(c)) {
		pccl_thread_wait(&c->changed, &c->lock);
		pthread_mutex_unlock(&c->lock);
		if (pccl_comm_interrupted(c))
			return fail_before_join();
		pthread_mutex_lock(&c->lock);
	}
	if (c->link == PCCL_LINK_UP)
		pccl_attachment_attrs(c->att, &attrs);
	if (attrs.state == SHM_COMM_CONNECTED) {
		pthread_mutex_unlock(&c->lock);
		return pccl_fail(pcclInvalidUsage, "the communicator is connected already");
	}
	if (c->att && (c->link == PCCL_LINK_GONE || !pccl_session_check(c->att->session))) {
		(void)pccl_comm_master_addr(c); /* saves the address */
		old = c->att;
		c->att = NULL;
	}
	c->link = PCCL_LINK_NONE;
	/* Each call makes a new peer: the master may still know the peer of an earlier call that
	 * failed. */
	cc_random_id(&c->peer);
	cc_random_id(&c->token);
	pthread_mutex_unlock(&c->lock);
	pccl_reconnector_remove(c);
	pccl_attachment_unref(old);
	return pcclSuccess;
}

/* Creates the communicator at the agent. Sets *ret_died if the agent went away and another agent
 * may come. */
static pcclResult_t create(pcclComm_t *c, bool *ret_died)
{
	struct wl_request request = {.type = WL_COMM_CREATE,
		.master = c->master,
		.group = c->group,
		.pool_size = c->pool_size};
	struct pccl_attachment *a;
	struct pccl_session *s;
	struct wl_reply reply;
	pcclResult_t r;
	int fds[3];

	r = pccl_reconnector_session(&c->interrupted, &s);
	if (r != pcclSuccess)
		return r == pcclInterrupted ? fail_before_join() : r;
	request.master_addr = pccl_reconnector_master_addr(&c->master);
	if (!request.master_addr.family)
		request.master_addr = c->at; /* no other thread writes it now */
	r = pccl_session_call(s, &request, &reply, fds, 3);
	if (r == pcclSuccess)
		r = pccl_attachment_new(s, reply.comm, fds, &a);
	else if (r == pcclInterrupted && reply.req_id == 0)
		r = fail_before_join();
	else
		*ret_died = reply.req_id == 0 && pccl_session_may_return(s);
	pccl_session_unref(s);
	if (r != pcclSuccess)
		return r;
	pthread_mutex_lock(&c->lock);
	c->att = a;
	pthread_mutex_unlock(&c->lock);
	return pcclSuccess;
}

static void drop(pcclComm_t *c)
{
	struct pccl_attachment *a;

	pthread_mutex_lock(&c->lock);
	a = c->att;
	c->att = NULL;
	pthread_mutex_unlock(&c->lock);
	pccl_attachment_unref(a);
}

static bool end_join(void *arg)
{
	pcclComm_t *c = arg;

	if (!pccl_comm_interrupted(c))
		return false;
	pccl_attachment_close(c->att, "");
	return true;
}

/* Joins the run. No lock is needed to read c->att: no other thread changes it while the
 * communicator is not connected. */
static pcclResult_t join(pcclComm_t *c, bool *ret_died)
{
	struct wl_request request = {.type = WL_COMM_CONNECT,
		.comm = c->att->id,
		.peer = c->peer,
		.token = c->token,
		.thread = (uint32_t)pccl_thread_id()};
	struct pccl_session *s = c->att->session;
	struct pccl_ender end = {.end = end_join, .arg = c};
	struct wl_reply reply;
	uint64_t before;
	pcclResult_t r = pccl_session_call_or(s, &request, &reply, &end);

	if (end.ended) {
		drop(c);
		return fail_before_join();
	}
	if (r != pcclSuccess) {
		*ret_died = reply.req_id == 0 && pccl_session_may_return(s);
		return r;
	}
	/* This is a new membership, so the numbers can be lower than before. */
	atomic_store(&c->known_generation, reply.generation);
	pthread_mutex_lock(&c->lock);
	memcpy(c->ballots, reply.ballots, sizeof c->ballots);
	c->run = reply.run;
	c->known = (struct pccl_known){0};
	c->group_generation = reply.generation;
	c->told_lost = false;
	c->told_gone = false;
	c->told_removed = false;
	c->must_optimize = false;
	c->view = reply.view;
	c->n_succeeded = 0;
	c->link = PCCL_LINK_UP;
	/* The thread that connects becomes the main thread, as in PCCL 1.0. From here on the
	 * reconnector may report the main thread to another agent. */
	before = atomic_exchange(&c->main_thread, pccl_thread_id());
	pthread_mutex_unlock(&c->lock);
	r = pccl_reconnector_add(c, s, ret_died);
	if (r == pcclSuccess && !*ret_died)
		return r;
	pthread_mutex_lock(&c->lock);
	c->link = PCCL_LINK_NONE;
	atomic_store(&c->main_thread, before);
	pthread_mutex_unlock(&c->lock);
	if (*ret_died)
		return pccl_session_fail(s);
	pccl_attachment_close(c->att, "");
	drop(c);
	return r;
}

static pcclResult_t connect_comm(pcclComm_t *c)
{
	uint64_t died_ns = 0, now;
	pcclResult_t r = begin(c);

	while (r == pcclSuccess) {
		bool died = false;

		if (!c->att)
			r = create(c, &died);
		if (r == pcclSuccess)
			r = join(c, &died);
		if (r == pcclSuccess)
			return r;
		/* The interrupt counts for this call, not for the next one, even if the call failed
		 * for another reason. */
		if (pccl_comm_interrupted(c))
			return fail_before_join();
		now = cc_now_ns();
		died_ns = died_ns == 0 ? now : died_ns;
		/* An error that an agent returns is final. If the agent died, the next pass of this
		 * loop waits for another agent. If agents die again and again, the call gives up
		 * after PCCL_AGENT_LEASE_MS in total. */
		if (!died || now - died_ns >= (uint64_t)pccl_reconnector_lease_ms() * 1000000u)
			return r;
		drop(c);
		poll(NULL, 0, PAUSE_MS);
		r = pcclSuccess;
	}
	return r;
}

pcclResult_t pcclConnect(pcclComm_t *c)
{
	pcclResult_t r = pccl_comm_check(c);
	struct pccl_ender outer;

	if (r == pcclSuccess)
		r = pccl_comm_begin_any(c, "pcclConnect", pcclInvalidUsage);
	if (r != pcclSuccess)
		return r;
	r = pccl_reconnector_lease_read();
	outer = pccl_comm_enter(c);
	if (r == pcclSuccess)
		r = connect_comm(c);
	(void)pccl_session_endable(outer);
	pccl_comm_end(c);
	return r == pcclSuccess ? pccl_ok() : r;
}

/* May run in a signal handler, so takes no lock and sets no sentence. */
pcclResult_t pcclInterrupt(pcclComm_t *c)
{
	if (!c || c->magic != PCCL_COMM_MAGIC)
		return pcclInvalidArgument;
	if (c->fork_count != pccl_fork_generation())
		return pcclInvalidUsage;
	atomic_store(&c->interrupted, true);
	return pcclSuccess;
}

pcclResult_t pcclCreateCommunicator(const pcclCommCreateParams_t *params, pcclComm_t **comm_out)
{
	pcclResult_t r = pccl_lib_check();
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
	c->fork_count = pccl_fork_generation();
	c->master = master;
	c->group = params->peer_group;
	c->pool_size = params->p2p_connection_pool_size;
	c->on_leave = pccl_reconnector_remove;
	atomic_init(&c->main_thread, pccl_thread_id());
	atomic_init(&c->refs, 1);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	*comm_out = c;
	return pccl_ok();
}

/* Is another thread in a call on the communicator? */
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
			"another thread is in a call on the communicator: call "
			"pcclDestroyCommunicator after that call has returned");
	c->magic = 0;
	pccl_reconnector_remove(c);
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
	pccl_backlog_free(c);
	if (a)
		pccl_attachment_await_left(a);
	pccl_attachment_unref(a);
	pccl_comm_unref(c);
	return pccl_ok();
}
