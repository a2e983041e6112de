/* SPDX-License-Identifier: MIT
 *
 * The modes of quantization, by names. Pure.
 */
#ifndef BCH_MODES_H
#define BCH_MODES_H

#include <stdint.h>

#include <pccl.h>

#include "proto/wire_quant_formats.h"

enum bch_mode {
	BCH_MODE_ALL,   /* every mode; also if no mode is named */
	BCH_MODE_NONE,  /* nothing is quantized */
	BCH_MODE_PCCL1, /* MinMax as in PCCL 1.0, with one scale for a chunk; only simulated */
	BCH_MODE_FIRST, /* the modes of the library begin here */
};

/* The names, indexed by enum bch_mode and the numbers after it, with NULL at the end. */
extern const char *const bch_mode_names[];
extern const uint32_t bch_mode_count;

/* The arguments of pcclAllReduce that choose a mode. */
struct bch_quant_args {
	pcclQuantizationOptions_t options;
	pcclDistributionHint_t hint;
};
struct bch_quant_args bch_mode_args(uint32_t mode);

/* Returns the formats for elements of KRN_F32. mode: BCH_MODE_PCCL1 or higher. */
struct wire_quant_formats bch_mode_formats(uint32_t mode);

#endif
