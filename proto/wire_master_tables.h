/* SPDX-License-Identifier: MIT
 *
 * The tables of the messages between agents and the master (wire_master.h), and the kinds of fields
 * that several of them have. The tables are in wire_member_tables.c and wire_op_tables.c, as the
 * structs are in wire_member.h and wire_op.h.
 */
#ifndef WIRE_MASTER_TABLES_H
#define WIRE_MASTER_TABLES_H

#include "proto/ccoip.pb-c.h"
#include "proto/wire_master.h"
#include "proto/wire_table.h"

#define WM_TABLES(X)                                                                               \
	X(HELLO, hello)                                                                            \
	X(JOIN, join)                                                                              \
	X(LEAVE, leave)                                                                            \
	X(BALLOT_VOTE, ballot_vote)                                                                \
	X(OP_VOTE, op_vote)                                                                        \
	X(OP_REPORT, op_report)                                                                    \
	X(ROUND_REPORT, round_report)                                                              \
	X(HEARTBEAT, heartbeat)                                                                    \
	X(RESUME, resume)                                                                          \
	X(OP_QUERY, op_query)                                                                      \
	X(STOPPED, stopped)                                                                        \
	X(WAITS_FOR, waits_for)                                                                    \
	X(STANDSTILL, standstill)                                                                  \
	X(LINK_LOST, link_lost)                                                                    \
	X(PROBED, probed)                                                                          \
	X(KNOCK, knock)                                                                            \
	X(ADDRESSES, addresses)                                                                    \
	X(MESH, mesh)                                                                              \
	X(MEASURED, measured)                                                                      \
	X(RATES, rates)                                                                            \
	X(HELLO_ACK, hello_ack)                                                                    \
	X(REFUSE, refuse)                                                                          \
	X(ROUND, round)                                                                            \
	X(COMMIT, commit)                                                                          \
	X(VIEW, view)                                                                              \
	X(OP_START, op_start)                                                                      \
	X(OP_ABORT, op_abort)                                                                      \
	X(OP_DONE, op_done)                                                                        \
	X(BALLOT_END, ballot_end)                                                                  \
	X(KICK, kick)                                                                              \
	X(OP_OUTCOMES, op_outcomes)                                                                \
	X(WAITS, waits)                                                                            \
	X(UNMET, unmet)                                                                            \
	X(LEFT, left)                                                                              \
	X(PROBE, probe)                                                                            \
	X(KNOCK_ACK, knock_ack)                                                                    \
	X(LINK_REOPEN, link_reopen)                                                                \
	X(MEASURE, measure)

#define WM_DECLARE(type, name) extern const struct wire_table wm_##name##_table;
WM_TABLES(WM_DECLARE)
/* An address with a port from 1. */
extern const struct wire_table wm_address_table;

/* F(join, pid, U32): the member pid of struct wm_join is the field of the same name. */
#define F(s, m, ...)                    WIRE_FIELD(struct wm_##s, #m, m, __VA_ARGS__)
#define AS(s, name, m, ...)             WIRE_FIELD(struct wm_##s, #name, m, __VA_ARGS__)
#define LIST(s, m, count, ...)          WIRE_LIST_FIELD(struct wm_##s, #m, m, count, __VA_ARGS__)
#define LIST_AS(s, name, m, count, ...) WIRE_LIST_FIELD(struct wm_##s, #name, m, count, __VA_ARGS__)
#define TABLE(s, message, lines)        WIRE_TABLE(struct wm_##s, ccoip__##message##__descriptor, lines)

#define HOST_NAME(path) NAME(path ": must be UTF-8 of at most 63 bytes without control characters")
#define REASON(path)    TEXT(path ": must be at most 383 bytes")
#define KEY(path)       .kind = WIRE_ID, .text = path ": must be 32 bytes, not all zero"
#define KEY_OR_NONE(path)                                                                          \
	.kind = WIRE_ID_OR_NONE, .text = path ": must be empty, or 32 bytes, not all zero"
#define PORT(path)         U16_IN(1, UINT16_MAX, path ": must be 1 to 65535")
#define AT_MOST(n, t)      IN(0, n, t)
#define DIGEST(path)       BYTES(path ": must be 16 bytes")
#define PORT_OR_NONE(path) U16_IN(0, UINT16_MAX, path ": must be at most 65535")
#define HASH_TYPE(path)    U32_IN(1, WIRE_HASH_TYPE_MAX, path ": must be 1 to 255")
#define PEERS_LIMIT        ": must be 1 to 1024 ids of 16 bytes, not all zero"
#define PEERS(path)                                                                                \
	.owned = true, IN(1, WM_PEERS_MAX, path PEERS_LIMIT),                                      \
	LIST_OF_ITEMS(.kind = WIRE_ID, .size = sizeof(struct cc_id), .text = path PEERS_LIMIT),    \
	PEERS_DIFFER(path)
/* The elements of a list begin with the id of a peer, or the number of a group. */
#define PEERS_DIFFER(path)  UNIQUE(sizeof(struct cc_id), path ": must not name a peer twice")
#define GROUPS_DIFFER(path) UNIQUE(sizeof(uint32_t), path ": must not name a group twice")

_Static_assert(WM_NAME_MAX == 64 && WM_TEXT_MAX == 384, "limits named in texts");

/* Defines a table of endpoints for a field with this path. */
#define ENDPOINT_TABLE(table, path)                                                                \
	static const struct wire_field table##_fields[] = {                                        \
		F(endpoint, agent, ID(path ".agent")),                                             \
		F(endpoint, name, HOST_NAME(path ".name")),                                        \
		F(endpoint, at_master, BOOL),                                                      \
		F(endpoint, port, PORT(path ".port")),                                             \
		LIST(endpoint, addrs, n_addrs, LIST_OF(wm_address_table),                          \
			AT_MOST(WM_ADDRS_MAX, path ".addrs: must be at most 64"),                  \
			.each = path ".addrs: must be 4 or 16 bytes, with a port of 1 to 65535",   \
			RULE(wm_endpoint_has_addrs,                                                \
				path ".addrs: must be at least 1 unless at_master")),              \
		F(endpoint, key, KEY_OR_NONE(path ".key")),                                        \
		F(endpoint, key_no, U64),                                                          \
	};                                                                                         \
	static const struct wire_table table = {TABLE(endpoint, endpoint, table##_fields)}
#define ENDPOINT(table, path) MESSAGE(table), .text = path ": must be there"

int wm_endpoint_has_addrs(const void *plain);

#endif
