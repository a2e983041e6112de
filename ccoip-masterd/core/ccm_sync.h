/* SPDX-License-Identifier: MIT
 *
 * Synchronizations of shared state, and the revisions that groups expect. For the core's own files.
 *
 * A synchronization is an operation (struct ccm_op) with a struct ccm_sync. Before it starts, each
 * vote is kept as it is; the election (ccm_elect.h) is held when it starts, and what it comes to is
 * never asked for again: those who go are out, those who stay have or get what was elected.
 */
#ifndef CCM_SYNC_H
#define CCM_SYNC_H

#include "ccoip-masterd/core/ccm_elect.h"
#include "ccoip-masterd/core/ccm_internal.h"

struct ccm_sync_peer {
	struct wm_sync_vote vote;
	bool holder; /* it has started: of what was elected; else a receiver */
	/* It goes on without this peer, whose agent is gone, and had reported: the peer has all of
	 * it, and asks for its end when it is back, if it is not voting again. */
	bool disconnected;
};

struct ccm_sync {
	struct ccm_sync_peer *sync_peers; /* by peer slot: of those that have voted */
	uint32_t n_sync_peers;
	uint64_t bytes; /* of all tensors of the first one that voted */
	/* it has started: what was elected */
	uint64_t revision;
	uint32_t hash_type;
	struct wm_digest keys, content;
	struct ccm_ask *asks; /* of peers that are disconnected: for its end */
};

/* What a group has got to. It outlives its members. */
struct ccm_revision {
	uint32_t group;
	uint64_t expected; /* the next one; 0, only while recovering: any will do */
	uint64_t view_id;  /* while recovering: of the view that said so */
	bool lost;         /* since the last one a member was lost and had not left */
	bool over;         /* the last member left by itself: to be settled */
	bool unhashed;
	UT_hash_handle hh; /* in ccm->revisions */
};

/* ccm_sync.c */
/* Room for so many peers; false without memory. */
bool ccm_sync_room(struct ccm_sync *y, uint32_t n);
struct ccm_sync *ccm_sync_new(struct ccm *m, const struct wm_sync_vote *first);
void ccm_sync_free(struct ccm_sync *y);
/* Is o in the way of a synchronization, or one of them in o's? */
bool ccm_sync_excludes(const struct ccm_op *o);
/* o has all votes: elects, kicks, starts. May free o. */
void ccm_sync_start(struct ccm *m, struct ccm_op *o);
/* p, which had been accepted, is lost: so is its vote, and the others' are as good as before. */
void ccm_sync_lost(struct ccm *m, struct ccm_peer *p, const char *why);
/* Losses of g have been told, which do not abort what has started: what follows for it. */
void ccm_sync_settle(struct ccm *m, struct ccm_group *g, const char *loss);
/* A report of an agent that has a part in o, with peers that have failed. */
void ccm_sync_report(
	struct ccm *m, struct ccm_agent *a, struct ccm_op *o, const struct wm_op_report *r);
/* All have reported: the group expects the next revision, and its agents are told. */
void ccm_sync_done(struct ccm *m, const struct ccm_op *o);
/* Is somebody left in o, which has started, who has what was elected and gives it to others? */
bool ccm_sync_has_holder(const struct ccm_op *o);

/* ccm_sync_disconnect.c: members whose agents are gone */
/* The agent of s is. False: what it had a part in cannot go on. */
bool ccm_sync_disconnected(struct ccm *m, struct ccm_membership *s);
bool ccm_sync_is_disconnected(const struct ccm_op *o, const struct ccm_peer *p);
uint32_t ccm_sync_count_disconnected(const struct ccm_op *o);
/* Its agent is gone again: the next one asks anew. */
void ccm_sync_unask(struct ccm_op *o, const struct ccm_peer *p);
/* p asks how attempts have ended. True: one of them has not; it is answered when it has. */
bool ccm_sync_ask(struct ccm *m, const struct ccm_peer *p, const struct wm_op_query *q);
/* o has ended. */
void ccm_sync_answer(struct ccm *m, struct ccm_op *o);
/* An agent that comes back says that it is in the attempt v->seq. True: that goes on, and has its
 * peers again. */
bool ccm_sync_rejoin(struct ccm *m, const struct ccm_agent *a, const struct wm_op_vote *v);

/* o goes on under its number, after it was collected from what agents tell a new master; `told`
 * says what was elected. Who has not heard of the start gets it, or is kicked. */
void ccm_sync_readopt(struct ccm *m, struct ccm_op *o, const struct wm_op_vote *told);

/* ccm_revision.c */
struct ccm_revision *ccm_revision_find(const struct ccm *m, uint32_t group);
/* 0: any will do. */
static inline uint64_t ccm_revision_of(const struct ccm_group *g)
{
	return g->last ? g->last->expected : 0;
}
/* The group expects at least this one. */
void ccm_revision_raise(struct ccm *m, uint32_t group, uint64_t expected);
/* A member of g is gone; left: by itself. */
void ccm_revision_left(struct ccm *m, struct ccm_group *g, bool left);
/* Forgets those of groups whose run is over. */
void ccm_revisions_settle(struct ccm *m);
/* Learns from what an agent was told of them last. The newest word counts, and a journal is newer
 * than what was told before it was written. An agent that was left out of later rounds, or has no
 * members any more, knows nothing: the next run of a group may have begun anew since. */
void ccm_revisions_learn(struct ccm *m, const struct ccm_agent *a);
/* Of an agent that says after the recovery what it was told: where we know nothing, and it has a
 * member, its word counts. A synchronization that runs has been elected without it. */
void ccm_revisions_add(struct ccm *m, const struct ccm_agent *a, const struct wm_view *w);
/* It is not known what the group expects. */
void ccm_revision_forget(struct ccm *m, struct ccm_group *g);
/* What a journal has of them: *n entries, malloc'd; NULL without memory. */
struct wj_revision *ccm_revision_list(struct ccm *m, uint32_t *n);
void ccm_revisions_free(struct ccm *m);

#endif
