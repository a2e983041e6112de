/* SPDX-License-Identifier: MIT */
#include "proto/wire_master.h"

#include <stddef.h>
#include <stdlib.h>

size_t wire_master_size(enum wm_type t)
{
	static const uint16_t sizes[] = {
		[WM_HELLO] = sizeof(struct wm_hello),
		[WM_JOIN] = sizeof(struct wm_join),
		[WM_LEAVE] = sizeof(struct wm_leave),
		[WM_TOPO_VOTE] = sizeof(struct wm_peer),
		[WM_PENDING_VOTE] = sizeof(struct wm_peer),
		[WM_OP_VOTE] = sizeof(struct wm_op_vote),
		[WM_OP_REPORT] = sizeof(struct wm_op_report),
		[WM_ROUND_REPORT] = sizeof(struct wm_round_report),
		[WM_HEARTBEAT] = sizeof(struct wm_heartbeat),
		[WM_RESUME] = sizeof(struct wm_resume),
		[WM_OP_QUERY] = sizeof(struct wm_op_query),
		[WM_STOPPED] = sizeof(struct wm_stopped),
		[WM_WAITS_FOR] = sizeof(struct wm_waits_for),
		[WM_STANDSTILL] = sizeof(struct wm_standstill),
		[WM_LINK_LOST] = sizeof(struct wm_link_lost),
		[WM_KNOCK] = sizeof(struct wm_knock),
		[WM_ADDRESSES] = sizeof(struct wm_addresses),
		[WM_PROBED] = sizeof(struct wm_probed),
		[WM_HELLO_ACK] = sizeof(struct wm_hello_ack),
		[WM_REFUSE] = sizeof(struct wm_refuse),
		[WM_ROUND] = sizeof(struct wm_round),
		[WM_COMMIT] = sizeof(struct wm_commit),
		[WM_VIEW] = sizeof(struct wm_view),
		[WM_OP_START] = sizeof(struct wm_op_start),
		[WM_OP_ABORT] = sizeof(struct wm_op_abort),
		[WM_OP_DONE] = sizeof(struct wm_op_done),
		[WM_PENDING_ANSWER] = sizeof(struct wm_pending_answer),
		[WM_KICK] = sizeof(struct wm_kick),
		[WM_OP_OUTCOMES] = sizeof(struct wm_op_outcomes),
		[WM_WAITS] = sizeof(struct wm_waits),
		[WM_UNMET] = sizeof(struct wm_unmet),
		[WM_LEFT] = sizeof(struct wm_left),
		[WM_KNOCK_ACK] = sizeof(struct wm_knock_ack),
		[WM_PROBE] = sizeof(struct wm_probe),
	};
	size_t size = (size_t)t < sizeof sizes / sizeof *sizes ? sizes[t] : 0;

	return offsetof(struct wm_msg, u) + size;
}

void wire_master_clear(struct wm_msg *m)
{
	switch (m->type) {
	case WM_OP_VOTE:
		free(m->u.op_vote.peers);
		break;
	case WM_OP_REPORT:
		free(m->u.op_report.failed);
		break;
	case WM_OP_START:
		free(m->u.op_start.sync.peers);
		free(m->u.op_start.sync.sources);
		free(m->u.op_start.sync.others);
		break;
	case WM_ROUND_REPORT:
		free(m->u.round_report.failures);
		break;
	case WM_ROUND:
		for (uint32_t i = 0; i < m->u.round.n_rings; i++)
			free(m->u.round.rings[i].members);
		free(m->u.round.rings);
		break;
	case WM_COMMIT:
		free(m->u.commit.view.own);
		break;
	case WM_VIEW:
		free(m->u.view.own);
		break;
	case WM_UNMET:
		free(m->u.unmet.peers);
		break;
	case WM_RESUME:
		free(m->u.resume.view.own);
		free(m->u.resume.positions);
		free(m->u.resume.outcomes);
		break;
	default:
		break;
	}
	m->type = (enum wm_type)0;
}

const char *wire_master_type_name(enum wm_type t)
{
	switch (t) {
	case WM_HELLO:
		return "hello";
	case WM_JOIN:
		return "join";
	case WM_LEAVE:
		return "leave";
	case WM_TOPO_VOTE:
		return "topo_vote";
	case WM_PENDING_VOTE:
		return "pending_vote";
	case WM_OP_VOTE:
		return "op_vote";
	case WM_OP_REPORT:
		return "op_report";
	case WM_ROUND_REPORT:
		return "round_report";
	case WM_HEARTBEAT:
		return "heartbeat";
	case WM_RESUME:
		return "resume";
	case WM_OP_QUERY:
		return "op_query";
	case WM_ADDRESSES:
		return "addresses";
	case WM_STOPPED:
		return "stopped";
	case WM_WAITS_FOR:
		return "waits_for";
	case WM_STANDSTILL:
		return "standstill";
	case WM_LINK_LOST:
		return "link_lost";
	case WM_PROBED:
		return "probed";
	case WM_HELLO_ACK:
		return "hello_ack";
	case WM_REFUSE:
		return "refuse";
	case WM_ROUND:
		return "round";
	case WM_COMMIT:
		return "commit";
	case WM_VIEW:
		return "view";
	case WM_OP_START:
		return "op_start";
	case WM_OP_ABORT:
		return "op_abort";
	case WM_OP_DONE:
		return "op_done";
	case WM_PENDING_ANSWER:
		return "pending_answer";
	case WM_KICK:
		return "kick";
	case WM_OP_OUTCOMES:
		return "op_outcomes";
	case WM_WAITS:
		return "waits";
	case WM_UNMET:
		return "unmet";
	case WM_LEFT:
		return "left";
	case WM_KNOCK:
		return "knock";
	case WM_KNOCK_ACK:
		return "knock_ack";
	case WM_PROBE:
		return "probe";
	}
	return "unknown";
}

bool wire_master_is_secret(const struct wm_msg *m)
{
	switch (m->type) {
	case WM_HELLO: /* of another version: has only versions, and will be refused */
		return m->u.hello.version_min <= WM_VERSION_MAX &&
		       m->u.hello.version_max >= WM_VERSION_MIN;
	case WM_JOIN:
	case WM_ROUND:
		return true;
	case WM_OP_START:
		return m->u.op_start.is_sync;
	default:
		return false;
	}
}
