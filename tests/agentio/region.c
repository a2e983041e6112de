/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cc_shm.h"
#include "proto/wire_codes.h"
#include "tests/agentio/fixture.h"
#include "tests/agentio/suites.h"

#define MIB       ((uint64_t)1 << 20)
#define TWO_PAGES 8192

static struct fx f;
static struct client c;

static void limits(struct agentd_config *cfg)
{
	cfg->mem_total = 8 * MIB;
	cfg->mem_per_user = 4 * MIB;
}

static void setup(void)
{
	fx_start(&f, limits);
	client_open(&f, &c);
}

static void one_limit(struct agentd_config *cfg)
{
	cfg->mem_total = 8 * MIB;
	cfg->mem_per_user = 8 * MIB;
}

static void setup_for_users(void)
{
	fx_start(&f, one_limit);
	client_open(&f, &c);
}

static void teardown(void)
{
	if (c.fd >= 0)
		client_close(&c);
	fx_stop(&f);
}

static bool mem_is(const struct agentd_stats *s, uint64_t bytes)
{
	return s->mem_used == bytes;
}

START_TEST(memory_can_be_allocated_and_freed)
{
	struct mem a, b;

	ck_assert_uint_eq(client_alloc(&c, 1, &a), WIRE_SUCCESS);
	ck_assert_uint_eq(a.size, 4096);
	ck_assert_uint_eq(client_alloc(&c, MIB, &b), WIRE_SUCCESS);
	ck_assert_uint_ne(a.region, b.region);
	fx_await(&f, mem_is, MIB + 4096);
	memset(b.map, 0x5a, (size_t)b.size);
	ck_assert_uint_eq(client_free(&c, a.region), WIRE_SUCCESS);
	ck_assert_uint_eq(client_free(&c, a.region), WIRE_INVALID_ARGUMENT);
	fx_await(&f, mem_is, MIB);
	cc_shm_unmap(a.map, (size_t)a.size);
	cc_shm_unmap(b.map, (size_t)b.size);
}
END_TEST

START_TEST(the_limit_per_user_is_enforced)
{
	struct wl_request q = {.type = WL_REGION_ALLOC, .size = MIB, .use = WL_REGION_STAGING};
	struct wl_reply r;
	struct mem a;

	ck_assert_uint_eq(client_alloc(&c, 3 * MIB + 4096, &a), WIRE_SUCCESS);
	client_call(&c, &q, &r, NULL, 0);
	ck_assert_uint_eq(r.code, WIRE_OUT_OF_MEMORY);
	/* the text names the limit, the memory in use and the size asked for */
	ck_assert_ptr_nonnull(strstr(r.text, "mem_per_user"));
	ck_assert_ptr_nonnull(strstr(r.text, "4.0 MiB"));
	ck_assert_ptr_nonnull(strstr(r.text, "3.0 MiB"));
	ck_assert_ptr_nonnull(strstr(r.text, "1.0 MiB"));
	q.size = MIB - 4096;
	{
		int fd;

		client_call(&c, &q, &r, &fd, 1);
		ck_assert_uint_eq(r.code, WIRE_SUCCESS);
	}
	fx_await(&f, mem_is, 4 * MIB);
	cc_shm_unmap(a.map, (size_t)a.size);
}
END_TEST

/* Opens a session as another user. File access stays that of root, because only root may enter the
 * socket's folder. */
static void open_as(struct client *x, uid_t uid)
{
	ck_assert_int_eq(syscall(SYS_setresuid, -1, uid, -1), 0);
	setfsuid(0);
	client_open(&f, x);
	ck_assert_int_eq(syscall(SYS_setresuid, -1, 0, -1), 0);
}

/* Memory that one user has reserved but not touched does not prevent another user from getting an
 * equal part. */
START_TEST(untouched_memory_of_a_user_does_not_block_others)
{
	struct client other;
	struct mem a[2], b, more;

	if (geteuid() != 0)
		return;
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(client_alloc(&c, 4 * MIB, &a[i]), WIRE_SUCCESS);
	ck_assert_uint_eq(client_alloc(&c, 1, &more), WIRE_OUT_OF_MEMORY);
	memset(a[0].map, 1, 3 * MIB);
	open_as(&other, 54321);
	ck_assert_uint_eq(client_alloc(&other, 3 * MIB, &b), WIRE_SUCCESS);
	ck_assert_uint_eq(client_alloc(&other, MIB + 4096, &more), WIRE_OUT_OF_MEMORY);
	ck_assert_uint_eq(client_alloc(&c, 1, &more), WIRE_OUT_OF_MEMORY);
	fx_await(&f, mem_is, 11 * MIB);
	client_close(&other);
	fx_await(&f, mem_is, 8 * MIB);
	for (int i = 0; i < 2; i++)
		cc_shm_unmap(a[i].map, 4 * MIB);
	cc_shm_unmap(b.map, 3 * MIB);
}
END_TEST

START_TEST(touched_memory_of_a_user_counts_for_all)
{
	struct wl_request q = {.type = WL_REGION_ALLOC, .size = MIB, .use = WL_REGION_STAGING};
	struct client other;
	struct wl_reply r;
	struct mem a[2];

	if (geteuid() != 0)
		return;
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(client_alloc(&c, 4 * MIB, &a[i]), WIRE_SUCCESS);
		memset(a[i].map, 1, 4 * MIB);
	}
	open_as(&other, 54321);
	client_call(&other, &q, &r, NULL, 0);
	ck_assert_uint_eq(r.code, WIRE_OUT_OF_MEMORY);
	ck_assert_ptr_nonnull(strstr(r.text, "mem_total"));
	client_close(&other);
	for (int i = 0; i < 2; i++)
		cc_shm_unmap(a[i].map, 4 * MIB);
}
END_TEST

START_TEST(impossible_sizes_end_the_session)
{
	static const uint64_t sizes[] = {
		((uint64_t)1 << 48) + 1, (uint64_t)1 << 63, UINT64_MAX - 4095, UINT64_MAX};
	struct wl_request q = {.type = WL_REGION_ALLOC, .use = WL_REGION_REGISTERED};
	char text[WL_TEXT_MAX];
	struct client bad;
	struct mem a;

	ck_assert_uint_eq(client_alloc(&c, (uint64_t)1 << 48, &a), WIRE_OUT_OF_MEMORY);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		client_open(&f, &bad);
		q.size = sizes[i];
		client_send(&bad, &q);
		client_await_end(&bad, text);
		ck_assert_str_ne(text, "");
	}
	fx_await(&f, mem_is, 0);
}
END_TEST

START_TEST(the_end_of_a_session_frees_its_memory)
{
	struct mem a;

	for (int i = 0; i < 10; i++) {
		ck_assert_uint_eq(client_alloc(&c, 4096, &a), WIRE_SUCCESS);
		cc_shm_unmap(a.map, (size_t)a.size);
	}
	fx_await(&f, mem_is, 40960);
	client_close(&c);
	fx_await(&f, mem_is, 0);
	ck_assert_uint_eq(fx_stats(&f).regions, 0);
}
END_TEST

START_TEST(regions_of_other_processes_are_refused)
{
	struct wl_request q = {.type = WL_REGION_MAP};
	struct client other;
	struct wl_reply r;
	struct mem a;

	client_open(&f, &other);
	ck_assert_uint_eq(client_alloc(&c, 4096, &a), WIRE_SUCCESS);
	ck_assert_uint_eq(client_free(&other, a.region), WIRE_INVALID_ARGUMENT);
	q.region = a.region;
	client_call(&other, &q, &r, NULL, 0);
	ck_assert_uint_eq(r.code, WIRE_INVALID_USAGE);
	client_call(&c, &q, &r, NULL, 0); /* not a result region either */
	ck_assert_uint_eq(r.code, WIRE_INVALID_USAGE);
	for (uint64_t id = 1; id < 20; id++) {
		q.region = id;
		client_call(&other, &q, &r, NULL, 0);
		ck_assert_uint_ne(r.code, WIRE_SUCCESS);
	}
	ck_assert_uint_eq(client_free(&c, a.region), WIRE_SUCCESS);
	cc_shm_unmap(a.map, (size_t)a.size);
	client_close(&other);
}
END_TEST

START_TEST(each_region_takes_at_least_a_page)
{
	uint32_t n = 0, code;
	struct mem a;

	while ((code = client_alloc(&c, 1, &a)) == WIRE_SUCCESS) {
		cc_shm_unmap(a.map, (size_t)a.size);
		n++;
	}
	ck_assert_uint_eq(code, WIRE_OUT_OF_MEMORY);
	ck_assert_uint_eq(n, 4 * MIB / 4096);
}
END_TEST

/* ---- memory that a process brings along ---- */

static struct wl_reply adopt(int fd, uint64_t size)
{
	struct wl_request q = {.type = WL_REGION_ADOPT, .size = size, .use = WL_REGION_REGISTERED};
	struct wl_reply r;

	client_send_fds(&c, &q, &fd, 1);
	ck_assert(client_receive(&c, &r, NULL, 0));
	ck_assert_uint_eq(r.req_id, q.req_id);
	ck_assert_int_eq(r.text[0] == '\0', r.code == WIRE_SUCCESS);
	return r;
}

/* A process has kept the memory when its agent died. The next agent treats it like its own. */
START_TEST(adopted_memory_is_a_region)
{
	unsigned before = fx_count_fds();
	struct wl_reply r, again;
	void *map;
	int fd;

	ck_assert_int_eq(cc_shm_create("test", MIB, &fd, &map), 0);
	r = adopt(fd, MIB);
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
	ck_assert_uint_eq(r.size, MIB);
	again = adopt(fd, MIB);
	ck_assert_uint_eq(again.code, WIRE_SUCCESS);
	ck_assert_uint_ne(again.region, r.region);
	fx_await(&f, mem_is, 2 * MIB);
	ck_assert_uint_eq(client_free(&c, r.region), WIRE_SUCCESS);
	fx_await(&f, mem_is, MIB);
	ck_assert_uint_eq(fx_stats(&f).regions, 1);
	close(fd);
	/* the agent has a descriptor of the remaining region */
	ck_assert_uint_eq(fx_count_fds(), before + 1);
	client_close(&c);
	fx_await(&f, mem_is, 0);
	cc_shm_unmap(map, MIB);
}
END_TEST

START_TEST(adopted_memory_is_charged)
{
	struct wl_reply r;
	void *map;
	int fd;

	ck_assert_int_eq(cc_shm_create("test", 3 * MIB, &fd, &map), 0);
	ck_assert_uint_eq(adopt(fd, 3 * MIB).code, WIRE_SUCCESS);
	r = adopt(fd, 3 * MIB);
	ck_assert_uint_eq(r.code, WIRE_OUT_OF_MEMORY);
	ck_assert_ptr_nonnull(strstr(r.text, "mem_per_user"));
	fx_await(&f, mem_is, 3 * MIB);
	close(fd);
	cc_shm_unmap(map, 3 * MIB);
}
END_TEST

static int memory(int seals, unsigned flags)
{
	int fd = memfd_create("test", MFD_CLOEXEC | flags);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, TWO_PAGES), 0);
	if (seals)
		ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static bool fds_are(const struct agentd_stats *s, uint64_t n)
{
	(void)s;
	return fx_count_fds() == n;
}

START_TEST(only_sealed_memory_files_can_be_adopted)
{
	const int size_seals = F_SEAL_SHRINK | F_SEAL_GROW, seals = size_seals | F_SEAL_SEAL;
	unsigned before = fx_count_fds();
	char path[] = "/tmp/agentio-file-XXXXXX";
	int file = mkstemp(path), pipes[2];
	int good = memory(seals, MFD_ALLOW_SEALING);

	ck_assert_int_eq(pipe(pipes), 0);
	ck_assert_int_eq(ftruncate(file, TWO_PAGES), 0);
	{
		const int bad[] = {file, pipes[0], c.fd, memory(0, 0), memory(0, MFD_ALLOW_SEALING),
			memory(size_seals, MFD_ALLOW_SEALING),
			memory(F_SEAL_SHRINK | F_SEAL_SEAL, MFD_ALLOW_SEALING),
			memory(seals | F_SEAL_WRITE, MFD_ALLOW_SEALING), cc_shm_read_only(good)};

		for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
			struct wl_reply r = adopt(bad[i], TWO_PAGES);

			ck_assert_msg(r.code == WIRE_INVALID_ARGUMENT, "%zu: %s", i, r.text);
			ck_assert_ptr_nonnull(strstr(r.text, "memfd"));
		}
		for (size_t i = 3; i < sizeof bad / sizeof bad[0]; i++)
			close(bad[i]);
	}
	/* sizes that the file does not have, and a size that no region can have */
	ck_assert_uint_eq(adopt(good, 4096).code, WIRE_INVALID_ARGUMENT);
	ck_assert_uint_eq(adopt(good, TWO_PAGES + 4096).code, WIRE_INVALID_ARGUMENT);
	ck_assert_uint_eq(adopt(good, 8191).code, WIRE_INVALID_ARGUMENT);
	ck_assert_uint_eq(adopt(good, TWO_PAGES).code, WIRE_SUCCESS);
	close(good);
	close(file);
	unlink(path);
	close(pipes[0]);
	close(pipes[1]);
	fx_await(&f, fds_are, before + 1);
	fx_await(&f, mem_is, TWO_PAGES);
}
END_TEST

/* The agent keeps descriptors of regions open, but leaves half of all descriptors to other uses. */
START_TEST(memory_leaves_descriptors_for_other_uses)
{
	const unsigned limit = 2 * (fx_count_fds() + 8), n = limit;
	struct rlimit was, low;
	struct mem a;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	low = (struct rlimit){.rlim_cur = limit, .rlim_max = was.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_uint_eq(client_alloc(&c, 4096, &a), WIRE_SUCCESS);
		cc_shm_unmap(a.map, (size_t)a.size);
	}
	ck_assert_uint_le(fx_count_fds(), limit * 3 / 4);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
}
END_TEST

START_TEST(an_adoption_carries_one_descriptor_and_other_requests_none)
{
	unsigned before = fx_count_fds();
	int fd = memory(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, MFD_ALLOW_SEALING);
	const int fds[8] = {fd, fd, fd, fd, fd, fd, fd, fd};
	char text[WL_TEXT_MAX];
	struct client bad;

	for (unsigned n = 0; n <= 8; n++) {
		struct wl_request adopt_it = {
			.type = WL_REGION_ADOPT, .size = TWO_PAGES, .use = WL_REGION_REGISTERED};
		struct wl_request other = {
			.type = WL_REGION_ALLOC, .size = 4096, .use = WL_REGION_STAGING};

		if (n == 1)
			continue;
		client_open(&f, &bad);
		if (n == 0)
			client_send(&bad, &adopt_it);
		else
			client_send_fds(&bad, &adopt_it, fds, n);
		client_await_end(&bad, text);
		ck_assert_msg(strstr(text, "descriptor") != NULL, "%u: %s", n, text);
		if (n == 0)
			continue;
		client_open(&f, &bad);
		client_send_fds(&bad, &other, fds, n - 1);
		client_await_end(&bad, text);
		ck_assert_msg(strstr(text, "descriptor") != NULL, "%u: %s", n, text);
	}
	close(fd);
	fx_await(&f, fds_are, before);
	fx_await(&f, mem_is, 0);
}
END_TEST

Suite *region_suite(void)
{
	Suite *s = suite_create("region");
	TCase *t = tcase_create("region"), *users = tcase_create("users");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, memory_can_be_allocated_and_freed);
	tcase_add_test(t, the_limit_per_user_is_enforced);
	tcase_add_test(t, impossible_sizes_end_the_session);
	tcase_add_test(t, the_end_of_a_session_frees_its_memory);
	tcase_add_test(t, regions_of_other_processes_are_refused);
	tcase_add_test(t, each_region_takes_at_least_a_page);
	tcase_add_test(t, adopted_memory_is_a_region);
	tcase_add_test(t, adopted_memory_is_charged);
	tcase_add_test(t, only_sealed_memory_files_can_be_adopted);
	tcase_add_test(t, memory_leaves_descriptors_for_other_uses);
	tcase_add_test(t, an_adoption_carries_one_descriptor_and_other_requests_none);
	suite_add_tcase(s, t);
	tcase_set_timeout(users, 60);
	tcase_add_checked_fixture(users, setup_for_users, teardown);
	tcase_add_test(users, untouched_memory_of_a_user_does_not_block_others);
	tcase_add_test(users, touched_memory_of_a_user_counts_for_all);
	suite_add_tcase(s, users);
	return s;
}
