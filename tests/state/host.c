/* SPDX-License-Identifier: MIT */
#include "tests/state/host.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_futex.h"
#include "common/cc_shm.h"
#include "common/cc_sys.h"
#include "proto/wire_dtype.h"
#include "pcclagentd/base/handshake.h"
#include "proto/wire_link.h"

#define U8 0 /* pcclUint8 */

uint32_t net_pool, net_hashes;
uint64_t rng_state;

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t rng(void)
{
	return mix(rng_state += 0x9e3779b97f4a7c15u);
}

/* ---- contents ---- */

void shape_init(struct shape *s, uint32_t n, uint64_t seed)
{
	*s = (struct shape){.n = n,
		.seed = seed,
		.bytes = calloc(n + 1, sizeof *s->bytes),
		.may_differ = calloc(n + 1, sizeof *s->may_differ)};
}

void shape_one(struct shape *s, uint64_t bytes)
{
	shape_init(s, 1, 11);
	s->bytes[0] = bytes;
}

void shape_two(struct shape *s, uint64_t bytes)
{
	shape_init(s, 2, 11);
	s->bytes[0] = bytes;
	s->bytes[1] = 5;
}

void shape_free(struct shape *s)
{
	free(s->bytes);
	free(s->may_differ);
}

uint64_t shape_bytes(const struct shape *s)
{
	uint64_t sum = 0;

	for (uint32_t t = 0; t < s->n; t++)
		sum += s->may_differ[t] ? 0 : s->bytes[t];
	return sum;
}

static uint64_t word(const struct shape *s, uint32_t tensor, uint64_t i)
{
	return mix(s->seed * 0x9e3779b97f4a7c15u + ((uint64_t)tensor << 40) + i) |
	       0x0101010101010101u;
}

uint8_t shape_byte(const struct shape *s, uint32_t tensor, uint64_t i)
{
	return (uint8_t)(word(s, tensor, i / 8) >> i % 8 * 8);
}

static void fill(const struct shape *s, uint32_t tensor, uint8_t *dst)
{
	uint64_t i;

	for (i = 0; i + 8 <= s->bytes[tensor]; i += 8) {
		uint64_t w = word(s, tensor, i / 8);

		memcpy(dst + i, &w, 8);
	}
	for (; i < s->bytes[tensor]; i++)
		dst[i] = shape_byte(s, tensor, i);
}

static uint64_t hash_tensor(const uint8_t *data, uint64_t bytes, uint64_t *leaves)
{
	hsh_leaves(hsh_leaf, data, bytes, 0, UINT64_MAX, leaves);
	return hsh_tensor(leaves, bytes);
}

struct wm_digest shape_digest(struct shape *s)
{
	uint64_t *hashes = calloc(s->n + 1, sizeof *hashes), d[2];
	size_t n = 0;

	for (uint32_t t = 0; !s->digested && t < s->n; t++) {
		uint8_t *data = malloc(s->bytes[t] + 1);
		uint64_t *leaves = calloc(wire_leaf_count(s->bytes[t]) + 1, sizeof *leaves);

		fill(s, t, data);
		if (!s->may_differ[t])
			hashes[n++] = hash_tensor(data, s->bytes[t], leaves);
		free(data);
		free(leaves);
	}
	if (!s->digested) {
		hsh_digest(hashes, n * sizeof *hashes, d);
		s->digest = (struct wm_digest){d[0], d[1]};
		s->digested = true;
	}
	free(hashes);
	return s->digest;
}

/* ---- members ---- */

static bool is_registered(enum kind kind, uint32_t tensor)
{
	return kind == REGISTERED || (kind == MIXED && tensor % 2);
}

struct member *member_add(struct host *h, struct shape *s, bool holder, enum kind kind)
{
	struct member *m = &h->m[h->n_members++];
	uint64_t used = 0;
	void *map;

	ck_assert_uint_le(h->n_members, MEMBERS_MAX);
	memset(m, 0, sizeof *m);
	m->host = h;
	m->number = 100 + h->n_members;
	m->shape = s;
	m->holder = holder;
	m->data = calloc(s->n + 1, sizeof *m->data);
	for (uint32_t t = 0; t < s->n; t++)
		m->size += is_registered(kind, t) ? s->bytes[t] : 0;
	ck_assert_int_eq(cc_shm_create("memory", (size_t)m->size + 1, &m->fd, &map), 0);
	m->memory = map;
	for (uint32_t t = 0; t < s->n; t++) {
		if (is_registered(kind, t)) {
			m->data[t] = m->memory + used;
			used += s->bytes[t];
		} else {
			m->data[t] = malloc(s->bytes[t] + 1);
		}
		if (holder)
			fill(s, t, m->data[t]);
		else
			memset(m->data[t], 0, s->bytes[t]);
		if (s->may_differ[t])
			memset(m->data[t], (int)h->id.b[15], s->bytes[t]);
	}
	/* Some members have a descriptor of their memory for the agent, others have none. */
	m->region = (struct ste_region){.id = 6 + h->n_members,
		.map = m->memory,
		.size = m->size,
		.mapped = calloc((size_t)(m->size / STE_MAPPED) + 1, sizeof *m->region.mapped),
		.fd = (h->n_members + h->id.b[15]) % 2 ? m->fd : -1};
	m->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ck_assert_int_eq(ste_bell_add(h->e, m->bell), 0);
	return m;
}

/* Returns the region of a member as the agent would map it for the process of `m`; NULL: `m` cannot
 * map it. */
static const uint8_t *see(struct member *m, uint64_t region)
{
	for (uint32_t i = 0; i < m->host->n_members; i++) {
		const struct member *o = &m->host->m[i];

		ck_assert(o->uid == m->uid || (o->number != region && o->region.id != region));
		if (o->number == region || o->region.id == region) {
			if (atomic_load(&m->blind) >> i & 1)
				return NULL;
			atomic_fetch_add(&m->n_seen, 1);
			return o->number == region ? o->map : o->memory;
		}
	}
	ck_abort_msg("there is no region %" PRIu64, region);
	return NULL;
}

static uint32_t execute(struct member *m, const struct shm_state_command *c)
{
	uint8_t *slot = m->map + m->state.window_off + (size_t)c->slot * SHM_STATE_SLOT;
	const uint8_t *from = c->from ? see(m, c->from) : NULL;

	ck_assert_uint_lt(c->tensor, m->shape->n);
	ck_assert(shm_state_command_fits(c, m->shape->bytes[c->tensor]));
	if (c->op == SHM_STATE_READ) {
		memcpy(slot, m->data[c->tensor] + c->off, c->len);
		if (atomic_load(&m->corrupt))
			slot[0] ^= 1;
	} else if (c->from && !from) {
		return c->slot | SHM_STATE_UNSEEN;
	} else {
		memcpy(m->data[c->tensor] + c->off, from ? from + c->from_off : slot, c->len);
	}
	for (uint32_t i = 0; from && i * WIRE_LEAF < c->len; i++) {
		const uint8_t *data = m->data[c->tensor] + c->off + (size_t)i * WIRE_LEAF;
		size_t left = c->len - i * WIRE_LEAF;

		if (hsh_leaf(data, left < WIRE_LEAF ? left : WIRE_LEAF, c->off / WIRE_LEAF + i) !=
			c->leaves[i])
			return c->slot | SHM_STATE_WRONG;
	}
	return c->slot;
}

static bool is_deaf(struct member *m, uint32_t done)
{
	uint32_t limit = atomic_load(&m->limit);

	return atomic_load(&m->deaf) || (limit > 0 && done >= limit);
}

/* Carries out commands like the waiting thread of a process. */
static void *shim(void *arg)
{
	struct member *m = arg;
	struct shm_state_commands *c = (void *)(m->map + SHM_STATE_CMD_OFF);
	struct shm_state_acks *a = (void *)(m->map + SHM_STATE_ACK_OFF);
	uint32_t head = 0, acked = 0;
	uint64_t one = 1;

	while (!atomic_load(&m->quit)) {
		atomic_store(&m->slot.wait, SHM_WAIT_COMMANDS);
		if (atomic_load(&c->tail) == head || is_deaf(m, head))
			cc_futex_wait(&m->slot.wait, SHM_WAIT_COMMANDS, 20000000);
		atomic_store(&m->slot.wait, SHM_WAIT_AWAKE);
		while (atomic_load(&c->tail) != head && !is_deaf(m, head)) {
			struct shm_state_command cmd = c->v[head % SHM_STATE_SLOTS];

			atomic_store(&c->head, ++head);
			atomic_store(&a->v[acked % SHM_STATE_SLOTS], execute(m, &cmd));
			atomic_store(&a->tail, ++acked);
			if (atomic_exchange(&m->slot.in_want, 0))
				ck_assert_int_eq(write(m->bell, &one, 8), 8);
		}
	}
	return NULL;
}

uint32_t member_commands(const struct member *m)
{
	struct shm_state_commands *c = (void *)(m->map + SHM_STATE_CMD_OFF);

	return atomic_load(&c->tail);
}

static uint64_t region_size(void *arg, uint64_t region)
{
	const struct member *m = arg;

	return region == m->region.id ? m->size : 0;
}

static void write_table(struct member *m, const struct shm_state_header *hdr)
{
	const struct shape *s = m->shape;
	struct shm_state_entry *e = (void *)(m->map + hdr->tensors_off);
	uint64_t *leaves = (void *)(m->map + hdr->leaves_off), leaf = 0;

	memcpy(m->map, hdr, sizeof *hdr);
	for (uint32_t t = 0; t < s->n; t++) {
		bool in = m->size > 0 && m->data[t] >= m->memory &&
			  m->data[t] + s->bytes[t] <= m->memory + m->size;
		char name[32];

		snprintf(name, sizeof name, "tensor%08" PRIu32, t);
		memcpy(m->map + hdr->names_off + (size_t)t * 14, name, 14);
		e[t] = (struct shm_state_entry){.count = s->bytes[t],
			.bytes = s->bytes[t],
			.name_off = (uint64_t)t * 14,
			.name_len = 14,
			.first_leaf = leaf,
			.dtype = U8,
			.flags = s->may_differ[t] ? SHM_STATE_MAY_DIFFER : 0,
			.region = in ? m->region.id : 0,
			.region_off = in ? (uint64_t)(m->data[t] - m->memory) : 0};
		e[t].hash = hash_tensor(m->data[t], s->bytes[t], leaves + leaf);
		leaf += wire_leaf_count(s->bytes[t]);
	}
}

void member_hash(struct host *h, struct member *m)
{
	const struct shape *s = m->shape;
	struct shm_state_header hdr;
	struct wm_sync_vote vote = {.n_tensors = s->n};
	struct shm_state_limits lim = {.vote = &vote, .region_size = region_size, .arg = m};
	uint64_t leaves = 0;
	char why[SHM_TEXT];

	(void)h;
	for (uint32_t t = 0; t < s->n; t++) {
		leaves += wire_leaf_count(s->bytes[t]);
		vote.bytes += s->bytes[t];
	}
	ck_assert_int_eq(shm_state_plan(s->n, (uint64_t)s->n * 14, leaves, &hdr, &m->map_size), 0);
	m->map = aligned_alloc(SHM_STATE_PAGE, m->map_size);
	ck_assert_ptr_nonnull(m->map);
	memset(m->map, 0, hdr.window_off);
	write_table(m, &hdr);
	lim.size = m->map_size;
	ck_assert_msg(shm_state_get(m->map, &lim, &m->state, why) == 0, "%s", why);
	m->has_shim = pthread_create(&m->shim, NULL, shim, m) == 0;
	ck_assert(m->has_shim);
}

void member_stop(struct member *m)
{
	if (!m->has_shim)
		return;
	atomic_store(&m->quit, true);
	cc_futex_wake(&m->slot.wait, 1);
	pthread_join(m->shim, NULL);
	m->has_shim = false;
}

void member_free(struct host *h, struct member *m)
{
	member_stop(m);
	if (m->map) {
		shm_state_clear(&m->state);
		free(m->map);
	}
	if (h->e)
		ste_bell_remove(h->e, m->bell);
	close(m->bell);
	for (uint32_t t = 0; t < m->shape->n; t++)
		if (m->size == 0 || m->data[t] < m->memory || m->data[t] > m->memory + m->size)
			free(m->data[t]);
	free(m->region.mapped);
	cc_shm_unmap(m->memory, (size_t)m->size + 1);
	close(m->fd);
	free(m->data);
	memset(m, 0, sizeof *m);
}

void member_check(const struct member *m)
{
	const struct shape *s = m->shape;
	const struct shm_state_end *end = (void *)(m->map + SHM_STATE_END_OFF);

	ck_assert_uint_eq(end->complete, 1);
	ck_assert_uint_eq(end->revision, 5);
	for (uint32_t t = 0; t < s->n; t++) {
		uint8_t *want = malloc(s->bytes[t] + 1);

		fill(s, t, want);
		if (s->may_differ[t])
			memset(want, m->data[t][0], s->bytes[t]);
		ck_assert_msg(memcmp(want, m->data[t], s->bytes[t]) == 0, "tensor %u", t);
		free(want);
	}
}

/* ---- hosts ---- */

static void listen_on(struct host *h)
{
	struct cc_addr a;

	ck_assert_int_eq(cc_addr_parse("127.0.0.1:0", 0, &a), 0);
	h->listener = cc_listen_tcp(&a, 0);
	ck_assert_int_ge(h->listener, 0);
	h->port = a.port;
}

void net_up(struct net *n, uint32_t hosts)
{
	memset(n, 0, sizeof *n);
	n->n = hosts;
	for (uint32_t i = 0; i < hosts; i++) {
		struct host *h = &n->h[i];
		struct ste_config cfg = {.idle_ms = 100, .pool = net_pool, .hashes = net_hashes};

		/* The first bytes of the ids differ, so receivers begin at different leaves. */
		memset(h->id.b, (int)(1 + 50 * i), sizeof h->id.b);
		cfg.self = h->id;
		memset(cfg.run.b, 0xee, sizeof cfg.run.b);
		h->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		h->e = ste_new(&cfg, h->event_fd);
		ck_assert_ptr_nonnull(h->e);
		listen_on(h);
	}
}

void net_down(struct net *n)
{
	for (uint32_t i = 0; i < n->n; i++) {
		struct host *h = &n->h[i];

		ste_free(h->e);
		h->e = NULL;
		for (uint32_t k = 0; k < h->n_members; k++)
			member_free(h, &h->m[k]);
		while (h->n_mute > 0)
			close(h->mute_fds[--h->n_mute]);
		close(h->event_fd);
		close(h->listener);
	}
}

struct ste_source source_of(const struct net *n, uint32_t host, bool holds)
{
	struct ste_source s = {.agent = n->h[host].id, .holds = holds, .n_addrs = 1};

	snprintf(s.name, sizeof s.name, "host%u", host);
	ck_assert_int_eq(cc_addr_parse("127.0.0.1:0", 0, &s.addrs[0]), 0);
	s.addrs[0].port = n->h[host].port;
	return s;
}

int host_try_start(
	struct host *h, uint64_t seq, struct shape *s, const struct ste_source *src, uint32_t n_src)
{
	struct ste_member members[MEMBERS_MAX];
	struct ste_spec spec = {.seq = seq,
		.group = 3,
		.revision = 5,
		.content = shape_digest(s),
		.leaf = hsh_leaf,
		.n_members = h->n_members,
		.members = members,
		.n_sources = n_src,
		.sources = src};

	for (uint32_t i = 0; i < h->n_members; i++)
		members[i] = (struct ste_member){.holder = h->m[i].holder,
			.receive_only = h->m[i].receive_only,
			.uid = h->m[i].uid,
			.map = h->m[i].map,
			.region = h->m[i].number,
			.state = &h->m[i].state,
			.slot = &h->m[i].slot,
			.regions = &h->m[i].region,
			.n_regions = 1};
	return ste_start(h->e, &spec);
}

void host_start(
	struct host *h, uint64_t seq, struct shape *s, const struct ste_source *src, uint32_t n_src)
{
	ck_assert_int_eq(host_try_start(h, seq, s, src, n_src), 0);
}

static void welcome(struct host *h)
{
	struct wlk_ack a = {.version_min = WLK_VERSION_MIN,
		.version_max = WLK_VERSION_MAX,
		.version = WLK_VERSION_MAX};
	int fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);
	uint8_t buf[WLK_ACK_SIZE];
	struct wlk_hello hello;
	const char *why;

	if (fd < 0)
		return;
	if (h->refuses || recv(fd, buf, WLK_HELLO_SIZE, MSG_WAITALL) != (ssize_t)WLK_HELLO_SIZE) {
		close(fd);
		return;
	}
	ck_assert_int_eq(wlk_hello_get(buf, &hello, &why), 0);
	ck_assert_int_eq(hello.service, WLK_SHARED_STATE);
	ck_assert(cc_id_eq(&hello.to, &h->id));
	wlk_ack_put(buf, &a);
	hs_prove_answer(&(struct cc_key){{0}}, &hello.proof, buf); /* the sources have no keys */
	/* The send fails if the other host has received all and has closed the stream. */
	(void)!send(fd, buf, sizeof buf, MSG_NOSIGNAL);
	h->n_welcomed++;
	if (h->babbles)
		(void)!send(fd, buf, sizeof buf, MSG_NOSIGNAL);
	if ((h->mute || h->babbles) && h->n_mute < 16)
		h->mute_fds[h->n_mute++] = fd;
	else if (h->e)
		ck_assert_int_eq(ste_add_stream(h->e, fd, hello.features, hello.number), 0);
	else
		close(fd);
}

bool net_event(struct net *n, uint32_t want, struct ste_event *ret, int ms)
{
	uint64_t deadline = cc_now_ns() + (uint64_t)ms * 1000000u, v;
	struct pollfd p[HOSTS_MAX][2];

	while (cc_now_ns() < deadline) {
		for (uint32_t i = 0; i < n->n; i++) {
			struct host *h = &n->h[i];

			p[i][0] = (struct pollfd){.fd = h->listener, .events = POLLIN};
			p[i][1] = (struct pollfd){.fd = h->event_fd, .events = POLLIN};
			while (i == want && h->e && ste_next_event(h->e, ret))
				if (ret->type != STE_MEMBERS)
					return true;
		}
		if (poll(p[0], (nfds_t)2 * n->n, want == UINT32_MAX ? 5 : 50) <= 0)
			continue;
		for (uint32_t i = 0; i < n->n; i++) {
			if (p[i][0].revents)
				welcome(&n->h[i]);
			if (p[i][1].revents)
				ck_assert_int_eq(read(n->h[i].event_fd, &v, 8), 8);
		}
	}
	return false;
}

void net_expect(struct net *n, uint32_t host, enum ste_event_type type)
{
	struct ste_event ev;

	if (type == STE_DONE && n->h[host].done_early) {
		n->h[host].done_early = false;
		return;
	}
	ck_assert_msg(net_event(n, host, &ev, WAIT_MS), "host %u: no event", host);
	ck_assert_msg(ev.type == type, "host %u: event %d: %s", host, (int)ev.type, ev.text);
}

void net_drop(struct net *n, uint32_t host, uint32_t member)
{
	struct host *h = &n->h[host];
	struct ste_member_view v;
	struct ste_event ev;

	ste_drop(h->e, SEQ, member);
	for (int i = 0; i < WAIT_MS / 5; i++) {
		while (ste_next_event(h->e, &ev)) {
			ck_assert_int_ne(ev.type, STE_FAILED);
			h->done_early |= ev.type == STE_DONE;
		}
		v = host_view(h, member);
		if (v.dropped) {
			ck_assert(v.failed);
			return;
		}
		ck_assert(!net_event(n, UINT32_MAX, &ev, 5));
	}
	ck_abort_msg("the member was not dropped");
}

static void protect_pages(uint8_t *p, uint64_t size, int prot)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)p + page - 1) / page * page;
	uintptr_t to = ((uintptr_t)p + size) / page * page;

	if (to > from)
		ck_assert_int_eq(mprotect((void *)from, to - from, prot), 0);
}

void member_poison(struct member *m, bool on)
{
	int prot = on ? PROT_NONE : PROT_READ | PROT_WRITE;

	if (on)
		member_stop(m);
	protect_pages(m->memory, m->size, prot);
	protect_pages(m->map, m->map_size, prot);
}

void net_start(struct net *n, struct shape *s, const struct ste_source *src, uint32_t n_src)
{
	for (uint32_t i = 1; i < n->n; i++)
		host_start(&n->h[i], SEQ, s, NULL, 0);
	host_start(&n->h[0], SEQ, s, src, n_src);
}

void net_cancel(struct net *n, uint32_t host)
{
	ste_cancel(n->h[host].e, SEQ);
	net_expect(n, host, STE_CANCELLED);
}

struct ste_progress host_progress(struct host *h, uint64_t seq)
{
	struct ste_progress p;

	ck_assert(ste_get_progress(h->e, seq, &p));
	return p;
}

struct ste_member_view host_view(struct host *h, uint32_t member)
{
	struct ste_member_view v;

	ck_assert(ste_get_member(h->e, SEQ, member, &v));
	return v;
}

void net_expect_sent(struct net *n, uint32_t host, uint64_t bytes)
{
	struct ste_event ev;

	for (int i = 0; i < 2000 && host_view(&n->h[host], 0).tx_bytes < bytes; i++)
		ck_assert(!net_event(n, UINT32_MAX, &ev, 5));
	ck_assert_uint_eq(host_view(&n->h[host], 0).tx_bytes, bytes);
}

struct ste_source_view host_source(struct host *h, uint32_t src)
{
	struct ste_source_view v;

	ck_assert(ste_get_source(h->e, SEQ, src, &v));
	return v;
}

void host_hash(struct host *h)
{
	for (uint32_t i = 0; i < h->n_members; i++)
		member_hash(h, &h->m[i]);
}

void net_newcomer(struct net *n, struct shape *s, uint32_t holders, enum kind from, enum kind to,
	struct ste_source *src)
{
	net_up(n, holders + 1);
	member_add(&n->h[0], s, false, to);
	for (uint32_t i = 1; i <= holders; i++) {
		member_add(&n->h[i], s, true, from);
		src[i - 1] = source_of(n, i, true);
	}
	for (uint32_t i = 0; i <= holders; i++)
		host_hash(&n->h[i]);
}

void net_expect_done(struct net *n)
{
	net_expect(n, 0, STE_DONE);
	member_check(&n->h[0].m[0]);
}

void net_end(struct net *n, struct shape *s)
{
	net_down(n);
	shape_free(s);
}
