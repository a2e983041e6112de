/* SPDX-License-Identifier: MIT
 *
 * The invariants.
 */
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

static bool is_in_run(const struct agt_comm *c)
{
	return c->state == AGT_COMM_JOINING || c->state == AGT_COMM_REGISTERED ||
	       c->state == AGT_COMM_ACCEPTED;
}

static const char *check_comm_run(const struct agt_comm *c)
{
	bool in_run = is_in_run(c);

	if (in_run != (c->run != NULL) || in_run != (c->grp != NULL))
		return "a communicator's state and its run do not agree";
	if (in_run && c->run->state == AGT_RUN_OVER)
		return "a communicator takes part in a run that is over";
	if (c->joined != (c->state == AGT_COMM_REGISTERED || c->state == AGT_COMM_ACCEPTED) ||
		c->counted != (c->state == AGT_COMM_ACCEPTED))
		return "a communicator's marks and its state do not agree";
	if (c->state == AGT_COMM_JOINING && c->run->state == AGT_RUN_UP)
		return "a communicator is still joining a run that is up already";
	if (in_run && c->state != AGT_COMM_JOINING && !agt_run_lives(c->run))
		return "a communicator is in a run that never had a master";
	return NULL;
}

static const char *check_comm_attach(const struct agt_comm *c)
{
	bool attaches = c->attach != NULL;

	if ((c->wait == WL_COMM_ATTACH) != attaches || attaches != !c->opened ||
		(attaches && !is_in_run(c)))
		return "a communicator's state does not agree with the attach that it waits for";
	if ((c->wait == WL_COMM_CONNECT || (attaches && !c->counted)) !=
		(c->state == AGT_COMM_JOINING || c->state == AGT_COMM_REGISTERED))
		return "a communicator waits to connect but is not joining, or the reverse";
	if (attaches && c->counted && c->attach->known)
		return "an attach waits although its answer is known";
	if (attaches && c->n_ops)
		return "a communicator that attaches has operations";
	return NULL;
}

static const char *check_comm_waits(const struct agt_comm *c)
{
	if ((c->wait == WL_COMM_DESTROY) != (c->state == AGT_COMM_LEAVING))
		return "a communicator waits to be destroyed but is not leaving, or the reverse";
	if (c->wait == WL_VOTE && c->state != AGT_COMM_ACCEPTED)
		return "a communicator that is not accepted has a vote that waits";
	if (c->wait == WL_VOTE && wire_ballot_kinds[c->vote].is_exclusive && c->n_ops)
		return "an exclusive vote waits with operations in flight";
	if (c->state == AGT_COMM_LEAVING && c->n_ops == 0 && !c->untold)
		return "a leaving communicator has nothing to wait for";
	return NULL;
}

static const char *check_comm_slots(const struct agt_comm *c)
{
	uint32_t i, n = 0;

	for (i = 0; i < SHM_SLOTS; i++) {
		n += c->slots[i] != NULL;
		if (c->slots[i] && !agt_op_has(c->slots[i], c))
			return "a slot belongs to an operation that does not know the communicator";
	}
	return n == c->n_ops ? NULL : "slots in use and operations do not add up";
}

static const char *check_comm(const struct agt_comm *c)
{
	const char *wrong = check_comm_run(c);

	if (!wrong)
		wrong = check_comm_attach(c);
	if (!wrong)
		wrong = check_comm_waits(c);
	return wrong ? wrong : check_comm_slots(c);
}

static const char *check_sync_member(const struct agt_op *o, const struct agt_op_member *m)
{
	if (!m->sub.is_sync || (m->comm && m->comm->n_ops != 1))
		return "a communicator has a synchronization and another operation";
	if (m->failed && o->state <= AGT_OP_VOTING)
		return "a member of a synchronization failed before the start";
	if (m->fresh && !m->out && o->state == AGT_OP_REPORTED && o->ok)
		return "a synchronization reported success, but not the failure of a member";
	return NULL;
}

static bool receives(const struct agt_op_member *m)
{
	return !m->holder && !m->complete && !m->out && !m->failed;
}

static const char *check_sync(const struct agt_op *o)
{
	const char *wrong;
	uint32_t i, n = 0;

	if (o->key.tag || o->tx_bytes || o->rx_bytes)
		return "a synchronization is mixed up with an all-reduce";
	if (o->xfer != (o->state > AGT_OP_VOTING))
		return "a synchronization has no job after the vote, or has a job before the "
		       "vote has ended";
	if (o->won && o->state != AGT_OP_CANCELLING)
		return "a synchronization goes on after its success";
	if (o->doubt_ns && (o->state != AGT_OP_RUNNING || !o->run->doubt_ns))
		return "an operation is in doubt, but its run is not marked as in doubt";
	for (i = 0; i < o->n; i++) {
		wrong = check_sync_member(o, &o->members[i]);
		if (wrong)
			return wrong;
		n += receives(&o->members[i]);
	}
	return o->doubt_ns && n == 0 ? "an operation is in doubt although it has no receivers"
				     : NULL;
}

static const char *check_op_member(const struct agt_op *o, const struct agt_op_member *m)
{
	if (!m->out && !o->won && (!m->comm || !m->comm->counted || m->comm->run != o->run))
		return "a member of an operation is not in the run";
	if (m->comm && m->comm->slots[m->sub.slot] != o)
		return "a member's slot does not lead back to the operation";
	return NULL;
}

static const char *check_op_members(const struct agt_op *o)
{
	uint32_t i, in = 0;
	const char *wrong;

	if (o->n == 0)
		return "an operation without members";
	for (i = 0; i < o->n; i++) {
		in += !o->members[i].out;
		wrong = check_op_member(o, &o->members[i]);
		if (wrong)
			return wrong;
	}
	if (in != o->n && !o->xfer)
		return "an operation without a transfer keeps members that have left";
	if (in == 0 && o->state != AGT_OP_CANCELLING)
		return "an operation goes on without members";
	return NULL;
}

/* May o have a speculative start? Only if it is an all-reduce that is voting, or that was reported
 * before its votes were counted. */
static bool may_be_ahead(const struct agt_op *o)
{
	return o->xfer && !o->key.is_sync &&
	       (o->state == AGT_OP_VOTING || o->state == AGT_OP_REPORTED);
}

static const char *check_op_state(const struct agt_op *o)
{
	bool transfers = o->state == AGT_OP_RUNNING || o->state == AGT_OP_CANCELLING || o->spec;

	if (o->spec && !may_be_ahead(o))
		return "an operation that may not be speculative is speculative";
	if (o->xfer != transfers && o->state != AGT_OP_REPORTED)
		return "an operation's state and its transfer do not agree";
	if (o->run->state == AGT_RUN_OVER && o->state != AGT_OP_CANCELLING)
		return "an operation goes on in a run that is over";
	if ((o->seq != 0) != (o->state > AGT_OP_VOTING || o->spec))
		return "an operation's sequence number and its state do not agree";
	return NULL;
}

static const char *check_collecting(const struct agt_op *o)
{
	const struct agt_group *g;

	HASH_FIND(hh, o->run->groups, &o->key.group, sizeof o->key.group, g);
	if (!g || o->n > g->accepted)
		return "an operation has more members than its group";
	if (g->world_size < 2 && !o->key.is_sync)
		return "an operation collects in a group that is too small";
	if (o->generation != g->generation)
		return "a collecting operation has an old generation";
	if (o->n == g->accepted && !agt_op_find(o->run->active, &o->key))
		return "all local members have submitted an operation, but no vote was sent";
	return NULL;
}

static const char *check_op(const struct agt_op *o)
{
	const char *wrong = check_op_members(o);

	if (!wrong)
		wrong = check_op_state(o);
	if (!wrong && o->key.is_sync)
		wrong = check_sync(o);
	if (!wrong && o->state == AGT_OP_COLLECTING)
		wrong = check_collecting(o);
	return wrong;
}

static const char *check_round(const struct agt_run *r)
{
	const struct agt_round *rd = &r->round;
	const struct agt_link *l;

	if (!agt_run_lives(r) && (rd->active || HASH_COUNT(r->links)) && r->state != AGT_RUN_OVER)
		return "a run has a round or links before its master is up";
	if (agt_run_orphaned(r) && rd->active && !(rd->reported && rd->ok))
		return "a round goes on without a master";
	for (l = r->links; l && agt_run_lives(r); l = l->hh.next)
		if (!agt_link_is_used(r, &l->peer))
			return "a link that nothing uses is kept";
	if (rd->active && !rd->reported && !agt_round_in_doubt(r))
		return "a round is not reported although all its links are known";
	return NULL;
}

static const char *check_history(const struct agt_run *r)
{
	const struct agt_history *h;
	uint32_t i;

	for (h = r->history; h; h = h->hh.next)
		for (i = 0; i < h->n; i++)
			if (h->v[i].seq > r->last_seq)
				return "an outcome is recorded for an attempt that has not begun";
	return NULL;
}

static const char *check_leaves(const struct agt *a, const struct agt_run *r)
{
	const struct agt_comm *c;
	const struct agt_ghost *g;

	LL_FOREACH(r->ghosts, g)
	{
		if (!agt_run_lives(r))
			return "leaves are kept in a run that had no master or is over";
		if (r->state == AGT_RUN_UP && (!g->join.left || !(r->features & WM_LEAVES)))
			return "a leave was not sent to the master, or is kept for a master "
			       "without the feature leaves";
		if (!g->comm)
			continue;
		HASH_FIND(hh, a->comms, &g->comm, sizeof g->comm, c);
		if (c && (r->state != AGT_RUN_UP || !c->untold || c->state != AGT_COMM_LEAVING))
			return "a communicator waits until a master that is gone confirms its "
			       "leave";
	}
	return NULL;
}

static const char *check_run_comms(const struct agt_run *r)
{
	const struct agt_group *g;
	const struct agt_comm *c;
	uint32_t users = 0, accepted = 0, comms = 0, counted = 0;

	DL_FOREACH2 (r->comms, c, next_r) {
		comms++;
		counted += c->counted;
		if (c->run != r || c->grp->group != c->group)
			return "a communicator is on the list of another run";
	}
	for (g = r->groups; g; g = g->hh.next) {
		users += g->users;
		accepted += g->accepted;
		if (g->users == 0)
			return "a group has no communicators";
	}
	if (comms != r->n_comms || comms != users || counted != accepted)
		return "the communicators of a run do not add up";
	return NULL;
}

static const char *check_run_state(const struct agt_run *r)
{
	bool idle = r->n_comms == 0 && !r->ghosts;

	if ((r->state == AGT_RUN_OVER) != idle || (r->state == AGT_RUN_OVER && !r->ops))
		return "a run goes on although nothing needs it, or is over too early";
	if (r->state == AGT_RUN_UP && r->connecting)
		return "a run that is up still seeks its master";
	if ((r->state == AGT_RUN_GREETING || r->state == AGT_RUN_RESUMING) && !r->connecting)
		return "a run greets a master, but has no connection";
	return NULL;
}

static const char *check_run_ops(const struct agt_run *r)
{
	const struct agt_op *o;
	const char *wrong;

	DL_FOREACH2 (r->ops, o, next_op) {
		if (o->run != r)
			return "an operation is on the list of another run";
		wrong = check_op(o);
		if (wrong)
			return wrong;
	}
	return NULL;
}

static const char *check_measure(const struct agt *a, const struct agt_run *r)
{
	const struct agt_run *other;

	if (!r->measure.number)
		return r->measure.n_to ? "results of a measurement without a number are awaited"
				       : NULL;
	if (r->state != AGT_RUN_UP)
		return "a measurement goes on without a master";
	for (other = a->runs; other; other = other->hh.next)
		if (other != r && other->measure.number)
			return "two runs measure at the same time";
	return agt_network_is_in_use(a) ? "a measurement goes on during an operation" : NULL;
}

static const char *check_run(const struct agt *a, const struct agt_run *r)
{
	const char *wrong = check_run_comms(r);

	if (!wrong)
		wrong = check_run_state(r);
	if (!wrong)
		wrong = check_leaves(a, r);
	if (!wrong)
		wrong = check_history(r);
	if (!wrong)
		wrong = check_run_ops(r);
	if (!wrong)
		wrong = check_measure(a, r);
	return wrong ? wrong : check_round(r);
}

/* Checks n_stopped and n_attaching. If they are 0, ticks skip the work for stopped processes and
 * attaches. */
static const char *check_counts(const struct agt *a)
{
	const struct agt_session *s;
	const struct agt_comm *c;
	uint32_t stopped = 0, attaching = 0;

	for (s = a->sessions; s; s = s->hh.next)
		stopped += s->stopped_ns != 0;
	for (c = a->comms; c; c = c->hh.next)
		attaching += c->attach != NULL;
	return stopped == a->n_stopped && attaching == a->n_attaching
		       ? NULL
		       : "the counts of stopped and attaching communicators are wrong";
}

const char *agt_check(const struct agt *a)
{
	const struct agt_comm *c;
	const struct agt_run *r;
	const char *wrong;

	if (a->broken)
		return a->broken;
	wrong = check_counts(a);
	if (wrong)
		return wrong;
	for (c = a->comms; c; c = c->hh.next) {
		wrong = check_comm(c);
		if (wrong)
			return wrong;
	}
	for (r = a->runs; r; r = r->hh.next) {
		wrong = check_run(a, r);
		if (wrong)
			return wrong;
	}
	return NULL;
}
