/* SPDX-License-Identifier: MIT
 *
 * Processes' connections. Each packet is one message. Replies are written to the socket at once. If
 * the socket's buffer is full, replies wait in the session's outbox, and requests are not read
 * meanwhile.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_limit.h"
#include "common/cc_shm.h"
#include "pcclagentd/local/loc_internal.h"
#include "pcclagentd/local/packet.h"

#define PACKETS_PER_TURN 32u
#define SESSIONS_MAX     8192u
/* The longest time from accepting a connection to its good hello. */
#define HELLO_NS BASE_MS(5000)
/* Each tick checks whether this many processes are stopped, one after the other. A check takes some
 * microseconds, so all take less than 1 % of a CPU. */
#define LOOKS_PER_TICK 64u
/* While the agent is quiet, no peer waits for a process. So checks are rare, but each tick can
 * check more processes. */
#define QUIET_LOOKS_PER_TICK 256u
#define QUIET_LOOK_NS        BASE_MS(1700) /* every fourth tick */

struct session *loc_session_find(const struct loc *loc, uint32_t id)
{
	struct session *s;

	HASH_FIND(hh, loc->sessions, &id, sizeof id, s);
	return s;
}

static const char *label(const struct session *s, char buf[128])
{
	snprintf(buf, 128, "session %" PRIu32 " (%s, pid %" PRIu32 ", uid %" PRIu32 ")", s->id,
		s->name[0] ? s->name : "no hello yet", s->process.pid, s->uid);
	return buf;
}

/* ---- closing ---- */

static void destroy(struct loc *loc, struct session *s)
{
	struct account *a = loc_account_get(loc, s->uid);

	HASH_DEL(loc->sessions, s);
	cc_watch_free(s->watch);
	cc_watch_free(s->room_watch);
	cc_watch_free(s->pid_watch);
	loc_outbox_clear(&s->outbox);
	loc_process_close(&s->process);
	loc_beat_close(&s->beat);
	close(s->fd);
	a->sessions--;
	loc_account_put(loc, a);
	loc->last_session_ns = cc_now_ns();
	free(s);
}

static void close_session(struct loc *loc, struct session *s)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_CLOSED, .session = s->id};
	bool greeted = s->greeted;

	loc_region_session_closed(loc, s);
	destroy(loc, s);
	if (greeted)
		ev_post(loc->base, &ev);
}

void loc_session_drop(struct loc *loc, uint32_t session, uint32_t code, const char *fmt, ...)
{
	struct session *s = loc_session_find(loc, session);
	struct wl_reply bye = {.code = code};
	char who[128];
	va_list ap;

	if (!s)
		return;
	va_start(ap, fmt);
	vsnprintf(bye.text, sizeof bye.text, fmt, ap);
	va_end(ap);
	rep_complain(&loc->base->report, CC_LOG_WARNING, "%s closed: %s", label(s, who), bye.text);
	cc_discard_input(s->fd);
	/* A process that does not read needs no goodbye. */
	(void)loc_packet_send(s->fd, &bye, NULL, 0);
	close_session(loc, s);
}

/* Closes the session because a system call for it has failed, with errno. */
static void drop_short(struct loc *loc, uint32_t session, const char *what, const char *call)
{
	char text[WL_TEXT_MAX];
	uint32_t code = rep_shortage(what, call, text, sizeof text);

	loc_session_drop(loc, session, code, "%s", text);
}

static void drop_unsent(struct loc *loc, uint32_t session, int err)
{
	if (err == CC_ERR_LIMIT)
		loc_session_drop(loc, session, WIRE_INVALID_USAGE,
			"it does not read its replies: %u of them wait", OUTBOX_MAX);
	else if (err == CC_ERR_IO || err == CC_ERR_NOMEM)
		drop_short(loc, session, "the agent cannot send a reply", "sendmsg");
	else if (err < 0 && err != CC_ERR_EOF)
		loc_session_drop(loc, session, WIRE_INTERNAL_ERROR, "sending a reply failed: %s",
			cc_err_str(err));
}

static void on_readable(void *arg);

/* Sends replies that wait; the process has read some of its replies. */
static void on_room(void *arg)
{
	struct session *s = arg;
	int err = loc_outbox_flush(&s->outbox, s->fd);

	if (err == 0 && s->outbox.n > 0)
		return;
	cc_watch_free(s->room_watch);
	s->room_watch = NULL;
	if (!s->watch)
		s->watch = cc_watch_new(s->loc->base->loop, s->fd, false, on_readable, s);
	drop_unsent(s->loc, s->id, s->watch ? err : CC_ERR_NOMEM);
}

/* If replies wait, stops reading requests until all of them are sent. */
static int await_room(struct session *s)
{
	if (s->outbox.n == 0 || s->room_watch)
		return 0;
	s->room_watch = cc_watch_new_room(s->loc->base->loop, s->fd, on_room, s);
	if (!s->room_watch)
		return CC_ERR_NOMEM;
	cc_watch_free(s->watch);
	s->watch = NULL;
	return 0;
}

void loc_session_reply(
	struct loc *loc, uint32_t session, const struct wl_reply *r, const int *fds, size_t n_fds)
{
	struct session *s = loc_session_find(loc, session);
	int err;

	if (!s)
		return;
	err = loc_outbox_send(&s->outbox, s->fd, r, fds, n_fds);
	drop_unsent(loc, session, err < 0 ? err : await_room(s));
}

int loc_session_hand_over(struct loc *loc, uint32_t session, const struct wl_reply *r, int fd)
{
	const struct session *s = loc_session_find(loc, session);

	if (!s)
		return CC_ERR_EOF;
	return s->outbox.n > 0 ? CC_ERR_LIMIT : loc_packet_send(s->fd, r, &fd, 1);
}

/* ---- requests ---- */

/* Answers the hello. If there are no descriptors for a beat, only /proc shows whether the process
 * is stopped. */
static void answer_hello(
	struct loc *loc, struct session *s, const struct wl_request *q, struct wl_reply *r)
{
	int fd = -1;

	if ((q->features & WL_BEAT) && loc_beat_open(&s->beat, &fd) == 0)
		r->features = WL_BEAT;
	loc_session_reply(loc, s->id, r, &fd, fd >= 0 ? 1 : 0);
	if (fd >= 0)
		close(fd);
}

static bool handle_hello(struct loc *loc, struct session *s, const struct wl_request *q)
{
	struct wl_reply r = {
		.req_id = q->req_id, .version_min = WL_VERSION_MIN, .version_max = WL_VERSION_MAX};
	struct agt_event ev = {.type = AGT_EV_SESSION_OPEN,
		.session = s->id,
		.uid = s->uid,
		.pid = s->process.pid,
		.name = s->name};
	uint32_t id = s->id;

	if (s->greeted) {
		loc_session_drop(loc, id, WIRE_INVALID_USAGE, "a second hello");
		return false;
	}
	rep_copy_text(s->name, sizeof s->name, q->name);
	if (q->version_min > WL_VERSION_MAX || q->version_max < WL_VERSION_MIN) {
		r.code = WIRE_VERSION_MISMATCH;
		snprintf(r.text, sizeof r.text,
			"the library speaks versions %" PRIu32 " to %" PRIu32 " of the agent's "
			"protocol, this agent %u to %u; install matching releases",
			q->version_min, q->version_max, WL_VERSION_MIN, WL_VERSION_MAX);
		cc_discard_input(s->fd);
		(void)loc_packet_send(s->fd, &r, NULL, 0);
		loc_session_drop(loc, id, WIRE_VERSION_MISMATCH, "%s", r.text);
		return false;
	}
	r.version = q->version_max < WL_VERSION_MAX ? q->version_max : WL_VERSION_MAX;
	r.hash_type = loc->base->cfg.hash_type;
	s->greeted = true;
	answer_hello(loc, s, q, &r);
	if (!loc_session_find(loc, id))
		return false;
	ev_post(loc->base, &ev);
	return true;
}

/* Returns the region with this id, if the communicator of the request may map it: a result region
 * of this communicator, or a region of another member of its synchronization. Otherwise returns
 * NULL. */
static struct loc_region *find_named(
	struct loc *loc, const struct session *s, const struct wl_request *q)
{
	struct loc_result *res = loc_result_find(loc, s->id, q->comm, q->region);
	struct loc_comm *c = loc_comm_find(loc, q->comm);

	if (res && loc_result_add_mapper(res, q->comm))
		return res->region;
	return c && c->session == s->id ? loc->ops->shown(loc->arg, c, q->region) : NULL;
}

static void handle_region(struct loc *loc, struct session *s, const struct wl_request *q)
{
	struct wl_reply r = {.req_id = q->req_id};
	struct loc_region *region = NULL;
	char limit[CC_LIMIT_TEXT];
	int fd = -1;

	switch (q->type) {
	case WL_REGION_ALLOC:
		r.code = loc_region_alloc(
			loc, s, q->size, (enum wl_region_use)q->use, &region, &fd, r.text);
		break;
	case WL_REGION_FREE:
		r.code = loc_region_free(loc, s, q->region, r.text);
		break;
	default:
		region = find_named(loc, s, q);
		if (!region) {
			r.code = WIRE_INVALID_USAGE;
			snprintf(r.text, sizeof r.text,
				"no operation of this communicator keeps its result in region "
				"%" PRIu64 ", and no synchronization refers to that region",
				q->region);
			break;
		}
		/* Other processes map this memory, too, so this process gets a read-only
		 * descriptor. */
		fd = cc_shm_read_only(region->fd);
		if (fd < 0) {
			region = NULL;
			r.code = cc_limit_is(errno) ? WIRE_OUT_OF_MEMORY : WIRE_INTERNAL_ERROR;
			snprintf(r.text, sizeof r.text,
				"the agent cannot open the memory again by "
				"/proc/self/fd: %s",
				cc_limit_text(errno, limit, sizeof limit));
		}
	}
	if (region) {
		r.region = region->id;
		r.size = region->size;
	}
	loc_session_reply(loc, s->id, &r, &fd, fd >= 0 ? 1 : 0);
	if (fd >= 0)
		close(fd);
}

static void handle_adopt(struct loc *loc, struct session *s, const struct wl_request *q, int *fd)
{
	struct wl_reply r = {.req_id = q->req_id, .code = WIRE_OUT_OF_MEMORY};
	struct loc_region *region = NULL;

	if (*fd < 0)
		snprintf(r.text, sizeof r.text,
			"the agent cannot take a descriptor now: it has none left, or is still "
			"closing other descriptors; try again");
	else
		r.code = loc_region_adopt(loc, s, fd, q->size, &region, r.text);
	if (region) {
		r.region = region->id;
		r.size = region->size;
	}
	loc_session_reply(loc, s->id, &r, NULL, 0);
}

/* Handles a request. *fd: the descriptor that came with it; becomes -1 when it is used. False: the
 * session is gone. */
static bool handle(struct loc *loc, uint32_t id, const struct wl_request *q, int *fd)
{
	struct session *s = loc_session_find(loc, id);
	struct agt_event ev = {.type = AGT_EV_REQUEST, .session = id, .request = q};

	if (q->type == WL_HELLO)
		return handle_hello(loc, s, q);
	if (!s->greeted) {
		loc_session_drop(loc, id, WIRE_INVALID_USAGE, "a request before the hello");
		return false;
	}
	switch (q->type) {
	case WL_REGION_ALLOC:
	case WL_REGION_FREE:
	case WL_REGION_MAP:
		handle_region(loc, s, q);
		break;
	case WL_REGION_ADOPT:
		handle_adopt(loc, s, q, fd);
		break;
	default:
		ev_post(loc->base, &ev);
	}
	return loc_session_find(loc, id) != NULL;
}

/* Parses a packet. Returns NULL, or why it is malformed. */
static const char *check_packet(const struct packet *p, struct wl_request *ret)
{
	const char *why = "malformed";

	if (p->truncated)
		return "it is too long";
	if (wire_local_get_request(p->buf, p->len, ret, &why) < 0)
		return why;
	if (ret->type != WL_REGION_ADOPT)
		return p->fd >= 0 || p->surplus ? "descriptors came with it" : NULL;
	/* If the agent could not receive a single descriptor, handle_adopt answers with another
	 * error. */
	if (p->fd < 0 && !p->surplus)
		return "no descriptor came with it";
	return p->fd >= 0 && p->surplus ? "more than one descriptor came with it" : NULL;
}

/* Receives and handles one packet. False: there is no packet, or the session is gone. */
static bool receive(struct loc *loc, uint32_t id)
{
	struct session *s = loc_session_find(loc, id);
	struct packet p;
	struct wl_request q;
	const char *why;
	int err = loc_packet_receive(s->fd, &p);
	bool goes_on = false;

	if (err == CC_ERR_AGAIN)
		return false;
	if (err < 0) {
		if (err == CC_ERR_IO && cc_limit_is(errno))
			drop_short(loc, id, "the agent cannot read a request", "recvmsg");
		else
			close_session(loc, s);
		return false;
	}
	why = check_packet(&p, &q);
	if (why)
		loc_session_drop(loc, id, WIRE_INVALID_ARGUMENT, "malformed packet: %s", why);
	else
		goes_on = handle(loc, id, &q, &p.fd);
	if (p.fd >= 0)
		loc_packet_close_foreign(p.fd);
	return goes_on;
}

static void read_packets(struct loc *loc, uint32_t id)
{
	for (unsigned i = 0; i < PACKETS_PER_TURN; i++)
		if (!receive(loc, id) || loc_session_find(loc, id)->outbox.n > 0)
			return;
	/* There may be more packets. The watch reports them again, after other sessions had their
	 * turn. */
}

static void on_readable(void *arg)
{
	const struct session *s = arg;

	read_packets(s->loc, s->id);
}

static void on_pid_gone(void *arg)
{
	struct session *s = arg;
	struct loc *loc = s->loc;
	uint32_t id = s->id;

	/* A forked child may still hold the socket open. Requests that were sent before the end
	 * still count. */
	read_packets(loc, id);
	s = loc_session_find(loc, id);
	if (s)
		close_session(loc, s);
}

/* ---- opening ---- */

static bool may_come_in(struct loc *loc, const struct account *a, uint32_t uid)
{
	if (HASH_COUNT(loc->sessions) >= SESSIONS_MAX) {
		rep_complain(&loc->base->report, CC_LOG_WARNING,
			"refused a process of uid %" PRIu32 ": %u sessions are open", uid,
			SESSIONS_MAX);
		return false;
	}
	if (a->sessions >= loc->base->cfg.sessions_per_user) {
		rep_complain(&loc->base->report, CC_LOG_WARNING,
			"refused a process of uid %" PRIu32 ": this user has %" PRIu32 " sessions",
			uid, a->sessions);
		return false;
	}
	return true;
}

static void refuse(struct loc *loc, int fd)
{
	struct session s = {.fd = fd};
	struct wl_reply bye = {.code = WIRE_OUT_OF_MEMORY};

	snprintf(bye.text, sizeof bye.text,
		"too many processes are connected to the agent; the limit per user is %" PRIu32,
		loc->base->cfg.sessions_per_user);
	cc_discard_input(fd);
	(void)loc_packet_send(s.fd, &bye, NULL, 0);
	close(fd);
}

static void on_accept(void *arg, int fd)
{
	struct loc *loc = arg;
	struct session *s;
	struct account *a;
	struct ucred cred;
	socklen_t len = sizeof cred;

	if (loc->base->stopping || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		close(fd);
		return;
	}
	a = loc_account_get(loc, cred.uid);
	if (!may_come_in(loc, a, cred.uid)) {
		refuse(loc, fd);
		loc_account_put(loc, a);
		return;
	}
	s = calloc(1, sizeof *s);
	if (!s)
		rep_out_of_memory("sessions");
	*s = (struct session){.loc = loc,
		.id = ++loc->next_session,
		.fd = fd,
		.beat = {.fd = -1},
		.uid = cred.uid,
		.opened_ns = cc_now_ns()};
	loc_process_open(&s->process, fd, (uint32_t)cred.pid);
	a->sessions++;
	HASH_ADD(hh, loc->sessions, id, sizeof s->id, s);
	s->watch = cc_watch_new(loc->base->loop, fd, false, on_readable, s);
	if (s->process.pidfd >= 0)
		s->pid_watch =
			cc_watch_new(loc->base->loop, s->process.pidfd, false, on_pid_gone, s);
	if (!s->watch)
		drop_short(loc, s->id, "the agent cannot watch the socket", "epoll_ctl");
}

static void on_shortage(void *arg, int fd, int error, const char *limit)
{
	struct wl_reply bye = {.code = WIRE_OUT_OF_MEMORY};

	(void)arg;
	(void)error;
	snprintf(bye.text, sizeof bye.text, "the agent cannot take another process: %s", limit);
	cc_discard_input(fd);
	(void)loc_packet_send(fd, &bye, NULL, 0);
	close(fd);
}

int loc_session_listen(struct loc *loc)
{
	loc->listener = cc_listener_new(loc->base->loop, loc->base->cfg.session_fd, on_accept, loc);
	loc->base->cfg.session_fd = -1;
	if (!loc->listener)
		return CC_ERR_NOMEM;
	return cc_listener_on_shortage(loc->listener, on_shortage);
}

void loc_session_stop_listening(struct loc *loc)
{
	cc_listener_free(loc->listener);
	loc->listener = NULL;
}

/* Is the process stopped? /proc shows this at once. If /proc does not show it, the beat finds it
 * out. */
static bool is_stopped(struct loc *loc, struct session *s, uint64_t now)
{
	bool due = s->stopped || agt_session_is_due(loc->base->core, s->id);

	if (loc_process_is_stopped(&s->process)) {
		loc_beat_forget(&s->beat);
		return true;
	}
	return loc_beat_is_silent(&s->beat, &s->process,
		BASE_MS(loc->base->cfg.beat_timeout_ms) / BEAT_ASKS, due, now);
}

/* Checks whether the process is stopped, and reports a change to the core: all peers of its group
 * wait for a stopped process. */
static void look_at_process(struct loc *loc, struct session *s, uint64_t now)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_STOPPED,
		.session = s->id,
		.stopped = is_stopped(loc, s, now)};

	if (ev.stopped == s->stopped)
		return;
	s->stopped = ev.stopped;
	ev_post(loc->base, &ev);
}

void loc_session_look(struct loc *loc)
{
	uint64_t now = cc_now_ns();
	struct session *s, *tmp;

	HASH_ITER (hh, loc->sessions, s, tmp)
		if (s->greeted)
			look_at_process(loc, s, now);
}

/* Stopped processes are checked before each tick of the core, so that a process that runs again is
 * not counted as lost. */
void loc_session_tick(struct loc *loc, uint64_t now)
{
	uint32_t left = loc->base->quiet ? QUIET_LOOKS_PER_TICK : LOOKS_PER_TICK, last = 0;
	struct session *s, *tmp;
	bool more = false;

	if (loc->base->quiet && loc->looked == 0 && now - loc->looks_ns < QUIET_LOOK_NS)
		return;
	if (loc->looked == 0)
		loc->looks_ns = now;
	/* The sessions are in the order of their ids. */
	HASH_ITER (hh, loc->sessions, s, tmp) {
		if (!s->greeted && now - s->opened_ns > HELLO_NS) {
			loc_session_drop(loc, s->id, WIRE_TIMEOUT, "no hello within 5 s");
		} else if (s->stopped) {
			look_at_process(loc, s, now);
		} else if (s->greeted && s->id > loc->looked) {
			more = left == 0;
			if (more)
				continue;
			left--;
			last = s->id;
			look_at_process(loc, s, now);
		}
	}
	loc->looked = more ? last : 0;
}

void loc_session_close_gone(struct loc *loc)
{
	struct session *s, *tmp;

	HASH_ITER (hh, loc->sessions, s, tmp) {
		struct pollfd p[] = {
			{.fd = s->fd}, /* poll always reports the end of the connection */
			{.fd = s->process.pidfd, .events = POLLIN},
		};

		if (poll(p, 2, 0) > 0)
			close_session(loc, s);
	}
}

void loc_session_goodbye_all(struct loc *loc, const char *why)
{
	while (loc->sessions) {
		struct session *s = loc->sessions;
		struct wl_reply bye = {.code = WIRE_AGENT_UNAVAILABLE};

		rep_copy_text(bye.text, sizeof bye.text, why);
		cc_discard_input(s->fd);
		(void)loc_packet_send(s->fd, &bye, NULL, 0);
		close_session(loc, s);
	}
}

void loc_session_free_all(struct loc *loc)
{
	while (loc->sessions) {
		struct session *s = loc->sessions;

		loc_region_session_closed(loc, s);
		destroy(loc, s);
	}
}
