/* SPDX-License-Identifier: MIT */
#include "pcclagentd/base/addr_spec.h"

#include <stdlib.h>
#include <string.h>

#define INTERFACE_SIZE 16u /* size of an interface name, with the NUL */

static bool parse_number(const char *text, unsigned max, unsigned *ret)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || v > max)
		return false;
	*ret = (unsigned)v;
	return true;
}

static bool parse_net(const char *text, const char *slash, struct place *ret)
{
	char addr[CC_ADDR_STR_SIZE];
	unsigned bits;

	if ((size_t)(slash - text) >= sizeof addr)
		return false;
	memcpy(addr, text, (size_t)(slash - text));
	addr[slash - text] = '\0';
	if (cc_addr_parse(addr, 0, &ret->addr) < 0 || ret->addr.port != 0 ||
		!parse_number(slash + 1, ret->addr.family == CC_INET4 ? 32u : 128u, &bits))
		return false;
	ret->kind = ADDR_SPEC_NET;
	ret->bits = (uint8_t)bits;
	return true;
}

static const char *check_net(const struct cc_addr *a)
{
	return cc_addr_is_link_local(a) ? cc_addr_flaw(a) : NULL;
}

#define HOST_WORD_MAX 63u

static const char bad_port[] = "a port is from 1 to 65535";

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Is the text a host name? After the last dot of a host name comes a letter. So eth0.100 is an
 * interface, and 192.0.2.999 is invalid. */
static bool is_host_name(const char *text)
{
	const char *dot = memrchr(text, '.', strcspn(text, ":"));

	return dot && dot[1] != '\0' && strchr(LETTERS, dot[1]);
}

static bool is_word(const char *text, size_t len)
{
	return len >= 1 && len <= HOST_WORD_MAX && text[0] != '-' && text[len - 1] != '-';
}

static const char *parse_host(const char *text, struct place *ret)
{
	size_t len = strspn(text, LETTERS "0123456789-.");
	unsigned port = 0;

	if (len == 0 || len >= sizeof ret->name)
		return "";
	if (text[len] != '\0' &&
		(text[len] != ':' || !parse_number(text + len + 1, UINT16_MAX, &port) || port == 0))
		return text[len] == ':' ? bad_port : "";
	ret->kind = ADDR_SPEC_NAME;
	ret->addr.port = (uint16_t)port;
	memcpy(ret->name, text, len);
	ret->name[len] = '\0';
	for (const char *word = ret->name;; word += strcspn(word, ".") + 1) {
		size_t n = strcspn(word, ".");

		if (!is_word(word, n))
			return "between the dots of a host name are 1 to 63 letters, digits and "
			       "hyphens, which neither begin nor end with a hyphen";
		if (word[n] == '\0')
			return NULL;
	}
}

static const char *parse_name(const char *text, struct place *ret)
{
	size_t len = strlen(text);

	if (is_host_name(text))
		return parse_host(text, ret);
	if (len >= INTERFACE_SIZE || !*text || !strchr(LETTERS, *text) ||
		text[strcspn(text, "/: \t")] != '\0')
		return "";
	ret->kind = ADDR_SPEC_INTERFACE;
	memcpy(ret->name, text, len + 1);
	return NULL;
}

static const char *parse(const char *text, struct place *ret)
{
	const char *slash = strchr(text, '/');
	struct cc_addr other;

	*ret = (struct place){.kind = ADDR_SPEC_ADDR};
	if (slash)
		return parse_net(text, slash, ret) ? check_net(&ret->addr) : "";
	if (cc_addr_parse(text, 0, &ret->addr) < 0)
		return parse_name(text, ret);
	/* The second argument, 1, is the port if the text names none. So if the result has port 0,
	 * the text names port 0. */
	if (cc_addr_parse(text, 1, &other) == 0 && other.port == 0)
		return bad_port;
	return cc_addr_flaw(&ret->addr);
}

bool addr_spec_parse(const char *text, struct place *ret, const char **ret_why)
{
	*ret_why = parse(text, ret);
	return !*ret_why;
}

bool addr_spec_has(const struct place *p, const struct cc_interface *i)
{
	struct cc_addr a = p->addr;

	if (p->kind == ADDR_SPEC_NAME)
		return false;
	if (p->kind == ADDR_SPEC_INTERFACE)
		return strcmp(p->name, i->name) == 0;
	a.port = 0;
	return cc_addr_in_net(&i->addr, &a,
		p->kind == ADDR_SPEC_NET ? p->bits
		: a.family == CC_INET4   ? 32
					 : 128);
}
