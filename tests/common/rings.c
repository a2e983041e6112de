/* SPDX-License-Identifier: MIT
 *
 * Rings and shares, as other hosts and processes may name them.
 */
#include "common/cc_rings.h"

#include <string.h>

#include "common/cc_err.h"
#include "tests/common/suites.h"
#include "tests/common/testlib.h"

/* Puts the hosts into a random order. */
static void shuffle(struct tl_rng *r, uint8_t *order, uint32_t hosts)
{
	for (uint32_t i = 0; i < hosts; i++) {
		uint32_t k = (uint32_t)tl_range(r, 0, i);

		order[i] = order[k];
		order[k] = (uint8_t)i;
	}
}

static struct cc_rings random_rings(struct tl_rng *r, uint32_t n, uint32_t hosts)
{
	struct cc_rings x = {.n = n, .hosts = hosts};

	for (uint32_t i = 0; i < n; i++) {
		x.share[i] = (uint16_t)(1 + tl_magnitude(r, 16) % UINT16_MAX);
		shuffle(r, x.order[i], hosts);
	}
	return x;
}

START_TEST(orders_of_all_hosts_are_inverted)
{
	struct tl_rng r = tl_rng_new(3);

	for (uint32_t hosts = 1; hosts <= CC_ROUTE_HOSTS_MAX; hosts++) {
		for (uint32_t n = 1; n <= CC_RINGS_MAX; n++) {
			struct cc_rings x = random_rings(&r, n, hosts);

			ck_assert_int_eq(cc_rings_complete(&x), 0);
			for (uint32_t i = 0; i < n; i++)
				for (uint32_t k = 0; k < hosts; k++)
					ck_assert_uint_eq(x.at[i][x.order[i][k]], k);
		}
	}
}
END_TEST

static void refused(const struct cc_rings *x)
{
	struct cc_rings copy = *x;

	ck_assert_int_eq(cc_rings_complete(&copy), CC_ERR_INVAL);
}

START_TEST(numbers_beyond_the_limits_are_refused)
{
	struct tl_rng r = tl_rng_new(4);
	struct cc_rings good = random_rings(&r, CC_RINGS_MAX, CC_ROUTE_HOSTS_MAX), x;

	x = good, x.n = 0, refused(&x);
	x = good, x.n = CC_RINGS_MAX + 1, refused(&x);
	x = good, x.n = UINT32_MAX, refused(&x);
	x = good, x.hosts = 0, refused(&x);
	x = good, x.hosts = CC_ROUTE_HOSTS_MAX + 1, refused(&x);
	x = good, x.hosts = UINT32_MAX, refused(&x);
	x = good, x.share[CC_RINGS_MAX - 1] = 0, refused(&x);
	/* A ring that does not exist needs neither a share nor an order. */
	x.n--;
	memset(x.order[CC_RINGS_MAX - 1], 0xff, sizeof x.order[0]);
	ck_assert_int_eq(cc_rings_complete(&x), 0);
}
END_TEST

START_TEST(order_must_have_each_host_once)
{
	struct tl_rng r = tl_rng_new(5);

	for (int i = 0; i < 2000; i++) {
		uint32_t n = (uint32_t)tl_range(&r, 1, CC_RINGS_MAX);
		uint32_t hosts = (uint32_t)tl_range(&r, 1, CC_ROUTE_HOSTS_MAX);
		struct cc_rings x = random_rings(&r, n, hosts);
		uint8_t *wrong = &x.order[tl_range(&r, 0, n - 1)][tl_range(&r, 0, hosts - 1)];

		/* Any other number is that of another host, or of no host. */
		*wrong = (uint8_t)(*wrong + tl_range(&r, 1, 255));
		refused(&x);
	}
}
END_TEST

START_TEST(shares_are_those_of_the_rings)
{
	struct cc_rings x = {.n = 2, .share = {7, 65535, 3, 1}};
	struct cc_shares s = cc_rings_shares(&x);
	const struct cc_shares all = {{0x0102, 0x0304, 0x0506, 0xf708}};

	ck_assert(s.of[0] == 7 && s.of[1] == 65535 && s.of[2] == 0 && s.of[3] == 0);
	ck_assert_uint_eq(cc_shares_pack(&s), UINT64_C(0xffff0007));
	s = cc_rings_shares(NULL);
	ck_assert_uint_eq(cc_shares_pack(&s), 0);
	ck_assert_uint_eq(cc_shares_pack(&all), UINT64_C(0xf708050603040102));
	s = cc_shares_unpack(UINT64_C(0xf708050603040102));
	ck_assert_uint_eq(cc_shares_pack(&s), UINT64_C(0xf708050603040102));
}
END_TEST

Suite *rings_suite(void)
{
	Suite *s = suite_create("rings");
	TCase *tc = tcase_create("rings");

	tcase_add_test(tc, orders_of_all_hosts_are_inverted);
	tcase_add_test(tc, numbers_beyond_the_limits_are_refused);
	tcase_add_test(tc, order_must_have_each_host_once);
	tcase_add_test(tc, shares_are_those_of_the_rings);
	suite_add_tcase(s, tc);
	return s;
}
