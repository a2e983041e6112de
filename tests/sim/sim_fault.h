/* SPDX-License-Identifier: MIT
 *
 * Faults. sim_scene.c chooses their times, sim_fault.c carries them out.
 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include "tests/sim/sim.h"

enum sim_fault {
	FAULT_KILL_PROC,
	FAULT_STOP_PROC, /* for `gen` ms */
	FAULT_RUN_PROC,
	/* `gen` processes of one host die: of this host, or of the next host that has so many */
	FAULT_DEATHS,
	/* inbound: the agent is told to end; a new agent starts after `gen` ms; 0: never */
	FAULT_KILL_AGENT,
	FAULT_START_AGENT,
	FAULT_KILL_HOST,
	FAULT_BREAK_LINK,
	FAULT_BLOCK,
	FAULT_UNBLOCK,
	FAULT_PAIR, /* the hosts `host` and `link` receive nothing from each other */
	FAULT_UNPAIR,
	FAULT_CUT,       /* a connection breaks, and both ends see this */
	FAULT_HALF_OPEN, /* a connection breaks, and at most one end sees this */
	FAULT_PART,      /* the host cannot reach the master's address */
	FAULT_UNPART,
	FAULT_CUT_OFF, /* the master loses all hosts for `gen` ms */
	FAULT_FREEZE,  /* for `gen` ms */
	FAULT_SLOW,
	FAULT_FREEZE_MASTER,
	FAULT_KILL_MASTER, /* a new one starts at `addr` after `gen` ms; 0: never */
	FAULT_START_MASTER,
	FAULT_SET_MASTER, /* the host is told that the master moved from `addr` to `link` */
	/* the master is frozen, a new one takes over, then the old one continues */
	FAULT_STALE,
	FAULT_REFUSE,
	FAULT_ACCEPT,
	FAULT_VOTER, /* a voter dies while another is late and the master cannot be reached */
	/* the master loses all hosts but one, whose peers go on; then the master and this host's
	 * agent die */
	FAULT_REST,
	FAULT_REST_LATE, /* a program on that host begins late */
	/* the master dies after it has told only some hosts of a success; then these hosts are
	 * often cut off */
	FAULT_WITNESS,
	FAULT_STARTING,  /* the master dies after it has told only some hosts to start an operation
			  */
	FAULT_ROUTED,    /* the link `link` with this `gen` carries an operation, and is reset */
	FAULT_MESH,      /* a fault while a host has not opened its links to all hosts yet */
	FAULT_SLOW_LINK, /* the scene of sim_slow.c goes on */
	FAULT_DOOMED, /* the agent dies or is cut off soon after it has connected to the master */
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

/* sim_slow.c */
void sim_slow_go(struct sim *s, const struct sim_event *ev);

/* sim_scene.c */
void sim_faults_plan(struct sim *s);
/* Handles a fault that belongs to a scene. Returns false if `ev` is another fault. */
bool sim_scene(struct sim *s, const struct sim_event *ev);
/* The master is to die while it sends this message to several hosts. Shuffles the hosts. Returns
 * how many of them, from the first one on, still get the message. */
uint32_t sim_scene_witness(struct sim *s, struct sim_master *m, const struct ccm_action *done);
/* The same for the start of an operation. */
uint32_t sim_scene_starting(struct sim *s, struct sim_master *m, const struct ccm_action *start);

#endif
