/* SPDX-License-Identifier: MIT
 *
 * pcclSynchronizeSharedState: commands to copy from memory of other peers on the host.
 */
#include <stdio.h>
#include <string.h>

#include "kernels/hsh.h"
#include "tests/shim/state.h"
#include "tests/shim/suites.h"

#define LEAF WIRE_LEAF
#define SPAN (2 * LEAF + 2000)

/* Copies from memory of another peer, which is mapped once. The agent learns if that is not
 * possible. */
static void show(struct fake_op *op, void *arg)
{
	struct shm_state_command c = {
		.op = SHM_STATE_WRITE, .slot = 5, .tensor = WIDE, .off = LEAF};
	uint8_t *theirs;

	(void)arg;
	fake_sync_begin(op);
	c.len = LEAF + 1000;
	c.from = fake_show(op, SPAN, &theirs);
	for (uint32_t i = 0; i < SPAN; i++)
		theirs[i] = (uint8_t)(i * 7 >> 3);
	for (c.from_off = 0; c.from_off <= SPAN - c.len; c.from_off += 899) {
		c.leaves[0] = hsh_leaf(theirs + c.from_off, LEAF, 1);
		c.leaves[1] = hsh_leaf(theirs + c.from_off + LEAF, 1000, 2);
		fake_give(op, &c);
		ck_assert_uint_eq(fake_await_acks(op), 5);
		fake_command(op, SHM_STATE_READ, 6, WIDE, LEAF, c.len);
		ck_assert_uint_eq(fake_await_acks(op), 6);
		ck_assert_int_eq(memcmp(fake_window(op, 6), theirs + c.from_off, c.len), 0);
	}
	ck_assert_uint_eq(fake_seen(op->f, WL_REGION_MAP), 1);
	/* The last leaf has changed since it was hashed. */
	c.from_off = 0;
	c.leaves[0] = hsh_leaf(theirs, LEAF, 1);
	c.leaves[1] = hsh_leaf(theirs + LEAF, 1000, 2) ^ 1;
	fake_give(op, &c);
	ck_assert_uint_eq(fake_await_acks(op), 5 | SHM_STATE_WRONG);
	/* The range is outside of the memory. */
	c.from_off = SPAN - c.len + 1;
	fake_give(op, &c);
	ck_assert_uint_eq(fake_await_acks(op), 5 | SHM_STATE_UNSEEN);
	c.from_off = UINT64_MAX - 500;
	fake_give(op, &c);
	ck_assert_uint_eq(fake_await_acks(op), 5 | SHM_STATE_UNSEEN);
	fake_script(op->f, WL_REGION_MAP, FAKE_REFUSE, pcclInvalidUsage, "no");
	c.from_off = 0;
	c.from = fake_show(op, SPAN, &theirs);
	fake_give(op, &c);
	ck_assert_uint_eq(fake_await_acks(op), 5 | SHM_STATE_UNSEEN);
	fake_sync_end(op, 0, NULL, 7, 0, 0);
}

START_TEST(leaves_are_copied_from_memory_of_another_peer)
{
	struct st_state s;

	st_init(&s, 1);
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, show, NULL));
	st_free(&s);
}
END_TEST

/* Returns the number of memory files that this process has mapped: those of the fake agent and
 * those of the shim. */
static unsigned count_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f))
		n += strstr(line, "memfd:") != NULL;
	fclose(f);
	return n;
}

#define SHOWN 12u
#define KEPT  8u

/* Copies from memory of more peers than the shim keeps mapped. Each memory is named by one
 * command. */
static void show_many(struct fake_op *op, void *arg)
{
	struct shm_state_command c = {.op = SHM_STATE_WRITE, .slot = 5, .tensor = WIDE, .len = 100};
	unsigned before, *shown = arg;
	uint8_t *theirs;

	fake_sync_begin(op);
	before = count_maps();
	for (unsigned i = 1; i <= SHOWN; i++) {
		c.from = fake_show(op, LEAF, &theirs);
		c.leaves[0] = hsh_leaf(theirs, 100, 0);
		fake_give(op, &c);
		ck_assert_uint_eq(fake_await_acks(op), 5);
		ck_assert_uint_eq(count_maps(), before + i + (i < KEPT ? i : KEPT));
	}
	*shown = before + SHOWN;
	fake_sync_end(op, 0, NULL, 7, 0, 0);
}

START_TEST(memory_of_only_a_few_peers_stays_mapped)
{
	unsigned shown = 0;
	struct st_state s;

	st_init(&s, 1);
	fx_assert_succeeds(st_sync(&s.shared, ST_POPULAR, NULL, show_many, &shown));
	ck_assert_uint_eq(count_maps(), shown);
	st_free(&s);
}
END_TEST

Suite *state_seen_suite(void)
{
	Suite *s = suite_create("state_seen");
	TCase *tc = tcase_create("seen");

	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, leaves_are_copied_from_memory_of_another_peer);
	tcase_add_test(tc, memory_of_only_a_few_peers_stays_mapped);
	suite_add_tcase(s, tc);
	return s;
}
