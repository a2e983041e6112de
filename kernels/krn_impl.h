/* SPDX-License-Identifier: MIT */
#ifndef KRN_IMPL_H
#define KRN_IMPL_H

#include "kernels/krn.h"

/*
 * One variant of the kernels. The functions have the contracts of krn_reduce and krn_divide, but
 * nsrc and divisor are at least 2, because krn.c handles the other cases itself.
 */
struct krn_variant {
	void (*reduce)(enum krn_dtype t, enum krn_op op, void *dst, const void *const *srcs,
		unsigned nsrc, size_t count);
	void (*divide)(enum krn_dtype t, void *buf, size_t count, uint32_t divisor);
};

extern const struct krn_variant krn_scalar;
#if defined(__x86_64__)
extern const struct krn_variant krn_avx2;
extern const struct krn_variant krn_avx512;
#elif defined(__aarch64__)
extern const struct krn_variant krn_neon;
#endif

#endif
