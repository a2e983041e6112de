/* SPDX-License-Identifier: MIT
 *
 * Synchronizations of group 7 of run 1, for the tests of the agent's core: what processes submit,
 * what the master says and what the engine answers.
 */
#ifndef TESTS_AGENT_SYNC_H
#define TESTS_AGENT_SYNC_H

#include "tests/agent/fixture.h"

/* Enforce-popular, keys 33, 34. */
struct wm_sync_vote sy_candidate(uint64_t revision, uint64_t content);
/* In slot 20, or another. */
void sy_submit(struct fx *f, uint32_t comm, const struct wm_sync_vote *candidate);
void sy_submit_slot(
	struct fx *f, uint32_t comm, uint32_t slot, const struct wm_sync_vote *candidate);
/* The same by each of n communicators. */
void sy_candidate_all(
	struct fx *f, const uint32_t *comms, unsigned n, uint64_t revision, uint64_t content);
/* roles: "1H2R": peer 1 is a holder, peer 2 a receiver. Content 1; agent fx_id(100) has two
 * holders, fx_id(101) a receiver. */
void sy_start(struct fx *f, uint64_t seq, uint64_t revision, const char *roles);
void sy_abort(struct fx *f, uint64_t seq); /* 0: of the votes */
void sy_op_done(struct fx *f, uint64_t seq, uint64_t revision);
void sy_kick(struct fx *f, unsigned peer, const char *text); /* pcclInvalidUsage */
/* The group has three peers and generation 0. */
void sy_view_revision(struct fx *f, uint64_t revision);
/* The engine has done its part. */
void sy_done(struct fx *f, uint64_t seq);
/* One member has failed; code 0: the rest is done, else the job as a whole failed. comm 0: nobody
 * by himself. */
void sy_failed(struct fx *f, uint64_t seq, uint32_t comm, const char *text, uint32_t code);
void sy_dropped(struct fx *f, uint64_t seq, uint32_t comm);
/* comms[i] has sent 1000 + i bytes and received 2000 + i. */
void sy_cancelled(struct fx *f, uint64_t seq, const uint32_t *comms, unsigned n);
/* OP_DONE, and the engine lets go. */
void sy_finish(struct fx *f, uint64_t seq, uint64_t revision);
/* The next master takes the run over. */
void sy_resume(struct fx *f);

#endif
