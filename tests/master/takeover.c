/* SPDX-License-Identifier: MIT
 *
 * A run of three hosts whose master died. See takeover.h.
 */
#include "tests/master/takeover.h"

#include <check.h>

struct takeover tk;

void tk_setup(void)
{
	size_t i;

	memset(&tk, 0, sizeof tk);
	fk_init(&tk.f, NULL);
	tk.h[0] = fk_host(&tk.f, "a", "10.0.0.1");
	tk.h[1] = fk_host(&tk.f, "b", "10.0.0.2");
	tk.h[2] = fk_host(&tk.f, "c", "10.0.0.3");
	for (i = 0; i < 3; i++)
		tk.p[i] = fk_join(tk.h[i], 0);
	fk_topo(&tk.p[0]);
	for (i = 0; i < 3; i++) {
		tk.know[i].r = (struct wm_resume){.epoch = 2,
			.round = 2,
			.ring_epoch = 2,
			.last_seq = TK_SEQ,
			.ballots[WIRE_TOPOLOGY] = 4};
		tk.know[i].r.view = (struct wm_view){
			.global = 3, .groups = 1, .largest = 3, .view_id = 2, .n = 1};
		tk.know[i].own = (struct wm_group_view){.group = 0, .world_size = 3};
		tk.know[i].position = (struct wm_ring_position){.hosts = 3, .pos = (uint32_t)i};
	}
	fk_new_master(&tk.f, NULL);
}

void tk_teardown(void)
{
	fk_free(&tk.f);
}

void tk_connect(size_t i)
{
	tk.h[i] = fk_reconnect_as(tk.h[i], 1, false);
	tk.p[i].host = tk.h[i];
}

void tk_join(size_t i, enum wm_join_phase phase)
{
	tk.p[i] = fk_join_again(&tk.p[i], tk.h[i], phase);
}

void tk_lost(size_t i, size_t lost)
{
	struct wm_resume *r = &tk.know[i].r;

	tk.know[i].lost = tk.p[lost].id;
	r->view.n_lost = 1;
	r->view.view_id = 4;
	r->view.global = r->view.largest = tk.know[i].own.world_size = 2;
}

void tk_end(size_t i)
{
	struct wm_msg msg = {.type = WM_RESUME, .u.resume = tk.know[i].r};

	msg.u.resume.view.own = &tk.know[i].own;
	msg.u.resume.view.lost = &tk.know[i].lost;
	if (tk.know[i].position.hosts) {
		msg.u.resume.n_positions = 1;
		msg.u.resume.positions = &tk.know[i].position;
	}
	msg.u.resume.outcomes = tk.know[i].outcomes;
	fk_send(tk.h[i], &msg);
}

void tk_come_back(size_t i)
{
	tk_connect(i);
	tk_join(i, WM_JOIN_ACCEPTED);
}

void tk_all_come_back(void)
{
	size_t i;

	for (i = 0; i < 3; i++)
		tk_come_back(i);
}

void tk_all_end(void)
{
	size_t i;

	for (i = 0; i < 3; i++)
		tk_end(i);
}

void tk_none_of(enum wm_type type)
{
	uint32_t i;

	for (i = 0; i < tk.f.n_hosts; i++)
		ck_assert_uint_eq(fk_count(tk.f.hosts[i], type), 0);
}

void tk_no_error(void)
{
	tk_none_of(WM_OP_ABORT);
	tk_none_of(WM_KICK);
	tk_none_of(WM_REFUSE);
	ck_assert_uint_eq(fk_status(&tk.f).lost_members, 0);
}

void tk_works(void)
{
	uint64_t done = fk_status(&tk.f).ops_done, seq;
	size_t i;

	fk_forget(&tk.f);
	for (i = 0; i < 3; i++)
		fk_vote(&tk.p[i], 77);
	seq = fk_take(tk.h[0], WM_OP_START)->u.op_start.seq;
	ck_assert_uint_gt(seq, TK_SEQ);
	for (i = 0; i < 3; i++)
		fk_report(tk.h[i], seq, true);
	ck_assert_uint_eq(fk_status(&tk.f).ops_done, done + 1);
}
