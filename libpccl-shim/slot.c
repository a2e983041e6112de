/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/slot.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_futex.h"
#include "common/cc_sys.h"
#include "libpccl-shim/registered.h"
#include "libpccl-shim/session.h"

/* the longest time until an agent's death is noticed */
#define SLEEP_NS ((uint64_t)PCCL_LOOK_MS * 1000000)

pcclResult_t pccl_slot_admits(
	const pcclComm_t *c, uint64_t tag, const char *within, uint32_t *ret_slot)
{
	const char *main_call = c->main_call == within ? NULL : c->main_call;
	bool others = c->backlog.n > 0 && c->backlog.thread != pccl_thread_id();
	bool tag_taken = c->backlog.n > 0 && *pccl_comm_find_waiting(pccl_comm_own(c), tag);
	uint32_t left = c->n_ops;

	*ret_slot = SHM_SLOTS;
	for (uint32_t i = 0; i < SHM_SLOTS && (left > 0 || *ret_slot == SHM_SLOTS); i++) {
		const struct pccl_op *op = &c->ops[i];

		if (op->state == PCCL_OP_FREE) {
			*ret_slot = i < *ret_slot ? i : *ret_slot;
			continue;
		}
		left--;
		tag_taken = tag_taken || op->tag == tag;
		others = others || op->thread != pccl_thread_id();
	}
	if (main_call)
		return pccl_fail(pcclInvalidUsage,
			"%s is in progress in the main thread: start no operation before it has "
			"returned",
			main_call);
	if (others)
		return pccl_fail(pcclInvalidUsage,
			"operations of another thread are in flight: one thread at a time may "
			"launch and await them");
	if (tag_taken)
		return pccl_fail(pcclInvalidArgument,
			"tag %llu: an operation with this tag is in flight",
			(unsigned long long)tag);
	return pcclSuccess;
}

pcclResult_t pccl_slot_take(pcclComm_t *c, struct pccl_attachment *a, uint64_t tag,
	const char *within, uint32_t *ret, bool *again)
{
	uint32_t slot;
	pcclResult_t r;

	pthread_mutex_lock(&c->lock);
	r = pccl_slot_admits(c, tag, within, &slot);
	*again = c->link != PCCL_LINK_UP || c->att != a;
	if (r == pcclSuccess && slot < SHM_SLOTS && !*again) {
		struct pccl_op *op = &c->ops[slot];

		op->state = PCCL_OP_LAUNCHING;
		op->thread = pccl_thread_id();
		op->tag = tag;
		op->number = c->n_taken++;
		op->att = a;
		op->end_status = PCCL_END_NONE;
		op->seq = 0;
		op->waited = false;
		op->in = NULL;
		op->out = NULL;
		op->staging = NULL;
		op->window = 0;
		op->unfed = false;
		op->bufs = (struct pccl_buf_call){0};
		op->manifest = NULL;
		op->job.comm = NULL;
		atomic_store_explicit(&op->job.stop, false, memory_order_relaxed);
		c->n_ops++;
	}
	pthread_mutex_unlock(&c->lock);
	if (r != pcclSuccess)
		return r;
	if (slot == SHM_SLOTS)
		return pccl_fail(pcclInvalidUsage,
			"%u operations are in flight, and none of them is over: await some",
			SHM_SLOTS);
	*ret = slot;
	return pcclSuccess;
}

void pccl_slot_release(pcclComm_t *c, uint32_t slot)
{
	struct pccl_op *op = &c->ops[slot];
	struct pccl_attachment *a = op->att;

	pccl_buf_close(&op->bufs);
	pccl_registered_put(op->in);
	pccl_registered_put(op->out);
	pccl_staging_put(a, op->staging);
	pthread_mutex_lock(&c->lock);
	op->state = PCCL_OP_FREE;
	op->att = NULL;
	c->n_ops--;
	pthread_mutex_unlock(&c->lock);
	pccl_attachment_unref(a);
}

/* Rings a doorbell. The agent watches the doorbell edge-triggered and never reads it, so even a
 * write to a full counter rings. */
static void ring_bell(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof one) < 0)
		return;
}

void pccl_slot_prepare(pcclComm_t *c, uint32_t slot, enum pccl_op_state state)
{
	struct shm_slot *s = pccl_attachment_slot(c->ops[slot].att, slot);

	atomic_store_explicit(&s->in_want, 0, memory_order_relaxed);
	atomic_store_explicit(&s->wait, SHM_WAIT_AWAKE, memory_order_relaxed);
	atomic_store_explicit(&s->mode, SHM_RESULT_NONE, memory_order_relaxed);
	/* From here on the slot decides the operation's end status if the agent dies. */
	pthread_mutex_lock(&c->lock);
	c->ops[slot].state = state;
	pthread_mutex_unlock(&c->lock);
}

void pccl_slot_push(pcclComm_t *c, const struct shm_sqe *e, uint64_t in_done)
{
	struct pccl_attachment *a = c->ops[e->slot].att;
	struct shm_sqe *ring = (struct shm_sqe *)(void *)(a->queue + SHM_SQE_OFF);
	struct shm_slot *s = pccl_attachment_slot(a, e->slot);

	atomic_store_explicit(&s->in_done[0], 0, memory_order_relaxed);
	atomic_store_explicit(&s->in_done[1], in_done, memory_order_relaxed);
	atomic_store_explicit(&s->state, SHM_SLOT_PENDING, memory_order_relaxed);
	pthread_mutex_lock(&a->lock);
	/* There are as many entries as slots, so the agent has already read the old entry here. */
	ring[a->tail % SHM_SLOTS] = *e;
	a->tail++;
	atomic_store_explicit(&pccl_attachment_sq(a)->tail, a->tail, memory_order_release);
	pthread_mutex_unlock(&a->lock);
	ring_bell(a->submit_bell.fd);
}

void pccl_slot_submit(
	pcclComm_t *c, const struct shm_sqe *e, uint64_t in_done, enum pccl_op_state state)
{
	pccl_slot_prepare(c, e->slot, state);
	pccl_slot_push(c, e, in_done);
}

void pccl_slot_refuse(pcclComm_t *c, struct shm_sqe *e, pcclResult_t code)
{
	struct shm_slot *s = pccl_attachment_slot(c->ops[e->slot].att, e->slot);
	char text[PCCL_TEXT_MAX];

	*e = (struct shm_sqe){.slot = e->slot,
		.flags = (e->flags & (SHM_SQE_SYNC | SHM_SQE_MAIN | SHM_SQE_WAITED)) |
			 SHM_SQE_REFUSED,
		.tag = e->tag,
		.generation = e->generation,
		.refused = (uint32_t)code};
	pccl_fail_text(text);
	(void)snprintf(s->text, sizeof s->text, "%.255s", text);
}

void pccl_slot_progress(const struct pccl_op *op, struct shm_slot *s, bool eager)
{
	/* Sequentially consistent, like the caller's preceding store: the agent sets in_want and
	 * then checks the progress again. */
	if (!atomic_load(&s->in_want) || !atomic_exchange(&s->in_want, 0))
		return;
	ring_bell(op->att->data_bell.fd);
	if (eager)
		ring_bell(op->att->submit_bell.fd);
}

/* ---- waiting */

/* Will the agent still end the operation? */
static bool is_cared_for(pcclComm_t *c, const struct pccl_op *op)
{
	bool alive = pccl_session_watch(op->att->session);

	pthread_mutex_lock(&c->lock);
	alive = alive && op->end_status == PCCL_END_NONE;
	pthread_mutex_unlock(&c->lock);
	return alive;
}

/* Reports to the agent that the caller waits, so that the master can detect calls that can never
 * meet. Called only after the wait has lasted for a moment. */
static void tell_asleep(struct pccl_op *op, uint32_t slot)
{
	if (op->waited)
		return;
	op->waited = true;
	atomic_fetch_or(&pccl_attachment_sq(op->att)->asleep, UINT64_C(1) << slot);
	ring_bell(op->att->submit_bell.fd);
}

/* Takes back the report of tell_asleep before the slot is used again. Otherwise the agent could
 * apply this report to the next operation. */
static void clear_asleep(const struct pccl_op *op, uint32_t slot)
{
	if (op->waited)
		atomic_fetch_and(&pccl_attachment_sq(op->att)->asleep, ~(UINT64_C(1) << slot));
}

void pccl_slot_waits_for_any(struct pccl_attachment *a, uint32_t n)
{
	uint64_t v;

	pthread_mutex_lock(&a->lock);
	v = n > 0 ? (uint64_t)a->tail << 32 | n : 0;
	pthread_mutex_unlock(&a->lock);
	if (atomic_exchange(&pccl_attachment_sq(a)->any, v) != v && n > 0)
		ring_bell(a->submit_bell.fd);
}

bool pccl_slot_wait(pcclComm_t *c, uint32_t slot, const struct pccl_waiter *w)
{
	struct pccl_op *op = &c->ops[slot];
	struct shm_slot *s = pccl_attachment_slot(op->att, slot);
	bool spin = w->spin_ns > 0, alive = true, armed = false;
	uint64_t begin = spin ? cc_now_ns() : 0;

	/* If the slot is done although the session has ended, the slot decides. */
	while (atomic_load(&s->state) != SHM_SLOT_DONE && alive) {
		uint32_t kind = w->wanted(w->arg);

		if (pccl_comm_interrupted(c)) {
			alive = false; /* the slot will never be done */
		} else if (w->look(w->arg)) {
			armed = false;
		} else if (spin) {
			(void)sched_yield(); /* the agent may need this CPU */
			spin = cc_now_ns() - begin < w->spin_ns;
		} else if (!armed) {
			atomic_store(&s->wait, kind);
			armed = true; /* check once more before sleeping */
		} else {
			if (cc_futex_wait(&s->wait, kind, SLEEP_NS) == CC_ERR_TIMEOUT) {
				tell_asleep(op, slot);
				alive = is_cared_for(c, op);
			}
			armed = false;
		}
	}
	atomic_store(&s->wait, SHM_WAIT_AWAKE);
	clear_asleep(op, slot);
	return atomic_load(&s->state) == SHM_SLOT_DONE;
}

/* ---- the completion */

/* Was this peer interrupted? If so, the interrupt is the reason of the failure. The slot's code
 * only says that the communicator was closed. */
static bool is_interrupted(pcclComm_t *c, pcclResult_t *ret)
{
	bool is;

	pthread_mutex_lock(&c->lock);
	is = c->link == PCCL_LINK_GONE && c->gone_code == pcclInterrupted;
	if (is)
		*ret = pccl_comm_fail_gone(c, true);
	pthread_mutex_unlock(&c->lock);
	return is;
}

void pccl_slot_view(const struct shm_slot *s, struct wire_view *ret)
{
	ret->view_id = pccl_read64(&s->view.view_id);
	ret->global = pccl_read32(&s->view.global);
	ret->group = pccl_read32(&s->view.group);
	ret->groups = pccl_read32(&s->view.groups);
	ret->largest = pccl_read32(&s->view.largest);
}

pcclResult_t pccl_slot_fail(pcclComm_t *c, const struct shm_slot *s, uint32_t code)
{
	pcclResult_t r = pccl_fail_code(code);
	char text[SHM_TEXT];

	if (is_interrupted(c, &r))
		return r;
	memcpy(text, s->text, sizeof text);
	text[sizeof text - 1] = '\0';
	return pccl_fail(r, "%s", text[0] ? text : pcclGetErrorString(r));
}

void pccl_slot_set_view(pcclComm_t *c, const struct shm_slot *s)
{
	struct wire_view view;

	pccl_slot_view(s, &view);
	pccl_comm_set_view(c, &view);
}
