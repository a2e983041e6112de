/* SPDX-License-Identifier: MIT
 *
 * What pcclctl shows of shared state on an agent's host: groups, what their peers here offered
 * last, and the jobs that are under way.
 */
#include "daemon/cc_admin.h"
#include "pcclagentd/io.h"
#include "proto/wire_names.h"

struct fill {
	struct agentd *d;
	uint64_t now;
	struct wa_table *peers, *transfers, *sources, *receivers;
};

/* ---- groups ---- */

static const struct wa_column group_cols[] = {
	{"master", WA_KIND_TEXT},
	{"group", WA_KIND_COUNT},
	{"revision", WA_KIND_COUNT},
	{"expected", WA_KIND_COUNT},
	{"world", WA_KIND_COUNT},
	{"local", WA_KIND_COUNT},
};

static void fill_group(void *arg, const struct agt_group_info *g)
{
	struct wa_table *t = arg;
	char master[CC_ADDR_STR_SIZE];
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_text(t, col++, "%s", cc_addr_str(&g->master, master));
	wa_set_number(t, col++, g->group);
	wa_set_number(t, col++, g->expected ? g->expected - 1 : 0);
	wa_set_number(t, col++, g->expected);
	wa_set_number(t, col++, g->world);
	wa_set_number(t, col, g->local);
}

/* ---- peers ---- */

static const struct wa_column peer_cols[] = {
	{"comm", WA_KIND_COUNT},
	{"program", WA_KIND_TEXT},
	{"pid", WA_KIND_COUNT},
	{"peer", WA_KIND_TEXT},
	{"master", WA_KIND_TEXT},
	{"group", WA_KIND_COUNT},
	{"strategy", WA_KIND_TEXT},
	{"offered", WA_KIND_COUNT},
	{"torn", WA_KIND_BOOL},
	CC_ADMIN_OFFER,
	{"role", WA_KIND_TEXT},
	{"state", WA_KIND_TEXT},
	{"revision", WA_KIND_COUNT},
	{"took", WA_KIND_NS},
	{"since", WA_KIND_NS},
	{"tx", WA_KIND_BYTES},
	{"rx", WA_KIND_BYTES},
	{"why", WA_KIND_TEXT},
};

static const char *role_name(bool started, bool holder)
{
	if (!started)
		return "";
	return holder ? "holder" : "receiver";
}

static const struct wa_column receiver_cols[] = {
	{"sequence", WA_KIND_COUNT},
	{"group", WA_KIND_COUNT},
	{"comm", WA_KIND_COUNT},
	{"program", WA_KIND_TEXT},
	{"pid", WA_KIND_COUNT},
	{"bytes", WA_KIND_BYTES},
	{"done", WA_KIND_BYTES},
	{"complete", WA_KIND_BOOL},
	{"failed", WA_KIND_BOOL},
	{"why", WA_KIND_TEXT},
};

static void fill_receiver(
	struct wa_table *t, const struct agt_synced_info *s, const struct ste_member_view *v)
{
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_number(t, col++, s->seq);
	wa_set_number(t, col++, s->group);
	wa_set_number(t, col++, s->comm);
	wa_set_text(t, col++, "%s", s->name);
	wa_set_number(t, col++, s->pid);
	wa_set_number(t, col++, v->bytes);
	wa_set_number(t, col++, v->rx_bytes);
	wa_set_number(t, col++, v->complete);
	wa_set_number(t, col++, v->failed);
	wa_set_text(t, col, "%s", v->text);
}

/* Of one that is running: what it has sent and received by now. */
static bool get_member(
	const struct fill *f, const struct agt_synced_info *s, struct ste_member_view *ret)
{
	const struct run *r = s->end == AGT_SYNC_RUNNING ? run_find(f->d, s->run) : NULL;

	return r && sync_get_member(r, s->seq, s->comm, ret);
}

static void fill_peer(void *arg, const struct agt_synced_info *s)
{
	struct fill *f = arg;
	struct wa_table *t = f->peers;
	struct ste_member_view v;
	bool runs = get_member(f, s, &v);
	char peer[CC_ID_SHORT_SIZE], master[CC_ADDR_STR_SIZE];
	bool ended = s->end == AGT_SYNC_DONE || s->end == AGT_SYNC_FAILED;
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_number(t, col++, s->comm);
	wa_set_text(t, col++, "%s", s->name);
	wa_set_number(t, col++, s->pid);
	wa_set_text(t, col++, "%s", cc_id_short(&s->peer, peer));
	wa_set_text(t, col++, "%s", cc_addr_str(&s->master, master));
	wa_set_number(t, col++, s->group);
	wa_set_text(t, col++, "%s", wire_strategy_name(s->offer.strategy));
	wa_set_number(t, col++, s->offer.revision);
	wa_set_number(t, col++, s->offer.torn);
	col = cc_admin_put_offer(t, col, &s->offer);
	wa_set_text(t, col++, "%s", role_name(s->started, s->holder));
	wa_set_text(t, col++, "%s", agt_sync_end_name(s->end));
	wa_set_number(t, col++, s->revision);
	wa_set_number(t, col++, s->took_ns);
	wa_set_number(t, col++, ended ? s->age_ns : WA_UNKNOWN);
	wa_set_number(t, col++, runs ? v.tx_bytes : s->tx_bytes);
	wa_set_number(t, col++, runs ? v.rx_bytes : s->rx_bytes);
	wa_set_text(t, col, "%s", s->text);
	if (runs && !s->holder)
		fill_receiver(f->receivers, s, &v);
}

/* ---- what is under way ---- */

static const struct wa_column transfer_cols[] = {
	{"master", WA_KIND_TEXT},
	{"group", WA_KIND_COUNT},
	{"sequence", WA_KIND_COUNT},
	{"revision", WA_KIND_COUNT},
	{"state", WA_KIND_TEXT},
	{"age", WA_KIND_NS},
	{"bytes", WA_KIND_BYTES},
	{"done", WA_KIND_BYTES},
	{"rate", WA_KIND_RATE},
	{"left", WA_KIND_NS},
	{"stalled", WA_KIND_NS},
	{"network_tx", WA_KIND_BYTES},
	{"network_rx", WA_KIND_BYTES},
	{"tx", WA_KIND_BYTES},
	{"rx", WA_KIND_BYTES},
	{"holders", WA_KIND_COUNT},
	{"receivers", WA_KIND_COUNT},
	{"failed", WA_KIND_COUNT},
	{"sources", WA_KIND_COUNT},
	{"waits", WA_KIND_TEXT},
};

static const struct wa_column source_cols[] = {
	{"sequence", WA_KIND_COUNT},
	{"group", WA_KIND_COUNT},
	{"host", WA_KIND_TEXT},
	{"holds", WA_KIND_BOOL},
	{"state", WA_KIND_TEXT},
	{"bytes", WA_KIND_BYTES},
	{"why", WA_KIND_TEXT},
};

static const char *source_state(const struct sync_source_view *v)
{
	if (v->lost)
		return "lost";
	if (v->not_begun)
		return "has nothing yet";
	return v->up ? "up" : "";
}

static void fill_sources(struct fill *f, const struct run *r, const struct agt_op_info *o)
{
	struct wa_table *t = f->sources;
	struct sync_source_view v;
	uint32_t i, col;

	for (i = 0; sync_get_source(r, o->seq, i, &v); i++) {
		col = 0;
		wa_row_add(t);
		wa_set_number(t, col++, o->seq);
		wa_set_number(t, col++, o->group);
		wa_set_text(t, col++, "%s", v.host);
		wa_set_number(t, col++, v.holds);
		wa_set_text(t, col++, "%s", source_state(&v));
		wa_set_number(t, col++, v.bytes);
		wa_set_text(t, col, "%s", v.text);
	}
}

static void fill_transfer(void *arg, const struct agt_op_info *o)
{
	struct fill *f = arg;
	struct wa_table *t = f->transfers;
	const struct run *r = run_find(f->d, o->run);
	char master[CC_ADDR_STR_SIZE];
	struct sync_view v;
	uint32_t col = 0;

	if (!o->is_sync || !r || !sync_get_view(r, o->seq, f->now, &v))
		return;
	wa_row_add(t);
	wa_set_text(t, col++, "%s", cc_addr_str(&r->addr, master));
	wa_set_number(t, col++, o->group);
	wa_set_number(t, col++, o->seq);
	wa_set_number(t, col++, o->revision);
	wa_set_text(t, col++, "%s", v.state);
	wa_set_number(t, col++, o->age_ns);
	wa_set_number(t, col++, v.bytes);
	wa_set_number(t, col++, v.done);
	wa_set_number(t, col++, v.rate);
	wa_set_number(t, col++, v.left_ns == SYNC_LEFT_UNKNOWN ? WA_UNKNOWN : v.left_ns);
	wa_set_number(t, col++, v.stalled_ns);
	wa_set_number(t, col++, v.net_tx_bytes);
	wa_set_number(t, col++, v.net_rx_bytes);
	wa_set_number(t, col++, v.tx_bytes);
	wa_set_number(t, col++, v.rx_bytes);
	wa_set_number(t, col++, v.holders);
	wa_set_number(t, col++, v.receivers);
	wa_set_number(t, col++, v.failed);
	wa_set_number(t, col++, v.sources_up);
	wa_set_text(t, col, "%s", v.waits);
	fill_sources(f, r, o);
}

void admin_state(struct agentd *d, uint64_t now, struct wa_reply *reply)
{
	struct fill f = {.d = d, .now = now};

	agt_each_group(d->core, fill_group, WA_TABLE(reply, "groups", group_cols));
	f.peers = WA_TABLE(reply, "peers", peer_cols);
	f.transfers = WA_TABLE(reply, "transfers", transfer_cols);
	f.sources = WA_TABLE(reply, "sources", source_cols);
	f.receivers = WA_TABLE(reply, "receivers", receiver_cols);
	agt_each_synced(d->core, now, fill_peer, &f);
	agt_each_op(d->core, now, fill_transfer, &f);
}
