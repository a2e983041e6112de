/* SPDX-License-Identifier: MIT
 *
 * Optimizations of a run of a few hosts with one peer each, in group 0. The snapshots of the agents
 * follow the messages of the master, so that a new master can take the run over at any time. Each
 * suite that includes this file gets its own run.
 */
#ifndef TESTS_MASTER_OPTIMIZE_H
#define TESTS_MASTER_OPTIMIZE_H

#include <stdio.h>
#include <stdlib.h>

#include "proto/wire_plan.h"
#include "tests/common/testlib.h"
#include "tests/master/fake.h"

#define HOSTS_MAX 8u
#define GBIT      UINT64_C(1000000000)

static struct fk f;
static struct fk_host *h[HOSTS_MAX];
static struct fk_peer p[HOSTS_MAX];
static uint64_t rates[HOSTS_MAX][HOSTS_MAX]; /* from, to: bit/s */

/* A ring that an agent knows. */
struct known_ring {
	uint32_t hosts, pos;
	struct cc_rings plan; /* n 0: it has none */
	bool await_plan;
};

/* What the snapshots contain. */
static struct known {
	struct known_ring ring, prepared;
	uint64_t round, prepared_round;
	uint64_t view_id, generation;
} known[HOSTS_MAX];

static size_t index_of(const struct cc_id *id)
{
	size_t i;

	for (i = 0; i < HOSTS_MAX && (!h[i] || !cc_id_eq(&h[i]->id, id)); i++)
		;
	return i;
}

static uint64_t rate_of(const struct fk_host *from, const struct fk_host *to)
{
	return rates[index_of(&from->id)][index_of(&to->id)];
}

static void watch(void *arg, struct fk_host *x, const struct wm_msg *m)
{
	size_t i = index_of(&x->id);
	struct known *k = &known[i];

	(void)arg;
	if (i == HOSTS_MAX)
		return;
	if (m->type == WM_ROUND) {
		const struct wm_ring *r = &m->u.round.rings[0];

		k->prepared = (struct known_ring){
			.hosts = r->hosts, .pos = r->pos, .await_plan = r->await_plan};
		k->prepared_round = m->u.round.round;
		if (r->plan.n > 0)
			ck_assert_int_eq(wm_plan_rings(&r->plan, r->hosts, &k->prepared.plan), 0);
	}
	if (m->type != WM_COMMIT)
		return;
	if (m->u.commit.round == k->prepared_round)
		k->ring = k->prepared;
	k->round = m->u.commit.round;
	k->view_id = m->u.commit.view.view_id;
	k->generation = m->u.commit.view.n ? m->u.commit.view.own[0].generation : 0;
}

static void reset(const struct ccm_config *cfg)
{
	uint32_t i, k;

	fk_init(&f, cfg);
	memset(h, 0, sizeof h);
	memset(known, 0, sizeof known);
	for (i = 0; i < HOSTS_MAX; i++)
		for (k = 0; k < HOSTS_MAX; k++)
			rates[i][k] = i == k ? 0 : (1 + (i + k) % 4) * GBIT;
	f.rate = rate_of;
	f.confidence = 100;
	f.watch = watch;
}

static inline void setup(void)
{
	reset(NULL);
}

static void teardown(void)
{
	fk_free(&f);
}

static inline struct ccm_config usual_config(void)
{
	return (struct ccm_config){.run = {{1}},
		.run_key = {{2}},
		.segment_max = 4096,
		.algorithm = CCM_ALGORITHM_AUTO};
}

static inline void configure(const struct ccm_config *cfg)
{
	fk_free(&f);
	reset(cfg);
}

/* Connects host i, with a peer that waits. */
static void newcomer(uint32_t i, uint32_t group)
{
	char name[16], addr[32];

	(void)snprintf(name, sizeof name, "h%u", i);
	(void)snprintf(addr, sizeof addr, "10.0.0.%u", 1 + i);
	h[i] = fk_host(&f, name, addr);
	p[i] = fk_join(h[i], group);
}

/* Their ring is in this order. */
static void run_of(uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		newcomer(i, 0);
	fk_topo(&p[0]);
	ck_assert_uint_eq(fk_status(&f).accepted, n);
	fk_forget(&f);
}

static inline void manual_measurements(uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		h[i]->auto_measured = false;
}

/* All of the first n hosts that send report what they have measured. */
static inline void end_round(uint32_t n)
{
	bool sends[HOSTS_MAX];
	uint32_t i;

	for (i = 0; i < n; i++)
		sends[i] = h[i]->order.n_to > 0;
	for (i = 0; i < n; i++) /* the last answer begins the next round */
		if (sends[i])
			fk_measured(h[i]);
}

static inline void scale_rates(uint64_t times, uint64_t parts)
{
	uint32_t i, k;

	for (i = 0; i < HOSTS_MAX; i++)
		for (k = 0; k < HOSTS_MAX; k++)
			rates[i][k] = rates[i][k] * times / parts;
}

static void vote(uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		fk_ballot(&p[i], WIRE_OPTIMIZE);
}

static size_t count_all(uint32_t n, enum wm_type type)
{
	size_t sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum += fk_count(h[i], type);
	return sum;
}

/* Checks that the optimization has ended at host i with this answer and a text that contains
 * `text`. */
static void expect_answer_at(uint32_t i, bool answer, const char *text)
{
	const struct wm_ballot_end *e = &fk_take(h[i], WM_BALLOT_END)->u.ballot_end;

	ck_assert_int_eq(e->kind, WIRE_OPTIMIZE);
	ck_assert_msg(wire_ballot_answer(e->number) == answer, "%s", e->text);
	assert_contains(e->text, text);
	if (answer)
		ck_assert_str_eq(e->text, "");
}

static void expect_answer(uint32_t n, bool answer, const char *text)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		expect_answer_at(i, answer, text);
}

/* Answers the last problem of the group with `n_rings` rings. With order NULL there is no better
 * ring. */
static inline void solve_group(
	uint32_t group, uint32_t n_rings, const uint16_t *order, double rate, double current)
{
	const struct ccm_problem *x = fk_problem(&f, group);
	static uint16_t same[HOSTS_MAX * CC_RINGS_MAX];
	struct ccm_solution s = {.number = x->number,
		.n = x->n,
		.n_rings = n_rings,
		.shares = {30, 20, 10, 5},
		.order = order ? order : same,
		.rate = rate,
		.current = current,
		.bound = 2 * rate};
	uint32_t i;

	for (i = 0; i < HOSTS_MAX * CC_RINGS_MAX; i++)
		same[i] = (uint16_t)(i % x->n);
	fk_solved(&f, &s);
}

static void solve(uint32_t n_rings, const uint16_t *order, double rate, double current)
{
	solve_group(0, n_rings, order, rate, current);
}

/* The optimization changes nothing. */
static inline void solve_unchanged(void)
{
	solve(1, NULL, 5, 5);
}

/* The agent of host i tells what it has measured to the first n hosts: 7 Gbit/s, at this age. */
static inline void tell_rates(uint32_t i, uint32_t n, uint32_t age_s)
{
	struct wm_msg m = {.type = WM_RATES};
	struct wm_rate v[HOSTS_MAX];
	uint32_t k;

	m.u.rates.rates = v;
	for (k = 0; k < n; k++)
		if (k != i)
			v[m.u.rates.n++] = (struct wm_rate){.agent = h[k]->id,
				.rate = 7 * GBIT,
				.trip_us = 3,
				.age_s = age_s,
				.confidence = 100};
	fk_send(h[i], &m);
}

/* Lets n hosts optimize. Returns how many of them are ordered to send. */
static inline uint32_t senders(uint32_t n)
{
	uint32_t i, ret = 0;

	fk_forget(&f);
	fk_forget_problems(&f);
	manual_measurements(n);
	vote(n);
	for (i = 0; i < n; i++)
		ret += h[i]->order.n_to > 0;
	for (i = 0; i < n; i++)
		h[i]->auto_measured = true;
	fk_settle(&f);
	if (f.n_problems > 0)
		solve_unchanged();
	expect_answer(n, true, "");
	return ret;
}

/* The next optimization asks the solver, because the rates from host 0 to these hosts are other
 * ones. */
static inline void change_rates(uint32_t n)
{
	fk_tick(&f, 10000);
	tell_rates(0, n, 0);
}

/* Checks that an optimization by the first n hosts ends with success. */
static inline void optimization_works(uint32_t n)
{
	if (n >= 3)
		change_rates(n);
	fk_forget(&f);
	fk_forget_problems(&f);
	vote(n);
	if (n >= 3)
		solve_unchanged();
	expect_answer(n, true, "");
}

/* Checks that the rings in force are these hosts, one after the other. */
static inline void expect_ring(uint32_t n, const uint16_t *order)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		ck_assert_uint_eq(known[order[i]].ring.hosts, n);
		ck_assert_uint_eq(known[order[i]].ring.pos, i);
	}
}

static inline void lose_link(uint32_t from, uint32_t to, bool inbound)
{
	struct wm_msg m = {.type = WM_LINK_LOST};

	m.u.link_lost.agent = h[inbound ? from : to]->id;
	m.u.link_lost.inbound = inbound;
	strcpy(m.u.link_lost.text, "reset");
	fk_send(h[inbound ? to : from], &m);
}

/* The agent of host i comes back to a new master, with its snapshot. */
static inline void come_back(uint32_t i, uint32_t n)
{
	struct wm_group_view own = {.world_size = n, .generation = known[i].generation};
	struct wm_ring_position position = {.hosts = known[i].ring.hosts, .pos = known[i].ring.pos};
	struct wm_msg msg = {.type = WM_RESUME};
	struct wm_resume *r = &msg.u.resume;

	h[i] = fk_reconnect_as(h[i], 1, false);
	p[i] = fk_join_again(&p[i], h[i], WM_JOIN_ACCEPTED);
	*r = (struct wm_resume){.epoch = h[i]->epoch,
		.round = known[i].round,
		.ring_epoch = known[i].round,
		.view = {.global = n,
			.groups = 1,
			.largest = n,
			.view_id = known[i].view_id,
			.n = 1,
			.own = &own},
		.n_positions = 1,
		.positions = &position};
	memcpy(r->ballots, h[i]->ballots, sizeof r->ballots);
	if (known[i].ring.plan.n > 0)
		wm_plan_fill(&position.plan, &known[i].ring.plan);
	fk_send(h[i], &msg);
	free(position.plan.order);
}

static inline void replace_master(uint32_t n)
{
	uint32_t i;

	fk_new_master(&f, NULL);
	fk_forget_problems(&f);
	for (i = 0; i < n; i++)
		come_back(i, n);
	fk_settle(&f);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, n);
	ck_assert_uint_eq(count_all(n, WM_KICK), 0);
	fk_forget(&f);
}

#endif
