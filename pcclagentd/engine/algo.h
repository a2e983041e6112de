/* SPDX-License-Identifier: MIT
 *
 * The interface of an all-reduce algorithm. An algorithm is one way to do this host's part of an
 * operation. The agent uses the first algorithm in its table (ops/algos.c) that can do an
 * operation. HACKING.md describes how to add an algorithm.
 *
 * All functions are called by the loop thread.
 */
#ifndef ALGO_H
#define ALGO_H

#include <stdbool.h>
#include <stdint.h>

struct eng;
struct eng_progress;
struct eng_xfer_spec;

/* A transfer, as its algorithm sees it. */
struct eng_work {
	struct eng *eng; /* the engine of the run */
	uint64_t seq;
	void *owner; /* struct xfer of ops/, for op_xfer_done */
	void *own;   /* owned by the algorithm */
};

/* The bit of a result mode in eng_algo.outputs. */
#define ENG_OUTPUT(mode) (1u << (mode))

struct eng_algo {
	const char *name;
	/* ENG_OUTPUT of each enum shm_result_mode that the algorithm supports. It must support
	 * SHM_RESULT_AREA. */
	uint32_t outputs;
	/* Can the algorithm do this operation? `spec` has no area, flags and direct yet. The answer
	 * must be equal on all hosts, so it depends only on values that are equal on all hosts
	 * (elements, type, operator, quantization, plan, route). The answer may also depend on the
	 * use of windows, although hosts may differ in it: on a host without an algorithm for the
	 * call, the call fails with "call again". */
	bool (*can)(const struct eng_xfer_spec *spec);
	/* Starts the operation. The memory in `spec` stays valid until `release`. The spec and its
	 * members are copied. 0 or CC_ERR_*. When the result is complete and everything was sent,
	 * the algorithm reports the end by ENG_XFER_DONE or op_xfer_done, perhaps before this
	 * returns. */
	int (*start)(struct eng_work *w, const struct eng_xfer_spec *spec);
	/* Returns false if the progress is unknown. */
	bool (*progress)(const struct eng_work *w, struct eng_progress *ret);
	/* Cancels the operation at any progress. Returns true if ENG_XFER_CANCELLED follows when no
	 * thread uses the memory any longer, and false if no thread uses it now. */
	bool (*cancel)(struct eng_work *w);
	/* Forgets the operation. No thread uses its memory when this is called. */
	void (*release)(struct eng_work *w);
};

/* Partial sums and results go from host to host along the route of the operation
 * (common/cc_route.h). */
extern const struct eng_algo eng_routed;
/* The reduction on one host, for groups whose peers are all on this host. */
extern const struct eng_algo eng_on_host;

#endif
