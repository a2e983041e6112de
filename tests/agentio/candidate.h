/* SPDX-License-Identifier: MIT
 *
 * A process in a synchronization: its tensors, their manifest, its submission, and the work of its
 * waiting thread, which the test does step by step.
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
	uint32_t n; /* tensors of type u8 */
	char name[CANDIDATE_TENSORS][16];
	uint64_t bytes[CANDIDATE_TENSORS];
	uint8_t *data[CANDIDATE_TENSORS];
	/* the registered region; 0: the data is in memory of the test */
	uint64_t region[CANDIDATE_TENSORS], off[CANDIDATE_TENSORS];
	bool may_differ[CANDIDATE_TENSORS];
	uint32_t hash_type; /* the hash type of leaves */
	hsh_leaf_fn *leaf;
	struct mem state; /* the region of the manifest */
	struct shm_state_header *hdr;
	struct shm_state_entry *entry;
	struct shm_sqe sqe; /* the submission; a test may change it before the push */
	uint32_t seen, acked;
	bool blind;      /* cannot map the memory of other peers */
	uint64_t shown;  /* the last region that a command named */
	void *shown_map; /* the mapping of this region */
	size_t shown_size;
};

/* Makes two tensors, "a" with `bytes` bytes and "b" with five, filled with `fill`, in registered
 * memory or in memory of the test. The hash type is simplehash, unless the test changes it. */
void candidate_init(struct candidate *o, struct client *c, struct queue *q, uint64_t bytes,
	uint8_t fill, bool registered);
/* Writes the manifest and the submission. Allocates the manifest's region at the first call. */
void candidate_write(struct candidate *o, uint64_t revision);
void candidate_push(struct candidate *o);
/* Carries out the next command. Returns false if there is none. */
bool candidate_carry_out(struct candidate *o);
/* Sleeps until there is a command or the completion. Returns false if neither comes. */
bool candidate_wait(struct candidate *o, uint32_t timeout_ms);
/* Carries out commands until the completion. Returns its code. */
uint32_t candidate_await(struct candidate *o);
struct shm_slot *candidate_slot(const struct candidate *o);
bool candidate_complete(const struct candidate *o); /* returns the manifest's flag `complete` */
/* Returns the manifest's flag `at_work`, which the agent sets with its job. */
bool candidate_at_work(const struct candidate *o);
/* Checks that all bytes of the tensors equal `fill`. */
void candidate_check(const struct candidate *o, uint8_t fill);
void candidate_free(struct candidate *o); /* frees the test's memory */

/* ---- the master's part */

void sync_expect_votes(struct master *m, unsigned n);
/* Elects the contents of the candidate `of`. a_holds, b_holds: the first and the second peer are
 * holders, not receivers. src: a source, or NULL. The attempt is m->seq. */
void sync_elect(struct master *m, const struct candidate *of, bool a_holds, bool b_holds,
	struct wm_sync_source *src);
void sync_expect_report(struct master *m, unsigned n_failed, struct wm_msg *ret);
void sync_finish(struct master *m, uint64_t revision);
void sync_abort(struct master *m);
void sync_kick(struct master *m, uint8_t peer);

/* ---- the part of another agent, agent 77 */

/* Opens a stream to the agent for this attempt. Returns the test's end. */
int stream_connect(const struct master *m, struct fx *f, uint64_t seq);
/* Accepts the next stream to agent 77. */
int stream_accept(const struct master *m, int listener);
/* Answers the hello of the stream that was accepted last. */
void stream_welcome(int fd);
/* Sends a request and expects an answer with this status. The answer's payload
 * goes to `buf`. */
void stream_ask(int fd, struct wst_request *r, enum wst_status status, uint8_t *buf, uint32_t len);

#endif
