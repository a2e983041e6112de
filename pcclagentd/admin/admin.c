/* SPDX-License-Identifier: MIT
 *
 * The requests of pcclctl, and the tables of the whole agent, runs, peers and operations.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pcclagentd/admin/adm_internal.h"

struct fill {
	struct adm *a;
	uint64_t now;
	struct wa_table *table;
	bool master_set; /* show only runs to which AGT_EV_SET_MASTER applied */
};

/* ---- status ---- */

static const struct wa_column status_cols[] = {
	{"host", WA_KIND_TEXT},
	{"agent", WA_KIND_TEXT},
	{"sessions", WA_KIND_COUNT},
	{"peers", WA_KIND_COUNT},
	{"runs", WA_KIND_COUNT},
	{"ops", WA_KIND_COUNT},
	{"ops_done", WA_KIND_COUNT},
	{"ops_failed", WA_KIND_COUNT},
	{"refused", WA_KIND_COUNT},
	{"memory", WA_KIND_BYTES},
	{"memory_limit", WA_KIND_BYTES},
	{"heap", WA_KIND_BYTES},
	{"links_in", WA_KIND_COUNT},
	{"links_out", WA_KIND_COUNT},
	{"streams", WA_KIND_COUNT},
	{"p2p_port", WA_KIND_COUNT},
	{"shared_state_port", WA_KIND_COUNT},
	{"benchmark_port", WA_KIND_COUNT},
	{"addresses", WA_KIND_COUNT},
	{"addresses_left_out", WA_KIND_COUNT},
};

/* Returns the bytes that the agent has allocated, without those that malloc keeps for later. */
static uint64_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void fill_status(struct adm *a, struct wa_reply *reply)
{
	struct wa_table *t = WA_TABLE(reply, "status", status_cols);
	char id[CC_ID_SHORT_SIZE];
	struct agentd_stats s;
	struct agt_status core;

	if (!t)
		return;
	a->ops->get_stats(a->arg, &s);
	agt_get_status(a->base->core, &core);
	wa_row_add(t);
	wa_set_text(t, 0, "%s", a->base->cfg.name);
	wa_set_text(t, 1, "%s", cc_id_short(&a->base->id, id));
	wa_set_number(t, 2, s.sessions);
	wa_set_number(t, 3, s.comms);
	wa_set_number(t, 4, s.runs);
	wa_set_number(t, 5, core.ops);
	wa_set_number(t, 6, core.ops_done);
	wa_set_number(t, 7, core.ops_failed);
	wa_set_number(t, 8, core.submissions_refused);
	wa_set_number(t, 9, s.mem_used);
	wa_set_number(t, 10, s.mem_limit);
	wa_set_number(t, 11, heap());
	wa_set_number(t, 12, s.links_in);
	wa_set_number(t, 13, s.links_out);
	wa_set_number(t, 14, s.streams);
	wa_set_number(t, 15, s.port_p2p);
	wa_set_number(t, 16, s.port_shared_state);
	wa_set_number(t, 17, s.port_benchmark);
	wa_set_number(t, 18, s.addresses);
	wa_set_number(t, 19, s.addresses_left_out);
}

/* ---- runs ---- */

static const struct wa_column run_cols[] = {
	{"run", WA_KIND_COUNT},
	{"id", WA_KIND_TEXT},
	{"master", WA_KIND_TEXT},
	{"at", WA_KIND_TEXT},
	{"state", WA_KIND_TEXT},
	{"since", WA_KIND_NS},
	{"term", WA_KIND_COUNT},
	{"epoch", WA_KIND_COUNT},
	{"peers", WA_KIND_COUNT},
	{"ops", WA_KIND_COUNT},
};

static void fill_run(void *arg, const struct agt_run_info *r)
{
	const struct fill *f = arg;
	struct wa_table *t = f->table;
	char id[CC_ID_SHORT_SIZE], addr[CC_ADDR_STR_SIZE];

	if (f->master_set && !r->master_set)
		return;
	wa_row_add(t);
	wa_set_number(t, 0, r->run);
	wa_set_text(t, 1, "%s", cc_id_is_zero(&r->id) ? "" : cc_id_short(&r->id, id));
	wa_set_text(t, 2, "%s", cc_addr_str(&r->master, addr));
	wa_set_text(t, 3, "%s", cc_addr_str(&r->connect_addr, addr));
	wa_set_text(t, 4, "%s", r->state);
	wa_set_number(t, 5, r->state_ns);
	wa_set_number(t, 6, r->term);
	wa_set_number(t, 7, r->epoch);
	wa_set_number(t, 8, r->comms);
	wa_set_number(t, 9, r->ops);
}

static void fill_runs(struct fill *f, struct wa_reply *reply)
{
	f->table = WA_TABLE(reply, "runs", run_cols);
	if (f->table)
		agt_each_run(f->a->base->core, cc_now_ns(), fill_run, f);
}

/* ---- peers ---- */

static const struct wa_column peer_cols[] = {
	{"comm", WA_KIND_COUNT},
	{"program", WA_KIND_TEXT},
	{"pid", WA_KIND_COUNT},
	{"uid", WA_KIND_COUNT},
	{"peer", WA_KIND_TEXT},
	{"master", WA_KIND_TEXT},
	{"group", WA_KIND_COUNT},
	{"state", WA_KIND_TEXT},
	{"world_size", WA_KIND_COUNT},
	{"group_world", WA_KIND_COUNT},
	{"hosts", WA_KIND_COUNT},
	{"position", WA_KIND_COUNT},
	{"ops", WA_KIND_COUNT},
	{"stopped", WA_KIND_NS},
	{"waiting", WA_KIND_TEXT},
};

static const char *state_name(uint32_t state)
{
	switch (state) {
	case SHM_COMM_NEW:
		return "new";
	case SHM_COMM_CONNECTED:
		return "connected";
	case SHM_COMM_LOST:
		return "lost";
	}
	return "?";
}

static void fill_peer(void *arg, const struct agt_comm_info *c)
{
	struct wa_table *t = ((struct fill *)arg)->table;
	char peer[CC_ID_SHORT_SIZE], master[CC_ADDR_STR_SIZE];

	wa_row_add(t);
	wa_set_number(t, 0, c->comm);
	wa_set_text(t, 1, "%s", c->name);
	wa_set_number(t, 2, c->pid);
	wa_set_number(t, 3, c->uid);
	wa_set_text(t, 4, "%s", cc_id_short(&c->peer, peer));
	wa_set_text(t, 5, "%s", cc_addr_str(&c->master, master));
	wa_set_number(t, 6, c->group);
	wa_set_text(t, 7, "%s", state_name(c->attrs.state));
	wa_set_number(t, 8, c->view.global);
	wa_set_number(t, 9, c->view.group);
	wa_set_number(t, 10, c->attrs.hosts);
	wa_set_number(t, 11, c->attrs.pos);
	wa_set_number(t, 12, c->ops);
	wa_set_number(t, 13, c->stopped_ns);
	wa_set_text(t, 14, "%s", c->waiting);
}

/* ---- operations ---- */

static const struct wa_column op_cols[] = {
	{"master", WA_KIND_TEXT},
	{"group", WA_KIND_COUNT},
	{"kind", WA_KIND_TEXT},
	{"tag", WA_KIND_COUNT},
	{"sequence", WA_KIND_COUNT},
	{"state", WA_KIND_TEXT},
	{"age", WA_KIND_NS},
	{"bytes", WA_KIND_BYTES},
	{"done", WA_KIND_BYTES},
	{"tx", WA_KIND_BYTES},
	{"rx", WA_KIND_BYTES},
	{"standstill", WA_KIND_NS},
	{"submitted", WA_KIND_COUNT},
	{"members", WA_KIND_COUNT},
	{"awaited", WA_KIND_TEXT},
};

static uint64_t bytes_done(uint64_t bytes, const struct eng_progress *p)
{
	if (p->segs == 0)
		return 0;
	/* All segments have nearly the same size. The product of bytes and segments may exceed 64
	 * bits. */
	return (uint64_t)((double)bytes * p->segs_done / p->segs);
}

/* The progress of an operation on this host. */
struct motion {
	uint64_t done, tx_bytes, rx_bytes, standstill_ns;
	char waits[WM_TEXT_MAX]; /* the peers for which the operation waits, or "" */
};

static struct motion look(const struct fill *f, struct run *r, const struct agt_op_info *o)
{
	struct motion m = {.waits = ""};
	struct op_sync_view s;
	struct op_progress p;

	if (o->is_sync && op_sync_get_view(r, o->seq, f->now, &s)) {
		m = (struct motion){s.done, s.net_tx_bytes, s.net_rx_bytes, s.standstill_ns, ""};
		memcpy(m.waits, s.waits, sizeof m.waits);
	} else if (!o->is_sync && op_get_progress(r, o->seq, f->now, &p)) {
		m = (struct motion){bytes_done(o->bytes, &p.eng), p.eng.tx_bytes, p.eng.rx_bytes,
			p.standstill_ns, ""};
		memcpy(m.waits, p.waits, sizeof m.waits);
	}
	return m;
}

static void fill_op(void *arg, const struct agt_op_info *o)
{
	const struct fill *f = arg;
	struct wa_table *t = f->table;
	struct run *r = op_run(f->a->o, o->run);
	struct motion m = r ? look(f, r, o) : (struct motion){.waits = ""};
	char master[CC_ADDR_STR_SIZE] = "";
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_text(t, col++, "%s", r ? cc_addr_str(op_run_master(r), master) : "");
	wa_set_number(t, col++, o->group);
	wa_set_text(t, col++, "%s", o->is_sync ? "sync" : "all-reduce");
	wa_set_number(t, col++, o->tag);
	wa_set_number(t, col++, o->seq);
	wa_set_text(t, col++, "%s", o->state);
	wa_set_number(t, col++, o->age_ns);
	wa_set_number(t, col++, o->bytes);
	wa_set_number(t, col++, m.done);
	wa_set_number(t, col++, m.tx_bytes);
	wa_set_number(t, col++, m.rx_bytes);
	wa_set_number(t, col++, m.standstill_ns);
	wa_set_number(t, col++, o->submitted);
	wa_set_number(t, col++, o->members);
	wa_set_text(t, col, "%s", m.waits[0] ? m.waits : o->awaited);
}

/* ---- set-master ---- */

/* Carries out set-master. Returns "", or what is wrong with the request. */
static const char *set_master(struct adm *a, const struct wa_request *q, struct agt_event *ev)
{
	if (q->from[0] && (cc_addr_parse(q->from, 0, &ev->from) < 0 || ev->from.port == 0))
		return "the old address of the master must be ADDR:PORT, numeric";
	if (q->to[0] && (cc_addr_parse(q->to, 0, &ev->to) < 0 || ev->to.port == 0))
		return "the new address of the master must be ADDR:PORT, numeric";
	if (q->to[0] && cc_addr_flaw(&ev->to))
		return cc_addr_flaw(&ev->to);
	if (q->run && !op_run(a->o, q->run))
		return "this agent has no such run (pcclctl status shows the runs)";
	ev_post(a->base, ev);
	return "";
}

static void handle_set_master(struct fill *f, const struct wa_request *q, struct wa_reply *reply)
{
	struct agt_event ev = {.type = AGT_EV_SET_MASTER, .run = q->run, .now = q->now};
	uint32_t uid = cc_admin_caller(f->a->listener);
	char which[WA_ADDR_MAX];

	if (uid != 0 && uid != geteuid()) {
		reply->denied = true;
		snprintf(reply->error, sizeof reply->error,
			"only root and the agent's own user may set the address of a master");
		return;
	}
	snprintf(reply->error, sizeof reply->error, "%s", set_master(f->a, q, &ev));
	if (reply->error[0])
		return;
	if (q->run)
		snprintf(which, sizeof which, "of run %" PRIu32, q->run);
	else
		snprintf(which, sizeof which, "%s", q->from);
	cc_log(CC_LOG_NOTICE, "uid %" PRIu32 ": the master %s is now sought %s%s", uid, which,
		q->to[0] ? "at " : "at its own address", q->to);
	f->master_set = true;
	fill_runs(f, reply);
}

/* ---- requests ---- */

static void fill(void *arg, const struct wa_request *q, struct wa_reply *reply)
{
	struct fill f = {.a = arg};
	uint64_t now;

	if (q->verb == WA_PEERS)
		f.a->ops->look(f.a->arg);
	f.now = now =
		cc_now_ns(); /* after the checks, so that they record no time later than `now` */
	switch (q->verb) {
	case WA_STATUS:
		fill_status(f.a, reply);
		fill_runs(&f, reply);
		break;
	case WA_PEERS:
		f.table = WA_TABLE(reply, "peers", peer_cols);
		if (f.table)
			agt_each_comm(f.a->base->core, now, fill_peer, &f);
		break;
	case WA_OPS:
		f.table = WA_TABLE(reply, "ops", op_cols);
		if (f.table)
			agt_each_op(f.a->base->core, now, fill_op, &f);
		break;
	case WA_STATE:
		adm_state(f.a, now, reply);
		break;
	case WA_SET_MASTER:
		handle_set_master(&f, q, reply);
		break;
	case WA_RESET:
		(void)snprintf(reply->error, sizeof reply->error,
			"an agent has no run of its own: ask the master");
		break;
	case WA_TOPOLOGY:
	case WA_BANDWIDTH:
	case WA_MEASURE:
	case WA_PROGRESS:
		(void)snprintf(reply->error, sizeof reply->error,
			"an agent does not know the rings of its runs: ask the master");
		break;
	}
}

struct adm *adm_new(struct base *b, struct ops *o, const struct adm_ops *ops, void *arg)
{
	struct adm *a = calloc(1, sizeof *a);

	if (!a)
		return NULL;
	*a = (struct adm){.base = b, .o = o, .ops = ops, .arg = arg};
	a->listener = cc_admin_new(b->loop, b->cfg.admin_fd, "pcclagentd", fill, a);
	b->cfg.admin_fd = -1;
	if (a->listener)
		return a;
	free(a);
	return NULL;
}

void adm_free(struct adm *a)
{
	if (!a)
		return;
	cc_admin_free(a->listener);
	free(a);
}
