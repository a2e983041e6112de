/* SPDX-License-Identifier: MIT */
#include "ccoip-masterd/options.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "common/cc_err.h"
#include "common/cc_log.h"
#include "daemon/cc_conf.h"

#define DEFAULT_PORT 48148

static bool add_listen(
	void *base, const struct cc_opt *opt, const char *value, struct cc_opt_refusal *ret)
{
	struct masterd_options *o = base;

	(void)opt;
	if (!value)
		o->n_listen = 0;
	else if (o->n_listen == MASTERD_LISTEN_MAX)
		ret->why = "more addresses to listen on than the 16 that are allowed";
	else if (cc_addr_parse(value, DEFAULT_PORT, &o->listen[o->n_listen]) < 0)
		return false;
	else if (cc_addr_is_link_local(&o->listen[o->n_listen]))
		ret->why = "a link-local address (fe80::/10) cannot be used: it leads nowhere "
			   "without the name of an interface";
	else
		o->n_listen++;
	return !ret->why;
}

/* ---- the table ---- */

#define AT(field) CC_OPT_AT(struct masterd_options, field)
#define BOUND(id)                                                                                  \
	AT(bounds.ms[CC_BOUND_##id]),                                                              \
	{                                                                                          \
		CC_BOUND_##id##_MS                                                                 \
	}

/* In the order of enum ccm_algorithm. */
static const char *const algorithms[] = {"ring", "auto", "direct", "tree", NULL};

static const struct cc_opt opts[] = {
	{"listen-fd", "N", "descriptor N is a socket that already listens", CC_OPT_FD,
		AT(listen_fd)},
	{"parent-fd", "N",
		"stop when the other end of descriptor N is closed; a byte from there, or a "
		"signal, "
		"also ends the run",
		CC_OPT_FD, AT(parent_fd)},
	{"config", "FILE", "read settings from FILE", CC_OPT_PATH, AT(config)},
	{"listen", "ADDR:PORT", "accept agents at this address; may be given several times",
		CC_OPT_SET, AT(listen), .set = add_listen, .key = true, .list = true,
		.usual = "[::]:48148",
		.wanted = "ADDR:PORT; ADDR must be numeric, in brackets for IPv6, and PORT from 0 "
			  "to 65535"},
	{"admin-socket", "PATH", "socket of pcclctl", CC_OPT_PATH, AT(admin_socket), .key = true,
		.usual = PCCL_RUNDIR "/master-admin.sock, else "
				     "$XDG_RUNTIME_DIR/pccl/master-PORT-admin.sock, else in "
				     "${TMPDIR:-/tmp}/pccl-UID"},
	{"state-dir", "DIR", "keep a journal for the next master in DIR", CC_OPT_PATH,
		AT(state_dir), .key = true},
	{"host-timeout", "SECONDS", "a host that is silent for this long is lost", CC_OPT_SECONDS,
		AT(host_timeout_ms), {500, 600000, 2800}, .unset = true, .key = true},
	{"agent-lease-ms", "MS", "the peers of an agent that died have this long to come back",
		CC_OPT_MS, AT(agent_lease_ms), {1, 3600000, 5000}, .unset = true, .key = true,
		.was = "agent-grace-ms"},
	{"recovery-ms", "MS", "wait this long for the agents of a run that is taken over",
		CC_OPT_MS, AT(recovery_ms), {1, 3600000, 3000}, .unset = true, .key = true},
	{"link-timeout-ms", "MS", "a link is lost if its other host is silent for this long",
		CC_OPT_MS, BOUND(LINK), .unset = true, .key = true},
	{"stream-timeout-ms", "MS",
		"a link is lost if one of its streams alone is silent for this long", CC_OPT_MS,
		BOUND(STREAM), .unset = true, .key = true},
	{"stuck-timeout-ms", "MS",
		"a link is lost if nothing that it sends is delivered for this long", CC_OPT_MS,
		BOUND(STUCK), .unset = true, .key = true},
	{"new-link-timeout-ms", "MS", "a new link that takes longer has failed", CC_OPT_MS,
		BOUND(NEW_LINK), .unset = true, .key = true},
	{"round-timeout-ms", "MS", "an agent that takes longer to open its links is lost",
		CC_OPT_MS, BOUND(ROUND), .unset = true, .key = true},
	{"algorithm", "NAME",
		"how all-reduces of more than two hosts go from host to host: auto, ring, direct "
		"or tree",
		CC_OPT_WORD, AT(algorithm),
		{CCM_ALGORITHM_RING, CCM_ALGORITHM_TREE, CCM_ALGORITHM_AUTO}, .key = true,
		.env = "PCCL_MASTER_ALGORITHM", .words = algorithms},
	{"benchmark-ms", "MS", "measure a link for this long at most", CC_OPT_MS, AT(benchmark_ms),
		{100, 10000, 1000}, .unset = true, .key = true},
	{"log-level", "LEVEL",
		"least level of lines in the log: err, warning, notice, info or debug", CC_OPT_WORD,
		AT(log_level), {CC_LOG_ERR, CC_LOG_DEBUG, CC_LOG_INFO}, .key = true,
		.words = cc_log_levels},
};

const struct cc_options masterd_options = {
	.program = "ccoip-masterd",
	.about = "Usage: ccoip-masterd [OPTION]...\n"
		 "The master of a run: membership, votes and the order of the ring.\n",
	.section = "master",
	.opt = opts,
	.n = sizeof opts / sizeof opts[0],
};

/* ---- parsing ---- */

static bool on_setting(
	void *arg, const char *where, const char *section, const char *key, const char *value)
{
	return cc_conf_key(arg, where, section, key, value, "the section is [master]");
}

/* Do the bounds fit together, whether they come from the command line or the file? */
static bool bounds_fit(struct masterd_options *o)
{
	struct cc_bounds *b = &o->bounds;
	enum cc_bound bad;

	cc_bounds_complete(b);
	bad = cc_bounds_wrong(b);
	if (bad == CC_BOUND_STREAM)
		cc_log(CC_LOG_ERR, "%s is %u: it must be at least %u, the value of %s",
			cc_bound_names[bad], b->ms[bad], b->ms[CC_BOUND_LINK],
			cc_bound_names[CC_BOUND_LINK]);
	else if (bad == CC_BOUND_ROUND)
		cc_log(CC_LOG_ERR, "%s is %u: it must be at least %u: twice %s, plus a second",
			cc_bound_names[bad], b->ms[bad], CC_ROUND_MIN_MS(b->ms[CC_BOUND_NEW_LINK]),
			cc_bound_names[CC_BOUND_NEW_LINK]);
	return bad == CC_BOUNDS;
}

int masterd_options_parse(struct masterd_options *o, int argc, char **argv, int *exit_code)
{
	struct cc_options_run r = {.options = &masterd_options, .base = o};
	int err;

	*o = (struct masterd_options){.config = NULL};
	cc_options_defaults(&masterd_options, o);
	err = cc_conf_options(&r, argc, argv, &o->config, on_setting, exit_code);
	if (err == 0 && o->listen_fd >= 0 && o->listen_fd == o->parent_fd) {
		cc_log(CC_LOG_ERR, "--listen-fd and --parent-fd must differ");
		fputs("Try 'ccoip-masterd --help'.\n", stderr);
		*exit_code = EX_USAGE;
		err = CC_ERR_INVAL;
	}
	if (err == 0 && !bounds_fit(o)) {
		*exit_code = o->config ? EX_CONFIG : EX_USAGE;
		err = CC_ERR_INVAL;
	}
	if (err < 0)
		masterd_options_clear(o);
	return err;
}

void masterd_options_clear(struct masterd_options *o)
{
	cc_options_clear(&masterd_options, o);
}
