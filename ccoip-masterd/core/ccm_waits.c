/* SPDX-License-Identifier: MIT
 *
 * Calls that wait: operations that have not started, and votes of ballots. A wait that
 * takes too long is logged once, and the agents of peers that have voted are told of it, for their
 * users. Stopped processes are reported to all agents of their group at once.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_sync.h"

#define MOMENT_NS (UINT64_C(50) * CCM_NS_PER_MS)
#define LATE_NS   (UINT64_C(2000) * CCM_NS_PER_MS)
/* A wait that was reported is looked at again after this time. */
#define REFRESH_NS (UINT64_C(2000) * CCM_NS_PER_MS)
#define LOOKS_MAX  16u /* operations looked at in one tick */
#define NAMES_MAX  4u
#define MORE_ROOM  24u /* bytes for " and 65536 more" */

/* ---- names of awaited peers ---- */

struct list {
	char *text; /* names are appended to it */
	size_t size;
	uint32_t n;     /* names */
	uint32_t peers; /* peers that these names stand for */
	uint64_t now;
	bool exact;
	bool odd; /* true: names peers in trouble; false: names peers that are merely late */
};

__attribute__((format(printf, 3, 4))) static void add(
	struct list *x, uint32_t peers, const char *fmt, ...)
{
	char entry[WM_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(entry, sizeof entry, fmt, ap);
	va_end(ap);
	if (x->n == NAMES_MAX || strlen(x->text) + strlen(entry) + MORE_ROOM > x->size)
		return;
	ccm_append(x->text, x->size, "%s%s", x->n ? ", " : "", entry);
	x->n++;
	x->peers += peers;
}

static void add_rest(struct list *x, uint32_t peers)
{
	if (x->peers < peers)
		ccm_append(x->text, x->size, "%s%u more", x->n ? " and " : "", peers - x->peers);
}

/* Returns the reason why a's peers cannot vote at all or may receive nothing, or "". */
static const char *agent_trouble(
	const struct ccm *m, const struct ccm_agent *a, const struct list *x, char buf[64])
{
	uint64_t lease = m->cfg.agent_lease_ms * CCM_NS_PER_MS;
	uint64_t age = ccm_age(x->now, a->disconnected_ns);

	buf[0] = '\0';
	if (a->disconnected && x->exact)
		ccm_print(buf, 64, "agent is gone, %.1f s of its lease left",
			(double)(age < lease ? lease - age : 0) / 1e9);
	else if (a->disconnected)
		ccm_print(buf, 64, "agent is gone");
	else if (cc_detect_silence(&a->life, x->now) > m->cfg.timeout_ms * CCM_NS_PER_MS / 2)
		ccm_print(buf, 64, "agent is silent");
	else if (a->flaps.n > 1)
		ccm_print(buf, 64, "agent has lost the master %u times in a row", a->flaps.n);
	return buf;
}

static void add_stopped(struct list *x, const struct ccm_peer *p)
{
	char label[3 * WM_NAME_MAX];

	(void)ccm_peer_label(p, label);
	if (x->exact)
		add(x, 1, "%s (is stopped, for %.1f s)", label,
			(double)ccm_age(x->now, p->stopped_ns) / 1e9);
	else
		add(x, 1, "%s (is stopped)", label);
}

/* Names p, unless x lists only peers of another kind (x->odd). */
static void add_peer(const struct ccm *m, struct list *x, const struct ccm_peer *p)
{
	char label[3 * WM_NAME_MAX], trouble[64];

	(void)ccm_peer_label(p, label);
	if (agent_trouble(m, p->membership->agent, x, trouble)[0] && x->odd)
		add(x, 1, "%s (its %s)", label, trouble);
	else if (trouble[0] || x->odd != (p->stopped_ns != 0))
		return;
	else if (!x->odd)
		add(x, 1, "%s (has not called)", label);
	else
		add_stopped(x, p);
}

static bool is_full(const struct list *x)
{
	return x->n == NAMES_MAX;
}

static uint32_t membership_votes(const struct ccm_op *o, const struct ccm_membership *s)
{
	return s->slot < o->n_parts && o->parts[s->slot].membership ? o->parts[s->slot].n_votes : 0;
}

/* Names the peers of s that have not voted. Agents collect votes for a moment and send those of all
 * their peers at once. So if an agent has sent no vote, it is unknown which of its peers have
 * called. */
static void add_membership(
	const struct ccm *m, struct list *x, const struct ccm_op *o, const struct ccm_membership *s)
{
	uint32_t votes = membership_votes(o, s), idle = s->n_accepted - votes;
	char trouble[64];
	struct ccm_peer *p;

	if (idle == 0)
		return;
	if (idle > 1 && agent_trouble(m, s->agent, x, trouble)[0]) {
		if (x->odd)
			add(x, idle, "%u peers on %s (their %s)", idle, s->agent->hello.name,
				trouble);
		return;
	}
	DL_FOREACH (s->peers, p) {
		if (p->phase != CCM_PEER_ACCEPTED || ccm_op_voted(o, p))
			continue;
		idle -= p->stopped_ns != 0;
		if (x->odd || votes > 0 || s->n_accepted == 1)
			add_peer(m, x, p);
	}
	if (!x->odd && votes == 0 && s->n_accepted > 1 && idle > 0)
		add(x, idle, "%s (none of its %u peers has voted)", s->agent->hello.name,
			s->n_accepted);
}

/* Returns the kind of the votes that keep operations of g from starting. */
static enum wire_ballot barring_kind(const struct ccm_group *g)
{
	uint32_t k = 0;

	while (g->n_votes[k] == 0 || !wire_ballot_kinds[k].is_exclusive)
		k++;
	return (enum wire_ballot)k;
}

/* Names the reason why o, which has all its votes, does not start. */
static void name_obstacle(const struct ccm *m, const struct ccm_op *o, uint64_t now, bool exact,
	char *text, size_t size)
{
	const struct ccm_agent *a = ccm_round_waits(m);
	enum wire_ballot kind;

	if (m->round.active && m->round.failed_ns) {
		ccm_print(text, size, "the master to decide on a connection round that failed");
	} else if (m->round.active) {
		ccm_print(text, size, "the connection round: ");
		ccm_name_reporters(m, text, size);
	} else if (ccm_ballot_bars(o->group)) {
		kind = barring_kind(o->group);
		ccm_print(text, size, "the %s: ", wire_ballot_kinds[kind].name);
		ccm_name_voters(m, kind, now, exact, text, size);
	} else if (ccm_sync_excludes(o)) {
		ccm_print(text, size, "%s of the same group",
			o->sync ? "an operation" : "the synchronization of shared state");
	} else {
		ccm_print(text, size, "the snapshot of the agent on %s",
			a ? a->hello.name : "a host");
	}
}

void ccm_op_awaited(const struct ccm *m, const struct ccm_op *o, uint64_t now, bool exact,
	char *text, size_t size)
{
	const struct ccm_group *g = o->group;
	struct list x = {.text = text, .size = size, .now = now, .exact = exact};
	const struct ccm_membership *s;
	int pass;

	if (o->n_votes == g->n_accepted) {
		name_obstacle(m, o, now, exact, text, size);
		return;
	}
	ccm_print(text, size, "%u of %u peers: ", g->n_accepted - o->n_votes, g->n_accepted);
	for (pass = 0; pass < 2; pass++) {
		x.odd = pass == 0;
		for (s = g->memberships; s && !is_full(&x); s = s->next_g)
			add_membership(m, &x, o, s);
	}
	add_rest(&x, g->n_accepted - o->n_votes);
}

void ccm_name_voters(const struct ccm *m, enum wire_ballot kind, uint64_t now, bool exact,
	char *text, size_t size)
{
	struct list x = {.text = text, .size = size, .now = now, .exact = exact};
	const struct ccm_peer *p;
	int pass;

	for (pass = 0; pass < 2; pass++) {
		x.odd = pass == 0;
		for (p = m->peers; p && !is_full(&x); p = p->hh.next)
			if (p->phase == CCM_PEER_ACCEPTED && !p->voted[kind])
				add_peer(m, &x, p);
	}
	add_rest(&x, m->n_accepted - m->ballots[kind].n_votes);
}

/* ---- messages to agents ---- */

/* Returns the time that a call has waited. The time in which this process was suspended does not
 * count. */
static uint64_t waited(const struct ccm *m, uint64_t since)
{
	return ccm_age(m->now, since > m->woke_ns ? since : m->woke_ns);
}

static void tell(struct ccm *m, const struct ccm_agent *a, const struct wm_waits *what)
{
	ccm_send(m, a, WM_WAITS)->u.waits = *what;
}

static uint32_t milliseconds(uint64_t ns)
{
	return ns / CCM_NS_PER_MS < UINT32_MAX ? (uint32_t)(ns / CCM_NS_PER_MS) : UINT32_MAX;
}

static void tell_op(struct ccm *m, const struct ccm_op *o, const char *text)
{
	struct wm_waits w = {
		.kind = o->sync ? WM_WAIT_SYNC : WM_WAIT_OP,
		.group = o->group->id,
		.tag = o->key.tag,
		.waited_ms = milliseconds(ccm_age(m->now, o->born_ns)),
	};
	uint32_t i;

	ccm_print(w.text, sizeof w.text, "%s", text);
	for (i = 0; i < o->n_parts; i++)
		if (o->parts[i].membership)
			tell(m, o->parts[i].membership->agent, &w);
}

/* Logs the wait of o. One line is enough for all operations of the group that wait for the same
 * peers. */
static void log_op(struct ccm *m, struct ccm_op *o)
{
	char text[WM_TEXT_MAX], label[64];

	if (o->group->n_late > 1 && o->group->late_for == o->text_hash)
		return;
	o->group->late_for = o->text_hash;
	o->logged = true;
	ccm_op_awaited(m, o, m->now, true, text, sizeof text);
	ccm_log(m, CCM_LOG_WARNING, "%s has waited for %.1f s for %s", ccm_op_label(o, label),
		(double)ccm_age(m->now, o->born_ns) / 1e9, text);
}

static void look(struct ccm *m, struct ccm_op *o, bool first)
{
	char text[WM_TEXT_MAX];
	unsigned what;

	ccm_op_awaited(m, o, m->now, false, text, sizeof text);
	what = cc_hash(text, strlen(text));
	if (first || what != o->text_hash)
		tell_op(m, o, text);
	o->text_hash = what;
	if (first)
		log_op(m, o);
	o->looked_ns = m->now;
}

void ccm_waits_add(struct ccm *m, struct ccm_op *o)
{
	DL_APPEND2(m->fresh, o, prev_w, next_w);
}

void ccm_waits_remove(struct ccm *m, struct ccm_op *o, bool started)
{
	char label[64];

	if (!o->late) {
		DL_DELETE2(m->fresh, o, prev_w, next_w);
		return;
	}
	DL_DELETE2(m->late, o, prev_w, next_w);
	o->group->n_late--;
	o->late = false;
	if (started && o->logged)
		ccm_log(m, CCM_LOG_NOTICE, "%s goes on after %.1f s", ccm_op_label(o, label),
			(double)ccm_age(m->now, o->born_ns) / 1e9);
}

static void look_at_ops(struct ccm *m)
{
	struct ccm_op *o;
	uint32_t n = 0;

	while ((o = m->fresh) != NULL && n < LOOKS_MAX && waited(m, o->born_ns) >= LATE_NS) {
		DL_DELETE2(m->fresh, o, prev_w, next_w);
		DL_APPEND2(m->late, o, prev_w, next_w);
		o->late = true;
		o->group->n_late++;
		look(m, o, true);
		n++;
	}
	while ((o = m->late) != NULL && n < LOOKS_MAX &&
		ccm_age(m->now, o->looked_ns) >= REFRESH_NS) {
		DL_DELETE2(m->late, o, prev_w, next_w);
		DL_APPEND2(m->late, o, prev_w, next_w);
		look(m, o, false);
		n++;
	}
}

/* ---- ballots ---- */

static bool ballot_waits(const struct ccm *m, enum wire_ballot kind)
{
	uint32_t votes = m->ballots[kind].n_votes;

	return votes > 0 && votes < m->n_accepted && !(kind == WIRE_TOPOLOGY && m->round.active);
}

/* Does `a` have a peer that waits for the end of the ballot? */
static bool takes_part(const struct ccm_agent *a, enum wire_ballot kind)
{
	const struct ccm_membership *s;
	const struct ccm_peer *p;

	DL_FOREACH2 (a->memberships, s, next_a)
		DL_FOREACH (s->peers, p)
			if (p->voted[kind] ||
				(wire_ballot_kinds[kind].admits && p->phase == CCM_PEER_REGISTERED))
				return true;
	return false;
}

static void tell_voters(struct ccm *m, enum wire_ballot kind, uint64_t since, const char *text)
{
	struct wm_waits w = {
		.kind = WM_WAIT_BALLOT,
		.ballot = kind,
		.waited_ms = milliseconds(ccm_age(m->now, since)),
	};
	const struct ccm_agent *a;

	ccm_print(w.text, sizeof w.text, "%s", text);
	for (a = m->agents; a; a = a->hh.next)
		if (takes_part(a, kind))
			tell(m, a, &w);
}

static void name_missing(
	const struct ccm *m, enum wire_ballot kind, bool exact, char text[WM_TEXT_MAX])
{
	ccm_print(text, WM_TEXT_MAX, "%u of %u peers: ", m->n_accepted - m->ballots[kind].n_votes,
		m->n_accepted);
	ccm_name_voters(m, kind, m->now, exact, text, WM_TEXT_MAX);
}

static void look_at_late_ballot(struct ccm *m, enum wire_ballot kind)
{
	struct ccm_late *w = &m->ballots[kind].late;
	uint64_t since = m->ballots[kind].since_ns;
	bool first = w->since_ns == 0;
	char text[WM_TEXT_MAX];
	unsigned what;

	if (waited(m, since) < LATE_NS || (!first && ccm_age(m->now, w->looked_ns) < REFRESH_NS))
		return;
	w->since_ns = since;
	w->looked_ns = m->now;
	name_missing(m, kind, false, text);
	what = cc_hash(text, strlen(text));
	if (first || what != w->text_hash)
		tell_voters(m, kind, since, text);
	w->text_hash = what;
	if (!first)
		return;
	name_missing(m, kind, true, text);
	ccm_log(m, CCM_LOG_WARNING, "the %s has waited for %.1f s for %s",
		wire_ballot_kinds[kind].name, (double)ccm_age(m->now, since) / 1e9, text);
}

static void look_at_ballot(struct ccm *m, enum wire_ballot kind)
{
	struct ccm_late *w = &m->ballots[kind].late;
	bool waits = ballot_waits(m, kind);

	if (w->since_ns && (!waits || w->since_ns != m->ballots[kind].since_ns)) {
		ccm_log(m, CCM_LOG_NOTICE, "the wait for the %s is over after %.1f s",
			wire_ballot_kinds[kind].name, (double)ccm_age(m->now, w->since_ns) / 1e9);
		*w = (struct ccm_late){0};
	}
	if (waits)
		look_at_late_ballot(m, kind);
}

/* ---- stopped processes ---- */

bool ccm_name_stopped(const struct ccm_group *g, uint64_t now, bool exact, char *text, size_t size)
{
	struct list x = {.text = text, .size = size, .now = now, .exact = exact};
	const struct ccm_membership *s;
	const struct ccm_peer *p;
	uint32_t n = 0;

	DL_FOREACH2 (g->memberships, s, next_g) {
		DL_FOREACH (s->peers, p) {
			if (p->phase != CCM_PEER_ACCEPTED || !p->stopped_ns)
				continue;
			n++;
			add_stopped(&x, p);
		}
	}
	if (n > 0)
		add_rest(&x, n);
	return n > 0;
}

static void tell_stopped(struct ccm *m, struct ccm_group *g)
{
	struct wm_waits *w = &ccm_send_all(m, WM_WAITS)->u.waits;
	const struct ccm_membership *s;

	w->kind = WM_WAIT_STOPPED;
	w->group = g->id;
	g->stopped = ccm_name_stopped(g, m->now, false, w->text, sizeof w->text);
	g->stopped_news = false;
	DL_FOREACH2 (g->memberships, s, next_g)
		if (s->n_accepted > 0)
			ccm_send_to(m, s->agent);
}

static void tell_all_stopped(struct ccm *m)
{
	struct ccm_group *g;

	if (!m->stopped_news || m->recovering)
		return;
	m->stopped_news = false;
	for (g = m->groups; g; g = g->hh.next)
		if (g->stopped_news)
			tell_stopped(m, g);
}

void ccm_name_asleep(const struct ccm *m, uint64_t now, char *text, size_t size)
{
	struct list x = {.text = text, .size = size, .now = now, .exact = true};
	const struct ccm_peer *p;

	for (p = m->peers; p && !is_full(&x); p = p->hh.next)
		if (p->phase == CCM_PEER_REGISTERED && p->stopped_ns)
			add_stopped(&x, p);
	add_rest(&x, m->n_asleep);
}

void ccm_asleep_count(struct ccm *m, struct ccm_peer *p, bool is)
{
	if (is) {
		p->membership->n_asleep++;
		m->n_asleep++;
	} else {
		p->membership->n_asleep--;
		m->n_asleep--;
	}
	m->newcomers = true;
}

static void set_stopped(struct ccm *m, struct ccm_peer *p, uint64_t since)
{
	if (p->phase == CCM_PEER_REGISTERED)
		ccm_asleep_count(m, p, since != 0);
	p->stopped_ns = since;
	p->membership->group->stopped_news = m->stopped_news = true;
	m->stuck_news = true;
}

void ccm_peer_stopped(struct ccm *m, struct ccm_agent *a, const struct wm_stopped *v)
{
	struct ccm_peer *p = ccm_peer_of(m, a, &v->peer, "the state of a process");

	if (p && v->is != (p->stopped_ns != 0))
		set_stopped(m, p, v->is ? m->now : 0);
}

void ccm_peer_goes_on(struct ccm *m, struct ccm_peer *p)
{
	if (p->stopped_ns)
		set_stopped(m, p, 0);
}

void ccm_stopped_tell(struct ccm *m, const struct ccm_peer *p)
{
	if (p->stopped_ns || p->membership->group->stopped)
		p->membership->group->stopped_news = m->stopped_news = true;
}

/* Operations in m->fresh are sorted by age, so the first one is the oldest. */
bool ccm_waits_any(const struct ccm *m)
{
	uint32_t k;

	for (k = 0; k < WIRE_BALLOTS; k++)
		if (ballot_waits(m, (enum wire_ballot)k) &&
			waited(m, m->ballots[k].since_ns) >= MOMENT_NS)
			return true;
	return m->late || (m->fresh && waited(m, m->fresh->born_ns) >= MOMENT_NS);
}

void ccm_waits_tick(struct ccm *m)
{
	uint32_t k;

	look_at_ops(m);
	for (k = 0; k < WIRE_BALLOTS; k++)
		look_at_ballot(m, (enum wire_ballot)k);
	tell_all_stopped(m);
}
