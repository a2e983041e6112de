/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/session.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_sys.h"
#include "libpccl-shim/lib.h"
#include "libpccl-shim/spawn.h"

#define HELLO_TIMEOUT_MS 10000

/* A thread that waits for a reply; on its stack. */
struct waiter {
	uint32_t req_id;
	bool done;
	pthread_cond_t cond;
	struct wl_reply reply;
	int fds[WL_FDS_MAX];
	unsigned n_fds;
	struct waiter *next;
};

struct pccl_session {
	_Atomic uint32_t refs;
	struct pccl_fork_fd sock;
	char path[PCCL_SOCKET_PATH_MAX];

	pthread_mutex_t lock; /* of all below */
	bool reading;         /* some thread is the leader */
	bool dead;
	uint32_t code; /* when dead: pcclResult_t and sentence */
	char text[WL_TEXT_MAX];
	uint32_t last_req;
	struct waiter *waiters;
};

/* Held while connecting, so that of several threads one does it. */
static pthread_mutex_t current_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pccl_session *current;

void pccl_session_after_fork(void)
{
	/* Another thread of the parent may have held it: the copy is of no use. */
	pthread_mutex_init(&current_lock, NULL);
	current = NULL;
}

struct pccl_session *pccl_session_ref(struct pccl_session *s)
{
	atomic_fetch_add(&s->refs, 1);
	return s;
}

void pccl_session_unref(struct pccl_session *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	pccl_fork_close(&s->sock);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* With the lock held. The first reason stays. */
static void set_dead(struct pccl_session *s, uint32_t code, const char *text)
{
	if (s->dead)
		return;
	s->dead = true;
	s->code = code;
	snprintf(s->text, sizeof s->text, "%s", text);
	/* Also lets a leader out that is blocked in recvmsg(). */
	shutdown(s->sock.fd, SHUT_RDWR);
	for (struct waiter *w = s->waiters; w; w = w->next)
		pthread_cond_signal(&w->cond);
}

static void close_fds(int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

/* Takes the descriptors out of a packet; surplus ones are closed and make it malformed. */
static int take_fds(struct msghdr *mh, int *fds, unsigned *n_fds)
{
	int err = mh->msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? CC_ERR_PROTO : 0;

	*n_fds = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (*n_fds < WL_FDS_MAX) {
				fds[(*n_fds)++] = fd;
			} else {
				close(fd);
				err = CC_ERR_PROTO;
			}
		}
	}
	if (err)
		close_fds(fds, *n_fds);
	return err;
}

/* One packet. CC_ERR_EOF, CC_ERR_AGAIN (with MSG_DONTWAIT), CC_ERR_PROTO with *why, CC_ERR_IO. */
static int receive(struct pccl_session *s, int flags, struct wl_reply *reply, int *fds,
	unsigned *n_fds, const char **why)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * (WL_FDS_MAX + 1))];
	} control;
	uint8_t packet[WL_PACKET_MAX];
	struct iovec iov = {.iov_base = packet, .iov_len = sizeof packet};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;
	int err;

	do {
		mh.msg_control = control.buf;
		mh.msg_controllen = sizeof control.buf;
		n = recvmsg(s->sock.fd, &mh, flags | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? CC_ERR_AGAIN : CC_ERR_IO;
	*why = "too large, or with too many descriptors";
	err = take_fds(&mh, fds, n_fds);
	if (err < 0)
		return err;
	if (n == 0) {
		close_fds(fds, *n_fds);
		return CC_ERR_EOF;
	}
	err = wire_local_get_reply(packet, (size_t)n, reply, why);
	if (err < 0)
		close_fds(fds, *n_fds);
	return err;
}

/* With the lock held: what `receive` returned goes to whom it is for. */
static void deliver(struct pccl_session *s, int err, const struct wl_reply *reply, int *fds,
	unsigned n_fds, const char *why)
{
	char text[WL_TEXT_MAX];
	struct waiter *w;

	if (err == CC_ERR_AGAIN)
		return;
	if (err < 0) {
		if (err == CC_ERR_PROTO || err == CC_ERR_VERSION || err == CC_ERR_INVAL)
			snprintf(text, sizeof text, "the agent sent a malformed packet: %s", why);
		else
			snprintf(text, sizeof text, "the agent closed the connection");
		set_dead(s, pcclAgentUnavailable, text);
		return;
	}
	if (reply->req_id == 0) {
		close_fds(fds, n_fds);
		set_dead(s, reply->code ? reply->code : pcclAgentUnavailable,
			reply->text[0] ? reply->text : "the agent ended the session");
		return;
	}
	for (w = s->waiters; w && w->req_id != reply->req_id; w = w->next)
		;
	if (!w || w->done) {
		close_fds(fds, n_fds);
		set_dead(s, pcclAgentUnavailable, "the agent answered a request that nobody made");
		return;
	}
	w->reply = *reply;
	memcpy(w->fds, fds, n_fds * sizeof *fds);
	w->n_fds = n_fds;
	w->done = true;
	pthread_cond_signal(&w->cond);
}

/* With the lock held, which is given up meanwhile: reads one packet as the leader. */
static void lead(struct pccl_session *s, int flags)
{
	int fds[WL_FDS_MAX], err;
	struct wl_reply reply;
	const char *why = "";
	unsigned n_fds = 0;

	s->reading = true;
	pthread_mutex_unlock(&s->lock);
	err = receive(s, flags, &reply, fds, &n_fds, &why);
	pthread_mutex_lock(&s->lock);
	s->reading = false;
	/* A blocking read has a bound only during the hello. */
	if (err == CC_ERR_AGAIN && !(flags & MSG_DONTWAIT))
		set_dead(s, pcclAgentUnavailable, "the agent does not answer");
	else
		deliver(s, err, &reply, fds, n_fds, why);
}

/* With the lock held: one of those that still wait reads on. */
static void pass_lead(struct pccl_session *s)
{
	if (s->reading)
		return;
	for (struct waiter *w = s->waiters; w; w = w->next) {
		if (!w->done) {
			pthread_cond_signal(&w->cond);
			return;
		}
	}
}

static void add_waiter(struct pccl_session *s, struct waiter *w)
{
	do
		w->req_id = ++s->last_req;
	while (w->req_id == 0);
	w->next = s->waiters;
	s->waiters = w;
}

static void remove_waiter(struct pccl_session *s, struct waiter *w)
{
	struct waiter **p = &s->waiters;

	while (*p != w)
		p = &(*p)->next;
	*p = w->next;
}

/* Without the lock: packets are sent whole, and the send may block until the agent reads. */
static int send_request(struct pccl_session *s, const struct wl_request *request)
{
	uint8_t packet[WL_PACKET_MAX];
	int len = wire_local_put_request(request, packet);
	ssize_t n;

	if (len < 0)
		return len;
	do
		n = send(s->sock.fd, packet, (size_t)len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? CC_ERR_EOF : 0;
}

pcclResult_t pccl_session_call(struct pccl_session *s, struct wl_request *request,
	struct wl_reply *reply, int *fds, unsigned want_fds)
{
	struct waiter w = {.done = false};
	int err;

	pthread_cond_init(&w.cond, NULL);
	pthread_mutex_lock(&s->lock);
	add_waiter(s, &w);
	request->req_id = w.req_id;
	pthread_mutex_unlock(&s->lock);
	err = send_request(s, request);
	pthread_mutex_lock(&s->lock);
	if (err < 0 && err != CC_ERR_EOF) {
		remove_waiter(s, &w);
		pthread_mutex_unlock(&s->lock);
		pthread_cond_destroy(&w.cond);
		return pccl_fail(
			pcclInternalError, "a request cannot be encoded: %s", cc_err_str(err));
	}
	/* After a failed send there may still be a goodbye to read: go on until the end of file. */
	while (!w.done && !s->dead) {
		if (s->reading)
			pthread_cond_wait(&w.cond, &s->lock);
		else
			lead(s, 0);
	}
	remove_waiter(s, &w);
	pass_lead(s);
	pthread_mutex_unlock(&s->lock);
	pthread_cond_destroy(&w.cond);

	if (!w.done)
		return pccl_session_fail(s);
	*reply = w.reply;
	if (w.reply.code != pcclSuccess) {
		close_fds(w.fds, w.n_fds);
		return pccl_fail(pccl_result_of(w.reply.code), "%s",
			w.reply.text[0] ? w.reply.text : "the agent refused and gave no reason");
	}
	if (w.n_fds != want_fds) {
		close_fds(w.fds, w.n_fds);
		return pccl_fail(pcclInternalError,
			"the agent's answer came with %u descriptors instead of %u", w.n_fds,
			want_fds);
	}
	for (unsigned i = 0; i < want_fds; i++)
		fds[i] = w.fds[i];
	return pcclSuccess;
}

bool pccl_session_check(struct pccl_session *s)
{
	struct pollfd p = {.fd = s->sock.fd, .events = POLLIN};
	bool alive;

	pthread_mutex_lock(&s->lock);
	/* A leader sees everything by itself. Otherwise there can be a goodbye, or the end. */
	while (!s->dead && !s->reading && poll(&p, 1, 0) > 0)
		lead(s, MSG_DONTWAIT);
	pass_lead(s);
	alive = !s->dead;
	pthread_mutex_unlock(&s->lock);
	return alive;
}

pcclResult_t pccl_session_fail(struct pccl_session *s)
{
	char text[WL_TEXT_MAX];
	uint32_t code;

	pthread_mutex_lock(&s->lock);
	code = s->code;
	memcpy(text, s->text, sizeof text);
	pthread_mutex_unlock(&s->lock);
	return pccl_fail(pccl_result_of(code),
		"the session with the agent at %s has ended: %s; call pcclConnect again", s->path,
		text);
}

static pcclResult_t hello(struct pccl_session *s)
{
	struct wl_request request = {
		.type = WL_HELLO, .version_min = WL_VERSION_MIN, .version_max = WL_VERSION_MAX};
	struct timeval bound = {.tv_sec = HELLO_TIMEOUT_MS / 1000}, none = {0};
	struct wl_reply reply = {0};
	pcclResult_t r;

	snprintf(request.name, sizeof request.name, "%s", program_invocation_short_name);
	setsockopt(s->sock.fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
	r = pccl_session_call(s, &request, &reply, NULL, 0);
	setsockopt(s->sock.fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
	if (r == pcclVersionMismatch ||
		(r == pcclSuccess &&
			(reply.version < WL_VERSION_MIN || reply.version > WL_VERSION_MAX)))
		return pccl_fail(pcclVersionMismatch,
			"this library speaks versions %u to %u of the local protocol, the agent at "
			"%s speaks %u to %u: install matching releases",
			WL_VERSION_MIN, WL_VERSION_MAX, s->path,
			r == pcclSuccess ? reply.version : reply.version_min,
			r == pcclSuccess ? reply.version : reply.version_max);
	return r;
}

/* *again: the agent went away between our connecting and its answer, as a private one does that has
 * been idle for long enough: there may be another one at once. */
static pcclResult_t try_session(struct pccl_session **ret, bool *again)
{
	struct pccl_session *s = calloc(1, sizeof *s);
	pcclResult_t r;
	int fd = -1;

	*again = false;
	if (!s)
		return pccl_fail(pcclOutOfMemory, "no memory for a session");
	r = pccl_agent_connect(&fd, s->path);
	if (r != pcclSuccess) {
		free(s);
		return r;
	}
	atomic_init(&s->refs, 1);
	pthread_mutex_init(&s->lock, NULL);
	pccl_fork_add(&s->sock, fd);
	r = hello(s);
	if (r != pcclSuccess) {
		*again = !pccl_session_check(s);
		pccl_session_unref(s);
		return r;
	}
	*ret = s;
	return pcclSuccess;
}

static pcclResult_t open_session(struct pccl_session **ret)
{
	bool again;
	pcclResult_t r = try_session(ret, &again);

	return r == pcclAgentUnavailable && again ? try_session(ret, &again) : r;
}

pcclResult_t pccl_session_get(struct pccl_session **ret)
{
	pcclResult_t r = pcclSuccess;

	pthread_mutex_lock(&current_lock);
	if (current && !pccl_session_check(current)) {
		pccl_session_unref(current);
		current = NULL;
	}
	if (!current)
		r = open_session(&current);
	if (r == pcclSuccess)
		*ret = pccl_session_ref(current);
	pthread_mutex_unlock(&current_lock);
	return r;
}
