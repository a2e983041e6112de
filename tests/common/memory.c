/* SPDX-License-Identifier: MIT
 *
 * Tests limits of cgroups, with folders that look like cgroups.
 */

#include "common/cc_memory.h"
#include "tests/common/fakeroot.h"
#include "tests/common/suites.h"
#include "tests/common/testlib.h"

static char where[CC_MEMORY_WHERE];

START_TEST(without_cgroups_there_is_no_limit)
{
	ck_assert_uint_eq(cc_memory_cgroup(fake_root, where), UINT64_MAX);
	ck_assert_str_eq(where, "");
}
END_TEST

START_TEST(lowest_limit_of_all_parent_cgroups_is_used)
{
	fake_root_put("/proc/self/mountinfo",
		"30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
	fake_root_put("/proc/self/cgroup", "0::/user/job\n");
	fake_root_put("/sys/fs/cgroup/user/job/memory.max", "max\n");
	ck_assert_uint_eq(cc_memory_cgroup(fake_root, where), UINT64_MAX);
	fake_root_put("/sys/fs/cgroup/user/memory.max", "67108864\n");
	ck_assert_uint_eq(cc_memory_cgroup(fake_root, where), 67108864);
	ck_assert_str_eq(where, "/sys/fs/cgroup/user/memory.max");
	fake_root_put("/sys/fs/cgroup/user/job/memory.max", "1048576\n");
	ck_assert_uint_eq(cc_memory_cgroup(fake_root, where), 1048576);
}
END_TEST

START_TEST(limit_of_cgroup_version_1_is_found)
{
	fake_root_put("/proc/self/mountinfo",
		"30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		"31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
		"32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
	fake_root_put("/proc/self/cgroup", "5:cpu:/other\n4:memory:/job\n0::/\n");
	fake_root_put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
	ck_assert_uint_eq(cc_memory_cgroup(fake_root, where), UINT64_MAX);
	fake_root_put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "33554432\n");
	ck_assert_uint_eq(cc_memory_cgroup(fake_root, where), 33554432);
	ck_assert_str_eq(where, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes");
}
END_TEST

/* In a container, the mount point shows the container's own cgroup, although /proc/self/cgroup
 * gives the path that this cgroup has outside of the container. */
START_TEST(limit_inside_a_container_is_found)
{
	fake_root_put("/proc/self/mountinfo",
		_i == 0 ? "32 24 0:28 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup memory\n"
			: "32 24 0:28 / /sys/fs/cgroup/memory ro - cgroup cgroup memory\n");
	fake_root_put("/proc/self/cgroup", "4:memory:/docker/1\n");
	fake_root_put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "5242880\n");
	ck_assert_uint_eq(cc_memory_cgroup(fake_root, where), 5242880);
}
END_TEST

Suite *memory_suite(void)
{
	Suite *s = suite_create("memory");
	TCase *tc = tcase_create("memory");

	tcase_add_checked_fixture(tc, fake_root_setup, fake_root_teardown);
	tcase_add_test(tc, without_cgroups_there_is_no_limit);
	tcase_add_test(tc, lowest_limit_of_all_parent_cgroups_is_used);
	tcase_add_test(tc, limit_of_cgroup_version_1_is_found);
	tcase_add_loop_test(tc, limit_inside_a_container_is_found, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
