/* SPDX-License-Identifier: MIT
 *
 * The TX thread: a stream that can take bytes pulls the next segment of its link. Transfers share
 * the streams in turn. Within a transfer, segments that start here are sent before segments that
 * came from the ring. So the segments for which other hosts wait are sent early, and there is a
 * reserve of segments from the ring. In the opposite order, a host that is faster than the others,
 * or far from them, would soon have sent its own segments and then wait for each segment of the
 * ring.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "common/cc_err.h"
#include "common/cc_sys.h"
#include "pcclagentd/engine/eng_internal.h"

/*
 * A partial sum is overwritten by the final value. The final value can only arrive after the whole
 * ring has received the last byte that sendmsg took. TSan cannot see this order, because it comes
 * about on other hosts. So TSan must ignore the reads of sendmsg.
 */
#if defined(__SANITIZE_THREAD__)
#define TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN 1
#endif
#endif
#ifdef TSAN
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
#define TSAN_IGNORE_READS_BEGIN() AnnotateIgnoreReadsBegin(__FILE__, __LINE__)
#define TSAN_IGNORE_READS_END()   AnnotateIgnoreReadsEnd(__FILE__, __LINE__)
#else
#define TSAN_IGNORE_READS_BEGIN() ((void)0)
#define TSAN_IGNORE_READS_END()   ((void)0)
#endif

struct job {
	struct eng_xfer *x;
	uint32_t seg;
	enum wlk_phase phase;
	const uint8_t *data;
	struct cc_span span;
};

/* Finds the next segment of the chunk that is not empty. Returns false if there is none. */
static bool find_filled(const struct cc_plan *p, struct eng_origin *o, struct cc_span *ret)
{
	for (; o->seg < p->segs_per_chunk; o->seg++) {
		*ret = cc_plan_segment(p, o->chunk * p->segs_per_chunk + o->seg);
		if (ret->len > 0)
			return true;
	}
	return false;
}

/* Finds the next segment that starts here and has its local input. */
static struct eng_origin *find_origin(struct eng_xfer *x, struct eng_lane *l, struct cc_span *ret)
{
	while (l->n_origins > 0) {
		struct eng_origin *o = &l->origins[l->n_origins - 1];

		if (find_filled(&x->spec.plan, o, ret))
			return eng_xfer_ready(x, *ret) ? o : NULL;
		l->n_origins--;
	}
	return NULL;
}

/* Takes the next segment that starts here. Returns false if there is none, or if its local input is
 * missing. With several members, or with quantization, the segment is made in `buffer`, which stays
 * in the cache because its contents are sent at once. */
static bool take_origin(struct eng_xfer *x, struct eng_lane *l,
	const struct eng_quant_buffers *quant, uint8_t *buffer, struct job *ret)
{
	struct cc_span span;
	struct eng_origin *o = find_origin(x, l, &span);
	uint32_t seg;

	if (!o)
		return false;
	seg = o->chunk * x->spec.plan.segs_per_chunk + o->seg++;
	*ret = (struct job){x, seg, WLK_REDUCE, buffer, span};
	if (x->spec.quant.on)
		eng_quant_origin(x, seg, quant, buffer);
	else if (x->spec.n_members > 1)
		eng_xfer_combine_local(x, seg, buffer);
	else
		ret->data = x->spec.members[0].in + span.off;
	return true;
}

/* Hands the segments that came from other hosts to the lanes on which they are sent on. */
static void sort_forwards(struct eng_xfer *x)
{
	struct eng_routes *r = &x->routes;
	uint64_t v;

	while (cc_spsc_pop(&x->forward, &v)) {
		const struct eng_chunk *c = &r->chunks[eng_chunk_of(&x->spec, eng_forward_seg(v))];
		struct eng_lane *l;

		if (eng_forward_phase(v) == WLK_REDUCE) {
			l = &r->lanes[c->parent];
			l->queue[l->tail++] = (uint32_t)v;
			continue;
		}
		for (uint32_t i = 0; i < c->n_targets; i++) {
			l = &r->lanes[r->targets[c->first_target + i]];
			l->queue[l->tail++] = (uint32_t)v;
		}
	}
}

static bool take_forward(struct eng_xfer *x, struct eng_lane *l, struct job *ret)
{
	uint64_t v;

	sort_forwards(x);
	if (l->head == l->tail)
		return false;
	v = l->queue[l->head++];
	*ret = (struct job){.x = x, .seg = eng_forward_seg(v), .phase = eng_forward_phase(v)};
	ret->span = cc_plan_segment(&x->spec.plan, ret->seg);
	if (x->spec.quant.on)
		ret->data = eng_xfer_outbox_at(x, ret->seg);
	else if (ret->phase == WLK_GATHER && x->spec.direct)
		ret->data = x->spec.direct + ret->span.off;
	else
		ret->data = x->spec.area + ret->span.off;
	return true;
}

/* Is the ring of this lane too far ahead of another ring? */
static bool is_held(const struct eng_xfer *x, const struct eng_lane *l)
{
	for (uint32_t i = 0; i < x->routes.n_lanes; i++)
		if (l->taken > x->routes.lanes[i].taken + (uint64_t)x->lead)
			return true;
	return false;
}

/* Returns whether the lane sends on this link now. */
static bool may_use(const struct eng_xfer *x, const struct eng_lane *l, uint32_t link)
{
	return l->link == link && (x->lead == ENG_ANY_LEAD || !is_held(x, l));
}

/* Takes a segment of the transfer for this stream, from each lane of the link in turn. Returns
 * false if there is none. */
static bool take(struct eng *e, const struct eng_stream *s, struct eng_xfer *x, struct job *ret)
{
	struct eng_routes *r = &x->routes;

	for (uint32_t i = 1; i <= r->n_lanes; i++) {
		uint32_t turn = (r->turn + i) % r->n_lanes;
		struct eng_lane *l = &r->lanes[turn];

		if (may_use(x, l, s->link) && (take_origin(x, l, &e->tx.quant, s->partial, ret) ||
						      take_forward(x, l, ret))) {
			l->taken++;
			r->turn = turn;
			return true;
		}
	}
	return false;
}

/* Takes the next segment for this stream, from each transfer in turn. Returns false if there is
 * none. */
static bool next_job(struct eng *e, const struct eng_stream *s, struct job *ret)
{
	struct eng_xfer *last = e->active;
	struct eng_xfer *x = last;

	if (!last)
		return false;
	do {
		x = x->tx_next;
		if (take(e, s, x, ret)) {
			e->active = x;
			return true;
		}
	} while (x != last);
	return false;
}

static void load(struct eng_stream *s, const struct job *j)
{
	const struct eng_xfer_spec *spec = &j->x->spec;
	struct wlk_data d = {.phase = (uint8_t)j->phase,
		.group = spec->group,
		.epoch = spec->epoch,
		.seq = spec->seq,
		.tag = spec->tag,
		.seg = j->seg,
		.len = eng_xfer_wire_len(j->x, j->phase, &j->span),
		.offset = j->span.off};

	wlk_data_put(s->hdr, &d);
	s->hdr_done = 0;
	/* sendmsg only reads the data, but takes pointers to non-const. */
	s->data = (uint8_t *)(uintptr_t)j->data;
	s->left = d.len;
	s->xfer = j->x;
	s->seg = j->seg;
	s->phase = (uint8_t)j->phase;
	s->busy = true;
	/* The RX thread does not overwrite a partial sum before this flag is set, see
	 * check_segment. */
	if (j->phase == WLK_REDUCE)
		atomic_store_explicit(&j->x->leaving[j->seg], 1, memory_order_release);
}

/* The result of the segment was sent to one more target. Was it the last one? */
static bool is_sent_to_all(struct eng_xfer *x, uint32_t seg)
{
	return ++x->n_sent[seg] == x->routes.chunks[eng_chunk_of(&x->spec, seg)].n_targets;
}

static void sent_all(struct eng_thread *t, struct eng_stream *s)
{
	s->busy = false;
	free(s->tail_buf);
	s->tail_buf = NULL;
	if (s->xfer && s->phase == WLK_GATHER && eng_xfer_sends_in_place(s->xfer) &&
		is_sent_to_all(s->xfer, s->seg))
		eng_xfer_publish(t, s->xfer, s->seg);
	if (s->xfer)
		eng_xfer_work_done(t, s->xfer);
	s->xfer = NULL;
}

/* Sends as many bytes of the stream's segment as the socket takes. */
static void push(struct eng_thread *t, struct eng_stream *s)
{
	struct iovec iov[2] = {
		{s->hdr + s->hdr_done, WLK_DATA_SIZE - s->hdr_done},
		{s->data, s->left},
	};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
	size_t hdr;
	ssize_t n;

	TSAN_IGNORE_READS_BEGIN();
	n = sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	TSAN_IGNORE_READS_END();

	if (n < 0) {
		if (errno == EINTR)
			return;
		if (errno == EAGAIN)
			s->writable = false;
		else
			eng_break_link(t, s->link, strerror(errno));
		return;
	}
	if (s->xfer)
		atomic_fetch_add_explicit(&s->xfer->tx_bytes, (uint64_t)n, memory_order_relaxed);
	hdr = (size_t)n < iov[0].iov_len ? (size_t)n : iov[0].iov_len;
	s->hdr_done += (uint32_t)hdr;
	s->data += (size_t)n - hdr;
	s->left -= (uint32_t)((size_t)n - hdr);
	if (s->left == 0 && s->hdr_done == WLK_DATA_SIZE)
		sent_all(t, s);
}

static bool at_work(const struct eng *e, const struct eng_stream *s)
{
	return s->set == ENG_NO_SET || s->set == e->set;
}

/* Sends once on each stream that can take bytes. Returns false if there is nothing to send. */
static bool pump(struct eng_thread *t)
{
	struct eng_stream *s, *next;
	bool any = false;
	struct job j;

	for (s = t->streams; s; s = next) {
		next = s->next;
		if (!s->writable)
			continue;
		if (!s->busy) {
			if (!at_work(t->e, s) || !next_job(t->e, s, &j))
				continue;
			load(s, &j);
		}
		any = true;
		push(t, s);
		if (s->fd < 0)
			return true; /* the link is closed, and perhaps the stream `next` too */
	}
	return any;
}

static void on_ready(struct eng_thread *t, struct eng_stream *s, uint32_t events)
{
	/* The other agent never sends on this stream, so these events mean that it has ended. */
	if (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))
		eng_break_link(t, s->link, "closed by the other agent");
	else if (events & EPOLLOUT)
		s->writable = true;
}

/* Lets the next stream set take over if it is time. Called between operations, so that the new set
 * begins on a path without a queue. */
static void rotate_sets(struct eng *e)
{
	uint64_t now = cc_now_ns();

	if (now - e->set_since_ns < e->set_ns)
		return;
	e->set_since_ns = now;
	e->set = (e->set + 1) % ENG_SETS;
}

static void note_use(struct eng *e, const struct eng_xfer *x)
{
	if (x->spec.plan.hosts == 1)
		return;
	if (!cc_route_is_chain(x->spec.route) || (e->used && e->used_group != x->spec.group))
		e->used_otherwise = true;
	e->used = true;
	e->used_group = x->spec.group;
}

bool eng_tx_used_rings(struct eng *e)
{
	bool ret = e->used && !e->used_otherwise;
	struct eng_xfer *x = e->active;

	e->used = e->used_otherwise = false;
	if (!x)
		return ret;
	do {
		x = x->tx_next;
		note_use(e, x);
	} while (x != e->active);
	return ret;
}

static void start(struct eng_thread *t, struct eng_xfer *x)
{
	struct eng *e = t->e;

	note_use(e, x);
	if (!e->active) {
		rotate_sets(e);
		x->tx_next = x;
		e->active = x;
	} else {
		x->tx_next = e->active->tx_next;
		e->active->tx_next = x;
		e->active = x;
	}
	e->tx_local += x->spec.plan.hosts == 1;
}

static void unlink_active(struct eng *e, struct eng_xfer *x)
{
	struct eng_xfer *prev = x;

	while (prev->tx_next != x)
		prev = prev->tx_next;
	prev->tx_next = x->tx_next;
	if (e->active == x)
		e->active = prev == x ? NULL : prev;
	e->tx_local -= x->spec.plan.hosts == 1;
}

/* Copies the rest of a segment whose transfer has ended. The rest must still be sent, because the
 * stream would lose its framing without this rest. */
static void drain_tail(struct eng_thread *t, struct eng_stream *s)
{
	uint8_t *copy = malloc(s->left ? s->left : 1);

	if (!copy) {
		eng_break_link(t, s->link, "out of memory");
		return;
	}
	memcpy(copy, s->data, s->left);
	s->tail_buf = copy;
	s->data = copy;
	s->xfer = NULL;
}

static void forget(struct eng_thread *t, struct eng_xfer *x)
{
	struct eng_stream *s = t->streams;
	bool cancelled = x->cancelled;

	unlink_active(t->e, x);
	while (s) {
		if (s->xfer == x)
			drain_tail(t, s);
		s = s->fd < 0 ? t->streams : s->next;
	}
	wrk_notify(&t->worker, wrk_pack_ptr(x, ENG_NOTE_ACK), cancelled);
}

static bool reduce_local(struct eng_thread *t)
{
	struct eng_xfer *x = t->e->active;
	bool any = false;

	if (!x || t->e->tx_local == 0)
		return false;
	do {
		x = x->tx_next;
		if (x->spec.plan.hosts == 1)
			any |= eng_xfer_reduce_local(t, x);
	} while (x != t->e->active);
	return any;
}

/* Can the stream take a segment from another host now? */
static bool has_forward_for(const struct eng_xfer *x, const struct eng_stream *s)
{
	for (uint32_t i = 0; i < x->routes.n_lanes; i++) {
		const struct eng_lane *l = &x->routes.lanes[i];

		if (l->head != l->tail && may_use(x, l, s->link))
			return true;
	}
	return false;
}

/* Has the transfer a segment from another host that a stream can take now? */
static bool has_forward(const struct eng_thread *t, struct eng_xfer *x)
{
	sort_forwards(x);
	for (const struct eng_stream *s = t->streams; s; s = s->next)
		if (s->writable && at_work(t->e, s) && has_forward_for(x, s))
			return true;
	return false;
}

/* Is there a segment from another host that a stream can take now? The thread need not stay awake
 * for a segment of a link whose streams are all full or closed. */
static bool can_forward(const struct eng_thread *t)
{
	struct eng_xfer *x = t->e->active;

	if (!x)
		return false;
	do {
		x = x->tx_next;
		if (has_forward(t, x))
			return true;
	} while (x != t->e->active);
	return false;
}

static void *tx_main(void *thread)
{
	struct eng_thread *t = thread;

	while (!t->quit) {
		bool busy = eng_run_commands(t);

		busy |= pump(t);
		busy |= reduce_local(t);
		if (busy) {
			/* Streams that were full may be writable again, or closed. */
			eng_thread_wait(t, 0);
			continue;
		}
		if (wrk_may_sleep(&t->worker) && !can_forward(t))
			eng_thread_wait(t, -1);
		else
			wrk_stay_awake(&t->worker);
	}
	return NULL;
}

const struct eng_role eng_tx_role = {
	.name = "pccl-tx",
	.main = tx_main,
	.stream_events = EPOLLOUT | EPOLLRDHUP | EPOLLET,
	.on_ready = on_ready,
	.start = start,
	.forget = forget,
};
