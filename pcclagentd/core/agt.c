/* SPDX-License-Identifier: MIT
 *
 * Construction, and the one entry into the core: an event goes in, actions come out.
 */
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"
#include "pcclagentd/core/agt_record.h"

struct agt *agt_new(const struct agt_config *cfg)
{
	struct agt *a = cc_must_zalloc(1, sizeof *a);

	a->cfg = *cfg;
	if (a->cfg.max_comms_per_uid == 0)
		a->cfg.max_comms_per_uid = AGT_MAX_COMMS;
	if (a->cfg.connect_timeout_ms == 0)
		a->cfg.connect_timeout_ms = AGT_CONNECT_MS;
	if (a->cfg.master_addr_timeout_ms == 0)
		a->cfg.master_addr_timeout_ms = AGT_MASTER_ADDR_MS;
	if (a->cfg.master_lease_ms == 0)
		a->cfg.master_lease_ms = AGT_LEASE_MS;
	if (a->cfg.stopped_ms == 0)
		a->cfg.stopped_ms = AGT_STOPPED_MS;
	return a;
}

void agt_free(struct agt *a)
{
	struct agt_session *s, *next_session;
	struct agt_comm *c, *next_comm;
	struct agt_run *r, *next_run;

	if (!a)
		return;
	HASH_ITER (hh, a->runs, r, next_run) {
		struct agt_group *g, *next;

		HASH_ITER (hh, r->groups, g, next) {
			g->users = 0;
			agt_group_put(r, g);
		}
		agt_run_free(a, r);
	}
	HASH_ITER (hh, a->comms, c, next_comm) {
		/* The analyzer does not see that the table gets another head, and believes that
		 * the freed element is still the head.
		 * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		HASH_DELETE(hh, a->comms, c);
		free(c->attach);
		agt_record_free(c);
		free(c);
	}
	HASH_ITER (hh, a->sessions, s, next_session) {
		/* The analyzer does not see that the table gets another head, and believes that
		 * the freed element is still the head.
		 * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		HASH_DELETE(hh, a->sessions, s);
		free(s);
	}
	agt_action_clear(&a->unsent);
	agt_rates_free(&a->rates);
	free(a);
}

static void tick(struct agt *a)
{
	struct agt_run *r;

	if (a->tick_ns && a->now - a->tick_ns > AGT_STOOD_STILL_NS)
		a->woke_ns = a->now;
	for (r = a->runs; r; r = r->hh.next) {
		agt_run_tick(a, r);
		agt_sync_tick(a, r);
	}
	agt_attach_tick(a);
	agt_sessions_tick(a);
	agt_waits_tick(a);
	a->tick_ns = a->now;
}

/* Closes the connections to all masters. Memberships stay as they are: the next agent learns of
 * them from the peers and from the masters. */
static void end(struct agt *a)
{
	struct agt_run *r;

	for (r = a->runs; r; r = r->hh.next)
		if (r->state != AGT_RUN_OVER)
			agt_emit(a, AGT_ACT_MASTER_CLOSE)->run = r->id;
	a->ended = true;
}

static void dispatch(struct agt *a, const struct agt_event *ev)
{
	switch (ev->type) {
	case AGT_EV_SESSION_OPEN:
		agt_session_open(a, ev);
		break;
	case AGT_EV_SESSION_CLOSED:
		agt_session_closed(a, ev);
		break;
	case AGT_EV_SESSION_STOPPED:
		agt_session_stopped(a, ev);
		break;
	case AGT_EV_REQUEST:
		agt_request(a, ev);
		break;
	case AGT_EV_COMM_UNOPENED:
		agt_comm_unopened(a, ev);
		break;
	case AGT_EV_SUBMIT:
		agt_submit(a, ev);
		break;
	case AGT_EV_ASLEEP:
		agt_stuck_asleep(a, ev);
		break;
	case AGT_EV_ASLEEP_ANY:
		agt_stuck_any(a, ev);
		break;
	case AGT_EV_MASTER_TAKEN:
		agt_conn_taken(a, ev);
		break;
	case AGT_EV_MASTER_UP:
		agt_master_up(a, ev);
		break;
	case AGT_EV_MASTER_DOWN:
		agt_run_master_down(a, ev);
		break;
	case AGT_EV_ADDRESSES:
		agt_master_addresses(a, ev->addresses);
		break;
	case AGT_EV_SET_MASTER:
		agt_conn_set_master(a, ev);
		break;
	case AGT_EV_MASTER_MSG:
		agt_master_msg(a, ev);
		break;
	case AGT_EV_LINK_UP:
	case AGT_EV_LINK_FAILED:
	case AGT_EV_LINK_DOWN:
	case AGT_EV_LINK_SILENT:
		agt_link_event(a, ev);
		break;
	case AGT_EV_LINK_RATE:
		agt_link_rate(a, ev);
		break;
	case AGT_EV_PROBED:
		agt_probed(a, ev);
		break;
	case AGT_EV_MEASURED:
		agt_measured(a, ev);
		break;
	case AGT_EV_XFER_DONE:
		agt_op_xfer_done(a, ev);
		break;
	case AGT_EV_XFER_CANCELLED:
		agt_op_xfer_cancelled(a, ev);
		break;
	case AGT_EV_XFER_STANDSTILL:
		agt_op_xfer_standstill(a, ev);
		break;
	case AGT_EV_SYNC_DONE:
		agt_sync_done(a, ev);
		break;
	case AGT_EV_SYNC_DROPPED:
		agt_sync_dropped(a, ev);
		break;
	case AGT_EV_SYNC_CANCELLED:
		agt_sync_cancelled(a, ev);
		break;
	case AGT_EV_TICK:
		tick(a);
		break;
	case AGT_EV_END:
		end(a);
		break;
	}
}

void agt_step(struct agt *a, const struct agt_event *ev, uint64_t now_ns, struct agt_actions *out)
{
	struct agt_run *r, *next;

	if (a->ended)
		return;
	a->now = now_ns;
	a->out = out;
	dispatch(a, ev);
	if (!a->ended)
		HASH_ITER (hh, a->runs, r, next)
			agt_run_settle(a, r);
	a->out = NULL;
}
