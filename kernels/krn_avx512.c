/* SPDX-License-Identifier: MIT */
/* Compiled with -mavx512f -mavx512bw -mavx512dq -mavx512vl. */
#include "kernels/krn_avx512.h"

#define KRN_VEC_VARIANT krn_avx512

#include "kernels/krn_vec.h"
