/* SPDX-License-Identifier: MIT
 *
 * Functions that the files of the master core share, for connection rounds, newcomers, and the
 * order of rings. See ccm_internal.h, which includes this.
 */
#ifndef CCM_ROUNDS_H
#define CCM_ROUNDS_H

#include "ccoip-masterd/core/ccm_run.h"

/* ccm_round.c */
/* A link of a ring broke, for one of its ends at least. */
void ccm_link_lost(struct ccm *m, struct ccm_agent *a, const struct wm_link_lost *l);
/* a's part of an operation has failed by its link with the other one, which may be no neighbour. */
void ccm_link_failed(struct ccm *m, const struct ccm_group *g, struct ccm_agent *a,
	struct ccm_agent *other, const char *text);
void ccm_round_report(struct ccm *m, struct ccm_agent *a, const struct wm_round_report *r);
void ccm_round_tick(struct ccm *m);
/* A WM_COMMIT to a that keeps its rings and accepts. */
struct wm_commit *ccm_commit_new(
	struct ccm *m, const struct ccm_agent *a, const struct wm_view *totals);
/* To all that it is called for, one after the other: c is what it has returned, NULL at first.
 * Nothing else may be sent in between. */
struct wm_commit *ccm_commit_to(struct ccm *m, const struct ccm_agent *a,
	const struct wm_view *totals, bool accept, struct wm_commit *c);
/* The topology vote is answered: everybody may vote anew. */
void ccm_votes_clear(struct ccm *m);
/* True: look again. */
/* No round begins while an agent with state is still saying who its peers are: it expects to find
 * all that are accepted in the rings. NULL, or one that is waited for. */
const struct ccm_agent *ccm_round_waits(const struct ccm *m);
bool ccm_round_settle(struct ccm *m);
static inline bool ccm_in_round(const struct ccm *m, uint64_t round)
{
	return m->round.active && round == m->last_round;
}

/* ccm_newcomer.c */
/* Can a round admit s's registered peers, those that run, as far as is known? */
bool ccm_membership_ready(const struct ccm *m, const struct ccm_membership *s);
/* Registered peers that a round can admit: of s, and of all */
uint32_t ccm_membership_newcomers(const struct ccm *m, const struct ccm_membership *s);
uint32_t ccm_newcomers_ready(const struct ccm *m);
void ccm_newcomers_settle(struct ccm *m);
/* Names the open probes of newcomers, of which none is ready. */
void ccm_newcomers_name(const struct ccm *m, uint64_t now, char *text, size_t size);
void ccm_newcomer_tick(struct ccm *m);
void ccm_probed(struct ccm *m, const struct ccm_agent *a, const struct wm_probed *v);
void ccm_newcomer_joins(struct ccm *m, struct ccm_agent *a);
/* It is reached elsewhere from now on. */
void ccm_newcomer_moves(struct ccm *m, struct ccm_agent *a);
/* The newcomers of a could not be admitted. round: members have waited for that. */
void ccm_newcomer_failed(struct ccm *m, struct ccm_agent *a, bool round);
void ccm_newcomer_accepted(struct ccm *m, const struct ccm_membership *s);
/* Has it been a member for less than a minute? */
bool ccm_newcomer_on_trial(const struct ccm *m, const struct ccm_agent *a);
/* Peers of a were members, and are put out because of its connections: soon after they came in that
 * is a failure like another round's. */
void ccm_newcomer_put_out(struct ccm *m, struct ccm_agent *a);
/* A newcomer that takes part in the round is the reason why it has to be begun again. */
void ccm_round_spoilt(struct ccm *m);
/* How long the round waits for a's report. */
uint32_t ccm_round_patience_ms(const struct ccm *m, const struct ccm_agent *a);
/* How much longer a round may take where paths are slow: the round trips of a link between the two
 * agents that are farthest from here, and of the report. */
uint32_t ccm_paths_ms(const struct ccm *m);
/* Links between those who are members now that a probe has failed are worth a try where no ring
 * does without them. */
void ccm_probes_keep(struct ccm *m);
/* Members s and t could not open their link: probes the other links of the one with more failures
 * (of both, if equal) while the next ring is tried. */
void ccm_probe_around(
	struct ccm *m, const struct ccm_membership *s, const struct ccm_membership *t);
/* As far as is known; never between two members. */
bool ccm_probe_failed(
	const struct ccm *m, const struct ccm_membership *from, const struct ccm_membership *to);
/* The pair has failed since: what probes have proven of it counts no more. */
void ccm_probes_void(struct ccm *m, uint64_t one, uint64_t other);
/* None of g's newcomers is ready. Was one? */
bool ccm_newcomers_doubt(struct ccm_group *g);
void ccm_probes_forget(struct ccm *m, uint64_t agent_no);
void ccm_probes_free(struct ccm *m);

/* ccm_evict.c: the round has failures; removes peers or records pairs. */
void ccm_round_judge(struct ccm *m);
/* The sentence for both sides: the host of `from` could not reach that of `to`, why (text), what to
 * do, unless it is for a limit that one of their agents has reached. NULL: an agent is gone. */
void ccm_reach_reason(char *dst, size_t size, const struct ccm_agent *from,
	const struct ccm_agent *to, bool limit, const char *text);
/* No ring of the groups marked as failed is possible, or late: was found in time. Kicks the
 * memberships that are most at fault. */
void ccm_groups_judge(struct ccm *m, bool late);
/* The members on a are kicked. */
void ccm_agent_put_out(struct ccm *m, struct ccm_agent *a, const char *reason);

/* ccm_breaks.c */
/* The link broke amid operations of g. */
void ccm_break_count(struct ccm *m, const struct ccm_group *g, struct ccm_agent *from,
	struct ccm_agent *to, const char *text);
/* The next link between them has smaller segments: that the last one broke says nothing of it. */
void ccm_break_is_mended(struct ccm *m, struct ccm_agent *from, struct ccm_agent *to);
/* All links of the round are up again, so both ends are there. True: some break in each operation,
 * and their pairs count as failed from now on, or a newcomer to whom this happens with several
 * hosts has been put out. */
bool ccm_breaks_judge(struct ccm *m);
/* o is done: the links of its ring have carried it. */
void ccm_breaks_over(struct ccm *m, const struct ccm_op *o);
void ccm_breaks_forget(struct ccm *m, uint64_t agent_no);
void ccm_breaks_free(struct ccm *m);

/* ccm_flaps.c */
/* A call of its peers has come to an end there: it hears the master. */
void ccm_flaps_over(struct ccm_agent *a);
/* A peer's vote: with a higher ballot number than before it has heard how the last one ended. */
void ccm_flaps_vote(struct ccm_agent *a, bool topology, uint64_t ballot);
/* A peer comes back by a. */
void ccm_flaps_move(struct ccm_agent *a, const struct ccm_agent *from);
/* The connection of a is gone. True: it is not to be waited for any more. */
bool ccm_flaps_count(struct ccm *m, struct ccm_agent *a);
void ccm_flaps_end(struct ccm *m, struct ccm_agent *a); /* then it is lost */

/* ccm_ring.c */
struct ccm_membership **ccm_memberships_new(struct ccm *m, uint32_t n); /* NULL sets m->oom */
/* Their link failed. The other direction is avoided as well, where a ring can. */
void ccm_pair_add(struct ccm *m, uint64_t from, uint64_t to, const char *text);
/* Nothing came through a link between them. */
void ccm_pair_silent(struct ccm *m, uint64_t one, uint64_t other, const char *text);
/* In this direction, a probe says. */
void ccm_pair_doubtful(struct ccm *m, uint64_t from, uint64_t to, const char *text);
/* Has either of them had trouble with the other one, by what is known? */
bool ccm_pair_is_known(const struct ccm *m, uint64_t one, uint64_t other);
bool ccm_pair_has_failed(const struct ccm *m, uint64_t from, uint64_t to);
bool ccm_pair_is_silent(const struct ccm *m, uint64_t from, uint64_t to);
/* The link is up. */
void ccm_pair_works(struct ccm *m, uint64_t from, uint64_t to);
void ccm_pairs_forget(struct ccm *m, uint64_t agent_no);
/* Something has changed for the agent: its failed pairs are worth a try where no ring does without
 * them. */
void ccm_pairs_doubt(struct ccm *m, uint64_t agent_no);
/* Puts the memberships of v into ret so that no link of the ring is a failed pair, as near to the
 * given order as the search finds. If there is none, untried pairs are taken, and then silent ones
 * as well. False: nor is there one with them, or m->ring_work is used up. */
bool ccm_ring_order(
	struct ccm *m, struct ccm_membership **v, uint32_t n, struct ccm_membership **ret);

/* ccm_tour.c */
/* Orders 0 .. n - 1 (n at least 3) in ret as a ring, 0 first, without a link for which
 * barred[from * n + to] is set. *work: so many looks at links it may take, and what is left of
 * them. False: none was found, or memory is exhausted. */
bool ccm_tour_find(const uint8_t *barred, uint32_t n, uint32_t *work, uint32_t *ret);
/* Could a search among n get anywhere with so much work? */
bool ccm_tour_is_worth(uint32_t n, uint32_t work);

#endif
