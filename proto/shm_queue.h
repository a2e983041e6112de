/* SPDX-License-Identifier: MIT
 *
 * The queue pair of one communicator: a memfd made and sealed by the agent, mapped by both.
 *
 *   0            struct shm_header    written once by the agent
 *   SHM_SQ_OFF   struct shm_sq        head and tail of the submission ring, own cache lines
 *   SHM_ATTR_OFF struct shm_attr      written by the agent: state, ring position, master
 *   SHM_SQE_OFF  struct shm_sqe[SHM_SLOTS]   the ring: entry n is sqe[n % SHM_SLOTS]
 *   SHM_SLOT_OFF struct shm_slot[SHM_SLOTS]  one per operation in flight: progress and completion
 *
 * An operation is submitted under a slot number that the shim chose among the slots it knows to be
 * free; its completion comes back in that same slot, so a waiter waits on its own futex word and
 * nobody has to sort completions. Offsets and region numbers only, no pointers.
 *
 * Trust: the agent copies an entry out before it looks at it, keeps its own head, and never reads
 * back a word that it wrote. The shim trusts nothing here with its own memory safety: offsets and
 * sizes are checked against its own mappings.
 *
 * Who writes what is said per field: S shim, A agent. Waking the shim: the futex word of a slot.
 * Waking the agent: two eventfds of this communicator, the submission doorbell (the event loop) and
 * the data doorbell (the RX/TX threads, see in_want). The agent watches them edge-triggered and
 * never reads them: whoever holds an eventfd could drain it or make it blocking.
 */
#ifndef SHM_QUEUE_H
#define SHM_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_plan.h"
#include "proto/wire_view.h"

#define SHM_MAGIC   0x51504350u /* "PCPQ" */
#define SHM_VERSION 10u
#define SHM_SLOTS   64u /* operations in flight of one communicator */
#define SHM_TEXT    256u
#define SHM_LINE    64

struct shm_header {
	uint32_t magic;
	uint32_t version;
	uint32_t slots; /* SHM_SLOTS */
	uint32_t size;  /* of the whole memfd, bytes */
};

struct shm_sq {
	_Alignas(SHM_LINE) _Atomic uint32_t tail; /* S: entries submitted so far */
	_Atomic uint64_t asleep; /* S sets bit i, and rings the submission doorbell, when the caller
				  * has waited for slot i for a moment; A exchanges with 0. S clears
				  * what is left when the wait is over. Not of what was submitted
				  * with SHM_SQE_WAITED */
	_Atomic uint64_t any; /* S: not 0, and the submission doorbell rung, while the caller waits
			       * until any of its operations in flight ends: how many of these have
			       * not ended (low half), of so many entries submitted (high half). A
			       * believes it only while both are so */
	_Alignas(SHM_LINE) _Atomic uint32_t head; /* A: entries copied out so far */
};

enum shm_comm_state {
	SHM_COMM_NEW = 0, /* not connected (also after a failed connect) */
	SHM_COMM_CONNECTED = 1,
	SHM_COMM_LOST = 2, /* kicked, or the master is gone: code and text say why */
};

/* How things are, for calls that begin. What the application sees of the view (pcclGetAttribute)
 * is not here: it comes with the answers of its calls. */
struct shm_attr {
	_Alignas(SHM_LINE) _Atomic uint32_t version; /* A: odd while the agent writes (seqlock) */
	_Atomic uint32_t state;                      /* enum shm_comm_state */
	_Atomic uint32_t hosts, pos; /* ring of the group: a hint for the copying order */
	_Atomic uint32_t code;       /* pcclResult_t when LOST */
	char text[SHM_TEXT];         /* when LOST */
	/* Where the master is, as far as the agent knows; family 0 (enum cc_family): no word of it.
	 * To be told to the next agent. Four bytes of the address in each word, the first lowest.
	 */
	_Atomic uint32_t at_family, at_port, at_ip[4];
	/* Likewise for the next agent: of the last commit, the last round that was committed, and
	 * the last one that the agent has reported as good. */
	_Atomic uint64_t epoch, ring_epoch, prepared;
	/* Likewise: the view id that the agent was told last, and as of that the
	 * losses of the group, the size of all and that of the group. */
	_Atomic uint64_t view_id, generation;
	_Atomic uint32_t global, world_size;
};

enum shm_sqe_flags {
	SHM_SQE_IN_REGISTERED = 1u << 0, /* in_region is complete at submission: no watermark */
	SHM_SQE_OUT_REGISTERED = 1u
				 << 1, /* the agent may write results into out_region and keeps
					* the old contents in the result region (SHM_RESULT_UNDO) */
	SHM_SQE_SYNC = 1u << 2,   /* a synchronization of shared state: `sync` counts, tag is 0, no
				   * other flag is set but */
	SHM_SQE_SYNCED = 1u << 3, /* one of this communicator's has succeeded: for people, who
				   * are told newcomers from others, whichever agent is asked */
	SHM_SQE_OUT_DISPOSABLE = 1u << 4, /* what out_region holds, which is not the operand, may be
					   * lost if the operation fails (SHM_RESULT_DIRECT) */
	SHM_SQE_MAIN = 1u << 5,           /* the communicator's main thread has launched it */
	SHM_SQE_WAITED =
		1u << 6, /* the thread that has launched it does nothing else until it ends */
	SHM_SQE_REFUSED = 1u << 7, /* this call cannot take part, for what `refused` and the slot's
				    * text say: it ends so for all. No other flag is set but
				    * SYNC, MAIN and WAITED */
};

/* wm_sync_vote, with the manifest (shm_state.h). */
struct shm_sqe_sync {
	uint64_t keys[2], content[2]; /* digests: hi, lo */
	uint64_t region;              /* of use STATE; the manifest lies at its beginning */
	uint64_t revision;
	uint64_t bytes;
	uint32_t n_tensors;
	uint32_t strategy, hash_type;
	uint32_t torn; /* 1: the contents are torn, which a synchronization that failed has
			* left; else 0 */
};

struct shm_sqe { /* S writes, A copies out */
	uint32_t slot;
	uint32_t flags;
	uint64_t tag;
	union {
		struct {
			uint64_t count;
			uint32_t dtype, op, src_hint, quant_algo, quant_dtype;
			uint32_t window;    /* 0: the whole operand goes to in_off; else so
					     * many places for a segment each, see shm_window */
			uint64_t in_region; /* operand: registered or staging region of this
					     * session */
			uint64_t in_off;
			uint64_t in_start, in_second; /* copying order: see shm_slot.in_done */
			uint64_t out_region, out_off; /* with SHM_SQE_OUT_REGISTERED */
		};
		struct shm_sqe_sync sync; /* with SHM_SQE_SYNC */
	};
	uint64_t generation; /* of the group, that the application knows of */
	uint32_t refused;    /* with SHM_SQE_REFUSED: a pcclResult_t, >= 1 */
	uint32_t pad[5];
};
_Static_assert(sizeof(struct shm_sqe) == 128, "shm_sqe layout");
_Static_assert(offsetof(struct shm_sqe, sync.region) == offsetof(struct shm_sqe, in_region),
	"in_region is what goes in, whatever is submitted");

enum shm_slot_state {
	SHM_SLOT_FREE = 0,    /* S */
	SHM_SLOT_PENDING = 1, /* S: submitted; A owns the completion fields */
	SHM_SLOT_DONE = 2,    /* A: completion fields are valid; S may take the slot back */
};

enum shm_result_mode {
	SHM_RESULT_NONE = 0,
	SHM_RESULT_AREA = 1, /* the result lies in the result region; flag i: segment i is final */
	SHM_RESULT_UNDO = 2, /* the result lies in out_region; flag i: segment i's old contents lie
			      * in the result region and out_region may be overwritten there */
	SHM_RESULT_STAGED = 3, /* the result lies where the staged operand was; flag i, in the
				* result region: segment i is final, and the shim's to use */
	SHM_RESULT_SPEC = 5,   /* as AREA, but another attempt may take the place of this one, mode
				* NONE in between, unless the operation is DONE or A is dead */
	SHM_RESULT_DIRECT = 4, /* the result lies in out_region; flag i, in the result region:
				* segment i is final */
};

/*
 * wait is the futex word. A waiter stores one of the sleeping values, looks at state (and flags)
 * once more, and sleeps. Whoever changes state exchanges it with SHM_WAIT_AWAKE and wakes the
 * waiter if it was asleep; whoever sets a segment flag does so only for SHM_WAIT_SEGMENTS, whoever
 * gives a command only for SHM_WAIT_COMMANDS. Stores and loads on both sides are sequentially
 * consistent.
 */
enum shm_wait {
	SHM_WAIT_AWAKE = 0,
	SHM_WAIT_SEGMENTS = 1, /* asleep until a segment flag or the state changes */
	SHM_WAIT_DONE = 2,     /* asleep until the state changes */
	SHM_WAIT_COMMANDS = 3, /* asleep until there is a command (shm_state.h) or the state
				* changes */
};

/* On a ring of so many hosts the agent's loop carries out operations of so many bytes. Of a staged
 * operand that is not larger, by what shm_attr says of the ring, the submission doorbell tells as
 * well if it is awaited. */
static inline uint64_t shm_eager(uint32_t hosts)
{
	return (uint64_t)(hosts == 2 ? 1024 : 512) << 10;
}

/* Is an operation of so many bytes, by what all hosts know? Two hosts send no more in this way than
 * round the ring twice; more do, so what counts is all operands together. */
static inline bool shm_is_eager(uint64_t bytes, uint32_t hosts)
{
	return bytes <= shm_eager(hosts) / (hosts == 2 ? 1 : hosts);
}

struct shm_slot {
	/* input side, staged operations: S writes, A reads */
	/* Bytes copied so far from in_start on, up to in_second; and from there on, to the end and
	 * then from the beginning to in_start. The one is what this host sends first, the other
	 * what is added first to what comes in meanwhile. */
	_Alignas(SHM_LINE) _Atomic uint64_t in_done[2];
	_Atomic uint32_t in_want; /* A sets 1 when it waits for in_done, or for what commands have
				   * come to; S exchanges with 0 and rings the data doorbell, and
				   * see shm_eager */
	/* output side: A writes, S reads */
	_Alignas(SHM_LINE) _Atomic uint32_t state; /* enum shm_slot_state */
	_Atomic uint32_t wait;                     /* enum shm_wait, the futex word */
	_Atomic uint32_t mode; /* enum shm_result_mode; valid when not NONE, also before DONE */
	uint32_t hosts;        /* for cc_plan_init, written before mode */
	uint32_t segment_max;
	uint32_t flags_off_lo, flags_off_hi; /* of the segment flags (uint8_t each) in the region */
	uint32_t local_world_size; /* peers whose data is in the result; written before mode */
	uint64_t result_region, result_off;
	uint64_t seq;                /* name of this attempt, written before mode; that of a
				      * synchronization, whose mode stays NONE, before the first
				      * command and shm_state_end.complete */
	uint64_t generation;         /* completion: of the group; awaiting it makes them known */
	uint64_t tx_bytes, rx_bytes; /* completion: this operation on this host's sockets; of a
				      * synchronization: read from this peer's tensors for others,
				      * and written into them, also if it failed */
	uint32_t code;               /* completion: pcclResult_t */
	char text[SHM_TEXT];         /* before it is submitted with SHM_SQE_REFUSED: S, why */
	uint64_t revision; /* completion of a synchronization: the group's, which the application
			    * has now */
	struct wire_view view; /* as of the start, written when seq is; completion: as of the
				* end. Awaiting it makes it current. Version 0 while it is
				* being replaced */
};

/*
 * A staged operand on a ring of one host may be copied through a window, segment by segment: cut
 * by cc_plan_init into segments of CC_PLAN_SEGMENT_MAX, segment i goes to the place i % window,
 * CC_PLAN_SEGMENT_MAX bytes each, when segment i - window is final. in_start and in_second are 0,
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
