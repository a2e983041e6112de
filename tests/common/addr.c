/* SPDX-License-Identifier: MIT */
#include "common/cc_addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cc_err.h"
#include "tests/common/suites.h"
#include "tests/common/testlib.h"

#define DEFAULT_PORT 48148

static const struct {
	const char *text, *canonical;
	bool loopback, any;
} good[] = {
	{"1.2.3.4:5", "1.2.3.4:5", false, false},
	{"1.2.3.4", "1.2.3.4:48148", false, false},
	{"127.0.0.1:65535", "127.0.0.1:65535", true, false},
	{"127.255.0.9", "127.255.0.9:48148", true, false},
	{"0.0.0.0:0", "0.0.0.0:0", false, true},
	{"[::1]:48150", "[::1]:48150", true, false},
	{"[::]", "[::]:48148", false, true},
	{"::1", "[::1]:48148", true, false},
	{"2001:db8::7", "[2001:db8::7]:48148", false, false},
	{"[2001:DB8:0:0::7]:1", "[2001:db8::7]:1", false, false},
	{"[::ffff:10.0.0.1]:9", "10.0.0.1:9", false, false},
	{"::ffff:127.0.0.1", "127.0.0.1:48148", true, false},
	{"[2001:db8:1111:2222:3333:4444:5555:6666]:65535",
		"[2001:db8:1111:2222:3333:4444:5555:6666]:65535", false, false},
};

static const char *const bad[] = {
	"",
	":",
	":1",
	"1.2.3",
	"1.2.3.4:",
	"1.2.3.4:x",
	"1.2.3.4:65536",
	"1.2.3.4:-1",
	"1.2.3.4:99999999999999999999",
	"1.2.3.4: 1",
	"1.2.3.4.5",
	"localhost",
	"localhost:1",
	"[1.2.3.4]:1",
	"[::1",
	"[::1]x",
	"[::1]:",
	"[]",
	"[]:1",
	"::1]",
	"[::1%lo]:1",
	"1.2.3.256",
	"[2001:db8:1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa]:1",
	"2001:db8:1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb",
};

START_TEST(valid_addresses_are_parsed)
{
	struct cc_addr a, again;
	char buf[CC_ADDR_STR_SIZE];

	ck_assert_int_eq(cc_addr_parse(good[_i].text, DEFAULT_PORT, &a), 0);
	ck_assert_str_eq(cc_addr_str(&a, buf), good[_i].canonical);
	ck_assert_int_eq(cc_addr_is_loopback(&a), good[_i].loopback);
	ck_assert_int_eq(cc_addr_is_any(&a), good[_i].any);
	ck_assert_int_eq(cc_addr_parse(buf, 1, &again), 0);
	ck_assert(cc_addr_eq(&a, &again));
}
END_TEST

START_TEST(invalid_addresses_are_refused)
{
	struct cc_addr a, before;

	memset(&a, 0x5a, sizeof a);
	before = a;
	ck_assert_int_eq(cc_addr_parse(bad[_i], DEFAULT_PORT, &a), CC_ERR_INVAL);
	ck_assert(cc_addr_eq(&a, &before));
}
END_TEST

START_TEST(unreachable_addresses_have_a_reason)
{
	static const struct {
		const char *addr, *flaw;
	} cases[] = {{"10.0.0.1", NULL}, {"127.0.0.1", NULL}, {"::1", NULL}, {"fc00::1", NULL},
		{"2001:db8::1", NULL}, {"169.254.0.1", NULL}, {"fec0::1", NULL},
		{"ff02::1", "multicast"}, {"fe80::1", "link-local"}, {"febf::1", "link-local"},
		{"0.1.2.3", "no other host"}, {"::", "no other host"}, {"239.1.2.3", "multicast"},
		{"255.255.255.255", "broadcast"}};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *flaw;
		struct cc_addr a;

		ck_assert_int_eq(cc_addr_parse(cases[i].addr, 1, &a), 0);
		flaw = cc_addr_flaw(&a);
		if (cases[i].flaw)
			ck_assert_msg(flaw && strstr(flaw, cases[i].flaw), "%s", cases[i].addr);
		else
			ck_assert_msg(!flaw, "%s: %s", cases[i].addr, flaw);
	}
}
END_TEST

START_TEST(addresses_differ_if_family_bytes_or_port_differ)
{
	struct cc_addr a, b;

	ck_assert_int_eq(cc_addr_parse("1.2.3.4:5", 0, &a), 0);
	b = a;
	ck_assert(cc_addr_eq(&a, &b));
	b.port = 6;
	ck_assert(!cc_addr_eq(&a, &b));
	b = a;
	b.ip[3] = 9;
	ck_assert(!cc_addr_eq(&a, &b));
	b = a;
	b.family = CC_INET6;
	ck_assert(!cc_addr_eq(&a, &b));
}
END_TEST

START_TEST(empty_address_is_written_as_none)
{
	struct cc_addr a = {0};
	char buf[CC_ADDR_STR_SIZE];

	ck_assert_str_eq(cc_addr_str(&a, buf), "none");
	ck_assert(!cc_addr_is_any(&a));
	ck_assert(!cc_addr_is_loopback(&a));
}
END_TEST

START_TEST(addresses_survive_conversion_to_sockaddr)
{
	struct sockaddr_storage ss;
	struct cc_addr a, b;
	unsigned len;

	ck_assert_int_eq(cc_addr_parse(good[_i].text, DEFAULT_PORT, &a), 0);
	len = cc_addr_to_sockaddr(&a, &ss);
	if (a.family == CC_INET4) {
		ck_assert_uint_eq(len, sizeof(struct sockaddr_in));
		ck_assert_int_eq(ss.ss_family, AF_INET);
	} else {
		ck_assert_uint_eq(len, sizeof(struct sockaddr_in6));
		ck_assert_int_eq(ss.ss_family, AF_INET6);
	}
	ck_assert_int_eq(cc_addr_from_sockaddr((struct sockaddr *)&ss, &b), 0);
	ck_assert(cc_addr_eq(&a, &b));
}
END_TEST

START_TEST(mapped_ipv6_sockaddr_becomes_ipv4)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(77)};
	char buf[CC_ADDR_STR_SIZE];
	struct cc_addr a;

	ck_assert_int_eq(inet_pton(AF_INET6, "::ffff:192.0.2.1", &in6.sin6_addr), 1);
	ck_assert_int_eq(cc_addr_from_sockaddr((struct sockaddr *)&in6, &a), 0);
	ck_assert_str_eq(cc_addr_str(&a, buf), "192.0.2.1:77");
}
END_TEST

START_TEST(sockaddr_of_another_family_is_refused)
{
	struct sockaddr sa = {.sa_family = AF_UNIX};
	struct cc_addr a;

	ck_assert_int_eq(cc_addr_from_sockaddr(&sa, &a), CC_ERR_INVAL);
}
END_TEST

Suite *addr_suite(void)
{
	Suite *s = suite_create("addr");
	TCase *tc = tcase_create("addr");
	int n_good = (int)(sizeof good / sizeof good[0]);

	tcase_add_loop_test(tc, valid_addresses_are_parsed, 0, n_good);
	tcase_add_loop_test(
		tc, invalid_addresses_are_refused, 0, (int)(sizeof bad / sizeof bad[0]));
	tcase_add_test(tc, addresses_differ_if_family_bytes_or_port_differ);
	tcase_add_test(tc, unreachable_addresses_have_a_reason);
	tcase_add_test(tc, empty_address_is_written_as_none);
	tcase_add_loop_test(tc, addresses_survive_conversion_to_sockaddr, 0, n_good);
	tcase_add_test(tc, mapped_ipv6_sockaddr_becomes_ipv4);
	tcase_add_test(tc, sockaddr_of_another_family_is_refused);
	suite_add_tcase(s, tc);
	return s;
}
