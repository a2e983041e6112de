/* SPDX-License-Identifier: MIT */
#include "common/cc_must.h"

#include <stdio.h>

static void (*on_exhausted)(void);

void cc_must_on_exhausted(void (*fn)(void))
{
	on_exhausted = fn;
}

void cc_must_exhausted(void)
{
	if (on_exhausted)
		on_exhausted();
	else
		(void)fputs("memory is exhausted\n", stderr);
	abort();
}

static void *resize(void *v, size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes))
		cc_must_exhausted();
	p = realloc(v, bytes);
	if (!p)
		cc_must_exhausted();
	return p;
}

void *cc_must_grow(void *v, size_t *cap, size_t first, size_t size)
{
	size_t n = *cap ? 2 * *cap : first;

	v = resize(v, n, size);
	*cap = n;
	return v;
}

void *cc_must_extend(void *v, size_t n, size_t to, size_t size)
{
	uint8_t *p = resize(v, to, size);

	memset(p + n * size, 0, (to - n) * size);
	return p;
}

void *cc_must_copy(const void *v, size_t n, size_t size)
{
	void *p = cc_must_zalloc(n, size);

	if (n > 0)
		memcpy(p, v, n * size);
	return p;
}
