/* SPDX-License-Identifier: MIT
 *
 * Common to all fuzz targets: the entry point that libFuzzer and driver.c call, and a check that
 * aborts the process, so that libFuzzer keeps the input.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* An input of fuzz_result. */
struct fuzz_result_input {
	uint64_t region_size, count, off, flags_off;
	uint32_t mode, hosts, segment_max, esize;
	uint64_t out_registered; /* bit 0: the output is registered; bit 1: the operand is staged */
	uint64_t shares;
};

/* The first bytes of an input of fuzz_shm_state. */
struct fuzz_state_input {
	uint64_t n_tensors, bytes;
};

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

#define FUZZ_CHECK(x)                                                                              \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
