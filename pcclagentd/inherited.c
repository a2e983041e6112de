/* SPDX-License-Identifier: MIT */
#include "pcclagentd/inherited.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cc_log.h"

#define CPUS_MAX       8192u
#define STACK_BYTES    ((rlim_t)8 << 20) /* the kernel's defaults of stack size and timer slack */
#define TIMER_SLACK_NS 50000ul

/* The settings that cannot be changed, for the log. The text of each setting begins with "; ". */
struct kept {
	char text[512];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void keep(struct kept *k, const char *fmt, ...)
{
	size_t room = sizeof k->text - k->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(k->text + k->len, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		k->len += (size_t)n < room ? (size_t)n : room - 1;
}

/* Unpins this process from its CPUs. The kernel takes the CPUs that the cgroup allows. */
static void use_all_processors(struct kept *k)
{
	unsigned char cpus[CPUS_MAX / 8];
	long online = sysconf(_SC_NPROCESSORS_ONLN), n = 0;
	cpu_set_t *set = (cpu_set_t *)(void *)cpus;

	memset(cpus, 0xff, sizeof cpus);
	(void)sched_setaffinity(0, sizeof cpus, set);
	(void)syscall(SYS_set_mempolicy, 0 /* MPOL_DEFAULT */, NULL, 0ul);
	if (sched_getaffinity(0, sizeof cpus, set) == 0)
		n = CPU_COUNT_S(sizeof cpus, set);
	if (n > 0 && n < online)
		keep(k, "; %ld of %ld CPUs (as its cgroup allows)", n, online);
}

/* Sets the lowest nice value from 0 up that the system allows. */
static void use_normal_nice(struct kept *k)
{
	int had = getpriority(PRIO_PROCESS, 0), nice = 0;

	while (setpriority(PRIO_PROCESS, 0, nice) < 0 && nice < had)
		nice++;
	if (nice > 0)
		keep(k, "; nice %d (it gets a smaller share of busy CPUs; raise RLIMIT_NICE)",
			nice);
}

/* Resets the scheduling. A process can leave SCHED_IDLE only if the system allows it to set its
 * present nice value. */
static void use_normal_scheduling(struct kept *k)
{
	const struct sched_param normal = {0};

	if (sched_setscheduler(0, SCHED_OTHER, &normal) < 0)
		keep(k, "; %s (it runs when no other thread needs the CPU; raise RLIMIT_NICE)",
			sched_getscheduler(0) == SCHED_IDLE ? "SCHED_IDLE" : "its scheduling");
	(void)syscall(SYS_ioprio_set, 1 /* IOPRIO_WHO_PROCESS */, 0, 0);
	(void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0ul, 0ul, 0ul);
	(void)prctl(PR_SET_THP_DISABLE, 0ul, 0ul, 0ul, 0ul);
}

/* Lowers oom_score_adj to 0, or to the lowest value that the system allows. A value below 0 is a
 * protection that a privileged process has set, so it stays. A value above 0 can only be lowered to
 * the value that a privileged process has set last. The kernel does not show this limit, so it is
 * found by trying. */
static void be_killed_no_earlier(struct kept *k)
{
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC), low = 0, high;
	char text[16] = "";

	if (fd < 0)
		return;
	high = read(fd, text, sizeof text - 1) > 0 ? (int)strtol(text, NULL, 10) : 0;
	while (low < high) {
		int middle = (low + high) / 2, n = snprintf(text, sizeof text, "%d", middle);

		if (pwrite(fd, text, (size_t)n, 0) == n)
			high = middle;
		else
			low = middle + 1;
	}
	close(fd);
	if (high > 0)
		keep(k, "; oom_score_adj %d (it is killed early when memory runs out)", high);
}

/* Sets the usual stack size. Threads get stacks of the size that the limit had at the start of the
 * program, so the default size of their stacks is changed as well. */
static void have_usual_stacks(void)
{
	pthread_attr_t attr;
	struct rlimit rl;

	if (getrlimit(RLIMIT_STACK, &rl) < 0 || rl.rlim_cur == STACK_BYTES)
		return;
	rl.rlim_cur = rl.rlim_max < STACK_BYTES ? rl.rlim_max : STACK_BYTES;
	(void)setrlimit(RLIMIT_STACK, &rl);
	if (pthread_attr_init(&attr) != 0)
		return;
	if (pthread_attr_setstacksize(&attr, STACK_BYTES) == 0)
		(void)pthread_setattr_default_np(&attr);
	pthread_attr_destroy(&attr);
}

/* Raises the soft limits to the hard limits, except those of core dumps (the user's choice) and
 * stacks. */
static void raise_limits(void)
{
	for (int i = 0; i < (int)RLIM_NLIMITS; i++) {
		__rlimit_resource_t what = (__rlimit_resource_t)i;
		struct rlimit rl;

		if (i == RLIMIT_STACK || i == RLIMIT_CORE || getrlimit(what, &rl) < 0 ||
			rl.rlim_cur == rl.rlim_max)
			continue;
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(what, &rl);
	}
}

void inherited_shed(void)
{
	struct kept kept = {.len = 0};

	have_usual_stacks();
	raise_limits(); /* also the limit of nice levels, which the next call needs */
	use_normal_nice(&kept);
	use_normal_scheduling(&kept);
	use_all_processors(&kept);
	be_killed_no_earlier(&kept);
	umask(077);
	(void)!chdir("/");
	if (kept.len > 2)
		cc_log(CC_LOG_NOTICE,
			"this agent inherits from the trainer that started it: %s; "
			"pccl-agent.service inherits none of this",
			kept.text + 2);
}
