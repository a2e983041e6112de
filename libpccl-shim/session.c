/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_sys.h"
#include "libpccl-shim/beat.h"
#include "libpccl-shim/fork.h"
#include "libpccl-shim/handed.h"
#include "libpccl-shim/spawn.h"
#include "libpccl-shim/thread.h"

#define HELLO_TIMEOUT_MS 10000u
#define MS_NS            ((uint64_t)1000000)
#define SHORT_TRIES      10u /* 1 s in all, see may_pass */
#define POST_NS          (300 * MS_NS)

struct pccl_session {
	_Atomic uint32_t refs;
	struct pccl_fork_fd sock;
	char path[PCCL_SOCKET_PATH_MAX];
	bool private;       /* a private agent of this user */
	uint32_t hash_type; /* see pccl_session_hash_type */

	pthread_mutex_t lock; /* guards all below */
	bool reading;         /* a thread is the leader */
	bool dead, may_return, in_order;
	uint32_t code; /* when dead: pcclResult_t; text is its sentence */
	char text[WL_TEXT_MAX];
	uint32_t last_req;
	struct pccl_call *waiters; /* calls that have not ended */
	uint64_t lease_ns;
	uint64_t heard_ns;      /* time of the agent's last packet */
	struct pccl_call probe; /* a request that a running agent answers at once */
	bool probing;
	bool sulks; /* the agent has left a posted request unanswered, and has sent nothing since */
	struct pccl_handed_list handed;
};

static _Thread_local struct pccl_ender of_thread;

struct pccl_ender pccl_session_endable(struct pccl_ender ender)
{
	struct pccl_ender before = of_thread;

	of_thread = ender;
	return before;
}

struct pccl_session *pccl_session_ref(struct pccl_session *s)
{
	atomic_fetch_add(&s->refs, 1);
	return s;
}

void pccl_session_unref(struct pccl_session *s)
{
	struct pccl_call *w;

	if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	while ((w = s->waiters) != NULL) { /* only orphans can be left */
		s->waiters = w->next;
		if (w->orphan)
			free(w);
	}
	pccl_handed_free(&s->handed);
	pccl_fork_close(&s->sock);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

uint32_t pccl_session_hash_type(const struct pccl_session *s)
{
	return s->hash_type;
}

int pccl_session_fd(const struct pccl_session *s)
{
	return s->sock.fd;
}

static void close_fds(int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

/* Takes the descriptors out of a packet; surplus ones are closed and make the packet malformed. */
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
			fd = cc_fd_above_standard(fd);
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

/* Does this process lack a free descriptor? Sets errno to the reason. */
static bool cannot_open(int fd)
{
	int another = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (another >= 0)
		close(another);
	return another < 0;
}

/* Turns a reply into an error, because this process had no free descriptors for those in the
 * packet. A region that was handed over without a request can be requested later. */
static void say_lost(struct wl_reply *reply, int *fds, unsigned *n_fds)
{
	char limit[CC_LIMIT_TEXT];

	close_fds(fds, *n_fds);
	*n_fds = 0;
	reply->code = pcclOutOfMemory;
	snprintf(reply->text, sizeof reply->text,
		"this process has no free descriptors for the agent's reply: %s",
		cc_limit_text(EMFILE, limit, sizeof limit));
}

/* Sleeps and returns true if the call is to be repeated: the kernel lacked a resource (errno) that
 * may be free again after the sleep. */
static bool may_pass(unsigned *tries)
{
	struct timespec pause = {.tv_nsec = 1000000L << *tries};

	if (errno == EAGAIN || !cc_limit_is(errno) || *tries == SHORT_TRIES)
		return false;
	++*tries;
	nanosleep(&pause, NULL);
	return true;
}

/* Receives one packet. Fails with CC_ERR_EOF, CC_ERR_AGAIN (with MSG_DONTWAIT), CC_ERR_PROTO with
 * *why, CC_ERR_NOMEM with errno, or CC_ERR_IO. */
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
	unsigned tries = 0;
	ssize_t n;
	bool lost;
	int err;

	do {
		mh.msg_control = control.buf;
		mh.msg_controllen = sizeof control.buf;
		n = recvmsg(s->sock.fd, &mh, flags | MSG_CMSG_CLOEXEC);
		/* If the agent died with unread requests, ECONNRESET comes once, before the packets
		 * that it had sent. */
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET || may_pass(&tries)));
	if (n < 0)
		return errno == EAGAIN      ? CC_ERR_AGAIN
		       : cc_limit_is(errno) ? CC_ERR_NOMEM
					    : CC_ERR_IO;
	*why = "too large, or with too many descriptors";
	lost = (mh.msg_flags & MSG_CTRUNC) && cannot_open(s->sock.fd);
	if (lost)
		mh.msg_flags &= ~MSG_CTRUNC;
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
	else if (lost)
		say_lost(reply, fds, n_fds);
	return err;
}

static bool keep_candidate(
	struct pccl_session *s, const struct wl_reply *handed, int *fds, unsigned n_fds)
{
	/* Without its descriptor the region is dropped. It is requested when it is needed. */
	bool fine = (n_fds == 0 && handed->code == pcclOutOfMemory) ||
		    (n_fds == 1 && pccl_handed_add(&s->handed, handed, fds[0]));

	close_fds(fds, n_fds);
	return fine;
}

/* With the lock held: reads the remaining packets. Keeps regions that were handed over and drops
 * the rest. */
static void read_handed(struct pccl_session *s)
{
	int fds[WL_FDS_MAX];
	struct wl_reply reply;
	const char *why;
	unsigned n_fds;

	for (unsigned i = 0; i < PCCL_HANDED_MAX; i++) {
		if (receive(s, MSG_DONTWAIT, &reply, fds, &n_fds, &why) < 0)
			return;
		if (wire_local_is_handover(&reply))
			keep_candidate(s, &reply, fds, n_fds);
		else
			close_fds(fds, n_fds);
	}
}

/* With the lock held: ends the session. If it has ended already, the first reason stays. */
static void set_dead(struct pccl_session *s, uint32_t code, bool may_return, const char *text)
{
	if (s->dead)
		return;
	s->dead = true;
	s->may_return = may_return;
	s->code = code;
	snprintf(s->text, sizeof s->text, "%s", text);
	if (pccl_fork_holds(&s->sock)) {
		read_handed(s);
		/* Also wakes a leader that sleeps in poll(). */
		shutdown(s->sock.fd, SHUT_RDWR);
	} else {
		pccl_fork_forget_lost();
	}
	for (struct pccl_call *w = s->waiters; w; w = w->next)
		if (w->cond)
			pthread_cond_signal(w->cond);
}

/* With the lock held: ends the session if the program has closed the socket. If a thread waits on
 * the descriptor in poll(), neither that poll() nor the agent notices that the descriptor was
 * closed. So the library checks the descriptor. */
static void check_socket(struct pccl_session *s)
{
	char text[WL_TEXT_MAX];

	if (s->dead || pccl_fork_holds(&s->sock))
		return;
	snprintf(text, sizeof text,
		"this program has closed descriptor %d, the library's connection with the agent "
		"(closefrom() and close_range() do that): call pcclConnect again, and close "
		"descriptors before the first pcclConnect or pcclMemAlloc",
		s->sock.fd);
	set_dead(s, pcclAgentUnavailable, false, text);
}

static void add_waiter(struct pccl_session *s, struct pccl_call *w)
{
	do
		w->req_id = ++s->last_req;
	while (w->req_id == 0);
	w->next = s->waiters;
	s->waiters = w;
}

static void remove_waiter(struct pccl_session *s, struct pccl_call *w)
{
	struct pccl_call **p = &s->waiters;

	while (*p != w)
		p = &(*p)->next;
	*p = w->next;
}

/* With the lock held: ends the session because this process cannot use its socket, although the
 * agent lives. errno is the reason. */
static void set_short(struct pccl_session *s, const char *call)
{
	char limit[CC_LIMIT_TEXT], text[WL_TEXT_MAX];

	snprintf(text, sizeof text, "this process cannot talk with its agent: %s",
		cc_limit_call_text(call, errno, 0, limit, sizeof limit));
	set_dead(s, pcclOutOfMemory, false, text);
}

/* With the lock held: if the socket has room, sends a request for whose answer no thread waits. */
static void send_orphan(struct pccl_session *s, struct wl_request *request)
{
	struct pccl_call *w = calloc(1, sizeof *w);
	uint8_t packet[WL_PACKET_MAX];
	int len;

	if (!w)
		return;
	*w = (struct pccl_call){
		.orphan = true, .prompt = true, .type = request->type, .since_ns = cc_now_ns()};
	add_waiter(s, w);
	request->req_id = w->req_id;
	len = wire_local_put_request(request, packet);
	if (len > 0 && send(s->sock.fd, packet, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) == len)
		return;
	remove_waiter(s, w);
	free(w);
}

/* With the lock held: gives back the resources of an answer for which no thread waits. */
static void give_back(struct pccl_session *s, enum wl_type type, const struct wl_reply *reply)
{
	struct wl_request request = {.type = WL_REGION_FREE, .region = reply->region};

	check_socket(s);
	if (reply->code != pcclSuccess || s->dead)
		return;
	if (type == WL_COMM_CREATE)
		request = (struct wl_request){.type = WL_COMM_DESTROY, .comm = reply->comm};
	else if (type != WL_REGION_ALLOC && type != WL_REGION_ADOPT)
		return;
	send_orphan(s, &request);
}

/* With the lock held: hands a result of `receive` to the call to which it belongs. */
static void deliver(struct pccl_session *s, int err, const struct wl_reply *reply, int *fds,
	unsigned n_fds, const char *why)
{
	char text[WL_TEXT_MAX];
	struct pccl_call *w;

	if (err == CC_ERR_AGAIN)
		return;
	if (err == CC_ERR_NOMEM) {
		set_short(s, "recvmsg");
		return;
	}
	if (err < 0) {
		bool malformed =
			err == CC_ERR_PROTO || err == CC_ERR_VERSION || err == CC_ERR_INVAL;

		if (malformed)
			snprintf(text, sizeof text, "the agent sent a malformed packet: %s", why);
		else
			snprintf(text, sizeof text, "the agent closed the connection");
		set_dead(s, pcclAgentUnavailable, !malformed, text);
		return;
	}
	s->heard_ns = cc_now_ns();
	s->sulks = false;
	if (wire_local_is_handover(reply)) {
		if (!keep_candidate(s, reply, fds, n_fds))
			set_dead(s, pcclAgentUnavailable, false,
				"the agent handed over memory that was not expected, or too much "
				"of it");
		return;
	}
	if (reply->req_id == 0) {
		uint32_t code = reply->code ? reply->code : pcclAgentUnavailable;

		close_fds(fds, n_fds);
		/* An agent that ends makes room for another agent. Any other reason concerns this
		 * process. */
		s->in_order = !s->dead;
		set_dead(s, code, code == pcclAgentUnavailable,
			reply->text[0] ? reply->text : "the agent ended the session");
		return;
	}
	for (w = s->waiters; w && w->req_id != reply->req_id; w = w->next)
		;
	if (!w || w->done) {
		close_fds(fds, n_fds);
		set_dead(s, pcclAgentUnavailable, false,
			"the agent answered a request that was not made");
		return;
	}
	if (w == &s->probe) {
		close_fds(fds, n_fds);
		remove_waiter(s, w);
		s->probing = false;
		return;
	}
	if (w->orphan) {
		close_fds(fds, n_fds);
		remove_waiter(s, w);
		give_back(s, w->type, reply);
		free(w);
		return;
	}
	w->reply = *reply;
	memcpy(w->fds, fds, n_fds * sizeof *fds);
	w->n_fds = n_fds;
	w->done = true;
	pthread_cond_signal(w->cond);
}

/* With the lock held: returns the time until which the agent must have sent a packet. This is one
 * lease after the later of two times: that of the agent's last packet, and that of the oldest
 * request that the agent answers without other processes. Returns UINT64_MAX if no packet is due.
 */
static uint64_t due_ns(const struct pccl_session *s)
{
	uint64_t oldest = UINT64_MAX;

	for (const struct pccl_call *w = s->waiters; w; w = w->next)
		if (w->prompt && !w->done && w->since_ns < oldest)
			oldest = w->since_ns;
	if (oldest == UINT64_MAX)
		return oldest;
	return (oldest > s->heard_ns ? oldest : s->heard_ns) + s->lease_ns;
}

/* With the lock held: returns the time for a probe: a quarter of the lease after the later of two
 * times, that of the agent's last packet and that of the oldest request in flight. */
static uint64_t probe_at_ns(const struct pccl_session *s)
{
	uint64_t begin = s->waiters ? UINT64_MAX : 0;

	for (const struct pccl_call *w = s->waiters; w; w = w->next)
		if (w->since_ns < begin)
			begin = w->since_ns;
	return (begin > s->heard_ns ? begin : s->heard_ns) + s->lease_ns / 4;
}

/* With the lock held: sends a request that the agent refuses at once. The refusal shows that the
 * agent runs. */
static void send_probe(struct pccl_session *s)
{
	struct wl_request request = {.type = WL_REGION_FREE, .region = 0};
	uint8_t packet[WL_PACKET_MAX];
	int len;

	s->probing = true;
	s->probe = (struct pccl_call){.prompt = true, .since_ns = cc_now_ns()};
	add_waiter(s, &s->probe);
	request.req_id = s->probe.req_id;
	len = wire_local_put_request(&request, packet);
	/* If the agent does not read any more, the socket has no room: then no answer comes, which
	 * shows that the agent does not run. */
	if (len > 0 && send(s->sock.fd, packet, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
}

/* With the lock held, called by threads that wait for the agent: ends the session if the agent has
 * been silent for too long, or sends a probe. */
static void mind_silence(struct pccl_session *s)
{
	uint64_t now = cc_now_ns();
	char text[WL_TEXT_MAX];

	if (s->dead)
		return;
	if (now >= due_ns(s)) {
		snprintf(text, sizeof text,
			"the agent has not answered for %llu ms, as if it were stopped",
			(unsigned long long)(s->lease_ns / MS_NS));
		set_dead(s, pcclAgentUnavailable, false, text);
	} else if (!s->probing && now >= probe_at_ns(s)) {
		send_probe(s);
	}
}

/* With the lock held: returns how long a leader may sleep, in milliseconds for poll(). */
static int leaders_nap(const struct pccl_session *s)
{
	uint64_t at = due_ns(s), now = cc_now_ns(), probe = probe_at_ns(s);

	if (!s->probing && probe < at)
		at = probe;
	return at <= now ? 0 : (int)((at - now) / MS_NS % INT32_MAX) + 1;
}

/* With the lock held: reads a packet if there is one. Holding the lock ensures that a packet which
 * has left the socket has also reached its call. */
static bool read_one(struct pccl_session *s)
{
	int fds[WL_FDS_MAX], err;
	struct wl_reply reply;
	const char *why = "";
	unsigned n_fds = 0;

	err = receive(s, MSG_DONTWAIT, &reply, fds, &n_fds, &why);
	deliver(s, err, &reply, fds, n_fds, why);
	return err != CC_ERR_AGAIN;
}

/* Waits for a packet as the leader, and handles it. Called with the lock held, and releases it
 * while it waits. */
static void lead(struct pccl_session *s, int longest_ms)
{
	struct pollfd p = {.fd = s->sock.fd, .events = POLLIN};
	int nap = leaders_nap(s);

	if (nap > longest_ms)
		nap = longest_ms;

	s->reading = true;
	pthread_mutex_unlock(&s->lock);
	poll(&p, 1, nap);
	pthread_mutex_lock(&s->lock);
	s->reading = false;
	check_socket(s);
	if (!s->dead && !read_one(s))
		mind_silence(s);
}

/* With the lock held: wakes a thread that still waits, so that it becomes the leader. */
static void pass_lead(struct pccl_session *s)
{
	if (s->reading)
		return;
	for (struct pccl_call *w = s->waiters; w; w = w->next) {
		if (!w->done && w->cond) {
			pthread_cond_signal(w->cond);
			return;
		}
	}
}

/* Sends a request. Called without the lock: a packet is sent whole, so the send may block until the
 * agent reads, for at most the lease. Fails with CC_ERR_TIMEOUT, CC_ERR_NOMEM with errno, or
 * CC_ERR_EOF. */
static int send_request(struct pccl_session *s, const struct wl_request *request, int fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {0};
	uint8_t packet[WL_PACKET_MAX];
	int len = wire_local_put_request(request, packet);
	struct iovec iov = {.iov_base = packet, .iov_len = (size_t)len};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	unsigned tries = 0;
	ssize_t n;

	if (len < 0)
		return len;
	if (fd >= 0) {
		struct cmsghdr *c;

		mh.msg_control = control.buf;
		mh.msg_controllen = sizeof control.buf;
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
	}
	do
		n = sendmsg(s->sock.fd, &mh, MSG_NOSIGNAL);
	while (n < 0 && (errno == EINTR || may_pass(&tries)));
	if (n >= 0)
		return 0;
	if (errno == EAGAIN)
		return CC_ERR_TIMEOUT;
	if (cc_limit_is(errno))
		return CC_ERR_NOMEM;
	/* After this shutdown the agent closes the session, too, and threads that wait for an
	 * answer notice this. */
	if (pccl_fork_holds(&s->sock))
		shutdown(s->sock.fd, SHUT_WR);
	return CC_ERR_EOF;
}

static bool is_prompt(enum wl_type type)
{
	return type != WL_COMM_CONNECT && type != WL_COMM_ATTACH && type != WL_VOTE;
}

static pcclResult_t begin(struct pccl_session *s, struct pccl_call *call,
	struct wl_request *request, int fd, pthread_cond_t *cond)
{
	bool dead;
	int err;

	*call = (struct pccl_call){.prompt = is_prompt(request->type),
		.type = request->type,
		.cond = cond,
		.since_ns = cc_now_ns()};
	pthread_mutex_lock(&s->lock);
	check_socket(s);
	dead = s->dead;
	add_waiter(s, call);
	request->req_id = call->req_id;
	pthread_mutex_unlock(&s->lock);
	if (dead) /* the wait returns the reason */
		return pcclSuccess;
	err = send_request(s, request, fd);
	/* After a failed send there may still be a goodbye to read, so continue until the end of
	 * file. */
	if (err == 0 || err == CC_ERR_EOF)
		return pcclSuccess;
	pthread_mutex_lock(&s->lock);
	if (err == CC_ERR_TIMEOUT) {
		set_dead(s, pcclAgentUnavailable, false,
			"the agent has read no request for as long as its lease, as if it were "
			"stopped; see its log");
		err = 0;
	} else if (err == CC_ERR_NOMEM) {
		set_short(s, "sendmsg");
		err = 0;
	} else {
		remove_waiter(s, call);
	}
	pthread_mutex_unlock(&s->lock);
	if (err == 0)
		return pcclSuccess;
	return pccl_fail(pcclInternalError, "a request cannot be encoded: %s", cc_err_str(err));
}

pcclResult_t pccl_session_begin(struct pccl_session *s, struct pccl_call *call,
	struct wl_request *request, pthread_cond_t *cond)
{
	return begin(s, call, request, -1, cond);
}

/* With the lock held: returns the index of a call that is done, or -1. */
static int find_done(struct pccl_call *const *calls, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (calls[i] && calls[i]->done)
			return (int)i;
	return -1;
}

int pccl_session_wait(
	struct pccl_session *s, struct pccl_call *const *calls, unsigned n, pthread_cond_t *cond)
{
	int i;

	pthread_mutex_lock(&s->lock);
	while ((i = find_done(calls, n)) < 0 && !s->dead) {
		if (s->reading)
			pthread_cond_wait(cond, &s->lock);
		else
			lead(s, INT32_MAX);
	}
	pass_lead(s);
	pthread_mutex_unlock(&s->lock);
	return i;
}

pcclResult_t pccl_session_end(struct pccl_session *s, struct pccl_call *call,
	struct wl_reply *reply, int *fds, unsigned want_fds)
{
	pthread_mutex_lock(&s->lock);
	remove_waiter(s, call);
	pass_lead(s);
	pthread_mutex_unlock(&s->lock);
	reply->req_id = 0;
	if (!call->done)
		return pccl_session_fail(s);
	*reply = call->reply;
	if (reply->code != pcclSuccess) {
		close_fds(call->fds, call->n_fds);
		return pccl_fail(pccl_fail_code(reply->code), "%s",
			reply->text[0] ? reply->text : "the agent refused and gave no reason");
	}
	if (call->n_fds != want_fds) {
		close_fds(call->fds, call->n_fds);
		return pccl_fail(pcclInternalError,
			"the agent's answer came with %u descriptors instead of %u", call->n_fds,
			want_fds);
	}
	for (unsigned i = 0; i < want_fds; i++)
		fds[i] = call->fds[i];
	return pcclSuccess;
}

/* Waits until the call is done, the session has ended, or the ender has ended the call. */
static void wait_or(struct pccl_session *s, struct pccl_call *call, struct pccl_ender *ender)
{
	/* A call that is answered at once does not wait, so the thread's ender is not called for
	 * it. */
	bool asked = ender != &of_thread;

	pthread_mutex_lock(&s->lock);
	while (!call->done && !s->dead && !ender->ended) {
		pthread_mutex_unlock(&s->lock);
		ender->ended = asked && ender->end(ender->arg);
		asked = true;
		pthread_mutex_lock(&s->lock);
		if (call->done || s->dead || ender->ended)
			break;
		if (s->reading)
			pccl_thread_wait(call->cond, &s->lock);
		else
			lead(s, PCCL_LOOK_MS);
	}
	pass_lead(s);
	pthread_mutex_unlock(&s->lock);
}

/* Makes the call an orphan, because no thread waits for it any more. Takes over its memory. */
static void abandon(struct pccl_session *s, struct pccl_call *call)
{
	pthread_mutex_lock(&s->lock);
	call->orphan = true;
	call->cond = NULL;
	if (call->done || s->dead) {
		remove_waiter(s, call);
		close_fds(call->fds, call->n_fds);
		if (call->done)
			give_back(s, call->type, &call->reply);
		free(call);
	}
	pass_lead(s);
	pthread_mutex_unlock(&s->lock);
}

static pcclResult_t call_with_fd(struct pccl_session *s, struct wl_request *request, int fd,
	struct wl_reply *reply, int *fds, unsigned want_fds, struct pccl_ender *ender)
{
	struct pccl_call *call = calloc(1, sizeof *call);
	pthread_cond_t cond;
	pcclResult_t r;

	reply->req_id = 0;
	if (!call)
		return pccl_fail_memory("no memory for a request");
	if (!ender && of_thread.end)
		ender = &of_thread;
	pthread_cond_init(&cond, NULL);
	r = begin(s, call, request, fd, &cond);
	if (r == pcclSuccess && ender)
		wait_or(s, call, ender);
	if (r == pcclSuccess && ender && ender->ended) {
		abandon(s, call);
		call = NULL;
		r = pccl_fail(pcclInterrupted, "pcclInterrupt was called");
	} else if (r == pcclSuccess) {
		pccl_session_wait(s, &call, 1, &cond);
		r = pccl_session_end(s, call, reply, fds, want_fds);
	}
	pthread_cond_destroy(&cond);
	free(call);
	return r;
}

struct post {
	struct pccl_session *s;
	uint64_t until_ns;
};

static bool is_late(void *arg)
{
	const struct post *p = arg;
	bool late;

	pthread_mutex_lock(&p->s->lock);
	late = p->s->sulks || cc_now_ns() >= p->until_ns;
	p->s->sulks = late;
	pthread_mutex_unlock(&p->s->lock);
	return late;
}

uint32_t pccl_session_post(struct pccl_session *s, struct wl_request *request)
{
	struct post p = {.s = s, .until_ns = cc_now_ns() + POST_NS};
	struct pccl_ender late = {.end = is_late, .arg = &p};
	char text[PCCL_TEXT_MAX];
	struct wl_reply reply;

	if (!pccl_session_check(s))
		return 0;
	pccl_fail_text(text);
	(void)call_with_fd(s, request, -1, &reply, NULL, 0, &late);
	(void)pccl_fail(pcclSuccess, "%s", text);
	return late.ended ? request->req_id : 0;
}

/* With the lock held: is the request with this id still unanswered? */
static bool is_unanswered(const struct pccl_session *s, uint32_t req_id)
{
	const struct pccl_call *w = s->waiters;

	while (w && w->req_id != req_id)
		w = w->next;
	return w != NULL;
}

/* With the lock held: is the time of pccl_session_await over? This time is shorter if the agent has
 * sent nothing since the probe. */
static bool is_over(const struct pccl_session *s, uint32_t ms)
{
	bool awake = s->heard_ns > s->probe.since_ns;

	return ms > 0 && cc_now_ns() - s->probe.since_ns >= (awake ? ms * MS_NS : POST_NS);
}

void pccl_session_await(struct pccl_session *s, uint32_t post, uint32_t ms)
{
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER; /* never signalled: the loop polls */

	pthread_mutex_lock(&s->lock);
	check_socket(s);
	if (ms > 0 && !s->dead && !s->probing)
		send_probe(s);
	while (!s->dead && is_unanswered(s, post) && !is_over(s, ms)) {
		if (s->reading)
			pccl_thread_wait(&cond, &s->lock);
		else
			lead(s, PCCL_LOOK_MS);
	}
	pass_lead(s);
	pthread_mutex_unlock(&s->lock);
}

pcclResult_t pccl_session_call(struct pccl_session *s, struct wl_request *request,
	struct wl_reply *reply, int *fds, unsigned want_fds)
{
	return call_with_fd(s, request, -1, reply, fds, want_fds, NULL);
}

pcclResult_t pccl_session_call_or(struct pccl_session *s, struct wl_request *request,
	struct wl_reply *reply, struct pccl_ender *ender)
{
	return call_with_fd(s, request, -1, reply, NULL, 0, ender);
}

pcclResult_t pccl_session_adopt(
	struct pccl_session *s, struct wl_request *request, int fd, struct wl_reply *reply)
{
	return call_with_fd(s, request, fd, reply, NULL, 0, NULL);
}

static bool check(struct pccl_session *s, bool watch)
{
	bool alive;

	pthread_mutex_lock(&s->lock);
	check_socket(s);
	/* If there is a leader, it reads all packets: if another thread read a packet, the leader
	 * could miss its own answer. If there is no leader, there may be a goodbye or the end of
	 * file to read.
	 */
	while (!s->dead && !s->reading && read_one(s))
		;
	if (watch)
		mind_silence(s);
	pass_lead(s);
	alive = !s->dead;
	pthread_mutex_unlock(&s->lock);
	return alive;
}

bool pccl_session_check(struct pccl_session *s)
{
	return check(s, false);
}

bool pccl_session_watch(struct pccl_session *s)
{
	return check(s, true);
}

bool pccl_session_take_result(
	struct pccl_session *s, uint32_t comm, uint64_t region, struct pccl_map *ret)
{
	bool found;

	pthread_mutex_lock(&s->lock);
	found = pccl_handed_take(&s->handed, comm, region, ret);
	pthread_mutex_unlock(&s->lock);
	return found;
}

void pccl_session_drop_results(struct pccl_session *s, uint32_t comm)
{
	pthread_mutex_lock(&s->lock);
	pccl_handed_drop(&s->handed, comm);
	pthread_mutex_unlock(&s->lock);
}

bool pccl_session_may_return(struct pccl_session *s)
{
	bool may;

	pthread_mutex_lock(&s->lock);
	may = s->dead && s->may_return;
	pthread_mutex_unlock(&s->lock);
	return may;
}

bool pccl_session_ended_in_order(struct pccl_session *s)
{
	bool is;

	pthread_mutex_lock(&s->lock);
	is = s->dead && s->in_order;
	pthread_mutex_unlock(&s->lock);
	return is;
}

pcclResult_t pccl_session_fail(struct pccl_session *s)
{
	char text[WL_TEXT_MAX];
	uint32_t code;

	pthread_mutex_lock(&s->lock);
	code = s->code;
	memcpy(text, s->text, sizeof text);
	pthread_mutex_unlock(&s->lock);
	return pccl_fail(pccl_fail_code(code), "the session with the agent at %s has ended: %s",
		s->path, text);
}

/* Sends the hello. If the agent supports beats, the answer comes with the socket for them. */
static pcclResult_t call_hello(
	struct pccl_session *s, struct wl_request *request, struct wl_reply *reply, int *ret_beat)
{
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct pccl_call call, *calls = &call;
	struct pccl_ender *ender = of_thread.end ? &of_thread : NULL;
	pcclResult_t r = begin(s, &call, request, -1, &cond);
	bool beats;

	if (r == pcclSuccess && ender)
		wait_or(s, &call, ender);
	if (r == pcclSuccess && ender && ender->ended) {
		pthread_mutex_lock(&s->lock);
		set_dead(s, pcclInterrupted, false, "pcclInterrupt was called");
		pthread_mutex_unlock(&s->lock);
	}
	if (r == pcclSuccess) {
		pccl_session_wait(s, &calls, 1, &cond);
		beats = call.done && (call.reply.features & WL_BEAT);
		r = pccl_session_end(s, &call, reply, ret_beat, beats ? 1 : 0);
	}
	pthread_cond_destroy(&cond);
	return r;
}

static pcclResult_t hello(struct pccl_session *s, uint32_t lease_ms)
{
	struct wl_request request = {.type = WL_HELLO,
		.version_min = WL_VERSION_MIN,
		.version_max = WL_VERSION_MAX,
		.features = WL_BEAT};
	struct timeval bound = {
		.tv_sec = lease_ms / 1000, .tv_usec = (long)(lease_ms % 1000) * 1000};
	struct wl_reply reply = {0};
	pcclResult_t r;
	int beat = -1;

	snprintf(request.name, sizeof request.name, "%s", program_invocation_short_name);
	setsockopt(s->sock.fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
	s->lease_ns = (lease_ms < HELLO_TIMEOUT_MS ? lease_ms : HELLO_TIMEOUT_MS) * MS_NS;
	s->probing = true; /* send no probe before the answer to the hello */
	r = call_hello(s, &request, &reply, &beat);
	s->probing = false;
	s->lease_ns = lease_ms * MS_NS;
	if (beat >= 0)
		pccl_beat_start(beat);
	if (r == pcclVersionMismatch ||
		(r == pcclSuccess &&
			(reply.version < WL_VERSION_MIN || reply.version > WL_VERSION_MAX)))
		return pccl_fail(pcclVersionMismatch,
			"this library speaks versions %u to %u of the local protocol, the agent at "
			"%s speaks %u to %u: install matching releases",
			WL_VERSION_MIN, WL_VERSION_MAX, s->path,
			r == pcclSuccess ? reply.version : reply.version_min,
			r == pcclSuccess ? reply.version : reply.version_max);
	s->hash_type = reply.hash_type;
	return r;
}

/* Tries to open a session. Sets *again if the agent went away before it answered the hello. A
 * private agent that was idle does this, and another agent may start at once. */
static pcclResult_t try_session(const struct pccl_session *before, uint32_t lease_ms,
	struct pccl_session **ret, bool *again)
{
	struct pccl_session *s = calloc(1, sizeof *s);
	pcclResult_t r;
	int fd = -1;

	*again = false;
	if (!s)
		return pccl_fail_memory("no memory for a session");
	if (before) {
		memcpy(s->path, before->path, sizeof s->path);
		s->private = before->private;
		r = pccl_spawn_reconnect(&fd, s->path, s->private);
	} else {
		r = pccl_spawn_connect(&fd, s->path, &s->private);
	}
	if (r != pcclSuccess) {
		free(s);
		return r;
	}
	atomic_init(&s->refs, 1);
	pthread_mutex_init(&s->lock, NULL);
	pccl_fork_add(&s->sock, fd);
	s->heard_ns = cc_now_ns();
	r = hello(s, lease_ms);
	if (r != pcclSuccess) {
		pccl_session_check(s);
		*again = pccl_session_may_return(s);
		pccl_session_unref(s);
		return r;
	}
	*ret = s;
	return pcclSuccess;
}

pcclResult_t pccl_session_open(
	const struct pccl_session *before, uint32_t lease_ms, struct pccl_session **ret)
{
	bool again;
	pcclResult_t r = try_session(before, lease_ms, ret, &again);

	return r == pcclAgentUnavailable && again && !before
		       ? try_session(before, lease_ms, ret, &again)
		       : r;
}
