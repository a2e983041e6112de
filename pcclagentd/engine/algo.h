/* SPDX-License-Identifier: MIT
 *
 * What an all-reduce algorithm is: one way to do this host's part of an operation. An operation is
 * done by the first algorithm in the agent's table (ops/algos.c) that can do it. HACKING.md says
 * how to add one.
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
	struct eng *eng; /* of the run */
	uint64_t seq;
	void *owner; /* struct xfer of ops, which is told of the end */
	void *own;   /* the algorithm's */
};

/* In eng_algo.outputs. */
#define ENG_OUTPUT(mode) (1u << (mode))

struct eng_algo {
	const char *name;
	/* ENG_OUTPUT of each enum shm_result_mode that it can work with. AREA is one of them. */
	uint32_t outputs;
	/* spec: without area, flags and direct. The answer must be the same on all hosts: it
	 * follows from what hosts agree on (elements, type, operator, plan). Only for operands in
	 * windows it may differ, because without an algorithm the call fails and is repeated. */
	bool (*can)(const struct eng_xfer_spec *spec);
	/* Memory in the spec stays until release. The spec and its members are copied. 0 or
	 * CC_ERR_*. When the result is there, and everything was sent, the end follows:
	 * ENG_XFER_DONE or op_xfer_done, perhaps before this returns. */
	int (*start)(struct eng_work *w, const struct eng_xfer_spec *spec);
	/* False: nothing is known. */
	bool (*progress)(const struct eng_work *w, struct eng_progress *ret);
	/* Whatever the progress. True: ENG_XFER_CANCELLED follows when no thread uses the memory
	 * any more. False: none does. */
	bool (*cancel)(struct eng_work *w);
	/* Forgets it. No thread uses the memory. */
	void (*release)(struct eng_work *w);
};

/* Partial sums go around the ring of hosts, then results do. */
extern const struct eng_algo eng_ring;
/* All peers are on this host. */
extern const struct eng_algo eng_on_host;

#endif
