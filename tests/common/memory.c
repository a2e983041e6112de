/* SPDX-License-Identifier: MIT
 *
 * Limits of cgroups, in folders that look like them.
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

START_TEST(the_least_limit_on_the_way_up_counts)
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

START_TEST(version_1_has_its_own_place)
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

/* A container sees its own cgroup at the mount point, whatever its path is called outside. */
START_TEST(containers)
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
	tcase_add_test(tc, the_least_limit_on_the_way_up_counts);
	tcase_add_test(tc, version_1_has_its_own_place);
	tcase_add_loop_test(tc, containers, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
