/* SPDX-License-Identifier: MIT */
#include "common/cc_addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cc_err.h"

static const uint8_t mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* Stores an IPv4-mapped address as IPv4, so that one machine does not have two addresses that
 * differ only in their notation. */
static void set_ip6(struct cc_addr *a, const void *ip)
{
	const uint8_t *b = ip;

	memset(a->ip, 0, sizeof a->ip);
	if (memcmp(b, mapped_prefix, sizeof mapped_prefix) == 0) {
		a->family = CC_INET4;
		memcpy(a->ip, b + sizeof mapped_prefix, 4);
	} else {
		a->family = CC_INET6;
		memcpy(a->ip, b, 16);
	}
}

static void set_ip4(struct cc_addr *a, const void *ip)
{
	memset(a->ip, 0, sizeof a->ip);
	a->family = CC_INET4;
	memcpy(a->ip, ip, 4);
}

static int parse_port(const char *s, uint16_t *ret)
{
	uint32_t v = 0;

	if (*s == '\0')
		return CC_ERR_INVAL;
	for (; *s != '\0'; s++) {
		if (*s < '0' || *s > '9')
			return CC_ERR_INVAL;
		v = v * 10 + (uint32_t)(*s - '0');
		if (v > UINT16_MAX)
			return CC_ERR_INVAL;
	}
	*ret = (uint16_t)v;
	return 0;
}

/* Finds the host part of text and the beginning of its port (NULL if there is no port). */
static int split(
	const char *text, const char **ret_host, size_t *ret_host_len, const char **ret_port)
{
	const char *colon = strchr(text, ':');
	const char *end;

	*ret_port = NULL;
	if (text[0] == '[') {
		end = strchr(text, ']');
		if (end == NULL)
			return CC_ERR_INVAL;
		*ret_host = text + 1;
		*ret_host_len = (size_t)(end - text - 1);
		if (end[1] == ':')
			*ret_port = end + 2;
		else if (end[1] != '\0')
			return CC_ERR_INVAL;
		return 0;
	}
	*ret_host = text;
	*ret_host_len = strlen(text);
	/* More than one colon without brackets is a bare IPv6 address. */
	if (colon != NULL && strchr(colon + 1, ':') == NULL) {
		*ret_host_len = (size_t)(colon - text);
		*ret_port = colon + 1;
	}
	return 0;
}

int cc_addr_parse(const char *text, uint16_t default_port, struct cc_addr *ret)
{
	struct cc_addr a = {.port = default_port};
	char host[CC_ADDR_STR_SIZE];
	const char *start, *port;
	unsigned char ip[16];
	size_t len;

	if (split(text, &start, &len, &port) != 0 || len >= sizeof host)
		return CC_ERR_INVAL;
	memcpy(host, start, len);
	host[len] = '\0';
	if (text[0] != '[' && inet_pton(AF_INET, host, ip) == 1)
		set_ip4(&a, ip);
	else if (inet_pton(AF_INET6, host, ip) == 1)
		set_ip6(&a, ip);
	else
		return CC_ERR_INVAL;
	if (port != NULL && parse_port(port, &a.port) != 0)
		return CC_ERR_INVAL;
	*ret = a;
	return 0;
}

const char *cc_addr_str(const struct cc_addr *a, char buf[CC_ADDR_STR_SIZE])
{
	char ip[INET6_ADDRSTRLEN];

	if (a->family == CC_INET4 && inet_ntop(AF_INET, a->ip, ip, sizeof ip) != NULL)
		snprintf(buf, CC_ADDR_STR_SIZE, "%s:%u", ip, a->port);
	else if (a->family == CC_INET6 && inet_ntop(AF_INET6, a->ip, ip, sizeof ip) != NULL)
		snprintf(buf, CC_ADDR_STR_SIZE, "[%s]:%u", ip, a->port);
	else
		snprintf(buf, CC_ADDR_STR_SIZE, "none");
	return buf;
}

bool cc_addr_eq(const struct cc_addr *a, const struct cc_addr *b)
{
	return a->family == b->family && a->port == b->port &&
	       memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

bool cc_addr_is_loopback(const struct cc_addr *a)
{
	static const uint8_t one[16] = {[15] = 1};

	return (a->family == CC_INET4 && a->ip[0] == 127) ||
	       (a->family == CC_INET6 && memcmp(a->ip, one, sizeof one) == 0);
}

bool cc_addr_is_any(const struct cc_addr *a)
{
	static const uint8_t zero[16];

	return a->family != 0 && memcmp(a->ip, zero, sizeof zero) == 0;
}

bool cc_addr_is_link_local(const struct cc_addr *a)
{
	return a->family == CC_INET6 && a->ip[0] == 0xfe && a->ip[1] >> 6 == 2;
}

const char *cc_addr_flaw(const struct cc_addr *a)
{
	bool four = a->family == CC_INET4;

	if (cc_addr_is_any(a) || (four && a->ip[0] == 0))
		return "no other host reaches that address";
	if (four ? a->ip[0] >> 4 == 14 : a->ip[0] == 0xff)
		return "it is a multicast address, which belongs to no host";
	if (four && a->ip[0] >> 4 == 15)
		return "it is a broadcast or reserved address, which belongs to no host";
	if (cc_addr_is_link_local(a))
		return "link-local addresses (fe80::/10) cannot be used: they lead nowhere "
		       "without the name of an interface";
	return NULL;
}

int cc_addr_from_sockaddr(const struct sockaddr *sa, struct cc_addr *ret)
{
	struct cc_addr a = {0};
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;

	/* The bytes are copied because the caller's buffer may not be aligned for these types. */
	if (sa->sa_family == AF_INET) {
		memcpy(&in4, sa, sizeof in4);
		set_ip4(&a, &in4.sin_addr);
		a.port = ntohs(in4.sin_port);
	} else if (sa->sa_family == AF_INET6) {
		memcpy(&in6, sa, sizeof in6);
		set_ip6(&a, &in6.sin6_addr);
		a.port = ntohs(in6.sin6_port);
	} else {
		return CC_ERR_INVAL;
	}
	*ret = a;
	return 0;
}

unsigned cc_addr_to_sockaddr(const struct cc_addr *a, struct sockaddr_storage *ret)
{
	struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(a->port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(a->port)};

	memset(ret, 0, sizeof *ret);
	if (a->family == CC_INET4) {
		memcpy(&in4.sin_addr, a->ip, 4);
		memcpy(ret, &in4, sizeof in4);
		return sizeof in4;
	}
	memcpy(&in6.sin6_addr, a->ip, 16);
	memcpy(ret, &in6, sizeof in6);
	return sizeof in6;
}
