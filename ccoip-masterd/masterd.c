/* SPDX-License-Identifier: MIT */
#include "ccoip-masterd/masterd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "ccoip-masterd/complaints.h"
#include "ccoip-masterd/journal.h"
#include "ccoip-masterd/masterd_internal.h"
#include "ccoip-masterd/solver.h"
#include "ccoip-masterd/sources.h"
#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_log.h"
#include "common/cc_loop.h"
#include "common/cc_plan.h"
#include "common/cc_seal.h"
#include "common/cc_sys.h"
#include "daemon/cc_channel.h"
#include "proto/wire_codes.h"
#include "proto/wire_frame.h"
#include "proto/wire_link.h"

#define TICK_MS 100u /* at most */
/* Longer than the longest pause between two attempts of an agent to connect. */
#define ADOPT_MS 600u
/* The master waits for this time before it evicts an agent: if a connection has broken, the master
 * knows it by then. */
#define EVICT_DELAY_MS 250
#define END_NS         1000000000u /* time for the last messages to be read */
/* Time for disconnected agents to come back and learn that the run has ended. */
#define REDIRECT_NS 2000000000u
#define MAX_FRAME   ((size_t)WIRE_FRAME_HDR + WIRE_FRAME_MAX)
#define MAX_HELLO   ((size_t)16 << 10) /* the longest message of an agent without members */
/* Limits of agents without members, because anybody can be such an agent: bytes queued for one of
 * them, bytes kept for all of them, and connections from one address without a hello. */
#define STRANGER_OUT       ((size_t)64 << 10)
#define STRANGERS_BUFFERED ((size_t)64 << 20)
#define UNGREETED_MAX      256u

/* One connection. The core learns of a connection when its first message arrives, so connections
 * that are not from agents do not concern the core. */
struct agent {
	struct masterd *m;
	struct cc_conn *conn;
	uint32_t id;
	struct cc_addr addr;
	uint64_t since_ns;
	struct source *source;
	struct agent *prev_s, *next_s; /* the silent connections of the same source */
	struct agent *prev_a, *next_a; /* the silent connections of all sources */
	struct agent *prev_p, *next_p; /* paused connections */
	bool paused;
	bool knocks; /* the knock is not answered yet */
	struct wm_knock knock;
	struct cc_seal *seal; /* NULL: no knock has arrived */
	struct cc_id agent;   /* the agent id in the hello; zero: no hello yet */
	bool known;           /* the core knows the connection */
	bool member;          /* the agent was sent a message that only agents with members get */
	bool resumes; /* its hello shows that it has state of the run, so its messages may be long
		       */
	const char *lost; /* why the agent is lost, until the core is told; or NULL */
	struct agent *prev_lost, *next_lost;
	UT_hash_handle hh;
};

struct masterd {
	struct masterd_config cfg;
	struct cc_loop *loop;
	struct ccm *core;
	struct ccm_actions actions;
	struct journal *journal;
	struct solver *solver;
	struct cc_listener *listeners[MASTERD_LISTEN_MAX];
	struct cc_timer *tick, *every;
	struct cc_watch *parent;
	struct cc_admin *admin;
	struct agent *agents, *lost;
	struct agent *silent; /* connections that the core does not know, the oldest one first */
	uint32_t n_knocks;    /* silent connections whose knocks are not answered yet */
	struct agent *paused; /* connections that wait until their source may speak again */
	struct source *sources;
	uint32_t last_id;
	uint64_t end_by_ns; /* 0: the master is not ending */
	struct complaints complaints;
	uint32_t n_strangers; /* connections of agents without members */
	bool stranger;    /* the present step handles a connection of an agent without members */
	bool member_gone; /* the agent that was forgotten last had members */
};

void masterd_config_init(struct masterd_config *cfg)
{
	*cfg = (struct masterd_config){
		.admin_fd = -1,
		.parent_fd = -1,
		.max_conns = 16384,
		.hello_timeout_ms = 10000,
		.max_out = (size_t)16 << 20,
		.max_buffered = STRANGERS_BUFFERED,
		.log_level = CC_LOG_INFO,
	};
}

static void write_line(struct masterd *m, bool stranger, uint32_t level, const char *text)
{
	if (stranger || m->stranger)
		complaints_line(&m->complaints, (int)level, text);
	else
		cc_log((int)level, "%s", text);
}

/* ---- connections ---- */

/* Takes `a` out of the lists of silent connections, because it sends its hello or is gone. */
static void end_silence(struct agent *a)
{
	DL_DELETE2(a->source->silent, a, prev_s, next_s);
	DL_DELETE2(a->m->silent, a, prev_a, next_a);
	a->source->n_silent--;
	a->m->n_knocks -= a->knocks;
	a->knocks = false;
}

static void end_pause(struct agent *a)
{
	if (a->paused)
		DL_DELETE2(a->m->paused, a, prev_p, next_p);
	a->paused = false;
}

static void forget(struct agent *a)
{
	end_pause(a);
	if (a->lost)
		DL_DELETE2(a->m->lost, a, prev_lost, next_lost);
	HASH_DEL(a->m->agents, a);
	if (!a->known)
		end_silence(a);
	a->m->n_strangers -= !a->member;
	a->source->n_strangers -= !a->member;
	a->source->n_conns--;
	a->m->member_gone = a->member;
	cc_seal_free(a->seal);
	free(a);
}

static void hang_up(struct agent *a)
{
	cc_conn_close(a->conn);
	forget(a);
}

/* Marks `a` as lost. The core is told later, because it may be in the middle of a decision. */
static void lose(struct agent *a, const char *why)
{
	if (a->lost)
		return;
	a->lost = why;
	DL_APPEND2(a->m->lost, a, prev_lost, next_lost);
}

/* ---- the core ---- */

static struct agent *agent_find(const struct masterd *m, uint32_t id)
{
	struct agent *a;

	HASH_FIND(hh, m->agents, &id, sizeof id, a);
	return a;
}

/* Puts a key into e. The key proves to the agent at e that this master sends `a` there. */
static void fill_key(struct masterd *m, const struct agent *a, struct wm_endpoint *e,
	uint16_t service, uint64_t no)
{
	const struct agent *to = agent_find(m, e->conn);

	if (!to || !to->seal)
		return; /* that agent is gone */
	e->key_no = no;
	cc_link_key(cc_seal_agent_key(to->seal), service, no, &a->agent, &e->agent, &e->key);
}

static void fill_ring(
	struct masterd *m, const struct agent *a, const struct wm_round *r, struct wm_ring *ring)
{
	if (ring->hosts > 1)
		fill_key(m, a, &ring->next, WLK_P2P, r->round);
	for (uint32_t i = 0; i < ring->n_others; i++)
		fill_key(m, a, &ring->others[i], WLK_P2P, r->round);
}

static void fill_keys(struct masterd *m, const struct agent *a, struct wm_msg *msg)
{
	struct wm_round *r = &msg->u.round;
	struct wm_op_start *o = &msg->u.op_start;

	struct wm_measure *x = &msg->u.measure;

	if (msg->type == WM_ROUND)
		for (uint32_t i = 0; i < r->n_rings; i++)
			fill_ring(m, a, r, &r->rings[i]);
	if (msg->type == WM_MEASURE)
		for (uint32_t i = 0; i < x->n_to; i++)
			fill_key(m, a, &x->to[i], WLK_BENCHMARK, x->number);
	if (msg->type != WM_OP_START)
		return;
	for (uint32_t i = 0; i < o->sync.n_sources; i++)
		fill_key(m, a, &o->sync.sources[i].endpoint, WLK_SHARED_STATE, o->seq);
	for (uint32_t i = 0; i < o->sync.n_others; i++)
		fill_key(m, a, &o->sync.others[i].endpoint, WLK_SHARED_STATE, o->seq);
}

static void send_frame(struct agent *a, int err, const uint8_t *frame, size_t len)
{
	if (err == 0)
		err = cc_conn_send(a->conn, frame, len);
	if (err == CC_ERR_LIMIT)
		lose(a, "it does not read its messages");
	else if (err < 0)
		lose(a, cc_err_str(err));
}

/* Notes that an agent has members: a round admits or connects its peers, and the other messages are
 * only for accepted peers. */
static void note_member(struct agent *a, enum wm_type type)
{
	if (a->member || (type != WM_ROUND && type != WM_COMMIT && type != WM_VIEW &&
				 type != WM_OP_START && type != WM_OP_DONE))
		return;
	a->member = true;
	a->m->n_strangers--;
	a->source->n_strangers--;
	cc_conn_set_limits(a->conn, MAX_FRAME, a->m->cfg.max_out);
}

static void send_secret(struct masterd *m, struct agent *a, struct wm_msg *msg)
{
	uint8_t *frame = NULL;
	size_t len = 0;
	int err;

	fill_keys(m, a, msg);
	err = cc_channel_encode(a->seal, msg, &frame, &len);
	send_frame(a, err, frame, len);
	free(frame);
}

/* Sends a message to all its receivers. It is encoded once for all of them, unless it has
 * secrets. */
static void send_message(struct masterd *m, struct ccm_action *x)
{
	const uint32_t *conns = m->actions.conns + x->first_conn;
	bool secret = wire_master_is_secret(&x->msg);
	uint8_t *frame = NULL;
	struct agent *a;
	size_t len = 0;
	int unsent = secret ? 0 : wire_master_encode(&x->msg, &frame, &len);

	for (uint32_t i = 0; i < x->n_conns; i++) {
		a = agent_find(m, conns[i]);
		if (!a || a->lost)
			continue;
		note_member(a, x->msg.type);
		if (secret)
			send_secret(m, a, &x->msg);
		else
			send_frame(a, unsent, frame, len);
	}
	free(frame);
}

static void carry_out(struct masterd *m, struct ccm_action *x)
{
	struct agent *a;

	if (x->type == CCM_ACT_LOG) {
		write_line(m, x->stranger, x->level, x->text);
		return;
	}
	if (x->type == CCM_ACT_JOURNAL) {
		journal_write(m->journal, &x->record);
		return;
	}
	if (x->type == CCM_ACT_SOLVE) {
		solver_post(m->solver, &x->problem);
		return;
	}
	if (x->type == CCM_ACT_SEND) {
		send_message(m, x);
		return;
	}
	a = agent_find(m, x->conn);
	if (a)
		hang_up(a);
}

static void step_once(struct masterd *m, const struct ccm_event *ev)
{
	const struct agent *from = agent_find(m, ev->conn);

	ccm_step(m->core, ev, cc_now_ns(), &m->actions);
	m->stranger = ev->conn && !(from ? from->member : m->member_gone);
	for (size_t i = 0; i < m->actions.n; i++)
		carry_out(m, &m->actions.v[i]);
	ccm_actions_clear(&m->actions);
}

/* Passes an event to the core. Agents may be gone afterwards, including the agent that caused the
 * event. */
static void step(struct masterd *m, const struct ccm_event *ev)
{
	step_once(m, ev);
	while (m->lost) {
		struct agent *a = m->lost;
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses track of the list */
		bool known = a->known;
		struct ccm_event closed = {
			.type = CCM_EV_CLOSED, .conn = a->id, .addr = a->addr, .text = a->lost};

		hang_up(a);
		if (known)
			step_once(m, &closed);
	}
}

static void on_solved(void *arg, const struct ccm_solution *x)
{
	step(arg, &(struct ccm_event){.type = CCM_EV_SOLVED, .solution = x});
}

static void step_closed(struct masterd *m, uint32_t id, const char *text)
{
	step(m, &(struct ccm_event){.type = CCM_EV_CLOSED, .conn = id, .text = text});
}

/* Closes a connection without a refusal, so that the agent may connect again. */
static void disconnect(struct agent *a, const char *why)
{
	struct masterd *m = a->m;
	uint32_t id = a->id;
	bool known = a->known;

	hang_up(a);
	if (known)
		step_closed(m, id, why);
}

/* ---- refusing ---- */

__attribute__((format(printf, 3, 4))) static void refuse(
	struct agent *a, uint32_t code, const char *fmt, ...)
{
	struct wm_msg msg = {.type = WM_REFUSE};
	struct masterd *m = a->m;
	uint32_t id = a->id;
	bool known = a->known;
	uint8_t *frame;
	size_t len;
	va_list ap;

	msg.u.refuse.version_min = WM_VERSION_MIN;
	msg.u.refuse.version_max = WM_VERSION_MAX;
	msg.u.refuse.code = code;
	va_start(ap, fmt);
	vsnprintf(msg.u.refuse.text, sizeof msg.u.refuse.text, fmt, ap);
	va_end(ap);
	complain(&m->complaints, &a->addr, msg.u.refuse.text);
	if (wire_master_encode(&msg, &frame, &len) == 0) {
		/* Best effort: the connection is closed in any case. */
		(void)cc_conn_send(a->conn, frame, len);
		free(frame);
	}
	hang_up(a);
	if (known)
		step(m, &(struct ccm_event){.type = CCM_EV_CLOSED,
				.conn = id,
				.text = msg.u.refuse.text,
				.refused = true});
}

/* Refuses a connection because a limit is reached. The other end is told only the limit; the log
 * also names process and host. */
static void on_shortage(void *arg, int fd, int error, const char *limit)
{
	struct wm_msg msg = {.type = WM_REFUSE};
	struct wm_refuse *r = &msg.u.refuse;
	uint8_t *frame;
	size_t len;

	(void)arg;
	(void)limit;
	r->version_min = WM_VERSION_MIN;
	r->version_max = WM_VERSION_MAX;
	r->code = WIRE_OUT_OF_MEMORY;
	cc_limit_brief(error, r->text, sizeof r->text);
	if (wire_master_encode(&msg, &frame, &len) < 0) {
		close(fd);
		return;
	}
	cc_reject(fd, frame, len);
	free(frame);
}

static void refuse_frame(struct agent *a, int err, const uint8_t *buf, size_t len)
{
	switch (err) {
	case CC_ERR_VERSION:
		refuse(a, WIRE_VERSION_MISMATCH,
			"framing version %u is not spoken here: this master speaks version %u",
			len >= 6 ? (unsigned)(buf[4] | buf[5] << 8) : 0, WIRE_FRAME_VERSION);
		break;
	case CC_ERR_LIMIT:
		refuse(a, WIRE_MASTER_CONNECTION_FAILED,
			"malformed frame: longer than the limit of %u bytes", WIRE_FRAME_MAX);
		break;
	default:
		refuse(a, WIRE_MASTER_CONNECTION_FAILED,
			"malformed frame: this port is for agents, and no agent sends these bytes");
	}
}

/* ---- input ---- */

static bool is_local(const struct agent *a)
{
	struct cc_addr here;

	if (cc_conn_local_addr(a->conn, &here) < 0)
		return false;
	here.port = a->addr.port;
	return cc_addr_is_loopback(&a->addr) || cc_addr_eq(&here, &a->addr);
}

static size_t stranger_out(const struct masterd *m)
{
	return m->cfg.max_out < STRANGER_OUT ? m->cfg.max_out : STRANGER_OUT;
}

static void greet_core(struct agent *a)
{
	end_silence(a);
	a->known = true;
	cc_conn_set_limits(a->conn, MAX_FRAME, stranger_out(a->m));
	step(a->m, &(struct ccm_event){.type = CCM_EV_OPEN,
			   .conn = a->id,
			   .addr = a->addr,
			   .local = is_local(a),
			   .path_ms = cc_conn_path_ms(a->conn)});
}

/* Answers a knock. Returns false if the agent was refused. */
static bool answer_knock(struct agent *a, const struct wm_knock *k)
{
	struct wm_msg msg = {.type = WM_KNOCK_ACK};
	uint8_t *frame;
	size_t len;
	int err;

	if (!a->seal)
		a->seal = cc_seal_new(true);
	err = a->seal ? cc_seal_agree(a->seal, &k->share) : CC_ERR_NOMEM;
	if (err == 0)
		msg.u.knock_ack.share = *cc_seal_share(a->seal);
	if (err == 0)
		err = cc_channel_encode(a->seal, &msg, &frame, &len);
	if (err == 0) {
		err = cc_conn_send(a->conn, frame, len);
		free(frame);
	}
	if (err == 0)
		return true;
	refuse(a, WIRE_MASTER_CONNECTION_FAILED, "its knock cannot be answered: %s",
		cc_err_str(err));
	return false;
}

/* Takes a knock. The answer costs work, so the answer waits if many knocks come from one address.
 * Returns false if the agent was refused. */
static bool take_knock(struct agent *a, const struct wm_knock *k)
{
	if (k->version_min > WM_VERSION_MAX || k->version_max < WM_VERSION_MIN) {
		refuse(a, WIRE_VERSION_MISMATCH,
			"protocol versions do not overlap: agent speaks %u to %u, this master %u "
			"to %u",
			k->version_min, k->version_max, WM_VERSION_MIN, WM_VERSION_MAX);
		return false;
	}
	if (a->knocks) {
		refuse(a, WIRE_MASTER_CONNECTION_FAILED, "a second knock on one connection");
		return false;
	}
	if (a->known || source_may_knock(a->source, cc_now_ns()))
		return answer_knock(a, k);
	a->knocks = true;
	a->knock = *k;
	a->m->n_knocks++;
	return true;
}

static void answer_knocks(struct masterd *m, uint64_t now)
{
	struct agent *a, *tmp;

	if (m->n_knocks == 0)
		return;
	DL_FOREACH_SAFE2 (m->silent, a, tmp, next_a) {
		if (!a->knocks || !source_may_knock(a->source, now))
			continue;
		a->knocks = false;
		m->n_knocks--;
		(void)answer_knock(a, &a->knock);
	}
}

/* Checks that the agent owns its agent id. Returns false if it was refused. */
static bool believe(struct agent *a, const struct wm_hello *h)
{
	struct cc_id id;
	char brief[CC_ID_SHORT_SIZE];

	cc_seal_id_of(&h->identity, &id);
	if (cc_id_eq(&id, &h->agent) && cc_seal_is_proven(a->seal, &h->identity, &h->proof)) {
		a->agent = h->agent;
		a->resumes = !cc_id_is_zero(&h->run_key);
		return true;
	}
	refuse(a, WIRE_MASTER_CONNECTION_FAILED, "it does not prove that it is agent %s",
		cc_id_short(&h->agent, brief));
	return false;
}

/* Handles a message before the core learns of it. Returns false if the agent was refused. */
static bool take_greeting(struct agent *a, const struct wm_msg *msg)
{
	if (msg->type == WM_KNOCK)
		return take_knock(a, &msg->u.knock);
	if (a->known || !wire_master_is_secret(msg))
		return true; /* the core refuses an agent without a hello */
	return msg->type != WM_HELLO || believe(a, &msg->u.hello);
}

/* Handles one message. Returns false if the agent is gone afterwards. */
static bool take_message(struct agent *a, const uint8_t *frame, size_t len)
{
	struct masterd *m = a->m;
	uint32_t id = a->id;
	const char *why = "";
	struct wm_msg msg;
	int err = cc_channel_decode(a->seal, frame, len, &msg, &why);

	/* This is no fault of the agent. It connects again and repeats the message. */
	if (err == CC_ERR_NOMEM) {
		errno = ENOMEM;
		cc_limit_log("no memory for a message of an agent");
		disconnect(a, "the master has no memory for its message");
		return false;
	}
	if (err < 0) {
		refuse(a,
			err == CC_ERR_VERSION ? WIRE_VERSION_MISMATCH
					      : WIRE_MASTER_CONNECTION_FAILED,
			"malformed message: %s", *why ? why : cc_err_str(err));
		return false;
	}
	if (!take_greeting(a, &msg)) {
		wire_master_clear(&msg);
		return false;
	}
	if (msg.type == WM_KNOCK)
		return true;
	if (!a->known)
		greet_core(a);
	if (msg.type == WM_OP_VOTE || msg.type == WM_OP_REPORT) /* more of these probably follow */
		cc_loop_expect(m->loop);
	step(m, &(struct ccm_event){.type = CCM_EV_MSG,
			.conn = id,
			.msg = &msg,
			.path_ms = msg.type == WM_HEARTBEAT ? cc_conn_path_ms(a->conn) : 0});
	wire_master_clear(&msg);
	return agent_find(m, id) != NULL;
}

/* May this connection send another message? Each message of an agent without members takes time in
 * the loop, and members wait meanwhile. */
static bool may_speak(struct agent *a)
{
	if (a->member || source_may_speak(a->source, cc_now_ns()))
		return true;
	a->paused = true;
	/* The connection goes to the front: an agent that sends little continues before an agent
	 * that has used up the ration of its address. */
	DL_PREPEND2(a->m->paused, a, prev_p, next_p);
	cc_conn_pause(a->conn);
	return false;
}

/* Ends all pauses. Connections that may not send yet are paused again. */
static void end_pauses(struct masterd *m)
{
	struct agent *a, *tmp;

	DL_FOREACH_SAFE2 (m->paused, a, tmp, next_p) {
		end_pause(a);
		cc_conn_go_on(a->conn);
	}
}

static long on_data(void *arg, const uint8_t *buf, size_t len)
{
	struct agent *a = arg;
	size_t at = 0;

	for (;;) {
		int payload = cc_channel_peek(buf + at, len - at);

		if (payload == CC_ERR_AGAIN)
			break;
		if (payload < 0) {
			refuse_frame(a, payload, buf + at, len - at);
			break;
		}
		if ((size_t)payload > MAX_HELLO && !a->member && !a->resumes) {
			refuse(a, WIRE_MASTER_CONNECTION_FAILED,
				"malformed frame: %d bytes are too many for a%s", payload,
				a->known ? "n agent without members" : " hello");
			break;
		}
		if (len - at < WIRE_FRAME_HDR + (size_t)payload)
			break;
		if (!may_speak(a) || !take_message(a, buf + at, WIRE_FRAME_HDR + (size_t)payload))
			break;
		at += WIRE_FRAME_HDR + (size_t)payload;
	}
	return (long)at;
}

static void on_closed(void *arg, int err, const char *text)
{
	struct agent *a = arg;
	struct masterd *m = a->m;
	uint32_t id = a->id;
	bool known = a->known;

	(void)err;
	forget(a);
	if (known)
		step_closed(m, id, text);
}

static const struct cc_conn_ops conn_ops = {.on_data = on_data, .on_closed = on_closed};

static uint32_t new_id(struct masterd *m)
{
	do {
		m->last_id++;
	} while (m->last_id == 0 || agent_find(m, m->last_id));
	return m->last_id;
}

/* Closes a connection if there are too many, from this address or in all. Chooses the oldest
 * connection without a hello, because honest agents send their hello at once. An eighth of all
 * connections is reserved for members. The agents without members at one address get at most three
 * quarters of all connections. */
static void make_room(struct masterd *m, struct agent *a)
{
	const struct source *s = a->source;
	uint32_t max = m->cfg.max_conns;

	if (s->n_silent > UNGREETED_MAX)
		refuse(s->silent, WIRE_MASTER_CONNECTION_FAILED,
			"too many connections from this address have sent no hello");
	else if (m->n_strangers > max - max / 8 || HASH_COUNT(m->agents) > max)
		refuse(m->silent, WIRE_MASTER_CONNECTION_FAILED,
			"the master has %u connections, its limit: connections without a hello are "
			"closed",
			max);
	else if (s->n_strangers > max - max / 4)
		refuse(s->silent, WIRE_MASTER_CONNECTION_FAILED,
			"agents without members have %u connections from this address, the limit",
			max - max / 4);
}

static void on_accept(void *arg, int fd)
{
	struct masterd *m = arg;
	struct agent *a = calloc(1, sizeof *a);

	if (!a) {
		close(fd);
		return;
	}
	a->m = m;
	a->conn = cc_conn_new(m->loop, fd, &conn_ops, a);
	if (!a->conn) {
		free(a);
		return;
	}
	cc_conn_allow_silence(a->conn, m->cfg.host_timeout_ms);
	/* The call fails if the connection is gone. The loop reports the end of the connection
	 * later. */
	(void)cc_conn_peer_addr(a->conn, &a->addr);
	cc_conn_set_limits(a->conn, WIRE_FRAME_HDR + MAX_HELLO, stranger_out(m));
	a->since_ns = cc_now_ns();
	a->source = source_get(&m->sources, &a->addr, a->since_ns);
	if (!a->source) {
		cc_conn_close(a->conn);
		free(a);
		return;
	}
	m->n_strangers++;
	a->source->n_conns++;
	a->source->n_strangers++;
	a->source->n_silent++;
	DL_APPEND2(a->source->silent, a, prev_s, next_s);
	DL_APPEND2(m->silent, a, prev_a, next_a);
	a->id = new_id(m);
	HASH_ADD(hh, m->agents, id, sizeof a->id, a);
	make_room(m, a);
}

/* ---- time ---- */

static void drop_silent(struct masterd *m, uint64_t now)
{
	uint64_t limit = (uint64_t)m->cfg.hello_timeout_ms * 1000000u;
	struct agent *a, *tmp;

	/* The list is in the order of arrival. No peers are lost, because a connection without a
	 * hello has no members. */
	DL_FOREACH_SAFE2 (m->silent, a, tmp, next_a) {
		if (now - a->since_ns <= limit)
			break;
		refuse(a, WIRE_MASTER_CONNECTION_FAILED, "no hello came within %u ms",
			m->cfg.hello_timeout_ms);
	}
}

/* Limits the data of agents without members. If there is too much, closes the connections of agents
 * that have more than their fair share, in the order of arrival, until the data is down to half of
 * the limit. */
static void bound_strangers(struct masterd *m)
{
	size_t buffered = 0, fair = m->cfg.max_buffered / 2 / (m->n_strangers + 1);
	struct agent *a;

	for (a = m->agents; a; a = a->hh.next)
		buffered += a->member ? 0 : cc_conn_buffered(a->conn);
	if (buffered <= m->cfg.max_buffered)
		return;
	for (a = m->agents; a && buffered > m->cfg.max_buffered / 2; a = a->hh.next) {
		if (a->member || cc_conn_buffered(a->conn) <= fair)
			continue;
		buffered -= cc_conn_buffered(a->conn);
		lose(a, "data of agents without members uses too much memory");
	}
}

static bool members_are_disconnected(const struct masterd *m)
{
	struct ccm_status s;

	ccm_get_status(m->core, &s);
	return s.disconnected > 0;
}

static void on_tick(void *arg)
{
	struct masterd *m = arg;
	uint64_t now = cc_now_ns();

	if (m->end_by_ns) {
		if ((cc_loop_is_flushed(m->loop) && !members_are_disconnected(m)) ||
			now >= m->end_by_ns)
			cc_loop_stop(m->loop);
		return;
	}
	drop_silent(m, now);
	answer_knocks(m, now);
	end_pauses(m);
	sources_tick(&m->sources, now);
	bound_strangers(m);
	complaints_tick(&m->complaints, now);
	journal_tick(m->journal, now);
	step(m, &(struct ccm_event){.type = CCM_EV_TICK});
}

static void on_parent(void *arg)
{
	struct masterd *m = arg;
	char buf[64];

	if (read(m->cfg.parent_fd, buf, sizeof buf) > 0)
		masterd_end(m, "the master was told to end");
	else if (!m->end_by_ns)
		masterd_stop(m, "the program that started it is gone");
}

/* ---- start and end ---- */

static int start_listening(struct masterd *m)
{
	for (uint32_t i = 0; i < m->cfg.n_listen; i++) {
		m->listeners[i] = cc_listener_new(m->loop, m->cfg.listen_fds[i], on_accept, m);
		m->cfg.listen_fds[i] = -1;
		if (!m->listeners[i] || cc_listener_on_shortage(m->listeners[i], on_shortage) < 0)
			return CC_ERR_IO;
	}
	if (m->cfg.admin_fd >= 0) {
		m->admin = masterd_admin_new(m, m->loop, m->cfg.admin_fd);
		m->cfg.admin_fd = -1;
		if (!m->admin)
			return CC_ERR_NOMEM;
	}
	if (m->cfg.parent_fd >= 0) {
		m->parent = cc_watch_new(m->loop, m->cfg.parent_fd, false, on_parent, m);
		if (!m->parent) {
			cc_log(CC_LOG_ERR,
				"descriptor %d cannot be watched: it must be a pipe or "
				"a socket",
				m->cfg.parent_fd);
			return CC_ERR_INVAL;
		}
	}
	return 0;
}

/* Returns a count that no earlier master has reached. */
static uint64_t first_number(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ((uint64_t)ts.tv_sec << 20) + ((uint64_t)ts.tv_nsec << 20) / 1000000000u;
}

static void start_core(struct masterd *m)
{
	struct ccm_config cfg = {
		.segment_max = (uint32_t)CC_PLAN_SEGMENT_MAX,
		.timeout_ms = m->cfg.host_timeout_ms,
		.agent_lease_ms = m->cfg.agent_lease_ms,
		.recovery_ms = m->cfg.recovery_ms,
		.bounds = m->cfg.bounds,
		.evict_delay_ms = EVICT_DELAY_MS,
		/* A master that belongs to a program is not meant to take over another run. */
		.adopt_ms = m->cfg.parent_fd < 0 ? ADOPT_MS : 0,
		.first_number = first_number(),
		.journal = m->cfg.state_dir != NULL,
		.log_level = m->cfg.log_level,
		.algorithm = (enum ccm_algorithm)m->cfg.algorithm,
		.benchmark_ms = m->cfg.benchmark_ms,
	};

	cc_random_id(&cfg.run);
	cc_random_id(&cfg.run_key);
	m->core = ccm_new(&cfg);
}

/* Opens the journal if the master has one. Returns false after a line in the log. */
static bool start_journal(struct masterd *m, int *exit_code)
{
	if (!m->cfg.state_dir)
		return true;
	m->journal = journal_open(m->cfg.state_dir, m->core, exit_code);
	m->cfg.state_dir = NULL;
	return m->journal != NULL;
}

static void close_fds(const struct masterd_config *cfg)
{
	for (uint32_t i = 0; i < cfg->n_listen; i++)
		if (cfg->listen_fds[i] >= 0)
			close(cfg->listen_fds[i]);
	if (cfg->admin_fd >= 0)
		close(cfg->admin_fd);
	if (cfg->parent_fd >= 0)
		close(cfg->parent_fd);
}

static uint32_t tick_ms(const struct masterd *m)
{
	uint32_t most = ccm_tick_ms(m->core);

	return most < TICK_MS ? most : TICK_MS;
}

struct masterd *masterd_new(const struct masterd_config *cfg, int *exit_code)
{
	struct masterd *m = calloc(1, sizeof *m);

	if (!m) {
		close_fds(cfg);
		goto err_limit;
	}
	m->cfg = *cfg;
	m->loop = cc_loop_new();
	if (!m->loop)
		goto err_limit;
	start_core(m);
	if (!start_journal(m, exit_code))
		goto err;
	m->solver = solver_new(m->loop, on_solved, m);
	if (!m->solver || start_listening(m) < 0)
		goto err_limit;
	complaints_init(&m->complaints);
	m->tick = cc_timer_new(m->loop, tick_ms(m), on_tick, m);
	if (!m->tick)
		goto err_limit;
	return m;
err_limit:
	*exit_code = EX_OSERR;
	cc_limit_log("the master cannot start");
err:
	masterd_free(m);
	return NULL;
}

int masterd_run(struct masterd *m)
{
	on_tick(m); /* the first tick restores the run, so that operators can look at it */
	return cc_loop_run(m->loop);
}

static void stop_listening(struct masterd *m)
{
	for (uint32_t i = 0; i < m->cfg.n_listen; i++) {
		cc_listener_free(m->listeners[i]);
		m->listeners[i] = NULL;
	}
}

void masterd_stop(struct masterd *m, const char *why)
{
	cc_log(CC_LOG_NOTICE, "ending: %s", why);
	cc_loop_stop(m->loop);
}

void masterd_end(struct masterd *m, const char *why)
{
	if (m->end_by_ns)
		return;
	cc_log(CC_LOG_NOTICE, "ending the run and the master: %s", why);
	step(m, &(struct ccm_event){.type = CCM_EV_END, .text = why});
	m->end_by_ns = cc_now_ns() + END_NS;
	if (members_are_disconnected(m))
		m->end_by_ns += REDIRECT_NS - END_NS;
	else
		stop_listening(m);
}

void masterd_reset(struct masterd *m)
{
	cc_log(CC_LOG_NOTICE, "an operator resets the run");
	step(m, &(struct ccm_event){.type = CCM_EV_RESET,
			.text = "an operator has reset the run at its master: connect again"});
}

void masterd_measure(struct masterd *m)
{
	cc_log(CC_LOG_NOTICE, "an operator wants all links to be measured again: the next "
			      "pcclOptimizeTopology does this");
	step(m, &(struct ccm_event){.type = CCM_EV_MEASURE});
}

void masterd_free(struct masterd *m)
{
	struct agent *a, *tmp;

	if (!m)
		return;
	for (uint32_t i = 0; i < m->cfg.n_listen; i++)
		cc_listener_free(m->listeners[i]);
	HASH_ITER (hh, m->agents, a, tmp)
		hang_up(a);
	solver_free(m->solver);
	sources_free(&m->sources);
	cc_admin_free(m->admin);
	cc_watch_free(m->parent);
	cc_timer_free(m->every);
	cc_timer_free(m->tick);
	ccm_actions_free(&m->actions);
	if (m->core)
		ccm_free(m->core);
	journal_close(m->journal);
	cc_loop_free(m->loop);
	close_fds(&m->cfg);
	free(m);
}

int masterd_on_signal(struct masterd *m, int signo, void (*fn)(void *arg, int signo), void *arg)
{
	return cc_loop_signal(m->loop, signo, fn, arg);
}

int masterd_every(struct masterd *m, uint32_t interval_ms, void (*fn)(void *arg), void *arg)
{
	cc_timer_free(m->every);
	m->every = cc_timer_new(m->loop, interval_ms, fn, arg);
	return m->every ? 0 : CC_ERR_NOMEM;
}

void masterd_get_stats(const struct masterd *m, struct masterd_stats *ret)
{
	*ret = (struct masterd_stats){
		.conns = HASH_COUNT(m->agents), .refused = m->complaints.refused};
}

const struct cc_admin *masterd_admin(const struct masterd *m)
{
	return m->admin;
}

const struct ccm *masterd_core(const struct masterd *m)
{
	return m->core;
}
