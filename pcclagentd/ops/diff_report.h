/* SPDX-License-Identifier: MIT
 *
 * What jobs of shared state have found, for people: the keys with what was elected of them, which
 * of them differed on this host's peers, and what came of that. Of jobs that go on, and of each
 * communicator's last job, as long as there is the communicator; what there is no memory for is not
 * known. Loop thread.
 */
#ifndef DIFF_REPORT_H
#define DIFF_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/wire_master.h"

struct loc;

#define DIFF_KEYS_MAX    1000u /* that are kept, of each job */
#define DIFF_ENTRIES_MAX 32u   /* named, of those in which a member differed */
#define DIFF_NAME_MAX    256u  /* with NUL; longer ones end in dots */
#define DIFF_FROM_MAX    256u

struct diff_key {
	const char *name;
	uint64_t count;
	uint8_t dtype;
	bool may_differ;
};

/* Shared by the difference reports of all jobs with the same keys. */
struct diff_keys {
	struct loc *loc;
	uint32_t refs, uid;
	uint64_t charged;
	struct wm_digest digest;
	uint32_t n_tensors, n; /* all; kept, the first ones by name */
	struct diff_key *v;
	char *names;
};

enum diff_cause {
	DIFF_DRIFT = 0, /* one has succeeded, and it offered other contents at the same revision */
	DIFF_OUTDATED,  /* it offered another revision */
	DIFF_NEWCOMER,  /* no synchronization of it has succeeded yet */
	DIFF_TORN,      /* a synchronization that failed had left torn state */
};
const char *op_diff_cause_name(enum diff_cause c);

/* A key, or the sums of so many that are not named. */
struct diff_entry {
	char *name; /* NULL: sums */
	uint32_t keys;
	uint64_t leaves, of, bytes, done; /* see ste_diff */
};
void op_diff_entry_add(struct diff_entry *sum, const struct diff_entry *d);

struct diff_member {
	uint32_t comm;
	enum diff_cause cause;
	uint64_t offered;   /* revision */
	bool complete;      /* it has all that was elected */
	bool ended;         /* nothing more comes */
	uint32_t n_tensors; /* that differed */
	uint32_t n;         /* the first of them, at most DIFF_ENTRIES_MAX */
	struct diff_entry *diffs;
	struct diff_entry rest[2]; /* the others: those that are not there, and those that are */
};
/* Is it there now? Of sums: all of them. */
bool op_diff_there(const struct diff_member *m, const struct diff_entry *d);
const char *op_diff_outcome(const struct diff_member *m, const struct diff_entry *d);

struct diff_report {
	struct loc *loc;
	uint32_t refs, uid;
	uint64_t charged;
	uint32_t run, group;
	uint64_t seq, revision; /* elected */
	struct diff_keys *keys;
	uint64_t *hashes;         /* of the keys that are kept; NULL: it did not hear of them */
	char from[DIFF_FROM_MAX]; /* "pid 7, host-1 and 2 more", or "" */
	uint32_t n_members;
	struct diff_member *members;
};

void op_diff_unref(struct diff_report *f); /* NULL is fine */
/* Of the communicator; NULL: none. */
const struct diff_member *op_diff_member(const struct diff_report *f, uint32_t comm);
#endif
