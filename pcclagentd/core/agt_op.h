/* SPDX-License-Identifier: MIT
 *
 * Operations, for the agent core's own files: the second half of agt_internal.h, which includes it.
 */
#ifndef AGT_OP_H
#define AGT_OP_H

#include "pcclagentd/core/agt_internal.h"

/* agt_submit.c */
void agt_submit(struct agt *a, const struct agt_event *ev);
/* Sends the vote of a collecting operation that is complete. May free o. */
void agt_op_try_vote(struct agt *a, struct agt_op *o);
/* Votes for o once more, to the next master. */
void agt_op_resend_vote(struct agt *a, struct agt_op *o);
struct wm_op_params agt_sub_params(const struct shm_submission *s);
/* May they vote together? */
bool agt_subs_agree(const struct shm_submission *x, const struct shm_submission *y);

/* agt_spec.c */
/* The next attempt of this key, of so many bytes like the last one, has this number. */
void agt_spec_reserve(struct agt *a, struct agt_run *r, const struct agt_op_key *key,
	uint64_t bytes, uint64_t seq);
/* Numbers that nothing has begun under. */
void agt_spec_forget(struct agt *a, const struct agt_run *r, struct agt_group *g);
void agt_spec_forget_all(struct agt *a, const struct agt_run *r);
/* o is about to vote: its transfer begins if it may. */
void agt_spec_start(struct agt *a, struct agt_op *o, struct agt_group *g);
/* o is VOTING, without a transfer, again; it was speculative. */
void agt_spec_rollback(struct agt *a, struct agt_op *o);
/* The same, because its transfer cannot end. The master has counted all votes, and aborts it; or
 * else it will start it under another number. Returns the report. */
struct wm_op_report *agt_spec_failed(
	struct agt *a, struct agt_op *o, const struct cc_id *suspect, const char *why);
/* The operation that votes and was rolled back under this number, or NULL. */
struct agt_op *agt_spec_rolled_back(struct agt_run *r, const struct agt_op_key *key, uint64_t seq);
/* A master has started o under the number that it had begun under. */
void agt_spec_committed(struct agt *a, struct agt_op *o);

/* agt_waits.c */
/* Local members of o, which is new, are missing. */
void agt_waits_add(struct agt *a, struct agt_op *o);
void agt_waits_remove(struct agt *a, struct agt_op *o);
/* Have those who submitted o waited for the others here for so long that they vote without them? */
bool agt_waits_enough(const struct agt *a, const struct agt_op *o);
/* Of those here that have not submitted o, which has not started, the one that has been stopped for
 * longest, or any; or NULL. */
const struct agt_comm *agt_waits_missing(const struct agt_op *o);
/* "pid 7", and its name and for how long it has been stopped if it is. */
const char *agt_process_name(const struct agt_comm *c, uint64_t now_ns, char *buf, size_t size);
void agt_waits_started(struct agt *a, const struct agt_op *o);
void agt_waits_tick(struct agt *a);
void agt_waits_set(struct agt *a, struct agt_run *r, const struct wm_waits *m);
/* The vote has ended. */
void agt_waits_over(struct agt *a, const struct agt_run *r, struct agt_awaited *w);
/* What the last master has said of r's operations and votes. */
void agt_waits_forget(struct agt_run *r);
/* Tells the master whether c's process is stopped. */
void agt_tell_stopped(struct agt *a, const struct agt_comm *c);

/* agt_unmet.c */
/* c, or its process, waits for something from now on: votes that were kept back for it may go. */
void agt_stuck_look(struct agt *a, const struct agt_comm *c);
/* enum wm_wait_for_kind */
uint32_t agt_stuck_kind(const struct shm_submission *s);
/* Likewise of a member of an operation that votes, as far as the master is to know. */
uint32_t agt_stuck_said(const struct agt_op_member *m);
/* After a vote of the members from `first` on; said: it says of all of them that they wait. Tells
 * of those who do, and whose votes the master has all. */
void agt_stuck_voted(struct agt *a, const struct agt_op *o, bool said, uint32_t first);
void agt_stuck_asleep(struct agt *a, const struct agt_event *ev);
void agt_stuck_any(struct agt *a, const struct agt_event *ev);
void agt_unmet(struct agt *a, struct agt_run *r, const struct wm_unmet *m);

/* agt_view.c */
bool agt_op_has(const struct agt_op *o, const struct agt_comm *c);

/* agt_sync.c */
/* o, which was VOTING, has its seq. */
void agt_sync_start(struct agt *a, struct agt_op *o, const struct wm_op_start *m);
/* It has succeeded: it ends when no thread uses its memory any more. */
void agt_sync_won(struct agt *a, struct agt_op *o, uint64_t revision);
/* The next synchronization of group will have this revision, or a later one. */
void agt_revision_set(struct agt_run *r, uint32_t group, uint64_t revision);
/* m leaves o, which has a job. */
void agt_sync_drop(struct agt *a, struct agt_op *o, struct agt_op_member *m, enum agt_exit how,
	const struct agt_end_status *v);
/* Reports to the next master what was reported to the last one. */
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
/* "tag 7" or "the synchronization", of a group. */
const char *agt_op_name(const struct agt_op *o, char *buf, size_t size);
struct agt_op *agt_op_new(
	struct agt *a, struct agt_run *r, const struct agt_group *g, const struct agt_op_key *key);
/* 0, or CC_ERR_NOMEM. refusal: why it cannot take part, if s->refused. */
int agt_op_add(struct agt *a, struct agt_op *o, struct agt_comm *c, const struct shm_submission *s,
	const struct agt_end_status *refusal);
/* NULL, or why o cannot start here now. *suspect: who is the suspect for it. */
const char *agt_op_cannot_start(
	struct agt_op *o, const struct agt_group *g, const struct cc_id **suspect);
/* Of o, which has its seq and epoch, and can start. */
void agt_op_xfer_start(struct agt *a, struct agt_op *o, const struct agt_group *g);
/* Ends o: completes its members, with success when v is NULL, and frees it. */
void agt_op_end(struct agt *a, struct agt_op *o, const struct agt_end_status *v);
/* Completes one member, which is not to be used any more. Its communicator may be gone then. */
void agt_op_complete(struct agt *a, const struct agt_op *o, struct agt_op_member *m,
	const struct agt_end_status *v);
/* The engine lets go of the memory first; then the operation ends. */
void agt_op_cancel(struct agt *a, struct agt_op *o);
/* m leaves o, whose transfer goes on. */
void agt_op_member_out(struct agt_op_member *m, enum agt_exit how, const struct agt_end_status *v);
/* Members that are out leave o, which has no transfer any more. */
void agt_op_drop_out(struct agt *a, struct agt_op *o);
uint32_t agt_op_members_in(const struct agt_op *o);
struct wm_op_report *agt_op_report(struct agt *a, struct agt_run *r, uint64_t seq,
	const struct cc_id *suspect, const char *failure);
/* What OP_REPORT says of a failure with this code: 0 when a peer or a link is lost. */
static inline uint32_t agt_own_code(uint32_t code)
{
	return code == WIRE_RANK_CONNECTION_LOST ? 0 : code;
}
/* Tells the master that o failed here; it will abort it. */
void agt_op_failed(struct agt *a, struct agt_op *o, const struct cc_id *suspect, uint32_t code,
	const char *why);
/* c is not part of the run any more. */
void agt_op_drop_comm(
	struct agt *a, struct agt_comm *c, enum agt_exit how, const struct agt_end_status *v);
void agt_op_start(struct agt *a, struct agt_run *r, const struct wm_op_start *m);
void agt_op_abort(struct agt *a, struct agt_run *r, const struct wm_op_abort *m);
void agt_op_done(struct agt *a, struct agt_run *r, const struct wm_op_done *m);
void agt_op_xfer_done(struct agt *a, const struct agt_event *ev);
void agt_op_xfer_cancelled(struct agt *a, const struct agt_event *ev);
void agt_op_xfer_standstill(struct agt *a, const struct agt_event *ev);
/* The link to (or from) an agent broke. */
void agt_op_link_down(struct agt *a, struct agt_run *r, const struct agt_event *ev);
/* Tells the next master all that it must know of o. */
void agt_op_tell(struct agt *a, struct agt_op *o);
void agt_op_free(struct agt *a, struct agt_op *o);

#endif
