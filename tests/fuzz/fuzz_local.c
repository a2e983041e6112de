/* SPDX-License-Identifier: MIT
 *
 * A packet between a shim and its agent, as a request and as a reply.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/proto/sample.h"

static void request(const uint8_t *p, size_t len)
{
	uint8_t buf[WL_PACKET_MAX];
	struct wl_request q, again;
	const char *why = NULL;
	int n;

	if (wire_local_get_request(p, len, &q, &why) != 0) {
		FUZZ_CHECK(why != NULL);
		return;
	}
	n = wire_local_put_request(&q, buf);
	FUZZ_CHECK(n > 0);
	FUZZ_CHECK(wire_local_get_request(buf, (size_t)n, &again, &why) == 0);
	FUZZ_CHECK(same_request(&q, &again));
}

static void reply(const uint8_t *p, size_t len)
{
	uint8_t buf[WL_PACKET_MAX];
	struct wl_reply r, again;
	const char *why = NULL;
	int n;

	if (wire_local_get_reply(p, len, &r, &why) != 0) {
		FUZZ_CHECK(why != NULL);
		return;
	}
	n = wire_local_put_reply(&r, buf);
	FUZZ_CHECK(n >= 0);
	FUZZ_CHECK(wire_local_get_reply(buf, (size_t)n, &again, &why) == 0);
	FUZZ_CHECK(same_reply(&r, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	request(p, len);
	reply(p, len);
	return 0;
}
