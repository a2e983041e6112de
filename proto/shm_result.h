/* SPDX-License-Identifier: MIT
 *
 * From the words of a slot that say where a result lies to what the shim works with. Pure.
 */
#ifndef SHM_RESULT_H
#define SHM_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_plan.h"
#include "proto/shm_queue.h"

/* Fields of struct shm_slot, each of them read once. */
struct shm_result_words {
	uint32_t mode; /* not SHM_RESULT_NONE */
	uint32_t hosts, segment_max;
	uint64_t off, flags_off;
};

/* The shim's own operation, which it has checked itself. */
struct shm_result_limits {
	uint64_t count; /* elements */
	uint32_t esize; /* bytes of one */
	bool staged, out_registered;
};

struct shm_result {
	enum shm_result_mode mode; /* AREA; UNDO or DIRECT when out_registered; STAGED when staged
				    */
	struct cc_plan plan;
	uint64_t
		off; /* of the result, or the old contents, in the region, if AREA or UNDO; bytes */
	uint64_t flags_off; /* of plan.n_segs flags */
};

/* 0, or CC_ERR_PROTO with *why = what is wrong in a word; then *ret is left alone. The offsets are
 * still to be held against the region. */
int shm_result_get(const struct shm_result_words *w, const struct shm_result_limits *lim,
	struct shm_result *ret, const char **why);
/* Does all lie in a region of this many bytes? 0 or CC_ERR_PROTO. */
int shm_result_fits(const struct shm_result *r, uint64_t region_size, const char **why);

#endif
