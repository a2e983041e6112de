/* SPDX-License-Identifier: MIT
 *
 * Conversion of addresses of the public interface. Any thread.
 */
#ifndef PCCL_SHIM_ADDRESS_H
#define PCCL_SHIM_ADDRESS_H

#include "common/cc_addr.h"
#include "libpccl-shim/error.h"

/* Converts an address. Returns pcclInvalidArgument if the protocol is unknown, the port is 0, or
 * the address is link-local. */
pcclResult_t pccl_address_read(const ccoip_socket_address_t *from, struct cc_addr *ret);

#endif
