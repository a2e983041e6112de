/* SPDX-License-Identifier: MIT
 *
 * The shared-state engine: the declarations that all its files use. Declarations of a single file
 * are in the header with the same name.
 *
 *   state.c   the functions that the event loop calls, and the main loop of the engine's thread
 *   job.c     the state of a job: hashes, missing leaves, its end
 *   member.c  the members of a job
 *   window.c  commands to processes
 *   copy.c    writes blocks into tensors; copies from holders on this host
 *   pool.c    worker pool: threads that copy
 *   fetch.c   sources: chooses the next requests, and gives up sources that fail
 *   pace.c    computes how many bytes are requested ahead
 *   stream.c  streams to sources: connecting, requests, answers
 *   narrow.c  sources whose large packets get lost
 *   serve.c   streams from other agents
 *   set.h     sets of members
 *
 * The engine's thread owns all data, except fields marked L, which belong to the event loop. The
 * loop also reads the atomic counters.
 */
#ifndef STATE_INTERNAL_H
#define STATE_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cc_bounds.h"
#include "pcclagentd/base/worker.h"
#include "pcclagentd/state/state.h"

#define STE_MS(n) ((uint64_t)(n)*1000000u)

struct ste_conn;
struct ste_job;
struct ste_narrow;
struct ste_pool;
struct ste_stream;

/* The kinds of descriptors that epoll watches. Each epoll event points to a struct ste_fd. */
enum ste_fd_kind { STE_FD_BELL = 0, STE_FD_STREAM, STE_FD_CONN };
struct ste_fd {
	uint8_t kind;
	int fd;
	uint32_t events; /* events that epoll watches for */
};

struct ste {
	struct ste_config cfg;
	struct worker worker;
	struct ste_fd bell;
	bool quit;
	struct ste_job *jobs;
	struct ste_conn *conns;
	/* Freed after the present batch of epoll events. */
	struct ste_stream *closed_streams;
	struct ste_conn *closed_conns;
	uint32_t next_conn;
	uint64_t now_ns, looked_ns; /* the present time; when the thread last ran its jobs */
	uint64_t last_seq;          /* the greatest seq of all jobs that were started */
	struct ste_pool *pool;
	struct ste_narrow *narrow;
	uint8_t *drain; /* WST_LEN_MAX bytes: payload that is not needed is received here */
	_Atomic uint32_t n_conns;
	_Atomic uint32_t bounds_ms[CC_BOUNDS];
	/* L */
	uint32_t n_jobs;
	uint64_t busy_ns;              /* when the thread last had a job or a connection */
	struct ste_job *l_jobs, *dead; /* `dead` is freed when the next event is requested */
};

enum ste_note { STE_NOTE_DONE = 0, STE_NOTE_FAILED, STE_NOTE_CANCELLED, STE_NOTE_MEMBERS };

void ste_notify(struct ste_job *j, enum ste_note note);
/* Makes epoll watch `f` for these events. Can be called again with other events. 0 or CC_ERR_IO. */
int ste_watch(struct ste *e, struct ste_fd *f, uint32_t events);

static inline uint32_t ste_bound_ms(const struct ste *e, enum cc_bound b)
{
	return atomic_load_explicit(&e->bounds_ms[b], memory_order_relaxed);
}

#endif
