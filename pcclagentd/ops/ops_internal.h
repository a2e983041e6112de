/* SPDX-License-Identifier: MIT
 *
 * Structures and functions that the files of this folder share. Each object is written by only one
 * file:
 *
 *   ops.c         creates the parts for the agent, and carries out the core's actions
 *   run.c         runs: the connections to masters, and the engine of each run
 *   xfer.c        all-reduces in progress
 *   output.c      chooses where the results of all-reduces go
 *   algos.c       the table of algorithms
 *   eager.c       the algorithm of the eager path, which needs no engine
 *   eager_in.c    operands of the eager path from other hosts
 *   pieces.c      quantized operands of the eager path
 *   quant.c       the formats of quantized operations
 *   feedback.c    the residuals of error feedback
 *   sync.c        synchronizations
 *   diff_report.c the differences that synchronizations have found
 *   progress.c    watches for standstills, and says who causes them
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
struct residual;   /* feedback.c */
struct feedback;   /* feedback.c */

struct ops {
	struct base *base;
	struct loc *loc;
	struct net *net;
	struct run *runs;
	struct found *comm_reports; /* diff_report.c: by communicator */
	uint64_t here_ns;           /* when the local addresses in use were last checked */
	uint64_t progress_ns;       /* when progress.c last compared counters */
	void *piece;                /* pieces.c: a buffer for one piece */
};

struct run {
	struct ops *o;
	uint32_t id;
	struct cc_addr addr;
	struct cc_conn *conn;    /* connection to the master; NULL: no connection */
	uint32_t attempt;        /* counts opens, drops and closes of the connection */
	bool up;                 /* the master has answered on this connection */
	struct cc_addr reached;  /* address at which the master was reached */
	struct cc_bounds bounds; /* bounds that the last master has sent */
	/* why the connection ends, if known more exactly than cc_conn says; or "" */
	char why[WM_TEXT_MAX];
	struct cc_id run_id;
	struct cc_seal *seal; /* seal of the connection; NULL: no connection */
	uint64_t round;       /* number of the last round that the master has sent */
	bool closed;          /* the core has closed the run; freed after its last operation */
	struct net_run *net;
	struct eng *eng;
	int event_fd;
	struct cc_watch *event_watch;
	uint64_t looked_ns; /* when the engine last checked its streams */
	struct xfer *xfers;
	struct unexpected *unexpected; /* by seq */
	struct eager_in *eager_ins;
	struct feedback *feedbacks; /* by tag and group */
	uint64_t last_seq; /* the greatest seq of operations that were started or skipped */
	struct ste *ste;   /* NULL before the first synchronization */
	int state_fd;
	struct cc_watch *state_watch;
	struct sync *syncs;
	UT_hash_handle hh;
};

/* progress.c: the progress of an operation when it was last checked. */
struct progress {
	struct watermark mark;
	uint64_t told_ns; /* when its standstill was last logged; 0: not logged */
};

struct xfer {
	uint64_t seq, tag;
	uint32_t group, hosts, pos;
	char prev_name[WM_NAME_MAX]; /* the name of the previous host, when hosts > 1 */
	struct run *run;
	const struct eng_algo *algo; /* NULL: no algorithm can do it */
	struct eng_work work;        /* owned by the algorithm */
	bool started;                /* the algorithm has started it */
	bool finished;               /* no thread uses it any longer */
	bool over;                   /* done or being cancelled: nothing is expected to move */
	struct progress progress;
	uint64_t said_ns; /* progress.c: when its standstill was last reported to the master */
	uint64_t bytes;   /* bytes of the operand */
	uint32_t tx_link;
	/* A speculative start: it may be rolled back, and other hosts may use its seq for another
	 * operation. */
	bool spec;
	bool cancelled;
	/* feedback.c: */
	bool quantized;
	struct residual *residual; /* the residual that is added to the operand; or NULL */
	struct feedback *feedback; /* struct with the next residual; or NULL */
	struct op_output output;
	UT_hash_handle hh;
	struct eng_peer *peers; /* in ring order; behind `members` */
	uint32_t n_members;
	struct loc_member members[];
};

/* A job: the work of this host for one attempt of a synchronization. */
struct sync {
	uint64_t seq;
	uint32_t group;
	uint64_t revision;     /* elected */
	struct wm_digest keys; /* elected */
	struct run *run;
	bool started;  /* the shared-state engine has started it */
	bool finished; /* the shared-state engine has ended it */
	bool done;     /* the core has received AGT_EV_SYNC_DONE */
	bool failed;   /* the shared-state engine has reported STE_FAILED */
	bool over;     /* nothing is expected to move */
	struct progress progress;
	uint32_t n_members;
	struct sync_member {
		uint32_t id; /* id of the communicator */
		/* Referenced. The job uses both until the member is dropped. NULL: the process was
		 * gone at the start. */
		struct loc_comm *comm;
		struct loc_manifest *manifest;
		uint32_t index;   /* its index in the engine's job; STE_NO_MEMBER: none */
		uint64_t offered; /* the revision of its candidate */
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

/* ---- quant.c ---- */

/* Returns the formats of an operation's quantization. 0, or CC_ERR_INVAL if there is no such mode.
 */
int op_quant_get(const struct wm_op_params *p, struct eng_quant *ret);

/* ---- feedback.c ---- */

/* Takes the residuals of an operation if its tag has error feedback: the last residual, and memory
 * for the next one, until op_feedback_give_back. Drops residuals of earlier memberships of the
 * group. Returns WIRE_SUCCESS, or the code of the shortage with a sentence in text[WL_TEXT_MAX]. */
uint32_t op_feedback_take(
	struct xfer *x, const struct agt_xfer *t, struct eng_xfer_spec *spec, char *text);
/* The operation has succeeded on all hosts: its residual replaces the last residual of the tag. If
 * the operation was quantized without error feedback, the last residual is dropped. */
void op_feedback_keep(struct xfer *x);
/* No thread uses the residuals of the operation any longer. */
void op_feedback_give_back(struct xfer *x);
void op_feedback_comm_closed(struct ops *o, uint32_t comm);
void op_feedback_drop_all(struct run *r);

/* ---- pieces.c ---- */

/* Returns the bytes of an encoded operand. */
uint64_t op_pieces_size(const struct eng_xfer_spec *s);
/* Returns the buffer `acc` of the functions below, or NULL if there is no memory. */
void *op_pieces_buffer(struct ops *o);
/* Encodes the operand of this host into `wire`. */
void op_pieces_encode(
	const struct eng_xfer_spec *s, void *acc, const uint8_t *operand, uint8_t *wire);
/* Reduces the encoded operands of all hosts to s->area: the pieces that lie in [from, to) of each
 * operand. Returns the end of the last piece. `from` is the end of an earlier piece, or 0. */
uint64_t op_pieces_reduce(const struct eng_xfer_spec *s, void *acc, const void *const *wires,
	uint64_t from, uint64_t to);

/* ---- xfer.c ---- */

void op_xfer_start(struct run *r, const struct agt_xfer *t);
/* Discards the data of this operation that other hosts send. */
void op_xfer_skip(struct run *r, uint64_t seq);
void op_xfer_cancel(struct run *r, uint64_t seq);
/* Discards a speculative start. */
void op_xfer_rollback(struct run *r, uint64_t seq);
void op_xfer_free(struct run *r, uint64_t seq);
/* The algorithm has finished the transfer. */
void op_xfer_done(struct xfer *x, uint64_t tx_bytes, uint64_t rx_bytes);
void op_xfer_event(struct run *r, const struct eng_event *ev);
/* Does any transfer use the outbound link with this number? */
bool op_xfers_use_link(const struct run *r, uint32_t link);
/* Cancels all transfers, waits at most a second until the engine's threads no longer use them, and
 * frees them. Returns false if the engine still uses their memory. */
bool op_xfers_halt(struct run *r);

/* ---- algos.c ---- */

/* Ends with NULL. The first algorithm that can do an operation is used. */
extern const struct eng_algo *const op_algos[];

/* ---- eager.c ---- */

extern const struct eng_algo op_eager;
/* More local operands may have been copied: continues all eager operations. */
void op_eager_fed(struct ops *o);
/* Checks whether the operand that `d` announces can be for `x`. Returns NULL or an objection.
 * *ret_grave: the operand is wrong even if the other host uses this seq for another operation. */
const char *op_eager_objection(
	const struct xfer *x, const struct wlk_data *d, const struct cc_id *from, bool *ret_grave);
/* Returns the memory for the operand of the host at this position, valid until `x` is over. */
uint8_t *op_eager_dst(const struct xfer *x, uint32_t pos);
/* The first `bytes` bytes of this operand have arrived. */
void op_eager_got(const struct xfer *x, uint32_t pos, uint32_t bytes);
/* The operand that `d` announced has arrived completely. */
void op_eager_arrived(struct xfer *x, const struct wlk_data *d);
/* An operation (eager or not) was started, or will never start: streams that wait for it go on. */
void op_eager_started(struct run *r, uint64_t seq);
/* The operation may begin on another host first. Its operands from other hosts are kept until the
 * operation starts here, or until op_eager_forget. Of `t` only seq, hosts, pos, prev, route and
 * agents are set. */
void op_eager_expect(struct run *r, const struct agt_xfer *t);
void op_eager_forget(struct run *r, uint64_t seq);
void op_eager_forget_all(struct run *r);
/* Checks whether the unexpected operand that `d` announces can be kept. Returns NULL or an
 * objection: the operand comes from a wrong host, or has arrived already. */
const char *op_eager_unexpected_objection(
	struct run *r, const struct wlk_data *d, const struct cc_id *from);
/* Can an operand of this many bytes on the network belong to an eager operation of `hosts` hosts?
 */
bool op_eager_is_possible(uint64_t bytes, uint32_t hosts);
/* Returns the memory for the unexpected operand that `d` announces, or NULL if it is not kept. */
uint8_t *op_eager_unexpected_dst(struct run *r, const struct wlk_data *d);
/* The first `bytes` bytes of this operand have arrived. */
void op_eager_unexpected_got(struct run *r, const struct wlk_data *d, uint32_t bytes);

/* ---- eager_in.c ---- */

/* Functions of net_run_ops. */
void *op_eager_in_open(void *run, struct net_in_link *l, const struct cc_id *peer, int fd);
void op_eager_in_close(void *stream);
/* Streams of the run may have waited for an operation that has started: continues them. */
void op_eager_ins_look(struct run *r);

/* ---- progress.c ---- */

/* The operation has made progress, or has ended. */
void op_progress_moved(struct xfer *x, uint64_t now);
void op_progress_sync_moved(struct sync *x, uint64_t now);
/* Returns for how many ns the job has stood still, and writes the reason to waits[WM_TEXT_MAX]. 0
 * and "" while the job moves, or when the job is over. */
uint64_t op_progress_sync(
	const struct sync *x, const struct ste_progress *p, uint64_t now, char *waits);
void op_progress_tick(struct ops *o, uint64_t now);

/* ---- sync.c ---- */

/* Creates the run's shared-state engine if the run has none. 0 or CC_ERR_*. */
int op_sync_engine(struct run *r);
void op_sync_start(struct run *r, const struct agt_sync *t);
void op_sync_drop(struct run *r, uint64_t seq, uint32_t comm);
void op_sync_cancel(struct run *r, uint64_t seq);
void op_sync_free(struct run *r, uint64_t seq);
struct sync *op_sync_find(const struct run *r, uint64_t seq); /* NULL: no such job */
/* Returns a region of another peer from which the peer `c` may copy, or NULL: both peers have the
 * same user and are members of one job, and the other peer is a holder. */
struct loc_region *op_sync_shown(struct ops *o, const struct loc_comm *c, uint64_t region);
/* Ends the shared-state engine and frees its jobs. After that no thread uses their memory. */
void op_syncs_halt(struct run *r);

/* ---- diff_report.c ---- */

/* Makes the difference report of a job and logs the peers that the job has repaired. To be called
 * after the job's STE_CANCELLED and before its members learn of its end. */
void op_diff_take(const struct sync *x);
void op_diff_forget(struct ops *o, uint32_t comm);
void op_diff_free(struct ops *o);

#endif
