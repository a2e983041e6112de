/* SPDX-License-Identifier: MIT
 *
 * Tests the bytes and every limit of the messages about synchronizations of shared state.
 */
#include "tests/proto/master_check.h"
#include "tests/proto/suites.h"

static struct tl_rng rng;
static struct wm_msg m;

static void setup(void)
{
	rng = tl_rng_new(8);
}

static void teardown(void)
{
	wire_master_clear(&m);
}

static void fresh_vote(void)
{
	do {
		wire_master_clear(&m);
		sample_master(&rng, WM_OP_VOTE, &m);
	} while (!m.u.op_vote.is_sync || m.u.op_vote.refusal.code);
}

static void fresh_start(void)
{
	do {
		wire_master_clear(&m);
		sample_master(&rng, WM_OP_START, &m);
	} while (!m.u.op_start.is_sync || m.u.op_start.sync.n_sources == 0 ||
		 m.u.op_start.sync.n_others == 0);
}

START_TEST(limits_of_sync_votes_are_enforced)
{
	struct wm_sync_vote *v = &m.u.op_vote.sync;

	fresh_vote();
	*v = (struct wm_sync_vote){.hash_type = 1};
	accepted(&m);
	v->revision = UINT64_MAX;
	v->strategy = 2;
	v->hash_type = 255;
	v->keys = v->content = (struct wm_digest){.hi = UINT64_MAX, .lo = UINT64_MAX};
	v->n_tensors = 1048576;
	v->bytes = (uint64_t)1 << 48;
	v->torn = true;
	accepted(&m);
	v->strategy = 3;
	refused(&m, "op_vote.sync.strategy");
	v->strategy = 0;
	v->hash_type = 0;
	refused(&m, "op_vote.sync.hash_type");
	v->hash_type = 256;
	refused(&m, "op_vote.sync.hash_type");
	v->hash_type = WM_HASH_CRC32C;
	v->n_tensors++;
	refused(&m, "op_vote.sync.tensors");
	v->n_tensors = 0;
	v->bytes++;
	refused(&m, "op_vote.sync.bytes");
	fresh_vote();
	m.u.op_vote.tag = 1;
	refused(&m, "op_vote.tag");
	fresh_vote();
	m.u.op_vote.peers[0] = (struct cc_id){{0}};
	refused(&m, "op_vote.peers");
}
END_TEST

/* A vote as another implementation would encode it. */
static const uint8_t vote_bytes[] = {0x32, 73,                       /* op_vote */
	0x08, 5,                                                     /* group */
	0x22, 16, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    /* peers */
	0x28, 3,                                                     /* generation */
	0x3a, 49,                                                    /* sync */
	0x08, 7, 0x10, 1, 0x18, 2,                                   /* revision, strategy, type */
	0x22, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0, 0, 0, 0x80, /* keys */
	0x2a, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    /* content */
	0x30, 9, 0x38, 0xac, 0x02, 0x40, 1};                         /* tensors, bytes, torn */

START_TEST(sync_vote_of_another_encoder_is_read)
{
	struct wm_msg got;
	const char *why = "";
	struct bytes b;

	ck_assert_msg(
		wire_master_decode(vote_bytes, sizeof vote_bytes, &got, &why) == 0, "%s", why);
	ck_assert(got.u.op_vote.is_sync);
	ck_assert_uint_eq(got.u.op_vote.group, 5);
	ck_assert_uint_eq(got.u.op_vote.generation, 3);
	ck_assert_uint_eq(got.u.op_vote.sync.revision, 7);
	ck_assert_uint_eq(got.u.op_vote.sync.strategy, WM_STRATEGY_RECEIVE_ONLY);
	ck_assert_uint_eq(got.u.op_vote.sync.hash_type, WM_HASH_CRC32C);
	ck_assert_uint_eq(got.u.op_vote.sync.keys.hi, UINT64_C(0x0807060504030201));
	ck_assert_uint_eq(got.u.op_vote.sync.keys.lo, UINT64_C(0x8000000000000009));
	ck_assert_uint_eq(got.u.op_vote.sync.content.lo, 0);
	ck_assert_uint_eq(got.u.op_vote.sync.n_tensors, 9);
	ck_assert_uint_eq(got.u.op_vote.sync.bytes, 300);
	ck_assert(got.u.op_vote.sync.torn);
	b = encode(&got);
	ck_assert_uint_eq(b.len, sizeof vote_bytes);
	ck_assert_mem_eq(b.p, vote_bytes, sizeof vote_bytes);
	free(b.p);
	wire_master_clear(&got);
}
END_TEST

static void payload_refused(const uint8_t *p, size_t len, const char *expected)
{
	struct wm_msg got;
	const char *why = "";

	ck_assert_int_eq(wire_master_decode(p, len, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, expected);
}

/* A vote is either for an all-reduce or for a synchronization. A digest has 16 bytes. */
START_TEST(vote_must_have_one_subject_and_whole_digests)
{
	static const uint8_t neither[] = {
		0x32, 18, 0x22, 16, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t both[] = {0x32, 6, 0x1a, 2, 0x08, 1, 0x3a, 0};
	/* These votes have peers and a hash type. */
	static const uint8_t no_keys[] = {0x32, 22, 0x22, 16, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0x3a, 2, 0x18, 1};
	static const uint8_t no_content[] = {0x32, 40, 0x22, 16, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0x3a, 20, 0x18, 1, 0x22, 16, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0};
	static const uint8_t start[] = {0x2a + 0x80, 2, 6, 0x18, 1, 0x2a, 2, 0x10, 1};

	payload_refused(neither, sizeof neither, "op_vote.params: must be there");
	payload_refused(both, sizeof both, "op_vote.params: must not be there with sync");
	payload_refused(no_keys, sizeof no_keys, "op_vote.sync.keys: must be 16 bytes");
	payload_refused(no_content, sizeof no_content, "op_vote.sync.content: must be 16 bytes");
	payload_refused(start, sizeof start, "op_start.sync.keys: must be 16 bytes");
}
END_TEST

/* Encodes m, appends the bytes of `elected`, and checks that the result is refused. */
static void elected_refused(const uint8_t *elected, uint8_t len, const char *expected)
{
	struct bytes b = encode(&m);
	uint8_t *p = malloc(b.len + 1024);
	size_t at, n;

	ck_assert_ptr_nonnull(p);
	ck_assert_uint_eq(b.p[0], 0x32);
	at = 1;
	while (b.p[at++] & 0x80)
		;
	n = b.len - at + len;
	p[0] = 0x32;
	p[1] = (uint8_t)(n | 0x80);
	p[2] = (uint8_t)(n >> 7);
	ck_assert_uint_lt(n, 1 << 14);
	memcpy(p + 3, b.p + at, b.len - at);
	if (len > 0)
		memcpy(p + 3 + b.len - at, elected, len);
	payload_refused(p, 3 + n, expected);
	free(p);
	free(b.p);
}

/* Only votes for attempts that have started may contain the elected state. */
START_TEST(elected_state_is_only_allowed_after_the_start)
{
	static const uint8_t elected[] = {
		0x42, 20, 0x08, 7, 0x12, 16, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t no_content[] = {0x42, 4, 0x12, 2, 1, 1};
	static const char *const not_there =
		"op_vote.elected: must not be there without sync and seq";

	fresh_vote();
	m.u.op_vote.n_peers = 1;
	m.u.op_vote.seq = 9;
	m.u.op_vote.elected = (struct wm_sync_elected){UINT64_MAX, {1, UINT64_MAX}};
	accepted(&m);
	elected_refused(no_content, sizeof no_content, "op_vote.elected.content: must be 16 bytes");
	m.u.op_vote.seq = m.u.op_vote.epoch = 0;
	m.u.op_vote.elected = (struct wm_sync_elected){0};
	accepted(&m);
	elected_refused(elected, sizeof elected, not_there);
	do {
		wire_master_clear(&m);
		sample_master(&rng, WM_OP_VOTE, &m);
	} while (m.u.op_vote.is_sync || m.u.op_vote.seq == 0);
	m.u.op_vote.n_peers = 1;
	elected_refused(elected, sizeof elected, not_there);
	payload_refused((const uint8_t[]){0x32, 42, 0x30, 9, 0x3a, 38, 0x18, 1, 0x22, 16, 0, 0, 0,
				0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x2a, 16, 0, 0, 0, 0, 0, 0,
				0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		44, "op_vote.elected: must be there with sync and seq");
}
END_TEST

START_TEST(limits_of_sync_failures_are_enforced)
{
	struct wm_op_report *p = &m.u.op_report;

	sample_master(&rng, WM_OP_REPORT, &m);
	free(p->failed);
	p->failed = calloc(WM_PEERS_MAX + 1, sizeof *p->failed);
	ck_assert_ptr_nonnull(p->failed);
	p->n_failed = WM_PEERS_MAX + 1;
	for (uint32_t i = 0; i < p->n_failed; i++) {
		p->failed[i] = (struct wm_sync_failure){.peer = sample_id(&rng), .code = 4};
		memset(p->failed[i].text, 'x', WM_TEXT_MAX - 1);
	}
	refused(&m, "op_report.failed");
	p->n_failed = WM_PEERS_MAX;
	accepted(&m);
	p->failed[0].peer = p->failed[WM_PEERS_MAX - 1].peer;
	refused(&m, "op_report.failed");
	p->failed[0].peer = (struct cc_id){{0}};
	refused(&m, "op_report.failed.peer");
	p->failed[0].peer = sample_id(&rng);
	p->failed[0].code = 0;
	refused(&m, "op_report.failed.code");
	p->failed[0].code = 256;
	refused(&m, "op_report.failed.code");
	p->failed[0].code = 255;
	accepted(&m);
	p->n_failed = 0;
	accepted(&m);
}
END_TEST

START_TEST(limits_of_sync_start_are_enforced)
{
	struct wm_sync_start *s = &m.u.op_start.sync;

	fresh_start();
	m.u.op_start.tag = 1;
	refused(&m, "op_start.tag");
	fresh_start();
	s->hash_type = 0;
	refused(&m, "op_start.sync.hash_type");
	s->hash_type = 256;
	refused(&m, "op_start.sync.hash_type");
	fresh_start();
	s->n_peers = 0;
	refused(&m, "op_start.sync.peers");
	free(s->peers);
	s->peers = calloc(WM_PEERS_MAX + 1, sizeof *s->peers);
	ck_assert_ptr_nonnull(s->peers);
	for (size_t i = 0; i <= WM_PEERS_MAX; i++)
		s->peers[i].peer = sample_id(&rng);
	s->n_peers = WM_PEERS_MAX + 1;
	refused(&m, "op_start.sync.peers");
	s->n_peers = WM_PEERS_MAX;
	accepted(&m);
	s->peers[1].role = 2;
	refused(&m, "op_start.sync.peers.role");
	s->peers[1] = s->peers[0];
	refused(&m, "op_start.sync.peers");
	s->peers[1].peer = (struct cc_id){{0}};
	refused(&m, "op_start.sync.peers.peer");
}
END_TEST

static struct wm_sync_source *many_sources(uint32_t n, uint32_t holders)
{
	struct wm_sync_source *v = calloc(n, sizeof *v);

	ck_assert_ptr_nonnull(v);
	for (uint32_t i = 0; i < n; i++) {
		v[i].holders = holders;
		v[i].endpoint = (struct wm_endpoint){
			.agent = sample_id(&rng), .port = 1, .at_master = true};
	}
	return v;
}

START_TEST(limits_of_sources_are_enforced)
{
	struct wm_sync_start *s = &m.u.op_start.sync;

	fresh_start();
	free(s->sources);
	free(s->others);
	s->sources = many_sources(WM_SOURCES_MAX + 1, 1);
	s->others = many_sources(WM_SOURCES_MAX + 1, 0);
	s->n_sources = s->n_others = WM_SOURCES_MAX;
	accepted(&m);
	s->n_sources++;
	refused(&m, "op_start.sync.sources");
	s->n_sources--;
	s->n_others++;
	refused(&m, "op_start.sync.others");
	s->n_others--;
	s->sources[15].holders = WM_PEERS_MAX;
	accepted(&m);
	s->sources[15].holders++;
	refused(&m, "op_start.sync.sources.holders");
	s->sources[15].holders = 0;
	refused(&m, "op_start.sync.sources.holders");
	s->sources[15].holders = 1;
	s->others[15].holders = 1;
	refused(&m, "op_start.sync.others.holders");
	s->others[15].holders = 0;
	s->others[15].endpoint.agent = s->sources[0].endpoint.agent;
	refused(&m, "op_start.sync.sources");
	s->others[15].endpoint.agent = s->others[14].endpoint.agent;
	refused(&m, "op_start.sync.sources");
	s->n_sources = s->n_others = 0;
	accepted(&m);
}
END_TEST

/* An endpoint is checked like the endpoint of a ring, and the error names the list that contains
 * it. */
START_TEST(errors_in_endpoints_name_the_source)
{
	struct wm_sync_start *s = &m.u.op_start.sync;

	fresh_start();
	s->sources[0].endpoint.port = 0;
	refused(&m, "op_start.sync.sources.endpoint.port");
	s->sources[0].endpoint.port = 1;
	s->others[0].endpoint.agent = (struct cc_id){{0}};
	refused(&m, "op_start.sync.others.endpoint.agent");
	fresh_start();
	s->others[0].endpoint.at_master = false;
	s->others[0].endpoint.n_addrs = 0;
	refused(&m, "op_start.sync.others.endpoint.addrs");
}
END_TEST

START_TEST(abort_and_done_of_a_synchronization_are_checked)
{
	sample_master(&rng, WM_OP_ABORT, &m);
	m.u.op_abort.is_sync = true;
	m.u.op_abort.tag = 0;
	accepted(&m);
	m.u.op_abort.tag = 1;
	refused(&m, "op_abort.tag");
	m.u.op_abort.is_sync = false;
	accepted(&m);
	m.type = WM_OP_DONE;
	m.u.op_done = (struct wm_op_done){.seq = 1, .revision = UINT64_MAX};
	accepted(&m);
	m.u.op_done.seq = 0;
	refused(&m, "op_done.seq");
}
END_TEST

/* Messages from versions without shared state keep their meaning. */
START_TEST(messages_without_shared_state_are_still_read)
{
	static const uint8_t world[] = {0xa2, 2, 6, 0x22, 4, 0x08, 3, 0x10, 2};
	static const uint8_t start[] = {0xaa, 2, 4, 0x10, 9, 0x18, 7};
	static const uint8_t report[] = {0x3a, 4, 0x08, 7, 0x10, 1};
	const char *why = "";
	struct wm_msg got;

	ck_assert_int_eq(wire_master_decode(world, sizeof world, &got, &why), 0);
	ck_assert_uint_eq(got.u.view.own[0].world_size, 2);
	ck_assert_uint_eq(got.u.view.own[0].revision, 0);
	wire_master_clear(&got);
	ck_assert_int_eq(wire_master_decode(start, sizeof start, &got, &why), 0);
	ck_assert(!got.u.op_start.is_sync);
	ck_assert_uint_eq(got.u.op_start.tag, 9);
	wire_master_clear(&got);
	ck_assert_int_eq(wire_master_decode(report, sizeof report, &got, &why), 0);
	ck_assert_uint_eq(got.u.op_report.n_failed, 0);
	wire_master_clear(&got);
}
END_TEST

Suite *master_sync_suite(void)
{
	Suite *s = suite_create("master_sync");
	TCase *tc = tcase_create("sync");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, limits_of_sync_votes_are_enforced);
	tcase_add_test(tc, sync_vote_of_another_encoder_is_read);
	tcase_add_test(tc, vote_must_have_one_subject_and_whole_digests);
	tcase_add_test(tc, elected_state_is_only_allowed_after_the_start);
	tcase_add_test(tc, limits_of_sync_failures_are_enforced);
	tcase_add_test(tc, limits_of_sync_start_are_enforced);
	tcase_add_test(tc, limits_of_sources_are_enforced);
	tcase_add_test(tc, errors_in_endpoints_name_the_source);
	tcase_add_test(tc, abort_and_done_of_a_synchronization_are_checked);
	tcase_add_test(tc, messages_without_shared_state_are_still_read);
	suite_add_tcase(s, tc);
	return s;
}
