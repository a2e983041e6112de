/* SPDX-License-Identifier: MIT
 *
 * Measurements that the master orders, and the rates that the agent remembers.
 */
#include "pcclagentd/core/agt_rates.h"
#include "tests/agent/fixture.h"

#define S UINT64_C(1000000000)

static struct fx *f;
static uint32_t comms[4];

static void setup(void)
{
	f = fx_new();
	fx_group(f, 2, 2, comms);
}

static void teardown(void)
{
	fx_free(f);
}

/* Sends the order with this number to run 1: to measure the rates to n agents fx_id(110), ..., and
 * to let fx_id(120) measure. hold: others measure under this load. */
static void order_held(uint64_t number, uint32_t n, bool hold)
{
	struct wm_endpoint to[4] = {{.port = 1}};
	struct cc_id from = fx_id(120);
	struct wm_msg m = {.type = WM_MEASURE,
		.u.measure = {.number = number,
			.ms = 500,
			.streams = 2,
			.hold = hold,
			.n_to = n,
			.to = to,
			.host = {"node-7", {CC_INET4, {10, 0, 0, 7}, 48150}},
			.n_from = 1,
			.from = &from}};

	for (uint32_t i = 0; i < n; i++)
		to[i].agent = fx_id(110 + i);
	fx_from_master(f, 1, &m);
}

static void order(uint64_t number, uint32_t n)
{
	order_held(number, n, false);
}

/* All n agents were measured. */
static void measured(uint64_t number, uint32_t n)
{
	struct wm_measured_result v[4] = {{.ok = true}};
	struct agt_event ev = {
		.type = AGT_EV_MEASURED, .run = 1, .seq = number, .n_measured = n, .measured = v};

	for (uint32_t i = 0; i < n; i++)
		v[i] = (struct wm_measured_result){.agent = fx_id(110 + i),
			.ok = true,
			.rate = 1000 + i,
			.trip_us = 7,
			.confidence = 95};
	fx_step(f, &ev);
}

static void expect_stop(uint64_t number)
{
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MEASURE_STOP), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MEASURE_STOP, 0)->u.measure.number, number);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MEASURE_STOP, 0)->run, 1);
	ck_assert_uint_eq(fx_sent(f, WM_MEASURED), 0);
}

/* Expects that nothing was measured to n agents, and why. */
static void expect_busy(uint64_t number, uint32_t n, const char *why)
{
	const struct wm_measured *m;

	ck_assert_uint_eq(fx_sent(f, WM_MEASURED), 1);
	m = &fx_msg(f, WM_MEASURED, 0)->u.measured;
	ck_assert_uint_eq(m->number, number);
	ck_assert_uint_eq(m->n, n);
	for (uint32_t i = 0; i < n; i++) {
		ck_assert(fx_is(&m->results[i].agent, fx_id(110 + i)));
		ck_assert(!m->results[i].ok && !m->results[i].limit && m->results[i].rate == 0);
		ck_assert(m->results[i].busy);
		ck_assert(strstr(m->results[i].text, why));
	}
}

/* The agents that send to this one are told to measure later. */
static void expect_senders_told(uint64_t number)
{
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MEASURE_STOP), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MEASURE_BUSY), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MEASURE_BUSY, 0)->u.measure.number, number);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MEASURE_BUSY, 0)->run, 1);
}

/* An order that cannot be carried out lets fx_id(120) connect, to be told so. */
static void expect_refusal(uint64_t number, uint32_t n, const char *why)
{
	const struct wm_measure *m;

	ck_assert_uint_eq(fx_count(f, AGT_ACT_MEASURE), 1);
	m = &fx_get(f, AGT_ACT_MEASURE, 0)->u.measure;
	ck_assert(m->number == number && m->n_to == 0);
	ck_assert(m->n_from == 1 && fx_is(&m->from[0], fx_id(120)));
	expect_senders_told(number);
	if (n > 0)
		expect_busy(number, n, why);
	else
		ck_assert_uint_eq(fx_sent(f, WM_MEASURED), 0);
}

static const char OPERATION[] = "operation is in progress";

START_TEST(order_is_carried_out_and_answered)
{
	const struct wm_measure *x;
	const struct wm_measured *m;

	order(5, 2);
	ck_assert_uint_eq(f->acts.n, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MEASURE, 0)->run, 1);
	x = &fx_get(f, AGT_ACT_MEASURE, 0)->u.measure;
	ck_assert_uint_eq(x->number, 5);
	ck_assert_uint_eq(x->ms, 500);
	ck_assert_uint_eq(x->streams, 2);
	ck_assert(x->n_to == 2 && fx_is(&x->to[1].agent, fx_id(111)));
	ck_assert(x->n_from == 1 && fx_is(&x->from[0], fx_id(120)));
	measured(5, 2);
	ck_assert_uint_eq(f->acts.n, 1);
	m = &fx_msg(f, WM_MEASURED, 0)->u.measured;
	ck_assert_uint_eq(m->number, 5);
	ck_assert_uint_eq(m->n, 2);
	ck_assert(m->results[1].ok && m->results[1].rate == 1001 && m->results[1].trip_us == 7);
	ck_assert(fx_is(&m->results[1].agent, fx_id(111)));
	measured(5, 2); /* the order is answered once */
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

static void expect_progress(uint32_t round, uint32_t rounds)
{
	ck_assert_uint_eq(fx_count(f, AGT_ACT_ATTRS), 2); /* of two communicators */
	for (unsigned i = 0; i < 2; i++) {
		const struct agt_attrs *x = &fx_get(f, AGT_ACT_ATTRS, i)->u.attrs;

		ck_assert_uint_eq(x->state, SHM_COMM_CONNECTED);
		ck_assert_uint_eq(x->round, round);
		ck_assert_uint_eq(x->rounds, rounds);
	}
}

START_TEST(processes_see_the_progress)
{
	struct cc_id from = fx_id(120);
	struct wm_msg m = {.type = WM_MEASURE,
		.u.measure = {.number = 5,
			.ms = 500,
			.streams = 2,
			.round = 3,
			.rounds = 7,
			.n_from = 1,
			.from = &from}};

	fx_from_master(f, 1, &m);
	expect_progress(3, 7);
	m.u.measure.number++;
	m.u.measure.n_from = 0; /* the end */
	fx_from_master(f, 1, &m);
	expect_progress(0, 0);
}
END_TEST

START_TEST(newer_order_replaces_the_older_one)
{
	order(5, 2);
	order(6, 1);
	ck_assert_uint_eq(f->acts.n, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MEASURE, 0)->u.measure.number, 6);
	measured(5, 2);
	ck_assert_uint_eq(f->acts.n, 0);
	measured(6, 1);
	ck_assert_uint_eq(fx_msg(f, WM_MEASURED, 0)->u.measured.number, 6);
}
END_TEST

/* Also after the answer, because the order lets other agents measure. */
START_TEST(empty_order_stops_the_one_before)
{
	struct wm_msg stop = {
		.type = WM_MEASURE, .u.measure = {.number = 9, .ms = 1, .streams = 1}};

	fx_from_master(f, 1, &stop);
	ck_assert_uint_eq(f->acts.n, 0);
	order(5, 2);
	if (_i == 1)
		measured(5, 2);
	fx_from_master(f, 1, &stop);
	expect_stop(5);
	measured(5, 2);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_from_master(f, 1, &stop);
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

START_TEST(round_stops_a_measurement)
{
	struct fx_ring ring = {.group = 7, .hosts = 2, .world_size = 3, .n = 2, .members = {1, 2}};

	order(5, 1);
	fx_round(f, 1, 2, false, &ring, 1);
	expect_stop(5);
	measured(5, 1);
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

START_TEST(measurement_ends_with_its_master)
{
	order(5, 1);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection reset by peer");
	expect_stop(5);
	measured(5, 1); /* the next master orders its own measurements */
	ck_assert_uint_eq(f->acts.n, 0);
	fx_resume(f);
	measured(5, 1);
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

START_TEST(measurement_ends_with_its_run)
{
	order(5, 1);
	fx_session_closed(f, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MEASURE_STOP), 0);
	fx_session_closed(f, 2);
	fx_left(f, 1, 1);
	fx_left(f, 1, 2);
	/* MASTER_CLOSE has stopped it. */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MEASURE_STOP), 0);
	measured(5, 1);
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

START_TEST(order_is_refused_during_an_operation)
{
	fx_submit(f, comms[0], 0, 3, 8);
	order(4, 1); /* the operation still collects its members */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MEASURE), 1);
	fx_submit(f, comms[1], 0, 3, 8);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MEASURE_STOP), 0);
	fx_op_start(f, 1, 7, 3, 1);
	expect_busy(4, 1, OPERATION);
	expect_senders_told(4);
	order(5, 3);
	expect_refusal(5, 3, OPERATION);
	order(6, 0); /* there is nothing to answer */
	expect_refusal(6, 0, OPERATION);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	order(7, 1); /* other hosts may still need the network */
	expect_refusal(7, 1, OPERATION);
	fx_op_done(f, 1, 1);
	order(8, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MEASURE), 1);
}
END_TEST

/* The results are at the master already, so it gets no others when an operation starts. */
START_TEST(operation_after_the_answer_only_stops_the_rest)
{
	order(5, 1);
	measured(5, 1);
	fx_submit(f, comms[0], 0, 3, 8);
	fx_submit(f, comms[1], 0, 3, 8);
	fx_op_start(f, 1, 7, 3, 1);
	expect_senders_told(5);
	ck_assert_uint_eq(fx_sent(f, WM_MEASURED), 0);
}
END_TEST

/* Makes a second run, with two peers on this host. */
static void other_run(uint32_t ret[2])
{
	struct fx_ring ring = {.group = 8, .hosts = 2, .world_size = 3, .n = 2, .members = {3, 4}};

	for (uint32_t i = 0; i < 2; i++) {
		fx_session(f, 3 + i, 1000 + i);
		ret[i] = fx_create(f, 3 + i, 8, 2);
		fx_connect(f, 3 + i, ret[i], 3 + i);
	}
	fx_master_up(f, 2);
	fx_accept(f, 2, 1, &ring, 1);
}

/* Whether the operation comes first (0) or the order (1). */
START_TEST(operation_of_another_run_uses_the_network_too)
{
	uint32_t others[2];

	other_run(others);
	if (_i == 1)
		order(4, 1);
	fx_submit(f, others[0], 0, 3, 8);
	fx_submit(f, others[1], 0, 3, 8);
	fx_op_start(f, 2, 8, 3, 1);
	if (_i == 1) {
		expect_busy(4, 1, OPERATION);
		expect_senders_told(4);
	} else {
		order(4, 1);
		expect_refusal(4, 1, OPERATION);
	}
	fx_xfer(f, AGT_EV_XFER_DONE, 2, 1, 0);
	fx_op_done(f, 2, 1);
	order(5, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MEASURE, 0)->u.measure.n_to, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MEASURE_BUSY), 0);
}
END_TEST

START_TEST(runs_measure_one_after_the_other)
{
	struct wm_msg stop = {
		.type = WM_MEASURE, .u.measure = {.number = 9, .ms = 1, .streams = 1}};
	struct wm_endpoint to = {.port = 1, .agent = fx_id(110)};
	struct wm_msg other = {.type = WM_MEASURE,
		.u.measure = {.number = 1, .ms = 500, .streams = 2, .n_to = 1, .to = &to}};
	uint32_t others[2];

	other_run(others);
	fx_from_master(f, 2, &other);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MEASURE), 1);
	order(4, 1);
	expect_refusal(4, 1, "another run");
	fx_from_master(f, 2, &other); /* the same run may replace its order */
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MEASURE, 0)->u.measure.n_to, 1);
	fx_from_master(f, 2, &stop);
	order(5, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MEASURE, 0)->u.measure.n_to, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MEASURE_BUSY), 0);
}
END_TEST

/* Such an order breaks the protocol: as target (0) or as an agent that sends (1). */
START_TEST(order_that_leads_to_this_agent_ends_the_run)
{
	struct wm_endpoint to = {.agent = fx_id(_i == 0 ? 99 : 98), .port = 1};
	struct cc_id from = fx_id(_i == 0 ? 98 : 99);
	struct wm_msg m = {.type = WM_MEASURE,
		.u.measure = {.number = 1,
			.ms = 1,
			.streams = 1,
			.n_to = 1,
			.to = &to,
			.n_from = 1,
			.from = &from}};

	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MEASURE), 0);
}
END_TEST

static size_t sent_at(enum wm_type type)
{
	size_t i = 0;

	while (i < f->acts.n &&
		(f->acts.v[i].type != AGT_ACT_MASTER_SEND || f->acts.v[i].u.msg.type != type))
		i++;
	return i;
}

START_TEST(snapshot_contains_the_rates)
{
	struct wm_msg caps = {.type = WM_RATES, .u.rates = {.out = 900, .in = 800}};
	const struct wm_rates *m;

	order(5, 1);
	measured(5, 1);
	order(6, 2); /* the rates of several links at once are not those of each alone */
	measured(6, 2);
	fx_from_master(f, 1, &caps);
	fx_orphan(f);
	f->now += 3 * S;
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_RATES), 1);
	ck_assert_uint_lt(sent_at(WM_RATES), sent_at(WM_RESUME));
	m = &fx_msg(f, WM_RATES, 0)->u.rates;
	ck_assert_uint_eq(m->n, 1);
	ck_assert(fx_is(&m->rates[0].agent, fx_id(110)));
	ck_assert_uint_eq(m->rates[0].rate, 1000);
	ck_assert_uint_eq(m->rates[0].age_s, 3);
	ck_assert_uint_eq(m->rates[0].confidence, 95);
	ck_assert_str_eq(m->rates[0].host.name, "node-7");
	ck_assert_uint_eq(m->rates[0].host.addr.ip[3], 7);
	ck_assert_uint_eq(m->rates[0].host.addr.port, 48150);
	ck_assert(m->out == 900 && m->in == 800 && m->caps_age_s == 3);
}
END_TEST

/* A master of another run gets them, too, right after its greeting. */
START_TEST(rates_outlive_their_run)
{
	uint32_t comm;

	order(5, 1);
	measured(5, 1);
	fx_session(f, 3, 1000);
	comm = fx_create(f, 3, 7, 2);
	fx_connect(f, 3, comm, 3);
	f->now += 2 * S;
	fx_master_up(f, 2);
	ck_assert_uint_eq(fx_sent(f, WM_RATES), 1);
	ck_assert_uint_lt(sent_at(WM_RATES), sent_at(WM_JOIN));
	ck_assert_uint_eq(fx_msg(f, WM_RATES, 0)->u.rates.rates[0].age_s, 2);
}
END_TEST

/* Nothing is remembered of agents that could not be measured, and nothing is sent then. */
START_TEST(failures_are_not_remembered)
{
	struct wm_measured_result v = {.agent = fx_id(110), .text = "no connection in time"};
	struct agt_event ev = {
		.type = AGT_EV_MEASURED, .run = 1, .seq = 5, .n_measured = 1, .measured = &v};

	order(5, 1);
	fx_step(f, &ev);
	ck_assert_str_eq(fx_msg(f, WM_MEASURED, 0)->u.measured.results[0].text, v.text);
	fx_orphan(f);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_RATES), 0);
}
END_TEST

/* The agent has measured one link, but other hosts used the other end at the same time. */
START_TEST(rates_under_the_load_of_others_are_not_remembered)
{
	order_held(5, 1, true);
	ck_assert(fx_get(f, AGT_ACT_MEASURE, 0)->u.measure.hold);
	measured(5, 1);
	ck_assert(fx_msg(f, WM_MEASURED, 0)->u.measured.results[0].ok);
	fx_orphan(f);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_RATES), 0);
}
END_TEST

/* What an operation shows is sent at once, and is not remembered like a measurement. */
START_TEST(rates_of_operations_are_sent_to_the_master)
{
	struct agt_event ev = {.type = AGT_EV_LINK_RATE,
		.run = 1,
		.peer = fx_id(110),
		.rate = 5000,
		.trip_us = 70};
	const struct wm_rates *m;

	fx_step(f, &ev);
	ck_assert_uint_eq(f->acts.n, 1);
	ck_assert_uint_eq(fx_sent(f, WM_RATES), 1);
	m = &fx_msg(f, WM_RATES, 0)->u.rates;
	ck_assert(m->passive && m->out == 0 && m->in == 0);
	ck_assert_uint_eq(m->n, 1);
	ck_assert(fx_is(&m->rates[0].agent, fx_id(110)));
	ck_assert_uint_eq(m->rates[0].rate, 5000);
	ck_assert_uint_eq(m->rates[0].trip_us, 70);
	ck_assert_uint_eq(m->rates[0].age_s, 0);
	fx_orphan(f);
	fx_step(f, &ev); /* there is no master */
	ck_assert_uint_eq(fx_sent(f, WM_RATES), 0);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_RATES), 0);
}
END_TEST

static void put(struct agt_rates *t, unsigned agent, uint64_t rate, uint64_t when_ns)
{
	agt_rates_put(t,
		&(struct agt_rate){.v = {.agent = fx_id(agent), .rate = rate}, .when_ns = when_ns});
}

START_TEST(oldest_rate_makes_room)
{
	struct agt_rates t = {.v = NULL};
	struct wm_rates m;

	for (unsigned i = 0; i < WM_RATES_MAX; i++)
		put(&t, i, i, i * S);
	put(&t, 0, 5000, 2000 * S); /* measured again: 1 is the oldest now */
	put(&t, 9999, 6000, 2001 * S);
	ck_assert_uint_eq(t.n, WM_RATES_MAX);
	agt_rates_fill(&t, 2002 * S, &m);
	ck_assert_uint_eq(m.n, WM_RATES_MAX);
	ck_assert(fx_is(&m.rates[0].agent, fx_id(2)));
	ck_assert_uint_eq(m.rates[0].age_s, 2000);
	ck_assert(fx_is(&m.rates[WM_RATES_MAX - 2].agent, fx_id(0)));
	ck_assert_uint_eq(m.rates[WM_RATES_MAX - 2].rate, 5000);
	ck_assert(fx_is(&m.rates[WM_RATES_MAX - 1].agent, fx_id(9999)));
	ck_assert_uint_eq(m.rates[WM_RATES_MAX - 1].age_s, 1);
	free(m.rates);
	agt_rates_fill(&t, UINT64_MAX, &m);
	ck_assert_uint_eq(m.rates[0].age_s, UINT32_MAX);
	free(m.rates);
	agt_rates_free(&t);
	ck_assert_uint_eq(t.n, 0);
}
END_TEST

Suite *measure_suite(void)
{
	Suite *s = suite_create("measure");
	TCase *t = tcase_create("measure");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, order_is_carried_out_and_answered);
	tcase_add_test(t, processes_see_the_progress);
	tcase_add_test(t, newer_order_replaces_the_older_one);
	tcase_add_loop_test(t, empty_order_stops_the_one_before, 0, 2);
	tcase_add_test(t, round_stops_a_measurement);
	tcase_add_test(t, measurement_ends_with_its_master);
	tcase_add_test(t, measurement_ends_with_its_run);
	tcase_add_test(t, order_is_refused_during_an_operation);
	tcase_add_loop_test(t, operation_of_another_run_uses_the_network_too, 0, 2);
	tcase_add_test(t, runs_measure_one_after_the_other);
	tcase_add_test(t, operation_after_the_answer_only_stops_the_rest);
	tcase_add_loop_test(t, order_that_leads_to_this_agent_ends_the_run, 0, 2);
	tcase_add_test(t, snapshot_contains_the_rates);
	tcase_add_test(t, rates_outlive_their_run);
	tcase_add_test(t, failures_are_not_remembered);
	tcase_add_test(t, rates_under_the_load_of_others_are_not_remembered);
	tcase_add_test(t, rates_of_operations_are_sent_to_the_master);
	tcase_add_test(t, oldest_rate_makes_room);
	suite_add_tcase(s, t);
	return s;
}
