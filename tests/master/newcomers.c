/* SPDX-License-Identifier: MIT
 *
 * The master's core: newcomers are probed before members have to wait for them.
 */
#include <stdio.h>

#include "tests/common/testlib.h"
#include "tests/master/many.h"
#include "tests/master/suites.h"

/* Connects n hosts with one accepted peer each in group 0. From now on the tests answer the
 * probes. */
static void run_of(size_t n)
{
	size_t i;

	fk_run_of(&f, h, p, n);
	for (i = 0; i < n; i++)
		h[i]->auto_probed = false;
	fk_forget(&f);
}

/* Connects a host. Connections with the same name and address belong to the same host. */
static struct fk_host *newcomer(const char *name, const char *addr)
{
	struct fk_host *x = fk_connect(&f, name, addr);
	struct wm_msg msg = fk_hello(x);

	x->auto_probed = false;
	msg.u.hello.port_p2p = 1500;
	fk_send(x, &msg);
	return x;
}

static bool pending(size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		fk_pending(&p[i]);
	for (i = 1; i < n; i++)
		(void)fk_take(h[i], WM_BALLOT_END);
	return wire_ballot_answer(fk_take(h[0], WM_BALLOT_END)->u.ballot_end.number);
}

START_TEST(unreachable_newcomer_does_not_disturb_members)
{
	struct fk_host *x;
	struct fk_peer q;
	const struct wm_kick *k;
	uint64_t rounds;

	run_of(2);
	rounds = fk_status(&f).rounds;
	x = newcomer("far", "10.0.0.9");
	q = fk_join(x, 0);
	ck_assert(!pending(2));
	vote_all(2);
	/* The vote is answered at once, because nothing has changed. */
	ck_assert(fk_take(h[0], WM_COMMIT)->u.commit.accept);
	fk_probed(x, h[0], NULL);
	fk_probed(h[1], x, "10.0.0.9:1003: no answer in time");
	ck_assert(fk_present(&q)); /* the newcomer may get another position in the ring */
	fk_probed(x, h[1], NULL);
	fk_probed(h[0], x, "10.0.0.9:1003: no answer in time");
	k = &fk_take(x, WM_KICK)->u.kick;
	ck_assert_uint_eq(k->code, WIRE_RANK_CONNECTION_FAILED);
	assert_contains(
		k->text, "host a could not reach host far (10.0.0.9:1003: no answer in time)");
	vote_all(2);
	ck_assert_uint_eq(fk_count(h[0], WM_ROUND), 0);
	ck_assert_uint_eq(fk_status(&f).rounds, rounds);
}
END_TEST

START_TEST(a_newcomer_is_pending_once_its_links_are_proven)
{
	struct fk_host *x;
	struct fk_peer q;

	run_of(2);
	x = newcomer("c", "10.0.0.9");
	q = fk_join(x, 0);
	ck_assert(!pending(2));
	fk_probed(h[1], x, NULL);
	ck_assert(!pending(2));
	fk_probed(x, h[0], NULL);
	ck_assert(pending(2));
	vote_all(2);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_ACCEPTED);
}
END_TEST

/* The newcomer cannot reach a, but reaches c. So the ring has the newcomer between b and c. */
START_TEST(a_newcomer_takes_another_position_in_the_ring)
{
	struct fk_host *x;
	struct fk_peer q;

	run_of(3);
	x = newcomer("d", "10.0.0.9");
	q = fk_join(x, 0);
	fk_probed(h[2], x, NULL);
	fk_probed(x, h[0], "no route to host");
	ck_assert(fk_present(&q));
	fk_probed(h[1], x, NULL);
	fk_probed(x, h[2], NULL);
	ck_assert(pending(3));
	vote_all(3);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_ACCEPTED);
	/* When the ring is planned again, it still avoids the failed link. */
	ck_assert(cc_id_eq(&x->id, &fk_take(h[1], WM_ROUND)->u.round.rings[0].next.agent));
	fk_forget(&f);
	fk_leave(&p[1], WM_LEAVE_CLEAN);
	ck_assert(cc_id_eq(&x->id, &fk_take(h[0], WM_ROUND)->u.round.rings[0].next.agent));
}
END_TEST

/* A host whose newcomers fail again and again is probed more and more rarely. After an
 * admission, the host is again probed without a delay. */
START_TEST(failed_host_is_probed_more_and_more_rarely)
{
	struct fk_host *x;
	uint32_t i, ms, last = 0;
	struct fk_peer q;

	run_of(1);
	for (i = 0; i < 8; i++) {
		x = newcomer("far", "10.0.0.9");
		q = fk_join(x, 0);
		for (ms = 0; fk_count(h[0], WM_PROBE) == 0; ms += 100) {
			ck_assert_uint_lt(ms, 10000);
			fk_tick(&f, 100);
		}
		ck_assert_uint_ge(ms, last);
		last = ms;
		(void)fk_take(x, WM_PROBE);
		fk_probed(h[0], x, "connection refused");
		assert_contains(fk_take(x, WM_KICK)->u.kick.text, "could not reach host far");
		fk_close(x, "gone");
	}
	ck_assert_uint_ge(last, 7000);
	/* Another host is not affected, even behind the same address. */
	x = newcomer("near", "10.0.0.9");
	q = fk_join(x, 0);
	fk_probed(h[0], x, NULL);
	fk_probed(x, h[0], NULL);
	fk_topo(&p[0]);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_ACCEPTED);
	fk_leave(&q, WM_LEAVE_CLEAN);
	fk_close(x, "gone");
	/* The host can be reached now. */
	x = newcomer("far", "10.0.0.9");
	q = fk_join(x, 0);
	fk_tick(&f, 8200);
	fk_probed(h[0], x, NULL);
	fk_probed(x, h[0], NULL);
	fk_topo(&p[0]);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_ACCEPTED);
	fk_leave(&q, WM_LEAVE_CLEAN);
	fk_forget(&f);
	q = fk_join(x, 0);
	ck_assert_uint_eq(fk_count(h[0], WM_PROBE), 1);
}
END_TEST

static void lose_link(struct fk_host *at, const struct fk_host *to)
{
	struct wm_msg m = {.type = WM_LINK_LOST};

	m.u.link_lost.agent = to->id;
	fk_send(at, &m);
}

/* Makes all links to x fail until its peer is kicked. */
static void put_out(struct fk_host *x, const struct fk_peer *q)
{
	unsigned i, k;

	fk_manual(&f);
	lose_link(h[0], x);
	lose_link(h[1], x);
	for (k = 0; fk_present(q); k++) {
		ck_assert_uint_lt(k, 10);
		for (i = 0; i < 2; i++)
			if (h[i]->round.round && cc_id_eq(&h[i]->round.rings[0].next.agent, &x->id))
				fk_round_report(h[i], x, "stuck");
			else if (h[i]->round.round)
				fk_round_report(h[i], NULL, NULL);
		if (x->round.round)
			fk_round_report(x, NULL, NULL);
		fk_tick(&f, 500);
	}
	for (i = 0; i < 2; i++)
		if (h[i]->round.round)
			fk_round_report(h[i], NULL, NULL);
	h[0]->auto_report = h[1]->auto_report = true;
}

/* Admits a newcomer, lets it stay for stays_ms and kicks it. Returns how long it waited for its
 * admission, in ms. */
static uint32_t comes_and_fails(uint32_t stays_ms)
{
	struct fk_host *x = newcomer("far", "10.0.0.9");
	struct fk_peer q;
	uint32_t ms;

	x->auto_probed = true;
	q = fk_join(x, 0);
	for (ms = 0; !pending(2); ms += 100) {
		ck_assert_uint_lt(ms, 61000);
		fk_tick(&f, 100);
	}
	vote_all(2);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_ACCEPTED);
	fk_tick(&f, stays_ms);
	put_out(x, &q);
	fk_close(x, "gone");
	return ms;
}

/* The links of the newcomer come up, but deliver nothing. */
START_TEST(newcomer_that_is_kicked_soon_waits_longer_each_time)
{
	run_of(2);
	h[0]->auto_probed = h[1]->auto_probed = true;
	ck_assert_uint_eq(comes_and_fails(5000), 0);
	ck_assert_uint_ge(comes_and_fails(5000), 3000);
	ck_assert_uint_ge(comes_and_fails(5000), 7000);
	/* After a longer stay, the failure may have another cause. */
	ck_assert_uint_ge(comes_and_fails(60000), 15000);
	ck_assert_uint_eq(comes_and_fails(5000), 0);
}
END_TEST

START_TEST(host_with_new_addresses_is_probed_at_once)
{
	struct fk_host *x;
	struct wm_msg msg;

	run_of(1);
	x = newcomer("far", "10.0.0.9");
	(void)fk_join(x, 0);
	fk_probed(h[0], x, "connection refused");
	fk_close(x, "gone");
	x = newcomer("far", "10.0.0.9");
	(void)fk_join(x, 0);
	fk_forget(&f);
	fk_close(x, "gone");
	x = fk_connect(&f, "far", "10.0.0.9");
	x->auto_probed = false;
	msg = fk_hello(x);
	msg.u.hello.port_p2p = 1500;
	msg.u.hello.n_addrs = 1;
	ck_assert_int_eq(cc_addr_parse("10.1.1.1", 7, &msg.u.hello.addrs[0]), 0);
	fk_send(x, &msg);
	ck_assert_uint_eq(fk_count(h[0], WM_PROBE), 0);
	(void)fk_join(x, 0);
	ck_assert_uint_eq(fk_count(h[0], WM_PROBE), 1);
}
END_TEST

/* A newcomer that does not answer delays the others only for a moment. */
START_TEST(slow_newcomer_does_not_delay_another)
{
	struct fk_host *x, *y;
	struct fk_peer q, z;

	run_of(1);
	x = newcomer("far", "10.0.0.8");
	y = newcomer("near", "10.0.0.9");
	q = fk_join(x, 0);
	z = fk_join(y, 0);
	h[0]->n_probes = 0; /* never answered */
	fk_forget(&f);
	y->auto_probed = true;
	fk_settle(&f);
	fk_tick(&f, 1500);
	fk_probed(h[0], y, NULL);
	ck_assert(pending(1));
	fk_topo(&p[0]);
	ck_assert_int_eq(fk_info(&z).phase, CCM_PEER_ACCEPTED);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_REGISTERED);
}
END_TEST

/* Peers that start a run together make no member wait. */
START_TEST(founders_are_not_probed)
{
	struct fk_host *x = fk_host(&f, "a", "10.0.0.8"), *y = fk_host(&f, "b", "10.0.0.9");
	struct fk_peer q, z;

	x->auto_probed = y->auto_probed = x->auto_report = false;
	q = fk_join(x, 0);
	z = fk_join(y, 0);
	fk_settle(&f);
	fk_round_report(x, NULL, NULL);
	ck_assert_uint_eq(fk_count(x, WM_PROBE) + fk_count(y, WM_PROBE), x->round.round ? 0 : 2);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_ACCEPTED);
	ck_assert(fk_present(&z));
}
END_TEST

START_TEST(a_second_peer_of_a_member_host_needs_no_probe)
{
	struct fk_peer q;

	run_of(2);
	q = fk_join(h[1], 0);
	ck_assert(pending(2));
	vote_all(2);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_ACCEPTED);
}
END_TEST

static bool all_pending(size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		fk_pending(&p[i]);
	return wire_ballot_answer(fk_take(h[1], WM_BALLOT_END)->u.ballot_end.number);
}

/* Group 1 will be on a and b. The link from a to b in group 0's ring fails after the probes. */
START_TEST(a_link_that_fails_is_probed_again)
{
	struct wm_msg msg = {.type = WM_OP_REPORT};
	struct fk_peer q;
	size_t i;

	run_of(4);
	p[4] = fk_admit(h[0], 1, p, 4);
	q = fk_join(h[1], 1);
	fk_probed(h[0], h[1], NULL);
	fk_probed(h[1], h[0], NULL);
	ck_assert(all_pending(5));
	for (i = 0; i < 4; i++)
		fk_vote(&p[i], 1);
	msg.u.op_report.seq = fk_take(h[0], WM_OP_START)->u.op_start.seq;
	msg.u.op_report.suspect = h[1]->id;
	msg.u.op_report.silent = true;
	fk_send(h[0], &msg);
	fk_settle(&f);
	ck_assert(!all_pending(5));
	fk_probed(h[0], h[1], NULL);
	fk_probed(h[1], h[0], NULL);
	ck_assert(all_pending(5));
	for (i = 0; i < 5; i++)
		fk_topo(&p[i]);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_ACCEPTED);
}
END_TEST

/* ---- newcomers that can be reached, but spoil rounds ---- */

enum spoiler {
	SPOIL_SILENT, /* does not report on the round */
	SPOIL_FAILS,  /* reports that it could not open its link */
	SPOIL_LEAVES, /* leaves in the middle of the round */
	N_SPOILERS,
};

#define AT_A_TIME 12u

/* Connects a spoiler. Each spoiler has its own name and address. */
static void spoiler_comes(void)
{
	char name[16], addr[20];
	struct fk_host *x;

	(void)snprintf(name, sizeof name, "spoiler-%u", f.n_hosts);
	(void)snprintf(addr, sizeof addr, "10.1.%u.%u", f.n_hosts / 256, f.n_hosts % 256);
	x = fk_host(&f, name, addr);
	x->auto_report = false;
	(void)fk_join(x, 0);
}

static void report_failure(struct fk_host *x)
{
	uint32_t i = 0;

	while (!cc_id_eq(&f.hosts[i]->id, &x->round.rings[0].next.agent))
		i++;
	fk_round_report(x, f.hosts[i], "no answer");
}

/* Lets a newcomer in the round spoil the round. */
static void spoil(enum spoiler how)
{
	uint32_t i;

	for (i = 2; how != SPOIL_SILENT && i < f.n_hosts; i++) {
		struct fk_host *x = f.hosts[i];

		if (!x->open || x->round.round == 0)
			continue;
		if (how == SPOIL_LEAVES)
			fk_close(x, "gone");
		else
			report_failure(x);
		return;
	}
}

/* Counts the connected spoilers that are not members. Closes the connections of kicked spoilers. */
static uint32_t spoilers(void)
{
	uint32_t i, n = 0;

	for (i = 2; i < f.n_hosts; i++) {
		struct fk_host *x = f.hosts[i];

		if (x->open && fk_count(x, WM_KICK) > 0)
			fk_close(x, "gone");
		n += x->open && fk_count(x, WM_COMMIT) == 0;
	}
	return n;
}

/* Runs a ballot that may admit newcomers. Returns the time that the members have waited, in ms. */
static uint32_t update(enum spoiler how)
{
	uint32_t waited = 0;

	fk_forget(&f);
	vote_all(2);
	while (fk_count(h[0], WM_COMMIT) == 0) {
		ck_assert_uint_lt(waited, 10000);
		spoil(how);
		if (fk_count(h[0], WM_COMMIT) > 0)
			break;
		fk_tick(&f, 100);
		waited += 100;
	}
	return waited;
}

START_TEST(spoilers_are_admitted_more_and_more_rarely)
{
	uint32_t ms = 0, late, waited = 0, took, crowd = _i % 2 ? AT_A_TIME : 1;
	uint64_t rounds = 0;

	run_of(2);
	h[0]->auto_probed = h[1]->auto_probed = true;
	while (ms < 200000) {
		while (spoilers() < crowd && f.n_hosts < FK_HOSTS_MAX)
			spoiler_comes();
		ck_assert_uint_lt(f.n_hosts, FK_HOSTS_MAX);
		took = update((enum spoiler)(_i / 2));
		fk_tick(&f, 100);
		late = ms > 60000;
		rounds = late ? rounds : fk_status(&f).rounds;
		waited += late ? took : 0;
		ms += took + 100;
	}
	rounds = fk_status(&f).rounds - rounds;
	ck_assert_msg(waited < 14000 && rounds < 40,
		"in 140 s members waited for %u ms and went through %llu rounds", waited,
		(unsigned long long)rounds);
}
END_TEST

static void stopped(const struct fk_peer *x, bool is)
{
	struct wm_msg m = {.type = WM_STOPPED, .u.stopped = {x->id, is}};

	fk_send(x->host, &m);
}

START_TEST(stopped_newcomer_is_not_admitted_until_it_runs)
{
	struct fk_host *x;
	struct fk_peer q;

	run_of(2);
	x = newcomer("c", "10.0.0.9");
	x->auto_probed = h[0]->auto_probed = h[1]->auto_probed = true;
	q = fk_join(x, 0);
	ck_assert(pending(2));
	stopped(&q, true);
	ck_assert(!pending(2));
	assert_contains(fk_waiting(&f), "train@c pid 106 (is stopped, for 0.0 s)");
	vote_all(2);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_REGISTERED);
	ck_assert_uint_eq(fk_take(h[0], WM_COMMIT)->u.commit.view.global, 2);
	stopped(&q, false);
	ck_assert(pending(2));
	vote_all(2);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_ACCEPTED);
}
END_TEST

/* A round uses only links that have been probed. The link from b to d was not needed while c was
 * between them. */
START_TEST(others_are_admitted_without_a_stopped_newcomer)
{
	struct fk_host *x, *y;
	struct fk_peer q, r;

	run_of(2);
	x = newcomer("c", "10.0.0.8");
	q = fk_join(x, 0);
	y = newcomer("d", "10.0.0.9");
	r = fk_join(y, 0);
	h[0]->auto_probed = x->auto_probed = y->auto_probed = true;
	fk_probed(h[1], x, NULL);
	fk_tick(&f, 100);
	ck_assert(pending(2));
	stopped(&q, true);
	ck_assert(!pending(2));
	fk_probed(h[1], y, NULL);
	ck_assert(pending(2));
	vote_all(2);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_REGISTERED);
	ck_assert_int_eq(fk_info(&r).phase, CCM_PEER_ACCEPTED);
}
END_TEST

/* The host of the newcomer is in the ring already. */
START_TEST(stopped_newcomer_on_a_members_host_is_not_admitted)
{
	struct fk_peer q, r;

	run_of(2);
	q = fk_join(h[1], 0);
	stopped(&q, true);
	ck_assert(!pending(2));
	r = fk_join(h[1], 0);
	ck_assert(pending(2));
	vote_all(2);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_REGISTERED);
	ck_assert_int_eq(fk_info(&r).phase, CCM_PEER_ACCEPTED);
	ck_assert_uint_eq(fk_take(h[0], WM_COMMIT)->u.commit.view.global, 3);
	fk_leave(&q, WM_LEAVE_STOPPED);
	ck_assert(!fk_present(&q));
}
END_TEST

/* The last member leaves. Only a stopped newcomer is left, and no other peer waits for it. */
START_TEST(run_with_only_stopped_newcomers_waits_for_them)
{
	struct fk_peer q;

	run_of(1);
	h[0]->auto_probed = true;
	q = fk_join(fk_host(&f, "b", "10.0.0.2"), 0);
	stopped(&q, true);
	fk_leave(&p[0], WM_LEAVE_CLEAN);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_REGISTERED);
	ck_assert(!fk_status(&f).round_active);
	assert_contains(fk_waiting(&f), "train@b pid 104 (is stopped, for 0.0 s)");
	fk_tick(&f, 3000);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_REGISTERED);
	stopped(&q, false);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_ACCEPTED);
}
END_TEST

/* ---- newcomers on hosts of former members ---- */

static void report_all(void)
{
	size_t i;

	for (i = 0; i < 4; i++)
		if (h[i]->open && h[i]->round.round)
			fk_round_report(h[i], NULL, NULL);
}

/* The link from a to b has failed, so members had to probe each other. Then a and b have left, and
 * c is the only member. A newcomer is on host a. With `early`, host a reported the result of its
 * probe while it was a member. */
static struct fk_peer newcomer_of_a_probed_member(bool early)
{
	struct fk_host *x = NULL;
	struct fk_peer q;

	run_of(4);
	fk_manual(&f);
	fk_leave(&p[3], WM_LEAVE_DIED);
	fk_round_report(h[0], h[1], "refused");
	fk_round_report(h[1], NULL, NULL);
	fk_round_report(h[2], NULL, NULL);
	ck_assert_uint_eq(h[0]->n_probes, 1);
	if (early) {
		/* The master keeps the results of probes while a newcomer waits. */
		x = newcomer("x", "10.0.0.9");
		(void)fk_join(x, 0);
		fk_probed(h[0], h[2], NULL);
	}
	report_all();
	fk_leave(&p[1], WM_LEAVE_CLEAN);
	report_all();
	fk_leave(&p[0], WM_LEAVE_CLEAN);
	report_all();
	ck_assert(!fk_status(&f).round_active);
	h[1]->auto_probed = h[2]->auto_probed = true;
	q = fk_join(h[0], 0);
	if (x)
		fk_close(x, "gone");
	return q;
}

START_TEST(newcomer_that_was_probed_as_a_member_is_refused)
{
	struct fk_peer q = newcomer_of_a_probed_member(false);
	uint32_t ms;

	for (ms = 0; fk_present(&q); ms += 100) {
		ck_assert_uint_lt(ms, 10000);
		if (h[0]->n_probes > 0)
			fk_probed(h[0], h[2], "refused");
		fk_tick(&f, 100);
	}
	assert_contains(fk_take(h[0], WM_KICK)->u.kick.text, "could not reach host c");
}
END_TEST

/* A probe between members does not try the ports for shared state. */
START_TEST(probe_between_members_does_not_prove_a_newcomer)
{
	struct fk_peer q = newcomer_of_a_probed_member(_i);

	if (!_i)
		fk_probed(h[0], h[2], NULL);
	fk_settle(&f);
	fk_pending(&p[2]);
	ck_assert(!wire_ballot_answer(fk_take(h[2], WM_BALLOT_END)->u.ballot_end.number));
	fk_probed(h[0], h[2], NULL);
	fk_pending(&p[2]);
	ck_assert(wire_ballot_answer(fk_take(h[2], WM_BALLOT_END)->u.ballot_end.number));
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_REGISTERED);
}
END_TEST

Suite *newcomers_suite(void)
{
	Suite *s = suite_create("newcomers");
	TCase *tc = tcase_create("newcomers");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, unreachable_newcomer_does_not_disturb_members);
	tcase_add_test(tc, a_newcomer_is_pending_once_its_links_are_proven);
	tcase_add_test(tc, a_newcomer_takes_another_position_in_the_ring);
	tcase_add_test(tc, failed_host_is_probed_more_and_more_rarely);
	tcase_add_test(tc, newcomer_that_is_kicked_soon_waits_longer_each_time);
	tcase_add_test(tc, host_with_new_addresses_is_probed_at_once);
	tcase_add_test(tc, slow_newcomer_does_not_delay_another);
	tcase_add_test(tc, founders_are_not_probed);
	tcase_add_test(tc, a_second_peer_of_a_member_host_needs_no_probe);
	tcase_add_test(tc, a_link_that_fails_is_probed_again);
	tcase_add_loop_test(tc, spoilers_are_admitted_more_and_more_rarely, 0, 2 * N_SPOILERS);
	tcase_add_test(tc, stopped_newcomer_is_not_admitted_until_it_runs);
	tcase_add_test(tc, others_are_admitted_without_a_stopped_newcomer);
	tcase_add_test(tc, stopped_newcomer_on_a_members_host_is_not_admitted);
	tcase_add_test(tc, run_with_only_stopped_newcomers_waits_for_them);
	tcase_add_test(tc, newcomer_that_was_probed_as_a_member_is_refused);
	tcase_add_loop_test(tc, probe_between_members_does_not_prove_a_newcomer, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
