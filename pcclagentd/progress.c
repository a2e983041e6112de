/* SPDX-License-Identifier: MIT
 *
 * Whether transfers move, and who is at fault when one does not. The engine's threads only count;
 * here their counts are compared from time to time, and links are asked about only when a transfer
 * stands still.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pcclagentd/io.h"

#define LOOK_NS   MS(250)   /* between looks */
#define PROBE_NS  MS(500)   /* of standing still: links are looked at, too */
#define STALL_NS  MS(1000)  /* is worth a line in the log */
#define REPEAT_NS MS(10000) /* and another one */
#define SAY_NS    MS(1000)  /* between words to the master on a standstill */
#define SILENT_NS MS(2000)  /* idle streams ask the other host's system once a second */

static bool has_begun(const struct xfer *x)
{
	return (x->started || x->small) && !x->finished && !x->over;
}

/* An operation that began ahead may wait for peers that have not called yet. */
static bool is_moving(const struct xfer *x)
{
	return has_begun(x) && !x->ahead;
}

static bool get_progress(const struct xfer *x, struct eng_progress *ret)
{
	if (!x->small)
		return eng_get_progress(x->run->eng, x->seq, ret);
	small_progress(x->small, ret);
	return true;
}

static uint64_t stalled_ns(const struct xfer *x, uint64_t now)
{
	return now > x->moved_ns ? now - x->moved_ns : 0;
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

/* ---- what it waits for ---- */

struct neighbour {
	char host[WM_NAME_MAX];
	uint64_t heard_ns; /* 0: not known */
	bool blocked;      /* takes no more data */
};

static struct in_link *find_in_link(const struct run *r, const struct cc_id *peer)
{
	struct in_link *l;

	DL_FOREACH (r->in_links, l) {
		if (cc_id_eq(&l->peer, peer))
			break;
	}
	return l;
}

/* By both links with that agent, where there are two. */
static struct neighbour look_up(const struct run *r, const struct cc_id *peer, const char *name)
{
	const struct in_link *in = find_in_link(r, peer);
	struct neighbour n = {.heard_ns = in ? in->health.heard_ns : 0};
	struct out_link_view out = {.host = ""};

	if (out_link_view(r, peer, 0, &out)) {
		n.blocked = out.health->blocked;
		if (out.health->heard_ns > n.heard_ns)
			n.heard_ns = out.health->heard_ns;
	}
	agentd_copy_text(n.host, sizeof n.host,
		out.host[0] ? out.host
		: name[0]   ? name
			    : "an unnamed host");
	return n;
}

/* c: NULL or one of its communicators; doing: what it is to do. */
static void append_process(struct agentd *d, const struct comm *c, const char *doing,
	uint64_t stalled, char *text, size_t size)
{
	struct session *s = NULL;

	if (c)
		HASH_FIND(hh, d->sessions, &c->session, sizeof c->session, s);
	if (s)
		append(text, size, "waits for local pid %" PRIu32 " (%s) to copy its %s",
			s->process.pid, s->name, doing);
	else
		append(text, size, "waits for a process that is gone");
	append(text, size, " for %.1f s%s", seconds(stalled),
		s && s->stopped ? "; it is stopped" : "");
}

static void append_neighbour(const struct xfer *x, uint64_t now, char *text, size_t size)
{
	struct neighbour next = look_up(x->run, &x->next, "");
	struct neighbour prev = look_up(x->run, &x->prev, x->prev_name);
	const struct neighbour *n = next.blocked ? &next : &prev;
	uint64_t silent = now > n->heard_ns ? now - n->heard_ns : 0;
	const char *stopped = agt_stopped_in(x->run->d->core, x->run->id, x->group);

	if (stopped[0])
		append(text, size, "%.340s; ", stopped);
	append(text, size, next.blocked ? "waits for %s to take data" : "waits for data from %s",
		n->host);
	append(text, size, " for %.1f s", seconds(stalled_ns(x, now)));
	if (n->heard_ns == 0)
		return;
	append(text, size,
		silent > SILENT_NS ? "; %s has been silent for %.1f s"
				   : "; %s was heard of %.1f s ago",
		n->host, seconds(silent));
}

static void describe(
	const struct xfer *x, const struct eng_progress *p, uint64_t now, char *text, size_t size)
{
	text[0] = '\0';
	if (p->copying != ENG_NO_MEMBER)
		append_process(x->run->d,
			p->copying < x->n_members ? x->members[p->copying].h.comm : NULL,
			"operand in", stalled_ns(x, now), text, size);
	else if (x->hosts > 1)
		append_neighbour(x, now, text, size);
	else
		append(text, size, "waits for the agent's threads for %.1f s",
			seconds(stalled_ns(x, now)));
}

bool progress_get(const struct run *r, uint64_t seq, uint64_t now, struct progress *ret)
{
	struct xfer *x;

	HASH_FIND(hh, r->xfers, &seq, sizeof seq, x);
	if (!x || !is_moving(x) || !get_progress(x, &ret->eng))
		return false;
	ret->stalled_ns = ret->eng.moved == x->moved ? stalled_ns(x, now) : 0;
	ret->waits[0] = '\0';
	if (ret->stalled_ns >= PROBE_NS)
		describe(x, &ret->eng, now, ret->waits, sizeof ret->waits);
	return true;
}

/* ---- looking ---- */

/* Once per look, however many transfers wait. */
static void probe(struct run *r, uint32_t num, struct link_health *h, uint64_t now)
{
	if (h->probed_ns == now)
		return;
	h->probed_ns = now;
	eng_probe(r->eng, num);
}

static void probe_neighbours(const struct xfer *x, uint64_t now)
{
	const struct cc_id *peers[2] = {&x->next, &x->prev};
	struct run *r = x->run;

	for (int i = 0; i < 2 && x->hosts > 1; i++) {
		struct in_link *in = find_in_link(r, peers[i]);
		struct out_link_view out;

		if (in)
			probe(r, in->num, &in->health, now);
		if (out_link_view(r, peers[i], 0, &out))
			probe(r, out.num, out.health, now);
	}
}

void progress_heard(struct run *r, const struct eng_event *e)
{
	uint64_t now = cc_now_ns();
	struct link_health *h = NULL;
	struct out_link_view out;
	struct in_link *in;

	DL_SEARCH_SCALAR(r->in_links, in, num, e->link);
	if (in)
		h = &in->health;
	else if (out_link_view(r, NULL, e->link, &out))
		h = out.health;
	if (!h)
		return;
	h->heard_ns = now > MS(e->heard_ms) ? now - MS(e->heard_ms) : 1;
	h->blocked = e->blocked;
}

static void tell(const struct xfer *x, const struct eng_progress *p, uint64_t now)
{
	char master[CC_ADDR_STR_SIZE], waits[WM_TEXT_MAX];

	describe(x, p, now, waits, sizeof waits);
	agentd_complain(x->run->d, CC_LOG_WARNING,
		"tag %" PRIu64 " of group %" PRIu32 " of master %s stands still, %" PRIu32
		" of %" PRIu32 " segments are done: %s",
		x->tag, x->group, cc_addr_str(&x->run->addr, master), p->segs_done, p->segs, waits);
}

void progress_moved(struct xfer *x, uint64_t now)
{
	char master[CC_ADDR_STR_SIZE];

	if (x->told_ns)
		agentd_complain(x->run->d, CC_LOG_NOTICE,
			"tag %" PRIu64 " of group %" PRIu32 " of master %s goes on after %.1f s",
			x->tag, x->group, cc_addr_str(&x->run->addr, master),
			seconds(stalled_ns(x, now)));
	x->moved_ns = now;
	x->told_ns = 0;
}

/* Nobody here is waited for: the neighbours may say more. */
static bool is_for_master(const struct xfer *x, const struct eng_progress *p, uint64_t now)
{
	return x->hosts > 1 && p->copying == ENG_NO_MEMBER && now - x->said_ns >= SAY_NS &&
	       stalled_ns(x, now) >= MS(x->run->bounds.ms[CC_BOUND_STREAM]);
}

static void tell_master(const struct xfer *x, const struct eng_progress *p, uint64_t now)
{
	struct agt_event ev = {.type = AGT_EV_XFER_STALLED,
		.run = x->run->id,
		.seq = x->seq,
		.tx_bytes = p->tx_bytes,
		.rx_bytes = p->rx_bytes,
		.still_ms = (uint32_t)(stalled_ns(x, now) / MS(1))};

	agentd_feed(x->run->d, &ev);
}

static void look_at(struct xfer *x, uint64_t now)
{
	struct eng_progress p;

	if (!get_progress(x, &p))
		return;
	if (p.moved != x->moved) {
		x->moved = p.moved;
		progress_moved(x, now);
		return;
	}
	if (is_for_master(x, &p, now)) {
		x->said_ns = now;
		tell_master(x, &p, now);
	}
	if (x->ahead)
		return;
	if (stalled_ns(x, now) >= PROBE_NS)
		probe_neighbours(x, now);
	if (stalled_ns(x, now) < STALL_NS || (x->told_ns && now - x->told_ns < REPEAT_NS))
		return;
	tell(x, &p, now);
	x->told_ns = now;
}

/* ---- shared state ---- */

static bool sync_is_moving(const struct sync *x)
{
	return x->started && !x->finished && !x->over;
}

static uint64_t sync_stalled_ns(const struct sync *x, uint64_t now)
{
	return now > x->moved_ns ? now - x->moved_ns : 0;
}

/* Agents that have what was elected, or, when there are none, those that may have some of it; or
 * those that were given up. The number of them. */
static uint32_t append_sources(const struct sync *x, bool holds, bool lost, char *text, size_t size)
{
	struct sync_source_view s;
	uint32_t n = 0;

	for (uint32_t i = 0; sync_get_source(x->run, x->seq, i, &s); i++) {
		if (s.lost != lost || (!lost && s.holds != holds))
			continue;
		append(text, size, "%s%s",
			n++    ? ", "
			: lost ? "; given up: "
			       : "waits for ",
			s.host);
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
	const char *stopped = agt_stopped_in(x->run->d->core, x->run->id, x->group);
	const struct comm *c = NULL;

	text[0] = '\0';
	for (uint32_t i = 0; p->waits_for != STE_NO_MEMBER && i < x->n_members; i++)
		if (x->members[i].index == p->waits_for)
			c = x->members[i].comm;
	if (c) {
		append_process(x->run->d, c, "tensors", sync_stalled_ns(x, now), text, size);
		return;
	}
	if (stopped[0])
		append(text, size, "%.200s; ", stopped);
	if (append_sources(x, true, false, text, size) == 0 &&
		append_sources(x, false, false, text, size) == 0)
		append(text, size, "waits for the agent's thread");
	append(text, size, " for %.1f s", seconds(sync_stalled_ns(x, now)));
	(void)append_sources(x, true, true, text, size);
}

uint64_t progress_sync(
	const struct sync *x, const struct ste_progress *p, uint64_t now, char *waits)
{
	uint64_t stalled = sync_stalled_ns(x, now);

	waits[0] = '\0';
	if (!sync_is_moving(x) || p->moved != x->moved)
		return 0;
	if (stalled >= PROBE_NS)
		describe_sync(x, p, now, waits, WM_TEXT_MAX);
	return stalled;
}

void progress_sync_moved(struct sync *x, uint64_t now)
{
	char master[CC_ADDR_STR_SIZE];

	if (x->told_ns)
		agentd_complain(x->run->d, CC_LOG_NOTICE,
			"the synchronization of group %" PRIu32
			" of master %s goes on after %.1f s",
			x->group, cc_addr_str(&x->run->addr, master),
			seconds(sync_stalled_ns(x, now)));
	x->moved_ns = now;
	x->told_ns = 0;
}

static void look_at_sync(struct sync *x, uint64_t now)
{
	char master[CC_ADDR_STR_SIZE], waits[WM_TEXT_MAX];
	struct ste_progress p;

	if (!ste_get_progress(x->run->ste, x->seq, &p))
		return;
	if (p.moved != x->moved) {
		x->moved = p.moved;
		progress_sync_moved(x, now);
		return;
	}
	if (sync_stalled_ns(x, now) < STALL_NS || (x->told_ns && now - x->told_ns < REPEAT_NS))
		return;
	describe_sync(x, &p, now, waits, sizeof waits);
	agentd_complain(x->run->d, CC_LOG_WARNING,
		"the synchronization of group %" PRIu32 " of master %s stands still, %" PRIu64
		" of %" PRIu64 " bytes are there: %s",
		x->group, cc_addr_str(&x->run->addr, master), p.done, p.bytes, waits);
	x->told_ns = now;
}

static void look_at_syncs(struct run *r, bool stood_still, uint64_t now)
{
	struct sync *x, *next;

	HASH_ITER (hh, r->syncs, x, next) {
		if (!sync_is_moving(x))
			continue;
		if (stood_still)
			x->moved_ns = now;
		look_at_sync(x, now);
	}
}

void progress_tick(struct agentd *d, uint64_t now)
{
	bool stood_still = now - d->progress_ns > STALL_NS;
	struct run *r, *next_run;
	struct xfer *x, *next;

	if (now - d->progress_ns < LOOK_NS)
		return;
	d->progress_ns = now;
	HASH_ITER (hh, d->runs, r, next_run) {
		HASH_ITER (hh, r->xfers, x, next) {
			if (!has_begun(x))
				continue;
			if (stood_still) /* this agent: that is not the others' fault */
				x->moved_ns = now;
			look_at(x, now);
		}
		look_at_syncs(r, stood_still, now);
	}
}
