/* SPDX-License-Identifier: MIT
 *
 * Synchronizations of the three peers of trio.h.
 */
#ifndef TESTS_MASTER_TRIO_SYNC_H
#define TESTS_MASTER_TRIO_SYNC_H

#include <check.h>

#include "tests/master/trio.h"

#define HOLDER   WM_SYNC_HOLDER
#define RECEIVER WM_SYNC_RECEIVER

static inline const struct wm_sync_start *start_of(struct fk_host *h)
{
	const struct wm_op_start *s = &fk_take(h, WM_OP_START)->u.op_start;

	ck_assert(s->is_sync);
	ck_assert_uint_eq(s->tag, 0);
	return &s->sync;
}

static inline uint32_t role_in(const struct wm_sync_start *s, const struct fk_peer *who)
{
	uint32_t i;

	for (i = 0; i < s->n_peers && !cc_id_eq(&s->peers[i].peer, &who->id); i++)
		;
	ck_assert_uint_lt(i, s->n_peers);
	return s->peers[i].role;
}

static inline uint64_t seq_now(void)
{
	return fk_status(&f).last_seq;
}

static inline void report_all(uint64_t seq)
{
	struct fk_host *h[] = {a, b, c};
	size_t i;

	for (i = 0; i < 3; i++)
		if (h[i]->open)
			fk_report(h[i], seq, true);
}

/* Sends votes of all three peers with the same candidate. */
static inline void sync_equal(uint64_t revision, uint64_t content)
{
	fk_sync(&p, fk_candidate(revision, content));
	fk_sync(&q, fk_candidate(revision, content));
	fk_sync(&r, fk_candidate(revision, content));
}

static inline void done_equal(uint64_t revision)
{
	uint64_t done = fk_status(&f).ops_done;

	sync_equal(revision, 1);
	report_all(seq_now());
	ck_assert_uint_eq(fk_status(&f).ops_done, done + 1);
	fk_forget(&f);
}

/* Sends votes: p and q with the same content, r with another, so r becomes a receiver. Returns the
 * sequence number of the attempt. */
static inline uint64_t two_and_one(void)
{
	fk_sync(&p, fk_candidate(7, 1));
	fk_sync(&q, fk_candidate(7, 1));
	fk_sync(&r, fk_candidate(7, 2));
	return seq_now();
}

#endif
