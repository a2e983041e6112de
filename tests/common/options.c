/* SPDX-License-Identifier: MIT
 *
 * Tests tables of options: the sources of values, refusals, and the output of --help.
 */
#include <check.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"
#include "common/cc_log.h"
#include "common/cc_options.h"
#include "tests/common/suites.h"
#include "tests/common/testlib.h"

struct fields {
	bool quiet;
	uint32_t wait_ms, count, colour;
	uint16_t port;
	uint64_t size;
	int fd;
	char name[8];
	char *file;
	unsigned n_hosts;
	char hosts[4][8];
};

static bool set_hosts(
	void *base, const struct cc_opt *opt, const char *value, struct cc_opt_refusal *ret)
{
	struct fields *f = base;

	ck_assert_str_eq(opt->name, "host");
	if (!value)
		f->n_hosts = 0;
	else if (strcmp(value, "none") == 0)
		ret->why = "that is no host";
	else if (f->n_hosts == 4 || strlen(value) >= sizeof f->hosts[0])
		return false;
	else
		strcpy(f->hosts[f->n_hosts++], value);
	return !ret->why;
}

static const char *const colours[] = {"red", "green", "blue", NULL};

#define AT(field) CC_OPT_AT(struct fields, field)

static const struct cc_opt opts[] = {
	{"quiet", NULL, "say nothing", CC_OPT_FLAG, AT(quiet), .letter = 'q'},
	{"wait", "SECONDS", "how long to wait", CC_OPT_SECONDS, AT(wait_ms), {500, 60000, 2500},
		.key = true},
	{"port", "PORT", "port to use", CC_OPT_PORT, AT(port), {1, 65535, 77}, .key = true,
		.was = "door-number"},
	{"count", "N", "how many", CC_OPT_COUNT, AT(count), {1, 9, 5}, .unset = true, .key = true},
	{"colour", "COLOUR", "colour of the light", CC_OPT_WORD, AT(colour), {10, 12, 11},
		.words = colours},
	{"size", "BYTES", "total size of all files in this folder and in all its subfolders",
		CC_OPT_BYTES, AT(size), {4096, 1 << 30, 65536}, .letter = 's', .key = true},
	{"in-fd", "N", "a descriptor", CC_OPT_FD, AT(fd)},
	{"name", "NAME", "name of this host for other hosts", CC_OPT_NAME, AT(name),
		.usual = "the name of the host, which may be long"},
	{"a-file-with-a-very-long-name", "FILE", "file to read", CC_OPT_PATH, AT(file)},
	{"host", "HOST", "a host", CC_OPT_SET, AT(hosts), .set = set_hosts, .key = true,
		.list = true, .env = "TEST_OPTIONS_HOST", .wanted = "up to 4 hosts",
		.was = "machine"},
};

static const struct cc_options table = {
	.program = "test",
	.about = "Usage: test [OPTION]...\n",
	.section = "test",
	.opt = opts,
	.n = sizeof opts / sizeof opts[0],
};

static struct fields f;
static struct cc_options_run run;
static char said[4 * CC_OPTIONS_SENTENCE];
static unsigned warnings;

static void say(void *arg, int level, const char *sentence)
{
	ck_assert_ptr_eq(arg, &f);
	warnings += level == CC_LOG_WARNING;
	strcat(said, sentence);
	strcat(said, "\n");
}

static void begin(void)
{
	unsetenv("TEST_OPTIONS_HOST");
	cc_options_clear(&table, &f);
	memset(&f, 0, sizeof f);
	cc_options_defaults(&table, &f);
	run = (struct cc_options_run){.options = &table, .base = &f, .say = say, .arg = &f};
	said[0] = '\0';
	warnings = 0;
}

static void end(void)
{
	cc_options_clear(&table, &f);
}

/* Reads a command line. Single blanks separate its words. */
static int command_line(const char *words)
{
	static char copy[300];
	char *argv[32] = {(char *)(uintptr_t) "test"}, *save;
	enum cc_options_todo todo = CC_OPTIONS_GO_ON;
	int n = 1, first, err;

	snprintf(copy, sizeof copy, "%s", words);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	err = cc_options_command_line(&run, n, argv, &todo, &first);
	return err ? err : (int)todo;
}

START_TEST(sizes_with_units_are_parsed)
{
	static const struct {
		const char *text;
		uint64_t want; /* 0: refused */
	} cases[] = {
		{"1", 1},
		{"4", 4},
		{"64K", 65536},
		{"1M", 1 << 20},
		{"3G", (uint64_t)3 << 30},
		{"1T", (uint64_t)1 << 40},
		{"1024G", (uint64_t)1 << 40},
		{"1099511627776", (uint64_t)1 << 40},
		{"1099511627777", 0},
		{"1025G", 0},
		{"2T", 0},
		{"0", 0},
		{"0K", 0},
		{"", 0},
		{"K", 0},
		{"4k", 0},
		{"4KB", 0},
		{"-4", 0},
		{"+4", 0},
		{" 4", 0},
		{"4 ", 0},
		{"1.5M", 0},
		{"0x10", 0},
		{"99999999999999999999999", 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint64_t got = 77;
		bool ok = cc_opt_bytes(cases[i].text, 1, (uint64_t)1 << 40, &got);

		ck_assert_msg(ok == (cases[i].want != 0), "%s", cases[i].text);
		ck_assert_uint_eq(got, cases[i].want ? cases[i].want : 77);
	}
}
END_TEST

START_TEST(missing_options_have_their_defaults)
{
	ck_assert_uint_eq(f.wait_ms, 2500);
	ck_assert_uint_eq(f.port, 77);
	ck_assert_uint_eq(f.count, 0);
	ck_assert_uint_eq(f.colour, 11);
	ck_assert_uint_eq(f.size, 65536);
	ck_assert_int_eq(f.fd, -1);
	ck_assert(!f.quiet && !f.file && !f.name[0]);
}
END_TEST

START_TEST(options_of_all_kinds_are_stored)
{
	ck_assert_int_eq(command_line("-q --wait 0.5 --port=1 --count 9 --colour blue -s 1M "
				      "--in-fd 3 --name seven77 --a-file /x --host a --host b"),
		0);
	ck_assert(f.quiet && f.wait_ms == 500 && f.port == 1 && f.count == 9 && f.colour == 12);
	ck_assert(f.size == 1 << 20 && f.fd == 3 && f.n_hosts == 2);
	ck_assert_str_eq(f.name, "seven77");
	ck_assert_str_eq(f.file, "/x");
	ck_assert_str_eq(said, "");
	ck_assert(cc_options_given(&run, "port") && cc_options_given(&run, "quiet"));
	begin();
	ck_assert_int_eq(command_line(""), 0);
	ck_assert(!cc_options_given(&run, "port"));
	ck_assert_int_eq(command_line("--help --nonsense"), CC_OPTIONS_HELP);
	ck_assert_int_eq(command_line("-q --version"), CC_OPTIONS_VERSION);
}
END_TEST

/* A refusal names the option, the value and the allowed values. */
static const struct {
	const char *words, *said;
} refused[] = {
	{"--port 65536", "--port is \"65536\", it must be a port from 1 to 65535\n"},
	{"--count 0", "--count is \"0\", it must be a number from 1 to 9\n"},
	{"--count -1", "--count is \"-1\", it must be a number from 1 to 9\n"},
	{"--wait 0.49", "--wait is \"0.49\", it must be a number of seconds from 0.5 to 60\n"},
	{"--wait 1e1", "--wait is \"1e1\", it must be a number of seconds from 0.5 to 60\n"},
	{"-s 4095", "--size is \"4095\", it must be a number of bytes from 4K to 1G, with K, M, G "
		    "or T\n"},
	{"--colour pink", "--colour is \"pink\", it must be red, green or blue\n"},
	{"--in-fd x", "--in-fd is \"x\", it must be the number of a descriptor\n"},
	{"--name eight888", "--name is \"eight888\", it must be a name of 1 to 7 bytes\n"},
	{"--a-file-with-a-very-long-name=",
		"--a-file-with-a-very-long-name is \"\", it must be a path\n"},
	{"--host none", "--host is \"none\": that is no host\n"},
	{"--host 1 --host 2 --host 3 --host 4 --host 5",
		"--host is \"5\", it must be up to 4 hosts\n"},
	{"--port", "--port needs a value\n"},
	{"-s", "-s needs a value\n"},
	{"--quiet=1", "--quiet takes no value\n"},
	{"--nonsense", "there is no option --nonsense\n"},
	{"-x", "there is no option -x\n"},
	{"--co 1", "--co is short for several options\n"},
	{"stray", "unexpected argument \"stray\"\n"},
};

START_TEST(wrong_options_are_refused_with_a_reason)
{
	ck_assert_int_eq(command_line(refused[_i].words), CC_ERR_INVAL);
	ck_assert_str_eq(said, refused[_i].said);
}
END_TEST

START_TEST(keys_of_the_file_are_stored_or_refused)
{
	cc_options_file(&run);
	ck_assert_int_eq(cc_options_key(&run, "port", "9", "F, line 1"), 0);
	ck_assert_uint_eq(f.port, 9);
	ck_assert_int_eq(cc_options_key(&run, "port", "x", "F, line 2"), CC_ERR_INVAL);
	ck_assert_int_eq(cc_options_key(&run, "quiet", "1", "F, line 3"), CC_ERR_INVAL);
	ck_assert_int_eq(cc_options_key(&run, "in-fd", "1", "F, line 4"), CC_ERR_INVAL);
	ck_assert_str_eq(said, "F, line 2: port is \"x\", it must be a port from 1 to 65535\n"
			       "F, line 3: there is no setting \"quiet\"\n"
			       "F, line 4: there is no setting \"in-fd\"\n");
}
END_TEST

/* Reads all sources of values in the order in which the daemons read them. */
static int all_sources(const char *words, const char *host_of_file)
{
	if (command_line(words) < 0)
		return CC_ERR_INVAL;
	cc_options_file(&run);
	for (int i = 0; i < 2 && host_of_file; i++)
		ck_assert_int_eq(cc_options_key(&run, "host", host_of_file, "F, line 1"), 0);
	if (cc_options_key(&run, "port", "5", "F, line 2") < 0 || cc_options_environment(&run) < 0)
		return CC_ERR_INVAL;
	return command_line(words);
}

START_TEST(the_command_line_wins_over_environment_and_file)
{
	ck_assert_int_eq(all_sources("", "file"), 0);
	ck_assert(f.port == 5 && f.n_hosts == 2);
	ck_assert_str_eq(f.hosts[1], "file");
	begin();
	setenv("TEST_OPTIONS_HOST", "env", 1);
	ck_assert_int_eq(all_sources("--port 6", "file"), 0);
	ck_assert(f.port == 6 && f.n_hosts == 1);
	ck_assert_str_eq(f.hosts[0], "env");
	begin();
	setenv("TEST_OPTIONS_HOST", "none", 1);
	ck_assert_int_eq(all_sources("--host x --host y --host z", "file"), 0);
	ck_assert_uint_eq(f.n_hosts, 3);
	ck_assert_str_eq(f.hosts[0], "x");
	ck_assert_str_eq(said, "");
	begin();
	setenv("TEST_OPTIONS_HOST", "none", 1);
	ck_assert_int_eq(all_sources("", NULL), CC_ERR_INVAL);
	ck_assert_str_eq(said, "TEST_OPTIONS_HOST is \"none\": that is no host\n");
}
END_TEST

START_TEST(an_old_name_works_with_one_warning)
{
	ck_assert_int_eq(command_line("--door-number 3 --door-number=4"), 0);
	ck_assert_uint_eq(f.port, 4);
	ck_assert_str_eq(said, "--door-number is now called --port; the old name still works\n");
	ck_assert_uint_eq(warnings, 1);
	cc_options_file(&run);
	ck_assert_int_eq(cc_options_key(&run, "machine", "a", "F, line 1"), 0);
	ck_assert_int_eq(cc_options_key(&run, "door_number", "5", "F, line 2"), 0);
	ck_assert_str_eq(f.hosts[0], "a");
	ck_assert_uint_eq(f.port, 5);
	ck_assert_uint_eq(warnings, 2);
	ck_assert_ptr_nonnull(strstr(
		said, "\nF, line 1: machine is now called host; the old name still works\n"));
	begin();
	ck_assert_int_eq(command_line("--door-number 0"), CC_ERR_INVAL);
	ck_assert_ptr_nonnull(strstr(said, "\n--door-number is \"0\", it must be a port from "));
}
END_TEST

START_TEST(help_shows_the_table)
{
	static const char want[] =
		"Usage: test [OPTION]...\n"
		"\n"
		"  -q, --quiet          say nothing\n"
		"      --colour COLOUR  colour of the light [green]\n"
		"      --in-fd N        a descriptor\n"
		"      --name NAME      name of this host for other hosts\n"
		"                       [the name of the host, which may be long]\n"
		"      --a-file-with-a-very-long-name FILE\n"
		"                       file to read\n"
		"      --help, --version\n"
		"\n"
		"Settings, also in section [test] of the file, with _ instead of -:\n"
		"      --wait SECONDS   how long to wait [2.5]\n"
		"      --port PORT      port to use [77]\n"
		"      --count N        how many [5]\n"
		"  -s, --size BYTES     total size of all files in this folder and in all its\n"
		"                       subfolders [64K]\n"
		"      --host HOST      a host\n";
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	ck_assert_int_eq(cc_options_print(&table, CC_OPTIONS_HELP, out), 0);
	ck_assert_str_eq(text, want);
	rewind(out);
	ck_assert_int_eq(cc_options_print(&table, CC_OPTIONS_VERSION, out), 0);
	fclose(out);
	ck_assert_str_eq(text, "test " PACKAGE_VERSION "\n");
	free(text);
}
END_TEST

Suite *options_suite(void)
{
	Suite *s = suite_create("options");
	TCase *t = tcase_create("options");

	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, sizes_with_units_are_parsed);
	tcase_add_test(t, missing_options_have_their_defaults);
	tcase_add_test(t, options_of_all_kinds_are_stored);
	tcase_add_loop_test(t, wrong_options_are_refused_with_a_reason, 0,
		(int)(sizeof refused / sizeof refused[0]));
	tcase_add_test(t, keys_of_the_file_are_stored_or_refused);
	tcase_add_test(t, the_command_line_wins_over_environment_and_file);
	tcase_add_test(t, an_old_name_works_with_one_warning);
	tcase_add_test(t, help_shows_the_table);
	suite_add_tcase(s, t);
	return s;
}
