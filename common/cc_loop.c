/* SPDX-License-Identifier: MIT
 *
 * Loop, watches, timers, signals and listeners of cc_loop.h. Only this file and cc_conn.c use
 * libevent.
 */
#include "common/cc_loop.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_log.h"
#include "common/cc_loop_internal.h"
#include "common/cc_sys.h"

#define MAX_SIGNALS 8
#define SHORTAGE_NS UINT64_C(10000000000) /* between two log lines about the same shortage */
/* A few times as long as an idle CPU takes to wake up. It covers the time between two small
 * operations. */
#define AWAKE_NS 100000u

struct deferred {
	void (*fn)(void *arg);
	void *arg;
};

struct cc_loop {
	struct event_base *base;
	bool stopped; /* remembers a stop that came before the loop runs: libevent forgets it */
	uint64_t awake_until;
	struct cc_conn *lingering, *unsent, *corked;
	struct event *block_end;
	struct event *defer_event; /* active while there are deferred calls */
	struct deferred *deferred;
	size_t n_deferred, cap_deferred;
	struct event *signals[MAX_SIGNALS];
	struct signal_arg *signal_args[MAX_SIGNALS];
	unsigned n_signals;
	int spare; /* a descriptor reserved for refusing connections, or -1 */
};

struct signal_arg {
	void (*fn)(void *arg, int signo);
	void *arg;
};

static void on_deferred(evutil_socket_t fd, short what, void *arg)
{
	struct cc_loop *l = arg;
	struct deferred *v = l->deferred;
	size_t n = l->n_deferred, cap = l->cap_deferred;

	(void)fd;
	(void)what;
	l->deferred = NULL;
	l->n_deferred = l->cap_deferred = 0;
	for (size_t i = 0; i < n; i++)
		v[i].fn(v[i].arg);
	if (l->deferred) {
		free(v);
	} else {
		l->deferred = v;
		l->cap_deferred = cap;
	}
}

static void on_block_end(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	cc_conn_send_corked(arg);
}

/* Logs only at debug level, because the function of this program that called libevent also fails
 * and reports its failure. */
static void on_libevent_log(int severity, const char *text)
{
	int saved = errno;

	(void)severity;
	cc_log(CC_LOG_DEBUG, "libevent: %s", text);
	errno = saved;
}

/* Logs the limit and ends the process. libevent calls this if it gets no descriptors for signals.
 */
static void on_libevent_end(int code)
{
	(void)code;
	cc_limit_log("libevent cannot start");
	_exit(EX_OSERR);
}

struct cc_loop *cc_loop_new(void)
{
	struct cc_loop *l = calloc(1, sizeof *l);
	struct event_config *cfg = event_config_new();

	event_set_log_callback(on_libevent_log);
	event_set_fatal_callback(on_libevent_end);
	if (!l || !cfg)
		goto err;
	l->spare = -1;
	event_config_require_features(cfg, EV_FEATURE_ET);
	event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK);
	l->base = event_base_new_with_config(cfg);
	if (!l->base)
		goto err;
	l->defer_event = event_new(l->base, -1, 0, on_deferred, l);
	l->block_end = evtimer_new(l->base, on_block_end, l);
	if (!l->defer_event || !l->block_end)
		goto err;
	event_config_free(cfg);
	return l;
err:
	if (l && l->defer_event)
		event_free(l->defer_event);
	if (l && l->base)
		event_base_free(l->base);
	if (cfg)
		event_config_free(cfg);
	free(l);
	return NULL;
}

struct event_base *cc_loop_base(struct cc_loop *l)
{
	return l->base;
}

bool cc_loop_is_flushed(const struct cc_loop *l)
{
	return !l->lingering;
}

struct cc_conn **cc_loop_lingering(struct cc_loop *l)
{
	return &l->lingering;
}

struct cc_conn **cc_loop_unsent(struct cc_loop *l)
{
	return &l->unsent;
}

struct cc_conn **cc_loop_corked(struct cc_loop *l)
{
	return &l->corked;
}

void cc_loop_cork(struct cc_loop *l)
{
	static const struct timeval longest = {0, AWAKE_NS / 1000};

	if (event_add(l->block_end, &longest) < 0)
		cc_conn_send_corked(l);
}

void cc_loop_free(struct cc_loop *l)
{
	if (!l)
		return;
	cc_conn_drop_lingering(l);
	event_free(l->defer_event);
	event_free(l->block_end);
	free(l->deferred);
	for (unsigned i = 0; i < l->n_signals; i++) {
		event_free(l->signals[i]);
		free(l->signal_args[i]);
	}
	/* libevent still holds streams that were closed while their events were pending. One more
	 * iteration releases them. */
	event_base_loop(l->base, EVLOOP_NONBLOCK);
	event_base_free(l->base);
	if (l->spare >= 0)
		close(l->spare);
	free(l);
}

int cc_loop_run(struct cc_loop *l)
{
	int rc = 0;

	while (!l->stopped && rc >= 0) {
		if (cc_now_ns() >= l->awake_until) {
			cc_conn_send_corked(l);
			rc = event_base_loop(l->base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY);
		} else {
			rc = event_base_loop(l->base, EVLOOP_NONBLOCK | EVLOOP_NO_EXIT_ON_EMPTY);
			(void)sched_yield();
		}
	}
	l->stopped = false;
	return rc < 0 ? CC_ERR_IO : 0;
}

void cc_loop_stop(struct cc_loop *l)
{
	l->stopped = true;
	event_base_loopbreak(l->base);
}

void cc_loop_expect(struct cc_loop *l)
{
	l->awake_until = cc_now_ns() + AWAKE_NS;
}

static void on_signal(evutil_socket_t signo, short what, void *arg)
{
	const struct signal_arg *s = arg;

	(void)what;
	s->fn(s->arg, (int)signo);
}

int cc_loop_signal(struct cc_loop *l, int signo, void (*fn)(void *arg, int signo), void *arg)
{
	struct signal_arg *s;
	struct event *ev;

	if (l->n_signals == MAX_SIGNALS)
		return CC_ERR_LIMIT;
	s = malloc(sizeof *s);
	if (!s)
		return CC_ERR_NOMEM;
	*s = (struct signal_arg){fn, arg};
	ev = evsignal_new(l->base, signo, on_signal, s);
	if (!ev || event_add(ev, NULL) < 0) {
		if (ev)
			event_free(ev);
		free(s);
		return CC_ERR_NOMEM;
	}
	l->signals[l->n_signals] = ev;
	l->signal_args[l->n_signals++] = s;
	return 0;
}

int cc_loop_defer(struct cc_loop *l, void (*fn)(void *arg), void *arg)
{
	if (l->n_deferred == l->cap_deferred) {
		size_t cap = l->cap_deferred ? 2 * l->cap_deferred : 16;
		struct deferred *v = realloc(l->deferred, cap * sizeof *v);

		if (!v)
			return CC_ERR_NOMEM;
		l->deferred = v;
		l->cap_deferred = cap;
	}
	l->deferred[l->n_deferred++] = (struct deferred){fn, arg};
	event_active(l->defer_event, EV_TIMEOUT, 0);
	return 0;
}

/* ---- watches and timers ---- */

struct cc_watch {
	struct event *ev;
	void (*fn)(void *arg);
	void *arg;
};

static void on_watch(evutil_socket_t fd, short what, void *arg)
{
	const struct cc_watch *w = arg;

	(void)fd;
	(void)what;
	w->fn(w->arg);
}

static struct cc_watch *watch_new(
	struct cc_loop *l, int fd, short what, void (*fn)(void *arg), void *arg)
{
	struct cc_watch *w = malloc(sizeof *w);

	if (!w)
		return NULL;
	*w = (struct cc_watch){.fn = fn, .arg = arg};
	w->ev = event_new(l->base, fd, what, on_watch, w);
	if (!w->ev || event_add(w->ev, NULL) < 0) {
		cc_watch_free(w);
		return NULL;
	}
	return w;
}

struct cc_watch *cc_watch_new(
	struct cc_loop *l, int fd, bool edge, void (*fn)(void *arg), void *arg)
{
	return watch_new(l, fd, (short)(EV_READ | EV_PERSIST | (edge ? EV_ET : 0)), fn, arg);
}

struct cc_watch *cc_watch_new_room(struct cc_loop *l, int fd, void (*fn)(void *arg), void *arg)
{
	return watch_new(l, fd, EV_WRITE | EV_PERSIST, fn, arg);
}

void cc_watch_free(struct cc_watch *w)
{
	if (!w)
		return;
	if (w->ev)
		event_free(w->ev);
	free(w);
}

struct cc_timer {
	struct event *ev;
	void (*fn)(void *arg);
	void *arg;
};

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	const struct cc_timer *t = arg;

	(void)fd;
	(void)what;
	t->fn(t->arg);
}

struct cc_timer *cc_timer_new(
	struct cc_loop *l, uint32_t interval_ms, void (*fn)(void *arg), void *arg)
{
	struct cc_timer *t = malloc(sizeof *t);
	struct timeval tv = cc_loop_from_ms(interval_ms);

	if (!t)
		return NULL;
	*t = (struct cc_timer){.fn = fn, .arg = arg};
	t->ev = event_new(l->base, -1, EV_PERSIST, on_timer, t);
	if (!t->ev || event_add(t->ev, &tv) < 0) {
		cc_timer_free(t);
		return NULL;
	}
	return t;
}

void cc_timer_set(struct cc_timer *t, uint32_t interval_ms)
{
	struct timeval tv = cc_loop_from_ms(interval_ms);

	/* This cannot fail, because the event already has its memory. */
	(void)event_add(t->ev, &tv);
}

void cc_timer_free(struct cc_timer *t)
{
	if (!t)
		return;
	if (t->ev)
		event_free(t->ev);
	free(t);
}

/* ---- listeners ---- */

struct cc_listener {
	struct cc_loop *loop;
	struct evconnlistener *lev;
	struct event *resume;
	uint64_t warned_ns;
	void (*fn)(void *arg, int fd);
	void (*on_shortage)(void *arg, int fd, int error, const char *limit);
	void *arg;
};

static bool has_spare(struct cc_loop *l)
{
	if (l->spare < 0)
		l->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return l->spare >= 0;
}

/* Logs the limit, at most every ten seconds. */
static void warn(struct cc_listener *x, const char *limit, bool refused)
{
	uint64_t now = cc_now_ns();

	if (x->warned_ns && now - x->warned_ns <= SHORTAGE_NS)
		return;
	x->warned_ns = now;
	cc_log(CC_LOG_WARNING, "cannot accept connections: %s; %s", limit,
		refused ? "they are refused" : "they wait");
}

/* Refuses an accepted connection. No spare descriptor is left, so this connection uses the last
 * descriptor.
 */
static void refuse_accepted(struct cc_listener *x, int fd, int error)
{
	char limit[CC_LIMIT_TEXT];

	cc_limit_text(error, limit, sizeof limit);
	x->on_shortage(x->arg, fd, error, limit);
	(void)has_spare(x->loop);
	warn(x, limit, true);
}

static void on_accept(
	struct evconnlistener *lev, evutil_socket_t fd, struct sockaddr *sa, int len, void *arg)
{
	struct cc_listener *x = arg;

	(void)lev;
	(void)sa;
	(void)len;
	if (!x->on_shortage || has_spare(x->loop))
		x->fn(x->arg, (int)fd);
	else
		refuse_accepted(x, (int)fd, errno);
}

static const struct timeval shortage_pause = {1, 0};

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct cc_listener *x = arg;

	(void)fd;
	(void)what;
	if (evconnlistener_enable(x->lev) < 0)
		event_add(x->resume, &shortage_pause);
}

/* Closes the spare descriptor in order to accept and refuse the connection. */
static bool refuse(struct cc_listener *x, int error, const char *limit)
{
	int fd;

	if (!x->on_shortage || !has_spare(x->loop))
		return false;
	close(x->loop->spare);
	x->loop->spare = -1;
	fd = accept4(evconnlistener_get_fd(x->lev), NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		x->on_shortage(x->arg, fd, error, limit);
	(void)has_spare(x->loop);
	return fd >= 0;
}

/* Handles a lack of descriptors or memory: refuses the connection, or pauses, because the waiting
 * connection would wake the loop again at once. */
static void on_accept_error(struct evconnlistener *lev, void *arg)
{
	struct cc_listener *x = arg;
	int error = errno;
	char limit[CC_LIMIT_TEXT];
	bool refused;

	cc_limit_text(error, limit, sizeof limit);
	refused = (error == EMFILE || error == ENFILE) && refuse(x, error, limit);
	warn(x, limit, refused);
	if (refused)
		return;
	evconnlistener_disable(lev);
	event_add(x->resume, &shortage_pause);
}

struct cc_listener *cc_listener_new(
	struct cc_loop *l, int fd, void (*fn)(void *arg, int fd), void *arg)
{
	struct cc_listener *x = calloc(1, sizeof *x);

	if (!x)
		goto err;
	*x = (struct cc_listener){.loop = l, .fn = fn, .arg = arg};
	x->resume = evtimer_new(l->base, on_resume, x);
	if (!x->resume || evutil_make_socket_nonblocking(fd) < 0)
		goto err;
	/* A backlog of 0 means that libevent does not call listen() again. The listener is enabled
	 * separately, because libevent ignores a failure to watch the socket of a new listener. */
	x->lev = evconnlistener_new(l->base, on_accept, x,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_DISABLED, 0, fd);
	if (!x->lev)
		goto err;
	evconnlistener_set_error_cb(x->lev, on_accept_error);
	if (evconnlistener_enable(x->lev) == 0)
		return x;
	cc_limit_log("epoll_ctl cannot watch a listening socket");
	cc_listener_free(x);
	return NULL;
err:
	if (x && x->resume)
		event_free(x->resume);
	free(x);
	close(fd);
	return NULL;
}

void cc_listener_free(struct cc_listener *x)
{
	if (!x)
		return;
	evconnlistener_free(x->lev);
	event_free(x->resume);
	free(x);
}

int cc_listener_on_shortage(
	struct cc_listener *x, void (*fn)(void *arg, int fd, int error, const char *limit))
{
	x->on_shortage = fn;
	return has_spare(x->loop) ? 0 : CC_ERR_IO;
}
