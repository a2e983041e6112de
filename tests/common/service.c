/* SPDX-License-Identifier: MIT
 *
 * Tests the messages from a daemon to the service manager. The test plays the manager.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cc_service.h"
#include "tests/common/suites.h"
#include "tests/common/testlib.h"

static int manager = -1;

static void listen_to_daemon(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	socklen_t len = sizeof sun;
	char name[sizeof sun.sun_path + 1];

	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(manager, 0);
	/* The kernel chooses an abstract name, to which no file belongs. NOTIFY_SOCKET has @ at the
	 * start of such a name. */
	ck_assert_int_eq(bind(manager, (struct sockaddr *)&sun, sizeof(sa_family_t)), 0);
	ck_assert_int_eq(getsockname(manager, (struct sockaddr *)&sun, &len), 0);
	snprintf(
		name, sizeof name, "@%.*s", (int)(len - sizeof(sa_family_t) - 1), sun.sun_path + 1);
	ck_assert_int_eq(setenv("NOTIFY_SOCKET", name, 1), 0);
	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
}

static void forget_daemon(void)
{
	close(manager);
}

#ifdef HAVE_SYSTEMD
static void assert_heard(const char *text)
{
	char buf[256];
	ssize_t n = recv(manager, buf, sizeof buf - 1, MSG_DONTWAIT);

	ck_assert_int_ge(n, 0);
	buf[n] = 0;
	ck_assert_str_eq(buf, text);
}

START_TEST(state_and_status_reach_the_service_manager)
{
	cc_service_notify(CC_SERVICE_READY, "2 agents, 100% well");
	assert_heard("READY=1\nSTATUS=2 agents, 100% well");
	cc_service_notify(CC_SERVICE_ALIVE, "3 agents");
	assert_heard("WATCHDOG=1\nSTATUS=3 agents");
	cc_service_notify(CC_SERVICE_STOPPING, NULL);
	assert_heard("STOPPING=1");
}
END_TEST

START_TEST(notifications_come_twice_per_watchdog_period)
{
	ck_assert_uint_eq(cc_service_interval_ms(), 5000); /* without a watchdog */
	setenv("WATCHDOG_USEC", "3000000", 1);
	ck_assert_uint_eq(cc_service_interval_ms(), 1500);
	setenv("WATCHDOG_USEC", "60000000", 1);
	ck_assert_uint_eq(cc_service_interval_ms(), 5000);
	setenv("WATCHDOG_USEC", "5", 1);
	ck_assert_uint_eq(cc_service_interval_ms(), 1);
	setenv("WATCHDOG_PID", "1", 1); /* the watchdog is meant for another process */
	ck_assert_uint_eq(cc_service_interval_ms(), 5000);
}
END_TEST
#else
START_TEST(build_without_systemd_sends_no_notifications)
{
	char byte;

	setenv("WATCHDOG_USEC", "3000000", 1);
	ck_assert_uint_eq(cc_service_interval_ms(), 0);
	cc_service_notify(CC_SERVICE_READY, "2 agents");
	ck_assert_int_lt(recv(manager, &byte, 1, MSG_DONTWAIT), 0);
}
END_TEST
#endif

START_TEST(without_a_manager_no_notification_is_due)
{
	unsetenv("NOTIFY_SOCKET");
	setenv("WATCHDOG_USEC", "3000000", 1);
	ck_assert_uint_eq(cc_service_interval_ms(), 0);
	cc_service_notify(CC_SERVICE_READY, "2 agents");
}
END_TEST

START_TEST(limit_of_open_files_is_raised_to_the_hard_limit)
{
	struct rlimit rl;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &rl), 0);
	rl.rlim_cur = 32;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &rl), 0);
	cc_service_raise_limits();
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &rl), 0);
	ck_assert_uint_eq(rl.rlim_cur, rl.rlim_max);
}
END_TEST

Suite *service_suite(void)
{
	Suite *s = suite_create("service");
	TCase *tc = tcase_create("service");

	tcase_add_checked_fixture(tc, listen_to_daemon, forget_daemon);
#ifdef HAVE_SYSTEMD
	tcase_add_test(tc, state_and_status_reach_the_service_manager);
	tcase_add_test(tc, notifications_come_twice_per_watchdog_period);
#else
	tcase_add_test(tc, build_without_systemd_sends_no_notifications);
#endif
	tcase_add_test(tc, without_a_manager_no_notification_is_due);
	tcase_add_test(tc, limit_of_open_files_is_raised_to_the_hard_limit);
	suite_add_tcase(s, tc);
	return s;
}
