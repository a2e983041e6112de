/* SPDX-License-Identifier: MIT
 *
 * Functions that the files of the master core share, for connection rounds, newcomers, and the
 * order of rings. See ccm_internal.h, which includes this.
 */
#ifndef CCM_ROUNDS_H
#define CCM_ROUNDS_H

#include "ccoip-masterd/core/ccm_run.h"

/* ccm_round.c */
/* Handles the report of `a` that a link was lost, at least at one end. */
void ccm_link_lost(struct ccm *m, struct ccm_agent *a, const struct wm_link_lost *l);
/* Counts a break: a's part of an operation of g failed because of its link with `other`. If the two
 * are not neighbours in the ring, nothing is counted. */
void ccm_link_failed(struct ccm *m, const struct ccm_group *g, struct ccm_agent *a,
	struct ccm_agent *other, const char *text);
void ccm_round_report(struct ccm *m, struct ccm_agent *a, const struct wm_round_report *r);
void ccm_round_tick(struct ccm *m);
/* Starts a WM_COMMIT to `a` that keeps its rings, with `accept` set. The caller may change the
 * message. */
struct wm_commit *ccm_commit_new(struct ccm *m, struct ccm_agent *a, const struct wm_view *totals);
/* Sends a WM_COMMIT to `a`. Agents for which its contents are equal share one message: c is the
 * result of the previous call, or NULL in the first call. Nothing else may be sent between these
 * calls. */
struct wm_commit *ccm_commit_to(struct ccm *m, struct ccm_agent *a, const struct wm_view *totals,
	bool accept, struct wm_commit *c);
/* Returns an agent that is still sending its snapshot, or NULL. No round begins before the snapshot
 * ends, because the agent expects to find all accepted peers in the rings. */
const struct ccm_agent *ccm_round_waits(const struct ccm *m);
/* Begins, ends or drops a round if it is time. Returns true if the caller must handle newcomers
 * and losses again, and then call this function again. */
bool ccm_round_settle(struct ccm *m);
static inline bool ccm_in_round(const struct ccm *m, uint64_t round)
{
	return m->round.active && round == m->last_round;
}

/* ccm_mesh.c */
bool ccm_mesh_is_wanted(const struct ccm *m, uint32_t hosts);
/* Returns the route that an operation takes if it starts now. */
enum cc_algo ccm_mesh_route(const struct ccm *m, const struct ccm_op *o);
void ccm_mesh_report(struct ccm *m, struct ccm_agent *a, const struct wm_mesh *x);
/* The ring of g is replaced. */
void ccm_mesh_reset(struct ccm_group *g);
/* Is there a link from s to the agent `to` that a mesh in use contains? */
bool ccm_mesh_leads_to(
	const struct ccm *m, const struct ccm_membership *s, const struct ccm_agent *to);
/* The link from a host to the agent `to` is lost. Returns true if the link is part of a mesh. */
bool ccm_mesh_lost(struct ccm *m, struct ccm_membership *from, struct ccm_agent *to,
	const struct wm_link_lost *l);
/* Orders `from` to open the link to `to` again, because `to` has lost it. */
void ccm_mesh_reopen(struct ccm *m, struct ccm_agent *from, const struct ccm_agent *to);
/* Adds the other hosts of the planned ring of s to a round, whose other rings have n of them. */
void ccm_mesh_fill(
	const struct ccm *m, const struct ccm_membership *s, uint32_t n, struct wm_ring *r);

/* ccm_plan.c */
/* Sorts the memberships for the planned ring, if a plan is proposed. */
void ccm_plan_sort(const struct ccm_group *g, struct ccm_membership **v, uint32_t n);
/* Finds the rings of the plan that the planned ring allows. */
void ccm_plan_next(struct ccm *m, struct ccm_group *g);
/* Adds the planned rings to the round message to the agent of s. */
void ccm_plan_fill(const struct ccm_membership *s, struct wm_ring *r);
/* Is the agent the next one after s in one of the planned rings of the plan? */
bool ccm_plan_is_next(const struct ccm_membership *s, const struct cc_id *agent);
/* The planned ring of g is in force. `changed`: it is another one than before. */
void ccm_plan_commit(struct ccm *m, struct ccm_group *g, bool changed);
/* May a ring of the plan in force use the link between these positions? */
bool ccm_plan_leads(const struct ccm_group *g, uint32_t from, uint32_t to);
/* Are all links of the rings in force up? */
bool ccm_plan_is_up(const struct ccm_group *g);
/* Are the hosts of the ring those of the last problem, of which this is a solution? */
bool ccm_plan_fits(const struct ccm *m, const struct ccm_group *g, const struct ccm_solution *x);
/* Proposes a solution of the last problem. The next round puts it in force. Returns false if the
 * solution does not fit. */
bool ccm_plan_propose(struct ccm *m, struct ccm_group *g, const struct ccm_solution *x);
void ccm_plan_withdraw(struct ccm *m, struct ccm_group *g);
/* Takes the plan from a snapshot, after the ring was rebuilt. */
void ccm_plan_restore(struct ccm_group *g, const struct wm_plan *plan);
void ccm_plan_free(struct ccm_group *g);

/* ccm_newcomer.c */
/* Can a round admit the registered peers of s whose processes run, as far as is known? */
bool ccm_membership_ready(const struct ccm *m, const struct ccm_membership *s);
/* These functions count the registered peers that a round can admit: the first one those of s, the
 * second one those of the run. */
uint32_t ccm_membership_newcomers(const struct ccm *m, const struct ccm_membership *s);
uint32_t ccm_newcomers_ready(const struct ccm *m);
void ccm_newcomers_settle(struct ccm *m);
/* Writes what newcomers wait for when none of them is ready: stopped processes, probes and
 * times. */
void ccm_newcomers_name(const struct ccm *m, uint64_t now, char *text, size_t size);
void ccm_newcomer_tick(struct ccm *m);
void ccm_probed(struct ccm *m, const struct ccm_agent *a, const struct wm_probed *v);
void ccm_newcomer_joins(struct ccm *m, struct ccm_agent *a);
/* Forgets the probes of `a`, whose addresses have changed. */
void ccm_newcomer_moves(struct ccm *m, struct ccm_agent *a);
/* Records that newcomers of `a` could not be admitted, and sets the time of the next attempt.
 * `round`: members have waited for the failed round. */
void ccm_newcomer_failed(struct ccm *m, struct ccm_agent *a, bool round);
void ccm_newcomer_accepted(struct ccm *m, const struct ccm_membership *membership);
/* Was `a` admitted less than a minute ago? */
bool ccm_newcomer_on_trial(const struct ccm *m, const struct ccm_agent *a);
/* Records that members on `a` are kicked because of its connections. If they were admitted
 * recently, this counts as a failed round. */
void ccm_newcomer_put_out(struct ccm *m, struct ccm_agent *a);
/* Records that the round must begin again because of a newcomer in it. */
void ccm_round_spoilt(struct ccm *m);
/* Returns the time for which the round waits for a's report. */
uint32_t ccm_round_patience_ms(const struct ccm *m, const struct ccm_agent *a);
/* Returns the additional time of a round on slow paths: the round trips of a link between the two
 * agents that are farthest from the master, and of the report. */
uint32_t ccm_paths_ms(const struct ccm *m);
/* Turns failed probes between hosts that are members by now into doubtful pairs. Rings use these
 * only if no other ring is possible. */
void ccm_probes_keep(struct ccm *m);
/* Called when members s and t could not open their link. While the next ring is tried, probes other
 * links of the host that has more failures; or of both hosts, if they have equally many. */
void ccm_probe_around(
	struct ccm *m, const struct ccm_membership *s, const struct ccm_membership *t);
/* Has the last probe of this link failed? Always false between two members. */
bool ccm_probe_failed(
	const struct ccm *m, const struct ccm_membership *from, const struct ccm_membership *to);
/* Discards good probes of this pair, because the pair has failed since. */
void ccm_probes_void(struct ccm *m, uint64_t one, uint64_t other);
/* Marks all newcomers of g as not ready. Returns true if one of them was ready. */
bool ccm_newcomers_doubt(struct ccm_group *g);
void ccm_probes_forget(struct ccm *m, uint64_t agent_no);
void ccm_probes_free(struct ccm *m);

/* ccm_evict.c. Acts on the failures of the round: kicks peers or records failed pairs. */
void ccm_round_judge(struct ccm *m);
/* Writes the sentence for both hosts: host `from` could not reach host `to`, the cause (`text`),
 * and advice. `limit`: the cause is a limit that one of their agents has reached, and no advice is
 * given. `from` or `to` is NULL if its agent is gone. */
void ccm_reach_reason(char *dst, size_t size, const struct ccm_agent *from,
	const struct ccm_agent *to, bool limit, const char *text);
/* Kicks the memberships that are most at fault in the groups marked as failed: no ring of these
 * groups is possible, or (`late`) none was found in time. */
void ccm_groups_judge(struct ccm *m, bool late);
/* Kicks the members on `a`. */
void ccm_agent_put_out(struct ccm *m, struct ccm_agent *a, const char *reason);

/* ccm_breaks.c */
/* Counts a link that broke during operations of g. */
void ccm_break_count(struct ccm *m, const struct ccm_group *g, struct ccm_agent *from,
	struct ccm_agent *to, const char *text);
/* Takes back the last break between the two. Their next link has smaller segments, so this break
 * does not count against it. */
void ccm_break_is_mended(struct ccm *m, struct ccm_agent *from, struct ccm_agent *to);
/* Judges breaks when all links of the round are up again, so that both ends have reported. Returns
 * true if links break in each operation: their pairs count as failed from now on, or a newcomer
 * that has such links with several hosts was kicked. */
bool ccm_breaks_judge(struct ccm *m);
/* Forgets breaks of the links in o's ring, because these links have carried o, which is done. */
void ccm_breaks_over(struct ccm *m, const struct ccm_op *o);
void ccm_breaks_forget(struct ccm *m, uint64_t agent_no);
void ccm_breaks_free(struct ccm *m);

/* ccm_flaps.c */
/* Records that a call of a's peers has ended, which shows that the agent receives our messages. */
void ccm_flaps_over(struct ccm_agent *a);
/* Looks at a peer's vote. A higher ballot number than before shows that the agent received the end
 * of the last ballot. */
void ccm_flaps_vote(struct ccm_agent *a, const struct wm_ballot_vote *v);
/* Copies the counts of `from` to `a` when a peer moves there. */
void ccm_flaps_move(struct ccm_agent *a, const struct ccm_agent *from);
/* Counts the end of a's connection. Returns true if the agent is not waited for any more. */
bool ccm_flaps_count(struct ccm *m, struct ccm_agent *a);
/* Removes the agent, after ccm_flaps_count has returned true. */
void ccm_flaps_end(struct ccm *m, struct ccm_agent *a);

/* ccm_ring.c */
struct ccm_membership **ccm_memberships_new(uint32_t n);
/* Records that the link failed. Rings avoid the other direction as well, if they can. */
void ccm_pair_add(struct ccm *m, uint64_t from, uint64_t to, const char *text);
/* Records that nothing came through a link between the two. */
void ccm_pair_silent(struct ccm *m, uint64_t one, uint64_t other, const char *text);
/* Records that a probe of this direction has failed. */
void ccm_pair_doubtful(struct ccm *m, uint64_t from, uint64_t to, const char *text);
/* Is any trouble between the two known? */
bool ccm_pair_is_known(const struct ccm *m, uint64_t one, uint64_t other);
bool ccm_pair_has_failed(const struct ccm *m, uint64_t from, uint64_t to);
bool ccm_pair_is_silent(const struct ccm *m, uint64_t from, uint64_t to);
/* Records that the link is up. */
void ccm_pair_works(struct ccm *m, uint64_t from, uint64_t to);
void ccm_pairs_forget(struct ccm *m, uint64_t agent_no);
/* Marks the agent's failed pairs as silent, because its links may work again. Rings use silent
 * pairs only if no other ring is possible. */
void ccm_pairs_doubt(struct ccm *m, uint64_t agent_no);
/* Orders the memberships of v as a ring in ret without failed pairs, as close to the given order as
 * the search finds. If there is no such ring, untried pairs are used as well, then silent ones.
 * Returns false if this gives no ring either, or if m->ring_work is used up. */
bool ccm_ring_order(
	struct ccm *m, struct ccm_membership **v, uint32_t n, struct ccm_membership **ret);

/* ccm_tour.c */
/* Orders 0 .. n - 1 (n at least 3) in ret as a ring that begins with 0 and has no link for which
 * barred[from * n + to] is set. *work: how many looks at links the search may take; on return, how
 * many are left. Returns false if it found no ring. */
bool ccm_tour_find(const uint8_t *barred, uint32_t n, uint32_t *work, uint32_t *ret);
/* Is this work enough for a useful search among n hosts? */
bool ccm_tour_is_worth(uint32_t n, uint32_t work);

#endif
