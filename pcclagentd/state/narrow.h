/* SPDX-License-Identifier: MIT
 *
 * Sources whose large packets get lost: narrow.c.
 */
#ifndef STATE_NARROW_H
#define STATE_NARROW_H

#include <stdbool.h>

struct ste_narrow;
struct ste_stream;

/* For ste.narrow: nothing is known of any source. To be freed. NULL: no memory. */
struct ste_narrow *ste_narrow_new(void);
/* Before the stream is connected: segments as small as this source needs. */
void ste_narrow_begin(struct ste_stream *s);
/* Has data come in on it since this was asked last, in whatever order? */
bool ste_narrow_hears(struct ste_stream *s);
/* Nothing has come for a while, although the other host is heard: large packets may get lost. */
bool ste_narrow_suspect(const struct ste_stream *s);
/* Of a suspect: has the next streams have smaller segments, where there are any. */
void ste_narrow_shrink(struct ste_stream *s);

#endif
