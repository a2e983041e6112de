/* SPDX-License-Identifier: MIT
 *
 * The tables of the messages of wire_member.h, and their rules.
 */
#include "common/cc_plan.h"
#include "common/cc_route.h"
#include "proto/wire_master_tables.h"
#include "proto/wire_plan.h"

#define INTERVAL_MAX_MS 3600000u

/* ---- knock, hello, addresses ---- */

#define VERSIONS(path)                                                                             \
	path ".version_min: must be 1 to " path ".version_max, which must be at most 65535"
#define KNOWN_VERSIONS wire_versions(m->version_min, m->version_max, WM_VERSION_MIN, WM_VERSION_MAX)

CONDITION(knock_versions, struct wm_knock, KNOWN_VERSIONS)

static const struct wire_field knock_fields[] = {
	F(knock, version_min, U32),
	F(knock, version_max, U32, RULE(knock_versions, VERSIONS("knock"))),
	F(knock, share, KEY("knock.share")),
};
const struct wire_table wm_knock_table = {TABLE(knock, knock, knock_fields)};

static const struct wire_field knock_ack_fields[] = {F(knock_ack, share, KEY("knock_ack.share"))};
const struct wire_table wm_knock_ack_table = {TABLE(knock_ack, knock_ack, knock_ack_fields)};

static const struct wire_field address_fields[] = {WIRE_ADDRESS(1)};
const struct wire_table wm_address_table = {
	WIRE_TABLE(struct cc_addr, ccoip__address__descriptor, address_fields)};

/* The port of such an address may be missing. */
static const struct wire_field agent_address_fields[] = {WIRE_ADDRESS(0)};
static const struct wire_table agent_address = {
	WIRE_TABLE(struct cc_addr, ccoip__address__descriptor, agent_address_fields)};

/* The addresses and ports of an agent. */
#define AGENT_ADDRS(s, path)                                                                       \
	LIST(s, addrs, n_addrs, LIST_OF(agent_address),                                            \
		AT_MOST(WM_ADDRS_MAX, path ".addrs: must be at most 64"),                          \
		.each = path ".addrs: must be 4 or 16 bytes, with a port of at most 65535",        \
		RULE(s##_addrs, path ".addrs: must not be 0.0.0.0 or ::")),                        \
		F(s, port_p2p, PORT(path ".port_p2p")),                                            \
		F(s, port_shared_state, PORT_OR_NONE(path ".port_shared_state")),                  \
		F(s, port_benchmark, PORT_OR_NONE(path ".port_benchmark"))

/* The master forwards the addresses, so a useless address would cause failures on all agents. */
static bool none_is_any(const struct cc_addr *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (cc_addr_is_any(&v[i]))
			return false;
	return true;
}

CONDITION(addresses_addrs, struct wm_addresses, none_is_any(m->addrs, m->n_addrs))

static const struct wire_field addresses_fields[] = {
	F(addresses, advertised, BOOL),
	AGENT_ADDRS(addresses, "addresses"),
};
const struct wire_table wm_addresses_table = {TABLE(addresses, addresses, addresses_fields)};

CONDITION(hello_versions, struct wm_hello, KNOWN_VERSIONS)
CONDITION(hello_addrs, struct wm_hello, none_is_any(m->addrs, m->n_addrs))
CONDITION(hello_run_key, struct wm_hello, !cc_id_is_zero(&m->run) || cc_id_is_zero(&m->run_key))
CONDITION(hello_term, struct wm_hello, m->term == 0 || !cc_id_is_zero(&m->run_key))

static const struct wire_field hello_fields[] = {
	F(hello, version_min, U32),
	F(hello, version_max, U32, RULE(hello_versions, VERSIONS("hello"))),
	F(hello, features, FIXED64),
	F(hello, agent, ID("hello.agent")),
	F(hello, name, HOST_NAME("hello.name")),
	F(hello, advertised, BOOL),
	AGENT_ADDRS(hello, "hello"),
	F(hello, run, ID_OR_NONE("hello.run")),
	F(hello, run_key, ID_OR_NONE("hello.run_key"),
		RULE(hello_run_key, "hello.run_key: must be empty without run")),
	F(hello, term, U64_IN(0, WM_TERM_MAX, "hello.term: must be at most 2^40"),
		RULE(hello_term, "hello.term: must be 0 without run_key")),
	F(hello, identity, KEY_OR_NONE("hello.identity")),
	F(hello, proof, KEY_OR_NONE("hello.proof")),
	F(hello, newcomers, BOOL),
	F(hello, left, BOOL),
};
const struct wire_table wm_hello_table = {TABLE(hello, hello, hello_fields)};

/* ---- hello_ack, refuse ---- */

static int before_hello_ack(const void *p, void *plain, const char **why)
{
	const Ccoip__HelloAck *from = p;

	(void)plain;
	if (from->version >= WM_VERSION_MIN && from->version <= WM_VERSION_MAX)
		return 0;
	*why = "hello_ack.version: not one of those offered";
	return CC_ERR_VERSION;
}

static int after_hello_ack(void *plain, const char **why)
{
	static const char *const texts[CC_BOUNDS] = {
		[CC_BOUND_LINK] = "hello_ack.link_timeout_ms: must be 2000 to 90000",
		[CC_BOUND_STREAM] = "hello_ack.stream_timeout_ms: must be 2000 to 90000, and no "
				    "less than link_timeout_ms",
		[CC_BOUND_STUCK] = "hello_ack.stuck_timeout_ms: must be 1000 to 90000",
		[CC_BOUND_NEW_LINK] = "hello_ack.new_link_timeout_ms: must be 500 to 60000",
		[CC_BOUND_ROUND] = "hello_ack.round_timeout_ms: must be 2000 to 300000, and at "
				   "least 2 * new_link_timeout_ms + 1000",
	};
	struct wm_hello_ack *m = plain;
	enum cc_bound wrong;

	cc_bounds_complete(&m->bounds);
	wrong = cc_bounds_wrong(&m->bounds);
	return wrong == CC_BOUNDS ? 0 : wire_bad(why, texts[wrong]);
}

#define TIMEOUT_LIMIT "hello_ack.timeout_ms: must be heartbeat_ms to 3600000"
CONDITION(timeout_fits, struct wm_hello_ack, m->timeout_ms >= m->heartbeat_ms)

static const struct wire_field hello_ack_fields[] = {
	F(hello_ack, version, U32),
	F(hello_ack, features, FIXED64),
	F(hello_ack, run, ID("hello_ack.run")),
	F(hello_ack, heartbeat_ms,
		U32_IN(1, INTERVAL_MAX_MS, "hello_ack.heartbeat_ms: must be 1 to 3600000")),
	F(hello_ack, timeout_ms, U32_IN(0, INTERVAL_MAX_MS, TIMEOUT_LIMIT),
		RULE(timeout_fits, TIMEOUT_LIMIT)),
	F(hello_ack, segment_max,
		U32_IN(CC_PLAN_SEGMENT_MIN, CC_PLAN_SEGMENT_MAX,
			"hello_ack.segment_max: must be 8192 to 262144")),
	F(hello_ack, term, U64_FROM_1("hello_ack.term")),
	F(hello_ack, resume, BOOL),
	AS(hello_ack, link_timeout_ms, bounds.ms[CC_BOUND_LINK], U32),
	AS(hello_ack, stream_timeout_ms, bounds.ms[CC_BOUND_STREAM], U32),
	AS(hello_ack, stuck_timeout_ms, bounds.ms[CC_BOUND_STUCK], U32),
	AS(hello_ack, new_link_timeout_ms, bounds.ms[CC_BOUND_NEW_LINK], U32),
	AS(hello_ack, round_timeout_ms, bounds.ms[CC_BOUND_ROUND], U32),
};
const struct wire_table wm_hello_ack_table = {TABLE(hello_ack, hello_ack, hello_ack_fields),
	.before = before_hello_ack, .after = after_hello_ack};

CONDITION(refuse_versions, struct wm_refuse,
	wire_versions(m->version_min, m->version_max, 1, UINT16_MAX))

static const struct wire_field refuse_fields[] = {
	F(refuse, version_min, U32),
	F(refuse, version_max, U32, RULE(refuse_versions, VERSIONS("refuse"))),
	F(refuse, code, CODE("refuse.code")),
	F(refuse, text, REASON("refuse.text")),
};
const struct wire_table wm_refuse_table = {TABLE(refuse, refuse, refuse_fields)};

/* ---- peers ---- */

static const struct wire_field join_fields[] = {
	F(join, peer, ID("join.peer")),
	F(join, group, U32),
	F(join, pool_size, U32_IN(1, WM_POOL_MAX, "join.pool_size: must be 1 to 64")),
	F(join, pid, U32),
	F(join, name, HOST_NAME("join.name")),
	F(join, token, ID("join.token")),
	F(join, phase, U32_IN(0, WM_JOIN_ACCEPTED, "join.phase: must be 0 to 2")),
	F(join, view_id, U64),
	F(join, global, U32),
	F(join, thread, U64),
	F(join, left, BOOL),
	F(join, ballots, NUMBERS),
};
const struct wire_table wm_join_table = {TABLE(join, join, join_fields)};

static const struct wire_field leave_fields[] = {
	F(leave, peer, ID("leave.peer")),
	F(leave, kind, U32_IN(0, WM_LEAVE_STOPPED, "leave.kind: must be 0 to 2")),
	F(leave, text, REASON("leave.text")),
};
const struct wire_table wm_leave_table = {TABLE(leave, leave, leave_fields)};

static const struct wire_field left_fields[] = {F(left, peer, ID("left.peer"))};
const struct wire_table wm_left_table = {TABLE(left, left, left_fields)};

static const struct wire_field ballot_vote_fields[] = {
	F(ballot_vote, peer, ID("ballot_vote.peer")),
	F(ballot_vote, kind, BALLOT_FROM(0, "ballot_vote.kind")),
	F(ballot_vote, number, U64),
};
const struct wire_table wm_ballot_vote_table = {
	TABLE(ballot_vote, ballot_vote, ballot_vote_fields)};

static const struct wire_field ballot_end_fields[] = {
	F(ballot_end, kind, BALLOT_FROM(1, "ballot_end.kind")),
	F(ballot_end, number, U64),
	F(ballot_end, text, REASON("ballot_end.text")),
};
const struct wire_table wm_ballot_end_table = {TABLE(ballot_end, ballot_end, ballot_end_fields)};

static const struct wire_field stopped_fields[] = {
	F(stopped, peer, ID("stopped.peer")),
	F(stopped, is, BOOL),
};
const struct wire_table wm_stopped_table = {TABLE(stopped, stopped, stopped_fields)};

static const struct wire_field kick_fields[] = {
	F(kick, peer, ID("kick.peer")),
	F(kick, code, CODE("kick.code")),
	F(kick, text, REASON("kick.text")),
};
const struct wire_table wm_kick_table = {TABLE(kick, kick, kick_fields)};

static const struct wire_field heartbeat_fields[] = {F(heartbeat, awaited, BOOL)};
const struct wire_table wm_heartbeat_table = {TABLE(heartbeat, heartbeat, heartbeat_fields)};

/* ---- links, probes ---- */

CONDITION(smaller_is_outbound, struct wm_link_lost, !m->smaller || !m->inbound)

static const struct wire_field link_lost_fields[] = {
	F(link_lost, agent, ID("link_lost.agent")),
	F(link_lost, inbound, BOOL),
	F(link_lost, text, REASON("link_lost.text")),
	F(link_lost, smaller, BOOL,
		RULE(smaller_is_outbound, "link_lost.smaller: must be false with inbound")),
};
const struct wire_table wm_link_lost_table = {TABLE(link_lost, link_lost, link_lost_fields)};

static const struct wire_field mesh_fields[] = {
	F(mesh, group, U32),
	F(mesh, up, BOOL),
	F(mesh, reopens, U32),
	F(mesh, plan_up, BOOL),
};
const struct wire_table wm_mesh_table = {TABLE(mesh, mesh, mesh_fields)};

static const struct wire_field reopen_fields[] = {F(link_reopen, agent, ID("link_reopen.agent"))};
const struct wire_table wm_link_reopen_table = {TABLE(link_reopen, link_reopen, reopen_fields)};

int wm_endpoint_has_addrs(const void *plain)
{
	const struct wm_endpoint *m = plain;

	return m->n_addrs > 0 || m->at_master;
}

ENDPOINT_TABLE(probe_to, "probe.to");
ENDPOINT_TABLE(probe_state, "probe.state");

CONDITION(probes_state, struct wm_probe, m->state.port != 0)

static const struct wire_field probe_fields[] = {
	F(probe, number, U64_FROM_1("probe.number")),
	F(probe, to, ENDPOINT(probe_to, "probe.to")),
	F(probe, state, MESSAGE(probe_state), .when = probes_state),
};
const struct wire_table wm_probe_table = {TABLE(probe, probe, probe_fields)};

CONDITION(limit_is_failure, struct wm_probed, !m->limit || !m->ok)

static const struct wire_field probed_fields[] = {
	F(probed, number, U64_FROM_1("probed.number")),
	F(probed, ok, BOOL),
	F(probed, text, REASON("probed.text")),
	F(probed, limit, BOOL, RULE(limit_is_failure, "probed.limit: must be false if ok is true")),
};
const struct wire_table wm_probed_table = {TABLE(probed, probed, probed_fields)};

/* ---- measurements ---- */

#define MEASURE_TO   "measure.to: must be at most 63"
#define MEASURE_FROM "measure.from: must be at most 63 ids of 16 bytes, not all zero"

ENDPOINT_TABLE(measure_to, "measure.to");

/* Defines the table of a host, and the condition under which its owner names it. */
#define HOST_TABLE(owner, s, path)                                                                 \
	static const struct wire_field owner##_host_fields[] = {                                   \
		F(host, name, HOST_NAME(path ".host.name")),                                       \
		F(host, addr, MESSAGE(wm_address_table), .text = path ".host.addr: must be there", \
			.each = path ".host.addr: must be 4 or 16 bytes, with a port of 1 to "     \
				     "65535"),                                                     \
	};                                                                                         \
	static const struct wire_table owner##_host = {TABLE(host, host, owner##_host_fields)};    \
	CONDITION(owner##_names_host, s, m->host.addr.family != 0)

HOST_TABLE(measure, struct wm_measure, "measure")

static const struct wire_field measure_fields[] = {
	F(measure, number, U64_FROM_1("measure.number")),
	F(measure, ms, U32_IN(1, WM_MEASURE_MS_MAX, "measure.ms: must be 1 to 10000")),
	F(measure, streams, U32_IN(1, WM_MEASURE_STREAMS_MAX, "measure.streams: must be 1 to 16")),
	LIST(measure, to, n_to, LIST_OF(measure_to), .owned = true,
		AT_MOST(WM_MEASURE_AGENTS_MAX, MEASURE_TO),
		UNIQUE(sizeof(struct cc_id), "measure.to: must not name an agent twice")),
	LIST(measure, from, n_from,
		LIST_OF_ITEMS(.kind = WIRE_ID, .size = sizeof(struct cc_id), .text = MEASURE_FROM),
		.owned = true, AT_MOST(WM_MEASURE_AGENTS_MAX, MEASURE_FROM),
		UNIQUE(sizeof(struct cc_id), "measure.from: must not name an agent twice")),
	F(measure, round, U32),
	F(measure, rounds, U32),
	F(measure, hold, BOOL),
	F(measure, host, MESSAGE(measure_host), .when = measure_names_host),
};
const struct wire_table wm_measure_table = {TABLE(measure, measure, measure_fields), .owns = true};

CONDITION(was_measured, struct wm_measured_result, m->ok)
CONDITION(result_limit_is_failure, struct wm_measured_result, !m->limit || !m->ok)
CONDITION(result_busy_is_failure, struct wm_measured_result, !m->busy || !m->ok)

static const struct wire_field measured_result_fields[] = {
	F(measured_result, agent, ID("measured.results.agent")),
	F(measured_result, ok, BOOL),
	F(measured_result, rate, U64, .when = was_measured),
	F(measured_result, trip_us, U32, .when = was_measured),
	F(measured_result, text, REASON("measured.results.text")),
	F(measured_result, limit, BOOL,
		RULE(result_limit_is_failure,
			"measured.results.limit: must be false if ok is true")),
	F(measured_result, rate_of_all, U64, .when = was_measured),
	F(measured_result, confidence,
		U32_IN(0, 100, "measured.results.confidence: must be 0 to 100"),
		.when = was_measured),
	F(measured_result, busy, BOOL,
		RULE(result_busy_is_failure, "measured.results.busy: must be false if ok is true")),
};
static const struct wire_table measured_result = {
	TABLE(measured_result, measured_result, measured_result_fields)};

static const struct wire_field measured_fields[] = {
	F(measured, number, U64_FROM_1("measured.number")),
	LIST(measured, results, n, LIST_OF(measured_result), .owned = true,
		IN(1, WM_MEASURE_AGENTS_MAX, "measured.results: must be 1 to 63"),
		UNIQUE(sizeof(struct cc_id), "measured.results: must not name an agent twice")),
};
const struct wire_table wm_measured_table = {
	TABLE(measured, measured, measured_fields), .owns = true};

HOST_TABLE(rate, struct wm_rate, "rates.rates")

static const struct wire_field rate_fields[] = {
	F(rate, agent, ID("rates.rates.agent")),
	F(rate, rate, U64),
	F(rate, trip_us, U32),
	F(rate, age_s, U32),
	F(rate, confidence, U32_IN(0, 100, "rates.rates.confidence: must be 0 to 100")),
	F(rate, host, MESSAGE(rate_host), .when = rate_names_host),
};
static const struct wire_table rate = {TABLE(rate, rate, rate_fields)};

CONDITION(rates_have_no_caps, struct wm_rates, !m->passive || (m->out == 0 && m->in == 0))

static const struct wire_field rates_fields[] = {
	LIST(rates, rates, n, LIST_OF(rate), .owned = true,
		AT_MOST(WM_RATES_MAX, "rates.rates: must be at most 1024"),
		UNIQUE(sizeof(struct cc_id), "rates.rates: must not name an agent twice")),
	F(rates, out, U64),
	F(rates, in, U64),
	F(rates, caps_age_s, U32),
	F(rates, passive, BOOL,
		RULE(rates_have_no_caps, "rates.passive: must be false if out or in is not 0")),
};
const struct wire_table wm_rates_table = {TABLE(rates, rates, rates_fields), .owns = true};

/* ---- rounds ---- */

static const struct wire_field failure_fields[] = {
	F(failure, agent, ID("round_report.failures.agent")),
	F(failure, text, REASON("round_report.failures.text")),
	F(failure, limit, BOOL),
};
static const struct wire_table failure = {TABLE(failure, failure, failure_fields)};

static const struct wire_field round_report_fields[] = {
	F(round_report, round, U64),
	LIST(round_report, failures, n_failures, LIST_OF(failure), .owned = true,
		AT_MOST(WM_FAILURES_MAX, "round_report.failures: must be at most 64")),
};
const struct wire_table wm_round_report_table = {
	TABLE(round_report, round_report, round_report_fields), .owns = true};

/* Defines a table of plans for a field with this path. */
#define PLAN_TABLE(table, path)                                                                    \
	static const struct wire_field table##_fields[] = {                                        \
		LIST(plan, shares, n,                                                              \
			LIST_OF_ITEMS(U16_IN(1, UINT16_MAX, path ".shares: must be 1 to 65535")),  \
			IN(2, CC_RINGS_MAX, path ".shares: must be 2 to 4")),                      \
		LIST(plan, order, n_order,                                                         \
			LIST_OF_ITEMS(U16_IN(                                                      \
				0, CC_ROUTE_HOSTS_MAX - 1, path ".order: must be at most 63")),    \
			.owned = true,                                                             \
			AT_MOST((uint64_t)CC_RINGS_MAX * CC_ROUTE_HOSTS_MAX,                       \
				path ".order: must be at most 256")),                              \
	};                                                                                         \
	static const struct wire_table table = {TABLE(plan, plan, table##_fields), .owns = true}
#define PLAN_LIMIT(path) path ".order: must have each position of the ring once for each of shares"

static bool plan_fits(const struct wm_plan *m, uint32_t hosts)
{
	struct cc_rings rings;

	return m->n == 0 || wm_plan_rings(m, hosts, &rings) == 0;
}

ENDPOINT_TABLE(ring_next, "round.rings.next");
ENDPOINT_TABLE(ring_other, "round.rings.others");
PLAN_TABLE(ring_plan, "round.rings.plan");

#define OTHERS_LIMIT "round.rings.others: must be none, or hosts - 2 of at most 64 hosts"
CONDITION(has_neighbours, struct wm_ring, m->hosts > 1)
CONDITION(pos_is_in_ring, struct wm_ring, m->pos < m->hosts)
CONDITION(has_plan, struct wm_ring, m->plan.n > 0)
CONDITION(ring_plan_fits, struct wm_ring,
	plan_fits(&m->plan, m->hosts) && (m->plan.n == 0 || m->n_others > 0))
CONDITION(others_fit, struct wm_ring,
	m->n_others == 0 || (m->hosts <= CC_ROUTE_HOSTS_MAX && m->n_others + 2 == m->hosts))

static const struct wire_field ring_fields[] = {
	F(ring, group, U32),
	F(ring, hosts, U32_IN(1, WM_HOSTS_MAX, "round.rings.hosts: must be 1 to 65536")),
	F(ring, pos, U32, RULE(pos_is_in_ring, "round.rings.pos: must be below hosts")),
	F(ring, pool_size, U32_IN(1, WM_POOL_MAX, "round.rings.pool_size: must be 1 to 64")),
	F(ring, next, ENDPOINT(ring_next, "round.rings.next"), .when = has_neighbours),
	F(ring, prev, ID("round.rings.prev"), .when = has_neighbours),
	LIST(ring, members, n_members, PEERS("round.rings.members")),
	F(ring, prev_name, HOST_NAME("round.rings.prev_name"), .when = has_neighbours),
	F(ring, reopen, BOOL, .when = has_neighbours),
	F(ring, prev_reopens, BOOL, .when = has_neighbours),
	LIST(ring, others, n_others, LIST_OF(ring_other), .owned = true,
		AT_MOST(CC_ROUTE_HOSTS_MAX, OTHERS_LIMIT), RULE(others_fit, OTHERS_LIMIT)),
	F(ring, plan, MESSAGE(ring_plan), .when = has_plan,
		RULE(ring_plan_fits, PLAN_LIMIT("round.rings.plan"))),
	F(ring, await_plan, BOOL, .when = has_plan),
};
static const struct wire_table ring = {TABLE(ring, ring, ring_fields), .owns = true};

/* Endpoints are large. So they are counted before memory is allocated for them. */
static int before_round(const void *p, void *plain, const char **why)
{
	const Ccoip__Round *from = p;
	size_t others = 0;

	(void)plain;
	for (size_t i = 0; i < from->n_rings; i++)
		others += from->rings[i]->n_others;
	if (others > WM_OTHERS_MAX)
		return wire_bad(why, "round.rings.others: must be at most 256 of all rings");
	return 0;
}

static const struct wire_field round_fields[] = {
	F(round, round, U64),
	F(round, accept, BOOL),
	LIST(round, rings, n_rings, LIST_OF(ring), .owned = true,
		AT_MOST(WM_RINGS_MAX, "round.rings: must be at most 1024"),
		GROUPS_DIFFER("round.rings")),
	F(round, peers, U32),
	F(round, run_key, ID_OR_NONE("round.run_key")),
};
const struct wire_table wm_round_table = {
	TABLE(round, round, round_fields), .owns = true, .before = before_round};

/* ---- views ---- */

#define VIEW_SIZE(m, ...) WIRE_FIELD(struct wire_view, #m, m, __VA_ARGS__)

static const struct wire_field view_sizes_fields[] = {
	VIEW_SIZE(view_id, U64_FROM_1("view.own.at_generation.view_id")),
	VIEW_SIZE(global, U32),
	VIEW_SIZE(group, U32),
	VIEW_SIZE(groups, U32),
	VIEW_SIZE(largest, U32),
};
static const struct wire_table view_sizes = {
	WIRE_TABLE(struct wire_view, ccoip__view_sizes__descriptor, view_sizes_fields)};

CONDITION(knows_view, struct wm_group_view, m->at_generation.view_id != 0)

static const struct wire_field group_view_fields[] = {
	F(group_view, group, U32),
	F(group_view, world_size, U32),
	F(group_view, generation, U64),
	F(group_view, loss, REASON("view.own.loss")),
	F(group_view, revision, U64),
	F(group_view, at_generation, MESSAGE(view_sizes), .when = knows_view),
};
static const struct wire_table group_view = {TABLE(group_view, group_view, group_view_fields)};

static const struct wire_field view_fields[] = {
	F(view, global, U32),
	F(view, groups, U32),
	F(view, largest, U32),
	LIST(view, own, n, LIST_OF(group_view), .owned = true,
		AT_MOST(WM_RINGS_MAX, "view.own: must be at most 1024"), GROUPS_DIFFER("view.own")),
	F(view, view_id, U64),
	LIST(view, lost, n_lost, LIST_OF_ITEMS(ID("view.lost"), .size = sizeof(struct cc_id)),
		.owned = true, AT_MOST(WM_LOST_MAX, "view.lost: must be at most 256")),
	F(view, lost_all, BOOL),
	F(view, lost_floor, U64),
};
const struct wire_table wm_view_table = {TABLE(view, view, view_fields), .owns = true};

static const struct wire_field commit_fields[] = {
	F(commit, round, U64),
	F(commit, epoch, U64),
	F(commit, accept, BOOL),
	F(commit, view, MESSAGE(wm_view_table), .text = "commit.view: must be there"),
	F(commit, ballots, NUMBERS),
};
const struct wire_table wm_commit_table = {TABLE(commit, commit, commit_fields), .owns = true};

/* ---- snapshots, outcomes ---- */

PLAN_TABLE(position_plan, "resume.positions.plan");
CONDITION(position_is_in_ring, struct wm_ring_position, m->pos < m->hosts)
CONDITION(position_has_plan, struct wm_ring_position, m->plan.n > 0)
CONDITION(position_plan_fits, struct wm_ring_position, plan_fits(&m->plan, m->hosts))

static const struct wire_field position_fields[] = {
	F(ring_position, group, U32),
	F(ring_position, hosts,
		U32_IN(1, WM_HOSTS_MAX, "resume.positions.hosts: must be 1 to 65536")),
	F(ring_position, pos, U32,
		RULE(position_is_in_ring, "resume.positions.pos: must be below hosts")),
	F(ring_position, plan, MESSAGE(position_plan), .when = position_has_plan,
		RULE(position_plan_fits, PLAN_LIMIT("resume.positions.plan"))),
};
static const struct wire_table position = {
	TABLE(ring_position, ring_position, position_fields), .owns = true};

/* Outcomes are two lists, which become one array of the outer message. */
#define SEQS LIST_OF_ITEMS(U64_FROM_1("outcomes.seqs"), .at = offsetof(struct wm_outcome, seq))
#define CODES                                                                                      \
	LIST_OF_ITEMS(U32_IN(0, WIRE_CODE_MAX, "outcomes.codes: must be at most 255"),             \
		.at = offsetof(struct wm_outcome, code)),                                          \
		.parallel = true, .text = "outcomes.codes: must be one for each of seqs"

static const struct wire_field resume_outcomes_fields[] = {
	LIST_AS(resume, seqs, outcomes, n_outcomes, SEQS, .owned = true,
		AT_MOST(WM_RESUME_OUTCOMES_MAX, "resume.outcomes: must be at most 65536")),
	LIST_AS(resume, codes, outcomes, n_outcomes, CODES, .owned = true),
};
static const struct wire_table resume_outcomes = {
	TABLE(resume, outcomes, resume_outcomes_fields), .owns = true};

_Static_assert(WM_RESUME_OUTCOMES_MAX == WM_OUTCOMES_MAX * WM_RINGS_MAX, "as the header says");

static const struct wire_field resume_fields[] = {
	F(resume, epoch, U64),
	F(resume, round, U64),
	F(resume, prepared, U64),
	F(resume, last_seq, U64),
	F(resume, view, MESSAGE(wm_view_table), .text = "resume.view: must be there"),
	LIST(resume, positions, n_positions, LIST_OF(position), .owned = true,
		AT_MOST(WM_RINGS_MAX, "resume.positions: must be at most 1024"),
		GROUPS_DIFFER("resume.positions")),
	{.name = "outcomes", MESSAGE(resume_outcomes)},
	F(resume, prepared_peers, U32),
	F(resume, aborted_round, U64),
	F(resume, ring_epoch, U64),
	F(resume, ballots, NUMBERS),
};
const struct wire_table wm_resume_table = {TABLE(resume, resume, resume_fields), .owns = true};

CONDITION(succeeded_fits, struct wm_op_query, m->n_succeeded <= m->n)

static const struct wire_field op_query_fields[] = {
	F(op_query, peer, ID("op_query.peer")),
	LIST(op_query, seqs, n, LIST_OF_ITEMS(U64_FROM_1("op_query.seqs")),
		IN(1, WM_OUTCOMES_MAX, "op_query.seqs: must be 1 to 64")),
	AS(op_query, succeeded, n_succeeded, U32,
		RULE(succeeded_fits, "op_query.succeeded: must be at most the number of seqs")),
};
const struct wire_table wm_op_query_table = {TABLE(op_query, op_query, op_query_fields)};

#define OUTCOMES_LIMIT "op_outcomes.outcomes: must be 1 to 64"

static const struct wire_field outcomes_fields[] = {
	LIST_AS(op_outcomes, seqs, v, n, SEQS, IN(1, WM_OUTCOMES_MAX, OUTCOMES_LIMIT)),
	LIST_AS(op_outcomes, codes, v, n, CODES),
};
static const struct wire_table outcomes = {TABLE(op_outcomes, outcomes, outcomes_fields)};

static const struct wire_field op_outcomes_fields[] = {
	F(op_outcomes, peer, ID("op_outcomes.peer")),
	{.name = "outcomes", MESSAGE(outcomes), .text = OUTCOMES_LIMIT},
};
const struct wire_table wm_op_outcomes_table = {
	TABLE(op_outcomes, op_outcomes, op_outcomes_fields)};
