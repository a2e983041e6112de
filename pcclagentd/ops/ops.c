/* SPDX-License-Identifier: MIT */
#include "pcclagentd/ops/ops.h"

#include <stdlib.h>
#include <unistd.h>

#include "pcclagentd/ops/ops_internal.h"

/* ---- called by other folders ---- */

static void on_doorbell(void *arg)
{
	op_eager_fed(arg);
}

static void on_comm_closed(void *arg, uint32_t comm)
{
	op_diff_forget(arg, comm);
	op_feedback_comm_closed(arg, comm);
}

static struct loc_region *shown(void *arg, const struct loc_comm *c, uint64_t region)
{
	return op_sync_shown(arg, c, region);
}

static const struct loc_ops local_ops = {
	.doorbell = on_doorbell, .comm_closed = on_comm_closed, .shown = shown};

/* Accepts a stream of another agent for the attempt that its hello names. */
static void accept_state(void *arg, struct net_guest *g)
{
	const struct wlk_hello *h = net_guest_hello(g);
	char text[WLK_TEXT_MAX] = "this agent serves no more streams now";
	uint64_t features = h->features & WLK_MEMBERS, seq = h->number;
	struct run *r = arg;
	struct cc_id nonce;
	int fd;

	if (r->o->base->stopping) {
		net_guest_refuse(g, WLK_REFUSED_RUN, "this agent ends");
		return;
	}
	if (op_sync_engine(r) < 0 || !ste_has_room(r->ste)) {
		if (!r->ste)
			(void)rep_shortage(
				"this agent serves no shared state", "eventfd", text, sizeof text);
		net_guest_refuse(g, WLK_REFUSED_LIMIT, text);
		return;
	}
	cc_random_id(&nonce);
	fd = net_guest_welcome(g, features, &nonce);
	if (fd >= 0 && ste_add_stream(r->ste, fd, features, seq) < 0)
		rep_complain(&r->o->base->report, CC_LOG_WARNING,
			"no memory or thread to serve shared state");
}

static const struct net_service shared_state = {.id = WLK_SHARED_STATE, .accept = accept_state};

/* ---- for the agent ---- */

struct ops *op_new(struct base *b, struct loc *loc, struct net *net)
{
	struct ops *o = calloc(1, sizeof *o);

	if (!o)
		rep_out_of_memory("the agent");
	*o = (struct ops){.base = b, .loc = loc, .net = net};
	loc_set_ops(loc, &local_ops, o);
	net_serve(net, &shared_state);
	return o;
}

void op_free(struct ops *o)
{
	if (!o)
		return;
	op_runs_free(o);
	op_diff_free(o);
	free(o->piece);
	free(o);
}

void op_tick(struct ops *o, uint64_t now)
{
	op_runs_tick(o, now);
	op_progress_tick(o, now);
}

bool op_is_quiet(const struct ops *o)
{
	for (const struct run *r = o->runs; r; r = r->hh.next)
		if (r->xfers || r->syncs || net_run_is_probing(r->net))
			return false;
	return true;
}

void op_get_stats(const struct ops *o, struct op_stats *ret)
{
	*ret = (struct op_stats){.runs = HASH_COUNT(o->runs)};
	for (const struct run *r = o->runs; r; r = r->hh.next) {
		struct net_run_stats links;

		net_run_get_stats(r->net, &links);
		ret->xfers += HASH_COUNT(r->xfers);
		ret->syncs += HASH_COUNT(r->syncs);
		ret->links.links_in += links.links_in;
		ret->links.links_out += links.links_out;
		ret->links.streams += links.streams;
		ret->links.measuring += links.measuring;
	}
}

/* ---- actions of the core ---- */

static void carry_out(struct run *r, const struct agt_action *a)
{
	switch (a->type) {
	case AGT_ACT_LINK_OPEN:
		net_link_open(r->net, &a->u.endpoint, a->n_streams, a->probe);
		break;
	case AGT_ACT_PROBE:
		net_probe(r->net, &a->u.probe);
		break;
	case AGT_ACT_MEASURE:
		net_measure(r->net, &a->u.measure);
		break;
	case AGT_ACT_MEASURE_STOP:
		net_measure_stop(r->net, a->u.measure.number);
		break;
	case AGT_ACT_MEASURE_BUSY:
		net_measure_busy(r->net, a->u.measure.number);
		break;
	case AGT_ACT_LINK_CLOSE:
		net_link_close(r->net, &a->u.endpoint.agent);
		break;
	case AGT_ACT_XFER_START:
		op_xfer_start(r, &a->u.xfer);
		break;
	case AGT_ACT_XFER_ROLLBACK:
		op_xfer_rollback(r, a->u.xfer.seq);
		break;
	case AGT_ACT_XFER_EXPECT:
		op_eager_expect(r, &a->u.xfer);
		break;
	case AGT_ACT_XFER_FORGET:
		op_eager_forget(r, a->u.xfer.seq);
		break;
	case AGT_ACT_XFER_SKIP:
		op_xfer_skip(r, a->u.xfer.seq);
		break;
	case AGT_ACT_XFER_CANCEL:
		op_xfer_cancel(r, a->u.xfer.seq);
		break;
	case AGT_ACT_SYNC_START:
		op_sync_start(r, &a->u.sync);
		break;
	case AGT_ACT_SYNC_DROP:
		op_sync_drop(r, a->u.sync.seq, a->comm);
		break;
	case AGT_ACT_SYNC_CANCEL:
		op_sync_cancel(r, a->u.sync.seq);
		break;
	case AGT_ACT_SYNC_FREE:
		op_sync_free(r, a->u.sync.seq);
		break;
	default:
		op_xfer_free(r, a->u.xfer.seq);
	}
}

void op_run_carry_out(struct ops *o, const struct agt_action *a)
{
	struct run *r = op_run(o, a->run);

	if (r)
		carry_out(r, a);
}
