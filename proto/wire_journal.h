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
#define WJ_HOSTS_MAX   65536u
#define WJ_RATES_MAX   65536u
#define WJ_SOURCE_MAX  3

enum wj_type { WJ_RUN = 1, WJ_MEMBERS = 2, WJ_LOST = 3, WJ_RATES = 4 };

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

/* A host in the bandwidth store. */
struct wj_host {
	struct cc_id agent; /* its last agent */
	char name[WM_NAME_MAX];
	struct cc_addr addr; /* of this agent; its port is that for links */
	uint64_t out, in;    /* what it can send and receive in all, in bit/s; both 0: not known */
	uint32_t caps_age_s;
	uint32_t caps_source;     /* up to WJ_SOURCE_MAX */
	uint32_t caps_confidence; /* 0 .. 100, when they were measured */
	bool caps_stale;          /* to be measured again */
};

/* The rate of a link. */
struct wj_rate {
	uint32_t from, to; /* different indices of hosts */
	uint64_t rate;     /* bit/s */
	uint32_t trip_us, age_s;
	uint32_t confidence; /* 0 .. 100, when it was measured */
	uint32_t source;     /* up to WJ_SOURCE_MAX */
	bool stale;          /* to be measured again */
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
	/* RATES: the whole bandwidth store. It belongs to no run. */
	uint32_t n_hosts, n_rates;
	struct wj_host *hosts; /* owned */
	struct wj_rate *rates; /* owned */
	uint64_t written_s;    /* when ages were as stated, in seconds since 1970 */
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
/* Adds to all ages of RATES the time since the record was written. `now_s`: seconds since 1970. If
 * the clock was set back meanwhile, nobody knows by how much, and the ages stay. */
void wire_journal_age(struct wj_record *r, uint64_t now_s);
void wire_journal_clear(struct wj_record *r);

#endif
