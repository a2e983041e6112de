/* SPDX-License-Identifier: MIT
 *
 * Members that leave a job while it goes on for the others. Their memory must not be used again.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/wire_state.h"
#include "tests/state/host.h"
#include "tests/state/suites.h"

/* Waits until some bytes have moved. The caller has made sure that the job cannot end. */
static void until_under_way(struct net *n)
{
	struct ste_event ev;

	for (int i = 0; i < 2000; i++) {
		struct ste_progress p = host_progress(&n->h[0], SEQ);

		if (p.net_rx_bytes > 1 << 20 || p.done > 0)
			return;
		ck_assert(!net_event(n, UINT32_MAX, &ev, 5));
	}
	ck_abort_msg("no bytes move");
}

static void end(struct net *n, struct shape *s, struct member *poisoned)
{
	member_poison(poisoned, false);
	net_down(n);
	shape_free(s);
}

/* Starts the jobs: host 1 serves host 0. */
static void begin(struct net *n, struct shape *s)
{
	struct ste_source src = source_of(n, 1, true);

	host_hash(&n->h[0]);
	host_hash(&n->h[1]);
	host_start(&n->h[1], SEQ, s, NULL, 0);
	host_start(&n->h[0], SEQ, s, &src, 1);
}

/* Host 0 has two receivers: the agent can write to the first one directly, and the process of the
 * second one does nothing. */
static void begin_two(struct net *n, struct shape *s, enum kind holder)
{
	net_up(n, 2);
	member_add(&n->h[0], s, false, REGISTERED);
	member_add(&n->h[0], s, false, OWN);
	member_add(&n->h[1], s, true, holder);
	atomic_store(&n->h[0].m[1].deaf, true);
	begin(n, s);
	until_under_way(n);
}

/* The first of two receivers leaves. Blocks lie in its registered memory (_i 0) or its window (1),
 * or wait for its process (2), or a block has arrived in part (3). */
START_TEST(job_continues_if_a_receiver_leaves_while_blocks_arrive)
{
	enum kind first = _i == 1 || _i == 2 ? OWN : REGISTERED;
	enum kind second = _i < 2 ? OWN : REGISTERED;
	struct member *leaves, *stays;
	struct shape s;
	struct net n;

	shape_two(&s, 24 << 20);
	net_up(&n, 2);
	leaves = member_add(&n.h[0], &s, false, first);
	stays = member_add(&n.h[0], &s, false, second);
	member_add(&n.h[1], &s, true, OWN);
	if (_i < 3)
		atomic_store(_i == 2 ? &leaves->deaf : &stays->deaf, true);
	else /* the source sends a block and a half */
		atomic_store(&n.h[1].m[0].limit, 6);
	begin(&n, &s);
	until_under_way(&n);
	net_drop(&n, 0, 0);
	member_poison(leaves, true);
	atomic_store(&stays->deaf, false);
	atomic_store(&n.h[1].m[0].limit, 0);
	net_expect(&n, 0, STE_DONE);
	member_check(stays);
	ck_assert_uint_eq(host_view(&n.h[0], 1).rx_bytes, shape_bytes(&s));
	ck_assert(!host_view(&n.h[0], 1).failed);
	end(&n, &s, leaves);
}
END_TEST

/* The holder on this host leaves, in cases 2 and 3 while a receiver's process is about to copy from
 * its memory. The missing bytes come from another host. */
START_TEST(other_host_replaces_a_holder_that_leaves)
{
	struct member *leaves, *stays;
	struct ste_event ev;
	struct shape s;
	struct net n;

	shape_two(&s, 24 << 20);
	net_up(&n, 2);
	leaves = member_add(&n.h[0], &s, true, _i % 2 ? OWN : REGISTERED);
	stays = member_add(&n.h[0], &s, false, OWN);
	member_add(&n.h[1], &s, true, REGISTERED);
	atomic_store(&stays->deaf, true);
	begin(&n, &s);
	while (_i / 2 && member_commands(stays) == 0)
		ck_assert(!net_event(&n, UINT32_MAX, &ev, 5));
	net_drop(&n, 0, 0);
	member_poison(leaves, true);
	atomic_store(&stays->blind, 1);
	atomic_store(&stays->deaf, false);
	net_expect(&n, 0, STE_DONE);
	member_check(stays);
	ck_assert_uint_gt(host_progress(&n.h[0], SEQ).net_rx_bytes, 16 << 20);
	end(&n, &s, leaves);
}
END_TEST

/* A receiver's process is about to copy from a holder's memory. The holder changes this memory,
 * after the holder has left the job (_i 0, 1) or during the holder's call (2, 3). The change must
 * be detected. */
START_TEST(holder_changes_memory_that_is_being_copied)
{
	struct member *leaves, *stays;
	struct ste_event ev;
	struct shape s;
	struct net n;

	shape_two(&s, 24 << 20);
	net_up(&n, 2);
	leaves = member_add(&n.h[0], &s, true, _i % 2 ? OWN : REGISTERED);
	leaves->region.fd = leaves->fd;
	stays = member_add(&n.h[0], &s, false, OWN);
	member_add(&n.h[1], &s, true, REGISTERED);
	atomic_store(&stays->deaf, true);
	begin(&n, &s);
	while (member_commands(stays) == 0)
		ck_assert(!net_event(&n, UINT32_MAX, &ev, 5));
	if (_i < 2)
		net_drop(&n, 0, 0);
	member_stop(leaves); /* so that only this thread writes to its memory */
	memset(leaves->memory, 0xee, leaves->size);
	memset(leaves->map + leaves->state.window_off, 0xee,
		(size_t)SHM_STATE_SLOTS * SHM_STATE_SLOT);
	atomic_store(&stays->deaf, false);
	net_expect(&n, 0, STE_DONE);
	ck_assert_uint_gt(atomic_load(&stays->n_seen), 0);
	ck_assert(host_view(&n.h[0], 0).failed);
	member_check(stays);
	net_end(&n, &s);
}
END_TEST

/* While the pool copies, the receiver leaves (_i 1) or the job is cancelled (0). */
START_TEST(pool_stops_if_the_receiver_leaves_or_the_job_ends)
{
	struct ste_event ev;
	struct member *m;
	struct shape s;
	struct net n;

	net_pool = 3;
	shape_two(&s, 96 << 20);
	net_up(&n, 1);
	member_add(&n.h[0], &s, true, REGISTERED);
	member_add(&n.h[0], &s, false, REGISTERED);
	host_hash(&n.h[0]);
	m = &n.h[0].m[1];
	member_stop(m);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	while (ste_copied(n.h[0].e) == 0)
		;
	if (_i % 2) {
		ste_drop(n.h[0].e, SEQ, 1);
		while (!host_view(&n.h[0], 1).dropped)
			;
	} else {
		ste_cancel(n.h[0].e, SEQ);
		while (net_event(&n, 0, &ev, WAIT_MS) && ev.type != STE_CANCELLED)
			ck_assert_int_eq(ev.type, STE_DONE);
	}
	member_poison(m, true);
	ck_assert(!net_event(&n, UINT32_MAX, &ev, 20));
	end(&n, &s, m);
}
END_TEST

/* One of two holders that serve another host leaves. */
START_TEST(remaining_holder_serves_another_host)
{
	struct member *leaves;
	struct ste_source src[1];
	struct shape s;
	struct net n;

	shape_two(&s, 24 << 20);
	net_up(&n, 2);
	member_add(&n.h[0], &s, false, OWN);
	leaves = member_add(&n.h[1], &s, true, _i ? OWN : REGISTERED);
	member_add(&n.h[1], &s, true, REGISTERED);
	src[0] = source_of(&n, 1, true);
	host_hash(&n.h[0]);
	host_hash(&n.h[1]);
	atomic_store(&n.h[0].m[0].deaf, true);
	host_start(&n.h[1], SEQ, &s, NULL, 0);
	net_expect(&n, 1, STE_DONE);
	host_start(&n.h[0], SEQ, &s, src, 1);
	until_under_way(&n);
	net_drop(&n, 1, 0);
	member_poison(leaves, true);
	atomic_store(&n.h[0].m[0].deaf, false);
	net_expect_done(&n);
	ck_assert_uint_gt(host_view(&n.h[1], 1).tx_bytes, 0);
	end(&n, &s, leaves);
}
END_TEST

/* A member leaves while leaf hashes of its manifest are being sent: sending stops. */
START_TEST(manifest_of_dropped_member_is_no_longer_sent)
{
	static uint8_t answer[WST_HDR_SIZE + 8192];
	struct wst_request r = {.kind = WST_LEAVES, .id = 1, .group = 3, .seq = SEQ, .n = 1024};
	uint8_t buf[WST_HDR_SIZE];
	struct member *leaves;
	int fds[2], small = 1;
	struct shape s;
	struct net n;
	ssize_t len;

	shape_two(&s, 64 << 20);
	net_up(&n, 1);
	leaves = member_add(&n.h[0], &s, true, REGISTERED);
	member_add(&n.h[0], &s, true, REGISTERED);
	host_hash(&n.h[0]);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	net_expect(&n, 0, STE_DONE);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	wst_request_put(buf, &r);
	ck_assert_int_eq(send(fds[0], buf, sizeof buf, 0), sizeof buf);
	ck_assert_int_eq(ste_add_stream(n.h[0].e, fds[1], 0, SEQ), 0);
	ck_assert_int_eq(recv(fds[0], answer, 128, MSG_WAITALL), 128);
	net_drop(&n, 0, 0);
	memset(leaves->map + leaves->state.leaves_off, 0xaa, 8192);
	len = recv(fds[0], answer + 128, sizeof answer - 128, MSG_WAITALL);
	ck_assert_int_ge(len, 0);
	ck_assert_int_lt(len, (ssize_t)sizeof answer - 128);
	close(fds[0]);
	net_end(&n, &s);
}
END_TEST

/* The member whose manifest has the names leaves. Then the names come from another manifest. */
START_TEST(names_come_from_manifest_of_remaining_member)
{
	struct ste_event ev;
	struct shape s;
	struct net n;

	shape_two(&s, 24 << 20);
	begin_two(&n, &s, OWN);
	net_drop(&n, 0, 0);
	member_poison(&n.h[0].m[0], true);
	atomic_store(&n.h[1].m[0].corrupt, true);
	atomic_store(&n.h[0].m[1].deaf, false);
	ck_assert(net_event(&n, 0, &ev, WAIT_MS));
	ck_assert_int_eq(ev.type, STE_FAILED);
	ck_assert_msg(strstr(ev.text, "tensor \"tensor00000000\"") != NULL, "%s", ev.text);
	end(&n, &s, &n.h[0].m[0]);
}
END_TEST

/* All members whose manifests have the names leave, then the job is cancelled. */
START_TEST(job_without_members_can_be_cancelled)
{
	struct shape s;
	struct net n;

	shape_two(&s, 8 << 20);
	begin_two(&n, &s, REGISTERED);
	net_drop(&n, 0, 1);
	ste_drop(n.h[0].e, SEQ, 1); /* again */
	ste_drop(n.h[0].e, SEQ, 0);
	ste_drop(n.h[0].e, SEQ, 7); /* no such member */
	ste_cancel(n.h[0].e, SEQ);
	ste_drop(n.h[0].e, SEQ, 0);
	net_expect(&n, 0, STE_CANCELLED);
	net_end(&n, &s);
}
END_TEST

/* A holder that still serves others leaves after the job is done. */
START_TEST(job_stays_complete_if_a_holder_leaves_afterwards)
{
	struct ste_event ev;
	struct shape s;
	struct net n;

	shape_two(&s, 1 << 20);
	net_up(&n, 1);
	member_add(&n.h[0], &s, true, REGISTERED);
	member_add(&n.h[0], &s, false, REGISTERED);
	host_hash(&n.h[0]);
	host_start(&n.h[0], SEQ, &s, NULL, 0);
	net_expect(&n, 0, STE_DONE);
	member_check(&n.h[0].m[1]);
	net_drop(&n, 0, 0);
	member_poison(&n.h[0].m[0], true);
	ck_assert(host_view(&n.h[0], 0).complete);
	ck_assert(!net_event(&n, 0, &ev, 50));
	ste_cancel(n.h[0].e, SEQ);
	net_expect(&n, 0, STE_CANCELLED);
	end(&n, &s, &n.h[0].m[0]);
}
END_TEST

/* A receive-only peer has the elected contents. No other peer gets them from it. */
START_TEST(receive_only_peer_with_elected_state_serves_nobody)
{
	struct ste_source src[1];
	struct shape s;
	struct net n;

	shape_two(&s, 1 << 20);
	net_up(&n, 2);
	member_add(&n.h[0], &s, false, REGISTERED)->receive_only = true;
	member_add(&n.h[0], &s, false, REGISTERED);
	member_add(&n.h[1], &s, true, REGISTERED);
	src[0] = source_of(&n, 1, true);
	for (uint32_t t = 0; t < s.n; t++)
		memcpy(n.h[0].m[0].data[t], n.h[1].m[0].data[t], s.bytes[t]);
	host_hash(&n.h[0]);
	host_hash(&n.h[1]);
	host_start(&n.h[1], SEQ, &s, NULL, 0);
	host_start(&n.h[0], SEQ, &s, src, 1);
	net_expect_done(&n);
	member_check(&n.h[0].m[1]);
	ck_assert_uint_eq(host_view(&n.h[0], 0).tx_bytes, 0);
	ck_assert_uint_eq(host_view(&n.h[0], 0).rx_bytes, 0);
	net_expect_sent(&n, 1, shape_bytes(&s));
	net_end(&n, &s);
}
END_TEST

Suite *drop_suite(void)
{
	Suite *s = suite_create("drop");
	TCase *t = tcase_create("drop");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, job_continues_if_a_receiver_leaves_while_blocks_arrive, 0, 4);
	tcase_add_loop_test(t, other_host_replaces_a_holder_that_leaves, 0, 4);
	tcase_add_loop_test(t, holder_changes_memory_that_is_being_copied, 0, 4);
	tcase_add_loop_test(t, pool_stops_if_the_receiver_leaves_or_the_job_ends, 0, 4);
	tcase_add_loop_test(t, remaining_holder_serves_another_host, 0, 2);
	tcase_add_test(t, manifest_of_dropped_member_is_no_longer_sent);
	tcase_add_test(t, names_come_from_manifest_of_remaining_member);
	tcase_add_test(t, job_without_members_can_be_cancelled);
	tcase_add_test(t, job_stays_complete_if_a_holder_leaves_afterwards);
	tcase_add_test(t, receive_only_peer_with_elected_state_serves_nobody);
	suite_add_tcase(s, t);
	return s;
}
