/* SPDX-License-Identifier: MIT
 *
 * Masters that send any message. Most messages fit the state of the run, some do not.
 */
#include "tests/agent/random.h"

struct run *rw_run(struct rnd_run *w, uint32_t *ret)
{
	uint32_t at = w->last_run - rnd(w, 3);

	if (rnd(w, 4))
		at = w->last_run;
	*ret = at;
	return at < RUNS && w->runs[at].open && !w->runs[at].closed ? &w->runs[at] : NULL;
}

static void master_says(struct rnd_run *w, uint32_t run, struct wm_msg *m)
{
	struct agt_event ev = {.type = AGT_EV_MASTER_MSG, .run = run, .msg = m};

	rw_step(w, &ev);
}

/* What the rings of a round own. */
struct ring_memory {
	struct cc_id members[PEERS];
	struct wm_endpoint others[LINKS];
	uint16_t order[CC_RINGS_MAX * LINKS];
};

static void shuffle(struct rnd_run *w, uint16_t *v, uint32_t n)
{
	uint32_t i, at;

	for (i = 0; i < n; i++) {
		at = rnd(w, i + 1);
		v[i] = v[at];
		v[at] = (uint16_t)i;
	}
}

/* Adds the other hosts, and a plan of several rings. */
static void add_plan(struct rnd_run *w, struct wm_ring *x, struct ring_memory *y)
{
	uint32_t i;

	if (x->hosts < 3 || !rnd(w, 2))
		return;
	x->others = y->others;
	for (i = 0; i < x->hosts - 2; i++)
		y->others[i] = (struct wm_endpoint){.agent = fx_id(100 + rnd(w, LINKS))};
	x->n_others = i;
	if (!rnd(w, 3))
		return;
	x->plan.n = 2 + rnd(w, CC_RINGS_MAX - 1);
	x->plan.n_order = x->plan.n * x->hosts;
	x->plan.order = y->order;
	for (i = 0; i < x->plan.n; i++) {
		x->plan.shares[i] = (uint16_t)(1 + rnd(w, 9));
		shuffle(w, y->order + (size_t)i * x->hosts, x->hosts);
	}
	x->await_plan = rnd(w, 2);
}

static void master_round(struct rnd_run *w, uint32_t run, struct run *r)
{
	struct ring_memory memory[2] = {0};
	struct wm_ring rings[2] = {0};
	struct wm_msg m = {.type = WM_ROUND};
	uint32_t g, i;

	for (g = 0; g < 2; g++) {
		struct wm_ring *x = &rings[m.u.round.n_rings];

		x->n_members = 0;
		x->members = memory[g].members;
		for (i = 0; i < PEERS; i++)
			if (w->peers[i].in && w->peers[i].run == run && w->peers[i].group == g)
				x->members[x->n_members++] = w->peers[i].id;
		if (x->n_members == 0)
			continue;
		x->group = g;
		x->hosts = 1 + rnd(w, LINKS);
		x->pos = rnd(w, x->hosts);
		x->pool_size = 1 + rnd(w, 2);
		x->next.agent = fx_id(100 + rnd(w, LINKS));
		x->prev = fx_id(100 + rnd(w, LINKS));
		add_plan(w, x, &memory[g]);
		m.u.round.n_rings++;
	}
	m.u.round.rings = rings;
	m.u.round.run_key = fx_id(498);
	r->reported = false;
	m.u.round.round = ++r->round;
	m.u.round.accept = rnd(w, 4);
	master_says(w, run, &m);
}

static void master_view(struct rnd_run *w, uint32_t run, struct run *r, enum wm_type type)
{
	struct wm_group_view own[2];
	uint32_t i;
	struct wm_view x = {.global = 8, .groups = 2, .largest = 5, .n = 2, .own = own};
	struct wm_msg m = {.type = type};

	for (i = 0; i < 2; i++) {
		r->generation[i] += !rnd(w, 10);
		own[i] = (struct wm_group_view){
			.group = i, .world_size = 2 + rnd(w, 4), .generation = r->generation[i]};
	}
	if (!rnd(w, 20))
		own[rnd(w, 2)].world_size = rnd(w, 2);
	if (type == WM_VIEW) {
		m.u.view = x;
	} else {
		m.u.commit.view = x;
		m.u.commit.round = rnd(w, 10) ? r->round : r->round + 1;
		m.u.commit.epoch = rnd(w, 100) ? ++r->epoch : 0;
		if (!r->reported && m.u.commit.round == r->round && rnd(w, 100))
			return;
		m.u.commit.accept = rnd(w, 5);
		r->ballots[WIRE_TOPOLOGY] += m.u.commit.accept;
		m.u.commit.ballots[WIRE_TOPOLOGY] = r->ballots[WIRE_TOPOLOGY];
	}
	master_says(w, run, &m);
}

/* Fills in a role for each peer of the group on this host, with few exceptions. */
static void fill_sync(struct rnd_run *w, uint32_t run, uint32_t group, struct wm_sync_start *s,
	struct wm_sync_peer *v)
{
	uint32_t i;

	s->peers = v;
	s->revision = rnd(w, 3);
	s->hash_type = WM_HASH_SIMPLE;
	for (i = 0; i < PEERS; i++)
		if (w->peers[i].in && w->peers[i].run == run && w->peers[i].group == group &&
			(rnd(w, 500)))
			v[s->n_peers++] = (struct wm_sync_peer){w->peers[i].id, rnd(w, 2)};
}

static void master_op(struct rnd_run *w, uint32_t run, struct run *r, enum wm_type type)
{
	uint64_t seq = r->seq - rnd(w, 3);
	struct wm_sync_peer peers[PEERS];
	struct wm_msg m = {.type = type};

	if (type == WM_OP_START) {
		m.u.op_start.group = r->vote_group;
		m.u.op_start.tag = r->vote_tag;
		m.u.op_start.seq = rnd(w, 100) ? ++r->seq : seq;
		m.u.op_start.is_sync = r->vote_is_sync;
		if (!r->vote_is_sync)
			m.u.op_start.route = rnd(w, 5) ? CC_ALGO_RING : rnd(w, CC_ALGO_COUNT);
		if (r->vote_is_sync)
			fill_sync(w, run, r->vote_group, &m.u.op_start.sync, peers);
	} else if (type == WM_OP_ABORT) {
		m.u.op_abort.group = rnd(w, 3) ? r->vote_group : rnd(w, 2);
		m.u.op_abort.tag = rnd(w, 3) ? r->vote_tag : rnd(w, 3);
		m.u.op_abort.seq = rnd(w, 3) ? 0 : seq;
		m.u.op_abort.is_sync = rnd(w, 10) ? r->vote_is_sync : rnd(w, 2);
		if (m.u.op_abort.is_sync)
			m.u.op_abort.tag = 0;
		m.u.op_abort.code = rnd(w, 10);
		m.u.op_abort.generation = rnd(w, 20) ? r->vote_generation : 0;
	} else {
		struct xfer *t = w->xfers;

		while (t < w->xfers + XFERS && !(t->live && t->run == run && t->ok && !t->cancel))
			t++;
		if (t < w->xfers + XFERS) {
			seq = t->seq;
			t->won = t->is_sync;
			w->won += t->won;
			m.u.op_done.revision = rnd(w, 3);
		} else if (rnd(w, 100)) {
			return;
		}
		m.u.op_done.seq = seq;
	}
	master_says(w, run, &m);
}

static void master_kick(struct rnd_run *w, uint32_t run)
{
	struct peer *p = &w->peers[rnd(w, PEERS)];
	struct wm_msg m = {.type = WM_KICK};

	if (!p->in || p->run != run)
		return;
	m.u.kick.peer = p->id;
	p->in = false;
	master_says(w, run, &m);
}

static void master_greets(struct rnd_run *w, uint32_t run, struct run *r)
{
	struct wm_msg m = {.type = WM_HELLO_ACK};
	struct wm_hello_ack *a = &m.u.hello_ack;

	a->version = WM_VERSION_MAX;
	a->features = rnd(w, 4) ? WM_FEATURES : 0;
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

static void master_outcomes(struct rnd_run *w, uint32_t run)
{
	const struct peer *p = &w->peers[rnd(w, PEERS)];
	struct wm_msg m = {.type = WM_OP_OUTCOMES, .u.op_outcomes = {.n = 2}};

	m.u.op_outcomes.peer = p->id;
	m.u.op_outcomes.v[0] = (struct wm_outcome){3, WIRE_SUCCESS};
	m.u.op_outcomes.v[1] = (struct wm_outcome){4, WIRE_RANK_CONNECTION_LOST};
	master_says(w, run, &m);
}

/* Orders a measurement. Now and then it leads to the agent itself, or only stops the one before. */
static void master_measure(struct rnd_run *w, uint32_t run, struct run *r)
{
	struct wm_endpoint to[LINKS] = {{.port = 1}};
	struct cc_id from[LINKS];
	struct wm_msg m = {.type = WM_MEASURE,
		.u.measure = {.number = ++r->last_measure,
			.ms = 1,
			.streams = 1,
			.n_to = rnd(w, LINKS),
			.to = to,
			.n_from = rnd(w, LINKS),
			.from = from}};

	for (uint32_t i = 0; i < LINKS; i++) {
		to[i].agent = fx_id(100 + i);
		from[i] = fx_id(100 + i);
	}
	if (!rnd(w, 50))
		to[0].agent = fx_id(99);
	master_says(w, run, &m);
}

void rw_master(struct rnd_run *w)
{
	uint32_t run;
	struct run *r = rw_run(w, &run);
	struct agt_event ev = {.run = run, .text = "random"};
	struct wm_msg m = {.type = WM_BALLOT_END};

	if (!r)
		return;
	if (!r->up && !r->connecting)
		return;
	if (!r->up) {
		r->connecting = false;
		ev.type = rnd(w, 8) ? AGT_EV_MASTER_UP : AGT_EV_MASTER_DOWN;
		r->up = ev.type == AGT_EV_MASTER_UP;
		rw_step(w, &ev);
		return;
	}
	if (!r->acked) {
		master_greets(w, run, r);
		return;
	}
	switch (rnd(w, 19)) {
	case 0:
	case 1:
		master_round(w, run, r);
		break;
	case 2:
	case 3:
	case 4:
		master_view(w, run, r, WM_COMMIT);
		break;
	case 5:
		master_view(w, run, r, WM_VIEW);
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
		if (!rnd(w, 5))
			master_kick(w, run);
		break;
	case 14:
		m.u.ballot_end.kind = WIRE_PENDING + rnd(w, 2);
		m.u.ballot_end.number = ++r->ballots[m.u.ballot_end.kind];
		master_says(w, run, &m);
		master_outcomes(w, run);
		break;
	case 15:
		m = (struct wm_msg){.type = WM_PROBE,
			.u.probe = {
				.number = 1 + rnd(w, 9), .to.agent = fx_id(100 + rnd(w, LINKS))}};
		master_says(w, run, &m);
		break;
	case 16:
		m = (struct wm_msg){.type = WM_LEFT, .u.left.peer = w->peers[rnd(w, PEERS)].id};
		master_says(w, run, &m);
		break;
	case 17:
		master_measure(w, run, r);
		break;
	default:
		m = (struct wm_msg){.type = WM_HEARTBEAT, .u.heartbeat.awaited = rnd(w, 2)};
		if (rnd(w, 60)) {
			master_says(w, run, &m);
		} else if (rnd(w, 2)) {
			/* an empty message of any type */
			m = (struct wm_msg){.type = (enum wm_type)rnd(w, 51)};
			master_says(w, run, &m);
		} else {
			ev.type = AGT_EV_MASTER_DOWN;
			r->up = r->acked = false;
			rw_step(w, &ev);
		}
		break;
	}
}
