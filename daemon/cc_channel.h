/* SPDX-License-Identifier: MIT
 *
 * A connection between an agent and a master: frames of messages. Messages with secrets are sealed
 * (common/cc_seal.h). The agent knocks (WM_KNOCK), the master answers (WM_KNOCK_ACK), and then both
 * have a seal. A message with secrets that is not sealed is refused, and so is a sealed message
 * without secrets.
 */
#ifndef CC_CHANNEL_H
#define CC_CHANNEL_H

#include "common/cc_seal.h"
#include "proto/wire_master.h"

/* Encodes m as one whole frame, malloc'd. seal: NULL before there is one. Returns 0; CC_ERR_STATE
 * if m is secret and there is no seal yet; or another CC_ERR_*. */
int cc_channel_encode(struct cc_seal *seal, const struct wm_msg *m, uint8_t **ret, size_t *ret_len);
/* Does the same as wire_frame_peek, for sealed and for unsealed frames. */
int cc_channel_peek(const uint8_t *buf, size_t len);
/* Decodes the message of a whole frame (header and payload). Returns the same as
 * wire_master_decode. */
int cc_channel_decode(struct cc_seal *seal, const uint8_t *frame, size_t len, struct wm_msg *ret,
	const char **why);

#endif
