/* SPDX-License-Identifier: MIT
 *
 * A synchronization of shared state: state_args.c looks at what the application gives,
 * state_manifest.c hashes it and writes the manifest (proto/shm_state.h), sync.c does the rest.
 *
 * All of it is the main thread's, within the one call that bears no operations, so nothing here is
 * locked. The manifest's region is the attachment's, kept from call to call, like the tables here.
 */
#ifndef PCCL_SHIM_STATE_H
#define PCCL_SHIM_STATE_H

#include "kernels/hsh_run.h"
#include "libpccl-shim/attach.h"
#include "libpccl-shim/buf.h"
#include "proto/shm_queue.h"

/* One tensor of the application, checked. */
struct pccl_tensor {
	const char *name;     /* the application's */
	struct pccl_buf data; /* likewise; at may be NULL if it is empty */
	uint64_t count, bytes;
	uint32_t index; /* in infos */
	uint16_t name_len, dtype;
	bool may_differ;
	struct pccl_registered *reg; /* a use of the memory that it lies in, or NULL */
	uint64_t region, region_off; /* with reg */
};

/* What is kept between the synchronizations of a communicator. */
struct pccl_state {
	struct pccl_tensor *tensors;  /* sorted by name */
	struct hsh_tensor_work *work; /* as many: of those that are compared */
	size_t n, cap;
	uint64_t bytes, names_len, n_leaves; /* of all */
	uint64_t window_off;                 /* of the last manifest */
	hsh_leaf_fn *leaf;                   /* by which it was hashed */
	uint64_t content[2];                 /* digest of what was offered */
	/* A synchronization has failed and left torn state in the tensors. Until one succeeds, or
	 * the application says by another revision that it has other contents, and has
	 * (torn.h). It does not by sending only: it may do so because the peer that did has died
	 * in the middle. */
	bool torn;
	uint64_t torn_revision; /* that was offered then */
	bool synced;            /* a synchronization has succeeded */
};

/* Checks and sorts the tensors. The sentence of an error names the tensor, the field and the limit.
 */
pcclResult_t pccl_state_read(struct pccl_state *st, const pcclSharedState_t *shared_state);

/* Hashes the tensors, writes the manifest into a->state, and fills what the submission says of it:
 * all but revision and strategy. Takes a use of the registered memory that tensors lie in. */
pcclResult_t pccl_state_manifest(
	struct pccl_state *st, struct pccl_attachment *a, struct shm_sqe_sync *ret);
/* After it, with the same a: the digest of what the tensors hold now. The manifest is worth nothing
 * then. False: no memory. */
bool pccl_state_digest(struct pccl_state *st, struct pccl_attachment *a, uint64_t ret[2]);
/* Ends the uses of registered memory. */
void pccl_state_put(struct pccl_state *st);

void pccl_state_free(struct pccl_state *st); /* NULL is fine */

#endif
