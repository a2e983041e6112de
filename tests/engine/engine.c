/* SPDX-License-Identifier: MIT
 *
 * Transfers between real engines. Every result is compared with the result that the test computes
 * from the same operands. The types are integers, so results are exact in any order of additions.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_sys.h"
#include "proto/wire_link.h"
#include "tests/engine/net.h"
#include "tests/engine/suites.h"

START_TEST(results_are_right_for_all_shapes)
{
	static const uint64_t counts[] = {1, 2, 3, 7, 1000, 4099, 65537, MANY(300007)};
	struct net n;
	uint64_t seq = 0;

	rng_state = (uint64_t)_i + 1;
	net_up(&n, (uint32_t)_i % RING_MAX + 1, _i < 8 ? 1 : 5);
	for (uint32_t members = 1; members <= MEMBERS_MAX; members++) {
		for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
			for (unsigned mode = 0; mode < 4; mode++) {
				struct op o = {.count = counts[c],
					.op = mode == 1   ? KRN_MAX
					      : mode == 2 ? KRN_AVG
							  : KRN_SUM,
					.staged = mode & 1,
					.segment_max = c & 1 ? 16384 : CC_PLAN_SEGMENT_MAX};

				for (uint32_t h = 0; h < n.hosts; h++)
					n.h[h].n_members = 1 + (members + h) % MEMBERS_MAX;
				o.seq = ++seq;
				run_op(&n, &o);
			}
		}
	}
	net_down(&n);
}
END_TEST

START_TEST(results_are_right_in_direct_outputs)
{
	struct net n;
	uint64_t seq = 0;

	rng_state = (uint64_t)_i + 99;
	net_up(&n, (uint32_t)_i + 2, 3);
	for (uint32_t h = 0; h < n.hosts; h++)
		n.h[h].n_members = 1;
	for (uint64_t count = 1; count < MANY(200000); count = count * 3 + 1) {
		for (unsigned in_place = 0; in_place < 2; in_place++) {
			struct op o = {.count = count,
				.op = KRN_AVG,
				.direct = true,
				.in_place = in_place,
				.segment_max = 16384};

			o.seq = ++seq;
			run_op(&n, &o);
		}
	}
	net_down(&n);
}
END_TEST

#define ROUTES 3

/* Each host has links to all others, and the operation takes another route than the ring. */
START_TEST(results_are_right_on_all_routes)
{
	static const uint64_t counts[] = {1, 2, 7, 1000, 65537, MANY(300007)};
	static const enum cc_algo routes[ROUTES] = {CC_ALGO_DIRECT, CC_ALGO_TREE, CC_ALGO_RINGS};
	const uint32_t hosts = 2 + (uint32_t)_i / ROUTES % (HOSTS_MAX - 1);
	uint64_t seq = 0;
	struct net n;

	rng_state = (uint64_t)_i + 31;
	net_up_mesh(&n, hosts, _i % 4 == 0 ? 3 : 1);
	for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
		for (unsigned mode = 0; mode < 6; mode++) {
			struct cc_rings rings = random_rings(hosts);
			struct op o = {.count = counts[c],
				.op = mode == 1   ? KRN_MAX
				      : mode == 2 ? KRN_AVG
						  : KRN_SUM,
				.route = routes[_i % ROUTES],
				.rings = routes[_i % ROUTES] == CC_ALGO_RINGS ? &rings : NULL,
				.staged = mode == 1 || mode == 3,
				.replaces = mode == 3,
				.direct = mode == 4,
				.outs = mode == 5,
				.segment_max = c & 1 ? 16384 : CC_PLAN_SEGMENT_MAX};

			for (uint32_t h = 0; h < hosts; h++)
				n.h[h].n_members =
					mode == 3 || mode == 4 ? 1 : 1 + (mode + h) % MEMBERS_MAX;
			o.seq = ++seq;
			run_op(&n, &o);
		}
	}
	net_down(&n);
}
END_TEST

/* A transfer may be cancelled at any time. After that no thread uses its memory, the streams still
 * work, and the flags show which segments of a direct output must be restored from the area. */
START_TEST(cancelled_transfers_leave_streams_and_undo_copies)
{
	struct net n;
	struct op o = {.count = 2000003,
		.op = KRN_SUM,
		.direct = true,
		.route = (enum cc_algo)(_i % CC_ALGO_COUNT),
		.segment_max = CC_PLAN_SEGMENT_MAX};

	struct cc_rings rings;

	rng_state = (uint64_t)_i + 7;
	rings = random_rings(4);
	if (o.route == CC_ALGO_RING)
		net_up(&n, 3, 2);
	else
		net_up_mesh(&n, 4, 2);
	if (o.route == CC_ALGO_RINGS)
		o.rings = &rings;
	for (uint32_t h = 0; h < n.hosts; h++)
		n.h[h].n_members = 1;
	for (uint64_t round = 1; round <= TIMES(20); round++) {
		struct op small = {.seq = 2 * round,
			.count = 5000,
			.op = KRN_SUM,
			.route = o.route,
			.rings = o.rings,
			.segment_max = CC_PLAN_SEGMENT_MAX};

		o.seq = 2 * round - 1;
		prepare(&n, &o);
		for (uint32_t h = 0; h < n.hosts; h++)
			start_one(&n, &o, h, n.hosts);
		for (uint64_t spin = rng() % 3000000; spin > 0; spin--)
			atomic_signal_fence(memory_order_seq_cst);
		for (uint32_t h = 0; h < n.hosts; h++)
			eng_cancel(n.h[h].e, o.seq);
		for (uint32_t h = 0; h < n.hosts; h++) {
			struct cc_plan plan = plan_op(&o, n.hosts);
			struct eng_event ev;

			ck_assert(wait_event(&n.h[h], &ev, WAIT_MS));
			ck_assert(ev.type == ENG_XFER_CANCELLED);
			for (uint32_t s = 0; s < plan.n_segs; s++) {
				struct cc_span span = cc_plan_segment(&plan, s);

				if (n.h[h].flags[s])
					memcpy(n.h[h].direct + span.off, n.h[h].area + span.off,
						span.len);
			}
			ck_assert(all_bytes(n.h[h].direct, OLD_BYTE, o.count * 4));
			eng_release(n.h[h].e, o.seq);
		}
		cleanup(&n);
		run_op(&n, &small);
	}
	net_down(&n);
}
END_TEST

/* A host that starts late must neither lose unexpected segments nor break the stream. */
START_TEST(unexpected_segments_wait_for_the_start)
{
	struct net n;
	struct op o = {.seq = 1,
		.count = 100000,
		.op = KRN_SUM,
		.route = (enum cc_algo)_i,
		.segment_max = CC_PLAN_SEGMENT_MAX};
	struct eng_event ev;
	uint32_t hosts = o.route == CC_ALGO_RING ? 2 : 4, h;
	struct cc_rings rings = random_rings(hosts);

	if (o.route == CC_ALGO_RINGS)
		o.rings = &rings;
	if (o.route == CC_ALGO_RING)
		net_up(&n, hosts, 2);
	else
		net_up_mesh(&n, hosts, 2);
	for (h = 0; h < hosts; h++)
		n.h[h].n_members = 1;
	prepare(&n, &o);
	for (h = 0; h + 1 < hosts; h++)
		start_one(&n, &o, h, hosts);
	for (h = 0; h < hosts; h++)
		ck_assert(!wait_event(&n.h[h], &ev, 50));
	start_one(&n, &o, hosts - 1, hosts);
	for (h = 0; h < hosts; h++) {
		ck_assert(wait_event(&n.h[h], &ev, WAIT_MS));
		ck_assert_int_eq(ev.type, ENG_XFER_DONE);
		eng_release(n.h[h].e, 1);
	}
	for (h = 1; h < hosts; h++)
		ck_assert_mem_eq(n.h[0].area, n.h[h].area, o.count * 4);
	cleanup(&n);
	net_down(&n);
}
END_TEST

/* Waits until the host at `pos` lacks data from exactly the hosts in `awaited`, which has bits as
 * in eng_progress.awaited. */
static void expect_awaited(struct net *n, uint32_t pos, uint64_t awaited)
{
	struct eng_progress p;

	for (unsigned ms = 0;; ms++) {
		ck_assert(eng_get_progress(n->h[pos].e, 1, &p));
		if (p.awaited == awaited)
			return;
		ck_assert_msg(ms < WAIT_MS, "host %u: %lx instead of %lx", pos,
			(unsigned long)p.awaited, (unsigned long)awaited);
		poll(NULL, 0, 1);
	}
}

/* Host 0 of four starts later than the other hosts. `awaited` has the hosts for which the hosts 1,
 * 2 and 3 wait on each route. Bit i stands for the host that is i + 1 positions before the host
 * that waits. On the tree, host 0 sends nothing to host 1: the partial sums of host 0 reach host 1
 * through host 2. On the two rings, whose orders are opposite, host 0 sends only to hosts 1 and 3;
 * host 2 waits for what these have not got. */
START_TEST(progress_names_the_hosts_whose_data_is_missing)
{
	static const uint64_t awaited[CC_ALGO_COUNT][3] = {
		[CC_ALGO_RING] = {1, 1, 1},
		[CC_ALGO_DIRECT] = {1 << 0, 1 << 1, 1 << 2},
		[CC_ALGO_TREE] = {1 << 2, 1 << 1, 1 << 2},
		[CC_ALGO_RINGS] = {1 << 0, 1 << 0 | 1 << 2, 1 << 2},
	};
	struct cc_rings rings = {
		.n = 2, .hosts = 4, .share = {2, 1}, .order = {{0, 1, 2, 3}, {0, 3, 2, 1}}};
	struct op o = {.seq = 1,
		.count = 100003,
		.op = KRN_SUM,
		.route = (enum cc_algo)_i,
		.segment_max = 16384};
	struct eng_event ev;
	struct net n;

	ck_assert_int_eq(cc_rings_complete(&rings), 0);
	if (o.route == CC_ALGO_RINGS)
		o.rings = &rings;
	net_up_mesh(&n, 4, 2);
	for (uint32_t h = 0; h < 4; h++)
		n.h[h].n_members = 1;
	prepare(&n, &o);
	for (uint32_t h = 1; h < 4; h++)
		start_one(&n, &o, h, 4);
	for (uint32_t h = 1; h < 4; h++)
		expect_awaited(&n, h, awaited[_i][h - 1]);
	start_one(&n, &o, 0, 4);
	for (uint32_t h = 0; h < 4; h++) {
		ck_assert(wait_event(&n.h[h], &ev, WAIT_MS));
		ck_assert_int_eq(ev.type, ENG_XFER_DONE);
		expect_awaited(&n, h, 0);
		eng_release(n.h[h].e, 1);
	}
	cleanup(&n);
	net_down(&n);
}
END_TEST

/* Random bytes of any length, which form no valid segment, break only the link on which they
 * arrive. The event that reports this has a reason. */
START_TEST(garbage_breaks_only_its_link)
{
	struct net n;
	struct eng_event ev;
	struct op o = {.seq = 1, .count = 1000, .op = KRN_SUM, .segment_max = CC_PLAN_SEGMENT_MAX};

	net_up(&n, 2, 1);
	n.h[0].n_members = n.h[1].n_members = 1;
	for (uint32_t len = 0; len < 2 * WLK_DATA_SIZE; len++) {
		uint8_t junk[2 * WLK_DATA_SIZE] = {0};
		int pair[2];

		for (uint32_t i = 0; i < len; i++)
			junk[i] = (uint8_t)rng();
		tcp_pair(pair);
		ck_assert_int_eq(eng_add_rx_stream(n.h[0].e, 100 + len, NULL, pair[1]), 0);
		ck_assert_int_eq(send(pair[0], junk, len, 0), len);
		close(pair[0]);
		ck_assert(wait_event(&n.h[0], &ev, WAIT_MS));
		ck_assert_int_eq(ev.type, ENG_LINK_BROKEN);
		ck_assert_uint_eq(ev.link, 100 + len);
		ck_assert_str_ne(ev.text, "");
	}
	run_op(&n, &o);
	net_down(&n);
}
END_TEST

/* Each forged segment has the right sequence number and one other field that is wrong. */
START_TEST(forged_segments_are_refused)
{
	struct net n;
	struct op o = {.seq = 9,
		.count = 100000,
		.op = KRN_SUM,
		.staged = true,
		.segment_max = CC_PLAN_SEGMENT_MAX};
	struct cc_plan plan;
	uint8_t *want;

	net_up(&n, 2, 1);
	n.h[0].n_members = n.h[1].n_members = 1;
	prepare(&n, &o);
	start_one(&n, &o, 0, 2);
	ck_assert_int_eq(cc_plan_init(&plan, o.count, 4, 2, o.segment_max), 0);
	for (unsigned i = 0; i < 10; i++) {
		const struct cc_id other = {{7}};       /* a member, but not the previous host */
		uint32_t seg = 1 * plan.segs_per_chunk; /* a chunk that position 0 receives */
		struct cc_span span = cc_plan_segment(&plan, seg);
		struct wlk_data d = {.phase = WLK_REDUCE,
			.group = 5,
			.epoch = 3,
			.seq = 9,
			.tag = 77,
			.seg = seg,
			.len = (uint32_t)span.len,
			.offset = span.off};
		uint8_t hdr[WLK_DATA_SIZE];
		struct eng_event ev;
		int pair[2];

		d.tag += i == 0;
		d.group += i == 1;
		d.epoch += i == 2;
		d.seg = i == 3 ? plan.n_segs : i == 4 ? 0 : d.seg;
		d.len -= i == 5;
		d.offset += i == 6 ? 4 : 0;
		if (i == 7)
			d.phase = WLK_GATHER; /* a result that this host computes itself */
		if (i == 8)
			d.phase = WLK_EAGER;
		wlk_data_put(hdr, &d);
		tcp_pair(pair);
		ck_assert_int_eq(
			eng_add_rx_stream(n.h[0].e, 200 + i, i == 9 ? &other : NULL, pair[1]), 0);
		ck_assert_int_eq(send(pair[0], hdr, sizeof hdr, 0), sizeof hdr);
		ck_assert_msg(wait_event(&n.h[0], &ev, WAIT_MS), "forgery %u was accepted", i);
		ck_assert_int_eq(ev.type, ENG_LINK_BROKEN);
		ck_assert((strstr(ev.text, "eager") != NULL) == (i == 8));
		ck_assert((strstr(ev.text, "its sender does not send here") != NULL) ==
			  (i == 7 || i == 9));
		close(pair[0]);
	}
	start_one(&n, &o, 1, 2);
	feed(&n, &o);
	for (uint32_t h = 0; h < 2; h++) {
		struct eng_event ev;

		ck_assert(wait_event(&n.h[h], &ev, WAIT_MS));
		ck_assert_int_eq(ev.type, ENG_XFER_DONE);
		eng_release(n.h[h].e, 9);
	}
	want = results(&n, &o);
	ck_assert_mem_eq(n.h[0].area, want, o.count * 4);
	ck_assert_mem_eq(n.h[1].area, want, o.count * 4);
	free(want);
	cleanup(&n);
	net_down(&n);
}
END_TEST

/* A link breaks with a reason if a partial sum is received twice (_i 0), or if a result arrives
 * before this host has sent its partial sum (_i 1). */
START_TEST(repeated_or_impossible_segment_breaks_its_link)
{
	static const char *const why[] = {"partial sum received twice", "has not sent"};
	struct op o = {
		.seq = 9, .count = 100000, .op = KRN_SUM, .segment_max = CC_PLAN_SEGMENT_MAX};
	uint8_t *buf = malloc(WLK_DATA_SIZE + CC_PLAN_SEGMENT_MAX);
	struct eng_event ev;
	struct cc_plan plan;
	struct net n;
	size_t len;
	int pair[2];

	net_up(&n, 1, 1);
	start_alone(&n, &o, &plan);
	tcp_pair(pair);
	ck_assert_int_eq(eng_add_rx_stream(n.h[0].e, 300, NULL, pair[1]), 0);
	if (_i == 0) {
		send_segment(pair[0], &plan, 9, plan.segs_per_chunk, 0);
		send_segment(pair[0], &plan, 9, plan.segs_per_chunk, 0x11);
	} else {
		len = make_segment(buf, &plan, 9, 0, 0x11);
		buf[4] = WLK_GATHER;
		ck_assert_int_eq(send(pair[0], buf, len, 0), (ssize_t)len);
	}
	ck_assert(wait_event(&n.h[0], &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, ENG_LINK_BROKEN);
	ck_assert_uint_eq(ev.link, 300);
	ck_assert_msg(strstr(ev.text, why[_i]) != NULL, "%s", ev.text);
	close(pair[0]);
	cancel_alone(&n, 9);
	net_down(&n);
	free(buf);
}
END_TEST

/* A full link, on which segments must be forwarded, continues when it is writable again, although
 * another link is writable all the time. */
START_TEST(full_link_continues_beside_an_idle_link)
{
	struct net n;
	struct op o = {
		.seq = 1, .count = 16u << 20, .op = KRN_SUM, .segment_max = CC_PLAN_SEGMENT_MAX};
	uint64_t left = o.count * 2 + CC_PLAN_SEGMENT_MAX;
	static uint8_t buf[1 << 16];
	struct cc_plan plan;
	int out[2], idle[2], in[2];

	net_up(&n, 1, 1);
	tcp_pair(out);
	tcp_pair(idle);
	tcp_pair(in);
	ck_assert_int_eq(eng_add_tx_stream(n.h[0].e, 1, out[0], ENG_NO_SET), 0);
	ck_assert_int_eq(eng_add_tx_stream(n.h[0].e, 9, idle[0], ENG_NO_SET), 0);
	ck_assert_int_eq(eng_add_rx_stream(n.h[0].e, 2, NULL, in[1]), 0);
	start_alone(&n, &o, &plan);
	poll(NULL, 0, 100); /* no event tells that the socket is full */
	send_segment(in[0], &plan, 1, plan.segs_per_chunk, 0);
	poll(NULL, 0, 100); /* no event tells that the segment waits to be forwarded */
	left += (uint64_t)WLK_DATA_SIZE * (plan.segs_per_chunk + 1);
	while (left > 0) {
		struct pollfd p = {.fd = out[1], .events = POLLIN};
		ssize_t got;

		ck_assert_msg(poll(&p, 1, 5000) == 1, "the link stands still");
		got = read(out[1], buf, sizeof buf);
		ck_assert_int_gt(got, 0);
		left -= (uint64_t)got;
	}
	cancel_alone(&n, 1);
	net_down(&n);
	close(out[1]);
	close(idle[1]);
	close(in[0]);
}
END_TEST

/* A host sends its own segments before it forwards segments of other hosts. Otherwise it would send
 * its own segments late, and would then have to wait for each segment of the other hosts. */
START_TEST(own_segments_are_sent_first)
{
	struct net n;
	struct op o = {
		.seq = 1, .count = 16u << 20, .op = KRN_SUM, .segment_max = CC_PLAN_SEGMENT_MAX};
	static uint8_t buf[CC_PLAN_SEGMENT_MAX];
	uint8_t hdr[WLK_DATA_SIZE];
	struct cc_plan plan;
	struct wlk_data d;
	int out[2], in[2];
	const char *why;

	net_up(&n, 1, 1);
	tcp_pair(out);
	tcp_pair(in);
	ck_assert_int_eq(eng_add_tx_stream(n.h[0].e, 1, out[0], ENG_NO_SET), 0);
	ck_assert_int_eq(eng_add_rx_stream(n.h[0].e, 2, NULL, in[1]), 0);
	start_alone(&n, &o, &plan);
	send_segment(in[0], &plan, 1, plan.segs_per_chunk, 0);
	poll(NULL, 0, 100); /* no event tells that the segment waits for the full socket */
	for (uint32_t i = 0; i <= plan.segs_per_chunk; i++) {
		ck_assert_int_eq(recv(out[1], hdr, sizeof hdr, MSG_WAITALL), sizeof hdr);
		ck_assert_int_eq(wlk_data_get(hdr, &d, &why), 0);
		ck_assert_int_eq(recv(out[1], buf, d.len, MSG_WAITALL), d.len);
		ck_assert_uint_eq(d.seg, i);
		ck_assert_int_eq(d.phase, i < plan.segs_per_chunk ? WLK_REDUCE : WLK_GATHER);
	}
	cancel_alone(&n, 1);
	close(out[1]);
	close(in[0]);
}
END_TEST

/* Returns the stream on which the first segment of this transfer arrives. */
static uint32_t stream_used(int out[ENG_SETS][2], uint64_t seq)
{
	struct pollfd p[ENG_SETS];
	uint8_t buf[WLK_DATA_SIZE];
	struct wlk_data d;
	const char *why;

	for (uint32_t i = 0; i < ENG_SETS; i++)
		p[i] = (struct pollfd){.fd = out[i][1], .events = POLLIN};
	ck_assert_int_eq(poll(p, ENG_SETS, WAIT_MS), 1);
	for (uint32_t i = 0; i < ENG_SETS; i++) {
		if (!p[i].revents)
			continue;
		ck_assert_int_eq(recv(out[i][1], buf, sizeof buf, MSG_WAITALL), sizeof buf);
		ck_assert_int_eq(wlk_data_get(buf, &d, &why), 0);
		ck_assert_uint_eq(d.seq, seq);
		for (uint32_t left = d.len; left > 0;) {
			ssize_t n = recv(out[i][1], buf, left < sizeof buf ? left : sizeof buf, 0);

			ck_assert_int_gt(n, 0);
			left -= (uint32_t)n;
		}
		return i;
	}
	ck_abort();
}

/* Starts a transfer. Returns the stream that the transfer uses. */
static uint32_t use_stream(struct net *n, const struct op *op, int out[ENG_SETS][2], uint64_t seq)
{
	struct op o = *op;

	o.seq = seq;
	n->hosts = 2;
	start_one(n, &o, 0, 2);
	n->hosts = 1;
	return stream_used(out, seq);
}

static void end_transfer(struct net *n, uint64_t seq)
{
	struct eng_event ev;

	eng_cancel(n->h[0].e, seq);
	ck_assert(wait_event(&n->h[0], &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, ENG_XFER_CANCELLED);
	eng_release(n->h[0].e, seq);
}

/* Starts and ends a short transfer. Returns the stream set that it uses. */
static uint32_t use_set(struct net *n, const struct op *o, int out[ENG_SETS][2], uint64_t seq)
{
	uint32_t set = use_stream(n, o, out, seq);

	end_transfer(n, seq);
	return set;
}

/* Does the same. Checks that the transfer uses this set, which took over at since_ns. */
static uint32_t use_set_again(struct net *n, const struct op *o, int out[ENG_SETS][2], uint64_t seq,
	uint32_t set, uint64_t since_ns)
{
	uint32_t used = use_set(n, o, out, seq);

	if (cc_now_ns() - since_ns < ENG_SET_NS) /* unless this test was suspended */
		ck_assert_uint_eq(used, set);
	return used;
}

/* Waits until the current set has been in use for long enough. */
static void await_turn(void)
{
	uint64_t end = cc_now_ns() + ENG_SET_NS, now;

	while ((now = cc_now_ns()) < end)
		poll(NULL, 0, (int)((end - now) / 1000000) + 1);
}

/* The next set takes over when the time of the current set is over and no transfer is under way. */
START_TEST(stream_sets_rotate)
{
	const struct op o = {.count = 1024, .op = KRN_SUM, .segment_max = CC_PLAN_SEGMENT_MAX};
	uint64_t since = cc_now_ns(), seq = 0;
	int out[ENG_SETS][2];
	struct net n;
	uint32_t set;

	net_up(&n, 1, 1);
	n.h[0].n_members = 1;
	prepare(&n, &o);
	for (uint32_t i = 0; i < ENG_SETS; i++) {
		tcp_pair(out[i]);
		ck_assert_int_eq(eng_add_tx_stream(n.h[0].e, 1, out[i][0], i), 0);
	}
	set = use_set(&n, &o, out, ++seq);
	(void)use_set_again(&n, &o, out, ++seq, set, since);
	set = use_stream(&n, &o, out, ++seq);
	await_turn();
	ck_assert_uint_eq(use_stream(&n, &o, out, ++seq), set);
	end_transfer(&n, seq - 1);
	ck_assert_uint_eq(use_stream(&n, &o, out, ++seq), set);
	end_transfer(&n, seq - 1);
	end_transfer(&n, seq);
	for (uint32_t i = 0; i < ENG_SETS; i++) {
		if (i > 0)
			await_turn();
		set = (set + 1) % ENG_SETS;
		since = cc_now_ns();
		ck_assert_uint_eq(use_set(&n, &o, out, ++seq), set);
		set = use_set_again(&n, &o, out, ++seq, set, since);
	}
	cleanup(&n);
	net_down(&n);
	for (uint32_t i = 0; i < ENG_SETS; i++)
		close(out[i][1]);
}
END_TEST

/* Segments of a transfer that this host skips do not stall their stream. */
START_TEST(skipped_transfer_does_not_stall_its_stream)
{
	struct net n;
	struct op o = {
		.seq = 1, .count = 100000, .op = KRN_SUM, .segment_max = CC_PLAN_SEGMENT_MAX};
	struct eng_progress p = {.segs_done = 0};
	struct eng_event ev;
	struct cc_plan plan;
	int in[2], out[2];

	net_up(&n, 1, 1);
	tcp_pair(in);
	tcp_pair(out);
	ck_assert_int_eq(eng_add_rx_stream(n.h[0].e, 2, NULL, in[1]), 0);
	ck_assert_int_eq(eng_add_tx_stream(n.h[0].e, 1, out[0], ENG_NO_SET), 0);
	start_alone(&n, &o, &plan);
	/* Sends a segment of transfer 2, and behind it all segments that transfer 1 needs. */
	send_segment(in[0], &plan, 2, plan.segs_per_chunk, 0);
	for (uint32_t i = 0; i < plan.segs_per_chunk; i++)
		send_segment(in[0], &plan, 1, plan.segs_per_chunk + i, 0);
	ck_assert(!wait_event(&n.h[0], &ev, 50));
	eng_skip(n.h[0].e, 2);
	for (unsigned ms = 0; p.segs_done < plan.segs_per_chunk; ms++) {
		ck_assert_uint_lt(ms, WAIT_MS);
		ck_assert(eng_get_progress(n.h[0].e, 1, &p));
		poll(NULL, 0, 1);
	}
	cancel_alone(&n, 1);
	net_down(&n);
	close(in[0]);
	close(out[1]);
}
END_TEST

/* A probe reports whether the other host accepts what is sent, and how long it has been silent. */
START_TEST(probe_reports_congestion_and_silence_of_a_link)
{
	struct net n;
	struct op o = {
		.seq = 1, .count = 16u << 20, .op = KRN_SUM, .segment_max = CC_PLAN_SEGMENT_MAX};
	static uint8_t buf[1 << 16];
	struct cc_plan plan;
	struct eng_event ev;
	int out[2], in[2];
	bool congested;

	net_up(&n, 1, 1);
	tcp_pair(out);
	tcp_pair(in);
	ck_assert_int_eq(eng_add_tx_stream(n.h[0].e, 1, out[0], ENG_NO_SET), 0);
	ck_assert_int_eq(eng_add_rx_stream(n.h[0].e, 2, NULL, in[1]), 0);
	eng_probe(n.h[0].e, 7); /* link 7 does not exist, so no event follows */
	eng_probe(n.h[0].e, 2);
	ck_assert(wait_event(&n.h[0], &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, ENG_LINK_HEARD);
	ck_assert_uint_eq(ev.link, 2);
	ck_assert(!ev.congested);
	ck_assert_uint_lt(ev.heard_ms, WAIT_MS);
	start_alone(&n, &o, &plan);
	for (congested = false; !congested; congested = ev.congested) {
		eng_probe(n.h[0].e, 1);
		ck_assert(wait_event(&n.h[0], &ev, WAIT_MS));
		ck_assert_int_eq(ev.type, ENG_LINK_HEARD);
		ck_assert_uint_eq(ev.link, 1);
	}
	do { /* the other host's kernel ends the silence once a second */
		poll(NULL, 0, 100);
		eng_look(n.h[0].e, true);
		eng_probe(n.h[0].e, 2);
		ck_assert(wait_event(&n.h[0], &ev, WAIT_MS));
	} while (ev.heard_ms < 250);
	send_segment(in[0], &plan, 1, plan.segs_per_chunk, 0);
	eng_look(n.h[0].e, true);
	eng_probe(n.h[0].e, 2);
	ck_assert(wait_event(&n.h[0], &ev, WAIT_MS));
	ck_assert_uint_eq(ev.heard_ms, 0);
	/* The other side reads, so the link is not congested any more in the end. */
	while (congested) {
		while (recv(out[1], buf, sizeof buf, MSG_DONTWAIT) > 0)
			;
		eng_probe(n.h[0].e, 1);
		ck_assert(wait_event(&n.h[0], &ev, WAIT_MS));
		congested = ev.congested;
	}
	cancel_alone(&n, 1);
	net_down(&n);
	close(out[1]);
	close(in[0]);
}
END_TEST

/* Progress changes when anything moves, and names the member whose operand is awaited. */
START_TEST(progress_names_the_member_that_copies)
{
	struct net n;
	struct op o = {.seq = 1,
		.count = 100000,
		.op = KRN_SUM,
		.staged = true,
		.segment_max = CC_PLAN_SEGMENT_MAX};
	struct eng_progress p, q;
	struct eng_event ev;

	net_up(&n, 1, 1);
	n.h[0].n_members = 3;
	prepare(&n, &o);
	start_one(&n, &o, 0, 3);
	for (uint32_t m = 0; m < 3; m += 2)
		atomic_store(&n.h[0].slot[m].in_done[1], o.count * 4);
	atomic_store(&n.h[0].slot[1].in_done[1], 40000);
	ck_assert(eng_get_progress(n.h[0].e, 1, &p));
	ck_assert_uint_eq(p.copying, 1);
	ck_assert_uint_lt(p.segs_done, p.segs);
	atomic_store(&n.h[0].slot[1].in_done[1], 80000);
	ck_assert(eng_get_progress(n.h[0].e, 1, &q));
	ck_assert_uint_ne(p.moved, q.moved);
	/* The progress stops when the threads have used the input that was copied. */
	for (unsigned ms = 0; p.moved != q.moved; ms++) {
		ck_assert_uint_lt(ms, WAIT_MS);
		p = q;
		poll(NULL, 0, 1);
		ck_assert(eng_get_progress(n.h[0].e, 1, &q));
	}
	feed(&n, &o);
	ck_assert(wait_event(&n.h[0], &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, ENG_XFER_DONE);
	ck_assert(eng_get_progress(n.h[0].e, 1, &p));
	ck_assert_uint_eq(p.copying, ENG_NO_MEMBER);
	ck_assert_uint_eq(p.segs_done, p.segs);
	eng_release(n.h[0].e, 1);
	cleanup(&n);
	net_down(&n);
}
END_TEST

/* More transfers end at once than the event rings can hold. The loop and the engine's threads do
 * not wait for each other. */
START_TEST(thousands_of_transfers_are_cancelled_at_once)
{
	enum { OPS = 10000 };
	struct net n;
	struct eng_member member;
	struct eng_xfer_spec s = {.dtype = KRN_U32,
		.op = KRN_SUM,
		.world_size = 2,
		.n_members = 1,
		.members = &member,
		.segment_max = CC_PLAN_SEGMENT_MAX};
	static _Atomic uint8_t flags[64];
	static uint32_t in[4], area[4];
	struct shm_slot slot;
	struct eng_event ev;

	memset(&slot, 0, sizeof slot);
	net_up(&n, 1, 1);
	ck_assert_int_eq(cc_plan_init(&s.plan, 4, 4, 1, s.segment_max), 0);
	s.area = (uint8_t *)area;
	s.flags = flags;
	member = (struct eng_member){.in = (uint8_t *)in, .slot = &slot, .staged = true};
	for (s.seq = 1; s.seq <= OPS; s.seq++)
		ck_assert_int_eq(eng_start(n.h[0].e, &s), 0);
	for (uint64_t seq = OPS; seq >= 1; seq--)
		eng_cancel(n.h[0].e, seq);
	for (uint64_t i = 0; i < OPS; i++) {
		ck_assert(wait_event(&n.h[0], &ev, WAIT_MS));
		ck_assert_int_eq(ev.type, ENG_XFER_CANCELLED);
		eng_release(n.h[0].e, ev.seq);
	}
	net_down(&n);
}
END_TEST

/* Hosts start many transfers at different times, but always in the master's order. */
START_TEST(many_transfers_run_at_once)
{
	enum { OPS = 16 };
	struct net n;
	struct eng_member member;
	struct eng_peer peers[3];
	struct eng_xfer_spec s = {.tag = 77,
		.epoch = 3,
		.group = 5,
		.dtype = KRN_U32,
		.op = KRN_SUM,
		.world_size = 3,
		.peers = peers,
		.n_members = 1,
		.members = &member,
		.segment_max = CC_PLAN_SEGMENT_MAX};
	static uint32_t in[3][OPS][50000], out[3][OPS][50000];
	static _Atomic uint8_t flags[3][OPS][256];
	struct shm_slot slot;
	uint64_t wrong = 0;

	memset(&slot, 0, sizeof slot);
	net_up(&n, 3, 4);
	for (uint32_t h = 0; h < 3; h++)
		for (uint32_t o = 0; o < OPS; o++)
			for (uint32_t k = 0; k < 50000; k++)
				in[h][o][k] = (uint32_t)rng();
	for (uint32_t h = 0; h < 3; h++) {
		for (uint32_t o = 0; o < OPS; o++) {
			s.seq = o + 1;
			s.pos = h;
			memset(peers, 0, sizeof peers);
			peers[(h + 1) % 3].link = 1;
			s.area = (uint8_t *)out[h][o];
			s.flags = flags[h][o];
			member = (struct eng_member){.in = (uint8_t *)in[h][o], .slot = &slot};
			ck_assert_int_eq(cc_plan_init(&s.plan, 50000, 4, 3, s.segment_max), 0);
			ck_assert_int_eq(eng_start(n.h[h].e, &s), 0);
		}
	}
	for (uint32_t h = 0; h < 3; h++) {
		for (uint32_t o = 0; o < OPS; o++) {
			struct eng_event ev;

			ck_assert(wait_event(&n.h[h], &ev, WAIT_MS));
			ck_assert_int_eq(ev.type, ENG_XFER_DONE);
			eng_release(n.h[h].e, ev.seq);
		}
	}
	for (uint32_t h = 0; h < 3; h++)
		for (uint32_t o = 0; o < OPS; o++)
			for (uint32_t k = 0; k < 50000; k++)
				wrong += out[h][o][k] != in[0][o][k] + in[1][o][k] + in[2][o][k];
	ck_assert_uint_eq(wrong, 0);
	net_down(&n);
}
END_TEST

Suite *engine_suite(void)
{
	Suite *s = suite_create("engine");
	TCase *tc = tcase_create("transfers");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, results_are_right_for_all_shapes, 0, 12);
	tcase_add_loop_test(tc, results_are_right_on_all_routes, 0, ROUTES * (HOSTS_MAX - 1));
	tcase_add_loop_test(tc, results_are_right_in_direct_outputs, 0, 3);
	tcase_add_loop_test(
		tc, cancelled_transfers_leave_streams_and_undo_copies, 0, 2 * CC_ALGO_COUNT);
	tcase_add_loop_test(tc, unexpected_segments_wait_for_the_start, 0, CC_ALGO_COUNT);
	tcase_add_loop_test(tc, progress_names_the_hosts_whose_data_is_missing, 0, CC_ALGO_COUNT);
	tcase_add_test(tc, garbage_breaks_only_its_link);
	tcase_add_test(tc, forged_segments_are_refused);
	tcase_add_loop_test(tc, repeated_or_impossible_segment_breaks_its_link, 0, 2);
	tcase_add_test(tc, full_link_continues_beside_an_idle_link);
	tcase_add_test(tc, own_segments_are_sent_first);
	tcase_add_test(tc, stream_sets_rotate);
	tcase_add_test(tc, skipped_transfer_does_not_stall_its_stream);
	tcase_add_test(tc, probe_reports_congestion_and_silence_of_a_link);
	tcase_add_test(tc, progress_names_the_member_that_copies);
	tcase_add_test(tc, thousands_of_transfers_are_cancelled_at_once);
	tcase_add_test(tc, many_transfers_run_at_once);
	suite_add_tcase(s, tc);
	return s;
}
