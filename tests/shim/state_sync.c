/* SPDX-License-Identifier: MIT
 *
 * pcclSynchronizeSharedState: the agent's commands, and all ways in which the call ends, also with
 * agents that die or lie.
 */
#include <sched.h>

#include "tests/shim/state.h"
#include "tests/shim/suites.h"

/* ---- commands */

/* Reads and replaces every byte of each tensor that is compared. arg: a copy of the contents. (The
 * agent's thread must not look at the tensors themselves.) */
static void read_and_write_all(struct fake_op *op, void *arg)
{
	const struct st_state *s = arg;
	uint32_t slot = 0;

	fake_sync_begin(op);
	for (uint32_t i = 0; i < TENSORS; i++) {
		for (uint64_t off = 0; i != MINE && off < s->bytes[i]; off += SHM_STATE_SLOT) {
			uint64_t left = s->bytes[i] - off;
			uint32_t len = left < SHM_STATE_SLOT ? (uint32_t)left : SHM_STATE_SLOT;
			uint8_t *window;

			slot = (slot + 7) % SHM_STATE_SLOTS;
			window = fake_window(op, slot);
			fake_command(op, SHM_STATE_READ, slot, i, off, len);
			ck_assert_uint_eq(fake_await_acks(op), slot);
			ck_assert_int_eq(memcmp(window, s->data[i] + off, len), 0);
			for (uint32_t k = 0; k < len; k++)
				window[k] ^= FAKE_XOR;
			fake_command(op, SHM_STATE_WRITE, slot, i, off, len);
			ck_assert_uint_eq(fake_await_acks(op), slot);
		}
	}
	fake_complete(op, 7);
	fake_sync_end(op, 0, NULL, 7, 11, 22);
}

static void assert_data(const struct st_state *s, const struct st_state *old, uint8_t change)
{
	for (unsigned i = 0; i < TENSORS; i++)
		for (uint64_t k = 0; k < s->bytes[i]; k++)
			if (s->data[i][k] != (old->data[i][k] ^ (i == MINE ? 0 : change)))
				ck_abort_msg("byte %llu of tensor %u is wrong",
					(unsigned long long)k, i);
}

START_TEST(all_tensors_are_read_and_written)
{
	pcclSharedStateSyncInfo_t info = {0};
	struct st_state s, old;

	st_init(&s, 1);
	st_init(&old, 1);
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, &info, read_and_write_all, &old));
	ck_assert_uint_eq(info.tx_bytes, 11);
	ck_assert_uint_eq(info.rx_bytes, 22);
	assert_data(&s, &old, FAKE_XOR);
	st_free(&s);
	st_free(&old);
}
END_TEST

/* Gives as many commands at a time as there are slots, again and again, and does not wait for
 * each. */
static void stream(struct fake_op *op, void *arg)
{
	(void)arg;
	fake_sync_begin(op);
	for (uint32_t round = 0; round < 50; round++) {
		for (uint32_t i = 0; i < SHM_STATE_SLOTS; i++) {
			memset(fake_window(op, i), (int)(round + i), 10);
			fake_command(op, SHM_STATE_WRITE, i, WIDER, 100 + 10 * i, 10);
		}
		fake_await_acks(op);
		fake_command(op, SHM_STATE_READ, 3, WIDER, 100, 10 * SHM_STATE_SLOTS);
		fake_await_acks(op);
		for (uint32_t i = 0; i < 10 * SHM_STATE_SLOTS; i++)
			ck_assert_uint_eq(fake_window(op, 3)[i], (round + i / 10) % 256);
	}
	fake_sync_end(op, 0, NULL, 7, 0, 0);
}

START_TEST(a_stream_of_commands_is_carried_out)
{
	struct st_state s;

	st_init(&s, 1);
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, stream, NULL));
	st_free(&s);
}
END_TEST

/* The shim is asleep before each command, and the command must wake it. */
static void drip(struct fake_op *op, void *arg)
{
	(void)arg;
	fake_sync_begin(op);
	for (uint32_t i = 0; i < 20; i++) {
		while (atomic_load(&op->slot->wait) != SHM_WAIT_COMMANDS)
			sched_yield();
		fake_command(op, SHM_STATE_READ, i % SHM_STATE_SLOTS, BIAS, 0, 1);
		fake_await_acks(op);
	}
	fake_sync_end(op, 0, NULL, 7, 0, 0);
}

START_TEST(commands_wake_the_shim)
{
	struct st_state s;

	st_init(&s, 1);
	fx_assert_succeeds(st_sync(&s.shared, ST_SEND, NULL, drip, NULL));
	st_free(&s);
}
END_TEST

static const struct lie {
	pcclSharedStateSyncStrategy_t strategy;
	struct shm_state_command c;
	const char *words;
} lies[] = {
	{ST_POPULAR, {SHM_STATE_READ, 0, TENSORS, 1, 0, 0, 0, {0}}, "no such tensor"},
	{ST_POPULAR, {SHM_STATE_WRITE, 0, UINT32_MAX, 1, 0, 0, 0, {0}}, "no such tensor"},
	{ST_POPULAR, {SHM_STATE_READ, 0, EMPTY, 1, 0, 0, 0, {0}}, "does not fit"},
	{ST_POPULAR, {SHM_STATE_READ, SHM_STATE_SLOTS, WIDE, 1, 0, 0, 0, {0}}, "does not fit"},
	{ST_POPULAR, {SHM_STATE_WRITE, 0, WIDE, 0, 0, 0, 0, {0}}, "does not fit"},
	{ST_POPULAR, {SHM_STATE_WRITE, 0, WIDE, SHM_STATE_SLOT + 1, 0, 0, 0, {0}}, "does not fit"},
	{ST_POPULAR, {SHM_STATE_WRITE, 0, WIDE, 10, 399991, 0, 0, {0}}, "does not fit"},
	{ST_POPULAR, {SHM_STATE_WRITE, 0, WIDE, 10, UINT64_MAX - 5, 0, 0, {0}}, "does not fit"},
	{ST_POPULAR, {0, 0, WIDE, 10, 0, 0, 0, {0}}, "does not fit"},
	{ST_POPULAR, {3, 0, WIDE, 10, 0, 0, 0, {0}}, "does not fit"},
	{ST_POPULAR, {SHM_STATE_READ, 0, WIDE, 10, 0, 1, 0, {0}}, "does not fit"},
	{ST_POPULAR, {SHM_STATE_READ, 0, MINE, 10, 0, 0, 0, {0}}, "may differ"},
	{ST_RECEIVE, {SHM_STATE_WRITE, 0, MINE, 10, 0, 0, 0, {0}}, "may differ"},
	{ST_SEND, {SHM_STATE_WRITE, 0, WIDE, 10, 0, 0, 0, {0}}, "send-only"},
	{ST_RECEIVE, {SHM_STATE_READ, 0, WIDE, 10, 0, 0, 0, {0}}, "receive-only"},
};

static void lie(struct fake_op *op, void *arg)
{
	const struct lie *l = arg;

	fake_sync_begin(op);
	for (uint32_t i = 0; i < SHM_STATE_SLOTS; i++)
		memset(fake_window(op, i), 0x77, SHM_STATE_SLOT);
	fake_give(op, &l->c);
}

/* A command that an agent must not give is not carried out. The peer loses its membership, and
 * nothing else. */
START_TEST(forbidden_commands_are_not_carried_out)
{
	const struct lie *l = &lies[_i];
	struct st_state s, old;

	st_init(&s, 1);
	st_init(&old, 1);
	fx_assert_fails(st_sync(&s.shared, l->strategy, NULL, lie, (void *)(uintptr_t)l),
		pcclInternalError, l->words);
	ck_assert_ptr_nonnull(strstr(pcclGetLastError(), "please report it"));
	assert_data(&s, &old, 0);
	fake_await_seen(fx_agent, WL_COMM_DESTROY, 1);
	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s.shared, ST_POPULAR, NULL),
		pcclInvalidUsage, "no longer part");
	fx_assert_succeeds(pcclConnect(fx_comm));
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, st_equal, NULL));
	st_free(&s);
	st_free(&old);
}
END_TEST

/* ---- the end */

static void bring_up_to_date(struct fake_op *op, void *arg)
{
	(void)arg;
	fake_sync_begin(op);
	fake_view(fx_agent, (struct wire_view){.view_id = 9, 5, 4, 2, 4});
	fake_sync_end(op, 0, NULL, 13, 0, 4096);
}

START_TEST(the_revision_is_written_back)
{
	pcclSharedStateSyncInfo_t info = {0};
	struct st_state s;
	int world_size;

	st_init(&s, 1);
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, &info, bring_up_to_date, NULL));
	ck_assert_uint_eq(s.shared.revision, 13);
	ck_assert_uint_eq(info.rx_bytes, 4096);
	fx_assert_succeeds(
		pcclGetAttribute(fx_comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &world_size));
	ck_assert_int_eq(world_size, 5);
	st_free(&s);
}
END_TEST

struct ending {
	uint32_t code, written; /* by a command, in bytes */
	uint64_t rx;
	const char *text;
};

static void end_badly(struct fake_op *op, void *arg)
{
	const struct ending *e = arg;

	fake_sync_begin(op);
	if (e->written > 0) {
		fake_command(op, SHM_STATE_WRITE, 1, WIDE, 0, e->written);
		fake_await_acks(op);
	}
	if (e->rx > 0)
		fake_touch(op);
	if (e->code == pcclInvalidUsage)
		fake_lose(fx_agent, e->code, e->text);
	fake_generation(fx_agent, 4);
	fake_sync_end(op, e->code, e->text, 13, 5, e->rx);
}

static pcclResult_t fail_with(
	struct st_state *s, pcclSharedStateSyncStrategy_t strategy, struct ending e)
{
	pcclSharedStateSyncInfo_t info = {1, 2};
	pcclResult_t r = st_sync(&s->shared, strategy, &info, end_badly, &e);

	ck_assert_uint_eq(s->shared.revision, 7);
	ck_assert_uint_eq(info.tx_bytes, 1);
	ck_assert_uint_eq(info.rx_bytes, 2);
	return r;
}

#define SPOILED "may have been written in part"

static bool says_spoiled(void)
{
	return strstr(pcclGetLastError(), SPOILED) != NULL;
}

START_TEST(failures_are_returned_with_code_and_text)
{
	static const uint32_t codes[] = {pcclRankConnectionLost, pcclMasterConnectionFailed,
		pcclInvalidArgument, pcclInternalError, 4711};
	struct st_state s;

	st_init(&s, 1);
	for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
		fx_assert_fails(fail_with(&s, ST_POPULAR, (struct ending){codes[i], 0, 0, "why"}),
			codes[i] == 4711 ? pcclInternalError : (pcclResult_t)codes[i], "why");
		ck_assert(!says_spoiled());
	}
	st_free(&s);
}
END_TEST

/* A send-only peer is never written to, whatever the agent reports. Other peers learn of a partial
 * write. */
START_TEST(a_failure_reports_partly_written_tensors)
{
	struct st_state s;

	st_init(&s, 1);
	fail_with(&s, ST_RECEIVE, (struct ending){pcclRankConnectionLost, 100, 0, "lost"});
	ck_assert(says_spoiled());
	fail_with(&s, ST_POPULAR, (struct ending){pcclRankConnectionLost, 0, 100, "lost"});
	ck_assert(says_spoiled());
	fail_with(&s, ST_SEND, (struct ending){pcclRankConnectionLost, 0, 100, "lost"});
	ck_assert(!says_spoiled());
	st_free(&s);
}
END_TEST

static void check_generation(struct fake_op *op, void *arg)
{
	ck_assert_uint_eq(op->sqe.generation, *(uint64_t *)arg);
	st_equal(op, NULL);
}

START_TEST(a_repeated_call_has_the_new_generation)
{
	struct st_state s;
	uint64_t generation = 0;

	st_init(&s, 1);
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, check_generation, &generation));
	fx_assert_fails(fail_with(&s, ST_POPULAR,
				(struct ending){pcclRankConnectionLost, 0, 0, "peer 3 died"}),
		pcclRankConnectionLost, "peer 3 died");
	generation = 4;
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, check_generation, &generation));
	st_free(&s);
}
END_TEST

START_TEST(a_kicked_peer_gets_the_reason)
{
	struct st_state s;

	st_init(&s, 1);
	fx_assert_fails(fail_with(&s, ST_POPULAR,
				(struct ending){pcclInvalidUsage, 0, 0,
					"REVISION_INCREMENT_VIOLATION: revision 7"}),
		pcclInvalidUsage, "REVISION_INCREMENT_VIOLATION: revision 7");
	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s.shared, ST_POPULAR, NULL),
		pcclInvalidUsage, "no longer part of the run: REVISION_INCREMENT_VIOLATION");
	fx_assert_succeeds(pcclConnect(fx_comm));
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, st_equal, NULL));
	st_free(&s);
}
END_TEST

/* ---- the agent dies */

enum stage { UNSEEN, STARTED, WRITTEN, COMPLETE, KNOWN, ENDED, STAGES, TOUCHED, READING, VOTED };

static void die_at(struct fake_op *op, void *arg)
{
	enum stage stage = *(enum stage *)arg;

	if (stage == READING || stage == VOTED) {
		fake_work(op, stage == READING);
		stage = UNSEEN;
	}
	if (stage >= STARTED)
		fake_sync_begin(op);
	if (stage == TOUCHED) {
		fake_touch(op);
		stage = STARTED;
	}
	if (stage >= WRITTEN) {
		fake_command(op, SHM_STATE_WRITE, 1, WIDE, 0, 1000);
		fake_await_acks(op);
	}
	if (stage >= COMPLETE)
		fake_complete(op, 13);
	if (stage == KNOWN)
		fake_outcome(fx_agent, op->seq);
	if (stage == ENDED)
		fake_sync_end(op, 0, NULL, 13, 5, 1000);
	fake_generation(fx_agent, 1);
	fake_hang_up(fx_agent);
}

/* A peer that was complete gets the outcome. Other peers repeat the call. */
START_TEST(a_death_of_the_agent_fails_incomplete_calls_only)
{
	enum stage stage = (enum stage)(_i % STAGES);
	pcclSharedStateSyncInfo_t info = {1, 2};
	uint64_t generation = 1;
	struct st_state s;
	pcclResult_t r;

	st_init(&s, 1);
	/* in the second half of the cases, the memory was used before */
	if (_i >= STAGES)
		fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, st_equal, NULL));
	r = st_sync(&s.shared, ST_POPULAR, &info, die_at, &stage);
	if (stage >= KNOWN) {
		ck_assert_msg(r == pcclSuccess, "%s", pcclGetLastError());
		ck_assert_uint_eq(s.shared.revision, 13);
		ck_assert_uint_eq(info.tx_bytes, stage == ENDED ? 5 : 0);
		ck_assert_uint_eq(info.rx_bytes, stage == ENDED ? 1000 : 0);
	} else {
		fx_assert_fails(r, pcclRankConnectionLost, "call again");
		ck_assert_int_eq(says_spoiled(), stage >= WRITTEN);
		ck_assert_uint_eq(s.shared.revision, 7);
		ck_assert_uint_eq(info.tx_bytes, 1);
		fx_assert_succeeds(
			st_sync(&s.shared, ST_POPULAR, NULL, check_generation, &generation));
	}
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	ck_assert_int_eq(fake_last(fx_agent, WL_COMM_ATTACH).n_seqs -
				 fake_last(fx_agent, WL_COMM_ATTACH).n_succeeded,
		stage == COMPLETE || stage == KNOWN);
	st_free(&s);
}
END_TEST

static void die_again(struct st_state *s, pcclSharedStateSyncStrategy_t how, enum stage stage)
{
	fx_assert_fails(st_sync(&s->shared, how, NULL, die_at, &stage), pcclRankConnectionLost,
		"call again");
}

/* Checks that the call fails because two agents have died during it. */
static void not_again(struct st_state *s, pcclSharedStateSyncStrategy_t how)
{
	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s->shared, how, NULL),
		pcclInternalError, "died twice");
}

/* The call is not tried at a third agent, wherever in their work the first two have died. */
START_TEST(a_call_that_killed_two_agents_is_not_tried_again)
{
	static const struct {
		enum stage stage;
		pcclSharedStateSyncStrategy_t how;
	} v[] = {{READING, ST_POPULAR}, {READING, ST_SEND}, {STARTED, ST_POPULAR},
		{STARTED, ST_RECEIVE}, {TOUCHED, ST_POPULAR}};
	struct st_state s;

	st_init(&s, 1);
	for (int i = 0; i < 2; i++)
		die_again(&s, v[_i].how, v[_i].stage);
	not_again(&s, v[_i].how);
	fx_assert_succeeds(st_sync(&s.shared, v[_i].how, NULL, st_equal, NULL));
	st_free(&s);
}
END_TEST

/* Agents die before they work on the call: they have begun nothing, or they wait for the votes of
 * others. These deaths are not due to the call. */
START_TEST(the_death_of_an_agent_that_only_waits_does_not_count)
{
	struct st_state s;

	st_init(&s, 1);
	for (int i = 0; i < 3; i++)
		die_again(&s, ST_POPULAR, _i ? VOTED : UNSEEN);
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, st_equal, NULL));
	st_free(&s);
}
END_TEST

/* If a program repeats a call that has killed two agents, the call kills only one more agent. */
START_TEST(a_repeated_call_kills_one_agent_at_a_time)
{
	struct st_state s;

	st_init(&s, 1);
	die_again(&s, ST_POPULAR, READING);
	for (int i = 0; i < 3; i++) {
		die_again(&s, ST_POPULAR, READING);
		not_again(&s, ST_POPULAR);
	}
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, st_equal, NULL));
	for (int i = 0; i < 2; i++)
		die_again(&s, ST_POPULAR, READING);
	not_again(&s, ST_POPULAR);
	st_free(&s);
}
END_TEST

/* The manifest says whether the agent has written into tensors without commands. */
START_TEST(writes_to_registered_memory_are_reported_after_a_death)
{
	enum stage stage = TOUCHED;
	struct st_state s;

	st_init(&s, 1);
	fx_assert_succeeds(pcclMemAlloc(24, &s.infos[st_order[BIAS]].data));
	st_sync(&s.shared, ST_SEND, NULL, die_at, &stage);
	ck_assert(!says_spoiled());
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	stage = _i ? TOUCHED : STARTED;
	fx_assert_fails(st_sync(&s.shared, ST_POPULAR, NULL, die_at, &stage),
		pcclRankConnectionLost, "call again");
	ck_assert_int_eq(says_spoiled(), _i);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 2);
	fx_assert_succeeds(pcclMemFree(s.infos[st_order[BIAS]].data));
	st_free(&s);
}
END_TEST

/* An agent that gives a wrong command is still alive and may be writing. */
START_TEST(an_agent_that_lied_may_have_written)
{
	const struct lie *l = &lies[0];
	struct st_state s;

	st_init(&s, 1);
	fx_assert_succeeds(pcclMemAlloc(24, &s.infos[st_order[BIAS]].data));
	fx_assert_fails(st_sync(&s.shared, l->strategy, NULL, lie, (void *)(uintptr_t)l),
		pcclInternalError, SPOILED);
	fx_assert_succeeds(pcclMemFree(s.infos[st_order[BIAS]].data));
	st_free(&s);
}
END_TEST

/* ---- torn state */

/* One synchronization: the values that the agent must get, and its actions. */
struct part {
	const char *name;
	uint32_t torn;  /* the value that the agent must get */
	uint32_t flags; /* the flags that the agent must get, unless 0 */
	uint32_t written, touched;
	bool complete, dies;
	uint32_t code;
};

static void play(struct fake_op *op, void *arg)
{
	const struct part *p = arg;

	ck_assert_msg(op->sqe.sync.torn == p->torn, "%s: torn is %u",
		p->name ? p->name : "once more", op->sqe.sync.torn);
	if (p->flags)
		ck_assert_uint_eq(op->sqe.flags, p->flags);
	fake_sync_begin(op);
	if (p->written > 0) {
		fake_command(op, SHM_STATE_WRITE, 1, WIDE, 0, p->written);
		fake_await_acks(op);
	}
	if (p->touched)
		fake_touch(op);
	if (p->complete)
		fake_complete(op, 7);
	if (p->dies)
		fake_hang_up(fx_agent);
	else
		fake_sync_end(op, p->code, "why", 7, 0, 0);
}

static void sync_part(struct st_state *s, pcclSharedStateSyncStrategy_t strategy, struct part p)
{
	static unsigned deaths;
	pcclResult_t r = st_sync(&s->shared, strategy, NULL, play, &p);

	ck_assert_int_eq(r, p.dies ? pcclRankConnectionLost : (pcclResult_t)p.code);
	if (p.dies)
		fake_await_seen(fx_agent, WL_COMM_ATTACH, ++deaths);
}

/* Torn state is reported whether the shim or the agent has written it. */
START_TEST(torn_state_is_reported_until_a_synchronization_succeeds)
{
	const uint32_t lost = pcclRankConnectionLost;
	struct st_state s;

	st_init(&s, 1);
	sync_part(&s, ST_POPULAR, (struct part){.torn = 0, .code = lost});
	sync_part(&s, ST_POPULAR, (struct part){.torn = 0, .written = 10, .code = lost});
	sync_part(&s, ST_POPULAR, (struct part){.torn = 1, .code = lost});
	sync_part(&s, ST_POPULAR, (struct part){.torn = 1, .dies = true});
	sync_part(&s, ST_RECEIVE, (struct part){.torn = 1});
	sync_part(&s, ST_RECEIVE, (struct part){.torn = 0, .touched = 1, .code = lost});
	sync_part(&s, ST_POPULAR, (struct part){.torn = 1, .written = 10});
	sync_part(&s, ST_POPULAR, (struct part){.torn = 0, .written = 10, .dies = true});
	sync_part(&s, ST_POPULAR, (struct part){.torn = 1});
	sync_part(&s, ST_POPULAR, (struct part){.torn = 0, .touched = 1, .dies = true});
	sync_part(&s, ST_POPULAR, (struct part){.torn = 1});
	sync_part(&s, ST_POPULAR, (struct part){.torn = 0});
	st_free(&s);
}
END_TEST

/* Every agent after the first success gets the flag SHM_SQE_SYNCED, even after a failure. */
START_TEST(later_votes_mention_a_past_success)
{
	const uint32_t none = SHM_SQE_SYNC, some = SHM_SQE_SYNC | SHM_SQE_SYNCED;
	struct part first = {.flags = none, .complete = true};
	struct st_state s;

	st_init(&s, 1);
	sync_part(&s, ST_POPULAR, (struct part){.flags = none, .dies = true});
	sync_part(&s, ST_POPULAR,
		(struct part){.flags = none, .complete = true, .code = pcclRankConnectionLost});
	sync_part(&s, ST_POPULAR, first);
	sync_part(&s, ST_POPULAR, (struct part){.flags = some, .dies = true});
	sync_part(&s, ST_POPULAR, (struct part){.flags = some, .code = pcclRankConnectionLost});
	sync_part(&s, ST_POPULAR, (struct part){.flags = some});
	st_free(&s);
}
END_TEST

/* Complete state is not torn either, even if other peers could not get the contents. */
START_TEST(state_that_was_not_written_in_part_is_not_torn)
{
	const uint32_t lost = pcclRankConnectionLost;
	struct part all = {.torn = 0, .written = 10, .touched = 1, .complete = true, .code = lost};
	struct st_state s;

	st_init(&s, 1);
	fx_assert_succeeds(pcclMemAlloc(24, &s.infos[st_order[BIAS]].data));
	sync_part(&s, ST_POPULAR, (struct part){.torn = 0, .dies = true});
	sync_part(&s, ST_POPULAR, (struct part){.torn = 0});
	sync_part(&s, ST_SEND, (struct part){.torn = 0, .touched = 1, .dies = true});
	sync_part(&s, ST_POPULAR, (struct part){.torn = 0, .complete = true, .code = lost});
	sync_part(&s, ST_POPULAR, all);
	sync_part(&s, ST_POPULAR, (struct part){.torn = 0, .written = 10, .code = lost});
	all.torn = 1;
	sync_part(&s, ST_POPULAR, all);
	sync_part(&s, ST_POPULAR, (struct part){.torn = 0});
	fx_assert_succeeds(pcclMemFree(s.infos[st_order[BIAS]].data));
	st_free(&s);
}
END_TEST

/* Calls of a program after a synchronization that left torn state at revision 7. */
static const struct after {
	const char *name;
	uint64_t revision;
	bool loads, copies, connects, creates, sends;
	uint32_t torn;
} afters[] = {
	{.name = "the program calls again", .revision = 7, .torn = 1},
	{.name = "the program only sends", .revision = 7, .sends = true, .torn = 1},
	{.name = "the program connects again", .revision = 7, .connects = true, .torn = 1},
	{.name = "the run was reset", .revision = 0, .connects = true, .torn = 1},
	{.name = "the program raises the revision", .revision = 8, .torn = 1},
	{.name = "the program has a new communicator", .revision = 7, .creates = true, .torn = 1},
	{.name = "the program has a new communicator in a new run",
		.revision = 0,
		.creates = true,
		.torn = 1},
	{.name = "the program uses other memory", .revision = 8, .copies = true, .torn = 1},
	{.name = "the program loads the same revision", .revision = 7, .loads = true, .torn = 1},
	{.name = "the program loads an older revision", .revision = 6, .loads = true},
	{.name = "the program loads a newer revision", .revision = 8, .loads = true},
	{.name = "the program loads a checkpoint after a reset",
		.revision = 0,
		.loads = true,
		.connects = true},
	{.name = "the program loads for a new communicator",
		.revision = 7,
		.loads = true,
		.creates = true},
};

static void connect_again(const struct st_state *s, bool creates)
{
	pcclSharedState_t shared = s->shared;

	fake_lose(fx_agent, pcclRankConnectionLost, "kicked");
	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &shared, ST_POPULAR, NULL),
		pcclRankConnectionLost, "kicked");
	if (creates) {
		fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
		fx_comm = fx_new_comm();
	}
	fx_assert_succeeds(pcclConnect(fx_comm));
}

static void take_other_memory(struct st_state *s)
{
	for (unsigned i = 0; i < TENSORS; i++) {
		uint8_t *copy = malloc(s->bytes[i] + 1);

		ck_assert_ptr_nonnull(copy);
		if (s->data[i])
			memcpy(copy, s->data[i], s->bytes[i]);
		free(s->data[i]);
		s->data[i] = copy;
		s->infos[st_order[i]].data = copy;
	}
}

/* The contents show whether a program has replaced torn state. A new revision or a new
 * communicator alone does not replace it. */
START_TEST(state_is_torn_until_it_is_replaced)
{
	const struct after *a = &afters[_i];
	struct part next = {.name = a->name, .torn = a->torn};
	struct st_state s;

	st_init(&s, 1);
	sync_part(&s, ST_POPULAR,
		(struct part){.torn = 0, .written = 10, .code = pcclRankConnectionLost});
	if (a->connects || a->creates)
		connect_again(&s, a->creates);
	if (a->copies)
		take_other_memory(&s);
	if (a->loads)
		st_fill(&s, 2);
	s.shared.revision = a->revision;
	next.code = pcclRankConnectionLost;
	sync_part(&s, a->sends ? ST_SEND : ST_POPULAR, next);
	next.code = pcclSuccess;
	sync_part(&s, ST_POPULAR, next);
	sync_part(&s, ST_POPULAR, (struct part){.torn = 0});
	st_free(&s);
}
END_TEST

/* The agent had announced a write, and did not write. */
START_TEST(unwritten_state_may_be_loaded_again_after_a_reset)
{
	struct st_state s;

	st_init(&s, 1);
	sync_part(&s, ST_POPULAR, (struct part){.touched = 1, .code = pcclRankConnectionLost});
	sync_part(&s, ST_POPULAR, (struct part){.torn = 1, .code = pcclRankConnectionLost});
	s.shared.revision = 0;
	sync_part(&s, ST_POPULAR, (struct part){.torn = 0});
	st_free(&s);
}
END_TEST

/* The agent dies before it knows of the call. The call goes on at the next agent, unless the attach
 * is refused. */
START_TEST(a_call_survives_a_death_before_its_submission)
{
	struct st_state s;

	st_init(&s, 1);
	fake_script(fx_agent, WL_REGION_ALLOC, FAKE_HANG_UP_ONCE, 0, NULL);
	if (_i == 0) {
		fake_script(fx_agent, WL_COMM_ATTACH, FAKE_REFUSE, pcclRankConnectionLost,
			"came too late");
		fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s.shared, ST_POPULAR, NULL),
			pcclRankConnectionLost, "came too late");
	} else {
		fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, st_equal, NULL));
		ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_ALLOC), 2);
	}
	st_free(&s);
}
END_TEST

static void die_for_good(struct fake_op *op, void *arg)
{
	fake_sync_begin(op);
	if (*(bool *)arg)
		fake_complete(op, 13);
	fake_script(fx_agent, WL_HELLO, FAKE_HANG_UP, 0, NULL);
	fake_hang_up(fx_agent);
}

START_TEST(a_synchronization_ends_if_no_agent_comes_back)
{
	bool complete = _i == 1;
	struct st_state s;

	st_init(&s, 1);
	/* the outcome of a complete call stays unknown; an incomplete call has failed at once */
	if (complete)
		fx_assert_fails(st_sync(&s.shared, ST_POPULAR, NULL, die_for_good, &complete),
			pcclAgentUnavailable, "did not come back");
	else
		fx_assert_fails(st_sync(&s.shared, ST_POPULAR, NULL, die_for_good, &complete),
			pcclRankConnectionLost, "call again");
	fx_assert_fails(pcclSynchronizeSharedState(fx_comm, &s.shared, ST_POPULAR, NULL),
		pcclAgentUnavailable, "did not come back");
	ck_assert_uint_eq(s.shared.revision, 7);
	fake_script(fx_agent, WL_HELLO, FAKE_ANSWER, 0, NULL);
	fx_assert_succeeds(pcclConnect(fx_comm));
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, st_equal, NULL));
	st_free(&s);
}
END_TEST

static void setup_impatient(void)
{
	ck_assert_int_eq(setenv("PCCL_AGENT_LEASE_MS", "200", 1), 0);
	fx_setup_comm();
}

/* The next agent gets the successes that the application knows of. */
START_TEST(the_next_agent_gets_past_synchronizations)
{
	struct wl_request q;
	struct st_state s;

	st_init(&s, 1);
	for (int i = 0; i < 3; i++)
		fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, st_equal, NULL));
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	q = fake_last(fx_agent, WL_COMM_ATTACH);
	ck_assert_uint_eq(q.n_seqs, 3);
	ck_assert_uint_eq(q.n_succeeded, 3);
	ck_assert_uint_eq(q.seqs[0], 3);
	st_free(&s);
}
END_TEST

Suite *state_sync_suite(void)
{
	Suite *s = suite_create("state_sync");
	TCase *tc = tcase_create("sync"), *impatient = tcase_create("impatient");

	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, all_tensors_are_read_and_written);
	tcase_add_test(tc, a_stream_of_commands_is_carried_out);
	tcase_add_test(tc, commands_wake_the_shim);
	tcase_add_loop_test(
		tc, forbidden_commands_are_not_carried_out, 0, sizeof lies / sizeof lies[0]);
	tcase_add_test(tc, the_revision_is_written_back);
	tcase_add_test(tc, failures_are_returned_with_code_and_text);
	tcase_add_test(tc, a_failure_reports_partly_written_tensors);
	tcase_add_test(tc, a_repeated_call_has_the_new_generation);
	tcase_add_test(tc, a_kicked_peer_gets_the_reason);
	tcase_add_loop_test(tc, a_death_of_the_agent_fails_incomplete_calls_only, 0, 2 * STAGES);
	tcase_add_loop_test(tc, a_call_that_killed_two_agents_is_not_tried_again, 0, 5);
	tcase_add_loop_test(tc, the_death_of_an_agent_that_only_waits_does_not_count, 0, 2);
	tcase_add_test(tc, a_repeated_call_kills_one_agent_at_a_time);
	tcase_add_loop_test(tc, writes_to_registered_memory_are_reported_after_a_death, 0, 2);
	tcase_add_test(tc, an_agent_that_lied_may_have_written);
	tcase_add_test(tc, torn_state_is_reported_until_a_synchronization_succeeds);
	tcase_add_test(tc, later_votes_mention_a_past_success);
	tcase_add_test(tc, state_that_was_not_written_in_part_is_not_torn);
	tcase_add_loop_test(
		tc, state_is_torn_until_it_is_replaced, 0, (int)(sizeof afters / sizeof afters[0]));
	tcase_add_test(tc, unwritten_state_may_be_loaded_again_after_a_reset);
	tcase_add_loop_test(tc, a_call_survives_a_death_before_its_submission, 0, 2);
	tcase_add_test(tc, the_next_agent_gets_past_synchronizations);
	suite_add_tcase(s, tc);
	tcase_add_unchecked_fixture(impatient, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(impatient, setup_impatient, fx_teardown_comm);
	tcase_set_timeout(impatient, 30);
	tcase_add_loop_test(impatient, a_synchronization_ends_if_no_agent_comes_back, 0, 2);
	suite_add_tcase(s, impatient);
	return s;
}
