/* SPDX-License-Identifier: MIT */
#include "kernels/hsh.h"

#include <string.h>

#include "kernels/hsh_impl.h"

/* __extension__ avoids a warning of -Wpedantic, because ISO C has no integers of 128 bits. */
__extension__ typedef unsigned __int128 uint128;

static const struct {
	const char *name;
	hsh_absorb_fn *absorb; /* NULL: not in this build */
} isas[HSH_ISA_COUNT] = {
	[HSH_ISA_SCALAR] = {"scalar", hsh_absorb_scalar},
#if defined(__x86_64__)
	[HSH_ISA_AVX2] = {"avx2", hsh_absorb_avx2},
	[HSH_ISA_AVX512] = {"avx512", hsh_absorb_avx512},
#else
	[HSH_ISA_AVX2] = {"avx2", NULL},
	[HSH_ISA_AVX512] = {"avx512", NULL},
#endif
#if defined(__aarch64__)
	[HSH_ISA_NEON] = {"neon", hsh_absorb_neon},
#else
	[HSH_ISA_NEON] = {"neon", NULL},
#endif
};

#if defined(__x86_64__)

/*
 * Can this CPU run the variant? The library of the compiler has determined this before main. The
 * function tests one bit, which is cheap enough for every hash, so no variable stores the choice.
 */
static bool cpu_can(enum hsh_isa isa)
{
	switch (isa) {
	case HSH_ISA_AVX2:
		return __builtin_cpu_supports("avx2");
	case HSH_ISA_AVX512:
		return __builtin_cpu_supports("avx512f");
	default:
		return true;
	}
}

#else

/* NEON is part of every AArch64. */
static bool cpu_can(enum hsh_isa isa)
{
	(void)isa;
	return true;
}

#endif

bool hsh_isa_supported(enum hsh_isa isa)
{
	return (unsigned)isa < HSH_ISA_COUNT && isas[isa].absorb && cpu_can(isa);
}

const char *hsh_isa_name(enum hsh_isa isa)
{
	return (unsigned)isa < HSH_ISA_COUNT ? isas[isa].name : "unknown";
}

enum hsh_isa hsh_isa_current(void)
{
	/* Later variants of the enum are preferred. The scalar variant ends the search. */
	int isa = HSH_ISA_COUNT - 1;

	while (!hsh_isa_supported((enum hsh_isa)isa))
		isa--;
	return (enum hsh_isa)isa;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0xbb67ae8584caa73b);
	x ^= x >> 28;
	x *= UINT64_C(0x6a09e667f3bcc909);
	return x ^ x >> 29;
}

/* Does steps 3 and 4. */
static uint64_t finish(const struct hsh_state *state, uint64_t s, size_t bytes)
{
	uint128 sum = 0;
	uint64_t h = mix(s + bytes);

	for (size_t l = 0; l < HSH_LANES; l++)
		sum += (uint128)(state->a[l] + hsh_keys[HSH_KEY_OF_A + l]) *
		       (state->b[l] + hsh_keys[HSH_KEY_OF_B + l]);
	h = mix(h ^ (uint64_t)(sum >> 64));
	return mix(h ^ (uint64_t)sum);
}

uint64_t hsh_hash_isa(enum hsh_isa isa, const void *data, size_t bytes, uint64_t seed)
{
	hsh_absorb_fn *absorb = isas[isa].absorb;
	size_t stripes = bytes / HSH_STRIPE;
	size_t rest = bytes % HSH_STRIPE;
	uint64_t s = mix(seed + UINT64_C(0x510e527fade682d1));
	struct hsh_state state;

	memcpy(state.a, hsh_keys + HSH_KEY_A, sizeof(state.a));
	memcpy(state.b, hsh_keys + HSH_KEY_B, sizeof(state.b));
	absorb(&state, data, 0, stripes, s);
	if (rest > 0) {
		unsigned char last[HSH_STRIPE] = {0};

		memcpy(last, (const unsigned char *)data + stripes * HSH_STRIPE, rest);
		absorb(&state, last, stripes, 1, s);
	}
	return finish(&state, s, bytes);
}

uint64_t hsh_hash(const void *data, size_t bytes, uint64_t seed)
{
	return hsh_hash_isa(hsh_isa_current(), data, bytes, seed);
}

void hsh_digest(const void *data, size_t bytes, uint64_t ret_digest[2])
{
	ret_digest[0] = hsh_hash(data, bytes, 1);
	ret_digest[1] = hsh_hash(data, bytes, 2);
}

uint64_t hsh_leaf(const void *data, size_t bytes, uint64_t index)
{
	return hsh_hash(data, bytes, index);
}

uint64_t hsh_leaf_count(uint64_t bytes)
{
	return bytes / HSH_LEAF + (bytes % HSH_LEAF > 0);
}

void hsh_leaves(hsh_leaf_fn *leaf, const void *data, uint64_t bytes, uint64_t first, uint64_t n,
	uint64_t *ret_leaves)
{
	uint64_t count = hsh_leaf_count(bytes);

	for (uint64_t i = first; i < count && i - first < n; i++) {
		uint64_t offset = i * HSH_LEAF;
		uint64_t left = bytes - offset;

		ret_leaves[i - first] = leaf((const unsigned char *)data + offset,
			left < HSH_LEAF ? (size_t)left : HSH_LEAF, i);
	}
}

uint64_t hsh_tensor(const uint64_t *leaves, uint64_t bytes)
{
	return hsh_hash(leaves, (size_t)(hsh_leaf_count(bytes) * sizeof(*leaves)), bytes);
}
