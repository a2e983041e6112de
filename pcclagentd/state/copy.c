/* SPDX-License-Identifier: MIT
 *
 * Writes blocks into the tensors of all receivers of this host that lack them.
 *
 * The place where a block's bytes lie first is the block's *home*. A block from the network has its
 * home in the tensor of a receiver, if the agent can reach the tensor; if not, in a window slot of
 * a receiver. A block from a holder on this host has its home in the holder's tensor or window.
 * From the home the block is copied to the receivers. A process can change its own memory at any
 * time, so every copy is checked against the leaf hashes at its destination. There are two
 * exceptions. Bytes that a process copies from its own window are checked in the window. A process
 * that copies from a holder's memory checks the bytes itself, with hashes from the agent.
 */
#include <stdio.h>
#include <string.h>

#include "common/cc_sys.h"
#include "pcclagentd/state/copy.h"
#include "pcclagentd/state/job.h"
#include "pcclagentd/state/member.h"
#include "pcclagentd/state/pool.h"
#include "pcclagentd/state/set.h"
#include "pcclagentd/state/ste_internal.h"
#include "pcclagentd/state/stream.h"
#include "pcclagentd/state/window.h"
#include "proto/wire_state.h"

/* Bytes that one step copies from a holder before other work has its turn. */
#define COPY_BUDGET ((uint64_t)4 << 20)
/* Tensors whose leaf hashes one step takes from a holder. */
#define HASH_BUDGET 256u
/* A holder whose process carries out no command for this time fails. */
#define HOLDER_NS STE_MS(5000)

struct ste_block *ste_block_take(struct ste_job *j)
{
	if (j->n_blocks == STE_BLOCKS)
		return NULL;
	for (uint32_t i = 0; i < STE_BLOCKS; i++) {
		if (j->blocks[i].state != STE_BLOCK_FREE)
			continue;
		j->n_blocks++;
		j->blocks[i] = (struct ste_block){.state = STE_BLOCK_LANDING, .home_slot = -1};
		return &j->blocks[i];
	}
	return NULL;
}

/* Frees a block after its last write. */
static void finish(struct ste_job *j, struct ste_block *b)
{
	if (b->home_slot >= 0)
		ste_window_put(b->home, b->home_slot);
	b->state = STE_BLOCK_FREE;
	j->n_blocks--;
	ste_job_settle(j, b->tensor, b->first, b->n);
}

void ste_block_drop(struct ste_job *j, struct ste_block *b)
{
	finish(j, b);
}

static void finish_if_over(struct ste_job *j, struct ste_block *b)
{
	if (b->state == STE_BLOCK_SPREADS && b->writes == 0 &&
		(ste_set_is_empty(&b->todo) || b->bad))
		finish(j, b);
}

/* A copy of the block in the memory of `p` is wrong. Fails `p` if the bytes at the block's home are
 * still right; if not, fails the home. */
static void mark_wrong_source(struct ste_job *j, struct ste_block *b, struct ste_peer *p)
{
	bool home_is_right = ste_job_block_is(j, b, b->data);
	char name[64];

	ste_job_name(j, b->tensor, name, sizeof name);
	if (!home_is_right) {
		b->bad = true;
		p = b->home;
	}
	ste_peer_fail(j, p,
		home_is_right || !p->complete ? "tensor \"%s\" changed while it was being written"
					      : "tensor \"%s\" changed during the call: it "
						"does not match its hashes",
		name);
}

/* Counts a copy from the block's home, if the home is complete. */
static void count_read(const struct ste_block *b)
{
	if (b->home->complete)
		atomic_fetch_add_explicit(&b->home->tx_bytes, b->len, memory_order_relaxed);
}

void ste_block_copied(struct ste_job *j, struct ste_block *b, struct ste_peer *p, bool right)
{
	b->writes--;
	if (!p->failed && right) {
		count_read(b);
		ste_job_got(j, p, b);
	} else if (!j->over && !p->failed) {
		mark_wrong_source(j, b, p);
	}
	finish_if_over(j, b);
}

static void command(struct ste_job *j, struct ste_peer *p, int slot, enum shm_state_op op,
	struct ste_block *b, uint64_t from)
{
	struct shm_state_command c = {.op = op,
		.slot = (uint32_t)slot,
		.tensor = b->tensor,
		.len = b->len,
		.off = b->off,
		.from = from};

	if (from) {
		const uint8_t *map = b->home_slot >= 0 ? b->home->m.map
						       : ste_peer_region(b->home, b->tensor)->map;

		c.from_off = (uint64_t)(b->data - map);
		memcpy(c.leaves, j->elected + j->tensors[b->tensor].first_leaf + b->first,
			b->n * sizeof c.leaves[0]);
	}
	if (op == SHM_STATE_WRITE)
		b->writes++;
	ste_window_command(p, &c, b);
}

/* Returns the region from which the process of `p` can copy the block itself, or 0. */
static uint64_t visible(const struct ste_block *b, const struct ste_peer *p)
{
	const struct ste_peer *home = b->home;
	const struct ste_region *r;

	if (p->mem[b->tensor] || ste_set_has(&p->blind, home->index) || !home->m.holder ||
		home->m.uid != p->m.uid)
		return 0;
	if (b->home_slot >= 0)
		return home->m.region;
	r = ste_peer_region(home, b->tensor);
	return r->fd >= 0 ? r->id : 0;
}

/* Makes the process of `p` copy the block from the region `from`. Returns false if there is no free
 * slot now. */
static bool show(struct ste_job *j, struct ste_block *b, struct ste_peer *p, uint64_t from)
{
	int slot;

	/* The process needs the leaf hash. If the tensor has only one leaf, the check sets the hash
	 * of this leaf. */
	if (j->tensors[b->tensor].bytes <= WIRE_LEAF && !ste_job_block_is(j, b, b->data)) {
		mark_wrong_source(j, b, b->home);
		return true;
	}
	slot = ste_window_take(p, STE_USE_BLOCK);
	if (slot < 0)
		return false;
	ste_set_remove(&b->todo, p->index);
	command(j, p, slot, SHM_STATE_WRITE, b, from);
	return true;
}

/* Writes the block to `p`, or makes the process of `p` write it. Returns false if there is no free
 * slot now. */
static bool give(struct ste_job *j, struct ste_block *b, struct ste_peer *p)
{
	uint64_t from = visible(b, p);
	bool at_home = p == b->home;
	int slot = -1;
	uint8_t *dst;

	if (from)
		return show(j, b, p, from);
	if (p->mem[b->tensor]) {
		ste_peer_touch(p);
		dst = p->mem[b->tensor] + b->off;
	} else {
		slot = at_home ? b->home_slot : ste_window_take(p, STE_USE_BLOCK);
		if (slot < 0)
			return false;
		dst = ste_window_at(p, slot);
	}
	ste_set_remove(&b->todo, p->index);
	if (slot < 0 && b->home_slot < 0 && !at_home && ste_pool_give(j, b, p, dst)) {
		b->writes++;
		return true;
	}
	if (!at_home) {
		if (slot < 0)
			ste_peer_map(p, b);
		if (!ste_job_block_copy(j, b, dst)) {
			if (slot >= 0)
				ste_window_put(p, slot);
			mark_wrong_source(j, b, p);
			return true;
		}
		count_read(b);
	}
	if (slot >= 0)
		command(j, p, slot, SHM_STATE_WRITE, b, 0);
	else
		ste_job_got(j, p, b);
	return true;
}

static void spread(struct ste_job *j, struct ste_block *b)
{
	struct ste_set left;

	ste_set_intersect(&b->todo, &j->receivers);
	left = b->todo;
	STE_SET_EACH(i, &left)
	{
		if (b->bad)
			break;
		/* an earlier give() may have made this receiver fail */
		if (ste_set_has(&j->receivers, i))
			(void)give(j, b, &j->peers[i]);
	}
	finish_if_over(j, b);
}

bool ste_block_land(struct ste_job *j, struct ste_block *b, const struct ste_set *mask)
{
	struct ste_peer *p;

	b->todo = *mask;
	STE_SET_EACH(i, mask)
	{
		p = &j->peers[i];
		if (!p->mem[b->tensor])
			continue;
		ste_peer_touch(p);
		b->home = p;
		b->data = p->mem[b->tensor] + b->off;
		ste_peer_map(p, b);
		return true;
	}
	STE_SET_EACH(i, mask)
	{
		p = &j->peers[i];
		b->home_slot = ste_window_take(p, STE_USE_BLOCK);
		if (b->home_slot < 0)
			continue;
		b->home = p;
		b->data = ste_window_at(p, b->home_slot);
		return true;
	}
	return false;
}

void ste_block_landed(struct ste_job *j, struct ste_block *b)
{
	b->state = STE_BLOCK_SPREADS;
	spread(j, b);
}

void ste_block_acked(struct ste_job *j, struct ste_peer *p, int slot)
{
	struct ste_block *b = p->w.slot[slot].owner;

	if (j->over) {
		/* The job is over, but the block was written. */
		if (p->w.slot[slot].op == SHM_STATE_WRITE)
			ste_job_got(j, p, b);
		ste_window_put(p, slot);
		return;
	}
	if (p->w.slot[slot].op == SHM_STATE_READ) {
		b->state = STE_BLOCK_SPREADS;
		spread(j, b);
		return;
	}
	b->writes--;
	if (p->w.slot[slot].foreign)
		count_read(b);
	ste_job_got(j, p, b);
	if (p != b->home || slot != b->home_slot)
		ste_window_put(p, slot);
	finish_if_over(j, b);
}

void ste_block_refused(struct ste_job *j, struct ste_peer *p, int slot, bool wrong)
{
	struct ste_block *b = p->w.slot[slot].owner;

	ste_window_put(p, slot);
	if (j->over)
		return;
	b->writes--;
	ste_set_add(&b->todo, p->index);
	if (wrong && !b->bad && !ste_job_block_is(j, b, b->data))
		mark_wrong_source(j, b, b->home);
	else if (!b->bad)
		/* The process could not map the memory of the block's home. The home is a member
		 * that may be about to leave. The process will get the block in another way. */
		ste_set_add(&p->blind, b->home->index);
	finish_if_over(j, b);
}

void ste_block_forget(struct ste_job *j, struct ste_peer *p)
{
	for (int i = 0; i < (int)SHM_STATE_SLOTS; i++) {
		struct ste_block *b = p->w.slot[i].owner;

		if (p->w.slot[i].use != STE_USE_BLOCK || !p->w.slot[i].commanded || !b)
			continue;
		p->w.slot[i].owner = NULL;
		if (p->w.slot[i].op == SHM_STATE_WRITE)
			b->writes--;
	}
	for (uint32_t i = 0; i < STE_BLOCKS; i++) {
		struct ste_block *b = &j->blocks[i];

		if (b->state == STE_BLOCK_FREE || b->state == STE_BLOCK_LANDING)
			continue;
		ste_set_remove(&b->todo, p->index);
		/* Bytes that already lie at the home can still be used, because copies are
		 * verified. Bytes that the home has not delivered yet will not come. */
		if (b->home == p && b->state == STE_BLOCK_READING) {
			b->bad = true;
			b->state = STE_BLOCK_SPREADS;
		}
	}
}

/* Directs the payload that still arrives for the block to the drain. */
static void redirect(struct ste_job *j, const struct ste_block *b)
{
	for (struct ste_stream *s = j->streams; s; s = s->next) {
		if (s->block != b)
			continue;
		s->block = NULL;
		s->dst = j->e->drain;
	}
}

void ste_block_evict(struct ste_job *j, struct ste_peer *p)
{
	for (uint32_t i = 0; i < STE_BLOCKS; i++) {
		struct ste_block *b = &j->blocks[i];

		if (b->state == STE_BLOCK_FREE || b->home != p)
			continue;
		if (b->state == STE_BLOCK_LANDING) {
			redirect(j, b);
			finish(j, b);
		} else {
			b->bad = true;
			b->state = STE_BLOCK_SPREADS;
			finish_if_over(j, b);
		}
	}
}

/* ---- from holders on this host ---- */

/* Takes, from the manifest of holder `p`, leaf hashes of tensors that differ. Returns true if there
 * is more to do at once. */
static bool take_hashes(struct ste_job *j, struct ste_peer *p)
{
	uint32_t budget = HASH_BUDGET;

	while (j->next_want < j->n_tensors && budget > 0) {
		uint32_t t = j->next_want;
		const struct shm_state_tensor *s = &j->tensors[t];
		uint64_t n = wire_leaf_count(s->bytes);
		char name[64];

		if (j->tensor[t] != STE_TENSOR_WANT) {
			j->next_want++;
			continue;
		}
		for (uint64_t i = 0; i < n; i++)
			j->elected[s->first_leaf + i] =
				shm_state_leaf(p->m.map, p->m.state, s->first_leaf + i);
		if (!ste_job_take_leaves(j, t)) {
			ste_job_name(j, t, name, sizeof name);
			ste_peer_fail(j, p,
				"the leaf hashes of tensor \"%s\" do not match the tensor hash",
				name);
			return true;
		}
		j->next_want++;
		budget--;
	}
	return budget == 0;
}

/* Begins to copy one block from holder `p`. Returns false if there is nothing to copy, or no room
 * now. */
static bool copy_one(struct ste_job *j, struct ste_peer *p, uint64_t *ret_len)
{
	struct ste_block found, *b;
	uint32_t max = p->windowed ? STE_SLOT_LEAVES : WST_BLOCK_MAX;
	int slot = -1;

	if (j->n_blocks == STE_BLOCKS || !ste_job_pick(j, &j->cursor, max, &found))
		return false;
	if (!p->mem[found.tensor]) {
		slot = ste_window_take(p, STE_USE_BLOCK);
		if (slot < 0) {
			ste_job_settle(j, found.tensor, found.first, found.n);
			j->cursor = j->tensors[found.tensor].first_leaf + found.first;
			return false;
		}
	}
	b = ste_block_take(j);
	*b = found;
	b->home = p;
	b->home_slot = slot;
	*ret_len = b->len;
	if (slot >= 0) {
		b->state = STE_BLOCK_READING;
		b->data = ste_window_at(p, slot);
		command(j, p, slot, SHM_STATE_READ, b, 0);
	} else {
		b->data = p->mem[b->tensor] + b->off;
		ste_block_landed(j, b);
	}
	return true;
}

static bool copy_from(struct ste_job *j, struct ste_peer *p)
{
	uint64_t copied = 0, len = 0;

	if (ste_window_waiting(p) > 0 && cc_now_ns() - p->w.since_ns > HOLDER_NS) {
		ste_peer_fail(j, p, "its process carried out no command for %.1f s",
			(double)(cc_now_ns() - p->w.since_ns) / 1e9);
		return true;
	}
	if (take_hashes(j, p))
		return true;
	/* Blocks that wait for a slow receiver leave no room for more. */
	while (copied < COPY_BUDGET && !p->failed && copy_one(j, p, &len))
		copied += len;
	return copied >= COPY_BUDGET || p->failed;
}

bool ste_copy_step(struct ste_job *j)
{
	struct ste_peer *p;

	if (j->over)
		return false;
	for (uint32_t i = 0; i < STE_BLOCKS && j->n_blocks > 0; i++)
		if (j->blocks[i].state == STE_BLOCK_SPREADS)
			spread(j, &j->blocks[i]);
	if (j->fetching || !j->have_want || (j->unready == 0 && j->n_missing == 0))
		return false;
	p = ste_job_holder(j);
	return p && copy_from(j, p);
}
