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

void pair_begin_ring(struct other *x, uint32_t segment_max, int fds[2])
{
	struct wm_group_view own = {.group = 1, .world_size = 3};
	struct wm_msg commit = {.type = WM_COMMIT,
		.u.commit = {.round = 1,
			.accept = true,
			.epoch = 1,
			.view = {.global = 3, .groups = 1, .largest = 3, .n = 1, .own = &own}}};
	struct wl_reply r;

	fx_start(&f, NULL);
	master_listen(&m);
	m.segment_max = segment_max;
	other_listen(x, 1);
	other_order(x, &f, &m, &a, &qa, &x->at, 1, false);
	other_accept_link(x, &m, fds);
	other_expect_success(&m);
	master_send(&m, &commit);
	ck_assert(client_receive(&a, &r, NULL, 0));
	ck_assert_uint_eq(r.code, WIRE_SUCCESS);
}

void pair_end_ring(struct other *x, const int fds[2])
{
	fx_check_alive(&f);
	client_close(&a);
	fx_stop(&f);
	queue_close(&qa);
	master_close(&m);
	close(x->listener);
	for (int i = 0; i < 2; i++)
		close(fds[i]);
}
