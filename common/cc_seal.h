/* SPDX-License-Identifier: MIT
 *
 * Secrets of the daemons, based on OpenSSL's libcrypto. A *seal* belongs to one end of a
 * connection. Both ends make a key pair for the connection (X25519) and send each other the public
 * halves. From these they derive keys that a mere listener does not know (HKDF with SHA-256). One
 * end seals messages (ChaCha20-Poly1305), and the other end opens each message once, in the order
 * of sealing.
 *
 * An *identity* is a key pair of an agent process. The agent id follows from the public half, so no
 * agent can use the id of another agent. On each connection the agent proves that it has the
 * private half.
 *
 * An *agent's key* follows from the seal between the agent and its master. When the master tells
 * agent A to connect to agent B, it gives A a key that is made from B's agent key. So B can compute
 * this key, too, without a message from the master. A proof is a MAC (HMAC with SHA-256) under a
 * key that both sides know.
 */
#ifndef CC_SEAL_H
#define CC_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "common/cc_id.h"

#define CC_SEAL_TAG 16u /* bytes that sealing adds to a message */

struct cc_seal;

/* Makes the process end, with a log line and the status EX_OSERR, whenever libcrypto gets no
 * memory, because libcrypto might otherwise use a null pointer. A daemon must call this first. */
void cc_seal_prepare(void);
/* Returns a new seal, or NULL without memory. `accepts` is true for the end that accepts the
 * connection. */
struct cc_seal *cc_seal_new(bool accepts);
void cc_seal_free(struct cc_seal *s); /* NULL is fine */
/* Returns the public half of this end's key pair. */
const struct cc_key *cc_seal_share(const struct cc_seal *s);
/* Agrees on keys with the public half of the other end. Works once. Returns 0, CC_ERR_NOMEM, or
 * CC_ERR_PROTO if `share` is not a valid public half or the keys are already agreed. */
int cc_seal_agree(struct cc_seal *s, const struct cc_key *share);
bool cc_seal_agreed(const struct cc_seal *s);
/* Seals a message. Writes len + CC_SEAL_TAG bytes. Returns 0 or CC_ERR_NOMEM. */
int cc_seal_put(struct cc_seal *s, const uint8_t *buf, size_t len, uint8_t *ret);
/* Opens a message. Writes len - CC_SEAL_TAG bytes. Returns 0, or CC_ERR_PROTO if the other end did
 * not seal these bytes as its next message. */
int cc_seal_get(struct cc_seal *s, const uint8_t *buf, size_t len, uint8_t *ret);
struct cc_identity;
struct cc_identity *cc_identity_new(void);    /* NULL without memory */
void cc_identity_free(struct cc_identity *x); /* NULL is fine */
const struct cc_key *cc_identity_share(const struct cc_identity *x);
/* Computes the id of the agent with this public half. */
void cc_seal_id_of(const struct cc_key *share, struct cc_id *ret);
/* Makes the proof of an identity for the other end of this connection. Returns 0 or CC_ERR_NOMEM.
 */
int cc_seal_prove(const struct cc_seal *s, const struct cc_identity *x, struct cc_key *ret);
bool cc_seal_is_proven(
	const struct cc_seal *s, const struct cc_key *share, const struct cc_key *proof);

/* Returns the agent's key that follows from this seal between an agent and its master. */
const struct cc_key *cc_seal_agent_key(const struct cc_seal *s);

/* Fills the key with random bytes. */
void cc_key_random(struct cc_key *ret);
/* Compares keys. The time of the comparison does not show how many bytes of a guess were right. */
bool cc_key_eq(const struct cc_key *a, const struct cc_key *b);
/* Computes the HMAC-SHA256 of n parts as if they were one text. `key` and `ret` may be the same. */
struct cc_part {
	const void *p;
	size_t len;
};
void cc_key_mac(const struct cc_key *key, const struct cc_part *v, size_t n, struct cc_key *ret);
/* Computes the key that agent `from` must know in order to connect to agent `to`, whose agent key
 * is agent_key. The key is valid for one service (enum wlk_service) and for the round or attempt
 * with this number. */
void cc_link_key(const struct cc_key *agent_key, uint16_t service, uint64_t number,
	const struct cc_id *from, const struct cc_id *to, struct cc_key *ret);

#endif
