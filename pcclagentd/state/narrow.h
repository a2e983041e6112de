/* SPDX-License-Identifier: MIT
 *
 * narrow.c: sources whose large packets get lost.
 */
#ifndef STATE_NARROW_H
#define STATE_NARROW_H

#include <stdbool.h>

struct ste_narrow;
struct ste_stream;

/* Allocates an empty table for ste.narrow, which the caller frees. NULL: no memory. */
struct ste_narrow *ste_narrow_new(void);
/* Limits the segments of a stream to the size that this source needs. To be called before the
 * stream is connected. */
void ste_narrow_begin(struct ste_stream *s);
/* Has the kernel received any data on the stream since the last call, even out of order? */
bool ste_narrow_hears(struct ste_stream *s);
/* Does the stream probably lose large packets? No answer has come for a while, although the other
 * host is alive. */
bool ste_narrow_suspect(const struct ste_stream *s);
/* Gives the next streams to this source smaller segments, unless they are the smallest already. */
void ste_narrow_shrink(struct ste_stream *s);

#endif
