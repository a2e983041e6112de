/* SPDX-License-Identifier: MIT
 *
 * A process whose agent has died attaches to this agent, which takes over its memory and its
 * communicator.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_id.h"
#include "common/cc_shm.h"
#include "common/cc_sys.h"
#include "proto/wire_codes.h"
#include "tests/agentio/fixture.h"
#include "tests/agentio/suites.h"

#define BYTES 65536u

static struct fx f;
static struct master m;
static struct client c;
static struct cc_id peer, token;
static struct cc_addr name; /* an address that is not the master's any more; family 0: not used */
static struct cc_addr at;   /* the last known address, which is wrong; family 0: not used */
static unsigned fds_before;

static void setup(void)
{
	fx_start(&f, NULL);
	master_listen(&m);
	client_open(&f, &c);
	cc_random_id(&peer);
	cc_random_id(&token);
	name.family = at.family = 0;
	fds_before = fx_count_fds();
}

static void teardown(void)
{
	fx_check_alive(&f);
	client_close(&c);
	fx_stop(&f);
	master_close(&m);
}

/* Sends the attach. Returns when the master has received all that the agent sends about the peer.
 */
static void attach(void)
{
	struct wl_request q = {.type = WL_COMM_ATTACH,
		.master = name.family ? name : m.addr,
		.master_addr = at.family ? at : m.addr,
		.group = 1,
		.pool_size = 1,
		.peer = peer,
		.token = token,
		.run = m.run,
		.n_seqs = 2,
		.seqs = {11, 12}};
	bool joined = false, asked = false, resumed = false;
	struct wm_msg msg;

	client_send(&c, &q);
	master_take(&m, 1, &msg);
	ck_assert(cc_id_eq(&msg.u.hello.run, &m.run));
	while (!joined || !asked || !resumed) {
		master_next(&m, &msg);
		if (msg.type == WM_JOIN) {
			joined = true;
			ck_assert(cc_id_eq(&msg.u.join.peer, &peer));
			ck_assert(cc_id_eq(&msg.u.join.token, &token));
			ck_assert_uint_eq(msg.u.join.phase, WM_JOIN_ACCEPTED);
		} else if (msg.type == WM_OP_QUERY) {
			asked = true;
			ck_assert_uint_eq(msg.u.op_query.n, 2);
		}
		resumed = resumed || msg.type == WM_RESUME;
		wire_master_clear(&msg);
	}
}

static void welcome(void)
{
	struct wm_group_view own = {.group = 1, .world_size = 2, .generation = 4};
	struct wm_ring ring = {
		.group = 1, .hosts = 1, .pool_size = 1, .n_members = 1, .members = &peer};
	struct wm_msg msg = {.type = WM_OP_OUTCOMES,
		.u.op_outcomes = {.peer = peer,
			.n = 2,
			.v = {{11, WIRE_RANK_CONNECTION_LOST}, {12, WIRE_SUCCESS}}}};

	master_send(&m, &msg);
	msg = (struct wm_msg){
		.type = WM_ROUND, .u.round = {.round = 7, .n_rings = 1, .rings = &ring}};
	master_send(&m, &msg);
	master_expect(&m, WM_ROUND_REPORT, &msg);
	wire_master_clear(&msg);
	msg = (struct wm_msg){.type = WM_COMMIT,
		.u.commit = {.round = 7,
			.epoch = 9,
			.view = {.view_id = 3,
				.global = 2,
				.groups = 1,
				.largest = 2,
				.n = 1,
				.own = &own}}};
	master_send(&m, &msg);
}

START_TEST(a_process_attaches_with_its_memory_and_communicator)
{
	struct wl_request q = {.type = WL_REGION_ADOPT, .size = BYTES, .use = WL_REGION_REGISTERED};
	struct mem mem = {.size = BYTES};
	struct queue queue;
	struct shm_sqe e;
	struct wm_msg msg;
	struct wl_reply r;
	void *map;
	int fd, fds[3];

	ck_assert_int_eq(cc_shm_create("kept", BYTES, &fd, &map), 0);
	client_send_fds(&c, &q, &fd, 1);
	ck_assert(client_receive(&c, &r, NULL, 0));
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
	mem.region = r.region;
	attach();
	welcome();
	ck_assert(client_receive(&c, &r, fds, 3));
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
	ck_assert_uint_eq(r.generation, 4);
	ck_assert_uint_eq(r.done, 2); /* only the second attempt succeeded */
	queue = (struct queue){.comm = r.comm, .sq_bell = fds[1], .data_bell = fds[2]};
	ck_assert_int_eq(cc_shm_map(fds[0], SHM_SIZE, (void **)&queue.map), 0);
	close(fds[0]);
	/* The attributes show the connected state from the first moment. */
	ck_assert_uint_eq(
		atomic_load(&((struct shm_attr *)(void *)(queue.map + SHM_ATTR_OFF))->state),
		SHM_COMM_CONNECTED);
	e = queue_sum(0, 5, BYTES / 4, &mem);
	e.generation = 4;
	queue_push(&queue, &e);
	master_expect(&m, WM_OP_VOTE, &msg);
	ck_assert_uint_eq(msg.u.op_vote.generation, 4);
	wire_master_clear(&msg);
	m.seq = 20;
	master_finish_op(&m, master_started(&m, 5));
	ck_assert_uint_eq(queue_await(&queue, 0), WIRE_SUCCESS);
	ck_assert_uint_eq(queue_slot(&queue, 0)->seq, 21);
	queue_close(&queue);
	cc_shm_unmap(map, BYTES);
	close(fd);
}
END_TEST

START_TEST(an_attach_fails_if_the_peer_was_declared_lost)
{
	struct wm_msg msg = {.type = WM_KICK, .u.kick = {.code = WIRE_RANK_CONNECTION_LOST}};
	struct wl_reply r;

	attach();
	msg.u.kick.peer = peer;
	strcpy(msg.u.kick.text, "declared lost 3 s ago; connect again");
	master_send(&m, &msg);
	ck_assert(client_receive(&c, &r, NULL, 0));
	ck_assert_uint_eq(r.code, WIRE_RANK_CONNECTION_LOST);
	ck_assert_ptr_nonnull(strstr(r.text, "connect again"));
	ck_assert_uint_eq(fx_stats(&f).comms, 0);
}
END_TEST

/* The last agent had found the master at another address. This agent finds it there, too, and
 * publishes the address. */
START_TEST(an_attach_finds_a_master_that_has_moved)
{
	struct shm_attr *attr;
	struct wl_reply r;
	int fds[3];
	void *map;

	name = (struct cc_addr){.family = CC_INET4, .ip = {127, 0, 0, 1}, .port = 9};
	attach();
	welcome();
	ck_assert(client_receive(&c, &r, fds, 3));
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
	ck_assert_int_eq(cc_shm_map(fds[0], SHM_SIZE, &map), 0);
	attr = (struct shm_attr *)(void *)((char *)map + SHM_ATTR_OFF);
	ck_assert_uint_eq(atomic_load(&attr->at_family), CC_INET4);
	ck_assert_uint_eq(atomic_load(&attr->at_port), m.addr.port);
	ck_assert_uint_eq(atomic_load(&attr->at_ip[0]), 0x0100007f);
	cc_shm_unmap(map, SHM_SIZE);
	for (unsigned i = 0; i < 3; i++)
		close(fds[i]);
}
END_TEST

/* The host of the last address drops packets, like a host with a full backlog. The agent gives up
 * after a second without an answer. */
START_TEST(an_attach_does_not_wait_for_a_host_that_drops_packets)
{
	struct sockaddr_storage ss;
	uint64_t start = cc_now_ns();
	int listener, filler[4];
	socklen_t len;

	at = (struct cc_addr){.family = CC_INET4, .ip = {127, 0, 0, 1}};
	listener = cc_listen_tcp(&at, 0);
	ck_assert_int_ge(listener, 0);
	ck_assert_int_eq(listen(listener, 0), 0);
	len = cc_addr_to_sockaddr(&at, &ss);
	for (unsigned i = 0; i < 4; i++) {
		filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)!connect(filler[i], (struct sockaddr *)&ss, len);
	}
	attach();
	ck_assert_uint_lt(cc_now_ns() - start, 3000000000u);
	for (unsigned i = 0; i < 4; i++)
		close(filler[i]);
	close(listener);
}
END_TEST

static bool all_gone(const struct agentd_stats *s, uint64_t arg)
{
	(void)arg;
	return s->sessions == 0 && s->comms == 0 && s->runs == 0;
}

START_TEST(a_process_may_end_before_its_attach_is_answered)
{
	attach();
	client_close(&c);
	fx_await(&f, all_gone, 0);
	close(m.fd);
	m.fd = -1;
	ck_assert_uint_le(fx_count_fds(), fds_before);
	client_open(&f, &c);
}
END_TEST

Suite *attach_suite(void)
{
	Suite *s = suite_create("attach");
	TCase *t = tcase_create("attach");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_process_attaches_with_its_memory_and_communicator);
	tcase_add_test(t, an_attach_fails_if_the_peer_was_declared_lost);
	tcase_add_test(t, an_attach_finds_a_master_that_has_moved);
	tcase_add_test(t, an_attach_does_not_wait_for_a_host_that_drops_packets);
	tcase_add_test(t, a_process_may_end_before_its_attach_is_answered);
	suite_add_tcase(s, t);
	return s;
}
