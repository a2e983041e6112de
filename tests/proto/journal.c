/* SPDX-License-Identifier: MIT */
#include "proto/wire_journal.h"

#include <string.h>

#include "common/cc_err.h"
#include "tests/common/testlib.h"
#include "tests/proto/suites.h"

static struct wj_member members[2] = {{.peer = {{1}},
					      .token = {{2}},
					      .agent = {{3}},
					      .group = 4,
					      .host = "node-1",
					      .name = "train",
					      .pid = UINT32_MAX},
	{.peer = {{5}}, .agent = {{6}}, .group = UINT32_MAX}};
static const struct wj_record sample = {.type = WJ_MEMBERS,
	.epoch = 1,
	.round = 2,
	.last_seq = 3,
	.ballots = {4, 5, 6},
	.view_id = UINT64_MAX,
	.generation = 7,
	.n = 2,
	.members = members};

/* Computes the CRC bit by bit from the polynomial. */
static uint32_t crc(const uint8_t *p, size_t len)
{
	uint32_t c = UINT32_MAX;

	for (; len > 0; len--, p++) {
		c ^= *p;
		for (int i = 0; i < 8; i++)
			c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
	}
	return ~c;
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint8_t *encode(const struct wj_record *r, size_t *len)
{
	uint8_t *p = NULL;

	ck_assert_int_eq(wire_journal_encode(r, &p, len), 0);
	return p;
}

static struct wj_record round_trip(const struct wj_record *r)
{
	struct wj_record ret;
	const char *why = "";
	size_t len, used;
	uint8_t *p = encode(r, &len);

	ck_assert_msg(wire_journal_decode(p, len, &ret, &used, &why) == 0, "%s", why);
	ck_assert_uint_eq(used, len);
	free(p);
	return ret;
}

START_TEST(header_is_checked)
{
	uint8_t h[WJ_HEADER];

	wire_journal_header(h);
	ck_assert_mem_eq(h, "PCCLJRNL\2\0\0\0\0\0\0\0", sizeof h);
	for (size_t len = 0; len < sizeof h; len++)
		ck_assert_int_eq(wire_journal_check(h, len), CC_ERR_AGAIN);
	ck_assert_int_eq(wire_journal_check(h, sizeof h), 0);
	h[8] = 1;
	ck_assert_int_eq(wire_journal_check(h, sizeof h), CC_ERR_VERSION);
	h[3] = 'x';
	ck_assert_int_eq(wire_journal_check(h, sizeof h), CC_ERR_PROTO);
}
END_TEST

START_TEST(records_survive_encoding_and_decoding)
{
	struct wj_record run = {.type = WJ_RUN, .run = {{1}}, .run_key = {{2}}, .term = 9}, r;
	struct wj_record lost = {
		.type = WJ_LOST, .view_id = 3, .generation = 4, .n = 2, .members = members};

	r = round_trip(&run);
	ck_assert_int_eq(r.type, WJ_RUN);
	ck_assert_mem_eq(&r.run, &run.run, sizeof r.run);
	ck_assert_mem_eq(&r.run_key, &run.run_key, sizeof r.run);
	ck_assert_uint_eq(r.term, 9);
	wire_journal_clear(&r);
	run = (struct wj_record){.type = WJ_RUN};
	r = round_trip(&run);
	ck_assert(cc_id_is_zero(&r.run));
	r = round_trip(&sample);
	ck_assert_uint_eq(r.epoch, 1);
	ck_assert_uint_eq(r.round, 2);
	ck_assert_uint_eq(r.last_seq, 3);
	ck_assert_uint_eq(r.ballots[WIRE_TOPOLOGY], 4);
	ck_assert_uint_eq(r.ballots[WIRE_PENDING], 5);
	ck_assert_uint_eq(r.ballots[WIRE_OPTIMIZE], 6);
	ck_assert_uint_eq(r.view_id, UINT64_MAX);
	ck_assert_uint_eq(r.generation, 7);
	ck_assert_uint_eq(r.n, 2);
	ck_assert_mem_eq(r.members, members, sizeof members);
	wire_journal_clear(&r);
	r = round_trip(&lost);
	ck_assert_int_eq(r.type, WJ_LOST);
	ck_assert_uint_eq(r.view_id, 3);
	ck_assert_uint_eq(r.generation, 4);
	ck_assert_uint_eq(r.n, 2);
	ck_assert_mem_eq(&r.members[1].peer, &members[1].peer, sizeof r.run);
	ck_assert_uint_eq(r.members[1].group, 0);
	wire_journal_clear(&r);
}
END_TEST

static struct wj_host hosts[2] = {{.agent = {{1}},
					  .name = "node-1",
					  .addr = {CC_INET4, {10, 0, 0, 1}, 48150},
					  .out = 1000,
					  .in = UINT64_MAX,
					  .caps_age_s = 7,
					  .caps_source = 3,
					  .caps_confidence = 100,
					  .caps_stale = true},
	{.agent = {{2}}, .addr = {CC_INET6, {0xfd, 1}, 0}}};
static struct wj_rate rates[2] = {{.from = 0,
					  .to = 1,
					  .rate = UINT64_MAX,
					  .trip_us = 3,
					  .age_s = 4,
					  .confidence = 100,
					  .source = WJ_SOURCE_MAX,
					  .stale = true},
	{.from = 1, .to = 0, .age_s = UINT32_MAX}};

static struct wj_record store(void)
{
	return (struct wj_record){.type = WJ_RATES,
		.n_hosts = 2,
		.hosts = hosts,
		.n_rates = 2,
		.rates = rates,
		.written_s = 100};
}

START_TEST(rates_survive_encoding_and_decoding)
{
	struct wj_record r = store();

	r = round_trip(&r);
	ck_assert_int_eq(r.type, WJ_RATES);
	ck_assert_uint_eq(r.n_hosts, 2);
	ck_assert_uint_eq(r.n_rates, 2);
	ck_assert_str_eq(r.hosts[0].name, "node-1");
	ck_assert(cc_addr_eq(&r.hosts[0].addr, &hosts[0].addr));
	ck_assert(cc_addr_eq(&r.hosts[1].addr, &hosts[1].addr));
	ck_assert_uint_eq(r.hosts[0].out, 1000);
	ck_assert_uint_eq(r.hosts[0].in, UINT64_MAX);
	ck_assert_uint_eq(r.hosts[0].caps_age_s, 7);
	ck_assert_uint_eq(r.hosts[0].caps_source, 3);
	ck_assert_uint_eq(r.hosts[0].caps_confidence, 100);
	ck_assert(r.hosts[0].caps_stale && !r.hosts[1].caps_stale);
	ck_assert_mem_eq(&r.hosts[1].agent, &hosts[1].agent, sizeof r.run);
	ck_assert_mem_eq(r.rates, rates, sizeof rates);
	ck_assert_uint_eq(r.written_s, 100);
	wire_journal_clear(&r);
	ck_assert_ptr_null(r.hosts);
	ck_assert_ptr_null(r.rates);
}
END_TEST

START_TEST(rates_grow_older)
{
	struct wj_record r = store();

	r = round_trip(&r);
	wire_journal_age(&r, 160);
	ck_assert_uint_eq(r.rates[0].age_s, 64);
	ck_assert_uint_eq(r.rates[1].age_s, UINT32_MAX);
	ck_assert_uint_eq(r.hosts[0].caps_age_s, 67);
	wire_journal_age(&r, 160);
	ck_assert_uint_eq(r.rates[0].age_s, 64);
	wire_journal_age(&r, 20); /* the clock was set back */
	ck_assert_uint_eq(r.rates[0].age_s, 64);
	wire_journal_age(&r, UINT64_MAX);
	ck_assert_uint_eq(r.rates[0].age_s, UINT32_MAX);
	wire_journal_clear(&r);
}
END_TEST

static void refused(const struct wj_record *r, const char *reason)
{
	struct wj_record got;
	const char *why = "";
	size_t len, used;
	uint8_t *p = encode(r, &len);

	ck_assert_int_eq(wire_journal_decode(p, len, &got, &used, &why), CC_ERR_PROTO);
	ck_assert_msg(strstr(why, reason) != NULL, "'%s' instead of '%s'", why, reason);
	free(p);
}

START_TEST(wrong_rates_are_refused)
{
	struct wj_rate v = rates[0];
	struct wj_host w[2] = {hosts[0], hosts[1]};
	struct wj_record r = store();

	r.n_rates = 1;
	r.rates = &v;
	v.to = 2;
	refused(&r, "rates.rates: must name two different hosts");
	v.to = 0;
	refused(&r, "rates.rates: must name two different hosts");
	v = rates[0];
	v.source = WJ_SOURCE_MAX + 1;
	refused(&r, "rate.source: must be 0 to 3");
	v = rates[0];
	r.hosts = w;
	w[1].addr.family = 0;
	refused(&r, "host.addr");
	w[1] = hosts[1];
	w[0].agent = (struct cc_id){{0}};
	refused(&r, "host.agent");
}
END_TEST

/* A group without members keeps its revision. */
START_TEST(revisions_of_empty_groups_are_kept)
{
	struct wj_revision v[3] = {{UINT32_MAX, 1, false}, {0, UINT64_MAX, false}, {7, 2, true}};
	struct wj_record r = {.type = WJ_MEMBERS, .n_revisions = 3, .revisions = v}, got;

	got = round_trip(&r);
	ck_assert_uint_eq(got.n, 0);
	ck_assert_uint_eq(got.n_revisions, 3);
	ck_assert_uint_eq(got.revisions[0].group, 0);
	ck_assert_uint_eq(got.revisions[0].revision, UINT64_MAX);
	ck_assert_uint_eq(got.revisions[1].group, 7);
	ck_assert_uint_eq(got.revisions[1].revision, 2);
	ck_assert(got.revisions[1].lost && !got.revisions[0].lost);
	ck_assert_uint_eq(got.revisions[2].group, UINT32_MAX);
	wire_journal_clear(&got);
	ck_assert_ptr_null(got.revisions);
	v[2].group = 0;
	refused(&r, "members.revisions: must not name a group twice");
	v[2] = (struct wj_revision){.group = 8};
	refused(&r, "members.revisions.revision: must be at least 1");
}
END_TEST

START_TEST(number_of_revisions_is_limited)
{
	struct wj_record r = {.type = WJ_MEMBERS, .n_revisions = WJ_GROUPS_MAX + 1}, got;
	uint32_t i;

	r.revisions = calloc(r.n_revisions, sizeof *r.revisions);
	for (i = 0; i < r.n_revisions; i++)
		r.revisions[i] = (struct wj_revision){.group = i, .revision = 1};
	refused(&r, "members.revisions: must be at most 65536");
	r.n_revisions--;
	got = round_trip(&r);
	ck_assert_uint_eq(got.n_revisions, WJ_GROUPS_MAX);
	wire_journal_clear(&got);
	free(r.revisions);
}
END_TEST

/* The record has the form of older masters, without revisions. It has epoch 1, view id 2 and one
 * member. */
START_TEST(record_without_revisions_is_read)
{
	static const uint8_t old[] = {0x12, 50, 0x08, 1, 0x18, 2, 0x42, 44, /**/
		0x0a, 16, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,   /* peer */
		0x1a, 16, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,   /* agent */
		0x20, 9, 0x2a, 4, 'n', 'o', 'd', 'e'};
	struct wj_record r;
	const char *why = "";

	ck_assert_msg(wire_journal_get(old, sizeof old, &r, &why) == 0, "%s", why);
	ck_assert_int_eq(r.type, WJ_MEMBERS);
	ck_assert_uint_eq(r.view_id, 2);
	ck_assert_uint_eq(r.n, 1);
	ck_assert_uint_eq(r.members[0].group, 9);
	ck_assert_str_eq(r.members[0].host, "node");
	ck_assert_uint_eq(r.n_revisions, 0);
	ck_assert_ptr_null(r.revisions);
	wire_journal_clear(&r);
}
END_TEST

START_TEST(record_begins_with_length_and_checksum)
{
	size_t len;
	uint8_t *p = encode(&sample, &len);

	ck_assert_uint_eq(get32(p), len - WJ_RECORD_HDR);
	ck_assert_uint_eq(get32(p + 4), crc(p + WJ_RECORD_HDR, len - WJ_RECORD_HDR));
	free(p);
}
END_TEST

/* Older masters wrote members without a name and a pid. */
START_TEST(record_without_name_and_pid_is_read)
{
	static const uint8_t id[] = {0x0a, 16, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t rest[] = {0x20, 9, 0x2a, 3, 'o', 'l', 'd'};
	uint8_t payload[2 + 2 + 2 * sizeof id + sizeof rest], *p = payload;
	struct wj_record r;
	const char *why = "";

	*p++ = 0x12; /* record.members */
	*p++ = sizeof payload - 2;
	*p++ = 0x42; /* members.members */
	*p++ = sizeof payload - 4;
	memcpy(p, id, sizeof id); /* peer */
	memcpy(p + sizeof id, id, sizeof id);
	p[sizeof id] = 0x1a; /* agent */
	memcpy(p + 2 * sizeof id, rest, sizeof rest);
	ck_assert_msg(wire_journal_get(payload, sizeof payload, &r, &why) == 0, "%s", why);
	ck_assert_uint_eq(r.n, 1);
	ck_assert_uint_eq(r.members[0].group, 9);
	ck_assert_str_eq(r.members[0].host, "old");
	ck_assert_str_eq(r.members[0].name, "");
	ck_assert_uint_eq(r.members[0].pid, 0);
	wire_journal_clear(&r);
}
END_TEST

START_TEST(damaged_record_is_refused)
{
	struct wj_record r;
	const char *why;
	size_t len, used, i;
	uint8_t *p = encode(&sample, &len);
	int bit, err;

	for (i = 0; i < len; i++)
		ck_assert_int_eq(wire_journal_decode(p, i, &r, &used, &why), CC_ERR_AGAIN);
	for (i = 0; i < len; i++)
		for (bit = 0; bit < 8; bit++) {
			p[i] ^= (uint8_t)(1 << bit);
			err = wire_journal_decode(p, len, &r, &used, &why);
			ck_assert_int_lt(err, 0);
			p[i] ^= (uint8_t)(1 << bit);
		}
	free(p);
}
END_TEST

START_TEST(limits_of_records_are_enforced)
{
	struct wj_record r = {.type = WJ_RUN, .run = {{1}}, .run_key = {{1}}};
	struct wj_member m = members[0];
	size_t i;

	refused(&r, "run.term");
	r.term = 1;
	r.run_key = (struct cc_id){{0}};
	refused(&r, "run.run_key");
	r.run = r.run_key;
	r.run_key.b[0] = 1;
	refused(&r, "run.run:");
	r = (struct wj_record){.type = WJ_MEMBERS, .n = 1, .members = &m};
	m.peer = (struct cc_id){{0}};
	refused(&r, "member.peer");
	r.type = WJ_LOST;
	refused(&r, "lost.peers");
	r.type = WJ_MEMBERS;
	m = members[0];
	m.agent = (struct cc_id){{0}};
	refused(&r, "member.agent");
	r.n = WJ_MEMBERS_MAX + 1;
	r.members = calloc(r.n, sizeof *r.members);
	for (i = 0; i < r.n; i++)
		r.members[i] = members[0];
	refused(&r, "members: must be at most 65536");
	r.n--;
	{
		struct wj_record got = round_trip(&r);

		ck_assert_uint_eq(got.n, WJ_MEMBERS_MAX);
		wire_journal_clear(&got);
	}
	free(r.members);
}
END_TEST

START_TEST(record_without_a_kind_is_refused)
{
	struct wj_record got;
	const char *why = "";

	ck_assert_int_lt(wire_journal_get((const uint8_t *)"", 0, &got, &why), 0);
	ck_assert_str_eq(why, "record: of no known kind");
}
END_TEST

Suite *journal_suite(void)
{
	Suite *s = suite_create("journal");
	TCase *tc = tcase_create("journal");

	tcase_add_test(tc, header_is_checked);
	tcase_add_test(tc, records_survive_encoding_and_decoding);
	tcase_add_test(tc, rates_survive_encoding_and_decoding);
	tcase_add_test(tc, rates_grow_older);
	tcase_add_test(tc, wrong_rates_are_refused);
	tcase_add_test(tc, revisions_of_empty_groups_are_kept);
	tcase_add_test(tc, number_of_revisions_is_limited);
	tcase_add_test(tc, record_without_revisions_is_read);
	tcase_add_test(tc, record_begins_with_length_and_checksum);
	tcase_add_test(tc, record_without_name_and_pid_is_read);
	tcase_add_test(tc, damaged_record_is_refused);
	tcase_add_test(tc, limits_of_records_are_enforced);
	tcase_add_test(tc, record_without_a_kind_is_refused);
	suite_add_tcase(s, tc);
	return s;
}
