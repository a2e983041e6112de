/* SPDX-License-Identifier: MIT
 *
 * pcclctl: the command line around client.c and print.c.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_addr.h"
#include "common/cc_err.h"
#include "pcclctl/client.h"
#include "pcclctl/print.h"

enum { OPT_JSON = 256, OPT_AGENT, OPT_MASTER, OPT_NOW, OPT_RUN, OPT_YES, OPT_HELP, OPT_VERSION };

static const struct option long_options[] = {
	{"json", no_argument, NULL, OPT_JSON},
	{"agent", required_argument, NULL, OPT_AGENT},
	{"master", required_argument, NULL, OPT_MASTER},
	{"now", no_argument, NULL, OPT_NOW},
	{"run", required_argument, NULL, OPT_RUN},
	{"yes", no_argument, NULL, OPT_YES},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{0},
};

static const char help[] =
	"Usage: pcclctl [--json] [--agent PATH | --master PATH] status | peers | ops | state\n"
	"       pcclctl [--json] [--agent PATH] agent set-master [--now] OLD NEW\n"
	"       pcclctl [--json] [--agent PATH] agent set-master [--now] --run N NEW\n"
	"       pcclctl [--json] [--master PATH] reset [--yes]\n"
	"Looks at the agent of this host, or at the agent or master of an admin socket.\n"
	"\n"
	"  status             how an agent is: processes, runs, memory, ports; or a master: its\n"
	"                     run, who is in it, and what has happened since it was started\n"
	"  peers              the peers, and what each waits for\n"
	"  ops                the operations in flight, and who is awaited\n"
	"  state              the shared state: each group's revision and contents, who differed\n"
	"                     and how; of an agent also the keys with their hashes, those in\n"
	"                     which its peers differed, and the transfers that are under way\n"
	"  agent set-master   the master that processes call OLD (ADDR:PORT) is at NEW if it is\n"
	"                     not at OLD; NEW none: it is nowhere else\n"
	"  reset              the run of this master is over: its peers are put out, the "
	"revisions\n"
	"                     of shared state forgotten, also in the journal; the next one begins\n"
	"                     at revision 0. Without --master: the one master of this host\n"
	"\n"
	"      --now          leave a master that answers, and go to NEW\n"
	"      --run N        only of this run, by its number in the status\n"
	"      --yes          reset, also while the run has peers\n"
	"      --agent PATH   ask the agent whose admin socket this is\n"
	"      --master PATH  ask the master whose admin socket this is\n"
	"      --json         print one JSON object, with plain numbers\n"
	"      --help, --version\n";

struct command {
	struct ctl_target target;
	struct wa_request request;
	bool json, targeted, set_master_options;
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
	} verbs[] = {{"status", WA_STATUS}, {"peers", WA_PEERS}, {"ops", WA_OPS},
		{"state", WA_STATE}, {"reset", WA_RESET}};

	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
		if (strcmp(verbs[i].name, name) == 0) {
			*ret = verbs[i].verb;
			return 0;
		}
	}
	return CC_ERR_NOENT;
}

static int take_run(struct command *c, const char *text)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n == 0 || n > UINT32_MAX)
		return usage("no number of a run: ", text);
	c->request.run = (uint32_t)n;
	return -1;
}

static int take_target(struct command *c, const char *what, const char *path)
{
	if (c->targeted)
		return usage("only one of --agent and --master can be asked", "");
	c->targeted = true;
	return ctl_target_set(&c->target, what, path) < 0 ? usage("no name of a socket: ", path)
							  : -1;
}

/* -1: go on; else with what to end. */
static int take_option(struct command *c, int opt)
{
	switch (opt) {
	case OPT_JSON:
		c->json = true;
		return -1;
	case OPT_AGENT:
		return take_target(c, "agent", optarg);
	case OPT_MASTER:
		return take_target(c, "master", optarg);
	case OPT_NOW:
		c->set_master_options = c->request.now = true;
		return -1;
	case OPT_RUN:
		c->set_master_options = true;
		return take_run(c, optarg);
	case OPT_YES:
		c->request.force = true;
		return -1;
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

static int take_address(char dst[WA_ADDR_MAX], const char *text)
{
	struct cc_addr a;

	if (strlen(text) >= WA_ADDR_MAX || cc_addr_parse(text, 0, &a) < 0 || a.port == 0)
		return usage("no address with a port from 1 to 65535 (ADDR:PORT): ", text);
	memcpy(dst, text, strlen(text) + 1);
	return -1;
}

/* What stands behind "agent". */
static int parse_agent(struct command *c, char **words, int n)
{
	int want = c->request.run ? 2 : 3, code = -1;

	if (n == 0 || strcmp(words[0], "set-master") != 0)
		return usage("of the agent there is one command: set-master", "");
	if (c->targeted && strcmp(c->target.what, "agent") != 0)
		return usage("set-master is for an agent, not for a master", "");
	if (n != want)
		return usage("set-master takes ",
			c->request.run ? "the new address" : "the old address and the new one");
	c->request.verb = WA_SET_MASTER;
	if (!c->request.run)
		code = take_address(c->request.from, words[1]);
	if (code < 0 && strcmp(words[n - 1], "none") != 0)
		code = take_address(c->request.to, words[n - 1]);
	return code;
}

static int parse_words(struct command *c, char **words, int n)
{
	if (n == 0)
		return usage("a command is missing: status, peers, ops, state, reset or agent "
			     "set-master",
			"");
	if (strcmp(words[0], "agent") == 0)
		return parse_agent(c, words + 1, n - 1);
	if (find_verb(words[0], &c->request.verb) < 0)
		return usage("there is no command ", words[0]);
	if (n > 1)
		return usage("one command at a time, not also ", words[1]);
	if (c->set_master_options)
		return usage("--now and --run are for set-master", "");
	if (c->request.force && c->request.verb != WA_RESET)
		return usage("--yes is for reset", "");
	if (c->request.verb == WA_RESET && c->targeted && strcmp(c->target.what, "master") != 0)
		return usage(
			"reset is for a master: leave --agent out, or name a master's admin socket "
			"with --master PATH",
			"");
	return -1;
}

/* -1: go on; else with what to end. */
static int find_target(struct command *c)
{
	char why[CTL_WHY_SIZE];
	int code;

	if (c->request.verb != WA_RESET) {
		ctl_target_agent(&c->target);
		return -1;
	}
	code = ctl_target_master(&c->target, why, sizeof why);
	if (code == 0)
		return -1;
	fprintf(stderr, "pcclctl: %s\n", why);
	return code;
}

/* -1: go on; else with what to end. */
static int parse(struct command *c, int argc, char **argv)
{
	int opt, code;

	while ((opt = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		code = take_option(c, opt);
		if (code >= 0)
			return code;
	}
	code = parse_words(c, argv + optind, argc - optind);
	return code < 0 && !c->targeted ? find_target(c) : code;
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
	int code = ctl_ask(&c->target, &c->request, &r, why);

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
			&(struct print_style){.daemon = c->request.verb == WA_STATUS ||
							c->request.verb == WA_STATE,
				.record = c->request.verb == WA_STATUS,
				.colour = wants_colour()});
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
