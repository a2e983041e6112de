/* SPDX-License-Identifier: MIT */
#include "tests/common/looplib.h"

#include <signal.h>

struct cc_loop *loop;

void loop_setup(void)
{
	signal(SIGPIPE, SIG_IGN);
	loop = cc_loop_new();
	ck_assert_ptr_nonnull(loop);
}

void loop_teardown(void)
{
	cc_loop_free(loop);
}

void loop_stop(void *arg)
{
	(void)arg;
	cc_loop_stop(loop);
}

void loop_turn(void)
{
	struct cc_timer *t = cc_timer_new(loop, 1, loop_stop, NULL);

	ck_assert_int_eq(cc_loop_run(loop), 0);
	cc_timer_free(t);
}
