/* SPDX-License-Identifier: MIT
 *
 * The buffers of operations: a few numbers each. Data threads and shims write them in the same way
 * as the real engine and shim. Checked: no part writes to a buffer that the program owns; after a
 * failure the buffers are as before, and stay so until the next operation; after a success they
 * hold the sum of exactly the members that the call reports.
 */
#include <string.h>

#include "tests/sim/sim.h"

/* Returns the member's operand for one segment. The low half of a sum has one bit for each member,
 * unless a member was counted twice. */
static uint64_t operand(
	const struct sim *s, const struct sim_key *key, const struct sim_peer *p, uint32_t seg)
{
	uint64_t run, name = (uint64_t)key->group << 16 | key->step << 8 | key->tag;

	memcpy(&run, key->run.b, sizeof run);
	return sim_hash(s, run ^ key->turn, name, seg << 8 | p->no) << 32 | UINT64_C(1) << p->no;
}

static uint64_t *input(struct sim_memory *m)
{
	if (m->staged)
		return m->staging;
	return m->in_place ? m->recv : m->send;
}

static struct sim_memory *memory_of(struct sim *s, const struct sim_voice *v)
{
	return &s->peers[v->peer].memory[v->key.tag];
}

/* The program reads its buffers. Checks their contents. */
static void check(struct sim *s, const struct sim_peer *p, uint32_t tag, const char *when)
{
	const struct sim_memory *m = &p->memory[tag];

	if (!m->used || m->in_flight || !p->proc->alive)
		return;
	if (memcmp(m->recv, m->want, sizeof m->want) != 0)
		sim_fail(s, "p%u: the %s of tag %u is not what it must be %s", p->no,
			m->success ? "result" : "restored buffer", tag, when);
	if (memcmp(m->send, m->was_send, sizeof m->send) != 0)
		sim_fail(s, "p%u: the operand of tag %u has changed %s", p->no, tag, when);
}

static void store(struct sim *s, const struct sim_peer *p, uint32_t tag, uint32_t seg, uint64_t v)
{
	struct sim_memory *m = &s->peers[p->no].memory[tag];

	if (!m->in_flight && p->proc->alive)
		sim_fail(s, "p%u: the buffer of tag %u is written to after its operation has ended",
			p->no, tag);
	m->recv[seg] = v;
}

void sim_memory_begin(struct sim *s, struct sim_peer *p, uint32_t tag)
{
	struct sim_memory *m = &p->memory[tag];
	uint64_t how = sim_hash(s, p->no, tag, s->now);
	struct sim_key key = sim_plan_key(p, tag);
	bool registered = how & 1;
	uint32_t i;

	if (m->used && m->in_flight)
		sim_fail(s, "p%u: tag %u is launched again before it has ended", p->no, tag);
	check(s, p, tag, "before the next one");
	*m = (struct sim_memory){.used = true, .in_flight = true};
	m->in_place = how & 2;
	m->out_registered = registered;
	m->staged = m->in_place ? !registered : (how & 4) != 0;
	for (i = 0; i < SIM_SEGS; i++) {
		m->send[i] = operand(s, &key, p, i);
		m->recv[i] = m->in_place ? m->send[i] : ~how - i;
		m->staging[i] = m->staged ? m->send[i] : 0;
	}
	memcpy(m->was_send, m->send, sizeof m->send);
	memcpy(m->was_recv, m->recv, sizeof m->recv);
}

void sim_memory_part(struct sim *s, struct sim_part *q)
{
	struct sim_memory *m;
	uint32_t i;

	for (i = 0; i < SIM_SEGS; i++)
		q->area[i] = ~(uint64_t)i; /* partial sums */
	for (i = 0; i < q->n; i++) {
		m = memory_of(s, &q->voices[i]);
		if (m->in_flight)
			m->part = q;
	}
	q->direct = q->n == 1 && !q->x.spec && memory_of(s, &q->voices[0])->out_registered;
}

/* The last host that adds its operands makes the sum. */
static void sum_up(struct sim *s, struct sim_xfer *t, uint32_t seg)
{
	uint32_t i, j;

	t->summed[seg] = true;
	for (i = 0; i < t->n_parts; i++)
		for (j = 0; j < t->parts[i].n; j++)
			t->sum[seg] += input(memory_of(s, &t->parts[i].voices[j]))[seg];
}

/* A caller that waits for an operation in place, whose operand was staged, copies segments out as
 * they become final. */
static void copy_early(struct sim *s, const struct sim_part *q, uint32_t seg)
{
	uint32_t i, tag;

	for (i = 0; i < q->n && !q->x.spec; i++) {
		struct sim_peer *p = &s->peers[q->voices[i].peer];
		struct sim_memory *m = memory_of(s, &q->voices[i]);

		tag = q->voices[i].key.tag;
		if (m->part != q || !m->in_place || !m->staged || !p->waits || !p->proc->alive ||
			p->proc->stopped || p->phase != PEER_STEPS || p->await[p->awaited] != tag)
			continue;
		store(s, p, tag, seg, q->area[seg]);
		m->copied[seg] = true;
	}
}

/* In a broken transfer, half of a segment may arrive. It does not count as final. */
void sim_memory_segment(struct sim *s, struct sim_xfer *t, struct sim_part *q, uint32_t seg)
{
	const struct sim_voice *v = &q->voices[0];

	if (!t->summed[seg] && !t->broken)
		sum_up(s, t, seg);
	if (!t->summed[seg])
		return;
	if (q->direct) {
		q->area[seg] = memory_of(s, v)->recv[seg];
		q->flags[seg] = true;
		store(s, &s->peers[v->peer], v->key.tag, seg,
			t->broken ? t->sum[seg] >> 1 : t->sum[seg]);
		return;
	}
	if (t->broken)
		return;
	q->area[seg] = t->sum[seg];
	q->flags[seg] = true;
	copy_early(s, q, seg);
}

static void take_back(struct sim *s, struct sim_peer *p, uint32_t tag)
{
	struct sim_memory *m = &p->memory[tag];
	uint32_t i;

	for (i = 0; m->part && i < SIM_SEGS; i++) {
		if (m->part->direct && m->part->flags[i])
			store(s, p, tag, i, m->part->area[i]);
		else if (m->copied[i])
			store(s, p, tag, i, m->staging[i]);
	}
	memcpy(m->want, m->was_recv, sizeof m->want);
}

static void take(struct sim *s, struct sim_peer *p, const struct sim_op *o, uint32_t tag)
{
	struct sim_memory *m = &p->memory[tag];
	const struct sim_xfer *t = o->xfer;
	uint32_t i, j, k;

	for (i = 0; m->part && !m->part->direct && i < SIM_SEGS; i++)
		store(s, p, tag, i, m->part->area[i]);
	for (i = 0; t && i < SIM_SEGS; i++)
		for (j = 0; j < t->n_parts; j++)
			for (k = 0; k < t->parts[j].n; k++)
				m->want[i] += operand(s, &t->parts[j].voices[k].key,
					&s->peers[t->parts[j].voices[k].peer], i);
	if ((uint32_t)__builtin_popcountll(m->want[0] & UINT32_MAX) != o->world_size)
		sim_fail(s, "p%u: tag %u is not the sum of the %u members that the call reports",
			p->no, tag, o->world_size);
}

void sim_memory_end(struct sim *s, struct sim_peer *p, const struct sim_op *o)
{
	uint32_t tag = (uint32_t)(o - p->ops);
	struct sim_memory *m = &p->memory[tag];

	if (!p->proc->alive)
		return;
	m->success = o->code == WIRE_SUCCESS;
	if (m->success)
		take(s, p, o, tag);
	else
		take_back(s, p, tag);
	m->in_flight = false;
	m->part = NULL;
	check(s, p, tag, "when it ends");
}

void sim_memory_abandon(struct sim *s, struct sim_peer *p)
{
	uint32_t i;

	for (i = 0; i < SIM_TAGS; i++) {
		if (!p->memory[i].in_flight)
			continue;
		take_back(s, p, i);
		p->memory[i].in_flight = false;
		p->memory[i].part = NULL;
		check(s, p, i, "when it is abandoned");
	}
}

void sim_memory_check(struct sim *s)
{
	unsigned i;
	uint32_t t;

	for (i = 0; i < s->n_peers; i++)
		for (t = 0; t < SIM_TAGS; t++)
			check(s, &s->peers[i], t, "later");
}
