/* SPDX-License-Identifier: MIT
 *
 * Shared state: the election. The numbers of the rules are those of docs/protocol/shared-state.md.
 */
#include "ccoip-masterd/core/ccm_elect.h"

#include <inttypes.h>
#include <stdio.h>

#define DIGEST     "%016" PRIx64 "%016" PRIx64
#define DIGEST_(d) (d).hi, (d).lo

struct ballot {
	const struct ccm_candidate *v;
	struct ccm_standing *s;
	uint32_t n;
	uint32_t *stands; /* indexes of the candidates that stand; ascending until they are sorted
			     by contents */
	uint32_t n_stands;
	struct ccm_election *e;
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_digest(const struct ccm_digest *a, const struct ccm_digest *b)
{
	return a->hi != b->hi ? compare_u64(a->hi, b->hi) : compare_u64(a->lo, b->lo);
}

/* Compares the contents that two candidates offer. Returns 0 if they are equal. */
static int compare_candidate(const struct ccm_candidate *a, const struct ccm_candidate *b)
{
	int c = compare_u64(a->hash_type, b->hash_type);

	if (c == 0)
		c = compare_digest(&a->keys, &b->keys);
	return c != 0 ? c : compare_digest(&a->content, &b->content);
}

static bool kicked(const struct ballot *b, uint32_t i)
{
	return b->s[i].status == CCM_ELECT_KICKED;
}

static void kick(struct ballot *b, uint32_t i, enum ccm_elect_why why)
{
	b->s[i] = (struct ccm_standing){.status = CCM_ELECT_KICKED, .why = why};
}

/* Would x stand if it were not torn? */
static bool only_torn(const struct ccm_candidate *x)
{
	return x->torn && x->strategy != CCM_RECEIVE_ONLY;
}

/* Kicks all candidates, because none stands. Those that were kicked before keep their reason. */
static void kick_all(struct ballot *b, enum ccm_elect_why why)
{
	uint32_t i;

	for (i = 0; i < b->n; i++)
		if (!kicked(b, i))
			kick(b, i, only_torn(&b->v[i]) ? CCM_WHY_TORN : why);
	b->e->nobody = true;
}

/* Applies rule 1. */
static void check_revisions(struct ballot *b)
{
	uint64_t expected = b->e->expected;
	uint32_t i;

	for (i = 0; i < b->n; i++) {
		if (b->v[i].revision == UINT64_MAX)
			kick(b, i, CCM_WHY_LAST_REVISION);
		else if (expected != 0 && b->v[i].revision > expected)
			kick(b, i, CCM_WHY_REVISION);
	}
}

/* Applies rule 2. */
static void check_strategies(struct ballot *b)
{
	bool enforced = false;
	uint32_t i;

	for (i = 0; i < b->n; i++)
		if (!kicked(b, i) && b->v[i].strategy == CCM_ENFORCE_POPULAR)
			enforced = true;
	for (i = 0; enforced && i < b->n; i++)
		if (!kicked(b, i) && b->v[i].strategy != CCM_ENFORCE_POPULAR)
			kick(b, i, CCM_WHY_STRATEGY);
}

static bool may_stand(const struct ccm_candidate *x)
{
	return x->strategy != CCM_RECEIVE_ONLY && !x->torn;
}

/* Applies rules 3 and 4. Returns false if no candidate stands. */
static bool find_standing(struct ballot *b)
{
	struct ccm_election *e = b->e;
	enum ccm_elect_why why = CCM_WHY_ALL_RECEIVE;
	uint32_t i;

	for (i = 0; i < b->n; i++) {
		if (!kicked(b, i) && only_torn(&b->v[i]) && why == CCM_WHY_ALL_RECEIVE)
			why = CCM_WHY_TORN;
		if (kicked(b, i) || !may_stand(&b->v[i]))
			continue;
		why = CCM_WHY_STATE_LOST;
		if (b->v[i].revision > e->highest)
			e->highest = b->v[i].revision;
	}
	e->revision = e->expected != 0 ? e->expected : e->highest;
	for (i = 0; i < b->n; i++)
		if (!kicked(b, i) && may_stand(&b->v[i]) && b->v[i].revision == e->revision)
			b->stands[b->n_stands++] = i;
	if (b->n_stands == 0)
		kick_all(b, why);
	return b->n_stands > 0;
}

/* Applies rule 5. Returns false if the candidates that stand do not agree. */
static bool elect_senders(struct ballot *b)
{
	uint32_t i, first = b->stands[0];

	for (i = 1; i < b->n_stands; i++)
		if (compare_candidate(&b->v[first], &b->v[b->stands[i]]) != 0)
			break;
	if (i == b->n_stands) {
		b->e->elected = first;
		return true;
	}
	b->e->dispute[0] = first;
	b->e->dispute[1] = b->stands[i];
	for (i = 0; i < b->n; i++)
		if (!kicked(b, i) && b->v[i].strategy == CCM_SEND_ONLY)
			kick(b, i, CCM_WHY_DISAGREE);
	kick_all(b, CCM_WHY_NO_SENDER);
	return false;
}

/* Does x come before y? Equal candidates are neighbours, in ring order. */
static bool before(const struct ballot *b, uint32_t x, uint32_t y)
{
	int c = compare_candidate(&b->v[x], &b->v[y]);

	return c != 0 ? c < 0 : x < y;
}

/* Lets the entry at `at` sink to its place in the heap of n entries. The top of the heap is the
 * entry that comes last. */
static void sink(struct ballot *b, uint32_t at, uint32_t n)
{
	uint32_t child, x = b->stands[at];

	while ((child = 2 * at + 1) < n) {
		if (child + 1 < n && before(b, b->stands[child], b->stands[child + 1]))
			child++;
		if (!before(b, x, b->stands[child]))
			break;
		b->stands[at] = b->stands[child];
		at = child;
	}
	b->stands[at] = x;
}

/* Sorts with heapsort, which needs no memory and which no candidate can make slow. */
static void sort_standing(struct ballot *b)
{
	uint32_t i, x;

	for (i = b->n_stands / 2; i > 0; i--)
		sink(b, i - 1, b->n_stands);
	for (i = b->n_stands; i > 1; i--) {
		x = b->stands[0];
		b->stands[0] = b->stands[i - 1];
		b->stands[i - 1] = x;
		sink(b, 0, i - 1);
	}
}

/* Applies rule 6. */
static void elect_popular(struct ballot *b)
{
	uint32_t first, votes, i, most = 0;

	sort_standing(b);
	for (i = 0; i < b->n_stands; i += votes) {
		first = b->stands[i];
		for (votes = 1; i + votes < b->n_stands; votes++)
			if (compare_candidate(&b->v[first], &b->v[b->stands[i + votes]]) != 0)
				break;
		if (votes > most || (votes == most && first < b->e->elected)) {
			most = votes;
			b->e->elected = first;
		}
	}
}

/* Applies rules 7 to 9. */
static void judge(struct ballot *b, uint32_t i)
{
	const struct ccm_candidate *x = &b->v[i], *elected = &b->v[b->e->elected];
	bool differs = compare_digest(&x->content, &elected->content) != 0;

	if (x->hash_type != elected->hash_type)
		kick(b, i, CCM_WHY_HASH_TYPE);
	else if (compare_digest(&x->keys, &elected->keys) != 0)
		kick(b, i, CCM_WHY_KEYS);
	else if (differs && x->strategy == CCM_SEND_ONLY)
		kick(b, i, CCM_WHY_WOULD_RECEIVE);
	else if (differs || x->strategy == CCM_RECEIVE_ONLY)
		b->s[i] = (struct ccm_standing){.status = CCM_ELECT_RECEIVER, .misses = differs};
	else if (x->revision != b->e->revision)
		b->s[i].status = CCM_ELECT_HOLDER_OUTDATED;
	else
		b->s[i].status = CCM_ELECT_HOLDER;
}

void ccm_elect(uint64_t expected, const struct ccm_candidate *v, uint32_t n, uint32_t *scratch,
	struct ccm_standing *standings, struct ccm_election *ret)
{
	struct ballot b = {.v = v, .s = standings, .n = n, .stands = scratch, .e = ret};
	uint32_t i;

	*ret = (struct ccm_election){.elected = CCM_ELECT_NONE, .expected = expected};
	for (i = 0; i < n; i++)
		standings[i] = (struct ccm_standing){0};
	check_revisions(&b);
	check_strategies(&b);
	if (!find_standing(&b))
		return;
	if (v[scratch[0]].strategy != CCM_SEND_ONLY)
		elect_popular(&b);
	else if (!elect_senders(&b))
		return;
	for (i = 0; i < n; i++)
		if (!kicked(&b, i))
			judge(&b, i);
}

void ccm_elect_replay(uint64_t expected, const struct ccm_candidate *v, uint32_t n,
	struct ccm_standing *standings, struct ccm_election *ret)
{
	struct ballot b = {.v = v, .s = standings, .n = n, .e = ret};
	uint32_t i;

	*ret = (struct ccm_election){.elected = n, .expected = expected, .revision = v[n].revision};
	for (i = 0; i < n; i++)
		standings[i] = (struct ccm_standing){0};
	check_revisions(&b);
	check_strategies(&b);
	for (i = 0; i < n; i++)
		if (!kicked(&b, i))
			judge(&b, i);
}

static const char *strategy_name(uint32_t strategy)
{
	switch (strategy) {
	case CCM_ENFORCE_POPULAR:
		return "enforce-popular";
	case CCM_RECEIVE_ONLY:
		return "receive-only";
	default:
		return "send-only";
	}
}

static const char *hash_name(uint32_t hash_type)
{
	switch (hash_type) {
	case CCM_HASH_SIMPLE:
		return "simplehash";
	case CCM_HASH_CRC32C:
		return "crc32c";
	default:
		return "unknown to the master";
	}
}

static void say_hash_type(
	const struct ccm_candidate *x, const struct ccm_candidate *y, char *dst, size_t size)
{
	(void)snprintf(dst, size,
		"its shared state is hashed with hash type %" PRIu32
		" (%s), the group's with %" PRIu32 " (%s): set hash_type alike on all hosts",
		x->hash_type, hash_name(x->hash_type), y->hash_type, hash_name(y->hash_type));
}

static void say_keys(
	const struct ccm_candidate *x, const struct ccm_candidate *y, char *dst, size_t size)
{
	if (x->n_tensors != y->n_tensors || x->bytes != y->bytes)
		(void)snprintf(dst, size,
			"its shared state has other keys than the group's: %" PRIu64
			" tensors of %" PRIu64 " bytes in all, expected %" PRIu64 " of %" PRIu64
			" bytes",
			x->n_tensors, x->bytes, y->n_tensors, y->bytes);
	else
		(void)snprintf(dst, size,
			"its shared state has other keys than the group's, though both have "
			"%" PRIu64 " tensors of %" PRIu64
			" bytes: names, types, counts or allow_content_inequality differ "
			"(digest " DIGEST ", expected " DIGEST ")",
			x->n_tensors, x->bytes, DIGEST_(x->keys), DIGEST_(y->keys));
}

/* y: another send-only peer, whose state may be the wrong one. */
static void say_disagree(
	const struct ccm_candidate *x, const struct ccm_candidate *y, char *dst, size_t size)
{
	static const char head[] = "send-only peers must have identical shared state, but";

	if (x->hash_type != y->hash_type)
		(void)snprintf(dst, size,
			"%s this one hashes with hash type %" PRIu32
			" (%s), another one with %" PRIu32 " (%s)",
			head, x->hash_type, hash_name(x->hash_type), y->hash_type,
			hash_name(y->hash_type));
	else if (compare_digest(&x->keys, &y->keys) != 0)
		(void)snprintf(dst, size,
			"%s this one has the keys " DIGEST ", %" PRIu64 " tensors of %" PRIu64
			" bytes in all, another one " DIGEST ", %" PRIu64 " of %" PRIu64 " bytes",
			head, DIGEST_(x->keys), x->n_tensors, x->bytes, DIGEST_(y->keys),
			y->n_tensors, y->bytes);
	else
		(void)snprintf(dst, size,
			"%s this one has contents with digest " DIGEST ", another one with " DIGEST,
			head, DIGEST_(x->content), DIGEST_(y->content));
}

static void say_would_receive(const struct ccm_election *e, const struct ccm_candidate *x,
	const struct ccm_candidate *y, char *dst, size_t size)
{
	(void)snprintf(dst, size,
		"it declares send-only and would have to receive: at revision %" PRIu64
		" it has contents with digest " DIGEST ", the group at revision %" PRIu64
		" has " DIGEST,
		x->revision, DIGEST_(x->content), e->revision, DIGEST_(y->content));
}

static void say_lost(const struct ccm_election *e, char *dst, size_t size)
{
	(void)snprintf(dst, size,
		"REVISION_INCREMENT_VIOLATION: the group expects revision %" PRIu64
		", candidates have at most %" PRIu64
		". If this is a new job, reset the run (pcclctl reset); if not, load a checkpoint "
		"of that revision or wait for a peer that has it",
		e->expected, e->highest);
}

static void say_torn(
	const struct ccm_election *e, const struct ccm_candidate *x, char *dst, size_t size)
{
	char revision[48] = "";

	if (!only_torn(x)) {
		(void)snprintf(dst, size,
			"no peer can be elected: this peer declares receive-only, and failed "
			"synchronizations have left the tensors of all other peers torn; load a "
			"checkpoint on those peers");
		return;
	}
	if (e->expected != 0)
		(void)snprintf(
			revision, sizeof revision, "revision %" PRIu64 " from ", e->expected);
	(void)snprintf(dst, size,
		"no peer can be elected: a failed synchronization has left this peer's tensors "
		"torn (written in part). Load %sa checkpoint, then connect again with a new "
		"communicator",
		revision);
}

void ccm_elect_sentence(const struct ccm_election *e, const struct ccm_candidate *v,
	const struct ccm_standing *standings, uint32_t i, char *dst, size_t size)
{
	const struct ccm_candidate *x = &v[i];
	bool second;

	dst[0] = '\0';
	switch (standings[i].why) {
	case CCM_WHY_NONE:
		break;
	case CCM_WHY_REVISION:
		(void)snprintf(dst, size,
			"REVISION_INCREMENT_VIOLATION: it has revision %" PRIu64
			" of the shared state, the group expects %" PRIu64
			". If this is a new job, reset the run (pcclctl reset)",
			x->revision, e->expected);
		break;
	case CCM_WHY_LAST_REVISION:
		(void)snprintf(dst, size,
			"REVISION_INCREMENT_VIOLATION: it has revision %" PRIu64
			" of the shared state; the highest that is allowed is %" PRIu64,
			x->revision, UINT64_MAX - 1);
		break;
	case CCM_WHY_STRATEGY:
		(void)snprintf(dst, size,
			"it declares %s, but a peer of its group declares enforce-popular: all "
			"peers of a group must declare it, or none",
			strategy_name(x->strategy));
		break;
	case CCM_WHY_ALL_RECEIVE:
		(void)snprintf(dst, size,
			"no peer can be elected: this peer declares receive-only, like all peers "
			"of its "
			"group that could take part; at least one must send");
		break;
	case CCM_WHY_TORN:
		say_torn(e, x, dst, size);
		break;
	case CCM_WHY_STATE_LOST:
		say_lost(e, dst, size);
		break;
	case CCM_WHY_DISAGREE:
		second = compare_candidate(x, &v[e->dispute[0]]) == 0;
		say_disagree(x, &v[e->dispute[second]], dst, size);
		break;
	case CCM_WHY_NO_SENDER:
		(void)snprintf(dst, size,
			"no peer can be elected: this peer declares receive-only, and the "
			"send-only peers "
			"of its group were kicked because their shared state is not identical");
		break;
	case CCM_WHY_HASH_TYPE:
		say_hash_type(x, &v[e->elected], dst, size);
		break;
	case CCM_WHY_KEYS:
		say_keys(x, &v[e->elected], dst, size);
		break;
	case CCM_WHY_WOULD_RECEIVE:
		say_would_receive(e, x, &v[e->elected], dst, size);
		break;
	}
}
