/* SPDX-License-Identifier: MIT
 *
 * Encodes and decodes the messages about synchronizations of shared state, in both directions.
 */
#include <string.h>

#include "common/cc_err.h"
#include "proto/wire_bytes.h"
#include "proto/wire_master_internal.h"
#include "proto/wire_pb.h"

#define STRATEGY_MAX 2u
#define DIGEST       16u

_Static_assert(WIRE_STATE_MAX == UINT64_C(281474976710656), "limits named in texts");
_Static_assert(WIRE_TENSORS_MAX == 1048576, "limits named in texts");

/* ---- decoding ---- */

static int get_digest(
	struct wm_digest *ret, ProtobufCBinaryData b, const char **why, const char *text)
{
	if (b.len != DIGEST)
		return wire_bad(why, text);
	ret->hi = wire_get64(b.data);
	ret->lo = wire_get64(b.data + 8);
	return 0;
}

int wire_get_sync_vote(const Ccoip__SyncVote *p, struct wm_sync_vote *m, const char **why)
{
	int rc = get_digest(&m->keys, p->keys, why, "op_vote.sync.keys: must be 16 bytes");

	if (rc == 0)
		rc = get_digest(
			&m->content, p->content, why, "op_vote.sync.content: must be 16 bytes");
	if (rc != 0)
		return rc;
	if (p->strategy > STRATEGY_MAX)
		return wire_bad(why, "op_vote.sync.strategy: must be 0 to 2");
	if (p->hash_type < 1 || p->hash_type > WIRE_HASH_TYPE_MAX)
		return wire_bad(why, "op_vote.sync.hash_type: must be 1 to 255");
	if (p->tensors > WIRE_TENSORS_MAX)
		return wire_bad(why, "op_vote.sync.tensors: must be at most 1048576");
	if (p->bytes > WIRE_STATE_MAX)
		return wire_bad(why, "op_vote.sync.bytes: must be at most 2^48");
	m->revision = p->revision;
	m->strategy = p->strategy;
	m->hash_type = p->hash_type;
	m->n_tensors = p->tensors;
	m->bytes = p->bytes;
	m->torn = p->torn;
	return 0;
}

int wire_get_sync_elected(const Ccoip__SyncElected *p, struct wm_sync_elected *m, const char **why)
{
	m->revision = p->revision;
	return get_digest(
		&m->content, p->content, why, "op_vote.elected.content: must be 16 bytes");
}

int wire_get_sync_failures(const Ccoip__OpReport *p, struct wm_op_report *m, const char **why)
{
	int rc = 0;

	if (p->n_failed > WM_PEERS_MAX)
		return wire_bad(why, "op_report.failed: must be at most " WIRE_STR(WM_PEERS_MAX));
	if (p->n_failed == 0)
		return 0;
	m->failed = wire_new_array(p->n_failed, sizeof *m->failed, &rc, why);
	if (m->failed == NULL)
		return rc;
	m->n_failed = (uint32_t)p->n_failed;
	for (size_t i = 0; rc == 0 && i < p->n_failed; i++) {
		const Ccoip__SyncFailure *f = p->failed[i];
		struct wm_sync_failure *to = &m->failed[i];

		rc = wire_get_id(&to->peer, f->peer, why, "op_report.failed.peer: " WIRE_ID_LIMIT);
		if (rc == 0)
			rc = wire_get_code(
				f->code, &to->code, why, "op_report.failed.code: must be 1 to 255");
		if (rc == 0)
			rc = wire_get_text(to->text, sizeof to->text, f->text, why,
				"op_report.failed.text: " WIRE_TEXT_LIMIT);
	}
	if (rc == 0 && wire_ids_repeat(m->failed, m->n_failed, sizeof *m->failed))
		return wire_bad(why, "op_report.failed: must not name a peer twice");
	return rc;
}

static int get_peers(const Ccoip__SyncStart *p, struct wm_sync_start *m, const char **why)
{
	int rc = 0;

	if (p->n_peers < 1 || p->n_peers > WM_PEERS_MAX)
		return wire_bad(why, "op_start.sync.peers: must be 1 to " WIRE_STR(WM_PEERS_MAX));
	m->peers = wire_new_array(p->n_peers, sizeof *m->peers, &rc, why);
	if (m->peers == NULL)
		return rc;
	m->n_peers = (uint32_t)p->n_peers;
	for (size_t i = 0; i < p->n_peers; i++) {
		rc = wire_get_id(&m->peers[i].peer, p->peers[i]->peer, why,
			"op_start.sync.peers.peer: " WIRE_ID_LIMIT);
		if (rc != 0)
			return rc;
		if (p->peers[i]->role != CCOIP__SYNC_ROLE__SYNC_HOLDER &&
			p->peers[i]->role != CCOIP__SYNC_ROLE__SYNC_RECEIVER)
			return wire_bad(why, "op_start.sync.peers.role: must be 0 or 1");
		m->peers[i].role = (uint32_t)p->peers[i]->role;
	}
	if (wire_ids_repeat(m->peers, m->n_peers, sizeof *m->peers))
		return wire_bad(why, "op_start.sync.peers: must not name a peer twice");
	return 0;
}

/* Decodes a list of sources. *ret and *ret_n are fields of the message, which owns the memory. */
static int get_sources(Ccoip__SyncSource *const *v, size_t n, struct wm_sync_source **ret,
	uint32_t *ret_n, const struct wire_endpoint_texts *texts, const char **why)
{
	int rc = 0;

	*ret = wire_new_array(n, sizeof **ret, &rc, why);
	if (*ret == NULL)
		return rc;
	*ret_n = (uint32_t)n;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		(*ret)[i].holders = v[i]->holders;
		rc = wire_get_endpoint(v[i]->endpoint, &(*ret)[i].endpoint, texts, why);
	}
	return rc;
}

static bool same_agent_twice(const struct wm_sync_start *m)
{
	struct cc_id ids[2 * WM_SOURCES_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_sources; i++)
		ids[n++] = m->sources[i].endpoint.agent;
	for (uint32_t i = 0; i < m->n_others; i++)
		ids[n++] = m->others[i].endpoint.agent;
	return wire_ids_repeat(ids, n, sizeof ids[0]);
}

static int get_all_sources(const Ccoip__SyncStart *p, struct wm_sync_start *m, const char **why)
{
	static const struct wire_endpoint_texts sources = WIRE_ENDPOINT_TEXTS(
							"op_start.sync.sources.endpoint"),
						others = WIRE_ENDPOINT_TEXTS(
							"op_start.sync.others.endpoint");
	int rc;

	if (p->n_sources > WM_SOURCES_MAX)
		return wire_bad(
			why, "op_start.sync.sources: must be at most " WIRE_STR(WM_SOURCES_MAX));
	if (p->n_others > WM_SOURCES_MAX)
		return wire_bad(
			why, "op_start.sync.others: must be at most " WIRE_STR(WM_SOURCES_MAX));
	rc = get_sources(p->sources, p->n_sources, &m->sources, &m->n_sources, &sources, why);
	if (rc == 0)
		rc = get_sources(p->others, p->n_others, &m->others, &m->n_others, &others, why);
	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < m->n_sources; i++)
		if (m->sources[i].holders < 1 || m->sources[i].holders > WM_PEERS_MAX)
			return wire_bad(
				why, "op_start.sync.sources.holders: must be 1 to " WIRE_STR(
					     WM_PEERS_MAX));
	for (uint32_t i = 0; i < m->n_others; i++)
		if (m->others[i].holders != 0)
			return wire_bad(why, "op_start.sync.others.holders: must be 0");
	if (same_agent_twice(m))
		return wire_bad(why, "op_start.sync.sources: must not name an agent twice");
	return 0;
}

int wire_get_sync_start(const Ccoip__SyncStart *p, struct wm_sync_start *m, const char **why)
{
	int rc = get_digest(&m->keys, p->keys, why, "op_start.sync.keys: must be 16 bytes");

	if (rc == 0)
		rc = get_digest(
			&m->content, p->content, why, "op_start.sync.content: must be 16 bytes");
	if (rc != 0)
		return rc;
	if (p->hash_type < 1 || p->hash_type > WIRE_HASH_TYPE_MAX)
		return wire_bad(why, "op_start.sync.hash_type: must be 1 to 255");
	m->revision = p->revision;
	m->hash_type = p->hash_type;
	rc = get_peers(p, m, why);
	return rc == 0 ? get_all_sources(p, m, why) : rc;
}

/* ---- encoding ---- */

static ProtobufCBinaryData put_digest(struct wire_arena *a, const struct wm_digest *d)
{
	uint8_t *p = wire_arena_take(a, 1, DIGEST);

	if (p == NULL)
		return (ProtobufCBinaryData){0};
	wire_put64(p, d->hi);
	wire_put64(p + 8, d->lo);
	return (ProtobufCBinaryData){.len = DIGEST, .data = p};
}

Ccoip__SyncVote *wire_put_sync_vote(struct wire_arena *a, const struct wm_sync_vote *m)
{
	Ccoip__SyncVote *p = wire_arena_take(a, 1, sizeof *p);

	if (p == NULL)
		return NULL;
	ccoip__sync_vote__init(p);
	p->revision = m->revision;
	p->strategy = m->strategy;
	p->hash_type = m->hash_type;
	p->keys = put_digest(a, &m->keys);
	p->content = put_digest(a, &m->content);
	p->tensors = m->n_tensors;
	p->bytes = m->bytes;
	p->torn = m->torn;
	return p;
}

Ccoip__SyncElected *wire_put_sync_elected(struct wire_arena *a, const struct wm_sync_elected *m)
{
	Ccoip__SyncElected *p = wire_arena_take(a, 1, sizeof *p);

	if (p == NULL)
		return NULL;
	ccoip__sync_elected__init(p);
	p->revision = m->revision;
	p->content = put_digest(a, &m->content);
	return p;
}

size_t wire_put_sync_failures(
	struct wire_arena *a, const struct wm_sync_failure *v, size_t n, Ccoip__SyncFailure ***ret)
{
	Ccoip__SyncFailure *p = wire_arena_take(a, n, sizeof *p);
	Ccoip__SyncFailure **pointers = wire_arena_take_pointers(a, n);

	if (p == NULL || pointers == NULL)
		return 0;
	for (size_t i = 0; i < n; i++) {
		pointers[i] = &p[i];
		ccoip__sync_failure__init(&p[i]);
		p[i].peer = wire_put_id(&v[i].peer);
		p[i].code = v[i].code;
		p[i].text = wire_put_text(a, v[i].text, sizeof v[i].text);
	}
	*ret = pointers;
	return n;
}

static size_t put_peers(
	struct wire_arena *a, const struct wm_sync_peer *v, size_t n, Ccoip__SyncPeer ***ret)
{
	Ccoip__SyncPeer *p = wire_arena_take(a, n, sizeof *p);
	Ccoip__SyncPeer **pointers = wire_arena_take_pointers(a, n);

	if (p == NULL || pointers == NULL)
		return 0;
	for (size_t i = 0; i < n; i++) {
		pointers[i] = &p[i];
		ccoip__sync_peer__init(&p[i]);
		p[i].peer = wire_put_id(&v[i].peer);
		p[i].role = (Ccoip__SyncRole)v[i].role;
	}
	*ret = pointers;
	return n;
}

static size_t put_sources(
	struct wire_arena *a, const struct wm_sync_source *v, size_t n, Ccoip__SyncSource ***ret)
{
	Ccoip__SyncSource *p = wire_arena_take(a, n, sizeof *p);
	Ccoip__SyncSource **pointers = wire_arena_take_pointers(a, n);

	if (p == NULL || pointers == NULL)
		return 0;
	for (size_t i = 0; i < n; i++) {
		pointers[i] = &p[i];
		ccoip__sync_source__init(&p[i]);
		p[i].endpoint = wire_put_endpoint(a, &v[i].endpoint);
		p[i].holders = v[i].holders;
	}
	*ret = pointers;
	return n;
}

void wire_put_sync_start(struct wire_arena *a, const struct wm_sync_start *m, Ccoip__SyncStart *p)
{
	ccoip__sync_start__init(p);
	p->revision = m->revision;
	p->hash_type = m->hash_type;
	p->keys = put_digest(a, &m->keys);
	p->content = put_digest(a, &m->content);
	p->n_peers = put_peers(a, m->peers, m->n_peers, &p->peers);
	p->n_sources = put_sources(a, m->sources, m->n_sources, &p->sources);
	p->n_others = put_sources(a, m->others, m->n_others, &p->others);
}
