/* SPDX-License-Identifier: MIT
 *
 * Makes difference reports. The names of keys are copied when a job has these keys for the first
 * time, because the process may change them after its call has returned. Later jobs with the same
 * keys need memory only for their hashes.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/wire_text.h"

#include "pcclagentd/ops/ops_internal.h"

#define LOG_KEYS   3u   /* keys that a line of the log names */
#define LOG_NAME   64u  /* bytes of each name */
#define LOG_SIZE   512u /* bytes of all names */
#define FROM_NAMES 3u
#define DOTS       "..."

const char *op_diff_cause_name(enum diff_cause c)
{
	static const char *const names[] = {"drift", "outdated", "newcomer", "torn"};

	return names[c];
}

/* ---- keys ---- */

static void keys_unref(struct diff_keys *k)
{
	if (!k || --k->refs > 0)
		return;
	loc_account_discharge(k->loc, k->uid, k->charged);
	free(k->names);
	free(k->v);
	free(k);
}

/* Returns the most bytes that put_name writes, with NUL. */
static size_t name_size(const struct shm_state_tensor *t)
{
	return t->name_len < DIFF_NAME_MAX ? (size_t)t->name_len + 1 : DIFF_NAME_MAX;
}

static void put_name(const uint8_t *map, const struct shm_state_tensor *t, char *dst)
{
	if (t->name_len < DIFF_NAME_MAX) {
		shm_state_name(map, t, dst, DIFF_NAME_MAX);
		return;
	}
	shm_state_name(map, t, dst, DIFF_NAME_MAX - strlen(DOTS));
	memcpy(dst + strlen(dst), DOTS, sizeof DOTS);
}

static void fill_keys(struct diff_keys *k, const struct loc_manifest *m)
{
	size_t at = 0;

	for (uint32_t i = 0; i < k->n; i++) {
		const struct shm_state_tensor *t = &loc_manifest_state(m)->tensors[i];

		k->v[i] = (struct diff_key){.name = k->names + at,
			.count = t->count,
			.dtype = t->dtype,
			.may_differ = t->may_differ};
		put_name(loc_manifest_map(m), t, k->names + at);
		at += name_size(t);
	}
}

static struct diff_keys *make_keys(
	struct loc *loc, const struct loc_manifest *m, const struct wm_digest *digest)
{
	const struct shm_state *table = loc_manifest_state(m);
	uint32_t n = table->n_tensors < DIFF_KEYS_MAX ? table->n_tensors : DIFF_KEYS_MAX;
	struct diff_keys *k = calloc(1, sizeof *k);
	uint64_t size = 1;
	char why[WL_TEXT_MAX];

	if (!k)
		rep_out_of_memory("difference report");
	for (uint32_t i = 0; i < n; i++)
		size += name_size(&table->tensors[i]);
	*k = (struct diff_keys){.loc = loc,
		.refs = 1,
		.uid = loc_manifest_uid(m),
		.charged = sizeof *k + n * sizeof *k->v + size,
		.digest = *digest,
		.n_tensors = table->n_tensors,
		.n = n};
	if (loc_account_charge(k->loc, k->uid, k->charged, why) != WIRE_SUCCESS) {
		free(k);
		return NULL;
	}
	k->v = calloc((size_t)n + 1, sizeof *k->v);
	k->names = malloc(size);
	if (!k->v || !k->names)
		rep_out_of_memory("difference report");
	fill_keys(k, m);
	return k;
}

/* Returns a manifest of the job that can still be read, of any member; or NULL. */
static const struct loc_manifest *find_table(const struct sync *x)
{
	for (uint32_t i = 0; i < x->n_members; i++)
		if (x->members[i].used)
			return x->members[i].manifest;
	return NULL;
}

static struct diff_keys *find_keys(const struct sync *x, const struct loc_manifest *table)
{
	for (uint32_t i = 0; i < x->n_members; i++) {
		const struct diff_report *f = op_diff_of(x->run->o, x->members[i].id);
		struct diff_keys *k = f ? f->keys : NULL;

		if (!k || k->digest.hi != x->keys.hi || k->digest.lo != x->keys.lo)
			continue;
		k->refs++;
		return k;
	}
	return make_keys(x->run->o->loc, table, &x->keys);
}

/* ---- members ---- */

static enum diff_cause cause_of(const struct sync *x, const struct sync_member *m)
{
	if (m->torn)
		return DIFF_TORN;
	if (!m->synced)
		return DIFF_NEWCOMER;
	return m->offered == x->revision ? DIFF_DRIFT : DIFF_OUTDATED;
}

bool op_diff_there(const struct diff_member *m, const struct diff_entry *d)
{
	return m->complete || (d->of > 0 && d->done == d->bytes);
}

const char *op_diff_outcome(const struct diff_member *m, const struct diff_entry *d)
{
	if (!op_diff_there(m, d))
		return m->ended ? "failed" : "under way";
	return m->cause == DIFF_DRIFT ? "repaired" : "received";
}

void op_diff_entry_add(struct diff_entry *sum, const struct diff_entry *d)
{
	sum->keys += d->keys;
	sum->leaves += d->leaves;
	sum->of += d->of;
	sum->bytes += d->bytes;
	sum->done += d->done;
}

static void take_diff(
	const struct loc_manifest *table, const struct ste_diff *d, struct diff_member *ret)
{
	struct diff_entry entry = {
		.keys = 1, .leaves = d->leaves, .of = d->of, .bytes = d->bytes, .done = d->done};
	char name[DIFF_NAME_MAX];

	ret->n_tensors++;
	if (ret->n == DIFF_ENTRIES_MAX) {
		op_diff_entry_add(&ret->rest[op_diff_there(ret, &entry)], &entry);
		return;
	}
	put_name(loc_manifest_map(table), &loc_manifest_state(table)->tensors[d->tensor], name);
	entry.name = strdup(name);
	if (!ret->diffs)
		ret->diffs = calloc(DIFF_ENTRIES_MAX, sizeof *ret->diffs);
	if (!ret->diffs || !entry.name)
		rep_out_of_memory("difference report");
	ret->diffs[ret->n++] = entry;
}

static void take_member(const struct sync *x, const struct loc_manifest *table,
	const struct sync_member *m, struct diff_member *ret)
{
	struct ste_member_view v;
	struct ste_diff d;

	*ret = (struct diff_member){.comm = m->id, .offered = m->offered};
	if (m->index == STE_NO_MEMBER || !ste_get_member(x->run->ste, x->seq, m->index, &v))
		return;
	ret->cause = cause_of(x, m);
	ret->complete = v.complete;
	ret->ended = x->finished || v.failed;
	for (uint32_t t = 0; ste_next_diff(x->run->ste, x->seq, m->index, t, &d); t = d.tensor + 1)
		take_diff(table, &d, ret);
}

/* ---- where the contents came from ---- */

struct names {
	char *text;
	uint32_t n;
};

static void add_name(struct names *v, const char *name)
{
	size_t len = strlen(v->text);

	if (v->n++ < FROM_NAMES)
		snprintf(v->text + len, DIFF_FROM_MAX - len, "%s%s", len > 0 ? ", " : "", name);
}

static void list_sources(const struct sync *x, char text[DIFF_FROM_MAX])
{
	struct names v = {.text = text};
	struct op_source_view src;
	struct ste_member_view mem;

	for (uint32_t i = 0; i < x->n_members; i++) {
		const struct sync_member *m = &x->members[i];
		struct loc_process p;
		char pid[32];

		if (!m->comm || !loc_process_of(m->comm, &p) || !m->holder ||
			m->index == STE_NO_MEMBER ||
			!ste_get_member(x->run->ste, x->seq, m->index, &mem) || mem.tx_bytes == 0)
			continue;
		snprintf(pid, sizeof pid, "pid %" PRIu32, p.pid);
		add_name(&v, pid);
	}
	for (uint32_t i = 0; op_sync_get_source(x->run, x->seq, i, &src); i++)
		if (src.bytes > 0)
			add_name(&v, src.host);
	if (v.n > FROM_NAMES)
		snprintf(text + strlen(text), DIFF_FROM_MAX - strlen(text), " and %" PRIu32 " more",
			v.n - FROM_NAMES);
}

/* ---- the log ---- */

static void list_diffs(const struct diff_member *m, char text[LOG_SIZE])
{
	char name[LOG_NAME + 1];
	size_t len = 0;

	for (uint32_t i = 0; i < m->n && i < LOG_KEYS; i++) {
		const struct diff_entry *d = &m->diffs[i];

		wire_text_clean(name, d->name, LOG_NAME);
		len += (size_t)snprintf(text + len, LOG_SIZE - len,
			"%s%s (%" PRIu64 " of %" PRIu64 " blocks, %" PRIu64 " bytes)",
			i > 0 ? ", " : "", name, d->leaves, d->of, d->bytes);
	}
	if (m->n_tensors > LOG_KEYS)
		snprintf(text + len, LOG_SIZE - len, " and %" PRIu32 " more",
			m->n_tensors - LOG_KEYS);
}

static uint64_t bytes_of(const struct diff_member *m)
{
	uint64_t bytes = m->rest[0].bytes + m->rest[1].bytes;

	for (uint32_t i = 0; i < m->n; i++)
		bytes += m->diffs[i].bytes;
	return bytes;
}

static void tell(const struct sync *x, const struct diff_report *f, const struct diff_member *m)
{
	const struct loc_comm *c = loc_comm_find(f->loc, m->comm);
	struct report *report = &x->run->o->base->report;
	char who[160], text[LOG_SIZE] = "";
	struct loc_process p;

	if (!c || !loc_process_of(c, &p) || !m->complete || m->n_tensors == 0)
		return;
	snprintf(who, sizeof who,
		"run %" PRIu32 ", the synchronization of group %" PRIu32 ", seq %" PRIu64
		": pid %" PRIu32 " (%s)",
		x->run->id, x->group, x->seq, p.pid, p.name);
	if (m->cause == DIFF_DRIFT) {
		list_diffs(m, text);
		rep_complain(report, CC_LOG_NOTICE,
			"%s had drifted at revision %" PRIu64 " and is repaired, from %s: %s", who,
			x->revision, f->from, text);
		return;
	}
	if (m->cause == DIFF_OUTDATED)
		snprintf(text, sizeof text, "outdated by revision %" PRIu64, m->offered);
	else
		snprintf(text, sizeof text, "%s",
			m->cause == DIFF_TORN ? "left with torn state" : "a newcomer");
	rep_complain(report, CC_LOG_INFO,
		"%s, %s, has got revision %" PRIu64 " from %s: %" PRIu32 " tensors, %" PRIu64
		" bytes",
		who, text, x->revision, f->from, m->n_tensors, bytes_of(m));
}

/* ---- difference reports ---- */

static void destroy(struct diff_report *f)
{
	loc_account_discharge(f->loc, f->uid, f->charged);
	for (uint32_t i = 0; i < f->n_members; i++) {
		for (uint32_t k = 0; k < f->members[i].n; k++)
			free(f->members[i].diffs[k].name);
		free(f->members[i].diffs);
	}
	free(f->members);
	free(f->hashes);
	keys_unref(f->keys);
	free(f);
}

void op_diff_unref(struct diff_report *f)
{
	if (f && --f->refs == 0)
		destroy(f);
}

static void take_hashes(const struct sync *x, struct diff_report *f)
{
	const uint64_t *v = ste_get_hashes(x->run->ste, x->seq);
	size_t n = f->keys ? f->keys->n : 0;

	if (!v || n == 0)
		return;
	f->hashes = malloc(n * sizeof *v);
	if (!f->hashes)
		rep_out_of_memory("difference report");
	memcpy(f->hashes, v, n * sizeof *v);
}

static uint64_t size_of(const struct diff_report *f)
{
	uint64_t size = sizeof *f + f->n_members * sizeof *f->members;

	if (f->hashes)
		size += f->keys->n * sizeof *f->hashes;
	for (uint32_t i = 0; i < f->n_members; i++) {
		const struct diff_member *m = &f->members[i];

		if (m->diffs)
			size += DIFF_ENTRIES_MAX * sizeof *m->diffs;
		for (uint32_t k = 0; m->diffs && k < m->n; k++)
			size += strlen(m->diffs[k].name) + 1;
	}
	return size;
}

static struct diff_report *make(const struct sync *x, const struct loc_manifest *table)
{
	struct diff_report *f = calloc(1, sizeof *f);

	if (!f)
		rep_out_of_memory("difference report");
	*f = (struct diff_report){.loc = x->run->o->loc,
		.refs = 1,
		.uid = loc_manifest_uid(table),
		.run = x->run->id,
		.group = x->group,
		.seq = x->seq,
		.revision = x->revision};
	f->members = calloc((size_t)x->n_members + 1, sizeof *f->members);
	if (!f->members)
		rep_out_of_memory("difference report");
	for (; f->n_members < x->n_members; f->n_members++)
		take_member(x, table, &x->members[f->n_members], &f->members[f->n_members]);
	list_sources(x, f->from);
	return f;
}

struct diff_report *op_diff_now(const struct run *r, uint64_t seq)
{
	const struct sync *x = op_sync_find(r, seq);
	const struct loc_manifest *table = x && x->started && !x->finished ? find_table(x) : NULL;

	return table ? make(x, table) : NULL;
}

/* ---- reports of each communicator's last job ---- */

struct found {
	uint32_t comm;
	struct diff_report *f; /* referenced */
	UT_hash_handle hh;
};

static struct found *find_comm_report(const struct ops *o, uint32_t comm)
{
	struct found *v;

	HASH_FIND(hh, o->comm_reports, &comm, sizeof comm, v);
	return v;
}

void op_diff_forget(struct ops *o, uint32_t comm)
{
	struct found *v = find_comm_report(o, comm);

	if (!v)
		return;
	HASH_DEL(o->comm_reports, v);
	op_diff_unref(v->f);
	free(v);
}

void op_diff_free(struct ops *o)
{
	while (o->comm_reports)
		op_diff_forget(o, o->comm_reports->comm);
}

const struct diff_report *op_diff_of(const struct ops *o, uint32_t comm)
{
	const struct found *v = find_comm_report(o, comm);

	return v ? v->f : NULL;
}

/* Makes `f` the report of the last job of m's communicator, unless a later job of this communicator
 * has already ended. If there is no room for the report, the communicator has none. */
static void give(struct ops *o, struct diff_report *f, const struct diff_member *m, bool room)
{
	const struct diff_report *last = op_diff_of(o, m->comm);
	struct found *v;

	if (!loc_comm_find(o->loc, m->comm) || (last && last->run == f->run && last->seq > f->seq))
		return;
	op_diff_forget(o, m->comm);
	if (!room)
		return;
	v = calloc(1, sizeof *v);
	if (!v)
		rep_out_of_memory("difference report");
	v->comm = m->comm;
	v->f = f;
	f->refs++;
	HASH_ADD(hh, o->comm_reports, comm, sizeof v->comm, v);
}

void op_diff_take(const struct sync *x)
{
	const struct loc_manifest *table = find_table(x);
	char why[WL_TEXT_MAX];
	struct diff_report *f;
	uint64_t size;

	if (!table)
		return;
	f = make(x, table);
	f->keys = find_keys(x, table);
	take_hashes(x, f);
	size = size_of(f);
	for (uint32_t i = 0; i < f->n_members; i++)
		tell(x, f, &f->members[i]);
	if (loc_account_charge(f->loc, f->uid, size, why) == WIRE_SUCCESS)
		f->charged = size;
	for (uint32_t i = 0; i < f->n_members; i++)
		give(x->run->o, f, &f->members[i], f->charged > 0);
	op_diff_unref(f);
}

const struct diff_member *op_diff_member(const struct diff_report *f, uint32_t comm)
{
	for (uint32_t i = 0; f && i < f->n_members; i++)
		if (f->members[i].comm == comm)
			return &f->members[i];
	return NULL;
}

const struct diff_report *op_diff_last(const struct ops *o, uint32_t run, uint32_t group)
{
	const struct diff_report *last = NULL;

	for (const struct found *v = o->comm_reports; v; v = v->hh.next)
		if (v->f->run == run && v->f->group == group && (!last || v->f->seq > last->seq))
			last = v->f;
	return last;
}
