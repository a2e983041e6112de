/* SPDX-License-Identifier: MIT */
/* Tests hashing with threads, and with CRC32C. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/hsh_run.h"
#include "tests/kernels/krn_ref.h"
#include "tests/kernels/suites.h"

#define MAX_TENSORS 3000
#define POOL        ((size_t)8 << 20)
#define GUARD       UINT64_C(0x1122334455667788)

struct tensors {
	unsigned char *pool;
	uint64_t *leaves; /* a guard value follows the hashes of each tensor */
	struct hsh_tensor_work work[MAX_TENSORS];
	size_t n;
};

/* Makes n tensors at random places of the pool, with 0 to max_bytes bytes. */
static void make_tensors(struct tensors *t, size_t n, size_t max_bytes, uint64_t seed)
{
	size_t used = 0;

	t->n = n;
	t->pool = malloc(POOL);
	t->leaves = malloc(n * (hsh_leaf_count(max_bytes) + 1) * sizeof(*t->leaves));
	ck_assert_ptr_nonnull(t->pool);
	ck_assert_ptr_nonnull(t->leaves);
	for (size_t i = 0; i < POOL; i += 8) {
		uint64_t r = ref_random(&seed);

		memcpy(t->pool + i, &r, sizeof(r));
	}
	for (size_t i = 0; i < n; i++) {
		struct hsh_tensor_work *w = &t->work[i];

		w->bytes = ref_random(&seed) % 4 ? ref_random(&seed) % (max_bytes + 1) : 0;
		w->data = t->pool + ref_random(&seed) % (POOL - w->bytes);
		w->leaves = t->leaves + used;
		used += hsh_leaf_count(w->bytes);
		t->leaves[used++] = GUARD;
	}
}

static void free_tensors(struct tensors *t)
{
	free(t->leaves);
	free(t->pool);
}

static void check_tensors(const struct tensors *t, hsh_leaf_fn *leaf)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct hsh_tensor_work *w = &t->work[i];
		uint64_t n = hsh_leaf_count(w->bytes);
		uint64_t expected[POOL / HSH_LEAF];

		hsh_leaves(leaf, w->data, w->bytes, 0, n, expected);
		if (memcmp(expected, w->leaves, n * sizeof(*expected)) != 0)
			ck_abort_msg("leaves of tensor %zu", i);
		if (w->leaves[n] != GUARD)
			ck_abort_msg("guard of tensor %zu", i);
		if (w->hash != hsh_tensor(expected, w->bytes))
			ck_abort_msg("hash of tensor %zu", i);
	}
}

START_TEST(number_of_threads_does_not_change_the_hashes)
{
	static const unsigned threads[] = {0, 1, 2, 3, 7, HSH_MAX_THREADS, 1000};
	static const struct {
		size_t n, max_bytes;
	} lists[] = {{0, 0}, {1, 0}, {1, POOL}, {5, POOL / 2}, {40, 300000}, {MAX_TENSORS, 3000}};
	struct tensors t;

	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (unsigned k = 0; k < sizeof(threads) / sizeof(threads[0]); k++) {
			make_tensors(&t, lists[i].n, lists[i].max_bytes, i);
			hsh_tensors(hsh_leaf, t.work, t.n, threads[k]);
			check_tensors(&t, hsh_leaf);
			free_tensors(&t);
		}
}
END_TEST

START_TEST(crc32c_gives_the_published_values)
{
	/* Examples of RFC 3720, B.4, and the check value from catalogues of CRCs. */
	unsigned char zeros[32] = {0}, ones[32], up[32], down[32];
	hsh_leaf_fn *leaf = NULL;
	char error[200] = "";

	if (!hsh_crc32c_load(&leaf, error, sizeof(error)))
		ck_abort_msg("%s", error);
	for (unsigned i = 0; i < 32; i++) {
		ones[i] = 0xff;
		up[i] = (unsigned char)i;
		down[i] = (unsigned char)(31 - i);
	}
	ck_assert_uint_eq(leaf(zeros, 32, 0), UINT64_C(0x8a9136aa));
	ck_assert_uint_eq(leaf(ones, 32, 0), UINT64_C(0x62a8ab43));
	ck_assert_uint_eq(leaf(up, 32, 0), UINT64_C(0x46dd794e));
	ck_assert_uint_eq(leaf(down, 32, 0), UINT64_C(0x113fdb5c));
	ck_assert_uint_eq(leaf("123456789", 9, 5), UINT64_C(0xe3069283));
}
END_TEST

/* Computes the CRC bit by bit from its definition. */
static uint64_t slow_crc32c(const unsigned char *data, size_t bytes)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < bytes; i++) {
		crc ^= data[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
	}
	return (uint32_t)~crc;
}

START_TEST(tensors_can_be_hashed_by_crc32c)
{
	hsh_leaf_fn *leaf = NULL;
	struct tensors t;
	uint64_t seed = 9;

	ck_assert(hsh_crc32c_load(&leaf, NULL, 0));
	make_tensors(&t, 40, 300000, 8);
	hsh_tensors(leaf, t.work, t.n, 3);
	check_tensors(&t, leaf);
	for (unsigned i = 0; i < 200; i++) {
		size_t bytes = 1 + ref_random(&seed) % (i % 20 ? 400 : HSH_LEAF);
		const unsigned char *p = t.pool + ref_random(&seed) % 1000;

		ck_assert_uint_eq(leaf(p, bytes, 0), slow_crc32c(p, bytes));
	}
	free_tensors(&t);
}
END_TEST

START_TEST(missing_crc32c_library_is_reported)
{
	hsh_leaf_fn *leaf = hsh_leaf;
	char error[200] = "", cut[10];

	ck_assert(!hsh_crc32c_load_from("libno-such-thing.so.9", &leaf, error, sizeof(error)));
	ck_assert_ptr_nonnull(strstr(error, "crc32c needs the library ISA-L (Debian: libisal2): "));
	ck_assert_ptr_nonnull(strstr(error, "libno-such-thing.so.9"));
	ck_assert(!hsh_crc32c_load_from("libm.so.6", &leaf, error, sizeof(error)));
	ck_assert_str_eq(error, "crc32c needs the library ISA-L: libm.so.6 has no crc32_iscsi");
	ck_assert(!hsh_crc32c_load_from("libno-such-thing.so.9", &leaf, cut, sizeof(cut)));
	ck_assert_str_eq(cut, "crc32c ne");
	ck_assert(leaf == hsh_leaf);
}
END_TEST

Suite *hsh_run_suite(void)
{
	Suite *suite = suite_create("hsh_run");
	TCase *threads = tcase_create("threads");
	TCase *crc32c = tcase_create("crc32c");

	tcase_set_timeout(threads, 120);
	tcase_add_test(threads, number_of_threads_does_not_change_the_hashes);
	suite_add_tcase(suite, threads);

	tcase_add_test(crc32c, missing_crc32c_library_is_reported);
	tcase_add_test(crc32c, crc32c_gives_the_published_values);
	tcase_add_test(crc32c, tensors_can_be_hashed_by_crc32c);
	suite_add_tcase(suite, crc32c);
	return suite;
}
