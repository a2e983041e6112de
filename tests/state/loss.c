/* SPDX-License-Identifier: MIT
 *
 * Shared state when sources are lost, silent or wrong, when members lie, and when jobs are
 * cancelled.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/wire_state.h"
#include "tests/state/host.h"
#include "tests/state/suites.h"

static void expect_failure(struct net *n, uint32_t suspect, const char *part)
{
	struct ste_event ev;

	ck_assert(net_event(n, 0, &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, STE_FAILED);
	ck_assert_msg(strstr(ev.text, part) != NULL, "%s", ev.text);
	ck_assert(cc_id_eq(&ev.suspect, &n->h[suspect].id));
	ck_assert_uint_eq(host_progress(&n->h[0], SEQ).phase, STE_FAILS);
	ck_assert(!host_view(&n->h[0], 0).complete);
}

/* Waits until some bytes have moved. The job cannot end while the receiver does nothing. */
static void until_under_way(struct net *n, uint32_t sources)
{
	struct ste_event ev;

	for (int i = 0; i < 2000; i++) {
		struct ste_progress p = host_progress(&n->h[0], SEQ);

		if (p.sources == sources && p.net_rx_bytes > 2 << 20)
			return;
		ck_assert(!net_event(n, UINT32_MAX, &ev, 5));
	}
	ck_abort_msg("no bytes move");
}

static void kill_host(struct net *n, uint32_t host)
{
	ste_free(n->h[host].e);
	n->h[host].e = NULL;
}

START_TEST(job_survives_the_death_of_one_source)
{
	struct ste_source src[2];
	struct shape s;
	struct net n;

	shape_two(&s, 32 << 20);
	net_newcomer(&n, &s, 2, _i ? OWN : REGISTERED, OWN, src);
	atomic_store(&n.h[0].m[0].deaf, true);
	net_start(&n, &s, src, 2);
	until_under_way(&n, 2);
	kill_host(&n, 1);
	atomic_store(&n.h[0].m[0].deaf, false);
	net_expect_done(&n);
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, shape_bytes(&s));
	net_end(&n, &s);
}
END_TEST

START_TEST(job_fails_when_its_last_source_dies)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	shape_two(&s, 32 << 20);
	net_newcomer(&n, &s, 1, REGISTERED, OWN, src);
	atomic_store(&n.h[0].m[0].deaf, true);
	net_start(&n, &s, src, 1);
	until_under_way(&n, 1);
	kill_host(&n, 1);
	atomic_store(&n.h[0].m[0].deaf, false);
	expect_failure(&n, 1, "no remaining peer has the elected state; host1: 127.0.0.1:");
	ck_assert(host_source(&n.h[0], 0).lost);
	net_end(&n, &s);
}
END_TEST

static uint32_t touched(const struct member *m)
{
	const struct shm_state_end *end = (const void *)(m->map + SHM_STATE_END_OFF);

	return end->touched;
}

/* Blocks come over the network (_i 0, 1) or from a holder on this host (2, 3). */
START_TEST(manifest_shows_direct_writes_of_the_agent)
{
	enum kind kind = _i & 1 ? REGISTERED : OWN;
	struct ste_source src[1];
	const struct member *from, *to;
	struct shape s;
	struct net n;

	shape_two(&s, 1 << 20);
	if (_i & 2) {
		net_up(&n, 1);
		from = member_add(&n.h[0], &s, true, REGISTERED);
		to = member_add(&n.h[0], &s, false, kind);
		host_hash(&n.h[0]);
		host_start(&n.h[0], SEQ, &s, NULL, 0);
	} else {
		net_newcomer(&n, &s, 1, REGISTERED, kind, src);
		from = &n.h[1].m[0];
		to = &n.h[0].m[0];
		net_start(&n, &s, src, 1);
	}
	net_expect(&n, 0, STE_DONE);
	member_check(to);
	ck_assert_uint_eq(touched(from), 0);
	ck_assert_uint_eq(touched(to), kind == REGISTERED);
	net_end(&n, &s);
}
END_TEST

START_TEST(job_fails_when_its_source_is_unreachable)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	shape_two(&s, 100);
	net_newcomer(&n, &s, 1, OWN, OWN, src);
	if (_i == 0)
		src[0].addrs[0].port = 1;
	else if (_i == 1)
		src[0].n_addrs = 0;
	else
		n.h[1].refuses = true;
	host_start(&n.h[0], SEQ, &s, src, 1);
	expect_failure(&n, 1,
		_i == 0   ? "Connection refused"
		: _i == 1 ? "it has no address"
			  : "host1: 127.0.0.1:");
	net_end(&n, &s);
}
END_TEST

/* A source that could not be reached at first is tried once more. */
START_TEST(source_is_tried_a_second_time)
{
	struct ste_source src[1];
	struct pollfd p = {.events = POLLIN};
	struct shape s;
	struct net n;

	shape_two(&s, 100);
	net_newcomer(&n, &s, 1, OWN, OWN, src);
	net_start(&n, &s, src, 1);
	p.fd = n.h[1].listener;
	ck_assert_int_eq(poll(&p, 1, WAIT_MS), 1);
	close(accept(p.fd, NULL, NULL));
	net_expect_done(&n);
	net_end(&n, &s);
}
END_TEST

START_TEST(job_without_sources_fails)
{
	struct ste_event ev;
	struct shape s;
	struct net n;

	shape_two(&s, 100);
	net_newcomer(&n, &s, 0, OWN, REGISTERED, NULL);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	ck_assert(net_event(&n, 0, &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, STE_FAILED);
	ck_assert_str_eq(ev.text, "no remaining peer has the elected state");
	ck_assert_uint_eq(touched(&n.h[0].m[0]), 0);
	net_end(&n, &s);
}
END_TEST

/* A peer without tensors is complete if the empty state was elected (_i 0), and fails otherwise
 * (1). */
START_TEST(empty_state_is_complete_only_if_elected)
{
	struct ste_source src[1];
	struct ste_event ev;
	struct shape s;
	struct net n;

	shape_init(&s, 0, 11);
	net_newcomer(&n, &s, 1, OWN, OWN, src);
	if (_i) {
		s.digest = (struct wm_digest){1, 2};
		s.digested = true;
	}
	net_start(&n, &s, src, 1);
	ck_assert(net_event(&n, 0, &ev, WAIT_MS));
	if (_i) {
		ck_assert_int_eq(ev.type, STE_FAILED);
		ck_assert_str_eq(
			ev.text, "the elected digest is not that of an empty shared state");
	} else {
		ck_assert_int_eq(ev.type, STE_DONE);
		member_check(&n.h[0].m[0]);
	}
	net_end(&n, &s);
}
END_TEST

/* Makes the contents of a tensor differ from its hashes: in memory, or while its process copies it
 * into the window (`own`). */
static void spoil(struct net *n, uint32_t host, bool own)
{
	struct member *m = &n->h[host].m[0];

	if (own)
		atomic_store(&m->corrupt, true);
	else
		m->data[0][m->shape->bytes[0] / 2] ^= 4;
}

START_TEST(source_with_wrong_data_is_replaced)
{
	struct ste_source src[2];
	struct shape s;
	struct net n;

	shape_two(&s, 4 << 20);
	net_newcomer(&n, &s, 2, _i & 1 ? OWN : REGISTERED, _i & 2 ? OWN : REGISTERED, src);
	spoil(&n, 1, _i & 1);
	net_start(&n, &s, src, 2);
	net_expect_done(&n);
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, shape_bytes(&s));
	net_end(&n, &s);
}
END_TEST

START_TEST(job_fails_if_its_only_source_has_wrong_data)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	shape_two(&s, _i & 2 ? 65536 : 4 << 20);
	net_newcomer(&n, &s, 1, _i & 1 ? OWN : REGISTERED, REGISTERED, src);
	spoil(&n, 1, _i & 1);
	net_start(&n, &s, src, 1);
	expect_failure(&n, 1, "does not match the hash");
	net_end(&n, &s);
}
END_TEST

/* Makes all leaves differ from their hashes, or (`hashes`) the leaf hashes differ from the tensor
 * hashes. */
static void lie(struct member *m, bool hashes)
{
	if (hashes)
		memset(m->map + m->state.leaves_off, 0xaa, m->state.n_leaves * 8);
	else
		memset(m->data[0], 0xaa, m->shape->bytes[0]);
}

/* Some holders of one host lie. The last holder does not lie, but serves nobody until all others
 * were asked. */
START_TEST(one_correct_member_of_a_source_is_enough)
{
	uint32_t liars = 1 + (uint32_t)_i % 3;
	struct ste_source src[1];
	struct ste_event ev;
	struct member *right;
	struct shape s;
	struct net n;

	shape_two(&s, 8 << 20);
	net_up(&n, 2);
	member_add(&n.h[0], &s, false, REGISTERED);
	for (uint32_t i = 0; i < liars; i++)
		member_add(&n.h[1], &s, true, REGISTERED);
	right = member_add(&n.h[1], &s, true, OWN);
	host_hash(&n.h[0]);
	host_hash(&n.h[1]);
	for (uint32_t i = 0; i < liars; i++)
		lie(&n.h[1].m[i], _i >= 3);
	atomic_store(&right->deaf, true);
	src[0] = source_of(&n, 1, true);
	net_start(&n, &s, src, 1);
	while (n.h[1].n_welcomed < STE_STREAMS + liars || member_commands(right) < STE_STREAMS)
		ck_assert_msg(!net_event(&n, 0, &ev, 5), "%s", ev.text);
	atomic_store(&right->deaf, false);
	net_expect_done(&n);
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, shape_bytes(&s));
	net_end(&n, &s);
}
END_TEST

/* All members of a source are wrong. The source is given up after about one try for each member. */
START_TEST(source_is_given_up_if_all_its_members_are_wrong)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	shape_two(&s, 8 << 20);
	net_up(&n, 2);
	member_add(&n.h[0], &s, false, REGISTERED);
	for (uint32_t i = 0; i < MEMBERS_MAX; i++)
		member_add(&n.h[1], &s, true, REGISTERED);
	host_hash(&n.h[0]);
	host_hash(&n.h[1]);
	for (uint32_t i = 0; i < MEMBERS_MAX; i++)
		lie(&n.h[1].m[i], _i);
	src[0] = source_of(&n, 1, true);
	net_start(&n, &s, src, 1);
	expect_failure(&n, 1, _i ? "its hashes are not" : "does not match the hash");
	ck_assert_uint_le(n.h[1].n_welcomed / STE_STREAMS, MEMBERS_MAX + 1);
	net_end(&n, &s);
}
END_TEST

/* With long names and reasons, the message still names some sources with their errors, and the end
 * of the message is not cut. */
START_TEST(message_lists_some_of_many_failed_sources)
{
	struct ste_source src[4];
	struct ste_event ev;
	const char *at;
	struct shape s;
	struct net n;
	int found = 0;

	shape_two(&s, 4 << 20);
	net_newcomer(&n, &s, 4, OWN, OWN, src);
	for (uint32_t i = 0; i < 4; i++) {
		if (_i == 0)
			src[i].addrs[0].port = 1;
		else
			spoil(&n, i + 1, true);
		memset(src[i].name, 'a' + (int)i, sizeof src[i].name - 1);
	}
	net_start(&n, &s, src, 4);
	ck_assert(net_event(&n, 0, &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, STE_FAILED);
	for (at = ev.text; (at = strstr(at, _i ? ": 127.0.0.1:" : "Connection refused")); at++)
		found++;
	ck_assert_msg(found == 3, "%s", ev.text);
	at = strstr(ev.text, "; and 1 more");
	ck_assert_msg(at && at[12] == '\0', "%s", ev.text);
	net_end(&n, &s);
}
END_TEST

/* The leaf hashes of a source do not result in the tensor hash. */
START_TEST(wrong_leaf_hashes_are_rejected)
{
	struct ste_source src[2];
	struct shape s;
	struct net n;

	shape_two(&s, 4 << 20);
	net_newcomer(&n, &s, 1 + (uint32_t)_i, REGISTERED, REGISTERED, src);
	n.h[1].m[0].map[n.h[1].m[0].state.leaves_off] ^= 1;
	net_start(&n, &s, src, 1 + (uint32_t)_i);
	if (_i) {
		net_expect_done(&n);
	} else {
		expect_failure(&n, 1, "its hashes are not those that were elected");
	}
	net_end(&n, &s);
}
END_TEST

/* A source serves contents that were not elected, with the right hashes of these contents. */
START_TEST(contents_that_were_not_elected_are_rejected)
{
	uint32_t sources = 1 + (uint32_t)_i;
	struct ste_source src[2];
	struct shape s, other;
	struct net n;

	shape_two(&s, 4 << 20);
	shape_two(&other, 4 << 20);
	other.seed++;
	net_up(&n, 1 + sources);
	member_add(&n.h[0], &s, false, REGISTERED);
	member_add(&n.h[1], &other, true, REGISTERED);
	if (_i)
		member_add(&n.h[2], &s, true, REGISTERED);
	for (uint32_t i = 0; i <= sources; i++)
		host_hash(&n.h[i]);
	for (uint32_t i = 0; i < sources; i++) {
		src[i] = source_of(&n, i + 1, true);
		host_start(&n.h[i + 1], SEQ, i == 0 ? &other : &s, NULL, 0);
	}
	host_start(&n.h[0], SEQ, &s, src, sources);
	if (_i) {
		net_expect_done(&n);
	} else {
		expect_failure(&n, 1, "its hashes are not those that were elected");
		ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, 0);
	}
	net_down(&n);
	shape_free(&other);
	shape_free(&s);
}
END_TEST

/* The tensor hashes of a holder have changed since its vote, so the holder fails. */
START_TEST(holder_with_changed_hashes_fails)
{
	struct ste_source src[2];
	struct shape s;
	struct net n;

	shape_two(&s, 100000);
	net_newcomer(&n, &s, 2, OWN, OWN, src);
	n.h[1].m[0].state.tensors[1].hash ^= 1;
	net_start(&n, &s, src, 2);
	net_expect(&n, 1, STE_DONE);
	ck_assert(host_view(&n.h[1], 0).failed);
	ck_assert(!host_view(&n.h[1], 0).complete);
	net_expect_done(&n);
	net_end(&n, &s);
}
END_TEST

START_TEST(silent_or_babbling_source_is_replaced)
{
	struct ste_source src[2];
	struct shape s;
	struct net n;

	shape_two(&s, 4 << 20);
	net_newcomer(&n, &s, 2, REGISTERED, REGISTERED, src);
	n.h[1].mute = _i == 0;
	n.h[1].babbles = _i == 1;
	net_start(&n, &s, src, 2);
	net_expect_done(&n);
	ck_assert_uint_eq(host_source(&n.h[0], 0).bytes, 0);
	net_end(&n, &s);
}
END_TEST

/* ---- members of one host ---- */

/* The holder on this host has wrong data (_i 0) or wrong hashes (1), or does nothing (2). The data
 * comes over the network. */
START_TEST(network_replaces_failed_holder_on_this_host)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	shape_two(&s, 4 << 20);
	net_up(&n, 2);
	member_add(&n.h[0], &s, false, MIXED);
	member_add(&n.h[0], &s, true, _i == 0 ? REGISTERED : OWN);
	member_add(&n.h[1], &s, true, OWN);
	host_hash(&n.h[0]);
	host_hash(&n.h[1]);
	src[0] = source_of(&n, 1, true);
	if (_i == 0)
		n.h[0].m[1].data[0][3 << 20] ^= 1;
	else if (_i == 1)
		n.h[0].m[1].map[n.h[0].m[1].state.leaves_off] ^= 1;
	else
		atomic_store(&n.h[0].m[1].deaf, true);
	net_start(&n, &s, src, 1);
	net_expect_done(&n);
	ck_assert(host_view(&n.h[0], 1).failed);
	ck_assert_msg(
		strstr(host_view(&n.h[0], 1).text, _i == 0   ? "changed during the call"
						   : _i == 1 ? "do not match the tensor hash"
							     : "carried out no command") != NULL,
		"%s", host_view(&n.h[0], 1).text);
	ck_assert(!host_view(&n.h[0], 0).failed);
	net_end(&n, &s);
}
END_TEST

/* The leaf hashes of a receiver are the elected ones, but its tensor hash is not. */
START_TEST(receiver_with_contradictory_hashes_gets_all)
{
	struct ste_source src[1];
	struct member *from, *to;
	struct shape s;
	struct net n;

	shape_two(&s, 1 << 20);
	net_newcomer(&n, &s, 1, REGISTERED, (enum kind)_i, src);
	to = &n.h[0].m[0];
	from = &n.h[1].m[0];
	memcpy(to->map + to->state.leaves_off, from->map + from->state.leaves_off,
		from->state.n_leaves * 8);
	net_start(&n, &s, src, 1);
	net_expect(&n, 0, STE_DONE);
	member_check(to);
	net_end(&n, &s);
}
END_TEST

/* A receiver's process acknowledges a slot that does not exist (_i 0, 1), or a slot without a
 * command (2, 3). */
START_TEST(receiver_with_false_acknowledgement_fails_alone)
{
	struct ste_source src[1];
	struct shm_state_acks *a;
	struct shape s;
	struct net n;

	shape_two(&s, _i & 2 ? 65536 : 8 << 20);
	net_up(&n, 2);
	member_add(&n.h[0], &s, false, OWN);
	member_add(&n.h[0], &s, false, _i & 1 ? OWN : REGISTERED);
	member_add(&n.h[1], &s, true, REGISTERED);
	host_hash(&n.h[0]);
	host_hash(&n.h[1]);
	src[0] = source_of(&n, 1, true);
	atomic_store(&n.h[0].m[0].deaf, true);
	a = (void *)(n.h[0].m[0].map + SHM_STATE_ACK_OFF);
	atomic_store(&a->v[0], _i & 2 ? SHM_STATE_SLOTS - 1 : 77);
	atomic_store(&a->tail, 5);
	net_start(&n, &s, src, 1);
	net_expect(&n, 0, STE_DONE);
	ck_assert(host_view(&n.h[0], 0).failed);
	ck_assert(!host_view(&n.h[0], 1).failed);
	member_check(&n.h[0].m[1]);
	net_end(&n, &s);
}
END_TEST

/* A member has other tensors than the other members of its host. */
START_TEST(member_with_other_tensors_fails_alone)
{
	struct shape s, odd;
	struct net n;

	shape_two(&s, 100000);
	shape_two(&odd, 100001);
	net_up(&n, 1);
	member_add(&n.h[0], &s, true, OWN);
	member_add(&n.h[0], &odd, false, OWN);
	member_add(&n.h[0], &s, false, OWN);
	host_hash(&n.h[0]);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	net_expect(&n, 0, STE_DONE);
	ck_assert(host_view(&n.h[0], 1).failed);
	member_check(&n.h[0].m[2]);
	net_down(&n);
	shape_free(&odd);
	shape_free(&s);
}
END_TEST

/* ---- cancelling ---- */

static void cancel_and_free(struct net *n, uint32_t host)
{
	struct host *h = &n->h[host];

	ste_cancel(h->e, SEQ);
	net_expect(n, host, STE_CANCELLED);
	/* The engine no longer uses the memory. */
	while (h->n_members > 0)
		member_free(h, &h->m[--h->n_members]);
}

START_TEST(job_can_be_cancelled_at_any_time)
{
	struct ste_source src[2];
	struct ste_event ev;
	struct shape s;
	struct net n;

	rng_state = (uint64_t)_i;
	shape_two(&s, 16 << 20);
	net_newcomer(&n, &s, 2, (enum kind)(_i % 2), (enum kind)(_i / 2 % 2), src);
	if (_i % 4 < 2 && _i >= 4)
		atomic_store(&n.h[0].m[0].deaf, true);
	net_start(&n, &s, src, 2);
	net_event(&n, UINT32_MAX, &ev, (int)(rng() % 40));
	/* The hosts are cancelled in different orders. */
	for (uint32_t i = 0; i < 3; i++)
		cancel_and_free(&n, ((uint32_t)_i + i) % 3);
	net_end(&n, &s);
}
END_TEST

Suite *loss_suite(void)
{
	Suite *s = suite_create("loss");
	TCase *tc = tcase_create("loss");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, job_survives_the_death_of_one_source, 0, 2);
	tcase_add_test(tc, job_fails_when_its_last_source_dies);
	tcase_add_loop_test(tc, manifest_shows_direct_writes_of_the_agent, 0, 4);
	tcase_add_loop_test(tc, job_fails_when_its_source_is_unreachable, 0, 3);
	tcase_add_loop_test(tc, message_lists_some_of_many_failed_sources, 0, 2);
	tcase_add_test(tc, source_is_tried_a_second_time);
	tcase_add_test(tc, job_without_sources_fails);
	tcase_add_loop_test(tc, empty_state_is_complete_only_if_elected, 0, 2);
	tcase_add_loop_test(tc, source_with_wrong_data_is_replaced, 0, 4);
	tcase_add_loop_test(tc, job_fails_if_its_only_source_has_wrong_data, 0, 4);
	tcase_add_loop_test(tc, one_correct_member_of_a_source_is_enough, 0, 6);
	tcase_add_loop_test(tc, source_is_given_up_if_all_its_members_are_wrong, 0, 2);
	tcase_add_loop_test(tc, wrong_leaf_hashes_are_rejected, 0, 2);
	tcase_add_loop_test(tc, contents_that_were_not_elected_are_rejected, 0, 2);
	tcase_add_test(tc, holder_with_changed_hashes_fails);
	tcase_add_loop_test(tc, silent_or_babbling_source_is_replaced, 0, 2);
	tcase_add_loop_test(tc, network_replaces_failed_holder_on_this_host, 0, 3);
	tcase_add_loop_test(tc, receiver_with_contradictory_hashes_gets_all, 0, 2);
	tcase_add_loop_test(tc, receiver_with_false_acknowledgement_fails_alone, 0, 4);
	tcase_add_test(tc, member_with_other_tensors_fails_alone);
	tcase_add_loop_test(tc, job_can_be_cancelled_at_any_time, 0, 16);
	suite_add_tcase(s, tc);
	return s;
}
