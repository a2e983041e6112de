/* SPDX-License-Identifier: MIT
 *
 * Communicators' queue pairs. Everything that the shim writes in them is hostile. So entries are
 * copied before they are checked, only the agent's own head counts, and values that the agent wrote
 * are never read back.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/cc_futex.h"
#include "common/cc_limit.h"
#include "common/cc_shm.h"
#include "pcclagentd/local/loc_internal.h"
#include "pcclagentd/engine/engine.h"
#include "pcclagentd/state/state.h"
#include "proto/shm_submit.h"

static struct shm_sq *sq_of(const struct loc_comm *c)
{
	return (struct shm_sq *)(void *)((char *)c->map + SHM_SQ_OFF);
}

static struct shm_attr *attr_of(const struct loc_comm *c)
{
	return (struct shm_attr *)(void *)((char *)c->map + SHM_ATTR_OFF);
}

struct shm_slot *loc_comm_slot(const struct loc_comm *c, uint32_t slot)
{
	return (struct shm_slot *)(void *)((char *)c->map + SHM_SLOT_OFF) + slot;
}

struct loc_comm *loc_comm_find(struct loc *loc, uint32_t id)
{
	struct loc_comm *c;

	HASH_FIND(hh, loc->comms, &id, sizeof id, c);
	return c;
}

void loc_comm_unref(struct loc_comm *c)
{
	if (--c->refs > 0)
		return;
	cc_shm_unmap(c->map, SHM_SIZE);
	free(c);
}

/* ---- submissions ---- */

/* Returns the region if it belongs to the communicator's process, or NULL. */
static struct loc_region *own_region(struct loc *loc, const struct loc_comm *c, uint64_t id)
{
	struct loc_region *r = loc_region_find(loc, id);

	return r && r->session == c->session ? r : NULL;
}

/* Copies the shim's reason from the slot. The shim may still be writing to it. */
static void copy_reason(const struct loc_comm *c, uint32_t slot, char text[SHM_TEXT])
{
	memcpy(text, loc_comm_slot(c, slot)->text, SHM_TEXT);
	text[SHM_TEXT - 1] = '\0';
}

/* Handles an entry. e: the agent's copy of it. False: the entry is malformed, and the session was
 * closed. */
static bool submit(struct loc *loc, struct loc_comm *c, const struct shm_sqe *e)
{
	struct loc_region *in = own_region(loc, c, e->in_region);
	struct loc_region *out = own_region(loc, c, e->out_region);
	struct shm_submit_limits lim = {
		.busy = c->busy, .in_size = in ? in->size : 0, .out_size = out ? out->size : 0};
	struct agt_event ev = {.type = AGT_EV_SUBMIT, .comm = c->id, .slot = e->slot};
	struct shm_submission sub;
	struct comm_slot *s;
	char why[SHM_TEXT];
	int err = shm_submission_get(e, &lim, &sub, why);

	if (err == CC_ERR_PROTO) {
		loc_session_drop(
			loc, c->session, WIRE_INVALID_ARGUMENT, "malformed submission: %s", why);
		return false;
	}
	if (err == 0 && sub.is_sync && !sub.refused && in->use != WL_REGION_STATE) {
		err = CC_ERR_INVAL;
		snprintf(why, sizeof why,
			"region: %" PRIu64
			" cannot hold a manifest: it was not allocated for use STATE",
			in->id);
	}
	s = &c->slot[e->slot];
	c->busy |= UINT64_C(1) << e->slot;
	s->gen++;
	atomic_store_explicit(
		&loc_comm_slot(c, e->slot)->mode, SHM_RESULT_NONE, memory_order_relaxed);
	if (err < 0) {
		ev.code = WIRE_INVALID_ARGUMENT;
		ev.text = why;
	} else if (sub.refused) {
		copy_reason(c, e->slot, why);
		ev.sub = &sub;
		ev.text = why;
	} else {
		ev.sub = &sub;
		s->in = loc_region_ref(in);
		s->out = sub.out_registered ? loc_region_ref(out) : NULL;
	}
	if (err == 0 && sub.is_sync && !sub.refused)
		loc_manifest_check(loc, c, &sub, in);
	else
		ev_post(loc->base, &ev);
	return true;
}

/* Takes one entry. False: the communicator is gone. */
static bool take_entry(struct loc *loc, struct loc_comm *c)
{
	struct shm_sqe *ring = (struct shm_sqe *)(void *)((char *)c->map + SHM_SQE_OFF);
	struct shm_sqe e;

	memcpy(&e, &ring[c->head % SHM_SLOTS], sizeof e);
	/* From here on only the copy is read, not the ring. */
	atomic_thread_fence(memory_order_seq_cst);
	atomic_store_explicit(&sq_of(c)->head, ++c->head, memory_order_release);
	return submit(loc, c, &e) && !c->closed;
}

static void drain_later(void *arg);

/* Takes the entries of the ring. The caller must hold a reference, because a submission may close
 * the communicator. */
static void drain(struct loc_comm *c)
{
	struct loc *loc = c->loc;

	for (uint32_t i = 0; i < SHM_SLOTS && !c->closed && !c->checking; i++) {
		uint32_t tail = atomic_load_explicit(&sq_of(c)->tail, memory_order_acquire);

		if (tail == c->head)
			return;
		if (tail - c->head > SHM_SLOTS) {
			loc_session_drop(loc, c->session, WIRE_INVALID_ARGUMENT,
				"malformed submission ring: it claims %" PRIu32
				" entries, but holds at most %u",
				tail - c->head, SHM_SLOTS);
			return;
		}
		if (!take_entry(loc, c))
			return;
	}
	/* The doorbell does not ring again for entries that are there already. */
	if (!c->closed && !c->checking && !c->draining &&
		cc_loop_defer(loc->base->loop, drain_later, c) == 0) {
		c->draining = true;
		c->refs++;
	}
}

/* If all submissions of the process have been taken, reports that the process waits until any of
 * its operations ends. */
static void take_any(struct loc_comm *c)
{
	struct agt_event ev = {.type = AGT_EV_ASLEEP_ANY, .comm = c->id};
	uint64_t any = atomic_load(&sq_of(c)->any);

	ev.n_ops = (uint32_t)any;
	if (any > 0 && !c->closed && (uint32_t)(any >> 32) == c->head)
		ev_post(c->loc->base, &ev);
}

static void drain_later(void *arg)
{
	struct loc_comm *c = arg;

	c->draining = false;
	if (!c->closed)
		drain(c);
	take_any(c);
	loc_comm_unref(c);
}

/* Reports the slots whose callers have fallen asleep. Their submissions have been taken by now. */
static void take_asleep(struct loc_comm *c)
{
	struct agt_event ev = {.type = AGT_EV_ASLEEP, .comm = c->id};
	_Atomic uint64_t *word = &sq_of(c)->asleep;
	uint64_t asleep;

	if (c->closed || atomic_load_explicit(word, memory_order_relaxed) == 0)
		return;
	asleep = atomic_exchange(word, 0);
	for (ev.slot = 0; ev.slot < SHM_SLOTS && !c->closed; ev.slot++)
		if (asleep >> ev.slot & 1)
			ev_post(c->loc->base, &ev);
}

static void on_bell(void *arg)
{
	struct loc_comm *c = arg;

	c->refs++;
	if (c->awaited) {
		c->awaited = false;
		c->loc->ops->doorbell(c->loc->arg);
	}
	drain(c);
	take_asleep(c);
	take_any(c);
	loc_comm_unref(c);
}

void loc_comm_checked(struct loc *loc, struct loc_comm *c, const struct shm_submission *sub,
	struct loc_manifest *m, uint32_t code, const char *text)
{
	struct agt_event ev = {
		.type = AGT_EV_SUBMIT, .comm = c->id, .slot = sub->slot, .text = text};
	struct shm_submission told = *sub;
	bool others_wait = c->checking;

	c->checking = false;
	if (c->closed) {
		if (m)
			loc_manifest_leave(m);
		if (m)
			loc_manifest_unref(m);
		return;
	}
	c->slot[sub->slot].manifest = m;
	if (!m)
		told.refused = code;
	ev.sub = &told;
	ev_post(loc->base, &ev);
	if (others_wait)
		drain(c);
}

/* ---- the engines' doorbell ---- */

static void leave_engine(struct loc_comm *c)
{
	if (c->eng)
		eng_bell_remove(c->eng, c->data_bell);
	c->eng = NULL;
}

static void leave_state(struct loc_comm *c)
{
	if (c->ste)
		ste_bell_remove(c->ste, c->data_bell);
	c->ste = NULL;
}

int loc_comm_use_engine(struct loc_comm *c, struct eng *e)
{
	int err;

	if (c->closed || c->eng == e)
		return 0;
	leave_engine(c);
	err = eng_bell_add(e, c->data_bell);
	if (err == 0)
		c->eng = e;
	return err;
}

int loc_comm_use_state(struct loc_comm *c, struct ste *e)
{
	int err;

	if (c->closed || c->ste == e)
		return 0;
	leave_state(c);
	err = ste_bell_add(e, c->data_bell);
	if (err == 0)
		c->ste = e;
	return err;
}

void loc_comms_leave_engine(struct loc *loc, const struct eng *e)
{
	struct loc_comm *c, *tmp;

	HASH_ITER (hh, loc->comms, c, tmp) {
		if (e && c->eng == e)
			leave_engine(c);
	}
}

void loc_comms_leave_state(struct loc *loc, const struct ste *e)
{
	struct loc_comm *c, *tmp;

	HASH_ITER (hh, loc->comms, c, tmp) {
		if (e && c->ste == e)
			leave_state(c);
	}
}

/* ---- opening and closing ---- */

/* Makes the queue pair. Returns 0 or CC_ERR_*. After an error, *ret_call is the system call that
 * has failed, and errno is set. */
static int make_comm(struct loc *loc, struct loc_comm *c, int *ret_fd, const char **ret_call)
{
	struct shm_header *h;
	int err = cc_shm_create("pccl-queue", SHM_SIZE, ret_fd, &c->map), error;

	*ret_call = cc_shm_failed_call();
	if (err < 0)
		return err;
	h = c->map;
	*h = (struct shm_header){SHM_MAGIC, SHM_VERSION, SHM_SLOTS, SHM_SIZE};
	*ret_call = "eventfd";
	c->sq_bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->data_bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->sq_bell < 0 || c->data_bell < 0)
		goto err;
	*ret_call = "epoll_ctl";
	c->watch = cc_watch_new(loc->base->loop, c->sq_bell, true, on_bell, c);
	if (!c->watch)
		goto err;
	return 0;
err:
	error = errno;
	if (c->data_bell >= 0)
		close(c->data_bell);
	if (c->sq_bell >= 0)
		close(c->sq_bell);
	close(*ret_fd);
	cc_shm_unmap(c->map, SHM_SIZE);
	errno = error;
	return CC_ERR_IO;
}

/* Refuses a communicator for lack of resources. A communicator that is already a member cannot be
 * refused, so its session is closed; its process comes back and attaches again. */
static void refuse_comm(struct loc *loc, uint32_t session, uint32_t id, uint32_t req_id,
	const struct agt_attrs *attrs, const char *call)
{
	struct agt_event ev = {.type = AGT_EV_COMM_UNOPENED, .comm = id};
	struct wl_reply r = {.req_id = req_id,
		.code = cc_limit_is(errno) ? WIRE_OUT_OF_MEMORY : WIRE_INTERNAL_ERROR};
	char limit[CC_LIMIT_TEXT];

	snprintf(r.text, sizeof r.text, "the agent has no resources for another communicator: %s",
		cc_limit_call_text(call, errno, 0, limit, sizeof limit));
	if (attrs->state == SHM_COMM_CONNECTED) {
		loc_session_drop(loc, session, r.code, "%s", r.text);
		return;
	}
	rep_complain(&loc->base->report, CC_LOG_WARNING, "%s", r.text);
	loc_session_reply(loc, session, &r, NULL, 0);
	ev_post(loc->base, &ev);
}

void loc_comm_open(struct loc *loc, uint32_t session, uint32_t id, const struct wl_reply *reply,
	const struct agt_attrs *attrs)
{
	struct loc_comm *c = calloc(1, sizeof *c);
	const struct session *s = loc_session_find(loc, session);
	const char *call;
	int fds[3];

	if (!c)
		rep_out_of_memory("communicators");
	if (!s) { /* the session's end is among the events that wait */
		free(c);
		return;
	}
	*c = (struct loc_comm){.loc = loc,
		.id = id,
		.session = session,
		.uid = s->uid,
		.refs = 1,
		.sq_bell = -1,
		.data_bell = -1};
	if (make_comm(loc, c, &fds[0], &call) < 0) {
		free(c);
		refuse_comm(loc, session, id, reply->req_id, attrs, call);
		return;
	}
	HASH_ADD(hh, loc->comms, id, sizeof c->id, c);
	loc_comm_publish(loc, id, attrs);
	fds[1] = c->sq_bell;
	fds[2] = c->data_bell;
	loc_session_reply(loc, session, reply, fds, 3);
	close(fds[0]);
}

static void release_slot(struct loc *loc, struct loc_comm *c, uint32_t slot)
{
	struct comm_slot *s = &c->slot[slot];

	loc_region_unref(loc, s->in);
	loc_region_unref(loc, s->out);
	if (s->manifest) {
		loc_manifest_leave(s->manifest);
		loc_manifest_unref(s->manifest);
	}
	s->manifest = NULL;
	s->in = NULL;
	s->out = NULL;
	c->busy &= ~(UINT64_C(1) << slot);
}

static void close_comm(struct loc *loc, struct loc_comm *c)
{
	HASH_DEL(loc->comms, c);
	c->closed = true;
	loc_result_comm_closed(loc, c);
	leave_engine(c);
	leave_state(c);
	cc_watch_free(c->watch);
	close(c->sq_bell);
	close(c->data_bell);
	for (uint32_t i = 0; i < SHM_SLOTS; i++)
		release_slot(loc, c, i);
	loc->ops->comm_closed(loc->arg, c->id);
	loc_comm_unref(c);
}

void loc_comm_close(struct loc *loc, uint32_t id)
{
	struct loc_comm *c = loc_comm_find(loc, id);

	if (c)
		close_comm(loc, c);
}

void loc_comm_close_all(struct loc *loc)
{
	while (loc->comms)
		close_comm(loc, loc->comms);
}

/* ---- values for the shim ---- */

static void publish_master_addr(struct shm_attr *t, const struct cc_addr *at)
{
	const uint8_t *ip = at->ip;

	atomic_store_explicit(&t->at_family, at->family, memory_order_relaxed);
	atomic_store_explicit(&t->at_port, at->port, memory_order_relaxed);
	for (unsigned i = 0; i < 4; i++, ip += 4)
		atomic_store_explicit(&t->at_ip[i],
			(uint32_t)ip[0] | (uint32_t)ip[1] << 8 | (uint32_t)ip[2] << 16 |
				(uint32_t)ip[3] << 24,
			memory_order_relaxed);
}

void loc_comm_publish(struct loc *loc, uint32_t id, const struct agt_attrs *a)
{
	struct loc_comm *c = loc_comm_find(loc, id);
	struct shm_attr *t;
	uint32_t v;

	if (!c)
		return;
	t = attr_of(c);
	v = c->attr_version + 1;
	c->attr_version += 2;
	atomic_store_explicit(&t->version, v, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&t->state, a->state, memory_order_relaxed);
	atomic_store_explicit(&t->hosts, a->hosts, memory_order_relaxed);
	atomic_store_explicit(&t->pos, a->pos, memory_order_relaxed);
	atomic_store_explicit(&t->code, a->code, memory_order_relaxed);
	memcpy(t->text, a->text, sizeof t->text);
	publish_master_addr(t, &a->at);
	atomic_store_explicit(&t->view_id, a->view_id, memory_order_relaxed);
	atomic_store_explicit(&t->global, a->global, memory_order_relaxed);
	atomic_store_explicit(&t->round, a->round, memory_order_relaxed);
	atomic_store_explicit(&t->rounds, a->rounds, memory_order_relaxed);
	atomic_store_explicit(&t->version, v + 1, memory_order_release);
}

void loc_comm_put_view(struct shm_slot *s, const struct wire_view *w)
{
	/* This process may die between any two of these stores. */
	__atomic_store_n(&s->view.view_id, 0, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_release);
	s->view.global = w->global;
	s->view.group = w->group;
	s->view.groups = w->groups;
	s->view.largest = w->largest;
	__atomic_store_n(&s->view.view_id, w->view_id, __ATOMIC_RELEASE);
}

void loc_comm_complete(struct loc *loc, uint32_t id, uint32_t slot, const struct agt_done *done)
{
	struct loc_comm *c = loc_comm_find(loc, id);
	struct shm_slot *s;

	if (!c || slot >= SHM_SLOTS)
		return;
	release_slot(loc, c, slot);
	s = loc_comm_slot(c, slot);
	s->local_world_size = done->world_size;
	s->generation = done->generation;
	loc_comm_put_view(s, &done->after);
	s->tx_bytes = done->tx_bytes;
	s->rx_bytes = done->rx_bytes;
	s->revision = done->revision;
	s->code = done->code;
	memcpy(s->text, done->text, sizeof s->text);
	atomic_store(&s->state, SHM_SLOT_DONE);
	if (atomic_exchange(&s->wait, SHM_WAIT_AWAKE) != SHM_WAIT_AWAKE)
		cc_futex_wake(&s->wait, INT32_MAX);
}

bool loc_comm_holds(const struct loc_reader *h)
{
	const struct comm_slot *s = &h->comm->slot[h->slot];

	if (h->comm->closed || s->gen != h->gen)
		return false;
	return (h->comm->busy >> h->slot & 1) ||
	       atomic_load_explicit(&loc_comm_slot(h->comm, h->slot)->state,
		       memory_order_acquire) == SHM_SLOT_DONE;
}

/* ---- for other parts of the agent ---- */

uint32_t loc_comm_uid(const struct loc_comm *c)
{
	return c->uid;
}

struct loc_comm *loc_comm_ref(struct loc_comm *c)
{
	c->refs++;
	return c;
}

void loc_comm_await_operand(struct loc_comm *c)
{
	c->awaited = true;
}

bool loc_process_of(const struct loc_comm *c, struct loc_process *ret)
{
	const struct session *s = loc_session_find(c->loc, c->session);

	if (s)
		*ret = (struct loc_process){
			.pid = s->process.pid, .stopped = s->stopped, .name = s->name};
	return s != NULL;
}

bool loc_member_take(struct loc *loc, uint32_t comm, uint32_t slot, struct loc_member *ret)
{
	struct loc_comm *c = loc_comm_find(loc, comm);
	struct comm_slot *s = c ? &c->slot[slot] : NULL;

	if (!s || !s->in)
		return false;
	c->refs++;
	*ret = (struct loc_member){.h = {c, slot, s->gen},
		.in = loc_region_ref(s->in),
		.out = s->out ? loc_region_ref(s->out) : NULL};
	return true;
}

void loc_member_release(struct loc *loc, struct loc_member *m)
{
	loc_region_unref(loc, m->in);
	loc_region_unref(loc, m->out);
	loc_comm_unref(m->h.comm);
}

struct loc_manifest *loc_manifest_take(struct loc_comm *c, uint32_t slot)
{
	struct loc_manifest *m = c->slot[slot].manifest;

	if (m) {
		m->refs++;
		m->users++;
	}
	return m;
}
