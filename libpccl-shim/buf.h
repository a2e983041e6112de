/* SPDX-License-Identifier: MIT
 *
 * Memory of the application: operands, results and tensors are read and written here only. Memory
 * that the CPU can access is the first kind of it; HACKING.md says how to add another one.
 *
 * A buffer is a value and owns nothing. Its memory is the application's, which leaves it alone
 * until the call or operation that names it is over. Any thread may work on it: the caller's, the
 * copier's, those that hash; several at a time on different bytes. Copying does not fail: an
 * address that is not the application's ends the process, as if the application had used it.
 */
#ifndef PCCL_SHIM_BUF_H
#define PCCL_SHIM_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/hsh_run.h"
#include "libpccl-shim/error.h"

/* A kind of memory. Constant. */
struct pccl_buf_kind {
	pcclDeviceType_t device; /* of tensors that lie in it */
	/* Is this address in memory of this kind? Asked once for each buffer of each operation. Not
	 * of host memory, which is all that no other kind owns. */
	bool (*owns)(const void *at);
	/* n bytes from this kind of memory to host memory. Returns `to`, as memcpy does. */
	void *(*copy_in)(void *to, const void *from, size_t n);
	/* n bytes from host memory to this kind, complete for all threads when it returns. whole:
	 * size of the result that they are part of, or 0. */
	void (*copy_out)(void *to, const void *from, size_t n, size_t whole);
	/* Exchanges n bytes with host memory. NULL: by copies. */
	void (*swap)(uint8_t *at, uint8_t *host, size_t n);
	/* The hash of a leaf, as leaf makes it of host memory. */
	uint64_t (*leaf)(hsh_leaf_fn *leaf, const void *at, size_t n, uint64_t index);
	/* As hsh_tensors. NULL: leaf by leaf. */
	void (*hash)(
		hsh_leaf_fn *leaf, struct hsh_tensor_work *tensors, size_t n, unsigned threads);
};

/* The kinds besides host memory, in the order in which they are asked whether they own an address.
 * KIND(cuda) says that there is a pccl_buf_cuda. */
#ifndef PCCL_BUF_KINDS
#define PCCL_BUF_KINDS(KIND)
#endif
#define PCCL_BUF_DECLARE(name) extern const struct pccl_buf_kind pccl_buf_##name;
PCCL_BUF_KINDS(PCCL_BUF_DECLARE)
PCCL_BUF_DECLARE(host)

struct pccl_buf {
	const struct pccl_buf_kind *kind;
	uint8_t *at;
};

#define PCCL_BUF_ASK(name)                                                                         \
	if (b.kind == &pccl_buf_host && pccl_buf_##name.owns(at))                                  \
		b.kind = &pccl_buf_##name;

/* The buffer at this address; NULL is one of no bytes. Where host memory is the only kind, nobody
 * is asked. */
static inline struct pccl_buf pccl_buf_of(const void *at)
{
	struct pccl_buf b = {.kind = &pccl_buf_host, .at = (uint8_t *)(uintptr_t)at};

	PCCL_BUF_KINDS(PCCL_BUF_ASK)
	return b;
}

/* The kind of tensors on this device. NULL: there is none in this library. */
const struct pccl_buf_kind *pccl_buf_of_device(pcclDeviceType_t device);

/* n bytes of the buffer, from off on, to host memory. */
static inline void pccl_buf_copy_in(const struct pccl_buf *b, uint64_t off, void *to, size_t n)
{
	b->kind->copy_in(to, b->at + off, n);
}

/* n bytes of host memory to the buffer. whole: as above. */
static inline void pccl_buf_copy_out(
	const struct pccl_buf *b, uint64_t off, const void *from, size_t n, size_t whole)
{
	b->kind->copy_out(b->at + off, from, n, whole);
}

/* Exchanges n bytes of the buffer with host memory that lies apart. */
void pccl_buf_swap(const struct pccl_buf *b, uint64_t off, uint8_t *host, size_t n);
/* The hash of the leaf with this index, which is at off. */
uint64_t pccl_buf_leaf(
	const struct pccl_buf *b, uint64_t off, size_t n, hsh_leaf_fn *leaf, uint64_t index);
/* As hsh_tensors, of tensors that all lie in memory of this kind. */
void pccl_buf_hash(const struct pccl_buf_kind *kind, hsh_leaf_fn *leaf,
	struct hsh_tensor_work *tensors, size_t n, unsigned threads);

#endif
