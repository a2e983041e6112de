/* SPDX-License-Identifier: MIT
 *
 * The agent reports to the master which of its peers wait in a call. The master ends calls that can
 * never meet.
 */
#include "tests/agent/fixture.h"

static struct fx *f;
static uint32_t c[3]; /* communicators of peers 1 to 3, all on this host */

static void setup(void)
{
	f = fx_new();
	fx_group(f, 3, 2, c);
}

static void teardown(void)
{
	fx_free(f);
}

/* Submits in slot `tag`. */
static void submit(unsigned i, uint64_t tag, bool waited, bool by_main)
{
	struct shm_submission s = {.slot = (uint32_t)tag,
		.tag = tag,
		.count = 8,
		.bytes = 32,
		.dtype = 10,
		.generation = f->generation,
		.waited = waited,
		.by_main = by_main};
	struct agt_event ev = {.type = AGT_EV_SUBMIT, .comm = c[i], .slot = s.slot, .sub = &s};

	fx_step(f, &ev);
}

static void asleep(unsigned i, uint64_t tag)
{
	struct agt_event ev = {.type = AGT_EV_ASLEEP, .comm = c[i], .slot = (uint32_t)tag};

	fx_step(f, &ev);
}

static void asleep_any(unsigned i, uint32_t n)
{
	struct agt_event ev = {.type = AGT_EV_ASLEEP_ANY, .comm = c[i], .n_ops = n};

	fx_step(f, &ev);
}

static void unmet(enum wm_wait_kind kind, uint64_t tag, unsigned n, const unsigned *peers)
{
	struct cc_id ids[3];
	struct wm_msg m = {.type = WM_UNMET};
	unsigned i;

	for (i = 0; i < n; i++)
		ids[i] = fx_id(peers[i]);
	m.u.unmet = (struct wm_unmet){.kind = kind,
		.group = 7,
		.tag = tag,
		.generation = f->generation,
		.n_peers = n,
		.peers = ids,
		.code = kind == WM_WAIT_OP || kind == WM_WAIT_SYNC ? WIRE_INVALID_USAGE : 0,
		.text = "they wait for each other"};
	fx_from_master(f, 1, &m);
}

static void unmet_vote(enum wire_ballot kind, unsigned peer)
{
	struct cc_id id = fx_id(peer);
	struct wm_msg m = {.type = WM_UNMET,
		.u.unmet = {.kind = WM_WAIT_BALLOT, .ballot = kind, .n_peers = 1, .peers = &id}};

	fx_from_master(f, 1, &m);
}

START_TEST(vote_says_how_all_its_peers_wait)
{
	submit(0, 1, true, true);
	submit(1, 1, true, _i != 1);
	submit(2, 1, _i != 2, true);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	ck_assert_uint_eq(
		fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.waits_for, _i == 0   ? WM_WAIT_FOR_MAIN
							       : _i == 1 ? WM_WAIT_FOR_HELPER
									 : WM_WAIT_FOR_NONE);
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), _i == 2 ? 2 : 0);
}
END_TEST

START_TEST(peer_that_falls_asleep_is_reported)
{
	const struct wm_waits_for *b;

	submit(0, 1, false, true);
	submit(1, 1, false, true);
	submit(2, 1, false, true);
	asleep(1, 1);
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 1);
	b = &fx_msg(f, WM_WAITS_FOR, 0)->u.waits_for;
	ck_assert(fx_is(&b->peer, fx_id(2)) && b->tag == 1 && b->kind == WM_WAIT_FOR_MAIN);
	asleep(1, 1);
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 0);
	asleep(0, 9); /* no operation has this tag */
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 0);
	fx_op_start(f, 1, 7, 1, 5);
	asleep(2, 1); /* the operation has started, so it will end */
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 0);
}
END_TEST

/* Other peers may wait for the votes that this agent has deferred. */
START_TEST(peer_with_deferred_votes_is_not_reported)
{
	submit(0, 1, false, true);
	submit(0, 2, false, true);
	submit(1, 2, false, true);
	submit(2, 2, false, true);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	asleep(0, 2);
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 0);
	submit(1, 1, false, true);
	submit(2, 1, false, true);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 1);
	ck_assert(fx_is(&fx_msg(f, WM_WAITS_FOR, 0)->u.waits_for.peer, fx_id(1)));
	ck_assert_uint_eq(fx_msg(f, WM_WAITS_FOR, 0)->u.waits_for.tag, 2);
}
END_TEST

static void said_any(unsigned peer, uint32_t n)
{
	const struct wm_waits_for *b = &fx_msg(f, WM_WAITS_FOR, 0)->u.waits_for;

	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 1);
	ck_assert(fx_is(&b->peer, fx_id(peer)) && b->tag == 1 && b->kind == WM_WAIT_FOR_MAIN);
	ck_assert_uint_eq(b->any, n);
}

START_TEST(wait_for_any_is_reported_once_all_votes_are_sent)
{
	unsigned i;

	submit(0, 1, false, true);
	submit(0, 2, false, true);
	asleep_any(0, 3); /* one of the three has ended, but the process did not know this */
	asleep_any(0, 1);
	asleep_any(0, 0);
	asleep_any(0, 2);
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 0);
	for (i = 1; i < 3; i++)
		submit(i, 2, false, true);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 0);
	for (i = 1; i < 3; i++)
		submit(i, 1, false, true);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	said_any(1, 2);
	asleep_any(0, 2);
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 0);
}
END_TEST

/* The process continues when one operation ends. It reports again when it waits again. */
START_TEST(wait_for_any_ends_with_the_first_operation)
{
	unsigned i, tag;

	for (tag = 1; tag < 4; tag++)
		for (i = 0; i < 3; i++)
			submit(i, tag, false, true);
	asleep_any(0, 3);
	said_any(1, 3);
	fx_op_start(f, 1, 7, 3, 5);
	asleep_any(0, 3); /* one operation has started, so it will end */
	asleep_any(1, 3);
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 0);
	unmet(WM_WAIT_OP, 2, 3, (unsigned[]){1, 2, 3});
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 3);
	asleep_any(0, 3);
	fx_orphan(f);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 0);
}
END_TEST

START_TEST(next_master_learns_of_waits_for_any)
{
	unsigned i, tag;

	for (tag = 1; tag < 3; tag++)
		for (i = 0; i < 3; i++)
			submit(i, tag, false, true);
	asleep_any(0, 2);
	said_any(1, 2);
	fx_orphan(f);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 2);
	/* The agent sends a WAITS_FOR after each vote. The last one names all votes. */
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 2);
	ck_assert_uint_eq(fx_msg(f, WM_WAITS_FOR, 1)->u.waits_for.any, 2);
}
END_TEST

/* The kicked peer's operation has started and may still write to the memory of its process. The
 * caller, which still waits for it, reports again that it sleeps. */
START_TEST(kicked_peer_reports_no_waits)
{
	struct wm_msg kick = {.type = WM_KICK, .u.kick = {.peer = fx_id(1), .code = 8}};
	unsigned i;

	for (i = 0; i < 3; i++)
		submit(i, 1, false, true);
	asleep_any(0, 1);
	fx_op_start(f, 1, 7, 1, 5);
	fx_from_master(f, 1, &kick);
	asleep(0, 1);
	asleep_any(0, 1);
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 0);
}
END_TEST

static void resume_with(uint64_t features)
{
	struct wm_msg ack = fx_ack(1);

	ack.u.hello_ack.features = features;
	fx_orphan(f);
	fx_greet(f);
	fx_from_master(f, 1, &ack);
}

/* An older master would believe that the peer waits for a single operation. */
START_TEST(master_without_the_feature_gets_no_wait_for_any)
{
	unsigned i, tag;

	resume_with(0);
	for (tag = 1; tag < 3; tag++)
		for (i = 0; i < 3; i++)
			submit(i, tag, false, true);
	asleep_any(0, 2);
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 0);
	asleep(1, 1);
	ck_assert_uint_eq(fx_sent(f, WM_WAITS_FOR), 1); /* a wait for one operation is reported */
	resume_with(WM_ANY);
	ck_assert_uint_gt(fx_sent(f, WM_WAITS_FOR), 1);
	resume_with(0);
	for (i = 0; i < fx_sent(f, WM_WAITS_FOR); i++)
		ck_assert_uint_eq(fx_msg(f, WM_WAITS_FOR, i)->u.waits_for.any, 0);
}
END_TEST

/* No other peer of this host will join the votes that are being collected. */
START_TEST(votes_are_not_deferred_for_a_peer_that_waits)
{
	submit(0, 1, true, true);
	submit(1, 1, true, true);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 0);
	if (_i == 0) {
		submit(2, 2, true, true);
	} else if (_i == 1) {
		fx_request(f, 3, c[2], FX_VOTE(WIRE_TOPOLOGY));
		ck_assert_uint_eq(fx_votes(f, WIRE_TOPOLOGY), 1);
	} else {
		submit(2, 2, false, true);
		ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 0);
		if (_i == 2)
			asleep(2, 2);
		else
			asleep_any(2, 1);
	}
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), _i == 1 ? 1 : 2);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.n_peers, 2);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.waits_for, WM_WAIT_FOR_MAIN);
}
END_TEST

START_TEST(votes_are_deferred_for_a_peer_that_may_submit)
{
	submit(0, 1, true, true);
	submit(1, 2, true, true);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 0);
	submit(2, 1, false, true);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 0);
}
END_TEST

START_TEST(unmet_topology_call_is_answered_for_its_peer_only)
{
	fx_request(f, 1, c[0], FX_VOTE(WIRE_TOPOLOGY));
	fx_request(f, 2, c[1], FX_VOTE(WIRE_TOPOLOGY));
	unmet_vote(WIRE_TOPOLOGY, 2);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 0)->session, 2);
	ck_assert_uint_eq(
		fx_get(f, AGT_ACT_REPLY, 0)->u.reply.ballots[WIRE_TOPOLOGY], f->topo_ballot);
	unmet_vote(WIRE_TOPOLOGY, 2); /* the peer does not wait any more */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	fx_request(f, 2, c[1], FX_VOTE(WIRE_TOPOLOGY));
	ck_assert_uint_eq(fx_vote(f, WIRE_TOPOLOGY, 0)->number, f->topo_ballot);
}
END_TEST

START_TEST(unmet_pending_call_is_answered)
{
	fx_request(f, 1, c[0], FX_VOTE(WIRE_PENDING));
	unmet_vote(WIRE_PENDING, 1);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert(!fx_get(f, AGT_ACT_REPLY, 0)->u.reply.flag);
}
END_TEST

START_TEST(unmet_operation_ends_for_the_named_peers)
{
	submit(0, 1, true, true);
	submit(1, 1, true, true);
	fx_tick(f, 1100); /* these two peers have voted */
	submit(2, 1, true, true);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	unmet(WM_WAIT_OP, 1, 2, (unsigned[]){1, 2});
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_expect_done(f, 0, c[1], WIRE_INVALID_USAGE, "they wait for each other");
	fx_expect_done(f, 1, c[0], WIRE_INVALID_USAGE, "they wait for each other");
	submit(0, 1, true, true); /* the vote of the third peer still counts */
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.n_peers, 1);
	submit(1, 1, true, true);
	fx_op_start(f, 1, 7, 1, 5);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.n_members, 3);
}
END_TEST

START_TEST(unmet_operation_ends_for_all_voters)
{
	submit(0, 1, true, true);
	submit(1, 1, true, true);
	submit(2, 1, true, true);
	unmet(WM_WAIT_OP, 1, 3, (unsigned[]){1, 2, 3});
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 3);
	submit(0, 1, true, true);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 0);
	/* This answer does not concern a peer that has not voted again. */
	unmet(WM_WAIT_OP, 1, 3, (unsigned[]){1, 2, 3});
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
}
END_TEST

/* A synchronization keeps its votes after a loss. So the generations of the vote and of the master
 * may differ. */
START_TEST(unmet_synchronization_ends_also_after_a_loss)
{
	struct shm_submission s = {.slot = 1, .is_sync = true, .waited = true, .by_main = true};
	struct agt_event ev = {.type = AGT_EV_SUBMIT, .slot = 1, .sub = &s};
	unsigned i;

	s.sync.hash_type = WM_HASH_SIMPLE;
	for (i = 0; i < 3; i++) {
		ev.comm = c[i];
		fx_step(f, &ev);
	}
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	f->generation += 5;
	unmet(WM_WAIT_SYNC, 0, 3, (unsigned[]){1, 2, 3});
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 3);
}
END_TEST

/* The next master gets the same reports as the previous one. */
START_TEST(next_master_learns_of_waits)
{
	submit(0, 1, true, true);
	submit(1, 1, true, true);
	submit(2, 1, false, true);
	asleep(2, 1);
	fx_request(f, 1, c[0], FX_VOTE(WIRE_PENDING));
	unmet(WM_WAIT_OP, 1, 1, (unsigned[]){9});
	fx_orphan(f);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.waits_for, WM_WAIT_FOR_MAIN);
	ck_assert_uint_eq(fx_votes(f, WIRE_PENDING), 1);
}
END_TEST

Suite *unmet_suite(void)
{
	Suite *s = suite_create("unmet");
	TCase *tc = tcase_create("unmet");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, vote_says_how_all_its_peers_wait, 0, 3);
	tcase_add_test(tc, peer_that_falls_asleep_is_reported);
	tcase_add_test(tc, peer_with_deferred_votes_is_not_reported);
	tcase_add_test(tc, wait_for_any_is_reported_once_all_votes_are_sent);
	tcase_add_test(tc, wait_for_any_ends_with_the_first_operation);
	tcase_add_test(tc, next_master_learns_of_waits_for_any);
	tcase_add_test(tc, kicked_peer_reports_no_waits);
	tcase_add_test(tc, master_without_the_feature_gets_no_wait_for_any);
	tcase_add_loop_test(tc, votes_are_not_deferred_for_a_peer_that_waits, 0, 4);
	tcase_add_test(tc, votes_are_deferred_for_a_peer_that_may_submit);
	tcase_add_test(tc, unmet_topology_call_is_answered_for_its_peer_only);
	tcase_add_test(tc, unmet_pending_call_is_answered);
	tcase_add_test(tc, unmet_operation_ends_for_the_named_peers);
	tcase_add_test(tc, unmet_operation_ends_for_all_voters);
	tcase_add_test(tc, unmet_synchronization_ends_also_after_a_loss);
	tcase_add_test(tc, next_master_learns_of_waits);
	suite_add_tcase(s, tc);
	return s;
}
