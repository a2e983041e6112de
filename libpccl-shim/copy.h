/* SPDX-License-Identifier: MIT
 *
 * Copies between host memory and shared memory. Both belong to the caller. Any thread; no function
 * fails.
 */
#ifndef PCCL_SHIM_COPY_H
#define PCCL_SHIM_COPY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Copies n bytes of a result whose total size is `whole`. A large result is written past the
 * caches: it would push itself out of the caches before it is read, and a line that is written as a
 * whole need not be fetched first (these fetches are a third of the traffic of a copy). The C
 * library does this, too, but its limit follows from the cache size that the system reports, and in
 * a virtual machine that cache is shared with other machines.
 */
void pccl_copy_out(void *dst, const void *src, size_t n, size_t whole);
/* Exchanges n bytes of two areas that do not overlap. */
void pccl_copy_swap(uint8_t *a, uint8_t *b, size_t n);

#endif
