/* SPDX-License-Identifier: MIT
 *
 * The master's core: the addresses that agents get to reach each other.
 */
#include "tests/common/testlib.h"
#include "tests/master/fake.h"
#include "tests/master/suites.h"

static struct fk f;

static void setup(void)
{
	fk_init(&f, NULL);
}

static void teardown(void)
{
	fk_free(&f);
}

/* Returns the endpoint of an agent that connected from `from`, as the master sends it to an agent
 * that connected from `to`. */
static struct wm_endpoint endpoint_of(const char *from, const char *to, bool advertised)
{
	struct fk_host *a = fk_host(&f, "a", to), *b = fk_connect(&f, "b", from);
	struct wm_msg msg = fk_hello(b);
	struct wm_hello *x = &msg.u.hello;
	struct fk_peer q = fk_join(a, 0);

	x->advertised = advertised;
	x->n_addrs = 2;
	ck_assert_int_eq(cc_addr_parse("192.168.1.9", 0, &x->addrs[0]), 0);
	ck_assert_int_eq(cc_addr_parse("[fd00::9]:77", 0, &x->addrs[1]), 0);
	x->addrs[1].port = advertised ? 77 : 0;
	fk_send(b, &msg);
	(void)fk_join(b, 0);
	a->auto_report = b->auto_report = false;
	fk_topo(&q);
	ck_assert_uint_eq(a->round.rings[0].hosts, 2);
	return a->round.rings[0].next;
}

static void assert_addr(const struct wm_endpoint *e, uint32_t i, const char *text)
{
	char buf[CC_ADDR_STR_SIZE];

	ck_assert_uint_lt(i, e->n_addrs);
	ck_assert_str_eq(cc_addr_str(&e->addrs[i], buf), text);
}

START_TEST(agents_get_only_the_advertised_addresses)
{
	struct wm_endpoint e = endpoint_of("10.0.0.2", "10.0.0.1", true);

	ck_assert_str_eq(e.name, "b");
	ck_assert_uint_eq(e.port, 1002);
	ck_assert(!e.at_master);
	ck_assert_uint_eq(e.n_addrs, 2);
	assert_addr(&e, 0, "192.168.1.9:1002");
	assert_addr(&e, 1, "[fd00::9]:77");
}
END_TEST

START_TEST(source_address_of_an_agent_comes_first)
{
	struct wm_endpoint e = endpoint_of("10.0.0.2", "10.0.0.1", false);

	ck_assert(!e.at_master);
	ck_assert_uint_eq(e.n_addrs, 3);
	assert_addr(&e, 0, "10.0.0.2:1002");
	assert_addr(&e, 1, "192.168.1.9:1002");
	assert_addr(&e, 2, "[fd00::9]:1002");
}
END_TEST

START_TEST(no_address_is_handed_out_twice)
{
	struct wm_endpoint e = endpoint_of("192.168.1.9", "10.0.0.1", false);

	ck_assert_uint_eq(e.n_addrs, 2);
}
END_TEST

START_TEST(agent_that_connects_over_loopback_is_on_the_masters_host)
{
	struct wm_endpoint e = endpoint_of("127.0.0.1", "10.0.0.1", false);

	ck_assert(e.at_master);
	ck_assert_uint_eq(e.n_addrs, 2);
	assert_addr(&e, 0, "192.168.1.9:1002");
}
END_TEST

START_TEST(two_agents_on_loopback_use_loopback)
{
	struct wm_endpoint e = endpoint_of("::1", "127.0.0.1", false);

	ck_assert(e.at_master);
	ck_assert_uint_eq(e.n_addrs, 3);
	assert_addr(&e, 0, "[::1]:1002");
}
END_TEST

Suite *endpoints_suite(void)
{
	Suite *s = suite_create("endpoints");
	TCase *tc = tcase_create("endpoints");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, agents_get_only_the_advertised_addresses);
	tcase_add_test(tc, source_address_of_an_agent_comes_first);
	tcase_add_test(tc, no_address_is_handed_out_twice);
	tcase_add_test(tc, agent_that_connects_over_loopback_is_on_the_masters_host);
	tcase_add_test(tc, two_agents_on_loopback_use_loopback);
	suite_add_tcase(s, tc);
	return s;
}
