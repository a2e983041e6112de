/* SPDX-License-Identifier: MIT */
#ifndef HSH_IMPL_H
#define HSH_IMPL_H

#include "kernels/hsh.h"

/* The names are those of the definition in hsh.h. */
#define HSH_LANES         16
#define HSH_STRIPE        ((size_t)HSH_LANES * 8) /* bytes */
#define HSH_BLOCK_STRIPES 16
#define HSH_SCRAMBLE      31
#define HSH_P             UINT32_C(0x9b05688d)

/* The index of the first key of each step. */
#define HSH_KEY_A     272
#define HSH_KEY_B     288
#define HSH_KEY_OF_A  304
#define HSH_KEY_OF_B  320
#define HSH_KEY_COUNT 336

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are read as they lie in memory");

/* key(i) */
extern const uint64_t hsh_keys[HSH_KEY_COUNT];

struct hsh_state {
	_Alignas(64) uint64_t a[HSH_LANES];
	_Alignas(64) uint64_t b[HSH_LANES];
};

/* A function that does step 2 for `stripes` whole stripes at data. `first` is the number of the
 * first of these stripes in the input. */
typedef void hsh_absorb_fn(struct hsh_state *state, const unsigned char *data, size_t first,
	size_t stripes, uint64_t s);

hsh_absorb_fn hsh_absorb_scalar;
#if defined(__x86_64__)
hsh_absorb_fn hsh_absorb_avx2;
hsh_absorb_fn hsh_absorb_avx512;
#elif defined(__aarch64__)
hsh_absorb_fn hsh_absorb_neon;
#endif

#endif
