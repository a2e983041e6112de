/* SPDX-License-Identifier: MIT
 *
 * A model of the agent's promises. Each request gets one reply and each submission one completion.
 * A submission does not complete while the engine may use its memory. Transfers and links are
 * opened and closed in order. Nothing follows the end of a run.
 */
#include "tests/agent/random.h"

static struct xfer *xfer_find(struct rnd_run *w, uint32_t run, uint64_t seq)
{
	uint32_t i;

	for (i = 0; i < XFERS; i++)
		if (w->xfers[i].live && w->xfers[i].run == run && w->xfers[i].seq == seq)
			return &w->xfers[i];
	return NULL;
}

static struct comm *comm_find(struct rnd_run *w, uint32_t id)
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

/* Checks that a member's tensors are released before its call completes, and that the call succeeds
 * only if the master has reported success. */
static void saw_job_complete(struct xfer *t, uint32_t member, bool success)
{
	ck_assert(t->cancelled || t->dropped[member]);
	if (success)
		ck_assert(t->won && t->cancelled);
	t->comm[member] = 0;
}

static void saw_complete(struct rnd_run *w, const struct agt_action *x)
{
	struct comm *c = comm_find(w, x->comm);
	uint32_t i, j;

	ck_assert_ptr_nonnull(c);
	ck_assert(c->busy[x->slot]);
	c->busy[x->slot] = false;
	w->completions++;
	w->successes += x->u.done.code == 0;
	for (i = 0; i < XFERS; i++) {
		struct xfer *t = &w->xfers[i];

		for (j = 0; t->live && j < t->n; j++) {
			if (t->comm[j] != x->comm || t->slot[j] != x->slot)
				continue;
			if (t->is_sync)
				saw_job_complete(t, j, x->u.done.code == 0);
			else
				ck_assert(x->u.done.code ? t->cancelled : t->ok);
		}
	}
}

static void saw_xfer_start(struct rnd_run *w, const struct agt_action *x)
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

static void saw_job_start(struct rnd_run *w, const struct agt_action *x)
{
	const struct agt_sync *y = &x->u.sync;
	struct xfer *m = w->xfers;
	uint32_t i;

	ck_assert_ptr_null(xfer_find(w, x->run, y->seq));
	ck_assert_uint_ge(y->n_members, 1);
	while (m->live)
		m++;
	*m = (struct xfer){.seq = y->seq, .run = x->run, .live = true, .is_sync = true};
	for (i = 0; i < y->n_members && i < 8; i++) {
		const struct comm *c = comm_find(w, y->members[i].comm);

		ck_assert(c && y->members[i].sub.is_sync);
		ck_assert(c->busy[y->members[i].sub.slot]);
		m->comm[m->n] = c->id;
		m->slot[m->n++] = y->members[i].sub.slot;
	}
	w->jobs++;
}

static void saw_drop(struct rnd_run *w, const struct agt_action *x)
{
	struct xfer *t = xfer_find(w, x->run, x->u.sync.seq);
	uint32_t i;

	ck_assert(t && t->is_sync && !t->cancel);
	for (i = 0; i < t->n; i++) {
		if (t->comm[i] != x->comm)
			continue;
		ck_assert(!t->drop[i]);
		t->drop[i] = true;
		w->drops++;
	}
}

static void saw_report(struct rnd_run *w, uint32_t run, const struct wm_op_report *m)
{
	struct xfer *t = xfer_find(w, run, m->seq);

	if (t && t->is_sync && m->ok)
		t->ok = true;
	ck_assert(!m->ok || !t || t->is_sync || m->n_failed == 0);
}

static void saw_link(struct rnd_run *w, const struct agt_action *x)
{
	uint8_t *l = &w->runs[x->run].links[link_number(&x->u.endpoint.agent)];

	if (x->type == AGT_ACT_LINK_OPEN) {
		ck_assert_uint_eq(*l, 0);
		*l = 1;
	} else {
		*l = 0;
	}
}

static void saw_join(struct rnd_run *w, uint32_t run, const struct wm_join *j)
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

/* The results of the last order: those of its measurement, or the reason why there was none. */
static void saw_measured(struct rnd_run *w, struct run *r, const struct wm_measured *m)
{
	ck_assert_uint_eq(m->number, r->last_measure);
	ck_assert_uint_gt(m->n, 0);
	for (uint32_t i = 0; i < m->n; i++) {
		ck_assert(fx_is(&m->results[i].agent, fx_id(100 + i)));
		w->measured += m->results[i].ok;
		w->unmeasured += !m->results[i].ok;
	}
	r->n_to = 0;
}

static void saw_send(struct rnd_run *w, const struct agt_action *x)
{
	struct run *r = &w->runs[x->run];
	const struct wm_msg *m = &x->u.msg;
	uint32_t i;

	ck_assert(r->up && !r->closed);
	ck_assert(r->acked != (m->type == WM_HELLO));
	switch (m->type) {
	case WM_HELLO:
		ck_assert(!r->ready || cc_id_eq(&m->u.hello.run, &r->id));
		ck_assert(!r->ready || cc_id_is_zero(&m->u.hello.run_key) ||
			  m->u.hello.term == r->term);
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
	case WM_MEASURED:
		saw_measured(w, r, &m->u.measured);
		break;
	case WM_LEAVE:
		for (i = 0; i < PEERS; i++)
			if (w->peers[i].in && cc_id_eq(&w->peers[i].id, &m->u.leave.peer))
				w->peers[i].in = false;
		break;
	case WM_OP_REPORT:
		saw_report(w, x->run, &m->u.op_report);
		break;
	case WM_ROUND_REPORT:
		r->reported = m->u.round_report.n_failures == 0;
		break;
	case WM_OP_VOTE:
		ck_assert_uint_ge(m->u.op_vote.n_peers, 1);
		r->vote_group = m->u.op_vote.group;
		r->vote_tag = m->u.op_vote.tag;
		r->vote_is_sync = m->u.op_vote.is_sync;
		r->vote_generation = m->u.op_vote.generation;
		break;
	default:
		break;
	}
}

static void saw_close(struct rnd_run *w, uint32_t run)
{
	struct run *r = &w->runs[run];
	uint32_t i;

	ck_assert(r->open && !r->closed);
	r->closed = true;
	r->measure = r->n_to = 0;
	for (i = 0; i < XFERS; i++)
		if (w->xfers[i].live && w->xfers[i].run == run)
			ck_assert(w->xfers[i].cancel);
	for (i = 0; i < PEERS; i++)
		if (w->peers[i].run == run)
			w->peers[i].in = false;
}

static void saw_comm_open(struct rnd_run *w, const struct agt_action *x)
{
	struct comm *c = &w->comms[x->comm % COMMS];

	w->waiting[x->session]--;
	w->attached += x->u.open.attrs.state == SHM_COMM_CONNECTED;
	ck_assert(!c->alive);
	*c = (struct comm){.alive = true, .id = x->comm, .session = x->session};
}

static void saw_connect(struct rnd_run *w, const struct agt_action *x)
{
	struct run *r;

	ck_assert_uint_lt(x->run, RUNS);
	r = &w->runs[x->run];
	ck_assert(!r->closed);
	if (x->type == AGT_ACT_MASTER_OPEN) {
		r->open = true;
		w->last_run = x->run;
	}
	ck_assert(r->open);
	r->connecting = x->type == AGT_ACT_MASTER_OPEN;
	r->up = r->acked = false;
}

static void saw_xfer_end(struct rnd_run *w, const struct agt_action *x)
{
	bool is_sync = x->type == AGT_ACT_SYNC_CANCEL || x->type == AGT_ACT_SYNC_FREE;
	struct xfer *t = xfer_find(w, x->run, is_sync ? x->u.sync.seq : x->u.xfer.seq);

	ck_assert(t && t->is_sync == is_sync);
	if (x->type == AGT_ACT_XFER_CANCEL || x->type == AGT_ACT_SYNC_CANCEL) {
		ck_assert(!t->cancel);
		t->cancel = true;
	} else {
		ck_assert(t->cancelled || (t->ok && !t->cancel && !is_sync));
		t->live = false;
	}
}

static void saw_measure(struct rnd_run *w, const struct agt_action *x)
{
	struct run *r = &w->runs[x->run];

	ck_assert(!r->closed);
	if (x->type == AGT_ACT_MEASURE) {
		ck_assert(r->up);
		ck_assert_uint_eq(x->u.measure.number, r->last_measure);
		r->measure = x->u.measure.number;
		r->n_to = x->u.measure.n_to;
	} else {
		ck_assert_uint_eq(x->u.measure.number, r->measure);
		r->measure = r->n_to = 0;
	}
}

static void saw(struct rnd_run *w, const struct agt_action *x)
{
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
		saw_comm_open(w, x);
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
	case AGT_ACT_MASTER_DROP:
		saw_connect(w, x);
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
	case AGT_ACT_PROBE:
		ck_assert(!w->runs[x->run].closed);
		break;
	case AGT_ACT_MEASURE:
	case AGT_ACT_MEASURE_STOP:
	case AGT_ACT_MEASURE_BUSY:
		saw_measure(w, x);
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
	case AGT_ACT_XFER_FREE:
	case AGT_ACT_SYNC_CANCEL:
	case AGT_ACT_SYNC_FREE:
		saw_xfer_end(w, x);
		break;
	case AGT_ACT_SYNC_START:
		saw_job_start(w, x);
		break;
	case AGT_ACT_SYNC_DROP:
		saw_drop(w, x);
		break;
	case AGT_ACT_XFER_ROLLBACK:
		ck_assert_ptr_nonnull(xfer_find(w, x->run, x->u.xfer.seq));
		ck_assert(!xfer_find(w, x->run, x->u.xfer.seq)->cancel);
		xfer_find(w, x->run, x->u.xfer.seq)->live = false;
		break;
	case AGT_ACT_XFER_EXPECT:
	case AGT_ACT_XFER_FORGET:
	case AGT_ACT_XFER_SKIP:
		ck_assert(!w->runs[x->run].closed);
		ck_assert_ptr_null(xfer_find(w, x->run, x->u.xfer.seq));
		break;
	case AGT_ACT_LOG:
		break;
	}
}

void rw_step(struct rnd_run *w, const struct agt_event *ev)
{
	size_t i;

	w->f->now += rnd(w, 20) * MS;
	fx_step(w->f, ev);
	for (i = 0; i < w->f->acts.n; i++)
		saw(w, &w->f->acts.v[i]);
}
