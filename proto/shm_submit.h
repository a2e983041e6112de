/* SPDX-License-Identifier: MIT
 *
 * Checks a submission entry that a shim wrote, and converts it to the form that the agent uses.
 * Pure.
 */
#ifndef SHM_SUBMIT_H
#define SHM_SUBMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/shm_queue.h"
#include "proto/wire_quant.h"
#include "proto/wire_sync.h"

/* The facts against which an entry is checked. */
struct shm_submit_limits {
	uint64_t busy; /* bit i: slot i is in use */
	/* bytes of the region that in_region names (or sync.region, which lies at the same offset);
	 * 0: no such region */
	uint64_t in_size;
	/* bytes of the region out_region; only used with SHM_SQE_OUT_REGISTERED */
	uint64_t out_size;
};

/* A submission whose limits have all been checked. */
struct shm_submission {
	uint32_t slot;                   /* < SHM_SLOTS, not in use */
	uint32_t dtype, op;              /* pcclDataType_t, pcclRedOp_t */
	struct wire_quant_numbers quant; /* in the form of wire_quant_put */
	uint64_t tag;
	uint64_t count;      /* elements, >= 1 */
	uint64_t bytes;      /* bytes of the operand, <= 2^48 */
	bool in_registered;  /* else staged, and shm_slot.in_done counts the copied bytes */
	bool out_registered; /* the result may go to out_off in the region out_region */
	bool out_disposable; /* out_registered, and the old contents may be lost */
	uint64_t in_off;     /* offset of the operand, or of its window, in the region in_region */
	uint64_t in_start;   /* <= in_second, between elements */
	uint64_t in_second;  /* <= bytes, between elements */
	uint32_t window;     /* size in segments if the operand is staged through a window, or 0 */
	uint64_t out_off;    /* bytes; 0 unless out_registered */
	uint64_t generation; /* generation of the group that the application knows; any number */
	bool by_main;        /* launched by the main thread; always true for a synchronization */
	/* the caller does nothing else until the end; always true for a synchronization */
	bool waited;
	bool is_sync; /* of the fields above only slot, generation, by_main and waited are set */
	bool synced;  /* is_sync: an earlier synchronization of this communicator has succeeded */
	/* 0: the call takes part. Else it cannot, and it ends with this pcclResult_t for all peers;
	 * then only slot, tag, generation, is_sync, by_main and waited are set */
	uint32_t refused;
	/* set if is_sync. shm_state_get reads the manifest, which lies in the region sync.region of
	 * the entry */
	struct wm_sync_vote sync;
};

/*
 * Checks an entry. `e` must be a copy that nobody else can write to. Returns 0. Returns
 * CC_ERR_PROTO if the shim may not use the slot, so that even an answer is impossible. Returns
 * CC_ERR_INVAL if another field broke a limit. On failure *ret is unchanged, and `why` names the
 * field and its limit for the caller of the operation.
 */
int shm_submission_get(const struct shm_sqe *e, const struct shm_submit_limits *lim,
	struct shm_submission *ret, char why[SHM_TEXT]);

#endif
