/* SPDX-License-Identifier: MIT
 *
 * Writes the seed corpora: `make_seeds tests/fuzz/corpus`. Run the program after a change of the
 * messages and commit its output. Seeds that were added by hand are not changed.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/wire_journal.h"
#include "proto/wire_frame.h"
#include "tests/fuzz/fuzz.h"
#include "tests/proto/sample.h"

/* Of TRIES samples, the program takes the sample whose size is closest to SIZE_GOAL. Such a seed
 * has some content and is small. */
#define TRIES     12
#define SIZE_GOAL 400

static const char *root;

static void write_seed(const char *target, const char *name, const void *p, size_t len)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", root, target);
	FUZZ_CHECK(mkdir(path, 0777) == 0 || errno == EEXIST);
	snprintf(path, sizeof path, "%s/%s/%s", root, target, name);
	f = fopen(path, "wb");
	FUZZ_CHECK(f != NULL);
	FUZZ_CHECK(fwrite(p, 1, len, f) == len);
	FUZZ_CHECK(fclose(f) == 0);
}

static size_t off_goal(size_t len)
{
	return len < SIZE_GOAL ? SIZE_GOAL - len : len - SIZE_GOAL;
}

static void keep_better(uint8_t **best, size_t *best_len, uint8_t *p, size_t len)
{
	if (*best == NULL || off_goal(len) < off_goal(*best_len)) {
		free(*best);
		*best = p;
		*best_len = len;
	} else {
		free(p);
	}
}

static bool is_sync(const struct wm_msg *m)
{
	return (m->type == WM_OP_VOTE && m->u.op_vote.is_sync) ||
	       (m->type == WM_OP_START && m->u.op_start.is_sync) ||
	       (m->type == WM_OP_ABORT && m->u.op_abort.is_sync);
}

static bool has_plan(const struct wm_msg *m)
{
	uint32_t i;

	for (i = 0; m->type == WM_ROUND && i < m->u.round.n_rings; i++)
		if (m->u.round.rings[i].plan.n > 0)
			return true;
	for (i = 0; m->type == WM_RESUME && i < m->u.resume.n_positions; i++)
		if (m->u.resume.positions[i].plan.n > 0)
			return true;
	return false;
}

/* Returns a frame of this type that belongs to a synchronization or has a plan if `special` is
 * true, and neither otherwise. */
static uint8_t *master_frame(struct tl_rng *r, enum wm_type type, bool special, size_t *ret_len)
{
	uint8_t *best = NULL, *frame;
	struct wm_msg m;
	size_t len;

	for (int i = 0; i < TRIES || best == NULL; i++) {
		sample_master(r, type, &m);
		if ((is_sync(&m) || has_plan(&m)) == special &&
			wire_master_encode(&m, &frame, &len) == 0)
			keep_better(&best, ret_len, frame, len);
		wire_master_clear(&m);
	}
	return best;
}

static void master(struct tl_rng *r)
{
	static const struct {
		enum wm_type type;
		const char *what;
	} special[] = {{WM_OP_VOTE, "sync"}, {WM_OP_START, "sync"}, {WM_OP_ABORT, "sync"},
		{WM_ROUND, "plan"}, {WM_RESUME, "plan"}};
	char name[32];

	for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
		size_t len;
		uint8_t *frame = master_frame(r, special[i].type, true, &len);

		snprintf(name, sizeof name, "%s_%s", wire_master_type_name(special[i].type),
			special[i].what);
		write_seed("fuzz_master", name, frame + WIRE_FRAME_HDR, len - WIRE_FRAME_HDR);
		free(frame);
	}
	for (size_t i = 0; i < sample_master_n_types; i++) {
		size_t len;
		uint8_t *frame = master_frame(r, sample_master_types[i], false, &len);

		write_seed("fuzz_master", wire_master_type_name(sample_master_types[i]),
			frame + WIRE_FRAME_HDR, len - WIRE_FRAME_HDR);
		free(frame);
	}
}

static void admin(struct tl_rng *r)
{
	uint8_t *best = NULL, *frame;
	struct wa_request q;
	struct wa_reply a;
	size_t len, best_len = 0;
	char name[32];

	for (int verb = WA_STATUS; verb <= WA_PROGRESS; verb++) {
		sample_admin_request(r, (enum wa_verb)verb, &q);
		FUZZ_CHECK(wire_admin_encode_request(&q, &frame, &len) == 0);
		snprintf(name, sizeof name, "request%d", verb);
		write_seed("fuzz_admin", name, frame + WIRE_FRAME_HDR, len - WIRE_FRAME_HDR);
		free(frame);
	}
	for (uint32_t n_tables = 0; n_tables <= 2; n_tables++) {
		for (int found = 0; found < TRIES;) {
			sample_admin_reply(r, &a);
			if (a.n_tables == n_tables &&
				wire_admin_encode_reply(&a, &frame, &len) == 0) {
				keep_better(&best, &best_len, frame, len);
				found++;
			}
			wa_reply_clear(&a);
		}
		snprintf(name, sizeof name, "reply%u", (unsigned)n_tables);
		write_seed("fuzz_admin", name, best + WIRE_FRAME_HDR, best_len - WIRE_FRAME_HDR);
		free(best);
		best = NULL;
	}
}

static void local(struct tl_rng *r)
{
	uint8_t buf[WL_PACKET_MAX];
	struct wl_request q;
	struct wl_reply p;
	char name[32];
	int n;

	for (int type = WL_HELLO; type <= WL_REGION_ADOPT; type++) {
		sample_request(r, (enum wl_type)type, &q);
		n = wire_local_put_request(&q, buf);
		FUZZ_CHECK(n > 0);
		snprintf(name, sizeof name, "request%d", type);
		write_seed("fuzz_local", name, buf, (size_t)n);
	}
	for (int i = 1; i <= 2; i++) {
		sample_reply(r, &p);
		n = wire_local_put_reply(&p, buf);
		FUZZ_CHECK(n >= 0);
		snprintf(name, sizeof name, "reply%d", i);
		write_seed("fuzz_local", name, buf, (size_t)n);
	}
	p = (struct wl_reply){.comm = 1, .region = 9, .size = 65536};
	n = wire_local_put_reply(&p, buf);
	FUZZ_CHECK(n > 0);
	write_seed("fuzz_local", "reply_offer", buf, (size_t)n);
}

static void journal(struct tl_rng *r)
{
	struct wj_member m[3] = {{.group = 7, .host = "node-1", .name = "train", .pid = 4711},
		{.host = ""}, {.group = UINT32_MAX, .pid = UINT32_MAX}};
	struct wj_record run = {.type = WJ_RUN, .run = {{1}}, .run_key = {{2}}, .term = 3};
	struct wj_record none = {.type = WJ_RUN};
	struct wj_revision revisions[2] = {
		{.group = 7, .revision = 1}, {.group = 9, .revision = UINT64_MAX, .lost = true}};
	struct wj_record members = {.type = WJ_MEMBERS,
		.n_revisions = 2,
		.revisions = revisions,
		.epoch = 4,
		.round = 5,
		.last_seq = 6,
		.ballots = {7, 8, 9},
		.view_id = 9,
		.generation = 10,
		.n = 3,
		.members = m};
	struct wj_record lost = {
		.type = WJ_LOST, .view_id = 10, .generation = 11, .n = 2, .members = m};
	struct wj_host hosts[2] = {{.agent = {{5}},
					   .name = "node-1",
					   .addr = {CC_INET4, {10, 0, 0, 1}, 48150},
					   .out = 1000,
					   .in = 2000,
					   .caps_age_s = 60,
					   .caps_confidence = 90,
					   .caps_stale = true},
		{.agent = {{6}}, .addr = {CC_INET6, {0xfd, 1}, 48150}}};
	struct wj_rate links[2] = {{.to = 1, .rate = 1000, .trip_us = 80, .age_s = 61},
		{.from = 1, .rate = UINT64_MAX, .source = WJ_SOURCE_MAX, .stale = true}};
	struct wj_record rates = {.type = WJ_RATES,
		.n_hosts = 2,
		.hosts = hosts,
		.n_rates = 2,
		.rates = links,
		.written_s = 1700000000};
	const struct wj_record *all[] = {&run, &none, &members, &lost, &rates};
	static const char *const names[] = {"run", "none", "members", "lost", "rates"};
	uint8_t file[4096], *p;
	size_t at = WJ_HEADER, len;

	for (size_t i = 0; i < 3; i++)
		m[i].peer.b[0] = m[i].agent.b[0] = m[i].token.b[0] =
			(uint8_t)(1 + i + tl_u64(r) % 9);
	wire_journal_header(file);
	for (size_t i = 0; i < 5; i++) {
		if (wire_journal_encode(all[i], &p, &len) != 0)
			abort();
		write_seed("fuzz_journal", names[i], p + WJ_RECORD_HDR, len - WJ_RECORD_HDR);
		memcpy(file + at, p, len);
		at += len;
		free(p);
	}
	write_seed("fuzz_journal", "file", file, at);
	write_seed("fuzz_journal", "file_cut", file, at - 5);
}

static void link_headers(struct tl_rng *r)
{
	uint8_t hello[WLK_HELLO_SIZE], ack[WLK_ACK_SIZE], data[WLK_DATA_SIZE];
	struct wlk_hello h = sample_link_hello(r);
	struct wlk_ack a = {.version_min = 1, .version_max = 1, .version = 1};
	struct wlk_data d = sample_link_data(r);

	wlk_hello_put(hello, &h);
	write_seed("fuzz_link", "hello", hello, sizeof hello);
	h.version_min = h.version_max = WLK_VERSION_MAX + 1;
	wlk_hello_put(hello, &h);
	write_seed("fuzz_link", "hello_later_version", hello, sizeof hello);
	wlk_ack_put(ack, &a);
	write_seed("fuzz_link", "ack", ack, sizeof ack);
	a = (struct wlk_ack){.version_min = 2,
		.version_max = 3,
		.code = WLK_REFUSED_VERSION,
		.text = "this agent speaks versions 2 to 3 of the link protocol, the other 1"};
	wlk_ack_put(ack, &a);
	write_seed("fuzz_link", "ack_refused", ack, sizeof ack);
	wlk_data_put(data, &d);
	write_seed("fuzz_link", "data", data, sizeof data);
}

/* Writes an input of fuzz_submit: the limits, then the entry. */
static void write_entry(
	const char *name, const struct shm_sqe *e, const struct shm_submit_limits *lim)
{
	uint8_t buf[sizeof *lim + sizeof *e];

	memcpy(buf, lim, sizeof *lim);
	memcpy(buf + sizeof *lim, e, sizeof *e);
	write_seed("fuzz_submit", name, buf, sizeof buf);
}

/* Writes operands that are staged through a window. Only the window must lie in their region. */
static void windows(struct shm_sqe e, struct shm_submit_limits lim)
{
	e.flags = 0;
	e.in_start = e.in_second = 0;
	e.window = 16;
	e.in_off = 4096;
	lim.in_size = e.in_off + shm_window_size(e.window);
	write_entry("window", &e, &lim);
	lim.in_size--;
	write_entry("window_does_not_fit", &e, &lim);
	e.window = SHM_WINDOW_MAX;
	lim.in_size = e.in_off + shm_window_size(e.window);
	write_entry("window_of_the_most", &e, &lim);
	e.in_second = e.in_start = e.count / 2 * sample_dtype_size(e.dtype);
	write_entry("window_with_an_order", &e, &lim);
	e.in_second = e.in_start = 0;
	e.flags = SHM_SQE_IN_REGISTERED;
	write_entry("window_of_registered", &e, &lim);
	e.flags = 0;
	e.window++;
	write_entry("window_too_large", &e, &lim);
}

static void entries(struct tl_rng *r)
{
	static const char *const kinds[] = {
		"staged", "registered", "staged_out_registered", "both_registered"};
	struct shm_submit_limits lim;
	struct shm_sqe e;
	char name[32];

	for (uint32_t dtype = 0; dtype <= 11; dtype++) {
		do
			e = sample_entry(r, &lim);
		while (e.dtype != dtype);
		snprintf(name, sizeof name, "dtype%u", (unsigned)dtype);
		write_entry(name, &e, &lim);
	}
	for (uint32_t op = 0; op <= 4; op++) {
		e = sample_entry(r, &lim);
		e.op = op;
		snprintf(name, sizeof name, "op%u", (unsigned)op);
		write_entry(name, &e, &lim);
	}
	for (uint32_t flags = 0; flags <= 3; flags++) {
		do
			e = sample_entry(r, &lim);
		while (e.flags != flags);
		write_entry(kinds[flags], &e, &lim);
	}
	e.out_region = e.in_region;
	e.out_off = e.in_off;
	lim.out_size = lim.in_size;
	write_entry("in_place", &e, &lim);
	e.flags |= SHM_SQE_OUT_DISPOSABLE;
	write_entry("operand_is_disposable", &e, &lim);
	e.out_region++;
	write_entry("disposable", &e, &lim);
	e.flags &= ~(uint32_t)SHM_SQE_OUT_REGISTERED;
	write_entry("disposable_is_not_registered", &e, &lim);
	e.flags = SHM_SQE_IN_REGISTERED | SHM_SQE_OUT_REGISTERED;
	e.out_region--;
	lim.busy |= (uint64_t)1 << e.slot;
	write_entry("slot_in_use", &e, &lim);
	lim.busy = 0;
	windows(e, lim);
	e.in_off = UINT64_MAX;
	write_entry("off_overflows", &e, &lim);
	e = sample_sync_entry(r, &lim);
	write_entry("sync", &e, &lim);
	e.flags |= SHM_SQE_IN_REGISTERED;
	write_entry("sync_with_flags", &e, &lim);
	e.count = UINT64_MAX;
	write_entry("count_overflows", &e, &lim);
	e = (struct shm_sqe){.slot = e.slot, .flags = SHM_SQE_REFUSED, .tag = 7, .refused = 8};
	write_entry("refused", &e, &lim);
	e.flags |= SHM_SQE_SYNC | SHM_SQE_MAIN;
	write_entry("refused_sync_with_tag", &e, &lim);
	e.tag = 0;
	write_entry("refused_sync", &e, &lim);
}

static void results(void)
{
	const struct fuzz_result_input good = {.region_size = 65536,
		.count = 10000,
		.flags_off = 40000,
		.mode = SHM_RESULT_AREA,
		.hosts = 3,
		.segment_max = 8192,
		.esize = 4};
	struct fuzz_result_input in = good;

	write_seed("fuzz_result", "area", &in, sizeof in);
	in.mode = SHM_RESULT_UNDO;
	in.out_registered = 1;
	write_seed("fuzz_result", "undo", &in, sizeof in);
	in.hosts = 1, in.off = 4096, in.flags_off = 0;
	write_seed("fuzz_result", "one_host", &in, sizeof in);
	in = good, in.mode = SHM_RESULT_STAGED, in.out_registered = 2;
	in.flags_off = 0, in.region_size = 4096;
	write_seed("fuzz_result", "staged", &in, sizeof in);
	in.mode = SHM_RESULT_DIRECT, in.out_registered = 1;
	write_seed("fuzz_result", "direct", &in, sizeof in);
	in.flags_off = in.region_size;
	write_seed("fuzz_result", "direct_flags_beyond", &in, sizeof in);
	in = good, in.mode = SHM_RESULT_STAGED;
	write_seed("fuzz_result", "staged_of_nothing", &in, sizeof in);
	in = good, in.mode = SHM_RESULT_UNDO;
	write_seed("fuzz_result", "undo_of_nothing", &in, sizeof in);
	in = good, in.hosts = UINT32_MAX, in.segment_max = 4;
	write_seed("fuzz_result", "too_many_segments", &in, sizeof in);
	in = good, in.shares = 2 << 16 | 65535;
	write_seed("fuzz_result", "two_rings", &in, sizeof in);
	in.shares = UINT64_C(1) << 32 | 1;
	write_seed("fuzz_result", "ring_without_share", &in, sizeof in);
	in = good, in.flags_off = UINT64_MAX;
	write_seed("fuzz_result", "flags_overflow", &in, sizeof in);
}

static void state(struct tl_rng *r)
{
	static const char *const kinds[] = {"tensors", "leaves", "block"};
	static const char *const ends[] = {"", "_not_yet", "_gone"};
	uint8_t buf[WST_HDR_SIZE];
	char name[32];

	for (int kind = WST_TENSORS; kind <= WST_BLOCK; kind++) {
		struct wst_answer a;

		do
			a = sample_state_answer(r);
		while (a.req.kind != kind || a.status != WST_OK);
		wst_request_put(buf, &a.req);
		snprintf(name, sizeof name, "request_%s", kinds[kind - 1]);
		write_seed("fuzz_state", name, buf, sizeof buf);
		for (; a.status <= WST_GONE; a.status++, a.len = 0, a.member = 0) {
			wst_answer_put(buf, &a);
			snprintf(name, sizeof name, "answer_%s%s", kinds[kind - 1], ends[a.status]);
			write_seed("fuzz_state", name, buf, sizeof buf);
		}
	}
}

static void manifest(const char *name, const struct sample_manifest *m)
{
	struct fuzz_state_input in = {.n_tensors = m->vote.n_tensors, .bytes = m->vote.bytes};
	size_t len = m->h->leaves_off + m->h->n_leaves * 8;
	uint8_t *buf = malloc(sizeof in + len);

	FUZZ_CHECK(buf != NULL);
	memcpy(buf, &in, sizeof in);
	memcpy(buf + sizeof in, m->map, len);
	write_seed("fuzz_shm_state", name, buf, sizeof in + len);
	free(buf);
}

static void manifests(struct tl_rng *r)
{
	struct sample_manifest m;
	char name[32];

	for (uint32_t n = 0; n <= 9; n += 3) {
		sample_manifest(r, n, &m);
		snprintf(name, sizeof name, "tensors%u", (unsigned)n);
		manifest(name, &m);
		if (n < 9)
			sample_manifest_free(&m);
	}
	m.e[4].name_off = m.e[3].name_off;
	m.e[4].name_len = m.e[3].name_len;
	manifest("name_twice", &m);
	m.e[2].count = m.e[2].bytes = (uint64_t)1 << 48;
	m.e[2].dtype = 0;
	manifest("too_many_bytes", &m);
	m.e[1].region = 8;
	m.e[1].region_off = UINT64_MAX;
	manifest("region_off_overflows", &m);
	m.e[0].name_off = UINT64_MAX;
	manifest("name_off_overflows", &m);
	sample_manifest_free(&m);
}

/* Writes streams of one to four frames, in pieces of different sizes. */
static void frames(struct tl_rng *r)
{
	static const enum wm_type types[] = {WM_HEARTBEAT, WM_LEAVE, WM_OP_DONE, WM_JOIN};
	uint8_t stream[4096];
	char name[32];
	size_t at = 1;

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		size_t len;
		uint8_t *frame = master_frame(r, types[i], false, &len);

		FUZZ_CHECK(len <= sizeof stream - at);
		memcpy(stream + at, frame, len);
		at += len;
		free(frame);
		stream[0] = (uint8_t)(i * 7);
		snprintf(name, sizeof name, "frames%u", (unsigned)i + 1);
		write_seed("fuzz_frame", name, stream, at);
	}
	stream[1] ^= 1;
	write_seed("fuzz_frame", "wrong_magic", stream, at);
	stream[1] ^= 1;
	stream[5]++;
	write_seed("fuzz_frame", "later_version", stream, at);
	stream[5]--;
	memset(stream + 9, 0xff, 4);
	write_seed("fuzz_frame", "too_long", stream, at);
}

int main(int argc, char **argv)
{
	struct tl_rng r = tl_rng_new(1);

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	root = argv[1];
	FUZZ_CHECK(mkdir(root, 0777) == 0 || errno == EEXIST);
	master(&r);
	admin(&r);
	local(&r);
	link_headers(&r);
	journal(&r);
	frames(&r);
	entries(&r);
	results();
	state(&r);
	manifests(&r);
	return 0;
}
