/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/copy.h"

#include <stdint.h>
#include <string.h>

#define PAST_CACHES ((size_t)32 << 20)

#if defined(__SSE2__)
#include <emmintrin.h>

/*
 * Four pages are copied at a time, two lines of each in turn, while the next lines are prefetched.
 * This uses more of the memory bandwidth than copying line after line.
 */
#define LINE  ((size_t)64)
#define STEP  (2 * LINE)
#define PAGE  ((size_t)4096)
#define BLOCK (4 * PAGE)

static void copy_line(uint8_t *dst, const uint8_t *src)
{
	const __m128i *from = (const __m128i *)(const void *)src;
	__m128i *to = (__m128i *)(void *)dst;
	__m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
	__m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);

	_mm_stream_si128(to, a);
	_mm_stream_si128(to + 1, b);
	_mm_stream_si128(to + 2, c);
	_mm_stream_si128(to + 3, d);
}

static void copy_block(uint8_t *dst, const uint8_t *src)
{
	for (size_t i = 0; i < PAGE; i += STEP) {
		for (size_t at = i; at < BLOCK; at += PAGE) {
			/* A prefetch beyond the end has no effect. */
			_mm_prefetch((const char *)src + at + BLOCK, _MM_HINT_T0);
			_mm_prefetch((const char *)src + at + BLOCK + LINE, _MM_HINT_T0);
			copy_line(dst + at, src + at);
			copy_line(dst + at + LINE, src + at + LINE);
		}
	}
}

static void copy_past_caches(uint8_t *dst, const uint8_t *src, size_t n)
{
	size_t head = -(uintptr_t)dst % LINE;

	head = head < n ? head : n;
	memcpy(dst, src, head);
	dst += head;
	src += head;
	for (n -= head; n >= BLOCK; n -= BLOCK) {
		copy_block(dst, src);
		dst += BLOCK;
		src += BLOCK;
	}
	/* Orders the stores above before all later stores, as other threads expect. */
	_mm_sfence();
	memcpy(dst, src, n);
}
#else
static void copy_past_caches(uint8_t *dst, const uint8_t *src, size_t n)
{
	memcpy(dst, src, n);
}
#endif

void pccl_copy_out(void *dst, const void *src, size_t n, size_t whole)
{
	if (whole >= PAST_CACHES)
		copy_past_caches(dst, src, n);
	else
		memcpy(dst, src, n);
}

void pccl_copy_swap(uint8_t *a, uint8_t *b, size_t n)
{
	uint8_t kept[4096];

	for (size_t part; n > 0; a += part, b += part, n -= part) {
		part = n < sizeof kept ? n : sizeof kept;
		memcpy(kept, a, part);
		memcpy(a, b, part);
		memcpy(b, kept, part);
	}
}
