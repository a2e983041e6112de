/* SPDX-License-Identifier: MIT */
#include "common/cc_id.h"

#include <stddef.h>

static const char *put_hex(const struct cc_id *id, size_t n_bytes, char *buf)
{
	static const char digit[] = "0123456789abcdef";

	for (size_t i = 0; i < n_bytes; i++) {
		buf[2 * i] = digit[id->b[i] >> 4];
		buf[2 * i + 1] = digit[id->b[i] & 15];
	}
	buf[2 * n_bytes] = '\0';
	return buf;
}

const char *cc_id_str(const struct cc_id *id, char buf[CC_ID_STR_SIZE])
{
	return put_hex(id, sizeof id->b, buf);
}

const char *cc_id_short(const struct cc_id *id, char buf[CC_ID_SHORT_SIZE])
{
	return put_hex(id, (CC_ID_SHORT_SIZE - 1) / 2, buf);
}
