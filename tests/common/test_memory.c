/* SPDX-License-Identifier: MIT
 *
 * Limits of cgroups, in folders that look like them.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cc_memory.h"
#include "tests/common/testlib.h"

static char root[] = "/tmp/pccl-memory-XXXXXX";
static char where[CC_MEMORY_WHERE];

static void put(const char *path, const char *text)
{
	char name[PATH_MAX], *slash;
	FILE *f;

	snprintf(name, sizeof name, "%s%s", root, path);
	for (slash = strchr(name + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(name, 0700);
		*slash = '/';
	}
	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

static void setup(void)
{
	strcpy(root + strlen(root) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
}

static void teardown(void)
{
	char command[PATH_MAX];

	snprintf(command, sizeof command, "rm -r %s", root);
	ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): of a name that is ours */
}

START_TEST(without_cgroups_there_is_no_limit)
{
	ck_assert_uint_eq(cc_memory_cgroup(root, where), UINT64_MAX);
	ck_assert_str_eq(where, "");
}
END_TEST

START_TEST(the_least_limit_on_the_way_up_counts)
{
	put("/proc/self/mountinfo",
		"30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
	put("/proc/self/cgroup", "0::/user/job\n");
	put("/sys/fs/cgroup/user/job/memory.max", "max\n");
	ck_assert_uint_eq(cc_memory_cgroup(root, where), UINT64_MAX);
	put("/sys/fs/cgroup/user/memory.max", "67108864\n");
	ck_assert_uint_eq(cc_memory_cgroup(root, where), 67108864);
	ck_assert_str_eq(where, "/sys/fs/cgroup/user/memory.max");
	put("/sys/fs/cgroup/user/job/memory.max", "1048576\n");
	ck_assert_uint_eq(cc_memory_cgroup(root, where), 1048576);
}
END_TEST

START_TEST(version_1_has_its_own_place)
{
	put("/proc/self/mountinfo",
		"30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		"31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
		"32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
	put("/proc/self/cgroup", "5:cpu:/other\n4:memory:/job\n0::/\n");
	put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
	ck_assert_uint_eq(cc_memory_cgroup(root, where), UINT64_MAX);
	put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "33554432\n");
	ck_assert_uint_eq(cc_memory_cgroup(root, where), 33554432);
	ck_assert_str_eq(where, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes");
}
END_TEST

/* A container sees its own cgroup at the mount point, whatever its path is called outside. */
START_TEST(containers)
{
	put("/proc/self/mountinfo",
		_i == 0 ? "32 24 0:28 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup memory\n"
			: "32 24 0:28 / /sys/fs/cgroup/memory ro - cgroup cgroup memory\n");
	put("/proc/self/cgroup", "4:memory:/docker/1\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "5242880\n");
	ck_assert_uint_eq(cc_memory_cgroup(root, where), 5242880);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("memory");
	TCase *tc = tcase_create("memory");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, without_cgroups_there_is_no_limit);
	tcase_add_test(tc, the_least_limit_on_the_way_up_counts);
	tcase_add_test(tc, version_1_has_its_own_place);
	tcase_add_loop_test(tc, containers, 0, 2);
	suite_add_tcase(s, tc);
	return tl_run(s);
}
