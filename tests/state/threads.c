/* SPDX-License-Identifier: MIT
 *
 * The threads of the shared-state engine: the worker pool, and the end of all threads.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "tests/state/host.h"
#include "tests/state/suites.h"

/* Returns the number of pool threads in this process. */
static unsigned pool_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *d;
	unsigned found = 0;

	while ((d = readdir(dir))) {
		char path[64], name[32] = "";
		FILE *f;

		snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", d->d_name);
		f = fopen(path, "r");
		if (f && fgets(name, sizeof name, f))
			found += strcmp(name, "pccl-state-copy\n") == 0;
		if (f)
			fclose(f);
	}
	closedir(dir);
	return found;
}

/* The job copies with pool threads (_i 1, 2) or without (0). The pool threads end after the copies,
 * while the job still serves others. */
START_TEST(pool_copies_between_registered_tensors)
{
	struct ste_event ev;
	struct shape s;
	struct net n;

	net_pool = _i == 0 ? STE_NO_POOL : _i == 1 ? 1 : 3;
	shape_two(&s, 40 << 20);
	net_up(&n, 1);
	member_add(&n.h[0], &s, true, REGISTERED);
	member_add(&n.h[0], &s, false, REGISTERED);
	member_add(&n.h[0], &s, false, MIXED);
	host_hash(&n.h[0]);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	net_expect(&n, 0, STE_DONE);
	for (uint32_t i = 0; i < 3; i++)
		member_check(&n.h[0].m[i]);
	ck_assert_uint_eq(host_view(&n.h[0], 0).tx_bytes, 2 * shape_bytes(&s));
	ck_assert_uint_eq(host_view(&n.h[0], 1).rx_bytes, shape_bytes(&s));
	ck_assert_uint_eq(host_view(&n.h[0], 2).rx_bytes, shape_bytes(&s));
	if (_i == 0)
		ck_assert_uint_eq(ste_copied(n.h[0].e), 0);
	else
		ck_assert_uint_gt(ste_copied(n.h[0].e), 0);
	for (int i = 0; i < WAIT_MS / 10 && pool_threads() > 0; i++)
		ck_assert(!net_event(&n, UINT32_MAX, &ev, 10));
	ck_assert_uint_eq(pool_threads(), 0);
	ck_assert(ste_is_running(n.h[0].e));
	net_cancel(&n, 0);
	net_end(&n, &s);
}
END_TEST

/* Pool threads check their copies against the hashes. */
START_TEST(pool_verifies_its_copies)
{
	struct ste_event ev;
	struct shape s;
	struct net n;

	net_pool = 2;
	shape_one(&s, 8 << 20);
	net_up(&n, 1);
	member_add(&n.h[0], &s, true, REGISTERED);
	member_add(&n.h[0], &s, false, REGISTERED);
	host_hash(&n.h[0]);
	n.h[0].m[0].data[0][5 << 20] ^= 1;
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	ck_assert(net_event(&n, 0, &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, STE_FAILED);
	ck_assert_uint_gt(ste_copied(n.h[0].e), 0);
	ck_assert(host_view(&n.h[0], 0).failed);
	ck_assert_str_eq(host_view(&n.h[0], 0).text,
		"tensor \"tensor00000000\" changed during the call: it does not match its hashes");
	ck_assert(!host_view(&n.h[0], 1).complete);
	net_end(&n, &s);
}
END_TEST

/* The engine's thread ends when it has nothing to do, and starts again for the next job. */
START_TEST(engine_thread_ends_when_idle)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	shape_one(&s, 100);
	net_newcomer(&n, &s, 1, OWN, OWN, src);
	ck_assert(!ste_is_running(n.h[0].e));
	for (int round = 0; round < 2; round++) {
		struct ste_event ev;

		host_start(&n.h[1], SEQ, &s, NULL, 0);
		net_expect(&n, 1, STE_DONE);
		host_start(&n.h[0], SEQ, &s, src, 1);
		net_expect(&n, 0, STE_DONE);
		ck_assert(ste_is_running(n.h[0].e));
		net_cancel(&n, 0);
		net_cancel(&n, 1);
		for (int i = 0; i < 200 && ste_is_running(n.h[0].e); i++) {
			ste_tick(n.h[0].e);
			net_event(&n, UINT32_MAX, &ev, 10);
		}
		ck_assert(!ste_is_running(n.h[0].e));
	}
	net_end(&n, &s);
}
END_TEST

Suite *threads_suite(void)
{
	Suite *s = suite_create("threads");
	TCase *tc = tcase_create("threads");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, pool_copies_between_registered_tensors, 0, 3);
	tcase_add_test(tc, pool_verifies_its_copies);
	tcase_add_test(tc, engine_thread_ends_when_idle);
	suite_add_tcase(s, tc);
	return s;
}
