/* SPDX-License-Identifier: MIT
 *
 * The manifest of a synchronization of shared state: what a peer has, and a window through which
 * its agent reaches what it cannot map. It lies at the beginning of a region of use STATE, which
 * the shim fills before it submits (SHM_SQE_SYNC) and leaves alone until the completion; afterwards
 * the agent does, for the shim keeps the region for the next one.
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
 * Hashes are those of kernels/hsh.h: a leaf's has the seed of its number in the tensor, a tensor's
 * is made of its leaf hashes. The *keys digest* is hsh_digest of what shm_state_key_put writes for
 * all tensors, one after the other; the *content digest* that of the array of the tensor hashes,
 * little-endian, of those without SHM_STATE_MAY_DIFFER; both in the order of the table.
 *
 * Tensors that lie in memory of pcclMemAlloc are read and written by the agent directly. For others
 * it gives commands: the thread that waits for the completion (SHM_WAIT_COMMANDS) copies between
 * tensor and window slot. A slot has one command at a time, so neither ring is ever full, and an
 * acknowledgement hands the slot back. What is written may also lie in another region, the window
 * or the registered memory of a peer of the same user on this host that has what was elected: the
 * shim asks for it by WL_REGION_MAP, and the bytes are copied only once on their way.
 *
 * Who writes what is said per field: S shim, A agent. Trust is that of shm_queue.h: the agent
 * copies the table out before it uses it and holds leaf hashes against tensor hashes; the shim
 * holds a command against its own tensors (shm_state_command_fits). Pure.
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
#define SHM_STATE_PAGE    4096u /* the window begins on one */

struct shm_state_header { /* S, before it submits */
	uint32_t magic;
	uint32_t version;
	uint64_t n_tensors; /* at most WIRE_TENSORS_MAX */
	uint64_t names_len; /* bytes */
	uint64_t n_leaves;
	uint64_t tensors_off, names_off, leaves_off, window_off; /* bytes; as shm_state_plan says,
								  * or others that fit */
};

/* For the shim, when its agent has died. */
struct shm_state_end {
	_Alignas(SHM_LINE) _Atomic uint64_t revision; /* A: before complete */
	_Atomic uint32_t complete; /* A: 1: all tensors of this peer are equal to what was elected,
				    * and verified: the synchronization may have succeeded. The
				    * slot has its seq, and the view as of its start, before */
	_Atomic uint32_t touched;  /* A: 1 before it writes into the first tensor by itself: from
				    * then on their contents are torn, until they are complete
				    */
	_Atomic uint32_t at_work;  /* A: 1 while it reads the manifest, and from the beginning of
				    * the job on: if it dies, perhaps of that. 0 while it waits for
				    * the others' votes */
};

enum shm_state_flags {
	SHM_STATE_MAY_DIFFER = 1u << 0, /* allow_content_inequality: never compared nor moved; its
					 * hashes mean nothing */
};

struct shm_state_entry {     /* S, before it submits */
	uint64_t count;      /* elements */
	uint64_t bytes;      /* count * size of one; the sum is at most WIRE_STATE_MAX */
	uint64_t name_off;   /* in the names */
	uint64_t first_leaf; /* leaves of the tensors before this one */
	uint64_t hash;
	uint64_t region;     /* of pcclMemAlloc, that it lies in; 0: commands */
	uint64_t region_off; /* bytes; without region 0 */
	uint32_t name_len;   /* 1 .. WIRE_TENSOR_NAME_MAX; no name is there twice */
	uint16_t dtype;      /* pcclDataType_t */
	uint16_t flags;      /* enum shm_state_flags */
};
_Static_assert(sizeof(struct shm_state_entry) == 64, "shm_state_entry layout");

enum shm_state_op {
	SHM_STATE_READ = 1,  /* tensor -> window */
	SHM_STATE_WRITE = 2, /* window -> tensor */
};

/* `len` bytes at `off` in the tensor, and at the beginning of the slot; or at `from_off` in the
 * region `from`, and the slot is only what is acknowledged. Then `off` is where a leaf begins, and
 * what has been written is held against `leaves`: another process can write there. */
struct shm_state_command {
	uint32_t op; /* enum shm_state_op */
	uint32_t slot;
	uint32_t tensor;
	uint32_t len; /* 1 .. SHM_STATE_SLOT */
	uint64_t off;
	uint64_t from; /* WRITE: or 0 */
	uint64_t from_off;
	uint64_t leaves[SHM_STATE_LEAVES]; /* hashes */
};

/* Entry n of a ring lies at n % SHM_STATE_SLOTS. The shim sleeps for commands on the futex word of
 * its slot in the queue pair; the agent, which wants to be woken for acknowledgements, sets in_want
 * there, looks once more, and waits for the data doorbell. */
struct shm_state_commands {
	_Alignas(SHM_LINE) _Atomic uint32_t tail;                       /* A: given so far */
	_Alignas(SHM_LINE) _Atomic uint32_t head;                       /* S: copied out so far */
	_Alignas(SHM_LINE) struct shm_state_command v[SHM_STATE_SLOTS]; /* A */
};

/* With a slot that is acknowledged: the region could not be mapped, nothing was written; or what
 * was written does not fit its hashes. */
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
/* Where the tables may begin. */
#define SHM_STATE_TABLES (SHM_STATE_ACK_OFF + (uint32_t)sizeof(struct shm_state_acks))

_Static_assert(sizeof(struct shm_state_header) <= SHM_STATE_END_OFF, "shm_state_header");
_Static_assert(SHM_STATE_END_OFF + sizeof(struct shm_state_end) <= SHM_STATE_CMD_OFF, "end");
_Static_assert(SHM_STATE_TABLES % SHM_LINE == 0, "tables start on a cache line");

/* ---- for the shim ---- */

/* Where everything goes. 0; CC_ERR_LIMIT: too much. names_len: bytes of all names; *ret_size: of
 * the region, bytes. */
int shm_state_plan(uint64_t n_tensors, uint64_t names_len, uint64_t n_leaves,
	struct shm_state_header *ret, uint64_t *ret_size);

/* What one tensor adds to the bytes of the keys digest:
 * name_len u32, name, dtype u32, count u64, flags u32, little-endian. */
#define SHM_STATE_KEY_MAX (20u + WIRE_TENSOR_NAME_MAX)
/* The number of bytes written. name: e->name_len bytes. */
size_t shm_state_key_put(
	uint8_t buf[SHM_STATE_KEY_MAX], const struct shm_state_entry *e, const char *name);

/* c is a copy that nobody else can write to; bytes: of the tensor that it names, once c->tensor has
 * been found to be one. Is it in all other respects what a command may be? */
bool shm_state_command_fits(const struct shm_state_command *c, uint64_t bytes);

/* ---- for the agent ---- */

/* One tensor, in which every limit has been checked. */
struct shm_state_tensor {
	uint64_t count, bytes;
	uint64_t first_leaf; /* its leaves: wire_leaf_count(bytes) */
	uint64_t hash;
	uint64_t region;     /* 0: commands */
	uint64_t region_off; /* region_off + bytes lies in it */
	uint64_t name_off;   /* in the manifest's region: the name lies there, while the shim is so
			      * kind (shm_state_name) */
	uint16_t name_len;
	uint8_t dtype;
	bool may_differ;
};

struct shm_state {
	uint32_t n_tensors;
	uint64_t n_leaves;
	uint64_t bytes;                   /* of all tensors */
	uint64_t leaves_off;              /* a multiple of 8 */
	uint64_t window_off;              /* a multiple of SHM_STATE_PAGE */
	struct shm_state_tensor *tensors; /* owned */
};

/* What a manifest is judged against besides itself. */
struct shm_state_limits {
	uint64_t size;                   /* of its region, bytes */
	const struct wm_sync_vote *vote; /* n_tensors and bytes must be those of the submission */
	/* Bytes of a registered region of the same session, 0: there is none. Called once for each
	 * tensor that names a region. */
	uint64_t (*region_size)(void *arg, uint64_t region);
	/* NULL, or called for each tensor in the order of the table with copies that nobody else
	 * can write to: what has been checked, and e->name_len bytes. CC_ERR_*: that is the end,
	 * and why has been written. */
	int (*tensor)(void *arg, const struct shm_state_entry *e, const char *name, char *why);
	void *arg;
};

/*
 * map: the region, lim->size bytes, which the shim may write to meanwhile; aligned to a page. Every
 * byte of it is read once. Takes time and memory in proportion to the table and the names, which
 * may be a GiB: for large ones not on a thread that others wait for. On success *ret owns memory
 * (shm_state_clear). CC_ERR_INVAL: why says which field broke which limit, to whoever made the
 * call; CC_ERR_NOMEM: likewise. On failure *ret is left alone.
 */
int shm_state_get(const void *map, const struct shm_state_limits *lim, struct shm_state *ret,
	char why[SHM_TEXT]);
void shm_state_clear(struct shm_state *s);

/* The name of a tensor for people, unclean bytes replaced, cut to size; whatever the shim has put
 * there meanwhile. Returns buf. */
const char *shm_state_name(
	const void *map, const struct shm_state_tensor *t, char *buf, size_t size);

/* Leaf hash i (0 .. n_leaves - 1) of all. */
static inline uint64_t shm_state_leaf(const void *map, const struct shm_state *s, uint64_t i)
{
	const _Atomic uint64_t *leaves = (const void *)((const unsigned char *)map + s->leaves_off);

	return atomic_load_explicit(&leaves[i], memory_order_relaxed);
}

#endif
