/* SPDX-License-Identifier: MIT
 *
 * The runs of the agent. Each run has a connection to its master, the engines that move its data,
 * and its operations and synchronizations. This folder finds memory for them and reports their end
 * to the core. The agent has one struct ops, which the loop thread uses.
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

/* Handles the calls of `loc` (struct loc_ops). Serves shared state on its port. */
struct ops *op_new(struct base *b, struct loc *loc, struct net *net);
void op_free(struct ops *o); /* accepts NULL */
void op_tick(struct ops *o, uint64_t now);
/* Halts all operations. If an operation cannot be halted, the process ends. */
void op_halt(struct ops *o);
/* Are no operations, probes or measurements in progress? */
bool op_is_quiet(const struct ops *o);

struct op_stats {
	uint32_t runs, xfers, syncs;
	struct net_run_stats links; /* the links of all runs */
};
void op_get_stats(const struct ops *o, struct op_stats *ret);

/* ---- runs ---- */

struct run *op_run(struct ops *o, uint32_t id); /* NULL: no such run */
/* Returns the master's address, as the core gave it to op_run_open. */
const struct cc_addr *op_run_master(const struct run *r);
/* Returns the number of the run's present connection to its master. Events of a connection with a
 * lower number are outdated. */
uint32_t op_run_attempt(struct ops *o, uint32_t id);
void op_run_open(struct ops *o, uint32_t id, const struct cc_addr *addr);
/* Closes the connection to the master. The run goes on without it. */
void op_run_drop(struct ops *o, uint32_t id);
void op_run_send(struct ops *o, uint32_t id, const struct wm_msg *m);
void op_run_close(struct ops *o, uint32_t id);
void op_run_ready(struct ops *o, uint32_t id, const struct cc_id *run_id);
/* Carries out an action of the core for a run: links, probes, measurements, operations,
 * synchronizations. */
void op_run_carry_out(struct ops *o, const struct agt_action *a);

/* ---- for pcclctl ---- */

struct op_progress {
	struct eng_progress eng;
	uint64_t standstill_ns;  /* time since the last progress */
	char waits[WM_TEXT_MAX]; /* "waits for data from b for 3.1 s; ..."; "" while it moves */
};
/* Returns false if no such operation is in progress. */
bool op_get_progress(const struct run *r, uint64_t seq, uint64_t now, struct op_progress *ret);

/* A job of shared state. */
struct op_sync_view {
	enum ste_phase phase;
	const char *state; /* static: "starts", "compares", "copies", "serves", "failed" */
	/* Bytes that differ, as far as known, over all receivers of this host; the part of these
	 * bytes that is already written. */
	uint64_t bytes, done;
	uint64_t rate; /* bytes per second, recently; 0: nothing moves; STE_UNMEASURED */
	/* The time left at that rate. OP_LEFT_UNKNOWN: nothing moves, or some differences are still
	 * unknown. */
	uint64_t left_ns;
	uint64_t net_rx_bytes, net_tx_bytes; /* on sockets, with headers */
	/* Bytes read from the members' tensors for receivers, and written into the members'
	 * tensors. */
	uint64_t tx_bytes, rx_bytes;
	uint32_t holders, receivers, failed; /* members */
	/* Other agents that are sources: all, those with open streams, those that are lost. */
	uint32_t sources, sources_up, sources_lost;
	uint64_t standstill_ns;  /* time since the last progress; 0: nothing is expected to move */
	char waits[WM_TEXT_MAX]; /* "waits for data from b for 3.1 s"; "" while it moves */
};
#define OP_LEFT_UNKNOWN UINT64_MAX
/* Returns false if this host has no such job, or no longer has it. */
bool op_sync_get_view(const struct run *r, uint64_t seq, uint64_t now, struct op_sync_view *ret);
struct op_source_view {
	char host[WM_NAME_MAX];
	bool holds, up, lost, not_begun;
	uint64_t bytes;         /* payload that it has sent */
	char text[WM_TEXT_MAX]; /* if `lost`: the reason */
};
/* Returns false if there is no such job, or if it has no source `i`. */
bool op_sync_get_source(const struct run *r, uint64_t seq, uint32_t i, struct op_source_view *ret);
/* Returns false if there is no such job, or if the communicator is not a member of it. */
bool op_sync_get_member(
	const struct run *r, uint64_t seq, uint32_t comm, struct ste_member_view *ret);
/* Is this job in progress on this host? */
bool op_sync_goes_on(const struct run *r, uint64_t seq);
/* Makes a difference report of a job that is in progress. It has the differences that are known so
 * far, without keys and hashes. The caller owns the report. Returns NULL if no member's manifest
 * can be read. */
struct diff_report *op_diff_now(const struct run *r, uint64_t seq);
/* Returns the difference report of the communicator's last job, or NULL. */
const struct diff_report *op_diff_of(const struct ops *o, uint32_t comm);
/* Returns the difference report of the last job of this group on this host, or NULL. */
const struct diff_report *op_diff_last(const struct ops *o, uint32_t run, uint32_t group);

#endif
