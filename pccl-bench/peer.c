/* SPDX-License-Identifier: MIT */
#include "pccl-bench/peer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_sys.h"
#include "pccl-bench/buffer.h"
#include "pccl-bench/device.h"
#include "pccl-bench/modes.h"
#include "pccl-bench/sample.h"
#include "pccl-bench/size.h"
#include "pccl-bench/stats.h"

#define JOIN_POLL_US 10000

struct peer {
	const struct bch_options *o;
	struct bch_board *board;
	struct bch_proc_slot *slot;
	struct bch_api api;
	pcclComm_t *comm;
	uint32_t rank;
	uint32_t lanes; /* operations of one iteration */
	struct bch_buffers buffers;
	uint64_t pattern[BCH_PATTERN_COUNT]; /* large enough for the largest type */
	uint64_t count;                      /* elements of each operand of the current size */
	uint64_t round;                      /* number of the iteration in the whole run */
};

__attribute__((format(printf, 2, 3))) static int fail(struct peer *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->slot->why, sizeof p->slot->why, fmt, ap);
	va_end(ap);
	return CC_ERR_STATE;
}

static void note(struct peer *p, const char *call, pcclResult_t r)
{
	const char *text = p->api.last_error ? p->api.last_error() : "";

	fail(p, "%s returned %d%s%s", call, (int)r, *text ? ": " : "", text);
}

/* Returns 0 if there is no sentence about a failure of a device. */
static int must_device(struct peer *p, const char *why)
{
	return why ? fail(p, "%s", why) : 0;
}

static int must(struct peer *p, const char *call, pcclResult_t r)
{
	if (r == pcclSuccess)
		return 0;
	note(p, call, r);
	return CC_ERR_STATE;
}

/* ---- joining ---- */

static ccoip_socket_address_t address_of(const struct cc_addr *a)
{
	ccoip_socket_address_t ret = {.port = a->port};

	if (a->family == CC_INET6) {
		ret.inet.protocol = inetIPv6;
		memcpy(ret.inet.ipv6.data, a->ip, sizeof ret.inet.ipv6.data);
	} else {
		memcpy(ret.inet.ipv4.data, a->ip, sizeof ret.inet.ipv4.data);
	}
	return ret;
}

static int ask_view(struct peer *p, int *ret)
{
	return must(p, "pcclGetAttribute",
		p->api.attribute(p->comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, ret));
}

static int join(struct peer *p, const struct cc_addr *master)
{
	pcclCommCreateParams_t params = {
		.master_address = address_of(master), .p2p_connection_pool_size = p->o->streams};
	int world_size = 0, err;

	err = must(p, "pcclInit", p->api.init());
	if (!err)
		err = must(p, "pcclCreateCommunicator", p->api.create(&params, &p->comm));
	if (!err && p->o->disposable)
		err = must(p, "pcclSetOutputPolicy",
			p->api.output_policy(p->comm, pcclOutputDisposable));
	if (err)
		return err;
	atomic_store(&p->slot->doing, "in pcclConnect");
	err = must(p, "pcclConnect", p->api.connect(p->comm));
	if (!err)
		err = ask_view(p, &world_size);
	atomic_store(&p->slot->doing, "waiting for all peers to join");
	while (!err && world_size < (int)p->o->world_size) {
		usleep(JOIN_POLL_US);
		err = must(p, "pcclUpdateTopology", p->api.update(p->comm));
		if (!err)
			err = ask_view(p, &world_size);
	}
	if (!err && world_size > (int)p->o->world_size)
		err = fail(p, "the run has %d peers, not %" PRIu32 " (--world)", world_size,
			p->o->world_size);
	return err;
}

/* ---- one iteration ---- */

static uint64_t round_of(const struct peer *p, uint32_t lane)
{
	return p->round * BCH_ASYNC_MAX + lane;
}

static bool quantized(const struct peer *p)
{
	return p->o->quantize != BCH_MODE_NONE;
}

static void fill(struct peer *p)
{
	size_t size = bch_type_size(p->o->kind.type);

	for (uint32_t lane = 0; lane < p->lanes; lane++) {
		if (quantized(p))
			bch_normal_operand((void *)p->pattern, p->rank, round_of(p, lane));
		else
			bch_pattern_operand(p->pattern, &p->o->kind, p->o->world_size, p->rank,
				round_of(p, lane));
		bch_data_fill(bch_operand(&p->buffers, lane), p->count, size, p->pattern);
	}
}

static uint64_t count_wrong(struct peer *p)
{
	size_t size = bch_type_size(p->o->kind.type);
	uint64_t wrong = 0;

	for (uint32_t lane = 0; lane < p->lanes; lane++) {
		bch_pattern_result(p->pattern, &p->o->kind, p->o->world_size, round_of(p, lane));
		wrong += bch_data_wrong(
			bch_result_of(&p->buffers, lane), p->count, size, p->pattern);
	}
	return wrong;
}

/* Keeps the largest error of quantized results. */
static void measure_errors(struct peer *p)
{
	double exact[BCH_PATTERN_COUNT];

	for (uint32_t lane = 0; lane < p->lanes; lane++) {
		double error;

		bch_normal_result(exact, p->o->kind.op, p->o->world_size, round_of(p, lane));
		error = bch_normal_error(bch_result_of(&p->buffers, lane), p->count, exact);
		/* NaN, too, replaces an error */
		if (!(error <= p->slot->error))
			p->slot->error = error;
	}
}

static void check(struct peer *p)
{
	atomic_store(&p->slot->doing, "checking results");
	if (quantized(p))
		measure_errors(p);
	else
		p->slot->wrong += count_wrong(p);
}

/* Counts a failed call and keeps the first result that is not pcclSuccess. */
static void take(struct peer *p, const char *call, pcclResult_t r, pcclResult_t *first)
{
	if (r == pcclSuccess)
		return;
	p->slot->failed++;
	note(p, call, r);
	if (*first == pcclSuccess)
		*first = r;
}

static pcclResult_t reduce(struct peer *p)
{
	struct bch_quant_args args = bch_mode_args(p->o->quantize);
	pcclReduceDescriptor_t d = {.count = p->count,
		.op = p->o->kind.op,
		.src_descriptor = {p->o->kind.type, args.hint},
		.quantization_options = args.options};
	pcclAsyncReduceOp_t handles[BCH_ASYNC_MAX];
	pcclResult_t first = pcclSuccess;
	uint32_t n = 0;

	if (!p->o->async) {
		take(p, "pcclAllReduce",
			p->api.reduce(bch_given_operand(&p->buffers, 0),
				bch_given_result(&p->buffers, 0), &d, p->comm, NULL),
			&first);
		return first;
	}
	for (; n < p->lanes && first == pcclSuccess; n++) {
		d.tag = n;
		take(p, "pcclAllReduceAsync",
			p->api.reduce_async(bch_given_operand(&p->buffers, n),
				bch_given_result(&p->buffers, n), &d, p->comm, &handles[n]),
			&first);
	}
	n -= first != pcclSuccess;
	for (uint32_t i = 0; i < n; i++)
		take(p, "pcclAwaitAsyncReduce", p->api.await_reduce(&handles[i], NULL), &first);
	return first;
}

/* Returns 0 if the peer can go on after the result r. If a call fails because of a loss, it is
 * counted, but not repeated, and the peer goes on if all peers are still members. */
static int survive(struct peer *p, pcclResult_t r)
{
	int world_size = 0;

	if (r == pcclSuccess)
		return 0;
	if (r != pcclRankConnectionLost)
		return CC_ERR_STATE;
	if (ask_view(p, &world_size) < 0)
		return CC_ERR_STATE;
	return world_size == (int)p->o->world_size
		       ? 0
		       : fail(p, "peers were lost: %d of %" PRIu32 " are left", world_size,
				 p->o->world_size);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Runs an iteration. *ret: its time in ns, or BCH_FAILED. */
static int iterate(struct peer *p, uint64_t *ret)
{
	uint64_t cpu, began, ended;
	pcclResult_t r;

	p->round++;
	if (p->o->check) {
		atomic_store(&p->slot->doing, "filling operands");
		fill(p);
		if (must_device(p,
			    bch_device_push(p->buffers.device, p->buffers.memory, p->buffers.size)))
			return CC_ERR_STATE;
	}
	atomic_store(&p->slot->doing, "waiting for the other peers here");
	bch_board_barrier(p->board);
	atomic_store(&p->slot->doing, "reducing");
	cpu = cpu_ns();
	began = cc_now_ns();
	r = reduce(p);
	ended = cc_now_ns();
	p->slot->cpu_ns += cpu_ns() - cpu;
	*ret = r == pcclSuccess ? ended - began : BCH_FAILED;
	if (p->o->check && r == pcclSuccess) {
		if (must_device(p,
			    bch_device_pull(p->buffers.memory, p->buffers.device, p->buffers.size)))
			return CC_ERR_STATE;
		check(p);
	}
	return survive(p, r);
}

/* ---- all of them ---- */

static void end_phase(struct peer *p)
{
	atomic_store(&p->slot->doing, "done with a phase");
	bch_board_phase(p->board);
}

static int iterate_all(struct peer *p)
{
	uint64_t unused;
	int err = 0;

	for (uint32_t i = 0; !err && i < p->o->warm_ups; i++)
		err = iterate(p, &unused);
	if (err)
		return err;
	p->slot->cpu_ns = 0;
	end_phase(p);
	for (uint32_t i = 0; !err && i < p->o->iterations; i++)
		err = iterate(p, &p->slot->times[i]);
	if (!err)
		end_phase(p);
	return err;
}

static int measure(struct peer *p, uint64_t bytes)
{
	size_t size = bch_type_size(p->o->kind.type);
	int err;

	p->slot->wrong = p->slot->failed = 0;
	p->slot->error = 0;
	p->count = bytes / size;
	atomic_store(&p->slot->doing, "getting memory");
	err = must(p, p->o->memory == BCH_REGISTERED ? "pcclMemAlloc" : "mmap",
		bch_buffers_make(&p->buffers, p->lanes, p->count * size, p->o->in_place,
			p->o->memory == BCH_REGISTERED ? &p->api : NULL));
	if (!err && p->o->memory == BCH_CUDA)
		err = must_device(
			p, bch_device_alloc(p->rank, p->buffers.size, &p->buffers.device));
	if (err)
		return err;
	fill(p);
	if (!p->o->in_place) /* so that no timed iteration touches a page for the first time */
		for (uint32_t lane = 0; lane < p->lanes; lane++)
			memset(bch_result_of(&p->buffers, lane), 0, p->count * size);
	err = must_device(
		p, bch_device_push(p->buffers.device, p->buffers.memory, p->buffers.size));
	if (!err)
		err = iterate_all(p);
	if (!err)
		err = must_device(p, bch_device_free(p->buffers.device));
	if (err)
		return err; /* the process ends */
	return must(p, "pcclMemFree", bch_buffers_free(&p->buffers));
}

static int measure_all(struct peer *p)
{
	const struct bch_options *o = p->o;
	int err = 0;

	for (uint64_t size = o->begin; !err && size; size = bch_size_next(size, o->factor, o->end))
		err = measure(p, size);
	return err;
}

static int optimize(struct peer *p)
{
	pcclResult_t r;

	atomic_store(&p->slot->doing, "in pcclOptimizeTopology");
	do
		r = p->api.optimize(p->comm);
	while (r == pcclTopologyOptimizationFailed);
	if (must(p, "pcclOptimizeTopology", r))
		return CC_ERR_STATE;
	end_phase(p);
	return 0;
}

int bch_peer_run(const struct bch_options *o, struct bch_board *b, uint32_t number,
	const struct cc_addr *master)
{
	struct peer *p = calloc(1, sizeof *p);
	int err;

	if (!p)
		return EX_OSERR;
	p->o = o;
	p->board = b;
	p->slot = &b->slots[number];
	p->rank = o->first_rank + number;
	p->lanes = o->async ? o->async : 1;
	err = bch_api_load(&p->api, o->library, p->slot->why);
	if (!err)
		err = join(p, master);
	if (!err)
		end_phase(p);
	if (!err)
		err = measure_all(p);
	if (!err && o->optimize)
		err = optimize(p);
	if (!err && o->optimize)
		err = measure_all(p);
	if (!err) {
		atomic_store(&p->slot->doing, "in pcclDestroyCommunicator");
		err = must(p, "pcclDestroyCommunicator", p->api.destroy(p->comm));
	}
	free(p);
	return err ? EX_UNAVAILABLE : EX_OK;
}

int bch_master_run(const struct bch_options *o, struct bch_board *b, const struct cc_addr *listen)
{
	pcclMasterInstance_t *master;
	struct bch_api api;
	pcclResult_t r;
	char why[BCH_WHY_SIZE];

	if (bch_api_load(&api, o->library, why) < 0) {
		fprintf(stderr, "%s\n", why);
		return EX_UNAVAILABLE;
	}
	if (!o->library)
		setenv("PCCL_MASTER_ALGORITHM", bch_algorithms[o->algorithm], 1);
	r = api.init();
	if (r == pcclSuccess)
		r = api.create_master(address_of(listen), &master);
	if (r == pcclSuccess)
		r = api.run_master(master);
	if (r != pcclSuccess) {
		fprintf(stderr, "the library's master cannot be started: error %d\n", (int)r);
		return EX_UNAVAILABLE;
	}
	bch_board_tell(b);
	return api.await_master(master) == pcclSuccess ? EX_OK : EX_SOFTWARE;
}
