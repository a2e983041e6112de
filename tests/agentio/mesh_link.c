/* SPDX-License-Identifier: MIT
 *
 * Links of a mesh: the agent probes the path, then opens the link. The test plays the master and
 * two other agents.
 */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

static struct other x[2]; /* the next host and the previous one */
static int fds[2][2];

static void setup(void)
{
	pair_begin_mesh_without_link(x, fds);
}

static void teardown(void)
{
	pair_end_mesh(x, fds);
}

static bool links_out_are(const struct agentd_stats *s, uint64_t n)
{
	return s->links_out == n;
}

static void accept_link(void)
{
	struct wm_msg msg;

	other_accept_link(&x[1], &m, fds[1]);
	master_expect(&m, WM_MESH, &msg);
	ck_assert(msg.u.mesh.up);
	fx_await(&f, links_out_are, 2);
}

START_TEST(link_is_opened_after_a_probe)
{
	other_exchange(other_accept_probe(&x[1], &m));
	accept_link();
}
END_TEST

/* An older agent answers without the bytes of a probe. */
START_TEST(agent_that_exchanges_no_bytes_gets_its_link)
{
	struct wlk_hello h;
	int fd = other_accept_stream(&x[1], &m, &h);

	ck_assert_uint_eq(h.stream, WLK_STREAM_PROBE);
	other_answer(fd, WLK_OK, "");
	close(fd);
	accept_link();
}
END_TEST

/* The other agent refuses the probe (0), or no data passes (1). The link is tried again when the
 * master orders it. */
START_TEST(link_is_not_opened_if_its_probe_fails)
{
	struct wm_msg msg = {.type = WM_LINK_REOPEN, .u.link_reopen.agent = x[1].id};
	struct wlk_hello h;
	int fd;

	if (_i == 0) {
		fd = other_accept_stream(&x[1], &m, &h);
		other_answer(fd, WLK_REFUSED_AGENT, "this is somebody else");
	} else {
		fd = other_accept_probe(&x[1], &m);
	}
	close(fd);
	fx_await(&f, links_out_are, 1);
	master_send(&m, &msg);
	other_exchange(other_accept_probe(&x[1], &m));
	accept_link();
}
END_TEST

/* Puts a ring of two hosts in force, which needs no link to x[1]. */
static void commit_without_mesh(void)
{
	struct wm_ring ring = {.group = 1,
		.hosts = 2,
		.pool_size = 1,
		.next = {.agent = x[0].id, .port = x[0].at.port, .n_addrs = 1, .addrs = {x[0].at}},
		.prev = x[0].id,
		.n_members = 1,
		.members = &x[0].peer};
	struct wm_group_view own = {.group = 1, .world_size = 2};
	struct wm_msg msg = {
		.type = WM_ROUND, .u.round = {.round = 2, .n_rings = 1, .rings = &ring}};

	master_send(&m, &msg);
	other_expect_success(&m);
	msg = (struct wm_msg){.type = WM_COMMIT,
		.u.commit = {.round = 2,
			.epoch = 2,
			.view = {.global = 2, .groups = 1, .largest = 2, .n = 1, .own = &own}}};
	master_send(&m, &msg);
}

/* The connection waits for the answer to its hello (0), or for the bytes of the other end (1). */
START_TEST(probe_ends_when_its_link_is_not_needed_any_more)
{
	struct pollfd closed = {.events = 0}, listener = {.fd = x[1].listener, .events = POLLIN};
	struct wlk_hello h;
	int ms = 0;

	if (_i == 0)
		closed.fd = other_accept_stream(&x[1], &m, &h);
	else
		closed.fd = other_accept_probe(&x[1], &m);
	commit_without_mesh();
	fx_await(&f, links_out_are, 1);
	/* A connection that the agent has closed is reset when a byte arrives. */
	do
		ck_assert_int_lt(ms++, FX_TIMEOUT_MS);
	while (send(closed.fd, "", 1, MSG_NOSIGNAL) == 1 && poll(&closed, 1, 1) == 0);
	ck_assert_int_eq(poll(&listener, 1, 0), 0);
	close(closed.fd);
	fds[1][0] = fds[1][1] = -1;
}
END_TEST

Suite *mesh_link_suite(void)
{
	Suite *s = suite_create("mesh_link");
	TCase *t = tcase_create("mesh_link");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, link_is_opened_after_a_probe);
	tcase_add_test(t, agent_that_exchanges_no_bytes_gets_its_link);
	tcase_add_loop_test(t, link_is_not_opened_if_its_probe_fails, 0, 2);
	tcase_add_loop_test(t, probe_ends_when_its_link_is_not_needed_any_more, 0, 2);
	suite_add_tcase(s, t);
	return s;
}
