/* SPDX-License-Identifier: MIT
 *
 * The agent dies and another one takes its place: communicators are attached again as the peers
 * that they were, or learn why not, control calls that were under way are made again, and what
 * nobody brings back ends within PCCL_AGENT_LEASE_MS.
 */
#include <pthread.h>

#include "common/cc_sys.h"
#include "tests/shim/resume.h"
#include "tests/shim/suites.h"

/* The environment is read by calls that may need an agent. */
static void set_lease(const char *ms)
{
	setenv("PCCL_AGENT_LEASE_MS", ms, 1);
	fx_assert_fails(pcclConnect(fx_comm), pcclInvalidUsage, "already");
}

/* ---- the same peer, the same calls */

START_TEST(the_same_peer_again)
{
	struct wl_request connect = fake_last(fx_agent, WL_COMM_CONNECT), attach;
	struct buffers b = bf_new(REGISTERED_IN_PLACE, BYTES, 1);

	fake_generation(fx_agent, 3);
	/* No call is needed for it. */
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	attach = fake_last(fx_agent, WL_COMM_ATTACH);
	ck_assert(cc_id_eq(&attach.peer, &connect.peer));
	ck_assert(cc_id_eq(&attach.token, &connect.token));
	ck_assert_uint_eq(attach.run.b[0], 1);
	ck_assert_uint_eq(attach.generation, 0);
	ck_assert_uint_eq(attach.n_seqs, 0);
	ck_assert_uint_eq(attach.master.port, 48148);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_ADOPT), 1);
	/* This application was told of no loss: its next operation will be refused, once. */
	rs_serve_next(&b, 1, 0);
	bf_free(&b);
}
END_TEST

/* Where an agent has found the master is told to the next one; with another name than the
 * application's, or another port. */
START_TEST(the_address_of_the_master)
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
		ck_assert_uint_eq(q.generation, i); /* the application has not heard of it */
		fake_generation(fx_agent, 2);
	}
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	/* One that does not say leaves the last word as it was; other communicators profit. */
	fake_master_addr(fx_agent, &none);
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 3);
	q = fake_last(fx_agent, WL_COMM_ATTACH);
	ck_assert(cc_addr_eq(&q.master_addr, &master_addrs[1]));
	ck_assert_uint_eq(q.epoch, 3); /* as the agent before had published */
	ck_assert_uint_eq(q.ring_epoch, 13);
	ck_assert_uint_eq(q.prepared, 23);
	ck_assert_uint_eq(q.view_id, 33);
	ck_assert_uint_eq(q.world_size, 53);
	ck_assert_uint_eq(q.global, 63);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	c = fx_new_comm();
	fx_assert_succeeds(pcclConnect(c));
	q = fake_last(fx_agent, WL_COMM_CREATE);
	ck_assert(cc_addr_eq(&q.master_addr, &master_addrs[1]));
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	/* A place that makes no sense, or half of one, is none. */
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

/* Also to one that it has to be connected to anew. */
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

/* Each kind of call is under way when the agent dies. */
START_TEST(calls_are_made_again)
{
	static const enum wl_type types[] = {
		WL_COMM_CREATE, WL_COMM_CONNECT, WL_UPDATE_TOPOLOGY, WL_ARE_PENDING};
	enum wl_type type = types[_i];
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
	ck_assert_uint_eq(first.topo_ballot, second.topo_ballot);
	ck_assert_uint_eq(first.pending_ballot, second.pending_ballot);
}
END_TEST

static void *dies_thrice(void *arg)
{
	(void)arg;
	fake_await_seen(fx_agent, WL_UPDATE_TOPOLOGY, 1);
	for (unsigned i = 1; i <= 2; i++) {
		fake_script(fx_agent, WL_COMM_ATTACH, FAKE_HOLD, 0, NULL);
		fake_hang_up(fx_agent);
		fake_await_seen(fx_agent, WL_COMM_ATTACH, i);
	}
	fake_script(fx_agent, WL_COMM_ATTACH, FAKE_ANSWER, 0, NULL);
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_UPDATE_TOPOLOGY, 2);
	fake_release(fx_agent);
	return NULL;
}

START_TEST(agents_that_die_in_a_row)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pthread_t t;

	fake_script(fx_agent, WL_UPDATE_TOPOLOGY, FAKE_HOLD, 0, NULL);
	ck_assert_int_eq(pthread_create(&t, NULL, dies_thrice, NULL), 0);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	pthread_join(t, NULL);
	rs_serve_next(&b, 1, 0);
	bf_free(&b);
}
END_TEST

/* ---- when it does not work out */

START_TEST(attach_is_refused)
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
	/* From then on it is of no use to call again. */
	code = _i == 0 ? pcclInvalidUsage : code;
	fx_assert_fails(pcclAllReduce(b.send, b.recv, &d, fx_comm, NULL), code, "declared lost");
	fx_assert_fails(pcclUpdateTopology(fx_comm),
		_i == 0 ? pcclUpdateTopologyFailed : (pcclResult_t)code, "pcclConnect");
	fx_assert_succeeds(pcclConnect(fx_comm));
	rs_serve_next(&b, 1, 0);
	bf_free(&b);
}
END_TEST

/* Removed from the run before the agent died: that remains the reason, and nobody else is asked. */
START_TEST(kicked_before)
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

/* Those that were under way have been told. */
START_TEST(told_by_an_operation)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclAsyncReduceOp_t h = bf_launch(&b, 1), second = bf_launch(&b, 2);
	struct fake_op op = fake_take(fx_agent), other = fake_take(fx_agent);
	/* Another loss, which is no reason. */
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

/* Nothing was under way when the agent said it. */
START_TEST(told_by_a_goodbye)
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

START_TEST(goodbyes_are_taken_seriously)
{
	fake_script(fx_agent, WL_UPDATE_TOPOLOGY, FAKE_GOODBYE, pcclRankConnectionLost,
		"stopped for 10 s");
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclUpdateTopologyFailed, "stopped for 10 s");
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclInvalidUsage, "stopped for 10 s");
	ck_assert_uint_eq(fake_seen(fx_agent, WL_COMM_ATTACH), 0);
	ck_assert_uint_eq(fake_accepted(fx_agent), 1);
	fake_script(fx_agent, WL_UPDATE_TOPOLOGY, FAKE_ANSWER, 0, NULL);
	fx_assert_succeeds(pcclConnect(fx_comm));
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
}
END_TEST

static void *goodbye_once(void *arg)
{
	(void)arg;
	fake_await_seen(fx_agent, WL_UPDATE_TOPOLOGY, 1);
	fake_script(fx_agent, WL_UPDATE_TOPOLOGY, FAKE_ANSWER, 0, NULL);
	return NULL;
}

/* An agent that is stopped for good, or for another to take its place, is waited for. */
START_TEST(an_agent_that_ends_orderly)
{
	pthread_t t;

	fake_script(fx_agent, WL_UPDATE_TOPOLOGY, FAKE_GOODBYE, pcclAgentUnavailable, "ending");
	ck_assert_int_eq(pthread_create(&t, NULL, goodbye_once, NULL), 0);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	pthread_join(t, NULL);
}
END_TEST

/* Nobody comes back: every call ends within the bound, with the same code. */
START_TEST(nobody_comes_back)
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
	ck_assert_uint_ge(cc_now_ns() - begin, 300000000u); /* all of it */
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

/* An agent that is there but does not move, and what waits for it. */
START_TEST(a_stopped_agent_does_not_hold_calls)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclReduceDescriptor_t d = bf_descriptor(BYTES, 2);
	bool flag;
	void *p;

	setenv("PCCL_AGENT_LEASE_MS", "400", 1);
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	/* The bound is that of the session's beginning. */
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
	/* One that stood still is not taken for one that died: the application has to say so. */
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclAgentUnavailable, "pcclConnect");
	fx_assert_succeeds(pcclConnect(fx_comm));
	rs_serve_next(&b, 1, 0);
	bf_free(&b);
}
END_TEST

static void *release_after_probes(void *arg)
{
	unsigned before = *(const unsigned *)arg;

	/* Each is an eighth of what it takes to be silent twice. */
	fake_await_seen(fx_agent, WL_REGION_FREE, before + 8);
	fake_release(fx_agent);
	return NULL;
}

/* An agent that answers is asked now and then, however long a vote takes. */
START_TEST(a_long_vote_is_no_silence)
{
	unsigned before = fake_seen(fx_agent, WL_REGION_FREE);
	pthread_t t;

	set_lease("1000");
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	fake_script(fx_agent, WL_UPDATE_TOPOLOGY, FAKE_HOLD, 0, NULL);
	ck_assert_int_eq(pthread_create(&t, NULL, release_after_probes, &before), 0);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	pthread_join(t, NULL);
}
END_TEST

/* ---- a process that knows an agent, and has no communicator that is connected */

static pcclResult_t ask(int what)
{
	void *p;

	return what == 0 ? pcclMemAlloc(1000, &p) : pcclConnect(fx_comm);
}

/* What has died by the hello is no agent yet. */
static void *answer_at_last(void *arg)
{
	unsigned before = *(const unsigned *)arg;

	fake_await_seen(fx_agent, WL_HELLO, before + 4);
	fake_script(fx_agent, WL_HELLO, FAKE_ANSWER, 0, NULL);
	return NULL;
}

START_TEST(calls_before_connect_wait_as_well)
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

START_TEST(but_no_longer_than_others)
{
	uint64_t begin;
	void *p;

	fx_comm = fx_new_comm();
	setenv("PCCL_AGENT_LEASE_MS", "300", 1);
	fx_assert_succeeds(pcclMemAlloc(5000, &p));
	fake_stop(fx_agent);
	begin = cc_now_ns();
	fx_assert_fails(ask(_i), pcclAgentUnavailable, "did not come back within 300 ms");
	ck_assert_uint_ge(cc_now_ns() - begin, 300000000u); /* all of it */
	/* Now there is none, as before the first one. */
	setenv("PCCL_AGENT_LEASE_MS", "1000000", 1);
	fx_assert_fails(ask(_i), pcclAgentUnavailable, "PCCL_AGENT_SOCKET");
	fx_agent = fake_start(fx_socket);
	fx_assert_succeeds(ask(_i));
	fx_assert_succeeds(pcclMemFree(p));
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
}
END_TEST

/* Each is there, and dies of the question. */
START_TEST(agents_that_die_of_it_are_not_asked_for_ever)
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

/* ... or of the memory that it is to adopt, or does not understand that. */
START_TEST(nor_those_that_come_and_die)
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

/* Not that there is none, which is true as well. */
START_TEST(all_who_wait_hear_what_they_waited_for)
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

/* Whatever the communicator has at the agent: nothing, or what a connect that failed has left. The
 * bound is longer than the test's. */
START_TEST(giving_back_needs_no_agent)
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
	if (_i / 2) { /* somebody else waits for it */
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

/* The reason may say already what is to be done. */
START_TEST(advice_comes_once)
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
	tcase_add_test(tc, the_same_peer_again);
	tcase_add_test(tc, the_address_of_the_master);
	tcase_add_test(tc, the_address_of_the_master_outlives_a_loss);
	tcase_add_loop_test(tc, calls_are_made_again, 0, 4);
	tcase_add_test(tc, agents_that_die_in_a_row);
	tcase_add_loop_test(tc, attach_is_refused, 0, 2);
	tcase_add_loop_test(tc, kicked_before, 0, 2);
	tcase_add_loop_test(tc, told_by_an_operation, 0, 2);
	tcase_add_test(tc, told_by_a_goodbye);
	tcase_add_test(tc, goodbyes_are_taken_seriously);
	tcase_add_test(tc, an_agent_that_ends_orderly);
	tcase_add_loop_test(tc, nobody_comes_back, 0, 2);
	tcase_add_loop_test(tc, a_stopped_agent_does_not_hold_calls, 0, 4);
	tcase_add_test(tc, a_long_vote_is_no_silence);
	tcase_add_loop_test(tc, advice_comes_once, 0, 3);
	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(bare, fx_setup_agent, fx_teardown_agent);
	tcase_set_timeout(bare, 60);
	tcase_add_loop_test(bare, calls_before_connect_wait_as_well, 0, 2);
	tcase_add_loop_test(bare, but_no_longer_than_others, 0, 2);
	tcase_add_loop_test(bare, agents_that_die_of_it_are_not_asked_for_ever, 0, 2);
	tcase_add_loop_test(bare, nor_those_that_come_and_die, 0, 4);
	tcase_add_test(bare, all_who_wait_hear_what_they_waited_for);
	tcase_add_loop_test(bare, giving_back_needs_no_agent, 0, 4);
	suite_add_tcase(s, bare);
	return s;
}
