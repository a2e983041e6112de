/* SPDX-License-Identifier: MIT
 *
 * Processes' connections: one packet, one message. Replies go straight into the socket, whose
 * buffer is the bounded queue: a process that lets it run full does not read its replies and is
 * dropped. Descriptors sent to us never arrive: packets are received without room for them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cc_shm.h"
#include "pcclagentd/io.h"

#define PACKETS_PER_TURN 32u
#define SESSIONS_MAX     8192u
#define HELLO_NS         MS(5000) /* from accepting to a good hello */

static struct session *find(const struct agentd *d, uint32_t id)
{
	struct session *s;

	HASH_FIND(hh, d->sessions, &id, sizeof id, s);
	return s;
}

static const char *label(const struct session *s, char buf[128])
{
	snprintf(buf, 128, "session %" PRIu32 " (%s, pid %" PRIu32 ", uid %" PRIu32 ")", s->id,
		s->name[0] ? s->name : "no hello yet", s->pid, s->uid);
	return buf;
}

/* ---- closing ---- */

static void destroy(struct agentd *d, struct session *s)
{
	struct account *a = account_get(d, s->uid);

	HASH_DEL(d->sessions, s);
	cc_watch_free(s->watch);
	cc_watch_free(s->pid_watch);
	if (s->pidfd >= 0)
		close(s->pidfd);
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

/* Bytes that nobody read would turn our close into an error that hides the goodbye. */
static void discard_input(int fd)
{
	char byte;

	shutdown(fd, SHUT_RD);
	while (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_TRUNC) > 0)
		;
}

static int put(const struct session *s, const struct wl_reply *r, const int *fds, size_t n_fds)
{
	uint8_t buf[WL_PACKET_MAX];
	int len = wire_local_put_reply(r, buf);
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * WL_FDS_MAX)];
	} ctl;
	struct iovec iov;
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (len < 0)
		return len;
	iov = (struct iovec){buf, (size_t)len};
	if (n_fds > 0) {
		struct cmsghdr *c = &ctl.align;

		memset(&ctl, 0, sizeof ctl);
		m.msg_control = &ctl;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	if (sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return errno == EAGAIN ? CC_ERR_LIMIT : errno == EPIPE ? CC_ERR_EOF : CC_ERR_IO;
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
	discard_input(s->fd);
	(void)put(s, &bye, NULL, 0); /* who does not read it needs no goodbye */
	session_close(d, s);
}

void session_reply(
	struct agentd *d, uint32_t session, const struct wl_reply *r, const int *fds, size_t n_fds)
{
	const struct session *s = find(d, session);
	int err;

	if (!s)
		return;
	err = put(s, r, fds, n_fds);
	if (err == CC_ERR_LIMIT)
		session_drop(d, session, WIRE_INVALID_USAGE, "it does not read its replies");
	else if (err < 0 && err != CC_ERR_EOF)
		session_drop(d, session, WIRE_INTERNAL_ERROR, "sending a reply failed: %s",
			err == CC_ERR_IO ? strerror(errno) : cc_err_str(err));
}

/* ---- requests ---- */

static bool handle_hello(struct agentd *d, struct session *s, const struct wl_request *q)
{
	struct wl_reply r = {
		.req_id = q->req_id, .version_min = WL_VERSION_MIN, .version_max = WL_VERSION_MAX};
	struct agt_event ev = {.type = AGT_EV_SESSION_OPEN,
		.session = s->id,
		.uid = s->uid,
		.pid = s->pid,
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
		discard_input(s->fd);
		(void)put(s, &r, NULL, 0);
		session_drop(d, id, WIRE_VERSION_MISMATCH, "%s", r.text);
		return false;
	}
	r.version = q->version_max < WL_VERSION_MAX ? q->version_max : WL_VERSION_MAX;
	s->greeted = true;
	session_reply(d, id, &r, NULL, 0);
	if (!find(d, id))
		return false;
	agentd_feed(d, &ev);
	return true;
}

static void handle_region(struct agentd *d, struct session *s, const struct wl_request *q)
{
	struct wl_reply r = {.req_id = q->req_id};
	struct region *region = NULL;
	struct result *res;
	int fd = -1;

	switch (q->type) {
	case WL_REGION_ALLOC:
		r.code = region_alloc(d, s, q->size, &region, &fd, r.text);
		break;
	case WL_REGION_FREE:
		r.code = region_free(d, s, q->region, r.text);
		break;
	default:
		res = result_find(d, s->id, q->region);
		if (res && result_add_mapper(res, s->id)) {
			/* Others have it mapped too: nobody but the agent writes. */
			fd = cc_shm_read_only(res->region->fd);
			region = fd < 0 ? NULL : res->region;
			r.code = fd < 0 ? WIRE_INTERNAL_ERROR : WIRE_SUCCESS;
			snprintf(r.text, sizeof r.text, "%s",
				fd < 0 ? "the agent is out of descriptors" : "");
			break;
		}
		r.code = WIRE_INVALID_USAGE;
		snprintf(r.text, sizeof r.text,
			"no operation of this process has its result in region %" PRIu64,
			q->region);
	}
	if (region) {
		r.region = region->id;
		r.size = region->size;
	}
	session_reply(d, s->id, &r, &fd, fd >= 0 ? 1 : 0);
	if (fd >= 0)
		close(fd);
}

/* False when the session is gone. */
static bool handle(struct agentd *d, uint32_t id, const struct wl_request *q)
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
	default:
		cc_random_id(&ev.id);
		cc_random_id(&ev.token);
		agentd_feed(d, &ev);
	}
	return find(d, id) != NULL;
}

/* One packet. False when there is none, or the session is gone. */
static bool receive(struct agentd *d, uint32_t id)
{
	struct session *s = find(d, id);
	uint8_t buf[WL_PACKET_MAX + 1];
	struct iovec iov = {buf, sizeof buf};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct wl_request q;
	const char *why = "malformed";
	ssize_t n = recvmsg(s->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		session_close(d, s);
		return false;
	}
	if (m.msg_flags & MSG_CTRUNC)
		why = "descriptors came with a packet";
	else if ((m.msg_flags & MSG_TRUNC) || n > (ssize_t)WL_PACKET_MAX)
		why = "a packet is too long";
	else if (wire_local_get_request(buf, (size_t)n, &q, &why) == 0)
		return handle(d, id, &q);
	session_drop(d, id, WIRE_INVALID_ARGUMENT, "malformed packet: %s", why);
	return false;
}

static void read_packets(struct agentd *d, uint32_t id)
{
	for (unsigned i = 0; i < PACKETS_PER_TURN; i++)
		if (!receive(d, id))
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

static int open_pidfd(int fd, uint32_t pid)
{
#ifdef SO_PEERPIDFD
	int pidfd;
	socklen_t len = sizeof pidfd;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
		return pidfd;
#else
	(void)fd;
#endif
	return pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

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
	discard_input(fd);
	(void)put(&s, &bye, NULL, 0);
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
		.uid = cred.uid,
		.pid = (uint32_t)cred.pid,
		.opened_ns = cc_now_ns()};
	s->pidfd = open_pidfd(fd, s->pid);
	a->sessions++;
	HASH_ADD(hh, d->sessions, id, sizeof s->id, s);
	s->watch = cc_watch_new(d->loop, fd, false, on_readable, s);
	if (s->pidfd >= 0)
		s->pid_watch = cc_watch_new(d->loop, s->pidfd, false, on_pid_gone, s);
	if (!s->watch)
		session_drop(d, s->id, WIRE_INTERNAL_ERROR, "the agent cannot watch the socket");
}

int session_listen(struct agentd *d)
{
	d->session_listener = cc_listener_new(d->loop, d->cfg.session_fd, on_accept, d);
	d->cfg.session_fd = -1;
	return d->session_listener ? 0 : CC_ERR_NOMEM;
}

void session_tick(struct agentd *d, uint64_t now)
{
	struct session *s, *tmp;

	HASH_ITER (hh, d->sessions, s, tmp) {
		if (!s->greeted && now - s->opened_ns > HELLO_NS)
			session_drop(d, s->id, WIRE_TIMEOUT, "no hello within 5 s");
	}
}

/* Closing one session may, through the core, close others: start over each time. */
void session_goodbye_all(struct agentd *d, const char *why)
{
	while (d->sessions) {
		struct session *s = d->sessions;
		struct wl_reply bye = {.code = WIRE_AGENT_UNAVAILABLE};

		agentd_copy_text(bye.text, sizeof bye.text, why);
		discard_input(s->fd);
		(void)put(s, &bye, NULL, 0);
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
