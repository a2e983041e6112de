/* SPDX-License-Identifier: MIT
 *
 * A matrix file, of this project or of TSPLIB. The solver works on what was parsed.
 */
#include <math.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "topology/tpl.h"

#define SOLVED_MAX 12u /* more hosts would take most of the time */

static void check_numbers(const double *v, size_t n)
{
	for (size_t i = 0; v && i < n; i++)
		FUZZ_CHECK(v[i] >= 0 && v[i] < INFINITY);
}

static void check_matrix(const struct tpl_matrix *m)
{
	size_t links = (size_t)m->n * m->n;

	FUZZ_CHECK(m->n >= TPL_HOSTS_MIN && m->n <= TPL_HOSTS_MAX);
	FUZZ_CHECK((m->rate == NULL) != (m->cost == NULL));
	for (uint32_t i = 0; i < m->n; i++) {
		size_t len = strnlen(m->name[i], TPL_NAME_SIZE);

		FUZZ_CHECK(len > 0 && len < TPL_NAME_SIZE);
	}
	check_numbers(m->rate, links);
	check_numbers(m->trip, links);
	check_numbers(m->cost, links);
	check_numbers(m->out, m->n);
	check_numbers(m->in, m->n);
}

/* rate: those of the file, or those that belong to its costs. */
static void solve(const struct tpl_matrix *m, const double *rate, enum tpl_objective objective)
{
	struct tpl_problem p = {m->n, rate, m->trip, m->out, m->in, m->cost};
	struct tpl_best best;
	struct tpl *t;

	FUZZ_CHECK(tpl_new(&p, objective, 1, &t) == 0);
	(void)tpl_work(t, 200);
	best = tpl_best(t);
	FUZZ_CHECK(best.n_rings <= TPL_RINGS_MAX);
	FUZZ_CHECK(!best.impossible || best.n_rings == 0);
	for (uint32_t r = 0; r < best.n_rings; r++)
		FUZZ_CHECK(best.ring[r][0] == 0 && best.weight[r] > 0 && best.weight[r] <= 1);
	if (m->cost && objective == TPL_BOTTLENECK) {
		tpl_time_bottleneck(m->n, m->cost, rate, &best);
		FUZZ_CHECK(best.bound <= best.value);
	}
	tpl_free(t);
}

static void solve_costs(const struct tpl_matrix *m)
{
	double rate[SOLVED_MAX * SOLVED_MAX];

	tpl_time_rates(m->n, m->cost, rate);
	solve(m, NULL, TPL_SUM);
	solve(m, rate, TPL_BOTTLENECK);
	solve(m, rate, TPL_PLAN);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	char why[TPL_WHY_SIZE] = "";
	struct tpl_matrix m;

	if (tpl_matrix_parse((const char *)p, len, &m, why) < 0) {
		FUZZ_CHECK(strncmp(why, "line ", 5) == 0);
		return 0;
	}
	check_matrix(&m);
	if (m.n <= SOLVED_MAX && m.cost)
		solve_costs(&m);
	if (m.n <= SOLVED_MAX && m.rate) {
		solve(&m, m.rate, TPL_BOTTLENECK);
		solve(&m, m.rate, TPL_PLAN);
	}
	tpl_matrix_clear(&m);
	return 0;
}
