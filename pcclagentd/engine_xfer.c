/* SPDX-License-Identifier: MIT
 *
 * What both threads do with a transfer.
 */
#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"
#include "common/cc_futex.h"
#include "pcclagentd/engine_internal.h"

struct eng_xfer *eng_xfer_new(void)
{
	/* Ring heads live on cache lines of their own. */
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
	free(x->deferred);
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
	free(x->deferred);
	x->cap_segs = 0;
	x->leaving = malloc(cap);
	x->seg_state = malloc(cap);
	x->deferred = malloc(cap * sizeof *x->deferred);
	/* Every segment is forwarded at most once per phase. */
	if (!cc_spsc_init(&x->forward, 2 * cap) || !x->leaving || !x->seg_state || !x->deferred)
		return CC_ERR_NOMEM;
	x->cap_segs = cap;
	return 0;
}

/* Segments that become final here, and segments to be sent: all that are not empty, once each; plus
 * those of the chunks that are passed on in both phases. */
static uint32_t count_work(const struct eng_xfer_spec *s)
{
	uint32_t work = 0;

	for (uint32_t chunk = 0; chunk < s->plan.hosts; chunk++) {
		uint64_t elements = cc_plan_chunk(&s->plan, chunk).len / s->plan.esize;
		uint32_t filled = s->plan.segs_per_chunk, times = 1;

		/* The elements are spread evenly. */
		if (elements < filled)
			filled = (uint32_t)elements;
		if (s->plan.hosts > 1) {
			times += !cc_plan_is_owner(&s->plan, chunk, s->pos);
			times += cc_plan_forwards_result(&s->plan, chunk, s->pos);
		}
		work += filled * times;
	}
	return work;
}

int eng_xfer_setup(struct eng_xfer *x, const struct eng_xfer_spec *spec)
{
	uint32_t segs = spec->plan.n_segs;

	if (segs > ENG_SEGS_MAX || spec->n_members == 0 || spec->n_members > ENG_MEMBERS_MAX)
		return CC_ERR_LIMIT;
	if (segs > x->cap_segs && grow(x, segs) < 0)
		return CC_ERR_NOMEM;
	memset((void *)x->leaving, 0, segs);
	memset(x->seg_state, 0, segs);
	/* The previous transfer may have been cancelled with entries left. */
	for (uint64_t v; cc_spsc_pop(&x->forward, &v);)
		;
	x->spec = *spec;
	x->bytes = spec->plan.count * spec->plan.esize;
	atomic_init(&x->work_left, count_work(spec));
	atomic_init(&x->segs_final, 0);
	atomic_init(&x->next_local, 0);
	atomic_init(&x->tx_bytes, 0);
	atomic_init(&x->rx_bytes, 0);
	x->n_deferred = 0;
	x->rx_next = NULL;
	x->origin_next = 0;
	x->tx_next = NULL;
	x->acks_awaited = 0;
	x->cancelled = false;
	x->done = false;
	x->released = false;
	return 0;
}

/* in_done counts bytes in the order [in_start, end) then [0, in_start). It comes from a process
 * that may write anything there: a wrong value spoils nothing but that process's own contribution.
 */
static bool has_input(const struct eng_xfer *x, const struct eng_member *m, struct cc_span span)
{
	uint64_t done = atomic_load(&m->slot->in_done);
	uint64_t need;

	if (span.off >= m->in_start)
		need = span.off + span.len - m->in_start;
	else if (span.off + span.len <= m->in_start)
		need = x->bytes - m->in_start + span.off + span.len;
	else
		need = x->bytes;
	return done >= need;
}

bool eng_xfer_ready(struct eng_xfer *x, struct cc_span span)
{
	for (uint32_t i = 0; i < x->spec.n_members; i++) {
		const struct eng_member *m = &x->spec.members[i];

		if (!m->staged || has_input(x, m, span))
			continue;
		/* Ask for the bell, then look again: the shim writes in_done before it looks. */
		atomic_store(&m->slot->in_want, 1);
		if (has_input(x, m, span))
			continue;
		return false;
	}
	return true;
}

void eng_xfer_combine(
	const struct eng_xfer *x, struct cc_span span, uint8_t *dst, const uint8_t *with)
{
	const struct eng_xfer_spec *s = &x->spec;
	const void *srcs[ENG_MEMBERS_MAX + 1];
	unsigned n = 0;

	if (with)
		srcs[n++] = with;
	for (uint32_t i = 0; i < s->n_members; i++)
		srcs[n++] = s->members[i].in + span.off;
	krn_reduce(s->dtype, s->op, dst, srcs, n, span.len / s->plan.esize);
}

void eng_xfer_publish(struct eng_thread *t, struct eng_xfer *x, uint32_t seg)
{
	/* Sequentially consistent, like the waiter's side of shm_slot.wait. With direct output the
	 * flag has been set before, when the old contents were saved. */
	if (!x->spec.direct) {
		atomic_store(&x->spec.flags[seg], 1);
		for (uint32_t i = 0; i < x->spec.n_members; i++) {
			_Atomic uint32_t *wait = &x->spec.members[i].slot->wait;
			uint32_t asleep = SHM_WAIT_SEGMENTS;

			if (atomic_load(wait) == asleep &&
				atomic_compare_exchange_strong(wait, &asleep, SHM_WAIT_AWAKE))
				cc_futex_wake(wait, 1);
		}
	}
	atomic_fetch_add_explicit(&x->segs_final, 1, memory_order_relaxed);
	eng_xfer_work_done(t, x);
}

void eng_xfer_work_done(struct eng_thread *t, struct eng_xfer *x)
{
	if (atomic_fetch_sub(&x->work_left, 1) == 1)
		eng_notify(t, eng_pack_ptr(x, ENG_NOTE_DONE), true);
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
	eng_xfer_combine(x, span, s->area + span.off, NULL);
	if (s->op == KRN_AVG)
		krn_divide(s->dtype, s->area + span.off, span.len / s->plan.esize, s->world);
	eng_xfer_publish(t, x, seg);
	return true;
}
