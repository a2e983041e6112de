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

/* Parses "1.2.3.4:48148" or "[::1]:48148". Uses default_port if the text has no ":port". Returns 0
 * or CC_ERR_INVAL. */
int cc_addr_parse(const char *text, uint16_t default_port, struct cc_addr *ret);
/* Writes "ip:port" or "[ip]:port" into buf and returns buf. */
const char *cc_addr_str(const struct cc_addr *a, char buf[CC_ADDR_STR_SIZE]);
/* Returns whether the family, the bytes and the port are equal. */
bool cc_addr_eq(const struct cc_addr *a, const struct cc_addr *b);
/* Returns whether the address is in 127.0.0.0/8 or is ::1. */
bool cc_addr_is_loopback(const struct cc_addr *a);
/* Returns whether the address is 0.0.0.0 or ::. */
bool cc_addr_is_any(const struct cc_addr *a);
/* Returns whether the address is in fe80::/10. Such an address is usable only together with the
 * name of an interface, which struct cc_addr does not contain. */
bool cc_addr_is_link_local(const struct cc_addr *a);
/* Returns the reason why nobody can connect to the address, as a text that follows the address in a
 * sentence. Returns NULL if a connection is possible, even if only within this host. */
const char *cc_addr_flaw(const struct cc_addr *a);
/* Converts a socket address. An IPv4-mapped IPv6 address becomes IPv4. Returns 0, or CC_ERR_INVAL
 * for another address family. */
int cc_addr_from_sockaddr(const struct sockaddr *sa, struct cc_addr *ret);
/* Converts to a socket address. Returns its length for bind() or connect(). */
unsigned cc_addr_to_sockaddr(const struct cc_addr *a, struct sockaddr_storage *ret);

#endif
