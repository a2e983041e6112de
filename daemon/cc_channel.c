/* SPDX-License-Identifier: MIT */
#include "daemon/cc_channel.h"

#include <stdlib.h>

#include "common/cc_err.h"
#include "proto/wire_frame.h"

static bool has_seal(const struct cc_seal *seal)
{
	return seal && cc_seal_agreed(seal);
}

static int put_under_seal(struct cc_seal *seal, uint8_t **frame, size_t *len)
{
	size_t text = *len - WIRE_FRAME_HDR;
	uint8_t *sealed;
	int err;

	if (!has_seal(seal))
		return CC_ERR_STATE;
	if (text > WIRE_FRAME_MAX - CC_SEAL_TAG)
		return CC_ERR_LIMIT;
	sealed = malloc(*len + CC_SEAL_TAG);
	if (!sealed)
		return CC_ERR_NOMEM;
	wire_frame_put(sealed, WIRE_KIND_SEALED, (uint32_t)(text + CC_SEAL_TAG));
	err = cc_seal_put(seal, *frame + WIRE_FRAME_HDR, text, sealed + WIRE_FRAME_HDR);
	if (err < 0) {
		free(sealed);
		return err;
	}
	free(*frame);
	*frame = sealed;
	*len += CC_SEAL_TAG;
	return 0;
}

int cc_channel_encode(struct cc_seal *seal, const struct wm_msg *m, uint8_t **ret, size_t *ret_len)
{
	uint8_t *frame;
	size_t len;
	int err = wire_master_encode(m, &frame, &len);

	if (err < 0)
		return err;
	if (wire_master_is_secret(m))
		err = put_under_seal(seal, &frame, &len);
	if (err < 0) {
		free(frame);
		return err;
	}
	*ret = frame;
	*ret_len = len;
	return 0;
}

static enum wire_kind kind_of(const uint8_t *buf, size_t len)
{
	return len >= 8 && buf[6] == WIRE_KIND_SEALED && buf[7] == 0 ? WIRE_KIND_SEALED
								     : WIRE_KIND_MASTER;
}

int cc_channel_peek(const uint8_t *buf, size_t len)
{
	return wire_frame_peek(buf, len, kind_of(buf, len));
}

static int decode_sealed(struct cc_seal *seal, const uint8_t *payload, size_t len,
	struct wm_msg *ret, const char **why)
{
	uint8_t *text;
	int err;

	if (!has_seal(seal)) {
		*why = "message: sealed before a knock";
		return CC_ERR_PROTO;
	}
	text = malloc(len + 1);
	if (!text) {
		*why = "out of memory";
		return CC_ERR_NOMEM;
	}
	err = cc_seal_get(seal, payload, len, text);
	if (err < 0)
		*why = "message: not under the seal of this connection";
	else
		err = wire_master_decode(text, len - CC_SEAL_TAG, ret, why);
	free(text);
	return err;
}

int cc_channel_decode(struct cc_seal *seal, const uint8_t *frame, size_t len, struct wm_msg *ret,
	const char **why)
{
	bool sealed = kind_of(frame, len) == WIRE_KIND_SEALED;
	const uint8_t *payload = frame + WIRE_FRAME_HDR;
	int err;

	len -= WIRE_FRAME_HDR;
	err = sealed ? decode_sealed(seal, payload, len, ret, why)
		     : wire_master_decode(payload, len, ret, why);
	if (err < 0)
		return err;
	if (wire_master_is_secret(ret) != sealed) {
		wire_master_clear(ret);
		*why = sealed ? "message: sealed, though it has no secret"
			      : "message: has secrets, and is not sealed";
		return CC_ERR_PROTO;
	}
	return 0;
}
