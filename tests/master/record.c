/* SPDX-License-Identifier: MIT
 *
 * The master's core: the record of the last election of shared state and of its result.
 */
#include <stdio.h>
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/trio.h"

/* ---- reading the record */

static struct ccm_state_info states[8];
static uint32_t n_states;
static struct ccm_stand_info stands[8];
static char hosts[8][WM_NAME_MAX];
static uint32_t n_stands;

static void take_state(void *arg, const struct ccm_state_info *s)
{
	(void)arg;
	ck_assert_uint_lt(n_states, 8);
	states[n_states++] = *s;
}

static void take_stand(void *arg, const struct ccm_stand_info *s)
{
	(void)arg;
	ck_assert_uint_lt(n_stands, 8);
	snprintf(hosts[n_stands], sizeof hosts[0], "%s", s->host);
	stands[n_stands++] = *s;
}

static void look(void)
{
	n_states = n_stands = 0;
	ccm_each_state(f.m, f.now, take_state, NULL);
	ccm_each_stand(f.m, take_stand, NULL);
}

static const struct ccm_stand_info *stand_of(const struct fk_peer *x)
{
	for (uint32_t i = 0; i < n_stands; i++)
		if (cc_id_eq(&stands[i].peer, &x->id))
			return &stands[i];
	ck_abort_msg("a peer is not in the record");
	return NULL;
}

/* ---- votes */

static struct wm_sync_vote fill_candidate(uint64_t revision, uint64_t content)
{
	return (struct wm_sync_vote){.revision = revision,
		.strategy = WM_STRATEGY_ENFORCE_POPULAR,
		.hash_type = WM_HASH_SIMPLE,
		.keys = {1, 2},
		.content = {3, content},
		.n_tensors = 5,
		.bytes = 700};
}

static void vote(const struct fk_peer *x, struct wm_sync_vote v)
{
	struct wm_msg msg = {.type = WM_OP_VOTE};
	struct cc_id id = x->id;

	msg.u.op_vote = (struct wm_op_vote){
		.group = x->group, .is_sync = true, .sync = v, .n_peers = 1, .peers = &id};
	for (uint32_t i = 0; i < x->host->n_generations; i++)
		if (x->host->generations[i].group == x->group)
			msg.u.op_vote.generation = x->host->generations[i].generation;
	fk_send(x->host, &msg);
}

static void report_failed(const struct fk_peer *x, uint64_t seq, const char *text)
{
	struct wm_sync_failure failure = {.peer = x->id, .code = WIRE_INVALID_USAGE};
	struct wm_msg msg = {.type = WM_OP_REPORT};

	snprintf(failure.text, sizeof failure.text, "%s", text);
	msg.u.op_report =
		(struct wm_op_report){.seq = seq, .ok = true, .n_failed = 1, .failed = &failure};
	fk_send(x->host, &msg);
}

/* ---- tests */

START_TEST(record_is_empty_at_first)
{
	look();
	ck_assert_uint_eq(n_states, 1);
	ck_assert_uint_eq(states[0].group, 0);
	ck_assert_uint_eq(states[0].peers, 3);
	ck_assert_uint_eq(states[0].expected, 0);
	ck_assert_int_eq(states[0].end, CCM_SYNC_NONE);
	ck_assert_str_eq(ccm_sync_end_name(states[0].end), "");
	ck_assert_uint_eq(n_stands, 0);
	/* Votes alone are no election. */
	vote(&p, fill_candidate(1, 1));
	look();
	ck_assert_int_eq(states[0].end, CCM_SYNC_NONE);
}
END_TEST

START_TEST(record_names_the_differences_of_each_peer)
{
	vote(&p, fill_candidate(7, 1));
	vote(&q, fill_candidate(5, 1));
	vote(&r, fill_candidate(5, 2));
	f.now += 5000000;
	look();
	ck_assert_int_eq(states[0].end, CCM_SYNC_RUNNING);
	ck_assert_uint_eq(states[0].seq, 1);
	ck_assert_uint_eq(states[0].age_ns, 5000000);
	ck_assert_uint_eq(states[0].expected, 0);
	ck_assert_uint_eq(states[0].elected.revision, 7);
	ck_assert_uint_eq(states[0].elected.content.lo, 1);
	ck_assert_uint_eq(states[0].elected.n_tensors, 5);
	ck_assert_uint_eq(states[0].elected.bytes, 700);
	ck_assert_uint_eq(states[0].holders, 2);
	ck_assert_uint_eq(states[0].receivers, 1);
	ck_assert_uint_eq(states[0].out, 0);
	ck_assert_uint_eq(n_stands, 3);
	ck_assert_int_eq(stand_of(&p)->stand, CCM_STAND_HOLDER);
	ck_assert_str_eq(stand_of(&p)->text, "");
	ck_assert_int_eq(stand_of(&q)->stand, CCM_STAND_OUTDATED);
	ck_assert_str_eq(stand_of(&q)->text,
		"revision 5, but revision 7 was elected; the contents are equal");
	ck_assert_int_eq(stand_of(&r)->stand, CCM_STAND_RECEIVER);
	ck_assert_str_eq(stand_of(&r)->text, "revision 5, but revision 7 was elected; contents "
					     "00000000000000030000000000000002, "
					     "but 00000000000000030000000000000001 were elected");
	ck_assert_uint_eq(stand_of(&r)->candidate.revision, 5);
	ck_assert_str_eq(hosts[stand_of(&r) - stands], "c");
	fk_report(a, 1, true);
	fk_report(b, 1, true);
	fk_report(c, 1, true);
	look();
	ck_assert_int_eq(states[0].end, CCM_SYNC_DONE);
	ck_assert_uint_eq(states[0].expected, 8);
	ck_assert_uint_eq(n_stands, 3);
}
END_TEST

START_TEST(record_shows_torn_state)
{
	struct wm_sync_vote torn = fill_candidate(7, 1);

	torn.torn = true;
	vote(&p, torn);
	vote(&q, fill_candidate(7, 1));
	torn.content.lo = 2;
	vote(&r, torn);
	look();
	ck_assert(!states[0].elected.torn);
	ck_assert_uint_eq(states[0].holders, 2);
	ck_assert(stand_of(&p)->candidate.torn && !stand_of(&q)->candidate.torn);
	ck_assert_str_eq(stand_of(&p)->text, "the contents are equal; it reported torn tensors");
	ck_assert_str_eq(stand_of(&q)->text, "");
	assert_contains(stand_of(&r)->text, "; it reported torn tensors");
	assert_contains(stand_of(&r)->text, "contents 0");
}
END_TEST

START_TEST(new_election_replaces_the_last_record)
{
	vote(&p, fill_candidate(7, 1));
	vote(&q, fill_candidate(7, 1));
	vote(&r, fill_candidate(7, 2));
	fk_report(a, 1, true);
	fk_report(b, 1, true);
	fk_report(c, 1, true);
	/* An all-reduce does not change the record. */
	vote_all(1);
	look();
	ck_assert_uint_eq(states[0].seq, 1);
	fk_report(a, 2, true);
	fk_report(b, 2, true);
	fk_report(c, 2, true);
	vote(&p, fill_candidate(8, 3));
	vote(&q, fill_candidate(8, 4));
	vote(&r, fill_candidate(8, 4));
	look();
	ck_assert_uint_eq(n_states, 1);
	ck_assert_uint_eq(states[0].seq, 4);
	ck_assert_uint_eq(states[0].elected.content.lo, 4);
	ck_assert_uint_eq(n_stands, 3);
	ck_assert_int_eq(stand_of(&p)->stand, CCM_STAND_RECEIVER);
	ck_assert_int_eq(stand_of(&r)->stand, CCM_STAND_HOLDER);
}
END_TEST

START_TEST(kicked_peer_stays_in_the_record)
{
	struct wm_sync_vote other = fill_candidate(7, 1);

	other.keys.lo++;
	other.n_tensors = 6;
	vote(&p, fill_candidate(7, 1));
	vote(&q, other);
	vote(&r, fill_candidate(7, 1));
	ck_assert(!fk_present(&q));
	look();
	ck_assert_int_eq(states[0].end, CCM_SYNC_RUNNING);
	ck_assert_uint_eq(states[0].peers, 2);
	ck_assert_uint_eq(states[0].holders, 2);
	ck_assert_uint_eq(states[0].out, 1);
	ck_assert_int_eq(stand_of(&q)->stand, CCM_STAND_OUT);
	assert_contains(stand_of(&q)->text, "6 tensors of 700 bytes in all, expected 5");
	ck_assert_str_eq(hosts[stand_of(&q) - stands], "b");
	/* A peer that leaves before the end stays in the record, with the reason. */
	fk_leave(&r, WM_LEAVE_DIED);
	look();
	ck_assert_int_eq(stand_of(&r)->stand, CCM_STAND_OUT);
	ck_assert_str_ne(stand_of(&r)->text, "");
	ck_assert_uint_eq(states[0].out, 2);
	fk_report(a, 1, true);
	look();
	ck_assert_int_eq(states[0].end, CCM_SYNC_DONE);
	ck_assert_uint_eq(n_stands, 3);
	/* Later events do not change the record. */
	fk_leave(&p, WM_LEAVE_CLEAN);
	look();
	ck_assert_int_eq(stand_of(&p)->stand, CCM_STAND_HOLDER);
}
END_TEST

START_TEST(record_shows_an_election_without_result)
{
	struct wm_sync_vote receives = fill_candidate(7, 1);

	receives.strategy = WM_STRATEGY_RECEIVE_ONLY;
	vote(&p, receives);
	vote(&q, receives);
	vote(&r, receives);
	look();
	/* The record remains, although all peers of the group are gone. */
	ck_assert_uint_eq(n_states, 1);
	ck_assert_int_eq(states[0].end, CCM_SYNC_NOBODY);
	ck_assert_uint_eq(states[0].peers, 0);
	ck_assert_uint_eq(states[0].seq, 0);
	ck_assert_uint_eq(states[0].out, 3);
	ck_assert_uint_eq(n_stands, 3);
	assert_contains(stand_of(&q)->text, "no peer can be elected");
	ck_assert_uint_eq(stand_of(&q)->candidate.strategy, WM_STRATEGY_RECEIVE_ONLY);
}
END_TEST

START_TEST(record_shows_failures)
{
	vote(&p, fill_candidate(7, 1));
	vote(&q, fill_candidate(7, 2));
	vote(&r, fill_candidate(7, 2));
	report_failed(&p, 1, "tensor w does not have the hash that it announced");
	look();
	ck_assert_int_eq(states[0].end, CCM_SYNC_RUNNING);
	ck_assert_int_eq(stand_of(&p)->stand, CCM_STAND_OUT);
	assert_contains(stand_of(&p)->text, "does not have the hash");
	ck_assert_str_eq(ccm_stand_name(stand_of(&p)->stand), "kicked");
	/* No peer that has the elected contents is left. */
	fk_leave(&q, WM_LEAVE_DIED);
	fk_leave(&r, WM_LEAVE_DIED);
	look();
	ck_assert_int_eq(states[0].end, CCM_SYNC_FAILED);
	ck_assert_str_eq(ccm_sync_end_name(states[0].end), "failed");
	ck_assert_str_ne(states[0].text, "");
	ck_assert_uint_eq(states[0].expected, 0);
}
END_TEST

Suite *record_suite(void)
{
	Suite *s = suite_create("record");
	TCase *tc = tcase_create("record");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, record_is_empty_at_first);
	tcase_add_test(tc, record_names_the_differences_of_each_peer);
	tcase_add_test(tc, record_shows_torn_state);
	tcase_add_test(tc, new_election_replaces_the_last_record);
	tcase_add_test(tc, kicked_peer_stays_in_the_record);
	tcase_add_test(tc, record_shows_an_election_without_result);
	tcase_add_test(tc, record_shows_failures);
	suite_add_tcase(s, tc);
	return s;
}
