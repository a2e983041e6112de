/* SPDX-License-Identifier: MIT
 *
 * pcclctl: the command line around client.c and print.c.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "pcclctl/client.h"
#include "pcclctl/print.h"

enum { OPT_JSON = 256, OPT_AGENT, OPT_MASTER, OPT_HELP, OPT_VERSION };

static const struct option long_options[] = {
	{"json", no_argument, NULL, OPT_JSON},
	{"agent", required_argument, NULL, OPT_AGENT},
	{"master", required_argument, NULL, OPT_MASTER},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{0},
};

static const char help[] =
	"Usage: pcclctl [--json] [--agent PATH | --master PATH] COMMAND\n"
	"Looks at the agent of this host, or at the agent or master of an admin socket.\n"
	"\n"
	"  status             how an agent is: processes, runs, memory, ports; or a master: its\n"
	"                     run, who is in it, and what has happened since it was started\n"
	"  peers              the peers, and what each waits for\n"
	"  ops                the operations in flight, and who is awaited\n"
	"\n"
	"      --agent PATH   ask the agent whose admin socket this is\n"
	"      --master PATH  ask the master whose admin socket this is\n"
	"      --json         print one JSON object, with plain numbers\n"
	"      --help, --version\n";

struct command {
	struct ctl_target target;
	enum wa_verb verb;
	bool json;
};

static int usage(const char *text, const char *detail)
{
	if (text)
		fprintf(stderr, "pcclctl: %s%s\n", text, detail);
	fputs("Try 'pcclctl --help'.\n", stderr);
	return EX_USAGE;
}

static int find_verb(const char *name, enum wa_verb *ret)
{
	static const struct {
		const char *name;
		enum wa_verb verb;
	} verbs[] = {{"status", WA_STATUS}, {"peers", WA_PEERS}, {"ops", WA_OPS}};

	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
		if (strcmp(verbs[i].name, name) == 0) {
			*ret = verbs[i].verb;
			return 0;
		}
	}
	return CC_ERR_NOENT;
}

/* -1: go on; else with what to end. */
static int parse(struct command *c, int argc, char **argv)
{
	bool targeted = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (opt) {
		case OPT_JSON:
			c->json = true;
			break;
		case OPT_AGENT:
		case OPT_MASTER:
			if (targeted)
				return usage("only one of --agent and --master can be asked", "");
			targeted = true;
			if (ctl_target_set(
				    &c->target, opt == OPT_AGENT ? "agent" : "master", optarg) < 0)
				return usage("no name of a socket: ", optarg);
			break;
		case OPT_HELP:
			fputs(help, stdout);
			return EX_OK;
		case OPT_VERSION:
			puts("pcclctl " PACKAGE_VERSION);
			return EX_OK;
		default:
			return usage(NULL, NULL);
		}
	}
	if (optind == argc)
		return usage("a command is missing: status, peers or ops", "");
	if (find_verb(argv[optind], &c->verb) < 0)
		return usage("there is no command ", argv[optind]);
	if (optind + 1 < argc)
		return usage("one command at a time, not also ", argv[optind + 1]);
	if (!targeted)
		ctl_target_default(&c->target);
	return -1;
}

static bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

static int run(const struct command *c)
{
	char why[CTL_WHY_SIZE];
	struct wa_reply r;
	int code = ctl_ask(&c->target, c->verb, &r, why);

	if (code) {
		fprintf(stderr, "pcclctl: %s\n", why);
		return code;
	}
	if (c->json) {
		if (print_json(stdout, &r) < 0) {
			fputs("pcclctl: no memory\n", stderr);
			code = EX_OSERR;
		}
	} else {
		print_tables(stdout, &r,
			&(struct print_style){
				.records = c->verb == WA_STATUS, .colour = wants_colour()});
	}
	wa_reply_clear(&r);
	return code;
}

int main(int argc, char **argv)
{
	struct command c = {0};
	int code = parse(&c, argc, argv);

	if (code < 0)
		code = run(&c);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("pcclctl: standard output");
		return EX_IOERR;
	}
	return code;
}
