/* SPDX-License-Identifier: MIT
 *
 * The command line. Pure: prints nothing.
 */
#ifndef BCH_OPTIONS_H
#define BCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <pccl.h>

#include "common/cc_addr.h"
#include "common/cc_options.h"
#include "pccl-bench/data.h"
#include "pccl-bench/modes.h"

#define BCH_HOSTS_MAX   64u
#define BCH_STREAMS_MAX 64u
#define BCH_ASYNC_MAX   64u /* operations in flight on one communicator */
#define BCH_COUNT_MAX   (UINT64_C(1) << 24)

enum bch_benchmark { BCH_ALLREDUCE, BCH_QUANT };

/* Where operands and results are. */
enum bch_memory { BCH_STAGED = 0, BCH_REGISTERED, BCH_CUDA };
extern const char *const bch_memories[];

struct bch_options {
	enum cc_options_todo todo;
	enum bch_benchmark benchmark;
	uint64_t begin, end, factor; /* bytes */
	uint32_t iterations, warm_ups;
	struct bch_kind kind;
	uint32_t peers, hosts; /* how many peers and hosts are started here; BCH_QUANT: simulated
				* hosts, 0 for each number of bch_quant_hosts */
	uint32_t world_size, first_rank;
	uint32_t streams, async; /* async 0: blocking calls */
	uint32_t algorithm;      /* index of bch_algorithms */
	uint32_t quantize;       /* enum bch_mode; BCH_ALLREDUCE has BCH_MODE_NONE as default */
	uint64_t count, seed;    /* BCH_QUANT: elements of an operand; seed of the operands */
	uint32_t timeout_s;
	uint32_t memory; /* enum bch_memory */
	bool in_place, disposable, check, json;
	bool optimize;         /* measure all sizes again after pcclOptimizeTopology */
	struct cc_addr master; /* family 0: a master is started */
	char *library;         /* NULL: the linked library */
	char *gradient;        /* file; NULL: no gradient */
};

#define BCH_COMPLAINT_SIZE CC_OPTIONS_SENTENCE

extern const struct cc_options bch_options_table;
/* The algorithms of ccoip-masterd; the first one is the default. */
#define BCH_ALGORITHM_AUTO 0u
#define BCH_ALGORITHM_RING 1u
extern const char *const bch_algorithms[];

/* Parses the command line. Returns 0, or CC_ERR_INVAL and a sentence that names the option and its
 * allowed values. If 0 is returned, `complaint` contains a warning or "". Not reentrant (getopt).
 */
int bch_options_parse(
	struct bch_options *ret, int argc, char **argv, char complaint[BCH_COMPLAINT_SIZE]);
void bch_options_clear(struct bch_options *o);

#endif
