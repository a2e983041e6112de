/* SPDX-License-Identifier: MIT
 *
 * The all-reduces of a peer: their buffers, and the checks of these buffers after a call.
 */
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/e2e/data.h"
#include "tests/e2e/device.h"
#include "tests/e2e/peer.h"

#define SLOTS      256
#define GUARD      256u
#define GUARD_BYTE 0xa5
#define WHY_SIZE   160

/* A buffer between guards. */
struct area {
	uint8_t *base;
	uint8_t *data;
	uint8_t *device;    /* the memory that the library uses instead of `base`, or NULL */
	uint8_t *given;     /* the buffer that the library gets */
	size_t bytes, size; /* bytes of data; bytes of the whole area */
	bool shared;
};

struct operation {
	struct data_spec spec, other; /* contents of sendbuf, and of recvbuf before the call */
	pcclReduceDescriptor_t desc;
	struct contributors {
		uint32_t id[DATA_IDS_MAX], n;
	} ids, or_ids;
	struct area send, recv;
	pcclAsyncReduceOp_t handle;
	pcclReduceInfo_t info;
	bool busy, in_place, verify, disposable;
};

static struct operation ops[SLOTS];

/* ---- buffers */

static void area_make(struct area *a, size_t bytes, size_t shift, bool shared)
{
	void *base;

	a->bytes = bytes;
	a->size = GUARD + shift + bytes + GUARD;
	a->shared = shared;
	if (shared) {
		if (pcclMemAlloc(a->size, &base) != pcclSuccess)
			die("pcclMemAlloc", pcclGetLastError());
	} else if (posix_memalign(&base, 4096, a->size) != 0) {
		die("memory", "exhausted");
	}
	a->base = base;
	a->data = a->base + GUARD + shift;
	memset(a->base, GUARD_BYTE, GUARD + shift);
	memset(a->data + bytes, GUARD_BYTE, GUARD);
	/* The library cannot be stopped at a read that a device makes. */
	a->device = shared || number("freeze", "0") ? NULL : device_alloc(a->size);
	a->given = a->device ? a->device + (a->data - a->base) : a->data;
}

/* Moves the contents to where the library uses them, and back to where the test sees them. */
static void area_push(const struct area *a)
{
	device_push(a->device, a->base, a->size);
}

static void area_pull(const struct area *a)
{
	device_pull(a->base, a->device, a->size);
}

static bool area_intact(const struct area *a)
{
	for (const uint8_t *p = a->base; p < a->base + a->size; p++) {
		if (p == a->data)
			p += a->bytes;
		if (*p != GUARD_BYTE)
			return false;
	}
	return true;
}

static void area_free(struct area *a)
{
	device_free(a->device, a->size);
	if (!a->shared)
		free(a->base);
	else if (pcclMemFree(a->base) != pcclSuccess)
		die("pcclMemFree", pcclGetLastError());
	a->base = NULL;
}

/* ---- freezing: the process stops itself when the second half of an operand is read */

#define PAGE ((size_t)4096)

static uint8_t *frozen;
static size_t frozen_size;

static void on_frozen(int signo)
{
	(void)signo;
	if (!frozen || mprotect(frozen, frozen_size, PROT_READ | PROT_WRITE) != 0)
		abort();
	frozen = NULL;
	raise(SIGSTOP);
}

void freeze(void *data, size_t bytes, int prot)
{
	struct sigaction sa = {.sa_handler = on_frozen};
	uintptr_t middle = (uintptr_t)data + bytes / 2;

	frozen = (uint8_t *)(middle - middle % PAGE);
	frozen_size = (size_t)((uintptr_t)data + bytes - (uintptr_t)frozen) / PAGE * PAGE;
	if (bytes < 4 * PAGE || sigaction(SIGSEGV, &sa, NULL) != 0 ||
		mprotect(frozen, frozen_size, prot) != 0)
		die("cannot freeze", "mprotect");
}

/* ---- operations */

static void contributors_parse(struct contributors *c, const char *text)
{
	while (*text && c->n < DATA_IDS_MAX) {
		char *end;

		c->id[c->n++] = (uint32_t)strtoul(text, &end, 10);
		text = *end ? end + 1 : end;
	}
}

static void operation_parse(struct operation *op)
{
	int type = data_type_parse(word("type", NULL)), red = data_op_parse(word("op", NULL));

	if (type < 0 || red < 0)
		die("no such type or operation", word("type", NULL));
	memset(op, 0, sizeof *op);
	op->spec = (struct data_spec){
		.type = (pcclDataType_t)type,
		.count = number("count", NULL),
		.seed = number("seed", "1"),
		.special = number("special", "0"),
	};
	op->other = op->spec;
	op->other.seed = ~op->spec.seed;
	op->desc = (pcclReduceDescriptor_t){
		.count = op->spec.count,
		.op = (pcclRedOp_t)red,
		.tag = number("tag", "0"),
		.src_descriptor = {.datatype = op->spec.type,
			.distribution_hint = (pcclDistributionHint_t)number("hint", "0")},
		.quantization_options = {.algorithm =
						 (pcclQuantizationAlgorithm_t)number("quant", "0"),
			.quantized_datatype = (pcclDataType_t)number("qtype", "0")},
	};
	op->in_place = strcmp(word("place", "out"), "in") == 0;
	op->verify = number("verify", "0");
	op->disposable = number("disposable", "0");
	contributors_parse(&op->ids, word("ids", ""));
	contributors_parse(&op->or_ids, word("or", ""));
}

/* Makes one argument invalid. */
static void operation_spoil(pcclReduceDescriptor_t *desc, const char *which)
{
	if (strcmp(which, "type") == 0)
		desc->src_descriptor.datatype = (pcclDataType_t)77;
	else if (strcmp(which, "count") == 0)
		desc->count = SIZE_MAX / 2;
	else if (strcmp(which, "op") == 0)
		desc->op = (pcclRedOp_t)77;
	else if (strcmp(which, "quantization") == 0)
		desc->quantization_options.algorithm = (pcclQuantizationAlgorithm_t)3;
	else if (*which)
		die("wrong", which);
}

static void operation_push(const struct operation *op)
{
	area_push(&op->send);
	if (!op->in_place)
		area_push(&op->recv);
}

static void operation_pull(const struct operation *op)
{
	area_pull(&op->send);
	if (!op->in_place)
		area_pull(&op->recv);
}

static void operation_prepare(struct operation *op)
{
	const char *mem = word("mem", "own");
	bool both = strcmp(mem, "shared") == 0;
	size_t size, shift;

	operation_parse(op);
	size = data_type_size(op->spec.type);
	shift = number("shift", "0") * size;
	area_make(&op->send, op->spec.count * size, shift, both || strcmp(mem, "send") == 0);
	data_fill(op->send.data, &op->spec, peer.id);
	if (op->in_place) {
		op->recv = op->send;
	} else {
		area_make(
			&op->recv, op->spec.count * size, shift, both || strcmp(mem, "recv") == 0);
		data_fill(op->recv.data, &op->other, peer.id);
	}
	if (number("freeze", "0") == 1)
		freeze(op->send.data, op->send.bytes, PROT_NONE);
	else if (number("freeze", "0"))
		freeze(op->send.data + op->send.bytes - 4 * PAGE, 4 * PAGE, PROT_NONE);
	/* If there is no communicator, the call itself reports that. */
	if (peer.comm && pcclSetOutputPolicy(
				 peer.comm, op->disposable ? pcclOutputDisposable : pcclOutputKept))
		die("pcclSetOutputPolicy", pcclGetLastError());
	if (peer.comm && pcclSetErrorFeedback(peer.comm, op->desc.tag, number("feedback", "0")) !=
				 pcclSuccess)
		die("pcclSetErrorFeedback", pcclGetLastError());
	memset(&op->info, GUARD_BYTE, sizeof op->info);
	operation_spoil(&op->desc, word("wrong", ""));
	operation_push(op);
	op->busy = true;
}

static void operation_free(struct operation *op)
{
	if (!op->in_place)
		area_free(&op->recv);
	area_free(&op->send);
	op->busy = false;
}

static bool info_untouched(const pcclReduceInfo_t *info)
{
	pcclReduceInfo_t untouched;

	memset(&untouched, GUARD_BYTE, sizeof untouched);
	return info->local_world_size == untouched.local_world_size &&
	       info->tx_bytes == untouched.tx_bytes && info->rx_bytes == untouched.rx_bytes;
}

/* Checks the buffers after a failure. They are as before the call, except for disposable outputs.
 */
static const char *judge_failure(const struct operation *op)
{
	if (data_differs(op->send.data, &op->spec, peer.id) >= 0)
		return "sendbuf changed by a failed call";
	if (!op->in_place && !op->disposable &&
		data_differs(op->recv.data, &op->other, peer.id) >= 0)
		return "recvbuf changed by a failed call";
	if (!info_untouched(&op->info))
		return "reduce info written by a failed call";
	return NULL;
}

/* Returns the peers whose data must be in the result: `ids`, or `or` if the call reports as many
 * members as `or` has. */
static const struct contributors *contributors_of(const struct operation *op)
{
	if (op->or_ids.n && op->info.local_world_size == op->or_ids.n)
		return &op->or_ids;
	return &op->ids;
}

static const char *judge_success(const struct operation *op, char why[WHY_SIZE])
{
	const struct contributors *c = contributors_of(op);
	int64_t at;

	if (c->n && op->info.local_world_size != c->n) {
		snprintf(why, WHY_SIZE, "world size %u in the result, not %u",
			op->info.local_world_size, c->n);
		return why;
	}
	if (!op->in_place) {
		at = data_differs(op->send.data, &op->spec, peer.id);
		if (at >= 0) {
			snprintf(why, WHY_SIZE, "element %" PRId64 " of sendbuf changed", at);
			return why;
		}
	}
	if (op->verify && c->n && op->desc.quantization_options.algorithm == pcclQuantNone) {
		at = data_wrong(op->recv.data, &op->spec, op->desc.op, c->id, c->n);
		if (at >= 0) {
			snprintf(why, WHY_SIZE, "element %" PRId64 " of the result is wrong", at);
			return why;
		}
	}
	return NULL;
}

/* Returns the fault of the buffers after a call, or NULL. */
static const char *judge(const struct operation *op, pcclResult_t r, char why[WHY_SIZE])
{
	operation_pull(op);
	if (!area_intact(&op->send) || (!op->in_place && !area_intact(&op->recv)))
		return "bytes beside a buffer were written";
	return r == pcclSuccess ? judge_success(op, why) : judge_failure(op);
}

/* Calls that failed with a loss before the call that is reported. */
struct losses {
	uint32_t n;
	uint64_t first; /* when the first one returned, ns */
	const char *wrong;
};

/* Reports an operation. error: the text of pcclGetLastError. */
static void operation_report(struct operation *op, pcclResult_t r, uint64_t begin, uint64_t end,
	const char *error, const struct losses *losses)
{
	char why[WHY_SIZE];
	const char *wrong = losses->wrong ? losses->wrong : judge(op, r, why);
	const struct contributors *c = contributors_of(op);

	printf("%s code=%d begin=%" PRIu64 " end=%" PRIu64 " losses=%u first_loss=%" PRIu64,
		peer.command, (int)r, begin, end, losses->n, losses->first);
	if (r == pcclSuccess)
		printf(" world=%u tx=%" PRIu64 " rx=%" PRIu64 " hash=%016" PRIx64,
			op->info.local_world_size, op->info.tx_bytes, op->info.rx_bytes,
			data_hash(op->recv.data, op->recv.bytes));
	if (r == pcclSuccess && op->verify && op->desc.quantization_options.algorithm)
		printf(" error=%f", data_error(op->recv.data, &op->spec, op->desc.op, c->id, c->n));
	printf(" check=%s", wrong ? "wrong" : "ok");
	printf(" text=%s%s%s\n", wrong ? wrong : "", wrong && *error ? "; " : "", error);
	operation_free(op);
}

/* Returns whether the call, which returned r at `end`, must be repeated. */
static bool is_lost(
	struct operation *op, pcclResult_t r, uint64_t end, struct losses *losses, uint64_t retries)
{
	char why[WHY_SIZE];

	if (r != pcclRankConnectionLost || losses->n >= retries)
		return false;
	fprintf(stderr, "%" PRIu64 " lost: %s\n", end, pcclGetLastError());
	if (losses->n++ == 0)
		losses->first = end;
	if (!losses->wrong && !number("hurry", "0"))
		losses->wrong = judge(op, r, why);
	return true;
}

/* The communicator is gone. The buffers belong to the peer again, with their earlier contents. */
void operations_given_up(void)
{
	for (int i = 0; i < SLOTS; i++) {
		if (!ops[i].busy)
			continue;
		operation_pull(&ops[i]);
		if (judge_failure(&ops[i]))
			die("destroy", judge_failure(&ops[i]));
		operation_free(&ops[i]);
	}
}

static struct operation *slot(bool busy)
{
	uint64_t n = number("slot", NULL);

	if (n >= SLOTS || ops[n].busy != busy)
		die("slot", word("slot", NULL));
	return &ops[n];
}

void do_submit(void)
{
	struct operation *op = slot(false);
	uint64_t begin;
	pcclResult_t r;

	operation_prepare(op);
	begin = now();
	r = pcclAllReduceAsync(op->send.given, op->recv.given, &op->desc, peer.comm, &op->handle);
	printf("submit");
	say_outcome(r, begin, now());
	if (r != pcclSuccess)
		operation_free(op);
}

void do_await(void)
{
	struct operation *op = slot(true);
	struct losses losses = {0};
	uint64_t begin = now(), end;
	pcclResult_t r = pcclAwaitAsyncReduce(&op->handle, &op->info);

	end = now();
	operation_report(op, r, begin, end, r == pcclSuccess ? "" : pcclGetLastError(), &losses);
}

void do_reduce(void)
{
	uint64_t retries = number("retry", "0"), begin, end;
	const char *of = word("of", "");
	struct losses losses = {0};
	struct operation op;
	struct area *victim;
	pcclResult_t r;

	operation_prepare(&op);
	victim = op.in_place || strcmp(of, "send") == 0 ? &op.send : &op.recv;
	device_begin(of[0] ? victim->device : NULL);
	begin = now();
	do {
		r = pcclAllReduce(op.send.given, op.recv.given, &op.desc, peer.comm, &op.info);
		end = now();
	} while (is_lost(&op, r, end, &losses, retries));
	if (device_end())
		victim->device = NULL;
	operation_report(&op, r, begin, end, r == pcclSuccess ? "" : pcclGetLastError(), &losses);
}

void do_mean(void)
{
	uint64_t times = number("n", NULL), begin;
	struct losses losses = {0};
	pcclResult_t r = pcclSuccess;
	struct operation op;
	double *sum;
	float *recv;

	operation_prepare(&op);
	if (op.in_place || op.spec.type != pcclFloat)
		die("mean", "needs type=f32 and place=out");
	recv = (float *)(void *)op.recv.data;
	sum = calloc(op.spec.count, sizeof *sum);
	if (!sum)
		die("memory", "exhausted");
	begin = now();
	for (uint64_t k = 0; k < times && r == pcclSuccess; k++) {
		r = pcclAllReduce(op.send.given, op.recv.given, &op.desc, peer.comm, &op.info);
		area_pull(&op.recv);
		for (size_t i = 0; i < op.spec.count; i++)
			sum[i] += (double)recv[i];
	}
	for (size_t i = 0; i < op.spec.count && r == pcclSuccess; i++)
		recv[i] = (float)(sum[i] / (double)times);
	area_push(&op.recv);
	free(sum);
	operation_report(&op, r, begin, now(), r == pcclSuccess ? "" : pcclGetLastError(), &losses);
}

struct storm {
	uint64_t done, lost, longest, begin, end, hash;
	pcclResult_t last;
	const char *wrong;
	char why[WHY_SIZE];
};

static void storm_prepare(const struct storm *s, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		struct operation *op = &ops[k];

		operation_prepare(op);
		op->spec.seed += s->done + k;
		op->other.seed = ~op->spec.seed;
		data_fill(op->recv.data, &op->other, peer.id);
		data_fill(op->send.data, &op->spec, peer.id);
		operation_push(op);
	}
}

/* Repeats lost operations at once. */
static void storm_blow(struct storm *s, uint32_t n, pcclResult_t results[SLOTS])
{
	for (uint32_t k = 0; k < n && s->last == pcclSuccess; k++) {
		struct operation *op = &ops[k];
		uint64_t begin;

		do {
			begin = now();
			results[k] = pcclAllReduce(
				op->send.given, op->recv.given, &op->desc, peer.comm, &op->info);
			s->end = now();
			s->longest = s->end - begin > s->longest ? s->end - begin : s->longest;
			s->lost += results[k] == pcclRankConnectionLost;
			if (results[k] != pcclSuccess && !s->wrong)
				s->wrong = judge(op, results[k], s->why);
		} while (results[k] == pcclRankConnectionLost);
		s->last = results[k];
	}
}

static void storm_judge(struct storm *s, uint32_t n, const pcclResult_t results[SLOTS])
{
	for (uint32_t k = 0; k < n; k++) {
		struct operation *op = &ops[k];

		operation_pull(op);
		s->hash = 31 * s->hash + data_hash(op->recv.data, op->recv.bytes);
		if (!s->wrong && s->last == pcclSuccess)
			s->wrong = judge(op, results[k], s->why);
		operation_free(op);
	}
	s->done += n;
}

void do_storm(void)
{
	uint64_t n = number("n", NULL);
	pcclResult_t results[SLOTS];
	struct storm s = {0};

	while (s.done < n && !s.wrong && s.last == pcclSuccess) {
		uint32_t batch = n - s.done < SLOTS ? (uint32_t)(n - s.done) : SLOTS;

		storm_prepare(&s, batch);
		if (s.done == 0) {
			puts("prepared");
			fflush(stdout);
			s.begin = now();
		}
		storm_blow(&s, batch, results);
		storm_judge(&s, batch, results);
	}
	printf("storm n=%" PRIu64 " lost=%" PRIu64 " longest=%" PRIu64 " hash=%016" PRIx64
	       " check=%s code=%d begin=%" PRIu64 " end=%" PRIu64 " text=%s\n",
		s.done, s.lost, s.longest, s.hash, s.wrong ? "wrong" : "ok", (int)s.last, s.begin,
		s.end,
		s.wrong                 ? s.wrong
		: s.last == pcclSuccess ? ""
					: pcclGetLastError());
}

/* Starts the operations that have no result yet, and awaits all of them. */
static void many_round(uint32_t n, pcclResult_t results[SLOTS], struct losses losses[SLOTS])
{
	uint64_t ends[SLOTS] = {0}; /* of the operations that were started */

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = (i + peer.id) % n; /* a different order on each peer */
		struct operation *op = &ops[k];

		if (results[k] != pcclRankConnectionLost)
			continue;
		results[k] = pcclAllReduceAsync(
			op->send.given, op->recv.given, &op->desc, peer.comm, &op->handle);
		ends[k] = results[k] == pcclSuccess;
	}
	for (uint32_t k = 0; k < n; k++) {
		if (!ends[k])
			continue;
		results[k] = pcclAwaitAsyncReduce(&ops[k].handle, &ops[k].info);
		ends[k] = now();
	}
	for (uint32_t k = 0; k < n; k++)
		if (ends[k])
			is_lost(&ops[k], results[k], ends[k], &losses[k], UINT32_MAX);
}

void do_many(void)
{
	uint32_t n = (uint32_t)number("n", NULL), rounds = (uint32_t)number("retry", "0") + 1;
	pcclResult_t results[SLOTS] = {pcclSuccess};
	struct losses losses[SLOTS] = {{0}};
	uint64_t begin, end;

	if (n < 1 || n > SLOTS)
		die("many", "n");
	for (uint32_t k = 0; k < n; k++) {
		operation_prepare(&ops[k]);
		ops[k].desc.tag += k;
		results[k] = pcclRankConnectionLost;
	}
	begin = now();
	for (uint32_t i = 0; i < rounds; i++)
		many_round(n, results, losses);
	end = now();
	for (uint32_t k = 0; k < n; k++)
		operation_report(&ops[k], results[k], begin, end, "", &losses[k]);
}

/* Returns how many peers contributed to the result, or 0 if the result is neither the sum
 * of `ids` nor that of `or_ids`. */
static uint32_t contributed(const struct operation *op)
{
	const struct contributors *c[] = {&op->ids, &op->or_ids};

	operation_pull(op);
	for (int i = 0; i < 2; i++)
		if (c[i]->n > 1 &&
			data_wrong(op->recv.data, &op->spec, op->desc.op, c[i]->id, c[i]->n) < 0)
			return c[i]->n;
	return 0;
}

/* Checks the information about the whole call. Returns the fault, or NULL. No newcomer joins during
 * the call, and all operations of its last pass succeed without a loss. So no operation has fewer
 * members than the one that was awaited last. */
static const char *judge_several(const pcclReduceInfo_t *info, pcclResult_t r,
	const uint32_t members[SLOTS], uint32_t n, char why[WHY_SIZE])
{
	uint32_t least = UINT32_MAX;

	if (r != pcclSuccess)
		return info_untouched(info) ? NULL : "reduce info written by a failed call";
	for (uint32_t k = 0; k < n; k++)
		least = members[k] < least ? members[k] : least;
	/* least is 0 if a sum is wrong or if ids= is not given */
	if (least == 0 || info->local_world_size == least)
		return NULL;
	snprintf(why, WHY_SIZE, "the call reports %u members, but the last sum contains %u",
		info->local_world_size, least);
	return why;
}

/* The call reports neither the members of each operation nor, if it fails, which operations are
 * done. Both follow from the contents of the buffers. */
void do_several(void)
{
	uint32_t n = (uint32_t)number("n", NULL), members[SLOTS];
	pcclReduceOpDescriptor_t descriptors[SLOTS];
	struct losses losses = {0};
	char why[WHY_SIZE];
	pcclReduceInfo_t info;
	uint64_t begin, end;
	char *error; /* a copy, because freeing memory clears the library's text */
	pcclResult_t r;

	if (n < 1 || n > SLOTS)
		die("several", "n");
	for (uint32_t k = 0; k < n; k++) {
		struct operation *op = &ops[k];

		operation_prepare(op);
		op->desc.tag += k;
		descriptors[k] =
			(pcclReduceOpDescriptor_t){op->send.given, op->recv.given, op->desc};
	}
	if (number("twice", "0"))
		descriptors[n - 1].descriptor.tag = descriptors[0].descriptor.tag;
	memset(&info, GUARD_BYTE, sizeof info);
	begin = now();
	r = pcclAllReduceMultipleWithRetry(
		descriptors, n, peer.comm, &info, (int)number("window", NULL));
	end = now();
	error = strdup(r == pcclSuccess ? "" : pcclGetLastError());
	if (!error)
		die("memory", "exhausted");
	for (uint32_t k = 0; k < n; k++)
		members[k] = contributed(&ops[k]);
	losses.wrong = judge_several(&info, r, members, n, why);
	for (uint32_t k = 0; k < n; k++) {
		if (members[k])
			ops[k].info = (pcclReduceInfo_t){.local_world_size = members[k]};
		operation_report(&ops[k], members[k] ? pcclSuccess : r, begin, end,
			members[k] ? "" : error, &losses);
	}
	free(error);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void do_bench(void)
{
	size_t n = number("n", NULL), i;
	uint64_t *took = calloc(n, sizeof *took), begin;
	struct operation op;
	pcclResult_t r = pcclSuccess;

	if (!took || n == 0)
		die("bench", "n");
	operation_prepare(&op);
	begin = now();
	for (i = 0; i < n && r == pcclSuccess; i++) {
		uint64_t start = now();

		r = pcclAllReduce(op.send.given, op.recv.given, &op.desc, peer.comm, &op.info);
		took[i] = now() - start;
	}
	qsort(took, i, sizeof *took, by_size);
	printf("bench min=%" PRIu64 " median=%" PRIu64 " max=%" PRIu64, took[0], took[i / 2],
		took[i - 1]);
	say_outcome(r, begin, now());
	operation_free(&op);
	free(took);
}

/* ---- a thread that reduces while the main thread makes calls of its own */

#define ASKED_MIN 20u

struct worker {
	struct operation op;
	uint64_t n, done;
	sem_t launched, go;
	/* results of the operations, and of a call that only the main thread may make */
	pcclResult_t result, update;
	const char *wrong;
	char why[WHY_SIZE];
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct operation *op = &w->op;
	bool verify = op->verify;

	op->verify = false; /* only the last operation is verified */
	w->update = pcclUpdateTopology(peer.comm);
	w->result = pcclAllReduceAsync(
		op->send.given, op->recv.given, &op->desc, peer.comm, &op->handle);
	sem_post(&w->launched);
	sem_wait(&w->go);
	if (w->result == pcclSuccess)
		w->result = pcclAwaitAsyncReduce(&op->handle, &op->info);
	while (w->result == pcclSuccess && !w->wrong && ++w->done < w->n) {
		w->wrong = judge(op, w->result, w->why);
		w->result = pcclAllReduce(
			op->send.given, op->recv.given, &op->desc, peer.comm, &op->info);
	}
	op->verify = verify;
	if (!w->wrong)
		w->wrong = judge(op, w->result, w->why);
	return NULL;
}

void do_threads(void)
{
	struct worker w = {.n = number("n", NULL)};
	uint64_t begin = now(), asked = 0;
	bool pending = false;
	pcclResult_t r = pcclSuccess, update, await, launch;
	pcclAsyncReduceOp_t handle;
	pthread_t thread;

	operation_prepare(&w.op);
	sem_init(&w.launched, 0, 0);
	sem_init(&w.go, 0, 0);
	if (pthread_create(&thread, NULL, work, &w) != 0)
		die("threads", "pthread_create");
	sem_wait(&w.launched);
	for (; asked < ASKED_MIN / 2 && r == pcclSuccess; asked++)
		r = pcclArePeersPending(peer.comm, &pending);
	handle = w.op.handle;
	update = pcclUpdateTopology(peer.comm);
	await = pcclAwaitAsyncReduce(&handle, NULL);
	launch = pcclAllReduceAsync(
		w.op.send.given, w.op.recv.given, &w.op.desc, peer.comm, &handle);
	sem_post(&w.go);
	for (; (!pending || asked < ASKED_MIN) && r == pcclSuccess; asked++)
		r = pcclArePeersPending(peer.comm, &pending);
	pthread_join(thread, NULL);
	printf("threads asked=%" PRIu64 " done=%" PRIu64 " result=%d update=%d await=%d launch=%d "
	       "other_update=%d hash=%016" PRIx64 " check=%s",
		asked, w.done, (int)w.result, (int)update, (int)await, (int)launch, (int)w.update,
		data_hash(w.op.recv.data, w.op.recv.bytes), w.wrong ? "wrong" : "ok");
	say_outcome(r, begin, now());
	operation_free(&w.op);
	sem_destroy(&w.launched);
	sem_destroy(&w.go);
}

/* ---- a thread that reduces while the main thread optimizes the topology */

static sem_t told;

static void on_told(int signo)
{
	(void)signo;
	sem_post(&told);
}

struct intruder {
	struct operation op;
	pcclResult_t launch;
	pthread_t thread;
};

static void *intrude(void *arg)
{
	struct intruder *x = arg;
	struct operation *op = &x->op;

	while (sem_wait(&told) != 0)
		;
	x->launch = pcclAllReduce(op->send.given, op->recv.given, &op->desc, peer.comm, &op->info);
	return NULL;
}

void do_beside(void)
{
	struct sigaction sa = {.sa_handler = on_told, .sa_flags = SA_RESTART};
	struct intruder x = {.launch = pcclSuccess};
	char why[WHY_SIZE], text[WHY_SIZE];
	uint64_t begin;
	const char *wrong;
	pcclResult_t r;

	operation_prepare(&x.op);
	sem_init(&told, 0, 0);
	sigaction(SIGUSR1, &sa, NULL);
	if (pthread_create(&x.thread, NULL, intrude, &x) != 0)
		die("beside", "pthread_create");
	begin = now();
	r = pcclOptimizeTopology(peer.comm);
	(void)snprintf(text, sizeof text, "%s", r == pcclSuccess ? "" : pcclGetLastError());
	pthread_join(x.thread, NULL);
	wrong = judge(&x.op, x.launch, why);
	printf("beside launch=%d check=%s code=%d begin=%" PRIu64 " end=%" PRIu64 " text=%s%s\n",
		(int)x.launch, wrong ? "wrong" : "ok", (int)r, begin, now(), wrong ? wrong : "",
		text);
	operation_free(&x.op);
	sem_destroy(&told);
}
