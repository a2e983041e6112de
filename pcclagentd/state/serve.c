/* SPDX-License-Identifier: MIT
 *
 * Streams from other agents. Requests are answered one after the other, from tensors of members
 * that have the requested data. A tensor that the agent cannot reach is read through the member's
 * window. Then one piece is sent while the next pieces are being read. The agent that made the
 * request verifies the data; nothing is verified here.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_sys.h"
#include "pcclagentd/state/job.h"
#include "pcclagentd/state/member.h"
#include "pcclagentd/state/serve.h"
#include "pcclagentd/state/set.h"
#include "pcclagentd/state/ste_internal.h"
#include "pcclagentd/state/window.h"
#include "proto/wire_link.h"
#include "proto/wire_state.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "hashes are sent as they lie in memory");

/* Bytes sent on one stream before the next stream has its turn; bytes sent with one call. */
#define BUDGET   ((size_t)2 << 20)
#define SEND_MAX ((size_t)512 << 10)
#define PIECES   4u

struct ste_piece {
	struct ste_peer *peer;
	int slot;
	uint32_t len;
	bool ready;
};

struct ste_conn {
	struct ste_fd f;
	uint32_t number;
	bool names;   /* answers contain the number of the member whose memory was read */
	uint64_t seq; /* the attempt; requests of other attempts are refused */
	uint8_t in[64 * WST_HDR_SIZE];
	uint32_t in_from, in_to;
	bool answering;
	uint8_t hdr[WST_HDR_SIZE];
	uint32_t hdr_done;
	struct ste_job *j; /* the job of the answer that is being sent, or NULL */
	struct ste_peer *peer;
	const uint8_t *data; /* the rest of the payload; NULL: it is sent in pieces */
	uint32_t left;       /* payload bytes to be sent */
	bool count;          /* the payload is a part of a tensor */
	uint32_t tensor;
	uint64_t read_off;  /* offset in the tensor of the next piece to be read */
	uint32_t read_left; /* bytes still to be read */
	struct ste_piece pieces[PIECES];
	uint32_t piece_head, n_pieces, piece_sent;
	uint64_t moved_ns;
	struct ste_conn *next;
};

/* Returns for how long a stream is kept while the other agent takes no bytes of an answer. */
static unsigned stall_ms(const struct ste *e, int fd)
{
	return STE_STALLS * ste_bound_ms(e, CC_BOUND_STREAM) + 2 * cc_tcp_path_ms(fd);
}

struct ste_conn *ste_conn_new(const struct ste *e, int fd, uint64_t features, uint64_t seq)
{
	unsigned stall = stall_ms(e, fd);
	struct ste_conn *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->f = (struct ste_fd){.kind = STE_FD_CONN, .fd = fd};
	c->names = features & WLK_MEMBERS;
	c->seq = seq;
	/* The other agent may wait for a process, and take no bytes during this time. */
	if (cc_tcp_tune(fd) == 0)
		setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &stall, sizeof stall);
	return c;
}

void ste_conn_add(struct ste *e, struct ste_conn *c)
{
	c->number = e->next_conn++;
	c->moved_ns = e->now_ns;
	c->next = e->conns;
	e->conns = c;
	if (ste_watch(e, &c->f, EPOLLIN) < 0)
		ste_conn_close(e, c);
}

static void put_pieces(struct ste_conn *c)
{
	for (; c->n_pieces > 0; c->n_pieces--) {
		struct ste_piece *p = &c->pieces[c->piece_head++ % PIECES];

		ste_window_put(p->peer, p->slot);
	}
}

void ste_conn_close(struct ste *e, struct ste_conn *c)
{
	struct ste_conn **p = &e->conns;

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	put_pieces(c);
	close(c->f.fd);
	c->f.fd = -1;
	c->next = e->closed_conns;
	e->closed_conns = c;
	atomic_fetch_sub_explicit(&e->n_conns, 1, memory_order_relaxed);
}

void ste_conns_forget(struct ste *e, struct ste_job *j, const struct ste_peer *p)
{
	struct ste_conn *c, *next;

	for (c = e->conns; c; c = next) {
		next = c->next;
		/* The rest of the answer can no longer be read. */
		if (c->j == j && (!p || c->peer == p))
			ste_conn_close(e, c);
	}
}

/* ---- finding answers ---- */

static struct ste_job *find_job(struct ste *e, const struct wst_request *r)
{
	struct ste_job *j = e->jobs;

	while (j && (j->seq != r->seq || j->group != r->group))
		j = j->next;
	return j;
}

/* Finds a member that the request does not exclude: a holder, or else a receiver that has all
 * leaves of the request. Connections use such members in turn. Returns NULL if there is none. */
static struct ste_peer *find_peer(
	const struct ste_conn *c, struct ste_job *j, const struct wst_request *r)
{
	struct ste_set mask = ste_set_without(&j->holders, r->without), receivers;
	uint64_t leaf = j->tensors[r->tensor].first_leaf + r->first;
	uint32_t n = ste_set_count(&mask), member;

	if (n == 0) {
		for (uint32_t i = 0; i < r->n; i++)
			if (j->leaf[leaf + i] != STE_LEAF_HAVE)
				return NULL;
		receivers = ste_set_without(&j->receivers, r->without);
		STE_SET_EACH(i, &receivers)
		if (!j->peers[i].m.receive_only)
			ste_set_add(&mask, i);
		n = ste_set_count(&mask);
	}
	if (n == 0)
		return NULL;
	member = ste_set_next(&mask, 0);
	for (uint32_t turn = c->number % n; turn > 0; turn--)
		member = ste_set_next(&mask, member + 1);
	return &j->peers[member];
}

static enum wst_status find_leaves(
	struct ste_conn *c, struct ste_job *j, const struct wst_request *r)
{
	const struct shm_state_tensor *s = &j->tensors[r->tensor];
	struct ste_set from = ste_set_without(&j->holders, r->without);
	uint64_t leaf = s->first_leaf + r->first;
	struct ste_peer *p;

	if (!j->have_want)
		return WST_NOT_YET;
	if (j->tensor[r->tensor] == STE_TENSOR_READY && s->bytes > WIRE_LEAF) {
		c->data = (const uint8_t *)(j->elected + leaf);
		return WST_OK;
	}
	if (ste_set_is_empty(&from) && j->tensor[r->tensor] != STE_TENSOR_SAME)
		return WST_NOT_YET;
	if (ste_set_is_empty(&from))
		from = ste_set_without(&j->receivers, r->without);
	p = &j->peers[ste_set_next(&from, 0)];
	c->peer = p;
	c->data = p->m.map + p->m.state->leaves_off + leaf * 8;
	return WST_OK;
}

static enum wst_status find_block(
	struct ste_conn *c, struct ste_job *j, const struct wst_request *r, uint32_t len)
{
	struct ste_peer *p = j->have_want ? find_peer(c, j, r) : NULL;
	uint64_t off = r->first * WIRE_LEAF;

	if (!p)
		return WST_NOT_YET;
	c->peer = p;
	c->count = true;
	c->tensor = r->tensor;
	if (p->mem[r->tensor]) {
		c->data = p->mem[r->tensor] + off;
	} else {
		c->read_off = off;
		c->read_left = len;
	}
	return WST_OK;
}

static bool has_member(const struct ste_job *j, uint64_t without)
{
	struct ste_set holders = ste_set_without(&j->holders, without);
	struct ste_set receivers = ste_set_without(&j->receivers, without);

	return !ste_set_is_empty(&holders) || !ste_set_is_empty(&receivers);
}

static enum wst_status find_answer(
	struct ste *e, struct ste_conn *c, const struct wst_request *r, uint32_t *ret_len)
{
	struct ste_job *j = find_job(e, r);
	enum wst_status st;
	uint64_t n, len;

	if (!j) /* the master's op_start for this host may still be under way */
		return r->seq > e->last_seq ? WST_NOT_YET : WST_GONE;
	if (atomic_load_explicit(&j->phase, memory_order_relaxed) == STE_FAILS ||
		!has_member(j, r->without))
		return WST_GONE;
	if (r->kind == WST_TENSORS) {
		if (r->tensor > j->n_tensors || r->n > j->n_tensors - r->tensor)
			return WST_GONE;
		len = (uint64_t)r->n * 8;
		c->data = (const uint8_t *)(j->want + r->tensor);
		st = j->have_want ? WST_OK : WST_NOT_YET;
	} else {
		if (r->tensor >= j->n_tensors || j->tensors[r->tensor].may_differ)
			return WST_GONE;
		n = wire_leaf_count(j->tensors[r->tensor].bytes);
		if (r->first > n || r->n > n - r->first)
			return WST_GONE;
		if (r->kind == WST_LEAVES) {
			len = (uint64_t)r->n * 8;
			st = find_leaves(c, j, r);
		} else {
			len = wire_leaf_bytes(j->tensors[r->tensor].bytes, r->first, r->n);
			st = find_block(c, j, r, (uint32_t)len);
		}
	}
	if (st != WST_OK)
		return st;
	c->j = j;
	*ret_len = (uint32_t)len;
	return WST_OK;
}

static bool begin_answer(struct ste *e, struct ste_conn *c)
{
	struct wst_answer a = {0};
	const char *why;

	if (wst_request_get(c->in + c->in_from, &a.req, &why) < 0 || a.req.seq != c->seq)
		return false;
	c->in_from += WST_HDR_SIZE;
	c->j = NULL;
	c->peer = NULL;
	c->data = NULL;
	c->count = false;
	c->read_left = 0;
	a.status = (uint8_t)find_answer(e, c, &a.req, &a.len);
	if (c->names && c->peer)
		a.member = ste_set_number(c->peer->index);
	wst_answer_put(c->hdr, &a);
	c->hdr_done = 0;
	c->left = a.len;
	c->answering = true;
	return true;
}

/* ---- sending ---- */

static void read_ahead(struct ste_conn *c)
{
	while (c->read_left > 0 && c->n_pieces < PIECES) {
		uint32_t len = c->read_left < SHM_STATE_SLOT ? c->read_left : SHM_STATE_SLOT;
		int slot = ste_window_take(c->peer, STE_USE_SERVE);

		if (slot < 0)
			return;
		c->pieces[(c->piece_head + c->n_pieces++) % PIECES] =
			(struct ste_piece){.peer = c->peer, .slot = slot, .len = len};
		ste_window_command(c->peer,
			&(struct shm_state_command){.op = SHM_STATE_READ,
				.slot = (uint32_t)slot,
				.tensor = c->tensor,
				.len = len,
				.off = c->read_off},
			c);
		c->read_off += len;
		c->read_left -= len;
	}
}

void ste_conn_acked(struct ste *e, struct ste_conn *c, struct ste_peer *p, int slot)
{
	for (uint32_t i = 0; i < c->n_pieces; i++) {
		struct ste_piece *q = &c->pieces[(c->piece_head + i) % PIECES];

		if (q->peer == p && q->slot == slot)
			q->ready = true;
	}
	c->moved_ns = e->now_ns;
}

/* Returns the part of the payload that can be sent now. */
static struct iovec payload(struct ste_conn *c)
{
	const struct ste_piece *p = &c->pieces[c->piece_head % PIECES];
	struct iovec v = {NULL, 0};

	/* sendmsg only reads the data, but takes pointers to non-const. */
	if (c->data) {
		v.iov_base = (void *)(uintptr_t)c->data;
		v.iov_len = c->left < SEND_MAX ? c->left : SEND_MAX;
	} else if (c->n_pieces > 0 && p->ready) {
		v.iov_base = ste_window_at(p->peer, p->slot) + c->piece_sent;
		v.iov_len = p->len - c->piece_sent;
	}
	return v;
}

static void sent(struct ste_conn *c, size_t n)
{
	size_t hdr = WST_HDR_SIZE - c->hdr_done;

	if (c->j)
		atomic_fetch_add_explicit(&c->j->net_tx, n, memory_order_relaxed);
	if (hdr > n)
		hdr = n;
	c->hdr_done += (uint32_t)hdr;
	n -= hdr;
	c->left -= (uint32_t)n;
	if (c->count)
		atomic_fetch_add_explicit(&c->peer->tx_bytes, n, memory_order_relaxed);
	if (c->data) {
		c->data += n;
	} else if (n > 0) {
		struct ste_piece *p = &c->pieces[c->piece_head % PIECES];

		c->piece_sent += (uint32_t)n;
		if (c->piece_sent == p->len) {
			c->piece_sent = 0;
			c->piece_head++;
			c->n_pieces--;
			ste_window_put(p->peer, p->slot);
		}
	}
	if (c->left == 0 && c->hdr_done == WST_HDR_SIZE) {
		c->answering = false;
		c->j = NULL;
	}
}

/* Sends a part of the answer. > 0: bytes sent; 0: nothing can be sent now; < 0: the connection is
 * broken. */
static ssize_t push(struct ste *e, struct ste_conn *c)
{
	struct iovec iov[2] = {{c->hdr + c->hdr_done, WST_HDR_SIZE - c->hdr_done}, payload(c)};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t n;

	if (iov[0].iov_len + iov[1].iov_len == 0) {
		ste_watch(e, &c->f, 0); /* no events until the next piece has been read */
		return 0;
	}
	n = sendmsg(c->f.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return -1;
		ste_watch(e, &c->f, EPOLLOUT);
		return 0;
	}
	c->moved_ns = e->now_ns;
	sent(c, (size_t)n);
	return n;
}

/* Receives requests. > 0: bytes received; 0: none now; < 0: the connection is closed or broken. */
static ssize_t take_requests(struct ste *e, struct ste_conn *c)
{
	ssize_t n;

	if (c->in_from > 0) {
		memmove(c->in, c->in + c->in_from, c->in_to - c->in_from);
		c->in_to -= c->in_from;
		c->in_from = 0;
	}
	n = recv(c->f.fd, c->in + c->in_to, sizeof c->in - c->in_to, MSG_DONTWAIT);
	if (n > 0) {
		c->in_to += (uint32_t)n;
		c->moved_ns = e->now_ns;
		return n;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		ste_watch(e, &c->f, EPOLLIN);
		return 0;
	}
	return -1;
}

/* Receives, answers and sends, until the connection must wait or its turn ends. */
static void conn_step(struct ste *e, struct ste_conn *c)
{
	size_t budget = BUDGET;

	while (budget > 0) {
		ssize_t n;

		if (!c->answering && c->in_to - c->in_from >= WST_HDR_SIZE) {
			if (!begin_answer(e, c)) {
				ste_conn_close(e, c);
				return;
			}
		}
		if (c->answering) {
			read_ahead(c);
			n = push(e, c);
		} else {
			n = take_requests(e, c);
		}
		if (n < 0) {
			ste_conn_close(e, c);
			return;
		}
		if (n == 0)
			return;
		budget = (size_t)n < budget ? budget - (size_t)n : 0;
	}
	ste_watch(e, &c->f, EPOLLOUT);
}

void ste_conn_ready(struct ste *e, struct ste_conn *c, uint32_t events)
{
	if (c->answering && (events & (EPOLLERR | EPOLLHUP)))
		ste_conn_close(e, c);
	else
		conn_step(e, c);
}

void ste_conns_step(struct ste *e)
{
	struct ste_conn *c, *next;

	for (c = e->conns; c; c = next) {
		next = c->next;
		if (c->answering && !c->data && c->peer)
			conn_step(e, c);
	}
}

void ste_conns_free_closed(struct ste *e)
{
	while (e->closed_conns) {
		struct ste_conn *c = e->closed_conns;

		e->closed_conns = c->next;
		free(c);
	}
}

static bool is_overdue(const struct ste *e, const struct ste_conn *c)
{
	uint32_t stream_ms = ste_bound_ms(e, CC_BOUND_STREAM);
	uint64_t passed = e->now_ns - c->moved_ns;

	if (!c->answering)
		return passed > STE_MS(STE_UNASKED * stream_ms);
	return passed > STE_MS(STE_STALLS * stream_ms) && passed > STE_MS(stall_ms(e, c->f.fd));
}

void ste_conns_tick(struct ste *e)
{
	struct ste_conn *c, *next;

	for (c = e->conns; c; c = next) {
		next = c->next;
		if (is_overdue(e, c))
			ste_conn_close(e, c);
	}
}
