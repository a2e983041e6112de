/* SPDX-License-Identifier: MIT
 *
 * The link of a communicator: its state, the reason if the state is GONE, and leaving the run. The
 * rules are in comm.h.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "libpccl-shim/comm.h"

/* Returns the advice to connect again, or nothing if the sentence gives it already. */
static const char *advice(const char *text)
{
	static const char *const given[] = {"pcclConnect", "connect again", "pcclctl reset"};

	for (size_t i = 0; i < sizeof given / sizeof *given; i++)
		if (strstr(text, given[i]))
			return "";
	return "; call pcclConnect to join again";
}

pcclResult_t pccl_comm_fail_lost(pcclComm_t *c, uint32_t code, const char *text, bool waiting)
{
	bool again = c->told_gone && !waiting;

	c->told_gone = true;
	if (code == pcclSuccess)
		code = pcclRankConnectionLost; /* the agent gave no code */
	/* Programs do not repeat a call that returns one of the two codes below. Any other code is
	 * returned once: later calls return pcclInvalidUsage, so that programs stop repeating the
	 * call. */
	if (again && code != pcclMasterConnectionFailed && code != pcclAgentUnavailable)
		return pccl_fail(pcclInvalidUsage, "this peer is no longer part of the run: %s%s",
			text, advice(text));
	return pccl_fail(pccl_fail_code(code), "%s%s", text, advice(text));
}

pcclResult_t pccl_comm_fail_gone(pcclComm_t *c, bool waiting)
{
	return pccl_comm_fail_lost(c, c->gone_code, c->gone_text, waiting);
}

void pccl_comm_lost_code(pcclComm_t *c, const struct pccl_attachment *a, uint32_t code)
{
	struct pccl_attrs attrs;

	pccl_attachment_attrs(a, &attrs);
	if (attrs.state != SHM_COMM_LOST || attrs.code != code)
		return;
	pthread_mutex_lock(&c->lock);
	if (c->att == a)
		c->told_gone = true;
	pthread_mutex_unlock(&c->lock);
}

void pccl_comm_give_up(pcclComm_t *c, pcclResult_t code, const char *text)
{
	pthread_mutex_lock(&c->lock);
	if (c->link == PCCL_LINK_UP || c->link == PCCL_LINK_RESUMING) {
		c->link = PCCL_LINK_GONE;
		c->gone_code = code;
		snprintf(c->gone_text, sizeof c->gone_text, "%s", text);
	}
	for (uint32_t i = 0; i < SHM_SLOTS; i++) {
		struct pccl_op *op = &c->ops[i];

		/* A FAILED operation becomes GONE, too: its failure has not been reported yet,
		 * because after the report the slot would be FREE. */
		if (op->state != PCCL_OP_FREE && op->end_status != PCCL_END_DONE &&
			!(op->end_status == PCCL_END_NONE &&
				atomic_load(&pccl_attachment_slot(op->att, i)->state) ==
					SHM_SLOT_DONE))
			op->end_status = PCCL_END_GONE;
	}
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static void depart(pcclComm_t *c, pcclResult_t code, const char *text, const char *why)
{
	struct pccl_attachment *a;

	atomic_fetch_add(&c->departing, 1);
	c->on_leave(c);
	pccl_comm_give_up(c, code, text);
	pthread_mutex_lock(&c->lock);
	a = c->att ? pccl_attachment_ref(c->att) : NULL;
	pthread_mutex_unlock(&c->lock);
	if (a)
		pccl_attachment_close(a, why);
	atomic_fetch_sub(&c->departing, 1);
	pccl_attachment_unref(a);
}

void pccl_comm_await_closed(pcclComm_t *c, const struct pccl_op *op)
{
	while (atomic_load(&c->departing) > 0)
		poll(NULL, 0, 1);
	pccl_attachment_await_closed(op->att);
}

pcclResult_t pccl_comm_leave(pcclComm_t *c, pcclResult_t code, const char *text, const char *why)
{
	pcclResult_t r;

	depart(c, code, text, why);
	pthread_mutex_lock(&c->lock);
	r = pccl_comm_fail_gone(c, true);
	pthread_mutex_unlock(&c->lock);
	return r;
}

static const char interrupted_text[] =
	"pcclInterrupt was called and this peer has left the run: call pcclConnect to join again";

bool pccl_comm_interrupted(pcclComm_t *c)
{
	enum pccl_link link;

	if (!atomic_load_explicit(&c->interrupted, memory_order_relaxed) ||
		!atomic_exchange(&c->interrupted, false))
		return false;
	pthread_mutex_lock(&c->lock);
	link = c->link;
	pthread_mutex_unlock(&c->lock);
	if (link == PCCL_LINK_UP || link == PCCL_LINK_RESUMING)
		depart(c, pcclInterrupted, interrupted_text, "");
	return true;
}

/* With the lock held: has an interrupt ended the membership of this peer? */
static bool is_out(const pcclComm_t *c)
{
	return c->link == PCCL_LINK_GONE && c->gone_code == pcclInterrupted;
}

pcclResult_t pccl_comm_fail_interrupted(pcclComm_t *c)
{
	pcclResult_t r;

	pthread_mutex_lock(&c->lock);
	r = is_out(c) ? pccl_comm_fail_gone(c, true)
		      : pccl_fail(pcclInterrupted, "%s", interrupted_text);
	pthread_mutex_unlock(&c->lock);
	return r;
}

pcclResult_t pccl_comm_spent(pcclComm_t *c, pcclResult_t r)
{
	if (!pccl_comm_interrupted(c) || r == pcclInterrupted)
		return r;
	return pccl_comm_fail_interrupted(c);
}

/* Ends requests to the agent when this peer was interrupted: their answers are no longer of use. */
static bool end_of_thread(void *arg)
{
	pcclComm_t *c = arg;
	bool out;

	if (pccl_comm_interrupted(c))
		return true;
	pthread_mutex_lock(&c->lock);
	out = is_out(c);
	pthread_mutex_unlock(&c->lock);
	return out;
}

struct pccl_ender pccl_comm_enter(pcclComm_t *c)
{
	return pccl_session_endable((struct pccl_ender){.end = end_of_thread, .arg = c});
}

bool pccl_comm_is_resuming(const pcclComm_t *c)
{
	return c->link == PCCL_LINK_RESUMING ||
	       (c->link == PCCL_LINK_UP && !pccl_session_check(c->att->session));
}

/* With the lock held: returns a reference to the attachment if this is a connected peer. */
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
		pccl_thread_wait(&c->changed, &c->lock);
		pthread_mutex_unlock(&c->lock);
		ended = pccl_comm_interrupted(c) || ended; /* after an interrupt the link is GONE */
		pthread_mutex_lock(&c->lock);
	}
	r = take_attachment(c, waiting, ret, ret_attrs);
	pthread_mutex_unlock(&c->lock);
	return r != pcclSuccess && ended ? pccl_comm_fail_interrupted(c) : r;
}
