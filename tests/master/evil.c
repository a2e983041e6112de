/* SPDX-License-Identifier: MIT
 *
 * The master's core takes over a run from hostile agents. Their messages are well-formed, but have
 * a bad order and bad numbers. ccm_check follows every step. The takeover must end, and no state of
 * the agents may remain.
 */
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/fake.h"
#include "tests/master/suites.h"

#define SEQUENCES 150
#define EVENTS    250
#define PEERS     6

static struct fk f;
static struct tl_rng rng;
static struct fk_host *h[PEERS];
static struct fk_peer p[PEERS];

static uint64_t pick(uint64_t n)
{
	return tl_range(&rng, 0, n - 1);
}

static uint64_t number(void)
{
	return pick(4) ? pick(8) : UINT64_MAX - tl_magnitude(&rng, 64);
}

/* Returns a peer: mostly the agent's own peer, sometimes another agent's. */
static const struct fk_peer *some_peer(size_t own)
{
	return &p[pick(6) ? own : pick(PEERS)];
}

static void send_resume(struct fk_host *x)
{
	struct wm_group_view own = {.group = (uint32_t)pick(3),
		.world_size = (uint32_t)number(),
		.generation = number(),
		.revision = pick(3) ? 0 : number()};
	struct wm_ring_position position = {
		.group = (uint32_t)pick(3), .hosts = 1 + (uint32_t)pick(4)};
	static struct wm_outcome outcomes[3000];
	struct wm_msg msg = {.type = WM_RESUME};
	struct wm_resume *r = &msg.u.resume;
	size_t i;

	r->epoch = number();
	r->round = number();
	r->ring_epoch = number();
	r->prepared = number();
	r->prepared_peers = (uint32_t)number();
	r->aborted_round = number();
	r->last_seq = number();
	r->ballots[WIRE_TOPOLOGY] = number();
	r->ballots[WIRE_PENDING] = number();
	r->ballots[WIRE_OPTIMIZE] = number();
	r->view = (struct wm_view){
		.global = (uint32_t)number(), .view_id = number(), .n = 1, .own = &own};
	position.pos = (uint32_t)pick(position.hosts);
	r->n_positions = (uint32_t)pick(2);
	r->positions = &position;
	r->n_outcomes = (uint32_t)(pick(5) ? pick(3) : 3000);
	for (i = 0; i < r->n_outcomes; i++)
		outcomes[i] = (struct wm_outcome){1 + pick(20), (uint32_t)pick(3)};
	r->outcomes = outcomes;
	fk_send(x, &msg);
}

static void send_join(size_t i)
{
	const struct fk_peer *who = some_peer(i);
	struct wm_msg msg = {.type = WM_JOIN};

	msg.u.join.peer = who->id;
	msg.u.join.token = who->token;
	msg.u.join.token.b[3] ^= pick(10) == 0;
	msg.u.join.phase = (uint32_t)pick(3);
	msg.u.join.group = pick(10) ? who->group : who->group + 1;
	msg.u.join.pool_size = 1;
	msg.u.join.ballots[WIRE_TOPOLOGY] = number();
	msg.u.join.view_id = number();
	msg.u.join.ballots[WIRE_PENDING] = number();
	msg.u.join.ballots[WIRE_OPTIMIZE] = number();
	fk_send(h[i], &msg);
	if (who == &p[i])
		p[i].host = h[i];
}

static void make_sync(struct wm_op_vote *v)
{
	v->is_sync = true;
	v->tag = 0;
	v->params = (struct wm_op_params){0};
	v->sync = fk_candidate(pick(4) ? 1 : number(), pick(3));
	v->sync.strategy = pick(4) ? 0 : (uint32_t)pick(3);
	if (v->seq)
		v->elected = (struct wm_sync_elected){pick(4) ? 1 : number(), {3, pick(3)}};
}

static void send_op(size_t i)
{
	struct cc_id ids[2] = {some_peer(i)->id, p[(i + 1) % PEERS].id};
	struct wm_msg msg = {.type = WM_OP_VOTE};

	msg.u.op_vote = (struct wm_op_vote){.group = (uint32_t)pick(2),
		.tag = pick(3),
		.params = fk_params,
		.n_peers = 1 + (uint32_t)(pick(5) == 0),
		.peers = ids,
		.generation = pick(6) ? 0 : number(),
		.seq = pick(2) ? number() : 0};
	if (pick(2))
		make_sync(&msg.u.op_vote);
	fk_send(h[i], &msg);
	if (h[i]->open && pick(3) == 0)
		fk_report_failed(&(struct fk_peer){.host = h[i], .id = some_peer(i)->id},
			1 + pick(20), pick(2));
	if (h[i]->open && pick(2))
		fk_report(h[i], 1 + pick(20), pick(3) > 0);
}

static void send_vote(size_t i)
{
	struct wm_msg msg = {.type = WM_BALLOT_VOTE};

	msg.u.ballot_vote.peer = some_peer(i)->id;
	msg.u.ballot_vote.kind = (enum wire_ballot)pick(WIRE_BALLOTS);
	msg.u.ballot_vote.number = number();
	fk_send(h[i], &msg);
}

static void send_query(size_t i)
{
	struct wm_msg msg = {.type = WM_OP_QUERY};

	msg.u.op_query.peer = some_peer(i)->id;
	msg.u.op_query.n = WM_OUTCOMES_MAX;
	msg.u.op_query.seqs[0] = 1 + pick(20);
	msg.u.op_query.n_succeeded = pick(2) ? WM_OUTCOMES_MAX : 0;
	fk_send(h[i], &msg);
}

static void connect_agent(size_t i)
{
	if (f.n_hosts + 1 >= FK_HOSTS_MAX)
		return;
	h[i] = fk_reconnect_as(h[i], pick(4) ? 1 : pick(2) ? WM_TERM_MAX : pick(9), pick(4) == 0);
	h[i]->ballots[WIRE_TOPOLOGY] = 0;
}

static void event(void)
{
	size_t i = pick(PEERS);

	if (!h[i]->open) {
		connect_agent(i);
		return;
	}
	switch (pick(12)) {
	case 0:
		send_resume(h[i]);
		break;
	case 1:
		fk_leave(&(struct fk_peer){.host = h[i], .id = some_peer(i)->id},
			pick(2) ? WM_LEAVE_CLEAN : WM_LEAVE_DIED);
		break;
	case 2:
	case 3:
		send_op(i);
		break;
	case 4:
		send_vote(i);
		break;
	case 5:
		send_query(i);
		break;
	case 6:
		fk_tick(&f, (uint32_t)pick(400));
		break;
	case 7:
		connect_agent(i);
		break;
	case 8:
		if (pick(3) == 0)
			fk_cut(h[i], "reset");
		break;
	default:
		send_join(i);
		break;
	}
}

START_TEST(takeover_from_hostile_agents_ends)
{
	struct ccm_config cfg = {.run = {{1}}, .run_key = {{2}}, .journal = true};
	size_t i;
	int n;

	rng = tl_rng_new((uint64_t)_i);
	fk_init(&f, &cfg);
	for (i = 0; i < PEERS; i++) {
		h[i] = fk_host(&f, "h", "10.0.0.1");
		p[i] = fk_join(h[i], (uint32_t)(i % 2));
	}
	fk_topo(&p[0]);
	if (_i % 3)
		fk_new_master(&f, &(struct ccm_config){.run = {{3}}, .run_key = {{4}}});
	else
		fk_restart(&f, &cfg, f.journal_len);
	for (n = 0; n < EVENTS; n++) {
		event();
		fk_forget(&f);
	}
	fk_tick(&f, 3200);
	for (i = 0; i < f.n_hosts; i++)
		if (f.hosts[i]->open)
			fk_cut(f.hosts[i], "the end");
	fk_tick(&f, 5200);
	if (fk_status(&f).stale == 0 && !fk_status(&f).recovering)
		ck_assert_uint_eq(fk_status(&f).accepted + fk_status(&f).registered, 0);
	ck_assert_uint_eq(fk_status(&f).agents, 0);
	fk_free(&f);
}
END_TEST

Suite *evil_suite(void)
{
	Suite *s = suite_create("evil");
	TCase *tc = tcase_create("evil");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, takeover_from_hostile_agents_ends, 0, SEQUENCES);
	suite_add_tcase(s, tc);
	return s;
}
