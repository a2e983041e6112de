/* SPDX-License-Identifier: MIT
 *
 * The three fixed headers of a stream between agents.
 */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/proto/sample.h"

/* Returns a copy of the first `size` bytes in memory of exactly this size. Returns NULL if the
 * input is shorter. */
static uint8_t *take(const uint8_t *p, size_t len, size_t size)
{
	uint8_t *copy;

	if (len < size)
		return NULL;
	copy = malloc(size);
	FUZZ_CHECK(copy != NULL);
	memcpy(copy, p, size);
	return copy;
}

static void hello(const uint8_t *p, size_t len)
{
	uint8_t *buf = take(p, len, WLK_HELLO_SIZE);
	struct wlk_hello h, again;
	const char *why = NULL;

	if (buf == NULL)
		return;
	if (wlk_hello_get(buf, &h, &why) == 0) {
		wlk_hello_put(buf, &h);
		FUZZ_CHECK(wlk_hello_get(buf, &again, &why) == 0);
		FUZZ_CHECK(same_link_hello(&h, &again));
	} else {
		FUZZ_CHECK(why != NULL);
	}
	free(buf);
}

static void ack(const uint8_t *p, size_t len)
{
	uint8_t *buf = take(p, len, WLK_ACK_SIZE);
	struct wlk_ack a, again;
	const char *why = NULL;

	if (buf == NULL)
		return;
	if (wlk_ack_get(buf, &a, &why) == 0) {
		wlk_ack_put(buf, &a);
		FUZZ_CHECK(wlk_ack_get(buf, &again, &why) == 0);
		FUZZ_CHECK(same_link_ack(&a, &again));
	} else {
		FUZZ_CHECK(why != NULL);
	}
	free(buf);
}

static void data(const uint8_t *p, size_t len)
{
	uint8_t *buf = take(p, len, WLK_DATA_SIZE);
	struct wlk_data d;
	const char *why = NULL;

	if (buf == NULL)
		return;
	if (wlk_data_get(buf, &d, &why) == 0) {
		/* Each byte of a data header has a meaning, so the encoded header equals the
		 * input. */
		wlk_data_put(buf, &d);
		FUZZ_CHECK(memcmp(buf, p, WLK_DATA_SIZE) == 0);
	} else {
		FUZZ_CHECK(why != NULL);
	}
	free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	hello(p, len);
	ack(p, len);
	data(p, len);
	return 0;
}
