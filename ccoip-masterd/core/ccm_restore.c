/* SPDX-License-Identifier: MIT
 *
 * The journal: its records of the run, and the restoration of a run from them.
 */
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_sync.h"

/* ---- writing ---- */

static struct wj_record *record(struct ccm *m, enum wj_type type)
{
	struct wj_record *r = ccm_journal_action(m);

	*r = (struct wj_record){.type = type};
	return r;
}

bool ccm_journal_writes(const struct ccm *m)
{
	return m->cfg.journal && !m->stale;
}

/* Writes the id and the term of the run, which must come before all other records. */
static void write_run(struct ccm *m)
{
	struct wj_record *r;

	if (m->written_term == m->term && cc_id_eq(&m->written_run, &m->cfg.run))
		return;
	m->written_term = m->term;
	m->written_run = m->cfg.run;
	r = record(m, WJ_RUN);
	r->run = m->cfg.run;
	r->run_key = m->cfg.run_key;
	r->term = m->term;
}

static struct wj_member *list_members(const struct ccm *m)
{
	struct wj_member *v = cc_must_zalloc(m->n_accepted, sizeof *v), *x = v;
	struct ccm_group *g;
	struct ccm_membership *s;
	struct ccm_peer *p;

	for (g = m->groups; g; g = g->hh.next) {
		DL_FOREACH2 (g->memberships, s, next_g) {
			DL_FOREACH (s->peers, p) {
				if (p->phase != CCM_PEER_ACCEPTED)
					break;
				*x = (struct wj_member){.peer = p->id,
					.token = p->token,
					.agent = s->agent->hello.agent,
					.group = g->id,
					.pid = p->pid};
				ccm_copy(x->host, sizeof x->host, s->agent->hello.name);
				ccm_copy(x->name, sizeof x->name, p->name);
				x++;
			}
		}
	}
	return v;
}

static struct wj_record snapshot(const struct ccm *m)
{
	uint32_t n;
	struct wj_revision *revisions = ccm_revision_list(m, &n);
	struct wj_record r = {.type = WJ_MEMBERS,
		.members = list_members(m),
		.n = m->n_accepted,
		.revisions = revisions,
		.n_revisions = n,
		.epoch = m->epoch,
		.round = m->committed,
		.view_id = m->view_id,
		.generation = m->last_generation,
		.last_seq = m->last_seq};

	ccm_ballot_numbers(m, r.ballots);
	return r;
}

void ccm_journal_members(struct ccm *m)
{
	m->n_unsaved = 0;
	m->resave = false;
	if (!ccm_journal_writes(m))
		return;
	write_run(m);
	*record(m, WJ_MEMBERS) = snapshot(m);
}

void ccm_journal_lost(struct ccm *m)
{
	struct wj_record *r;
	uint32_t i;

	if (ccm_journal_writes(m) && m->written_term) {
		r = record(m, WJ_LOST);
		r->view_id = m->view_id;
		r->generation = m->last_generation;
		r->members = cc_must_zalloc(m->n_unsaved, sizeof *r->members);
		for (i = 0; i < m->n_unsaved; i++)
			r->members[r->n++].peer = m->unsaved[i];
	}
	m->n_unsaved = 0;
	if (m->resave)
		ccm_journal_members(m);
}

void ccm_journal_note(struct ccm *m, const struct cc_id *peer)
{
	if (!m->cfg.journal)
		return;
	if (m->n_unsaved == m->cap_unsaved)
		m->unsaved = cc_must_grow(m->unsaved, &m->cap_unsaved, 8, sizeof *m->unsaved);
	m->unsaved[m->n_unsaved++] = *peer;
}

void ccm_journal_void(struct ccm *m)
{
	if (ccm_journal_writes(m))
		(void)record(m, WJ_RUN);
}

/* ---- reading ---- */

static void members_lost(struct ccm *m, const struct wj_record *r)
{
	struct wj_record *saved = &m->saved;
	uint32_t i, k;

	if (r->view_id > saved->view_id)
		saved->view_id = r->view_id;
	if (r->generation > saved->generation)
		saved->generation = r->generation;
	for (i = 0; i < r->n; i++) {
		ccm_gone_add(m, &r->members[i].peer);
		for (k = 0; k < saved->n; k++)
			if (cc_id_eq(&saved->members[k].peer, &r->members[i].peer))
				break;
		if (k == saved->n)
			continue;
		saved->n--;
		memmove(&saved->members[k], &saved->members[k + 1],
			(saved->n - k) * sizeof *saved->members);
	}
}

/* Takes a record of all members, which replaces everything that is known of them. */
static void members_restore(struct ccm *m, const struct wj_record *r)
{
	struct wj_record *saved = &m->saved;

	free(saved->members);
	free(saved->revisions);
	*saved = (struct wj_record){.type = WJ_RUN,
		.run = saved->run,
		.run_key = saved->run_key,
		.term = saved->term,
		.epoch = r->epoch,
		.round = r->round,
		.last_seq = r->last_seq,
		.view_id = r->view_id,
		.generation = r->generation,
		.n = r->n,
		.members = cc_must_copy(r->members, r->n, sizeof *r->members),
		.n_revisions = r->n_revisions,
		.revisions = cc_must_copy(r->revisions, r->n_revisions, sizeof *r->revisions)};
	memcpy(saved->ballots, r->ballots, sizeof saved->ballots);
}

void ccm_restore(struct ccm *m, const struct wj_record *r)
{
	switch (r->type) {
	case WJ_RUN:
		m->has_saved = !cc_id_is_zero(&r->run);
		if (!m->has_saved)
			wire_journal_clear(&m->saved);
		m->saved.run = r->run;
		m->saved.run_key = r->run_key;
		m->saved.term = r->term;
		break;
	case WJ_MEMBERS:
		members_restore(m, r);
		break;
	case WJ_LOST:
		members_lost(m, r);
		break;
	case WJ_RATES:
		ccm_store_keep(m, r);
		break;
	}
}

/* Returns the agent of a member in the journal. Makes it if necessary. */
static struct ccm_agent *restored_agent(struct ccm *m, const struct wj_member *x)
{
	struct ccm_agent *a;

	HASH_FIND(hh_id, m->by_id, &x->agent, sizeof x->agent, a);
	if (a)
		return a;
	a = cc_must_zalloc(1, sizeof *a);
	a->no = ++m->last_agent;
	a->greeted = a->disconnected = a->restored = true;
	a->disconnected_ns = m->now;
	a->hello.agent = x->agent;
	ccm_copy(a->hello.name, sizeof a->hello.name, x->host);
	DL_APPEND2(m->disconnected, a, prev_ab, next_ab);
	ccm_agent_claim(m, a);
	return a;
}

static void restore_member(struct ccm *m, const struct wj_member *x)
{
	struct wm_join j = {.peer = x->peer, .token = x->token, .group = x->group, .pid = x->pid};
	struct ccm_peer *p;

	if (ccm_peer_find(m, &x->peer))
		return;
	j.pool_size = 1;
	ccm_copy(j.name, sizeof j.name, x->name);
	p = ccm_peer_new(m, restored_agent(m, x), &j);
	ccm_peer_accept(m, p);
	p->membership->group->n_disconnected++;
	m->n_disconnected++;
}

static void restore_revision(struct ccm *m, const struct wj_revision *x)
{
	struct ccm_revision *r;

	ccm_revision_raise(m, x->group, x->revision);
	r = ccm_revision_find(m, x->group);
	if (r)
		r->lost = x->lost;
}

void ccm_restore_begin(struct ccm *m)
{
	struct wj_record *s = &m->saved;
	struct ccm_agent *a;
	uint32_t i;

	ccm_store_restore(m);
	if (!m->has_saved)
		return;
	if (s->type != WJ_RUN) {
		ccm_log(m, CCM_LOG_WARNING,
			"the journal does not name the members of its run: the master takes the "
			"run over from its agents");
		wire_journal_clear(s);
		m->has_saved = false;
		return;
	}
	m->restored = true;
	m->cfg.run = s->run;
	m->cfg.run_key = s->run_key;
	m->term = s->term + 1;
	m->epoch = s->epoch;
	m->committed = m->ring_epoch = m->last_round = s->round;
	m->view_id = m->restored_view_id = s->view_id;
	m->last_generation = s->generation;
	m->last_seq = s->last_seq;
	for (i = 0; i < WIRE_BALLOTS; i++)
		m->ballots[i].number = s->ballots[i];
	for (i = 0; i < s->n_revisions; i++)
		restore_revision(m, &s->revisions[i]);
	for (i = 0; i < s->n; i++)
		restore_member(m, &s->members[i]);
	DL_FOREACH2 (m->disconnected, a, next_ab) {
		if (a->claimed) {
			/* A claimed agent is in by_id, so by_id is not empty.
			 * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
			HASH_DELETE(hh_id, m->by_id, a);
		}
		a->claimed = false;
	}
	m->joins = m->n_unsaved = 0;
	m->recovering = m->n_accepted > 0;
	if (!m->recovering) {
		/* Agents remember more than the journal, and another master may read the journal,
		 * too. */
		m->epoch += ccm_unheard(m);
		m->last_seq += ccm_unheard(m);
		m->last_round += ccm_unheard(m);
		ccm_ballots_skip(m);
		ccm_at_least(&m->view_id, m->term << CCM_VIEW_SHIFT);
		ccm_lost_restart(m);
	}
	if (ccm_journal_writes(m))
		write_run(m);
	ccm_log(m, CCM_LOG_NOTICE, "restored from the journal: %u peers, epoch %llu, now term %llu",
		m->n_accepted, (unsigned long long)m->epoch, (unsigned long long)m->term);
	wire_journal_clear(s);
}

/* Drops the restored members. The agents have seen later masters than the journal, so they know the
 * run better. */
void ccm_restore_outdated(struct ccm *m)
{
	struct ccm_agent *a, *next;
	struct ccm_lost *x, *tmp;
	struct ccm_group *g;

	ccm_log(m, CCM_LOG_WARNING,
		"the journal is older than the agents' snapshots: the master ignores it");
	m->restored = false;
	DL_FOREACH_SAFE2 (m->disconnected, a, next, next_ab)
		if (a->restored)
			ccm_agent_lost(m, a, "the journal was outdated");
	HASH_ITER (hh, m->gone, x, tmp) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses track of the list */
		HASH_DELETE(hh, m->gone, x);
		free(x);
	}
	for (a = m->agents; a; a = a->hh.next)
		if (a->snapshot && a->snapshot->proven)
			ccm_snapshot_learn(m, a);
	for (g = m->groups; g; g = g->hh.next)
		g->n_left = g->n_lost_ever = 0;
	m->n_left = m->n_unsaved = 0;
	m->lost_members = 0;
}

/* ---- a master that was suspended ---- */

static struct wj_record lost_ones(const struct ccm *m)
{
	struct wj_record r = {.type = WJ_LOST};
	struct ccm_lost *x;

	r.members = cc_must_zalloc(HASH_COUNT(m->gone), sizeof *r.members);
	for (x = m->gone; x; x = x->hh.next)
		r.members[r.n++].peer = x->peer;
	return r;
}

/* Gives `to` the records that a complete journal would have. */
static void hand_over(const struct ccm *m, struct ccm *to)
{
	struct wj_record r[] = {
		{.type = WJ_RUN,
			.run = m->cfg.run,
			.run_key = m->cfg.run_key,
			.term = m->term - 1}, /* the restoration adds one */
		lost_ones(m),
		snapshot(m),
	};
	size_t i;

	for (i = 0; i < sizeof r / sizeof r[0]; i++) {
		ccm_restore(to, &r[i]);
		wire_journal_clear(&r[i]);
	}
}

/* Hands over the outcomes of attempts, so that attempts whose end agents already know are not
 * judged again. */
static void hand_over_outcomes(const struct ccm *m, struct ccm *to)
{
	const struct ccm_group *g;
	uint32_t i;

	to->ended =
		cc_must_zalloc((size_t)HASH_COUNT(m->groups) * WM_OUTCOMES_MAX, sizeof *to->ended);
	for (g = m->groups; g; g = g->hh.next)
		for (i = 0; i < WM_OUTCOMES_MAX && i < g->n_ended; i++)
			to->ended[to->n_ended++].end = g->ended[i];
}

/* Swaps the contents of m and `with`. Before that, `with` takes over from m what belongs to the
 * process or the network: the time, where actions go, and the bandwidth store. */
static void replace(struct ccm *m, struct ccm *with)
{
	struct ccm old;

	with->store = m->store;
	m->store = (struct ccm_store){0};
	old = *m;
	with->now = with->tick_ns = m->now;
	with->started_ns = m->started_ns;
	with->out = m->out;
	with->broken = m->broken;
	*m = *with;
	*with = old;
}

void ccm_restart(struct ccm *m, uint32_t gone, const char *why)
{
	struct ccm_config cfg = m->cfg;
	struct ccm *fresh;
	struct ccm_agent *a;

	cfg.run = m->born_run;
	fresh = ccm_new(&cfg);
	hand_over(m, fresh);
	hand_over_outcomes(m, fresh);
	for (a = m->agents; a; a = a->hh.next)
		if (a->conn != gone)
			ccm_close(m, a->conn, why);
	fresh->restarted_run = true;
	replace(m, fresh);
	ccm_free(fresh);
}

/* ---- a master that yields the run that newcomers have founded ---- */

struct ccm_agent *ccm_yield_run(struct ccm *m, const struct ccm_agent *a)
{
	struct ccm *old = ccm_new(&m->cfg);
	struct ccm_agent *x, *ret = NULL;
	uint32_t conn = a->conn;

	replace(m, old);
	ccm_resume_step(m);
	for (a = old->agents; a; a = a->hh.next) {
		ccm_agent_open(m,
			&(struct ccm_event){.conn = a->conn, .addr = a->from, .local = a->local});
		x = ccm_agent_find(m, a->conn);
		x->hello = a->hello;
		x->greeted = a->greeted;
		x->hello_deferred = a->hello_deferred;
		if (x->conn == conn)
			ret = x;
	}
	ccm_free(old);
	return ret;
}
