/* SPDX-License-Identifier: MIT
 *
 * CUDA inside the library: contexts, what calls keep in them, and sentences about errors. Only
 * buf_cuda.c and cuda_*.c include this header, in builds with --with-cuda.
 *
 * The library uses contexts of the application and creates none, with one exception: it retains the
 * primary context of a device whose memory belongs to no context and is not that of the calling
 * thread's context. In each context the library has two streams of its own, one for each direction
 * of copies. Any thread may call all functions. The calling thread's current context is the same
 * before and after each call.
 *
 * A context in which a function has failed is forgotten: the next call begins with new streams. If
 * the error is permanent, as most errors of a context are, that call fails, too.
 */
#ifndef PCCL_SHIM_CUDA_H
#define PCCL_SHIM_CUDA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "kernels/cuda/driver.h"
#include "libpccl-shim/buf.h"

/* The size of the buffers in host memory that a use has. */
#define PCCL_CUDA_BOUNCE ((size_t)256 * 1024)

extern const struct pccl_buf_kind pccl_buf_cuda;

/* A context. The lock of cuda_context.c guards `refs`, `next`, `idle` and `n_idle`. */
struct pccl_cuda_context {
	const struct gpu_driver *gpu;
	CUcontext ctx;
	unsigned long long id; /* distinguishes it from an earlier context at the same address */
	int device;            /* ordinal */
	CUstream in, out;
	uint32_t refs; /* uses, and the list of contexts */
	struct pccl_cuda_context *next;
	struct pccl_cuda_use *idle; /* uses that no call has, linked by base.next */
	uint32_t n_idle;
	_Atomic bool failed; /* forgotten */
	_Atomic bool gone;   /* destroyed by the application: no function is called for it */

	pthread_mutex_t hash_lock; /* guards the fields below */
	bool hash_tried;
	CUmodule module;
	CUfunction kernel; /* NULL if there is none */
	CUdeviceptr leaves;
	unsigned multiprocessors;
};

/* The resources of a call in a context. One thread copies in, another one copies out. */
struct pccl_cuda_use {
	struct pccl_buf_use base;
	struct pccl_cuda_context *context;
	CUevent order;                /* the work that the application had queued before the call */
	bool ordered_in, ordered_out; /* the streams wait for `order` */
	CUevent lanes[PCCL_BUF_LANES + 1]; /* copies in; the last one is for copy_in */
	CUevent out;
	/* Exchanges whose old contents are still in the bounce buffers. */
	struct pccl_cuda_swap {
		uint8_t *host;
		size_t n;
		CUevent done;
	} swaps[PCCL_BUF_LANES];
	uint32_t swaps_begun, swaps_over; /* numbers; n uses swaps[n % PCCL_BUF_LANES] */
	bool lost;                        /* the old contents of an exchange are lost */
	bool hashed;                      /* tensors of the call were hashed before */
	uint8_t *bounce;                  /* PCCL_BUF_LANES buffers, or NULL */
	bool pinned;                      /* bounce is registered */
};

/* Makes the context current. The calling thread leaves it with pccl_cuda_leave. */
CUresult pccl_cuda_enter(const struct pccl_cuda_context *c);
void pccl_cuda_leave(const struct pccl_cuda_context *c);

/* Gets the use of this call in this context, or makes one. `ctx` belongs to this device. If the
 * call has none there yet, notes the work that the application has queued so far. `kind`: that of
 * the buffers. All uses of a call are of this kind. */
pcclResult_t pccl_cuda_use_get(const struct gpu_driver *gpu, CUcontext ctx, int device,
	const struct pccl_buf_kind *kind, struct pccl_buf_call *call, struct pccl_cuda_use **ret);
void pccl_cuda_use_put(struct pccl_cuda_use *use);
/* Lets a stream wait for the work of the application. `done`: it does so already. In the context.
 */
CUresult pccl_cuda_keep_order(const struct pccl_cuda_use *u, CUstream stream, bool *done);
/* Waits for an event. In the context. */
CUresult pccl_cuda_await(const struct gpu_driver *gpu, CUevent event);
/* Waits until a stream of the library has nothing to do, because a function has failed and nobody
 * waits for the work any more. */
void pccl_cuda_settle(const struct pccl_cuda_context *c, CUstream stream);
/* Gives the use bounce buffers, if it has none. */
pcclResult_t pccl_cuda_use_bounce(struct pccl_cuda_use *use);
/* Forgets the context, because a function has failed there with this error. */
void pccl_cuda_spoil(struct pccl_cuda_context *c, CUresult error);

/* Sets the sentence "FUNCTION failed with ERROR: what", and returns pcclInternalError. */
__attribute__((format(printf, 4, 5))) pcclResult_t pccl_cuda_fail(
	const struct gpu_driver *gpu, const char *function, CUresult error, const char *fmt, ...);

/* Returns the primary context of a device, and keeps it until the process ends. */
CUresult pccl_cuda_primary(const struct gpu_driver *gpu, int device, CUcontext *ret);
/* Registers host memory for all contexts. */
void pccl_cuda_pin(struct pccl_cuda_context *c, struct pccl_map *m);

static inline CUdeviceptr pccl_cuda_pointer(const void *at)
{
	return (CUdeviceptr)(uintptr_t)at;
}

/* The answer of the driver about an address. */
struct pccl_cuda_known {
	bool on_device; /* the memory of a device, or managed memory */
	unsigned managed;
	CUcontext ctx; /* NULL if the memory belongs to none */
	int device;
	CUdeviceptr start;
	size_t size;
};

/* Asks the driver for on_device and managed, or for all that can be known. An address that the
 * driver does not know is one of the host. A driver that is too old knows only the attributes of
 * on_device and managed, which come first. */
CUresult pccl_cuda_ask(
	gpu_driver_ask *driver, const void *at, bool all, struct pccl_cuda_known *ret);
/* Checks that all bytes of the buffer are memory of a device. */
pcclResult_t pccl_cuda_examine(const struct gpu_driver *gpu, const struct pccl_buf *b, size_t bytes,
	struct pccl_cuda_known *ret);
/* Checks this again. The buffer must be open. */
pcclResult_t pccl_cuda_check(const struct pccl_buf *b, size_t bytes);

/* Hashes tensors as pccl_buf_hash does. */
pcclResult_t pccl_cuda_hash(const struct pccl_buf *first, hsh_leaf_fn *leaf,
	struct hsh_tensor_work *tensors, size_t n, unsigned threads);

/* Resets everything in a forked child. */
void pccl_cuda_after_fork(void);

#endif
