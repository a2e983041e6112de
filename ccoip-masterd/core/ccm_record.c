/* SPDX-License-Identifier: MIT
 *
 * Records of shared state for operators: the result of the last election of each group, the peers
 * that differed from the elected contents, and the end of the synchronization. Nothing else depends
 * on these records.
 */
#include "ccoip-masterd/core/ccm_record.h"

#include <inttypes.h>
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_sync.h"

#define RECORDS_MAX 4096u
#define DIGEST      "%016" PRIx64 "%016" PRIx64

/* A peer in an election. */
struct entry {
	struct cc_id peer;
	char name[WM_NAME_MAX], host[WM_NAME_MAX];
	uint32_t pid;
	struct wm_sync_vote candidate;
	enum ccm_stand stand;
	bool misses; /* RECEIVER: its contents differ from the elected ones */
	char *text;  /* OUT: the reason; or NULL */
};

struct ccm_record {
	uint32_t group;
	UT_hash_handle hh;
	uint64_t ns, seq;
	enum ccm_sync_end end;
	struct wm_sync_vote elected; /* its revision is the group's once all contents are equal */
	char text[WM_TEXT_MAX];      /* FAILED: the reason */
	uint32_t n;
	struct entry v[];
};

static struct wm_digest digest(const struct ccm_digest *d)
{
	return (struct wm_digest){d->hi, d->lo};
}

static struct wm_sync_vote vote_of(const struct ccm_candidate *c)
{
	return (struct wm_sync_vote){
		.revision = c->revision,
		.strategy = c->strategy,
		.hash_type = c->hash_type,
		.keys = digest(&c->keys),
		.content = digest(&c->content),
		.n_tensors = c->n_tensors,
		.bytes = c->bytes,
		.torn = c->torn,
	};
}

static char *copy_text(const char *text)
{
	return cc_must_copy(text, strlen(text) + 1, 1);
}

static void fill_entry(struct entry *x, const struct ccm_peer *p, const struct ccm_candidate *c,
	const struct ccm_standing *s)
{
	static const enum ccm_stand stands[] = {
		[CCM_ELECT_KICKED] = CCM_STAND_OUT,
		[CCM_ELECT_HOLDER] = CCM_STAND_HOLDER,
		[CCM_ELECT_HOLDER_OUTDATED] = CCM_STAND_OUTDATED,
		[CCM_ELECT_RECEIVER] = CCM_STAND_RECEIVER,
	};

	x->peer = p->id;
	x->pid = p->pid;
	ccm_print(x->name, sizeof x->name, "%s", p->name);
	ccm_print(x->host, sizeof x->host, "%s", p->membership->agent->hello.name);
	x->candidate = vote_of(c);
	x->stand = stands[s->status];
	x->misses = s->misses;
}

static void record_free(struct ccm_record *r)
{
	uint32_t i;

	for (i = 0; i < r->n; i++)
		free(r->v[i].text);
	free(r);
}

static void drop(struct ccm *m, struct ccm_record *r)
{
	if (!r)
		return;
	HASH_DELETE(hh, m->records, r);
	record_free(r);
}

static struct ccm_record *find(const struct ccm *m, uint32_t group)
{
	struct ccm_record *r;

	HASH_FIND(hh, m->records, &group, sizeof group, r);
	return r;
}

/* Adds a record with room for n peers, in place of the group's last one. */
static struct ccm_record *add(struct ccm *m, uint32_t group, uint32_t n)
{
	struct ccm_record *r = cc_must_zalloc(1, sizeof *r + n * sizeof r->v[0]);

	drop(m, find(m, group));
	if (HASH_COUNT(m->records) == RECORDS_MAX)
		drop(m, m->records);
	r->group = group;
	HASH_ADD(hh, m->records, group, sizeof r->group, r);
	return r;
}

void ccm_record_election(struct ccm *m, uint32_t group, struct ccm_peer *const *peers,
	const struct ccm_candidate *v, uint32_t n, const struct ccm_standing *s,
	const struct ccm_election *e)
{
	struct ccm_record *r = add(m, group, n);
	char text[WM_TEXT_MAX];
	uint32_t i;

	r->ns = m->now;
	r->end = e->nobody ? CCM_SYNC_NOBODY : CCM_SYNC_RUNNING;
	if (!e->nobody) {
		r->elected = vote_of(&v[e->elected]);
		r->elected.revision = e->revision;
	}
	r->n = n;
	for (i = 0; i < n; i++) {
		fill_entry(&r->v[i], peers[i], &v[i], &s[i]);
		ccm_elect_sentence(e, v, s, i, text, sizeof text);
		if (text[0])
			r->v[i].text = copy_text(text);
	}
}

void ccm_record_started(struct ccm *m, uint32_t group, uint64_t seq)
{
	struct ccm_record *r = find(m, group);

	if (r)
		r->seq = seq;
}

/* Returns the record of this attempt while it runs, or NULL. */
static struct ccm_record *running(const struct ccm *m, uint32_t group, uint64_t seq)
{
	struct ccm_record *r = find(m, group);

	return r && r->seq == seq && r->end == CCM_SYNC_RUNNING ? r : NULL;
}

void ccm_record_out(
	struct ccm *m, uint32_t group, uint64_t seq, const struct cc_id *peer, const char *text)
{
	struct ccm_record *r = running(m, group, seq);
	uint32_t i;

	for (i = 0; r && i < r->n; i++) {
		struct entry *x = &r->v[i];

		if (x->stand != CCM_STAND_OUT && cc_id_eq(&x->peer, peer)) {
			x->stand = CCM_STAND_OUT;
			x->text = copy_text(text);
		}
	}
}

void ccm_record_ended(struct ccm *m, uint32_t group, uint64_t seq, const char *text)
{
	struct ccm_record *r = running(m, group, seq);

	if (!r)
		return;
	r->end = text ? CCM_SYNC_FAILED : CCM_SYNC_DONE;
	ccm_print(r->text, sizeof r->text, "%s", text ? text : "");
}

void ccm_records_free(struct ccm *m)
{
	struct ccm_record *r, *next;

	HASH_ITER (hh, m->records, r, next)
		drop(m, r);
}

/* ---- for operators ---- */

static void fill_state(const struct ccm_record *r, uint64_t now_ns, struct ccm_state_info *info)
{
	uint32_t i;

	info->seq = r->seq;
	info->end = r->end;
	info->age_ns = ccm_age(now_ns, r->ns);
	info->elected = r->elected;
	ccm_print(info->text, sizeof info->text, "%s", r->text);
	for (i = 0; i < r->n; i++) {
		switch (r->v[i].stand) {
		case CCM_STAND_HOLDER:
		case CCM_STAND_OUTDATED:
			info->holders++;
			break;
		case CCM_STAND_RECEIVER:
			info->receivers++;
			break;
		case CCM_STAND_OUT:
			info->out++;
			break;
		}
	}
}

static bool has_peers(const struct ccm *m, uint32_t group)
{
	struct ccm_group *g;

	HASH_FIND(hh, m->groups, &group, sizeof group, g);
	return g != NULL;
}

static void show_left(const struct ccm *m, uint64_t now_ns, uint32_t group,
	const struct ccm_record *r, void (*fn)(void *arg, const struct ccm_state_info *s),
	void *arg)
{
	const struct ccm_revision *x = ccm_revision_find(m, group);
	struct ccm_state_info info = {.group = group, .expected = x ? x->expected : 0};

	if (r)
		fill_state(r, now_ns, &info);
	fn(arg, &info);
}

void ccm_each_state(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_state_info *s), void *arg)
{
	const struct ccm_revision *x;
	const struct ccm_record *r;
	struct ccm_group *g;

	for (g = m->groups; g; g = g->hh.next) {
		struct ccm_state_info info = {
			.group = g->id, .peers = g->n_accepted, .expected = ccm_revision_of(g)};

		r = find(m, g->id);
		if (r)
			fill_state(r, now_ns, &info);
		fn(arg, &info);
	}
	/* Groups whose peers are all gone. */
	for (r = m->records; r; r = r->hh.next)
		if (!has_peers(m, r->group))
			show_left(m, now_ns, r->group, r, fn, arg);
	for (x = m->revisions; x; x = x->hh.next)
		if (!has_peers(m, x->group) && !find(m, x->group))
			show_left(m, now_ns, x->group, NULL, fn, arg);
}

/* Writes how x differed from the elected candidate. */
static void describe(const struct ccm_record *r, const struct entry *x, char *text, size_t size)
{
	const struct wm_sync_vote *have = &x->candidate, *want = &r->elected;
	bool other = have->revision != want->revision;

	text[0] = '\0';
	if (x->stand == CCM_STAND_OUT) {
		ccm_print(text, size, "%s", x->text ? x->text : "");
		return;
	}
	if (other)
		ccm_print(text, size, "revision %" PRIu64 ", but revision %" PRIu64 " was elected",
			have->revision, want->revision);
	if (x->misses)
		ccm_append(text, size, "%scontents " DIGEST ", but " DIGEST " were elected",
			other ? "; " : "", have->content.hi, have->content.lo, want->content.hi,
			want->content.lo);
	else if (other)
		ccm_append(text, size, "; the contents are equal");
	if (have->torn)
		ccm_append(text, size, "%sit reported torn tensors",
			text[0] ? "; " : "the contents are equal; ");
}

void ccm_each_stand(
	const struct ccm *m, void (*fn)(void *arg, const struct ccm_stand_info *s), void *arg)
{
	const struct ccm_record *r;
	uint32_t i;

	for (r = m->records; r; r = r->hh.next) {
		for (i = 0; i < r->n; i++) {
			const struct entry *x = &r->v[i];
			struct ccm_stand_info info = {
				.group = r->group,
				.peer = x->peer,
				.name = x->name,
				.host = x->host,
				.pid = x->pid,
				.candidate = x->candidate,
				.stand = x->stand,
			};

			describe(r, x, info.text, sizeof info.text);
			fn(arg, &info);
		}
	}
}

const char *ccm_stand_name(enum ccm_stand s)
{
	static const char *const names[] = {"holder", "outdated holder", "receiver", "kicked"};

	return names[s];
}

const char *ccm_sync_end_name(enum ccm_sync_end e)
{
	static const char *const names[] = {"", "running", "done", "failed", "nobody elected"};

	return names[e];
}
