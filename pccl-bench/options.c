/* SPDX-License-Identifier: MIT */
#include "pccl-bench/options.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/cc_err.h"
#include "common/cc_log.h"
#include "pccl-bench/size.h"

struct parser {
	struct bch_options *o;
	const struct cc_options_run *run;
	char *complaint;
};

__attribute__((format(printf, 2, 3))) static int wrong(struct parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->complaint, BCH_COMPLAINT_SIZE, fmt, ap);
	va_end(ap);
	return CC_ERR_INVAL;
}

static bool set_master(
	void *base, const struct cc_opt *opt, const char *value, struct cc_opt_refusal *ret)
{
	struct cc_addr *master = &((struct bch_options *)base)->master;

	(void)opt;
	(void)ret;
	return cc_addr_parse(value, CCOIP_PROTOCOL_PORT_MASTER, master) == 0 && master->port != 0;
}

/* ---- the table ---- */

const char *const bch_memories[] = {"staged", "registered", "cuda", NULL};

#define AT(field) CC_OPT_AT(struct bch_options, field)
#define SIZES     1, BCH_SIZE_MAX

static const char *const benchmarks[] = {
	[BCH_ALLREDUCE] = "allreduce", [BCH_QUANT] = "quant", NULL};
const char *const bch_algorithms[] = {"auto", "ring", "direct", "tree", NULL};

static const struct cc_opt opts[] = {
	{"begin", "SIZE", "smallest size in bytes, with K, M, G, T", CC_OPT_BYTES, AT(begin),
		{SIZES, 0}, .letter = 'b', .unset = true, .usual = "4; double: 8"},
	{"end", "SIZE", "largest size", CC_OPT_BYTES, AT(end), {SIZES, 64 << 20}, .letter = 'e'},
	{"factor", "N", "each size is N times the previous size", CC_OPT_COUNT, AT(factor),
		{2, 1 << 20, 4}, .letter = 'f'},
	{"iterations", "N", "timed iterations of each size", CC_OPT_COUNT, AT(iterations),
		{1, 100000, 20}, .letter = 'n'},
	{"warm-ups", "N", "untimed iterations of each size before the timed ones", CC_OPT_COUNT,
		AT(warm_ups), {0, 100000, 5}, .letter = 'w'},
	{"type", "TYPE",
		"type of an element: int8, uint8, int16, uint16, int32, uint32, int64, uint64, "
		"half, "
		"bfloat16, float "
		"or double",
		CC_OPT_WORD, AT(kind.type), {0, pcclDouble, pcclFloat}, .letter = 't',
		.words = bch_type_names},
	{"op", "OP", "how to reduce: sum, avg, prod, max or min", CC_OPT_WORD, AT(kind.op),
		{0, pcclMin, pcclSum}, .letter = 'o', .words = bch_op_names},
	{"peers", "N", "peers to start, one process each", CC_OPT_COUNT, AT(peers),
		{1, BCH_PEERS_MAX, 2}},
	{"hosts", "H",
		"hosts that the peers are spread over: network namespaces for root, agents on "
		"loopback for others; quant: simulated hosts",
		CC_OPT_COUNT, AT(hosts), {1, BCH_HOSTS_MAX, 1}, .unset = true,
		.usual = "1; quant: 2, 4, 8 and 16"},
	{"memory", "KIND",
		"memory of operands and results: staged, registered (pcclMemAlloc) or cuda",
		CC_OPT_WORD, AT(memory), {0, 2, 0}, .words = bch_memories},
	{"in-place", NULL, "results replace operands", CC_OPT_FLAG, AT(in_place)},
	{"disposable", NULL, "contents of receive buffers may be lost when an operation fails",
		CC_OPT_FLAG, AT(disposable)},
	{"streams", "S", "TCP streams per link", CC_OPT_COUNT, AT(streams),
		{1, BCH_STREAMS_MAX, 1}},
	{"algorithm", "NAME",
		"how the data of more than two hosts goes from host to host: auto, ring, direct or "
		"tree",
		CC_OPT_WORD, AT(algorithm), {0, 3, 0}, .words = bch_algorithms},
	{"quantize", "MODE",
		"mode of quantization; only quant has the modes all and pccl1-minmax-uint8 (the "
		"scheme of PCCL 1.0)",
		CC_OPT_WORD, AT(quantize), {0, UINT32_MAX, 0}, .unset = true,
		.usual = "none; quant: all", .words = bch_mode_names},
	{"async", "K", "each iteration starts K operations and then awaits them", CC_OPT_COUNT,
		AT(async), {1, BCH_ASYNC_MAX, 0}, .unset = true, .usual = "blocking calls"},
	{"check", NULL, "verify every element of every result", CC_OPT_FLAG, AT(check)},
	{"optimize", NULL, "measure all sizes before and after pcclOptimizeTopology", CC_OPT_FLAG,
		AT(optimize)},
	{"timeout", "SECONDS", "give up when there is no progress for this long", CC_OPT_COUNT,
		AT(timeout_s), {1, 86400, 120}},
	{"master", "ADDR:PORT", "join the run of this master", CC_OPT_SET, AT(master),
		.set = set_master,
		.wanted = "ADDR:PORT; ADDR must be numeric, in brackets for IPv6, and PORT from 1 "
			  "to 65535"},
	{"world", "N", "peers of the run of --master, including those of other hosts", CC_OPT_COUNT,
		AT(world_size), {2, BCH_PEERS_MAX, 0}, .unset = true,
		.usual = "the number of --peers"},
	{"first-rank", "N", "number of the first peer that is started here, for --check",
		CC_OPT_COUNT, AT(first_rank), {0, BCH_PEERS_MAX - 1, 0}},
	{"library", "PATH",
		"measure another library with the functions of PCCL 1.0, without agents",
		CC_OPT_PATH, AT(library)},
	{"count", "N", "quant: elements of each operand", CC_OPT_COUNT, AT(count),
		{1, BCH_COUNT_MAX, 1 << 20}},
	{"seed", "N", "quant: seed of the operands", CC_OPT_COUNT, AT(seed), {0, UINT32_MAX, 1}},
	{"gradient", "FILE",
		"quant: measure the numbers of this file, too: binary32, as ./dev demo --gradient "
		"writes them",
		CC_OPT_PATH, AT(gradient)},
	{"json", NULL, "print one JSON object at the end, with plain numbers", CC_OPT_FLAG,
		AT(json)},
};

const struct cc_options bch_options_table = {
	.program = "pccl-bench",
	.about = "Usage: pccl-bench allreduce [OPTION]...\n"
		 "       pccl-bench quant [OPTION]...\n"
		 "allreduce measures all-reduces of many sizes. It starts a master, agents and "
		 "peers of its\n"
		 "own, or joins the run of a master with peers that use this host's agent.\n"
		 "quant computes the errors of quantized all-reduces of many hosts, which it "
		 "simulates.\n",
	.words = true,
	.opt = opts,
	.n = sizeof opts / sizeof opts[0],
};

/* ---- what must fit together ---- */

static bool is_among(const char *const *list, const char *name)
{
	while (*list && strcmp(*list, name) != 0)
		list++;
	return *list != NULL;
}

static int check_world_size(struct parser *p)
{
	struct bch_options *o = p->o;

	if (o->master.family == 0 && (o->world_size || o->first_rank))
		return wrong(
			p, "--world and --first-rank need --master, the master of a run to join");
	if (o->master.family != 0 && o->hosts > 1)
		return wrong(p, "--hosts cannot be used with --master: peers that join a run are "
				"all on this host");
	if (!o->world_size)
		o->world_size = o->peers;
	if (o->world_size < 2)
		return wrong(p, "--peers: an all-reduce needs at least 2; --world N counts the "
				"peers of other hosts, too");
	if (o->first_rank + o->peers > o->world_size)
		return wrong(p,
			"--world: %" PRIu32 " is less than the sum of --first-rank and --peers, "
			"%" PRIu32,
			o->world_size, o->first_rank + o->peers);
	if (o->hosts > o->peers)
		return wrong(p, "--hosts: %" PRIu32 " hosts are more than the %" PRIu32 " peers",
			o->hosts, o->peers);
	return 0;
}

static int check_quantize(struct parser *p)
{
	struct bch_options *o = p->o;

	if (!cc_options_given(p->run, "quantize"))
		o->quantize = BCH_MODE_NONE;
	if (o->quantize == BCH_MODE_ALL || o->quantize == BCH_MODE_PCCL1)
		return wrong(p, "--quantize: only the benchmark quant has the mode %s",
			bch_mode_names[o->quantize]);
	if (o->quantize == BCH_MODE_NONE)
		return 0;
	if (o->kind.type != pcclFloat)
		return wrong(p, "--quantize: only elements of --type float are quantized, not %s",
			bch_type_names[o->kind.type]);
	if (o->check && o->kind.op != pcclSum && o->kind.op != pcclAvg)
		return wrong(p, "--quantize: with --check the --op must be sum or avg, not %s",
			bch_op_names[o->kind.op]);
	return 0;
}

static int check_allreduce(struct parser *p)
{
	struct bch_options *o = p->o;

	if (!o->hosts)
		o->hosts = 1;
	if (o->begin == 0)
		o->begin = o->end < 4                        ? o->end
			   : bch_type_size(o->kind.type) < 4 ? 4
							     : bch_type_size(o->kind.type);
	if (o->begin > o->end)
		return wrong(p, "--begin: %" PRIu64 " bytes are more than --end, %" PRIu64,
			o->begin, o->end);
	if (o->begin < bch_type_size(o->kind.type))
		return wrong(p, "--begin: %" PRIu64 " bytes are less than the %zu bytes of one %s",
			o->begin, bch_type_size(o->kind.type), bch_type_names[o->kind.type]);
	if (o->in_place && o->disposable)
		return wrong(p, "--disposable: with --in-place the receive buffer is the operand "
				"and is kept");
	if (o->optimize && o->library)
		return wrong(p, "--optimize cannot be used with --library");
	if (o->algorithm && (o->library || o->master.family != 0))
		return wrong(p,
			"--algorithm is a setting of the master, and cannot be used with "
			"--%s",
			o->library ? "library" : "master");
	if (o->library && (o->memory == BCH_REGISTERED || o->disposable))
		return wrong(p, "--%s is not part of PCCL 1.0 and cannot be used with --library",
			o->memory == BCH_REGISTERED ? "memory registered" : "disposable");
	return check_quantize(p) < 0 ? CC_ERR_INVAL : check_world_size(p);
}

static int check_quant(struct parser *p)
{
	struct bch_options *o = p->o;

	if (o->hosts == 1)
		return wrong(p, "--hosts: nothing is quantized within one host; quant needs at "
				"least 2");
	if (o->quantize == BCH_MODE_PCCL1 && o->algorithm > BCH_ALGORITHM_RING)
		return wrong(p, "--algorithm: PCCL 1.0 has only the ring");
	return 0;
}

/* Refuses options that another benchmark has, but not this one. */
static int check_benchmark(struct parser *p)
{
	static const char *const common[] = {"hosts", "algorithm", "quantize", "json", NULL};
	static const char *const only_quant[] = {"count", "seed", "gradient", NULL};
	bool quant = p->o->benchmark == BCH_QUANT;

	for (unsigned i = 0; i < bch_options_table.n; i++) {
		const char *name = opts[i].name;

		if (cc_options_given(p->run, name) && !is_among(common, name) &&
			is_among(only_quant, name) != quant)
			return wrong(p, "--%s is not an option of %s", name,
				benchmarks[p->o->benchmark]);
	}
	return quant ? check_quant(p) : check_allreduce(p);
}

static int check_words(struct parser *p, char **words, int n)
{
	if (n == 0)
		return wrong(p, "say what is to be measured: allreduce or quant");
	if (!is_among(benchmarks, words[0]))
		return wrong(
			p, "there is no benchmark \"%.32s\", only allreduce and quant", words[0]);
	if (n > 1)
		return wrong(p, "one benchmark at a time, not also \"%.32s\"", words[1]);
	p->o->benchmark = strcmp(words[0], "quant") == 0 ? BCH_QUANT : BCH_ALLREDUCE;
	return check_benchmark(p);
}

static void say(void *arg, int level, const char *sentence)
{
	(void)level;
	(void)wrong(arg, "%s", sentence);
}

int bch_options_parse(
	struct bch_options *ret, int argc, char **argv, char complaint[BCH_COMPLAINT_SIZE])
{
	struct bch_options o = {.todo = CC_OPTIONS_GO_ON};
	struct cc_options_run r = {.options = &bch_options_table, .base = &o, .say = say};
	struct parser p = {.o = &o, .run = &r, .complaint = complaint};
	int err, first;

	complaint[0] = '\0';
	r.arg = &p;
	cc_options_defaults(&bch_options_table, &o);
	err = cc_options_command_line(&r, argc, argv, &o.todo, &first);
	if (!err && o.todo == CC_OPTIONS_GO_ON)
		err = check_words(&p, argv + first, argc - first);
	if (err)
		bch_options_clear(&o);
	else
		*ret = o;
	return err;
}

void bch_options_clear(struct bch_options *o)
{
	cc_options_clear(&bch_options_table, o);
}
