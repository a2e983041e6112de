/* SPDX-License-Identifier: MIT */
#ifndef HSH_RUN_H
#define HSH_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/hsh.h"

/*
 * Hashing with threads, and with a library for CRC32C. The pure cores must not use these functions.
 * They depend only on libc, and any thread may call them.
 */

/* The largest number of threads of one call. */
#define HSH_MAX_THREADS 64

/* The work on one tensor. The caller owns it, and no other call may use it at the same time. */
struct hsh_tensor_work {
	const void *data;
	uint64_t bytes;
	uint64_t *leaves; /* output: hsh_leaf_count(bytes) hashes; NULL if there are none */
	uint64_t hash;    /* output: the hash of the tensor */
};

/*
 * Hashes n tensors, with `leaf` for their leaves. The calling thread and up to `threads` - 1 other
 * threads (0 counts as 1) do the work. The other threads exist only during the call and receive no
 * signals. If the system cannot start all these threads, the ones that it could start and the
 * calling thread do the whole work.
 */
void hsh_tensors(hsh_leaf_fn *leaf, struct hsh_tensor_work *tensors, size_t n, unsigned threads);

/*
 * Loads CRC32C (Castagnoli) from the library ISA-L, which is never unloaded. *ret_leaf gets the
 * leaf function of HSH_CRC32C. It returns the CRC in the lower 32 bits and ignores the index.
 * Returns false on failure; then `error` is a sentence with the reason, cut to error_size, and
 * *ret_leaf is unchanged.
 */
bool hsh_crc32c_load(hsh_leaf_fn **ret_leaf, char *error, size_t error_size);

/* Does the same as hsh_crc32c_load with another name of the library, for tests. */
bool hsh_crc32c_load_from(
	const char *library, hsh_leaf_fn **ret_leaf, char *error, size_t error_size);

#endif
