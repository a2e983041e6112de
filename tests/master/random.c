/* SPDX-License-Identifier: MIT
 *
 * The master's core with random agents. Most of them keep to the protocol, some lie, and all may
 * vanish at any moment. ccm_check follows every step. The test checks that the master's messages
 * agree with each other. After each sequence the run must still work.
 */
#include <stdio.h>
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/fake.h"
#include "tests/master/suites.h"

#define SEQUENCES 100
#define EVENTS    300
#define PEERS_MAX 400
#define SEQ_MAX   1000
#define HOSTS_MAX 64
#define GROUPS    3
#define PER_HOST  8 /* the most peers of a host in one synchronization that are remembered */

enum outcome { UNTOLD = 0, STARTED, DONE, ABORTED };

struct chaos {
	struct fk f;
	struct tl_rng rng;
	struct fk_peer peers[PEERS_MAX];
	size_t n_peers;
	uint8_t outcome[SEQ_MAX][HOSTS_MAX]; /* enum outcome, for each operation and host */
	bool reported[SEQ_MAX][HOSTS_MAX];
	bool done[SEQ_MAX], aborted[SEQ_MAX]; /* on any host */
	struct attempt {                      /* a synchronization */
		bool is_sync;
		uint32_t group;
		uint64_t revision;
		struct wm_digest content;
		/* The peers of each host that got the start. */
		struct cc_id peers[HOSTS_MAX][PER_HOST];
		uint32_t n_peers[HOSTS_MAX];
	} syncs[SEQ_MAX];
	uint64_t expected[GROUPS]; /* the expected revision of each group */
	uint64_t n_syncs;
	uint64_t last_seq;
	unsigned lies; /* per thousand events */
};

static struct chaos k;

static uint64_t pick(uint64_t n)
{
	return tl_range(&k.rng, 0, n - 1);
}

/* Checks that all hosts get the same election, with the revision that the group expects. */
static void watch_sync(const struct fk_host *h, const struct wm_op_start *x)
{
	struct attempt *y = &k.syncs[x->seq];
	uint32_t i;

	ck_assert_uint_lt(x->group, GROUPS);
	ck_assert(k.expected[x->group] == 0 || x->sync.revision == k.expected[x->group]);
	if (y->is_sync) {
		ck_assert_uint_eq(y->group, x->group);
		ck_assert_uint_eq(y->revision, x->sync.revision);
		ck_assert_uint_eq(y->content.lo, x->sync.content.lo);
	}
	y->is_sync = true;
	y->group = x->group;
	y->revision = x->sync.revision;
	y->content = x->sync.content;
	ck_assert_uint_gt(x->sync.n_peers, 0);
	for (i = 0; i < x->sync.n_peers && i < PER_HOST; i++)
		y->peers[h->conn][i] = x->sync.peers[i].peer;
	y->n_peers[h->conn] = i;
}

static void watch_sync_done(const struct wm_op_done *x)
{
	const struct attempt *y = &k.syncs[x->seq];

	ck_assert_uint_eq(x->revision, y->is_sync ? y->revision : 0);
	if (!y->is_sync || k.done[x->seq])
		return;
	k.n_syncs++;
	k.expected[y->group] = y->revision + 1;
}

/* Checks that no operation is done for one host and aborted for another. */
static void watch(void *arg, struct fk_host *h, const struct wm_msg *msg)
{
	uint64_t seq;

	(void)arg;
	switch (msg->type) {
	case WM_OP_START:
		seq = msg->u.op_start.seq;
		ck_assert_uint_ge(seq, k.last_seq);
		ck_assert_uint_lt(seq, SEQ_MAX);
		ck_assert_int_eq(k.outcome[seq][h->conn], UNTOLD);
		ck_assert_uint_eq(msg->u.op_start.epoch, h->epoch);
		k.last_seq = seq;
		k.outcome[seq][h->conn] = STARTED;
		if (msg->u.op_start.is_sync)
			watch_sync(h, &msg->u.op_start);
		break;
	case WM_OP_DONE:
		seq = msg->u.op_done.seq;
		ck_assert_int_eq(k.outcome[seq][h->conn], STARTED);
		ck_assert(!k.aborted[seq]);
		watch_sync_done(&msg->u.op_done);
		k.done[seq] = true;
		k.outcome[seq][h->conn] = DONE;
		break;
	case WM_OP_ABORT:
		seq = msg->u.op_abort.seq;
		if (seq == 0)
			break;
		ck_assert_int_eq(k.outcome[seq][h->conn], STARTED);
		ck_assert(!k.done[seq]);
		k.aborted[seq] = true;
		k.outcome[seq][h->conn] = ABORTED;
		break;
	default:
		break;
	}
}

/* Returns an open host, or NULL. */
static struct fk_host *some_host(void)
{
	struct fk_host *h;
	int tries;

	for (tries = 0; k.f.n_hosts > 0 && tries < 50; tries++) {
		h = k.f.hosts[pick(k.f.n_hosts)];
		if (h->open)
			return h;
	}
	return NULL;
}

/* Returns a peer that is present, or NULL. */
static struct fk_peer *some_peer(void)
{
	struct fk_peer *p;
	int tries;

	for (tries = 0; k.n_peers > 0 && tries < 50; tries++) {
		p = &k.peers[k.n_peers - 1 - pick(k.n_peers > 40 ? 40 : k.n_peers)];
		if (p->host->open && fk_present(p))
			return p;
	}
	return NULL;
}

static void new_host(void)
{
	static const char *const addrs[] = {"10.1.2.3", "127.0.0.1", "::1", "fd00::5"};
	struct fk_host *h;
	char name[16];

	if (k.f.n_hosts + 1 >= HOSTS_MAX)
		return;
	(void)snprintf(name, sizeof name, "h%u", k.f.n_hosts);
	h = fk_host(&k.f, name, addrs[pick(4)]);
	h->auto_report = pick(3) > 0;
	h->auto_measured = pick(10) > 0;
}

static void new_peer(void)
{
	struct fk_host *h = some_host();

	if (h && k.n_peers < PEERS_MAX)
		k.peers[k.n_peers++] = fk_join(h, (uint32_t)pick(GROUPS));
}

/* Returns whether p is accepted, is in this state and has no operation. */
static bool is_in(const struct fk_peer *p, enum ccm_connection_state s)
{
	struct ccm_peer_info info = fk_info(p);

	return info.phase == CCM_PEER_ACCEPTED && info.state == s && info.ops == 0;
}

static void vote_everywhere(uint32_t group, uint64_t tag)
{
	struct wm_op_params x = fk_params;
	size_t i;

	for (i = 0; i < k.n_peers; i++) {
		struct fk_peer *p = &k.peers[i];

		if (p->group != group || !p->host->open || !fk_present(p) ||
			fk_info(p).phase != CCM_PEER_ACCEPTED)
			continue;
		if (pick(200) == 0)
			x.count++;
		fk_vote_params(p, tag, x);
	}
}

/* Returns a candidate: mostly with the expected revision and the most frequent contents. */
static struct wm_sync_vote some_candidate(struct fk_peer *p, uint64_t content)
{
	uint64_t revision = fk_revision(p->host, p->group);
	struct wm_sync_vote v = fk_candidate(revision ? revision : 5, pick(4) ? content : pick(3));

	v.torn = pick(8) == 0;
	if (pick(6) == 0)
		v.revision = pick(v.revision);
	if (pick(60) == 0)
		v.revision++;
	if (pick(80) == 0)
		v.keys.lo++;
	if (pick(80) == 0)
		v.strategy = (uint32_t)pick(3);
	return v;
}

static void sync_everywhere(uint32_t group)
{
	uint64_t content = pick(3);
	size_t i;

	for (i = 0; i < k.n_peers; i++) {
		struct fk_peer *p = &k.peers[i];

		if (p->group == group && p->host->open && fk_present(p) &&
			fk_info(p).phase == CCM_PEER_ACCEPTED && fk_info(p).ops == 0)
			fk_sync(p, some_candidate(p, content));
	}
}

/* Reports that one of h's peers has failed. */
static void report_failed(struct fk_host *h, uint64_t seq, bool ok)
{
	size_t i;

	for (i = 0; i < k.n_peers; i++) {
		struct fk_peer *p = &k.peers[i];

		if (p->host != h || p->group != k.syncs[seq].group || !fk_present(p) || pick(2))
			continue;
		fk_report_failed(p, seq, ok);
		return;
	}
}

/* Lets some hosts report on their running operations. */
static void report_some(void)
{
	uint64_t seq, share = 1 + pick(4);
	struct fk_host *h;
	uint32_t i;

	for (i = 0; i < k.f.n_hosts; i++) {
		h = k.f.hosts[i];
		for (seq = k.last_seq; seq > 0 && seq + 20 > k.last_seq; seq--) {
			if (!h->open || k.outcome[seq][h->conn] != STARTED)
				continue;
			if (k.syncs[seq].is_sync && pick(20) == 0)
				report_failed(h, seq, k.reported[seq][h->conn]);
			if (!h->open || k.outcome[seq][h->conn] != STARTED ||
				k.reported[seq][h->conn] || pick(share) > 0)
				continue;
			k.reported[seq][h->conn] = true;
			fk_report(h, seq, pick(60) > 0);
		}
	}
}

static void report_round(struct fk_host *h)
{
	struct fk_host *next = NULL;
	uint32_t i, ring;

	if (!h->open || h->round.round == 0 || pick(3) == 0)
		return;
	ring = (uint32_t)pick(h->round.n_rings);
	for (i = 0; h->round.rings[ring].hosts > 1 && i < k.f.n_hosts; i++)
		if (cc_id_eq(&k.f.hosts[i]->id, &h->round.rings[ring].next.agent))
			next = k.f.hosts[i];
	fk_round_report(h, pick(15) == 0 ? next : NULL, "timeout");
}

/* Lets all peers that can vote now do so, except about one in `abstain`. */
static void ballot_everywhere(enum wire_ballot kind, unsigned abstain)
{
	static bool votes[PEERS_MAX];
	size_t i;

	for (i = 0; i < k.n_peers; i++)
		votes[i] = k.peers[i].host->open && fk_present(&k.peers[i]) &&
			   (is_in(&k.peers[i], CCM_IDLE) ||
				   is_in(&k.peers[i], CCM_OPTIMIZE_TOPOLOGY_FAILED)) &&
			   pick(abstain) > 0;
	for (i = 0; i < k.n_peers; i++)
		if (votes[i] && k.peers[i].host->open)
			fk_ballot(&k.peers[i], kind);
}

static void topology_everywhere(unsigned abstain)
{
	ballot_everywhere(WIRE_TOPOLOGY, abstain);
}

static uint64_t some_rate(const struct fk_host *from, const struct fk_host *to)
{
	(void)from;
	(void)to;
	return pick(12) ? 1 + pick(1000) : 0;
}

/* Writes n positions in a random order. */
static void shuffle(uint16_t *v, uint32_t n)
{
	uint32_t i, at;

	for (i = 0; i < n; i++) {
		at = (uint32_t)pick(i + 1);
		v[i] = v[at];
		v[at] = (uint16_t)i;
	}
}

/* Answers some problem with random rings. */
static void solve_some(void)
{
	static uint16_t order[CC_RINGS_MAX * HOSTS_MAX];
	struct ccm_solution x = {.order = order, .current = 100, .bound = 1000};
	const struct ccm_problem *y;
	uint32_t i;

	if (k.f.n_problems == 0)
		return;
	y = &k.f.problems[k.f.n_problems - 1 - pick(k.f.n_problems > 3 ? 3 : k.f.n_problems)];
	x.number = y->number;
	x.n = y->n;
	x.rate = (double)(90 + pick(60));
	x.n_rings = (uint32_t)pick(y->max_rings + 1);
	if (pick(10) == 0) {
		x.n_rings = 0;
		x.text = "no time";
	}
	for (i = 0; i < x.n_rings; i++) {
		shuffle(order + (size_t)i * x.n, x.n);
		x.shares[i] = (uint16_t)(1 + pick(UINT16_MAX));
	}
	fk_solved(&k.f, &x);
}

/* The links of some hosts are up, or not. */
static void say_mesh(struct fk_host *h)
{
	struct wm_msg m = {.type = WM_MESH};

	m.u.mesh = (struct wm_mesh){.group = (uint32_t)pick(GROUPS),
		.up = pick(4) > 0,
		.plan_up = pick(4) > 0,
		.reopens = (uint32_t)pick(2)};
	if (h && h->open)
		fk_send(h, &m);
}

static void optimize_some(void)
{
	uint64_t what = pick(8);
	uint32_t i;

	if (what < 4)
		ballot_everywhere(WIRE_OPTIMIZE, 200);
	else if (what < 6)
		solve_some();
	else
		for (i = 0; i < k.f.n_hosts; i++)
			say_mesh(k.f.hosts[i]);
}

/* Lets all peers optimize the topology, if one of them has voted for it. */
static void finish_optimization(void)
{
	bool votes = false;
	size_t i;

	for (i = 0; i < k.n_peers; i++)
		votes |= k.peers[i].host->open && fk_present(&k.peers[i]) &&
			 is_in(&k.peers[i], CCM_VOTE_OPTIMIZE_TOPOLOGY);
	if (votes)
		ballot_everywhere(WIRE_OPTIMIZE, UINT32_MAX);
	for (i = 0; i < 20; i++)
		solve_some();
	fk_tick(&k.f, 600); /* the answer may wait for this time after another failure */
}

static void lie(void)
{
	struct fk_host *h = some_host();
	struct fk_peer *p = some_peer(), forged;
	struct wm_failure failure = {.agent = {{9}}, .text = "x"};
	struct wm_measured_result result = {.ok = true, .rate = pick(UINT64_MAX)};
	struct wm_rate rate = {.rate = pick(UINT64_MAX), .age_s = (uint32_t)pick(5000)};
	struct wm_msg msg = {.type = (enum wm_type)pick(45)};

	if (!h || !p)
		return;
	switch (pick(10)) {
	case 8:
		msg.type = WM_MEASURED;
		result.agent = p->host->id;
		msg.u.measured = (struct wm_measured){h->order.number, 1, &result};
		fk_send(h, &msg);
		break;
	case 9:
		msg.type = WM_RATES;
		rate.agent = p->host->id;
		msg.u.rates = (struct wm_rates){.n = 1, .rates = &rate};
		fk_send(h, &msg);
		break;
	case 0:
		fk_report(h, pick(k.last_seq + 3), pick(2));
		break;
	case 1:
		msg.type = WM_ROUND_REPORT;
		msg.u.round_report.round = fk_status(&k.f).round + pick(3) - 1;
		msg.u.round_report.n_failures = (uint32_t)pick(2);
		msg.u.round_report.failures = &failure;
		fk_send(h, &msg);
		break;
	case 2:
		forged = *p;
		forged.host = h;
		fk_vote(&forged, pick(4));
		break;
	case 3:
		fk_topo(p);
		break;
	case 4:
		fk_pending(p);
		break;
	case 5:
		forged = *p;
		forged.group++;
		fk_vote(&forged, pick(4));
		break;
	case 6:
		msg.type = WM_JOIN;
		msg.u.join.peer = p->id;
		fk_send(h, &msg);
		break;
	default: /* an empty message of any type except JOIN */
		if (msg.type != WM_JOIN)
			fk_send(h, &msg);
		break;
	}
}

/* Drops the peers that are gone. */
static void tidy(void)
{
	size_t i, n = 0;

	for (i = 0; i < k.n_peers; i++)
		if (k.peers[i].host->open && fk_present(&k.peers[i]))
			k.peers[n++] = k.peers[i];
	k.n_peers = n;
}

/* Breaks or keeps a connection. Then, mostly, the same or another agent brings some of the peers
 * back over a new connection. */
static void break_off(void)
{
	struct fk_host *h = some_host(), *x;
	size_t i;

	if (!h || k.f.n_hosts + 2 >= HOSTS_MAX)
		return;
	if (pick(3) > 0)
		fk_cut(h, "cut");
	if (pick(4) == 0)
		return;
	x = pick(2) ? fk_reconnect(h) : fk_host(&k.f, "new", "10.1.2.4");
	for (i = 0; i < k.n_peers; i++)
		if (k.peers[i].host == h && x->open && pick(8) > 0)
			k.peers[i] = fk_join_again(&k.peers[i], x, (enum wm_join_phase)pick(3));
	if (x->open && pick(10) > 0)
		fk_resumed(x);
}

static void forget_over(void *arg, const struct ccm_state_info *x)
{
	(void)arg;
	if (x->expected == 0)
		k.expected[x->group] = 0;
}

/* Lets the peer leave. This may end the run of its group. */
static void leave(struct fk_peer *p, enum wm_leave_kind kind)
{
	fk_leave(p, kind);
	if (kind == WM_LEAVE_CLEAN)
		ccm_each_state(k.f.m, k.f.now, forget_over, NULL);
}

static void event(void)
{
	struct fk_peer *p;
	struct fk_host *h;
	uint64_t what;
	uint32_t i;

	if (pick(10) == 0)
		tidy();
	if (pick(1000) < k.lies) {
		lie();
		return;
	}
	what = pick(100);
	if (what < 5) {
		new_host();
	} else if (what < 15) {
		new_peer();
	} else if (what < 18) {
		p = some_peer();
		if (p)
			leave(p, pick(2) ? WM_LEAVE_CLEAN : WM_LEAVE_DIED);
	} else if (what < 19) {
		h = some_host();
		if (h)
			fk_close(h, "cut");
	} else if (what < 22) {
		break_off();
	} else if (what < 27) {
		fk_tick_silent(&k.f, (uint32_t)pick(800), pick(4) ? NULL : some_host());
	} else if (what < 35) {
		optimize_some();
	} else if (what < 43) {
		topology_everywhere(100);
	} else if (what < 51) {
		sync_everywhere((uint32_t)pick(GROUPS));
	} else if (what < 60) {
		vote_everywhere((uint32_t)pick(GROUPS), pick(6));
	} else if (what < 80) {
		report_some();
	} else {
		for (i = 0; i < k.f.n_hosts; i++)
			report_round(k.f.hosts[i]);
	}
}

/* Checks whether the part of h in this attempt is over. In a synchronization the part also ends
 * when the host loses its last peer. */
static bool is_over(struct fk_host *h, uint64_t seq)
{
	const struct attempt *x = &k.syncs[seq];
	struct fk_peer p = {.host = h};
	uint32_t i;

	if (!h->open || k.outcome[seq][h->conn] != STARTED)
		return true;
	for (i = 0; x->is_sync && i < x->n_peers[h->conn]; i++) {
		p.id = x->peers[h->conn][i];
		if (fk_present(&p))
			return false;
	}
	return x->is_sync;
}

static void report_started(void)
{
	uint64_t seq;
	uint32_t i;

	for (seq = 1; seq <= k.last_seq; seq++)
		for (i = 0; i < k.f.n_hosts; i++)
			if (!is_over(k.f.hosts[i], seq))
				fk_report(k.f.hosts[i], seq, true);
}

static bool is_member(const struct fk_peer *p, uint32_t group)
{
	return p->group == group && p->host->open && fk_present(p) &&
	       fk_info(p).phase == CCM_PEER_ACCEPTED;
}

/* Finishes a synchronization that has waiting members: the other members call, too. If another
 * member is in the topology vote, the waiting members leave instead, because the two calls would
 * never meet. */
static void finish_sync(uint32_t group)
{
	bool waits = false, votes = false;
	struct fk_peer *p;
	size_t n;

	for (n = 0; n < k.n_peers; n++) {
		p = &k.peers[n];
		if (!is_member(p, group))
			continue;
		waits |= fk_info(p).ops > 0;
		votes |= fk_info(p).state == CCM_VOTE_ACCEPT_NEW_PEERS ||
			 fk_info(p).state == CCM_VOTE_OPTIMIZE_TOPOLOGY;
	}
	for (n = 0; n < k.n_peers && waits; n++) {
		p = &k.peers[n];
		if (!is_member(p, group) || (fk_info(p).ops > 0) != votes)
			continue;
		if (votes)
			fk_leave(p, WM_LEAVE_DIED);
		else
			fk_sync(p, fk_candidate(k.expected[group], 1));
	}
	report_started();
}

/* Checks that the run comes to rest if everybody keeps to the protocol from now on. */
static void come_to_rest(void)
{
	struct ccm_status s;
	uint32_t i;
	size_t n;

	for (i = 0; i < k.f.n_hosts; i++)
		k.f.hosts[i]->auto_report = k.f.hosts[i]->auto_measured = true;
	fk_settle(&k.f);
	fk_tick(&k.f, 5200); /* disconnected peers are lost */
	tidy();
	report_started();
	for (i = 0; i < GROUPS; i++) /* a loss ends the operations of a group */
		for (n = 0; n < k.n_peers; n++) {
			struct fk_peer *p = &k.peers[n];

			if (p->group != i || !p->host->open || !fk_present(p) ||
				fk_info(p).phase != CCM_PEER_ACCEPTED)
				continue;
			fk_leave(p, WM_LEAVE_DIED);
			break;
		}
	report_started(); /* does not end a synchronization */
	for (i = 0; i < GROUPS; i++)
		finish_sync(i);
	finish_optimization();
	report_started(); /* operations may have waited for the end of the votes */
	/* The first vote may end a ballot that was in progress. */
	topology_everywhere(UINT32_MAX);
	if (fk_status(&k.f).registered > 0)
		topology_everywhere(UINT32_MAX);
	if (fk_status(&k.f).registered > 0) /* newcomers that have spoiled rounds wait this long */
		fk_tick(&k.f, 30100);
	/* Then they are admitted one by one. */
	for (n = 0; fk_status(&k.f).registered > 0 && n < k.n_peers; n++)
		topology_everywhere(UINT32_MAX);
	if (strstr(fk_waiting(&k.f), "pcclUpdateTopology")) /* the last newcomer has not called */
		topology_everywhere(UINT32_MAX);
	s = fk_status(&k.f);
	ck_assert_uint_eq(s.registered, 0);
	ck_assert(!s.round_active);
	ck_assert_ptr_null(strstr(fk_waiting(&k.f), "pcclUpdateTopology"));
}

static void check_outcomes(void)
{
	uint64_t seq;
	uint32_t i;

	for (seq = 1; seq <= k.last_seq; seq++)
		for (i = 0; i < k.f.n_hosts; i++)
			ck_assert(is_over(k.f.hosts[i], seq));
}

/* Checks that a synchronization of each group succeeds. */
static void check_syncs(const uint32_t *world_size)
{
	uint64_t before = k.n_syncs, expected = 0, revision;
	struct fk_peer *p;
	uint32_t i;
	size_t n;

	for (i = 0; i < GROUPS; i++) {
		expected += world_size[i] > 0;
		for (n = 0; n < k.n_peers; n++) {
			p = &k.peers[n];
			if (p->group != i || !p->host->open || !fk_present(p))
				continue;
			revision = fk_revision(p->host, i);
			ck_assert_uint_eq(revision, k.expected[i]);
			fk_sync(p, fk_candidate(revision, 1));
		}
	}
	report_started();
	ck_assert_uint_eq(k.n_syncs, before + expected);
}

/* Checks that one operation of each group with at least two peers succeeds. */
static void check_alive(void)
{
	uint64_t before, expected = 0;
	uint32_t world[GROUPS] = {0}, i;
	struct ccm_peer_info info;
	size_t n;

	for (n = 0; n < k.n_peers; n++)
		if (k.peers[n].host->open && fk_present(&k.peers[n])) {
			info = fk_info(&k.peers[n]);
			ck_assert_int_eq(info.phase, CCM_PEER_ACCEPTED);
			world[k.peers[n].group]++;
			ck_assert_int_eq(info.state, CCM_IDLE);
		}
	before = fk_status(&k.f).ops_done;
	for (i = 0; i < GROUPS; i++) {
		if (world[i] < 2)
			continue;
		expected++;
		for (n = 0; n < k.n_peers; n++)
			if (k.peers[n].group == i && k.peers[n].host->open &&
				fk_present(&k.peers[n]))
				fk_vote(&k.peers[n], 99);
	}
	report_started();
	ck_assert_uint_eq(fk_status(&k.f).ops_done, before + expected);
	check_syncs(world);
}

static void sequence(uint64_t salt)
{
	struct ccm_config cfg = {.max_peers = 60, .algorithm = CCM_ALGORITHM_AUTO};
	uint32_t i;
	int n;

	memset(&k, 0, sizeof k);
	k.rng = tl_rng_new(salt);
	k.lies = salt % 3 == 0 ? 0 : 20;
	cfg.log_level = salt % 2 ? CCM_LOG_DEBUG : CCM_LOG_ERR;
	fk_init(&k.f, &cfg);
	k.f.watch = watch;
	k.f.rate = some_rate;
	for (n = 0; n < 5; n++)
		new_host();
	for (n = 0; n < EVENTS; n++) {
		event();
		fk_forget(&k.f);
	}
	come_to_rest();
	check_outcomes();
	check_alive();
	for (i = 0; i < k.f.n_hosts; i++)
		if (k.f.hosts[i]->open)
			fk_close(k.f.hosts[i], "the end");
	ck_assert_uint_eq(fk_status(&k.f).agents, 0);
	ck_assert_uint_eq(fk_status(&k.f).groups, 0);
	fk_free(&k.f);
}

START_TEST(random_agents_do_not_break_the_run)
{
	sequence((uint64_t)_i);
}
END_TEST

/* Frees the run in the middle of its events. */
START_TEST(unfinished_run_is_freed)
{
	int n;

	memset(&k, 0, sizeof k);
	k.rng = tl_rng_new((uint64_t)_i + 10000);
	fk_init(&k.f, NULL);
	k.f.rate = some_rate;
	for (n = 0; n < 100 + 10 * _i; n++) {
		event();
		fk_forget(&k.f);
	}
	fk_free(&k.f);
}
END_TEST

Suite *random_suite(void)
{
	Suite *s = suite_create("random");
	TCase *tc = tcase_create("random");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, random_agents_do_not_break_the_run, 0, SEQUENCES);
	tcase_add_loop_test(tc, unfinished_run_is_freed, 0, 10);
	suite_add_tcase(s, tc);
	return s;
}
