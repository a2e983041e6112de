/* SPDX-License-Identifier: MIT
 *
 * Sources that answer by a script of the test: hashes in parts, and the choice of the source that
 * is asked for them.
 */
#include <string.h>
#include <sys/socket.h>

#include "proto/wire_state.h"
#include "tests/state/host.h"
#include "tests/state/suites.h"

#define LEAF ((uint64_t)WIRE_LEAF)

/* Takes the next request from a stream. Returns false if there is no complete request. */
static bool next_request(int fd, struct wst_request *ret)
{
	uint8_t buf[WST_HDR_SIZE];
	const char *why;

	if (recv(fd, buf, sizeof buf, MSG_DONTWAIT | MSG_PEEK) != (ssize_t)sizeof buf)
		return false;
	ck_assert_int_eq(recv(fd, buf, sizeof buf, 0), sizeof buf);
	ck_assert_msg(wst_request_get(buf, ret, &why) == 0, "%s", why);
	return true;
}

/* Writes the data of the request from the member, which is a holder. Returns its bytes. */
static uint32_t fill(const struct member *m, const struct wst_request *r, uint8_t *data)
{
	const struct shm_state_tensor *t = &m->state.tensors[r->tensor];
	uint32_t len = r->n * 8;

	switch (r->kind) {
	case WST_TENSORS:
		for (uint32_t i = 0; i < r->n; i++)
			memcpy(data + (size_t)i * 8, &t[i].hash, 8);
		break;
	case WST_LEAVES:
		memcpy(data, m->map + m->state.leaves_off + (t->first_leaf + r->first) * 8, len);
		break;
	default:
		len = (uint32_t)wire_leaf_bytes(t->bytes, r->first, r->n);
		memcpy(data, m->data[r->tensor] + r->first * LEAF, len);
	}
	return len;
}

/* Changes an answer. Returns false if no answer is to be sent. */
typedef bool change_fn(const struct wst_request *r, struct wst_answer *a, uint8_t *data);

/* Answers all requests that this host has received so far. */
static void play(struct net *n, uint32_t host, change_fn *change)
{
	static uint8_t data[WST_LEN_MAX];
	struct host *h = &n->h[host];

	for (uint32_t i = 0; i < h->n_mute; i++) {
		uint8_t hdr[WST_HDR_SIZE];
		struct wst_request r;

		while (next_request(h->mute_fds[i], &r)) {
			struct wst_answer a = {.req = r, .len = fill(&h->m[0], &r, data)};

			if (!change(&r, &a, data))
				continue;
			if (a.status != WST_OK)
				a.len = 0;
			wst_answer_put(hdr, &a);
			(void)!send(h->mute_fds[i], hdr, sizeof hdr, MSG_NOSIGNAL);
			(void)!send(h->mute_fds[i], data, a.len, MSG_NOSIGNAL);
		}
	}
}

/* Runs a job with one tensor of three leaves. `hashes`: the most hashes of one request. Answers for
 * the source until host 0 has an event. */
static void run(
	struct net *n, bool holds, uint32_t hashes, change_fn *change, struct ste_event *ret)
{
	struct ste_source src;
	struct shape s;
	int left = WAIT_MS / 5;

	shape_one(&s, 3 * LEAF);
	net_hashes = hashes;
	net_newcomer(n, &s, 1, REGISTERED, REGISTERED, &src);
	src.holds = holds;
	n->h[1].mute = true;
	host_start(&n->h[0], SEQ, &s, &src, 1);
	while (left-- > 0 && !net_event(n, 0, ret, 5))
		play(n, 1, change);
	ck_assert_msg(left > 0, "host 0 has no event");
	if (ret->type == STE_DONE)
		member_check(&n->h[0].m[0]);
	net_down(n);
	shape_free(&s);
}

static uint32_t n_asked; /* the requests that the test counts */

static bool begins_late(const struct wst_request *r, struct wst_answer *a, uint8_t *data)
{
	(void)data;
	if (r->kind == WST_LEAVES && r->first == 0 && n_asked++ == 0)
		a->status = WST_NOT_YET;
	return true;
}

/* A source without holders does not have the first part yet. It is asked for this part again. */
START_TEST(first_part_of_hashes_is_requested_again)
{
	struct ste_event ev;
	struct net n;

	run(&n, false, 2, begins_late, &ev);
	ck_assert_msg(ev.type == STE_DONE, "%s", ev.text);
	ck_assert_uint_eq(n_asked, 2);
}
END_TEST

static uint32_t n_without;

static bool two_members(const struct wst_request *r, struct wst_answer *a, uint8_t *data)
{
	n_without += r->without != 0;
	if (r->kind == WST_LEAVES) {
		n_asked += r->first == 0;
		a->member = r->first == 0 ? 1 : 2;
		data[0] ^= r->first == 0;
	}
	return true;
}

/* The first part is wrong. The last part comes from another member, which must not be excluded for
 * the error of the first part. */
START_TEST(wrong_hashes_of_two_members_exclude_neither)
{
	struct ste_event ev;
	struct net n;

	run(&n, true, 2, two_members, &ev);
	ck_assert_int_eq(ev.type, STE_FAILED);
	ck_assert_msg(strstr(ev.text, "its hashes are not those that were elected") != NULL, "%s",
		ev.text);
	ck_assert_uint_eq(n_asked, 3);
	ck_assert_uint_eq(n_without, 0);
}
END_TEST

static uint32_t n_lacking; /* how many times the source answers that it lacks the second part */

static bool lacks_second(const struct wst_request *r, struct wst_answer *a, uint8_t *data)
{
	(void)data;
	if (r->kind == WST_LEAVES && r->first == 1 && n_asked++ < n_lacking)
		a->status = WST_NOT_YET;
	return true;
}

/* A source sends the first part and does not have the second. It is asked for all parts again
 * (_i 0), but it is given up if the second part is missing again and again (1). */
START_TEST(missing_hashes_are_requested_again_but_not_forever)
{
	struct ste_event ev;
	struct net n;

	n_lacking = _i ? UINT32_MAX : 1;
	run(&n, true, 1, lacks_second, &ev);
	ck_assert_msg(ev.type == (_i ? STE_FAILED : STE_DONE), "%s", ev.text);
	if (_i)
		ck_assert_msg(
			strstr(ev.text, "it has only some of the hashes") != NULL, "%s", ev.text);
	ck_assert_uint_eq(n_asked, _i ? 3 : 2);
}
END_TEST

/* There are more tensors than a source may have unanswered requests. The source answers only
 * requests about the first tensor. */
#define MANY (STE_STREAMS * 64 + 40)

static bool first_tensor(const struct wst_request *r, struct wst_answer *a, uint8_t *data)
{
	(void)a, (void)data;
	return r->kind == WST_TENSORS || (r->kind == WST_LEAVES && r->tensor == 0);
}

static bool count(const struct wst_request *r, struct wst_answer *a, uint8_t *data)
{
	(void)a, (void)data;
	ck_assert_uint_eq(r->kind, WST_BLOCK);
	ck_assert_uint_eq(r->tensor, 0);
	n_asked++;
	return false;
}

/* While a source with holders is left, other sources are asked for leaves, not for hashes. */
START_TEST(hashes_are_requested_only_from_holders)
{
	struct ste_source src[2];
	struct ste_event ev;
	struct shape s;
	struct net n;

	shape_init(&s, MANY, 11);
	for (uint32_t t = 0; t < s.n; t++)
		s.bytes[t] = LEAF + 1;
	net_newcomer(&n, &s, 2, REGISTERED, REGISTERED, src);
	src[1].holds = false;
	n.h[1].mute = n.h[2].mute = true;
	host_start(&n.h[0], SEQ, &s, src, 2);
	while (n_asked == 0) {
		ck_assert_msg(!net_event(&n, 0, &ev, 5), "%s", ev.text);
		play(&n, 1, first_tensor);
		play(&n, 2, count);
	}
	net_cancel(&n, 0);
	net_end(&n, &s);
}
END_TEST

Suite *parts_suite(void)
{
	Suite *s = suite_create("parts");
	TCase *tc = tcase_create("parts");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, first_part_of_hashes_is_requested_again);
	tcase_add_test(tc, wrong_hashes_of_two_members_exclude_neither);
	tcase_add_loop_test(tc, missing_hashes_are_requested_again_but_not_forever, 0, 2);
	tcase_add_test(tc, hashes_are_requested_only_from_holders);
	suite_add_tcase(s, tc);
	return s;
}
