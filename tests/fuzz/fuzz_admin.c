/* SPDX-License-Identifier: MIT
 *
 * The payload of a frame on an admin socket, as a request and as a reply.
 */
#include "proto/wire_frame.h"
#include "tests/fuzz/fuzz.h"
#include "tests/proto/sample.h"

static void request(const uint8_t *p, size_t len)
{
	struct wa_request q, again;
	const char *why = NULL;
	uint8_t *frame;
	size_t n;

	if (wire_admin_decode_request(p, len, &q, &why) != 0) {
		FUZZ_CHECK(why != NULL);
		return;
	}
	FUZZ_CHECK(wire_admin_encode_request(&q, &frame, &n) == 0);
	FUZZ_CHECK(wire_admin_decode_request(
			   frame + WIRE_FRAME_HDR, n - WIRE_FRAME_HDR, &again, &why) == 0);
	FUZZ_CHECK(same_admin_request(&q, &again));
	free(frame);
}

static void reply(const uint8_t *p, size_t len)
{
	struct wa_reply r, again;
	const char *why = NULL;
	uint8_t *frame;
	size_t n;

	if (wire_admin_decode_reply(p, len, &r, &why) != 0) {
		FUZZ_CHECK(why != NULL);
		return;
	}
	FUZZ_CHECK(wire_admin_encode_reply(&r, &frame, &n) == 0);
	FUZZ_CHECK(wire_admin_decode_reply(
			   frame + WIRE_FRAME_HDR, n - WIRE_FRAME_HDR, &again, &why) == 0);
	FUZZ_CHECK(same_admin_reply(&r, &again));
	free(frame);
	wa_reply_clear(&again);
	wa_reply_clear(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	request(p, len);
	reply(p, len);
	return 0;
}
