/* SPDX-License-Identifier: MIT
 *
 * One of the processes that reduce.
 */
#ifndef BCH_PEER_H
#define BCH_PEER_H

#include "pccl-bench/board.h"
#include "pccl-bench/options.h"

/* Joins the run of master and goes through all sizes. A phase ends when it is connected, and with
 * each size twice: when it is warm, and when all iterations are done. Returns the exit status of
 * the process; when it is not 0 the slot says why. */
int bch_peer_run(const struct bch_options *o, struct bch_board *b, uint32_t number,
	const struct cc_addr *master);

/* With another library: a process that is the master. Rouses the coordinator when it listens, and
 * returns when it is over. What goes wrong is told on standard error. */
int bch_master_run(const struct bch_options *o, struct bch_board *b, const struct cc_addr *listen);

#endif
