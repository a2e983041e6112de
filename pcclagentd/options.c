/* SPDX-License-Identifier: MIT */
#include "pcclagentd/options.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_log.h"
#include "daemon/cc_conf.h"

#define PRIVATE_IDLE_EXIT 30 /* seconds */

#define TEXT_OF_(x) #x
#define TEXT_OF(x)  TEXT_OF_(x)

/* ---- values ---- */

/* Adds address specs, separated by commas or spaces. own: they are for this host's interfaces, so
 * host names are refused. */
static bool add_addr_specs(struct addrs *p, const char *text, bool own, struct cc_opt_refusal *ret)
{
	char copy[WM_ADDRS_MAX * CC_ADDR_STR_SIZE], *save, *word;
	const char *why;

	if (strlen(text) >= sizeof copy)
		return false;
	memcpy(copy, text, strlen(text) + 1);
	for (word = strtok_r(copy, ", \t", &save); word; word = strtok_r(NULL, ", \t", &save)) {
		struct place *to = &p->v[p->n];

		if (p->n == WM_ADDRS_MAX)
			return false;
		if (!addr_spec_parse(word, to, &why)) {
			snprintf(ret->part, sizeof ret->part, "%s", word);
			ret->why = *why ? why : NULL;
			return false;
		}
		if (own && to->kind == ADDR_SPEC_NAME)
			return false;
		p->n++;
	}
	return true;
}

static bool set_places(
	void *base, const struct cc_opt *opt, const char *value, struct cc_opt_refusal *ret)
{
	struct addrs *p = (struct addrs *)(void *)((char *)base + opt->off);

	if (!value)
		p->n = 0;
	return !value || add_addr_specs(p, value,
				 opt->off == offsetof(struct agentd_options, cfg.interfaces), ret);
}

static bool set_bind(
	void *base, const struct cc_opt *opt, const char *value, struct cc_opt_refusal *ret)
{
	struct cc_addr *bind = &((struct agentd_options *)base)->cfg.bind;

	(void)opt;
	if (cc_addr_parse(value, 0, bind) < 0)
		return false;
	if (cc_addr_is_link_local(bind))
		ret->why = cc_addr_flaw(bind);
	return !ret->why;
}

/* ---- the table ---- */

static const char *const hash_types[] = {"simple", "crc32c", NULL}; /* WM_HASH_SIMPLE first */

#define AT(field)     CC_OPT_AT(struct agentd_options, field)
#define ANY           1, UINT32_MAX
#define PORT_RANGE    0, UINT16_MAX
#define OTHER_PORT    1, UINT16_MAX
#define SECONDS_RANGE 0, UINT32_MAX / 1000 * 1000

static const struct cc_opt opts[] = {
	{"config", "FILE", "read settings from FILE", CC_OPT_PATH, AT(config_file)},
	{"socket", "PATH", "socket of training processes", CC_OPT_PATH, AT(socket),
		.usual = PCCL_RUNDIR "/agent.sock"},
	{"admin-socket", "PATH", "socket of pcclctl", CC_OPT_PATH, AT(admin_socket),
		.usual = "beside the socket of training processes"},
	{"listen-fd", "N", "descriptor N is the socket of training processes", CC_OPT_FD,
		AT(listen_fd)},
	{"private", NULL, "detach once ready, end when idle", CC_OPT_FLAG, AT(is_private)},
	{"name", "NAME", "name of this host in logs and tables", CC_OPT_NAME, AT(cfg.name),
		.key = true, .usual = "host name"},
	{"advertise", "PLACE",
		"where agents of other hosts reach this agent: ADDR[:PORT], NAME[:PORT] with a "
		"host name that has a dot, or this host's addresses in a network, such as "
		"10.2.0.0/16, or of an interface; may be given several times",
		CC_OPT_SET, AT(cfg.advertise), .set = set_places, .key = true, .list = true,
		.env = "PCCL_ADVERTISE",
		.usual = "PCCL_ADVERTISE, else the addresses of interfaces",
		.wanted = "ADDR[:PORT], NAME[:PORT] with a host name that has a dot, a network "
			  "such as 10.2.0.0/16, or an interface, at most " TEXT_OF(
				  WM_ADDRS_MAX) " of them; a port is from 1 to 65535"},
	{"interfaces", "PLACE",
		"the addresses of this host that data uses: an interface, a network, or an "
		"address; may be given several times",
		CC_OPT_SET, AT(cfg.interfaces), .set = set_places, .key = true, .list = true,
		.env = "PCCL_INTERFACES", .usual = "PCCL_INTERFACES, else all",
		.wanted = "an interface, a network such as 10.2.0.0/16, or an address, at "
			  "most " TEXT_OF(WM_ADDRS_MAX) " of them"},
	{"advertise-port-p2p", "PORT",
		"port to which other hosts connect for tensors, if a router forwards it",
		CC_OPT_PORT, AT(cfg.advertise_port_p2p), {OTHER_PORT, 0}, .unset = true,
		.key = true, .usual = "p2p_port"},
	{"advertise-port-shared-state", "PORT", "likewise for shared state", CC_OPT_PORT,
		AT(cfg.advertise_port_shared_state), {OTHER_PORT, 0}, .unset = true, .key = true,
		.usual = "shared_state_port"},
	{"advertise-port-benchmark", "PORT", "likewise for measuring bandwidth", CC_OPT_PORT,
		AT(cfg.advertise_port_benchmark), {OTHER_PORT, 0}, .unset = true, .key = true,
		.usual = "benchmark_port"},
	{"bind", "ADDR", "local address of the TCP ports", CC_OPT_SET, AT(cfg.bind),
		.set = set_bind, .key = true, .usual = "[::]", .wanted = "a numeric address"},
	{"p2p-port", "PORT",
		"port for tensors; if it is in use, the next free port above it; 0: any free port",
		CC_OPT_PORT, AT(cfg.port_p2p), {PORT_RANGE, 48150}, .key = true},
	{"shared-state-port", "PORT", "port for shared state, likewise", CC_OPT_PORT,
		AT(cfg.port_shared_state), {PORT_RANGE, 48149}, .key = true},
	{"benchmark-port", "PORT", "port for measuring bandwidth, likewise", CC_OPT_PORT,
		AT(cfg.port_benchmark), {PORT_RANGE, 48151}, .key = true},
	{"mem-total", "BYTES", "shared memory of all users, with K, M, G, T", CC_OPT_BYTES,
		AT(cfg.mem_total), {1, CC_OPTIONS_BYTES, 0}, .unset = true, .key = true,
		.usual = "half of the RAM, or half of the cgroup's limit"},
	{"mem-per-user", "BYTES", "shared memory of one user", CC_OPT_BYTES, AT(cfg.mem_per_user),
		{1, CC_OPTIONS_BYTES, 0}, .unset = true, .key = true,
		.usual = "mem_total, or an equal part of it when other users need memory, too"},
	{"sessions-per-user", "N", "processes of one user", CC_OPT_COUNT, AT(cfg.sessions_per_user),
		{ANY, 1024}, .key = true},
	{"comms-per-user", "N", "communicators of one user", CC_OPT_COUNT, AT(cfg.comms_per_user),
		{ANY, 1024}, .key = true},
	{"connect-timeout-ms", "MS", "how long to try to reach a master", CC_OPT_MS,
		AT(cfg.connect_timeout_ms), {ANY, 10000}, .key = true},
	{"master-addr-timeout-ms", "MS", "how long to wait for one address of a master", CC_OPT_MS,
		AT(cfg.master_addr_timeout_ms), {ANY, 1000}, .key = true,
		.was = "place-timeout-ms"},
	{"master-lease-ms", "MS", "how long a run outlives its master", CC_OPT_MS,
		AT(cfg.master_lease_ms), {ANY, 60000}, .key = true, .was = "master-grace-ms"},
	{"stopped-timeout-ms", "MS", "after this time a stopped process counts as lost", CC_OPT_MS,
		AT(cfg.stopped_timeout_ms), {ANY, 10000}, .key = true},
	{"beat-timeout-ms", "MS",
		"a process for which others wait counts as stopped if its library has not "
		"answered for this time",
		CC_OPT_MS, AT(cfg.beat_timeout_ms), {ANY, 3000}, .key = true},
	{"hash-type", "TYPE", "how shared state is hashed: simple or crc32c; the same on all hosts",
		CC_OPT_WORD, AT(cfg.hash_type), {WM_HASH_SIMPLE, WM_HASH_CRC32C, WM_HASH_SIMPLE},
		.key = true, .words = hash_types},
	{"idle-exit", "SECONDS", "end when no process was connected for this long; 0: never",
		CC_OPT_SECONDS, AT(cfg.idle_exit_ms), {SECONDS_RANGE, 0}, .key = true,
		.usual = "0, with --private " TEXT_OF(PRIVATE_IDLE_EXIT)},
	{"log-level", "LEVEL",
		"least level of lines in the log: err, warning, notice, info or debug", CC_OPT_WORD,
		AT(log_level), {CC_LOG_ERR, CC_LOG_DEBUG, CC_LOG_INFO}, .key = true,
		.words = cc_log_levels},
};

const struct cc_options agentd_options = {
	.program = "pcclagentd",
	.about = "Usage: pcclagentd [OPTION]...\n"
		 "The agent of this host: moves and reduces the data of all training processes.\n",
	.section = "agent",
	.opt = opts,
	.n = sizeof opts / sizeof opts[0],
};

/* ---- the file ---- */

/* Parses an address with a port, in quotes or not. */
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
		"%s: in section [masters], ADDR:PORT = ADDR:PORT is needed, with ports from 1 to "
		"65535, and double quotes around an address that has brackets",
		where);
	return CC_ERR_INVAL;
}

/* Adds a line OLD = NEW. The reader of the file also accepts ':' for '=', and has cut the line at
 * the first ':', which is inside OLD. */
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
		cc_log(CC_LOG_ERR, "%s: in section [masters], a master appears twice", where);
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
	struct cc_options_run *r = arg;
	struct agentd_options *o = r->base;

	if (strcmp(section, "masters") == 0)
		return add_master(&o->cfg.masters, key, value, where) == 0;
	/* An address in brackets without its quotes looks like a section. */
	if (strchr(section, ':'))
		return complain_of_masters(where) == 0;
	return cc_conf_key(r, where, section, key, value, "sections are [agent] and [masters]");
}

int agentd_options_read_masters(const char *file, struct agentd_masters *ret)
{
	struct agentd_options o = {.config_file = NULL};
	struct cc_options_run r = {
		.options = &agentd_options, .base = &o, .say = cc_conf_say, .source = 1};

	/* The whole file is read, because a mistake in another section would otherwise only be
	 * found by the next start. */
	if (cc_conf_read(file, on_setting, &r))
		return CC_ERR_INVAL;
	*ret = o.cfg.masters;
	return 0;
}

/* ---- all settings ---- */

static void init(struct agentd_options *o)
{
	*o = (struct agentd_options){
		.cfg = {.session_fd = -1, .admin_fd = -1, .bind = {.family = CC_INET6}}};
	cc_options_defaults(&agentd_options, o);
}

void agentd_config_init(struct agentd_config *c)
{
	struct agentd_options o;

	init(&o);
	*c = o.cfg;
}

int agentd_options_parse(struct agentd_options *o, int argc, char **argv, int *exit_code)
{
	struct cc_options_run r = {.options = &agentd_options, .base = o};
	char host[WM_NAME_MAX] = "";
	int err;

	init(o);
	if (gethostname(host, sizeof host - 1) < 0)
		strcpy(host, "localhost");
	memcpy(o->cfg.name, host, sizeof host);
	err = cc_conf_options(&r, argc, argv, &o->config_file, on_setting, exit_code);
	if (err < 0) {
		agentd_options_clear(o);
		return err;
	}
	o->cfg.gives_ports = o->is_private;
	if (o->is_private && !cc_options_given(&r, "idle-exit"))
		o->cfg.idle_exit_ms = PRIVATE_IDLE_EXIT * 1000;
	return 0;
}

void agentd_options_clear(struct agentd_options *o)
{
	cc_options_clear(&agentd_options, o);
}
