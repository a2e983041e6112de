/* SPDX-License-Identifier: MIT
 *
 * Functions that the files of the master core share, for disconnected agents, a run that is taken
 * over, and the journal. See ccm_internal.h, which includes this.
 */
#ifndef CCM_TAKEOVER_H
#define CCM_TAKEOVER_H

#include "ccoip-masterd/core/ccm_run.h"

/* ccm_disconnect.c */
/* Marks `a`, whose connection is gone, as disconnected. Its accepted peers may come back. */
void ccm_agent_disconnected(struct ccm *m, struct ccm_agent *a, const char *text);
void ccm_disconnected_tick(struct ccm *m);
/* Removes a peer of a disconnected agent. The agent is removed with its last peer. */
void ccm_disconnected_remove(struct ccm *m, struct ccm_peer *p, const char *why);
/* Handles a known peer that joins through another connection. Returns true if the peer was moved or
 * refused. */
bool ccm_peer_return(
	struct ccm *m, struct ccm_agent *a, struct ccm_peer *p, const struct wm_join *j);
/* Refuses a peer that claims to be accepted, but is unknown. */
void ccm_peer_stranger(struct ccm *m, struct ccm_agent *a, const struct cc_id *peer);
/* Remembers a lost peer, which is refused when it comes back. */
void ccm_gone_add(struct ccm *m, const struct cc_id *peer);
void ccm_outcome_note(struct ccm_group *g, uint64_t seq, uint32_t code);
/* Returns the code of an attempt that has ended. An attempt counts as failed if its outcome is
 * unknown. */
uint32_t ccm_outcome_of(const struct ccm *m, const struct ccm_group *g, uint64_t seq);
bool ccm_outcome_is_known(const struct ccm *m, const struct ccm_group *g, uint64_t seq);
/* Learns the numbers of attempts that an earlier master started. Only their peers may know them. */
void ccm_seqs_learn(struct ccm *m, const struct wm_op_query *q);
void ccm_op_query(struct ccm *m, struct ccm_agent *a, const struct wm_op_query *q);
void ccm_op_outcomes(struct ccm *m, const struct ccm_peer *p, const struct wm_op_query *q);

/* ccm_resume.c */
/* Handles a valid hello: finds whether `a` belongs to our run and whether this master is stale, and
 * answers. */
void ccm_resume_hello(struct ccm *m, struct ccm_agent *a);
/* Updates the snapshot of p's agent: p leaves. */
void ccm_snapshot_left(struct ccm_snapshot *t, const struct ccm_peer *p);
/* Ends the recovery, even if some agents have not come. */
void ccm_resume_end(struct ccm *m);
/* While recovering: the first function handles a message, the second one the join of an unknown
 * peer. Both return true if the caller has nothing more to do. */
bool ccm_resume_msg(struct ccm *m, struct ccm_agent *a, const struct wm_msg *msg);
bool ccm_resume_join(struct ccm *m, struct ccm_agent *a, const struct wm_join *j);
/* While recovering, when nothing is received from remote hosts: disconnects all remote agents. They
 * may come back. */
void ccm_resume_cut_off(struct ccm *m);
/* Begins the first step, and ends waits of the recovery whose time is over. Called at the beginning
 * of each step. */
void ccm_resume_step(struct ccm *m);
/* Returns false while recovering: then nothing else may be settled. */
bool ccm_resume_settle(struct ccm *m);
void ccm_resuming_set(struct ccm *m, struct ccm_agent *a, bool resuming);
/* Records that p has come through another agent than before. */
void ccm_peer_restarted(struct ccm *m, struct ccm_peer *p);
/* Finds or makes the snapshot of `a`. */
struct ccm_snapshot *ccm_snapshot_get(struct ccm_agent *a);
void ccm_snapshot_free(struct ccm_agent *a);
void ccm_returned(const struct ccm *m, struct ccm_returned *y);
/* While recovering: the newest view of any agent that has come, even if it is gone again; or, if no
 * agent knows a view, of any peer. It is in force, and what a peer knows beyond it is void. */
const struct ccm_newest *ccm_newest_view(const struct ccm *m);

/* ccm_lost.c */
/* Adds an accepted peer that is lost to the list for the agents. */
void ccm_lost_add(struct ccm *m, const struct cc_id *peer);
/* Writes the lost peers into a view for `a` that views have not named to it yet. */
void ccm_lost_name(struct ccm *m, struct ccm_agent *a, struct wm_view *w);
/* Records that a view with all lost peers was sent to `a`. */
void ccm_lost_named(const struct ccm *m, struct ccm_agent *a);
/* Do the lost peers in w, the last view that was made, also suit `a`? */
bool ccm_lost_named_alike(const struct ccm *m, const struct ccm_agent *a, const struct wm_view *w);
/* Empties the list: the takeover knows all members. Peers that come to a later master with an older
 * view than the present one were lost. */
void ccm_lost_restart(struct ccm *m);
/* Learns the lost peers that an agent knows. */
void ccm_lost_learn(struct ccm *m, const struct wm_view *w);
/* Counts the accepted peers of `a` that the last master had lost. */
uint32_t ccm_lost_count(const struct ccm *m, const struct ccm_agent *a);
/* Was the round committed that `a` had prepared with its newcomers, and has the run lost these
 * newcomers since? They do not know that they were members. */
bool ccm_prepared_lost(const struct ccm *m, const struct ccm_agent *a);
/* Kicks the peers that the last master had lost. */
void ccm_lost_before_drop(struct ccm *m);

/* ccm_restore.c */
/* Writes all members to the journal. Call it before anything is sent that depends on them. */
void ccm_journal_members(struct ccm *m);
/* Writes the losses since the last record. Call it before anything is sent that depends on them. */
void ccm_journal_lost(struct ccm *m);
void ccm_journal_note(struct ccm *m, const struct cc_id *peer); /* an accepted peer is lost */
void ccm_journal_void(struct ccm *m);  /* the run in it must not be restored */
void ccm_restore_begin(struct ccm *m); /* called in the first step */
void ccm_restore_outdated(struct ccm *m);
/* Restarts the run with the known members, in the same term, as if they were restored from a
 * journal. Connections, votes and operations are dropped. `gone`: a connection that is closed
 * already, or 0. `why`: the reason, for the other connections. */
void ccm_restart(struct ccm *m, uint32_t gone, const char *why);
/* Abandons the run and keeps only the connections. They have no peers any more. Returns the new
 * agent that replaces `a`; `a` is freed. */
struct ccm_agent *ccm_yield_run(struct ccm *m, const struct ccm_agent *a);

/* ccm_over.c */
/* Kicks all peers and forgets all revisions. */
void ccm_run_reset(struct ccm *m, const char *why);
/* Refuses all agents. Disconnected agents are refused when they come back. */
void ccm_run_end(struct ccm *m, const char *why);
void ccm_run_end_go_on(struct ccm *m);

/* ccm_takeover.c */
/* While recovering: learns from the proven snapshot of `a`. What is learned remains when `a` is
 * gone. */
void ccm_snapshot_learn(struct ccm *m, struct ccm_agent *a);
void ccm_takeover(struct ccm *m);
/* Returns how many numbers a takeover skips, because others may have used them. Masters that take
 * over at the same time skip different counts. */
uint64_t ccm_unheard(const struct ccm *m);
/* Raises *v to `to`, unless `to` is so high that no honest agent sends it. */
void ccm_at_least(uint64_t *v, uint64_t to);

/* ccm_takeover_op.c */
/* Stores the outcomes that an agent reports. */
void ccm_outcomes_learn(struct ccm *m, const struct wm_resume *r);
/* Stores the successes that a peer knows from an agent that is gone. */
void ccm_outcomes_asked(struct ccm *m, const struct wm_op_query *q);
/* Forgets what only peers know that are no members any more. A peer that was dropped because it
 * knows more than all agents does not count: its group goes on from the newest view. */
void ccm_outcomes_settle(struct ccm *m);
/* Kicks a peer that comes after the recovery, through its own agent or a new one, and was told of a
 * success that the others know as a failure. */
void ccm_outcomes_compare(struct ccm *m, struct ccm_agent *a, const struct wm_resume *r);
bool ccm_query_contradicts(const struct ccm_peer *p, const struct wm_op_query *q);
/* Finds the groups whose members must be told of a failure. Called before the view is sent. */
void ccm_takeover_op_judge(struct ccm *m);
/* Continues the attempts that can continue, and sends the outcomes of all others. */
void ccm_takeover_op_resolve(struct ccm *m);
/* Are members of g missing? They are lost, or with another master. */
bool ccm_group_has_lost(const struct ccm_group *g);

#endif
