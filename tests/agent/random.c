/* SPDX-License-Identifier: MIT
 *
 * Random events, sensible, hostile and senseless ones, against a model of what the agent has
 * promised to those around it: one reply per request, one completion per submission and none while
 * the engine may use the memory, transfers and links in order, nothing after the end of a run.
 */
#include "tests/agent/fixture.h"

#define SESSIONS 4u
#define COMMS    64u /* communicator ids are taken modulo this */
#define SLOTS    6u
#define PEERS    48u
#define XFERS    256u
#define RUNS     1024u
#define LINKS    4u
#define STEPS    3000

struct xfer {
	uint64_t seq;
	uint32_t run;
	bool live, done, ok, cancel, cancelled;
	uint32_t n;
	uint32_t comm[8], slot[8];
};

struct peer { /* as the master knows it */
	bool in;
	uint32_t run, group;
	struct cc_id id;
};

struct run {
	bool open, dialled, up, acked, ready, closed;
	struct cc_id id;
	uint64_t term, topo_turn, pending_turn;
	uint8_t links[LINKS]; /* 0 none, 1 opening, 2 up */
	uint64_t round, seq, epoch;
	uint64_t losses[2], vote_losses;
	uint32_t vote_group;
	uint64_t vote_tag;
	bool reported; /* the last round, as good */
};

struct comm {
	bool alive;
	uint32_t id, session;
	bool busy[SHM_SLOTS];
};

struct world {
	struct fx *f;
	uint64_t rng;
	bool session[SESSIONS + 1];
	uint32_t waiting[SESSIONS + 1]; /* requests without a reply */
	struct comm comms[COMMS];
	struct peer peers[PEERS];
	unsigned next_id;
	struct run runs[RUNS];
	uint32_t last_run;
	struct xfer xfers[XFERS];
	uint32_t completions, successes, starts, resumptions, attached;
};

static uint32_t rnd(struct world *w, uint32_t n)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return (uint32_t)((w->rng >> 11) % n);
}

static struct xfer *xfer_find(struct world *w, uint32_t run, uint64_t seq)
{
	uint32_t i;

	for (i = 0; i < XFERS; i++)
		if (w->xfers[i].live && w->xfers[i].run == run && w->xfers[i].seq == seq)
			return &w->xfers[i];
	return NULL;
}

static struct comm *comm_find(struct world *w, uint32_t id)
{
	struct comm *c = &w->comms[id % COMMS];

	return c->alive && c->id == id ? c : NULL;
}

static unsigned link_number(const struct cc_id *agent)
{
	unsigned i;

	for (i = 0; i < LINKS; i++)
		if (memcmp(agent->b, fx_id(100 + i).b, 16) == 0)
			return i;
	ck_abort_msg("a link to an agent that no ring names");
	return 0;
}

static void saw_complete(struct world *w, const struct agt_action *x)
{
	struct comm *c = comm_find(w, x->comm);
	uint32_t i, j;

	ck_assert_ptr_nonnull(c);
	ck_assert(c->busy[x->slot]);
	c->busy[x->slot] = false;
	w->completions++;
	w->successes += x->u.done.code == 0;
	for (i = 0; i < XFERS; i++) {
		const struct xfer *t = &w->xfers[i];

		for (j = 0; t->live && j < t->n; j++)
			if (t->comm[j] == x->comm && t->slot[j] == x->slot)
				ck_assert(x->u.done.code ? t->cancelled : t->ok);
	}
}

static void saw_xfer_start(struct world *w, const struct agt_action *x)
{
	const struct agt_xfer *t = &x->u.xfer;
	struct xfer *m = w->xfers;
	uint32_t i;

	ck_assert_ptr_null(xfer_find(w, x->run, t->seq));
	ck_assert(t->hosts == 1 || w->runs[x->run].links[link_number(&t->next)] == 2);
	ck_assert_uint_ge(t->n_members, 1);
	while (m->live)
		m++;
	*m = (struct xfer){.seq = t->seq, .run = x->run, .live = true};
	for (i = 0; i < t->n_members && i < 8; i++) {
		const struct comm *c = comm_find(w, t->members[i].comm);

		ck_assert_ptr_nonnull(c);
		ck_assert(c->busy[t->members[i].sub.slot]);
		m->comm[m->n] = c->id;
		m->slot[m->n++] = t->members[i].sub.slot;
	}
	w->starts++;
}

static void saw_link(struct world *w, const struct agt_action *x)
{
	uint8_t *l = &w->runs[x->run].links[link_number(&x->u.endpoint.agent)];

	if (x->type == AGT_ACT_LINK_OPEN) {
		ck_assert_uint_eq(*l, 0);
		*l = 1;
	} else {
		*l = 0;
	}
}

static void saw_join(struct world *w, uint32_t run, const struct wm_join *j)
{
	struct peer *p = w->peers;
	uint32_t i;

	for (i = 0; i < PEERS; i++)
		ck_assert(!w->peers[i].in || !cc_id_eq(&w->peers[i].id, &j->peer));
	while (p < w->peers + PEERS && p->in)
		p++;
	if (p < w->peers + PEERS)
		*p = (struct peer){.in = true, .run = run, .group = j->group, .id = j->peer};
}

static void saw_send(struct world *w, const struct agt_action *x)
{
	struct run *r = &w->runs[x->run];
	const struct wm_msg *m = &x->u.msg;
	uint32_t i;

	ck_assert(r->up && !r->closed);
	ck_assert(r->acked != (m->type == WM_HELLO));
	switch (m->type) {
	case WM_HELLO:
		ck_assert(!r->ready || cc_id_eq(&m->u.hello.run, &r->id));
		ck_assert(!r->ready || m->u.hello.term == r->term);
		for (i = 0; i < PEERS; i++)
			if (w->peers[i].run == x->run)
				w->peers[i].in = false;
		break;
	case WM_JOIN:
		ck_assert(r->ready);
		saw_join(w, x->run, &m->u.join);
		break;
	case WM_RESUME:
		w->resumptions++;
		break;
	case WM_LEAVE:
		for (i = 0; i < PEERS; i++)
			if (w->peers[i].in && cc_id_eq(&w->peers[i].id, &m->u.leave.peer))
				w->peers[i].in = false;
		break;
	case WM_ROUND_REPORT:
		r->reported = m->u.round_report.n_failures == 0;
		break;
	case WM_OP_VOTE:
		ck_assert_uint_ge(m->u.op_vote.n_peers, 1);
		r->vote_group = m->u.op_vote.group;
		r->vote_tag = m->u.op_vote.tag;
		r->vote_losses = m->u.op_vote.losses;
		break;
	default:
		break;
	}
}

static void saw_close(struct world *w, uint32_t run)
{
	struct run *r = &w->runs[run];
	uint32_t i;

	ck_assert(r->open && !r->closed);
	r->closed = true;
	for (i = 0; i < XFERS; i++)
		if (w->xfers[i].live && w->xfers[i].run == run)
			ck_assert(w->xfers[i].cancel);
	for (i = 0; i < PEERS; i++)
		if (w->peers[i].run == run)
			w->peers[i].in = false;
}

static void saw(struct world *w, const struct agt_action *x)
{
	struct xfer *t;

	switch (x->type) {
	case AGT_ACT_REPLY:
		ck_assert(w->session[x->session]);
		ck_assert_uint_gt(w->waiting[x->session], 0);
		w->waiting[x->session]--;
		break;
	case AGT_ACT_SESSION_END:
		w->session[x->session] = false;
		w->waiting[x->session] = 0;
		break;
	case AGT_ACT_COMM_OPEN:
		w->waiting[x->session]--;
		w->attached += x->u.open.attrs.state == SHM_COMM_CONNECTED;
		ck_assert(!w->comms[x->comm % COMMS].alive);
		w->comms[x->comm % COMMS] =
			(struct comm){.alive = true, .id = x->comm, .session = x->session};
		break;
	case AGT_ACT_COMM_CLOSE:
		ck_assert_ptr_nonnull(comm_find(w, x->comm));
		comm_find(w, x->comm)->alive = false;
		break;
	case AGT_ACT_ATTRS:
		ck_assert_ptr_nonnull(comm_find(w, x->comm));
		break;
	case AGT_ACT_COMPLETE:
		saw_complete(w, x);
		break;
	case AGT_ACT_MASTER_OPEN:
		ck_assert_uint_lt(x->run, RUNS);
		ck_assert(!w->runs[x->run].closed);
		w->runs[x->run].open = w->runs[x->run].dialled = true;
		w->runs[x->run].up = w->runs[x->run].acked = false;
		w->last_run = x->run;
		break;
	case AGT_ACT_MASTER_DROP:
		ck_assert(w->runs[x->run].open && !w->runs[x->run].closed);
		w->runs[x->run].dialled = false;
		w->runs[x->run].up = w->runs[x->run].acked = false;
		break;
	case AGT_ACT_MASTER_SEND:
		saw_send(w, x);
		break;
	case AGT_ACT_MASTER_CLOSE:
		saw_close(w, x->run);
		break;
	case AGT_ACT_RUN_READY:
		w->runs[x->run].ready = true;
		break;
	case AGT_ACT_LINK_OPEN:
	case AGT_ACT_LINK_CLOSE:
		ck_assert(!w->runs[x->run].closed);
		saw_link(w, x);
		break;
	case AGT_ACT_XFER_START:
		saw_xfer_start(w, x);
		break;
	case AGT_ACT_XFER_CANCEL:
		t = xfer_find(w, x->run, x->u.xfer.seq);
		ck_assert(t && !t->cancel);
		t->cancel = true;
		break;
	case AGT_ACT_XFER_FREE:
		t = xfer_find(w, x->run, x->u.xfer.seq);
		ck_assert(t && (t->cancelled || (t->ok && !t->cancel)));
		t->live = false;
		break;
	case AGT_ACT_XFER_SKIP:
		ck_assert(!w->runs[x->run].closed);
		ck_assert_ptr_null(xfer_find(w, x->run, x->u.xfer.seq));
		break;
	case AGT_ACT_LOG:
		break;
	}
}

static void step(struct world *w, const struct agt_event *ev)
{
	size_t i;

	w->f->now += rnd(w, 20) * MS;
	fx_step(w->f, ev);
	for (i = 0; i < w->f->acts.n; i++)
		saw(w, &w->f->acts.v[i]);
}

static struct comm *some_comm(struct world *w)
{
	uint32_t i, at = rnd(w, COMMS);

	for (i = 0; i < COMMS; i++)
		if (w->comms[(at + i) % COMMS].alive)
			return &w->comms[(at + i) % COMMS];
	return NULL;
}

static void do_session(struct world *w)
{
	uint32_t s = 1 + rnd(w, SESSIONS), i;
	struct agt_event ev = {.type = AGT_EV_SESSION_OPEN, .session = s, .uid = s / 2, .pid = s};

	ev.name = "random";
	if (w->session[s]) {
		if (rnd(w, 20))
			return;
		ev.type = AGT_EV_SESSION_CLOSED;
		w->session[s] = false;
		w->waiting[s] = 0;
	} else {
		w->session[s] = true;
	}
	step(w, &ev);
	for (i = 0; i < COMMS; i++)
		ck_assert(!w->comms[i].alive || w->session[w->comms[i].session]);
}

static void do_request(struct world *w)
{
	static const enum wl_type types[] = {WL_COMM_CREATE, WL_COMM_CONNECT, WL_COMM_CONNECT,
		WL_COMM_CONNECT, WL_COMM_CONNECT, WL_UPDATE_TOPOLOGY, WL_UPDATE_TOPOLOGY,
		WL_ARE_PENDING, WL_COMM_DESTROY, WL_REGION_FREE, WL_COMM_ATTACH};
	struct comm *c = some_comm(w);
	struct wl_request q = {.type = types[rnd(w, 11)], .req_id = 1};
	struct agt_event ev = {.type = AGT_EV_REQUEST, .request = &q};

	if (q.type == WL_COMM_DESTROY && rnd(w, 8))
		return;
	q.master = fx_addr(rnd(w, 6) == 0);
	q.master.port = rnd(w, 16) ? 48148 : 0;
	q.group = rnd(w, 2);
	q.pool_size = rnd(w, 40) ? rnd(w, 4) : 100;
	q.comm = c && rnd(w, 10) ? c->id : rnd(w, 70);
	ev.session = c && rnd(w, 10) ? c->session : 1 + rnd(w, SESSIONS);
	q.peer = fx_id(1000 + w->next_id++);
	q.token = fx_id(7);
	q.run = rnd(w, 2) && w->last_run ? w->runs[w->last_run].id : fx_id(499);
	q.n_seqs = rnd(w, 3);
	q.seqs[0] = 3;
	q.seqs[1] = 4;
	if (w->session[ev.session])
		w->waiting[ev.session]++;
	step(w, &ev);
}

static void do_submit(struct world *w)
{
	struct comm *c = some_comm(w);
	struct shm_submission s = {
		.slot = rnd(w, SLOTS), .tag = rnd(w, 3), .count = 1 + rnd(w, 20) / 19};
	struct agt_event ev = {.type = AGT_EV_SUBMIT, .slot = s.slot, .sub = &s};

	if (!c || c->busy[s.slot])
		return;
	s.losses = rnd(w, 20) ? UINT32_MAX : rnd(w, 4);
	ev.comm = c->id;
	s.dtype = rnd(w, 40) ? 10 : rnd(w, 12);
	s.op = rnd(w, 40) ? 0 : rnd(w, 5);
	if (!rnd(w, 20)) {
		ev.code = WIRE_INVALID_ARGUMENT;
		ev.sub = NULL;
	}
	c->busy[s.slot] = true;
	step(w, &ev);
}

static void do_xfer(struct world *w)
{
	struct xfer *t = &w->xfers[rnd(w, 4)];
	struct agt_event ev = {.run = t->run, .seq = t->seq};

	if (!t->live)
		return;
	if (t->cancel && rnd(w, 3)) {
		ev.type = AGT_EV_XFER_CANCELLED;
		t->cancelled = true;
	} else if (!t->done) {
		ev.type = AGT_EV_XFER_DONE;
		ev.code = rnd(w, 6) ? 0 : WIRE_INTERNAL_ERROR;
		t->done = true;
		t->ok = ev.code == 0;
	} else {
		return;
	}
	step(w, &ev);
}

static struct run *some_run(struct world *w, uint32_t *ret)
{
	uint32_t at = w->last_run - rnd(w, 3);

	if (rnd(w, 4))
		at = w->last_run;
	*ret = at;
	return at < RUNS && w->runs[at].open && !w->runs[at].closed ? &w->runs[at] : NULL;
}

static void do_link(struct world *w)
{
	uint32_t run, peer = rnd(w, LINKS);
	struct run *r = some_run(w, &run);
	struct agt_event ev = {.run = run, .peer = fx_id(100 + peer), .text = "random"};
	uint8_t *l;

	if (!r)
		return;
	l = &r->links[peer];
	if (*l == 1) {
		ev.type = rnd(w, 6) ? AGT_EV_LINK_UP : AGT_EV_LINK_FAILED;
		*l = ev.type == AGT_EV_LINK_UP ? 2 : 0;
	} else {
		ev.type = AGT_EV_LINK_DOWN;
		ev.inbound = *l == 0 || rnd(w, 2);
		if (rnd(w, 20))
			return;
		if (!ev.inbound)
			*l = 0;
	}
	step(w, &ev);
}

static void master_says(struct world *w, uint32_t run, struct wm_msg *m)
{
	struct agt_event ev = {.type = AGT_EV_MASTER_MSG, .run = run, .msg = m};

	step(w, &ev);
}

static void master_round(struct world *w, uint32_t run, struct run *r)
{
	struct cc_id members[2][PEERS];
	struct wm_ring rings[2] = {0};
	struct wm_msg m = {.type = WM_ROUND};
	uint32_t g, i;

	for (g = 0; g < 2; g++) {
		struct wm_ring *x = &rings[m.u.round.n_rings];

		x->n_members = 0;
		x->members = members[g];
		for (i = 0; i < PEERS; i++)
			if (w->peers[i].in && w->peers[i].run == run && w->peers[i].group == g)
				members[g][x->n_members++] = w->peers[i].id;
		if (x->n_members == 0)
			continue;
		x->group = g;
		x->hosts = 1 + rnd(w, 3);
		x->pos = rnd(w, x->hosts);
		x->pool_size = 1 + rnd(w, 2);
		x->next.agent = fx_id(100 + rnd(w, LINKS));
		x->prev = fx_id(100 + rnd(w, LINKS));
		m.u.round.n_rings++;
	}
	m.u.round.rings = rings;
	r->reported = false;
	m.u.round.round = ++r->round;
	m.u.round.accept = rnd(w, 4);
	master_says(w, run, &m);
}

static void master_world(struct world *w, uint32_t run, struct run *r, enum wm_type type)
{
	struct wm_group_world own[2];
	uint32_t i;
	struct wm_world x = {.global = 8, .groups = 2, .largest = 5, .n = 2, .own = own};
	struct wm_msg m = {.type = type};

	for (i = 0; i < 2; i++) {
		r->losses[i] += !rnd(w, 10);
		own[i] = (struct wm_group_world){i, 2 + rnd(w, 4), r->losses[i]};
	}
	if (!rnd(w, 20))
		own[rnd(w, 2)].world = rnd(w, 2);
	if (type == WM_WORLD) {
		m.u.world = x;
	} else {
		m.u.commit.world = x;
		m.u.commit.round = rnd(w, 10) ? r->round : r->round + 1;
		m.u.commit.epoch = rnd(w, 100) ? ++r->epoch : 0;
		if (!r->reported && m.u.commit.round == r->round && rnd(w, 100))
			return;
		m.u.commit.accept = rnd(w, 5);
		r->topo_turn += m.u.commit.accept;
		m.u.commit.topo_turn = r->topo_turn;
	}
	master_says(w, run, &m);
}

static void master_op(struct world *w, uint32_t run, struct run *r, enum wm_type type)
{
	uint64_t seq = r->seq - rnd(w, 3);
	struct wm_msg m = {.type = type};

	if (type == WM_OP_START) {
		m.u.op_start.group = r->vote_group;
		m.u.op_start.tag = r->vote_tag;
		m.u.op_start.seq = rnd(w, 100) ? ++r->seq : seq;
	} else if (type == WM_OP_ABORT) {
		m.u.op_abort.group = rnd(w, 3) ? r->vote_group : rnd(w, 2);
		m.u.op_abort.tag = rnd(w, 3) ? r->vote_tag : rnd(w, 3);
		m.u.op_abort.seq = rnd(w, 3) ? 0 : seq;
		m.u.op_abort.code = rnd(w, 10);
		m.u.op_abort.losses = rnd(w, 20) ? r->vote_losses : 0;
	} else {
		const struct xfer *t = w->xfers;

		while (t < w->xfers + XFERS && !(t->live && t->run == run && t->ok && !t->cancel))
			t++;
		if (t < w->xfers + XFERS)
			seq = t->seq;
		else if (rnd(w, 100))
			return;
		m.u.op_done.seq = seq;
	}
	master_says(w, run, &m);
}

static void master_kick(struct world *w, uint32_t run)
{
	struct peer *p = &w->peers[rnd(w, PEERS)];
	struct wm_msg m = {.type = WM_KICK};

	if (!p->in || p->run != run)
		return;
	m.u.kick.peer = p->id;
	p->in = false;
	master_says(w, run, &m);
}

static void master_greets(struct world *w, uint32_t run, struct run *r)
{
	struct wm_msg m = {.type = WM_HELLO_ACK};
	struct wm_hello_ack *a = &m.u.hello_ack;

	a->version = 1;
	a->heartbeat_ms = 1000;
	a->timeout_ms = 5000;
	r->acked = true;
	if (!r->ready) {
		r->id = a->run = fx_id(rnd(w, 4) ? 500 + run : 499);
		r->term = a->term = 3;
		master_says(w, run, &m);
		return;
	}
	a->run = rnd(w, 20) ? r->id : fx_id(498);
	a->resume = rnd(w, 20);
	a->term = r->term + rnd(w, 3) - !rnd(w, 10);
	if (a->term > r->term)
		r->term = a->term;
	master_says(w, run, &m);
}

static void do_set_master(struct world *w)
{
	struct agt_event ev = {.type = AGT_EV_SET_MASTER, .from = fx_addr(rnd(w, 3))};

	ev.to = rnd(w, 3) ? fx_addr(rnd(w, 4)) : ev.to;
	ev.now = !rnd(w, 3);
	ev.run = rnd(w, 3) ? 0 : w->last_run;
	step(w, &ev);
}

static void do_stop(struct world *w)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_STOPPED, .stopped = rnd(w, 2)};

	ev.session = 1 + rnd(w, SESSIONS);
	step(w, &ev);
}

static void master_outcomes(struct world *w, uint32_t run)
{
	const struct peer *p = &w->peers[rnd(w, PEERS)];
	struct wm_msg m = {.type = WM_OP_OUTCOMES, .u.op_outcomes = {.n = 2}};

	m.u.op_outcomes.peer = p->id;
	m.u.op_outcomes.v[0] = (struct wm_outcome){3, WIRE_SUCCESS};
	m.u.op_outcomes.v[1] = (struct wm_outcome){4, WIRE_RANK_CONNECTION_LOST};
	master_says(w, run, &m);
}

static void do_master(struct world *w)
{
	uint32_t run;
	struct run *r = some_run(w, &run);
	struct agt_event ev = {.run = run, .text = "random"};
	struct wm_msg m = {.type = WM_PENDING_ANSWER};

	if (!r)
		return;
	if (!r->up && !r->dialled)
		return;
	if (!r->up) {
		r->dialled = false;
		ev.type = rnd(w, 8) ? AGT_EV_MASTER_UP : AGT_EV_MASTER_DOWN;
		r->up = ev.type == AGT_EV_MASTER_UP;
		step(w, &ev);
		return;
	}
	if (!r->acked) {
		master_greets(w, run, r);
		return;
	}
	switch (rnd(w, 16)) {
	case 0:
	case 1:
		master_round(w, run, r);
		break;
	case 2:
	case 3:
	case 4:
		master_world(w, run, r, WM_COMMIT);
		break;
	case 5:
		master_world(w, run, r, WM_WORLD);
		break;
	case 6:
	case 7:
	case 8:
		master_op(w, run, r, WM_OP_START);
		break;
	case 9:
	case 10:
		master_op(w, run, r, WM_OP_ABORT);
		break;
	case 11:
	case 12:
		master_op(w, run, r, WM_OP_DONE);
		break;
	case 13:
		if (!rnd(w, 10))
			master_kick(w, run);
		break;
	case 14:
		m.u.pending_answer.turn = ++r->pending_turn;
		master_says(w, run, &m);
		master_outcomes(w, run);
		break;
	default:
		memset(&m, 0, sizeof m);
		m.type = WM_HEARTBEAT;
		if (rnd(w, 60)) {
			master_says(w, run, &m);
		} else if (rnd(w, 2)) {
			m.type = (enum wm_type)rnd(w, 50); /* an empty message of any type */
			master_says(w, run, &m);
		} else {
			ev.type = AGT_EV_MASTER_DOWN;
			r->up = r->acked = false;
			step(w, &ev);
		}
		break;
	}
}

/* All processes end and the engine answers: nothing may be left. */
static void drain(struct world *w)
{
	struct agt_status st;
	uint32_t i;

	for (i = 1; i <= SESSIONS; i++) {
		struct agt_event ev = {.type = AGT_EV_SESSION_CLOSED, .session = i};

		w->session[i] = false;
		step(w, &ev);
	}
	for (i = 0; i < XFERS; i++) {
		struct xfer *t = &w->xfers[i];
		struct agt_event ev = {.type = AGT_EV_XFER_CANCELLED, .run = t->run, .seq = t->seq};

		if (!t->live)
			continue;
		ck_assert(t->cancel);
		t->cancelled = true;
		step(w, &ev);
	}
	for (i = 0; i < XFERS; i++)
		ck_assert(!w->xfers[i].live);
	for (i = 0; i < 200; i++) { /* runs that would still tell of those who left */
		struct agt_event tick = {.type = AGT_EV_TICK};

		w->f->now += 400 * (uint64_t)MS;
		step(w, &tick);
	}
	for (i = 0; i < RUNS; i++)
		ck_assert_int_eq(w->runs[i].open, w->runs[i].closed);
	agt_get_status(w->f->a, &st);
	ck_assert_uint_eq(st.sessions + st.comms + st.runs + st.ops, 0);
}

static void run_seed(uint64_t seed, struct world *w)
{
	struct agt_event tick = {.type = AGT_EV_TICK};
	int i;

	memset(w, 0, sizeof *w);
	w->rng = seed * 0x9e3779b97f4a7c15u + 1;
	w->f = fx_new();
	for (i = 0; i < STEPS; i++) {
		uint32_t what = rnd(w, 100);

		if (what < 1)
			rnd(w, 4) ? do_stop(w) : do_set_master(w);
		else if (what < 5)
			do_session(w);
		else if (what < 20)
			do_request(w);
		else if (what < 45)
			do_submit(w);
		else if (what < 55)
			do_xfer(w);
		else if (what < 68)
			do_link(w);
		else if (what < 98)
			do_master(w);
		else
			step(w, &tick);
	}
	drain(w);
	fx_free(w->f);
}

START_TEST(promises_hold_whatever_happens)
{
	static struct world w;
	uint32_t starts = 0, successes = 0, resumptions = 0, attached = 0;
	uint64_t seed;

	for (seed = 0; seed < 12; seed++) {
		run_seed((uint64_t)_i * 12 + seed, &w);
		starts += w.starts;
		successes += w.successes;
		resumptions += w.resumptions;
		attached += w.attached;
	}
	/* the generator reaches the interesting places */
	ck_assert_uint_gt(starts, 40);
	ck_assert_uint_gt(successes, 5);
	ck_assert_uint_gt(resumptions, 5);
	ck_assert_uint_gt(attached, 5);
}
END_TEST

Suite *random_suite(void)
{
	Suite *s = suite_create("random");
	TCase *t = tcase_create("random");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, promises_hold_whatever_happens, 0, 8);
	suite_add_tcase(s, t);
	return s;
}
