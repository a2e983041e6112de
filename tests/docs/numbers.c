/* SPDX-License-Identifier: MIT
 *
 * Prints the numbers of pccl(7) as the code has them, for test_numbers.py: "limit ROW = N", "bound
 * ROW = MS", and "words TEXT" for texts that the page must contain.
 */
#include <stdio.h>

#include "ccoip-masterd/core/ccm_internal.h"
#include "common/cc_bounds.h"
#include "common/cc_sys.h"
#include "libpccl-shim/backlog.h"
#include "libpccl-shim/reconnector.h"
#include "pcclagentd/agentd.h"
#include "pcclagentd/engine/engine.h"
#include "pcclagentd/options.h"
#include "pcclagentd/state/state.h"
#include "proto/shm_queue.h"
#include "proto/wire_limits.h"
#include "proto/wire_sync.h"

static void limit(const char *row, uint64_t n)
{
	printf("limit %s = %ju\n", row, (uintmax_t)n);
}

static void bound(const char *row, uint32_t ms)
{
	printf("bound %s = %u\n", row, ms);
}

static void limits(const struct agentd_config *agent, const struct ccm_config *master)
{
	limit("Bytes of an all-reduce", WIRE_COUNT_MAX);
	limit("Bytes of a shared state", WIRE_STATE_MAX);
	limit("Tensors of a shared state", WIRE_TENSORS_MAX);
	limit("Bytes of a tensor's name", WIRE_TENSOR_NAME_MAX);
	limit("Operations of one communicator at once", SHM_SLOTS - PCCL_SLOTS_KEPT);
	limit("Streams of one link", WM_POOL_MAX);
	limit("Addresses of one agent", WM_ADDRS_MAX);
	limit("Processes of one user on one host", agent->sessions_per_user);
	limit("Communicators of one user on one host", agent->comms_per_user);
	limit("Peers of one group on one host", WM_PEERS_MAX);
	limit("Groups with peers on one host", WM_RINGS_MAX);
	limit("Peers of one run on one host", CCM_AGENT_PEERS_MAX);
	limit("Peers of one run", master->max_peers);
	limit("Hosts of an optimization", CCM_OPTIMIZE_HOSTS_MAX);
	limit("Hosts of a plan of several rings", CC_ROUTE_HOSTS_MAX);
}

static void bounds(const struct agentd_config *agent, const struct ccm_config *master)
{
	const uint32_t *ms = master->bounds.ms;

	bound("Silent agent or master", master->timeout_ms);
	bound("Link to a silent host", ms[CC_BOUND_LINK]);
	bound("One silent stream", ms[CC_BOUND_STREAM]);
	bound("Sent and not arrived", ms[CC_BOUND_STREAM]);
	bound("Nothing is delivered", ms[CC_BOUND_STUCK]);
	bound("New link", ms[CC_BOUND_NEW_LINK]);
	bound("Round of new links", ms[CC_BOUND_ROUND]);
	bound("Search for a ring", CCM_SEARCH_MS(ms[CC_BOUND_ROUND]));
	bound("New link after silence", CCM_TRY_MS(ms[CC_BOUND_NEW_LINK]));
	bound("New stream of state", ms[CC_BOUND_ROUND]);
	bound("Silent source of state", ms[CC_BOUND_STUCK]);
	bound("Answer of a source", STE_ANSWERS * ms[CC_BOUND_STREAM]);
	bound("Source does not begin", ms[CC_BOUND_STREAM]);
	bound("Receiver takes nothing", STE_STALLS * ms[CC_BOUND_STREAM]);
	bound("Receiver asks nothing", STE_UNASKED * ms[CC_BOUND_STREAM]);
	bound("One address of master", agent->master_addr_timeout_ms);
	bound("All addresses of master", agent->connect_timeout_ms);
	bound("Run without its master", agent->master_lease_ms);
	bound("Peers without agent", master->agent_lease_ms);
	bound("Agents after takeover", master->recovery_ms);
	bound("Process does not answer", agent->beat_timeout_ms);
	bound("Stopped process", agent->stopped_timeout_ms);
}

static void words(const struct agentd_config *agent)
{
	printf("words PCCL_AGENT_LEASE_MS , %u seconds.\n", PCCL_LEASE_MS / 1000);
	printf("words that is above half a second, up to %u seconds.\n", CC_PATH_MAX_MS / 1000);
	_Static_assert(CC_PATH_MS == 500, "as the page says");
	_Static_assert(CC_TCP_SIZES == 3, "as the page says");
	_Static_assert(FLOW_STUCK_TRIES == 3, "as the page says");
	printf("words the kernel has repeated the packets three times.\n");
	_Static_assert(CCM_BREAKS_MAX == 3, "as the page says");
	printf("words If a link breaks during three operations in a row\n");
	printf("words lost after %u connections in a row\n", CCM_FLAPS_MAX);
	_Static_assert(CCM_FLAP_TIMES == 2, "as the page says");
	printf("words longer than twice host-timeout\n");
	printf("words TCP segments of at most %u,%03u bytes, and the link after that uses segments "
	       "of at most %u bytes.\n",
		cc_tcp_sizes[1] / 1000, cc_tcp_sizes[1] % 1000, cc_tcp_sizes[2]);
	printf("words three TCP ports, %u to %u by default.\n", agent->port_shared_state,
		agent->port_benchmark);
	printf("words the next free port of the %u above it.\n", AGENTD_PORT_BUMP);
}

int main(void)
{
	struct ccm *master = ccm_new(&(struct ccm_config){0});
	struct agentd_config agent;

	agentd_config_init(&agent);
	limits(&agent, &master->cfg);
	bounds(&agent, &master->cfg);
	words(&agent);
	ccm_free(master);
	return 0;
}
