/* SPDX-License-Identifier: MIT
 *
 * PROTOCOL.md draws these headers. Bytes without a name in this file are sent as zero. In a hello
 * and an answer the receiver ignores them, so that later versions can use them. In a data header it
 * refuses other values than zero, because a stream that is out of step must be noticed.
 */
#include "proto/wire_link.h"

#include <stdbool.h>
#include <string.h>

#include "common/cc_err.h"
#include "proto/wire_bytes.h"
#include "proto/wire_text.h"

#define STREAMS_MAX 64u
#define OPERAND_MAX ((uint64_t)1 << 48)

#define ACK_TEXT  32u
#define ACK_NONCE (ACK_TEXT + WLK_TEXT_MAX)

_Static_assert(ACK_NONCE + 16 == WLK_ACK_PROOF, "layout of the answer");

static int bad(const char **why, const char *text)
{
	*why = text;
	return CC_ERR_PROTO;
}

static bool known_version(uint32_t min, uint32_t max)
{
	return min <= WLK_VERSION_MAX && max >= WLK_VERSION_MIN;
}

/* Does the stream have a special number (probe or eager path) that its service permits? */
static bool is_named(const struct wlk_hello *h)
{
	if (h->stream == WLK_STREAM_PROBE)
		return h->service != WLK_BENCHMARK;
	return h->stream == WLK_STREAM_EAGER && h->service == WLK_P2P;
}

void wlk_hello_put(uint8_t buf[WLK_HELLO_SIZE], const struct wlk_hello *h)
{
	memset(buf, 0, WLK_HELLO_SIZE);
	wire_put32(buf, WLK_MAGIC);
	wire_put16(buf + 4, h->version_min);
	wire_put16(buf + 6, h->version_max);
	wire_put16(buf + 8, h->service);
	wire_put16(buf + 10, h->stream);
	wire_put16(buf + 12, h->n_streams);
	wire_put64(buf + 16, h->features);
	memcpy(buf + 24, h->run.b, 16);
	memcpy(buf + 40, h->nonce.b, 16);
	memcpy(buf + 56, h->from.b, 16);
	memcpy(buf + 72, h->to.b, 16);
	wire_put64(buf + 88, h->number);
	memcpy(buf + WLK_HELLO_PROOF, h->proof.b, sizeof h->proof.b);
}

int wlk_hello_get(const uint8_t buf[WLK_HELLO_SIZE], struct wlk_hello *ret, const char **why)
{
	struct wlk_hello h = {0};

	if (wire_get32(buf) != WLK_MAGIC)
		return bad(why, "hello.magic: must be PCLK");
	h.version_min = wire_get16(buf + 4);
	h.version_max = wire_get16(buf + 6);
	if (h.version_min < 1 || h.version_max < h.version_min)
		return bad(why, "hello.version_min: must be 1 to hello.version_max");
	if (!known_version(h.version_min, h.version_max)) {
		*ret = h;
		return 0;
	}
	h.service = wire_get16(buf + 8);
	h.stream = wire_get16(buf + 10);
	h.n_streams = wire_get16(buf + 12);
	h.features = wire_get64(buf + 16);
	memcpy(h.run.b, buf + 24, 16);
	memcpy(h.nonce.b, buf + 40, 16);
	memcpy(h.from.b, buf + 56, 16);
	memcpy(h.to.b, buf + 72, 16);
	h.number = wire_get64(buf + 88);
	memcpy(h.proof.b, buf + WLK_HELLO_PROOF, sizeof h.proof.b);
	if (h.service < WLK_P2P || h.service > WLK_BENCHMARK)
		return bad(why, "hello.service: must be 1 to 3");
	if (h.n_streams < 1 || h.n_streams > STREAMS_MAX)
		return bad(why, "hello.n_streams: must be 1 to 64");
	if (h.stream >= h.n_streams && !is_named(&h))
		return bad(why, "hello.stream: must be below n_streams");
	if (cc_id_is_zero(&h.from))
		return bad(why, "hello.from: must not be zero");
	*ret = h;
	return 0;
}

void wlk_ack_put(uint8_t buf[WLK_ACK_SIZE], const struct wlk_ack *a)
{
	memset(buf, 0, WLK_ACK_SIZE);
	wire_put32(buf, WLK_MAGIC);
	wire_put16(buf + 4, a->version_min);
	wire_put16(buf + 6, a->version_max);
	wire_put16(buf + 8, a->version);
	wire_put16(buf + 10, a->code);
	wire_put64(buf + 16, a->features);
	wire_text_clean((char *)buf + ACK_TEXT, a->text, sizeof a->text - 1);
	memcpy(buf + ACK_NONCE, a->nonce.b, sizeof a->nonce.b);
	memcpy(buf + WLK_ACK_PROOF, a->proof.b, sizeof a->proof.b);
}

int wlk_ack_get(const uint8_t buf[WLK_ACK_SIZE], struct wlk_ack *ret, const char **why)
{
	struct wlk_ack a = {0};

	if (wire_get32(buf) != WLK_MAGIC)
		return bad(why, "ack.magic: must be PCLK");
	a.version_min = wire_get16(buf + 4);
	a.version_max = wire_get16(buf + 6);
	a.version = wire_get16(buf + 8);
	a.code = wire_get16(buf + 10);
	a.features = wire_get64(buf + 16);
	if (a.version_min < 1 || a.version_max < a.version_min)
		return bad(why, "ack.version_min: must be 1 to ack.version_max");
	if (a.code > WLK_REFUSED_LIMIT)
		return bad(why, "ack.code: must be 0 to 5");
	if (a.code == WLK_OK && !(known_version(a.version, a.version) && a.version != 0))
		return bad(why, "ack.version: not one of those offered");
	if (a.code != WLK_OK && a.version != 0)
		return bad(why, "ack.version: must be 0 in a refusal");
	if (memchr(buf + ACK_TEXT, '\0', WLK_TEXT_MAX) == NULL)
		return bad(why, "ack.text: must be at most 175 bytes");
	wire_text_clean(a.text, (const char *)buf + ACK_TEXT, sizeof a.text - 1);
	memcpy(a.nonce.b, buf + ACK_NONCE, sizeof a.nonce.b);
	memcpy(a.proof.b, buf + WLK_ACK_PROOF, sizeof a.proof.b);
	*ret = a;
	return 0;
}

void wlk_data_put(uint8_t buf[WLK_DATA_SIZE], const struct wlk_data *d)
{
	memset(buf, 0, WLK_DATA_SIZE);
	wire_put32(buf, WLK_MAGIC);
	buf[4] = d->phase;
	wire_put32(buf + 8, d->group);
	wire_put32(buf + 12, d->seg);
	wire_put64(buf + 16, d->epoch);
	wire_put64(buf + 24, d->seq);
	wire_put64(buf + 32, d->tag);
	wire_put64(buf + 40, d->offset);
	wire_put32(buf + 48, d->len);
}

int wlk_data_get(const uint8_t buf[WLK_DATA_SIZE], struct wlk_data *ret, const char **why)
{
	struct wlk_data d = {
		.phase = buf[4],
		.group = wire_get32(buf + 8),
		.seg = wire_get32(buf + 12),
		.epoch = wire_get64(buf + 16),
		.seq = wire_get64(buf + 24),
		.tag = wire_get64(buf + 32),
		.offset = wire_get64(buf + 40),
		.len = wire_get32(buf + 48),
	};

	if (wire_get32(buf) != WLK_MAGIC)
		return bad(why, "data.magic: must be PCLK");
	if (d.phase < WLK_REDUCE || d.phase > WLK_EAGER)
		return bad(why, "data.phase: must be 1 to 3");
	if (d.len < 1 || d.len > WLK_LEN_MAX)
		return bad(why, "data.len: must be 1 to 4194304");
	if (d.offset > OPERAND_MAX - d.len)
		return bad(why, "data.offset: offset + len must be at most 2^48");
	if ((buf[5] | wire_get16(buf + 6) | wire_get32(buf + 52) | wire_get64(buf + 56)) != 0)
		return bad(why, "data.reserved: must be zero");
	*ret = d;
	return 0;
}

void wlk_count_put(uint8_t buf[WLK_COUNT_SIZE], const struct wlk_count *c)
{
	wire_put64(buf, c->bytes);
	wire_put64(buf + 8, c->us);
	wire_put64(buf + 16, c->arrived);
	wire_put64(buf + 24, c->all);
	wire_put64(buf + 32, c->busy);
}

void wlk_count_get(const uint8_t buf[WLK_COUNT_SIZE], struct wlk_count *ret)
{
	*ret = (struct wlk_count){.bytes = wire_get64(buf),
		.us = wire_get64(buf + 8),
		.arrived = wire_get64(buf + 16),
		.all = wire_get64(buf + 24),
		.busy = wire_get64(buf + 32) != 0};
}
