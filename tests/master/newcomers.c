/* SPDX-License-Identifier: MIT
 *
 * The master's core: newcomers are probed before members are made to wait for them.
 */
#include <stdio.h>

#include "tests/common/testlib.h"
#include "tests/master/many.h"
#include "tests/master/suites.h"

/* n hosts with one accepted peer each, in group 0; from now on probes are answered by the tests. */
static void run_of(size_t n)
{
	size_t i;

	fk_run_of(&f, h, p, n);
	for (i = 0; i < n; i++)
		h[i]->auto_probed = false;
	fk_forget(&f);
}

/* Always the same host, where name and address are. */
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
		(void)fk_take(h[i], WM_PENDING_ANSWER);
	return wire_pending_answer(fk_take(h[0], WM_PENDING_ANSWER)->u.pending_answer.ballot);
}

START_TEST(members_do_not_hear_of_a_newcomer_that_cannot_be_reached)
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
	ck_assert(fk_take(h[0], WM_COMMIT)->u.commit.accept); /* at once, nothing has changed */
	fk_probed(x, h[0], NULL);
	fk_probed(h[1], x, "10.0.0.9:1003: no answer in time");
	ck_assert(fk_present(&q)); /* at another position in the ring, perhaps */
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

/* It cannot reach a, but b and c: a ring that has it before b does. */
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
	/* When the ring is planned anew, that link is avoided still. */
	ck_assert(cc_id_eq(&x->id, &fk_take(h[1], WM_ROUND)->u.round.rings[0].next.agent));
	fk_forget(&f);
	fk_leave(&p[1], WM_LEAVE_CLEAN);
	ck_assert(cc_id_eq(&x->id, &fk_take(h[0], WM_ROUND)->u.round.rings[0].next.agent));
}
END_TEST

/* A host that keeps coming is tried ever more seldom, and as at first when it has been admitted. */
START_TEST(a_host_that_failed_is_tried_ever_more_seldom)
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
	/* Another host is not concerned, even one behind the same address. */
	x = newcomer("near", "10.0.0.9");
	q = fk_join(x, 0);
	fk_probed(h[0], x, NULL);
	fk_probed(x, h[0], NULL);
	fk_topo(&p[0]);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_ACCEPTED);
	fk_leave(&q, WM_LEAVE_CLEAN);
	fk_close(x, "gone");
	/* It can be reached now. */
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

/* Links to x cannot be opened any more. */
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

/* How long it waits. It comes in then, and stays for so long. */
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

/* Its links come up, and deliver nothing. */
START_TEST(a_newcomer_that_is_put_out_soon_is_tried_ever_more_seldom)
{
	run_of(2);
	h[0]->auto_probed = h[1]->auto_probed = true;
	ck_assert_uint_eq(comes_and_fails(5000), 0);
	ck_assert_uint_ge(comes_and_fails(5000), 3000);
	ck_assert_uint_ge(comes_and_fails(5000), 7000);
	/* Later it may be that something else has happened. */
	ck_assert_uint_ge(comes_and_fails(60000), 15000);
	ck_assert_uint_eq(comes_and_fails(5000), 0);
}
END_TEST

START_TEST(other_addresses_are_tried_at_once)
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

/* One that does not answer holds up nobody else for more than a moment. */
START_TEST(a_slow_newcomer_does_not_hold_up_another)
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

/* Whoever founds a run together keeps nobody waiting. */
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
	return wire_pending_answer(fk_take(h[1], WM_PENDING_ANSWER)->u.pending_answer.ballot);
}

/* Group 1 is to be on a and b. Their link in the ring of group 0 fails after the probes. */
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

/* ---- newcomers that can be reached, and spoil rounds ---- */

enum spoiler {
	SPOIL_SILENT, /* it does not report on the round */
	SPOIL_FAILS,  /* it could not open its link, it says */
	SPOIL_LEAVES, /* in the middle of the round */
	N_SPOILERS,
};

#define AT_A_TIME 12u

/* Another name and another address each time. */
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

/* Whoever is in a round does its worst. */
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

/* That are there, and are no members; those that have been kicked go. */
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

/* A vote of the members, by whom newcomers may come in. Returns how long they have waited. */
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

START_TEST(newcomers_that_spoil_rounds_are_let_in_ever_more_seldom)
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

START_TEST(a_stopped_newcomer_is_not_let_in_before_it_runs)
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
	assert_contains(fk_status(&f).waiting, "train@c pid 106 (is stopped, for 0.0 s)");
	vote_all(2);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_REGISTERED);
	ck_assert_uint_eq(fk_take(h[0], WM_COMMIT)->u.commit.view.global, 2);
	stopped(&q, false);
	ck_assert(pending(2));
	vote_all(2);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_ACCEPTED);
}
END_TEST

/* No round has a link that nobody has tried: from b to d none was needed while c was between. */
START_TEST(others_are_let_in_without_it_over_links_that_are_proven)
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

/* Its host is in the ring as it is. */
START_TEST(a_stopped_newcomer_on_the_host_of_a_member_is_not_let_in_either)
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

/* The last member leaves: only who is stopped is left, and nobody waits for it. */
START_TEST(a_run_of_stopped_newcomers_waits_for_them)
{
	struct fk_peer q;

	run_of(1);
	h[0]->auto_probed = true;
	q = fk_join(fk_host(&f, "b", "10.0.0.2"), 0);
	stopped(&q, true);
	fk_leave(&p[0], WM_LEAVE_CLEAN);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_REGISTERED);
	ck_assert(!fk_status(&f).round_active);
	assert_contains(fk_status(&f).waiting, "train@b pid 104 (is stopped, for 0.0 s)");
	fk_tick(&f, 3000);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_REGISTERED);
	stopped(&q, false);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_ACCEPTED);
}
END_TEST

/* ---- members that have become newcomers ---- */

static void report_all(void)
{
	size_t i;

	for (i = 0; i < 4; i++)
		if (h[i]->open && h[i]->round.round)
			fk_round_report(h[i], NULL, NULL);
}

/* The link from a to b has failed, so members were asked whether they reach each other. Then b has
 * left, and c is the only member; a newcomer is on a. early: a has answered as a member. */
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
		x = newcomer("x", "10.0.0.9"); /* what is known is kept while one is there */
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

START_TEST(a_newcomer_is_refused_though_it_was_a_member_when_it_was_probed)
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

/* Members do not try each other's ports for shared state. */
START_TEST(a_link_between_members_proves_nothing_of_a_newcomer)
{
	struct fk_peer q = newcomer_of_a_probed_member(_i);

	if (!_i)
		fk_probed(h[0], h[2], NULL);
	fk_settle(&f);
	fk_pending(&p[2]);
	ck_assert(!wire_pending_answer(fk_take(h[2], WM_PENDING_ANSWER)->u.pending_answer.ballot));
	fk_probed(h[0], h[2], NULL);
	fk_pending(&p[2]);
	ck_assert(wire_pending_answer(fk_take(h[2], WM_PENDING_ANSWER)->u.pending_answer.ballot));
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_REGISTERED);
}
END_TEST

Suite *newcomers_suite(void)
{
	Suite *s = suite_create("newcomers");
	TCase *tc = tcase_create("newcomers");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, members_do_not_hear_of_a_newcomer_that_cannot_be_reached);
	tcase_add_test(tc, a_newcomer_is_pending_once_its_links_are_proven);
	tcase_add_test(tc, a_newcomer_takes_another_position_in_the_ring);
	tcase_add_test(tc, a_host_that_failed_is_tried_ever_more_seldom);
	tcase_add_test(tc, a_newcomer_that_is_put_out_soon_is_tried_ever_more_seldom);
	tcase_add_test(tc, other_addresses_are_tried_at_once);
	tcase_add_test(tc, a_slow_newcomer_does_not_hold_up_another);
	tcase_add_test(tc, founders_are_not_probed);
	tcase_add_test(tc, a_second_peer_of_a_member_host_needs_no_probe);
	tcase_add_test(tc, a_link_that_fails_is_probed_again);
	tcase_add_loop_test(
		tc, newcomers_that_spoil_rounds_are_let_in_ever_more_seldom, 0, 2 * N_SPOILERS);
	tcase_add_test(tc, a_stopped_newcomer_is_not_let_in_before_it_runs);
	tcase_add_test(tc, others_are_let_in_without_it_over_links_that_are_proven);
	tcase_add_test(tc, a_stopped_newcomer_on_the_host_of_a_member_is_not_let_in_either);
	tcase_add_test(tc, a_run_of_stopped_newcomers_waits_for_them);
	tcase_add_test(tc, a_newcomer_is_refused_though_it_was_a_member_when_it_was_probed);
	tcase_add_loop_test(tc, a_link_between_members_proves_nothing_of_a_newcomer, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
