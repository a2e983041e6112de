/* SPDX-License-Identifier: MIT
 *
 * The benchmark service. It refuses all requests, because this release measures nothing.
 */
#include "pcclagentd/ops/ops_internal.h"

static void refuse(void *arg, struct net_guest *g)
{
	(void)arg;
	net_guest_refuse(g, WLK_REFUSED_SERVICE,
		"this release of the agent does not offer this service yet");
}

const struct net_service op_benchmark = {.id = WLK_BENCHMARK, .accept = refuse};
