/* SPDX-License-Identifier: MIT
 *
 * Synchronizations of shared state, and the revisions that groups expect. For files of the core
 * only.
 *
 * A synchronization is an operation (struct ccm_op) with a struct ccm_sync. Until it starts, each
 * vote is kept as it came. The election (ccm_elect.h) is held once, at the start. Its losers are
 * kicked; all other peers have the elected contents or receive them.
 */
#ifndef CCM_SYNC_H
#define CCM_SYNC_H

#include "ccoip-masterd/core/ccm_elect.h"
#include "ccoip-masterd/core/ccm_internal.h"

struct ccm_sync_peer {
	struct wm_sync_vote vote;
	bool holder; /* once started: it has the elected contents; else it is a receiver */
	/* The synchronization continues without this peer: its agent is gone, but had reported, so
	 * the peer has all contents. When it comes back, it asks for the outcome, or its agent
	 * votes again. */
	bool disconnected;
};

struct ccm_sync {
	struct ccm_sync_peer *sync_peers; /* of the peers that have voted; by peer slot */
	uint32_t n_sync_peers;
	uint64_t bytes; /* of all tensors of the peer that voted first */
	/* once started: the elected contents */
	uint64_t revision;
	uint32_t hash_type;
	struct wm_digest keys, content;
	struct ccm_ask *asks; /* queries for its outcome, from disconnected peers that are back */
};

/* The revision that a group expects. It outlives the group's members. */
struct ccm_revision {
	uint32_t group;
	uint64_t expected; /* the next revision; 0 (only while recovering): any will do */
	uint64_t view_id;  /* while recovering: the id of the view that contained the revision */
	bool lost;         /* since the last synchronization a member was lost without a leave */
	bool over;         /* the last member has left by itself; this is not settled yet */
	UT_hash_handle hh; /* in ccm->revisions */
};

/* ccm_sync.c */
/* Makes room for n peers. */
void ccm_sync_room(struct ccm_sync *y, uint32_t n);
struct ccm_sync *ccm_sync_new(const struct wm_sync_vote *first);
void ccm_sync_free(struct ccm_sync *y);
/* Must o wait? A synchronization and other operations of the same group exclude each other. */
bool ccm_sync_excludes(const struct ccm_op *o);
/* Starts o, which has all votes: elects, kicks and sends the start. May free o. */
void ccm_sync_start(struct ccm *m, struct ccm_op *o);
/* Removes p, an accepted peer that is lost, from the synchronization of its group. The votes of
 * other peers stay valid. */
void ccm_sync_lost(struct ccm *m, struct ccm_peer *p, const char *why);
/* Continues or ends the synchronization of g after losses of g were announced. `loss`: a sentence
 * about them. */
void ccm_sync_settle(struct ccm *m, struct ccm_group *g, const char *loss);
/* Handles the report of an agent that has a part in o: kicks the peers that have failed. */
void ccm_sync_report(
	struct ccm *m, struct ccm_agent *a, struct ccm_op *o, const struct wm_op_report *r);
/* Handles the success of o: raises the revision that the group expects, and tells the agents. */
void ccm_sync_done(struct ccm *m, const struct ccm_op *o);
/* Does o, which has started, still have a peer that has the elected contents and sends them? */
bool ccm_sync_has_holder(const struct ccm_op *o);

/* ccm_sync_disconnect.c: members whose agents are gone */
/* Handles the end of the connection of s's agent. Returns false if the synchronization cannot
 * continue. */
bool ccm_sync_disconnected(struct ccm *m, struct ccm_membership *s);
bool ccm_sync_is_disconnected(const struct ccm_op *o, const struct ccm_peer *p);
uint32_t ccm_sync_count_disconnected(const struct ccm_op *o);
/* Forgets p's query, because p's agent is gone again. The next agent repeats the query. */
void ccm_sync_unask(struct ccm_op *o, const struct ccm_peer *p);
/* Takes p's query for outcomes. Returns true if one of the attempts is still in progress: then the
 * query is answered when that attempt ends. */
bool ccm_sync_ask(const struct ccm_peer *p, const struct wm_op_query *q);
/* Answers the queries that wait for o, which has ended. */
void ccm_sync_answer(struct ccm *m, struct ccm_op *o);
/* Handles a vote from an agent that comes back and is in the attempt v->seq. Returns true if the
 * attempt is still in progress and has the agent's peers again. */
bool ccm_sync_rejoin(struct ccm *m, const struct ccm_agent *a, const struct wm_op_vote *v);

/* Continues the attempt o, which was collected from snapshots, under the number that it had. `told`
 * contains the elected contents. Peers that do not know of the start receive it, or are kicked. */
void ccm_sync_readopt(struct ccm *m, struct ccm_op *o, const struct wm_op_vote *told);

/* ccm_revision.c */
struct ccm_revision *ccm_revision_find(const struct ccm *m, uint32_t group);
/* Returns the revision that g expects; 0: any will do. */
static inline uint64_t ccm_revision_of(const struct ccm_group *g)
{
	return g->last ? g->last->expected : 0;
}
/* Raises the revision that the group expects to `expected`, if it is lower. */
void ccm_revision_raise(struct ccm *m, uint32_t group, uint64_t expected);
/* Records that a member of g is gone. `left`: the member has left by itself. */
void ccm_revision_left(struct ccm *m, struct ccm_group *g, bool left);
/* Forgets the revisions of groups whose run is over. */
void ccm_revisions_settle(struct ccm *m);
/* Learns revisions from the last view that was sent to `a`. The newest view counts, and a journal
 * is newer than views that were sent before it was written. An agent that was left out of later
 * rounds, or that has no members any more, does not count: the next run of its group may have begun
 * since. */
void ccm_revisions_learn(struct ccm *m, const struct ccm_agent *a);
/* Learns revisions from an agent that comes after the recovery, for groups in which it has a member
 * and whose revision is unknown. The agent's revision does not count if a synchronization has
 * started, because the election was held without it. */
void ccm_revisions_add(struct ccm *m, const struct ccm_agent *a, const struct wm_view *w);
/* Forgets the revision of g, because nobody knows what g expects. */
void ccm_revision_forget(struct ccm *m, struct ccm_group *g);
/* Returns the revisions for the journal: *n entries, malloc'd. */
struct wj_revision *ccm_revision_list(const struct ccm *m, uint32_t *n);
void ccm_revisions_free(struct ccm *m);

#endif
