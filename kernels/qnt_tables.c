/* SPDX-License-Identifier: MIT */
/* Written by tests/kernels/qnt_model.py --write, which explains how. */
#include "kernels/qnt_impl.h"

/* clang-format off */
#define UNIT(i) ((float)(i) / 4096)

const float qnt_levels[16] = {
	UNIT(-4096), UNIT(-3178), UNIT(-2475), UNIT(-1887), UNIT(-1368), UNIT(-892), UNIT(-440), UNIT(0),
	UNIT(385), UNIT(777), UNIT(1185), UNIT(1621), UNIT(2097), UNIT(2637), UNIT(3278), UNIT(4096),
};

/* For blocks of 32, 64, 128, 256, 512 and 1024 elements. */
const float qnt_clips[QNT_HINT_COUNT][QNT_CODE_COUNT][6] = {
	[QNT_HINT_NORMAL][QNT_I4] = {
		UNIT(3896), UNIT(3754), UNIT(3568), UNIT(3364), UNIT(3166), UNIT(2989),
	},
	[QNT_HINT_NORMAL][QNT_N4] = {
		UNIT(3977), UNIT(3891), UNIT(3760), UNIT(3592), UNIT(3408), UNIT(3228),
	},
	[QNT_HINT_UNIFORM][QNT_I4] = {
		UNIT(3919), UNIT(3877), UNIT(3851), UNIT(3837), UNIT(3830), UNIT(3827),
	},
	[QNT_HINT_UNIFORM][QNT_N4] = {
		UNIT(3907), UNIT(3864), UNIT(3839), UNIT(3825), UNIT(3818), UNIT(3814),
	},
	[QNT_HINT_UNIFORM][QNT_E4M3] = {
		UNIT(4060), UNIT(4039), UNIT(4021), UNIT(4009), UNIT(4002), UNIT(3998),
	},
	[QNT_HINT_UNIFORM][QNT_E5M2] = {
		UNIT(3986), UNIT(3949), UNIT(3925), UNIT(3912), UNIT(3905), UNIT(3901),
	},
};
/* clang-format on */
