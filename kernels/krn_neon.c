/* SPDX-License-Identifier: MIT */
#include "kernels/krn_neon.h"

#define KRN_VEC_VARIANT krn_neon

#include "kernels/krn_vec.h"
