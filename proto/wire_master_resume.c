/* SPDX-License-Identifier: MIT
 *
 * Decodes views, snapshots, and queries and outcomes of attempts.
 */
#include <stdlib.h>

#include "common/cc_err.h"
#include "common/cc_zalloc.h"
#include "proto/wire_master_internal.h"
#include "proto/wire_pb.h"

_Static_assert(WM_RESUME_OUTCOMES_MAX == WM_OUTCOMES_MAX * WM_RINGS_MAX, "as the header says");

void *wire_new_array(size_t n, size_t size, int *err, const char **why)
{
	void *v = cc_zalloc(n > 0 ? n : 1, size);

	if (v == NULL) {
		*err = CC_ERR_NOMEM;
		*why = "message: no memory to decode it";
	}
	return v;
}

static int get_view_sizes(const Ccoip__ViewSizes *p, struct wire_view *m, const char **why)
{
	if (p == NULL)
		return 0;
	if (p->view_id == 0)
		return wire_bad(why, "view.own.at_generation.view_id: must not be 0");
	m->view_id = p->view_id;
	m->global = p->global;
	m->group = p->group;
	m->groups = p->groups;
	m->largest = p->largest;
	return 0;
}

int wire_get_view(const Ccoip__View *p, struct wm_view *m, const char **why, const char *missing)
{
	int rc = 0;

	if (p == NULL)
		return wire_bad(why, missing);
	if (p->n_own > WM_RINGS_MAX)
		return wire_bad(why, "view.own: must be at most " WIRE_STR(WM_RINGS_MAX));
	m->global = p->global;
	m->groups = p->groups;
	m->largest = p->largest;
	m->view_id = p->view_id;
	m->own = wire_new_array(p->n_own, sizeof *m->own, &rc, why);
	if (m->own == NULL)
		return rc;
	m->n = (uint32_t)p->n_own;
	for (size_t i = 0; i < p->n_own; i++) {
		for (size_t k = 0; k < i; k++)
			if (p->own[k]->group == p->own[i]->group)
				return wire_bad(why, "view.own: must not name a group twice");
		m->own[i].group = p->own[i]->group;
		m->own[i].world_size = p->own[i]->world_size;
		m->own[i].generation = p->own[i]->generation;
		rc = wire_get_text(m->own[i].loss, sizeof m->own[i].loss, p->own[i]->loss, why,
			"view.own.loss: must be at most 383 bytes");
		if (rc < 0)
			return rc;
		m->own[i].revision = p->own[i]->revision;
		m->own[i].begun = p->own[i]->attempt_ring_epoch;
		rc = get_view_sizes(p->own[i]->at_generation, &m->own[i].at_generation, why);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int get_positions(const Ccoip__Resume *p, struct wm_resume *m, const char **why)
{
	int rc = 0;

	if (p->n_positions > WM_RINGS_MAX)
		return wire_bad(why, "resume.positions: must be at most " WIRE_STR(WM_RINGS_MAX));
	m->positions = wire_new_array(p->n_positions, sizeof *m->positions, &rc, why);
	if (m->positions == NULL)
		return rc;
	m->n_positions = (uint32_t)p->n_positions;
	for (size_t i = 0; i < p->n_positions; i++) {
		const Ccoip__RingPosition *v = p->positions[i];

		if (v->hosts < 1 || v->hosts > WM_HOSTS_MAX)
			return wire_bad(why,
				"resume.positions.hosts: must be 1 to " WIRE_STR(WM_HOSTS_MAX));
		if (v->pos >= v->hosts)
			return wire_bad(why, "resume.positions.pos: must be below hosts");
		for (size_t k = 0; k < i; k++)
			if (p->positions[k]->group == v->group)
				return wire_bad(
					why, "resume.positions: must not name a group twice");
		m->positions[i] = (struct wm_ring_position){
			.group = v->group, .hosts = v->hosts, .pos = v->pos};
	}
	return 0;
}

/* Decodes outcomes. ret has room for all outcomes of p. */
static int get_outcomes(const Ccoip__Outcomes *p, struct wm_outcome *ret, const char **why)
{
	if (p->n_codes != p->n_seqs)
		return wire_bad(why, "outcomes.codes: must be one for each of seqs");
	for (size_t i = 0; i < p->n_seqs; i++) {
		if (p->seqs[i] < 1)
			return wire_bad(why, "outcomes.seqs: must be at least 1");
		if (p->codes[i] > WIRE_CODE_MAX)
			return wire_bad(why, "outcomes.codes: must be at most 255");
		ret[i] = (struct wm_outcome){.seq = p->seqs[i], .code = p->codes[i]};
	}
	return 0;
}

int wire_get_resume(const Ccoip__Resume *p, struct wm_resume *m, const char **why)
{
	size_t n = p->outcomes != NULL ? p->outcomes->n_seqs : 0;
	int rc;

	m->epoch = p->epoch;
	m->round = p->round;
	m->ring_epoch = p->ring_epoch;
	m->prepared = p->prepared;
	m->prepared_peers = p->prepared_peers;
	m->aborted_round = p->aborted_round;
	m->last_seq = p->last_seq;
	m->topo_ballot = p->topo_ballot;
	m->pending_ballot = p->pending_ballot;
	rc = wire_get_view(p->view, &m->view, why, "resume.view: must be there");
	if (rc == 0)
		rc = get_positions(p, m, why);
	if (rc != 0)
		return rc;
	if (n > WM_RESUME_OUTCOMES_MAX)
		return wire_bad(
			why, "resume.outcomes: must be at most " WIRE_STR(WM_RESUME_OUTCOMES_MAX));
	m->outcomes = wire_new_array(n, sizeof *m->outcomes, &rc, why);
	if (m->outcomes == NULL)
		return rc;
	m->n_outcomes = (uint32_t)n;
	return p->outcomes != NULL ? get_outcomes(p->outcomes, m->outcomes, why) : 0;
}

int wire_get_op_query(const Ccoip__OpQuery *p, struct wm_op_query *m, const char **why)
{
	if (p->n_seqs < 1 || p->n_seqs > WM_OUTCOMES_MAX)
		return wire_bad(why, "op_query.seqs: must be 1 to " WIRE_STR(WM_OUTCOMES_MAX));
	for (size_t i = 0; i < p->n_seqs; i++) {
		if (p->seqs[i] < 1)
			return wire_bad(why, "op_query.seqs: must be at least 1");
		m->seqs[i] = p->seqs[i];
	}
	if (p->succeeded > p->n_seqs)
		return wire_bad(why, "op_query.succeeded: must be at most as many as seqs");
	m->n = (uint32_t)p->n_seqs;
	m->n_succeeded = p->succeeded;
	return wire_get_id(&m->peer, p->peer, why, "op_query.peer: " WIRE_ID_LIMIT);
}

int wire_get_op_outcomes(const Ccoip__OpOutcomes *p, struct wm_op_outcomes *m, const char **why)
{
	size_t n = p->outcomes != NULL ? p->outcomes->n_seqs : 0;
	int rc;

	if (n < 1 || n > WM_OUTCOMES_MAX)
		return wire_bad(
			why, "op_outcomes.outcomes: must be 1 to " WIRE_STR(WM_OUTCOMES_MAX));
	m->n = (uint32_t)n;
	rc = wire_get_id(&m->peer, p->peer, why, "op_outcomes.peer: " WIRE_ID_LIMIT);
	return rc == 0 ? get_outcomes(p->outcomes, m->v, why) : rc;
}
