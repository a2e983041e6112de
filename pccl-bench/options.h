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

#define BCH_HOSTS_MAX   64u
#define BCH_STREAMS_MAX 64u
#define BCH_ASYNC_MAX   64u /* operations in flight on one communicator */

struct bch_options {
	enum cc_options_todo todo;
	uint64_t begin, end, factor; /* bytes */
	uint32_t iterations, warm_ups;
	struct bch_kind kind;
	uint32_t peers, hosts; /* the number of each that is started here */
	uint32_t world_size, first_rank;
	uint32_t streams, async; /* async 0: blocking calls */
	uint32_t timeout_s;
	bool registered, in_place, disposable, check, json;
	struct cc_addr master; /* family 0: a master is started */
	char *library;         /* NULL: the linked library */
};

#define BCH_COMPLAINT_SIZE CC_OPTIONS_SENTENCE

extern const struct cc_options bch_options_table;

/* Parses the command line. Returns 0, or CC_ERR_INVAL and a sentence that names the option and its
 * allowed values. With 0 the complaint may be a warning, or "". Not reentrant (getopt). */
int bch_options_parse(
	struct bch_options *ret, int argc, char **argv, char complaint[BCH_COMPLAINT_SIZE]);
void bch_options_clear(struct bch_options *o);

#endif
