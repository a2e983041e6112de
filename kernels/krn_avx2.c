/* SPDX-License-Identifier: MIT */
/* Compiled with -mavx2 -mf16c. */
#include "kernels/krn_avx2.h"

#define KRN_VEC_VARIANT krn_avx2

#include "kernels/krn_vec.h"
