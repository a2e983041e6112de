/* SPDX-License-Identifier: MIT
 *
 * fetch.c: chooses the requests to sources, and gives up sources that fail.
 */
#ifndef STATE_FETCH_H
#define STATE_FETCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/state/state.h"
#include "proto/wire_state.h"

struct ste_job;
struct ste_stream;

struct ste_src {
	struct ste_source s;
	uint32_t n_streams; /* open, or being opened */
	_Atomic uint32_t n_up;
	int good_addr;      /* index of the address that was reached; -1: none so far */
	uint32_t next_addr; /* index of the address to be tried next */
	uint32_t rounds;    /* passes over all addresses in which none was reached */
	uint64_t retry_ns;  /* no stream is opened before this time */
	uint32_t strikes;   /* losses of streams since the last answer that was right */
	uint64_t struck_ns; /* time of the last loss that counted */
	uint32_t wrong;     /* wrong answers from an unknown or an excluded member */
	uint64_t liars;     /* members whose data was wrong: excluded, see wst_request.without */
	_Atomic uint32_t not_yet; /* consecutive answers WST_NOT_YET */
	uint64_t not_yet_ns;      /* time of the first of these answers */
	uint64_t cursor;          /* source without holders: the first leaf that is requested */
	uint64_t base_ns;         /* shortest time of an answer; UINT64_MAX: none so far */
	uint64_t waiting;         /* see ste_load */
	/* One of the two agents lacks a resource for a stream. False again when a stream is up. */
	bool exhausted;
	char last[STE_TEXT_MAX]; /* the last error; a limit stays here while `exhausted` */
	_Atomic uint64_t bytes;
	_Atomic bool lost;
	char text[STE_TEXT_MAX]; /* set before `lost` */
};

enum ste_fault {
	STE_FAULT_NONE,
	STE_FAULT_LOST,  /* the stream broke, or was silent for too long */
	STE_FAULT_LIMIT, /* the other agent has reached a limit */
	STE_FAULT_SHORT, /* the source has only a part of the hashes */
	STE_FAULT_WRONG, /* an answer is wrong */
	STE_FAULT_GONE,  /* the source no longer takes part, or does not start */
};

void ste_fetch_begin(struct ste_job *j);
/* Opens streams, sends requests, and checks whether a bound has passed. */
void ste_fetch_step(struct ste_job *j);
/* Closes all streams. */
void ste_fetch_end(struct ste_job *j);
/* Returns the time at which the next step is due. */
uint64_t ste_fetch_next_ns(const struct ste_job *j);
/* Closes the stream. The unanswered requests of this stream will be sent again, to any source. */
void ste_stream_lost(struct ste_stream *s, enum ste_fault fault, const char *why);
/* The other agent has answered the hello. */
void ste_stream_up(struct ste_stream *up);
/* The source has answered WST_NOT_YET: pauses the stream, or closes it after too long a time. */
void ste_stream_not_yet(struct ste_stream *s);
/* An answer was right. `bytes`: of the leaves in this answer. */
void ste_stream_right(struct ste_stream *s, uint64_t bytes);
/* A request was not fulfilled: has its leaves or hashes requested again. */
void ste_fetch_return(struct ste_job *j, const struct wst_request *r);

#endif
