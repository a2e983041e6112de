/* SPDX-License-Identifier: MIT
 *
 * The agent dies and another agent starts. Communicators attach as the same peers, or learn why
 * they cannot. Control calls in progress are made again. If no agent starts, all calls end within
 * PCCL_AGENT_LEASE_MS.
 */
#include <pthread.h>

#include "common/cc_sys.h"
#include "tests/shim/resume.h"
#include "tests/shim/suites.h"

/* Sets the lease. The environment is read by calls that may need an agent. */
static void set_lease(const char *ms)
{
	setenv("PCCL_AGENT_LEASE_MS", ms, 1);
	fx_assert_fails(pcclConnect(fx_comm), pcclInvalidUsage, "already");
}

/* ---- the same peer, the same calls */

START_TEST(a_communicator_attaches_as_the_same_peer)
{
	struct wl_request connect = fake_last(fx_agent, WL_COMM_CONNECT), attach;
	struct buffers b = bf_new(REGISTERED_IN_PLACE, BYTES, 1);

	fake_generation(fx_agent, 3);
	/* The attach needs no call of the application. */
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	attach = fake_last(fx_agent, WL_COMM_ATTACH);
	ck_assert(cc_id_eq(&attach.peer, &connect.peer));
	ck_assert(cc_id_eq(&attach.token, &connect.token));
	ck_assert_uint_eq(attach.run.b[0], 1);
	ck_assert_uint_eq(attach.n_seqs, 0);
	ck_assert_uint_eq(attach.master.port, 48148);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_ADOPT), 1);
	/* The application does not know of the loss, so its next operation will be refused once. */
	rs_serve_next(&b, 1, 0);
	bf_free(&b);
}
END_TEST

/* The next agent gets the address at which an agent has found the master. This address may differ
 * from that of the application. */
START_TEST(the_next_agent_gets_the_address_of_the_master)
{
	static const struct cc_addr none,
		master_addrs[] = {{.family = CC_INET4, .ip = {192, 0, 2, 7}, .port = 5},
			{.family = CC_INET6, .ip = {0x20, 1, 0xd, 0xb8, [15] = 9}, .port = 65535}};
	struct wl_request q;
	pcclComm_t *c;

	fake_generation(fx_agent, 1);
	for (unsigned i = 0; i < 2; i++) {
		fake_master_addr(fx_agent, &master_addrs[i]);
		fake_hang_up(fx_agent);
		fake_await_seen(fx_agent, WL_COMM_ATTACH, i + 1);
		q = fake_last(fx_agent, WL_COMM_ATTACH);
		ck_assert_uint_eq(q.master.port, 48148);
		ck_assert(cc_addr_eq(&q.master_addr, &master_addrs[i]));
		fake_generation(fx_agent, 2);
	}
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	/* An agent without an address leaves the last address in force. Other communicators use it,
	 * too. */
	fake_master_addr(fx_agent, &none);
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 3);
	q = fake_last(fx_agent, WL_COMM_ATTACH);
	ck_assert(cc_addr_eq(&q.master_addr, &master_addrs[1]));
	ck_assert_uint_eq(q.view_id, 33); /* as the last agent published it */
	ck_assert_uint_eq(q.global, 63);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	c = fx_new_comm();
	fx_assert_succeeds(pcclConnect(c));
	q = fake_last(fx_agent, WL_COMM_CREATE);
	ck_assert(cc_addr_eq(&q.master_addr, &master_addrs[1]));
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	/* An address that is invalid or half written is ignored. */
	fake_master_addr(fx_agent, &(struct cc_addr){.family = 7, .port = 1});
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 4);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	fake_master_addr(fx_agent, &master_addrs[0]);
	fake_break_attrs(fx_agent);
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 5);
	q = fake_last(fx_agent, WL_COMM_ATTACH);
	ck_assert(cc_addr_eq(&q.master_addr, &master_addrs[1]));
}
END_TEST

/* The address also goes to an agent at which the peer has to connect again. */
START_TEST(the_address_of_the_master_outlives_a_loss)
{
	static const struct cc_addr master_addr = {
		.family = CC_INET4, .ip = {192, 0, 2, 7}, .port = 5};
	struct wl_request q;

	fake_master_addr(fx_agent, &master_addr);
	fake_lose(fx_agent, pcclRankConnectionLost, "kicked");
	fake_hang_up(fx_agent);
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclUpdateTopologyFailed, "kicked");
	fx_assert_succeeds(pcclConnect(fx_comm));
	q = fake_last(fx_agent, WL_COMM_CREATE);
	ck_assert(cc_addr_eq(&q.master_addr, &master_addr));
}
END_TEST

static void *vote(void *arg)
{
	pcclComm_t *c = fx_new_comm();
	bool flag = false;

	(void)arg;
	fx_assert_succeeds(pcclConnect(c));
	fx_assert_succeeds(pcclUpdateTopology(c));
	fx_assert_succeeds(pcclArePeersPending(c, &flag));
	ck_assert(flag);
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	return NULL;
}

/* Each kind of call is in progress when the agent dies. */
START_TEST(control_calls_in_progress_are_made_again)
{
	static const unsigned types[] = {
		WL_COMM_CREATE, WL_COMM_CONNECT, FAKE_VOTE(WIRE_TOPOLOGY), FAKE_VOTE(WIRE_PENDING)};
	unsigned type = types[_i];
	unsigned before = fake_seen(fx_agent, type);
	struct wl_request first, second;
	pthread_t t;

	fake_script(fx_agent, type, FAKE_HOLD, 0, NULL);
	ck_assert_int_eq(pthread_create(&t, NULL, vote, NULL), 0);
	fake_await_seen(fx_agent, type, before + 1);
	first = fake_last(fx_agent, type);
	fake_script(fx_agent, type, FAKE_ANSWER, 0, NULL);
	fake_hang_up(fx_agent);
	pthread_join(t, NULL);
	second = fake_last(fx_agent, type);
	ck_assert_uint_eq(fake_seen(fx_agent, type), before + 2);
	ck_assert(cc_id_eq(&first.peer, &second.peer));
	ck_assert(cc_id_eq(&first.token, &second.token));
	ck_assert_uint_eq(first.ballot, second.ballot);
}
END_TEST

static void *dies_thrice(void *arg)
{
	(void)arg;
	fake_await_seen(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), 1);
	for (unsigned i = 1; i <= 2; i++) {
		fake_script(fx_agent, WL_COMM_ATTACH, FAKE_HOLD, 0, NULL);
		fake_hang_up(fx_agent);
		fake_await_seen(fx_agent, WL_COMM_ATTACH, i);
	}
	fake_script(fx_agent, WL_COMM_ATTACH, FAKE_ANSWER, 0, NULL);
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), 2);
	fake_release(fx_agent);
	return NULL;
}

START_TEST(a_call_survives_several_deaths_of_agents)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pthread_t t;

	fake_script(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), FAKE_HOLD, 0, NULL);
	ck_assert_int_eq(pthread_create(&t, NULL, dies_thrice, NULL), 0);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	pthread_join(t, NULL);
	rs_serve_next(&b, 1, 0);
	bf_free(&b);
}
END_TEST

/* ---- when the attach fails */

START_TEST(a_refused_attach_ends_the_membership)
{
	uint32_t code = _i == 0 ? pcclRankConnectionLost : pcclMasterConnectionFailed;
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclReduceDescriptor_t d = bf_descriptor(BYTES, 2);
	pcclAsyncReduceOp_t h;
	struct fake_op op;

	rs_warm(STAGED_IN_PLACE);
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	rs_play_whole(&op, SHM_RESULT_AREA);
	fake_script(fx_agent, WL_COMM_ATTACH, FAKE_REFUSE, code, "declared lost 7 s ago");
	fake_hang_up(fx_agent);
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), code, "declared lost 7 s ago");
	bf_assert_untouched(&b);
	/* From now on, only pcclConnect helps. */
	code = _i == 0 ? pcclInvalidUsage : code;
	fx_assert_fails(pcclAllReduce(b.send, b.recv, &d, fx_comm, NULL), code, "declared lost");
	fx_assert_fails(pcclUpdateTopology(fx_comm),
		_i == 0 ? pcclUpdateTopologyFailed : (pcclResult_t)code, "pcclConnect");
	fx_assert_succeeds(pcclConnect(fx_comm));
	rs_serve_next(&b, 1, 0);
	bf_free(&b);
}
END_TEST

/* The peer was removed from the run before the agent died. This remains the reason, and no other
 * agent is asked. */
START_TEST(a_kick_before_the_agents_death_remains_the_reason)
{
	uint32_t code = _i == 0 ? pcclRankConnectionLost : pcclMasterConnectionFailed;

	fake_lose(fx_agent, code, "kicked: revision 7 skips 6");
	fake_hang_up(fx_agent);
	code = _i == 0 ? pcclUpdateTopologyFailed : code;
	fx_assert_fails(pcclUpdateTopology(fx_comm), code, "revision 7 skips 6");
	code = _i == 0 ? pcclInvalidUsage : code;
	fx_assert_fails(pcclUpdateTopology(fx_comm), code, "revision 7 skips 6");
	fx_assert_succeeds(pcclConnect(fx_comm));
	ck_assert_uint_eq(fake_seen(fx_agent, WL_COMM_ATTACH), 0);
}
END_TEST

/* The operations in flight have already reported the loss. */
START_TEST(a_loss_reported_by_operations_ends_later_calls)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclAsyncReduceOp_t h = bf_launch(&b, 1), second = bf_launch(&b, 2);
	struct fake_op op = fake_take(fx_agent), other = fake_take(fx_agent);
	/* In the second case the operations fail with another code than that of a loss. */
	uint32_t code = _i == 0 ? pcclRankConnectionLost : pcclInternalError;

	fake_lose(fx_agent, pcclRankConnectionLost, "kicked");
	fake_end(&op, code, "kicked");
	fake_end(&other, code, "kicked");
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), code, "kicked");
	fx_assert_fails(pcclAwaitAsyncReduce(&second, NULL), code, "kicked");
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclUpdateTopologyFailed, "kicked");
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclInvalidUsage, "kicked");
	bf_free(&b);
}
END_TEST

/* No call was in progress when the agent sent the goodbye. */
START_TEST(a_goodbye_between_calls_is_reported_by_the_next_call)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclReduceDescriptor_t d = bf_descriptor(BYTES, 1);

	fake_goodbye(fx_agent, pcclRankConnectionLost, "stopped for 10 s: call pcclConnect again");
	fx_assert_fails(pcclAllReduce(b.send, b.recv, &d, fx_comm, NULL), pcclRankConnectionLost,
		"stopped for 10 s");
	fx_assert_fails(
		pcclAllReduce(b.send, b.recv, &d, fx_comm, NULL), pcclInvalidUsage, "stopped");
	bf_assert_untouched(&b);
	fx_assert_succeeds(pcclConnect(fx_comm));
	rs_serve_next(&b, 1, 0);
	bf_free(&b);
}
END_TEST

START_TEST(after_a_goodbye_the_peer_does_not_attach)
{
	fake_script(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), FAKE_GOODBYE, pcclRankConnectionLost,
		"stopped for 10 s");
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclUpdateTopologyFailed, "stopped for 10 s");
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclInvalidUsage, "stopped for 10 s");
	ck_assert_uint_eq(fake_seen(fx_agent, WL_COMM_ATTACH), 0);
	ck_assert_uint_eq(fake_accepted(fx_agent), 1);
	fake_script(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), FAKE_ANSWER, 0, NULL);
	fx_assert_succeeds(pcclConnect(fx_comm));
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
}
END_TEST

static void *goodbye_once(void *arg)
{
	(void)arg;
	fake_await_seen(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), 1);
	fake_script(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), FAKE_ANSWER, 0, NULL);
	return NULL;
}

/* Calls wait for the next agent if an agent was told to end. */
START_TEST(calls_wait_for_the_successor_of_an_agent_that_ends)
{
	pthread_t t;

	fake_script(
		fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), FAKE_GOODBYE, pcclAgentUnavailable, "ending");
	ck_assert_int_eq(pthread_create(&t, NULL, goodbye_once, NULL), 0);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	pthread_join(t, NULL);
}
END_TEST

/* No agent comes back. Every call ends within the lease, with the same code. */
START_TEST(calls_end_within_the_lease_if_no_agent_comes_back)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclReduceDescriptor_t d = bf_descriptor(BYTES, 2);
	pcclAsyncReduceOp_t h;
	uint64_t begin;
	int value;

	set_lease("300");
	h = bf_launch(&b, 1);
	fake_take(fx_agent);
	begin = cc_now_ns();
	fake_stop(fx_agent);
	if (_i == 0) {
		fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost, "died");
		fx_assert_fails(pcclAllReduce(b.send, b.recv, &d, fx_comm, NULL),
			pcclAgentUnavailable, "did not come back within 300 ms");
	} else {
		fx_assert_fails(pcclArePeersPending(fx_comm, &(bool){false}), pcclAgentUnavailable,
			"did not come back within 300 ms");
		fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclAgentUnavailable, "300 ms");
	}
	ck_assert_uint_ge(cc_now_ns() - begin, 300000000u); /* not before the lease has passed */
	ck_assert_uint_lt(cc_now_ns() - begin, 20000000000u);
	bf_assert_untouched(&b);
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclAgentUnavailable, "pcclConnect");
	fx_assert_fails(pcclGetAttribute(fx_comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &value),
		pcclAgentUnavailable, "pcclConnect");
	fx_assert_fails(pcclConnect(fx_comm), pcclAgentUnavailable, fx_socket);
	fx_agent = fake_start(fx_socket);
	fx_assert_succeeds(pcclConnect(fx_comm));
	rs_serve_next(&b, 1, 0);
	bf_free(&b);
}
END_TEST

/* The agent is running, but does not respond to the call. */
START_TEST(calls_end_within_the_lease_if_the_agent_is_stopped)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclReduceDescriptor_t d = bf_descriptor(BYTES, 2);
	bool flag;
	void *p;

	setenv("PCCL_AGENT_LEASE_MS", "400", 1);
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	/* The lease is read when the session begins. */
	fake_script(fx_agent, WL_REGION_FREE, FAKE_GOODBYE, pcclAgentUnavailable, "restart");
	bf_free(&b);
	fake_script(fx_agent, WL_REGION_FREE, FAKE_ANSWER, 0, NULL);
	fx_comm = fx_new_comm();
	fx_assert_succeeds(pcclConnect(fx_comm));
	b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	fake_stall(fx_agent, true);
	switch (_i) {
	case 0:
		fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable, "stopped");
		break;
	case 1:
		fx_assert_fails(pcclUpdateTopology(fx_comm), pcclAgentUnavailable, "stopped");
		break;
	case 2:
		fx_assert_fails(pcclArePeersPending(fx_comm, &flag), pcclAgentUnavailable,
			"not answered for 400 ms");
		break;
	default:
		fx_assert_fails(pcclAllReduce(b.send, b.recv, &d, fx_comm, NULL),
			pcclAgentUnavailable, "stopped");
		break;
	}
	bf_assert_untouched(&b);
	fake_stall(fx_agent, false);
	/* A stopped agent does not count as dead. The application has to connect again. */
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclAgentUnavailable, "pcclConnect");
	fx_assert_succeeds(pcclConnect(fx_comm));
	rs_serve_next(&b, 1, 0);
	bf_free(&b);
}
END_TEST

static void *release_after_probes(void *arg)
{
	unsigned before = *(const unsigned *)arg;

	/* The time of eight probes is two leases, so silence would have been noticed. */
	fake_await_seen(fx_agent, WL_REGION_FREE, before + 8);
	fake_release(fx_agent);
	return NULL;
}

/* The shim probes the agent from time to time. An agent that answers is alive, however long a vote
 * takes. */
START_TEST(a_long_vote_does_not_count_as_silence)
{
	unsigned before = fake_seen(fx_agent, WL_REGION_FREE);
	pthread_t t;

	set_lease("1000");
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	fake_script(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), FAKE_HOLD, 0, NULL);
	ck_assert_int_eq(pthread_create(&t, NULL, release_after_probes, &before), 0);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	pthread_join(t, NULL);
}
END_TEST

/* ---- a process that knows an agent, and has no connected communicator */

static pcclResult_t ask(int what)
{
	void *p;

	return what == 0 ? pcclMemAlloc(1000, &p) : pcclConnect(fx_comm);
}

/* An agent that dies before it answers the hello does not count. */
static void *answer_at_last(void *arg)
{
	unsigned before = *(const unsigned *)arg;

	fake_await_seen(fx_agent, WL_HELLO, before + 4);
	fake_script(fx_agent, WL_HELLO, FAKE_ANSWER, 0, NULL);
	return NULL;
}

START_TEST(calls_before_connect_also_wait_for_the_next_agent)
{
	unsigned before;
	pthread_t t;
	void *p;

	fx_comm = fx_new_comm();
	fx_assert_succeeds(pcclMemAlloc(5000, &p));
	memset(p, 7, 5000);
	before = fake_seen(fx_agent, WL_HELLO);
	fake_script(fx_agent, WL_HELLO, FAKE_HANG_UP, 0, NULL);
	fake_hang_up(fx_agent);
	ck_assert_int_eq(pthread_create(&t, NULL, answer_at_last, &before), 0);
	fx_assert_succeeds(ask(_i));
	pthread_join(t, NULL);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_ADOPT), 1);
	fx_assert_succeeds(pcclMemFree(p));
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
}
END_TEST

START_TEST(calls_before_connect_wait_for_the_lease_only)
{
	uint64_t begin;
	void *p;

	fx_comm = fx_new_comm();
	setenv("PCCL_AGENT_LEASE_MS", "300", 1);
	fx_assert_succeeds(pcclMemAlloc(5000, &p));
	fake_stop(fx_agent);
	begin = cc_now_ns();
	fx_assert_fails(ask(_i), pcclAgentUnavailable, "did not come back within 300 ms");
	ck_assert_uint_ge(cc_now_ns() - begin, 300000000u); /* not before the lease has passed */
	/* Now the library knows no agent, as before the first session. */
	setenv("PCCL_AGENT_LEASE_MS", "1000000", 1);
	fx_assert_fails(ask(_i), pcclAgentUnavailable, "PCCL_AGENT_SOCKET");
	fx_agent = fake_start(fx_socket);
	fx_assert_succeeds(ask(_i));
	fx_assert_succeeds(pcclMemFree(p));
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
}
END_TEST

/* Each agent dies when it gets the request. */
START_TEST(a_request_that_kills_agents_is_not_repeated_for_ever)
{
	enum wl_type type = _i == 0 ? WL_REGION_ALLOC : WL_COMM_CONNECT;

	fx_comm = fx_new_comm();
	setenv("PCCL_AGENT_LEASE_MS", "300", 1);
	fake_script(fx_agent, type, FAKE_HANG_UP, 0, NULL);
	fx_assert_fails(ask(_i), pcclAgentUnavailable, "closed the connection");
	ck_assert_uint_gt(fake_seen(fx_agent, type), 1);
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
}
END_TEST

/* The agents die when they get the request to adopt memory, or send garbage as the answer. */
START_TEST(agents_that_die_when_they_adopt_memory_are_given_up)
{
	bool garbage = _i >= 2;
	void *p;

	fx_comm = fx_new_comm();
	setenv("PCCL_AGENT_LEASE_MS", "300", 1);
	fx_assert_succeeds(pcclMemAlloc(5000, &p));
	fake_script(fx_agent, WL_REGION_ADOPT, garbage ? FAKE_GARBAGE : FAKE_HANG_UP, 0, NULL);
	fake_hang_up(fx_agent);
	fx_assert_fails(ask(_i % 2), pcclAgentUnavailable,
		garbage ? "malformed" : "keeps restarting (unstable for 300 ms)");
	ck_assert_uint_lt(fake_seen(fx_agent, WL_REGION_ADOPT), 100);
	fake_script(fx_agent, WL_REGION_ADOPT, FAKE_ANSWER, 0, NULL);
	fx_assert_succeeds(ask(_i % 2));
	fx_assert_succeeds(pcclMemFree(p));
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
}
END_TEST

static void *ask_too(void *arg)
{
	void *p;

	ck_assert_int_eq(pcclMemAlloc(1000, &p), pcclAgentUnavailable);
	(void)arg;
	return strdup(pcclGetLastError());
}

/* It is also true that no agent is found, but the error must not say this. */
START_TEST(all_waiting_threads_get_the_reason_of_the_wait)
{
	enum { THREADS = 4 };
	unsigned before;
	pthread_t t[THREADS];
	void *p, *text;

	setenv("PCCL_AGENT_LEASE_MS", "2000", 1);
	fx_assert_succeeds(pcclMemAlloc(5000, &p));
	before = fake_seen(fx_agent, WL_HELLO);
	fake_script(fx_agent, WL_HELLO, FAKE_HANG_UP, 0, NULL);
	fake_hang_up(fx_agent);
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, ask_too, NULL), 0);
	fake_await_seen(fx_agent, WL_HELLO, before + 3);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(t[i], &text);
		ck_assert_msg(strstr(text, "did not come back within 2000 ms") != NULL, "%s",
			(const char *)text);
		free(text);
	}
	fake_script(fx_agent, WL_HELLO, FAKE_ANSWER, 0, NULL);
	fx_assert_succeeds(pcclMemFree(p));
}
END_TEST

static void *allocate(void *arg)
{
	void *p;

	(void)arg;
	return (void *)(uintptr_t)pcclMemAlloc(1000, &p);
}

/* The agent has nothing of the communicator, or only what a failed connect has left. The lease is
 * longer than the test may take. */
START_TEST(destroying_and_freeing_need_no_agent)
{
	unsigned before;
	pthread_t t;
	void *p, *r;

	setenv("PCCL_AGENT_LEASE_MS", "1000000", 1);
	fx_comm = fx_new_comm();
	fx_assert_succeeds(pcclMemAlloc(5000, &p));
	fake_script(fx_agent, WL_COMM_CONNECT, FAKE_REFUSE, pcclMasterConnectionFailed, "none");
	if (_i % 2)
		fx_assert_fails(pcclConnect(fx_comm), pcclMasterConnectionFailed, "none");
	before = fake_seen(fx_agent, WL_HELLO);
	fake_script(fx_agent, WL_HELLO, FAKE_HANG_UP, 0, NULL);
	fake_hang_up(fx_agent);
	if (_i / 2) { /* another thread waits for an agent */
		ck_assert_int_eq(pthread_create(&t, NULL, allocate, NULL), 0);
		fake_await_seen(fx_agent, WL_HELLO, before + 3);
	}
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	fx_assert_succeeds(pcclMemFree(p));
	if (!(_i / 2))
		return;
	fake_script(fx_agent, WL_HELLO, FAKE_ANSWER, 0, NULL);
	pthread_join(t, &r);
	ck_assert_uint_eq((uintptr_t)r, pcclSuccess);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_ADOPT), 0);
}
END_TEST

/* The reason that the agent gives may already contain the advice that the library would add. */
START_TEST(an_error_contains_its_advice_only_once)
{
	static const char *const reasons[] = {
		"an operator has reset the run at its master: connect again",
		"this peer was declared lost by the master: call pcclConnect again",
		"start from a checkpoint, or reset the run (pcclctl reset)"};

	fake_lose(fx_agent, pcclRankConnectionLost, reasons[_i]);
	ck_assert_int_ne(pcclUpdateTopology(fx_comm), pcclSuccess);
	ck_assert_str_eq(pcclGetLastError(), reasons[_i]);
	fx_assert_fails(
		pcclArePeersPending(fx_comm, &(bool){false}), pcclInvalidUsage, reasons[_i]);
	ck_assert_ptr_null(strstr(pcclGetLastError(), "to join again"));
}
END_TEST

Suite *resume_comms_suite(void)
{
	Suite *s = suite_create("resume_comms");
	TCase *tc = tcase_create("resume_comms"), *bare = tcase_create("not connected");

	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_communicator_attaches_as_the_same_peer);
	tcase_add_test(tc, the_next_agent_gets_the_address_of_the_master);
	tcase_add_test(tc, the_address_of_the_master_outlives_a_loss);
	tcase_add_loop_test(tc, control_calls_in_progress_are_made_again, 0, 4);
	tcase_add_test(tc, a_call_survives_several_deaths_of_agents);
	tcase_add_loop_test(tc, a_refused_attach_ends_the_membership, 0, 2);
	tcase_add_loop_test(tc, a_kick_before_the_agents_death_remains_the_reason, 0, 2);
	tcase_add_loop_test(tc, a_loss_reported_by_operations_ends_later_calls, 0, 2);
	tcase_add_test(tc, a_goodbye_between_calls_is_reported_by_the_next_call);
	tcase_add_test(tc, after_a_goodbye_the_peer_does_not_attach);
	tcase_add_test(tc, calls_wait_for_the_successor_of_an_agent_that_ends);
	tcase_add_loop_test(tc, calls_end_within_the_lease_if_no_agent_comes_back, 0, 2);
	tcase_add_loop_test(tc, calls_end_within_the_lease_if_the_agent_is_stopped, 0, 4);
	tcase_add_test(tc, a_long_vote_does_not_count_as_silence);
	tcase_add_loop_test(tc, an_error_contains_its_advice_only_once, 0, 3);
	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(bare, fx_setup_agent, fx_teardown_agent);
	tcase_set_timeout(bare, 60);
	tcase_add_loop_test(bare, calls_before_connect_also_wait_for_the_next_agent, 0, 2);
	tcase_add_loop_test(bare, calls_before_connect_wait_for_the_lease_only, 0, 2);
	tcase_add_loop_test(bare, a_request_that_kills_agents_is_not_repeated_for_ever, 0, 2);
	tcase_add_loop_test(bare, agents_that_die_when_they_adopt_memory_are_given_up, 0, 4);
	tcase_add_test(bare, all_waiting_threads_get_the_reason_of_the_wait);
	tcase_add_loop_test(bare, destroying_and_freeing_need_no_agent, 0, 4);
	suite_add_tcase(s, bare);
	return s;
}
