/* SPDX-License-Identifier: MIT
 *
 * A synchronization of shared state. state_args.c checks the arguments of the application,
 * state_manifest.c hashes the tensors and writes the manifest (proto/shm_state.h), sync.c does the
 * rest.
 *
 * Only the main thread uses all of this, inside a call that allows no other operations, so nothing
 * here is locked. The attachment owns the region of the manifest. The region and the tables here
 * are kept from call to call.
 */
#ifndef PCCL_SHIM_STATE_H
#define PCCL_SHIM_STATE_H

#include "kernels/hsh_run.h"
#include "libpccl-shim/attach.h"
#include "libpccl-shim/buf.h"
#include "proto/shm_queue.h"

/* One tensor of the application, checked. */
struct pccl_tensor {
	const char *name;     /* belongs to the application */
	struct pccl_buf data; /* belongs to the application; `at` may be NULL if the tensor is
			       * empty */
	uint64_t count, bytes;
	uint32_t index; /* the tensor's index in infos */
	uint16_t name_len, dtype;
	bool may_differ;
	struct pccl_registered *reg; /* the registered memory around the tensor, counted as used; or
				      * NULL */
	uint64_t region, region_off; /* valid if reg is not NULL */
};

/* The data of a communicator that is kept between synchronizations. */
struct pccl_state {
	struct pccl_tensor *tensors;  /* sorted by name */
	struct pccl_buf_call bufs;    /* that of the tensors, during a call */
	struct hsh_tensor_work *work; /* entries for the tensors that are compared; has room for
				       * `cap` entries */
	size_t n, cap;
	uint64_t bytes, names_len, n_leaves; /* sums over all tensors */
	uint64_t window_off;                 /* the offset of the window in the last manifest */
	hsh_leaf_fn *leaf;                   /* the hash function of the last manifest */
	uint64_t content[2];                 /* digest of the contents in the last manifest */
	/* A synchronization has failed and left torn state in the tensors. Cleared when a
	 * synchronization succeeds, or when the application uses another revision. In the second
	 * case the contents must be different, too (torn.h). The send-only strategy does not clear
	 * it: an application may choose this strategy only because the previous sender died in the
	 * middle of a synchronization. */
	bool torn;
	uint64_t torn_revision; /* revision of the synchronization that failed */
	bool synced;            /* a synchronization has succeeded */
};

/* Checks and sorts the tensors, and opens their buffers, which the caller closes in any case. The
 * sentence of an error names the tensor, the field and the limit. */
pcclResult_t pccl_state_read(struct pccl_state *st, const pcclSharedState_t *shared_state);

/* Hashes the tensors, writes the manifest into a->state, and fills the fields of the submission
 * except revision and strategy. Counts a use of the registered memory in which tensors lie. */
pcclResult_t pccl_state_manifest(
	struct pccl_state *st, struct pccl_attachment *a, struct shm_sqe_sync *ret);
/* Computes the digest of the present contents of the tensors. To be called after
 * pccl_state_manifest with the same attachment; the manifest is invalid afterwards. Returns false
 * if there is no memory, or if tensors cannot be read. */
bool pccl_state_digest(struct pccl_state *st, struct pccl_attachment *a, uint64_t ret[2]);
/* Ends the uses of registered memory. */
void pccl_state_put(struct pccl_state *st);

void pccl_state_free(struct pccl_state *st); /* NULL is fine */

#endif
