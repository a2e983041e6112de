/* SPDX-License-Identifier: MIT
 *
 * What pcclctl shows of a master.
 */
#include <stdio.h>
#include <stdlib.h>

#include "ccoip-masterd/masterd_internal.h"
#include "common/cc_sys.h"

struct column {
	const char *name;
	enum wa_kind kind;
};

static struct wa_table *table_with(
	struct wa_reply *r, const char *name, const struct column *cols, size_t n)
{
	struct wa_table *t = wa_table_add(r, name);

	for (size_t i = 0; i < n; i++)
		wa_col_add(t, cols[i].name, cols[i].kind);
	return t;
}

#define TABLE(r, name, cols) table_with(r, name, cols, sizeof(cols) / sizeof((cols)[0]))

static const struct column status_cols[] = {
	{"run", WA_KIND_TEXT},
	{"epoch", WA_KIND_COUNT},
	{"agents", WA_KIND_COUNT},
	{"connections", WA_KIND_COUNT},
	{"accepted", WA_KIND_COUNT},
	{"registered", WA_KIND_COUNT},
	{"absent", WA_KIND_COUNT},
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
	{"losses", WA_KIND_COUNT},
	{"kicks", WA_KIND_COUNT},
	{"refused", WA_KIND_COUNT},
	{"waiting", WA_KIND_TEXT},
};

static void fill_status(const struct masterd *m, uint64_t now, struct wa_reply *r)
{
	struct wa_table *t = TABLE(r, "status", status_cols);
	char run[CC_ID_STR_SIZE];
	struct masterd_stats io;
	struct ccm_status s;
	uint32_t col = 0;

	ccm_get_status(masterd_core(m), now, &s);
	masterd_get_stats(m, &io);
	wa_row_add(t);
	wa_set_text(t, col++, "%s", cc_id_str(&s.run, run));
	wa_set_number(t, col++, s.epoch);
	wa_set_number(t, col++, s.agents);
	wa_set_number(t, col++, io.conns);
	wa_set_number(t, col++, s.accepted);
	wa_set_number(t, col++, s.registered);
	wa_set_number(t, col++, s.absent);
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
	wa_set_number(t, col++, s.losses);
	wa_set_number(t, col++, s.kicks);
	wa_set_number(t, col++, io.refused);
	wa_set_text(t, col, "%s", s.waiting);
}

static const struct column peer_cols[] = {
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
	{"absent", WA_KIND_TEXT},
};

static void fill_peer(void *arg, const struct ccm_peer_info *p)
{
	struct wa_table *t = arg;
	char id[CC_ID_SHORT_SIZE], addr[CC_ADDR_STR_SIZE];
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_number(t, col++, p->group);
	/* While it is registered only, it has none. */
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
	if (p->absent)
		wa_set_text(t, col, "%.1f s", (double)p->absent_ns / 1e9);
}

static const struct column op_cols[] = {
	{"group", WA_KIND_COUNT},
	{"tag", WA_KIND_COUNT},
	{"sequence", WA_KIND_COUNT},
	{"state", WA_KIND_TEXT},
	{"age", WA_KIND_NS},
	{"stalled", WA_KIND_NS},
	{"bytes", WA_KIND_BYTES},
	{"elements", WA_KIND_COUNT},
	{"votes", WA_KIND_COUNT},
	{"world", WA_KIND_COUNT},
	{"awaited", WA_KIND_TEXT},
};

static void fill_op(void *arg, const struct ccm_op_info *o)
{
	struct wa_table *t = arg;
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_number(t, col++, o->group);
	wa_set_number(t, col++, o->tag);
	wa_set_number(t, col++, o->seq);
	wa_set_text(t, col++, "%s", ccm_collective_name(o->state));
	wa_set_number(t, col++, o->age_ns);
	wa_set_number(t, col++, o->stalled_ns);
	wa_set_number(t, col++, o->bytes);
	wa_set_number(t, col++, o->params.count);
	wa_set_number(t, col++, o->votes);
	wa_set_number(t, col++, o->world);
	wa_set_text(t, col, "%s", o->awaited);
}

static const struct column recovery_cols[] = {
	{"waiting", WA_KIND_TEXT},
};

/* What operations there are is not known for certain, then. */
static void fill_recovery(const struct masterd *m, uint64_t now, struct wa_reply *r)
{
	struct ccm_status s;
	struct wa_table *t;

	ccm_get_status(masterd_core(m), now, &s);
	if (!s.recovering)
		return;
	t = TABLE(r, "recovery", recovery_cols);
	wa_row_add(t);
	wa_set_text(t, 0, "%s", s.waiting);
}

static void fill(void *arg, const struct wa_request *q, struct wa_reply *r)
{
	const struct masterd *m = arg;
	uint64_t now = cc_now_ns();

	switch (q->verb) {
	case WA_STATUS:
		fill_status(m, now, r);
		break;
	case WA_PEERS:
		ccm_each_peer(masterd_core(m), now, fill_peer, TABLE(r, "peers", peer_cols));
		break;
	case WA_OPS:
		ccm_each_op(masterd_core(m), now, fill_op, TABLE(r, "ops", op_cols));
		fill_recovery(m, now, r);
		break;
	case WA_SET_MASTER:
		(void)snprintf(
			r->error, sizeof r->error, "%s", "a master has no masters: ask an agent");
		break;
	}
}

struct cc_admin *masterd_admin_new(struct masterd *m, struct cc_loop *l, int fd)
{
	return cc_admin_new(l, fd, "ccoip-masterd", fill, m);
}
