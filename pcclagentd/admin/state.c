/* SPDX-License-Identifier: MIT
 *
 * The tables of shared state on an agent's host: groups, the last candidates of their local peers,
 * the keys in which these peers differed, the jobs in progress, and the keys of each group's last
 * job.
 */
#include <inttypes.h>
#include <string.h>

#include "pcclagentd/admin/adm_internal.h"
#include "proto/wire_frame.h"
#include "proto/wire_names.h"

/* A table of keys has about this many bytes at most, so that the reply fits into a frame. */
#define ROOM ((size_t)WIRE_FRAME_MAX / 4)
/* A row has at most this many bytes, without its texts. */
#define ROW_BYTES 96u

struct fill {
	struct adm *a;
	uint64_t now;
	struct wa_table *peers, *differed, *transfers, *sources, *receivers, *keys;
	size_t differed_room, keys_room;
	/* The difference report of the latest job for which a report was fetched; or NULL. */
	struct diff_report *going;
};

/* Takes room for a row with these texts. Returns false if there is not enough room. */
static bool take_room(size_t *room, const char *a, const char *b)
{
	size_t need = ROW_BYTES + strlen(a) + strlen(b);

	if (need > *room)
		return false;
	*room -= need;
	return true;
}

/* ---- groups ---- */

static const struct wa_column group_cols[] = {
	{"master", WA_KIND_TEXT},
	{"group", WA_KIND_COUNT},
	{"revision", WA_KIND_COUNT},
	{"expected", WA_KIND_COUNT},
	{"world_size", WA_KIND_COUNT},
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
	wa_set_number(t, col++, g->world_size);
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
	CC_ADMIN_CANDIDATE,
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

/* ---- keys in which peers differed ---- */

static const struct wa_column differed_cols[] = {
	{"group", WA_KIND_COUNT},
	{"sequence", WA_KIND_COUNT},
	{"revision", WA_KIND_COUNT},
	{"comm", WA_KIND_COUNT},
	{"program", WA_KIND_TEXT},
	{"pid", WA_KIND_COUNT},
	{"key", WA_KIND_TEXT},
	{"more", WA_KIND_COUNT},
	{"blocks", WA_KIND_COUNT},
	{"of", WA_KIND_COUNT},
	{"bytes", WA_KIND_BYTES},
	{"done", WA_KIND_BYTES},
	{"cause", WA_KIND_TEXT},
	{"outcome", WA_KIND_TEXT},
	{"from", WA_KIND_TEXT},
	{"why", WA_KIND_TEXT},
};

/* Returns the name of the key, or "" if the row is the sum of several keys. */
static const char *key_of(const struct diff_entry *d)
{
	return d->name ? d->name : "";
}

/* Adds a row for one key, or for the sum of several keys. */
static void differed_row(struct wa_table *t, const struct agt_synced_info *s,
	const struct diff_report *f, const struct diff_member *m, const struct diff_entry *d)
{
	bool told = !op_diff_there(m, d) && s->seq == f->seq;
	uint32_t col = 0;

	wa_row_add(t);
	wa_set_number(t, col++, f->group);
	wa_set_number(t, col++, f->seq);
	wa_set_number(t, col++, f->revision);
	wa_set_number(t, col++, s->comm);
	wa_set_text(t, col++, "%s", s->name);
	wa_set_number(t, col++, s->pid);
	wa_set_text(t, col++, "%s", key_of(d));
	wa_set_number(t, col++, d->name ? 0 : d->keys);
	wa_set_number(t, col++, d->leaves);
	wa_set_number(t, col++, d->of);
	wa_set_number(t, col++, d->bytes);
	wa_set_number(t, col++, d->done);
	wa_set_text(t, col++, "%s", op_diff_cause_name(m->cause));
	wa_set_text(t, col++, "%s", op_diff_outcome(m, d));
	wa_set_text(t, col++, "%s", f->from);
	wa_set_text(t, col, "%s", told ? s->text : "");
}

/* Returns the difference report of the job in which the peer takes part, or of its last job. */
static const struct diff_report *find_diff_report(struct fill *f, const struct agt_synced_info *s)
{
	const struct run *r = op_run(f->a->o, s->run);

	if (!r || !op_sync_goes_on(r, s->seq))
		return op_diff_of(f->a->o, s->comm);
	if (!f->going || f->going->run != s->run || f->going->seq != s->seq) {
		op_diff_unref(f->going);
		f->going = op_diff_now(r, s->seq);
	}
	return f->going;
}

static void fill_differed(struct fill *f, const struct agt_synced_info *s)
{
	const struct diff_report *report = find_diff_report(f, s);
	const struct diff_member *m = op_diff_member(report, s->comm);
	struct diff_entry rest[2];
	uint32_t i;

	if (!report || !m || m->n_tensors == 0)
		return;
	for (i = 0; i < m->n; i++) {
		size_t *room = &f->differed_room;

		if (!take_room(room, key_of(&m->diffs[i]), report->from) ||
			!take_room(room, s->name, s->text))
			break;
		differed_row(f->differed, s, report, m, &m->diffs[i]);
	}
	memcpy(rest, m->rest, sizeof rest);
	for (; i < m->n; i++)
		op_diff_entry_add(&rest[op_diff_there(m, &m->diffs[i])], &m->diffs[i]);
	for (i = 0; i < 2; i++)
		if (rest[i].keys > 0)
			differed_row(f->differed, s, report, m, &rest[i]);
}

/* Sets the bytes that a peer has sent and received until now. Returns false unless its job is
 * running. */
static bool get_member(
	const struct fill *f, const struct agt_synced_info *s, struct ste_member_view *ret)
{
	const struct run *r = s->end == AGT_SYNC_RUNNING ? op_run(f->a->o, s->run) : NULL;

	return r && op_sync_get_member(r, s->seq, s->comm, ret);
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
	wa_set_text(t, col++, "%s", wire_strategy_name(s->candidate.strategy));
	wa_set_number(t, col++, s->candidate.revision);
	wa_set_number(t, col++, s->candidate.torn);
	col = cc_admin_put_candidate(t, col, &s->candidate);
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
	fill_differed(f, s);
}

/* ---- jobs in progress ---- */

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
	{"standstill", WA_KIND_NS},
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

static const char *source_state(const struct op_source_view *v)
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
	struct op_source_view v;
	uint32_t i, col;

	for (i = 0; op_sync_get_source(r, o->seq, i, &v); i++) {
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
	const struct run *r = op_run(f->a->o, o->run);
	char master[CC_ADDR_STR_SIZE];
	struct op_sync_view v;
	uint32_t col = 0;

	if (!o->is_sync || !r || !op_sync_get_view(r, o->seq, f->now, &v))
		return;
	wa_row_add(t);
	wa_set_text(t, col++, "%s", cc_addr_str(op_run_master(r), master));
	wa_set_number(t, col++, o->group);
	wa_set_number(t, col++, o->seq);
	wa_set_number(t, col++, o->revision);
	wa_set_text(t, col++, "%s", v.state);
	wa_set_number(t, col++, o->age_ns);
	wa_set_number(t, col++, v.bytes);
	wa_set_number(t, col++, v.done);
	wa_set_number(t, col++, v.rate == STE_UNMEASURED ? WA_UNKNOWN : v.rate);
	wa_set_number(t, col++, v.left_ns == OP_LEFT_UNKNOWN ? WA_UNKNOWN : v.left_ns);
	wa_set_number(t, col++, v.standstill_ns);
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

/* ---- keys ---- */

static const struct wa_column key_cols[] = {
	{"master", WA_KIND_TEXT},
	{"group", WA_KIND_COUNT},
	{"revision", WA_KIND_COUNT},
	{"key", WA_KIND_TEXT},
	{"more", WA_KIND_COUNT},
	{"dtype", WA_KIND_TEXT},
	{"count", WA_KIND_COUNT},
	{"hash", WA_KIND_TEXT},
	{"may_differ", WA_KIND_BOOL},
};

static void key_row(struct wa_table *t, const char *master, const struct diff_report *f)
{
	wa_row_add(t);
	wa_set_text(t, 0, "%s", master);
	wa_set_number(t, 1, f->group);
	wa_set_number(t, 2, f->revision);
}

static void fill_keys(void *arg, const struct agt_group_info *g)
{
	struct fill *a = arg;
	const struct diff_report *f = op_diff_last(a->a->o, g->run, g->group);
	const struct diff_keys *k = f ? f->keys : NULL;
	char master[CC_ADDR_STR_SIZE];
	uint32_t i;

	if (!k)
		return;
	cc_addr_str(&g->master, master);
	for (i = 0; i < k->n && take_room(&a->keys_room, master, k->v[i].name); i++) {
		key_row(a->keys, master, f);
		wa_set_text(a->keys, 3, "%s", k->v[i].name);
		wa_set_text(a->keys, 5, "%s", wire_dtype_name(k->v[i].dtype));
		wa_set_number(a->keys, 6, k->v[i].count);
		wa_set_number(a->keys, 8, k->v[i].may_differ);
		if (f->hashes && !k->v[i].may_differ)
			wa_set_text(a->keys, 7, "%016" PRIx64, f->hashes[i]);
	}
	if (i == k->n_tensors)
		return;
	key_row(a->keys, master, f);
	wa_set_number(a->keys, 4, k->n_tensors - i);
}

void adm_state(struct adm *a, uint64_t now, struct wa_reply *reply)
{
	struct fill f = {.a = a, .now = now, .differed_room = ROOM, .keys_room = ROOM};

	agt_each_group(a->base->core, fill_group, WA_TABLE(reply, "groups", group_cols));
	f.peers = WA_TABLE(reply, "peers", peer_cols);
	f.differed = WA_TABLE(reply, "differed", differed_cols);
	f.transfers = WA_TABLE(reply, "transfers", transfer_cols);
	f.sources = WA_TABLE(reply, "sources", source_cols);
	f.receivers = WA_TABLE(reply, "receivers", receiver_cols);
	f.keys = WA_TABLE(reply, "keys", key_cols);
	agt_each_synced(a->base->core, now, fill_peer, &f);
	agt_each_op(a->base->core, now, fill_transfer, &f);
	agt_each_group(a->base->core, fill_keys, &f);
	op_diff_unref(f.going);
}
