/* SPDX-License-Identifier: MIT */
#include "pcclagentd/base/handshake.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cc_err.h"
#include "common/cc_seal.h"
#include "pcclagentd/base/report.h"

/* ---- proofs ---- */

static struct cc_key hello_proof(const struct cc_key *key, const uint8_t *buf)
{
	const struct cc_part v = {buf, WLK_HELLO_PROOF};
	struct cc_key ret;

	cc_key_mac(key, &v, 1, &ret);
	return ret;
}

static struct cc_key answer_proof(
	const struct cc_key *key, const struct cc_key *hello, const uint8_t *buf)
{
	const struct cc_part v[] = {{hello->b, sizeof hello->b}, {buf, WLK_ACK_PROOF}};
	struct cc_key ret;

	cc_key_mac(key, v, 2, &ret);
	return ret;
}

static bool is(const struct cc_key *right, const uint8_t *shown)
{
	struct cc_key x;

	memcpy(x.b, shown, sizeof x.b);
	return cc_key_eq(right, &x);
}

struct cc_key hs_prove_hello(const struct cc_key *key, uint8_t buf[WLK_HELLO_SIZE])
{
	struct cc_key proof = hello_proof(key, buf);

	memcpy(buf + WLK_HELLO_PROOF, proof.b, sizeof proof.b);
	return proof;
}

void hs_prove_answer(
	const struct cc_key *key, const struct cc_key *hello, uint8_t buf[WLK_ACK_SIZE])
{
	struct cc_key proof = answer_proof(key, hello, buf);

	memcpy(buf + WLK_ACK_PROOF, proof.b, sizeof proof.b);
}

bool hs_is_proven(const uint8_t buf[WLK_HELLO_SIZE], const struct cc_key *key)
{
	struct cc_key right = hello_proof(key, buf);

	return is(&right, buf + WLK_HELLO_PROOF);
}

static int send_whole(int fd, const uint8_t *buf, size_t len)
{
	return send(fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len ? 0 : CC_ERR_IO;
}

/* ---- the end that connects ---- */

int hs_say_hello(int fd, struct wlk_hello *h, const struct cc_key *key, struct cc_key *ret_proof)
{
	uint8_t buf[WLK_HELLO_SIZE];

	h->version_min = WLK_VERSION_MIN;
	h->version_max = WLK_VERSION_MAX;
	wlk_hello_put(buf, h);
	*ret_proof = hs_prove_hello(key, buf);
	return send_whole(fd, buf, sizeof buf);
}

enum hs_answer hs_take_answer(const uint8_t buf[WLK_ACK_SIZE], const struct cc_key *key,
	const struct cc_key *proof, struct wlk_ack *ret, char *text, size_t size)
{
	struct cc_key right;
	const char *why;

	if (wlk_ack_get(buf, ret, &why) < 0) {
		snprintf(text, size, "no agent there: %s", why);
		return HS_REFUSED;
	}
	if (ret->code != WLK_OK) {
		snprintf(text, size, "refused: %s", ret->text);
		return ret->code == WLK_REFUSED_LIMIT ? HS_LIMIT : HS_REFUSED;
	}
	if (ret->version < WLK_VERSION_MIN || ret->version > WLK_VERSION_MAX) {
		snprintf(text, size, "answered with version %u, this agent knows %u to %u",
			ret->version, WLK_VERSION_MIN, WLK_VERSION_MAX);
		return HS_REFUSED;
	}
	if (!key)
		return HS_WELCOME;
	right = answer_proof(key, proof, buf);
	if (is(&right, buf + WLK_ACK_PROOF))
		return HS_WELCOME;
	snprintf(text, size, "the agent that answers there is not the one that was meant");
	return HS_REFUSED;
}

/* ---- the end that answers ---- */

int hs_welcome(int fd, const struct wlk_hello *h, const struct cc_key *key, uint64_t features,
	const struct cc_id *nonce)
{
	struct wlk_ack a = {.version_min = WLK_VERSION_MIN,
		.version_max = WLK_VERSION_MAX,
		.version = WLK_VERSION_MAX,
		.features = features,
		.nonce = *nonce};
	uint8_t buf[WLK_ACK_SIZE];

	wlk_ack_put(buf, &a);
	hs_prove_answer(key, &h->proof, buf);
	return send_whole(fd, buf, sizeof buf);
}

int hs_answer_probe(int fd, uint64_t features)
{
	struct wlk_ack a = {.version_min = WLK_VERSION_MIN,
		.version_max = WLK_VERSION_MAX,
		.version = WLK_VERSION_MAX,
		.features = features};
	uint8_t buf[WLK_ACK_SIZE];

	wlk_ack_put(buf, &a);
	return send_whole(fd, buf, sizeof buf);
}

int hs_refuse(int fd, enum wlk_code code, const char *text)
{
	struct wlk_ack a = {.version_min = WLK_VERSION_MIN,
		.version_max = WLK_VERSION_MAX,
		.code = (uint16_t)code};
	uint8_t buf[WLK_ACK_SIZE];

	rep_copy_text(a.text, sizeof a.text, text);
	wlk_ack_put(buf, &a);
	return send_whole(fd, buf, sizeof buf);
}
