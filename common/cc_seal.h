/* SPDX-License-Identifier: MIT
 *
 * Secrets of the daemons, by OpenSSL's libcrypto. A *seal* is one end of a connection: both ends
 * make a key pair for it (X25519), show each other the public halves, and have keys that nobody
 * else knows who only listens (HKDF with SHA-256). What one end puts under seal
 * (ChaCha20-Poly1305) the other one opens, each message once and in its order.
 *
 * An *identity* is a key pair of an agent process. Its id follows from the public half, so nobody
 * can take another's, and it proves on each connection that it has the other half.
 *
 * An *agent's key* follows from the seal between it and its master. What proves to agent B that
 * the master has sent agent A to it is made from B's, so that B knows it without being told.
 * A proof is a MAC (HMAC with SHA-256) under a key that both know.
 */
#ifndef CC_SEAL_H
#define CC_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "common/cc_id.h"

#define CC_SEAL_TAG 16u /* bytes that what is sealed is longer by */

struct cc_seal;

/* Call this first in a daemon. From then on the process ends, with a line in the log and the status
 * EX_OSERR, where libcrypto gets no memory: libcrypto itself may use what it did not get. */
void cc_seal_prepare(void);
/* NULL without memory. accepts: the end that was connected to. */
struct cc_seal *cc_seal_new(bool accepts);
void cc_seal_free(struct cc_seal *s); /* NULL is fine */
/* The public half of this end's key pair. */
const struct cc_key *cc_seal_share(const struct cc_seal *s);
/* With the other end's, once. 0; CC_ERR_PROTO: it is none, CC_ERR_NOMEM. */
int cc_seal_agree(struct cc_seal *s, const struct cc_key *share);
bool cc_seal_agreed(const struct cc_seal *s);
/* len + CC_SEAL_TAG bytes. 0 or CC_ERR_NOMEM. */
int cc_seal_put(struct cc_seal *s, const uint8_t *buf, size_t len, uint8_t *ret);
/* len - CC_SEAL_TAG bytes. 0; CC_ERR_PROTO: the other end did not seal this, or not as the next. */
int cc_seal_get(struct cc_seal *s, const uint8_t *buf, size_t len, uint8_t *ret);
struct cc_identity;
struct cc_identity *cc_identity_new(void);    /* NULL without memory */
void cc_identity_free(struct cc_identity *x); /* NULL is fine */
const struct cc_key *cc_identity_share(const struct cc_identity *x);
/* The id of the agent with this public half. */
void cc_seal_id_of(const struct cc_key *share, struct cc_id *ret);
/* To the other end of the connection that this is the seal of. 0 or CC_ERR_NOMEM. */
int cc_seal_prove(const struct cc_seal *s, const struct cc_identity *x, struct cc_key *ret);
bool cc_seal_is_proven(
	const struct cc_seal *s, const struct cc_key *share, const struct cc_key *proof);

/* Of the agent whose seal with its master this is. */
const struct cc_key *cc_seal_agent_key(const struct cc_seal *s);

/* Random bytes. */
void cc_key_random(struct cc_key *ret);
/* Time does not tell how much of a guess was right. */
bool cc_key_eq(const struct cc_key *a, const struct cc_key *b);
/* HMAC-SHA256 of n parts as if they were one; key and ret may be the same. */
struct cc_part {
	const void *p;
	size_t len;
};
void cc_key_mac(const struct cc_key *key, const struct cc_part *v, size_t n, struct cc_key *ret);
/* What agent `from` is to know when it connects to the one with this key: for one service (enum
 * wlk_service), and the round or attempt with this number. */
void cc_link_key(const struct cc_key *agent_key, uint16_t service, uint64_t number,
	const struct cc_id *from, const struct cc_id *to, struct cc_key *ret);

#endif
