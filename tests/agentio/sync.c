/* SPDX-License-Identifier: MIT
 *
 * Jobs of shared state in the agent, with the real engine for them: what processes, masters and
 * other agents see of a job, and when its memory is freed if a process, the master or the agent
 * ends.
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

static struct candidate oa, ob; /* a has the elected contents, b has other contents */

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

/* ---- actions of the processes */

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

/* Lets the candidate hash with CRC32C from now on. */
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

/* Lets both processes carry out commands until the agent sends its report. */
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

/* Waits until the agent has given a command, but does not carry it out. */
static void until_commanded(struct candidate *o)
{
	ck_assert(candidate_wait(o, FX_TIMEOUT_MS) && !done(o));
}

/* ---- tests */

/* The bytes go from the holder's memory to the receiver's without any network. The agent reaches
 * each memory directly, or by commands to the process. */
START_TEST(receiver_on_the_same_host_gets_the_contents)
{
	struct wm_msg msg;

	candidate_both(_i & 1, _i & 2);
	sync_elect(&m, &oa, true, false, NULL);
	serve_until_report(0, &msg);
	wire_master_clear(&msg);
	ck_assert(candidate_complete(&oa) && candidate_complete(&ob));
	ck_assert(candidate_at_work(&oa) && candidate_at_work(&ob));
	ck_assert(!done(&oa) && !done(&ob)); /* other hosts may still receive */
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

/* During the job, receivers of the same user can map a holder's memory. No other process can. */
START_TEST(receivers_can_map_the_memory_of_holders)
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

/* The agent verifies every received leaf with the elected hash type. */
START_TEST(leaves_are_verified_with_crc32c)
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

/* Peers of one host with different hash types have separate votes, so the master can distinguish
 * them. */
START_TEST(hash_types_have_separate_votes)
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

/* The memory of a job cannot be freed until the job has ended. */
START_TEST(memory_of_a_job_cannot_be_freed)
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

/* The receiver's process ends while it has commands. The job continues for the holder, and the
 * receiver's memory is freed as soon as no thread uses it. */
START_TEST(job_continues_without_a_dead_receiver)
{
	struct wm_msg msg;

	candidate_both(true, false);
	sync_elect(&m, &oa, true, false, NULL);
	until_commanded(&ob);
	client_close(&b);
	master_expect(&m, WM_LEAVE, &msg);
	ck_assert_uint_eq(msg.u.leave.kind, WM_LEAVE_DIED);
	fx_await(&f, regions_are, 2); /* the regions of a */
	sync_expect_report(&m, 0, &msg);
	wire_master_clear(&msg);
	sync_finish(&m, 3);
	ck_assert_uint_eq(candidate_await(&oa), WIRE_SUCCESS);
	fx_await(&f, syncs_are, 0);
}
END_TEST

/* The receiver is kicked during the job. Its call ends and it can free its memory, while the job
 * continues for the others. */
START_TEST(job_continues_without_a_kicked_receiver)
{
	candidate_both(true, false);
	sync_elect(&m, &oa, true, false, NULL);
	until_commanded(&ob);
	sync_kick(&m, 2);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_INVALID_USAGE);
	ck_assert_str_eq(candidate_slot(&ob)->text, "you are out");
	ck_assert_uint_eq(client_free(&b, ob.state.region), WIRE_SUCCESS);
	ck_assert_uint_eq(fx_stats(&f).syncs, 1);
	ck_assert(!done(&oa));
}
END_TEST

/* The only holder dies, so no source is left. The agent reports the leave to the master, which
 * aborts. */
START_TEST(master_aborts_a_job_without_its_only_holder)
{
	struct wm_msg msg;

	candidate_both(true, false);
	sync_elect(&m, &oa, true, false, NULL);
	until_commanded(&ob);
	client_close(&a);
	master_expect(&m, WM_LEAVE, &msg);
	fx_await(&f, regions_are, 1); /* the region of b */
	sync_abort(&m);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_RANK_CONNECTION_LOST);
	ck_assert(!candidate_complete(&ob));
	fx_await(&f, syncs_are, 0);
}
END_TEST

/* The holder's tensors do not have the hashes of its manifest. The agent notices this when it reads
 * the tensors. The test runs with both hash types. */
START_TEST(holder_with_false_hashes_is_reported)
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
	/* No source is left. The first report names the failed holder. */
	master_expect(&m, WM_OP_REPORT, &msg);
	ck_assert_uint_eq(msg.u.op_report.n_failed, 1);
	ck_assert_uint_eq(msg.u.op_report.failed[0].peer.b[0], 1);
	ck_assert_uint_eq(msg.u.op_report.failed[0].code, WIRE_INVALID_USAGE);
	ck_assert_msg(strstr(msg.u.op_report.failed[0].text,
			      "tensor \"a\" changed during the call: it does not match its hashes"),
		"%s", msg.u.op_report.failed[0].text);
	wire_master_clear(&msg);
	sync_abort(&m);
	ck_assert_uint_eq(candidate_await(&ob), WIRE_RANK_CONNECTION_LOST);
	ck_assert(!candidate_complete(&ob));
}
END_TEST

/* The holder's process acknowledges a wrong command after the host's report. The agent reports this
 * failure as well. */
START_TEST(failure_after_the_report_is_reported)
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
	/* The agent lets holder and receiver serve requests in turn, so the test sends requests
	 * until the holder gets a command. */
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

/* Another agent gets the leaves that it requests until the job ends, also over a stream that was
 * opened before the start. */
START_TEST(another_agent_gets_what_it_requests)
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
	/* The receiver on this host got all bytes. The other agent got one leaf, from the holder or
	 * from the receiver. */
	ck_assert_uint_eq(candidate_slot(&oa)->tx_bytes + candidate_slot(&ob)->tx_bytes,
		BYTES + 5 + WIRE_LEAF);
	fx_await(&f, syncs_are, 0);
	stream_ask(fd, &tensors, WST_GONE, buf, 0);
	close(fd);
}
END_TEST

/* No peer of this host has the elected contents. The agent fetches them from the agent that the
 * master names. It opens several streams to the named agent, because that agent has holders. */
START_TEST(missing_contents_are_fetched_from_another_agent)
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
	ob.sqe.sync.content[0] ^= 1; /* contents that no peer of this host has */
	src.endpoint.port = src.endpoint.addrs[0].port = at.port;
	sync_elect(&m, &ob, false, false, &src);
	first.fd = stream_accept(&m, listener);
	stream_welcome(first.fd);
	second = stream_accept(&m, listener);
	ck_assert_int_eq(poll(&first, 1, 0), 0); /* the first stream is still open */
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

/* The queue pair of the receiver is freed during the job. */
START_TEST(job_continues_without_a_destroyed_communicator)
{
	uint64_t end;

	candidate_both(true, false);
	sync_elect(&m, &oa, true, false, NULL);
	until_commanded(&ob);
	destroy_comm(&b, &qb);
	fx_await(&f, regions_are, 3);
	end = cc_now_ns() + FX_TIMEOUT_MS * UINT64_C(1000000);
	while (client_free(&b, ob.state.region) != WIRE_SUCCESS)
		ck_assert_uint_lt(cc_now_ns(), end); /* until no thread uses the region */
	eventfd_write(qb.data_bell, 1);
	ck_assert_uint_eq(fx_stats(&f).syncs, 1);
	destroy_comm(&a, &qa);
	fx_await(&f, syncs_are, 0);
}
END_TEST

/* A job that cannot start keeps no memory, and its calls end like those of any other job. */
START_TEST(job_that_cannot_start_ends_like_any_other)
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

/* The run ends when the lease of its master expires. Its jobs end before the run. */
START_TEST(jobs_end_when_the_run_loses_its_master)
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

/* When processes receive the goodbye of the agent, no thread works on their memory any more. */
START_TEST(end_of_the_agent_stops_all_work_on_memory)
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

/* ---- the status that operators see */

struct look {
	bool found;
	uint64_t bytes, done, rate, left, standstill, tx, rx, holders, receivers;
	char state[16], waits[WA_TEXT_MAX];
	uint32_t sources;
	char source[WM_NAME_MAX], source_state[32]; /* the first source */
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

/* Reads the status of the job. There is at most one job. */
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

/* No peer gets the contents of a receive-only peer, not even a peer of the same host. */
START_TEST(receive_only_peer_is_no_source)
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

/* Carries out one command every 200 ms until the status shows a rate. */
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

START_TEST(status_names_the_process_that_copies)
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

START_TEST(status_names_the_source)
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
	tcase_add_loop_test(t, receiver_on_the_same_host_gets_the_contents, 0, 4);
	tcase_add_loop_test(t, leaves_are_verified_with_crc32c, 0, 4);
	tcase_add_test(t, hash_types_have_separate_votes);
	tcase_add_test(t, receivers_can_map_the_memory_of_holders);
	tcase_add_test(t, memory_of_a_job_cannot_be_freed);
	tcase_add_test(t, job_continues_without_a_dead_receiver);
	tcase_add_test(t, job_continues_without_a_kicked_receiver);
	tcase_add_test(t, master_aborts_a_job_without_its_only_holder);
	tcase_add_loop_test(t, holder_with_false_hashes_is_reported, 0, 2);
	tcase_add_test(t, failure_after_the_report_is_reported);
	tcase_add_test(t, another_agent_gets_what_it_requests);
	tcase_add_test(t, missing_contents_are_fetched_from_another_agent);
	tcase_add_test(t, job_continues_without_a_destroyed_communicator);
	tcase_add_test(t, job_that_cannot_start_ends_like_any_other);
	tcase_add_test(t, jobs_end_when_the_run_loses_its_master);
	tcase_add_test(t, end_of_the_agent_stops_all_work_on_memory);
	tcase_add_test(t, receive_only_peer_is_no_source);
	tcase_add_test(t, status_names_the_process_that_copies);
	tcase_add_test(t, status_names_the_source);
	suite_add_tcase(s, t);
	return s;
}
