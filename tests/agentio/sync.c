/* SPDX-License-Identifier: MIT
 *
 * Jobs of shared state in the agent, with the real engine for them: what processes, masters and
 * other agents see of one, and what becomes of memory when somebody goes.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_sys.h"
#include "kernels/hsh_run.h"
#include "proto/wire_codes.h"
#include "proto/wire_state.h"
#include "tests/agentio/ask.h"
#include "tests/agentio/candidate.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

#define BYTES ((uint64_t)3 << 20)

static struct candidate oa, ob; /* a has what is elected, b has not */

static void short_lease(struct agentd_config *cfg)
{
	cfg->master_lease_ms = 300;
}

static void setup(void)
{
	pair_begin(short_lease);
}

static void teardown(void)
{
	pair_end();
	candidate_free(&oa);
	candidate_free(&ob);
}

/* ---- what processes do */

static void init_both(bool a_registered, bool b_registered)
{
	candidate_init(&oa, &a, &qa, BYTES, 7, a_registered);
	candidate_init(&ob, &b, &qb, BYTES, 9, b_registered);
}

static void push_both(void)
{
	candidate_push(&oa);
	candidate_push(&ob);
	sync_expect_votes(&m, 2);
}

static void candidate_both(bool a_registered, bool b_registered)
{
	init_both(a_registered, b_registered);
	candidate_write(&oa, 3);
	candidate_write(&ob, 0);
	push_both();
}

/* Hashes by CRC32C from here on. */
static void use_crc32c(struct candidate *o)
{
	char why[200] = "";

	if (!hsh_crc32c_load(&o->leaf, why, sizeof why))
		ck_abort_msg("%s", why);
	o->hash_type = WM_HASH_CRC32C;
}

static bool done(const struct candidate *o)
{
	return atomic_load(&candidate_slot(o)->state) == SHM_SLOT_DONE;
}

/* Both carry out commands until the report. */
static void serve_until_report(unsigned n_failed, struct wm_msg *ret)
{
	while (!candidate_complete(&ob)) {
		(void)candidate_carry_out(&oa);
		(void)candidate_carry_out(&ob);
	}
	sync_expect_report(&m, n_failed, ret);
}

static bool syncs_are(const struct agentd_stats *s, uint64_t n)
{
	return s->syncs == n;
}

/* Commands are given to it, and it does nothing. */
static void until_commanded(struct candidate *o)
{
	ck_assert(candidate_wait(o, FX_TIMEOUT_MS) && !done(o));
}

/* ---- tests */

/* From the holder's memory into the receiver's, reached directly or by commands, without a byte on
 * any network. */
START_TEST(same_host)
{
	struct wm_msg msg;

	candidate_both(_i & 1, _i & 2);
	sync_elect(&m, &oa, true, false, NULL);
	serve_until_report(0, &msg);
	wire_master_clear(&msg);
	ck_assert(candidate_complete(&oa) && candidate_complete(&ob));
	ck_assert(candidate_at_work(&oa) && candidate_at_work(&ob));
	ck_assert(!done(&oa) && !done(&ob)); /* it is not over for the others */
	ck_assert_uint_eq(candidate_slot(&ob)->seq, m.seq);
	ck_assert_uint_eq(candidate_slot(&ob)->view.group, 2);
	ck_assert_uint_eq(atomic_load(&candidate_slot(&ob)->mode), SHM_RESULT_NONE);
	sync_finish(&m, 3);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_SUCCESS);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_SUCCESS);
	candidate_check(&oa, 7);
	candidate_check(&ob, 7);
	ck_assert_uint_eq(candidate_slot(&oa)->tx_bytes, BYTES + 5);
	ck_assert_uint_eq(candidate_slot(&oa)->rx_bytes, 0);
	ck_assert_uint_eq(candidate_slot(&ob)->tx_bytes, 0);
	ck_assert_uint_eq(candidate_slot(&ob)->rx_bytes, BYTES + 5);
	ck_assert_uint_eq(candidate_slot(&oa)->revision, 3);
	ck_assert_uint_eq(candidate_slot(&ob)->revision, 3);
	ck_assert(!(_i & 2) == (ob.shown != 0));
	fx_await(&f, syncs_are, 0);
	fx_check_alive(&f);
}
END_TEST

static uint32_t map(struct client *c, const struct queue *q, uint64_t region)
{
	struct wl_request r = {.type = WL_REGION_MAP, .comm = q->comm, .region = region};
	struct wl_reply reply;
	int fd;

	client_call(c, &r, &reply, &fd, 1);
	if (reply.code == WIRE_SUCCESS)
		close(fd);
	return reply.code;
}

/* What a holder offers is shown to receivers of the same user, as long as the job goes on. */
START_TEST(shown)
{
	struct client stranger;
	struct wm_msg msg;

	candidate_both(true, false);
	ck_assert_uint_eq(map(&b, &qb, oa.region[0]), WIRE_INVALID_USAGE);
	sync_elect(&m, &oa, true, false, NULL);
	until_commanded(&ob);
	ck_assert_uint_eq(map(&b, &qb, oa.region[0]), WIRE_SUCCESS);
	ck_assert_uint_eq(map(&b, &qb, oa.state.region), WIRE_SUCCESS);
	ck_assert_uint_eq(map(&b, &qb, oa.state.region + 1000), WIRE_INVALID_USAGE);
	ck_assert_uint_eq(map(&a, &qa, ob.state.region), WIRE_INVALID_USAGE);
	ck_assert_uint_eq(map(&a, &qb, oa.state.region), WIRE_INVALID_USAGE);
	client_open(&f, &stranger);
	ck_assert_uint_eq(map(&stranger, &qb, oa.state.region), WIRE_INVALID_USAGE);
	client_close(&stranger);
	serve_until_report(0, &msg);
	wire_master_clear(&msg);
	sync_finish(&m, 3);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_SUCCESS);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_SUCCESS);
	fx_await(&f, syncs_are, 0);
	ck_assert_uint_eq(map(&b, &qb, oa.region[0]), WIRE_INVALID_USAGE);
	ck_assert_uint_eq(map(&b, &qb, oa.state.region), WIRE_INVALID_USAGE);
	candidate_check(&ob, 7);
}
END_TEST

/* By the hash that was elected every leaf is verified that comes, whatever it is. */
START_TEST(crc32c)
{
	struct wm_msg msg;

	init_both(_i & 1, _i & 2);
	use_crc32c(&oa);
	use_crc32c(&ob);
	candidate_write(&oa, 3);
	candidate_write(&ob, 0);
	push_both();
	sync_elect(&m, &oa, true, false, NULL);
	serve_until_report(0, &msg);
	wire_master_clear(&msg);
	sync_finish(&m, 3);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_SUCCESS);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_SUCCESS);
	candidate_check(&ob, 7);
	ck_assert_uint_eq(candidate_slot(&ob)->rx_bytes, BYTES + 5);
}
END_TEST

/* Peers of one host that hash differently vote apart, so that the master can tell them. */
START_TEST(hash_types_vote_apart)
{
	const struct wm_sync_vote *v;
	bool simple = false, crc = false;
	struct wm_msg msg;

	init_both(true, true);
	memset(ob.data[0], 7, BYTES + 5);
	use_crc32c(&ob);
	candidate_write(&oa, 3);
	candidate_write(&ob, 3);
	candidate_push(&oa);
	candidate_push(&ob);
	for (int i = 0; i < 2; i++) {
		master_expect(&m, WM_OP_VOTE, &msg);
		v = &msg.u.op_vote.sync;
		ck_assert_uint_eq(msg.u.op_vote.n_peers, 1);
		ck_assert_uint_eq(v->keys.hi, oa.sqe.sync.keys[0]);
		if (v->hash_type == WM_HASH_SIMPLE)
			simple = v->content.hi == oa.sqe.sync.content[0];
		else if (v->hash_type == WM_HASH_CRC32C)
			crc = v->content.hi == ob.sqe.sync.content[0];
		wire_master_clear(&msg);
	}
	ck_assert(simple && crc);
}
END_TEST

/* While the job goes on its memory cannot be freed; after the completion it can. */
START_TEST(memory_in_use)
{
	candidate_both(true, true);
	ck_assert_uint_eq(client_free(&a, oa.region[0]), WIRE_INVALID_USAGE);
	ck_assert_uint_eq(client_free(&a, oa.state.region), WIRE_INVALID_USAGE);
	sync_elect(&m, &oa, true, false, NULL);
	sync_abort(&m);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_RANK_CONNECTION_LOST);
	ck_assert_str_eq(candidate_slot(&oa)->text, "a peer died");
	ck_assert_uint_eq(candidate_await(&ob), WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(client_free(&a, oa.region[0]), WIRE_SUCCESS);
	ck_assert_uint_eq(client_free(&a, oa.state.region), WIRE_SUCCESS);
	ck_assert_uint_eq(client_free(&b, ob.region[0]), WIRE_SUCCESS);
	fx_await(&f, syncs_are, 0);
}
END_TEST

static bool regions_are(const struct agentd_stats *s, uint64_t n)
{
	return s->regions == n;
}

/* The receiver's process ends amid commands: the job goes on for the holder, and the memory goes
 * once no thread uses it. */
START_TEST(receiver_dies)
{
	struct wm_msg msg;

	candidate_both(true, false);
	sync_elect(&m, &oa, true, false, NULL);
	until_commanded(&ob);
	client_close(&b);
	master_expect(&m, WM_LEAVE, &msg);
	ck_assert_uint_eq(msg.u.leave.kind, WM_LEAVE_DIED);
	fx_await(&f, regions_are, 2); /* those of a */
	sync_expect_report(&m, 0, &msg);
	wire_master_clear(&msg);
	sync_finish(&m, 3);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_SUCCESS);
	fx_await(&f, syncs_are, 0);
}
END_TEST

/* Kicked in the middle: its call ends and its memory is its own again, while others go on. */
START_TEST(receiver_is_kicked)
{
	candidate_both(true, false);
	sync_elect(&m, &oa, true, false, NULL);
	until_commanded(&ob);
	sync_kick(&m, 2);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_INVALID_USAGE);
	ck_assert_str_eq(candidate_slot(&ob)->text, "out with it");
	ck_assert_uint_eq(client_free(&b, ob.state.region), WIRE_SUCCESS);
	ck_assert_uint_eq(fx_stats(&f).syncs, 1);
	ck_assert(!done(&oa));
}
END_TEST

/* Who is no source any more: nobody is left, and the master hears of it. */
START_TEST(holder_dies)
{
	struct wm_msg msg;

	candidate_both(true, false);
	sync_elect(&m, &oa, true, false, NULL);
	until_commanded(&ob);
	client_close(&a);
	master_expect(&m, WM_LEAVE, &msg);
	fx_await(&f, regions_are, 1); /* that of b */
	sync_abort(&m);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_RANK_CONNECTION_LOST);
	ck_assert(!candidate_complete(&ob));
	fx_await(&f, syncs_are, 0);
}
END_TEST

/* The tensors of the holder are not what it said, but nobody notices before they are read. With
 * either hash. */
START_TEST(holder_lies)
{
	struct wm_msg msg;

	init_both(true, true);
	if (_i) {
		use_crc32c(&oa);
		use_crc32c(&ob);
	}
	candidate_write(&oa, 3);
	candidate_write(&ob, 0);
	oa.data[0][70000] = 8;
	push_both();
	sync_elect(&m, &oa, true, false, NULL);
	/* Nobody is left who has it; first the one that failed is named. */
	master_expect(&m, WM_OP_REPORT, &msg);
	ck_assert_uint_eq(msg.u.op_report.n_failed, 1);
	ck_assert_uint_eq(msg.u.op_report.failed[0].peer.b[0], 1);
	ck_assert_uint_eq(msg.u.op_report.failed[0].code, WIRE_INVALID_USAGE);
	ck_assert_msg(
		strstr(msg.u.op_report.failed[0].text,
			"tensor \"a\" changed during the call: it is not what its hashes say"),
		"%s", msg.u.op_report.failed[0].text);
	wire_master_clear(&msg);
	sync_abort(&m);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_RANK_CONNECTION_LOST);
	ck_assert(!candidate_complete(&ob));
}
END_TEST

/* An acknowledgement that was not asked for, after all was done: reported then. */
START_TEST(fails_later)
{
	struct shm_state_acks *acks;
	struct wst_request r = {
		.kind = WST_BLOCK, .id = 1, .group = 1, .seq = m.seq + 1, .tensor = 0, .n = 1};
	uint8_t buf[WST_HDR_SIZE];
	struct wm_msg msg;
	int fd;

	candidate_both(false, true);
	sync_elect(&m, &oa, true, false, NULL);
	serve_until_report(0, &msg);
	wire_master_clear(&msg);
	fd = stream_connect(&m, &f, r.seq);
	/* The receiver is in turn, too: until it is the holder who is to read something. */
	wst_request_put(buf, &r);
	do
		tcp_send(fd, buf, WST_HDR_SIZE);
	while (!candidate_wait(&oa, 20));
	acks = (void *)(oa.state.map + SHM_STATE_ACK_OFF);
	atomic_store(&acks->v[oa.acked % SHM_STATE_SLOTS], 99);
	atomic_store(&acks->tail, oa.acked + 1);
	eventfd_write(qa.data_bell, 1);
	sync_expect_report(&m, 1, &msg);
	ck_assert_ptr_nonnull(
		strstr(msg.u.op_report.failed[0].text, "a command that it was not given"));
	wire_master_clear(&msg);
	sync_kick(&m, 1);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_INVALID_USAGE);
	close(fd);
}
END_TEST

/* Another agent gets what it asks for, until the end; also a stream that came before the start. */
START_TEST(others_are_served)
{
	static uint8_t buf[WIRE_LEAF];
	struct wst_request tensors = {.kind = WST_TENSORS, .group = 1, .seq = 1, .n = 2};
	struct wst_request block = {.kind = WST_BLOCK, .group = 1, .seq = 1, .first = 2, .n = 1};
	int fd = stream_connect(&m, &f, 1);
	struct wm_msg msg;
	uint64_t hashes[2];

	stream_ask(fd, &tensors, WST_NOT_YET, buf, 0);
	candidate_both(true, true);
	sync_elect(&m, &oa, true, false, NULL);
	sync_expect_report(&m, 0, &msg);
	wire_master_clear(&msg);
	stream_ask(fd, &tensors, WST_OK, buf, 16);
	memcpy(hashes, buf, 16);
	ck_assert_uint_eq(hashes[0], oa.entry[0].hash);
	ck_assert_uint_eq(hashes[1], oa.entry[1].hash);
	stream_ask(fd, &block, WST_OK, buf, WIRE_LEAF);
	for (uint32_t i = 0; i < WIRE_LEAF; i++)
		ck_assert_uint_eq(buf[i], 7);
	sync_finish(&m, 3);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_SUCCESS);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_SUCCESS);
	/* To the receiver on this host, and a leaf to the other agent, from either of them. */
	ck_assert_uint_eq(candidate_slot(&oa)->tx_bytes + candidate_slot(&ob)->tx_bytes,
		BYTES + 5 + WIRE_LEAF);
	fx_await(&f, syncs_are, 0);
	stream_ask(fd, &tensors, WST_GONE, buf, 0);
	close(fd);
}
END_TEST

/* What nobody here has is fetched from the agent that the master names, by several streams, since
 * it has holders. */
START_TEST(fetched_from_another_agent)
{
	struct wm_sync_source src = {.holders = 1,
		.endpoint = {.agent = {{77}},
			.name = "elsewhere",
			.n_addrs = 1,
			.addrs = {{.family = CC_INET4, .ip = {127, 0, 0, 1}}}}};
	struct cc_addr at = {.family = CC_INET4, .ip = {127, 0, 0, 1}};
	int listener = cc_listen_tcp(&at, 0), second;
	struct pollfd first = {.events = POLLRDHUP};

	candidate_init(&oa, &a, &qa, BYTES, 9, true);
	candidate_init(&ob, &b, &qb, BYTES, 7, true);
	candidate_write(&oa, 0);
	candidate_write(&ob, 3);
	push_both();
	ob.sqe.sync.content[0] ^= 1; /* what nobody here has */
	src.endpoint.port = src.endpoint.addrs[0].port = at.port;
	sync_elect(&m, &ob, false, false, &src);
	first.fd = stream_accept(&m, listener);
	stream_welcome(first.fd);
	second = stream_accept(&m, listener);
	ck_assert_int_eq(poll(&first, 1, 0), 0); /* beside the first one, not after it */
	close(first.fd);
	close(second);
	close(listener);
	sync_abort(&m);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_RANK_CONNECTION_LOST);
}
END_TEST

static void destroy_comm(struct client *c, const struct queue *q)
{
	struct wl_request r = {.type = WL_COMM_DESTROY, .comm = q->comm};
	struct wl_reply reply;

	client_call(c, &r, &reply, NULL, 0);
}

/* The queue pair goes amid the job. */
START_TEST(communicator_is_destroyed)
{
	uint64_t end;

	candidate_both(true, false);
	sync_elect(&m, &oa, true, false, NULL);
	until_commanded(&ob);
	destroy_comm(&b, &qb);
	fx_await(&f, regions_are, 3);
	end = cc_now_ns() + FX_TIMEOUT_MS * UINT64_C(1000000);
	while (client_free(&b, ob.state.region) != WIRE_SUCCESS)
		ck_assert_uint_lt(cc_now_ns(), end); /* the thread lets go of it */
	eventfd_write(qb.data_bell, 1);
	ck_assert_uint_eq(fx_stats(&f).syncs, 1);
	destroy_comm(&a, &qa);
	fx_await(&f, syncs_are, 0);
}
END_TEST

/* It cannot be started: nothing of it is left, and it comes to its end like any other. */
START_TEST(cannot_start)
{
	candidate_both(true, true);
	oa.sqe.sync.hash_type = 77;
	sync_elect(&m, &oa, true, false, NULL);
	sync_abort(&m);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_RANK_CONNECTION_LOST);
	ck_assert(!candidate_complete(&ob));
	fx_await(&f, syncs_are, 0);
	ck_assert_uint_eq(client_free(&b, ob.region[0]), WIRE_SUCCESS);
}
END_TEST

/* The run goes with its master, and its jobs before it. */
START_TEST(master_goes)
{
	candidate_both(true, false);
	sync_elect(&m, &oa, true, false, NULL);
	until_commanded(&ob);
	master_hang_up(&m);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_MASTER_CONNECTION_FAILED);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_MASTER_CONNECTION_FAILED);
	fx_await(&f, syncs_are, 0);
}
END_TEST

static void stop(struct agentd *d, void *arg)
{
	(void)arg;
	agentd_stop(d, "told to end");
}

/* No thread works on the processes' memory when they hear of the end. */
START_TEST(agent_ends)
{
	struct shm_state_commands *c;
	char text[WL_TEXT_MAX];
	uint32_t given;

	candidate_both(true, false);
	sync_elect(&m, &oa, true, false, NULL);
	ob.blind = true;
	until_commanded(&ob);
	fx_call(&f, stop, NULL);
	client_await_end(&a, text);
	ck_assert_str_eq(text, "told to end");
	c = (void *)(ob.state.map + SHM_STATE_CMD_OFF);
	given = atomic_load(&c->tail);
	while (candidate_carry_out(&ob))
		;
	client_await_end(&b, text);
	ck_assert_uint_eq(atomic_load(&c->tail), given);
	ck_assert(!done(&oa) && !done(&ob));
	ck_assert(!candidate_complete(&ob));
}
END_TEST

/* ---- what operators are told */

struct look {
	bool found;
	uint64_t bytes, done, rate, left, standstill, tx, rx, holders, receivers;
	char state[16], waits[WA_TEXT_MAX];
	uint32_t sources;
	char source[WM_NAME_MAX], source_state[32]; /* of the first one */
	bool source_holds;
};

static void take_transfer(const struct wa_table *t, struct look *ret)
{
	*ret = (struct look){.found = true,
		.bytes = ask_number(t, 0, "bytes"),
		.done = ask_number(t, 0, "done"),
		.rate = ask_number(t, 0, "rate"),
		.left = ask_number(t, 0, "left"),
		.standstill = ask_number(t, 0, "standstill"),
		.tx = ask_number(t, 0, "tx"),
		.rx = ask_number(t, 0, "rx"),
		.holders = ask_number(t, 0, "holders"),
		.receivers = ask_number(t, 0, "receivers")};
	snprintf(ret->state, sizeof ret->state, "%s", ask_text(t, 0, "state"));
	snprintf(ret->waits, sizeof ret->waits, "%s", ask_text(t, 0, "waits"));
	ck_assert_uint_eq(ask_number(t, 0, "sequence"), m.seq);
}

static void take_source(const struct wa_table *t, struct look *ret)
{
	ret->sources = t->n_rows;
	ret->source_holds = ask_number(t, 0, "holds");
	snprintf(ret->source, sizeof ret->source, "%s", ask_text(t, 0, "host"));
	snprintf(ret->source_state, sizeof ret->source_state, "%s", ask_text(t, 0, "state"));
	ck_assert_uint_eq(ask_number(t, 0, "sequence"), m.seq);
}

/* There is one job at most. */
static void look(struct look *ret)
{
	struct wa_reply r;

	*ret = (struct look){0};
	ask(&f, WA_STATE, &r);
	ck_assert_uint_le(ask_table(&r, "transfers")->n_rows, 1);
	if (ask_table(&r, "transfers")->n_rows > 0)
		take_transfer(ask_table(&r, "transfers"), ret);
	if (ask_table(&r, "sources")->n_rows > 0)
		take_source(ask_table(&r, "sources"), ret);
	wa_reply_clear(&r);
}

static void until_waits(struct look *l, const char *part)
{
	do {
		look(l);
	} while (!strstr(l->waits, part));
}

/* Nobody gets what a receive-only peer has, not even its neighbour. */
START_TEST(receive_only)
{
	struct look l;

	candidate_init(&oa, &a, &qa, BYTES, 9, true);
	candidate_init(&ob, &b, &qb, BYTES, 7, true);
	candidate_write(&oa, 0);
	candidate_write(&ob, 3);
	ob.sqe.sync.strategy = WM_STRATEGY_RECEIVE_ONLY;
	candidate_push(&oa);
	candidate_push(&ob);
	sync_expect_votes(&m, 2);
	sync_elect(&m, &ob, false, false, NULL);
	do
		look(&l);
	while (strcmp(l.state, "failed") != 0);
	ck_assert(candidate_complete(&ob) && !candidate_complete(&oa));
	ck_assert_uint_eq(l.tx, 0);
	sync_abort(&m);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_RANK_CONNECTION_LOST);
	candidate_check(&oa, 9);
}
END_TEST

/* Carries out commands, one after the other, until it can be seen how fast they are. */
static void until_rated(struct candidate *o, struct look *l)
{
	uint64_t next = 0;

	do {
		if (cc_now_ns() >= next) {
			(void)candidate_carry_out(o);
			next = cc_now_ns() + UINT64_C(200000000);
		}
		look(l);
	} while (l->rate == 0 || l->rate == WA_UNKNOWN);
}

START_TEST(process_is_named)
{
	struct look l;
	char want[64];
	double left;

	candidate_both(true, false);
	sync_elect(&m, &oa, true, false, NULL);
	until_commanded(&ob);
	snprintf(want, sizeof want, "waits for local pid %d (test) to copy its tensors for ",
		getpid());
	until_waits(&l, want);
	ck_assert_str_eq(l.state, "copies");
	ck_assert_uint_eq(l.bytes, BYTES + 5);
	ck_assert_uint_lt(l.done, BYTES + 5);
	ck_assert_uint_eq(l.holders, 1);
	ck_assert_uint_eq(l.receivers, 1);
	ck_assert_uint_gt(l.standstill, 0);
	ck_assert_uint_eq(l.sources, 0);
	until_rated(&ob, &l);
	left = (double)(l.bytes - l.done) / (double)l.rate * 1e9;
	ck_assert_double_eq_tol((double)l.left, left, 1);
	ck_assert_uint_gt(l.tx, 0);
	ck_assert_uint_ge(l.rx, l.done);
	sync_abort(&m);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_RANK_CONNECTION_LOST);
	look(&l);
	ck_assert(!l.found);
}
END_TEST

START_TEST(source_is_named)
{
	struct wm_sync_source src = {
		.holders = 1, .endpoint = {.agent = {{77}}, .name = "elsewhere", .n_addrs = 1}};
	struct cc_addr at = {.family = CC_INET4, .ip = {127, 0, 0, 1}};
	int listener = cc_listen_tcp(&at, 0);
	struct look l;

	candidate_both(true, true);
	oa.sqe.sync.content[0] ^= 1;
	src.endpoint.addrs[0] = at;
	src.endpoint.port = at.port;
	sync_elect(&m, &oa, false, false, &src);
	until_waits(&l, "waits for elsewhere (not connected) for ");
	ck_assert_uint_eq(l.sources, 1);
	ck_assert_str_eq(l.source, "elsewhere");
	ck_assert(l.source_holds);
	ck_assert_str_eq(l.source_state, ""); /* neither up nor lost */
	ck_assert_uint_eq(l.left, WA_UNKNOWN);
	close(listener);
	sync_abort(&m);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_RANK_CONNECTION_LOST);
}
END_TEST

Suite *sync_suite(void)
{
	Suite *s = suite_create("sync");
	TCase *t = tcase_create("sync");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, same_host, 0, 4);
	tcase_add_loop_test(t, crc32c, 0, 4);
	tcase_add_test(t, hash_types_vote_apart);
	tcase_add_test(t, shown);
	tcase_add_test(t, memory_in_use);
	tcase_add_test(t, receiver_dies);
	tcase_add_test(t, receiver_is_kicked);
	tcase_add_test(t, holder_dies);
	tcase_add_loop_test(t, holder_lies, 0, 2);
	tcase_add_test(t, fails_later);
	tcase_add_test(t, others_are_served);
	tcase_add_test(t, fetched_from_another_agent);
	tcase_add_test(t, communicator_is_destroyed);
	tcase_add_test(t, cannot_start);
	tcase_add_test(t, master_goes);
	tcase_add_test(t, agent_ends);
	tcase_add_test(t, receive_only);
	tcase_add_test(t, process_is_named);
	tcase_add_test(t, source_is_named);
	suite_add_tcase(s, t);
	return s;
}
