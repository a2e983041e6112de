/* SPDX-License-Identifier: MIT
 *
 * The handshake of a stream between agents (proto/wire_link.h), both ends of it: who connects
 * proves that the master has sent it, who answers that it is the agent that was meant. `key` is
 * known to these two, see cc_link_key. The functions that send want a socket on which nothing was
 * sent yet, and do not block.
 */
#ifndef HANDSHAKE_H
#define HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_id.h"
#include "proto/wire_link.h"

/* Put a proof into a hello, which they return too, and into the answer to the hello with this
 * proof. */
struct cc_key hs_prove_hello(const struct cc_key *key, uint8_t buf[WLK_HELLO_SIZE]);
void hs_prove_answer(
	const struct cc_key *key, const struct cc_key *hello, uint8_t buf[WLK_ACK_SIZE]);

/* ---- the end that connects ---- */

/* Sends h with our versions, and the proof, which is in *ret_proof then. 0, or CC_ERR_IO + errno.
 */
int hs_say_hello(int fd, struct wlk_hello *h, const struct cc_key *key, struct cc_key *ret_proof);

enum hs_answer {
	HS_WELCOME = 0,
	HS_REFUSED, /* or no agent, or another one */
	HS_LIMIT,   /* refused: that agent has reached a limit */
};
/* What has come as the answer. key: NULL for a probe, to which nothing is proven. text: why not. */
enum hs_answer hs_take_answer(const uint8_t buf[WLK_ACK_SIZE], const struct cc_key *key,
	const struct cc_key *proof, struct wlk_ack *ret, char *text, size_t size);

/* ---- the end that answers ---- */

bool hs_is_proven(const uint8_t buf[WLK_HELLO_SIZE], const struct cc_key *key);
/* With the proof that this is the agent that the hello was meant for. 0 or CC_ERR_IO. */
int hs_welcome(int fd, const struct wlk_hello *h, const struct cc_key *key, uint64_t features,
	const struct cc_id *nonce);
/* Proves nothing. */
int hs_answer_probe(int fd, uint64_t features);
int hs_refuse(int fd, enum wlk_code code, const char *text);

#endif
