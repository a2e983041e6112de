/* SPDX-License-Identifier: MIT
 *
 * The calls of a connected communicator that are no operations: votes and attributes.
 */
#include "common/cc_log.h"
#include "libpccl-shim/comm.h"
#include "libpccl-shim/program.h"

/* Checks that this is a peer, as far as the application knows. The application's knowledge changes
 * only when a call ends, not between calls. */
static pcclResult_t check_peer(pcclComm_t *c)
{
	bool out;

	pthread_mutex_lock(&c->lock);
	out = c->link == PCCL_LINK_NONE || c->told_gone;
	pthread_mutex_unlock(&c->lock);
	return out ? pccl_comm_connected(c) : pcclSuccess;
}

pcclResult_t pcclGetAttribute(const pcclComm_t *c, pcclAttribute_t attribute, int *p_attribute_out)
{
	pcclResult_t r = pccl_comm_check(c);
	struct wire_view view;
	uint32_t value;

	if (r != pcclSuccess)
		return r;
	if (!p_attribute_out)
		return pccl_fail(pcclInvalidArgument, "p_attribute_out must not be NULL");
	if (attribute < PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE ||
		attribute > PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE)
		return pccl_fail(pcclInvalidArgument, "there is no attribute %d", (int)attribute);
	r = check_peer(pccl_comm_own(c));
	if (r != pcclSuccess)
		return r;
	view = pccl_comm_view(pccl_comm_own(c));
	switch (attribute) {
	case PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE:
		value = view.global;
		break;
	case PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE:
		value = view.group;
		break;
	case PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS:
		value = view.groups;
		break;
	default:
		value = view.largest;
		break;
	}
	*p_attribute_out = value > INT32_MAX ? INT32_MAX : (int)value;
	return pccl_ok();
}

/* A call that waits for the answer to its vote. */
struct waiting_vote {
	pcclComm_t *comm;
	const struct pccl_attachment *a;
	bool logs; /* the progress of measurements */
	uint32_t round, rounds;
};

static bool logs_progress(enum wire_ballot kind)
{
	const char *level = kind == WIRE_OPTIMIZE ? pccl_program_log_level() : NULL;

	return level && cc_log_parse_level(level) >= CC_LOG_INFO;
}

static void log_progress(struct waiting_vote *v)
{
	struct pccl_attrs now;

	pccl_attachment_attrs(v->a, &now);
	if (now.rounds == 0 || (now.round == v->round && now.rounds == v->rounds))
		return;
	v->round = now.round;
	v->rounds = now.rounds;
	cc_log(CC_LOG_INFO, "pcclOptimizeTopology: measuring links: round %u of %u", now.round,
		now.rounds);
}

static bool end_vote(void *arg)
{
	struct waiting_vote *v = arg;

	if (v->logs)
		log_progress(v);
	return pccl_comm_interrupted(v->comm);
}

/* Learns from the answer to a vote. */
static void learn(pcclComm_t *c, const struct wl_reply *reply)
{
	if (reply->generation)
		pccl_comm_knows(c, reply->generation);
	pthread_mutex_lock(&c->lock);
	memcpy(c->ballots, reply->ballots, sizeof c->ballots);
	pthread_mutex_unlock(&c->lock);
}

/* Votes and waits for the answer. If the agent dies, votes again through the next agent, which
 * knows the ballots that this peer has seen. */
static pcclResult_t vote(pcclComm_t *c, enum wire_ballot kind, struct wl_reply *ret)
{
	struct wl_request request = {.type = WL_VOTE, .ballot = kind};
	struct pccl_attachment *a = NULL;
	struct pccl_attrs attrs;
	bool answered = false;
	struct waiting_vote v = {.comm = c, .logs = logs_progress(kind)};
	struct pccl_ender end = {.end = end_vote, .arg = &v};
	pcclResult_t r = pcclSuccess;

	for (bool waiting = false; !answered; waiting = true) {
		r = pccl_comm_use(c, waiting, &a, &attrs);
		if (r != pcclSuccess || !a)
			return waiting ? pccl_comm_spent(c, r) : r;
		request.comm = a->id;
		v.a = a;
		r = pccl_session_call_or(a->session, &request, ret, &end);
		if (end.ended) {
			pccl_attachment_unref(a);
			return pccl_comm_fail_interrupted(c);
		}
		answered = r == pcclSuccess || ret->req_id != 0 || pccl_session_check(a->session);
		if (r != pcclSuccess && answered)
			pccl_comm_lost_code(c, a, (uint32_t)r);
		if (ret->req_id != 0)
			pccl_comm_set_view(c, &ret->view);
		pccl_attachment_unref(a);
	}
	if (r != pcclSuccess)
		return pccl_comm_spent(c, r);
	learn(c, ret);
	return r;
}

/* Returns the code of a topology call of a peer that was removed from the run. The first such call
 * returns `code`, as in PCCL 1.0. Later calls return `r`, because programs repeat a call after
 * `code`. */
static pcclResult_t removed_code(pcclComm_t *c, pcclResult_t r, pcclResult_t code)
{
	char text[PCCL_TEXT_MAX];
	bool first;

	if (r != pcclInvalidUsage && r != pcclRankConnectionLost)
		return r;
	pthread_mutex_lock(&c->lock);
	first = c->link != PCCL_LINK_NONE && c->told_gone && !c->told_removed;
	c->told_removed = c->told_removed || first;
	pthread_mutex_unlock(&c->lock);
	if (!first)
		return r;
	pccl_fail_text(text);
	return pccl_fail(code, "%s", text);
}

/* Votes in a call of a peer that has no operation in progress. */
static pcclResult_t exclusive_vote(
	pcclComm_t *c, enum wire_ballot kind, struct wl_reply *ret, pcclResult_t failure)
{
	pcclResult_t r = vote(c, kind, ret);

	return r == pcclSuccess ? r : removed_code(c, r, failure);
}

pcclResult_t pcclUpdateTopology(pcclComm_t *c)
{
	pcclResult_t r = pccl_comm_check(c);
	struct wl_reply reply = {0};

	if (r == pcclSuccess)
		r = pccl_comm_check_optimized(c);
	if (r == pcclSuccess)
		r = pccl_comm_begin(c, "pcclUpdateTopology", pcclPendingAsyncOps);
	if (r != pcclSuccess)
		return r;
	r = exclusive_vote(c, WIRE_TOPOLOGY, &reply, pcclUpdateTopologyFailed);
	pccl_comm_end(c);
	return r == pcclSuccess ? pccl_ok() : r;
}

static void set_must_optimize(pcclComm_t *c, bool must)
{
	pthread_mutex_lock(&c->lock);
	c->must_optimize = must;
	pthread_mutex_unlock(&c->lock);
}

static pcclResult_t optimize(pcclComm_t *c)
{
	pcclResult_t r = check_peer(c);
	struct wl_reply reply = {0};

	if (r != pcclSuccess)
		return removed_code(c, r, pcclTopologyOptimizationFailed);
	if (pccl_comm_view(c).global < 2)
		return pccl_fail(
			pcclInvalidUsage, "the run has one peer: there is no topology to optimize");
	r = exclusive_vote(c, WIRE_OPTIMIZE, &reply, pcclTopologyOptimizationFailed);
	if (r != pcclSuccess)
		return r;
	set_must_optimize(c, !reply.flag);
	if (reply.flag)
		return pcclSuccess;
	return pccl_fail(pcclTopologyOptimizationFailed,
		"the topology could not be optimized: %s; the rings are as before: call "
		"pcclOptimizeTopology again",
		reply.text[0] ? reply.text : "see the master's log");
}

pcclResult_t pcclOptimizeTopology(const pcclComm_t *communicator)
{
	pcclComm_t *c = pccl_comm_own(communicator);
	pcclResult_t r = pccl_comm_check(c);

	if (r == pcclSuccess)
		r = pccl_comm_begin(c, "pcclOptimizeTopology", pcclPendingAsyncOps);
	if (r != pcclSuccess)
		return r;
	r = optimize(c);
	pccl_comm_end(c);
	return r == pcclSuccess ? pccl_ok() : r;
}

static void set_asks(pcclComm_t *c, bool on)
{
	pthread_mutex_lock(&c->lock);
	c->asks = on;
	pthread_mutex_unlock(&c->lock);
}

pcclResult_t pcclArePeersPending(const pcclComm_t *c, bool *peers_pending_out)
{
	pcclResult_t r = pccl_comm_check(c);
	struct wl_reply reply = {0};

	if (r == pcclSuccess)
		r = pccl_comm_check_main(c, "pcclArePeersPending");
	if (r == pcclSuccess)
		r = pccl_comm_check_optimized(pccl_comm_own(c));
	if (r != pcclSuccess)
		return r;
	if (!peers_pending_out)
		return pccl_fail(pcclInvalidArgument, "peers_pending_out must not be NULL");
	set_asks(pccl_comm_own(c), true);
	r = vote(pccl_comm_own(c), WIRE_PENDING, &reply);
	set_asks(pccl_comm_own(c), false);
	if (r != pcclSuccess)
		return r;
	*peers_pending_out = reply.flag;
	return pccl_ok();
}

pcclResult_t pcclAreNewPeersPending(const pcclComm_t *c, bool *new_peers_pending_out)
{
	return pcclArePeersPending(c, new_peers_pending_out);
}
