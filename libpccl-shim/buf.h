/* SPDX-License-Identifier: MIT
 *
 * Memory of the application. Only this file reads and writes operands, results and tensors. Host
 * memory, which the CPU can access, is the first kind of memory; HACKING.md explains how to add
 * another kind.
 *
 * A buffer is a value and owns nothing. Its memory belongs to the application, which does not touch
 * it until the call or operation that uses it is over. Any thread may work on a buffer, and several
 * threads (the caller, the copier, threads that hash) may work on different bytes at the same time.
 * Copying does not fail: an invalid address ends the process, as if the application had used it.
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
	pcclDeviceType_t device; /* the device of tensors in this memory */
	/* Is this address in memory of this kind? Called once for each buffer of each operation.
	 * Host memory has no such function: all memory that no other kind owns is host memory. */
	bool (*owns)(const void *at);
	/* Copies n bytes from this kind of memory to host memory. Returns `to`, as memcpy does. */
	void *(*copy_in)(void *to, const void *from, size_t n);
	/* Copies n bytes from host memory to this kind of memory. All threads see the bytes when
	 * the function returns. `whole` is the size of the result to which the bytes belong, or 0.
	 */
	void (*copy_out)(void *to, const void *from, size_t n, size_t whole);
	/* Exchanges n bytes with host memory. If NULL, the bytes are exchanged by copies. */
	void (*swap)(uint8_t *at, uint8_t *host, size_t n);
	/* Returns the hash of a leaf. The value is the one that `leaf` computes for host memory. */
	uint64_t (*leaf)(hsh_leaf_fn *leaf, const void *at, size_t n, uint64_t index);
	/* Hashes tensors as hsh_tensors does. If NULL, they are hashed leaf by leaf. */
	void (*hash)(
		hsh_leaf_fn *leaf, struct hsh_tensor_work *tensors, size_t n, unsigned threads);
};

/* The kinds of memory except host memory, in the order in which their `owns` is called. KIND(cuda)
 * requires a pccl_buf_cuda. */
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

/* Returns the buffer at this address. NULL is allowed for a buffer without bytes. If host memory is
 * the only kind, no `owns` is called. */
static inline struct pccl_buf pccl_buf_of(const void *at)
{
	struct pccl_buf b = {.kind = &pccl_buf_host, .at = (uint8_t *)(uintptr_t)at};

	PCCL_BUF_KINDS(PCCL_BUF_ASK)
	return b;
}

/* Returns the kind of memory of this device, or NULL if this library does not have it. */
const struct pccl_buf_kind *pccl_buf_of_device(pcclDeviceType_t device);

/* Copies n bytes of the buffer, from offset `off`, to host memory. */
static inline void pccl_buf_copy_in(const struct pccl_buf *b, uint64_t off, void *to, size_t n)
{
	b->kind->copy_in(to, b->at + off, n);
}

/* Copies n bytes of host memory to the buffer, at offset `off`. `whole`: see copy_out. */
static inline void pccl_buf_copy_out(
	const struct pccl_buf *b, uint64_t off, const void *from, size_t n, size_t whole)
{
	b->kind->copy_out(b->at + off, from, n, whole);
}

/* Exchanges n bytes of the buffer with host memory that does not overlap it. */
void pccl_buf_swap(const struct pccl_buf *b, uint64_t off, uint8_t *host, size_t n);
/* Returns the hash of the leaf with this index, which is at offset `off`. */
uint64_t pccl_buf_leaf(
	const struct pccl_buf *b, uint64_t off, size_t n, hsh_leaf_fn *leaf, uint64_t index);
/* Hashes tensors as hsh_tensors does. All the tensors lie in memory of this kind. */
void pccl_buf_hash(const struct pccl_buf_kind *kind, hsh_leaf_fn *leaf,
	struct hsh_tensor_work *tensors, size_t n, unsigned threads);

#endif
