/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
	"usage: fashion-mnist [OPTION]...\n"
	"Trains a small network on Fashion-MNIST together with other trainers.\n"
	"\n"
	"  -m, --master ADDR:PORT  the master of the run; [ADDR]:PORT for IPv6\n"
	"                          (default $PCCL_MASTER, then 127.0.0.1:48148)\n"
	"  -d, --data DIR          folder of the images\n"
	"                          (default /usr/share/datasets/fashion-mnist)\n"
	"  -n, --steps N           steps of the whole run (default 1200)\n"
	"  -b, --batch N           images per step and trainer (default 64)\n"
	"  -l, --lr X              learning rate (default 0.03)\n"
	"  -s, --seed N            seed of weights and minibatches, equal on all trainers\n"
	"                          (default 1)\n"
	"  -i, --id N              chooses the minibatches, different on all trainers\n"
	"                          (default: the process id)\n"
	"  -w, --wait-for N        a fresh run begins with N trainers (default 2); more may join "
	"later\n"
	"  -r, --report FILE       write progress to FILE, not to standard output: for each step\n"
	"                          the line 'STEP LOSS TRAINERS MB/S RETRIES'; when state is\n"
	"                          transferred, 'sync STEP SENT RECEIVED MB/S'; at the end a line\n"
	"                          that begins with 'result'\n"
	"  -q, --quantize MODE     quantize the gradients between hosts: none, half, bfloat16,\n"
	"                          minmax-uint8, zero-point-uint8, int8, int4, int4-normal,\n"
	"                          int4-mixed, e4m3 or e5m2 (default none)\n"
	"  -e, --error-feedback    add what quantization has lost to the next gradients\n"
	"  -g, --gradient FILE     in the middle of the training, write the gradients of 16\n"
	"                          minibatches to FILE, as binary32 numbers\n"
	"  -h, --help              show this\n"
	"Steps, batch, learning rate, --wait-for, --quantize and --error-feedback must be equal on "
	"all\n"
	"trainers.\n";

/* The modes of --quantize. */
static const struct {
	const char *name;
	pcclQuantizationOptions_t options;
	pcclDistributionHint_t hint;
} modes[] = {
	{"none", {pcclFloat, pcclQuantNone}, pcclDistributionNone},
	{"half", {pcclFloat16, pcclQuantMinMax}, pcclDistributionNone},
	{"bfloat16", {pcclBFloat16, pcclQuantMinMax}, pcclDistributionNone},
	{"minmax-uint8", {pcclUint8, pcclQuantMinMax}, pcclDistributionNone},
	{"zero-point-uint8", {pcclUint8, pcclQuantZeroPointScale}, pcclDistributionNone},
	{"int8", {pcclInt8, pcclQuantBlockwise}, pcclDistributionNone},
	{"int4", {pcclInt4, pcclQuantBlockwise}, pcclDistributionNone},
	{"int4-normal", {pcclInt4, pcclQuantBlockwise}, pcclDistributionNormal},
	{"int4-mixed", {pcclInt4, PCCL_QUANT_BLOCKWISE(5, PCCL_QUANT_MIXED)},
		pcclDistributionNormal},
	{"e4m3", {pcclFloat8E4M3, pcclQuantBlockwise}, pcclDistributionNone},
	{"e5m2", {pcclFloat8E5M2, pcclQuantBlockwise}, pcclDistributionNone},
};

__attribute__((noreturn)) static void usage(const char *what, const char *value)
{
	fprintf(stderr, "fashion-mnist: %s: '%s'; see --help\n", what, value);
	exit(2);
}

static uint64_t number(const char *text, uint64_t least, uint64_t most, const char *what)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || *text == '-' || n < least || n > most)
		usage(what, text);
	return n;
}

static float positive(const char *text, const char *what)
{
	char *end;
	const float x = strtof(text, &end);

	if (end == text || *end != '\0' || !(x > 0.0f) || x > 10.0f)
		usage(what, text);
	return x;
}

static void quantize(struct options *opt, const char *mode)
{
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		if (strcmp(modes[i].name, mode) != 0)
			continue;
		opt->quantization = modes[i].options;
		opt->hint = modes[i].hint;
		return;
	}
	usage("not a mode of quantization", mode);
}

static ccoip_socket_address_t socket_address(const char *text)
{
	ccoip_socket_address_t address = {0};
	const char *colon = strrchr(text, ':');
	char host[64];
	size_t length;

	if (!colon || (size_t)(colon - text) >= sizeof host)
		usage("not ADDR:PORT", text);
	length = (size_t)(colon - text);
	if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
		address.inet.protocol = inetIPv6;
		text++;
		length -= 2;
	}
	memcpy(host, text, length);
	host[length] = '\0';
	if (address.inet.protocol == inetIPv6
			? inet_pton(AF_INET6, host, address.inet.ipv6.data) != 1
			: inet_pton(AF_INET, host, address.inet.ipv4.data) != 1)
		usage("not a numeric address", host);
	address.port = (uint16_t)number(colon + 1, 1, 65535, "not a port");
	return address;
}

void options_parse(struct options *opt, int argc, char **argv)
{
	static const struct option known[] = {
		{"master", required_argument, NULL, 'm'},
		{"data", required_argument, NULL, 'd'},
		{"steps", required_argument, NULL, 'n'},
		{"batch", required_argument, NULL, 'b'},
		{"lr", required_argument, NULL, 'l'},
		{"seed", required_argument, NULL, 's'},
		{"id", required_argument, NULL, 'i'},
		{"wait-for", required_argument, NULL, 'w'},
		{"report", required_argument, NULL, 'r'},
		{"quantize", required_argument, NULL, 'q'},
		{"error-feedback", no_argument, NULL, 'e'},
		{"gradient", required_argument, NULL, 'g'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *master = getenv("PCCL_MASTER");
	int c;

	*opt = (struct options){
		.data = "/usr/share/datasets/fashion-mnist",
		.seed = 1,
		.rate = 0.03f,
		.steps = 1200,
		.batch = 64,
		.id = (unsigned)getpid(),
		.wait_for = 2,
	};
	while ((c = getopt_long(argc, argv, "m:d:n:b:l:s:i:w:r:q:eg:h", known, NULL)) != -1) {
		switch (c) {
		case 'm':
			master = optarg;
			break;
		case 'd':
			opt->data = optarg;
			break;
		case 'n': /* counted in a float: exact up to 2^24 */
			opt->steps = (unsigned)number(optarg, 1, 1 << 24, "not a number of steps");
			break;
		case 'b':
			opt->batch = (unsigned)number(optarg, 1, 1 << 16, "not a batch size");
			break;
		case 'l':
			opt->rate = positive(optarg, "not a learning rate");
			break;
		case 's':
			opt->seed = number(optarg, 0, UINT64_MAX, "not a seed");
			break;
		case 'i':
			opt->id = (unsigned)number(optarg, 0, UINT32_MAX, "not an id");
			break;
		case 'w':
			opt->wait_for =
				(unsigned)number(optarg, 2, 1 << 16, "not a number of at least 2");
			break;
		case 'r':
			opt->report = optarg;
			break;
		case 'q':
			quantize(opt, optarg);
			break;
		case 'e':
			opt->error_feedback = true;
			break;
		case 'g':
			opt->gradient = optarg;
			break;
		case 'h':
			fputs(HELP, stdout);
			exit(0);
		default:
			usage("unknown option", argv[optind - 1]);
		}
	}
	if (optind < argc)
		usage("unexpected argument", argv[optind]);
	opt->params.master_address = socket_address(master ? master : "127.0.0.1:48148");
}
