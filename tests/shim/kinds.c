/* SPDX-License-Identifier: MIT
 *
 * Operands, results and tensors in another kind of user memory (dummy.h), which no CPU can access.
 * Code that accesses them without the functions of this kind ends the test.
 */
#include <pthread.h>

#include "kernels/hsh.h"
#include "libpccl-shim/buf.h"
#include "tests/shim/dummy.h"
#include "tests/shim/state.h"

enum { SEGMENT = CC_PLAN_SEGMENT_MIN };

#define WINDOW_FROM ((size_t)16 << 20)
#define OLD         0x3cu

/* Which of operand and result are in the other kind of memory. */
enum where { IN_PLACE = 0, APART, ONLY_OPERAND, ONLY_RESULT, WHERES };

struct pair {
	size_t bytes;
	uint8_t *send, *recv;   /* the addresses that the library gets */
	uint8_t *sent, *result; /* the addresses at which the test sees their contents */
	uint8_t *operand, *host;
};

static struct pair pair_new(enum where where, size_t bytes)
{
	struct pair p = {.bytes = bytes, .operand = malloc(bytes), .host = malloc(bytes)};
	struct tl_rng rng = tl_rng_new(bytes);

	ck_assert(p.operand && p.host && 2 * bytes + 64 < DUMMY_SIZE);
	p.send = where == ONLY_RESULT ? p.host : dummy_memory() + 8;
	p.recv = where == IN_PLACE       ? p.send
		 : where == ONLY_OPERAND ? p.host
					 : dummy_memory() + bytes / 8 * 8 + 32;
	p.sent = p.send == p.host ? p.host : dummy_seen(p.send);
	p.result = p.recv == p.host ? p.host : dummy_seen(p.recv);
	memset(p.result, OLD, bytes);
	for (size_t i = 0; i < bytes; i++)
		p.sent[i] = p.operand[i] = (uint8_t)tl_u64(&rng);
	return p;
}

static void pair_free(struct pair *p)
{
	free(p->operand);
	free(p->host);
}

static void assert_result(const struct pair *p)
{
	for (size_t i = 0; i < p->bytes; i++)
		if (p->result[i] != (p->operand[i] ^ FAKE_XOR))
			ck_abort_msg("byte %zu of %zu is wrong", i, p->bytes);
}

static void assert_untouched(const struct pair *p)
{
	ck_assert_int_eq(memcmp(p->sent, p->operand, p->bytes), 0);
	for (size_t i = 0; i < p->bytes && p->result != p->sent; i++)
		if (p->result[i] != OLD)
			ck_abort_msg("byte %zu of %zu has changed", i, p->bytes);
}

static pcclReduceDescriptor_t descriptor(const struct pair *p, uint64_t tag)
{
	return (pcclReduceDescriptor_t){.count = p->bytes,
		.op = pcclSum,
		.tag = tag,
		.src_descriptor = {.datatype = pcclUint8}};
}

static void *serve(void *arg)
{
	struct fake_op op = fake_take(fx_agent);

	fake_serve(&op, *(const enum shm_result_mode *)arg);
	return NULL;
}

/* The operands are small, or large (a thread of the library copies them), or pass through windows.
 */
START_TEST(operations_on_the_other_kind_succeed)
{
	static const size_t sizes[] = {1, 4096, 100003, 5 << 20, WINDOW_FROM + 1};
	enum shm_result_mode mode = _i / WHERES ? SHM_RESULT_STAGED : SHM_RESULT_AREA;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct pair p = pair_new((enum where)(_i % WHERES), sizes[i]);
		pcclReduceDescriptor_t d = descriptor(&p, 5);
		bool window = sizes[i] >= WINDOW_FROM;
		pcclAsyncReduceOp_t handle;
		pthread_t t;

		if (!window || mode == SHM_RESULT_AREA) {
			ck_assert_int_eq(pthread_create(&t, NULL, serve, &mode), 0);
			fx_assert_succeeds(pcclAllReduce(p.send, p.recv, &d, fx_comm, NULL));
			pthread_join(t, NULL);
			assert_result(&p);
		}
		pair_free(&p);
		p = pair_new((enum where)(_i % WHERES), sizes[i]);
		ck_assert_int_eq(pthread_create(&t, NULL, serve, &mode), 0);
		fx_assert_succeeds(pcclAllReduceAsync(p.send, p.recv, &d, fx_comm, &handle));
		fx_assert_succeeds(pcclAwaitAsyncReduce(&handle, NULL));
		pthread_join(t, NULL);
		assert_result(&p);
		pair_free(&p);
	}
}
END_TEST

static void *call(void *arg)
{
	struct pair *p = arg;
	pcclReduceDescriptor_t d = descriptor(p, 6);

	fx_assert_fails(pcclAllReduce(p->send, p->recv, &d, fx_comm, NULL), pcclRankConnectionLost,
		"a peer was lost");
	return NULL;
}

/* When the operation fails, half of the result has been copied out, or exchanged with the old
 * contents. */
START_TEST(failures_restore_memory_of_the_other_kind)
{
	enum shm_result_mode mode = _i / WHERES ? SHM_RESULT_STAGED : SHM_RESULT_AREA;
	struct pair p = pair_new((enum where)(_i % WHERES), 100003);
	struct fake_op op;
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, call, &p), 0);
	op = fake_take(fx_agent);
	fake_await_input(&op, op.bytes);
	fake_begin(&op, mode, 3, SEGMENT);
	for (uint32_t i = 0; i < op.plan.n_segs / 2; i++)
		fake_segment(&op, i);
	if (mode == SHM_RESULT_STAGED || _i % WHERES == IN_PLACE)
		fake_await_asleep(&op, SHM_WAIT_SEGMENTS);
	fake_end(&op, pcclRankConnectionLost, "a peer was lost");
	pthread_join(t, NULL);
	assert_untouched(&p);
	pair_free(&p);
}
END_TEST

/* ---- shared state */

/* Moves all tensors, or every second one, to the other kind of memory. s->data is where the test
 * sees them. */
static void move(struct st_state *s, unsigned step)
{
	size_t off = 40;

	for (unsigned i = 0; i < TENSORS; i += step) {
		uint8_t *at = dummy_memory() + off;

		if (s->bytes[i] > 0)
			memcpy(dummy_seen(at), s->data[i], s->bytes[i]);
		free(s->data[i]);
		s->data[i] = dummy_seen(at);
		s->infos[st_order[i]].data = at;
		s->infos[st_order[i]].device_type = pcclDeviceCuda;
		off += s->bytes[i] + 24;
	}
}

static void free_others(struct st_state *s, unsigned step)
{
	for (unsigned i = 0; i < TENSORS; i++)
		if (i % step != 0)
			free(s->data[i]);
}

/* Reads and writes all tensors, and copies one from memory of another peer. */
static void read_write_copy(struct fake_op *op, void *arg)
{
	struct shm_state st = fake_manifest(op);
	struct shm_state_command c = {
		.op = SHM_STATE_WRITE, .slot = 5, .tensor = WIDE, .len = WIRE_LEAF + 1000};
	const struct st_state *old = arg;
	uint8_t *theirs;

	for (unsigned i = 0; i < TENSORS; i++) {
		for (uint64_t off = 0; i != MINE && off < old->bytes[i]; off += WIRE_LEAF) {
			uint64_t left = old->bytes[i] - off, n = off / WIRE_LEAF;

			ck_assert_uint_eq(
				shm_state_leaf(op->manifest, &st, st.tensors[i].first_leaf + n),
				hsh_leaf(old->data[i] + off, left < WIRE_LEAF ? left : WIRE_LEAF,
					n));
		}
	}
	shm_state_clear(&st);
	fake_sync_begin(op);
	for (unsigned i = 0; i < TENSORS; i++) {
		for (uint64_t off = 0; i != MINE && off < old->bytes[i]; off += SHM_STATE_SLOT) {
			uint64_t left = old->bytes[i] - off;
			uint32_t len = left < SHM_STATE_SLOT ? (uint32_t)left : SHM_STATE_SLOT;
			uint8_t *window = fake_window(op, 3);

			fake_command(op, SHM_STATE_READ, 3, i, off, len);
			ck_assert_uint_eq(fake_await_acks(op), 3);
			ck_assert_int_eq(memcmp(window, old->data[i] + off, len), 0);
			for (uint32_t k = 0; k < len; k++)
				window[k] ^= FAKE_XOR;
			fake_command(op, SHM_STATE_WRITE, 3, i, off, len);
			ck_assert_uint_eq(fake_await_acks(op), 3);
		}
	}
	c.from = fake_show(op, c.len, &theirs);
	for (uint32_t i = 0; i < c.len; i++)
		theirs[i] = old->data[WIDE][i] ^ FAKE_XOR;
	c.leaves[0] = hsh_leaf(theirs, WIRE_LEAF, 0);
	c.leaves[1] = hsh_leaf(theirs + WIRE_LEAF, 1000, 1);
	fake_give(op, &c);
	ck_assert_uint_eq(fake_await_acks(op), 5);
	c.leaves[1] ^= 1;
	fake_give(op, &c);
	ck_assert_uint_eq(fake_await_acks(op), 5 | SHM_STATE_WRONG);
	fake_complete(op, 7);
	fake_sync_end(op, 0, NULL, 7, 0, 0);
}

START_TEST(shared_state_of_the_other_kind_is_synchronized)
{
	unsigned step = (unsigned)_i;
	struct st_state s, old;

	st_init(&s, 1);
	st_init(&old, 1);
	move(&s, step);
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, read_write_copy, &old));
	for (unsigned i = 0; i < TENSORS; i++)
		for (uint64_t k = 0; k < s.bytes[i]; k++)
			ck_assert_uint_eq(
				s.data[i][k], old.data[i][k] ^ (i == MINE ? 0 : FAKE_XOR));
	free_others(&s, step);
	st_free(&old);
}
END_TEST

static const struct pccl_buf_kind *kind_of(const void *at)
{
	struct pccl_buf b = pccl_buf_host_at(at), same = b;

	pccl_buf_find(&b, &same);
	ck_assert_ptr_eq(same.kind, b.kind);
	return b.kind;
}

START_TEST(the_kind_of_memory_is_found_by_its_address)
{
	pcclBuildInfo_t info = {.has_cuda_support = false};
	uint8_t host[8] = {0};
	struct pccl_buf send = pccl_buf_host_at(host), recv = pccl_buf_host_at(dummy_memory());

	ck_assert_ptr_eq(kind_of(host), &pccl_buf_host);
	ck_assert_ptr_eq(kind_of(NULL), &pccl_buf_host);
	ck_assert_ptr_eq(kind_of(dummy_memory()), &DUMMY_KIND);
	ck_assert_ptr_eq(kind_of(dummy_memory() + DUMMY_SIZE - 1), &DUMMY_KIND);
	ck_assert_ptr_eq(kind_of(dummy_memory() + DUMMY_SIZE), &pccl_buf_host);
	pccl_buf_find(&send, &recv);
	ck_assert_ptr_eq(send.kind, &pccl_buf_host);
	ck_assert_ptr_eq(recv.kind, &DUMMY_KIND);
	ck_assert_ptr_eq(pccl_buf_of_device(pcclDeviceCpu), &pccl_buf_host);
	ck_assert_ptr_eq(pccl_buf_of_device(pcclDeviceCuda), &DUMMY_KIND);
	ck_assert_ptr_null(pccl_buf_of_device((pcclDeviceType_t)7));
	fx_assert_succeeds(pcclGetBuildInfo(&info));
	ck_assert(info.has_cuda_support);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kinds");
	TCase *tc = tcase_create("kinds");

	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, the_kind_of_memory_is_found_by_its_address);
	tcase_add_loop_test(tc, operations_on_the_other_kind_succeed, 0, 2 * WHERES);
	tcase_add_loop_test(tc, failures_restore_memory_of_the_other_kind, 0, 2 * WHERES);
	tcase_add_loop_test(tc, shared_state_of_the_other_kind_is_synchronized, 1, 3);
	suite_add_tcase(s, tc);
	return tl_run(s);
}
