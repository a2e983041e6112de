/* SPDX-License-Identifier: MIT
 *
 * From a submission entry that a shim wrote to what the agent works with. Pure.
 */
#ifndef SHM_SUBMIT_H
#define SHM_SUBMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/shm_queue.h"
#include "proto/wire_sync.h"

/* What an entry is judged against besides itself. */
struct shm_submit_limits {
	uint64_t busy;     /* bit i: slot i is in use */
	uint64_t in_size;  /* of the region that in_region (or sync.region, which lies in the same
			    * place) names, bytes; 0: there is none */
	uint64_t out_size; /* likewise; only looked at with SHM_SQE_OUT_REGISTERED */
};

/* An entry in which every limit has been checked. */
struct shm_submission {
	uint32_t slot;      /* < SHM_SLOTS, not in use */
	uint32_t dtype, op; /* pcclDataType_t, pcclRedOp_t; not quantized */
	uint64_t tag;
	uint64_t count;      /* elements, >= 1 */
	uint64_t bytes;      /* of the operand, <= 2^48 */
	bool in_registered;  /* else staged: shm_slot.in_done says how much is there */
	bool out_registered; /* the result may go to out_off in the region out_region */
	bool out_disposable; /* likewise, and what is there need not be kept */
	uint64_t in_off;     /* bytes; the operand, or its window, lies in the region in_region */
	uint64_t in_start;   /* <= in_second, between elements */
	uint64_t in_second;  /* <= bytes, between elements */
	uint32_t window;     /* 0, or of an operand that is staged through one */
	uint64_t out_off;    /* likewise; 0 unless out_registered */
	uint64_t generation; /* of the group, that the application knows of; any number */
	bool by_main;        /* launched by the main thread, as a synchronization always is */
	bool waited;         /* its caller does nothing else until it ends; likewise */
	bool is_sync;        /* what is above is 0, but for slot, generation, by_main and waited */
	bool synced;         /* is_sync: one of this communicator's has succeeded */
	uint32_t refused;    /* a pcclResult_t: the call cannot take part, and ends with this for
			      * all; only slot, tag, generation, is_sync, by_main and
			      * waited count. 0: it takes part */
	struct wm_sync_vote sync; /* if is_sync. The manifest lies in the region sync.region of the
				   * entry; shm_state_get reads it */
};

/*
 * e is a copy that nobody else can write to. 0; CC_ERR_PROTO: the slot is not the shim's to use, so
 * the entry cannot even be answered; CC_ERR_INVAL: another field broke a limit. On failure *ret is
 * left alone and why says which field, and its limit, to whoever made the call.
 */
int shm_submission_get(const struct shm_sqe *e, const struct shm_submit_limits *lim,
	struct shm_submission *ret, char why[SHM_TEXT]);

#endif
