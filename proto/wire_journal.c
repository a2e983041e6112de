/* SPDX-License-Identifier: MIT */
#include "proto/wire_journal.h"

#include <stdlib.h>
#include <string.h>

#include "proto/journal.pb-c.h"
#include "proto/wire_bytes.h"
#include "proto/wire_table.h"

/* Bytes of memory that protobuf-c may take per byte of payload. A member has at least 38 bytes of
 * payload. */
#define UNPACK_FACTOR 32

static const uint8_t magic[8] = {'P', 'C', 'C', 'L', 'J', 'R', 'N', 'L'};

/* Computes the CRC-32 of zlib, four bits at a time. */
static uint32_t checksum(const uint8_t *p, size_t len)
{
	static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
		0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8,
		0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
	uint32_t c = UINT32_MAX;

	for (; len > 0; len--, p++) {
		c = table[(c ^ *p) & 15] ^ (c >> 4);
		c = table[(c ^ (*p >> 4)) & 15] ^ (c >> 4);
	}
	return ~c;
}

void wire_journal_header(uint8_t buf[WJ_HEADER])
{
	memset(buf, 0, WJ_HEADER);
	memcpy(buf, magic, sizeof magic);
	wire_put32(buf + sizeof magic, WJ_VERSION);
}

int wire_journal_check(const uint8_t *buf, size_t len)
{
	if (len < WJ_HEADER)
		return CC_ERR_AGAIN;
	if (memcmp(buf, magic, sizeof magic) != 0)
		return CC_ERR_PROTO;
	return wire_get32(buf + sizeof magic) == WJ_VERSION ? 0 : CC_ERR_VERSION;
}

/* ---- tables ---- */

#define F(s, m, ...) WIRE_FIELD(struct wj_##s, #m, m, __VA_ARGS__)
#define LIST(name, m, count, ...)                                                                  \
	WIRE_LIST_FIELD(struct wj_record, name, m, count, .owned = true, __VA_ARGS__)
#define TABLE(s, message, lines) WIRE_TABLE(struct wj_##s, journal__##message##__descriptor, lines)
#define MEMBERS_LIMIT            "members: must be at most 65536"

/* A run without an id has ended, and the other fields have no meaning. */
static int before_run(const void *p, void *plain, const char **why)
{
	const Journal__Run *from = p;

	(void)plain;
	(void)why;
	return from->run.len == 0 && from->run_key.len == 0 ? WIRE_IGNORE_REST : 0;
}

static const struct wire_field run_fields[] = {
	F(record, run, ID("run.run")),
	F(record, run_key, ID("run.run_key")),
	F(record, term, U64_FROM_1("run.term")),
};
static const struct wire_table run = {TABLE(record, run, run_fields), .before = before_run};

static const struct wire_field member_fields[] = {
	F(member, peer, ID("member.peer")),
	F(member, token, .kind = WIRE_ID_OR_NONE, .text = "member.token: must be 16 bytes"),
	F(member, agent, ID("member.agent")),
	F(member, group, U32),
	F(member, host, TEXT("member.host: must be at most 63 bytes")),
	F(member, name, TEXT("member.name: must be at most 63 bytes")),
	F(member, pid, U32),
};
static const struct wire_table member = {TABLE(member, member, member_fields)};

static const struct wire_field revision_fields[] = {
	F(revision, group, U32),
	F(revision, revision, U64_FROM_1("members.revisions.revision")),
	F(revision, lost, BOOL),
};
static const struct wire_table revision = {TABLE(revision, revision, revision_fields)};

static int compare_groups(const void *a, const void *b)
{
	const struct wj_revision *x = a, *y = b;

	return (x->group > y->group) - (x->group < y->group);
}

static int sort_revisions(void *plain, const char **why)
{
	struct wj_record *r = plain;

	if (r->n_revisions > 0)
		qsort(r->revisions, r->n_revisions, sizeof *r->revisions, compare_groups);
	for (uint32_t i = 1; i < r->n_revisions; i++)
		if (r->revisions[i].group == r->revisions[i - 1].group)
			return wire_bad(why, "members.revisions: must not name a group twice");
	return 0;
}

static const struct wire_field members_fields[] = {
	F(record, epoch, U64),
	F(record, round, U64),
	F(record, view_id, U64),
	F(record, generation, U64),
	F(record, last_seq, U64),
	LIST("members", members, n, LIST_OF(member), IN(0, WJ_MEMBERS_MAX, MEMBERS_LIMIT)),
	LIST("revisions", revisions, n_revisions, LIST_OF(revision),
		IN(0, WJ_GROUPS_MAX, "members.revisions: must be at most 65536")),
	F(record, ballots, NUMBERS),
};
static const struct wire_table members = {
	TABLE(record, members, members_fields), .owns = true, .after = sort_revisions};

static const struct wire_field lost_fields[] = {
	F(record, view_id, U64),
	F(record, generation, U64),
	LIST("peers", members, n, IN(0, WJ_MEMBERS_MAX, MEMBERS_LIMIT),
		LIST_OF_ITEMS(ID("lost.peers"), .at = offsetof(struct wj_member, peer),
			.size = sizeof(struct cc_id))),
};
static const struct wire_table lost = {TABLE(record, lost, lost_fields), .owns = true};

static const struct wire_field address_fields[] = {WIRE_ADDRESS(0)};
static const struct wire_table address = {
	WIRE_TABLE(struct cc_addr, journal__address__descriptor, address_fields)};

static const struct wire_field host_fields[] = {
	F(host, agent, ID("host.agent")),
	F(host, name, TEXT("host.name: must be at most 63 bytes")),
	F(host, addr, MESSAGE(address), .text = "host.addr: must be there",
		.each = "host.addr: must be 4 or 16 bytes, with a port of at most 65535"),
	F(host, out, U64),
	F(host, in, U64),
	F(host, caps_age_s, U32),
	F(host, caps_source, U32_IN(0, WJ_SOURCE_MAX, "host.caps_source: must be 0 to 3")),
	F(host, caps_confidence, U32_IN(0, 100, "host.caps_confidence: must be 0 to 100")),
	F(host, caps_stale, BOOL),
};
static const struct wire_table host = {TABLE(host, host, host_fields)};

static const struct wire_field rate_fields[] = {
	F(rate, from, U32),
	F(rate, to, U32),
	F(rate, rate, U64),
	F(rate, trip_us, U32),
	F(rate, age_s, U32),
	F(rate, source, U32_IN(0, WJ_SOURCE_MAX, "rate.source: must be 0 to 3")),
	F(rate, stale, BOOL),
	F(rate, confidence, U32_IN(0, 100, "rate.confidence: must be 0 to 100")),
};
static const struct wire_table rate = {TABLE(rate, rate, rate_fields)};

static int check_links(void *plain, const char **why)
{
	const struct wj_record *r = plain;

	for (uint32_t i = 0; i < r->n_rates; i++)
		if (r->rates[i].from >= r->n_hosts || r->rates[i].to >= r->n_hosts ||
			r->rates[i].from == r->rates[i].to)
			return wire_bad(why, "rates.rates: must name two different hosts");
	return 0;
}

static const struct wire_field rates_fields[] = {
	LIST("hosts", hosts, n_hosts, LIST_OF(host),
		IN(0, WJ_HOSTS_MAX, "rates.hosts: must be at most 65536")),
	LIST("rates", rates, n_rates, LIST_OF(rate),
		IN(0, WJ_RATES_MAX, "rates.rates: must be at most 65536")),
	F(record, written_s, U64),
};
static const struct wire_table rates = {
	TABLE(record, rates, rates_fields), .owns = true, .after = check_links};

#define KIND(name) WIRE_KIND(struct wj_record, #name, name)
CONDITION(has_kind, struct wj_record, m->type != 0)

static const struct wire_field record_fields[] = {
	{KIND(run)},
	{KIND(members)},
	{KIND(lost)},
	{KIND(rates), RULE(has_kind, "record: of no known kind")},
};
const struct wire_table wire_journal_record = {TABLE(record, record, record_fields), .owns = true};

/* ---- records ---- */

int wire_journal_encode(const struct wj_record *r, uint8_t **ret, size_t *ret_len)
{
	int rc = wire_table_encode(
		&wire_journal_record, 0, r, WJ_RECORD_HDR, WJ_RECORD_MAX, ret, ret_len);
	uint32_t len;

	if (rc != 0)
		return rc;
	len = (uint32_t)(*ret_len - WJ_RECORD_HDR);
	wire_put32(*ret, len);
	wire_put32(*ret + 4, checksum(*ret + WJ_RECORD_HDR, len));
	return 0;
}

int wire_journal_get(const uint8_t *payload, size_t len, struct wj_record *ret, const char **why)
{
	struct wj_record r;
	int rc = wire_table_decode(&wire_journal_record, payload, len, UNPACK_FACTOR, &r, why);

	if (rc != 0)
		wire_journal_clear(&r);
	else
		*ret = r;
	return rc;
}

int wire_journal_decode(
	const uint8_t *buf, size_t len, struct wj_record *ret, size_t *used, const char **why)
{
	uint32_t size;
	int rc;

	if (len < WJ_RECORD_HDR)
		return CC_ERR_AGAIN;
	size = wire_get32(buf);
	if (size > WJ_RECORD_MAX)
		return wire_bad(why, "record: longer than any valid record");
	if (len - WJ_RECORD_HDR < size)
		return CC_ERR_AGAIN;
	if (checksum(buf + WJ_RECORD_HDR, size) != wire_get32(buf + 4))
		return wire_bad(why, "record: its checksum is wrong");
	rc = wire_journal_get(buf + WJ_RECORD_HDR, size, ret, why);
	if (rc == 0)
		*used = WJ_RECORD_HDR + size;
	return rc;
}

static uint32_t age_later(uint32_t age_s, uint64_t more_s)
{
	return more_s < UINT32_MAX - age_s ? age_s + (uint32_t)more_s : UINT32_MAX;
}

void wire_journal_age(struct wj_record *r, uint64_t now_s)
{
	uint64_t more_s = now_s > r->written_s ? now_s - r->written_s : 0;
	uint32_t i;

	for (i = 0; i < r->n_rates; i++)
		r->rates[i].age_s = age_later(r->rates[i].age_s, more_s);
	for (i = 0; i < r->n_hosts; i++)
		r->hosts[i].caps_age_s = age_later(r->hosts[i].caps_age_s, more_s);
	r->written_s += more_s;
}

void wire_journal_clear(struct wj_record *r)
{
	free(r->members);
	free(r->revisions);
	free(r->hosts);
	free(r->rates);
	*r = (struct wj_record){.type = WJ_RUN};
}
