/* SPDX-License-Identifier: MIT */
#include "common/cc_seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_limit.h"

#define NONCE 12u

/* The state of one direction. */
struct seal_dir {
	struct cc_key key;
	uint64_t n; /* messages so far */
};

struct cc_seal {
	EVP_PKEY *pair;
	struct cc_key share, other, agent_key; /* `other` is the share of the other end */
	struct seal_dir out, in;
	bool accepts, agreed;
};

struct cc_identity {
	EVP_PKEY *pair;
	struct cc_key share;
};

/* ---- memory ---- */

static void *whole(void *p)
{
	if (p)
		return p;
	cc_limit_end("libcrypto");
}

static void *new_memory(size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	return n ? whole(malloc(n)) : NULL;
}

static void *more_memory(void *p, size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	if (n > 0)
		return whole(realloc(p, n));
	free(p);
	return NULL;
}

static void free_memory(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	free(p);
}

void cc_seal_prepare(void)
{
	(void)CRYPTO_set_mem_functions(new_memory, more_memory, free_memory);
}

/* ---- keys ---- */

void cc_key_random(struct cc_key *ret)
{
	if (getrandom(ret->b, sizeof ret->b, 0) != (ssize_t)sizeof ret->b)
		abort();
}

bool cc_key_eq(const struct cc_key *a, const struct cc_key *b)
{
	return CRYPTO_memcmp(a->b, b->b, sizeof a->b) == 0;
}

void cc_key_mac(const struct cc_key *key, const struct cc_part *v, size_t n, struct cc_key *ret)
{
	uint8_t text[512];
	unsigned len = sizeof ret->b;
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i].len > sizeof text - at)
			abort(); /* all texts of proofs are short */
		memcpy(text + at, v[i].p, v[i].len);
		at += v[i].len;
	}
	if (!HMAC(EVP_sha256(), key->b, (int)sizeof key->b, text, at, ret->b, &len))
		abort(); /* without memory or libcrypto no proof is possible */
}

static void put_le(uint8_t *buf, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf[i] = (uint8_t)(v >> (8 * i));
}

void cc_link_key(const struct cc_key *agent_key, uint16_t service, uint64_t number,
	const struct cc_id *from, const struct cc_id *to, struct cc_key *ret)
{
	static const char label[] = "pccl way";
	uint8_t no[10];
	const struct cc_part v[] = {{label, sizeof label}, {no, sizeof no},
		{from->b, sizeof from->b}, {to->b, sizeof to->b}};

	put_le(no, service, 2);
	put_le(no + 2, number, 8);
	cc_key_mac(agent_key, v, 4, ret);
}

/* ---- the agreement ---- */

/* Makes a key pair and writes its public half to ret. Returns NULL without memory. */
static EVP_PKEY *new_pair(struct cc_key *ret)
{
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_id(EVP_PKEY_X25519, NULL);
	size_t len = sizeof ret->b;
	EVP_PKEY *pair = NULL;

	if (c && EVP_PKEY_keygen_init(c) == 1 && EVP_PKEY_keygen(c, &pair) == 1 &&
		EVP_PKEY_get_raw_public_key(pair, ret->b, &len) != 1) {
		EVP_PKEY_free(pair);
		pair = NULL;
	}
	EVP_PKEY_CTX_free(c);
	return pair;
}

struct cc_seal *cc_seal_new(bool accepts)
{
	struct cc_seal *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->accepts = accepts;
	s->pair = new_pair(&s->share);
	if (s->pair)
		return s;
	free(s);
	return NULL;
}

void cc_seal_free(struct cc_seal *s)
{
	if (!s)
		return;
	EVP_PKEY_free(s->pair);
	OPENSSL_cleanse(s, sizeof *s);
	free(s);
}

const struct cc_key *cc_seal_share(const struct cc_seal *s)
{
	return &s->share;
}

static int derive(EVP_PKEY *pair, const struct cc_key *share, struct cc_key *ret)
{
	EVP_PKEY *other =
		EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, share->b, sizeof share->b);
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new(pair, NULL);
	size_t len = sizeof ret->b;
	int err = CC_ERR_NOMEM;

	/* EVP_PKEY_derive fails for a share that would lead to a secret known to everybody. */
	if (other && c && EVP_PKEY_derive_init(c) == 1 && EVP_PKEY_derive_set_peer(c, other) == 1)
		err = EVP_PKEY_derive(c, ret->b, &len) == 1 ? 0 : CC_ERR_PROTO;
	EVP_PKEY_CTX_free(c);
	EVP_PKEY_free(other);
	return err;
}

/* The second step of HKDF (RFC 5869). `from` is the extracted key, and i counts from 1. */
static void expand(
	const struct cc_key *from, const struct cc_key *before, uint8_t i, struct cc_key *ret)
{
	static const char info[] = "pccl seal";
	const struct cc_part v[] = {
		{before, before ? sizeof before->b : 0}, {info, sizeof info}, {&i, 1}};

	cc_key_mac(from, before ? v : v + 1, before ? 3 : 2, ret);
}

int cc_seal_agree(struct cc_seal *s, const struct cc_key *share)
{
	const struct cc_key *opened = s->accepts ? share : &s->share;
	const struct cc_key *accepted = s->accepts ? &s->share : share;
	struct seal_dir *there = s->accepts ? &s->in : &s->out,
			*back = s->accepts ? &s->out : &s->in;
	struct cc_key secret, salt = {{0}}, extracted;
	int err = s->agreed ? CC_ERR_PROTO : derive(s->pair, share, &secret);
	const struct cc_part v[] = {{secret.b, sizeof secret.b}, {opened->b, sizeof opened->b},
		{accepted->b, sizeof accepted->b}};

	if (err < 0)
		return err;
	cc_key_mac(&salt, v, 3, &extracted);
	expand(&extracted, NULL, 1, &there->key);
	expand(&extracted, &there->key, 2, &back->key);
	expand(&extracted, &back->key, 3, &s->agent_key);
	OPENSSL_cleanse(&secret, sizeof secret);
	OPENSSL_cleanse(&extracted, sizeof extracted);
	s->other = *share;
	s->agreed = true;
	return 0;
}

bool cc_seal_agreed(const struct cc_seal *s)
{
	return s->agreed;
}

const struct cc_key *cc_seal_agent_key(const struct cc_seal *s)
{
	return &s->agent_key;
}

/* ---- identities ---- */

struct cc_identity *cc_identity_new(void)
{
	struct cc_identity *x = calloc(1, sizeof *x);

	if (!x)
		return NULL;
	x->pair = new_pair(&x->share);
	if (x->pair)
		return x;
	free(x);
	return NULL;
}

void cc_identity_free(struct cc_identity *x)
{
	if (!x)
		return;
	EVP_PKEY_free(x->pair);
	free(x);
}

const struct cc_key *cc_identity_share(const struct cc_identity *x)
{
	return &x->share;
}

void cc_seal_id_of(const struct cc_key *share, struct cc_id *ret)
{
	static const char label[] = "pccl agent";
	const struct cc_part v = {label, sizeof label};
	struct cc_key mac;

	cc_key_mac(share, &v, 1, &mac);
	memcpy(ret->b, mac.b, sizeof ret->b);
}

/* Computes a proof. The key of the proof is a secret that only the owners of the two key pairs
 * know, and only the two ends of the connection know s->agent_key. */
static int proof_of(
	const struct cc_seal *s, EVP_PKEY *pair, const struct cc_key *other, struct cc_key *ret)
{
	static const char label[] = "pccl proof";
	const struct cc_part v[] = {{label, sizeof label}, {s->agent_key.b, sizeof s->agent_key.b}};
	struct cc_key secret;
	int err = derive(pair, other, &secret);

	if (err == 0)
		cc_key_mac(&secret, v, 2, ret);
	OPENSSL_cleanse(&secret, sizeof secret);
	return err;
}

int cc_seal_prove(const struct cc_seal *s, const struct cc_identity *x, struct cc_key *ret)
{
	return proof_of(s, x->pair, &s->other, ret);
}

bool cc_seal_is_proven(
	const struct cc_seal *s, const struct cc_key *share, const struct cc_key *proof)
{
	struct cc_key right;

	return proof_of(s, s->pair, share, &right) == 0 && cc_key_eq(&right, proof);
}

/* ---- messages ---- */

static EVP_CIPHER_CTX *begin(struct seal_dir *w, int seals)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t nonce[NONCE] = {0};

	put_le(nonce, w->n, 8);
	if (c && EVP_CipherInit_ex(c, EVP_chacha20_poly1305(), NULL, w->key.b, nonce, seals) != 1) {
		EVP_CIPHER_CTX_free(c);
		return NULL;
	}
	w->n++;
	return c;
}

int cc_seal_put(struct cc_seal *s, const uint8_t *buf, size_t len, uint8_t *ret)
{
	EVP_CIPHER_CTX *c = begin(&s->out, 1);
	int n = 0, end = 0;
	bool good = c && EVP_EncryptUpdate(c, ret, &n, buf, (int)len) == 1 &&
		    EVP_EncryptFinal_ex(c, ret + n, &end) == 1 &&
		    EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, CC_SEAL_TAG, ret + len) == 1;

	EVP_CIPHER_CTX_free(c);
	return good ? 0 : CC_ERR_NOMEM;
}

int cc_seal_get(struct cc_seal *s, const uint8_t *buf, size_t len, uint8_t *ret)
{
	size_t text = len - CC_SEAL_TAG;
	uint8_t tag[CC_SEAL_TAG];
	EVP_CIPHER_CTX *c;
	int n = 0, end = 0;
	bool good;

	if (len < CC_SEAL_TAG)
		return CC_ERR_PROTO;
	c = begin(&s->in, 0);
	memcpy(tag, buf + text, sizeof tag);
	good = c && EVP_DecryptUpdate(c, ret, &n, buf, (int)text) == 1 &&
	       EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, CC_SEAL_TAG, tag) == 1 &&
	       EVP_DecryptFinal_ex(c, ret + n, &end) == 1;
	EVP_CIPHER_CTX_free(c);
	return good ? 0 : CC_ERR_PROTO;
}
