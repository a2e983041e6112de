/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/proto/sample.h"

static bool same_ids(const struct cc_id *a, uint32_t n_a, const struct cc_id *b, uint32_t n_b)
{
	return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a * sizeof *a) == 0);
}

static bool same_addrs(const struct cc_addr *a, uint32_t n_a, const struct cc_addr *b, uint32_t n_b)
{
	if (n_a != n_b)
		return false;
	for (uint32_t i = 0; i < n_a; i++)
		if (!cc_addr_eq(&a[i], &b[i]))
			return false;
	return true;
}

static bool same_key(const struct cc_key *a, const struct cc_key *b)
{
	return memcmp(a->b, b->b, sizeof a->b) == 0;
}

static bool same_hello(const struct wm_hello *a, const struct wm_hello *b)
{
	return a->version_min == b->version_min && a->version_max == b->version_max &&
	       a->features == b->features && cc_id_eq(&a->agent, &b->agent) &&
	       strcmp(a->name, b->name) == 0 && a->advertised == b->advertised &&
	       same_addrs(a->addrs, a->n_addrs, b->addrs, b->n_addrs) &&
	       a->port_p2p == b->port_p2p && a->port_shared_state == b->port_shared_state &&
	       a->port_benchmark == b->port_benchmark && cc_id_eq(&a->run, &b->run) &&
	       cc_id_eq(&a->run_key, &b->run_key) && a->term == b->term &&
	       a->newcomers == b->newcomers && a->left == b->left &&
	       same_key(&a->identity, &b->identity) && same_key(&a->proof, &b->proof);
}

static bool same_addresses(const struct wm_addresses *a, const struct wm_addresses *b)
{
	return a->advertised == b->advertised &&
	       same_addrs(a->addrs, a->n_addrs, b->addrs, b->n_addrs) &&
	       a->port_p2p == b->port_p2p && a->port_shared_state == b->port_shared_state &&
	       a->port_benchmark == b->port_benchmark;
}

static bool same_hello_ack(const struct wm_hello_ack *a, const struct wm_hello_ack *b)
{
	return a->version == b->version && a->features == b->features &&
	       cc_id_eq(&a->run, &b->run) && a->heartbeat_ms == b->heartbeat_ms &&
	       a->timeout_ms == b->timeout_ms && a->segment_max == b->segment_max &&
	       a->term == b->term && a->resume == b->resume &&
	       memcmp(&a->bounds, &b->bounds, sizeof a->bounds) == 0;
}

static bool same_digest(const struct wm_digest *a, const struct wm_digest *b)
{
	return a->hi == b->hi && a->lo == b->lo;
}

bool same_sync_vote(const struct wm_sync_vote *a, const struct wm_sync_vote *b)
{
	return a->revision == b->revision && a->strategy == b->strategy &&
	       a->hash_type == b->hash_type && same_digest(&a->keys, &b->keys) &&
	       same_digest(&a->content, &b->content) && a->n_tensors == b->n_tensors &&
	       a->bytes == b->bytes && a->torn == b->torn;
}

static bool same_op_vote(const struct wm_op_vote *a, const struct wm_op_vote *b)
{
	return a->group == b->group && a->tag == b->tag &&
	       wm_op_params_eq(&a->params, &b->params) && a->generation == b->generation &&
	       a->route == b->route && a->epoch == b->epoch && a->seq == b->seq &&
	       a->spec_seq == b->spec_seq && a->waits_for == b->waits_for &&
	       same_ids(a->peers, a->n_peers, b->peers, b->n_peers) && a->is_sync == b->is_sync &&
	       same_sync_vote(&a->sync, &b->sync) && a->elected.revision == b->elected.revision &&
	       same_digest(&a->elected.content, &b->elected.content) &&
	       a->refusal.code == b->refusal.code && strcmp(a->refusal.text, b->refusal.text) == 0;
}

static bool same_op_report(const struct wm_op_report *a, const struct wm_op_report *b)
{
	if (a->seq != b->seq || a->ok != b->ok || a->silent != b->silent || a->code != b->code ||
		!cc_id_eq(&a->suspect, &b->suspect) || strcmp(a->text, b->text) != 0 ||
		a->n_failed != b->n_failed)
		return false;
	for (uint32_t i = 0; i < a->n_failed; i++)
		if (!cc_id_eq(&a->failed[i].peer, &b->failed[i].peer) ||
			a->failed[i].code != b->failed[i].code ||
			strcmp(a->failed[i].text, b->failed[i].text) != 0)
			return false;
	return true;
}

static bool same_round_report(const struct wm_round_report *a, const struct wm_round_report *b)
{
	if (a->round != b->round || a->n_failures != b->n_failures)
		return false;
	for (uint32_t i = 0; i < a->n_failures; i++)
		if (!cc_id_eq(&a->failures[i].agent, &b->failures[i].agent) ||
			a->failures[i].limit != b->failures[i].limit ||
			strcmp(a->failures[i].text, b->failures[i].text) != 0)
			return false;
	return true;
}

static bool same_endpoint(const struct wm_endpoint *a, const struct wm_endpoint *b)
{
	return cc_id_eq(&a->agent, &b->agent) && strcmp(a->name, b->name) == 0 &&
	       a->at_master == b->at_master && a->port == b->port &&
	       same_addrs(a->addrs, a->n_addrs, b->addrs, b->n_addrs) &&
	       same_key(&a->key, &b->key) && a->key_no == b->key_no;
}

static bool same_host(const struct wm_host *a, const struct wm_host *b)
{
	return strcmp(a->name, b->name) == 0 && same_addrs(&a->addr, 1, &b->addr, 1);
}

static bool same_measure(const struct wm_measure *a, const struct wm_measure *b)
{
	if (a->number != b->number || a->ms != b->ms || a->streams != b->streams ||
		a->hold != b->hold || !same_host(&a->host, &b->host) || a->n_to != b->n_to)
		return false;
	for (uint32_t i = 0; i < a->n_to; i++)
		if (!same_endpoint(&a->to[i], &b->to[i]))
			return false;
	return same_ids(a->from, a->n_from, b->from, b->n_from);
}

static bool same_measured(const struct wm_measured *a, const struct wm_measured *b)
{
	if (a->number != b->number || a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++) {
		const struct wm_measured_result *x = &a->results[i], *y = &b->results[i];

		if (!cc_id_eq(&x->agent, &y->agent) || x->ok != y->ok || x->rate != y->rate ||
			x->rate_of_all != y->rate_of_all || x->trip_us != y->trip_us ||
			x->limit != y->limit || x->busy != y->busy ||
			x->confidence != y->confidence || strcmp(x->text, y->text) != 0)
			return false;
	}
	return true;
}

static bool same_rates(const struct wm_rates *a, const struct wm_rates *b)
{
	if (a->n != b->n || a->out != b->out || a->in != b->in || a->caps_age_s != b->caps_age_s ||
		a->passive != b->passive)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (!cc_id_eq(&a->rates[i].agent, &b->rates[i].agent) ||
			a->rates[i].rate != b->rates[i].rate ||
			a->rates[i].trip_us != b->rates[i].trip_us ||
			a->rates[i].age_s != b->rates[i].age_s ||
			a->rates[i].confidence != b->rates[i].confidence ||
			!same_host(&a->rates[i].host, &b->rates[i].host))
			return false;
	return true;
}

static bool same_sources(
	const struct wm_sync_source *a, uint32_t n_a, const struct wm_sync_source *b, uint32_t n_b)
{
	if (n_a != n_b)
		return false;
	for (uint32_t i = 0; i < n_a; i++)
		if (!same_endpoint(&a[i].endpoint, &b[i].endpoint) || a[i].holders != b[i].holders)
			return false;
	return true;
}

static bool same_sync_start(const struct wm_sync_start *a, const struct wm_sync_start *b)
{
	if (a->revision != b->revision || a->hash_type != b->hash_type ||
		!same_digest(&a->keys, &b->keys) || !same_digest(&a->content, &b->content) ||
		a->n_peers != b->n_peers)
		return false;
	for (uint32_t i = 0; i < a->n_peers; i++)
		if (!cc_id_eq(&a->peers[i].peer, &b->peers[i].peer) ||
			a->peers[i].role != b->peers[i].role)
			return false;
	return same_sources(a->sources, a->n_sources, b->sources, b->n_sources) &&
	       same_sources(a->others, a->n_others, b->others, b->n_others);
}

static bool same_plan(const struct wm_plan *a, const struct wm_plan *b)
{
	return a->n == b->n && memcmp(a->shares, b->shares, a->n * sizeof a->shares[0]) == 0 &&
	       a->n_order == b->n_order &&
	       (a->n_order == 0 || memcmp(a->order, b->order, a->n_order * sizeof *a->order) == 0);
}

static bool same_ring(const struct wm_ring *x, const struct wm_ring *y)
{
	if (x->group != y->group || x->hosts != y->hosts || x->pos != y->pos ||
		x->pool_size != y->pool_size || x->reopen != y->reopen ||
		x->prev_reopens != y->prev_reopens || !same_endpoint(&x->next, &y->next) ||
		!cc_id_eq(&x->prev, &y->prev) || strcmp(x->prev_name, y->prev_name) != 0 ||
		!same_ids(x->members, x->n_members, y->members, y->n_members) ||
		x->n_others != y->n_others)
		return false;
	for (uint32_t k = 0; k < x->n_others; k++)
		if (!same_endpoint(&x->others[k], &y->others[k]))
			return false;
	return same_plan(&x->plan, &y->plan) && x->await_plan == y->await_plan;
}

static bool same_round(const struct wm_round *a, const struct wm_round *b)
{
	if (a->round != b->round || a->accept != b->accept || a->peers != b->peers ||
		a->n_rings != b->n_rings || !cc_id_eq(&a->run_key, &b->run_key))
		return false;
	for (uint32_t i = 0; i < a->n_rings; i++)
		if (!same_ring(&a->rings[i], &b->rings[i]))
			return false;
	return true;
}

static bool same_view(const struct wm_view *a, const struct wm_view *b)
{
	if (a->global != b->global || a->groups != b->groups || a->largest != b->largest ||
		a->view_id != b->view_id || a->n != b->n || a->n_lost != b->n_lost ||
		a->lost_all != b->lost_all || a->lost_floor != b->lost_floor)
		return false;
	for (uint32_t i = 0; i < a->n_lost; i++)
		if (!cc_id_eq(&a->lost[i], &b->lost[i]))
			return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->own[i].group != b->own[i].group ||
			a->own[i].world_size != b->own[i].world_size ||
			a->own[i].generation != b->own[i].generation ||
			a->own[i].revision != b->own[i].revision ||
			memcmp(&a->own[i].at_generation, &b->own[i].at_generation,
				sizeof a->own[i].at_generation) != 0 ||
			strcmp(a->own[i].loss, b->own[i].loss) != 0)
			return false;
	return true;
}

static bool same_outcomes(
	const struct wm_outcome *a, uint32_t n_a, const struct wm_outcome *b, uint32_t n_b)
{
	if (n_a != n_b)
		return false;
	for (uint32_t i = 0; i < n_a; i++)
		if (a[i].seq != b[i].seq || a[i].code != b[i].code)
			return false;
	return true;
}

static bool same_resume(const struct wm_resume *a, const struct wm_resume *b)
{
	if (a->epoch != b->epoch || a->round != b->round || a->prepared != b->prepared ||
		a->ring_epoch != b->ring_epoch || a->prepared_peers != b->prepared_peers ||
		a->aborted_round != b->aborted_round || a->last_seq != b->last_seq ||
		memcmp(a->ballots, b->ballots, sizeof a->ballots) != 0 ||
		!same_view(&a->view, &b->view) || a->n_positions != b->n_positions)
		return false;
	for (uint32_t i = 0; i < a->n_positions; i++)
		if (a->positions[i].group != b->positions[i].group ||
			a->positions[i].hosts != b->positions[i].hosts ||
			a->positions[i].pos != b->positions[i].pos ||
			!same_plan(&a->positions[i].plan, &b->positions[i].plan))
			return false;
	return same_outcomes(a->outcomes, a->n_outcomes, b->outcomes, b->n_outcomes);
}

static bool same_join(const struct wm_join *a, const struct wm_join *b)
{
	return cc_id_eq(&a->peer, &b->peer) && a->group == b->group &&
	       a->pool_size == b->pool_size && a->pid == b->pid && strcmp(a->name, b->name) == 0 &&
	       cc_id_eq(&a->token, &b->token) &&
	       memcmp(a->ballots, b->ballots, sizeof a->ballots) == 0 && a->view_id == b->view_id &&
	       a->global == b->global && a->thread == b->thread && a->phase == b->phase &&
	       a->left == b->left;
}

static bool same_link_lost(const struct wm_link_lost *a, const struct wm_link_lost *b)
{
	return cc_id_eq(&a->agent, &b->agent) && a->inbound == b->inbound &&
	       a->smaller == b->smaller && strcmp(a->text, b->text) == 0;
}

static bool same_mesh(const struct wm_mesh *a, const struct wm_mesh *b)
{
	return a->group == b->group && a->up == b->up && a->plan_up == b->plan_up &&
	       a->reopens == b->reopens;
}

static bool same_op_query(const struct wm_op_query *a, const struct wm_op_query *b)
{
	return cc_id_eq(&a->peer, &b->peer) && a->n == b->n && a->n_succeeded == b->n_succeeded &&
	       memcmp(a->seqs, b->seqs, a->n * sizeof a->seqs[0]) == 0;
}

static bool same_probed(const struct wm_probed *a, const struct wm_probed *b)
{
	return a->number == b->number && a->ok == b->ok && a->limit == b->limit &&
	       strcmp(a->text, b->text) == 0;
}

static bool same_agent_message(const struct wm_msg *a, const struct wm_msg *b)
{
	switch (a->type) {
	case WM_HELLO:
		return same_hello(&a->u.hello, &b->u.hello);
	case WM_JOIN:
		return same_join(&a->u.join, &b->u.join);
	case WM_LEAVE:
		return cc_id_eq(&a->u.leave.peer, &b->u.leave.peer) &&
		       a->u.leave.kind == b->u.leave.kind &&
		       strcmp(a->u.leave.text, b->u.leave.text) == 0;
	case WM_BALLOT_VOTE:
		return cc_id_eq(&a->u.ballot_vote.peer, &b->u.ballot_vote.peer) &&
		       a->u.ballot_vote.kind == b->u.ballot_vote.kind &&
		       a->u.ballot_vote.number == b->u.ballot_vote.number;
	case WM_OP_VOTE:
		return same_op_vote(&a->u.op_vote, &b->u.op_vote);
	case WM_OP_REPORT:
		return same_op_report(&a->u.op_report, &b->u.op_report);
	case WM_MESH:
		return same_mesh(&a->u.mesh, &b->u.mesh);
	case WM_LINK_LOST:
		return same_link_lost(&a->u.link_lost, &b->u.link_lost);
	case WM_ROUND_REPORT:
		return same_round_report(&a->u.round_report, &b->u.round_report);
	case WM_HEARTBEAT:
		return a->u.heartbeat.awaited == b->u.heartbeat.awaited;
	case WM_RESUME:
		return same_resume(&a->u.resume, &b->u.resume);
	case WM_OP_QUERY:
		return same_op_query(&a->u.op_query, &b->u.op_query);
	case WM_ADDRESSES:
		return same_addresses(&a->u.addresses, &b->u.addresses);
	case WM_STOPPED:
		return cc_id_eq(&a->u.stopped.peer, &b->u.stopped.peer) &&
		       a->u.stopped.is == b->u.stopped.is;
	case WM_WAITS_FOR:
		return cc_id_eq(&a->u.waits_for.peer, &b->u.waits_for.peer) &&
		       a->u.waits_for.tag == b->u.waits_for.tag &&
		       a->u.waits_for.kind == b->u.waits_for.kind &&
		       a->u.waits_for.any == b->u.waits_for.any;
	case WM_STANDSTILL:
		return a->u.standstill.seq == b->u.standstill.seq &&
		       a->u.standstill.sent == b->u.standstill.sent &&
		       a->u.standstill.received == b->u.standstill.received &&
		       a->u.standstill.ms == b->u.standstill.ms;
	case WM_KNOCK:
		return a->u.knock.version_min == b->u.knock.version_min &&
		       a->u.knock.version_max == b->u.knock.version_max &&
		       same_key(&a->u.knock.share, &b->u.knock.share);
	case WM_PROBED:
		return same_probed(&a->u.probed, &b->u.probed);
	case WM_MEASURED:
		return same_measured(&a->u.measured, &b->u.measured);
	case WM_RATES:
		return same_rates(&a->u.rates, &b->u.rates);
	default:
		return false;
	}
}

static bool same_unmet(const struct wm_unmet *a, const struct wm_unmet *b)
{
	return a->kind == b->kind && a->group == b->group && a->tag == b->tag &&
	       a->generation == b->generation && a->ballot == b->ballot && a->answer == b->answer &&
	       a->code == b->code && strcmp(a->text, b->text) == 0 &&
	       same_ids(a->peers, a->n_peers, b->peers, b->n_peers);
}

static bool same_commit(const struct wm_commit *a, const struct wm_commit *b)
{
	return a->round == b->round && a->epoch == b->epoch && a->accept == b->accept &&
	       same_view(&a->view, &b->view) &&
	       memcmp(a->ballots, b->ballots, sizeof a->ballots) == 0;
}

static bool same_op_start(const struct wm_op_start *a, const struct wm_op_start *b)
{
	return a->group == b->group && a->tag == b->tag && a->seq == b->seq &&
	       a->epoch == b->epoch && a->is_sync == b->is_sync && a->route == b->route &&
	       same_sync_start(&a->sync, &b->sync);
}

static bool same_op_abort(const struct wm_op_abort *a, const struct wm_op_abort *b)
{
	return a->group == b->group && a->tag == b->tag && a->seq == b->seq && a->code == b->code &&
	       a->generation == b->generation && a->is_sync == b->is_sync &&
	       strcmp(a->text, b->text) == 0;
}

static bool same_master_message(const struct wm_msg *a, const struct wm_msg *b)
{
	switch (a->type) {
	case WM_HELLO_ACK:
		return same_hello_ack(&a->u.hello_ack, &b->u.hello_ack);
	case WM_REFUSE:
		return a->u.refuse.version_min == b->u.refuse.version_min &&
		       a->u.refuse.version_max == b->u.refuse.version_max &&
		       a->u.refuse.code == b->u.refuse.code &&
		       strcmp(a->u.refuse.text, b->u.refuse.text) == 0;
	case WM_ROUND:
		return same_round(&a->u.round, &b->u.round);
	case WM_COMMIT:
		return same_commit(&a->u.commit, &b->u.commit);
	case WM_VIEW:
		return same_view(&a->u.view, &b->u.view);
	case WM_OP_START:
		return same_op_start(&a->u.op_start, &b->u.op_start);
	case WM_OP_ABORT:
		return same_op_abort(&a->u.op_abort, &b->u.op_abort);
	case WM_LINK_REOPEN:
		return cc_id_eq(&a->u.link_reopen.agent, &b->u.link_reopen.agent);
	case WM_OP_DONE:
		return a->u.op_done.seq == b->u.op_done.seq &&
		       a->u.op_done.revision == b->u.op_done.revision &&
		       a->u.op_done.next == b->u.op_done.next &&
		       a->u.op_done.next_route == b->u.op_done.next_route;
	case WM_BALLOT_END:
		return a->u.ballot_end.kind == b->u.ballot_end.kind &&
		       a->u.ballot_end.number == b->u.ballot_end.number &&
		       strcmp(a->u.ballot_end.text, b->u.ballot_end.text) == 0;
	case WM_KICK:
		return cc_id_eq(&a->u.kick.peer, &b->u.kick.peer) &&
		       a->u.kick.code == b->u.kick.code &&
		       strcmp(a->u.kick.text, b->u.kick.text) == 0;
	case WM_OP_OUTCOMES:
		return cc_id_eq(&a->u.op_outcomes.peer, &b->u.op_outcomes.peer) &&
		       same_outcomes(a->u.op_outcomes.v, a->u.op_outcomes.n, b->u.op_outcomes.v,
			       b->u.op_outcomes.n);
	case WM_KNOCK_ACK:
		return same_key(&a->u.knock_ack.share, &b->u.knock_ack.share);
	case WM_WAITS:
		return a->u.waits.kind == b->u.waits.kind &&
		       a->u.waits.ballot == b->u.waits.ballot &&
		       a->u.waits.group == b->u.waits.group && a->u.waits.tag == b->u.waits.tag &&
		       a->u.waits.waited_ms == b->u.waits.waited_ms &&
		       strcmp(a->u.waits.text, b->u.waits.text) == 0;
	case WM_UNMET:
		return same_unmet(&a->u.unmet, &b->u.unmet);
	case WM_LEFT:
		return cc_id_eq(&a->u.left.peer, &b->u.left.peer);
	case WM_PROBE:
		return a->u.probe.number == b->u.probe.number &&
		       same_endpoint(&a->u.probe.to, &b->u.probe.to) &&
		       same_endpoint(&a->u.probe.state, &b->u.probe.state);
	case WM_MEASURE:
		return same_measure(&a->u.measure, &b->u.measure);
	default:
		return false;
	}
}

bool same_master(const struct wm_msg *a, const struct wm_msg *b)
{
	if (a->type != b->type)
		return false;
	return a->type < WM_HELLO_ACK ? same_agent_message(a, b) : same_master_message(a, b);
}
