/* SPDX-License-Identifier: MIT
 *
 * Shared state: a few leaves on each peer, which programs keep equal, and the jobs that synchronize
 * it. Checked: an attempt has one election; each peer's part fits its candidate; no job writes to
 * tensors that the program owns, nor to those of a sender; after a success each member has exactly
 * the elected contents and revision; success is reported when all members of the group have the
 * contents.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim_sync.h"

#define STUCK (3 * SIM_S) /* a job without any progress for this time fails */

/* ---- the state of programs ---- */

static struct wm_digest digest(const struct sim *s, const struct sim_state *x)
{
	uint64_t a = sim_hash(s, x->value[0], x->value[1], 77), b = x->value[0];
	uint32_t i;

	for (i = 1; i < SIM_SEGS; i++) {
		a = sim_hash(s, a, x->value[i], i);
		b = sim_hash(s, b, x->value[i], 1000 + i);
	}
	return (struct wm_digest){a, b};
}

static bool same_digest(const struct wm_digest *a, const struct wm_digest *b)
{
	return a->hi == b->hi && a->lo == b->lo;
}

/* Chooses the contents with which a program begins. Most programs of a group begin with equal
 * contents. */
static void begin_anew(const struct sim *s, struct sim_peer *p)
{
	uint64_t own = sim_hash(s, p->no, 1, 1) % 3 == 0 ? p->no : 100 + p->group;
	uint32_t i;

	for (i = 0; i < SIM_SEGS; i++)
		p->mine.value[i] = sim_hash(s, own, i, 3);
	p->mine.mixed = false;
	p->in_step = false;
}

void sim_sync_setup(struct sim *s, struct sim_peer *p)
{
	p->mine.revision = sim_hash(s, p->group, 2, 2) % 3 == 0 ? 13 : 0;
	begin_anew(s, p);
}

static void train(struct sim *s, struct sim_state *x)
{
	uint32_t i;

	x->revision++;
	for (i = 0; i < SIM_SEGS; i++)
		x->value[i] = sim_hash(s, x->value[i], x->revision, 4);
}

void sim_sync_prepare(struct sim *s, struct sim_peer *p)
{
	if (sim_chance(s, 4)) {
		p->mine.value[sim_rnd(s, SIM_SEGS)]++;
		p->in_step = false;
		sim_trace(s, "p%u: its shared state has drifted", p->no);
	}
	if (s->odd_parameters && sim_chance(s, 3) && !p->mine.mixed)
		p->mine.revision++;
}

void sim_sync_learn(struct sim *s, struct sim_peer *p)
{
	s->syncs++;
	train(s, &p->mine);
	p->in_step = true;
}

/* Loads a lost revision from a checkpoint. Returns false if there is none. */
static bool checkpoint(struct sim *s, struct sim_peer *p, uint64_t revision)
{
	const struct sim_xfer *t;

	for (t = s->xfers; t; t = t->next) {
		if (!t->is_sync || !t->successes || t->group != p->group ||
			t->revision + 1 != revision || !cc_id_eq(&t->run, &p->run))
			continue;
		p->mine.revision = t->revision;
		memcpy(p->mine.value, t->value, sizeof t->value);
		p->mine.mixed = false;
		train(s, &p->mine);
		return true;
	}
	return false;
}

/* Loads the checkpoint that the text of the kick demands. The text may also demand a new
 * communicator, because a new communicator does not remember torn state. */
void sim_sync_put_out(struct sim *s, struct sim_peer *p, const char *text)
{
	const char *at = strstr(text, ": load revision ");
	uint64_t revision = at ? strtoull(at + strlen(": load revision "), NULL, 10) : 0;

	if (!at && !strstr(text, ": load a checkpoint"))
		return;
	if (strstr(text, "with a new communicator"))
		p->torn = false;
	if (!at || !checkpoint(s, p, revision)) {
		if (at)
			p->mine.revision = revision;
		if (p->mine.mixed)
			begin_anew(s, p);
	}
	p->in_step = false;
	sim_trace(s, "p%u: loads revision %" PRIu64, p->no, p->mine.revision);
}

/* In one step of 25, peers with the state of the last synchronization only send, and the others
 * only receive. */
static uint32_t strategy(const struct sim *s, const struct sim_peer *p)
{
	uint64_t run;

	memcpy(&run, p->run.b, sizeof run);
	if (sim_hash(s, run, p->ballots[WIRE_TOPOLOGY] << 16 | p->step << 8 | p->group, 5) % 25 > 0)
		return WM_STRATEGY_ENFORCE_POPULAR;
	return p->in_step ? WM_STRATEGY_SEND_ONLY : WM_STRATEGY_RECEIVE_ONLY;
}

void sim_sync_begin(struct sim *s, struct sim_peer *p)
{
	if (p->syncing)
		sim_fail(s, "p%u: synchronizes again before it has ended", p->no);
	p->syncing = true;
	p->was = p->mine;
	if (p->mine.revision != p->torn_revision)
		p->torn = false;
	s->torn += p->torn;
	p->candidate = (struct wm_sync_vote){.revision = p->mine.revision,
		.strategy = strategy(s, p),
		.torn = p->torn,
		.hash_type = WM_HASH_SIMPLE,
		.keys = {1, p->group},
		.content = digest(s, &p->mine),
		.n_tensors = SIM_SEGS,
		.bytes = sizeof p->mine.value};
	if (s->odd_parameters && sim_chance(s, 2))
		p->candidate.keys.hi = 2;
}

/* A new communicator does not remember torn state. The program does. */
void sim_sync_abandon(struct sim *s, struct sim_peer *p)
{
	p->syncing = p->torn = false;
	if (p->mine.mixed)
		begin_anew(s, p);
}

static void check_result(struct sim *s, const struct sim_peer *p, const struct sim_op *o)
{
	const struct sim_xfer *t = o->xfer;
	uint32_t i;

	if (!t || !o->voice || !o->voice->complete) {
		sim_fail(s, "p%u: it gets a success, but not the elected contents", p->no);
		return;
	}
	if (o->revision != t->revision)
		sim_fail(s, "p%u: gets revision %" PRIu64 ", not the elected %" PRIu64, p->no,
			o->revision, t->revision);
	for (i = 0; i < SIM_SEGS; i++)
		if (p->mine.value[i] != t->value[i])
			sim_fail(s, "p%u: leaf %u is not what was elected", p->no, i);
}

void sim_sync_end(struct sim *s, struct sim_peer *p, const struct sim_op *o)
{
	uint32_t i;

	if (!p->proc->alive)
		return;
	p->syncing = false;
	if (o->code == WIRE_SUCCESS) {
		check_result(s, p, o);
		p->mine.revision = o->revision;
		/* torn state may by chance equal the elected contents */
		p->mine.mixed = p->torn = false;
		return;
	}
	if (o->voice && o->voice->written) {
		p->torn = !o->voice->complete;
		p->torn_revision = p->mine.revision;
	}
	for (i = 0; i < SIM_SEGS; i++) {
		if (p->mine.value[i] == p->was.value[i])
			continue;
		p->in_step = false;
		if (!o->xfer || p->mine.value[i] != o->xfer->value[i])
			sim_fail(s, "p%u: leaf %u is neither what it was nor what was elected",
				p->no, i);
	}
}

/* ---- jobs ---- */

static void later(struct sim *s, const struct sim_part *q, enum sim_kind kind, uint64_t seq,
	uint32_t comm, uint64_t delay)
{
	struct sim_event ev = {.kind = kind, .host = q->host, .life = q->life};

	ev.run = q->run;
	ev.seq = seq;
	ev.conn = comm;
	sim_schedule(s, s->now + delay, ev);
}

static struct sim_state *state_of(struct sim *s, const struct sim_voice *v)
{
	return &s->peers[v->peer].mine;
}

/* Is the process still in the job, with the same communicator? */
static bool is_there(const struct sim *s, const struct sim_voice *v)
{
	const struct sim_peer *p = &s->peers[v->peer];

	return p->proc->alive && cc_id_eq(&p->id, &v->id) && !v->out && !v->failed;
}

static bool has_leaf(
	struct sim *s, const struct sim_xfer *t, const struct sim_part *q, uint32_t leaf)
{
	uint32_t i;

	for (i = 0; i < q->n; i++) {
		const struct sim_voice *v = &q->voices[i];

		if (is_there(s, v) && s->peers[v->peer].cast.strategy != WM_STRATEGY_RECEIVE_ONLY &&
			state_of(s, v)->value[leaf] == t->value[leaf])
			return true;
	}
	return false;
}

/* Can the agent send the leaf now? */
static bool serves(struct sim *s, const struct sim_xfer *t, const struct sim_part *q,
	const struct cc_id *agent, uint32_t leaf)
{
	const struct sim_host *h = sim_host_by_id(s, agent);
	const struct sim_part *from;
	uint32_t i;

	if (!h || !h->alive || s->deaf[q->host][h->no] || s->blocked[q->host][h->no])
		return false;
	for (i = 0; i < t->n_parts; i++) {
		from = &t->parts[i];
		if (from->host == h->no && from->life == h->life && from->live &&
			!from->cancelling && has_leaf(s, t, from, leaf))
			return true;
	}
	return false;
}

/* Can the leaf come from this host or from another agent? */
static bool can_get(
	struct sim *s, const struct sim_xfer *t, const struct sim_part *q, uint32_t leaf)
{
	uint32_t i;

	if (has_leaf(s, t, q, leaf))
		return true;
	for (i = 0; i < q->n_sources; i++)
		if (serves(s, t, q, &q->sources[i], leaf))
			return true;
	return false;
}

static void write_leaf(struct sim *s, const struct sim_xfer *t, struct sim_voice *v, uint32_t leaf)
{
	struct sim_peer *p = &s->peers[v->peer];

	if (!p->syncing || p->ops[SIM_SYNC].voice != v)
		sim_fail(s, "p%u: its state is written to after the call has ended", p->no);
	if (v->holder || p->candidate.strategy == WM_STRATEGY_SEND_ONLY)
		sim_fail(s, "p%u: its state is written to, and it is a sender", p->no);
	p->mine.value[leaf] = t->value[leaf];
	p->mine.mixed = memcmp(p->mine.value, t->value, sizeof t->value) != 0;
	v->written = true;
}

/* Moves one leaf that a receiver on this host lacks, if a peer has it now. Returns true if no leaf
 * is lacking. */
static bool move(struct sim *s, const struct sim_xfer *t, struct sim_part *q, bool *moved)
{
	bool lacks = false;
	uint32_t i, leaf;

	for (i = 0; i < q->n; i++) {
		struct sim_voice *v = &q->voices[i];

		if (v->complete || !is_there(s, v))
			continue;
		for (leaf = 0; leaf < SIM_SEGS; leaf++) {
			if (state_of(s, v)->value[leaf] == t->value[leaf])
				continue;
			lacks = true;
			if (!can_get(s, t, q, leaf))
				continue;
			write_leaf(s, t, v, leaf);
			*moved = true;
			return false;
		}
		v->complete = !lacks;
	}
	return !lacks;
}

static uint32_t results(const struct sim_part *q, struct agt_sync_result *v)
{
	uint32_t i;

	for (i = 0; i < q->n; i++)
		v[i] = (struct agt_sync_result){.comm = q->voices[i].comm,
			.failed = q->voices[i].failed,
			.complete = q->voices[i].complete,
			.code = q->voices[i].failed ? WIRE_INVALID_USAGE : 0,
			.text = q->voices[i].failed ? "its tensors do not match its hashes" : NULL};
	return q->n;
}

static void tell_done(struct sim *s, const struct sim_xfer *t, struct sim_part *q, uint32_t code)
{
	struct agt_event e = {.type = AGT_EV_SYNC_DONE, .run = q->run, .seq = t->seq};
	struct agt_sync_result v[SIM_PEERS];

	e.n_results = results(q, v);
	e.results = v;
	e.code = code;
	e.text = code ? "no source has the elected contents" : NULL;
	q->done = code == 0;
	q->gives_up = code != 0;
	sim_trace(s, "h%u: seq %" PRIu64 " is %s here", q->host, t->seq, code ? "failed" : "done");
	sim_host_step(s, &s->hosts[q->host], &e);
}

/* Lets one member fail, if any is to fail. */
static bool fail_one(struct sim *s, struct sim_part *q)
{
	uint32_t i;

	for (i = 0; i < q->n; i++) {
		if (!q->voices[i].fails || !is_there(s, &q->voices[i]))
			continue;
		q->voices[i].fails = false;
		q->voices[i].failed = true;
		s->seen[SEEN_FAILED]++;
		sim_trace(s, "p%u: its tensors do not match its hashes", q->voices[i].peer);
		sim_cause(s);
		return true;
	}
	return false;
}

static void step(
	struct sim *s, const struct sim_event *ev, const struct sim_xfer *t, struct sim_part *q)
{
	/* In some runs transfers take long, so that more faults happen during a transfer. */
	uint64_t pause = (100 + sim_rnd(s, 3000)) * SIM_US * (s->seed % 3 ? 1 : 100);
	bool moved = false, all;

	if (q->cancelled || q->gives_up)
		return;
	if (sim_chance(s, 30) && fail_one(s, q) && q->done) {
		tell_done(s, t, q, 0);
		return;
	}
	if (q->done)
		return;
	all = move(s, t, q, &moved);
	if (all && !fail_one(s, q)) {
		tell_done(s, t, q, 0);
		return;
	}
	if (moved || all)
		q->stuck_since = 0;
	else if (!q->stuck_since)
		q->stuck_since = s->now;
	else if (s->now > q->stuck_since + STUCK) {
		sim_cause(s);
		tell_done(s, t, q, WIRE_RANK_CONNECTION_LOST);
		return;
	}
	later(s, q, ev->kind, t->seq, 0, moved || all ? pause : pause + 50 * SIM_MS);
}

static void dropped(struct sim *s, const struct sim_event *ev, struct sim_part *q)
{
	struct agt_event e = {.type = AGT_EV_SYNC_DROPPED, .run = q->run, .seq = ev->seq};
	struct agt_sync_result v[SIM_PEERS];
	uint32_t i, n = results(q, v);

	if (q->cancelled)
		return;
	for (i = 0; i < n && v[i].comm != ev->conn; i++)
		;
	if (i == n)
		return;
	q->voices[i].out = true;
	e.comm = ev->conn;
	e.n_results = 1;
	e.results = &v[i];
	sim_host_step(s, &s->hosts[q->host], &e);
}

static void cancelled(struct sim *s, const struct sim_event *ev, struct sim_part *q)
{
	struct agt_event e = {.type = AGT_EV_SYNC_CANCELLED, .run = q->run, .seq = ev->seq};
	struct agt_sync_result v[SIM_PEERS];

	q->cancelled = true;
	e.n_results = results(q, v);
	e.results = v;
	sim_host_step(s, &s->hosts[q->host], &e);
}

void sim_sync_event(struct sim *s, const struct sim_event *ev)
{
	struct sim_xfer *t = NULL;
	struct sim_part *q = sim_xfer_live(s, ev->host, ev->life, ev->run, ev->seq, &t);

	if (!q)
		return;
	if (ev->kind == SIM_EV_SYNC_STEP)
		step(s, ev, t, q);
	else if (ev->kind == SIM_EV_SYNC_DROPPED)
		dropped(s, ev, q);
	else
		cancelled(s, ev, q);
}

static bool is_at_work(const struct sim *s, const struct sim_part *q)
{
	return q->live && !q->cancelling && s->hosts[q->host].alive &&
	       s->hosts[q->host].life == q->life;
}

int sim_sync_waiter(const struct sim *s)
{
	const struct sim_xfer *t;
	uint32_t i;

	for (t = s->xfers; t; t = t->next) {
		int waits = -1, works = -1;

		for (i = 0; t->is_sync && i < t->n_parts; i++)
			if (is_at_work(s, &t->parts[i]))
				*(t->parts[i].done ? &waits : &works) = (int)t->parts[i].host;
		if (waits >= 0 && works >= 0)
			return waits;
	}
	return -1;
}

/* ---- actions of the core ---- */

/* Finds the contents with the elected digest. A peer must have offered them, and they must not be
 * torn. */
static void find_value(struct sim *s, struct sim_xfer *t)
{
	bool found = false, whole = false;
	unsigned i;

	for (i = 0; i < s->n_peers; i++) {
		const struct sim_peer *p = &s->peers[i];

		if (!same_digest(&p->candidate.content, &t->content))
			continue;
		memcpy(t->value, p->was.value, sizeof t->value);
		found = true;
		whole |= !p->was.mixed;
	}
	if (!found)
		sim_fail(s, "seq %" PRIu64 ": no peer has offered the elected contents", t->seq);
	else if (!whole)
		sim_fail(s, "seq %" PRIu64 ": torn state was elected", t->seq);
}

static void check_elected(struct sim *s, struct sim_xfer *t, const struct agt_sync *y)
{
	if (!t->is_sync && t->n_parts > 0) {
		sim_fail(s, "seq %" PRIu64 " is a synchronization and an all-reduce", t->seq);
	} else if (!t->is_sync) {
		t->is_sync = true;
		t->group = y->group;
		t->revision = y->revision;
		t->content = y->content;
		find_value(s, t);
	} else if (t->group != y->group || t->revision != y->revision ||
		   !same_digest(&t->content, &y->content)) {
		sim_fail(s, "seq %" PRIu64 ": two elections for one attempt", t->seq);
	}
}

static void check_role(struct sim *s, const struct sim_xfer *t, const struct agt_sync *y,
	const struct sim_peer *p, bool holder)
{
	const struct wm_sync_vote *v = &p->candidate;

	if (!same_digest(&v->keys, &y->keys))
		sim_fail(s, "p%u takes part in seq %" PRIu64 " with other keys", p->no, t->seq);
	if (holder &&
		(!same_digest(&v->content, &y->content) || v->strategy == WM_STRATEGY_RECEIVE_ONLY))
		sim_fail(s, "p%u is a holder, but does not offer the contents", p->no);
	if (!holder && v->strategy == WM_STRATEGY_SEND_ONLY)
		sim_fail(s, "p%u is a receiver, but only sends", p->no);
}

static void start_voice(struct sim *s, struct sim_host *h, struct sim_xfer *t,
	const struct agt_sync *y, const struct agt_sync_member *x, struct sim_voice *v)
{
	struct sim_peer *p = sim_peer_find(s, h, x->comm);
	struct sim_op *o = &p->ops[SIM_SYNC];

	*v = (struct sim_voice){.peer = p->no,
		.id = p->id,
		.comm = p->comm,
		.slot = x->sub.slot,
		.key = sim_plan_key(p, SIM_SYNC),
		.holder = x->holder,
		.complete = x->holder};
	v->fails = s->xfer_failures && sim_chance(s, 4);
	if (o->state != OP_PENDING || o->slot != v->slot) {
		if (p->phase < PEER_DESTROYING)
			sim_fail(s, "h%u starts a job that p%u did not submit", h->no, p->no);
		v->out = true;
		return;
	}
	check_role(s, t, y, p, x->holder);
	s->served += !x->holder;
	o->xfer = t;
	o->voice = v;
	o->seq = t->seq;
	o->begin = y->begin;
}

static void take_sources(
	struct sim *s, const struct sim_host *h, struct sim_part *q, const struct agt_sync *y)
{
	uint32_t i;

	q->n_sources = y->n_sources;
	q->sources = calloc(y->n_sources + 1, sizeof *q->sources);
	if (!q->sources)
		abort();
	for (i = 0; i < y->n_sources; i++) {
		q->sources[i] = y->sources[i].endpoint.agent;
		if (cc_id_eq(&q->sources[i], &h->id))
			sim_fail(s, "host %u is named as a source for itself", h->no);
		if (i > 0 && y->sources[i].holds && !y->sources[i - 1].holds)
			sim_fail(s, "holders do not come first");
	}
}

/* Finds the job that a superseded master started, like the function of this name in sim_xfer.c. */
static struct sim_xfer *gone_over(struct sim *s, const struct cc_id *run, const struct agt_sync *y)
{
	struct sim_xfer *t;

	for (t = s->xfers; t; t = t->next)
		if (t->is_sync && t->seq == y->seq && cc_id_eq(&t->run, run) &&
			t->group == y->group && same_digest(&t->content, &y->content))
			return t;
	return NULL;
}

void sim_sync_start(struct sim *s, struct sim_host *h, const struct agt_action *a)
{
	const struct agt_sync *y = &a->u.sync;
	struct sim_xfer *t = sim_xfer_get(s, h, a->run, y->seq), *other = NULL;
	struct sim_part *q;
	uint32_t i;

	if (t->n_parts == 0 && sim_xfer_apart(s, h, a->run))
		other = gone_over(s, &t->run, y);
	if (other)
		t = other;

	check_elected(s, t, y);
	q = s->failure[0] ? NULL : sim_xfer_join(s, t, h, a->run);
	if (!q)
		return;
	q->voices = calloc(y->n_members, sizeof *q->voices);
	if (!q->voices)
		abort();
	for (i = 0; i < y->n_members; i++) {
		if (!sim_peer_find(s, h, y->members[i].comm))
			continue;
		start_voice(s, h, t, y, &y->members[i], &q->voices[q->n++]);
		t->contributions++;
	}
	take_sources(s, h, q, y);
	sim_trace(s, "h%u starts seq %" PRIu64 ", revision %" PRIu64 ", %u members, %u sources",
		h->no, t->seq, t->revision, q->n, q->n_sources);
	later(s, q, SIM_EV_SYNC_STEP, t->seq, 0, sim_rnd(s, 500) * SIM_US);
	if (s->xfer_failures) /* a member may also fail after the job is done */
		later(s, q, SIM_EV_SYNC_STEP, t->seq, 0, sim_rnd(s, 40) * SIM_MS);
}

void sim_sync_drop(struct sim *s, struct sim_host *h, const struct agt_action *a)
{
	struct sim_xfer *t = NULL;
	struct sim_part *q = sim_xfer_live(s, h->no, h->life, a->run, a->u.sync.seq, &t);

	if (!q || q->cancelling) {
		sim_fail(s, "host %u drops a member of a job that does not exist", h->no);
		return;
	}
	later(s, q, SIM_EV_SYNC_DROPPED, t->seq, a->comm, sim_delay(s));
}

void sim_sync_cancel(struct sim *s, struct sim_host *h, const struct agt_action *a)
{
	struct sim_xfer *t = NULL;
	struct sim_part *q = sim_xfer_live(s, h->no, h->life, a->run, a->u.sync.seq, &t);

	if (!q || q->cancelling) {
		sim_fail(s, "host %u cancels a job that does not exist", h->no);
		return;
	}
	q->cancelling = true;
	later(s, q, SIM_EV_SYNC_CANCELLED, t->seq, 0, sim_delay(s));
}

void sim_sync_free(struct sim *s, struct sim_host *h, const struct agt_action *a)
{
	struct sim_xfer *t = NULL;
	struct sim_part *q = sim_xfer_live(s, h->no, h->life, a->run, a->u.sync.seq, &t);

	if (!q || !q->cancelled) {
		sim_fail(s, "host %u frees the memory of job %" PRIu64 " too early", h->no,
			a->u.sync.seq);
		return;
	}
	q->live = false;
	if (h->runs[a->run].over)
		sim_links_drop(s, h, a->run);
}

/* ---- answers ---- */

void sim_sync_completed(struct sim *s, struct sim_host *h, struct sim_peer *p, struct sim_op *o)
{
	const struct sim_part *q = sim_xfer_part(o->xfer, h->no, h->life);

	if (!q) {
		if (o->code == WIRE_SUCCESS)
			sim_fail(s, "p%u: its state is synchronized without a job", p->no);
		return;
	}
	if (!q->live)
		sim_fail(s, "p%u: completed after the memory of job %" PRIu64 " was freed", p->no,
			o->seq);
	else if (!q->cancelled && !o->voice->out)
		sim_fail(s, "p%u: completed with %s while job %" PRIu64 " uses its tensors", p->no,
			sim_text_code(o->code), o->seq);
}

static const struct sim_voice *voice_of(const struct sim_xfer *t, const struct sim_peer *p)
{
	uint32_t i, j;

	for (i = 0; i < t->n_parts; i++)
		for (j = 0; j < t->parts[i].n; j++)
			if (cc_id_eq(&t->parts[i].voices[j].id, &p->id))
				return &t->parts[i].voices[j];
	return NULL;
}

/* A peer that learns of the success late may not be a member any more. */
void sim_sync_heard(struct sim *s, struct sim_peer *p, struct sim_op *o)
{
	const struct sim_voice *v;
	unsigned i;

	if (sim_is_split(s) || !sim_peer_is_member(s, p))
		return;
	for (i = 0; i < s->n_peers; i++) {
		const struct sim_peer *x = &s->peers[i];

		if (x->group != p->group || !cc_id_eq(&x->run, &p->run) ||
			!sim_peer_is_member(s, x))
			continue;
		v = voice_of(o->xfer, x);
		if (!v || !v->complete)
			sim_fail(s, "seq %" PRIu64 ": p%u gets a success, p%u of the same group %s",
				o->seq, p->no, x->no, v ? "lacks something" : "has no part in it");
	}
}
