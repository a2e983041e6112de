/* SPDX-License-Identifier: MIT */
#include "pccl-bench/board.h"

#include <limits.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cc_futex.h"

struct bch_board *bch_board_new(uint32_t n_peers, uint32_t n_times)
{
	size_t size = sizeof(struct bch_board) + (size_t)n_peers * n_times * sizeof(uint64_t);
	struct bch_board *b;

	/* cppcheck-suppress invalidFunctionArg ; the mapping has no file */
	b = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (b == MAP_FAILED)
		return NULL;
	b->phase_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->phase_fd < 0) {
		munmap(b, size);
		return NULL;
	}
	b->n_peers = n_peers;
	b->n_times = n_times;
	b->size = size;
	for (uint32_t i = 0; i < n_peers; i++) {
		b->slots[i].times = b->times + (size_t)i * n_times;
		atomic_store(&b->slots[i].doing, "starting");
	}
	return b;
}

void bch_board_free(struct bch_board *b)
{
	close(b->phase_fd);
	munmap(b, b->size);
}

static void await_change(_Atomic uint32_t *word, uint32_t seen)
{
	while (atomic_load(word) == seen)
		cc_futex_wait(word, seen, UINT64_MAX);
}

void bch_board_barrier(struct bch_board *b)
{
	uint32_t turn = atomic_load(&b->turn);

	if (atomic_fetch_add(&b->in_barrier, 1) + 1 < b->n_peers) {
		await_change(&b->turn, turn);
		return;
	}
	atomic_store(&b->in_barrier, 0);
	atomic_fetch_add(&b->turn, 1);
	cc_futex_wake(&b->turn, INT_MAX);
}

void bch_board_tell(struct bch_board *b)
{
	uint64_t one = 1;

	(void)!write(b->phase_fd, &one, sizeof one);
}

void bch_board_phase(struct bch_board *b)
{
	uint32_t gate = atomic_load(&b->gate);

	if (atomic_fetch_add(&b->at_gate, 1) + 1 == b->n_peers) {
		atomic_store(&b->at_gate, 0);
		bch_board_tell(b);
	}
	await_change(&b->gate, gate);
}

void bch_board_open(struct bch_board *b)
{
	atomic_fetch_add(&b->gate, 1);
	cc_futex_wake(&b->gate, INT_MAX);
}

uint64_t bch_board_progress(const struct bch_board *b)
{
	return (uint64_t)atomic_load(&b->turn) << 32 | atomic_load(&b->gate) << 16 |
	       (atomic_load(&b->at_gate) & 0xffff);
}
