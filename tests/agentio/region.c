/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/mman.h>

#include "common/cc_shm.h"
#include "proto/wire_codes.h"
#include "tests/agentio/fixture.h"
#include "tests/agentio/suites.h"

#define MIB ((uint64_t)1 << 20)

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

START_TEST(alloc_and_free)
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

START_TEST(limit_per_user)
{
	struct wl_request q = {.type = WL_REGION_ALLOC, .size = MIB, .use = WL_REGION_STAGING};
	struct wl_reply r;
	struct mem a;

	ck_assert_uint_eq(client_alloc(&c, 3 * MIB + 4096, &a), WIRE_SUCCESS);
	client_call(&c, &q, &r, NULL, 0);
	ck_assert_uint_eq(r.code, WIRE_OUT_OF_MEMORY);
	/* names the limit, what is in use, and what was asked for */
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

START_TEST(impossible_sizes)
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

START_TEST(end_of_session_frees)
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

START_TEST(others_regions)
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

START_TEST(number_of_regions)
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

Suite *region_suite(void)
{
	Suite *s = suite_create("region");
	TCase *t = tcase_create("region");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, alloc_and_free);
	tcase_add_test(t, limit_per_user);
	tcase_add_test(t, impossible_sizes);
	tcase_add_test(t, end_of_session_frees);
	tcase_add_test(t, others_regions);
	tcase_add_test(t, number_of_regions);
	suite_add_tcase(s, t);
	return s;
}
