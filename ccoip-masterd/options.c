/* SPDX-License-Identifier: MIT */
#include "ccoip-masterd/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "common/cc_err.h"
#include "common/cc_log.h"
#include "daemon/cc_conf.h"

#define DEFAULT_PORT 48148

enum {
	OPT_LISTEN = 256,
	OPT_LISTEN_FD,
	OPT_PARENT_FD,
	OPT_ADMIN_SOCKET,
	OPT_STATE_DIR,
	OPT_HOST_TIMEOUT,
	OPT_AGENT_GRACE_MS,
	OPT_RECOVERY_MS,
	OPT_BOUND, /* and those that follow: enum cc_bound */
	OPT_CONFIG = OPT_BOUND + CC_BOUNDS,
	OPT_LOG_LEVEL,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"listen-fd", required_argument, NULL, OPT_LISTEN_FD},
	{"parent-fd", required_argument, NULL, OPT_PARENT_FD},
	{"admin-socket", required_argument, NULL, OPT_ADMIN_SOCKET},
	{"state-dir", required_argument, NULL, OPT_STATE_DIR},
	{"host-timeout", required_argument, NULL, OPT_HOST_TIMEOUT},
	{"agent-grace-ms", required_argument, NULL, OPT_AGENT_GRACE_MS},
	{"recovery-ms", required_argument, NULL, OPT_RECOVERY_MS},
	{"link-timeout-ms", required_argument, NULL, OPT_BOUND + CC_BOUND_LINK},
	{"stream-timeout-ms", required_argument, NULL, OPT_BOUND + CC_BOUND_STREAM},
	{"stuck-timeout-ms", required_argument, NULL, OPT_BOUND + CC_BOUND_STUCK},
	{"new-link-timeout-ms", required_argument, NULL, OPT_BOUND + CC_BOUND_NEW_LINK},
	{"round-timeout-ms", required_argument, NULL, OPT_BOUND + CC_BOUND_ROUND},
	{"config", required_argument, NULL, OPT_CONFIG},
	{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{0},
};

static const char help[] =
	"Usage: ccoip-masterd [OPTION]...\n"
	"The master of a run: membership, votes and the order of the ring.\n"
	"\n"
	"      --listen ADDR:PORT     accept agents here, several times if need be [[::]:48148]\n"
	"      --listen-fd N          descriptor N is a socket that listens already\n"
	"      --parent-fd N          end when the other end of descriptor N was closed; a byte\n"
	"                             there, or a signal, ends the run as well\n"
	"      --admin-socket PATH    socket of pcclctl [" PCCL_RUNDIR "/master-admin.sock,\n"
	"                             else $XDG_RUNTIME_DIR/pccl/master-PORT-admin.sock,\n"
	"                             else in ${TMPDIR:-/tmp}/pccl-UID]\n"
	"      --state-dir DIR        keep a journal there, for the master that is started next\n"
	"      --host-timeout SECONDS a host that is silent for so long is lost [2.8]\n"
	"      --agent-grace-ms N     the peers of an agent that died have this long to come back\n"
	"                             [5000]\n"
	"      --recovery-ms N        wait this long for the agents of a run that is taken over\n"
	"                             [3000]\n"
	"      --link-timeout-ms N    a link is lost whose other host is silent for so long "
	"[2800]\n"
	"      --stream-timeout-ms N  likewise if one of its streams is, and others are not "
	"[10000]\n"
	"      --stuck-timeout-ms N   likewise if nothing of what it sends is delivered [3000]\n"
	"      --new-link-timeout-ms N\n"
	"                             a new link has failed that takes longer [2000]\n"
	"      --round-timeout-ms N   likewise an agent that has not opened its links [5000]\n"
	"      --config FILE          read settings from section [master] of FILE\n"
	"      --log-level LEVEL      err, warning, notice, info or debug [info]\n"
	"      --help, --version\n";

/* ---- values: each returns NULL, or what is wrong ---- */

static const char *add_listen(struct options *o, const char *text)
{
	if (o->n_listen == MASTERD_LISTEN_MAX)
		return "more addresses to listen on than the 16 that are allowed";
	if (cc_addr_parse(text, DEFAULT_PORT, &o->listen[o->n_listen]) < 0)
		return "is no ADDR:PORT; ADDR must be numeric, in brackets for IPv6, and PORT from "
		       "0 "
		       "to 65535";
	if (cc_addr_is_link_local(&o->listen[o->n_listen]))
		return "is a link-local address (fe80::/10), which cannot be used: it leads "
		       "nowhere without the name of an interface";
	o->n_listen++;
	return NULL;
}

static const char *set_fd(int *fd, const char *text)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || v > INT32_MAX)
		return "is no descriptor";
	*fd = (int)v;
	return NULL;
}

static const char *set_ms(uint32_t *ms, const char *text)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || v < 1 || v > 3600000)
		return "is no number of milliseconds from 1 to 3600000";
	*ms = (uint32_t)v;
	return NULL;
}

static const char *set_bound(uint32_t *ms, enum cc_bound which, const char *text)
{
	static char bad[80];
	uint32_t min, max, v = 0;

	cc_bound_range(which, &min, &max);
	snprintf(bad, sizeof bad, "is no number of milliseconds from %u to %u", min, max);
	if (set_ms(&v, text) || v < min || v > max)
		return bad;
	*ms = v;
	return NULL;
}

static const char *set_host_timeout(uint32_t *ms, const char *text)
{
	char *end;
	double v = strtod(text, &end);

	/* No sign, exponent, "inf" or "0x1". */
	if (text[strspn(text, "0123456789.")] || *end || end == text || v < 0.5 || v > 600)
		return "is no number of seconds from 0.5 to 600";
	*ms = (uint32_t)(v * 1000 + 0.5);
	return NULL;
}

static const char *set_log_level(struct options *o, const char *text)
{
	int level = cc_log_parse_level(text);

	if (level < 0)
		return "is none of err, warning, notice, info, debug";
	o->log_level = level;
	return NULL;
}

/* ---- the file ---- */

static const char *set_path(char **path, const char *value)
{
	free(*path);
	*path = strdup(value);
	return *path ? NULL : "no memory";
}

static enum cc_bound find_bound(const char *key)
{
	enum cc_bound b = 0;

	while (b < CC_BOUNDS && strcmp(key, cc_bound_names[b]) != 0)
		b++;
	return b;
}

static bool on_setting(
	void *arg, const char *where, const char *section, const char *key, const char *value)
{
	struct options *o = arg;
	enum cc_bound bound = find_bound(key);
	const char *bad = NULL;
	uint32_t unused; /* the command line wins */

	if (strcmp(section, "master") != 0) {
		cc_log(CC_LOG_ERR, "%s: %s stands in %s%s%s; the section is [master]", where, key,
			*section ? "section [" : "no section", section, *section ? "]" : "");
		return false;
	}
	if (strcmp(key, "listen") == 0) {
		if (!o->listen_given)
			bad = add_listen(o, value);
	} else if (strcmp(key, "log_level") == 0) {
		if (!o->log_level_given)
			bad = set_log_level(o, value);
	} else if (strcmp(key, "admin_socket") == 0) {
		bad = set_path(&o->admin_socket_of_file, value);
	} else if (strcmp(key, "state_dir") == 0) {
		bad = set_path(&o->state_dir_of_file, value);
	} else if (strcmp(key, "host_timeout") == 0) {
		bad = set_host_timeout(o->host_timeout_ms ? &unused : &o->host_timeout_ms, value);
	} else if (strcmp(key, "agent_grace_ms") == 0) {
		bad = set_ms(o->agent_grace_ms ? &unused : &o->agent_grace_ms, value);
	} else if (strcmp(key, "recovery_ms") == 0) {
		bad = set_ms(o->recovery_ms ? &unused : &o->recovery_ms, value);
	} else if (bound < CC_BOUNDS) {
		bad = set_bound(o->bounds.ms[bound] ? &unused : &o->bounds.ms[bound], bound, value);
	} else {
		cc_log(CC_LOG_ERR, "%s: there is no setting \"%s\"", where, key);
		return false;
	}
	if (bad)
		cc_log(CC_LOG_ERR, "%s: %s: \"%s\" %s", where, key, value, bad);
	return !bad;
}

static int read_file(struct options *o, const char *path)
{
	int code = cc_conf_read(path, on_setting, o);

	if (code != EX_OK)
		return code;
	if (!o->admin_socket)
		o->admin_socket = o->admin_socket_of_file;
	if (!o->state_dir)
		o->state_dir = o->state_dir_of_file;
	return EX_OK;
}

/* ---- the command line ---- */

static const char *take_option(struct options *o, int opt, const char **config)
{
	if (opt >= OPT_BOUND && opt < OPT_BOUND + CC_BOUNDS)
		return set_bound(
			&o->bounds.ms[opt - OPT_BOUND], (enum cc_bound)(opt - OPT_BOUND), optarg);
	switch (opt) {
	case OPT_LISTEN:
		o->listen_given = true;
		return add_listen(o, optarg);
	case OPT_LISTEN_FD:
		return set_fd(&o->listen_fd, optarg);
	case OPT_PARENT_FD:
		return set_fd(&o->parent_fd, optarg);
	case OPT_ADMIN_SOCKET:
		o->admin_socket = optarg;
		return *optarg ? NULL : "is no path";
	case OPT_STATE_DIR:
		o->state_dir = optarg;
		return *optarg ? NULL : "is no path";
	case OPT_HOST_TIMEOUT:
		return set_host_timeout(&o->host_timeout_ms, optarg);
	case OPT_AGENT_GRACE_MS:
		return set_ms(&o->agent_grace_ms, optarg);
	case OPT_RECOVERY_MS:
		return set_ms(&o->recovery_ms, optarg);
	case OPT_CONFIG:
		*config = optarg;
		return NULL;
	case OPT_LOG_LEVEL:
		o->log_level_given = true;
		return set_log_level(o, optarg);
	}
	return "";
}

/* Do those that were given, on the command line or in the file, fit? */
static bool bounds_fit(struct options *o)
{
	struct cc_bounds *b = &o->bounds;
	enum cc_bound bad;

	cc_bounds_complete(b);
	bad = cc_bounds_wrong(b);
	if (bad == CC_BOUND_STREAM)
		cc_log(CC_LOG_ERR, "%s is %u: it must be %u at least, which is %s",
			cc_bound_names[bad], b->ms[bad], b->ms[CC_BOUND_LINK],
			cc_bound_names[CC_BOUND_LINK]);
	else if (bad == CC_BOUND_ROUND)
		cc_log(CC_LOG_ERR, "%s is %u: it must be %u at least, twice %s and a second",
			cc_bound_names[bad], b->ms[bad], CC_ROUND_MIN_MS(b->ms[CC_BOUND_NEW_LINK]),
			cc_bound_names[CC_BOUND_NEW_LINK]);
	return bad == CC_BOUNDS;
}

int options_parse(struct options *o, int argc, char **argv, int *exit_code)
{
	const char *config = NULL, *bad;
	int opt, index = 0;

	*o = (struct options){.listen_fd = -1, .parent_fd = -1, .log_level = CC_LOG_INFO};
	while ((opt = getopt_long(argc, argv, "", long_options, &index)) != -1) {
		if (opt == OPT_HELP || opt == OPT_VERSION) {
			fputs(opt == OPT_HELP ? help : "ccoip-masterd " PACKAGE_VERSION "\n",
				stdout);
			*exit_code = fflush(stdout) != 0 ? EX_IOERR : EX_OK;
			return CC_ERR_EOF;
		}
		bad = take_option(o, opt, &config);
		if (bad && *bad)
			fprintf(stderr, "ccoip-masterd: --%s: \"%s\" %s\n",
				long_options[index].name, optarg, bad);
		if (bad)
			goto usage;
	}
	if (optind < argc) {
		fprintf(stderr, "ccoip-masterd: \"%s\" is no option\n", argv[optind]);
		goto usage;
	}
	if (o->listen_fd >= 0 && o->listen_fd == o->parent_fd) {
		fputs("ccoip-masterd: --listen-fd and --parent-fd must differ\n", stderr);
		goto usage;
	}
	*exit_code = config ? read_file(o, config) : EX_OK;
	if (*exit_code == EX_OK && !bounds_fit(o))
		*exit_code = config ? EX_CONFIG : EX_USAGE;
	if (*exit_code == EX_OK)
		return 0;
	options_clear(o);
	return CC_ERR_INVAL;
usage:
	fputs("Try 'ccoip-masterd --help'.\n", stderr);
	*exit_code = EX_USAGE;
	return CC_ERR_INVAL;
}

void options_clear(struct options *o)
{
	free(o->admin_socket_of_file);
	free(o->state_dir_of_file);
	*o = (struct options){.listen_fd = -1, .parent_fd = -1};
}
