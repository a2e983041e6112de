/* SPDX-License-Identifier: MIT
 *
 * Runs: the connection to each master, the engines that move a run's data, and the operations and
 * synchronizations under way, for which this finds memory, and whose end it tells the core. One
 * struct ops for the agent, loop thread.
 */
#ifndef OPS_H
#define OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/core/agt.h"
#include "pcclagentd/engine/engine.h"
#include "pcclagentd/local/local.h"
#include "pcclagentd/net/net.h"
#include "pcclagentd/ops/diff_report.h"
#include "pcclagentd/state/state.h"

struct base;
struct ops;
struct run;

/* Takes over what loc asks and tells, and serves shared state and benchmarks on their ports. */
struct ops *op_new(struct base *b, struct loc *loc, struct net *net);
void op_free(struct ops *o); /* NULL is fine */
void op_tick(struct ops *o, uint64_t now);
/* No operation goes on when this returns; if one cannot be halted, the process ends. */
void op_halt(struct ops *o);
/* Nothing is under way: neither operations nor probes. */
bool op_is_quiet(const struct ops *o);

struct op_stats {
	uint32_t runs, xfers, syncs;
	struct net_run_stats links; /* of all runs */
};
void op_get_stats(const struct ops *o, struct op_stats *ret);

/* ---- runs ---- */

struct run *op_run(struct ops *o, uint32_t id);           /* NULL: there is none */
const struct cc_addr *op_run_master(const struct run *r); /* where it is said to be */
/* Counts connections of the run to its master: what came of an earlier one is old news. */
uint32_t op_run_attempt(struct ops *o, uint32_t id);
void op_run_open(struct ops *o, uint32_t id, const struct cc_addr *addr);
/* Closes the connection; the run goes on without. */
void op_run_drop(struct ops *o, uint32_t id);
void op_run_send(struct ops *o, uint32_t id, const struct wm_msg *m);
void op_run_close(struct ops *o, uint32_t id);
void op_run_ready(struct ops *o, uint32_t id, const struct cc_id *run_id);
/* What the core orders of a run: links, probes, operations, synchronizations. */
void op_run_carry_out(struct ops *o, const struct agt_action *a);

/* ---- for pcclctl ---- */

struct op_progress {
	struct eng_progress eng;
	uint64_t standstill_ns;  /* since the last progress */
	char waits[WM_TEXT_MAX]; /* "waits for data from b for 3.1 s; ..."; "" while it moves */
};
/* False: no such operation is under way. */
bool op_get_progress(const struct run *r, uint64_t seq, uint64_t now, struct op_progress *ret);

/* A job of shared state. */
struct op_sync_view {
	enum ste_phase phase;
	const char *state;    /* static: "starts", "compares", "copies", "serves", "failed" */
	uint64_t bytes, done; /* that differ, as far as is known, and of these written: over all
			       * receivers of this host */
	uint64_t rate;        /* bytes per second, recently; 0: nothing moves; STE_UNMEASURED */
	uint64_t left_ns;     /* at that rate; OP_LEFT_UNKNOWN: nothing moves, or not all that
			       * differs is known */
	uint64_t net_rx_bytes, net_tx_bytes;        /* on sockets, with headers */
	uint64_t tx_bytes, rx_bytes;                /* of the members' tensors, for and by others */
	uint32_t holders, receivers, failed;        /* members */
	uint32_t sources, sources_up, sources_lost; /* other agents: all, with streams, given up */
	uint64_t standstill_ns;  /* since the last progress; 0 when nothing is expected to move */
	char waits[WM_TEXT_MAX]; /* "waits for data from b for 3.1 s"; "" while it moves */
};
#define OP_LEFT_UNKNOWN UINT64_MAX
/* False: no such job here (any more). */
bool op_sync_get_view(const struct run *r, uint64_t seq, uint64_t now, struct op_sync_view *ret);
struct op_source_view {
	char host[WM_NAME_MAX];
	bool holds, up, lost, not_begun;
	uint64_t bytes;         /* payload that came from it */
	char text[WM_TEXT_MAX]; /* lost: why */
};
/* False: it has no source i. */
bool op_sync_get_source(const struct run *r, uint64_t seq, uint32_t i, struct op_source_view *ret);
/* False: there is no such job, or the communicator is no member of it (any more). */
bool op_sync_get_member(
	const struct run *r, uint64_t seq, uint32_t comm, struct ste_member_view *ret);
/* Is it under way here? */
bool op_sync_goes_on(const struct run *r, uint64_t seq);
/* Of a job that goes on, as far as it is known: without keys and hashes. The caller's; NULL:
 * nothing is. */
struct diff_report *op_diff_now(const struct run *r, uint64_t seq);
/* Of the last job that the communicator took part in; NULL: none. */
const struct diff_report *op_diff_of(const struct ops *o, uint32_t comm);
/* Of the last job of a group that peers here took part in; NULL: none. */
const struct diff_report *op_diff_last(const struct ops *o, uint32_t run, uint32_t group);

#endif
