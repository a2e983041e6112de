/* SPDX-License-Identifier: MIT
 *
 * Shared state between real engines: members get the elected contents, from the right sources, with
 * no more bytes than necessary.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"
#include "common/cc_sys.h"
#include "tests/state/host.h"
#include "tests/state/suites.h"

#define LEAF ((uint64_t)WIRE_LEAF)
static const uint64_t odd_sizes[] = {0, 1, 65535, 65536, 65537, 0, 3 * LEAF, 1000003, 7, 20 * LEAF,
	262144, 262145, 17 * LEAF - 1, 0};
#define N_ODD ((uint32_t)(sizeof odd_sizes / sizeof *odd_sizes))

static void odd_shape(struct shape *s, uint64_t seed)
{
	shape_init(s, N_ODD, seed);
	memcpy(s->bytes, odd_sizes, sizeof odd_sizes);
	s->may_differ[3] = true;
}

static void start_all(struct net *n, struct shape *s, const struct ste_source *src, uint32_t n_src)
{
	for (uint32_t i = 1; i < n->n; i++) {
		host_start(&n->h[i], SEQ, s, NULL, 0);
		net_expect(n, i, STE_DONE);
	}
	host_start(&n->h[0], SEQ, s, src, n_src);
}

START_TEST(newcomer_gets_all_tensors)
{
	enum kind from = (enum kind)(_i % 3), to = (enum kind)(_i / 3);
	struct ste_source src[1];
	struct ste_progress p;
	struct shape s;
	struct net n;

	odd_shape(&s, (uint64_t)_i);
	net_newcomer(&n, &s, 1, from, to, src);
	start_all(&n, &s, src, 1);
	net_expect_done(&n);
	member_check(&n.h[1].m[0]);
	p = host_progress(&n.h[0], SEQ);
	ck_assert_uint_eq(p.phase, STE_SERVES);
	ck_assert_uint_eq(p.sources, 0); /* streams to sources end with the transfer */
	ck_assert_uint_eq(p.bytes, shape_bytes(&s));
	ck_assert_uint_eq(p.done, shape_bytes(&s));
	ck_assert_uint_gt(p.net_rx_bytes, shape_bytes(&s));
	ck_assert_uint_lt(p.net_rx_bytes, shape_bytes(&s) + 8192);
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, shape_bytes(&s));
	ck_assert_uint_eq(host_view(&n.h[0], 0).bytes, shape_bytes(&s));
	ck_assert_uint_eq(host_view(&n.h[0], 0).tx_bytes, 0);
	net_expect_sent(&n, 1, shape_bytes(&s));
	ck_assert_uint_eq(host_view(&n.h[1], 0).rx_bytes, 0);
	ck_assert_uint_eq(host_source(&n.h[0], 0).bytes, shape_bytes(&s));
	net_cancel(&n, 0);
	net_cancel(&n, 1);
	net_end(&n, &s);
}
END_TEST

/* Checks that host 0 has received the elected hashes, which are those of the member of host 1. */
static void expect_hashes(const struct net *n, const struct shape *s)
{
	const uint64_t *v = ste_get_hashes(n->h[0].e, SEQ);

	ck_assert_ptr_nonnull(v);
	for (uint32_t t = 0; t < s->n; t++)
		ck_assert(s->may_differ[t] || v[t] == n->h[1].m[0].state.tensors[t].hash);
}

/* One byte differs. One leaf is transferred, and for equal tensors nothing is requested. */
START_TEST(one_changed_byte_moves_one_leaf)
{
	struct ste_diff d;
	struct ste_source src[1];
	struct shape s;
	struct net n;

	shape_init(&s, 101, 11);
	for (uint32_t t = 0; t < s.n; t++)
		s.bytes[t] = t == 0 ? 16 << 20 : LEAF + 1;
	net_up(&n, 2);
	member_add(&n.h[0], &s, true, (enum kind)_i);
	member_add(&n.h[1], &s, true, (enum kind)_i);
	n.h[0].m[0].holder = false;
	n.h[0].m[0].data[0][5000000] ^= 0x10;
	host_hash(&n.h[0]);
	host_hash(&n.h[1]);
	src[0] = source_of(&n, 1, true);
	start_all(&n, &s, src, 1);
	net_expect_done(&n);
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, WIRE_LEAF);
	net_expect_sent(&n, 1, WIRE_LEAF);
	ck_assert_uint_lt(host_progress(&n.h[0], SEQ).net_rx_bytes, WIRE_LEAF + 4096);
	ck_assert_uint_lt(host_progress(&n.h[0], SEQ).net_tx_bytes, 1024);
	ck_assert_ptr_null(ste_get_hashes(n.h[0].e, SEQ));
	net_cancel(&n, 0);
	ck_assert(ste_next_diff(n.h[0].e, SEQ, 0, 0, &d));
	ck_assert(d.tensor == 0 && d.leaves == 1 && d.of == 256);
	ck_assert(d.bytes == WIRE_LEAF && d.done == WIRE_LEAF);
	ck_assert(!ste_next_diff(n.h[0].e, SEQ, 0, 1, &d));
	expect_hashes(&n, &s);
	ck_assert(!ste_next_diff(n.h[0].e, SEQ, 1, 0, &d));
	net_cancel(&n, 1); /* a holder */
	ck_assert(!ste_next_diff(n.h[1].e, SEQ, 0, 0, &d));
	net_end(&n, &s);
}
END_TEST

/* Several tensors have more hashes than one request may have. One stream requests all of them. */
START_TEST(hashes_come_in_parts)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	shape_init(&s, 8, 12);
	for (uint32_t t = 0; t < s.n; t++)
		s.bytes[t] = (t % 2 ? 1 + t * t : t) * LEAF;
	net_hashes = (uint32_t)_i;
	net_newcomer(&n, &s, 1, OWN, OWN, src);
	start_all(&n, &s, src, 1);
	net_expect_done(&n);
	net_end(&n, &s);
}
END_TEST

/* Nothing differs, so no source is needed. */
START_TEST(equal_contents_need_no_source)
{
	struct shape s;
	struct net n;

	odd_shape(&s, 3);
	net_up(&n, 1);
	member_add(&n.h[0], &s, true, OWN);
	n.h[0].m[0].holder = false;
	host_hash(&n.h[0]);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	net_expect_done(&n);
	net_end(&n, &s);
}
END_TEST

/* Checks that the first member lacked all leaves and has received them. */
static void expect_diffs(struct host *h, const struct shape *s)
{
	struct ste_diff d = {0};

	for (uint32_t t = 0; t < s->n; t++) {
		if (s->bytes[t] == 0)
			continue;
		ck_assert(ste_next_diff(h->e, SEQ, 0, d.tensor + (d.of > 0), &d));
		ck_assert_uint_eq(d.tensor, t);
		ck_assert_uint_eq(d.leaves, wire_leaf_count(s->bytes[t]));
		ck_assert_uint_eq(d.of, d.leaves);
		ck_assert_uint_eq(d.bytes, s->bytes[t]);
		ck_assert_uint_eq(d.done, s->bytes[t]);
	}
	ck_assert(!ste_next_diff(h->e, SEQ, 0, d.tensor + 1, &d));
}

START_TEST(newcomer_gets_ten_thousand_tensors)
{
	struct ste_source src[2];
	struct shape s;
	struct net n;

	rng_state = (uint64_t)_i;
	shape_init(&s, 10000, 1);
	for (uint32_t t = 0; t < s.n; t++)
		s.bytes[t] = rng() % 8 == 0 ? 0 : rng() % 3000;
	s.bytes[77] = 200000;
	net_newcomer(&n, &s, 2, _i ? OWN : REGISTERED, _i ? OWN : REGISTERED, src);
	start_all(&n, &s, src, 2);
	net_expect_done(&n);
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, shape_bytes(&s));
	net_cancel(&n, 0);
	expect_diffs(&n.h[0], &s);
	net_end(&n, &s);
}
END_TEST

/* There are more tensor hashes than one request can have. */
START_TEST(tensor_hashes_need_several_requests)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	shape_init(&s, 70000, 1);
	s.bytes[69999] = 5;
	s.bytes[66000] = 65537;
	net_newcomer(&n, &s, 1, REGISTERED, REGISTERED, src);
	start_all(&n, &s, src, 1);
	net_expect_done(&n);
	net_end(&n, &s);
}
END_TEST

START_TEST(three_sources_share_the_transfer)
{
	struct ste_source src[3];
	uint64_t sum = 0;
	struct shape s;
	struct net n;

	shape_one(&s, 16 << 20);
	net_newcomer(&n, &s, 3, REGISTERED, (enum kind)_i, src);
	start_all(&n, &s, src, 3);
	net_expect_done(&n);
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t bytes = host_source(&n.h[0], i).bytes;

		ck_assert_uint_gt(bytes, 0);
		net_expect_sent(&n, i + 1, bytes);
		sum += bytes;
	}
	ck_assert_uint_eq(sum, 16 << 20);
	net_end(&n, &s);
}
END_TEST

/* The progress shows the rate during the transfer. The process carries out one command after the
 * other. */
START_TEST(progress_shows_the_rate)
{
	struct ste_source src[1];
	struct ste_progress p;
	struct ste_event ev;
	struct shape s;
	struct net n;
	uint64_t began;

	shape_one(&s, 64 << 20);
	net_newcomer(&n, &s, 1, REGISTERED, OWN, src);
	atomic_store(&n.h[0].m[0].limit, 1);
	began = cc_now_ns();
	start_all(&n, &s, src, 1);
	do {
		ck_assert(!net_event(&n, 0, &ev, 10));
		p = host_progress(&n.h[0], SEQ);
		atomic_fetch_add(&n.h[0].m[0].limit, 1);
		ck_assert(p.rate == STE_UNMEASURED || cc_now_ns() - began >= 500000000);
	} while (p.rate == 0 || p.rate == STE_UNMEASURED);
	ck_assert_uint_le(p.rate, 2 * p.done); /* measured over at least half a second */
	net_end(&n, &s);
}
END_TEST

/* Nobody listens at the first address, and the host at the second address closes the connection. */
START_TEST(third_address_of_a_source_is_reached)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	odd_shape(&s, 5);
	net_up(&n, 3);
	member_add(&n.h[0], &s, false, OWN);
	member_add(&n.h[1], &s, true, OWN);
	host_hash(&n.h[0]);
	host_hash(&n.h[1]);
	n.h[2].refuses = true;
	src[0] = source_of(&n, 1, true);
	src[0].n_addrs = 3;
	src[0].addrs[2] = src[0].addrs[0];
	src[0].addrs[0].port = 1;
	src[0].addrs[1].port = n.h[2].port;
	host_start(&n.h[1], SEQ, &s, NULL, 0);
	host_start(&n.h[0], SEQ, &s, src, 1);
	net_expect_done(&n);
	net_end(&n, &s);
}
END_TEST

/* The receiver's host starts first, and asks again until the holder's host has started, too. */
START_TEST(receiver_waits_for_a_late_holder)
{
	struct ste_source src[1];
	struct ste_event ev;
	struct shape s;
	struct net n;

	odd_shape(&s, 6);
	net_newcomer(&n, &s, 1, MIXED, MIXED, src);
	host_start(&n.h[0], SEQ, &s, src, 1);
	ck_assert(!net_event(&n, 0, &ev, 100));
	host_start(&n.h[1], SEQ, &s, NULL, 0);
	net_expect_done(&n);
	net_end(&n, &s);
}
END_TEST

/* The only source has ended the attempt, so the job of the receiver fails. */
START_TEST(job_fails_if_its_source_has_ended_the_attempt)
{
	struct ste_source src[1];
	struct ste_event ev;
	struct shape s;
	struct net n;

	odd_shape(&s, 6);
	net_newcomer(&n, &s, 1, MIXED, MIXED, src);
	host_start(&n.h[1], SEQ, &s, NULL, 0);
	net_expect(&n, 1, STE_DONE);
	net_cancel(&n, 1);
	host_start(&n.h[0], SEQ, &s, src, 1);
	ck_assert(net_event(&n, 0, &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, STE_FAILED);
	ck_assert(cc_id_eq(&ev.suspect, &n.h[1].id));
	ck_assert_ptr_nonnull(strstr(ev.text, "does not take part any more"));
	net_end(&n, &s);
}
END_TEST

/* ---- several members on a host ---- */

START_TEST(holder_serves_receivers_on_its_own_host)
{
	enum kind from = (enum kind)(_i % 3), to = (enum kind)(_i / 3);
	struct ste_progress p;
	struct shape s;
	struct net n;

	odd_shape(&s, (uint64_t)_i);
	net_up(&n, 1);
	member_add(&n.h[0], &s, false, to);
	member_add(&n.h[0], &s, true, from);
	member_add(&n.h[0], &s, false, from);
	host_hash(&n.h[0]);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	net_expect(&n, 0, STE_DONE);
	for (uint32_t i = 0; i < 3; i++)
		member_check(&n.h[0].m[i]);
	p = host_progress(&n.h[0], SEQ);
	ck_assert_uint_eq(p.net_rx_bytes, 0);
	ck_assert_uint_eq(p.net_tx_bytes, 0);
	ck_assert_uint_eq(p.done, 2 * shape_bytes(&s));
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, shape_bytes(&s));
	ck_assert_uint_eq(host_view(&n.h[0], 2).rx_bytes, shape_bytes(&s));
	ck_assert_uint_eq(host_view(&n.h[0], 1).tx_bytes, 2 * shape_bytes(&s));
	net_end(&n, &s);
}
END_TEST

/* A process copies directly from the holder's memory (_i 0: the holder's window; 1: its registered
 * memory). It copies in another way if it cannot map this memory (2, 3) or belongs to another user
 * (4, 5). */
START_TEST(process_copies_from_memory_of_a_holder)
{
	struct member *holder, *own;
	struct shape s;
	struct net n;

	odd_shape(&s, (uint64_t)_i);
	net_up(&n, 1);
	own = member_add(&n.h[0], &s, false, OWN);
	holder = member_add(&n.h[0], &s, true, _i % 2 ? REGISTERED : OWN);
	holder->region.fd = holder->fd;
	atomic_store(&own->blind, _i / 2 == 1 ? UINT32_MAX : 0);
	own->uid = _i / 2 == 2;
	host_hash(&n.h[0]);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	net_expect(&n, 0, STE_DONE);
	member_check(own);
	if (_i < 2)
		ck_assert_uint_ge(atomic_load(&own->n_seen), shape_bytes(&s) / SHM_STATE_SLOT);
	else
		ck_assert_uint_eq(atomic_load(&own->n_seen), 0);
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, shape_bytes(&s));
	ck_assert_uint_eq(host_view(&n.h[0], 1).tx_bytes, shape_bytes(&s));
	net_end(&n, &s);
}
END_TEST

/* A process that cannot map the memory of one holder still copies from the other holder. */
START_TEST(process_copies_from_the_holder_that_it_can_map)
{
	const uint64_t bytes = 64 << 20;
	struct member *own;
	struct shape s;
	struct net n;

	shape_one(&s, bytes);
	net_up(&n, 1);
	for (uint32_t i = 0; i < 2; i++)
		member_add(&n.h[0], &s, true, OWN)->region.fd = n.h[0].m[i].fd;
	own = member_add(&n.h[0], &s, false, OWN);
	atomic_store(&own->blind, 1u << _i);
	host_hash(&n.h[0]);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	net_expect(&n, 0, STE_DONE);
	member_check(own);
	ck_assert_uint_gt(atomic_load(&own->n_seen), 0); /* the number depends on the scheduler */
	net_end(&n, &s);
}
END_TEST

/* A member that has the elected contents serves others, although its candidate was not elected. */
START_TEST(receiver_with_elected_state_serves_its_host)
{
	struct shape s;
	struct net n;

	odd_shape(&s, 2);
	net_up(&n, 1);
	member_add(&n.h[0], &s, false, (enum kind)_i);
	member_add(&n.h[0], &s, true, OWN);
	n.h[0].m[1].holder = false;
	host_hash(&n.h[0]);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	net_expect_done(&n);
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, shape_bytes(&s));
	ck_assert_uint_eq(host_view(&n.h[0], 1).tx_bytes, shape_bytes(&s));
	net_end(&n, &s);
}
END_TEST

/* A leaf that several receivers of a host lack crosses the network once. */
START_TEST(leaf_crosses_the_network_once_for_a_host)
{
	struct ste_source src[1];
	struct ste_progress p;
	uint64_t wanted;
	struct shape s;
	struct net n;

	odd_shape(&s, (uint64_t)_i);
	net_up(&n, 2);
	member_add(&n.h[1], &s, true, MIXED);
	member_add(&n.h[0], &s, false, (enum kind)_i);
	member_add(&n.h[0], &s, false, OWN);
	member_add(&n.h[0], &s, true, REGISTERED);
	/* The third member lacks one leaf. */
	n.h[0].m[2].holder = false;
	n.h[0].m[2].data[9][3 * 65536 + 1] ^= 1;
	host_hash(&n.h[0]);
	host_hash(&n.h[1]);
	src[0] = source_of(&n, 1, true);
	start_all(&n, &s, src, 1);
	net_expect(&n, 0, STE_DONE);
	for (uint32_t i = 0; i < 3; i++)
		member_check(&n.h[0].m[i]);
	wanted = shape_bytes(&s);
	p = host_progress(&n.h[0], SEQ);
	ck_assert_uint_lt(p.net_rx_bytes, wanted + 16384);
	ck_assert_uint_eq(p.done, 2 * wanted + WIRE_LEAF);
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, wanted);
	ck_assert_uint_eq(host_view(&n.h[0], 1).rx_bytes, wanted);
	ck_assert_uint_eq(host_view(&n.h[0], 2).rx_bytes, WIRE_LEAF);
	ck_assert_uint_eq(host_view(&n.h[0], 2).bytes, WIRE_LEAF);
	net_expect_sent(&n, 1, wanted);
	net_end(&n, &s);
}
END_TEST

/* Host 2 has only host 1 as a source, and host 1 gets everything from host 0 at the same time. */
START_TEST(receiver_serves_another_host)
{
	struct ste_source holder, other;
	struct shape s;
	struct net n;

	odd_shape(&s, (uint64_t)_i);
	net_up(&n, 3);
	member_add(&n.h[0], &s, true, REGISTERED);
	member_add(&n.h[1], &s, false, _i ? OWN : REGISTERED);
	member_add(&n.h[2], &s, false, _i ? OWN : REGISTERED);
	for (uint32_t i = 0; i < 3; i++)
		host_hash(&n.h[i]);
	holder = source_of(&n, 0, true);
	other = source_of(&n, 1, false);
	host_start(&n.h[2], SEQ, &s, &other, 1);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	host_start(&n.h[1], SEQ, &s, &holder, 1);
	net_expect(&n, 1, STE_DONE);
	net_expect(&n, 2, STE_DONE);
	member_check(&n.h[1].m[0]);
	member_check(&n.h[2].m[0]);
	net_expect_sent(&n, 0, shape_bytes(&s));
	net_expect_sent(&n, 1, shape_bytes(&s));
	net_end(&n, &s);
}
END_TEST

/* A receive-only peer is complete, but does not serve another host. */
START_TEST(receive_only_peer_serves_no_other_host)
{
	struct ste_source src[2];
	struct shape s;
	struct net n;

	shape_one(&s, 32 << 20);
	net_up(&n, 3);
	member_add(&n.h[0], &s, true, REGISTERED);
	member_add(&n.h[1], &s, false, (enum kind)_i);
	member_add(&n.h[2], &s, false, REGISTERED);
	n.h[1].m[0].receive_only = true;
	for (uint32_t i = 0; i < 3; i++)
		host_hash(&n.h[i]);
	src[0] = source_of(&n, 0, true);
	src[1] = source_of(&n, 1, false);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	host_start(&n.h[1], SEQ, &s, src, 1);
	net_expect(&n, 1, STE_DONE);
	host_start(&n.h[2], SEQ, &s, src, 2);
	net_expect(&n, 2, STE_DONE);
	member_check(&n.h[2].m[0]);
	ck_assert_uint_eq(host_view(&n.h[1], 0).tx_bytes, 0);
	net_expect_sent(&n, 0, 2 * shape_bytes(&s));
	net_end(&n, &s);
}
END_TEST

/* Each of three newcomers has the other two and one holder as sources. */
START_TEST(three_newcomers_serve_each_other)
{
	uint64_t given = 0, taken = 0;
	struct ste_event ev;
	struct shape s;
	struct net n;

	shape_init(&s, 3, 8);
	s.bytes[0] = 2 << 20;
	s.bytes[1] = 333;
	s.bytes[2] = (6 << 20) + 5;
	net_up(&n, 4);
	for (uint32_t i = 0; i < 4; i++) {
		member_add(&n.h[i], &s, i == 0, i % 2 ? REGISTERED : (enum kind)_i);
		host_hash(&n.h[i]);
	}
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	for (uint32_t i = 1; i < 4; i++) {
		struct ste_source src[3] = {source_of(&n, 0, true), source_of(&n, i % 3 + 1, false),
			source_of(&n, (i + 1) % 3 + 1, false)};

		host_start(&n.h[i], SEQ, &s, src, 3);
	}
	for (uint32_t i = 1; i < 4; i++) {
		net_expect(&n, i, STE_DONE);
		member_check(&n.h[i].m[0]);
		taken += host_view(&n.h[i], 0).rx_bytes;
	}
	ck_assert_uint_eq(taken, 3 * shape_bytes(&s));
	while (given < taken) { /* bytes are counted a moment after they were sent */
		ck_assert(!net_event(&n, UINT32_MAX, &ev, 5));
		given = 0;
		for (uint32_t i = 0; i < 4; i++)
			given += host_view(&n.h[i], 0).tx_bytes;
	}
	net_end(&n, &s);
}
END_TEST

/* Random members on random hosts, with random differences. */
START_TEST(random_members_become_equal)
{
	struct shape s;
	struct net n;

	rng_state = (uint64_t)_i + 1000;
	shape_init(&s, 1 + (uint32_t)(rng() % 24), rng());
	for (uint32_t t = 0; t < s.n; t++) {
		s.bytes[t] = rng() % (rng() % 4 ? 100000 : 1500000);
		s.may_differ[t] = rng() % 8 == 0;
	}
	net_up(&n, 2 + (uint32_t)(rng() % 3));
	for (uint32_t i = 0; i < n.n; i++) {
		for (uint64_t k = rng() % 3 + 1; k > 0; k--) {
			bool holder = i == 0 || rng() % 4 == 0;
			struct member *m = member_add(
				&n.h[i], &s, holder || rng() % 2, (enum kind)(rng() % 3));

			m->holder = holder;
			for (uint64_t c = holder ? 0 : rng() % 30; c > 0; c--) {
				uint32_t t = (uint32_t)(rng() % s.n);

				if (s.bytes[t] > 0 && !s.may_differ[t])
					m->data[t][rng() % s.bytes[t]] ^= 1;
			}
		}
		host_hash(&n.h[i]);
	}
	for (uint32_t i = n.n; i-- > 0;) {
		struct ste_source src[HOSTS_MAX];
		uint32_t n_src = 0;

		for (uint32_t k = 0; k < n.n; k++)
			if (k != i && n.h[k].m[0].holder)
				src[n_src++] = source_of(&n, k, true);
		for (uint32_t k = 0; k < n.n; k++)
			if (k != i && !n.h[k].m[0].holder)
				src[n_src++] = source_of(&n, k, false);
		host_start(&n.h[i], SEQ, &s, src, n_src);
	}
	for (uint32_t i = 0; i < n.n; i++) {
		net_expect(&n, i, STE_DONE);
		for (uint32_t k = 0; k < n.h[i].n_members; k++) {
			ck_assert(!host_view(&n.h[i], k).failed);
			member_check(&n.h[i].m[k]);
		}
	}
	net_end(&n, &s);
}
END_TEST

START_TEST(start_with_used_seq_or_too_many_sources_fails)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	shape_one(&s, 100);
	net_newcomer(&n, &s, 1, OWN, OWN, src);
	host_start(&n.h[0], SEQ, &s, src, 1);
	ck_assert_int_eq(host_try_start(&n.h[0], SEQ, &s, src, 1), CC_ERR_EXIST);
	ck_assert_int_eq(
		host_try_start(&n.h[0], SEQ + 1, &s, src, STE_SOURCES_MAX + 1), CC_ERR_LIMIT);
	net_end(&n, &s);
}
END_TEST

Suite *state_suite(void)
{
	Suite *s = suite_create("state");
	TCase *tc = tcase_create("transfer");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, newcomer_gets_all_tensors, 0, 9);
	tcase_add_loop_test(tc, hashes_come_in_parts, 1, 20);
	tcase_add_loop_test(tc, one_changed_byte_moves_one_leaf, 0, 2);
	tcase_add_test(tc, equal_contents_need_no_source);
	tcase_add_loop_test(tc, newcomer_gets_ten_thousand_tensors, 0, 2);
	tcase_add_test(tc, tensor_hashes_need_several_requests);
	tcase_add_loop_test(tc, three_sources_share_the_transfer, 0, 2);
	tcase_add_test(tc, progress_shows_the_rate);
	tcase_add_test(tc, third_address_of_a_source_is_reached);
	tcase_add_test(tc, receiver_waits_for_a_late_holder);
	tcase_add_test(tc, job_fails_if_its_source_has_ended_the_attempt);
	tcase_add_loop_test(tc, holder_serves_receivers_on_its_own_host, 0, 9);
	tcase_add_loop_test(tc, process_copies_from_memory_of_a_holder, 0, 6);
	tcase_add_loop_test(tc, process_copies_from_the_holder_that_it_can_map, 0, 2);
	tcase_add_loop_test(tc, receiver_with_elected_state_serves_its_host, 0, 2);
	tcase_add_loop_test(tc, leaf_crosses_the_network_once_for_a_host, 0, 3);
	tcase_add_loop_test(tc, receiver_serves_another_host, 0, 2);
	tcase_add_loop_test(tc, receive_only_peer_serves_no_other_host, 0, 2);
	tcase_add_loop_test(tc, three_newcomers_serve_each_other, 0, 3);
	tcase_add_loop_test(tc, random_members_become_equal, 0, 16);
	tcase_add_test(tc, start_with_used_seq_or_too_many_sources_fails);
	suite_add_tcase(s, tc);
	return s;
}
