/* SPDX-License-Identifier: MIT
 *
 * The asymmetric problems of TSPLIB, whose best rings are known. They are no part of the project:
 * the folder is PCCL_ATSP, or shared/atsp beside the source folder. Without it the suite is
 * skipped.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "tests/topology/brute.h"
#include "tests/topology/suites.h"

#define STEPS 400u /* instead of a time, so that the answers do not depend on the machine */

static const struct {
	const char *name;
	double best;
	bool proven; /* the assignment's cost is that of the best ring, so this must be proven */
} files[] = {
	{"br17", 39, false},
	{"ft53", 6905, false},
	{"ft70", 38673, false},
	{"ftv33", 1286, false},
	{"ftv35", 1473, false},
	{"ftv38", 1530, false},
	{"ftv44", 1613, false},
	{"ftv47", 1776, false},
	{"ftv55", 1608, false},
	{"ftv64", 1839, false},
	{"ftv70", 1950, false},
	{"ftv170", 2755, false},
	{"kro124p", 36230, false},
	{"p43", 5620, false},
	{"rbg323", 1326, true},
	{"rbg358", 1163, true},
	{"rbg403", 2465, true},
	{"rbg443", 2720, true},
	{"ry48p", 14422, false},
};
#define N_FILES (sizeof files / sizeof files[0])

static char folder[512];

static bool find_folder(void)
{
	const char *named = getenv("PCCL_ATSP"), *top = getenv("abs_top_srcdir");
	struct stat st;

	if (named)
		(void)snprintf(folder, sizeof folder, "%s", named);
	else
		(void)snprintf(folder, sizeof folder, "%s/../shared/atsp", top ? top : ".");
	return stat(folder, &st) == 0;
}

static void read_problem(const char *name, struct tpl_matrix *ret)
{
	enum { MOST = 1 << 20 };
	char path[600], why[TPL_WHY_SIZE], *text = malloc(MOST);
	size_t len;
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/%s.atsp", folder, name);
	f = fopen(path, "re");
	ck_assert_msg(f && text, "%s", path);
	len = fread(text, 1, MOST, f);
	(void)fclose(f);
	ck_assert_msg(tpl_matrix_parse(text, len, ret, why) == 0, "%s: %s", path, why);
	free(text);
}

/* Returns the gap to the best ring. */
static double solve(size_t i)
{
	struct tpl_matrix m;
	struct tpl_problem p;
	struct tpl_best best;
	struct tpl *t;
	double gap;

	read_problem(files[i].name, &m);
	p = (struct tpl_problem){.n = m.n, .cost = m.cost};
	ck_assert_int_eq(tpl_new(&p, TPL_SUM, 1, &t), 0);
	(void)tpl_work(t, files[i].proven ? 100000 : m.n + STEPS);
	best = tpl_best(t);
	gap = best.value / files[i].best - 1;
	printf("%s: %g, bound %g, gap %.3f %%\n", files[i].name, best.value, best.bound, 100 * gap);
	ck_assert(best.bound <= files[i].best && best.value >= files[i].best);
	ck_assert(!files[i].proven || best.optimal);
	ck_assert_msg(gap <= 0.03, "%s", files[i].name);
	tpl_free(t);
	tpl_matrix_clear(&m);
	return gap;
}

START_TEST(known_problems_are_solved)
{
	const int n = N_FILES;
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += solve((size_t)i);
	ck_assert_double_le(sum / n, 0.005);
}
END_TEST

Suite *atsp_suite(void)
{
	Suite *s;
	TCase *c;

	if (!find_folder()) {
		printf("%s: there is no such folder; PCCL_ATSP can name another one\n", folder);
		return NULL;
	}
	s = suite_create("atsp");
	c = tcase_create("atsp");
	tcase_set_timeout(c, 120);
	tcase_add_test(c, known_problems_are_solved);
	suite_add_tcase(s, c);
	return s;
}
