/* SPDX-License-Identifier: MIT
 *
 * Tests of sealed memory and futex words, with two mappings and two threads.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_futex.h"
#include "common/cc_shm.h"
#include "tests/common/suites.h"
#include "tests/common/testlib.h"

START_TEST(both_mappings_show_the_same_memory)
{
	void *a, *b;
	int fd;

	ck_assert_int_eq(cc_shm_create("test", 5000, &fd, &a), 0);
	ck_assert_int_eq(cc_shm_map(fd, 5000, &b), 0);
	ck_assert_ptr_ne(a, b);
	memcpy((char *)a + 4990, "0123456789", 10);
	ck_assert_int_eq(memcmp((char *)b + 4990, "0123456789", 10), 0);
	cc_shm_unmap(a, 5000);
	ck_assert_int_eq(((char *)b)[4990], '0');
	cc_shm_unmap(b, 5000);
	close(fd);
}
END_TEST

START_TEST(size_is_sealed_and_rounded_to_pages)
{
	long page = sysconf(_SC_PAGESIZE);
	struct stat st;
	void *map;
	int fd;

	ck_assert_int_eq(cc_shm_create("test", 1, &fd, &map), 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_size, page);
	ck_assert_int_lt(ftruncate(fd, 0), 0);
	ck_assert_int_lt(ftruncate(fd, 2 * page), 0);
	ck_assert_int_lt(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	cc_shm_unmap(map, 1);
	close(fd);
}
END_TEST

START_TEST(memory_that_could_shrink_is_refused)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *map = &fd;

	ck_assert_int_eq(ftruncate(fd, 4096), 0);
	ck_assert_int_eq(cc_shm_map(fd, 4096, &map), CC_ERR_PERM);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	ck_assert_int_eq(cc_shm_map(fd, 4096, &map), CC_ERR_PERM);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL), 0);
	ck_assert_ptr_eq(map, &fd);
	ck_assert_int_eq(cc_shm_map(fd, 4096, &map), 0);
	cc_shm_unmap(map, 4096);
	close(fd);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(cc_shm_map(fd, 1, &map), CC_ERR_PERM);
	close(fd);
}
END_TEST

START_TEST(read_only_descriptor_cannot_be_written)
{
	void *mine, *theirs;
	struct stat st;
	int fd, ro;

	ck_assert_int_eq(cc_shm_create("test", 4096, &fd, &mine), 0);
	ro = cc_shm_read_only(fd);
	ck_assert_int_ge(ro, 0);
	ck_assert_int_eq(cc_shm_map(ro, 4096, &theirs), 0);
	memcpy(mine, "seen", sizeof "seen");
	ck_assert_str_eq(theirs, "seen");
	ck_assert_int_lt(mprotect(theirs, 4096, PROT_READ | PROT_WRITE), 0);
	/* another user cannot open it again for writing either */
	ck_assert_int_eq(fstat(ro, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
	cc_shm_unmap(mine, 4096);
	cc_shm_unmap(theirs, 4096);
	close(fd);
	close(ro);
}
END_TEST

START_TEST(wrong_sizes_are_refused)
{
	void *map, *other;
	int fd;

	ck_assert_int_eq(cc_shm_create("test", 0, &fd, &map), CC_ERR_INVAL);
	ck_assert_int_eq(cc_shm_create("test", SIZE_MAX, &fd, &map), CC_ERR_INVAL);
	ck_assert_int_eq(cc_shm_create("test", 4096, &fd, &map), 0);
	ck_assert_int_eq(cc_shm_map(fd, 0, &other), CC_ERR_INVAL);
	ck_assert_int_eq(cc_shm_map(fd, 4097, &other), CC_ERR_INVAL);
	cc_shm_unmap(map, 4096);
	cc_shm_unmap(NULL, 4096);
	close(fd);
}
END_TEST

START_TEST(wait_returns_at_once_or_at_its_timeout)
{
	_Atomic uint32_t word = 5;

	ck_assert_int_eq(cc_futex_wait(&word, 4, UINT64_MAX), 0);
	ck_assert_int_eq(cc_futex_wait(&word, 5, 1000000), CC_ERR_TIMEOUT);
	ck_assert_int_eq(cc_futex_wait(&word, 5, 0), CC_ERR_TIMEOUT);
}
END_TEST

enum { ROUNDS = 2000 };

/* The other side of a ping-pong, which has its own mapping. */
static void *answer(void *arg)
{
	_Atomic uint32_t *word = arg;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		while (atomic_load(word) != 2 * i + 1)
			cc_futex_wait(word, 2 * i, UINT64_MAX);
		atomic_store(word, 2 * i + 2);
		cc_futex_wake(word, 1);
	}
	return NULL;
}

START_TEST(wake_reaches_a_waiter_of_another_mapping)
{
	_Atomic uint32_t *word;
	pthread_t thread;
	void *a, *b;
	int fd;

	ck_assert_int_eq(cc_shm_create("test", 64, &fd, &a), 0);
	ck_assert_int_eq(cc_shm_map(fd, 64, &b), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, answer, b), 0);
	word = a;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		atomic_store(word, 2 * i + 1);
		cc_futex_wake(word, 1);
		while (atomic_load(word) != 2 * i + 2)
			cc_futex_wait(word, 2 * i + 1, UINT64_MAX);
	}
	pthread_join(thread, NULL);
	cc_shm_unmap(a, 64);
	cc_shm_unmap(b, 64);
	close(fd);
}
END_TEST

Suite *shm_suite(void)
{
	Suite *suite = suite_create("shm");
	TCase *tc = tcase_create("shm");

	tcase_add_test(tc, both_mappings_show_the_same_memory);
	tcase_add_test(tc, size_is_sealed_and_rounded_to_pages);
	tcase_add_test(tc, memory_that_could_shrink_is_refused);
	tcase_add_test(tc, wrong_sizes_are_refused);
	tcase_add_test(tc, read_only_descriptor_cannot_be_written);
	tcase_add_test(tc, wait_returns_at_once_or_at_its_timeout);
	tcase_add_test(tc, wake_reaches_a_waiter_of_another_mapping);
	suite_add_tcase(suite, tc);
	return suite;
}
