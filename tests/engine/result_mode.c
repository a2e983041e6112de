/* SPDX-License-Identifier: MIT
 *
 * The memory of operands and results: results that replace the operand of the only member; results
 * in the outputs of the members; operands that come through a window. The reader may use a result
 * as soon as its flag is set.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_futex.h"
#include "proto/wire_link.h"
#include "tests/engine/net.h"
#include "tests/engine/suites.h"

START_TEST(results_replace_operands)
{
	static const uint64_t counts[] = {1, 2, 5, 1000, 4099, 65537, MANY(300007), MANY(1000003)};
	struct net n;
	uint64_t seq = 1;

	rng_state = (uint64_t)_i + 31;
	net_up(&n, (uint32_t)_i % 3 + 2, _i < 3 ? 1 : 5);
	for (uint32_t h = 0; h < n.hosts; h++)
		n.h[h].n_members = 1;
	for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
		for (unsigned mode = 0; mode < 4; mode++, seq++) {
			struct op o = {.seq = seq,
				.count = counts[c],
				.op = mode < 2 ? KRN_SUM : KRN_AVG,
				.staged = mode & 1,
				.replaces = true,
				.segment_max = c & 1 ? 16384 : CC_PLAN_SEGMENT_MAX};

			run_op(&n, &o);
		}
	}
	net_down(&n);
}
END_TEST

START_TEST(results_go_to_all_outputs)
{
	struct net n;
	uint64_t seq = 1;

	rng_state = (uint64_t)_i + 41;
	net_up(&n, (uint32_t)_i + 1, 3);
	for (uint64_t count = 1; count < MANY(500000); count = count * 5 + 1) {
		for (unsigned mode = 0; mode < 4; mode++, seq++) {
			struct op o = {.seq = seq,
				.count = count,
				.op = mode < 2 ? KRN_SUM : KRN_AVG,
				.staged = mode & 1,
				.outs = true,
				.segment_max = 16384};

			for (uint32_t h = 0; h < n.hosts; h++)
				n.h[h].n_members = 1 + (uint32_t)(count + h + mode) % MEMBERS_MAX;
			run_op(&n, &o);
		}
	}
	net_down(&n);
}
END_TEST

/* ---- flags of results that must still be sent ---- */

static void await_standstill(struct host *h, uint64_t seq)
{
	struct eng_progress p, q;

	ck_assert(eng_get_progress(h->e, seq, &q));
	do {
		p = q;
		poll(NULL, 0, 100);
		ck_assert(eng_get_progress(h->e, seq, &q));
	} while (p.moved != q.moved);
}

/* A reader that sees the flag of a result may overwrite the result. So the flag is set only after
 * the result was sent to the next host. */
START_TEST(flags_wait_for_the_next_host)
{
	struct net n;
	struct op o = {.seq = 1,
		.count = 8u << 20,
		.op = KRN_SUM,
		.replaces = true,
		.segment_max = CC_PLAN_SEGMENT_MAX};
	static uint8_t data[CC_PLAN_SEGMENT_MAX];
	uint8_t hdr[WLK_DATA_SIZE], *want;
	uint32_t own, flagged = 0;
	struct cc_plan plan;
	struct reader r;
	int in[2], out[2];

	net_up(&n, 1, 1);
	tcp_pair(in);
	tcp_pair(out);
	ck_assert_int_eq(eng_add_rx_stream(n.h[0].e, 2, NULL, in[1]), 0);
	ck_assert_int_eq(eng_add_tx_stream(n.h[0].e, 1, out[0], ENG_NO_SET), 0);
	start_alone(&n, &o, &plan);
	want = malloc(o.count * 4);
	memcpy(want, n.h[0].in[0], o.count * 4);
	own = plan.segs_per_chunk; /* the first segment whose result this host computes */
	for (uint64_t k = cc_plan_segment(&plan, own).off / 4; k < o.count; k++) {
		uint32_t v;

		memcpy(&v, want + 4 * k, 4);
		v += 0x07070707;
		memcpy(want + 4 * k, &v, 4);
	}
	n.hosts = 2; /* for the plan; the second host is not used */
	n.h[1].flags = calloc(plan.n_segs, 1);
	reader_start(&r, &n, &o);
	for (uint32_t i = 0; i < own; i++)
		send_segment(in[0], &plan, 1, own + i, 7);
	await_standstill(&n.h[0], 1);
	for (uint32_t i = 0; i < own; i++)
		flagged += atomic_load(&n.h[0].flags[own + i]);
	ck_assert_msg(flagged < own, "all segments are flagged, although the link is full");
	/* Receives the partial sums that start here and the results, in any order. */
	for (uint32_t i = 0; i < plan.n_segs; i++) {
		struct wlk_data d;
		struct cc_span span;
		const char *why;

		receive_all(out[1], hdr, sizeof hdr);
		ck_assert_int_eq(wlk_data_get(hdr, &d, &why), 0);
		ck_assert_uint_lt(d.seg, plan.n_segs);
		ck_assert_int_eq(d.phase, d.seg < own ? WLK_REDUCE : WLK_GATHER);
		span = cc_plan_segment(&plan, d.seg);
		ck_assert_uint_eq(d.len, span.len);
		receive_all(out[1], data, d.len);
		ck_assert_msg(memcmp(data, want + span.off, span.len) == 0,
			"segment %u was sent after the reader had it", d.seg);
	}
	for (uint32_t i = 0; i < own; i++)
		for (unsigned ms = 0; !atomic_load(&n.h[0].flags[own + i]); ms++) {
			ck_assert_msg(ms < WAIT_MS, "segment %u is never flagged", own + i);
			poll(NULL, 0, 1);
		}
	reader_stop(&r);
	reader_check(&r, want, false);
	free((void *)n.h[1].flags);
	n.hosts = 1;
	free(want);
	cancel_alone(&n, 1);
	net_down(&n);
	close(in[0]);
	close(out[1]);
}
END_TEST

/* ---- windows ---- */

/* A member that copies its operand through its window, and sleeps while the window is full. */
struct feeder {
	struct host *h;
	struct cc_plan plan;
	uint32_t m, window, fed;
	pthread_t thread;
	atomic_bool stop;
	bool stuck;
};

static bool await_place(struct feeder *f)
{
	struct shm_slot *s = &f->h->slot[f->m];
	bool timeout = false, there = false;

	while (!there && !timeout && !atomic_load(&f->stop)) {
		atomic_store(&s->wait, SHM_WAIT_SEGMENTS);
		there = f->fed < f->window || atomic_load(&f->h->flags[f->fed - f->window]);
		if (!there && !atomic_load(&f->stop))
			timeout = cc_futex_wait(&s->wait, SHM_WAIT_SEGMENTS,
					  WAIT_MS * UINT64_C(1000000)) == CC_ERR_TIMEOUT;
	}
	atomic_store(&s->wait, SHM_WAIT_AWAKE);
	f->stuck = timeout;
	return there;
}

static void *feeder_main(void *arg)
{
	struct feeder *f = arg;
	struct shm_slot *s = &f->h->slot[f->m];
	uint64_t one = 1;

	for (; f->fed < f->plan.n_segs && await_place(f); f->fed++) {
		struct cc_span span = cc_plan_segment(&f->plan, f->fed);

		memcpy(f->h->window[f->m] + shm_window_off(f->window, f->fed),
			f->h->in[f->m] + span.off, span.len);
		atomic_store(&s->in_done[1], span.off + span.len);
		if (atomic_exchange(&s->in_want, 0) && write(f->h->bell[f->m], &one, 8) != 8)
			abort();
	}
	return NULL;
}

static void feeders_start(struct feeder *f, struct host *h, const struct op *o)
{
	for (uint32_t m = 0; m < h->n_members; m++) {
		f[m] = (struct feeder){.h = h, .m = m, .window = o->window[m]};
		ck_assert_int_eq(cc_plan_init(&f[m].plan, o->count, 4, 1, o->segment_max), 0);
		if (f[m].window > 0)
			ck_assert_int_eq(pthread_create(&f[m].thread, NULL, feeder_main, &f[m]), 0);
	}
}

static void feeders_end(struct feeder *f, struct host *h, bool stop)
{
	for (uint32_t m = 0; m < h->n_members; m++) {
		if (f[m].window == 0)
			continue;
		atomic_store(&f[m].stop, stop);
		if (stop) {
			atomic_store(&h->slot[m].wait, SHM_WAIT_AWAKE);
			cc_futex_wake(&h->slot[m].wait, 1);
		}
		pthread_join(f[m].thread, NULL);
		ck_assert_msg(!f[m].stuck, "member %u sleeps at segment %u of %u", m, f[m].fed,
			f[m].plan.n_segs);
	}
}

/* Checks that the engine has not changed the window, which it may only read. */
static void check_window(const struct feeder *f)
{
	for (uint32_t i = f->fed < f->window ? 0 : f->fed - f->window; i < f->fed; i++) {
		struct cc_span span = cc_plan_segment(&f->plan, i);

		ck_assert_mem_eq(f->h->window[f->m] + shm_window_off(f->window, i),
			f->h->in[f->m] + span.off, span.len);
	}
}

#define WINDOWED ((uint64_t)40 * 65536 - 77) /* elements, of 40 segments */

static const uint32_t windows[][MEMBERS_MAX] = {
	{16, 16, 16}, {1, 1, 1}, {3, 16, 0}, {0, 5, 0}, {4, 7, 33}, {0, 0, 2}};

#define WINDOWS (int)(sizeof windows / sizeof *windows)

static struct op windowed(uint64_t seq, int which)
{
	struct op o = {.seq = seq,
		.count = WINDOWED,
		.op = seq & 1 ? KRN_SUM : KRN_AVG,
		.outs = seq & 2,
		.segment_max = CC_PLAN_SEGMENT_MAX};

	memcpy(o.window, windows[which], sizeof o.window);
	return o;
}

START_TEST(operands_come_through_windows)
{
	struct feeder f[MEMBERS_MAX] = {0};
	struct host *h;
	struct net n;

	rng_state = (uint64_t)_i + 61;
	net_up(&n, 1, 1);
	h = &n.h[0];
	h->n_members = 3;
	for (uint64_t seq = 1; seq <= 4; seq++) {
		struct op o = windowed(seq, _i);
		struct eng_event ev;
		struct reader r;
		uint8_t *want;

		prepare(&n, &o);
		want = results(&n, &o);
		reader_start(&r, &n, &o);
		start_one(&n, &o, 0, 3);
		feeders_start(f, h, &o);
		feeders_end(f, h, false);
		ck_assert(wait_event(h, &ev, WAIT_MS));
		ck_assert_int_eq(ev.type, ENG_XFER_DONE);
		reader_stop(&r);
		reader_check(&r, want, true);
		for (uint32_t m = 0; m < 3; m++) {
			check_window(&f[m]);
			if (o.outs && m > 0)
				ck_assert_mem_eq(h->out[m], want, o.count * 4);
		}
		eng_release(h->e, seq);
		free(want);
		cleanup(&n);
	}
	net_down(&n);
}
END_TEST

/* ---- cancelled transfers ---- */

static void await_cancelled(struct net *n, const struct op *o)
{
	for (uint32_t h = 0; h < n->hosts; h++)
		eng_cancel(n->h[h].e, o->seq);
	for (uint32_t h = 0; h < n->hosts; h++) {
		struct eng_event ev;

		do /* the transfer may have been done before the cancel */
			ck_assert(wait_event(&n->h[h], &ev, WAIT_MS));
		while (ev.type == ENG_XFER_DONE);
		ck_assert_int_eq(ev.type, ENG_XFER_CANCELLED);
		eng_release(n->h[h].e, o->seq);
	}
}

static void spin(uint64_t most)
{
	for (uint64_t left = rng() % most; left > 0; left--)
		atomic_signal_fence(memory_order_seq_cst);
}

/* After a cancel, flagged results are right and belong to the reader, no thread uses the memory,
 * and the streams still work. */
START_TEST(cancelled_transfers_leave_flagged_results)
{
	enum cc_algo route = (enum cc_algo)(_i % CC_ALGO_COUNT);
	struct cc_rings rings;
	struct net n;

	rng_state = (uint64_t)_i + 71;
	rings = random_rings(3);
	if (route == CC_ALGO_RING)
		net_up(&n, 3, 2);
	else
		net_up_mesh(&n, 3, 2);
	for (uint64_t round = 1; round <= TIMES(20); round++) {
		bool replaces = round & 1;
		struct op o = {.seq = 2 * round - 1,
			.count = 2000003,
			.op = KRN_SUM,
			.route = route,
			.rings = route == CC_ALGO_RINGS ? &rings : NULL,
			.staged = true,
			.replaces = replaces,
			.outs = !replaces,
			.segment_max = CC_PLAN_SEGMENT_MAX};
		struct op small = {.seq = 2 * round,
			.count = 5000,
			.op = KRN_SUM,
			.route = route,
			.rings = o.rings,
			.replaces = replaces,
			.segment_max = CC_PLAN_SEGMENT_MAX};
		struct reader r;
		uint8_t *want;

		for (uint32_t h = 0; h < 3; h++)
			n.h[h].n_members = replaces ? 1 : 2;
		prepare(&n, &o);
		want = results(&n, &o);
		reader_start(&r, &n, &o);
		for (uint32_t h = 0; h < 3; h++)
			start_one(&n, &o, h, 3);
		feed(&n, &o);
		spin(3000000);
		await_cancelled(&n, &o);
		reader_stop(&r);
		reader_check(&r, want, false);
		free(want);
		cleanup(&n);
		run_op(&n, &small);
	}
	net_down(&n);
}
END_TEST

START_TEST(cancelled_transfers_stop_reading_windows)
{
	struct feeder f[MEMBERS_MAX] = {0};
	struct net n;

	rng_state = (uint64_t)_i + 81;
	net_up(&n, 1, 1);
	n.h[0].n_members = 3;
	for (uint64_t round = 1; round <= TIMES(10); round++) {
		struct op o = windowed(2 * round - 1, _i);
		struct op small = {.seq = 2 * round,
			.count = 5000,
			.op = KRN_SUM,
			.segment_max = CC_PLAN_SEGMENT_MAX};
		struct reader r;
		uint8_t *want;

		prepare(&n, &o);
		want = results(&n, &o);
		reader_start(&r, &n, &o);
		start_one(&n, &o, 0, 3);
		feeders_start(f, &n.h[0], &o);
		spin(5000000);
		await_cancelled(&n, &o);
		feeders_end(f, &n.h[0], true);
		reader_stop(&r);
		reader_check(&r, want, false);
		free(want);
		cleanup(&n);
		run_op(&n, &small);
	}
	net_down(&n);
}
END_TEST

Suite *result_mode_suite(void)
{
	Suite *s = suite_create("result_mode");
	TCase *tc = tcase_create("result_mode");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, results_replace_operands, 0, 6);
	tcase_add_loop_test(tc, results_go_to_all_outputs, 0, 4);
	tcase_add_test(tc, flags_wait_for_the_next_host);
	tcase_add_loop_test(tc, operands_come_through_windows, 0, WINDOWS);
	tcase_add_loop_test(tc, cancelled_transfers_leave_flagged_results, 0, 2 * CC_ALGO_COUNT);
	tcase_add_loop_test(tc, cancelled_transfers_stop_reading_windows, 0, WINDOWS);
	suite_add_tcase(s, tc);
	return s;
}
