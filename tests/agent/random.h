/* SPDX-License-Identifier: MIT
 *
 * The view of random events around an agent: what the agent has promised to those around it.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include "tests/agent/fixture.h"

#define SESSIONS 4u
#define COMMS    128u /* communicator ids are taken modulo this */
#define PEERS    48u
#define XFERS    256u
#define RUNS     1024u
#define LINKS    4u

struct xfer {
	uint64_t seq;
	uint32_t run;
	bool live, done, ok, cancel, cancelled;
	bool is_sync, won; /* a job; the master said that it has succeeded */
	uint32_t n;
	uint32_t comm[8], slot[8];
	bool drop[8], dropped[8]; /* a job's member: asked for, done */
};

struct peer { /* as the master knows it */
	bool in;
	uint32_t run, group;
	struct cc_id id;
};

struct run {
	bool open, connecting, up, acked, ready, closed;
	struct cc_id id;
	uint64_t term, topo_ballot, pending_ballot;
	uint8_t links[LINKS]; /* 0 none, 1 opening, 2 up */
	uint64_t round, seq, epoch;
	uint64_t generation[2], vote_generation;
	uint32_t vote_group;
	uint64_t vote_tag;
	bool vote_is_sync;
	bool reported; /* the last round, as good */
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
	uint32_t jobs, won, drops, failures; /* of synchronizations */
};

static inline uint32_t rnd(struct rnd_run *w, uint32_t n)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return (uint32_t)((w->rng >> 11) % n);
}

/* One event; all that the agent does is held against the model. */
void rw_step(struct rnd_run *w, const struct agt_event *ev);
/* One of the last runs, and its number in *ret; NULL when it is not open. */
struct run *rw_run(struct rnd_run *w, uint32_t *ret);
/* The master of some run does something. */
void rw_master(struct rnd_run *w);

#endif
