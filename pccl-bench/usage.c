/* SPDX-License-Identifier: MIT */
#include "pccl-bench/usage.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/cc_options.h"

uint64_t bch_usage_cpu_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t bch_usage_memory(pid_t pid)
{
	char path[64], line[256], *number;
	uint64_t kib = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (!kib && fgets(line, sizeof line, f)) {
		if (strncmp(line, "Pss:", 4) != 0)
			continue;
		number = line + 4 + strspn(line + 4, " \t");
		number[strcspn(number, " ")] = '\0';
		if (!cc_opt_number(number, 0, UINT64_MAX / 1024, &kib))
			break;
	}
	fclose(f);
	return kib * 1024;
}
