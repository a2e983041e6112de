/* SPDX-License-Identifier: MIT
 *
 * Shared state when sources are lost, silent or wrong, members lie, and jobs are cancelled.
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

/* Until something has moved, which goes no further as long as the receiver's process does nothing.
 */
static void until_under_way(struct net *n, uint32_t sources)
{
	struct ste_event ev;

	for (int i = 0; i < 2000; i++) {
		struct ste_progress p = host_progress(&n->h[0], SEQ);

		if (p.sources == sources && p.net_rx_bytes > 2 << 20)
			return;
		ck_assert(!net_event(n, UINT32_MAX, &ev, 5));
	}
	ck_abort_msg("nothing moves");
}

static void kill_host(struct net *n, uint32_t host)
{
	ste_free(n->h[host].e);
	n->h[host].e = NULL;
}

START_TEST(source_dies)
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

START_TEST(last_source_dies)
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

/* Whether blocks come by the network or from a holder on the host. */
START_TEST(who_is_written_to_without_commands_can_see_it)
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

START_TEST(nobody_there)
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
START_TEST(second_try)
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

START_TEST(no_sources)
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

/* Whoever has no tensors has the contents of none, or can never have what was elected. */
START_TEST(no_tensors)
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

/* Its tensor, of many leaves or of one, is not what its hashes say: changed in memory, or on the
 * way into the window. */
static void spoil(struct net *n, uint32_t host, bool own)
{
	struct member *m = &n->h[host].m[0];

	if (own)
		atomic_store(&m->corrupt, true);
	else
		m->data[0][m->shape->bytes[0] / 2] ^= 4;
}

START_TEST(wrong_data)
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

START_TEST(only_wrong_data)
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

/* All that it has is not what its hashes say, or its leaf hashes do not make those of tensors. */
static void lie(struct member *m, bool hashes)
{
	if (hashes)
		memset(m->map + m->state.leaves_off, 0xaa, m->state.n_leaves * 8);
	else
		memset(m->data[0], 0xaa, m->shape->bytes[0]);
}

/* Holders on one host, of which some lie. The last one does not, and serves nobody before the
 * others have had every chance to. */
START_TEST(one_that_is_right_is_enough)
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

/* A host whose members are all wrong is given up after as many tries. */
START_TEST(all_lie)
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

/* However long names and reasons are, the sentence names some and what was wrong, and has an end.
 */
START_TEST(many_that_are_no_use)
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

/* Leaf hashes that do not make the tensor's. */
START_TEST(wrong_hashes)
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

/* An agent that serves other contents than those that were elected, with all the hashes that belong
 * to them. */
START_TEST(other_contents)
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

/* A holder whose table is not what it offered is none. */
START_TEST(holder_without_content)
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

START_TEST(silent_source)
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

/* A holder here that lies, or does nothing: the network helps. */
START_TEST(local_holder_fails)
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
						   : _i == 1 ? "are not those of its hash"
							     : "carried out no command") != NULL,
		"%s", host_view(&n.h[0], 1).text);
	ck_assert(!host_view(&n.h[0], 0).failed);
	net_end(&n, &s);
}
END_TEST

/* A receiver whose leaf hashes say that it has all, and whose tensor hash says that it has not. */
START_TEST(receiver_contradicts_itself)
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

/* A receiver's process that acknowledges what it was not told fails alone: with a number that is
 * none, or that of a slot without a command. */
START_TEST(receiver_misbehaves)
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

/* Another table than that of the others on the host. */
START_TEST(other_table)
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
	/* Nobody touches it any more. */
	while (h->n_members > 0)
		member_free(h, &h->m[--h->n_members]);
}

START_TEST(cancel_in_the_middle)
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
	/* In any order. */
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
	tcase_add_loop_test(tc, source_dies, 0, 2);
	tcase_add_test(tc, last_source_dies);
	tcase_add_loop_test(tc, who_is_written_to_without_commands_can_see_it, 0, 4);
	tcase_add_loop_test(tc, nobody_there, 0, 3);
	tcase_add_loop_test(tc, many_that_are_no_use, 0, 2);
	tcase_add_test(tc, second_try);
	tcase_add_test(tc, no_sources);
	tcase_add_loop_test(tc, no_tensors, 0, 2);
	tcase_add_loop_test(tc, wrong_data, 0, 4);
	tcase_add_loop_test(tc, only_wrong_data, 0, 4);
	tcase_add_loop_test(tc, one_that_is_right_is_enough, 0, 6);
	tcase_add_loop_test(tc, all_lie, 0, 2);
	tcase_add_loop_test(tc, wrong_hashes, 0, 2);
	tcase_add_loop_test(tc, other_contents, 0, 2);
	tcase_add_test(tc, holder_without_content);
	tcase_add_loop_test(tc, silent_source, 0, 2);
	tcase_add_loop_test(tc, local_holder_fails, 0, 3);
	tcase_add_loop_test(tc, receiver_contradicts_itself, 0, 2);
	tcase_add_loop_test(tc, receiver_misbehaves, 0, 4);
	tcase_add_test(tc, other_table);
	tcase_add_loop_test(tc, cancel_in_the_middle, 0, 16);
	suite_add_tcase(s, tc);
	return s;
}
