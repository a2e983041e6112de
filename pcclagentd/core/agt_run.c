/* SPDX-License-Identifier: MIT
 *
 * Runs: how communicators join and leave them, and how runs end.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

struct agt_run *agt_run_find(struct agt *a, uint32_t id)
{
	struct agt_run *r;

	HASH_FIND(hh, a->runs, &id, sizeof id, r);
	return r;
}

bool agt_run_has_addr(const struct agt_run *r, const struct cc_addr *addr)
{
	uint32_t i;

	if (cc_addr_eq(&r->addr, addr))
		return true;
	for (i = 0; i < r->n_aliases; i++)
		if (cc_addr_eq(&r->aliases[i], addr))
			return true;
	return false;
}

/* Returns the run of c's master, found by the master's address; or NULL. */
static struct agt_run *run_by_addr(struct agt *a, const struct agt_comm *c)
{
	struct agt_run *r;

	for (r = a->runs; r; r = r->hh.next) {
		if (r->state == AGT_RUN_OVER || !agt_run_has_addr(r, &c->master))
			continue;
		if (r->hinted && r->hint_uid != c->session->uid)
			continue;
		/* this run seeks its master only to report that peers have left */
		if (agt_run_orphaned(r) && !agt_run_has_members(r))
			continue;
		/* not this run if it still seeks the master at an old address, and c knows a newer
		 * one */
		if (!c->at.family || r->reached.family)
			return r;
	}
	return NULL;
}

/* Creates a run for c's master, and connects. want: the run that is expected there, or NULL. */
static struct agt_run *run_open(struct agt *a, const struct agt_comm *c, const struct cc_id *want)
{
	struct agt_run *r = cc_must_zalloc(1, sizeof *r);

	do {
		r->id = ++a->last_run;
	} while (r->id == 0 || agt_run_find(a, r->id));
	r->addr = c->master;
	r->reached = c->at;
	r->hinted = c->at.family != 0;
	r->hint_uid = c->session->uid;
	r->since_ns = r->sought_ns = a->now;
	if (want)
		r->want_run = *want;
	HASH_ADD(hh, a->runs, id, sizeof r->id, r);
	agt_conn_next(a, r);
	return r;
}

/* Fills in the view that c has. Before the run has taken c back, this is the view from its previous
 * agent. */
static void fill_view(const struct agt_comm *c, struct wm_join *ret)
{
	ret->view_id = c->counted ? c->run->view.view_id : c->view_id;
	ret->global = c->counted ? c->run->view.global : c->global;
}

void agt_run_fill_join(const struct agt_comm *c, struct wm_join *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->peer = c->peer;
	ret->token = c->token;
	ret->group = c->group;
	ret->pool_size = c->pool_size;
	ret->pid = c->session->pid;
	if (c->thread)
		ret->thread = (uint64_t)c->session->id << 32 | c->thread;
	agt_copy_text(ret->name, sizeof ret->name, c->session->name);
	if (c->counted || c->attach) {
		ret->phase = WM_JOIN_ACCEPTED;
		memcpy(ret->ballots, c->ballots, sizeof ret->ballots);
		fill_view(c, ret);
	} else if (agt_round_prepared(c->run, &c->peer)) {
		ret->phase = WM_JOIN_PREPARED;
	}
}

void agt_run_send_join(struct agt *a, struct agt_comm *c)
{
	agt_run_fill_join(c, &agt_send(a, c->run, WM_JOIN)->u.join);
	c->joined = true;
	agt_comm_set_state(a, c, AGT_COMM_REGISTERED);
	if (c->session->stopped_ns)
		agt_tell_stopped(a, c);
}

/* Ends the connect of c with a failure; the process can try again. */
__attribute__((format(printf, 3, 4))) static void connect_failed(
	struct agt *a, struct agt_comm *c, const char *fmt, ...)
{
	char text[WL_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	agt_comm_set_state(a, c, AGT_COMM_NEW);
	agt_comm_answer(a, c, WIRE_INVALID_USAGE, text);
}

/* Lets c enter r. If this fails, c may be freed. */
static void enter(struct agt *a, struct agt_comm *c, struct agt_run *r)
{
	struct agt_group *g = agt_group_get(r, c->group);

	if (g->users >= AGT_MEMBERS_MAX) {
		connect_failed(a, c,
			"peer group %u has %u peers on this host, the limit: use another group or "
			"host",
			c->group, AGT_MEMBERS_MAX);
		return;
	}
	if (g->users == 0 && HASH_COUNT(r->groups) > WM_RINGS_MAX) {
		agt_group_put(r, g);
		connect_failed(a, c,
			"this host has peers in %u groups of the run, the limit: use one of them",
			WM_RINGS_MAX);
		return;
	}
	g->users++;
	c->grp = g;
	c->run = r;
	DL_APPEND2(r->comms, c, prev_r, next_r);
	r->n_comms++;
	if (r->state != AGT_RUN_UP)
		return;
	agt_run_send_join(a, c);
	if (c->attach)
		agt_attach_query(a, c);
}

void agt_run_join(struct agt *a, struct agt_comm *c)
{
	struct agt_run *r = run_by_addr(a, c);

	if (!r)
		r = run_open(a, c, NULL);
	enter(a, c, r);
}

static struct agt_run *run_by_id(struct agt *a, const struct cc_id *run)
{
	struct agt_run *r;

	for (r = a->runs; r; r = r->hh.next)
		if (r->state != AGT_RUN_OVER &&
			(cc_id_eq(&r->run_id, run) || cc_id_eq(&r->want_run, run)))
			return r;
	return NULL;
}

void agt_run_attach(struct agt *a, struct agt_comm *c)
{
	const struct cc_id *want = &c->attach->run;
	struct agt_run *r = run_by_id(a, want);

	if (!r) {
		r = run_by_addr(a, c);
		if (r && r->state == AGT_RUN_CONNECTING && cc_id_is_zero(&r->want_run))
			r->want_run = *want;
		else
			r = run_open(a, c, want);
	}
	enter(a, c, r);
}

void agt_run_comm_accepted(struct agt *a, struct agt_comm *c)
{
	agt_comm_set_state(a, c, AGT_COMM_ACCEPTED);
	c->counted = true;
	c->at = (struct cc_addr){.family = 0};
	c->grp->accepted++;
	agt_log(a, AGT_LOG_INFO, "pid %u (%s) is in group %u of run %u", c->session->pid,
		c->session->name, c->group, c->run->id);
}

/* Takes c off the lists of its run. */
static void unlink_comm(struct agt_comm *c)
{
	struct agt_run *r = c->run;

	DL_DELETE2(r->comms, c, prev_r, next_r);
	r->n_comms--;
	if (c->counted && --c->grp->accepted == 0)
		agt_ring_leave(r, c->grp);
	c->grp->users--;
	agt_group_put(r, c->grp);
	c->run = NULL;
	c->grp = NULL;
	c->joined = false;
	c->counted = false;
}

static void leave_run(struct agt *a, struct agt_comm *c)
{
	unlink_comm(c);
	if (c->state == AGT_COMM_REGISTERED)
		agt_comm_set_state(a, c, AGT_COMM_JOINING);
}

void agt_run_move(struct agt *a, struct agt_comm *c, struct agt_run *to)
{
	leave_run(a, c);
	enter(a, c, to);
}

void agt_run_rejoin(struct agt *a, struct agt_comm *c)
{
	leave_run(a, c);
	agt_run_join(a, c);
}

void agt_run_detach(struct agt *a, struct agt_comm *c, enum agt_exit how, const char *why,
	const struct agt_end_status *v)
{
	bool leaves = how == AGT_EXIT_CLEAN || how == AGT_EXIT_DIED || how == AGT_EXIT_STOPPED;
	struct agt_run *r = c->run;

	if (leaves && c->joined) {
		struct wm_leave l = {.peer = c->peer,
			.kind = how == AGT_EXIT_CLEAN  ? WM_LEAVE_CLEAN
				: how == AGT_EXIT_DIED ? WM_LEAVE_DIED
						       : WM_LEAVE_STOPPED};

		agt_copy_text(l.text, sizeof l.text, why);
		agt_leave(a, r, c, &l);
	}
	if (c->counted || c->grp->users == 1) /* a loss follows, or else the group is removed */
		agt_spec_forget(a, r, c->grp);
	if (c->counted)
		c->grp->left = AGT_NEXT_ROUND;
	unlink_comm(c);
	r->check_votes = true;
	r->check_links = true;
	agt_op_drop_comm(a, c, how == AGT_EXIT_STOPPED ? AGT_EXIT_DIED : how, v);
}

void agt_run_lose(
	struct agt *a, struct agt_comm *c, enum agt_exit how, const struct agt_end_status *v)
{
	bool was_accepted = c->state == AGT_COMM_ACCEPTED;

	if (was_accepted) {
		c->lost = *v;
		agt_log(a, AGT_LOG_NOTICE,
			"pid %u (%s) lost its membership in group %u of run %u: %s",
			c->session->pid, c->session->name, c->group, c->run->id, v->text);
	}
	agt_comm_set_state(a, c, was_accepted ? AGT_COMM_LOST : AGT_COMM_NEW);
	agt_comm_publish(a, c);
	agt_run_detach(a, c, how, NULL, v);
	agt_comm_answer(a, c, v->code, v->text);
}

void agt_run_over(struct agt *a, struct agt_run *r, const struct agt_end_status *v)
{
	struct agt_comm *c, *next;

	agt_run_set_state(a, r, AGT_RUN_OVER);
	DL_FOREACH_SAFE2 (r->comms, c, next, next_r)
		agt_run_lose(a, c, AGT_EXIT_DOWN, v);
	agt_round_clear(&r->round);
	agt_leaves_answer(a, r);
	agt_ghosts_free(r);
	agt_emit(a, AGT_ACT_MASTER_CLOSE)->run = r->id;
}

void agt_run_violation(struct agt *a, struct agt_run *r, const char *what)
{
	char addr[CC_ADDR_STR_SIZE];
	struct agt_end_status v;

	(void)cc_addr_str(&r->addr, addr);
	agt_log(a, AGT_LOG_ERR, "master %s broke the protocol: %s", addr, what);
	/* The program at this address may not be the run's master. The real master can still be
	 * found. */
	if (r->state == AGT_RUN_RESUMING) {
		agt_conn_failed(a, r, what, true);
		return;
	}
	agt_end_status_set(&v, WIRE_MASTER_CONNECTION_FAILED,
		"the master at %s broke the protocol (%s): see the logs of agent and master", addr,
		what);
	agt_run_over(a, r, &v);
}

bool agt_run_has_members(const struct agt_run *r)
{
	const struct agt_comm *c;

	DL_FOREACH2 (r->comms, c, next_r)
		if (c->attach || c->state == AGT_COMM_ACCEPTED)
			return true;
	return false;
}

void agt_run_short(struct agt *a, struct agt_run *r, const struct agt_end_status *v, bool open)
{
	bool first = !r->short_ns;

	if (first)
		r->short_ns = a->now;
	if (!agt_run_has_members(r) ||
		a->now - r->short_ns >= AGT_SHORT_MS * (uint64_t)AGT_NS_PER_MS) {
		agt_log(a, AGT_LOG_ERR, "%s", v->text);
		agt_run_over(a, r, v);
		return;
	}
	if (first)
		agt_log(a, AGT_LOG_WARNING, "%s: the agent tries again for %.1f s", v->text,
			(double)AGT_SHORT_MS / 1e3);
	if (r->state == AGT_RUN_UP) {
		agt_orphan(a, r, v->text, open);
	} else if (r->connecting) {
		agt_conn_refused(a, r, v, open);
	}
}

void agt_run_master_down(struct agt *a, const struct agt_event *ev)
{
	struct agt_run *r = agt_run_find(a, ev->run);
	const char *why = ev->text ? ev->text : "connection closed";
	struct agt_end_status v;

	if (!r || r->state == AGT_RUN_OVER)
		return;
	r->foreign = ev->foreign;
	if (ev->code) {
		agt_end_status_set(&v, ev->code, "%s", why);
		agt_run_short(a, r, &v, false);
		return;
	}
	r->short_ns = 0;
	if (r->state == AGT_RUN_UP)
		agt_orphan(a, r, why, false);
	else if (r->connecting)
		agt_conn_failed(a, r, why, false);
}

/* Is a heartbeat due now, or would it be overdue at the next tick? The time until the next tick is
 * assumed to equal the time since the last one. */
static bool beat_is_due(const struct agt *a, const struct agt_run *r)
{
	uint64_t most = AGT_QUIET_TICK_MS * (uint64_t)AGT_NS_PER_MS;
	uint64_t next = a->tick_ns ? a->now - a->tick_ns : 0;

	if (next > most)
		next = most;
	return a->now - r->spoke_ns + next >
	       r->heartbeat_ms * (uint64_t)AGT_NS_PER_MS + AGT_SLACK_NS;
}

void agt_run_tick(struct agt *a, struct agt_run *r)
{
	char why[64];

	if (r->state == AGT_RUN_OVER)
		return;
	if (r->state != AGT_RUN_UP) {
		agt_conn_tick(a, r);
		return;
	}
	/* This process stood still, so messages that the master has sent meanwhile are not read
	 * yet. */
	if (cc_detect_blind(&r->life, a->now - a->tick_ns))
		cc_detect_pause(&r->life, a->now);
	if (cc_detect_gone(&r->life, a->now)) {
		(void)snprintf(why, sizeof why, "silent for %.1f s, bound %.1f s",
			(double)cc_detect_silence(&r->life, a->now) / 1e9,
			(double)cc_detect_bound(&r->life) / 1e9);
		agt_orphan(a, r, why, true);
		return;
	}
	agt_leaves_tick(a, r);
	agt_master_tell_addresses(a, r);
	if (beat_is_due(a, r))
		agt_send(a, r, WM_HEARTBEAT);
}

void agt_run_settle(struct agt *a, struct agt_run *r)
{
	struct agt_op *o, *next;

	while (r->check_votes && agt_run_lives(r)) {
		r->check_votes = false;
		DL_FOREACH_SAFE2 (r->ops, o, next, next_op)
			agt_op_try_vote(a, o);
	}
	if (r->state != AGT_RUN_OVER && r->n_comms == 0 && !r->ghosts) {
		agt_run_set_state(a, r, AGT_RUN_OVER);
		agt_emit(a, AGT_ACT_MASTER_CLOSE)->run = r->id;
	}
	agt_measure_settle(a, r);
	if (r->state == AGT_RUN_OVER && !r->ops)
		agt_run_free(a, r);
	else if (r->check_links && r->state != AGT_RUN_OVER)
		agt_links_sweep(a, r);
}

void agt_run_free(struct agt *a, struct agt_run *r)
{
	struct agt_op *o, *next_op;

	DL_FOREACH_SAFE2 (r->ops, o, next_op, next_op)
		agt_op_free(a, o);
	agt_round_clear(&r->round);
	agt_ghosts_free(r);
	agt_history_free(r);
	agt_links_free(r);
	agt_measure_free(r);
	HASH_DELETE(hh, a->runs, r);
	free(r);
}
