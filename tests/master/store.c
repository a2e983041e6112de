/* SPDX-License-Identifier: MIT
 *
 * The master's core: the bandwidth store outlives agents and masters.
 */
#include <arpa/inet.h>

#include "proto/wire_journal.h"
#include "tests/master/optimize.h"
#include "tests/master/suites.h"

#define SECOND_MS 1000u
#define MINUTE_MS 60000u
#define HOUR_MS   3600000u

static struct ccm_config with_journal(void)
{
	struct ccm_config cfg = usual_config();

	cfg.journal = true;
	return cfg;
}

static void begin(void)
{
	struct ccm_config cfg = with_journal();

	reset(&cfg);
	f.port_p2p = 48150;
}

/* ---- what the master and its journal know ---- */

static uint32_t records(struct wj_record *ret_last)
{
	struct wj_record r;
	const char *why;
	size_t at, used;
	uint32_t n = 0;

	for (at = 0; at < f.journal_len; at += used) {
		ck_assert_int_eq(
			wire_journal_decode(f.journal + at, f.journal_len - at, &r, &used, &why),
			0);
		n += r.type == WJ_RATES;
		if (r.type == WJ_RATES && ret_last) {
			wire_journal_clear(ret_last);
			*ret_last = r;
		} else {
			wire_journal_clear(&r);
		}
	}
	return n;
}

static struct {
	struct cc_id from, to;
	struct ccm_rate_info info;
	uint32_t n, all, n_caps;
	struct ccm_cap_info cap;
} seen;

static void see(void *arg, const struct ccm_rate_info *r)
{
	(void)arg;
	seen.all++;
	if (!cc_id_eq(&r->from, &seen.from) || !cc_id_eq(&r->to, &seen.to))
		return;
	seen.info = *r;
	seen.n++;
}

static void see_cap(void *arg, const struct ccm_cap_info *c)
{
	(void)arg;
	seen.n_caps++;
	if (cc_id_eq(&c->host, &seen.from))
		seen.cap = *c;
}

static void look(uint32_t from, uint32_t to)
{
	memset(&seen, 0, sizeof seen);
	seen.from = h[from]->id;
	seen.to = h[to]->id;
	ccm_each_rate(f.m, f.now, see, NULL);
	ccm_each_cap(f.m, f.now, see_cap, NULL);
}

static uint64_t age_s(uint32_t from, uint32_t to)
{
	look(from, to);
	ck_assert_uint_eq(seen.n, 1);
	return seen.info.age_ns / 1000000000;
}

static void expect(uint32_t from, uint32_t to, uint64_t rate, const char *source, bool trusted)
{
	look(from, to);
	ck_assert_uint_eq(seen.n, 1);
	ck_assert_uint_eq(seen.info.rate, rate);
	ck_assert_str_eq(seen.info.source, source);
	ck_assert((seen.info.confidence > 0) == trusted);
}

/* ---- what happens ---- */

static void carried(uint32_t from, uint32_t to, uint64_t rate)
{
	struct wm_rate v = {.agent = h[to]->id, .rate = rate, .trip_us = 33};
	struct wm_msg m = {.type = WM_RATES, .u.rates = {.passive = true, .n = 1, .rates = &v}};

	fk_send(h[from], &m);
}

static void measure(uint32_t n)
{
	vote(n);
	solve(1, NULL, 2 * GBIT, 2 * GBIT);
	expect_answer(n, true, "");
	fk_forget(&f);
	fk_forget_problems(&f);
}

static void measured_run(uint32_t n)
{
	run_of(n);
	measure(n);
}

static void all_leave(uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		fk_leave(&p[i], WM_LEAVE_CLEAN);
	for (i = 0; i < n; i++)
		fk_close(h[i], "the agent has ended");
}

/* The next master of the journal. Its hosts have new agents, which remember nothing. */
static void start_anew(uint32_t n)
{
	struct ccm_config cfg = with_journal();

	fk_restart(&f, &cfg, f.journal_len);
	memset(known, 0, sizeof known);
	fk_tick(&f, 1000);
	run_of(n);
	fk_forget_problems(&f);
}

/* ---- the journal ---- */

START_TEST(rates_of_the_journal_are_not_measured_again)
{
	uint64_t out;

	measured_run(3);
	look(0, 1);
	out = seen.cap.out;
	ck_assert_uint_gt(out, 0);
	fk_tick(&f, 20 * MINUTE_MS);
	all_leave(3);
	start_anew(3);
	expect(0, 1, 2 * GBIT, "benchmark", true);
	ck_assert_uint_ge(age_s(0, 1), 20 * 60);
	ck_assert_uint_le(age_s(0, 1), 20 * 60 + 10);
	ck_assert_uint_eq(seen.all, 6);
	ck_assert_uint_eq(seen.n_caps, 3);
	ck_assert_uint_eq(seen.cap.out, out);
	ck_assert_uint_ge(seen.cap.age_ns / 1000000000, 20 * 60);
	ck_assert_uint_gt(seen.info.trip_us, 0);
	ck_assert_uint_eq(senders(3), 0);
	fk_tick(&f, 41 * MINUTE_MS);
	ck_assert_uint_eq(senders(3), 3);
}
END_TEST

/* A measurement of before the start of the host. */
START_TEST(measurement_may_be_older_than_the_clock)
{
	measured_run(3);
	all_leave(3);
	f.now = 5 * (uint64_t)SECOND_MS * 1000000;
	{
		struct wj_record r = {.type = WJ_RUN};
		uint8_t *bytes;
		size_t len;
		uint32_t i;

		(void)records(&r);
		for (i = 0; i < r.n_rates; i++)
			r.rates[i].age_s = 3000;
		for (i = 0; i < r.n_hosts; i++)
			r.hosts[i].caps_age_s = 3000;
		r.written_s = 5;
		ck_assert_int_eq(wire_journal_encode(&r, &bytes, &len), 0);
		memcpy(f.journal, bytes, len);
		f.journal_len = len;
		free(bytes);
		wire_journal_clear(&r);
	}
	start_anew(3);
	ck_assert_uint_ge(age_s(0, 1), 3000);
	ck_assert_uint_lt(age_s(0, 1), 3020);
	ck_assert_uint_gt(seen.info.confidence, 0);
	ck_assert_uint_ge(seen.cap.age_ns / 1000000000, 3000);
	fk_tick(&f, 10 * MINUTE_MS);
	expect(0, 1, 2 * GBIT, "benchmark", false);
	ck_assert_uint_eq(senders(3), 3);
}
END_TEST

START_TEST(newer_measurement_wins)
{
	measured_run(3);
	fk_tick(&f, MINUTE_MS);
	all_leave(3);
	start_anew(3);
	tell_rates(0, 2, 70); /* 7 Gbit/s */
	expect(0, 1, 2 * GBIT, "benchmark", true);
	tell_rates(0, 2, 30);
	expect(0, 1, 7 * GBIT, "agent", true);
}
END_TEST

START_TEST(stale_rates_stay_stale)
{
	uint32_t i;

	measured_run(3);
	for (i = 0; i < 8; i++) {
		carried(0, 1, GBIT / 10);
		fk_tick(&f, 5 * SECOND_MS);
	}
	expect(0, 1, 2 * GBIT, "benchmark", false);
	fk_tick(&f, 2 * MINUTE_MS);
	all_leave(3);
	start_anew(3);
	expect(0, 1, 2 * GBIT, "benchmark", false);
	ck_assert_uint_eq(senders(3), 1);
	fk_step(&f, &(struct ccm_event){.type = CCM_EV_MEASURE});
	fk_tick(&f, 2 * MINUTE_MS);
	all_leave(3);
	start_anew(3);
	expect(1, 2, 4 * GBIT, "benchmark", false);
	ck_assert_uint_eq(seen.cap.confidence, 0);
	ck_assert_uint_eq(senders(3), 3);
	expect(1, 2, 4 * GBIT, "benchmark", true);
	ck_assert_uint_gt(seen.cap.confidence, 0);
}
END_TEST

/* Also in the journal. */
START_TEST(confidence_falls_with_age)
{
	f.confidence = 90;
	measured_run(3);
	look(0, 1);
	ck_assert_uint_eq(seen.info.confidence, 90);
	ck_assert_uint_eq(seen.cap.confidence, 100);
	ck_assert_str_eq(seen.cap.source, "benchmark");
	fk_tick(&f, 15 * MINUTE_MS);
	all_leave(3);
	start_anew(3);
	fk_tick(&f, 15 * MINUTE_MS);
	look(0, 1);
	ck_assert_uint_eq(seen.info.confidence, 40);
	ck_assert_uint_eq(seen.cap.confidence, 50);
	ck_assert_str_eq(seen.cap.source, "benchmark");
}
END_TEST

/* A link or a host may be able to carry more than operations have shown. */
START_TEST(raised_values_are_unsure)
{
	measured_run(3);
	carried(0, 1, 50 * GBIT);
	look(0, 1);
	ck_assert_str_eq(seen.info.source, "operations");
	ck_assert_uint_eq(seen.info.confidence, 50);
	ck_assert_uint_eq(seen.cap.out, 50 * GBIT);
	ck_assert_str_eq(seen.cap.source, "operations");
	ck_assert_uint_eq(seen.cap.confidence, 50);
	look(1, 0);
	ck_assert_str_eq(seen.cap.source, "operations"); /* it has received */
	look(2, 0);
	ck_assert_str_eq(seen.cap.source, "benchmark");
	ck_assert_uint_eq(seen.cap.confidence, 100);
}
END_TEST

START_TEST(rates_of_operations_are_written_once_a_minute)
{
	struct wj_record r = {.type = WJ_RUN};
	uint32_t i, n;

	measured_run(3);
	n = records(NULL);
	ck_assert_uint_ge(n, 1);
	for (i = 1; i <= 120; i++) {
		carried(0, 1, (4 + i) * GBIT);
		fk_tick(&f, SECOND_MS);
	}
	ck_assert_uint_eq(records(&r), n + 2);
	for (i = 0; i < r.n_rates && r.rates[i].rate < 100 * GBIT; i++)
		;
	ck_assert_uint_lt(i, r.n_rates);
	ck_assert_uint_eq(r.rates[i].source, 3);
	wire_journal_clear(&r);
	fk_tick(&f, 2 * MINUTE_MS);
	n = records(NULL);
	fk_tick(&f, 10 * MINUTE_MS); /* nothing changes */
	ck_assert_uint_eq(records(NULL), n);
}
END_TEST

START_TEST(master_without_a_journal_writes_nothing)
{
	struct ccm_config cfg = usual_config();

	configure(&cfg);
	measured_run(3);
	fk_tick(&f, 2 * MINUTE_MS);
	ck_assert_uint_eq(f.journal_len, 0);
}
END_TEST

/* ---- agents that start again ---- */

START_TEST(next_agent_of_a_host_continues_with_its_rates)
{
	struct cc_id old;

	measured_run(3);
	old = h[1]->id;
	fk_leave(&p[1], WM_LEAVE_CLEAN);
	fk_close(h[1], "the agent has ended");
	newcomer(1, 0);
	ck_assert(!cc_id_eq(&h[1]->id, &old));
	fk_topo(&p[0]);
	fk_topo(&p[2]);
	expect(0, 1, 2 * GBIT, "benchmark", true);
	ck_assert_uint_eq(seen.all, 6);
	ck_assert_uint_eq(seen.n_caps, 3);
	ck_assert_uint_eq(senders(3), 0);
}
END_TEST

/* Host 0 tells what it has measured to an agent that has ended since. */
static void tell_rate_to_gone(const char *name, const char *addr, uint16_t port)
{
	struct wm_rate v = {.agent = {{0x77}},
		.rate = 7 * GBIT,
		.trip_us = 3,
		.confidence = 80,
		.host = {.addr = {.family = CC_INET4, .port = port}}};
	struct wm_msg m = {.type = WM_RATES, .u.rates = {.n = 1, .rates = &v}};

	(void)snprintf(v.host.name, sizeof v.host.name, "%s", name);
	ck_assert_int_eq(inet_pton(AF_INET, addr, v.host.addr.ip), 1);
	fk_send(h[0], &m);
}

/* Whether the next agent of the host is there already (1) or not (0). */
START_TEST(agents_remember_rates_to_hosts)
{
	newcomer(0, 0);
	fk_topo(&p[0]);
	if (_i == 1)
		newcomer(1, 0);
	tell_rate_to_gone("h1", "10.0.0.2", 48150);
	if (_i == 0)
		newcomer(1, 0);
	newcomer(2, 0);
	fk_topo(&p[0]);
	expect(0, 1, 7 * GBIT, "agent", true);
	ck_assert_uint_eq(seen.info.confidence, 80);
	ck_assert_uint_eq(seen.all, 1);
	tell_rate_to_gone("h2", "10.0.0.3", 48151); /* another port */
	look(0, 2);
	ck_assert_uint_eq(seen.n, 0);
}
END_TEST

static void come_from(const char *name, const char *addr, uint16_t port)
{
	f.port_p2p = port;
	h[1] = fk_host(&f, name, addr);
	p[1] = fk_join(h[1], 0);
	fk_topo(&p[0]);
	fk_topo(&p[2]);
	look(0, 1);
	ck_assert_uint_eq(seen.n, 0);
	(void)senders(3);
	expect(0, 1, 2 * GBIT, "benchmark", true);
	expect(1, 2, 4 * GBIT, "benchmark", true);
	ck_assert_uint_eq(seen.all, 10);
}

START_TEST(another_host_does_not)
{
	measured_run(3);
	fk_leave(&p[1], WM_LEAVE_CLEAN);
	fk_close(h[1], "the agent has ended");
	if (_i == 0)
		come_from("h1", "10.0.0.77", 48150);
	else if (_i == 1)
		come_from("other", "10.0.0.2", 48150);
	else
		come_from("h1", "10.0.0.2", 48153);
}
END_TEST

/* Two agents that look alike, for example behind one translated address. */
START_TEST(host_whose_agent_is_connected_keeps_its_rates)
{
	struct fk_host *first;

	measured_run(3);
	first = h[1];
	h[1] = fk_host(&f, "h1", "10.0.0.2");
	p[3] = fk_join(h[1], 0);
	look(0, 1);
	ck_assert_uint_eq(seen.n, 0);
	h[1] = first;
	expect(0, 1, 2 * GBIT, "benchmark", true);
}
END_TEST

/* Another agent has told of the new agent before it came. */
START_TEST(rates_of_the_new_agent_are_newer)
{
	struct wm_rate v = {.agent = {{77}}, .rate = 9 * GBIT, .trip_us = 3, .confidence = 100};
	struct wm_msg m = {.type = WM_RATES, .u.rates = {.n = 1, .rates = &v}};

	measured_run(3);
	fk_leave(&p[1], WM_LEAVE_CLEAN);
	fk_close(h[1], "the agent has ended");
	h[1] = fk_host(&f, "h1", "10.0.0.2");
	v.agent = h[1]->id;
	fk_send(h[0], &m);
	p[1] = fk_join(h[1], 0);
	fk_topo(&p[0]);
	fk_topo(&p[2]);
	expect(0, 1, 9 * GBIT, "agent", true);
	look(1, 0);
	ck_assert_uint_eq(seen.n, 0);
	/* The one that comes next continues with what is known of this agent. */
	fk_leave(&p[1], WM_LEAVE_CLEAN);
	fk_close(h[1], "the agent has ended");
	newcomer(1, 0);
	expect(0, 1, 9 * GBIT, "agent", true);
}
END_TEST

/* ---- a master that was suspended ---- */

START_TEST(suspended_master_keeps_the_rates)
{
	measured_run(3);
	while (fk_count(h[0], WM_HEARTBEAT) == 0)
		fk_tick(&f, 100);
	f.now += UINT64_C(3000000000);
	fk_tick_silent(&f, 100, NULL);
	ck_assert(fk_status(&f).recovering);
	expect(0, 1, 2 * GBIT, "benchmark", true);
	ck_assert_uint_eq(seen.all, 6);
	ck_assert_uint_eq(seen.n_caps, 3);
}
END_TEST

/* ---- what agents tell ---- */

START_TEST(link_of_a_host_to_itself_is_ignored)
{
	struct wm_rate v = {.rate = 9 * GBIT, .trip_us = 3};
	struct wm_msg m = {.type = WM_RATES, .u.rates = {.n = 1, .rates = &v}};

	run_of(3);
	v.agent = h[0]->id;
	fk_send(h[0], &m);
	look(0, 0);
	ck_assert_uint_eq(seen.all, 0);
}
END_TEST

/* ---- the size of the store ---- */

static struct cc_id stranger(uint32_t i)
{
	struct cc_id id = {{200, (uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16)}};

	return id;
}

/* Agents tell of many others. The oldest rates make room, and hosts without rates with them. */
START_TEST(oldest_rates_make_room)
{
	struct wm_rate v[WM_RATES_MAX];
	struct wm_msg m = {.type = WM_RATES, .u.rates = {.n = WM_RATES_MAX, .rates = v}};
	struct wj_record r = {.type = WJ_RUN};
	uint32_t i, k;

	measured_run(3);
	for (k = 0; k < 70; k++) {
		for (i = 0; i < WM_RATES_MAX; i++)
			v[i] = (struct wm_rate){
				.agent = stranger(k * WM_RATES_MAX + i), .rate = 1, .trip_us = 1};
		fk_send(h[0], &m);
	}
	look(0, 1);
	ck_assert_uint_eq(seen.all, 65536);
	ck_assert_uint_eq(seen.n, 0);
	ck_assert_uint_eq(seen.n_caps, 3);
	fk_tick(&f, 2 * MINUTE_MS);
	(void)records(&r);
	/* The journal has no hosts that were never seen. */
	ck_assert_uint_eq(r.n_hosts, 3);
	ck_assert_uint_eq(r.n_rates, 0);
	wire_journal_clear(&r);
}
END_TEST

Suite *store_suite(void)
{
	Suite *s = suite_create("store");
	TCase *tc = tcase_create("store");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, begin, teardown);
	tcase_add_test(tc, rates_of_the_journal_are_not_measured_again);
	tcase_add_test(tc, measurement_may_be_older_than_the_clock);
	tcase_add_test(tc, newer_measurement_wins);
	tcase_add_test(tc, stale_rates_stay_stale);
	tcase_add_test(tc, confidence_falls_with_age);
	tcase_add_test(tc, raised_values_are_unsure);
	tcase_add_loop_test(tc, agents_remember_rates_to_hosts, 0, 2);
	tcase_add_test(tc, rates_of_operations_are_written_once_a_minute);
	tcase_add_test(tc, master_without_a_journal_writes_nothing);
	tcase_add_test(tc, next_agent_of_a_host_continues_with_its_rates);
	tcase_add_loop_test(tc, another_host_does_not, 0, 3);
	tcase_add_test(tc, host_whose_agent_is_connected_keeps_its_rates);
	tcase_add_test(tc, rates_of_the_new_agent_are_newer);
	tcase_add_test(tc, suspended_master_keeps_the_rates);
	tcase_add_test(tc, link_of_a_host_to_itself_is_ignored);
	tcase_add_test(tc, oldest_rates_make_room);
	suite_add_tcase(s, tc);
	return s;
}
