/* SPDX-License-Identifier: MIT
 *
 * Random events, some of them sensible, others hostile or senseless. A model checks that the agent
 * keeps its promises.
 */
#include "tests/agent/random.h"

#define SLOTS 6u
#define STEPS 5000
#define SEEDS 36u /* seeds per test */

static struct comm *some_comm(struct rnd_run *w)
{
	uint32_t i, at = rnd(w, COMMS);

	for (i = 0; i < COMMS; i++)
		if (w->comms[(at + i) % COMMS].alive)
			return &w->comms[(at + i) % COMMS];
	return NULL;
}

static void end_session(struct rnd_run *w, uint32_t s)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_CLOSED, .session = s};

	w->session[s] = false;
	w->waiting[s] = 0;
	rw_step(w, &ev);
}

static void do_session(struct rnd_run *w)
{
	uint32_t s = 1 + rnd(w, SESSIONS), i;
	struct agt_event ev = {.type = AGT_EV_SESSION_OPEN, .session = s, .uid = s / 2, .pid = s};

	ev.name = "random";
	if (w->session[s]) {
		if (rnd(w, 20))
			return;
		end_session(w, s);
	} else {
		w->session[s] = true;
		rw_step(w, &ev);
	}
	for (i = 0; i < COMMS; i++)
		ck_assert(!w->comms[i].alive || w->session[w->comms[i].session]);
}

static void do_request(struct rnd_run *w)
{
	static const enum wl_type types[] = {WL_COMM_CREATE, WL_COMM_CONNECT, WL_COMM_CONNECT,
		WL_COMM_CONNECT, WL_COMM_CONNECT, WL_VOTE, WL_VOTE, WL_VOTE, WL_COMM_DESTROY,
		WL_REGION_FREE, WL_COMM_ATTACH};
	static const enum wire_ballot kinds[] = {
		WIRE_TOPOLOGY, WIRE_TOPOLOGY, WIRE_PENDING, WIRE_OPTIMIZE};
	struct comm *c = some_comm(w);
	struct wl_request q = {.type = types[rnd(w, 11)], .req_id = 1};
	struct agt_event ev = {.type = AGT_EV_REQUEST, .request = &q};

	if (q.type == WL_COMM_DESTROY && rnd(w, 8))
		return;
	q.ballot = kinds[rnd(w, 4)];
	q.master = fx_addr(rnd(w, 6) == 0);
	q.master.port = rnd(w, 16) ? 48148 : 0;
	q.group = rnd(w, 2);
	q.until_left = q.group == 0;
	q.pool_size = rnd(w, 40) ? rnd(w, 4) : 100;
	q.comm = c && rnd(w, 10) ? c->id : rnd(w, 70);
	ev.session = c && rnd(w, 10) ? c->session : 1 + rnd(w, SESSIONS);
	q.peer = fx_id(1000 + w->next_id++);
	q.token = fx_id(7);
	q.run = rnd(w, 2) && w->last_run ? w->runs[w->last_run].id : fx_id(499);
	q.n_seqs = rnd(w, 3);
	q.seqs[0] = 3;
	q.seqs[1] = 4;
	if (w->session[ev.session])
		w->waiting[ev.session]++;
	rw_step(w, &ev);
}

static void do_submit(struct rnd_run *w)
{
	struct comm *c = some_comm(w);
	struct shm_submission s = {
		.slot = rnd(w, SLOTS), .tag = rnd(w, 3), .count = 1 + rnd(w, 20) / 19};
	bool is_sync = !rnd(w, 3);
	struct agt_event ev = {.type = AGT_EV_SUBMIT, .slot = s.slot, .sub = &s};

	if (!c || c->busy[s.slot])
		return;
	if (is_sync) {
		s = (struct shm_submission){.slot = s.slot, .is_sync = true};
		s.sync.revision = rnd(w, 3);
		s.sync.hash_type = WM_HASH_SIMPLE;
	}
	s.generation = rnd(w, 20) ? UINT32_MAX : rnd(w, 4);
	ev.comm = c->id;
	if (!is_sync) {
		s.dtype = rnd(w, 40) ? 10 : rnd(w, 12);
		s.op = rnd(w, 40) ? 0 : rnd(w, 5);
	}
	if (!rnd(w, 20)) {
		ev.code = WIRE_INVALID_ARGUMENT;
		ev.sub = NULL;
	}
	c->busy[s.slot] = true;
	rw_step(w, &ev);
}

/* Lets the engine release a member. In one of ten cases the agent has not asked for this
 * release. */
static bool do_drop(struct rnd_run *w, struct xfer *t)
{
	struct agt_event ev = {.type = AGT_EV_SYNC_DROPPED, .run = t->run, .seq = t->seq};
	uint32_t i = rnd(w, t->n);

	if (!t->drop[i] && rnd(w, 10))
		return false;
	t->dropped[i] = t->drop[i];
	ev.comm = t->comm[i];
	rw_step(w, &ev);
	return true;
}

static void do_job(struct rnd_run *w, struct xfer *t)
{
	static const uint32_t codes[] = {0, 0, 0, WIRE_RANK_CONNECTION_LOST, WIRE_OUT_OF_MEMORY};
	struct agt_sync_result r = {.comm = t->comm[rnd(w, t->n)], .failed = !rnd(w, 2)};
	struct agt_event ev = {.type = AGT_EV_SYNC_DONE,
		.run = t->run,
		.seq = t->seq,
		.n_results = rnd(w, 4) > 0,
		.results = &r};

	if (do_drop(w, t))
		return;
	if (!rnd(w, 10) && w->comms[r.comm % COMMS].id == r.comm && r.comm) {
		end_session(w, w->comms[r.comm % COMMS].session);
		return;
	}
	if (t->cancel) {
		ev.type = AGT_EV_SYNC_CANCELLED;
		t->cancelled = true;
	} else {
		ev.code = codes[rnd(w, 5)];
		w->failures += ev.n_results && r.failed;
	}
	rw_step(w, &ev);
}

static void do_xfer(struct rnd_run *w)
{
	struct xfer *t = &w->xfers[rnd(w, 4)];
	struct agt_event ev = {.run = t->run, .seq = t->seq};

	if (!t->live)
		return;
	if (t->is_sync) {
		do_job(w, t);
		return;
	}
	if (t->cancel && rnd(w, 3)) {
		ev.type = AGT_EV_XFER_CANCELLED;
		t->cancelled = true;
	} else if (!t->done) {
		ev.type = AGT_EV_XFER_DONE;
		ev.code = rnd(w, 6) ? 0 : WIRE_INTERNAL_ERROR;
		t->done = true;
		t->ok = ev.code == 0;
	} else {
		return;
	}
	rw_step(w, &ev);
}

static void do_probed(struct rnd_run *w)
{
	uint32_t run;
	struct agt_event ev = {.type = AGT_EV_PROBED, .seq = 1 + rnd(w, 9), .text = "random"};

	if (!rw_run(w, &run))
		return;
	ev.run = run;
	ev.code = rnd(w, 2) ? WIRE_SUCCESS : WIRE_RANK_CONNECTION_FAILED;
	rw_step(w, &ev);
}

/* A measurement ends, or an old one that was stopped. */
static void do_measured(struct rnd_run *w)
{
	struct wm_measured_result v[LINKS] = {{.rate = 0}};
	uint32_t run;
	struct run *r = rw_run(w, &run);
	struct agt_event ev = {.type = AGT_EV_MEASURED, .run = run, .measured = v};

	if (!r)
		return;
	ev.seq = rnd(w, 3) ? r->measure : rnd(w, 9);
	ev.n_measured = rnd(w, 9) ? r->n_to : rnd(w, LINKS);
	for (uint32_t i = 0; i < ev.n_measured; i++) {
		v[i].agent = fx_id(100 + i);
		v[i].ok = rnd(w, 2);
		v[i].rate = v[i].ok ? 1 + rnd(w, 1000) : 0;
	}
	rw_step(w, &ev);
}

static void do_link(struct rnd_run *w)
{
	uint32_t run, peer = rnd(w, LINKS);
	struct run *r = rw_run(w, &run);
	struct agt_event ev = {.run = run, .peer = fx_id(100 + peer), .text = "random"};
	uint8_t *l;

	if (!r)
		return;
	l = &r->links[peer];
	if (*l == 1) {
		ev.type = rnd(w, 6) ? AGT_EV_LINK_UP : AGT_EV_LINK_FAILED;
		*l = ev.type == AGT_EV_LINK_UP ? 2 : 0;
	} else if (*l == 2 && !rnd(w, 8)) {
		ev.type = AGT_EV_LINK_SILENT;
		ev.silent = !rnd(w, 4);
	} else {
		ev.type = AGT_EV_LINK_DOWN;
		ev.silent = rnd(w, 2);
		ev.inbound = *l == 0 || rnd(w, 2);
		if (rnd(w, 20))
			return;
		if (!ev.inbound)
			*l = 0;
	}
	rw_step(w, &ev);
}

static void do_set_master(struct rnd_run *w)
{
	struct agt_event ev = {.type = AGT_EV_SET_MASTER, .from = fx_addr(rnd(w, 3))};

	ev.to = rnd(w, 3) ? fx_addr(rnd(w, 4)) : ev.to;
	ev.now = !rnd(w, 3);
	ev.run = rnd(w, 3) ? 0 : w->last_run;
	rw_step(w, &ev);
}

static void do_stop(struct rnd_run *w)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_STOPPED, .stopped = rnd(w, 2)};

	ev.session = 1 + rnd(w, SESSIONS);
	rw_step(w, &ev);
}

/* Ends all processes and answers for the engine. Checks that nothing is left. */
static void drain(struct rnd_run *w)
{
	struct agt_status st;
	uint32_t i;

	for (i = 1; i <= SESSIONS; i++)
		end_session(w, i);
	for (i = 0; i < XFERS; i++) {
		struct xfer *t = &w->xfers[i];
		struct agt_event ev = {.type = AGT_EV_XFER_CANCELLED, .run = t->run, .seq = t->seq};

		if (!t->live)
			continue;
		if (t->is_sync)
			ev.type = AGT_EV_SYNC_CANCELLED;
		ck_assert(t->cancel);
		t->cancelled = true;
		rw_step(w, &ev);
	}
	for (i = 0; i < XFERS; i++)
		ck_assert(!w->xfers[i].live);
	/* Some runs stay open for a while to send the LEAVEs of their peers. */
	for (i = 0; i < 200; i++) {
		struct agt_event tick = {.type = AGT_EV_TICK};

		w->f->now += 400 * (uint64_t)MS;
		rw_step(w, &tick);
	}
	for (i = 0; i < RUNS; i++)
		ck_assert_int_eq(w->runs[i].open, w->runs[i].closed);
	agt_get_status(w->f->a, &st);
	ck_assert_uint_eq(st.sessions + st.comms + st.runs + st.ops, 0);
}

static void run_seed(uint64_t seed, struct rnd_run *w)
{
	struct agt_event tick = {.type = AGT_EV_TICK};
	int i;

	memset(w, 0, sizeof *w);
	w->rng = seed * 0x9e3779b97f4a7c15u + 1;
	w->f = fx_new();
	for (i = 0; i < STEPS; i++) {
		uint32_t what = rnd(w, 100);

		if (what < 1)
			rnd(w, 4) ? do_stop(w) : do_set_master(w);
		else if (what < 5)
			do_session(w);
		else if (what < 20)
			do_request(w);
		else if (what < 45)
			do_submit(w);
		else if (what < 55)
			do_xfer(w);
		else if (what < 67)
			do_link(w);
		else if (what < 68)
			do_probed(w);
		else if (what < 69)
			do_measured(w);
		else if (what < 98)
			rw_master(w);
		else
			rw_step(w, &tick);
	}
	drain(w);
	fx_free(w->f);
}

START_TEST(agent_keeps_its_promises_under_random_events)
{
	static struct rnd_run w;
	uint32_t jobs = 0, won = 0, drops = 0, failures = 0, measured = 0, unmeasured = 0;
	uint32_t starts = 0, successes = 0, resumptions = 0, attached = 0;
	uint64_t seed;

	for (seed = 0; seed < SEEDS; seed++) {
		run_seed((uint64_t)_i * SEEDS + seed, &w);
		starts += w.starts;
		successes += w.successes;
		resumptions += w.resumptions;
		attached += w.attached;
		jobs += w.jobs;
		won += w.won;
		drops += w.drops;
		failures += w.failures;
		measured += w.measured;
		unmeasured += w.unmeasured;
	}
	/* check that the generator reaches the interesting states */
	ck_assert_uint_gt(starts, 40);
	ck_assert_uint_gt(successes, 3);
	ck_assert_uint_gt(resumptions, 5);
	ck_assert_uint_gt(attached, 5);
	ck_assert_uint_gt(jobs, 20);
	ck_assert_uint_gt(won, 0);
	ck_assert_uint_gt(drops, 0);
	ck_assert_uint_gt(failures, 2);
	ck_assert_uint_gt(measured, 3);
	ck_assert_uint_gt(unmeasured, 3);
}
END_TEST

Suite *random_suite(void)
{
	Suite *s = suite_create("random");
	TCase *t = tcase_create("random");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, agent_keeps_its_promises_under_random_events, 0, 8);
	suite_add_tcase(s, t);
	return s;
}
