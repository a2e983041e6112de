/* SPDX-License-Identifier: MIT
 *
 * Sources whose large packets get lost: narrow.c.
 */
#ifndef STATE_NARROW_H
#define STATE_NARROW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_id.h"

struct ste_stream;

#define STE_NARROW_MAX 64u
struct ste_narrow {
	struct cc_id agent;
	uint8_t times; /* its place in cc_tcp_sizes */
	uint64_t since_ns;
};

/* Before the stream is connected: segments as small as this source needs. */
void ste_narrow_begin(struct ste_stream *s);
/* Has data come in on it since this was asked last, in whatever order? */
bool ste_narrow_hears(struct ste_stream *s);
/* Nothing has come for a while, although the other host is heard: large packets may get lost. */
bool ste_narrow_suspect(const struct ste_stream *s);
/* Of a suspect: has the next streams have smaller segments, where there are any. */
void ste_narrow_shrink(struct ste_stream *s);

#endif
