/* SPDX-License-Identifier: MIT
 *
 * Shared state: the election of the contents that a group synchronizes to, and the role of each
 * peer. The result follows from the candidates of one group only; no state is kept. Callable from
 * any thread.
 *
 * The rules have numbers. docs/protocol/shared-state.md lists them, and explains when a candidate
 * stands, is outdated or is torn.
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
	uint32_t strategy;  /* enum ccm_strategy, checked by the caller */
	uint32_t hash_type; /* enum ccm_hash_type, or another number that only peers understand */
	struct ccm_digest keys;    /* of the table of tensors: name, data type, count, flags */
	struct ccm_digest content; /* of the tensors that must be equal */
	uint64_t n_tensors, bytes; /* used only in the sentences of refusals */
	bool torn;
};

enum ccm_elect_status {
	CCM_ELECT_KICKED = 1,
	CCM_ELECT_HOLDER,
	CCM_ELECT_HOLDER_OUTDATED, /* elected contents, but another revision */
	CCM_ELECT_RECEIVER,
};

/* The reason why a peer is kicked, and the number of the rule. */
enum ccm_elect_why {
	CCM_WHY_NONE = 0,
	CCM_WHY_REVISION,      /* 1: beyond the expected revision */
	CCM_WHY_LAST_REVISION, /* 1: UINT64_MAX */
	CCM_WHY_STRATEGY,      /* 2 */
	CCM_WHY_ALL_RECEIVE,   /* 3 */
	CCM_WHY_TORN,          /* 3; also 4: torn, and all others are outdated */
	CCM_WHY_STATE_LOST,    /* 4 */
	CCM_WHY_DISAGREE,      /* 5: send-only */
	CCM_WHY_NO_SENDER,     /* 5: receive-only, and the send-only peers disagree */
	CCM_WHY_HASH_TYPE,     /* 7 */
	CCM_WHY_KEYS,          /* 7 */
	CCM_WHY_WOULD_RECEIVE, /* 8 */
};

/* What the election means for one candidate. */
struct ccm_standing {
	enum ccm_elect_status status;
	enum ccm_elect_why why; /* KICKED: the reason */
	bool misses;            /* RECEIVER: its contents differ from the elected ones */
};

#define CCM_ELECT_NONE UINT32_MAX

struct ccm_election {
	bool nobody;      /* no candidate stands: all are kicked, and elected is CCM_ELECT_NONE */
	uint32_t elected; /* the first candidate in ring order that stood with the elected contents
			   */
	/* The group's revision once all contents are equal; the next expected revision is one more.
	 * Undefined if `nobody`. */
	uint64_t revision;

	/* For ccm_elect_sentence. */
	uint64_t expected;
	uint64_t highest;    /* STATE_LOST: the highest revision of a candidate that may stand */
	uint32_t dispute[2]; /* DISAGREE: the first candidate that stood, and the first that differs
				from it */
};

/* Holds an election. v: n candidates in ring order. standings: room for n results. scratch: room
 * for n numbers. Cannot fail, and takes O(n log n) steps for any candidates. */
void ccm_elect(uint64_t expected, const struct ccm_candidate *v, uint32_t n, uint32_t *scratch,
	struct ccm_standing *standings, struct ccm_election *ret);

/* Repeats an election whose result is known: v[n] is the elected candidate. Candidates of the first
 * election may be missing in v, but every peer in v took part in the first election. */
void ccm_elect_replay(uint64_t expected, const struct ccm_candidate *v, uint32_t n,
	struct ccm_standing *standings, struct ccm_election *ret);

/* Writes why candidate i is kicked, with the values that clash and the expected ones; "" if it is
 * not kicked. SHM_TEXT bytes are enough, so that the process gets the whole sentence. */
void ccm_elect_sentence(const struct ccm_election *e, const struct ccm_candidate *v,
	const struct ccm_standing *standings, uint32_t i, char *dst, size_t size);

#endif
