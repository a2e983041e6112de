/* SPDX-License-Identifier: MIT
 *
 * Checks of messages that the test programs of the master codec share.
 */
#ifndef MASTER_CHECK_H
#define MASTER_CHECK_H

#include <string.h>

#include "common/cc_err.h"
#include "proto/wire_frame.h"
#include "tests/proto/sample.h"

struct bytes {
	uint8_t *p; /* payload, malloc'd */
	size_t len;
};

static inline struct bytes encode(const struct wm_msg *m)
{
	struct bytes b;
	uint8_t *frame;
	size_t len;

	ck_assert_int_eq(wire_master_encode(m, &frame, &len), 0);
	ck_assert_int_eq(
		wire_frame_peek(frame, len, WIRE_KIND_MASTER), (int)(len - WIRE_FRAME_HDR));
	/* The copy has exactly the size of the payload, so that a sanitizer detects every read
	 * beyond the end. */
	b.len = len - WIRE_FRAME_HDR;
	b.p = malloc(b.len > 0 ? b.len : 1);
	ck_assert_ptr_nonnull(b.p);
	memcpy(b.p, frame + WIRE_FRAME_HDR, b.len);
	free(frame);
	return b;
}

/* Checks that the message survives encoding and decoding. */
static inline void accepted(const struct wm_msg *m)
{
	struct bytes b = encode(m);
	const char *why = "";
	struct wm_msg got;
	int rc = wire_master_decode(b.p, b.len, &got, &why);

	ck_assert_msg(rc == 0, "%s: %s", wire_master_type_name(m->type), why);
	ck_assert_msg(same_master(m, &got), "%s differs", wire_master_type_name(m->type));
	wire_master_clear(&got);
	free(b.p);
}

/* Checks that the decoder refuses the encoded message, and that the reason names the field. */
static inline void refused_as(const struct wm_msg *m, int err, const char *field)
{
	struct bytes b = encode(m);
	struct wm_msg got = {.type = WM_KICK};
	const char *why = NULL;

	ck_assert_int_eq(wire_master_decode(b.p, b.len, &got, &why), err);
	ck_assert_ptr_nonnull(why);
	ck_assert_msg(strncmp(why, field, strlen(field)) == 0 && why[strlen(field)] == ':',
		"expected %s, got \"%s\"", field, why);
	ck_assert_uint_eq(got.type, 0);
	free(b.p);
}

static inline void refused(const struct wm_msg *m, const char *field)
{
	refused_as(m, CC_ERR_PROTO, field);
}

#endif
