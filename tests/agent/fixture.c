/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "tests/agent/fixture.h"

struct cc_id fx_id(unsigned n)
{
	struct cc_id id = {.b = {(uint8_t)n, (uint8_t)(n >> 8), 0xee}};

	return id;
}

struct cc_id fx_token(unsigned peer)
{
	return fx_id(20000 + peer);
}

struct cc_addr fx_addr(unsigned n)
{
	return (struct cc_addr){.family = CC_INET4, .ip = {10, 0, 0, (uint8_t)n}, .port = 48148};
}

struct fx *fx_new(void)
{
	return fx_new_addr(0);
}

struct fx *fx_new_addr(uint32_t master_addr_timeout_ms)
{
	struct agt_config cfg = {.agent = fx_id(99),
		.name = "testhost",
		.max_comms_per_uid = 16,
		.master_addr_timeout_ms = master_addr_timeout_ms};
	struct fx *f = calloc(1, sizeof *f);

	ck_assert_ptr_nonnull(f);
	f->a = agt_new(&cfg);
	f->now = 5000 * (uint64_t)MS;
	f->heartbeat_ms = 1000;
	f->timeout_ms = 3000;
	return f;
}

void fx_free(struct fx *f)
{
	agt_actions_free(&f->acts);
	agt_free(f->a);
	free(f);
}

void fx_step(struct fx *f, const struct agt_event *ev)
{
	const char *wrong;

	agt_actions_clear(&f->acts);
	agt_step(f->a, ev, f->now, &f->acts);
	wrong = agt_check(f->a);
	ck_assert_msg(!wrong, "%s", wrong);
}

uint32_t fx_count(const struct fx *f, enum agt_action_type type)
{
	uint32_t n = 0;
	size_t i;

	for (i = 0; i < f->acts.n; i++)
		n += f->acts.v[i].type == type;
	return n;
}

size_t fx_index(const struct fx *f, enum agt_action_type type, uint32_t n)
{
	size_t i;

	for (i = 0; i < f->acts.n; i++)
		if (f->acts.v[i].type == type && n-- == 0)
			return i;
	ck_abort_msg("the step has no such action");
	return 0;
}

const struct agt_action *fx_get(const struct fx *f, enum agt_action_type type, uint32_t n)
{
	return &f->acts.v[fx_index(f, type, n)];
}

uint32_t fx_sent(const struct fx *f, enum wm_type type)
{
	uint32_t n = 0;
	size_t i;

	for (i = 0; i < f->acts.n; i++)
		n += f->acts.v[i].type == AGT_ACT_MASTER_SEND && f->acts.v[i].u.msg.type == type;
	return n;
}

const struct wm_msg *fx_msg(const struct fx *f, enum wm_type type, uint32_t n)
{
	size_t i;

	for (i = 0; i < f->acts.n; i++)
		if (f->acts.v[i].type == AGT_ACT_MASTER_SEND && f->acts.v[i].u.msg.type == type &&
			n-- == 0)
			return &f->acts.v[i].u.msg;
	ck_abort_msg("no such message was sent");
	return NULL;
}

static bool is_vote(const struct agt_action *x, enum wire_ballot kind)
{
	return x->type == AGT_ACT_MASTER_SEND && x->u.msg.type == WM_BALLOT_VOTE &&
	       x->u.msg.u.ballot_vote.kind == kind;
}

uint32_t fx_votes(const struct fx *f, enum wire_ballot kind)
{
	uint32_t n = 0;
	size_t i;

	for (i = 0; i < f->acts.n; i++)
		n += is_vote(&f->acts.v[i], kind);
	return n;
}

const struct wm_ballot_vote *fx_vote(const struct fx *f, enum wire_ballot kind, uint32_t n)
{
	size_t i;

	for (i = 0; i < f->acts.n; i++)
		if (is_vote(&f->acts.v[i], kind) && n-- == 0)
			return &f->acts.v[i].u.msg.u.ballot_vote;
	ck_abort_msg("no such vote was sent");
	return NULL;
}

void fx_expect_reply(const struct fx *f, uint32_t code, const char *text)
{
	const struct agt_action *x;

	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 1);
	x = fx_get(f, AGT_ACT_REPLY, 0);
	ck_assert_uint_eq(x->u.reply.req_id, f->req_id);
	ck_assert_msg(x->u.reply.code == code, "code %u: %s", x->u.reply.code, x->u.reply.text);
	ck_assert_msg(strstr(x->u.reply.text, text), "\"%s\" lacks \"%s\"", x->u.reply.text, text);
	ck_assert_int_eq(code == 0, x->u.reply.text[0] == '\0');
}

void fx_expect_done(const struct fx *f, uint32_t n, uint32_t comm, uint32_t code, const char *text)
{
	const struct agt_action *x = fx_get(f, AGT_ACT_COMPLETE, n);

	ck_assert_uint_eq(x->comm, comm);
	ck_assert_msg(x->u.done.code == code, "code %u: %s", x->u.done.code, x->u.done.text);
	ck_assert_msg(strstr(x->u.done.text, text), "\"%s\" lacks \"%s\"", x->u.done.text, text);
	ck_assert_int_eq(code == 0, x->u.done.text[0] == '\0');
}

void fx_session(struct fx *f, uint32_t session, uint32_t uid)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_OPEN, .session = session, .uid = uid};

	ev.pid = 1000 + session;
	ev.name = "trainer";
	fx_step(f, &ev);
}

void fx_session_closed(struct fx *f, uint32_t session)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_CLOSED, .session = session};

	fx_step(f, &ev);
}

static void send_request(struct fx *f, uint32_t session, struct wl_request *q)
{
	struct agt_event ev = {.type = AGT_EV_REQUEST, .session = session, .request = q};

	q->req_id = ++f->req_id;
	fx_step(f, &ev);
}

void fx_request(struct fx *f, uint32_t session, uint32_t comm, unsigned type)
{
	bool votes = type >= FX_VOTE(0);
	struct wl_request q = {.type = votes ? WL_VOTE : (enum wl_type)type,
		.ballot = votes ? (enum wire_ballot)(type - FX_VOTE(0)) : WIRE_TOPOLOGY,
		.comm = comm,
		.peer = fx_id(50),
		.token = fx_id(51),
		.until_left = true};

	send_request(f, session, &q);
}

void fx_destroy(struct fx *f, uint32_t session, uint32_t comm, const char *why)
{
	struct wl_request q = {.type = WL_COMM_DESTROY, .comm = comm};

	snprintf(q.text, sizeof q.text, "%s", why);
	send_request(f, session, &q);
}

uint32_t fx_create(struct fx *f, uint32_t session, uint32_t group, unsigned master)
{
	struct wl_request q = {.type = WL_COMM_CREATE, .group = group, .pool_size = 2};

	q.master = fx_addr(master);
	send_request(f, session, &q);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_OPEN), 1);
	return fx_get(f, AGT_ACT_COMM_OPEN, 0)->comm;
}

void fx_connect(struct fx *f, uint32_t session, uint32_t comm, unsigned peer)
{
	struct wl_request q = {.type = WL_COMM_CONNECT,
		.comm = comm,
		.peer = fx_id(peer),
		.token = fx_token(peer)};

	send_request(f, session, &q);
}

void fx_event(struct fx *f, enum agt_event_type type, uint32_t run, const char *text)
{
	struct agt_event ev = {.type = type, .run = run, .text = text};

	fx_step(f, &ev);
}

void fx_from_master(struct fx *f, uint32_t run, const struct wm_msg *m)
{
	struct agt_event ev = {.type = AGT_EV_MASTER_MSG, .run = run, .msg = m};

	fx_step(f, &ev);
}

void fx_master_up(struct fx *f, uint32_t run)
{
	struct wm_msg m = {.type = WM_HELLO_ACK};

	fx_event(f, AGT_EV_MASTER_UP, run, NULL);
	ck_assert_uint_eq(fx_sent(f, WM_HELLO), 1);
	ck_assert_uint_eq(fx_msg(f, WM_HELLO, 0)->u.hello.features, WM_FEATURES);
	m.u.hello_ack.version = WM_VERSION_MAX;
	m.u.hello_ack.features = WM_FEATURES;
	m.u.hello_ack.run = fx_id(200 + run);
	m.u.hello_ack.heartbeat_ms = f->heartbeat_ms;
	m.u.hello_ack.timeout_ms = f->timeout_ms;
	m.u.hello_ack.segment_max = 65536;
	m.u.hello_ack.term = 1;
	fx_from_master(f, run, &m);
}

void fx_left(struct fx *f, uint32_t run, unsigned peer)
{
	struct wm_msg m = {.type = WM_LEFT, .u.left.peer = fx_id(peer)};

	fx_from_master(f, run, &m);
}

static struct wm_endpoint endpoint(unsigned agent, uint64_t round)
{
	return (struct wm_endpoint){
		.agent = fx_id(agent), .key_no = round, .n_addrs = 1, .addrs = {fx_addr(agent)}};
}

/* Writes the hosts after the next one, up to the previous one. Returns their number. */
static uint32_t fill_others(const struct fx_ring *v, uint64_t round, struct wm_endpoint ret[8])
{
	uint32_t n = v->hosts - 2, i;

	if (!v->mesh)
		return 0;
	for (i = 0; i < n; i++)
		ret[i] = endpoint(i + 1 < n ? 102 + i : 101, round);
	return n;
}

static void fill_plan(const struct fx_ring *v, uint16_t order[32], struct wm_ring *ret)
{
	static const uint16_t shares[CC_RINGS_MAX] = {4, 3, 2, 1};

	if (!v->plan)
		return;
	ret->plan =
		(struct wm_plan){.n = v->n_plan, .n_order = v->n_plan * v->hosts, .order = order};
	ck_assert_uint_le(ret->plan.n_order, 32);
	memcpy(ret->plan.shares, shares, v->n_plan * sizeof shares[0]);
	memcpy(order, v->plan, ret->plan.n_order * sizeof *order);
	ret->await_plan = v->await_plan;
}

void fx_round(struct fx *f, uint32_t run, uint64_t round, bool accept, const struct fx_ring *v,
	unsigned n)
{
	struct wm_ring rings[8] = {0};
	struct wm_endpoint others[8][8];
	struct cc_id members[8][8];
	uint16_t orders[8][32];
	struct wm_msg m = {.type = WM_ROUND, .u.round.run_key = fx_id(300)};
	unsigned i, j;

	for (i = 0; i < n; i++) {
		rings[i].group = v[i].group;
		rings[i].hosts = v[i].hosts;
		rings[i].pos = v[i].pos;
		rings[i].pool_size = 2 + i;
		rings[i].n_others = fill_others(&v[i], round, others[i]);
		rings[i].others = others[i];
		fill_plan(&v[i], orders[i], &rings[i]);
		if (v[i].hosts > 1) {
			rings[i].next = endpoint(100, round);
			rings[i].prev = v[i].hosts == 2 ? fx_id(100) : fx_id(101);
			rings[i].reopen = rings[i].prev_reopens = v[i].reopen;
		}
		for (j = 0; j < v[i].n; j++)
			members[i][j] = fx_id(v[i].members[j]);
		rings[i].n_members = v[i].n;
		rings[i].members = members[i];
	}
	m.u.round.round = round;
	m.u.round.accept = accept;
	m.u.round.n_rings = n;
	m.u.round.rings = rings;
	fx_from_master(f, run, &m);
}

static void fill_view(struct fx *f, struct wm_view *w, struct wm_group_view *own,
	const struct fx_ring *v, unsigned n)
{
	unsigned i;

	w->view_id = ++f->view_id;
	w->groups = n;
	w->n = n;
	w->own = own;
	for (i = 0; i < n; i++) {
		own[i] = (struct wm_group_view){.group = v[i].group,
			.world_size = v[i].world_size,
			.generation = v[i].generation};
		(void)snprintf(own[i].loss, sizeof own[i].loss, "%s", v[i].loss ? v[i].loss : "");
		w->global += v[i].world_size;
		if (v[i].world_size > w->largest)
			w->largest = v[i].world_size;
	}
}

void fx_commit(struct fx *f, uint32_t run, uint64_t round, bool accept, const struct fx_ring *v,
	unsigned n)
{
	struct wm_msg m = {.type = WM_COMMIT};
	struct wm_group_view own[8] = {0};

	m.u.commit.round = round;
	m.u.commit.epoch = round;
	m.u.commit.accept = accept;
	f->topo_ballot += accept;
	f->epoch = round;
	m.u.commit.ballots[WIRE_TOPOLOGY] = f->topo_ballot;
	fill_view(f, &m.u.commit.view, own, v, n);
	fx_from_master(f, run, &m);
}

void fx_view(struct fx *f, uint32_t run, const struct fx_ring *v, unsigned n)
{
	struct wm_msg m = {.type = WM_VIEW};
	struct wm_group_view own[8] = {0};

	fill_view(f, &m.u.view, own, v, n);
	fx_from_master(f, run, &m);
}

void fx_link(struct fx *f, enum agt_event_type type, uint32_t run, unsigned peer, bool inbound)
{
	struct agt_event ev = {.type = type, .run = run, .inbound = inbound, .text = "it broke"};

	ev.peer = fx_id(peer);
	fx_step(f, &ev);
}

void fx_accept(struct fx *f, uint32_t run, uint64_t round, const struct fx_ring *v, unsigned n)
{
	fx_round(f, run, round, true, v, n);
	if (fx_count(f, AGT_ACT_LINK_OPEN))
		fx_link(f, AGT_EV_LINK_UP, run, 100, false);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1);
	ck_assert_uint_eq(fx_msg(f, WM_ROUND_REPORT, 0)->u.round_report.n_failures, 0);
	fx_commit(f, run, round, true, v, n);
}

void fx_submit(struct fx *f, uint32_t comm, uint32_t slot, uint64_t tag, uint64_t count)
{
	struct shm_submission s = {
		.slot = slot, .tag = tag, .count = count, .bytes = count * 4, .dtype = 10};
	struct agt_event ev = {.type = AGT_EV_SUBMIT, .comm = comm, .slot = slot, .sub = &s};

	s.generation = f->generation;
	fx_step(f, &ev);
}

void fx_refuse(
	struct fx *f, uint32_t comm, uint32_t slot, uint64_t tag, uint32_t code, const char *text)
{
	struct shm_submission s = {
		.slot = slot, .tag = tag, .refused = code, .generation = f->generation};
	struct agt_event ev = {
		.type = AGT_EV_SUBMIT, .comm = comm, .slot = slot, .sub = &s, .text = text};

	fx_step(f, &ev);
}

void fx_submit_all(struct fx *f, const uint32_t *comms, unsigned n, uint64_t tag)
{
	unsigned i;

	for (i = 0; i < n; i++)
		fx_submit(f, comms[i], (uint32_t)tag % SHM_SLOTS, tag, 8);
}

void fx_op_start(struct fx *f, uint32_t run, uint32_t group, uint64_t tag, uint64_t seq)
{
	struct wm_msg m = {.type = WM_OP_START};

	m.u.op_start = (struct wm_op_start){.group = group, .tag = tag, .seq = seq, .epoch = 9};
	fx_from_master(f, run, &m);
}

void fx_op_abort(struct fx *f, uint32_t run, uint32_t group, uint64_t tag, uint64_t seq)
{
	struct wm_msg m = {.type = WM_OP_ABORT};

	m.u.op_abort = (struct wm_op_abort){.group = group,
		.tag = tag,
		.seq = seq,
		.code = WIRE_RANK_CONNECTION_LOST,
		.text = "peer 12 died: try again"};
	fx_from_master(f, run, &m);
}

void fx_op_done(struct fx *f, uint32_t run, uint64_t seq)
{
	struct wm_msg m = {.type = WM_OP_DONE, .u.op_done.seq = seq};

	fx_from_master(f, run, &m);
}

void fx_xfer(struct fx *f, enum agt_event_type type, uint32_t run, uint64_t seq, uint32_t code)
{
	struct agt_event ev = {.type = type, .run = run, .seq = seq, .code = code};

	ev.tx_bytes = 111;
	ev.rx_bytes = 222;
	ev.text = code ? "out of result memory" : NULL;
	fx_step(f, &ev);
}

void fx_group(struct fx *f, unsigned n, uint32_t hosts, uint32_t *comms)
{
	struct fx_ring ring = {.group = 7, .hosts = hosts, .world_size = n + hosts - 1, .n = n};
	unsigned s;

	for (s = 1; s <= n; s++) {
		fx_session(f, s, 1000);
		comms[s - 1] = fx_create(f, s, 7, 1);
		fx_connect(f, s, comms[s - 1], s);
		ring.members[s - 1] = s;
	}
	fx_master_up(f, 1);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), n);
	fx_accept(f, 1, 1, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), n);
}

void fx_tick(struct fx *f, uint64_t ms)
{
	f->now += ms * MS;
	fx_event(f, AGT_EV_TICK, 0, NULL);
}

void fx_orphan(struct fx *f)
{
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection reset by peer");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_SEND), 0);
}

struct wm_msg fx_ack(uint64_t term)
{
	struct wm_msg m = {.type = WM_HELLO_ACK};

	m.u.hello_ack = (struct wm_hello_ack){.version = WM_VERSION_MAX,
		.features = WM_FEATURES,
		.run = fx_id(201),
		.heartbeat_ms = 1000,
		.timeout_ms = 3000,
		.segment_max = 65536,
		.term = term,
		.resume = true};
	return m;
}

void fx_greet(struct fx *f)
{
	const struct wm_hello *h;

	fx_event(f, AGT_EV_MASTER_UP, 1, NULL);
	ck_assert_uint_eq(fx_sent(f, WM_HELLO), 1);
	h = &fx_msg(f, WM_HELLO, 0)->u.hello;
	ck_assert(fx_is(&h->run, fx_id(201)));
	ck_assert(fx_is(&h->run_key, fx_id(300)));
	ck_assert(!h->newcomers || h->left);
}

void fx_resume(struct fx *f)
{
	struct wm_msg m = fx_ack(2);

	fx_greet(f);
	ck_assert_uint_eq(fx_msg(f, WM_HELLO, 0)->u.hello.term, 1);
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_sent(f, WM_RESUME), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_RUN_READY), 0);
}
