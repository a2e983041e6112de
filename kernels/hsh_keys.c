/* SPDX-License-Identifier: MIT */
/* The table of keys, computed by the compiler. */
#include "kernels/hsh_impl.h"

/* The functions mix and key of hsh.h as constant expressions. */
#define SHIFTED(x, n) ((x) ^ (x) >> (n))
#define MIX(x)                                                                                     \
	SHIFTED(SHIFTED(SHIFTED(x, 32) * UINT64_C(0xbb67ae8584caa73b), 28) *                       \
			UINT64_C(0x6a09e667f3bcc909),                                              \
		29)
#define KEY(i)   MIX(UINT64_C(0x3c6ef372fe94f82b) * ((i) + 1))
#define KEYS4(i) KEY(i), KEY((i) + 1), KEY((i) + 2), KEY((i) + 3)
#define LANES(i) KEYS4(i), KEYS4((i) + 4), KEYS4((i) + 8), KEYS4((i) + 12)

_Alignas(64) const uint64_t hsh_keys[] = {
	LANES(0),
	LANES(16),
	LANES(32),
	LANES(48),
	LANES(64),
	LANES(80),
	LANES(96),
	LANES(112),
	LANES(128),
	LANES(144),
	LANES(160),
	LANES(176),
	LANES(192),
	LANES(208),
	LANES(224),
	LANES(240),
	LANES(256),
	LANES(HSH_KEY_A),
	LANES(HSH_KEY_B),
	LANES(HSH_KEY_OF_A),
	LANES(HSH_KEY_OF_B),
};

_Static_assert(sizeof(hsh_keys) == HSH_KEY_COUNT * sizeof(hsh_keys[0]), "one row for each step");
