/* SPDX-License-Identifier: MIT
 *
 * Limits of shared state on all wires, and the candidate that a peer offers to a synchronization.
 * The shim writes the candidate into a submission entry (shm_queue.h), and its agent sends it to
 * the master (wire_master.h). Pure.
 *
 * The *state* is the list of a peer's tensors, sorted by name. The order is that of memcmp. If one
 * name is the beginning of another name, the shorter name comes first. So an index means the same
 * tensor to all peers with the same keys. A *leaf* is WIRE_LEAF bytes of a tensor. The last leaf
 * may be shorter, and an empty tensor has no leaves.
 */
#ifndef WIRE_SYNC_H
#define WIRE_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#define WIRE_LEAF            65536u
#define WIRE_TENSORS_MAX     (1u << 20)
#define WIRE_TENSOR_NAME_MAX 1024u               /* bytes, without NUL; at least 1 */
#define WIRE_STATE_MAX       ((uint64_t)1 << 48) /* bytes of all tensors */
/* of one tensor */
#define WIRE_LEAVES_MAX    (WIRE_STATE_MAX / WIRE_LEAF)
#define WIRE_HASH_TYPE_MAX 255u

/* The algorithm of leaf hashes. Peers with different algorithms cannot be compared. */
enum wm_hash_type { WM_HASH_SIMPLE = 1, WM_HASH_CRC32C = 2 };

/* pcclSharedStateSyncStrategy_t */
enum wm_strategy {
	WM_STRATEGY_ENFORCE_POPULAR = 0,
	WM_STRATEGY_RECEIVE_ONLY = 1,
	WM_STRATEGY_SEND_ONLY = 2,
};

/* 128 bits. hi and lo are hsh_digest()[0] and [1]. On the wires hi comes before lo, each
 * little-endian. */
struct wm_digest {
	uint64_t hi, lo;
};

/* The candidate that a peer offers, and its strategy. shm_state.h defines the digests. */
struct wm_sync_vote {
	uint64_t revision;
	uint32_t strategy;        /* enum wm_strategy, checked */
	uint32_t hash_type;       /* 1 .. WIRE_HASH_TYPE_MAX */
	struct wm_digest keys;    /* digest of names, types, counts and flags */
	struct wm_digest content; /* digest of the tensors that must be equal */
	uint64_t n_tensors;       /* at most WIRE_TENSORS_MAX */
	uint64_t bytes;           /* of all tensors, at most WIRE_STATE_MAX */
	bool torn;                /* a failed synchronization has left torn state in the tensors */
};

static inline uint64_t wire_leaf_count(uint64_t bytes)
{
	return bytes / WIRE_LEAF + (bytes % WIRE_LEAF != 0);
}

/* Returns the number of bytes of the leaves [first, first + n) of a tensor of `bytes` bytes.
 * Returns 0 if n is 0 or if one of the leaves does not exist. */
static inline uint64_t wire_leaf_bytes(uint64_t bytes, uint64_t first, uint64_t n)
{
	uint64_t all = wire_leaf_count(bytes);

	if (n == 0 || n > all || first > all - n)
		return 0;
	return (first + n == all ? bytes : (first + n) * WIRE_LEAF) - first * WIRE_LEAF;
}

#endif
