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

static const char *const memories[] = {"staged", "registered", NULL};

#define AT(field) CC_OPT_AT(struct bch_options, field)
#define SIZES     1, BCH_SIZE_MAX

static const struct cc_opt opts[] = {
	{"begin", "SIZE", "smallest size in bytes, with K, M, G, T", CC_OPT_BYTES, AT(begin),
		{SIZES, 0}, .letter = 'b', .unset = true, .usual = "4; double: 8"},
	{"end", "SIZE", "largest size", CC_OPT_BYTES, AT(end), {SIZES, 64 << 20}, .letter = 'e'},
	{"factor", "N", "by which a size is multiplied for the next one", CC_OPT_COUNT, AT(factor),
		{2, 1 << 20, 4}, .letter = 'f'},
	{"iterations", "N", "timed iterations of each size", CC_OPT_COUNT, AT(iterations),
		{1, 100000, 20}, .letter = 'n'},
	{"warm-ups", "N", "iterations of each size before these, which are not timed", CC_OPT_COUNT,
		AT(warm_ups), {0, 100000, 5}, .letter = 'w'},
	{"type", "TYPE",
		"of an element: int8, uint8, int16, uint16, int32, uint32, int64, uint64, half, "
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
		"loopback for others",
		CC_OPT_COUNT, AT(hosts), {1, BCH_HOSTS_MAX, 1}},
	{"memory", "KIND", "memory of operands and results: staged or registered (pcclMemAlloc)",
		CC_OPT_WORD, AT(registered), {0, 1, 0}, .words = memories},
	{"in-place", NULL, "results replace operands", CC_OPT_FLAG, AT(in_place)},
	{"disposable", NULL, "what receive buffers hold may be lost when an operation fails",
		CC_OPT_FLAG, AT(disposable)},
	{"streams", "S", "TCP streams per link", CC_OPT_COUNT, AT(streams),
		{1, BCH_STREAMS_MAX, 1}},
	{"async", "K", "K operations in flight at once, of each size", CC_OPT_COUNT, AT(async),
		{1, BCH_ASYNC_MAX, 0}, .unset = true, .usual = "blocking calls"},
	{"check", NULL, "verify every element of every result", CC_OPT_FLAG, AT(check)},
	{"timeout", "SECONDS", "give up when nothing moves for this long", CC_OPT_COUNT,
		AT(timeout_s), {1, 86400, 120}},
	{"master", "ADDR:PORT", "join the run of this master", CC_OPT_SET, AT(master),
		.set = set_master,
		.wanted = "ADDR:PORT; ADDR must be numeric, in brackets for IPv6, and PORT from 1 "
			  "to 65535"},
	{"world", "N", "peers of that run, those of other hosts included", CC_OPT_COUNT,
		AT(world_size), {2, BCH_PEERS_MAX, 0}, .unset = true, .usual = "those here"},
	{"first-rank", "N", "number of the first peer here, for --check", CC_OPT_COUNT,
		AT(first_rank), {0, BCH_PEERS_MAX - 1, 0}},
	{"library", "PATH", "another library with the functions of PCCL 1.0; no agents then",
		CC_OPT_PATH, AT(library)},
	{"json", NULL, "print one JSON object at the end, with plain numbers", CC_OPT_FLAG,
		AT(json)},
};

const struct cc_options bch_options_table = {
	.program = "pccl-bench",
	.about = "Usage: pccl-bench allreduce [OPTION]...\n"
		 "Measures all-reduces of many sizes. Starts a master, agents and peers of its "
		 "own, or\n"
		 "joins the run of a master with peers that use this host's agent.\n",
	.words = true,
	.opt = opts,
	.n = sizeof opts / sizeof opts[0],
};

/* ---- what must fit together ---- */

static int check_world_size(struct parser *p)
{
	struct bch_options *o = p->o;

	if (o->master.family == 0 && (o->world_size || o->first_rank))
		return wrong(p, "--world and --first-rank are for a run that is joined: --master");
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
			"--world: %" PRIu32 " is less than the %" PRIu32 " peers that "
			"--first-rank and --peers make",
			o->world_size, o->first_rank + o->peers);
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
			o->begin, bch_type_size(o->kind.type), bch_type_names[o->kind.type]);
	if (o->in_place && o->disposable)
		return wrong(p, "--disposable: with --in-place the receive buffer is the operand "
				"and is kept");
	if (o->library && (o->registered || o->disposable))
		return wrong(p, "--%s is not part of PCCL 1.0 and cannot be used with --library",
			o->registered ? "memory registered" : "disposable");
	return check_world_size(p);
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

static void say(void *arg, int level, const char *sentence)
{
	(void)level;
	(void)wrong(arg, "%s", sentence);
}

int bch_options_parse(
	struct bch_options *ret, int argc, char **argv, char complaint[BCH_COMPLAINT_SIZE])
{
	struct bch_options o = {.todo = CC_OPTIONS_GO_ON};
	struct parser p = {.o = &o, .complaint = complaint};
	struct cc_options_run r = {
		.options = &bch_options_table, .base = &o, .say = say, .arg = &p};
	int err, first;

	complaint[0] = '\0';
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
