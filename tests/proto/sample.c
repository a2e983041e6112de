/* SPDX-License-Identifier: MIT */
#include "tests/proto/sample.h"

#include <stdio.h>
#include <string.h>

struct cc_id sample_id(struct tl_rng *r)
{
	struct cc_id id;

	for (size_t i = 0; i < sizeof id.b; i++)
		id.b[i] = (uint8_t)tl_u64(r);
	id.b[tl_range(r, 0, 15)] |= 1;
	return id;
}

struct cc_key sample_key(struct tl_rng *r)
{
	struct cc_key key;

	for (size_t i = 0; i < sizeof key.b; i++)
		key.b[i] = (uint8_t)tl_u64(r);
	key.b[tl_range(r, 0, 31)] |= 1;
	return key;
}

void sample_text(struct tl_rng *r, char *ret, size_t size)
{
	static const char *const letter[] = {"a", "z", " ", "~", "\xc3\xa4", "\xc2\xa0",
		"\xe2\x82\xac", "\xef\xbf\xbd", "\xf0\x9f\x98\x80", "%", "\"", "\\"};
	size_t len = tl_range(r, 0, 3) == 0 ? size - 1 : tl_range(r, 0, size - 1);
	size_t at = 0;

	memset(ret, 0, size);
	while (at < len) {
		const char *s = letter[tl_range(r, 0, sizeof letter / sizeof letter[0] - 1)];

		if (strlen(s) > len - at)
			s = "x";
		at += (size_t)snprintf(ret + at, size - at, "%s", s);
	}
}

struct cc_addr sample_addr(struct tl_rng *r, uint16_t port_min)
{
	struct cc_addr a = {.family = tl_range(r, 0, 1) == 0 ? CC_INET4 : CC_INET6};

	for (size_t i = 0; i < (a.family == CC_INET4 ? 4 : 16); i++)
		a.ip[i] = (uint8_t)tl_range(r, 1, 255);
	a.port = (uint16_t)tl_range(r, port_min, UINT16_MAX);
	return a;
}
