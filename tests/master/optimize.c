/* SPDX-License-Identifier: MIT
 *
 * The master's core: optimizations, from the last vote to the answer. Busy hosts are in busy.c, and
 * the plans that optimizations put in force are in plan.c.
 */
#include "tests/master/optimize.h"

#include "tests/master/suites.h"

#define MINUTE_MS 60000u
#define HOUR_MS   3600000u

/* ---- measurements ---- */

START_TEST(two_hosts_measure_nothing)
{
	run_of(2);
	vote(2);
	expect_answer(2, true, "");
	ck_assert_uint_eq(count_all(2, WM_MEASURE), 0);
	ck_assert_uint_eq(f.n_problems, 0);
}
END_TEST

/* Takes the orders of a round of pairs, in which all three hosts send. Marks the links in `seen`.
 */
static uint64_t take_pairs(bool seen[3][3])
{
	uint64_t number = 0;
	size_t i, to;

	for (i = 0; i < 3; i++) {
		const struct wm_measure *o = &fk_take(h[i], WM_MEASURE)->u.measure;

		ck_assert(i == 0 || o->number == number);
		number = o->number;
		ck_assert_uint_eq(o->ms, 1000);
		ck_assert(!o->hold);
		ck_assert_uint_eq(o->streams, CCM_MEASURE_STREAMS);
		ck_assert_uint_eq(o->n_to, 1);
		ck_assert_uint_eq(o->n_from, 1);
		to = index_of(&o->to[0].agent);
		ck_assert(to != i && !seen[i][to]);
		seen[i][to] = true;
		ck_assert_uint_eq(o->to[0].port, 5000 + h[to]->conn);
		ck_assert_uint_eq(o->to[0].conn, h[to]->conn);
		ck_assert_uint_eq(o->to[0].addrs[0].ip[3], h[to]->conn);
		ck_assert_str_eq(o->host.name, o->to[0].name);
		ck_assert_uint_eq(o->host.addr.ip[3], h[to]->conn);
		/* The receiver expects exactly this sender. */
		ck_assert_ptr_nonnull(h[i]);
		ck_assert(cc_id_eq(&h[to]->order.from[0], &h[i]->id));
	}
	return number;
}

START_TEST(three_hosts_measure_each_link_and_then_all_together)
{
	bool seen[3][3] = {{false}};
	const struct ccm_problem *x;
	uint64_t first, second;
	uint32_t i, k;

	run_of(3);
	manual_measurements(3);
	vote(2);
	ck_assert_uint_eq(count_all(3, WM_MEASURE), 0);
	fk_ballot(&p[2], WIRE_OPTIMIZE);
	first = take_pairs(seen);
	fk_measured(h[0]);
	fk_measured(h[1]);
	ck_assert_uint_eq(count_all(3, WM_MEASURE), 0); /* the first round is not over */
	fk_measured(h[2]);
	second = take_pairs(seen);
	ck_assert_uint_gt(second, first);
	end_round(3);
	for (i = 0; i < 3; i++) {
		const struct wm_measure *o = &fk_take(h[i], WM_MEASURE)->u.measure;

		ck_assert_uint_gt(o->number, second);
		ck_assert_uint_eq(o->ms, 501);
		ck_assert(o->hold);
		ck_assert_uint_eq(o->n_to, 2);
		ck_assert_uint_eq(o->n_from, 2);
	}
	ck_assert_uint_eq(f.n_problems, 0);
	rates[0][1] = rates[0][2] = 9 * GBIT;
	end_round(3);
	for (i = 0; i < 3; i++) { /* the load ends */
		const struct wm_measure *o = &fk_take(h[i], WM_MEASURE)->u.measure;

		ck_assert(o->n_to == 0 && o->n_from == 0);
	}
	x = fk_problem(&f, 0);
	ck_assert_uint_eq(x->n, 3);
	ck_assert_uint_eq(x->max_rings, CC_RINGS_MAX);
	ck_assert_uint_eq(x->current.n, 0);
	ck_assert_uint_eq(x->out[0], x->rates[0 * 3 + 1] + x->rates[0 * 3 + 2]); /* never more */
	ck_assert_uint_eq(x->rates[0 * 3 + 1], 2 * GBIT); /* that of the pair alone */
	for (i = 0; i < 3; i++)
		for (k = 0; k < 3; k++)
			ck_assert_uint_eq(x->trips_us[i * 3 + k], i == k ? 0 : 100 + h[i]->conn);
	solve_unchanged();
	expect_answer(3, true, "");
}
END_TEST

/* In the round in which all send, a host may get less than through one of its links alone. */
START_TEST(a_host_carries_at_least_what_one_link_carries)
{
	const struct ccm_problem *x;
	uint32_t i, k;

	run_of(3);
	manual_measurements(3);
	vote(3);
	for (k = 0; k < 2; k++)
		end_round(3);
	scale_rates(1, 10);
	for (i = 0; i < 3; i++)
		h[i]->auto_measured = true;
	fk_settle(&f);
	x = fk_problem(&f, 0);
	ck_assert_uint_eq(x->out[0], 3 * GBIT); /* h0 to h2 */
	ck_assert_uint_eq(x->in[0], 3 * GBIT);
	ck_assert_uint_eq(x->out[1], 4 * GBIT);
}
END_TEST

START_TEST(progress_counts_rounds)
{
	struct ccm_progress x;
	uint32_t k;

	run_of(3);
	ck_assert(!ccm_get_progress(f.m, f.now, &x));
	manual_measurements(3);
	vote(3);
	ck_assert(ccm_get_progress(f.m, f.now, &x));
	ck_assert_uint_eq(x.round, 1);
	ck_assert_uint_eq(x.rounds, 3);
	ck_assert_uint_eq(x.left_ns / 1000000000, 3); /* one second each */
	for (k = 0; k < 2; k++) {
		ck_assert_uint_eq(h[0]->order.round, 1 + k);
		ck_assert_uint_eq(h[0]->order.rounds, 3);
		fk_tick(&f, 500);
		end_round(3);
	}
	ck_assert(ccm_get_progress(f.m, f.now, &x));
	ck_assert_uint_eq(x.round, 3);
	ck_assert_uint_eq(x.left_ns / 100000000, 5); /* each round has taken half a second */
	ck_assert(ccm_get_progress(f.m, f.now + UINT64_C(5000000000), &x));
	ck_assert_uint_eq(x.left_ns, 0);
	end_round(3);
	ck_assert(!ccm_get_progress(f.m, f.now, &x));
	solve_unchanged();
	expect_answer(3, true, "");
}
END_TEST

static void forget_all(void)
{
	fk_forget(&f);
	fk_forget_problems(&f);
}

/* Lets n hosts optimize the topology without a change. */
static void measure_all(uint32_t n)
{
	run_of(n);
	vote(n);
	solve_unchanged();
	expect_answer(n, true, "");
	forget_all();
}

START_TEST(second_optimization_measures_nothing)
{
	struct ccm_problem first;
	const struct ccm_problem *x;

	run_of(3);
	vote(3);
	solve_unchanged();
	expect_answer(3, true, "");
	first = *fk_problem(&f, 0);
	f.n_problems = 0; /* `first` owns its arrays now */
	change_rates(2);
	first.rates[1] = 7 * GBIT;
	first.trips_us[1] = 3;
	fk_forget(&f);
	memset(rates, 0, sizeof rates);
	vote(3);
	ck_assert_uint_eq(count_all(3, WM_MEASURE), 0);
	x = fk_problem(&f, 0);
	ck_assert_uint_gt(x->number, first.number);
	ck_assert_mem_eq(x->rates, first.rates, 9 * sizeof *x->rates);
	ck_assert_mem_eq(x->trips_us, first.trips_us, 9 * sizeof *x->trips_us);
	ck_assert_mem_eq(x->out, first.out, 3 * sizeof *x->out);
	ck_assert_mem_eq(x->in, first.in, 3 * sizeof *x->in);
	ck_assert_uint_gt(x->out[0], 0);
	solve_unchanged();
	expect_answer(3, true, "");
	ccm_problem_clear(&first);
}
END_TEST

START_TEST(nothing_is_solved_twice)
{
	measure_all(3);
	vote(3);
	expect_answer(3, true, "");
	ck_assert_uint_eq(count_all(3, WM_MEASURE), 0);
	ck_assert_uint_eq(f.n_problems, 0);
}
END_TEST

START_TEST(problem_without_a_solution_is_solved_again)
{
	struct ccm_solution failure = {.n = 3, .text = "out of memory"};

	measure_all(3);
	change_rates(3);
	vote(3);
	failure.number = fk_problem(&f, 0)->number;
	fk_solved(&f, &failure);
	expect_answer(3, false, "out of memory");
	fk_tick(&f, 1000);
	forget_all();
	vote(3);
	solve_unchanged();
	expect_answer(3, true, "");
}
END_TEST

START_TEST(rates_are_trusted_for_an_hour)
{
	measure_all(3);
	fk_tick(&f, HOUR_MS - MINUTE_MS);
	ck_assert_uint_eq(senders(3), 0);
	fk_tick(&f, 2 * MINUTE_MS);
	ck_assert_uint_eq(senders(3), 3);
	/* Two rounds, one in which all send, and its end. */
	ck_assert_uint_eq(count_all(3, WM_MEASURE), 12);
}
END_TEST

/* A rate that has varied by 40 percent is trusted for 60 percent of an hour. */
START_TEST(unsure_rates_are_trusted_for_a_shorter_time)
{
	f.confidence = 60;
	measure_all(3);
	fk_tick(&f, 35 * MINUTE_MS);
	ck_assert_uint_eq(senders(3), 0);
	fk_tick(&f, 2 * MINUTE_MS);
	ck_assert_uint_eq(senders(3), 3);
	/* Two rounds and their end: what the hosts can carry is trusted for an hour. */
	ck_assert_uint_eq(count_all(3, WM_MEASURE), 9);
}
END_TEST

START_TEST(unreachable_hosts_are_tried_again_after_a_minute)
{
	const struct ccm_problem *x;

	rates[0][1] = 0;
	run_of(3);
	vote(3);
	assert_contains(
		f.log, "host h0 could not measure its link to host h1 (Connection refused)");
	x = fk_problem(&f, 0);
	ck_assert_uint_eq(x->rates[0 * 3 + 1], 0);
	ck_assert_uint_gt(x->rates[1 * 3 + 0], 0);
	solve_unchanged();
	expect_answer(3, true, "");
	ck_assert_uint_eq(senders(3), 0);
	fk_tick(&f, MINUTE_MS + 1000);
	rates[0][1] = GBIT;
	ck_assert_uint_eq(senders(3), 1);
	ck_assert_uint_eq(count_all(3, WM_MEASURE), 4); /* two orders, which end */
	ck_assert_uint_eq(fk_problem(&f, 0)->rates[0 * 3 + 1], GBIT);
}
END_TEST

/* ---- rates that agents remember ---- */

START_TEST(rates_that_agents_remember_spare_measurements)
{
	const struct ccm_problem *x;
	uint32_t i;

	run_of(3);
	for (i = 0; i < 3; i++)
		tell_rates(i, 3, 10);
	manual_measurements(3);
	vote(3);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(h[i]->order.n_to, 2); /* only what the hosts can carry */
	for (i = 0; i < 9; i++)
		rates[i / 3][i % 3] = 35 * GBIT / 10;
	end_round(3);
	x = fk_problem(&f, 0);
	ck_assert_uint_eq(x->rates[0 * 3 + 1], 7 * GBIT);
	ck_assert_uint_eq(x->trips_us[0 * 3 + 1], 3);
	ck_assert_uint_eq(x->out[0], 7 * GBIT);
	solve_unchanged();
	expect_answer(3, true, "");
}
END_TEST

/* The clock of a host that has started a short while ago is lower than the age of the rates. */
START_TEST(old_rates_of_agents_are_measured_again)
{
	uint32_t i;

	run_of(3);
	ck_assert_uint_lt(f.now, UINT64_C(3600000000000));
	for (i = 0; i < 3; i++)
		tell_rates(i, 3, 3601);
	vote(3);
	ck_assert_uint_eq(count_all(3, WM_MEASURE), 12);
	ck_assert_uint_eq(fk_problem(&f, 0)->rates[0 * 3 + 1], 2 * GBIT);
}
END_TEST

START_TEST(own_measurements_are_newer_than_remembered_ones)
{
	measure_all(3);
	tell_rates(0, 3, 10);
	fk_tick(&f, 10000);
	tell_rates(1, 3, 0); /* or the solver would not be asked */
	vote(3);
	ck_assert_uint_eq(count_all(3, WM_MEASURE), 0);
	ck_assert_uint_eq(fk_problem(&f, 0)->rates[0 * 3 + 1], 2 * GBIT);
}
END_TEST

START_TEST(rates_of_unknown_agents_are_harmless)
{
	static struct wm_rate v[WM_RATES_MAX];
	struct wm_msg m = {.type = WM_RATES, .u.rates = {.n = WM_RATES_MAX, .rates = v}};
	uint32_t i, k;

	run_of(3);
	for (i = 0; i < 100; i++) {
		for (k = 0; k < WM_RATES_MAX; k++)
			v[k] = (struct wm_rate){
				.agent = fk_id(&f), .rate = UINT64_MAX, .age_s = UINT32_MAX};
		v[0].agent = h[0]->id; /* its own */
		fk_send(h[0], &m);
	}
	optimization_works(3);
}
END_TEST

/* ---- the answer ---- */

START_TEST(answer_follows_the_commit_of_a_better_ring)
{
	static const uint16_t order[] = {0, 2, 1};
	uint64_t epoch;
	uint32_t i;

	run_of(3);
	epoch = fk_status(&f).epoch;
	vote(3);
	fk_manual(&f);
	fk_forget(&f);
	solve(1, order, 1.03, 1);
	ck_assert_uint_eq(count_all(3, WM_ROUND), 3);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(count_all(3, WM_BALLOT_END), 0);
		ck_assert_int_eq(
			fk_info(&p[i]).state, CCM_VOTE_NO_NEW_PEERS_ESTABLISH_P2P_CONNECTIONS);
		fk_round_report(h[i], NULL, NULL);
	}
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(h[i]->n, 3);
		ck_assert_int_eq(h[i]->inbox[0].type, WM_ROUND);
		ck_assert_int_eq(h[i]->inbox[1].type, WM_COMMIT);
		ck_assert(!h[i]->inbox[1].u.commit.accept);
	}
	expect_answer(3, true, "");
	expect_ring(3, order);
	ck_assert_uint_eq(fk_status(&f).epoch, epoch + 1);
	ck_assert_int_eq(fk_info(&p[0]).state, CCM_IDLE);
}
END_TEST

START_TEST(plan_that_is_hardly_better_changes_nothing)
{
	static const uint16_t order[] = {0, 2, 1};

	run_of(3);
	vote(3);
	fk_forget(&f);
	solve(1, order, 1.02, 1);
	expect_answer(3, true, "");
	ck_assert_uint_eq(count_all(3, WM_ROUND), 0);
}
END_TEST

START_TEST(ring_is_kept_if_the_links_allow_no_other)
{
	rates[0][1] = 0;
	run_of(3);
	vote(3);
	fk_forget(&f);
	solve(0, NULL, 0, 0);
	expect_answer(3, true, "");
	ck_assert_uint_eq(count_all(3, WM_ROUND), 0);
	assert_contains(f.log, "host h0 could not measure its link to host h1");
}
END_TEST

START_TEST(solver_that_fails_ends_the_optimization)
{
	const struct ccm_solution x = {.text = "the search has crashed"};
	struct ccm_solution s = x;

	run_of(3);
	vote(3);
	s.number = fk_problem(&f, 0)->number;
	s.n = 3;
	fk_solved(&f, &s);
	expect_answer(3, false, "the search has crashed");
	optimization_works(3);
}
END_TEST

START_TEST(each_group_of_three_hosts_is_solved)
{
	static const uint16_t order[] = {0, 2, 1};
	uint32_t i;

	for (i = 0; i < 6; i++)
		newcomer(i, i < 3 ? 4 : 5);
	newcomer(6, 6);
	newcomer(7, 6);
	fk_topo(&p[0]);
	fk_forget(&f);
	manual_measurements(8);
	vote(8);
	for (i = 0; i < 6; i++)
		ck_assert_uint_eq(h[i]->order.n_to, 1);
	ck_assert_uint_eq(count_all(8, WM_MEASURE), 6);
	for (i = 0; i < 8; i++)
		h[i]->auto_measured = true;
	fk_settle(&f);
	ck_assert_uint_eq(f.n_problems, 2);
	solve_group(4, 1, NULL, 1, 1);
	ck_assert_uint_eq(count_all(8, WM_BALLOT_END), 0);
	solve_group(5, 1, order, 2, 1);
	expect_answer(8, true, "");
	ck_assert_uint_eq(known[5].ring.pos, 1);
	ck_assert_uint_eq(known[2].ring.pos, 2);
}
END_TEST

START_TEST(many_hosts_are_not_measured)
{
	struct ccm_config cfg = usual_config();
	struct fk_host *x;
	static struct fk_peer q[CCM_OPTIMIZE_HOSTS_MAX + 1];
	uint32_t i, n = CCM_OPTIMIZE_HOSTS_MAX + 1;
	char name[16];

	configure(&cfg);
	f.quiet = true;
	for (i = 0; i < n; i++) {
		(void)snprintf(name, sizeof name, "m%u", i);
		x = fk_host(&f, name, "10.1.0.1");
		q[i] = fk_join(x, 0);
	}
	fk_topo(&q[0]);
	f.quiet = false;
	ck_assert_uint_eq(fk_status(&f).accepted, n);
	fk_forget(&f);
	for (i = 0; i < n; i++)
		fk_ballot(&q[i], WIRE_OPTIMIZE);
	for (i = 0; i < n; i++)
		ck_assert(
			wire_ballot_answer(fk_take(q[i].host, WM_BALLOT_END)->u.ballot_end.number));
	ck_assert_uint_eq(fk_count(q[0].host, WM_MEASURE), 0);
	assert_contains(f.log, "more than 256 hosts");
}
END_TEST

/* ---- failures ---- */

enum phase { PAIRS, TOGETHER, SINGLE, SOLVING, REWIRING, PHASES };

/* Brings the optimization of the first n hosts into this phase. */
static void bring_to(enum phase phase, uint32_t n)
{
	static const uint16_t order[] = {0, 2, 1, 3};
	uint32_t k, pairs = n % 2 ? n - 1 : n, rounds = pairs + (phase != TOGETHER);

	manual_measurements(n);
	fk_manual(&f);
	vote(n);
	for (k = 0; phase != PAIRS && k < rounds; k++) {
		if (phase == SINGLE && k == pairs) /* all caps are suspect */
			scale_rates(1, 10);
		end_round(n);
	}
	if (phase == SINGLE)
		scale_rates(10, 1);
	if (phase == REWIRING)
		solve(1, order, 2, 1);
	ck_assert_uint_eq(count_all(n, WM_BALLOT_END), 0);
	fk_forget(&f);
}

/* From now on hosts answer by themselves again. */
static void answer_again(void)
{
	uint32_t i;

	for (i = 0; i < f.n_hosts; i++)
		f.hosts[i]->auto_measured = f.hosts[i]->auto_report = true;
	fk_settle(&f);
}

START_TEST(peer_that_leaves_ends_the_optimization)
{
	run_of(4);
	bring_to((enum phase)_i, 4);
	fk_leave(&p[3], WM_LEAVE_CLEAN);
	answer_again();
	expect_answer(3, false, "lost");
	optimization_works(3);
}
END_TEST

START_TEST(agent_that_dies_ends_the_optimization)
{
	run_of(4);
	bring_to((enum phase)_i, 4);
	fk_close(h[3], "gone");
	answer_again();
	expect_answer(3, false, "lost");
	optimization_works(3);
}
END_TEST

/* The agent may come back, so the answer waits until all have the same view. */
START_TEST(agent_that_is_disconnected_ends_the_optimization)
{
	run_of(4);
	bring_to((enum phase)_i, 4);
	fk_cut(h[3], "reset");
	answer_again();
	fk_tick(&f, 10000);
	expect_answer(3, false, "lost");
	optimization_works(3);
}
END_TEST

/* The agent comes back, and its peer learns the answer. */
START_TEST(agent_that_returns_gets_the_answer)
{
	struct wm_ring_position position = {.hosts = 4, .pos = 3};
	struct wm_group_view own = {.world_size = 4};
	struct wm_msg m = {.type = WM_RESUME};

	run_of(4);
	bring_to((enum phase)_i, 4);
	own.generation = known[3].generation;
	m.u.resume = (struct wm_resume){.epoch = h[3]->epoch,
		.round = known[3].round,
		.ring_epoch = known[3].round,
		.view = {.global = 4,
			.groups = 1,
			.largest = 4,
			.view_id = known[3].view_id,
			.n = 1,
			.own = &own},
		.n_positions = 1,
		.positions = &position};
	memcpy(m.u.resume.ballots, h[3]->ballots, sizeof m.u.resume.ballots);
	fk_cut(h[3], "reset");
	answer_again();
	h[3] = fk_reconnect(h[3]);
	p[3] = fk_join_again(&p[3], h[3], WM_JOIN_ACCEPTED);
	fk_send(h[3], &m);
	if (!wire_ballot_count(h[3]->ballots[WIRE_OPTIMIZE])) /* it votes again, and is told */
		fk_ballot(&p[3], WIRE_OPTIMIZE);
	answer_again();
	fk_tick(&f, 1000);
	ck_assert_uint_eq(wire_ballot_count(h[3]->ballots[WIRE_OPTIMIZE]), 1);
	ck_assert(!wire_ballot_answer(h[3]->ballots[WIRE_OPTIMIZE]));
	expect_answer(3, false, "lost");
	optimization_works(4);
}
END_TEST

/* The peer of an agent that has died before it could deliver the answer votes again. */
START_TEST(repeated_answer_has_its_reason)
{
	run_of(4);
	bring_to(SOLVING, 4);
	lose_link(1, 2, true);
	answer_again();
	expect_answer(4, false, "lost");
	memset(h[3]->ballots, 0, sizeof h[3]->ballots);
	fk_ballot(&p[3], WIRE_OPTIMIZE);
	expect_answer_at(3, false, "lost meanwhile");
	/* The reason belongs to this answer only. */
	answer_again();
	optimization_works(4);
	memset(h[3]->ballots, 0, sizeof h[3]->ballots);
	fk_ballot(&p[3], WIRE_OPTIMIZE);
	expect_answer_at(3, true, "");
}
END_TEST

/* The link must be opened again. Only if a round is in progress already, it opens the link, and
 * the optimization goes on. */
START_TEST(lost_link_ends_the_optimization)
{
	run_of(4);
	bring_to((enum phase)_i, 4);
	lose_link(1, 2, true);
	answer_again();
	expect_answer(4, _i == REWIRING, _i == REWIRING ? "" : "lost");
	optimization_works(4);
}
END_TEST

/* A host that does not report in time ends the optimization. All stop, so that other runs can
 * measure. */
START_TEST(agent_that_does_not_report_ends_the_optimization)
{
	uint32_t i;

	run_of(3);
	manual_measurements(3);
	vote(3);
	fk_measured(h[0]);
	fk_measured(h[2]);
	fk_forget(&f);
	fk_tick(&f, 4900);
	ck_assert_uint_eq(count_all(3, WM_BALLOT_END), 0);
	fk_tick(&f, 1000);
	expect_answer(3, false, "host h1 did not end its measurement within");
	ck_assert_uint_eq(count_all(3, WM_MEASURE), 3); /* orders to stop */
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(h[i]->order.n_to + h[i]->order.n_from, 0);
		h[i]->auto_measured = true;
	}
	optimization_works(3);
}
END_TEST

/* Agents may take new_link_timeout_ms to find out that a host cannot be reached. */
START_TEST(deadline_of_a_measurement_leaves_time_to_connect)
{
	struct ccm_config cfg = usual_config();
	uint32_t i;

	cfg.bounds.ms[CC_BOUND_NEW_LINK] = 20000;
	configure(&cfg);
	run_of(3);
	manual_measurements(3);
	vote(3);
	fk_tick(&f, 21000);
	ck_assert_uint_eq(count_all(3, WM_BALLOT_END), 0);
	rates[1][2] = 0;
	for (i = 0; i < 3; i++)
		h[i]->auto_measured = true;
	fk_settle(&f);
	ck_assert_uint_eq(fk_problem(&f, 0)->rates[1 * 3 + 2], 0);
}
END_TEST

START_TEST(failed_link_ends_the_optimization_and_keeps_the_ring)
{
	static const uint16_t order[] = {0, 2, 1}, old[] = {0, 1, 2};
	const struct ccm_problem *x;

	run_of(3);
	vote(3);
	fk_manual(&f);
	solve(1, order, 2, 1);
	fk_round_report(h[0], h[2], "No route to host");
	fk_round_report(h[1], NULL, NULL);
	ck_assert_uint_eq(count_all(3, WM_BALLOT_END), 0);
	fk_round_report(h[2], NULL, NULL);
	answer_again();
	expect_answer(3, false, "No route to host");
	expect_ring(3, old);
	ck_assert_uint_eq(count_all(3, WM_KICK), 0);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	/* The next problem does not have this link. */
	forget_all();
	vote(3);
	x = fk_problem(&f, 0);
	ck_assert_uint_eq(x->rates[0 * 3 + 2], 0);
	ck_assert_uint_gt(x->rates[2 * 3 + 0], 0);
	solve_unchanged();
	expect_answer(3, true, "");
}
END_TEST

START_TEST(agent_without_a_port_for_benchmarks_ends_the_optimization)
{
	struct wm_msg m = {.type = WM_ADDRESSES, .u.addresses = {.port_p2p = 1000}};

	run_of(3);
	fk_send(h[1], &m);
	vote(3);
	expect_answer(3, false, "the agent on host h1 offers no benchmark port");
}
END_TEST

/* Programs repeat a failed optimization at once. */
START_TEST(failures_are_half_a_second_apart)
{
	struct wm_msg m = {.type = WM_ADDRESSES, .u.addresses = {.port_p2p = 1000}};
	uint32_t i;

	run_of(3);
	fk_send(h[1], &m);
	vote(3);
	expect_answer(3, false, "");
	for (i = 0; i < 3; i++) {
		vote(3);
		ck_assert_uint_eq(count_all(3, WM_BALLOT_END), 0);
		fk_tick(&f, 300);
		ck_assert_uint_eq(count_all(3, WM_BALLOT_END), 0);
		fk_tick(&f, 200);
		expect_answer(3, false, "");
	}
	/* A success does not wait. */
	m.u.addresses.port_benchmark = 5;
	fk_send(h[1], &m);
	optimization_works(3);
}
END_TEST

/* The peers vote again, and the new master starts from the beginning. */
START_TEST(new_master_starts_the_optimization_again)
{
	static const uint16_t order[] = {0, 2, 1};

	run_of(3);
	bring_to((enum phase)_i, 3);
	replace_master(3);
	answer_again();
	ck_assert_uint_eq(count_all(3, WM_BALLOT_END), 0);
	vote(3);
	answer_again();
	solve(1, order, 2, 1);
	expect_answer(3, true, "");
	expect_ring(3, order);
}
END_TEST

/* ---- states ---- */

static void expect_state(enum ccm_connection_state state)
{
	uint32_t i;

	for (i = 0; i < 3; i++)
		ck_assert_int_eq(fk_info(&p[i]).state, state);
}

START_TEST(operators_see_an_optimization)
{
	const struct ccm_solution bad = {.text = "no"};
	struct ccm_solution s = bad;

	run_of(3);
	manual_measurements(3);
	fk_ballot(&p[0], WIRE_OPTIMIZE);
	ck_assert_int_eq(fk_info(&p[0]).state, CCM_VOTE_OPTIMIZE_TOPOLOGY);
	ck_assert_int_eq(fk_info(&p[1]).state, CCM_IDLE);
	fk_ballot(&p[1], WIRE_OPTIMIZE);
	fk_ballot(&p[2], WIRE_OPTIMIZE);
	expect_state(CCM_OPTIMIZE_TOPOLOGY);
	answer_again();
	expect_state(CCM_OPTIMIZE_TOPOLOGY);
	s.number = fk_problem(&f, 0)->number;
	s.n = 3;
	fk_solved(&f, &s);
	expect_answer(3, false, "no");
	expect_state(CCM_OPTIMIZE_TOPOLOGY_FAILED);
	fk_topo(&p[0]);
	ck_assert_int_eq(fk_info(&p[0]).state, CCM_VOTE_ACCEPT_NEW_PEERS);
	fk_topo(&p[1]);
	fk_topo(&p[2]);
	expect_state(CCM_IDLE);
	optimization_works(3);
	expect_state(CCM_IDLE);
}
END_TEST

START_TEST(operation_ends_the_state_of_a_failure)
{
	const struct ccm_solution bad = {.text = "no"};
	struct ccm_solution s = bad;
	uint64_t seq;
	uint32_t i;

	run_of(3);
	vote(3);
	s.number = fk_problem(&f, 0)->number;
	s.n = 3;
	fk_solved(&f, &s);
	for (i = 0; i < 3; i++)
		fk_vote(&p[i], 5);
	expect_state(CCM_COLLECTIVE_COMMUNICATIONS_RUNNING);
	seq = fk_take(h[0], WM_OP_START)->u.op_start.seq;
	for (i = 0; i < 3; i++)
		fk_report(h[i], seq, true);
	expect_state(CCM_IDLE);
}
END_TEST

/* ---- hostile agents ---- */

/* Host i reports `n` results with this number. All of them name this agent. */
static void report(uint32_t i, uint64_t number, struct cc_id agent)
{
	struct wm_measured_result v = {.agent = agent, .ok = true, .rate = UINT64_MAX};
	struct wm_msg m = {.type = WM_MEASURED, .u.measured = {.number = number, .n = 1, &v}};

	fk_send(h[i], &m);
}

START_TEST(unasked_results_are_ignored)
{
	run_of(3);
	report(0, 1, h[1]->id);
	manual_measurements(3);
	vote(3);
	report(0, h[0]->order.number + 1, h[1]->id);
	report(0, h[0]->order.number - 1, h[1]->id);
	answer_again();
	ck_assert_uint_eq(fk_problem(&f, 0)->rates[0 * 3 + 1], 2 * GBIT);
	report(0, f.problems[0].number, h[1]->id);
	solve_unchanged();
	expect_answer(3, true, "");
}
END_TEST

/* The report counts, but it says nothing about links of members. */
START_TEST(results_for_strangers_are_ignored)
{
	struct cc_id stranger = fk_id(&f);
	uint64_t number;

	run_of(3);
	manual_measurements(3);
	vote(3);
	number = h[0]->order.number;
	report(0, number, stranger);
	report(0, number, h[1]->id); /* the second report does not count */
	report(1, number, h[1]->id); /* a link to itself */
	answer_again();
	ck_assert_uint_ne(fk_problem(&f, 0)->rates[0 * 3 + 1], UINT64_MAX);
	ck_assert_uint_eq(fk_problem(&f, 0)->rates[1 * 3 + 1], 0);
	solve_unchanged();
	expect_answer(3, true, "");
}
END_TEST

START_TEST(solutions_of_unknown_problems_are_ignored)
{
	static const uint16_t order[] = {0, 2, 1};
	struct ccm_solution s = {.n = 3, .n_rings = 1, .order = order, .rate = 9, .current = 1};

	run_of(3);
	fk_solved(&f, &s);
	vote(3);
	s.number = fk_problem(&f, 0)->number + 1;
	fk_solved(&f, &s);
	s.number = 0;
	fk_solved(&f, &s);
	ck_assert_uint_eq(count_all(3, WM_BALLOT_END), 0);
	solve_unchanged();
	expect_answer(3, true, "");
}
END_TEST

static void add_failures(TCase *tc)
{
	tcase_add_loop_test(tc, peer_that_leaves_ends_the_optimization, 0, PHASES);
	tcase_add_loop_test(tc, agent_that_dies_ends_the_optimization, 0, PHASES);
	tcase_add_loop_test(tc, agent_that_is_disconnected_ends_the_optimization, 0, PHASES);
	tcase_add_loop_test(tc, agent_that_returns_gets_the_answer, 0, PHASES);
	tcase_add_test(tc, repeated_answer_has_its_reason);
	tcase_add_loop_test(tc, lost_link_ends_the_optimization, 0, PHASES);
	tcase_add_test(tc, agent_that_does_not_report_ends_the_optimization);
	tcase_add_test(tc, deadline_of_a_measurement_leaves_time_to_connect);
	tcase_add_test(tc, failed_link_ends_the_optimization_and_keeps_the_ring);
	tcase_add_test(tc, agent_without_a_port_for_benchmarks_ends_the_optimization);
	tcase_add_test(tc, failures_are_half_a_second_apart);
	tcase_add_loop_test(tc, new_master_starts_the_optimization_again, 0, PHASES);
}

Suite *optimize_suite(void)
{
	Suite *s = suite_create("optimize");
	TCase *tc = tcase_create("optimize");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, two_hosts_measure_nothing);
	tcase_add_test(tc, three_hosts_measure_each_link_and_then_all_together);
	tcase_add_test(tc, a_host_carries_at_least_what_one_link_carries);
	tcase_add_test(tc, progress_counts_rounds);
	tcase_add_test(tc, second_optimization_measures_nothing);
	tcase_add_test(tc, nothing_is_solved_twice);
	tcase_add_test(tc, problem_without_a_solution_is_solved_again);
	tcase_add_test(tc, rates_are_trusted_for_an_hour);
	tcase_add_test(tc, unsure_rates_are_trusted_for_a_shorter_time);
	tcase_add_test(tc, unreachable_hosts_are_tried_again_after_a_minute);
	tcase_add_test(tc, rates_that_agents_remember_spare_measurements);
	tcase_add_test(tc, old_rates_of_agents_are_measured_again);
	tcase_add_test(tc, own_measurements_are_newer_than_remembered_ones);
	tcase_add_test(tc, rates_of_unknown_agents_are_harmless);
	tcase_add_test(tc, answer_follows_the_commit_of_a_better_ring);
	tcase_add_test(tc, plan_that_is_hardly_better_changes_nothing);
	tcase_add_test(tc, ring_is_kept_if_the_links_allow_no_other);
	tcase_add_test(tc, solver_that_fails_ends_the_optimization);
	tcase_add_test(tc, each_group_of_three_hosts_is_solved);
	tcase_add_test(tc, many_hosts_are_not_measured);
	add_failures(tc);
	tcase_add_test(tc, operators_see_an_optimization);
	tcase_add_test(tc, operation_ends_the_state_of_a_failure);
	tcase_add_test(tc, unasked_results_are_ignored);
	tcase_add_test(tc, results_for_strangers_are_ignored);
	tcase_add_test(tc, solutions_of_unknown_problems_are_ignored);
	suite_add_tcase(s, tc);
	return s;
}
