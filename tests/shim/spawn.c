/* SPDX-License-Identifier: MIT
 *
 * Private agents: the search for them, and their start, also by several processes at once. The
 * agent is tests/shim/standin_agentd.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/shim/fixture.h"
#include "tests/shim/suites.h"

static char starts[96], leash[96], private_dir[96];
static int leash_fd;

static void set_standin(void)
{
	const char *top = getenv("abs_top_builddir");
	char path[512];

	snprintf(path, sizeof path, "%s/tests/shim/standin_agentd", top ? top : ".");
	setenv("PCCL_AGENTD", path, 1);
}

static void setup(void)
{
	fx_make_dir();
	snprintf(starts, sizeof starts, "%s/starts", fx_dir);
	snprintf(leash, sizeof leash, "%s/leash", fx_dir);
	snprintf(private_dir, sizeof private_dir, "%s/pccl", fx_dir);
	ck_assert_int_eq(mkfifo(leash, 0600), 0);
	leash_fd = open(leash, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(leash_fd, 0);
	setenv("XDG_STANDIN_STARTS", starts, 1);
	setenv("XDG_STANDIN_LEASH", leash, 1);
	setenv("XDG_RUNTIME_DIR", fx_dir, 1);
	unsetenv("PCCL_AGENT_SOCKET");
	unsetenv("PCCL_AGENT_AUTOSPAWN");
	set_standin();
	fx_assert_succeeds(pcclInit());
}

static void teardown(void)
{
	close(leash_fd);
	fx_remove_dir();
}

static void read_file(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "r");

	buf[0] = '\0';
	if (!f)
		return;
	buf[fread(buf, 1, size - 1, f)] = '\0';
	fclose(f);
}

START_TEST(an_agent_is_started_once_and_found_again)
{
	char text[1024], expected[512], path[128];
	struct stat st;
	/* not close-on-exec, but must not leak to the agent */
	int stray = open("/dev/null", O_RDWR);
	int status;
	pid_t pid;
	void *p;

	ck_assert_int_ge(stray, 3);
	fx_assert_succeeds(pcclMemAlloc(1, &p));
	fx_assert_succeeds(pcclMemFree(p));
	snprintf(expected, sizeof expected,
		"--private --listen-fd 3 --socket %s/agent.sock fds 0 1 2 3\n", private_dir);
	read_file(starts, text, sizeof text);
	ck_assert_str_eq(text, expected);
	ck_assert_int_eq(stat(private_dir, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0700);
	snprintf(path, sizeof path, "%s/agent.log", private_dir);
	read_file(path, text, sizeof text);
	ck_assert_str_eq(text, "stand-in agent started\n");
	/* No child process is left. */
	ck_assert_int_lt(waitpid(-1, &status, WNOHANG), 0);
	pid = fork();
	if (pid == 0) {
		pcclInit();
		_exit(pcclMemAlloc(1, &p) == pcclSuccess ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	read_file(starts, text, sizeof text);
	ck_assert_str_eq(text, expected);
	close(stray);
}
END_TEST

/* A program that has closed its standard descriptors may still write to them, so no other file may
 * get their numbers. */
START_TEST(the_standard_descriptors_stay_free)
{
	void *p;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		bool good;

		for (int fd = 0; fd <= STDERR_FILENO; fd++)
			close(fd);
		pcclInit();
		good = pcclMemAlloc(1, &p) == pcclSuccess;
		for (int fd = 0; fd <= STDERR_FILENO; fd++)
			good = good && fcntl(fd, F_GETFD) < 0;
		_exit(good ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

static unsigned count_starts(void)
{
	char text[1024];
	unsigned n = 0;

	read_file(starts, text, sizeof text);
	for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
		n++;
	return n;
}

/* A connected communicator needs the next agent at once. The library starts it without a call of
 * the application. */
START_TEST(an_agent_that_dies_is_started_again)
{
	pcclComm_t *c = fx_new_comm();

	fx_assert_succeeds(pcclConnect(c));
	for (unsigned i = 1; i < 4; i++) {
		ck_assert_uint_eq(count_starts(), i);
		ck_assert_int_eq(write(leash_fd, "x", 1), 1);
		while (count_starts() == i)
			sched_yield();
		fx_assert_succeeds(pcclUpdateTopology(c));
	}
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

/* Several processes start at the same moment. There is one agent, and all are connected to it. */
START_TEST(processes_that_start_at_once_share_one_agent)
{
	enum { N = 8 };
	int gate[2], status;
	char text[1024];
	pid_t pid[N];
	void *p;
	char c;

	ck_assert_int_eq(pipe(gate), 0);
	for (int i = 0; i < N; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			close(gate[1]);
			(void)!read(gate[0], &c, 1);
			pcclInit();
			_exit(pcclMemAlloc(1, &p) == pcclSuccess ? 0 : 1);
		}
	}
	close(gate[0]);
	close(gate[1]);
	for (int i = 0; i < N; i++) {
		ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
		ck_assert_int_eq(status, 0);
	}
	read_file(starts, text, sizeof text);
	ck_assert_ptr_nonnull(strchr(text, '\n'));
	ck_assert_str_eq(strchr(text, '\n'), "\n");
}
END_TEST

/* The socket of an agent that is gone is replaced. */
START_TEST(a_stale_socket_is_replaced)
{
	char path[128];
	void *p;

	ck_assert_int_eq(mkdir(private_dir, 0700), 0);
	snprintf(path, sizeof path, "%s/agent.sock", private_dir);
	fx_agent = fake_start(path);
	fake_stop(fx_agent);
	ck_assert_int_eq(access(path, F_OK), 0);
	fx_assert_succeeds(pcclMemAlloc(1, &p));
}
END_TEST

START_TEST(a_long_log_is_emptied)
{
	char path[128], text[64];
	void *p;
	int fd;

	ck_assert_int_eq(mkdir(private_dir, 0700), 0);
	snprintf(path, sizeof path, "%s/agent.log", private_dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, ((off_t)1 << 20) + 1), 0);
	close(fd);
	fx_assert_succeeds(pcclMemAlloc(1, &p));
	read_file(path, text, sizeof text);
	ck_assert_str_eq(text, "stand-in agent started\n");
}
END_TEST

/* PCCL_LOG_LEVEL has the names of PCCL 1.0. master.c tests the other names. */
START_TEST(the_log_level_is_passed_to_the_private_agent)
{
	static const char *const levels[][2] = {{"DEBUG", " --log-level debug"},
		{"WARN", " --log-level warning"}, {"FATAL", " --log-level err"}, {"", ""}};
	char text[512], expected[256];
	void *p;

	setenv("PCCL_LOG_LEVEL", levels[_i][0], 1);
	fx_assert_succeeds(pcclMemAlloc(1, &p));
	fx_assert_succeeds(pcclMemFree(p));
	unsetenv("PCCL_LOG_LEVEL");
	snprintf(expected, sizeof expected,
		"--private --listen-fd 3 --socket %s/agent.sock%s fds 0 1 2 3\n", private_dir,
		levels[_i][1]);
	read_file(starts, text, sizeof text);
	ck_assert_str_eq(text, expected);
}
END_TEST

START_TEST(spawning_can_be_forbidden)
{
	char text[1024];
	void *p;

	setenv("PCCL_AGENT_AUTOSPAWN", "0", 1);
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable, "PCCL_AGENT_AUTOSPAWN=0");
	read_file(starts, text, sizeof text);
	ck_assert_str_eq(text, "");
	setenv("PCCL_AGENT_AUTOSPAWN", "no", 1);
	fx_assert_fails(pcclMemAlloc(1, &p), pcclInvalidUsage,
		"PCCL_AGENT_AUTOSPAWN is \"no\", it must be 0 or 1");
	read_file(starts, text, sizeof text);
	ck_assert_str_eq(text, "");
	setenv("PCCL_AGENT_AUTOSPAWN", "1", 1);
	fx_assert_succeeds(pcclMemAlloc(1, &p));
}
END_TEST

START_TEST(a_named_socket_starts_nothing)
{
	char text[1024];
	void *p;

	setenv("PCCL_AGENT_SOCKET", fx_socket, 1);
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable, fx_socket);
	read_file(starts, text, sizeof text);
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(an_agent_that_does_not_start_is_reported)
{
	char path[128];
	void *p;

	setenv("PCCL_AGENTD", "/bin/false", 1);
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable, "status 1 before it was ready");
	ck_assert_ptr_nonnull(strstr(pcclGetLastError(), "agent.log"));
	setenv("PCCL_AGENTD", "/nonexistent/pcclagentd", 1);
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable, "/nonexistent/pcclagentd");
	setenv("PCCL_AGENTD", fx_dir, 1);
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable,
		"Is a directory; install pcclagentd, or set PCCL_AGENTD");
	/* This program ends at once, with success. */
	setenv("PCCL_AGENTD", "/bin/true", 1);
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable,
		"/bin/true ended with status 0 before it was ready");
	ck_assert_ptr_nonnull(
		strstr(pcclGetLastError(), "set PCCL_AGENTD to the path of pcclagentd"));
	snprintf(path, sizeof path, "%s/agent.sock", private_dir);
	set_standin();
	fx_assert_succeeds(pcclMemAlloc(1, &p));
}
END_TEST

static void set_script_of(const char *interpreter, const char *body)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof path, "%s/script", fx_dir);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file, "#!%s\n%s\n", interpreter, body);
	ck_assert_int_eq(fchmod(fileno(file), 0700), 0);
	ck_assert_int_eq(fclose(file), 0);
	setenv("PCCL_AGENTD", path, 1);
}

static void set_script(const char *body)
{
	set_script_of("/bin/sh", body);
}

/* This is as in a container without devices. The test changes only a mount namespace of its own. */
START_TEST(missing_files_other_than_the_program_are_named)
{
	void *p;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return;
	set_script_of("/nonexistent/interpreter", "exit 0");
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable,
		"script cannot be started: the interpreter or loader that it names");
	set_standin();
	ck_assert_int_eq(mount("none", "/dev", "tmpfs", 0, NULL), 0);
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable,
		"standin_agentd cannot be started: cannot open /dev/null: No such file");
	ck_assert_int_eq(umount("/dev"), 0);
	fx_assert_succeeds(pcclMemAlloc(1, &p));
}
END_TEST

static void set_limit(int resource, rlim_t most)
{
	const struct rlimit rl = {most, most};

	ck_assert_int_eq(setrlimit((__rlimit_resource_t)resource, &rl), 0);
}

/* The agent's log says what it lacks. Lines that other agents have left there do not count. */
START_TEST(a_limit_that_an_agent_reports_is_returned)
{
	const char *text;
	void *p;

	set_script("echo 'err: of another agent' >&2; exit 1");
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable,
		"status 1 before it was ready (err: of another agent)");
	set_script("echo '2026-01-01 12:00:00.000 pcclagentd[7]: info: ports' >&2; "
		   "echo '2026-01-01 12:00:00.000 pcclagentd[7]: err: Too many: LIMIT of "
		   "pcclagentd (pid 7) on host a is 9' >&2; exit 71");
	fx_assert_fails(pcclMemAlloc(1, &p), pcclOutOfMemory,
		"the private agent has ended: Too many: LIMIT of pcclagentd (pid 7) on host a is "
		"9");
	set_script("exit 71");
	fx_assert_fails(pcclMemAlloc(1, &p), pcclOutOfMemory, "status 71");
	text = pcclGetLastError();
	ck_assert_ptr_nonnull(strstr(text, "agent.log"));
	ck_assert_ptr_null(strstr(text, "another agent"));
}
END_TEST

/* The next agent cannot start. Calls report why no agent replaces the dead one. */
START_TEST(a_limit_of_the_next_agent_is_returned_by_calls)
{
	pcclResult_t r;
	pcclComm_t *c;

	setenv("PCCL_AGENT_LEASE_MS", "200", 1);
	fx_assert_succeeds(pcclInit());
	setenv("XDG_STANDIN", getenv("PCCL_AGENTD"), 1);
	set_script("test -e \"$XDG_STANDIN_STARTS\" && exit 71; exec \"$XDG_STANDIN\" \"$@\"");
	c = fx_new_comm();
	fx_assert_succeeds(pcclConnect(c));
	ck_assert_int_eq(write(leash_fd, "x", 1), 1);
	do
		r = pcclUpdateTopology(c);
	while (r == pcclSuccess);
	fx_assert_fails(r, pcclOutOfMemory, "status 71");
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

/* The agent dies too early to report a limit, so the error names a low limit of this process. */
START_TEST(an_early_death_of_an_agent_is_explained_by_limits)
{
	static const char *const ends[] = {"echo 'libc.so.6: cannot map' >&2; exit 127",
		"kill -SEGV $$", "exit 139", "exit 70"};
	char expected[96];
	void *p;

	set_script(ends[_i]);
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable, "before it was ready");
	set_limit(RLIMIT_STACK, 512 << 10);
	fx_assert_fails(pcclMemAlloc(1, &p), pcclOutOfMemory, "before it was ready");
	snprintf(expected, sizeof expected, "(RLIMIT_STACK) of %s (pid %d) on host ",
		program_invocation_short_name, (int)getpid());
	ck_assert_msg(strstr(pcclGetLastError(), expected), "%s", pcclGetLastError());
	ck_assert_msg(_i > 0 || strstr(pcclGetLastError(), "cannot map"), "%s", pcclGetLastError());
	set_script("exit 69"); /* the agent ended for a reason of its own */
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable, "status 69");
}
END_TEST

START_TEST(folders_that_others_could_use_are_refused)
{
	char elsewhere[128];
	void *p;

	ck_assert_int_eq(mkdir(private_dir, 0755), 0);
	ck_assert_int_eq(chmod(private_dir, 0755), 0);
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable, private_dir);
	ck_assert_ptr_nonnull(strstr(pcclGetLastError(), "0700"));
	ck_assert_int_eq(rmdir(private_dir), 0);
	snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", fx_dir);
	ck_assert_int_eq(mkdir(elsewhere, 0700), 0);
	ck_assert_int_eq(symlink(elsewhere, private_dir), 0);
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable, "symbolic link");
	ck_assert_int_eq(unlink(private_dir), 0);
	if (geteuid() == 0) {
		ck_assert_int_eq(mkdir(private_dir, 0700), 0);
		ck_assert_int_eq(chown(private_dir, 12345, 12345), 0);
		fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable, "another user");
		ck_assert_int_eq(rmdir(private_dir), 0);
	}
	fx_assert_succeeds(pcclMemAlloc(1, &p));
}
END_TEST

/* Without a runtime folder of this user, the temporary folder is used. */
START_TEST(the_temporary_folder_is_used_without_a_runtime_folder)
{
	char expected[128];
	void *p;

	setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
	setenv("TMPDIR", "/nonexistent", 1);
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable, "set XDG_RUNTIME_DIR");
	setenv("TMPDIR", fx_dir, 1);
	fx_assert_succeeds(pcclMemAlloc(1, &p));
	snprintf(expected, sizeof expected, "%s/pccl-%u/agent.sock", fx_dir, (unsigned)geteuid());
	ck_assert_int_eq(access(expected, F_OK), 0);
}
END_TEST

/* The folder belongs to another user: a hostile user, or one with the same uid in another user
 * namespace. */
START_TEST(a_folder_of_another_user_is_avoided)
{
	char theirs[128], ours[160];
	void *p;

	if (geteuid() != 0)
		return;
	setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
	setenv("TMPDIR", fx_dir, 1);
	snprintf(theirs, sizeof theirs, "%s/pccl-0", fx_dir);
	ck_assert_int_eq(mkdir(theirs, 0700), 0);
	ck_assert_int_eq(chown(theirs, 12345, 12345), 0);
	fx_assert_succeeds(pcclMemAlloc(1, &p));
	snprintf(ours, sizeof ours, "%s-1/agent.sock", theirs);
	ck_assert_int_eq(access(ours, F_OK), 0);
}
END_TEST

Suite *spawn_suite(void)
{
	Suite *s;
	TCase *tc;

	/* If the system has an agent, no private agent is ever started. */
	if (access(PCCL_RUNDIR "/agent.sock", F_OK) == 0)
		return NULL;
	s = suite_create("spawn");
	tc = tcase_create("spawn");
	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, an_agent_is_started_once_and_found_again);
	tcase_add_test(tc, the_standard_descriptors_stay_free);
	tcase_add_test(tc, an_agent_that_dies_is_started_again);
	tcase_add_test(tc, processes_that_start_at_once_share_one_agent);
	tcase_add_test(tc, a_stale_socket_is_replaced);
	tcase_add_test(tc, a_long_log_is_emptied);
	tcase_add_loop_test(tc, the_log_level_is_passed_to_the_private_agent, 0, 4);
	tcase_add_test(tc, spawning_can_be_forbidden);
	tcase_add_test(tc, a_named_socket_starts_nothing);
	tcase_add_test(tc, an_agent_that_does_not_start_is_reported);
	tcase_add_test(tc, missing_files_other_than_the_program_are_named);
	tcase_add_test(tc, a_limit_that_an_agent_reports_is_returned);
	tcase_add_test(tc, a_limit_of_the_next_agent_is_returned_by_calls);
	tcase_add_loop_test(tc, an_early_death_of_an_agent_is_explained_by_limits, 0, 4);
	tcase_add_test(tc, folders_that_others_could_use_are_refused);
	tcase_add_test(tc, the_temporary_folder_is_used_without_a_runtime_folder);
	tcase_add_test(tc, a_folder_of_another_user_is_avoided);
	suite_add_tcase(s, tc);
	return s;
}
