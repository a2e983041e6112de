/* SPDX-License-Identifier: MIT
 *
 * The state of a job: its members, the elected hashes, the missing leaves, and its end.
 *
 * A leaf is named by its tensor and its number in this tensor, or by its number among all leaves of
 * all tensors. All members of a job have the same table of tensors. A member with another table
 * fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"
#include "pcclagentd/state/copy.h"
#include "pcclagentd/state/fetch.h"
#include "pcclagentd/state/job.h"
#include "pcclagentd/state/member.h"
#include "pcclagentd/state/set.h"
#include "pcclagentd/state/ste_internal.h"
#include "pcclagentd/state/window.h"

#define RATE_NS STE_MS(500)  /* time between two measurements of the rate */
#define WAIT_NS STE_MS(1000) /* time without an acknowledgement: see ste_progress.waits_for */

const char *ste_job_name(const struct ste_job *j, uint32_t tensor, char *buf, size_t size)
{
	const struct ste_peer *p = j->table;

	if (p)
		return shm_state_name(p->m.map, &p->m.state->tensors[tensor], buf, size);
	snprintf(buf, size, "number %u", tensor);
	return buf;
}

void ste_job_moved(struct ste_job *j)
{
	j->moved_ns = j->e->now_ns;
	atomic_fetch_add_explicit(&j->moved, 1, memory_order_relaxed);
}

struct ste_peer *ste_job_holder(struct ste_job *j)
{
	if (ste_set_is_empty(&j->holders))
		return NULL;
	do {
		j->next_holder = (j->next_holder + 1) % j->n_peers;
	} while (!ste_set_has(&j->holders, j->next_holder));
	return &j->peers[j->next_holder];
}

/* ---- hashes ---- */

bool ste_job_is_content(struct ste_job *j, const uint64_t *hashes, size_t n)
{
	uint64_t d[2];

	hsh_digest(hashes, n * sizeof *hashes, d);
	return d[0] == j->content.hi && d[1] == j->content.lo;
}

bool ste_job_take_tensors(struct ste_job *j)
{
	size_t n = 0;

	for (uint32_t t = 0; t < j->n_tensors; t++)
		if (!j->tensors[t].may_differ)
			j->scratch[n++] = j->want[t];
	if (!ste_job_is_content(j, j->scratch, n))
		return false;
	j->have_want = true;
	if (ste_set_is_empty(&j->receivers))
		return true;
	for (uint32_t t = 0; t < j->n_tensors; t++) {
		const struct shm_state_tensor *s = &j->tensors[t];
		bool lacked = false;

		j->tensor[t] = STE_TENSOR_SAME;
		if (s->may_differ) {
			j->want[t] = 0;
			continue;
		}
		STE_SET_EACH(i, &j->receivers)
		{
			struct ste_peer *p = &j->peers[i];

			if (p->m.state->tensors[t].hash == j->want[t])
				continue;
			lacked = true;
			atomic_store_explicit(&p->diffs[t].differs, true, memory_order_relaxed);
		}
		/* The hash of an empty tensor differs only if the process announced a wrong hash.
		 * That harms nobody else. */
		if (!lacked || s->bytes == 0) {
			memset(j->leaf + s->first_leaf, STE_LEAF_HAVE, wire_leaf_count(s->bytes));
			continue;
		}
		j->tensor[t] = STE_TENSOR_WANT;
		j->unready++;
		/* The hash of a tensor's only leaf is not needed: the tensor hash is checked. */
		if (s->bytes <= WIRE_LEAF)
			(void)ste_job_take_leaves(j, t);
	}
	return true;
}

static void set_lacking(struct ste_job *j, struct ste_peer *p, uint64_t leaf, uint64_t len)
{
	p->lacks[leaf / 8] |= (uint8_t)(1u << leaf % 8);
	p->lacking += len;
	atomic_fetch_add_explicit(&p->total, len, memory_order_relaxed);
	atomic_fetch_add_explicit(&j->total, len, memory_order_relaxed);
	if (j->leaf[leaf] == STE_LEAF_HAVE) {
		j->leaf[leaf] = STE_LEAF_MISSING;
		j->n_missing++;
	}
}

/* Marks the leaves of a tensor that `p` lacks. If the hash over the leaf hashes of `p` is not its
 * tensor hash, `p` lacks all leaves of the tensor. */
static void compare(struct ste_job *j, struct ste_peer *p, uint32_t t)
{
	const struct shm_state_tensor *s = &j->tensors[t];
	uint64_t n = wire_leaf_count(s->bytes), lacking = p->lacking, leaves = 0;
	struct ste_diffs *d = &p->diffs[t];
	bool all = n == 1;

	if (p->m.state->tensors[t].hash == j->want[t])
		return;
	if (!all) {
		for (uint64_t i = 0; i < n; i++)
			j->scratch[i] = shm_state_leaf(p->m.map, p->m.state, s->first_leaf + i);
		all = hsh_tensor(j->scratch, s->bytes) != p->m.state->tensors[t].hash;
	}
	for (uint64_t i = 0; i < n; i++) {
		if (!all && j->scratch[i] == j->elected[s->first_leaf + i])
			continue;
		set_lacking(j, p, s->first_leaf + i, wire_leaf_bytes(s->bytes, i, 1));
		leaves++;
	}
	atomic_store_explicit(&d->leaves, leaves, memory_order_relaxed);
	atomic_store_explicit(&d->bytes, p->lacking - lacking, memory_order_relaxed);
	/* Released: a reader that sees `of` also sees the other numbers. */
	atomic_store_explicit(&d->of, n, memory_order_release);
}

bool ste_job_take_leaves(struct ste_job *j, uint32_t t)
{
	const struct shm_state_tensor *s = &j->tensors[t];
	uint64_t n = wire_leaf_count(s->bytes);

	if (n > 1 && hsh_tensor(j->elected + s->first_leaf, s->bytes) != j->want[t])
		return false;
	memset(j->leaf + s->first_leaf, STE_LEAF_HAVE, n);
	STE_SET_EACH(i, &j->receivers)
	{
		compare(j, &j->peers[i], t);
	}
	j->tensor[t] = STE_TENSOR_READY;
	j->unready--;
	ste_job_moved(j);
	return true;
}

bool ste_job_leaf_is(struct ste_job *j, uint32_t t, uint64_t leaf, const uint8_t *data, size_t len)
{
	const struct shm_state_tensor *s = &j->tensors[t];
	uint64_t h = j->leaf_fn(data, len, leaf);

	if (s->bytes > WIRE_LEAF)
		return h == j->elected[s->first_leaf + leaf];
	if (hsh_tensor(&h, s->bytes) != j->want[t])
		return false;
	j->elected[s->first_leaf] = h;
	return true;
}

bool ste_job_block_is(struct ste_job *j, const struct ste_block *b, const uint8_t *data)
{
	for (uint32_t i = 0; i < b->n; i++) {
		size_t off = (size_t)i * WIRE_LEAF, len = b->len - off;

		if (!ste_job_leaf_is(j, b->tensor, b->first + i, data + off,
			    len < WIRE_LEAF ? len : WIRE_LEAF))
			return false;
	}
	return true;
}

bool ste_job_block_copy(struct ste_job *j, const struct ste_block *b, uint8_t *dst)
{
	for (uint32_t i = 0; i < b->n; i++) {
		size_t off = (size_t)i * WIRE_LEAF, len = b->len - off;

		if (len > WIRE_LEAF)
			len = WIRE_LEAF;
		memcpy(dst + off, b->data + off, len);
		if (!ste_job_leaf_is(j, b->tensor, b->first + i, dst + off, len))
			return false;
	}
	return true;
}

/* ---- leaves ---- */

static bool is_lacking(const struct ste_peer *p, uint64_t leaf)
{
	return p->lacks[leaf / 8] >> leaf % 8 & 1;
}

struct ste_set ste_job_lackers(const struct ste_job *j, uint64_t leaf)
{
	struct ste_set r = {{0}};

	STE_SET_EACH(i, &j->receivers)
	if (is_lacking(&j->peers[i], leaf))
		ste_set_add(&r, i);
	return r;
}

bool ste_job_is_lacked(const struct ste_job *j, uint64_t leaf)
{
	STE_SET_EACH(i, &j->receivers)
	if (is_lacking(&j->peers[i], leaf))
		return true;
	return false;
}

/* Do exactly the receivers in `who` lack this leaf? */
static bool is_lacked_by(const struct ste_job *j, uint64_t leaf, const struct ste_set *who)
{
	struct ste_set s = ste_job_lackers(j, leaf);

	return ste_set_is_equal(&s, who);
}

/* Returns the tensor of a leaf: the last tensor that does not begin after the leaf. */
static uint32_t tensor_of(const struct ste_job *j, uint64_t leaf)
{
	uint32_t low = 0, high = j->n_tensors;

	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (j->tensors[mid].first_leaf <= leaf)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static uint64_t next_missing(const struct ste_job *j, uint64_t from)
{
	const uint8_t *p = memchr(j->leaf + from, STE_LEAF_MISSING, j->n_leaves - from);

	if (!p)
		p = memchr(j->leaf, STE_LEAF_MISSING, from);
	return p ? (uint64_t)(p - j->leaf) : UINT64_MAX;
}

bool ste_job_pick(struct ste_job *j, uint64_t *cursor, uint32_t max, struct ste_block *ret)
{
	uint64_t leaf, end;
	const struct shm_state_tensor *s;
	struct ste_set mask;
	uint32_t t, n = 0;

	if (j->n_missing == 0)
		return false;
	leaf = next_missing(j, *cursor < j->n_leaves ? *cursor : 0);
	if (leaf == UINT64_MAX)
		return false;
	t = tensor_of(j, leaf);
	s = &j->tensors[t];
	mask = ste_job_lackers(j, leaf);
	STE_SET_EACH(i, &mask)
	if (!j->peers[i].mem[t] && max > STE_SLOT_LEAVES)
		max = STE_SLOT_LEAVES;
	end = s->first_leaf + wire_leaf_count(s->bytes);
	while (n < max && leaf + n < end && j->leaf[leaf + n] == STE_LEAF_MISSING &&
		is_lacked_by(j, leaf + n, &mask))
		j->leaf[leaf + n++] = STE_LEAF_ASKED;
	j->n_missing -= n;
	j->n_asked += n;
	*cursor = leaf + n;
	*ret = (struct ste_block){.state = STE_BLOCK_LANDING,
		.tensor = t,
		.first = leaf - s->first_leaf,
		.n = n,
		.off = (leaf - s->first_leaf) * WIRE_LEAF,
		.len = (uint32_t)wire_leaf_bytes(s->bytes, leaf - s->first_leaf, n),
		.todo = mask,
		.home_slot = -1};
	return true;
}

void ste_job_settle(struct ste_job *j, uint32_t tensor, uint64_t first, uint32_t n)
{
	uint64_t leaf = j->tensors[tensor].first_leaf + first;

	for (uint64_t i = leaf; i < leaf + n; i++) {
		bool missing = ste_job_is_lacked(j, i);

		j->leaf[i] = missing ? STE_LEAF_MISSING : STE_LEAF_HAVE;
		j->n_missing += missing;
	}
	j->n_asked -= n;
}

void ste_job_got(struct ste_job *j, struct ste_peer *p, const struct ste_block *b)
{
	uint64_t leaf = j->tensors[b->tensor].first_leaf + b->first;

	for (uint64_t i = leaf; i < leaf + b->n; i++)
		p->lacks[i / 8] &= (uint8_t) ~(1u << i % 8);
	p->lacking -= b->len;
	atomic_fetch_add_explicit(&p->rx_bytes, b->len, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->diffs[b->tensor].done, b->len, memory_order_relaxed);
	atomic_fetch_add_explicit(&j->done, b->len, memory_order_relaxed);
	ste_job_moved(j);
}

/* ---- life ---- */

static void set_phase(struct ste_job *j, enum ste_phase phase)
{
	atomic_store_explicit(&j->phase, phase, memory_order_relaxed);
}

static void end(struct ste_job *j, enum ste_phase phase, enum ste_note note)
{
	j->over = true;
	set_phase(j, phase);
	atomic_store_explicit(&j->rate, 0, memory_order_relaxed);
	ste_fetch_end(j);
	ste_notify(j, note);
}

void ste_job_fail(struct ste_job *j, const struct cc_id *suspect, const char *text)
{
	if (j->over)
		return;
	if (suspect)
		j->suspect = *suspect;
	snprintf(j->text, sizeof j->text, "%s", text);
	end(j, STE_FAILS, STE_NOTE_FAILED);
}

static void check_done(struct ste_job *j)
{
	if (j->over)
		return;
	if (ste_set_is_empty(&j->receivers)) {
		end(j, STE_SERVES, STE_NOTE_DONE);
		return;
	}
	if (!j->have_want || j->unready > 0)
		return;
	set_phase(j, STE_COPIES);
	STE_SET_EACH(i, &j->receivers)
	{
		if (j->peers[i].lacking > 0)
			return;
	}
	STE_SET_EACH(i, &j->receivers)
	{
		ste_peer_set_complete(j, &j->peers[i]);
	}
	end(j, STE_SERVES, STE_NOTE_DONE);
}

void ste_job_begin(struct ste_job *j)
{
	uint64_t self = 0;

	j->started = true;
	j->moved_ns = j->rate_ns = j->e->now_ns;
	/* Checks the holders first, then the other members. */
	for (int holders = 1; holders >= 0; holders--)
		for (uint32_t i = 0; i < j->n_peers; i++)
			if (j->peers[i].m.holder == (holders == 1))
				ste_peer_check(j, &j->peers[i]);
	for (size_t i = 0; i < sizeof self; i++)
		self = self << 8 | j->e->cfg.self.b[i];
	j->cursor = j->n_leaves ? self % j->n_leaves : 0;
	if (!ste_set_is_empty(&j->holders)) {
		const struct ste_peer *p = ste_job_holder(j);

		for (uint32_t t = 0; t < j->n_tensors; t++)
			j->want[t] =
				p->m.state->tensors[t].may_differ ? 0 : p->m.state->tensors[t].hash;
		(void)ste_job_take_tensors(j);
	}
	set_phase(j, STE_COMPARES);
	if (!ste_set_is_empty(&j->receivers) && j->n_tensors == 0)
		ste_job_fail(j, NULL, "the elected digest is not that of an empty shared state");
	check_done(j);
}

static void measure(struct ste_job *j)
{
	uint64_t done = atomic_load_explicit(&j->done, memory_order_relaxed);
	uint64_t passed = j->e->now_ns - j->rate_ns;

	if (passed < RATE_NS)
		return;
	atomic_store_explicit(
		&j->rate, (done - j->rate_done) * 1000 / (passed / 1000000), memory_order_relaxed);
	j->rate_ns = j->e->now_ns;
	j->rate_done = done;
}

bool ste_job_step(struct ste_job *j)
{
	uint32_t waits_for = STE_NO_MEMBER;
	bool busy = false;

	for (uint32_t i = 0; i < j->n_peers; i++) {
		struct ste_peer *p = &j->peers[i];

		busy |= ste_window_acks(j, p);
		if (!p->failed && ste_window_waiting(p) > 0 &&
			j->e->now_ns > p->w.since_ns + WAIT_NS)
			waits_for = i;
	}
	atomic_store_explicit(&j->waits_for, waits_for, memory_order_relaxed);
	busy |= ste_copy_step(j);
	check_done(j);
	if (j->over)
		return busy;
	if (ste_set_is_empty(&j->holders) && !j->fetching)
		ste_fetch_begin(j);
	if (j->fetching)
		ste_fetch_step(j);
	check_done(j);
	if (!j->over)
		measure(j);
	return busy;
}

/* ---- memory; called by the loop thread ---- */

static bool copy_member(
	struct ste_job *j, struct ste_peer *p, const struct ste_member *m, uint32_t index)
{
	p->j = j;
	p->m = *m;
	p->index = index;
	p->mem = calloc((size_t)m->state->n_tensors + 1, sizeof *p->mem);
	p->regions = calloc((size_t)m->n_regions + 1, sizeof *p->regions);
	if (!m->holder) {
		p->lacks = calloc(m->state->n_leaves / 8 + 1, 1);
		p->diffs = calloc((size_t)m->state->n_tensors + 1, sizeof *p->diffs);
	}
	if (!p->mem || !p->regions || (!m->holder && (!p->lacks || !p->diffs)))
		return false;
	if (m->n_regions > 0)
		memcpy(p->regions, m->regions, m->n_regions * sizeof *p->regions);
	return true;
}

static bool allocate(struct ste_job *j)
{
	uint64_t most = j->n_tensors;

	for (uint32_t t = 0; t < j->n_tensors; t++)
		if (wire_leaf_count(j->tensors[t].bytes) > most)
			most = wire_leaf_count(j->tensors[t].bytes);
	j->want = calloc((size_t)j->n_tensors + 1, sizeof *j->want);
	j->tensor = calloc((size_t)j->n_tensors + 1, 1);
	j->elected = calloc(j->n_leaves + 1, sizeof *j->elected);
	j->leaf = calloc(j->n_leaves + 1, 1);
	j->scratch = calloc(most + 1, sizeof *j->scratch);
	return j->want && j->tensor && j->elected && j->leaf && j->scratch;
}

int ste_job_new(struct ste *e, const struct ste_spec *spec, struct ste_job **ret)
{
	struct ste_job *j = aligned_alloc(64, (sizeof *j + 63) / 64 * 64);

	if (!j)
		return CC_ERR_NOMEM;
	memset(j, 0, sizeof *j);
	j->e = e;
	j->seq = spec->seq;
	j->group = spec->group;
	j->revision = spec->revision;
	j->content = spec->content;
	j->leaf_fn = spec->leaf;
	j->waits_for = STE_NO_MEMBER;
	j->rate = STE_UNMEASURED;
	j->peers = calloc(spec->n_members, sizeof *j->peers);
	j->srcs = calloc(spec->n_sources + 1, sizeof *j->srcs);
	if (!j->peers || !j->srcs)
		goto err;
	for (uint32_t i = 0; i < spec->n_members; i++) {
		j->n_peers++;
		if (!copy_member(j, &j->peers[i], &spec->members[i], i))
			goto err;
	}
	for (uint32_t i = 0; i < spec->n_sources; i++)
		j->srcs[i] = (struct ste_src){
			.s = spec->sources[i], .good_addr = -1, .base_ns = UINT64_MAX};
	j->n_srcs = spec->n_sources;
	j->table = &j->peers[0];
	for (uint32_t i = j->n_peers; i-- > 0;)
		if (j->peers[i].m.holder)
			j->table = &j->peers[i];
	j->tensors = j->table->m.state->tensors; /* stay valid if this peer is dropped */
	j->n_tensors = j->table->m.state->n_tensors;
	j->n_leaves = j->table->m.state->n_leaves;
	if (!allocate(j))
		goto err;
	*ret = j;
	return 0;
err:
	ste_job_free(j);
	return CC_ERR_NOMEM;
}

void ste_job_free(struct ste_job *j)
{
	if (!j)
		return;
	for (uint32_t i = 0; j->peers && i < j->n_peers; i++) {
		free(j->peers[i].mem);
		free(j->peers[i].regions);
		free(j->peers[i].lacks);
		free(j->peers[i].diffs);
	}
	free(j->peers);
	free(j->srcs);
	free(j->want);
	free(j->tensor);
	free(j->elected);
	free(j->leaf);
	free(j->scratch);
	free(j);
}
