/* SPDX-License-Identifier: MIT
 *
 * Ballots: calls in which all accepted peers of a run take part, and which end for all of them with
 * one answer. Each peer votes by its call. docs/protocol/votes.md has the rules.
 *
 * A new kind needs an entry here, in BallotKind of ccoip.proto and in the table of wire_ballot.c,
 * the rule for its answer in ccoip-masterd/core/ccm_ballot.c, and the call that votes in
 * libpccl-shim.
 */
#ifndef WIRE_BALLOT_H
#define WIRE_BALLOT_H

#include <stdbool.h>
#include <stdint.h>

enum wire_ballot {
	WIRE_TOPOLOGY = 0, /* pcclUpdateTopology; the answer is the commit of a round */
	WIRE_PENDING = 1,  /* pcclArePeersPending; the answer says whether newcomers wait */
	WIRE_OPTIMIZE = 2, /* pcclOptimizeTopology; the answer says whether it has succeeded */
	WIRE_BALLOTS
};
#define WIRE_BALLOT_MAX 2
_Static_assert(WIRE_BALLOTS == WIRE_BALLOT_MAX + 1, "texts need the number itself");

struct wire_ballot_kind {
	const char *name;    /* "topology vote" */
	const char *subject; /* the subject of the vote: "the topology" */
	const char *call;    /* the call that votes: "pcclUpdateTopology" */
	/* If true, a peer votes only without outstanding operations, and operations of its group do
	 * not start before the ballot has ended. If false, other threads of the peer may start
	 * operations meanwhile. */
	bool is_exclusive;
	bool admits;       /* newcomers wait for the end of the ballot, too */
	bool unmet_answer; /* the answer to votes that can never meet, which changes nothing */
};

extern const struct wire_ballot_kind wire_ballot_kinds[WIRE_BALLOTS];

/* The number of a ballot is twice the number of ballots of its kind that have ended, plus the last
 * answer. So a new master or agent that knows the number also knows the last answer. */
static inline uint64_t wire_ballot_count(uint64_t number)
{
	return number >> 1;
}

static inline bool wire_ballot_answer(uint64_t number)
{
	return number & 1;
}

static inline uint64_t wire_ballot_next(uint64_t number, bool answer)
{
	return (wire_ballot_count(number) + 1) << 1 | answer;
}

#endif
