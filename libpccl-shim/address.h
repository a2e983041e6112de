/* SPDX-License-Identifier: MIT
 *
 * Addresses of the public interface as plain values. Any thread.
 */
#ifndef PCCL_SHIM_ADDRESS_H
#define PCCL_SHIM_ADDRESS_H

#include "common/cc_addr.h"
#include "libpccl-shim/error.h"

/* pcclInvalidArgument with a sentence if the protocol is none or the port is 0. */
pcclResult_t pccl_address_read(const ccoip_socket_address_t *from, struct cc_addr *ret);

#endif
