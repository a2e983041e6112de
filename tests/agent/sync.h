/* SPDX-License-Identifier: MIT
 *
 * Synchronizations of group 7 in run 1, for the tests of the agent's core: the submissions of
 * processes, the messages of the master and the events of the engine.
 */
#ifndef TESTS_AGENT_SYNC_H
#define TESTS_AGENT_SYNC_H

#include "tests/agent/fixture.h"

/* Returns a candidate with the strategy enforce-popular. Its keys digest is 33, 34. */
struct wm_sync_vote sy_candidate(uint64_t revision, uint64_t content);
/* Submits in slot 20, or in the given slot. */
void sy_submit(struct fx *f, uint32_t comm, const struct wm_sync_vote *candidate);
void sy_submit_slot(
	struct fx *f, uint32_t comm, uint32_t slot, const struct wm_sync_vote *candidate);
/* Submits the same candidate from each of n communicators. */
void sy_candidate_all(
	struct fx *f, const uint32_t *comms, unsigned n, uint64_t revision, uint64_t content);
/* Lets the master start the synchronization. In `roles`, "1H2R" means that peer 1 is a holder and
 * peer 2 a receiver. The elected content is 1. Agent fx_id(100) has two holders, agent fx_id(101)
 * has a receiver. */
void sy_start(struct fx *f, uint64_t seq, uint64_t revision, const char *roles);
void sy_abort(struct fx *f, uint64_t seq); /* if `seq` is 0, the votes are aborted */
void sy_op_done(struct fx *f, uint64_t seq, uint64_t revision);
void sy_kick(struct fx *f, unsigned peer, const char *text); /* with pcclInvalidUsage */
/* Sends a view in which the group has three peers and generation 0. */
void sy_view_revision(struct fx *f, uint64_t revision);
/* Lets the engine finish its part. */
void sy_done(struct fx *f, uint64_t seq);
/* Lets the engine finish with a failure. If `comm` is not 0, this member has failed. If `code` is
 * 0, the rest of the job is done, otherwise the job has failed as a whole. */
void sy_failed(struct fx *f, uint64_t seq, uint32_t comm, const char *text, uint32_t code);
void sy_dropped(struct fx *f, uint64_t seq, uint32_t comm);
/* Lets the engine confirm the cancel. comms[i] has sent 1000 + i bytes and received 2000 + i. */
void sy_cancelled(struct fx *f, uint64_t seq, const uint32_t *comms, unsigned n);
/* Sends OP_DONE and lets the engine confirm the cancel that follows. */
void sy_finish(struct fx *f, uint64_t seq, uint64_t revision);
/* Lets the next master take the run over. */
void sy_resume(struct fx *f);

#endif
