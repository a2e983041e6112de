/* SPDX-License-Identifier: MIT
 *
 * The part of libcheck's interface that the tests of the kernels use. neon.sh needs this file
 * because there is no libcheck for other architectures. All tests run in one process, and the first
 * failure ends it. As in libcheck, CK_RUN_CASE names the only case to run.
 */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void check_fn(int _i);
typedef struct suite {
	const char *name;
	unsigned n;
} Suite;
typedef struct {
	bool run;
} TCase;

#define START_TEST(name)                                                                           \
	static void name(int _i)                                                                   \
	{                                                                                          \
		(void)_i;
#define END_TEST }

#define ck_abort_msg(...)                                                                          \
	do {                                                                                       \
		printf("%s:%d: ", __FILE__, __LINE__);                                             \
		printf(__VA_ARGS__);                                                               \
		printf("\n");                                                                      \
		exit(EXIT_FAILURE);                                                                \
	} while (0)
#define ck_assert(x)                                                                               \
	do {                                                                                       \
		if (!(x))                                                                          \
			ck_abort_msg("%s", #x);                                                    \
	} while (0)
#define ck_compare_(type, format, a, op, b)                                                        \
	do {                                                                                       \
		type a_ = (a), b_ = (b);                                                           \
                                                                                                   \
		if (!(a_ op b_))                                                                   \
			ck_abort_msg("%s %s %s: %" format ", %" format, #a, #op, #b, a_, b_);      \
	} while (0)
#define ck_assert_int_eq(a, b)   ck_compare_(intmax_t, PRIdMAX, a, ==, b)
#define ck_assert_uint_eq(a, b)  ck_compare_(uintmax_t, PRIuMAX, a, ==, b)
#define ck_assert_uint_ne(a, b)  ck_compare_(uintmax_t, PRIuMAX, a, !=, b)
#define ck_assert_uint_le(a, b)  ck_compare_(uintmax_t, PRIuMAX, a, <=, b)
#define ck_assert_uint_ge(a, b)  ck_compare_(uintmax_t, PRIuMAX, a, >=, b)
#define ck_assert_uint_gt(a, b)  ck_compare_(uintmax_t, PRIuMAX, a, >, b)
#define ck_assert_uint_lt(a, b)  ck_compare_(uintmax_t, PRIuMAX, a, <, b)
#define ck_assert_float_eq(a, b) ck_compare_(double, "g", a, ==, b)
#define ck_assert_ptr_nonnull(p) ck_assert((p) != NULL)
#define ck_assert_str_eq(a, b)   ck_assert(strcmp(a, b) == 0)

static Suite check_all;

static inline Suite *suite_create(const char *name)
{
	check_all = (Suite){.name = name};
	return &check_all;
}

static TCase check_cases[2] = {{false}, {true}};

static inline TCase *tcase_create(const char *name)
{
	const char *only = getenv("CK_RUN_CASE");

	return &check_cases[!only || strcmp(only, name) == 0];
}

static inline void tcase_set_timeout(TCase *t, double seconds)
{
	(void)t;
	(void)seconds;
}

static inline void check_run(const TCase *t, check_fn *fn, const char *name, int from, int to)
{
	if (!t->run)
		return;
	for (int i = from; i < to; i++) {
		fn(i);
		check_all.n++;
	}
	printf("%s: %s\n", check_all.name, name);
}

#define tcase_add_test(t, fn)                check_run(t, fn, #fn, 0, 1)
#define tcase_add_loop_test(t, fn, from, to) check_run(t, fn, #fn, from, to)

static inline void suite_add_tcase(Suite *s, TCase *t)
{
	(void)s;
	(void)t;
}

#endif
