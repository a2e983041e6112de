/* SPDX-License-Identifier: MIT
 *
 * Processes' connections: one packet, one message. Replies go straight into the socket. When its
 * buffer is full they wait in the session's outbox, and requests wait in the socket meanwhile.
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
#include "pcclagentd/io.h"
#include "pcclagentd/packet.h"

#define PACKETS_PER_TURN 32u
#define SESSIONS_MAX     8192u
#define HELLO_NS         MS(5000) /* from accepting to a good hello */
/* Whether they are stopped is looked up for so many processes in each tick, in turn: some
 * microseconds each, less than 1 % of a processor. */
#define LOOKS_PER_TICK 64u
/* While nothing is under way nobody waits for them yet. */
#define QUIET_LOOKS_PER_TICK 256u
#define QUIET_LOOK_NS        MS(1700) /* every fourth tick */

static struct session *find(const struct agentd *d, uint32_t id)
{
	struct session *s;

	HASH_FIND(hh, d->sessions, &id, sizeof id, s);
	return s;
}

static const char *label(const struct session *s, char buf[128])
{
	snprintf(buf, 128, "session %" PRIu32 " (%s, pid %" PRIu32 ", uid %" PRIu32 ")", s->id,
		s->name[0] ? s->name : "no hello yet", s->process.pid, s->uid);
	return buf;
}

/* ---- closing ---- */

static void destroy(struct agentd *d, struct session *s)
{
	struct account *a = account_get(d, s->uid);

	HASH_DEL(d->sessions, s);
	cc_watch_free(s->watch);
	cc_watch_free(s->room_watch);
	cc_watch_free(s->pid_watch);
	outbox_clear(&s->outbox);
	process_close(&s->process);
	beat_close(&s->beat);
	close(s->fd);
	a->sessions--;
	account_put(d, a);
	d->last_session_ns = cc_now_ns();
	free(s);
}

static void session_close(struct agentd *d, struct session *s)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_CLOSED, .session = s->id};
	bool greeted = s->greeted;

	region_session_closed(d, s);
	destroy(d, s);
	if (greeted)
		agentd_feed(d, &ev);
}

void session_drop(struct agentd *d, uint32_t session, uint32_t code, const char *fmt, ...)
{
	struct session *s = find(d, session);
	struct wl_reply bye = {.code = code};
	char who[128];
	va_list ap;

	if (!s)
		return;
	va_start(ap, fmt);
	vsnprintf(bye.text, sizeof bye.text, fmt, ap);
	va_end(ap);
	agentd_complain(d, CC_LOG_WARNING, "%s closed: %s", label(s, who), bye.text);
	cc_discard_input(s->fd);
	(void)packet_send(s->fd, &bye, NULL, 0); /* who does not read it needs no goodbye */
	session_close(d, s);
}

/* A call for it has failed: errno says why. */
static void drop_short(struct agentd *d, uint32_t session, const char *what, const char *call)
{
	char text[WL_TEXT_MAX];
	uint32_t code = agentd_shortage(what, call, text, sizeof text);

	session_drop(d, session, code, "%s", text);
}

static void drop_unsent(struct agentd *d, uint32_t session, int err)
{
	if (err == CC_ERR_LIMIT)
		session_drop(d, session, WIRE_INVALID_USAGE,
			"it does not read its replies: %u of them wait", OUTBOX_MAX);
	else if (err == CC_ERR_IO || err == CC_ERR_NOMEM)
		drop_short(d, session, "the agent cannot send a reply", "sendmsg");
	else if (err < 0 && err != CC_ERR_EOF)
		session_drop(d, session, WIRE_INTERNAL_ERROR, "sending a reply failed: %s",
			cc_err_str(err));
}

static void on_readable(void *arg);

/* The process has read some of its replies. */
static void on_room(void *arg)
{
	struct session *s = arg;
	int err = outbox_flush(&s->outbox, s->fd);

	if (err == 0 && s->outbox.n > 0)
		return;
	cc_watch_free(s->room_watch);
	s->room_watch = NULL;
	if (!s->watch)
		s->watch = cc_watch_new(s->d->loop, s->fd, false, on_readable, s);
	drop_unsent(s->d, s->id, s->watch ? err : CC_ERR_NOMEM);
}

/* Requests are read on when the replies have gone. */
static int await_room(struct session *s)
{
	if (s->outbox.n == 0 || s->room_watch)
		return 0;
	s->room_watch = cc_watch_new_room(s->d->loop, s->fd, on_room, s);
	if (!s->room_watch)
		return CC_ERR_NOMEM;
	cc_watch_free(s->watch);
	s->watch = NULL;
	return 0;
}

void session_reply(
	struct agentd *d, uint32_t session, const struct wl_reply *r, const int *fds, size_t n_fds)
{
	struct session *s = find(d, session);
	int err;

	if (!s)
		return;
	err = outbox_send(&s->outbox, s->fd, r, fds, n_fds);
	drop_unsent(d, session, err < 0 ? err : await_room(s));
}

int session_offer(struct agentd *d, uint32_t session, const struct wl_reply *r, int fd)
{
	const struct session *s = find(d, session);

	if (!s)
		return CC_ERR_EOF;
	return s->outbox.n > 0 ? CC_ERR_LIMIT : packet_send(s->fd, r, &fd, 1);
}

/* ---- requests ---- */

/* Without descriptors for it, /proc alone tells whether the process is stopped. */
static void answer_hello(
	struct agentd *d, struct session *s, const struct wl_request *q, struct wl_reply *r)
{
	int fd = -1;

	if ((q->features & WL_BEAT) && beat_open(&s->beat, &fd) == 0)
		r->features = WL_BEAT;
	session_reply(d, s->id, r, &fd, fd >= 0 ? 1 : 0);
	if (fd >= 0)
		close(fd);
}

static bool handle_hello(struct agentd *d, struct session *s, const struct wl_request *q)
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
		session_drop(d, id, WIRE_INVALID_USAGE, "a second hello");
		return false;
	}
	agentd_copy_text(s->name, sizeof s->name, q->name);
	if (q->version_min > WL_VERSION_MAX || q->version_max < WL_VERSION_MIN) {
		r.code = WIRE_VERSION_MISMATCH;
		snprintf(r.text, sizeof r.text,
			"the library speaks versions %" PRIu32 " to %" PRIu32 " of the agent's "
			"protocol, this agent %u to %u; install matching releases",
			q->version_min, q->version_max, WL_VERSION_MIN, WL_VERSION_MAX);
		cc_discard_input(s->fd);
		(void)packet_send(s->fd, &r, NULL, 0);
		session_drop(d, id, WIRE_VERSION_MISMATCH, "%s", r.text);
		return false;
	}
	r.version = q->version_max < WL_VERSION_MAX ? q->version_max : WL_VERSION_MAX;
	r.hash_type = d->cfg.hash_type;
	s->greeted = true;
	answer_hello(d, s, q, &r);
	if (!find(d, id))
		return false;
	agentd_feed(d, &ev);
	return true;
}

/* What the agent has named to a communicator of the session, or NULL. */
static struct region *find_named(
	struct agentd *d, const struct session *s, const struct wl_request *q)
{
	struct result *res = result_find(d, s->id, q->comm, q->region);
	struct comm *c = comm_find(d, q->comm);

	if (res && result_add_mapper(res, q->comm))
		return res->region;
	return c && c->session == s->id ? sync_shown(d, c, q->region) : NULL;
}

static void handle_region(struct agentd *d, struct session *s, const struct wl_request *q)
{
	struct wl_reply r = {.req_id = q->req_id};
	struct region *region = NULL;
	char limit[CC_LIMIT_TEXT];
	int fd = -1;

	switch (q->type) {
	case WL_REGION_ALLOC:
		r.code = region_alloc(
			d, s, q->size, (enum wl_region_use)q->use, &region, &fd, r.text);
		break;
	case WL_REGION_FREE:
		r.code = region_free(d, s, q->region, r.text);
		break;
	default:
		region = find_named(d, s, q);
		if (!region) {
			r.code = WIRE_INVALID_USAGE;
			snprintf(r.text, sizeof r.text,
				"no operation of this communicator has its result in region "
				"%" PRIu64 ", and no synchronization names it",
				q->region);
			break;
		}
		/* Others have it mapped, too: it is only read. */
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
	session_reply(d, s->id, &r, &fd, fd >= 0 ? 1 : 0);
	if (fd >= 0)
		close(fd);
}

static void handle_adopt(struct agentd *d, struct session *s, const struct wl_request *q, int *fd)
{
	struct wl_reply r = {.req_id = q->req_id, .code = WIRE_OUT_OF_MEMORY};
	struct region *region = NULL;

	if (*fd < 0)
		snprintf(r.text, sizeof r.text,
			"the agent takes no descriptor now: it is out of them, or busy closing "
			"others");
	else
		r.code = region_adopt(d, s, fd, q->size, &region, r.text);
	if (region) {
		r.region = region->id;
		r.size = region->size;
	}
	session_reply(d, s->id, &r, NULL, 0);
}

/* False when the session is gone. *fd: came with the request; -1 when it is used up. */
static bool handle(struct agentd *d, uint32_t id, const struct wl_request *q, int *fd)
{
	struct session *s = find(d, id);
	struct agt_event ev = {.type = AGT_EV_REQUEST, .session = id, .request = q};

	if (q->type == WL_HELLO)
		return handle_hello(d, s, q);
	if (!s->greeted) {
		session_drop(d, id, WIRE_INVALID_USAGE, "a request before the hello");
		return false;
	}
	switch (q->type) {
	case WL_REGION_ALLOC:
	case WL_REGION_FREE:
	case WL_REGION_MAP:
		handle_region(d, s, q);
		break;
	case WL_REGION_ADOPT:
		handle_adopt(d, s, q, fd);
		break;
	default:
		agentd_feed(d, &ev);
	}
	return find(d, id) != NULL;
}

/* NULL, or why the packet is malformed. */
static const char *check_packet(const struct packet *p, struct wl_request *ret)
{
	const char *why = "malformed";

	if (p->truncated)
		return "it is too long";
	if (wire_local_get_request(p->buf, p->len, ret, &why) < 0)
		return why;
	if (ret->type != WL_REGION_ADOPT)
		return p->fd >= 0 || p->surplus ? "descriptors came with it" : NULL;
	/* A single one that found no room here is told otherwise. */
	if (p->fd < 0 && !p->surplus)
		return "no descriptor came with it";
	return p->fd >= 0 && p->surplus ? "more than one descriptor came with it" : NULL;
}

/* One packet. False when there is none, or the session is gone. */
static bool receive(struct agentd *d, uint32_t id)
{
	struct session *s = find(d, id);
	struct packet p;
	struct wl_request q;
	const char *why;
	int err = packet_receive(s->fd, &p);
	bool goes_on = false;

	if (err == CC_ERR_AGAIN)
		return false;
	if (err < 0) {
		if (err == CC_ERR_IO && cc_limit_is(errno))
			drop_short(d, id, "the agent cannot read a request", "recvmsg");
		else
			session_close(d, s);
		return false;
	}
	why = check_packet(&p, &q);
	if (why)
		session_drop(d, id, WIRE_INVALID_ARGUMENT, "malformed packet: %s", why);
	else
		goes_on = handle(d, id, &q, &p.fd);
	if (p.fd >= 0)
		packet_close_foreign(p.fd);
	return goes_on;
}

static void read_packets(struct agentd *d, uint32_t id)
{
	for (unsigned i = 0; i < PACKETS_PER_TURN; i++)
		if (!receive(d, id) || find(d, id)->outbox.n > 0)
			return;
	/* More may be there: the watch tells again, after the others had their turn. */
}

static void on_readable(void *arg)
{
	const struct session *s = arg;

	read_packets(s->d, s->id);
}

static void on_pid_gone(void *arg)
{
	struct session *s = arg;
	struct agentd *d = s->d;
	uint32_t id = s->id;

	/* A forked child may still hold the socket open. What was sent last still counts. */
	read_packets(d, id);
	s = find(d, id);
	if (s)
		session_close(d, s);
}

/* ---- opening ---- */

static bool may_come_in(struct agentd *d, const struct account *a, uint32_t uid)
{
	if (HASH_COUNT(d->sessions) >= SESSIONS_MAX) {
		agentd_complain(d, CC_LOG_WARNING,
			"refused a process of uid %" PRIu32 ": %u sessions are open", uid,
			SESSIONS_MAX);
		return false;
	}
	if (a->sessions >= d->cfg.sessions_per_user) {
		agentd_complain(d, CC_LOG_WARNING,
			"refused a process of uid %" PRIu32 ": this user has %" PRIu32 " sessions",
			uid, a->sessions);
		return false;
	}
	return true;
}

static void refuse(struct agentd *d, int fd)
{
	struct session s = {.fd = fd};
	struct wl_reply bye = {.code = WIRE_OUT_OF_MEMORY};

	snprintf(bye.text, sizeof bye.text,
		"too many processes are connected to the agent; the limit per user is %" PRIu32,
		d->cfg.sessions_per_user);
	cc_discard_input(fd);
	(void)packet_send(s.fd, &bye, NULL, 0);
	close(fd);
}

static void on_accept(void *arg, int fd)
{
	struct agentd *d = arg;
	struct session *s;
	struct account *a;
	struct ucred cred;
	socklen_t len = sizeof cred;

	if (d->stopping || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		close(fd);
		return;
	}
	a = account_get(d, cred.uid);
	if (!may_come_in(d, a, cred.uid)) {
		refuse(d, fd);
		account_put(d, a);
		return;
	}
	s = calloc(1, sizeof *s);
	if (!s)
		agentd_out_of_memory("sessions");
	*s = (struct session){.d = d,
		.id = ++d->next_session,
		.fd = fd,
		.beat = {.fd = -1},
		.uid = cred.uid,
		.opened_ns = cc_now_ns()};
	process_open(&s->process, fd, (uint32_t)cred.pid);
	a->sessions++;
	HASH_ADD(hh, d->sessions, id, sizeof s->id, s);
	s->watch = cc_watch_new(d->loop, fd, false, on_readable, s);
	if (s->process.pidfd >= 0)
		s->pid_watch = cc_watch_new(d->loop, s->process.pidfd, false, on_pid_gone, s);
	if (!s->watch)
		drop_short(d, s->id, "the agent cannot watch the socket", "epoll_ctl");
}

static void on_shortage(void *arg, int fd, int error, const char *limit)
{
	struct wl_reply bye = {.code = WIRE_OUT_OF_MEMORY};

	(void)arg;
	(void)error;
	snprintf(bye.text, sizeof bye.text, "the agent cannot take another process: %s", limit);
	cc_discard_input(fd);
	(void)packet_send(fd, &bye, NULL, 0);
	close(fd);
}

int session_listen(struct agentd *d)
{
	d->session_listener = cc_listener_new(d->loop, d->cfg.session_fd, on_accept, d);
	d->cfg.session_fd = -1;
	if (!d->session_listener)
		return CC_ERR_NOMEM;
	return cc_listener_on_shortage(d->session_listener, on_shortage);
}

/* What /proc shows is known at once; its beat tells where that does not show it. */
static bool is_stopped(struct agentd *d, struct session *s, uint64_t now)
{
	bool due = s->stopped || agt_session_is_due(d->core, s->id);

	if (process_is_stopped(&s->process)) {
		beat_forget(&s->beat);
		return true;
	}
	return beat_is_silent(
		&s->beat, &s->process, MS(d->cfg.beat_timeout_ms) / BEAT_ASKS, due, now);
}

/* A process that is stopped holds up all others of its group: the core must know. */
static void look_at_process(struct agentd *d, struct session *s, uint64_t now)
{
	struct agt_event ev = {
		.type = AGT_EV_SESSION_STOPPED, .session = s->id, .stopped = is_stopped(d, s, now)};

	if (ev.stopped == s->stopped)
		return;
	s->stopped = ev.stopped;
	agentd_feed(d, &ev);
}

void session_look(struct agentd *d)
{
	uint64_t now = cc_now_ns();
	struct session *s, *tmp;

	HASH_ITER (hh, d->sessions, s, tmp)
		if (s->greeted)
			look_at_process(d, s, now);
}

/* Those that were stopped are looked at before each tick of the core: none is to count as lost that
 * runs again. */
void session_tick(struct agentd *d, uint64_t now)
{
	uint32_t left = d->quiet ? QUIET_LOOKS_PER_TICK : LOOKS_PER_TICK, last = 0;
	struct session *s, *tmp;
	bool more = false;

	if (d->quiet && d->looked == 0 && now - d->looks_ns < QUIET_LOOK_NS)
		return;
	if (d->looked == 0)
		d->looks_ns = now;
	/* They are in the order of their numbers. */
	HASH_ITER (hh, d->sessions, s, tmp) {
		if (!s->greeted && now - s->opened_ns > HELLO_NS) {
			session_drop(d, s->id, WIRE_TIMEOUT, "no hello within 5 s");
		} else if (s->stopped) {
			look_at_process(d, s, now);
		} else if (s->greeted && s->id > d->looked) {
			more = left == 0;
			if (more)
				continue;
			left--;
			last = s->id;
			look_at_process(d, s, now);
		}
	}
	d->looked = more ? last : 0;
}

void session_close_gone(struct agentd *d)
{
	struct session *s, *tmp;

	HASH_ITER (hh, d->sessions, s, tmp) {
		struct pollfd p[] = {
			{.fd = s->fd}, /* its end is reported in any case */
			{.fd = s->process.pidfd, .events = POLLIN},
		};

		if (poll(p, 2, 0) > 0)
			session_close(d, s);
	}
}

void session_goodbye_all(struct agentd *d, const char *why)
{
	while (d->sessions) {
		struct session *s = d->sessions;
		struct wl_reply bye = {.code = WIRE_AGENT_UNAVAILABLE};

		agentd_copy_text(bye.text, sizeof bye.text, why);
		cc_discard_input(s->fd);
		(void)packet_send(s->fd, &bye, NULL, 0);
		session_close(d, s);
	}
}

void session_free_all(struct agentd *d)
{
	while (d->sessions) {
		struct session *s = d->sessions;

		region_session_closed(d, s);
		destroy(d, s);
	}
}
