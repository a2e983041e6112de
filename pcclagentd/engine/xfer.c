/* SPDX-License-Identifier: MIT
 *
 * Functions of both threads for transfers.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cc_err.h"
#include "common/cc_futex.h"
#include "pcclagentd/engine/eng_internal.h"

struct eng_xfer *eng_xfer_new(void)
{
	/* The heads of the ring need cache lines of their own. */
	struct eng_xfer *x = aligned_alloc(64, (sizeof *x + 63) / 64 * 64);

	if (x)
		memset(x, 0, sizeof *x);
	return x;
}

void eng_xfer_free(struct eng_xfer *x)
{
	if (!x)
		return;
	cc_spsc_destroy(&x->forward);
	free((void *)x->leaving);
	free(x->seg_state);
	free(x->arrived);
	free(x->n_arrived);
	free(x->n_sent);
	free(x->members);
	free(x->peers);
	eng_routes_free(&x->routes);
	if (x->spilled)
		munmap(x->spilled, x->bytes);
	free(x);
}

static int grow(struct eng_xfer *x, uint32_t segs)
{
	uint32_t cap = 64;

	while (cap < segs)
		cap *= 2;
	cc_spsc_destroy(&x->forward);
	free((void *)x->leaving);
	free(x->seg_state);
	free(x->arrived);
	free(x->n_arrived);
	free(x->n_sent);
	x->cap_segs = 0;
	x->leaving = malloc(cap);
	x->seg_state = malloc(cap);
	x->arrived = malloc(cap * sizeof *x->arrived);
	x->n_arrived = malloc(cap);
	x->n_sent = malloc(cap);
	/* Every segment is forwarded at most once per phase. */
	if (!cc_spsc_init(&x->forward, 2 * cap) || !x->leaving || !x->seg_state || !x->arrived ||
		!x->n_arrived || !x->n_sent)
		return CC_ERR_NOMEM;
	x->cap_segs = cap;
	return 0;
}

static int copy_members(struct eng_xfer *x, const struct eng_xfer_spec *spec)
{
	if (spec->n_members > x->cap_members) {
		free(x->members);
		x->cap_members = 0;
		x->members = calloc(spec->n_members, sizeof *x->members);
		if (!x->members)
			return CC_ERR_NOMEM;
		x->cap_members = spec->n_members;
	}
	memcpy(x->members, spec->members, spec->n_members * sizeof *x->members);
	x->spec.members = x->members;
	return 0;
}

static int copy_peers(struct eng_xfer *x, const struct eng_xfer_spec *spec)
{
	uint32_t hosts = spec->plan.hosts;

	if (hosts < 2)
		return 0;
	if (hosts > x->cap_peers) {
		free(x->peers);
		x->cap_peers = 0;
		x->peers = calloc(hosts, sizeof *x->peers);
		if (!x->peers)
			return CC_ERR_NOMEM;
		x->cap_peers = hosts;
	}
	memcpy(x->peers, spec->peers, hosts * sizeof *x->peers);
	x->spec.peers = x->peers;
	return 0;
}

/* Returns the number of segments of the chunk that are not empty. */
static uint32_t filled_segments(const struct cc_plan *p, uint32_t chunk)
{
	uint64_t elements = cc_plan_chunk(p, chunk).len / p->esize;

	/* The elements are spread evenly. */
	return elements < p->segs_per_chunk ? (uint32_t)elements : p->segs_per_chunk;
}

uint32_t eng_xfer_wait(
	const struct eng_xfer_spec *s, uint32_t chunk, enum wlk_phase phase, uint32_t from)
{
	struct cc_route route = eng_route_of(s);
	uint32_t list[CC_ROUTE_FANOUT_MAX], wait = 2;

	if (phase == WLK_REDUCE)
		wait = cc_route_children(&route, chunk, from, list) > 0;
	return wait * ENG_SENDERS + (s->pos + s->plan.hosts - from - 1) % s->plan.hosts;
}

/* Counts the segments that will arrive. */
static void count_awaited(struct eng_xfer *x)
{
	const struct eng_xfer_spec *s = &x->spec;
	struct cc_route route = eng_route_of(s);
	uint32_t list[CC_ROUTE_FANOUT_MAX];

	for (uint32_t i = 0; i < ENG_WAITS * ENG_SENDERS; i++)
		atomic_init(&x->awaited[i], 0);
	for (uint32_t chunk = 0; chunk < s->plan.n_chunks; chunk++) {
		uint32_t segs = filled_segments(&s->plan, chunk);
		uint32_t n = cc_route_children(&route, chunk, s->pos, list);
		uint32_t source = cc_route_source(&route, chunk, s->pos);

		for (uint32_t i = 0; i < n; i++)
			x->awaited[eng_xfer_wait(s, chunk, WLK_REDUCE, list[i])] += segs;
		if (source != CC_ROUTE_NONE)
			x->awaited[eng_xfer_wait(s, chunk, WLK_GATHER, source)] += segs;
	}
}

/* Returns the units of work: each segment that is not empty becomes final once, and may be sent as
 * a partial sum, and as a result to each target. */
static uint32_t count_work(const struct eng_xfer *x)
{
	const struct cc_plan *p = &x->spec.plan;
	uint32_t work = 0;

	for (uint32_t chunk = 0; chunk < p->n_chunks; chunk++) {
		const struct eng_chunk *c = &x->routes.chunks[chunk];

		work += filled_segments(p, chunk) *
			(1u + (c->parent != ENG_NO_LANE) + c->n_targets);
	}
	return work;
}

/*
 * The parts of several rings should end at the same time. But if rings share what a host can carry,
 * TCP gives each of them the same rate, not the rate that belongs to its share. So on each host, a
 * ring that is ahead of another one by 1/LEAD_PART of its segments waits for it.
 *
 * No ring waits for ever. All rings have the same number of segments, so a ring waits for one that
 * has sent fewer. And the n-th segment of a ring needs at most the segment of the host before this
 * one that was sent a chunk earlier. So among all rings of all hosts, the one that has sent least
 * can go on. The argument does not hold if a chunk has fewer elements than segments; then no ring
 * waits.
 *
 * The lead is at least a chunk. So the segments that start at a host never wait for other hosts, as
 * eng_progress.awaited assumes.
 */
#define LEAD_PART 16u

static uint32_t lead_of(const struct eng_xfer_spec *s)
{
	const struct cc_plan *p = &s->plan;
	uint32_t lead;

	if (s->route != CC_ALGO_RINGS)
		return ENG_ANY_LEAD;
	for (uint32_t chunk = 0; chunk < p->n_chunks; chunk++)
		if (filled_segments(p, chunk) < p->segs_per_chunk)
			return ENG_ANY_LEAD;
	lead = 2 * (p->hosts - 1) * p->segs_per_chunk / LEAD_PART;
	return lead > p->segs_per_chunk ? lead : p->segs_per_chunk;
}

int eng_xfer_setup(struct eng_xfer *x, const struct eng_xfer_spec *spec)
{
	uint32_t segs = spec->plan.n_segs;
	int err;

	if (segs > ENG_SEGS_MAX || spec->n_members == 0 || spec->n_members > ENG_MEMBERS_MAX)
		return CC_ERR_LIMIT;
	if (segs > x->cap_segs && grow(x, segs) < 0)
		return CC_ERR_NOMEM;
	memset((void *)x->leaving, 0, segs);
	memset(x->seg_state, 0, segs);
	memset(x->arrived, 0, segs * sizeof *x->arrived);
	memset(x->n_arrived, 0, segs);
	memset(x->n_sent, 0, segs);
	/* The previous transfer may have been cancelled with entries left. */
	for (uint64_t v; cc_spsc_pop(&x->forward, &v);)
		;
	x->spec = *spec;
	if (copy_members(x, spec) < 0 || copy_peers(x, spec) < 0)
		return CC_ERR_NOMEM;
	err = eng_routes_setup(&x->routes, spec);
	if (err < 0)
		return err;
	if (spec->route == CC_ALGO_RINGS) {
		x->rings = *spec->rings;
		x->spec.rings = &x->rings;
	}
	x->bytes = spec->plan.count * spec->plan.esize;
	x->lead = lead_of(spec);
	count_awaited(x);
	atomic_init(&x->work_left, count_work(x));
	atomic_init(&x->segs_final, 0);
	atomic_init(&x->next_local, 0);
	atomic_init(&x->tx_bytes, 0);
	atomic_init(&x->rx_bytes, 0);
	x->rx_next = NULL;
	x->block_end_ns = 0;
	x->tx_next = NULL;
	x->acks_awaited = 0;
	x->cancelled = false;
	x->done = false;
	x->released = false;
	return 0;
}

/* Are all bytes of `span` that lie in [from, to) copied? `done`: bytes of [from, to) that have been
 * copied, in ascending order. */
static bool covers(uint64_t from, uint64_t to, uint64_t done, struct cc_span span)
{
	uint64_t end = span.off + span.len < to ? span.off + span.len : to;

	return span.off >= to || end <= from || done >= end - from;
}

/* Has the member copied all bytes of `span`? A process may write any value to in_done. A wrong
 * value harms only its own operand, and delays others for at most three seconds (rx.c). */
static bool has_input(const struct eng_xfer *x, const struct eng_member *m, struct cc_span span)
{
	uint64_t first = atomic_load(&m->slot->in_done[0]);
	uint64_t second = atomic_load(&m->slot->in_done[1]);
	uint64_t tail = x->bytes - m->in_second;

	return covers(m->in_start, m->in_second, first, span) &&
	       covers(m->in_second, x->bytes, second, span) &&
	       covers(0, m->in_start, second > tail ? second - tail : 0, span);
}

/* Wakes the process if it sleeps until it can copy more, or until a segment is final. */
static void wake(const struct eng_member *m)
{
	uint32_t asleep = SHM_WAIT_SEGMENTS;

	if (atomic_load(&m->slot->wait) == asleep &&
		atomic_compare_exchange_strong(&m->slot->wait, &asleep, SHM_WAIT_AWAKE))
		cc_futex_wake(&m->slot->wait, 1);
}

bool eng_xfer_ready(struct eng_xfer *x, struct cc_span span)
{
	for (uint32_t i = 0; i < x->spec.n_members; i++) {
		const struct eng_member *m = &x->spec.members[i];

		if (!m->staged || has_input(x, m, span))
			continue;
		/* Requests the doorbell, then checks again. The shim writes in_done before it reads
		 * in_want. */
		atomic_store(&m->slot->in_want, 1);
		if (has_input(x, m, span))
			continue;
		if (m->window > 0)
			wake(m);
		return false;
	}
	return true;
}

uint64_t eng_xfer_input(const struct eng_xfer *x)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < x->spec.n_members; i++) {
		const struct eng_member *m = &x->spec.members[i];
		uint64_t done = m->staged ? shm_slot_copied(m->slot) : 0;

		sum += done < x->bytes ? done : x->bytes;
	}
	return sum;
}

uint8_t *eng_xfer_input_at(const struct eng_xfer *x, uint32_t seg, uint32_t child)
{
	const struct cc_plan *p = &x->spec.plan;
	const struct eng_chunk *c = &x->routes.chunks[seg / p->segs_per_chunk];
	uint64_t place = c->first_input + (uint64_t)(seg % p->segs_per_chunk) * c->n_children;

	return x->spec.scratch + (place + child) * x->routes.segment_bytes;
}

uint8_t *eng_xfer_outbox_at(const struct eng_xfer *x, uint32_t seg)
{
	return x->spec.scratch + ((uint64_t)x->routes.n_inputs + seg) * x->routes.segment_bytes;
}

uint32_t eng_xfer_wire_len(
	const struct eng_xfer *x, enum wlk_phase phase, const struct cc_span *span)
{
	const struct eng_quant *q = &x->spec.quant;

	if (!q->on)
		return (uint32_t)span->len;
	return (uint32_t)qnt_wire_size(
		phase == WLK_REDUCE ? &q->sum : &q->result, span->len / x->spec.plan.esize);
}

static unsigned add_operands(
	const struct eng_xfer_spec *s, uint32_t seg, uint64_t off, const void **srcs, unsigned n)
{
	for (uint32_t i = 0; i < s->n_members; i++) {
		const struct eng_member *m = &s->members[i];

		srcs[n++] = m->in + (m->window > 0 ? shm_window_off(m->window, seg) : off);
	}
	return n;
}

/* Adds the partial sums of several children and the local operands, in the order of the ring. */
static unsigned add_inputs(const struct eng_xfer *x, uint32_t seg, uint64_t off, const void **srcs)
{
	const struct eng_xfer_spec *s = &x->spec;
	struct cc_route route = eng_route_of(s);
	uint32_t children[CC_ROUTE_FANOUT_MAX];
	uint32_t n_children = cc_route_children(&route, eng_chunk_of(s, seg), s->pos, children);
	unsigned n = 0;
	uint32_t i = 0;

	for (; i < n_children && children[i] < s->pos; i++)
		srcs[n++] = eng_xfer_input_at(x, seg, i);
	n = add_operands(s, seg, off, srcs, n);
	for (; i < n_children; i++)
		srcs[n++] = eng_xfer_input_at(x, seg, i);
	return n;
}

void eng_xfer_combine_local(const struct eng_xfer *x, uint32_t seg, uint8_t *dst)
{
	const struct eng_xfer_spec *s = &x->spec;
	struct cc_span span = cc_plan_segment(&s->plan, seg);
	const void *srcs[ENG_MEMBERS_MAX];
	unsigned n = add_operands(s, seg, span.off, srcs, 0);

	krn_reduce(s->dtype, s->op, dst, srcs, n, span.len / s->plan.esize);
}

void eng_xfer_combine(const struct eng_xfer *x, uint32_t seg, uint8_t *dst, const uint8_t *with)
{
	const struct eng_xfer_spec *s = &x->spec;
	struct cc_span span = cc_plan_segment(&s->plan, seg);
	const void *srcs[ENG_MEMBERS_MAX + CC_ROUTE_FANOUT_MAX];
	unsigned n = 0;

	if (x->routes.chunks[eng_chunk_of(s, seg)].n_children > 1) {
		n = add_inputs(x, seg, span.off, srcs);
	} else {
		if (with)
			srcs[n++] = with;
		n = add_operands(s, seg, span.off, srcs, n);
	}
	krn_reduce(s->dtype, s->op, dst, srcs, n, span.len / s->plan.esize);
}

static void copy_out(const struct eng_xfer *x, uint32_t seg)
{
	struct cc_span span = cc_plan_segment(&x->spec.plan, seg);

	for (uint32_t i = 0; i < x->spec.n_members; i++)
		if (x->spec.members[i].out)
			memcpy(x->spec.members[i].out + span.off, x->spec.area + span.off,
				span.len);
}

/* Is the member to be woken after this many final segments? A process that copies through a window
 * is woken four times for each pass through the window. */
static bool is_awaited(const struct eng_xfer *x, const struct eng_member *m, uint32_t n_final)
{
	return m->window < 4 || n_final % (m->window / 4) == 0 || n_final == x->spec.plan.n_segs;
}

void eng_xfer_publish(struct eng_thread *t, struct eng_xfer *x, uint32_t seg)
{
	uint32_t n;

	copy_out(x, seg);
	/* Sequentially consistent, like the waiter's side of shm_slot.wait. With direct output the
	 * flag has been set before, when the old contents were saved. */
	if (!x->spec.direct)
		atomic_store(&x->spec.flags[seg], 1);
	n = atomic_fetch_add(&x->segs_final, 1) + 1;
	for (uint32_t i = 0; i < x->spec.n_members && !x->spec.direct; i++)
		if (is_awaited(x, &x->spec.members[i], n))
			wake(&x->spec.members[i]);
	eng_xfer_work_done(t, x);
}

void eng_xfer_work_done(struct eng_thread *t, struct eng_xfer *x)
{
	if (atomic_fetch_sub(&x->work_left, 1) == 1)
		wrk_notify(&t->worker, wrk_pack_ptr(x, ENG_NOTE_DONE), true);
}

bool eng_xfer_reduce_local(struct eng_thread *t, struct eng_xfer *x)
{
	const struct eng_xfer_spec *s = &x->spec;
	uint32_t seg = atomic_load(&x->next_local);
	struct cc_span span;

	do {
		if (seg >= s->plan.n_segs)
			return false;
		span = cc_plan_segment(&s->plan, seg);
		if (span.len > 0 && !eng_xfer_ready(x, span))
			return false;
	} while (!atomic_compare_exchange_strong(&x->next_local, &seg, seg + 1));
	if (span.len == 0)
		return true;
	eng_xfer_combine(x, seg, s->area + span.off, NULL);
	if (s->op == KRN_AVG)
		krn_divide(s->dtype, s->area + span.off, span.len / s->plan.esize, s->world_size);
	eng_xfer_publish(t, x, seg);
	return true;
}
