/* SPDX-License-Identifier: MIT
 *
 * Names and texts on the wires. They are UTF-8 without control characters, so logs, terminals and
 * JSON can contain them unchanged.
 */
#ifndef WIRE_TEXT_H
#define WIRE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Is the text well-formed UTF-8 without control characters (C0, DEL, C1)? */
bool wire_text_is_clean(const char *s);
/* Copies at most `len` bytes of s, up to its NUL. Replaces each byte that is not clean by '?'. dst
 * must have room for the copied bytes and a NUL. */
void wire_text_clean(char *dst, const char *s, size_t len);
/* Does the same with exactly `len` bytes, none of which is NUL, and writes no NUL. */
void wire_text_copy(char *dst, const char *s, size_t len);

#endif
