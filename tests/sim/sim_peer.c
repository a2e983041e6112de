/* SPDX-License-Identifier: MIT
 *
 * Training programs. A program connects, then repeats two things: it votes on the topology and
 * follows the plan. It launches the operations of a step one after the other, in a window, or all
 * at once in any order. It repeats aborted operations. At last it destroys the communicator. Some
 * programs come back with a new communicator.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim_sync.h"

static const char *const phase_names[] = {
	"start", "connecting", "updating", "working", "destroying", "ended"};

void sim_peer_later(struct sim *s, struct sim_peer *p, uint64_t delay)
{
	p->gen++;
	sim_schedule(s, s->now + delay,
		(struct sim_event){.kind = SIM_EV_PEER,
			.host = p->proc->host,
			.proc = p->proc->no,
			.peer = p->no,
			.gen = p->gen});
}

static uint64_t moment(struct sim *s)
{
	return sim_chance(s, 70) ? 10 * SIM_US : sim_delay(s);
}

static void later(struct sim *s, struct sim_peer *p, enum sim_phase phase)
{
	p->phase = phase;
	sim_peer_later(s, p, moment(s));
}

bool sim_peer_alone(const struct sim_peer *p)
{
	return p->view.group < 2;
}

static void ended(struct sim *s, struct sim_peer *p)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_CLOSED, .session = p->proc->session};
	struct sim_host *h = &s->hosts[p->proc->host];

	p->phase = PEER_ENDED;
	sim_trace(s, "p%u: ended", p->no);
	if (--p->proc->n_peers > 0)
		return;
	p->proc->alive = false;
	if (p->proc->state == SESSION_OPEN && h->life == p->proc->life)
		sim_host_step(s, h, &ev);
}

static void leave(struct sim *s, struct sim_peer *p)
{
	if (p->state == SHM_COMM_CONNECTED) {
		sim_cause(s);
		sim_lineage_left(s, p);
	}
	later(s, p, PEER_DESTROYING);
}

/* The program has lost its membership, or never had one. It connects again, or leaves if its
 * reconnects are used up. free_of_charge: this reconnect is not counted. */
static void try_anew(struct sim *s, struct sim_peer *p, bool free_of_charge)
{
	sim_sync_put_out(s, p, p->ops[SIM_SYNC].text);
	memset(p->ops, 0, sizeof p->ops);
	p->n_launch = p->launched = p->awaited = 0;
	p->held = p->waits = p->asking = p->step_begun = p->unaware = false;
	p->stray = p->strayed = p->mistaken = false;
	if (p->reconnects == 0 && !free_of_charge) {
		leave(s, p);
		return;
	}
	p->reconnects -= !free_of_charge;
	s->reconnects++;
	p->phase = PEER_CONNECTING;
	sim_peer_later(s, p, (50 + sim_rnd(s, free_of_charge ? 3000 : 500)) * SIM_MS);
}

static void shuffle(struct sim *s, uint8_t *v, uint32_t n)
{
	uint32_t i, j;

	for (i = n; i > 1; i--) {
		uint8_t t = v[i - 1];

		j = sim_rnd(s, i);
		v[i - 1] = v[j];
		v[j] = t;
	}
}

/* Tries all operations of the step that have not succeeded yet. */
static void pass_begin(struct sim *s, struct sim_peer *p)
{
	uint32_t i, n = 0;

	for (i = 0; i < SIM_OPS; i++)
		if (p->ops[i].wanted)
			p->launch[n++] = (uint8_t)i;
	p->n_launch = n;
	if (p->burst)
		shuffle(s, p->launch, n);
	memcpy(p->await, p->launch, n);
	if (p->burst)
		shuffle(s, p->await, n);
	p->launched = p->awaited = 0;
	p->pass_failed = false;
	if (n > 0 && s->odd_parameters && p->launch[0] != SIM_SYNC)
		p->ops[p->launch[0]].odd = sim_chance(s, 10);
}

/* The program awaits the operation and learns its result. */
static void consume(struct sim *s, struct sim_peer *p, struct sim_op *o)
{
	o->state = OP_IDLE;
	o->odd = false;
	if (p->mistaken)
		o->wanted = false;
	if (o->generation > p->generation)
		p->generation = o->generation;
	if (o->after.view_id > p->view.view_id)
		p->view = o->after;
	if (o->code == WIRE_SUCCESS) {
		o->wanted = false;
		s->reductions += o != &p->ops[SIM_SYNC];
		if (o == &p->ops[SIM_SYNC])
			sim_sync_learn(s, p);
	} else if (o->code == WIRE_TOO_FEW_PEERS) {
		p->too_few = true;
	} else {
		p->pass_failed = true;
		p->unaware = false;
	}
}

static bool is_wanting(const struct sim_peer *p)
{
	uint32_t i;

	for (i = 0; i < SIM_OPS; i++)
		if (p->ops[i].wanted)
			return true;
	return false;
}

static void step_wants(struct sim *s, struct sim_peer *p)
{
	const struct sim_step *st = &p->steps[p->step];
	uint32_t i;

	p->mistaken = false;
	for (i = 0; i < st->n_ops; i++) {
		p->ops[i].wanted = true;
		p->ops[i].causes = s->causes;
	}
	if (st->sync) {
		sim_sync_prepare(s, p);
		p->ops[SIM_SYNC].wanted = true;
		p->ops[SIM_SYNC].causes = s->causes;
	}
}

/* With an odd window, the next operation is launched when any operation in flight ends. */
bool sim_peer_awaits_any(const struct sim_peer *p)
{
	return !p->burst && p->window % 2 == 1 && p->launched < p->n_launch && !p->pass_failed &&
	       !p->too_few && p->state == SHM_COMM_CONNECTED;
}

/* Chooses an operation that has ended, if there is one, to be awaited next. */
static void choose_any(struct sim_peer *p)
{
	uint32_t i;
	uint8_t t = p->await[p->awaited];

	for (i = p->awaited; i < p->launched; i++) {
		if (p->ops[p->await[i]].state != OP_DONE)
			continue;
		p->await[p->awaited] = p->await[i];
		p->await[i] = t;
		return;
	}
}

static bool may_launch(const struct sim_peer *p)
{
	if (p->launched >= p->n_launch || p->too_few || p->state != SHM_COMM_CONNECTED)
		return false;
	return p->burst || (!p->pass_failed && p->launched - p->awaited < p->window);
}

/* Consumes the operation that is awaited next, or waits for it. Returns false if none is left. */
static bool await_next(struct sim *s, struct sim_peer *p)
{
	struct sim_op *o;

	if (sim_peer_awaits_any(p))
		choose_any(p);
	for (; p->awaited < p->n_launch; p->awaited++) {
		o = &p->ops[p->await[p->awaited]];
		if (o->state == OP_DONE) {
			consume(s, p, o);
			p->awaited++;
			sim_peer_later(s, p, moment(s));
			return true;
		}
		p->waits = o->state != OP_IDLE;
		if (!p->waits) /* never launched */
			continue;
		if (sim_peer_awaits_any(p))
			sim_stray_await_any(s, p);
		else
			sim_stray_await(s, p, p->await[p->awaited]);
		return true;
	}
	return false;
}

static bool wants_another_pass(const struct sim_peer *p)
{
	uint32_t i;

	for (i = 0; i < SIM_OPS; i++)
		if (p->ops[i].wanted)
			return true;
	return false;
}

/* Does one thing for the operations of the step. Returns true when nothing is left to do. */
static bool reduce(struct sim *s, struct sim_peer *p)
{
	bool connected = p->state == SHM_COMM_CONNECTED;

	if (p->held)
		return false;
	if (may_launch(p)) {
		sim_op_launch(s, p, p->launch[p->launched++]);
		if (!p->held)
			sim_peer_later(s, p, moment(s));
		return false;
	}
	if (await_next(s, p))
		return false;
	p->n_launch = p->launched = p->awaited = 0;
	if (s->counts && p->pass_failed && p->view.group < p->counted) {
		p->gives_up = true;
		return true;
	}
	if (!connected || p->too_few || (sim_peer_alone(p) && !p->steps[p->step].sync))
		return true;
	if (p->mistaken && !is_wanting(p))
		step_wants(s, p);
	if (!wants_another_pass(p))
		return true;
	s->retries += p->pass_failed;
	pass_begin(s, p);
	return reduce(s, p);
}

static void step_begin(struct sim *s, struct sim_peer *p)
{
	memset(p->ops, 0, sizeof p->ops);
	p->step_begun = true;
	p->too_few = p->pass_failed = p->gives_up = false;
	/* an operation may fail alone here, and its program must be able to repeat it without
	 * waiting for other operations first */
	p->burst = s->odd_parameters || s->refusals || s->xfer_failures || sim_chance(s, 40);
	p->window = 1 + sim_rnd(s, SIM_TAGS);
	p->n_launch = p->launched = p->awaited = 0;
	sim_stray_launch(s, p);
	if (!p->mistaken)
		step_wants(s, p);
	if (p->steps[p->step].ask) {
		p->asking = true;
		sim_shim_call(s, p, SIM_VOTE(WIRE_PENDING));
	}
}

static void steps_go(struct sim *s, struct sim_peer *p)
{
	if (p->stray)
		return;
	if (p->step == p->n_steps) {
		if (p->iterations > 1 || s->now < s->busy_until) {
			p->iterations -= p->iterations > 1;
			p->phase = PEER_UPDATING;
			sim_peer_later(s, p, moment(s) + sim_slow_pause(s));
		} else {
			leave(s, p);
		}
		return;
	}
	if (!p->step_begun && p->state != SHM_COMM_CONNECTED) {
		try_anew(s, p, false);
		return;
	}
	if (!p->step_begun && sim_stray(s, p))
		return;
	if (!p->step_begun) {
		step_begin(s, p);
		sim_peer_later(s, p, moment(s));
		return;
	}
	p->waits = false;
	if (!reduce(s, p)) {
		if (p->rude && p->iterations == 1 && p->launched > 0 && !p->asking && !p->held)
			leave(s, p);
		return;
	}
	if (p->asking)
		return;
	if (p->state != SHM_COMM_CONNECTED) {
		try_anew(s, p, false);
		return;
	}
	p->step = p->gives_up ? p->n_steps : p->step + 1;
	p->step_begun = p->strayed = false;
	sim_peer_later(s, p, moment(s));
}

void sim_peer_go(struct sim *s, struct sim_peer *p)
{
	switch (p->phase) {
	case PEER_START:
		if (!p->call.type)
			sim_shim_call(s, p, WL_COMM_CREATE);
		break;
	case PEER_CONNECTING:
		if (!p->call.type)
			sim_shim_call(s, p, WL_COMM_CONNECT);
		break;
	case PEER_UPDATING:
		if (p->call.type)
			break;
		if (p->state != SHM_COMM_CONNECTED)
			try_anew(s, p, false);
		else
			sim_shim_call(s, p, SIM_VOTE(WIRE_TOPOLOGY));
		break;
	case PEER_STEPS:
		steps_go(s, p);
		break;
	case PEER_DESTROYING:
		if (p->call.type)
			break;
		if (p->proc->state == SESSION_NONE)
			ended(s, p);
		else
			sim_shim_call(s, p, WL_COMM_DESTROY);
		break;
	case PEER_ENDED:
		break;
	}
}

void sim_peer_op_done(struct sim *s, struct sim_peer *p, uint32_t tag)
{
	s->progress = s->now;
	if (p->phase == PEER_STEPS && p->waits &&
		(p->await[p->awaited] == tag || sim_peer_awaits_any(p))) {
		p->waits = false;
		sim_peer_later(s, p, moment(s));
	} else if (p->phase == PEER_STEPS && p->held && p->ops[tag].code) {
		p->held = false; /* the launch itself has failed */
		sim_peer_later(s, p, moment(s));
	}
}

static void destroyed(struct sim *s, struct sim_peer *p)
{
	p->comm = 0;
	p->state = SHM_COMM_NEW;
	sim_memory_abandon(s, p);
	sim_sync_abandon(s, p);
	memset(p->ops, 0, sizeof p->ops);
	memset(&p->attrs, 0, sizeof p->attrs);
	if (p->rejoins == 0 || p->proc->state == SESSION_NONE) {
		ended(s, p);
		return;
	}
	p->rejoins--;
	p->iterations = 1 + sim_rnd(s, 5);
	p->held = p->waits = p->asking = p->step_begun = p->unaware = false;
	p->stray = p->strayed = p->mistaken = false;
	p->phase = PEER_START;
	sim_peer_later(s, p, sim_rnd(s, 300) * SIM_MS);
}

void sim_peer_returned(struct sim *s, struct sim_peer *p, uint32_t type, uint32_t code,
	const char *text, bool flag)
{
	(void)text;
	s->progress = s->now;
	switch (type) {
	case WL_COMM_CREATE:
		if (code == WIRE_SUCCESS)
			later(s, p, PEER_CONNECTING);
		else
			ended(s, p);
		break;
	case WL_COMM_CONNECT:
	case SIM_VOTE(WIRE_TOPOLOGY):
	case SIM_VOTE(WIRE_OPTIMIZE):
		if (code != WIRE_SUCCESS) {
			try_anew(s, p,
				type == WL_COMM_CONNECT && p->call.master_gone &&
					s->class == CLASS_MASTER);
			break;
		}
		if (type != WL_COMM_CONNECT && p->alone) {
			/* the others go on without a vote, and so does this program */
			if (p->stray)
				sim_peer_later(s, p, moment(s));
			else
				later(s, p, PEER_UPDATING);
			p->stray = false;
			break;
		}
		p->stray = p->strayed = false;
		if (type == SIM_VOTE(WIRE_OPTIMIZE)) {
			s->seen[flag ? SEEN_OPTIMIZED : SEEN_NOT_OPTIMIZED]++;
			p->optimizes = !flag && p->view.global > 1;
		} else {
			sim_plan(s, p);
		}
		if (p->optimizes) {
			p->optimizes = false;
			sim_shim_call(s, p, SIM_VOTE(WIRE_OPTIMIZE));
			break;
		}
		p->counted = p->view.group;
		later(s, p, PEER_STEPS);
		break;
	case SIM_VOTE(WIRE_PENDING):
		p->asking = p->stray = false;
		sim_peer_later(s, p, moment(s));
		break;
	case WL_COMM_DESTROY:
		destroyed(s, p);
		break;
	default:
		sim_fail(s, "p%u: a reply that it does not wait for", p->no);
		break;
	}
}

bool sim_peers_ended(const struct sim *s)
{
	unsigned i;

	for (i = 0; i < s->n_peers; i++)
		if (s->peers[i].phase != PEER_ENDED)
			return false;
	return true;
}

void sim_peers_describe(struct sim *s)
{
	static const char *const op_names[] = {"idle", "held", "pending", "in doubt", "done"};
	unsigned i, t;

	for (i = 0; i < s->n_peers; i++) {
		const struct sim_peer *p = &s->peers[i];

		if (p->phase == PEER_ENDED)
			continue;
		printf("p%u (process %u on h%u, group %u): %s, ballot %" PRIu64 " step %u of %u",
			p->no, p->proc->no, p->proc->host, p->group, phase_names[p->phase],
			p->ballots[WIRE_TOPOLOGY], p->step, p->n_steps);
		if (p->call.type)
			printf(", calls %s for %.3f s", sim_text_call(p->call.type),
				(double)(s->now - p->call.since) / 1e9);
		for (t = 0; t < SIM_OPS; t++)
			if (p->ops[t].wanted)
				printf(", %s %u %s", t == SIM_SYNC ? "synchronization" : "tag", t,
					op_names[p->ops[t].state]);
		printf("%s%s\n", p->proc->state == SESSION_BROKEN ? ", has no agent" : "",
			p->proc->stopped ? ", stopped" : "");
	}
}
