/* SPDX-License-Identifier: MIT
 *
 * The data path of one run: an RX and a TX thread that own its p2p streams, reduce, and forward.
 * The event loop starts and cancels transfers and hands over streams. Commands and events go
 * through single-producer single-consumer rings and an eventfd. The threads take no lock and never
 * call the loop. They allocate memory only for the rest of a segment of a cancelled transfer, and
 * for segments that are spilled while a trainer is stopped.
 *
 * All functions are called by the loop thread.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_bounds.h"
#include "common/cc_id.h"
#include "common/cc_plan.h"
#include "kernels/krn.h"
#include "pcclagentd/base/flow.h"
#include "pcclagentd/engine/algo.h"
#include "proto/shm_queue.h"

struct eng;

/* Creates an engine and starts its threads. The engine writes to `event_fd`, which the caller owns,
 * when eng_next_event has an event. NULL + errno. */
struct eng *eng_new(int event_fd);
/* Stops and joins the threads, closes all streams. Transfers must have been freed before. */
void eng_free(struct eng *e);

/* Watches the data doorbell of a communicator, edge-triggered, without reading it. The caller keeps
 * owning `fd` and removes it before closing it. 0 or CC_ERR_*. */
int eng_bell_add(struct eng *e, int fd);
void eng_bell_remove(struct eng *e, int fd);

/*
 * These functions add a stream after its hello. The engine owns `fd` from now on, also if the call
 * fails. `link` is the number of the link to which the stream belongs. The caller chooses it and
 * never uses it again, nor for the other direction. 0 or CC_ERR_*.
 *
 * A stream of a stream set takes new segments only while this set sends. After ENG_SET_NS the next
 * set takes over at the first operation that starts while no other operation is in progress. The
 * streams of a link belong to all sets, or all of them to ENG_NO_SET and always send.
 */
#define ENG_SETS   3u
#define ENG_SET_NS UINT64_C(5000000000)
#define ENG_NO_SET ENG_SETS
int eng_add_tx_stream(struct eng *e, uint32_t link, int fd, uint32_t set);
/* `from`: the agent that has opened the stream. */
int eng_add_rx_stream(struct eng *e, uint32_t link, const struct cc_id *from, int fd);
/*
 * Checks the streams for signs of life of the other hosts. To be called every FLOW_LOOK_MS; a
 * longer time without a call does not count as silence.
 *
 * A link is broken if its other host was silent on all streams for CC_BOUND_LINK, and longer on a
 * slow path (cc_tcp_path_ms). If all packets of one stream are lost, while the host is heard on
 * other streams, the link is broken after CC_BOUND_STREAM. A host that sends signs of life but
 * takes no data is never given up.
 *
 * `starts`: operations can be started now. If not, stalled streams wait without a time limit.
 */
void eng_look(struct eng *e, bool starts);
/* Sets the bounds. Before the first call the defaults of common/cc_bounds.h apply. */
void eng_set_bounds(struct eng *e, const struct cc_bounds *b);
/* Closes the streams of a link. Transfers that still need it must have been cancelled. */
void eng_drop_link(struct eng *e, uint32_t link);

struct eng_member {
	const uint8_t *in;            /* the operand, mapped in the agent */
	uint64_t in_start, in_second; /* copying order, see shm_slot.in_done */
	uint8_t *out;                 /* the result is also written to this memory; or NULL */
	uint32_t window; /* segments of the window at `in`, see shm_window_off; 0: no window */
	struct shm_slot *slot; /* progress, wake-ups; in the communicator's queue pair */
	bool staged;           /* the process copies the operand; false: it is complete */
};

#define ENG_MEMBERS_MAX 1024

struct eng_xfer_spec {
	uint64_t seq, tag, epoch;
	uint32_t group;
	enum krn_dtype dtype;
	enum krn_op op;
	struct cc_plan plan;
	uint32_t segment_max;
	uint32_t pos;
	uint32_t world_size; /* divisor of an average */
	uint32_t tx_link;    /* link to the next host; unused when plan.hosts == 1 */
	struct cc_id prev;   /* agent that sends the segments; unused when plan.hosts == 1 */
	/* count * esize bytes for partial sums and the result, or for the undo copies. The area may
	 * be a disposable output, or the only member's staged operand. Each segment of a staged
	 * operand is used once, before it is overwritten. */
	uint8_t *area;
	_Atomic uint8_t *flags; /* plan.n_segs bytes, zero: see shm_result_mode */
	uint8_t *direct;        /* NULL, or the only member's registered output (SHM_RESULT_UNDO) */
	uint32_t n_members;     /* 1 .. ENG_MEMBERS_MAX, in rank order */
	const struct eng_member *members;
};

static inline bool eng_has_windows(const struct eng_xfer_spec *spec)
{
	for (uint32_t i = 0; i < spec->n_members; i++)
		if (spec->members[i].window > 0)
			return true;
	return false;
}

/* The shim decides in the same way, and never puts operands of small operations into windows. */
static inline bool eng_is_small(const struct eng_xfer_spec *spec)
{
	return shm_is_eager(spec->plan.count * spec->plan.esize, spec->plan.hosts);
}

/* Starts a transfer. The memory in `spec` must stay mapped until the caller has taken ENG_XFER_DONE
 * or ENG_XFER_CANCELLED. The spec and its members are copied. 0 or CC_ERR_NOMEM, CC_ERR_EXIST,
 * CC_ERR_LIMIT. */
int eng_start(struct eng *e, const struct eng_xfer_spec *spec);
/* The transfer with this number will not start on this host. The engine drops segments of it, so
 * that they do not stall their streams. Numbers ascend. */
void eng_skip(struct eng *e, uint64_t seq);
/* Cancels a transfer at any progress, even when it is done. ENG_XFER_CANCELLED follows. */
void eng_cancel(struct eng *e, uint64_t seq);
/* Frees a transfer after its last event. */
void eng_release(struct eng *e, uint64_t seq);

enum eng_event_type {
	ENG_XFER_DONE = 1,  /* all segments on this host are final, and all of them were sent */
	ENG_XFER_CANCELLED, /* no thread uses the transfer's memory any longer */
	ENG_LINK_BROKEN,    /* link, text; its streams are closed; once per link */
	/* link, heard_ms, congested. The answer to eng_probe. Comes also when a stream becomes
	 * silent for FLOW_QUIET_MS, or is heard again. */
	ENG_LINK_HEARD,
};

struct eng_event {
	enum eng_event_type type;
	uint64_t seq;
	uint32_t link;
	uint64_t tx_bytes, rx_bytes; /* headers and payload on sockets, of this transfer */
	/* The time since the kernel of the other host last sent anything on one of the link's
	 * streams, less the path allowance. The agent on that host may be stopped nevertheless. */
	uint32_t heard_ms;
	bool silent;    /* LINK_BROKEN: the other host was silent */
	bool ended;     /* LINK_BROKEN: the other agent has closed the link */
	bool stuck;     /* LINK_BROKEN: a stream was stuck, see flow_is_stuck */
	bool congested; /* outbound: the other host does not take the data of a stream */
	char text[128];
};

/* Takes the next event into `ret`. Returns false if there is no event. */
bool eng_next_event(struct eng *e, struct eng_event *ret);

/* The progress of a transfer, read from counters of the threads. */
struct eng_progress {
	uint32_t segs_done, segs;
	uint64_t tx_bytes, rx_bytes;
	uint64_t moved; /* changes with any progress; an equal value later means a standstill */
	/* The member that has copied least of its operand; ENG_NO_MEMBER: all are complete. */
	uint32_t copying;
};
#define ENG_NO_MEMBER UINT32_MAX
bool eng_get_progress(struct eng *e, uint64_t seq, struct eng_progress *ret);
/* Requests the result of the last eng_look for a link. ENG_LINK_HEARD follows if the link has
 * streams. */
void eng_probe(struct eng *e, uint32_t link);

#endif
