/* SPDX-License-Identifier: MIT
 *
 * Functions that the files of the master core share, for agents that were disconnected, a run that
 * is taken over, and the journal. See ccm_internal.h, which includes this.
 */
#ifndef CCM_TAKEOVER_H
#define CCM_TAKEOVER_H

#include "ccoip-masterd/core/ccm_run.h"

/* ccm_disconnect.c */
/* The connection is gone; accepted peers may come back. */
void ccm_agent_disconnected(struct ccm *m, struct ccm_agent *a, const char *text);
void ccm_disconnected_tick(struct ccm *m);
/* Of a disconnected agent, which goes with its last one. */
void ccm_disconnected_remove(struct ccm *m, struct ccm_peer *p, const char *why);
/* A peer that is known comes by another connection. True: it was moved or turned away. */
bool ccm_peer_return(
	struct ccm *m, struct ccm_agent *a, struct ccm_peer *p, const struct wm_join *j);
/* A peer that says that it was accepted is not known. */
void ccm_peer_stranger(struct ccm *m, struct ccm_agent *a, const struct cc_id *peer);
void ccm_lost_note(struct ccm *m, const struct cc_id *peer);
void ccm_outcome_note(struct ccm_group *g, uint64_t seq, uint32_t code);
/* The code of an attempt that has ended; what nobody remembers has failed. */
uint32_t ccm_outcome_of(const struct ccm *m, const struct ccm_group *g, uint64_t seq);
bool ccm_outcome_is_known(const struct ccm *m, const struct ccm_group *g, uint64_t seq);
/* Attempts of a master before this one, of which only their peers may know. */
void ccm_seqs_learn(struct ccm *m, const struct wm_op_query *q);
void ccm_op_query(struct ccm *m, struct ccm_agent *a, const struct wm_op_query *q);
void ccm_op_outcomes(struct ccm *m, const struct ccm_peer *p, const struct wm_op_query *q);

/* ccm_resume.c */
/* After a good hello: whether a is of our run, who of us is stale, the answer. */
void ccm_resume_hello(struct ccm *m, struct ccm_agent *a);
/* p leaves its agent, which has said this. */
void ccm_snapshot_left(struct ccm_snapshot *t, const struct ccm_peer *p);
/* Still recovering: no longer, whoever has not come. */
void ccm_resume_end(struct ccm *m);
/* While recovering. True: the message, the join of an unknown peer, is dealt with. */
bool ccm_resume_msg(struct ccm *m, struct ccm_agent *a, const struct wm_msg *msg);
bool ccm_resume_join(struct ccm *m, struct ccm_agent *a, const struct wm_join *j);
/* While recovering: no other host is heard. Those that had come may come back. */
void ccm_resume_cut_off(struct ccm *m);
/* At the beginning of each step. */
void ccm_resume_step(struct ccm *m);
/* False: still recovering, nothing else is to be settled. */
bool ccm_resume_settle(struct ccm *m);
void ccm_resuming_set(struct ccm *m, struct ccm_agent *a, bool resuming);
/* Its agent is another one than before. */
void ccm_peer_restarted(struct ccm *m, struct ccm_peer *p);
struct ccm_snapshot *ccm_snapshot_get(struct ccm *m, struct ccm_agent *a); /* NULL without memory */
void ccm_snapshot_free(struct ccm_agent *a);
void ccm_merged(const struct ccm *m, struct ccm_merged *y);

/* ccm_lost_before.c */
/* A peer was in a commit that its agent, who has died, cannot tell of any more, and this agent
 * knows neither that one nor the round that led to it. */
bool ccm_snapshot_lags(const struct ccm *m, const struct ccm_snapshot *t);
/* The run has gone on without this agent: its peers were lost. */
bool ccm_snapshot_is_old(
	const struct ccm *m, const struct ccm_snapshot *t, const struct ccm_merged *y);
/* So many of a's accepted peers were lost, as they and others say themselves. */
uint32_t ccm_peers_lost_before(
	const struct ccm *m, const struct ccm_agent *a, const struct ccm_merged *y);
/* The round that newcomers of a were ready for was committed, and they have been lost since: they
 * are newcomers still. */
bool ccm_prepared_lost(const struct ccm *m, const struct ccm_agent *a);
/* Those who were lost are told so. */
void ccm_lost_before_drop(struct ccm *m, const struct ccm_merged *y);
/* Between these two only such peers go as the master before has lost. Where others were told of
 * that, it is not counted again: what they have begun since goes on. */
void ccm_lost_before_begin(struct ccm *m);
void ccm_lost_before_end(struct ccm *m);

/* ccm_restore.c */
/* All members; to be called before anything is sent that depends on them. */
void ccm_journal_members(struct ccm *m);
/* The losses since; likewise. */
void ccm_journal_lost(struct ccm *m);
void ccm_journal_note(struct ccm *m, const struct cc_id *peer); /* an accepted peer is lost */
void ccm_journal_void(struct ccm *m);                           /* it is nobody's run any more */
void ccm_restore_begin(struct ccm *m);                          /* in the first step */
void ccm_restore_outdated(struct ccm *m);
/* Begins again with what is known of the members, as if restored from a journal, in the same term:
 * no connection, no votes, no operations. gone: a connection that is closed already, or 0. why: for
 * the others. */
void ccm_restart(struct ccm *m, uint32_t gone, const char *why);
/* Likewise with nothing but the connections: nobody has joined by those that there are. Returns a's
 * place in it, or NULL without memory; a is gone. */
struct ccm_agent *ccm_yield_run(struct ccm *m, const struct ccm_agent *a);

/* ccm_over.c */
/* All peers are kicked, revisions forgotten. */
void ccm_run_reset(struct ccm *m, const char *why);
/* All agents are turned away. Those that are disconnected learn of it when they come back. */
void ccm_run_end(struct ccm *m, const char *why);
void ccm_run_end_go_on(struct ccm *m);

/* ccm_takeover.c */
void ccm_takeover(struct ccm *m);
/* So many numbers are left out: others may have used them. Masters that take over at the same time
 * leave different ones. */
uint64_t ccm_unheard(const struct ccm *m);
/* Unless it is a number that no honest one says. */
void ccm_at_least(uint64_t *v, uint64_t to);

/* ccm_takeover_op.c */
/* Adds what agents have told of outcomes, and of revisions, to what is known; and one that has gone
 * meanwhile. */
void ccm_outcomes_take(struct ccm *m);
void ccm_outcomes_keep(struct ccm *m, const struct ccm_agent *a);
/* Kicks a peer that comes when the recovery is over, by its own agent or by a new one, and was told
 * of a success that the others know as a failure. */
void ccm_outcomes_compare(struct ccm *m, struct ccm_agent *a, const struct wm_resume *r);
bool ccm_query_contradicts(const struct ccm_peer *p, const struct wm_op_query *q);
/* Kicks who has counted an attempt as failed that was done. */
void ccm_takeover_op_drop(struct ccm *m);
/* Which groups have a failure to be told of, before the view is. */
void ccm_takeover_op_judge(struct ccm *m);
/* Goes on with what can, and tells the ends of all others. */
void ccm_takeover_op_resolve(struct ccm *m);
/* Members of g are not here: lost, or with another master. */
bool ccm_group_has_lost(const struct ccm_group *g);

#endif
