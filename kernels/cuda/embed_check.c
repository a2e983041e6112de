/* SPDX-License-Identifier: MIT */
#include "kernels/cuda/embed.h"

EMBED("pccl_gpu_check_fatbin", "kernels/cuda/check.fatbin");
