/* SPDX-License-Identifier: MIT
 *
 * Sets the options of streams, checks whether the other hosts are still alive, and finds out what
 * links carry.
 *
 * A host that takes no data is slow. A host that sends nothing at all is gone. The kernel's limits
 * do not distinguish the two. TCP_USER_TIMEOUT ends a connection whose peer answers but takes no
 * data. While data waits for a window to open, the kernel sends no keepalive probes, and it probes
 * the window more and more rarely, at last once in two minutes. But the data of a stream goes in
 * one direction only. The receiving end has nothing under way, so its kernel sends a keepalive
 * probe every second, even if its agent is stopped. These probes contain no data and acknowledge
 * nothing new, but the kernel of the sending end counts them as received segments. If this count
 * stands still, the other host is gone.
 *
 * If a router drops large packets and sends no ICMP, packets of the other host arrive, but no data
 * reaches it. The kernel retries for a quarter of an hour. A new stream with smaller segments gets
 * through (see net/link.c).
 */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "common/cc_sys.h"
#include "pcclagentd/engine/eng_internal.h"

/* The most time that counts between two checks. If a check comes later, this agent was suspended,
 * not the other host. */
#define LATE_MS (2ull * FLOW_LOOK_MS)
/* Unanswered probes of an idle stream, one per second, until the kernel ends it. The engine gives
 * the link up earlier. */
#define KEEPALIVE_PROBES 127
/*
 * The most unsent bytes that the kernel holds for a stream on a high round-trip path. No other
 * stream can send these bytes. BBR stops a stream for 200 ms every ten seconds, and a stream is
 * slow after a loss. Without the limit, the end of an operation would wait for megabytes on such a
 * stream. One segment is enough until the next acknowledgements make room: it lasts for 10 ms at
 * 200 Mbit/s.
 */
#define UNSENT_MAX ((int)CC_PLAN_SEGMENT_MAX)

void eng_tune(int fd)
{
	static const int no_limit = 0, probes = KEEPALIVE_PROBES, unsent = UNSENT_MAX;

	if (cc_tcp_tune(fd) < 0)
		return; /* not TCP: the other end cannot vanish */
	/* A TCP_USER_TIMEOUT would also replace the number of probes. */
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &no_limit, sizeof no_limit);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
	if (cc_tcp_round_trip_us(fd) >= CC_HIGH_RTT_US)
		setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

/*
 * Makes a stream send at its own measured rate. A stream with a large window would fill the queue
 * of a router at once. Then the next sign of life would wait in this queue for longer than any sign
 * of life before. With pacing, the queue grows slowly enough to be measured.
 */
static void pace(struct eng_stream *s)
{
	static const uint64_t any_rate = UINT64_MAX - 1; /* UINT64_MAX would mean: no pacing */

	s->paced = true;
	setsockopt(s->fd, SOL_SOCKET, SO_MAX_PACING_RATE, &any_rate, sizeof any_rate);
}

/* Takes the counts from which the rate of the link follows. Linux has had them since 4.10. */
static void take_counts(struct eng_stream *s, const struct tcp_info *info, socklen_t len)
{
	s->counts = (struct eng_rate_counts){
		.known = s->tx && len >= offsetof(struct tcp_info, tcpi_rwnd_limited) +
						  sizeof info->tcpi_rwnd_limited,
		.waits = info->tcpi_notsent_bytes > 0 || (s->busy && !s->writable),
		.acked = info->tcpi_bytes_acked,
		.busy_us = info->tcpi_busy_time,
		.receiver_us = info->tcpi_rwnd_limited};
	s->trip_us = info->tcpi_min_rtt < info->tcpi_rtt ? info->tcpi_min_rtt : info->tcpi_rtt;
}

/* Has the stream received anything since the last check? */
static bool has_spoken(struct eng_stream *s)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof info;

	s->before = s->counts;
	s->counts.known = false;
	/* Without the kernel's count the stream is never silent. */
	if (getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
		len < offsetof(struct tcp_info, tcpi_segs_in) + sizeof info.tcpi_segs_in ||
		info.tcpi_segs_in == 0)
		return true;
	take_counts(s, &info, len);
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

/* Breaks the stream's link if the other host is gone, or if the stream is stuck. Returns true if
 * the link was broken. */
static bool give_up(struct eng_thread *t, struct eng_stream *gone)
{
	static const struct linger at_once = {.l_onoff = 1};
	bool stuck = gone->tx && flow_is_stuck(&gone->flow, gone->fd, bound_ms(t, CC_BOUND_STUCK));

	if (!stuck && !is_gone(t, gone))
		return false;
	/* Discards unsent data, because nobody would take it. */
	for (const struct eng_stream *s = t->streams; s; s = s->next)
		if (s->link == gone->link)
			setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	if (stuck)
		eng_give_up_stuck_link(t, gone->link);
	else
		eng_give_up_link(t, gone->link, gone->silent_ms);
	return true;
}

/* Reports links of which a stream has become silent or receives something again. The report has the
 * time since the link's last sign of life on any stream. */
static void tell_quiet(struct eng_thread *t)
{
	for (struct eng_stream *s = t->streams; s; s = s->next) {
		bool quiet = is_silent(s, FLOW_QUIET_MS);

		if (quiet != s->quiet)
			eng_tell_heard(t, s->link);
		s->quiet = quiet;
	}
}

static void tell_rate(struct eng_thread *t, uint32_t link, uint32_t trip_us, uint64_t rate)
{
	struct eng_carried *c = malloc(sizeof *c);

	if (!c)
		return; /* the next report says the same */
	*c = (struct eng_carried){.link = link, .trip_us = trip_us, .rate = rate};
	wrk_notify(&t->worker, wrk_pack_ptr(c, ENG_NOTE_RATE), true);
}

/* Reports what links have carried. The streams of a link were added together, so they follow each
 * other in the list. */
static void tell_rates(struct eng_thread *t, uint64_t passed_us)
{
	bool along_rings = eng_tx_used_rings(t->e);
	struct eng_stream *s = t->streams;

	while (s) {
		struct eng_stream *first = s;
		uint32_t trip_us = s->trip_us;
		uint64_t rate;

		for (; s && s->link == first->link; s = s->next) {
			eng_rate_add(&first->rate, &s->before, &s->counts);
			trip_us = s->trip_us < trip_us ? s->trip_us : trip_us;
		}
		rate = eng_rate_end_interval(&first->rate, passed_us, along_rings);
		if (rate > 0)
			tell_rate(t, first->link, trip_us, rate);
	}
}

void eng_look_at_streams(struct eng_thread *t, bool starts)
{
	uint64_t now = cc_now_ns(), passed_us = (now - t->looked_ns) / 1000;
	uint64_t passed_ms = passed_us / 1000;
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
	if (t == &t->e->tx)
		tell_rates(t, passed_us);
	for (s = t->streams; s;) {
		/* Breaking a link closes all its streams, so the list starts again. */
		s = give_up(t, s) ? t->streams : s->next;
	}
}
