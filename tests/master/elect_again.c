/* SPDX-License-Identifier: MIT
 *
 * A master repeats an election of shared state that the previous master held. The remaining
 * candidates get the results that the previous master would have sent.
 */
#include <string.h>

#include "ccoip-masterd/core/ccm_elect.h"
#include "tests/common/testlib.h"
#include "tests/master/suites.h"

#define POLLS 20000
#define MAX   8

struct poll {
	uint64_t expected;
	uint32_t n;
	struct ccm_candidate v[MAX + 1];
	struct ccm_standing s[MAX];
	struct ccm_election e;
};

/* Draws few different values, so that every rule applies often. */
static void draw(struct tl_rng *r, struct poll *p)
{
	static const uint64_t offered[] = {5, 5, 5, 5, 5, 4, 0, 6, UINT64_MAX};
	uint64_t mix = tl_range(r, 0, 3);
	struct ccm_candidate *x;
	uint32_t i;

	*p = (struct poll){.expected = tl_range(r, 0, 3) ? 5 : 0};
	p->n = (uint32_t)tl_range(r, 1, MAX);
	for (i = 0; i < p->n; i++) {
		x = &p->v[i];
		if (mix == 0)
			x->strategy = (uint32_t)tl_range(r, 0, 2);
		else
			x->strategy = mix == 1 ? CCM_ENFORCE_POPULAR : (uint32_t)tl_range(r, 1, 2);
		x->revision = offered[tl_range(r, 0, 8)];
		x->hash_type = tl_range(r, 0, 12) ? CCM_HASH_SIMPLE : CCM_HASH_CRC32C;
		x->keys.lo = tl_range(r, 0, 8) == 0;
		x->content.hi = tl_range(r, 0, 2) == 0;
		x->torn = tl_range(r, 0, 5) == 0;
	}
}

static bool enforces(const struct poll *p)
{
	uint32_t i;

	for (i = 0; i < p->n; i++)
		if (p->s[i].why != CCM_WHY_REVISION && p->s[i].why != CCM_WHY_LAST_REVISION &&
			p->v[i].strategy == CCM_ENFORCE_POPULAR)
			return true;
	return false;
}

/* Removes some candidates, changes the order of the others, and appends the elected candidate. */
static void thin(struct tl_rng *r, const struct poll *p, struct poll *q, uint32_t *was)
{
	uint32_t i, at = (uint32_t)tl_range(r, 0, p->n - 1), k;

	*q = (struct poll){.expected = p->expected};
	for (i = 0; i < p->n; i++) {
		k = (i + at) % p->n;
		if (tl_range(r, 0, 3) == 0)
			continue;
		was[q->n] = k;
		q->v[q->n++] = p->v[k];
	}
	q->v[q->n] = p->v[p->e.elected];
	q->v[q->n].revision = p->e.revision;
}

START_TEST(repeated_election_has_the_same_results)
{
	struct tl_rng r = tl_rng_new(1);
	uint32_t scratch[MAX], was[MAX], i, round, kicked = 0, received = 0;
	char text[384];
	struct poll p, q;

	for (round = 0; round < POLLS; round++) {
		draw(&r, &p);
		ccm_elect(p.expected, p.v, p.n, scratch, p.s, &p.e);
		if (p.e.nobody)
			continue;
		thin(&r, &p, &q, was);
		memset(q.s, 0xff, sizeof q.s);
		memset(&q.e, 0xff, sizeof q.e);
		ccm_elect_replay(q.expected, q.v, q.n, q.s, &q.e);
		ck_assert(!q.e.nobody);
		ck_assert_uint_eq(q.e.revision, p.e.revision);
		ck_assert_uint_eq(q.e.elected, q.n);
		for (i = 0; i < q.n; i++) {
			/* No remaining candidate enforces its strategy, so the rule of the strategy
			 * does not apply any more. */
			if (p.s[was[i]].why == CCM_WHY_STRATEGY && !enforces(&q))
				continue;
			ck_assert_int_eq(q.s[i].status, p.s[was[i]].status);
			ck_assert_int_eq(q.s[i].why, p.s[was[i]].why);
			ck_assert(q.s[i].misses == p.s[was[i]].misses);
			ccm_elect_sentence(&q.e, q.v, q.s, i, text, sizeof text);
			ck_assert((text[0] != '\0') == (q.s[i].status == CCM_ELECT_KICKED));
			kicked += q.s[i].status == CCM_ELECT_KICKED;
			received += q.s[i].status == CCM_ELECT_RECEIVER;
		}
	}
	ck_assert_uint_gt(kicked, POLLS / 10);
	ck_assert_uint_gt(received, POLLS / 10);
}
END_TEST

Suite *elect_again_suite(void)
{
	Suite *s = suite_create("elect_again");
	TCase *tc = tcase_create("repeated election");

	tcase_add_test(tc, repeated_election_has_the_same_results);
	suite_add_tcase(s, tc);
	return s;
}
