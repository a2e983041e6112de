/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the shared-state engine: the engine itself. What else a file shares is in
 * the header that has its name.
 *
 *   state.c   the loop's side, and the thread's round
 *   job.c     what a job knows: hashes, leaves, and when it is over
 *   member.c  its members
 *   window.c  commands to processes
 *   copy.c    blocks on their way into tensors; copies from holders on this host
 *   pool.c    threads that copy
 *   fetch.c   sources: what is asked of whom, and who is given up
 *   pace.c    how much is asked for ahead
 *   stream.c  streams to sources: connecting, requests, answers
 *   narrow.c  sources whose large packets get lost
 *   serve.c   streams from other agents
 *   set.h     sets of members
 *
 * Everything belongs to the thread, but for what is marked L (loop) and for atomic counters, which
 * the loop reads.
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

/* What epoll reports. */
enum ste_fd_kind { STE_FD_BELL = 0, STE_FD_STREAM, STE_FD_CONN };
struct ste_fd {
	uint8_t kind;
	int fd;
	uint32_t events; /* asked for */
};

struct ste {
	struct ste_config cfg;
	struct worker worker;
	struct ste_fd bell;
	bool quit;
	struct ste_job *jobs;
	struct ste_conn *conns;
	struct ste_stream *closed_streams; /* to be freed after the present batch of epoll events */
	struct ste_conn *closed_conns;
	uint32_t next_conn;
	uint64_t now_ns, looked_ns;
	uint64_t last_seq; /* greatest started */
	struct ste_pool *pool;
	struct ste_narrow *narrow;
	uint8_t *drain; /* WST_LEN_MAX bytes: where payload goes that nobody wants */
	_Atomic uint32_t n_conns;
	_Atomic uint32_t bounds_ms[CC_BOUNDS];
	/* L */
	uint32_t n_jobs;
	uint64_t busy_ns; /* when there was last something to do */
	struct ste_job *l_jobs, *dead;
};

enum ste_note { STE_NOTE_DONE = 0, STE_NOTE_FAILED, STE_NOTE_CANCELLED, STE_NOTE_MEMBERS };

void ste_notify(struct ste_job *j, enum ste_note note);
int ste_watch(
	struct ste *e, struct ste_fd *f, uint32_t events); /* also to change what is watched */

static inline uint32_t ste_bound_ms(const struct ste *e, enum cc_bound b)
{
	return atomic_load_explicit(&e->bounds_ms[b], memory_order_relaxed);
}

#endif
