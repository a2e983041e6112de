/* SPDX-License-Identifier: MIT */
#include "pcclagentd/inherited.h"

#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CPUS_MAX 8192u

/* The kernel takes those of them that the cgroup allows. */
static void use_all_processors(void)
{
	unsigned char all[CPUS_MAX / 8];

	memset(all, 0xff, sizeof all);
	(void)sched_setaffinity(0, sizeof all, (const cpu_set_t *)(const void *)all);
	(void)syscall(SYS_set_mempolicy, 0 /* MPOL_DEFAULT */, NULL, 0ul);
}

static void use_normal_priority(void)
{
	const struct sched_param normal = {0};

	(void)sched_setscheduler(0, SCHED_OTHER, &normal);
	(void)setpriority(PRIO_PROCESS, 0, 0);
	(void)syscall(SYS_ioprio_set, 1 /* IOPRIO_WHO_PROCESS */, 0, 0);
	(void)prctl(PR_SET_TIMERSLACK, 0ul, 0ul, 0ul, 0ul);
}

/* The size of stacks is for programs that are started, and core dumps are the user's choice. */
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
	raise_limits(); /* that of nice levels among them */
	use_normal_priority();
	use_all_processors();
	umask(077);
	(void)!chdir("/");
}
