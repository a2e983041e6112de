/* SPDX-License-Identifier: MIT
 *
 * The hash tables of uthash.h with another hash function, because the one of uthash.h reads only
 * one byte at a time. Include this file instead of uthash.h. When memory is exhausted, a table
 * calls the handler of cc_must.h, unless uthash_fatal is defined before.
 */
#ifndef CC_HASH_H
#define CC_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/cc_must.h"

/* Each bit of the key changes low bits of the hash, because uthash uses the low bits. */
static inline unsigned cc_hash(const void *key, size_t len)
{
	const uint8_t *p = key;
	uint64_t h = 0;

	while (len > 0) {
		size_t n = len < sizeof h ? len : sizeof h;
		uint64_t word = 0;

		memcpy(&word, p, n);
		h ^= word;
		h = (h ^ h >> 32) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 32;
		p += n;
		len -= n;
	}
	return (unsigned)h;
}

#ifndef uthash_fatal
#define uthash_fatal(msg) cc_must_exhausted()
#endif
#define HASH_FUNCTION(key, len, hash) ((hash) = cc_hash(key, len))
#include <uthash.h>

#endif
