/* SPDX-License-Identifier: MIT
 *
 * A synchronization of shared state: submits it, carries out the agent's commands while it lasts,
 * and handles its end.
 *
 * A command is copied out first and then checked against the library's own table. After a wrong
 * command this peer leaves the run, but no memory is corrupted. Commands can name memory of other
 * peers; this memory is mapped until the end.
 */
#include "libpccl-shim/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpccl-shim/comm.h"
#include "libpccl-shim/torn.h"
#include "libpccl-shim/region.h"
#include "libpccl-shim/session.h"
#include "libpccl-shim/slot.h"
#include "proto/shm_state.h"

static const char call_name[] = "pcclSynchronizeSharedState";

/* The number of mappings of other peers' memory. A job copies from few peers at a time. */
#define SEEN_MAX 8u

/* A synchronization that has been submitted. */
struct sync {
	pcclComm_t *c;
	struct pccl_state *st;
	const struct pccl_op *op;
	struct shm_slot *slot;
	uint8_t *map, *window; /* the manifest and its window */
	uint32_t strategy;
	uint64_t revision;
	uint32_t head, acked; /* numbers of commands copied out and acknowledged */
	struct pccl_map seen[SEEN_MAX];
	uint32_t n_seen;  /* mappings so far; new ones replace the oldest */
	uint64_t written; /* bytes that commands have written */
	bool bad;         /* a command was wrong or has failed: this peer has left the run */
};

/* ---- commands */

static const char *judge(const struct sync *y, const struct shm_state_command *c)
{
	const struct pccl_tensor *t;

	if (c->tensor >= y->st->n)
		return "there is no such tensor";
	t = &y->st->tensors[c->tensor];
	if (!shm_state_command_fits(c, t->bytes))
		return "it does not fit the tensor";
	if (t->may_differ)
		return "the tensor's contents may differ";
	if (c->op == SHM_STATE_WRITE && y->strategy == WM_STRATEGY_SEND_ONLY)
		return "this peer is send-only";
	if (c->op == SHM_STATE_READ && y->strategy == WM_STRATEGY_RECEIVE_ONLY)
		return "this peer is receive-only";
	return NULL;
}

/* Returns the mapping of another peer's memory, or NULL. */
static const struct pccl_map *see(struct sync *y, uint64_t region)
{
	struct pccl_map *m;

	for (m = y->seen; m < y->seen + SEEN_MAX; m++)
		if (m->base && m->region == region)
			return m;
	m = &y->seen[y->n_seen % SEEN_MAX];
	pccl_map_drop(m);
	if (pccl_region_named(y->op->att->session, y->op->att->id, region, m) != pcclSuccess)
		return NULL;
	y->n_seen++;
	return m;
}

/* Returns the bytes that a WRITE command copies, or NULL. */
static const uint8_t *find_bytes(struct sync *y, const struct shm_state_command *c)
{
	const struct pccl_map *m;

	if (c->from == 0)
		return y->window + (size_t)c->slot * SHM_STATE_SLOT;
	m = see(y, c->from);
	if (!m || c->from_off > m->size || c->len > m->size - c->from_off)
		return NULL;
	return m->base + c->from_off;
}

/* Has the range of the command the right hashes? */
static pcclResult_t compare(const struct sync *y, const struct shm_state_command *c, bool *ret)
{
	const struct pccl_buf *data = &y->st->tensors[c->tensor].data;
	pcclResult_t r = pcclSuccess;

	*ret = true;
	for (uint32_t i = 0; (uint64_t)i * WIRE_LEAF < c->len && *ret && r == pcclSuccess; i++) {
		uint32_t at = i * WIRE_LEAF,
			 len = c->len - at < WIRE_LEAF ? c->len - at : WIRE_LEAF;
		uint64_t hash;

		r = pccl_buf_leaf(
			data, c->off + at, len, y->st->leaf, c->off / WIRE_LEAF + i, &hash);
		*ret = r == pcclSuccess && hash == c->leaves[i];
	}
	return r;
}

/* Carries out a command. *ret: its acknowledgement. */
static pcclResult_t carry_out(struct sync *y, const struct shm_state_command *c, uint32_t *ret)
{
	const struct pccl_buf *data = &y->st->tensors[c->tensor].data;
	const uint8_t *bytes;
	pcclResult_t r;
	bool right = true;

	*ret = c->slot;
	if (c->op == SHM_STATE_READ)
		return pccl_buf_copy_in(
			data, c->off, y->window + (size_t)c->slot * SHM_STATE_SLOT, c->len);
	bytes = find_bytes(y, c);
	if (!bytes) {
		*ret |= SHM_STATE_UNSEEN;
		return pcclSuccess;
	}
	y->written += c->len; /* also if the copy fails: then a part may have been written */
	r = pccl_buf_copy_out(data, c->off, bytes, c->len, 0);
	if (r == pcclSuccess && c->from != 0)
		r = compare(y, c, &right);
	if (!right)
		*ret |= SHM_STATE_WRONG;
	return r;
}

static void acknowledge(struct sync *y, uint32_t what)
{
	struct shm_state_acks *a = (void *)(y->map + SHM_STATE_ACK_OFF);

	atomic_store_explicit(&a->v[y->acked % SHM_STATE_SLOTS], what, memory_order_relaxed);
	atomic_store(&a->tail, ++y->acked);
	pccl_slot_progress(y->op, y->slot, false);
}

/* Makes this peer leave the run. The library no longer waits for this agent. */
static void leave(struct sync *y, pcclResult_t code, const char *text, const char *others)
{
	y->bad = true;
	(void)pccl_comm_leave(y->c, code, text, others);
}

/* Leaves the run, because the agent gave a wrong command. */
static void leave_wrong(struct sync *y, const char *why)
{
	char text[PCCL_TEXT_MAX];

	snprintf(text, sizeof text,
		"the agent gave a command that cannot be carried out (%s); please report it", why);
	leave(y, pcclInternalError, text, text);
}

/* Leaves the run, because a tensor cannot be read or written. The reason is `r` and the thread's
 * sentence. Otherwise the other peers would wait for this command. */
static void leave_failed(struct sync *y, const struct shm_state_command *c, pcclResult_t r)
{
	char why[PCCL_TEXT_MAX], text[PCCL_TEXT_MAX], others[PCCL_TEXT_MAX];

	pccl_fail_text(why);
	snprintf(text, sizeof text,
		"this peer cannot take part in a synchronization: infos[%u]: %.400s",
		y->st->tensors[c->tensor].index, why);
	snprintf(others, sizeof others, "it cannot take part in a synchronization: %.400s", why);
	leave(y, r, text, others);
}

/* Carries out the next command. Returns true if there was a command and it was valid. */
static bool look(void *arg)
{
	struct sync *y = arg;
	struct shm_state_commands *q = (void *)(y->map + SHM_STATE_CMD_OFF);
	struct shm_state_command c;
	uint32_t ack;
	const char *why;
	pcclResult_t r;

	if (y->bad || atomic_load(&q->tail) == y->head)
		return false;
	memcpy(&c, &q->v[y->head % SHM_STATE_SLOTS], sizeof c);
	/* Keeps the compiler from reading the command in the queue a second time, instead of
	 * reading the copy. */
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&q->head, ++y->head, memory_order_release);
	why = judge(y, &c);
	if (why) {
		leave_wrong(y, why);
		return false;
	}
	r = carry_out(y, &c, &ack);
	if (r != pcclSuccess) {
		leave_failed(y, &c, r);
		return false;
	}
	acknowledge(y, ack);
	return true;
}

static uint32_t wanted(const void *arg)
{
	(void)arg;
	return SHM_WAIT_COMMANDS;
}

/* ---- the end */

static bool has_registered(const struct pccl_state *st)
{
	for (size_t i = 0; i < st->n; i++)
		if (st->tensors[i].reg)
			return true;
	return false;
}

/* Returns the end record of the manifest. y->map must not be NULL. */
static const struct shm_state_end *end_of(const struct sync *y)
{
	return (void *)(y->map + SHM_STATE_END_OFF);
}

/* May tensors have been written? */
static bool is_spoiled(const struct sync *y)
{
	if (y->strategy == WM_STRATEGY_SEND_ONLY)
		return false;
	/* After this peer has left its agent, the agent may still write to registered memory. */
	return y->written > 0 || atomic_load(&end_of(y)->touched) != 0 ||
	       (y->bad && has_registered(y->st));
}

/* Remembers the contents of the tensors as torn. If the contents are still those of the manifest,
 * nothing was written, and nothing is remembered. */
static void keep_torn(const struct sync *y)
{
	uint64_t now[2];

	if (pccl_state_digest(y->st, y->op->att, now) &&
		memcmp(now, y->st->content, sizeof now) != 0)
		pccl_torn_keep(now);
}

/* Fails the synchronization. If the synchronization may have written tensors, remembers torn
 * contents and extends the sentence. */
static pcclResult_t fail(const struct sync *y, pcclResult_t r)
{
	char text[PCCL_TEXT_MAX];

	if (!y->map || !is_spoiled(y))
		return r;
	y->st->torn = atomic_load(&end_of(y)->complete) != 1;
	y->st->torn_revision = y->revision;
	pccl_fail_text(text);
	if (y->st->torn)
		keep_torn(y);
	return pccl_fail(r,
		"%s; tensors of this peer may have been written in part, and the next "
		"synchronization that succeeds repairs them",
		text);
}

static pcclResult_t end_by_slot(
	const struct sync *y, uint64_t *ret_revision, pcclSharedStateSyncInfo_t *ret_info)
{
	const struct shm_slot *s = y->slot;
	uint32_t code = pccl_read32(&s->code);

	pccl_comm_knows(y->c, pccl_read64(&s->generation));
	pccl_slot_set_view(y->c, s);
	if (code != pcclSuccess) {
		pccl_comm_lost_code(y->c, y->op->att, code);
		return fail(y, pccl_slot_fail(y->c, s, code));
	}
	pccl_comm_note_success(y->c, pccl_read64(&s->seq));
	pccl_comm_note_survived(y->c, y->op);
	*ret_revision = pccl_read64(&s->revision);
	*ret_info = (pcclSharedStateSyncInfo_t){
		.tx_bytes = pccl_read64(&s->tx_bytes), .rx_bytes = pccl_read64(&s->rx_bytes)};
	return pcclSuccess;
}

/* Ends a synchronization whose agent was gone before it reported the end. Only the agent knew the
 * numbers of bytes. */
static pcclResult_t end_by_status(const struct sync *y, uint32_t slot, uint64_t *ret_revision,
	pcclSharedStateSyncInfo_t *ret_info)
{
	pcclResult_t r;

	switch (y->bad ? PCCL_END_GONE : pccl_comm_end_status(y->c, slot)) {
	case PCCL_END_NONE: /* the agent reported the end at the last moment */
		return end_by_slot(y, ret_revision, ret_info);
	case PCCL_END_DONE:
		pccl_slot_set_view(y->c, y->slot); /* the view as of the start */
		pccl_comm_note_success(y->c, pccl_read64(&y->slot->seq));
		*ret_revision =
			y->map ? atomic_load_explicit(&end_of(y)->revision, memory_order_relaxed)
			       : 0;
		*ret_info = (pcclSharedStateSyncInfo_t){0};
		return pcclSuccess;
	case PCCL_END_GONE:
		pthread_mutex_lock(&y->c->lock);
		r = pccl_comm_fail_gone(y->c, true);
		pthread_mutex_unlock(&y->c->lock);
		return fail(y, r);
	default:
		pccl_comm_knows_death(y->c, y->op->att);
		pccl_comm_note_death(y->c, slot);
		return fail(
			y, pccl_fail(pcclRankConnectionLost,
				   "the agent of this host died during the synchronization: call "
				   "again"));
	}
}

/* Waits for the end of the synchronization, and frees the slot. */
static pcclResult_t await(pcclComm_t *c, const struct shm_sqe *e, uint64_t *ret_revision,
	pcclSharedStateSyncInfo_t *ret_info)
{
	const struct pccl_op *op = &c->ops[e->slot];
	struct sync y = {.c = c,
		.st = c->state,
		.op = op,
		.slot = pccl_attachment_slot(op->att, e->slot),
		.map = op->att->state.base,
		.window = op->att->state.base + c->state->window_off,
		.strategy = e->sync.strategy,
		.revision = e->sync.revision};
	const struct pccl_waiter w = {.look = look, .wanted = wanted, .arg = &y};
	bool done = pccl_slot_wait(c, e->slot, &w);
	pcclResult_t r;

	if ((!done || y.bad) && has_registered(y.st))
		pccl_comm_await_closed(c, op);
	if (done && !y.bad)
		r = end_by_slot(&y, ret_revision, ret_info);
	else
		r = end_by_status(&y, e->slot, ret_revision, ret_info);
	for (uint32_t i = 0; i < SEEN_MAX; i++)
		pccl_map_drop(&y.seen[i]);
	pccl_state_put(c->state);
	atomic_store_explicit(&y.slot->state, SHM_SLOT_FREE, memory_order_release);
	pccl_slot_release(c, e->slot);
	return r == pcclSuccess ? r : pccl_comm_spent(c, r);
}

static bool look_for_nothing(void *arg)
{
	(void)arg;
	return false;
}

static uint32_t want_the_end(const void *arg)
{
	(void)arg;
	return SHM_WAIT_DONE;
}

/* Refuses the synchronization with this code, because this peer cannot take part. All other peers
 * get the reason. */
static pcclResult_t refuse(pcclComm_t *c, struct shm_sqe *e, pcclResult_t why)
{
	struct sync y = {.c = c,
		.op = &c->ops[e->slot],
		.slot = pccl_attachment_slot(c->ops[e->slot].att, e->slot)};
	const struct pccl_waiter w = {.look = look_for_nothing, .wanted = want_the_end};
	pcclSharedStateSyncInfo_t info;
	uint64_t revision;
	pcclResult_t r;

	pccl_slot_refuse(c, e, why);
	pccl_slot_submit(c, e, 0, PCCL_OP_AWAITED);
	r = pccl_slot_wait(c, e->slot, &w) ? end_by_slot(&y, &revision, &info)
					   : end_by_status(&y, e->slot, &revision, &info);
	atomic_store_explicit(&y.slot->state, SHM_SLOT_FREE, memory_order_release);
	pccl_slot_release(c, e->slot);
	return r == pcclSuccess ? pccl_fail(pcclInternalError,
					  "the agent synchronized without this peer; please "
					  "report it")
				: pccl_comm_spent(c, r);
}

/* ---- the call */

/* Tries the synchronization once. ready: pcclSuccess if the tensors could be read, else the error.
 * Sets *again if the agent went away before it knew of the synchronization. */
static pcclResult_t try_it(pcclComm_t *c, const pcclSharedState_t *shared_state, uint32_t strategy,
	pcclResult_t ready, bool *again, uint64_t *ret_revision,
	pcclSharedStateSyncInfo_t *ret_info)
{
	bool synced = c->state && c->state->synced;
	struct shm_sqe e = {.flags = SHM_SQE_SYNC | (synced ? SHM_SQE_SYNCED : 0),
		.sync = {.strategy = strategy, .revision = shared_state->revision}};
	bool waiting = *again;
	struct pccl_attachment *a;
	struct pccl_attrs attrs;
	pcclResult_t r, taken = pcclSuccess;

	*again = false;
	r = pccl_comm_use(c, waiting, &a, &attrs);
	if (r != pcclSuccess)
		return r;
	r = ready == pcclSuccess ? pccl_state_manifest(c->state, a, &e.sync) : ready;
	if (r != pcclSuccess)
		*again = !pccl_session_check(a->session);
	/* Read the generation only now. If the agent has just been replaced after a death that the
	 * application knows of, the new agent has reported a newer generation. */
	e.generation = atomic_load(&c->known_generation);
	if (!*again)
		taken = pccl_slot_take(c, a, 0, call_name, &e.slot, again);
	if (taken != pcclSuccess || *again) {
		pccl_state_put(c->state);
		pccl_attachment_unref(a);
		return taken;
	}
	if (r == pcclSuccess) {
		c->ops[e.slot].manifest = a->state.base;
		c->ops[e.slot].bytes = e.sync.bytes;
		if (pccl_comm_is_fatal(c, &c->ops[e.slot]))
			r = pccl_comm_fail_fatal(&c->ops[e.slot]);
	}
	if (r != pcclSuccess) {
		c->ops[e.slot].manifest = NULL;
		pccl_state_put(c->state);
		return refuse(c, &e, r);
	}
	pccl_slot_submit(c, &e, 0, PCCL_OP_AWAITED);
	return await(c, &e, ret_revision, ret_info);
}

static pcclResult_t check_arguments(const pcclSharedState_t *shared_state, uint32_t strategy)
{
	if (!shared_state)
		return pccl_fail(pcclInvalidArgument, "shared_state must not be NULL");
	if (strategy > PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY)
		return pccl_fail(
			pcclInvalidArgument, "strategy: there is no strategy %d", (int)strategy);
	return pcclSuccess;
}

static pcclResult_t synchronize(pcclComm_t *c, pcclSharedState_t *shared_state, uint32_t strategy,
	pcclSharedStateSyncInfo_t *info)
{
	pcclSharedState_t none = {0};
	pcclSharedStateSyncInfo_t moved;
	uint64_t revision = 0;
	bool again = false;
	pcclResult_t r, ready;

	if (!c->state)
		c->state = calloc(1, sizeof *c->state);
	ready = check_arguments(shared_state, strategy);
	if (ready != pcclSuccess) {
		/* The other peers get the error, and the caller's shared_state is not read. */
		shared_state = &none;
		strategy = PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR;
	} else if (!c->state) {
		ready = pccl_fail_memory("no memory for a table of tensors");
	} else {
		c->state->bufs = (struct pccl_buf_call){
			.stream = atomic_load_explicit(&c->stream, memory_order_relaxed)};
		ready = pccl_state_read(c->state, shared_state);
		if (ready == pcclSuccess && shared_state->revision != c->state->torn_revision)
			c->state->torn = false;
	}
	/* Each repetition means that an agent has died. The reconnector limits their number. */
	do
		r = try_it(c, shared_state, strategy, ready, &again, &revision, &moved);
	while (again);
	if (c->state)
		pccl_buf_close(&c->state->bufs);
	if (r != pcclSuccess)
		return r;
	c->state->torn = false;
	pccl_torn_forget(c->state->content);
	c->state->synced = true;
	shared_state->revision = revision;
	if (info)
		*info = moved;
	return pccl_ok();
}

pcclResult_t pcclSynchronizeSharedState(const pcclComm_t *communicator,
	pcclSharedState_t *shared_state, pcclSharedStateSyncStrategy_t strategy,
	pcclSharedStateSyncInfo_t *sync_info_out)
{
	pcclComm_t *c = pccl_comm_own(communicator);
	pcclResult_t r = pccl_comm_check(c);
	struct pccl_ender outer;

	if (r == pcclSuccess)
		r = pccl_comm_check_optimized(c);
	if (r == pcclSuccess)
		r = pccl_comm_begin(c, call_name, pcclPendingAsyncOps);
	if (r != pcclSuccess)
		return r;
	outer = pccl_comm_enter(c);
	r = synchronize(c, shared_state, (uint32_t)strategy, sync_info_out);
	(void)pccl_session_endable(outer);
	pccl_comm_end(c);
	return r;
}
