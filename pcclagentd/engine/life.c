/* SPDX-License-Identifier: MIT
 *
 * The options of streams, and whether the hosts at their other ends are still there.
 *
 * A host that takes no data is slow; a host that says nothing at all is gone. The kernel's limits
 * do not tell them apart: TCP_USER_TIMEOUT ends a connection whose peer answers but takes nothing,
 * and while data waits for a window to open, no keepalive probes are sent, and the probes of the
 * window become as rare as one in two minutes. But data goes in one direction only: the receiving
 * end of a stream has nothing under way, so its kernel sends a keepalive probe every second,
 * whatever its agent does. They bring no data and acknowledge nothing new, but the kernel counts
 * them among the segments that came in. When that count stands still, nobody is there.
 *
 * Where a router drops large packets and sends no ICMP, the host is heard and what is sent to it
 * never arrives. The kernel goes on for a quarter of an hour; a new stream with smaller segments
 * gets through (see link.c).
 */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "common/cc_sys.h"
#include "pcclagentd/engine/eng_internal.h"

/* A look that comes later than this counts as if it did not: this agent stood still, not the other
 * host. */
#define LATE_MS (2ull * FLOW_LOOK_MS)
/* Probes of an idle stream without an answer, one per second, until the kernel gives it up: later
 * than we do. */
#define KEEPALIVE_PROBES 127
/*
 * Bytes that a stream may hold and not have sent yet, on a high round-trip path. No other one can
 * take them over, and one that stands still for a while, as bbr has each do for 200 ms every ten
 * seconds, or is slow after a loss, would have the end of an operation wait for megabytes. A
 * segment lasts until the next acknowledgements make room: 10 ms of 200 Mbit/s.
 */
#define UNSENT_MAX ((int)CC_PLAN_SEGMENT_MAX)

void eng_tune(int fd)
{
	static const int no_limit = 0, probes = KEEPALIVE_PROBES, unsent = UNSENT_MAX;

	if (cc_tcp_tune(fd) < 0)
		return; /* not TCP: nothing can vanish */
	/* While there is a TCP_USER_TIMEOUT it also counts instead of the number of probes. */
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &no_limit, sizeof no_limit);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
	if (cc_tcp_round_trip_us(fd) >= CC_HIGH_RTT_US)
		setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

/*
 * What a stream has under way when its window is large goes into the queue of a router in no time,
 * and signs of life wait there as well, longer than any that went before. At its own pace the queue
 * grows slowly enough to be measured.
 */
static void pace(struct eng_stream *s)
{
	static const uint64_t any_rate = UINT64_MAX - 1; /* but not that of who is not paced */

	s->paced = true;
	setsockopt(s->fd, SOL_SOCKET, SO_MAX_PACING_RATE, &any_rate, sizeof any_rate);
}

/* Has anything come in on the stream since the last look? */
static bool has_spoken(struct eng_stream *s)
{
	struct tcp_info info;
	socklen_t len = sizeof info;

	/* Where nothing is counted there is nothing to judge by. */
	if (getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
		len < offsetof(struct tcp_info, tcpi_segs_in) + sizeof info.tcpi_segs_in ||
		info.tcpi_segs_in == 0)
		return true;
	s->path_ms = cc_tcp_info_path_ms(info.tcpi_rtt, info.tcpi_rttvar);
	if (s->path_ms > 0 && !s->paced)
		pace(s);
	if (info.tcpi_segs_in == s->segs_in)
		return false;
	s->segs_in = info.tcpi_segs_in;
	return true;
}

static uint32_t bound_ms(const struct eng_thread *t, enum cc_bound b)
{
	return atomic_load_explicit(&t->e->bounds_ms[b], memory_order_relaxed);
}

static bool is_silent(const struct eng_stream *s, uint32_t ms)
{
	return s->silent_ms >= ms + s->path_ms;
}

static bool is_gone(const struct eng_thread *t, const struct eng_stream *s)
{
	uint32_t link_ms = bound_ms(t, CC_BOUND_LINK);

	if (!is_silent(s, link_ms) || is_silent(s, bound_ms(t, CC_BOUND_STREAM)))
		return is_silent(s, link_ms);
	for (const struct eng_stream *o = t->streams; o; o = o->next)
		if (o->link == s->link && !is_silent(o, link_ms))
			return false;
	return true;
}

/* True: the link that s is of has been given up. */
static bool give_up(struct eng_thread *t, struct eng_stream *gone)
{
	static const struct linger at_once = {.l_onoff = 1};
	bool stuck = gone->tx && flow_is_stuck(&gone->flow, gone->fd, bound_ms(t, CC_BOUND_STUCK));

	if (!stuck && !is_gone(t, gone))
		return false;
	/* What was to be sent is of no use any more, and nobody would take it. */
	for (const struct eng_stream *s = t->streams; s; s = s->next)
		if (s->link == gone->link)
			setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	if (stuck)
		eng_give_up_stuck_link(t, gone->link);
	else
		eng_give_up_link(t, gone->link, gone->silent_ms);
	return true;
}

/* The last of a link's streams to fall silent, and the first to be heard again, decide. */
static void tell_quiet(struct eng_thread *t)
{
	for (struct eng_stream *s = t->streams; s; s = s->next) {
		bool quiet = is_silent(s, FLOW_QUIET_MS);

		if (quiet != s->quiet)
			eng_tell_heard(t, s->link);
		s->quiet = quiet;
	}
}

void eng_look_at_streams(struct eng_thread *t, bool starts)
{
	uint64_t now = cc_now_ns(), passed_ms = (now - t->looked_ns) / 1000000;
	struct eng_stream *s;

	if (passed_ms > LATE_MS)
		passed_ms = LATE_MS;
	t->looked_ns = now;
	for (s = t->streams; s; s = s->next) {
		s->silent_ms = has_spoken(s) ? 0 : s->silent_ms + (uint32_t)passed_ms;
		if (s->stalled && !starts)
			s->stalled_ns = now;
	}
	tell_quiet(t);
	for (s = t->streams; s;) {
		/* its link's other streams have gone, too */
		s = give_up(t, s) ? t->streams : s->next;
	}
}
