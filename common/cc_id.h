/* SPDX-License-Identifier: MIT
 *
 * 128-bit identifiers of peers, agents and runs, the run key, and 256-bit keys. Pure.
 */
#ifndef CC_ID_H
#define CC_ID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct cc_id {
	uint8_t b[16];
};

/* A secret, a public key, or a proof (common/cc_seal.h). */
struct cc_key {
	uint8_t b[32];
};

#define CC_ID_STR_SIZE   33 /* 32 hexadecimal digits and NUL */
#define CC_ID_SHORT_SIZE 9  /* first 8 digits and NUL: for logs and tables */

static inline bool cc_id_eq(const struct cc_id *a, const struct cc_id *b)
{
	return memcmp(a->b, b->b, sizeof a->b) == 0;
}

static inline bool cc_id_is_zero(const struct cc_id *a)
{
	static const struct cc_id zero;

	return cc_id_eq(a, &zero);
}

/* Writes the hexadecimal form and returns buf. */
const char *cc_id_str(const struct cc_id *id, char buf[CC_ID_STR_SIZE]);
const char *cc_id_short(const struct cc_id *id, char buf[CC_ID_SHORT_SIZE]);

#endif
