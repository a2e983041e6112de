/* SPDX-License-Identifier: MIT
 *
 * The trace: one line per event, with names. h3 is host 3, h3.2 is its second agent, M1 is a
 * master, p7 is a peer, and run 4 is the fourth run of an agent.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

static char *buffer(void)
{
	static char v[16][SIM_TEXT];
	static unsigned at;

	return v[at++ % 16];
}

__attribute__((format(printf, 1, 2))) static const char *text(const char *fmt, ...)
{
	char *b = buffer();
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(b, SIM_TEXT, fmt, ap);
	va_end(ap);
	return b;
}

void sim_trace(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (!s->trace)
		return;
	printf("%11.6f ", (double)s->now / 1e9);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

const char *sim_name_master(const struct sim *s, unsigned master)
{
	const struct sim_master *m = &s->masters[master];

	return text("M%u(term %" PRIu64 ")", m->no + 1, m->term);
}

const char *sim_name_peer(const struct sim *s, const struct cc_id *peer)
{
	char id[CC_ID_SHORT_SIZE];
	unsigned i;

	for (i = 0; i < s->n_peers; i++)
		if (cc_id_eq(&s->peers[i].id, peer))
			return text("p%u", i);
	return text("p?%s", cc_id_short(peer, id));
}

const char *sim_name_agent(const struct sim *s, const struct cc_id *agent)
{
	char id[CC_ID_SHORT_SIZE];
	unsigned i;

	for (i = 0; i < s->n_hosts; i++)
		if (cc_id_eq(&s->hosts[i].id, agent))
			return text("h%u.%u", i, s->hosts[i].life);
	return text("h?%s", cc_id_short(agent, id));
}

const char *sim_text_code(uint32_t code)
{
	switch (code) {
	case WIRE_SUCCESS:
		return "success";
	case WIRE_INVALID_ARGUMENT:
		return "InvalidArgument";
	case WIRE_INVALID_USAGE:
		return "InvalidUsage";
	case WIRE_TOO_FEW_PEERS:
		return "TooFewPeers";
	case WIRE_MASTER_CONNECTION_FAILED:
		return "MasterConnectionFailed";
	case WIRE_RANK_CONNECTION_FAILED:
		return "RankConnectionFailed";
	case WIRE_RANK_CONNECTION_LOST:
		return "RankConnectionLost";
	case WIRE_AGENT_UNAVAILABLE:
		return "AgentUnavailable";
	default:
		return text("code %u", code);
	}
}

const char *sim_text_call(uint32_t type)
{
	switch (type) {
	case WL_COMM_CREATE:
		return "create";
	case WL_COMM_CONNECT:
		return "connect";
	case WL_COMM_DESTROY:
		return "destroy";
	case SIM_VOTE(WIRE_TOPOLOGY):
	case SIM_VOTE(WIRE_PENDING):
	case SIM_VOTE(WIRE_OPTIMIZE):
		return wire_ballot_kinds[type - SIM_VOTE(0)].call;
	case WL_COMM_ATTACH:
		return "attach";
	default:
		return text("call %u", type);
	}
}

static const char *text_view(const struct wm_view *w)
{
	char b[SIM_TEXT];
	size_t at = 0;
	uint32_t i;

	b[0] = '\0';
	for (i = 0; i < w->n && at < sizeof b - 64; i++)
		at += (size_t)snprintf(b + at, sizeof b - at, " g%u: %u, generation %" PRIu64,
			w->own[i].group, w->own[i].world_size, w->own[i].generation);
	return text("%u peers, view %" PRIu64 "%.400s, %u lost%s since %" PRIu64, w->global,
		w->view_id, b, w->n_lost, w->lost_all ? " in all" : "", w->lost_floor);
}

static const char *text_round(const struct sim *s, const struct wm_round *r)
{
	char b[SIM_TEXT];
	size_t at = 0;
	uint32_t i;

	b[0] = '\0';
	for (i = 0; i < r->n_rings && at < sizeof b - 64; i++)
		at += (size_t)snprintf(b + at, sizeof b - at, " g%u: %u of %u, next %s",
			r->rings[i].group, r->rings[i].pos, r->rings[i].hosts,
			r->rings[i].hosts > 1 ? sim_name_agent(s, &r->rings[i].next.agent) : "-");
	return text("%" PRIu64 "%s%.400s", r->round, r->accept ? " accept" : "", b);
}

static const char *text_vote(const struct sim *s, const struct wm_op_vote *v)
{
	char b[SIM_TEXT];
	size_t at = 0;
	uint32_t i;

	b[0] = '\0';
	for (i = 0; i < v->n_peers && at < sizeof b - 64; i++)
		at += (size_t)snprintf(
			b + at, sizeof b - at, " %s", sim_name_peer(s, &v->peers[i]));
	if (v->is_sync)
		return text("g%u sync seq %" PRIu64 " generation %" PRIu64 " revision %" PRIu64
			    " strategy %u content %04x of%.300s",
			v->group, v->seq, v->generation, v->sync.revision, v->sync.strategy,
			(unsigned)(v->sync.content.hi & 0xffff), b);
	return text("g%u tag %" PRIu64 " seq %" PRIu64 " generation %" PRIu64 " count %" PRIu64
		    " quant %u route %u of%.300s",
		v->group, v->tag, v->seq, v->generation, v->params.count, v->params.quant.algo,
		v->route, b);
}

static const char *text_resume(const struct wm_resume *r)
{
	return text("epoch %" PRIu64 " round %" PRIu64 " prepared %" PRIu64 " (%u) not %" PRIu64
		    " seq %" PRIu64 ", %u positions, %u outcomes, %s",
		r->epoch, r->round, r->prepared, r->prepared_peers, r->aborted_round, r->last_seq,
		r->n_positions, r->n_outcomes, text_view(&r->view));
}

static const char *text_join(const struct sim *s, const struct wm_join *j)
{
	if (j->phase == WM_JOIN_NEW)
		return text("%s g%u new", sim_name_peer(s, &j->peer), j->group);
	if (j->phase == WM_JOIN_PREPARED)
		return text("%s g%u prepared", sim_name_peer(s, &j->peer), j->group);
	return text("%s g%u accepted, ballots %" PRIu64 ", %" PRIu64 " view %" PRIu64 ": %u peers",
		sim_name_peer(s, &j->peer), j->group, j->ballots[WIRE_TOPOLOGY],
		j->ballots[WIRE_PENDING], j->view_id, j->global);
}

static const char *agent_body(const struct sim *s, const struct wm_msg *m)
{
	switch (m->type) {
	case WM_HELLO:
		return text("agent %s run %02x%02x term %" PRIu64,
			sim_name_agent(s, &m->u.hello.agent), m->u.hello.run.b[0],
			m->u.hello.run.b[1], m->u.hello.term);
	case WM_JOIN:
		return text_join(s, &m->u.join);
	case WM_LEAVE:
		return text("%s%s", sim_name_peer(s, &m->u.leave.peer),
			m->u.leave.kind == WM_LEAVE_DIED      ? " died"
			: m->u.leave.kind == WM_LEAVE_STOPPED ? " stopped"
							      : "");
	case WM_BALLOT_VOTE:
		return text("%s, %s, number %" PRIu64, sim_name_peer(s, &m->u.ballot_vote.peer),
			wire_ballot_kinds[m->u.ballot_vote.kind].name, m->u.ballot_vote.number);
	case WM_OP_VOTE:
		return text_vote(s, &m->u.op_vote);
	case WM_OP_REPORT:
		return text("seq %" PRIu64 " %s %s", m->u.op_report.seq,
			m->u.op_report.ok ? "ok" : "failed", m->u.op_report.text);
	case WM_MESH:
		return text("g%u %s, after %u reopens", m->u.mesh.group,
			m->u.mesh.up ? "up" : "down", m->u.mesh.reopens);
	case WM_LINK_LOST:
		return text("%s %s", m->u.link_lost.inbound ? "from" : "to",
			sim_name_agent(s, &m->u.link_lost.agent));
	case WM_ROUND_REPORT:
		return text("%" PRIu64 ", %u failures", m->u.round_report.round,
			m->u.round_report.n_failures);
	case WM_RESUME:
		return text_resume(&m->u.resume);
	case WM_OP_QUERY:
		return text("%s, %u", sim_name_peer(s, &m->u.op_query.peer), m->u.op_query.n);
	case WM_HEARTBEAT:
		return m->u.heartbeat.awaited ? "awaited" : "";
	case WM_STOPPED:
		return text("%s %d", sim_name_peer(s, &m->u.stopped.peer), m->u.stopped.is);
	case WM_STANDSTILL:
		return text("seq %" PRIu64 " for %u ms", m->u.standstill.seq, m->u.standstill.ms);
	case WM_WAITS_FOR:
		return text("%s tag %" PRIu64, sim_name_peer(s, &m->u.waits_for.peer),
			m->u.waits_for.tag);
	default:
		return "";
	}
}

static const char *master_body(const struct sim *s, const struct wm_msg *m)
{
	switch (m->type) {
	case WM_HELLO_ACK:
		return text("run %02x%02x term %" PRIu64 "%s", m->u.hello_ack.run.b[0],
			m->u.hello_ack.run.b[1], m->u.hello_ack.term,
			m->u.hello_ack.resume ? " resume" : "");
	case WM_REFUSE:
		return text("%s: %.300s", sim_text_code(m->u.refuse.code), m->u.refuse.text);
	case WM_ROUND:
		return text_round(s, &m->u.round);
	case WM_COMMIT:
		return text("round %" PRIu64 " epoch %" PRIu64 "%s ballots %" PRIu64 ", %" PRIu64
			    ", %s",
			m->u.commit.round, m->u.commit.epoch, m->u.commit.accept ? " accept" : "",
			m->u.commit.ballots[WIRE_TOPOLOGY], m->u.commit.ballots[WIRE_PENDING],
			text_view(&m->u.commit.view));
	case WM_VIEW:
		return text_view(&m->u.view);
	case WM_LINK_REOPEN:
		return text("to %s", sim_name_agent(s, &m->u.link_reopen.agent));
	case WM_OP_START:
		return text("g%u tag %" PRIu64 " seq %" PRIu64 " epoch %" PRIu64 " route %u",
			m->u.op_start.group, m->u.op_start.tag, m->u.op_start.seq,
			m->u.op_start.epoch, m->u.op_start.route);
	case WM_OP_ABORT:
		return text("g%u tag %" PRIu64 " seq %" PRIu64 " %s: %.200s", m->u.op_abort.group,
			m->u.op_abort.tag, m->u.op_abort.seq, sim_text_code(m->u.op_abort.code),
			m->u.op_abort.text);
	case WM_OP_DONE:
		return text("seq %" PRIu64 ", next %" PRIu64 " route %u", m->u.op_done.seq,
			m->u.op_done.next, m->u.op_done.next_route);
	case WM_BALLOT_END:
		return text("%s, number %" PRIu64, wire_ballot_kinds[m->u.ballot_end.kind].name,
			m->u.ballot_end.number);
	case WM_KICK:
		return text("%s %s: %.300s", sim_name_peer(s, &m->u.kick.peer),
			sim_text_code(m->u.kick.code), m->u.kick.text);
	case WM_OP_OUTCOMES:
		return text("%s, %u, first: seq %" PRIu64 " %s",
			sim_name_peer(s, &m->u.op_outcomes.peer), m->u.op_outcomes.n,
			m->u.op_outcomes.v[0].seq, sim_text_code(m->u.op_outcomes.v[0].code));
	case WM_WAITS:
		return text("kind %u g%u tag %" PRIu64 " for %u ms: %.300s", m->u.waits.kind,
			m->u.waits.group, m->u.waits.tag, m->u.waits.waited_ms, m->u.waits.text);
	case WM_LEFT:
		return text("%s", sim_name_peer(s, &m->u.left.peer));
	case WM_UNMET:
		return text("kind %u g%u tag %" PRIu64 " of %u peers, %s: %.300s", m->u.unmet.kind,
			m->u.unmet.group, m->u.unmet.tag, m->u.unmet.n_peers,
			sim_name_peer(s, &m->u.unmet.peers[0]), m->u.unmet.text);
	default:
		return "";
	}
}

const char *sim_text_msg(const struct sim *s, const struct wm_msg *m)
{
	return s->trace ? text("%s %.460s", wire_master_type_name(m->type),
				  m->type < WM_HELLO_ACK ? agent_body(s, m) : master_body(s, m))
			: "";
}
