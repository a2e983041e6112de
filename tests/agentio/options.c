/* SPDX-License-Identifier: MIT */
#include "pcclagentd/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_log.h"
#include "tests/agentio/suites.h"

static int parse(struct agentd_options *o, const char *const *args)
{
	char *argv[16] = {(char *)(uintptr_t) "pcclagentd"};
	int argc = 1, code = -1, err;

	while (*args)
		argv[argc++] = (char *)(uintptr_t)*args++;
	argv[argc] = NULL;
	optind = 0;
	opterr = 0;
	err = agentd_options_parse(o, argc, argv, &code);
	ck_assert_int_eq(err < 0, code != 0 || err == CC_ERR_EOF);
	agentd_options_clear(o);
	return code;
}

#define PARSE(o, ...) parse(o, (const char *const[]){__VA_ARGS__, NULL})

START_TEST(options_have_their_defaults)
{
	struct agentd_options o;

	unsetenv("PCCL_ADVERTISE");
	ck_assert_int_eq(PARSE(&o, NULL), 0);
	ck_assert_uint_eq(o.cfg.port_p2p, 48150);
	ck_assert_uint_eq(o.cfg.port_shared_state, 48149);
	ck_assert_uint_eq(o.cfg.port_benchmark, 48151);
	ck_assert_uint_eq(o.cfg.idle_exit_ms, 0);
	ck_assert_uint_eq(o.cfg.stopped_timeout_ms, 10000);
	ck_assert_uint_eq(o.cfg.beat_timeout_ms, 3000);
	ck_assert_uint_eq(o.cfg.master_addr_timeout_ms, 1000);
	ck_assert_int_eq(o.listen_fd, -1);
	ck_assert_uint_eq(o.cfg.advertise.n, 0);
	ck_assert_int_eq(PARSE(&o, "--private", "--listen-fd", "3"), 0);
	ck_assert_uint_eq(o.cfg.idle_exit_ms, 30000);
	ck_assert_int_eq(o.listen_fd, 3);
	ck_assert(o.cfg.gives_ports);
	ck_assert_int_eq(PARSE(&o, "--private", "--idle-exit", "7"), 0);
	ck_assert_uint_eq(o.cfg.idle_exit_ms, 7000);
	ck_assert_int_eq(PARSE(&o, "--idle-exit=0", "--private"), 0);
	ck_assert_uint_eq(o.cfg.idle_exit_ms, 0);
}
END_TEST

/* a string of 64 characters */
#define LONG_WORD "a234567890123456789012345678901234567890123456789012345678901234"

START_TEST(wrong_values_are_refused)
{
	static const char *const wrong[] = {"--p2p-port=65536", "--p2p-port=-1", "--p2p-port=x",
		"--p2p-port=", "--mem-total=0", "--mem-total=12Q", "--mem-total=K",
		"--mem-total=99999999999T", "--advertise=no:interface", "--advertise=10.0.0.0/33",
		"--interfaces=10.0.0/8", "--interfaces=a.example", "--advertise=a.example:0",
		"--advertise=192.0.2.999", "--advertise=a.example:x", "--advertise=a.example:+7",
		"--advertise=0.0.0.0", "--advertise=0.0.0.0:7",
		"--advertise=::", "--advertise=0.1.2.3", "--advertise=10.99.0.2:0",
		"--advertise=[2001:db8::1]:0", "--advertise=224.0.0.1", "--advertise=239.1.2.3:7",
		"--advertise=[ff02::1]", "--advertise=255.255.255.255", "--interfaces=224.0.0.1",
		"--advertise=a..b", "--advertise=.a.b", "--advertise=-a.b", "--advertise=a-.b",
		"--advertise=a.b-", ("--advertise=" LONG_WORD ".b"), "--advertise-port-p2p=0",
		"--advertise-port-shared-state=0", "--advertise-port-benchmark=0",
		"--log-level=loud", "--sessions-per-user=0", "--master-lease-ms=0",
		"--stopped-timeout-ms=x", "--beat-timeout-ms=0", "--master-addr-timeout-ms=0",
		"--idle-exit=-5", "--listen-fd=x", "--name=", "--no-such-option", "stray"};
	struct agentd_options o;

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		ck_assert_msg(PARSE(&o, wrong[i]) == EX_USAGE, "%s", wrong[i]);
}
END_TEST

#define LINK_LOCAL "link-local addresses (fe80::/10) cannot be used"

/* The error names the setting, the value and the allowed values. */
START_TEST(errors_name_the_setting_the_value_and_what_is_allowed)
{
	static const char *const wrong[][2] = {
		{"--p2p-port=65536", "--p2p-port is \"65536\", it must be a port from 0 to 65535"},
		{"--advertise-port-p2p=x",
			"--advertise-port-p2p is \"x\", it must be a port from 1 to "
			"65535"},
		{"--advertise-port-benchmark=0",
			"--advertise-port-benchmark is \"0\", it must be a port from 1 to 65535"},
		{"--advertise=192.0.2.1,10.99.0.2:0",
			"--advertise is \"10.99.0.2:0\": a port is from 1 to 65535"},
		{"--advertise=224.0.0.1",
			"--advertise is \"224.0.0.1\": it is a multicast address, "
			"which belongs to no host"},
		{"--advertise=[fe80::1]", "--advertise is \"[fe80::1]\": " LINK_LOCAL},
		{"--interfaces=lo,fe80::/10", "--interfaces is \"fe80::/10\": " LINK_LOCAL},
		{"--bind=fe80::1", "--bind is \"fe80::1\": " LINK_LOCAL},
		{"--advertise=0.0.0.0:7",
			"--advertise is \"0.0.0.0:7\": no other host reaches that address"},
		{"--advertise=a..b",
			"--advertise is \"a..b\": between the dots of a host name are 1 "
			"to 63 letters, digits and hyphens, which neither begin nor "
			"end with a hyphen"},
		{"--advertise=192.0.2.1:65536", "a port is from 1 to 65535"},
		{"--interfaces=a.example",
			"--interfaces is \"a.example\", it must be an interface, a network "
			"such as 10.2.0.0/16, or an address, at most 64 of them"},
		{"--bind=here", "--bind is \"here\", it must be a numeric address"},
		{"--name=", "--name is \"\", it must be a name of 1 to 63 bytes"},
		{"--comms-per-user=0", "--comms-per-user is \"0\", it must be a number from 1 to "
				       "4294967295"},
		{"--beat-timeout-ms=3s", "--beat-timeout-ms is \"3s\", it must be a number of "
					 "milliseconds from 1 to 4294967295"},
		{"--idle-exit=4294968",
			"--idle-exit is \"4294968\", it must be a number of seconds "
			"from 0 to 4294967"},
		{"--mem-total=12Q", "--mem-total is \"12Q\", it must be a number of bytes above 0, "
				    "such as 4096, 512M or 3G"},
		{"--hash-type=md5", "--hash-type is \"md5\", it must be simple or crc32c"},
		{"--log-level=loud",
			"--log-level is \"loud\", it must be err, warning, notice, info or "
			"debug"},
		{"--listen-fd=x", "--listen-fd is \"x\", it must be the number of a descriptor"},
	};
	int saved = dup(STDERR_FILENO), log = memfd_create("log", MFD_CLOEXEC);
	struct agentd_options o;

	ck_assert_int_ge(dup2(log, STDERR_FILENO), 0);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		char text[1024] = "";

		cc_log_set_level(CC_LOG_ERR);
		ck_assert_int_eq(ftruncate(log, 0), 0);
		ck_assert_int_eq(lseek(log, 0, SEEK_SET), 0);
		ck_assert_int_eq(PARSE(&o, wrong[i][0]), EX_USAGE);
		ck_assert_int_ge(pread(log, text, sizeof text - 1, 0), 0);
		ck_assert_msg(!!strstr(text, wrong[i][1]), "%s: %s", wrong[i][0], text);
	}
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(log);
}
END_TEST

START_TEST(the_hash_type_is_read)
{
	struct agentd_options o;

	ck_assert_int_eq(PARSE(&o, "--name=x"), 0);
	ck_assert_uint_eq(o.cfg.hash_type, WM_HASH_SIMPLE);
	ck_assert_int_eq(PARSE(&o, "--hash-type=crc32c"), 0);
	ck_assert_uint_eq(o.cfg.hash_type, WM_HASH_CRC32C);
	ck_assert_int_eq(PARSE(&o, "--hash-type", "crc32c", "--hash-type", "simple"), 0);
	ck_assert_uint_eq(o.cfg.hash_type, WM_HASH_SIMPLE);
	ck_assert_int_eq(PARSE(&o, "--hash-type=md5"), EX_USAGE);
}
END_TEST

START_TEST(sizes_may_have_units)
{
	struct agentd_options o;

	ck_assert_int_eq(PARSE(&o, "--mem-total", "3G", "--mem-per-user=4096"), 0);
	ck_assert_uint_eq(o.cfg.mem_total, (uint64_t)3 << 30);
	ck_assert_uint_eq(o.cfg.mem_per_user, 4096);
}
END_TEST

static void write_file(char *path, const char *text)
{
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

START_TEST(a_folder_is_refused_as_a_configuration)
{
	struct agentd_options o;

	ck_assert_int_eq(PARSE(&o, "--config", "/tmp"), EX_NOINPUT);
}
END_TEST

START_TEST(options_override_the_environment_and_the_file)
{
	char path[] = "/tmp/agentio-conf-XXXXXX";
	struct agentd_options o;

	unsetenv("PCCL_ADVERTISE");
	write_file(path, "[agent]\nadvertise = 192.0.2.1\nadvertise = 192.0.2.2\np2p_port = 5000\n"
			 "benchmark_port = 5001\nadvertise_port_benchmark = 5002\n");
	ck_assert_int_eq(PARSE(&o, "--p2p-port", "6000", "--config", path), 0);
	ck_assert_uint_eq(o.cfg.port_p2p, 6000);
	ck_assert_uint_eq(o.cfg.port_benchmark, 5001);
	ck_assert_uint_eq(o.cfg.advertise_port_benchmark, 5002);
	ck_assert_uint_eq(o.cfg.advertise.n, 2);
	setenv("PCCL_ADVERTISE", "192.0.2.3, 2001:db8::1", 1);
	ck_assert_int_eq(PARSE(&o, "--config", path), 0);
	ck_assert_uint_eq(o.cfg.advertise.n, 2);
	ck_assert_uint_eq(o.cfg.advertise.v[0].addr.ip[3], 3);
	ck_assert_uint_eq(o.cfg.advertise.v[1].addr.family, CC_INET6);
	ck_assert_int_eq(PARSE(&o, "--advertise=192.0.2.4", "--config", path), 0);
	ck_assert_uint_eq(o.cfg.advertise.n, 1);
	ck_assert_uint_eq(o.cfg.advertise.v[0].addr.ip[3], 4);
	ck_assert_int_eq(PARSE(&o, "--interfaces=eth1,10.2.0.0/16", "--advertise-port-p2p=7",
				 "--advertise-port-shared-state=8", "--advertise-port-benchmark=9"),
		0);
	ck_assert_uint_eq(o.cfg.interfaces.n, 2);
	ck_assert_int_eq(o.cfg.interfaces.v[0].kind, ADDR_SPEC_INTERFACE);
	ck_assert_int_eq(o.cfg.interfaces.v[1].kind, ADDR_SPEC_NET);
	ck_assert_uint_eq(o.cfg.interfaces.v[1].bits, 16);
	ck_assert_uint_eq(o.cfg.advertise_port_p2p, 7);
	ck_assert_uint_eq(o.cfg.advertise_port_shared_state, 8);
	ck_assert_uint_eq(o.cfg.advertise_port_benchmark, 9);
	ck_assert_int_eq(PARSE(&o, "--advertise=a.b.example,a--1.b"), 0);
	ck_assert_int_eq(PARSE(&o, "--advertise=a-1.example:7,eth0.100"), 0);
	ck_assert_int_eq(o.cfg.advertise.v[0].kind, ADDR_SPEC_NAME);
	ck_assert_str_eq(o.cfg.advertise.v[0].name, "a-1.example");
	ck_assert_uint_eq(o.cfg.advertise.v[0].addr.port, 7);
	ck_assert_int_eq(o.cfg.advertise.v[1].kind, ADDR_SPEC_INTERFACE);
	unsetenv("PCCL_ADVERTISE");
	unlink(path);
}
END_TEST

START_TEST(moved_masters_are_read)
{
	char path[] = "/tmp/agentio-conf-XXXXXX";
	struct agentd_masters m;
	struct agentd_options o;
	char str[CC_ADDR_STR_SIZE];

	write_file(path, "[agent]\nmaster_grace_ms = 1234\nstopped_timeout_ms = 99\n[masters]\n"
			 "192.0.2.1:48148 = 192.0.2.2:5000 ; moved\n"
			 "192.0.2.3:1=\"192.0.2.4:2\"\n"
			 "\"[2001:db8::1]:48148\" = \"[2001:db8::2]:48149\"\n");
	ck_assert_int_eq(PARSE(&o, "--config", path), 0);
	ck_assert_uint_eq(o.cfg.master_lease_ms, 1234);
	ck_assert_uint_eq(o.cfg.stopped_timeout_ms, 99);
	ck_assert_uint_eq(o.cfg.masters.n, 3);
	ck_assert_str_eq(cc_addr_str(&o.cfg.masters.v[0].from, str), "192.0.2.1:48148");
	ck_assert_str_eq(cc_addr_str(&o.cfg.masters.v[0].to, str), "192.0.2.2:5000");
	ck_assert_str_eq(cc_addr_str(&o.cfg.masters.v[1].from, str), "192.0.2.3:1");
	ck_assert_str_eq(cc_addr_str(&o.cfg.masters.v[1].to, str), "192.0.2.4:2");
	ck_assert_str_eq(cc_addr_str(&o.cfg.masters.v[2].from, str), "[2001:db8::1]:48148");
	ck_assert_str_eq(cc_addr_str(&o.cfg.masters.v[2].to, str), "[2001:db8::2]:48149");
	ck_assert_int_eq(agentd_options_read_masters(path, &m), 0);
	ck_assert_uint_eq(m.n, 3);
	unlink(path);
	m.n = 77;
	ck_assert_int_lt(agentd_options_read_masters(path, &m), 0);
	ck_assert_uint_eq(m.n, 77);
}
END_TEST

START_TEST(wrong_masters_are_refused)
{
	static const char *const bad[] = {"192.0.2.1 = 192.0.2.2", "192.0.2.1:1 = 192.0.2.2",
		"192.0.2.1:1", "192.0.2.1:1 = \"[fe80::1]:1\"", "192.0.2.1:1 = ", "= 192.0.2.1:1",
		"192.0.2.1:1 = nonsense:1", "192.0.2.1:1 = 192.0.2.2:1 192.0.2.3:1",
		"[2001:db8::1]:1 = 192.0.2.2:1\n192.0.2.1:1 = 192.0.2.2:1",
		"\"192.0.2.1:1 = 192.0.2.2:1", "192.0.2.1:99999 = 192.0.2.2:1",
		"192.0.2.1:1 = 192.0.2.2:1\n192.0.2.1:1 = 192.0.2.3:1"};
	struct agentd_options o;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		char path[] = "/tmp/agentio-conf-XXXXXX", text[256];
		struct agentd_masters m = {.n = 5};

		snprintf(text, sizeof text, "[masters]\n%s\n", bad[i]);
		write_file(path, text);
		ck_assert_msg(PARSE(&o, "--config", path) == EX_CONFIG, "%s", bad[i]);
		ck_assert_int_lt(agentd_options_read_masters(path, &m), 0);
		ck_assert_uint_eq(m.n, 5);
		unlink(path);
	}
}
END_TEST

START_TEST(wrong_files_are_refused)
{
	static const char *const bad[] = {"[agent]\nno_such_setting = 1\n",
		"[agent]\np2p_port = many\n", "[agent]\nnonsense\n", "[agnet]\np2p_port = 1\n",
		"[master]\nlisten = 192.0.2.1:1\n", "p2p_port = 1\n[agent]\n"};
	struct agentd_masters m;
	struct agentd_options o;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		char path[] = "/tmp/agentio-conf-XXXXXX";

		write_file(path, bad[i]);
		ck_assert_int_eq(PARSE(&o, "--config", path), EX_CONFIG);
		ck_assert_int_lt(agentd_options_read_masters(path, &m), 0);
		unlink(path);
	}
	ck_assert_int_eq(PARSE(&o, "--config", "/nonexistent/file"), EX_NOINPUT);
}
END_TEST

/* Files and the errors that they must cause. Without an error, the settings are applied. */
static const struct mistakes {
	const char *file;
	int code;
	const char *errors[3]; /* each follows the file's name */
	unsigned port;
} mistakes[] = {
	{"[agent]\np2p_port = 5 ; five\n", 0, {NULL}, 5},
	{"[agent]\np2p_port = 5 # five\n", 0, {NULL}, 5},
	{"[agent] # ours\n# p2p_port = 6\n  # 7\np2p_port = 5\t# = 8\n", 0, {NULL}, 5},
	{"[agent]\np2p_port = 5#five\n", EX_CONFIG,
		{", line 2: p2p_port is \"5#five\", it must be"}, 0},
	{"[agent]\np2p_port = x\nname = a\nmaster_lease_ms = 0\nmtu = 1\n", EX_CONFIG,
		{", line 2: p2p_port is \"x\", it must be", ", line 4: master_lease_ms is \"0\"",
			", line 5: there is no setting \"mtu\""},
		0},
	{"\n\n[agent\np2p_port = 5\n", EX_CONFIG,
		{", line 3: \"]\" is missing after the section's name",
			", line 4: p2p_port stands in no section"},
		0},
	{"[agent]\np2p_port\nbind = here\n", EX_CONFIG,
		{", line 2: expected [section] or key = value", ", line 3: bind is \"here\""}, 0},
	{"[agent]\n\n[masters]\n192.0.2.1:1\n", EX_CONFIG, {", line 4: in section [masters], "}, 0},
	{"[masters]\n192.0.2.1:1 = \"[fe80::1]:1\"\n", EX_CONFIG,
		{", line 2: in section [masters], [fe80::1]:1: " LINK_LOCAL}, 0},
	{"\xEF\xBB\xBF[agent]\np2p_port = 5", 0, {NULL}, 5},
};

static void check_mistakes(const struct mistakes *m, const char *path, const char *log)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 3 && m->errors[i]; i++) {
		char wanted[256];

		snprintf(wanted, sizeof wanted, "%s%s", path, m->errors[i]);
		ck_assert_msg(!!strstr(log, wanted), "%s: %s", wanted, log);
		n++;
	}
	for (const char *at = log; (at = strchr(at, '\n')); at++)
		n--;
	ck_assert_msg(n == 0, "%s", log);
}

START_TEST(each_mistake_is_reported_with_its_line)
{
	const struct mistakes *m = &mistakes[_i];
	char path[] = "/tmp/agentio-conf-XXXXXX", text[2048] = "";
	int saved = dup(STDERR_FILENO), log = memfd_create("log", MFD_CLOEXEC);
	struct agentd_options o;

	write_file(path, m->file);
	cc_log_set_level(CC_LOG_ERR);
	ck_assert_int_ge(dup2(log, STDERR_FILENO), 0);
	ck_assert_int_eq(PARSE(&o, "--config", path), m->code);
	dup2(saved, STDERR_FILENO);
	ck_assert_int_ge(pread(log, text, sizeof text - 1, 0), 0);
	close(saved);
	close(log);
	unlink(path);
	check_mistakes(m, path, text);
	if (m->code == 0)
		ck_assert_uint_eq(o.cfg.port_p2p, m->port);
}
END_TEST

START_TEST(a_long_line_is_not_cut)
{
	char path[] = "/tmp/agentio-conf-XXXXXX", text[512];
	struct agentd_options o;

	snprintf(text, sizeof text, "[agent]\nadvertise = %0*d\np2p_port = 5\n", 300, 1);
	write_file(path, text);
	ck_assert_int_eq(PARSE(&o, "--config", path), EX_CONFIG);
	ck_assert_uint_eq(o.cfg.port_p2p, 5);
	ck_assert_uint_eq(o.cfg.advertise.n, 0);
	unlink(path);
}
END_TEST

static void quiet(void)
{
	cc_log_set_level(0);
}

Suite *options_suite(void)
{
	Suite *s = suite_create("options");
	TCase *t = tcase_create("options");

	tcase_add_checked_fixture(t, quiet, NULL);
	tcase_add_test(t, options_have_their_defaults);
	tcase_add_test(t, wrong_values_are_refused);
	tcase_add_test(t, errors_name_the_setting_the_value_and_what_is_allowed);
	tcase_add_test(t, the_hash_type_is_read);
	tcase_add_test(t, sizes_may_have_units);
	tcase_add_test(t, a_folder_is_refused_as_a_configuration);
	tcase_add_test(t, options_override_the_environment_and_the_file);
	tcase_add_test(t, moved_masters_are_read);
	tcase_add_test(t, wrong_masters_are_refused);
	tcase_add_test(t, wrong_files_are_refused);
	tcase_add_loop_test(t, each_mistake_is_reported_with_its_line, 0,
		(int)(sizeof mistakes / sizeof mistakes[0]));
	tcase_add_test(t, a_long_line_is_not_cut);
	suite_add_tcase(s, t);
	return s;
}
