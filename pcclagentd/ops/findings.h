/* SPDX-License-Identifier: MIT
 *
 * What jobs of shared state have found, for people: the keys with what was elected of them, which
 * of them differed on this host's peers, and what came of that. Of jobs that go on, and of each
 * communicator's last job, as long as there is the communicator; what there is no memory for is not
 * known. Loop thread.
 */
#ifndef FINDINGS_H
#define FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/wire_master.h"

struct loc;

#define FOUND_KEYS_MAX  1000u /* that are kept, of each job */
#define FOUND_DIFFS_MAX 32u   /* named, of those in which a member differed */
#define FOUND_NAME_MAX  256u  /* with NUL; longer ones end in dots */
#define FOUND_FROM_MAX  256u

struct found_key {
	const char *name;
	uint64_t count;
	uint8_t dtype;
	bool may_differ;
};

/* Shared by the findings of all jobs with the same keys. */
struct found_keys {
	struct loc *loc;
	uint32_t refs, uid;
	uint64_t charged;
	struct wm_digest digest;
	uint32_t n_tensors, n; /* all; kept, the first ones by name */
	struct found_key *v;
	char *names;
};

enum found_cause {
	FOUND_DRIFT = 0, /* one has succeeded, and it offered other contents at the same revision */
	FOUND_OUTDATED,  /* it offered another revision */
	FOUND_NEWCOMER,  /* no synchronization of it has succeeded yet */
	FOUND_TORN,      /* a synchronization that failed had left a mixture */
};
const char *op_found_cause_name(enum found_cause c);

/* A key, or the sums of so many that are not named. */
struct found_diff {
	char *name; /* NULL: sums */
	uint32_t keys;
	uint64_t leaves, of, bytes, done; /* see ste_diff */
};
void op_found_diff_add(struct found_diff *sum, const struct found_diff *d);

struct found_member {
	uint32_t comm;
	enum found_cause cause;
	uint64_t offered;   /* revision */
	bool complete;      /* it has all that was elected */
	bool ended;         /* nothing more comes */
	uint32_t n_tensors; /* that differed */
	uint32_t n;         /* the first of them, at most FOUND_DIFFS_MAX */
	struct found_diff *diffs;
	struct found_diff rest[2]; /* the others: those that are not there, and those that are */
};
/* Is it there now? Of sums: all of them. */
bool op_found_there(const struct found_member *m, const struct found_diff *d);
const char *op_found_outcome(const struct found_member *m, const struct found_diff *d);

struct findings {
	struct loc *loc;
	uint32_t refs, uid;
	uint64_t charged;
	uint32_t run, group;
	uint64_t seq, revision; /* elected */
	struct found_keys *keys;
	uint64_t *hashes;          /* of the keys that are kept; NULL: it did not hear of them */
	char from[FOUND_FROM_MAX]; /* "pid 7, host-1 and 2 more", or "" */
	uint32_t n_members;
	struct found_member *members;
};

void op_findings_unref(struct findings *f); /* NULL is fine */
/* Of the communicator; NULL: none. */
const struct found_member *op_findings_member(const struct findings *f, uint32_t comm);
#endif
