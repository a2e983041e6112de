/* SPDX-License-Identifier: MIT
 *
 * `simplehash` on a GPU: one kernel, which hashes leaves of many tensors in one launch. The values
 * are those of hsh_leaf (kernels/hsh.h). Hosts and kernels include this header.
 *
 * The host computes the hash of a tensor from its leaf hashes (hsh_tensor). A tensor of 1 GiB has
 * 128 KiB of leaf hashes, so this takes less time than a second launch.
 *
 * To hash on a device:
 *
 *     1. Fill a struct gpu_hash_args. A call with more than GPU_HASH_RANGES ranges needs several
 *        launches.
 *     2. Launch GPU_HASH_KERNEL from the module pccl_gpu_fatbin with gpu_hash_grid() blocks of
 *        GPU_HASH_THREADS threads and GPU_HASH_SHARED bytes of shared memory. Its only parameter is
 *        the struct.
 *     3. When the stream is done, read gpu_hash_args.leaves[0] to [n_leaves - 1].
 *
 * The kernel reads the bytes of the ranges and no others. It writes the leaf hashes and needs no
 * other memory. `leaves` may be memory of the device, or memory of the host that is registered with
 * cuMemHostRegister, at its device address. The second is simpler: each leaf of 64 KiB writes only
 * 8 bytes.
 */
#ifndef KERNELS_CUDA_GPU_HASH_H
#define KERNELS_CUDA_GPU_HASH_H

#include <stddef.h>
#include <stdint.h>

#define GPU_HASH_KERNEL  "pccl_gpu_hash_leaves"
#define GPU_HASH_THREADS 256
/* The keys, and for each block of a leaf the sums of all lanes. */
#define GPU_HASH_SHARED ((336 + 32 * 32) * 8)
/* The ranges of one launch. The parameters of a kernel have 4 KiB at most. */
#define GPU_HASH_RANGES 100
/* Blocks for each multiprocessor: enough to hide the latency of memory. */
#define GPU_HASH_RESIDENT 8

/* Leaves of one tensor that follow each other. All but the last one of the tensor have HSH_LEAF
 * bytes. */
struct gpu_hash_range {
	uint64_t data;  /* address of the first leaf on the device, with any alignment */
	uint64_t bytes; /* of these leaves; not 0 */
	uint64_t index; /* number of the first leaf in its tensor: its seed */
	uint64_t start; /* number of leaves in all ranges before this one: where the hash of the
			   first leaf goes in `leaves` */
};

struct gpu_hash_args {
	uint64_t leaves;   /* address of the results: uint64_t[n_leaves] */
	uint64_t n_leaves; /* in all ranges */
	uint32_t n_ranges; /* 1 to GPU_HASH_RANGES */
	uint32_t unused;
	struct gpu_hash_range range[GPU_HASH_RANGES];
};

/* The machine code for all GPUs, and PTX for later ones: an image for cuModuleLoadData. Only builds
 * with --with-cuda have it. */
extern const unsigned char pccl_gpu_fatbin[];

/*
 * Adds leaves to the arguments, which start as zeros. `bytes` may be 0, then nothing is added.
 * Returns the number of leaves, whose hashes will be at leaves[n_leaves before the call].
 * The caller ensures that there are fewer than GPU_HASH_RANGES ranges.
 */
static inline uint64_t gpu_hash_add(
	struct gpu_hash_args *args, uint64_t data, uint64_t bytes, uint64_t index)
{
	uint64_t n = bytes / 65536 + (bytes % 65536 > 0);
	struct gpu_hash_range *r = &args->range[args->n_ranges];

	if (n == 0)
		return 0;
	r->data = data;
	r->bytes = bytes;
	r->index = index;
	r->start = args->n_leaves;
	args->n_ranges++;
	args->n_leaves += n;
	return n;
}

/* Returns the number of blocks for a launch on a device with this number of multiprocessors
 * (CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT). Each block hashes one leaf after the other. Any other
 * number from 1 gives the same hashes. */
static inline unsigned gpu_hash_grid(uint64_t n_leaves, unsigned multiprocessors)
{
	uint64_t most = (uint64_t)multiprocessors * GPU_HASH_RESIDENT;

	return (unsigned)(n_leaves < most ? n_leaves : most);
}

#endif
