/* SPDX-License-Identifier: MIT
 *
 * Looking inside: numbers and tables for operators, and the invariants.
 */
#include <stdio.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

void agt_get_status(const struct agt *a, struct agt_status *ret)
{
	const struct agt_run *r;
	const struct agt_op *o;

	memset(ret, 0, sizeof *ret);
	ret->sessions = HASH_COUNT(a->sessions);
	ret->comms = HASH_COUNT(a->comms);
	ret->runs = HASH_COUNT(a->runs);
	for (r = a->runs; r; r = r->hh.next)
		DL_FOREACH2 (r->ops, o, next_op)
			ret->ops++;
	ret->ops_done = a->ops_done;
	ret->ops_failed = a->ops_failed;
	ret->submissions_refused = a->refused;
}

static const char *awaited_by(const struct agt_comm *c)
{
	switch (c->state) {
	case AGT_COMM_JOINING:
		return "the master to answer this host";
	case AGT_COMM_REGISTERED:
		return "all accepted peers to call pcclUpdateTopology";
	case AGT_COMM_LEAVING:
		return "its operations to end";
	default:
		break;
	}
	if (c->wait == WL_UPDATE_TOPOLOGY)
		return c->run->round.active ? "all hosts to open their links"
					    : "all accepted peers to call pcclUpdateTopology";
	return "all accepted peers to call pcclArePeersPending";
}

void agt_each_comm(const struct agt *a, uint64_t now_ns,
	void (*fn)(void *arg, const struct agt_comm_info *c), void *arg)
{
	const struct agt_comm *c;

	for (c = a->comms; c; c = c->hh.next) {
		struct agt_comm_info i = {
			.comm = c->id,
			.session = c->session->id,
			.uid = c->session->uid,
			.pid = c->session->pid,
			.group = c->group,
			.run = c->run ? c->run->id : 0,
			.peer = c->peer,
			.master = c->master,
			.attrs = c->attrs,
			.ops = c->n_ops,
		};

		memcpy(i.name, c->session->name, sizeof i.name);
		if (c->wait)
			(void)snprintf(i.waiting, sizeof i.waiting, "waiting for %s for %.1f s",
				awaited_by(c), (double)(now_ns - c->wait_ns) / 1e9);
		fn(arg, &i);
	}
}

void agt_each_run(const struct agt *a, uint64_t now_ns,
	void (*fn)(void *arg, const struct agt_run_info *r), void *arg)
{
	const struct agt_run *r;
	const struct agt_op *o;

	for (r = a->runs; r; r = r->hh.next) {
		struct agt_run_info i = {
			.run = r->id,
			.comms = r->n_comms,
			.master = r->addr,
			.dialled = r->addr,
			.id = r->run_id,
			.epoch = r->epoch,
			.state = agt_run_state_name(r->state),
			.state_ns = now_ns - r->since_ns,
		};

		DL_FOREACH2 (r->ops, o, next_op)
			i.ops++;
		fn(arg, &i);
	}
}

static bool takes_part(const struct agt_op *o, const struct agt_comm *c)
{
	uint32_t i;

	for (i = 0; i < o->n; i++)
		if (o->members[i].comm == c)
			return true;
	return false;
}

static uint32_t local_members(const struct agt_op *o)
{
	const struct agt_comm *c;
	uint32_t n = 0;

	if (o->state != AGT_OP_COLLECTING)
		return o->n;
	DL_FOREACH2 (o->run->comms, c, next_r)
		n += c->counted && c->group == o->key.group;
	return n;
}

static void collecting_awaits(const struct agt_op *o, uint32_t members, char *buf, size_t size)
{
	const struct agt_comm *c;
	char more[32] = "";

	DL_FOREACH2 (o->run->comms, c, next_r) {
		if (!c->counted || c->group != o->key.group || takes_part(o, c))
			continue;
		if (members > o->n + 1)
			(void)snprintf(more, sizeof more, " and %u more", members - o->n - 1);
		(void)snprintf(
			buf, size, "waiting for local pid %u%s to submit", c->session->pid, more);
		return;
	}
	(void)snprintf(buf, size, "waiting for the previous operation of this tag to end");
}

static void op_awaits(const struct agt_op *o, uint32_t members, char *buf, size_t size)
{
	const char *what = "";

	switch (o->state) {
	case AGT_OP_COLLECTING:
		collecting_awaits(o, members, buf, size);
		return;
	case AGT_OP_VOTING:
		what = "waiting for the master to start it";
		break;
	case AGT_OP_RUNNING:
		what = "data";
		break;
	case AGT_OP_REPORTED:
		what = o->ok ? "waiting for the other hosts to report"
			     : "waiting for the master to abort it";
		break;
	default:
		what = "waiting for the data threads to let go of it";
		break;
	}
	(void)snprintf(buf, size, "%s", what);
}

void agt_each_op(const struct agt *a, uint64_t now_ns,
	void (*fn)(void *arg, const struct agt_op_info *o), void *arg)
{
	const struct agt_run *r;
	const struct agt_op *o;

	for (r = a->runs; r; r = r->hh.next) {
		DL_FOREACH2 (r->ops, o, next_op) {
			struct agt_op_info i = {
				.run = r->id,
				.group = (uint32_t)o->key.group,
				.tag = o->key.tag,
				.seq = o->seq,
				.age_ns = now_ns - o->born_ns,
				.bytes = o->members[0].sub.bytes,
				.state = agt_op_state_name(o->state),
				.submitted = o->n,
				.members = local_members(o),
			};

			op_awaits(o, i.members, i.awaited, sizeof i.awaited);
			fn(arg, &i);
		}
	}
}

static const char *check_comm(const struct agt_comm *c)
{
	bool in_run = c->state == AGT_COMM_JOINING || c->state == AGT_COMM_REGISTERED ||
		      c->state == AGT_COMM_ACCEPTED;
	uint32_t i, n = 0;

	if (in_run != (c->run != NULL) || in_run != (c->grp != NULL))
		return "a communicator's state and its run do not agree";
	if (in_run && c->run->state == AGT_RUN_OVER)
		return "a communicator takes part in a run that is over";
	if (c->joined != (c->state == AGT_COMM_REGISTERED || c->state == AGT_COMM_ACCEPTED) ||
		c->counted != (c->state == AGT_COMM_ACCEPTED))
		return "a communicator's marks and its state do not agree";
	if ((c->state == AGT_COMM_JOINING) != (in_run && c->run->state != AGT_RUN_UP))
		return "a communicator joins a run that is up, or does not join one that is not";
	if ((c->wait == WL_COMM_CONNECT) !=
		(c->state == AGT_COMM_JOINING || c->state == AGT_COMM_REGISTERED))
		return "a connect waits without joining, or the other way round";
	if ((c->wait == WL_COMM_DESTROY) != (c->state == AGT_COMM_LEAVING))
		return "a destroy waits without leaving, or the other way round";
	if ((c->wait == WL_UPDATE_TOPOLOGY || c->wait == WL_ARE_PENDING) &&
		c->state != AGT_COMM_ACCEPTED)
		return "a vote waits on a communicator that is not accepted";
	if (c->wait == WL_UPDATE_TOPOLOGY && c->n_ops)
		return "a topology vote waits with operations in flight";
	if (c->state == AGT_COMM_LEAVING && c->n_ops == 0)
		return "a leaving communicator has nothing to wait for";
	for (i = 0; i < SHM_SLOTS; i++) {
		n += c->slots[i] != NULL;
		if (c->slots[i] && !takes_part(c->slots[i], c))
			return "a slot belongs to an operation that does not know the communicator";
	}
	return n == c->n_ops ? NULL : "slots in use and operations do not add up";
}

static const char *check_op(const struct agt *a, const struct agt_op *o)
{
	const struct agt_group *g;
	uint32_t i, group = (uint32_t)o->key.group, in = 0;

	if (o->n == 0)
		return "an operation without members";
	for (i = 0; i < o->n; i++) {
		const struct agt_op_member *m = &o->members[i];

		in += !m->out;
		if (!m->out && (!m->comm || !m->comm->counted || m->comm->run != o->run))
			return "a member of an operation is not in the run";
		if (m->comm && m->comm->slots[m->sub.slot] != o)
			return "a member's slot does not lead back";
	}
	if (o->xfer != (o->state == AGT_OP_RUNNING || o->state == AGT_OP_CANCELLING) &&
		o->state != AGT_OP_REPORTED)
		return "an operation's state and its transfer do not agree";
	if (in != o->n && !o->xfer)
		return "an operation without a transfer keeps members that are out";
	if (in == 0 && o->state != AGT_OP_CANCELLING)
		return "an operation goes on for nobody";
	if (o->run->state == AGT_RUN_OVER && o->state != AGT_OP_CANCELLING)
		return "an operation goes on in a run that is over";
	if ((o->seq != 0) != (o->state > AGT_OP_VOTING))
		return "an operation's sequence number and its state do not agree";
	if (o->state != AGT_OP_COLLECTING || a->err)
		return NULL;
	HASH_FIND(hh, o->run->groups, &group, sizeof group, g);
	if (!g || o->n > g->accepted)
		return "an operation has more members than its group";
	if (g->world < 2)
		return "an operation collects in a group that is too small";
	if (o->n == g->accepted && !agt_op_find(o->run->active, group, o->key.tag))
		return "an operation is complete and has not voted";
	return NULL;
}

static const char *check_round(const struct agt_run *r)
{
	const struct agt_round *rd = &r->round;
	const struct agt_link *l;
	bool opening = false;
	uint32_t i;

	if (r->state != AGT_RUN_UP && (rd->active || HASH_COUNT(r->links)) &&
		r->state != AGT_RUN_OVER)
		return "rounds or links before the master is up";
	for (l = r->links; l && r->state == AGT_RUN_UP; l = l->hh.next)
		if (!agt_link_is_used(r, &l->peer))
			return "a link is kept that nothing uses";
	if (!rd->active || rd->reported)
		return NULL;
	for (i = 0; i < rd->n_rings; i++) {
		HASH_FIND(hh, r->links, &rd->rings[i].next.agent, sizeof(struct cc_id), l);
		opening = opening || (l && l->state == AGT_LINK_OPENING);
	}
	return opening ? NULL : "a round is due to be reported";
}

static const char *check_run(const struct agt *a, const struct agt_run *r)
{
	const struct agt_group *g;
	const struct agt_comm *c;
	const struct agt_op *o;
	const char *wrong;
	uint32_t users = 0, accepted = 0, comms = 0, in_groups = 0, counted = 0;

	DL_FOREACH2 (r->comms, c, next_r) {
		comms++;
		counted += c->counted;
		if (c->run != r || c->grp->group != c->group)
			return "a communicator is on the list of another run";
	}
	for (g = r->groups; g; g = g->hh.next) {
		users += g->users;
		accepted += g->accepted;
		in_groups += g->users == 0;
	}
	if (in_groups)
		return "a group without users";
	if (comms != r->n_comms || comms != users || counted != accepted)
		return "the communicators of a run do not add up";
	if ((r->state == AGT_RUN_OVER) != (comms == 0) || (r->state == AGT_RUN_OVER && !r->ops))
		return "a run lives without need, or is over too early";
	DL_FOREACH2 (r->ops, o, next_op) {
		if (o->run != r)
			return "an operation is on the list of another run";
		wrong = check_op(a, o);
		if (wrong)
			return wrong;
	}
	return check_round(r);
}

const char *agt_check(const struct agt *a)
{
	const struct agt_comm *c;
	const struct agt_run *r;
	const char *wrong;

	if (a->broken)
		return a->broken;
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
