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

static void two_tensors(struct shape *s, uint64_t bytes)
{
	shape_init(s, 2, 11);
	s->bytes[0] = bytes;
	s->bytes[1] = 5;
}

static void start_all(struct net *n, struct shape *s, const struct ste_source *src, uint32_t n_src)
{
	for (uint32_t i = 1; i < n->n; i++)
		host_start(&n->h[i], SEQ, s, NULL, 0);
	host_start(&n->h[0], SEQ, s, src, n_src);
}

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

	two_tensors(&s, 32 << 20);
	net_newcomer(&n, &s, 2, _i ? OWN : REGISTERED, OWN, src);
	atomic_store(&n.h[0].m[0].deaf, true);
	start_all(&n, &s, src, 2);
	until_under_way(&n, 2);
	kill_host(&n, 1);
	atomic_store(&n.h[0].m[0].deaf, false);
	net_expect(&n, 0, STE_DONE);
	member_check(&n.h[0].m[0]);
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, shape_bytes(&s));
	net_down(&n);
	shape_free(&s);
}
END_TEST

START_TEST(last_source_dies)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	two_tensors(&s, 32 << 20);
	net_newcomer(&n, &s, 1, REGISTERED, OWN, src);
	atomic_store(&n.h[0].m[0].deaf, true);
	start_all(&n, &s, src, 1);
	until_under_way(&n, 1);
	kill_host(&n, 1);
	atomic_store(&n.h[0].m[0].deaf, false);
	expect_failure(&n, 1, "nobody is left who has the elected state; host1: 127.0.0.1:");
	ck_assert(host_source(&n.h[0], 0).lost);
	net_down(&n);
	shape_free(&s);
}
END_TEST

START_TEST(nobody_there)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	two_tensors(&s, 100);
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
	net_down(&n);
	shape_free(&s);
}
END_TEST

START_TEST(no_sources)
{
	struct ste_event ev;
	struct shape s;
	struct net n;

	two_tensors(&s, 100);
	net_newcomer(&n, &s, 0, OWN, OWN, NULL);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	ck_assert(net_event(&n, 0, &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, STE_FAILED);
	ck_assert_str_eq(ev.text, "nobody is left who has the elected state");
	net_down(&n);
	shape_free(&s);
}
END_TEST

/* Its tensor is not what its hashes say: changed in memory, or on the way into the window. */
static void spoil(struct net *n, uint32_t host, bool own)
{
	if (own)
		atomic_store(&n->h[host].m[0].corrupt, true);
	else
		n->h[host].m[0].data[0][70000] ^= 4;
}

START_TEST(wrong_data)
{
	struct ste_source src[2];
	struct shape s;
	struct net n;

	two_tensors(&s, 4 << 20);
	net_newcomer(&n, &s, 2, _i & 1 ? OWN : REGISTERED, _i & 2 ? OWN : REGISTERED, src);
	spoil(&n, 1, _i & 1);
	start_all(&n, &s, src, 2);
	net_expect(&n, 0, STE_DONE);
	member_check(&n.h[0].m[0]);
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, shape_bytes(&s));
	net_down(&n);
	shape_free(&s);
}
END_TEST

START_TEST(only_wrong_data)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	two_tensors(&s, 4 << 20);
	net_newcomer(&n, &s, 1, _i ? OWN : REGISTERED, REGISTERED, src);
	spoil(&n, 1, _i);
	start_all(&n, &s, src, 1);
	expect_failure(&n, 1, "does not fit its hash");
	net_down(&n);
	shape_free(&s);
}
END_TEST

/* Leaf hashes that do not make the tensor's. */
START_TEST(wrong_hashes)
{
	struct ste_source src[2];
	struct shape s;
	struct net n;

	two_tensors(&s, 4 << 20);
	net_newcomer(&n, &s, 1 + (uint32_t)_i, REGISTERED, REGISTERED, src);
	n.h[1].m[0].map[n.h[1].m[0].state.leaves_off] ^= 1;
	start_all(&n, &s, src, 1 + (uint32_t)_i);
	if (_i) {
		net_expect(&n, 0, STE_DONE);
		member_check(&n.h[0].m[0]);
	} else {
		expect_failure(&n, 1, "its hashes are not those that were elected");
	}
	net_down(&n);
	shape_free(&s);
}
END_TEST

/* A holder whose table is not what it offered is none. */
START_TEST(holder_without_content)
{
	struct ste_source src[2];
	struct shape s;
	struct net n;

	two_tensors(&s, 100000);
	net_newcomer(&n, &s, 2, OWN, OWN, src);
	n.h[1].m[0].state.tensors[1].hash ^= 1;
	start_all(&n, &s, src, 2);
	net_expect(&n, 1, STE_DONE);
	ck_assert(host_view(&n.h[1], 0).failed);
	ck_assert(!host_view(&n.h[1], 0).complete);
	net_expect(&n, 0, STE_DONE);
	member_check(&n.h[0].m[0]);
	net_down(&n);
	shape_free(&s);
}
END_TEST

START_TEST(silent_source)
{
	struct ste_source src[2];
	struct shape s;
	struct net n;

	two_tensors(&s, 4 << 20);
	net_newcomer(&n, &s, 2, REGISTERED, REGISTERED, src);
	n.h[1].mute = _i == 0;
	n.h[1].babbles = _i == 1;
	start_all(&n, &s, src, 2);
	net_expect(&n, 0, STE_DONE);
	member_check(&n.h[0].m[0]);
	ck_assert_uint_eq(host_source(&n.h[0], 0).bytes, 0);
	net_down(&n);
	shape_free(&s);
}
END_TEST

/* ---- members of one host ---- */

/* A holder here that lies, or does nothing: the network helps. */
START_TEST(local_holder_fails)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	two_tensors(&s, 4 << 20);
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
	start_all(&n, &s, src, 1);
	net_expect(&n, 0, STE_DONE);
	member_check(&n.h[0].m[0]);
	ck_assert(host_view(&n.h[0], 1).failed);
	ck_assert_msg(
		strstr(host_view(&n.h[0], 1).text, _i == 0   ? "is not what its hashes say"
						   : _i == 1 ? "are not those of its hash"
							     : "carried out no command") != NULL,
		"%s", host_view(&n.h[0], 1).text);
	ck_assert(!host_view(&n.h[0], 0).failed);
	net_down(&n);
	shape_free(&s);
}
END_TEST

/* A receiver's process that acknowledges what it was not told fails alone. */
START_TEST(receiver_misbehaves)
{
	struct ste_source src[1];
	struct shm_state_acks *a;
	struct shape s;
	struct net n;

	two_tensors(&s, 8 << 20);
	net_up(&n, 2);
	member_add(&n.h[0], &s, false, OWN);
	member_add(&n.h[0], &s, false, _i ? OWN : REGISTERED);
	member_add(&n.h[1], &s, true, REGISTERED);
	host_hash(&n.h[0]);
	host_hash(&n.h[1]);
	src[0] = source_of(&n, 1, true);
	atomic_store(&n.h[0].m[0].deaf, true);
	a = (void *)(n.h[0].m[0].map + SHM_STATE_ACK_OFF);
	atomic_store(&a->v[0], 77);
	atomic_store(&a->tail, 5);
	start_all(&n, &s, src, 1);
	net_expect(&n, 0, STE_DONE);
	ck_assert(host_view(&n.h[0], 0).failed);
	ck_assert(!host_view(&n.h[0], 1).failed);
	member_check(&n.h[0].m[1]);
	net_down(&n);
	shape_free(&s);
}
END_TEST

/* Another table than that of the others on the host. */
START_TEST(other_table)
{
	struct shape s, odd;
	struct net n;

	two_tensors(&s, 100000);
	two_tensors(&odd, 100001);
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
	two_tensors(&s, 16 << 20);
	net_newcomer(&n, &s, 2, (enum kind)(_i % 2), (enum kind)(_i / 2 % 2), src);
	if (_i % 4 < 2 && _i >= 4)
		atomic_store(&n.h[0].m[0].deaf, true);
	start_all(&n, &s, src, 2);
	net_event(&n, UINT32_MAX, &ev, (int)(rng() % 40));
	/* In any order. */
	for (uint32_t i = 0; i < 3; i++)
		cancel_and_free(&n, ((uint32_t)_i + i) % 3);
	net_down(&n);
	shape_free(&s);
}
END_TEST

/* ---- what strangers send ---- */

static void read_all(struct net *n, int fd, uint8_t *buf, size_t len)
{
	struct ste_event ev;

	for (int i = 0; i < 2000 && len > 0; i++) {
		ssize_t got = recv(fd, buf, len, MSG_DONTWAIT);

		ck_assert_int_ne(got, 0);
		if (got > 0) {
			buf += got;
			len -= (size_t)got;
		} else {
			net_event(n, UINT32_MAX, &ev, 5);
		}
	}
	ck_assert_uint_eq(len, 0);
}

static enum wst_status ask(struct net *n, int fd, struct wst_request r)
{
	static uint8_t junk[WST_LEN_MAX];
	uint8_t buf[WST_HDR_SIZE];
	struct wst_answer a;
	const char *why;

	r.seq = r.seq ? r.seq : SEQ;
	r.group = r.group ? r.group : 3;
	wst_request_put(buf, &r);
	ck_assert_int_eq(send(fd, buf, sizeof buf, MSG_NOSIGNAL), sizeof buf);
	read_all(n, fd, buf, sizeof buf);
	ck_assert_msg(wst_answer_get(buf, &a, &why) == 0, "%s", why);
	ck_assert_uint_eq(a.req.id, r.id);
	read_all(n, fd, junk, a.len);
	return (enum wst_status)a.status;
}

START_TEST(any_request)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;
	int pair[2];

	two_tensors(&s, 3 * 65536 + 1);
	s.may_differ[1] = true;
	net_newcomer(&n, &s, 1, _i ? OWN : REGISTERED, OWN, src);
	host_start(&n.h[1], SEQ, &s, NULL, 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(ste_add_stream(n.h[1].e, pair[1]), 0);
#define ASK(...) ask(&n, pair[0], (struct wst_request){__VA_ARGS__})
	ck_assert_int_eq(ASK(.kind = WST_TENSORS, .n = 2), WST_OK);
	ck_assert_int_eq(ASK(.kind = WST_TENSORS, .n = 3), WST_GONE);
	ck_assert_int_eq(ASK(.kind = WST_TENSORS, .tensor = 3, .n = 1), WST_GONE);
	ck_assert_int_eq(ASK(.kind = WST_LEAVES, .n = 4), WST_OK);
	ck_assert_int_eq(ASK(.kind = WST_LEAVES, .n = 5), WST_GONE);
	ck_assert_int_eq(ASK(.kind = WST_LEAVES, .first = 4, .n = 1), WST_GONE);
	ck_assert_int_eq(ASK(.kind = WST_LEAVES, .first = 1ull << 31, .n = 1), WST_GONE);
	ck_assert_int_eq(ASK(.kind = WST_LEAVES, .tensor = 1, .n = 1), WST_GONE);
	ck_assert_int_eq(ASK(.kind = WST_LEAVES, .tensor = 2, .n = 1), WST_GONE);
	ck_assert_int_eq(ASK(.kind = WST_BLOCK, .n = 4), WST_OK);
	ck_assert_int_eq(ASK(.kind = WST_BLOCK, .first = 3, .n = 1), WST_OK);
	ck_assert_int_eq(ASK(.kind = WST_BLOCK, .first = 3, .n = 2), WST_GONE);
	ck_assert_int_eq(ASK(.kind = WST_BLOCK, .tensor = 1, .n = 1), WST_GONE);
	ck_assert_int_eq(ASK(.kind = WST_BLOCK, .n = 1, .group = 4), WST_GONE);
	ck_assert_int_eq(ASK(.kind = WST_BLOCK, .n = 1, .seq = SEQ - 1), WST_GONE);
	ck_assert_int_eq(ASK(.kind = WST_BLOCK, .n = 1, .seq = SEQ + 1), WST_NOT_YET);
#undef ASK
	/* Not a request at all. */
	for (uint32_t len = 1; len < 3 * WST_HDR_SIZE; len += 31) {
		uint8_t junk[3 * WST_HDR_SIZE] = {0};
		int other[2];

		for (uint32_t i = 0; i < len; i++)
			junk[i] = (uint8_t)rng();
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, other), 0);
		ck_assert_int_eq(ste_add_stream(n.h[1].e, other[1]), 0);
		ck_assert_int_eq(send(other[0], junk, len, MSG_NOSIGNAL), len);
		shutdown(other[0], SHUT_WR);
		ck_assert_int_le(recv(other[0], junk, 1, 0), 0);
		close(other[0]);
	}
	close(pair[0]);
	host_start(&n.h[0], SEQ, &s, src, 1);
	net_expect(&n, 0, STE_DONE);
	member_check(&n.h[0].m[0]);
	net_down(&n);
	shape_free(&s);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("state_loss");
	TCase *tc = tcase_create("loss");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, source_dies, 0, 2);
	tcase_add_test(tc, last_source_dies);
	tcase_add_loop_test(tc, nobody_there, 0, 3);
	tcase_add_test(tc, no_sources);
	tcase_add_loop_test(tc, wrong_data, 0, 4);
	tcase_add_loop_test(tc, only_wrong_data, 0, 2);
	tcase_add_loop_test(tc, wrong_hashes, 0, 2);
	tcase_add_test(tc, holder_without_content);
	tcase_add_loop_test(tc, silent_source, 0, 2);
	tcase_add_loop_test(tc, local_holder_fails, 0, 3);
	tcase_add_loop_test(tc, receiver_misbehaves, 0, 2);
	tcase_add_test(tc, other_table);
	tcase_add_loop_test(tc, cancel_in_the_middle, 0, 16);
	tcase_add_loop_test(tc, any_request, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	SRunner *r = srunner_create(suite());
	int failed;

	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
