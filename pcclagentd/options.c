/* SPDX-License-Identifier: MIT */
#include "pcclagentd/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_log.h"
#include "daemon/cc_conf.h"

#define PRIVATE_IDLE_EXIT_S 30u

enum {
	OPT_CONFIG = 256,
	OPT_SOCKET,
	OPT_ADMIN_SOCKET,
	OPT_LISTEN_FD,
	OPT_PRIVATE,
	OPT_HELP,
	OPT_VERSION,
	OPT_KEYS, /* and above: settings that the file has as well */
};

enum value_kind {
	V_TEXT,
	V_PORT,
	V_TOLD_PORT,
	V_COUNT,
	V_SECONDS,
	V_MS,
	V_BYTES,
	V_ADDR,
	V_PLACES,
	V_BIND,
	V_HASH,
	V_LEVEL
};

/* --p2p-port on the command line is p2p_port in the file. */
static const struct setting {
	const char *key;
	enum value_kind kind;
	size_t off;
	const char *arg, *help;
} settings[] = {
	{"name", V_TEXT, offsetof(struct agentd_config, name), "NAME",
		"name of this host in logs and tables [host name]"},
	{"advertise", V_ADDR, offsetof(struct agentd_config, advertise), "PLACE",
		"where agents of other hosts reach this one: ADDR[:PORT], or\n"
		"a host name with a dot, with a port or without one, or\n"
		"its addresses in a network, as 10.2.0.0/16, or of an interface;\n"
		"may be given several times, the first one is tried first\n"
		"[PCCL_ADVERTISE, else those of interfaces]"},
	{"interfaces", V_PLACES, offsetof(struct agentd_config, interfaces), "PLACE",
		"which of this host's addresses data takes: an interface, a\n"
		"network, or an address; several likewise\n"
		"[PCCL_INTERFACES, else all]"},
	{"advertise_port_p2p", V_TOLD_PORT, offsetof(struct agentd_config, advertise_port_p2p),
		"PORT", "that others are told, where a router forwards it\n[p2p_port]"},
	{"advertise_port_shared_state", V_TOLD_PORT,
		offsetof(struct agentd_config, advertise_port_shared_state), "PORT",
		"likewise [shared_state_port]"},
	{"advertise_port_benchmark", V_TOLD_PORT,
		offsetof(struct agentd_config, advertise_port_benchmark), "PORT",
		"likewise [benchmark_port]"},
	{"bind", V_BIND, 0, "ADDR", "local address of the TCP ports [::]"},
	{"p2p_port", V_PORT, offsetof(struct agentd_config, port_p2p), "PORT",
		"taken: the next higher is tried; 0: any [48150]"},
	{"shared_state_port", V_PORT, offsetof(struct agentd_config, port_shared_state), "PORT",
		"likewise [48149]"},
	{"benchmark_port", V_PORT, offsetof(struct agentd_config, port_benchmark), "PORT",
		"likewise [48151]"},
	{"mem_total", V_BYTES, offsetof(struct agentd_config, mem_total), "BYTES",
		"shared memory of all users, with K, M, G, T [half of\n"
		"the RAM, or of what its cgroup has]"},
	{"mem_per_user", V_BYTES, offsetof(struct agentd_config, mem_per_user), "BYTES",
		"shared memory of one user [mem_total, as long as no other\n"
		"needs an equal part of it]"},
	{"sessions_per_user", V_COUNT, offsetof(struct agentd_config, sessions_per_user), "N",
		"processes of one user [1024]"},
	{"comms_per_user", V_COUNT, offsetof(struct agentd_config, comms_per_user), "N",
		"communicators of one user [1024]"},
	{"connect_timeout_ms", V_MS, offsetof(struct agentd_config, connect_timeout_ms), "MS",
		"for reaching a master [10000]"},
	{"place_timeout_ms", V_MS, offsetof(struct agentd_config, place_timeout_ms), "MS",
		"for one of the places where a master may be [1000]"},
	{"master_grace_ms", V_MS, offsetof(struct agentd_config, master_grace_ms), "MS",
		"that a run outlives its master [60000]"},
	{"stopped_timeout_ms", V_MS, offsetof(struct agentd_config, stopped_timeout_ms), "MS",
		"after which a stopped process counts as lost [10000]"},
	{"beat_timeout_ms", V_MS, offsetof(struct agentd_config, beat_timeout_ms), "MS",
		"after which a process that is waited for, and whose library\n"
		"does not answer, counts as stopped [3000]"},
	{"hash_type", V_HASH, 0, "TYPE",
		"of shared state: simple, or crc32c; the same on all hosts\n[simple]"},
	{"idle_exit", V_SECONDS, offsetof(struct agentd_config, idle_exit_ms), "SECONDS",
		"end when nobody was connected for so long; 0: never\n[0, with --private 30]"},
	{"log_level", V_LEVEL, 0, "LEVEL", "err, warning, notice, info or debug [info]"},
};

#define N_SETTINGS (sizeof settings / sizeof settings[0])

/* ---- values ---- */

static bool parse_number(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || *end || v > max)
		return false;
	*ret = v;
	return true;
}

static bool parse_bytes(const char *text, uint64_t *ret)
{
	static const char units[] = "KMGT";
	char digits[24];
	size_t len = strlen(text);
	const char *unit = len ? strchr(units, text[len - 1]) : NULL;
	unsigned shift = 0;

	if (len == 0 || len >= sizeof digits)
		return false;
	memcpy(digits, text, len + 1);
	if (unit) {
		digits[len - 1] = '\0';
		shift = 10 * (unsigned)(unit - units + 1);
	}
	if (!parse_number(digits, UINT64_MAX >> shift >> 1, ret) || *ret == 0)
		return false;
	*ret <<= shift;
	return true;
}

/* A value that set_value() does not take: which part of it, and why, if it knows better than
 * wanted[]. */
struct bad {
	char value[CC_ADDR_STR_SIZE];
	const char *why; /* "": no better */
};

/* Several, separated by commas or spaces. own: of this host, which a name need not be. */
static bool add_places(struct places *p, const char *text, bool own, struct bad *ret)
{
	char copy[WM_ADDRS_MAX * CC_ADDR_STR_SIZE], *save, *word;

	if (strlen(text) >= sizeof copy)
		return false;
	memcpy(copy, text, strlen(text) + 1);
	for (word = strtok_r(copy, ", \t", &save); word; word = strtok_r(NULL, ", \t", &save)) {
		struct place *to = &p->v[p->n];

		if (p->n == WM_ADDRS_MAX)
			return false;
		if (!place_parse(word, to, &ret->why)) {
			snprintf(ret->value, sizeof ret->value, "%s", word);
			return false;
		}
		if (own && to->kind == PLACE_NAME)
			return false;
		p->n++;
	}
	return true;
}

static bool set_bind(struct cc_addr *bind, const char *value, struct bad *ret)
{
	if (cc_addr_parse(value, 0, bind) < 0)
		return false;
	if (!cc_addr_is_link_local(bind))
		return true;
	snprintf(ret->value, sizeof ret->value, "%s", value);
	ret->why = cc_addr_flaw(bind);
	return false;
}

static bool set_value(
	struct options *o, const struct setting *s, const char *value, struct bad *ret)
{
	struct agentd_config *c = &o->cfg;
	void *at = (char *)c + s->off;
	uint64_t v;
	int level;

	switch (s->kind) {
	case V_TEXT:
		if (!*value || strlen(value) >= WM_NAME_MAX)
			return false;
		memcpy(at, value, strlen(value) + 1);
		return true;
	case V_PORT:
	case V_TOLD_PORT:
		if (!parse_number(value, UINT16_MAX, &v) || (v == 0 && s->kind == V_TOLD_PORT))
			return false;
		*(uint16_t *)at = (uint16_t)v;
		return true;
	case V_COUNT:
	case V_MS:
		if (!parse_number(value, UINT32_MAX, &v) || v == 0)
			return false;
		*(uint32_t *)at = (uint32_t)v;
		return true;
	case V_SECONDS:
		if (!parse_number(value, UINT32_MAX / 1000, &v))
			return false;
		*(uint32_t *)at = (uint32_t)(v * 1000);
		return true;
	case V_BYTES:
		return parse_bytes(value, at);
	case V_ADDR:
		return add_places(at, value, false, ret);
	case V_PLACES:
		return add_places(at, value, true, ret);
	case V_BIND:
		return set_bind(&c->bind, value, ret);
	case V_HASH:
		c->hash_type = strcmp(value, "crc32c") == 0 ? WM_HASH_CRC32C : WM_HASH_SIMPLE;
		return c->hash_type == WM_HASH_CRC32C || strcmp(value, "simple") == 0;
	case V_LEVEL:
		level = cc_log_parse_level(value);
		if (!o->again)
			cc_log_set_level(level < 0 ? CC_LOG_INFO : level);
		return level >= 0;
	}
	return false;
}

#define TEXT_OF_(x) #x
#define TEXT_OF(x)  TEXT_OF_(x)

/* Values that set_value() takes. */
static const char *const wanted[] = {
	[V_TEXT] = "a name of 1 to 63 bytes",
	[V_PORT] = "a port from 0 to 65535",
	[V_TOLD_PORT] = "a port from 1 to 65535",
	[V_COUNT] = "a number from 1 to 4294967295",
	[V_SECONDS] = "a number of seconds from 0 to 4294967",
	[V_MS] = "a number of milliseconds from 1 to 4294967295",
	[V_BYTES] = "a number of bytes above 0, as 4096, 512M or 3G",
	[V_ADDR] = "up to " TEXT_OF(WM_ADDRS_MAX) " of ADDR[:PORT], a host name with a dot, "
						  "NAME[:PORT], a network as 10.2.0.0/16, or an "
						  "interface; a port is from 1 to "
						  "65535",
	[V_PLACES] = ("up to " TEXT_OF(WM_ADDRS_MAX) " of an interface, a network as 10.2.0.0/16, "
						     "or an address"),
	[V_BIND] = "a numeric address",
	[V_HASH] = "simple or crc32c",
	[V_LEVEL] = "err, warning, notice, info or debug",
};

__attribute__((nonnull)) static int apply(
	struct options *o, const struct setting *s, const char *value, const char *where)
{
	struct bad bad = {.why = ""};

	if (!set_value(o, s, value, &bad)) {
		if (bad.why && *bad.why)
			cc_log(CC_LOG_ERR, "%s: %s is \"%s\": %s", where, s->key, bad.value,
				bad.why);
		else
			cc_log(CC_LOG_ERR, "%s: %s is \"%s\", it must be %s", where, s->key, value,
				wanted[s->kind]);
		return CC_ERR_INVAL;
	}
	if (s->kind == V_SECONDS)
		o->idle_exit_set = true;
	return 0;
}

int options_set(struct options *o, const char *key, const char *value, const char *where)
{
	for (size_t i = 0; i < N_SETTINGS; i++)
		if (strcmp(settings[i].key, key) == 0)
			return apply(o, &settings[i], value, where);
	cc_log(CC_LOG_ERR, "%s: there is no setting \"%s\"", where, key);
	return CC_ERR_INVAL;
}

/* ---- the file ---- */

/* With a port; in quotes or not. */
static bool take_address(const char *text, size_t len, struct cc_addr *ret)
{
	char copy[CC_ADDR_STR_SIZE];

	while (len > 0 && strchr(" \t", text[len - 1]))
		len--;
	for (; len > 0 && strchr(" \t", *text); text++)
		len--;
	if (len >= 2 && text[0] == '"' && text[len - 1] == '"') {
		text++;
		len -= 2;
	}
	if (len == 0 || len >= sizeof copy)
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return cc_addr_parse(copy, 0, ret) == 0 && ret->port != 0;
}

static int complain_of_masters(const char *where)
{
	cc_log(CC_LOG_ERR,
		"%s: in section [masters], ADDR:PORT = ADDR:PORT is wanted, with ports from 1 to "
		"65535, and double quotes around an address that has brackets",
		where);
	return CC_ERR_INVAL;
}

/*
 * OLD = NEW. The reader of the file takes ':' for '=' as well and has cut the line at the first of
 * them, which is inside OLD.
 */
static int add_master(
	struct agentd_masters *m, const char *key, const char *value, const char *where)
{
	char line[2 * CC_ADDR_STR_SIZE + 16];
	int n = snprintf(line, sizeof line, "%s:%s", key, value);
	const char *sign = strchr(line, '=');
	char addr[CC_ADDR_STR_SIZE];
	struct agentd_master a;
	const char *why;

	if (n < 0 || (size_t)n >= sizeof line || !sign ||
		!take_address(line, (size_t)(sign - line), &a.from) ||
		!take_address(sign + 1, strlen(sign + 1), &a.to))
		return complain_of_masters(where);
	why = cc_addr_flaw(&a.to);
	if (why) {
		cc_log(CC_LOG_ERR, "%s: in section [masters], %s: %s", where,
			cc_addr_str(&a.to, addr), why);
		return CC_ERR_INVAL;
	}
	for (uint32_t i = 0; i < m->n; i++) {
		if (!cc_addr_eq(&m->v[i].from, &a.from))
			continue;
		cc_log(CC_LOG_ERR, "%s: in section [masters], a master is there twice", where);
		return CC_ERR_INVAL;
	}
	if (m->n == AGENTD_MASTERS_MAX) {
		cc_log(CC_LOG_ERR, "%s: more than %u masters", where, AGENTD_MASTERS_MAX);
		return CC_ERR_LIMIT;
	}
	m->v[m->n++] = a;
	return 0;
}

static bool on_setting(
	void *arg, const char *where, const char *section, const char *key, const char *value)
{
	struct options *o = arg;

	if (strcmp(section, "masters") == 0)
		return add_master(&o->cfg.masters, key, value, where) == 0;
	/* An address in brackets without its quotes looks like a section. */
	if (strchr(section, ':'))
		return complain_of_masters(where) == 0;
	if (strcmp(section, "agent") != 0) {
		cc_log(CC_LOG_ERR, "%s: %s stands in %s%s%s; sections are [agent] and [masters]",
			where, key, *section ? "section [" : "no section", section,
			*section ? "]" : "");
		return false;
	}
	return options_set(o, key, value, where) == 0;
}

int options_read_masters(const char *file, struct agentd_masters *ret)
{
	struct options o = {.config_file = file, .again = true};

	/* A mistake in the rest would otherwise be found by the next start. */
	if (cc_conf_read(file, on_setting, &o))
		return CC_ERR_INVAL;
	*ret = o.cfg.masters;
	return 0;
}

/* ---- the command line ---- */

static void print_help(void)
{
	puts("Usage: pcclagentd [OPTION]...\n"
	     "The agent of this host: moves and reduces the data of all training processes.\n"
	     "\n"
	     "      --config FILE            read settings from section [agent] of FILE\n"
	     "      --socket PATH            socket of training processes [" PCCL_RUNDIR
	     "/agent.sock]\n"
	     "      --admin-socket PATH      socket of pcclctl [beside the other one]\n"
	     "      --listen-fd N            descriptor N is the socket of training processes\n"
	     "      --private                detach once ready, end when idle\n"
	     "      --help, --version\n"
	     "\n"
	     "Settings, in the file with _ instead of -:");
	for (size_t i = 0; i < N_SETTINGS; i++) {
		const struct setting *s = &settings[i];
		char option[48];
		const char *line = s->help;
		size_t len;

		snprintf(option, sizeof option, "--%s %s", s->key, s->arg);
		for (char *c = option; *c; c++)
			*c = *c == '_' ? '-' : *c;
		for (const char *head = option; *line; head = "") {
			len = strcspn(line, "\n");
			printf("      %-24s %.*s\n", head, (int)len, line);
			line += len + (line[len] == '\n');
		}
	}
}

static void make_long_options(struct option *long_opts, char names[][32])
{
	static const struct option fixed[] = {
		{"config", required_argument, NULL, OPT_CONFIG},
		{"socket", required_argument, NULL, OPT_SOCKET},
		{"admin-socket", required_argument, NULL, OPT_ADMIN_SOCKET},
		{"listen-fd", required_argument, NULL, OPT_LISTEN_FD},
		{"private", no_argument, NULL, OPT_PRIVATE},
		{"help", no_argument, NULL, OPT_HELP},
		{"version", no_argument, NULL, OPT_VERSION},
	};
	size_t n = sizeof fixed / sizeof fixed[0];

	memcpy(long_opts, fixed, sizeof fixed);
	for (size_t i = 0; i < N_SETTINGS; i++) {
		snprintf(names[i], 32, "%s", settings[i].key);
		for (char *c = names[i]; *c; c++)
			*c = *c == '_' ? '-' : *c;
		long_opts[n + i] =
			(struct option){names[i], required_argument, NULL, OPT_KEYS + (int)i};
	}
	long_opts[n + N_SETTINGS] = (struct option){0};
}

struct given { /* settings of the command line, applied after those of the file */
	const char *value[N_SETTINGS * 4];
	const struct setting *setting[N_SETTINGS * 4];
	size_t n;
};

static int take_option(struct options *o, struct given *g, int opt)
{
	uint64_t fd;

	switch (opt) {
	case OPT_CONFIG:
		o->config_file = optarg;
		return 0;
	case OPT_SOCKET:
		o->socket = optarg;
		return 0;
	case OPT_ADMIN_SOCKET:
		o->admin_socket = optarg;
		return 0;
	case OPT_LISTEN_FD:
		if (!parse_number(optarg, INT32_MAX, &fd)) {
			cc_log(CC_LOG_ERR,
				"command line: listen_fd is \"%s\", it must be the number of a "
				"descriptor",
				optarg);
			return CC_ERR_INVAL;
		}
		o->listen_fd = (int)fd;
		return 0;
	case OPT_PRIVATE:
		o->is_private = true;
		return 0;
	}
	if (opt < OPT_KEYS || g->n == N_SETTINGS * 4)
		return CC_ERR_INVAL;
	g->setting[g->n] = &settings[opt - OPT_KEYS];
	g->value[g->n++] = optarg;
	return 0;
}

/* What the command line says of places, or else the environment, takes the place of what the file
 * says. */
static int apply_places(struct options *o, const struct given *g, enum value_kind kind,
	struct places *p, const char *key, const char *env_name)
{
	const char *env = getenv(env_name);
	bool given = false;

	for (size_t i = 0; i < g->n; i++)
		given = given || g->setting[i]->kind == kind;
	if (given || (env && *env))
		p->n = 0;
	return given || !env || !*env ? 0 : options_set(o, key, env, env_name);
}

static int apply_all(struct options *o, const struct given *g)
{
	if (o->config_file) {
		int code = cc_conf_read(o->config_file, on_setting, o);

		if (code)
			return code;
	}
	if (apply_places(o, g, V_ADDR, &o->cfg.advertise, "advertise", "PCCL_ADVERTISE") < 0 ||
		apply_places(o, g, V_PLACES, &o->cfg.interfaces, "interfaces", "PCCL_INTERFACES") <
			0)
		return EX_CONFIG;
	for (size_t i = 0; i < g->n; i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): they have arguments */
		if (apply(o, g->setting[i], g->value[i], "command line") < 0)
			return EX_USAGE;
	o->cfg.gives_ports = o->is_private;
	if (o->is_private && !o->idle_exit_set)
		o->cfg.idle_exit_ms = PRIVATE_IDLE_EXIT_S * 1000;
	return 0;
}

int options_parse(struct options *o, int argc, char **argv, int *exit_code)
{
	struct option long_opts[8 + N_SETTINGS];
	char names[N_SETTINGS][32];
	char host[WM_NAME_MAX] = "";
	struct given g = {.n = 0};
	int opt;

	*o = (struct options){.listen_fd = -1};
	agentd_config_init(&o->cfg);
	if (gethostname(host, sizeof host - 1) < 0)
		strcpy(host, "localhost");
	memcpy(o->cfg.name, host, sizeof host);
	make_long_options(long_opts, names);
	while ((opt = getopt_long(argc, argv, "", long_opts, NULL)) >= 0) {
		if (opt == OPT_HELP || opt == OPT_VERSION) {
			if (opt == OPT_HELP)
				print_help();
			else
				puts("pcclagentd " PACKAGE_VERSION);
			*exit_code = fflush(stdout) < 0 ? EX_IOERR : EX_OK;
			return CC_ERR_EOF;
		}
		if (take_option(o, &g, opt) < 0)
			goto usage;
	}
	if (optind < argc)
		goto usage;
	*exit_code = apply_all(o, &g);
	return *exit_code ? CC_ERR_INVAL : 0;
usage:
	fputs("Try 'pcclagentd --help'.\n", stderr);
	*exit_code = EX_USAGE;
	return CC_ERR_INVAL;
}
