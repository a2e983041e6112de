/* SPDX-License-Identifier: MIT
 *
 * Difference reports, for people: the keys of a job with the elected hashes, the keys in which this
 * host's peers differed, and whether these keys were repaired. There are reports of jobs in
 * progress, and of each communicator's last job while the communicator exists. A report for which
 * there is no memory is dropped. Used by the loop thread.
 */
#ifndef DIFF_REPORT_H
#define DIFF_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/wire_master.h"

struct loc;

#define DIFF_KEYS_MAX    1000u /* the most keys that are kept of a job */
#define DIFF_ENTRIES_MAX 32u   /* the most keys that are named for a member */
#define DIFF_NAME_MAX    256u  /* bytes of a name, with NUL; longer names end in dots */
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
	uint32_t n_tensors, n; /* all keys; the keys that are kept, which are the first by name */
	struct diff_key *v;
	char *names;
};

enum diff_cause {
	DIFF_DRIFT = 0, /* its candidate had the elected revision, but other contents */
	DIFF_OUTDATED,  /* its candidate had another revision */
	DIFF_NEWCOMER,  /* none of its synchronizations has succeeded before */
	DIFF_TORN,      /* a failed synchronization had left torn state */
};
const char *op_diff_cause_name(enum diff_cause c);

/* The differences in one key, or the sums of several keys that are not named. */
struct diff_entry {
	char *name; /* NULL: sums */
	uint32_t keys;
	uint64_t leaves, of, bytes, done; /* see ste_diff */
};
void op_diff_entry_add(struct diff_entry *sum, const struct diff_entry *d);

struct diff_member {
	uint32_t comm;
	enum diff_cause cause;
	uint64_t offered;   /* the revision of its candidate */
	bool complete;      /* it now has the elected contents */
	bool ended;         /* the job no longer writes to the member's memory */
	uint32_t n_tensors; /* tensors that differed */
	uint32_t n;         /* entries of `diffs`: the first tensors that differed */
	struct diff_entry *diffs;
	struct diff_entry rest[2]; /* sums of the other tensors: incomplete, and complete */
};
/* Does the member now have the elected contents of this key, or of all keys of the sums? */
bool op_diff_there(const struct diff_member *m, const struct diff_entry *d);
const char *op_diff_outcome(const struct diff_member *m, const struct diff_entry *d);

struct diff_report {
	struct loc *loc;
	uint32_t refs, uid;
	uint64_t charged;
	uint32_t run, group;
	uint64_t seq, revision; /* elected */
	struct diff_keys *keys;
	uint64_t *hashes;         /* elected, of the keys that are kept; NULL: unknown */
	char from[DIFF_FROM_MAX]; /* "pid 7, host-1 and 2 more", or "" */
	uint32_t n_members;
	struct diff_member *members;
};

void op_diff_unref(struct diff_report *f); /* accepts NULL */
/* Returns the part of the report about this communicator, or NULL. */
const struct diff_member *op_diff_member(const struct diff_report *f, uint32_t comm);
#endif
