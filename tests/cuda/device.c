/* SPDX-License-Identifier: MIT
 *
 * Calls of the library with memory of CUDA devices, and errors of the driver. The agent is that of
 * tests/shim. Tests that need the double of the driver are skipped with E2E_GPU (open.h).
 */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "kernels/hsh.h"
#include "tests/cuda/open.h"
#include "tests/shim/state.h"

enum { SEGMENT = CC_PLAN_SEGMENT_MIN };

#define OLD   0x3cu
#define LARGE ((size_t)5 << 20)

static const struct gpu_driver *gpu;
static const struct double_functions *twin; /* NULL: the driver of the machine */

static void setup(void)
{
	gpu = open_device(0);
	twin = open_double();
	fx_setup_comm();
}

static CUdeviceptr device_new(size_t n)
{
	CUdeviceptr at;

	ck_assert_int_eq(gpu->cuMemAlloc(&at, n), CUDA_SUCCESS);
	return at;
}

static void *host_pointer(CUdeviceptr at)
{
	return (void *)(uintptr_t)at;
}

/* An operation whose two buffers are memory of a device. */
struct pair {
	size_t bytes;
	CUdeviceptr send, recv;
	uint8_t *operand, *result, *read; /* contents; `read` is for those of the device */
};

static struct pair pair_new(size_t bytes, bool in_place)
{
	struct pair p = {.bytes = bytes,
		.operand = malloc(bytes),
		.result = malloc(bytes),
		.read = malloc(bytes)};
	struct tl_rng rng = tl_rng_new(bytes);

	ck_assert(p.operand && p.result && p.read);
	for (size_t at = 0, n; at < bytes; at += n) {
		uint64_t word = tl_u64(&rng);

		n = bytes - at < sizeof word ? bytes - at : sizeof word;
		memcpy(p.operand + at, &word, n);
	}
	fake_reduce(p.result, p.operand, bytes);
	p.send = device_new(bytes);
	p.recv = in_place ? p.send : device_new(bytes);
	ck_assert_int_eq(gpu->cuMemsetD8(p.recv, OLD, bytes), CUDA_SUCCESS);
	ck_assert_int_eq(gpu->cuMemcpyHtoD(p.send, p.operand, bytes), CUDA_SUCCESS);
	return p;
}

/* Frees what is not memory of the device. */
static void pair_forget(struct pair *p)
{
	free(p->operand);
	free(p->result);
	free(p->read);
}

static void pair_free(struct pair *p)
{
	ck_assert_int_eq(gpu->cuMemFree(p->send), CUDA_SUCCESS);
	if (p->recv != p->send)
		ck_assert_int_eq(gpu->cuMemFree(p->recv), CUDA_SUCCESS);
	pair_forget(p);
}

/* Does recv have the result? */
static bool has_result(const struct pair *p)
{
	ck_assert_int_eq(gpu->cuMemcpyDtoH(p->read, p->recv, p->bytes), CUDA_SUCCESS);
	return memcmp(p->read, p->result, p->bytes) == 0;
}

/* Are both buffers as before the call? */
static bool is_untouched(const struct pair *p)
{
	ck_assert_int_eq(gpu->cuMemcpyDtoH(p->read, p->send, p->bytes), CUDA_SUCCESS);
	if (memcmp(p->read, p->operand, p->bytes) != 0)
		return false;
	if (p->recv == p->send)
		return true;
	ck_assert_int_eq(gpu->cuMemcpyDtoH(p->read, p->recv, p->bytes), CUDA_SUCCESS);
	/* The first byte is OLD, and each byte is equal to the one after it. */
	return p->read[0] == OLD && memcmp(p->read, p->read + 1, p->bytes - 1) == 0;
}

static pcclReduceDescriptor_t descriptor(const struct pair *p, uint64_t tag)
{
	return (pcclReduceDescriptor_t){.count = p->bytes,
		.op = pcclSum,
		.tag = tag,
		.src_descriptor = {.datatype = pcclUint8}};
}

/* The agent's part in an operation. The fake agent itself ends operations that are refused. */
struct server {
	enum shm_result_mode mode;
	_Atomic bool over; /* the call has returned */
	pthread_t thread;
};

/* Waits for progress of the library. Returns soon if there will be none. */
static void await_bell(const struct fake_op *op)
{
	struct pollfd p = {.fd = op->data_bell, .events = POLLIN};
	uint64_t rung;

	atomic_store(&op->slot->in_want, 1);
	if (poll(&p, 1, 1) > 0)
		(void)!read(op->data_bell, &rung, sizeof rung);
}

/* Serves the operation, unless this peer refuses it or leaves the run. */
static void *serve(void *arg)
{
	struct server *s = arg;
	struct fake_op op;

	if (!fake_take_unless(fx_agent, &s->over, &op))
		return NULL;
	/* A peer that leaves does not copy the rest of its operand. */
	while (!(op.sqe.flags & SHM_SQE_IN_REGISTERED) && op.sqe.window == 0 &&
		atomic_load(&op.slot->in_done[0]) + atomic_load(&op.slot->in_done[1]) < op.bytes) {
		if (atomic_load(&s->over))
			return NULL;
		await_bell(&op);
	}
	fake_serve(&op, s->mode);
	return NULL;
}

static void server_start(struct server *s, enum shm_result_mode mode)
{
	s->mode = mode;
	atomic_init(&s->over, false);
	ck_assert_int_eq(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_end(struct server *s)
{
	atomic_store(&s->over, true);
	fake_nudge(fx_agent);
	pthread_join(s->thread, NULL);
}

static pcclResult_t reduce_between(
	const void *send, void *recv, const struct pair *p, enum shm_result_mode mode, bool async)
{
	pcclReduceDescriptor_t d = descriptor(p, 5);
	pcclAsyncReduceOp_t handle;
	struct server server;
	pcclResult_t r;

	server_start(&server, mode);
	if (async) {
		r = pcclAllReduceAsync(send, recv, &d, fx_comm, &handle);
		if (r == pcclSuccess)
			r = pcclAwaitAsyncReduce(&handle, NULL);
	} else {
		r = pcclAllReduce(send, recv, &d, fx_comm, NULL);
	}
	server_end(&server);
	return r;
}

static pcclResult_t reduce(const struct pair *p, enum shm_result_mode mode, bool async)
{
	return reduce_between(host_pointer(p->send), host_pointer(p->recv), p, mode, async);
}

/* ---- operations */

START_TEST(operations_succeed)
{
	static const size_t sizes[] = {1, 100003, LARGE + 1, (size_t)17 << 20};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (unsigned k = 0; k < 4; k++) {
			struct pair p = pair_new(sizes[i], k & 1);

			fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, k & 2));
			ck_assert_msg(has_result(&p), "%zu bytes, case %u", sizes[i], k);
			pair_free(&p);
		}
}
END_TEST

/* The thread's context is the same before and after calls, and calls work without one. */
START_TEST(the_current_context_stays)
{
	struct pair p = pair_new(100003, false);
	CUcontext before, after;

	ck_assert_int_eq(gpu->cuCtxGetCurrent(&before), CUDA_SUCCESS);
	fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, false));
	ck_assert_int_eq(gpu->cuCtxGetCurrent(&after), CUDA_SUCCESS);
	ck_assert_ptr_eq(before, after);
	ck_assert_int_eq(gpu->cuCtxPopCurrent(&before), CUDA_SUCCESS);
	fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, true));
	ck_assert_int_eq(gpu->cuCtxGetCurrent(&after), CUDA_SUCCESS);
	ck_assert_ptr_null(after);
	ck_assert_int_eq(gpu->cuCtxPushCurrent(before), CUDA_SUCCESS);
	ck_assert(has_result(&p));
	pair_free(&p);
}
END_TEST

START_TEST(buffers_on_two_devices_and_in_managed_and_registered_memory_work)
{
	struct pair p = pair_new(100003, false);
	size_t pages = (p.bytes + 4095) / 4096 * 4096;
	uint8_t *host = aligned_alloc(4096, pages);
	CUcontext second, popped;
	CUdeviceptr managed, far;
	int devices;

	ck_assert_int_eq(gpu->cuDeviceGetCount(&devices), CUDA_SUCCESS);
	ck_assert_int_eq(
		gpu->cuMemAllocManaged(&managed, p.bytes, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	ck_assert_int_eq(gpu->cuMemcpyHtoD(managed, p.operand, p.bytes), CUDA_SUCCESS);
	fx_assert_succeeds(reduce_between(
		host_pointer(managed), host_pointer(p.recv), &p, SHM_RESULT_AREA, false));
	ck_assert(has_result(&p));
	ck_assert_int_eq(gpu->cuMemFree(managed), CUDA_SUCCESS);

	ck_assert_int_eq(gpu->cuMemHostRegister(host, pages, 0), CUDA_SUCCESS);
	memcpy(host, p.operand, p.bytes);
	ck_assert_int_eq(gpu->cuMemsetD8(p.recv, OLD, p.bytes), CUDA_SUCCESS);
	fx_assert_succeeds(reduce_between(host, host_pointer(p.recv), &p, SHM_RESULT_AREA, false));
	ck_assert(has_result(&p));
	ck_assert_int_eq(gpu->cuMemHostUnregister(host), CUDA_SUCCESS);

	if (devices > 1) {
		ck_assert_int_eq(gpu->cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
		ck_assert_int_eq(gpu->cuCtxPushCurrent(second), CUDA_SUCCESS);
		far = device_new(p.bytes);
		ck_assert_int_eq(gpu->cuMemcpyHtoD(far, p.operand, p.bytes), CUDA_SUCCESS);
		ck_assert_int_eq(gpu->cuCtxPopCurrent(&popped), CUDA_SUCCESS);
		ck_assert_int_eq(gpu->cuMemsetD8(p.recv, OLD, p.bytes), CUDA_SUCCESS);
		fx_assert_succeeds(reduce_between(
			host_pointer(far), host_pointer(p.recv), &p, SHM_RESULT_AREA, true));
		ck_assert(has_result(&p));
	}
	free(host);
	pair_free(&p);
}
END_TEST

/* ---- arguments */

START_TEST(wrong_buffers_are_refused)
{
	struct pair p = pair_new(4096, false);
	CUdeviceptr small = device_new(4096);
	uint8_t host[8] = {0};
	pcclTensorInfo_t info = {.name = "w",
		.data = host,
		.count = 8,
		.datatype = pcclUint8,
		.device_type = pcclDeviceCuda};
	pcclSharedState_t s = {.revision = 1, .count = 1, .infos = &info};

	fx_assert_fails(reduce_between(host_pointer(p.send), host_pointer(small + 1), &p,
				SHM_RESULT_AREA, false),
		pcclInvalidArgument, "recvbuff: the memory at");
	ck_assert(is_untouched(&p));
	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s, ST_POPULAR, NULL),
		pcclInvalidArgument, "is not memory of a CUDA device");
	info.data = host_pointer(p.send);
	info.device_type = pcclDeviceCpu;
	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s, ST_POPULAR, NULL),
		pcclInvalidArgument,
		"infos[0] (\"w\"): device_type is 0, but data is not memory of the CPU");
	fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, false));
	ck_assert(has_result(&p));
	pair_free(&p);
}
END_TEST

/* Memory of another size, or host memory, gets the address of memory that was freed. */
START_TEST(what_is_known_of_an_address_is_not_kept)
{
	struct pair p = pair_new(8192, true);
	uint8_t *map;

	if (!twin)
		return;
	fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, false));
	twin->reuse(1);
	ck_assert_int_eq(gpu->cuMemFree(p.send), CUDA_SUCCESS);
	ck_assert_uint_eq(device_new(8191) / 8192, p.send / 8192);
	fx_assert_fails(reduce(&p, SHM_RESULT_AREA, false), pcclInvalidArgument,
		"ends after 8191 bytes, and the call needs 8192");
	ck_assert_int_eq(gpu->cuMemFree(p.send), CUDA_SUCCESS);
	map = mmap(host_pointer(p.send), 8192, PROT_READ | PROT_WRITE,
		/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ck_assert_ptr_eq(map, host_pointer(p.send));
	memcpy(map, p.operand, p.bytes);
	fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, false));
	ck_assert_mem_eq(map, p.result, p.bytes);
	pair_forget(&p);
}
END_TEST

/* ---- the order after the work of the application */

/* 0: the legacy default stream. 1: a blocking stream, for which it waits. 2: another stream, which
 * pcclSetStream names. */
START_TEST(calls_come_after_the_work_that_is_queued)
{
	struct pair p = pair_new(LARGE, _i == 1);
	pcclReduceDescriptor_t d = descriptor(&p, 6);
	pcclAsyncReduceOp_t handle;
	CUstream stream = NULL;
	struct server server;

	if (!twin)
		return;
	if (_i > 0)
		ck_assert_int_eq(gpu->cuStreamCreate(&stream,
					 _i == 1 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING),
			CUDA_SUCCESS);
	if (_i == 2)
		fx_assert_succeeds(pcclSetStream(fx_comm, stream));
	twin->hold(stream, 1);
	memset(p.operand, 0x77, p.bytes);
	memset(p.result, 0x77 ^ FAKE_XOR, p.bytes);
	ck_assert_int_eq(gpu->cuMemsetD8Async(p.send, 0x77, p.bytes, stream), CUDA_SUCCESS);
	fx_assert_succeeds(pcclAllReduceAsync(
		host_pointer(p.send), host_pointer(p.recv), &d, fx_comm, &handle));
	/* The operation is not submitted before its operand is there. */
	for (int i = 0; i < 20; i++) {
		sched_yield();
		ck_assert_uint_eq(fake_waiting(fx_agent), 0);
	}
	twin->hold(stream, 0);
	server_start(&server, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&handle, NULL));
	server_end(&server);
	ck_assert(has_result(&p));
	if (_i == 2)
		fx_assert_succeeds(pcclSetStream(fx_comm, NULL));
	pair_free(&p);
}
END_TEST

/* ---- registered memory */

START_TEST(host_memory_is_registered_once)
{
	struct pair p = pair_new(LARGE, false);
	uint64_t before;

	if (!twin)
		return;
	fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, true));
	before = twin->calls("cuMemHostRegister");
	ck_assert_uint_gt(before, 0);
	for (int i = 0; i < 20; i++)
		fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, true));
	ck_assert_uint_eq(twin->calls("cuMemHostRegister"), before);
	ck_assert_uint_gt(twin->registered(), 0);
	pair_free(&p);
	/* Unregistered before it is unmapped. */
	ck_assert_int_eq(pcclDestroyCommunicator(fx_comm), pcclSuccess);
	ck_assert_uint_eq(twin->registered(), 0);
	fx_comm = fx_new_comm();
}
END_TEST

START_TEST(operations_succeed_if_no_memory_can_be_registered)
{
	struct pair p;

	ck_assert_int_eq(setenv("DOUBLE_REGISTER_LIMIT", "4096", 1), 0);
	p = pair_new(LARGE, _i == 1);
	fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, true));
	ck_assert(has_result(&p));
	if (twin)
		ck_assert_uint_eq(twin->registered(), 0);
	pair_free(&p);
}
END_TEST

/* ---- errors of the driver */

static const CUresult errors[] = {
	CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_ILLEGAL_ADDRESS};
enum { N_ERRORS = sizeof errors / sizeof errors[0] };
enum { WAYS = 8, OVER_MAX = 3, ERROR_CASES = WAYS * N_ERRORS, SYNC_WAYS = 4 };
/* Exit statuses of the process of a shot: the operation was over before, or the shot has hit it. */
enum { OVER = 0, HIT = 2 };

/* An event at the driver during an operation, and the kind of this operation. */
struct shot {
	uint64_t n; /* at the n-th call, or at the n-th use of the memory */
	CUresult error;
	enum shm_result_mode mode;
	bool in_place, async;
	bool of_result;  /* memory that is freed: that of the result, or of the operand */
	bool no_kernels; /* hashes are computed on the host */
	bool writes;     /* the synchronization writes tensors, or only reads them */
};

/* In builds with AddressSanitizer. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

/* Each shot has its own process, with its own driver and agent. Returns whether the operation was
 * over before. */
static bool shoot(bool (*run)(const struct shot *), const struct shot *shot)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		bool over;

		setup();
		over = run(shot);
		if (getenv("DEVICE_LEAKS") && __lsan_do_recoverable_leak_check &&
			__lsan_do_recoverable_leak_check() != 0)
			_exit(EXIT_FAILURE);
		_exit(over ? OVER : HIT);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(
		WIFEXITED(status) && (WEXITSTATUS(status) == OVER || WEXITSTATUS(status) == HIT),
		"number %llu ended the process with status %d", (unsigned long long)shot->n,
		status);
	return WEXITSTATUS(status) == OVER;
}

/* How many errors were injected in all cases, which are processes. NULL before main. */
static _Atomic unsigned long *injected;
/* The number with which the next process begins. Shared as `injected`. */
static uint64_t *next_shot;
#define SHOTS_IN_A_PROCESS 10

/* Lets the n-th call of the driver fail. Returns whether the operation was over before. */
static bool fail_once(const struct shot *shot)
{
	struct pair p = pair_new(LARGE, shot->in_place);
	uint64_t n = shot->n;
	pcclReduceDescriptor_t d = descriptor(&p, 5);
	pcclAsyncReduceOp_t handle;
	char text[512];
	struct server server;
	pcclResult_t r;
	uint64_t calls;

	server_start(&server, shot->mode);
	twin->fail_at(n, shot->error);
	if (shot->async) {
		r = pcclAllReduceAsync(
			host_pointer(p.send), host_pointer(p.recv), &d, fx_comm, &handle);
		if (r == pcclSuccess)
			r = pcclAwaitAsyncReduce(&handle, NULL);
	} else {
		r = pcclAllReduce(host_pointer(p.send), host_pointer(p.recv), &d, fx_comm, NULL);
	}
	(void)snprintf(text, sizeof text, "%s", pcclGetLastError());
	calls = twin->count();
	twin->fail_at(0, CUDA_SUCCESS);
	server_end(&server);
	/* After a permanent error the driver cannot read the memory. */
	if (shot->error == CUDA_ERROR_ILLEGAL_ADDRESS && calls >= n) {
		if (r == pcclSuccess)
			ck_assert_msg(memcmp(twin->seen(p.recv), p.result, p.bytes) == 0,
				"call %llu: a wrong result", (unsigned long long)n);
		else
			ck_assert_msg(strstr(text, "CUDA_ERROR_ILLEGAL_ADDRESS"), "call %llu: %s",
				(unsigned long long)n, text);
		pair_forget(&p);
		return false;
	}
	ck_assert_msg(r != pcclSuccess || has_result(&p), "call %llu: a wrong result",
		(unsigned long long)n);
	if (r != pcclSuccess) {
		ck_assert_int_eq(r, pcclInternalError);
		ck_assert_msg(
			strstr(text, "CUDA_ERROR_"), "call %llu: %s", (unsigned long long)n, text);
		ck_assert_msg(strstr(text, "cannot take the result") ||
				      strstr(text, "could not be restored") || is_untouched(&p),
			"call %llu: a failed call has changed its buffers: %s",
			(unsigned long long)n, text);
	}
	pair_forget(&p);
	return calls < n;
}

/* With DEVICE_ALL each call fails, one after the other; otherwise some do, more of the first ones.
 * DEVICE_CASE is the number of the only case to run. How many calls an operation makes depends on
 * how much of the result is there whenever the library looks. So some operations are over before
 * the n-th call, and later ones are not. */
static void assert_fails_well(CUresult error, int i)
{
	struct shot shot = {.error = error,
		.mode = i & 1 ? SHM_RESULT_STAGED : SHM_RESULT_AREA,
		.in_place = i & 2,
		.async = i & 5};
	bool all = getenv("DEVICE_ALL");
	unsigned over = 0; /* operations in a row */

	for (shot.n = all ? 1 : 1 + (uint64_t)i; over < (all ? OVER_MAX : 1);
		shot.n = all ? shot.n + 1 : 2 * shot.n + 1) {
		over = shoot(fail_once, &shot) ? over + 1 : 0;
		if (over == 0)
			atomic_fetch_add(injected, 1);
	}
}

START_TEST(any_call_of_the_driver_may_fail)
{
	if (getenv("E2E_GPU"))
		return;
	assert_fails_well(errors[_i / WAYS], _i % WAYS);
}
END_TEST

/* ---- shared state */

/* Moves the tensors to the device. s->data keeps their contents. */
static void state_to_device(struct st_state *s)
{
	for (unsigned i = 0; i < TENSORS; i++) {
		pcclTensorInfo_t *info = &s->infos[st_order[i]];
		CUdeviceptr at;

		if (s->bytes[i] == 0)
			continue;
		/* at odd addresses */
		at = device_new(s->bytes[i] + 8 * i) + 8 * i;
		ck_assert_int_eq(gpu->cuMemcpyHtoD(at, s->data[i], s->bytes[i]), CUDA_SUCCESS);
		info->data = host_pointer(at);
		info->device_type = pcclDeviceCuda;
	}
}

/* Compares the hashes in the manifest with those of the CPU. */
static void assert_hashes(const struct fake_op *op, const struct st_state *of_host)
{
	struct shm_state st = fake_manifest(op);

	for (unsigned i = 0; i < TENSORS; i++)
		for (uint64_t off = 0; i != MINE && off < of_host->bytes[i]; off += HSH_LEAF) {
			uint64_t left = of_host->bytes[i] - off, n = off / HSH_LEAF;

			ck_assert_uint_eq(
				shm_state_leaf(op->manifest, &st, st.tensors[i].first_leaf + n),
				hsh_leaf(of_host->data[i] + off, left < HSH_LEAF ? left : HSH_LEAF,
					n));
		}
	shm_state_clear(&st);
}

static void compare_hashes(struct fake_op *op, void *arg)
{
	assert_hashes(op, arg);
	fake_sync_begin(op);
	fake_sync_end(op, 0, NULL, op->sqe.sync.revision, 0, 0);
}

/* 0: by the kernel. 1: on the host, because the driver cannot load the kernel. */
START_TEST(the_hashes_are_those_of_the_cpu)
{
	struct st_state s, of_host;

	if (_i == 1)
		ck_assert_int_eq(setenv("DOUBLE_NO_KERNELS", "1", 1), 0);
	st_init(&s, 1);
	st_init(&of_host, 1);
	state_to_device(&s);
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, compare_hashes, &of_host));
	if (twin) {
		ck_assert_uint_eq(twin->calls("cuLaunchKernel") > 0, _i == 0);
		/* Only hashes are copied, or else all tensors that are compared. */
		ck_assert_uint_eq(twin->bytes(0) < 1000, _i == 0);
		ck_assert_uint_eq(twin->bytes(0) >= st_bytes(&s) - s.bytes[MINE], _i == 1);
	}
	st_free(&s);
	st_free(&of_host);
}
END_TEST

/* ---- memory that is freed during a call */

static bool is_filled(CUdeviceptr at, uint8_t value, size_t bytes)
{
	uint8_t *read = malloc(bytes);
	bool filled;

	ck_assert_ptr_nonnull(read);
	ck_assert_int_eq(gpu->cuMemcpyDtoH(read, at, bytes), CUDA_SUCCESS);
	filled = read[0] == value && memcmp(read, read + 1, bytes - 1) == 0;
	free(read);
	return filled;
}

/* Calls work after one that has failed, if the application connects again. */
static void assert_works_again(void)
{
	struct pair p = pair_new(100003, true);

	ck_assert_int_eq(pcclDestroyCommunicator(fx_comm), pcclSuccess);
	fx_comm = fx_new_comm();
	fx_assert_succeeds(pcclConnect(fx_comm));
	fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, false));
	ck_assert(has_result(&p));
	pair_free(&p);
}

/* Checks a call that has failed because memory was freed. */
static void assert_says_freed(const struct shot *shot, pcclResult_t r, const char *name)
{
	const char *text = pcclGetLastError();

	ck_assert_msg(r == pcclInternalError && strstr(text, name) &&
			      strstr(text, "was freed during the call"),
		"use %llu: code %d: %s", (unsigned long long)shot->n, (int)r, text);
}

/* One of the two buffers is freed before the n-th copy. */
static bool reduce_freed(const struct shot *shot)
{
	struct pair p = pair_new(LARGE, shot->in_place);
	CUdeviceptr other = device_new(100003);
	pcclResult_t r;
	bool over;

	ck_assert_int_eq(gpu->cuMemsetD8(other, 0x11, 100003), CUDA_SUCCESS);
	twin->free_at(shot->of_result ? p.recv : p.send, shot->n);
	r = reduce(&p, shot->mode, shot->async);
	over = twin->uses() < shot->n;
	twin->free_at(0, 0);
	ck_assert(is_filled(other, 0x11, 100003));
	if (over) {
		fx_assert_succeeds(r);
		ck_assert(has_result(&p));
		pair_forget(&p);
		return true;
	}
	assert_says_freed(shot, r,
		shot->in_place    ? "buff ("
		: shot->of_result ? "recvbuff ("
				  : "sendbuff (");
	if (!shot->in_place && shot->of_result) {
		ck_assert_int_eq(gpu->cuMemcpyDtoH(p.read, p.send, p.bytes), CUDA_SUCCESS);
		ck_assert_int_eq(memcmp(p.read, p.operand, p.bytes), 0);
	} else if (!shot->in_place) {
		ck_assert(is_filled(p.recv, OLD, p.bytes));
	}
	assert_works_again();
	pair_forget(&p);
	return false;
}

/* Frees the memory before its first use, its second one, and so on; later some are left out. */
static void free_at_all_uses(bool (*run)(const struct shot *), struct shot *shot)
{
	shot->n = 1;
	while (!shoot(run, shot))
		shot->n = shot->n < 4 ? shot->n + 1 : 2 * shot->n;
	ck_assert_uint_gt(shot->n, 1);
}

START_TEST(buffers_may_be_freed_during_an_operation)
{
	struct shot shot = {.mode = _i < 4 ? SHM_RESULT_STAGED : SHM_RESULT_AREA,
		.in_place = _i & 1,
		.of_result = _i & 2,
		.async = _i < 8};

	if (!getenv("E2E_GPU"))
		free_at_all_uses(reduce_freed, &shot);
}
END_TEST

/* The agent's part in a synchronization: it reads or writes all of the tensor WIDE. */
struct sync_server {
	bool writes;
	const struct st_state *of_host; /* the right contents */
	_Atomic bool over;              /* the call has returned */
};

static uint64_t left_of(uint64_t bytes, uint64_t off)
{
	return bytes - off < WIRE_LEAF ? bytes - off : WIRE_LEAF;
}

/* Waits until the library has carried out all commands. Returns false if the call is over. */
static bool await_command(const struct sync_server *s, const struct fake_op *op)
{
	struct shm_state_acks *a = (void *)(op->manifest + SHM_STATE_ACK_OFF);

	while (atomic_load(&a->tail) != op->commands) {
		if (atomic_load(&s->over))
			return false;
		await_bell(op);
	}
	atomic_store(&a->head, op->commands);
	return true;
}

/* Serves the synchronization, unless this peer refuses it or leaves the run. */
static void *serve_sync(void *arg)
{
	struct sync_server *s = arg;
	struct fake_op op;

	if (!fake_take_unless(fx_agent, &s->over, &op))
		return NULL;
	assert_hashes(&op, s->of_host);
	fake_sync_begin(&op);
	for (uint64_t off = 0; off < s->of_host->bytes[WIDE]; off += WIRE_LEAF) {
		uint32_t len = (uint32_t)left_of(s->of_host->bytes[WIDE], off);

		memset(fake_window(&op, 3), OLD, len);
		fake_command(&op, s->writes ? SHM_STATE_WRITE : SHM_STATE_READ, 3, WIDE, off, len);
		if (!await_command(s, &op))
			return NULL;
		if (!s->writes)
			ck_assert_int_eq(
				memcmp(fake_window(&op, 3), s->of_host->data[WIDE] + off, len), 0);
	}
	fake_complete(&op, op.sqe.sync.revision);
	fake_sync_end(&op, 0, NULL, op.sqe.sync.revision, 0, 0);
	return NULL;
}

static pcclResult_t synchronize(struct st_state *s, bool writes)
{
	struct sync_server server = {.writes = writes, .of_host = s};
	pthread_t thread;
	pcclResult_t r;

	ck_assert_int_eq(pthread_create(&thread, NULL, serve_sync, &server), 0);
	r = pcclSynchronizeSharedState(fx_comm, &s->shared, ST_POPULAR, NULL);
	atomic_store(&server.over, true);
	fake_nudge(fx_agent);
	pthread_join(thread, NULL);
	return r;
}

static const uint8_t *tensor_seen(const struct st_state *s, unsigned i)
{
	return twin->seen((CUdeviceptr)(uintptr_t)s->infos[st_order[i]].data);
}

/* The tensor WIDE is freed before it is used for the n-th time: hashed, read or written. */
static bool sync_freed(const struct shot *shot)
{
	struct st_state s;
	pcclResult_t r;
	bool over;

	ck_assert_int_eq(setenv("DOUBLE_NO_KERNELS", shot->no_kernels ? "1" : "0", 1), 0);
	st_init(&s, 1);
	state_to_device(&s);
	twin->free_at((CUdeviceptr)(uintptr_t)s.infos[st_order[WIDE]].data, shot->n);
	r = synchronize(&s, shot->writes);
	over = twin->uses() < shot->n;
	twin->free_at(0, 0);
	for (unsigned i = 0; i < TENSORS; i++)
		if (i != WIDE && s.bytes[i] > 0)
			ck_assert_int_eq(memcmp(tensor_seen(&s, i), s.data[i], s.bytes[i]), 0);
	if (over) {
		fx_assert_succeeds(r);
		if (shot->writes)
			memset(s.data[WIDE], OLD, s.bytes[WIDE]);
		ck_assert_int_eq(memcmp(tensor_seen(&s, WIDE), s.data[WIDE], s.bytes[WIDE]), 0);
	} else if (shot->n == 1 && !shot->no_kernels) {
		/* The driver itself notices it only when the kernel runs. */
		fx_assert_fails(r, pcclInternalError, "CUDA_ERROR_ILLEGAL_ADDRESS");
	} else {
		assert_says_freed(shot, r, "data (");
		assert_works_again();
	}
	st_free(&s);
	return over;
}

/* A call of the driver fails during a synchronization. */
static bool sync_fails(const struct shot *shot)
{
	uint8_t *wide;
	char text[512];
	struct st_state s;
	pcclResult_t r;
	bool over, whole, old;

	ck_assert_int_eq(setenv("DOUBLE_NO_KERNELS", shot->no_kernels ? "1" : "0", 1), 0);
	st_init(&s, 1);
	state_to_device(&s);
	twin->fail_at(shot->n, shot->error);
	r = synchronize(&s, shot->writes);
	(void)snprintf(text, sizeof text, "%s", pcclGetLastError());
	over = twin->count() < shot->n;
	twin->fail_at(0, CUDA_SUCCESS);
	for (unsigned i = 0; i < TENSORS; i++)
		if (i != WIDE && s.bytes[i] > 0)
			ck_assert_int_eq(memcmp(tensor_seen(&s, i), s.data[i], s.bytes[i]), 0);
	wide = malloc(s.bytes[WIDE]);
	ck_assert_ptr_nonnull(wide);
	memset(wide, OLD, s.bytes[WIDE]);
	old = memcmp(tensor_seen(&s, WIDE), s.data[WIDE], s.bytes[WIDE]) == 0;
	whole = shot->writes ? memcmp(tensor_seen(&s, WIDE), wide, s.bytes[WIDE]) == 0 : old;
	free(wide);
	if (r == pcclSuccess)
		ck_assert_msg(whole, "call %llu: a false success", (unsigned long long)shot->n);
	else
		ck_assert_msg(!over && r == pcclInternalError &&
				      strstr(text, gpu_driver_error(gpu, shot->error)) &&
				      (old || strstr(text, "written in part")),
			"call %llu: code %d: %s", (unsigned long long)shot->n, (int)r, text);
	st_free(&s);
	return over;
}

/* The application connects again, with a new context if the old one is unusable. */
static void renew(CUresult error)
{
	CUcontext popped;

	ck_assert_int_eq(pcclDestroyCommunicator(fx_comm), pcclSuccess);
	if (error == CUDA_ERROR_ILLEGAL_ADDRESS) {
		twin->reset(0);
		ck_assert_int_eq(gpu->cuCtxPopCurrent(&popped), CUDA_SUCCESS);
		gpu = open_device(0);
	}
	fx_comm = fx_new_comm();
	fx_assert_succeeds(pcclConnect(fx_comm));
}

/* Several shots in one process, which is faster. Later ones find what the library keeps between
 * calls, and are over earlier. Returns whether the first one was over. */
static bool sync_fails_often(const struct shot *shot)
{
	/* Only one of the errors that are not permanent needs all numbers. */
	bool some = shot->error == CUDA_ERROR_OUT_OF_MEMORY && !getenv("DEVICE_ALL");
	unsigned step = some ? 4 : 1;
	struct shot next = *shot;
	bool over = sync_fails(&next);

	if (over)
		return true;
	for (unsigned i = 0; i < SHOTS_IN_A_PROCESS && !over; i++) {
		atomic_fetch_add(injected, 1);
		next.n += step;
		renew(shot->error);
		over = sync_fails(&next);
	}
	*next_shot = next.n;
	return false;
}

START_TEST(any_call_of_the_driver_may_fail_during_a_synchronization)
{
	struct shot shot = {
		.n = 1, .error = errors[_i / SYNC_WAYS], .writes = _i & 1, .no_kernels = _i & 2};

	if (getenv("E2E_GPU"))
		return;
	while (!shoot(sync_fails_often, &shot))
		shot.n = *next_shot;
}
END_TEST

/* Peers that send, and peers that receive. */
START_TEST(tensors_may_be_freed_during_a_synchronization)
{
	struct shot shot = {.writes = _i & 1, .no_kernels = _i & 2};

	if (!getenv("E2E_GPU"))
		free_at_all_uses(sync_freed, &shot);
}
END_TEST

/* ---- processes */

static bool has_library(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f))
		found = found || strstr(line, name);
	(void)fclose(f);
	return found;
}

/* An operation with memory of the host. */
static void reduce_on_host(void)
{
	uint8_t send[64] = {1}, recv[64];
	struct server server;
	pcclReduceDescriptor_t d = {
		.count = sizeof send, .op = pcclSum, .src_descriptor = {.datatype = pcclUint8}};

	server_start(&server, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAllReduce(send, recv, &d, fx_comm, NULL));
	server_end(&server);
	ck_assert_uint_eq(recv[0], 1 ^ FAKE_XOR);
}

/* Runs before the driver is loaded. */
START_TEST(a_process_without_cuda_loads_nothing_of_it)
{
	ck_assert(!has_library("libcuda"));
	reduce_on_host();
	ck_assert(!has_library("libcuda"));
}
END_TEST

/* The process loads the driver after operations without it. */
START_TEST(a_driver_that_is_loaded_later_is_noticed)
{
	struct pair p;

	for (int i = 0; i < 3; i++)
		reduce_on_host();
	ck_assert(!has_library("libcuda"));
	gpu = open_device(0);
	p = pair_new(100003, false);
	fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, false));
	ck_assert(has_result(&p));
	reduce_on_host();
	/* Only one of the buffers is memory of the device. */
	fx_assert_succeeds(
		reduce_between(p.operand, host_pointer(p.recv), &p, SHM_RESULT_AREA, false));
	ck_assert(has_result(&p));
	fx_assert_succeeds(
		reduce_between(host_pointer(p.send), p.read, &p, SHM_RESULT_AREA, false));
	ck_assert_mem_eq(p.read, p.result, p.bytes);
	pair_free(&p);
}
END_TEST

/* The old driver says that memory is one of a device, and cannot copy it. */
START_TEST(a_driver_that_is_too_old_is_named_and_host_memory_works)
{
	void *device = host_pointer(4096), *library;
	struct pair p = {.bytes = 64};
	uint8_t host[64] = {0};

	reduce_on_host();
	library = dlopen(OLD_DRIVER, RTLD_NOW);
	ck_assert_msg(library != NULL, "%s", dlerror());
	for (int i = 0; i < 3; i++) {
		fx_assert_fails(reduce_between(i == 0 ? host : device, i == 1 ? host : device, &p,
					SHM_RESULT_AREA, false),
			pcclInternalError,
			"the driver of CUDA lacks cuInit; install a driver of CUDA 11.0 or later");
		reduce_on_host();
	}
	dlclose(library);
}
END_TEST

START_TEST(a_forked_child_uses_host_memory)
{
	struct pair p = pair_new(100003, false);
	pid_t pid;
	int status;

	fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, false));
	pid = fork();
	if (pid == 0) {
		/* The child gets its own agent. */
		fx_setup_comm();
		fx_assert_succeeds(reduce_between(p.operand, p.read, &p, SHM_RESULT_AREA, false));
		_exit(p.read[0] == (p.operand[0] ^ FAKE_XOR) ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, false));
	ck_assert(has_result(&p));
	pair_free(&p);
}
END_TEST

/* The application destroys the context, with all that the library has there, and makes it anew. */
START_TEST(calls_work_in_a_context_that_was_made_again)
{
	struct pair p;

	if (!twin)
		return;
	p = pair_new(LARGE, false);
	fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, true));
	twin->reset(0);
	fx_assert_fails(reduce(&p, SHM_RESULT_AREA, true), pcclInternalError,
		"CUDA_ERROR_CONTEXT_IS_DESTROYED");
	pair_forget(&p);
	gpu = open_device(0);
	p = pair_new(LARGE, false);
	fx_assert_succeeds(reduce(&p, SHM_RESULT_AREA, true));
	ck_assert(has_result(&p));
	pair_free(&p);
}
END_TEST

int main(void)
{
	const char *only = getenv("DEVICE_CASE");
	int first = only ? atoi(only) : 0, status;
	Suite *s = suite_create("device");
	TCase *tc = tcase_create("device"), *alone = tcase_create("alone");

	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, setup, fx_teardown_comm);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, operations_succeed);
	tcase_add_test(tc, the_current_context_stays);
	tcase_add_test(tc, buffers_on_two_devices_and_in_managed_and_registered_memory_work);
	tcase_add_test(tc, wrong_buffers_are_refused);
	tcase_add_test(tc, what_is_known_of_an_address_is_not_kept);
	tcase_add_loop_test(tc, calls_come_after_the_work_that_is_queued, 0, 3);
	tcase_add_test(tc, host_memory_is_registered_once);
	tcase_add_loop_test(tc, operations_succeed_if_no_memory_can_be_registered, 0, 2);
	tcase_add_loop_test(tc, the_hashes_are_those_of_the_cpu, 0, 2);
	tcase_add_test(tc, a_forked_child_uses_host_memory);
	tcase_add_test(tc, calls_work_in_a_context_that_was_made_again);
	suite_add_tcase(s, tc);
	tcase_add_unchecked_fixture(alone, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(alone, fx_setup_comm, fx_teardown_comm);
	tcase_add_test(alone, a_process_without_cuda_loads_nothing_of_it);
	tcase_add_test(alone, a_driver_that_is_loaded_later_is_noticed);
	tcase_add_test(alone, a_driver_that_is_too_old_is_named_and_host_memory_works);
	suite_add_tcase(s, alone);
	tc = tcase_create("freed");
	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, buffers_may_be_freed_during_an_operation, 0, 12);
	tcase_add_loop_test(tc, tensors_may_be_freed_during_a_synchronization, 0, 4);
	suite_add_tcase(s, tc);
	tc = tcase_create("errors");
	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_set_timeout(tc, 600);
	tcase_add_loop_test(
		tc, any_call_of_the_driver_may_fail, first, only ? first + 1 : ERROR_CASES);
	if (!only)
		tcase_add_loop_test(tc, any_call_of_the_driver_may_fail_during_a_synchronization, 0,
			SYNC_WAYS * N_ERRORS);
	suite_add_tcase(s, tc);
	injected = mmap(NULL, sizeof *injected + sizeof *next_shot, PROT_READ | PROT_WRITE,
		/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (injected == MAP_FAILED)
		return EXIT_FAILURE;
	next_shot = (uint64_t *)(void *)(injected + 1);
	status = tl_run(s);
	printf("%lu errors of the driver were injected\n", atomic_load(injected));
	return status;
}
