/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/proto/sample.h"

struct wlk_hello sample_link_hello(struct tl_rng *r)
{
	struct wlk_hello h = {
		.version_min = WLK_VERSION_MIN,
		.version_max = (uint16_t)tl_range(r, WLK_VERSION_MAX, UINT16_MAX),
		.service = (uint16_t)tl_range(r, WLK_P2P, WLK_BENCHMARK),
		.features = tl_u64(r),
		.run = sample_id(r),
		.nonce = sample_id(r),
		.number = tl_u64(r),
		.proof = sample_key(r),
		.from = sample_id(r),
		.to = sample_id(r),
		.n_streams = (uint16_t)tl_range(r, 1, 64),
	};

	h.stream = (uint16_t)tl_range(r, 0, h.n_streams - 1u);
	return h;
}

bool same_link_hello(const struct wlk_hello *a, const struct wlk_hello *b)
{
	return a->version_min == b->version_min && a->version_max == b->version_max &&
	       a->service == b->service && a->features == b->features &&
	       cc_id_eq(&a->run, &b->run) && cc_id_eq(&a->nonce, &b->nonce) &&
	       a->number == b->number && memcmp(&a->proof, &b->proof, sizeof a->proof) == 0 &&
	       cc_id_eq(&a->from, &b->from) && cc_id_eq(&a->to, &b->to) && a->stream == b->stream &&
	       a->n_streams == b->n_streams;
}

struct wlk_ack sample_link_ack(struct tl_rng *r)
{
	struct wlk_ack a = {
		.version_min = (uint16_t)tl_range(r, 1, 100),
		.version_max = (uint16_t)tl_range(r, 100, UINT16_MAX),
		.code = (uint16_t)tl_range(r, WLK_OK, WLK_REFUSED_LIMIT),
		.features = tl_u64(r),
		.nonce = sample_id(r),
		.proof = sample_key(r),
	};

	if (a.code == WLK_OK)
		a.version = WLK_VERSION_MAX;
	else
		sample_text(r, a.text, sizeof a.text);
	return a;
}

bool same_link_ack(const struct wlk_ack *a, const struct wlk_ack *b)
{
	return a->version_min == b->version_min && a->version_max == b->version_max &&
	       a->version == b->version && a->code == b->code && a->features == b->features &&
	       cc_id_eq(&a->nonce, &b->nonce) &&
	       memcmp(&a->proof, &b->proof, sizeof a->proof) == 0 && strcmp(a->text, b->text) == 0;
}

struct wlk_data sample_link_data(struct tl_rng *r)
{
	struct wlk_data d = {
		.phase = tl_range(r, 0, 1) == 0 ? WLK_REDUCE : WLK_GATHER,
		.group = (uint32_t)tl_u64(r),
		.epoch = tl_u64(r),
		.seq = tl_u64(r),
		.tag = tl_u64(r),
		.seg = (uint32_t)tl_u64(r),
		.len = (uint32_t)tl_range(r, 1, WLK_LEN_MAX),
	};

	d.offset = tl_range(r, 0, ((uint64_t)1 << 48) - d.len);
	return d;
}

bool same_link_data(const struct wlk_data *a, const struct wlk_data *b)
{
	return a->phase == b->phase && a->group == b->group && a->epoch == b->epoch &&
	       a->seq == b->seq && a->tag == b->tag && a->seg == b->seg && a->len == b->len &&
	       a->offset == b->offset;
}
