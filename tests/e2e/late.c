/* SPDX-License-Identifier: MIT
 *
 * This library is preloaded into a master. When the thread that looks for better rings has read the
 * clock LATE_LOOKS times, a second passes for it at once. The thread reads the clock before each
 * step, so the time for its first answer is over after the same step on each machine. From then on
 * it waits whenever it reads the clock, as long as the file LATE_HOLD exists.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS 1000000

static _Thread_local long looks;

static int look(clockid_t clock, struct timespec *ret)
{
	return (int)syscall(SYS_clock_gettime, clock, ret);
}

static void wait_while_held(const char *path)
{
	struct timespec pause = {.tv_nsec = POLL_NS};

	while (path && access(path, F_OK) == 0)
		nanosleep(&pause, NULL);
}

int clock_gettime(clockid_t clock_id, struct timespec *tp)
{
	const char *last = getenv("LATE_LOOKS");
	int result;

	if (clock_id != CLOCK_MONOTONIC || !last || syscall(SYS_gettid) == getpid())
		return look(clock_id, tp);
	if (looks < atol(last)) {
		looks++;
		return look(clock_id, tp);
	}
	if (looks == atol(last))
		looks++;
	else
		wait_while_held(getenv("LATE_HOLD"));
	result = look(clock_id, tp);
	tp->tv_sec++;
	return result;
}
