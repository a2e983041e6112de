/* SPDX-License-Identifier: MIT
 *
 * The master's core: collective operations.
 */
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/trio.h"

START_TEST(all_votes_start_and_all_reports_end_an_operation)
{
	struct ccm_peer_info info;
	const struct wm_op_start *s;

	fk_vote(&p, 9);
	fk_vote(&q, 9);
	ck_assert_uint_eq(a->n, 0);
	fk_vote(&r, 9);
	s = &fk_take(b, WM_OP_START)->u.op_start;
	ck_assert_uint_eq(s->group, 0);
	ck_assert_uint_eq(s->tag, 9);
	ck_assert_uint_eq(s->seq, 1);
	ck_assert_uint_eq(s->epoch, 2);
	info = fk_info(&p);
	ck_assert_int_eq(info.state, CCM_COLLECTIVE_COMMUNICATIONS_RUNNING);
	ck_assert_uint_eq(info.ops, 1);
	fk_report(a, 1, true);
	fk_report(b, 1, true);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 0);
	fk_report(c, 1, true);
	ck_assert_uint_eq(fk_take(a, WM_OP_DONE)->u.op_done.seq, 1);
	ck_assert_uint_eq(fk_count(b, WM_OP_DONE), 1);
	ck_assert_uint_eq(fk_count(c, WM_OP_DONE), 1);
	info = fk_info(&p);
	ck_assert_int_eq(info.state, CCM_IDLE);
	/* The tag can be used again. */
	vote_all(9);
	(void)fk_take(a, WM_OP_START);
	/* OP_DONE had reserved number 2. */
	ck_assert_uint_eq(fk_take(a, WM_OP_START)->u.op_start.seq, 3);
}
END_TEST

START_TEST(one_message_votes_for_all_peers_of_a_host)
{
	struct fk_peer two[2] = {p, fk_join(a, 0)};

	topo_all();
	fk_forget(&f);
	fk_vote(&q, 1);
	fk_vote(&r, 1);
	fk_vote_many(two, 2, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
	fk_report(a, 1, true);
	fk_report(b, 1, true);
	fk_report(c, 1, true);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 1);
}
END_TEST

START_TEST(operations_in_different_orders_run_in_parallel)
{
	uint64_t tag;

	for (tag = 0; tag < 16; tag++) {
		fk_vote(&p, tag);
		fk_vote(&q, 15 - tag);
		fk_vote(&r, (tag * 7) % 16);
	}
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 16);
	for (tag = 16; tag > 0; tag--) {
		fk_report(a, tag, true);
		fk_report(b, tag, true);
		fk_report(c, tag, true);
	}
	ck_assert_uint_eq(fk_status(&f).ops_done, 16);
}
END_TEST

START_TEST(groups_do_not_wait_for_each_other)
{
	struct fk_peer x = fk_join(a, 1), y = fk_join(b, 1);

	topo_all();
	fk_forget(&f);
	fk_vote(&p, 5);
	fk_vote(&x, 5);
	fk_vote(&y, 5);
	ck_assert_uint_eq(fk_take(a, WM_OP_START)->u.op_start.group, 1);
	ck_assert_uint_eq(c->n, 0);
	/* A loss in one group aborts nothing in the other group. */
	fk_leave(&r, WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.group, 0);
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
	fk_report(a, 1, true);
	fk_report(b, 1, true);
	ck_assert_uint_eq(fk_take(b, WM_OP_DONE)->u.op_done.seq, 1);
}
END_TEST

static void disagree(struct wm_op_params other, const char *text)
{
	const struct wm_op_abort *x;

	fk_vote(&p, 3);
	fk_vote_params(&q, 3, other);
	ck_assert_uint_eq(a->n, 0); /* all get the same answer, after the last vote */
	fk_vote(&r, 3);
	x = &fk_take(a, WM_OP_ABORT)->u.op_abort;
	ck_assert_uint_eq(x->code, WIRE_INVALID_ARGUMENT);
	ck_assert_uint_eq(x->seq, 0);
	ck_assert_uint_eq(x->tag, 3);
	assert_contains(x->text, text);
	assert_contains(x->text, "train@b pid");
	ck_assert_uint_eq(fk_take(b, WM_OP_ABORT)->u.op_abort.code, WIRE_INVALID_ARGUMENT);
	ck_assert_uint_eq(fk_take(c, WM_OP_ABORT)->u.op_abort.code, WIRE_INVALID_ARGUMENT);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	ck_assert_uint_eq(fk_status(&f).ops_started, 0);
	vote_all(3);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}

START_TEST(unequal_parameters_abort_for_all_with_both_values)
{
	struct wm_op_params x = fk_params;

	switch (_i) {
	case 0:
		x.count = 101;
		disagree(x, "count is 100 for the peers that called first, 101 for");
		break;
	case 1:
		x.dtype = 11;
		disagree(x, "data type is float for the peers that called first, double for");
		break;
	case 2:
		x.op = 2;
		disagree(x, "operator is sum for the peers that called first, prod for");
		break;
	case 3:
		x.quant.algo = 1;
		disagree(x, "quantization algorithm is none for");
		break;
	default:
		x.quant.dtype = 1;
		disagree(x, "quantized data type is uint8 for");
		break;
	}
}
END_TEST

static void aborted(struct fk_host *h, uint64_t tag, uint64_t seq, uint32_t code)
{
	const struct wm_op_abort *x = &fk_take(h, WM_OP_ABORT)->u.op_abort;

	ck_assert_uint_eq(x->tag, tag);
	ck_assert_uint_eq(x->seq, seq);
	ck_assert_uint_eq(x->code, code);
	assert_contains(x->text, "train@b pid");
	assert_contains(x->text, "no room");
}

/* The refusal may be the first or the last vote. After the last vote all get the code and
 * the sentence of the refusal. */
START_TEST(refused_call_ends_for_all_with_its_code)
{
	const struct fk_peer *order[3] = {_i == 0 ? &q : &p,
		_i == 1   ? &q
		: _i == 0 ? &p
			  : &r,
		_i == 2 ? &q : &r};
	int i;

	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
		if (order[i] == &q)
			fk_refuse(&q, 3, WIRE_OUT_OF_MEMORY, "no room");
		else
			fk_vote(order[i], 3);
	}
	aborted(a, 3, 0, WIRE_OUT_OF_MEMORY);
	aborted(b, 3, 0, WIRE_OUT_OF_MEMORY);
	aborted(c, 3, 0, WIRE_OUT_OF_MEMORY);
	ck_assert_uint_eq(fk_count(a, WM_VIEW), 0); /* no member is lost because of the refusal */
	vote_all(3);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

START_TEST(the_first_of_two_refusals_counts)
{
	fk_refuse(&q, 3, WIRE_OUT_OF_MEMORY, "no room");
	fk_refuse(&p, 3, WIRE_INTERNAL_ERROR, "something else");
	fk_refuse(&r, 3, WIRE_INTERNAL_ERROR, "something else");
	aborted(a, 3, 0, WIRE_OUT_OF_MEMORY);
	aborted(b, 3, 0, WIRE_OUT_OF_MEMORY);
	aborted(c, 3, 0, WIRE_OUT_OF_MEMORY);
}
END_TEST

START_TEST(failure_with_a_code_ends_only_its_attempt)
{
	const struct wm_op_abort *x;

	vote_all(3);
	vote_all(4);
	fk_report(a, 1, true);
	fk_forget(&f);
	fk_report_code(b, 1, WIRE_OUT_OF_MEMORY, "no room");
	x = &fk_take(a, WM_OP_ABORT)->u.op_abort;
	ck_assert_uint_eq(x->seq, 1);
	ck_assert_uint_eq(x->code, WIRE_OUT_OF_MEMORY);
	assert_contains(x->text, "host b: no room");
	ck_assert_uint_eq(fk_take(c, WM_OP_ABORT)->u.op_abort.code, WIRE_OUT_OF_MEMORY);
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0); /* the other operation continues */
	ck_assert_uint_eq(fk_count(a, WM_VIEW), 0);
	ck_assert_uint_eq(fk_count(a, WM_ROUND), 0);
	fk_report(a, 2, true);
	fk_report(b, 2, true);
	fk_report(c, 2, true);
	ck_assert_uint_eq(fk_take(c, WM_OP_DONE)->u.op_done.seq, 2);
}
END_TEST

START_TEST(loss_is_reported_with_its_reason)
{
	const struct wm_group_view *own;

	fk_vote(&p, 1);
	fk_leave(&r, WM_LEAVE_STOPPED);
	own = &fk_take(a, WM_VIEW)->u.view.own[0];
	ck_assert_uint_eq(own->generation, 1);
	assert_contains(own->loss, "lost train@c pid");
	assert_contains(own->loss, "its process has been stopped for too long");
	assert_contains(fk_take(a, WM_OP_ABORT)->u.op_abort.text,
		"its process has been stopped for too long");
}
END_TEST

START_TEST(leave_is_reported_with_its_reason)
{
	const struct wm_group_view *own;

	fk_vote(&p, 1);
	fk_leave_because(&r, WM_LEAVE_CLEAN, "it cannot take the result");
	own = &fk_take(a, WM_VIEW)->u.view.own[0];
	assert_contains(own->loss, "lost train@c pid");
	assert_contains(own->loss, ": it left the run: it cannot take the result");
	assert_contains(fk_take(a, WM_OP_ABORT)->u.op_abort.text,
		"it left the run: it cannot take the result");
}
END_TEST

START_TEST(loss_aborts_waiting_operations_for_their_voters)
{
	const struct wm_op_abort *x;

	fk_vote(&p, 1);
	fk_leave(&r, WM_LEAVE_DIED);
	x = &fk_take(a, WM_OP_ABORT)->u.op_abort;
	ck_assert_uint_eq(x->seq, 0);
	ck_assert_uint_eq(x->tag, 1);
	ck_assert_uint_eq(x->code, WIRE_RANK_CONNECTION_LOST);
	assert_contains(x->text, "lost train@c pid");
	assert_contains(x->text, "its process died");
	ck_assert_uint_eq(fk_count(b, WM_OP_ABORT), 0);
	/* The next attempt succeeds with the smaller world. */
	fk_vote(&p, 1);
	fk_vote(&q, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

START_TEST(loss_aborts_started_operations_for_all)
{
	int i;

	vote_all(1);
	vote_all(2);
	for (i = 0; i < _i; i++) /* also if other hosts have reported */
		fk_report(i ? b : a, 1, true);
	fk_forget(&f);
	fk_leave(&r, WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.seq, 1);
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.seq, 2);
	ck_assert_uint_eq(fk_count(b, WM_OP_ABORT), 2);
	/* The agent of the dead process must stop, too. */
	ck_assert_uint_eq(fk_count(c, WM_OP_ABORT), 2);
	ck_assert_uint_eq(fk_status(&f).ops_aborted, 2);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 0);
}
END_TEST

/* No attempt spans a loss. So the vote of a host that did not know of the loss fails like the votes
 * of the other hosts. */
START_TEST(vote_from_before_a_loss_is_answered_with_an_abort)
{
	struct cc_id id = q.id;
	struct wm_msg late = {.type = WM_OP_VOTE};
	const struct wm_op_abort *x;

	late.u.op_vote =
		(struct wm_op_vote){.tag = 1, .params = fk_params, .n_peers = 1, .peers = &id};
	fk_leave(&r, WM_LEAVE_DIED);
	fk_forget(&f);
	fk_send(b, &late);
	x = &fk_take(b, WM_OP_ABORT)->u.op_abort;
	ck_assert_uint_eq(x->code, WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(x->tag, 1);
	ck_assert_uint_eq(x->seq, 0);
	ck_assert_uint_eq(x->generation, 0);
	assert_contains(x->text, "its process died");
	fk_vote(&p, 1);
	ck_assert_uint_eq(fk_status(&f).ops_started, 0);
	fk_vote(&q, 1);
	fk_settle(&f);
	ck_assert_uint_eq(fk_status(&f).ops_started, 1);
	late.u.op_vote.generation = 99;
	fk_send(b, &late);
	ck_assert(!b->open);
	assert_contains(b->closed, "a generation that the group has not reached");
}
END_TEST

/* No other peer is left to reduce with. The call that waits reports the loss. Only the next call
 * reports too few peers. */
START_TEST(last_peer_gets_the_loss_before_too_few_peers)
{
	struct cc_id id = q.id;
	struct wm_msg late = {.type = WM_OP_VOTE};

	late.u.op_vote =
		(struct wm_op_vote){.tag = 1, .params = fk_params, .n_peers = 1, .peers = &id};
	fk_leave(&r, WM_LEAVE_DIED);
	fk_leave(&p, WM_LEAVE_DIED);
	fk_settle(&f);
	fk_forget(&f);
	fk_send(b, &late);
	ck_assert_uint_eq(fk_take(b, WM_OP_ABORT)->u.op_abort.code, WIRE_RANK_CONNECTION_LOST);
	fk_vote(&q, 1);
	ck_assert_uint_eq(fk_take(b, WM_OP_ABORT)->u.op_abort.code, WIRE_TOO_FEW_PEERS);
}
END_TEST

START_TEST(peers_lost_together_are_one_loss)
{
	struct fk_peer x = fk_join(c, 0);

	topo_all();
	fk_vote(&p, 1);
	fk_forget(&f);
	fk_close(c, "reset by peer");
	ck_assert_uint_eq(fk_count(a, WM_VIEW), 1);
	ck_assert_uint_eq(fk_count(a, WM_ROUND), 1);
	assert_contains(fk_take(a, WM_OP_ABORT)->u.op_abort.text,
		"its agent is gone: reset by peer (and 1 more)");
	ck_assert(!fk_present(&x));
	ck_assert_uint_eq(fk_status(&f).lost_members, 2);
}
END_TEST

/* When a host dies, its neighbour sees the link break, and later the peers of the host are lost.
 * Together this is one loss, even with two peers. */
START_TEST(broken_link_and_lost_peers_of_a_host_are_one_loss)
{
	struct fk_peer x = fk_join(c, 0);

	topo_all();
	fk_vote(&p, 1);
	fk_vote(&q, 1);
	fk_vote(&r, 1);
	fk_vote(&x, 1);
	fk_report(a, fk_take(a, WM_OP_START)->u.op_start.seq, false);
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 1);
	fk_forget(&f);
	fk_vote(&p, 1);
	fk_close(c, "it is silent");
	ck_assert_uint_eq(fk_count(a, WM_VIEW), 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
	fk_vote(&q, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
	ck_assert(!fk_present(&r) && !fk_present(&x));
}
END_TEST

START_TEST(last_peer_of_a_group_does_not_wait)
{
	const struct wm_op_abort *x;

	fk_vote(&p, 1);
	fk_leave(&q, WM_LEAVE_CLEAN);
	fk_forget(&f);
	fk_vote(&p, 1);
	fk_leave(&r, WM_LEAVE_CLEAN);
	/* Host a knows of the first loss and has started no operation since. So its vote is
	 * answered with this abort. */
	x = &fk_take(a, WM_OP_ABORT)->u.op_abort;
	ck_assert_uint_eq(x->code, WIRE_TOO_FEW_PEERS);
	assert_contains(x->text, "no other peer");
	/* A vote that was on its way gets the same answer. */
	fk_vote(&p, 1);
	x = &fk_take(a, WM_OP_ABORT)->u.op_abort;
	ck_assert_uint_eq(x->code, WIRE_TOO_FEW_PEERS);
	ck_assert_uint_eq(x->tag, 1);
	ck_assert_uint_eq(fk_status(&f).ops_started, 0);
}
END_TEST

START_TEST(nothing_starts_during_a_round)
{
	a->auto_report = false;
	fk_leave(&r, WM_LEAVE_CLEAN);
	fk_vote(&p, 1);
	fk_vote(&q, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 0);
	fk_round_report(a, NULL, NULL);
	ck_assert_uint_eq(fk_take(a, WM_OP_START)->u.op_start.epoch, 3);
}
END_TEST

START_TEST(operations_wait_for_a_running_topology_vote)
{
	struct fk_peer x;

	/* Each program has two threads: one waits in the topology vote, the other one reduces. */
	fk_topo(&p);
	fk_topo(&q);
	fk_vote(&p, 1);
	fk_vote(&q, 1);
	x = fk_join(fk_host(&f, "d", "10.0.0.4"), 0);
	fk_forget(&f);
	fk_topo(&r);
	ck_assert_uint_eq(fk_count(a, WM_COMMIT), 1);
	fk_vote(&r, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 0);
	fk_vote(&x, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

START_TEST(complete_operation_waits_for_a_running_topology_vote)
{
	struct fk_peer x = fk_join(b, 1);

	topo_all();
	fk_topo(&p);
	vote_all(1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 0);
	fk_leave(&x, WM_LEAVE_CLEAN);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 0);
	fk_leave(&p, WM_LEAVE_CLEAN);
	ck_assert_uint_eq(fk_count(b, WM_OP_ABORT), 1);
	fk_vote(&q, 1);
	fk_vote(&r, 1);
	ck_assert_uint_eq(fk_count(b, WM_OP_START), 1);
}
END_TEST

START_TEST(failed_report_aborts_for_all_and_names_the_suspect)
{
	struct wm_msg msg = {.type = WM_OP_REPORT};
	const struct wm_op_abort *x;

	vote_all(1);
	fk_report(a, 1, true);
	fk_forget(&f);
	msg.u.op_report.seq = 1;
	msg.u.op_report.suspect = c->id;
	strcpy(msg.u.op_report.text, "stream 3 broke");
	fk_send(b, &msg);
	x = &fk_take(a, WM_OP_ABORT)->u.op_abort;
	ck_assert_uint_eq(x->code, WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(x->seq, 1);
	ck_assert_str_eq(x->text, "host b reports a failure with host c: stream 3 broke");
	ck_assert_uint_eq(fk_count(b, WM_OP_ABORT), 1);
	ck_assert_uint_eq(fk_count(c, WM_OP_ABORT), 1);
	/* A round checks the links. No member is lost, so the epoch does not change. */
	ck_assert(!fk_take(a, WM_ROUND)->u.round.accept);
	ck_assert_uint_eq(fk_take(a, WM_COMMIT)->u.commit.epoch, 2);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	/* A report that was on its way does no harm. */
	fk_report(c, 1, true);
	ck_assert(c->open);
}
END_TEST

START_TEST(report_on_an_operation_not_started_is_a_violation)
{
	fk_report(a, 1, true);
	assert_contains(a->closed, "never started");
	fk_report(b, 0, false);
	assert_contains(b->closed, "never started");
}
END_TEST

START_TEST(a_second_report_is_a_violation)
{
	vote_all(1);
	fk_report(a, 1, true);
	fk_report(a, 1, false);
	assert_contains(a->closed, "second report");
	ck_assert_uint_eq(fk_take(b, WM_OP_ABORT)->u.op_abort.code, WIRE_RANK_CONNECTION_LOST);
}
END_TEST

START_TEST(report_on_an_operation_of_others_is_a_violation)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.4");

	(void)fk_join(d, 0);
	vote_all(1);
	fk_report(d, 1, true);
	assert_contains(d->closed, "unasked report");
	fk_report(a, 1, true);
	fk_report(b, 1, true);
	fk_report(c, 1, true);
	ck_assert_uint_eq(fk_status(&f).ops_done, 1);
}
END_TEST

START_TEST(voting_twice_for_an_operation_is_a_violation)
{
	if (_i) /* also while the operation runs */
		vote_all(1);
	else
		fk_vote(&p, 1);
	fk_vote(&p, 1);
	assert_contains(fk_take(a, WM_KICK)->u.kick.text, "already voted for");
	ck_assert(!fk_present(&p));
	ck_assert(a->open);
}
END_TEST

START_TEST(voting_for_another_group_is_a_violation)
{
	struct fk_peer x = p;

	x.group = 4;
	fk_vote(&x, 1);
	assert_contains(fk_take(a, WM_KICK)->u.kick.text, "not in");
}
END_TEST

START_TEST(outstanding_votes_are_limited)
{
	uint64_t tag;

	for (tag = 0; tag <= 256; tag++) {
		ck_assert(fk_present(&p));
		fk_vote(&p, tag);
	}
	assert_contains(fk_take(a, WM_KICK)->u.kick.text, "too many operations");
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 256);
}
END_TEST

START_TEST(nothing_starts_in_the_step_of_a_loss)
{
	struct fk_peer two[2] = {fk_join(a, 0), p};
	uint64_t tag;

	topo_all();
	for (tag = 0; tag < 256; tag++)
		fk_vote(&p, tag);
	fk_vote(&q, 999);
	fk_vote(&r, 999);
	fk_forget(&f);
	/* The next vote is one too many for p, so p is kicked. Without p the votes are complete. */
	fk_vote_many(two, 2, 999);
	ck_assert(!fk_present(&p));
	ck_assert_uint_eq(fk_count(b, WM_OP_START), 0);
	ck_assert_uint_eq(fk_count(b, WM_OP_ABORT), 1);
}
END_TEST

START_TEST(vote_counts_for_its_remaining_peers)
{
	/* One of the two peers was kicked a moment ago. */
	struct fk_peer two[2] = {{.host = a, .id = fk_id(&f)}, p};

	fk_vote(&q, 1);
	fk_vote(&r, 1);
	fk_vote_many(two, 2, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

static void keep_op(void *arg, const struct ccm_op_info *o)
{
	*(struct ccm_op_info *)arg = *o;
}

START_TEST(status_names_the_peers_that_an_operation_awaits)
{
	struct ccm_op_info o;

	fk_vote(&p, 1);
	f.now += 1500000000;
	ccm_each_op(f.m, f.now, keep_op, &o);
	ck_assert_uint_eq(o.votes, 1);
	ck_assert_uint_eq(o.world_size, 3);
	ck_assert_uint_eq(o.bytes, 400);
	ck_assert_uint_eq(o.age_ns, 1500000000);
	ck_assert_uint_eq(o.standstill_ns, 1500000000);
	ck_assert_int_eq(o.state, CCM_VOTE_INITIATE_COLLECTIVE_COMMS);
	assert_contains(o.awaited, "train@b pid");
	assert_contains(o.awaited, "train@c pid");
	fk_vote(&q, 1);
	fk_vote(&r, 1);
	ccm_each_op(f.m, f.now, keep_op, &o);
	ck_assert_int_eq(o.state, CCM_PERFORM_COLLECTIVE_COMMS);
	ck_assert_uint_eq(o.standstill_ns, 0);
	fk_report(b, 1, true);
	f.now += 200000000;
	ccm_each_op(f.m, f.now, keep_op, &o);
	ck_assert_uint_eq(o.age_ns, 1700000000);
	ck_assert_uint_eq(o.standstill_ns, 200000000);
	ck_assert_int_eq(o.state, CCM_VOTE_COMPLETE_COLLECTIVE_COMMS);
	ck_assert_str_eq(o.awaited, "a, c");
}
END_TEST

Suite *ops_suite(void)
{
	Suite *s = suite_create("ops");
	TCase *tc = tcase_create("operations");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, all_votes_start_and_all_reports_end_an_operation);
	tcase_add_test(tc, one_message_votes_for_all_peers_of_a_host);
	tcase_add_test(tc, operations_in_different_orders_run_in_parallel);
	tcase_add_test(tc, groups_do_not_wait_for_each_other);
	tcase_add_loop_test(tc, unequal_parameters_abort_for_all_with_both_values, 0, 5);
	tcase_add_test(tc, loss_aborts_waiting_operations_for_their_voters);
	tcase_add_loop_test(tc, refused_call_ends_for_all_with_its_code, 0, 3);
	tcase_add_test(tc, the_first_of_two_refusals_counts);
	tcase_add_test(tc, failure_with_a_code_ends_only_its_attempt);
	tcase_add_test(tc, loss_is_reported_with_its_reason);
	tcase_add_test(tc, leave_is_reported_with_its_reason);
	tcase_add_loop_test(tc, loss_aborts_started_operations_for_all, 0, 3);
	tcase_add_test(tc, vote_from_before_a_loss_is_answered_with_an_abort);
	tcase_add_test(tc, last_peer_gets_the_loss_before_too_few_peers);
	tcase_add_test(tc, peers_lost_together_are_one_loss);
	tcase_add_test(tc, broken_link_and_lost_peers_of_a_host_are_one_loss);
	tcase_add_test(tc, last_peer_of_a_group_does_not_wait);
	tcase_add_test(tc, nothing_starts_during_a_round);
	tcase_add_test(tc, operations_wait_for_a_running_topology_vote);
	tcase_add_test(tc, complete_operation_waits_for_a_running_topology_vote);
	tcase_add_test(tc, failed_report_aborts_for_all_and_names_the_suspect);
	tcase_add_test(tc, report_on_an_operation_not_started_is_a_violation);
	tcase_add_test(tc, a_second_report_is_a_violation);
	tcase_add_test(tc, report_on_an_operation_of_others_is_a_violation);
	tcase_add_loop_test(tc, voting_twice_for_an_operation_is_a_violation, 0, 2);
	tcase_add_test(tc, voting_for_another_group_is_a_violation);
	tcase_add_test(tc, outstanding_votes_are_limited);
	tcase_add_test(tc, nothing_starts_in_the_step_of_a_loss);
	tcase_add_test(tc, vote_counts_for_its_remaining_peers);
	tcase_add_test(tc, status_names_the_peers_that_an_operation_awaits);
	suite_add_tcase(s, tc);
	return s;
}
