/* SPDX-License-Identifier: MIT
 *
 * The journal of a master. The file consists of a header and records. A record consists of a
 * length, a checksum and a protobuf message (proto/journal.proto). A reader stops at the first
 * record that is cut short or damaged. Pure.
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
#define WJ_VERSION     2u
#define WJ_RECORD_MAX  (16u << 20) /* payload */
#define WJ_MEMBERS_MAX 65536u
#define WJ_GROUPS_MAX  65536u /* groups with a revision */

enum wj_type { WJ_RUN = 1, WJ_MEMBERS = 2, WJ_LOST = 3 };

struct wj_member {
	struct cc_id peer;
	struct cc_id token; /* may be zero; in LOST this and the following fields are zero */
	struct cc_id agent;
	uint32_t group;
	char host[WM_NAME_MAX];
	/* Name of its program; "", with pid 0, in journals of older masters. */
	char name[WM_NAME_MAX];
	uint32_t pid;
};

/* The revision that a group expects at its next synchronization of shared state. When the last
 * member of the group is gone, the revision is kept, unless this member left by itself and `lost`
 * is false. */
struct wj_revision {
	uint32_t group;
	uint64_t revision; /* >= 1 */
	bool lost;         /* since the last synchronization a member was lost without leaving */
};

struct wj_record {
	enum wj_type type;
	/* RUN. A zero run means that there is no run any more. */
	struct cc_id run, run_key;
	uint64_t term;
	/* MEMBERS */
	uint64_t epoch, round, last_seq, ballots[WIRE_BALLOTS];
	/* MEMBERS and LOST */
	uint64_t view_id, generation;
	uint32_t n;
	struct wj_member *members; /* owned; NULL if there are none */
	/* MEMBERS: one for each group with a revision. After decoding they are sorted by group. */
	uint32_t n_revisions;
	struct wj_revision *revisions; /* owned */
};

void wire_journal_header(uint8_t buf[WJ_HEADER]);
/* Checks the header. Returns 0 if it is right. Otherwise returns CC_ERR_AGAIN if the header is cut
 * short, CC_ERR_PROTO if the file is not a journal, or CC_ERR_VERSION if the journal has another
 * version. */
int wire_journal_check(const uint8_t *buf, size_t len);
/* Encodes one whole record. *ret is malloc'd, and the caller owns it. */
int wire_journal_encode(const struct wj_record *r, uint8_t **ret, size_t *ret_len);
/* Decodes the record at the beginning of buf. On success *ret owns memory (wire_journal_clear), and
 * *used is the length of the record. Returns CC_ERR_AGAIN if the record is cut short, or
 * CC_ERR_NOMEM. On any other error the record is damaged, and *why (static text) names the damage.
 * On failure *ret is unchanged. */
int wire_journal_decode(
	const uint8_t *buf, size_t len, struct wj_record *ret, size_t *used, const char **why);
/* Decodes the payload of a record whose checksum is correct. Returns 0, or a negative enum cc_err
 * with *why. */
int wire_journal_get(const uint8_t *payload, size_t len, struct wj_record *ret, const char **why);
void wire_journal_clear(struct wj_record *r);

#endif
