/* SPDX-License-Identifier: MIT
 *
 * The manifest of a synchronization of shared state. It lists the tensors of a peer, and it has a
 * window through which the agent reaches tensors that it cannot map. It lies at the beginning of a
 * region of use STATE. The shim writes it before the submission (SHM_SQE_SYNC) and does not change
 * it until the completion. After the completion the agent does not use it any more, because the
 * shim keeps the region for the next synchronization.
 *
 *   0                  struct shm_state_header   S
 *   SHM_STATE_END_OFF  struct shm_state_end      A: zero at first
 *   SHM_STATE_CMD_OFF  struct shm_state_commands    A -> S
 *   SHM_STATE_ACK_OFF  struct shm_state_acks        S -> A
 *   tensors_off        struct shm_state_entry[n_tensors], sorted by name
 *   names_off          names, one after the other, without NUL
 *   leaves_off         uint64_t[n_leaves]: leaf hashes, tensor after tensor
 *   window_off         SHM_STATE_SLOTS slots of SHM_STATE_SLOT bytes
 *
 * The hashes are those of kernels/hsh.h. The seed of a leaf hash is the number of the leaf in its
 * tensor. A tensor hash is computed from the leaf hashes of the tensor. The *keys digest* is the
 * hsh_digest of the bytes that shm_state_key_put writes for all tensors, one after the other. The
 * *content digest* is the hsh_digest of the array of tensor hashes, little-endian, without the
 * tensors with SHM_STATE_MAY_DIFFER. Both follow the order of the table.
 *
 * The agent reads and writes tensors in memory of pcclMemAlloc directly. For other tensors it gives
 * commands, and the thread that waits for the completion (SHM_WAIT_COMMANDS) copies between the
 * tensor and a slot of the window. A slot has one command at a time, so neither ring is ever full.
 * An acknowledgement gives the slot back. If a peer of the same user on this host has the elected
 * contents, the bytes to write may also lie in a region of this peer: in its window or in its
 * registered memory. The shim requests this region with WL_REGION_MAP, so the bytes are copied only
 * once.
 *
 * The comment of each field names its writer: S is the shim, A is the agent. The rules of trust are
 * those of shm_queue.h. The agent copies the table before it uses it, and compares leaf hashes with
 * tensor hashes. The shim checks a command against its own tensors (shm_state_command_fits). Pure.
 */
#ifndef SHM_STATE_H
#define SHM_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/shm_queue.h"
#include "proto/wire_sync.h"

#define SHM_STATE_MAGIC   0x4d534350u /* "PCSM" */
#define SHM_STATE_VERSION 2u
#define SHM_STATE_SLOTS   16u
#define SHM_STATE_SLOT    262144u /* bytes */
#define SHM_STATE_LEAVES  (SHM_STATE_SLOT / WIRE_LEAF)
#define SHM_STATE_PAGE    4096u /* alignment of the window */

struct shm_state_header { /* S, before it submits */
	uint32_t magic;
	uint32_t version;
	uint64_t n_tensors; /* at most WIRE_TENSORS_MAX */
	uint64_t names_len; /* bytes */
	uint64_t n_leaves;
	/* Offsets in bytes: the ones that shm_state_plan computes, or others that fit. */
	uint64_t tensors_off, names_off, leaves_off, window_off;
};

/* Words that the agent leaves for the shim, which needs them if the agent dies. */
struct shm_state_end {
	_Alignas(SHM_LINE) _Atomic uint64_t revision; /* A: before complete */
	/* A: 1 when all tensors of this peer equal the elected contents and are verified, so the
	 * synchronization may have succeeded. Before that, A writes into the slot the seq of the
	 * attempt and the view at its start */
	_Atomic uint32_t complete;
	/* A: 1 before the agent itself writes into the first tensor. From then on the tensors have
	 * torn state until `complete` is set */
	_Atomic uint32_t touched;
	/* A: 1 while the agent reads the manifest, and again from the beginning of the job on. If
	 * the agent dies while this is 1, the work for this peer may be the cause. 0 while the
	 * agent waits for the votes of other peers */
	_Atomic uint32_t at_work;
};

enum shm_state_flags {
	/* allow_content_inequality: the tensor is neither compared nor transferred, and its hashes
	   have no meaning. */
	SHM_STATE_MAY_DIFFER = 1u << 0,
};

struct shm_state_entry {     /* S, before it submits */
	uint64_t count;      /* elements */
	uint64_t bytes;      /* count * element size; the sum is at most WIRE_STATE_MAX */
	uint64_t name_off;   /* offset in the names */
	uint64_t first_leaf; /* number of leaves of all tensors before this tensor */
	uint64_t hash;
	/* the region of pcclMemAlloc that contains it; 0: none, so the agent uses commands */
	uint64_t region;
	uint64_t region_off; /* bytes; 0 if region is 0 */
	uint32_t name_len;   /* 1 .. WIRE_TENSOR_NAME_MAX; all names differ */
	uint16_t dtype;      /* pcclDataType_t */
	uint16_t flags;      /* enum shm_state_flags */
};
_Static_assert(sizeof(struct shm_state_entry) == 64, "shm_state_entry layout");

enum shm_state_op {
	SHM_STATE_READ = 1,  /* tensor -> window */
	SHM_STATE_WRITE = 2, /* window -> tensor */
};

/* A command to copy `len` bytes. In the tensor they lie at `off`. On the other side they lie at the
 * beginning of the slot, or, if `from` is not 0, at `from_off` in the region `from`. In the latter
 * case the slot is used only for the acknowledgement, `off` is the beginning of a leaf, and the
 * shim compares the written bytes with `leaves`, because another process can write to the region.
 */
struct shm_state_command {
	uint32_t op; /* enum shm_state_op */
	uint32_t slot;
	uint32_t tensor;
	uint32_t len; /* 1 .. SHM_STATE_SLOT */
	uint64_t off;
	uint64_t from; /* WRITE: a region, or 0 */
	uint64_t from_off;
	uint64_t leaves[SHM_STATE_LEAVES]; /* hashes */
};

/* The ring of commands. Entry n of a ring lies at n % SHM_STATE_SLOTS. To wait for commands, the
 * shim sleeps on the futex word of its slot in the queue pair. To wait for acknowledgements, the
 * agent sets in_want in that slot, checks once more, and waits for the data doorbell. */
struct shm_state_commands {
	_Alignas(SHM_LINE) _Atomic uint32_t tail; /* A: commands given so far */
	_Alignas(SHM_LINE) _Atomic uint32_t head; /* S: commands taken so far */
	_Alignas(SHM_LINE) struct shm_state_command v[SHM_STATE_SLOTS]; /* A */
};

/* Flags of an acknowledgement. UNSEEN: the region could not be mapped, and nothing was written.
 * WRONG: the written bytes do not match their hashes. */
#define SHM_STATE_UNSEEN 0x80000000u
#define SHM_STATE_WRONG  0x40000000u

struct shm_state_acks {
	_Alignas(SHM_LINE) _Atomic uint32_t tail;               /* S: acknowledged so far */
	_Alignas(SHM_LINE) _Atomic uint32_t head;               /* A: read so far */
	_Alignas(SHM_LINE) _Atomic uint32_t v[SHM_STATE_SLOTS]; /* S: slots, in any order */
};

#define SHM_STATE_END_OFF 128u
#define SHM_STATE_CMD_OFF 256u
#define SHM_STATE_ACK_OFF (SHM_STATE_CMD_OFF + (uint32_t)sizeof(struct shm_state_commands))
/* The lowest offset of a table. */
#define SHM_STATE_TABLES (SHM_STATE_ACK_OFF + (uint32_t)sizeof(struct shm_state_acks))

_Static_assert(sizeof(struct shm_state_header) <= SHM_STATE_END_OFF, "shm_state_header");
_Static_assert(SHM_STATE_END_OFF + sizeof(struct shm_state_end) <= SHM_STATE_CMD_OFF, "end");
_Static_assert(SHM_STATE_TABLES % SHM_LINE == 0, "tables start on a cache line");

/* ---- for the shim ---- */

/* Computes all offsets. names_len is the length of all names in bytes. *ret_size gets the size of
 * the region in bytes. Returns 0, or CC_ERR_LIMIT if the state is too large. */
int shm_state_plan(uint64_t n_tensors, uint64_t names_len, uint64_t n_leaves,
	struct shm_state_header *ret, uint64_t *ret_size);

/* The largest number of bytes that one tensor adds to the text of the keys digest. These are
 * name_len u32, name, dtype u32, count u64, flags u32, little-endian. */
#define SHM_STATE_KEY_MAX (20u + WIRE_TENSOR_NAME_MAX)
/* Writes these bytes for one tensor and returns their number. `name` has e->name_len bytes. */
size_t shm_state_key_put(
	uint8_t buf[SHM_STATE_KEY_MAX], const struct shm_state_entry *e, const char *name);

/* Is the command valid? `c` must be a copy that nobody else can write to. The caller has already
 * checked c->tensor, and `bytes` is the size of this tensor. */
bool shm_state_command_fits(const struct shm_state_command *c, uint64_t bytes);

/* ---- for the agent ---- */

/* A tensor whose limits have all been checked. */
struct shm_state_tensor {
	uint64_t count, bytes;
	uint64_t first_leaf; /* it has wire_leaf_count(bytes) leaves */
	uint64_t hash;
	uint64_t region;     /* 0: the agent uses commands */
	uint64_t region_off; /* the region contains region_off + bytes */
	/* offset of the name in the region of the manifest. The shim can overwrite the name
	 * (shm_state_name) */
	uint64_t name_off;
	uint16_t name_len;
	uint8_t dtype;
	bool may_differ;
};

struct shm_state {
	uint32_t n_tensors;
	uint64_t n_leaves;
	uint64_t bytes;                   /* bytes of all tensors */
	uint64_t leaves_off;              /* a multiple of 8 */
	uint64_t window_off;              /* a multiple of SHM_STATE_PAGE */
	struct shm_state_tensor *tensors; /* owned */
};

/* The facts against which a manifest is checked. */
struct shm_state_limits {
	uint64_t size; /* bytes of its region */
	/* n_tensors and bytes of the manifest must equal those of the submission. */
	const struct wm_sync_vote *vote;
	/* Returns the size in bytes of a registered region of the same session, or 0 if it does not
	 * exist. It is called once for each tensor that names a region. */
	uint64_t (*region_size)(void *arg, uint64_t region);
	/* NULL, or a function that is called for each tensor in the order of the table. It gets
	 * copies that nobody else can write to: the checked entry, and its name of e->name_len
	 * bytes. If it returns CC_ERR_*, it has written `why`, and shm_state_get fails. */
	int (*tensor)(void *arg, const struct shm_state_entry *e, const char *name, char *why);
	void *arg;
};

/*
 * Checks and copies a manifest. `map` is its region of lim->size bytes, aligned to a page. The shim
 * may write to it meanwhile, so every byte is read only once. Time and memory grow with the table
 * and the names, which may take a GiB, so a thread that other work waits for must not read a large
 * manifest. On success *ret owns memory (shm_state_clear). Returns CC_ERR_INVAL if a field broke a
 * limit, or CC_ERR_NOMEM. In both cases `why` names the field and the limit for the caller of the
 * operation, and *ret is unchanged.
 */
int shm_state_get(const void *map, const struct shm_state_limits *lim, struct shm_state *ret,
	char why[SHM_TEXT]);
void shm_state_clear(struct shm_state *s);

/* Writes the name of a tensor for people into buf and returns buf. Unclean bytes are replaced, and
 * the name is cut to size. The shim may have overwritten the name meanwhile. */
const char *shm_state_name(
	const void *map, const struct shm_state_tensor *t, char *buf, size_t size);

/* Returns leaf hash i (0 .. n_leaves - 1) of all leaves of the state. */
static inline uint64_t shm_state_leaf(const void *map, const struct shm_state *s, uint64_t i)
{
	const _Atomic uint64_t *leaves = (const void *)((const unsigned char *)map + s->leaves_off);

	return atomic_load_explicit(&leaves[i], memory_order_relaxed);
}

#endif
