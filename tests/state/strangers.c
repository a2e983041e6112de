/* SPDX-License-Identifier: MIT
 *
 * Requests and answers of any kind that strangers may send to the shared-state engine.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/wire_link.h"
#include "proto/wire_state.h"
#include "tests/state/host.h"
#include "tests/state/suites.h"

#define PART 10000u /* bytes */

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

static struct wst_answer ask_who(struct net *n, int fd, struct wst_request r)
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
	return a;
}

static enum wst_status ask(struct net *n, int fd, struct wst_request r)
{
	return (enum wst_status)ask_who(n, fd, r).status;
}

/* A receiver that knows the elected hashes, but lacks one leaf of the first tensor. */
START_TEST(missing_leaf_is_not_served)
{
	struct wst_request lacks = {.kind = WST_BLOCK, .n = 1},
			   leaves = {.kind = WST_LEAVES, .n = 1},
			   has = {.kind = WST_BLOCK, .tensor = 1, .n = 1};
	struct ste_source src[1];
	struct shape s;
	struct net n;
	int pair[2];

	shape_two(&s, UINT64_C(3) * 65536);
	net_up(&n, 2);
	member_add(&n.h[0], &s, true, REGISTERED);
	member_add(&n.h[1], &s, true, OWN);
	n.h[0].m[0].holder = false;
	n.h[0].m[0].data[0][5] ^= 1;
	atomic_store(&n.h[1].m[0].deaf, true);
	host_hash(&n.h[0]);
	host_hash(&n.h[1]);
	src[0] = source_of(&n, 1, true);
	net_start(&n, &s, src, 1);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(ste_add_stream(n.h[0].e, pair[1], 0, SEQ), 0);
	while (ask(&n, pair[0], leaves) != WST_OK)
		;
	ck_assert_int_eq(ask(&n, pair[0], lacks), WST_NOT_YET);
	ck_assert_int_eq(ask(&n, pair[0], has), WST_OK);
	lacks.first = 1; /* the next leaf, which the receiver has */
	ck_assert_int_eq(ask(&n, pair[0], lacks), WST_OK);
	atomic_store(&n.h[1].m[0].deaf, false);
	net_expect(&n, 0, STE_DONE);
	lacks.first = 0;
	ck_assert_int_eq(ask(&n, pair[0], lacks), WST_OK);
	close(pair[0]);
	net_end(&n, &s);
}
END_TEST

/* Host 1 answers each request with the id of another request, or (`attempt`) with the seq of
 * another attempt. */
static void answer_wrongly(struct net *n, bool attempt)
{
	for (uint32_t i = 0; i < n->h[1].n_mute; i++) {
		int fd = n->h[1].mute_fds[i];
		struct wst_answer a = {0};
		uint8_t buf[WST_HDR_SIZE];
		const char *why;

		if (recv(fd, buf, sizeof buf, MSG_DONTWAIT) != (ssize_t)sizeof buf)
			continue;
		ck_assert_int_eq(wst_request_get(buf, &a.req, &why), 0);
		a.len = a.req.n * 8;
		if (attempt)
			a.req.seq++;
		else
			a.req.id++;
		wst_answer_put(buf, &a);
		(void)!send(fd, buf, sizeof buf, MSG_NOSIGNAL);
	}
}

START_TEST(answer_without_a_request_is_rejected)
{
	struct ste_source src[1];
	struct ste_event ev;
	struct shape s;
	struct net n;

	shape_two(&s, 100000);
	net_newcomer(&n, &s, 1, REGISTERED, REGISTERED, src);
	n.h[1].mute = true;
	host_start(&n.h[0], SEQ, &s, src, 1);
	while (!net_event(&n, 0, &ev, 5))
		answer_wrongly(&n, _i);
	ck_assert_int_eq(ev.type, STE_FAILED);
	ck_assert_msg(
		strstr(ev.text, "it answered a request that was not made") != NULL, "%s", ev.text);
	net_end(&n, &s);
}
END_TEST

/* Answers the requests to host 1. Requests for hashes get the true hashes. Requests for blocks get
 * `len` bytes of `bytes`, from this member. Returns the number of blocks. */
static uint32_t answer(struct net *n, const uint8_t *bytes, size_t len, uint8_t member)
{
	uint64_t hash = n->h[1].m[0].state.tensors[0].hash;
	uint32_t blocks = 0;

	for (uint32_t i = 0; i < n->h[1].n_mute; i++) {
		int fd = n->h[1].mute_fds[i];
		struct wst_answer a = {0};
		uint8_t buf[WST_HDR_SIZE];
		const char *why;
		bool block;

		if (recv(fd, buf, sizeof buf, MSG_DONTWAIT) != (ssize_t)sizeof buf)
			continue;
		ck_assert_int_eq(wst_request_get(buf, &a.req, &why), 0);
		block = a.req.kind == WST_BLOCK;
		a.len = block ? 2 * PART : (uint32_t)sizeof hash;
		a.member = block ? member : 0;
		wst_answer_put(buf, &a);
		(void)!send(fd, buf, sizeof buf, MSG_NOSIGNAL);
		(void)!send(
			fd, block ? bytes : (void *)&hash, block ? len : sizeof hash, MSG_NOSIGNAL);
		blocks += block;
	}
	return blocks;
}

/* The data of a member was wrong, so requests exclude it. A source that still answers from this
 * member is given up. */
START_TEST(source_that_uses_an_excluded_member_is_given_up)
{
	static const uint8_t wrong[2 * PART];
	struct ste_source src[1];
	uint32_t blocks = 0;
	struct ste_event ev;
	struct shape s;
	struct net n;

	shape_one(&s, UINT64_C(2) * PART);
	net_newcomer(&n, &s, 1, OWN, REGISTERED, src);
	n.h[1].mute = true;
	host_start(&n.h[0], SEQ, &s, src, 1);
	while (!net_event(&n, 0, &ev, 5))
		/* Always names member 1, even when the request excludes it. */
		blocks += answer(&n, wrong, sizeof wrong, 1);
	ck_assert_int_eq(ev.type, STE_FAILED);
	ck_assert_msg(strstr(ev.text, "does not match the hash") != NULL, "%s", ev.text);
	ck_assert_uint_eq(blocks, 4); /* the first wrong block does not count against the source */
	net_end(&n, &s);
}
END_TEST

/* Requests exclude one of two holders, or both. Answers name the holder if the stream has agreed on
 * WLK_MEMBERS (_i 1). */
START_TEST(excluded_holder_is_not_read)
{
	struct wst_request r = {.kind = WST_BLOCK, .n = 1, .group = 3, .seq = SEQ};
	uint8_t buf[WST_HDR_SIZE];
	struct wst_answer a;
	const char *why;
	struct shape s;
	struct net n;
	int pair[2];

	shape_one(&s, PART);
	net_up(&n, 1);
	member_add(&n.h[0], &s, true, REGISTERED);
	member_add(&n.h[0], &s, true, REGISTERED);
	host_hash(&n.h[0]);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(ste_add_stream(n.h[0].e, pair[1], _i ? WLK_MEMBERS : 0, SEQ), 0);
	for (r.without = 1; r.without <= 3; r.without++) {
		static uint8_t data[PART];

		wst_request_put(buf, &r);
		ck_assert_int_eq(send(pair[0], buf, sizeof buf, MSG_NOSIGNAL), sizeof buf);
		read_all(&n, pair[0], buf, sizeof buf);
		ck_assert_msg(wst_answer_get(buf, &a, &why) == 0, "%s", why);
		ck_assert_uint_eq(a.req.without, r.without);
		ck_assert_uint_eq(a.status, r.without == 3 ? WST_GONE : WST_OK);
		ck_assert_uint_eq(a.member, _i && a.status == WST_OK ? 3 - r.without : 0);
		read_all(&n, pair[0], data, a.len);
	}
	close(pair[0]);
	net_end(&n, &s);
}
END_TEST

/* Two receivers are complete. Hashes (_i 0) and bytes (1) are not read from the receiver that the
 * request excludes. */
START_TEST(excluded_receiver_is_not_read)
{
	struct wst_request r = {.kind = _i ? WST_BLOCK : WST_LEAVES, .tensor = 1, .n = 1};
	struct ste_source src[1];
	struct shape s;
	struct net n;
	int pair[2];

	shape_two(&s, PART);
	net_up(&n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		member_add(&n.h[0], &s, true, REGISTERED)->holder = false;
		n.h[0].m[i].data[0][5] ^= 1;
	}
	member_add(&n.h[1], &s, true, REGISTERED);
	host_hash(&n.h[0]);
	host_hash(&n.h[1]);
	src[0] = source_of(&n, 1, true);
	net_start(&n, &s, src, 1);
	net_expect(&n, 0, STE_DONE);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(ste_add_stream(n.h[0].e, pair[1], WLK_MEMBERS, SEQ), 0);
	for (r.without = 1; r.without <= 2; r.without++)
		ck_assert_uint_eq(ask_who(&n, pair[0], r).member, 3 - r.without);
	ck_assert_uint_eq(ask_who(&n, pair[0], r).status, WST_GONE);
	close(pair[0]);
	net_end(&n, &s);
}
END_TEST

/* Bytes from the network are written directly into the tensor. So even half a block must be marked
 * in the manifest. */
START_TEST(manifest_shows_that_half_a_block_was_written)
{
	const struct shm_state_end *end;
	struct ste_source src[1];
	struct ste_event ev;
	struct shape s;
	struct net n;

	shape_one(&s, UINT64_C(2) * PART);
	net_newcomer(&n, &s, 1, OWN, REGISTERED, src);
	n.h[1].mute = true;
	end = (const void *)(n.h[0].m[0].map + SHM_STATE_END_OFF);
	host_start(&n.h[0], SEQ, &s, src, 1);
	do {
		ck_assert_uint_eq(atomic_load(&end->touched), 0);
		ck_assert(!net_event(&n, UINT32_MAX, &ev, 5));
	} while (answer(&n, n.h[1].m[0].data[0], PART, 0) == 0);
	while (host_progress(&n.h[0], SEQ).net_rx_bytes < PART)
		ck_assert(!net_event(&n, UINT32_MAX, &ev, 5));
	ck_assert_uint_eq(atomic_load(&end->touched), 1);
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, 0);
	net_cancel(&n, 0);
	net_end(&n, &s);
}
END_TEST

/* Makes a request on a stream of the attempt `sent`, and checks the status of the answer. -1: the
 * stream must be closed. */
static void ask_for(struct net *n, uint64_t sent, uint64_t seq, int status)
{
	struct wst_request r = {.kind = WST_BLOCK, .id = 1, .n = 1, .seq = seq, .group = 3};
	uint8_t buf[WST_HDR_SIZE];
	int fd[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	ck_assert_int_eq(ste_add_stream(n->h[1].e, fd[1], 0, sent), 0);
	if (status >= 0) {
		ck_assert_int_eq(ask(n, fd[0], r), status);
	} else {
		wst_request_put(buf, &r);
		ck_assert_int_eq(send(fd[0], buf, sizeof buf, MSG_NOSIGNAL), sizeof buf);
		ck_assert_int_le(recv(fd[0], buf, 1, 0), 0);
	}
	close(fd[0]);
}

START_TEST(impossible_requests_are_refused)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;
	int pair[2];

	shape_two(&s, 3 * 65536 + 1);
	s.may_differ[1] = true;
	net_newcomer(&n, &s, 1, _i ? OWN : REGISTERED, OWN, src);
	host_start(&n.h[1], SEQ, &s, NULL, 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(ste_add_stream(n.h[1].e, pair[1], 0, SEQ), 0);
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
#undef ASK
	ask_for(&n, SEQ - 1, SEQ - 1, WST_GONE);
	ask_for(&n, SEQ + 1, SEQ + 1, WST_NOT_YET);
	ask_for(&n, SEQ - 1, SEQ, -1); /* a stream of one attempt gets no data of another attempt */
	/* These bytes are not a request. */
	for (uint32_t len = 1; len < 3 * WST_HDR_SIZE; len += 31) {
		uint8_t junk[3 * WST_HDR_SIZE] = {0};
		int other[2];

		for (uint32_t i = 0; i < len; i++)
			junk[i] = (uint8_t)rng();
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, other), 0);
		ck_assert_int_eq(ste_add_stream(n.h[1].e, other[1], 0, SEQ), 0);
		ck_assert_int_eq(send(other[0], junk, len, MSG_NOSIGNAL), len);
		shutdown(other[0], SHUT_WR);
		ck_assert_int_le(recv(other[0], junk, 1, 0), 0);
		close(other[0]);
	}
	close(pair[0]);
	host_start(&n.h[0], SEQ, &s, src, 1);
	net_expect_done(&n);
	net_end(&n, &s);
}
END_TEST

Suite *strangers_suite(void)
{
	Suite *s = suite_create("strangers");
	TCase *tc = tcase_create("strangers");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, answer_without_a_request_is_rejected, 0, 2);
	tcase_add_test(tc, source_that_uses_an_excluded_member_is_given_up);
	tcase_add_loop_test(tc, excluded_holder_is_not_read, 0, 2);
	tcase_add_loop_test(tc, excluded_receiver_is_not_read, 0, 2);
	tcase_add_test(tc, missing_leaf_is_not_served);
	tcase_add_test(tc, manifest_shows_that_half_a_block_was_written);
	tcase_add_loop_test(tc, impossible_requests_are_refused, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
