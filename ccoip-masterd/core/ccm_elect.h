/* SPDX-License-Identifier: MIT
 *
 * Shared state: whose contents a group synchronizes to, and what that means for each peer. A
 * function of what the peers of one group offer, without memory of its own; groups do not see each
 * other. Callable from any thread.
 *
 * The rules have numbers, in docs/protocol/shared-state.md, which tells also what it means that a
 * candidate stands, is outdated, or is torn.
 */
#ifndef CCM_ELECT_H
#define CCM_ELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers of pcclSharedStateSyncStrategy_t. */
enum ccm_strategy { CCM_ENFORCE_POPULAR = 0, CCM_RECEIVE_ONLY = 1, CCM_SEND_ONLY = 2 };

enum ccm_hash_type { CCM_HASH_SIMPLE = 1, CCM_HASH_CRC32C = 2 };

struct ccm_digest {
	uint64_t hi, lo;
};

struct ccm_candidate {
	uint64_t revision;
	uint32_t strategy; /* enum ccm_strategy, checked by the caller */
	uint32_t
		hash_type; /* enum ccm_hash_type, or another number that means something to peers */
	struct ccm_digest keys;    /* of the table of tensors: name, data type, count, flags */
	struct ccm_digest content; /* of the tensors that must be equal */
	uint64_t n_tensors, bytes; /* for sentences */
	bool torn;
};

enum ccm_elect_status {
	CCM_ELECT_KICKED = 1,
	CCM_ELECT_HOLDER,
	CCM_ELECT_HOLDER_OUTDATED, /* right contents, another revision */
	CCM_ELECT_RECEIVER,
};

/* Why a peer is kicked; the number of the rule. */
enum ccm_elect_why {
	CCM_WHY_NONE = 0,
	CCM_WHY_REVISION,      /* 1: beyond the expected revision */
	CCM_WHY_LAST_REVISION, /* 1: UINT64_MAX */
	CCM_WHY_STRATEGY,      /* 2 */
	CCM_WHY_ALL_RECEIVE,   /* 3 */
	CCM_WHY_TORN,          /* 3, and 4: torn where all others are outdated */
	CCM_WHY_STATE_LOST,    /* 4 */
	CCM_WHY_DISAGREE,      /* 5: send-only */
	CCM_WHY_NO_SENDER,     /* 5: receive-only, and those that send disagree */
	CCM_WHY_HASH_TYPE,     /* 7 */
	CCM_WHY_KEYS,          /* 7 */
	CCM_WHY_WOULD_RECEIVE, /* 8 */
};

/* What the election means for one candidate. */
struct ccm_standing {
	enum ccm_elect_status status;
	enum ccm_elect_why why; /* of KICKED */
	bool misses;            /* RECEIVER: its contents are not the elected ones */
};

#define CCM_ELECT_NONE UINT32_MAX

struct ccm_election {
	bool nobody;       /* stands: all are kicked, elected is CCM_ELECT_NONE */
	uint32_t elected;  /* the first candidate in ring order that stood with what was elected */
	uint64_t revision; /* the group's, once all are equal; the next one to expect is one more.
			    * Nobody: without meaning */

	/* For ccm_elect_sentence. */
	uint64_t expected;
	uint64_t highest; /* STATE_LOST: revision that is offered by one who would stand */
	uint32_t
		dispute[2]; /* DISAGREE: two that stood, the first one and the first that differs */
};

/*
 * v: n candidates in ring order, standings: as many. scratch: room for n numbers, whatever is in
 * it. Cannot fail; O(n log n), whatever is offered.
 */
void ccm_elect(uint64_t expected, const struct ccm_candidate *v, uint32_t n, uint32_t *scratch,
	struct ccm_standing *standings, struct ccm_election *ret);

/* The same where the election has been held before, and v[n] is what was elected; v need not be all
 * that stood then, but nobody is among them who did not take part. */
void ccm_elect_replay(uint64_t expected, const struct ccm_candidate *v, uint32_t n,
	struct ccm_standing *standings, struct ccm_election *ret);

/* Writes why candidate i is kicked, which values clash and what was expected; "" for one that is
 * not kicked. SHM_TEXT bytes are enough: it gets to its process as a whole. */
void ccm_elect_sentence(const struct ccm_election *e, const struct ccm_candidate *v,
	const struct ccm_standing *standings, uint32_t i, char *dst, size_t size);

#endif
