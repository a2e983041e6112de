/* SPDX-License-Identifier: MIT
 *
 * The data path of one run: an RX and a TX thread that own its p2p streams, reduce, and forward.
 * The event loop starts and cancels transfers and hands over streams. Commands and events go
 * through single-producer single-consumer rings and an eventfd. The threads take no lock and never
 * call the loop. They allocate memory only for the rest of a segment of a cancelled transfer, for
 * segments that are spilled while a trainer is stopped, and for events.
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
#include "common/cc_rings.h"
#include "common/cc_route.h"
#include "kernels/krn.h"
#include "kernels/qnt.h"
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
 * fails. `link` is the number of the link to which the stream belongs. The caller chooses the
 * number, and uses it for only one link and one direction. 0 or CC_ERR_*.
 *
 * A stream of a stream set takes new segments only while this set sends. After ENG_SET_NS the next
 * set takes over at the first operation that starts while no other operation is in progress. The
 * streams of a link are either divided among all sets, or they all have ENG_NO_SET and always send.
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
 * slow path (cc_tcp_path_ms). If all packets of one stream are lost, while packets of the host
 * arrive on other streams, the link is broken after CC_BOUND_STREAM. A host that sends signs of
 * life but takes no data is never given up.
 *
 * `starts`: operations can be started now. If not, stalled streams wait without a time limit.
 *
 * The same checks find out what outbound links carry: see ENG_LINK_RATE.
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

/* Another host of the group. The links are directed: this host sends on `link`, and receives from
 * the streams that `agent` has opened. */
struct eng_peer {
	struct cc_id agent;
	uint32_t link; /* 0: no link. The route of the operation does not need it. */
};

/* The quantization of a transfer between hosts. */
struct eng_quant {
	bool on;
	struct qnt_format sum;    /* of operands and partial sums */
	struct qnt_format result; /* of results */
};

struct eng_xfer_spec {
	uint64_t seq, tag, epoch;
	uint32_t group;
	enum krn_dtype dtype;
	enum krn_op op;
	struct eng_quant quant;
	struct cc_plan plan;
	uint32_t segment_max;
	enum cc_algo route;
	/* The rings of CC_ALGO_RINGS, and with their shares the plan was made; else not used. */
	const struct cc_rings *rings;
	uint32_t pos;
	uint32_t world_size; /* divisor of an average */
	/* The hosts of the group, in ring order: plan.hosts entries; unused when plan.hosts == 1.
	 * The own entry, and those of hosts that the route does not use, may be zero. */
	const struct eng_peer *peers;
	/* count * esize bytes for partial sums and the result, or for the undo copies. The area may
	 * be a disposable output, or the only member's staged operand. Each segment of a staged
	 * operand is used once, before it is overwritten. */
	uint8_t *area;
	_Atomic uint8_t *flags; /* plan.n_segs bytes, zero: see shm_result_mode */
	uint8_t *direct;        /* NULL, or the only member's registered output (SHM_RESULT_UNDO) */
	/* eng_scratch_size bytes: the inbox, for partial sums that arrive, and the outbox, for
	 * encoded segments that are sent on. May be NULL if the size is 0. */
	uint8_t *scratch;
	/* Error feedback, or NULL: plan.count numbers of the accumulator type. The residual is
	 * added to the operands of this host; NULL: it is 0. What this host loses in its encodings
	 * is written to `loss`, which is the next residual. */
	const void *residual;
	void *loss;
	uint32_t n_members; /* 1 .. ENG_MEMBERS_MAX, in rank order */
	const struct eng_member *members;
};

static inline bool eng_has_windows(const struct eng_xfer_spec *spec)
{
	for (uint32_t i = 0; i < spec->n_members; i++)
		if (spec->members[i].window > 0)
			return true;
	return false;
}

/* Is the operation eager? The shim decides this in the same way, and never puts operands of eager
 * operations into windows. */
static inline bool eng_is_small(const struct eng_xfer_spec *spec)
{
	return cc_route_is_eager(spec->plan.count * spec->plan.esize, spec->plan.hosts);
}

/* Returns the key of the noise of stochastic rounding. Each operation, host and use has its own
 * key. Use 0 is the operand of this host. */
uint64_t eng_noise_key(const struct eng_xfer_spec *spec, uint32_t use);
/* Adds the residual to n numbers of the accumulator type that begin with element `first`. */
void eng_add_residual(const struct eng_xfer_spec *spec, void *acc, uint64_t first, size_t n);
/* Returns the place of an element in spec->loss. */
void *eng_loss_at(const struct eng_xfer_spec *spec, uint64_t element);
/* Returns the bytes of spec->scratch. `spec` needs a type, a plan, a route with its rings, a
 * position and the quantization. */
uint64_t eng_scratch_size(const struct eng_xfer_spec *spec);

/* Starts a transfer. The memory in `spec` must stay mapped until the caller has taken ENG_XFER_DONE
 * or ENG_XFER_CANCELLED. The spec, its rings, peers and members are copied. 0 or CC_ERR_NOMEM,
 * CC_ERR_EXIST, CC_ERR_LIMIT, CC_ERR_INVAL. */
int eng_start(struct eng *e, const struct eng_xfer_spec *spec);
/* The transfer with this number will not start on this host. The engine drops segments of it, so
 * that they do not stall their streams. The numbers of successive calls ascend. */
void eng_skip(struct eng *e, uint64_t seq);
/* Cancels a transfer at any progress, even when it is done. ENG_XFER_CANCELLED follows. */
void eng_cancel(struct eng *e, uint64_t seq);
/* Frees a transfer after its last event. */
void eng_release(struct eng *e, uint64_t seq);

enum eng_event_type {
	ENG_XFER_DONE = 1,  /* all segments on this host are final, and all of them were sent */
	ENG_XFER_CANCELLED, /* no thread uses the transfer's memory any longer */
	ENG_LINK_BROKEN,    /* link, text; its streams are closed; once per link */
	/* link, heard_ms, congested. The answer to eng_probe. Comes also when a stream has been
	 * silent for FLOW_QUIET_MS, or receives something again. */
	ENG_LINK_HEARD,
	/* link, rate, trip_us: what an outbound link has carried while the network was what
	 * bounded it. At most every ENG_RATE_PAUSE_US for a link (engine/rate.h). */
	ENG_LINK_RATE,
};

struct eng_event {
	enum eng_event_type type;
	uint64_t seq;
	uint32_t link;
	uint64_t tx_bytes, rx_bytes; /* headers and payload on sockets, of this transfer */
	/* The time since the kernel of the other host last sent anything on one of the link's
	 * streams, less the path allowance. The agent on that host may be stopped nevertheless. */
	uint32_t heard_ms;
	bool silent;      /* LINK_BROKEN: the other host was silent */
	bool ended;       /* LINK_BROKEN: the other agent has closed the link */
	bool stuck;       /* LINK_BROKEN: a stream was stuck, see flow_is_stuck */
	bool congested;   /* outbound: the other host does not take the data of a stream */
	uint64_t rate;    /* LINK_RATE: bit/s */
	uint32_t trip_us; /* LINK_RATE: the shortest round trip of its streams; 0: unknown */
	char text[128];
};

/* Takes the next event into `ret`. Returns false if there is no event. */
bool eng_next_event(struct eng *e, struct eng_event *ret);

/* The progress of a transfer, read from counters of the threads. */
struct eng_progress {
	uint32_t segs_done, segs;
	uint64_t tx_bytes, rx_bytes;
	uint64_t moved; /* changes with any progress; an equal value later means a standstill */
	/* The member that has copied least of its operand; ENG_NO_MEMBER: all operands are
	 * complete. */
	uint32_t copying;
	/* Bit i: data is missing from the host that is i + 1 positions before this host. Hosts that
	 * may themselves wait for data are left out if there are others. On the ring only the
	 * previous host sends, and other routes have at most CC_ROUTE_HOSTS_MAX hosts. On several
	 * rings, the host before this host on each ring sends. */
	uint64_t awaited;
};
#define ENG_NO_MEMBER UINT32_MAX
bool eng_get_progress(struct eng *e, uint64_t seq, struct eng_progress *ret);
/* Requests the result of the last eng_look for a link. ENG_LINK_HEARD follows if the link has
 * streams. */
void eng_probe(struct eng *e, uint32_t link);

#endif
