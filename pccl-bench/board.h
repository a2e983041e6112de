/* SPDX-License-Identifier: MIT
 *
 * What the coordinator and the peers that it has forked share: where peers wait for each other and
 * for the coordinator, and where they leave what they have measured.
 *
 * Peers wait without a bound: the coordinator ends them when nothing moves, and they die with it.
 */
#ifndef BCH_BOARD_H
#define BCH_BOARD_H

#include <stdatomic.h>
#include <stdint.h>

#include "pccl-bench/api.h"
#include "pccl-bench/data.h"

/* Of one peer; written by it, read by the coordinator while the peer waits in bch_board_phase. */
struct bch_proc_slot {
	_Atomic(const char *) doing; /* a literal; at any time */
	char why[BCH_WHY_SIZE];      /* the last call that failed, or why it has ended */
	uint64_t cpu_ns;             /* of the calls that are timed */
	uint64_t wrong, failed;
	uint64_t *times; /* ns, of each iteration; BCH_FAILED */
};

struct bch_board {
	_Atomic uint32_t turn, in_barrier; /* among the peers */
	_Atomic uint32_t gate, at_gate;    /* phases */
	uint32_t n_peers, n_times;
	int phase_fd; /* eventfd: all peers have come to the end of a phase */
	size_t size;  /* of all this, bytes */
	struct bch_proc_slot slots[BCH_PEERS_MAX];
	uint64_t times[]; /* n_peers * n_times */
};

/* NULL: errno says why. */
struct bch_board *bch_board_new(uint32_t n_peers, uint32_t n_times);
void bch_board_free(struct bch_board *b);

/* A peer: until all have come here. */
void bch_board_barrier(struct bch_board *b);
/* A peer: the end of a phase; until the coordinator opens the next one. */
void bch_board_phase(struct bch_board *b);
/* Rouses the coordinator, as the end of a phase does. */
void bch_board_tell(struct bch_board *b);
/* The coordinator: opens the next one. */
void bch_board_open(struct bch_board *b);
/* The coordinator: changes whenever peers get ahead. */
uint64_t bch_board_progress(const struct bch_board *b);

#endif
