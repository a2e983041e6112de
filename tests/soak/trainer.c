/* SPDX-License-Identifier: MIT
 *
 * A trainer for the soak. It joins, admits newcomers, reduces buffers of many sizes together with
 * all members, checks every result, and goes on after every failure, until it is killed or gets a
 * line on its standard input. Then it releases everything, reports this, and stays, so that its
 * resources can be counted, until its standard input ends.
 *
 *	trainer slot=N serial=N master=A.B.C.D:PORT seed=N shut=0|1
 *
 * shut=1: its host cannot be reached, so it never joins a run with others.
 *
 * If a member lacks memory, all members get this error and go on with the next step. If the agent
 * of one member dies just then, this member gets a loss instead, and repeats the call. The others
 * make another call meanwhile, so all get the error that their calls wait for each other, and go on
 * with the next step.
 *
 * Each living trainer has its own slot (0 .. 11). Element i of the operand of slot s is (1 << 5s) *
 * h(step, tag, i), where h is odd. So a sum divided by h counts how often each slot is in it. The
 * result shows exactly which trainers contributed, and their number must be the one that the call
 * reports. The lines on standard output:
 *
 *	connect begin=NS end=NS code=N text=...
 *	op step=N tag=N mask=HEX began=NS end=NS lost=N [hash=HEX]
 *	sync step=N revision=N state=HEX began=NS end=NS lost=N got=0|1		state.c
 *	error code=N in=CALL text=...
 *	slow began=NS text=CALL		a call that has lasted for SLOW_S
 *	slow began=NS end=NS text=CALL	a slow call has returned
 *	bye
 *	WRONG ...
 *
 * In a quantized operation each slot has its own part of the vector. Its trainer's operand is 1
 * there, and 0 elsewhere. All modes keep these numbers nearly exact, and all trainers must have the
 * same bits (hash=).
 *
 * Times are CLOCK_MONOTONIC. soak.py decides whether a call lasts too long, because it knows the
 * events during the call.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/soak/trainer.h"

#define SLOTS     12u
#define SLOT_BITS 5u
#define BUFFERS   6u
#define COUNT_MAX (1u << 17)
#define SPAN      (COUNT_MAX * sizeof(uint64_t))
#define EXCHANGE  32u /* steps */
#define SYNC      4u  /* steps */
#define SLOW_S    1u
#define PART_MAX  4096u /* elements of one slot in a quantized operation */
#define AWAY_S    20u   /* the longest time without an agent when a trainer starts */
#define S_NS      UINT64_C(1000000000)

struct buffer {
	uint64_t *send, *recv; /* both are the same address if in_place */
	uint64_t count;
	bool in_place;
};

pcclComm_t *comm;
uint64_t step;
static pcclCommCreateParams_t params;
static unsigned slot;
static bool shut;
static uint64_t serial, seed, *biases, *weights;
static struct buffer buffers[BUFFERS];
static const char *current_call;
static uint64_t call_began;
static char slow_line[128]; /* prepared for the signal handler */
static size_t slow_len;

uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* Returns an odd number, which has an inverse. */
static uint64_t factor(uint64_t tag, uint64_t i)
{
	return mix(mix(step * 64 + tag) + i) | 1;
}

/* Returns 1 / odd modulo 2^64, by Newton's iteration. */
static uint64_t inverse(uint64_t odd)
{
	uint64_t x = odd;

	for (int k = 0; k < 5; k++)
		x *= 2 - odd * x;
	return x;
}

/* ---- calls */

/* Reports that a call is slow. The alarm occurs only while a call is inside the library, so nothing
 * else writes a line at this moment. */
static void on_alarm(int signo)
{
	(void)signo;
	(void)!write(STDOUT_FILENO, slow_line, slow_len);
}

void enter(const char *call)
{
	current_call = call;
	call_began = now();
	slow_len = (size_t)snprintf(
		slow_line, sizeof slow_line, "slow began=%" PRIu64 " text=%s\n", call_began, call);
	alarm(SLOW_S);
}

pcclResult_t leave(pcclResult_t r)
{
	uint64_t end = now();

	alarm(0);
	if (end - call_began >= SLOW_S * S_NS)
		printf("slow began=%" PRIu64 " end=%" PRIu64 " text=%s\n", call_began, end,
			current_call);
	if (r != pcclSuccess)
		printf("error code=%d in=%s text=%s\n", (int)r, current_call, pcclGetLastError());
	return r;
}

void wrong(const char *fmt, ...)
{
	va_list ap;

	printf("WRONG step=%" PRIu64 " ", step);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	_exit(3);
}

static bool told_to_stop(void)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* ---- operands and results */

static void fill(const struct buffer *b, uint64_t tag)
{
	for (uint64_t i = 0; i < b->count; i++)
		b->send[i] = factor(tag, i) << (SLOT_BITS * slot);
	if (!b->in_place)
		memset(b->recv, 0x5a, b->count * sizeof *b->recv);
}

static void check_untouched(const struct buffer *b, uint64_t tag)
{
	for (uint64_t i = 0; i < b->count; i++)
		if (b->send[i] != factor(tag, i) << (SLOT_BITS * slot))
			wrong("tag=%" PRIu64 ": element %" PRIu64 " of sendbuf was changed", tag,
				i);
}

static void check_failed(const struct buffer *b, uint64_t tag)
{
	check_untouched(b, tag);
	if (b->in_place)
		return;
	for (uint64_t i = 0; i < b->count * sizeof *b->recv; i++)
		if (((const uint8_t *)b->recv)[i] != 0x5a)
			wrong("tag=%" PRIu64 ": byte %" PRIu64
			      " of recvbuf was changed by a call that failed",
				tag, i);
}

static unsigned slots_in(uint64_t counts, uint64_t tag)
{
	unsigned n = 0;

	for (unsigned s = 0; s < SLOTS; s++) {
		unsigned k = counts >> (SLOT_BITS * s) & ((1u << SLOT_BITS) - 1);

		if (k > 1)
			wrong("tag=%" PRIu64 ": slot %u is %u times in the sum", tag, s, k);
		n += k;
	}
	if (counts >> (SLOT_BITS * SLOTS))
		wrong("tag=%" PRIu64 ": 0x%" PRIx64 " is not a sum of operands", tag, counts);
	return n;
}

/* Returns which slots have contributed to the result: a bit for each slot, SLOT_BITS apart.
 * world_size 0: the caller checks the number of members. */
static uint64_t check_result(const struct buffer *b, uint64_t tag, uint32_t world_size)
{
	uint64_t counts = b->recv[0] * inverse(factor(tag, 0));
	unsigned n = slots_in(counts, tag);

	if (world_size && n != world_size)
		wrong("tag=%" PRIu64 ": %u contributions (0x%" PRIx64 "), the call says %u", tag, n,
			counts, world_size);
	if (!(counts >> (SLOT_BITS * slot) & 1))
		wrong("tag=%" PRIu64 ": my own contribution is missing", tag);
	for (uint64_t i = 1; i < b->count; i++)
		if (b->recv[i] != counts * factor(tag, i))
			wrong("tag=%" PRIu64 ": element %" PRIu64
			      " has other contributors than element 0",
				tag, i);
	if (!b->in_place)
		check_untouched(b, tag);
	return counts;
}

/* hash: the hash of the bits of a quantized result, or 0 for any other result. */
static void say_op(uint64_t tag, uint64_t mask, uint64_t began, unsigned lost, uint64_t hash)
{
	printf("op step=%" PRIu64 " tag=%" PRIu64 " mask=%" PRIx64 " began=%" PRIu64 " end=%" PRIu64
	       " lost=%u",
		step, tag, mask, began, now(), lost);
	if (hash)
		printf(" hash=%" PRIx64, hash);
	putchar('\n');
}

static pcclReduceDescriptor_t describe(uint64_t count, pcclRedOp_t op, uint64_t tag)
{
	return (pcclReduceDescriptor_t){
		.count = count, .op = op, .tag = tag, .src_descriptor = {.datatype = pcclUint64}};
}

/* ---- memory */

static pcclResult_t shared_memory(size_t bytes, uint64_t **ret)
{
	void *p = NULL;
	pcclResult_t r;

	enter("pcclMemAlloc");
	r = leave(pcclMemAlloc(bytes, &p));
	*ret = p;
	return r;
}

/* Repeats an allocation while it fails with `passing`. */
static pcclResult_t await_memory(pcclResult_t passing, uint64_t **ret)
{
	struct timespec pause = {.tv_nsec = 50000000};
	uint64_t limit = now() + AWAY_S * S_NS;
	pcclResult_t r;

	while ((r = shared_memory(SPAN, ret)) == passing && now() < limit)
		nanosleep(&pause, NULL);
	return r;
}

/* Waits for an agent, because none may be running when this process starts, and the library waits
 * only for an agent that the process has known. */
static void await_agent(void)
{
	uint64_t *p;
	pcclResult_t r = await_memory(pcclAgentUnavailable, &p);

	if (r != pcclSuccess || leave(pcclMemFree(p)) != pcclSuccess)
		exit(4);
}

/* Frees and allocates memory, as in a long run. */
static void exchange_memory(void)
{
	struct buffer *b = &buffers[1]; /* shared, and in place */

	enter("pcclMemFree");
	if (leave(pcclMemFree(b->send)) != pcclSuccess)
		wrong("allocated memory cannot be freed");
	/* On the host with little memory, other trainers may use the memory for a moment. */
	if (await_memory(pcclOutOfMemory, &b->send) != pcclSuccess)
		wrong("no memory: %s", pcclGetLastError());
	b->recv = b->send;
}

/* ---- a step. All members make the same calls, because what they do next follows from results that
 * are equal on all members. */

/* Returns a step number that was never used before. This also holds if all members lose their
 * membership, and other trainers, which do not know the last step, start again. No run makes this
 * many steps in a millisecond. */
static uint64_t first_step(void)
{
	return now() / 1000000 << 20 | (uint64_t)slot << 16;
}

static pcclResult_t agree_on_step(void)
{
	pcclReduceDescriptor_t d = describe(1, pcclMax, 0);
	uint64_t mine = step + 1;
	pcclResult_t r;

	do {
		enter("pcclAllReduce of the step");
		r = leave(pcclAllReduce(&mine, &mine, &d, comm, NULL));
		if (r != pcclSuccess && mine != step + 1)
			wrong("a failed call changed the step to %" PRIu64, mine);
	} while (r == pcclRankConnectionLost);
	if (r == pcclSuccess)
		step = mine;
	return r;
}

/* Runs one small operation and measures its attempts. */
static pcclResult_t probe(void)
{
	struct buffer b = buffers[0];
	pcclReduceDescriptor_t d;
	pcclReduceInfo_t info;
	uint64_t began;
	unsigned lost = 0;
	pcclResult_t r;

	b.count = 1 + mix(step) % 5000;
	d = describe(b.count, pcclSum, 1);
	fill(&b, 1);
	for (;;) {
		began = now();
		enter("pcclAllReduce");
		r = leave(pcclAllReduce(b.send, b.recv, &d, comm, &info));
		if (r == pcclSuccess)
			break;
		check_failed(&b, 1);
		if (r != pcclRankConnectionLost)
			return r;
		lost++;
	}
	say_op(1, check_result(&b, 1, info.local_world_size), began, lost, 0);
	return r;
}

/* ---- quantized operations */

#define QUANTIZED_TAG 20u

static float operand[SLOTS * PART_MAX], result[SLOTS * PART_MAX];

static pcclReduceDescriptor_t describe_quantized(uint64_t part)
{
	static const pcclQuantizationOptions_t modes[] = {
		{.quantized_datatype = pcclInt8, .algorithm = pcclQuantBlockwise},
		{.quantized_datatype = pcclInt4, .algorithm = pcclQuantBlockwise},
		{.quantized_datatype = pcclUint8, .algorithm = pcclQuantMinMax},
	};
	pcclReduceDescriptor_t d = describe(SLOTS * part, pcclSum, QUANTIZED_TAG);

	d.src_descriptor.datatype = pcclFloat;
	d.quantization_options = modes[step % (sizeof modes / sizeof *modes)];
	return d;
}

static float mine_at(uint64_t i, uint64_t part)
{
	return i / part == slot ? 1 : 0;
}

static void check_operand(const float *v, uint64_t part)
{
	for (uint64_t i = 0; i < SLOTS * part; i++)
		if (v[i] != mine_at(i, part))
			wrong("element %" PRIu64 " of a quantized operand was changed", i);
}

static void check_old(uint64_t n)
{
	for (uint64_t i = 0; i < n * sizeof *result; i++)
		if (((const uint8_t *)result)[i] != 0x5a)
			wrong("byte %" PRIu64 " was changed by a quantized call that failed", i);
}

/* Returns which slots have contributed, like check_result. */
static uint64_t check_sum(const float *v, uint64_t part, uint32_t world_size)
{
	uint64_t counts = 0;
	unsigned n;

	for (unsigned s = 0; s < SLOTS; s++)
		counts |= (uint64_t)(v[s * part] + 0.5f) << (SLOT_BITS * s);
	n = slots_in(counts, QUANTIZED_TAG);
	if (n != world_size || !(counts >> (SLOT_BITS * slot) & 1))
		wrong("the quantized sum 0x%" PRIx64 " has %u contributions, the call says %u",
			counts, n, world_size);
	for (uint64_t i = 0; i < SLOTS * part; i++) {
		float e = v[i] - (float)(counts >> (SLOT_BITS * (i / part)) & 1);

		if (!(e > -0.01f && e < 0.01f))
			wrong("element %" PRIu64 " of a quantized sum is %g", i, (double)v[i]);
	}
	return counts;
}

static uint64_t hash_of(const float *v, uint64_t n)
{
	uint64_t h = 1;
	uint32_t bits;

	for (uint64_t i = 0; i < n; i++) {
		memcpy(&bits, &v[i], sizeof bits);
		h = mix(h ^ bits);
	}
	return h | 1;
}

/* Runs one quantized operation. Half of them are in place. */
static pcclResult_t quantized(void)
{
	uint64_t part = 1 + mix(step) % PART_MAX, began;
	pcclReduceDescriptor_t d = describe_quantized(part);
	float *out = step / 3 % 2 ? operand : result;
	pcclReduceInfo_t info;
	unsigned lost = 0;
	pcclResult_t r;

	for (uint64_t i = 0; i < d.count; i++)
		operand[i] = mine_at(i, part);
	memset(result, 0x5a, d.count * sizeof *result);
	for (;; lost++) {
		began = now();
		enter("pcclAllReduce, quantized");
		r = leave(pcclAllReduce(operand, out, &d, comm, &info));
		if (r == pcclSuccess)
			break;
		check_operand(operand, part);
		check_old(d.count);
		if (r != pcclRankConnectionLost)
			return r;
	}
	if (out == result)
		check_operand(operand, part);
	else
		check_old(d.count);
	say_op(QUANTIZED_TAG, check_sum(out, part, info.local_world_size), began, lost,
		hash_of(out, d.count));
	return r;
}

static void choose(void)
{
	for (unsigned k = 0; k < BUFFERS; k++) {
		uint64_t x = mix(step * BUFFERS + k + seed);
		struct buffer *b = &buffers[k];

		b->count = x % 4 ? 1 + (x >> 8) % 3000 : 1 + (x >> 8) % COUNT_MAX;
		fill(b, 2 + k);
	}
}

/* Starts all operations at once, and repeats the lost ones when all have ended. */
static pcclResult_t by_hand(void)
{
	pcclAsyncReduceOp_t handle[BUFFERS];
	bool done[BUFFERS] = {false}, launched[BUFFERS];
	uint64_t mask[BUFFERS];
	pcclResult_t verdict, r;
	unsigned lost = 0;

	for (;; lost++) {
		uint64_t began = now();

		verdict = pcclSuccess;
		for (unsigned k = 0; k < BUFFERS; k++) {
			pcclReduceDescriptor_t d = describe(buffers[k].count, pcclSum, 2 + k);

			launched[k] = false;
			if (done[k])
				continue;
			enter("pcclAllReduceAsync");
			r = leave(pcclAllReduceAsync(
				buffers[k].send, buffers[k].recv, &d, comm, &handle[k]));
			launched[k] = r == pcclSuccess;
			if (r != pcclSuccess)
				verdict = r;
		}
		for (unsigned k = 0; k < BUFFERS; k++) {
			pcclReduceInfo_t info;

			if (!launched[k])
				continue;
			enter("pcclAwaitAsyncReduce");
			r = leave(pcclAwaitAsyncReduce(&handle[k], &info));
			if (r == pcclSuccess) {
				mask[k] = check_result(&buffers[k], 2 + k, info.local_world_size);
				say_op(2 + k, mask[k], began, lost, 0);
				done[k] = true;
				continue;
			}
			check_failed(&buffers[k], 2 + k);
			if (verdict == pcclSuccess || verdict == pcclRankConnectionLost)
				verdict = r;
		}
		if (verdict != pcclRankConnectionLost)
			return verdict;
	}
}

/* Checks the number of members that the call reports: that of the operation that was awaited last.
 * No newcomer joins during the call, and its last pass is without a loss, so no other operation has
 * fewer members. */
static void check_view(const uint64_t masks[BUFFERS], uint32_t world_size)
{
	unsigned least = SLOTS;

	for (unsigned k = 0; k < BUFFERS; k++) {
		unsigned n = slots_in(masks[k], 2 + k);

		least = n < least ? n : least;
	}
	if (least != world_size)
		wrong("the last sums contain %u members, the call says %u", least, world_size);
}

static pcclResult_t by_the_library(void)
{
	pcclReduceOpDescriptor_t d[BUFFERS];
	uint64_t began = now(), masks[BUFFERS];
	pcclReduceInfo_t info;
	pcclResult_t r;

	for (unsigned k = 0; k < BUFFERS; k++)
		d[k] = (pcclReduceOpDescriptor_t){.sendbuf = buffers[k].send,
			.recvbuf = buffers[k].recv,
			.descriptor = describe(buffers[k].count, pcclSum, 2 + k)};
	enter("pcclAllReduceMultipleWithRetry");
	r = leave(pcclAllReduceMultipleWithRetry(
		d, BUFFERS, comm, &info, 1 + (int)(mix(step) % BUFFERS)));
	if (r != pcclSuccess)
		return r;
	for (unsigned k = 0; k < BUFFERS; k++) {
		masks[k] = check_result(&buffers[k], 2 + k, 0);
		say_op(2 + k, masks[k], began, 0, 0);
	}
	check_view(masks, info.local_world_size);
	return r;
}

/* Admits newcomers if there are some, or waits for one if this trainer is alone. */
static pcclResult_t look_for_newcomers(void)
{
	bool pending = false;
	pcclResult_t r;

	enter("pcclArePeersPending");
	r = leave(pcclArePeersPending(comm, &pending));
	if (r != pcclSuccess || !pending)
		return r;
	enter("pcclUpdateTopology");
	return leave(pcclUpdateTopology(comm));
}

/* Trains until the membership of the run is lost. */
static void train(void)
{
	pcclResult_t r = pcclSuccess;
	int world_size;

	/* A newcomer starts at the same point as the members that admitted it: after their vote. */
	for (bool taken_in = true; !told_to_stop(); taken_in = false) {
		if (!taken_in)
			r = look_for_newcomers();
		if (r != pcclSuccess && r != pcclUpdateTopologyFailed)
			return;
		if (pcclGetAttribute(comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &world_size) !=
			pcclSuccess)
			return;
		if (world_size < 2) {
			struct timespec pause = {.tv_nsec = 5000000};

			nanosleep(&pause, NULL); /* alone, so there is nothing else to wait for */
			continue;
		}
		r = agree_on_step();
		if (r == pcclSuccess)
			r = probe();
		if (r == pcclSuccess)
			r = quantized();
		if (r == pcclSuccess && step % SYNC == 0)
			r = state_synchronize();
		if (r == pcclSuccess) {
			if (step % EXCHANGE == 0)
				exchange_memory();
			choose();
			r = step % 2 ? by_hand() : by_the_library();
		}
		if (r != pcclSuccess && r != pcclTooFewPeers && r != pcclOutOfMemory &&
			r != pcclInvalidUsage) /* a lost membership is reported by the next call */
			return;
	}
}

/* ---- */

static uint64_t *memory(bool shared, size_t bytes)
{
	uint64_t *p = NULL;

	if (!shared)
		p = malloc(bytes);
	else
		(void)shared_memory(bytes, &p);
	if (!p)
		exit(4);
	return p;
}

/* The agent reads shared memory directly, and other memory through a window of the library. Half
 * of the trainers have shared weights. */
static bool has_shared_weights(void)
{
	return serial % 2;
}

static void make_buffers(void)
{
	await_agent();
	for (unsigned k = 0; k < BUFFERS; k++) {
		struct buffer *b = &buffers[k];
		bool shared = k % 2;

		b->in_place = k % 3 == 1;
		b->send = memory(shared, SPAN);
		b->recv = b->in_place ? b->send : memory(shared, SPAN);
	}
	biases = memory(true, STATE_BIASES * sizeof *biases);
	weights = memory(has_shared_weights(), STATE_WEIGHTS * sizeof *weights);
	state_make(serial, biases, weights);
}

static uint64_t number(int argc, char **argv, const char *key)
{
	size_t len = strlen(key);

	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], key, len) == 0)
			return strtoull(argv[i] + len, NULL, 0);
	fprintf(stderr, "trainer: %s is missing\n", key);
	exit(2);
}

static ccoip_socket_address_t master_address(int argc, char **argv)
{
	ccoip_socket_address_t a = {.inet.protocol = inetIPv4};
	char ip[64];
	int port;

	for (int i = 1; i < argc; i++) {
		port = 0; /* where the port begins */
		if (sscanf(argv[i], "master=%63[0-9.]:%n", ip, &port) == 1 && port > 0 &&
			inet_pton(AF_INET, ip, a.inet.ipv4.data) == 1) {
			a.port = (uint16_t)strtoul(argv[i] + port, NULL, 10);
			if (a.port > 0)
				return a;
		}
	}
	fprintf(stderr, "trainer: master= is missing\n");
	exit(2);
}

/* Replaces the communicator after a lost membership. The library must release everything that
 * belonged to the old one. */
static void another_communicator(void)
{
	pcclResult_t r;

	state_communicator_ends();
	enter("pcclDestroyCommunicator");
	(void)leave(pcclDestroyCommunicator(comm));
	enter("pcclCreateCommunicator");
	r = leave(pcclCreateCommunicator(&params, &comm));
	if (r != pcclSuccess)
		wrong("no new communicator can be created");
}

/* Leaves a run that may have no other member. */
static void leave_at_once(void)
{
	int world_size = 0;

	if (pcclGetAttribute(comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &world_size) == pcclSuccess &&
		world_size > 1)
		wrong("a trainer on the unreachable host is in a run of %d", world_size);
	another_communicator();
}

static void give_back(void)
{
	enter("pcclDestroyCommunicator");
	(void)leave(pcclDestroyCommunicator(comm));
	for (unsigned k = 1; k < BUFFERS; k += 2) {
		enter("pcclMemFree");
		(void)leave(pcclMemFree(buffers[k].send));
		if (!buffers[k].in_place)
			(void)pcclMemFree(buffers[k].recv);
	}
	(void)pcclMemFree(biases);
	if (has_shared_weights())
		(void)pcclMemFree(weights);
	else
		free(weights);
}

int main(int argc, char **argv)
{
	struct timespec pause = {.tv_nsec = 50000000};

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGALRM, on_alarm);
	slot = (unsigned)number(argc, argv, "slot=");
	serial = number(argc, argv, "serial=");
	seed = number(argc, argv, "seed=");
	shut = number(argc, argv, "shut=");
	params.master_address = master_address(argc, argv);
	params.p2p_connection_pool_size = 2;
	if (pcclInit() != pcclSuccess || pcclCreateCommunicator(&params, &comm) != pcclSuccess) {
		printf("error code=0 in=pcclCreateCommunicator text=%s\n", pcclGetLastError());
		return 4;
	}
	make_buffers();
	while (!told_to_stop()) {
		uint64_t begin = now();
		pcclResult_t r;

		enter("pcclConnect");
		r = leave(pcclConnect(comm));
		printf("connect begin=%" PRIu64 " end=%" PRIu64 " code=%d\n", begin, now(), (int)r);
		if (r == pcclAgentUnavailable)
			wrong("pcclConnect did not wait for an agent: %s", pcclGetLastError());
		if (r == pcclSuccess && shut) {
			leave_at_once();
		} else if (r == pcclSuccess) {
			step = first_step();
			state_joined();
			train();
		} else {
			nanosleep(&pause, NULL);
		}
		if (serial % 2)
			another_communicator();
	}
	give_back();
	puts("bye");
	while (read(STDIN_FILENO, slow_line, sizeof slow_line) > 0)
		;
	return 0;
}
