/* SPDX-License-Identifier: MIT
 *
 * Handles the death of an agent for a communicator and its operations; the rules are in comm.h. The
 * reconnector calls these functions, except those that the thread of an operation calls at its end.
 */
#include "common/cc_plan.h"
#include "libpccl-shim/comm.h"
#include "proto/shm_state.h"

#define FATAL_MAX    (sizeof((struct pcclComm_t *)0)->fatal / sizeof(struct pccl_fatal))
#define FATAL_DEATHS 2u

/* Is every segment's flag set? Returns false also if the slot's numbers are invalid. */
static bool all_final(const struct pccl_op *op, const struct shm_slot *s, const struct pccl_map *m)
{
	uint64_t flags_off =
		(uint64_t)pccl_read32(&s->flags_off_hi) << 32 | pccl_read32(&s->flags_off_lo);
	struct cc_shares shares = cc_shares_unpack(pccl_read64(&s->shares));
	const _Atomic uint8_t *flags;
	struct cc_plan plan;

	if (cc_plan_init_shares(&plan, op->count, op->esize, pccl_read32(&s->hosts),
		    pccl_read32(&s->segment_max), &shares) < 0 ||
		flags_off > m->size || plan.n_segs > m->size - flags_off)
		return false;
	flags = (const _Atomic uint8_t *)(const void *)(m->base + flags_off);
	for (uint32_t i = 0; i < plan.n_segs; i++)
		if (!atomic_load(&flags[i]) && cc_plan_segment(&plan, i).len > 0)
			return false;
	return true;
}

/* Do all tensors of this peer have the elected contents? */
static bool is_complete(const uint8_t *manifest)
{
	const struct shm_state_end *end = (const void *)(manifest + SHM_STATE_END_OFF);

	return atomic_load_explicit(&end->complete, memory_order_acquire) == 1;
}

/*
 * Returns the end status of an operation whose agent has died.
 *
 * An agent reports an operation only when the whole result is there, and an operation succeeds only
 * when all agents have reported. So an operation whose result is incomplete here has failed
 * everywhere. If the result was never mapped here, its flags cannot be read, and only the other
 * agents know the outcome.
 *
 * A synchronization continues without the peers that have no agent. If this peer had all elected
 * contents already, its contents equal those of the others, so the call can still succeed.
 * Otherwise the call must be repeated.
 */
static enum pccl_end_status judge(
	const struct pccl_op *op, const struct shm_slot *s, uint64_t *ret_seq)
{
	struct pccl_result *result;
	bool final;

	if (atomic_load(&s->state) == SHM_SLOT_DONE)
		return PCCL_END_NONE;
	if (op->state == PCCL_OP_LAUNCHING ||
		(op->manifest ? !is_complete(op->manifest)
			      : atomic_load_explicit(&s->mode, memory_order_acquire) ==
					SHM_RESULT_NONE))
		return PCCL_END_FAILED;
	*ret_seq = pccl_read64(&s->seq);
	if (*ret_seq == 0)
		return PCCL_END_FAILED;
	if (op->manifest)
		return PCCL_END_DOUBT;
	result = pccl_result_find(op->att, pccl_read64(&s->result_region));
	final = !result || all_final(op, s, &result->map);
	pccl_result_put(op->att, result);
	return final ? PCCL_END_DOUBT : PCCL_END_FAILED;
}

void pccl_comm_detach(pcclComm_t *c)
{
	pthread_mutex_lock(&c->lock);
	if (c->link == PCCL_LINK_UP)
		c->link = PCCL_LINK_RESUMING;
	for (uint32_t i = 0; i < SHM_SLOTS; i++) {
		struct pccl_op *op = &c->ops[i];

		if (op->state != PCCL_OP_FREE && op->end_status == PCCL_END_NONE)
			op->end_status = judge(op, pccl_attachment_slot(op->att, i), &op->seq);
	}
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static void add_seq(struct wl_request *q, uint64_t seq)
{
	for (uint32_t i = 0; i < q->n_seqs; i++)
		if (q->seqs[i] == seq)
			return;
	if (seq > 0 && q->n_seqs < WL_SEQS_MAX)
		q->seqs[q->n_seqs++] = seq;
}

/* With the lock held: returns the attempt in this slot if its success is known, else 0. */
static uint64_t successful(const pcclComm_t *c, uint32_t slot)
{
	const struct pccl_op *op = &c->ops[slot];
	const struct shm_slot *s;

	if (op->state == PCCL_OP_FREE)
		return 0;
	if (op->end_status == PCCL_END_DONE)
		return op->seq;
	s = pccl_attachment_slot(op->att, slot);
	if (op->end_status != PCCL_END_NONE || atomic_load(&s->state) != SHM_SLOT_DONE ||
		pccl_read32(&s->code) != pcclSuccess)
		return 0;
	return pccl_read64(&s->seq);
}

/*
 * With the lock held: lists attempts in the request. First the attempts that are in doubt. They are
 * followed by the attempts whose success is known here, the latest first: if the master died
 * together with the agent, perhaps no other process knows of their success. In this case the other
 * peers learn of it only from this list.
 */
static void list_attempts(pcclComm_t *c, struct wl_request *q)
{
	uint32_t n = c->n_succeeded < WL_SEQS_MAX ? c->n_succeeded : WL_SEQS_MAX;

	c->n_doubts = 0;
	for (uint32_t i = 0; i < SHM_SLOTS; i++) {
		if (c->ops[i].state == PCCL_OP_FREE || c->ops[i].end_status != PCCL_END_DOUBT)
			continue;
		q->seqs[q->n_seqs++] = c->ops[i].seq;
		c->doubts[c->n_doubts++] = i;
	}
	for (uint32_t i = 0; i < SHM_SLOTS; i++)
		add_seq(q, successful(c, i));
	for (uint32_t i = 1; i <= n; i++)
		add_seq(q, c->succeeded[(c->n_succeeded - i) % WL_SEQS_MAX]);
	q->n_succeeded = q->n_seqs - c->n_doubts;
}

struct cc_addr pccl_comm_master_addr(pcclComm_t *c)
{
	struct pccl_attrs attrs;

	if (!c->att)
		return c->at;
	pccl_attachment_attrs(c->att, &attrs);
	if (attrs.at.family)
		c->at = attrs.at;
	if (attrs.known.view_id)
		c->known = attrs.known;
	return c->at;
}

bool pccl_comm_ask(pcclComm_t *c, struct wl_request *request)
{
	struct pccl_attrs attrs = {0};
	bool wanted;

	pthread_mutex_lock(&c->lock);
	if (c->att)
		pccl_attachment_attrs(c->att, &attrs);
	pthread_mutex_unlock(&c->lock);
	if (attrs.state == SHM_COMM_LOST) {
		pccl_comm_give_up(c,
			attrs.code ? pccl_fail_code(attrs.code) : pcclRankConnectionLost,
			attrs.text);
		return false;
	}
	pthread_mutex_lock(&c->lock);
	wanted = c->link == PCCL_LINK_RESUMING && !c->closing;
	*request = (struct wl_request){.type = WL_COMM_ATTACH,
		.master = c->master,
		.master_addr = pccl_comm_master_addr(c),
		.group = c->group,
		.pool_size = c->pool_size,
		.peer = c->peer,
		.token = c->token,
		.thread = (uint32_t)c->main_thread,
		.run = c->run,
		.view_id = c->known.view_id,
		.global = c->known.global};
	memcpy(request->ballots, c->ballots, sizeof request->ballots);
	list_attempts(c, request);
	pthread_mutex_unlock(&c->lock);
	return wanted;
}

bool pccl_comm_resume(pcclComm_t *c, struct pccl_attachment *a, const struct wl_reply *reply)
{
	struct pccl_attachment *old;

	pthread_mutex_lock(&c->lock);
	if (c->link != PCCL_LINK_RESUMING || c->closing) {
		pthread_mutex_unlock(&c->lock);
		return false;
	}
	old = c->att;
	c->att = a;
	c->link = PCCL_LINK_UP;
	/* The ballots of the reply are not stored: the answer to a vote may have been lost with the
	 * old agent. The call that waits for this answer sends the vote again under its old
	 * number. */
	c->group_generation = reply->generation;
	if (c->told_lost)
		pccl_comm_knows(c, reply->generation);
	c->told_lost = false;
	/* An operation in doubt is not released before it has an end status. */
	for (uint32_t i = 0; i < c->n_doubts; i++)
		c->ops[c->doubts[i]].end_status =
			reply->done >> i & 1 ? PCCL_END_DONE : PCCL_END_FAILED;
	c->n_doubts = 0;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	pccl_attachment_unref(old);
	return true;
}

enum pccl_end_status pccl_comm_end_status(pcclComm_t *c, uint32_t slot)
{
	const struct pccl_op *op = &c->ops[slot];
	enum pccl_end_status v;

	pthread_mutex_lock(&c->lock);
	while (op->end_status == PCCL_END_NONE || op->end_status == PCCL_END_DOUBT) {
		if (op->end_status == PCCL_END_NONE &&
			atomic_load(&pccl_attachment_slot(op->att, slot)->state) == SHM_SLOT_DONE)
			break;
		pccl_thread_wait(&c->changed, &c->lock);
		pthread_mutex_unlock(&c->lock);
		(void)pccl_comm_interrupted(c); /* an interrupt sets an end status */
		pthread_mutex_lock(&c->lock);
	}
	v = op->end_status;
	pthread_mutex_unlock(&c->lock);
	return v;
}

void pccl_comm_note_success(pcclComm_t *c, uint64_t seq)
{
	pthread_mutex_lock(&c->lock);
	c->succeeded[c->n_succeeded++ % WL_SEQS_MAX] = seq;
	pthread_mutex_unlock(&c->lock);
}

/* With the lock held: returns the record of deaths during this operation, or NULL. */
static struct pccl_fatal *find_fatal(pcclComm_t *c, const struct pccl_op *op)
{
	for (uint32_t i = 0; i < FATAL_MAX; i++)
		if (c->fatal[i].deaths > 0 && c->fatal[i].tag == op->tag &&
			c->fatal[i].bytes == op->bytes &&
			c->fatal[i].is_sync == (op->manifest != NULL))
			return &c->fatal[i];
	return NULL;
}

/* When the agent died, was it at work on the operation, rather than only waiting for others? */
static bool was_at_work(const struct pccl_op *op, const struct shm_slot *s)
{
	const struct shm_state_end *end;

	if (!op->manifest)
		return atomic_load(&s->mode) != SHM_RESULT_NONE;
	end = (const void *)(op->manifest + SHM_STATE_END_OFF);
	return atomic_load(&end->at_work) != 0;
}

void pccl_comm_note_death(pcclComm_t *c, uint32_t slot)
{
	const struct pccl_op *op = &c->ops[slot];
	struct pccl_fatal *x;

	if (pccl_session_ended_in_order(op->att->session) ||
		!was_at_work(op, pccl_attachment_slot(op->att, slot)))
		return;
	pthread_mutex_lock(&c->lock);
	x = find_fatal(c, op);
	if (!x) {
		x = &c->fatal[c->n_fatal++ % FATAL_MAX];
		*x = (struct pccl_fatal){op->tag, op->bytes, op->manifest != NULL, 0};
	}
	x->deaths++;
	pthread_mutex_unlock(&c->lock);
}

void pccl_comm_note_survived(pcclComm_t *c, const struct pccl_op *op)
{
	struct pccl_fatal *x;

	if (atomic_load_explicit(&c->n_fatal, memory_order_relaxed) == 0)
		return;
	pthread_mutex_lock(&c->lock);
	x = find_fatal(c, op);
	if (x)
		x->deaths = 0;
	pthread_mutex_unlock(&c->lock);
}

bool pccl_comm_is_fatal(pcclComm_t *c, const struct pccl_op *op)
{
	struct pccl_fatal *x;
	bool is;

	if (atomic_load_explicit(&c->n_fatal, memory_order_relaxed) == 0)
		return false;
	pthread_mutex_lock(&c->lock);
	x = find_fatal(c, op);
	is = x && x->deaths >= FATAL_DEATHS;
	if (is)
		x->deaths = FATAL_DEATHS - 1;
	pthread_mutex_unlock(&c->lock);
	return is;
}

pcclResult_t pccl_comm_fail_fatal(const struct pccl_op *op)
{
	return pccl_fail(pcclInternalError,
		"this peer's agent has died twice during this operation (%llu bytes): see its log "
		"and the kernel's; it may have too little memory",
		(unsigned long long)op->bytes);
}

void pccl_comm_knows_death(pcclComm_t *c, const struct pccl_attachment *of)
{
	pthread_mutex_lock(&c->lock);
	if (c->att == of)
		c->told_lost = true; /* the next agent reports the new generation */
	else
		pccl_comm_knows(c, c->group_generation);
	pthread_mutex_unlock(&c->lock);
}
