/* SPDX-License-Identifier: MIT
 *
 * The queue pair of one communicator. It is a memfd that the agent creates and seals, and that
 * agent and shim map.
 *
 *   0            struct shm_header    written once by the agent
 *   SHM_SQ_OFF   struct shm_sq        head and tail of the submission ring, own cache lines
 *   SHM_ATTR_OFF struct shm_attr      written by the agent: state, ring position, master
 *   SHM_SQE_OFF  struct shm_sqe[SHM_SLOTS]   the ring: entry n is sqe[n % SHM_SLOTS]
 *   SHM_SLOT_OFF struct shm_slot[SHM_SLOTS]  one per operation in flight: progress and completion
 *
 * The shim submits an operation with the number of a free slot. The completion comes in the same
 * slot, so each waiter waits on its own futex word and nobody has to sort completions. The memory
 * contains offsets and region numbers, but no pointers.
 *
 * Trust: the agent copies an entry before it checks it, keeps its own head, and never reads back a
 * word that it wrote. The memory safety of the shim does not depend on this memory: the shim checks
 * offsets and sizes against its own mappings.
 *
 * The comment of each field names its writer: S is the shim, A is the agent. The futex word of a
 * slot wakes the shim. Two eventfds of the communicator wake the agent: the submission doorbell
 * wakes the event loop, and the data doorbell wakes the RX and TX threads (see in_want). The agent
 * watches the eventfds edge-triggered and never reads them, because the process could drain them or
 * make them blocking.
 */
#ifndef SHM_QUEUE_H
#define SHM_QUEUE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_plan.h"
#include "proto/wire_view.h"

#define SHM_MAGIC   0x51504350u /* "PCPQ" */
#define SHM_VERSION 12u
#define SHM_SLOTS   64u /* operations in flight of one communicator */
#define SHM_TEXT    256u
#define SHM_LINE    64

struct shm_header {
	uint32_t magic;
	uint32_t version;
	uint32_t slots; /* SHM_SLOTS */
	uint32_t size;  /* bytes of the whole memfd */
};

struct shm_sq {
	_Alignas(SHM_LINE) _Atomic uint32_t tail; /* S: entries submitted so far */
	/* When the caller has slept on slot i for a short time, S sets bit i and rings the
	 * submission doorbell. A exchanges the word with 0. S clears bit i when the wait ends.
	 * Operations with SHM_SQE_WAITED do not use this word */
	_Atomic uint64_t asleep;
	/* S: not 0 while the caller waits until any of its operations in flight ends. Low half:
	 * number of operations that have not ended; high half: number of entries submitted so far.
	 * S then rings the submission doorbell. A uses the value only if it has taken all these
	 * entries */
	_Atomic uint64_t any;
	_Alignas(SHM_LINE) _Atomic uint32_t head; /* A: entries taken so far */
};

enum shm_comm_state {
	SHM_COMM_NEW = 0, /* not connected, also after a failed connect */
	SHM_COMM_CONNECTED = 1,
	SHM_COMM_LOST = 2, /* kicked, or the master is gone; code and text give the reason */
};

/* The state of the communicator, which a call reads when it begins. The view that the application
 * sees (pcclGetAttribute) is not here, because it comes with the answers of calls. */
struct shm_attr {
	_Alignas(SHM_LINE) _Atomic uint32_t version; /* A: odd while the agent writes (seqlock) */
	_Atomic uint32_t state;                      /* enum shm_comm_state */
	_Atomic uint32_t hosts, pos; /* ring of the group; a hint for the order of copying */
	_Atomic uint32_t code;       /* pcclResult_t when LOST */
	char text[SHM_TEXT];         /* when LOST */
	/* The last known address of the master, for the next agent. Family 0 (enum cc_family) means
	 * that it is unknown. Each word contains four bytes of the address, the first one in the
	 * lowest bits. */
	_Atomic uint32_t at_family, at_port, at_ip[4];
	/* Also for the next agent: the id of the last view that the agent has received, and the
	 * world size of the run in this view. */
	_Atomic uint64_t view_id;
	_Atomic uint32_t global;
	/* While links are measured: the round of measurements, from 1, and the number of rounds.
	 * Otherwise 0 */
	_Atomic uint32_t round, rounds;
};

enum shm_sqe_flags {
	/* in_region is complete at submission, so in_done is not used. */
	SHM_SQE_IN_REGISTERED = 1u << 0,
	/* The agent may write results into out_region; it keeps the old contents in the result
	   region (SHM_RESULT_UNDO). */
	SHM_SQE_OUT_REGISTERED = 1u << 1,
	/* A synchronization of shared state: `sync` is valid, and tag is 0. Of the other flags only
	   SHM_SQE_SYNCED may be set. */
	SHM_SQE_SYNC = 1u << 2,
	/* An earlier synchronization of this communicator has succeeded. Agents use the flag only
	   in reports, to distinguish newcomers. */
	SHM_SQE_SYNCED = 1u << 3,
	/* The old contents of out_region may be lost if the operation fails (SHM_RESULT_DIRECT).
	   out_region does not contain the operand. */
	SHM_SQE_OUT_DISPOSABLE = 1u << 4,
	SHM_SQE_MAIN = 1u << 5, /* the main thread of the communicator has launched the operation */
	SHM_SQE_WAITED = 1u << 6, /* the launching thread does nothing else until the end */
	/* This call cannot take part. It ends for all peers, with the code in `refused` and the
	   text in the slot. Of the other flags only SYNC, MAIN and WAITED may be set. */
	SHM_SQE_REFUSED = 1u << 7,
};

/* The contents of wm_sync_vote, and the region of the manifest (shm_state.h). */
struct shm_sqe_sync {
	uint64_t keys[2], content[2]; /* digests: hi, lo */
	uint64_t region;              /* region of use STATE, which begins with the manifest */
	uint64_t revision;
	uint64_t bytes;
	uint32_t n_tensors;
	uint32_t strategy, hash_type;
	uint32_t torn; /* 1: a failed synchronization has left torn state; else 0 */
};

struct shm_sqe { /* S writes, A copies */
	uint32_t slot;
	uint32_t flags;
	uint64_t tag;
	union {
		struct {
			uint64_t count;
			uint32_t dtype, op, src_hint, quant_algo, quant_dtype;
			/* 0: the whole operand goes to in_off; else the size of a window in
			 * segments, see shm_window_off */
			uint32_t window;
			/* operand: a registered region or a staging region of this session */
			uint64_t in_region;
			uint64_t in_off;
			uint64_t in_start, in_second; /* order of copying: see shm_slot.in_done */
			uint64_t out_region, out_off; /* with SHM_SQE_OUT_REGISTERED */
		};
		struct shm_sqe_sync sync; /* with SHM_SQE_SYNC */
	};
	uint64_t generation; /* generation of the group that the application knows */
	uint32_t refused;    /* with SHM_SQE_REFUSED: a pcclResult_t, >= 1 */
	uint32_t pad[5];
};
_Static_assert(sizeof(struct shm_sqe) == 128, "shm_sqe layout");
_Static_assert(offsetof(struct shm_sqe, sync.region) == offsetof(struct shm_sqe, in_region),
	"in_region and sync.region must lie at the same offset");

enum shm_slot_state {
	SHM_SLOT_FREE = 0,    /* S */
	SHM_SLOT_PENDING = 1, /* S: submitted; A owns the completion fields */
	SHM_SLOT_DONE = 2,    /* A: the completion fields are valid; S may use the slot again */
};

enum shm_result_mode {
	SHM_RESULT_NONE = 0,
	SHM_RESULT_AREA = 1, /* the result lies in the result region; flag i: segment i is final */
	/* The result lies in out_region; flag i: the old contents of segment i lie in the result
	   region, and this part of out_region may be overwritten. */
	SHM_RESULT_UNDO = 2,
	/* The result lies in the place of the staged operand. Flag i lies in the result region:
	   segment i is final, and the shim may use it. */
	SHM_RESULT_STAGED = 3,
	/* Like AREA, but another attempt may replace this one until the operation is DONE or A is
	   dead. Between the two attempts the mode is NONE. */
	SHM_RESULT_SPEC = 5,
	/* the result lies in out_region. Flag i lies in the result region: segment i is final */
	SHM_RESULT_DIRECT = 4,
};

/*
 * Values of shm_slot.wait, the futex word. A waiter stores one of the sleeping values, checks the
 * state (and the flags) once more, and sleeps. After a change of the state the agent exchanges the
 * word with SHM_WAIT_AWAKE, and wakes the waiter if it was asleep. After setting a segment flag the
 * agent does this only for SHM_WAIT_SEGMENTS, and after giving a command only for
 * SHM_WAIT_COMMANDS. Stores and loads on both sides are sequentially consistent.
 */
enum shm_wait {
	SHM_WAIT_AWAKE = 0,
	SHM_WAIT_SEGMENTS = 1, /* asleep until a segment flag or the state changes */
	SHM_WAIT_DONE = 2,     /* asleep until the state changes */
	SHM_WAIT_COMMANDS = 3, /* asleep until a command comes (shm_state.h) or the state changes */
};

struct shm_slot {
	/* Input side, for staged operands: S writes, A reads. */
	/* The numbers of bytes that S has copied so far. [0] counts the part from in_start to
	 * in_second, which this host sends first. [1] counts the rest: from in_second to the end,
	 * and then from the beginning to in_start. The first bytes of this rest are needed first,
	 * for partial sums that arrive. */
	_Alignas(SHM_LINE) _Atomic uint64_t in_done[2];
	/* A sets this to 1 when it waits for in_done or for acknowledgements of commands. S
	 * exchanges the word with 0 and rings the data doorbell; see also cc_route_eager_max */
	_Atomic uint32_t in_want;
	/* Output side: A writes, S reads. */
	_Alignas(SHM_LINE) _Atomic uint32_t state; /* enum shm_slot_state */
	_Atomic uint32_t wait;                     /* enum shm_wait, the futex word */
	_Atomic uint32_t mode; /* enum shm_result_mode; valid if not NONE, also before DONE */
	uint32_t hosts;        /* argument of cc_plan_init_shares, written before mode */
	uint32_t segment_max;
	/* Offset of the segment flags, one byte each, in the result region. */
	uint32_t flags_off_lo, flags_off_hi;
	uint32_t local_world_size; /* peers whose data is in the result; written before mode */
	uint64_t result_region, result_off;
	uint64_t shares; /* argument of cc_plan_init_shares, as cc_shares_pack; written before mode
			  */
	/* number of this attempt, written before mode. The mode of a synchronization stays NONE. So
	 * its number is written before the first command and before shm_state_end.complete */
	uint64_t seq;
	/* completion: generation of the group; the application knows it when the operation has been
	 * awaited */
	uint64_t generation;
	/* completion: bytes of this operation on the sockets of this host. For a synchronization:
	 * bytes read from this peer's tensors for other peers, and bytes written into these
	 * tensors; valid even after a failure */
	uint64_t tx_bytes, rx_bytes;
	uint32_t code; /* completion: pcclResult_t */
	/* completion: the reason of a failure. Before a submission with SHM_SQE_REFUSED: S writes
	 * the reason */
	char text[SHM_TEXT];
	/* completion of a synchronization: the revision of the group, which the application now
	 * has */
	uint64_t revision;
	/* the view at the start, written together with seq; at completion, the view at the end. It
	 * becomes current when the operation has been awaited. view_id is 0 while A replaces the
	 * view */
	struct wire_view view;
};

/*
 * On a ring of one host a staged operand may be copied through a window, segment by segment. The
 * plan has segments of CC_PLAN_SEGMENT_MAX. Segment i goes to place i % window when segment i -
 * window is final; each place has CC_PLAN_SEGMENT_MAX bytes. in_start and in_second are 0, and
 * in_done counts bytes of the operand.
 */
#define SHM_WINDOW_MAX 1024u
static inline uint64_t shm_window_off(uint32_t window, uint32_t seg)
{
	return (uint64_t)(seg % window) * CC_PLAN_SEGMENT_MAX;
}
static inline uint64_t shm_window_size(uint32_t window)
{
	return (uint64_t)window * CC_PLAN_SEGMENT_MAX;
}

static inline uint64_t shm_slot_copied(const struct shm_slot *s)
{
	return atomic_load(&s->in_done[0]) + atomic_load(&s->in_done[1]);
}

#define SHM_SQ_OFF   256u
#define SHM_ATTR_OFF 512u
#define SHM_SQE_OFF  1024u
#define SHM_SLOT_OFF (SHM_SQE_OFF + SHM_SLOTS * (uint32_t)sizeof(struct shm_sqe))
#define SHM_SIZE     (SHM_SLOT_OFF + SHM_SLOTS * (uint32_t)sizeof(struct shm_slot))

_Static_assert(sizeof(struct shm_header) <= SHM_SQ_OFF, "shm_header");
_Static_assert(SHM_SQ_OFF + sizeof(struct shm_sq) <= SHM_ATTR_OFF, "shm_sq");
_Static_assert(SHM_ATTR_OFF + sizeof(struct shm_attr) <= SHM_SQE_OFF, "shm_attr");
_Static_assert(SHM_SLOT_OFF % SHM_LINE == 0, "slots start on a cache line");

#endif
