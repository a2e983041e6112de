/* SPDX-License-Identifier: MIT */
#include "tests/cuda/emulate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/cuda/gpu.h"
#include "tests/cuda/switch.h"

#define STACK                                                                                      \
	((size_t)65536) /* bytes for each thread of a block, of which the first page is a guard */
#define PAGE ((size_t)4096)
#define MOST 1024 /* threads of a block */

/* A thread of the block that runs. */
struct thread {
	struct switch_point at;
	uint64_t value; /* of a shuffle: what the thread gives, and then what it gets */
	uint32_t mask;
	bool ended;
};

/* A multiprocessor: runs one block. It belongs to one launch. */
struct machine {
	struct machine *next; /* in the pool */
	unsigned char *stacks;
	struct switch_point scheduler;
	const struct emu_kernel *kernel;
	void **args;
	unsigned char *shared;
	size_t shared_bytes;
	const char *fault;
	uint64_t random; /* 0: fixed order */
	uint32_t block, blocks, n, current, ended, at_barrier;
	uint32_t at_shuffle[MOST / GPU_WARP]; /* for each warp */
	uint32_t ready[MOST];                 /* a ring of threads that can go on */
	uint32_t first, n_ready;
	struct thread thread[MOST];
};

/* Machines without a launch. They are kept, because new stacks cost time. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct machine *pool;

static _Atomic uint64_t order, launches;
/* The machine on which this thread of the process runs a kernel. */
static _Thread_local struct machine *mine;

void emu_order(uint64_t seed)
{
	atomic_store(&order, seed);
}

/* Returns a random number that is not 0, and makes it the next state. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x;
}

static _Noreturn void die(const char *sentence)
{
	fprintf(stderr, "emulation of kernels: %s\n", sentence);
	abort();
}

/* ---- machines ---- */

static struct machine *new_machine(void)
{
	struct machine *m = calloc(1, sizeof(*m));

	if (!m)
		die("no memory");
	m->stacks = mmap(NULL, MOST * STACK, PROT_READ | PROT_WRITE,
		/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (m->stacks == MAP_FAILED)
		die("no memory for stacks");
	for (size_t i = 0; i < MOST; i++)
		if (mprotect(m->stacks + i * STACK, PAGE, PROT_NONE) < 0)
			die("no memory for the guards of stacks");
	return m;
}

static struct machine *take_machine(void)
{
	struct machine *m;

	pthread_mutex_lock(&pool_lock);
	m = pool;
	if (m)
		pool = m->next;
	pthread_mutex_unlock(&pool_lock);
	return m ? m : new_machine();
}

static void give_machine(struct machine *m)
{
	pthread_mutex_lock(&pool_lock);
	m->next = pool;
	pool = m;
	pthread_mutex_unlock(&pool_lock);
}

/* ---- what kernels call ---- */

static struct machine *machine(void)
{
	if (!mine)
		die("a function for kernels was called outside of a kernel");
	return mine;
}

uint32_t gpu_thread(void)
{
	return machine()->current;
}

uint32_t gpu_block(void)
{
	return machine()->block;
}

uint32_t gpu_blocks(void)
{
	return machine()->blocks;
}

void *gpu_shared(void)
{
	return machine()->shared;
}

void gpu_fault(const char *sentence)
{
	struct machine *m = machine();

	m->fault = sentence;
	switch_end(&m->thread[m->current].at, &m->scheduler);
}

static void make_ready(struct machine *m, uint32_t thread)
{
	m->ready[(m->first + m->n_ready++) % MOST] = thread;
}

/* Lets the scheduler run other threads, until one of them makes this one ready. */
static void wait_for_others(struct machine *m)
{
	switch_to(&m->thread[m->current].at, &m->scheduler);
}

void gpu_barrier(void)
{
	struct machine *m = machine();

	if (++m->at_barrier == m->n) {
		m->at_barrier = 0;
		for (uint32_t i = 0; i < m->n; i++)
			make_ready(m, i);
	}
	wait_for_others(m);
}

/* Does a shuffle when all threads of a warp have given their values. */
static void shuffle(struct machine *m, uint32_t warp)
{
	struct thread *t = &m->thread[warp * GPU_WARP];
	uint64_t given[GPU_WARP];

	for (uint32_t i = 0; i < GPU_WARP; i++) {
		given[i] = t[i].value;
		if (t[i].mask != t[0].mask)
			m->fault = "the threads of a warp call different shuffles";
	}
	for (uint32_t i = 0; i < GPU_WARP; i++) {
		t[i].value = given[(i ^ t[i].mask) % GPU_WARP];
		make_ready(m, warp * GPU_WARP + i);
	}
	m->at_shuffle[warp] = 0;
}

uint64_t gpu_shuffle_xor(uint64_t value, uint32_t mask)
{
	struct machine *m = machine();
	struct thread *t = &m->thread[m->current];
	uint32_t warp = m->current / GPU_WARP;

	t->value = value;
	t->mask = mask;
	if (++m->at_shuffle[warp] == GPU_WARP)
		shuffle(m, warp);
	wait_for_others(m);
	return t->value;
}

/* ---- the scheduler ---- */

/* The first function of each thread. */
static void run_thread(void)
{
	struct machine *m = mine;
	struct thread *t = &m->thread[m->current];

	m->kernel->run(m->args);
	/* The kernel may have been left and entered many times, but `mine` and `t` are the same. */
	t->ended = true;
	m->ended++;
	switch_end(&t->at, &m->scheduler);
}

static uint32_t take_ready(struct machine *m)
{
	uint32_t *first = &m->ready[m->first], thread;

	if (m->random) {
		uint32_t skip = (uint32_t)(next_random(&m->random) % m->n_ready);
		uint32_t *other = &m->ready[(m->first + skip) % MOST];

		thread = *other;
		*other = *first;
	} else {
		thread = *first;
	}
	m->first = (m->first + 1) % MOST;
	m->n_ready--;
	return thread;
}

static void run_block(struct machine *m, uint32_t block)
{
	static _Atomic uint64_t noise = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t x = atomic_fetch_add(&noise, 2);

	for (size_t i = 0; i < m->shared_bytes; i++)
		m->shared[i] = (unsigned char)(next_random(&x) >> 32);
	m->block = block;
	m->first = m->n_ready = m->ended = m->at_barrier = 0;
	memset(m->at_shuffle, 0, sizeof(m->at_shuffle));
	for (uint32_t i = 0; i < m->n; i++) {
		m->thread[i].ended = false;
		switch_prepare(
			&m->thread[i].at, m->stacks + i * STACK + PAGE, STACK - PAGE, run_thread);
		make_ready(m, i);
	}
	while (m->n_ready > 0 && !m->fault) {
		m->current = take_ready(m);
		switch_to(&m->scheduler, &m->thread[m->current].at);
	}
	if (!m->fault && m->ended < m->n)
		m->fault = "some threads wait at a barrier or shuffle that others never reach";
	for (uint32_t i = 0; i < m->n; i++)
		switch_discard(&m->thread[i].at);
}

static void run_blocks(struct machine *m, unsigned grid)
{
	uint32_t *blocks = malloc(grid * sizeof(*blocks));

	if (!blocks)
		die("no memory");
	for (uint32_t i = 0; i < grid; i++) {
		uint32_t at = m->random ? (uint32_t)(next_random(&m->random) % (i + 1)) : i;

		blocks[i] = i;
		blocks[i] = blocks[at];
		blocks[at] = i;
	}
	for (uint32_t i = 0; i < grid && !m->fault; i++)
		run_block(m, blocks[i]);
	free(blocks);
}

const char *emu_launch(
	const struct emu_kernel *kernel, unsigned grid, unsigned block, size_t shared, void **args)
{
	uint64_t seed = atomic_load(&order);
	struct machine *m;
	const char *fault;

	if (mine)
		return "a kernel launches a kernel";
	if (grid == 0 || block == 0 || block > MOST)
		return "a launch needs 1 block or more, of 1 to 1,024 threads";
	m = take_machine();
	m->kernel = kernel;
	m->args = args;
	m->fault = NULL;
	m->blocks = grid;
	m->n = block;
	m->random = 0;
	if (seed)
		m->random =
			(seed + atomic_fetch_add(&launches, 1)) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	m->shared_bytes = shared;
	m->shared = malloc(shared ? shared : 1);
	if (!m->shared)
		die("no memory");
	mine = m;
	switch_begin(&m->scheduler);
	run_blocks(m, grid);
	mine = NULL;
	fault = m->fault;
	free(m->shared);
	give_machine(m);
	return fault;
}
