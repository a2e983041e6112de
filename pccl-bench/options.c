/* SPDX-License-Identifier: MIT */
#include "pccl-bench/options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/cc_err.h"
#include "pccl-bench/size.h"

const char bch_help[] =
	"Usage: pccl-bench allreduce [OPTION]...\n"
	"Measures all-reduces of many sizes. Starts a master, agents and peers of its own, or\n"
	"joins the run of a master with peers that use this host's agent.\n"
	"\n"
	"  -b, --begin SIZE       smallest size in bytes, with K, M, G, T [4; double: 8]\n"
	"  -e, --end SIZE         largest size [64M]\n"
	"  -f, --factor N         from one size to the next [4]\n"
	"  -n, --iterations N     of each size that are timed [20]\n"
	"  -w, --warm-ups N       of each size that are not [5]\n"
	"  -t, --type TYPE        int8, uint8, int16, uint16, int32, uint32, int64, uint64, half,\n"
	"                         bfloat16, float or double [float]\n"
	"  -o, --op OP            sum, avg, prod, max or min [sum]\n"
	"      --peers N          processes that reduce [2]\n"
	"      --hosts H          that they are spread over: network namespaces for root, agents\n"
	"                         on loopback for others [1]\n"
	"      --memory KIND      staged or registered (pcclMemAlloc) [staged]\n"
	"      --in-place         results replace operands\n"
	"      --disposable       what receive buffers hold may be lost when an operation fails\n"
	"      --streams S        TCP streams per link [1]\n"
	"      --async K          K operations in flight at once, of each size [blocking calls]\n"
	"      --check            verify every element of every result\n"
	"      --timeout SECONDS  give up when nothing moves for so long [120]\n"
	"      --master ADDR:PORT join the run of this master\n"
	"      --world N          peers of that run, those of other hosts included [those here]\n"
	"      --first-rank N     number of the first peer here, for --check [0]\n"
	"      --library PATH     another library with the functions of PCCL 1.0; no agents then\n"
	"      --json             print one JSON object at the end, with plain numbers\n"
	"      --help, --version\n";

enum {
	OPT_PEERS = 256,
	OPT_HOSTS,
	OPT_MEMORY,
	OPT_IN_PLACE,
	OPT_DISPOSABLE,
	OPT_STREAMS,
	OPT_ASYNC,
	OPT_CHECK,
	OPT_TIMEOUT,
	OPT_MASTER,
	OPT_WORLD,
	OPT_FIRST_RANK,
	OPT_LIBRARY,
	OPT_JSON,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{"begin", required_argument, NULL, 'b'},
	{"end", required_argument, NULL, 'e'},
	{"factor", required_argument, NULL, 'f'},
	{"iterations", required_argument, NULL, 'n'},
	{"warm-ups", required_argument, NULL, 'w'},
	{"type", required_argument, NULL, 't'},
	{"op", required_argument, NULL, 'o'},
	{"peers", required_argument, NULL, OPT_PEERS},
	{"hosts", required_argument, NULL, OPT_HOSTS},
	{"memory", required_argument, NULL, OPT_MEMORY},
	{"in-place", no_argument, NULL, OPT_IN_PLACE},
	{"disposable", no_argument, NULL, OPT_DISPOSABLE},
	{"streams", required_argument, NULL, OPT_STREAMS},
	{"async", required_argument, NULL, OPT_ASYNC},
	{"check", no_argument, NULL, OPT_CHECK},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"master", required_argument, NULL, OPT_MASTER},
	{"world", required_argument, NULL, OPT_WORLD},
	{"first-rank", required_argument, NULL, OPT_FIRST_RANK},
	{"library", required_argument, NULL, OPT_LIBRARY},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{0},
};

struct parser {
	struct bch_options *o;
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

static const char *name_of(int opt)
{
	for (const struct option *l = long_options; l->name; l++)
		if (l->val == opt)
			return l->name;
	return "";
}

/* ---- values ---- */

static int take_size(struct parser *p, int opt, uint64_t *ret)
{
	if (bch_size_parse(optarg, ret) < 0)
		return wrong(p,
			"--%s: \"%.32s\" is no number of bytes from 1 to 1T, with K, M, G or T",
			name_of(opt), optarg);
	return 0;
}

/* Where a number goes, and between what it must be. */
static const struct number {
	int opt;
	size_t off;
	uint32_t least, most;
} numbers[] = {
	{'n', offsetof(struct bch_options, iterations), 1, 100000},
	{'w', offsetof(struct bch_options, warm_ups), 0, 100000},
	{OPT_PEERS, offsetof(struct bch_options, peers), 1, BCH_PEERS_MAX},
	{OPT_HOSTS, offsetof(struct bch_options, hosts), 1, BCH_HOSTS_MAX},
	{OPT_STREAMS, offsetof(struct bch_options, streams), 1, BCH_STREAMS_MAX},
	{OPT_ASYNC, offsetof(struct bch_options, async), 1, BCH_ASYNC_MAX},
	{OPT_TIMEOUT, offsetof(struct bch_options, timeout_s), 1, 86400},
	{OPT_WORLD, offsetof(struct bch_options, world), 2, BCH_PEERS_MAX},
	{OPT_FIRST_RANK, offsetof(struct bch_options, first_rank), 0, BCH_PEERS_MAX - 1},
};

static int take_number(struct parser *p, int opt)
{
	const struct number *n = numbers;
	uint64_t v;

	while (n->opt != opt)
		n++;
	if (bch_number_parse(optarg, n->least, n->most, &v) < 0)
		return wrong(p, "--%s: \"%.32s\" is no number from %" PRIu32 " to %" PRIu32,
			name_of(opt), optarg, n->least, n->most);
	*(uint32_t *)((char *)p->o + n->off) = (uint32_t)v;
	return 0;
}

static int take_factor(struct parser *p)
{
	if (bch_number_parse(optarg, 2, 1u << 20, &p->o->factor) < 0)
		return wrong(p, "--factor: \"%.32s\" is no number from 2 to 1048576", optarg);
	return 0;
}

static int take_type(struct parser *p)
{
	int type = bch_type_parse(optarg);

	if (type < 0)
		return wrong(p,
			"--type: \"%.32s\" is none of int8, uint8, int16, uint16, int32, uint32, "
			"int64, uint64, half, bfloat16, float, double",
			optarg);
	p->o->kind.type = (pcclDataType_t)type;
	return 0;
}

static int take_op(struct parser *p)
{
	int op = bch_op_parse(optarg);

	if (op < 0)
		return wrong(p, "--op: \"%.32s\" is none of sum, avg, prod, max, min", optarg);
	p->o->kind.op = (pcclRedOp_t)op;
	return 0;
}

static int take_memory(struct parser *p)
{
	p->o->registered = strcmp(optarg, "registered") == 0;
	if (!p->o->registered && strcmp(optarg, "staged") != 0)
		return wrong(p, "--memory: \"%.32s\" is neither staged nor registered", optarg);
	return 0;
}

static int take_master(struct parser *p)
{
	if (cc_addr_parse(optarg, CCOIP_PROTOCOL_PORT_MASTER, &p->o->master) < 0 ||
		p->o->master.port == 0)
		return wrong(p,
			"--master: \"%.64s\" is no ADDR:PORT; ADDR must be numeric, in brackets "
			"for IPv6, and PORT from 1 to 65535",
			optarg);
	return 0;
}

static int take_flag(struct parser *p, int opt, const char *word)
{
	switch (opt) {
	case OPT_IN_PLACE:
		p->o->in_place = true;
		return 0;
	case OPT_DISPOSABLE:
		p->o->disposable = true;
		return 0;
	case OPT_CHECK:
		p->o->check = true;
		return 0;
	case OPT_JSON:
		p->o->json = true;
		return 0;
	case OPT_HELP:
		p->o->todo = BCH_HELP;
		return 0;
	case OPT_VERSION:
		p->o->todo = BCH_VERSION;
		return 0;
	case ':':
		return wrong(p, "%.64s wants a value", word);
	default:
		return wrong(p, "there is no option %.64s, or it takes no value", word);
	}
}

static int take_option(struct parser *p, int opt, const char *word)
{
	switch (opt) {
	case 'b':
		return take_size(p, opt, &p->o->begin);
	case 'e':
		return take_size(p, opt, &p->o->end);
	case 'f':
		return take_factor(p);
	case 't':
		return take_type(p);
	case 'o':
		return take_op(p);
	case OPT_MEMORY:
		return take_memory(p);
	case OPT_MASTER:
		return take_master(p);
	case OPT_LIBRARY:
		p->o->library = optarg;
		return *optarg ? 0 : wrong(p, "--library: \"\" is no path");
	case 'n':
	case 'w':
	case OPT_PEERS:
	case OPT_HOSTS:
	case OPT_STREAMS:
	case OPT_ASYNC:
	case OPT_TIMEOUT:
	case OPT_WORLD:
	case OPT_FIRST_RANK:
		return take_number(p, opt);
	default:
		return take_flag(p, opt, word);
	}
}

/* ---- what must fit together ---- */

static int check_world(struct parser *p)
{
	struct bch_options *o = p->o;

	if (o->master.family == 0 && (o->world || o->first_rank))
		return wrong(p, "--world and --first-rank are for a run that is joined: --master");
	if (o->master.family != 0 && o->hosts > 1)
		return wrong(p, "--hosts: peers that join a run (--master) are all on this host");
	if (!o->world)
		o->world = o->peers;
	if (o->world < 2)
		return wrong(p, "--peers: an all-reduce takes 2 at least; --world N tells how "
				"many there are with those of other hosts");
	if (o->first_rank + o->peers > o->world)
		return wrong(p,
			"--world: %" PRIu32 " is less than the %" PRIu32 " peers that "
			"--first-rank and --peers make",
			o->world, o->first_rank + o->peers);
	if (o->hosts > o->peers)
		return wrong(p, "--hosts: %" PRIu32 " are more than the %" PRIu32 " peers",
			o->hosts, o->peers);
	return 0;
}

static int check_all(struct parser *p)
{
	struct bch_options *o = p->o;

	if (o->begin == 0)
		o->begin = o->end < 4                        ? o->end
			   : bch_type_size(o->kind.type) < 4 ? 4
							     : bch_type_size(o->kind.type);
	if (o->begin > o->end)
		return wrong(p, "--begin: %" PRIu64 " bytes are more than --end, %" PRIu64,
			o->begin, o->end);
	if (o->begin < bch_type_size(o->kind.type))
		return wrong(p, "--begin: %" PRIu64 " bytes are less than the %zu of one %s",
			o->begin, bch_type_size(o->kind.type), bch_type_name(o->kind.type));
	if (o->in_place && o->disposable)
		return wrong(p, "--disposable: with --in-place the receive buffer is the operand, "
				"and kept");
	if (o->library && (o->registered || o->disposable))
		return wrong(p, "--%s is not part of PCCL 1.0, so not to be had with --library",
			o->registered ? "memory registered" : "disposable");
	return check_world(p);
}

static int check_words(struct parser *p, char **words, int n)
{
	if (n == 0)
		return wrong(p, "say what is to be measured: allreduce");
	if (strcmp(words[0], "allreduce") != 0)
		return wrong(p, "there is no benchmark \"%.32s\", only allreduce", words[0]);
	if (n > 1)
		return wrong(p, "one benchmark at a time, not also \"%.32s\"", words[1]);
	return check_all(p);
}

int bch_options_parse(
	struct bch_options *ret, int argc, char **argv, char complaint[BCH_COMPLAINT_SIZE])
{
	struct bch_options o = {.end = 64 << 20,
		.factor = 4,
		.iterations = 20,
		.warm_ups = 5,
		.kind = {.type = pcclFloat, .op = pcclSum},
		.peers = 2,
		.hosts = 1,
		.streams = 1,
		.timeout_s = 120};
	struct parser p = {.o = &o, .complaint = complaint};
	int opt, err = 0;

	optind = 0;
	while (!err && o.todo == BCH_RUN &&
		(opt = getopt_long(argc, argv, ":b:e:f:n:w:t:o:", long_options, NULL)) != -1)
		err = take_option(&p, opt, argv[optind - 1]);
	if (!err && o.todo == BCH_RUN)
		err = check_words(&p, argv + optind, argc - optind);
	if (!err)
		*ret = o;
	return err;
}
