/* SPDX-License-Identifier: MIT
 *
 * The second half of an all-reduce: waits for the end and copies the result out. Restores the
 * caller's buffers if the operation fails or the agent dies.
 *
 * Numbers that the agent wrote are read once and checked (proto/shm_result.h) before they are used.
 * A wrong number fails the operation, but never corrupts memory.
 */
#include "libpccl-shim/reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_plan.h"
#include "common/cc_sys.h"
#include "libpccl-shim/session.h"
#include "libpccl-shim/slot.h"
#include "proto/shm_result.h"

#define OVERLAP_SEGS_MAX 65536u /* results with more segments are copied only at the end */
#define SPINS_IN_A_ROW   16u

/* The state of an operation as a waiting thread knows it. */
struct progress {
	pcclComm_t *comm; /* NULL if the operation is abandoned */
	struct pccl_op *op;
	struct shm_slot *slot;
	uint32_t mode;      /* enum shm_result_mode; NONE until it is known */
	pcclResult_t error; /* the error if the result area cannot be used */
	char text[PCCL_TEXT_MAX];
	struct cc_plan plan;
	struct pccl_result *result;
	uint8_t *area;                /* the result, or the old contents of recv */
	const _Atomic uint8_t *flags; /* one for each of the plan.n_segs segments */
	bool overlap;                 /* copy each segment to recv when it is final */
	uint32_t n_copied;
	pcclResult_t out_error; /* the error if recv could not be written */
	char out_text[PCCL_TEXT_MAX];
	bool spoiled; /* recv has a part of a result that could not be written as a whole */
	struct pccl_feed feed; /* the window, if there is one */
};

static void bad_area(struct progress *p, const char *what)
{
	p->error = pccl_fail(pcclInternalError,
		"the agent described the result wrongly (%s); please report it", what);
	pccl_fail_text(p->text);
}

/* May segments be copied to recv before the operation has succeeded? Only if the old contents are
 * kept: they are exchanged with a result that only this process has, or the operand in staging
 * memory has the same contents. Prepares op->copied. */
static bool may_overlap(struct progress *p)
{
	struct pccl_op *op = p->op;
	uint32_t n = p->plan.n_segs;

	if (n > OVERLAP_SEGS_MAX || op->window > 0 ||
		(p->mode != SHM_RESULT_STAGED &&
			(p->mode != SHM_RESULT_AREA || !op->staging || op->send.at != op->recv.at)))
		return false;
	if (op->cap_copied < n) {
		uint8_t *grown = realloc(op->copied, n);

		if (!grown)
			return false;
		op->copied = grown;
		op->cap_copied = n;
	}
	memset(op->copied, 0, n);
	return true;
}

/* Maps the result region that the slot names. */
static pcclResult_t find_result(struct progress *p, uint64_t region)
{
	struct pccl_attachment *a = p->op->att;
	pcclResult_t r = pccl_result_get(a, region, &p->result);

	if (r != pcclSuccess) {
		p->result = NULL;
		pccl_fail_text(p->text);
	}
	return r;
}

static bool is_window_plan(const struct pccl_op *op, const struct cc_plan *plan)
{
	struct cc_plan own;

	return pccl_reduce_window_plan(op, &own) && plan->hosts == own.hosts &&
	       plan->n_chunks == own.n_chunks && plan->n_segs == own.n_segs;
}

/* Reads the description of the result area, if the agent has written one, and maps the area. ended:
 * the operation is over, or its agent is gone. */
static void learn(struct progress *p, bool ended)
{
	const struct pccl_op *op = p->op;
	const struct shm_slot *s = p->slot;
	const struct shm_result_limits lim = {.count = op->count,
		.esize = op->esize,
		.staged = op->staging && op->window == 0, /* a window holds only a part */
		.out_registered = op->out != NULL};
	struct shm_result_words w;
	struct shm_result res;
	const char *why;

	if (p->mode != SHM_RESULT_NONE)
		return;
	p->mode = atomic_load_explicit(&s->mode, memory_order_acquire);
	if (p->mode == SHM_RESULT_SPEC)
		p->mode = ended ? SHM_RESULT_AREA : SHM_RESULT_NONE;
	if (p->mode == SHM_RESULT_NONE)
		return;
	w = (struct shm_result_words){.mode = p->mode,
		.hosts = pccl_read32(&s->hosts),
		.segment_max = pccl_read32(&s->segment_max),
		.shares = pccl_read64(&s->shares),
		.off = pccl_read64(&s->result_off),
		.flags_off = (uint64_t)pccl_read32(&s->flags_off_hi) << 32 |
			     pccl_read32(&s->flags_off_lo)};
	if (shm_result_get(&w, &lim, &res, &why) < 0) {
		bad_area(p, why);
		return;
	}
	p->error = find_result(p, pccl_read64(&s->result_region));
	if (p->error != pcclSuccess)
		return;
	if (shm_result_fits(&res, p->result->map.size, &why) < 0) {
		bad_area(p, why);
		return;
	}
	if (op->window > 0 && !is_window_plan(op, &res.plan)) {
		bad_area(p, "its plan does not match the window");
		return;
	}
	p->plan = res.plan;
	p->area = res.mode == SHM_RESULT_STAGED ? op->staging->map.base
						: p->result->map.base + res.off;
	p->flags = (const _Atomic uint8_t *)(const void *)(p->result->map.base + res.flags_off);
	pccl_buf_pin(
		&op->recv, res.mode == SHM_RESULT_STAGED ? &op->staging->map : &p->result->map);
	p->overlap = may_overlap(p);
}

/* Notes that recv could not be written. */
static void cannot_write(struct progress *p, pcclResult_t r)
{
	p->out_error = r;
	p->overlap = false;
	pccl_fail_text(p->out_text);
}

/* Copies the segments that are final and not copied yet. With `all`, copies every segment that is
 * not copied yet. Returns true if it copied any. */
static bool copy_segments(struct progress *p, bool all)
{
	struct pccl_op *op = p->op;
	bool any = false;

	for (uint32_t i = 0; i < p->plan.n_segs; i++) {
		struct cc_span span;
		pcclResult_t r;

		if (op->copied[i] || !(all || atomic_load(&p->flags[i])))
			continue;
		span = cc_plan_segment(&p->plan, i);
		if (p->mode == SHM_RESULT_STAGED && !all)
			r = pccl_buf_swap(&op->recv, span.off, p->area + span.off, span.len);
		else
			r = pccl_buf_start_out(
				&op->recv, span.off, p->area + span.off, span.len, op->bytes);
		if (r != pcclSuccess) {
			cannot_write(p, r);
			break;
		}
		op->copied[i] = 1;
		p->n_copied++;
		any = true;
	}
	return any;
}

/* Copies more of the operand into the window if the window has room. Returns true if it copied
 * any. */
static bool feed_window(struct progress *p)
{
	uint32_t before = p->feed.fed, room = before;
	pcclResult_t r = pcclSuccess;

	if (p->op->window == 0 || p->mode == SHM_RESULT_NONE || p->error != pcclSuccess)
		return false;
	while (room < p->plan.n_segs && atomic_load(&p->flags[room - p->op->window]))
		room++;
	while (p->feed.fed < room && !p->op->unfed) {
		r = pccl_reduce_feed(p->op, &p->plan, &p->feed, room);
		if (r != pcclSuccess) {
			pccl_reduce_leave_unfed(p->comm, p->op, r);
			return false;
		}
		atomic_store(&p->slot->in_done[1], p->feed.bytes);
		pccl_slot_progress(p->op, p->slot, false);
	}
	return p->feed.fed > before;
}

/* Must this segment be restored? *ret_from: its old contents. */
static bool is_changed(const struct progress *p, uint32_t seg, const uint8_t **ret_from)
{
	const struct pccl_op *op = p->op;

	*ret_from = p->mode == SHM_RESULT_UNDO ? p->area : op->staging->map.base;
	return p->mode == SHM_RESULT_UNDO ? atomic_load(&p->flags[seg]) != 0 : op->copied[seg] != 0;
}

/* Restores recv after the result could not be written. Only the operand of an operation in place
 * has the old contents then. */
static pcclResult_t take_back_spoiled(const struct progress *p)
{
	const struct pccl_op *op = p->op;

	if (p->mode != SHM_RESULT_AREA || !op->staging || op->window > 0 ||
		op->send.at != op->recv.at)
		return pccl_fail(pcclInternalError, "a part of the result was written");
	return pccl_buf_copy_out(&op->recv, 0, op->staging->map.base, op->bytes, 0);
}

/* Restores the contents that recv had before the call. */
static pcclResult_t take_back(struct progress *p)
{
	struct pccl_op *op = p->op;
	pcclResult_t r;

	if (p->spoiled)
		return take_back_spoiled(p);
	if (p->error != pcclSuccess || p->mode == SHM_RESULT_NONE)
		return pcclSuccess;
	if (p->mode != SHM_RESULT_UNDO && p->n_copied == 0 && p->out_error == pcclSuccess)
		return pcclSuccess;
	/* The old contents are complete only now: see pccl_buf_swap. */
	r = pccl_buf_finish_out(&op->recv);
	for (uint32_t i = 0; i < p->plan.n_segs && r == pcclSuccess; i++) {
		struct cc_span span = cc_plan_segment(&p->plan, i);
		const uint8_t *from;

		if (is_changed(p, i, &from))
			r = pccl_buf_start_out(&op->recv, span.off, from + span.off, span.len, 0);
	}
	return r == pcclSuccess ? pccl_buf_finish_out(&op->recv) : r;
}

static pcclResult_t take_result(struct progress *p)
{
	struct pccl_op *op = p->op;
	pcclResult_t r = pcclSuccess;

	if ((p->mode == SHM_RESULT_UNDO || p->mode == SHM_RESULT_DIRECT) && op->out)
		return pcclSuccess;
	if (p->mode == SHM_RESULT_NONE)
		bad_area(p, "no result");
	if (p->error != pcclSuccess)
		return pccl_fail(p->error, "%s", p->text);
	if (p->n_copied > 0 && p->out_error == pcclSuccess)
		copy_segments(p, true);
	else if (p->n_copied == 0)
		r = pccl_buf_start_out(&op->recv, 0, p->area, op->bytes, op->bytes);
	if (r == pcclSuccess) {
		r = pccl_buf_finish_out(&op->recv);
		p->spoiled = r != pcclSuccess;
	}
	p->spoiled = p->spoiled || p->out_error != pcclSuccess;
	return p->out_error != pcclSuccess ? pccl_fail(p->out_error, "%s", p->out_text) : r;
}

/* Returns the event that must wake this thread. Until the result area is known, each final segment
 * wakes the thread, so that it maps the area early. With a mapped area, this process can take the
 * result or restore the old contents even if the agent dies. */
static uint32_t wanted(const void *arg)
{
	const struct progress *p = arg;

	return p->overlap || p->mode == SHM_RESULT_NONE || p->op->window > 0 ? SHM_WAIT_SEGMENTS
									     : SHM_WAIT_DONE;
}

/* Makes this peer leave the run if it cannot read the result's flags, and therefore cannot feed the
 * rest of the operand into the window. */
static void leave_unfed(struct progress *p)
{
	if (p->op->window == 0 || p->error == pcclSuccess)
		return;
	(void)pccl_fail(p->error, "%s", p->text);
	pccl_reduce_leave_unfed(p->comm, p->op, p->error);
}

static bool look(void *arg)
{
	struct progress *p = arg;
	uint32_t mode = p->mode;

	learn(p, false);
	leave_unfed(p);
	return feed_window(p) || (p->overlap && copy_segments(p, false)) || p->mode != mode;
}

static bool is_alone(pcclComm_t *c)
{
	uint32_t n;

	pthread_mutex_lock(&c->lock);
	n = c->n_ops;
	pthread_mutex_unlock(&c->lock);
	return n == 1;
}

/* Returns how long to spin before sleeping. Does not spin if recent operations have taken longer
 * than a spin. Does not spin if this process may use only one CPU: the daemons need this CPU, too,
 * and they poll often enough to keep it awake. Also does not spin at every 16th wait: the scheduler
 * moves no thread to a CPU that is never idle, so daemons that share another CPU would stay
 * together on that CPU for ever. */
static uint64_t spin_ns(pcclComm_t *c, uint64_t lately)
{
	uint64_t most = is_alone(c) ? PCCL_SPIN_ALONE_NS : PCCL_SPIN_NS;
	uint32_t n = atomic_fetch_add_explicit(&c->n_waits, 1, memory_order_relaxed);

	return cc_has_cpus() && lately < 2 * most && n % SPINS_IN_A_ROW > 0 ? most : 0;
}

static bool wait_for_end(pcclComm_t *c, uint32_t slot, struct progress *p)
{
	uint64_t lately = atomic_load_explicit(&c->wait_ns, memory_order_relaxed);
	struct pccl_waiter w = {
		.spin_ns = spin_ns(c, lately), .look = look, .wanted = wanted, .arg = p};
	uint64_t begin = cc_now_ns();
	bool done = pccl_slot_wait(c, slot, &w);

	atomic_store_explicit(
		&c->wait_ns, (lately * 3 + cc_now_ns() - begin) / 4, memory_order_relaxed);
	return done;
}

static void fill_info(const struct shm_slot *s, pcclReduceInfo_t *info)
{
	info->local_world_size = pccl_read32(&s->local_world_size);
	info->tx_bytes = pccl_read64(&s->tx_bytes);
	info->rx_bytes = pccl_read64(&s->rx_bytes);
}

/* Restores the buffers of a failed operation. Extends the sentence if they cannot be restored. */
static pcclResult_t fail_and_take_back(struct progress *p, pcclResult_t r)
{
	char text[PCCL_TEXT_MAX], why[PCCL_TEXT_MAX];

	pccl_fail_text(text);
	if (take_back(p) != pcclSuccess) {
		pccl_fail_text(why);
		return pccl_fail(r,
			"recvbuff could not be restored, because %.280s; the operation "
			"itself failed: %.280s",
			why, text);
	}
	if (p->error == pcclSuccess || p->mode != SHM_RESULT_UNDO)
		return pccl_fail(r, "%s", text);
	return pccl_fail(r, "recvbuff could not be restored: %s", text);
}

/*
 * Makes this peer leave the run, because the operation has succeeded for all peers but this process
 * cannot get the result. The other peers continue. If this peer repeated the operation, it would
 * wait for them for ever; if it did not, its numbers would differ from theirs.
 */
static pcclResult_t lose_result(pcclComm_t *c, const struct progress *p, pcclResult_t r)
{
	static const char what[] =
		"cannot take the result of an operation that has succeeded on all other peers";
	char why[PCCL_TEXT_MAX], text[PCCL_TEXT_MAX], others[PCCL_TEXT_MAX];

	bool ended = !pccl_session_check(p->op->att->session);

	if (ended && pccl_session_may_return(p->op->att->session))
		return pccl_comm_leave(c, pcclRankConnectionLost,
			"the agent of this host died with the result of an operation that has "
			"succeeded on all other peers",
			"");
	if (ended)
		r = pccl_session_fail(p->op->att->session);
	pccl_fail_text(why);
	(void)snprintf(text, sizeof text, "this peer %s: %.500s", what, why);
	(void)snprintf(others, sizeof others, "it %s: %.500s", what, why);
	return pccl_comm_leave(c, r, text, others);
}

static pcclResult_t take_success(pcclComm_t *c, struct progress *p)
{
	pcclResult_t r = take_result(p);

	if (r == pcclSuccess)
		pccl_comm_note_success(c, pccl_read64(&p->slot->seq));
	return r == pcclSuccess ? r : lose_result(c, p, r);
}

static pcclResult_t end_by_slot(pcclComm_t *c, struct progress *p, struct pccl_outcome *end)
{
	pcclResult_t r;

	learn(p, true);
	end->code = pccl_read32(&p->slot->code);
	end->generation = pccl_read64(&p->slot->generation);
	pccl_slot_view(p->slot, &end->view);
	if (end->code != pcclSuccess)
		return pccl_slot_fail(c, p->slot, end->code);
	r = take_success(c, p);
	pccl_comm_note_survived(c, p->op);
	fill_info(p->slot, &end->info);
	return r;
}

/* Ends an operation whose agent was gone before the agent reported the end. */
static pcclResult_t end_by_status(
	pcclComm_t *c, uint32_t slot, struct progress *p, struct pccl_outcome *end)
{
	pcclResult_t r;

	end->end_status = pccl_comm_end_status(c, slot);
	learn(p, true); /* the operation may have begun while this thread slept */
	switch (end->end_status) {
	case PCCL_END_NONE: /* the agent reported the end at the last moment */
		return end_by_slot(c, p, end);
	case PCCL_END_DONE:
		pccl_slot_view(p->slot, &end->view); /* the view as of the start */
		/* Only the agent knew the numbers of bytes. */
		end->info.local_world_size = pccl_read32(&p->slot->local_world_size);
		return take_success(c, p);
	case PCCL_END_GONE:
		pthread_mutex_lock(&c->lock);
		r = pccl_comm_fail_gone(c, true);
		pthread_mutex_unlock(&c->lock);
		return r;
	default:
		pccl_comm_note_death(c, slot);
		return pccl_fail(pcclRankConnectionLost,
			"the agent of this host died during the operation: call again");
	}
}

/* Waits for the end of an operation that is not empty, and takes the result. */
static void take_end(pcclComm_t *c, uint32_t slot, struct pccl_outcome *end)
{
	struct pccl_op *op = &c->ops[slot];
	struct progress p = {.comm = c, .op = op, .slot = pccl_attachment_slot(op->att, slot)};
	struct pccl_ender outer = pccl_comm_enter(c);
	bool done;

	while (op->job.comm && !pccl_copier_await(&op->job) && !pccl_comm_interrupted(c))
		;
	p.feed = (struct pccl_feed){.begun = op->window, .fed = op->window};
	done = wait_for_end(c, slot, &p);
	if (op->job.comm)
		pccl_copier_stop(&op->job);
	/* If this peer has left, the slot's result is not the reason for the failure. */
	done = done && !op->unfed;
	if (!done && (op->in || op->out))
		pccl_comm_await_closed(c, op);
	end->result = done ? end_by_slot(c, &p, end) : end_by_status(c, slot, &p, end);
	if (end->result != pcclSuccess)
		end->result = pccl_comm_spent(c, fail_and_take_back(&p, end->result));
	(void)pccl_session_endable(outer);
	/* From here on the agent may use the result area for another operation. */
	pccl_result_put(op->att, p.result);
	atomic_store_explicit(&p.slot->state, SHM_SLOT_FREE, memory_order_release);
}

void pccl_reduce_take_end(pcclComm_t *c, uint32_t slot, struct pccl_outcome *ret)
{
	struct pccl_op *op = &c->ops[slot];

	memset(ret, 0, sizeof *ret);
	ret->att = pccl_attachment_ref(op->att);
	if (op->count > 0) {
		take_end(c, slot, ret);
	} else {
		ret->end_status = PCCL_END_DONE;
		ret->info.local_world_size = pccl_comm_view(c).group;
	}
	if (ret->result != pcclSuccess)
		pccl_fail_text(ret->text);
	pccl_slot_release(c, slot);
}

static void tell(pcclComm_t *c, const struct pccl_outcome *end)
{
	if (end->end_status == PCCL_END_FAILED)
		pccl_comm_knows_death(c, end->att);
	if (end->end_status != PCCL_END_NONE && end->end_status != PCCL_END_DONE)
		return;
	pccl_comm_knows(c, end->generation);
	pccl_comm_set_view(c, &end->view);
	if (end->code != pcclSuccess)
		pccl_comm_lost_code(c, end->att, end->code);
}

pcclResult_t pccl_reduce_tell(pcclComm_t *c, const struct pccl_outcome *end, pcclReduceInfo_t *info)
{
	tell(c, end);
	if (end->result != pcclSuccess)
		return pccl_fail(end->result, "%s", end->text);
	if (info)
		*info = end->info;
	return pcclSuccess;
}

static void end_empty(pcclComm_t *c, uint32_t slot, pcclReduceInfo_t *info)
{
	if (info)
		*info = (pcclReduceInfo_t){.local_world_size = pccl_comm_view(c).group};
	pccl_slot_release(c, slot);
}

pcclResult_t pccl_reduce_await(pcclComm_t *c, uint32_t slot, pcclReduceInfo_t *info)
{
	struct pccl_outcome end = {.att = c->ops[slot].att};

	if (c->ops[slot].count == 0) {
		end_empty(c, slot, info);
		return pcclSuccess;
	}
	take_end(c, slot, &end);
	tell(c, &end);
	if (end.result == pcclSuccess && info)
		*info = end.info;
	pccl_slot_release(c, slot);
	return end.result;
}

void pccl_reduce_abandon(pcclComm_t *c)
{
	for (uint32_t i = 0; i < SHM_SLOTS; i++) {
		struct pccl_op *op = &c->ops[i];
		struct progress p = {.op = op};

		if (op->state == PCCL_OP_FREE)
			continue;
		if (op->job.comm)
			pccl_copier_stop(&op->job);
		/* Only results that the agent writes directly into `out` must be restored. A result
		 * that is complete may stay. */
		p.slot = pccl_attachment_slot(op->att, i);
		if ((op->in || op->out) && atomic_load(&p.slot->state) != SHM_SLOT_DONE)
			pccl_attachment_await_closed(op->att);
		if (op->out) {
			learn(&p, true);
			if (atomic_load(&p.slot->state) != SHM_SLOT_DONE ||
				pccl_read32(&p.slot->code) != pcclSuccess)
				(void)take_back(&p);
			pccl_result_put(op->att, p.result);
		}
		pccl_slot_release(c, i);
	}
}
