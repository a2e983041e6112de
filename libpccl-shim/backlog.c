/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/backlog.h"

#include <stdlib.h>

#include "common/cc_futex.h"
#include "libpccl-shim/session.h"
#include "libpccl-shim/slot.h"

/* Any operation in flight may end next. The end of the oldest one wakes the thread; the others are
 * checked at this interval. */
#define LOOK_NS ((uint64_t)1000000)
/* After this number of checks, the thread also checks whether the agent is alive, and reports to
 * the agent that it waits. */
#define WATCH_LOOKS 50u

/* ---- the state of the backlog; with the communicator's lock held */

static bool is_over(const struct pccl_op *op, uint32_t slot)
{
	const struct shm_slot *s = pccl_attachment_slot(op->att, slot);

	if (op->end_status == PCCL_END_NONE)
		return atomic_load(&s->state) == SHM_SLOT_DONE;
	return op->end_status != PCCL_END_DOUBT;
}

/* Returns the slot of an operation that is over and not awaited, or SHM_SLOTS. */
static uint32_t find_over(const pcclComm_t *c)
{
	uint32_t i = 0;

	while (i < SHM_SLOTS && (c->ops[i].state != PCCL_OP_IN_FLIGHT || !is_over(&c->ops[i], i)))
		i++;
	return i;
}

/* Returns the slot of the oldest operation in flight that has no end status, or SHM_SLOTS. */
static uint32_t find_oldest(const pcclComm_t *c)
{
	uint32_t oldest = SHM_SLOTS;

	for (uint32_t i = 0; i < SHM_SLOTS; i++) {
		const struct pccl_op *op = &c->ops[i];

		if (op->state == PCCL_OP_IN_FLIGHT && op->end_status == PCCL_END_NONE &&
			(oldest == SHM_SLOTS || op->number < c->ops[oldest].number))
			oldest = i;
	}
	return oldest;
}

/* Returns how many operations of this attachment are not over. Returns 0 if an unfinished operation
 * belongs to another agent, because it ends without this agent. */
static uint32_t count_unfinished(const pcclComm_t *c, const struct pccl_attachment *a)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SHM_SLOTS; i++) {
		const struct pccl_op *op = &c->ops[i];

		if (op->state == PCCL_OP_FREE || is_over(op, i))
			continue;
		if (op->att != a || op->end_status != PCCL_END_NONE)
			return 0;
		n++;
	}
	return n;
}

/* Finds the first operation that may be launched. Operations of an agent that is gone are never
 * launched. */
static struct pccl_backlog_op **find_launchable(pcclComm_t *c)
{
	struct pccl_backlog_op **at = &c->backlog.first;

	if (c->link != PCCL_LINK_UP || !pccl_session_check(c->att->session))
		return NULL;
	while (*at && ((*at)->over || (*at)->args.att != c->att))
		at = &(*at)->next;
	return *at ? at : NULL;
}

/* Finds the operation with the lowest tag, unless an operation with a lower tag is in flight. */
static struct pccl_backlog_op **find_lowest(pcclComm_t *c)
{
	struct pccl_backlog_op **lowest = find_launchable(c);

	if (!lowest)
		return NULL;
	for (struct pccl_backlog_op **at = &(*lowest)->next; *at; at = &(*at)->next)
		if (!(*at)->over && (*at)->args.att == c->att && (*at)->tag < (*lowest)->tag)
			lowest = at;
	for (uint32_t i = 0; i < SHM_SLOTS; i++)
		if (c->ops[i].state != PCCL_OP_FREE && c->ops[i].tag < (*lowest)->tag &&
			!is_over(&c->ops[i], i))
			return NULL;
	return lowest;
}

/* Can the operation with this tag be awaited without continuing the backlog? */
static bool is_settled(pcclComm_t *c, uint64_t tag)
{
	const struct pccl_backlog_op *x = *pccl_comm_find_waiting(c, tag);

	if (x)
		return x->over;
	for (uint32_t i = 0; i < SHM_SLOTS; i++)
		if (c->ops[i].state == PCCL_OP_IN_FLIGHT && c->ops[i].tag == tag)
			return is_over(&c->ops[i], i);
	return true;
}

static struct pccl_backlog_op *take_out(pcclComm_t *c, struct pccl_backlog_op **at)
{
	struct pccl_backlog_op *x = *at;

	*at = x->next;
	c->backlog.n--;
	c->backlog.n_waiting -= !x->over;
	return x;
}

static void put_in(pcclComm_t *c, struct pccl_backlog_op **at, struct pccl_backlog_op *x)
{
	x->next = *at;
	*at = x;
	c->backlog.n++;
	c->backlog.n_waiting += !x->over;
}

/* ---- continuing the backlog */

static void set_driving(pcclComm_t *c, bool driving)
{
	pthread_mutex_lock(&c->lock);
	c->backlog.driving = driving;
	if (!driving && c->att)
		pccl_slot_waits_for_any(c->att, 0);
	pthread_mutex_unlock(&c->lock);
}

/* Reports to the agent that this thread waits for any of its unfinished operations. The count
 * includes operations that this thread does not need. If one of these ends and the thread still
 * waits, the thread reports again. */
static void tell_waiting(pcclComm_t *c, struct pccl_attachment *a)
{
	uint32_t n;

	pthread_mutex_lock(&c->lock);
	n = count_unfinished(c, a);
	pthread_mutex_unlock(&c->lock);
	pccl_slot_waits_for_any(a, n);
}

/* Moves an operation that is over from its slot into the backlog. Returns false if no operation is
 * over. */
static bool free_slot(pcclComm_t *c)
{
	struct pccl_backlog_op *x = malloc(sizeof *x);
	uint32_t slot;

	if (!x) /* the caller tries again */
		return false;
	pthread_mutex_lock(&c->lock);
	slot = find_over(c);
	if (slot < SHM_SLOTS) {
		c->ops[slot].state = PCCL_OP_AWAITED;
		x->tag = c->ops[slot].tag;
	}
	pthread_mutex_unlock(&c->lock);
	if (slot == SHM_SLOTS) {
		free(x);
		return false;
	}
	x->over = true;
	pccl_reduce_take_end(c, slot, &x->end);
	pthread_mutex_lock(&c->lock);
	c->backlog.thread = pccl_thread_id();
	put_in(c, &c->backlog.first, x);
	pthread_mutex_unlock(&c->lock);
	return true;
}

/* Launches an operation in a free slot. Returns false if there is no operation or no slot, or if
 * its agent is gone. */
static bool launch(pcclComm_t *c, bool lowest)
{
	struct pccl_backlog_op **at, *x;

	pthread_mutex_lock(&c->lock);
	at = lowest ? find_lowest(c) : find_launchable(c);
	x = at && c->n_ops < SHM_SLOTS ? take_out(c, at) : NULL;
	pthread_mutex_unlock(&c->lock);
	if (!x)
		return false;
	if (pccl_reduce_launch_later(c, &x->args)) {
		pccl_attachment_unref(x->args.att);
		free(x);
		return true;
	}
	pthread_mutex_lock(&c->lock);
	put_in(c, &c->backlog.first, x);
	pthread_mutex_unlock(&c->lock);
	return false;
}

/* Launches the next operation, or makes room for it. Returns false if no operation waits or no slot
 * can be freed. */
static bool step(pcclComm_t *c)
{
	bool more, room;

	pthread_mutex_lock(&c->lock);
	more = find_launchable(c) != NULL;
	room = c->n_ops < SHM_SLOTS - PCCL_SLOTS_KEPT;
	pthread_mutex_unlock(&c->lock);
	return more && (room ? launch(c, false) : free_slot(c));
}

/* Waits until an operation may have ended. n: number of such waits in a row. */
static void wait_for_any(pcclComm_t *c, uint32_t n)
{
	struct pccl_op *op = NULL;
	struct shm_slot *s;
	uint32_t slot;
	bool over;

	pthread_mutex_lock(&c->lock);
	slot = find_oldest(c);
	if (slot == SHM_SLOTS)
		pccl_thread_wait(&c->changed, &c->lock);
	else
		op = &c->ops[slot];
	pthread_mutex_unlock(&c->lock);
	if (!op || (op->job.comm && !pccl_copier_await(&op->job)))
		return;
	s = pccl_attachment_slot(op->att, slot);
	atomic_store(&s->wait, SHM_WAIT_DONE);
	pthread_mutex_lock(&c->lock);
	over = find_over(c) < SHM_SLOTS;
	pthread_mutex_unlock(&c->lock);
	if (!over)
		(void)cc_futex_wait(&s->wait, SHM_WAIT_DONE, LOOK_NS);
	atomic_store(&s->wait, SHM_WAIT_AWAKE);
	if (n >= WATCH_LOOKS)
		tell_waiting(c, op->att);
	if (n % WATCH_LOOKS == 0)
		(void)pccl_session_watch(op->att->session);
}

static bool is_enough(pcclComm_t *c, const uint64_t *tag)
{
	bool more, room, settled;

	pthread_mutex_lock(&c->lock);
	more = find_launchable(c) != NULL;
	room = c->n_ops < SHM_SLOTS;
	settled = tag && is_settled(c, *tag);
	pthread_mutex_unlock(&c->lock);
	if (tag)
		return settled || !more;
	return !more && (room || free_slot(c));
}

void pccl_backlog_drive(pcclComm_t *c, const uint64_t *tag)
{
	uint32_t n = 0;

	set_driving(c, true);
	while (!pccl_comm_interrupted(c)) {
		while (step(c))
			n = 0;
		if (is_enough(c, tag))
			break;
		if (launch(c, true))
			n = 0;
		else
			wait_for_any(c, ++n);
	}
	set_driving(c, false);
}

void pccl_backlog_pump(pcclComm_t *c)
{
	/* No lock is needed: n_waiting is changed only by the thread that may launch operations.
	 */
	if (c->backlog.n_waiting == 0)
		return;
	set_driving(c, true);
	while (step(c))
		;
	set_driving(c, false);
}

/* ---- calls */

bool pccl_backlog_is_needed(pcclComm_t *c)
{
	bool needed;

	pthread_mutex_lock(&c->lock);
	needed = c->backlog.n_waiting > 0 || c->n_ops >= SHM_SLOTS - PCCL_SLOTS_KEPT;
	pthread_mutex_unlock(&c->lock);
	return needed;
}

pcclResult_t pccl_backlog_add(pcclComm_t *c, const struct pccl_call_args *args)
{
	struct pccl_backlog_op *x = malloc(sizeof *x), **at = &c->backlog.first;
	uint32_t slot;
	pcclResult_t r;

	if (!x)
		return pccl_fail_memory("no memory for more operations in flight");
	*x = (struct pccl_backlog_op){.tag = args->d.tag, .args = *args};
	pthread_mutex_lock(&c->lock);
	r = pccl_slot_admits(c, x->tag, NULL, &slot);
	if (r == pcclSuccess) {
		while (*at)
			at = &(*at)->next;
		c->backlog.thread = pccl_thread_id();
		put_in(c, at, x);
	}
	pthread_mutex_unlock(&c->lock);
	if (r != pcclSuccess)
		free(x);
	return r;
}

/* Ends an operation whose agent died before the operation was launched. Sets *ret_retry if the
 * agent is alive after all. */
static pcclResult_t fail_lost(pcclComm_t *c, const struct pccl_attachment *att, bool *ret_retry)
{
	struct pccl_attachment *a;
	struct pccl_attrs attrs;
	pcclResult_t r = pccl_comm_use(c, true, &a, &attrs);

	*ret_retry = r == pcclSuccess && a == att; /* the agent is alive */
	if (r != pcclSuccess)
		return r;
	pccl_attachment_unref(a);
	if (*ret_retry)
		return pcclSuccess;
	pccl_comm_knows_death(c, att);
	return pccl_fail(pcclRankConnectionLost,
		"the agent of this host died during the operation: call again");
}

/* Returns the operation with this tag that has no slot, or NULL. *ret_own: whether the backlog's
 * operations belong to the calling thread. */
static struct pccl_backlog_op *find_own(pcclComm_t *c, uint64_t tag, bool *ret_own)
{
	struct pccl_backlog_op *x;

	pthread_mutex_lock(&c->lock);
	x = *pccl_comm_find_waiting(c, tag);
	*ret_own = c->backlog.thread == pccl_thread_id();
	pthread_mutex_unlock(&c->lock);
	return x;
}

bool pccl_backlog_await(pcclComm_t *c, uint64_t tag, pcclReduceInfo_t *info, pcclResult_t *ret)
{
	struct pccl_backlog_op *x;
	bool own, again;

	do {
		again = false;
		x = find_own(c, tag, &own);
		if (own && c->backlog.n_waiting > 0) {
			pccl_backlog_drive(c, &tag);
			x = find_own(c, tag, &own);
		}
		if (!x)
			return false;
		if (!own)
			*ret = pccl_fail(pcclInvalidUsage,
				"an operation must be awaited by the thread that started it, and "
				"another thread started this operation");
		else if (x->over)
			*ret = pccl_reduce_tell(c, &x->end, info);
		else
			*ret = fail_lost(c, x->args.att, &again);
	} while (again);
	if (!own)
		return true;
	pthread_mutex_lock(&c->lock);
	take_out(c, pccl_comm_find_waiting(c, tag));
	pthread_mutex_unlock(&c->lock);
	pccl_attachment_unref(x->over ? x->end.att : x->args.att);
	free(x);
	return true;
}

void pccl_backlog_free(pcclComm_t *c)
{
	while (c->backlog.first) {
		struct pccl_backlog_op *x = take_out(c, &c->backlog.first);

		pccl_attachment_unref(x->over ? x->end.att : x->args.att);
		free(x);
	}
}
