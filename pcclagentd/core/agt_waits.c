/* SPDX-License-Identifier: MIT
 *
 * Operations and votes that are late: which peers are awaited, and when the log names them. The
 * agent knows the awaited peers of its own host; the master reports those of other hosts.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

#define PART_NS (AGT_PART_MS * (uint64_t)AGT_NS_PER_MS)
/* After this time the log names the awaited peers. */
#define LATE_NS   (UINT64_C(2000) * AGT_NS_PER_MS)
#define LINES_MAX 10u /* the most such lines in LINES_NS */
#define LINES_NS  (UINT64_C(10000) * AGT_NS_PER_MS)

/* Returns for how long o has waited. If this process has stood still, only the time since then
 * counts. */
static uint64_t waited(const struct agt *a, const struct agt_op *o)
{
	return a->now - (o->born_ns > a->woke_ns ? o->born_ns : a->woke_ns);
}

static double seconds(const struct agt *a, uint64_t since)
{
	return (double)(a->now - since) / 1e9;
}

static bool may_log(struct agt *a)
{
	if (a->now - a->lines_ns >= LINES_NS) {
		a->lines_ns = a->now;
		a->n_lines = 0;
	}
	return a->n_lines++ < LINES_MAX;
}

/* ---- on this host ---- */

static struct agt_op **watched(struct agt *a, enum agt_watch w)
{
	return w == AGT_WATCH_FRESH ? &a->fresh : &a->older;
}

static void watch(struct agt *a, struct agt_op *o, enum agt_watch w)
{
	struct agt_op **head;

	if (o->watch != AGT_WATCH_NONE) {
		head = watched(a, o->watch);
		DL_DELETE2(*head, o, prev_w, next_w);
	}
	o->watch = w;
	if (w != AGT_WATCH_NONE) {
		head = watched(a, w);
		DL_APPEND2(*head, o, prev_w, next_w);
	}
}

void agt_waits_add(struct agt *a, struct agt_op *o)
{
	watch(a, o, AGT_WATCH_FRESH);
}

void agt_waits_remove(struct agt *a, struct agt_op *o)
{
	watch(a, o, AGT_WATCH_NONE);
}

bool agt_waits_enough(const struct agt *a, const struct agt_op *o)
{
	return o->alone || waited(a, o) >= PART_NS;
}

const struct agt_comm *agt_waits_missing(const struct agt_op *o)
{
	const struct agt_comm *c, *who = NULL;
	uint64_t since = 0;

	if (o->state > AGT_OP_VOTING)
		return NULL;
	DL_FOREACH2 (o->run->comms, c, next_r) {
		uint64_t stopped = c->session->stopped_ns;

		if (!c->counted || c->group != o->key.group || agt_op_has(o, c))
			continue;
		if (!who || (stopped && (!since || stopped < since))) {
			who = c;
			since = stopped;
		}
	}
	return who;
}

const char *agt_process_name(const struct agt_comm *c, uint64_t now_ns, char *buf, size_t size)
{
	const struct agt_session *s = c->session;

	if (s->stopped_ns)
		(void)snprintf(buf, size, "pid %u (%s), which has been stopped for %.1f s,", s->pid,
			s->name, (double)(now_ns - s->stopped_ns) / 1e9);
	else
		(void)snprintf(buf, size, "pid %u (%s)", s->pid, s->name);
	return buf;
}

/* Writes a line about o to the log. The text begins with "has" or "goes". */
__attribute__((format(printf, 4, 5))) static void log_op(
	struct agt *a, const struct agt_op *o, uint32_t level, const char *fmt, ...)
{
	char addr[CC_ADDR_STR_SIZE], name[AGT_OP_NAME], text[WM_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	agt_log(a, level, "%s of master %s %s", agt_op_name(o, name, sizeof name),
		cc_addr_str(&o->run->addr, addr), text);
}

static void log_missing(struct agt *a, struct agt_op *o)
{
	const struct agt_comm *c = agt_waits_missing(o);
	const struct agt_group *g = agt_group_find(o->run, o->key.group);
	char more[32] = "", name[WL_NAME_MAX + 80];

	if (!c || !g || o->late || !may_log(a))
		return;
	if (g->accepted > o->n + 1)
		(void)snprintf(more, sizeof more, " and %u more", g->accepted - o->n - 1);
	o->late = true;
	log_op(a, o, AGT_LOG_WARNING, "has waited for %.1f s for local %s%s to submit",
		seconds(a, o->born_ns), agt_process_name(c, a->now, name, sizeof name), more);
}

void agt_waits_tick(struct agt *a)
{
	struct agt_op *o;

	while ((o = a->fresh) != NULL && waited(a, o) >= PART_NS) {
		watch(a, o, AGT_WATCH_OLDER);
		agt_op_try_vote(a, o);
	}
	while ((o = a->older) != NULL && waited(a, o) >= LATE_NS) {
		watch(a, o, AGT_WATCH_NONE);
		log_missing(a, o);
	}
}

void agt_tell_stopped(struct agt *a, const struct agt_comm *c)
{
	struct wm_stopped *m = &agt_send(a, c->run, WM_STOPPED)->u.stopped;

	m->peer = c->peer;
	m->is = c->session->stopped_ns != 0;
}

/* ---- elsewhere ---- */

static uint64_t since(const struct agt *a, const struct wm_waits *m)
{
	uint64_t ns = m->waited_ms * (uint64_t)AGT_NS_PER_MS;

	return a->now > ns ? a->now - ns : 1;
}

static void op_told(struct agt *a, struct agt_run *r, const struct wm_waits *m)
{
	struct agt_op_key key = agt_op_key(m->group, m->tag, m->kind == WM_WAIT_SYNC);
	struct agt_op *o = agt_op_find(r->active, &key);

	if (!o || o->state != AGT_OP_VOTING)
		return;
	free(o->awaited);
	o->awaited = cc_must_copy(m->text, strlen(m->text) + 1, 1);
	o->waits_ns = since(a, m);
	/* If local members are missing, the agent's own line names them, now or later. */
	if (o->told || agt_waits_missing(o) || !may_log(a))
		return;
	o->told = true;
	log_op(a, o, AGT_LOG_WARNING, "has waited for %.1f s for %s", seconds(a, o->waits_ns),
		o->awaited);
}

static void vote_told(struct agt *a, struct agt_run *r, const struct wm_waits *m)
{
	struct agt_awaited *w = &r->late[m->ballot];
	bool first = w->since_ns == 0;
	char addr[CC_ADDR_STR_SIZE];

	w->since_ns = since(a, m);
	agt_copy_text(w->text, sizeof w->text, m->text);
	if (first)
		agt_log(a, AGT_LOG_WARNING,
			"a vote on %s of master %s has waited for %.1f s for %s",
			wire_ballot_kinds[m->ballot].subject, cc_addr_str(&r->addr, addr),
			seconds(a, w->since_ns), w->text);
}

static void stopped_told(struct agt_run *r, const struct wm_waits *m)
{
	struct agt_group *g = agt_group_find(r, m->group);

	if (g)
		agt_copy_text(g->stopped, sizeof g->stopped, m->text);
}

void agt_waits_set(struct agt *a, struct agt_run *r, const struct wm_waits *m)
{
	if (m->kind == WM_WAIT_OP || m->kind == WM_WAIT_SYNC)
		op_told(a, r, m);
	else if (m->kind == WM_WAIT_STOPPED)
		stopped_told(r, m);
	else
		vote_told(a, r, m);
}

void agt_waits_started(struct agt *a, const struct agt_op *o)
{
	if (o->late || o->told)
		log_op(a, o, AGT_LOG_NOTICE, "goes on after %.1f s", seconds(a, o->born_ns));
}

void agt_waits_over(struct agt *a, struct agt_run *r, enum wire_ballot kind)
{
	struct agt_awaited *w = &r->late[kind];
	char addr[CC_ADDR_STR_SIZE];

	if (w->since_ns)
		agt_log(a, AGT_LOG_NOTICE, "a vote on %s of master %s is over after %.1f s",
			wire_ballot_kinds[kind].subject, cc_addr_str(&r->addr, addr),
			seconds(a, w->since_ns));
	w->since_ns = 0;
}

void agt_waits_forget(struct agt_run *r)
{
	struct agt_group *g;
	struct agt_op *o;

	memset(r->late, 0, sizeof r->late);
	for (g = r->groups; g; g = g->hh.next)
		g->stopped[0] = '\0';
	DL_FOREACH2 (r->ops, o, next_op) {
		free(o->awaited);
		o->awaited = NULL;
	}
}
