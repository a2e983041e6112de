/* SPDX-License-Identifier: MIT
 *
 * Sessions, their communicators, and the requests that come over the socket.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"
#include "pcclagentd/core/agt_record.h"

static struct agt_session *session_find(struct agt *a, uint32_t id)
{
	struct agt_session *s;

	HASH_FIND(hh, a->sessions, &id, sizeof id, s);
	return s;
}

struct agt_comm *agt_comm_find(struct agt *a, uint32_t id)
{
	struct agt_comm *c;

	HASH_FIND(hh, a->comms, &id, sizeof id, c);
	return c;
}

void agt_session_open(struct agt *a, const struct agt_event *ev)
{
	struct agt_session *s;

	if (session_find(a, ev->session)) {
		agt_log(a, AGT_LOG_ERR, "session %u was opened twice", ev->session);
		return;
	}
	s = cc_must_zalloc(1, sizeof *s);
	s->id = ev->session;
	s->uid = ev->uid;
	s->pid = ev->pid;
	agt_copy_text(s->name, sizeof s->name, ev->name);
	HASH_ADD(hh, a->sessions, id, sizeof s->id, s);
}

void agt_comm_free(struct agt *a, struct agt_comm *c)
{
	if (c->opened)
		agt_emit(a, AGT_ACT_COMM_CLOSE)->comm = c->id;
	DL_DELETE(c->session->comms, c);
	HASH_DELETE(hh, a->comms, c);
	a->n_attaching -= c->attach != NULL;
	free(c->attach);
	agt_record_free(c);
	free(c);
}

void agt_comm_unopened(struct agt *a, const struct agt_event *ev)
{
	struct agt_comm *c = agt_comm_find(a, ev->comm);

	if (!c || c->state != AGT_COMM_NEW)
		return;
	c->opened = false;
	agt_comm_free(a, c);
}

static void session_end(struct agt *a, struct agt_session *s, enum agt_exit how)
{
	struct agt_comm *c, *next;

	DL_FOREACH_SAFE (s->comms, c, next) {
		bool was_in = c->run != NULL;

		c->wait = 0;
		if (c->state != AGT_COMM_LEAVING)
			agt_comm_set_state(a, c, AGT_COMM_LEAVING);
		if (was_in)
			agt_run_detach(a, c, how, NULL, NULL);
		else
			agt_op_drop_comm(a, c, AGT_EXIT_DIED, NULL);
		agt_comm_free(a, c);
	}
	HASH_DELETE(hh, a->sessions, s);
	a->n_stopped -= s->stopped_ns != 0;
	free(s);
}

void agt_session_closed(struct agt *a, const struct agt_event *ev)
{
	struct agt_session *s = session_find(a, ev->session);

	if (s)
		session_end(a, s, AGT_EXIT_DIED);
}

void agt_session_stopped(struct agt *a, const struct agt_event *ev)
{
	struct agt_session *s = session_find(a, ev->session);
	const struct agt_comm *c;

	if (!s || ev->stopped == (s->stopped_ns != 0))
		return;
	if (ev->stopped)
		agt_log(a, AGT_LOG_NOTICE, "pid %u (%s) is stopped", s->pid, s->name);
	else
		agt_log(a, AGT_LOG_NOTICE, "pid %u (%s) runs again after %.1f s", s->pid, s->name,
			(double)(a->now - s->stopped_ns) / 1e9);
	s->stopped_ns = ev->stopped ? a->now : 0;
	if (ev->stopped)
		a->n_stopped++;
	else
		a->n_stopped--;
	DL_FOREACH (s->comms, c)
		if (c->joined)
			agt_tell_stopped(a, c);
}

/* Ends the session of a process that was stopped for too long. Other peers do not wait for it any
 * more. The process gets the reason when it runs again. */
static void stopped_too_long(struct agt *a, struct agt_session *s)
{
	struct agt_action *x;
	uint32_t id = s->id;
	char text[WL_TEXT_MAX];

	(void)snprintf(text, sizeof text,
		"this process was stopped for %.1f s and its peers were counted as lost: call "
		"pcclConnect again",
		(double)(a->now - s->stopped_ns) / 1e9);
	agt_log(a, AGT_LOG_WARNING, "pid %u (%s) has been stopped for %.1f s: counted as lost",
		s->pid, s->name, (double)(a->now - s->stopped_ns) / 1e9);
	session_end(a, s, AGT_EXIT_STOPPED);
	x = agt_emit(a, AGT_ACT_SESSION_END);
	x->session = id;
	x->u.reply.code = WIRE_RANK_CONNECTION_LOST;
	agt_copy_text(x->u.reply.text, sizeof x->u.reply.text, text);
}

void agt_sessions_tick(struct agt *a)
{
	uint64_t limit = (uint64_t)a->cfg.stopped_ms * AGT_NS_PER_MS;
	uint64_t gap = a->tick_ns ? a->now - a->tick_ns : 0;
	struct agt_session *s, *next;

	if (a->n_stopped == 0)
		return;
	HASH_ITER (hh, a->sessions, s, next) {
		if (!s->stopped_ns)
			continue;
		/* The agent was stopped, too, so the process may run again by now. */
		if (gap > AGT_STOOD_STILL_NS)
			s->stopped_ns = a->now;
		if (a->now + AGT_SLACK_NS - s->stopped_ns >= limit)
			stopped_too_long(a, s);
	}
}

void agt_comm_attrs(const struct agt_comm *c, struct agt_attrs *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->state = SHM_COMM_NEW;
	if (c->state == AGT_COMM_ACCEPTED) {
		ret->state = SHM_COMM_CONNECTED;
		ret->hosts = c->grp->ring.hosts;
		ret->pos = c->grp->ring.pos;
		ret->at = c->run->at;
		ret->view_id = c->run->view.view_id;
		ret->global = c->run->view.global;
		ret->round = c->run->measure.round;
		ret->rounds = c->run->measure.rounds;
	} else if (c->state == AGT_COMM_LOST) {
		ret->state = SHM_COMM_LOST;
		ret->code = c->lost.code;
		agt_copy_text(ret->text, sizeof ret->text, c->lost.text);
		ret->at = c->attrs.at;
	}
}

void agt_comm_view(const struct agt_comm *c, struct wire_view *ret)
{
	if (c->state == AGT_COMM_ACCEPTED)
		*ret = agt_view_of(c->run, c->grp);
	else
		*ret = (struct wire_view){.view_id = 0};
}

void agt_comm_view_after(
	const struct agt_comm *c, uint64_t generation, uint32_t code, struct wire_view *ret)
{
	if (c->state == AGT_COMM_ACCEPTED)
		*ret = agt_view_after(c->run, c->grp, generation, code).view;
	else
		*ret = (struct wire_view){.view_id = 0};
}

static bool attrs_eq(const struct agt_attrs *a, const struct agt_attrs *b)
{
	return a->state == b->state && a->hosts == b->hosts && a->pos == b->pos &&
	       a->round == b->round && a->rounds == b->rounds && a->view_id == b->view_id &&
	       a->global == b->global && a->code == b->code && strcmp(a->text, b->text) == 0 &&
	       cc_addr_eq(&a->at, &b->at);
}

void agt_comm_publish(struct agt *a, struct agt_comm *c)
{
	struct agt_action *x;
	struct agt_attrs now;

	if (!c->opened)
		return;
	agt_comm_attrs(c, &now);
	if (attrs_eq(&now, &c->attrs))
		return;
	c->attrs = now;
	x = agt_emit(a, AGT_ACT_ATTRS);
	x->comm = c->id;
	x->u.attrs = now;
}

void agt_comm_answer(struct agt *a, struct agt_comm *c, uint32_t code, const char *text)
{
	struct wl_reply *r;

	if (!c->wait)
		return;
	c->wait = 0;
	agt_comm_publish(a, c);
	r = agt_reply(a, c, c->wait_req, code, text);
	agt_comm_view(c, &r->view);
	if (code != WIRE_SUCCESS) {
		if (c->attach)
			agt_comm_free(a, c);
		return;
	}
	r->generation = c->grp->generation;
	memcpy(r->ballots, c->ballots, sizeof r->ballots);
	r->run = c->run->run_id;
}

void agt_comm_finish(struct agt *a, struct agt_comm *c)
{
	struct agt_comm reply_to = {.id = c->id, .session = c->session};
	uint32_t req_id = c->wait_req;

	agt_comm_free(a, c);
	agt_reply(a, &reply_to, req_id, WIRE_SUCCESS, "");
}

void agt_comm_wait(struct agt *a, struct agt_comm *c, const struct wl_request *q)
{
	c->wait = q->type;
	c->wait_req = q->req_id;
	c->wait_ns = a->now;
}

static const char *wait_name(const struct agt_comm *c)
{
	switch (c->wait) {
	case WL_COMM_CONNECT:
		return "pcclConnect";
	case WL_VOTE:
		return wire_ballot_kinds[c->vote].call;
	default:
		return "pcclDestroyCommunicator";
	}
}

static uint32_t comms_of_user(const struct agt *a, uint32_t uid)
{
	const struct agt_comm *c;
	uint32_t n = 0;

	for (c = a->comms; c; c = c->hh.next)
		n += c->session->uid == uid;
	return n;
}

/* Checks a request for a new communicator. Returns WIRE_SUCCESS, or a code with the reason in text.
 */
static uint32_t check_create(const struct agt *a, const struct agt_session *s,
	const struct wl_request *q, char *text, size_t size)
{
	char addr[CC_ADDR_STR_SIZE];

	if ((q->master.family != CC_INET4 && q->master.family != CC_INET6) || q->master.port == 0 ||
		cc_addr_is_any(&q->master)) {
		(void)snprintf(text, size,
			"master_address: not the address and port of a master; give "
			"those on which ccoip-masterd listens");
		return WIRE_INVALID_ARGUMENT;
	}
	if (cc_addr_flaw(&q->master)) {
		(void)snprintf(text, size, "master_address: %s: %s", cc_addr_str(&q->master, addr),
			cc_addr_flaw(&q->master));
		return WIRE_INVALID_ARGUMENT;
	}
	if (q->pool_size > WM_POOL_MAX) {
		(void)snprintf(text, size, "p2p_connection_pool_size: %u is above the limit of %u",
			q->pool_size, WM_POOL_MAX);
		return WIRE_INVALID_ARGUMENT;
	}
	if (comms_of_user(a, s->uid) >= a->cfg.max_comms_per_uid) {
		(void)snprintf(text, size,
			"this user has %u communicators, the limit of one user on this host: "
			"destroy some "
			"that are not needed",
			a->cfg.max_comms_per_uid);
		return WIRE_OUT_OF_MEMORY;
	}
	return WIRE_SUCCESS;
}

void agt_refuse_request(struct agt *a, const struct agt_session *s, const struct wl_request *q,
	uint32_t code, const char *text)
{
	struct agt_action *x = agt_emit(a, AGT_ACT_REPLY);

	x->session = s->id;
	x->u.reply.req_id = q->req_id;
	x->u.reply.code = code;
	x->u.reply.comm = q->comm;
	agt_copy_text(x->u.reply.text, sizeof x->u.reply.text, text);
}

struct agt_comm *agt_comm_new(struct agt *a, struct agt_session *s, const struct wl_request *q)
{
	char text[WL_TEXT_MAX];
	uint32_t code = check_create(a, s, q, text, sizeof text);
	struct agt_comm *c;

	if (code != WIRE_SUCCESS) {
		agt_refuse_request(a, s, q, code, text);
		return NULL;
	}
	c = cc_must_zalloc(1, sizeof *c);
	do {
		c->id = ++a->last_comm;
	} while (c->id == 0 || agt_comm_find(a, c->id));
	c->session = s;
	c->master = q->master;
	if (!cc_addr_eq(&q->master_addr, &q->master))
		c->at = q->master_addr;
	c->group = q->group;
	c->pool_size = q->pool_size ? q->pool_size : 1;
	HASH_ADD(hh, a->comms, id, sizeof c->id, c);
	DL_APPEND(s->comms, c);
	return c;
}

static void comm_create(struct agt *a, struct agt_session *s, const struct wl_request *q)
{
	struct agt_comm *c = agt_comm_new(a, s, q);
	struct agt_action *x;

	if (!c)
		return;
	c->opened = true;
	x = agt_emit(a, AGT_ACT_COMM_OPEN);
	x->session = s->id;
	x->comm = c->id;
	x->u.open.reply.req_id = q->req_id;
	x->u.open.reply.comm = c->id;
}

static void comm_connect(struct agt *a, struct agt_comm *c, const struct wl_request *q)
{
	if (c->state == AGT_COMM_ACCEPTED) {
		agt_reply(a, c, q->req_id, WIRE_INVALID_USAGE,
			"the communicator is connected already: create another one for a second "
			"peer");
		return;
	}
	agt_comm_set_state(a, c, AGT_COMM_JOINING);
	c->peer = q->peer;
	c->token = q->token;
	c->thread = q->thread;
	memset(c->ballots, 0, sizeof c->ballots);
	c->view_id = 0;
	c->global = 0;
	agt_comm_wait(a, c, q);
	agt_comm_publish(a, c);
	agt_run_join(a, c);
}

static void comm_destroy(struct agt *a, struct agt_comm *c, const struct wl_request *q)
{
	struct agt_end_status v;
	uint32_t waiting = c->wait, req_id = c->wait_req;
	bool idle;

	agt_end_status_set(&v, WIRE_INVALID_USAGE,
		"the communicator was destroyed while this call was in progress: await all "
		"operations "
		"before pcclDestroyCommunicator");
	c->wait = 0;
	if (waiting)
		agt_reply(a, c, req_id, v.code, v.text);
	agt_comm_set_state(a, c, AGT_COMM_LEAVING);
	agt_comm_wait(a, c, q);
	c->until_left = q->until_left;
	idle = c->n_ops == 0;
	if (c->run)
		agt_run_detach(a, c, AGT_EXIT_CLEAN, q->text, &v);
	/* If c still waits, the end of its last operation, or the master's WM_LEFT, finishes c. In
	 * this case c may already be freed. */
	if (idle && !c->untold)
		agt_comm_finish(a, c);
}

/* Handles a request about an existing communicator. */
static void comm_request(struct agt *a, struct agt_session *s, const struct agt_event *ev)
{
	const struct wl_request *q = ev->request;
	struct agt_comm *c = agt_comm_find(a, q->comm);
	char text[WL_TEXT_MAX];

	if (!c || c->session != s || !c->opened) {
		(void)snprintf(text, sizeof text, "communicator %u does not exist in this process",
			q->comm);
		agt_refuse_request(a, s, q, WIRE_INVALID_ARGUMENT, text);
		return;
	}
	if (c->state == AGT_COMM_LEAVING || (c->wait && q->type != WL_COMM_DESTROY)) {
		(void)snprintf(text, sizeof text,
			"%s is in progress on this communicator: one such call at a time",
			wait_name(c));
		agt_refuse_request(a, s, q, WIRE_INVALID_USAGE, text);
		return;
	}
	if (q->type == WL_COMM_CONNECT)
		comm_connect(a, c, q);
	else if (q->type == WL_COMM_DESTROY)
		comm_destroy(a, c, q);
	else
		agt_ballot_vote(a, c, q);
}

void agt_request(struct agt *a, const struct agt_event *ev)
{
	struct agt_session *s = session_find(a, ev->session);
	const struct wl_request *q = ev->request;

	if (!s || !q)
		return;
	switch (q->type) {
	case WL_COMM_CREATE:
		comm_create(a, s, q);
		break;
	case WL_COMM_ATTACH:
		agt_attach_request(a, s, q);
		break;
	case WL_COMM_CONNECT:
	case WL_COMM_DESTROY:
	case WL_VOTE:
		comm_request(a, s, ev);
		break;
	default:
		agt_refuse_request(
			a, s, q, WIRE_INVALID_ARGUMENT, "this agent does not know the request");
		break;
	}
}
