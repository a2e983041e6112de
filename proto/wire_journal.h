/* SPDX-License-Identifier: MIT
 *
 * The file that a master keeps its run in: a header, then records, each a length, a checksum and a
 * protobuf message (proto/journal.proto). A record that is cut short or damaged ends the file.
 * Pure.
 *
 *    header   "PCCLJRNL", version u32, 0 u32
 *    record   length of the payload u32, CRC-32 of the payload u32, payload
 *
 * All numbers are little-endian.
 */
#ifndef WIRE_JOURNAL_H
#define WIRE_JOURNAL_H

#include "proto/wire_master.h"

#define WJ_HEADER      16u
#define WJ_RECORD_HDR  8u
#define WJ_VERSION     1u
#define WJ_RECORD_MAX  (16u << 20) /* payload */
#define WJ_MEMBERS_MAX 65536u
#define WJ_GROUPS_MAX  65536u /* with a revision */

enum wj_type { WJ_RUN = 1, WJ_MEMBERS = 2, WJ_LOST = 3 };

struct wj_member {
	struct cc_id peer;
	struct cc_id token; /* may be zero; LOST: is, and so is what follows */
	struct cc_id agent;
	uint32_t group;
	char host[WM_NAME_MAX];
	char name[WM_NAME_MAX]; /* of its program; "" and pid 0 in the journals of earlier masters
				 */
	uint32_t pid;
};

/* What a group expects of its next synchronization of shared state. It is kept when the group has
 * no members any more, unless the last one left by itself and lost is false. */
struct wj_revision {
	uint32_t group;
	uint64_t revision; /* >= 1 */
	bool lost;         /* since the last one a member was lost and had not left */
};

struct wj_record {
	enum wj_type type;
	/* RUN; run zero: there is none any more */
	struct cc_id run, run_key;
	uint64_t term;
	/* MEMBERS */
	uint64_t epoch, round, last_seq, topo_ballot, pending_ballot;
	/* MEMBERS and LOST */
	uint64_t view_id, generation;
	uint32_t n;
	struct wj_member *members; /* owned */
	/* MEMBERS: of all groups that have one, in ascending order of groups when decoded */
	uint32_t n_revisions;
	struct wj_revision *revisions; /* owned */
};

void wire_journal_header(uint8_t buf[WJ_HEADER]);
/* 0; CC_ERR_AGAIN: too short; CC_ERR_VERSION: of another version; CC_ERR_PROTO: no journal. */
int wire_journal_check(const uint8_t *buf, size_t len);
/* One whole record. *ret is malloc'd and owned by the caller. */
int wire_journal_encode(const struct wj_record *r, uint8_t **ret, size_t *ret_len);
/* The record at the beginning of buf. On success *ret owns memory (wire_journal_clear) and *used is
 * its length. CC_ERR_AGAIN: it is cut short; CC_ERR_NOMEM; else it is damaged, and *why (static
 * text) says how. *ret is untouched on failure. */
int wire_journal_decode(
	const uint8_t *buf, size_t len, struct wj_record *ret, size_t *used, const char **why);
/* The payload of a record whose checksum is right. 0 or a negative enum cc_err with *why. */
int wire_journal_get(const uint8_t *payload, size_t len, struct wj_record *ret, const char **why);
void wire_journal_clear(struct wj_record *r);

#endif
