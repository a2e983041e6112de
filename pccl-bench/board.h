/* SPDX-License-Identifier: MIT
 *
 * The memory that the coordinator shares with the peers that it has forked. Peers wait here for
 * each other and for the coordinator, and store their measurements.
 *
 * Peers wait without a bound. The coordinator ends the peers when there is no progress, and they
 * die with the coordinator.
 */
#ifndef BCH_BOARD_H
#define BCH_BOARD_H

#include <stdatomic.h>
#include <stdint.h>

#include "pccl-bench/api.h"
#include "pccl-bench/data.h"

/* The slot of one peer. The peer writes it; the coordinator reads it while the peer waits in
 * bch_board_phase. */
struct bch_proc_slot {
	_Atomic(const char *) doing; /* a literal; changes at any time */
	char why[BCH_WHY_SIZE];      /* the last call that failed, or the reason for the end */
	uint64_t cpu_ns;             /* CPU time of the measured calls */
	uint64_t wrong, failed;
	double error;    /* the largest relative L2 error of a quantized result; 0: not checked */
	uint64_t *times; /* ns of each iteration, or BCH_FAILED */
};

struct bch_board {
	_Atomic uint32_t turn, in_barrier; /* barrier of the peers */
	_Atomic uint32_t gate, at_gate;    /* barrier of the phases */
	uint32_t n_peers, n_times;
	int phase_fd; /* eventfd: all peers have finished a phase */
	size_t size;  /* bytes of the whole board */
	struct bch_proc_slot slots[BCH_PEERS_MAX];
	uint64_t times[]; /* n_peers * n_times */
};

/* Returns NULL with errno set on failure. */
struct bch_board *bch_board_new(uint32_t n_peers, uint32_t n_times);
void bch_board_free(struct bch_board *b);

/* Called by a peer: waits until all peers have called it. */
void bch_board_barrier(struct bch_board *b);
/* Called by a peer at the end of a phase: waits until the coordinator opens the next phase. */
void bch_board_phase(struct bch_board *b);
/* Wakes the coordinator, as the end of a phase does. */
void bch_board_tell(struct bch_board *b);
/* Called by the coordinator: opens the next phase. */
void bch_board_open(struct bch_board *b);
/* Called by the coordinator: returns a number that changes whenever the peers make progress. */
uint64_t bch_board_progress(const struct bch_board *b);

#endif
