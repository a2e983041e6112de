/* SPDX-License-Identifier: MIT
 *
 * A calloc for memory that is allocated and freed all the time. glibc has a cache of freed memory
 * for each thread, but only malloc uses the cache. calloc takes the slow path and leaves the cache
 * full, so free must take the slow path, too.
 */
#ifndef CC_ZALLOC_H
#define CC_ZALLOC_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* This must be built with -fno-builtin-malloc, because the compiler would otherwise turn it into a
 * calloc. */
static inline void *cc_zalloc(size_t n, size_t size)
{
	/* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): 0 bytes are valid */
	void *p = size > 0 && n > SIZE_MAX / size ? NULL : malloc(n * size);

	return p ? memset(p, 0, n * size) : NULL;
}

#endif
