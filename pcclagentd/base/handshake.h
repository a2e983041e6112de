/* SPDX-License-Identifier: MIT
 *
 * The handshake of a stream between agents (proto/wire_link.h), for both ends. The agent that
 * connects proves that the master has sent it; the agent that answers proves that it is the agent
 * that was meant. Only these two agents and the master know `key`, see cc_link_key. The functions
 * that send do not block. Before they are called, nothing may have been sent on the socket.
 * net/in_link.c handles hellos that are repeated or late.
 */
#ifndef HANDSHAKE_H
#define HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_id.h"
#include "proto/wire_link.h"

/* hs_prove_hello puts the proof into a hello and returns it. hs_prove_answer puts the proof into
 * the answer to the hello with the proof `hello`. */
struct cc_key hs_prove_hello(const struct cc_key *key, uint8_t buf[WLK_HELLO_SIZE]);
void hs_prove_answer(
	const struct cc_key *key, const struct cc_key *hello, uint8_t buf[WLK_ACK_SIZE]);

/* ---- the end that connects ---- */

/* Sends h with this agent's versions and the proof, and returns the proof in *ret_proof. Returns 0,
 * or CC_ERR_IO + errno. */
int hs_say_hello(int fd, struct wlk_hello *h, const struct cc_key *key, struct cc_key *ret_proof);

enum hs_answer {
	HS_WELCOME = 0,
	HS_REFUSED, /* refused, or no agent or the wrong agent answers */
	HS_LIMIT,   /* refused, because that agent has reached a limit */
};
/* Checks the answer in `buf`. key: NULL for a probe, whose answer carries no proof. text: the
 * reason if the answer is not HS_WELCOME. */
enum hs_answer hs_take_answer(const uint8_t buf[WLK_ACK_SIZE], const struct cc_key *key,
	const struct cc_key *proof, struct wlk_ack *ret, char *text, size_t size);

/* ---- the end that answers ---- */

bool hs_is_proven(const uint8_t buf[WLK_HELLO_SIZE], const struct cc_key *key);
/* Accepts the hello h, with the proof that this is the agent that was meant. Returns 0 or
 * CC_ERR_IO. */
int hs_welcome(int fd, const struct wlk_hello *h, const struct cc_key *key, uint64_t features,
	const struct cc_id *nonce);
/* Answers the hello of a probe, without a proof. */
int hs_answer_probe(int fd, uint64_t features);
int hs_refuse(int fd, enum wlk_code code, const char *text);

#endif
