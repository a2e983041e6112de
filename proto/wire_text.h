/* SPDX-License-Identifier: MIT
 *
 * Names and texts on the wires: UTF-8 without control characters, so that they can go to logs,
 * terminals and JSON as they are.
 */
#ifndef WIRE_TEXT_H
#define WIRE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Only well-formed UTF-8, and no control characters (C0, DEL, C1)? */
bool wire_text_is_clean(const char *s);
/* Copies at most len bytes of s, up to its NUL, with a '?' for each byte that is not clean. dst
 * holds at least as many bytes as are copied, and one for the NUL. */
void wire_text_clean(char *dst, const char *s, size_t len);

#endif
