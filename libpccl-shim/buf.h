/* SPDX-License-Identifier: MIT
 *
 * Memory of the application. Only this file reads and writes operands, results and tensors. Host
 * memory, which the CPU can access, is the first kind of memory; HACKING.md explains how to add
 * another kind.
 *
 * A buffer is a value and owns nothing. Its memory belongs to the application, which does not touch
 * it until the call or operation that uses it is over. Any thread may work on a buffer. One thread
 * at a time copies from a buffer and one other thread copies to it; threads that hash copy from it.
 *
 * An invalid address in host memory ends the process, as if the application had used it. With other
 * kinds of memory, functions may fail at any time. They set the sentence and return
 * pcclInternalError. Then the bytes that they copied are not valid. A function that has failed may
 * be called again.
 */
#ifndef PCCL_SHIM_BUF_H
#define PCCL_SHIM_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/hsh_run.h"
#include "libpccl-shim/error.h"
#include "libpccl-shim/map.h"

struct pccl_buf;

/* The largest number of copies from one buffer that are under way at the same time. */
#define PCCL_BUF_LANES 4u

/* The data of a kind for the buffers of one call or operation. A kind has its own struct, which
 * begins with this one. */
struct pccl_buf_use {
	const struct pccl_buf_kind *kind;
	struct pccl_buf_use *next;
};

/* The call or operation to which buffers belong. Zeros, except for the stream, before the first
 * buffer is opened. */
struct pccl_buf_call {
	void *stream; /* the stream of pcclSetStream, or NULL */
	struct pccl_buf_use *uses;
};

enum pccl_buf_owned {
	PCCL_BUF_NOT_OWNED = 0,
	PCCL_BUF_OWNED,
	PCCL_BUF_SHARED, /* owned, but the CPU can access the memory, too */
};

/* A kind of memory. Constant. Functions that may be NULL are marked. */
struct pccl_buf_kind {
	pcclDeviceType_t device; /* the device of tensors in this memory */
	/* Operands are copied in pieces of at most this size. */
	size_t piece;
	/* Copies that are under way at the same time; 1 if start_in is NULL. */
	unsigned lanes;
	/* NULL, or: can this process have memory of this kind at all? Called once for each
	 * operation. If not, `owns` is not called. */
	bool (*is_used)(void);
	/* Is this address in memory of this kind? Called once for each buffer of each operation.
	 * Host memory has no such function: all memory that no other kind owns is host memory. */
	enum pccl_buf_owned (*owns)(const void *at);
	/* NULL, or checks the buffer, and orders all copies after the work that the application has
	 * queued so far for its device. `name` is the name of the buffer in sentences. The buffer
	 * may be used until the kind's `close`. Fails with pcclInvalidArgument if the memory is not
	 * of this kind or is too small. */
	pcclResult_t (*open)(
		struct pccl_buf *b, size_t bytes, const char *name, struct pccl_buf_call *call);
	void (*close)(struct pccl_buf_use *use); /* NULL if there is no open */
	/* Copies n bytes from the buffer to host memory. */
	pcclResult_t (*copy_in)(const struct pccl_buf *b, uint64_t off, void *to, size_t n);
	/* NULL, or begins to copy as copy_in does. The copy is over when finish_in has returned for
	 * the same lane, which is below `lanes`, also if finish_in fails. A copy that could not
	 * begin is not finished. */
	pcclResult_t (*start_in)(
		const struct pccl_buf *b, uint64_t off, void *to, size_t n, unsigned lane);
	pcclResult_t (*finish_in)(const struct pccl_buf *b, unsigned lane);
	/* Begins to copy n bytes from host memory to the buffer. `whole` is the size of the result
	 * to which the bytes belong, or 0. The copies are made in the order of the calls. If it
	 * fails, the bytes of the buffer have not changed. */
	pcclResult_t (*start_out)(
		const struct pccl_buf *b, uint64_t off, const void *from, size_t n, size_t whole);
	/* As start_out, and the host memory gets the old contents. If NULL, the bytes are exchanged
	 * by copies. If it fails, the bytes of the buffer have not changed, or finish_out fails,
	 * too. */
	pcclResult_t (*swap)(const struct pccl_buf *b, uint64_t off, uint8_t *host, size_t n);
	/* NULL if start_out and swap do not return before the copy is over. Or waits until all
	 * these copies are over, and all threads and devices see the bytes. They are over, too, if
	 * it fails. */
	pcclResult_t (*finish_out)(const struct pccl_buf *b);
	/* Computes the hash of a leaf. The value is the one that `leaf` computes for host memory.
	 */
	pcclResult_t (*leaf)(const struct pccl_buf *b, uint64_t off, size_t n, hsh_leaf_fn *leaf,
		uint64_t index, uint64_t *ret);
	/* Hashes tensors as hsh_tensors does. `first` is the buffer of the first tensor; the others
	 * have the same use. If NULL, the tensors are hashed leaf by leaf. */
	pcclResult_t (*hash)(const struct pccl_buf *first, hsh_leaf_fn *leaf,
		struct hsh_tensor_work *tensors, size_t n, unsigned threads);
	/* NULL, or makes copies between the buffer and this mapping of host memory faster, until
	 * the mapping is dropped. Has no effect the second time. */
	void (*pin)(const struct pccl_buf *b, struct pccl_map *m);
	void (*after_fork)(void); /* NULL, or resets everything in a forked child */
};

/* The kinds of memory except host memory, in the order in which their `owns` is called. KIND(cuda)
 * requires a pccl_buf_cuda. */
#if defined(PCCL_BUF_KINDS)
#elif defined(HAVE_CUDA)
#define PCCL_BUF_KINDS(KIND) KIND(cuda)
#else
#define PCCL_BUF_KINDS(KIND)
#endif
#define PCCL_BUF_DECLARE(name) extern const struct pccl_buf_kind pccl_buf_##name;
PCCL_BUF_KINDS(PCCL_BUF_DECLARE)
PCCL_BUF_DECLARE(host)

struct pccl_buf {
	const struct pccl_buf_kind *kind;
	uint8_t *at;
	struct pccl_buf_use *use; /* NULL if the kind has no `open` */
	const char *name;         /* in sentences */
};

/* Returns a buffer in host memory. */
static inline struct pccl_buf pccl_buf_host_at(const void *at)
{
	return (struct pccl_buf){.kind = &pccl_buf_host, .at = (uint8_t *)(uintptr_t)at};
}

static inline void pccl_buf_ask(
	const struct pccl_buf_kind *kind, struct pccl_buf *send, struct pccl_buf *recv)
{
	if (kind->is_used && !kind->is_used())
		return;
	if (send->kind == &pccl_buf_host && kind->owns(send->at) != PCCL_BUF_NOT_OWNED)
		send->kind = kind;
	if (recv->at == send->at)
		recv->kind = send->kind;
	else if (recv->kind == &pccl_buf_host && kind->owns(recv->at) != PCCL_BUF_NOT_OWNED)
		recv->kind = kind;
}

#define PCCL_BUF_ASK(kind_name) pccl_buf_ask(&pccl_buf_##kind_name, send, recv);

/* Finds the kinds of memory of the two buffers of an operation, which pccl_buf_host_at made. If
 * host memory is the only kind, no kind is asked. */
static inline void pccl_buf_find(struct pccl_buf *send, struct pccl_buf *recv)
{
	(void)send;
	(void)recv;
	PCCL_BUF_KINDS(PCCL_BUF_ASK)
}

/* Returns the kind of memory of this device, or NULL if this library does not have it. */
const struct pccl_buf_kind *pccl_buf_of_device(pcclDeviceType_t device);

/* Resets everything in a forked child. */
void pccl_buf_after_fork(void);

/* Can the CPU access this address, as far as the kinds of memory know? */
bool pccl_buf_is_host(const void *at);

/* Prepares a buffer of this size for its use (see `open`). */
static inline pcclResult_t pccl_buf_open(
	struct pccl_buf *b, size_t bytes, const char *name, struct pccl_buf_call *call)
{
	return b->kind->open ? b->kind->open(b, bytes, name, call) : pcclSuccess;
}

/* Ends the use of all buffers of this call. All copies must be over. */
void pccl_buf_close(struct pccl_buf_call *call);

/* Copies n bytes of the buffer, from offset `off`, to host memory. */
static inline pcclResult_t pccl_buf_copy_in(
	const struct pccl_buf *b, uint64_t off, void *to, size_t n)
{
	return b->kind->copy_in(b, off, to, n);
}

/* Begins to copy n bytes of host memory to the buffer, at offset `off`. `whole`: see start_out. */
static inline pcclResult_t pccl_buf_start_out(
	const struct pccl_buf *b, uint64_t off, const void *from, size_t n, size_t whole)
{
	return b->kind->start_out(b, off, from, n, whole);
}

/* Waits until all copies to the buffer are over. */
static inline pcclResult_t pccl_buf_finish_out(const struct pccl_buf *b)
{
	return b->kind->finish_out ? b->kind->finish_out(b) : pcclSuccess;
}

/* Copies n bytes of host memory to the buffer, as pccl_buf_start_out and pccl_buf_finish_out. */
pcclResult_t pccl_buf_copy_out(
	const struct pccl_buf *b, uint64_t off, const void *from, size_t n, size_t whole);
/* Begins to copy as pccl_buf_copy_in does; see start_in. */
pcclResult_t pccl_buf_start_in(
	const struct pccl_buf *b, uint64_t off, void *to, size_t n, unsigned lane);
pcclResult_t pccl_buf_finish_in(const struct pccl_buf *b, unsigned lane);
/* Exchanges n bytes of the buffer with host memory that does not overlap it. The exchange is over
 * when pccl_buf_finish_out has returned. */
pcclResult_t pccl_buf_swap(const struct pccl_buf *b, uint64_t off, uint8_t *host, size_t n);
/* Computes the hash of the leaf with this index, which is at offset `off`. */
pcclResult_t pccl_buf_leaf(const struct pccl_buf *b, uint64_t off, size_t n, hsh_leaf_fn *leaf,
	uint64_t index, uint64_t *ret);
/* Hashes tensors as hsh_tensors does. `first` is the buffer of the first one. All the tensors lie
 * in memory of this kind and have the same use. */
pcclResult_t pccl_buf_hash(const struct pccl_buf *first, hsh_leaf_fn *leaf,
	struct hsh_tensor_work *tensors, size_t n, unsigned threads);
/* The buffer will be copied from or to this mapping. */
static inline void pccl_buf_pin(const struct pccl_buf *b, struct pccl_map *m)
{
	if (b->kind->pin)
		b->kind->pin(b, m);
}

#endif
