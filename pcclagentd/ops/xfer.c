/* SPDX-License-Identifier: MIT
 *
 * Transfers: finds the algorithm and the memory of a transfer, starts it, and keeps the memory
 * until no thread uses it any longer, even if the processes have ended.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "pcclagentd/ops/ops_internal.h"

static struct xfer *find(const struct run *r, uint64_t seq)
{
	struct xfer *x;

	HASH_FIND(hh, r->xfers, &seq, sizeof seq, x);
	return x;
}

/* Takes references to the members' slots and operands, until the transfer is freed. */
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

/* Finds the links over which the operation goes. */
static uint32_t find_links(struct xfer *x, const struct agt_xfer *t, char *text)
{
	uint32_t next = t->pos + 1 < t->hosts ? t->pos + 1 : 0;
	uint32_t prev = t->pos > 0 ? t->pos - 1 : t->hosts - 1;

	for (uint32_t i = 0; t->agents && i < t->hosts; i++) {
		if (i == t->pos)
			continue;
		x->peers[i].agent = t->agents[i];
		x->peers[i].link = net_link_number(x->run->net, &t->agents[i]);
		if (x->peers[i].link == 0) {
			snprintf(text, WL_TEXT_MAX, "a link to another host is down");
			return WIRE_RANK_CONNECTION_LOST;
		}
	}
	x->peers[prev].agent = t->prev;
	x->peers[next].agent = t->next;
	x->peers[next].link = x->tx_link = net_link_number(x->run->net, &t->next);
	if (x->tx_link != 0)
		return WIRE_SUCCESS;
	snprintf(text, WL_TEXT_MAX, "the link to the next host is down");
	return WIRE_RANK_CONNECTION_LOST;
}

/* Plans the operation, for one ring or for those of its route. */
static uint32_t make_plan(const struct agt_xfer *t, struct eng_xfer_spec *spec, char *text)
{
	struct cc_shares shares = cc_rings_shares(t->rings);
	uint32_t esize = (uint32_t)krn_dtype_size(spec->dtype);

	if (cc_plan_init_shares(
		    &spec->plan, t->params.count, esize, t->hosts, t->segment_max, &shares) == 0)
		return WIRE_SUCCESS;
	snprintf(text, WL_TEXT_MAX, "the operation is too large: %" PRIu64 " elements",
		t->params.count);
	return WIRE_INVALID_ARGUMENT;
}

static uint32_t make_spec(
	struct xfer *x, const struct agt_xfer *t, struct eng_xfer_spec *spec, char *text)
{
	const struct wm_op_params *p = &t->params;
	uint32_t code;

	spec->seq = t->seq;
	spec->tag = t->tag;
	spec->epoch = t->epoch;
	spec->group = t->group;
	spec->dtype = (enum krn_dtype)p->dtype;
	spec->op = (enum krn_op)p->op;
	spec->segment_max = t->segment_max;
	spec->pos = t->pos;
	spec->world_size = t->world_size;
	if (op_quant_get(p, &spec->quant) < 0) {
		snprintf(text, WL_TEXT_MAX, "there is no such quantization");
		return WIRE_INVALID_ARGUMENT;
	}
	code = make_plan(t, spec, text);
	if (code != WIRE_SUCCESS)
		return code;
	spec->route = (enum cc_algo)t->route;
	spec->rings = t->rings;
	spec->peers = x->peers;
	x->bytes = p->count * spec->plan.esize;
	return t->hosts > 1 ? find_links(x, t, text) : WIRE_SUCCESS;
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

/* Returns the first algorithm that can do the operation, or NULL. */
static const struct eng_algo *choose_algo(const struct eng_xfer_spec *spec)
{
	const struct eng_algo *const *a = op_algos;

	while (*a && !(*a)->can(spec))
		a++;
	return *a;
}

static uint32_t no_memory(char *text)
{
	return rep_shortage("the agent has no memory for the operation", "mmap", text, WL_TEXT_MAX);
}

/* Starts the algorithm. When this returns, the transfer may be over, and `x` freed. */
static uint32_t start_algo(struct xfer *x, const struct eng_xfer_spec *spec, char *text)
{
	int err;

	x->started = true;
	err = x->algo->start(&x->work, spec);
	if (err == 0)
		return WIRE_SUCCESS;
	x->started = false;
	if (err == CC_ERR_NOMEM)
		return no_memory(text);
	snprintf(text, WL_TEXT_MAX, "the agent's engine did not take the operation: %s",
		cc_err_str(err));
	return WIRE_INTERNAL_ERROR;
}

static uint32_t start(struct xfer *x, const struct agt_xfer *t, char *text)
{
	struct eng_member members[ENG_MEMBERS_MAX];
	struct eng_xfer_spec spec = {.members = members, .n_members = t->n_members};
	uint32_t code = add_members(x, t, text);

	if (code == WIRE_SUCCESS)
		code = make_spec(x, t, &spec, text);
	if (code != WIRE_SUCCESS)
		return code;
	fill_members(x, t, members);
	x->algo = choose_algo(&spec);
	if (!x->algo) {
		/* When the call was made, the ring had one host, so the shim copied the operand
		 * through a window. */
		snprintf(text, WL_TEXT_MAX, "the ring has changed since the call: call again");
		return WIRE_RANK_CONNECTION_LOST;
	}
	code = op_feedback_take(x, t, &spec, text);
	if (code == WIRE_SUCCESS)
		code = op_output_take(x, t, x->algo->outputs, &spec, members, text);
	if (code != WIRE_SUCCESS)
		return code;
	op_output_announce(x, t);
	return start_algo(x, &spec, text);
}

/* Returns a host to which the route needs a link that is missing, or NULL. */
static const struct cc_id *missing_peer(const struct xfer *x, const struct agt_xfer *t)
{
	if (t->hosts > 1 && net_link_number(x->run->net, &t->next) == 0)
		return &t->next;
	for (uint32_t i = 0; t->agents && i < t->hosts; i++)
		if (i != t->pos && net_link_number(x->run->net, &t->agents[i]) == 0)
			return &t->agents[i];
	return NULL;
}

static void tell_failed(
	const struct xfer *x, const struct agt_xfer *t, uint32_t code, const char *text)
{
	const struct cc_id *peer = missing_peer(x, t);
	struct run *r = x->run;
	struct agt_event ev = {
		.type = AGT_EV_XFER_DONE, .run = r->id, .seq = t->seq, .code = code, .text = text};

	if (peer)
		ev.peer = *peer;
	ev_post(r->o->base, &ev);
}

void op_xfer_start(struct run *r, const struct agt_xfer *t)
{
	struct xfer *x =
		malloc(sizeof *x + t->n_members * sizeof *x->members + t->hosts * sizeof *x->peers);
	char text[WL_TEXT_MAX];
	uint32_t code;

	if (!x)
		rep_out_of_memory("transfers");
	text[0] = '\0';
	*x = (struct xfer){.seq = t->seq,
		.tag = t->tag,
		.group = t->group,
		.hosts = t->hosts,
		.pos = t->pos,
		.spec = t->spec,
		.progress.mark.since_ns = cc_now_ns(),
		.work = {.eng = r->eng, .seq = t->seq, .owner = x},
		.run = r};
	x->peers = (struct eng_peer *)(void *)&x->members[t->n_members];
	memset(x->peers, 0, t->hosts * sizeof *x->peers);
	rep_copy_text(x->prev_name, sizeof x->prev_name, t->prev_name);
	HASH_ADD(hh, r->xfers, seq, sizeof x->seq, x);
	code = start(x, t, text);
	if (code != WIRE_SUCCESS) {
		x->over = true;
		if (!x->spec)
			eng_skip(r->eng, t->seq);
		tell_failed(x, t, code, text);
	}
	op_eager_started(r, t->seq);
}

void op_xfer_skip(struct run *r, uint64_t seq)
{
	if (r->eng)
		eng_skip(r->eng, seq);
	op_eager_started(r, seq);
}

/* Cancels the algorithm. Returns false if no thread uses the memory of the transfer. */
static bool cancel(struct xfer *x)
{
	return x->started && !x->finished && x->algo->cancel(&x->work);
}

void op_xfer_cancel(struct run *r, uint64_t seq)
{
	struct agt_event ev = {.type = AGT_EV_XFER_CANCELLED, .run = r->id, .seq = seq};
	struct xfer *x = find(r, seq);

	if (x)
		x->over = x->cancelled = true;
	if (!x || !cancel(x))
		ev_post(r->o->base, &ev);
}

static void destroy(struct xfer *x)
{
	struct run *r = x->run;

	HASH_DEL(r->xfers, x);
	if (x->started)
		x->algo->release(&x->work);
	op_output_give_back(&x->output);
	op_feedback_give_back(x);
	for (uint32_t i = 0; i < x->n_members; i++)
		loc_member_release(r->o->loc, &x->members[i]);
	free(x);
	net_links_sweep(r->net);
}

void op_xfer_rollback(struct run *r, uint64_t seq)
{
	struct xfer *x = find(r, seq);

	if (!x)
		return;
	op_output_withdraw(x);
	destroy(x);
}

void op_xfer_free(struct run *r, uint64_t seq)
{
	struct xfer *x = find(r, seq);

	if (!x)
		return;
	if (!x->cancelled)
		op_feedback_keep(x);
	destroy(x);
	op_run_free_if_done(r);
}

void op_xfer_done(struct xfer *x, uint64_t tx_bytes, uint64_t rx_bytes)
{
	struct agt_event ev = {.type = AGT_EV_XFER_DONE,
		.run = x->run->id,
		.seq = x->seq,
		.tx_bytes = tx_bytes,
		.rx_bytes = rx_bytes};

	x->over = true;
	op_progress_moved(x, cc_now_ns());
	ev_post(x->run->o->base, &ev);
}

void op_xfer_event(struct run *r, const struct eng_event *e)
{
	struct xfer *x = find(r, e->seq);
	struct agt_event ev = {.type = AGT_EV_XFER_CANCELLED,
		.run = r->id,
		.seq = e->seq,
		.tx_bytes = e->tx_bytes,
		.rx_bytes = e->rx_bytes};

	if (x && e->type == ENG_XFER_DONE) {
		op_xfer_done(x, e->tx_bytes, e->rx_bytes);
	} else if (x) {
		x->over = true;
		x->finished = true;
		ev_post(r->o->base, &ev);
	}
}

bool op_xfers_use_link(const struct run *r, uint32_t link)
{
	for (const struct xfer *x = r->xfers; x; x = x->hh.next)
		for (uint32_t i = 0; i < x->hosts; i++)
			if (x->peers[i].link == link)
				return true;
	return false;
}

static bool all_finished(const struct run *r)
{
	for (const struct xfer *x = r->xfers; x; x = x->hh.next)
		if (!x->finished)
			return false;
	return true;
}

bool op_xfers_halt(struct run *r)
{
	uint64_t deadline = cc_now_ns() + BASE_MS(1000);
	struct eng_event e;
	struct xfer *x, *tmp;

	for (x = r->xfers; x; x = x->hh.next)
		x->finished = !cancel(x);
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
