/* SPDX-License-Identifier: MIT
 *
 * Eager operations between hosts, which have their own stream and their own path. The agent is the
 * second host in a ring of three. The test is the master and both other hosts.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/wire_codes.h"
#include "tests/agentio/fake_engine.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

#define COUNT 5u
#define MANY  30000u /* more than the agent reads ahead, and more than a socket takes at once */
#define BYTES ((size_t)count * 4)

static struct other other;
/* the test's ends of the agent's link: the stream for the engine, and the eager stream */
static int out[2];
static int in[2]; /* the test's ends of its own link to the agent, in the same order */
static uint32_t count;
static uint8_t packet[2 * (WLK_DATA_SIZE + MANY * 4)];
static float v[MANY];

static struct cc_id nonce; /* from the last answer to a stream 0 */

static int open_from(const struct cc_id *from, uint16_t stream, enum wlk_code code)
{
	return other_open_in(from, &f, &m, stream, code, &nonce);
}

static int open_in(uint16_t stream, enum wlk_code code)
{
	return open_from(&other.id, stream, code);
}

static void setup(void)
{
	count = COUNT;
	pair_begin_ring(NULL, &other, 65536, out);
	ck_assert_uint_eq(client_alloc(&a, (uint64_t)MANY * 4, &ma), WIRE_SUCCESS);
	in[0] = open_in(0, WLK_OK);
	in[1] = open_in(WLK_STREAM_EAGER, WLK_OK);
}

static void teardown(void)
{
	pair_end_ring(&other, out);
	for (int i = 0; i < 2; i++)
		close(in[i]);
}

/* Fills `v` with the operand of the host at this position: pos + 1, pos + 2 ... */
static void fill(uint32_t pos)
{
	for (uint32_t i = 0; i < count; i++)
		v[i] = (float)(pos + 1 + i);
}

static struct wlk_data data(uint64_t seq, uint64_t tag, uint32_t pos)
{
	return (struct wlk_data){.phase = WLK_EAGER,
		.group = 1,
		.epoch = 1,
		.seq = seq,
		.tag = tag,
		.seg = pos,
		.len = (uint32_t)BYTES};
}

/* Builds a packet. Returns its length. */
static size_t make_packet(uint8_t *buf, const struct wlk_data *d, uint32_t pos)
{
	fill(pos);
	wlk_data_put(buf, d);
	memcpy(buf + WLK_DATA_SIZE, v, BYTES);
	return WLK_DATA_SIZE + BYTES;
}

static void send_data(const struct wlk_data *d, uint32_t pos)
{
	tcp_send(in[1], packet, make_packet(packet, d, pos));
}

static void expect_data(uint64_t seq, uint64_t tag, uint32_t pos)
{
	struct wlk_data want = data(seq, tag, pos), got;
	size_t size = WLK_DATA_SIZE + BYTES;
	const char *why;

	ck_assert_uint_eq(tcp_receive(out[1], packet, size), size);
	ck_assert_msg(wlk_data_get(packet, &got, &why) == 0, "%s", why);
	ck_assert_uint_eq(got.phase, want.phase);
	ck_assert_uint_eq(got.group, want.group);
	ck_assert_uint_eq(got.epoch, want.epoch);
	ck_assert_uint_eq(got.seq, want.seq);
	ck_assert_uint_eq(got.tag, want.tag);
	ck_assert_uint_eq(got.seg, want.seg);
	ck_assert_uint_eq(got.len, want.len);
	fill(pos);
	ck_assert_mem_eq(v, packet + WLK_DATA_SIZE, BYTES);
}

/* Submits the operation. Returns the number under which the agent has started the operation
 * speculatively, or 0. */
static uint64_t launch(uint32_t slot, uint64_t tag)
{
	uint64_t spec_seq;

	struct shm_sqe e = queue_sum(slot, tag, count, &ma);
	struct wm_msg msg;

	fill(1);
	memcpy(ma.map, v, BYTES);
	queue_push(&qa, &e);
	master_expect(&m, WM_OP_VOTE, &msg);
	spec_seq = msg.u.op_vote.spec_seq;
	wire_master_clear(&msg);
	return spec_seq;
}

static void expect_link_down(void)
{
	struct wm_msg msg;

	master_next(&m, &msg);
	if (msg.type == WM_LINK_LOST) { /* not sent if the other end has closed the link */
		wire_master_clear(&msg);
		master_next(&m, &msg);
	}
	ck_assert_uint_eq(msg.type, WM_OP_REPORT);
	ck_assert(!msg.u.op_report.ok);
	ck_assert(cc_id_eq(&msg.u.op_report.suspect, &other.id));
	wire_master_clear(&msg);
}

/* Checks that the process finds the sum of all three operands. */
static void expect_sum(uint32_t slot)
{
	const struct shm_slot *s = queue_slot(&qa, slot);
	struct wl_request q = {.type = WL_REGION_MAP, .comm = qa.comm, .region = s->result_region};
	struct wl_reply r;
	const float *sum;
	int fd;

	client_call(&a, &q, &r, &fd, 1);
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
	sum = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(sum, MAP_FAILED);
	close(fd);
	for (uint32_t i = 0; i < count; i++)
		ck_assert_float_eq(sum[i], (float)(6 + 3 * i));
	munmap((void *)(uintptr_t)sum, BYTES);
	queue_free_slot(&qa, slot);
}

/* Each host sends all operands to the next host, except the operand that the next host already
 * has. */
START_TEST(operands_go_around_a_ring_of_three_hosts)
{
	struct wlk_data d;
	uint64_t seq;

	launch(2, 7);
	seq = master_started(&m, 7);
	expect_data(seq, 7, 1);
	d = data(seq, 7, 0);
	send_data(&d, 0);
	expect_data(seq, 7, 0);
	d = data(seq, 7, 2);
	send_data(&d, 2);
	master_finish_op(&m, seq);
	ck_assert_uint_eq(queue_await(&qa, 2), WIRE_SUCCESS);
	ck_assert_uint_eq(queue_slot(&qa, 2)->tx_bytes, 2 * (WLK_DATA_SIZE + BYTES));
	ck_assert_uint_eq(queue_slot(&qa, 2)->rx_bytes, 2 * (WLK_DATA_SIZE + BYTES));
	ck_assert_uint_eq(fake_counts().xfers, 0);
	expect_sum(2);
}
END_TEST

/* Waits until the agent has read everything that was sent before. */
static void settle(void)
{
	struct wl_request q = {.type = WL_REGION_MAP, .comm = qa.comm, .region = UINT64_MAX};
	struct wl_reply r;

	for (int i = 0; i < 2; i++)
		client_call(&a, &q, &r, NULL, 0);
}

/* An operand may arrive in several pieces, and several operands in one piece. */
START_TEST(operands_may_arrive_in_any_pieces)
{
	static const size_t cuts[][2] = {{1, 63}, {64, 65}, {100, 4200}, {4159, 90000}};
	struct wlk_data d;
	size_t one, both;

	count = _i < 4 ? MANY : COUNT;
	d = data(1, 7, 0);
	launch(2, 7);
	master_started(&m, 7);
	expect_data(1, 7, 1);
	one = make_packet(packet, &d, 0);
	d = data(1, 7, 2);
	both = one + make_packet(packet + one, &d, 2);
	if (_i < 4) {
		tcp_send(in[1], packet, cuts[_i][0]);
		settle();
		tcp_send(in[1], packet + cuts[_i][0], cuts[_i][1] - cuts[_i][0]);
		settle();
		tcp_send(in[1], packet + cuts[_i][1], both - cuts[_i][1]);
	} else {
		tcp_send(in[1], packet, both);
	}
	expect_data(1, 7, 0);
	master_finish_op(&m, 1);
	ck_assert_uint_eq(queue_await(&qa, 2), WIRE_SUCCESS);
	ck_assert_uint_eq(queue_slot(&qa, 2)->rx_bytes, both);
	expect_sum(2);
}
END_TEST

/* Operands that arrive before the start wait for it, even if they are incomplete. Operands of an
 * operation that is over are dropped. */
START_TEST(unexpected_operands_wait_and_late_ones_are_dropped)
{
	struct wlk_data d = data(1, 7, 0);
	uint8_t hdr[WLK_DATA_SIZE];

	send_data(&d, 0);
	d = data(1, 7, 2);
	wlk_data_put(hdr, &d);
	tcp_send(in[1], hdr, sizeof hdr);
	launch(0, 7);
	ck_assert_uint_eq(master_started(&m, 7), 1);
	expect_data(1, 7, 1);
	expect_data(1, 7, 0);
	fill(2);
	tcp_send(in[1], v, BYTES);
	master_finish_op(&m, 1);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
	expect_sum(0);
	send_data(&d, 2); /* an operand of the operation that is over */
	d = data(2, 8, 0);
	send_data(&d, 0);
	launch(1, 8);
	ck_assert_uint_eq(master_started(&m, 8), 2);
	expect_data(2, 8, 1);
	expect_data(2, 8, 0);
	d = data(2, 8, 2);
	send_data(&d, 2);
	master_finish_op(&m, 2);
	ck_assert_uint_eq(queue_await(&qa, 1), WIRE_SUCCESS);
	expect_sum(1);
}
END_TEST

/* An operand with a wrong field, or one that comes twice, ends the link and so the attempt. */
START_TEST(a_wrong_operand_ends_the_link)
{
	struct wlk_data d = data(1, 7, 0);
	uint8_t byte;

	launch(0, 7);
	master_started(&m, 7);
	expect_data(1, 7, 1);
	switch (_i) {
	case 0:
		d.seg = 3; /* there are three positions */
		break;
	case 1:
		d.seg = 1; /* the agent's own position */
		break;
	case 2:
		d.tag = 8;
		break;
	case 3:
		d.group = 2;
		break;
	case 4:
		d.epoch = 2;
		break;
	case 5:
		d.phase = WLK_REDUCE;
		break;
	case 6:
		d.len--;
		break;
	case 7:
		d.offset = 4;
		break;
	case 8:
		d.len = 1u << 22;
		break;
	default:
		send_data(&d, 0); /* sent twice */
		expect_data(1, 7, 0);
		break;
	}
	send_data(&d, 0);
	expect_link_down();
	ck_assert_uint_eq(tcp_receive(in[1], &byte, 1), 0);
}
END_TEST

START_TEST(an_attempt_fails_if_the_stream_breaks)
{
	launch(0, 7);
	master_started(&m, 7);
	expect_data(1, 7, 1);
	if (_i == 0)
		close(out[1]);
	else
		close(in[1]);
	expect_link_down();
	if (_i == 0)
		out[1] = -1;
	else
		in[1] = -1;
}
END_TEST

/* The operation starts before the process has copied its operand. */
START_TEST(an_operand_may_be_staged_after_the_start)
{
	struct shm_sqe e = queue_sum(0, 7, count, &ma);
	struct wm_msg msg;
	struct wlk_data d = data(1, 7, 0);

	e.flags = 0;
	queue_push(&qa, &e);
	master_expect(&m, WM_OP_VOTE, &msg);
	wire_master_clear(&msg);
	send_data(&d, 0);
	master_started(&m, 7);
	expect_data(1, 7, 0); /* passed on without a delay */
	fill(1);
	memcpy(ma.map, v, BYTES);
	atomic_store(&queue_slot(&qa, 0)->in_done[1], BYTES);
	expect_data(1, 7, 1);
	d = data(1, 7, 2);
	send_data(&d, 2);
	master_finish_op(&m, 1);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
	expect_sum(0);
}
END_TEST

START_TEST(each_link_has_one_eager_stream)
{
	close(open_in(WLK_STREAM_EAGER, WLK_REFUSED_RUN));
	close(open_in(0, WLK_OK)); /* the link is opened again */
	ck_assert_uint_le(fx_stats(&f).links_in, 1);
}
END_TEST

static void aborted(void)
{
	struct wm_msg msg = {.type = WM_OP_ABORT,
		.u.op_abort = {.group = 1, .tag = 7, .seq = 1, .code = WIRE_RANK_CONNECTION_LOST}};

	master_send(&m, &msg);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_RANK_CONNECTION_LOST);
}

/* The attempt fails when half of the operands have arrived. Later operands of this attempt are
 * dropped, and the next attempt gets new operands. */
START_TEST(operands_of_a_failed_attempt_are_dropped)
{
	struct wlk_data d = data(1, 7, 0);

	launch(0, 7);
	master_started(&m, 7);
	expect_data(1, 7, 1);
	send_data(&d, 0);
	expect_data(1, 7, 0);
	aborted();
	queue_free_slot(&qa, 0);
	d = data(1, 7, 2);
	send_data(&d, 2);
	launch(0, 7);
	master_started(&m, 7);
	expect_data(2, 7, 1);
	d = data(2, 7, 2);
	send_data(&d, 2);
	d = data(2, 7, 0);
	send_data(&d, 0);
	expect_data(2, 7, 0);
	master_finish_op(&m, 2);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
}
END_TEST

/* Half of an operand has arrived when the attempt fails. The rest is dropped, wherever the agent
 * has stored the first half. */
START_TEST(the_rest_of_a_failed_attempts_operand_is_dropped)
{
	static uint8_t old[WLK_DATA_SIZE + MANY * 4];
	struct wlk_data d;
	size_t size;

	count = MANY;
	d = data(1, 7, 0);
	launch(0, 7);
	master_started(&m, 7);
	expect_data(1, 7, 1);
	size = make_packet(old, &d, 2);
	tcp_send(in[1], old, size / 2);
	settle();
	aborted();
	queue_free_slot(&qa, 0);
	launch(0, 7);
	master_started(&m, 7);
	expect_data(2, 7, 1);
	tcp_send(in[1], old + size / 2, size - size / 2);
	d = data(2, 7, 0);
	send_data(&d, 0);
	expect_data(2, 7, 0);
	d = data(2, 7, 2);
	send_data(&d, 2);
	master_finish_op(&m, 2);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
	expect_sum(0);
}
END_TEST

/* Half of an operand has arrived, and the rest never comes. */
START_TEST(an_attempt_fails_if_the_stream_breaks_within_an_operand)
{
	struct wlk_data d;

	count = MANY;
	d = data(1, 7, 0);
	launch(0, 7);
	master_started(&m, 7);
	expect_data(1, 7, 1);
	tcp_send(in[1], packet, make_packet(packet, &d, 0) / 2);
	close(in[1]);
	in[1] = -1;
	expect_link_down();
}
END_TEST

static void send_operand(uint64_t seq, uint64_t tag, uint32_t pos)
{
	struct wlk_data d = data(seq, tag, pos);

	send_data(&d, pos);
}

/* Carries out operation 1. After it, number 9 is reserved for the next operation with tag 7. */
static void reserve(void)
{
	ck_assert_uint_eq(launch(0, 7), 0);
	ck_assert_uint_eq(master_started(&m, 7), 1);
	send_operand(1, 7, 0);
	send_operand(1, 7, 2);
	expect_data(1, 7, 1);
	expect_data(1, 7, 0);
	m.next = 9;
	master_finish_op(&m, 1);
	m.next = 0;
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
	queue_free_slot(&qa, 0);
	m.seq = 9;
}

/* Before the submission, one operand arrives (_i == 0), or both (1), or one and half of the other
 * (2), or none (3). */
START_TEST(an_operation_starts_before_the_votes_are_counted)
{
	static uint8_t second[WLK_DATA_SIZE + MANY * 4];
	struct wlk_data d;
	size_t size;

	count = _i == 2 ? MANY : COUNT;
	d = data(9, 7, 2);
	reserve();
	if (_i < 3)
		send_operand(9, 7, 0);
	size = make_packet(second, &d, 2);
	if (_i > 0)
		tcp_send(in[1], second, _i == 2 ? size / 2 : _i == 1 ? size : 0);
	settle();
	ck_assert_uint_eq(launch(0, 7), 9);
	expect_data(9, 7, _i < 3 ? 0 : 1);
	if (_i == 3)
		send_operand(9, 7, 0);
	expect_data(9, 7, _i < 3 ? 1 : 0);
	if (_i != 1)
		tcp_send(in[1], second + (_i == 2 ? size / 2 : 0), size - (_i == 2 ? size / 2 : 0));
	master_finish_op(&m, 9);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
	ck_assert_uint_eq(queue_slot(&qa, 0)->mode, SHM_RESULT_SPEC);
	ck_assert_uint_eq(queue_slot(&qa, 0)->rx_bytes, 2 * (WLK_DATA_SIZE + BYTES));
	expect_sum(0);
}
END_TEST

/* Other hosts have started tag 7, which this host has not called yet. Tag 8 does not wait for this.
 */
START_TEST(an_unexpected_operand_does_not_delay_other_tags)
{
	reserve();
	send_operand(9, 7, 0);
	send_operand(9, 7, 2);
	ck_assert_uint_eq(launch(1, 8), 0);
	ck_assert_uint_eq(master_started(&m, 8), 10);
	send_operand(10, 8, 0);
	send_operand(10, 8, 2);
	expect_data(10, 8, 1);
	expect_data(10, 8, 0);
	master_finish_op(&m, 10);
	ck_assert_uint_eq(queue_await(&qa, 1), WIRE_SUCCESS);
	expect_sum(1);
	ck_assert_uint_eq(launch(0, 7), 9);
	expect_data(9, 7, 0);
	expect_data(9, 7, 1);
	master_finish_op(&m, 9);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
	expect_sum(0);
}
END_TEST

static void expect_end(int fd)
{
	uint8_t byte;

	ck_assert_uint_eq(tcp_receive(fd, &byte, 1), 0);
}

/* The sender is a member, but not the previous host of the ring. It loses its link, and the sum
 * does not contain its operand. This operand comes before the operation starts here (_i == 0), or
 * after the start (1). */
START_TEST(an_operand_from_a_host_that_is_not_previous_ends_its_link)
{
	struct cc_id third = {{0x77}};
	struct wlk_data d;
	uint64_t seq = 9;
	int link[2];

	reserve();
	link[0] = open_from(&third, 0, WLK_OK);
	link[1] = open_from(&third, WLK_STREAM_EAGER, WLK_OK);
	if (_i == 1)
		ck_assert_uint_eq(launch(0, 7), seq);
	d = data(seq, 7, 0);
	tcp_send(link[1], packet, make_packet(packet, &d, 5));
	expect_end(link[1]);
	if (_i == 0)
		ck_assert_uint_eq(launch(0, 7), seq);
	send_operand(seq, 7, 0);
	send_operand(seq, 7, 2);
	expect_data(seq, 7, 1);
	expect_data(seq, 7, 0);
	master_finish_op(&m, seq);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
	expect_sum(0);
	close(link[0]);
	close(link[1]);
}
END_TEST

/* The second operand must not be dropped silently. */
START_TEST(a_second_unexpected_operand_ends_the_link)
{
	struct wlk_data d = data(9, 7, 0);

	reserve();
	send_operand(9, 7, 0);
	tcp_send(in[1], packet, make_packet(packet, &d, 5));
	expect_end(in[1]);
}
END_TEST

/* The operand has the number of the next operation, but belongs to another operation. It is not
 * passed on. */
START_TEST(an_operand_of_another_operation_is_not_passed_on)
{
	struct wlk_data d = data(9, 7, 0);

	reserve();
	d.tag += _i == 0;
	d.group += _i == 1;
	d.epoch += _i == 2;
	send_data(&d, 0);
	settle();
	ck_assert_uint_eq(launch(0, 7), 9);
	expect_data(9, 7, 1);
}
END_TEST

/* The agent rolls back its speculative start under number 9, whatever other hosts have sent under
 * this number. It carries out the operation that the master starts under number 10. */
START_TEST(a_speculative_start_is_rolled_back)
{
	struct wlk_data d = data(9, 7, 0);

	reserve();
	switch (_i) {
	case 0:
		break;
	case 1:
		send_data(&d, 0);
		break;
	case 2:
		d.len -= 4;
		tcp_send(in[1], packet, make_packet(packet, &d, 0) - 4);
		break;
	case 3:
		d.tag = 8;
		send_data(&d, 0);
		break;
	case 4:
		d.epoch = 3;
		send_data(&d, 0);
		break;
	default:
		d.seg = 3;
		send_data(&d, 0);
		break;
	}
	if (_i % 2 == 0)
		settle();
	ck_assert_uint_eq(launch(0, 7), 9);
	ck_assert_uint_eq(queue_slot(&qa, 0)->mode, SHM_RESULT_SPEC);
	ck_assert_uint_eq(queue_slot(&qa, 0)->seq, 9);
	ck_assert_uint_eq(master_started(&m, 7), 10);
	while (queue_slot(&qa, 0)->seq != 10)
		settle();
	send_operand(9, 7, 2); /* late */
	send_operand(10, 7, 0);
	send_operand(10, 7, 2);
	master_finish_op(&m, 10);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
	ck_assert_uint_eq(queue_slot(&qa, 0)->mode, SHM_RESULT_AREA);
	ck_assert_uint_eq(queue_slot(&qa, 0)->seq, 10);
	expect_sum(0);
}
END_TEST

Suite *eager_suite(void)
{
	Suite *s = suite_create("eager");
	TCase *t = tcase_create("eager");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, operands_go_around_a_ring_of_three_hosts);
	tcase_add_loop_test(t, operands_may_arrive_in_any_pieces, 0, 5);
	tcase_add_test(t, unexpected_operands_wait_and_late_ones_are_dropped);
	tcase_add_loop_test(t, a_wrong_operand_ends_the_link, 0, 10);
	tcase_add_loop_test(t, an_attempt_fails_if_the_stream_breaks, 0, 2);
	tcase_add_test(t, an_operand_may_be_staged_after_the_start);
	tcase_add_test(t, each_link_has_one_eager_stream);
	tcase_add_test(t, operands_of_a_failed_attempt_are_dropped);
	tcase_add_test(t, the_rest_of_a_failed_attempts_operand_is_dropped);
	tcase_add_test(t, an_attempt_fails_if_the_stream_breaks_within_an_operand);
	tcase_add_loop_test(t, an_operation_starts_before_the_votes_are_counted, 0, 4);
	tcase_add_test(t, an_unexpected_operand_does_not_delay_other_tags);
	tcase_add_loop_test(t, an_operand_from_a_host_that_is_not_previous_ends_its_link, 0, 2);
	tcase_add_test(t, a_second_unexpected_operand_ends_the_link);
	tcase_add_loop_test(t, an_operand_of_another_operation_is_not_passed_on, 0, 3);
	tcase_add_loop_test(t, a_speculative_start_is_rolled_back, 0, 6);
	suite_add_tcase(s, t);
	return s;
}
