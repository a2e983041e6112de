/* SPDX-License-Identifier: MIT
 *
 * Internet addresses as plain values, for the functions of pccl.h.
 *
 * The caller fills in the address; names are not looked up. 192.168.0.7, port 48148:
 *
 *	ccoip_socket_address_t a = {
 *		.inet = {.protocol = inetIPv4, .ipv4 = {{192, 168, 0, 7}}},
 *		.port = 48148,
 *	};
 *
 * Layouts are part of the binary interface and never change.
 */
#ifndef CCOIP_INET_H
#define CCOIP_INET_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Selects one of the two address fields of ccoip_inet_address_t. */
typedef enum ccoip_inet_protocol_t { inetIPv4 = 0, inetIPv6 = 1 } ccoip_inet_protocol_t;

/* An IPv4 address; data[0] is the first number of the dotted form (192 in 192.168.0.7). */
typedef struct ccoip_ipv4_address_t {
	uint8_t data[4];
} ccoip_ipv4_address_t;

/* An IPv6 address; data[0] is the first byte on the wire (0xfd in fd00::1). */
typedef struct ccoip_ipv6_address_t {
	uint8_t data[16];
} ccoip_ipv6_address_t;

/* An address of either kind. The field that `protocol` does not name is ignored. */
typedef struct ccoip_inet_address_t {
	ccoip_inet_protocol_t protocol;
	ccoip_ipv4_address_t ipv4; /* read when protocol is inetIPv4 */
	ccoip_ipv6_address_t ipv6; /* read when protocol is inetIPv6 */
} ccoip_inet_address_t;

/* An address and a TCP port. */
typedef struct ccoip_socket_address_t {
	ccoip_inet_address_t inet;
	uint16_t port; /* in host byte order: write 48148, not htons(48148) */
} ccoip_socket_address_t;

#ifdef __cplusplus
}
#endif

#endif
