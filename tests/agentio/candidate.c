/* SPDX-License-Identifier: MIT */
#include "tests/agentio/candidate.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_futex.h"
#include "common/cc_shm.h"
#include "common/cc_sys.h"
#include "kernels/hsh.h"
#include "pcclagentd/base/handshake.h"
#include "proto/wire_codes.h"
#include "proto/wire_link.h"

void candidate_init(struct candidate *o, struct client *c, struct queue *q, uint64_t bytes,
	uint8_t fill, bool registered)
{
	struct mem m;

	*o = (struct candidate){.c = c,
		.q = q,
		.n = 2,
		.bytes = {bytes, 5},
		.hash_type = WM_HASH_SIMPLE,
		.leaf = hsh_leaf};
	strcpy(o->name[0], "a");
	strcpy(o->name[1], "b");
	if (registered)
		ck_assert_uint_eq(client_alloc(c, bytes + 5, &m), 0);
	for (uint32_t t = 0; t < 2; t++) {
		if (registered) {
			o->off[t] = t * bytes;
			o->region[t] = m.region;
			o->data[t] = m.map + o->off[t];
		} else {
			o->data[t] = malloc(o->bytes[t]);
		}
		memset(o->data[t], fill, o->bytes[t]);
	}
}

static void write_table(
	struct candidate *o, uint8_t *keys, size_t *keys_len, uint64_t *hashes, size_t *n_hashes)
{
	uint64_t *leaves = (uint64_t *)(void *)(o->state.map + o->hdr->leaves_off), leaf = 0,
		 at = 0;

	for (uint32_t t = 0; t < o->n; t++) {
		struct shm_state_entry *e = &o->entry[t];

		*e = (struct shm_state_entry){.count = o->bytes[t],
			.bytes = o->bytes[t],
			.name_off = at,
			.name_len = (uint32_t)strlen(o->name[t]),
			.first_leaf = leaf,
			.region = o->region[t],
			.region_off = o->off[t],
			.flags = o->may_differ[t] ? SHM_STATE_MAY_DIFFER : 0};
		hsh_leaves(o->leaf, o->data[t], o->bytes[t], 0, UINT64_MAX, leaves + leaf);
		e->hash = hsh_tensor(leaves + leaf, o->bytes[t]);
		memcpy(o->state.map + o->hdr->names_off + at, o->name[t], e->name_len);
		*keys_len += shm_state_key_put(keys + *keys_len, e, o->name[t]);
		if (!o->may_differ[t])
			hashes[(*n_hashes)++] = e->hash;
		leaf += wire_leaf_count(o->bytes[t]);
		at += e->name_len;
	}
}

void candidate_write(struct candidate *o, uint64_t revision)
{
	static uint8_t keys[CANDIDATE_TENSORS * SHM_STATE_KEY_MAX];
	uint64_t names = 0, leaves = 0, bytes = 0, size, hashes[CANDIDATE_TENSORS];
	struct shm_state_header hdr;
	size_t keys_len = 0, n = 0;

	for (uint32_t t = 0; t < o->n; t++) {
		names += strlen(o->name[t]);
		leaves += wire_leaf_count(o->bytes[t]);
		bytes += o->bytes[t];
	}
	ck_assert_int_eq(shm_state_plan(o->n, names, leaves, &hdr, &size), 0);
	if (!o->state.map)
		ck_assert_uint_eq(client_alloc_use(o->c, size, WL_REGION_STATE, &o->state), 0);
	memset(o->state.map, 0, hdr.window_off);
	memcpy(o->state.map, &hdr, sizeof hdr);
	o->hdr = (void *)o->state.map;
	o->entry = (void *)(o->state.map + hdr.tensors_off);
	write_table(o, keys, &keys_len, hashes, &n);
	o->seen = o->acked = 0;
	o->sqe = (struct shm_sqe){.slot = o->slot,
		.flags = SHM_SQE_SYNC,
		.sync = {.region = o->state.region,
			.revision = revision,
			.bytes = bytes,
			.n_tensors = o->n,
			.hash_type = o->hash_type}};
	hsh_digest(keys, keys_len, o->sqe.sync.keys);
	hsh_digest(hashes, n * sizeof *hashes, o->sqe.sync.content);
}

void candidate_push(struct candidate *o)
{
	queue_push(o->q, &o->sqe);
}

/* Returns the memory that a command copies from. NULL: the agent refuses access, because the job is
 * over. */
static const uint8_t *see(struct candidate *o, const struct shm_state_command *c)
{
	struct wl_request q = {.type = WL_REGION_MAP, .comm = o->q->comm, .region = c->from};
	struct wl_reply r;
	int fd;

	if (o->shown != c->from) {
		client_call(o->c, &q, &r, &fd, 1);
		if (r.code != WIRE_SUCCESS)
			return NULL;
		cc_shm_unmap(o->shown_map, o->shown_size);
		o->shown = c->from;
		o->shown_size = (size_t)r.size;
		ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
		ck_assert_int_eq(cc_shm_map(fd, o->shown_size, &o->shown_map), 0);
		close(fd);
	}
	ck_assert(c->from_off <= o->shown_size && c->len <= o->shown_size - c->from_off);
	return (const uint8_t *)o->shown_map + c->from_off;
}

static void acknowledge(struct candidate *o, uint32_t what)
{
	struct shm_state_acks *a = (void *)(o->state.map + SHM_STATE_ACK_OFF);

	atomic_store(&a->v[o->acked % SHM_STATE_SLOTS], what);
	atomic_store(&a->tail, ++o->acked);
	if (atomic_exchange(&candidate_slot(o)->in_want, 0))
		eventfd_write(o->q->data_bell, 1);
}

bool candidate_carry_out(struct candidate *o)
{
	struct shm_state_commands *c = (void *)(o->state.map + SHM_STATE_CMD_OFF);
	struct shm_state_command m;
	const uint8_t *from;
	uint8_t *slot;

	if (atomic_load(&c->tail) == o->seen)
		return false;
	m = c->v[o->seen % SHM_STATE_SLOTS];
	atomic_store(&c->head, ++o->seen);
	ck_assert_uint_lt(m.tensor, o->n);
	ck_assert(shm_state_command_fits(&m, o->bytes[m.tensor]));
	slot = o->state.map + o->hdr->window_off + (size_t)m.slot * SHM_STATE_SLOT;
	from = m.from == 0 ? slot : o->blind ? NULL : see(o, &m);
	if (!from) {
		acknowledge(o, m.slot | SHM_STATE_UNSEEN);
		return true;
	}
	if (m.op == SHM_STATE_READ)
		memcpy(slot, o->data[m.tensor] + m.off, m.len);
	else
		memcpy(o->data[m.tensor] + m.off, from, m.len);
	acknowledge(o, m.slot);
	return true;
}

static bool is_wanted(const struct candidate *o)
{
	struct shm_state_commands *c = (void *)(o->state.map + SHM_STATE_CMD_OFF);

	return atomic_load(&c->tail) != o->seen ||
	       atomic_load(&candidate_slot(o)->state) == SHM_SLOT_DONE;
}

bool candidate_wait(struct candidate *o, uint32_t timeout_ms)
{
	uint64_t now = cc_now_ns(), end = now + timeout_ms * UINT64_C(1000000);
	_Atomic uint32_t *wait = &candidate_slot(o)->wait;

	for (; !is_wanted(o) && now < end; now = cc_now_ns()) {
		atomic_store(wait, SHM_WAIT_COMMANDS);
		if (!is_wanted(o))
			(void)cc_futex_wait(wait, SHM_WAIT_COMMANDS, end - now);
		atomic_store(wait, SHM_WAIT_AWAKE);
	}
	return is_wanted(o);
}

uint32_t candidate_await(struct candidate *o)
{
	while (atomic_load(&candidate_slot(o)->state) != SHM_SLOT_DONE) {
		while (candidate_carry_out(o))
			;
		ck_assert_msg(candidate_wait(o, FX_TIMEOUT_MS), "no completion");
	}
	return candidate_slot(o)->code;
}

struct shm_slot *candidate_slot(const struct candidate *o)
{
	return queue_slot(o->q, o->slot);
}

bool candidate_at_work(const struct candidate *o)
{
	struct shm_state_end *e = (void *)(o->state.map + SHM_STATE_END_OFF);

	return atomic_load(&e->at_work) == 1;
}

bool candidate_complete(const struct candidate *o)
{
	struct shm_state_end *e = (void *)(o->state.map + SHM_STATE_END_OFF);

	return atomic_load(&e->complete) == 1;
}

void candidate_check(const struct candidate *o, uint8_t fill)
{
	for (uint32_t t = 0; t < o->n; t++)
		for (uint64_t i = 0; i < o->bytes[t]; i++)
			if (o->data[t][i] != fill)
				ck_abort_msg("byte %lu of %s is %d", (unsigned long)i, o->name[t],
					o->data[t][i]);
}

void candidate_free(struct candidate *o)
{
	for (uint32_t t = 0; t < o->n; t++)
		if (!o->region[t])
			free(o->data[t]);
	if (o->state.map)
		cc_shm_unmap(o->state.map, (size_t)o->state.size);
	cc_shm_unmap(o->shown_map, o->shown_size);
	o->state.map = o->shown_map = NULL;
}

/* ---- the master */

void sync_expect_votes(struct master *m, unsigned n)
{
	struct wm_msg msg;

	for (; n > 0; n--) {
		master_expect(m, WM_OP_VOTE, &msg);
		ck_assert(msg.u.op_vote.is_sync);
		wire_master_clear(&msg);
	}
}

void sync_elect(struct master *m, const struct candidate *of, bool a_holds, bool b_holds,
	struct wm_sync_source *src)
{
	struct wm_sync_peer peers[2] = {
		{.peer = {{1}}, .role = a_holds ? WM_SYNC_HOLDER : WM_SYNC_RECEIVER},
		{.peer = {{2}}, .role = b_holds ? WM_SYNC_HOLDER : WM_SYNC_RECEIVER}};
	const struct shm_sqe_sync *s = &of->sqe.sync;
	struct wm_msg msg = {.type = WM_OP_START,
		.u.op_start = {.group = 1, .seq = ++m->seq, .epoch = 1, .is_sync = true}};

	msg.u.op_start.sync = (struct wm_sync_start){.revision = s->revision,
		.hash_type = s->hash_type,
		.keys = {s->keys[0], s->keys[1]},
		.content = {s->content[0], s->content[1]},
		.n_peers = 2,
		.peers = peers,
		.n_sources = src ? 1 : 0,
		.sources = src};
	master_send(m, &msg);
}

void sync_expect_report(struct master *m, unsigned n_failed, struct wm_msg *ret)
{
	master_expect(m, WM_OP_REPORT, ret);
	ck_assert_uint_eq(ret->u.op_report.seq, m->seq);
	ck_assert(ret->u.op_report.ok);
	ck_assert_uint_eq(ret->u.op_report.n_failed, n_failed);
}

void sync_finish(struct master *m, uint64_t revision)
{
	struct wm_msg msg = {
		.type = WM_OP_DONE, .u.op_done = {.seq = m->seq, .revision = revision}};

	master_send(m, &msg);
}

void sync_abort(struct master *m)
{
	struct wm_msg msg = {.type = WM_OP_ABORT,
		.u.op_abort = {.group = 1,
			.seq = m->seq,
			.is_sync = true,
			.code = WIRE_RANK_CONNECTION_LOST,
			.text = "a peer died"}};

	master_send(m, &msg);
}

void sync_kick(struct master *m, uint8_t peer)
{
	struct wm_msg msg = {.type = WM_KICK,
		.u.kick = {.peer = {{peer}}, .code = WIRE_INVALID_USAGE, .text = "you are out"}};

	master_send(m, &msg);
}

/* ---- another agent */

void stream_ask(int fd, struct wst_request *r, enum wst_status status, uint8_t *buf, uint32_t len)
{
	struct wst_answer answer;
	uint8_t hdr[WST_HDR_SIZE];
	const char *why;

	wst_request_put(hdr, r);
	tcp_send(fd, hdr, sizeof hdr);
	ck_assert_uint_eq(tcp_receive(fd, hdr, sizeof hdr), sizeof hdr);
	ck_assert_int_eq(wst_answer_get(hdr, &answer, &why), 0);
	ck_assert_uint_eq(answer.status, status);
	ck_assert_uint_eq(answer.len, len);
	ck_assert_uint_eq(tcp_receive(fd, buf, len), len);
}

int stream_connect(const struct master *m, struct fx *f, uint64_t seq)
{
	struct wlk_hello h = {.version_min = WLK_VERSION_MIN,
		.version_max = WLK_VERSION_MAX,
		.service = WLK_SHARED_STATE,
		.run = m->run,
		.from = {{77}},
		.number = seq,
		.to = m->agent,
		.n_streams = 1};
	int fd = tcp_connect(fx_stats(f).port_shared_state);
	uint8_t buf[WLK_ACK_SIZE];

	wlk_hello_put(buf, &h);
	(void)master_prove(m, buf);
	tcp_send(fd, buf, WLK_HELLO_SIZE);
	ck_assert_uint_eq(tcp_receive(fd, buf, sizeof buf), sizeof buf);
	return fd;
}

static struct cc_key hello_proof; /* the proof of the stream that was accepted last */

void stream_welcome(int fd)
{
	struct wlk_ack ack = {.version_min = WLK_VERSION_MIN,
		.version_max = WLK_VERSION_MAX,
		.version = WLK_VERSION_MAX};
	uint8_t buf[WLK_ACK_SIZE];

	wlk_ack_put(buf, &ack);
	/* the start of the job had no keys */
	hs_prove_answer(&(struct cc_key){{0}}, &hello_proof, buf);
	tcp_send(fd, buf, sizeof buf);
}

int stream_accept(const struct master *m, int listener)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};
	uint8_t buf[WLK_HELLO_SIZE];
	struct wlk_hello h;
	const char *why;
	int fd;

	ck_assert_int_eq(poll(&p, 1, FX_TIMEOUT_MS), 1);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(tcp_receive(fd, buf, sizeof buf), sizeof buf);
	ck_assert_int_eq(wlk_hello_get(buf, &h, &why), 0);
	ck_assert_uint_eq(h.service, WLK_SHARED_STATE);
	ck_assert(cc_id_eq(&h.run, &m->run));
	hello_proof = h.proof;
	ck_assert(cc_id_eq(&h.from, &m->agent));
	ck_assert_uint_eq(h.to.b[0], 77);
	return fd;
}
