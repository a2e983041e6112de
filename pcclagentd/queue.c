/* SPDX-License-Identifier: MIT
 *
 * Communicators' queue pairs. Everything in them that the shim writes is hostile: entries are
 * copied out before they are looked at, our own head counts, and what we wrote is never read back.
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
#include "pcclagentd/findings.h"
#include "pcclagentd/io.h"
#include "proto/shm_submit.h"

static struct shm_sq *sq_of(const struct comm *c)
{
	return (struct shm_sq *)(void *)((char *)c->map + SHM_SQ_OFF);
}

static struct shm_attr *attr_of(const struct comm *c)
{
	return (struct shm_attr *)(void *)((char *)c->map + SHM_ATTR_OFF);
}

struct shm_slot *comm_slot(const struct comm *c, uint32_t slot)
{
	return (struct shm_slot *)(void *)((char *)c->map + SHM_SLOT_OFF) + slot;
}

struct comm *comm_find(struct agentd *d, uint32_t id)
{
	struct comm *c;

	HASH_FIND(hh, d->comms, &id, sizeof id, c);
	return c;
}

void comm_unref(struct comm *c)
{
	if (--c->refs > 0)
		return;
	cc_shm_unmap(c->map, SHM_SIZE);
	free(c);
}

/* ---- submissions ---- */

/* NULL unless the region is one of the communicator's own process. */
static struct region *own_region(struct agentd *d, const struct comm *c, uint64_t id)
{
	struct region *r = region_find(d, id);

	return r && r->session == c->session ? r : NULL;
}

/* The shim may be writing to it still. */
static void copy_reason(const struct comm *c, uint32_t slot, char text[SHM_TEXT])
{
	memcpy(text, comm_slot(c, slot)->text, SHM_TEXT);
	text[SHM_TEXT - 1] = '\0';
}

/* e is our copy. False: it is no entry, the session has been dropped. */
static bool submit(struct agentd *d, struct comm *c, const struct shm_sqe *e)
{
	struct region *in = own_region(d, c, e->in_region);
	struct region *out = own_region(d, c, e->out_region);
	struct shm_submit_limits lim = {
		.busy = c->busy, .in_size = in ? in->size : 0, .out_size = out ? out->size : 0};
	struct agt_event ev = {.type = AGT_EV_SUBMIT, .comm = c->id, .slot = e->slot};
	struct shm_submission sub;
	struct comm_slot *s;
	char why[SHM_TEXT];
	int err = shm_submission_get(e, &lim, &sub, why);

	if (err == CC_ERR_PROTO) {
		session_drop(d, c->session, WIRE_INVALID_ARGUMENT, "malformed submission: %s", why);
		return false;
	}
	if (err == 0 && sub.is_sync && !sub.refused && in->use != WL_REGION_STATE) {
		err = CC_ERR_INVAL;
		snprintf(why, sizeof why, "region: %" PRIu64 " is not for manifests (use STATE)",
			in->id);
	}
	s = &c->slot[e->slot];
	c->busy |= UINT64_C(1) << e->slot;
	s->gen++;
	atomic_store_explicit(&comm_slot(c, e->slot)->mode, SHM_RESULT_NONE, memory_order_relaxed);
	if (err < 0) {
		ev.code = WIRE_INVALID_ARGUMENT;
		ev.text = why;
	} else if (sub.refused) {
		copy_reason(c, e->slot, why);
		ev.sub = &sub;
		ev.text = why;
	} else {
		ev.sub = &sub;
		s->in = region_ref(in);
		s->out = sub.out_registered ? region_ref(out) : NULL;
	}
	if (err == 0 && sub.is_sync && !sub.refused)
		manifest_check(d, c, &sub, in);
	else
		agentd_feed(d, &ev);
	return true;
}

/* One entry. False: the comm is gone. */
static bool take_entry(struct agentd *d, struct comm *c)
{
	struct shm_sqe *ring = (struct shm_sqe *)(void *)((char *)c->map + SHM_SQE_OFF);
	struct shm_sqe e;

	memcpy(&e, &ring[c->head % SHM_SLOTS], sizeof e);
	/* From here on the copy is looked at, not the ring. */
	atomic_thread_fence(memory_order_seq_cst);
	atomic_store_explicit(&sq_of(c)->head, ++c->head, memory_order_release);
	return submit(d, c, &e) && !c->closed;
}

static void drain_later(void *arg);

/* The caller holds a reference: what is submitted may close the communicator. */
static void drain(struct comm *c)
{
	struct agentd *d = c->d;

	for (uint32_t i = 0; i < SHM_SLOTS && !c->closed && !c->checking; i++) {
		uint32_t tail = atomic_load_explicit(&sq_of(c)->tail, memory_order_acquire);

		if (tail == c->head)
			return;
		if (tail - c->head > SHM_SLOTS) {
			session_drop(d, c->session, WIRE_INVALID_ARGUMENT,
				"malformed submission ring: %" PRIu32 " entries, it holds %u",
				tail - c->head, SHM_SLOTS);
			return;
		}
		if (!take_entry(d, c))
			return;
	}
	/* The doorbell will not tell again of what is there already. */
	if (!c->closed && !c->checking && !c->draining &&
		cc_loop_defer(d->loop, drain_later, c) == 0) {
		c->draining = true;
		c->refs++;
	}
}

/* Its caller waits until any of its operations ends. True of what has been taken only. */
static void take_any(struct comm *c)
{
	struct agt_event ev = {.type = AGT_EV_ASLEEP_ANY, .comm = c->id};
	uint64_t any = atomic_load(&sq_of(c)->any);

	ev.n_ops = (uint32_t)any;
	if (any > 0 && !c->closed && (uint32_t)(any >> 32) == c->head)
		agentd_feed(c->d, &ev);
}

static void drain_later(void *arg)
{
	struct comm *c = arg;

	c->draining = false;
	if (!c->closed)
		drain(c);
	take_any(c);
	comm_unref(c);
}

/* Whose callers have fallen asleep. What they wait for has been taken by now. */
static void take_asleep(struct comm *c)
{
	struct agt_event ev = {.type = AGT_EV_ASLEEP, .comm = c->id};
	_Atomic uint64_t *word = &sq_of(c)->asleep;
	uint64_t asleep;

	if (c->closed || atomic_load_explicit(word, memory_order_relaxed) == 0)
		return;
	asleep = atomic_exchange(word, 0);
	for (ev.slot = 0; ev.slot < SHM_SLOTS && !c->closed; ev.slot++)
		if (asleep >> ev.slot & 1)
			agentd_feed(c->d, &ev);
}

static void on_bell(void *arg)
{
	struct comm *c = arg;

	c->refs++;
	if (c->awaited) {
		c->awaited = false;
		small_fed(c->d);
	}
	drain(c);
	take_asleep(c);
	take_any(c);
	comm_unref(c);
}

void comm_checked(struct agentd *d, struct comm *c, const struct shm_submission *sub,
	struct manifest *m, uint32_t code, const char *text)
{
	struct agt_event ev = {
		.type = AGT_EV_SUBMIT, .comm = c->id, .slot = sub->slot, .text = text};
	struct shm_submission told = *sub;
	bool others_wait = c->checking;

	c->checking = false;
	if (c->closed) {
		if (m)
			manifest_leave(m);
		if (m)
			manifest_unref(m);
		return;
	}
	c->slot[sub->slot].manifest = m;
	if (!m)
		told.refused = code;
	ev.sub = &told;
	agentd_feed(d, &ev);
	if (others_wait)
		drain(c);
}

/* ---- opening and closing ---- */

/* ret_call: the system call that has failed; errno says why. */
static int make_comm(struct agentd *d, struct comm *c, int *ret_fd, const char **ret_call)
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
	c->watch = cc_watch_new(d->loop, c->sq_bell, true, on_bell, c);
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

/* There is nothing to take its place for one that is a member already: its process comes back. */
static void refuse_comm(struct agentd *d, uint32_t session, uint32_t id, uint32_t req_id,
	const struct agt_attrs *attrs, const char *call)
{
	struct agt_event ev = {.type = AGT_EV_COMM_UNOPENED, .comm = id};
	struct wl_reply r = {.req_id = req_id,
		.code = cc_limit_is(errno) ? WIRE_OUT_OF_MEMORY : WIRE_INTERNAL_ERROR};
	char limit[CC_LIMIT_TEXT];

	snprintf(r.text, sizeof r.text,
		"the agent could not get what another communicator takes: %s",
		cc_limit_call_text(call, errno, 0, limit, sizeof limit));
	if (attrs->state == SHM_COMM_CONNECTED) {
		session_drop(d, session, r.code, "%s", r.text);
		return;
	}
	agentd_complain(d, CC_LOG_WARNING, "%s", r.text);
	session_reply(d, session, &r, NULL, 0);
	agentd_feed(d, &ev);
}

void comm_open(struct agentd *d, uint32_t session, uint32_t id, const struct wl_reply *reply,
	const struct agt_attrs *attrs)
{
	struct comm *c = calloc(1, sizeof *c);
	struct session *s;
	const char *call;
	int fds[3];

	HASH_FIND(hh, d->sessions, &session, sizeof session, s);
	if (!c)
		agentd_out_of_memory("communicators");
	if (!s) { /* its end is among the events that wait */
		free(c);
		return;
	}
	*c = (struct comm){.d = d,
		.id = id,
		.session = session,
		.uid = s->uid,
		.refs = 1,
		.sq_bell = -1,
		.data_bell = -1};
	if (make_comm(d, c, &fds[0], &call) < 0) {
		free(c);
		refuse_comm(d, session, id, reply->req_id, attrs, call);
		return;
	}
	HASH_ADD(hh, d->comms, id, sizeof c->id, c);
	comm_publish(d, id, attrs);
	fds[1] = c->sq_bell;
	fds[2] = c->data_bell;
	session_reply(d, session, reply, fds, 3);
	close(fds[0]);
}

static void release_slot(struct agentd *d, struct comm *c, uint32_t slot)
{
	struct comm_slot *s = &c->slot[slot];

	region_unref(d, s->in);
	region_unref(d, s->out);
	if (s->manifest) {
		manifest_leave(s->manifest);
		manifest_unref(s->manifest);
	}
	s->manifest = NULL;
	s->in = NULL;
	s->out = NULL;
	c->busy &= ~(UINT64_C(1) << slot);
}

static void close_comm(struct agentd *d, struct comm *c)
{
	HASH_DEL(d->comms, c);
	c->closed = true;
	result_comm_closed(d, c);
	comm_leave_engine(c);
	comm_leave_state(c);
	cc_watch_free(c->watch);
	close(c->sq_bell);
	close(c->data_bell);
	for (uint32_t i = 0; i < SHM_SLOTS; i++)
		release_slot(d, c, i);
	findings_unref(c->findings);
	c->findings = NULL;
	comm_unref(c);
}

void comm_close(struct agentd *d, uint32_t id)
{
	struct comm *c = comm_find(d, id);

	if (c)
		close_comm(d, c);
}

void comm_free_all(struct agentd *d)
{
	while (d->comms)
		close_comm(d, d->comms);
}

/* ---- the engine's doorbell ---- */

int comm_use_engine(struct comm *c, struct run *r)
{
	int err;

	if (c->closed || c->bell_run == r->id)
		return 0;
	comm_leave_engine(c);
	err = eng_bell_add(r->eng, c->data_bell);
	if (err == 0)
		c->bell_run = r->id;
	return err;
}

void comm_leave_engine(struct comm *c)
{
	struct run *r;

	if (c->bell_run == 0)
		return;
	r = run_find(c->d, c->bell_run);
	if (r)
		eng_bell_remove(r->eng, c->data_bell);
	c->bell_run = 0;
}

int comm_use_state(struct comm *c, struct run *r)
{
	int err;

	if (c->closed || c->state_run == r->id)
		return 0;
	comm_leave_state(c);
	err = ste_bell_add(r->ste, c->data_bell);
	if (err == 0)
		c->state_run = r->id;
	return err;
}

void comm_leave_state(struct comm *c)
{
	struct run *r;

	if (c->state_run == 0)
		return;
	r = run_find(c->d, c->state_run);
	if (r && r->ste)
		ste_bell_remove(r->ste, c->data_bell);
	c->state_run = 0;
}

/* ---- what the shim reads ---- */

static void publish_place(struct shm_attr *t, const struct cc_addr *at)
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

void comm_publish(struct agentd *d, uint32_t id, const struct agt_attrs *a)
{
	struct comm *c = comm_find(d, id);
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
	publish_place(t, &a->at);
	atomic_store_explicit(&t->epoch, a->epoch, memory_order_relaxed);
	atomic_store_explicit(&t->wired, a->wired, memory_order_relaxed);
	atomic_store_explicit(&t->prepared, a->prepared, memory_order_relaxed);
	atomic_store_explicit(&t->world_version, a->version, memory_order_relaxed);
	atomic_store_explicit(&t->losses, a->losses, memory_order_relaxed);
	atomic_store_explicit(&t->global, a->global, memory_order_relaxed);
	atomic_store_explicit(&t->world, a->world, memory_order_relaxed);
	atomic_store_explicit(&t->version, v + 1, memory_order_release);
}

void comm_put_world(struct shm_slot *s, const struct wire_world *w)
{
	/* This process may die between any two of these. */
	__atomic_store_n(&s->world.version, 0, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_release);
	s->world.global = w->global;
	s->world.group = w->group;
	s->world.groups = w->groups;
	s->world.largest = w->largest;
	__atomic_store_n(&s->world.version, w->version, __ATOMIC_RELEASE);
}

void comm_complete(struct agentd *d, uint32_t id, uint32_t slot, const struct agt_done *done)
{
	struct comm *c = comm_find(d, id);
	struct shm_slot *s;

	if (!c || slot >= SHM_SLOTS)
		return;
	release_slot(d, c, slot);
	s = comm_slot(c, slot);
	s->local_world = done->world;
	s->losses = done->losses;
	comm_put_world(s, &done->after);
	s->tx_bytes = done->tx_bytes;
	s->rx_bytes = done->rx_bytes;
	s->revision = done->revision;
	s->code = done->code;
	memcpy(s->text, done->text, sizeof s->text);
	atomic_store(&s->state, SHM_SLOT_DONE);
	if (atomic_exchange(&s->wait, SHM_WAIT_AWAKE) != SHM_WAIT_AWAKE)
		cc_futex_wake(&s->wait, INT32_MAX);
}

bool comm_holds(const struct holder *h)
{
	const struct comm_slot *s = &h->comm->slot[h->slot];

	if (h->comm->closed || s->gen != h->gen)
		return false;
	return (h->comm->busy >> h->slot & 1) ||
	       atomic_load_explicit(&comm_slot(h->comm, h->slot)->state, memory_order_acquire) ==
		       SHM_SLOT_DONE;
}
