/* SPDX-License-Identifier: MIT */
#include "pccl-bench/size.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"

int bch_number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *ret)
{
	unsigned long long v;
	char *end;

	if (*text < '0' || *text > '9')
		return CC_ERR_INVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || *end || v < least || v > most)
		return CC_ERR_INVAL;
	*ret = v;
	return 0;
}

int bch_size_parse(const char *text, uint64_t *ret)
{
	static const char units[] = "KMGT";
	size_t len = strlen(text);
	const char *unit = len ? strchr(units, text[len - 1]) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	char digits[16];
	uint64_t v;

	if (len >= sizeof digits)
		return CC_ERR_INVAL;
	memcpy(digits, text, len + 1);
	if (unit)
		digits[len - 1] = '\0';
	if (bch_number_parse(digits, 1, BCH_SIZE_MAX >> shift, &v) < 0)
		return CC_ERR_INVAL;
	*ret = v << shift;
	return 0;
}

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
