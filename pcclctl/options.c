/* SPDX-License-Identifier: MIT */
#include "pcclctl/options.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "common/cc_addr.h"
#include "common/cc_err.h"
#include "pcclctl/client.h"

/* ---- the table ---- */

static bool set_target(
	void *base, const struct cc_opt *opt, const char *path, struct cc_opt_refusal *ret)
{
	struct ctl_options *c = base;

	if (c->targeted)
		ret->why = "only one of --agent and --master can be given";
	else if (ctl_target_set(&c->target, opt->name, path) < 0)
		return false;
	c->targeted = true;
	return !ret->why;
}

#define AT(field) CC_OPT_AT(struct ctl_options, field)
#define TARGET    CC_OPT_SET, .set = set_target, .wanted = "the name of a socket"

/* In the order of enum tpl_objective. */
static const char *const objectives[] = {"bottleneck", "sum", "plan", NULL};

static const struct cc_opt opts[] = {
	{"now", NULL, "go to NEW even if the old master answers", CC_OPT_FLAG, AT(request.now)},
	{"run", "N", "only for the run with this number in the status", CC_OPT_COUNT,
		AT(request.run), {1, UINT32_MAX, 0}, .unset = true, .usual = ""},
	{"yes", NULL, "reset even while the run has peers", CC_OPT_FLAG, AT(request.force)},
	{"matrix", "FILE", "the rates between hosts, or a TSPLIB file of costs", CC_OPT_PATH,
		AT(topology.matrix)},
	{"budget", "S", "seconds after which the best answer is taken", CC_OPT_SECONDS,
		AT(topology.budget_ms), {1, 86400000, 1000}},
	{"objective", "WORD",
		"bottleneck: the ring with the fastest slowest link, or with the lowest highest "
		"cost; sum: the ring with the lowest sum of costs; plan: several rings",
		CC_OPT_WORD, AT(topology.objective), {TPL_BOTTLENECK, TPL_PLAN, 0}, .unset = true,
		.usual = "plan, or sum for a TSPLIB file", .words = objectives},
	{"function", "NAME", "a function of gpu-check, or all", CC_OPT_NAME, AT(gpu.function),
		.usual = "all"},
	{"device", "N", "the CUDA device of gpu-check", CC_OPT_COUNT, AT(gpu.device), {0, 1023, 0}},
	{"compare", "FILE", "what gpu-check has printed on another host", CC_OPT_PATH,
		AT(gpu.compare)},
	{"agent", "PATH", "ask the agent whose admin socket this is", TARGET},
	{"master", "PATH", "ask the master whose admin socket this is", TARGET},
	{"dot", NULL, "print the rings for Graphviz", CC_OPT_FLAG, AT(dot)},
	{"json", NULL, "print one JSON object, with plain numbers", CC_OPT_FLAG, AT(json)},
};

const struct cc_options ctl_options = {
	.program = "pcclctl",
	.about =
		"Usage: pcclctl [--json] [--agent PATH | --master PATH] status | peers | ops | "
		"state\n"
		"       pcclctl [--json] [--agent PATH] agent set-master [--now] OLD NEW\n"
		"       pcclctl [--json] [--agent PATH] agent set-master [--now] --run N NEW\n"
		"       pcclctl [--json] [--master PATH] reset [--yes]\n"
		"       pcclctl [--json | --dot] [--master PATH] topology\n"
		"       pcclctl [--json] [--master PATH] bandwidth | topology measure\n"
		"       pcclctl [--json] topology solve --matrix FILE [--budget S]\n"
		"               [--objective bottleneck | sum | plan]\n"
		"       pcclctl [--json] gpu-check [--function NAME] [--device N] [--compare "
		"FILE]\n"
		"Looks at the agent of this host, or at the agent or master of an admin socket.\n"
		"\n"
		"  status             an agent: processes, runs, memory, ports; or a master: its "
		"run,\n"
		"                     the peers, and what has happened since its start\n"
		"  peers              the peers, and what each waits for\n"
		"  ops                the operations in flight, and the peers that they wait for\n"
		"  state              the shared state: revision and contents of each group, the "
		"peers\n"
		"                     that differed and how; of an agent also the keys with their\n"
		"                     hashes, the keys that differed, and the transfers in "
		"progress\n"
		"  agent set-master   if no master answers at OLD (ADDR:PORT), look for it at\n"
		"                     NEW; if NEW is \"none\", look at OLD only\n"
		"  reset              end the run of this master: kick its peers and forget the\n"
		"                     revisions of shared state, also in the journal; the next "
		"run\n"
		"                     begins at revision 0. Without --master: the only master of "
		"this\n"
		"                     host\n"
		"  topology           of a master: the rings of each group with their rates, the "
		"slowest\n"
		"                     links, and the predicted and achieved rates\n"
		"  bandwidth          of a master: what links and hosts can carry, as measured\n"
		"  topology measure   let the next pcclOptimizeTopology of this master's run "
		"measure "
		"all\n"
		"                     links again\n"
		"  topology solve     compute the best ring, or a plan of several rings, for the "
		"hosts\n"
		"                     in a file; no daemon is asked\n"
		"  gpu-check          evaluate functions of the maths library of CUDA for all "
		"values\n"
		"                     of their argument, and compare hashes of the results with "
		"known\n"
		"                     ones and with other hosts; no daemon is asked\n",
	.words = true,
	.opt = opts,
	.n = sizeof opts / sizeof opts[0],
};

/* ---- commands ---- */

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
		{"state", WA_STATE}, {"reset", WA_RESET}, {"bandwidth", WA_BANDWIDTH}};

	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
		if (strcmp(verbs[i].name, name) == 0) {
			*ret = verbs[i].verb;
			return 0;
		}
	}
	return CC_ERR_NOENT;
}

static int take_address(char dst[WA_ADDR_MAX], const char *text)
{
	struct cc_addr a;

	if (strlen(text) >= WA_ADDR_MAX || cc_addr_parse(text, 0, &a) < 0 || a.port == 0)
		return usage("not an address with a port from 1 to 65535 (ADDR:PORT): ", text);
	memcpy(dst, text, strlen(text) + 1);
	return -1;
}

/* Parses the words after "agent". */
static int parse_agent(struct ctl_options *c, char **words, int n)
{
	int want = c->request.run ? 2 : 3, code = -1;

	if (n == 0 || strcmp(words[0], "set-master") != 0)
		return usage("agent has one command: set-master", "");
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

/* Parses the words after "topology". */
static int parse_topology(struct ctl_options *c, char **words, int n)
{
	if (n == 0) {
		c->request.verb = WA_TOPOLOGY;
		return -1;
	}
	if (n == 1 && strcmp(words[0], "measure") == 0) {
		c->request.verb = WA_MEASURE;
		return -1;
	}
	if (n != 1 || strcmp(words[0], "solve") != 0)
		return usage("topology stands alone, or before measure or solve", "");
	if (!c->topology.matrix)
		return usage("topology solve needs the rates between hosts: --matrix FILE", "");
	if (c->targeted)
		return usage("topology solve asks no daemon: leave --agent and --master out", "");
	c->command = CTL_TOPOLOGY_SOLVE;
	return -1;
}

/* Parses the words after "gpu-check". */
static int parse_gpu_check(struct ctl_options *c, char **words, int n)
{
	if (n > 0)
		return usage("gpu-check takes only options, not ", words[0]);
	if (c->targeted)
		return usage("gpu-check asks no daemon: leave --agent and --master out", "");
	c->command = CTL_GPU_CHECK;
	return -1;
}

/* Does only a master have the answer? */
static bool is_for_master(const struct ctl_options *c)
{
	enum wa_verb v = c->request.verb;

	return v == WA_RESET || v == WA_TOPOLOGY || v == WA_BANDWIDTH || v == WA_MEASURE;
}

static int parse_words(struct ctl_options *c, char **words, int n)
{
	if (n == 0)
		return usage("a command is missing: status, peers, ops, state, reset, topology, "
			     "bandwidth, gpu-check or agent set-master",
			"");
	if (strcmp(words[0], "topology") == 0)
		return parse_topology(c, words + 1, n - 1);
	if (strcmp(words[0], "agent") == 0)
		return parse_agent(c, words + 1, n - 1);
	if (strcmp(words[0], "gpu-check") == 0)
		return parse_gpu_check(c, words + 1, n - 1);
	if (find_verb(words[0], &c->request.verb) < 0)
		return usage("there is no command ", words[0]);
	if (n > 1)
		return usage("one command at a time, not also ", words[1]);
	return -1;
}

/* Checks that the options are for this command, and that it can be answered by the daemon that is
 * asked. Returns -1 to go on,
 * otherwise the exit status. */
static int check_request(const struct ctl_options *c)
{
	if ((c->request.now || c->request.run) && c->request.verb != WA_SET_MASTER)
		return usage("--now and --run are for set-master", "");
	if (c->request.force && c->request.verb != WA_RESET)
		return usage("--yes is for reset", "");
	if (c->dot && (c->json || c->request.verb != WA_TOPOLOGY))
		return usage("--dot is for topology, without --json", "");
	if (!is_for_master(c) || !c->targeted || strcmp(c->target.what, "master") == 0)
		return -1;
	return usage("this command is for a master: leave --agent out, or name a master's admin "
		     "socket with --master PATH",
		"");
}

/* Finds the daemon to ask. Returns -1 to go on, otherwise the exit status. */
static int find_target(struct ctl_options *c)
{
	char why[CTL_WHY_SIZE];
	int code;

	if (!is_for_master(c)) {
		ctl_target_agent(&c->target);
		return -1;
	}
	code = ctl_target_master(&c->target, why, sizeof why);
	if (code == 0)
		return -1;
	fprintf(stderr, "pcclctl: %s\n", why);
	return code;
}

/* Refuses options of other commands. Returns -1 to go on, otherwise the exit status. */
static int check_given(const struct ctl_options *c, const struct cc_options_run *r)
{
	static const struct {
		const char *option;
		enum ctl_command command;
	} of[] = {{"matrix", CTL_TOPOLOGY_SOLVE}, {"budget", CTL_TOPOLOGY_SOLVE},
		{"objective", CTL_TOPOLOGY_SOLVE}, {"now", CTL_ASK}, {"run", CTL_ASK},
		{"yes", CTL_ASK}, {"function", CTL_GPU_CHECK}, {"device", CTL_GPU_CHECK},
		{"compare", CTL_GPU_CHECK}};

	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
		if (of[i].command == c->command || !cc_options_given(r, of[i].option))
			continue;
		if (of[i].command == CTL_TOPOLOGY_SOLVE)
			return usage("this option is for topology solve: --", of[i].option);
		if (of[i].command == CTL_GPU_CHECK)
			return usage("this option is for gpu-check: --", of[i].option);
		if (c->command == CTL_TOPOLOGY_SOLVE)
			return usage("topology solve asks no daemon: leave this option out: --",
				of[i].option);
		return usage("gpu-check asks no daemon: leave this option out: --", of[i].option);
	}
	return -1;
}

static void say(void *unused, int level, const char *sentence)
{
	(void)unused;
	(void)level;
	fprintf(stderr, "pcclctl: %s\n", sentence);
}

int ctl_options_parse(struct ctl_options *c, int argc, char **argv)
{
	struct cc_options_run r = {.options = &ctl_options, .base = c, .say = say};
	enum cc_options_todo todo;
	int code, first;

	*c = (struct ctl_options){.json = false};
	cc_options_defaults(&ctl_options, c);
	if (cc_options_command_line(&r, argc, argv, &todo, &first) < 0)
		return usage(NULL, NULL);
	if (todo != CC_OPTIONS_GO_ON)
		return cc_options_print(&ctl_options, todo, stdout);
	code = parse_words(c, argv + first, argc - first);
	if (code < 0)
		code = check_given(c, &r);
	if (code < 0)
		code = check_request(c);
	return code < 0 && !c->targeted && c->command == CTL_ASK ? find_target(c) : code;
}
