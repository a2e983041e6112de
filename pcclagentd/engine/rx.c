/* SPDX-License-Identifier: MIT
 *
 * The RX thread: receives segments, adds local operands to partial sums, and passes them to the TX
 * thread. A partial sum is received into the buffer of its stream. Then it moves to the place where
 * the result will be later. So the thread cannot run out of buffers. A partial sum in the buffer
 * waits only for local input that is still being copied. If no input comes, a trainer has probably
 * been stopped, and the next segment on the stream may belong to other trainers. Then the partial
 * sum is spilled.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "common/cc_err.h"
#include "common/cc_sys.h"
#include "pcclagentd/engine/eng_internal.h"

/* Bytes received from one stream before the next stream has its turn. */
#define RX_BUDGET ((size_t)1 << 20)
/* The time limit of a stalled stream. A stream stalls while the message by which the master starts
 * the transfer is still under way. */
#define STALL_MAX_NS 30000000000ull
/* A stream is blocked for at most this time while no input is copied. Copying 256 KiB takes a
 * hundredth of it. */
#define BLOCK_MAX_MS 10
/* A transfer blocks streams for at most this time in all, even if its processes claim to copy. */
#define BLOCK_ALL_NS 3000000000ull

static struct eng_xfer **bucket_of(struct eng *e, uint64_t seq)
{
	return &e->buckets[seq % ENG_BUCKETS];
}

static struct eng_xfer *find(struct eng *e, uint64_t seq)
{
	struct eng_xfer *x = *bucket_of(e, seq);

	while (x && x->spec.seq != seq)
		x = x->rx_next;
	return x;
}

static void pass_on(struct eng *e, struct eng_xfer *x, uint32_t seg, enum wlk_phase phase)
{
	/* The ring has room for every segment in both phases, so it is never full. */
	cc_spsc_push(&x->forward, eng_forward(seg, phase));
	wrk_wake(&e->tx.worker);
}

/* Saves the old contents of the caller's output before they are overwritten. */
static void save_undo(const struct eng_xfer *x, uint32_t seg, struct cc_span span)
{
	memcpy(x->spec.area + span.off, x->spec.direct + span.off, span.len);
	atomic_store_explicit(&x->spec.flags[seg], 1, memory_order_release);
}

/* A segment is final: passes it on if `forward`, and publishes it here or in the TX thread. */
static void finish(struct eng_thread *t, struct eng_xfer *x, uint32_t seg, bool forward)
{
	if (forward)
		pass_on(t->e, x, seg, WLK_GATHER);
	/* A process may overwrite a published segment in its own memory. So a segment that is to be
	 * sent from there is published later, by the TX thread. */
	if (!forward || !eng_xfer_sends_in_place(x))
		eng_xfer_publish(t, x, seg);
}

/* Computes the final value from the partial sums and the local operands. */
static void finish_sum(struct eng_thread *t, struct eng_xfer *x, uint32_t seg, struct cc_span span,
	const uint8_t *sum)
{
	const struct eng_xfer_spec *spec = &x->spec;
	uint8_t *out = (spec->direct ? spec->direct : spec->area) + span.off;

	if (spec->direct)
		save_undo(x, seg, span); /* the operand may be there */
	if (spec->quant.on) {
		eng_quant_finish(x, seg, &t->quant, sum, out);
	} else {
		eng_xfer_combine(x, seg, out, sum);
		if (spec->op == KRN_AVG)
			krn_divide(spec->dtype, out, span.len / spec->plan.esize, spec->world_size);
	}
	x->seg_state[seg] |= ENG_SEG_FINAL;
	finish(t, x, seg, true);
}

/* Reduces a segment whose local input has been copied. `sum`: the partial sum if the chunk has one
 * child. */
static void reduce(struct eng_thread *t, struct eng_xfer *x, uint32_t seg, struct cc_span span,
	const uint8_t *sum)
{
	const struct eng_chunk *c = &x->routes.chunks[eng_chunk_of(&x->spec, seg)];

	if (c->parent == ENG_NO_LANE) {
		finish_sum(t, x, seg, span, sum);
	} else {
		if (x->spec.quant.on)
			eng_quant_reduce(x, seg, &t->quant, sum);
		else
			eng_xfer_combine(x, seg, x->spec.area + span.off, sum);
		pass_on(t->e, x, seg, WLK_REDUCE);
	}
}

/* Reduces the segment that the stream has received as the only partial sum. Returns false if local
 * input is missing. */
static bool reduce_received(struct eng_thread *t, struct eng_stream *s)
{
	struct cc_span span = cc_plan_segment(&s->xfer->spec.plan, s->seg);

	if (!eng_xfer_ready(s->xfer, span))
		return false;
	reduce(t, s->xfer, s->seg, span, s->partial);
	s->xfer = NULL;
	return true;
}

/* ---- spilled segments ---- */

/* Returns memory for a spilled segment. The outbox or the area is used, because nobody else needs
 * it yet. If the area is the operand that is still being copied, other memory is used. NULL: no
 * memory. */
static uint8_t *spilled(struct eng_xfer *x, uint32_t seg, uint64_t off)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *p;

	if (x->spec.quant.on)
		return eng_xfer_outbox_at(x, seg);
	if (!eng_xfer_in_place(x))
		return x->spec.area + off;
	if (!x->spilled) {
		/* cppcheck-suppress invalidFunctionArg ; no file is mapped */
		p = mmap(NULL, x->bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
		x->spilled = p == MAP_FAILED ? NULL : p;
	}
	return x->spilled ? x->spilled + off : NULL;
}

/* All partial sums of the segment are here, but no local input. */
static void wait_for_input(struct eng_thread *t, struct eng_xfer *x, uint32_t seg)
{
	x->seg_state[seg] |= ENG_SEG_SPILLED;
	x->spilled_input = eng_xfer_input(x);
	if (x->n_spilled++ == 0) {
		t->e->n_spilled++;
		x->tried_input = UINT64_MAX;
	}
}

/* Spills the segment that the stream has received. Returns false if there is no memory. */
static bool spill_segment(struct eng_thread *t, struct eng_stream *s)
{
	struct eng_xfer *x = s->xfer;
	struct cc_span span = cc_plan_segment(&x->spec.plan, s->seg);
	uint8_t *to = spilled(x, s->seg, span.off);

	if (!to)
		return false;
	memcpy(to, s->partial, eng_xfer_wire_len(x, WLK_REDUCE, &span));
	wait_for_input(t, x, s->seg);
	s->xfer = NULL;
	return true;
}

/* Is the trainer probably stopped? Other segments are spilled already, and either no input was
 * copied since the last one was spilled, or the transfer has blocked streams for too long. */
static bool is_stopped(const struct eng_xfer *x)
{
	return x->n_spilled > 0 &&
	       (eng_xfer_input(x) <= x->spilled_input || cc_now_ns() >= x->block_end_ns);
}

/* Returns the spilled partial sum of a segment. If the area is for undo copies, copies the sum,
 * because an undo copy may overwrite the spilled sum before the sum is used. */
static const uint8_t *take_spilled(
	struct eng *e, struct eng_xfer *x, uint32_t seg, struct cc_span span)
{
	const uint8_t *sum = spilled(x, seg, span.off);

	if (!x->spec.direct || x->spec.quant.on)
		return sum;
	return memcpy(e->sum, sum, span.len);
}

static void retry_spilled(struct eng_thread *t, struct eng_xfer *x)
{
	uint64_t input = eng_xfer_input(x);

	if (input == x->tried_input)
		return; /* no new input; the doorbell has been requested */
	x->tried_input = input;
	for (uint32_t seg = 0; seg < x->spec.plan.n_segs && x->n_spilled > 0; seg++) {
		struct cc_span span = cc_plan_segment(&x->spec.plan, seg);
		const uint8_t *sum;

		if (!(x->seg_state[seg] & ENG_SEG_SPILLED) || !eng_xfer_ready(x, span))
			continue;
		sum = NULL;
		if (x->routes.chunks[eng_chunk_of(&x->spec, seg)].n_children == 1)
			sum = take_spilled(t->e, x, seg, span);
		x->seg_state[seg] &= (uint8_t)~ENG_SEG_SPILLED;
		t->e->n_spilled -= --x->n_spilled == 0;
		reduce(t, x, seg, span, sum);
	}
}

static void forget_spilled(struct eng_thread *t, struct eng_xfer *x)
{
	t->e->n_spilled -= x->n_spilled > 0;
	x->n_spilled = 0;
	if (x->spilled)
		munmap(x->spilled, x->bytes);
	x->spilled = NULL;
}

/* ---- streams ---- */

static void watch_input(const struct eng_thread *t, struct eng_stream *s, bool on)
{
	struct epoll_event ev = {.events = on ? EPOLLIN : 0, .data.ptr = s};

	epoll_ctl(t->worker.epfd, EPOLL_CTL_MOD, s->fd, &ev);
}

static void set_blocked(struct eng_thread *t, struct eng_stream *s, bool blocked)
{
	if (s->blocked == blocked)
		return;
	watch_input(t, s, !blocked);
	s->blocked = blocked;
	s->blocked_ns = blocked ? cc_now_ns() : 0;
	s->blocked_input = blocked ? eng_xfer_input(s->xfer) : 0;
	if (blocked && s->xfer->block_end_ns == 0)
		s->xfer->block_end_ns = s->blocked_ns + BLOCK_ALL_NS;
	t->e->n_blocked_streams += blocked ? 1u : -1u;
}

/* One of several partial sums of a segment is in the inbox. */
static void input_arrived(
	struct eng_thread *t, struct eng_xfer *x, uint32_t seg, uint32_t n_children)
{
	struct cc_span span = cc_plan_segment(&x->spec.plan, seg);

	if (++x->n_arrived[seg] < n_children)
		return;
	if (eng_xfer_ready(x, span))
		reduce(t, x, seg, span, NULL);
	else
		wait_for_input(t, x, seg);
}

/* An encoded result has arrived: decodes it. */
static void decode_result(
	struct eng_thread *t, struct eng_xfer *x, uint32_t seg, const uint8_t *wire)
{
	struct cc_span span = cc_plan_segment(&x->spec.plan, seg);
	uint8_t *to = x->spec.area;

	if (x->spec.direct) {
		save_undo(x, seg, span);
		to = x->spec.direct;
	}
	eng_quant_decode(x, seg, &t->quant, wire, to + span.off);
}

static void segment_arrived(struct eng_thread *t, struct eng_stream *s)
{
	struct eng_xfer *x = s->xfer;
	const struct eng_chunk *c = &x->routes.chunks[eng_chunk_of(&x->spec, s->seg)];

	atomic_fetch_sub_explicit(&x->awaited[s->wait], 1, memory_order_relaxed);
	if (s->phase == WLK_GATHER) {
		if (x->spec.quant.on)
			decode_result(t, x, s->seg,
				c->n_targets > 0 ? eng_xfer_outbox_at(x, s->seg) : s->partial);
		finish(t, x, s->seg, c->n_targets > 0);
		s->xfer = NULL;
	} else if (c->n_children > 1) {
		s->xfer = NULL;
		input_arrived(t, x, s->seg, c->n_children);
	} else if (!reduce_received(t, s) && !(is_stopped(x) && spill_segment(t, s))) {
		set_blocked(t, s, true);
	}
}

/* Was the stream blocked for the allowed time? */
static bool is_enough(struct eng_stream *s, uint64_t now)
{
	uint64_t input = eng_xfer_input(s->xfer);

	if (input > s->blocked_input) {
		s->blocked_input = input;
		s->blocked_ns = now;
	}
	return now - s->blocked_ns >= BLOCK_MAX_MS * UINT64_C(1000000) ||
	       now >= s->xfer->block_end_ns;
}

/* Tries again to reduce segments that wait for local input. */
static void retry(struct eng_thread *t)
{
	uint64_t now = cc_now_ns();

	for (unsigned b = 0; b < ENG_BUCKETS && t->e->n_spilled > 0; b++)
		for (struct eng_xfer *x = t->e->buckets[b]; x; x = x->rx_next)
			if (x->n_spilled > 0)
				retry_spilled(t, x);
	for (struct eng_stream *s = t->streams; s; s = s->next) {
		if (!s->blocked)
			continue;
		if (reduce_received(t, s) || (is_enough(s, now) && spill_segment(t, s)))
			set_blocked(t, s, false);
	}
}

static bool comes_from(const struct eng_xfer *x, const struct eng_stream *s, uint32_t pos)
{
	return pos < x->spec.plan.hosts && cc_id_eq(&s->from, &x->spec.peers[pos].agent);
}

/* Checks the sender and the state of a partial sum, and notes the sender in `s`. Returns NULL or an
 * objection. */
static const char *check_sum(const struct eng_xfer *x, struct eng_stream *s, uint32_t seg)
{
	struct cc_route route = eng_route_of(&x->spec);
	uint32_t list[CC_ROUTE_FANOUT_MAX], i = 0;
	uint32_t n = cc_route_children(&route, eng_chunk_of(&x->spec, seg), x->spec.pos, list);

	while (i < n && !comes_from(x, s, list[i]))
		i++;
	if (i == n)
		return "partial sum of a chunk that its sender does not send here";
	if (x->arrived[seg] >> i & 1)
		return "partial sum received twice";
	if (x->seg_state[seg] & ENG_SEG_FINAL)
		return "partial sum of a segment that is final";
	s->child = i;
	s->wait = eng_xfer_wait(&x->spec, eng_chunk_of(&x->spec, seg), WLK_REDUCE, list[i]);
	return NULL;
}

/* Like check_sum, for a result. */
static const char *check_result(const struct eng_xfer *x, struct eng_stream *s, uint32_t seg)
{
	struct cc_route route = eng_route_of(&x->spec);
	uint32_t source = cc_route_source(&route, eng_chunk_of(&x->spec, seg), x->spec.pos);

	if (!comes_from(x, s, source))
		return "result of a chunk that its sender does not send here";
	if (x->seg_state[seg] & ENG_SEG_FINAL)
		return "result received twice";
	if (!atomic_load_explicit(&x->leaving[seg], memory_order_acquire))
		return "result of a sum that this host has not sent";
	s->wait = eng_xfer_wait(&x->spec, eng_chunk_of(&x->spec, seg), WLK_GATHER, source);
	return NULL;
}

/* Checks a segment against the plan and the routes. Returns NULL or an objection. */
static const char *check_segment(
	const struct eng_xfer *x, const struct wlk_data *d, struct eng_stream *s)
{
	const struct cc_plan *p = &x->spec.plan;
	struct cc_span span;

	if (p->hosts < 2)
		return "segment of an operation that has one host";
	if (d->tag != x->spec.tag || d->group != x->spec.group || d->epoch != x->spec.epoch)
		return "segment of another operation under this sequence number";
	if (d->seg >= p->n_segs)
		return "segment number past the end of the operation";
	span = cc_plan_segment(p, d->seg);
	if (d->offset != span.off ||
		d->len != eng_xfer_wire_len(x, (enum wlk_phase)d->phase, &span))
		return "segment offset or length is not what the plan says";
	return d->phase == WLK_REDUCE ? check_sum(x, s, d->seg) : check_result(x, s, d->seg);
}

static void set_stalled(struct eng_thread *t, struct eng_stream *s, bool stalled)
{
	if (s->stalled == stalled)
		return;
	watch_input(t, s, !stalled);
	s->stalled = stalled;
	s->stalled_ns = stalled ? cc_now_ns() : 0;
	t->e->n_stalled += stalled ? 1u : -1u;
}

/* Returns the memory into which the partial sum of the stream is received. */
static uint8_t *place_of_sum(struct eng_xfer *x, struct eng_stream *s)
{
	x->arrived[s->seg] |= UINT64_C(1) << s->child;
	return x->routes.chunks[eng_chunk_of(&x->spec, s->seg)].n_children > 1
		       ? eng_xfer_input_at(x, s->seg, s->child)
		       : s->partial;
}

/* Returns the memory into which the result of the stream is received. */
static uint8_t *place_of_result(struct eng_xfer *x, struct eng_stream *s, const struct wlk_data *d)
{
	x->seg_state[s->seg] |= ENG_SEG_FINAL;
	if (x->spec.quant.on)
		return x->routes.chunks[eng_chunk_of(&x->spec, s->seg)].n_targets > 0
			       ? eng_xfer_outbox_at(x, s->seg)
			       : s->partial;
	if (!x->spec.direct)
		return x->spec.area + d->offset;
	save_undo(x, s->seg, (struct cc_span){d->offset, d->len});
	return x->spec.direct + d->offset;
}

/* Handles a complete header. Returns NULL, or the reason why the stream must end. */
static const char *begin_segment(struct eng_thread *t, struct eng_stream *s)
{
	struct wlk_data d;
	struct eng_xfer *x;
	const char *why;

	if (wlk_data_get(s->hdr, &d, &why) < 0)
		return why;
	if (d.phase == WLK_EAGER)
		return "operand of an eager operation among segments";
	x = find(t->e, d.seq);
	if (!x && d.seq > t->e->last_seq) {
		set_stalled(t, s, true);
		return NULL;
	}
	set_stalled(t, s, false);
	s->busy = true;
	s->left = d.len;
	s->seg = d.seg;
	s->phase = d.phase;
	s->xfer = x;
	if (!x)
		return NULL; /* stale: its payload is received and dropped */
	why = check_segment(x, &d, s);
	if (why) {
		s->xfer = NULL;
		return why;
	}
	s->data = d.phase == WLK_REDUCE ? place_of_sum(x, s) : place_of_result(x, s, &d);
	atomic_fetch_add_explicit(&x->rx_bytes, WLK_DATA_SIZE, memory_order_relaxed);
	return NULL;
}

/* > 0: bytes received; 0: none now; < 0: the stream has ended for the reason *why. *why is NULL if
 * the other agent has closed the stream. */
static ssize_t receive(struct eng_stream *s, void *buf, size_t len, const char **why)
{
	ssize_t n = recv(s->fd, buf, len, MSG_DONTWAIT);

	if (n > 0)
		return n;
	if (n == 0) {
		*why = NULL;
		return -1;
	}
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	*why = strerror(errno);
	return -1;
}

static ssize_t receive_payload(struct eng_thread *t, struct eng_stream *s, const char **why)
{
	size_t len = s->left;
	ssize_t n;

	if (!s->xfer) {
		if (len > ENG_BUFFER_BYTES)
			len = ENG_BUFFER_BYTES;
		n = receive(s, s->partial, len, why);
	} else {
		n = receive(s, s->data, len, why);
	}
	if (n <= 0)
		return n;
	s->left -= (uint32_t)n;
	if (s->xfer) {
		s->data += n;
		atomic_fetch_add_explicit(&s->xfer->rx_bytes, (uint64_t)n, memory_order_relaxed);
	}
	if (s->left == 0) {
		s->busy = false;
		s->hdr_done = 0;
		if (s->xfer)
			segment_arrived(t, s);
	}
	return n;
}

static ssize_t receive_header(struct eng_thread *t, struct eng_stream *s, const char **why)
{
	ssize_t n = receive(s, s->hdr + s->hdr_done, WLK_DATA_SIZE - s->hdr_done, why);

	if (n <= 0)
		return n;
	s->hdr_done += (uint32_t)n;
	if (s->hdr_done == WLK_DATA_SIZE) {
		*why = begin_segment(t, s);
		if (*why)
			return -1;
	}
	return n;
}

static void on_readable(struct eng_thread *t, struct eng_stream *s, uint32_t events)
{
	const char *why = NULL;
	size_t budget = RX_BUDGET;

	if (s->stalled || s->blocked) {
		/* In this state epoll reports only hang-ups. */
		if (events & EPOLLERR)
			eng_break_link(t, s->link, "the connection was reset");
		else if (events & EPOLLHUP)
			eng_end_link(t, s->link);
		return;
	}
	while (budget > 0 && !s->stalled && !s->blocked) {
		ssize_t n = s->busy ? receive_payload(t, s, &why) : receive_header(t, s, &why);

		if (n < 0 && why)
			eng_break_link(t, s->link, why);
		else if (n < 0)
			eng_end_link(t, s->link);
		if (n < 0)
			return;
		if (n == 0)
			return;
		budget = (size_t)n < budget ? budget - (size_t)n : 0;
	}
}

static void start(struct eng_thread *t, struct eng_xfer *x)
{
	struct eng *e = t->e;
	struct eng_xfer **b = bucket_of(e, x->spec.seq);

	e->rx_local += x->spec.plan.hosts == 1;
	x->rx_next = *b;
	*b = x;
	if (x->spec.seq > e->last_seq)
		e->last_seq = x->spec.seq;
}

static void forget(struct eng_thread *t, struct eng_xfer *x)
{
	struct eng_xfer **p = bucket_of(t->e, x->spec.seq);

	while (*p != x)
		p = &(*p)->rx_next;
	*p = x->rx_next;
	t->e->rx_local -= x->spec.plan.hosts == 1;
	for (struct eng_stream *s = t->streams; s; s = s->next) {
		if (s->xfer != x)
			continue;
		s->xfer = NULL; /* the rest of its segment is received and dropped */
		set_blocked(t, s, false);
	}
	forget_spilled(t, x);
	wrk_notify(&t->worker, wrk_pack_ptr(x, ENG_NOTE_ACK), x->cancelled);
}

/* Continues stalled streams whose transfer has started. Breaks the links of those that have stalled
 * for too long. */
static void unpark(struct eng_thread *t)
{
	uint64_t now = cc_now_ns();
	struct eng_stream *s, *next;

	for (s = t->streams; s; s = next) {
		const char *why = NULL;

		next = s->next;
		if (!s->stalled)
			continue;
		if (now - s->stalled_ns > STALL_MAX_NS)
			why = "segment of an operation that never started here";
		else
			why = begin_segment(t, s);
		if (why) {
			eng_break_link(t, s->link, why);
			next = t->streams; /* the list has changed, so the loop starts again */
		}
	}
}

static bool reduce_local(struct eng_thread *t)
{
	bool any = false;

	for (unsigned b = 0; b < ENG_BUCKETS && t->e->rx_local > 0; b++)
		for (struct eng_xfer *x = t->e->buckets[b]; x; x = x->rx_next)
			if (x->spec.plan.hosts == 1)
				any |= eng_xfer_reduce_local(t, x);
	return any;
}

/* Returns how long the thread may sleep without a wake-up, in milliseconds; -1: without limit. */
static int patience(const struct eng_thread *t)
{
	if (t->e->n_blocked_streams > 0)
		return BLOCK_MAX_MS;
	return t->e->n_stalled > 0 ? 1000 : -1;
}

static void *rx_main(void *thread)
{
	struct eng_thread *t = thread;

	while (!t->quit) {
		bool busy = eng_run_commands(t);

		if (t->e->n_stalled > 0)
			unpark(t);
		if (t->e->n_blocked_streams + t->e->n_spilled > 0)
			retry(t);
		busy |= reduce_local(t);
		if (busy) {
			eng_thread_wait(t, 0);
			continue;
		}
		if (wrk_may_sleep(&t->worker))
			eng_thread_wait(t, patience(t));
		else
			wrk_stay_awake(&t->worker);
	}
	return NULL;
}

const struct eng_role eng_rx_role = {
	.name = "pccl-rx",
	.main = rx_main,
	.stream_events = EPOLLIN,
	.on_ready = on_readable,
	.start = start,
	.forget = forget,
};
