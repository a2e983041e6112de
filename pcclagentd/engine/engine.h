/* SPDX-License-Identifier: MIT
 *
 * The data path of one run: an RX and a TX thread that own its p2p streams, reduce, and forward.
 * The event loop starts and cancels transfers and hands streams over; everything crosses by
 * single-producer single-consumer rings and an eventfd. The threads never lock or call the loop,
 * and allocate only for what a cancelled transfer or a stopped trainer leaves on a stream.
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

/* event_fd (owned by the caller) is written when eng_next_event has something. NULL + errno. */
struct eng *eng_new(int event_fd);
/* Stops and joins the threads, closes all streams. Transfers must have been freed before. */
void eng_free(struct eng *e);

/* Watches a communicator's data doorbell (edge-triggered, never read, stays owned by the
 * caller, who removes it before closing it). 0 or CC_ERR_*. */
int eng_bell_add(struct eng *e, int fd);
void eng_bell_remove(struct eng *e, int fd);

/*
 * Streams after their hello. The engine owns fd from now on (also on failure). `link` names the
 * pool that a stream belongs to: a number chosen by the caller, never reused, one direction only.
 * 0 or CC_ERR_*.
 *
 * A stream of a set takes data only while that one is at work; the next one takes over with the
 * first operation after ENG_SET_NS, if there is no other one under way. A link has streams of
 * every set, or only such as are always at work.
 */
#define ENG_SETS   3u
#define ENG_SET_NS UINT64_C(5000000000)
#define ENG_NO_SET ENG_SETS
int eng_add_tx_stream(struct eng *e, uint32_t link, int fd, uint32_t set);
/* from: the agent that has opened it. */
int eng_add_rx_stream(struct eng *e, uint32_t link, const struct cc_id *from, int fd);
/*
 * Looks for signs of life of the hosts at the other ends. A link is broken when nothing at all was
 * heard of its host for CC_BOUND_LINK, and longer on a slow path (cc_tcp_path_ms); a host that only
 * takes no data is never given up. One stream's packets may all be lost for a while: its link ends
 * with it after CC_BOUND_STREAM, if the other host is heard of on others. To be called every
 * FLOW_LOOK_MS; time in which nobody called is not held against the others. The rest of half a
 * second is for late looks. starts: operations can be started now. Otherwise what other hosts sent
 * ahead of a start waits for it however long it takes.
 */
void eng_look(struct eng *e, bool starts);
/* Instead of the usual ones of common/cc_bounds.h, from the next look on. */
void eng_set_bounds(struct eng *e, const struct cc_bounds *b);
/* Closes the streams of a link. Transfers that still need it must have been cancelled. */
void eng_drop_link(struct eng *e, uint32_t link);

struct eng_member {
	const uint8_t *in;            /* the operand, mapped here */
	uint64_t in_start, in_second; /* copying order, see shm_slot.in_done */
	uint8_t *out;                 /* NULL, or where the result goes besides the area */
	uint32_t window;              /* places at `in`, see shm_window_off; 0: for all of it */
	struct shm_slot *slot;        /* progress, wake-ups; in the communicator's queue pair */
	bool staged;                  /* false: all of `in` is there already */
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
	uint32_t tx_link;    /* to next; unused when plan.hosts == 1 */
	struct cc_id prev;   /* the agent that segments come from; likewise */
	/* count * esize bytes: partial sums and the result, or the undo copies. It may be an output
	 * whose old contents nobody needs, or the only member's staged operand: each segment of
	 * that is used once, before it is overwritten. */
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

/* By the shim, too: such operands are never in windows. */
static inline bool eng_is_small(const struct eng_xfer_spec *spec)
{
	return shm_is_eager(spec->plan.count * spec->plan.esize, spec->plan.hosts);
}

/* Memory in the spec must stay mapped until ENG_XFER_DONE (ok) or ENG_XFER_CANCELLED has been
 * taken. The spec and its members are copied. 0 or CC_ERR_NOMEM/CC_ERR_EXIST. */
int eng_start(struct eng *e, const struct eng_xfer_spec *spec);
/* The transfer with this number does not take place here: what the other hosts send of it is
 * dropped, instead of holding up what comes behind it until it is started. Numbers ascend. */
void eng_skip(struct eng *e, uint64_t seq);
/* Ends a transfer whatever its progress; ENG_XFER_CANCELLED follows. A transfer that is done, also
 * when its event has not been taken yet, is cancelled all the same. */
void eng_cancel(struct eng *e, uint64_t seq);
/* Forgets a transfer after its last event. */
void eng_release(struct eng *e, uint64_t seq);

enum eng_event_type {
	ENG_XFER_DONE = 1,  /* all segments here are final and all that was to be sent is sent */
	ENG_XFER_CANCELLED, /* no thread uses its memory any more */
	ENG_LINK_BROKEN,    /* link, text; its streams are closed; once per link */
	ENG_LINK_HEARD, /* link, heard_ms, blocked: the answer to eng_probe; unasked when a stream
			 * falls silent for FLOW_QUIET_MS or is heard again */
};

struct eng_event {
	enum eng_event_type type;
	uint64_t seq;
	uint32_t link;
	uint64_t tx_bytes, rx_bytes; /* headers and payload on sockets, of this transfer */
	/* Since the other host's system answered or sent anything on one of the link's streams, but
	 * for the time that it may have been under way. The
	 * agent there may be stopped all the same. */
	uint32_t heard_ms;
	bool silent;    /* LINK_BROKEN: nothing was heard of the other host any more */
	bool ended;     /* LINK_BROKEN: the other agent has closed it */
	bool stuck;     /* LINK_BROKEN: a stream was stuck, see flow_is_stuck */
	bool congested; /* outbound: a stream has data under way that it cannot take */
	char text[128];
};

/* True and *ret filled while there are events. */
bool eng_next_event(struct eng *e, struct eng_event *ret);

/* Progress of a running transfer: read from what the threads count anyway. */
struct eng_progress {
	uint32_t segs_done, segs;
	uint64_t tx_bytes, rx_bytes;
	uint64_t moved; /* changes with any progress: the same later on means a standstill */
	/* The member with most of its operand still to be copied in; ENG_NO_MEMBER: all is there.
	 */
	uint32_t copying;
};
#define ENG_NO_MEMBER UINT32_MAX
bool eng_get_progress(struct eng *e, uint64_t seq, struct eng_progress *ret);
/* Asks what the last look has found out about a link's streams; ENG_LINK_HEARD follows if it has
 * any. */
void eng_probe(struct eng *e, uint32_t link);

#endif
