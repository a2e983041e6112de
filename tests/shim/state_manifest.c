/* SPDX-License-Identifier: MIT
 *
 * pcclSynchronizeSharedState: calls that are refused, the candidate of a call (its manifest,
 * hashes and digests), and the memory that a call uses.
 */
#include "kernels/hsh_run.h"
#include "tests/shim/buffers.h"
#include "tests/shim/state.h"
#include "tests/shim/suites.h"

/* ---- refused */

#define OVER ((uint64_t)1 << 48)

static void assert_refused(pcclSharedState_t *s, pcclResult_t code, const char *words)
{
	pcclSharedStateSyncInfo_t info = {1, 2};
	uint64_t revision = s->revision;

	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, s, ST_POPULAR, &info), code, words);
	ck_assert_uint_eq(s->revision, revision);
	ck_assert_uint_eq(info.tx_bytes, 1);
	ck_assert_uint_eq(info.rx_bytes, 2);
	ck_assert_uint_eq(fake_waiting(fx_agent), 0);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_ALLOC), 0);
}

START_TEST(wrong_pointers_and_strategies_are_refused)
{
	struct st_state s;

	st_init(&s, 1);
	fx_assert_fails(pcclSynchronizeSharedState(NULL, &s.shared, ST_SEND, NULL),
		pcclInvalidArgument, "communicator");
	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, NULL, ST_SEND, NULL),
		pcclInvalidArgument, "shared_state must not be NULL");
	for (int i = -1; i <= 3; i += 4)
		fx_assert_fails(pcclSynchronizeSharedState(
					fx_comm, &s.shared, (pcclSharedStateSyncStrategy_t)i, NULL),
			pcclInvalidArgument, "there is no strategy");
	s.shared.infos = NULL;
	assert_refused(&s.shared, pcclInvalidArgument, "infos must not be NULL");
	st_free(&s);
}
END_TEST

static char long_name[1026];

/* An error in infos[2], and words of its sentence. */
static const struct wrong {
	pcclTensorInfo_t info;
	pcclResult_t code;
	const char *words;
} wrongs[] = {
	{{.name = NULL, .data = long_name, .count = 1}, pcclInvalidArgument,
		"infos[2]: name must not be NULL"},
	{{.name = "", .data = long_name, .count = 1}, pcclInvalidArgument,
		"infos[2]: name must not be empty"},
	{{.name = long_name, .data = long_name, .count = 1}, pcclInvalidArgument,
		"name has more than 1024 bytes"},
	{{.name = "w", .data = NULL, .count = 1}, pcclInvalidArgument,
		"infos[2] (\"w\"): data must not be NULL"},
	{{.name = "w", .data = long_name, .count = 1, .datatype = (pcclDataType_t)12},
		pcclInvalidArgument, "infos[2] (\"w\"): datatype: there is no type 12"},
	{{.name = "w", .data = long_name, .count = 1, .datatype = (pcclDataType_t)-1},
		pcclInvalidArgument, "datatype: there is no type -1"},
#ifndef HAVE_CUDA /* tests/cuda/device.c has such errors with CUDA */
	{{.name = "w", .data = long_name, .count = 1, .device_type = pcclDeviceCuda},
		pcclInternalError,
		"infos[2] (\"w\"): device_type is pcclDeviceCuda, and this library was built "
		"without CUDA: configure it with --with-cuda"},
#endif
	{{.name = "w", .data = long_name, .count = 1, .device_type = (pcclDeviceType_t)2},
		pcclInvalidArgument, "device_type: there is no type 2"},
	{{.name = "w", .data = long_name, .count = OVER / 4 + 1, .datatype = pcclFloat},
		pcclInvalidArgument,
		"count is 70368744177665, the limit for elements of 4 bytes is 70368744177664"},
	{{.name = "w", .data = long_name, .count = SIZE_MAX / 8 + 2, .datatype = pcclDouble},
		pcclInvalidArgument, "the limit for elements of 8 bytes is 35184372088832"},
	{{.name = "w", .data = long_name, .count = OVER}, pcclInvalidArgument, "281474976710656"},
	{{.name = "w", .data = (void *)(UINTPTR_MAX - 100), .count = 101}, pcclInvalidArgument,
		"beyond the address space"},
	{{.name = "bias", .data = long_name, .count = 1}, pcclInvalidArgument,
		"infos[2] and infos[3] have the same name \"bias\""},
	{{.name = "a\x01z", .data = NULL, .count = 1}, pcclInvalidArgument, "(\"a?z\")"},
};

START_TEST(wrong_tensors_are_refused)
{
	const struct wrong *w = &wrongs[_i];
	struct st_state s;

	st_init(&s, 1);
	memset(long_name, 'x', 1025);
	s.infos[2] = w->info;
	assert_refused(&s.shared, w->code, w->words);
	st_free(&s);
}
END_TEST

START_TEST(too_many_tensors_are_refused)
{
	pcclSharedState_t s = {.count = (1u << 20) + 1};

	s.infos = calloc(s.count, sizeof *s.infos);
	assert_refused(&s, pcclInvalidArgument, "count is 1048577, the limit is 1048576 tensors");
	free(s.infos);
}
END_TEST

/* A wrong call is refused also after a right call, and later calls still succeed. */
START_TEST(names_that_become_equal_are_refused)
{
	struct st_state s;

	st_init(&s, 1);
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, st_equal, NULL));
	s.infos[0].name = "wider";
	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s.shared, ST_POPULAR, NULL),
		pcclInvalidArgument, "infos[0] and infos[1] have the same name \"wider\"");
	s.infos[0].name = "another";
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, st_equal, NULL));
	s.shared.count = 3;
	s.infos[2].data = NULL;
	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s.shared, ST_POPULAR, NULL),
		pcclInvalidArgument, "infos[2]");
	s.shared.count = TENSORS;
	s.infos[2].data = s.data[WIDE];
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, st_equal, NULL));
	st_free(&s);
}
END_TEST

START_TEST(a_communicator_without_membership_is_refused)
{
	struct st_state s;
	pcclComm_t *c = fx_new_comm();

	st_init(&s, 1);
	fx_assert_fails(pcclSynchronizeSharedState(c, &s.shared, ST_POPULAR, NULL),
		pcclInvalidUsage, "not connected");
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	fake_lose(fx_agent, pcclRankConnectionLost, "too slow");
	assert_refused(&s.shared, pcclRankConnectionLost, "too slow");
	assert_refused(&s.shared, pcclInvalidUsage, "no longer part of the run: too slow");
	st_free(&s);
}
END_TEST

START_TEST(a_call_is_refused_while_operations_are_in_flight)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, 100, 1);
	pcclAsyncReduceOp_t h = bf_launch(&b, 1);
	struct fake_op op = fake_take(fx_agent);
	struct st_state s;

	st_init(&s, 1);
	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s.shared, ST_POPULAR, NULL),
		pcclPendingAsyncOps, "1 operations are in flight: await them before");
	ck_assert_uint_eq(fake_waiting(fx_agent), 0);
	fake_serve(&op, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(&b);
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, st_equal, NULL));
	bf_free(&b);
	st_free(&s);
}
END_TEST

/* Checks that another thread cannot start an operation during the call. */
static void reduce_meanwhile(struct fake_op *op, void *arg)
{
	pcclReduceDescriptor_t d = bf_descriptor(4, 1);
	pcclAsyncReduceOp_t h;
	uint8_t buf[4] = {0};

	fx_assert_fails(pcclAllReduceAsync(buf, buf, &d, fx_comm, &h), pcclInvalidUsage,
		"pcclSynchronizeSharedState is in progress");
	st_equal(op, arg);
}

START_TEST(no_operation_starts_during_a_synchronization)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, 100, 1);
	pcclAsyncReduceOp_t h;
	struct fake_op op;
	struct st_state s;

	st_init(&s, 1);
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, reduce_meanwhile, NULL));
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	ck_assert_ptr_null(op.manifest);
	fake_serve(&op, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_free(&b);
	st_free(&s);
}
END_TEST

/* ---- candidates */

struct candidate {
	struct shm_sqe_sync sync;
	uint64_t generation;
};

static void take_candidate(struct fake_op *op, void *arg)
{
	struct candidate *o = arg;

	o->sync = op->sqe.sync;
	o->generation = op->sqe.generation;
	st_equal(op, NULL);
}

static struct candidate candidate_of(pcclSharedState_t *s)
{
	struct candidate o;

	fx_assert_succeeds(st_sync(s, ST_POPULAR, NULL, take_candidate, &o));
	return o;
}

static bool same(const uint64_t a[2], const uint64_t b[2])
{
	return a[0] == b[0] && a[1] == b[1];
}

static void check_table(struct fake_op *op, void *arg)
{
	struct st_state *s = arg;
	struct shm_state st = fake_manifest(op);

	ck_assert_uint_eq(st.n_tensors, TENSORS);
	for (uint32_t i = 0; i < TENSORS; i++) {
		const struct shm_state_tensor *t = &st.tensors[i];
		const pcclTensorInfo_t *info = &s->infos[st_order[i]];
		uint64_t leaves[8];

		ck_assert_str_eq(fake_tensor_name(op, t), st_names[i]);
		ck_assert_uint_eq(t->count, info->count);
		ck_assert_uint_eq(t->dtype, info->datatype);
		ck_assert_uint_eq(t->bytes, s->bytes[i]);
		ck_assert_uint_eq(t->region, 0);
		ck_assert_int_eq(t->may_differ, i == MINE);
		if (i == MINE)
			continue;
		hsh_leaves(hsh_leaf, s->data[i], t->bytes, 0, 8, leaves);
		ck_assert_uint_eq(t->hash, hsh_tensor(leaves, t->bytes));
		for (uint64_t k = 0; k < wire_leaf_count(t->bytes); k++)
			ck_assert_uint_eq(
				shm_state_leaf(op->manifest, &st, t->first_leaf + k), leaves[k]);
	}
	shm_state_clear(&st);
	ck_assert_uint_eq(op->sqe.sync.bytes, st_bytes(s));
	ck_assert_uint_eq(op->sqe.sync.revision, 7);
	ck_assert_uint_eq(op->sqe.sync.strategy, ST_RECEIVE);
	ck_assert_uint_eq(op->sqe.sync.hash_type, WM_HASH_SIMPLE);
	st_equal(op, NULL);
}

START_TEST(the_manifest_describes_all_tensors)
{
	struct st_state s;

	st_init(&s, 1);
	fx_assert_succeeds(st_sync(&s.shared, ST_RECEIVE, NULL, check_table, &s));
	ck_assert_uint_eq(fake_last(fx_agent, WL_REGION_ALLOC).use, WL_REGION_STATE);
	st_free(&s);
}
END_TEST

/* The digests do not depend on the order of tensors, nor on tensors that may differ. */
START_TEST(digests_depend_on_keys_and_contents_only)
{
	struct candidate first, o;
	struct st_state s;
	pcclTensorInfo_t swap;

	st_init(&s, 1);
	first = candidate_of(&s.shared);
	for (unsigned i = 0; i + 1 < TENSORS; i++) {
		swap = s.infos[i];
		s.infos[i] = s.infos[i + 1];
		s.infos[i + 1] = swap;
		o = candidate_of(&s.shared);
		ck_assert(same(o.sync.keys, first.sync.keys));
		ck_assert(same(o.sync.content, first.sync.content));
	}
	s.data[MINE][0] ^= 1;
	o = candidate_of(&s.shared);
	ck_assert(same(o.sync.keys, first.sync.keys));
	ck_assert(same(o.sync.content, first.sync.content));
	s.data[WIDER][300000] ^= 1;
	o = candidate_of(&s.shared);
	ck_assert(same(o.sync.keys, first.sync.keys));
	ck_assert(!same(o.sync.content, first.sync.content));
	st_free(&s);
}
END_TEST

/* The example of proto/PROTOCOL.md, whose numbers do not change. _i: with CRC32C. */
START_TEST(digests_equal_the_example_of_the_protocol)
{
	static const uint64_t keys[] = {UINT64_C(0xf53a139186b4b0d8), UINT64_C(0x557a39fa2b03dbd8)};
	static const uint64_t contents[][2] = {
		{UINT64_C(0x8da9cb21bc56d1b0), UINT64_C(0xf1df412c46663fd4)},
		{UINT64_C(0x776ac08cb4abd0cf), UINT64_C(0xeb6617053d19cf03)}};
	uint8_t b[] = {1, 2, 3};
	int16_t m[] = {4, 5, 6, 7};
	pcclTensorInfo_t infos[] = {{.name = "m",
					    .data = m,
					    .count = 4,
					    .datatype = pcclInt16,
					    .allow_content_inequality = true},
		{.name = "a", .datatype = pcclFloat},
		{.name = "b", .data = b, .count = 3, .datatype = pcclUint8}};
	pcclSharedState_t s = {.count = 3, .infos = infos};
	struct candidate o;

	ck_assert_int_eq(setenv("PCCL_HASH_TYPE", _i ? "crc32c" : "simple", 1), 0);
	o = candidate_of(&s);
	unsetenv("PCCL_HASH_TYPE");
	ck_assert_uint_eq(o.sync.hash_type, _i ? WM_HASH_CRC32C : WM_HASH_SIMPLE);
	ck_assert(same(o.sync.keys, keys));
	ck_assert(same(o.sync.content, contents[_i]));
}
END_TEST

START_TEST(keys_are_names_types_counts_and_flags)
{
	struct candidate first, o;
	struct st_state s;

	st_init(&s, 1);
	first = candidate_of(&s.shared);
	switch (_i) {
	case 0:
		s.infos[1].name = "widest";
		break;
	case 1:
		s.infos[1].datatype = pcclInt8;
		break;
	case 2:
		s.infos[1].count--;
		break;
	case 3:
		s.infos[1].allow_content_inequality = true;
		break;
	default:
		s.shared.count--;
		break;
	}
	o = candidate_of(&s.shared);
	ck_assert(!same(o.sync.keys, first.sync.keys));
	st_free(&s);
}
END_TEST

static void check_crc(struct fake_op *op, void *arg)
{
	struct st_state *s = arg;
	struct shm_state st = fake_manifest(op);
	hsh_leaf_fn *leaf;
	char why[128];

	ck_assert(hsh_crc32c_load(&leaf, why, sizeof why));
	ck_assert_uint_eq(op->sqe.sync.hash_type, WM_HASH_CRC32C);
	ck_assert_uint_eq(shm_state_leaf(op->manifest, &st, st.tensors[BIAS].first_leaf),
		leaf(s->data[BIAS], s->bytes[BIAS], 0));
	shm_state_clear(&st);
	st_equal(op, NULL);
}

START_TEST(the_hash_is_chosen_by_environment)
{
	hsh_leaf_fn *leaf;
	struct st_state s;
	char why[128];

	st_init(&s, 1);
	ck_assert_int_eq(setenv("PCCL_HASH_TYPE", "md5", 1), 0);
	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s.shared, ST_POPULAR, NULL),
		pcclInvalidUsage, "PCCL_HASH_TYPE is \"md5\"");
	ck_assert_uint_eq(fake_waiting(fx_agent), 0);
	setenv("PCCL_HASH_TYPE", "simple", 1);
	ck_assert_uint_eq(candidate_of(&s.shared).sync.hash_type, WM_HASH_SIMPLE);
	setenv("PCCL_HASH_TYPE", "crc32c", 1);
	if (hsh_crc32c_load(&leaf, why, sizeof why))
		fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, check_crc, &s));
	else
		fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s.shared, ST_POPULAR, NULL),
			pcclInvalidUsage, "PCCL_HASH_TYPE is crc32c");
	unsetenv("PCCL_HASH_TYPE");
	st_free(&s);
}
END_TEST

/* The agent's setting counts if the environment has none. */
START_TEST(the_hash_is_chosen_by_the_agent)
{
	hsh_leaf_fn *leaf;
	struct st_state s;
	char why[128];

	fake_hash_type(fx_agent, _i ? WM_HASH_CRC32C : WM_HASH_SIMPLE);
	fx_comm = fx_new_comm();
	ck_assert_int_eq(pcclConnect(fx_comm), pcclSuccess);
	st_init(&s, 1);
	if (_i == 0 || hsh_crc32c_load(&leaf, why, sizeof why))
		ck_assert_uint_eq(candidate_of(&s.shared).sync.hash_type,
			_i ? WM_HASH_CRC32C : WM_HASH_SIMPLE);
	else
		fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s.shared, ST_POPULAR, NULL),
			pcclInvalidUsage, "setting hash_type is crc32c");
	setenv("PCCL_HASH_TYPE", "simple", 1);
	ck_assert_uint_eq(candidate_of(&s.shared).sync.hash_type, WM_HASH_SIMPLE);
	unsetenv("PCCL_HASH_TYPE");
	st_free(&s);
	ck_assert_int_eq(pcclDestroyCommunicator(fx_comm), pcclSuccess);
}
END_TEST

/* The manifest names the region and the offset of each tensor in memory of pcclMemAlloc, whatever
 * the tensor's address is. */
static void check_regions(struct fake_op *op, void *arg)
{
	struct st_state *s = arg;
	struct shm_state st = fake_manifest(op);

	for (uint32_t i = 0; i < TENSORS; i++) {
		const struct shm_state_tensor *t = &st.tensors[i];
		uint8_t *map;

		if (i != BIAS && i != WIDER) {
			ck_assert_uint_eq(t->region, 0);
			continue;
		}
		ck_assert_uint_ge(fake_region(fx_agent, t->region, &map), t->region_off + t->bytes);
		ck_assert_int_eq(
			memcmp(map + t->region_off, s->infos[st_order[i]].data, t->bytes), 0);
	}
	shm_state_clear(&st);
	st_equal(op, NULL);
}

START_TEST(registered_memory_is_in_the_manifest)
{
	uint8_t *p;
	struct st_state s;

	st_init(&s, 1);
	fx_assert_succeeds(pcclMemAlloc(1 << 20, (void **)&p));
	memcpy(p + 1, s.data[BIAS], s.bytes[BIAS]);
	memcpy(p + 700000, s.data[WIDER], s.bytes[WIDER]);
	s.infos[st_order[BIAS]].data = p + 1;
	s.infos[st_order[WIDER]].data = p + 700000;
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, check_regions, &s));
	fx_assert_succeeds(pcclMemFree(p)); /* no call uses the memory any more */
	st_free(&s);
}
END_TEST

static void check_no_region(struct fake_op *op, void *arg)
{
	struct shm_state st = fake_manifest(op);

	(void)arg;
	ck_assert_uint_eq(st.tensors[0].region, 0);
	shm_state_clear(&st);
	st_equal(op, NULL);
}

/* The memory ends before its last page does. */
START_TEST(a_tensor_beyond_registered_memory_is_not_registered)
{
	pcclTensorInfo_t info = {.name = "t", .count = 101};
	pcclSharedState_t s = {.count = 1, .infos = &info};

	fx_assert_succeeds(pcclMemAlloc(100, &info.data));
	fx_assert_succeeds(st_sync(&s, ST_POPULAR, NULL, check_no_region, NULL));
	fx_assert_succeeds(pcclMemFree(info.data));
}
END_TEST

static void free_meanwhile(struct fake_op *op, void *arg)
{
	fx_assert_fails(pcclMemFree(arg), pcclInvalidUsage, "in flight");
	st_equal(op, NULL);
}

START_TEST(registered_memory_cannot_be_freed_during_a_call)
{
	pcclTensorInfo_t info = {.name = "t", .count = 10};
	pcclSharedState_t s = {.count = 1, .infos = &info};

	fx_assert_succeeds(pcclMemAlloc(10, &info.data));
	fx_assert_succeeds(st_sync(&s, ST_POPULAR, NULL, free_meanwhile, info.data));
	fx_assert_succeeds(pcclMemFree(info.data));
}
END_TEST

START_TEST(a_state_without_tensors_can_be_synchronized)
{
	pcclSharedState_t s = {.revision = 3};
	struct candidate o = candidate_of(&s);

	ck_assert_uint_eq(o.sync.n_tensors, 0);
	ck_assert_uint_eq(o.sync.bytes, 0);
}
END_TEST

/* Tests names of the greatest length, and the greatest number of tensors. */
START_TEST(many_tensors_can_be_synchronized)
{
	size_t n = _i ? 1 << 20 : 10000, len = _i ? 12 : 1024;
	pcclSharedState_t s = {.count = n, .infos = calloc(n, sizeof *s.infos)};
	char *names = calloc(n, len + 1);
	struct candidate o;

	ck_assert(s.infos && names);
	for (size_t i = 0; i < n; i++) {
		char *name = names + i * (len + 1);

		memset(name, 'n', len);
		/* the names are not sorted */
		snprintf(name + len - 8, 9, "%08zx", i * 0x9e3779b1u & 0xffffffffu);
		s.infos[i] = (pcclTensorInfo_t){
			.name = name, .data = name, .count = i % 5, .datatype = pcclUint8};
	}
	o = candidate_of(&s);
	ck_assert_uint_eq(o.sync.n_tensors, n);
	ck_assert_uint_eq(o.sync.bytes, n / 5 * 10 + (n % 5) * (n % 5 - 1) / 2);
	s.infos[n - 1].name = s.infos[0].name;
	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s, ST_POPULAR, NULL),
		pcclInvalidArgument, "same name");
	free(names);
	free(s.infos);
}
END_TEST

/* ---- the memory of a call */

static void check_fresh(struct fake_op *op, void *arg)
{
	static const uint8_t zeros[SHM_STATE_TABLES];

	(void)arg;
	ck_assert_int_eq(memcmp(op->manifest + SHM_STATE_END_OFF, zeros,
				 SHM_STATE_TABLES - SHM_STATE_END_OFF),
		0);
	fake_sync_begin(op);
	fake_command(op, SHM_STATE_READ, 5, BIAS, 0, 24);
	fake_await_acks(op);
	fake_complete(op, 7);
	st_equal(op, NULL);
}

START_TEST(the_region_of_the_manifest_is_kept)
{
	struct st_state s;

	st_init(&s, 1);
	for (int i = 0; i < 5; i++) {
		fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, check_fresh, NULL));
		s.infos[1].count -= 70000;
	}
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_ALLOC), 1);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_FREE), 0);
	st_free(&s);
}
END_TEST

/* A larger state needs a larger region. At a much smaller state, the shim gives the large region
 * back. */
START_TEST(the_region_of_the_manifest_grows_and_shrinks)
{
	pcclTensorInfo_t info = {.name = "t", .count = (size_t)1 << 30};
	pcclSharedState_t s = {.count = 1, .infos = &info};

	/* a tensor that may differ is not hashed, so its memory is not accessed */
	info.allow_content_inequality = true;
	info.data = &info;
	for (int i = 0; i < 3; i++) {
		info.count = i == 1 ? (size_t)1 << 37 : 1 << 20;
		candidate_of(&s);
		ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_ALLOC), (unsigned)i + 1);
		ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_FREE), (unsigned)i);
	}
}
END_TEST

START_TEST(staging_memory_is_freed_if_memory_is_short)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, 100, 1);
	pcclAsyncReduceOp_t h = bf_launch(&b, 1);
	struct fake_op op = fake_take(fx_agent);
	struct st_state s;

	fake_serve(&op, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	st_init(&s, 1);
	fake_script(fx_agent, WL_REGION_ALLOC, FAKE_REFUSE, pcclOutOfMemory, "limit of this user");
	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s.shared, ST_POPULAR, NULL),
		pcclOutOfMemory, "limit of this user");
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_FREE), 1);
	fake_script(fx_agent, WL_REGION_ALLOC, FAKE_ANSWER, 0, NULL);
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, st_equal, NULL));
	bf_free(&b);
	st_free(&s);
}
END_TEST

Suite *state_manifest_suite(void)
{
	Suite *s = suite_create("state_manifest");
	TCase *tc = tcase_create("offer");

	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, wrong_pointers_and_strategies_are_refused);
	tcase_add_loop_test(tc, wrong_tensors_are_refused, 0, sizeof wrongs / sizeof wrongs[0]);
	tcase_add_test(tc, too_many_tensors_are_refused);
	tcase_add_test(tc, names_that_become_equal_are_refused);
	tcase_add_test(tc, a_communicator_without_membership_is_refused);
	tcase_add_test(tc, a_call_is_refused_while_operations_are_in_flight);
	tcase_add_test(tc, no_operation_starts_during_a_synchronization);
	tcase_add_test(tc, the_manifest_describes_all_tensors);
	tcase_add_test(tc, digests_depend_on_keys_and_contents_only);
	tcase_add_loop_test(tc, digests_equal_the_example_of_the_protocol, 0, 2);
	tcase_add_loop_test(tc, keys_are_names_types_counts_and_flags, 0, 5);
	tcase_add_test(tc, the_hash_is_chosen_by_environment);
	tcase_add_test(tc, registered_memory_is_in_the_manifest);
	tcase_add_test(tc, a_tensor_beyond_registered_memory_is_not_registered);
	tcase_add_test(tc, registered_memory_cannot_be_freed_during_a_call);
	tcase_add_test(tc, a_state_without_tensors_can_be_synchronized);
	tcase_add_loop_test(tc, many_tensors_can_be_synchronized, 0, 2);
	tcase_add_test(tc, the_region_of_the_manifest_is_kept);
	tcase_add_test(tc, the_region_of_the_manifest_grows_and_shrinks);
	tcase_add_test(tc, staging_memory_is_freed_if_memory_is_short);
	suite_add_tcase(s, tc);
	tc = tcase_create("before a session");
	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, fx_setup_agent, fx_teardown_agent);
	tcase_add_loop_test(tc, the_hash_is_chosen_by_the_agent, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
