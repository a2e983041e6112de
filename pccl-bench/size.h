/* SPDX-License-Identifier: MIT
 *
 * The sizes that are measured. Pure.
 */
#ifndef BCH_SIZE_H
#define BCH_SIZE_H

#include <stdint.h>

#define BCH_SIZE_MAX ((uint64_t)1 << 40)

/* Returns the size after this one, or 0 if this one is the last. factor >= 2. */
uint64_t bch_size_next(uint64_t size, uint64_t factor, uint64_t end);
/* Returns the number of sizes from begin to end. */
uint32_t bch_size_count(uint64_t begin, uint64_t factor, uint64_t end);

#endif
