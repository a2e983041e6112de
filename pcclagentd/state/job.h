/* SPDX-License-Identifier: MIT
 *
 * What a job knows: hashes, leaves, and when it is over: job.c.
 */
#ifndef STATE_JOB_H
#define STATE_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pcclagentd/state/copy.h"
#include "pcclagentd/state/set.h"
#include "pcclagentd/state/state.h"

struct ste_peer;
struct ste_src;
struct ste_stream;

enum ste_leaf { STE_LEAF_UNKNOWN = 0, STE_LEAF_MISSING, STE_LEAF_ASKED, STE_LEAF_HAVE };
enum ste_tensor {
	STE_TENSOR_UNKNOWN = 0,
	STE_TENSOR_SAME,  /* for all receivers here, or never compared */
	STE_TENSOR_WANT,  /* its leaf hashes are */
	STE_TENSOR_ASKED, /* one stream gets its leaf hashes */
	STE_TENSOR_READY, /* leaf hashes are known, leaves compared */
};

struct ste_job {
	struct ste *e;
	uint64_t seq, revision;
	uint32_t group;
	struct wm_digest content;
	hsh_leaf_fn *leaf_fn;
	uint32_t n_peers, n_srcs;
	struct ste_peer *peers;
	struct ste_src *srcs;
	uint32_t n_tensors;
	uint64_t n_leaves;
	const struct ste_peer *table;           /* whose manifest tells names; NULL: nobody's */
	const struct shm_state_tensor *tensors; /* of one of them */
	struct ste_set receivers;               /* that have not failed */
	struct ste_set holders;                 /* that have all */
	uint64_t *want;                         /* tensor hashes */
	bool have_want, want_asked;             /* asked: by one stream */
	uint8_t *tensor;                        /* enum ste_tensor of each */
	uint64_t *elected;                      /* leaf hashes */
	uint64_t *scratch; /* for the leaf hashes of the largest tensor, or the hashes of all */
	uint8_t *leaf;     /* enum ste_leaf of each */
	uint32_t unready;  /* tensors that differ, but are not READY */
	uint32_t next_want;
	uint64_t n_missing, n_asked; /* leaves */
	uint64_t cursor;             /* leaf */
	uint32_t next_holder;
	struct ste_block blocks[STE_BLOCKS];
	uint32_t n_blocks;
	struct ste_stream *streams;
	uint32_t n_streams;
	uint64_t base_ns;             /* of the farthest source that something comes from */
	uint64_t here_ns;             /* last look at our own addresses */
	uint64_t paced_ns, paced_rx;  /* last look at the rate, and net_rx then */
	bool started, fetching, over; /* over: DONE or FAILED has been told */
	uint64_t moved_ns;            /* last progress */
	uint64_t rate_ns, rate_done;
	_Atomic uint32_t phase, waits_for;
	_Atomic uint64_t total, done, rate, net_rx, net_tx, moved;
	struct cc_id suspect;
	bool exhausted; /* see ste_event */
	char text[STE_TEXT_MAX];
	struct ste_job *next;
	_Atomic bool members_told; /* STE_NOTE_MEMBERS is under way */
	/* L */
	bool cancelling;
	struct ste_job *l_next;
};

int ste_job_new(struct ste *e, const struct ste_spec *spec, struct ste_job **ret);
void ste_job_free(struct ste_job *j);
/* In the thread: members are checked, what can be compared is. */
void ste_job_begin(struct ste_job *j);
/* True: there is more to do at once. */
bool ste_job_step(struct ste_job *j);
void ste_job_fail(struct ste_job *j, const struct cc_id *suspect, const char *text);
/* Do these tensor hashes make the elected digest? */
bool ste_job_is_content(struct ste_job *j, const uint64_t *hashes, size_t n);
/* j->want is there: holds it against the elected digest and compares. False: it is wrong. */
bool ste_job_take_tensors(struct ste_job *j);
/* The elected leaf hashes of a tensor are there: likewise. */
bool ste_job_take_leaves(struct ste_job *j, uint32_t tensor);
/* The leaf is right. May set the elected hash of a tensor's only leaf. */
bool ste_job_leaf_is(
	struct ste_job *j, uint32_t tensor, uint64_t leaf, const uint8_t *data, size_t len);
/* All leaves of a block. */
bool ste_job_block_is(struct ste_job *j, const struct ste_block *b, const uint8_t *data);
/* Copies a block to dst, and tells whether all its leaves are right there. For a block of more than
 * one leaf by any thread, while the job lasts. */
bool ste_job_block_copy(struct ste_job *j, const struct ste_block *b, uint8_t *dst);
/* Receivers that lack the leaf (of all). */
struct ste_set ste_job_lackers(const struct ste_job *j, uint64_t leaf);
bool ste_job_is_lacked(const struct ste_job *j, uint64_t leaf);
/* Takes the next missing leaves from *cursor on, at most max. False: there are none. */
bool ste_job_pick(struct ste_job *j, uint64_t *cursor, uint32_t max, struct ste_block *ret);
/* Leaves that were picked: those that nobody lacks are there, others are missing again. */
void ste_job_settle(struct ste_job *j, uint32_t tensor, uint64_t first, uint32_t n);
/* The member has the leaves of the block now. */
void ste_job_got(struct ste_job *j, struct ste_peer *p, const struct ste_block *b);
const char *ste_job_name(const struct ste_job *j, uint32_t tensor, char *buf, size_t size);
struct ste_peer *ste_job_holder(struct ste_job *j); /* in turn; NULL: none */
void ste_job_moved(struct ste_job *j);

#endif
