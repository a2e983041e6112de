/* SPDX-License-Identifier: MIT
 *
 * A bounded ring of 64-bit values between one producer thread and one consumer thread. There are no
 * locks and no system calls; the caller must wake the other side. Head and tail have their own
 * cache lines. The cache line of each index also holds its writer's copy of the other index.
 */
#ifndef CC_SPSC_H
#define CC_SPSC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct cc_spsc {
	_Alignas(64) _Atomic uint32_t tail; /* written by the producer */
	uint32_t head_seen;
	_Alignas(64) _Atomic uint32_t head; /* written by the consumer */
	uint32_t tail_seen;
	_Alignas(64) uint64_t *v;
	uint32_t mask;
};

/* Rounds capacity up to a power of two (at most 2^31). Returns false without memory. */
static inline bool cc_spsc_init(struct cc_spsc *q, uint32_t capacity)
{
	uint32_t n = 1;

	while (n < capacity)
		n *= 2;
	q->v = malloc((size_t)n * sizeof *q->v);
	q->mask = n - 1;
	q->head_seen = 0;
	q->tail_seen = 0;
	atomic_init(&q->tail, 0);
	atomic_init(&q->head, 0);
	return q->v != NULL;
}

static inline void cc_spsc_destroy(struct cc_spsc *q)
{
	free(q->v);
	q->v = NULL;
}

/* Returns false if the ring is full. */
static inline bool cc_spsc_push(struct cc_spsc *q, uint64_t value)
{
	uint32_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);

	if (tail - q->head_seen > q->mask) {
		q->head_seen = atomic_load_explicit(&q->head, memory_order_acquire);
		if (tail - q->head_seen > q->mask)
			return false;
	}
	q->v[tail & q->mask] = value;
	atomic_store_explicit(&q->tail, tail + 1, memory_order_release);
	return true;
}

/* Returns false if the ring is empty. */
static inline bool cc_spsc_pop(struct cc_spsc *q, uint64_t *ret)
{
	uint32_t head = atomic_load_explicit(&q->head, memory_order_relaxed);

	if (head == q->tail_seen) {
		q->tail_seen = atomic_load_explicit(&q->tail, memory_order_acquire);
		if (head == q->tail_seen)
			return false;
	}
	*ret = q->v[head & q->mask];
	atomic_store_explicit(&q->head, head + 1, memory_order_release);
	return true;
}

/* Is the ring empty? Only the consumer may call this. */
static inline bool cc_spsc_empty(struct cc_spsc *q)
{
	return atomic_load_explicit(&q->head, memory_order_relaxed) ==
	       atomic_load_explicit(&q->tail, memory_order_acquire);
}

#endif
