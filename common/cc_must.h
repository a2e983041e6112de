/* SPDX-License-Identifier: MIT
 *
 * Memory for code that ends the program when memory is exhausted, as the cores of both daemons do.
 * These functions never return NULL: instead they call the handler of the program, also if the
 * number of bytes is too large for a size_t.
 */
#ifndef CC_MUST_H
#define CC_MUST_H

#include "common/cc_zalloc.h"

/* Sets the handler, which must not return. Without a handler, the program aborts, with a sentence
 * on standard error. Call this before other threads start. */
void cc_must_on_exhausted(void (*fn)(void));
/* Calls the handler. */
_Noreturn void cc_must_exhausted(void);

/* Returns zeroed memory for n elements; n may be 0. */
static inline void *cc_must_zalloc(size_t n, size_t size)
{
	void *p = cc_zalloc(n ? n : 1, size);

	if (!p)
		cc_must_exhausted();
	return p;
}

/* Doubles *cap, the number of elements for which v has room; 0 becomes `first`. Returns the array,
 * which may have moved. */
void *cc_must_grow(void *v, size_t *cap, size_t first, size_t size);
/* Lengthens v from n elements to `to`, of which the new ones are zeroed. Returns the array, which
 * may have moved. */
void *cc_must_extend(void *v, size_t n, size_t to, size_t size);
/* Returns a copy of the n elements of v; n may be 0. */
void *cc_must_copy(const void *v, size_t n, size_t size);

#endif
