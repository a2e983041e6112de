/* SPDX-License-Identifier: MIT
 *
 * The difference reports: keys of shared state in which peers differed, as operators see them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "proto/wire_codes.h"
#include "tests/agentio/ask.h"
#include "tests/agentio/candidate.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

#define BYTES ((uint64_t)3 << 20)

/* Client a has the elected contents. Client b has other contents, and its process copies by
 * commands. */
static struct candidate oa, ob;

static void setup(void)
{
	pair_begin(NULL);
	candidate_init(&oa, &a, &qa, BYTES, 7, true);
	candidate_init(&ob, &b, &qb, BYTES, 9, false);
}

static void teardown(void)
{
	pair_end();
	candidate_free(&oa);
	candidate_free(&ob);
}

/* ---- the table */

#define ROWS  40
#define NAMED 32

struct row {
	char key[16], cause[16], outcome[16], why[64];
	uint64_t more, blocks, bytes, done;
};

struct answer {
	uint32_t n;
	struct row v[ROWS];
};

static struct answer differed(void)
{
	const struct wa_table *t;
	struct answer ret = {0};
	struct wa_reply r;

	ask(&f, WA_STATE, &r);
	t = ask_table(&r, "differed");
	ck_assert_uint_le(t->n_rows, ROWS);
	for (; ret.n < t->n_rows; ret.n++) {
		struct row *v = &ret.v[ret.n];

		snprintf(v->key, sizeof v->key, "%s", ask_text(t, ret.n, "key"));
		snprintf(v->cause, sizeof v->cause, "%s", ask_text(t, ret.n, "cause"));
		snprintf(v->outcome, sizeof v->outcome, "%s", ask_text(t, ret.n, "outcome"));
		snprintf(v->why, sizeof v->why, "%s", ask_text(t, ret.n, "why"));
		v->more = ask_number(t, ret.n, "more");
		v->blocks = ask_number(t, ret.n, "blocks");
		v->bytes = ask_number(t, ret.n, "bytes");
		v->done = ask_number(t, ret.n, "done");
	}
	wa_reply_clear(&r);
	return ret;
}

/* Checks that the rows are those of the keys "a" and "b". */
static void expect_rows(const struct answer *t)
{
	ck_assert_uint_eq(t->n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		ck_assert_str_eq(t->v[i].key, ob.name[i]);
		ck_assert_str_eq(t->v[i].cause, "newcomer");
		ck_assert_uint_eq(t->v[i].blocks, wire_leaf_count(ob.bytes[i]));
		ck_assert_uint_eq(t->v[i].bytes, ob.bytes[i]);
	}
}

/* ---- tests */

static bool syncs_are(const struct agentd_stats *s, uint64_t n)
{
	return s->syncs == n;
}

static void begin(void)
{
	candidate_write(&oa, 3);
	candidate_write(&ob, 0);
	candidate_push(&oa);
	candidate_push(&ob);
	sync_expect_votes(&m, 2);
	sync_elect(&m, &oa, true, false, NULL);
}

static bool has(uint32_t key)
{
	for (uint64_t i = 0; i < ob.bytes[key]; i++)
		if (ob.data[key][i] != 7)
			return false;
	return true;
}

/* Carries out commands until one key is complete and the other one is not. Returns the index of the
 * complete key. */
static uint32_t get_one(void)
{
	while (!has(0) && !has(1)) {
		ck_assert(candidate_wait(&ob, FX_TIMEOUT_MS));
		(void)candidate_carry_out(&ob);
	}
	ck_assert(!has(0) || !has(1));
	return has(1);
}

START_TEST(report_of_a_failed_job_shows_the_outcome_of_each_key)
{
	struct answer t;
	uint32_t whole;

	begin();
	whole = get_one();
	sync_abort(&m);
	ck_assert_uint_eq(queue_await(&qb, ob.slot), WIRE_RANK_CONNECTION_LOST);
	fx_await(&f, syncs_are, 0);
	t = differed();
	expect_rows(&t);
	ck_assert_str_eq(t.v[whole].outcome, "received");
	ck_assert_str_eq(t.v[whole].why, "");
	ck_assert_uint_eq(t.v[whole].done, ob.bytes[whole]);
	ck_assert_str_eq(t.v[!whole].outcome, "failed");
	ck_assert_str_eq(t.v[!whole].why, "a peer died");
	ck_assert_uint_lt(t.v[!whole].done, ob.bytes[!whole]);
}
END_TEST

/* The report of a running job says which keys differ, and how many of their bytes have arrived. */
START_TEST(report_of_a_running_job_shows_its_progress)
{
	struct answer t;
	uint32_t whole;

	ck_assert_uint_eq(differed().n, 0);
	begin();
	do
		t = differed();
	while (t.v[0].blocks == 0 || t.v[1].blocks == 0);
	expect_rows(&t);
	for (uint32_t i = 0; i < 2; i++) {
		ck_assert_str_eq(t.v[i].outcome, "under way");
		ck_assert_str_eq(t.v[i].why, "");
		ck_assert_uint_eq(t.v[i].done, 0);
	}
	whole = get_one();
	do
		t = differed();
	while (t.v[whole].done < ob.bytes[whole]);
	expect_rows(&t);
	ck_assert_str_eq(t.v[whole].outcome, "received");
	ck_assert_str_eq(t.v[!whole].outcome, "under way");
	ck_assert_uint_lt(t.v[!whole].done, ob.bytes[!whole]);
	sync_abort(&m);
	ck_assert_uint_eq(queue_await(&qb, ob.slot), WIRE_RANK_CONNECTION_LOST);
}
END_TEST

/* The process of one member sends a wrong acknowledgement. Only this member fails. */
START_TEST(report_of_a_failed_member_has_no_key_under_way)
{
	struct shm_state_acks *acks;
	struct answer t;
	struct wm_msg msg;

	begin();
	ck_assert(candidate_wait(&ob, FX_TIMEOUT_MS));
	acks = (void *)(ob.state.map + SHM_STATE_ACK_OFF);
	atomic_store(&acks->v[0], 99);
	atomic_store(&acks->tail, 1);
	eventfd_write(qb.data_bell, 1);
	sync_expect_report(&m, 1, &msg);
	wire_master_clear(&msg);
	t = differed();
	ck_assert_uint_eq(t.n, 2);
	for (uint32_t i = 0; i < 2; i++)
		ck_assert_str_eq(t.v[i].outcome, "failed");
	sync_finish(&m, 3);
	ck_assert_uint_eq(queue_await(&qa, oa.slot), WIRE_SUCCESS);
}
END_TEST

/* Adds keys until there are more than the report can name. */
static void add_keys(struct candidate *o, uint8_t fill)
{
	for (; o->n < CANDIDATE_TENSORS; o->n++) {
		snprintf(o->name[o->n], sizeof o->name[0], "c%02u", o->n);
		o->bytes[o->n] = 10;
		o->data[o->n] = malloc(10);
		memset(o->data[o->n], fill, 10);
	}
}

/* Returns the number of complete keys among the keys that the report does not name. */
static uint32_t count_rest(void)
{
	uint32_t n = 0;

	for (uint32_t t = NAMED; t < ob.n; t++)
		n += has(t);
	return n;
}

START_TEST(failed_keys_without_a_name_are_counted_separately)
{
	const uint32_t rest = CANDIDATE_TENSORS - NAMED;
	struct answer t;

	add_keys(&oa, 7);
	add_keys(&ob, 9);
	begin();
	while (count_rest() == 0) {
		(void)candidate_carry_out(&oa);
		(void)candidate_carry_out(&ob);
	}
	sync_abort(&m);
	ck_assert_uint_eq(queue_await(&qb, ob.slot), WIRE_RANK_CONNECTION_LOST);
	fx_await(&f, syncs_are, 0);
	t = differed();
	ck_assert_uint_eq(t.n, NAMED + 2);
	for (uint32_t i = 0; i < NAMED; i++)
		ck_assert_str_eq(t.v[i].outcome, has(i) ? "received" : "failed");
	ck_assert_str_eq(t.v[NAMED].outcome, "failed");
	ck_assert(t.v[NAMED].more == rest - 1 && t.v[NAMED].done == 0);
	ck_assert_str_eq(t.v[NAMED + 1].outcome, "received");
	ck_assert(t.v[NAMED + 1].more == 1 && t.v[NAMED + 1].done == 10);
}
END_TEST

Suite *diff_suite(void)
{
	Suite *s = suite_create("difference report");
	TCase *t = tcase_create("difference report");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, report_of_a_failed_job_shows_the_outcome_of_each_key);
	tcase_add_test(t, report_of_a_running_job_shows_its_progress);
	tcase_add_test(t, report_of_a_failed_member_has_no_key_under_way);
	tcase_add_test(t, failed_keys_without_a_name_are_counted_separately);
	suite_add_tcase(s, t);
	return s;
}
