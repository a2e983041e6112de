/* SPDX-License-Identifier: MIT */
#include "proto/wire_text.h"

#include <stdint.h>
#include <string.h>

/* Decodes the sequence of n bytes at s. Returns its code point, or 0 if one of them is no
 * continuation. */
static uint32_t code_point(const uint8_t *s, size_t n, uint32_t lead)
{
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		lead = lead << 6 | (s[i] & 0x3fu);
	}
	return lead;
}

/* Length of the clean character at s, 0 if there is none. left: bytes that may be looked at. */
static size_t clean_len(const char *text, size_t left)
{
	const uint8_t *s = (const uint8_t *)text;
	uint32_t c;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	if (s[0] >= 0xc2 && s[0] <= 0xdf && left >= 2) {
		c = code_point(s, 2, s[0] & 0x1fu);
		return c >= 0xa0 ? 2 : 0;
	}
	if ((s[0] & 0xf0) == 0xe0 && left >= 3) {
		c = code_point(s, 3, s[0] & 0x0fu);
		return c >= 0x800 && (c < 0xd800 || c > 0xdfff) ? 3 : 0;
	}
	if ((s[0] & 0xf8) == 0xf0 && left >= 4) {
		c = code_point(s, 4, s[0] & 0x07u);
		return c >= 0x10000 && c <= 0x10ffff ? 4 : 0;
	}
	return 0;
}

bool wire_text_is_clean(const char *s)
{
	size_t left = strlen(s), n;

	for (; left > 0; s += n, left -= n) {
		n = clean_len(s, left);
		if (n == 0)
			return false;
	}
	return true;
}

void wire_text_clean(char *dst, const char *s, size_t len)
{
	size_t left = strnlen(s, len), n;

	for (; left > 0; s += n, dst += n, left -= n) {
		n = clean_len(s, left);
		if (n > 0) {
			memcpy(dst, s, n);
		} else {
			*dst = '?';
			n = 1;
		}
	}
	*dst = '\0';
}
