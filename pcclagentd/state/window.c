/* SPDX-License-Identifier: MIT
 *
 * Commands to a process whose tensors the agent cannot reach. The waiting thread of this process
 * copies between tensor and window slot. A slot has one command at a time. If the owner returns a
 * slot while the process still carries out the slot's command, the slot becomes free with the
 * acknowledgement.
 */
#include "common/cc_futex.h"
#include "common/cc_sys.h"
#include "pcclagentd/state/copy.h"
#include "pcclagentd/state/job.h"
#include "pcclagentd/state/member.h"
#include "pcclagentd/state/serve.h"
#include "pcclagentd/state/window.h"

/* The process is woken at once for this many commands. Fewer commands wait until the engine's
 * thread has nothing else to do. */
#define BATCH 4u

#define SERVE_SLOTS 4u /* the most slots of a receiver's window for serving */
#define READ_SLOTS  8u /* the most slots of a holder's window for local copies */

static struct shm_state_commands *commands(const struct ste_peer *p)
{
	return (void *)(p->m.map + SHM_STATE_CMD_OFF);
}

static struct shm_state_acks *acks(const struct ste_peer *p)
{
	return (void *)(p->m.map + SHM_STATE_ACK_OFF);
}

int ste_window_take(struct ste_peer *p, enum ste_use use)
{
	struct ste_window *w = &p->w;
	uint32_t max = SHM_STATE_SLOTS;

	if (p->m.holder)
		max = use == STE_USE_BLOCK ? READ_SLOTS : SHM_STATE_SLOTS;
	else if (use == STE_USE_SERVE)
		max = SERVE_SLOTS;
	if (w->n[use] >= max)
		return -1;
	for (int i = 0; i < (int)SHM_STATE_SLOTS; i++) {
		if (w->slot[i].use != STE_USE_FREE)
			continue;
		w->slot[i].use = (uint8_t)use;
		w->slot[i].commanded = false;
		w->slot[i].owner = NULL;
		w->n[use]++;
		return i;
	}
	return -1;
}

uint8_t *ste_window_at(const struct ste_peer *p, int slot)
{
	return p->m.map + p->m.state->window_off + (size_t)slot * SHM_STATE_SLOT;
}

static void release(struct ste_window *w, int slot)
{
	w->n[w->slot[slot].use]--;
	w->slot[slot].use = STE_USE_FREE;
}

static void wake(struct ste_peer *p)
{
	_Atomic uint32_t *wait = &p->m.slot->wait;
	uint32_t asleep = SHM_WAIT_COMMANDS;

	if (atomic_load(wait) == asleep &&
		atomic_compare_exchange_strong(wait, &asleep, SHM_WAIT_AWAKE))
		cc_futex_wake(wait, 1);
}

void ste_window_command(struct ste_peer *p, const struct shm_state_command *c, void *owner)
{
	struct shm_state_commands *q = commands(p);

	if (ste_window_waiting(p) == 0)
		p->w.since_ns = cc_now_ns();
	p->w.slot[c->slot].commanded = true;
	p->w.slot[c->slot].op = (uint8_t)c->op;
	p->w.slot[c->slot].foreign = c->from != 0;
	p->w.slot[c->slot].owner = owner;
	q->v[p->w.given % SHM_STATE_SLOTS] = *c;
	p->w.given++;
	/* Sequentially consistent, like the waiter's side of shm_slot.wait. */
	atomic_store(&q->tail, p->w.given);
	if (ste_window_waiting(p) >= BATCH)
		wake(p);
}

void ste_window_put(struct ste_peer *p, int slot)
{
	if (p->w.slot[slot].commanded)
		p->w.slot[slot].owner = NULL;
	else
		release(&p->w, slot);
}

static void acknowledged(struct ste_job *j, struct ste_peer *p, int slot, uint32_t flags)
{
	struct ste_window *w = &p->w;
	void *owner = w->slot[slot].owner;

	w->slot[slot].commanded = false;
	if (!owner)
		release(w, slot);
	else if (flags)
		ste_block_refused(j, p, slot, flags & SHM_STATE_WRONG);
	else if (w->slot[slot].use == STE_USE_BLOCK)
		ste_block_acked(j, p, slot);
	else
		ste_conn_acked(j->e, owner, p, slot);
}

bool ste_window_acks(struct ste_job *j, struct ste_peer *p)
{
	struct shm_state_acks *a = acks(p);
	bool any = false;

	while (!p->failed && ste_window_waiting(p) > 0 &&
		atomic_load_explicit(&a->tail, memory_order_acquire) != p->w.seen) {
		uint32_t what = atomic_load_explicit(
			&a->v[p->w.seen % SHM_STATE_SLOTS], memory_order_relaxed);
		uint32_t slot = what & ~(SHM_STATE_UNSEEN | SHM_STATE_WRONG);

		if (slot >= SHM_STATE_SLOTS || !p->w.slot[slot].commanded ||
			(what != slot && !p->w.slot[slot].foreign)) {
			ste_peer_fail(
				j, p, "its process acknowledged a command that it was not given");
			return true;
		}
		atomic_store_explicit(&a->head, ++p->w.seen, memory_order_release);
		p->w.since_ns = cc_now_ns();
		any = true;
		acknowledged(j, p, (int)slot, what ^ slot);
	}
	return any;
}

bool ste_window_sleep(struct ste_peer *p)
{
	if (p->failed || ste_window_waiting(p) == 0)
		return false;
	wake(p);
	/* The process acknowledges before it reads in_want. The agent sets in_want before it reads
	 * the acknowledgements. */
	atomic_store(&p->m.slot->in_want, 1);
	return atomic_load(&acks(p)->tail) != p->w.seen;
}

uint32_t ste_window_waiting(const struct ste_peer *p)
{
	return p->w.given - p->w.seen;
}
