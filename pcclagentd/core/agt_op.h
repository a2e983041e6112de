/* SPDX-License-Identifier: MIT
 *
 * The functions for operations that the agent core's files share. This is the second half of
 * agt_internal.h, which includes it.
 */
#ifndef AGT_OP_H
#define AGT_OP_H

#include "pcclagentd/core/agt_internal.h"

/* agt_submit.c */
void agt_submit(struct agt *a, const struct agt_event *ev);
/* Sends the vote of a collecting operation if it is complete. May free o. */
void agt_op_try_vote(struct agt *a, struct agt_op *o);
/* Sends the votes for o again, to the next master. */
void agt_op_resend_vote(struct agt *a, struct agt_op *o);
struct wm_op_params agt_sub_params(const struct shm_submission *s);
/* Can one vote stand for both submissions? */
bool agt_subs_agree(const struct shm_submission *x, const struct shm_submission *y);

/* agt_spec.c */
/* Stores the reserved number of this key's next attempt. bytes: the size of the last operand; the
 * next one is expected to have the same. */
void agt_spec_reserve(struct agt *a, struct agt_run *r, const struct agt_op_key *key,
	uint64_t bytes, const struct wm_op_done *m);
/* Drops the reserved numbers of the group under which nothing has started. */
void agt_spec_forget(struct agt *a, const struct agt_run *r, struct agt_group *g);
void agt_spec_forget_all(struct agt *a, const struct agt_run *r);
/* Starts the transfer of o, which is about to vote, if a speculative start is possible. */
void agt_spec_start(struct agt *a, struct agt_op *o, struct agt_group *g);
/* Rolls the speculative start of o back: o is VOTING, without a transfer, again. */
void agt_spec_rollback(struct agt *a, struct agt_op *o);
/* Rolls o back because its transfer cannot end, and reports the failure. If the master has counted
 * all votes, it aborts o; otherwise it will start o under another number. Returns the report. */
struct wm_op_report *agt_spec_failed(
	struct agt *a, struct agt_op *o, const struct cc_id *suspect, const char *why);
/* Returns the operation of this key that is voting and was rolled back under `seq`, or NULL. */
struct agt_op *agt_spec_rolled_back(struct agt_run *r, const struct agt_op_key *key, uint64_t seq);
/* Handles WM_OP_START for o with the number of its speculative start. */
void agt_spec_committed(struct agt *a, struct agt_op *o);

/* agt_waits.c */
/* Starts to watch o, which is new, for missing local members. */
void agt_waits_add(struct agt *a, struct agt_op *o);
void agt_waits_remove(struct agt *a, struct agt_op *o);
/* Have the submitters of o waited so long for the other local members that they now vote without
 * the others? */
bool agt_waits_enough(const struct agt *a, const struct agt_op *o);
/* Returns a local member that has not submitted o: the member that has been stopped for longest, or
 * any member if none is stopped. Returns NULL if there is no such member, or if o has started. */
const struct agt_comm *agt_waits_missing(const struct agt_op *o);
/* Writes the pid and the name of c's process to `buf`, and for how long it has been stopped, if it
 * is. */
const char *agt_process_name(const struct agt_comm *c, uint64_t now_ns, char *buf, size_t size);
void agt_waits_started(struct agt *a, const struct agt_op *o);
void agt_waits_tick(struct agt *a);
void agt_waits_set(struct agt *a, struct agt_run *r, const struct wm_waits *m);
/* Ends the record of a late vote: the vote has ended. */
void agt_waits_over(struct agt *a, struct agt_run *r, enum wire_ballot kind);
/* Forgets all that the last master has said about awaited and stopped peers of r. */
void agt_waits_forget(struct agt_run *r);
/* Tells the master whether c's process is stopped. */
void agt_tell_stopped(struct agt *a, const struct agt_comm *c);

/* agt_unmet.c */
/* Sends the votes that were held back for missing members of c's group, if all its members wait for
 * something. To be called when c starts to wait. */
void agt_stuck_look(struct agt *a, const struct agt_comm *c);
/* Returns enum wm_wait_for_kind: how the caller of `s` waits. */
uint32_t agt_stuck_kind(const struct shm_submission *s);
/* Returns enum wm_wait_for_kind for a vote: how the member waits; WM_WAIT_FOR_NONE if not all its
 * votes have been sent. */
uint32_t agt_stuck_said(const struct agt_op_member *m);
/* Reports to the master which members from `first` on wait. To be called after the vote for them.
 * said: the vote itself has reported that they wait. Then only members with several operations are
 * reported, because their other operations may have waited for this vote. */
void agt_stuck_voted(struct agt *a, const struct agt_op *o, bool said, uint32_t first);
void agt_stuck_asleep(struct agt *a, const struct agt_event *ev);
void agt_stuck_any(struct agt *a, const struct agt_event *ev);
void agt_unmet(struct agt *a, struct agt_run *r, const struct wm_unmet *m);

/* agt_view.c */
bool agt_op_has(const struct agt_op *o, const struct agt_comm *c);

/* agt_sync.c */
/* Starts the job of o, which was VOTING and has its seq. */
void agt_sync_start(struct agt *a, struct agt_op *o, const struct wm_op_start *m);
/* Handles the success of o. o ends when no thread uses its memory any more. */
void agt_sync_won(struct agt *a, struct agt_op *o, uint64_t revision);
/* Sets the lowest revision that the group's next synchronization can have. */
void agt_revision_set(struct agt_run *r, uint32_t group, uint64_t revision);
/* Takes m out of o, which has a job. */
void agt_sync_drop(struct agt *a, struct agt_op *o, struct agt_op_member *m, enum agt_exit how,
	const struct agt_end_status *v);
/* Sends the reports for o again, to the next master. */
void agt_sync_resend_report(struct agt *a, struct agt_op *o);
void agt_sync_done(struct agt *a, const struct agt_event *ev);
void agt_sync_dropped(struct agt *a, const struct agt_event *ev);
void agt_sync_cancelled(struct agt *a, const struct agt_event *ev);
void agt_sync_tick(struct agt *a, struct agt_run *r);

/* agt_op.c */
static inline struct agt_op_key agt_op_key(uint32_t group, uint64_t tag, bool is_sync)
{
	return (struct agt_op_key){.tag = tag, .group = group, .is_sync = is_sync};
}
struct agt_op *agt_op_find(struct agt_op *head, const struct agt_op_key *key);
struct agt_op *agt_op_by_seq(struct agt_run *r, uint64_t seq);
#define AGT_OP_NAME 64
/* Writes the name of o to `buf`: "tag 7 of group 0" or "the synchronization of group 0". */
const char *agt_op_name(const struct agt_op *o, char *buf, size_t size);
struct agt_op *agt_op_new(
	struct agt *a, struct agt_run *r, const struct agt_group *g, const struct agt_op_key *key);
/* Adds c's submission to o. refusal: why c cannot take part, if s->refused. */
void agt_op_add(struct agt *a, struct agt_op *o, struct agt_comm *c, const struct shm_submission *s,
	const struct agt_end_status *refusal);
/* Does the operation send to this agent, or receive from it (inbound)? */
bool agt_op_uses(const struct agt_op *o, const struct cc_id *peer, bool inbound);
/* Returns NULL, or why o cannot start on this host now. *suspect: the agent that probably causes
 * this, or NULL. */
const char *agt_op_cannot_start(
	struct agt_op *o, const struct agt_group *g, const struct cc_id **suspect);
/* Starts the transfer of o, which has its seq and epoch and can start. */
void agt_op_xfer_start(struct agt *a, struct agt_op *o, const struct agt_group *g);
/* Ends o: completes its members, with success if v is NULL, and frees it. */
void agt_op_end(struct agt *a, struct agt_op *o, const struct agt_end_status *v);
/* Completes one member's call. The member is not used any more, and its communicator may be freed.
 */
void agt_op_complete(struct agt *a, const struct agt_op *o, struct agt_op_member *m,
	const struct agt_end_status *v);
/* Cancels the transfer or job of o. o ends when the engine has released the memory. */
void agt_op_cancel(struct agt *a, struct agt_op *o);
/* Records that m takes no part in o any more. The transfer of o goes on. */
void agt_op_member_out(struct agt_op_member *m, enum agt_exit how, const struct agt_end_status *v);
/* Removes the members that take no part any more (`out`) from o, which has no transfer any more. */
void agt_op_drop_out(struct agt *a, struct agt_op *o);
uint32_t agt_op_members_in(const struct agt_op *o);
struct wm_op_report *agt_op_report(struct agt *a, struct agt_run *r, uint64_t seq,
	const struct cc_id *suspect, const char *failure);
/* Returns the code of WM_OP_REPORT for a failure with this code: 0 if a peer or a link is lost. */
static inline uint32_t agt_own_code(uint32_t code)
{
	return code == WIRE_RANK_CONNECTION_LOST ? 0 : code;
}
/* Reports the failure of o on this host to the master, which will abort o. */
void agt_op_failed(struct agt *a, struct agt_op *o, const struct cc_id *suspect, uint32_t code,
	const char *why);
/* Ends the operations of c, which is not in its run any more. */
void agt_op_drop_comm(
	struct agt *a, struct agt_comm *c, enum agt_exit how, const struct agt_end_status *v);
void agt_op_start(struct agt *a, struct agt_run *r, const struct wm_op_start *m);
void agt_op_abort(struct agt *a, struct agt_run *r, const struct wm_op_abort *m);
void agt_op_done(struct agt *a, struct agt_run *r, const struct wm_op_done *m);
void agt_op_xfer_done(struct agt *a, const struct agt_event *ev);
void agt_op_xfer_cancelled(struct agt *a, const struct agt_event *ev);
void agt_op_xfer_standstill(struct agt *a, const struct agt_event *ev);
/* Handles the end of a link for the operations that use it. */
void agt_op_link_down(struct agt *a, struct agt_run *r, const struct agt_event *ev);
/* Sends all that the next master must know about o. */
void agt_op_tell(struct agt *a, struct agt_op *o);
void agt_op_free(struct agt *a, struct agt_op *o);

#endif
