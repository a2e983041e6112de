/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "common/cc_plan.h"
#include "tests/proto/sample.h"

const enum wm_type sample_master_types[] = {
	WM_HELLO,
	WM_JOIN,
	WM_LEAVE,
	WM_BALLOT_VOTE,
	WM_OP_VOTE,
	WM_OP_REPORT,
	WM_ROUND_REPORT,
	WM_HEARTBEAT,
	WM_RESUME,
	WM_OP_QUERY,
	WM_STOPPED,
	WM_WAITS_FOR,
	WM_STANDSTILL,
	WM_LINK_LOST,
	WM_MESH,
	WM_LINK_REOPEN,
	WM_KNOCK,
	WM_ADDRESSES,
	WM_PROBED,
	WM_HELLO_ACK,
	WM_REFUSE,
	WM_ROUND,
	WM_COMMIT,
	WM_VIEW,
	WM_OP_START,
	WM_OP_ABORT,
	WM_OP_DONE,
	WM_BALLOT_END,
	WM_KICK,
	WM_OP_OUTCOMES,
	WM_WAITS,
	WM_UNMET,
	WM_LEFT,
	WM_KNOCK_ACK,
	WM_PROBE,
	WM_MEASURED,
	WM_RATES,
	WM_MEASURE,
};
const size_t sample_master_n_types = sizeof sample_master_types / sizeof sample_master_types[0];

static void *array(size_t n, size_t size)
{
	void *v = calloc(n + 1, size);

	if (v == NULL)
		abort();
	return v;
}

static bool flip(struct tl_rng *r)
{
	return tl_range(r, 0, 1) == 1;
}

static uint32_t any32(struct tl_rng *r)
{
	return (uint32_t)tl_magnitude(r, 32);
}

/* Returns a number from 0 to max. Small numbers are more frequent than large ones. */
static uint32_t few(struct tl_rng *r, uint32_t max)
{
	return (uint32_t)(tl_range(r, 0, 9) == 0 ? max : tl_range(r, 0, max < 9 ? max : 9));
}

static void ballots(struct tl_rng *r, uint64_t ret[WIRE_BALLOTS])
{
	for (uint32_t i = 0; i < WIRE_BALLOTS; i++)
		ret[i] = tl_magnitude(r, 64);
}

static uint32_t code(struct tl_rng *r)
{
	return (uint32_t)tl_range(r, 1, 255);
}

static struct cc_id *ids(struct tl_rng *r, uint32_t n)
{
	struct cc_id *v = array(n, sizeof *v);

	for (uint32_t i = 0; i < n; i++)
		v[i] = sample_id(r);
	return v;
}

static void hello(struct tl_rng *r, struct wm_hello *m)
{
	m->version_min = WM_VERSION_MIN;
	m->version_max = (uint32_t)tl_range(r, WM_VERSION_MAX, 65535);
	m->features = tl_magnitude(r, 64);
	m->agent = sample_id(r);
	sample_text(r, m->name, sizeof m->name);
	m->advertised = flip(r);
	m->n_addrs = few(r, WM_ADDRS_MAX);
	for (uint32_t i = 0; i < m->n_addrs; i++)
		m->addrs[i] = sample_addr(r, 0);
	m->port_p2p = (uint16_t)tl_range(r, 1, 65535);
	m->port_shared_state = (uint16_t)tl_range(r, 0, 65535);
	m->port_benchmark = (uint16_t)tl_range(r, 0, 65535);
	m->identity = sample_key(r);
	m->proof = sample_key(r);
	if (flip(r))
		return;
	m->run = sample_id(r);
	m->newcomers = flip(r);
	if (m->newcomers || flip(r))
		return;
	m->run_key = sample_id(r);
	m->term = tl_magnitude(r, 31);
	m->left = flip(r);
}

static void addresses(struct tl_rng *r, struct wm_addresses *m)
{
	m->advertised = flip(r);
	m->n_addrs = few(r, WM_ADDRS_MAX);
	for (uint32_t i = 0; i < m->n_addrs; i++)
		m->addrs[i] = sample_addr(r, 0);
	m->port_p2p = (uint16_t)tl_range(r, 1, 65535);
	m->port_shared_state = (uint16_t)tl_range(r, 0, 65535);
	m->port_benchmark = (uint16_t)tl_range(r, 0, 65535);
}

static struct cc_bounds bounds(struct tl_rng *r)
{
	struct cc_bounds b = {{0}};
	uint32_t min, max;

	for (enum cc_bound i = 0; i < CC_BOUNDS; i++) {
		cc_bound_range(i, &min, &max);
		if (i == CC_BOUND_STREAM)
			min = b.ms[CC_BOUND_LINK];
		else if (i == CC_BOUND_ROUND)
			min = CC_ROUND_MIN_MS(b.ms[CC_BOUND_NEW_LINK]);
		b.ms[i] = (uint32_t)tl_range(r, min, max);
	}
	return b;
}

static void hello_ack(struct tl_rng *r, struct wm_hello_ack *m)
{
	m->version = (uint32_t)tl_range(r, WM_VERSION_MIN, WM_VERSION_MAX);
	m->features = tl_magnitude(r, 64);
	m->run = sample_id(r);
	m->heartbeat_ms = (uint32_t)tl_range(r, 1, 3600000);
	m->timeout_ms = (uint32_t)tl_range(r, m->heartbeat_ms, 3600000);
	m->segment_max = (uint32_t)tl_range(r, CC_PLAN_SEGMENT_MIN, CC_PLAN_SEGMENT_MAX);
	m->term = 1 + tl_magnitude(r, 63);
	m->resume = flip(r);
	m->bounds = bounds(r);
}

static struct wm_digest digest(struct tl_rng *r)
{
	return (struct wm_digest){.hi = tl_magnitude(r, 64), .lo = tl_magnitude(r, 64)};
}

static void sync_vote(struct tl_rng *r, struct wm_sync_vote *m)
{
	m->revision = tl_magnitude(r, 64);
	m->strategy = (uint32_t)tl_range(r, 0, WM_STRATEGY_SEND_ONLY);
	m->hash_type = (uint32_t)tl_range(r, 1, WIRE_HASH_TYPE_MAX);
	m->keys = digest(r);
	m->content = digest(r);
	m->n_tensors = tl_magnitude(r, 20);
	m->bytes = tl_magnitude(r, 48);
	m->torn = flip(r);
}

static void op_vote(struct tl_rng *r, struct wm_op_vote *m)
{
	m->group = any32(r);
	m->n_peers = 1 + few(r, WM_PEERS_MAX - 1);
	m->peers = ids(r, m->n_peers);
	m->generation = tl_magnitude(r, 64);
	m->seq = flip(r) ? 0 : tl_magnitude(r, 64);
	m->spec_seq = flip(r) ? 0 : tl_magnitude(r, 64);
	m->epoch = m->seq ? tl_magnitude(r, 64) : 0;
	m->waits_for = few(r, WM_WAIT_FOR_MAIN);
	m->is_sync = flip(r);
	if (tl_range(r, 0, 3) == 0) {
		m->seq = m->spec_seq = m->epoch = 0;
		m->tag = m->is_sync ? 0 : tl_magnitude(r, 64);
		m->refusal.code = code(r);
		sample_text(r, m->refusal.text, sizeof m->refusal.text);
		return;
	}
	if (m->is_sync) {
		sync_vote(r, &m->sync);
		if (m->seq)
			m->elected = (struct wm_sync_elected){tl_magnitude(r, 64), digest(r)};
		return;
	}
	m->tag = tl_magnitude(r, 64);
	m->params.count = 1 + tl_magnitude(r, 48);
	m->params.dtype = (uint32_t)tl_range(r, 0, 11);
	m->params.op = (uint32_t)tl_range(r, 0, 4);
	m->params.quant.algo = (uint32_t)tl_range(r, 0, WIRE_QUANT_MAX);
	m->params.quant.dtype = (uint32_t)tl_range(r, 0, WIRE_QUANT_DTYPE_MAX);
	m->params.quant.hint = (uint32_t)tl_range(r, 0, WIRE_HINT_MAX);
	m->route = m->seq ? (uint32_t)tl_range(r, 0, CC_ALGO_FIXED_COUNT - 1) : 0;
}

static void op_report(struct tl_rng *r, struct wm_op_report *m)
{
	m->seq = 1 + tl_magnitude(r, 63);
	m->ok = flip(r);
	if (flip(r))
		m->suspect = sample_id(r);
	m->silent = flip(r);
	m->code = m->ok || flip(r) ? 0 : code(r);
	sample_text(r, m->text, sizeof m->text);
	m->n_failed = flip(r) ? 0 : few(r, WM_PEERS_MAX);
	m->failed = array(m->n_failed, sizeof *m->failed);
	for (uint32_t i = 0; i < m->n_failed; i++) {
		m->failed[i].peer = sample_id(r);
		m->failed[i].code = code(r);
		sample_text(r, m->failed[i].text, sizeof m->failed[i].text);
	}
}

static void round_report(struct tl_rng *r, struct wm_round_report *m)
{
	m->round = tl_magnitude(r, 64);
	m->n_failures = few(r, WM_FAILURES_MAX);
	m->failures = array(m->n_failures, sizeof *m->failures);
	for (uint32_t i = 0; i < m->n_failures; i++) {
		m->failures[i].agent = sample_id(r);
		m->failures[i].limit = flip(r);
		sample_text(r, m->failures[i].text, sizeof m->failures[i].text);
	}
}

static void endpoint(struct tl_rng *r, struct wm_endpoint *m)
{
	m->agent = sample_id(r);
	sample_text(r, m->name, sizeof m->name);
	m->at_master = flip(r);
	m->port = (uint16_t)tl_range(r, 1, 65535);
	m->n_addrs = few(r, WM_ADDRS_MAX);
	if (m->n_addrs == 0 && !m->at_master)
		m->n_addrs = 1;
	for (uint32_t i = 0; i < m->n_addrs; i++)
		m->addrs[i] = sample_addr(r, 1);
	if (flip(r))
		m->key = sample_key(r);
	m->key_no = tl_magnitude(r, 64);
}

static void host(struct tl_rng *r, struct wm_host *m)
{
	if (flip(r))
		return;
	sample_text(r, m->name, sizeof m->name);
	m->addr = sample_addr(r, 1);
}

static void measure(struct tl_rng *r, struct wm_measure *m)
{
	host(r, &m->host);
	m->number = 1 + tl_magnitude(r, 63);
	m->ms = (uint32_t)tl_range(r, 1, WM_MEASURE_MS_MAX);
	m->streams = (uint32_t)tl_range(r, 1, WM_MEASURE_STREAMS_MAX);
	m->hold = flip(r);
	m->n_to = few(r, WM_MEASURE_AGENTS_MAX);
	m->to = array(m->n_to, sizeof *m->to);
	for (uint32_t i = 0; i < m->n_to; i++)
		endpoint(r, &m->to[i]);
	m->n_from = few(r, WM_MEASURE_AGENTS_MAX);
	m->from = ids(r, m->n_from);
	m->round = any32(r);
	m->rounds = any32(r);
}

static void measured(struct tl_rng *r, struct wm_measured *m)
{
	m->number = 1 + tl_magnitude(r, 63);
	m->n = 1 + few(r, WM_MEASURE_AGENTS_MAX - 1);
	m->results = array(m->n, sizeof *m->results);
	for (uint32_t i = 0; i < m->n; i++) {
		struct wm_measured_result *x = &m->results[i];

		x->agent = sample_id(r);
		x->ok = flip(r);
		x->limit = !x->ok && flip(r);
		x->busy = !x->ok && flip(r);
		x->rate = x->ok ? tl_magnitude(r, 64) : 0;
		x->rate_of_all = x->ok ? tl_magnitude(r, 64) : 0;
		x->trip_us = x->ok ? any32(r) : 0;
		x->confidence = x->ok ? (uint32_t)tl_range(r, 0, 100) : 0;
		sample_text(r, x->text, sizeof x->text);
	}
}

static void rates(struct tl_rng *r, struct wm_rates *m)
{
	m->passive = flip(r);
	m->out = m->passive ? 0 : tl_magnitude(r, 64);
	m->in = m->passive ? 0 : tl_magnitude(r, 64);
	m->caps_age_s = (uint32_t)tl_magnitude(r, 32);
	m->n = few(r, WM_RATES_MAX);
	m->rates = array(m->n, sizeof *m->rates);
	for (uint32_t i = 0; i < m->n; i++) {
		m->rates[i] = (struct wm_rate){.agent = sample_id(r),
			.rate = tl_magnitude(r, 64),
			.trip_us = any32(r),
			.age_s = any32(r),
			.confidence = (uint32_t)tl_range(r, 0, 100)};
		host(r, &m->rates[i].host);
	}
}

static struct wm_sync_source *sources(struct tl_rng *r, uint32_t n, bool holders)
{
	struct wm_sync_source *v = array(n, sizeof *v);

	for (uint32_t i = 0; i < n; i++) {
		endpoint(r, &v[i].endpoint);
		v[i].holders = holders ? (uint32_t)tl_range(r, 1, WM_PEERS_MAX) : 0;
	}
	return v;
}

static void op_start(struct tl_rng *r, struct wm_op_start *m)
{
	struct wm_sync_start *s = &m->sync;

	m->group = any32(r);
	m->seq = 1 + tl_magnitude(r, 63);
	m->epoch = tl_magnitude(r, 64);
	m->is_sync = flip(r);
	if (!m->is_sync) {
		m->tag = tl_magnitude(r, 64);
		m->route = (uint32_t)tl_range(r, 0, CC_ALGO_FIXED_COUNT - 1);
		return;
	}
	s->revision = tl_magnitude(r, 64);
	s->hash_type = (uint32_t)tl_range(r, 1, WIRE_HASH_TYPE_MAX);
	s->keys = digest(r);
	s->content = digest(r);
	s->n_peers = 1 + few(r, WM_PEERS_MAX - 1);
	s->peers = array(s->n_peers, sizeof *s->peers);
	for (uint32_t i = 0; i < s->n_peers; i++) {
		s->peers[i].peer = sample_id(r);
		s->peers[i].role = flip(r) ? WM_SYNC_HOLDER : WM_SYNC_RECEIVER;
	}
	s->n_sources = few(r, WM_SOURCES_MAX);
	s->sources = sources(r, s->n_sources, true);
	s->n_others = few(r, WM_SOURCES_MAX);
	s->others = sources(r, s->n_others, false);
}

/* Makes a plan of several rings for this number of hosts: 3 to CC_ROUTE_HOSTS_MAX. */
static void plan(struct tl_rng *r, uint32_t hosts, struct wm_plan *m)
{
	m->n = (uint32_t)tl_range(r, 2, CC_RINGS_MAX);
	m->n_order = m->n * hosts;
	m->order = array(m->n_order, sizeof *m->order);
	for (uint32_t i = 0; i < m->n; i++) {
		uint16_t *ring = m->order + (size_t)i * hosts;

		m->shares[i] = (uint16_t)tl_range(r, 1, UINT16_MAX);
		for (uint32_t k = 0; k < hosts; k++) {
			uint32_t at = (uint32_t)tl_range(r, 0, k);

			ring[k] = ring[at];
			ring[at] = (uint16_t)k;
		}
	}
}

static void round_(struct tl_rng *r, struct wm_round *m)
{
	uint32_t first_group = any32(r);

	m->round = tl_magnitude(r, 64);
	m->accept = flip(r);
	m->peers = any32(r);
	if (flip(r))
		m->run_key = sample_id(r);
	m->n_rings = few(r, WM_RINGS_MAX);
	m->rings = array(m->n_rings, sizeof *m->rings);
	for (uint32_t i = 0; i < m->n_rings; i++) {
		struct wm_ring *ring = &m->rings[i];

		ring->group = first_group + i;
		ring->hosts = 1 + few(r, 65535);
		ring->pos = (uint32_t)tl_range(r, 0, ring->hosts - 1);
		ring->pool_size = (uint32_t)tl_range(r, 1, WM_POOL_MAX);
		if (ring->hosts > 1) {
			endpoint(r, &ring->next);
			ring->prev = sample_id(r);
			ring->reopen = flip(r);
			ring->prev_reopens = flip(r);
			sample_text(r, ring->prev_name, sizeof ring->prev_name);
		}
		if (i == 0 && ring->hosts > 2 && ring->hosts <= CC_ROUTE_HOSTS_MAX && flip(r))
			ring->n_others = ring->hosts - 2;
		ring->others = array(ring->n_others, sizeof *ring->others);
		for (uint32_t k = 0; k < ring->n_others; k++)
			endpoint(r, &ring->others[k]);
		if (ring->n_others > 0 && flip(r)) {
			plan(r, ring->hosts, &ring->plan);
			ring->await_plan = flip(r);
		}
		/* A message with all maxima would not fit into a frame. */
		ring->n_members = 1 + (m->n_rings > 9 ? 0 : few(r, WM_PEERS_MAX - 1));
		ring->members = ids(r, ring->n_members);
	}
}

static void view(struct tl_rng *r, struct wm_view *m)
{
	uint32_t first_group = any32(r);

	m->global = any32(r);
	m->groups = any32(r);
	m->largest = any32(r);
	m->view_id = tl_magnitude(r, 64);
	m->n_lost = few(r, WM_LOST_MAX);
	m->lost = ids(r, m->n_lost);
	m->lost_all = flip(r);
	m->lost_floor = tl_magnitude(r, 64);
	m->n = few(r, WM_RINGS_MAX);
	m->own = array(m->n, sizeof *m->own);
	for (uint32_t i = 0; i < m->n; i++) {
		m->own[i].group = first_group + i;
		m->own[i].world_size = any32(r);
		m->own[i].generation = tl_magnitude(r, 64);
		if (m->n < 64) /* else a resume might not fit into a frame */
			sample_text(r, m->own[i].loss, sizeof m->own[i].loss);
		m->own[i].revision = tl_magnitude(r, 64);
		if (i % 2)
			m->own[i].at_generation =
				(struct wire_view){.view_id = 1 + tl_magnitude(r, 63),
					.global = any32(r),
					.group = any32(r),
					.groups = any32(r),
					.largest = any32(r)};
	}
}

static void outcomes(struct tl_rng *r, struct wm_outcome *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		v[i].seq = 1 + tl_magnitude(r, 63);
		v[i].code = flip(r) ? 0 : code(r);
	}
}

static void resume(struct tl_rng *r, struct wm_resume *m)
{
	uint32_t first_group = any32(r);

	m->epoch = tl_magnitude(r, 64);
	m->round = tl_magnitude(r, 64);
	m->ring_epoch = tl_magnitude(r, 64);
	m->prepared = flip(r) ? 0 : tl_magnitude(r, 64);
	m->prepared_peers = any32(r);
	m->aborted_round = flip(r) ? 0 : tl_magnitude(r, 64);
	m->last_seq = tl_magnitude(r, 64);
	view(r, &m->view);
	m->n_positions = few(r, WM_RINGS_MAX);
	m->positions = array(m->n_positions, sizeof *m->positions);
	for (uint32_t i = 0; i < m->n_positions; i++) {
		m->positions[i].group = first_group + i;
		m->positions[i].hosts = 1 + few(r, WM_HOSTS_MAX - 1);
		m->positions[i].pos = (uint32_t)tl_range(r, 0, m->positions[i].hosts - 1);
		/* A message with all maxima would not fit into a frame. */
		if (i < 9 && m->positions[i].hosts > 2 &&
			m->positions[i].hosts <= CC_ROUTE_HOSTS_MAX && flip(r))
			plan(r, m->positions[i].hosts, &m->positions[i].plan);
	}
	m->n_outcomes = few(r, 3 * WM_OUTCOMES_MAX);
	m->outcomes = array(m->n_outcomes, sizeof *m->outcomes);
	outcomes(r, m->outcomes, m->n_outcomes);
	ballots(r, m->ballots);
}

static void agent_message(struct tl_rng *r, struct wm_msg *m)
{
	switch (m->type) {
	case WM_HELLO:
		hello(r, &m->u.hello);
		break;
	case WM_JOIN:
		m->u.join.peer = sample_id(r);
		m->u.join.group = any32(r);
		m->u.join.pool_size = (uint32_t)tl_range(r, 1, WM_POOL_MAX);
		m->u.join.pid = any32(r);
		sample_text(r, m->u.join.name, sizeof m->u.join.name);
		m->u.join.token = sample_id(r);
		m->u.join.phase = (uint32_t)tl_range(r, WM_JOIN_NEW, WM_JOIN_ACCEPTED);
		ballots(r, m->u.join.ballots);
		m->u.join.view_id = tl_magnitude(r, 64);
		m->u.join.global = any32(r);
		m->u.join.thread = tl_magnitude(r, 64);
		m->u.join.left = flip(r);
		break;
	case WM_LEAVE:
		m->u.leave.peer = sample_id(r);
		m->u.leave.kind = any32(r) % (WM_LEAVE_STOPPED + 1);
		sample_text(r, m->u.leave.text, sizeof m->u.leave.text);
		break;
	case WM_BALLOT_VOTE:
		m->u.ballot_vote.peer = sample_id(r);
		m->u.ballot_vote.kind = (enum wire_ballot)few(r, WIRE_BALLOTS - 1);
		m->u.ballot_vote.number = tl_magnitude(r, 64);
		break;
	case WM_OP_VOTE:
		op_vote(r, &m->u.op_vote);
		break;
	case WM_OP_REPORT:
		op_report(r, &m->u.op_report);
		break;
	case WM_MESH:
		m->u.mesh = (struct wm_mesh){.group = (uint32_t)tl_magnitude(r, 32),
			.up = flip(r),
			.plan_up = flip(r),
			.reopens = (uint32_t)tl_magnitude(r, 32)};
		break;
	case WM_LINK_LOST:
		m->u.link_lost.agent = sample_id(r);
		m->u.link_lost.inbound = flip(r);
		m->u.link_lost.smaller = !m->u.link_lost.inbound && flip(r);
		sample_text(r, m->u.link_lost.text, sizeof m->u.link_lost.text);
		break;
	case WM_ROUND_REPORT:
		round_report(r, &m->u.round_report);
		break;
	case WM_HEARTBEAT:
		m->u.heartbeat.awaited = flip(r);
		break;
	case WM_RESUME:
		resume(r, &m->u.resume);
		break;
	case WM_OP_QUERY:
		m->u.op_query.peer = sample_id(r);
		m->u.op_query.n = 1 + few(r, WM_OUTCOMES_MAX - 1);
		for (uint32_t i = 0; i < m->u.op_query.n; i++)
			m->u.op_query.seqs[i] = 1 + tl_magnitude(r, 63);
		m->u.op_query.n_succeeded = few(r, m->u.op_query.n);
		break;
	case WM_ADDRESSES:
		addresses(r, &m->u.addresses);
		break;
	case WM_STOPPED:
		m->u.stopped.peer = sample_id(r);
		m->u.stopped.is = flip(r);
		break;
	case WM_WAITS_FOR:
		m->u.waits_for.peer = sample_id(r);
		m->u.waits_for.tag = tl_magnitude(r, 64);
		m->u.waits_for.kind = flip(r) ? WM_WAIT_FOR_HELPER : WM_WAIT_FOR_MAIN;
		m->u.waits_for.any = few(r, UINT32_MAX);
		break;
	case WM_STANDSTILL:
		m->u.standstill = (struct wm_standstill){.seq = 1 + tl_magnitude(r, 63),
			.sent = tl_magnitude(r, 64),
			.received = tl_magnitude(r, 64),
			.ms = few(r, UINT32_MAX)};
		break;
	case WM_KNOCK:
		m->u.knock.version_min = WM_VERSION_MIN;
		m->u.knock.version_max = (uint32_t)tl_range(r, WM_VERSION_MAX, 65535);
		m->u.knock.share = sample_key(r);
		break;
	case WM_PROBED:
		m->u.probed.number = 1 + tl_magnitude(r, 63);
		m->u.probed.ok = flip(r);
		m->u.probed.limit = !m->u.probed.ok && flip(r);
		sample_text(r, m->u.probed.text, sizeof m->u.probed.text);
		break;
	case WM_MEASURED:
		measured(r, &m->u.measured);
		break;
	case WM_RATES:
		rates(r, &m->u.rates);
		break;
	default:
		break;
	}
}

static void unmet(struct tl_rng *r, struct wm_unmet *m)
{
	m->kind = few(r, WM_WAIT_BALLOT);
	if (m->kind == WM_WAIT_BALLOT)
		m->ballot = (enum wire_ballot)few(r, WIRE_BALLOTS - 1);
	m->group = any32(r);
	m->tag = tl_magnitude(r, 64);
	m->generation = tl_magnitude(r, 64);
	m->answer = flip(r);
	m->code = m->kind == WM_WAIT_OP || m->kind == WM_WAIT_SYNC ? code(r) : 0;
	sample_text(r, m->text, sizeof m->text);
	m->n_peers = 1 + few(r, WM_PEERS_MAX - 1);
	m->peers = array(m->n_peers, sizeof *m->peers);
	for (uint32_t i = 0; i < m->n_peers; i++)
		m->peers[i] = sample_id(r);
}

static void master_message(struct tl_rng *r, struct wm_msg *m)
{
	switch (m->type) {
	case WM_HELLO_ACK:
		hello_ack(r, &m->u.hello_ack);
		break;
	case WM_REFUSE:
		m->u.refuse.version_min = (uint32_t)tl_range(r, 1, 65535);
		m->u.refuse.version_max = (uint32_t)tl_range(r, m->u.refuse.version_min, 65535);
		m->u.refuse.code = code(r);
		sample_text(r, m->u.refuse.text, sizeof m->u.refuse.text);
		break;
	case WM_ROUND:
		round_(r, &m->u.round);
		break;
	case WM_COMMIT:
		m->u.commit.round = tl_magnitude(r, 64);
		m->u.commit.epoch = tl_magnitude(r, 64);
		m->u.commit.accept = flip(r);
		view(r, &m->u.commit.view);
		ballots(r, m->u.commit.ballots);
		break;
	case WM_VIEW:
		view(r, &m->u.view);
		break;
	case WM_OP_START:
		op_start(r, &m->u.op_start);
		break;
	case WM_OP_ABORT:
		m->u.op_abort.group = any32(r);
		m->u.op_abort.is_sync = flip(r);
		m->u.op_abort.tag = m->u.op_abort.is_sync ? 0 : tl_magnitude(r, 64);
		m->u.op_abort.seq = tl_magnitude(r, 64);
		m->u.op_abort.code = code(r);
		m->u.op_abort.generation = tl_magnitude(r, 64);
		sample_text(r, m->u.op_abort.text, sizeof m->u.op_abort.text);
		break;
	case WM_LINK_REOPEN:
		m->u.link_reopen.agent = sample_id(r);
		break;
	case WM_OP_DONE:
		m->u.op_done.seq = 1 + tl_magnitude(r, 63);
		m->u.op_done.revision = flip(r) ? 0 : tl_magnitude(r, 64);
		m->u.op_done.next = flip(r) ? 0 : tl_magnitude(r, 64);
		if (m->u.op_done.next > 0)
			m->u.op_done.next_route = (uint32_t)tl_range(r, 0, CC_ALGO_FIXED_COUNT - 1);
		break;
	case WM_BALLOT_END:
		m->u.ballot_end.kind = (enum wire_ballot)(1 + few(r, WIRE_BALLOTS - 2));
		m->u.ballot_end.number = tl_magnitude(r, 64);
		sample_text(r, m->u.ballot_end.text, sizeof m->u.ballot_end.text);
		break;
	case WM_KICK:
		m->u.kick.peer = sample_id(r);
		m->u.kick.code = code(r);
		sample_text(r, m->u.kick.text, sizeof m->u.kick.text);
		break;
	case WM_OP_OUTCOMES:
		m->u.op_outcomes.peer = sample_id(r);
		m->u.op_outcomes.n = 1 + few(r, WM_OUTCOMES_MAX - 1);
		outcomes(r, m->u.op_outcomes.v, m->u.op_outcomes.n);
		break;
	case WM_WAITS:
		m->u.waits.kind = few(r, WM_WAIT_STOPPED);
		if (m->u.waits.kind == WM_WAIT_BALLOT)
			m->u.waits.ballot = (enum wire_ballot)few(r, WIRE_BALLOTS - 1);
		m->u.waits.group = (uint32_t)tl_magnitude(r, 32);
		m->u.waits.tag = tl_magnitude(r, 64);
		m->u.waits.waited_ms = (uint32_t)tl_magnitude(r, 32);
		sample_text(r, m->u.waits.text, sizeof m->u.waits.text);
		break;
	case WM_UNMET:
		unmet(r, &m->u.unmet);
		break;
	case WM_KNOCK_ACK:
		m->u.knock_ack.share = sample_key(r);
		break;
	case WM_LEFT:
		m->u.left.peer = sample_id(r);
		break;
	case WM_PROBE:
		m->u.probe.number = 1 + tl_magnitude(r, 63);
		endpoint(r, &m->u.probe.to);
		if (flip(r))
			endpoint(r, &m->u.probe.state);
		break;
	case WM_MEASURE:
		measure(r, &m->u.measure);
		break;
	default:
		break;
	}
}

void sample_master(struct tl_rng *r, enum wm_type type, struct wm_msg *ret)
{
	*ret = (struct wm_msg){.type = type};
	if (type < WM_HELLO_ACK)
		agent_message(r, ret);
	else
		master_message(r, ret);
}
