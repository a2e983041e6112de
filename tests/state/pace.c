/* SPDX-License-Identifier: MIT
 *
 * Sources share the receiver's link, and the link stays busy. The tests run in virtual time, with
 * queues as links. They decide what to request as state/fetch.c does.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/state/pace.h"
#include "proto/wire_state.h"
#include "tests/state/suites.h"

#define MS       ((uint64_t)1000000)
#define SECOND   (1000 * MS)
#define GBIT     ((uint64_t)125000000) /* bytes per second */
#define SRCS_MAX 4u
#define STREAMS  2u
#define BLOCKS   8192u
#define LOOK_NS  (20 * MS)

struct block {
	struct stream *s;
	struct ste_came came;
	uint64_t asked_ns;
	struct block *next; /* in the queue of its source */
};

struct queue {
	struct block *first, **end;
};

struct stream {
	struct source *src;
	uint64_t ahead, window, rate;
};

struct source {
	uint64_t rate, round_ns; /* rate of its own link; round trip without queues */
	uint64_t flight_max;     /* bytes that its TCP may have in flight; 0: no limit */
	uint64_t from_ns, to_ns; /* the time during which it exists; to_ns 0: no end */
	uint64_t base_ns, bytes, waiting, flight, free_ns;
	struct stream streams[STREAMS];
	struct queue held; /* blocks that were requested and not sent yet */
};

/* An event of a block, and its time. */
enum what { REACHES_SOURCE, REACHES_LINK, HAS_COME };
struct event {
	uint64_t at, order;
	enum what what;
	struct block *b;
};

struct rnd_run {
	uint64_t now, rate, free_ns, bytes, looked_ns, looked_bytes;
	uint64_t missing, ended_ns; /* bytes not requested yet; arrival of the last byte */
	uint64_t slice[10];         /* bytes that arrived in each second */
	uint32_t n;
	struct source src[SRCS_MAX];
	struct event heap[BLOCKS];
	uint32_t n_events;
	uint64_t order;
};

static struct rnd_run w;

static bool before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void swap(uint32_t a, uint32_t b)
{
	struct event e = w.heap[a];

	w.heap[a] = w.heap[b];
	w.heap[b] = e;
}

static void happens(uint64_t at, enum what what, struct block *b)
{
	uint32_t i = w.n_events++;

	ck_assert_uint_lt(i, BLOCKS);
	w.heap[i] = (struct event){.at = at, .order = w.order++, .what = what, .b = b};
	for (; i > 0 && before(&w.heap[i], &w.heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(i, (i - 1) / 2);
}

static struct event next_event(void)
{
	struct event ret = w.heap[0];
	uint32_t i = 0;

	w.heap[0] = w.heap[--w.n_events];
	for (;;) {
		uint32_t least = i;

		for (uint32_t k = 2 * i + 1; k <= 2 * i + 2 && k < w.n_events; k++)
			if (before(&w.heap[k], &w.heap[least]))
				least = k;
		if (least == i)
			return ret;
		swap(i, least);
		i = least;
	}
}

static bool is_there(const struct source *s)
{
	return w.now >= s->from_ns && (s->to_ns == 0 || w.now < s->to_ns);
}

static uint32_t next_leaves(const struct stream *s)
{
	struct ste_rest r = {
		.bytes = w.missing, .rate = s->rate, .ahead = s->ahead, .window = s->window};

	for (uint32_t i = 0; i < w.n; i++)
		for (uint32_t k = 0; k < STREAMS && is_there(&w.src[i]); k++) {
			r.streams++;
			r.known += w.src[i].streams[k].rate > 0;
			r.rates += w.src[i].streams[k].rate;
			r.bytes += w.src[i].streams[k].ahead;
		}
	return w.missing > 0 ? ste_pace_leaves(&r) : 0;
}

static void ask(struct stream *s)
{
	uint32_t n;

	while ((n = next_leaves(s)) > 0) {
		struct block *b = calloc(1, sizeof *b);

		b->s = s;
		b->came.len = (uint64_t)n * WIRE_LEAF;
		if (b->came.len > w.missing)
			b->came.len = w.missing;
		w.missing -= b->came.len;
		b->came.ahead = s->ahead += b->came.len;
		b->asked_ns = w.now;
		happens(w.now + s->src->round_ns / 2, REACHES_SOURCE, b);
	}
}

static uint64_t through(uint64_t *free_ns, uint64_t rate, uint64_t len)
{
	if (*free_ns < w.now)
		*free_ns = w.now;
	return *free_ns += len * SECOND / rate;
}

static void send_held(struct source *s)
{
	struct block *b;

	while ((b = s->held.first) && (s->flight_max == 0 || s->flight < s->flight_max)) {
		s->held.first = b->next;
		if (!b->next)
			s->held.end = &s->held.first;
		s->flight += b->came.len;
		happens(through(&s->free_ns, s->rate, b->came.len) + s->round_ns / 2, REACHES_LINK,
			b);
	}
}

static void has_come(struct block *b)
{
	struct stream *s = b->s;
	struct source *src = s->src;
	uint64_t rate;

	s->ahead -= b->came.len;
	src->flight -= b->came.len;
	src->bytes += b->came.len;
	w.bytes += b->came.len;
	w.slice[w.now / SECOND] += b->came.len;
	w.ended_ns = w.now;
	b->came.took_ns = w.now - b->asked_ns;
	if (b->came.took_ns < src->base_ns)
		src->base_ns = b->came.took_ns;
	b->came.base_ns = src->base_ns;
	rate = b->came.ahead * MS / b->came.took_ns * 1000;
	s->rate = s->rate > 0 ? (s->rate + rate) / 2 : rate;
	s->window = ste_pace_window(s->window, &b->came, src->waiting);
	free(b);
	send_held(src);
	ask(s);
}

static void happened(const struct event *e)
{
	struct block *b = e->b;
	struct source *src = b->s->src;

	if (!is_there(src)) {
		free(b);
		return;
	}
	switch (e->what) {
	case REACHES_SOURCE:
		b->next = NULL;
		*src->held.end = b;
		src->held.end = &b->next;
		send_held(src);
		break;
	case REACHES_LINK:
		happens(through(&w.free_ns, w.rate, b->came.len), HAS_COME, b);
		break;
	case HAS_COME:
		has_come(b);
		break;
	}
}

static void look(void)
{
	struct ste_load v[SRCS_MAX];
	uint64_t base_ns = 0;

	for (uint32_t i = 0; i < w.n; i++) {
		struct source *s = &w.src[i];

		v[i] = (struct ste_load){.bytes = s->bytes,
			.waiting = s->waiting,
			.streams = is_there(s) ? STREAMS : 0};
		if (is_there(s) && s->base_ns > base_ns)
			base_ns = s->base_ns;
		for (uint32_t k = 0; k < STREAMS && is_there(s); k++)
			if (s->streams[k].ahead == 0)
				ask(&s->streams[k]);
	}
	ste_pace_share(
		v, w.n, ste_pace_all((w.bytes - w.looked_bytes) * SECOND / LOOK_NS, base_ns));
	for (uint32_t i = 0; i < w.n; i++)
		w.src[i].waiting = v[i].waiting;
	w.looked_bytes = w.bytes;
	w.looked_ns = w.now;
}

/* Makes n equal sources and a link of 1 Gbit/s, with more bytes than can be sent in the test. */
static void begin(uint32_t n)
{
	memset(&w, 0, sizeof w);
	w.rate = GBIT;
	w.missing = UINT64_MAX / 2;
	w.n = n;
	for (uint32_t i = 0; i < n; i++)
		w.src[i] = (struct source){.rate = GBIT, .round_ns = MS / 5};
}

static void run(uint64_t until_ns)
{
	for (uint32_t i = 0; i < w.n; i++) {
		struct source *s = &w.src[i];

		s->base_ns = s->round_ns; /* as measured with the hello */
		s->waiting = ste_pace_all(0, 0) / 4;
		s->held.end = &s->held.first;
		for (uint32_t k = 0; k < STREAMS; k++)
			s->streams[k] = (struct stream){.src = s, .window = s->waiting};
	}
	for (w.looked_ns = w.now; w.now < until_ns; w.now += LOOK_NS) {
		uint64_t next = w.now + LOOK_NS;

		look();
		while (w.n_events > 0 && w.heap[0].at < next) {
			struct event e = next_event();

			w.now = e.at;
			happened(&e);
		}
		w.now = w.looked_ns;
	}
	while (w.n_events > 0)
		free(next_event().b);
	for (uint32_t i = 0; i < w.n; i++)
		for (struct block *b = w.src[i].held.first, *next; b; b = next) {
			next = b->next;
			free(b);
		}
}

/* Checks that in each second from `from` to `to`, the link carries at least the fraction `part` of
 * its rate. */
static void expect_busy(uint32_t from, uint32_t to, double part)
{
	for (uint32_t i = from; i < to; i++)
		ck_assert_msg((double)w.slice[i] >= part * (double)w.rate,
			"second %u: %.1f %% of the link", i,
			100 * (double)w.slice[i] / (double)w.rate);
}

/* Checks that the sources from `first` on have sent equally many bytes: each differs from the mean
 * by less than the fraction `off`. */
static void expect_alike(uint32_t first, double off)
{
	double mean = 0;

	for (uint32_t i = first; i < w.n; i++)
		mean += (double)w.src[i].bytes / (w.n - first);
	for (uint32_t i = first; i < w.n; i++)
		ck_assert_msg((double)w.src[i].bytes > (1 - off) * mean &&
				      (double)w.src[i].bytes < (1 + off) * mean,
			"source %u: %.1f %% of its share", i, 100 * (double)w.src[i].bytes / mean);
}

START_TEST(equal_sources_have_equal_shares)
{
	begin(3);
	run(4 * SECOND);
	expect_busy(0, 4, 0.98);
	expect_alike(0, 0.05);
}
END_TEST

/* A source does not get a larger share because it answers sooner. */
START_TEST(near_and_far_sources_have_similar_shares)
{
	begin(3);
	w.src[1].round_ns = 5 * MS;
	w.src[2].round_ns = 20 * MS;
	run(4 * SECOND);
	expect_busy(0, 1, 0.95);
	expect_busy(1, 4, 0.98);
	expect_alike(0, 0.25);
}
END_TEST

/* A source does not get a larger share because its TCP has more bytes in flight. */
START_TEST(shares_do_not_depend_on_bytes_in_flight)
{
	begin(3);
	w.src[0].flight_max = 4 << 20;
	w.src[1].flight_max = 600 << 10;
	w.src[2].flight_max = 600 << 10;
	run(4 * SECOND);
	expect_busy(0, 4, 0.98);
	expect_alike(0, 0.25);
}
END_TEST

/* The link of one source is slow. The other sources use the rest of the receiver's link. */
START_TEST(other_sources_use_what_a_slow_source_leaves)
{
	begin(3);
	w.src[0].rate = GBIT / (_i ? 1000 : 10);
	run(4 * SECOND);
	expect_busy(0, 4, 0.98);
	expect_alike(1, 0.05);
	/* A block counts only when it has arrived completely, so one block may be missing. */
	ck_assert_uint_ge(w.src[0].bytes + (512 << 10), w.src[0].rate * 4);
}
END_TEST

/* All sources end at about the same time: the last request to the slow source is small. */
START_TEST(transfer_does_not_wait_for_a_slow_source)
{
	uint64_t bytes = (uint64_t)(_i ? 4 : 64) << 20;

	begin(3);
	w.src[0].rate = GBIT / 10;
	w.missing = bytes;
	run(4 * SECOND);
	ck_assert_uint_eq(w.bytes, bytes);
	ck_assert_uint_lt(w.ended_ns, bytes * SECOND / GBIT + 60 * MS);
}
END_TEST

/* All sources but one are slow. */
START_TEST(one_fast_source_keeps_the_link_busy)
{
	begin(4);
	for (uint32_t i = 1; i < 4; i++)
		w.src[i].rate = GBIT / 100;
	run(4 * SECOND);
	expect_busy(0, 4, 0.98);
}
END_TEST

START_TEST(sources_on_long_paths_keep_the_link_busy)
{
	begin(_i ? 3 : 1);
	for (uint32_t i = 0; i < w.n; i++)
		w.src[i].round_ns = 50 * MS;
	run(4 * SECOND);
	expect_busy(0, 1, 0.7);
	expect_busy(1, 4, 0.98);
	expect_alike(0, 0.1);
}
END_TEST

START_TEST(late_source_gets_its_share)
{
	begin(3);
	w.src[2].from_ns = SECOND;
	run(8 * SECOND);
	expect_busy(0, 8, 0.98);
	expect_alike(0, 0.25);
}
END_TEST

START_TEST(others_take_the_share_of_a_lost_source)
{
	begin(3);
	w.src[2].to_ns = SECOND;
	run(4 * SECOND);
	expect_busy(0, 4, 0.98);
	w.n = 2;
	expect_alike(0, 0.05);
}
END_TEST

START_TEST(single_source_uses_a_fast_link_fully)
{
	begin(1);
	w.rate = w.src[0].rate = 25 * GBIT;
	run(SECOND);
	expect_busy(0, 1, 0.98);
}
END_TEST

/* Even without other sources to compare with, or without a measured rate, a stream may always
 * request something. */
START_TEST(stream_may_always_request_something)
{
	struct ste_came c = {.len = 1, .ahead = 1, .took_ns = SECOND, .base_ns = 1};
	struct ste_rest r = {.bytes = 1, .streams = 1, .window = 1};
	struct ste_load v[2] = {{.waiting = 7}, {.bytes = UINT32_MAX, .streams = 16}};

	ste_pace_share(v, 1, ste_pace_all(0, 0));
	ck_assert_uint_eq(v[0].waiting, 7);
	ste_pace_share(v, 2, ste_pace_all(0, 0));
	ck_assert_uint_ge(v[0].waiting, (uint64_t)2 * WIRE_LEAF);
	ck_assert_uint_ge(v[1].waiting, (uint64_t)2 * WIRE_LEAF);
	ck_assert_uint_ge(ste_pace_window(1, &c, v[0].waiting), (uint64_t)2 * WIRE_LEAF);
	ck_assert_uint_eq(ste_pace_leaves(&r), 1);
	r.window = UINT64_MAX;
	r.bytes = UINT64_MAX / 2;
	ck_assert_uint_eq(ste_pace_leaves(&r), WST_BLOCK_MAX);
}
END_TEST

Suite *pace_suite(void)
{
	Suite *s = suite_create("pace");
	TCase *t = tcase_create("pace");

	tcase_set_timeout(t, 120);
	tcase_add_test(t, equal_sources_have_equal_shares);
	tcase_add_test(t, near_and_far_sources_have_similar_shares);
	tcase_add_test(t, shares_do_not_depend_on_bytes_in_flight);
	tcase_add_loop_test(t, other_sources_use_what_a_slow_source_leaves, 0, 2);
	tcase_add_loop_test(t, transfer_does_not_wait_for_a_slow_source, 0, 2);
	tcase_add_test(t, one_fast_source_keeps_the_link_busy);
	tcase_add_loop_test(t, sources_on_long_paths_keep_the_link_busy, 0, 2);
	tcase_add_test(t, late_source_gets_its_share);
	tcase_add_test(t, others_take_the_share_of_a_lost_source);
	tcase_add_test(t, single_source_uses_a_fast_link_fully);
	tcase_add_test(t, stream_may_always_request_something);
	suite_add_tcase(s, t);
	return s;
}
