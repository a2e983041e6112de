/* SPDX-License-Identifier: MIT
 *
 * Streams to sources: connecting, hello, requests, answers. Payload is received directly into its
 * destination. Each leaf is checked against its hash at once, while it is still in the CPU's
 * caches.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_limit.h"
#include "common/cc_sys.h"
#include "pcclagentd/base/handshake.h"
#include "pcclagentd/state/copy.h"
#include "pcclagentd/state/fetch.h"
#include "pcclagentd/state/job.h"
#include "pcclagentd/state/narrow.h"
#include "pcclagentd/state/pace.h"
#include "pcclagentd/state/set.h"
#include "pcclagentd/state/ste_internal.h"
#include "pcclagentd/state/stream.h"
#include "proto/wire_link.h"
#include "proto/wire_state.h"

/* Bytes received from one stream before the next stream has its turn; bytes received with one call.
 */
#define BUDGET   ((size_t)2 << 20)
#define RECV_MAX ((size_t)256 << 10)

/* ---- opening, closing ---- */

bool ste_stream_open(struct ste_job *j, struct ste_src *src, uint32_t addr, char why[STE_TEXT_MAX])
{
	struct ste_stream *s = calloc(1, sizeof *s);
	struct sockaddr_storage ss;
	char str[CC_ADDR_STR_SIZE], limit[CC_LIMIT_TEXT];
	unsigned len = cc_addr_to_sockaddr(&src->s.addrs[addr], &ss);
	int fd;

	if (!s) {
		snprintf(why, STE_TEXT_MAX, "%s", cc_limit_text(ENOMEM, limit, sizeof limit));
		src->exhausted = true;
		return false;
	}
	fd = cc_tcp_socket(ss.ss_family);
	if (fd < 0)
		goto err;
	*s = (struct ste_stream){.f = {.kind = STE_FD_STREAM, .fd = fd},
		.j = j,
		.src = src,
		.state = STE_CONNECTING,
		.addr = addr,
		.number = src->n_streams % 64,
		.opened_ns = j->e->now_ns};
	ste_narrow_begin(s);
	if (connect(fd, (struct sockaddr *)&ss, len) < 0 && errno != EINPROGRESS)
		goto err;
	if (ste_watch(j->e, &s->f, EPOLLOUT) < 0)
		goto err;
	s->next = j->streams;
	j->streams = s;
	j->n_streams++;
	src->n_streams++;
	return true;
err:
	src->exhausted |= cc_limit_is(errno);
	snprintf(why, STE_TEXT_MAX, "%s: %s", cc_addr_str(&src->s.addrs[addr], str),
		cc_limit_text(errno, limit, sizeof limit));
	if (fd >= 0)
		close(fd);
	free(s);
	return false;
}

void ste_stream_close(struct ste_stream *s)
{
	struct ste_job *j = s->j;
	struct ste_stream **p = &j->streams;

	while (*p != s)
		p = &(*p)->next;
	*p = s->next;
	j->n_streams--;
	s->src->n_streams--;
	if (s->state == STE_UP)
		s->src->n_up--;
	close(s->f.fd);
	s->f.fd = -1;
	s->next = j->e->closed_streams;
	j->e->closed_streams = s;
}

__attribute__((format(printf, 3, 4))) static void lose(
	struct ste_stream *s, enum ste_fault fault, const char *fmt, ...)
{
	char text[STE_TEXT_MAX], str[CC_ADDR_STR_SIZE];
	va_list ap;
	int n;

	n = snprintf(text, sizeof text, "%s: ", cc_addr_str(&s->src->s.addrs[s->addr], str));
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
	va_end(ap);
	ste_stream_lost(s, fault, text);
}

static void greet(struct ste_stream *s)
{
	const struct ste_config *cfg = &s->j->e->cfg;
	struct wlk_hello h = {.service = WLK_SHARED_STATE,
		.run = cfg->run,
		.features = WLK_MEMBERS,
		.from = cfg->self,
		.to = s->src->s.agent,
		.number = s->j->seq,
		.stream = (uint16_t)s->number,
		.n_streams = 64};
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(s->f.fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	if (err == 0 && cc_tcp_tune(s->f.fd) < 0)
		err = errno;
	if (err != 0) {
		lose(s, STE_FAULT_LOST, "%s", strerror(err));
		return;
	}
	cc_random_id(&h.nonce);
	if (hs_say_hello(s->f.fd, &h, &s->src->s.key, &s->proof) < 0) {
		lose(s, STE_FAULT_LOST, "%s", strerror(errno));
		return;
	}
	s->state = STE_GREETING;
	s->heard_ns = s->answered_ns = s->j->e->now_ns;
	ste_watch(s->j->e, &s->f, EPOLLIN);
}

static void take_ack(struct ste_stream *s)
{
	char text[STE_TEXT_MAX / 2];
	enum hs_answer answer;
	struct wlk_ack a;

	s->in_have = 0;
	answer = hs_take_answer(s->in, &s->src->s.key, &s->proof, &a, text, sizeof text);
	if (answer == HS_WELCOME)
		ste_stream_up(s);
	else
		lose(s, answer == HS_LIMIT ? STE_FAULT_LIMIT : STE_FAULT_LOST, "%s", text);
}

/* ---- requests ---- */

void ste_stream_ask(struct ste_stream *s, struct wst_request *r, uint64_t len)
{
	uint64_t now = s->j->e->now_ns;

	if (s->n_asks == 0 && !s->busy && !s->stalled)
		s->heard_ns = s->answered_ns = now;
	if (s->out_to + WST_HDR_SIZE > sizeof s->out) {
		memmove(s->out, s->out + s->out_from, s->out_to - s->out_from);
		s->out_to -= s->out_from;
		s->out_from = 0;
	}
	r->id = ++s->next_id;
	r->group = s->j->group;
	r->seq = s->j->seq;
	r->without = s->src->liars;
	wst_request_put(s->out + s->out_to, r);
	s->out_to += WST_HDR_SIZE;
	s->ahead += len;
	s->asks[(s->ask_head + s->n_asks++) % STE_ASKS] =
		(struct ste_ask){.req = *r, .sent_ns = now, .len = len, .ahead = s->ahead};
}

static void watch(struct ste_stream *s)
{
	uint32_t events = (s->stalled ? 0u : EPOLLIN) | (s->out_to > s->out_from ? EPOLLOUT : 0u);

	if (s->f.fd >= 0)
		ste_watch(s->j->e, &s->f, events);
}

void ste_stream_flush(struct ste_stream *s)
{
	ssize_t n = send(s->f.fd, s->out + s->out_from, s->out_to - s->out_from,
		MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		lose(s, STE_FAULT_LOST, "%s", strerror(errno));
		return;
	}
	if (n > 0) {
		s->out_from += (uint32_t)n;
		atomic_fetch_add_explicit(&s->j->net_tx, (uint64_t)n, memory_order_relaxed);
	}
	if (s->out_from == s->out_to)
		s->out_from = s->out_to = 0;
	watch(s);
}

/* ---- answers ---- */

static bool same_request(const struct wst_request *a, const struct wst_request *b)
{
	return a->kind == b->kind && a->id == b->id && a->group == b->group && a->seq == b->seq &&
	       a->tensor == b->tensor && a->first == b->first && a->n == b->n &&
	       a->without == b->without;
}

/* Chooses the destination of a block's payload, or stalls the stream if there is no room. */
static void land(struct ste_stream *s)
{
	struct ste_job *j = s->j;
	const struct wst_request *r = &s->cur.req;
	uint64_t first = j->tensors[r->tensor].first_leaf + r->first;
	struct ste_set mask = ste_job_lackers(j, first);
	struct ste_block *b;

	if (ste_set_is_empty(&mask)) { /* all receivers that lacked it have failed */
		ste_job_settle(j, r->tensor, r->first, r->n);
		s->dst = j->e->drain;
		s->busy = true;
		return;
	}
	b = ste_block_take(j);
	if (b) {
		b->tensor = r->tensor;
		b->first = r->first;
		b->n = r->n;
		b->off = r->first * WIRE_LEAF;
		b->len = s->len;
		if (ste_block_land(j, b, &mask)) {
			s->block = b;
			s->dst = b->data;
			s->busy = true;
			return;
		}
		b->state = STE_BLOCK_FREE;
		j->n_blocks--;
	}
	s->stalled = true;
}

/* Returns the position of the request's first hash among all tensor hashes, or among the leaf
 * hashes of its tensor. */
static uint64_t position(const struct wst_request *r)
{
	return r->kind == WST_TENSORS ? r->tensor : r->first;
}

static uint64_t count_hashes(const struct ste_job *j, const struct wst_request *r)
{
	return r->kind == WST_TENSORS ? j->n_tensors : wire_leaf_count(j->tensors[r->tensor].bytes);
}

/* Do more hashes follow after those of the request? */
static bool is_part(const struct ste_job *j, const struct wst_request *r)
{
	return r->kind != WST_BLOCK && position(r) + r->n < count_hashes(j, r);
}

/* Handles an answer without data: the source could not fulfil the request. */
static void not_had(struct ste_stream *s, uint8_t status)
{
	const struct wst_request *r = &s->cur.req;

	ste_fetch_return(s->j, r);
	if (status == WST_GONE) {
		lose(s, STE_FAULT_GONE, "it does not take part any more");
		return;
	}
	if (r->kind != WST_BLOCK && position(r) > 0) {
		lose(s, STE_FAULT_SHORT, "it has only some of the hashes");
		return;
	}
	if (r->kind != WST_BLOCK && r->n < count_hashes(s->j, r))
		s->hash_next = s->hash_end = 0;
	if (r->kind == WST_BLOCK && !s->src->s.holds)
		s->src->cursor = s->j->tensors[r->tensor].first_leaf + r->first;
	ste_stream_not_yet(s);
}

static void begin_answer(struct ste_stream *s)
{
	struct wst_answer a;
	struct ste_ask ask;
	const char *why;

	s->in_have = 0;
	s->member = 0;
	if (wst_answer_get(s->in, &a, &why) < 0) {
		lose(s, STE_FAULT_WRONG, "%s", why);
		return;
	}
	ask = s->asks[s->ask_head % STE_ASKS];
	if (s->n_asks == 0 || !same_request(&a.req, &ask.req) ||
		(a.status == WST_OK && a.len != ask.len)) {
		lose(s, STE_FAULT_WRONG, "it answered a request that was not made");
		return;
	}
	s->cur = ask;
	s->member = a.member;
	s->ask_head++;
	s->n_asks--;
	if (a.status != WST_OK) {
		s->ahead -= ask.len;
		s->answered_ns = s->j->e->now_ns;
		not_had(s, a.status);
		return;
	}
	s->got = s->checked = 0;
	s->len = a.len;
	s->block = NULL;
	if (ask.req.kind == WST_BLOCK) {
		land(s);
	} else {
		s->dst = (uint8_t *)(ask.req.kind == WST_TENSORS
					     ? s->j->want + ask.req.tensor
					     : s->j->elected +
						       s->j->tensors[ask.req.tensor].first_leaf +
						       ask.req.first);
		s->busy = true;
	}
	watch(s);
}

void ste_stream_resume(struct ste_stream *s)
{
	s->stalled = false;
	land(s);
	if (s->stalled)
		return;
	s->heard_ns = s->answered_ns = s->j->e->now_ns;
	watch(s);
}

/* Handles hashes that have arrived. Returns false if they are complete and wrong. */
static bool take_hashes(struct ste_stream *s)
{
	struct ste_job *j = s->j;
	const struct wst_request *r = &s->cur.req;
	uint64_t from = position(r);

	if (is_part(j, r)) {
		if (from == 0)
			s->hash_next = r->n;
		return true;
	}
	/* The last of several parts. The answer to a request for all hashes may come between two
	 * parts, and does not end the series. */
	if (from > 0)
		s->hash_next = s->hash_end = 0;
	if (r->kind == WST_TENSORS ? ste_job_take_tensors(j) : ste_job_take_leaves(j, r->tensor))
		return true;
	if (from > 0) /* earlier parts may have come from other members */
		s->member = 0;
	ste_fetch_return(j, r);
	return false;
}

static void adapt_window(struct ste_stream *s)
{
	uint64_t took = s->j->e->now_ns - s->cur.sent_ns, rate;
	struct ste_came c = {.len = s->len, .ahead = s->cur.ahead, .took_ns = took > 0 ? took : 1};

	if (c.took_ns < s->src->base_ns)
		s->src->base_ns = c.took_ns;
	c.base_ns = s->src->base_ns;
	rate = c.ahead * STE_MS(1) / c.took_ns * 1000;
	s->rate = s->rate > 0 ? (s->rate + rate) / 2 : rate;
	s->window = ste_pace_window(s->window, &c, s->src->waiting);
}

static void finish_answer(struct ste_stream *s)
{
	struct ste_block *b = s->block;

	s->busy = false;
	s->block = NULL;
	s->ahead -= s->cur.len;
	s->answered_ns = s->j->e->now_ns;
	adapt_window(s);
	if (s->cur.req.kind != WST_BLOCK && !take_hashes(s)) {
		lose(s, STE_FAULT_WRONG, "its hashes are not those that were elected");
		return;
	}
	/* A part of the hashes does not count as a right answer, because a source could send it
	 * again and again. */
	if (!is_part(s->j, &s->cur.req))
		ste_stream_right(s, b ? s->len : 0);
	ste_job_moved(s->j);
	if (b)
		ste_block_landed(s->j, b);
}

/* Checks the leaves that are complete. Returns false if one is wrong; then the stream is closed. */
static bool check_leaves(struct ste_stream *s)
{
	struct ste_block *b = s->block;

	while (b && s->checked < b->n) {
		size_t off = (size_t)s->checked * WIRE_LEAF, len = s->len - off;

		if (len > WIRE_LEAF)
			len = WIRE_LEAF;
		if (s->got < off + len)
			break;
		if (!ste_job_leaf_is(s->j, b->tensor, b->first + s->checked, s->dst + off, len)) {
			char name[64];

			ste_job_name(s->j, b->tensor, name, sizeof name);
			lose(s, STE_FAULT_WRONG,
				"its data of tensor \"%s\" does not match the hash", name);
			return false;
		}
		s->checked++;
	}
	return true;
}

/* > 0: bytes received; 0: none now, or the stream was closed. */
static ssize_t receive(struct ste_stream *s, struct iovec *iov, size_t n_iov)
{
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = n_iov};
	ssize_t n = recvmsg(s->f.fd, &m, MSG_DONTWAIT);

	if (n > 0) {
		s->heard_ns = s->j->e->now_ns;
		atomic_fetch_add_explicit(&s->j->net_rx, (uint64_t)n, memory_order_relaxed);
		return n;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	lose(s, STE_FAULT_LOST, "%s", n == 0 ? "closed by the other agent" : strerror(errno));
	return 0;
}

static ssize_t receive_payload(struct ste_stream *s)
{
	size_t left = s->len - s->got, now = left < RECV_MAX ? left : RECV_MAX;
	/* The call that receives the last bytes may also receive the next header. */
	struct iovec iov[2] = {{s->dst + s->got, now}, {s->in, WST_HDR_SIZE}};
	ssize_t n = receive(s, iov, now == left && s->n_asks > 0 ? 2 : 1);

	if (n <= 0)
		return n;
	atomic_fetch_add_explicit(&s->j->moved, (uint64_t)n, memory_order_relaxed);
	if ((size_t)n > now) {
		s->in_have = (uint32_t)((size_t)n - now);
		s->got += (uint32_t)now;
	} else {
		s->got += (uint32_t)n;
	}
	if (check_leaves(s) && s->got == s->len)
		finish_answer(s);
	return n;
}

static ssize_t receive_header(struct ste_stream *s)
{
	uint32_t size = s->state == STE_GREETING ? WLK_ACK_SIZE : WST_HDR_SIZE;
	struct iovec iov = {s->in + s->in_have, size - s->in_have};
	ssize_t n = receive(s, &iov, 1);

	if (n > 0)
		s->in_have += (uint32_t)n;
	return n;
}

static void take_header(struct ste_stream *s)
{
	if (s->state == STE_GREETING && s->in_have == WLK_ACK_SIZE)
		take_ack(s);
	else if (s->state == STE_UP && !s->busy && s->in_have == WST_HDR_SIZE)
		begin_answer(s);
}

void ste_stream_ready(struct ste_stream *s, uint32_t events)
{
	size_t budget = BUDGET;

	if (s->state == STE_CONNECTING) {
		greet(s);
		return;
	}
	if (s->stalled) {
		if (events & (EPOLLERR | EPOLLHUP))
			lose(s, STE_FAULT_LOST, "closed by the other agent");
		return;
	}
	if ((events & EPOLLOUT) && s->out_to > s->out_from)
		ste_stream_flush(s);
	while (budget > 0 && s->f.fd >= 0 && !s->stalled) {
		ssize_t n = s->busy ? receive_payload(s) : receive_header(s);

		if (n == 0)
			return;
		budget = (size_t)n < budget ? budget - (size_t)n : 0;
		if (s->f.fd >= 0)
			take_header(s);
	}
}
