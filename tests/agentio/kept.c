/* SPDX-License-Identifier: MIT
 *
 * What an agent remembers of jobs of shared state, for people: whose tensors differed and why, by
 * which keys, and only if the memory for it is the user's to have.
 */
#include "pcclagentd/agentd_internal.h"

#include <stdio.h>
#include <string.h>

#include "proto/wire_codes.h"
#include "tests/agentio/candidate.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

#define BYTES ((uint64_t)100000)

static struct candidate oa, ob; /* a has what is elected, b has not */

static void setup(void)
{
	pair_begin(NULL);
	candidate_init(&oa, &a, &qa, BYTES, 7, true);
	candidate_init(&ob, &b, &qb, BYTES, 9, true);
}

static void teardown(void)
{
	pair_end();
	candidate_free(&oa);
	candidate_free(&ob);
}

/* ---- jobs */

/* With b's tensors filled like this. */
static void write_both(uint8_t fill)
{
	memset(ob.data[0], fill, BYTES + 5);
	candidate_write(&oa, 3);
	candidate_write(&ob, 3);
}

static void push_both(void)
{
	candidate_push(&oa);
	candidate_push(&ob);
	sync_expect_votes(&m, 2);
}

/* Up to its end, and b has what was elected. */
static void succeed(void)
{
	struct wm_msg msg;

	sync_elect(&m, &oa, true, false, NULL);
	sync_expect_report(&m, 0, &msg);
	wire_master_clear(&msg);
	sync_finish(&m, 3);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_SUCCESS);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_SUCCESS);
	candidate_check(&ob, 7);
}

static void run(uint8_t fill)
{
	write_both(fill);
	push_both();
	succeed();
}

/* ---- what is known of b's last one */

struct look {
	bool any, has_keys;
	enum diff_cause cause;
	uint32_t n_tensors, n_keys;
	struct wm_digest keys;
	char key[2][DIFF_NAME_MAX];
};

static void look_inside(struct agentd *d, void *arg)
{
	const struct diff_report *report = op_diff_of(d->ops, qb.comm);
	const struct diff_member *x = report ? op_diff_member(report, qb.comm) : NULL;
	struct look *l = arg;

	*l = (struct look){.any = report != NULL};
	if (!l->any)
		return;
	ck_assert_ptr_nonnull(x);
	l->cause = x->cause;
	l->n_tensors = x->n_tensors;
	l->has_keys = report->keys != NULL;
	if (!l->has_keys)
		return;
	l->keys = report->keys->digest;
	l->n_keys = report->keys->n;
	for (uint32_t i = 0; i < l->n_keys && i < 2; i++)
		snprintf(l->key[i], sizeof l->key[i], "%s", report->keys->v[i].name);
}

static struct look look(void)
{
	struct look l;

	fx_call(&f, look_inside, &l);
	return l;
}

/* ---- tests */

/* Torn state is called that, whether its peer has been equal before or not. */
START_TEST(torn)
{
	write_both(9);
	ob.sqe.sync.torn = 1;
	ob.sqe.flags |= _i ? SHM_SQE_SYNCED : 0;
	push_both();
	succeed();
	ck_assert_uint_eq(look().cause, DIFF_TORN);
	ck_assert_uint_eq(look().n_tensors, 2);
}
END_TEST

/* Names are kept from one job to the next only if the keys are the same: they are told apart by
 * both halves of their digest. */
START_TEST(other_keys)
{
	struct look l;

	run(9);
	l = look();
	ck_assert(l.n_keys == 2 && strcmp(l.key[1], "b") == 0);
	strcpy(oa.name[1], "c");
	strcpy(ob.name[1], "c");
	run(9);
	l = look();
	ck_assert(l.n_keys == 2 && strcmp(l.key[1], "c") == 0);
	for (uint32_t half = 0; half < 2; half++) {
		run(9);
		write_both(9);
		push_both();
		oa.sqe.sync.keys[half] ^= 1; /* as the master has it */
		succeed();
		l = look();
		ck_assert_uint_eq(l.keys.hi, oa.sqe.sync.keys[0]);
		ck_assert_uint_eq(l.keys.lo, oa.sqe.sync.keys[1]);
	}
}
END_TEST

static void leave_room(struct agentd *d, void *arg)
{
	struct loc_stats s;

	loc_get_stats(d->loc, &s);
	d->base.cfg.mem_total = s.mem_used + *(const uint64_t *)arg;
}

static void get_used(struct agentd *d, void *arg)
{
	struct loc_stats s;

	loc_get_stats(d->loc, &s);
	*(uint64_t *)arg = s.mem_used;
}

/* Nothing of a job is remembered for which there is no memory: neither for the keys nor for the
 * rest (_i 0), not for the rest (1), after one that was (2). It is done all the same, and nothing
 * stays charged. */
START_TEST(no_room)
{
	uint64_t room = _i == 1 ? sizeof(struct diff_report) - 1 : 0, before, after;

	write_both(9);
	fx_call(&f, get_used, &before);
	if (_i == 2)
		run(9);
	ck_assert_int_eq(look().any, _i == 2);
	write_both(9);
	push_both();
	fx_call(&f, leave_room, &room);
	succeed();
	ck_assert(!look().any);
	fx_call(&f, get_used, &after);
	ck_assert_uint_eq(after, before);
	room = 1 << 20;
	fx_call(&f, leave_room, &room);
	run(9);
	ck_assert(look().any && look().has_keys);
}
END_TEST

Suite *kept_suite(void)
{
	Suite *s = suite_create("kept");
	TCase *t = tcase_create("kept");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, torn, 0, 2);
	tcase_add_test(t, other_keys);
	tcase_add_loop_test(t, no_room, 0, 3);
	suite_add_tcase(s, t);
	return s;
}
