/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/address.h"

#include <string.h>

pcclResult_t pccl_address_read(const ccoip_socket_address_t *from, struct cc_addr *ret)
{
	struct cc_addr a = {.port = from->port};
	char text[CC_ADDR_STR_SIZE];

	switch (from->inet.protocol) {
	case inetIPv4:
		a.family = CC_INET4;
		memcpy(a.ip, from->inet.ipv4.data, sizeof from->inet.ipv4.data);
		break;
	case inetIPv6:
		a.family = CC_INET6;
		memcpy(a.ip, from->inet.ipv6.data, sizeof from->inet.ipv6.data);
		break;
	default:
		return pccl_fail(pcclInvalidArgument,
			"inet.protocol must be inetIPv4 or inetIPv6, not %d",
			(int)from->inet.protocol);
	}
	if (a.port == 0)
		return pccl_fail(pcclInvalidArgument, "the port of the address is 0");
	if (cc_addr_is_link_local(&a))
		return pccl_fail(
			pcclInvalidArgument, "%s: %s", cc_addr_str(&a, text), cc_addr_flaw(&a));
	*ret = a;
	return pcclSuccess;
}
