/* SPDX-License-Identifier: MIT */
#include "kernels/cuda/gpu_hash.h"
const unsigned char pccl_gpu_fatbin[] = {1};
