/* SPDX-License-Identifier: MIT
 *
 * Chooses the requests to sources, and gives up sources that fail.
 *
 * A stream that has room requests the next range of missing leaves. So each source gets a share of
 * the work that fits its speed. A source that is a receiver itself begins its own work at a leaf
 * that follows from its agent id. Requests to it begin at this leaf, because it gets this leaf and
 * the next ones before all others. If a stream is lost, its unanswered requests are sent to other
 * streams.
 */
#include <stdio.h>
#include <string.h>

#include "common/cc_sys.h"
#include "pcclagentd/base/flow.h"
#include "pcclagentd/state/copy.h"
#include "pcclagentd/state/fetch.h"
#include "pcclagentd/state/job.h"
#include "pcclagentd/state/member.h"
#include "pcclagentd/state/narrow.h"
#include "pcclagentd/state/pace.h"
#include "pcclagentd/state/ste_internal.h"
#include "pcclagentd/state/stream.h"
#include "proto/wire_state.h"

#define OTHERS_MAX   4u          /* sources without holders that are asked at a time */
#define STRIKES_MAX  3u          /* losses of streams without a right answer in between */
#define WRONG_MAX    3u          /* wrong answers, see wrong_of_member */
#define ROUNDS_MAX   2u          /* attempts to reach any address of a source */
#define NEXT_ADDR_NS STE_MS(250) /* time until the next address is tried in parallel */
#define RETRY_NS     STE_MS(100)
#define LATE_NS      STE_MS(1000) /* if a step is later than this, this agent was suspended */
#define SEGS_NS      STE_MS(500)  /* silence after which TCP's counters are read */
#define HERE_NS      STE_MS(200)  /* time between two checks of this host's addresses */
#define QUIET_MIN_NS STE_MS(2)
#define QUIET_MAX_NS STE_MS(50)
#define TICK_NS      STE_MS(10)
/* The time between two measurements of the rate is the time of an answer, within these limits. */
#define PACE_MIN_NS STE_MS(20)
#define PACE_MAX_NS STE_MS(250)

/* For the message that no peer with the elected state is left. */
#define REASONS_MAX  3u
#define REASONS_REST 24u /* bytes for "; and %u more" */
#define REASON_NAME  24  /* bytes of a host's name */

/* Returns the time after which a source with holders is given up if it has not started. If only
 * sources without holders are left, the job fails after this time without progress. */
static uint64_t standstill_ns(const struct ste *e)
{
	return STE_MS(ste_bound_ms(e, CC_BOUND_STREAM));
}

static uint32_t live(const struct ste_job *j, bool holds)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < j->n_srcs; i++)
		n += j->srcs[i].s.holds == holds && !j->srcs[i].lost;
	return n;
}

void ste_fetch_begin(struct ste_job *j)
{
	j->fetching = true;
	j->want_asked = false;
	j->next_want = 0;
	j->paced_ns = j->e->now_ns;
	ste_job_moved(j);
	for (uint32_t i = 0; i < j->n_srcs; i++) {
		struct ste_src *src = &j->srcs[i];
		uint64_t id = 0;

		for (size_t k = 0; k < sizeof id; k++)
			id = id << 8 | src->s.agent.b[k];
		src->waiting = ste_pace_all(0, 0) / j->e->cfg.streams;
		src->cursor = j->n_leaves ? id % j->n_leaves : 0;
	}
}

void ste_fetch_end(struct ste_job *j)
{
	while (j->streams)
		ste_stream_close(j->streams);
}

/* ---- losses ---- */

static void give_up(struct ste_job *j, struct ste_src *src)
{
	struct ste_stream *s, *next;

	if (src->lost)
		return;
	snprintf(src->text, sizeof src->text, "%s", src->last);
	src->lost = true;
	for (s = j->streams; s; s = next) {
		next = s->next;
		if (s->src != src)
			continue;
		ste_stream_lost(s, STE_FAULT_NONE, src->last);
		next = j->streams;
	}
}

void ste_fetch_return(struct ste_job *j, const struct wst_request *r)
{
	if (r->kind == WST_TENSORS) {
		j->want_asked = false;
	} else if (r->kind == WST_BLOCK) {
		ste_job_settle(j, r->tensor, r->first, r->n);
	} else if (j->tensor[r->tensor] == STE_TENSOR_ASKED) {
		j->tensor[r->tensor] = STE_TENSOR_WANT;
		if (r->tensor < j->next_want)
			j->next_want = r->tensor;
	}
}

static void return_all(struct ste_stream *s)
{
	struct ste_job *j = s->j;
	struct wst_request rest = {.kind = s->hash_kind, .tensor = s->hash_tensor};

	if (s->block)
		ste_block_drop(j, s->block);
	else if (s->stalled || (s->busy && s->cur.req.kind != WST_BLOCK))
		ste_fetch_return(j, &s->cur.req);
	s->block = NULL;
	s->busy = s->stalled = false;
	for (; s->n_asks > 0; s->n_asks--)
		ste_fetch_return(j, &s->asks[s->ask_head++ % STE_ASKS].req);
	if (s->hash_next < s->hash_end)
		ste_fetch_return(j, &rest);
	s->hash_next = s->hash_end = 0;
}

/* Excludes the member that a wrong answer names from further requests. This member may have changed
 * its tensors since it voted, while the other members of its host have not. Returns false if the
 * source itself is at fault, because it answered from a member that the request excluded, or named
 * no member. So a source has about as many tries as members. */
static bool wrong_of_member(const struct ste_stream *s)
{
	uint64_t bit = s->member > 0 ? (uint64_t)1 << (s->member - 1) : 0;

	if (s->cur.req.without & bit)
		return false;
	s->src->liars |= bit;
	return bit != 0;
}

void ste_stream_lost(struct ste_stream *s, enum ste_fault fault, const char *why)
{
	struct ste_job *j = s->j;
	struct ste_src *src = s->src;
	bool was_up = s->state == STE_UP, was_stalled = s->stalled;
	bool suspect = fault == STE_FAULT_LOST && ste_narrow_suspect(s);
	/* Streams that are lost together count as one loss. */
	bool ignored = fault == STE_FAULT_WRONG
			       ? wrong_of_member(s)
			       : fault == STE_FAULT_LOST && s->opened_ns <= src->struck_ns;
	char text[STE_TEXT_MAX];

	/* A copy, because `why` may be part of the stream or the source. */
	snprintf(text, sizeof text, "%s%s%s", why, suspect ? "; " : "",
		suspect ? FLOW_STUCK_TEXT : "");
	if (suspect)
		ste_narrow_shrink(s);
	return_all(s);
	ste_stream_close(s);
	if (fault == STE_FAULT_NONE || src->lost)
		return;
	src->exhausted |= fault == STE_FAULT_LIMIT;
	/* If all members of the source are excluded, the earlier error explains more. */
	if (src->exhausted ? fault == STE_FAULT_LIMIT : fault != STE_FAULT_GONE || src->liars == 0)
		memcpy(src->last, text, sizeof text);
	src->retry_ns = j->e->now_ns + RETRY_NS;
	/* The loss does not count while other addresses can be tried, or if the stream waited for
	 * this agent. */
	if ((!was_up && src->good_addr < 0) || was_stalled || ignored)
		return;
	src->strikes++;
	src->struck_ns = j->e->now_ns;
	src->wrong += fault == STE_FAULT_WRONG;
	if (fault == STE_FAULT_GONE || src->strikes >= STRIKES_MAX || src->wrong >= WRONG_MAX)
		give_up(j, src);
}

void ste_stream_up(struct ste_stream *up)
{
	struct ste_src *src = up->src;
	struct ste_stream *s, *next;
	uint64_t took = up->j->e->now_ns - up->answered_ns;

	up->state = STE_UP;
	(void)cc_local_addr(up->f.fd, &up->here);
	up->window = src->waiting;
	if (took < src->base_ns)
		src->base_ns = took > 0 ? took : 1;
	src->n_up++;
	src->rounds = 0;
	src->exhausted = false;
	if (src->good_addr >= 0)
		return;
	src->good_addr = (int)up->addr;
	src->retry_ns = 0;
	for (s = up->j->streams; s; s = next) {
		next = s->next;
		if (s->src == src && s->state != STE_UP)
			ste_stream_close(s);
	}
}

void ste_stream_right(struct ste_stream *s, uint64_t bytes)
{
	struct ste_src *src = s->src;

	src->strikes = 0;
	src->not_yet = 0;
	atomic_fetch_add_explicit(&src->bytes, bytes, memory_order_relaxed);
}

void ste_stream_not_yet(struct ste_stream *s)
{
	struct ste_src *src = s->src;
	uint64_t now = s->j->e->now_ns, quiet = QUIET_MAX_NS;

	if (src->not_yet++ == 0)
		src->not_yet_ns = now;
	if (src->not_yet < 8)
		quiet = QUIET_MIN_NS << src->not_yet;
	s->quiet_ns = now + (quiet < QUIET_MAX_NS ? quiet : QUIET_MAX_NS);
	s->window = 1;
	if (src->s.holds && now - src->not_yet_ns > standstill_ns(s->j->e))
		ste_stream_lost(s, STE_FAULT_GONE, "it has not begun");
}

/* ---- streams ---- */

static bool open_one(struct ste_job *j, struct ste_src *src, uint32_t addr)
{
	char why[STE_TEXT_MAX];

	if (j->n_streams == STE_STREAMS_MAX)
		return false;
	if (ste_stream_open(j, src, addr, why))
		return true;
	memcpy(src->last, why, sizeof why);
	src->retry_ns = j->e->now_ns + RETRY_NS;
	return false;
}

/* Tries one address after the other, until one is reached. */
static void try_addresses(struct ste_job *j, struct ste_src *src)
{
	if (src->next_addr < src->s.n_addrs) {
		if (src->n_streams > 0 && j->e->now_ns < src->retry_ns)
			return;
		if (open_one(j, src, src->next_addr++))
			src->retry_ns = j->e->now_ns + NEXT_ADDR_NS;
		return;
	}
	if (src->n_streams > 0 || j->e->now_ns < src->retry_ns)
		return;
	src->next_addr = 0;
	src->retry_ns = 0;
	if (src->last[0] == '\0')
		snprintf(src->last, sizeof src->last, "it has no address");
	if (++src->rounds >= ROUNDS_MAX)
		give_up(j, src);
}

static void open_streams(struct ste_job *j)
{
	uint32_t holders = live(j, true), others = 0, each = 1;

	if (holders > 0)
		each = (j->e->cfg.streams + holders - 1) / holders;
	for (uint32_t i = 0; i < j->n_srcs; i++) {
		struct ste_src *src = &j->srcs[i];
		uint32_t wanted = src->s.holds ? each : 1;

		if (src->lost)
			continue;
		if (!src->s.holds) {
			/* A source without holders only has leaves that it has verified itself. */
			if (others++ >= OTHERS_MAX || (holders > 0 && j->n_missing == 0))
				continue;
		}
		if (src->good_addr < 0)
			try_addresses(j, src);
		while (!src->lost && src->good_addr >= 0 && src->n_streams < wanted &&
			j->e->now_ns >= src->retry_ns && open_one(j, src, (uint32_t)src->good_addr))
			;
	}
}

/* ---- asking ---- */

static uint32_t at_once(const struct ste_job *j, uint64_t hashes)
{
	return hashes < j->e->cfg.hashes ? (uint32_t)hashes : j->e->cfg.hashes;
}

/* Requests the first of `all` hashes. The rest is requested by ask_rest. */
static void ask_first(struct ste_stream *s, struct wst_request *r, uint64_t all)
{
	r->n = at_once(s->j, all);
	if (r->n < all) {
		s->hash_kind = r->kind;
		s->hash_tensor = r->tensor;
		s->hash_next = s->hash_end = all;
	}
	ste_stream_ask(s, r, (uint64_t)r->n * 8);
}

static bool ask_tensors(struct ste_stream *s)
{
	struct ste_job *j = s->j;
	struct wst_request r = {.kind = WST_TENSORS};

	if (j->want_asked || j->n_tensors == 0)
		return false;
	j->want_asked = true;
	ask_first(s, &r, j->n_tensors);
	return true;
}

static bool ask_rest(struct ste_stream *s)
{
	struct wst_request r = {
		.kind = s->hash_kind, .n = at_once(s->j, s->hash_end - s->hash_next)};

	if (s->hash_kind == WST_TENSORS) {
		r.tensor = (uint32_t)s->hash_next;
	} else {
		r.tensor = s->hash_tensor;
		r.first = s->hash_next;
	}
	s->hash_next += r.n;
	ste_stream_ask(s, &r, (uint64_t)r.n * 8);
	return true;
}

static bool ask_leaves(struct ste_stream *s)
{
	struct ste_job *j = s->j;
	const uint8_t *t =
		memchr(j->tensor + j->next_want, STE_TENSOR_WANT, j->n_tensors - j->next_want);
	struct wst_request r = {.kind = WST_LEAVES};

	if (s->hash_end > 0)
		return false; /* one set of hashes after the other */
	if (!t) {
		j->next_want = j->n_tensors;
		return false;
	}
	r.tensor = (uint32_t)(t - j->tensor);
	j->tensor[r.tensor] = STE_TENSOR_ASKED;
	j->next_want = r.tensor + 1;
	ask_first(s, &r, wire_leaf_count(j->tensors[r.tensor].bytes));
	return true;
}

static uint32_t next_leaves(const struct ste_stream *s)
{
	const struct ste_job *j = s->j;
	struct ste_rest r = {.bytes = j->n_missing * WIRE_LEAF,
		.rate = s->rate,
		.ahead = s->ahead,
		.window = s->window};

	for (const struct ste_stream *i = j->streams; i; i = i->next) {
		if (i != s && i->window == 1)
			continue;
		r.streams++;
		r.known += i->rate > 0;
		r.rates += i->rate;
		r.bytes += i->ahead;
	}
	return ste_pace_leaves(&r);
}

static bool ask_block(struct ste_stream *s)
{
	struct ste_job *j = s->j;
	uint32_t n = next_leaves(s);
	uint64_t *cursor = s->src->s.holds ? &j->cursor : &s->src->cursor;
	struct ste_block b;
	struct wst_request r;

	if (n == 0 || !ste_job_pick(j, cursor, n, &b))
		return false;
	r = (struct wst_request){.kind = WST_BLOCK, .tensor = b.tensor, .first = b.first, .n = b.n};
	ste_stream_ask(s, &r, b.len);
	return true;
}

static bool ask_next(struct ste_stream *s)
{
	struct ste_job *j = s->j;
	/* While a source with holders is left, other sources are asked only for leaves. */
	bool all = s->src->s.holds || live(j, true) == 0;

	if (s->hash_next < s->hash_end)
		return ask_rest(s);
	if (!j->have_want)
		return all && ask_tensors(s);
	if (all && j->next_want < j->n_tensors && ask_leaves(s))
		return true;
	return ask_block(s);
}

/* Measures the rate from time to time, and computes ste_src.waiting of all sources from it. */
static void pace(struct ste_job *j)
{
	uint64_t now = j->e->now_ns, since = now - j->paced_ns, rx;
	struct ste_load v[STE_SOURCES_MAX] = {0};

	if (since < PACE_MIN_NS || (since < j->base_ns && since < PACE_MAX_NS))
		return;
	j->base_ns = 0;
	for (uint32_t i = 0; i < j->n_srcs; i++)
		v[i] = (struct ste_load){
			.bytes = atomic_load_explicit(&j->srcs[i].bytes, memory_order_relaxed),
			.waiting = j->srcs[i].waiting};
	for (const struct ste_stream *s = j->streams; s; s = s->next) {
		if (s->ahead == 0 || s->window == 1)
			continue;
		v[s->src - j->srcs].streams++;
		if (s->src->base_ns > j->base_ns)
			j->base_ns = s->src->base_ns;
	}
	rx = atomic_load_explicit(&j->net_rx, memory_order_relaxed);
	ste_pace_share(v, j->n_srcs,
		ste_pace_all((rx - j->paced_rx) * 1000000 / (since / 1000), j->base_ns));
	for (uint32_t i = 0; i < j->n_srcs; i++)
		j->srcs[i].waiting = v[i].waiting;
	j->paced_ns = now;
	j->paced_rx = rx;
}

static void ask(struct ste_stream *s)
{
	if (s->state != STE_UP || s->j->e->now_ns < s->quiet_ns)
		return;
	while (s->n_asks < STE_ASKS && (s->ahead == 0 || s->ahead < s->window) && ask_next(s))
		if (s->window == 1)
			break; /* the source had no data yet: one request at a time */
	if (s->out_to > s->out_from)
		ste_stream_flush(s);
}

/* ---- time ---- */

/* Have `ms` and the path allowance in both directions passed since `since_ns`? */
static bool has_passed(const struct ste_stream *s, uint64_t since_ns, uint64_t ms)
{
	uint64_t passed = s->j->e->now_ns - since_ns;

	return s->j->e->now_ns > since_ns && passed > STE_MS(ms) &&
	       passed > STE_MS(ms + UINT64_C(2) * cc_tcp_path_ms(s->f.fd));
}

/* Was the source silent for `ms`? Bytes that came after a lost packet cannot be read yet, but they
 * count, because they show that the source sends. */
static bool is_silent(struct ste_stream *s, uint32_t ms)
{
	uint64_t now = s->j->e->now_ns, since = s->heard_ns;

	if (now > since + SEGS_NS && ste_narrow_hears(s))
		s->segs_ns = now;
	return has_passed(s, s->segs_ns > since ? s->segs_ns : since, ms);
}

/* Checks whether the stream must be given up, and writes the reason to `why`. */
static bool is_overdue(struct ste_stream *s, char why[STE_TEXT_MAX])
{
	const struct ste *e = s->j->e;
	uint32_t open_ms = ste_bound_ms(e, CC_BOUND_ROUND);
	uint32_t silence_ms = ste_bound_ms(e, CC_BOUND_STUCK);
	uint32_t answer_ms = STE_ANSWERS * ste_bound_ms(e, CC_BOUND_STREAM);

	if (s->state == STE_CONNECTING) {
		snprintf(why, STE_TEXT_MAX, "no connection within %u ms", open_ms);
		return has_passed(s, s->opened_ns, open_ms);
	}
	if (s->state == STE_GREETING) {
		snprintf(why, STE_TEXT_MAX, "no answer to the hello within %u ms", open_ms);
		return has_passed(s, s->heard_ns, open_ms);
	}
	if (s->stalled || (s->n_asks == 0 && !s->busy))
		return false;
	if (is_silent(s, silence_ms)) {
		snprintf(why, STE_TEXT_MAX, "it sent nothing for %u ms", silence_ms);
		return true;
	}
	snprintf(why, STE_TEXT_MAX, "it took more than %u ms for an answer", answer_ms);
	return has_passed(s, s->answered_ns, answer_ms);
}

/* Closes streams whose local address this host no longer has, because such streams are dead. New
 * streams are opened at once. */
static void leave_lost_addresses(struct ste_job *j)
{
	struct ste_stream *s, *next;

	for (s = j->streams; s; s = next) {
		next = s->next;
		if (s->state != STE_UP || !cc_addr_has_left(&s->here))
			continue;
		ste_stream_lost(s, STE_FAULT_LOST, "this host has lost the stream's address");
		next = j->streams;
	}
}

static void look_at_streams(struct ste_job *j)
{
	uint64_t now = j->e->now_ns;
	bool late = now > j->e->looked_ns + LATE_NS;
	struct ste_stream *s, *next;

	for (s = j->streams; s; s = next) {
		char why[STE_TEXT_MAX];

		next = s->next;
		if (late)
			s->opened_ns = s->heard_ns = s->answered_ns = now;
		if (is_overdue(s, why)) {
			ste_stream_lost(s, STE_FAULT_LOST, why);
			next = j->streams;
		}
	}
	if (late)
		ste_job_moved(j);
}

/* A text with the reasons why sources and holders are lost. Each reason gets an equal part of the
 * room. */
struct reasons {
	char text[STE_TEXT_MAX];
	size_t len;
	uint32_t left, more; /* reasons still to be added; reasons that are only counted */
};

static void add_reason(struct reasons *r, const char *name, const char *why)
{
	size_t room = sizeof r->text - REASONS_REST - r->len;
	int n;

	if (r->left == 0)
		return;
	room /= r->left--;
	n = snprintf(r->text + r->len, room, "; %.*s: %s", REASON_NAME, name, why);
	r->len += (size_t)n < room ? (size_t)n : room - 1;
}

static uint32_t count_reasons(const struct ste_job *j)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < j->n_peers; i++)
		n += j->peers[i].m.holder;
	for (uint32_t i = 0; i < j->n_srcs; i++)
		n += j->srcs[i].lost;
	return n;
}

/* Returns a source that is lost because an agent lacks a resource for a stream, or NULL. */
static const struct ste_src *find_exhausted(const struct ste_job *j)
{
	for (uint32_t i = 0; i < j->n_srcs; i++)
		if (j->srcs[i].lost && j->srcs[i].exhausted)
			return &j->srcs[i];
	return NULL;
}

static void nobody_left(struct ste_job *j)
{
	const struct ste_src *short_of = find_exhausted(j);
	struct reasons r = {.text = "no remaining peer has the elected state"};
	const struct cc_id *suspect = NULL;

	if (short_of) {
		snprintf(r.text, sizeof r.text, "no stream to %.*s: %.340s", REASON_NAME,
			short_of->s.name, short_of->text);
		j->exhausted = true;
		ste_job_fail(j, NULL, r.text);
		return;
	}
	r.len = strlen(r.text);
	r.more = count_reasons(j);
	r.left = r.more < REASONS_MAX ? r.more : REASONS_MAX;
	r.more -= r.left;
	for (uint32_t i = 0; i < j->n_peers; i++)
		if (j->peers[i].m.holder)
			add_reason(&r, "on this host", j->peers[i].text);
	for (uint32_t i = 0; i < j->n_srcs; i++) {
		if (!j->srcs[i].lost)
			continue;
		suspect = &j->srcs[i].s.agent;
		add_reason(&r, j->srcs[i].s.name, j->srcs[i].text);
	}
	if (r.more > 0)
		snprintf(r.text + r.len, sizeof r.text - r.len, "; and %u more", r.more);
	ste_job_fail(j, suspect, r.text);
}

void ste_fetch_step(struct ste_job *j)
{
	struct ste_stream *s, *next;

	look_at_streams(j);
	if (j->e->now_ns - j->here_ns > HERE_NS) {
		j->here_ns = j->e->now_ns;
		leave_lost_addresses(j);
	}
	open_streams(j);
	pace(j);
	if (live(j, true) == 0 &&
		(live(j, false) == 0 || j->e->now_ns > j->moved_ns + standstill_ns(j->e))) {
		nobody_left(j);
		return;
	}
	for (s = j->streams; s; s = next) {
		next = s->next;
		if (s->stalled)
			ste_stream_resume(s);
		if (s->f.fd < 0) {
			next = j->streams;
			continue;
		}
		ask(s);
		if (s->f.fd < 0)
			next = j->streams;
	}
}

uint64_t ste_fetch_next_ns(const struct ste_job *j)
{
	uint64_t next = j->e->now_ns + TICK_NS;

	for (const struct ste_stream *s = j->streams; s; s = s->next)
		if (s->quiet_ns > j->e->now_ns && s->quiet_ns < next)
			next = s->quiet_ns;
	return next;
}
