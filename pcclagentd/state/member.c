/* SPDX-License-Identifier: MIT
 *
 * The members of a job: checks their manifests, fails members and drops them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "pcclagentd/state/copy.h"
#include "pcclagentd/state/job.h"
#include "pcclagentd/state/member.h"
#include "pcclagentd/state/pool.h"
#include "pcclagentd/state/serve.h"
#include "pcclagentd/state/set.h"
#include "pcclagentd/state/ste_internal.h"

void ste_peer_fail(struct ste_job *j, struct ste_peer *p, const char *fmt, ...)
{
	va_list ap;

	if (p->failed)
		return;
	va_start(ap, fmt);
	vsnprintf(p->text, sizeof p->text, fmt, ap);
	va_end(ap);
	p->failed = true;
	ste_notify(j, STE_NOTE_MEMBERS);
	ste_set_remove(&j->receivers, p->index);
	ste_set_remove(&j->holders, p->index);
	ste_block_forget(j, p);
	ste_conns_forget(j->e, j, p);
	if (!p->lacks || !j->have_want)
		return;
	/* Leaves that only this member lacked are no longer needed. */
	for (uint64_t i = 0; i < j->n_leaves; i++) {
		if (j->leaf[i] != STE_LEAF_MISSING || ste_job_is_lacked(j, i))
			continue;
		j->leaf[i] = STE_LEAF_HAVE;
		j->n_missing--;
	}
}

void ste_peer_drop(struct ste_job *j, struct ste_peer *p)
{
	if (p->dropped)
		return;
	ste_pool_settle(j->e);
	ste_peer_fail(j, p, "it was removed from the synchronization");
	ste_block_evict(j, p);
	atomic_store_explicit(&p->dropped, true, memory_order_release);
	for (uint32_t i = 0; j->table == p && i < j->n_peers; i++)
		if (j->peers[i].alike && !j->peers[i].dropped)
			j->table = &j->peers[i];
	if (j->table == p)
		j->table = NULL;
	ste_notify(j, STE_NOTE_MEMBERS);
}

static int by_id(const void *a, const void *b)
{
	const struct ste_region *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

const struct ste_region *ste_peer_region(const struct ste_peer *p, uint32_t tensor)
{
	struct ste_region key = {.id = p->m.state->tensors[tensor].region};

	if (key.id == 0 || p->m.n_regions == 0)
		return NULL;
	return bsearch(&key, p->regions, p->m.n_regions, sizeof *p->regions, by_id);
}

void ste_peer_map(const struct ste_peer *p, const struct ste_block *b)
{
	const struct ste_region *r = ste_peer_region(p, b->tensor);
	uint64_t from = (uint64_t)(p->mem[b->tensor] - r->map) + b->off;
	uint64_t i = from / STE_MAPPED, end = (from + b->len - 1) / STE_MAPPED + 1, n;

	for (; i < end; i += n + 1) {
		uint64_t off = i * STE_MAPPED, len;

		for (n = 0; i + n < end; n++)
			if (atomic_exchange_explicit(&r->mapped[i + n], true, memory_order_relaxed))
				break;
		len = n * STE_MAPPED < r->size - off ? n * STE_MAPPED : r->size - off;
		/* Populate for reading: the kernel then maps many pages at a time, if the process
		 * has touched them. The pages are writable too, because the mapping is shared. */
		if (len > 0)
			(void)madvise(r->map + off, len, MADV_POPULATE_READ);
	}
}

/* Finds the memory of all tensors. Returns false if a tensor lies outside the region that its
 * manifest names. */
static bool find_memory(struct ste_peer *p)
{
	const struct shm_state *s = p->m.state;

	if (p->m.n_regions > 0)
		qsort(p->regions, p->m.n_regions, sizeof *p->regions, by_id);
	for (uint32_t t = 0; t < s->n_tensors; t++) {
		const struct shm_state_tensor *x = &s->tensors[t];
		const struct ste_region *r;

		p->mem[t] = NULL;
		if (x->region == 0) {
			p->windowed |= x->bytes > 0;
			continue;
		}
		r = ste_peer_region(p, t);
		if (!r || x->region_off > r->size || x->bytes > r->size - x->region_off)
			return false;
		p->mem[t] = r->map + x->region_off;
	}
	return true;
}

static bool same_table(const struct ste_job *j, const struct shm_state *s)
{
	if (s->n_tensors != j->n_tensors || s->n_leaves != j->n_leaves)
		return false;
	for (uint32_t t = 0; t < s->n_tensors; t++)
		if (s->tensors[t].bytes != j->tensors[t].bytes ||
			s->tensors[t].may_differ != j->tensors[t].may_differ)
			return false;
	return true;
}

/* Is the digest of the member's tensor hashes the elected one? */
static bool has_content(struct ste_job *j, const struct ste_peer *p)
{
	size_t n = 0;

	for (uint32_t t = 0; t < j->n_tensors; t++)
		if (!p->m.state->tensors[t].may_differ)
			j->scratch[n++] = p->m.state->tensors[t].hash;
	return ste_job_is_content(j, j->scratch, n);
}

void ste_peer_touch(struct ste_peer *p)
{
	struct shm_state_end *end = (void *)(p->m.map + SHM_STATE_END_OFF);

	if (p->touched)
		return;
	p->touched = true;
	atomic_store(&end->touched, 1);
}

void ste_peer_set_complete(struct ste_job *j, struct ste_peer *p)
{
	struct shm_state_end *end = (void *)(p->m.map + SHM_STATE_END_OFF);

	atomic_store_explicit(&end->revision, j->revision, memory_order_relaxed);
	atomic_store_explicit(&end->complete, 1, memory_order_release);
	atomic_store_explicit(&p->complete, true, memory_order_release);
}

void ste_peer_check(struct ste_job *j, struct ste_peer *p)
{
	bool has;

	if (!find_memory(p)) {
		ste_peer_fail(j, p, "a tensor lies outside the registered memory that it names");
		return;
	}
	p->alike = same_table(j, p->m.state);
	if (!p->alike) {
		ste_peer_fail(j, p, "its tensors are not those of the other peers on this host");
		return;
	}
	has = has_content(j, p);
	if (has) {
		if (!p->m.receive_only)
			ste_set_add(&j->holders, p->index);
		ste_peer_set_complete(j, p);
	} else if (p->m.holder) {
		ste_peer_fail(j, p, "its tensors' hashes are not those that it announced");
	} else {
		ste_set_add(&j->receivers, p->index);
	}
}
