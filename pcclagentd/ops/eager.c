/* SPDX-License-Identifier: MIT
 *
 * The eager path, for small operations. The loop thread carries them out, so no thread of the
 * engine has to be woken. Each host combines the operands of its peers and sends the result around
 * the ring, on a stream that every link has for this. A host that has the operands of all hosts
 * reduces them in the order of the ring, so all hosts compute the same. Compared with a reduction
 * along the ring, the eager path takes half the hops and more bytes.
 */
#include <stdlib.h>

#include "common/cc_zalloc.h"
#include "pcclagentd/ops/ops_internal.h"

#define CACHE_LINE 64u
#define PIECE      ((uint64_t)64 << 10) /* bytes reduced together, while in the cache */
#define SCALES_MAX 4096u /* bytes by which an encoded operand may be longer than the operand */

/* The operands of the hosts, in the order of the ring. If this host has only one member, its own
 * operand lies in the member's memory instead. Send queues hold references to this struct. */
struct parts {
	struct loc *loc;
	struct loc_region *own; /* lent: the memory of the only member; or NULL */
	uint32_t refs;
	uint8_t *bytes; /* the memory behind this struct, aligned to a cache line */
};

/* Unexpected operands of an operation that may begin speculatively on this host. */
struct unexpected {
	uint64_t seq;
	uint32_t hosts, pos;
	enum cc_algo route;
	struct cc_id *agents; /* all agents in ring order; route RING: only the previous agent */
	struct wlk_data d;    /* header of the first operand; the others must be of its operation */
	uint64_t bytes;       /* bytes of each operand; 0 before the first one has come */
	struct parts *parts;
	uint64_t *got; /* bytes of each operand that have arrived */
	UT_hash_handle hh;
};

struct eager {
	struct eng_xfer_spec spec; /* spec.members points to `members` below */
	uint64_t bytes;            /* bytes of an operand on the network */
	void *acc;                 /* quantized: the buffer for pieces; else NULL */
	struct parts *parts;       /* NULL if there is only one host */
	uint64_t *got;             /* bytes of each operand that have arrived */
	const void **srcs;         /* arguments of the kernels: one for each host */
	uint32_t n_have;           /* operands that are complete */
	uint32_t step;             /* route TREE: the next step */
	uint64_t reduced;          /* bytes of each operand that are reduced */
	uint64_t tx_bytes, rx_bytes;
	struct eng_member members[];
};

static void parts_unref(const void *bytes, size_t len, void *arg)
{
	struct parts *p = arg;

	(void)bytes;
	(void)len;
	if (!p || --p->refs > 0)
		return;
	loc_region_return(p->loc, p->own);
	free(p);
}

static struct parts *parts_new(struct loc *loc, uint64_t bytes)
{
	struct parts *p = malloc(sizeof *p + CACHE_LINE - 1 + bytes);

	if (!p)
		return NULL;
	p->bytes = (uint8_t *)(p + 1);
	p->bytes += -(uintptr_t)p->bytes % CACHE_LINE;
	p->loc = loc;
	p->own = NULL;
	p->refs = 1;
	return p;
}

/* ---- unexpected data ---- */

static struct unexpected *unexpected_find(const struct run *r, uint64_t seq)
{
	struct unexpected *e;

	HASH_FIND(hh, r->unexpected, &seq, sizeof seq, e);
	return e;
}

static void unexpected_free(struct run *r, struct unexpected *e)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses track of the list */
	HASH_DEL(r->unexpected, e);
	parts_unref(NULL, 0, e->parts);
	free(e->got);
	free(e->agents);
	free(e);
}

static struct unexpected *unexpected_new(const struct agt_xfer *t)
{
	struct unexpected *e = cc_zalloc(1, sizeof *e);
	struct cc_id *agents = cc_zalloc(t->hosts, sizeof *agents);

	if (!e || !agents)
		rep_out_of_memory("operations");
	e->seq = t->seq;
	e->hosts = t->hosts;
	e->pos = t->pos;
	e->route = (enum cc_algo)t->route;
	e->agents = agents;
	if (t->agents)
		memcpy(agents, t->agents, t->hosts * sizeof *agents);
	else
		agents[t->pos > 0 ? t->pos - 1 : t->hosts - 1] = t->prev;
	return e;
}

void op_eager_expect(struct run *r, const struct agt_xfer *t)
{
	if (t->hosts > 1) {
		struct unexpected *e = unexpected_new(t);

		HASH_ADD(hh, r->unexpected, seq, sizeof e->seq, e);
	}
	op_eager_started(r, t->seq);
}

void op_eager_forget(struct run *r, uint64_t seq)
{
	struct unexpected *e = unexpected_find(r, seq);

	if (e)
		unexpected_free(r, e);
}

void op_eager_forget_all(struct run *r)
{
	struct unexpected *e, *tmp;

	HASH_ITER (hh, r->unexpected, e, tmp) {
		unexpected_free(r, e);
	}
}

static bool is_of(const struct unexpected *e, uint64_t tag, uint32_t group, uint64_t epoch)
{
	return e->d.tag == tag && e->d.group == group && e->d.epoch == epoch;
}

/* Makes room for the unexpected operands. Returns false if the operand of `d` belongs to another
 * operation than the first operand. An operand that is dropped is not sent again. So if there is no
 * memory for an operand, the agent ends. Its peers survive and attach to the next agent. */
static bool unexpected_room(struct run *r, struct unexpected *e, const struct wlk_data *d)
{
	if (e->parts)
		return e->bytes == d->len && is_of(e, d->tag, d->group, d->epoch);
	e->got = cc_zalloc(e->hosts, sizeof *e->got);
	e->parts = parts_new(r->o->loc, (uint64_t)e->hosts * d->len);
	e->bytes = d->len;
	e->d = *d;
	if (!e->got || !e->parts)
		rep_out_of_memory("operations");
	return true;
}

bool op_eager_is_possible(uint64_t bytes, uint32_t hosts)
{
	return cc_route_is_eager(bytes > SCALES_MAX ? bytes - SCALES_MAX : 0, hosts);
}

/* Checks whether the operand has come from `sender`, the host that sends the operand on this route.
 */
static const char *sender_objection(const struct cc_id *sender, const struct cc_id *from)
{
	return cc_id_eq(sender, from) ? NULL : "an operand that its sender does not send here";
}

const char *op_eager_unexpected_objection(
	struct run *r, const struct wlk_data *d, const struct cc_id *from)
{
	const struct unexpected *e = unexpected_find(r, d->seq);
	struct cc_route route;

	if (!e || d->seg >= e->hosts)
		return NULL;
	if (e->got && e->got[d->seg] == e->bytes)
		return "an operand that has already arrived";
	route = (struct cc_route){.algo = e->route, .hosts = e->hosts};
	return sender_objection(&e->agents[cc_route_sender(&route, e->pos, d->seg)], from);
}

uint8_t *op_eager_unexpected_dst(struct run *r, const struct wlk_data *d)
{
	struct unexpected *e = unexpected_find(r, d->seq);

	if (!e || d->seg >= e->hosts || !op_eager_is_possible(d->len, e->hosts) || d->len == 0 ||
		!unexpected_room(r, e, d))
		return NULL;
	return e->parts->bytes + d->seg * e->bytes;
}

void op_eager_unexpected_got(struct run *r, const struct wlk_data *d, uint32_t bytes)
{
	struct unexpected *e = unexpected_find(r, d->seq);

	if (bytes > e->got[d->seg])
		e->got[d->seg] = bytes;
}

/* Takes over the unexpected operands of the operation. Returns false if there are none. */
static bool take_unexpected(struct run *r, struct eager *s)
{
	struct unexpected *e = unexpected_find(r, s->spec.seq);
	bool any;

	if (!e)
		return false;
	any = e->parts && e->bytes == s->bytes && e->hosts == s->spec.plan.hosts &&
	      is_of(e, s->spec.tag, s->spec.group, s->spec.epoch);
	if (any) {
		s->parts = e->parts;
		s->got = e->got;
		e->parts = NULL;
		e->got = NULL;
	}
	unexpected_free(r, e);
	return any;
}

static struct eager *small_of(const struct xfer *x)
{
	return x->algo == &op_eager ? x->work.own : NULL;
}

static void eager_free(struct eager *s)
{
	if (!s)
		return;
	parts_unref(NULL, 0, s->parts);
	free(s->srcs);
	free(s->got);
	free(s);
}

static struct eager *eager_new(const struct xfer *x, const struct eng_xfer_spec *spec)
{
	bool lends = x->n_members == 1 && !spec->quant.on;
	struct loc_region *own = lends ? x->members[0].in : NULL;
	uint64_t bytes = spec->quant.on ? op_pieces_size(spec) : x->bytes;
	uint32_t hosts = spec->plan.hosts;
	struct eager *s = malloc(sizeof *s + spec->n_members * sizeof *s->members);

	if (!s)
		return NULL;
	*s = (struct eager){.spec = *spec, .bytes = bytes};
	s->spec.rings = NULL; /* owned by the caller; an eager operation takes the ring instead */
	memcpy(s->members, spec->members, spec->n_members * sizeof *s->members);
	s->spec.members = s->members;
	if (hosts == 1)
		return s;
	if (!take_unexpected(x->run, s)) {
		s->got = cc_zalloc(hosts, sizeof *s->got);
		s->parts = parts_new(x->run->o->loc, hosts * bytes);
	}
	s->srcs = malloc(hosts * sizeof *s->srcs);
	if (spec->quant.on)
		s->acc = op_pieces_buffer(x->run->o);
	if (s->got && s->srcs && s->parts && !spec->quant.on == !s->acc) {
		s->parts->own = loc_region_lend(own);
		s->got[spec->pos] = 0;
		return s;
	}
	eager_free(s);
	return NULL;
}

static struct cc_route route_of(const struct eager *s)
{
	return (struct cc_route){.algo = s->spec.route, .hosts = s->spec.plan.hosts};
}

static uint8_t *part(const struct eager *s, uint32_t pos)
{
	return s->parts->bytes + pos * s->bytes;
}

/* Returns the operand of the host at this position, to be read. */
static const uint8_t *operand(const struct eager *s, uint32_t pos)
{
	return s->parts->own && pos == s->spec.pos ? s->spec.members[0].in : part(s, pos);
}

static bool is_there(const struct eager *s, uint32_t member)
{
	const struct eng_member *m = &s->spec.members[member];

	return !m->staged || shm_slot_copied(m->slot) >= s->spec.plan.count * s->spec.plan.esize;
}

/* Returns the first member whose operand is not completely copied, or n_members. */
static uint32_t copying(const struct eager *s)
{
	uint32_t i = 0;

	while (i < s->spec.n_members && is_there(s, i))
		i++;
	return i;
}

/* Are the operands of all members completely copied? If not, the doorbell of a member whose operand
 * is missing will ring. */
static bool all_there(const struct xfer *x)
{
	const struct eager *s = small_of(x);

	for (uint32_t i = 0; i < s->spec.n_members; i++) {
		if (is_there(s, i))
			continue;
		loc_comm_await_operand(x->members[i].h.comm);
		atomic_store(&s->spec.members[i].slot->in_want, 1);
		if (!is_there(s, i))
			return false;
	}
	return true;
}

static void combine(const struct eager *s, uint8_t *dst)
{
	const void *srcs[ENG_MEMBERS_MAX];

	for (uint32_t i = 0; i < s->spec.n_members; i++)
		srcs[i] = s->spec.members[i].in;
	krn_reduce(s->spec.dtype, s->spec.op, dst, srcs, s->spec.n_members, s->spec.plan.count);
}

/* Encodes the operands of this host as one operand. The area is still free, because the reduction
 * of the first piece needs the encoded operand. */
static void encode_own(struct eager *s)
{
	const uint8_t *operand = s->spec.members[0].in;

	if (s->spec.n_members > 1) {
		combine(s, s->spec.area);
		operand = s->spec.area;
	}
	op_pieces_encode(&s->spec, s->acc, operand, part(s, s->spec.pos));
}

/* Reduces as many bytes as have arrived of the operands of all hosts. */
static void reduce(struct eager *s)
{
	uint32_t hosts = s->spec.plan.hosts;
	uint64_t to = s->bytes, from = s->reduced;

	for (uint32_t i = 0; i < hosts; i++)
		to = s->got[i] < to ? s->got[i] : to;
	if (s->acc) {
		for (uint32_t i = 0; i < hosts; i++)
			s->srcs[i] = part(s, i);
		s->reduced = op_pieces_reduce(&s->spec, s->acc, s->srcs, from, to);
		return;
	}
	if (to < s->bytes)
		to -= to % PIECE;
	if (to <= from)
		return;
	for (uint32_t i = 0; i < hosts; i++)
		s->srcs[i] = operand(s, i) + from;
	krn_reduce(s->spec.dtype, s->spec.op, s->spec.area + from, s->srcs, hosts,
		(to - from) / s->spec.plan.esize);
	s->reduced = to;
}

static void finish(struct xfer *x)
{
	const struct eager *s = small_of(x);

	if (s->spec.op == KRN_AVG && !s->acc)
		krn_divide(s->spec.dtype, s->spec.area, s->spec.plan.count, s->spec.world_size);
	/* The flags wake nobody. The end of the operation follows in a moment and wakes all. */
	for (uint32_t i = 0; i < s->spec.plan.n_segs; i++)
		atomic_store_explicit(&s->spec.flags[i], 1, memory_order_release);
	cc_loop_expect(x->run->o->base->loop);
	op_xfer_done(x, s->tx_bytes, s->rx_bytes);
}

/* Sends the operand of the host at position `pos` to the host at position `to`. */
static void send_operand(struct xfer *x, uint32_t pos, uint32_t to)
{
	struct eager *s = small_of(x);
	struct wlk_data d = {.phase = WLK_EAGER,
		.group = s->spec.group,
		.epoch = s->spec.epoch,
		.seq = s->spec.seq,
		.tag = s->spec.tag,
		.seg = pos,
		.len = (uint32_t)s->bytes};
	uint8_t hdr[WLK_DATA_SIZE];

	wlk_data_put(hdr, &d);
	s->parts->refs++;
	net_link_send(x->run->net, x->peers[to].link, hdr, operand(s, pos), s->bytes, parts_unref,
		s->parts);
	s->tx_bytes += sizeof hdr + s->bytes;
}

/* Does the steps of the tree for which all operands are here. */
static void do_steps(struct xfer *x)
{
	struct eager *s = small_of(x);
	struct cc_route route = route_of(s);

	for (uint32_t n; (n = cc_route_step(&route, s->step)) > 0; s->step++) {
		for (uint32_t i = 0; i < UINT32_C(1) << s->step; i++)
			if (s->got[cc_route_before(&route, s->spec.pos, i)] < s->bytes)
				return;
		for (uint32_t i = 0; i < n; i++)
			send_operand(x, cc_route_before(&route, s->spec.pos, i),
				cc_route_after(&route, s->spec.pos, UINT32_C(1) << s->step));
	}
}

/* Sends the operand of the host at this position on, as the route demands. */
static void pass_on(struct xfer *x, uint32_t pos)
{
	const struct eager *s = small_of(x);
	uint32_t hosts = s->spec.plan.hosts;
	uint32_t next = s->spec.pos + 1 < hosts ? s->spec.pos + 1 : 0;

	switch (s->spec.route) {
	case CC_ALGO_DIRECT:
		for (uint32_t to = 0; pos == s->spec.pos && to < hosts; to++)
			if (to != pos)
				send_operand(x, pos, to);
		break;
	case CC_ALGO_TREE:
		do_steps(x);
		break;
	default:
		if (next != pos)
			send_operand(x, pos, next);
	}
}

void op_eager_got(const struct xfer *x, uint32_t pos, uint32_t bytes)
{
	struct eager *s = small_of(x);

	if (bytes > s->got[pos])
		s->got[pos] = bytes;
	reduce(s);
}

/* The operand of the host at this position is complete. */
static void have(struct xfer *x, uint32_t pos)
{
	struct eager *s = small_of(x);

	s->n_have++;
	s->got[pos] = s->bytes;
	pass_on(x, pos);
	reduce(s);
}

static void go_on(struct xfer *x)
{
	struct eager *s = small_of(x);
	uint32_t pos = s->spec.pos;

	if (x->over || !all_there(x))
		return;
	if (!s->parts) {
		combine(s, s->spec.area);
		finish(x);
		return;
	}
	if (s->got[pos] == 0) {
		if (s->acc)
			encode_own(s);
		else if (!s->parts->own)
			combine(s, part(s, pos));
		cc_loop_expect(x->run->o->base->loop);
		have(x, pos);
	}
	if (s->n_have == s->spec.plan.hosts)
		finish(x);
}

void op_eager_fed(struct ops *o)
{
	struct run *r, *next_run;
	struct xfer *x, *tmp;

	HASH_ITER (hh, o->runs, r, next_run) {
		HASH_ITER (hh, r->xfers, x, tmp) {
			if (small_of(x))
				go_on(x);
		}
	}
}

/* ---- the algorithm ---- */

static bool eager_can(const struct eng_xfer_spec *spec)
{
	return eng_is_small(spec) && !eng_has_windows(spec);
}

/* Begins with the operands that arrived before the start. */
static void begin(struct xfer *x)
{
	struct eager *s = small_of(x);

	for (uint32_t i = 0; s->parts && i < s->spec.plan.hosts; i++) {
		if (s->got[i] < s->bytes)
			continue;
		s->n_have++;
		s->rx_bytes += WLK_DATA_SIZE + s->bytes;
		pass_on(x, i);
	}
	go_on(x);
}

static int eager_start(struct eng_work *w, const struct eng_xfer_spec *spec)
{
	struct xfer *x = w->owner;

	w->own = eager_new(x, spec);
	if (!w->own)
		return CC_ERR_NOMEM;
	begin(x);
	return 0;
}

/* Returns the hosts whose own operands are missing here. If there are none: the hosts that have not
 * passed on operands. For the bits see eng_progress.awaited. */
static uint64_t awaited(const struct eager *s)
{
	struct cc_route route = route_of(s);
	uint64_t own = 0, passed = 0;

	for (uint32_t i = 0; s->parts && i < route.hosts; i++) {
		uint32_t from = i == s->spec.pos ? i : cc_route_sender(&route, s->spec.pos, i);
		uint64_t bit = UINT64_C(1) << (s->spec.pos + route.hosts - from - 1) % route.hosts;

		if (from == s->spec.pos || s->got[i] == s->bytes)
			continue;
		own |= from == i ? bit : 0;
		passed |= bit;
	}
	return own ? own : passed;
}

static bool eager_progress(const struct eng_work *w, struct eng_progress *ret)
{
	const struct eager *s = w->own;
	uint32_t slow = copying(s);

	*ret = (struct eng_progress){.segs_done = s->n_have,
		.segs = s->spec.plan.hosts,
		.tx_bytes = s->tx_bytes,
		.rx_bytes = s->rx_bytes,
		.moved = s->n_have,
		.awaited = awaited(s),
		.copying = slow < s->spec.n_members ? slow : ENG_NO_MEMBER};
	return true;
}

/* Returns false, because only the loop thread works on eager operations. */
static bool eager_cancel(struct eng_work *w)
{
	(void)w;
	return false;
}

static void eager_release(struct eng_work *w)
{
	eager_free(w->own);
}

const struct eng_algo op_eager = {
	.name = "eager",
	.outputs = ENG_OUTPUT(SHM_RESULT_AREA),
	.can = eager_can,
	.start = eager_start,
	.progress = eager_progress,
	.cancel = eager_cancel,
	.release = eager_release,
};

/* ---- operands from other hosts ---- */

const char *op_eager_objection(
	const struct xfer *x, const struct wlk_data *d, const struct cc_id *from, bool *ret_grave)
{
	const struct eager *s = small_of(x);
	const char *what;
	struct cc_route route;

	*ret_grave = !x->spec;
	if (!s)
		return "an operand of an operation that is not eager";
	if (d->tag != s->spec.tag || d->group != s->spec.group || d->epoch != s->spec.epoch)
		return "an operand of another operation under this sequence number";
	if (!s->parts || d->seg >= s->spec.plan.hosts || d->len != s->bytes)
		return "an operand that does not fit the ring";
	route = route_of(s);
	what = d->seg == s->spec.pos
		       ? NULL
		       : sender_objection(
				 &x->peers[cc_route_sender(&route, s->spec.pos, d->seg)].agent,
				 from);
	if (what) {
		*ret_grave = true;
		return what;
	}
	if (s->got[d->seg] < s->bytes && d->seg != s->spec.pos)
		return NULL;
	*ret_grave = true;
	return "an operand that has already arrived";
}

uint8_t *op_eager_dst(const struct xfer *x, uint32_t pos)
{
	return part(small_of(x), pos);
}

void op_eager_arrived(struct xfer *x, const struct wlk_data *d)
{
	small_of(x)->rx_bytes += WLK_DATA_SIZE + d->len;
	have(x, d->seg);
	go_on(x);
}

void op_eager_started(struct run *r, uint64_t seq)
{
	if (seq > r->last_seq)
		r->last_seq = seq;
	op_eager_ins_look(r);
}
