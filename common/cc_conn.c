/* SPDX-License-Identifier: MIT
 *
 * The buffered streams of cc_loop.h, based on bufferevents. Only this file and cc_loop.c use
 * libevent.
 */
#include "common/cc_loop.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_loop_internal.h"
#include "common/cc_sys.h"

#define DEFAULT_MAX_OUT ((size_t)16 << 20)
#define DEFAULT_MAX_IN  ((size_t)4 << 20)
#define REF_MIN         ((size_t)4 << 10) /* copying fewer bytes is cheaper than a separate write */
#define WRITE_MAX       ((size_t)1 << 20) /* bytes of one write; libevent's own limit is 16 KiB */

static const struct timeval close_linger = {2, 0};

struct cc_conn {
	struct cc_loop *loop;
	struct bufferevent *bev; /* NULL once closed */
	const struct cc_conn_ops *ops;
	void *arg;
	size_t max_in, max_out;
	unsigned in_callback; /* depth of callbacks; the outermost one frees the connection */
	bool connecting, paused;
	bool eof;  /* the other side will send no more */
	bool dead; /* to be freed when no callback runs */
	/* The owner has closed the connection, but output is still to be written. The connection is
	 * in the loop's list, and linger_end limits the time. */
	bool lingering;
	struct event *linger_end;
	struct cc_conn *prev, *next;
	/* The list of the loop that contains this connection because its queued output has not been
	 * written yet, or NULL. */
	struct cc_conn **unsent;
	struct cc_conn *prev_u, *next_u;
};

static void release_if_dead(struct cc_conn *c)
{
	if (c->dead && c->in_callback == 0)
		free(c);
}

static void forget_unsent(struct cc_conn *c)
{
	if (c->unsent)
		DL_DELETE2(*c->unsent, c, prev_u, next_u);
	c->unsent = NULL;
}

/* Watches the stream. If it cannot be watched, no event would ever come, so the stream fails after
 * the caller has returned. */
static void enable(struct cc_conn *c, short what)
{
	if (bufferevent_enable(c->bev, what) < 0)
		bufferevent_trigger_event(c->bev, BEV_EVENT_ERROR, BEV_OPT_DEFER_CALLBACKS);
}

/* Closes the socket now. No callback follows. */
static void drop(struct cc_conn *c)
{
	int fd;

	if (!c->bev)
		return;
	forget_unsent(c);
	if (c->lingering) {
		event_free(c->linger_end);
		DL_DELETE(*cc_loop_lingering(c->loop), c);
	}
	fd = bufferevent_getfd(c->bev);
	/* A bufferevent that is freed inside a callback keeps its events for a while. A new
	 * descriptor with the same number would then never be polled. */
	bufferevent_setfd(c->bev, -1);
	bufferevent_free(c->bev);
	c->bev = NULL;
	c->dead = true;
	if (fd >= 0)
		close(fd);
}

static size_t queued(const struct cc_conn *c)
{
	return evbuffer_get_length(bufferevent_get_output(c->bev));
}

static void on_linger_end(evutil_socket_t fd, short what, void *arg)
{
	struct cc_conn *c = arg;

	(void)fd;
	(void)what;
	drop(c);
	release_if_dead(c);
}

/*
 * Continues without the owner until the output has been written. Input is read and thrown away
 * meanwhile, because closing a socket with unread input resets the connection, and the other side
 * might lose our last bytes.
 */
static bool linger(struct cc_conn *c)
{
	c->linger_end = evtimer_new(cc_loop_base(c->loop), on_linger_end, c);
	if (!c->linger_end || event_add(c->linger_end, &close_linger) < 0) {
		if (c->linger_end)
			event_free(c->linger_end);
		return false;
	}
	c->lingering = true;
	DL_APPEND(*cc_loop_lingering(c->loop), c);
	bufferevent_set_timeouts(c->bev, NULL, NULL);
	if (!c->eof)
		enable(c, EV_READ);
	return true;
}

void cc_conn_drop_lingering(struct cc_loop *l)
{
	struct cc_conn *c, *tmp;

	DL_FOREACH_SAFE (*cc_loop_lingering(l), c, tmp) {
		drop(c);
		release_if_dead(c);
	}
}

/* Closes the connection and calls on_closed. If the other side has only stopped sending, it may
 * still read, so the queued output is written first. */
static void fail(struct cc_conn *c, int err, const char *text)
{
	if (err != CC_ERR_EOF || queued(c) == 0 || !linger(c))
		drop(c);
	if (c->ops->on_closed)
		c->ops->on_closed(c->arg, err, text);
}

static void consume(struct cc_conn *c)
{
	while (c->bev && !c->lingering && !c->paused) {
		struct evbuffer *in = bufferevent_get_input(c->bev);
		size_t len = evbuffer_get_length(in);
		long used;

		if (len == 0)
			return;
		used = c->ops->on_data(c->arg, evbuffer_pullup(in, -1), len);
		if (!c->bev || c->lingering)
			return;
		if (used < 0) {
			fail(c, (int)used, cc_err_str((int)used));
			return;
		}
		evbuffer_drain(in, (size_t)used);
		if (used == 0) {
			if (len >= c->max_in && !c->paused)
				fail(c, CC_ERR_LIMIT, "too much input that has not been read");
			return;
		}
	}
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct cc_conn *c = arg;

	c->in_callback++;
	if (c->lingering)
		evbuffer_drain(bufferevent_get_input(bev), SIZE_MAX);
	else
		consume(c);
	c->in_callback--;
	release_if_dead(c);
}

/* libevent calls this when the output buffer has become empty, but new output may have been queued
 * since then. If no output is queued, libevent no longer needs to watch whether the socket is
 * writable. */
static void on_write(struct bufferevent *bev, void *arg)
{
	struct cc_conn *c = arg;

	if (queued(c) > 0)
		return;
	if (!c->connecting)
		bufferevent_disable(bev, EV_WRITE);
	c->in_callback++;
	if (c->lingering && c->eof)
		drop(c);
	else if (c->lingering)
		shutdown(bufferevent_getfd(c->bev), SHUT_WR);
	c->in_callback--;
	release_if_dead(c);
}

/* Writes without asking first whether the socket is writable: the question would cost three system
 * calls. libevent writes the bytes that the socket does not take now, and detects errors. */
static void send_now(struct cc_conn *c)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);

	forget_unsent(c);
	evbuffer_unfreeze(out, 1);
	(void)evbuffer_write(out, bufferevent_getfd(c->bev));
	evbuffer_freeze(out, 1);
	if (queued(c) > 0)
		enable(c, EV_WRITE);
	else
		on_write(c->bev, c);
}

static void send_unsent(void *arg)
{
	struct cc_loop *l = arg;

	while (*cc_loop_unsent(l))
		send_now(*cc_loop_unsent(l));
}

void cc_conn_send_corked(struct cc_loop *l)
{
	while (*cc_loop_corked(l))
		send_now(*cc_loop_corked(l));
}

static bool may_write(const struct cc_conn *c)
{
	return !c->connecting && !(bufferevent_get_enabled(c->bev) & EV_WRITE);
}

/* Writes at the end of this iteration, together with all bytes that are queued until then. */
static void send_soon(struct cc_conn *c)
{
	struct cc_conn **list = cc_loop_unsent(c->loop);

	if (c->unsent == list || !may_write(c))
		return;
	forget_unsent(c);
	if (!*list && cc_loop_defer(c->loop, send_unsent, c->loop) < 0) {
		enable(c, EV_WRITE);
		return;
	}
	DL_APPEND2(*list, c, prev_u, next_u);
	c->unsent = list;
}

static void send_later(struct cc_conn *c)
{
	struct cc_conn **list = cc_loop_corked(c->loop);

	if (c->unsent || !may_write(c))
		return;
	DL_APPEND2(*list, c, prev_u, next_u);
	c->unsent = list;
	if (c == *list)
		cc_loop_cork(c->loop);
}

/* Is the connection connected with itself? This happens if a program connects to a port of its own
 * host on which nobody listens, and the kernel gives the outgoing connection the same port. Such a
 * connection is reset when it is closed. Otherwise it would occupy the port for a while, and the
 * program that should listen on this port could not do so. */
static bool is_own_end(int fd)
{
	const struct linger reset = {.l_onoff = 1};
	struct sockaddr_storage ss;
	struct cc_addr here, there;
	socklen_t len = sizeof ss;

	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0 ||
		cc_addr_from_sockaddr((struct sockaddr *)&ss, &here) < 0)
		return false;
	len = sizeof ss;
	if (getpeername(fd, (struct sockaddr *)&ss, &len) < 0 ||
		cc_addr_from_sockaddr((struct sockaddr *)&ss, &there) < 0 ||
		!cc_addr_eq(&here, &there))
		return false;
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	return true;
}

static void connected(struct cc_conn *c)
{
	if (is_own_end(bufferevent_getfd(c->bev))) {
		fail(c, CC_ERR_IO, "no program listens there: the connection led to itself");
		return;
	}
	/* The socket is tuned only now, because earlier tuning would change the time limit for
	 * connecting. */
	(void)cc_tcp_tune(bufferevent_getfd(c->bev));
	c->connecting = false;
	bufferevent_set_timeouts(c->bev, NULL, NULL);
	if (queued(c) == 0)
		bufferevent_disable(c->bev, EV_WRITE);
	enable(c, EV_READ);
	if (c->ops->on_connected)
		c->ops->on_connected(c->arg);
}

static void on_eof(struct cc_conn *c)
{
	c->eof = true;
	if (!c->lingering)
		consume(c);
	if (!c->bev)
		return;
	if (!c->lingering)
		fail(c, CC_ERR_EOF, "closed by the other side");
	else if (queued(c) == 0)
		drop(c);
}

static void fail_by_errno(struct cc_conn *c, int error)
{
	const char *call = c->connecting ? "connect" : NULL;
	char limit[CC_LIMIT_TEXT];

	if (error == 0)
		fail(c, CC_ERR_IO, "connection failed");
	else
		fail(c, cc_limit_is_of(call, error) ? CC_ERR_NOMEM : CC_ERR_IO,
			cc_limit_text_of(call, error, limit, sizeof limit));
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct cc_conn *c = arg;
	int e = EVUTIL_SOCKET_ERROR();

	(void)bev;
	c->in_callback++;
	if (what & BEV_EVENT_CONNECTED)
		connected(c);
	else if (what & BEV_EVENT_EOF)
		on_eof(c);
	else if (c->lingering)
		drop(c);
	else if (what & BEV_EVENT_TIMEOUT)
		fail(c, CC_ERR_TIMEOUT, c->connecting ? "connecting timed out" : "timed out");
	else
		fail_by_errno(c, e);
	c->in_callback--;
	release_if_dead(c);
}

static struct cc_conn *conn_new(struct cc_loop *l, int fd, const struct cc_conn_ops *ops, void *arg)
{
	struct cc_conn *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	*c = (struct cc_conn){.loop = l,
		.ops = ops,
		.arg = arg,
		.max_in = DEFAULT_MAX_IN,
		.max_out = DEFAULT_MAX_OUT};
	c->bev = bufferevent_socket_new(cc_loop_base(l), fd, BEV_OPT_DEFER_CALLBACKS);
	if (!c->bev) {
		free(c);
		return NULL;
	}
	bufferevent_setcb(c->bev, on_read, on_write, on_event, c);
	(void)bufferevent_set_max_single_write(c->bev, WRITE_MAX);
	return c;
}

struct cc_conn *cc_conn_new(struct cc_loop *l, int fd, const struct cc_conn_ops *ops, void *arg)
{
	struct cc_conn *c;

	(void)cc_tcp_tune(fd); /* fails on AF_UNIX, which needs no tuning */
	c = evutil_make_socket_nonblocking(fd) < 0 ? NULL : conn_new(l, fd, ops, arg);
	if (!c) {
		close(fd);
		return NULL;
	}
	bufferevent_disable(c->bev, EV_WRITE);
	if (bufferevent_enable(c->bev, EV_READ) < 0) {
		drop(c);
		free(c);
		return NULL;
	}
	return c;
}

struct cc_conn *cc_conn_connect(struct cc_loop *l, const struct cc_addr *to, uint32_t timeout_ms,
	uint16_t segment_max, const struct cc_conn_ops *ops, void *arg)
{
	struct timeval tv = cc_loop_from_ms(timeout_ms);
	struct sockaddr_storage ss;
	unsigned len = cc_addr_to_sockaddr(to, &ss);
	struct cc_conn *c;
	int fd = cc_tcp_socket(ss.ss_family), segment = segment_max;

	if (fd < 0)
		return NULL;
	if (segment != 0)
		setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
	c = conn_new(l, fd, ops, arg);
	if (!c) {
		close(fd);
		return NULL;
	}
	c->connecting = true;
	bufferevent_set_timeouts(c->bev, NULL, &tv);
	enable(c, EV_WRITE);
	/* An immediate failure is reported by a deferred on_event, as a later failure is. */
	if (bufferevent_socket_connect(c->bev, (struct sockaddr *)&ss, (int)len) < 0)
		bufferevent_trigger_event(c->bev, BEV_EVENT_ERROR, BEV_OPT_DEFER_CALLBACKS);
	return c;
}

static int may_send(const struct cc_conn *c, size_t len)
{
	if (!c->bev || c->lingering)
		return CC_ERR_STATE;
	return len > c->max_out || queued(c) > c->max_out - len ? CC_ERR_LIMIT : 0;
}

static int queue(struct cc_conn *c, const void *buf, size_t len)
{
	int err = may_send(c, len);

	if (err < 0)
		return err;
	return evbuffer_add(bufferevent_get_output(c->bev), buf, len) < 0 ? CC_ERR_NOMEM : 0;
}

int cc_conn_send(struct cc_conn *c, const void *buf, size_t len)
{
	int err = queue(c, buf, len);

	if (err == 0)
		send_soon(c);
	return err;
}

int cc_conn_send_later(struct cc_conn *c, const void *buf, size_t len)
{
	int err = queue(c, buf, len);

	if (err == 0)
		send_later(c);
	return err;
}

int cc_conn_send_ref(struct cc_conn *c, const void *buf, size_t len,
	void (*done)(const void *buf, size_t len, void *arg), void *arg)
{
	struct evbuffer *out = c->bev ? bufferevent_get_output(c->bev) : NULL;
	int err = may_send(c, len);

	if (err == 0 && len >= REF_MIN) {
		if (evbuffer_add_reference(out, buf, len, done, arg) == 0) {
			if (may_write(c))
				send_now(c);
			return 0;
		}
		err = CC_ERR_NOMEM;
	}
	if (err == 0)
		err = cc_conn_send(c, buf, len);
	done(buf, len, arg);
	return err;
}

void cc_conn_set_limits(struct cc_conn *c, size_t max_in, size_t max_out)
{
	c->max_in = max_in;
	c->max_out = max_out;
}

void cc_conn_set_idle_timeout(struct cc_conn *c, uint32_t ms)
{
	struct timeval tv = cc_loop_from_ms(ms);

	if (c->bev)
		bufferevent_set_timeouts(c->bev, ms ? &tv : NULL, NULL);
}

void cc_conn_allow_silence(struct cc_conn *c, uint32_t ms)
{
	if (c->bev)
		cc_tcp_allow_silence(bufferevent_getfd(c->bev), ms);
}

void cc_conn_close(struct cc_conn *c)
{
	if (c->bev && !c->connecting && queued(c) > 0 && linger(c))
		return;
	drop(c);
	release_if_dead(c);
}

void cc_conn_stop_reading(struct cc_conn *c)
{
	if (c->bev)
		bufferevent_disable(c->bev, EV_READ);
}

void cc_conn_pause(struct cc_conn *c)
{
	c->paused = true;
	cc_conn_stop_reading(c);
}

void cc_conn_go_on(struct cc_conn *c)
{
	c->paused = false;
	if (!c->bev)
		return;
	bufferevent_enable(c->bev, EV_READ);
	bufferevent_trigger(c->bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_OPT_DEFER_CALLBACKS);
}

int cc_conn_detach(struct cc_conn *c)
{
	int fd = bufferevent_getfd(c->bev);

	forget_unsent(c);
	bufferevent_setfd(c->bev, -1);
	bufferevent_free(c->bev);
	c->bev = NULL;
	c->dead = true;
	release_if_dead(c);
	return fd;
}

bool cc_conn_flushed(const struct cc_conn *c)
{
	return queued(c) == 0;
}

size_t cc_conn_buffered(const struct cc_conn *c)
{
	return c->bev ? queued(c) + evbuffer_get_length(bufferevent_get_input(c->bev)) : 0;
}

static int addr_of(const struct cc_conn *c,
	int (*get)(int, struct sockaddr *restrict, socklen_t *restrict), struct cc_addr *ret)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;

	if (!c->bev || get(bufferevent_getfd(c->bev), (struct sockaddr *)&ss, &len) < 0)
		return CC_ERR_IO;
	return cc_addr_from_sockaddr((struct sockaddr *)&ss, ret);
}

uint32_t cc_conn_round_trip_us(const struct cc_conn *c)
{
	return c->bev ? cc_tcp_round_trip_us(bufferevent_getfd(c->bev)) : 0;
}

uint32_t cc_conn_path_ms(const struct cc_conn *c)
{
	return c->bev ? cc_tcp_path_ms(bufferevent_getfd(c->bev)) : 0;
}

int cc_conn_peer_addr(const struct cc_conn *c, struct cc_addr *ret)
{
	return addr_of(c, getpeername, ret);
}

int cc_conn_local_addr(const struct cc_conn *c, struct cc_addr *ret)
{
	return addr_of(c, getsockname, ret);
}
