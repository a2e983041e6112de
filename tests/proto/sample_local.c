/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/proto/sample.h"

static void sample_attach(struct tl_rng *r, struct wl_request *q)
{
	q->master = sample_addr(r, 1);
	if (tl_range(r, 0, 1) == 0)
		q->master_addr = sample_addr(r, 1);
	q->group = (uint32_t)tl_magnitude(r, 32);
	q->pool_size = (uint32_t)tl_range(r, 0, 64);
	q->peer = sample_id(r);
	q->token = sample_id(r);
	q->thread = (uint32_t)tl_magnitude(r, 32);
	q->run = sample_id(r);
	for (uint32_t i = 0; i < WIRE_BALLOTS; i++)
		q->ballots[i] = tl_magnitude(r, 64);
	q->view_id = tl_magnitude(r, 64);
	q->global = (uint32_t)tl_magnitude(r, 32);
	q->n_seqs = (uint32_t)tl_range(r, 0, WL_SEQS_MAX);
	for (uint32_t i = 0; i < q->n_seqs; i++)
		q->seqs[i] = 1 + tl_magnitude(r, 63);
	q->n_succeeded = (uint32_t)tl_range(r, 0, q->n_seqs);
}

void sample_request(struct tl_rng *r, enum wl_type type, struct wl_request *ret)
{
	struct wl_request q = {.type = type, .req_id = 1 + (uint32_t)tl_magnitude(r, 31)};

	switch (type) {
	case WL_HELLO:
		q.version_min = WL_VERSION_MIN;
		q.version_max = (uint32_t)tl_range(r, WL_VERSION_MAX, UINT16_MAX);
		q.features = tl_u64(r);
		sample_text(r, q.name, sizeof q.name);
		break;
	case WL_COMM_CREATE:
		q.master = sample_addr(r, 1);
		q.group = (uint32_t)tl_magnitude(r, 32);
		q.pool_size = (uint32_t)tl_range(r, 0, 64);
		if (tl_range(r, 0, 1) == 0)
			q.master_addr = sample_addr(r, 1);
		break;
	case WL_COMM_CONNECT:
		q.comm = (uint32_t)tl_magnitude(r, 32);
		q.peer = sample_id(r);
		q.token = sample_id(r);
		q.thread = (uint32_t)tl_magnitude(r, 32);
		break;
	case WL_COMM_DESTROY:
		q.comm = (uint32_t)tl_magnitude(r, 32);
		sample_text(r, q.text, sizeof q.text);
		q.until_left = tl_range(r, 0, 1) == 1;
		break;
	case WL_VOTE:
		q.comm = (uint32_t)tl_magnitude(r, 32);
		q.ballot = (enum wire_ballot)tl_range(r, 0, WIRE_BALLOTS - 1);
		break;
	case WL_COMM_ATTACH:
		sample_attach(r, &q);
		break;
	case WL_REGION_ADOPT:
		q.size = tl_range(r, 1, (uint64_t)1 << 48);
		break;
	case WL_REGION_ALLOC:
		q.comm = (uint32_t)tl_magnitude(r, 32);
		q.size = tl_range(r, 1, (uint64_t)1 << 48);
		q.use = (uint32_t)tl_range(r, WL_REGION_REGISTERED, WL_REGION_STATE);
		break;
	case WL_REGION_FREE:
	case WL_REGION_MAP:
		q.comm = (uint32_t)tl_magnitude(r, 32);
		q.region = tl_magnitude(r, 64);
		break;
	}
	*ret = q;
}

/* Compares the fields about the peer and about the numbers that it has received. */
static bool same_peer(const struct wl_request *a, const struct wl_request *b)
{
	return cc_id_eq(&a->peer, &b->peer) && cc_id_eq(&a->token, &b->token) &&
	       a->thread == b->thread && cc_id_eq(&a->run, &b->run) && a->ballot == b->ballot &&
	       memcmp(a->ballots, b->ballots, sizeof a->ballots) == 0 && a->view_id == b->view_id &&
	       a->global == b->global && a->n_seqs == b->n_seqs &&
	       a->n_succeeded == b->n_succeeded && memcmp(a->seqs, b->seqs, sizeof a->seqs) == 0;
}

bool same_request(const struct wl_request *a, const struct wl_request *b)
{
	return a->type == b->type && a->req_id == b->req_id && a->version_min == b->version_min &&
	       a->version_max == b->version_max && a->features == b->features &&
	       strcmp(a->name, b->name) == 0 && cc_addr_eq(&a->master, &b->master) &&
	       cc_addr_eq(&a->master_addr, &b->master_addr) && a->group == b->group &&
	       a->pool_size == b->pool_size && a->comm == b->comm && a->region == b->region &&
	       a->size == b->size && a->use == b->use && same_peer(a, b) &&
	       strcmp(a->text, b->text) == 0 && a->until_left == b->until_left;
}

static struct wire_view sample_view(struct tl_rng *r)
{
	return (struct wire_view){.view_id = tl_magnitude(r, 63) + 1,
		.global = (uint32_t)tl_magnitude(r, 32),
		.group = (uint32_t)tl_magnitude(r, 32),
		.groups = (uint32_t)tl_magnitude(r, 32),
		.largest = (uint32_t)tl_magnitude(r, 32)};
}

static bool same_view(const struct wire_view *a, const struct wire_view *b)
{
	return a->view_id == b->view_id && a->global == b->global && a->group == b->group &&
	       a->groups == b->groups && a->largest == b->largest;
}

void sample_reply(struct tl_rng *r, struct wl_reply *ret)
{
	struct wl_reply p = {
		.req_id = (uint32_t)tl_magnitude(r, 32),
		.code = (uint32_t)tl_range(r, 0, 255),
		.generation = tl_magnitude(r, 64),
		.done = tl_u64(r),
		.ballots = {tl_magnitude(r, 64), tl_magnitude(r, 64), tl_magnitude(r, 64)},
		.version_min = (uint32_t)tl_range(r, 0, 9),
		.version_max = (uint32_t)tl_range(r, 9, UINT16_MAX),
		.version = (uint32_t)tl_range(r, 0, UINT16_MAX),
		.features = tl_u64(r),
		.comm = (uint32_t)tl_magnitude(r, 32),
		.region = tl_magnitude(r, 64),
		.size = tl_magnitude(r, 48),
		.flag = tl_range(r, 0, 1) == 1,
	};

	if (wire_local_is_handover(&p)) {
		p.code = 0;
		p.size |= 1;
	}
	sample_text(r, p.text, sizeof p.text);
	if (tl_range(r, 0, 1) == 0)
		p.run = sample_id(r);
	if (tl_range(r, 0, 1) == 0)
		p.view = sample_view(r);
	p.hash_type = (uint32_t)tl_magnitude(r, 32);
	*ret = p;
}

bool same_reply(const struct wl_reply *a, const struct wl_reply *b)
{
	return a->req_id == b->req_id && a->code == b->code && strcmp(a->text, b->text) == 0 &&
	       a->version_min == b->version_min && a->version_max == b->version_max &&
	       a->version == b->version && a->features == b->features && a->comm == b->comm &&
	       a->region == b->region && a->size == b->size && a->flag == b->flag &&
	       cc_id_eq(&a->run, &b->run) && a->generation == b->generation && a->done == b->done &&
	       memcmp(a->ballots, b->ballots, sizeof a->ballots) == 0 &&
	       a->hash_type == b->hash_type && same_view(&a->view, &b->view);
}
