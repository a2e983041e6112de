/* SPDX-License-Identifier: MIT */
#include "pcclagentd/base/config.h"

#include <inttypes.h>
#include <sys/sysinfo.h>

#include "common/cc_log.h"
#include "common/cc_memory.h"

void agentd_config_limits(struct agentd_config *c)
{
	char where[CC_MEMORY_WHERE];
	uint64_t half = (uint64_t)1 << 32, cgroup = cc_memory_cgroup("", where);
	struct sysinfo si;

	if (sysinfo(&si) == 0)
		half = (uint64_t)si.totalram * si.mem_unit / 2;
	if (cgroup / 2 < half && (c->mem_total == 0 || c->mem_per_user == 0)) {
		half = cgroup / 2;
		c->mem_of_cgroup = true;
		cc_log(CC_LOG_NOTICE,
			"%s is %" PRIu64 " MiB: half of it is the limit of shared memory, unless "
			"mem_total and mem_per_user are set",
			where, cgroup >> 20);
	}
	if (c->mem_own == 0)
		c->mem_own = cgroup / 2;
	if (c->mem_total == 0)
		c->mem_total = half;
	if (c->mem_per_user == 0)
		c->mem_per_user = half;
}
