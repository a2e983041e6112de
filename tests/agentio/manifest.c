/* SPDX-License-Identifier: MIT
 *
 * Manifests that are refused, because they break a limit or do not fit their submissions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_shm.h"
#include "kernels/hsh.h"
#include "proto/wire_codes.h"
#include "tests/agentio/candidate.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

#define BYTES ((uint64_t)200000)

static struct candidate o;

static void small_memory(struct agentd_config *cfg)
{
	cfg->mem_total = cfg->mem_per_user = (uint64_t)11 << 20;
}

static void small_own(struct agentd_config *cfg)
{
	cfg->mem_own = (uint64_t)1 << 20;
}

static void begin(void (*tweak)(struct agentd_config *c))
{
	pair_begin(tweak);
	candidate_init(&o, &a, &qa, BYTES, 7, true);
	candidate_write(&o, 3);
}

static void setup(void)
{
	begin(NULL);
}

static void setup_small(void)
{
	begin(small_memory);
}

static void setup_own(void)
{
	begin(small_own);
}

static void teardown(void)
{
	fx_check_alive(&f);
	pair_end();
	candidate_free(&o);
}

/* The agent votes with the refusal, and the master ends the call of all peers of the group. */
static void end_refused(uint32_t code)
{
	struct wm_msg msg, end = {.type = WM_OP_ABORT, .u.op_abort = {.group = 1, .is_sync = true}};

	master_expect(&m, WM_OP_VOTE, &msg);
	ck_assert_uint_eq(msg.u.op_vote.refusal.code, code);
	end.u.op_abort.code = code;
	memcpy(end.u.op_abort.text, msg.u.op_vote.refusal.text, sizeof end.u.op_abort.text);
	wire_master_clear(&msg);
	master_send(&m, &end);
}

static void expect_code(uint32_t code, const char *part)
{
	ck_assert_uint_eq(candidate_await(&o), code);
	ck_assert_msg(strstr(candidate_slot(&o)->text, part) != NULL, "\"%s\" in \"%s\"", part,
		candidate_slot(&o)->text);
	queue_free_slot(&qa, o.slot);
	candidate_write(&o, 3);
}

/* Expects that a wrong submission is refused at once. */
static void expect_refused(uint32_t code, const char *part)
{
	candidate_push(&o);
	expect_code(code, part);
}

/* Expects that a wrong manifest is refused by a vote. */
static void expect_told(uint32_t code, const char *part)
{
	candidate_push(&o);
	end_refused(code);
	expect_code(code, part);
}

/* Expects that the agent votes for a right manifest. */
static void expect_vote(void)
{
	struct candidate other;
	struct wm_msg msg;

	candidate_init(&other, &b, &qb, BYTES, 7, true);
	other.may_differ[1] = o.may_differ[1];
	candidate_write(&other, 3);
	candidate_push(&o);
	candidate_push(&other);
	master_expect(&m, WM_OP_VOTE, &msg);
	ck_assert(msg.u.op_vote.is_sync);
	ck_assert_uint_eq(msg.u.op_vote.n_peers, 2);
	ck_assert_uint_eq(msg.u.op_vote.sync.keys.hi, o.sqe.sync.keys[0]);
	ck_assert_uint_eq(msg.u.op_vote.sync.content.lo, o.sqe.sync.content[1]);
	wire_master_clear(&msg);
	ck_assert(!candidate_at_work(&o) && !candidate_at_work(&other));
	candidate_free(&other);
}

START_TEST(only_a_region_for_manifests_is_accepted)
{
	struct mem strange, staging;

	ck_assert_uint_eq(client_alloc_use(&b, o.state.size, WL_REGION_STATE, &strange), 0);
	o.sqe.sync.region = strange.region;
	expect_refused(WIRE_INVALID_ARGUMENT, "region: this process has no memory region");
	o.sqe.sync.region = o.region[0];
	expect_refused(WIRE_INVALID_ARGUMENT, "cannot hold a manifest");
	ck_assert_uint_eq(client_alloc_use(&a, o.state.size, WL_REGION_STAGING, &staging), 0);
	o.sqe.sync.region = staging.region;
	expect_refused(WIRE_INVALID_ARGUMENT, "cannot hold a manifest");
	expect_vote();
}
END_TEST

START_TEST(wrong_fields_are_refused)
{
	o.hdr->magic ^= 1;
	expect_told(WIRE_INVALID_ARGUMENT, "magic");
	o.hdr->version++;
	expect_told(WIRE_INVALID_ARGUMENT, "version: 3, this agent knows 2");
	o.sqe.sync.n_tensors++;
	expect_told(WIRE_INVALID_ARGUMENT, "n_tensors: 2 in the manifest, 3 in the submission");
	o.sqe.sync.bytes--;
	expect_told(WIRE_INVALID_ARGUMENT, "bytes: 200005 in the manifest");
	o.entry[0].first_leaf = 1;
	expect_told(WIRE_INVALID_ARGUMENT, "tensor 0: first_leaf");
	o.entry[1].name_len = 2000;
	expect_told(WIRE_INVALID_ARGUMENT, "tensor 1: name: 2000 bytes, must be 1 to 1024");
	o.hdr->window_off = o.state.size;
	expect_told(WIRE_INVALID_ARGUMENT, "window_off");
	o.sqe.sync.hash_type = 77;
	expect_told(WIRE_INVALID_ARGUMENT, "hash_type: this agent does not know type 77");
	expect_vote();
}
END_TEST

/* A tensor must lie in registered memory of its process, because the agent reads and writes the
 * tensor. */
START_TEST(wrong_regions_of_tensors_are_refused)
{
	struct mem strange, staging, state;

	ck_assert_uint_eq(client_alloc(&b, BYTES, &strange), 0);
	ck_assert_uint_eq(client_alloc_use(&a, BYTES, WL_REGION_STAGING, &staging), 0);
	ck_assert_uint_eq(client_alloc_use(&a, BYTES, WL_REGION_STATE, &state), 0);
	o.entry[0].region = strange.region;
	expect_told(WIRE_INVALID_ARGUMENT, "tensor 0: region: this process has no registered");
	o.entry[0].region = staging.region;
	expect_told(WIRE_INVALID_ARGUMENT, "tensor 0: region: this process has no registered");
	o.entry[0].region = state.region;
	expect_told(WIRE_INVALID_ARGUMENT, "tensor 0: region: this process has no registered");
	o.entry[0].region = 12345;
	expect_told(WIRE_INVALID_ARGUMENT, "tensor 0: region: this process has no registered");
	o.entry[0].region_off = 4097 + 200000;
	expect_told(WIRE_INVALID_ARGUMENT, "tensor 0: region_off");
	expect_vote();
}
END_TEST

/* A process must not become a candidate with a digest that its manifest does not have. */
START_TEST(wrong_digests_are_refused)
{
	for (int i = 0; i < 2; i++) {
		o.sqe.sync.keys[i] ^= 1;
		expect_told(WIRE_INVALID_ARGUMENT, "keys: the digest is not that of");
		o.sqe.sync.content[i] ^= (uint64_t)1 << 63;
		expect_told(WIRE_INVALID_ARGUMENT, "content: the digest is not that of");
	}
	o.entry[1].hash ^= 1;
	expect_told(WIRE_INVALID_ARGUMENT, "content: the digest is not that of");
	o.entry[1].flags = SHM_STATE_MAY_DIFFER;
	expect_told(WIRE_INVALID_ARGUMENT, "keys: the digest is not that of");
	o.state.map[o.hdr->names_off + 1] = 'c';
	expect_told(WIRE_INVALID_ARGUMENT, "keys: the digest is not that of");
	/* A tensor that may differ does not count for the digest of contents. */
	o.may_differ[1] = true;
	candidate_write(&o, 3);
	o.entry[1].hash ^= 1;
	expect_vote();
}
END_TEST

/* ---- large manifests */

#define MANY 20000u

static struct shm_sqe big; /* the submission of client a */
static struct mem big_state;

/* Writes a manifest of tensors without bytes, named by their numbers. overlap: all names lie
 * in the same bytes, and each name is a part of the next one. */
static void write_big(bool overlap)
{
	uint64_t names = overlap ? (uint64_t)4 << 10 : (uint64_t)MANY * 8, size, at = 0, content[2];
	uint8_t *keys = malloc(MANY * (uint64_t)SHM_STATE_KEY_MAX);
	uint64_t *hashes = calloc(MANY, 8);
	struct shm_state_entry *e;
	struct shm_state_header hdr;
	uint32_t n = overlap ? 1000 : MANY;

	ck_assert_int_eq(shm_state_plan(n, names, 0, &hdr, &size), 0);
	if (big_state.map)
		cc_shm_unmap(big_state.map, big_state.size);
	ck_assert_uint_eq(client_alloc_use(&a, size, WL_REGION_STATE, &big_state), 0);
	memcpy(big_state.map, &hdr, sizeof hdr);
	e = (void *)(big_state.map + hdr.tensors_off);
	memset(big_state.map + hdr.names_off, 'x', names);
	for (uint32_t t = 0; t < n; t++) {
		char name[16];

		snprintf(name, sizeof name, "%08u", t);
		e[t] = (struct shm_state_entry){.name_off = overlap ? 0 : t * UINT64_C(8),
			.name_len = overlap ? t + 1 : 8,
			.hash = hsh_tensor(NULL, 0)};
		hashes[t] = e[t].hash;
		if (overlap)
			continue;
		memcpy(big_state.map + hdr.names_off + t * UINT64_C(8), name, 8);
		at += shm_state_key_put(keys + at, &e[t], name);
	}
	big = (struct shm_sqe){.slot = 1,
		.flags = SHM_SQE_SYNC,
		.sync = {.region = big_state.region,
			.revision = 3,
			.n_tensors = n,
			.hash_type = WM_HASH_SIMPLE}};
	hsh_digest(keys, at, big.sync.keys);
	hsh_digest(hashes, n * sizeof *hashes, content);
	memcpy(big.sync.content, content, sizeof content);
	free(keys);
	free(hashes);
}

/* Another thread checks a large manifest. Later submissions are processed after it. */
START_TEST(large_manifests_keep_the_order_of_submissions)
{
	struct shm_sqe sum;
	struct mem in;
	struct wm_msg msg;

	ck_assert_uint_eq(client_alloc(&a, 4000, &in), 0);
	sum = queue_sum(2, 9, 1000, &in);
	write_big(false);
	queue_push(&qa, &big);
	queue_push(&qa, &sum);
	ck_assert_uint_eq(queue_await(&qa, 2), WIRE_INVALID_USAGE);
	ck_assert_ptr_nonnull(
		strstr(queue_slot(&qa, 2)->text, "pcclSynchronizeSharedState is in progress"));
	/* After a second, the agent votes for this peer alone. */
	master_expect(&m, WM_OP_VOTE, &msg);
	ck_assert(msg.u.op_vote.is_sync);
	ck_assert_uint_eq(msg.u.op_vote.sync.n_tensors, MANY);
	wire_master_clear(&msg);
}
END_TEST

START_TEST(wrong_large_manifests_are_refused)
{
	write_big(false);
	big.sync.keys[1]++;
	queue_push(&qa, &big);
	end_refused(WIRE_INVALID_ARGUMENT);
	ck_assert_uint_eq(queue_await(&qa, 1), WIRE_INVALID_ARGUMENT);
	ck_assert_ptr_nonnull(strstr(queue_slot(&qa, 1)->text, "keys: the digest"));
	queue_free_slot(&qa, 1);
	write_big(true);
	queue_push(&qa, &big);
	end_refused(WIRE_INVALID_ARGUMENT);
	ck_assert_uint_eq(queue_await(&qa, 1), WIRE_INVALID_ARGUMENT);
	ck_assert_msg(strstr(queue_slot(&qa, 1)->text, "names_len: the names overlap") != NULL,
		"%s", queue_slot(&qa, 1)->text);
}
END_TEST

static bool regions_are(const struct agentd_stats *s, uint64_t n)
{
	return s->regions == n && s->mem_used == 0;
}

/* The processes end while the thread checks the manifest. In the second case, the agent ends,
 * too. */
START_TEST(processes_may_end_while_a_manifest_is_checked)
{
	write_big(false);
	queue_push(&qa, &big);
	client_close(&a);
	client_close(&b);
	if (_i == 0)
		fx_await(&f, regions_are, 0);
}
END_TEST

/* The agent's tables for a manifest count as memory of the user, and are freed. The agent makes no
 * table that its cgroup cannot bear, even if the limits of shared memory allow it. */
START_TEST(tables_of_manifests_count_as_memory)
{
	const char *limit = _i ? "half of its cgroup's memory" : "mem_per_user";
	uint64_t before;

	write_big(false);
	before = fx_stats(&f).mem_used;
	queue_push(&qa, &big);
	end_refused(WIRE_OUT_OF_MEMORY);
	ck_assert_uint_eq(queue_await(&qa, 1), WIRE_OUT_OF_MEMORY);
	ck_assert_msg(
		strstr(queue_slot(&qa, 1)->text, limit) != NULL, "%s", queue_slot(&qa, 1)->text);
	ck_assert_uint_eq(fx_stats(&f).mem_used, before);
}
END_TEST

START_TEST(tables_of_manifests_are_freed)
{
	uint64_t before = fx_stats(&f).mem_used;

	o.sqe.sync.keys[0]++;
	expect_told(WIRE_INVALID_ARGUMENT, "keys");
	ck_assert_uint_eq(fx_stats(&f).mem_used, before);
	candidate_push(&o);
	while (fx_stats(&f).mem_used == before)
		;
	client_close(&a);
	client_close(&b);
	fx_await(&f, regions_are, 0);
}
END_TEST

Suite *manifest_suite(void)
{
	Suite *s = suite_create("manifest");
	TCase *t = tcase_create("manifest"), *small = tcase_create("small memory"),
	      *own = tcase_create("small cgroup");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, only_a_region_for_manifests_is_accepted);
	tcase_add_test(t, wrong_fields_are_refused);
	tcase_add_test(t, wrong_regions_of_tensors_are_refused);
	tcase_add_test(t, wrong_digests_are_refused);
	tcase_add_test(t, large_manifests_keep_the_order_of_submissions);
	tcase_add_test(t, wrong_large_manifests_are_refused);
	tcase_add_loop_test(t, processes_may_end_while_a_manifest_is_checked, 0, 2);
	tcase_add_test(t, tables_of_manifests_are_freed);
	suite_add_tcase(s, t);
	tcase_set_timeout(small, 60);
	tcase_add_checked_fixture(small, setup_small, teardown);
	tcase_add_loop_test(small, tables_of_manifests_count_as_memory, 0, 1);
	suite_add_tcase(s, small);
	tcase_set_timeout(own, 60);
	tcase_add_checked_fixture(own, setup_own, teardown);
	tcase_add_loop_test(own, tables_of_manifests_count_as_memory, 1, 2);
	suite_add_tcase(s, own);
	return s;
}
