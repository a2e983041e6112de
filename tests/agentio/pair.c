/* SPDX-License-Identifier: MIT */
#include "tests/agentio/pair.h"

#include <check.h>
#include <unistd.h>

#include "proto/wire_codes.h"

struct fx f;
struct master m;
struct client a, b;
struct queue qa, qb;
struct mem ma, mb;

void pair_begin(void (*tweak)(struct agentd_config *))
{
	fx_start(&f, tweak);
	master_listen(&m);
	master_join_two(&m, &f, &a, &qa, &b, &qb);
}

void pair_begin_with(void (*tweak)(struct agentd_config *), uint64_t bytes)
{
	pair_begin(tweak);
	ck_assert_uint_eq(client_alloc(&a, bytes, &ma), WIRE_SUCCESS);
	ck_assert_uint_eq(client_alloc(&b, bytes, &mb), WIRE_SUCCESS);
}

void pair_end(void)
{
	master_part_two(&m, &f, &a, &qa, &b, &qb);
}

static void start_ring(void (*tweak)(struct agentd_config *), uint32_t segment_max)
{
	fx_start(&f, tweak);
	master_listen(&m);
	m.segment_max = segment_max;
}

static void commit_ring(void)
{
	struct wm_group_view own = {.group = 1, .world_size = 3};
	struct wm_msg commit = {.type = WM_COMMIT,
		.u.commit = {.round = 1,
			.accept = true,
			.epoch = 1,
			.view = {.global = 3, .groups = 1, .largest = 3, .n = 1, .own = &own}}};
	struct wl_reply r;

	other_expect_success(&m);
	master_send(&m, &commit);
	ck_assert(client_receive(&a, &r, NULL, 0));
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
}

static void stop_ring(void)
{
	fx_check_alive(&f);
	client_close(&a);
	fx_stop(&f);
	queue_close(&qa);
	master_close(&m);
}

static void end_other(struct other *x, const int fds[2])
{
	close(x->listener);
	for (int i = 0; i < 2; i++)
		close(fds[i]);
}

void pair_begin_ring(
	void (*tweak)(struct agentd_config *), struct other *x, uint32_t segment_max, int fds[2])
{
	start_ring(tweak, segment_max);
	other_listen(x, 1);
	other_order(x, &f, &m, &a, &qa, &x->at, 1, false);
	other_accept_link(x, &m, fds);
	commit_ring();
}

void pair_end_ring(struct other *x, const int fds[2])
{
	stop_ring();
	end_other(x, fds);
}

static void expect_mesh(bool is_up)
{
	struct wm_msg msg;

	master_expect(&m, WM_MESH, &msg);
	ck_assert_uint_eq(msg.u.mesh.group, 1);
	ck_assert(msg.u.mesh.up == is_up);
}

void pair_begin_mesh_without_link(struct other x[2], int fds[2][2])
{
	start_ring(NULL, 65536);
	for (int i = 0; i < 2; i++)
		other_listen(&x[i], 1);
	other_order_mesh(&x[0], &x[1], &f, &m, &a, &qa);
	other_accept_link(&x[0], &m, fds[0]);
	commit_ring();
	expect_mesh(false);
}

void pair_begin_mesh(struct other x[2], int fds[2][2])
{
	pair_begin_mesh_without_link(x, fds);
	other_exchange(other_accept_probe(&x[1], &m));
	other_accept_link(&x[1], &m, fds[1]);
	expect_mesh(true);
}

void pair_end_mesh(struct other x[2], int fds[2][2])
{
	stop_ring();
	for (int i = 0; i < 2; i++)
		end_other(&x[i], fds[i]);
}
