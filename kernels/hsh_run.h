/* SPDX-License-Identifier: MIT */
#ifndef HSH_RUN_H
#define HSH_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/hsh.h"

/*
 * What hashing needs of the system: threads, and the library that knows CRC32C. Not for the pure
 * cores. Depends on libc alone. May be called from any thread.
 */

/* Threads that one call uses at most. */
#define HSH_MAX_THREADS 64

/* The caller's; no other call may use it meanwhile. */
struct hsh_tensor_work {
	const void *data;
	uint64_t bytes;
	uint64_t *leaves; /* hsh_leaf_count(bytes) of them, to be filled in; NULL if none */
	uint64_t hash;    /* of the tensor, to be filled in */
};

/*
 * Hashes n tensors, their leaves by the given function. The calling thread works too, and up to
 * threads - 1 others (0 counts as 1) that exist only during the call, and take no signals; what the
 * system will not start is done by those that there are.
 */
void hsh_tensors(hsh_leaf_fn *leaf, struct hsh_tensor_work *tensors, size_t n, unsigned threads);

/*
 * CRC32C (Castagnoli) comes from ISA-L, which is looked for only here, when it was asked for, and
 * never unloaded. Gives the leaf function of HSH_CRC32C: the CRC in the lower 32 bits, the index
 * counts for nothing. False if it cannot be had: error is then a sentence that says why, cut to
 * error_size, and *ret_leaf is untouched.
 */
bool hsh_crc32c_load(hsh_leaf_fn **ret_leaf, char *error, size_t error_size);

/* As hsh_crc32c_load, with another name of the library: for tests. */
bool hsh_crc32c_load_from(
	const char *library, hsh_leaf_fn **ret_leaf, char *error, size_t error_size);

#endif
