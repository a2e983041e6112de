/* SPDX-License-Identifier: MIT
 *
 * The tables that pcclctl shows of a master, and its commands.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ccoip-masterd/masterd_internal.h"
#include "common/cc_sys.h"
#include "proto/wire_names.h"

static const struct wa_column status_cols[] = {
	{"run", WA_KIND_TEXT},
	{"epoch", WA_KIND_COUNT},
	{"agents", WA_KIND_COUNT},
	{"connections", WA_KIND_COUNT},
	{"accepted", WA_KIND_COUNT},
	{"registered", WA_KIND_COUNT},
	{"disconnected", WA_KIND_COUNT},
	{"groups", WA_KIND_COUNT},
	{"round", WA_KIND_COUNT},
	{"round_active", WA_KIND_BOOL},
	{"round_accepts", WA_KIND_BOOL},
	{"rounds", WA_KIND_COUNT},
	{"last_sequence", WA_KIND_COUNT},
	{"ops_started", WA_KIND_COUNT},
	{"ops_done", WA_KIND_COUNT},
	{"ops_aborted", WA_KIND_COUNT},
	{"joins", WA_KIND_COUNT},
	{"leaves", WA_KIND_COUNT},
	{"lost_members", WA_KIND_COUNT},
	{"kicks", WA_KIND_COUNT},
	{"refused", WA_KIND_COUNT},
	{"waiting", WA_KIND_TEXT},
};

static void fill_status(const struct masterd *m, uint64_t now, struct wa_reply *r)
{
	struct wa_table *t = WA_TABLE(r, "status", status_cols);
	char run[CC_ID_STR_SIZE];
	char waiting[WM_TEXT_MAX];
	struct masterd_stats io;
	struct ccm_status s;
	uint32_t col = 0;

	ccm_get_status(masterd_core(m), &s);
	masterd_get_stats(m, &io);
	wa_row_add(t);
	wa_set_text(t, col++, "%s", cc_id_str(&s.run, run));
	wa_set_number(t, col++, s.epoch);
	wa_set_number(t, col++, s.agents);
	wa_set_number(t, col++, io.conns);
	wa_set_number(t, col++, s.accepted);
	wa_set_number(t, col++, s.registered);
	wa_set_number(t, col++, s.disconnected);
	wa_set_number(t, col++, s.groups);
	wa_set_number(t, col++, s.round);
	wa_set_number(t, col++, s.round_active);
	wa_set_number(t, col++, s.round_accepts);
	wa_set_number(t, col++, s.rounds);
	wa_set_number(t, col++, s.last_seq);
	wa_set_number(t, col++, s.ops_started);
	wa_set_number(t, col++, s.ops_done);
	wa_set_number(t, col++, s.ops_aborted);
	wa_set_number(t, col++, s.joins);
	wa_set_number(t, col++, s.leaves);
	wa_set_number(t, col++, s.lost_members);
	wa_set_number(t, col++, s.kicks);
	wa_set_number(t, col++, io.refused);
	ccm_write_waiting(masterd_core(m), now, waiting, sizeof waiting);
	wa_set_text(t, col, "%s", waiting);
}

static const struct wa_column peer_cols[] = {
	{"group", WA_KIND_COUNT},
	{"rank", WA_KIND_TEXT},
	{"peer", WA_KIND_TEXT},
	{"program", WA_KIND_TEXT},
	{"pid", WA_KIND_COUNT},
	{"host", WA_KIND_TEXT},
	{"agent", WA_KIND_TEXT},
	{"address", WA_KIND_TEXT},
	{"phase", WA_KIND_TEXT},
	{"state", WA_KIND_TEXT},
	{"since", WA_KIND_NS},
	{"ops", WA_KIND_COUNT},
	{"disconnected", WA_KIND_TEXT},
};

static void fill_peer(void *arg, const struct ccm_peer_info *p)
{
	struct wa_table *t = arg;
	char id[CC_ID_SHORT_SIZE], addr[CC_ADDR_STR_SIZE];
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_number(t, col++, p->group);
	/* A peer in no ring has no rank. */
	if (p->rank >= 0)
		wa_set_text(t, col, "%d", p->rank);
	col++;
	wa_set_text(t, col++, "%s", cc_id_short(&p->peer, id));
	wa_set_text(t, col++, "%s", p->name);
	wa_set_number(t, col++, p->pid);
	wa_set_text(t, col++, "%s", p->host);
	wa_set_text(t, col++, "%s", cc_id_short(&p->agent, id));
	wa_set_text(t, col++, "%s", cc_addr_str(&p->addr, addr));
	wa_set_text(t, col++, "%s", ccm_phase_name(p->phase));
	wa_set_text(t, col++, "%s", ccm_state_name(p->state));
	wa_set_number(t, col++, p->state_ns);
	wa_set_number(t, col++, p->ops);
	if (p->disconnected)
		wa_set_text(t, col, "%.1f s", (double)p->disconnected_ns / 1e9);
}

static const struct wa_column op_cols[] = {
	{"group", WA_KIND_COUNT},
	{"kind", WA_KIND_TEXT},
	{"tag", WA_KIND_COUNT},
	{"sequence", WA_KIND_COUNT},
	{"state", WA_KIND_TEXT},
	{"age", WA_KIND_NS},
	{"standstill", WA_KIND_NS},
	{"bytes", WA_KIND_BYTES},
	{"elements", WA_KIND_COUNT},
	{"votes", WA_KIND_COUNT},
	{"world_size", WA_KIND_COUNT},
	{"awaited", WA_KIND_TEXT},
};

static void fill_op(void *arg, const struct ccm_op_info *o)
{
	struct wa_table *t = arg;
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_number(t, col++, o->group);
	wa_set_text(t, col++, "%s", o->is_sync ? "sync" : "all-reduce");
	wa_set_number(t, col++, o->tag);
	wa_set_number(t, col++, o->seq);
	wa_set_text(t, col++, "%s", ccm_collective_name(o->state));
	wa_set_number(t, col++, o->age_ns);
	wa_set_number(t, col++, o->standstill_ns);
	wa_set_number(t, col++, o->bytes);
	wa_set_number(t, col++, o->params.count);
	wa_set_number(t, col++, o->votes);
	wa_set_number(t, col++, o->world_size);
	wa_set_text(t, col, "%s", o->awaited);
}

static const struct wa_column recovery_cols[] = {
	{"waiting", WA_KIND_TEXT},
};

/* Shows what the run waits for during a recovery, because the operations of the run are not certain
 * yet. */
static void fill_recovery(const struct masterd *m, uint64_t now, struct wa_reply *r)
{
	char waiting[WM_TEXT_MAX];
	struct ccm_status s;
	struct wa_table *t;

	ccm_get_status(masterd_core(m), &s);
	if (!s.recovering)
		return;
	ccm_write_waiting(masterd_core(m), now, waiting, sizeof waiting);
	t = WA_TABLE(r, "recovery", recovery_cols);
	wa_row_add(t);
	wa_set_text(t, 0, "%s", waiting);
}

/* ---- shared state ---- */

static const struct wa_column state_cols[] = {
	{"group", WA_KIND_COUNT},
	{"revision", WA_KIND_COUNT},
	{"expected", WA_KIND_COUNT},
	{"peers", WA_KIND_COUNT},
	{"last", WA_KIND_TEXT},
	{"since", WA_KIND_NS},
	{"sequence", WA_KIND_COUNT},
	CC_ADMIN_CANDIDATE,
	{"holders", WA_KIND_COUNT},
	{"receivers", WA_KIND_COUNT},
	{"kicked", WA_KIND_COUNT},
	{"why", WA_KIND_TEXT},
};

static void fill_state(void *arg, const struct ccm_state_info *s)
{
	struct wa_table *t = arg;
	bool elected = s->end != CCM_SYNC_NONE && s->end != CCM_SYNC_NOBODY;
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_number(t, col++, s->group);
	wa_set_number(t, col++, s->expected ? s->expected - 1 : 0);
	wa_set_number(t, col++, s->expected);
	wa_set_number(t, col++, s->peers);
	wa_set_text(t, col++, "%s", ccm_sync_end_name(s->end));
	wa_set_number(t, col++, s->end != CCM_SYNC_NONE ? s->age_ns : WA_UNKNOWN);
	wa_set_number(t, col++, s->seq);
	if (elected)
		cc_admin_put_candidate(t, col, &s->elected);
	col += CC_ADMIN_CANDIDATE_COLS;
	wa_set_number(t, col++, s->holders);
	wa_set_number(t, col++, s->receivers);
	wa_set_number(t, col++, s->out);
	wa_set_text(t, col, "%s", s->text);
}

static const struct wa_column election_cols[] = {
	{"group", WA_KIND_COUNT},
	{"peer", WA_KIND_TEXT},
	{"program", WA_KIND_TEXT},
	{"pid", WA_KIND_COUNT},
	{"host", WA_KIND_TEXT},
	{"strategy", WA_KIND_TEXT},
	{"role", WA_KIND_TEXT},
	{"revision", WA_KIND_COUNT},
	{"torn", WA_KIND_BOOL},
	CC_ADMIN_CANDIDATE,
	{"deviation", WA_KIND_TEXT},
};

static void fill_stand(void *arg, const struct ccm_stand_info *s)
{
	struct wa_table *t = arg;
	char id[CC_ID_SHORT_SIZE];
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_number(t, col++, s->group);
	wa_set_text(t, col++, "%s", cc_id_short(&s->peer, id));
	wa_set_text(t, col++, "%s", s->name);
	wa_set_number(t, col++, s->pid);
	wa_set_text(t, col++, "%s", s->host);
	wa_set_text(t, col++, "%s", wire_strategy_name(s->candidate.strategy));
	wa_set_text(t, col++, "%s", ccm_stand_name(s->stand));
	wa_set_number(t, col++, s->candidate.revision);
	wa_set_number(t, col++, s->candidate.torn);
	col = cc_admin_put_candidate(t, col, &s->candidate);
	wa_set_text(t, col, "%s", s->text);
}

/* ---- topology ---- */

static const struct wa_column plan_cols[] = {
	{"group", WA_KIND_COUNT},
	{"hosts", WA_KIND_COUNT},
	{"rings", WA_KIND_COUNT},
	{"predicted", WA_KIND_BITS},
	{"bound", WA_KIND_BITS},
	{"gap_percent", WA_KIND_TEXT},
	{"achieved", WA_KIND_BITS},
	{"better", WA_KIND_BITS},
	{"search", WA_KIND_TEXT},
};

static uint64_t known_rate(double bits)
{
	return bits > 0 && isfinite(bits) ? (uint64_t)bits : WA_UNKNOWN;
}

static void fill_plan(void *arg, const struct ccm_plan_info *p)
{
	struct wa_table *t = arg;
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_number(t, col++, p->group);
	wa_set_number(t, col++, p->hosts);
	wa_set_number(t, col++, p->rings);
	wa_set_number(t, col++, known_rate(p->rate));
	wa_set_number(t, col++, known_rate(p->bound));
	if (p->bound > 0 && isfinite(p->bound))
		wa_set_text(t, col, "%.1f", 100 * (p->bound - p->rate) / p->bound);
	col++;
	wa_set_number(t, col++, known_rate(p->achieved));
	wa_set_number(t, col++, known_rate(p->better));
	if (p->bound > 0)
		wa_set_text(t, col, "%s", p->searching ? "running" : "ended");
}

static const struct wa_column link_cols[] = {
	{"group", WA_KIND_COUNT},
	{"ring", WA_KIND_COUNT},
	{"share_percent", WA_KIND_TEXT},
	{"position", WA_KIND_COUNT},
	{"host", WA_KIND_TEXT},
	{"next", WA_KIND_TEXT},
	{"rate", WA_KIND_BITS},
	{"round_trip", WA_KIND_NS},
	{"measured", WA_KIND_NS},
	{"bottleneck", WA_KIND_TEXT},
};

static void fill_link(void *arg, const struct ccm_link_info *l)
{
	struct wa_table *t = arg;
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_number(t, col++, l->group);
	wa_set_number(t, col++, l->ring + 1);
	wa_set_text(t, col++, "%.1f", 100 * l->share);
	wa_set_number(t, col++, l->pos);
	wa_set_text(t, col++, "%s", l->from->name);
	wa_set_text(t, col++, "%s", l->to->name);
	wa_set_number(t, col++, l->known ? l->rate : WA_UNKNOWN);
	wa_set_number(t, col++, l->known ? l->trip_us * UINT64_C(1000) : WA_UNKNOWN);
	wa_set_number(t, col++, l->known ? l->age_ns : WA_UNKNOWN);
	wa_set_text(t, col, "%s", l->bottleneck ? "bottleneck" : "");
}

static const struct wa_column rate_cols[] = {
	{"from", WA_KIND_TEXT},
	{"from_agent", WA_KIND_TEXT},
	{"to", WA_KIND_TEXT},
	{"to_agent", WA_KIND_TEXT},
	{"rate", WA_KIND_BITS},
	{"round_trip", WA_KIND_NS},
	{"measured", WA_KIND_NS},
	{"source", WA_KIND_TEXT},
	{"confidence_percent", WA_KIND_COUNT},
	{"stale", WA_KIND_BOOL},
};

static void fill_rate(void *arg, const struct ccm_rate_info *r)
{
	struct wa_table *t = arg;
	char id[CC_ID_SHORT_SIZE];
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_text(t, col++, "%s", r->from_name);
	wa_set_text(t, col++, "%s", cc_id_short(&r->from, id));
	wa_set_text(t, col++, "%s", r->to_name);
	wa_set_text(t, col++, "%s", cc_id_short(&r->to, id));
	wa_set_number(t, col++, r->rate);
	wa_set_number(t, col++, r->trip_us * UINT64_C(1000));
	wa_set_number(t, col++, r->age_ns);
	wa_set_text(t, col++, "%s", r->source);
	wa_set_number(t, col++, r->confidence);
	wa_set_number(t, col, r->confidence == 0);
}

static const struct wa_column cap_cols[] = {
	{"host", WA_KIND_TEXT},
	{"agent", WA_KIND_TEXT},
	{"out", WA_KIND_BITS},
	{"in", WA_KIND_BITS},
	{"measured", WA_KIND_NS},
	{"source", WA_KIND_TEXT},
	{"confidence_percent", WA_KIND_COUNT},
	{"stale", WA_KIND_BOOL},
};

static void fill_cap(void *arg, const struct ccm_cap_info *c)
{
	struct wa_table *t = arg;
	char id[CC_ID_SHORT_SIZE];
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_text(t, col++, "%s", c->name);
	wa_set_text(t, col++, "%s", cc_id_short(&c->host, id));
	wa_set_number(t, col++, c->out);
	wa_set_number(t, col++, c->in);
	wa_set_number(t, col++, c->age_ns);
	wa_set_text(t, col++, "%s", c->source);
	wa_set_number(t, col++, c->confidence);
	wa_set_number(t, col, c->confidence == 0);
}

static bool may_steer(struct masterd *m, const char *what, struct wa_reply *r)
{
	uint32_t uid = cc_admin_caller(masterd_admin(m));

	if (uid == 0 || uid == geteuid())
		return true;
	r->denied = true;
	(void)snprintf(
		r->error, sizeof r->error, "only root and the master's own user may %s", what);
	return false;
}

static const struct wa_column measure_cols[] = {
	{"run", WA_KIND_TEXT},
	{"links", WA_KIND_COUNT},
};

static void count_rate(void *arg, const struct ccm_rate_info *r)
{
	(void)r;
	++*(uint64_t *)arg;
}

static void measure(struct masterd *m, struct wa_reply *r)
{
	char run[CC_ID_STR_SIZE];
	struct ccm_status s;
	struct wa_table *t;
	uint64_t links = 0;

	if (!may_steer(m, "let links be measured again", r))
		return;
	masterd_measure(m);
	ccm_get_status(masterd_core(m), &s);
	ccm_each_rate(masterd_core(m), cc_now_ns(), count_rate, &links);
	t = WA_TABLE(r, "measure", measure_cols);
	wa_row_add(t);
	wa_set_text(t, 0, "%s", cc_id_str(&s.run, run));
	wa_set_number(t, 1, links);
}

static const struct wa_column progress_cols[] = {
	{"round", WA_KIND_COUNT},
	{"rounds", WA_KIND_COUNT},
	{"left", WA_KIND_NS},
};

static void fill_progress(const struct masterd *m, uint64_t now, struct wa_reply *r)
{
	struct wa_table *t = WA_TABLE(r, "progress", progress_cols);
	struct ccm_progress p;

	if (!ccm_get_progress(masterd_core(m), now, &p))
		return;
	wa_row_add(t);
	wa_set_number(t, 0, p.round);
	wa_set_number(t, 1, p.rounds);
	wa_set_number(t, 2, p.left_ns);
}

/* ---- reset ---- */

static const struct wa_column reset_cols[] = {
	{"run", WA_KIND_TEXT},
	{"kicked", WA_KIND_COUNT},
	{"revisions", WA_KIND_COUNT},
};

static void reset(struct masterd *m, bool force, struct wa_reply *r)
{
	char run[CC_ID_STR_SIZE];
	struct ccm_status s;
	struct wa_table *t;

	if (!may_steer(m, "reset its run", r))
		return;
	ccm_get_status(masterd_core(m), &s);
	if (s.stale) {
		(void)snprintf(r->error, sizeof r->error,
			"another master has taken over the run: reset the run there, or restart "
			"this master");
		return;
	}
	if (!force && (s.recovering || s.accepted + s.registered > 0)) {
		(void)snprintf(r->error, sizeof r->error,
			"the run has %u peers%s, and their calls would fail: add --yes to reset it "
			"nevertheless",
			s.accepted + s.registered,
			s.recovering ? ", and perhaps others that may come back" : "");
		return;
	}
	masterd_reset(m);
	t = WA_TABLE(r, "reset", reset_cols);
	wa_row_add(t);
	wa_set_text(t, 0, "%s", cc_id_str(&s.run, run));
	wa_set_number(t, 1, s.accepted + s.registered);
	wa_set_number(t, 2, s.revisions);
}

static void fill(void *arg, const struct wa_request *q, struct wa_reply *r)
{
	struct masterd *m = arg;
	uint64_t now = cc_now_ns();

	switch (q->verb) {
	case WA_STATUS:
		fill_status(m, now, r);
		break;
	case WA_PEERS:
		ccm_each_peer(masterd_core(m), now, fill_peer, WA_TABLE(r, "peers", peer_cols));
		break;
	case WA_OPS:
		ccm_each_op(masterd_core(m), now, fill_op, WA_TABLE(r, "ops", op_cols));
		fill_recovery(m, now, r);
		break;
	case WA_STATE:
		ccm_each_state(masterd_core(m), now, fill_state, WA_TABLE(r, "groups", state_cols));
		ccm_each_stand(masterd_core(m), fill_stand, WA_TABLE(r, "election", election_cols));
		fill_recovery(m, now, r);
		break;
	case WA_TOPOLOGY:
		ccm_each_plan(masterd_core(m), fill_plan, WA_TABLE(r, "plans", plan_cols));
		ccm_each_link(masterd_core(m), now, fill_link, WA_TABLE(r, "rings", link_cols));
		break;
	case WA_BANDWIDTH:
		ccm_each_rate(masterd_core(m), now, fill_rate, WA_TABLE(r, "links", rate_cols));
		ccm_each_cap(masterd_core(m), now, fill_cap, WA_TABLE(r, "hosts", cap_cols));
		break;
	case WA_MEASURE:
		measure(m, r);
		break;
	case WA_PROGRESS:
		fill_progress(m, now, r);
		break;
	case WA_RESET:
		reset(m, q->force, r);
		break;
	case WA_SET_MASTER:
		(void)snprintf(r->error, sizeof r->error, "%s",
			"a master keeps no addresses of masters: ask an agent");
		break;
	}
}

struct cc_admin *masterd_admin_new(struct masterd *m, struct cc_loop *l, int fd)
{
	return cc_admin_new(l, fd, "ccoip-masterd", fill, m);
}
