/* SPDX-License-Identifier: MIT
 *
 * The common parts of the tests of shared state: a state of several tensors, and synchronizations
 * in which another thread plays the agent.
 */
#ifndef STATE_H
#define STATE_H

#include <pthread.h>

#include "tests/shim/fixture.h"

#define ST_POPULAR PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR
#define ST_RECEIVE PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY
#define ST_SEND    PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY

/* In the order of names, which the agent uses, too. */
enum { BIAS = 0, EMPTY, MINE, WIDE, WIDER, TENSORS };
/* infos[ORDER[i]] is tensor i. */
static const unsigned st_order[TENSORS] = {3, 0, 4, 2, 1};

struct st_state {
	pcclTensorInfo_t infos[TENSORS];
	uint8_t *data[TENSORS]; /* by name */
	uint64_t bytes[TENSORS];
	pcclSharedState_t shared;
};

static const char *const st_names[TENSORS] = {"bias", "empty", "mine", "wide", "wider"};

/* Fills the tensors with contents that follow from `seed`. */
static inline void st_fill(struct st_state *s, uint64_t seed)
{
	struct tl_rng rng = tl_rng_new(seed);

	for (unsigned i = 0; i < TENSORS; i++)
		for (uint64_t k = 0; k < s->bytes[i]; k++)
			s->data[i][k] = (uint8_t)tl_u64(&rng);
}

/* Initializes a state, which must not be moved afterwards. */
static inline void st_init(struct st_state *s, uint64_t seed)
{
	static const size_t counts[TENSORS] = {3, 0, 100, 100000, 300001};
	static const pcclDataType_t types[TENSORS] = {
		pcclDouble, pcclFloat, pcclInt16, pcclFloat, pcclUint8};
	static const uint64_t sizes[TENSORS] = {8, 4, 2, 4, 1};

	for (unsigned i = 0; i < TENSORS; i++) {
		s->bytes[i] = counts[i] * sizes[i];
		s->data[i] = s->bytes[i] ? malloc(s->bytes[i]) : NULL;
		s->infos[st_order[i]] = (pcclTensorInfo_t){.name = st_names[i],
			.data = s->data[i],
			.count = counts[i],
			.datatype = types[i],
			.allow_content_inequality = i == MINE};
	}
	st_fill(s, seed);
	s->shared = (pcclSharedState_t){.revision = 7, .count = TENSORS, .infos = s->infos};
}

static inline void st_free(struct st_state *s)
{
	for (unsigned i = 0; i < TENSORS; i++)
		free(s->data[i]);
}

static inline uint64_t st_bytes(const struct st_state *s)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < TENSORS; i++)
		n += s->bytes[i];
	return n;
}

/* The agent's part in one synchronization. */
typedef void st_script(struct fake_op *op, void *arg);

struct st_play {
	st_script *script;
	void *arg;
	pthread_t thread;
};

static inline void *st_run(void *arg)
{
	struct st_play *p = arg;
	struct fake_op op = fake_take(fx_agent);

	p->script(&op, p->arg);
	return NULL;
}

static inline pcclResult_t st_sync(pcclSharedState_t *shared,
	pcclSharedStateSyncStrategy_t strategy, pcclSharedStateSyncInfo_t *info, st_script *script,
	void *arg)
{
	struct st_play p = {.script = script, .arg = arg};
	pcclResult_t r;

	ck_assert_int_eq(pthread_create(&p.thread, NULL, st_run, &p), 0);
	r = pcclSynchronizeSharedState(fx_comm, shared, strategy, info);
	pthread_join(p.thread, NULL);
	return r;
}

/* A script in which all peers have equal state. */
static inline void st_equal(struct fake_op *op, void *arg)
{
	struct shm_state st = fake_manifest(op);

	(void)arg;
	shm_state_clear(&st);
	fake_sync_begin(op);
	fake_sync_end(op, 0, NULL, op->sqe.sync.revision, 0, 0);
}

#endif
