/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the engine:
 *
 *   engine.c  functions that the event loop calls; sleeping, waking and events of the threads
 *   algo.c    the algorithms that the threads carry out
 *   routes.c  the part of the routes that one host has in a transfer
 *   quant.c   quantized transfers
 *   xfer.c    functions of both threads for transfers
 *   life.c    functions of both threads for streams: options, signs of life, what links carry
 *   rate.c    what a link carries, from the counts of the kernel
 *   rx.c      the RX thread
 *   tx.c      the TX thread
 *
 * Marks show which thread may access a field: L event loop, R RX thread, T TX thread. Fields
 * without a mark are constant once the threads know the object.
 */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include <stdatomic.h>

#include "common/cc_spsc.h"
#include "pcclagentd/base/worker.h"
#include "pcclagentd/engine/engine.h"
#include "pcclagentd/engine/rate.h"
#include "proto/wire_link.h"

#define ENG_SEGS_MAX  (1u << 22)
#define ENG_BUCKETS   256u
#define ENG_EPOLL_MAX 64
/* The buffer of a stream. An encoded segment may be a little longer than the segment. */
#define ENG_BUFFER_BYTES (CC_PLAN_SEGMENT_MAX + 4096)

/* The state of a segment at this host; R. */
enum eng_seg_state {
	ENG_SEG_FINAL = 1u << 0, /* its final value is here, or has begun to arrive */
	/* Its partial sums have arrived, and wait for local input. The partial sum of a chunk with
	 * one child lies in `spilled`, or in the area. */
	ENG_SEG_SPILLED = 1u << 1,
};

#define ENG_NO_LANE  UINT32_MAX
#define ENG_ANY_LEAD UINT32_MAX

/* The part of this host in the reduction and distribution of one chunk. */
struct eng_chunk {
	uint32_t parent;                  /* lane of the partial sum; the owner has ENG_NO_LANE */
	uint32_t n_children;              /* hosts that send partial sums */
	uint32_t first_input;             /* n_children > 1: the chunk's first input in the inbox */
	uint32_t first_target, n_targets; /* the lanes of the result, in eng_routes.targets */
};

/* A chunk without children: its segments start at this host. */
struct eng_origin {
	uint32_t chunk, seg; /* T: the next segment of the chunk */
};

/* A host to which this host sends segments of a transfer. Each of several rings has a lane of its
 * own. */
struct eng_lane {
	uint32_t ring, pos, link;
	uint32_t taken; /* T: segments that streams have taken */
	/* T: the chunks that start at this host and are not sent completely. The last one of them
	 * is sent first. */
	struct eng_origin *origins;
	uint32_t n_origins;
	uint32_t cap;        /* segments that are sent on: the room in `queue` */
	uint32_t *queue;     /* T: segments to be sent on */
	uint32_t head, tail; /* T: the used part of `queue`, which never wraps */
};

/* The lanes and chunks of a transfer. */
struct eng_routes {
	struct eng_chunk *chunks; /* plan.n_chunks */
	uint32_t n_lanes, turn;   /* turn, T: the lane that was served last */
	struct eng_lane *lanes;
	uint32_t *targets;          /* numbers of lanes */
	struct eng_origin *origins; /* memory of the lanes' origins */
	uint32_t n_inputs;          /* number of places for segments in the inbox */
	uint64_t segment_bytes;     /* size of a place in the inbox or in the outbox */
	uint32_t cap_chunks, cap_queue;
	uint32_t *queue; /* memory of the lanes' queues */
};

/* Segments are counted in three classes: the sender waits for no host, for partial sums, or for
 * results of other hosts. */
enum { ENG_WAITS = 3 };
/* Hosts that may send to this host; see eng_progress.awaited. */
#define ENG_SENDERS (CC_ROUTE_HOSTS_MAX - 1)

struct eng_xfer {
	struct eng_xfer_spec spec;
	struct eng_member *members; /* copies; the next transfer uses the same memory */
	uint32_t cap_members;
	struct eng_peer *peers; /* likewise */
	uint32_t cap_peers;
	struct cc_rings rings; /* a copy, if the route is CC_ALGO_RINGS */
	struct eng_routes routes;
	uint64_t bytes; /* bytes of the operand */
	/* The segments by which a ring may be ahead of another ring on this host. ENG_ANY_LEAD: no
	 * ring is held. */
	uint32_t lead;
	struct cc_spsc forward;     /* R pushes, T pops: eng_forward values */
	_Atomic uint32_t work_left; /* segments to become final here + segments to be sent */
	_Atomic uint32_t segs_final;
	_Atomic uint32_t next_local; /* hosts == 1: the next segment to be reduced */
	_Atomic uint64_t tx_bytes, rx_bytes;
	/* The number of segments that have not arrived yet, by class and sender. The index is from
	 * eng_xfer_wait. */
	_Atomic uint32_t awaited[ENG_WAITS * ENG_SENDERS];
	_Atomic uint8_t *leaving; /* T sets 1 when it begins to send a segment's partial sum */
	uint8_t *seg_state;       /* R: enum eng_seg_state of each segment */
	uint64_t *arrived;  /* R: bit i: the segment's partial sum of child i has begun to arrive */
	uint8_t *n_sent;    /* T: in place: the number of targets to which the result was sent */
	uint8_t *n_arrived; /* R: the number of the segment's partial sums that have arrived */
	uint8_t *spilled;   /* R: memory for spilled segments, or NULL */
	uint32_t n_spilled; /* R: spilled segments */
	uint64_t spilled_input;   /* R: eng_xfer_input when the last segment was spilled */
	uint64_t tried_input;     /* R: eng_xfer_input when spilled segments were last tried */
	uint64_t block_end_ns;    /* R: no stream is blocked after this time; 0: none was blocked */
	struct eng_xfer *rx_next; /* R: chain of the bucket */
	struct eng_xfer *tx_next; /* T: list of active transfers */
	uint32_t cap_segs;        /* L: segments for which the arrays have room */
	uint32_t acks_awaited;    /* L: threads that still know this object */
	bool cancelled, done, released; /* L */
	struct eng_xfer *next;          /* L: list of all transfers, or of free objects */
};

struct eng_stream {
	int fd;
	uint32_t link;
	struct cc_id from; /* RX: the agent that has opened the stream */
	bool tx;
	struct eng_stream *next;
	uint8_t hdr[WLK_DATA_SIZE];
	uint32_t hdr_done;     /* header bytes received or sent */
	uint8_t *data;         /* the next payload byte to be received or sent */
	uint32_t left;         /* payload bytes still to be received or sent */
	struct eng_xfer *xfer; /* NULL: the payload is stale, or was spilled */
	uint32_t seg;
	uint32_t child;         /* RX: the sender of a partial sum, as a child of this host */
	uint32_t wait;          /* RX: the index of the segment in eng_xfer.awaited */
	uint8_t phase;          /* enum wlk_phase */
	bool busy;              /* a segment is being received or sent */
	uint8_t *partial;       /* buffer of a partial sum that arrives or starts here; owned */
	bool blocked;           /* RX: the partial sum waits for local input */
	uint64_t blocked_ns;    /* when it was blocked, or when local input last grew after that */
	uint64_t blocked_input; /* eng_xfer_input at that time */
	bool stalled;           /* RX: the transfer of the next segment is not known here yet */
	uint64_t stalled_ns;    /* start of the time limit */
	uint32_t segs_in;       /* TCP's count of received segments at the last check */
	uint32_t silent_ms;     /* time without a new segment, as far as it was checked */
	uint32_t path_ms;       /* added to the bounds of silence: see cc_tcp_path_ms */
	bool quiet;             /* silent for FLOW_QUIET_MS, and this was reported to the loop */
	bool paced;             /* see life.c */
	bool writable;          /* TX */
	uint32_t set;           /* TX: its stream set */
	uint8_t *tail_buf;      /* TX: rest of a segment whose transfer has ended; owned */

	/* TX */
	struct flow flow;
	struct eng_rate_counts before, counts; /* at the last two looks */
	uint32_t trip_us;                      /* the shortest round trip; 0: unknown */
	struct eng_rate rate; /* of the link, in the first stream of the link in the list */
};

struct eng_thread;

/* Buffers of a thread for one segment of a quantized transfer. */
struct eng_quant_buffers {
	void *acc, *own; /* in the accumulator type */
	uint8_t *native; /* in the type of the operand */
	uint8_t *wire;   /* encoded */
};

/* The functions of the RX thread, or of the TX thread. The thread itself calls them. */
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
	struct eng_stream *closed;  /* freed after the present batch of epoll events */
	uint64_t looked_ns;         /* when the streams were last checked */
	/* Allocated by the loop thread before the first quantized transfer. */
	struct eng_quant_buffers quant;
	bool quit;
};

struct eng {
	uint64_t set_ns;                       /* time after which the next stream set takes over */
	_Atomic uint32_t bounds_ms[CC_BOUNDS]; /* L writes */
	struct eng_thread rx, tx;
	/* L */
	struct eng_xfer *xfers, *free_xfers;
	/* R */
	struct eng_xfer *buckets[ENG_BUCKETS];
	uint64_t last_seq; /* the greatest seq of transfers that were started or skipped */
	uint32_t n_stalled, n_blocked_streams;
	uint32_t n_spilled; /* transfers with spilled segments */
	uint8_t *sum;       /* buffer for a spilled partial sum while it is reduced */
	uint32_t rx_local;  /* transfers with hosts == 1 */
	/* T */
	uint32_t tx_local;       /* transfers with hosts == 1 */
	struct eng_xfer *active; /* circular list: points to the transfer that was served last */
	uint32_t set;            /* the stream set that sends */
	uint64_t set_since_ns;
	/* The operations since the last look that have used links; see eng_tx_used_rings. */
	bool used, used_otherwise;
	uint32_t used_group;
};

/* Commands and events: the types of wrk_pack_ptr and wrk_pack_num. */
enum eng_command {
	ENG_CMD_START = 0,  /* xfer */
	ENG_CMD_FORGET = 1, /* xfer; answered by ENG_NOTE_ACK */
	ENG_CMD_STREAM = 2, /* stream */
	ENG_CMD_DROP = 3,   /* link number */
	ENG_CMD_QUIT = 4,
	ENG_CMD_SKIP = 5,  /* RX: sequence number */
	ENG_CMD_LOOK = 6,  /* 1: operations can be started; 0: not */
	ENG_CMD_PROBE = 7, /* link number; answered by ENG_NOTE_HEARD if it has streams */
};
enum eng_note {
	ENG_NOTE_DONE = 0,   /* xfer */
	ENG_NOTE_ACK = 1,    /* xfer */
	ENG_NOTE_BROKEN = 2, /* struct eng_broken */
	ENG_NOTE_HEARD = 3,  /* eng_heard value */
	ENG_NOTE_RATE = 4,   /* struct eng_carried */
};

/* A segment to be sent on: number and phase in one ring entry. */
static inline uint64_t eng_forward(uint32_t seg, enum wlk_phase phase)
{
	return (uint64_t)seg << 8 | phase;
}
static inline uint32_t eng_forward_seg(uint64_t v)
{
	return (uint32_t)(v >> 8);
}
static inline enum wlk_phase eng_forward_phase(uint64_t v)
{
	return (enum wlk_phase)(v & 0xff);
}

/* Packs a link, milliseconds and a flag into a number of 60 bits. */
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

/* Payload of ENG_NOTE_RATE; freed by the loop. */
struct eng_carried {
	uint32_t link, trip_us;
	uint64_t rate;
};

/* engine.c */

/* Closes the link's streams of this thread, and sends ENG_NOTE_BROKEN. */
void eng_break_link(struct eng_thread *t, uint32_t link, const char *why);
/* Breaks a link that the other agent has closed. */
void eng_end_link(struct eng_thread *t, uint32_t link);
/* Breaks a link because its other host was silent for `silent_ms`. */
void eng_give_up_link(struct eng_thread *t, uint32_t link, uint32_t silent_ms);
/* Breaks a link because one of its streams is stuck. */
void eng_give_up_stuck_link(struct eng_thread *t, uint32_t link);
/* Sends ENG_NOTE_HEARD if the link has streams in this thread. */
void eng_tell_heard(struct eng_thread *t, uint32_t link);
/* Sleeps until the thread is woken, a doorbell rings, or a stream is ready. */
int eng_thread_wait(struct eng_thread *t, int timeout_ms);
/* Carries out the waiting commands. Returns false if there were none. */
bool eng_run_commands(struct eng_thread *t);
/* Closes the streams of a link that belong to this thread. */
void eng_close_link(struct eng_thread *t, uint32_t link);

/* routes.c */
/* Computes the routes of a transfer. CC_ERR_NOMEM, CC_ERR_LIMIT if the route is not possible with
 * so many hosts, or CC_ERR_INVAL if rings and plan do not fit each other. */
int eng_routes_setup(struct eng_routes *r, const struct eng_xfer_spec *spec);
void eng_routes_free(struct eng_routes *r);
static inline struct cc_route eng_route_of(const struct eng_xfer_spec *spec)
{
	return (struct cc_route){
		.algo = spec->route, .hosts = spec->plan.hosts, .rings = spec->rings};
}
static inline uint32_t eng_chunk_of(const struct eng_xfer_spec *spec, uint32_t seg)
{
	return seg / spec->plan.segs_per_chunk;
}

/* quant.c */
/* Allocates the buffers, unless they exist. 0 or CC_ERR_NOMEM. */
int eng_quant_buffers_new(struct eng_quant_buffers *b);
void eng_quant_buffers_free(struct eng_quant_buffers *b);
/* Encodes the local operands of a segment into `wire`. */
void eng_quant_origin(
	const struct eng_xfer *x, uint32_t seg, const struct eng_quant_buffers *b, uint8_t *wire);
/* Encodes the sum of the local operands and all partial sums into the outbox. `with`: the partial
 * sum if the chunk has one child. It may lie in the outbox. */
void eng_quant_reduce(const struct eng_xfer *x, uint32_t seg, const struct eng_quant_buffers *b,
	const uint8_t *with);
/* Like eng_quant_reduce, but at the owner of the chunk: encodes the result into the outbox, and
 * writes the result to `dst`. */
void eng_quant_finish(const struct eng_xfer *x, uint32_t seg, const struct eng_quant_buffers *b,
	const uint8_t *with, uint8_t *dst);
/* Decodes a result into `dst`. */
void eng_quant_decode(const struct eng_xfer *x, uint32_t seg, const struct eng_quant_buffers *b,
	const uint8_t *wire, uint8_t *dst);

/* life.c */
/* Sets the socket options of a stream. Called by the loop thread. */
void eng_tune(int fd);
/* Checks the time limits of the thread's streams, see eng_look. */
void eng_look_at_streams(struct eng_thread *t, bool starts);

/* tx.c */
/* Since the last call, did operations of one group use the links, and all of them along rings? Then
 * a link carried what a plan intends for it, and not its part of what the host sends to many. */
bool eng_tx_used_rings(struct eng *e);

/* xfer.c */
/* Returns the index in eng_xfer.awaited for segments of a chunk that come from the host at position
 * `from`. */
uint32_t eng_xfer_wait(
	const struct eng_xfer_spec *s, uint32_t chunk, enum wlk_phase phase, uint32_t from);
struct eng_xfer *eng_xfer_new(void);
int eng_xfer_setup(struct eng_xfer *x, const struct eng_xfer_spec *spec);
void eng_xfer_free(struct eng_xfer *x);
/* Is the result written to the memory of the only member's operand? */
static inline bool eng_xfer_in_place(const struct eng_xfer *x)
{
	return x->spec.area == x->spec.members[0].in;
}
/* Are results sent from the memory of the only member's operand? Then a result must not be
 * published before it is sent. */
static inline bool eng_xfer_sends_in_place(const struct eng_xfer *x)
{
	return eng_xfer_in_place(x) && !x->spec.quant.on;
}
/* Has all local input of this span been copied? If not, the doorbell will ring when more input is
 * there. */
bool eng_xfer_ready(struct eng_xfer *x, struct cc_span span);
/* Returns how many bytes of their operands the processes have copied, as they claim. */
uint64_t eng_xfer_input(const struct eng_xfer *x);
/* Returns the place of a partial sum in the inbox. Its chunk has several children. */
uint8_t *eng_xfer_input_at(const struct eng_xfer *x, uint32_t seg, uint32_t child);
/* Returns the place of an encoded segment in the outbox. */
uint8_t *eng_xfer_outbox_at(const struct eng_xfer *x, uint32_t seg);
/* Returns the bytes of a segment on the network. */
uint32_t eng_xfer_wire_len(
	const struct eng_xfer *x, enum wlk_phase phase, const struct cc_span *span);
/* Reduces all local operands of the segment into `dst`. */
void eng_xfer_combine_local(const struct eng_xfer *x, uint32_t seg, uint8_t *dst);
/* Reduces all local operands of the segment into `dst`, and the partial sums of all children.
 * `with`: the partial sum if the chunk has one child; else NULL. */
void eng_xfer_combine(const struct eng_xfer *x, uint32_t seg, uint8_t *dst, const uint8_t *with);
/* The segment's final value is in the output: sets its flag, and wakes processes that wait for it.
 * The processes may overwrite the segment from now on if it lies in their memory. */
void eng_xfer_publish(struct eng_thread *t, struct eng_xfer *x, uint32_t seg);
/* Counts a unit of work as done. The last unit ends the transfer. */
void eng_xfer_work_done(struct eng_thread *t, struct eng_xfer *x);
/* hosts == 1: reduces the next segment. Returns false if there is nothing to do now. */
bool eng_xfer_reduce_local(struct eng_thread *t, struct eng_xfer *x);

#endif
