/* SPDX-License-Identifier: MIT
 *
 * The TCP ports that a run uses unless it is configured otherwise. One host needs the last three
 * reachable from the other hosts, however many peers run on it; the first one is needed where the
 * master runs. When a port is taken, an agent uses the next free one above it and tells the master.
 */
#ifndef CCOIP_H
#define CCOIP_H

#include "ccoip_inet.h"

#define CCOIP_PROTOCOL_PORT_MASTER              48148 /* the master, for every agent of the run */
#define CCOIP_PROTOCOL_PORT_SHARED_STATE        48149 /* agent: transfer of shared state */
#define CCOIP_PROTOCOL_PORT_P2P                 48150 /* agent: data of collective operations */
#define CCOIP_PROTOCOL_PORT_BANDWIDTH_BENCHMARK 48151 /* agent: bandwidth measurements */

#endif
