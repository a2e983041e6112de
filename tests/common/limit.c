/* SPDX-License-Identifier: MIT
 *
 * Tests that texts name the limit that is reached. Some tests use folders that look like those of
 * the system. Other tests use processes that have reached a limit.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cc_limit.h"
#include "tests/common/fakeroot.h"
#include "tests/common/suites.h"
#include "tests/common/testlib.h"

#define MIB             ((uint64_t)1 << 20)
#define NOBODY          54321u /* a user without processes */
#define THREADS_ALLOWED 3u

/* Makes files in which no limit is reached. */
static void put_system(void)
{
	fake_root_put("/proc/self/cgroup", "4:memory:/job\n3:pids:/\n0::/job/one\n");
	fake_root_put(
		"/proc/self/status", "Name:\ttest\nVmSize:\t 200000 kB\nVmData:\t 100000 kB\n");
	fake_root_put("/proc/self/uid_map", "         0       1000          1\n");
	fake_root_put("/proc/self/maps", "a\nb\nc\n");
	fake_root_put("/proc/loadavg", "0.10 0.20 0.30 1/1000 4242\n");
	fake_root_put("/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\n"
				       "SwapTotal: 0 kB\nSwapFree: 0 kB\n"
				       "CommitLimit: 4000000 kB\nCommitted_AS: 3999000 kB\n");
	fake_root_put("/proc/sys/kernel/threads-max", "50000\n");
	fake_root_put("/proc/sys/kernel/pid_max", "32768\n");
	fake_root_put("/proc/sys/vm/max_map_count", "65530\n");
	fake_root_put("/proc/sys/vm/overcommit_memory", "0\n");
	fake_root_put("/proc/sys/fs/file-nr", "1000\t0\t100000\n");
	fake_root_put("/proc/sys/fs/epoll/max_user_watches", "777\n");
	fake_root_put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
	fake_root_put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "536870912\n");
	fake_root_put("/sys/fs/cgroup/pids/pids.max", "max\n");
	fake_root_put("/sys/fs/cgroup/pids/pids.current", "1000\n");
	fake_root_put("/sys/fs/cgroup/job/one/pids.max", "100\n");
	fake_root_put("/sys/fs/cgroup/job/one/pids.current", "50\n");
	fake_root_put("/sys/fs/cgroup/job/memory.max", "1073741824\n");
	fake_root_put("/sys/fs/cgroup/job/memory.current", "536870912\n");
}

static void setup(void)
{
	fake_root_setup();
	put_system();
}

static const char *text(int error, uint64_t asked)
{
	static char buf[CC_LIMIT_TEXT];

	return cc_limit_text_below(fake_root, NULL, error, asked, buf, sizeof buf);
}

static void expect(int error, uint64_t asked, const char *what, const char *is)
{
	const char *t = text(error, asked);
	char end[64];

	snprintf(end, sizeof end, " is %s", is);
	ck_assert_msg(strstr(t, what) && strstr(t, "pid ") && strstr(t, "on host ") &&
			      strcmp(t + strlen(t) - strlen(end), end) == 0,
		"%s, not of %s", t, what);
}

static void expect_none(int error, uint64_t asked)
{
	const char *t = text(error, asked);

	ck_assert_msg(strstr(t, strerror(error)) && strstr(t, "no limit of") && strstr(t, "pid ") &&
			      strstr(t, "on host ") && t[strlen(t) - 1] == ')',
		"%s", t);
}

START_TEST(limits_that_are_not_reached_are_not_named)
{
	static const int errors[] = {EAGAIN, ENOMEM, ENFILE};

	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
		expect_none(errors[i], 0);
	ck_assert_str_eq(text(ECONNREFUSED, 0), "Connection refused");
}
END_TEST

START_TEST(no_limit_is_named_if_no_file_can_be_read)
{
	fake_root_teardown();
	fake_root_setup();
	expect_none(EAGAIN, 0);
	expect_none(ENOMEM, MIB);
	expect_none(ENOSPC, 0);
}
END_TEST

START_TEST(reached_limit_of_threads_is_named)
{
	fake_root_put("/sys/fs/cgroup/job/one/pids.current", "99\n");
	expect(EAGAIN, 0, "pids.max of cgroup /sys/fs/cgroup/job/one", "100");
	/* The limit with the least room is named. */
	fake_root_put("/proc/sys/kernel/threads-max", "1000\n");
	expect(EAGAIN, 0, "threads-max", "1000");
	fake_root_put("/sys/fs/cgroup/job/one/pids.current", "20\n");
	fake_root_put("/proc/sys/kernel/threads-max", "50000\n");
	fake_root_put("/proc/sys/kernel/pid_max", "1301\n");
	expect(EAGAIN, 0, "pid_max", "1301");
	fake_root_put("/proc/sys/kernel/pid_max", "32768\n");
	fake_root_put("/sys/fs/cgroup/pids/pids.max", "1002\n");
	expect(EAGAIN, 0, "pids.max of cgroup /sys/fs/cgroup/pids", "1002");
	fake_root_put("/sys/fs/cgroup/pids/pids.max", "1010\n");
	expect_none(EAGAIN, 0);
	/* The stack of a thread needs memory. */
	fake_root_put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1073000000\n");
	expect(EAGAIN, 0, "memory.limit_in_bytes of cgroup /sys/fs/cgroup/memory/job",
		"1073741824");
}
END_TEST

START_TEST(reached_memory_limit_of_a_cgroup_is_named)
{
	fake_root_put("/sys/fs/cgroup/job/memory.current", "1073000000\n");
	expect(ENOMEM, 0, "memory.max of cgroup /sys/fs/cgroup/job", "1073741824");
	/* The kernel frees the memory of cached files before a call fails. */
	fake_root_put("/sys/fs/cgroup/job/memory.stat",
		"anon 1\nfile 600000000\ninactive_file 300000000\nactive_file 200000000\n");
	expect_none(ENOMEM, 0);
	fake_root_put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1073741824\n");
	fake_root_put("/sys/fs/cgroup/memory/job/memory.stat",
		"inactive_file 0\ntotal_inactive_file 500000000\ntotal_active_file 0\n");
	expect_none(ENOMEM, 0);
	fake_root_put("/sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 5000\n");
	expect(ENOMEM, 0, "memory.limit_in_bytes of cgroup /sys/fs/cgroup/memory/job",
		"1073741824");
}
END_TEST

START_TEST(reached_memory_limit_of_process_or_system_is_named)
{
	fake_root_put("/proc/sys/vm/max_map_count", "3\n");
	expect(ENOMEM, 0, "max_map_count", "3");
	fake_root_put("/proc/sys/vm/max_map_count", "65530\n");
	fake_root_put("/proc/meminfo",
		"MemTotal: 8000000 kB\nMemAvailable: 4000 kB\nSwapFree: 40000 kB\n");
	expect_none(ENOMEM, 0);
	fake_root_put("/proc/meminfo",
		"MemTotal: 8000000 kB\nMemAvailable: 4000 kB\nSwapFree: 0 kB\n"
		"CommitLimit: 4000000 kB\nCommitted_AS: 3999000 kB\n");
	expect(ENOMEM, 0, "memory of the whole system", "8192000000");
	put_system();
	fake_root_put("/proc/sys/vm/overcommit_memory", "2\n");
	expect(ENOMEM, 0, "CommitLimit", "4096000000");
	expect(ENOSPC, MIB, "CommitLimit", "4096000000"); /* error of fallocate */
	expect(ENOSPC, 0, "max_user_watches", "777");     /* error of epoll_ctl */
}
END_TEST

static const char *of(const char *call, int error)
{
	static char buf[CC_LIMIT_TEXT];

	return cc_limit_text_below(fake_root, call, error, 0, buf, sizeof buf);
}

/* The same errno has different meanings for different calls. */
START_TEST(failed_call_selects_the_limit)
{
	ck_assert_ptr_nonnull(strstr(of("epoll_ctl", ENOSPC), "max_user_watches"));
	ck_assert_ptr_null(strstr(of("ftruncate", ENOSPC), "max_user_watches"));
	ck_assert_ptr_nonnull(strstr(of("ftruncate", ENOSPC), "no limit of"));
	ck_assert(cc_limit_is_of("connect", EADDRNOTAVAIL) && !cc_limit_is(EADDRNOTAVAIL) &&
		  !cc_limit_is_of("bind", EADDRNOTAVAIL));
	ck_assert_ptr_nonnull(strstr(of("connect", EADDRNOTAVAIL), "ip_local_port_range"));
	ck_assert_ptr_nonnull(strstr(of("connect", EAGAIN), "ip_local_port_range"));
	ck_assert_str_eq(of("bind", EADDRNOTAVAIL), strerror(EADDRNOTAVAIL));
}
END_TEST

START_TEST(limit_of_a_failed_send_is_named)
{
	expect_none(ENOBUFS, 0);
	fake_root_put("/sys/fs/cgroup/job/memory.current", "1073000000\n");
	expect(ENOBUFS, 0, "memory.max of cgroup /sys/fs/cgroup/job", "1073741824");
	ck_assert_ptr_nonnull(strstr(text(ETOOMANYREFS, 0), "RLIMIT_NOFILE"));
}
END_TEST

START_TEST(reached_limit_of_open_files_is_named)
{
	struct rlimit rl;
	char max[24];

	fake_root_put("/proc/sys/fs/file-nr", "99998\t0\t100000\n");
	expect(ENFILE, 0, "file-max", "100000");
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &rl), 0);
	snprintf(max, sizeof max, "%llu", (unsigned long long)rl.rlim_cur);
	expect(EMFILE, 0, "RLIMIT_NOFILE", max);
}
END_TEST

/* A program must not receive process ids, hosts or paths before it has proven that it is a
 * member. */
START_TEST(brief_text_has_no_process_id_host_or_path)
{
	char brief[CC_LIMIT_TEXT], expected[CC_LIMIT_TEXT], host[64] = "";
	static const int errors[] = {EMFILE, ENFILE, ENOMEM, EAGAIN};
	struct rlimit rl;

	ck_assert_int_eq(gethostname(host, sizeof host - 1), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &rl), 0);
	snprintf(expected, sizeof expected,
		"%s: the limit of open files (RLIMIT_NOFILE) of %s is %llu", strerror(EMFILE),
		program_invocation_short_name, (unsigned long long)rl.rlim_cur);
	errno = EBUSY;
	ck_assert_str_eq(cc_limit_brief(EMFILE, brief, sizeof brief), expected);
	ck_assert_int_eq(errno, EBUSY);
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		cc_limit_brief(errors[i], brief, sizeof brief);
		ck_assert_msg(strncmp(brief, strerror(errors[i]), strlen(strerror(errors[i]))) == 0,
			"%s", brief);
		ck_assert_msg(!strstr(brief, "pid") && !strchr(brief, '/') && !strstr(brief, host),
			"%s", brief);
	}
	ck_assert_str_eq(cc_limit_brief(ECONNREFUSED, brief, sizeof brief), strerror(ECONNREFUSED));
}
END_TEST

static void limit(int resource, rlim_t max)
{
	struct rlimit rl;

	ck_assert_int_eq(getrlimit((__rlimit_resource_t)resource, &rl), 0);
	rl.rlim_cur = max;
	ck_assert_int_eq(setrlimit((__rlimit_resource_t)resource, &rl), 0);
}

/* libcheck runs each test in its own process. */
START_TEST(reached_rlimit_of_the_process_is_named)
{
	limit(RLIMIT_NPROC, 4000);
	limit(RLIMIT_AS, (rlim_t)1 << 50);
	limit(RLIMIT_DATA, (rlim_t)1 << 51);
	limit(RLIMIT_FSIZE, 1000 * MIB);
	expect_none(EAGAIN, 0);
	expect_none(ENOMEM, 0);
	expect(ENOMEM, ((uint64_t)1 << 50) - 100 * MIB, "RLIMIT_AS", "1125899906842624");
	limit(RLIMIT_AS, RLIM_INFINITY);
	expect_none(ENOMEM, ((uint64_t)1 << 50) - 100 * MIB);
	expect(ENOMEM, (uint64_t)1 << 51, "RLIMIT_DATA", "2251799813685248");
	expect_none(EFBIG, MIB);
	expect(EFBIG, 1001 * MIB, "RLIMIT_FSIZE", "1048576000");
}
END_TEST

static void *sleep_on(void *arg)
{
	(void)arg;
	pause();
	return NULL;
}

/* Runs in a child. Returns 0, or the number of the failed check. */
static int exhaust_threads(void)
{
	char why[CC_LIMIT_TEXT];
	pthread_t t;
	unsigned n;

	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		return 77;
	limit(RLIMIT_NPROC, 1000);
	cc_limit_text(EAGAIN, why, sizeof why);
	if (!strstr(why, "no limit of")) {
		fprintf(stderr, "too early: %s\n", why);
		return 1;
	}
	limit(RLIMIT_NPROC, THREADS_ALLOWED);
	for (n = 1; pthread_create(&t, NULL, sleep_on, NULL) == 0; n++)
		;
	cc_limit_text(EAGAIN, why, sizeof why);
	fprintf(stderr, "%u threads: %s\n", n, why);
	return n == THREADS_ALLOWED && strstr(why, "RLIMIT_NPROC") && strstr(why, " is 3") ? 0 : 2;
}

/* The test is skipped with sanitizers, because they start threads. */
START_TEST(limit_is_named_if_a_user_has_no_more_threads)
{
	int status;
	pid_t pid;

	if (geteuid() != 0 || getenv("ASAN_OPTIONS"))
		return;
	pid = fork();
	if (pid == 0)
		_exit(exhaust_threads());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
}
END_TEST

Suite *limit_suite(void)
{
	Suite *s = suite_create("limit");
	TCase *tc = tcase_create("limit");

	tcase_add_checked_fixture(tc, setup, fake_root_teardown);
	tcase_add_test(tc, limits_that_are_not_reached_are_not_named);
	tcase_add_test(tc, no_limit_is_named_if_no_file_can_be_read);
	tcase_add_test(tc, reached_limit_of_threads_is_named);
	tcase_add_test(tc, reached_memory_limit_of_a_cgroup_is_named);
	tcase_add_test(tc, reached_memory_limit_of_process_or_system_is_named);
	tcase_add_test(tc, failed_call_selects_the_limit);
	tcase_add_test(tc, limit_of_a_failed_send_is_named);
	tcase_add_test(tc, reached_limit_of_open_files_is_named);
	tcase_add_test(tc, brief_text_has_no_process_id_host_or_path);
	tcase_add_test(tc, reached_rlimit_of_the_process_is_named);
	tcase_add_test(tc, limit_is_named_if_a_user_has_no_more_threads);
	suite_add_tcase(s, tc);
	return s;
}
