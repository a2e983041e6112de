/* SPDX-License-Identifier: MIT
 *
 * The lineage of a run: the members of each epoch, and the peers that have gone on without others.
 * Suppose that a call of a peer succeeds in an epoch without another peer. Then no call of the
 * other peer may succeed in a later epoch, unless it has joined again with another id. Otherwise
 * the run has become two, or the other peer lacks what was done in the meantime.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

struct sim_user {
	unsigned peer;
	struct cc_id id;
	bool left;
	bool voted; /* it succeeded in a vote, in which every member of the run takes part */
};

/* Rings that a master has put in force, with all members of that time. */
struct sim_epoch {
	struct cc_id run;
	uint64_t number;
	uint64_t view_id; /* of the first commit with this number that the master sent */
	unsigned master;
	bool journaled; /* masters that start later find it in their journal */
	/* a peer that is not in `members` went on later, under a master that could not know of this
	 * epoch */
	bool overruled;
	struct cc_id *members;
	uint32_t n_members;
	struct sim_user *users; /* peers of which a call has succeeded in this epoch */
	uint32_t n_users;
	struct sim_epoch *older;
};

/* A peer whose agent came to a master during its takeover, before the master had decided. */
struct sim_told {
	unsigned master;
	uint32_t conn;
	bool all; /* its agent has sent all that it knows */
	struct cc_id peer;
	struct sim_told *next;
};

bool sim_is_split(const struct sim *s)
{
	return s->two_masters;
}

static void *grow(void *v, uint32_t n, size_t size)
{
	v = reallocarray(v, n, size);
	if (!v)
		abort();
	return v;
}

static void add_member(void *arg, const struct ccm_peer_info *p)
{
	struct sim_epoch *e = arg;

	if (p->phase != CCM_PEER_ACCEPTED)
		return;
	e->members = grow(e->members, e->n_members + 1, sizeof *e->members);
	e->members[e->n_members++] = p->peer;
}

void sim_lineage_commit(struct sim *s, const struct sim_master *m, const struct wm_commit *c)
{
	struct sim_epoch *e;

	for (e = s->epochs; e; e = e->older)
		if (e->master == m->no && e->number == c->epoch && cc_id_eq(&e->run, &m->id))
			return;
	e = grow(NULL, 1, sizeof *e);
	*e = (struct sim_epoch){.run = m->id,
		.number = c->epoch,
		.view_id = c->view.view_id,
		.master = m->no,
		.older = s->epochs};
	e->journaled = s->journal && m->no + 1 == s->n_masters;
	s->epochs = e;
	ccm_each_peer(m->m, sim_clock_now(s, &m->clock), add_member, e);
}

static bool is_member(const struct sim_epoch *e, const struct cc_id *peer)
{
	uint32_t i;

	for (i = 0; i < e->n_members; i++)
		if (cc_id_eq(&e->members[i], peer))
			return true;
	return false;
}

void sim_lineage_join(
	struct sim *s, const struct sim_master *m, uint32_t conn, const struct wm_join *j)
{
	struct sim_told *t;

	if (j->phase != WM_JOIN_ACCEPTED || !sim_is_recovering(m))
		return;
	s->taken_over = s->now;
	t = grow(NULL, 1, sizeof *t);
	*t = (struct sim_told){.master = m->no, .conn = conn, .peer = j->peer, .next = s->told};
	t->all = sim_conn(s, conn)->said;
	s->told = t;
}

void sim_lineage_resume(struct sim *s, const struct sim_master *m, uint32_t conn)
{
	struct sim_told *t;

	for (t = sim_is_recovering(m) ? s->told : NULL; t; t = t->next)
		t->all |= t->conn == conn;
}

static struct sim_user *user_of(const struct sim_epoch *e, const struct cc_id *peer)
{
	uint32_t i;

	for (i = 0; i < e->n_users; i++)
		if (cc_id_eq(&e->users[i].id, peer))
			return &e->users[i];
	return NULL;
}

/* Returns the last epoch of p's run that began before the view in p's attributes. NULL: p is no
 * member of it, or there is none. */
static struct sim_epoch *epoch_of(struct sim *s, const struct sim_peer *p)
{
	struct sim_epoch *e, *found = NULL;

	for (e = s->epochs; e; e = e->older)
		if (cc_id_eq(&e->run, &p->run) && is_member(e, &p->id) &&
			e->view_id <= p->attrs.view_id && (!found || e->view_id > found->view_id))
			found = e;
	return found;
}

static bool was_told(const struct sim *s, unsigned master, const struct cc_id *peer)
{
	const struct sim_told *t = s->told;

	while (t && !(t->all && t->master == master && cc_id_eq(&t->peer, peer)))
		t = t->next;
	return t != NULL;
}

/* Does the journal of e's master contain the epoch `without`? A superseded master writes into a
 * journal that no later master reads. */
static bool in_journal(const struct sim_epoch *without, const struct sim_epoch *e)
{
	return without->journaled && e->master > without->master;
}

/* Did the master of e have a snapshot which shows that `u` went on without p? Only a vote or an
 * operation of p's group shows that. An operation of another group does not. If u knew more than
 * all agents, it is no member of e. */
static bool could_know(const struct sim *s, const struct sim_epoch *e, const struct sim_user *u,
	const struct sim_peer *p)
{
	return (u->voted || s->peers[u->peer].group == p->group) &&
	       was_told(s, e->master, &u->id) && is_member(e, &u->id);
}

/* Returns a living peer that has gone on in `without`, if the master of e could know that; NULL:
 * none. */
static const struct sim_user *known_user(const struct sim *s, const struct sim_epoch *without,
	const struct sim_epoch *e, const struct sim_peer *p)
{
	uint32_t i;

	for (i = 0; i < without->n_users; i++) {
		const struct sim_user *u = &without->users[i];

		if (!u->left && s->peers[u->peer].proc->alive &&
			(in_journal(without, e) || without->master == e->master ||
				could_know(s, e, u, p)))
			return u;
	}
	return NULL;
}

/* Returns a peer that has gone on in `without` and has been a member since; NULL: none. */
static const struct sim_peer *member_still(const struct sim *s, const struct sim_epoch *without)
{
	uint32_t i;

	for (i = 0; i < without->n_users; i++) {
		const struct sim_user *u = &without->users[i];
		const struct sim_peer *p = &s->peers[u->peer];

		if (!u->left && p->proc->alive && p->state == SHM_COMM_CONNECTED &&
			cc_id_eq(&p->id, &u->id))
			return p;
	}
	return NULL;
}

/* Returns an epoch before e in which a call of p has succeeded; NULL: none. */
static const struct sim_epoch *used_before(const struct sim_epoch *e, const struct sim_peer *p)
{
	const struct sim_epoch *x = e->older;

	while (x && !(cc_id_eq(&x->run, &e->run) && user_of(x, &p->id)))
		x = x->older;
	return x;
}

/* p succeeds in e. Checks whether others have gone on without p before. */
static void check(struct sim *s, const struct sim_peer *p, const struct sim_epoch *e)
{
	const struct sim_epoch *before;
	const struct sim_peer *other;
	const struct sim_user *u;
	struct sim_epoch *x;

	for (x = e->older; x; x = x->older) {
		if (x->overruled || x->n_users == 0 || !cc_id_eq(&x->run, &e->run) ||
			is_member(x, &p->id))
			continue;
		before = used_before(x, p);
		u = before ? known_user(s, x, e, p) : NULL;
		if (u) {
			sim_fail(s,
				"p%u goes on in epoch %" PRIu64 " of %s as a member since epoch "
				"%" PRIu64 ", but p%u has gone on without it in epoch %" PRIu64
				" of %s, and %s knew that",
				p->no, e->number, sim_name_master(s, e->master), before->number,
				u->peer, x->number, sim_name_master(s, x->master),
				sim_name_master(s, e->master));
			return;
		}
		other = before ? member_still(s, x) : NULL;
		if (!other)
			continue;
		x->overruled = true;
		s->overruled++;
		sim_trace(s, "p%u goes on, p%u has gone on without it, and %s could not know that",
			p->no, other->no, sim_name_master(s, e->master));
	}
}

void sim_lineage_success(struct sim *s, const struct sim_peer *p, bool vote)
{
	struct sim_epoch *e = epoch_of(s, p);
	struct sim_user *u;

	if (p->state != SHM_COMM_CONNECTED)
		return; /* the end of a call that began while p was a member */
	if (!e) {
		sim_fail(s, "p%u succeeds with view %" PRIu64 " without being a member", p->no,
			p->attrs.view_id);
		return;
	}
	if (!s->two_masters)
		check(s, p, e);
	u = user_of(e, &p->id);
	if (!u) {
		e->users = grow(e->users, e->n_users + 1, sizeof *e->users);
		u = &e->users[e->n_users++];
		*u = (struct sim_user){.peer = p->no, .id = p->id};
	}
	u->voted |= vote;
}

void sim_lineage_left(struct sim *s, const struct sim_peer *p)
{
	struct sim_epoch *e;
	struct sim_user *u;

	for (e = s->epochs; e; e = e->older) {
		u = user_of(e, &p->id);
		if (u)
			u->left = true;
	}
}

void sim_lineage_free(struct sim *s)
{
	struct sim_epoch *e;
	struct sim_told *t;

	while ((e = s->epochs) != NULL) {
		s->epochs = e->older;
		free(e->members);
		free(e->users);
		free(e);
	}
	while ((t = s->told) != NULL) {
		s->told = t->next;
		free(t);
	}
}
