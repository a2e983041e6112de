/* SPDX-License-Identifier: MIT
 *
 * Structures and functions that the files of this folder share. Each object is written by one of
 * them alone:
 *
 *   ops.c       all of them, for the agent
 *   run.c       runs: masters' connections and the engine of each
 *   xfer.c      all-reduces under way; output.c where their results go
 *   algos.c     the table of algorithms; eager.c the one of small operations, which needs no
 *               engine; eager_in.c their operands from other hosts
 *   sync.c      synchronizations; diff_report.c what came of them
 *   progress.c  whether they move, and who is at fault
 *   benchmark.c a service that refuses
 */
#ifndef OPS_INTERNAL_H
#define OPS_INTERNAL_H

#include "common/cc_err.h"
#include "common/cc_id.h"
#include "common/cc_log.h"
#include "common/cc_loop.h"
#include "common/cc_seal.h"
#include "common/cc_sys.h"
#include "pcclagentd/base/base.h"
#include "pcclagentd/base/watermark.h"
#include "pcclagentd/ops/ops.h"
#include "pcclagentd/ops/output.h"
#include "proto/wire_codes.h"
#include "proto/wire_link.h"
#include "proto/wire_master.h"

struct unexpected; /* eager.c */
struct eager_in;   /* eager_in.c */

struct ops {
	struct base *base;
	struct loc *loc;
	struct net *net;
	struct run *runs;
	struct found *comm_reports; /* diff_report.c: by communicator */
	uint64_t here_ns;           /* when it was looked whether addresses in use are still ours */
	uint64_t progress_ns;       /* when progress.c looked last */
};

struct run {
	struct ops *o;
	uint32_t id;
	struct cc_addr addr;
	struct cc_conn *conn;    /* NULL when down */
	uint32_t attempt;        /* counts opens, drops and closes: what came before is old news */
	bool up;                 /* it has been made */
	struct cc_addr reached;  /* address at which the master was reached */
	struct cc_bounds bounds; /* as the last master has told them */
	char why[WM_TEXT_MAX];   /* more exact than what cc_conn says on closing; "" */
	struct cc_id run_id;
	struct cc_seal *seal; /* of the connection; NULL: there is none */
	uint64_t round;       /* the last one that was prepared */
	bool closed;          /* the core has forgotten it; goes with its last operation */
	struct net_run *net;
	struct eng *eng;
	int event_fd;
	struct cc_watch *event_watch;
	uint64_t looked_ns; /* the engine at its streams */
	struct xfer *xfers;
	struct unexpected *unexpected; /* by seq */
	struct eager_in *eager_ins;
	uint64_t last_seq; /* of an operation that was started or skipped */
	struct ste *ste;   /* NULL until somebody synchronizes */
	int state_fd;
	struct cc_watch *state_watch;
	struct sync *syncs;
	UT_hash_handle hh;
};

/* progress.c: as seen last. */
struct progress {
	struct watermark mark;
	uint64_t told_ns; /* when its standstill was logged; 0: it was not */
};

struct xfer {
	uint64_t seq, tag;
	uint32_t group, hosts;
	struct cc_id next, prev; /* agents, when hosts > 1 */
	char prev_name[WM_NAME_MAX];
	struct run *run;
	const struct eng_algo *algo; /* NULL: none can do it */
	struct eng_work work;        /* the algorithm's */
	bool started;                /* its algorithm knows it */
	bool finished;               /* no thread is on it any more */
	bool over;                   /* done or being cancelled: nothing is expected to move */
	struct progress progress;
	uint64_t said_ns; /* progress.c: when the master was told of it last */
	uint64_t bytes;   /* of the operand */
	uint32_t tx_link;
	bool spec; /* it may be rolled back, and others may mean another one */
	struct op_output output;
	UT_hash_handle hh;
	uint32_t n_members;
	struct loc_member members[]; /* as many as the core named */
};

/* A job: one attempt of a synchronization as this host takes part in it. */
struct sync {
	uint64_t seq;
	uint32_t group;
	uint64_t revision;     /* elected */
	struct wm_digest keys; /* elected */
	struct run *run;
	bool started;  /* the engine for shared state knows it */
	bool finished; /* and has forgotten it */
	bool done;     /* the core was told */
	bool failed;   /* that it did */
	bool over;     /* nothing is expected to move */
	struct progress progress;
	uint32_t n_members;
	struct sync_member {
		uint32_t id;                   /* of the communicator */
		struct loc_comm *comm;         /* referenced until it is dropped; NULL */
		struct loc_manifest *manifest; /* referenced, used until it is dropped; NULL */
		uint32_t index;   /* in the engine's job; STE_NO_MEMBER: it never was there */
		uint64_t offered; /* revision */
		bool holder, torn, synced, gone, used, dropping, told_failed;
	} * members; /* owned */
	uint32_t n_sources;
	struct sync_source {
		char host[WM_NAME_MAX];
		bool holds;
	} sources[STE_SOURCES_MAX];
	UT_hash_handle hh;
};

/* ---- run.c ---- */

void op_run_free_if_done(struct run *r);
void op_runs_tick(struct ops *o, uint64_t now);
void op_runs_free(struct ops *o);

/* ---- xfer.c ---- */

void op_xfer_start(struct run *r, const struct agt_xfer *t);
/* What other hosts send of this operation is not wanted here. */
void op_xfer_skip(struct run *r, uint64_t seq);
void op_xfer_cancel(struct run *r, uint64_t seq);
/* It was speculative: as if it had never been. */
void op_xfer_rollback(struct run *r, uint64_t seq);
void op_xfer_free(struct run *r, uint64_t seq);
/* Its algorithm has finished it. */
void op_xfer_done(struct xfer *x, uint64_t tx_bytes, uint64_t rx_bytes);
void op_xfer_event(struct run *r, const struct eng_event *ev);
/* Does one use the outbound link with this number? */
bool op_xfers_use_link(const struct run *r, uint32_t link);
/* Cancels all, waits for the engine's threads to let go (at most a second) and frees them. False:
 * the engine still uses their memory. */
bool op_xfers_halt(struct run *r);

/* ---- algos.c ---- */

extern const struct eng_algo *const op_algos[]; /* ends with NULL; the first that can is taken */

/* ---- eager.c ---- */

extern const struct eng_algo op_eager;
/* All of them, with operands that were not there before. */
void op_eager_fed(struct ops *o);
/* NULL, or why this cannot be meant for x. grave: nobody sends that who means another operation. */
const char *op_eager_objection(
	const struct xfer *x, const struct wlk_data *d, const struct cc_id *from, bool *ret_grave);
/* Where the operand of the host at this position belongs, until x is over. */
uint8_t *op_eager_dst(const struct xfer *x, uint32_t pos);
/* So many bytes of it are there. */
void op_eager_got(const struct xfer *x, uint32_t pos, uint32_t bytes);
/* It is all there. */
void op_eager_arrived(struct xfer *x, const struct wlk_data *d);
/* An operation, small or not, has been started or will never be: what came of it early is wanted
 * now, or not at all. */
void op_eager_started(struct run *r, uint64_t seq);
/* An operation on so many hosts may begin elsewhere before it does here: what comes of it from the
 * agent before this one is kept, for its start or until op_eager_forget. */
void op_eager_expect(struct run *r, uint64_t seq, uint32_t hosts, const struct cc_id *prev);
void op_eager_forget(struct run *r, uint64_t seq);
void op_eager_forget_all(struct run *r);
/* NULL, or why what d announces cannot be kept: it comes from somebody else, or is there. */
const char *op_eager_unexpected_objection(
	struct run *r, const struct wlk_data *d, const struct cc_id *from);
/* Where what d announces is to be kept, until its operation begins. NULL: nowhere. */
uint8_t *op_eager_unexpected_dst(struct run *r, const struct wlk_data *d);
/* So many bytes of it are there. */
void op_eager_unexpected_got(struct run *r, const struct wlk_data *d, uint32_t bytes);

/* ---- eager_in.c ---- */

/* net_run_ops, of which arg is the run. */
void *op_eager_in_open(void *run, struct net_in_link *l, const struct cc_id *peer, int fd);
void op_eager_in_close(void *in);
/* What streams of the run wait for may be there. */
void op_eager_ins_look(struct run *r);

/* ---- progress.c ---- */

/* It has come further, or to its end. */
void op_progress_moved(struct xfer *x, uint64_t now);
void op_progress_sync_moved(struct sync *x, uint64_t now);
/* For how long it has stood still, ns, and what it waits for, in waits[WM_TEXT_MAX]; 0 and "" while
 * it moves, or when it is over. */
uint64_t op_progress_sync(
	const struct sync *x, const struct ste_progress *p, uint64_t now, char *waits);
void op_progress_tick(struct ops *o, uint64_t now);

/* ---- sync.c ---- */

/* Makes the run's engine for shared state if there is none. 0 or CC_ERR_*. */
int op_sync_engine(struct run *r);
void op_sync_start(struct run *r, const struct agt_sync *t);
void op_sync_drop(struct run *r, uint64_t seq, uint32_t comm);
void op_sync_cancel(struct run *r, uint64_t seq);
void op_sync_free(struct run *r, uint64_t seq);
struct sync *op_sync_find(const struct run *r, uint64_t seq); /* NULL: there is none */
/* Memory of another peer that a peer of the same user may copy from: both are in a job, and the
 * other one has what was elected. Or NULL. */
struct loc_region *op_sync_shown(struct ops *o, const struct loc_comm *c, uint64_t region);
/* Ends the engine for shared state and forgets its jobs. No thread uses their memory then. */
void op_syncs_halt(struct run *r);

/* ---- benchmark.c ---- */

extern const struct net_service op_benchmark;

/* ---- diff_report.c ---- */

/* The job's STE_CANCELLED has been taken, and its members have not heard of its end. The peers that
 * it has repaired are logged. */
void op_diff_take(const struct sync *x);
void op_diff_forget(struct ops *o, uint32_t comm);
void op_diff_free(struct ops *o);

#endif
