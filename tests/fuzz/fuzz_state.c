/* SPDX-License-Identifier: MIT
 *
 * The headers of a request and of an answer on a stream of the shared-state port.
 */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/proto/sample.h"

static void request(uint8_t *buf, const uint8_t *p)
{
	struct wst_request q;
	const char *why = NULL;

	if (wst_request_get(buf, &q, &why) < 0) {
		FUZZ_CHECK(why != NULL);
		return;
	}
	FUZZ_CHECK(q.seq > 0 && q.n > 0 && q.first + q.n <= WIRE_LEAVES_MAX);
	FUZZ_CHECK(q.tensor < WIRE_TENSORS_MAX);
	/* Each byte of a header has a meaning, so the encoded header equals the input. */
	wst_request_put(buf, &q);
	FUZZ_CHECK(memcmp(buf, p, WST_HDR_SIZE) == 0);
}

static void answer(uint8_t *buf, const uint8_t *p)
{
	struct wst_answer a;
	const char *why = NULL;

	if (wst_answer_get(buf, &a, &why) < 0) {
		FUZZ_CHECK(why != NULL);
		return;
	}
	FUZZ_CHECK(a.len <= WST_LEN_MAX && (a.status == WST_OK) == (a.len > 0));
	FUZZ_CHECK(a.member <= WST_MEMBER_MAX && (a.member == 0 || a.len > 0));
	wst_answer_put(buf, &a);
	FUZZ_CHECK(memcmp(buf, p, WST_HDR_SIZE) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	uint8_t *buf;

	if (len < WST_HDR_SIZE)
		return 0;
	/* A separate allocation, so that a sanitizer sees each access beyond the header. */
	buf = malloc(WST_HDR_SIZE);
	FUZZ_CHECK(buf != NULL);
	memcpy(buf, p, WST_HDR_SIZE);
	request(buf, p);
	memcpy(buf, p, WST_HDR_SIZE);
	answer(buf, p);
	free(buf);
	return 0;
}
