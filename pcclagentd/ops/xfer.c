/* SPDX-License-Identifier: MIT
 *
 * Transfers: finds the memory that one takes place in, starts it in the run's engine, and keeps
 * that memory until no thread uses it any more, whatever happens to the processes meanwhile.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pcclagentd/ops/ops_internal.h"

#define FLAGS_ALIGN 64u

static struct xfer *find(const struct run *r, uint64_t seq)
{
	struct xfer *x;

	HASH_FIND(hh, r->xfers, &seq, sizeof seq, x);
	return x;
}

/* The members' slots and operands, referenced until the transfer is freed. */
static uint32_t add_members(struct xfer *x, const struct agt_xfer *t, char *text)
{
	struct run *r = x->run;

	if (t->n_members == 0 || t->n_members > ENG_MEMBERS_MAX) {
		snprintf(text, WL_TEXT_MAX,
			"%" PRIu32 " peers of one group on one host; the agent combines at most %d",
			t->n_members, ENG_MEMBERS_MAX);
		return WIRE_INVALID_USAGE;
	}
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct agt_member *m = &t->members[i];
		struct loc_member *own = &x->members[x->n_members];

		if (!loc_member_take(r->o->loc, m->comm, m->sub.slot, own)) {
			snprintf(text, WL_TEXT_MAX, "a process of this host is gone");
			return WIRE_RANK_CONNECTION_LOST;
		}
		x->n_members++;
		if (loc_comm_use_engine(own->h.comm, r->eng) < 0) {
			return rep_shortage("the agent cannot watch a doorbell", "epoll_ctl", text,
				WL_TEXT_MAX);
		}
	}
	return WIRE_SUCCESS;
}

static uint32_t make_spec(
	struct xfer *x, const struct agt_xfer *t, struct eng_xfer_spec *spec, char *text)
{
	const struct wm_op_params *p = &t->params;
	uint32_t esize = (uint32_t)krn_dtype_size((enum krn_dtype)p->dtype);

	spec->seq = t->seq;
	spec->tag = t->tag;
	spec->epoch = t->epoch;
	spec->group = t->group;
	spec->dtype = (enum krn_dtype)p->dtype;
	spec->op = (enum krn_op)p->op;
	spec->segment_max = t->segment_max;
	spec->pos = t->pos;
	spec->world = t->world;
	if (cc_plan_init(&spec->plan, p->count, esize, t->hosts, t->segment_max) < 0) {
		snprintf(text, WL_TEXT_MAX, "the operation is too large: %" PRIu64 " elements",
			p->count);
		return WIRE_INVALID_ARGUMENT;
	}
	if (t->hosts > 1) {
		spec->prev = t->prev;
		spec->tx_link = net_link_number(x->run->net, &t->next);
		if (spec->tx_link == 0) {
			snprintf(text, WL_TEXT_MAX, "the link to the next host is down");
			return WIRE_RANK_CONNECTION_LOST;
		}
	}
	x->tx_link = spec->tx_link;
	x->bytes = p->count * esize;
	return WIRE_SUCCESS;
}

static void fill_members(const struct xfer *x, const struct agt_xfer *t, struct eng_member *ret)
{
	for (uint32_t i = 0; i < x->n_members; i++) {
		const struct loc_member *m = &x->members[i];
		const struct shm_submission *q = &t->members[i].sub;

		ret[i] = (struct eng_member){.in = loc_region_map(m->in) + q->in_off,
			.in_start = q->in_start,
			.in_second = q->in_second,
			.window = q->window,
			.slot = loc_comm_slot(m->h.comm, m->h.slot),
			.staged = !q->in_registered};
	}
}

/* Only a ring of one host uses operands in their order. The shim knew of one, so it has changed
 * since. */
static bool can_use_windows(const struct eng_xfer_spec *spec, bool small)
{
	if (spec->plan.hosts == 1 && spec->segment_max == CC_PLAN_SEGMENT_MAX && !small)
		return true;
	for (uint32_t i = 0; i < spec->n_members; i++)
		if (spec->members[i].window > 0)
			return false;
	return true;
}

static uint8_t *out_of(const struct xfer *x, const struct agt_xfer *t, uint32_t i)
{
	return loc_region_map(x->members[i].out) + t->members[i].sub.out_off;
}

static bool all_disposable(const struct agt_xfer *t)
{
	for (uint32_t i = 0; i < t->n_members; i++)
		if (!t->members[i].sub.out_disposable)
			return false;
	return true;
}

static enum shm_result_mode choose_mode(const struct xfer *x, const struct agt_xfer *t, bool small)
{
	if (small)
		return SHM_RESULT_AREA;
	if (all_disposable(t))
		return SHM_RESULT_DIRECT;
	if (t->hosts > 1 && x->n_members == 1 && !t->members[0].sub.in_registered)
		return SHM_RESULT_STAGED;
	return x->n_members == 1 && x->members[0].out ? SHM_RESULT_UNDO : SHM_RESULT_AREA;
}

/* Where sums and results go. *mode: what is wanted, and then what it is. flags_off bytes of the
 * result region lie before the flags. */
static uint32_t place(struct xfer *x, const struct agt_xfer *t, struct eng_xfer_spec *spec,
	struct eng_member *members, enum shm_result_mode *mode, uint64_t *ret_flags_off, char *text)
{
	bool elsewhere = *mode == SHM_RESULT_STAGED || *mode == SHM_RESULT_DIRECT;
	uint64_t flags_off =
		elsewhere ? 0 : (x->bytes + FLAGS_ALIGN - 1) / FLAGS_ALIGN * FLAGS_ALIGN;
	struct loc_group group = {.run = x->run->id, .group = t->group};
	uint32_t code = loc_result_take(x->run->o->loc, &group, flags_off + spec->plan.n_segs,
		x->members, x->n_members, &x->result, text);
	uint8_t *map;

	if (code != WIRE_SUCCESS)
		return code;
	map = loc_result_map(x->result);
	/* Whoever has to put old contents back when we die must have them mapped by now. */
	if (*mode == SHM_RESULT_UNDO && !loc_result_is_mapped(x->result, x->members[0].h.comm))
		*mode = SHM_RESULT_AREA;
	spec->area = map;
	if (*mode == SHM_RESULT_UNDO)
		spec->direct = out_of(x, t, 0);
	if (*mode == SHM_RESULT_STAGED)
		spec->area = loc_region_map(x->members[0].in) + t->members[0].sub.in_off;
	if (*mode == SHM_RESULT_DIRECT)
		spec->area = out_of(x, t, 0);
	for (uint32_t i = 1; *mode == SHM_RESULT_DIRECT && i < x->n_members; i++)
		members[i].out = out_of(x, t, i);
	spec->flags = (_Atomic uint8_t *)(void *)(map + flags_off);
	memset(map + flags_off, 0, spec->plan.n_segs);
	*ret_flags_off = flags_off;
	return WIRE_SUCCESS;
}

/* From here on the shims may follow the segment flags. */
static void announce(const struct xfer *x, const struct agt_xfer *t, uint64_t flags_off,
	enum shm_result_mode mode)
{
	for (uint32_t i = 0; i < x->n_members; i++) {
		struct shm_slot *s = loc_comm_slot(x->members[i].h.comm, x->members[i].h.slot);

		s->seq = t->seq;
		s->hosts = t->hosts;
		s->segment_max = t->segment_max;
		s->local_world = t->world;
		loc_comm_put_world(s, &t->begin);
		s->flags_off_lo = (uint32_t)flags_off;
		s->flags_off_hi = (uint32_t)(flags_off >> 32);
		s->result_region = loc_result_region(x->result);
		s->result_off = 0;
		atomic_store_explicit(&s->mode,
			x->ahead ? (uint32_t)SHM_RESULT_AHEAD : (uint32_t)mode,
			memory_order_release);
	}
}

static uint32_t no_memory(char *text)
{
	return rep_shortage("the agent has no memory for the operation", "mmap", text, WL_TEXT_MAX);
}

static uint32_t start_engine(struct xfer *x, const struct eng_xfer_spec *spec, char *text)
{
	int err = eng_start(x->run->eng, spec);

	if (err == CC_ERR_NOMEM)
		return no_memory(text);
	if (err < 0) {
		snprintf(text, WL_TEXT_MAX, "the agent's engine did not take the operation: %s",
			cc_err_str(err));
		return WIRE_INTERNAL_ERROR;
	}
	x->started = true;
	return WIRE_SUCCESS;
}

static uint32_t start_small(struct xfer *x, const struct eng_xfer_spec *spec, char *text)
{
	x->small = op_small_new(x, spec);
	if (!x->small)
		return no_memory(text);
	op_small_begin(x);
	return WIRE_SUCCESS;
}

static uint32_t start(struct xfer *x, const struct agt_xfer *t, char *text)
{
	struct eng_member members[ENG_MEMBERS_MAX];
	struct eng_xfer_spec spec = {.members = members, .n_members = t->n_members};
	enum shm_result_mode mode;
	uint64_t flags_off = 0;
	uint32_t code = add_members(x, t, text);
	bool small;

	if (code == WIRE_SUCCESS)
		code = make_spec(x, t, &spec, text);
	if (code != WIRE_SUCCESS)
		return code;
	small = shm_is_small(x->bytes, t->hosts);
	fill_members(x, t, members);
	if (!can_use_windows(&spec, small)) {
		snprintf(text, WL_TEXT_MAX, "the ring has changed since the call: call again");
		return WIRE_RANK_CONNECTION_LOST;
	}
	mode = choose_mode(x, t, small);
	code = place(x, t, &spec, members, &mode, &flags_off, text);
	if (code != WIRE_SUCCESS)
		return code;
	loc_result_offer(x->run->o->loc, x->result, x->members, x->n_members);
	announce(x, t, flags_off, mode);
	return small ? start_small(x, &spec, text) : start_engine(x, &spec, text);
}

static void tell_failed(
	const struct xfer *x, const struct agt_xfer *t, uint32_t code, const char *text)
{
	struct run *r = x->run;
	struct agt_event ev = {
		.type = AGT_EV_XFER_DONE, .run = r->id, .seq = t->seq, .code = code, .text = text};

	if (t->hosts > 1 && net_link_number(r->net, &t->next) == 0)
		ev.peer = t->next;
	ev_post(r->o->base, &ev);
}

void op_xfer_start(struct run *r, const struct agt_xfer *t)
{
	struct xfer *x = malloc(sizeof *x + t->n_members * sizeof *x->members);
	char text[WL_TEXT_MAX];
	uint32_t code;

	if (!x)
		rep_out_of_memory("transfers");
	text[0] = '\0';
	*x = (struct xfer){.seq = t->seq,
		.tag = t->tag,
		.group = t->group,
		.hosts = t->hosts,
		.ahead = t->ahead,
		.next = t->next,
		.prev = t->prev,
		.moved_ns = cc_now_ns(),
		.run = r};
	rep_copy_text(x->prev_name, sizeof x->prev_name, t->prev_name);
	HASH_ADD(hh, r->xfers, seq, sizeof x->seq, x);
	code = start(x, t, text);
	if (code != WIRE_SUCCESS) {
		x->over = true;
		if (!x->ahead)
			eng_skip(r->eng, t->seq);
		tell_failed(x, t, code, text);
	}
	op_small_started(r, t->seq);
}

void op_xfer_skip(struct run *r, uint64_t seq)
{
	if (r->eng)
		eng_skip(r->eng, seq);
	op_small_started(r, seq);
}

void op_xfer_cancel(struct run *r, uint64_t seq)
{
	struct agt_event ev = {.type = AGT_EV_XFER_CANCELLED, .run = r->id, .seq = seq};
	struct xfer *x = find(r, seq);

	if (x)
		x->over = true;
	if (x && x->started && !x->finished)
		eng_cancel(r->eng, seq);
	else
		ev_post(r->o->base, &ev);
}

static void destroy(struct xfer *x)
{
	struct run *r = x->run;

	HASH_DEL(r->xfers, x);
	if (x->started)
		eng_release(r->eng, x->seq);
	op_small_free(x->small);
	if (x->result)
		loc_result_give_back(x->result);
	for (uint32_t i = 0; i < x->n_members; i++)
		loc_member_release(r->o->loc, &x->members[i]);
	free(x);
	net_links_sweep(r->net);
}

void op_xfer_retract(struct run *r, uint64_t seq)
{
	struct xfer *x = find(r, seq);

	if (!x)
		return;
	for (uint32_t i = 0; i < x->n_members; i++)
		atomic_store(&loc_comm_slot(x->members[i].h.comm, x->members[i].h.slot)->mode,
			SHM_RESULT_NONE);
	destroy(x);
}

void op_xfer_free(struct run *r, uint64_t seq)
{
	struct xfer *x = find(r, seq);

	if (!x)
		return;
	destroy(x);
	op_run_free_if_done(r);
}

void op_xfer_event(struct run *r, const struct eng_event *e)
{
	struct xfer *x = find(r, e->seq);
	struct agt_event ev = {.run = r->id,
		.seq = e->seq,
		.tx_bytes = e->tx_bytes,
		.rx_bytes = e->rx_bytes,
		.type = e->type == ENG_XFER_DONE ? AGT_EV_XFER_DONE : AGT_EV_XFER_CANCELLED};

	if (!x)
		return;
	x->over = true;
	if (e->type == ENG_XFER_CANCELLED)
		x->finished = true;
	else
		op_progress_moved(x, cc_now_ns());
	ev_post(r->o->base, &ev);
}

bool op_xfers_use_link(const struct run *r, uint32_t link)
{
	for (const struct xfer *x = r->xfers; x; x = x->hh.next)
		if (x->tx_link == link)
			return true;
	return false;
}

static bool all_finished(const struct run *r)
{
	for (const struct xfer *x = r->xfers; x; x = x->hh.next)
		if (x->started && !x->finished)
			return false;
	return true;
}

bool op_xfers_halt(struct run *r)
{
	uint64_t deadline = cc_now_ns() + BASE_MS(1000);
	struct eng_event e;
	struct xfer *x, *tmp;

	for (x = r->xfers; x; x = x->hh.next)
		if (x->started && !x->finished)
			eng_cancel(r->eng, x->seq);
	while (!all_finished(r)) {
		struct pollfd p = {.fd = r->event_fd, .events = POLLIN};
		uint64_t count;

		if (cc_now_ns() > deadline)
			return false;
		if (poll(&p, 1, 10) > 0 && read(r->event_fd, &count, sizeof count) < 0)
			continue;
		while (eng_next_event(r->eng, &e)) {
			x = e.type == ENG_XFER_CANCELLED ? find(r, e.seq) : NULL;
			if (x)
				x->finished = true;
		}
	}
	HASH_ITER (hh, r->xfers, x, tmp) {
		destroy(x);
	}
	return true;
}
