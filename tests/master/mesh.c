/* SPDX-License-Identifier: MIT
 *
 * The master's core: links between all hosts of a ring, and the routes of operations.
 */
#include <stdio.h>
#include <string.h>

#include "common/cc_route.h"
#include "tests/common/testlib.h"
#include "tests/master/fake.h"
#include "tests/master/suites.h"
#include "tests/master/takeover.h"

#define HOSTS_MAX 65u
#define TAG       5u

/* Elements of four bytes: the largest operand for which direct exchange is chosen. */
#define MOST (UINT64_C(1) << 18)

static struct fk f;
static struct fk_host *h[HOSTS_MAX];
static struct fk_peer p[HOSTS_MAX];

static void setup(void)
{
	fk_init(&f, NULL);
}

static void teardown(void)
{
	fk_free(&f);
}

/* Starts again with a master that has this algorithm. */
static void configure(enum ccm_algorithm algorithm)
{
	const struct ccm_config cfg = {
		.run = {{1}}, .run_key = {{2}}, .segment_max = 4096, .algorithm = algorithm};

	fk_free(&f);
	fk_init(&f, &cfg);
}

/* Connects n hosts with one accepted peer each in group 0. Their ring is in this order. */
static void run_of(uint32_t n)
{
	char name[16], addr[32];
	uint32_t i;

	for (i = 0; i < n; i++) {
		(void)snprintf(name, sizeof name, "h%u", i);
		(void)snprintf(addr, sizeof addr, "10.0.0.%u", 1 + i);
		h[i] = fk_host(&f, name, addr);
		p[i] = fk_join(h[i], 0);
	}
	fk_topo(&p[0]);
	ck_assert_uint_eq(fk_status(&f).accepted, n);
	fk_forget(&f);
}

static void say_mesh(struct fk_host *x, uint32_t group, bool up, uint32_t reopens)
{
	struct wm_msg m = {
		.type = WM_MESH, .u.mesh = {.group = group, .up = up, .reopens = reopens}};

	fk_send(x, &m);
}

/* The first n hosts report that their links to all others are up. */
static void mesh_up(uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		say_mesh(h[i], 0, true, 0);
}

static void mesh_of(uint32_t n)
{
	run_of(n);
	mesh_up(n);
}

/* One end of the link from h[from] to h[to] has lost it. */
static void lose(uint32_t from, uint32_t to, bool inbound)
{
	struct wm_msg m = {.type = WM_LINK_LOST};

	m.u.link_lost.agent = h[inbound ? from : to]->id;
	m.u.link_lost.inbound = inbound;
	(void)snprintf(m.u.link_lost.text, sizeof m.u.link_lost.text, "reset");
	fk_send(h[inbound ? to : from], &m);
}

/* Lets the peers of the first n hosts vote. Returns the sequence number, and checks the route. */
static uint64_t start_with(uint32_t n, struct wm_op_params params, enum cc_algo route)
{
	const struct wm_op_start *s;
	uint64_t seq = 0;
	uint32_t i;

	fk_forget(&f);
	for (i = 0; i < n; i++)
		fk_vote_params(&p[i], TAG, params);
	for (i = 0; i < n; i++) {
		s = &fk_take(h[i], WM_OP_START)->u.op_start;
		ck_assert_uint_eq(s->route, route);
		ck_assert(i == 0 || s->seq == seq);
		seq = s->seq;
	}
	return seq;
}

static uint64_t start(uint32_t n, enum cc_algo route)
{
	return start_with(n, fk_params, route);
}

/* Completes the operation. Checks that its end reserves the next number for this route. Returns
 * this number. */
static uint64_t finish(uint32_t n, uint64_t seq, enum cc_algo next_route)
{
	const struct wm_op_done *d;
	uint64_t next = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		fk_report(h[i], seq, true);
	for (i = 0; i < n; i++) {
		d = &fk_take(h[i], WM_OP_DONE)->u.op_done;
		ck_assert_uint_eq(d->seq, seq);
		ck_assert_uint_gt(d->next, seq);
		ck_assert_uint_eq(d->next_route, next_route);
		next = d->next;
	}
	fk_forget(&f);
	return next;
}

/* Does an operation along this route. */
static void operate(uint32_t n, enum cc_algo route)
{
	(void)finish(n, start(n, route), route);
}

static size_t count_all(uint32_t n, enum wm_type type)
{
	size_t sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum += fk_count(h[i], type);
	return sum;
}

static void expect_aborts(uint32_t n, uint64_t seq, const char *text)
{
	const struct wm_op_abort *x;
	uint32_t i;

	for (i = 0; i < n; i++) {
		x = &fk_take(h[i], WM_OP_ABORT)->u.op_abort;
		ck_assert_uint_eq(x->seq, seq);
		ck_assert_uint_eq(x->code, WIRE_RANK_CONNECTION_LOST);
		assert_contains(x->text, text);
	}
}

/* ---- the other hosts in WM_ROUND ---- */

/* Checks that the ring of each of the n hosts has all others: those after the next host, in the
 * order of the ring. */
static void check_others(uint32_t n)
{
	const struct fk_host *at[HOSTS_MAX] = {NULL};
	uint32_t i, k;

	for (i = 0; i < n; i++)
		at[h[i]->round.rings[0].pos] = h[i];
	for (i = 0; i < n; i++) {
		const struct wm_ring *r = &h[i]->round.rings[0];

		ck_assert_uint_eq(r->hosts, n);
		ck_assert_uint_eq(r->n_others, n - 2);
		for (k = 0; k < n - 2; k++) {
			const struct fk_host *x = at[(r->pos + 2 + k) % n];
			const struct wm_endpoint *to = &r->others[k];

			ck_assert(cc_id_eq(&to->agent, &x->id));
			ck_assert_str_eq(to->name, x->name);
			ck_assert_uint_eq(to->port, 1000 + x->conn);
			ck_assert_uint_eq(to->conn, x->conn);
			ck_assert_uint_eq(to->n_addrs, 1);
			ck_assert_uint_eq(to->addrs[0].ip[3], x->conn);
		}
	}
}

START_TEST(round_has_all_other_hosts)
{
	static const uint32_t sizes[] = {3, 4, 7, 64};

	run_of(sizes[_i]);
	fk_manual(&f);
	lose(0, 1, false);
	check_others(sizes[_i]);
}
END_TEST

START_TEST(ring_of_two_or_too_many_hosts_has_no_mesh)
{
	uint32_t n = _i == 0 ? 1 : _i == 1 ? 2 : HOSTS_MAX, i;

	run_of(n);
	fk_join(h[0], 1);
	fk_manual(&f);
	for (i = 0; i < n; i++)
		fk_topo(&p[i]);
	for (i = 0; i < n; i++) {
		ck_assert_uint_eq(h[i]->round.rings[0].hosts, n);
		ck_assert_uint_eq(h[i]->round.rings[0].n_others, 0);
	}
	for (i = 0; i < n; i++)
		fk_round_report(h[i], NULL, NULL);
	for (i = 0; i < n; i++)
		say_mesh(h[i], 0, true, 0);
	fk_forget(&f);
	if (n > 2) { /* a link beside the ring */
		lose(0, 7, true);
		ck_assert_uint_eq(count_all(n, WM_LINK_REOPEN), 0);
	}
	if (n > 1)
		(void)start_with(n, fk_params, CC_ALGO_RING);
}
END_TEST

/* Rings in the order in which the peers of the host have joined. */
static uint32_t others_of(const struct fk_host *x, uint32_t group)
{
	uint32_t i = 0;

	while (x->round.rings[i].group != group)
		ck_assert_uint_lt(++i, x->round.n_rings);
	return x->round.rings[i].n_others;
}

/* A frame has room for WM_OTHERS_MAX other hosts. The first 64 hosts are in four groups. 12 hosts
 * are in group 4, the last of them in no other group. 10 hosts are in group 5. */
START_TEST(round_has_a_limited_number_of_other_hosts)
{
	uint32_t i, g;

	ck_assert_uint_eq(WM_OTHERS_MAX, 256);
	f.quiet = true;
	for (i = 0; i < HOSTS_MAX; i++)
		h[i] = fk_host(&f, "h", "10.0.0.1");
	p[0] = fk_join(h[0], 0);
	for (i = 1; i < 4 * 64; i++)
		(void)fk_join(h[i % 64], i / 64);
	for (i = 0; i < 12; i++)
		(void)fk_join(h[i < 11 ? i : 64], 4);
	for (i = 0; i < 10; i++)
		(void)fk_join(h[i], 5);
	fk_manual(&f);
	fk_topo(&p[0]); /* admits all others */
	for (g = 0; g < 4; g++)
		for (i = 0; i < 64; i++)
			ck_assert_uint_eq(others_of(h[i], g), 62);
	for (i = 0; i < 11; i++)
		ck_assert_uint_eq(others_of(h[i], 4), 0);
	ck_assert_uint_eq(others_of(h[64], 4), 10);
	for (i = 0; i < 10; i++)
		ck_assert_uint_eq(others_of(h[i], 5), 8);
}
END_TEST

/* ---- which route ---- */

START_TEST(route_is_the_ring_until_all_hosts_have_reported)
{
	uint32_t i;

	run_of(3);
	for (i = 0; i < 3; i++) {
		operate(3, CC_ALGO_RING);
		say_mesh(h[i], 0, true, 0);
	}
	operate(3, CC_ALGO_DIRECT);
	say_mesh(h[1], 0, false, 0);
	operate(3, CC_ALGO_RING);
	say_mesh(h[1], 0, true, 0);
	operate(3, CC_ALGO_DIRECT);
}
END_TEST

START_TEST(reports_about_other_groups_do_not_count)
{
	struct fk_peer more;

	run_of(3);
	more = fk_admit(h[2], 1, p, 3); /* group 1 has one host */
	ck_assert(fk_present(&more));
	mesh_up(2);
	say_mesh(h[2], 1, true, 0);
	say_mesh(h[2], 9, true, 0);
	operate(3, CC_ALGO_RING);
	say_mesh(h[2], 0, true, 0);
	operate(3, CC_ALGO_DIRECT);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

START_TEST(route_depends_on_size_and_quantization)
{
	struct wm_op_params params = fk_params;
	enum cc_algo route = CC_ALGO_DIRECT;
	uint64_t seq;

	mesh_of(3);
	switch (_i) {
	case 0:
		params.count = MOST;
		break;
	case 1:
		params.count = MOST + 1;
		route = CC_ALGO_RING;
		break;
	case 2: /* the same number of elements of eight bytes */
		params.count = MOST;
		params.dtype = 11;
		route = CC_ALGO_RING;
		break;
	case 3: /* eager */
		params.quant.algo = 1;
		break;
	default:
		params.count = 100 * MOST;
		params.quant.algo = 1;
		break;
	}
	seq = start_with(3, params, route);
	(void)finish(3, seq, route);
}
END_TEST

START_TEST(ring_algorithm_opens_no_other_links)
{
	configure(CCM_ALGORITHM_RING);
	run_of(3);
	fk_join(h[0], 0);
	fk_topo(&p[0]);
	fk_topo(&p[1]);
	fk_topo(&p[2]);
	ck_assert_uint_eq(fk_take(h[0], WM_ROUND)->u.round.rings[0].n_others, 0);
}
END_TEST

START_TEST(configuration_forces_the_route)
{
	static const enum ccm_algorithm algorithms[] = {CCM_ALGORITHM_DIRECT, CCM_ALGORITHM_TREE};
	static const enum cc_algo routes[] = {CC_ALGO_DIRECT, CC_ALGO_TREE};
	struct wm_op_params params = fk_params;
	enum cc_algo route = routes[_i % 2];

	configure(algorithms[_i % 2]);
	run_of(3);
	params.count = _i / 2 == 1 ? MOST + 1 : 100;
	params.quant.algo = _i / 2 == 2;
	(void)finish(3, start_with(3, params, CC_ALGO_RING), CC_ALGO_RING);
	mesh_up(3);
	(void)finish(3, start_with(3, params, route), route);
}
END_TEST

/* Two hosts have no other route, whatever is configured. */
START_TEST(no_route_is_forced_on_two_hosts)
{
	configure(CCM_ALGORITHM_DIRECT);
	mesh_of(2);
	operate(2, CC_ALGO_RING);
}
END_TEST

START_TEST(synchronization_has_no_route)
{
	const struct wm_op_start *s;
	uint32_t i;

	configure(CCM_ALGORITHM_TREE);
	mesh_of(3);
	for (i = 0; i < 3; i++)
		fk_sync(&p[i], fk_candidate(0, 1));
	s = &fk_take(h[0], WM_OP_START)->u.op_start;
	ck_assert(s->is_sync);
	ck_assert_uint_eq(s->route, CC_ALGO_RING);
	fk_forget(&f);
	lose(0, 2, true);
	ck_assert_uint_eq(count_all(3, WM_OP_ABORT), 0);
}
END_TEST

/* ---- a new ring ---- */

START_TEST(larger_ring_needs_a_new_mesh)
{
	mesh_of(3);
	h[3] = fk_host(&f, "h3", "10.0.0.4");
	p[3] = fk_admit(h[3], 0, p, 3);
	operate(4, CC_ALGO_RING);
	say_mesh(h[3], 0, true, 0);
	operate(4, CC_ALGO_RING);
	mesh_up(3);
	operate(4, CC_ALGO_DIRECT);
}
END_TEST

/* The hosts that remain have links to each other. */
START_TEST(host_that_leaves_does_not_end_the_mesh)
{
	mesh_of(4);
	if (_i == 0)
		fk_leave(&p[3], WM_LEAVE_CLEAN);
	else
		fk_close(h[3], "killed");
	operate(3, CC_ALGO_DIRECT);
	say_mesh(h[0], 0, false, 0);
	operate(3, CC_ALGO_RING);
}
END_TEST

/* The round has no newcomers (0), or a newcomer on a host of the ring (1), or reopens a link of the
 * ring (2). */
START_TEST(mesh_is_kept_if_the_ring_stays)
{
	uint64_t rounds;
	uint32_t i;

	mesh_of(3);
	rounds = fk_status(&f).rounds;
	if (_i == 1)
		fk_join(h[1], 1);
	for (i = 0; i < 3 && _i < 2; i++)
		fk_topo(&p[i]);
	if (_i == 2)
		lose(0, 1, true);
	ck_assert_uint_eq(fk_status(&f).rounds, rounds + (_i > 0));
	operate(3, CC_ALGO_DIRECT);
}
END_TEST

/* Links of its mesh may have broken meanwhile, which its agent reports when it has the ring. */
START_TEST(mesh_of_a_host_that_came_back_is_not_known)
{
	uint32_t i;

	mesh_of(4);
	fk_cut(h[3], "reset");
	h[3] = fk_reconnect(h[3]);
	p[3] = fk_join_again(&p[3], h[3], WM_JOIN_ACCEPTED);
	say_mesh(h[3], 0, false, 0); /* it is in no ring */
	fk_resumed(h[3]);
	for (i = 0; i < 4; i++)
		ck_assert_uint_eq(fk_take(h[i], WM_COMMIT)->u.commit.view.global, 4);
	mesh_up(3);
	operate(4, CC_ALGO_RING);
	say_mesh(h[3], 0, true, 0);
	operate(4, CC_ALGO_DIRECT);
}
END_TEST

/* The last member of a host leaves, while a newcomer of the host waits. When it has been admitted,
 * the host opens its links again. */
START_TEST(mesh_of_a_host_that_was_outside_the_ring_is_not_known)
{
	struct fk_peer more;

	mesh_of(4);
	more = fk_join(h[3], 0);
	fk_leave(&p[3], WM_LEAVE_CLEAN);
	operate(3, CC_ALGO_DIRECT);
	p[3] = more;
	fk_topo(&p[0]);
	fk_topo(&p[1]);
	fk_topo(&p[2]);
	ck_assert_int_eq(fk_info(&more).phase, CCM_PEER_ACCEPTED);
	mesh_up(3);
	operate(4, CC_ALGO_RING);
	say_mesh(h[3], 0, true, 0);
	operate(4, CC_ALGO_DIRECT);
}
END_TEST

/* ---- lost links ---- */

/* h[2] is the other host of h[0]. Its end of the link is lost, and h[0] does not know. */
START_TEST(owner_reopens_a_link_that_is_lost_at_the_other_end)
{
	uint32_t i;

	mesh_of(3);
	for (i = 1; i <= 5; i++) {
		fk_forget(&f);
		lose(0, 2, true);
		ck_assert_uint_eq(h[0]->n, 1);
		ck_assert(cc_id_eq(&fk_take(h[0], WM_LINK_REOPEN)->u.link_reopen.agent, &h[2]->id));
		ck_assert_uint_eq(h[1]->n + h[2]->n, 0);
		operate(3, CC_ALGO_RING);
		say_mesh(h[0], 0, true, i - 1); /* sent before it got the order */
		operate(3, CC_ALGO_RING);
		say_mesh(h[0], 0, true, i);
		operate(3, CC_ALGO_DIRECT);
	}
}
END_TEST

/* The owner opens the link again by itself. */
START_TEST(link_that_its_owner_has_lost_is_not_ordered)
{
	mesh_of(3);
	lose(0, 2, false);
	ck_assert_uint_eq(count_all(3, WM_LINK_REOPEN) + count_all(3, WM_ROUND), 0);
	operate(3, CC_ALGO_RING);
	say_mesh(h[0], 0, false, 0);
	say_mesh(h[0], 0, true, 0);
	operate(3, CC_ALGO_DIRECT);
}
END_TEST

START_TEST(link_of_several_meshes_is_reopened_once)
{
	struct fk_peer x[3];
	uint32_t i;

	mesh_of(3);
	for (i = 0; i < 3; i++)
		x[i] = fk_join(h[i], 1);
	for (i = 0; i < 3; i++)
		fk_topo(&p[i]);
	for (i = 0; i < 3; i++)
		say_mesh(h[i], 1, true, 0);
	fk_forget(&f);
	lose(0, 2, true);
	ck_assert_uint_eq(fk_count(h[0], WM_LINK_REOPEN), 1);
	operate(3, CC_ALGO_RING);
	say_mesh(h[0], 0, true, 1);
	operate(3, CC_ALGO_DIRECT);
	for (i = 0; i < 3; i++)
		fk_vote(&x[i], TAG);
	ck_assert_uint_eq(fk_take(h[0], WM_OP_START)->u.op_start.route, CC_ALGO_RING);
}
END_TEST

/* The link is in the ring, or leads to a host outside the ring, or its owner is disconnected. */
START_TEST(no_link_beside_the_mesh_is_reopened)
{
	mesh_of(4);
	fk_manual(&f);
	if (_i == 0) {
		lose(0, 1, true);
		ck_assert(h[0]->round.rings[0].reopen);
	} else if (_i == 1) {
		h[4] = fk_host(&f, "h4", "10.0.0.5");
		lose(0, 4, true);
	} else {
		fk_cut(h[0], "reset");
		lose(0, 2, true);
	}
	ck_assert_uint_eq(count_all(4, WM_LINK_REOPEN), 0);
}
END_TEST

/* Returns the ring of group 1 in the last round of the host. */
static const struct wm_ring *other_ring(const struct fk_host *x)
{
	uint32_t i;

	for (i = 0; i < x->round.n_rings; i++)
		if (x->round.rings[i].group == 1)
			return &x->round.rings[i];
	ck_abort_msg("no ring of group 1");
}

/* The ring of another group gets a link of the mesh. Operations may use this link (0). It is opened
 * again if the mesh is not up (1), or if the link is lost at its other end (2). */
START_TEST(link_of_the_mesh_is_kept_for_another_ring)
{
	bool reopen = _i > 0;
	uint32_t i;

	mesh_of(3);
	p[3] = fk_admit(h[0], 1, p, 3);
	p[4] = fk_join(h[2], 1);
	if (_i == 1)
		say_mesh(h[0], 0, false, 0);
	fk_manual(&f);
	for (i = 0; i < 4; i++)
		fk_topo(&p[i]);
	if (_i == 2)
		lose(0, 2, true);
	ck_assert(cc_id_eq(&other_ring(h[0])->next.agent, &h[2]->id));
	ck_assert(other_ring(h[0])->reopen == reopen);
	ck_assert(other_ring(h[2])->prev_reopens == reopen);
}
END_TEST

/* The ring of another group avoids a pair of hosts, and gets links of the mesh. An operation uses
 * them, although one host has just reported that its mesh is not up. */
START_TEST(link_of_an_operation_is_kept_for_another_ring)
{
	struct fk_peer all[7];
	uint32_t i, k, kept = 0;

	mesh_of(3);
	memcpy(all, p, 3 * sizeof *p);
	h[3] = fk_host(&f, "h3", "10.0.0.4");
	for (i = 0; i < 4; i++)
		all[3 + i] = fk_admit(h[i], 1, all, 3 + i);
	(void)start(3, CC_ALGO_DIRECT);
	for (i = 0; i < 3; i++)
		say_mesh(h[i], 0, false, 0);
	for (k = 0; k < 3; k++) {
		for (i = 0; i < 4; i++)
			fk_vote(&all[3 + i], TAG);
		fk_forget(&f);
		if (k == 2)
			fk_manual(&f);
		lose(2, 3, false);
	}
	for (i = 0; i < 4; i++) /* now the master plans the new ring */
		fk_round_report(h[i], NULL, NULL);
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 3; k++) {
			if (!cc_id_eq(&other_ring(h[i])->next.agent, &h[k]->id))
				continue;
			ck_assert(!other_ring(h[i])->reopen);
			kept += k != (i + 1) % 3;
		}
	}
	ck_assert_uint_gt(kept, 0);
	ck_assert_uint_eq(count_all(3, WM_OP_ABORT), 3); /* of group 1 */
}
END_TEST

START_TEST(operation_over_the_mesh_is_interrupted)
{
	struct wm_op_params params = fk_params;
	enum cc_algo route = CC_ALGO_DIRECT;
	uint64_t generation = 0, seq;

	mesh_of(3);
	if (_i >= 2) {
		params.quant.algo = 1;
		params.count = MOST;
	}
	seq = start_with(3, params, route);
	fk_report(h[0], seq, true);
	generation = fk_generation(h[0], 0);
	lose(0, 2, _i % 2 == 0);
	ck_assert_uint_gt(fk_generation(h[0], 0), generation);
	expect_aborts(3, seq, "the link from host h0 to host h2 broke: reset");
	ck_assert_uint_eq(fk_count(h[0], WM_LINK_REOPEN), _i % 2 == 0);
	operate(3, CC_ALGO_RING);
}
END_TEST

START_TEST(operation_along_the_ring_is_not_interrupted)
{
	struct wm_op_params params = fk_params;
	uint64_t seq;

	run_of(3);
	if (_i == 0) { /* it has started before the mesh was up */
		seq = start(3, CC_ALGO_RING);
		mesh_up(3);
	} else {
		mesh_up(3);
		params.count = MOST + 1;
		seq = start_with(3, params, CC_ALGO_RING);
	}
	lose(0, 2, true);
	ck_assert_uint_eq(count_all(3, WM_OP_ABORT), 0);
	(void)finish(3, seq, CC_ALGO_RING);
}
END_TEST

/* Votes for an operation that has not started remain valid. */
START_TEST(vote_is_not_interrupted)
{
	mesh_of(3);
	fk_vote(&p[0], TAG);
	fk_vote(&p[1], TAG);
	lose(0, 2, true);
	ck_assert_uint_eq(count_all(3, WM_OP_ABORT), 0);
	fk_vote(&p[2], TAG);
	ck_assert_uint_eq(fk_take(h[0], WM_OP_START)->u.op_start.route, CC_ALGO_RING);
}
END_TEST

START_TEST(broken_link_of_the_ring_interrupts_operations_over_the_mesh)
{
	uint64_t seq;

	mesh_of(3);
	seq = start(3, CC_ALGO_DIRECT);
	lose(0, 1, true);
	expect_aborts(3, seq, "the link from host h0 to host h1 broke: reset");
	ck_assert_uint_eq(fk_count(h[0], WM_LINK_REOPEN), 0);
	operate(3, CC_ALGO_DIRECT); /* the round has opened the link again */
}
END_TEST

/* An agent may not send what only a master sends. */
START_TEST(order_to_reopen_from_an_agent_is_a_violation)
{
	struct wm_msg m = {.type = WM_LINK_REOPEN};

	run_of(3);
	m.u.link_reopen.agent = h[1]->id;
	fk_send(h[0], &m);
	ck_assert(!fk_present(&p[0]));
	ck_assert(fk_present(&p[1]));
}
END_TEST

/* ---- speculative starts ---- */

static void vote_spec(uint32_t i, uint64_t seq)
{
	struct cc_id id = p[i].id;
	struct wm_msg msg = {.type = WM_OP_VOTE};

	msg.u.op_vote = (struct wm_op_vote){
		.tag = TAG, .params = fk_params, .n_peers = 1, .peers = &id, .spec_seq = seq};
	msg.u.op_vote.generation = fk_generation(h[i], 0);
	fk_send(h[i], &msg);
}

static void all_spec(uint64_t seq)
{
	uint32_t i;

	for (i = 0; i < 3; i++)
		vote_spec(i, seq);
	ck_assert_uint_eq(count_all(3, WM_OP_START), 0);
}

/* The route is that of the time when the number was reserved. So only an operation whose number was
 * reserved with a mesh is interrupted when a link of the mesh is lost. */
START_TEST(speculative_start_takes_the_reserved_route)
{
	bool over_mesh = _i == 0;
	uint64_t seq;

	run_of(3);
	if (over_mesh)
		mesh_up(3);
	seq = finish(3, start(3, over_mesh ? CC_ALGO_DIRECT : CC_ALGO_RING),
		over_mesh ? CC_ALGO_DIRECT : CC_ALGO_RING);
	mesh_up(3);
	all_spec(seq);
	fk_report(h[1], seq, true);
	lose(0, 2, true);
	if (over_mesh) {
		expect_aborts(3, seq, "the link from host h0 to host h2 broke");
		return;
	}
	ck_assert_uint_eq(count_all(3, WM_OP_ABORT), 0);
	fk_report(h[0], seq, true);
	fk_report(h[2], seq, true);
	ck_assert_uint_eq(fk_take(h[0], WM_OP_DONE)->u.op_done.seq, seq);
}
END_TEST

/* One agent has not started, because a link of its mesh is down. */
START_TEST(rolled_back_start_takes_the_route_of_the_moment)
{
	uint64_t seq;

	mesh_of(3);
	seq = finish(3, start(3, CC_ALGO_DIRECT), CC_ALGO_DIRECT);
	vote_spec(0, seq);
	if (_i == 0)
		say_mesh(h[1], 0, false, 0);
	fk_vote(&p[1], TAG);
	vote_spec(2, seq);
	ck_assert_uint_eq(fk_take(h[0], WM_OP_START)->u.op_start.route,
		_i == 0 ? CC_ALGO_RING : CC_ALGO_DIRECT);
}
END_TEST

/* Only one end may know that data of a speculative start is lost, so the operation starts again,
 * whether the link is lost before the votes (1, 2) or between them (0). In case 2 it is open again.
 */
START_TEST(speculative_start_over_a_lost_link_is_void)
{
	const struct wm_op_start *s;
	uint64_t seq;
	uint32_t i;

	mesh_of(3);
	seq = finish(3, start(3, CC_ALGO_DIRECT), CC_ALGO_DIRECT);
	if (_i == 0)
		vote_spec(0, seq);
	lose(0, 2, true);
	if (_i == 2)
		say_mesh(h[0], 0, true, 1);
	for (i = _i == 0; i < 3; i++)
		vote_spec(i, seq);
	for (i = 0; i < 3; i++) {
		s = &fk_take(h[i], WM_OP_START)->u.op_start;
		ck_assert_uint_gt(s->seq, seq);
		ck_assert_uint_eq(s->route, _i == 2 ? CC_ALGO_DIRECT : CC_ALGO_RING);
	}
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
}
END_TEST

/* ---- the next master ---- */

/* The agent of tk.h[i] has started the attempt with this route (seq), or only voted (seq 0). */
static void vote_route(size_t i, uint64_t seq, enum cc_algo route)
{
	struct cc_id id = tk.p[i].id;
	struct wm_msg msg = {.type = WM_OP_VOTE};

	msg.u.op_vote = (struct wm_op_vote){.tag = 1,
		.params = fk_params,
		.n_peers = 1,
		.peers = &id,
		.seq = seq,
		.route = route};
	fk_send(tk.h[i], &msg);
}

/* tk.h[2] has lost the link from tk.h[0]. */
static void tk_lose(void)
{
	struct wm_msg m = {.type = WM_LINK_LOST};

	m.u.link_lost.agent = tk.h[0]->id;
	m.u.link_lost.inbound = true;
	(void)snprintf(m.u.link_lost.text, sizeof m.u.link_lost.text, "reset");
	fk_send(tk.h[2], &m);
}

START_TEST(next_master_continues_an_operation_with_its_route)
{
	enum cc_algo route = (enum cc_algo)_i;
	size_t i;

	tk.know[1].r.last_seq = TK_SEQ - 1;
	tk_all_come_back();
	for (i = 0; i < 3; i++)
		vote_route(i, i == 1 ? 0 : TK_SEQ, i == 1 ? CC_ALGO_RING : route);
	tk_all_end();
	tk_no_error();
	/* The start had not reached b. */
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_START)->u.op_start.route, route);
	tk_lose();
	ck_assert_uint_eq(fk_count(tk.h[0], WM_LINK_REOPEN), 1);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_count(tk.h[i], WM_OP_ABORT), route != CC_ALGO_RING);
	if (route == CC_ALGO_RING)
		for (i = 0; i < 3; i++)
			fk_report(tk.h[i], TK_SEQ, true);
	tk_works();
}
END_TEST

/* The agents report lost links with their snapshots, or after them. */
START_TEST(link_lost_before_the_next_master_interrupts_the_operation)
{
	size_t i;

	tk_all_come_back();
	for (i = 0; i < 3; i++)
		vote_route(i, TK_SEQ, CC_ALGO_DIRECT);
	fk_report(tk.h[1], TK_SEQ, true);
	tk_end(2);
	if (_i == 0)
		tk_lose();
	tk_end(1);
	tk_end(0);
	if (_i == 1)
		tk_lose();
	for (i = 0; i < 3; i++)
		assert_contains(fk_take(tk.h[i], WM_OP_ABORT)->u.op_abort.text,
			"host a to host c broke: reset");
	tk_none_of(WM_OP_DONE);
	tk_works();
}
END_TEST

/* Reports that come with the snapshots are repeated after the commit. */
START_TEST(next_master_hears_of_the_mesh_again)
{
	size_t i;

	tk_all_come_back();
	for (i = 0; i < 3; i++) {
		say_mesh(tk.h[i], 0, true, 0);
		tk_end(i);
	}
	tk_no_error();
	for (i = 0; i < 3; i++) {
		ck_assert_ptr_nonnull(fk_take(tk.h[i], WM_COMMIT));
		fk_vote(&tk.p[i], 1);
	}
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_START)->u.op_start.route, CC_ALGO_RING);
	for (i = 0; i < 3; i++) {
		say_mesh(tk.h[i], 0, true, 0);
		fk_vote(&tk.p[i], 2);
	}
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_START)->u.op_start.route, CC_ALGO_DIRECT);
}
END_TEST

static void add_rounds(Suite *s)
{
	TCase *tc = tcase_create("rounds");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, round_has_all_other_hosts, 0, 4);
	tcase_add_loop_test(tc, ring_of_two_or_too_many_hosts_has_no_mesh, 0, 3);
	tcase_add_test(tc, round_has_a_limited_number_of_other_hosts);
	tcase_add_test(tc, larger_ring_needs_a_new_mesh);
	tcase_add_loop_test(tc, host_that_leaves_does_not_end_the_mesh, 0, 2);
	tcase_add_loop_test(tc, mesh_is_kept_if_the_ring_stays, 0, 3);
	tcase_add_test(tc, mesh_of_a_host_that_came_back_is_not_known);
	tcase_add_test(tc, mesh_of_a_host_that_was_outside_the_ring_is_not_known);
	suite_add_tcase(s, tc);
}

static void add_routes(Suite *s)
{
	TCase *tc = tcase_create("routes");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, route_is_the_ring_until_all_hosts_have_reported);
	tcase_add_test(tc, reports_about_other_groups_do_not_count);
	tcase_add_loop_test(tc, route_depends_on_size_and_quantization, 0, 5);
	tcase_add_loop_test(tc, configuration_forces_the_route, 0, 6);
	tcase_add_test(tc, ring_algorithm_opens_no_other_links);
	tcase_add_test(tc, no_route_is_forced_on_two_hosts);
	tcase_add_test(tc, synchronization_has_no_route);
	tcase_add_loop_test(tc, speculative_start_takes_the_reserved_route, 0, 2);
	tcase_add_loop_test(tc, rolled_back_start_takes_the_route_of_the_moment, 0, 2);
	tcase_add_loop_test(tc, speculative_start_over_a_lost_link_is_void, 0, 3);
	suite_add_tcase(s, tc);
}

static void add_losses(Suite *s)
{
	TCase *tc = tcase_create("losses");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, owner_reopens_a_link_that_is_lost_at_the_other_end);
	tcase_add_test(tc, link_that_its_owner_has_lost_is_not_ordered);
	tcase_add_test(tc, link_of_several_meshes_is_reopened_once);
	tcase_add_loop_test(tc, no_link_beside_the_mesh_is_reopened, 0, 3);
	tcase_add_loop_test(tc, link_of_the_mesh_is_kept_for_another_ring, 0, 3);
	tcase_add_test(tc, link_of_an_operation_is_kept_for_another_ring);
	tcase_add_loop_test(tc, operation_over_the_mesh_is_interrupted, 0, 4);
	tcase_add_loop_test(tc, operation_along_the_ring_is_not_interrupted, 0, 2);
	tcase_add_test(tc, vote_is_not_interrupted);
	tcase_add_test(tc, broken_link_of_the_ring_interrupts_operations_over_the_mesh);
	tcase_add_test(tc, order_to_reopen_from_an_agent_is_a_violation);
	suite_add_tcase(s, tc);
}

Suite *mesh_suite(void)
{
	Suite *s = suite_create("mesh");
	TCase *tc;

	add_rounds(s);
	add_routes(s);
	add_losses(s);
	tc = tcase_create("takeover");
	tcase_add_checked_fixture(tc, tk_setup, tk_teardown);
	tcase_add_loop_test(
		tc, next_master_continues_an_operation_with_its_route, 0, CC_ALGO_FIXED_COUNT);
	tcase_add_loop_test(tc, link_lost_before_the_next_master_interrupts_the_operation, 0, 2);
	tcase_add_test(tc, next_master_hears_of_the_mesh_again);
	suite_add_tcase(s, tc);
	return s;
}
