/* SPDX-License-Identifier: MIT
 *
 * The growth of the cost: one peer on each of N hosts, real cores, the real codec, no faults and no
 * delays. The program counts the messages between agents and the master in both directions, the
 * actions of the master's core, and the processor time of that core. The cost of a step per peer
 * must not depend on the number of peers: messages and actions per peer may not grow, and a message
 * that is the same for all peers is one action.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/wire_frame.h"
#include "tests/sim/sim.h"

#define PHASES_MAX 16u
#define GROWTH_MAX 1.1 /* the allowed growth of messages per peer, from one size to the next */
/* steps of the master that are timed together, because reading the clock is slow */
#define BATCH 64u

enum item_kind {
	ITEM_TO_MASTER,
	ITEM_TO_AGENT,
	ITEM_MASTER_UP,
	ITEM_LINK_UP,
	ITEM_PROBED,
	ITEM_XFER_DONE,
	ITEM_XFER_CANCELLED
};

struct item {
	enum item_kind kind;
	uint32_t node, run;
	uint64_t seq;
	struct cc_id peer;
	uint8_t *bytes; /* owned */
	size_t len;
};

struct node {
	struct agt *a;
	uint32_t comm, run, replies, completions;
	uint64_t generation;
	struct cc_id id;
};

struct phase {
	const char *name;
	/* all peers get the same message: the number of actions is the same for all sizes */
	bool alike;
	uint64_t messages[SIM_SIZES], actions[SIM_SIZES], ns[SIM_SIZES];
};

struct scale {
	struct ccm *m;
	struct ccm_actions m_acts;
	struct agt_actions a_acts;
	struct node *nodes;
	uint32_t n;
	struct item *queue;
	size_t head, tail, cap;
	uint64_t now, messages, actions, ns, failures;
	uint32_t last_req;
	struct phase phases[PHASES_MAX];
	unsigned n_phases, phase, size;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void put(struct scale *s, struct item it)
{
	if (s->head == s->tail)
		s->head = s->tail = 0;
	if (s->tail == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 1024;
		s->queue = reallocarray(s->queue, s->cap, sizeof *s->queue);
		if (!s->queue)
			abort();
	}
	s->queue[s->tail++] = it;
}

static void send(struct scale *s, enum item_kind kind, uint32_t node, const struct wm_msg *m)
{
	struct item it = {.kind = kind, .node = node};

	if (wire_master_encode(m, &it.bytes, &it.len) < 0)
		abort();
	s->messages++;
	put(s, it);
}

static void master_steps(struct scale *s, const struct ccm_event *ev, unsigned n)
{
	uint64_t begin = cpu_ns();
	unsigned k;
	size_t i;

	ccm_actions_clear(&s->m_acts);
	for (k = 0; k < n; k++) {
		s->now += 10;
		ccm_step(s->m, &ev[k], s->now, &s->m_acts);
	}
	s->ns += cpu_ns() - begin;
	s->actions += s->m_acts.n;
	for (i = 0; i < s->m_acts.n; i++) {
		const struct ccm_action *x = &s->m_acts.v[i];

		for (k = 0; x->type == CCM_ACT_SEND && k < x->n_conns; k++)
			send(s, ITEM_TO_AGENT, s->m_acts.conns[x->first_conn + k] - 1, &x->msg);
		s->failures += x->type == CCM_ACT_CLOSE;
	}
}

static void replied(struct scale *s, struct node *n, const struct wl_reply *r)
{
	s->failures += r->code != WIRE_SUCCESS;
	n->replies++;
	if (r->generation > n->generation)
		n->generation = r->generation;
}

static void carry_out(struct scale *s, uint32_t i, const struct agt_action *x)
{
	struct item it = {.node = i, .run = x->run};
	struct node *n = &s->nodes[i];

	switch (x->type) {
	case AGT_ACT_REPLY:
		replied(s, n, &x->u.reply);
		return;
	case AGT_ACT_COMM_OPEN:
		n->comm = x->comm;
		return;
	case AGT_ACT_COMPLETE:
		n->completions += x->u.done.code == WIRE_SUCCESS;
		if (x->u.done.generation > n->generation)
			n->generation = x->u.done.generation;
		return;
	case AGT_ACT_MASTER_OPEN:
		n->run = x->run;
		it.kind = ITEM_MASTER_UP;
		break;
	case AGT_ACT_MASTER_SEND:
		send(s, ITEM_TO_MASTER, i, &x->u.msg);
		return;
	case AGT_ACT_LINK_OPEN:
		it.kind = ITEM_LINK_UP;
		it.peer = x->u.endpoint.agent;
		break;
	case AGT_ACT_PROBE:
		it.kind = ITEM_PROBED;
		it.seq = x->u.probe.number;
		break;
	case AGT_ACT_XFER_START:
		it.kind = ITEM_XFER_DONE;
		it.seq = x->u.xfer.seq;
		break;
	case AGT_ACT_XFER_CANCEL:
		it.kind = ITEM_XFER_CANCELLED;
		it.seq = x->u.xfer.seq;
		break;
	default:
		return;
	}
	put(s, it);
}

static void agent_step(struct scale *s, uint32_t i, const struct agt_event *ev)
{
	/* kept for the next step, because it owns the memory */
	struct agt_actions acts = s->a_acts;
	size_t k;

	memset(&s->a_acts, 0, sizeof s->a_acts);
	agt_step(s->nodes[i].a, ev, s->now, &acts);
	for (k = 0; k < acts.n; k++)
		carry_out(s, i, &acts.v[k]);
	agt_actions_clear(&acts);
	agt_actions_free(&s->a_acts);
	s->a_acts = acts;
}

static void decode(const struct item *it, struct wm_msg *ret)
{
	const char *why;

	if (wire_master_decode(it->bytes + WIRE_FRAME_HDR, it->len - WIRE_FRAME_HDR, ret, &why) < 0)
		abort();
}

static void deliver(struct scale *s, const struct item *it)
{
	static const enum agt_event_type types[] = {[ITEM_TO_AGENT] = AGT_EV_MASTER_MSG,
		[ITEM_MASTER_UP] = AGT_EV_MASTER_UP,
		[ITEM_LINK_UP] = AGT_EV_LINK_UP,
		[ITEM_PROBED] = AGT_EV_PROBED,
		[ITEM_XFER_DONE] = AGT_EV_XFER_DONE,
		[ITEM_XFER_CANCELLED] = AGT_EV_XFER_CANCELLED};
	struct agt_event ev = {
		.type = types[it->kind], .run = it->run, .seq = it->seq, .peer = it->peer};
	struct wm_msg m;

	s->now += 10;
	if (it->kind == ITEM_TO_AGENT) {
		decode(it, &m);
		ev.run = s->nodes[it->node].run;
		ev.msg = &m;
	}
	agent_step(s, it->node, &ev);
	if (it->kind == ITEM_TO_AGENT)
		wire_master_clear(&m);
	free(it->bytes);
}

/* Delivers the next items for the master: connections, or messages. Returns their number. */
static unsigned deliver_batch(struct scale *s, const struct item *it, size_t n)
{
	static struct ccm_event ev[BATCH];
	static struct wm_msg m[BATCH];
	enum item_kind kind = it->kind;
	unsigned i, k;

	for (k = 0; k < BATCH && k < n && it[k].kind == kind; k++) {
		ev[k] = (struct ccm_event){.type = CCM_EV_OPEN, .conn = it[k].node + 1};
		ev[k].addr = (struct cc_addr){.family = CC_INET4, .ip = {10, 0, 0, 1}};
		if (kind == ITEM_MASTER_UP)
			continue;
		decode(&it[k], &m[k]);
		ev[k].type = CCM_EV_MSG;
		ev[k].msg = &m[k];
	}
	master_steps(s, ev, k);
	for (i = 0; kind == ITEM_TO_MASTER && i < k; i++)
		wire_master_clear(&m[i]);
	return k;
}

static void run_queue(struct scale *s)
{
	struct item it;
	unsigned n;

	while (s->head < s->tail) {
		it = s->queue[s->head];
		n = 0;
		if (it.kind == ITEM_TO_MASTER || it.kind == ITEM_MASTER_UP)
			n = deliver_batch(s, &s->queue[s->head], s->tail - s->head);
		if (it.kind == ITEM_TO_MASTER) {
			for (; n > 0; n--)
				free(s->queue[s->head++].bytes);
			continue;
		}
		do {
			it = s->queue[s->head++];
			deliver(s, &it);
		} while (n > 0 && --n > 0);
	}
}

static void phase_end(struct scale *s, const char *name, bool alike)
{
	struct phase *p;

	run_queue(s);
	p = &s->phases[s->phase++];
	p->name = name;
	p->alike = alike;
	p->messages[s->size] = s->messages;
	p->actions[s->size] = s->actions;
	p->ns[s->size] = s->ns;
	s->n_phases = s->phase;
	s->messages = s->actions = s->ns = 0;
}

static struct cc_id id_of(uint32_t i, uint8_t kind)
{
	return (struct cc_id){.b = {kind, (uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16), 1}};
}

static void request(struct scale *s, uint32_t i, uint32_t type)
{
	struct wl_request q = {.comm = s->nodes[i].comm};
	struct agt_event ev = {.type = AGT_EV_REQUEST, .session = 1, .request = &q};

	q.type = type >= SIM_VOTE(0) ? WL_VOTE : (enum wl_type)type;
	q.ballot = type >= SIM_VOTE(0) ? (enum wire_ballot)(type - SIM_VOTE(0)) : WIRE_TOPOLOGY;
	q.req_id = ++s->last_req;
	q.master = sim_master_addr(0);
	q.peer = id_of(i, 0xbb);
	q.token = id_of(i, 0xcc);
	agent_step(s, i, &ev);
}

static void submit(struct scale *s, uint32_t i, uint64_t tag)
{
	struct shm_submission sub = {.tag = tag, .count = 1024, .dtype = 10, .bytes = 4096};
	struct agt_event ev = {.type = AGT_EV_SUBMIT, .comm = s->nodes[i].comm, .sub = &sub};

	sub.generation = s->nodes[i].generation;
	agent_step(s, i, &ev);
}

static void node_start(struct scale *s, uint32_t i)
{
	struct agt_config cfg = {.addresses = {.port_p2p = 48150, .n_addrs = 1}};
	struct agt_event open = {
		.type = AGT_EV_SESSION_OPEN, .session = 1, .pid = i, .name = "sim"};

	cfg.agent = s->nodes[i].id = id_of(i, 0xa0);
	(void)snprintf(cfg.name, sizeof cfg.name, "h%u", i);
	cfg.addresses.addrs[0] = (struct cc_addr){
		.family = CC_INET4, .ip = {10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i}};
	s->nodes[i].a = agt_new(&cfg);
	agent_step(s, i, &open);
	request(s, i, WL_COMM_CREATE);
	request(s, i, WL_COMM_CONNECT);
}

static void expect(struct scale *s, const char *what, uint32_t replies, uint32_t completions)
{
	uint32_t i, bad = 0;

	for (i = 0; i < s->n; i++) {
		if (!s->nodes[i].a)
			continue;
		bad += s->nodes[i].replies != replies || s->nodes[i].completions != completions;
		s->nodes[i].replies = s->nodes[i].completions = 0;
	}
	if (bad || s->failures) {
		printf("%u peers: %s went wrong for %u of them\n", s->n, what, bad);
		s->failures++;
	}
}

static void all(struct scale *s, uint32_t type, const char *name)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		request(s, i, type);
	phase_end(s, name, true);
	expect(s, name, 1, 0);
}

/* The master dies. A new master without any state takes over, and the peers do an all-reduce. */
static void takeover(struct scale *s)
{
	struct ccm_config cfg = {.segment_max = 65536, .log_level = CCM_LOG_ERR};
	struct agt_event down = {.type = AGT_EV_MASTER_DOWN, .text = "reset"};
	uint32_t i;

	cfg.run = id_of(3, 0x50);
	cfg.run_key = id_of(4, 0x51);
	cfg.first_number = 1000;
	ccm_free(s->m);
	s->m = ccm_new(&cfg);
	for (i = 0; i < s->n; i++) {
		down.run = s->nodes[i].run;
		if (s->nodes[i].a)
			agent_step(s, i, &down);
	}
	for (i = 0; i < s->n; i++)
		if (s->nodes[i].a)
			submit(s, i, 3);
	phase_end(s, "a new master, and an all-reduce", false);
	expect(s, "the all-reduce after the master's death", 0, 1);
}

static void life(struct scale *s)
{
	struct agt_event died = {.type = AGT_EV_SESSION_CLOSED, .session = 1};
	uint32_t i, victim = s->n / 2;

	for (i = 0; i < s->n; i++)
		node_start(s, i);
	phase_end(s, "join", false);
	s->nodes[0].replies = 0;
	request(s, 0, SIM_VOTE(WIRE_TOPOLOGY));
	phase_end(s, "admission of all but one", false);
	expect(s, "admission", 1, 0);
	all(s, SIM_VOTE(WIRE_TOPOLOGY), "topology vote");
	all(s, SIM_VOTE(WIRE_PENDING), "vote on pending peers");
	all(s, SIM_VOTE(WIRE_OPTIMIZE), "vote on optimization");
	for (i = 0; i < s->n; i++)
		submit(s, i, 1);
	phase_end(s, "all-reduce", true);
	expect(s, "the all-reduce", 0, 1);
	for (i = 0; i < s->n; i++)
		if (i != victim)
			submit(s, i, 2);
	agent_step(s, victim, &died);
	phase_end(s, "all-reduce that loses a peer", false);
	agt_free(s->nodes[victim].a);
	s->nodes[victim].a = NULL;
	expect(s, "the loss", 0, 0);
	for (i = 0; i < s->n; i++)
		if (i != victim)
			submit(s, i, 2);
	phase_end(s, "all-reduce, again", true);
	expect(s, "the all-reduce after the loss", 0, 1);
	takeover(s);
}

static bool run_size(struct scale *s, uint32_t n)
{
	struct ccm_config cfg = {.segment_max = 65536, .log_level = CCM_LOG_ERR};
	uint32_t i;

	cfg.run = id_of(1, 0x50);
	cfg.run_key = id_of(2, 0x51);
	s->now = SIM_S;
	s->n = n;
	s->phase = 0;
	s->m = ccm_new(&cfg);
	s->nodes = calloc(n, sizeof *s->nodes);
	if (!s->nodes)
		abort();
	life(s);
	for (i = 0; i < n; i++)
		agt_free(s->nodes[i].a);
	free(s->nodes);
	ccm_free(s->m);
	return s->failures == 0;
}

/* Has the count per peer grown since the previous size? */
static bool grows(const uint64_t *count, const uint32_t *sizes, unsigned k)
{
	return k > 0 &&
	       (double)count[k] / sizes[k] > GROWTH_MAX * (double)count[k - 1] / sizes[k - 1];
}

static bool print(const struct scale *s, const uint32_t *sizes, unsigned n)
{
	bool flat = true;
	unsigned i, k;

	printf("| peers | step | messages | per peer | actions | master CPU, ms | per peer, us |\n"
	       "| ---: | --- | ---: | ---: | ---: | ---: | ---: |\n");
	for (i = 0; i < s->n_phases; i++) {
		const struct phase *p = &s->phases[i];

		for (k = 0; k < n; k++) {
			printf("| %u | %s | %lu | %.2f | %lu | %.3f | %.2f |\n", sizes[k], p->name,
				(unsigned long)p->messages[k], (double)p->messages[k] / sizes[k],
				(unsigned long)p->actions[k], (double)p->ns[k] / 1e6,
				(double)p->ns[k] / 1e3 / sizes[k]);
			flat &= !grows(p->messages, sizes, k) && !grows(p->actions, sizes, k) &&
				(!p->alike || p->actions[k] == p->actions[0]);
		}
	}
	return flat;
}

int sim_scale(const uint32_t *sizes, unsigned n)
{
	static struct scale s;
	bool ok = true;

	for (s.size = 0; s.size < n; s.size++)
		ok &= run_size(&s, sizes[s.size]);
	if (ok && !print(&s, sizes, n)) {
		printf("messages or actions per peer grow with the number of peers\n");
		ok = false;
	}
	ccm_actions_free(&s.m_acts);
	agt_actions_free(&s.a_acts);
	free(s.queue);
	printf("%s\n", ok ? "1 passed, 0 failed" : "0 passed, 1 failed");
	return ok ? 0 : -1;
}
