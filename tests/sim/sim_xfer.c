/* SPDX-License-Identifier: MIT
 *
 * Transfers, and the members whose operands they sum up (the sums are in sim_memory.c). Checked:
 * all hosts start the same operation; memory is released before a failure is reported; all members
 * of an attempt get the same outcome; an operation of the application never has two results.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim_fault.h"
#include "tests/sim/sim_sync.h"

#define LATE_MAX (30u * SIM_MS)

/* Returns the number of h's present master, from 1; 0: none. */
static uint64_t master_of(struct sim *s, const struct sim_host *h, uint32_t run)
{
	const struct sim_conn *c = h->runs[run].conn ? sim_conn(s, h->runs[run].conn) : NULL;

	return c && c->made ? c->master + 1 : 0;
}

/* Returns 0, or the master's number if its attempts must be kept apart from those of other masters,
 * because it was superseded or continues the numbers of an old journal. If this master began an
 * attempt before its attempts were kept apart, the attempt is found by `first`. */
static uint64_t line_of(const struct sim *s, uint64_t master)
{
	const struct sim_master *m = master ? &s->masters[master - 1] : NULL;

	return m && (m->superseded || m->behind) ? master : 0;
}

/* True if two masters of the run may not know of each other. */
bool sim_xfer_apart(struct sim *s, const struct sim_host *h, uint32_t run)
{
	return sim_is_split(s) || line_of(s, master_of(s, h, run)) > 0;
}

static struct sim_xfer *xfer_find(
	struct sim *s, const struct cc_id *run, uint64_t master, uint64_t seq)
{
	uint64_t line = line_of(s, master);
	struct sim_xfer *x = s->xfers;

	while (x && !(x->seq == seq && (x->line == line || (line && x->first == line)) &&
			    cc_id_eq(&x->run, run)))
		x = x->next;
	return x;
}

struct sim_part *sim_xfer_part(struct sim_xfer *x, unsigned host, uint32_t life)
{
	uint32_t i;

	for (i = 0; x && i < x->n_parts; i++)
		if (x->parts[i].host == host && x->parts[i].life == life)
			return &x->parts[i];
	return NULL;
}

struct sim_part *sim_xfer_live(struct sim *s, unsigned host, uint32_t life, uint32_t run,
	uint64_t seq, struct sim_xfer **ret)
{
	struct sim_part *p;
	struct sim_xfer *x;

	for (x = s->xfers; x; x = x->next) {
		p = x->seq == seq ? sim_xfer_part(x, host, life) : NULL;
		if (p && p->live && p->run == run) {
			*ret = x;
			return p;
		}
	}
	return NULL;
}

bool sim_xfers_live(const struct sim *s, const struct sim_host *h, uint32_t run)
{
	const struct sim_xfer *x;
	uint32_t i;

	for (x = s->xfers; x; x = x->next)
		for (i = 0; i < x->n_parts; i++)
			if (x->parts[i].live && x->parts[i].host == h->no && x->parts[i].run == run)
				return true;
	return false;
}

const struct sim_part *sim_xfer_first(const struct sim *s, const struct cc_id *run, uint64_t seq)
{
	const struct sim_xfer *x;

	for (x = s->xfers; x; x = x->next)
		if (x->seq == seq && x->n_parts > 0 && !x->is_sync && cc_id_eq(&x->run, run))
			return &x->parts[0];
	return NULL;
}

/* Does the part send to the host at this position? */
static bool sends_to_pos(const struct sim_part *p, uint32_t pos)
{
	const struct cc_rings *x = &p->rings;
	uint32_t r;

	if (p->x.route != CC_ALGO_RINGS)
		return pos != p->x.pos;
	for (r = 0; r < x->n; r++)
		if (x->order[r][(x->at[r][p->x.pos] + 1u) % x->hosts] == pos)
			return true;
	return false;
}

/* Does the part send to this agent? */
static bool sends_to(const struct sim_part *p, const struct cc_id *to)
{
	uint32_t i;

	if (p->x.route == CC_ALGO_RING)
		return p->x.hosts > 1 && cc_id_eq(&p->x.next, to);
	for (i = 0; i < p->x.hosts; i++)
		if (sends_to_pos(p, i) && cc_id_eq(&p->agents[i], to))
			return true;
	return false;
}

/* A transfer breaks with the link, unless both ends of the link have finished their part. */
void sim_xfers_break(struct sim *s, const struct sim_link *l)
{
	const struct sim_host *h = sim_host_by_id(s, &l->to);
	const struct sim_part *to;
	struct sim_xfer *x;
	uint32_t i;

	for (x = s->xfers; x; x = x->next) {
		for (i = 0; i < x->n_parts; i++) {
			const struct sim_part *p = &x->parts[i];

			if (!p->live || p->host != l->src || p->run != l->src_run ||
				p->life != l->src_life || !sends_to(p, &l->to))
				continue;
			to = h ? sim_xfer_part(x, h->no, h->life) : NULL;
			if (!p->done || !to || !to->done)
				x->broken = true;
		}
	}
}

static bool key_eq(const struct sim_key *x, const struct sim_key *y)
{
	return cc_id_eq(&x->run, &y->run) && x->group == y->group && x->turn == y->turn &&
	       x->step == y->step && x->tag == y->tag;
}

static void check_ring(struct sim *s, const struct sim_xfer *t, const struct sim_part *p)
{
	uint32_t i;

	for (i = 0; i < t->n_parts && p->x.hosts > 1; i++) {
		const struct sim_part *q = &t->parts[i];

		if (p->x.route != CC_ALGO_RING && i != p->x.pos &&
			!cc_id_eq(&p->agents[q->x.pos], &s->hosts[q->host].id) && q != p)
			sim_fail(s, "seq %" PRIu64 ": h%u takes another agent for that of h%u",
				t->seq, p->host, q->host);
		if ((p->x.pos + 1) % p->x.hosts == q->x.pos &&
			(!cc_id_eq(&p->x.next, &s->hosts[q->host].id) ||
				!cc_id_eq(&q->x.prev, &s->hosts[p->host].id)))
			sim_fail(s, "seq %" PRIu64 ": the ring does not close between h%u and h%u",
				t->seq, p->host, q->host);
	}
}

/* Do all contributions belong to the same operation of the application? */
static void check_keys(struct sim *s, const struct sim_xfer *t, const struct sim_part *p)
{
	const struct sim_voice *first = &t->parts[0].voices[0];
	uint32_t i;

	for (i = 0; i < p->n; i++)
		if (!key_eq(&p->voices[i].key, &first->key))
			sim_fail(s,
				"seq %" PRIu64 " sums up different operations: ballot %" PRIu64
				" step %u of p%u, ballot %" PRIu64 " step %u of p%u",
				t->seq, first->key.turn, first->key.step, first->peer,
				p->voices[i].key.turn, p->voices[i].key.step, p->voices[i].peer);
}

/* Do hosts that started speculatively mean different operations? The hosts cannot know that, but
 * the master will. */
static bool is_mixed(const struct sim_xfer *t)
{
	const struct sim_part *first = &t->parts[0];
	uint32_t i, j, members = 0;
	bool spec = false, same;

	for (i = 0; i < t->n_parts; i++)
		members += t->parts[i].n;
	/* otherwise a member has left, and not all hosts know that */
	same = members == first->x.world_size;
	for (i = 0; i < t->n_parts; i++) {
		const struct sim_part *p = &t->parts[i];

		spec |= p->x.spec;
		same &= p->x.epoch == first->x.epoch && p->x.world_size == first->x.world_size &&
			p->x.route == first->x.route &&
			wm_op_params_eq(&p->x.params, &first->x.params);
		for (j = 0; j < p->n; j++)
			same &= key_eq(&p->voices[j].key, &first->voices[0].key);
	}
	return spec && !same;
}

/* All hosts have started. Checks that they mean the same operation. */
static void check_start(struct sim *s, struct sim_xfer *t)
{
	const struct agt_xfer *first = &t->parts[0].x;
	uint32_t i, seen = 0, members = 0;

	for (i = 0; i < t->n_parts; i++) {
		const struct agt_xfer *x = &t->parts[i].x;

		members += t->parts[i].n;
		seen |= 1u << x->pos;
		if (x->epoch != first->epoch)
			sim_fail(s, "seq %" PRIu64 " runs in epochs %" PRIu64 " and %" PRIu64,
				t->seq, first->epoch, x->epoch);
		if (x->hosts != first->hosts || x->world_size != first->world_size ||
			x->route != first->route ||
			memcmp(&t->parts[i].rings, &t->parts[0].rings, sizeof(struct cc_rings)) !=
				0 ||
			x->group != first->group || x->tag != first->tag ||
			!wm_op_params_eq(&x->params, &first->params))
			sim_fail(s, "seq %" PRIu64 ": hosts mean different operations", t->seq);
		check_ring(s, t, &t->parts[i]);
		check_keys(s, t, &t->parts[i]);
	}
	if (seen != (1u << first->hosts) - 1)
		sim_fail(s, "seq %" PRIu64 ": two hosts at one position", t->seq);
	if (members != first->world_size)
		sim_fail(s, "seq %" PRIu64 ": %u contributions, world size %u", t->seq, members,
			first->world_size);
	t->contributions = members;
}

static void all_started(struct sim *s, struct sim_xfer *t)
{
	uint64_t took = (200 + sim_rnd(s, 8000)) * SIM_US;
	uint32_t i, slow = 1;

	t->mixed = is_mixed(t);
	if (!t->mixed)
		check_start(s, t);
	for (i = 0; i < t->n_parts; i++)
		if (s->hosts[t->parts[i].host].slow > slow)
			slow = s->hosts[t->parts[i].host].slow;
	took *= slow;
	for (i = 0; i < t->n_parts; i++) {
		struct sim_event ev = {.host = t->parts[i].host};
		uint64_t at = s->now + took + sim_rnd(s, 500) * SIM_US;

		ev.life = t->parts[i].life;
		ev.run = t->parts[i].run;
		ev.seq = t->seq;
		ev.kind = SIM_EV_XFER_SEGMENT;
		for (ev.tag = 0; ev.tag < SIM_SEGS; ev.tag++)
			sim_schedule(s, s->now + (at - s->now) * (ev.tag + 1) / (SIM_SEGS + 1), ev);
		ev.kind = SIM_EV_XFER_FINAL;
		sim_schedule(s, at, ev);
		ev.kind = SIM_EV_XFER_DONE;
		ev.code = s->xfer_failures && sim_chance(s, 1) ? WIRE_OUT_OF_MEMORY : 0;
		sim_schedule(s, at + 1 + sim_rnd(s, 1000) * SIM_US, ev);
	}
}

static struct sim_xfer *xfer_new(
	struct sim *s, const struct cc_id *run, uint64_t master, uint64_t seq)
{
	struct sim_xfer *t = calloc(1, sizeof *t);

	if (!t)
		abort();
	t->seq = seq;
	t->line = line_of(s, master);
	t->first = master;
	t->since = s->now;
	t->run = *run;
	t->next = s->xfers;
	s->xfers = t;
	return t;
}

struct sim_xfer *sim_xfer_get(struct sim *s, const struct sim_host *h, uint32_t run, uint64_t seq)
{
	const struct cc_id *id = &h->runs[run].id;
	uint64_t master = master_of(s, h, run);
	struct sim_xfer *t = xfer_find(s, id, master, seq);

	return t ? t : xfer_new(s, id, master, seq);
}

struct sim_part *sim_xfer_join(
	struct sim *s, struct sim_xfer *t, const struct sim_host *h, uint32_t run)
{
	struct sim_part *p;

	if (sim_xfer_part(t, h->no, h->life) || t->n_parts == SIM_HOSTS) {
		sim_fail(s, "seq %" PRIu64 " is started twice on host %u", t->seq, h->no);
		return NULL;
	}
	p = &t->parts[t->n_parts++];
	*p = (struct sim_part){.host = h->no,
		.life = h->life,
		.run = run,
		.live = true,
		.conn = h->runs[run].conn};
	return p;
}

static void start_voices(struct sim *s, struct sim_host *h, struct sim_xfer *t, struct sim_part *q,
	const struct agt_xfer *x)
{
	uint32_t i, tag;

	q->n = x->n_members;
	q->voices = calloc(q->n, sizeof *q->voices);
	if (!q->voices)
		abort();
	for (i = 0; i < q->n; i++) {
		struct sim_voice *v = &q->voices[i];
		struct sim_peer *p = sim_peer_find(s, h, x->members[i].comm);

		if (!p) {
			q->n = i;
			return;
		}
		tag = (uint32_t)x->members[i].sub.tag;
		v->peer = p->no;
		v->id = p->id;
		v->comm = p->comm;
		v->slot = x->members[i].sub.slot;
		v->key = sim_plan_key(p, tag);
		if (p->ops[tag].state != OP_PENDING || p->ops[tag].slot != v->slot) {
			if (p->phase < PEER_DESTROYING)
				sim_fail(s, "h%u starts an operation that p%u did not submit",
					h->no, p->no);
			continue;
		}
		p->ops[tag].xfer = t;
		p->ops[tag].voice = v;
		p->ops[tag].seq = t->seq;
		p->ops[tag].begin = x->begin;
	}
}

/* Finds the attempt that a superseded master started and the new master continues, because agents
 * have moved to the new one. Two masters of a run use the same numbers. So an attempt that has
 * started on all its hosts, or in another ring, is a different one. */
static struct sim_xfer *gone_over(struct sim *s, const struct cc_id *run, const struct agt_xfer *x)
{
	const struct agt_xfer *y;
	struct sim_xfer *t;

	for (t = s->xfers; t; t = t->next) {
		y = &t->parts[0].x;
		if (t->n_parts > 0 && t->n_parts < y->hosts && !t->is_sync && t->seq == x->seq &&
			cc_id_eq(&t->run, run) && y->epoch == x->epoch && y->group == x->group &&
			y->tag == x->tag && y->hosts == x->hosts && y->world_size == x->world_size)
			return t;
	}
	return NULL;
}

/* The link carries an operation from now on. A router may reset it. */
static void route(struct sim *s, const struct sim_link *l)
{
	struct sim_event ev = {.kind = SIM_EV_FAULT, .code = FAULT_ROUTED, .gen = l->gen};

	if (!s->routed[l->src][l->dst] || s->now > s->routed_until)
		return;
	ev.link = (unsigned)(l - s->links);
	sim_schedule(s, s->now + sim_delay(s), ev);
}

static void use_link(
	struct sim *s, struct sim_host *h, uint32_t run, struct sim_xfer *t, const struct cc_id *to)
{
	const struct sim_link *l = sim_link_find(s, h, run, to);

	/* the link is down and the agent does not know it yet */
	if (!l || !l->up || l->mute)
		t->broken = true;
	else
		route(s, l);
}

static void use_links(struct sim *s, struct sim_host *h, uint32_t run, struct sim_xfer *t,
	const struct sim_part *p)
{
	uint32_t i;

	if (p->x.route == CC_ALGO_RING)
		use_link(s, h, run, t, &p->x.next);
	for (i = 0; p->x.route != CC_ALGO_RING && i < p->x.hosts; i++)
		if (sends_to_pos(p, i))
			use_link(s, h, run, t, &p->agents[i]);
}

void sim_xfer_start(struct sim *s, struct sim_host *h, const struct agt_action *a)
{
	const struct agt_xfer *x = &a->u.xfer;
	struct sim_xfer *t = sim_xfer_get(s, h, a->run, x->seq), *other = NULL;
	struct sim_part *p;

	if (t->n_parts == 0 && sim_xfer_apart(s, h, a->run))
		other = gone_over(s, &t->run, x);
	if (other)
		t = other;
	p = sim_xfer_join(s, t, h, a->run);

	if (!p)
		return;
	if (t->is_sync || t->n_parts > x->hosts) {
		sim_fail(s, "seq %" PRIu64 " is started as something else on host %u", x->seq,
			h->no);
		return;
	}
	p->x = *x;
	p->x.members = NULL;
	p->x.agents = NULL;
	p->x.rings = NULL;
	if (x->rings)
		p->rings = *x->rings;
	for (uint32_t i = 0; x->agents && i < x->hosts && i < SIM_HOSTS; i++)
		p->agents[i] = x->agents[i];
	s->routed_ops += x->route != CC_ALGO_RING;
	s->seen[SEEN_RINGS] += x->route == CC_ALGO_RINGS;
	s->seen[SEEN_QUANTIZED] += x->params.quant.algo != 0;
	s->aheads += x->spec;
	start_voices(s, h, t, p, x);
	sim_memory_part(s, p);
	sim_trace(s, "h%u starts seq %" PRIu64 " on route %u, %u of %u hosts", h->no, x->seq,
		x->route, t->n_parts, x->hosts);
	if (x->hosts > 1)
		use_links(s, h, a->run, t, p);
	if (t->n_parts == x->hosts && !t->broken)
		all_started(s, t);
}

static void xfer_done(
	struct sim *s, const struct sim_event *ev, struct sim_xfer *t, struct sim_part *p)
{
	struct agt_event e = {.type = AGT_EV_XFER_DONE, .run = ev->run, .seq = ev->seq};

	if (t->broken || p->cancelled)
		return;
	e.code = ev->code;
	e.text = ev->code ? "no memory for the result" : NULL;
	e.tx_bytes = e.rx_bytes = 100;
	if (ev->code) {
		sim_cause(s);
		s->seen[SEEN_FAILED]++;
		t->broken = true;
	} else {
		p->done = true;
	}
	sim_host_step(s, &s->hosts[ev->host], &e);
}

static void segment(
	struct sim *s, const struct sim_event *ev, struct sim_xfer *t, struct sim_part *p)
{
	struct sim_event late = *ev;

	if (t->broken && !ev->code) { /* segments that were on their way may arrive at any time */
		late.code = 1;
		sim_schedule(s, s->now + sim_hash(s, t->seq, p->host, ev->tag) % LATE_MAX, late);
	} else if (!p->cancelled) {
		sim_memory_segment(s, t, p, (uint32_t)ev->tag);
	}
}

void sim_xfer_event(struct sim *s, const struct sim_event *ev)
{
	struct agt_event e = {.type = AGT_EV_XFER_CANCELLED, .run = ev->run, .seq = ev->seq};
	struct sim_xfer *t = NULL;
	struct sim_part *p = sim_xfer_live(s, ev->host, ev->life, ev->run, ev->seq, &t);

	if (!p)
		return;
	if (ev->kind == SIM_EV_XFER_SEGMENT) {
		segment(s, ev, t, p);
	} else if (ev->kind == SIM_EV_XFER_DONE) {
		xfer_done(s, ev, t, p);
	} else if (ev->kind == SIM_EV_XFER_FINAL) {
		if (t->broken || p->cancelled)
			return;
		p->final = true;
		t->n_final++;
	} else {
		p->cancelled = true;
		sim_host_step(s, &s->hosts[ev->host], &e);
	}
}

void sim_xfer_cancel(struct sim *s, struct sim_host *h, const struct agt_action *a)
{
	struct sim_event ev = {.kind = SIM_EV_XFER_CANCELLED, .host = h->no, .run = a->run};
	struct sim_xfer *t = NULL;
	struct sim_part *p = sim_xfer_live(s, h->no, h->life, a->run, a->u.xfer.seq, &t);

	if (!p || p->cancelling) {
		sim_fail(s, "host %u cancels a transfer that does not exist", h->no);
		return;
	}
	p->cancelling = true;
	if (!p->done)
		t->broken = true;
	ev.life = h->life;
	ev.seq = a->u.xfer.seq;
	sim_schedule(s, s->now + sim_delay(s), ev);
}

void sim_xfer_rollback(struct sim *s, struct sim_host *h, const struct agt_action *a)
{
	struct sim_xfer *t = NULL;
	struct sim_part *p = sim_xfer_live(s, h->no, h->life, a->run, a->u.xfer.seq, &t);
	uint32_t i;

	if (!p || !p->x.spec || p->cancelling) {
		sim_fail(s, "host %u rolls back what was not speculative", h->no);
		return;
	}
	p->live = false;
	t->broken = true;
	s->rolled_back++;
	for (i = 0; i < p->n; i++) {
		struct sim_peer *q = &s->peers[p->voices[i].peer];
		struct sim_op *o = &q->ops[p->voices[i].key.tag];

		if (o->voice != &p->voices[i])
			continue;
		o->xfer = NULL;
		o->voice = NULL;
		o->seq = 0;
		q->memory[p->voices[i].key.tag].part = NULL;
	}
}

void sim_xfer_free(struct sim *s, struct sim_host *h, const struct agt_action *a)
{
	struct sim_xfer *t = NULL;
	struct sim_part *p = sim_xfer_live(s, h->no, h->life, a->run, a->u.xfer.seq, &t);

	if (!p || (p->cancelling ? !p->cancelled : !p->done)) {
		sim_fail(s, "host %u frees the memory of seq %" PRIu64 " too early", h->no,
			a->u.xfer.seq);
		return;
	}
	p->live = false;
	if (h->runs[a->run].over)
		sim_links_drop(s, h, a->run);
}

void sim_xfers_host_died(struct sim *s, struct sim_host *h)
{
	struct sim_xfer *x;
	struct sim_part *p;

	for (x = s->xfers; x; x = x->next) {
		p = sim_xfer_part(x, h->no, h->life);
		if (!p || !p->live)
			continue;
		if (!p->done && !x->is_sync)
			x->broken = true;
		p->live = false;
	}
}

void sim_xfer_completed(struct sim *s, struct sim_host *h, struct sim_peer *p, struct sim_op *o)
{
	const struct sim_part *q = sim_xfer_part(o->xfer, h->no, h->life);

	if (!q) {
		if (o->code == WIRE_SUCCESS)
			sim_fail(s, "p%u: success without a transfer", p->no);
		return;
	}
	if (!q->live)
		sim_fail(s, "p%u: completed after the memory of seq %" PRIu64 " was freed", p->no,
			o->seq);
	else if (p->phase == PEER_DESTROYING && q->done)
		return; /* without a master it does not wait for the other peers */
	else if (o->code ? !q->cancelled : q->cancelling || !q->done)
		sim_fail(s, "p%u: completed with %s while seq %" PRIu64 " %s", p->no,
			sim_text_code(o->code), o->seq,
			o->code ? "still writes to its buffers" : "is not final here");
}

/* Does the member still take part in the run, with the same id? */
static bool stays(const struct sim *s, const struct sim_voice *v)
{
	const struct sim_peer *p = &s->peers[v->peer];

	return p->phase < PEER_DESTROYING && p->state == SHM_COMM_CONNECTED &&
	       cc_id_eq(&p->id, &v->id);
}

struct search {
	const struct cc_id *peer;
	bool found;
};

static void search_peer(void *arg, const struct ccm_peer_info *p)
{
	struct search *x = arg;

	x->found |= cc_id_eq(&p->peer, x->peer) && p->phase == CCM_PEER_ACCEPTED;
}

static bool knows(const struct sim *s, const struct sim_master *m, const struct cc_id *peer)
{
	struct search x = {.peer = peer};

	ccm_each_peer(m->m, sim_clock_now(s, &m->clock), search_peer, &x);
	return x.found;
}

/* Does a master still know the peer? A newer master may have another run, or only a copy of the
 * journal and no agents. unsure: the answer if no master is there or a master is recovering. */
static bool is_known(const struct sim *s, const struct cc_id *peer, bool unsure)
{
	bool sure = false, open = false;
	struct ccm_status st;
	unsigned i;

	for (i = 0; i < s->n_masters; i++) {
		const struct sim_master *m = &s->masters[i];

		if (!m->alive || m->superseded)
			continue;
		ccm_get_status(m->m, &st);
		if (!st.recovering && knows(s, m, peer))
			return true;
		sure |= !st.recovering;
		open |= st.recovering;
	}
	return open || !sure ? unsure : false;
}

bool sim_peer_is_member(const struct sim *s, const struct sim_peer *p)
{
	const struct sim_host *h = &s->hosts[p->proc->host];

	return p->phase < PEER_DESTROYING && p->state == SHM_COMM_CONNECTED && p->comm &&
	       h->alive && h->life == p->comm_life && is_known(s, &p->id, false);
}

/* Has p's agent sent all that it knows to its master? */
static bool is_heard_out(const struct sim *s, const struct sim_peer *p)
{
	uint32_t conn = sim_conn_of(s, p);

	return conn && s->conns[conn - 1]->said && s->conns[conn - 1]->master_open;
}

static bool has_agent(const struct sim *s, const struct sim_voice *v)
{
	const struct sim_peer *p = &s->peers[v->peer];
	const struct sim_host *h = &s->hosts[p->proc->host];

	return stays(s, v) && p->comm && h->alive && h->life == p->comm_life;
}

/* told: counts only members of a master that is not recovering, whose agents have sent all that
 * they know */
static bool goes_on(const struct sim *s, const struct sim_xfer *t, enum sim_heard heard, bool told)
{
	uint32_t i, j;

	for (i = 0; i < t->n_parts; i++) {
		for (j = 0; j < t->parts[i].n; j++) {
			const struct sim_voice *v = &t->parts[i].voices[j];

			if (v->heard == heard && has_agent(s, v) && is_known(s, &v->id, !told) &&
				(!told || is_heard_out(s, &s->peers[v->peer])))
				return true;
		}
	}
	return false;
}

bool sim_xfer_goes_on_with(
	const struct sim *s, const struct sim_xfer *t, const struct sim_master *m, bool same_agent)
{
	uint32_t i, j;

	for (i = 0; i < t->n_parts; i++) {
		const struct sim_part *q = &t->parts[i];

		if (same_agent && s->hosts[q->host].life != q->life)
			continue;
		for (j = 0; j < q->n; j++) {
			const struct sim_voice *v = &q->voices[j];

			if (v->heard == VOICE_SUCCESS && has_agent(s, v) && knows(s, m, &v->id))
				return true;
		}
	}
	return false;
}

/* A member that waits for an agent may come back too late. It is checked again when it is back. */
bool sim_xfer_goes_on(const struct sim *s, const struct sim_xfer *t, enum sim_heard heard)
{
	return goes_on(s, t, heard, false);
}

static bool takes_part(const struct sim_xfer *t, const struct cc_id *peer)
{
	uint32_t i, j;

	for (i = 0; i < t->n_parts; i++)
		for (j = 0; j < t->parts[i].n; j++)
			if (cc_id_eq(&t->parts[i].voices[j].id, peer))
				return true;
	return false;
}

/* Has the same operation of the application had another result before? A result counts only if a
 * member that is still present has received it. Without a journal, a new master may reuse ballot
 * numbers that only peers which have left remember. */
static void check_single(struct sim *s, const struct sim_xfer *t, const struct sim_voice *v)
{
	const struct sim_xfer *x;

	for (x = s->xfers; x; x = x->next)
		if (x != t && x->successes && key_eq(&x->parts[0].voices[0].key, &v->key) &&
			takes_part(x, &v->id) && sim_xfer_goes_on(s, x, VOICE_SUCCESS) &&
			!sim_is_split(s))
			sim_fail(s,
				"two results for one operation: seq %" PRIu64 " and %" PRIu64
				" (group %u ballot %" PRIu64 " step %u tag %u)",
				x->seq, t->seq, v->key.group, v->key.turn, v->key.step, v->key.tag);
}

/* Members that go on must have got the same result. A master that is recovering or lacks snapshots
 * may still kick some of them, so they are checked again later. */
static void check_unanimous(struct sim *s, const struct sim_xfer *t)
{
	if (goes_on(s, t, VOICE_SUCCESS, true) && goes_on(s, t, VOICE_FAILURE, true) &&
		!sim_is_split(s))
		sim_fail(s, "seq %" PRIu64 ": success for some, failure for others", t->seq);
}

void sim_xfers_back(struct sim *s)
{
	const struct sim_xfer *t;

	for (t = s->xfers; t; t = t->next)
		if (t->successes && t->failures)
			check_unanimous(s, t);
}

static bool has_member(const struct sim *s, const struct sim_part *q)
{
	uint32_t i;

	for (i = 0; i < q->n; i++)
		if (stays(s, &q->voices[i]))
			return true;
	return false;
}

/* Does every host have the whole result? A host whose members have all left does not count, because
 * a master that takes over asks only the remaining hosts. */
static bool is_whole(const struct sim *s, const struct sim_xfer *t)
{
	uint32_t i;

	if (t->n_parts != t->parts[0].x.hosts)
		return false;
	for (i = 0; i < t->n_parts; i++)
		if (!t->parts[i].final &&
			(s->taken_over <= t->since || has_member(s, &t->parts[i])))
			return false;
	return true;
}

void sim_xfer_heard(struct sim *s, struct sim_peer *p, struct sim_op *o, bool connected)
{
	struct sim_xfer *t = o->xfer;

	if (!t)
		return;
	if (o->code == WIRE_SUCCESS) {
		o->voice->heard = VOICE_SUCCESS;
		t->successes++;
		if (t->mixed)
			sim_fail(s, "seq %" PRIu64 ": success of different operations", t->seq);
		if (t->is_sync)
			sim_sync_heard(s, p, o);
		else if (!is_whole(s, t) || o->world_size != t->contributions)
			sim_fail(s,
				"seq %" PRIu64 ": p%u gets a success with %u of %u hosts final, "
				"world size %u and %u contributions",
				t->seq, p->no, t->n_final, t->parts[0].x.hosts, o->world_size,
				t->contributions);
		check_single(s, t, o->voice);
	} else {
		o->voice->heard = VOICE_FAILURE;
		t->failures += connected;
	}
	if (t->successes && t->failures)
		check_unanimous(s, t);
	o->xfer = NULL;
	o->voice = NULL;
}

void sim_xfers_free(struct sim *s)
{
	struct sim_xfer *x;
	uint32_t i;

	while ((x = s->xfers) != NULL) {
		s->xfers = x->next;
		for (i = 0; i < x->n_parts; i++) {
			free(x->parts[i].voices);
			free(x->parts[i].sources);
		}
		free(x);
	}
}
