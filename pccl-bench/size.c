/* SPDX-License-Identifier: MIT */
#include "pccl-bench/size.h"

uint64_t bch_size_next(uint64_t size, uint64_t factor, uint64_t end)
{
	return size > end / factor ? 0 : size * factor;
}

uint32_t bch_size_count(uint64_t begin, uint64_t factor, uint64_t end)
{
	uint32_t n = 0;

	for (uint64_t s = begin; s; s = bch_size_next(s, factor, end))
		n++;
	return n;
}
