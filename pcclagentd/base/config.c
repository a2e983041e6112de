/* SPDX-License-Identifier: MIT */
#include "pcclagentd/base/config.h"

#include <inttypes.h>
#include <sys/sysinfo.h>

#include "common/cc_log.h"
#include "common/cc_memory.h"

void agentd_config_init(struct agentd_config *c)
{
	*c = (struct agentd_config){
		.session_fd = -1,
		.admin_fd = -1,
		.bind = {.family = CC_INET6},
		.port_shared_state = 48149,
		.port_p2p = 48150,
		.port_benchmark = 48151,
		.sessions_per_user = 1024,
		.comms_per_user = 1024,
		.connect_timeout_ms = 10000,
		.place_timeout_ms = 1000,
		.master_grace_ms = 60000,
		.stopped_timeout_ms = 10000,
		.beat_timeout_ms = 3000,
		.hash_type = WM_HASH_SIMPLE,
	};
}

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
			"%s is %" PRIu64 " MiB: half of it is what may be shared, where mem_total "
			"or mem_per_user does not say otherwise",
			where, cgroup >> 20);
	}
	if (c->mem_own == 0)
		c->mem_own = cgroup / 2;
	if (c->mem_total == 0)
		c->mem_total = half;
	if (c->mem_per_user == 0)
		c->mem_per_user = half;
}
