/* SPDX-License-Identifier: MIT */
#include "tests/agent/sync.h"

#define RUN   1u
#define GROUP 7u

struct wm_sync_vote sy_candidate(uint64_t revision, uint64_t content)
{
	return (struct wm_sync_vote){.revision = revision,
		.strategy = WM_STRATEGY_ENFORCE_POPULAR,
		.hash_type = WM_HASH_SIMPLE,
		.keys = {.hi = 33, .lo = 34},
		.content = {.hi = 35, .lo = content},
		.n_tensors = 4,
		.bytes = 4096};
}

void sy_submit_slot(
	struct fx *f, uint32_t comm, uint32_t slot, const struct wm_sync_vote *candidate)
{
	struct shm_submission s = {.slot = slot, .is_sync = true, .sync = *candidate};
	struct agt_event ev = {.type = AGT_EV_SUBMIT, .comm = comm, .slot = slot, .sub = &s};

	s.generation = f->generation;
	fx_step(f, &ev);
}

void sy_submit(struct fx *f, uint32_t comm, const struct wm_sync_vote *candidate)
{
	sy_submit_slot(f, comm, 20, candidate);
}

void sy_candidate_all(
	struct fx *f, const uint32_t *comms, unsigned n, uint64_t revision, uint64_t content)
{
	struct wm_sync_vote candidate = sy_candidate(revision, content);
	unsigned i;

	for (i = 0; i < n; i++)
		sy_submit(f, comms[i], &candidate);
}

static struct wm_sync_source source(unsigned agent, uint32_t holders)
{
	struct wm_sync_source s = {.holders = holders};

	s.endpoint.agent = fx_id(agent);
	s.endpoint.n_addrs = 1;
	s.endpoint.addrs[0] = fx_addr(agent);
	s.endpoint.port = 48149;
	return s;
}

void sy_start(struct fx *f, uint64_t seq, uint64_t revision, const char *roles)
{
	struct wm_sync_source holder = source(100, 2), receiver = source(101, 0);
	struct wm_sync_peer peers[8];
	struct wm_msg m = {.type = WM_OP_START};
	struct wm_sync_start *s = &m.u.op_start.sync;

	m.u.op_start = (struct wm_op_start){.group = GROUP, .seq = seq, .epoch = 9};
	m.u.op_start.is_sync = true;
	s->revision = revision;
	s->hash_type = WM_HASH_SIMPLE;
	s->keys = (struct wm_digest){.hi = 33, .lo = 34};
	s->content = (struct wm_digest){.hi = 35, .lo = 1};
	s->peers = peers;
	for (; *roles; roles += 2)
		peers[s->n_peers++] = (struct wm_sync_peer){fx_id((unsigned)(roles[0] - '0')),
			roles[1] == 'H' ? WM_SYNC_HOLDER : WM_SYNC_RECEIVER};
	s->n_sources = s->n_others = 1;
	s->sources = &holder;
	s->others = &receiver;
	fx_from_master(f, RUN, &m);
}

void sy_abort(struct fx *f, uint64_t seq)
{
	struct wm_msg m = {.type = WM_OP_ABORT};

	m.u.op_abort = (struct wm_op_abort){.group = GROUP,
		.seq = seq,
		.is_sync = true,
		.code = WIRE_RANK_CONNECTION_LOST,
		.text = "peer 12 died: try again"};
	fx_from_master(f, RUN, &m);
}

void sy_op_done(struct fx *f, uint64_t seq, uint64_t revision)
{
	struct wm_msg m = {.type = WM_OP_DONE, .u.op_done = {.seq = seq, .revision = revision}};

	fx_from_master(f, RUN, &m);
}

void sy_kick(struct fx *f, unsigned peer, const char *text)
{
	struct wm_msg m = {.type = WM_KICK};

	m.u.kick.peer = fx_id(peer);
	m.u.kick.code = WIRE_INVALID_USAGE;
	memcpy(m.u.kick.text, text, strlen(text) + 1);
	fx_from_master(f, RUN, &m);
}

void sy_view_revision(struct fx *f, uint64_t revision)
{
	struct wm_group_view own = {.group = GROUP, .world_size = 3, .revision = revision};
	struct wm_msg m = {.type = WM_VIEW};

	m.u.view = (struct wm_view){.global = 3,
		.groups = 1,
		.largest = 3,
		.view_id = ++f->view_id,
		.n = 1,
		.own = &own};
	fx_from_master(f, RUN, &m);
}

void sy_done(struct fx *f, uint64_t seq)
{
	struct agt_event ev = {.type = AGT_EV_SYNC_DONE, .run = RUN, .seq = seq};

	fx_step(f, &ev);
}

void sy_failed(struct fx *f, uint64_t seq, uint32_t comm, const char *text, uint32_t code)
{
	struct agt_sync_result r = {.comm = comm, .failed = true, .text = text};
	struct agt_event ev = {.type = AGT_EV_SYNC_DONE, .run = RUN, .seq = seq, .code = code};

	ev.text = code ? "all sources are lost" : NULL;
	ev.n_results = comm ? 1 : 0;
	ev.results = &r;
	fx_step(f, &ev);
}

void sy_dropped(struct fx *f, uint64_t seq, uint32_t comm)
{
	struct agt_sync_result r = {.comm = comm, .tx_bytes = 77, .rx_bytes = 88};
	struct agt_event ev = {.type = AGT_EV_SYNC_DROPPED, .run = RUN, .seq = seq, .comm = comm};

	ev.results = &r;
	ev.n_results = 1;
	fx_step(f, &ev);
}

void sy_cancelled(struct fx *f, uint64_t seq, const uint32_t *comms, unsigned n)
{
	struct agt_sync_result r[8] = {0};
	struct agt_event ev = {.type = AGT_EV_SYNC_CANCELLED, .run = RUN, .seq = seq};
	unsigned i;

	for (i = 0; i < n; i++)
		r[i] = (struct agt_sync_result){
			.comm = comms[i], .tx_bytes = 1000 + i, .rx_bytes = 2000 + i};
	ev.results = r;
	ev.n_results = n;
	fx_step(f, &ev);
}

void sy_finish(struct fx *f, uint64_t seq, uint64_t revision)
{
	sy_op_done(f, seq, revision);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_CANCEL), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	sy_cancelled(f, seq, NULL, 0);
}

void sy_resume(struct fx *f)
{
	struct wm_msg m = fx_ack(2);

	fx_greet(f);
	fx_from_master(f, RUN, &m);
	ck_assert_uint_eq(fx_sent(f, WM_RESUME), 1);
}
