/* SPDX-License-Identifier: MIT */
#include "kernels/krn.h"

#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/krn_impl.h"

static const struct {
	const char *name;
	const struct krn_variant *variant; /* NULL: not in this build */
} isas[KRN_ISA_COUNT] = {
	[KRN_ISA_SCALAR] = {"scalar", &krn_scalar},
#if defined(__x86_64__)
	[KRN_ISA_AVX2] = {"avx2", &krn_avx2},
	[KRN_ISA_AVX512] = {"avx512", &krn_avx512},
#else
	[KRN_ISA_AVX2] = {"avx2", NULL},
	[KRN_ISA_AVX512] = {"avx512", NULL},
#endif
#if defined(__aarch64__)
	[KRN_ISA_NEON] = {"neon", &krn_neon},
#else
	[KRN_ISA_NEON] = {"neon", NULL},
#endif
};

size_t krn_dtype_size(enum krn_dtype t)
{
	static const unsigned char sizes[KRN_DTYPE_COUNT] = {
		[KRN_U8] = 1,
		[KRN_I8] = 1,
		[KRN_I16] = 2,
		[KRN_U16] = 2,
		[KRN_U32] = 4,
		[KRN_I32] = 4,
		[KRN_U64] = 8,
		[KRN_I64] = 8,
		[KRN_F16] = 2,
		[KRN_BF16] = 2,
		[KRN_F32] = 4,
		[KRN_F64] = 8,
	};

	return (unsigned)t < KRN_DTYPE_COUNT ? sizes[t] : 0;
}

#if defined(__x86_64__)

static bool cpu_can(enum krn_isa isa)
{
	unsigned a, b, c, d;

	/* For AVX __builtin_cpu_supports also checks that the kernel saves its registers. */
	__builtin_cpu_init();
	switch (isa) {
	case KRN_ISA_AVX2:
		/* The __builtin_cpu_supports of some compilers does not know f16c. */
		return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) &&
		       (c & bit_F16C);
	case KRN_ISA_AVX512:
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
	default:
		return true;
	}
}

#else

/* NEON is part of every AArch64. */
static bool cpu_can(enum krn_isa isa)
{
	(void)isa;
	return true;
}

#endif

bool krn_isa_supported(enum krn_isa isa)
{
	return (unsigned)isa < KRN_ISA_COUNT && isas[isa].variant && cpu_can(isa);
}

const char *krn_isa_name(enum krn_isa isa)
{
	return (unsigned)isa < KRN_ISA_COUNT ? isas[isa].name : "unknown";
}

enum krn_isa krn_isa_current(void)
{
	/* -1: not chosen yet. Threads that race here all store the same value. */
	static atomic_int chosen = -1;
	int isa = atomic_load_explicit(&chosen, memory_order_relaxed);

	if (isa >= 0)
		return (enum krn_isa)isa;
	/* Later variants of the enum are preferred. The scalar variant ends the search. */
	isa = KRN_ISA_COUNT - 1;
	while (!krn_isa_supported((enum krn_isa)isa))
		isa--;
	atomic_store_explicit(&chosen, isa, memory_order_relaxed);
	return (enum krn_isa)isa;
}

void krn_reduce_isa(enum krn_isa isa, enum krn_dtype t, enum krn_op op, void *dst,
	const void *const *srcs, unsigned nsrc, size_t count)
{
	if (nsrc > 1)
		isas[isa].variant->reduce(t, op, dst, srcs, nsrc, count);
	else if (dst != srcs[0] && count > 0)
		memcpy(dst, srcs[0], count * krn_dtype_size(t));
}

void krn_divide_isa(enum krn_isa isa, enum krn_dtype t, void *buf, size_t count, uint32_t divisor)
{
	if (divisor > 1)
		isas[isa].variant->divide(t, buf, count, divisor);
}

void krn_reduce(enum krn_dtype t, enum krn_op op, void *dst, const void *const *srcs, unsigned nsrc,
	size_t count)
{
	krn_reduce_isa(krn_isa_current(), t, op, dst, srcs, nsrc, count);
}

void krn_divide(enum krn_dtype t, void *buf, size_t count, uint32_t divisor)
{
	krn_divide_isa(krn_isa_current(), t, buf, count, divisor);
}
