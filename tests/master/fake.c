/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/fake.h"

const struct wm_op_params fk_params = {.count = 100, .dtype = 10};

void fk_init(struct fk *f, const struct ccm_config *cfg)
{
	static const struct ccm_config def = {.run = {{1}},
		.run_key = {{2}},
		.segment_max = 4096,
		.algorithm = CCM_ALGORITHM_AUTO};

	memset(f, 0, sizeof *f);
	f->now = 1000000000;
	f->run = cfg ? cfg->run : def.run;
	f->run_key = cfg ? cfg->run_key : def.run_key;
	f->m = ccm_new(cfg ? cfg : &def);
}

static void inbox_clear(struct fk_host *h)
{
	size_t i;

	for (i = 0; i < h->n; i++)
		wire_master_clear(&h->inbox[i]);
	h->n = 0;
}

static void round_clear(struct fk_host *h)
{
	struct wm_msg msg = {.type = WM_ROUND, .u.round = h->round};

	wire_master_clear(&msg);
	memset(&h->round, 0, sizeof h->round);
}

static void order_clear(struct fk_host *h)
{
	struct wm_msg msg = {.type = WM_MEASURE, .u.measure = h->order};

	wire_master_clear(&msg);
	memset(&h->order, 0, sizeof h->order);
}

void fk_forget_problems(struct fk *f)
{
	while (f->n_problems > 0)
		ccm_problem_clear(&f->problems[--f->n_problems]);
}

void fk_free(struct fk *f)
{
	uint32_t i;

	for (i = 0; i < f->n_hosts; i++) {
		inbox_clear(f->hosts[i]);
		round_clear(f->hosts[i]);
		order_clear(f->hosts[i]);
		wire_master_clear(&f->hosts[i]->last);
		free(f->hosts[i]->inbox);
		free(f->hosts[i]);
	}
	fk_forget_problems(f);
	free(f->problems);
	free(f->journal);
	ccm_free(f->m);
	ccm_actions_free(&f->out);
}

static struct fk_host *host_of(struct fk *f, uint32_t conn)
{
	return conn >= 1 && conn <= f->n_hosts ? f->hosts[conn - 1] : NULL;
}

/* Checks that each position in a ring is valid. */
static void check_round(const struct wm_round *r)
{
	uint32_t i;

	ck_assert_uint_gt(r->n_rings, 0);
	for (i = 0; i < r->n_rings; i++) {
		ck_assert_uint_lt(r->rings[i].pos, r->rings[i].hosts);
		ck_assert_uint_gt(r->rings[i].n_members, 0);
		ck_assert_uint_ge(r->rings[i].pool_size, 1);
	}
}

static void *copy(const void *v, size_t n, size_t size)
{
	void *p = malloc(n ? n * size : 1);

	ck_assert_ptr_nonnull(p);
	if (n > 0)
		memcpy(p, v, n * size);
	return p;
}

static struct wm_round copy_round(const struct wm_round *r)
{
	struct wm_round ret = *r;
	uint32_t i;

	ret.rings = copy(r->rings, r->n_rings, sizeof *r->rings);
	for (i = 0; i < r->n_rings; i++) {
		const struct wm_ring *g = &r->rings[i];

		ret.rings[i].members = copy(g->members, g->n_members, sizeof *g->members);
		ret.rings[i].others = copy(g->others, g->n_others, sizeof *g->others);
		ret.rings[i].plan.order =
			copy(g->plan.order, g->plan.n_order, sizeof *g->plan.order);
	}
	return ret;
}

static void copy_sync(struct wm_sync_start *x)
{
	x->peers = copy(x->peers, x->n_peers, sizeof *x->peers);
	x->sources = copy(x->sources, x->n_sources, sizeof *x->sources);
	x->others = copy(x->others, x->n_others, sizeof *x->others);
}

static struct wm_measure copy_order(const struct wm_measure *x)
{
	struct wm_measure ret = *x;

	ret.to = copy(x->to, x->n_to, sizeof *x->to);
	ret.from = copy(x->from, x->n_from, sizeof *x->from);
	return ret;
}

/* Copies a message, because one message to several hosts is not owned by any of them. */
static struct wm_msg copy_message(const struct wm_msg *msg)
{
	struct wm_msg ret = *msg;
	struct wm_view *w = NULL;

	if (msg->type == WM_ROUND)
		ret.u.round = copy_round(&msg->u.round);
	if (msg->type == WM_OP_START && msg->u.op_start.is_sync)
		copy_sync(&ret.u.op_start.sync);
	if (msg->type == WM_UNMET)
		ret.u.unmet.peers =
			copy(ret.u.unmet.peers, ret.u.unmet.n_peers, sizeof *ret.u.unmet.peers);
	if (msg->type == WM_MEASURE)
		ret.u.measure = copy_order(&msg->u.measure);
	if (msg->type == WM_COMMIT)
		w = &ret.u.commit.view;
	if (msg->type == WM_VIEW)
		w = &ret.u.view;
	if (w) {
		w->own = copy(w->own, w->n, sizeof *w->own);
		w->lost = copy(w->lost, w->n_lost, sizeof *w->lost);
	}
	return ret;
}

static void keep_round(struct fk_host *h, const struct wm_round *r)
{
	check_round(r);
	round_clear(h);
	h->round = copy_round(r);
}

/* The host obeys the order. A ROUND ends it. */
static void keep_order(struct fk_host *h, const struct wm_msg *msg)
{
	order_clear(h);
	if (msg->type == WM_MEASURE)
		h->order = copy_order(&msg->u.measure);
}

static struct fk_generation *told_of(struct fk_host *h, uint32_t group)
{
	uint32_t i;

	for (i = 0; i < h->n_generations && h->generations[i].group != group; i++)
		;
	ck_assert_uint_lt(i, sizeof h->generations / sizeof h->generations[0]);
	if (i == h->n_generations)
		h->generations[h->n_generations++] = (struct fk_generation){group, 0, 0};
	return &h->generations[i];
}

static uint64_t *generation_of(struct fk_host *h, uint32_t group)
{
	return &told_of(h, group)->generation;
}

uint64_t fk_generation(struct fk_host *h, uint32_t group)
{
	return *generation_of(h, group);
}

void fk_know_generation(struct fk_host *h, uint32_t group, uint64_t generation)
{
	*generation_of(h, group) = generation;
}

uint64_t fk_revision(struct fk_host *h, uint32_t group)
{
	return told_of(h, group)->revision;
}

static void keep_generation(struct fk_host *h, const struct wm_view *w)
{
	uint32_t i;

	for (i = 0; i < w->n; i++) {
		*generation_of(h, w->own[i].group) = w->own[i].generation;
		told_of(h, w->own[i].group)->revision = w->own[i].revision;
	}
}

static void deliver(struct fk *f, struct fk_host *h, const struct wm_msg *msg)
{
	ck_assert_ptr_nonnull(h);
	ck_assert(h->open);
	f->sent++;
	f->owed |= (msg->type == WM_ROUND && (h->auto_report || h->auto_measured)) ||
		   (msg->type == WM_MEASURE && h->auto_measured) ||
		   (msg->type == WM_PROBE && h->auto_probed);
	if (f->watch)
		f->watch(f->watch_arg, h, msg);
	if (msg->type == WM_ROUND)
		keep_round(h, &msg->u.round);
	if (msg->type == WM_ROUND || msg->type == WM_MEASURE)
		keep_order(h, msg);
	if (msg->type == WM_PROBE) {
		ck_assert_uint_lt(h->n_probes, sizeof h->probes / sizeof h->probes[0]);
		h->probes[h->n_probes++] = msg->u.probe.number;
		if (h->auto_probed)
			return;
	}
	if (msg->type == WM_COMMIT) {
		ck_assert_uint_ge(msg->u.commit.epoch, h->epoch);
		h->epoch = msg->u.commit.epoch;
		ck_assert_uint_ge(msg->u.commit.ballots[WIRE_TOPOLOGY], h->ballots[WIRE_TOPOLOGY]);
		memcpy(h->ballots, msg->u.commit.ballots, sizeof h->ballots);
		keep_generation(h, &msg->u.commit.view);
	}
	if (msg->type == WM_BALLOT_END)
		h->ballots[msg->u.ballot_end.kind] = msg->u.ballot_end.number;
	if (msg->type == WM_VIEW)
		keep_generation(h, &msg->u.view);
	if (f->drop)
		return;
	if (h->n == h->cap) {
		h->cap = h->cap ? 2 * h->cap : 8;
		h->inbox = realloc(h->inbox, h->cap * sizeof *h->inbox);
		ck_assert_ptr_nonnull(h->inbox);
	}
	h->inbox[h->n++] = copy_message(msg);
}

static void keep_record(struct fk *f, const struct wj_record *r)
{
	struct wj_record stamped = *r;
	uint8_t *p;
	size_t len;

	stamped.written_s = f->now / 1000000000;
	ck_assert_int_eq(wire_journal_encode(&stamped, &p, &len), 0);
	f->journal = realloc(f->journal, f->journal_len + len);
	ck_assert_ptr_nonnull(f->journal);
	memcpy(f->journal + f->journal_len, p, len);
	f->journal_len += len;
	free(p);
}

/* Takes the problem out of the action. */
static void keep_problem(struct fk *f, struct ccm_problem *x)
{
	f->problems = realloc(f->problems, (f->n_problems + 1) * sizeof *f->problems);
	ck_assert_ptr_nonnull(f->problems);
	f->problems[f->n_problems++] = *x;
	memset(x, 0, sizeof *x);
}

void fk_restart(struct fk *f, const struct ccm_config *cfg, size_t len)
{
	struct wj_record r;
	const char *why;
	size_t at, used;

	fk_new_master(f, cfg);
	for (at = 0; at < len; at += used) {
		ck_assert_int_eq(
			wire_journal_decode(f->journal + at, len - at, &r, &used, &why), 0);
		wire_journal_age(&r, f->now / 1000000000);
		ccm_restore(f->m, &r);
		wire_journal_clear(&r);
	}
}

void fk_step(struct fk *f, const struct ccm_event *ev)
{
	const char *bad;
	size_t i, k;

	ccm_step(f->m, ev, f->now, &f->out);
	for (i = 0; i < f->out.n; i++) {
		struct ccm_action *x = &f->out.v[i];

		if (x->type == CCM_ACT_SEND) {
			for (k = 0; k < x->n_conns; k++)
				deliver(f, host_of(f, f->out.conns[x->first_conn + k]), &x->msg);
		} else if (x->type == CCM_ACT_CLOSE) {
			ck_assert_ptr_nonnull(host_of(f, x->conn));
			ck_assert(host_of(f, x->conn)->open);
			host_of(f, x->conn)->open = false;
			(void)snprintf(host_of(f, x->conn)->closed,
				sizeof host_of(f, x->conn)->closed, "%s", x->text);
		} else if (x->type == CCM_ACT_JOURNAL) {
			keep_record(f, &x->record);
		} else if (x->type == CCM_ACT_SOLVE) {
			keep_problem(f, &x->problem);
		} else {
			f->lines++;
			f->strangers += x->stranger;
			if (x->level <= CCM_LOG_WARNING)
				(void)snprintf(f->log, sizeof f->log, "%s", x->text);
		}
	}
	ccm_actions_clear(&f->out);
	if (f->quiet)
		return;
	bad = ccm_check(f->m);
	ck_assert_msg(!bad, "%s", bad ? bad : "");
}

struct cc_id fk_id(struct fk *f)
{
	struct cc_id id = {{0}};

	f->last_id++;
	memcpy(id.b, &f->last_id, sizeof f->last_id);
	id.b[15] = 7;
	return id;
}

struct ccm_status fk_status(struct fk *f)
{
	struct ccm_status s;

	ccm_get_status(f->m, &s);
	return s;
}

const char *fk_waiting(const struct fk *f)
{
	static char text[WM_TEXT_MAX];

	ccm_write_waiting(f->m, f->now, text, sizeof text);
	return text;
}

struct fk_host *fk_connect(struct fk *f, const char *name, const char *addr)
{
	struct fk_host *h = calloc(1, sizeof *h);
	struct ccm_event ev = {.type = CCM_EV_OPEN};

	ck_assert_ptr_nonnull(h);
	ck_assert_uint_lt(f->n_hosts, FK_HOSTS_MAX);
	h->fk = f;
	h->conn = ev.conn = ++f->last_conn;
	h->id = fk_id(f);
	h->open = true;
	h->auto_report = h->auto_probed = h->auto_measured = true;
	(void)snprintf(h->name, sizeof h->name, "%s", name);
	f->hosts[f->n_hosts++] = h;
	ev.local = f->local;
	ck_assert_int_eq(cc_addr_parse(addr, 5, &ev.addr), 0);
	fk_step(f, &ev);
	return h;
}

struct wm_msg fk_hello(const struct fk_host *h)
{
	struct wm_msg msg = {.type = WM_HELLO};

	msg.u.hello.version_min = WM_VERSION_MIN;
	msg.u.hello.version_max = WM_VERSION_MAX;
	msg.u.hello.features = h->fk->features;
	msg.u.hello.left = h->fk->left;
	msg.u.hello.agent = h->id;
	msg.u.hello.port_p2p = h->fk->port_p2p ? h->fk->port_p2p : (uint16_t)(1000 + h->conn);
	msg.u.hello.port_shared_state = (uint16_t)(3000 + h->conn);
	msg.u.hello.port_benchmark = (uint16_t)(5000 + h->conn);
	(void)snprintf(msg.u.hello.name, sizeof msg.u.hello.name, "%s", h->name);
	return msg;
}

struct fk_host *fk_host(struct fk *f, const char *name, const char *addr)
{
	struct fk_host *h = fk_connect(f, name, addr);
	struct wm_msg msg = fk_hello(h);

	fk_send(h, &msg);
	if (!f->drop)
		(void)fk_take(h, WM_HELLO_ACK);
	return h;
}

static void closed(struct fk_host *h, const char *why, bool refused)
{
	struct ccm_event ev = {
		.type = CCM_EV_CLOSED, .conn = h->conn, .text = why, .refused = refused};

	h->open = false;
	fk_step(h->fk, &ev);
	fk_settle(h->fk);
}

void fk_close(struct fk_host *h, const char *why)
{
	closed(h, why, true);
}

void fk_cut(struct fk_host *h, const char *why)
{
	closed(h, why, false);
}

/* Sends a message without answering rounds afterwards. */
static void send_only(struct fk_host *h, const struct wm_msg *msg)
{
	struct ccm_event ev = {
		.type = CCM_EV_MSG, .conn = h->conn, .msg = msg, .path_ms = h->path_ms};

	fk_step(h->fk, &ev);
}

void fk_send(struct fk_host *h, const struct wm_msg *msg)
{
	send_only(h, msg);
	if (h->fk->owed)
		fk_settle(h->fk);
}

void fk_probed(struct fk_host *h, const struct fk_host *to, const char *text)
{
	const struct wm_probe *p;
	struct wm_msg msg = {.type = WM_PROBED, .u.probed = {.ok = text == NULL}};
	uint32_t i;

	p = &fk_take(h, WM_PROBE)->u.probe;
	ck_assert(cc_id_eq(&p->to.agent, &to->id));
	for (i = 0; i < h->n_probes && h->probes[i] != p->number; i++)
		;
	ck_assert_uint_lt(i, h->n_probes);
	h->probes[i] = h->probes[--h->n_probes];
	msg.u.probed.number = p->number;
	if (text)
		(void)snprintf(msg.u.probed.text, sizeof msg.u.probed.text, "%s", text);
	fk_send(h, &msg);
}

void fk_manual(struct fk *f)
{
	uint32_t i;

	for (i = 0; i < f->n_hosts; i++)
		f->hosts[i]->auto_report = false;
}

/* Answers one pending probe. Returns false if there was none. */
static bool answer_probe(struct fk_host *h)
{
	struct wm_msg msg = {.type = WM_PROBED, .u.probed = {.ok = true}};

	if (!h->open || !h->auto_probed || h->n_probes == 0)
		return false;
	msg.u.probed.number = h->probes[--h->n_probes];
	send_only(h, &msg);
	return true;
}

static struct fk_host *host_by_id(const struct fk *f, const struct cc_id *id)
{
	uint32_t i;

	/* Of the connections of one agent, the last one counts. */
	for (i = f->n_hosts; i > 0 && !cc_id_eq(&f->hosts[i - 1]->id, id); i--)
		;
	ck_assert_uint_gt(i, 0);
	return f->hosts[i - 1];
}

/* Returns what all hosts that the order names send to this one. */
static uint64_t rate_of_all(const struct fk_host *to)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < to->order.n_from; i++)
		sum += to->fk->rate(host_by_id(to->fk, &to->order.from[i]), to);
	return sum;
}

/* Returns false if there was no order with a target. */
static bool answer_order(struct fk_host *h)
{
	struct wm_msg msg = {.type = WM_MEASURED};
	struct wm_measure *o = &h->order;
	struct wm_measured_result v[WM_MEASURE_AGENTS_MAX];
	uint32_t i;

	if (!h->open || !h->fk->rate || o->n_to == 0)
		return false;
	memset(v, 0, sizeof v);
	for (i = 0; i < o->n_to; i++) {
		v[i].agent = o->to[i].agent;
		v[i].rate = h->fk->rate(h, host_by_id(h->fk, &o->to[i].agent));
		v[i].busy = v[i].rate == FK_BUSY;
		v[i].ok = v[i].rate > 0 && !v[i].busy;
		if (v[i].ok)
			v[i].rate_of_all = rate_of_all(host_by_id(h->fk, &o->to[i].agent));
		v[i].confidence = v[i].ok ? h->fk->confidence : 0;
		v[i].trip_us = v[i].ok ? 100 + h->conn : 0;
		if (!v[i].ok)
			v[i].rate = 0;
		if (!v[i].ok)
			strcpy(v[i].text, v[i].busy ? "an operation" : "Connection refused");
	}
	msg.u.measured = (struct wm_measured){.number = o->number, .n = o->n_to, .results = v};
	o->n_to = 0; /* `from` remains, for the answers of others */
	send_only(h, &msg);
	return true;
}

void fk_measured(struct fk_host *h)
{
	ck_assert(answer_order(h));
	fk_settle(h->fk);
}

const struct ccm_problem *fk_problem(struct fk *f, uint32_t group)
{
	size_t i;

	for (i = f->n_problems; i > 0 && f->problems[i - 1].group != group; i--)
		;
	ck_assert_uint_gt(i, 0);
	return &f->problems[i - 1];
}

void fk_solved(struct fk *f, const struct ccm_solution *x)
{
	struct ccm_event ev = {.type = CCM_EV_SOLVED, .solution = x};

	fk_step(f, &ev);
	fk_settle(f);
}

void fk_settle(struct fk *f)
{
	struct fk_host *h;
	uint32_t i;
	bool again;

	do {
		again = f->owed = false;
		for (i = 0; i < f->n_hosts; i++) {
			struct wm_msg msg = {.type = WM_ROUND_REPORT};

			h = f->hosts[i];
			again |= answer_probe(h);
			again |= h->auto_measured && answer_order(h);
			if (!h->open || !h->auto_report || h->round.round == 0)
				continue;
			msg.u.round_report.round = h->round.round;
			round_clear(h);
			send_only(h, &msg);
			again = true;
		}
	} while (again);
}

void fk_tick_silent(struct fk *f, uint32_t ms, const struct fk_host *silent)
{
	struct ccm_event ev = {.type = CCM_EV_TICK};
	const struct wm_msg beat = {.type = WM_HEARTBEAT};
	uint32_t t, i;

	for (t = 0; t < ms; t += 100) {
		f->now += 100000000;
		for (i = 0; i < f->n_hosts; i++)
			if (f->hosts[i]->open && !f->hosts[i]->mute &&
				(!silent || f->hosts[i]->conn != silent->conn))
				send_only(f->hosts[i], &beat);
		fk_step(f, &ev);
		fk_settle(f);
	}
}

void fk_tick(struct fk *f, uint32_t ms)
{
	fk_tick_silent(f, ms, NULL);
}

struct fk_peer fk_join(struct fk_host *h, uint32_t group)
{
	struct fk_peer p = {h, fk_id(h->fk), {{0}}, group};

	p.token = p.id;
	p.token.b[14] = 9;
	return fk_join_again(&p, h, WM_JOIN_NEW);
}

void fk_new_master(struct fk *f, const struct ccm_config *cfg)
{
	struct ccm_config other = {.run = {{9, 9}},
		.run_key = {{9, 8}},
		.segment_max = 4096,
		.algorithm = CCM_ALGORITHM_AUTO};
	uint32_t i;

	if (cfg)
		other = *cfg;
	ccm_free(f->m);
	f->m = ccm_new(&other);
	for (i = 0; i < f->n_hosts; i++) {
		f->hosts[i]->open = false;
		round_clear(f->hosts[i]);
		order_clear(f->hosts[i]);
	}
	fk_forget(f);
}

struct fk_host *fk_reconnect(struct fk_host *h)
{
	return fk_reconnect_as(h, 1, false);
}

struct fk_host *fk_reconnect_as(struct fk_host *h, uint64_t term, bool stateless)
{
	char addr[CC_ADDR_STR_SIZE] = "10.9.0.1";
	struct fk_host *x = fk_connect(h->fk, h->name, addr);
	struct wm_msg msg;

	if (!stateless) {
		x->id = h->id;
		x->epoch = h->epoch;
	}
	memcpy(x->ballots, h->ballots, sizeof x->ballots);
	x->auto_report = h->auto_report;
	x->auto_probed = h->auto_probed;
	x->auto_measured = h->auto_measured;
	memcpy(x->generations, h->generations, sizeof x->generations);
	x->n_generations = h->n_generations;
	msg = fk_hello(x);
	msg.u.hello.run = h->fk->run;
	if (!stateless) {
		msg.u.hello.run_key = h->fk->run_key;
		msg.u.hello.term = term;
	}
	fk_send(x, &msg);
	return x;
}

struct fk_peer fk_join_again(const struct fk_peer *old, struct fk_host *h, enum wm_join_phase phase)
{
	struct fk_peer p = *old;
	struct wm_msg msg = {.type = WM_JOIN};

	p.host = h;
	msg.u.join = h->peers;
	msg.u.join.peer = p.id;
	msg.u.join.token = p.token;
	msg.u.join.phase = phase;
	msg.u.join.group = p.group;
	msg.u.join.pool_size = 1;
	msg.u.join.pid = 100 + h->fk->last_id;
	(void)snprintf(msg.u.join.name, sizeof msg.u.join.name, "%s", "train");
	fk_send(h, &msg);
	return p;
}

void fk_resumed(struct fk_host *h)
{
	struct wm_msg msg = {.type = WM_RESUME};

	fk_send(h, &msg);
}

struct fk_peer fk_admit(struct fk_host *h, uint32_t group, const struct fk_peer *others, size_t n)
{
	struct fk_peer p = fk_join(h, group);
	struct ccm_peer_info info;
	size_t i;

	for (i = 0; i < n; i++)
		fk_topo(&others[i]);
	info = fk_info(&p);
	ck_assert_int_eq(info.phase, CCM_PEER_ACCEPTED);
	return p;
}

void fk_run_of(struct fk *f, struct fk_host **h, struct fk_peer *p, size_t n)
{
	char name[2] = "a", addr[] = "10.0.0.1";
	size_t i;

	for (i = 0; i < n; i++, name[0]++, addr[7]++) {
		h[i] = fk_host(f, name, addr);
		p[i] = fk_admit(h[i], 0, p, i);
	}
}

void fk_leave(const struct fk_peer *p, enum wm_leave_kind kind)
{
	fk_leave_because(p, kind, "");
}

void fk_leave_because(const struct fk_peer *p, enum wm_leave_kind kind, const char *why)
{
	struct wm_msg msg = {.type = WM_LEAVE};

	msg.u.leave.peer = p->id;
	msg.u.leave.kind = kind;
	snprintf(msg.u.leave.text, sizeof msg.u.leave.text, "%s", why);
	fk_send(p->host, &msg);
}

void fk_ballot(const struct fk_peer *p, enum wire_ballot kind)
{
	struct wm_msg msg = {
		.type = WM_BALLOT_VOTE, .u.ballot_vote = {p->id, kind, p->host->ballots[kind]}};

	fk_send(p->host, &msg);
}

void fk_topo(const struct fk_peer *p)
{
	fk_ballot(p, WIRE_TOPOLOGY);
}

void fk_pending(const struct fk_peer *p)
{
	fk_ballot(p, WIRE_PENDING);
}

void fk_vote_params(const struct fk_peer *p, uint64_t tag, struct wm_op_params params)
{
	struct cc_id id = p->id;
	struct wm_msg msg = {.type = WM_OP_VOTE};

	msg.u.op_vote = (struct wm_op_vote){.group = p->group,
		.tag = tag,
		.params = params,
		.n_peers = 1,
		.peers = &id,
		.generation = *generation_of(p->host, p->group),
		.waits_for = p->host->fk->waits_for};
	fk_send(p->host, &msg);
}

void fk_refuse(const struct fk_peer *p, uint64_t tag, uint32_t code, const char *text)
{
	struct cc_id id = p->id;
	struct wm_msg msg = {.type = WM_OP_VOTE};

	msg.u.op_vote = (struct wm_op_vote){.group = p->group,
		.tag = tag,
		.n_peers = 1,
		.peers = &id,
		.generation = *generation_of(p->host, p->group),
		.refusal.code = code};
	(void)snprintf(msg.u.op_vote.refusal.text, sizeof msg.u.op_vote.refusal.text, "%s", text);
	fk_send(p->host, &msg);
}

void fk_vote(const struct fk_peer *p, uint64_t tag)
{
	fk_vote_params(p, tag, fk_params);
}

void fk_vote_seq(const struct fk_peer *p, uint64_t tag, uint64_t seq)
{
	struct cc_id id = p->id;
	struct wm_msg msg = {.type = WM_OP_VOTE};

	msg.u.op_vote = (struct wm_op_vote){.tag = tag,
		.params = fk_params,
		.n_peers = 1,
		.peers = &id,
		.seq = seq,
		.epoch = seq ? FK_EPOCH : 0};
	fk_send(p->host, &msg);
}

void fk_vote_many(const struct fk_peer *p, size_t n, uint64_t tag)
{
	struct wm_msg msg = {.type = WM_OP_VOTE};
	struct cc_id *ids = malloc(n * sizeof *ids);
	size_t i;

	for (i = 0; i < n; i++)
		ids[i] = p[i].id;
	msg.u.op_vote = (struct wm_op_vote){.group = p->group,
		.tag = tag,
		.params = fk_params,
		.n_peers = (uint32_t)n,
		.peers = ids,
		.generation = *generation_of(p->host, p->group),
		.waits_for = p->host->fk->waits_for};
	fk_send(p->host, &msg);
	free(ids);
}

void fk_query(const struct fk_peer *p, uint32_t n, const uint64_t *seqs, uint32_t succeeded)
{
	struct wm_msg msg = {.type = WM_OP_QUERY};

	msg.u.op_query.peer = p->id;
	msg.u.op_query.n = n;
	msg.u.op_query.n_succeeded = succeeded;
	memcpy(msg.u.op_query.seqs, seqs, n * sizeof *seqs);
	fk_send(p->host, &msg);
}

void fk_report(struct fk_host *h, uint64_t seq, bool ok)
{
	struct wm_msg msg = {.type = WM_OP_REPORT};

	msg.u.op_report.seq = seq;
	msg.u.op_report.ok = ok;
	if (!ok)
		(void)snprintf(
			msg.u.op_report.text, sizeof msg.u.op_report.text, "%s", "stream broke");
	fk_send(h, &msg);
}

void fk_report_code(struct fk_host *h, uint64_t seq, uint32_t code, const char *text)
{
	struct wm_msg msg = {.type = WM_OP_REPORT};

	msg.u.op_report.seq = seq;
	msg.u.op_report.code = code;
	(void)snprintf(msg.u.op_report.text, sizeof msg.u.op_report.text, "%s", text);
	fk_send(h, &msg);
}

void fk_round_report(struct fk_host *h, const struct fk_host *to, const char *text)
{
	fk_round_short(h, to, false, text);
}

void fk_round_short(struct fk_host *h, const struct fk_host *to, bool limit, const char *text)
{
	struct wm_msg msg = {.type = WM_ROUND_REPORT};
	struct wm_failure failure = {.limit = limit};

	ck_assert_uint_ne(h->round.round, 0);
	msg.u.round_report.round = h->round.round;
	if (to) {
		failure.agent = to->id;
		(void)snprintf(failure.text, sizeof failure.text, "%s", text);
		msg.u.round_report.n_failures = 1;
		msg.u.round_report.failures = &failure;
	}
	round_clear(h);
	fk_send(h, &msg);
}

const struct wm_msg *fk_take(struct fk_host *h, enum wm_type type)
{
	size_t i;

	for (i = 0; i < h->n && h->inbox[i].type != type; i++)
		;
	ck_assert_msg(i < h->n, "%s has no message of type %d", h->name, (int)type);
	wire_master_clear(&h->last);
	h->last = h->inbox[i];
	memmove(&h->inbox[i], &h->inbox[i + 1], (h->n - i - 1) * sizeof *h->inbox);
	h->n--;
	return &h->last;
}

size_t fk_count(const struct fk_host *h, enum wm_type type)
{
	size_t i, n = 0;

	for (i = 0; i < h->n; i++)
		n += h->inbox[i].type == type;
	return n;
}

void fk_forget(struct fk *f)
{
	uint32_t i;

	for (i = 0; i < f->n_hosts; i++)
		inbox_clear(f->hosts[i]);
}

struct finder {
	struct cc_id id;
	struct ccm_peer_info info;
	bool found;
};

static void find_peer(void *arg, const struct ccm_peer_info *p)
{
	struct finder *x = arg;

	if (!cc_id_eq(&x->id, &p->peer))
		return;
	x->found = true;
	x->info = *p;
}

static struct finder find(const struct fk_peer *p)
{
	struct finder x = {.id = p->id};

	ccm_each_peer(p->host->fk->m, p->host->fk->now, find_peer, &x);
	return x;
}

struct ccm_peer_info fk_info(const struct fk_peer *p)
{
	struct finder x = find(p);

	ck_assert(x.found);
	return x.info;
}

bool fk_present(const struct fk_peer *p)
{
	return find(p).found;
}
