/* SPDX-License-Identifier: MIT
 *
 * The master's core: plans of several rings, how rounds carry them, and the operations that follow
 * them.
 */
#include "tests/master/optimize.h"

#include "common/cc_route.h"
#include "tests/master/suites.h"

#define TAG 5u

/* Of four hosts. */
static const uint16_t two_rings[] = {0, 2, 1, 3, 3, 1, 0, 2};
static const uint16_t one_ring[] = {0, 2, 1, 3};

/* Checks the rings in force at each host: n_rings rings of n hosts each. `order` names the hosts by
 * their numbers. */
static void expect_plan(uint32_t n, uint32_t n_rings, const uint16_t *order)
{
	uint32_t i, k, r;

	expect_ring(n, order);
	for (i = 0; i < n; i++) {
		const struct cc_rings *x = &known[order[i]].ring.plan;

		ck_assert_uint_eq(x->n, n_rings);
		for (r = 0; r < n_rings; r++)
			for (k = 0; k < n; k++)
				ck_assert_uint_eq(order[x->order[r][k]], order[r * n + k]);
	}
}

/* Lets the hosts 0 .. n - 1 optimize their topology with this result. */
static void optimize(uint32_t n, uint32_t n_rings, const uint16_t *order)
{
	vote(n);
	fk_forget(&f);
	solve(n_rings, order, 2, 1);
	expect_answer(n, true, "");
}

static void run_with_plan(void)
{
	run_of(4);
	optimize(4, 2, two_rings);
	fk_forget(&f);
}

static void say_mesh(uint32_t i, bool up, bool plan_up, uint32_t reopens)
{
	struct wm_msg m = {
		.type = WM_MESH, .u.mesh = {.up = up, .plan_up = plan_up, .reopens = reopens}};

	fk_send(h[i], &m);
}

static void plan_up(uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		say_mesh(i, false, true, 0);
}

static bool quantized; /* the next operations */

/* Starts an operation of `bytes` bytes. Checks its route, and returns its number. */
static uint64_t start(uint32_t n, uint64_t bytes, enum cc_algo route)
{
	struct wm_op_params params = {.count = bytes / 4, .dtype = 10};
	const struct wm_op_start *s;
	uint64_t seq = 0;
	uint32_t i;

	params.quant.algo = quantized;
	fk_forget(&f);
	for (i = 0; i < n; i++)
		fk_vote_params(&p[i], TAG, params);
	for (i = 0; i < n; i++) {
		s = &fk_take(h[i], WM_OP_START)->u.op_start;
		ck_assert_uint_eq(s->route, route);
		seq = s->seq;
	}
	return seq;
}

/* Does an operation of `bytes` bytes, and checks its route. */
static void operate(uint32_t n, uint64_t bytes, enum cc_algo route)
{
	uint64_t seq = start(n, bytes, route);
	uint32_t i;

	for (i = 0; i < n; i++)
		fk_report(h[i], seq, true);
	for (i = 0; i < n; i++) {
		const struct wm_op_done *d = &fk_take(h[i], WM_OP_DONE)->u.op_done;

		ck_assert_uint_eq(d->seq, seq);
		/* Only eager operations begin speculatively, and they take one ring. */
		ck_assert_uint_lt(d->next_route, CC_ALGO_RINGS);
	}
}

#define LARGE (UINT64_C(8) << 20)

/* ---- rounds ---- */

START_TEST(round_carries_the_plan_and_waits_for_its_links)
{
	uint32_t i;

	run_of(4);
	vote(4);
	fk_forget(&f);
	solve(2, two_rings, 2, 1);
	for (i = 0; i < 4; i++) {
		const struct wm_ring *r = &fk_take(h[i], WM_ROUND)->u.round.rings[0];

		ck_assert(r->await_plan);
		ck_assert_uint_eq(r->plan.n, 2);
		ck_assert_uint_eq(r->plan.shares[0], 30);
		ck_assert_uint_eq(r->plan.shares[1], 20);
		ck_assert_uint_eq(r->n_others, 2);
	}
	expect_answer(4, true, "");
	expect_plan(4, 2, two_rings);
}
END_TEST

/* Hosts in all rings may change their order, but not the ring of the group. */
START_TEST(plan_with_the_same_first_ring_is_put_in_force)
{
	static const uint16_t same_first[] = {0, 1, 2, 3, 0, 2, 1, 3};
	uint64_t epoch;

	run_of(4);
	epoch = fk_status(&f).epoch;
	optimize(4, 2, same_first);
	expect_plan(4, 2, same_first);
	ck_assert_uint_eq(fk_status(&f).epoch, epoch + 1);
}
END_TEST

START_TEST(one_ring_replaces_a_plan)
{
	static const uint16_t at[] = {0, 1, 2, 3};

	run_with_plan();
	change_rates(4);
	vote(4);
	ck_assert_uint_eq(fk_problem(&f, 0)->current.n, 2);
	solve(1, at, 3, 1);
	expect_answer(4, true, "");
	expect_plan(4, 0, one_ring);
	plan_up(4);
	operate(4, LARGE, CC_ALGO_RING);
}
END_TEST

/* The next round does not wait for the links of the plan, because its members are in force. */
START_TEST(later_rounds_keep_the_plan)
{
	uint32_t i;

	run_with_plan();
	lose_link(0, 2, true); /* in the ring of the group */
	for (i = 0; i < 4; i++) {
		const struct wm_ring *r = &fk_take(h[i], WM_ROUND)->u.round.rings[0];

		ck_assert_uint_eq(r->plan.n, 2);
		ck_assert(!r->await_plan);
	}
	expect_plan(4, 2, two_rings);
}
END_TEST

START_TEST(host_that_joins_comes_last_in_all_rings)
{
	static const uint16_t order[] = {0, 2, 1, 3, 4, 3, 1, 0, 2, 4};
	uint32_t i;

	run_with_plan();
	newcomer(4, 0);
	for (i = 0; i < 4; i++)
		fk_topo(&p[i]);
	ck_assert_uint_eq(fk_status(&f).accepted, 5);
	expect_plan(5, 2, order);
}
END_TEST

START_TEST(host_that_leaves_is_taken_out_of_all_rings)
{
	static const uint16_t order[] = {0, 1, 3, 3, 1, 0};

	run_with_plan();
	fk_leave(&p[2], WM_LEAVE_CLEAN);
	expect_plan(3, 2, order);
}
END_TEST

/* Two hosts have all links in one ring. */
START_TEST(plan_ends_with_the_third_host)
{
	static const uint16_t order[] = {0, 3};

	run_with_plan();
	fk_leave(&p[2], WM_LEAVE_CLEAN);
	fk_leave(&p[1], WM_LEAVE_CLEAN);
	expect_ring(2, order);
	ck_assert_uint_eq(known[0].ring.plan.n, 0);
}
END_TEST

START_TEST(masters_with_one_ring_ask_for_one_ring)
{
	struct ccm_config cfg = usual_config();

	cfg.algorithm = CCM_ALGORITHM_RING;
	configure(&cfg);
	run_of(4);
	vote(4);
	ck_assert_uint_eq(fk_problem(&f, 0)->max_rings, 1);
	fk_forget(&f);
	solve(1, one_ring, 2, 1);
	expect_answer(4, true, "");
	expect_plan(4, 0, one_ring);
}
END_TEST

/* A round that would put a plan in force fails with one of its links, which the old ring does not
 * need. */
START_TEST(failed_link_of_a_plan_ends_the_optimization)
{
	static const uint16_t old[] = {0, 1, 2, 3};
	uint32_t i;

	run_of(4);
	vote(4);
	fk_manual(&f);
	solve(2, two_rings, 2, 1);
	fk_forget(&f);
	fk_round_report(h[1], h[0], "Connection timed out"); /* in the second ring */
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	fk_round_report(h[3], NULL, NULL);
	for (i = 0; i < 4; i++)
		h[i]->auto_report = true;
	fk_settle(&f);
	expect_answer(4, false, "Connection timed out");
	expect_plan(4, 0, old);
	ck_assert_uint_eq(count_all(4, WM_KICK), 0);
	optimization_works(4);
}
END_TEST

/* ---- routes ---- */

START_TEST(large_operations_take_the_plan_when_all_its_links_are_up)
{
	run_with_plan();
	operate(4, LARGE, CC_ALGO_RING);
	plan_up(3);
	operate(4, LARGE, CC_ALGO_RING);
	say_mesh(3, false, true, 0);
	operate(4, LARGE, CC_ALGO_RINGS);
	operate(4, 4096, CC_ALGO_RING); /* an eager operation */
	say_mesh(1, false, false, 0);
	operate(4, LARGE, CC_ALGO_RING);
}
END_TEST

/* The mesh carries small operations, and the plan carries large ones. */
START_TEST(operations_above_the_limit_of_the_mesh_take_the_plan)
{
	uint32_t i;

	run_with_plan();
	for (i = 0; i < 4; i++)
		say_mesh(i, true, true, 0);
	operate(4, UINT64_C(1) << 20, CC_ALGO_DIRECT);
	operate(4, LARGE, CC_ALGO_RINGS);
}
END_TEST

static void take_plan(void *arg, const struct ccm_plan_info *x)
{
	*(struct ccm_plan_info *)arg = *x;
}

static struct ccm_plan_info plan_info(void)
{
	struct ccm_plan_info x = {0};

	ccm_each_plan(f.m, take_plan, &x);
	return x;
}

/* The slowest link carries 1 Gbit/s, and a third of what a host sends in a direct exchange. */
START_TEST(quantized_operations_take_a_plan_that_is_much_faster)
{
	static const double plan_rate[] = {3.7, 3.8};
	enum cc_algo route = _i ? CC_ALGO_RINGS : CC_ALGO_DIRECT;
	uint32_t i;

	run_of(4);
	vote(4);
	solve(2, two_rings, plan_rate[_i] * GBIT, GBIT);
	expect_answer(4, true, "");
	for (i = 0; i < 4; i++)
		say_mesh(i, true, true, 0);
	quantized = true;
	operate(4, LARGE, route);
	operate(4, 4096, CC_ALGO_DIRECT); /* an eager operation */
	say_mesh(2, true, false, 0);
	operate(4, LARGE, CC_ALGO_DIRECT);
	say_mesh(2, true, true, 0);
	operate(4, LARGE, route);
	/* Nothing is predicted for other hosts. */
	ck_assert_double_eq(plan_info().rate, plan_rate[_i] * GBIT);
	fk_leave(&p[3], WM_LEAVE_CLEAN);
	ck_assert_double_eq(plan_info().rate, 0);
	for (i = 0; i < 3; i++)
		say_mesh(i, true, true, 0);
	operate(3, LARGE, CC_ALGO_DIRECT);
	quantized = false;
}
END_TEST

START_TEST(hosts_without_a_plan_take_the_ring)
{
	run_of(4);
	plan_up(4);
	operate(4, LARGE, CC_ALGO_RING);
}
END_TEST

START_TEST(lost_link_of_a_plan_interrupts_its_operations)
{
	const struct wm_op_abort *x;
	uint64_t seq;
	uint32_t i;

	run_with_plan();
	plan_up(4);
	seq = start(4, LARGE, CC_ALGO_RINGS);
	lose_link(1, 0, true); /* in the second ring only */
	ck_assert_uint_eq(count_all(4, WM_ROUND), 0);
	for (i = 0; i < 4; i++) {
		x = &fk_take(h[i], WM_OP_ABORT)->u.op_abort;
		ck_assert_uint_eq(x->seq, seq);
		ck_assert_uint_eq(x->code, WIRE_RANK_CONNECTION_LOST);
		fk_report(h[i], seq, false);
	}
	ck_assert(cc_id_eq(&fk_take(h[1], WM_LINK_REOPEN)->u.link_reopen.agent, &h[0]->id));
	operate(4, LARGE, CC_ALGO_RING);
	say_mesh(1, false, true, 0); /* a report from before the order */
	operate(4, LARGE, CC_ALGO_RING);
	say_mesh(1, false, true, 1);
	operate(4, LARGE, CC_ALGO_RINGS);
}
END_TEST

/* The agents have opened all links of the plan again, but do not say so before the commit. */
START_TEST(commit_waits_for_new_reports)
{
	run_with_plan();
	plan_up(4);
	operate(4, LARGE, CC_ALGO_RINGS);
	lose_link(0, 2, true);
	operate(4, LARGE, CC_ALGO_RING);
	plan_up(4);
	operate(4, LARGE, CC_ALGO_RINGS);
}
END_TEST

START_TEST(other_plan_with_the_same_ring_needs_new_reports)
{
	/* The positions in the ring of two_rings. */
	static const uint16_t other[] = {0, 1, 2, 3, 3, 1, 2, 0};

	run_with_plan();
	plan_up(4);
	change_rates(4);
	optimize(4, 2, other);
	operate(4, LARGE, CC_ALGO_RING);
	plan_up(4);
	operate(4, LARGE, CC_ALGO_RINGS);
}
END_TEST

/* ---- solutions that come later ---- */

/* A better solution of the last problem, after its first one. `order` has positions of that
 * problem. */
static void solve_later(uint32_t n_rings, const uint16_t *order, double rate)
{
	fk_forget(&f);
	solve(n_rings, order, rate, 1);
	ck_assert_uint_eq(count_all(4, WM_ROUND), 0);
}

START_TEST(better_solution_is_proposed_at_the_next_optimization)
{
	size_t asked;

	run_of(4);
	optimize(4, 1, one_ring);
	solve_later(2, two_rings, 3);
	asked = f.n_problems;
	vote(4);
	ck_assert_uint_eq(f.n_problems, asked); /* the solver is not asked again */
	expect_answer(4, true, "");
	expect_plan(4, 2, two_rings);
	optimization_works(4);
}
END_TEST

START_TEST(better_solution_is_proposed_at_a_topology_vote)
{
	const struct wm_commit *c;
	uint32_t i;

	run_of(4);
	optimize(4, 1, one_ring);
	solve_later(2, two_rings, 3);
	for (i = 0; i < 4; i++)
		fk_topo(&p[i]);
	for (i = 0; i < 4; i++) {
		c = &fk_take(h[i], WM_COMMIT)->u.commit;
		ck_assert(c->accept);
		ck_assert_uint_eq(fk_count(h[i], WM_COMMIT), 0);
	}
	expect_plan(4, 2, two_rings);
	/* It is proposed once. */
	fk_forget(&f);
	for (i = 0; i < 4; i++)
		fk_topo(&p[i]);
	ck_assert_uint_eq(count_all(4, WM_ROUND), 0);
	ck_assert_uint_eq(count_all(4, WM_COMMIT), 4);
}
END_TEST

START_TEST(better_solution_does_not_delay_newcomers)
{
	static const uint16_t order[] = {0, 2, 1, 3, 4};
	uint32_t i;

	run_of(4);
	optimize(4, 1, one_ring);
	solve_later(2, two_rings, 3);
	newcomer(4, 0);
	for (i = 0; i < 4; i++)
		fk_topo(&p[i]);
	ck_assert_uint_eq(fk_status(&f).accepted, 5);
	expect_plan(5, 0, order);
	/* It does not have the host that has joined. */
	for (i = 0; i < 5; i++)
		fk_topo(&p[i]);
	expect_plan(5, 0, order);
}
END_TEST

START_TEST(better_solution_that_fails_leaves_the_topology_vote_a_success)
{
	uint32_t i;

	run_of(4);
	optimize(4, 1, one_ring);
	solve_later(2, two_rings, 3);
	fk_manual(&f);
	for (i = 0; i < 4; i++)
		fk_topo(&p[i]);
	fk_forget(&f);
	fk_round_report(h[1], h[0], "Connection timed out");
	fk_round_report(h[0], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	fk_round_report(h[3], NULL, NULL);
	for (i = 0; i < 4; i++)
		h[i]->auto_report = true;
	fk_settle(&f);
	for (i = 0; i < 4; i++)
		ck_assert(fk_take(h[i], WM_COMMIT)->u.commit.accept);
	ck_assert_uint_eq(count_all(4, WM_KICK), 0);
	expect_plan(4, 0, one_ring);
	optimization_works(4);
}
END_TEST

/* The same number of hosts, but not the same hosts. */
START_TEST(better_solution_for_other_hosts_is_dropped)
{
	static const uint16_t order[] = {0, 2, 1, 4};
	uint32_t i;

	run_of(4);
	optimize(4, 1, one_ring);
	if (_i == 0)
		solve_later(2, two_rings, 3);
	fk_leave(&p[3], WM_LEAVE_CLEAN);
	newcomer(4, 0);
	for (i = 0; i < 3; i++)
		fk_topo(&p[i]);
	ck_assert_uint_eq(fk_status(&f).accepted, 4);
	if (_i == 1)
		solve_later(2, two_rings, 3);
	ck_assert_double_eq(plan_info().better, 0);
	h[3] = h[4];
	p[3] = p[4];
	fk_forget(&f);
	for (i = 0; i < 4; i++)
		fk_topo(&p[i]);
	ck_assert_uint_eq(count_all(4, WM_ROUND), 0);
	vote(4);
	solve_unchanged();
	expect_answer(4, true, "");
	h[4] = h[3];
	for (i = 0; i < 4; i++)
		ck_assert_uint_eq(known[order[i]].ring.plan.n, 0);
}
END_TEST

/* The solver has found nothing better, but it knows more about the bound. */
static void search_goes_on(double bound, bool searching)
{
	struct ccm_solution s = {.number = fk_problem(&f, 0)->number,
		.n = 4,
		.n_rings = 1,
		.order = one_ring,
		.rate = GBIT,
		.current = GBIT,
		.bound = bound,
		.searching = searching};

	fk_solved(&f, &s);
}

/* An operator sees the bound and whether the search goes on. After a loss neither is known. */
START_TEST(state_of_the_search_is_shown)
{
	double first;

	run_of(4);
	ck_assert(!plan_info().searching);
	optimize(4, 1, one_ring);
	first = plan_info().bound;
	search_goes_on(first * 2, true);
	ck_assert(plan_info().searching);
	ck_assert_double_eq(plan_info().bound, first);
	search_goes_on(first * 0.9, true);
	ck_assert_double_eq(plan_info().bound, first * 0.9);
	if (_i == 0) {
		search_goes_on(first * 0.9, false);
		ck_assert(!plan_info().searching);
		return;
	}
	fk_leave(&p[3], WM_LEAVE_CLEAN);
	ck_assert(!plan_info().searching);
	search_goes_on(first * 0.8, true);
	ck_assert(!plan_info().searching);
	ck_assert_double_eq(plan_info().bound, 0);
}
END_TEST

START_TEST(solution_that_is_hardly_better_is_not_kept)
{
	uint32_t i;

	run_of(4);
	optimize(4, 1, one_ring);
	solve_later(2, two_rings, 2.04);
	for (i = 0; i < 4; i++)
		fk_topo(&p[i]);
	ck_assert_uint_eq(count_all(4, WM_ROUND), 0);
	expect_plan(4, 0, one_ring);
}
END_TEST

/* The first answer comes before a ring is known. */
START_TEST(ring_may_be_found_later)
{
	struct ccm_solution s = {.n = 4, .current = 1, .bound = 9, .searching = true};
	uint32_t i;

	run_of(4);
	vote(4);
	fk_forget(&f);
	s.number = fk_problem(&f, 0)->number;
	fk_solved(&f, &s);
	expect_answer(4, true, "");
	ck_assert_uint_eq(count_all(4, WM_ROUND), 0);
	ck_assert_ptr_null(strstr(f.log, "no ring"));
	ck_assert(plan_info().searching);
	ck_assert_double_eq(plan_info().bound, 9);
	ck_assert_double_eq(plan_info().rate, 1);
	solve_later(2, two_rings, 3);
	for (i = 0; i < 4; i++)
		fk_topo(&p[i]);
	expect_plan(4, 2, two_rings);
}
END_TEST

/* While a round puts the first solution in force, a second one comes that is hardly better. */
START_TEST(solution_during_the_round_must_be_better_than_the_first_one)
{
	uint32_t i;

	run_of(4);
	vote(4);
	fk_manual(&f);
	solve(1, one_ring, 2, 1);
	solve(2, two_rings, 2.01, 1);
	for (i = 0; i < 4; i++)
		h[i]->auto_report = true;
	fk_settle(&f);
	expect_answer(4, true, "");
	fk_forget(&f);
	for (i = 0; i < 4; i++)
		fk_topo(&p[i]);
	ck_assert_uint_eq(count_all(4, WM_ROUND), 0);
	expect_plan(4, 0, one_ring);
}
END_TEST

/* ---- takeovers ---- */

START_TEST(new_master_keeps_the_plan)
{
	run_with_plan();
	plan_up(4);
	replace_master(4);
	expect_plan(4, 2, two_rings);
	ck_assert(!known[0].ring.await_plan);
	operate(4, LARGE, CC_ALGO_RING); /* until the agents report again */
	plan_up(4);
	operate(4, LARGE, CC_ALGO_RINGS);
	vote(4);
	ck_assert_uint_eq(fk_problem(&f, 0)->current.n, 2);
	solve_unchanged();
	expect_answer(4, true, "");
}
END_TEST

/* Agents whose snapshots contradict each other are no reason for a crash. */
START_TEST(new_master_decides_between_different_plans)
{
	uint32_t i, r, k;

	run_with_plan();
	for (k = 0; k < 4; k++) {
		uint8_t *order = known[_i].ring.plan.order[1];

		order[k] = (uint8_t)k;
	}
	ck_assert_int_eq(cc_rings_complete(&known[_i].ring.plan), 0);
	replace_master(4);
	for (i = 0; i < 4; i++)
		for (r = 0; r < 2; r++)
			ck_assert_mem_eq(known[i].ring.plan.order[r], known[0].ring.plan.order[r],
				CC_ROUTE_HOSTS_MAX);
	plan_up(4);
	operate(4, LARGE, CC_ALGO_RINGS);
}
END_TEST

Suite *plan_suite(void)
{
	Suite *s = suite_create("plan");
	TCase *tc = tcase_create("plan");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, round_carries_the_plan_and_waits_for_its_links);
	tcase_add_test(tc, plan_with_the_same_first_ring_is_put_in_force);
	tcase_add_test(tc, one_ring_replaces_a_plan);
	tcase_add_test(tc, later_rounds_keep_the_plan);
	tcase_add_test(tc, host_that_joins_comes_last_in_all_rings);
	tcase_add_test(tc, host_that_leaves_is_taken_out_of_all_rings);
	tcase_add_test(tc, plan_ends_with_the_third_host);
	tcase_add_test(tc, masters_with_one_ring_ask_for_one_ring);
	tcase_add_test(tc, failed_link_of_a_plan_ends_the_optimization);
	tcase_add_test(tc, large_operations_take_the_plan_when_all_its_links_are_up);
	tcase_add_test(tc, operations_above_the_limit_of_the_mesh_take_the_plan);
	tcase_add_loop_test(tc, quantized_operations_take_a_plan_that_is_much_faster, 0, 2);
	tcase_add_test(tc, hosts_without_a_plan_take_the_ring);
	tcase_add_test(tc, lost_link_of_a_plan_interrupts_its_operations);
	tcase_add_test(tc, commit_waits_for_new_reports);
	tcase_add_test(tc, other_plan_with_the_same_ring_needs_new_reports);
	tcase_add_test(tc, better_solution_is_proposed_at_the_next_optimization);
	tcase_add_test(tc, better_solution_is_proposed_at_a_topology_vote);
	tcase_add_test(tc, better_solution_does_not_delay_newcomers);
	tcase_add_test(tc, better_solution_that_fails_leaves_the_topology_vote_a_success);
	tcase_add_loop_test(tc, better_solution_for_other_hosts_is_dropped, 0, 2);
	tcase_add_loop_test(tc, state_of_the_search_is_shown, 0, 2);
	tcase_add_test(tc, ring_may_be_found_later);
	tcase_add_test(tc, solution_that_is_hardly_better_is_not_kept);
	tcase_add_test(tc, solution_during_the_round_must_be_better_than_the_first_one);
	tcase_add_test(tc, new_master_keeps_the_plan);
	tcase_add_loop_test(tc, new_master_decides_between_different_plans, 0, 4);
	suite_add_tcase(s, tc);
	return s;
}
