/* SPDX-License-Identifier: MIT
 *
 * Jobs of synchronizations, between the core and the shared-state engine: finds the memory of a
 * job, starts it, reports its results to the core, and keeps the memory until no thread uses it any
 * longer. A member that is dropped gets its memory back while the job goes on for the others.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "pcclagentd/ops/ops_internal.h"

struct sync *op_sync_find(const struct run *r, uint64_t seq)
{
	struct sync *x;

	HASH_FIND(hh, r->syncs, &seq, sizeof seq, x);
	return x;
}

bool op_sync_goes_on(const struct run *r, uint64_t seq)
{
	const struct sync *x = op_sync_find(r, seq);

	return x && !x->finished;
}

/* Gives the member's process its memory back. */
static void release(struct sync_member *m)
{
	if (m->comm)
		loc_comm_unref(m->comm);
	m->comm = NULL;
	if (m->manifest && m->used)
		loc_manifest_leave(m->manifest);
	m->used = false;
}

/* ---- events for the core ---- */

static void fill_results(
	const struct sync *x, struct agt_sync_result *ret, char (*ret_text)[STE_TEXT_MAX])
{
	for (uint32_t i = 0; i < x->n_members; i++) {
		const struct sync_member *m = &x->members[i];
		struct agt_sync_result *v = &ret[i];
		struct ste_member_view view;

		*v = (struct agt_sync_result){.comm = m->id};
		if (m->gone) {
			v->failed = true;
			v->code = WIRE_RANK_CONNECTION_LOST;
			v->text = "its process was gone when the synchronization started";
		} else if (x->started && ste_get_member(x->run->ste, x->seq, m->index, &view)) {
			v->failed = view.failed;
			v->complete = view.complete;
			v->code = view.failed ? WIRE_INVALID_USAGE : WIRE_SUCCESS;
			v->tx_bytes = view.tx_bytes;
			v->rx_bytes = view.rx_bytes;
			memcpy(ret_text[i], view.text, sizeof view.text);
			v->text = ret_text[i];
		}
	}
}

/* Sends an event of the job to the core. The job may be freed when this returns. */
static void tell(struct sync *x, enum agt_event_type type, uint32_t code, const char *text,
	const struct cc_id *suspect)
{
	struct agt_event ev = {.type = type,
		.run = x->run->id,
		.seq = x->seq,
		.code = code,
		.text = text,
		.n_results = x->n_members};
	struct agt_sync_result *results = calloc((size_t)x->n_members + 1, sizeof *results);
	char(*texts)[STE_TEXT_MAX] = calloc((size_t)x->n_members + 1, sizeof *texts);

	if (!results || !texts)
		rep_out_of_memory("synchronizations");
	fill_results(x, results, texts);
	ev.results = results;
	if (suspect)
		ev.peer = *suspect;
	ev_post(x->run->o->base, &ev);
	free(results);
	free(texts);
}

static void tell_done(struct sync *x, uint32_t code, const char *text, const struct cc_id *suspect)
{
	x->done = true;
	x->over = true;
	tell(x, AGT_EV_SYNC_DONE, code, text, suspect);
}

/* ---- the engine ---- */

static void tell_dropped(struct run *r, uint64_t seq, uint32_t comm)
{
	struct agt_event ev = {.type = AGT_EV_SYNC_DROPPED, .run = r->id, .seq = seq, .comm = comm};

	ev_post(r->o->base, &ev);
}

/* Reports members that were dropped or have failed. The core may free the job or the run during an
 * event, so both are looked up again after each event. */
static void look_at_members(struct run *r, uint64_t seq)
{
	struct ops *o = r->o;
	uint32_t id = r->id;
	struct sync *x = op_sync_find(r, seq);
	bool news = false;

	for (uint32_t i = 0; x && i < x->n_members; i++) {
		struct sync_member *m = &x->members[i];
		struct ste_member_view v;

		if (m->index == STE_NO_MEMBER || !ste_get_member(r->ste, seq, m->index, &v))
			continue;
		if (v.dropped && m->used) {
			release(m);
			tell_dropped(r, seq, m->id);
			r = op_run(o, id);
			x = r ? op_sync_find(r, seq) : NULL;
		} else if (v.failed && !m->dropping && !m->told_failed) {
			m->told_failed = news = true;
		}
	}
	/* AGT_EV_SYNC_DONE reports the members that had failed before. A later failure needs
	 * another event. */
	if (x && x->done && !x->failed && news)
		tell(x, AGT_EV_SYNC_DONE, WIRE_SUCCESS, NULL, NULL);
}

static void take_event(struct run *r, const struct ste_event *e)
{
	struct sync *x = op_sync_find(r, e->seq);

	if (!x)
		return;
	switch (e->type) {
	case STE_DONE:
		op_progress_sync_moved(x, cc_now_ns());
		tell_done(x, WIRE_SUCCESS, NULL, NULL);
		break;
	case STE_FAILED:
		x->failed = true;
		tell_done(x, e->exhausted ? WIRE_OUT_OF_MEMORY : WIRE_RANK_CONNECTION_LOST, e->text,
			&e->suspect);
		break;
	case STE_MEMBERS:
		look_at_members(r, e->seq);
		break;
	case STE_CANCELLED:
		x->finished = true;
		op_diff_take(x);
		tell(x, AGT_EV_SYNC_CANCELLED, WIRE_SUCCESS, NULL, NULL);
		break;
	}
}

static void on_event(void *arg)
{
	struct run *r = arg;
	struct ops *o = r->o;
	uint32_t id = r->id;
	struct ste_event e;
	uint64_t count;

	if (read(r->state_fd, &count, sizeof count) < 0)
		cc_log(CC_LOG_DEBUG, "the engine for shared state woke without an event");
	while (r && r->ste && ste_next_event(r->ste, &e)) {
		take_event(r, &e);
		r = op_run(o, id);
	}
}

int op_sync_engine(struct run *r)
{
	struct ste_config cfg = {.run = r->run_id, .self = r->o->base->id};

	if (r->ste)
		return 0;
	r->state_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->state_fd < 0)
		return CC_ERR_IO;
	r->state_watch = cc_watch_new(r->o->base->loop, r->state_fd, false, on_event, r);
	r->ste = r->state_watch ? ste_new(&cfg, r->state_fd) : NULL;
	if (r->ste) {
		ste_set_bounds(r->ste, &r->bounds);
		return 0;
	}
	cc_watch_free(r->state_watch);
	r->state_watch = NULL;
	close(r->state_fd);
	r->state_fd = -1;
	return CC_ERR_NOMEM;
}

/* ---- starting ---- */

/* Adds a member. A member whose process is gone does not take part in the job. */
static int add_member(struct sync *x, const struct agt_sync_member *t)
{
	struct run *r = x->run;
	struct sync_member *m = &x->members[x->n_members++];
	struct loc_comm *c = loc_comm_find(r->o->loc, t->comm);
	struct loc_manifest *offered = c ? loc_manifest_take(c, t->sub.slot) : NULL;

	*m = (struct sync_member){.id = t->comm,
		.index = STE_NO_MEMBER,
		.holder = t->holder,
		.torn = t->sub.sync.torn,
		.synced = t->sub.synced,
		.offered = t->sub.sync.revision,
		.gone = !offered};
	if (!offered)
		return 0;
	m->comm = loc_comm_ref(c);
	m->manifest = offered;
	m->used = true;
	return loc_comm_use_state(c, r->ste) < 0 ? CC_ERR_IO : 0;
}

static void add_source(struct sync *x, const struct agt_sync_source *t, struct ste_source *ret)
{
	const struct wm_endpoint *e = &t->endpoint;
	struct sync_source *s = &x->sources[x->n_sources++];
	struct cc_addr addrs[WM_ADDRS_MAX];

	*ret = (struct ste_source){.agent = e->agent,
		.key = e->key,
		.holds = t->holds,
		.segments = net_segments(x->run->net, &e->agent)};
	s->holds = t->holds;
	rep_copy_text(s->host, sizeof s->host, e->name[0] ? e->name : "an unnamed host");
	rep_copy_text(ret->name, sizeof ret->name, s->host);
	if (e->at_master && x->run->reached.family != 0) {
		ret->addrs[ret->n_addrs] = x->run->reached;
		ret->addrs[ret->n_addrs++].port = e->port;
	}
	memcpy(addrs, e->addrs, sizeof addrs);
	net_addresses_sort(x->run->o->net, addrs, e->n_addrs);
	for (uint32_t i = 0; i < e->n_addrs && i < WM_ADDRS_MAX; i++) {
		struct cc_addr a = addrs[i];

		if (a.port == 0)
			a.port = e->port;
		if (a.family != 0 && (ret->n_addrs == 0 || !cc_addr_eq(&a, &ret->addrs[0])))
			ret->addrs[ret->n_addrs++] = a;
	}
}

/* Writes the seq and the view into the slot. If the agent dies, the shim uses them to ask how the
 * attempt ended. */
static void announce(struct shm_slot *s, const struct agt_sync *t)
{
	s->seq = t->seq;
	loc_comm_put_view(s, &t->begin);
}

static void fill_member(
	const struct sync_member *m, const struct agt_sync_member *t, struct ste_member *ret)
{
	*ret = (struct ste_member){.holder = t->holder,
		.receive_only = t->sub.sync.strategy == WM_STRATEGY_RECEIVE_ONLY,
		.slot = loc_comm_slot(m->comm, t->sub.slot)};
	loc_manifest_fill(m->manifest, ret);
}

static int run_job(struct sync *x, const struct agt_sync *t, hsh_leaf_fn *leaf)
{
	struct ste_member members[AGT_MEMBERS_MAX];
	struct ste_source sources[STE_SOURCES_MAX];
	struct ste_spec spec = {.seq = t->seq,
		.group = t->group,
		.revision = t->revision,
		.content = t->content,
		.leaf = leaf,
		.members = members,
		.sources = sources};
	int err;

	for (uint32_t i = 0; i < x->n_members; i++) {
		if (!x->members[i].comm)
			continue;
		fill_member(&x->members[i], &t->members[i], &members[spec.n_members]);
		announce(members[spec.n_members].slot, t);
		loc_manifest_at_work(x->members[i].manifest, true);
		x->members[i].index = spec.n_members++;
	}
	for (uint32_t i = 0; i < t->n_sources && spec.n_sources < STE_SOURCES_MAX; i++)
		add_source(x, &t->sources[i], &sources[spec.n_sources++]);
	if (spec.n_members == 0)
		return 0;
	err = ste_start(x->run->ste, &spec);
	x->started = err == 0;
	for (uint32_t i = 0; i < spec.n_members; i++)
		free((void *)(uintptr_t)members[i].regions);
	return err;
}

/* Starts the job. WIRE_SUCCESS, or another code and a sentence in text[WL_TEXT_MAX]. */
static uint32_t start(struct sync *x, const struct agt_sync *t, char *text)
{
	static const char what[] = "the agent cannot synchronize shared state";
	struct run *r = x->run;
	hsh_leaf_fn *leaf = loc_manifest_leaf_fn(r->o->loc, t->hash_type, text);
	int err;

	if (!leaf)
		return WIRE_INTERNAL_ERROR;
	errno = 0;
	err = r->o->base->stopping ? CC_ERR_EOF : op_sync_engine(r);
	for (uint32_t i = 0; err == 0 && i < t->n_members; i++)
		err = add_member(x, &t->members[i]);
	if (err == 0)
		err = run_job(x, t, leaf);
	if (err == 0)
		return WIRE_SUCCESS;
	if (err == CC_ERR_IO || err == CC_ERR_NOMEM)
		return rep_shortage(what, "pthread_create (clone3)", text, WL_TEXT_MAX);
	snprintf(text, WL_TEXT_MAX, "%s: %s", what, cc_err_str(err));
	return err == CC_ERR_LIMIT ? WIRE_OUT_OF_MEMORY : WIRE_INTERNAL_ERROR;
}

void op_sync_start(struct run *r, const struct agt_sync *t)
{
	struct sync *x = calloc(1, sizeof *x);
	char text[WL_TEXT_MAX] = "";
	uint32_t code;

	if (!x)
		rep_out_of_memory("synchronizations");
	*x = (struct sync){.seq = t->seq,
		.group = t->group,
		.revision = t->revision,
		.keys = t->keys,
		.progress.mark.since_ns = cc_now_ns(),
		.run = r};
	x->members = calloc(t->n_members, sizeof *x->members);
	if (!x->members)
		rep_out_of_memory("synchronizations");
	HASH_ADD(hh, r->syncs, seq, sizeof x->seq, x);
	code = start(x, t, text);
	if (code != WIRE_SUCCESS)
		tell_done(x, code, text, NULL);
	else if (!x->started)
		tell_done(x, WIRE_SUCCESS, NULL, NULL);
}

/* Returns the region with this id if it belongs to a holder of this user in the job, or NULL. */
static struct loc_region *find_shown(const struct sync *x, uint32_t uid, uint64_t id)
{
	for (uint32_t i = 0; i < x->n_members; i++) {
		const struct sync_member *m = &x->members[i];
		struct loc_region *r = NULL;

		if (m->used && m->holder && loc_manifest_uid(m->manifest) == uid)
			r = loc_manifest_region(m->manifest, id);
		if (r)
			return r;
	}
	return NULL;
}

struct loc_region *op_sync_shown(struct ops *o, const struct loc_comm *c, uint64_t region)
{
	struct run *r, *tmp;
	struct sync *x, *next;

	HASH_ITER (hh, o->runs, r, tmp) {
		HASH_ITER (hh, r->syncs, x, next) {
			for (uint32_t i = 0; i < x->n_members; i++)
				if (x->members[i].comm == c && x->members[i].used)
					return find_shown(x, loc_comm_uid(c), region);
		}
	}
	return NULL;
}

/* ---- ending ---- */

void op_sync_drop(struct run *r, uint64_t seq, uint32_t comm)
{
	struct sync *x = op_sync_find(r, seq);
	struct sync_member *m = NULL;

	for (uint32_t i = 0; x && i < x->n_members; i++)
		if (x->members[i].id == comm)
			m = &x->members[i];
	if (m && m->used && x->started && !x->finished) {
		m->dropping = true;
		ste_drop(r->ste, seq, m->index);
		return;
	}
	if (m)
		release(m);
	tell_dropped(r, seq, comm);
}

void op_sync_cancel(struct run *r, uint64_t seq)
{
	struct agt_event ev = {.type = AGT_EV_SYNC_CANCELLED, .run = r->id, .seq = seq};
	struct sync *x = op_sync_find(r, seq);

	if (x)
		x->over = true;
	if (x && x->started && !x->finished)
		ste_cancel(r->ste, seq);
	else if (x)
		tell(x, AGT_EV_SYNC_CANCELLED, WIRE_SUCCESS, NULL, NULL);
	else
		ev_post(r->o->base, &ev);
}

static void destroy(struct sync *x)
{
	HASH_DEL(x->run->syncs, x);
	for (uint32_t i = 0; i < x->n_members; i++) {
		release(&x->members[i]);
		if (x->members[i].manifest)
			loc_manifest_unref(x->members[i].manifest);
	}
	free(x->members);
	free(x);
}

void op_sync_free(struct run *r, uint64_t seq)
{
	struct sync *x = op_sync_find(r, seq);

	if (!x)
		return;
	destroy(x);
	op_run_free_if_done(r);
}

void op_syncs_halt(struct run *r)
{
	struct sync *x, *tmp;

	loc_comms_leave_state(r->o->loc, r->ste);
	ste_free(r->ste); /* waits for its thread */
	r->ste = NULL;
	HASH_ITER (hh, r->syncs, x, tmp) {
		destroy(x);
	}
	cc_watch_free(r->state_watch);
	r->state_watch = NULL;
	if (r->state_fd >= 0)
		close(r->state_fd);
	r->state_fd = -1;
}

/* ---- for people ---- */

static const char *phase_name(enum ste_phase phase)
{
	switch (phase) {
	case STE_STARTS:
		return "starts";
	case STE_COMPARES:
		return "compares";
	case STE_COPIES:
		return "copies";
	case STE_SERVES:
		return "serves";
	case STE_FAILS:
		return "failed";
	}
	return "?";
}

static void count_members(const struct sync *x, struct op_sync_view *ret)
{
	for (uint32_t i = 0; i < x->n_members; i++) {
		const struct sync_member *m = &x->members[i];
		struct ste_member_view v = {.failed = true};

		ret->holders += m->holder;
		ret->receivers += !m->holder;
		if (m->index != STE_NO_MEMBER)
			(void)ste_get_member(x->run->ste, x->seq, m->index, &v);
		ret->failed += v.failed;
		ret->tx_bytes += v.tx_bytes;
		ret->rx_bytes += v.rx_bytes;
	}
}

static uint64_t time_left(const struct ste_progress *p)
{
	if (p->phase == STE_SERVES)
		return 0;
	if (p->phase != STE_COPIES || p->rate == 0 || p->rate == STE_UNMEASURED)
		return OP_LEFT_UNKNOWN;
	return (uint64_t)((double)(p->bytes - p->done) / (double)p->rate * 1e9);
}

bool op_sync_get_view(const struct run *r, uint64_t seq, uint64_t now, struct op_sync_view *ret)
{
	struct sync *x = op_sync_find(r, seq);
	struct op_source_view s;
	struct ste_progress p;

	if (!x || !x->started || !ste_get_progress(r->ste, seq, &p))
		return false;
	*ret = (struct op_sync_view){.phase = p.phase,
		.state = phase_name(p.phase),
		.bytes = p.bytes,
		.done = p.done,
		.rate = p.rate,
		.left_ns = time_left(&p),
		.net_rx_bytes = p.net_rx_bytes,
		.net_tx_bytes = p.net_tx_bytes,
		.sources = x->n_sources};
	count_members(x, ret);
	for (uint32_t i = 0; op_sync_get_source(r, seq, i, &s); i++) {
		ret->sources_up += s.up;
		ret->sources_lost += s.lost;
	}
	ret->standstill_ns = op_progress_sync(x, &p, now, ret->waits);
	return true;
}

bool op_sync_get_source(const struct run *r, uint64_t seq, uint32_t i, struct op_source_view *ret)
{
	struct sync *x = op_sync_find(r, seq);
	struct ste_source_view v;

	if (!x || i >= x->n_sources || !x->started || !ste_get_source(r->ste, seq, i, &v))
		return false;
	*ret = (struct op_source_view){.holds = x->sources[i].holds,
		.up = v.up,
		.lost = v.lost,
		.not_begun = v.not_begun,
		.bytes = v.bytes};
	rep_copy_text(ret->host, sizeof ret->host, x->sources[i].host);
	rep_copy_text(ret->text, sizeof ret->text, v.text);
	return true;
}

bool op_sync_get_member(
	const struct run *r, uint64_t seq, uint32_t comm, struct ste_member_view *ret)
{
	const struct sync *x = op_sync_find(r, seq);
	const struct sync_member *m;

	for (m = x ? x->members : NULL; m && m < x->members + x->n_members; m++)
		if (m->id == comm)
			return x->started && !m->gone && m->index != STE_NO_MEMBER &&
			       ste_get_member(r->ste, seq, m->index, ret);
	return false;
}
