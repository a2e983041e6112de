/* SPDX-License-Identifier: MIT
 *
 * The payload of a frame between an agent and the master.
 */
#include "proto/wire_frame.h"
#include "tests/fuzz/fuzz.h"
#include "tests/proto/sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	struct wm_msg m, again;
	const char *why = NULL;
	uint8_t *frame;
	size_t n;

	if (wire_master_decode(p, len, &m, &why) != 0) {
		FUZZ_CHECK(why != NULL);
		return 0;
	}
	/* A decoded message is valid, so encoding and decoding it gives the same message. */
	FUZZ_CHECK(wire_master_encode(&m, &frame, &n) == 0);
	FUZZ_CHECK(wire_frame_peek(frame, n, WIRE_KIND_MASTER) == (int)(n - WIRE_FRAME_HDR));
	FUZZ_CHECK(
		wire_master_decode(frame + WIRE_FRAME_HDR, n - WIRE_FRAME_HDR, &again, &why) == 0);
	FUZZ_CHECK(same_master(&m, &again));
	free(frame);
	wire_master_clear(&again);
	wire_master_clear(&m);
	return 0;
}
