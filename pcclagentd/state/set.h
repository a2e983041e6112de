/* SPDX-License-Identifier: MIT
 *
 * Sets of the members of a job, by their index.
 */
#ifndef STATE_SET_H
#define STATE_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "pcclagentd/state/state.h"
#include "proto/wire_state.h"

#define STE_SET_WORDS ((STE_MEMBERS_MAX + 63) / 64)
#define STE_SET_END   UINT32_MAX

struct ste_set {
	uint64_t w[STE_SET_WORDS];
};

static inline void ste_set_add(struct ste_set *s, uint32_t i)
{
	s->w[i / 64] |= UINT64_C(1) << i % 64;
}

static inline void ste_set_remove(struct ste_set *s, uint32_t i)
{
	s->w[i / 64] &= ~(UINT64_C(1) << i % 64);
}

static inline bool ste_set_has(const struct ste_set *s, uint32_t i)
{
	return s->w[i / 64] >> i % 64 & 1;
}

/* Returns the first member of the set whose index is at least `i`, or STE_SET_END. */
static inline uint32_t ste_set_next(const struct ste_set *s, uint32_t i)
{
	for (uint32_t k = i / 64; k < STE_SET_WORDS; k++) {
		uint64_t w = s->w[k] & (k == i / 64 ? UINT64_MAX << i % 64 : UINT64_MAX);

		if (w)
			return k * 64 + (uint32_t)__builtin_ctzll(w);
	}
	return STE_SET_END;
}

#define STE_SET_EACH(i, s)                                                                         \
	for (uint32_t i = ste_set_next((s), 0); (i) != STE_SET_END;                                \
		(i) = ste_set_next((s), (i) + 1))

static inline bool ste_set_is_empty(const struct ste_set *s)
{
	return ste_set_next(s, 0) == STE_SET_END;
}

static inline bool ste_set_is_equal(const struct ste_set *a, const struct ste_set *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

static inline uint32_t ste_set_count(const struct ste_set *s)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < STE_SET_WORDS; k++)
		n += (uint32_t)__builtin_popcountll(s->w[k]);
	return n;
}

static inline void ste_set_intersect(struct ste_set *s, const struct ste_set *with)
{
	for (uint32_t k = 0; k < STE_SET_WORDS; k++)
		s->w[k] &= with->w[k];
}

_Static_assert(WST_MEMBER_MAX == 64, "see ste_set_number");

/*
 * Returns the number of a member on the wire, from 1 to WST_MEMBER_MAX. A request excludes members
 * by one bit for each number. If there are more members than numbers, several members have the same
 * number, so they are excluded together.
 */
static inline uint8_t ste_set_number(uint32_t i)
{
	return (uint8_t)(i % 64 + 1);
}

/* Returns `s` without the members whose bit is set in `without`. */
static inline struct ste_set ste_set_without(const struct ste_set *s, uint64_t without)
{
	struct ste_set r;

	for (uint32_t k = 0; k < STE_SET_WORDS; k++)
		r.w[k] = s->w[k] & ~without;
	return r;
}

#endif
