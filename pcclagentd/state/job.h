/* SPDX-License-Identifier: MIT
 *
 * job.c: the state of a job: hashes, missing leaves, its end.
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
	STE_TENSOR_SAME,  /* equal in all receivers of this host, or never compared */
	STE_TENSOR_WANT,  /* its leaf hashes are needed */
	STE_TENSOR_ASKED, /* its leaf hashes were requested from a stream */
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
	const struct ste_peer *table;           /* the peer whose manifest has the names; or NULL */
	const struct shm_state_tensor *tensors; /* the table of tensors of one peer */
	struct ste_set receivers;               /* receivers that have not failed */
	struct ste_set holders;                 /* holders that may be read from */
	uint64_t *want;                         /* elected tensor hashes */
	bool have_want, want_asked;             /* asked: `want` was requested from a stream */
	uint8_t *tensor;                        /* enum ste_tensor of each tensor */
	uint64_t *elected;                      /* elected leaf hashes */
	uint64_t *scratch; /* room for the leaf hashes of any tensor, or for all tensor hashes */
	uint8_t *leaf;     /* enum ste_leaf of each leaf */
	uint32_t unready;  /* tensors that differ, but are not READY */
	uint32_t next_want;
	uint64_t n_missing, n_asked; /* leaves */
	uint64_t cursor;             /* the leaf from which the next missing one is searched */
	uint32_t next_holder;
	struct ste_block blocks[STE_BLOCKS];
	uint32_t n_blocks;
	struct ste_stream *streams;
	uint32_t n_streams;
	uint64_t base_ns;             /* the largest ste_src.base_ns of all active streams */
	uint64_t here_ns;             /* when this host's addresses were last checked */
	uint64_t paced_ns, paced_rx;  /* when the rate was last measured, and net_rx then */
	bool started, fetching, over; /* over: DONE or FAILED was sent */
	uint64_t moved_ns;            /* last progress */
	uint64_t rate_ns, rate_done;
	_Atomic uint32_t phase, waits_for;
	_Atomic uint64_t total, done, rate, net_rx, net_tx, moved;
	struct cc_id suspect;
	bool exhausted; /* see ste_event */
	char text[STE_TEXT_MAX];
	struct ste_job *next;
	_Atomic bool members_told; /* the loop has not yet taken the last STE_NOTE_MEMBERS */
	/* L */
	bool cancelling;
	struct ste_job *l_next;
};

int ste_job_new(struct ste *e, const struct ste_spec *spec, struct ste_job **ret);
void ste_job_free(struct ste_job *j);
/* Checks the members. If this host has a holder, compares the receivers with it. Called by the
 * engine's thread, like all functions below. */
void ste_job_begin(struct ste_job *j);
/* Does the next part of the job's work. Returns true if there is more to do at once. */
bool ste_job_step(struct ste_job *j);
void ste_job_fail(struct ste_job *j, const struct cc_id *suspect, const char *text);
/* Checks whether the digest of these tensor hashes is the elected one. */
bool ste_job_is_content(struct ste_job *j, const uint64_t *hashes, size_t n);
/* j->want is complete: checks it against the elected digest, then finds the tensors that differ.
 * Returns false if the hashes are wrong. */
bool ste_job_take_tensors(struct ste_job *j);
/* The elected leaf hashes of a tensor are complete: checks them against the tensor hash, then finds
 * the leaves that differ. Returns false if the hashes are wrong. */
bool ste_job_take_leaves(struct ste_job *j, uint32_t tensor);
/* Checks whether `data` matches the hash of the leaf. For the only leaf of a tensor, the tensor
 * hash is checked, and the elected leaf hash is set. */
bool ste_job_leaf_is(
	struct ste_job *j, uint32_t tensor, uint64_t leaf, const uint8_t *data, size_t len);
/* Checks whether `data` matches the hashes of all leaves of the block. */
bool ste_job_block_is(struct ste_job *j, const struct ste_block *b, const uint8_t *data);
/* Copies a block to `dst`, and checks whether all its leaves are right there. If the block has more
 * than one leaf, any thread may call this while the job exists. */
bool ste_job_block_copy(struct ste_job *j, const struct ste_block *b, uint8_t *dst);
/* Returns the receivers that lack the leaf. `leaf`: its number among the leaves of all tensors. */
struct ste_set ste_job_lackers(const struct ste_job *j, uint64_t leaf);
bool ste_job_is_lacked(const struct ste_job *j, uint64_t leaf);
/* Takes the next missing leaves from *cursor on, at most `max`, as a block. After the last leaf the
 * search continues with the first one. Returns false if no leaf is missing. */
bool ste_job_pick(struct ste_job *j, uint64_t *cursor, uint32_t max, struct ste_block *ret);
/* The work on leaves from ste_job_pick has ended. A leaf that some receiver still lacks is missing
 * again. */
void ste_job_settle(struct ste_job *j, uint32_t tensor, uint64_t first, uint32_t n);
/* The member now has the leaves of the block. */
void ste_job_got(struct ste_job *j, struct ste_peer *p, const struct ste_block *b);
const char *ste_job_name(const struct ste_job *j, uint32_t tensor, char *buf, size_t size);
/* Returns the holders of this host in turn, or NULL if there are none. */
struct ste_peer *ste_job_holder(struct ste_job *j);
/* The job has made progress. */
void ste_job_moved(struct ste_job *j);

#endif
