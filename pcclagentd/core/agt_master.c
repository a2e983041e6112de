/* SPDX-License-Identifier: MIT
 *
 * The messages of a master: greetings, refusals, kicks. Other messages are passed to the file that
 * handles them.
 */
#include <inttypes.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

void agt_master_tell_addresses(struct agt *a, struct agt_run *r)
{
	if (r->state != AGT_RUN_UP || r->addresses == a->addresses)
		return;
	r->addresses = a->addresses;
	agt_send(a, r, WM_ADDRESSES)->u.addresses = a->cfg.addresses;
}

void agt_master_addresses(struct agt *a, const struct wm_addresses *x)
{
	struct agt_run *r;

	a->cfg.addresses = *x;
	a->addresses++;
	for (r = a->runs; r; r = r->hh.next)
		agt_master_tell_addresses(a, r);
}

/* Merges `from` into `to`, because both have the same master: the peers of `from` join `to`. If
 * `to` has no connection now, it connects to the address of `from`. */
static void merge_into(struct agt *a, struct agt_run *from, struct agt_run *to)
{
	struct agt_comm *c, *next;

	DL_FOREACH_SAFE2 (from->comms, c, next, next_r) {
		agt_run_move(a, c, to);
	}
	agt_conn_alias(to, &from->addr);
	agt_conn_alias(to, &from->connect_addr);
	agt_run_set_state(a, from, AGT_RUN_OVER);
	agt_emit(a, AGT_ACT_MASTER_CLOSE)->run = from->id;
	if (to->state == AGT_RUN_ORPHAN)
		agt_conn_open(a, to, &from->connect_addr);
}

/* Returns the run that the peers of r want, if it is already up over another connection. A second
 * hello to its master would look as if the agent had lost the first connection. */
static struct agt_run *wanted_run(const struct agt *a, const struct agt_run *r)
{
	struct agt_run *x;

	for (x = a->runs; x; x = x->hh.next)
		if (x != r && x->state == AGT_RUN_UP && cc_id_eq(&x->run_id, &r->want_run))
			return x;
	return NULL;
}

/* Is it certain that r has no members? No peer was accepted, and no prepared round can have
 * accepted one. */
static bool has_no_members(const struct agt_run *r)
{
	const struct agt_comm *c;

	DL_FOREACH2 (r->comms, c, next_r)
		if (agt_round_prepared(r, &c->peer))
			return false;
	return !agt_run_has_members(r);
}

void agt_master_up(struct agt *a, const struct agt_event *ev)
{
	struct agt_run *r = agt_run_find(a, ev->run);
	struct agt_run *other;
	struct wm_hello *h;

	if (!r || !r->connecting)
		return;
	other = r->state == AGT_RUN_CONNECTING ? wanted_run(a, r) : NULL;
	if (other) {
		merge_into(a, r, other);
		return;
	}
	if (r->state == AGT_RUN_CONNECTING)
		agt_run_set_state(a, r, AGT_RUN_GREETING);
	else if (r->state == AGT_RUN_ORPHAN)
		agt_run_set_state(a, r, AGT_RUN_RESUMING);
	else
		return;
	h = &agt_send(a, r, WM_HELLO)->u.hello;
	h->version_min = WM_VERSION_MIN;
	h->version_max = WM_VERSION_MAX;
	h->features = WM_FEATURES;
	h->agent = a->cfg.agent;
	memcpy(h->name, a->cfg.name, sizeof h->name);
	h->advertised = a->cfg.addresses.advertised;
	h->n_addrs = a->cfg.addresses.n_addrs;
	memcpy(h->addrs, a->cfg.addresses.addrs, sizeof h->addrs);
	h->port_p2p = a->cfg.addresses.port_p2p;
	h->port_shared_state = a->cfg.addresses.port_shared_state;
	h->port_benchmark = a->cfg.addresses.port_benchmark;
	r->addresses = a->addresses;
	h->run = agt_run_orphaned(r) ? r->run_id : r->want_run;
	h->run_key = r->run_key;
	h->term = cc_id_is_zero(&r->run_key) ? 0 : r->term;
	h->newcomers = !cc_id_is_zero(&h->run) && has_no_members(r) && agt_leaves_sent(r);
	h->left = h->newcomers && r->ghosts;
}

void agt_master_settings(struct agt *a, struct agt_run *r, const struct wm_hello_ack *m)
{
	r->heartbeat_ms = m->heartbeat_ms < AGT_HEARTBEAT_MIN ? AGT_HEARTBEAT_MIN : m->heartbeat_ms;
	r->timeout_ms = m->timeout_ms < AGT_TIMEOUT_MIN ? AGT_TIMEOUT_MIN : m->timeout_ms;
	r->segment_wanted = m->segment_max;
	r->features = m->features;
	r->awaited = false;
	cc_detect_init(&r->life, r->heartbeat_ms, r->timeout_ms, a->now);
}

/* Handles a stale master. A newcomer has no membership to keep, so its run ends here; a member
 * connects to another address. */
static void stale(struct agt *a, struct agt_run *r, const struct wm_hello_ack *m)
{
	char addr[CC_ADDR_STR_SIZE];
	struct agt_end_status v;

	agt_end_status_set(&v, WIRE_MASTER_CONNECTION_FAILED,
		"the master at %s is stale: it has term %" PRIu64 " of its run, and term %" PRIu64
		" has begun elsewhere",
		cc_addr_str(&r->connect_addr, addr), m->term, agt_term_of(a, &m->run));
	agt_log(a, AGT_LOG_WARNING, "%s", v.text);
	if (cc_id_is_zero(&r->want_run))
		agt_run_over(a, r, &v);
	else
		agt_conn_failed(a, r, v.text, true);
}

static void run_ready(struct agt *a, struct agt_run *r, const struct wm_hello_ack *m)
{
	struct agt_action *x = agt_emit(a, AGT_ACT_RUN_READY);

	r->run_id = r->want_run = m->run;
	agt_term_set(a, r, m->term);
	x->run = r->id;
	x->id = m->run;
}

static struct agt_run *living_run(const struct agt *a, const struct agt_run *r, struct cc_id id)
{
	struct agt_run *x;

	for (x = a->runs; x; x = x->hh.next)
		if (x != r && agt_run_lives(x) && cc_id_eq(&x->run_id, &id))
			return x;
	return NULL;
}

/* Lets the peers of r join as newcomers, each at the master address that its process gave. To be
 * called when the master has another run and r has no members. */
static void join_anew(struct agt *a, struct agt_run *r, const struct wm_hello_ack *m)
{
	struct agt_run *to = living_run(a, r, m->run);
	struct agt_comm *c, *next;

	agt_ghosts_free(r);
	if (!r->comms)
		return;
	if (to) {
		merge_into(a, r, to);
		return;
	}
	agt_run_set_state(a, r, AGT_RUN_OVER);
	agt_emit(a, AGT_ACT_MASTER_CLOSE)->run = r->id;
	DL_FOREACH_SAFE2 (r->comms, c, next, next_r) {
		agt_run_rejoin(a, c);
	}
}

/* Can the run be given up? Only if the master does not take members of r back, and no leave still
 * has to be sent to another master. */
static bool is_given_up(const struct agt_run *r, const struct wm_hello_ack *m)
{
	bool resumes = m->resume && cc_id_eq(&m->run, &r->run_id);

	return !resumes && has_no_members(r) && (!r->redirected || agt_leaves_sent(r));
}

static void got_hello_ack(struct agt *a, struct agt_run *r, const struct wm_hello_ack *m)
{
	char addr[CC_ADDR_STR_SIZE];
	struct agt_run *other;
	struct agt_comm *c;

	if (m->version < WM_VERSION_MIN || m->version > WM_VERSION_MAX) {
		agt_run_violation(a, r, "HELLO_ACK with a version that was not offered");
		return;
	}
	if (r->state == AGT_RUN_RESUMING) {
		if (is_given_up(r, m))
			join_anew(a, r, m);
		else
			agt_resume_ack(a, r, m);
		return;
	}
	if (m->term < agt_term_of(a, &m->run)) {
		stale(a, r, m);
		return;
	}
	agt_attach_check_run(a, r, &m->run);
	other = living_run(a, r, m->run);
	if (other) {
		merge_into(a, r, other);
		return;
	}
	agt_master_settings(a, r, m);
	agt_conn_reached(a, r);
	agt_run_set_state(a, r, AGT_RUN_UP);
	agt_log(a, AGT_LOG_NOTICE, "master %s: connected, run %u",
		cc_addr_str(&r->connect_addr, addr), r->id);
	run_ready(a, r, m);
	agt_rates_tell(a, r);
	DL_FOREACH2 (r->comms, c, next_r)
		agt_run_send_join(a, c);
	if (m->resume)
		agt_resume_end(a, r);
	DL_FOREACH2 (r->comms, c, next_r)
		if (c->attach)
			agt_attach_query(a, c);
}

/* Was this host refused because of its protocol version? A master of an old version may not even
 * know WM_KNOCK. */
static bool other_version(const struct wm_refuse *m)
{
	return m->code == WIRE_SUCCESS || m->code == WIRE_VERSION_MISMATCH ||
	       m->version_min > WM_VERSION_MAX || m->version_max < WM_VERSION_MIN;
}

static void got_refuse(struct agt *a, struct agt_run *r, const struct wm_refuse *m)
{
	char addr[CC_ADDR_STR_SIZE];
	struct agt_end_status v;

	/* A stale master: the master that took its run over may be at the next address. */
	if (!other_version(m) && m->code == WIRE_MASTER_CONNECTION_FAILED &&
		(agt_run_lives(r) || !cc_id_is_zero(&r->want_run))) {
		if (r->state == AGT_RUN_UP) {
			agt_conn_redirected(a, r);
			agt_orphan(a, r, m->text, true);
			r->redirected = true;
		} else {
			agt_conn_failed(a, r, m->text, true);
		}
		return;
	}
	(void)cc_addr_str(&r->connect_addr, addr);
	if (other_version(m))
		agt_end_status_set(&v, WIRE_VERSION_MISMATCH,
			"the master at %s speaks protocol versions %u to %u, this agent %u to "
			"%u%s%.120s: update the older one",
			addr, m->version_min, m->version_max, WM_VERSION_MIN, WM_VERSION_MAX,
			m->text[0] ? "; it says: " : "", m->text);
	else
		agt_end_status_set(
			&v, m->code, "the master at %s refused this host: %s", addr, m->text);
	if (v.code == WIRE_OUT_OF_MEMORY) {
		agt_run_short(a, r, &v, true);
		return;
	}
	agt_log(a, AGT_LOG_WARNING, "%s", v.text);
	agt_run_over(a, r, &v);
}

static void got_kick(struct agt *a, struct agt_run *r, const struct wm_kick *m)
{
	struct agt_comm *c;
	struct agt_end_status v;

	DL_FOREACH2 (r->comms, c, next_r)
		if (c->joined && cc_id_eq(&c->peer, &m->peer))
			break;
	if (!c)
		return; /* it has left meanwhile */
	v.code = m->code;
	if (v.code == WIRE_SUCCESS)
		v.code = c->state == AGT_COMM_ACCEPTED || c->attach ? WIRE_RANK_CONNECTION_LOST
								    : WIRE_RANK_CONNECTION_FAILED;
	agt_copy_text(v.text, sizeof v.text,
		m->text[0] ? m->text
			   : "the master removed this peer from the run and gave no reason");
	agt_run_lose(a, c, AGT_EXIT_KICKED, &v);
}

/* Starts a probe. The master needs the result before it lets peers wait for the probed agent. */
static void got_probe(struct agt *a, struct agt_run *r, const struct wm_probe *m)
{
	struct agt_action *x;

	if (cc_id_eq(&m->to.agent, &a->cfg.agent)) {
		agt_run_violation(a, r, "PROBE that leads from this agent to itself");
		return;
	}
	x = agt_emit(a, AGT_ACT_PROBE);
	x->run = r->id;
	x->u.probe = *m;
}

/* Sends the result of a probe to the master. If the run has no master now, the result is dropped:
 * the next master asks again. */
void agt_probed(struct agt *a, const struct agt_event *ev)
{
	struct agt_run *r = agt_run_find(a, ev->run);
	struct wm_probed *m;

	if (!r || r->state != AGT_RUN_UP)
		return;
	m = &agt_send(a, r, WM_PROBED)->u.probed;
	m->number = ev->seq;
	m->ok = ev->code == WIRE_SUCCESS;
	m->limit = ev->code == WIRE_OUT_OF_MEMORY;
	if (!m->ok)
		agt_copy_text(m->text, sizeof m->text, ev->text);
}

static void got_msg(struct agt *a, struct agt_run *r, const struct wm_msg *m)
{
	switch (m->type) {
	case WM_HEARTBEAT:
		r->awaited = m->u.heartbeat.awaited;
		break;
	case WM_REFUSE:
		got_refuse(a, r, &m->u.refuse);
		break;
	case WM_ROUND:
		agt_round_begin(a, r, &m->u.round);
		break;
	case WM_PROBE:
		got_probe(a, r, &m->u.probe);
		break;
	case WM_MEASURE:
		agt_measure(a, r, &m->u.measure);
		break;
	case WM_RATES:
		agt_rates_set_caps(&a->rates, &m->u.rates, a->now);
		break;
	case WM_COMMIT:
		agt_round_commit(a, r, &m->u.commit);
		break;
	case WM_VIEW:
		agt_view_set(a, r, &m->u.view);
		break;
	case WM_OP_START:
		agt_op_start(a, r, &m->u.op_start);
		break;
	case WM_OP_ABORT:
		agt_op_abort(a, r, &m->u.op_abort);
		break;
	case WM_OP_DONE:
		agt_op_done(a, r, &m->u.op_done);
		break;
	case WM_BALLOT_END:
		agt_ballot_end(a, r, &m->u.ballot_end);
		break;
	case WM_LEFT:
		agt_left(a, r, &m->u.left);
		break;
	case WM_LINK_REOPEN:
		agt_mesh_reopen(a, r, &m->u.link_reopen.agent);
		break;
	case WM_KICK:
		got_kick(a, r, &m->u.kick);
		break;
	case WM_UNMET:
		agt_unmet(a, r, &m->u.unmet);
		break;
	case WM_WAITS:
		agt_waits_set(a, r, &m->u.waits);
		break;
	case WM_OP_OUTCOMES:
		agt_attach_outcomes(a, r, &m->u.op_outcomes);
		break;
	default:
		agt_run_violation(a, r, "a message that only agents send, or a second greeting");
		break;
	}
}

void agt_master_msg(struct agt *a, const struct agt_event *ev)
{
	struct agt_run *r = agt_run_find(a, ev->run);
	const struct wm_msg *m = ev->msg;

	if (!r || !m || r->state == AGT_RUN_OVER || r->state == AGT_RUN_CONNECTING ||
		r->state == AGT_RUN_ORPHAN)
		return;
	cc_detect_heard(&r->life, a->now);
	if (m->type == WM_HEARTBEAT)
		cc_detect_path(&r->life, ev->path_ms);
	if (r->state == AGT_RUN_UP)
		got_msg(a, r, m);
	else if (m->type == WM_HELLO_ACK)
		got_hello_ack(a, r, &m->u.hello_ack);
	else if (m->type == WM_REFUSE)
		got_refuse(a, r, &m->u.refuse);
	else if (m->type != WM_HEARTBEAT)
		agt_run_violation(a, r, "it did not begin with HELLO_ACK or REFUSE");
}
