/* SPDX-License-Identifier: MIT
 *
 * What may go wrong: sim_scene.c says when, sim_fault.c does it.
 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include "tests/sim/sim.h"

enum sim_fault {
	FAULT_KILL_PROC,
	FAULT_STOP_PROC, /* for gen ms */
	FAULT_RUN_PROC,
	FAULT_DEATHS,     /* of gen processes of the host, or of another one that has two */
	FAULT_KILL_AGENT, /* inbound: it is told to end; restarted after gen ms; 0: never */
	FAULT_START_AGENT,
	FAULT_KILL_HOST,
	FAULT_BREAK_LINK,
	FAULT_BLOCK,
	FAULT_UNBLOCK,
	FAULT_PAIR, /* host and link hear nothing of each other */
	FAULT_UNPAIR,
	FAULT_CUT,       /* both ends see it */
	FAULT_HALF_OPEN, /* one end sees it, at most */
	FAULT_PART,      /* the host and the master's address do not reach each other */
	FAULT_UNPART,
	FAULT_CUT_OFF, /* the master and every host, for gen ms */
	FAULT_FREEZE,  /* the agent, for gen ms */
	FAULT_SLOW,
	FAULT_FREEZE_MASTER,
	FAULT_KILL_MASTER, /* a new one at `place` after gen ms; 0: never */
	FAULT_START_MASTER,
	FAULT_SET_MASTER, /* host: from place to link */
	FAULT_STALE,      /* the master stands still, a new one takes over, the old one wakes */
	FAULT_REFUSE,
	FAULT_ACCEPT,
	FAULT_VOTER,     /* leaves while another one is late and the master out of reach */
	FAULT_REST,      /* the master loses all hosts but one, which goes on; then both it and that
			  * one's agent die */
	FAULT_REST_LATE, /* a program on that host begins */
	FAULT_WITNESS, /* the master dies when it has told only some hosts of a success; then these
			* are hard to hear */
	FAULT_ROUTED,  /* the link `link` of generation gen carries something, and is reset */
	FAULT_DOOMED,  /* the agent dies, or is cut off, soon after it has come to the master */
};

static inline struct sim_event sim_fault_new(enum sim_fault f)
{
	return (struct sim_event){.kind = SIM_EV_FAULT, .code = f};
}

static inline uint64_t sim_ms(uint64_t n)
{
	return n * SIM_MS;
}

/* sim_fault.c */
void sim_fault(struct sim *s, const struct sim_event *ev);

/* sim_scene.c */
void sim_faults_plan(struct sim *s);
/* Of a scene that is under way. False: it is something else. */
bool sim_scene(struct sim *s, const struct sim_event *ev);
/* The master is to die in the midst of this message to several hosts. Returns to how many it goes
 * nevertheless, the first ones. */
uint32_t sim_scene_witness(struct sim *s, struct sim_master *m, const struct ccm_action *done);

#endif
