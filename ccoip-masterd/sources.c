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
	s->knocks = (struct ration){SOURCE_KNOCKS, now};
	s->messages = (struct ration){SOURCE_MESSAGES, now};
	HASH_ADD(hh, *all, key, sizeof s->key, s);
	return s;
}

static void renew(struct ration *r, uint64_t now, double most, double per_s)
{
	r->left += (double)(now - r->ns) / 1e9 * per_s;
	r->ns = now;
	if (r->left > most)
		r->left = most;
}

static bool take(struct ration *r)
{
	if (r->left < 1)
		return false;
	r->left -= 1;
	return true;
}

bool source_may_knock(struct source *s, uint64_t now)
{
	renew(&s->knocks, now, SOURCE_KNOCKS, SOURCE_KNOCKS_PER_S);
	return take(&s->knocks);
}

bool source_may_speak(struct source *s, uint64_t now)
{
	renew(&s->messages, now, SOURCE_MESSAGES, SOURCE_MESSAGES_PER_S);
	return take(&s->messages);
}

void sources_tick(struct source **all, uint64_t now)
{
	struct source *s, *tmp;

	HASH_ITER (hh, *all, s, tmp) {
		renew(&s->knocks, now, SOURCE_KNOCKS, SOURCE_KNOCKS_PER_S);
		if (s->n_conns > 0 || s->knocks.left < SOURCE_KNOCKS)
			continue;
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses track of the list */
		HASH_DEL(*all, s);
		free(s);
	}
}

void sources_free(struct source **all)
{
	struct source *s, *tmp;

	HASH_ITER (hh, *all, s, tmp) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses track of the list */
		HASH_DEL(*all, s);
		free(s);
	}
}
