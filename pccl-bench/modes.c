/* SPDX-License-Identifier: MIT */
#include "pccl-bench/modes.h"

#include <stddef.h>

#define BLOCKWISE(options) ((pcclQuantizationAlgorithm_t)(pcclQuantBlockwise | (options)))

/* name, algorithm, type on the network, hint */
#define MODES(MODE)                                                                                \
	MODE("all", pcclQuantNone, pcclUint8, None)                                                \
	MODE("none", pcclQuantNone, pcclUint8, None)                                               \
	MODE("pccl1-minmax-uint8", pcclQuantMinMax, pcclUint8, None)                               \
	MODE("half", pcclQuantMinMax, pcclFloat16, None)                                           \
	MODE("bfloat16", pcclQuantMinMax, pcclBFloat16, None)                                      \
	MODE("minmax-uint8", pcclQuantMinMax, pcclUint8, None)                                     \
	MODE("minmax-uint16", pcclQuantMinMax, pcclUint16, None)                                   \
	MODE("zero-point-uint8", pcclQuantZeroPointScale, pcclUint8, None)                         \
	MODE("zero-point-uint16", pcclQuantZeroPointScale, pcclUint16, None)                       \
	MODE("int8", pcclQuantBlockwise, pcclInt8, None)                                           \
	MODE("int8-32", PCCL_QUANT_BLOCKWISE(5, 0), pcclInt8, None)                                \
	MODE("int8-stochastic", BLOCKWISE(PCCL_QUANT_STOCHASTIC), pcclInt8, None)                  \
	MODE("int4", pcclQuantBlockwise, pcclInt4, None)                                           \
	MODE("int4-normal", pcclQuantBlockwise, pcclInt4, Normal)                                  \
	MODE("int4-uniform", pcclQuantBlockwise, pcclInt4, Uniform)                                \
	MODE("int4-stochastic", BLOCKWISE(PCCL_QUANT_STOCHASTIC), pcclInt4, None)                  \
	MODE("int4-mixed", BLOCKWISE(PCCL_QUANT_MIXED), pcclInt4, Normal)                          \
	MODE("e4m3", pcclQuantBlockwise, pcclFloat8E4M3, None)                                     \
	MODE("e5m2", pcclQuantBlockwise, pcclFloat8E5M2, None)

#define NAME(name, algorithm, type, hint) name,
#define ARGS(name, algorithm, type, hint) {{type, algorithm}, pcclDistribution##hint},

const char *const bch_mode_names[] = {MODES(NAME) NULL};
const uint32_t bch_mode_count = sizeof bch_mode_names / sizeof bch_mode_names[0] - 1;

struct bch_quant_args bch_mode_args(uint32_t mode)
{
	static const struct bch_quant_args args[] = {MODES(ARGS)};

	return args[mode];
}

struct wire_quant_formats bch_mode_formats(uint32_t mode)
{
	struct bch_quant_args args = bch_mode_args(mode);
	struct wire_quant_numbers numbers = {.algo = (uint32_t)args.options.algorithm,
		.dtype = (uint32_t)args.options.quantized_datatype,
		.hint = (uint32_t)args.hint};
	struct wire_quant q = {0};
	char why[WIRE_QUANT_TEXT];

	/* succeeds for all modes: tests/bench/quant.c */
	(void)wire_quant_get(pcclFloat, &numbers, &q, why);
	return wire_quant_formats_of(&q, KRN_F32);
}
