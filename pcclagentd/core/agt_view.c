/* SPDX-License-Identifier: MIT
 *
 * Numbers and tables of the core's state, for operators.
 */
#include <stdio.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

/* An operation of this age may be waiting for a process that is stopped. */
#define DUE_NS (UINT64_C(500) * AGT_NS_PER_MS)

static bool run_is_quiet(const struct agt_run *r)
{
	const struct agt_link *l;

	if (r->state != AGT_RUN_UP || r->awaited || r->ops || r->round.active)
		return false;
	if (r->heartbeat_ms < AGT_QUIET_MIN_BEAT)
		return false;
	for (l = r->links; l; l = l->hh.next)
		if (l->state == AGT_LINK_OPENING)
			return false;
	return true;
}

bool agt_is_quiet(const struct agt *a)
{
	const struct agt_run *r;

	for (r = a->runs; r; r = r->hh.next)
		if (!run_is_quiet(r))
			return false;
	return a->n_stopped == 0;
}

bool agt_is_awaited(const struct agt *a)
{
	const struct agt_run *r;

	for (r = a->runs; r; r = r->hh.next)
		if (r->state == AGT_RUN_UP && r->awaited)
			return true;
	return false;
}

static bool run_waits(const struct agt *a, const struct agt_run *r)
{
	return r->state == AGT_RUN_UP &&
	       (r->awaited || (r->ops && a->now - r->ops->born_ns >= DUE_NS));
}

bool agt_session_is_due(const struct agt *a, uint32_t session)
{
	const struct agt_session *s;
	const struct agt_comm *c;

	HASH_FIND(hh, a->sessions, &session, sizeof session, s);
	if (!s)
		return false;
	DL_FOREACH (s->comms, c)
		if (c->state == AGT_COMM_ACCEPTED && run_waits(a, c->run))
			return true;
	return false;
}

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

static const char *awaited_by(const struct agt_comm *c, char buf[64])
{
	if (c->run && agt_run_orphaned(c->run))
		return "a master to take the run over";
	if (c->attach && c->state == AGT_COMM_REGISTERED)
		return "its position in the ring";
	if (c->attach && c->state == AGT_COMM_ACCEPTED)
		return "the master to say how its last operations ended";
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
	/* Only accepted communicators vote, and they have a run.
	 * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	if (c->run->round.active)
		(void)snprintf(buf, 64, "all hosts to open their links");
	else
		(void)snprintf(
			buf, 64, "all accepted peers to call %s", wire_ballot_kinds[c->vote].call);
	return buf;
}

/* Returns for how long c's process has been stopped, in ns; 0: it runs. */
static uint64_t stopped_for(const struct agt_comm *c, uint64_t now_ns)
{
	return c->session->stopped_ns ? now_ns - c->session->stopped_ns : 0;
}

/* Writes what c waits for to `buf`, with the peers that are awaited according to the master. */
static void comm_awaits(const struct agt_comm *c, uint64_t now_ns, char *buf, size_t size)
{
	/* a newcomer waits for a topology vote, too */
	enum wire_ballot kind = c->wait == WL_VOTE ? c->vote : WIRE_TOPOLOGY;
	const struct agt_awaited *w = NULL;
	char by[64];
	double waited = (double)(now_ns - c->wait_ns) / 1e9;

	if (c->run && !agt_run_orphaned(c->run) && !c->run->round.active && !c->attach &&
		c->state != AGT_COMM_LEAVING)
		w = &c->run->late[kind];
	if (w && w->since_ns)
		(void)snprintf(buf, size, "waiting for %.1f s for the call of %s by %.300s", waited,
			wire_ballot_kinds[kind].call, w->text);
	else
		(void)snprintf(buf, size, "waiting for %s for %.1f s", awaited_by(c, by), waited);
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
			.stopped_ns = stopped_for(c, now_ns),
		};

		agt_comm_view(c, &i.view);
		memcpy(i.name, c->session->name, sizeof i.name);
		if (c->wait)
			comm_awaits(c, now_ns, i.waiting, sizeof i.waiting);
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
			.connect_addr = r->connect_addr,
			.id = r->run_id,
			.term = r->term,
			.epoch = r->epoch,
			.state = agt_run_state_name(r->state),
			.state_ns = now_ns - r->since_ns,
			.master_set = r->master_set,
		};

		DL_FOREACH2 (r->ops, o, next_op)
			i.ops++;
		fn(arg, &i);
	}
}

bool agt_op_has(const struct agt_op *o, const struct agt_comm *c)
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

	if (o->state > AGT_OP_VOTING)
		return o->n;
	DL_FOREACH2 (o->run->comms, c, next_r)
		n += c->counted && c->group == o->key.group;
	return n;
}

static void local_awaits(
	const struct agt_op *o, uint32_t members, uint64_t now_ns, char *buf, size_t size)
{
	const struct agt_comm *c = agt_waits_missing(o);
	char more[32] = "", name[WL_NAME_MAX + 80];

	if (members > o->n + 1)
		(void)snprintf(more, sizeof more, " and %u more", members - o->n - 1);
	(void)snprintf(buf, size, "waiting for local %s%s to submit",
		agt_process_name(c, now_ns, name, sizeof name), more);
}

const char *agt_stopped_in(const struct agt *a, uint32_t run, uint32_t group)
{
	const struct agt_group *g = NULL;
	struct agt_run *r;

	HASH_FIND(hh, a->runs, &run, sizeof run, r);
	if (r)
		g = agt_group_find(r, group);
	return g ? g->stopped : "";
}

static void op_awaits(
	const struct agt_op *o, uint32_t members, uint64_t now_ns, char *buf, size_t size)
{
	const struct agt_group *g = agt_group_find(o->run, o->key.group);
	const char *what = "";

	if (agt_run_orphaned(o->run) &&
		(o->state == AGT_OP_VOTING || o->state == AGT_OP_REPORTED)) {
		(void)snprintf(buf, size, "waiting for a master to take the run over");
		return;
	}
	if (agt_waits_missing(o)) {
		local_awaits(o, members, now_ns, buf, size);
		return;
	}
	if (o->state == AGT_OP_VOTING && o->awaited) {
		(void)snprintf(buf, size, "waiting for %.1f s for %.340s",
			(double)(now_ns - o->waits_ns) / 1e9, o->awaited);
		return;
	}
	switch (o->state) {
	case AGT_OP_COLLECTING:
		what = o->key.is_sync ? "waiting for the previous synchronization to end"
				      : "waiting for the previous operation of this tag to end";
		break;
	case AGT_OP_VOTING:
		what = "waiting for the master to start it";
		break;
	case AGT_OP_RUNNING:
		what = o->doubt_ns ? "waiting to learn if the peers with the state are lost"
				   : "data";
		break;
	case AGT_OP_REPORTED:
		what = o->ok ? "waiting for the other hosts to report"
			     : "waiting for the master to abort it";
		break;
	default:
		what = "waiting for the data threads to release it";
		break;
	}
	if (g && g->stopped[0] && (o->state == AGT_OP_VOTING || o->state == AGT_OP_RUNNING))
		(void)snprintf(buf, size, "%s; %.320s", what, g->stopped);
	else
		(void)snprintf(buf, size, "%s", what);
}

static void sync_info(const struct agt_op *o, struct agt_op_info *ret)
{
	const struct wm_sync_vote *candidate = &o->members[0].sub.sync;
	bool started = o->state > AGT_OP_VOTING;
	uint32_t i;

	ret->bytes = candidate->bytes;
	ret->revision = started ? o->elected.revision : candidate->revision;
	ret->hash_type = started ? o->elected.hash_type : candidate->hash_type;
	ret->keys = started ? o->elected.keys : candidate->keys;
	ret->content = started ? o->elected.content : candidate->content;
	for (i = 0; i < o->n; i++)
		ret->failed += o->members[i].failed && !o->members[i].out;
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
				.group = o->key.group,
				.is_sync = o->key.is_sync,
				.tag = o->key.tag,
				.seq = o->seq,
				.age_ns = now_ns - o->born_ns,
				.bytes = o->members[0].sub.bytes,
				.state = agt_op_state_name(o->state),
				.submitted = o->n,
				.members = local_members(o),
			};

			if (i.is_sync)
				sync_info(o, &i);
			op_awaits(o, i.members, now_ns, i.awaited, sizeof i.awaited);
			fn(arg, &i);
		}
	}
}
