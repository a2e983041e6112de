/* SPDX-License-Identifier: MIT
 *
 * Runs: the connection to each master, and the engine that moves the run's data.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_limit.h"
#include "pcclagentd/ops/ops_internal.h"
#include "daemon/cc_channel.h"
#include "proto/wire_frame.h"

#define MAX_IN ((size_t)WIRE_FRAME_HDR + WIRE_FRAME_MAX)

struct run *op_run(struct ops *o, uint32_t id)
{
	struct run *r;

	HASH_FIND(hh, o->runs, &id, sizeof id, r);
	return r;
}

const struct cc_addr *op_run_master(const struct run *r)
{
	return &r->addr;
}

uint32_t op_run_attempt(struct ops *o, uint32_t id)
{
	const struct run *r = op_run(o, id);

	return r ? r->attempt : 0;
}

static const char *label(const struct run *r, char buf[80])
{
	char addr[CC_ADDR_STR_SIZE];

	snprintf(buf, 80, "master %s", cc_addr_str(&r->addr, addr));
	return buf;
}

static void tell_end(struct run *r, const char *text, bool foreign)
{
	struct agt_event ev = {
		.type = AGT_EV_MASTER_DOWN, .run = r->id, .foreign = foreign, .text = text};

	ev_post(r->o->base, &ev);
}

static void tell_down(struct run *r, const char *text)
{
	tell_end(r, text, false);
}

static void tell_code(struct run *r, uint32_t code, const char *text)
{
	struct agt_event ev = {
		.type = AGT_EV_MASTER_DOWN, .run = r->id, .code = code, .text = text};

	ev_post(r->o->base, &ev);
}

/* Reports to the core that the agent lacks a resource for the run. errno: the reason. `call`: the
 * call that has failed. */
static void tell_short(struct run *r, const char *what, const char *call)
{
	char text[WM_TEXT_MAX];

	tell_code(r, rep_shortage(what, call, text, sizeof text), text);
}

/* Reports to the core that the agent lacks a resource for the connection with the master. `limit`
 * names the resource. */
static void tell_no_connection(struct run *r, const char *limit)
{
	char addr[CC_ADDR_STR_SIZE], text[WM_TEXT_MAX];

	snprintf(text, sizeof text, "the agent cannot talk with the master at %s: %s",
		cc_addr_str(&r->addr, addr), limit);
	tell_code(r, WIRE_OUT_OF_MEMORY, text);
}

static void tell_unsent(struct run *r, int err)
{
	char limit[CC_LIMIT_TEXT];

	if (err == CC_ERR_NOMEM)
		tell_no_connection(r, cc_limit_text(ENOMEM, limit, sizeof limit));
	else
		tell_down(r, err == CC_ERR_LIMIT ? "the master does not read its messages"
						 : "sending to the master failed");
}

/* ---- the engine ---- */

static void on_engine(void *arg)
{
	struct run *r = arg;
	struct ops *o = r->o;
	uint32_t id = r->id;
	struct eng_event e;
	uint64_t count;

	if (read(r->event_fd, &count, sizeof count) < 0)
		cc_log(CC_LOG_DEBUG, "engine woke without an event");
	while (r && eng_next_event(r->eng, &e)) {
		if (e.type == ENG_LINK_BROKEN)
			net_link_broken(r->net, &e);
		else if (e.type == ENG_LINK_HEARD)
			net_link_heard(r->net, &e);
		else if (e.type == ENG_LINK_RATE)
			net_link_rate(r->net, &e);
		else
			op_xfer_event(r, &e);
		r = op_run(o, id);
	}
}

static int start_engine(struct run *r)
{
	int error;

	r->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->event_fd < 0)
		return CC_ERR_IO;
	r->event_watch = cc_watch_new(r->o->base->loop, r->event_fd, false, on_engine, r);
	r->eng = r->event_watch ? eng_new(r->event_fd) : NULL;
	if (r->eng) {
		eng_set_bounds(r->eng, &r->bounds);
		return 0;
	}
	error = errno;
	cc_watch_free(r->event_watch);
	r->event_watch = NULL;
	close(r->event_fd);
	r->event_fd = -1;
	errno = error;
	return CC_ERR_NOMEM;
}

/* ---- the master's connection ---- */

/* Closes the connection. The core gets no more events of it. The engine and its links stay. */
static void hang_up(struct run *r)
{
	r->attempt++;
	if (r->conn)
		cc_conn_close(r->conn);
	r->conn = NULL;
	cc_seal_free(r->seal);
	r->seal = NULL;
	r->up = false;
	r->why[0] = '\0';
}

/* Creates the engine if the run has an id and no engine. Returns false if that fails; then the
 * connection is closed. */
static bool has_engine(struct run *r)
{
	if (cc_id_is_zero(&r->run_id) || r->eng || start_engine(r) == 0) {
		net_run_ready(r->net, &r->run_id, r->eng);
		return true;
	}
	hang_up(r);
	tell_short(r, "the agent cannot serve another run", "pthread_create (clone3)");
	return false;
}

static int send_msg(struct run *r, const struct wm_msg *m, bool may_wait)
{
	uint8_t *buf;
	size_t len;
	int err = cc_channel_encode(r->seal, m, &buf, &len);

	if (err < 0)
		return err;
	err = (may_wait ? cc_conn_send_later : cc_conn_send)(r->conn, buf, len);
	free(buf);
	return err;
}

static void tell_taken(struct run *r)
{
	uint32_t us = cc_conn_round_trip_us(r->conn);

	ev_post(r->o->base,
		&(struct agt_event){.type = AGT_EV_MASTER_TAKEN,
			.run = r->id,
			.path_ms = us < CC_PACED_RTT_US ? 0 : CC_PACED_RTT_TRIPS * (us / 1000)});
}

static void on_connected(void *arg)
{
	struct wm_msg knock = {.type = WM_KNOCK,
		.u.knock = {.version_min = WM_VERSION_MIN, .version_max = WM_VERSION_MAX}};
	struct run *r = arg;
	int err;

	if (!has_engine(r))
		return;
	if (cc_conn_peer_addr(r->conn, &r->reached) < 0)
		r->reached = r->addr;
	net_run_set_reached(r->net, &r->reached);
	r->seal = cc_seal_new(false);
	if (!r->seal)
		rep_out_of_memory("keys");
	knock.u.knock.share = *cc_seal_share(r->seal);
	err = send_msg(r, &knock, false);
	if (err == 0) {
		tell_taken(r);
		return;
	}
	hang_up(r);
	tell_unsent(r, err);
}

/* Reports to the core that the master has answered. */
static void tell_up(struct run *r)
{
	struct agt_event ev = {.type = AGT_EV_MASTER_UP, .run = r->id};

	net_addresses_refresh(r->o->net); /* the hello follows */
	r->up = true;
	ev_post(r->o->base, &ev);
}

/* Returns 0, or an error with the reason in r->why. */
static int take_knock_ack(struct run *r, const struct wm_knock_ack *m)
{
	int err = cc_seal_agree(r->seal, &m->share);

	if (err == 0)
		tell_up(r);
	else
		snprintf(r->why, sizeof r->why,
			"the program at that address did not complete the key exchange");
	return err;
}

static void take_note(struct run *r, const struct wm_msg *m)
{
	if (m->type == WM_ROUND)
		r->round = m->u.round.round;
	else if (m->type == WM_COMMIT && m->u.commit.round == r->round)
		net_run_committed(r->net, r->round);
}

/* Hands a message to the core. */
static void feed_msg(struct run *r, const struct wm_msg *m)
{
	struct agt_event ev = {.type = AGT_EV_MASTER_MSG,
		.run = r->id,
		.msg = m,
		.path_ms = m->type == WM_HEARTBEAT ? cc_conn_path_ms(r->conn) : 0};
	struct ops *o = r->o;
	uint32_t id = r->id, attempt = r->attempt;

	take_note(r, m);
	ev_post(o->base, &ev);
	if (m->type != WM_HELLO_ACK)
		return;
	r = op_run(o, id);
	/* If the core has kept the connection, this agent and the master share this key. */
	if (r && r->conn && r->attempt == attempt)
		net_run_add_key(r->net, cc_seal_agent_key(r->seal));
}

static void take_times(struct run *r, const struct wm_hello_ack *ack)
{
	cc_conn_allow_silence(r->conn, ack->timeout_ms);
	r->bounds = ack->bounds;
	net_run_set_bounds(r->net, &r->bounds);
	if (r->ste)
		ste_set_bounds(r->ste, &r->bounds);
	if (r->eng)
		eng_set_bounds(r->eng, &r->bounds);
}

/* Returns 0, or an error with the reason in r->why. */
static int take_msg(struct run *r, const struct wm_msg *m)
{
	struct ops *o = r->o;
	uint32_t id = r->id, attempt = r->attempt;

	if (m->type == WM_KNOCK_ACK)
		return take_knock_ack(r, &m->u.knock_ack);
	if (m->type == WM_HELLO_ACK)
		take_times(r, &m->u.hello_ack);
	if (!r->up) { /* a refusal, without a knock_ack before it */
		tell_up(r);
		r = op_run(o, id);
	}
	if (r && r->conn && r->attempt == attempt)
		feed_msg(r, m);
	return 0;
}

/* Takes one frame from the start of `buf`. Returns its bytes, 0 if more bytes are needed, or an
 * error with the reason in r->why. */
static long take_frame(struct run *r, const uint8_t *buf, size_t len)
{
	const char *why = "";
	struct wm_msg msg;
	int n = cc_channel_peek(buf, len);
	int err;

	if (n == CC_ERR_AGAIN || (n >= 0 && len < WIRE_FRAME_HDR + (size_t)n))
		return 0;
	if (n == CC_ERR_VERSION) {
		snprintf(r->why, sizeof r->why,
			"the program at that address speaks framing version %u, this agent speaks "
			"version %u",
			(unsigned)(buf[4] | buf[5] << 8), WIRE_FRAME_VERSION);
		return n;
	}
	if (n < 0) {
		snprintf(r->why, sizeof r->why,
			"the program at that address does not speak the master's protocol (%s)",
			cc_err_str(n));
		return n;
	}
	err = cc_channel_decode(r->seal, buf, WIRE_FRAME_HDR + (size_t)n, &msg, &why);
	if (err == CC_ERR_NOMEM) {
		cc_limit_text(ENOMEM, r->why, sizeof r->why);
		return err;
	}
	if (err < 0) {
		snprintf(r->why, sizeof r->why, "malformed message: %s", why);
		return err;
	}
	err = take_msg(r, &msg);
	wire_master_clear(&msg);
	return err < 0 ? err : (long)WIRE_FRAME_HDR + n;
}

/* Takes only one frame per call, because the message in the frame may close the connection and free
 * the run. */
static long on_data(void *arg, const uint8_t *buf, size_t len)
{
	return take_frame(arg, buf, len);
}

static void on_closed(void *arg, int err, const char *text)
{
	struct run *r = arg;
	bool wrong = err == CC_ERR_PROTO || err == CC_ERR_LIMIT || err == CC_ERR_VERSION;
	char who[80], why[WM_TEXT_MAX];

	rep_copy_text(why, sizeof why, r->why[0] ? r->why : text);
	r->conn = NULL;
	cc_seal_free(r->seal);
	r->seal = NULL;
	r->up = false;
	r->why[0] = '\0';
	if (wrong)
		rep_complain(&r->o->base->report, CC_LOG_WARNING, "%s: %s", label(r, who), why);
	if (err == CC_ERR_NOMEM)
		tell_no_connection(r, why);
	else
		tell_end(r, why, wrong);
}

static const struct cc_conn_ops master_ops = {
	.on_connected = on_connected,
	.on_data = on_data,
	.on_closed = on_closed,
};

/* ---- life ---- */

static bool uses_link(void *arg, uint32_t link)
{
	return op_xfers_use_link(arg, link);
}

static uint32_t master_trip_us(void *arg)
{
	const struct run *r = arg;

	return r->conn ? cc_conn_round_trip_us(r->conn) : 0;
}

static const struct net_run_ops net_ops = {.uses_link = uses_link,
	.master_trip_us = master_trip_us,
	.eager_open = op_eager_in_open,
	.eager_close = op_eager_in_close};

static void destroy(struct run *r)
{
	struct ops *o = r->o;

	loc_comms_leave_engine(o->loc, r->eng);
	op_syncs_halt(r);
	HASH_DEL(o->runs, r);
	if (r->conn)
		cc_conn_close(r->conn);
	cc_seal_free(r->seal);
	net_run_free(r->net);
	op_eager_forget_all(r);
	op_feedback_drop_all(r);
	if (r->eng)
		eng_free(r->eng);
	cc_watch_free(r->event_watch);
	if (r->event_fd >= 0)
		close(r->event_fd);
	free(r);
}

static struct run *make(struct ops *o, uint32_t id, const struct cc_addr *addr)
{
	struct run *r = calloc(1, sizeof *r);

	if (!r)
		rep_out_of_memory("runs");
	*r = (struct run){.o = o, .id = id, .addr = *addr, .event_fd = -1, .state_fd = -1};
	cc_bounds_complete(&r->bounds);
	r->net = net_run_new(o->net, id, &net_ops, r);
	HASH_ADD(hh, o->runs, id, sizeof r->id, r);
	return r;
}

void op_run_open(struct ops *o, uint32_t id, const struct cc_addr *addr)
{
	struct run *r = op_run(o, id);

	if (!r)
		r = make(o, id, addr);
	r->closed = false;
	hang_up(r);
	r->addr = *addr;
	/* The core starts another attempt before the timeout of the connect. Segments are small in
	 * both directions: otherwise, on a path that loses large packets, this agent would fall
	 * silent and lose its peers. */
	r->conn = cc_conn_connect(o->base->loop, addr, o->base->cfg.connect_timeout_ms,
		CC_TCP_NARROW, &master_ops, r);
	if (!r->conn) {
		tell_short(r, "the agent cannot serve another run", "socket");
		return;
	}
	cc_conn_set_limits(r->conn, MAX_IN, (size_t)16 << 20);
}

void op_run_drop(struct ops *o, uint32_t id)
{
	struct run *r = op_run(o, id);

	if (r)
		hang_up(r);
}

/* Sends the hello with a proof of the agent's identity. Sends nothing if no keys were agreed: this
 * master has not answered the knock and will refuse the agent. */
static int send_hello(struct run *r, const struct wm_msg *m)
{
	struct wm_msg msg = *m;
	int err;

	if (!cc_seal_agreed(r->seal))
		return 0;
	msg.u.hello.identity = *cc_identity_share(r->o->base->identity);
	err = cc_seal_prove(r->seal, r->o->base->identity, &msg.u.hello.proof);
	return err < 0 ? err : send_msg(r, &msg, false);
}

void op_run_send(struct ops *o, uint32_t id, const struct wm_msg *m)
{
	struct run *r = op_run(o, id);
	/* A vote with a speculative start may wait: the report follows as soon as all operands have
	 * arrived, and one packet can contain vote and report. */
	bool may_wait = m->type == WM_OP_VOTE && m->u.op_vote.spec_seq;
	int err;

	if (!r || !r->conn)
		return;
	err = m->type == WM_HELLO ? send_hello(r, m) : send_msg(r, m, may_wait);
	if (err == 0 && m->type == WM_OP_VOTE)
		cc_loop_expect(o->base->loop);
	if (err == 0)
		return;
	hang_up(r);
	tell_unsent(r, err);
}

void op_run_close(struct ops *o, uint32_t id)
{
	struct run *r = op_run(o, id);

	if (!r)
		return;
	hang_up(r);
	net_run_close(r->net);
	r->closed = true;
	op_run_free_if_done(r);
}

void op_run_ready(struct ops *o, uint32_t id, const struct cc_id *run_id)
{
	struct run *r = op_run(o, id);

	if (!r)
		return;
	r->run_id = *run_id;
	/* The engine is not created earlier: a master that is never reached costs no threads. */
	(void)has_engine(r);
}

void op_run_free_if_done(struct run *r)
{
	if (r->closed && !r->xfers && !r->syncs)
		destroy(r);
}

/* The interval of checks while no operation is in progress. Then a vanished host is detected within
 * 15 seconds, or within three seconds after the next call. */
#define QUIET_LOOK_MS 1700u

/* Makes the engine check its streams from time to time. Without a master, an operation may have
 * started on some hosts only, and the other hosts take none of its data; so the engine has to know
 * whether the master is connected. */
static void look(struct run *r, uint64_t now)
{
	uint64_t every = BASE_MS(r->o->base->quiet ? QUIET_LOOK_MS : FLOW_LOOK_MS);

	/* A host that is alone has no streams. */
	if (!r->eng || !net_run_has_links(r->net) || now - r->looked_ns < every)
		return;
	r->looked_ns = now;
	eng_look(r->eng, r->up);
}

/* Closes the connections whose local address this host no longer has: they are dead in both
 * directions. */
static void leave_lost_address(struct run *r, struct net_lost_address *last)
{
	struct cc_addr here;

	net_run_leave_lost(r->net, last);
	if (!r->up || cc_conn_local_addr(r->conn, &here) < 0 || !net_address_is_lost(last, &here))
		return;
	hang_up(r);
	tell_down(r, last->text);
}

/* Checks the local addresses of all runs, as often as the engines check their streams. */
static void check_addresses(struct ops *o, uint64_t now)
{
	struct net_lost_address last = {.gone = false};
	struct run *r, *tmp;

	if (now - o->here_ns < BASE_MS(FLOW_LOOK_MS))
		return;
	o->here_ns = now;
	HASH_ITER (hh, o->runs, r, tmp) {
		leave_lost_address(r, &last);
	}
}

void op_runs_tick(struct ops *o, uint64_t now)
{
	struct run *r, *tmp;

	check_addresses(o, now);

	HASH_ITER (hh, o->runs, r, tmp) {
		net_run_tick(r->net, now);
		look(r, now);
		if (r->ste)
			ste_tick(r->ste);
	}
	op_eager_fed(o); /* a shim with outdated rings may have rung only the data doorbell */
}

void op_halt(struct ops *o)
{
	struct run *r, *tmp;

	HASH_ITER (hh, o->runs, r, tmp) {
		op_syncs_halt(r);
		if (op_xfers_halt(r))
			continue;
		/* The engine's threads still use the memory, so it cannot be freed. The agent ends
		 * now anyway. */
		cc_log(CC_LOG_ERR, "an engine does not release its transfers: the agent ends");
		_exit(EX_SOFTWARE);
	}
}

void op_runs_free(struct ops *o)
{
	struct run *r, *tmp;

	op_halt(o);
	HASH_ITER (hh, o->runs, r, tmp) {
		destroy(r);
	}
}
