/* SPDX-License-Identifier: MIT
 *
 * Copies between host memory and shared memory. Both are the caller's. Any thread; nothing fails.
 */
#ifndef PCCL_SHIM_COPY_H
#define PCCL_SHIM_COPY_H

#include <stddef.h>
#include <stdint.h>

/*
 * n bytes of a result that has so many in all. Large ones go past the caches: of what lies there
 * then nothing would be left when somebody reads it, and a line that is written whole need not be
 * fetched before (a third of what a copy moves). The C library does that too, but by what the
 * system says of the caches, and virtual machines are told of one that many share.
 */
void pccl_copy_out(void *dst, const void *src, size_t n, size_t whole);
/* Exchanges n bytes of two places that lie apart. */
void pccl_copy_swap(uint8_t *a, uint8_t *b, size_t n);

#endif
