/* SPDX-License-Identifier: MIT */
#ifndef WIRE_DTYPE_H
#define WIRE_DTYPE_H

#include <stdint.h>

#include "proto/wire_limits.h"

/* Bytes of one element of each pcclDataType_t. */
static const uint8_t wire_dtype_size[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};

_Static_assert(sizeof wire_dtype_size == WIRE_DTYPE_MAX + 1, "a size for every type");

#endif
