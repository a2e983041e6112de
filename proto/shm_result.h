/* SPDX-License-Identifier: MIT
 *
 * Checks the words of a slot that describe where a result lies, and converts them to the form that
 * the shim uses. Pure.
 */
#ifndef SHM_RESULT_H
#define SHM_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_plan.h"
#include "proto/shm_queue.h"

/* Fields of struct shm_slot. Each field was read only once. */
struct shm_result_words {
	uint32_t mode; /* not SHM_RESULT_NONE */
	uint32_t hosts, segment_max;
	uint64_t shares;
	uint64_t off, flags_off;
};

/* The operation of the shim, which the shim itself has checked. */
struct shm_result_limits {
	uint64_t count; /* elements */
	uint32_t esize; /* bytes of one element */
	bool staged, out_registered;
};

struct shm_result {
	/* AREA; UNDO or DIRECT if out_registered; STAGED if staged */
	enum shm_result_mode mode;
	struct cc_plan plan;
	/* offset in the region: of the result (AREA), or of the old contents (UNDO) */
	uint64_t off;
	uint64_t flags_off; /* offset of plan.n_segs flags */
};

/* Checks the words. Returns 0, or CC_ERR_PROTO with one word in *why that names the wrong field;
 * then *ret is unchanged. The caller must still check the offsets with shm_result_fits. */
int shm_result_get(const struct shm_result_words *w, const struct shm_result_limits *lim,
	struct shm_result *ret, const char **why);
/* Checks that the result and the flags lie in a region of region_size bytes. Returns 0 or
 * CC_ERR_PROTO. */
int shm_result_fits(const struct shm_result *r, uint64_t region_size, const char **why);

#endif
