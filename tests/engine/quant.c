/* SPDX-License-Identifier: MIT
 *
 * Quantized transfers between real engines. All hosts must get the same bits. These bits must be
 * those of the simulation of pccl-bench, which follows the routes with the kernels alone.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"
#include "pccl-bench/simulate.h"
#include "tests/engine/net.h"
#include "tests/engine/suites.h"

#define COUNT_MAX MANY(70001u)

struct quant_op {
	struct eng_quant quant;
	enum cc_algo route;
	struct cc_rings rings; /* of CC_ALGO_RINGS */
	const uint8_t *order;  /* model: the hosts of the ring; NULL: by position */
	enum krn_op op;
	uint64_t seq, count;
	uint32_t hosts, esize;
	bool in_place; /* the result replaces the only operand */
	bool undo;     /* the result goes to another output, and the area keeps its old contents */
	/* If `feedback` is set: the residual of each host or NULL, the loss that its engine writes,
	 * and the loss that the model computes. */
	bool feedback;
	const uint8_t *residual[HOSTS_MAX];
	uint8_t *loss[HOSTS_MAX], *want_loss[HOSTS_MAX];
	uint8_t *in[HOSTS_MAX][MEMBERS_MAX], *area[HOSTS_MAX], *direct[HOSTS_MAX];
	uint8_t *scratch[HOSTS_MAX];
	_Atomic uint8_t *flags[HOSTS_MAX];
	struct cc_plan plan;
};

static double normal(void)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += (double)(rng() >> 11) * 0x1p-53;
	return sum - 6;
}

static void fill(const struct quant_op *o, uint8_t *dst)
{
	float *f32 = malloc(o->count * sizeof *f32);
	double *f64 = malloc(o->count * sizeof *f64);

	for (uint64_t i = 0; i < o->count; i++)
		f32[i] = (float)(f64[i] = normal());
	qnt_store(&o->quant.sum, dst,
		qnt_acc_dtype(&o->quant.sum) == KRN_F64 ? (void *)f64 : (void *)f32, o->count);
	free(f32);
	free(f64);
}

static size_t acc_size(const struct quant_op *o)
{
	return krn_dtype_size(qnt_acc_dtype(&o->quant.sum));
}

static uint32_t members(const struct quant_op *o, uint32_t pos)
{
	return o->in_place || o->undo ? 1 : 1 + (pos + (uint32_t)o->seq) % MEMBERS_MAX;
}

static uint32_t world_size(const struct quant_op *o)
{
	uint32_t n = 0;

	for (uint32_t h = 0; h < o->hosts; h++)
		n += members(o, h);
	return n;
}

static void prepare_op(struct quant_op *o)
{
	struct cc_shares shares = {{0}};

	o->esize = (uint32_t)krn_dtype_size(o->quant.sum.dtype);
	if (o->route == CC_ALGO_RINGS) {
		o->rings = random_rings(o->hosts);
		shares = cc_rings_shares(&o->rings);
	}
	ck_assert_int_eq(
		cc_plan_init_shares(&o->plan, o->count, o->esize, o->hosts, 32768, &shares), 0);
	for (uint32_t h = 0; h < o->hosts; h++) {
		for (uint32_t m = 0; m < members(o, h); m++) {
			o->in[h][m] = malloc(o->count * o->esize);
			fill(o, o->in[h][m]);
		}
		o->area[h] = malloc(o->count * o->esize);
		o->direct[h] = malloc(o->count * o->esize);
		memcpy(o->area[h], o->in[h][0], o->count * o->esize);
		memset(o->direct[h], OLD_BYTE, o->count * o->esize);
		o->flags[h] = calloc(o->plan.n_segs, 1);
		if (o->feedback) {
			o->loss[h] = malloc(o->count * acc_size(o));
			o->want_loss[h] = malloc(o->count * acc_size(o));
			memset(o->loss[h], OLD_BYTE, o->count * acc_size(o));
		}
	}
}

static void free_op(struct quant_op *o)
{
	for (uint32_t h = 0; h < o->hosts; h++) {
		for (uint32_t m = 0; m < members(o, h); m++)
			free(o->in[h][m]);
		free(o->area[h]);
		free(o->direct[h]);
		free(o->scratch[h]);
		free((void *)o->flags[h]);
		free(o->loss[h]);
		free(o->want_loss[h]);
	}
}

static void start_host(struct net *n, struct quant_op *o, uint32_t pos)
{
	static struct shm_slot slot; /* nothing is staged, so nobody writes to it */
	struct eng_member m[MEMBERS_MAX];
	struct eng_peer peers[HOSTS_MAX];
	struct eng_xfer_spec s = {.seq = o->seq,
		.dtype = o->quant.sum.dtype,
		.op = o->op,
		.quant = o->quant,
		.plan = o->plan,
		.segment_max = 32768,
		.route = o->route,
		.rings = o->route == CC_ALGO_RINGS ? &o->rings : NULL,
		.pos = pos,
		.world_size = world_size(o),
		.peers = peers,
		.area = o->area[pos],
		.direct = o->undo ? o->direct[pos] : NULL,
		.flags = o->flags[pos],
		.residual = o->residual[pos],
		.loss = o->loss[pos],
		.n_members = members(o, pos),
		.members = m};

	fill_peers(n, pos, peers);
	for (uint32_t i = 0; i < s.n_members; i++)
		m[i] = (struct eng_member){
			.in = o->in_place ? o->area[pos] : o->in[pos][i], .slot = &slot};
	s.scratch = o->scratch[pos] = malloc(eng_scratch_size(&s) + 1);
	ck_assert_int_eq(eng_start(n->h[pos].e, &s), 0);
}

/* ---- the model ---- */

/* The model of CC_ALGO_RINGS is that of CC_ALGO_RING, for each ring and with its order. Returns the
 * host at a position of the model. */
static uint32_t host_at(const struct quant_op *o, uint32_t pos)
{
	return o->order ? o->order[pos] : pos;
}

static double number_at(const struct quant_op *o, const void *acc, size_t i)
{
	return acc_size(o) == 8 ? ((const double *)acc)[i] : (double)((const float *)acc)[i];
}

/* Notes what the host at `pos` loses. On a ring it loses a part of its operand, and then a part
 * of the sum or of the result. */
static void lose(const void *arg, uint32_t pos, enum bch_sim_use use, uint64_t first,
	const void *before, const void *after, size_t n)
{
	const struct quant_op *o = arg;
	uint8_t *to = o->want_loss[host_at(o, pos)] + first * acc_size(o);
	uint32_t factor = use == BCH_SIM_RESULT && o->op == KRN_AVG ? world_size(o) : 1;
	bool more = use != BCH_SIM_OPERAND && cc_route_is_chain(o->route);

	for (size_t i = 0; i < n; i++) {
		double loss, old = more ? number_at(o, to, i) : 0;

		if (acc_size(o) == 8) {
			loss = (number_at(o, before, i) - number_at(o, after, i)) * factor + old;
			((double *)(void *)to)[i] = isfinite(loss) ? loss : 0;
		} else {
			float d = (float)(number_at(o, before, i) - number_at(o, after, i));
			float scaled = d * (float)factor;

			scaled += (float)old;
			((float *)(void *)to)[i] = isfinite(scaled) ? scaled : 0;
		}
	}
}

/* Writes the operands of a host, with its residual, as numbers of the accumulator type. */
static void operand_of(const void *arg, uint32_t pos, uint64_t first, void *acc, size_t n)
{
	const struct quant_op *o = arg;
	const void *srcs[MEMBERS_MAX];
	uint8_t *sum = malloc(n * o->esize);
	uint32_t h = host_at(o, pos);

	for (uint32_t m = 0; m < members(o, h); m++)
		srcs[m] = o->in[h][m] + first * o->esize;
	krn_reduce(o->quant.sum.dtype, o->op, sum, srcs, members(o, h), n);
	qnt_load(&o->quant.sum, acc, sum, n);
	free(sum);
	if (o->residual[h]) {
		const void *both[] = {acc, o->residual[h] + first * acc_size(o)};

		krn_reduce(qnt_acc_dtype(&o->quant.sum), KRN_SUM, acc, both, 2, n);
	}
}

static uint64_t noise_key_of(const void *arg, uint32_t pos, enum bch_sim_use use)
{
	const struct quant_op *o = arg;
	const struct eng_xfer_spec s = {.seq = o->seq, .pos = host_at(o, pos)};

	return eng_noise_key(&s, use);
}

/* Computes the result of one segment. */
static void model(const struct quant_op *o, uint32_t seg, uint8_t *ret)
{
	uint32_t chunk = seg / o->plan.segs_per_chunk;
	enum cc_algo algo = o->route == CC_ALGO_RINGS ? CC_ALGO_RING : o->route;
	struct quant_op one = *o;
	const struct bch_sim sim = {.route = {.algo = algo, .hosts = o->hosts},
		.op = o->op,
		.world_size = world_size(o),
		.quantized = true,
		.sum = o->quant.sum,
		.result = o->quant.result,
		.operand = operand_of,
		.noise_key = noise_key_of,
		.encoded = o->feedback ? lose : NULL,
		.arg = &one};
	struct cc_span span = cc_plan_segment(&o->plan, seg);
	size_t n = span.len / o->esize;
	void *acc = malloc(n * 8 + 1);

	if (o->route == CC_ALGO_RINGS)
		one.order = o->rings.order[chunk / o->hosts];
	ck_assert_int_eq(bch_sim_segment(&sim, chunk % o->hosts, span.off / o->esize, acc, n), 0);
	qnt_store(&o->quant.result, ret + span.off, acc, n);
	free(acc);
}

static void check_op(const struct quant_op *o)
{
	uint8_t *want = malloc(o->count * o->esize);

	for (uint32_t seg = 0; seg < o->plan.n_segs; seg++)
		model(o, seg, want);
	for (uint32_t h = 0; h < o->hosts; h++) {
		const uint8_t *got = o->undo ? o->direct[h] : o->area[h];

		ck_assert_msg(memcmp(got, want, o->count * o->esize) == 0,
			"host %u of %u: scheme %d, code %d, type %d, operator %d, route %d, %llu "
			"elements",
			h, o->hosts, o->quant.sum.scheme, o->quant.sum.code, o->quant.sum.dtype,
			o->op, o->route, (unsigned long long)o->count);
		if (o->feedback)
			ck_assert_msg(
				memcmp(o->loss[h], o->want_loss[h], o->count * acc_size(o)) == 0,
				"loss of host %u of %u: scheme %d, code %d, operator %d, route %d",
				h, o->hosts, o->quant.sum.scheme, o->quant.sum.code, o->op,
				o->route);
		if (o->undo)
			ck_assert(all_bytes(o->area[h], OLD_BYTE, o->count * o->esize));
	}
	free(want);
}

/* The caller calls free_op. */
static void run_prepared(struct net *n, struct quant_op *o)
{
	uint32_t late = (uint32_t)o->seq % n->hosts; /* gets segments before it starts */
	struct eng_event early;

	for (uint32_t h = 0; h < n->hosts; h++)
		if (h != late)
			start_host(n, o, h);
	if (o->seq % 20 == 0)
		ck_assert(!wait_event(&n->h[late], &early, 20));
	start_host(n, o, late);
	for (uint32_t h = 0; h < n->hosts; h++) {
		struct eng_event ev;

		ck_assert_msg(wait_event(&n->h[h], &ev, WAIT_MS), "host %u: no end", h);
		ck_assert_int_eq(ev.type, ENG_XFER_DONE);
	}
	check_op(o);
	for (uint32_t h = 0; h < n->hosts; h++)
		eng_release(n->h[h].e, o->seq);
}

static void run_quant(struct net *n, struct quant_op *o)
{
	prepare_op(o);
	run_prepared(n, o);
	free_op(o);
}

/* ---- tests ---- */

static const struct {
	enum qnt_scheme scheme;
	enum qnt_code sum, result;
	uint32_t block, result_block;
	bool stochastic;
} modes[] = {
	{QNT_MIN_MAX, QNT_U8, QNT_U8, 0, 0, false},
	{QNT_MIN_MAX, QNT_I16, QNT_I16, 0, 0, true},
	{QNT_ZERO_POINT, QNT_I8, QNT_I8, 0, 0, false},
	{QNT_ZERO_POINT, QNT_U16, QNT_U16, 0, 0, false},
	{QNT_CAST, QNT_BF16, QNT_BF16, 0, 0, false},
	{QNT_CAST, QNT_F16, QNT_F16, 0, 0, false},
	{QNT_BLOCK, QNT_I8, QNT_I8, 256, 256, false},
	{QNT_BLOCK, QNT_I8, QNT_I8, 32, 32, true},
	{QNT_BLOCK, QNT_I4, QNT_I4, 32, 32, false},
	{QNT_BLOCK, QNT_N4, QNT_I8, 32, 256, false},
	{QNT_BLOCK, QNT_E4M3, QNT_E4M3, 1024, 1024, false},
	{QNT_BLOCK, QNT_E5M2, QNT_E5M2, 64, 64, false},
};
#define MODES (sizeof modes / sizeof modes[0])

static struct qnt_format format(
	enum krn_dtype dtype, size_t mode, enum qnt_code code, uint32_t block)
{
	return (struct qnt_format){.dtype = dtype,
		.scheme = modes[mode].scheme,
		.code = code,
		.block = block,
		.bf16_scale = modes[mode].scheme == QNT_BLOCK && mode % 2,
		.hint = code == QNT_N4 ? QNT_HINT_NORMAL : QNT_HINT_NONE,
		.stochastic = modes[mode].stochastic};
}

static bool set_mode(struct quant_op *o, size_t mode, enum krn_dtype dtype)
{
	o->quant.on = true;
	o->quant.sum = format(dtype, mode, modes[mode].sum, modes[mode].block);
	o->quant.result = format(dtype, mode, modes[mode].result, modes[mode].result_block);
	return modes[mode].scheme != QNT_CAST || dtype == KRN_F32 || dtype == KRN_F64;
}

/* Puts an infinite number into the first operand: its scale gives NaN to other elements. */
static void spoil(const struct quant_op *o)
{
	const float f = INFINITY;
	const double d = INFINITY;

	qnt_store(&o->quant.sum, o->in[0][0] + o->count / 2 * o->esize,
		acc_size(o) == 8 ? (const void *)&d : (const void *)&f, 1);
}

START_TEST(all_hosts_have_the_bits_of_the_model)
{
	static const enum krn_dtype types[] = {KRN_F32, KRN_F16, KRN_BF16, KRN_F64};
	static const uint64_t counts[] = {1, 5, 999, 20011, COUNT_MAX};
	const uint32_t hosts = 2 + (uint32_t)_i % 7;
	struct net n;
	uint64_t seq = 0;

	rng_state = (uint64_t)_i + 3;
	net_up_mesh(&n, hosts, 1 + (uint32_t)_i % 3);
	for (size_t mode = 0; mode < MODES; mode++) {
		for (enum cc_algo route = 0; route < CC_ALGO_COUNT; route++) {
			struct quant_op o = {.route = route, .hosts = hosts};

			o.seq = ++seq;
			o.op = (enum krn_op)(seq % KRN_OP_COUNT);
			o.count = counts[seq % 5];
			o.undo = seq % 7 == 0;
			o.in_place = seq % 7 == 1;
			if (set_mode(&o, mode, types[(seq + (uint64_t)_i) % 4]))
				run_quant(&n, &o);
		}
	}
	net_down(&n);
}
END_TEST

/* Each of three operations adds what the one before it has lost. */
START_TEST(losses_are_added_to_the_next_operand)
{
	static const enum krn_dtype types[] = {KRN_F32, KRN_F16, KRN_BF16, KRN_F64};
	const uint32_t hosts = 2 + (uint32_t)_i % 7;
	struct net n;
	uint64_t seq = 0;

	rng_state = (uint64_t)_i + 11;
	net_up_mesh(&n, hosts, 1 + (uint32_t)_i % 3);
	for (size_t mode = 0; mode < MODES; mode++) {
		for (enum cc_algo route = 0; route < CC_ALGO_COUNT; route++) {
			struct quant_op o[3];
			enum krn_dtype type = types[(mode + route + (uint64_t)_i) % 4];

			for (int k = 0; k < 3; k++) {
				seq++;
				o[k] = (struct quant_op){.route = route,
					.hosts = hosts,
					.seq = seq,
					.op = seq % 5 < 2 ? KRN_SUM : KRN_AVG,
					.count = mode % 3 == 0 ? 20011 : 999,
					.feedback = true};
				(void)set_mode(&o[k], mode, type);
			}
			if (!set_mode(&o[0], mode, type))
				continue;
			for (int k = 0; k < 3; k++) {
				for (uint32_t h = 0; k > 0 && h < hosts; h++)
					o[k].residual[h] = o[k - 1].loss[h];
				prepare_op(&o[k]);
				if (k == 1)
					spoil(&o[k]);
				run_prepared(&n, &o[k]);
			}
			for (int k = 0; k < 3; k++)
				free_op(&o[k]);
		}
	}
	net_down(&n);
}
END_TEST

/* A cancelled transfer does not change the residual, so the same transfer can be repeated. */
START_TEST(cancelled_transfers_leave_the_residual)
{
	uint8_t *residual[2];
	struct net n;
	struct quant_op o = {.seq = 1, .hosts = 2, .count = COUNT_MAX, .feedback = true};
	struct eng_event ev;

	net_up_mesh(&n, 2, 1);
	set_mode(&o, 8, KRN_F32);
	prepare_op(&o);
	for (uint32_t h = 0; h < 2; h++) {
		residual[h] = malloc(o.count * o.esize);
		fill(&o, residual[h]);
		o.residual[h] = residual[h];
	}
	start_host(&n, &o, 0); /* the other host never starts it */
	eng_cancel(n.h[0].e, 1);
	do
		ck_assert(wait_event(&n.h[0], &ev, WAIT_MS));
	while (ev.type != ENG_XFER_CANCELLED);
	eng_release(n.h[0].e, 1);
	eng_skip(n.h[1].e, 1);
	free(o.scratch[0]);
	o.seq += MEMBERS_MAX; /* as many members as before */
	run_prepared(&n, &o);
	free_op(&o);
	for (uint32_t h = 0; h < 2; h++)
		free(residual[h]);
	net_down(&n);
}
END_TEST

/* Cancels the transfer on all hosts, and restores the flagged segments of the outputs. */
static void cancel_quant(struct net *n, struct quant_op *o)
{
	for (uint32_t h = 0; h < o->hosts; h++)
		eng_cancel(n->h[h].e, o->seq);
	for (uint32_t h = 0; h < o->hosts; h++) {
		struct eng_event ev;

		ck_assert(wait_event(&n->h[h], &ev, WAIT_MS));
		ck_assert_int_eq(ev.type, ENG_XFER_CANCELLED);
		for (uint32_t s = 0; s < o->plan.n_segs; s++) {
			struct cc_span span = cc_plan_segment(&o->plan, s);

			if (o->flags[h][s])
				memcpy(o->direct[h] + span.off, o->area[h] + span.off, span.len);
		}
		ck_assert(all_bytes(o->direct[h], OLD_BYTE, o->count * o->esize));
		eng_release(n->h[h].e, o->seq);
	}
}

/* After a cancel at any time, the outputs can be restored, and the next transfer succeeds. */
START_TEST(outputs_can_be_restored_after_a_cancel)
{
	static const size_t some[] = {0, 6, 8, 9};
	const uint32_t hosts = 3 + (uint32_t)_i / CC_ALGO_COUNT;
	struct net n;

	rng_state = (uint64_t)_i + 5;
	net_up_mesh(&n, hosts, 2);
	for (uint64_t round = 1; round <= TIMES(10); round++) {
		struct quant_op o = {.route = (enum cc_algo)(_i % CC_ALGO_COUNT), .hosts = hosts};
		struct quant_op next = o;

		set_mode(&o, some[round % 4], KRN_F32);
		o.seq = 2 * round - 1;
		o.count = 10ull * COUNT_MAX;
		o.undo = true;
		prepare_op(&o);
		for (uint32_t h = 0; h < hosts; h++)
			start_host(&n, &o, h);
		for (uint64_t spin = rng() % 3000000; spin > 0; spin--)
			atomic_signal_fence(memory_order_seq_cst);
		cancel_quant(&n, &o);
		free_op(&o);
		set_mode(&next, some[round % 4], KRN_F32);
		next.seq = 2 * round;
		next.count = 5000;
		run_quant(&n, &next);
	}
	net_down(&n);
}
END_TEST

START_TEST(fewer_bytes_are_sent)
{
	struct net n;
	struct quant_op o = {.seq = 1, .hosts = 2, .count = COUNT_MAX};
	struct eng_event ev;

	net_up_mesh(&n, 2, 1);
	set_mode(&o, 8, KRN_F32); /* int4, blocks of 32: 4.5 bits */
	prepare_op(&o);
	for (uint32_t h = 0; h < 2; h++)
		start_host(&n, &o, h);
	for (uint32_t h = 0; h < 2; h++) {
		ck_assert(wait_event(&n.h[h], &ev, WAIT_MS));
		ck_assert_int_eq(ev.type, ENG_XFER_DONE);
		ck_assert_uint_ge(ev.tx_bytes, o.count * 9 / 16);
		ck_assert_uint_lt(ev.tx_bytes, o.count * 10 / 16);
		ck_assert_uint_lt(ev.rx_bytes, o.count * 10 / 16);
		eng_release(n.h[h].e, 1);
	}
	free_op(&o);
	net_down(&n);
}
END_TEST

Suite *quant_suite(void)
{
	Suite *s = suite_create("quant");
	TCase *tc = tcase_create("transfers");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, all_hosts_have_the_bits_of_the_model, 0, 14);
	tcase_add_loop_test(tc, losses_are_added_to_the_next_operand, 0, 7);
	tcase_add_test(tc, cancelled_transfers_leave_the_residual);
	tcase_add_loop_test(tc, outputs_can_be_restored_after_a_cancel, 0, 2 * CC_ALGO_COUNT);
	tcase_add_test(tc, fewer_bytes_are_sent);
	suite_add_tcase(s, tc);
	return s;
}
