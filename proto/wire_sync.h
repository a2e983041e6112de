/* SPDX-License-Identifier: MIT
 *
 * What the wires say of shared state: limits, and what a peer offers to a synchronization. The shim
 * writes it into a submission entry (shm_queue.h), its agent passes it on (wire_master.h). Pure.
 *
 * The *state* is the list of tensors that a peer gives, sorted by name (as memcmp compares, the
 * shorter first), so that an index means the same tensor to all who have the same keys. A *leaf* is
 * WIRE_LEAF bytes of a tensor, the last one what is left; an empty tensor has none.
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

/* What leaf hashes are made by. Peers that differ in it cannot be compared. */
enum wm_hash_type { WM_HASH_SIMPLE = 1, WM_HASH_CRC32C = 2 };

/* pcclSharedStateSyncStrategy_t */
enum wm_strategy {
	WM_STRATEGY_ENFORCE_POPULAR = 0,
	WM_STRATEGY_RECEIVE_ONLY = 1,
	WM_STRATEGY_SEND_ONLY = 2,
};

/* 128 bits: hsh_digest()[0] and [1]. As bytes: hi, then lo, each little-endian. */
struct wm_digest {
	uint64_t hi, lo;
};

/* What a peer offers, and the part that it takes. shm_state.h says what is digested. */
struct wm_sync_vote {
	uint64_t revision;
	uint32_t strategy;        /* enum wm_strategy, checked */
	uint32_t hash_type;       /* 1 .. WIRE_HASH_TYPE_MAX */
	struct wm_digest keys;    /* of names, types, counts and flags */
	struct wm_digest content; /* of the tensors that must be equal */
	uint64_t n_tensors;       /* at most WIRE_TENSORS_MAX */
	uint64_t bytes;           /* of all tensors, at most WIRE_STATE_MAX */
	bool torn; /* a synchronization that failed has left torn state in the tensors */
};

static inline uint64_t wire_leaf_count(uint64_t bytes)
{
	return bytes / WIRE_LEAF + (bytes % WIRE_LEAF != 0);
}

/* Bytes of the leaves [first, first + n) of a tensor of so many bytes; 0 unless all of them are
 * there, and n is at least 1. */
static inline uint64_t wire_leaf_bytes(uint64_t bytes, uint64_t first, uint64_t n)
{
	uint64_t all = wire_leaf_count(bytes);

	if (n == 0 || n > all || first > all - n)
		return 0;
	return (first + n == all ? bytes : (first + n) * WIRE_LEAF) - first * WIRE_LEAF;
}

#endif
