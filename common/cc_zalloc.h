/* SPDX-License-Identifier: MIT
 *
 * calloc for what comes and goes all the time. glibc keeps what a thread frees at hand for its
 * malloc alone: its calloc takes the long way, and so does free once nobody takes from there.
 */
#ifndef CC_ZALLOC_H
#define CC_ZALLOC_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Built with -fno-builtin-malloc, or the compiler would make a calloc of it. */
static inline void *cc_zalloc(size_t n, size_t size)
{
	/* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): as calloc, of nothing too */
	void *p = size > 0 && n > SIZE_MAX / size ? NULL : malloc(n * size);

	return p ? memset(p, 0, n * size) : NULL;
}

#endif
