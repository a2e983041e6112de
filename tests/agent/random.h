/* SPDX-License-Identifier: MIT
 *
 * A world of random events around an agent, and a model of the promises that the agent makes to its
 * processes, its master and its engine.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include "tests/agent/fixture.h"

#define SESSIONS 4u
#define COMMS    128u /* communicator ids are taken modulo COMMS */
#define PEERS    48u
#define XFERS    256u
#define RUNS     1024u
#define LINKS    4u

struct xfer {
	uint64_t seq;
	uint32_t run;
	bool live, done, ok, cancel, cancelled;
	bool is_sync, won; /* a synchronization; the master has reported its success */
	uint32_t n;
	uint32_t comm[8], slot[8];
	/* For each member of a synchronization: the agent has asked for its release (drop), the
	 * engine has released it (dropped). */
	bool drop[8], dropped[8];
};

struct peer { /* a peer as the master knows it */
	bool in;
	uint32_t run, group;
	struct cc_id id;
};

struct run {
	bool open, connecting, up, acked, ready, closed;
	struct cc_id id;
	uint64_t term, ballots[WIRE_BALLOTS];
	uint8_t links[LINKS]; /* 0 none, 1 opening, 2 up */
	uint64_t round, seq, epoch;
	uint64_t generation[2], vote_generation;
	uint32_t vote_group;
	uint64_t vote_tag;
	bool vote_is_sync;
	bool reported;                  /* the agent has reported success for the last round */
	uint64_t measure, last_measure; /* the measurement that goes on, or 0; the last order */
	uint32_t n_to;                  /* results that the measurement still has to have */
};

struct comm {
	bool alive;
	uint32_t id, session;
	bool busy[SHM_SLOTS];
};

struct rnd_run {
	struct fx *f;
	uint64_t rng;
	bool session[SESSIONS + 1];
	uint32_t waiting[SESSIONS + 1]; /* requests without a reply */
	struct comm comms[COMMS];
	struct peer peers[PEERS];
	unsigned next_id;
	struct run runs[RUNS];
	uint32_t last_run;
	struct xfer xfers[XFERS];
	uint32_t completions, successes, starts, resumptions, attached;
	uint32_t jobs, won, drops, failures; /* counts of synchronizations */
	uint32_t measured, unmeasured;       /* results of measurements that are ok, and others */
};

static inline uint32_t rnd(struct rnd_run *w, uint32_t n)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return (uint32_t)((w->rng >> 11) % n);
}

/* Sends one event. Checks all actions of the agent against the model. */
void rw_step(struct rnd_run *w, const struct agt_event *ev);
/* Chooses one of the last runs and stores its number in *ret. Returns NULL if the run is not
 * open. */
struct run *rw_run(struct rnd_run *w, uint32_t *ret);
/* Lets the master of some run do something at random. */
void rw_master(struct rnd_run *w);

#endif
