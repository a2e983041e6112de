/* SPDX-License-Identifier: MIT
 *
 * One peer, told what to do: a command per line on standard input, an answer per line on standard
 * output. Words after the command are key=value. An answer starts with the name of the command;
 * most say code=N (a pcclResult_t), begin= and end= (CLOCK_MONOTONIC, ns) and, as the last word,
 * text= with what pcclGetLastError says, up to the end of the line.
 *
 *	create [streams=N], connect, update, pending, destroy
 *	until world=N ms=N        pcclUpdateTopology until the run has at least so many peers
 *	attr                      the four attributes
 *	submit slot=N OP          starts an operation
 *	await slot=N              ends it; judges result and buffers: check=ok or what is wrong
 *	reduce OP                 both in one, by pcclAllReduce
 *	bench n=N OP              back to back on the same buffers: times in ns
 *	master addr=A:P, master-signal, master-await, master-destroy
 *	quit
 *
 * OP: type=f32 op=sum count=N seed=N tag=N ids=0,1,2 (whose data must be in the result), and if
 * wanted place=in, mem=shared|send|recv (pcclMemAlloc for both buffers, or one), shift=N (elements
 * that the buffers are off a page's start), special=1, verify=1 (compute the result as well).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/e2e/data.h"

#define SLOTS	   64
#define GUARD	   256u
#define GUARD_BYTE 0xa5
#define WORDS_MAX  24
#define WHY_SIZE   160

/* A buffer between guards. */
struct area {
	uint8_t *base;
	uint8_t *data;
	size_t bytes, size; /* of data; of all */
	bool shared;
};

struct operation {
	bool busy;
	struct data_spec spec, other; /* of sendbuf, and what recvbuf holds before the call */
	pcclReduceDescriptor_t desc;
	uint32_t ids[DATA_IDS_MAX], n_ids;
	bool in_place, verify;
	struct area send, recv;
	pcclAsyncReduceOp_t handle;
	pcclReduceInfo_t info;
};

static struct {
	uint32_t id;
	pcclCommCreateParams_t params;
	pcclComm_t *comm;
	struct operation ops[SLOTS];
	pcclMasterInstance_t *master;
} peer;

static char *words[WORDS_MAX];
static int n_words;

static _Noreturn void die(const char *what, const char *detail)
{
	fprintf(stderr, "peer: %s: %s\n", what, detail);
	exit(2);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- words */

static const char *word(const char *key, const char *otherwise)
{
	size_t len = strlen(key);

	for (int i = 1; i < n_words; i++)
		if (strncmp(words[i], key, len) == 0 && words[i][len] == '=')
			return words[i] + len + 1;
	if (!otherwise)
		die("a word is missing", key);
	return otherwise;
}

static uint64_t number(const char *key, const char *otherwise)
{
	const char *text = word(key, otherwise);
	char *end;
	uint64_t v = strtoull(text, &end, 0);

	if (end == text || *end)
		die("not a number", text);
	return v;
}

static ccoip_socket_address_t parse_address(const char *text)
{
	ccoip_socket_address_t a = {0};
	const char *colon = strrchr(text, ':');
	char ip[64];
	size_t skip = text[0] == '[', len;

	if (!colon)
		die("no address", text);
	len = (size_t)(colon - text) - 2 * skip;
	if (len >= sizeof ip)
		die("no address", text);
	memcpy(ip, text + skip, len);
	ip[len] = 0;
	a.port = (uint16_t)strtoul(colon + 1, NULL, 10);
	a.inet.protocol = skip ? inetIPv6 : inetIPv4;
	if (skip ? inet_pton(AF_INET6, ip, a.inet.ipv6.data) != 1 :
		   inet_pton(AF_INET, ip, a.inet.ipv4.data) != 1)
		die("no address", text);
	return a;
}

/* The end of an answer to a call. */
static void say_outcome(pcclResult_t r, uint64_t begin, uint64_t end)
{
	printf(" code=%d begin=%" PRIu64 " end=%" PRIu64 " text=%s\n", (int)r, begin, end,
		r == pcclSuccess ? "" : pcclGetLastError());
}

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
	if (!a->shared)
		free(a->base);
	else if (pcclMemFree(a->base) != pcclSuccess)
		die("pcclMemFree", pcclGetLastError());
	a->base = NULL;
}

/* ---- operations */

static void operation_parse(struct operation *op)
{
	int type = data_type_parse(word("type", NULL)), red = data_op_parse(word("op", NULL));
	const char *ids = word("ids", "");

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
		.src_descriptor = {.datatype = op->spec.type},
	};
	op->in_place = strcmp(word("place", "out"), "in") == 0;
	op->verify = number("verify", "0");
	while (*ids && op->n_ids < DATA_IDS_MAX) {
		char *end;

		op->ids[op->n_ids++] = (uint32_t)strtoul(ids, &end, 10);
		ids = *end ? end + 1 : end;
	}
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
		area_make(&op->recv, op->spec.count * size, shift,
			both || strcmp(mem, "recv") == 0);
		data_fill(op->recv.data, &op->other, peer.id);
	}
	memset(&op->info, GUARD_BYTE, sizeof op->info);
	op->busy = true;
}

static void operation_free(struct operation *op)
{
	if (!op->in_place)
		area_free(&op->recv);
	area_free(&op->send);
	op->busy = false;
}

/* After a failure everything is as before the call. */
static const char *judge_failure(const struct operation *op)
{
	pcclReduceInfo_t untouched;

	memset(&untouched, GUARD_BYTE, sizeof untouched);
	if (data_differs(op->send.data, &op->spec, peer.id) >= 0)
		return "sendbuf changed by a failed call";
	if (!op->in_place && data_differs(op->recv.data, &op->other, peer.id) >= 0)
		return "recvbuf changed by a failed call";
	if (op->info.local_world_size != untouched.local_world_size ||
		op->info.tx_bytes != untouched.tx_bytes || op->info.rx_bytes != untouched.rx_bytes)
		return "reduce info written by a failed call";
	return NULL;
}

static const char *judge_success(const struct operation *op, char why[WHY_SIZE])
{
	int64_t at;

	if (op->n_ids && op->info.local_world_size != op->n_ids) {
		snprintf(why, WHY_SIZE, "world size %u in the result, not %u",
			op->info.local_world_size, op->n_ids);
		return why;
	}
	if (!op->in_place) {
		at = data_differs(op->send.data, &op->spec, peer.id);
		if (at >= 0) {
			snprintf(why, WHY_SIZE, "element %" PRId64 " of sendbuf changed", at);
			return why;
		}
	}
	if (op->verify && op->n_ids) {
		at = data_wrong(op->recv.data, &op->spec, op->desc.op, op->ids, op->n_ids);
		if (at >= 0) {
			snprintf(why, WHY_SIZE, "element %" PRId64 " of the result is wrong", at);
			return why;
		}
	}
	return NULL;
}

static void operation_report(struct operation *op, pcclResult_t r, uint64_t begin, uint64_t end)
{
	char text[512], why[WHY_SIZE];
	const char *wrong;

	snprintf(text, sizeof text, "%s", r == pcclSuccess ? "" : pcclGetLastError());
	wrong = r == pcclSuccess ? judge_success(op, why) : judge_failure(op);
	if (!area_intact(&op->send) || (!op->in_place && !area_intact(&op->recv)))
		wrong = "bytes beside a buffer were written";
	printf("%s code=%d begin=%" PRIu64 " end=%" PRIu64, words[0], (int)r, begin, end);
	if (r == pcclSuccess)
		printf(" world=%u tx=%" PRIu64 " rx=%" PRIu64 " hash=%016" PRIx64,
			op->info.local_world_size, op->info.tx_bytes, op->info.rx_bytes,
			data_hash(op->recv.data, op->recv.bytes));
	printf(" check=%s", wrong ? "wrong" : "ok");
	printf(" text=%s%s%s\n", wrong ? wrong : "", wrong && *text ? "; " : "", text);
	operation_free(op);
}

static struct operation *slot(bool busy)
{
	uint64_t n = number("slot", NULL);

	if (n >= SLOTS || peer.ops[n].busy != busy)
		die("slot", word("slot", NULL));
	return &peer.ops[n];
}

static void do_submit(void)
{
	struct operation *op = slot(false);
	uint64_t begin;
	pcclResult_t r;

	operation_prepare(op);
	begin = now();
	r = pcclAllReduceAsync(
		op->send.data, op->recv.data, &op->desc, peer.comm, &op->handle);
	printf("submit");
	say_outcome(r, begin, now());
	if (r != pcclSuccess)
		operation_free(op);
}

static void do_await(void)
{
	struct operation *op = slot(true);
	uint64_t begin = now();
	pcclResult_t r = pcclAwaitAsyncReduce(&op->handle, &op->info);

	operation_report(op, r, begin, now());
}

static void do_reduce(void)
{
	struct operation op;
	uint64_t begin;
	pcclResult_t r;

	operation_prepare(&op);
	begin = now();
	r = pcclAllReduce(op.send.data, op.recv.data, &op.desc, peer.comm, &op.info);
	operation_report(&op, r, begin, now());
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void do_bench(void)
{
	size_t n = number("n", NULL), i;
	uint64_t *took = calloc(n, sizeof *took), begin = now();
	struct operation op;
	pcclResult_t r = pcclSuccess;

	if (!took || n == 0)
		die("bench", "n");
	operation_prepare(&op);
	for (i = 0; i < n && r == pcclSuccess; i++) {
		uint64_t start = now();

		r = pcclAllReduce(op.send.data, op.recv.data, &op.desc, peer.comm, &op.info);
		took[i] = now() - start;
	}
	qsort(took, i, sizeof *took, by_size);
	printf("bench min=%" PRIu64 " median=%" PRIu64 " max=%" PRIu64, took[0], took[i / 2],
		took[i - 1]);
	say_outcome(r, begin, now());
	operation_free(&op);
	free(took);
}

/* ---- membership */

static int attribute(pcclAttribute_t a)
{
	int v = -1;

	if (pcclGetAttribute(peer.comm, a, &v) != pcclSuccess)
		return -1;
	return v;
}

static void do_create(void)
{
	uint64_t begin = now();
	pcclResult_t r;

	peer.params.p2p_connection_pool_size = (uint32_t)number("streams", "1");
	r = pcclCreateCommunicator(&peer.params, &peer.comm);
	printf("create");
	say_outcome(r, begin, now());
}

static void do_connect(void)
{
	uint64_t begin = now();
	pcclResult_t r = pcclConnect(peer.comm);

	printf("connect");
	say_outcome(r, begin, now());
}

static void do_update(void)
{
	uint64_t begin = now();
	pcclResult_t r = pcclUpdateTopology(peer.comm);

	printf("update world=%d", attribute(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE));
	say_outcome(r, begin, now());
}

/* Newcomers cannot be awaited, only looked for: alone in the run that takes no time, so look every
 * other millisecond. */
static void do_until(void)
{
	int world = (int)number("world", NULL);
	uint64_t begin = now(), limit = begin + number("ms", "20000") * 1000000u;
	struct timespec pause = {.tv_nsec = 2000000};
	pcclResult_t r = pcclSuccess;

	while (attribute(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) < world && now() < limit) {
		r = pcclUpdateTopology(peer.comm);
		if (r != pcclSuccess && r != pcclUpdateTopologyFailed)
			break;
		if (attribute(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) < world)
			nanosleep(&pause, NULL);
	}
	printf("until world=%d", attribute(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE));
	say_outcome(r, begin, now());
}

static void do_pending(void)
{
	bool pending = false;
	uint64_t begin = now();
	pcclResult_t r = pcclArePeersPending(peer.comm, &pending);

	printf("pending pending=%d", pending);
	say_outcome(r, begin, now());
}

static void do_attr(void)
{
	printf("attr global=%d group=%d groups=%d largest=%d\n",
		attribute(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE),
		attribute(PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE),
		attribute(PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS),
		attribute(PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE));
}

static void do_destroy(void)
{
	uint64_t begin = now();
	pcclResult_t r = pcclDestroyCommunicator(peer.comm);

	peer.comm = NULL;
	/* their buffers are ours again, with the contents they had */
	for (int i = 0; i < SLOTS; i++) {
		if (!peer.ops[i].busy)
			continue;
		if (judge_failure(&peer.ops[i]))
			die("destroy", judge_failure(&peer.ops[i]));
		operation_free(&peer.ops[i]);
	}
	printf("destroy");
	say_outcome(r, begin, now());
}

/* ---- a master of one's own */

static void on_signal(int signo)
{
	(void)signo;
	pcclInterruptMaster(peer.master);
}

static void do_master(void)
{
	struct sigaction sa = {.sa_handler = on_signal};
	uint64_t begin = now();
	pcclResult_t r = pcclCreateMaster(parse_address(word("addr", NULL)), &peer.master);

	if (r == pcclSuccess)
		r = pcclRunMaster(peer.master);
	sigaction(SIGUSR1, &sa, NULL);
	printf("master");
	say_outcome(r, begin, now());
}

static void do_master_signal(void)
{
	uint64_t begin = now();

	raise(SIGUSR1);
	printf("master-signal");
	say_outcome(pcclSuccess, begin, now());
}

static void do_master_await(void)
{
	uint64_t begin = now();
	pcclResult_t r = pcclMasterAwaitTermination(peer.master);

	printf("master-await");
	say_outcome(r, begin, now());
}

static void do_master_destroy(void)
{
	uint64_t begin = now();
	pcclResult_t r = pcclDestroyMaster(peer.master);

	printf("master-destroy");
	say_outcome(r, begin, now());
}

/* ---- */

static const struct command {
	const char *name;
	void (*fn)(void);
} commands[] = {
	{"create", do_create},
	{"connect", do_connect},
	{"update", do_update},
	{"until", do_until},
	{"pending", do_pending},
	{"attr", do_attr},
	{"submit", do_submit},
	{"await", do_await},
	{"reduce", do_reduce},
	{"bench", do_bench},
	{"destroy", do_destroy},
	{"master", do_master},
	{"master-signal", do_master_signal},
	{"master-await", do_master_await},
	{"master-destroy", do_master_destroy},
};

static void carry_out(char *line)
{
	n_words = 0;
	for (char *w = strtok(line, " \n"); w && n_words < WORDS_MAX; w = strtok(NULL, " \n"))
		words[n_words++] = w;
	for (size_t i = 0; n_words && i < sizeof commands / sizeof commands[0]; i++) {
		if (strcmp(words[0], commands[i].name) == 0) {
			commands[i].fn();
			fflush(stdout);
			return;
		}
	}
	die("no such command", n_words ? words[0] : "");
}

int main(int argc, char **argv)
{
	char line[1024];

	n_words = argc;
	for (int i = 0; i < argc && i < WORDS_MAX; i++)
		words[i] = argv[i];
	peer.id = (uint32_t)number("id", "0");
	peer.params.master_address = parse_address(word("master", NULL));
	peer.params.peer_group = (uint32_t)number("group", "0");
	if (pcclInit() != pcclSuccess)
		die("pcclInit", pcclGetLastError());
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\n") != 0)
		carry_out(line);
	return 0;
}
