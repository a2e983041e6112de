/* SPDX-License-Identifier: MIT
 *
 * Watches whether operations make progress, and says who causes a standstill. The engines' threads
 * only count. Their counters are compared here from time to time. Links are checked only when a
 * transfer stands still.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pcclagentd/ops/ops_internal.h"

#define LOOK_NS       BASE_MS(250)   /* time between two comparisons of the counters */
#define PROBE_NS      BASE_MS(500)   /* standstill after which the links are checked */
#define STANDSTILL_NS BASE_MS(1000)  /* standstill after which it is logged */
#define REPEAT_NS     BASE_MS(10000) /* time until a standstill is logged again */
#define SAY_NS        BASE_MS(1000)  /* time between two reports of a standstill to the master */
#define SILENT_NS     BASE_MS(2000)  /* idle streams probe the other host's kernel each second */
/* A standstill names at most this many hosts. */
#define AWAITED_NAMES 3u
#define AWAITED_TEXT  (AWAITED_NAMES * (WM_NAME_MAX + 2))

static bool has_begun(const struct xfer *x)
{
	return x->started && !x->finished && !x->over;
}

/* An operation that began speculatively may wait for peers that have not called yet. */
static bool is_moving(const struct xfer *x)
{
	return has_begun(x) && !x->spec;
}

static bool get_progress(const struct xfer *x, struct eng_progress *ret)
{
	return x->algo->progress(&x->work, ret);
}

static uint64_t standstill_ns(const struct xfer *x, uint64_t now)
{
	return watermark_still_ns(&x->progress.mark, now);
}

/* Is it time to log the standstill? If so, remembers that it was logged now. */
static bool is_to_be_told(struct progress *p, uint64_t now)
{
	if (watermark_still_ns(&p->mark, now) < STANDSTILL_NS ||
		(p->told_ns && now - p->told_ns < REPEAT_NS))
		return false;
	p->told_ns = now;
	return true;
}

static void end_standstill(struct progress *p, uint64_t now)
{
	watermark_touch(&p->mark, now);
	p->told_ns = 0;
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

__attribute__((format(printf, 3, 4))) static void append(
	char *text, size_t size, const char *fmt, ...)
{
	size_t len = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + len, size - len, fmt, ap);
	va_end(ap);
}

/* ---- the reason of a standstill ---- */

/* `c`: a communicator of the process, or NULL. `doing`: the object that the process has to copy. */
static void append_process(
	const struct loc_comm *c, const char *doing, uint64_t standstill, char *text, size_t size)
{
	struct loc_process p = {.pid = 0};

	if (c && loc_process_of(c, &p))
		append(text, size, "waits for local pid %" PRIu32 " (%s) to copy its %s", p.pid,
			p.name, doing);
	else
		append(text, size, "waits for a process that is gone,");
	append(text, size, " for %.1f s%s", seconds(standstill),
		p.stopped ? "; it is stopped" : "");
}

/* Returns the state of the host that is `distance` positions before this host. */
static struct net_neighbour look_up(const struct xfer *x, uint32_t distance)
{
	uint32_t pos = (x->pos + x->hosts - distance) % x->hosts;
	struct net_neighbour n = net_neighbour(x->run->net, &x->peers[pos].agent);

	if (!n.host[0])
		n.host = distance == 1 && x->prev_name[0] ? x->prev_name : "an unnamed host";
	return n;
}

/* Does the transfer send data to the host that is `distance` positions before this host? */
static bool sends_to(const struct xfer *x, uint32_t distance)
{
	return x->peers[(x->pos + x->hosts - distance) % x->hosts].link != 0;
}

/* Hosts for which a transfer waits. */
struct awaited {
	uint32_t n;
	char names[AWAITED_TEXT];
	struct net_neighbour quietest; /* of these hosts: the one that has been silent longest */
};

static void add_awaited(struct awaited *a, const struct net_neighbour *n)
{
	if (a->n == 0 || n->heard_ns < a->quietest.heard_ns)
		a->quietest = *n;
	if (a->n++ < AWAITED_NAMES)
		append(a->names, sizeof a->names, "%s%s", a->n > 1 ? ", " : "", n->host);
}

/* Finds the hosts that take no data. */
static struct awaited find_congested(const struct xfer *x)
{
	struct awaited a = {.n = 0};

	for (uint32_t d = 1; d < x->hosts; d++) {
		struct net_neighbour n = look_up(x, d);

		if (n.congested && sends_to(x, d))
			add_awaited(&a, &n);
	}
	return a;
}

/* Finds the hosts that send no data. `missing`: see eng_progress.awaited. */
static struct awaited find_senders(const struct xfer *x, uint64_t missing)
{
	struct awaited a = {.n = 0};

	for (uint32_t d = 1; d < x->hosts && missing > 0; d++, missing >>= 1) {
		struct net_neighbour n = look_up(x, d);

		if (missing & 1)
			add_awaited(&a, &n);
	}
	return a;
}

static void append_awaited(
	const struct awaited *a, const char *before, const char *after, char *text, size_t size)
{
	append(text, size, "%s%s", before, a->names);
	if (a->n > AWAITED_NAMES)
		append(text, size, " and %" PRIu32 " more hosts", a->n - AWAITED_NAMES);
	append(text, size, "%s", after);
}

static void append_hosts(
	const struct xfer *x, const struct eng_progress *p, uint64_t now, char *text, size_t size)
{
	const char *stopped = agt_stopped_in(x->run->o->base->core, x->run->id, x->group);
	struct awaited congested = find_congested(x);
	struct awaited a = congested.n > 0 ? congested : find_senders(x, p->awaited);
	uint64_t silent = now > a.quietest.heard_ns ? now - a.quietest.heard_ns : 0;

	if (stopped[0])
		append(text, size, "%.340s; ", stopped);
	if (congested.n > 0)
		append_awaited(&a, "waits for ", " to take data", text, size);
	else if (a.n > 0)
		append_awaited(&a, "waits for data from ", "", text, size);
	else
		append(text, size, "waits until its data is sent");
	append(text, size, " for %.1f s", seconds(standstill_ns(x, now)));
	if (a.quietest.heard_ns == 0)
		return;
	append(text, size,
		silent > SILENT_NS ? "; %s has been silent for %.1f s"
				   : "; %s was last heard from %.1f s ago",
		a.quietest.host, seconds(silent));
}

static void describe(
	const struct xfer *x, const struct eng_progress *p, uint64_t now, char *text, size_t size)
{
	text[0] = '\0';
	if (p->copying != ENG_NO_MEMBER)
		append_process(p->copying < x->n_members ? x->members[p->copying].h.comm : NULL,
			"operand in", standstill_ns(x, now), text, size);
	else if (x->hosts > 1)
		append_hosts(x, p, now, text, size);
	else
		append(text, size, "waits for the agent's threads for %.1f s",
			seconds(standstill_ns(x, now)));
}

bool op_get_progress(const struct run *r, uint64_t seq, uint64_t now, struct op_progress *ret)
{
	struct xfer *x;

	HASH_FIND(hh, r->xfers, &seq, sizeof seq, x);
	if (!x || !is_moving(x) || !get_progress(x, &ret->eng))
		return false;
	ret->standstill_ns = ret->eng.moved == x->progress.mark.moved ? standstill_ns(x, now) : 0;
	ret->waits[0] = '\0';
	if (ret->standstill_ns >= PROBE_NS)
		describe(x, &ret->eng, now, ret->waits, sizeof ret->waits);
	return true;
}

/* ---- comparing ---- */

static void probe_peers(const struct xfer *x, uint64_t now)
{
	for (uint32_t i = 0; i < x->hosts; i++)
		if (!cc_id_is_zero(&x->peers[i].agent))
			net_neighbour_probe(x->run->net, &x->peers[i].agent, now);
}

static void tell(const struct xfer *x, const struct eng_progress *p, uint64_t now)
{
	char master[CC_ADDR_STR_SIZE], waits[WM_TEXT_MAX];

	describe(x, p, now, waits, sizeof waits);
	rep_complain(&x->run->o->base->report, CC_LOG_WARNING,
		"tag %" PRIu64 " of group %" PRIu32 " of master %s stands still, %" PRIu32
		" of %" PRIu32 " segments are done: %s",
		x->tag, x->group, cc_addr_str(&x->run->addr, master), p->segs_done, p->segs, waits);
}

void op_progress_moved(struct xfer *x, uint64_t now)
{
	char master[CC_ADDR_STR_SIZE];

	if (x->progress.told_ns)
		rep_complain(&x->run->o->base->report, CC_LOG_NOTICE,
			"tag %" PRIu64 " of group %" PRIu32 " of master %s goes on after %.1f s",
			x->tag, x->group, cc_addr_str(&x->run->addr, master),
			seconds(standstill_ns(x, now)));
	end_standstill(&x->progress, now);
}

/* Is it time to report the standstill to the master? If the transfer waits for a process of this
 * host, the standstill is not reported, because the cause is known here. Otherwise the reports of
 * other hosts may show the cause. */
static bool is_for_master(const struct xfer *x, const struct eng_progress *p, uint64_t now)
{
	return x->hosts > 1 && p->copying == ENG_NO_MEMBER && now - x->said_ns >= SAY_NS &&
	       standstill_ns(x, now) >= BASE_MS(x->run->bounds.ms[CC_BOUND_STREAM]);
}

static void tell_master(const struct xfer *x, const struct eng_progress *p, uint64_t now)
{
	struct agt_event ev = {.type = AGT_EV_XFER_STANDSTILL,
		.run = x->run->id,
		.seq = x->seq,
		.tx_bytes = p->tx_bytes,
		.rx_bytes = p->rx_bytes,
		.still_ms = (uint32_t)(standstill_ns(x, now) / BASE_MS(1))};

	ev_post(x->run->o->base, &ev);
}

static void look_at(struct xfer *x, uint64_t now)
{
	struct eng_progress p;

	if (!get_progress(x, &p))
		return;
	if (p.moved != x->progress.mark.moved) {
		x->progress.mark.moved = p.moved;
		op_progress_moved(x, now);
		return;
	}
	if (is_for_master(x, &p, now)) {
		x->said_ns = now;
		tell_master(x, &p, now);
	}
	if (x->spec)
		return;
	if (standstill_ns(x, now) >= PROBE_NS)
		probe_peers(x, now);
	if (is_to_be_told(&x->progress, now))
		tell(x, &p, now);
}

/* ---- shared state ---- */

static bool sync_is_moving(const struct sync *x)
{
	return x->started && !x->finished && !x->over;
}

static uint64_t sync_standstill_ns(const struct sync *x, uint64_t now)
{
	return watermark_still_ns(&x->progress.mark, now);
}

/* Appends the names of the sources with holders (`holds`), of the sources without holders, or, if
 * `lost`, of the lost sources. Returns their number. */
static uint32_t append_sources(const struct sync *x, bool holds, bool lost, char *text, size_t size)
{
	struct op_source_view s;
	uint32_t n = 0;

	for (uint32_t i = 0; op_sync_get_source(x->run, x->seq, i, &s); i++) {
		if (s.lost != lost || (!lost && s.holds != holds))
			continue;
		append(text, size, "%s%s", n++ ? ", " : lost ? "; lost: " : "waits for ", s.host);
		if (lost)
			append(text, size, " (%.100s)", s.text);
		else if (!s.up)
			append(text, size, " (not connected)");
		else if (s.not_begun)
			append(text, size, " (has not begun)");
	}
	return n;
}

static void describe_sync(
	const struct sync *x, const struct ste_progress *p, uint64_t now, char *text, size_t size)
{
	const char *stopped = agt_stopped_in(x->run->o->base->core, x->run->id, x->group);
	const struct loc_comm *c = NULL;

	text[0] = '\0';
	for (uint32_t i = 0; p->waits_for != STE_NO_MEMBER && i < x->n_members; i++)
		if (x->members[i].index == p->waits_for)
			c = x->members[i].comm;
	if (c) {
		append_process(c, "tensors", sync_standstill_ns(x, now), text, size);
		return;
	}
	if (stopped[0])
		append(text, size, "%.200s; ", stopped);
	if (append_sources(x, true, false, text, size) == 0 &&
		append_sources(x, false, false, text, size) == 0)
		append(text, size, "waits for the agent's thread");
	append(text, size, " for %.1f s", seconds(sync_standstill_ns(x, now)));
	(void)append_sources(x, true, true, text, size);
}

uint64_t op_progress_sync(
	const struct sync *x, const struct ste_progress *p, uint64_t now, char *waits)
{
	uint64_t standstill = sync_standstill_ns(x, now);

	waits[0] = '\0';
	if (!sync_is_moving(x) || p->moved != x->progress.mark.moved)
		return 0;
	if (standstill >= PROBE_NS)
		describe_sync(x, p, now, waits, WM_TEXT_MAX);
	return standstill;
}

void op_progress_sync_moved(struct sync *x, uint64_t now)
{
	char master[CC_ADDR_STR_SIZE];

	if (x->progress.told_ns)
		rep_complain(&x->run->o->base->report, CC_LOG_NOTICE,
			"the synchronization of group %" PRIu32
			" of master %s goes on after %.1f s",
			x->group, cc_addr_str(&x->run->addr, master),
			seconds(sync_standstill_ns(x, now)));
	end_standstill(&x->progress, now);
}

static void look_at_sync(struct sync *x, uint64_t now)
{
	char master[CC_ADDR_STR_SIZE], waits[WM_TEXT_MAX];
	struct ste_progress p;

	if (!ste_get_progress(x->run->ste, x->seq, &p))
		return;
	if (p.moved != x->progress.mark.moved) {
		x->progress.mark.moved = p.moved;
		op_progress_sync_moved(x, now);
		return;
	}
	if (!is_to_be_told(&x->progress, now))
		return;
	describe_sync(x, &p, now, waits, sizeof waits);
	rep_complain(&x->run->o->base->report, CC_LOG_WARNING,
		"the synchronization of group %" PRIu32 " of master %s stands still, %" PRIu64
		" of %" PRIu64 " bytes are written: %s",
		x->group, cc_addr_str(&x->run->addr, master), p.done, p.bytes, waits);
}

static void look_at_syncs(struct run *r, bool stood_still, uint64_t now)
{
	struct sync *x, *next;

	HASH_ITER (hh, r->syncs, x, next) {
		if (!sync_is_moving(x))
			continue;
		if (stood_still)
			watermark_touch(&x->progress.mark, now);
		look_at_sync(x, now);
	}
}

void op_progress_tick(struct ops *o, uint64_t now)
{
	bool stood_still = now - o->progress_ns > STANDSTILL_NS;
	struct run *r, *next_run;
	struct xfer *x, *next;

	if (now - o->progress_ns < LOOK_NS)
		return;
	o->progress_ns = now;
	HASH_ITER (hh, o->runs, r, next_run) {
		HASH_ITER (hh, r->xfers, x, next) {
			if (!has_begun(x))
				continue;
			if (stood_still) /* this agent itself was suspended */
				watermark_touch(&x->progress.mark, now);
			look_at(x, now);
		}
		look_at_syncs(r, stood_still, now);
	}
}
