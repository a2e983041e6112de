/* SPDX-License-Identifier: MIT
 *
 * Internet socket addresses as plain values, and their text form. Pure: no name look-up.
 */
#ifndef CC_ADDR_H
#define CC_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;
struct sockaddr_storage;

enum cc_family { CC_INET4 = 4, CC_INET6 = 6 };

struct cc_addr {
	uint8_t family; /* enum cc_family; 0: no address */
	uint8_t ip[16]; /* network order; IPv4 uses the first four bytes, the rest is zero */
	uint16_t port;  /* host order */
};

#define CC_ADDR_STR_SIZE 56 /* "[ipv6]:port" and NUL */

/* "1.2.3.4:48148", "[::1]:48148"; without ":port" the default_port is used. 0 or CC_ERR_INVAL. */
int cc_addr_parse(const char *text, uint16_t default_port, struct cc_addr *ret);
/* Writes "ip:port" or "[ip]:port" and returns buf. */
const char *cc_addr_str(const struct cc_addr *a, char buf[CC_ADDR_STR_SIZE]);
/* Same family, bytes and port. */
bool cc_addr_eq(const struct cc_addr *a, const struct cc_addr *b);
/* 127.0.0.0/8, ::1. */
bool cc_addr_is_loopback(const struct cc_addr *a);
/* 0.0.0.0 or ::. */
bool cc_addr_is_any(const struct cc_addr *a);
/* fe80::/10. It takes an interface beside it, which is no part of an address here. */
bool cc_addr_is_link_local(const struct cc_addr *a);
/* Why there is no connection to a, for a sentence behind the address; NULL if there may be one, if
 * only within this host. */
const char *cc_addr_flaw(const struct cc_addr *a);
/* IPv4-mapped IPv6 addresses become IPv4. 0 or CC_ERR_INVAL for another address family. */
int cc_addr_from_sockaddr(const struct sockaddr *sa, struct cc_addr *ret);
/* Returns the length to give to bind() or connect(). */
unsigned cc_addr_to_sockaddr(const struct cc_addr *a, struct sockaddr_storage *ret);

#endif
