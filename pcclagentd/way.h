/* SPDX-License-Identifier: MIT
 *
 * Proofs of streams between agents (proto/wire_link.h): who connects was sent by the master, who
 * answers is the one that it was sent to. `way` is the key that both know, see cc_key_of_way.
 */
#ifndef WAY_H
#define WAY_H

#include "common/cc_id.h"
#include "proto/wire_link.h"

/* Puts the proof into a hello, and returns it. */
struct cc_key way_prove_hello(const struct cc_key *way, uint8_t buf[WLK_HELLO_SIZE]);
bool way_hello_is_proven(const struct cc_key *way, const uint8_t buf[WLK_HELLO_SIZE]);
/* Into the answer to the hello with this proof. */
void way_prove_ack(const struct cc_key *way, const struct cc_key *hello, uint8_t buf[WLK_ACK_SIZE]);
bool way_ack_is_proven(
	const struct cc_key *way, const struct cc_key *hello, const uint8_t buf[WLK_ACK_SIZE]);

#endif
