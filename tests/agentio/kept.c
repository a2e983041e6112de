/* SPDX-License-Identifier: MIT
 *
 * The records about synchronizations that an agent keeps for operators: the peers whose tensors
 * differed, the reason and the keys. A record is kept only if the user's memory limit allows it.
 */
#include <stdio.h>
#include <string.h>

#include "proto/wire_codes.h"
#include "tests/agentio/ask.h"
#include "tests/agentio/candidate.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

#define BYTES ((uint64_t)100000)

static struct candidate oa, ob; /* client a has the elected contents, b has others */

static void init_both(void)
{
	candidate_init(&oa, &a, &qa, BYTES, 7, true);
	candidate_init(&ob, &b, &qb, BYTES, 9, true);
}

static void setup(void)
{
	pair_begin(NULL);
	init_both();
}

static void teardown(void)
{
	pair_end();
	candidate_free(&oa);
	candidate_free(&ob);
}

/* ---- jobs */

/* Fills b's tensors with `fill` and writes both manifests. */
static void write_both(uint8_t fill)
{
	memset(ob.data[0], fill, BYTES + 5);
	candidate_write(&oa, 3);
	candidate_write(&ob, 3);
}

static void push_both(void)
{
	candidate_push(&oa);
	candidate_push(&ob);
	sync_expect_votes(&m, 2);
}

/* Runs the synchronization to its end. Checks that b has the elected contents. */
static void succeed(void)
{
	struct wm_msg msg;

	sync_elect(&m, &oa, true, false, NULL);
	sync_expect_report(&m, 0, &msg);
	wire_master_clear(&msg);
	sync_finish(&m, 3);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_SUCCESS);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_SUCCESS);
	candidate_check(&ob, 7);
}

static void run(uint8_t fill)
{
	write_both(fill);
	push_both();
	succeed();
}

/* ---- the report about b's last job, as operators see it */

#define SHOWN 2u

struct look {
	uint32_t n_tensors, n_keys;
	char cause[SHOWN][16], key[SHOWN][16];
};

static struct look look(void)
{
	struct look l = {0};
	const struct wa_table *t;
	struct wa_reply r;

	ask(&f, WA_STATE, &r);
	t = ask_table(&r, "differed");
	for (; l.n_tensors < t->n_rows; l.n_tensors++) {
		ck_assert_uint_lt(l.n_tensors, SHOWN);
		ck_assert_uint_eq(ask_number(t, l.n_tensors, "comm"), qb.comm);
		snprintf(l.cause[l.n_tensors], sizeof l.cause[0], "%s",
			ask_text(t, l.n_tensors, "cause"));
	}
	t = ask_table(&r, "keys");
	for (; l.n_keys < t->n_rows; l.n_keys++) {
		ck_assert_uint_lt(l.n_keys, SHOWN);
		snprintf(l.key[l.n_keys], sizeof l.key[0], "%s", ask_text(t, l.n_keys, "key"));
	}
	wa_reply_clear(&r);
	return l;
}

static void expect_nothing(void)
{
	struct look l = look();

	ck_assert_uint_eq(l.n_tensors, 0);
	ck_assert_uint_eq(l.n_keys, 0);
}

/* Checks that both tensors differed and have these keys. */
static void expect_keys(const char *first, const char *second)
{
	struct look l = look();

	ck_assert_uint_eq(l.n_tensors, 2);
	ck_assert_uint_eq(l.n_keys, 2);
	ck_assert_str_eq(l.key[0], first);
	ck_assert_str_eq(l.key[1], second);
}

/* ---- tests */

/* The cause is "torn", whether the peer has synchronized before (_i == 1) or not. */
START_TEST(torn_state_is_recorded_as_the_cause)
{
	struct look l;

	write_both(9);
	ob.sqe.sync.torn = 1;
	ob.sqe.flags |= _i ? SHM_SQE_SYNCED : 0;
	push_both();
	succeed();
	l = look();
	ck_assert_uint_eq(l.n_tensors, 2);
	for (uint32_t i = 0; i < 2; i++)
		ck_assert_str_eq(l.cause[i], "torn");
}
END_TEST

static void rename_second(const char *name)
{
	strcpy(oa.name[1], name);
	strcpy(ob.name[1], name);
}

/* The agent keeps the names from one job to the next only if the keys are the same. It compares
 * both halves of the digest of the keys. */
START_TEST(names_are_kept_only_for_the_same_keys)
{
	static const char *const other[] = {"d", "e"};
	uint64_t digest[2];

	run(9);
	expect_keys("a", "b");
	rename_second("c");
	run(9);
	expect_keys("a", "c");
	for (uint32_t half = 0; half < 2; half++) {
		memcpy(digest, oa.sqe.sync.keys, sizeof digest);
		digest[half] ^= 1;
		rename_second(other[half]);
		write_both(9);
		push_both();
		memcpy(oa.sqe.sync.keys, digest, sizeof digest); /* as the master sends it */
		succeed();
		expect_keys("a", other[half]);
	}
}
END_TEST

/* ---- memory */

#define SPARE ((uint64_t)1 << 20) /* allocated by the test, so that the job does not get it */

static uint64_t limit; /* mem_total; 0: the default */

static void limit_memory(struct agentd_config *cfg)
{
	if (limit > 0)
		cfg->mem_total = limit;
}

static void begin(uint64_t mem_total)
{
	limit = mem_total;
	pair_begin(limit_memory);
	init_both();
}

static bool used_is(const struct agentd_stats *s, uint64_t n)
{
	return s->mem_used == n;
}

static bool syncs_are(const struct agentd_stats *s, uint64_t n)
{
	return s->syncs == n;
}

static uint64_t used(void)
{
	fx_await(&f, syncs_are, 0);
	return fx_stats(&f).mem_used;
}

/* Prepares a job up to its start. If `after_one` is true, completes another job first. Returns how
 * much memory is in use. */
static uint64_t offer(bool after_one)
{
	if (after_one) {
		run(9);
		expect_keys("a", "b");
	}
	write_both(9);
	push_both();
	return used();
}

/* Returns how much memory is in use when the job starts. *remembered: how much memory the record of
 * one job takes. */
static uint64_t measure(bool after_one, uint64_t *remembered)
{
	uint64_t before, ret;

	begin(0);
	write_both(9);
	before = used();
	run(9);
	*remembered = used() - before;
	ck_assert_uint_gt(*remembered, 1);
	teardown();
	begin(0);
	ret = offer(after_one);
	teardown();
	return ret;
}

/* Without memory for the whole record, the agent keeps no record of a job, but the job succeeds and
 * no memory stays charged. There is no memory at all (_i == 0), one byte too little (1), or none
 * after a job with a record (2). */
START_TEST(job_without_memory_for_its_record_succeeds)
{
	uint64_t remembered, offered = measure(_i == 2, &remembered), before;
	uint64_t room = _i == 1 ? remembered - 1 : 0;
	struct mem spare;

	begin(offered + SPARE + room);
	write_both(9);
	before = used();
	ck_assert_uint_eq(offer(_i == 2), offered);
	ck_assert_uint_eq(client_alloc(&a, SPARE, &spare), WIRE_SUCCESS);
	succeed();
	fx_await(&f, used_is, before + SPARE);
	expect_nothing();
	ck_assert_uint_eq(client_free(&a, spare.region), WIRE_SUCCESS);
	run(9);
	expect_keys("a", "b");
	teardown();
}
END_TEST

Suite *kept_suite(void)
{
	Suite *s = suite_create("kept");
	TCase *t = tcase_create("kept");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, torn_state_is_recorded_as_the_cause, 0, 2);
	tcase_add_test(t, names_are_kept_only_for_the_same_keys);
	suite_add_tcase(s, t);
	t = tcase_create("memory");
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, job_without_memory_for_its_record_succeeds, 0, 3);
	suite_add_tcase(s, t);
	return s;
}
