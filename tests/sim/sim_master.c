/* SPDX-License-Identifier: MIT
 *
 * Masters: start at an address, steps, death, replacement.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim_fault.h"
#include "tests/sim/sim_sync.h"

#define MASTER_PORT 48148

struct cc_addr sim_master_addr(int addr)
{
	return (struct cc_addr){
		.family = CC_INET4, .ip = {10, 0, 0, (uint8_t)(200 + addr)}, .port = MASTER_PORT};
}

/* The first address has two names. */
int sim_master_addr_no(const struct cc_addr *addr)
{
	if (addr->family != CC_INET4 || addr->port != MASTER_PORT)
		return -1;
	if (addr->ip[3] == 199)
		return 0;
	return addr->ip[3] >= 200 && addr->ip[3] < 200 + SIM_ADDRS ? addr->ip[3] - 200 : -1;
}

static void journal_add(struct sim *s, const struct wj_record *r)
{
	struct wj_record stamped = *r;
	struct sim_record *x;

	stamped.written_s = s->now / SIM_S;
	if (s->n_records == s->cap_records) {
		s->cap_records = s->cap_records ? 2 * s->cap_records : 64;
		s->records = reallocarray(s->records, s->cap_records, sizeof *s->records);
		if (!s->records)
			abort();
	}
	x = &s->records[s->n_records++];
	if (wire_journal_encode(&stamped, &x->bytes, &x->len) < 0)
		sim_fail(s, "a record of the journal cannot be encoded");
}

/* Restores the journal that the last master has left. */
static void restore(struct sim *s, struct ccm *m)
{
	struct wj_record r;
	const char *why;
	size_t i, used;

	for (i = 0; i < s->n_records; i++) {
		if (wire_journal_decode(s->records[i].bytes, s->records[i].len, &r, &used, &why) <
			0) {
			sim_fail(s, "the journal cannot be read: %s", why);
			return;
		}
		wire_journal_age(&r, s->now / SIM_S);
		ccm_restore(m, &r);
		wire_journal_clear(&r);
	}
}

static void note_expected(void *arg, const struct ccm_state_info *i)
{
	struct sim_master *m = arg;

	m->restored[i->group] = i->expected;
}

void sim_master_start(struct sim *s, unsigned addr)
{
	struct ccm_config cfg = {.segment_max = 65536,
		.algorithm = CCM_ALGORITHM_AUTO,
		.evict_delay_ms = 250,
		.adopt_ms = 1000,
		.log_level = CCM_LOG_DEBUG,
		.journal = s->journal};
	struct sim_master *m = &s->masters[s->n_masters];

	if (s->at[addr] >= 0 || s->n_masters == SIM_MASTERS)
		return;
	cfg.run = sim_new_id(s, 0x50);
	cfg.run_key = sim_new_id(s, 0x51);
	cfg.first_number = (UINT64_C(1) << 50) + s->now / SIM_MS * 4096;
	*m = (struct sim_master){
		.alive = true, .no = s->n_masters, .addr = addr, .started = s->now};
	m->born = cfg.run;
	m->clock = sim_new_clock(s);
	m->m = ccm_new(&cfg);
	s->at[addr] = (int)s->n_masters++;
	sim_trace(s, "M%u starts at address %u%s", m->no + 1, addr,
		s->n_records ? ", with a journal" : "");
	restore(s, m->m);
	sim_schedule(s, s->now, (struct sim_event){.kind = SIM_EV_MASTER_TICK, .master = m->no});
}

void sim_master_kill(struct sim *s, unsigned no)
{
	struct sim_master *m = &s->masters[no];
	uint32_t i;

	if (!m->alive)
		return;
	sim_trace(s, "fault: %s dies", sim_name_master(s, no));
	s->master_deaths++;
	m->alive = false;
	s->at[m->addr] = -1;
	ccm_free(m->m);
	m->m = NULL;
	for (i = 0; i < s->n_conns; i++)
		if (s->conns[i]->made && s->conns[i]->master == no)
			sim_conn_master_died(s, s->conns[i]);
}

/* A newer master may have taken the run over. Then the actions of the older masters do not belong
 * to the run any more. The master with the highest term is the newest. A recovering master may
 * still raise its term. */
static void supersede(struct sim *s, struct sim_master *m)
{
	bool newer = false, as_new = false;
	unsigned i;

	/* Without a journal, the first agent that comes to a new master decides which run it has.
	 */
	if (m->no > 0 && !s->journal && !cc_id_eq(&m->id, &s->masters[0].id))
		s->class = CLASS_ALL;

	for (i = 0; i < s->n_masters; i++) {
		struct sim_master *x = &s->masters[i];

		if (i == m->no || !cc_id_eq(&x->id, &m->id))
			continue;
		/* The older master has done work that m's copy of the journal lacks, after m
		 * started or before. */
		m->behind |= !m->greets && i < m->no && !m->knows &&
			     (x->worked > m->started || (x->unread && !x->superseded));
		x->superseded |= x->alive && x->term <= m->term;
		newer |= x->term > m->term;
		as_new |= x->term == m->term;
	}
	m->superseded = newer || (as_new && m->superseded);
}

/* The master starts or ends an operation, or puts rings in force. */
static void works(struct sim *s, struct sim_master *m)
{
	unsigned i;

	m->worked = s->now;
	for (i = 0; i < s->n_masters; i++) {
		const struct sim_master *x = &s->masters[i];

		if (s->two_masters || i == m->no || !x->alive || !x->greets || x->term < m->term ||
			!cc_id_eq(&x->id, &m->id))
			continue;
		s->two_masters = true;
		sim_trace(s, "%s goes on with a run that %s has taken over",
			sim_name_master(s, m->no), sim_name_master(s, i));
	}
}

/* left: the number of actions before its death. A message counts once for each receiver. */
static void carry_out(struct sim *s, unsigned no, const struct ccm_action *x, size_t *left)
{
	struct sim_master *m = &s->masters[no];
	uint32_t i;

	if (x->type != CCM_ACT_SEND)
		--*left;
	switch (x->type) {
	case CCM_ACT_SEND:
		for (i = 0; i<x->n_conns && * left> 0; i++, --*left)
			sim_send_to_agent(s, no, s->m_acts.conns[x->first_conn + i], &x->msg);
		if (x->msg.type == WM_HELLO_ACK && i > 0) {
			supersede(s, m);
			m->greets = true;
		}
		if (x->msg.type == WM_COMMIT) {
			s->silent_since = 0;
			sim_lineage_commit(s, m, &x->msg.u.commit);
		}
		if (x->msg.type == WM_UNMET)
			sim_stray_check(s, m, &x->msg.u.unmet);
		if (i > 0 && (x->msg.type == WM_COMMIT || x->msg.type == WM_OP_START ||
				     x->msg.type == WM_OP_DONE || x->msg.type == WM_OP_ABORT))
			works(s, m);
		break;
	case CCM_ACT_CLOSE:
		sim_master_closes(s, no, x);
		break;
	case CCM_ACT_JOURNAL:
		m->unread |= no + 1 < s->n_masters; /* a newer master has its own copy */
		if (!m->unread)
			journal_add(s, &x->record);
		break;
	case CCM_ACT_SOLVE:
		sim_solve(s, no, &x->problem);
		break;
	case CCM_ACT_LOG:
		sim_trace(s, "%s: %s", sim_name_master(s, no), x->text);
		sim_check_log(s, x->text);
		sim_slow_log(s, m, x->text);
		break;
	}
}

/* May the master die while it sends a certain message? Not if another master exists: it may be
 * frozen, and there would be two masters when it continues. */
static bool is_aimed_at(const struct sim *s, const struct sim_master *m)
{
	unsigned i;

	for (i = 0; i < SIM_ADDRS; i++)
		if (s->at[i] >= 0 && s->at[i] != (int)m->no)
			return false;
	return true;
}

/* Returns the number of actions in this step. crash: the master dies after them. A message counts
 * once for each receiver. */
static size_t how_much(struct sim *s, struct sim_master *m, bool *crash)
{
	bool aimed = is_aimed_at(s, m);
	size_t i, n = 0;

	for (i = 0; i < s->m_acts.n; i++) {
		const struct ccm_action *x = &s->m_acts.v[i];

		*crash = aimed && x->type == CCM_ACT_SEND && x->n_conns > 1;
		if (*crash && s->crash_telling && x->msg.type == WM_OP_DONE)
			return n + sim_scene_witness(s, m, x);
		if (*crash && s->now < s->starting_until && x->msg.type == WM_OP_START &&
			x->msg.u.op_start.route != CC_ALGO_RING)
			return n + sim_scene_starting(s, m, x);
		n += x->type == CCM_ACT_SEND ? x->n_conns : 1;
	}
	*crash = m->crash_next && n > 0;
	return *crash ? sim_rnd(s, (uint32_t)n + 1) : n;
}

bool sim_is_recovering(const struct sim_master *m)
{
	struct ccm_status st;

	ccm_get_status(m->m, &st);
	return st.recovering;
}

void sim_master_step(struct sim *s, unsigned no, const struct ccm_event *ev)
{
	struct sim_master *m = &s->masters[no];
	bool crash, recovering = sim_is_recovering(m);
	uint64_t kicked = s->kicked;
	const char *wrong;
	size_t i, n;

	ccm_actions_clear(&s->m_acts);
	if (ev->type == CCM_EV_MSG && ev->msg->type == WM_OP_VOTE)
		sim_elect_vote(s, &ev->msg->u.op_vote);
	if (ev->type == CCM_EV_MSG && ev->msg->type == WM_JOIN)
		sim_lineage_join(s, m, ev->conn, &ev->msg->u.join);
	if (ev->type == CCM_EV_MSG && ev->msg->type == WM_HELLO)
		m->knows |= !cc_id_is_zero(&ev->msg->u.hello.run_key);
	m->behind &= !m->knows;
	if (ev->type == CCM_EV_MSG && ev->msg->type == WM_RESUME)
		sim_lineage_resume(s, m, ev->conn);
	sim_elect_before(s, m, ev);
	ccm_step(m->m, ev, sim_clock_now(s, &m->clock), &s->m_acts);
	if (!m->begun) /* only now it has the state of its journal */
		ccm_each_state(m->m, sim_clock_now(s, &m->clock), note_expected, m);
	m->begun = true;
	wrong = ccm_check(m->m);
	if (wrong)
		sim_fail(s, "the invariant of %s is broken: %s", sim_name_master(s, no), wrong);
	sim_elect_after(s, m);
	n = how_much(s, m, &crash);
	for (i = 0; i < s->m_acts.n && n > 0 && !s->failure[0]; i++)
		carry_out(s, no, &s->m_acts.v[i], &n);
	if (recovering && !sim_is_recovering(m))
		sim_xfers_back(s);
	if (crash && s->kicked > kicked) /* the remaining peers may learn of this loss now */
		sim_cause(s);
	if (crash)
		sim_master_kill(s, no);
	else if (ev->type != CCM_EV_TICK)
		sim_check_master(s, m);
}

void sim_master_tick(struct sim *s, unsigned no)
{
	struct ccm_event tick = {.type = CCM_EV_TICK};

	if (!s->masters[no].alive)
		return;
	sim_master_step(s, no, &tick);
	sim_schedule(s, s->now + 200 * SIM_MS,
		(struct sim_event){.kind = SIM_EV_MASTER_TICK, .master = no});
}

void sim_journal_free(struct sim *s)
{
	size_t i;

	for (i = 0; i < s->n_records; i++)
		free(s->records[i].bytes);
	free(s->records);
}

void sim_set_master(struct sim *s, struct sim_host *h, unsigned from, unsigned to)
{
	struct agt_event ev = {.type = AGT_EV_SET_MASTER};

	ev.from = sim_master_addr((int)from);
	ev.to = sim_master_addr((int)to);
	sim_trace(s, "h%u: set-master %u to %u", h->no, from, to);
	sim_host_step(s, h, &ev);
	if (from > 0)
		return;
	ev.from.ip[3] = 199; /* its other name */
	sim_host_step(s, h, &ev);
}
