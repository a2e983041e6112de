/* SPDX-License-Identifier: MIT
 *
 * A run without a master: what the agent keeps, and the snapshot for the next master. No messages
 * are queued for the next master; it gets the state at the time when it comes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

#define OUTCOMES_MAX 32768u /* in one snapshot: a frame holds no more */
#define MOMENTS_MAX  8u     /* masters in a row that may be lost soon after they came */

/* Starts the lease of a run that has lost its master. The lease is not renewed if one master after
 * the other is lost soon after it came, for example because only the answer to the hello gets
 * through. */
static void run_lease(const struct agt *a, struct agt_run *r)
{
	bool moment = a->now - r->since_ns < UINT64_C(2) * r->timeout_ms * AGT_NS_PER_MS;

	r->n_moments = moment ? r->n_moments + 1 : 0;
	if (r->n_moments <= MOMENTS_MAX)
		r->lease_ns = a->now;
}

void agt_orphan(struct agt *a, struct agt_run *r, const char *why, bool open)
{
	struct agt_round *rd = &r->round;
	char addr[CC_ADDR_STR_SIZE];

	agt_copy_text(r->why, sizeof r->why, why);
	agt_log(a, AGT_LOG_WARNING, "lost the master at %s (%s): its run is kept for %.1f s",
		cc_addr_str(&r->connect_addr, addr), why, (double)a->cfg.master_lease_ms / 1e3);
	run_lease(a, r);
	agt_run_set_state(a, r, AGT_RUN_ORPHAN);
	r->orphan_ns = a->now;
	r->redirected = false;
	agt_waits_forget(r);
	agt_leaves_answer(a, r);
	/* A round that this agent has not reported as prepared is in force nowhere. */
	if (rd->active && (!rd->reported || !rd->ok)) {
		r->aborted_round = rd->number;
		agt_round_clear(rd);
	}
	r->check_links = true;
	if (open)
		agt_emit(a, AGT_ACT_MASTER_DROP)->run = r->id;
	if (r->n_comms || r->ghosts)
		agt_conn_next(a, r);
}

/* ---- outcomes of attempts ---- */

static struct agt_history *history_get(struct agt_run *r, uint32_t group)
{
	struct agt_history *h, *next;

	HASH_FIND(hh, r->history, &group, sizeof group, h);
	if (h)
		return h;
	if (HASH_COUNT(r->history) >= WM_RINGS_MAX) {
		HASH_ITER (hh, r->history, h, next) {
			if (agt_group_find(r, h->group))
				continue;
			HASH_DELETE(hh, r->history, h);
			free(h);
		}
	}
	h = cc_must_zalloc(1, sizeof *h);
	h->group = group;
	HASH_ADD(hh, r->history, group, sizeof h->group, h);
	return h;
}

/* Is the outcome of `seq` recorded already? Several peers of the group may have asked about it. */
static bool knows(const struct agt_history *h, uint64_t seq)
{
	uint32_t i;

	for (i = 0; seq <= h->highest && i < h->n; i++)
		if (h->v[i].seq == seq)
			return true;
	return false;
}

/* Outcomes are kept in the order of their ends, so an attempt that started long ago is not the
 * first to be dropped. */
void agt_history_add(struct agt_run *r, uint32_t group, uint64_t seq, uint32_t code)
{
	struct agt_history *h = history_get(r, group);

	if (knows(h, seq))
		return;
	if (h->n == WM_OUTCOMES_MAX)
		memmove(&h->v[0], &h->v[1], --h->n * sizeof h->v[0]);
	h->v[h->n++] = (struct wm_outcome){.seq = seq, .code = code};
	if (seq > h->highest)
		h->highest = seq;
}

void agt_history_free(struct agt_run *r)
{
	struct agt_history *h = r->history, *next;

	HASH_CLEAR(hh, r->history);
	for (; h; h = next) {
		next = h->hh.next;
		free(h);
	}
}

/* ---- the term of the last master ---- */

uint64_t agt_term_of(const struct agt *a, const struct cc_id *run)
{
	uint32_t i;

	for (i = 0; i < AGT_FENCES; i++)
		if (cc_id_eq(&a->fences[i].run, run))
			return a->fences[i].term;
	return 0;
}

void agt_term_set(struct agt *a, struct agt_run *r, uint64_t term)
{
	uint32_t i;

	r->term = term;
	for (i = 0; i < AGT_FENCES; i++)
		if (cc_id_eq(&a->fences[i].run, &r->run_id))
			break;
	if (i == AGT_FENCES)
		i = a->last_fence++ % AGT_FENCES;
	a->fences[i] = (struct agt_fence){.run = r->run_id, .term = term};
}

/* ---- the snapshot ---- */

static void tell_members(struct agt *a, struct agt_run *r)
{
	struct agt_comm *c;

	DL_FOREACH2 (r->comms, c, next_r) {
		agt_run_fill_join(c, &agt_send(a, r, WM_JOIN)->u.join);
		c->joined = true;
		if (c->state == AGT_COMM_JOINING)
			agt_comm_set_state(a, c, AGT_COMM_REGISTERED);
		if (c->session->stopped_ns)
			agt_tell_stopped(a, c);
	}
	agt_leaves_tell(a, r);
}

/* Fills in the latest outcomes of each group; all of them if there is room. */
static void fill_outcomes(const struct agt_run *r, struct wm_resume *m)
{
	const struct agt_history *h;
	uint32_t each = OUTCOMES_MAX / (HASH_COUNT(r->history) + 1);
	uint32_t n = 0;

	for (h = r->history; h; h = h->hh.next)
		n += h->n < each ? h->n : each;
	if (n == 0)
		return;
	m->outcomes = cc_must_zalloc(n, sizeof *m->outcomes);
	for (h = r->history; h; h = h->hh.next) {
		n = h->n < each ? h->n : each;
		memcpy(m->outcomes + m->n_outcomes, h->v + h->n - n, n * sizeof h->v[0]);
		m->n_outcomes += n;
	}
}

static struct wire_view last_generation(const struct agt_group *g)
{
	return g->n_lost ? g->lost[g->n_lost - 1].view : (struct wire_view){.view_id = 0};
}

static void fill_position(const struct wm_ring *g, struct wm_ring_position *p)
{
	*p = (struct wm_ring_position){g->group, g->hosts, g->pos, g->plan};
	p->plan.order = cc_must_copy(g->plan.order, g->plan.n_order, sizeof *g->plan.order);
}

static void fill_groups(const struct agt_run *r, struct wm_resume *m)
{
	uint32_t n = HASH_COUNT(r->groups);
	const struct agt_group *g;

	m->view = r->view;
	m->view.n_lost = r->n_lost;
	m->view.lost = cc_must_copy(r->lost, r->n_lost, sizeof r->lost[0]);
	m->view.lost_floor = r->lost_floor;
	if (n == 0)
		return;
	m->view.own = cc_must_zalloc(n, sizeof *m->view.own);
	m->positions = cc_must_zalloc(n, sizeof *m->positions);
	for (g = r->groups; g; g = g->hh.next) {
		if (g->world_size == 0)
			continue;
		m->view.own[m->view.n++] = (struct wm_group_view){.group = g->group,
			.world_size = g->world_size,
			.generation = g->generation,
			.at_generation = last_generation(g),
			.revision = g->revision};
		if (g->has_ring)
			fill_position(&g->ring, &m->positions[m->n_positions++]);
	}
}

void agt_resume_end(struct agt *a, struct agt_run *r)
{
	struct wm_resume *m = &agt_send(a, r, WM_RESUME)->u.resume;

	m->epoch = r->epoch;
	m->round = r->committed;
	m->ring_epoch = r->ring_epoch;
	m->prepared = r->round.active ? r->round.number : 0;
	m->prepared_peers = r->round.peers;
	m->aborted_round = r->aborted_round;
	m->last_seq = r->last_seq;
	memcpy(m->ballots, r->ballots, sizeof m->ballots);
	fill_groups(r, m);
	fill_outcomes(r, m);
}

/* Sends a snapshot of the present state to the master. */
static void tell(struct agt *a, struct agt_run *r)
{
	struct agt_comm *c;
	struct agt_op *o;

	agt_spec_forget_all(a, r);
	tell_members(a, r);
	DL_FOREACH2 (r->ops, o, next_op)
		agt_op_tell(a, o);
	agt_ballot_tell(a, r);
	agt_rates_tell(a, r);
	agt_resume_end(a, r);
	r->reopens = 0;
	agt_links_tell(a, r);
	DL_FOREACH2 (r->comms, c, next_r)
		if (c->attach)
			agt_attach_query(a, c);
}

/* Ends the run, because the master does not take it back. same: the master does have the run of r,
 * but it took the run over from agents without state, and the run went on before this agent came.
 */
static void refused(struct agt *a, struct agt_run *r, bool same)
{
	char addr[CC_ADDR_STR_SIZE];
	struct agt_end_status v;

	(void)cc_addr_str(&r->connect_addr, addr);
	if (same)
		agt_end_status_set(&v, WIRE_RANK_CONNECTION_LOST,
			"lost the master (%.100s); the run has gone on under the master at %s, "
			"without the peers of this host: call pcclConnect again",
			r->why, addr);
	else
		agt_end_status_set(&v, WIRE_MASTER_CONNECTION_FAILED,
			"lost the master (%.100s); the master at %s does not know that run: call "
			"pcclConnect to join the run of that master",
			r->why, addr);
	agt_log(a, AGT_LOG_WARNING, "%s", v.text);
	agt_run_over(a, r, &v);
}

void agt_resume_ack(struct agt *a, struct agt_run *r, const struct wm_hello_ack *m)
{
	bool same = cc_id_eq(&m->run, &r->run_id);
	char addr[CC_ADDR_STR_SIZE];

	(void)cc_addr_str(&r->connect_addr, addr);
	if (!same && r->redirected) {
		agt_log(a, AGT_LOG_NOTICE, "the master at %s has another run", addr);
		agt_conn_failed(a, r, "it has another run", true);
		return;
	}
	if (!same || !m->resume) {
		refused(a, r, same);
		return;
	}
	if (m->term < r->term) {
		agt_log(a, AGT_LOG_WARNING,
			"the master at %s is stale: term %" PRIu64
			", the run had a master of term %" PRIu64,
			addr, m->term, r->term);
		agt_conn_failed(a, r, "stale", true);
		return;
	}
	agt_term_set(a, r, m->term);
	r->resumed = true;
	agt_master_settings(a, r, m);
	agt_conn_reached(a, r);
	agt_run_set_state(a, r, AGT_RUN_UP);
	agt_log(a, AGT_LOG_NOTICE, "master %s: run %u goes on after %.3f s, term %" PRIu64, addr,
		r->id, (double)(a->now - r->orphan_ns) / 1e9, m->term);
	tell(a, r);
}
