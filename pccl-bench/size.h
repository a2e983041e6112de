/* SPDX-License-Identifier: MIT
 *
 * The sizes that are measured. Pure.
 */
#ifndef BCH_SIZE_H
#define BCH_SIZE_H

#include <stdint.h>

#define BCH_SIZE_MAX ((uint64_t)1 << 40)

/* "4", "64K", "1G": bytes, at least 1 and at most BCH_SIZE_MAX; K, M, G and T are powers of 1024.
 * 0 or CC_ERR_INVAL. */
int bch_size_parse(const char *text, uint64_t *ret);
/* A decimal number from least to most, nothing around it. 0 or CC_ERR_INVAL. */
int bch_number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *ret);
/* The size after this one, or 0 if it was the last. factor >= 2. */
uint64_t bch_size_next(uint64_t size, uint64_t factor, uint64_t end);
/* How many there are from begin to end. */
uint32_t bch_size_count(uint64_t begin, uint64_t factor, uint64_t end);

#endif
