/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the engine: engine.c (loop side), xfer.c (what both threads do with
 * a transfer), life.c (with streams), rx.c, tx.c. Who may touch a field is
 * said beside it: L loop, R RX thread, T TX thread; fields without a mark are constant once the
 * threads know the object.
 */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include <stdatomic.h>

#include "common/cc_spsc.h"
#include "pcclagentd/base/worker.h"
#include "pcclagentd/engine/engine.h"
#include "proto/wire_link.h"

#define ENG_SEGS_MAX  (1u << 22)
#define ENG_BUCKETS   256u
#define ENG_EPOLL_MAX 64

/* What a segment has been through at this host; R. */
enum eng_seg_state {
	ENG_SEG_REDUCED = 1u << 0,
	ENG_SEG_FINAL = 1u << 1,
	ENG_SEG_SPILLED = 1u << 2, /* its partial sum is in `spilled`, or the area */
};

struct eng_xfer {
	struct eng_xfer_spec spec;
	struct eng_member *members; /* of the spec; kept from transfer to transfer */
	uint32_t cap_members;
	uint64_t bytes;             /* of the operand */
	struct cc_spsc forward;     /* R pushes, T pops: eng_forward values */
	_Atomic uint32_t work_left; /* segments to become final here + segments to be sent */
	_Atomic uint32_t segs_final;
	_Atomic uint32_t next_local; /* hosts == 1: first segment nobody has claimed */
	_Atomic uint64_t tx_bytes, rx_bytes;
	_Atomic uint8_t *leaving; /* T sets 1 when it begins to send a segment's partial sum */
	uint8_t *seg_state;       /* R: enum eng_seg_state */
	uint8_t *spilled;         /* R: NULL, or memory for partial sums that wait */
	uint32_t n_spilled;       /* R: such sums */
	uint64_t spilled_input;   /* R: eng_xfer_input when the last one came */
	uint64_t tried_input;     /* R: eng_xfer_input when they were looked at last */
	uint64_t block_end_ns;    /* R: 0, or when streams are not blocked for it any more */
	struct eng_xfer *rx_next; /* R: bucket chain */
	uint32_t origin_next;     /* T: segments of the first chunk that have been taken */
	struct eng_xfer *tx_next; /* T: list of active transfers */
	uint32_t cap_segs;        /* L: what the arrays can hold */
	uint32_t acks_awaited;    /* L: threads that still know this object */
	bool cancelled, done, released; /* L */
	struct eng_xfer *next;          /* L: list of all, or of the free */
};

struct eng_stream {
	int fd;
	uint32_t link;
	struct cc_id from; /* RX: who has opened it */
	bool tx;
	struct eng_stream *next;
	uint8_t hdr[WLK_DATA_SIZE];
	uint32_t hdr_done;     /* header bytes received or sent */
	uint8_t *data;         /* where the payload goes to or comes from */
	uint32_t left;         /* payload bytes still to be moved */
	struct eng_xfer *xfer; /* NULL: payload of a stale segment, or a spilled one */
	uint32_t seg;
	uint8_t phase;          /* enum wlk_phase */
	bool busy;              /* a segment is under way */
	uint8_t *partial;       /* room for a partial sum that comes, or begins here; owned */
	bool blocked;           /* RX: it is there and waits for local input */
	uint64_t blocked_ns;    /* since */
	uint64_t blocked_input; /* eng_xfer_input then */
	bool stalled;           /* RX: header of a transfer that is not known here yet */
	uint64_t stalled_ns;    /* the time limit runs from here */
	uint32_t segs_in;       /* TCP segments received until the last look */
	uint32_t silent_ms;     /* time watched since there was a new one */
	uint32_t path_ms;       /* added to the bounds of silence: see cc_tcp_path_ms */
	bool quiet;             /* by FLOW_QUIET_MS, and the loop was told */
	bool paced;             /* see life.c */
	bool writable;          /* TX */
	uint32_t set;           /* TX */
	uint8_t *tail_buf;      /* TX: rest of a segment whose transfer is gone; owned */

	/* TX */
	struct flow flow;
};

struct eng_thread;

/* What makes a thread the RX or the TX thread. All are called in it. */
struct eng_role {
	const char *name;
	void *(*main)(void *thread);
	uint32_t stream_events; /* for epoll */
	void (*on_ready)(struct eng_thread *t, struct eng_stream *s, uint32_t events);
	void (*start)(struct eng_thread *t, struct eng_xfer *x);
	void (*forget)(struct eng_thread *t, struct eng_xfer *x); /* answers with ENG_NOTE_ACK */
};

extern const struct eng_role eng_rx_role, eng_tx_role;

/* One of the two threads. */
struct eng_thread {
	struct eng *e;
	const struct eng_role *role;
	struct worker worker;
	struct eng_stream *streams; /* own */
	struct eng_stream *closed;  /* to be freed after the present batch of epoll events */
	uint64_t looked_ns;         /* at the streams */
	bool quit;
};

struct eng {
	uint64_t set_ns;                       /* how long a stream set works */
	_Atomic uint32_t bounds_ms[CC_BOUNDS]; /* L writes */
	struct eng_thread rx, tx;
	/* L */
	struct eng_xfer *xfers, *free_xfers;
	/* R */
	struct eng_xfer *buckets[ENG_BUCKETS];
	uint64_t last_seq; /* greatest started */
	uint32_t n_stalled, n_blocked_streams;
	uint32_t n_spilled; /* transfers with spilled sums */
	uint8_t *sum;       /* a partial sum that was spilled */
	uint32_t rx_local;  /* transfers with hosts == 1 */
	/* T */
	uint32_t tx_local;       /* transfers with hosts == 1 */
	struct eng_xfer *active; /* circular singly linked: points to the last one served */
	uint32_t set;            /* that is at work */
	uint64_t set_since_ns;
};

/* Commands and events: the types of wrk_pack_ptr and wrk_pack_num. */
enum eng_command {
	ENG_CMD_START = 0,  /* xfer */
	ENG_CMD_FORGET = 1, /* xfer; answered by ENG_ACK */
	ENG_CMD_STREAM = 2, /* stream */
	ENG_CMD_DROP = 3,   /* link number */
	ENG_CMD_QUIT = 4,
	ENG_CMD_SKIP = 5,  /* RX: sequence number */
	ENG_CMD_LOOK = 6,  /* whether operations can be started */
	ENG_CMD_PROBE = 7, /* link number; answered by ENG_NOTE_HEARD if it has streams */
};
enum eng_note {
	ENG_NOTE_DONE = 0,   /* xfer */
	ENG_NOTE_ACK = 1,    /* xfer */
	ENG_NOTE_BROKEN = 2, /* struct eng_broken */
	ENG_NOTE_HEARD = 3,  /* eng_heard value */
};

/* A segment to be sent on: number and phase in one ring entry. */
static inline uint64_t eng_forward(uint32_t seg, enum wlk_phase phase)
{
	return (uint64_t)seg << 8 | phase;
}

/* Link, milliseconds and a flag in a number of 60 bits. */
#define ENG_HEARD_MS_BITS 27u
#define ENG_HEARD_MS_MAX  ((1u << ENG_HEARD_MS_BITS) - 1)
static inline uint64_t eng_heard(uint32_t link, uint32_t ms, bool congested)
{
	return ((uint64_t)link << 1 | congested) << ENG_HEARD_MS_BITS | ms;
}

/* Payload of ENG_NOTE_BROKEN; freed by the loop. */
struct eng_broken {
	uint32_t link;
	bool silent, ended, stuck;
	char text[106];
};

/* engine.c */
void eng_break_link(struct eng_thread *t, uint32_t link, const char *why);
/* The same: the other agent has closed it. */
void eng_end_link(struct eng_thread *t, uint32_t link);
/* The same: nothing was heard of its host for so long. */
void eng_give_up_link(struct eng_thread *t, uint32_t link, uint32_t silent_ms);
/* The same: one of its streams is stuck. */
void eng_give_up_stuck_link(struct eng_thread *t, uint32_t link);
/* Sends ENG_NOTE_HEARD. */
void eng_tell_heard(struct eng_thread *t, uint32_t link);
/* Sleeps until woken, a bell rings or a stream is ready. */
int eng_thread_wait(struct eng_thread *t, int timeout_ms);
/* True if there were any. */
bool eng_run_commands(struct eng_thread *t);
/* Closes the streams of a link that belong to this thread. */
void eng_close_link(struct eng_thread *t, uint32_t link);

/* life.c */
void eng_tune(int fd); /* loop thread: the options of a stream */
/* Time limits of streams: see eng_look. */
void eng_look_at_streams(struct eng_thread *t, bool starts);

/* xfer.c */
struct eng_xfer *eng_xfer_new(void);
int eng_xfer_setup(struct eng_xfer *x, const struct eng_xfer_spec *spec);
void eng_xfer_free(struct eng_xfer *x);
/* Does the result stand in the memory of the only member's operand? */
static inline bool eng_xfer_in_place(const struct eng_xfer *x)
{
	return x->spec.area == x->spec.members[0].in;
}
/* Is all local input of this span there? When not, the doorbell will ring once more is. */
bool eng_xfer_ready(struct eng_xfer *x, struct cc_span span);
/* How much processes say that they have copied so far. */
uint64_t eng_xfer_input(const struct eng_xfer *x);
/* All local operands of the segment, combined into dst, with the partial sum `with` first if not
 * NULL. */
void eng_xfer_combine(const struct eng_xfer *x, uint32_t seg, uint8_t *dst, const uint8_t *with);
/* The span's final value stands where readers look for it, and it is theirs. */
void eng_xfer_publish(struct eng_thread *t, struct eng_xfer *x, uint32_t seg);
/* n units of work are done; the last one makes the transfer done. */
void eng_xfer_work_done(struct eng_thread *t, struct eng_xfer *x);
/* hosts == 1: reduces one segment that nobody has claimed. False: nothing to do now. */
bool eng_xfer_reduce_local(struct eng_thread *t, struct eng_xfer *x);

#endif
