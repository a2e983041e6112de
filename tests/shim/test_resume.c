/* SPDX-License-Identifier: MIT
 *
 * The agent dies and another one takes its place: communicators are attached again as the peers
 * that they were, calls that were under way go on or fail with pcclRankConnectionLost, and what
 * nobody brings back ends within PCCL_AGENT_GRACE_MS.
 */
#include <pthread.h>
#include <sched.h>

#include "common/cc_sys.h"
#include "tests/shim/buffers.h"

enum { BYTES = 100000, SEGMENT = CC_PLAN_SEGMENT_MIN };

static void serve_next(struct buffers *b, uint64_t tag, uint64_t losses)
{
	pcclAsyncReduceOp_t h = bf_launch(b, tag);
	struct fake_op op = fake_take(fx_agent);

	ck_assert_uint_eq(op.sqe.losses, losses);
	fake_serve(&op, bf_mode(b->placement));
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(b);
}

/* All of the result is there, but nobody says so. */
static void play_whole(struct fake_op *op, enum shm_result_mode mode)
{
	fake_begin(op, mode, 3, SEGMENT);
	fake_await_input(op, op->bytes);
	for (uint32_t i = 0; i < op->plan.n_segs; i++)
		fake_segment(op, i);
}

/* The result regions of the first slots are mapped from now on, and large enough. */
static void warm(enum placement p)
{
	struct buffers b = bf_new(p, BYTES + 1000, 99);

	serve_next(&b, 99, 0);
	bf_free(&b);
}

/* The environment is read by calls that may need an agent. */
static void set_grace(const char *ms)
{
	setenv("PCCL_AGENT_GRACE_MS", ms, 1);
	fx_assert_fails(pcclConnect(fx_comm), pcclInvalidUsage, "already");
}

/* ---- being the same peer */

START_TEST(the_same_peer_again)
{
	struct wl_request connect = fake_last(fx_agent, WL_COMM_CONNECT), attach;
	struct buffers b = bf_new(REGISTERED_IN_PLACE, BYTES, 1);

	fake_losses(fx_agent, 3);
	/* No call is needed for it. */
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	attach = fake_last(fx_agent, WL_COMM_ATTACH);
	ck_assert(cc_id_eq(&attach.peer, &connect.peer));
	ck_assert(cc_id_eq(&attach.token, &connect.token));
	ck_assert_uint_eq(attach.run.b[0], 1);
	ck_assert_uint_eq(attach.losses, 0);
	ck_assert_uint_eq(attach.n_seqs, 0);
	ck_assert_uint_eq(attach.master.port, 48148);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_ADOPT), 1);
	/* This application was told of no loss: its next operation will be refused, once. */
	serve_next(&b, 1, 0);
	bf_free(&b);
}
END_TEST

/* Who was told that the operation is lost knows of the loss, whenever that was. */
START_TEST(a_loss_is_known_once)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclAsyncReduceOp_t h = bf_launch(&b, 1);

	fake_take(fx_agent);
	fake_losses(fx_agent, 1);
	fake_hang_up(fx_agent);
	if (_i == 0)
		fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost, "died");
	serve_next(&b, 1, 1);
	bf_free(&b);
}
END_TEST

struct launch {
	struct buffers *b;
	_Atomic pid_t tid;
};

static void *launch_and_await(void *arg)
{
	struct launch *l = arg;
	pcclAsyncReduceOp_t h;

	l->tid = gettid();
	h = bf_launch(l->b, 1);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	return NULL;
}

static void await_asleep(pid_t tid)
{
	char path[64], text[256], state = 0;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
	while (state != 'S') {
		FILE *f = fopen(path, "r");

		ck_assert_ptr_nonnull(f);
		ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
		state = strrchr(text, ')')[2];
		fclose(f);
		sched_yield();
	}
}

/* The call is repeated before the next agent has said how many losses go with the death. */
START_TEST(a_loss_is_known_to_those_who_hurry)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclAsyncReduceOp_t h = bf_launch(&b, 1);
	struct launch again = {.b = &b};
	struct fake_op op;
	pthread_t t;

	fake_take(fx_agent);
	fake_losses(fx_agent, 1);
	fake_script(fx_agent, WL_COMM_ATTACH, FAKE_HOLD, 0, NULL);
	fake_hang_up(fx_agent);
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost, "died");
	ck_assert_int_eq(pthread_create(&t, NULL, launch_and_await, &again), 0);
	while (!again.tid)
		sched_yield();
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	await_asleep(again.tid);
	fake_release(fx_agent);
	op = fake_take(fx_agent);
	ck_assert_uint_eq(op.sqe.losses, 1);
	fake_serve(&op, bf_mode(b.placement));
	pthread_join(t, NULL);
	bf_assert_result(&b);
	bf_free(&b);
}
END_TEST

START_TEST(results_of_which_the_others_know)
{
	enum placement p = (enum placement)_i;
	struct buffers b, other;
	pcclAsyncReduceOp_t h, lost;
	pcclReduceInfo_t info = {0};
	struct fake_op op;

	warm(p);
	b = bf_new(p, BYTES, 1);
	other = bf_new(STAGED_IN_PLACE, BYTES, 2);
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	lost = bf_launch(&other, 2);
	fake_take(fx_agent);
	play_whole(&op, bf_mode(p));
	fake_outcome(fx_agent, op.seq);
	fake_hang_up(fx_agent);
	fx_assert_fails(pcclAwaitAsyncReduce(&lost, NULL), pcclRankConnectionLost, "died");
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, &info));
	ck_assert_uint_eq(info.local_world_size, 2);
	ck_assert_uint_eq(fake_last(fx_agent, WL_COMM_ATTACH).seqs[0], op.seq);
	bf_assert_result(&b);
	bf_assert_untouched(&other);
	bf_free(&b);
	bf_free(&other);
}
END_TEST

/* Nobody has looked at the socket between the beginning of the operation and the agent's death,
 * which may be in the middle of a request; other regions are on their way as well. */
START_TEST(results_that_were_handed_over)
{
	enum placement p = (enum placement)(_i / 4);
	struct buffers b = bf_new(p, BYTES, 1), other = bf_new(p, BYTES, 2);
	pcclAsyncReduceOp_t h = bf_launch(&b, 1), second = bf_launch(&other, 2);
	struct fake_op op = fake_take(fx_agent), part = fake_take(fx_agent);

	fake_begin(&part, bf_mode(p), 3, SEGMENT);
	fake_await_input(&part, part.bytes);
	fake_segment(&part, 0);
	play_whole(&op, bf_mode(p));
	if (_i % 2 == 0)
		fake_outcome(fx_agent, op.seq);
	else
		fake_end(&op, 0, NULL);
	if (_i / 2 % 2 == 0)
		fake_hang_up(fx_agent);
	else
		fake_goodbye(fx_agent, pcclAgentUnavailable, "ending");
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	fx_assert_fails(pcclAwaitAsyncReduce(&second, NULL), pcclRankConnectionLost, "died");
	bf_assert_result(&b);
	bf_assert_untouched(&other);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_MAP), 0);
	bf_free(&b);
	bf_free(&other);
}
END_TEST

static unsigned mappings_of(const char *name)
{
	char line[512];
	unsigned n = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f))
		n += strstr(line, name) != NULL;
	fclose(f);
	return n;
}

/* What is handed over and never taken goes with the communicator. */
START_TEST(results_that_nobody_takes)
{
	struct buffers b = bf_new(STAGED, BYTES, 1);
	pcclComm_t *c = fx_new_comm();
	pcclReduceDescriptor_t d = bf_descriptor(BYTES, 1);
	pcclAsyncReduceOp_t h;
	unsigned before;

	fx_assert_succeeds(pcclConnect(c));
	before = mappings_of("region");
	for (unsigned i = 0; i < 10; i++) {
		struct fake_op op;

		d.tag = i;
		fx_assert_succeeds(pcclAllReduceAsync(b.send, b.recv, &d, c, &h));
		op = fake_take(fx_agent);
		fake_begin(&op, SHM_RESULT_AREA, 3, SEGMENT);
	}
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	ck_assert_uint_ge(mappings_of("region"), before + 10 + 10); /* the agent's own as well */
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	ck_assert_uint_le(mappings_of("region"), before + 10 + 10);
	bf_free(&b);
}
END_TEST

/* The others have the result, and this process has no way to it: it must not go on as their peer.
 */
START_TEST(results_that_are_lost)
{
	struct buffers b = bf_new(STAGED, BYTES, 1), other = bf_new(STAGED, BYTES, 2);
	struct cc_id before = fake_last(fx_agent, WL_COMM_CONNECT).peer, after;
	pcclAsyncReduceOp_t h = bf_launch(&b, 1), second = bf_launch(&other, 2);
	struct fake_op op = fake_take(fx_agent);

	fake_asked(fx_agent);
	play_whole(&op, SHM_RESULT_AREA);
	if (_i == 0)
		fake_outcome(fx_agent, op.seq);
	else
		fake_end(&op, 0, NULL);
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost, "all others have");
	bf_assert_untouched(&b);
	ck_assert_int_eq(pcclAwaitAsyncReduce(&second, NULL), pcclRankConnectionLost);
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclInvalidUsage, "no longer part");
	fake_await_seen(fx_agent, WL_COMM_DESTROY, 1);
	fx_assert_succeeds(pcclConnect(fx_comm));
	after = fake_last(fx_agent, WL_COMM_CONNECT).peer;
	ck_assert(!cc_id_eq(&before, &after));
	serve_next(&b, 1, 0);
	bf_free(&b);
	bf_free(&other);
}
END_TEST

/* ---- control calls */

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
	ck_assert_uint_eq(first.topo_turn, second.topo_turn);
	ck_assert_uint_eq(first.pending_turn, second.pending_turn);
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
	serve_next(&b, 1, 0);
	bf_free(&b);
}
END_TEST

/* In doubt over two deaths. */
START_TEST(doubts_outlive_agents)
{
	struct buffers b;
	pcclAsyncReduceOp_t h;
	struct fake_op op;

	warm(STAGED_IN_PLACE);
	b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	play_whole(&op, SHM_RESULT_AREA);
	fake_outcome(fx_agent, op.seq);
	fake_script(fx_agent, WL_COMM_ATTACH, FAKE_HOLD, 0, NULL);
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	fake_script(fx_agent, WL_COMM_ATTACH, FAKE_ANSWER, 0, NULL);
	fake_hang_up(fx_agent);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	ck_assert_uint_eq(fake_last(fx_agent, WL_COMM_ATTACH).seqs[0], op.seq);
	bf_assert_result(&b);
	bf_free(&b);
}
END_TEST

/* Others ask for it, too, if nobody but us was told before the master died: we have to say that we
 * know. What is in doubt comes first. */
START_TEST(successes_are_told)
{
	struct buffers b, other, third;
	pcclAsyncReduceOp_t h, unseen, doubt;
	struct fake_op op, ended, whole;
	struct wl_request q;

	for (unsigned i = 0; i < 70; i++)
		warm(STAGED_IN_PLACE);
	b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	other = bf_new(STAGED_IN_PLACE, BYTES, 2);
	third = bf_new(STAGED_IN_PLACE, BYTES, 3);
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	unseen = bf_launch(&other, 2);
	ended = fake_take(fx_agent);
	doubt = bf_launch(&third, 3);
	whole = fake_take(fx_agent);
	fake_serve(&op, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	fake_end(&ended, pcclRankConnectionLost, "lost");
	play_whole(&whole, SHM_RESULT_AREA);
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	q = fake_last(fx_agent, WL_COMM_ATTACH);
	ck_assert_uint_eq(q.n_seqs, WL_SEQS_MAX);
	ck_assert_uint_eq(q.seqs[0], whole.seq);
	ck_assert_uint_eq(q.seqs[1], op.seq);
	for (unsigned i = 2; i < WL_SEQS_MAX; i++)
		ck_assert_uint_eq(q.seqs[i], op.seq + 1 - i);
	/* Nobody answers for them; that changes nothing. */
	fx_assert_fails(pcclAwaitAsyncReduce(&unseen, NULL), pcclRankConnectionLost, "lost");
	fx_assert_fails(pcclAwaitAsyncReduce(&doubt, NULL), pcclRankConnectionLost, "died");
	bf_assert_result(&b);
	bf_free(&b);
	bf_free(&other);
	bf_free(&third);
}
END_TEST

/* Also one that the application has not awaited yet, and over several deaths. */
START_TEST(successes_are_told_unawaited)
{
	struct buffers b;
	pcclAsyncReduceOp_t h;
	struct fake_op op;
	struct wl_request q;

	warm(STAGED_IN_PLACE);
	b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	play_whole(&op, SHM_RESULT_AREA);
	if (_i == 0)
		fake_end(&op, 0, NULL);
	else
		fake_outcome(fx_agent, op.seq);
	for (unsigned i = 1; i <= 2; i++) {
		fake_hang_up(fx_agent);
		fake_await_seen(fx_agent, WL_COMM_ATTACH, i);
		/* The answer has been taken when this returns. */
		fx_assert_succeeds(pcclArePeersPending(fx_comm, &(bool){false}));
		q = fake_last(fx_agent, WL_COMM_ATTACH);
		ck_assert_uint_eq(q.n_seqs, 2);
		ck_assert_uint_eq(q.seqs[0], op.seq);
		ck_assert_uint_eq(q.seqs[1], op.seq - 1);
	}
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(&b);
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

	warm(STAGED_IN_PLACE);
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	play_whole(&op, SHM_RESULT_AREA);
	fake_script(fx_agent, WL_COMM_ATTACH, FAKE_REFUSE, code, "declared lost 7 s ago");
	fake_hang_up(fx_agent);
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), code, "declared lost 7 s ago");
	bf_assert_untouched(&b);
	/* From then on it is of no use to call again. */
	code = _i == 0 ? pcclInvalidUsage : code;
	fx_assert_fails(pcclAllReduce(b.send, b.recv, &d, fx_comm, NULL), code, "declared lost");
	fx_assert_fails(pcclUpdateTopology(fx_comm), code, "pcclConnect");
	fx_assert_succeeds(pcclConnect(fx_comm));
	serve_next(&b, 1, 0);
	bf_free(&b);
}
END_TEST

/* Removed from the run before the agent died: that remains the reason, and nobody else is asked. */
START_TEST(kicked_before)
{
	uint32_t code = _i == 0 ? pcclRankConnectionLost : pcclMasterConnectionFailed;

	fake_lose(fx_agent, code, "kicked: revision 7 skips 6");
	fake_hang_up(fx_agent);
	fx_assert_fails(pcclUpdateTopology(fx_comm), code, "revision 7 skips 6");
	fx_assert_fails(pcclUpdateTopology(fx_comm), _i == 0 ? pcclInvalidUsage : code,
		"revision 7 skips 6");
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
	if (_i == 1)
		fx_assert_fails(pcclUpdateTopology(fx_comm), pcclRankConnectionLost, "kicked");
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
	serve_next(&b, 1, 0);
	bf_free(&b);
}
END_TEST

START_TEST(goodbyes_are_taken_seriously)
{
	fake_script(fx_agent, WL_UPDATE_TOPOLOGY, FAKE_GOODBYE, pcclRankConnectionLost,
		"stopped for 10 s");
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclRankConnectionLost, "stopped for 10 s");
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

	set_grace("300");
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
	ck_assert_uint_lt(cc_now_ns() - begin, 20000000000u);
	bf_assert_untouched(&b);
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclAgentUnavailable, "pcclConnect");
	fx_assert_fails(pcclGetAttribute(fx_comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &value),
		pcclAgentUnavailable, "pcclConnect");
	fx_assert_fails(pcclConnect(fx_comm), pcclAgentUnavailable, fx_socket);
	fx_agent = fake_start(fx_socket);
	fx_assert_succeeds(pcclConnect(fx_comm));
	serve_next(&b, 1, 0);
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

	setenv("PCCL_AGENT_GRACE_MS", "400", 1);
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
	serve_next(&b, 1, 0);
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

	set_grace("1000");
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	fake_script(fx_agent, WL_UPDATE_TOPOLOGY, FAKE_HOLD, 0, NULL);
	ck_assert_int_eq(pthread_create(&t, NULL, release_after_probes, &before), 0);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	pthread_join(t, NULL);
}
END_TEST

/* ---- destroying */

START_TEST(destroyed_while_detached)
{
	struct buffers b[PLACEMENTS];

	for (unsigned i = 0; i < PLACEMENTS; i++) {
		struct fake_op op;

		b[i] = bf_new((enum placement)i, BYTES, i);
		warm((enum placement)i);
		bf_launch(&b[i], i);
		op = fake_take(fx_agent);
		play_whole(&op, bf_mode((enum placement)i));
	}
	fake_script(fx_agent, WL_COMM_ATTACH, FAKE_HOLD, 0, NULL);
	fake_hang_up(fx_agent);
	if (_i == 0)
		fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	for (unsigned i = 0; i < PLACEMENTS; i++)
		bf_assert_untouched(&b[i]);
	if (_i == 0) {
		/* What the agent made for it meanwhile is given back. */
		fake_release(fx_agent);
		fake_await_seen(fx_agent, WL_COMM_DESTROY, 1);
	}
	for (unsigned i = 0; i < PLACEMENTS; i++)
		bf_free(&b[i]);
	fx_comm = fx_new_comm();
}
END_TEST

/* ---- everything at once */

enum { THREADS = 4, ROUNDS = 40, DEATHS = 25 };

/* Serves what comes, dies every now and then in the middle of something. */
static void *mortal_agent(void *arg)
{
	struct tl_rng rng = tl_rng_new(77);
	unsigned deaths = 0;

	(void)arg;
	for (;;) {
		struct fake_op op = fake_take(fx_agent);
		enum shm_result_mode mode = op.out ? SHM_RESULT_UNDO : SHM_RESULT_AREA;

		if (op.sqe.tag == UINT64_MAX) {
			fake_serve(&op, mode);
			return NULL;
		}
		if (deaths == DEATHS || tl_range(&rng, 0, 5) > 0) {
			fake_serve(&op, mode);
			continue;
		}
		deaths++;
		fake_begin(&op, mode, 3, SEGMENT);
		if (tl_range(&rng, 0, 1)) {
			fake_await_input(&op, op.bytes);
			for (uint32_t i = 0; i < op.plan.n_segs; i += 2)
				fake_segment(&op, i);
		}
		fake_hang_up(fx_agent);
	}
}

static void *persistent_peer(void *arg)
{
	unsigned salt = (unsigned)(uintptr_t)arg;
	pcclComm_t *c = fx_new_comm();
	bool flag;

	fx_assert_succeeds(pcclConnect(c));
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct buffers b =
			bf_new((enum placement)((i + salt) % PLACEMENTS), 20000 + 997 * i, i);
		pcclReduceDescriptor_t d = bf_descriptor(b.bytes, i);
		pcclResult_t r;

		while ((r = pcclAllReduce(b.send, b.recv, &d, c, NULL)) != pcclSuccess) {
			bf_assert_untouched(&b);
			ck_assert_msg(r == pcclRankConnectionLost &&
					      !strstr(pcclGetLastError(), "all others"),
				"%d: %s", (int)r, pcclGetLastError());
		}
		bf_assert_result(&b);
		bf_free(&b);
		if (i % 5 == salt) {
			fx_assert_succeeds(pcclUpdateTopology(c));
			fx_assert_succeeds(pcclArePeersPending(c, &flag));
		}
	}
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	return NULL;
}

START_TEST(threads_survive_many_deaths)
{
	struct buffers b = bf_new(STAGED, 100, 1);
	pcclReduceDescriptor_t d = bf_descriptor(100, UINT64_MAX);
	pthread_t agent, t[THREADS];

	ck_assert_int_eq(pthread_create(&agent, NULL, mortal_agent, NULL), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, persistent_peer, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	fx_assert_succeeds(pcclAllReduce(b.send, b.recv, &d, fx_comm, NULL));
	pthread_join(agent, NULL);
	bf_free(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("resume");
	TCase *tc = tcase_create("resume");

	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, the_same_peer_again);
	tcase_add_loop_test(tc, a_loss_is_known_once, 0, 2);
	tcase_add_test(tc, a_loss_is_known_to_those_who_hurry);
	tcase_add_loop_test(tc, results_of_which_the_others_know, 0, PLACEMENTS);
	tcase_add_loop_test(tc, results_that_were_handed_over, 0, 4 * PLACEMENTS);
	tcase_add_test(tc, results_that_nobody_takes);
	tcase_add_loop_test(tc, results_that_are_lost, 0, 2);
	tcase_add_loop_test(tc, calls_are_made_again, 0, 4);
	tcase_add_test(tc, agents_that_die_in_a_row);
	tcase_add_test(tc, doubts_outlive_agents);
	tcase_add_test(tc, successes_are_told);
	tcase_add_loop_test(tc, successes_are_told_unawaited, 0, 2);
	tcase_add_loop_test(tc, attach_is_refused, 0, 2);
	tcase_add_loop_test(tc, kicked_before, 0, 2);
	tcase_add_loop_test(tc, told_by_an_operation, 0, 2);
	tcase_add_test(tc, told_by_a_goodbye);
	tcase_add_test(tc, goodbyes_are_taken_seriously);
	tcase_add_test(tc, an_agent_that_ends_orderly);
	tcase_add_loop_test(tc, nobody_comes_back, 0, 2);
	tcase_add_loop_test(tc, a_stopped_agent_does_not_hold_calls, 0, 4);
	tcase_add_test(tc, a_long_vote_is_no_silence);
	tcase_add_loop_test(tc, destroyed_while_detached, 0, 2);
	tcase_add_test(tc, threads_survive_many_deaths);
	suite_add_tcase(s, tc);
	return tl_run(s);
}
