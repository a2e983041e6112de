/* SPDX-License-Identifier: MIT
 *
 * Messages between agents and the master, as plain structs. Decoders check every limit that is
 * named here before other code sees a message. The bytes are protobuf (proto/ccoip.proto) inside
 * the framing of wire_frame.h; proto/PROTOCOL.md describes the order of messages. Pure.
 */
#ifndef WIRE_MASTER_H
#define WIRE_MASTER_H

#include "proto/wire_member.h"
#include "proto/wire_op.h"

enum wm_type {
	/* agent to master */
	WM_HELLO = 1,
	WM_JOIN = 2,
	WM_LEAVE = 3,
	WM_BALLOT_VOTE = 4,
	WM_OP_VOTE = 6,
	WM_OP_REPORT = 7,
	WM_ROUND_REPORT = 8,
	WM_HEARTBEAT = 9, /* both directions */
	WM_RESUME = 10,
	WM_OP_QUERY = 11,
	WM_STOPPED = 12,
	WM_WAITS_FOR = 13,
	WM_STANDSTILL = 14,
	WM_LINK_LOST = 15,
	WM_KNOCK = 17,
	WM_ADDRESSES = 19,
	WM_MESH = 20,
	WM_PROBED = 16,
	WM_MEASURED = 21,
	WM_RATES = 22,
	/* master to agent */
	WM_HELLO_ACK = 32,
	WM_REFUSE = 33,
	WM_ROUND = 34,
	WM_COMMIT = 35,
	WM_VIEW = 36,
	WM_OP_START = 37,
	WM_OP_ABORT = 38,
	WM_OP_DONE = 39,
	WM_BALLOT_END = 40,
	WM_KICK = 41,
	WM_OP_OUTCOMES = 42,
	WM_WAITS = 43,
	WM_UNMET = 44,
	WM_LEFT = 45,
	WM_KNOCK_ACK = 48,
	WM_PROBE = 47,
	WM_LINK_REOPEN = 49,
	WM_MEASURE = 50,
};

struct wm_msg {
	enum wm_type type;
	union {
		struct wm_hello hello;
		struct wm_join join;
		struct wm_leave leave;
		struct wm_ballot_vote ballot_vote;
		struct wm_op_vote op_vote;
		struct wm_op_report op_report;
		struct wm_round_report round_report;
		struct wm_heartbeat heartbeat;
		struct wm_hello_ack hello_ack;
		struct wm_refuse refuse;
		struct wm_round round;
		struct wm_commit commit;
		struct wm_view view;
		struct wm_op_start op_start;
		struct wm_op_abort op_abort;
		struct wm_op_done op_done;
		struct wm_ballot_end ballot_end;
		struct wm_kick kick;
		struct wm_resume resume;
		struct wm_op_query op_query;
		struct wm_op_outcomes op_outcomes;
		struct wm_stopped stopped;
		struct wm_link_lost link_lost;
		struct wm_addresses addresses;
		struct wm_waits waits;
		struct wm_waits_for waits_for;
		struct wm_standstill standstill;
		struct wm_unmet unmet;
		struct wm_left left;
		struct wm_knock knock;
		struct wm_knock_ack knock_ack;
		struct wm_probe probe;
		struct wm_probed probed;
		struct wm_mesh mesh;
		struct wm_link_reopen link_reopen;
		struct wm_measure measure;
		struct wm_measured measured;
		struct wm_rates rates;
	} u;
};

/* Encodes m as one whole frame (header and payload). *ret is malloc'd, and the caller owns it. */
int wire_master_encode(const struct wm_msg *m, uint8_t **ret, size_t *ret_len);
/* Decodes the payload of one frame. On success *ret owns memory (wire_master_clear); an empty list
 * is NULL. On failure returns a negative enum cc_err; *ret is empty, and *why (static text) names
 * the field and the limit. */
int wire_master_decode(const uint8_t *payload, size_t len, struct wm_msg *ret, const char **why);
/* Frees the memory that m owns, and makes m empty, without a type. */
void wire_master_clear(struct wm_msg *m);
/* Returns the number of bytes at the start of a struct wm_msg that a message of this type uses. No
 * code reads the other bytes. This saves work because each operation sends small messages, while
 * large messages are rare. */
size_t wire_master_size(enum wm_type t);
const char *wire_master_type_name(enum wm_type t);
/* Does the message contain a secret? Only such messages are sealed (daemon/cc_channel.h). */
bool wire_master_is_secret(const struct wm_msg *m);

#endif
