/* SPDX-License-Identifier: MIT
 *
 * The election of shared state. A table has a row for each rule of
 * ccoip-masterd/core/ccm_elect.h and for each pair of rules that apply together. After that, tests
 * with seeded candidates check the properties of all elections.
 *
 * A row lists the candidates in ring order, one word each: strategy (E enforce-popular, R
 * receive-only, S send-only), revision ("max": UINT64_MAX), keys (K, L, ...), contents (a, b, ...),
 * # for the other hash type, ~ for torn state. Then the row lists the outcome: the elected index
 * and the revision, or "nobody", and a word for each peer: hold, old (an outdated holder), recv,
 * idle (a receiver that misses nothing), or ! with the reason of the kick.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_elect.h"
#include "proto/shm_queue.h"
#include "proto/wire_master.h"
#include "proto/wire_sync.h"
#include "tests/common/testlib.h"
#include "tests/master/suites.h"

#define ROW_MAX 16

struct row {
	const char *rule;
	uint64_t expected;
	const char *candidates, *outcome;
};

static const struct row rows[] = {
	/* Rule 1 */
	{"a peer beyond the expected revision is kicked", 5, "E5Ka E6Ka E5Ka",
		"0@5: hold !ahead hold"},
	{"a peer that is ahead is kicked, whatever its strategy is", 5, "S5Ka S6Ka R6Ka R5Kb",
		"0@5: hold !ahead !ahead recv"},
	{"all peers are ahead", 5, "E6Ka E9Ka", "nobody: !ahead !ahead"},
	{"the first synchronization may have any revision", 0, "E13Ka E13Ka", "0@13: hold hold"},
	{"the first synchronization may have revision 0", 0, "E0Ka E0Kb", "0@0: hold recv"},
	{"the first synchronization cannot have the highest revision", 0, "EmaxKa E7Ka",
		"1@7: !last hold"},
	{"no synchronization can have the highest revision", 5, "EmaxKa E5Ka RmaxKa",
		"1@5: !last hold !last"},
	{"a peer that is ahead does not vote", 5, "E6Kb E6Kb E5Ka", "2@5: !ahead !ahead hold"},
	{"a peer that is ahead does not enforce its strategy", 5, "E6Ka S5Ka R5Kb",
		"1@5: !ahead hold recv"},
	{"other senders need not agree with a peer that is ahead", 5, "S6Kb S5Ka R5Kb",
		"1@5: !ahead hold recv"},

	/* Rule 2 */
	{"one peer enforces enforce-popular", 5, "S5Ka E5Kb R5Ka", "1@5: !strategy hold !strategy"},
	{"an outdated peer enforces enforce-popular", 5, "S5Ka E4Kb E5Kc",
		"2@5: !strategy recv hold"},
	{"enforce-popular may leave no candidate", 5, "S5Ka E4Kb R5Ka",
		"nobody: !strategy !lost !strategy"},
	{"votes of peers with another strategy do not count", 5, "S5Kb S5Kb E5Ka R5Kb",
		"2@5: !strategy !strategy hold !strategy"},
	{"revisions of peers with another strategy do not count", 0, "S9Kb E7Ka R8Ka",
		"1@7: !strategy hold !strategy"},
	{"peers with another strategy may disagree", 5, "S5Ka S5Kb E5Kc",
		"2@5: !strategy !strategy hold"},
	{"a peer that is ahead is kicked for its revision, not its strategy", 5, "S6Ka E5Kb",
		"1@5: !ahead hold"},

	/* Rule 3 */
	{"receive-only peers cannot be elected", 5, "R5Ka R5Ka S5Kb", "2@5: recv recv hold"},
	{"all peers are receive-only", 5, "R5Ka R5Ka", "nobody: !receivers !receivers"},
	{"a single receive-only peer", 0, "R0Ka", "nobody: !receivers"},
	{"all remaining peers are receive-only", 5, "R5Ka S6Ka", "nobody: !receivers !ahead"},
	{"revisions of receive-only peers do not count", 0, "R9Ka S7Kb R3Kc",
		"1@7: recv hold recv"},
	{"outdated receive-only peers receive", 5, "R0Ka S5Kb", "1@5: recv hold"},

	{"torn peers cannot be elected", 5, "E5Ka~ E5Kb", "1@5: recv hold"},
	{"many torn peers cannot be elected either", 5, "E5Ka~ E5Ka~ E5Ka~ E5Kb",
		"3@5: recv recv recv hold"},
	{"votes of torn peers do not count", 5, "E5Ka E5Kb E5Kb~ E5Kb~",
		"0@5: hold recv recv recv"},
	{"revisions of torn peers do not count", 0, "E9Ka~ E7Kb E0Kc", "1@7: recv hold recv"},
	{"all peers are torn", 5, "E5Ka~ E5Kb~", "nobody: !torn !torn"},
	{"all peers are torn and equal", 5, "E5Ka~ E5Ka~", "nobody: !torn !torn"},
	{"a single torn peer, at the first synchronization", 0, "E0Ka~", "nobody: !torn"},
	{"all peers but the receive-only ones are torn", 5, "R5Ka S5Ka~ R5Kb~",
		"nobody: !torn !torn !torn"},
	{"a torn receive-only peer counts as receive-only", 5, "R5Ka~ R5Ka",
		"nobody: !receivers !receivers"},
	{"torn and receive-only peers receive", 5, "R5Ka~ S5Ka R5Kb~", "1@5: idle hold recv"},
	{"a torn peer enforces enforce-popular", 5, "S5Ka E5Kb~", "nobody: !strategy !torn"},
	{"a torn peer may be ahead", 5, "E6Ka~ E5Kb", "1@5: !ahead hold"},

	/* Rule 4 */
	{"one peer is torn, the other is outdated", 5, "E5Ka~ E4Kb", "nobody: !torn !lost"},
	{"one peer is torn and outdated, the other is outdated", 5, "E4Ka~ E4Kb",
		"nobody: !torn !lost"},
	{"no peer is outdated at the first synchronization", 0, "E9Ka~ E0Kb", "1@0: recv hold"},
	{"outdated peers are brought up to date", 5, "E4Kb E5Ka", "1@5: recv hold"},
	{"the right revision beats many votes", 5, "E4Kb E4Kb E4Kb E5Ka",
		"3@5: recv recv recv hold"},
	{"votes of outdated peers do not count", 5, "E5Ka E5Kb E4Kb E4Kb",
		"0@5: hold recv recv recv"},
	{"all peers are outdated", 5, "E4Ka E4Ka E3Kb", "nobody: !lost !lost !lost"},
	{"all senders are outdated", 5, "S4Ka R5Kb", "nobody: !lost !lost"},
	{"all senders are outdated and disagree", 5, "S4Ka S4Kb", "nobody: !lost !lost"},
	{"at first the highest revision is the right one", 0, "E12Kb E12Kb E13Ka",
		"2@13: recv recv hold"},
	{"revision 1 is higher than revision 0 at first", 0, "E0Ka E1Kb", "1@1: recv hold"},

	/* Rule 5 */
	{"send-only peers agree", 5, "R5Kb S5Ka S5Ka", "1@5: recv hold hold"},
	{"a single send-only peer", 5, "S5Ka", "0@5: hold"},
	{"send-only peers disagree", 5, "S5Ka S5Kb", "nobody: !disagree !disagree"},
	{"a majority of disagreeing senders does not count", 5, "S5Ka S5Ka S5Kb R5Ka",
		"nobody: !disagree !disagree !disagree !sender"},
	{"an outdated sender does not decide between senders", 5, "S4Ka S5Ka S5Kb",
		"nobody: !disagree !disagree !disagree"},
	{"send-only peers disagree about keys", 5, "S5Ka S5La", "nobody: !disagree !disagree"},
	{"send-only peers hash differently", 5, "S5Ka S5Ka#", "nobody: !disagree !disagree"},
	{"a sender agrees with an outdated sender", 5, "S4Ka S5Ka", "1@5: old hold"},
	{"an outdated sender cannot disagree", 5, "S4Kb S5Ka R5Kb", "1@5: !receive hold recv"},
	{"an outdated sender cannot disagree at first either", 0, "S4Kb S5Ka R6Kb",
		"1@5: !receive hold recv"},
	{"a torn sender cannot disagree", 5, "S5Kb~ S5Ka R5Kb", "1@5: !receive hold recv"},

	/* Rule 6 */
	{"the contents with the most votes are elected", 5, "E5Ka E5Kb E5Kb",
		"1@5: recv hold hold"},
	{"a majority is not needed", 5, "E5Ka E5Kb E5Kc E5Kb", "1@5: recv hold recv hold"},
	{"in a tie, the first peer in ring order is elected", 5, "E5Kb E5Ka E5Ka E5Kb",
		"0@5: hold recv recv hold"},
	{"in a tie, the first peer is elected, whatever its contents are", 5, "E5Ka E5Kb E5Kb E5Ka",
		"0@5: hold recv recv hold"},
	{"in a tie, an earlier peer with fewer votes does not count", 5, "E5Kc E5Kb E5Ka E5Ka E5Kb",
		"1@5: recv hold recv recv hold"},
	{"all contents differ", 5, "E5Kc E5Kb E5Ka", "0@5: hold recv recv"},
	{"votes are for keys and contents together", 5, "E5Ka E5La E5Kb E5Kb",
		"2@5: recv !keys hold hold"},
	{"votes are for contents and hash type together", 5, "E5Ka# E5Ka E5Kb E5Kb",
		"2@5: !hash recv hold hold"},

	/* Rule 7 */
	{"a peer has other keys", 5, "E5Ka E5La E5Ka", "0@5: hold !keys hold"},
	{"a peer has other keys and contents", 5, "E5Ka E5Lb E5Ka", "0@5: hold !keys hold"},
	{"a receive-only peer has other keys", 5, "R5La S5Ka R5Kb", "1@5: !keys hold recv"},
	{"an outdated peer has other keys", 5, "E4La E5Ka", "1@5: !keys hold"},
	{"an outdated sender has other keys", 5, "S4Lb S5Ka", "1@5: !keys hold"},
	{"the most votes may be for other keys", 5, "E5Ka E5Lb E5Lb", "1@5: !keys hold hold"},
	{"a peer has another hash type", 5, "E5Ka E5Ka# E5Ka", "0@5: hold !hash hold"},
	{"a receive-only peer has another hash type", 5, "R5Ka# S5Ka", "1@5: !hash hold"},
	{"an outdated peer has another hash type", 5, "E4Ka# E5Ka", "1@5: !hash hold"},
	{"another hash type is named before other keys", 5, "E5Ka E5La# E5Ka",
		"0@5: hold !hash hold"},

	/* The rows of rules 4 and 5 cover rule 8. */

	/* Rule 9 */
	{"all peers are equal", 5, "E5Ka E5Ka E5Ka", "0@5: hold hold hold"},
	{"a torn peer may have the elected contents", 5, "E5Ka~ E5Ka E4Ka~", "1@5: hold hold old"},
	{"an outdated peer may have the elected contents", 5, "E4Ka E5Ka E0Ka",
		"1@5: old hold old"},
	{"receive-only peers are never holders", 5, "R5Ka S5Ka R5Kb", "1@5: idle hold recv"},
	{"outdated receive-only peers are never holders", 5, "R4Ka S5Ka", "1@5: idle hold"},
	{"receive-only peers that are ahead at first are no holders", 0, "R9Ka S5Ka",
		"1@5: idle hold"},
	{"a single peer", 5, "E5Ka", "0@5: hold"},
	{"there are no peers", 5, "", "nobody:"},
};

/* One election with its input and its results. */
struct poll {
	uint64_t expected;
	uint32_t n;
	struct ccm_candidate v[ROW_MAX];
	struct ccm_standing s[ROW_MAX];
	struct ccm_election e;
};

static void hold(struct poll *p)
{
	uint32_t scratch[ROW_MAX];

	memset(scratch, 0xff, sizeof scratch);
	memset(p->s, 0xff, sizeof p->s);
	memset(&p->e, 0xff, sizeof p->e);
	ccm_elect(p->expected, p->v, p->n, scratch, p->s, &p->e);
}

/* Reads one word. Returns the beginning of the next word. */
static const char *parse(const char *word, struct ccm_candidate *ret)
{
	static const char strategies[] = "ERS";
	char *end;

	*ret = (struct ccm_candidate){.hash_type = CCM_HASH_SIMPLE};
	ret->strategy = (uint32_t)(strchr(strategies, *word++) - strategies);
	if (strncmp(word, "max", 3) == 0) {
		ret->revision = UINT64_MAX;
		end = (char *)(uintptr_t)(word + 3);
	} else {
		ret->revision = strtoull(word, &end, 10);
	}
	/* The election must distinguish digests that differ in one half only. */
	ret->keys = (struct ccm_digest){.hi = 77, .lo = (uint64_t)(*end++ - 'A')};
	ret->content = (struct ccm_digest){.hi = (uint64_t)('z' - *end++), .lo = 88};
	ret->n_tensors = 2 + ret->keys.lo;
	ret->bytes = 4096;
	if (*end == '#') {
		ret->hash_type = CCM_HASH_CRC32C;
		end++;
	}
	if (*end == '~') {
		ret->torn = true;
		end++;
	}
	return end + strspn(end, " ");
}

static void fill(struct poll *p, uint64_t expected, const char *candidates)
{
	*p = (struct poll){.expected = expected};
	while (*candidates != '\0') {
		ck_assert_uint_lt(p->n, ROW_MAX);
		candidates = parse(candidates, &p->v[p->n++]);
	}
	hold(p);
}

static const char *word(const struct ccm_standing *s)
{
	static const char *const why[] = {
		[CCM_WHY_NONE] = "?",
		[CCM_WHY_REVISION] = "!ahead",
		[CCM_WHY_LAST_REVISION] = "!last",
		[CCM_WHY_STRATEGY] = "!strategy",
		[CCM_WHY_ALL_RECEIVE] = "!receivers",
		[CCM_WHY_TORN] = "!torn",
		[CCM_WHY_STATE_LOST] = "!lost",
		[CCM_WHY_DISAGREE] = "!disagree",
		[CCM_WHY_NO_SENDER] = "!sender",
		[CCM_WHY_HASH_TYPE] = "!hash",
		[CCM_WHY_KEYS] = "!keys",
		[CCM_WHY_WOULD_RECEIVE] = "!receive",
	};

	ck_assert((s->status == CCM_ELECT_KICKED) == (s->why != CCM_WHY_NONE));
	ck_assert(s->status == CCM_ELECT_RECEIVER || !s->misses);
	switch (s->status) {
	case CCM_ELECT_KICKED:
		return why[s->why];
	case CCM_ELECT_HOLDER:
		return "hold";
	case CCM_ELECT_HOLDER_OUTDATED:
		return "old";
	case CCM_ELECT_RECEIVER:
		return s->misses ? "recv" : "idle";
	}
	return "?";
}

static void describe(const struct poll *p, char *dst, size_t size)
{
	size_t len;
	uint32_t i;

	if (p->e.nobody)
		len = (size_t)snprintf(dst, size, "nobody:");
	else
		len = (size_t)snprintf(
			dst, size, "%" PRIu32 "@%" PRIu64 ":", p->e.elected, p->e.revision);
	for (i = 0; i < p->n; i++)
		len += (size_t)snprintf(dst + len, size - len, " %s", word(&p->s[i]));
	ck_assert_uint_lt(len, size);
	ck_assert(p->e.nobody == (p->e.elected == CCM_ELECT_NONE));
}

START_TEST(each_rule_has_its_outcome)
{
	const struct row *r = &rows[_i];
	char outcome[256];
	struct poll p;

	fill(&p, r->expected, r->candidates);
	describe(&p, outcome, sizeof outcome);
	ck_assert_msg(strcmp(outcome, r->outcome) == 0, "%s: %s: %s, not %s", r->rule,
		r->candidates, outcome, r->outcome);
}
END_TEST

/* Each sentence names the error and the expected value. */
static const struct {
	uint64_t expected;
	const char *candidates;
	uint32_t i;
	const char *sentence;
} sentences[] = {
	{5, "E5Ka E4Ka", 1, ""},
	{5, "E5Ka E7Ka", 1,
		"REVISION_INCREMENT_VIOLATION: it has revision 7 of the shared state, the group "
		"expects 5. If this is a new job, reset the run (pcclctl reset)"},
	{0, "EmaxKa", 0,
		"REVISION_INCREMENT_VIOLATION: it has revision 18446744073709551615 of the shared "
		"state; the highest that is allowed is 18446744073709551614"},
	{5, "E5Ka R5Ka", 1,
		"it declares receive-only, but a peer of its group declares enforce-popular: all "
		"peers of a group must declare it, or none"},
	{5, "E5Ka S5Ka", 1,
		"it declares send-only, but a peer of its group declares enforce-popular: all "
		"peers of a group must declare it, or none"},
	{5, "R5Ka R5Ka", 1,
		"no peer can be elected: this peer declares receive-only, like all peers of its "
		"group "
		"that could take part; at least one must send"},
	{5, "R5Ka S2Ka S3Ka", 0,
		"REVISION_INCREMENT_VIOLATION: the group expects revision 5, candidates have at "
		"most 3. If this is a new job, reset the run (pcclctl reset); if not, load a "
		"checkpoint of that revision or wait for a peer that has it"},
	{5, "S5Kz S5Ky S5Kx", 0,
		"send-only peers must have identical shared state, but this one has contents with "
		"digest 00000000000000000000000000000058, another one with "
		"00000000000000010000000000000058"},
	{5, "S5Kz S5Ky S5Kx", 2,
		"send-only peers must have identical shared state, but this one has contents with "
		"digest 00000000000000020000000000000058, another one with "
		"00000000000000000000000000000058"},
	{5, "S5Kz S5Kz S5Lz", 1,
		"send-only peers must have identical shared state, but this one has the keys "
		"000000000000004d000000000000000a, 12 tensors of 4096 bytes in all, another one "
		"000000000000004d000000000000000b, 13 of 4096 bytes"},
	{5, "S5Kz S5Kz#", 1,
		"send-only peers must have identical shared state, but this one hashes with hash "
		"type "
		"2 (crc32c), another one with 1 (simplehash)"},
	{5, "S5Kz R5Kz S5Ky", 1,
		"no peer can be elected: this peer declares receive-only, and the send-only peers "
		"of its "
		"group were kicked because their shared state is not identical"},
	{5, "E5Ka~ E5Kb~", 1,
		"no peer can be elected: a failed synchronization has left this peer's tensors "
		"torn (written in part). Load revision 5 from a checkpoint, then connect again "
		"with a new communicator"},
	{0, "E5Ka~", 0,
		"no peer can be elected: a failed synchronization has left this peer's tensors "
		"torn (written in part). Load a checkpoint, then connect again with a new "
		"communicator"},
	{5, "R5Ka S5Kb~", 0,
		"no peer can be elected: this peer declares receive-only, and failed "
		"synchronizations "
		"have left the tensors of all other peers torn; load a checkpoint on those peers"},
	{5, "E5Ka E5Ka#", 1,
		"its shared state is hashed with hash type 2 (crc32c), the group's with 1 "
		"(simplehash): set hash_type alike on all hosts"},
	{5, "E5Ka E5La", 1,
		"its shared state has other keys than the group's: 13 tensors of 4096 bytes in "
		"all, "
		"expected 12 of 4096 bytes"},
	{5, "S5Kz S4Ky", 1,
		"it declares send-only and would have to receive: at revision 4 it has contents "
		"with "
		"digest 00000000000000010000000000000058, the group at revision 5 has "
		"00000000000000000000000000000058"},
};

START_TEST(each_reason_has_its_sentence)
{
	char text[WM_TEXT_MAX];
	struct poll p;

	fill(&p, sentences[_i].expected, sentences[_i].candidates);
	memset(text, 'x', sizeof text);
	ccm_elect_sentence(&p.e, p.v, p.s, sentences[_i].i, text, sizeof text);
	ck_assert_str_eq(text, sentences[_i].sentence);
}
END_TEST

/* The keys have the same number of tensors and bytes, so the sentence names other possible
 * differences. */
START_TEST(sentence_about_similar_keys_names_other_differences)
{
	char text[WM_TEXT_MAX];
	struct poll p;

	fill(&p, 5, "E5Ka E5La");
	p.v[1].n_tensors = p.v[0].n_tensors;
	hold(&p);
	ccm_elect_sentence(&p.e, p.v, p.s, 1, text, sizeof text);
	ck_assert_str_eq(text,
		"its shared state has other keys than the group's, though both have 12 tensors of "
		"4096 bytes: names, types, counts or allow_content_inequality differ "
		"(digest 000000000000004d000000000000000b, expected "
		"000000000000004d000000000000000a)");
	p.v[1].bytes++;
	ccm_elect_sentence(&p.e, p.v, p.s, 1, text, sizeof text);
	ck_assert_str_eq(text, "its shared state has other keys than the group's: 12 tensors of "
			       "4097 bytes in all, "
			       "expected 12 of 4096 bytes");
}
END_TEST

/* ---- properties of all elections ---- */

#define POLLS 20000

static bool same_digest(const struct ccm_digest *a, const struct ccm_digest *b)
{
	return a->hi == b->hi && a->lo == b->lo;
}

static bool same_candidate(const struct ccm_candidate *a, const struct ccm_candidate *b)
{
	return a->hash_type == b->hash_type && same_digest(&a->keys, &b->keys) &&
	       same_digest(&a->content, &b->content);
}

/* Draws few different values, so that every rule applies often. */
static void draw(struct tl_rng *r, struct poll *p)
{
	static const uint64_t offered[] = {0, 3, 4, 5, 5, 5, 5, 5, 6, UINT64_MAX};
	struct ccm_candidate *x;
	uint64_t mix = tl_range(r, 0, 3), odd = tl_range(r, 0, 1);
	uint32_t i;

	*p = (struct poll){.expected = tl_range(r, 0, 3) ? 5 : 0};
	p->n = (uint32_t)tl_range(r, 0, 8);
	for (i = 0; i < p->n; i++) {
		x = &p->v[i];
		if (mix == 0)
			x->strategy = (uint32_t)tl_range(r, 0, 2);
		else
			x->strategy = mix == 1 ? CCM_ENFORCE_POPULAR : (uint32_t)tl_range(r, 1, 2);
		x->revision = offered[tl_range(r, odd ? 0 : 2, odd ? 9 : 7)];
		x->hash_type = tl_range(r, 0, 12) ? CCM_HASH_SIMPLE : CCM_HASH_CRC32C;
		x->keys.lo = tl_range(r, 0, 8) == 0;
		x->content.hi = odd ? tl_range(r, 0, 2) : tl_range(r, 0, 6) == 0;
		x->content.lo = tl_range(r, 0, 9) == 0;
		x->torn = tl_range(r, 0, 5) == 0;
	}
}

static bool holds(const struct ccm_standing *s)
{
	return s->status == CCM_ELECT_HOLDER || s->status == CCM_ELECT_HOLDER_OUTDATED;
}

static bool stands(const struct poll *p, uint32_t i)
{
	enum ccm_elect_why why = p->s[i].why;

	return why != CCM_WHY_REVISION && why != CCM_WHY_LAST_REVISION && why != CCM_WHY_STRATEGY &&
	       p->v[i].strategy != CCM_RECEIVE_ONLY && !p->v[i].torn &&
	       p->v[i].revision == p->e.revision;
}

/* Returns the number of standing candidates that are equal to candidate i. Returns 0 if i does not
 * stand itself. */
static uint32_t votes(const struct poll *p, uint32_t i)
{
	uint32_t j, n = 0;

	for (j = 0; stands(p, i) && j < p->n; j++)
		n += stands(p, j) && same_candidate(&p->v[i], &p->v[j]);
	return n;
}

static void check_peer(const struct poll *p, uint32_t i)
{
	const struct ccm_candidate *x = &p->v[i], *elected = &p->v[p->e.elected];
	const struct ccm_standing *s = &p->s[i];

	ck_assert(!holds(s) || same_candidate(x, elected));
	ck_assert(!holds(s) || x->strategy != CCM_RECEIVE_ONLY);
	ck_assert((s->status == CCM_ELECT_HOLDER) == (holds(s) && x->revision == p->e.revision));
	if (s->status == CCM_ELECT_RECEIVER) {
		ck_assert_uint_ne(x->strategy, CCM_SEND_ONLY);
		ck_assert(s->misses == !same_candidate(x, elected));
		ck_assert(s->misses || x->strategy == CCM_RECEIVE_ONLY);
		ck_assert(same_digest(&x->keys, &elected->keys));
		ck_assert_uint_eq(x->hash_type, elected->hash_type);
	}
	if (s->status != CCM_ELECT_KICKED)
		ck_assert((x->strategy == CCM_ENFORCE_POPULAR) ==
			  (elected->strategy == CCM_ENFORCE_POPULAR));
	ck_assert_uint_le(votes(p, i), votes(p, p->e.elected));
	ck_assert(votes(p, i) < votes(p, p->e.elected) || i >= p->e.elected);
}

START_TEST(every_election_keeps_the_invariants)
{
	struct tl_rng r = tl_rng_new(1);
	uint32_t i, round, kicked, holders, elections = 0;
	struct poll p;

	for (round = 0; round < POLLS; round++) {
		draw(&r, &p);
		hold(&p);
		for (i = kicked = holders = 0; i < p.n; i++) {
			kicked += p.s[i].status == CCM_ELECT_KICKED;
			holders += p.s[i].status == CCM_ELECT_HOLDER;
			ck_assert(p.s[i].status == CCM_ELECT_KICKED || p.expected == 0 ||
				  p.v[i].revision <= p.expected);
		}
		ck_assert(p.e.nobody == (kicked == p.n));
		ck_assert(p.e.nobody == (holders == 0));
		if (p.e.nobody)
			continue;
		elections++;
		ck_assert(p.expected == 0 || p.e.revision == p.expected);
		ck_assert_uint_eq(p.v[p.e.elected].revision, p.e.revision);
		ck_assert_int_eq(p.s[p.e.elected].status, CCM_ELECT_HOLDER);
		ck_assert(!p.v[p.e.elected].torn);
		for (i = 0; i < p.n; i++)
			check_peer(&p, i);
	}
	ck_assert_uint_gt(elections, POLLS / 4);
	ck_assert_uint_lt(elections, POLLS - POLLS / 8);
}
END_TEST

/* Holds the election again without peer i. */
static void without(const struct poll *from, uint32_t i, struct poll *ret)
{
	*ret = *from;
	ret->n--;
	memmove(&ret->v[i], &ret->v[i + 1], (ret->n - i) * sizeof ret->v[0]);
	hold(ret);
}

static void same_but(const struct poll *p, const struct poll *q, uint32_t i)
{
	uint32_t j;

	ck_assert(!q->e.nobody);
	ck_assert_uint_eq(q->e.revision, p->e.revision);
	ck_assert(same_candidate(&q->v[q->e.elected], &p->v[p->e.elected]));
	for (j = 0; j < q->n; j++)
		ck_assert_str_eq(word(&q->s[j]), word(&p->s[j + (j >= i)]));
}

/* A peer that is kicked, receive-only or torn has no vote. Without this peer the others have the
 * same results. */
START_TEST(peers_without_a_vote_change_no_result)
{
	struct tl_rng r = tl_rng_new(2);
	uint32_t i, round, tried = 0;
	struct poll p, q;

	for (round = 0; round < POLLS; round++) {
		draw(&r, &p);
		hold(&p);
		for (i = 0; i < p.n && !p.e.nobody; i++) {
			if (p.s[i].status != CCM_ELECT_KICKED &&
				p.v[i].strategy != CCM_RECEIVE_ONLY && !p.v[i].torn)
				continue;
			without(&p, i, &q);
			same_but(&p, &q, i);
			tried++;
		}
	}
	ck_assert_uint_gt(tried, POLLS / 4);
}
END_TEST

/* A peer with a revision that is not allowed is always kicked. It changes nothing for the others,
 * not even if no candidate stands. */
START_TEST(peers_with_a_forbidden_revision_change_no_result)
{
	struct tl_rng r = tl_rng_new(3);
	struct poll p, q;
	uint32_t i, j, round;

	for (round = 0; round < POLLS; round++) {
		draw(&r, &p);
		hold(&p);
		for (i = 0; i < p.n; i++) {
			if (p.v[i].revision != UINT64_MAX &&
				(p.expected == 0 || p.v[i].revision <= p.expected))
				continue;
			ck_assert_int_eq(p.s[i].status, CCM_ELECT_KICKED);
			without(&p, i, &q);
			ck_assert(p.e.nobody == q.e.nobody);
			for (j = 0; j < q.n; j++)
				ck_assert_str_eq(word(&q.s[j]), word(&p.s[j + (j >= i)]));
		}
	}
}
END_TEST

static bool tied(const struct poll *p)
{
	uint32_t i;

	for (i = 0; i < p->n && !p->e.nobody; i++)
		if (!same_candidate(&p->v[i], &p->v[p->e.elected]) &&
			votes(p, i) == votes(p, p->e.elected))
			return true;
	return false;
}

/* Without a tie the order of the peers does not matter. */
START_TEST(order_of_peers_matters_only_in_a_tie)
{
	struct tl_rng r = tl_rng_new(4);
	uint32_t at[ROW_MAX], i, j, round, x, tries = 0;
	struct poll p, q;

	for (round = 0; round < POLLS; round++) {
		draw(&r, &p);
		hold(&p);
		if (tied(&p))
			continue;
		q = p;
		for (i = 0; i < p.n; i++)
			at[i] = i;
		for (i = p.n; i > 1; i--) {
			j = (uint32_t)tl_range(&r, 0, i - 1);
			x = at[i - 1];
			at[i - 1] = at[j];
			at[j] = x;
		}
		for (i = 0; i < p.n; i++)
			q.v[i] = p.v[at[i]];
		hold(&q);
		ck_assert(q.e.nobody == p.e.nobody);
		for (i = 0; i < p.n; i++)
			ck_assert_str_eq(word(&q.s[i]), word(&p.s[at[i]]));
		tries++;
	}
	ck_assert_uint_gt(tries, POLLS / 2);
}
END_TEST

/* Each kicked peer has a sentence, and no other peer has one. The sentence fits into the text for
 * the process, whatever the values are. */
START_TEST(sentences_fit_into_their_text)
{
	struct tl_rng r = tl_rng_new(5);
	uint32_t i, round, seen = 0;
	char text[2 * WM_TEXT_MAX];
	struct poll p;

	for (round = 0; round < POLLS; round++) {
		draw(&r, &p);
		p.expected = p.expected ? UINT64_MAX - 8 : 0;
		for (i = 0; i < p.n; i++) {
			if (p.v[i].revision != UINT64_MAX)
				p.v[i].revision += UINT64_MAX - 13;
			p.v[i].n_tensors = WIRE_TENSORS_MAX - p.v[i].keys.lo * tl_range(&r, 0, 1);
			p.v[i].bytes = WIRE_STATE_MAX;
			p.v[i].hash_type *= UINT32_C(2000000000);
		}
		hold(&p);
		for (i = 0; i < p.n; i++) {
			ccm_elect_sentence(&p.e, p.v, p.s, i, text, sizeof text);
			ck_assert_msg(strlen(text) < SHM_TEXT, "%s", text);
			ck_assert((text[0] != '\0') == (p.s[i].status == CCM_ELECT_KICKED));
			seen |= 1u << p.s[i].why;
		}
	}
	ck_assert_uint_eq(seen, (2u << CCM_WHY_WOULD_RECEIVE) - 1);
}
END_TEST

#define MANY 200000u

/* These are twenty times as many peers as the largest runs have. Quadratic work would take minutes
 * here. */
START_TEST(election_of_200000_peers_is_fast)
{
	static struct ccm_candidate v[MANY];
	static struct ccm_standing s[MANY];
	static uint32_t scratch[MANY];
	struct tl_rng r = tl_rng_new(6);
	struct ccm_election e;
	uint32_t i, shape;

	for (shape = 0; shape < 5; shape++) {
		for (i = 0; i < MANY; i++) {
			const uint64_t contents[] = {0, i, MANY - i, tl_range(&r, 0, 9), i / 2};

			v[i] = (struct ccm_candidate){
				.revision = 5, .hash_type = 1, .content.lo = contents[shape]};
		}
		v[MANY - 1] = v[MANY / 2];
		v[MANY - 2] = v[MANY / 2];
		ccm_elect(5, v, MANY, scratch, s, &e);
		ck_assert(!e.nobody);
		if (shape == 1 || shape == 2)
			ck_assert_uint_eq(e.elected, MANY / 2);
		for (i = 0; i < MANY; i++)
			ck_assert((s[i].status == CCM_ELECT_HOLDER) ==
				  (v[i].content.lo == v[e.elected].content.lo));
	}
}
END_TEST

Suite *elect_suite(void)
{
	Suite *s = suite_create("elect");
	TCase *tc = tcase_create("election of shared state");

	tcase_set_timeout(tc, 30);
	tcase_add_loop_test(tc, each_rule_has_its_outcome, 0, (int)(sizeof rows / sizeof rows[0]));
	tcase_add_loop_test(
		tc, each_reason_has_its_sentence, 0, (int)(sizeof sentences / sizeof sentences[0]));
	tcase_add_test(tc, sentence_about_similar_keys_names_other_differences);
	tcase_add_test(tc, every_election_keeps_the_invariants);
	tcase_add_test(tc, peers_without_a_vote_change_no_result);
	tcase_add_test(tc, peers_with_a_forbidden_revision_change_no_result);
	tcase_add_test(tc, order_of_peers_matters_only_in_a_tie);
	tcase_add_test(tc, sentences_fit_into_their_text);
	tcase_add_test(tc, election_of_200000_peers_is_fast);
	suite_add_tcase(s, tc);
	return s;
}
