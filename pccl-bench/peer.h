/* SPDX-License-Identifier: MIT
 *
 * One of the processes that reduce.
 */
#ifndef BCH_PEER_H
#define BCH_PEER_H

#include "pccl-bench/board.h"
#include "pccl-bench/options.h"

/* Joins the run of the master and measures all sizes. The first phase ends when the peer is
 * connected. Each size has two phases: the warm-up and the iterations. Returns the exit status of
 * the process. If it is not 0, the slot contains the reason. */
int bch_peer_run(const struct bch_options *o, struct bch_board *b, uint32_t number,
	const struct cc_addr *master);

/* Runs the master of another library in this process. Wakes the coordinator when the master
 * listens, and returns when the master has ended. Prints errors on standard error. */
int bch_master_run(const struct bch_options *o, struct bch_board *b, const struct cc_addr *listen);

#endif
