/* SPDX-License-Identifier: MIT
 *
 * What a process offers to a synchronization: its tensors, their manifest, the entry, and the part
 * of its waiting thread, which the test plays step by step.
 */
#ifndef CANDIDATE_H
#define CANDIDATE_H

#include "kernels/hsh.h"
#include "proto/shm_state.h"
#include "proto/wire_state.h"
#include "tests/agentio/fixture.h"

#define CANDIDATE_TENSORS 40u

struct candidate {
	struct client *c;
	struct queue *q;
	uint32_t slot;
	uint32_t n; /* tensors of the u8 type */
	char name[CANDIDATE_TENSORS][16];
	uint64_t bytes[CANDIDATE_TENSORS];
	uint8_t *data[CANDIDATE_TENSORS];
	uint64_t region[CANDIDATE_TENSORS], off[CANDIDATE_TENSORS]; /* 0: its own */
	bool may_differ[CANDIDATE_TENSORS];
	uint32_t hash_type; /* what leaves are hashed by */
	hsh_leaf_fn *leaf;
	struct mem state; /* the region of the manifest */
	struct shm_state_header *hdr;
	struct shm_state_entry *entry;
	struct shm_sqe sqe; /* to be pushed; a test may change it before */
	uint32_t seen, acked;
	bool blind;      /* acts as if it could not map memory of others */
	uint64_t shown;  /* the last region that a command named */
	void *shown_map; /* as the agent gave it */
	size_t shown_size;
};

/* Two tensors, "a" with `bytes` bytes and "b" with five, filled with `fill`; in registered memory,
 * or its own. Their hash is simplehash, unless the test changes that. */
void candidate_init(struct candidate *o, struct client *c, struct queue *q, uint64_t bytes,
	uint8_t fill, bool registered);
/* Writes the manifest, in a region of its own at the first call, and the entry. */
void candidate_write(struct candidate *o, uint64_t revision);
void candidate_push(struct candidate *o);
/* Carries out the next command; false: there is none. */
bool candidate_carry_out(struct candidate *o);
/* Sleeps until there is a command or the completion; false: neither came. */
bool candidate_wait(struct candidate *o, uint32_t timeout_ms);
/* Carries out commands until the completion; returns its code. */
uint32_t candidate_await(struct candidate *o);
struct shm_slot *candidate_slot(const struct candidate *o);
bool candidate_complete(const struct candidate *o); /* says the manifest */
bool candidate_at_work(const struct candidate *o);  /* likewise, of the agent */
/* Are all bytes of both tensors these? */
void candidate_check(const struct candidate *o, uint8_t fill);
void candidate_free(struct candidate *o); /* what it has here */

/* ---- the master's part */

void sync_expect_votes(struct master *m, unsigned n);
/* What `of` offers is elected, and the first and the second peer are holders, or receivers. src:
 * where it can be had, or NULL. The attempt is m->seq. */
void sync_elect(struct master *m, const struct candidate *of, bool a_holds, bool b_holds,
	struct wm_sync_source *src);
void sync_expect_report(struct master *m, unsigned n_failed, struct wm_msg *ret);
void sync_finish(struct master *m, uint64_t revision);
void sync_abort(struct master *m);
void sync_kick(struct master *m, uint8_t peer);

/* ---- the part of another agent, 77 */

/* A stream to the agent for this attempt, which the test plays the other end of. */
int stream_connect(const struct master *m, struct fx *f, uint64_t seq);
/* The next stream to agent 77. */
int stream_accept(const struct master *m, int listener);
/* The answer to its hello, of the last one. */
void stream_welcome(int fd);
/* The answer to one request; its payload in buf. */
void stream_ask(int fd, struct wst_request *r, enum wst_status status, uint8_t *buf, uint32_t len);

#endif
