/* SPDX-License-Identifier: MIT
 *
 * Tests both sides of every limit of the messages between agents and the master.
 */
#include <stdio.h>

#include "common/cc_plan.h"
#include "tests/proto/master_check.h"
#include "tests/proto/suites.h"

static struct tl_rng limits_rng;
static struct wm_msg m;

static void fresh(enum wm_type type)
{
	wire_master_clear(&m);
	sample_master(&limits_rng, type, &m);
}

static void limits_setup(void)
{
	limits_rng = tl_rng_new(4);
}

static void limits_teardown(void)
{
	wire_master_clear(&m);
}

START_TEST(limits_of_hello_are_enforced)
{
	struct wm_hello *h = &m.u.hello;

	fresh(WM_HELLO);
	h->agent = (struct cc_id){{0}};
	refused(&m, "hello.agent");
	fresh(WM_HELLO);
	h->port_p2p = 0;
	refused(&m, "hello.port_p2p");
	fresh(WM_HELLO);
	h->n_addrs = 1;
	h->addrs[0] = (struct cc_addr){0};
	refused(&m, "hello.addrs");
	h->addrs[0] = (struct cc_addr){.family = CC_INET6, .port = 1};
	refused(&m, "hello.addrs");
	h->addrs[0].ip[0] = 1;
	accepted(&m);
}
END_TEST

/* A hello with a term or a run key must also name the run. */
START_TEST(term_and_run_key_need_a_run)
{
	struct wm_hello *h = &m.u.hello;

	fresh(WM_HELLO);
	h->run = sample_id(&limits_rng);
	h->run_key = sample_id(&limits_rng);
	h->term = WM_TERM_MAX;
	accepted(&m);
	h->term++;
	refused(&m, "hello.term");
	h->term = 1;
	h->run_key = (struct cc_id){{0}};
	refused(&m, "hello.term");
	h->term = 0;
	accepted(&m);
	h->term = 1;
	h->run = (struct cc_id){{0}};
	refused(&m, "hello.term");
	h->term = 0;
	accepted(&m);
	h->run_key = sample_id(&limits_rng);
	refused(&m, "hello.run_key");
}
END_TEST

START_TEST(invalid_version_ranges_are_refused)
{
	struct wm_msg got;
	const char *why;
	struct bytes b;

	fresh(WM_HELLO);
	m.u.hello.version_min = 0;
	refused(&m, "hello.version_min");
	m.u.hello.version_min = 3;
	m.u.hello.version_max = 2;
	refused(&m, "hello.version_min");
	m.u.hello.version_max = 65536;
	refused(&m, "hello.version_min");

	/* If a hello offers only unknown versions, their range is decoded nevertheless. */
	m.u.hello.version_min = WM_VERSION_MAX + 1;
	m.u.hello.version_max = WM_VERSION_MAX + 2;
	m.u.hello.agent = (struct cc_id){{0}};
	m.u.hello.port_p2p = 0;
	b = encode(&m);
	ck_assert_int_eq(wire_master_decode(b.p, b.len, &got, &why), 0);
	ck_assert_uint_eq(got.u.hello.version_min, WM_VERSION_MAX + 1);
	ck_assert_uint_eq(got.u.hello.version_max, WM_VERSION_MAX + 2);
	ck_assert_uint_eq(got.u.hello.n_addrs, 0);
	wire_master_clear(&got);
	free(b.p);

	fresh(WM_HELLO_ACK);
	m.u.hello_ack.version = WM_VERSION_MAX + 1;
	refused_as(&m, CC_ERR_VERSION, "hello_ack.version");
	m.u.hello_ack.version = 0;
	refused_as(&m, CC_ERR_VERSION, "hello_ack.version");

	fresh(WM_REFUSE);
	m.u.refuse.version_min = m.u.refuse.version_max + 1;
	refused(&m, "refuse.version_min");
	fresh(WM_REFUSE);
	m.u.refuse.version_min = 7;
	m.u.refuse.version_max = 9;
	accepted(&m);
}
END_TEST

START_TEST(limits_of_hello_ack_are_enforced)
{
	struct wm_hello_ack *h = &m.u.hello_ack;

	fresh(WM_HELLO_ACK);
	h->run = (struct cc_id){{0}};
	refused(&m, "hello_ack.run");
	fresh(WM_HELLO_ACK);
	h->heartbeat_ms = 0;
	refused(&m, "hello_ack.heartbeat_ms");
	h->heartbeat_ms = h->timeout_ms = 3600000;
	accepted(&m);
	h->timeout_ms = 3600001;
	refused(&m, "hello_ack.timeout_ms");
	h->heartbeat_ms = 3600001;
	refused(&m, "hello_ack.heartbeat_ms");
	h->heartbeat_ms = h->timeout_ms = 1;
	accepted(&m);
	h->heartbeat_ms = 2;
	refused(&m, "hello_ack.timeout_ms");
	fresh(WM_HELLO_ACK);
	h->segment_max = CC_PLAN_SEGMENT_MIN - 1;
	refused(&m, "hello_ack.segment_max");
	h->segment_max = CC_PLAN_SEGMENT_MIN;
	accepted(&m);
	h->segment_max = CC_PLAN_SEGMENT_MAX;
	accepted(&m);
	h->segment_max = CC_PLAN_SEGMENT_MAX + 1;
	refused(&m, "hello_ack.segment_max");
	fresh(WM_HELLO_ACK);
	h->term = 0;
	refused(&m, "hello_ack.term");
	h->term = 1;
	accepted(&m);
}
END_TEST

START_TEST(limits_of_the_bounds_are_enforced)
{
	static const struct {
		enum cc_bound bound;
		uint32_t min, max;
	} rows[] = {{CC_BOUND_LINK, 2000, 90000}, {CC_BOUND_STREAM, 2000, 90000},
		{CC_BOUND_STUCK, 1000, 90000}, {CC_BOUND_NEW_LINK, 500, 60000},
		{CC_BOUND_ROUND, 2000, 300000}};
	uint32_t *ms = m.u.hello_ack.bounds.ms;
	char field[64];

	for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		fresh(WM_HELLO_ACK);
		ms[CC_BOUND_LINK] = 2000;
		ms[CC_BOUND_STREAM] = 90000;
		ms[CC_BOUND_NEW_LINK] = 500;
		ms[CC_BOUND_ROUND] = 300000;
		snprintf(field, sizeof field, "hello_ack.%s", cc_bound_names[rows[i].bound]);
		ms[rows[i].bound] = rows[i].min;
		accepted(&m);
		ms[rows[i].bound] = rows[i].max;
		accepted(&m);
		ms[rows[i].bound] = rows[i].min - 1;
		refused(&m, field);
		ms[rows[i].bound] = rows[i].max + 1;
		refused(&m, field);
	}
	fresh(WM_HELLO_ACK);
	ms[CC_BOUND_LINK] = 5000;
	ms[CC_BOUND_STREAM] = 4999;
	refused(&m, "hello_ack.stream_timeout_ms");
	fresh(WM_HELLO_ACK);
	ms[CC_BOUND_NEW_LINK] = 3000;
	ms[CC_BOUND_ROUND] = 6999;
	refused(&m, "hello_ack.round_timeout_ms");
}
END_TEST

START_TEST(limits_of_messages_about_peers_are_enforced)
{
	fresh(WM_JOIN);
	m.u.join.peer = (struct cc_id){{0}};
	refused(&m, "join.peer");
	fresh(WM_JOIN);
	m.u.join.pool_size = 0;
	refused(&m, "join.pool_size");
	m.u.join.pool_size = 64;
	accepted(&m);
	m.u.join.pool_size = 65;
	refused(&m, "join.pool_size");
	fresh(WM_JOIN);
	m.u.join.token = (struct cc_id){{0}};
	refused(&m, "join.token");
	fresh(WM_JOIN);
	m.u.join.phase = WM_JOIN_ACCEPTED + 1;
	refused(&m, "join.phase");
	m.u.join.phase = UINT32_MAX;
	refused(&m, "join.phase");
	fresh(WM_LEAVE);
	m.u.leave.kind = 3;
	refused(&m, "leave.kind");
	m.u.leave.kind = UINT32_MAX;
	refused(&m, "leave.kind");
	fresh(WM_LEAVE);
	m.u.leave.peer = (struct cc_id){{0}};
	refused(&m, "leave.peer");
	fresh(WM_LEAVE);
	memset(m.u.leave.text, 'x', sizeof m.u.leave.text - 1);
	accepted(&m);
	fresh(WM_ADDRESSES);
	m.u.addresses.port_p2p = 0;
	refused(&m, "addresses.port_p2p");
	fresh(WM_ADDRESSES);
	m.u.addresses.n_addrs = 1;
	m.u.addresses.addrs[0] = (struct cc_addr){.family = CC_INET4};
	refused(&m, "addresses.addrs");
	m.u.addresses.n_addrs = WM_ADDRS_MAX;
	for (size_t i = 0; i < WM_ADDRS_MAX; i++)
		m.u.addresses.addrs[i] = sample_addr(&limits_rng, 0);
	accepted(&m);
	fresh(WM_STOPPED);
	m.u.stopped.peer = (struct cc_id){{0}};
	refused(&m, "stopped.peer");
	fresh(WM_WAITS_FOR);
	m.u.waits_for.peer = (struct cc_id){{0}};
	refused(&m, "waits_for.peer");
	fresh(WM_WAITS_FOR);
	m.u.waits_for.kind = WM_WAIT_FOR_NONE;
	refused(&m, "waits_for.kind");
	m.u.waits_for.kind = WM_WAIT_FOR_MAIN + 1;
	refused(&m, "waits_for.kind");
	fresh(WM_STANDSTILL);
	m.u.standstill.seq = 0;
	refused(&m, "standstill.seq");
	fresh(WM_LEFT);
	m.u.left.peer = (struct cc_id){{0}};
	refused(&m, "left.peer");
	fresh(WM_PROBED);
	m.u.probed.number = 0;
	refused(&m, "probed.number");
	m.u.probed = (struct wm_probed){.number = 1, .ok = true, .limit = true};
	refused(&m, "probed.limit");
	fresh(WM_PROBE);
	m.u.probe.number = 0;
	refused(&m, "probe.number");
	m.u.probe.number = 1;
	m.u.probe.to.port = 0;
	refused(&m, "probe.to.port");
	m.u.probe.to.port = 1;
	m.u.probe.state = m.u.probe.to;
	m.u.probe.state.n_addrs = 0;
	m.u.probe.state.at_master = false;
	refused(&m, "probe.state.addrs");
	fresh(WM_WAITS);
	m.u.waits.ballot = WIRE_TOPOLOGY;
	m.u.waits.kind = WM_WAIT_SYNC;
	accepted(&m);
	m.u.waits.kind = WM_WAIT_STOPPED + 1;
	refused(&m, "waits.kind");
	m.u.waits.kind = UINT32_MAX;
	refused(&m, "waits.kind");
	m.u.waits.kind = WM_WAIT_BALLOT;
	m.u.waits.ballot = WIRE_BALLOTS;
	refused(&m, "waits.ballot");
	m.u.waits.ballot = WIRE_OPTIMIZE;
	accepted(&m);
	m.u.waits.kind = WM_WAIT_OP;
	refused(&m, "waits.ballot");
	fresh(WM_BALLOT_VOTE);
	m.u.ballot_vote.peer = (struct cc_id){{0}};
	refused(&m, "ballot_vote.peer");
	fresh(WM_BALLOT_VOTE);
	m.u.ballot_vote.kind = WIRE_BALLOTS;
	refused(&m, "ballot_vote.kind");
	fresh(WM_BALLOT_END);
	m.u.ballot_end.kind = WIRE_BALLOTS;
	refused(&m, "ballot_end.kind");
	m.u.ballot_end.kind = WIRE_TOPOLOGY;
	refused(&m, "ballot_end.kind");
	fresh(WM_KICK);
	m.u.kick.peer = (struct cc_id){{0}};
	refused(&m, "kick.peer");
	fresh(WM_KICK);
	m.u.kick.code = 0;
	refused(&m, "kick.code");
	m.u.kick.code = 255;
	accepted(&m);
	m.u.kick.code = 256;
	refused(&m, "kick.code");
}
END_TEST

START_TEST(limits_of_a_measurement_are_enforced)
{
	struct wm_measure *x = &m.u.measure;

	fresh(WM_MEASURE);
	x->number = 0;
	refused(&m, "measure.number");
	x->number = 1;
	x->ms = 0;
	refused(&m, "measure.ms");
	x->ms = WM_MEASURE_MS_MAX + 1;
	refused(&m, "measure.ms");
	x->ms = WM_MEASURE_MS_MAX;
	x->streams = 0;
	refused(&m, "measure.streams");
	x->streams = WM_MEASURE_STREAMS_MAX + 1;
	refused(&m, "measure.streams");
	x->streams = WM_MEASURE_STREAMS_MAX;
	x->n_to = x->n_from = 0; /* an order to stop */
	accepted(&m);
}
END_TEST

START_TEST(agents_of_a_measurement_are_limited_and_differ)
{
	struct wm_measure *x = &m.u.measure;

	fresh(WM_MEASURE);
	free(x->to);
	free(x->from);
	x->to = calloc(WM_MEASURE_AGENTS_MAX + 1, sizeof *x->to);
	x->from = calloc(WM_MEASURE_AGENTS_MAX + 1, sizeof *x->from);
	ck_assert(x->to && x->from);
	for (uint32_t i = 0; i <= WM_MEASURE_AGENTS_MAX; i++) {
		x->from[i] = sample_id(&limits_rng);
		x->to[i] = (struct wm_endpoint){
			.agent = sample_id(&limits_rng), .at_master = true, .port = 1};
	}
	x->n_to = x->n_from = WM_MEASURE_AGENTS_MAX;
	accepted(&m);
	x->n_to++;
	refused(&m, "measure.to");
	x->n_to--;
	x->n_from++;
	refused(&m, "measure.from");
	x->n_from--;
	x->from[0] = x->from[62];
	refused(&m, "measure.from");
	x->from[0] = (struct cc_id){{0}};
	refused(&m, "measure.from");
	x->from[0] = x->to[0].agent; /* an agent may be on both lists */
	accepted(&m);
	x->to[1].agent = x->to[0].agent;
	refused(&m, "measure.to");
	x->to[1].agent = x->from[1];
	x->to[1].port = 0;
	refused(&m, "measure.to.port");
	x->to[1].port = 1;
	x->to[1].at_master = false;
	refused(&m, "measure.to.addrs");
}
END_TEST

START_TEST(limits_of_results_of_a_measurement_are_enforced)
{
	struct wm_measured *x = &m.u.measured;

	fresh(WM_MEASURED);
	x->number = 0;
	refused(&m, "measured.number");
	x->number = 1;
	free(x->results);
	x->results = calloc(WM_MEASURE_AGENTS_MAX + 1, sizeof *x->results);
	ck_assert_ptr_nonnull(x->results);
	for (uint32_t i = 0; i <= WM_MEASURE_AGENTS_MAX; i++)
		x->results[i] = (struct wm_measured_result){
			.agent = sample_id(&limits_rng), .ok = true, .rate = UINT64_MAX};
	x->n = WM_MEASURE_AGENTS_MAX;
	accepted(&m);
	x->n++;
	refused(&m, "measured.results");
	x->n = 0;
	refused(&m, "measured.results");
	x->n = 2;
	x->results[0].limit = true;
	refused(&m, "measured.results.limit");
	x->results[0].limit = false;
	x->results[0].busy = true;
	refused(&m, "measured.results.busy");
	x->results[0].busy = false;
	x->results[0].confidence = 101;
	refused(&m, "measured.results.confidence");
	x->results[0] = (struct wm_measured_result){.agent = x->results[1].agent};
	refused(&m, "measured.results");
	x->results[0].agent = (struct cc_id){{0}};
	refused(&m, "measured.results.agent");
}
END_TEST

START_TEST(limits_of_remembered_rates_are_enforced)
{
	struct wm_rates *x = &m.u.rates;

	fresh(WM_RATES);
	free(x->rates);
	x->rates = calloc(WM_RATES_MAX + 1, sizeof *x->rates);
	ck_assert_ptr_nonnull(x->rates);
	for (uint32_t i = 0; i <= WM_RATES_MAX; i++)
		x->rates[i] = (struct wm_rate){.agent = sample_id(&limits_rng),
			.rate = UINT64_MAX,
			.trip_us = UINT32_MAX,
			.age_s = UINT32_MAX,
			.confidence = 100,
			.host = {.addr = {CC_INET6, {1}, UINT16_MAX}}};
	for (uint32_t i = 0; i <= WM_RATES_MAX; i++)
		memset(x->rates[i].host.name, 'x', WM_NAME_MAX - 1);
	x->n = WM_RATES_MAX;
	accepted(&m);
	x->rates[0].confidence = 101;
	refused(&m, "rates.rates.confidence");
	x->rates[0].confidence = 100;
	x->rates[0].host.addr.port = 0;
	refused(&m, "rates.rates.host.addr");
	x->rates[0].host.addr.port = 1;
	x->n++;
	refused(&m, "rates.rates");
	x->n = 0; /* caps alone */
	x->out = x->in = UINT64_MAX;
	x->passive = false;
	accepted(&m);
	x->passive = true;
	refused(&m, "rates.passive");
	x->out = 0;
	refused(&m, "rates.passive");
	x->in = 0;
	accepted(&m);
	x->n = 2;
	x->rates[0].agent = x->rates[1].agent;
	refused(&m, "rates.rates");
	x->rates[0].agent = (struct cc_id){{0}};
	refused(&m, "rates.rates.agent");
}
END_TEST

/* Makes a vote for an all-reduce. */
static void fresh_vote(void)
{
	do
		fresh(WM_OP_VOTE);
	while (m.u.op_vote.is_sync || m.u.op_vote.refusal.code);
}

START_TEST(limits_of_unmet_are_enforced)
{
	struct wm_unmet *u = &m.u.unmet;

	fresh(WM_UNMET);
	u->ballot = WIRE_TOPOLOGY;
	u->kind = WM_WAIT_STOPPED;
	refused(&m, "unmet.kind");
	u->kind = UINT32_MAX;
	refused(&m, "unmet.kind");
	u->kind = WM_WAIT_SYNC;
	u->code = 0;
	refused(&m, "unmet.code");
	u->code = 256;
	refused(&m, "unmet.code");
	u->code = 255;
	accepted(&m);
	u->ballot = WIRE_PENDING;
	refused(&m, "unmet.ballot");
	u->kind = WM_WAIT_BALLOT;
	refused(&m, "unmet.code");
	u->code = 0;
	accepted(&m);
	u->ballot = WIRE_BALLOTS;
	refused(&m, "unmet.ballot");
	u->ballot = WIRE_TOPOLOGY;
	u->peers[0] = (struct cc_id){{0}};
	refused(&m, "unmet.peers");
	fresh(WM_UNMET);
	u->n_peers = 0;
	refused(&m, "unmet.peers");
}
END_TEST

START_TEST(limits_of_operation_parameters_are_enforced)
{
	struct wm_op_params *p = &m.u.op_vote.params;

	fresh_vote();
	p->count = 0;
	refused(&m, "op_vote.params.count");
	p->count = (uint64_t)1 << 48;
	accepted(&m);
	p->count++;
	refused(&m, "op_vote.params.count");
	fresh_vote();
	p->dtype = 11;
	p->op = 4;
	p->quant.algo = WIRE_QUANT_MAX;
	p->quant.dtype = 66;
	p->quant.hint = 2;
	accepted(&m);
	p->dtype = 12;
	refused(&m, "op_vote.params.dtype");
	p->dtype = 0;
	p->op = 5;
	refused(&m, "op_vote.params.op");
	p->op = 0;
	p->quant.algo = WIRE_QUANT_MAX + 1;
	refused(&m, "op_vote.params.quant_algo");
	p->quant.algo = 0;
	p->quant.dtype = 67;
	refused(&m, "op_vote.params.quant_dtype");
	p->quant.dtype = 0;
	p->quant.hint = 3;
	refused(&m, "op_vote.params.quant_hint");
	fresh_vote();
	m.u.op_vote.seq = 7;
	m.u.op_vote.route = CC_ALGO_RINGS;
	accepted(&m);
	m.u.op_vote.route++;
	refused(&m, "op_vote.route");
	m.u.op_vote.route = CC_ALGO_DIRECT;
	m.u.op_vote.seq = 0;
	refused(&m, "op_vote.route");
	m.u.op_vote.route = 0;
	m.u.op_vote.epoch = 1;
	refused(&m, "op_vote.epoch");
	fresh_vote();
	m.u.op_vote.waits_for = WM_WAIT_FOR_MAIN;
	accepted(&m);
	m.u.op_vote.waits_for = WM_WAIT_FOR_MAIN + 1;
	refused(&m, "op_vote.waits_for");
}
END_TEST

/* Returns n different ids. */
static struct cc_id *many_ids(uint32_t n)
{
	struct cc_id *v = calloc(n, sizeof *v);

	ck_assert_ptr_nonnull(v);
	for (uint32_t i = 0; i < n; i++)
		v[i] = sample_id(&limits_rng);
	return v;
}

START_TEST(peers_of_a_vote_are_limited_and_differ)
{
	struct wm_op_vote *v = &m.u.op_vote;

	fresh(WM_OP_VOTE);
	v->n_peers = 0;
	refused(&m, "op_vote.peers");
	free(v->peers);
	v->peers = many_ids(WM_PEERS_MAX + 1);
	v->n_peers = WM_PEERS_MAX + 1;
	refused(&m, "op_vote.peers");
	v->n_peers = WM_PEERS_MAX;
	accepted(&m);
	v->peers[0] = v->peers[WM_PEERS_MAX - 1];
	refused(&m, "op_vote.peers");
	v->n_peers = 2;
	accepted(&m);
	v->peers[1] = (struct cc_id){{0}};
	refused(&m, "op_vote.peers");
}
END_TEST

START_TEST(limits_of_refusals_are_enforced)
{
	struct wm_op_vote *v = &m.u.op_vote;

	fresh(WM_OP_VOTE);
	*v = (struct wm_op_vote){
		.tag = 5, .n_peers = 1, .peers = v->peers, .refusal = {.code = 255}};
	accepted(&m);
	v->refusal.code = 256;
	refused(&m, "op_vote.refusal.code");
	v->refusal.code = 1;
	v->seq = 1;
	refused(&m, "op_vote.refusal");
	v->seq = 0;
	v->spec_seq = 1;
	refused(&m, "op_vote.refusal");
	v->spec_seq = 0;
	v->is_sync = true;
	refused(&m, "op_vote.tag");
	v->tag = 0;
	accepted(&m);
}
END_TEST

START_TEST(limits_of_reports_are_enforced)
{
	struct wm_round_report *p = &m.u.round_report;

	fresh(WM_LINK_LOST);
	m.u.link_lost.agent = (struct cc_id){{0}};
	refused(&m, "link_lost.agent");
	fresh(WM_LINK_LOST);
	m.u.link_lost.inbound = true;
	m.u.link_lost.smaller = true;
	refused(&m, "link_lost.smaller");
	fresh(WM_OP_REPORT);
	m.u.op_report.seq = 0;
	refused(&m, "op_report.seq");
	fresh(WM_OP_REPORT);
	m.u.op_report.ok = true;
	m.u.op_report.code = 1;
	refused(&m, "op_report.code");
	m.u.op_report.ok = false;
	accepted(&m);
	m.u.op_report.code = 256;
	refused(&m, "op_report.code");
	fresh(WM_ROUND_REPORT);
	free(p->failures);
	p->failures = calloc(WM_FAILURES_MAX + 1, sizeof *p->failures);
	ck_assert_ptr_nonnull(p->failures);
	for (size_t i = 0; i <= WM_FAILURES_MAX; i++)
		p->failures[i].agent = sample_id(&limits_rng);
	p->n_failures = WM_FAILURES_MAX + 1;
	refused(&m, "round_report.failures");
	p->n_failures = WM_FAILURES_MAX;
	accepted(&m);
	p->failures[WM_FAILURES_MAX - 1].agent = (struct cc_id){{0}};
	refused(&m, "round_report.failures.agent");
}
END_TEST

/* Makes a round with one ring of three hosts. */
static struct wm_ring *fresh_ring(void)
{
	struct wm_ring *ring;

	wire_master_clear(&m);
	m.type = WM_ROUND;
	m.u.round.n_rings = 1;
	ring = m.u.round.rings = calloc(1, sizeof *ring);
	ck_assert_ptr_nonnull(ring);
	*ring = (struct wm_ring){
		.hosts = 3,
		.pos = 2,
		.pool_size = 1,
		.next = {.agent = sample_id(&limits_rng), .port = 1, .n_addrs = 1},
		.prev = sample_id(&limits_rng),
		.n_members = 1,
		.members = many_ids(1),
	};
	ring->next.addrs[0] = sample_addr(&limits_rng, 1);
	return ring;
}

START_TEST(limits_of_rings_are_enforced)
{
	struct wm_ring *ring = fresh_ring();

	accepted(&m);
	ring->hosts = 0;
	refused(&m, "round.rings.hosts");
	ring->hosts = 65536;
	accepted(&m);
	ring->hosts = 65537;
	refused(&m, "round.rings.hosts");
	ring = fresh_ring();
	ring->pos = 3;
	refused(&m, "round.rings.pos");
	ring = fresh_ring();
	ring->pool_size = 0;
	refused(&m, "round.rings.pool_size");
	ring->pool_size = 65;
	refused(&m, "round.rings.pool_size");
	ring = fresh_ring();
	ring->prev = (struct cc_id){{0}};
	refused(&m, "round.rings.prev");
	ring = fresh_ring();
	ring->n_members = 0;
	refused(&m, "round.rings.members");
	ring->n_members = 1;
	ring->members[0] = (struct cc_id){{0}};
	refused(&m, "round.rings.members");
	ring = fresh_ring();
	ring->hosts = 4;
	ring->others = calloc(2, sizeof *ring->others);
	ring->others[0] = ring->others[1] = ring->next;
	ring->n_others = 2;
	accepted(&m);
	ring->n_others = 1;
	refused(&m, "round.rings.others");
	ring->n_others = 2;
	ring->hosts = 5;
	refused(&m, "round.rings.others");
	ring->hosts = 4;
	ring->others[1].port = 0;
	refused(&m, "round.rings.others.port");
	/* A ring of one host has no neighbours. */
	ring = fresh_ring();
	ring->hosts = 1;
	ring->pos = 0;
	ring->next = (struct wm_endpoint){0};
	ring->prev = (struct cc_id){{0}};
	accepted(&m);
}
END_TEST

/* Makes a ring of four hosts with a plan of two rings. */
static struct wm_ring *fresh_planned_ring(void)
{
	static const uint16_t order[] = {0, 1, 2, 3, 2, 0, 3, 1};
	struct wm_ring *ring = fresh_ring();

	ring->hosts = 4;
	ring->n_others = 2;
	ring->others = calloc(2, sizeof *ring->others);
	ck_assert_ptr_nonnull(ring->others);
	ring->others[0] = ring->others[1] = ring->next;
	ring->plan = (struct wm_plan){.n = 2, .shares = {1, UINT16_MAX}, .n_order = 8};
	ring->plan.order = calloc(CC_RINGS_MAX * CC_ROUTE_HOSTS_MAX + 1, sizeof *order);
	ck_assert_ptr_nonnull(ring->plan.order);
	memcpy(ring->plan.order, order, sizeof order);
	return ring;
}

START_TEST(limits_of_plans_are_enforced)
{
	struct wm_ring *ring = fresh_planned_ring();
	struct wm_plan *p = &ring->plan;

	accepted(&m);
	ring->await_plan = true;
	accepted(&m);
	p->shares[1] = 0;
	refused(&m, "round.rings.plan.shares");
	p->shares[1] = 1;
	p->n = 1;
	p->n_order = 4;
	refused(&m, "round.rings.plan.shares");
	p->n = 2;
	refused(&m, "round.rings.plan.order");
	p->n_order = 9;
	refused(&m, "round.rings.plan.order");
	p->n_order = CC_RINGS_MAX * CC_ROUTE_HOSTS_MAX + 1;
	refused(&m, "round.rings.plan.order");
	p->n_order = 8;
	accepted(&m);
	p->order[7] = 4;
	refused(&m, "round.rings.plan.order");
	p->order[7] = 64;
	refused(&m, "round.rings.plan.order");
	/* A host comes twice. */
	p->order[7] = 2;
	refused(&m, "round.rings.plan.order");
	/* Agents open the links of a plan with the endpoints of the others. */
	ring = fresh_planned_ring();
	ring->n_others = 0;
	refused(&m, "round.rings.plan.order");
}
END_TEST

/* Four rings of 64 hosts are the largest plan. */
START_TEST(largest_plan_is_accepted)
{
	struct wm_ring *ring = fresh_planned_ring();
	struct wm_endpoint e = ring->next;
	uint32_t i;

	free(ring->others);
	ring->hosts = CC_ROUTE_HOSTS_MAX;
	ring->n_others = ring->hosts - 2;
	ring->others = calloc(ring->n_others, sizeof *ring->others);
	ck_assert_ptr_nonnull(ring->others);
	for (i = 0; i < ring->n_others; i++)
		ring->others[i] = e;
	ring->plan.n = CC_RINGS_MAX;
	ring->plan.n_order = CC_RINGS_MAX * ring->hosts;
	for (i = 0; i < CC_RINGS_MAX; i++)
		ring->plan.shares[i] = UINT16_MAX;
	for (i = 0; i < ring->plan.n_order; i++)
		ring->plan.order[i] = (uint16_t)(i % ring->hosts);
	accepted(&m);
}
END_TEST

START_TEST(limits_of_endpoints_are_enforced)
{
	struct wm_endpoint *e = &fresh_ring()->next;

	e->agent = (struct cc_id){{0}};
	refused(&m, "round.rings.next.agent");
	e = &fresh_ring()->next;
	e->port = 0;
	refused(&m, "round.rings.next.port");
	e = &fresh_ring()->next;
	e->addrs[0].port = 0;
	refused(&m, "round.rings.next.addrs");
	e = &fresh_ring()->next;
	e->n_addrs = 0;
	refused(&m, "round.rings.next.addrs");
	e->at_master = true;
	accepted(&m);
	e->n_addrs = WM_ADDRS_MAX;
	for (size_t i = 0; i < WM_ADDRS_MAX; i++)
		e->addrs[i] = sample_addr(&limits_rng, 1);
	accepted(&m);
}
END_TEST

START_TEST(limits_of_rounds_are_enforced)
{
	struct wm_round *p = &m.u.round;

	wire_master_clear(&m);
	m.type = WM_ROUND;
	p->rings = calloc(WM_RINGS_MAX + 1, sizeof *p->rings);
	ck_assert_ptr_nonnull(p->rings);
	for (uint32_t i = 0; i <= WM_RINGS_MAX; i++)
		p->rings[i] = (struct wm_ring){.group = i,
			.hosts = 1,
			.pool_size = 1,
			.n_members = 1,
			.members = many_ids(1)};
	p->n_rings = WM_RINGS_MAX + 1;
	refused(&m, "round.rings");
	p->n_rings = WM_RINGS_MAX;
	accepted(&m);
	p->rings[WM_RINGS_MAX - 1].group = 0;
	refused(&m, "round.rings");
	p->n_rings = WM_RINGS_MAX + 1; /* so that all memory is freed */
}
END_TEST

START_TEST(limits_of_views_are_enforced)
{
	struct wm_view *w = &m.u.view;

	wire_master_clear(&m);
	m.type = WM_VIEW;
	w->own = calloc(WM_RINGS_MAX + 1, sizeof *w->own);
	ck_assert_ptr_nonnull(w->own);
	for (uint32_t i = 0; i <= WM_RINGS_MAX; i++)
		w->own[i].group = i;
	w->n = WM_RINGS_MAX + 1;
	refused(&m, "view.own");
	/* Each element has two bytes. The smallest elements of all must still fit into the memory
	 * bound. */
	w->n = WM_RINGS_MAX;
	accepted(&m);
	w->own[1].group = 0;
	refused(&m, "view.own");
	w->n = 1;
	memset(w->own[0].loss, 'x', sizeof w->own[0].loss);
	w->own[0].loss[WM_TEXT_MAX - 1] = '\0';
	accepted(&m);
}
END_TEST

START_TEST(limits_of_operation_messages_are_enforced)
{
	fresh(WM_OP_START);
	m.u.op_start.seq = 0;
	refused(&m, "op_start.seq");
	do
		fresh(WM_OP_START);
	while (m.u.op_start.is_sync);
	m.u.op_start.route = CC_ALGO_RINGS;
	accepted(&m);
	m.u.op_start.route++;
	refused(&m, "op_start.route");
	fresh(WM_OP_DONE);
	m.u.op_done.seq = 0;
	refused(&m, "op_done.seq");
	fresh(WM_OP_DONE);
	m.u.op_done.next = 9;
	m.u.op_done.next_route = CC_ALGO_FIXED_COUNT;
	refused(&m, "op_done.reserved_route");
	m.u.op_done.next = 0;
	m.u.op_done.next_route = CC_ALGO_TREE;
	refused(&m, "op_done.reserved_route");
	fresh(WM_OP_ABORT);
	m.u.op_abort.seq = 0;
	accepted(&m);
	m.u.op_abort.code = 0;
	refused(&m, "op_abort.code");
	m.u.op_abort.code = 256;
	refused(&m, "op_abort.code");
}
END_TEST

/* Encoded names and texts are clean, even if the struct contains unclean bytes. */
START_TEST(encoder_cleans_names_and_texts)
{
	struct wm_msg got;
	const char *why = "";
	struct bytes b;

	fresh(WM_HELLO);
	memset(m.u.hello.name, '\xc3', sizeof m.u.hello.name - 1);
	m.u.hello.name[WM_NAME_MAX - 1] = '\0';
	b = encode(&m);
	ck_assert_msg(wire_master_decode(b.p, b.len, &got, &why) == 0, "%s", why);
	ck_assert_uint_eq(strspn(got.u.hello.name, "?"), WM_NAME_MAX - 1);
	free(b.p);
}
END_TEST

START_TEST(encoder_refuses_unknown_types_and_large_messages)
{
	uint8_t *frame = NULL;
	size_t len = 7;

	wire_master_clear(&m);
	m.type = (enum wm_type)31;
	ck_assert_int_eq(wire_master_encode(&m, &frame, &len), CC_ERR_INVAL);
	/* 64 rings of 1024 members are more than a frame holds. */
	m.type = WM_ROUND;
	m.u.round.n_rings = 64;
	m.u.round.rings = calloc(64, sizeof *m.u.round.rings);
	ck_assert_ptr_nonnull(m.u.round.rings);
	for (uint32_t i = 0; i < 64; i++)
		m.u.round.rings[i] = (struct wm_ring){.group = i,
			.hosts = 1,
			.pool_size = 1,
			.n_members = WM_PEERS_MAX,
			.members = many_ids(WM_PEERS_MAX)};
	ck_assert_int_eq(wire_master_encode(&m, &frame, &len), CC_ERR_LIMIT);
	ck_assert_ptr_null(frame);
	ck_assert_uint_eq(len, 7);
	m.u.round.n_rings = 50;
	accepted(&m);
	m.u.round.n_rings = 64;
}
END_TEST

Suite *master_limits_suite(void)
{
	Suite *s = suite_create("master_limits");
	TCase *limits = tcase_create("limits");

	tcase_add_checked_fixture(limits, limits_setup, limits_teardown);
	tcase_add_test(limits, limits_of_hello_are_enforced);
	tcase_add_test(limits, term_and_run_key_need_a_run);
	tcase_add_test(limits, invalid_version_ranges_are_refused);
	tcase_add_test(limits, limits_of_hello_ack_are_enforced);
	tcase_add_test(limits, limits_of_the_bounds_are_enforced);
	tcase_add_test(limits, limits_of_messages_about_peers_are_enforced);
	tcase_add_test(limits, limits_of_operation_parameters_are_enforced);
	tcase_add_test(limits, limits_of_unmet_are_enforced);
	tcase_add_test(limits, limits_of_a_measurement_are_enforced);
	tcase_add_test(limits, agents_of_a_measurement_are_limited_and_differ);
	tcase_add_test(limits, limits_of_results_of_a_measurement_are_enforced);
	tcase_add_test(limits, limits_of_remembered_rates_are_enforced);
	tcase_add_test(limits, peers_of_a_vote_are_limited_and_differ);
	tcase_add_test(limits, limits_of_refusals_are_enforced);
	tcase_add_test(limits, limits_of_reports_are_enforced);
	tcase_add_test(limits, limits_of_rings_are_enforced);
	tcase_add_test(limits, limits_of_plans_are_enforced);
	tcase_add_test(limits, largest_plan_is_accepted);
	tcase_add_test(limits, limits_of_endpoints_are_enforced);
	tcase_add_test(limits, limits_of_rounds_are_enforced);
	tcase_add_test(limits, limits_of_views_are_enforced);
	tcase_add_test(limits, limits_of_operation_messages_are_enforced);
	tcase_add_test(limits, encoder_cleans_names_and_texts);
	tcase_add_test(limits, encoder_refuses_unknown_types_and_large_messages);
	suite_add_tcase(s, limits);
	return s;
}
