/* SPDX-License-Identifier: MIT
 *
 * The master's core: synchronizations of shared state, from the votes to the end. elect.c tests the
 * election itself. This file tests its consequences.
 */
#include <stdio.h>
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/trio_sync.h"

START_TEST(start_names_the_roles_and_the_sources)
{
	const struct wm_sync_start *s;
	const struct wm_op_start *x;

	fk_sync(&r, fk_candidate(0, 2));
	fk_sync(&p, fk_candidate(7, 1));
	ck_assert_uint_eq(a->n + b->n + c->n, 0);
	fk_sync(&q, fk_candidate(7, 1));
	x = &fk_take(c, WM_OP_START)->u.op_start;
	s = &x->sync;
	ck_assert(x->is_sync);
	ck_assert_uint_eq(x->seq, 1);
	ck_assert_uint_eq(x->epoch, c->epoch);
	ck_assert_uint_eq(s->revision, 7);
	ck_assert_uint_eq(s->hash_type, WM_HASH_SIMPLE);
	ck_assert_uint_eq(s->keys.lo, 2);
	ck_assert_uint_eq(s->content.lo, 1);
	ck_assert_uint_eq(s->n_peers, 1);
	ck_assert_uint_eq(role_in(s, &r), RECEIVER);
	ck_assert_uint_eq(s->n_sources, 2);
	ck_assert(cc_id_eq(&s->sources[0].endpoint.agent, &a->id));
	ck_assert(cc_id_eq(&s->sources[1].endpoint.agent, &b->id));
	ck_assert_uint_eq(s->sources[0].holders, 1);
	ck_assert_uint_eq(s->n_others, 0);
	s = start_of(a);
	ck_assert_uint_eq(role_in(s, &p), HOLDER);
	/* p lacks nothing, so its agent gets no sources. */
	ck_assert_uint_eq(s->n_sources + s->n_others, 0);
	ck_assert_int_eq(fk_info(&p).state, CCM_COLLECTIVE_COMMUNICATIONS_RUNNING);
	fk_report(a, 1, true);
	fk_report(c, 1, true);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 0);
	fk_report(b, 1, true);
	ck_assert_uint_eq(fk_take(a, WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_take(c, WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_int_eq(fk_info(&p).state, CCM_IDLE);
}
END_TEST

START_TEST(a_group_of_one_may_synchronize)
{
	fk_leave(&q, WM_LEAVE_CLEAN);
	fk_leave(&r, WM_LEAVE_CLEAN);
	fk_forget(&f);
	fk_sync(&p, fk_candidate(3, 1));
	ck_assert_uint_eq(role_in(start_of(a), &p), HOLDER);
	fk_report(a, seq_now(), true);
	ck_assert_uint_eq(fk_take(a, WM_OP_DONE)->u.op_done.revision, 3);
	ck_assert_uint_eq(fk_revision(a, 0), 4);
}
END_TEST

/* The same happens if the others leave while the peer waits. */
START_TEST(last_member_of_a_group_synchronizes_alone)
{
	fk_vote(&p, 1); /* the abort of this vote reports the loss to p */
	fk_leave(&q, WM_LEAVE_CLEAN);
	fk_forget(&f);
	fk_sync(&p, fk_candidate(3, 1));
	fk_leave(&r, WM_LEAVE_CLEAN);
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

START_TEST(peers_of_one_host_may_have_different_candidates)
{
	struct fk_peer x = fk_join(a, 0), y = fk_join(a, 0), two[2];
	const struct wm_sync_start *s;

	topo_all();
	fk_forget(&f);
	two[0] = p;
	two[1] = y;
	fk_sync_many(two, 2, fk_candidate(7, 1));
	fk_sync(&q, fk_candidate(7, 1));
	fk_sync(&r, fk_candidate(7, 1));
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 0);
	fk_sync(&x, fk_candidate(6, 5));
	s = start_of(a);
	ck_assert_uint_eq(s->n_peers, 3);
	ck_assert_uint_eq(role_in(s, &p), HOLDER);
	ck_assert_uint_eq(role_in(s, &x), RECEIVER);
	ck_assert_uint_eq(role_in(s, &y), HOLDER);
	/* Holders on the same host come first, but they may be lost. */
	ck_assert_uint_eq(s->n_sources, 2);
	report_all(seq_now());
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 1);
}
END_TEST

START_TEST(candidate_decides_the_role)
{
	struct wm_sync_vote v = fk_candidate(5, 1);

	done_equal(4);
	fk_sync(&p, fk_candidate(5, 1));
	v.revision = _i == 0 ? 5 : 2;
	v.content.lo = _i == 2 ? 9 : 1;
	fk_sync(&q, v); /* equal, outdated, or outdated with other contents */
	fk_sync(&r, fk_candidate(5, 1));
	ck_assert_uint_eq(role_in(start_of(b), &q), _i == 2 ? RECEIVER : HOLDER);
	report_all(seq_now());
	ck_assert_uint_eq(fk_take(b, WM_OP_DONE)->u.op_done.revision, 5);
}
END_TEST

START_TEST(start_names_the_elected_hash_type)
{
	struct wm_sync_vote v = fk_candidate(5, 1);
	const struct wm_sync_start *s;

	v.hash_type = WM_HASH_CRC32C;
	fk_sync(&p, v);
	fk_sync(&q, v);
	v.content.lo = 2;
	fk_sync(&r, v);
	ck_assert_uint_eq(start_of(a)->hash_type, WM_HASH_CRC32C);
	s = start_of(c);
	ck_assert_uint_eq(s->hash_type, WM_HASH_CRC32C);
	ck_assert_uint_eq(role_in(s, &r), RECEIVER);
}
END_TEST

/* A receive-only peer is a source for nobody. */
START_TEST(receive_only_peer_is_a_receiver_even_if_it_is_equal)
{
	struct wm_sync_vote send = fk_candidate(5, 1), receive = send;
	const struct wm_sync_start *s;

	send.strategy = WM_STRATEGY_SEND_ONLY;
	receive.strategy = WM_STRATEGY_RECEIVE_ONLY;
	fk_sync(&p, send);
	fk_sync(&q, receive);
	receive.content.lo = 2;
	fk_sync(&r, receive);
	ck_assert_uint_eq(role_in(start_of(b), &q), RECEIVER);
	s = start_of(c);
	ck_assert_uint_eq(s->n_sources, 1);
	ck_assert(cc_id_eq(&s->sources[0].endpoint.agent, &a->id));
	ck_assert_uint_eq(s->n_others, 1);
	ck_assert(cc_id_eq(&s->others[0].endpoint.agent, &b->id));
	ck_assert_uint_eq(s->others[0].holders, 0);
}
END_TEST

static struct wm_sync_vote torn(uint64_t revision, uint64_t content)
{
	struct wm_sync_vote v = fk_candidate(revision, content);

	v.torn = true;
	return v;
}

/* In a tie, the first peer in the ring would be elected. */
START_TEST(peer_with_torn_state_is_a_receiver)
{
	const struct wm_sync_start *s;

	done_equal(4);
	fk_sync(&p, torn(5, 2));
	fk_sync(&q, _i ? torn(5, 2) : fk_candidate(3, 1));
	fk_sync(&r, fk_candidate(5, 1));
	s = start_of(a);
	ck_assert_uint_eq(s->content.lo, 1);
	ck_assert_uint_eq(role_in(s, &p), RECEIVER);
	ck_assert_uint_eq(s->n_sources, _i ? 1 : 2);
	ck_assert_uint_eq(role_in(start_of(b), &q), _i ? RECEIVER : HOLDER);
	ck_assert_uint_eq(role_in(start_of(c), &r), HOLDER);
	report_all(seq_now());
	ck_assert_uint_eq(fk_take(a, WM_OP_DONE)->u.op_done.revision, 5);
}
END_TEST

START_TEST(all_are_kicked_if_all_have_torn_state)
{
	done_equal(4);
	fk_sync(&p, torn(5, 2));
	fk_sync(&q, _i ? fk_candidate(4, 1) : torn(5, 2));
	fk_sync(&r, torn(5, 1));
	assert_contains(fk_take(a, WM_KICK)->u.kick.text,
		"Load revision 5 from a checkpoint, then connect again with a new communicator");
	assert_contains(fk_take(b, WM_KICK)->u.kick.text,
		_i ? "REVISION_INCREMENT_VIOLATION" : "tensors torn");
	ck_assert_uint_eq(fk_count(c, WM_KICK), 1);
	ck_assert_uint_eq(fk_count(c, WM_OP_START), 0);
	ck_assert(!fk_present(&p) && !fk_present(&q) && !fk_present(&r));
	/* A peer that has loaded a checkpoint continues. */
	p = fk_join(a, 0);
	fk_settle(&f);
	fk_forget(&f);
	fk_sync(&p, fk_candidate(5, 9));
	ck_assert_uint_eq(role_in(start_of(a), &p), HOLDER);
}
END_TEST

START_TEST(an_all_reduce_with_tag_0_is_another_operation)
{
	fk_vote(&p, 0);
	fk_sync(&q, fk_candidate(1, 1));
	fk_sync(&r, fk_candidate(1, 1));
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 0);
	fk_sync(&p, fk_candidate(1, 1));
	ck_assert(fk_take(a, WM_OP_START)->u.op_start.is_sync);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

START_TEST(voting_twice_for_a_synchronization_is_a_violation)
{
	if (_i) /* also while the attempt runs, with another candidate */
		(void)two_and_one();
	else
		fk_sync(&p, fk_candidate(7, 1));
	fk_sync(&p, fk_candidate(8, 2));
	assert_contains(fk_take(a, WM_KICK)->u.kick.text, "voted for a synchronization (group 0)");
	ck_assert(!fk_present(&p));
}
END_TEST

/* ---- peers that the election kicks ---- */

static char order[8];

static void watch_order(void *arg, struct fk_host *h, const struct wm_msg *msg)
{
	size_t n = strlen(order);

	if (h != arg || n + 1 >= sizeof order)
		return;
	if (msg->type == WM_KICK)
		order[n] = 'K';
	else if (msg->type == WM_VIEW)
		order[n] = 'W';
	else if (msg->type == WM_OP_START)
		order[n] = 'S';
	else if (msg->type == WM_OP_DONE)
		order[n] = 'D';
}

START_TEST(unacceptable_peer_is_kicked_and_the_others_continue)
{
	struct wm_sync_vote v = fk_candidate(5, 1);
	const struct wm_kick *k;

	done_equal(4);
	memset(order, 0, sizeof order);
	f.watch = watch_order;
	f.watch_arg = a;
	fk_sync(&p, fk_candidate(5, 1));
	fk_sync(&r, fk_candidate(5, 2));
	if (_i == 0)
		v.revision = 6;
	else if (_i == 1)
		v.keys.lo = 77;
	else if (_i == 2)
		v.strategy = WM_STRATEGY_SEND_ONLY;
	else
		v.hash_type = WM_HASH_CRC32C;
	fk_sync(&q, v);
	k = &fk_take(b, WM_KICK)->u.kick;
	ck_assert(cc_id_eq(&k->peer, &q.id));
	ck_assert_uint_eq(k->code, WIRE_INVALID_USAGE);
	assert_contains(k->text, _i == 0   ? "REVISION_INCREMENT_VIOLATION: it has revision 6"
				 : _i == 1 ? "other keys than the group's"
				 : _i == 2
					 ? "it declares send-only"
					 : "hash type 2 (crc32c), the group's with 1 (simplehash)");
	ck_assert_uint_eq(fk_count(b, WM_OP_START), 0);
	ck_assert(!fk_present(&q));
	/* The new view is sent before the start, so both have the same generation. */
	ck_assert_str_eq(order, "WS");
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
	ck_assert_uint_eq(role_in(start_of(c), &r), RECEIVER);
	fk_report(a, seq_now(), true);
	fk_report(c, seq_now(), true);
	ck_assert_uint_eq(fk_take(c, WM_OP_DONE)->u.op_done.revision, 5);
	/* The run works as after any other loss. */
	fk_vote(&p, 1);
	fk_vote(&r, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 2);
}
END_TEST

/* The kick caused no error for the callers, so the next loss causes one. */
START_TEST(loss_after_a_kick_causes_its_own_error)
{
	done_equal(4);
	fk_sync(&p, fk_candidate(5, 1));
	fk_sync(&r, fk_candidate(5, 1));
	fk_sync(&q, fk_candidate(6, 1));
	fk_report(a, seq_now(), true);
	fk_report(c, seq_now(), true);
	fk_settle(&f);
	fk_vote(&p, 1);
	fk_forget(&f);
	fk_leave(&r, WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.code, WIRE_RANK_CONNECTION_LOST);
}
END_TEST

START_TEST(one_of_several_peers_of_a_host_is_kicked)
{
	struct fk_peer x = fk_join(a, 0);
	const struct wm_sync_start *s;

	topo_all();
	fk_sync(&x, fk_candidate(0, 1));
	done_equal(0);
	fk_forget(&f);
	memset(order, 0, sizeof order);
	f.watch = watch_order;
	f.watch_arg = a;
	fk_sync(&x, fk_candidate(9, 1));
	sync_equal(1, 1);
	ck_assert_str_eq(order, "KWS");
	s = start_of(a);
	ck_assert_uint_eq(s->n_peers, 1);
	ck_assert_uint_eq(role_in(s, &p), HOLDER);
	report_all(seq_now());
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 1);
}
END_TEST

START_TEST(all_are_kicked_if_no_candidate_stands)
{
	struct fk_peer x = fk_join(a, 1);
	uint64_t seq;

	topo_all();
	done_equal(4);
	seq = seq_now();
	sync_equal(3, 1);
	ck_assert(!fk_present(&p) && !fk_present(&q) && !fk_present(&r));
	assert_contains(fk_take(b, WM_KICK)->u.kick.text,
		"candidates have at most 3. If this is a new job");
	ck_assert_uint_eq(fk_count(a, WM_OP_START) + fk_count(a, WM_OP_ABORT), 0);
	ck_assert_uint_eq(seq_now(), seq);
	ck_assert_uint_eq(fk_status(&f).kicks, 3);
	ck_assert(fk_present(&x)); /* in another group */
}
END_TEST

START_TEST(newcomers_find_an_empty_group_after_all_were_kicked)
{
	struct fk_peer x;

	done_equal(4);
	x = fk_join(a, 0);
	sync_equal(3, 1);
	fk_settle(&f);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
	fk_sync(&x, fk_candidate(5, 9));
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

/* ---- revisions ---- */

START_TEST(first_revision_may_be_any_and_later_ones_grow_by_one)
{
	ck_assert_uint_eq(fk_revision(a, 0), 0);
	done_equal(13);
	ck_assert_uint_eq(fk_revision(a, 0), 14);
	ck_assert_uint_eq(fk_revision(c, 0), 14);
	done_equal(14);
	ck_assert_uint_eq(fk_revision(a, 0), 15);
	sync_equal(16, 1);
	ck_assert_uint_eq(fk_status(&f).kicks, 3);
}
END_TEST

START_TEST(aborted_synchronization_keeps_the_revision)
{
	done_equal(4);
	sync_equal(5, 1);
	fk_report(a, seq_now(), false);
	ck_assert_uint_eq(fk_take(b, WM_OP_ABORT)->u.op_abort.code, WIRE_RANK_CONNECTION_LOST);
	fk_settle(&f);
	ck_assert_uint_eq(fk_revision(a, 0), 5);
	done_equal(5);
}
END_TEST

START_TEST(next_revision_is_sent_before_the_end)
{
	memset(order, 0, sizeof order);
	f.watch = watch_order;
	f.watch_arg = a;
	sync_equal(4, 1);
	report_all(seq_now());
	ck_assert_str_eq(order, "SWD");
	ck_assert_uint_eq(fk_take(a, WM_VIEW)->u.view.own[0].revision, 5);
}
END_TEST

START_TEST(each_group_has_its_own_revision)
{
	struct fk_peer x = fk_join(a, 1), y = fk_join(b, 1);

	topo_all();
	fk_sync(&p, fk_candidate(4, 1));
	fk_sync(&x, fk_candidate(9, 2));
	fk_sync(&y, fk_candidate(9, 2));
	fk_report(a, seq_now(), true);
	fk_forget(&f);
	fk_report(b, seq_now(), true);
	ck_assert_uint_eq(fk_revision(a, 1), 10);
	ck_assert_uint_eq(fk_revision(a, 0), 0);
	ck_assert_uint_eq(c->n, 0);
	fk_sync(&q, fk_candidate(4, 1));
	fk_sync(&r, fk_candidate(4, 1));
	report_all(seq_now());
	ck_assert_uint_eq(fk_revision(a, 1), 10);
	ck_assert_uint_eq(fk_revision(a, 0), 5);
}
END_TEST

START_TEST(a_revision_outlives_the_members_of_its_group)
{
	struct fk_peer x;

	done_equal(4);
	fk_leave(&p, WM_LEAVE_CLEAN);
	fk_leave(&q, WM_LEAVE_CLEAN);
	fk_leave(&r, WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_status(&f).groups, 0);
	x = fk_join(a, 0);
	fk_settle(&f);
	ck_assert_uint_eq(fk_revision(a, 0), 5);
	fk_sync(&x, fk_candidate(0, 1));
	assert_contains(fk_take(a, WM_KICK)->u.kick.text, "the group expects revision 5");
	x = fk_join(a, 0);
	fk_settle(&f);
	fk_sync(&x, fk_candidate(5, 1));
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

START_TEST(newcomers_get_the_revision)
{
	struct fk_peer x;

	done_equal(4);
	x = fk_join(fk_host(&f, "d", "10.0.0.4"), 0);
	topo_all();
	ck_assert_uint_eq(fk_revision(x.host, 0), 5);
}
END_TEST

/* ---- the sources of leaves ---- */

/* Makes n hosts with one peer each in group 5. The first `holders` peers are holders, the others
 * lack something. */
static void many_hosts(struct fk_host **h, struct fk_peer *x, size_t n, size_t holders)
{
	char name[16], addr[32];
	size_t i, k;

	for (i = 0; i < n; i++) {
		(void)snprintf(name, sizeof name, "h%zu", i);
		(void)snprintf(addr, sizeof addr, "10.1.0.%zu", i + 1);
		h[i] = fk_connect(&f, name, addr);
		{
			struct wm_msg hello = fk_hello(h[i]);

			hello.u.hello.port_shared_state = (uint16_t)(2000 + i);
			fk_send(h[i], &hello);
		}
		x[i] = fk_join(h[i], 5);
	}
	topo_all();
	for (i = 0; i < n; i++)
		fk_sync(&x[i], fk_candidate(i < holders ? 9 : 3, i < holders ? 1 : 50 + i));
	for (k = 0; k < n; k++)
		ck_assert_uint_eq(fk_count(h[k], WM_OP_START), 1);
}

START_TEST(sources_are_rotated_and_receivers_follow_the_ring)
{
	struct fk_host *h[9];
	struct fk_peer x[9];
	unsigned first[3] = {0};
	size_t i, k;

	many_hosts(h, x, 9, 3);
	for (i = 3; i < 9; i++) {
		const struct wm_sync_start *s = start_of(h[i]);

		ck_assert_uint_eq(s->n_sources, 3);
		ck_assert_uint_eq(s->n_others, 5);
		for (k = 0; k < 3; k++)
			if (cc_id_eq(&s->sources[0].endpoint.agent, &h[k]->id)) {
				first[k]++;
				ck_assert_uint_eq(s->sources[0].endpoint.port, 2000 + k);
				ck_assert_uint_eq(s->sources[0].endpoint.addrs[0].port, 2000 + k);
			}
		ck_assert(cc_id_eq(&s->others[0].endpoint.agent, &h[i < 8 ? i + 1 : 3]->id));
		for (k = 0; k < 5; k++)
			ck_assert(!cc_id_eq(&s->others[k].endpoint.agent, &h[i]->id));
	}
	for (k = 0; k < 3; k++)
		ck_assert_uint_eq(first[k], 2);
}
END_TEST

START_TEST(number_of_named_sources_is_limited)
{
	struct fk_host *h[40];
	struct fk_peer x[40];
	const struct wm_sync_start *s;
	bool named[20] = {false};
	size_t i, k, n = 0;

	many_hosts(h, x, 40, 20);
	for (i = 20; i < 40; i++) {
		s = start_of(h[i]);
		ck_assert_uint_eq(s->n_sources, WM_SOURCES_MAX);
		ck_assert_uint_eq(s->n_others, WM_SOURCES_MAX);
		for (k = 0; k < 20; k++)
			named[k] |= cc_id_eq(&s->sources[0].endpoint.agent, &h[k]->id);
	}
	for (k = 0; k < 20; k++)
		n += named[k];
	ck_assert_uint_eq(n, 20);
}
END_TEST

/* The port in an advertised address is the port for links. */
START_TEST(sources_have_the_port_for_shared_state)
{
	struct fk_host *d = fk_connect(&f, "d", "10.0.0.4");
	struct wm_msg hello = fk_hello(d);
	const struct wm_sync_source *x;
	struct fk_peer y;

	hello.u.hello.port_shared_state = 2222;
	hello.u.hello.advertised = true;
	hello.u.hello.n_addrs = 1;
	ck_assert_int_eq(cc_addr_parse("192.0.2.1:7777", 0, &hello.u.hello.addrs[0]), 0);
	fk_send(d, &hello);
	y = fk_join(d, 0);
	topo_all();
	fk_sync(&y, fk_candidate(9, 4));
	(void)two_and_one();
	x = &start_of(c)->sources[0];
	ck_assert(cc_id_eq(&x->endpoint.agent, &d->id));
	ck_assert_uint_eq(x->endpoint.port, 2222);
	ck_assert_uint_eq(x->endpoint.n_addrs, 1);
	ck_assert_uint_eq(x->endpoint.addrs[0].port, 2222);
}
END_TEST

/* No other agent would know how to reach this agent. */
START_TEST(an_agent_without_a_port_is_no_source)
{
	struct fk_host *d = fk_connect(&f, "d", "10.0.0.4");
	struct wm_msg hello = fk_hello(d);
	const struct wm_sync_start *x;
	struct fk_peer y;

	hello.u.hello.port_shared_state = 0;
	fk_send(d, &hello);
	y = fk_join(d, 0);
	topo_all();
	fk_sync(&y, fk_candidate(7, 1));
	(void)two_and_one();
	x = start_of(c);
	ck_assert_uint_eq(x->n_sources, 2);
	ck_assert_uint_eq(start_of(d)->n_sources, 0); /* d is a holder */
}
END_TEST

static void add_candidates(TCase *tc)
{
	tcase_add_test(tc, start_names_the_roles_and_the_sources);
	tcase_add_test(tc, a_group_of_one_may_synchronize);
	tcase_add_test(tc, last_member_of_a_group_synchronizes_alone);
	tcase_add_test(tc, peers_of_one_host_may_have_different_candidates);
	tcase_add_loop_test(tc, candidate_decides_the_role, 0, 3);
	tcase_add_test(tc, start_names_the_elected_hash_type);
	tcase_add_test(tc, receive_only_peer_is_a_receiver_even_if_it_is_equal);
	tcase_add_loop_test(tc, peer_with_torn_state_is_a_receiver, 0, 2);
	tcase_add_loop_test(tc, all_are_kicked_if_all_have_torn_state, 0, 2);
	tcase_add_test(tc, an_all_reduce_with_tag_0_is_another_operation);
	tcase_add_loop_test(tc, voting_twice_for_a_synchronization_is_a_violation, 0, 2);
	tcase_add_loop_test(tc, unacceptable_peer_is_kicked_and_the_others_continue, 0, 4);
	tcase_add_test(tc, loss_after_a_kick_causes_its_own_error);
	tcase_add_test(tc, one_of_several_peers_of_a_host_is_kicked);
	tcase_add_test(tc, all_are_kicked_if_no_candidate_stands);
	tcase_add_test(tc, newcomers_find_an_empty_group_after_all_were_kicked);
	tcase_add_test(tc, first_revision_may_be_any_and_later_ones_grow_by_one);
	tcase_add_test(tc, aborted_synchronization_keeps_the_revision);
	tcase_add_test(tc, next_revision_is_sent_before_the_end);
	tcase_add_test(tc, each_group_has_its_own_revision);
	tcase_add_test(tc, a_revision_outlives_the_members_of_its_group);
	tcase_add_test(tc, newcomers_get_the_revision);
	tcase_add_test(tc, sources_have_the_port_for_shared_state);
	tcase_add_test(tc, an_agent_without_a_port_is_no_source);
	tcase_add_test(tc, sources_are_rotated_and_receivers_follow_the_ring);
	tcase_add_test(tc, number_of_named_sources_is_limited);
}

Suite *sync_suite(void)
{
	Suite *s = suite_create("sync");
	TCase *tc = tcase_create("synchronizations");

	tcase_add_checked_fixture(tc, setup, teardown);
	add_candidates(tc);
	suite_add_tcase(s, tc);
	return s;
}
