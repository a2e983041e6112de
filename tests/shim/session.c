/* SPDX-License-Identifier: MIT
 *
 * The session with the agent: the search for the agent, requests and replies, and all errors of the
 * session.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/shim/buffers.h"
#include "tests/shim/suites.h"

/* ---- without an agent ---- */

START_TEST(nothing_works_before_init)
{
	pcclCommCreateParams_t params = fx_params();
#ifdef HAVE_CUDA
	const bool cuda = true;
#else
	const bool cuda = false;
#endif
	pcclBuildInfo_t info = {!cuda};
	pcclComm_t *c = NULL;
	void *p;

	fx_assert_fails(pcclCreateCommunicator(&params, &c), pcclNotInitialized, "pcclInit");
	fx_assert_fails(pcclMemAlloc(1, &p), pcclNotInitialized, "pcclInit");
	ck_assert_ptr_null(c);
	fx_assert_succeeds(pcclGetBuildInfo(&info));
	ck_assert(info.has_cuda_support == cuda);
	ck_assert_str_ne(pcclGetVersion(), "");
	fx_assert_succeeds(pcclInit());
	fx_assert_succeeds(pcclInit());
	fx_assert_succeeds(pcclCreateCommunicator(&params, &c));
	if (!cuda)
		fx_assert_fails(pcclSetStream(c, &params), pcclInternalError,
			"without CUDA: configure it with --with-cuda");
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

START_TEST(every_code_has_a_text)
{
	for (int i = 0; i <= 12; i++)
		ck_assert_str_ne(pcclGetErrorString((pcclResult_t)i), "unknown result code");
	for (int i = pcclAgentUnavailable; i <= pcclInterrupted; i++)
		ck_assert_str_ne(pcclGetErrorString((pcclResult_t)i), "unknown result code");
	ck_assert_str_eq(pcclGetErrorString((pcclResult_t)13), "unknown result code");
	ck_assert_str_eq(
		pcclGetErrorString((pcclResult_t)(pcclInterrupted + 1)), "unknown result code");
	ck_assert_str_eq(pcclGetErrorString((pcclResult_t)-1), "unknown result code");
}
END_TEST

START_TEST(creation_checks_its_arguments)
{
	pcclCommCreateParams_t params = fx_params();
	pcclComm_t *c = NULL;
	int value;

	fx_assert_succeeds(pcclInit());
	fx_assert_fails(pcclCreateCommunicator(NULL, &c), pcclInvalidArgument, "params");
	fx_assert_fails(pcclCreateCommunicator(&params, NULL), pcclInvalidArgument, "comm_out");
	params.p2p_connection_pool_size = 65;
	fx_assert_fails(pcclCreateCommunicator(&params, &c), pcclInvalidArgument, "64");
	params = fx_params();
	params.master_address.port = 0;
	fx_assert_fails(pcclCreateCommunicator(&params, &c), pcclInvalidArgument, "port");
	params = fx_params();
	params.master_address.inet.protocol = (ccoip_inet_protocol_t)7;
	fx_assert_fails(pcclCreateCommunicator(&params, &c), pcclInvalidArgument, "protocol");
	params.master_address.inet = (ccoip_inet_address_t){
		.protocol = inetIPv6, .ipv6 = {.data = {0xfe, 0x80, [15] = 1}}};
	fx_assert_fails(pcclCreateCommunicator(&params, &c), pcclInvalidArgument, "[fe80::1]:");
	fx_assert_fails(pcclCreateCommunicator(&params, &c), pcclInvalidArgument,
		"link-local addresses (fe80::/10) cannot be used");
	fx_assert_fails(pcclConnect(NULL), pcclInvalidArgument, "NULL");
	fx_assert_fails(pcclDestroyCommunicator((pcclComm_t *)&params), pcclInvalidArgument,
		"not a communicator");
	c = fx_new_comm();
	fx_assert_fails(pcclGetAttribute(c, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &value),
		pcclInvalidUsage, "pcclConnect");
	fx_assert_fails(pcclGetAttribute(c, (pcclAttribute_t)0, &value), pcclInvalidArgument, "0");
	fx_assert_fails(pcclGetAttribute(c, (pcclAttribute_t)5, &value), pcclInvalidArgument, "5");
	fx_assert_fails(pcclUpdateTopology(c), pcclInvalidUsage, "pcclConnect");
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

START_TEST(optimizing_the_topology_requires_a_connection)
{
	pcclComm_t *c;

	fx_assert_succeeds(pcclInit());
	c = fx_new_comm();
	fx_assert_fails(pcclOptimizeTopology(NULL), pcclInvalidArgument, "NULL");
	fx_assert_fails(pcclOptimizeTopology(c), pcclInvalidUsage, "pcclConnect");
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

START_TEST(only_the_named_agent_is_tried)
{
	pcclComm_t *c;
	void *p;

	fx_make_dir();
	setenv("PCCL_AGENT_SOCKET", fx_socket, 1);
	fx_assert_succeeds(pcclInit());
	c = fx_new_comm();
	fx_assert_fails(pcclConnect(c), pcclAgentUnavailable, fx_socket);
	fx_assert_fails(pcclMemAlloc(1, &p), pcclAgentUnavailable, "PCCL_AGENT_SOCKET");
	/* When the agent is there, the same call succeeds. */
	fx_agent = fake_start(fx_socket);
	fx_assert_succeeds(pcclConnect(c));
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	fx_teardown_agent();
}
END_TEST

/* ---- with an agent ---- */

static unsigned open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

START_TEST(a_communicator_can_be_connected_used_and_destroyed)
{
	unsigned before;
	bool pending = false;
	pcclComm_t *c;
	int value = 0;
	void *p;

	/* The session begins with the first call that needs it. */
	fx_assert_succeeds(pcclMemAlloc(1, &p));
	fx_assert_succeeds(pcclMemFree(p));
	before = open_descriptors();
	c = fx_new_comm();
	fx_assert_succeeds(pcclConnect(c));
	fx_assert_fails(pcclConnect(c), pcclInvalidUsage, "already");
	fx_assert_succeeds(pcclUpdateTopology(c));
	fx_assert_succeeds(pcclArePeersPending(c, &pending));
	ck_assert(pending);
	pending = false;
	fx_assert_succeeds(pcclAreNewPeersPending(c, &pending));
	ck_assert(pending);
	fx_assert_fails(pcclArePeersPending(c, NULL), pcclInvalidArgument, "peers_pending_out");
	fake_view(fx_agent, (struct wire_view){.view_id = 9, 5, 3, 2, 4});
	fx_assert_succeeds(pcclUpdateTopology(c));
	fx_assert_succeeds(pcclGetAttribute(c, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &value));
	ck_assert_int_eq(value, 5);
	fx_assert_succeeds(pcclGetAttribute(c, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &value));
	ck_assert_int_eq(value, 3);
	fx_assert_succeeds(pcclGetAttribute(c, PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS, &value));
	ck_assert_int_eq(value, 2);
	fx_assert_succeeds(
		pcclGetAttribute(c, PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE, &value));
	ck_assert_int_eq(value, 4);
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	ck_assert_uint_eq(fake_accepted(fx_agent), 1);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_HELLO), 1);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_COMM_DESTROY), 1);
	ck_assert(fake_last(fx_agent, WL_COMM_DESTROY).until_left);
	/* The fake agent's own three descriptors of the queue pair are still open. */
	ck_assert_uint_eq(open_descriptors(), before + 3);
}
END_TEST

START_TEST(a_version_mismatch_names_the_versions)
{
	pcclComm_t *c = fx_new_comm();

	fake_script(fx_agent, WL_HELLO, FAKE_REFUSE, pcclVersionMismatch, "no");
	fx_assert_fails(pcclConnect(c), pcclVersionMismatch, "versions 2 to 2");
	fx_assert_fails(pcclConnect(c), pcclVersionMismatch, "5 to 7");
	fake_script(fx_agent, WL_HELLO, FAKE_ANSWER, 0, NULL);
	fake_script(fx_agent, WL_COMM_CREATE, FAKE_BAD_QUEUE, 0, NULL);
	fx_assert_fails(pcclConnect(c), pcclVersionMismatch, "queue pairs of version");
	fake_script(fx_agent, WL_COMM_CREATE, FAKE_ANSWER, 0, NULL);
	fx_assert_succeeds(pcclConnect(c));
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

START_TEST(refusals_of_the_agent_are_returned)
{
	pcclComm_t *c = fx_new_comm();
	bool flag;

	fake_script(fx_agent, WL_HELLO, FAKE_REFUSE, pcclPermissionDenied, "not you");
	fx_assert_fails(pcclConnect(c), pcclPermissionDenied, "not you");
	fake_script(fx_agent, WL_HELLO, FAKE_ANSWER, 0, NULL);
	fake_script(fx_agent, WL_COMM_CREATE, FAKE_REFUSE, pcclOutOfMemory, "1024 communicators");
	fx_assert_fails(pcclConnect(c), pcclOutOfMemory, "1024 communicators");
	fake_script(fx_agent, WL_COMM_CREATE, FAKE_ANSWER, 0, NULL);
	fake_script(fx_agent, WL_COMM_CONNECT, FAKE_REFUSE, pcclMasterConnectionFailed, "refused");
	fx_assert_fails(pcclConnect(c), pcclMasterConnectionFailed, "refused");
	fake_script(fx_agent, WL_COMM_CONNECT, FAKE_ANSWER, 0, NULL);
	fx_assert_succeeds(pcclConnect(c));
	fake_script(
		fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), FAKE_REFUSE, pcclUpdateTopologyFailed, NULL);
	fx_assert_fails(pcclUpdateTopology(c), pcclUpdateTopologyFailed, "no reason");
	fake_script(fx_agent, FAKE_VOTE(WIRE_PENDING), FAKE_REFUSE, pcclRankConnectionLost, "gone");
	fx_assert_fails(pcclArePeersPending(c, &flag), pcclRankConnectionLost, "gone");
	/* The agent has made one communicator, however often the connect was tried. It refused the
	 * other request. */
	ck_assert_uint_eq(fake_seen(fx_agent, WL_COMM_CREATE), 2);
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

static pcclResult_t some_call(pcclComm_t *c, int which)
{
	uint64_t buf = 0;
	pcclReduceDescriptor_t d = bf_descriptor(sizeof buf, 1);
	pcclReduceOpDescriptor_t several = {.sendbuf = &buf, .recvbuf = &buf, .descriptor = d};
	pcclAsyncReduceOp_t h;
	bool flag;
	int value;

	switch (which) {
	case 0:
		return pcclGetAttribute(c, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &value);
	case 1:
		return pcclUpdateTopology(c);
	case 2:
		return pcclArePeersPending(c, &flag);
	case 3:
		return pcclAllReduce(&buf, &buf, &d, c, NULL);
	case 4:
		return pcclAllReduceAsync(&buf, &buf, &d, c, &h);
	case 6:
		return pcclOptimizeTopology(c);
	default:
		return pcclAllReduceMultipleWithRetry(&several, 1, c, NULL, 1);
	}
}

static unsigned times_in(const char *text, const char *word)
{
	unsigned n = 0;

	for (text = strstr(text, word); text; text = strstr(text + 1, word))
		n++;
	return n;
}

/* Returns the code of this call. The first topology vote has a code of its own, as in PCCL 1.0. */
static pcclResult_t code_of(int which, uint32_t code, bool *voted)
{
	bool vote = which == 1 || which == 6, first = vote && !*voted;

	*voted = *voted || vote;
	if (!first || code == pcclMasterConnectionFailed)
		return (pcclResult_t)code;
	return which == 1 ? pcclUpdateTopologyFailed : pcclTopologyOptimizationFailed;
}

/* The first call gets the reason. Later calls get a permanent code, so that no program repeats them
 * for ever. */
START_TEST(calls_report_that_the_peer_was_removed_from_the_run)
{
	static const uint32_t codes[] = {pcclRankConnectionLost, pcclMasterConnectionFailed};
	static const char *const texts[] = {
		"kicked: revision 7 skips 6", "kicked: call pcclConnect again"};
	uint32_t code = codes[_i % 2], later = _i % 2 ? code : (uint32_t)pcclInvalidUsage;
	pcclComm_t *c = fx_new_comm();
	int first = _i / 4;

	for (unsigned round = 0; round < 2; round++) {
		bool voted = false;

		fx_assert_succeeds(pcclConnect(c));
		fake_lose(fx_agent, code, texts[_i / 2 % 2]);
		if (first == 0) /* this call only reads what is known already */
			fx_assert_succeeds(some_call(c, 0));
		/* The call with retry repeats a lost operation by itself, so it gets the later
		 * code. */
		fx_assert_fails(some_call(c, first ? first : 1),
			code_of(first ? first : 1, first != 5 ? code : later, &voted), "kicked");
		ck_assert_uint_eq(times_in(pcclGetLastError(), "pcclConnect"), 1);
		for (int i = 0; i < 7; i++) {
			fx_assert_fails(some_call(c, i), code_of(i, later, &voted), "kicked");
			ck_assert_uint_eq(times_in(pcclGetLastError(), "pcclConnect"), 1);
		}
	}
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

START_TEST(a_lease_that_is_not_a_number_is_refused)
{
	static const char *const bad[] = {"30s", "-1", "2147483648", " 5", "99999999999999999999"},
				 *const name[] = {"PCCL_AGENT_GRACE_MS", "PCCL_AGENT_LEASE_MS"};
	pcclComm_t *c = fx_new_comm();
	char words[160];
	void *p;

	for (int i = 0; i < 2; i++) { /* first the old name alone, then both */
		setenv(name[i], bad[_i], 1);
		snprintf(words, sizeof words,
			"%s is \"%s\", it must be a number of milliseconds from 0 to 2147483647",
			name[i], bad[_i]);
		fx_assert_fails(pcclConnect(c), pcclInvalidUsage, words);
		fx_assert_fails(pcclMemAlloc(1, &p), pcclInvalidUsage, words);
	}
	setenv("PCCL_AGENT_LEASE_MS", "2147483647", 1);
	fx_assert_succeeds(pcclConnect(c));
	setenv("PCCL_AGENT_LEASE_MS", "", 1);
	fx_assert_succeeds(pcclMemAlloc(1, &p));
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

static const enum fake_action endings[] = {FAKE_HANG_UP, FAKE_GOODBYE, FAKE_GARBAGE, FAKE_STRANGER};

/* The session ends at each stage and in each way. A later pcclConnect starts a new session. */
START_TEST(calls_fail_if_the_session_ends_while_they_wait)
{
	enum fake_action end = endings[_i];
	const char *words = end == FAKE_GOODBYE    ? "shutting down"
			    : end == FAKE_GARBAGE  ? "malformed"
			    : end == FAKE_STRANGER ? "was not made"
						   : "closed";
	const enum wl_type at_connect[] = {WL_HELLO, WL_COMM_CREATE, WL_COMM_CONNECT};
	pcclComm_t *c = fx_new_comm();
	unsigned accepted = 0;
	bool flag;
	void *p;

	setenv("PCCL_AGENT_LEASE_MS", "0", 1);
	for (unsigned i = 0; i < 3; i++) {
		fake_script(fx_agent, at_connect[i], end, pcclAgentUnavailable, "shutting down");
		fx_assert_fails(pcclConnect(c), pcclAgentUnavailable, words);
		/* If an agent ends the session before it has answered the hello, the library tries
		 * once more, because a new agent may have started. */
		accepted +=
			at_connect[i] == WL_HELLO && (end == FAKE_HANG_UP || end == FAKE_GOODBYE)
				? 2
				: 1;
		ck_assert_uint_eq(fake_accepted(fx_agent), accepted);
		fake_script(fx_agent, at_connect[i], FAKE_ANSWER, 0, NULL);
	}
	fx_assert_succeeds(pcclConnect(c));
	fake_script(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), end, pcclAgentUnavailable, "shutting down");
	fx_assert_fails(pcclUpdateTopology(c), pcclAgentUnavailable, words);
	fx_assert_fails(pcclUpdateTopology(c), pcclAgentUnavailable, words);
	fx_assert_succeeds(pcclConnect(c));
	fake_script(fx_agent, FAKE_VOTE(WIRE_PENDING), end, pcclAgentUnavailable, "shutting down");
	fx_assert_fails(pcclArePeersPending(c, &flag), pcclAgentUnavailable, words);
	fx_assert_succeeds(pcclConnect(c));
	fake_script(fx_agent, WL_REGION_ALLOC, end, pcclAgentUnavailable, "shutting down");
	fx_assert_fails(pcclMemAlloc(100, &p), pcclAgentUnavailable, words);
	fake_script(fx_agent, WL_REGION_ALLOC, FAKE_ANSWER, 0, NULL);
	fx_assert_succeeds(pcclMemAlloc(100, &p));
	fx_assert_succeeds(pcclMemFree(p));
	fake_script(fx_agent, WL_COMM_DESTROY, end, pcclAgentUnavailable, "shutting down");
	fx_assert_succeeds(pcclConnect(c));
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

START_TEST(an_agent_that_restarts_is_found_again)
{
	pcclComm_t *c = fx_new_comm();
	int value;
	void *p;

	fx_assert_succeeds(pcclConnect(c));
	fx_assert_succeeds(pcclMemAlloc(5000, &p));
	memset(p, 7, 5000);
	fake_stop(fx_agent);
	/* Without an agent, attributes stay as they were. */
	fx_assert_succeeds(pcclGetAttribute(c, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &value));
	fx_agent = fake_start(fx_socket);
	fx_assert_succeeds(pcclUpdateTopology(c));
	fx_assert_fails(pcclConnect(c), pcclInvalidUsage, "already");
	ck_assert_uint_eq(fake_seen(fx_agent, WL_COMM_CONNECT), 0);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_COMM_ATTACH), 1);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_ADOPT), 1);
	ck_assert_int_eq(((char *)p)[4999], 7);
	fx_assert_succeeds(pcclMemFree(p));
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_FREE), 1);
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

START_TEST(descriptors_must_be_as_expected)
{
	pcclComm_t *c = fx_new_comm();
	unsigned before;
	void *p;

	fx_assert_succeeds(pcclConnect(c));
	before = open_descriptors();
	fake_script(fx_agent, WL_REGION_ALLOC, FAKE_NO_FDS, 0, NULL);
	fx_assert_fails(pcclMemAlloc(100, &p), pcclInternalError, "descriptors");
	fake_script(fx_agent, WL_REGION_ALLOC, FAKE_MORE_FDS, 0, NULL);
	fx_assert_fails(pcclMemAlloc(100, &p), pcclInternalError, "descriptors");
	fake_script(fx_agent, WL_REGION_ALLOC, FAKE_UNSEALED, 0, NULL);
	fx_assert_fails(pcclMemAlloc(100, &p), pcclInternalError, "mapped");
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_FREE), 1);
	/* The agent still has two regions. The freed region is closed. */
	ck_assert_uint_eq(open_descriptors(), before + 2);
	/* This answer carries more descriptors than any message may carry. */
	fake_script(fx_agent, WL_COMM_CREATE, FAKE_MORE_FDS, 0, NULL);
	fx_comm = fx_new_comm();
	fx_assert_fails(pcclConnect(fx_comm), pcclAgentUnavailable, "descriptors");
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

/* ---- several threads ---- */

static void *connect_and_vote(void *arg)
{
	pcclComm_t *c = fx_new_comm();
	uintptr_t failed = pcclConnect(c) != pcclSuccess;

	(void)arg;
	for (int i = 0; i < 200 && !failed; i++)
		failed = pcclUpdateTopology(c) != pcclSuccess;
	return (void *)(uintptr_t)(failed || pcclDestroyCommunicator(c) != pcclSuccess);
}

START_TEST(threads_share_the_connection)
{
	enum { THREADS = 6 };
	pthread_t t[THREADS];
	void *failed;

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, connect_and_vote, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], &failed);
		ck_assert_ptr_null(failed);
	}
	ck_assert_uint_eq(fake_accepted(fx_agent), 1);
	ck_assert_uint_eq(fake_seen(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY)), (size_t)200 * THREADS);
}
END_TEST

/* A peer in its own thread, which votes when all peers are connected. */
static void *vote(void *arg)
{
	pcclComm_t *c = fx_new_comm();
	pcclResult_t r = pcclConnect(c);

	pthread_barrier_wait(arg);
	if (r == pcclSuccess)
		r = pcclUpdateTopology(c);
	if (pcclDestroyCommunicator(c) != pcclSuccess)
		return (void *)(uintptr_t)-1;
	return (void *)(uintptr_t)r;
}

/* One thread waits for a vote, and requests of other threads go on. Held answers come in another
 * order. */
START_TEST(a_long_wait_does_not_delay_other_threads)
{
	enum { THREADS = 4 };
	pcclComm_t *other = fx_new_comm();
	pthread_barrier_t ready;
	pthread_t t[THREADS];
	bool flag;
	void *r;

	pthread_barrier_init(&ready, NULL, THREADS);
	fx_assert_succeeds(pcclConnect(other));
	fake_script(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), FAKE_HOLD, 0, NULL);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, vote, &ready), 0);
	fake_await_seen(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), THREADS);
	for (int i = 0; i < 100; i++)
		fx_assert_succeeds(pcclArePeersPending(other, &flag));
	fake_release(fx_agent);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], &r);
		ck_assert_ptr_null(r);
	}
	fx_assert_succeeds(pcclDestroyCommunicator(other));
}
END_TEST

START_TEST(the_end_of_the_session_wakes_all_waiting_threads)
{
	enum { THREADS = 4 };
	pthread_barrier_t ready;
	pthread_t t[THREADS];
	void *r;

	setenv("PCCL_AGENT_LEASE_MS", "0", 1);
	pthread_barrier_init(&ready, NULL, THREADS);
	fake_script(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), FAKE_HOLD, 0, NULL);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, vote, &ready), 0);
	fake_await_seen(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), THREADS);
	fake_hang_up(fx_agent);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], &r);
		ck_assert_uint_eq((uintptr_t)r, pcclAgentUnavailable);
	}
}
END_TEST

/* ---- the thread of a communicator ---- */

static void *use_as_another(void *arg)
{
	pcclSharedState_t state = {0};
	int value = 0;
	bool flag;

	fx_assert_fails(pcclUpdateTopology(arg), pcclInvalidUsage,
		"pcclUpdateTopology must be called by the communicator's main thread");
	fx_assert_fails(pcclArePeersPending(arg, &flag), pcclInvalidUsage, "main thread");
	fx_assert_fails(pcclAreNewPeersPending(arg, &flag), pcclInvalidUsage, "main thread");
	fx_assert_fails(pcclOptimizeTopology(arg), pcclInvalidUsage, "main thread");
	fx_assert_fails(pcclSynchronizeSharedState(
				arg, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL),
		pcclInvalidUsage, "main thread");
	fx_assert_fails(pcclConnect(arg), pcclInvalidUsage, "connected already");
	fx_assert_succeeds(pcclGetAttribute(arg, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &value));
	ck_assert_int_eq(value, 2);
	return NULL;
}

START_TEST(a_communicator_belongs_to_the_thread_that_connected_it)
{
	pcclComm_t *c = fx_new_comm();
	pthread_t t;

	fx_assert_succeeds(pcclConnect(c));
	ck_assert_int_eq(pthread_create(&t, NULL, use_as_another, c), 0);
	pthread_join(t, NULL);
	fx_assert_succeeds(pcclUpdateTopology(c));
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

static void *connect_here(void *arg)
{
	fx_assert_succeeds(pcclConnect(arg));
	fx_assert_succeeds(pcclUpdateTopology(arg));
	return NULL;
}

static void *destroy(void *arg)
{
	fx_assert_succeeds(pcclDestroyCommunicator(arg));
	return NULL;
}

/* As in PCCL 1.0, one thread may create a communicator, another thread may use it, and a third may
 * destroy it. */
START_TEST(any_thread_may_connect_and_destroy)
{
	pcclComm_t *c = fx_new_comm();
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, connect_here, c), 0);
	pthread_join(t, NULL);
	fx_assert_fails(pcclUpdateTopology(c), pcclInvalidUsage, "main thread");
	ck_assert_int_eq(pthread_create(&t, NULL, destroy, c), 0);
	pthread_join(t, NULL);
	fake_await_seen(fx_agent, WL_COMM_DESTROY, 1);
}
END_TEST

START_TEST(a_communicator_cannot_be_destroyed_during_a_call)
{
	pcclComm_t *c = fx_new_comm();
	pthread_t t;

	fake_script(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), FAKE_HOLD, 0, NULL);
	ck_assert_int_eq(pthread_create(&t, NULL, connect_here, c), 0);
	fake_await_seen(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), 1);
	fx_assert_fails(pcclDestroyCommunicator(c), pcclInvalidUsage, "another thread");
	fx_assert_fails(pcclConnect(c), pcclInvalidUsage, "pcclUpdateTopology is in progress");
	fake_release(fx_agent);
	pthread_join(t, NULL);
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

START_TEST(optimizing_is_a_vote)
{
	pcclComm_t *c = fx_new_comm();

	fx_assert_succeeds(pcclConnect(c));
	fx_assert_succeeds(pcclOptimizeTopology(c));
	ck_assert_uint_eq(fake_seen(fx_agent, FAKE_VOTE(WIRE_OPTIMIZE)), 1);
	fake_view(fx_agent, (struct wire_view){9, 1, 1, 1, 1});
	fx_assert_succeeds(pcclUpdateTopology(c));
	fx_assert_fails(pcclOptimizeTopology(c), pcclInvalidUsage, "one peer");
	fake_lose(fx_agent, pcclInvalidUsage, "kicked");
	fx_assert_fails(pcclUpdateTopology(c), pcclUpdateTopologyFailed, "kicked");
	fx_assert_fails(pcclOptimizeTopology(c), pcclInvalidUsage, "kicked");
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

START_TEST(after_a_failed_optimization_only_its_repetition_is_allowed)
{
	static const char only[] = "repeat it before any other call";
	pcclComm_t *c = fx_new_comm();
	bool flag;

	fx_assert_succeeds(pcclConnect(c));
	fake_not_optimized(fx_agent, "host b was lost");
	fx_assert_fails(pcclOptimizeTopology(c), pcclTopologyOptimizationFailed, "host b was lost");
	fx_assert_fails(pcclUpdateTopology(c), pcclInvalidUsage, only);
	fx_assert_fails(pcclArePeersPending(c, &flag), pcclInvalidUsage, only);
	fx_assert_fails(pcclOptimizeTopology(c), pcclTopologyOptimizationFailed, "host b was lost");
	fake_not_optimized(fx_agent, NULL);
	fx_assert_succeeds(pcclOptimizeTopology(c));
	fx_assert_succeeds(pcclUpdateTopology(c));
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

START_TEST(a_peer_that_is_alone_need_not_repeat_a_failed_optimization)
{
	pcclComm_t *c = fx_new_comm();

	fx_assert_succeeds(pcclConnect(c));
	fake_not_optimized(fx_agent, "host b was lost");
	fake_view(fx_agent, (struct wire_view){9, 1, 1, 1, 1});
	fx_assert_fails(pcclOptimizeTopology(c), pcclTopologyOptimizationFailed, "host b was lost");
	fx_assert_succeeds(pcclUpdateTopology(c));
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

/* The next agent learns which ballots the peer has seen. */
START_TEST(ballots_are_known_to_the_next_agent)
{
	pcclComm_t *c = fx_new_comm();
	struct wl_request q;
	bool flag;

	fx_assert_succeeds(pcclConnect(c));
	q = fake_last(fx_agent, WL_COMM_CONNECT);
	ck_assert(!cc_id_is_zero(&q.peer) && !cc_id_is_zero(&q.token));
	for (unsigned i = 0; i < 3; i++)
		fx_assert_succeeds(pcclUpdateTopology(c));
	fx_assert_succeeds(pcclArePeersPending(c, &flag));
	ck_assert(flag);
	fake_script(
		fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), FAKE_REFUSE, pcclUpdateTopologyFailed, "no");
	fx_assert_fails(pcclUpdateTopology(c), pcclUpdateTopologyFailed, "no");
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	q = fake_last(fx_agent, WL_COMM_ATTACH);
	ck_assert_uint_eq(q.ballots[WIRE_TOPOLOGY], 6);
	ck_assert_uint_eq(q.ballots[WIRE_PENDING], 3);
	ck_assert_uint_eq(q.ballots[WIRE_OPTIMIZE], 0);
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

/* ---- fork ---- */

#ifdef __SANITIZE_THREAD__
/* The child starts a thread, too, which ThreadSanitizer does not allow by default. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}
#endif

static unsigned open_sockets(void)
{
	char path[64];
	unsigned n = 0;
	struct stat st;

	for (int fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		n += stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
	}
	return n;
}

/* Runs the checks in the child. Returns the number of the first check that fails. */
static int in_child(pcclComm_t *parents, void *parents_memory, unsigned sockets)
{
	pcclComm_t *c = NULL;
	int value;
	void *p;

	if (open_sockets() != sockets - 1)
		return 1;
	if (pcclGetAttribute(parents, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &value) != pcclInvalidUsage)
		return 2;
	if (pcclMemAlloc(1, &p) != pcclInvalidUsage)
		return 3;
	if (pcclInit() != pcclSuccess)
		return 4;
	if (pcclUpdateTopology(parents) != pcclInvalidUsage)
		return 5;
	if (pcclDestroyCommunicator(parents) != pcclInvalidUsage)
		return 6;
	if (pcclMemFree(parents_memory) != pcclInvalidArgument)
		return 7;
	c = fx_new_comm();
	if (pcclConnect(c) != pcclSuccess || pcclUpdateTopology(c) != pcclSuccess)
		return 8;
	return pcclDestroyCommunicator(c) == pcclSuccess ? 0 : 9;
}

START_TEST(a_forked_child_has_no_session_or_communicator)
{
	pcclComm_t *c = fx_new_comm();
	unsigned sockets;
	int status;
	pid_t pid;
	void *p;

	fx_assert_succeeds(pcclConnect(c));
	fx_assert_succeeds(pcclMemAlloc(1, &p));
	sockets = open_sockets();
	pid = fork();
	if (pid == 0)
		_exit(in_child(c, p, sockets));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	fx_assert_succeeds(pcclUpdateTopology(c));
	fx_assert_succeeds(pcclMemFree(p));
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	ck_assert_uint_eq(fake_accepted(fx_agent), 2);
}
END_TEST

static bool beats(int beat)
{
	char c = 0;

	return send(beat, &c, 1, MSG_NOSIGNAL) == 1 && recv(beat, &c, 1, 0) == 1;
}

/* The process waits in a call that is answered only after this beat. */
static void *beats_while_waiting(void *arg)
{
	int *beat = arg;
	bool fine;

	fake_await_seen(fx_agent, FAKE_VOTE(WIRE_PENDING), 1);
	fine = beats(*beat);
	fake_release(fx_agent);
	return fine ? arg : NULL;
}

/* The beat thread answers whatever the other threads do, also after a fork. The child inherits
 * neither the thread nor its channel. */
START_TEST(a_thread_answers_beats)
{
	pcclComm_t *c = fx_new_comm();
	int beat = fake_beat(fx_agent), status;
	pthread_t thread;
	bool pending;
	void *fine;
	char end;
	pid_t pid;

	fx_assert_succeeds(pcclConnect(c));
	for (int i = 0; i < 3; i++)
		ck_assert(beats(beat));
	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	fake_script(fx_agent, FAKE_VOTE(WIRE_PENDING), FAKE_HOLD, 0, NULL);
	ck_assert_int_eq(pthread_create(&thread, NULL, beats_while_waiting, &beat), 0);
	fx_assert_succeeds(pcclArePeersPending(c, &pending));
	ck_assert_int_eq(pthread_join(thread, &fine), 0);
	ck_assert_ptr_nonnull(fine);
	/* the agent is gone, and the child does not hold the other end open */
	shutdown(beat, SHUT_WR);
	ck_assert_int_eq(recv(beat, &end, 1, 0), 0);
	close(beat);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	fx_assert_succeeds(pcclDestroyCommunicator(c));
}
END_TEST

Suite *session_suite(void)
{
	Suite *s = suite_create("session");
	TCase *none = tcase_create("no agent"), *tc = tcase_create("agent");

	tcase_add_test(none, nothing_works_before_init);
	tcase_add_test(none, every_code_has_a_text);
	tcase_add_test(none, creation_checks_its_arguments);
	tcase_add_test(none, optimizing_the_topology_requires_a_connection);
	tcase_add_test(none, only_the_named_agent_is_tried);
	suite_add_tcase(s, none);
	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, fx_setup_agent, fx_teardown_agent);
	tcase_add_test(tc, a_communicator_can_be_connected_used_and_destroyed);
	tcase_add_test(tc, a_version_mismatch_names_the_versions);
	tcase_add_test(tc, refusals_of_the_agent_are_returned);
	tcase_add_loop_test(tc, calls_report_that_the_peer_was_removed_from_the_run, 0, 28);
	tcase_add_loop_test(tc, a_lease_that_is_not_a_number_is_refused, 0, 5);
	tcase_add_loop_test(tc, calls_fail_if_the_session_ends_while_they_wait, 0, 4);
	tcase_add_test(tc, an_agent_that_restarts_is_found_again);
	tcase_add_test(tc, descriptors_must_be_as_expected);
	tcase_add_test(tc, threads_share_the_connection);
	tcase_add_test(tc, a_long_wait_does_not_delay_other_threads);
	tcase_add_test(tc, the_end_of_the_session_wakes_all_waiting_threads);
	tcase_add_test(tc, a_communicator_belongs_to_the_thread_that_connected_it);
	tcase_add_test(tc, any_thread_may_connect_and_destroy);
	tcase_add_test(tc, a_communicator_cannot_be_destroyed_during_a_call);
	tcase_add_test(tc, optimizing_is_a_vote);
	tcase_add_test(tc, after_a_failed_optimization_only_its_repetition_is_allowed);
	tcase_add_test(tc, a_peer_that_is_alone_need_not_repeat_a_failed_optimization);
	tcase_add_test(tc, ballots_are_known_to_the_next_agent);
	tcase_add_test(tc, a_thread_answers_beats);
	tcase_add_test(tc, a_forked_child_has_no_session_or_communicator);
	suite_add_tcase(s, tc);
	return s;
}
