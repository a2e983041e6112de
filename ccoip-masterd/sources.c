/* SPDX-License-Identifier: MIT */
#include "ccoip-masterd/sources.h"

#include <stdlib.h>
#include <string.h>

static void key_of(const struct cc_addr *a, uint8_t key[17])
{
	memset(key, 0, 17);
	key[0] = a->family;
	memcpy(key + 1, a->ip, a->family == CC_INET6 ? 8 : 4);
}

struct source *source_get(struct source **all, const struct cc_addr *from, uint64_t now)
{
	uint8_t key[17];
	struct source *s;

	key_of(from, key);
	HASH_FIND(hh, *all, key, sizeof key, s);
	if (s)
		return s;
	s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	memcpy(s->key, key, sizeof key);
	s->knocks = SOURCE_KNOCKS;
	s->knocks_ns = now;
	HASH_ADD(hh, *all, key, sizeof s->key, s);
	return s;
}

static void renew_knocks(struct source *s, uint64_t now)
{
	s->knocks += (double)(now - s->knocks_ns) / 1e9 * SOURCE_KNOCKS_PER_S;
	s->knocks_ns = now;
	if (s->knocks > SOURCE_KNOCKS)
		s->knocks = SOURCE_KNOCKS;
}

bool source_may_knock(struct source *s, uint64_t now)
{
	renew_knocks(s, now);
	if (s->knocks < 1)
		return false;
	s->knocks -= 1;
	return true;
}

void sources_tick(struct source **all, uint64_t now)
{
	struct source *s, *tmp;

	HASH_ITER (hh, *all, s, tmp) {
		renew_knocks(s, now);
		if (s->n_strangers > 0 || s->knocks < SOURCE_KNOCKS)
			continue;
		HASH_DEL(*all, s);
		free(s);
	}
}

void sources_free(struct source **all)
{
	struct source *s, *tmp;

	HASH_ITER (hh, *all, s, tmp) {
		HASH_DEL(*all, s);
		free(s);
	}
}
