/* SPDX-License-Identifier: MIT
 *
 * The shim's side of operations: slots, losses, and operations whose agent has died.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim_sync.h"

static bool slot_used(const struct sim_peer *p, uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < SIM_OPS; i++)
		if (p->ops[i].state == OP_PENDING && p->ops[i].slot == slot)
			return true;
	return false;
}

static void done(struct sim *s, struct sim_peer *p, struct sim_op *o, uint32_t code,
	uint32_t world_size, uint64_t generation, const char *text);

static void submit(struct sim *s, struct sim_peer *p, uint32_t tag)
{
	struct sim_op *o = &p->ops[tag];
	uint64_t at = s->now + (5 + sim_rnd(s, 50)) * SIM_US;

	if (p->unaware) {
		/* After the agent's death, all new operations fail until the program knows of the
		 * death. Otherwise a program that awaits new operations first would wait for peers
		 * that repeat the failed ones. */
		done(s, p, o, WIRE_RANK_CONNECTION_LOST, 0, 0, "the agent died before");
		return;
	}
	o->taken = false;
	do {
		o->slot = sim_rnd(s, SHM_SLOTS);
		o->state = OP_IDLE;
	} while (slot_used(p, o->slot));
	o->state = OP_PENDING;
	if (at <= p->last_submit)
		at = p->last_submit + 1;
	p->last_submit = at;
	o->knew = p->generation;
	sim_schedule(s, at,
		(struct sim_event){.kind = SIM_EV_SUBMIT,
			.host = p->proc->host,
			.peer = p->no,
			.session = p->proc->session,
			.tag = tag,
			.seq = p->generation});
}

void sim_op_launch(struct sim *s, struct sim_peer *p, uint32_t tag)
{
	struct sim_op *o = &p->ops[tag];

	p->n_launches++;
	o->since = s->now;
	o->seq = 0;
	o->waited = p->n_launch == 1 && !sim_stray_may_leave(p);
	o->xfer = NULL;
	o->voice = NULL;
	o->text[0] = '\0';
	o->after = (struct wire_view){.view_id = 0};
	if (tag == SIM_SYNC)
		sim_sync_begin(s, p);
	else
		sim_memory_begin(s, p, tag);
	sim_trace(s, "p%u: launches tag %u (ballot %" PRIu64 " step %u, generation %" PRIu64 ")%s",
		p->no, tag, p->ballots[WIRE_TOPOLOGY], p->step, p->generation,
		p->proc->state == SESSION_OPEN && p->comm ? "" : ", waits for an agent");
	if (p->proc->state == SESSION_OPEN && p->comm) {
		submit(s, p, tag);
	} else {
		o->state = OP_HELD;
		p->held = true;
	}
}

void sim_ops_resume(struct sim *s, struct sim_peer *p)
{
	uint32_t i;

	for (i = 0; i < SIM_OPS; i++)
		if (p->ops[i].state == OP_HELD)
			submit(s, p, i);
	if (p->held) {
		p->held = false;
		sim_peer_later(s, p, 10 * SIM_US);
	}
}

bool sim_op_is_up(const struct sim *s, const struct sim_peer *p, uint32_t session)
{
	const struct sim_host *h = &s->hosts[p->proc->host];

	return p->proc->alive && h->alive && h->life == p->proc->life &&
	       p->proc->session == session && p->phase != PEER_DESTROYING && p->phase != PEER_ENDED;
}

void sim_op_submit(struct sim *s, const struct sim_event *ev)
{
	struct sim_peer *p = &s->peers[ev->peer];
	struct sim_host *h = &s->hosts[p->proc->host];
	uint32_t tag = (uint32_t)ev->tag;
	struct sim_op *o = &p->ops[tag];
	struct shm_submission sub = {.generation = ev->seq};
	struct agt_event e = {.type = AGT_EV_SUBMIT, .comm = p->comm, .sub = &sub};

	if (!sim_op_is_up(s, p, ev->session) || o->state != OP_PENDING || o->taken)
		return;
	o->taken = true;
	e.slot = sub.slot = o->slot;
	sub.waited = o->waited;
	sub.by_main = !p->asking;
	if (tag == SIM_SYNC) {
		sub.waited = sub.by_main = true;
		sub.is_sync = true;
		sub.sync = p->candidate;
	} else {
		sub.tag = tag;
		sim_plan_params(s, p, tag, &sub);
		s->seen[SEEN_ODD] += o->odd;
	}
	if (s->refusals && sim_chance(s, 1)) {
		sub = (struct shm_submission){.slot = sub.slot,
			.tag = sub.tag,
			.is_sync = sub.is_sync,
			.by_main = sub.by_main,
			.waited = sub.waited,
			.generation = sub.generation,
			.refused = WIRE_OUT_OF_MEMORY};
		e.text = "no memory for the operand";
		s->seen[SEEN_REFUSED]++;
	}
	sim_trace(s, "p%u: tag %u is %s in slot %u", p->no, tag,
		sub.refused ? "refused" : "submitted", o->slot);
	sim_host_step(s, h, &e);
}

/* The operation has its answer. */
static void done(struct sim *s, struct sim_peer *p, struct sim_op *o, uint32_t code,
	uint32_t world_size, uint64_t generation, const char *text)
{
	bool connected = p->state == SHM_COMM_CONNECTED && p->phase != PEER_DESTROYING;
	uint32_t tag = (uint32_t)(o - p->ops);

	o->state = OP_DONE;
	o->code = code;
	o->world_size = world_size;
	o->generation = generation;
	(void)snprintf(o->text, sizeof o->text, "%s", text);
	o->errors += code == WIRE_RANK_CONNECTION_LOST && p->state == SHM_COMM_CONNECTED;
	if (code == WIRE_SUCCESS) {
		p->succeeded[p->n_succeeded++ % WL_SEQS_MAX] = o->seq;
		sim_lineage_success(s, p, false);
	}
	sim_trace(s, "p%u: tag %u seq %" PRIu64 " ends: %s, generation %" PRIu64 " %s", p->no, tag,
		o->seq, sim_text_code(code), generation, text);
	sim_check_code(s, p, o, tag);
	if (tag == SIM_SYNC)
		sim_sync_end(s, p, o);
	else
		sim_memory_end(s, p, o);
	sim_xfer_heard(s, p, o, connected);
	sim_peer_op_done(s, p, tag);
}

void sim_op_complete(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	struct sim_peer *p = sim_peer_find(s, h, x->comm);
	const struct agt_done *d = &x->u.done;
	struct sim_op *o;
	uint32_t t = 0;

	if (!p)
		return;
	while (t < SIM_OPS && !(p->ops[t].state == OP_PENDING && p->ops[t].slot == x->slot))
		t++;
	if (t == SIM_OPS || p->phase == PEER_ENDED) {
		sim_fail(s, "p%u: completion of slot %u, which it does not use", p->no, x->slot);
		return;
	}
	o = &p->ops[t];
	o->code = d->code;
	o->revision = d->revision;
	if (t == SIM_SYNC)
		sim_sync_completed(s, h, p, o);
	else
		sim_xfer_completed(s, h, p, o);
	o->after = d->after;
	o->generation = d->generation;
	sim_check_end(s, p, o);
	done(s, p, o, d->code, d->world_size, d->generation, d->text);
}

void sim_ops_agent_died(struct sim *s, struct sim_peer *p)
{
	const struct sim_part *q;
	uint32_t i;

	for (i = 0; i < SIM_OPS; i++) {
		struct sim_op *o = &p->ops[i];

		p->unaware |= o->state == OP_DONE && o->code != WIRE_SUCCESS;
		if (o->state != OP_PENDING)
			continue;
		q = sim_xfer_part(o->xfer, p->proc->host, p->comm_life);
		if (i == SIM_SYNC ? o->voice && o->voice->complete : q && q->final) {
			sim_trace(s, "p%u: tag %u seq %" PRIu64 " is in doubt", p->no, i, o->seq);
			o->state = OP_DOUBT;
			s->doubts++;
			continue;
		}
		done(s, p, o, WIRE_RANK_CONNECTION_LOST, 0, 0, "the agent died");
		p->unaware = true;
	}
}

void sim_ops_settle(struct sim *s, struct sim_peer *p, uint64_t bits)
{
	uint32_t i;

	for (i = 0; i < p->n_doubt; i++) {
		struct sim_op *o = &p->ops[p->doubt[i]];

		if (o->state != OP_DOUBT)
			continue;
		p->unaware |= !(bits >> i & 1);
		if (bits >> i & 1)
			o->after = o->begin;
		o->revision = o->xfer->revision;
		if (bits >> i & 1)
			done(s, p, o, WIRE_SUCCESS, o->xfer->contributions, 0, "");
		else
			done(s, p, o, WIRE_RANK_CONNECTION_LOST, 0, 0, "it failed meanwhile");
	}
	p->n_doubt = 0;
}

void sim_ops_fail(struct sim *s, struct sim_peer *p, uint32_t code, const char *text)
{
	uint32_t i;

	for (i = 0; i < SIM_OPS; i++) {
		struct sim_op *o = &p->ops[i];

		if (o->state == OP_PENDING || o->state == OP_HELD || o->state == OP_DOUBT)
			done(s, p, o, code, 0, 0, text);
	}
	p->n_doubt = 0;
	p->held = false;
}
