/* SPDX-License-Identifier: MIT
 *
 * A byte stream of frames. The first byte of the input chooses the size of the pieces in which the
 * stream arrives. The size must not change the result.
 */
#include "common/cc_err.h"
#include "proto/wire_frame.h"
#include "tests/fuzz/fuzz.h"
#include "tests/proto/sample.h"

struct outcome {
	unsigned frames, messages;
	size_t consumed;
	int err; /* CC_ERR_AGAIN while more bytes are needed */
};

/* Reads the complete frames among the bytes that have arrived. */
static void read_frames(const uint8_t *p, size_t arrived, enum wire_kind kind, struct outcome *o)
{
	while (o->err == CC_ERR_AGAIN) {
		size_t left = arrived - o->consumed;
		int n = wire_frame_peek(p + o->consumed, left, kind);
		const uint8_t *payload = p + o->consumed + WIRE_FRAME_HDR;
		const char *why;
		struct wm_msg m;

		if (n == CC_ERR_AGAIN || (n >= 0 && left < WIRE_FRAME_HDR + (size_t)n))
			return;
		if (n < 0) {
			o->err = n;
			return;
		}
		o->frames++;
		o->consumed += WIRE_FRAME_HDR + (size_t)n;
		if (kind == WIRE_KIND_MASTER &&
			wire_master_decode(payload, (size_t)n, &m, &why) == 0) {
			o->messages++;
			wire_master_clear(&m);
		}
	}
}

static void stream(const uint8_t *p, size_t len, size_t step, enum wire_kind kind)
{
	struct outcome whole = {.err = CC_ERR_AGAIN}, pieces = {.err = CC_ERR_AGAIN};

	read_frames(p, len, kind, &whole);
	for (size_t arrived = 0; arrived < len;) {
		arrived += step < len - arrived ? step : len - arrived;
		read_frames(p, arrived, kind, &pieces);
	}
	FUZZ_CHECK(whole.frames == pieces.frames && whole.messages == pieces.messages);
	FUZZ_CHECK(whole.consumed == pieces.consumed && whole.err == pieces.err);
	FUZZ_CHECK(whole.consumed <= len);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	if (len < 1)
		return 0;
	stream(p + 1, len - 1, (size_t)p[0] + 1, WIRE_KIND_MASTER);
	stream(p + 1, len - 1, (size_t)p[0] + 1, WIRE_KIND_ADMIN);
	return 0;
}
