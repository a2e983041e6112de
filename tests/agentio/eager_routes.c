/* SPDX-License-Identifier: MIT
 *
 * Eager operations over the links of the mesh, and quantized eager operations. The agent is the
 * second host in a ring of three. The test is the master and both other hosts.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernels/krn.h"
#include "kernels/qnt.h"
#include "proto/wire_codes.h"
#include "proto/wire_quant.h"
#include "tests/agentio/ask.h"
#include "tests/agentio/fake_engine.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

#define HOSTS 3u
#define OWN   1u
#define TAG   7u
#define COUNT 5u
#define MANY  30000u /* more than one piece of a quantized operand */
#define PIECE 16384u /* elements of a piece */

/* The hosts at the positions 2 and 0, and the test's ends of the links: the streams for the engine,
 * and the eager streams. */
static struct other others[2];
static int out[2][2]; /* from the agent */
static int in[2][2];  /* to the agent */
static uint32_t count;
static const struct qnt_format *format; /* NULL: not quantized */
static uint32_t op;
/* Error feedback: the residual of the agent's host, and the residual that the operation leaves. */
static bool feedback;
static float residual[MANY], loss[MANY];

struct operand {
	float v[MANY];
	uint8_t wire[WLK_DATA_SIZE + MANY * 4]; /* the packet */
	uint32_t len;                           /* of the payload */
};
static struct operand operands[HOSTS]; /* by position */

static void setup(void)
{
	static struct cc_id nonce[2];

	count = COUNT;
	format = NULL;
	op = KRN_SUM;
	feedback = false;
	memset(residual, 0, sizeof residual);
	pair_begin_mesh(others, out);
	ck_assert_uint_eq(client_alloc(&a, (uint64_t)MANY * 4, &ma), WIRE_SUCCESS);
	for (int i = 0; i < 2; i++) {
		in[i][0] = other_open_in(&others[i].id, &f, &m, 0, WLK_OK, &nonce[i]);
		in[i][1] =
			other_open_in(&others[i].id, &f, &m, WLK_STREAM_EAGER, WLK_OK, &nonce[i]);
	}
}

static void teardown(void)
{
	pair_end_mesh(others, out);
	for (int i = 0; i < 4; i++)
		close(in[i / 2][i % 2]);
}

/* Returns the index of the host at this position in the arrays above. */
static unsigned other_at(uint32_t pos)
{
	ck_assert_uint_ne(pos, OWN);
	return pos == 2 ? 0 : 1;
}

/* ---- operands ---- */

/* Encodes the operand in pieces, as each host does. */
static uint32_t encode(const struct operand *o, uint8_t *to)
{
	static float acc[PIECE];
	uint32_t i, n, len = 0;

	if (!format) {
		memcpy(to, o->v, count * sizeof *o->v);
		return count * (uint32_t)sizeof *o->v;
	}
	for (i = 0; i < count; i += n) {
		n = count - i < PIECE ? count - i : PIECE;
		memcpy(acc, o->v + i, n * sizeof *acc);
		for (uint32_t k = 0; feedback && o == &operands[OWN] && k < n; k++)
			loss[i + k] = acc[k] += residual[i + k];
		qnt_encode(format, to + len, acc, n, true, NULL);
		for (uint32_t k = 0; feedback && o == &operands[OWN] && k < n; k++)
			loss[i + k] -= acc[k];
		len += (uint32_t)qnt_wire_size(format, n);
	}
	return len;
}

/* Makes the operands of all hosts, for the operation with this number. */
static void make_operands(uint64_t seq)
{
	uint32_t pos, i;

	for (pos = 0; pos < HOSTS; pos++) {
		struct operand *o = &operands[pos];
		struct wlk_data d = {.phase = WLK_EAGER,
			.group = 1,
			.epoch = 1,
			.seq = seq,
			.tag = TAG,
			.seg = pos};

		for (i = 0; i < count; i++)
			o->v[i] = format ? sinf((float)(i * HOSTS + pos)) : (float)(pos + 1 + i);
		o->len = encode(o, o->wire + WLK_DATA_SIZE);
		d.len = o->len;
		wlk_data_put(o->wire, &d);
	}
}

/* Writes the result that all hosts must have: the operands in the order of the ring. */
static void reduce(float *ret)
{
	uint32_t i, pos, n, at = 0;

	for (i = 0; format && i < count; i += n) {
		n = count - i < PIECE ? count - i : PIECE;
		qnt_decode(format, ret + i, operands[0].wire + WLK_DATA_SIZE + at, n);
		for (pos = 1; pos < HOSTS; pos++)
			qnt_decode_reduce(
				format, op, ret + i, operands[pos].wire + WLK_DATA_SIZE + at, n);
		at += (uint32_t)qnt_wire_size(format, n);
	}
	for (i = 0; !format && i < count; i++)
		ret[i] = operands[0].v[i] + operands[1].v[i] + operands[2].v[i];
	if (op == KRN_AVG)
		krn_divide(KRN_F32, ret, count, HOSTS);
}

static void send_part(uint32_t pos, size_t from, size_t to)
{
	tcp_send(in[other_at(pos)][1], operands[pos].wire + from, to - from);
}

/* Sends the operand of the host at this position. */
static void send_operand(uint32_t pos)
{
	send_part(pos, 0, WLK_DATA_SIZE + operands[pos].len);
}

/* Checks that the agent sends the operand of the host at position `pos` to the host at position
 * `to`. */
static void expect_operand(uint32_t pos, uint32_t to)
{
	static uint8_t got[sizeof operands[0].wire];
	size_t size = WLK_DATA_SIZE + operands[pos].len;

	ck_assert_uint_eq(tcp_receive(out[other_at(to)][1], got, size), size);
	ck_assert_mem_eq(got, operands[pos].wire, size);
}

/* Waits until the agent has read everything that was sent before. */
static void settle(void)
{
	struct wl_request q = {.type = WL_REGION_MAP, .comm = qa.comm, .region = UINT64_MAX};
	struct wl_reply r;

	for (int i = 0; i < 2; i++)
		client_call(&a, &q, &r, NULL, 0);
}

/* Checks that the agent has sent nothing more to the host at this position. */
static void expect_nothing(uint32_t to)
{
	uint8_t byte;

	settle();
	ck_assert_int_eq(recv(out[other_at(to)][1], &byte, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
}

/* ---- operations ---- */

static struct shm_sqe submission(void)
{
	struct shm_sqe e = queue_sum(0, TAG, count, &ma);

	e.op = op;
	if (format) {
		e.quant_algo =
			format->scheme == QNT_BLOCK ? WIRE_QUANT_BLOCKWISE : WIRE_QUANT_MIN_MAX;
		e.quant_dtype = format->scheme == QNT_BLOCK ? KRN_I8 : KRN_U8;
	}
	if (feedback)
		e.quant_algo |= WIRE_QUANT_FEEDBACK;
	return e;
}

/* Submits the operation. Returns the number under which the agent has started it speculatively, or
 * 0. */
static uint64_t submit(struct shm_sqe e)
{
	uint64_t spec_seq;
	struct wm_msg msg;

	queue_push(&qa, &e);
	master_expect(&m, WM_OP_VOTE, &msg);
	spec_seq = msg.u.op_vote.spec_seq;
	wire_master_clear(&msg);
	return spec_seq;
}

static void copy_own(void)
{
	memcpy(ma.map, operands[OWN].v, count * sizeof operands[OWN].v[0]);
}

/* Submits the operation, and starts it with this route. */
static uint64_t launch(enum cc_algo route)
{
	make_operands(m.seq + 1);
	copy_own();
	ck_assert_uint_eq(submit(submission()), 0);
	m.route = route;
	return master_started(&m, TAG);
}

/* Checks that the process finds the result of all three operands. */
static void expect_result(void)
{
	static float want[MANY];
	const struct shm_slot *s = queue_slot(&qa, 0);
	struct wl_request q = {.type = WL_REGION_MAP, .comm = qa.comm, .region = s->result_region};
	struct wl_reply r;
	void *got;
	int fd;

	client_call(&a, &q, &r, &fd, 1);
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
	got = mmap(NULL, count * sizeof *want, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(got, MAP_FAILED);
	close(fd);
	reduce(want);
	ck_assert_mem_eq(got, want, count * sizeof *want);
	munmap(got, count * sizeof *want);
}

/* Ends the operation with success. The agent has sent and received two operands. */
static void finish(uint64_t seq)
{
	const struct shm_slot *s = queue_slot(&qa, 0);

	master_finish_op(&m, seq);
	ck_assert_uint_eq(queue_await(&qa, 0), WIRE_SUCCESS);
	ck_assert_uint_eq(s->tx_bytes, 2ull * (WLK_DATA_SIZE + operands[OWN].len));
	ck_assert_uint_eq(s->rx_bytes, 2ull * (WLK_DATA_SIZE + operands[OWN].len));
	ck_assert_uint_eq(fake_counts().xfers, 0);
	expect_result();
	queue_free_slot(&qa, 0);
}

/* Each host sends its operand to both other hosts. */
START_TEST(direct_route_sends_to_all_hosts_at_once)
{
	uint64_t seq = launch(CC_ALGO_DIRECT);

	expect_operand(OWN, 0);
	expect_operand(OWN, 2);
	send_operand(_i == 0 ? 0 : 2);
	send_operand(_i == 0 ? 2 : 0);
	finish(seq);
	expect_nothing(0);
	expect_nothing(2);
}
END_TEST

/* The second step of the agent waits for the operand of the previous host. The agent does not pass
 * on this operand, because the third host has it already. */
START_TEST(tree_route_goes_in_steps)
{
	uint64_t seq = launch(CC_ALGO_TREE);

	expect_operand(OWN, 2);
	if (_i == 1)
		send_operand(2);
	expect_nothing(0);
	send_part(0, 0, WLK_DATA_SIZE + 4);
	expect_nothing(0);
	send_part(0, WLK_DATA_SIZE + 4, WLK_DATA_SIZE + operands[0].len);
	expect_operand(OWN, 0);
	if (_i == 0)
		send_operand(2);
	finish(seq);
	expect_nothing(0);
	expect_nothing(2);
}
END_TEST

/* The operation starts before the process has copied its operand. */
START_TEST(steps_wait_for_the_own_operand)
{
	struct shm_sqe e = submission();
	uint64_t seq = m.seq + 1;

	m.route = _i == 0 ? CC_ALGO_TREE : CC_ALGO_DIRECT;
	make_operands(seq);
	e.flags = 0;
	ck_assert_uint_eq(submit(e), 0);
	send_operand(0);
	send_operand(2);
	ck_assert_uint_eq(master_started(&m, TAG), seq);
	expect_nothing(0);
	expect_nothing(2);
	copy_own();
	atomic_store(&queue_slot(&qa, 0)->in_done[1], count * sizeof(float));
	expect_operand(OWN, 2);
	expect_operand(OWN, 0);
	finish(seq);
}
END_TEST

/* Waits until the agent says that the operation waits for data from these hosts. */
static void expect_awaited(const char *names)
{
	char want[64];
	bool found;

	snprintf(want, sizeof want, "waits for data from %s for ", names);
	do {
		struct wa_reply r;

		ask(&f, WA_OPS, &r);
		found = strstr(ask_text(ask_table(&r, "ops"), 0, "awaited"), want) != NULL;
		wa_reply_clear(&r);
	} while (!found);
}

START_TEST(standstill_names_the_hosts_whose_data_is_missing)
{
	enum cc_algo route = (enum cc_algo)_i;
	uint64_t seq = launch(route);

	expect_awaited(route == CC_ALGO_RING ? "prevhost" : "prevhost, nexthost");
	send_operand(0);
	expect_awaited(route == CC_ALGO_RING ? "prevhost" : "nexthost");
	tcp_send(in[other_at(route == CC_ALGO_RING ? 0 : 2)][1], operands[2].wire,
		WLK_DATA_SIZE + operands[2].len);
	finish(seq);
}
END_TEST

/* Receives what the route demands, and sends what the other hosts send. */
static void play(uint64_t seq, enum cc_algo route)
{
	if (route == CC_ALGO_RING) {
		expect_operand(OWN, 2);
		send_operand(0);
		expect_operand(0, 2);
		/* The previous host passes on the operand of the third host. */
		tcp_send(in[other_at(0)][1], operands[2].wire, WLK_DATA_SIZE + operands[2].len);
	} else {
		send_operand(2);
		expect_operand(OWN, 2);
		send_operand(0);
		expect_operand(OWN, 0);
	}
	finish(seq);
}

static const struct qnt_format formats[] = {
	{.dtype = KRN_F32, .scheme = QNT_MIN_MAX, .code = QNT_U8},
	{.dtype = KRN_F32, .scheme = QNT_BLOCK, .code = QNT_I8, .block = 256},
};

/* Operands have one piece or two, on each route and in each format. The bits of the result are
 * those that the model computes from the bytes on the network. */
START_TEST(quantized_operands_are_reduced_in_ring_order)
{
	enum cc_algo route = (enum cc_algo)(_i % CC_ALGO_FIXED_COUNT);

	format = &formats[_i / CC_ALGO_FIXED_COUNT % 2];
	count = _i < 2 * CC_ALGO_FIXED_COUNT ? COUNT : MANY;
	op = route == CC_ALGO_DIRECT ? KRN_AVG : KRN_SUM;
	play(launch(route), route);
	ck_assert_uint_lt(operands[OWN].len, count * sizeof(float));
}
END_TEST

/* The agent adds to its operand what it lost in the last operation that succeeded. A failed
 * operation does not change this residual. */
START_TEST(losses_are_added_to_the_next_operand)
{
	struct wm_msg failed = {.type = WM_OP_ABORT,
		.u.op_abort = {.group = 1, .tag = TAG, .code = WIRE_OUT_OF_MEMORY}};

	format = &formats[_i % 2];
	count = _i < 2 ? COUNT : MANY;
	feedback = true;
	for (int round = 0; round < 4; round++) {
		uint64_t seq = launch(CC_ALGO_DIRECT);

		if (round != 1) {
			play(seq, CC_ALGO_DIRECT);
			memcpy(residual, loss, sizeof residual);
			continue;
		}
		expect_operand(OWN, 0);
		expect_operand(OWN, 2);
		failed.u.op_abort.seq = seq;
		master_send(&m, &failed);
		ck_assert_uint_eq(queue_await(&qa, 0), WIRE_OUT_OF_MEMORY);
		queue_free_slot(&qa, 0);
	}
}
END_TEST

/* The first piece is reduced when it has arrived from all hosts, before the second one is there. */
START_TEST(quantized_operand_may_arrive_in_parts)
{
	size_t cut, size;
	uint64_t seq;

	format = &formats[_i % 2];
	count = MANY;
	seq = launch(CC_ALGO_DIRECT);
	size = WLK_DATA_SIZE + operands[0].len;
	cut = WLK_DATA_SIZE + qnt_wire_size(format, PIECE);
	if (_i >= 2)
		cut += 100; /* within the second piece */
	send_operand(2);
	expect_operand(OWN, 0);
	expect_operand(OWN, 2);
	send_part(0, 0, cut - 1);
	settle();
	send_part(0, cut - 1, cut);
	settle();
	send_part(0, cut, size);
	finish(seq);
}
END_TEST

/* An operand of another length does not belong to the operation. */
START_TEST(operand_without_quantization_ends_the_link)
{
	struct wlk_data d;
	const char *why;
	uint8_t byte;

	format = &formats[0];
	(void)launch(CC_ALGO_DIRECT);
	expect_operand(OWN, 0);
	ck_assert_int_eq(wlk_data_get(operands[0].wire, &d, &why), 0);
	d.len = count * sizeof(float);
	wlk_data_put(operands[0].wire, &d);
	operands[0].len = d.len;
	send_operand(0);
	ck_assert_uint_eq(tcp_receive(in[other_at(0)][1], &byte, 1), 0);
}
END_TEST

/* ---- unexpected operands, and operands from the wrong host ---- */

/* Carries out an operation. After it, the next number is reserved for this route. Returns this
 * number. */
static uint64_t reserve(enum cc_algo route)
{
	uint64_t seq = launch(route);

	m.next = seq + 8;
	play(seq, route);
	m.next = 0;
	m.seq = seq + 8;
	make_operands(m.seq);
	copy_own();
	return m.seq;
}

/* `early`: before the submission, no operand arrives (0), one operand (1, 2), or both operands (3).
 */
START_TEST(speculative_start_takes_the_reserved_route)
{
	enum cc_algo route = _i % 2 == 0 ? CC_ALGO_TREE : CC_ALGO_DIRECT;
	int early = _i / 4;
	uint64_t seq;

	if (_i / 2 % 2 == 1)
		format = &formats[1];
	seq = reserve(route);
	if (early & 1)
		send_operand(0);
	if (early & 2)
		send_operand(2);
	settle();
	ck_assert_uint_eq(submit(submission()), seq);
	expect_operand(OWN, 2);
	if (!(early & 1))
		send_operand(0);
	expect_operand(OWN, 0);
	if (!(early & 2))
		send_operand(2);
	finish(seq);
}
END_TEST

static void expect_end(unsigned i)
{
	uint8_t byte;

	ck_assert_uint_eq(tcp_receive(in[i][1], &byte, 1), 0);
}

/* The previous host sends the operand of the third host, as it would in the ring. It comes before
 * the operation starts here (0, 1), or after (2, 3). */
START_TEST(operand_that_another_host_should_send_ends_its_link)
{
	enum cc_algo route = _i % 2 == 0 ? CC_ALGO_TREE : CC_ALGO_DIRECT;
	uint64_t seq = reserve(route);

	if (_i >= 2)
		ck_assert_uint_eq(submit(submission()), seq);
	tcp_send(in[other_at(0)][1], operands[2].wire, WLK_DATA_SIZE + operands[2].len);
	expect_end(other_at(0));
}
END_TEST

/* On the ring, the third host sends nothing to this host. */
START_TEST(operand_over_the_mesh_ends_its_link_if_the_route_is_the_ring)
{
	(void)launch(CC_ALGO_RING);
	send_operand(2);
	expect_end(other_at(2));
}
END_TEST

/* ---- lost links ---- */

/* The eager stream from the agent to a host breaks (_i is even), or the stream from the host to the
 * agent (_i is odd). The host is at position 0 or 2. */
START_TEST(operation_fails_if_a_link_of_its_route_breaks)
{
	enum cc_algo route = _i / 4 == 0 ? CC_ALGO_TREE : CC_ALGO_DIRECT;
	unsigned i = (unsigned)_i / 2 % 2;
	int *fd = _i % 2 == 0 ? &out[i][1] : &in[i][1];
	struct wm_msg msg;

	(void)launch(route);
	expect_operand(OWN, 2);
	close(*fd);
	*fd = -1;
	do
		master_next(&m, &msg);
	while (msg.type == WM_LINK_LOST || msg.type == WM_MESH);
	ck_assert_uint_eq(msg.type, WM_OP_REPORT);
	ck_assert(!msg.u.op_report.ok);
	ck_assert(cc_id_eq(&msg.u.op_report.suspect, &others[i].id));
	wire_master_clear(&msg);
}
END_TEST

Suite *eager_routes_suite(void)
{
	Suite *s = suite_create("eager_routes");
	TCase *t = tcase_create("eager_routes");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, direct_route_sends_to_all_hosts_at_once, 0, 2);
	tcase_add_loop_test(t, tree_route_goes_in_steps, 0, 2);
	tcase_add_loop_test(t, steps_wait_for_the_own_operand, 0, 2);
	tcase_add_loop_test(
		t, quantized_operands_are_reduced_in_ring_order, 0, 4 * CC_ALGO_FIXED_COUNT);
	tcase_add_loop_test(t, losses_are_added_to_the_next_operand, 0, 4);
	tcase_add_loop_test(t, quantized_operand_may_arrive_in_parts, 0, 4);
	tcase_add_test(t, operand_without_quantization_ends_the_link);
	tcase_add_loop_test(t, speculative_start_takes_the_reserved_route, 0, 16);
	tcase_add_loop_test(t, operand_that_another_host_should_send_ends_its_link, 0, 4);
	tcase_add_test(t, operand_over_the_mesh_ends_its_link_if_the_route_is_the_ring);
	tcase_add_loop_test(t, operation_fails_if_a_link_of_its_route_breaks, 0, 8);
	tcase_add_loop_test(
		t, standstill_names_the_hosts_whose_data_is_missing, 0, CC_ALGO_FIXED_COUNT);
	suite_add_tcase(s, t);
	return s;
}
