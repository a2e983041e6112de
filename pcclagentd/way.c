/* SPDX-License-Identifier: MIT */
#include "pcclagentd/way.h"

#include "common/cc_seal.h"

static struct cc_key hello_proof(const struct cc_key *way, const uint8_t *buf)
{
	const struct cc_part v = {buf, WLK_HELLO_PROOF};
	struct cc_key ret;

	cc_key_mac(way, &v, 1, &ret);
	return ret;
}

static struct cc_key ack_proof(
	const struct cc_key *way, const struct cc_key *hello, const uint8_t *buf)
{
	const struct cc_part v[] = {{hello->b, sizeof hello->b}, {buf, WLK_ACK_PROOF}};
	struct cc_key ret;

	cc_key_mac(way, v, 2, &ret);
	return ret;
}

static bool is(const struct cc_key *right, const uint8_t *shown)
{
	struct cc_key x;

	memcpy(x.b, shown, sizeof x.b);
	return cc_key_eq(right, &x);
}

struct cc_key way_prove_hello(const struct cc_key *way, uint8_t buf[WLK_HELLO_SIZE])
{
	struct cc_key proof = hello_proof(way, buf);

	memcpy(buf + WLK_HELLO_PROOF, proof.b, sizeof proof.b);
	return proof;
}

bool way_hello_is_proven(const struct cc_key *way, const uint8_t buf[WLK_HELLO_SIZE])
{
	struct cc_key right = hello_proof(way, buf);

	return is(&right, buf + WLK_HELLO_PROOF);
}

void way_prove_ack(const struct cc_key *way, const struct cc_key *hello, uint8_t buf[WLK_ACK_SIZE])
{
	struct cc_key proof = ack_proof(way, hello, buf);

	memcpy(buf + WLK_ACK_PROOF, proof.b, sizeof proof.b);
}

bool way_ack_is_proven(
	const struct cc_key *way, const struct cc_key *hello, const uint8_t buf[WLK_ACK_SIZE])
{
	struct cc_key right = ack_proof(way, hello, buf);

	return is(&right, buf + WLK_ACK_PROOF);
}
