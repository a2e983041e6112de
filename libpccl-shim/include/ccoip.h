/* SPDX-License-Identifier: MIT
 *
 * The default TCP ports of a run. Other hosts must reach the last three ports of each host,
 * whatever the number of its peers. All hosts must reach the first port on the host of the master.
 * If a port is in use, an agent takes the next free port above it and reports this port to the
 * master.
 */
#ifndef CCOIP_H
#define CCOIP_H

#include "ccoip_inet.h"

#define CCOIP_PROTOCOL_PORT_MASTER              48148 /* the master, for every agent of the run */
#define CCOIP_PROTOCOL_PORT_SHARED_STATE        48149 /* agent: transfer of shared state */
#define CCOIP_PROTOCOL_PORT_P2P                 48150 /* agent: data of collective operations */
#define CCOIP_PROTOCOL_PORT_BANDWIDTH_BENCHMARK 48151 /* agent: bandwidth measurements */

#endif
