/* SPDX-License-Identifier: MIT
 *
 * What hosts can carry over all their links together: the round in which all hosts send, and the
 * rounds of single hosts that follow where it says too little.
 */
#include "ccoip-masterd/core/ccm_caps.h"
#include "tests/master/optimize.h"
#include "tests/master/suites.h"

#define HOSTS 7u
#define LINKS (HOSTS - 1)

/* ---- which caps are suspect ---- */

static struct ccm_links links_of(uint32_t n, const uint64_t *v)
{
	struct ccm_links x = {.sum = 0};
	uint32_t i;

	for (i = 0; i < n; i++)
		ccm_links_add(&x, v[i]);
	return x;
}

/* No adapter is the limit: all links together are as fast as each one alone, or nearly so. */
START_TEST(links_that_were_the_limit_are_not_suspect)
{
	static const uint64_t v[] = {100, 300, 100};
	struct ccm_links x = links_of(3, v);

	ck_assert_uint_eq(ccm_cap_if_sure(&x, 500), 500);
	ck_assert_uint_eq(ccm_cap_if_sure(&x, 475), 500);
	ck_assert_uint_eq(ccm_cap_if_sure(&x, 510), 500);
	ck_assert_uint_eq(ccm_cap_if_sure(&x, 470), 0);
	ck_assert_uint_eq(ccm_cap_of(&x, 475), 500);
	ck_assert_uint_eq(ccm_cap_of(&x, 440), 440);
	ck_assert_uint_eq(ccm_cap_of(&x, 510), 500);
}
END_TEST

/* Two links alone are as fast as all links together: that is the rate of the adapter. */
START_TEST(adapter_that_bounds_single_links_is_not_suspect)
{
	static const uint64_t v[] = {100, 1000, 991, 500};
	struct ccm_links x = links_of(4, v);

	ck_assert_uint_eq(ccm_cap_if_sure(&x, 1000), 1000);
	ck_assert_uint_eq(ccm_cap_if_sure(&x, 1080), 1000);
	ck_assert_uint_eq(ccm_cap_if_sure(&x, 920), 1000);
	ck_assert_uint_eq(ccm_cap_if_sure(&x, 1200), 0);
	ck_assert_uint_eq(ccm_cap_if_sure(&x, 850), 0);
	ck_assert_uint_eq(ccm_cap_of(&x, 850), 1000);
}
END_TEST

/* A sum that equals the rate of a single link by chance proves nothing. */
START_TEST(sum_like_the_only_fast_link_is_suspect)
{
	static const uint64_t v[] = {1000, 985, 200};
	struct ccm_links x = links_of(3, v);

	ck_assert_uint_eq(ccm_cap_if_sure(&x, 1000), 0);
}
END_TEST

/* ---- rounds ---- */

/* Sets the rate of all links. */
static void all_rates(uint64_t rate)
{
	uint32_t i, k;

	for (i = 0; i < HOSTS_MAX; i++)
		for (k = 0; k < HOSTS_MAX; k++)
			rates[i][k] = rate;
}

/* Lets all hosts vote, and measures the pairs: each link has 2 Gbit/s. All hosts then have the
 * order to send to all. */
static void begin_cap_round(void)
{
	uint32_t i;

	all_rates(2 * GBIT);
	run_of(HOSTS);
	manual_measurements(HOSTS);
	vote(HOSTS);
	for (i = 0; i < LINKS; i++)
		end_round(HOSTS);
	for (i = 0; i < HOSTS; i++)
		ck_assert(h[i]->order.n_to == LINKS && h[i]->order.hold);
}

/* Expects that host `out` sends to all others, that host `in` receives from all others, and nothing
 * else. Either can be CCM_NO_HOST. */
static void expect_round(uint32_t out, uint32_t in)
{
	uint32_t i, n_to, n_from;

	ck_assert_uint_ne(out, in);
	for (i = 0; i < HOSTS; i++) {
		const struct wm_measure *o = &h[i]->order;

		n_to = i == out ? LINKS : i != in && in != CCM_NO_HOST;
		n_from = i == in ? LINKS : i != out && out != CCM_NO_HOST;
		ck_assert(o->hold);
		ck_assert_uint_eq(o->ms, 252); /* a quarter of a second and ten round trips */
		ck_assert_uint_eq(o->n_to, n_to);
		ck_assert_uint_eq(o->n_from, n_from);
		ck_assert(i == out || n_to == 0 || index_of(&o->to[0].agent) == in);
		/* cppcheck-suppress arrayIndexOutOfBounds ; n_from is 0 then */
		ck_assert(i == in || n_from == 0 || cc_id_eq(&o->from[0], &h[out]->id));
	}
}

/* Expects that the load has ended, and that the solver is asked. Returns the problem. */
static const struct ccm_problem *expect_end(void)
{
	uint32_t i;

	for (i = 0; i < HOSTS; i++)
		ck_assert_uint_eq(h[i]->order.n_to, 0);
	return fk_problem(&f, 0);
}

START_TEST(uniform_hosts_exchange_all_at_once_only)
{
	const struct ccm_problem *x;
	uint32_t i;

	begin_cap_round();
	all_rates(2 * GBIT / LINKS); /* adapters of 2 Gbit/s */
	end_round(HOSTS);
	x = expect_end();
	for (i = 0; i < HOSTS; i++)
		ck_assert(x->out[i] == 2 * GBIT && x->in[i] == 2 * GBIT);
}
END_TEST

/* Sets the rates of all links from a host. */
static void host_sends(uint32_t host, uint64_t rate)
{
	for (uint32_t i = 0; i < HOSTS; i++)
		rates[host][i] = rate;
}

/* Sets the rates of all links to a host. */
static void host_receives(uint32_t host, uint64_t rate)
{
	for (uint32_t i = 0; i < HOSTS; i++)
		rates[i][host] = rate;
}

/* Lets a host send three quarters of what it can carry in the cap round. Its own round begins. */
static void make_suspect(uint32_t host)
{
	begin_cap_round();
	host_sends(host, GBIT * 15 / 10);
	end_round(HOSTS);
	expect_round(host, CCM_NO_HOST);
}

/* Fair sharing gave host 2 less than it can carry. */
START_TEST(host_with_a_suspect_cap_sends_alone_to_all)
{
	const struct ccm_problem *x;

	make_suspect(2);
	host_sends(2, GBIT * 18 / 10);
	end_round(HOSTS);
	x = expect_end();
	ck_assert_uint_eq(x->out[2], LINKS * (GBIT * 18 / 10));
	ck_assert_uint_eq(x->in[2], LINKS * 2 * GBIT);
	ck_assert_uint_eq(x->out[3], LINKS * 2 * GBIT);
	ck_assert_uint_eq(x->rates[2 * HOSTS + 3], 2 * GBIT); /* that of the pair alone */
	solve_unchanged();
	expect_answer(HOSTS, true, "");
}
END_TEST

START_TEST(host_with_a_suspect_cap_receives_alone_from_all)
{
	const struct ccm_problem *x;

	begin_cap_round();
	host_receives(5, GBIT * 15 / 10);
	end_round(HOSTS);
	expect_round(CCM_NO_HOST, 5);
	host_receives(5, GBIT * 18 / 10);
	end_round(HOSTS);
	x = expect_end();
	ck_assert_uint_eq(x->in[5], LINKS * (GBIT * 18 / 10));
	ck_assert_uint_eq(x->out[5], LINKS * 2 * GBIT);
}
END_TEST

/* If all hosts send, their processors and queues are busy, too. So sums can be too high. */
START_TEST(host_round_replaces_what_the_cap_round_has_measured)
{
	const struct ccm_problem *x;

	make_suspect(2);
	host_sends(2, GBIT * 14 / 10);
	end_round(HOSTS);
	x = expect_end();
	ck_assert_uint_eq(x->out[2], LINKS * (GBIT * 14 / 10));
	ck_assert_uint_eq(x->in[2], LINKS * 2 * GBIT);
}
END_TEST

/* One host with both caps suspect cannot send and receive in the same round. */
START_TEST(directions_of_one_host_are_measured_one_after_the_other)
{
	const struct ccm_problem *x;

	begin_cap_round();
	host_sends(4, GBIT * 15 / 10);
	host_receives(4, GBIT * 15 / 10);
	end_round(HOSTS);
	expect_round(4, CCM_NO_HOST);
	host_sends(4, GBIT * 16 / 10);
	end_round(HOSTS);
	expect_round(CCM_NO_HOST, 4);
	host_receives(4, GBIT * 17 / 10);
	end_round(HOSTS);
	x = expect_end();
	ck_assert_uint_eq(x->out[4], LINKS * (GBIT * 16 / 10));
	ck_assert_uint_eq(x->in[4], LINKS * (GBIT * 17 / 10));
}
END_TEST

START_TEST(lowest_caps_come_first)
{
	bool sent[HOSTS] = {false}, received[HOSTS] = {false};
	uint32_t k, out, in;

	begin_cap_round();
	all_rates(GBIT);
	host_sends(6, GBIT * 8 / 10);
	host_receives(3, GBIT * 7 / 10);
	end_round(HOSTS);
	for (k = 0; k < HOSTS; k++) {
		for (out = 0; h[out]->order.n_to != LINKS; out++)
			ck_assert_uint_lt(out, HOSTS - 1);
		for (in = 0; h[in]->order.n_from != LINKS; in++)
			ck_assert_uint_lt(in, HOSTS - 1);
		ck_assert(!sent[out] && !received[in]);
		sent[out] = received[in] = true;
		ck_assert(k != 0 || (out == 6 && in == 3));
		expect_round(out, in);
		end_round(HOSTS);
	}
	(void)expect_end();
}
END_TEST

/* A sender whose agent was busy meanwhile counts too little, and then too much. */
START_TEST(single_reports_of_what_was_received_do_not_matter)
{
	uint64_t values[] = {0, 930, 400, 920, 1400, 910, 0};

	ck_assert_uint_eq(ccm_cap_middle(values, 7), 920);
	ck_assert_uint_eq(ccm_cap_middle(values, 1), 0);
}
END_TEST

static void fill(struct ccm_suspects *x, const uint32_t *caps, uint32_t n)
{
	x->n = 0;
	for (uint32_t i = 0; i < n; i++)
		ccm_suspects_add(x, i, caps[i]);
}

/* All hosts are in both lists, in random orders. */
START_TEST(no_host_sends_and_receives_in_one_round)
{
	struct ccm_host_round r[CCM_HOST_ROUNDS_MAX];
	struct tl_rng rng = tl_rng_new((uint64_t)_i);
	struct ccm_suspects out, in;
	uint32_t caps[20], n[2], rounds, k;
	uint64_t alone[400];

	for (k = 0; k < 2; k++) {
		n[k] = (uint32_t)tl_range(&rng, 0, 19);
		for (uint32_t i = 0; i < n[k]; i++)
			caps[i] = (uint32_t)tl_range(&rng, 1, 9);
		fill(k == 0 ? &out : &in, caps, n[k]);
		n[k] = n[k] < CCM_HOST_ROUNDS_MAX ? n[k] : CCM_HOST_ROUNDS_MAX;
	}
	for (k = 0; k < 400; k++)
		alone[k] = tl_range(&rng, 0, 9);
	rounds = ccm_host_rounds(&out, &in, alone, 20, r);
	ck_assert_uint_le(rounds, CCM_HOST_ROUNDS_MAX);
	for (k = 0; k < rounds; k++) {
		ck_assert_uint_ne(r[k].out, r[k].in);
		n[0] -= r[k].out != CCM_NO_HOST;
		n[1] -= r[k].in != CCM_NO_HOST;
		for (uint32_t i = 0; i < k; i++) {
			ck_assert(r[i].out != r[k].out || r[i].out == CCM_NO_HOST);
			ck_assert(r[i].in != r[k].in || r[i].in == CCM_NO_HOST);
		}
	}
	ck_assert_uint_eq(n[0] + n[1], 0);
}
END_TEST

/* Host 0 needs its link to host 3 to reach its cap, and host 4 needs the link from host 1. In a
 * round of host 0 with host 3, this link would carry little, because others send to host 3, too. */
START_TEST(host_is_measured_with_one_that_its_cap_does_not_need)
{
	struct ccm_host_round r[CCM_HOST_ROUNDS_MAX];
	struct ccm_suspects out = {.n = 0}, in = {.n = 0};
	uint64_t alone[25];
	bool needs = _i == 0;

	for (uint32_t i = 0; i < 25; i++)
		alone[i] = i / 5 == i % 5 ? 0 : 100;
	alone[0 * 5 + 3] = 700;
	alone[1 * 5 + 4] = 700;
	ccm_suspects_add(&out, 0, needs ? 700 : 200);
	ccm_suspects_add(&out, 1, needs ? 701 : 201);
	ccm_suspects_add(&in, 3, 200);
	ccm_suspects_add(&in, 4, needs ? 700 : 201);
	ck_assert_uint_eq(ccm_host_rounds(&out, &in, alone, 5, r), 2);
	ck_assert_uint_eq(r[0].out, 0);
	ck_assert_uint_eq(r[0].in, needs ? 4 : 3);
	ck_assert_uint_eq(r[1].out, 1);
	ck_assert_uint_eq(r[1].in, needs ? 3 : 4);
}
END_TEST

START_TEST(trusted_caps_are_not_measured_again)
{
	uint32_t i;

	begin_cap_round();
	all_rates(GBIT);
	for (i = 0; i < HOSTS; i++)
		h[i]->auto_measured = true;
	fk_settle(&f);
	solve_unchanged();
	fk_forget(&f);
	vote(HOSTS);
	expect_answer(HOSTS, true, "");
	ck_assert_uint_eq(count_all(HOSTS, WM_MEASURE), 0);
}
END_TEST

/* ---- failures ---- */

/* All others stop, too. They answered already, but their load goes on, or others still measure to
 * them. */
START_TEST(silent_host_ends_the_round_of_a_single_host)
{
	uint32_t i;

	begin_cap_round();
	host_sends(2, GBIT * 15 / 10);
	host_receives(5, GBIT * 15 / 10);
	end_round(HOSTS);
	expect_round(2, 5);
	for (i = 0; i < HOSTS; i++)
		if (i != 4 && i != 5)
			fk_measured(h[i]);
	fk_forget(&f);
	fk_tick(&f, 4000);
	ck_assert_uint_eq(count_all(HOSTS, WM_BALLOT_END), 0);
	fk_tick(&f, 3300);
	expect_answer(HOSTS, false, "host h4 did not end its measurement within");
	ck_assert_uint_eq(count_all(HOSTS, WM_MEASURE), HOSTS); /* host 5 receives */
	for (i = 0; i < HOSTS; i++) {
		ck_assert_uint_eq(h[i]->order.n_to, 0);
		h[i]->auto_measured = true;
	}
	optimization_works(HOSTS);
}
END_TEST

Suite *caps_suite(void)
{
	Suite *s = suite_create("caps");
	TCase *pure = tcase_create("suspect"), *tc = tcase_create("rounds");

	tcase_add_test(pure, links_that_were_the_limit_are_not_suspect);
	tcase_add_test(pure, adapter_that_bounds_single_links_is_not_suspect);
	tcase_add_test(pure, sum_like_the_only_fast_link_is_suspect);
	tcase_add_test(pure, single_reports_of_what_was_received_do_not_matter);
	tcase_add_loop_test(pure, no_host_sends_and_receives_in_one_round, 0, 50);
	tcase_add_loop_test(pure, host_is_measured_with_one_that_its_cap_does_not_need, 0, 2);
	suite_add_tcase(s, pure);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, uniform_hosts_exchange_all_at_once_only);
	tcase_add_test(tc, host_with_a_suspect_cap_sends_alone_to_all);
	tcase_add_test(tc, host_with_a_suspect_cap_receives_alone_from_all);
	tcase_add_test(tc, directions_of_one_host_are_measured_one_after_the_other);
	tcase_add_test(tc, host_round_replaces_what_the_cap_round_has_measured);
	tcase_add_test(tc, lowest_caps_come_first);
	tcase_add_test(tc, trusted_caps_are_not_measured_again);
	tcase_add_test(tc, silent_host_ends_the_round_of_a_single_host);
	suite_add_tcase(s, tc);
	return s;
}
