/* SPDX-License-Identifier: MIT */
#include <arm_neon.h>

#define HSH_VEC_ABSORB         hsh_absorb_neon
#define HSH_VEC_BYTES          16
#define HSH_VEC_UPPER(x)       vshrq_n_u64((uint64x2_t)(x), 32)
#define HSH_VEC_MULTIPLY(x, y) vmull_u32(vmovn_u64((uint64x2_t)(x)), vmovn_u64((uint64x2_t)(y)))

#include "kernels/hsh_vec.h"
