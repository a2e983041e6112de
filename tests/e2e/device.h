/* SPDX-License-Identifier: MIT
 *
 * Memory of a CUDA device for the buffers of a peer. The peer fills and checks its buffers in host
 * memory; before a call of the library it copies them to the device, and after the call back.
 *
 * The environment variable E2E_MEMORY says which buffers are on a device: "cuda", all; "mixed",
 * those of peers with an odd number; "halves", every second one. If it is not set, none is, and
 * nothing of CUDA is loaded.
 */
#ifndef TESTS_E2E_DEVICE_H
#define TESTS_E2E_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

/* Returns memory of a device, or NULL if this buffer stays in host memory. */
void *device_alloc(size_t size);
void device_free(void *device, size_t size); /* NULL is fine */
/* Copy a buffer of this size to the device, or back. Do nothing if `device` is NULL. */
void device_push(void *device, const void *host, size_t size);
void device_pull(void *host, const void *device, size_t size);
/* Returns the address at which the process can access memory of a device that the double of the
 * driver has, or NULL. */
void *device_seen(const void *device);

/* The command "cuda", with the double of the driver only: error=E at=N lets the N-th call of the
 * driver fail that the next "reduce" or "sync" makes. Answers with the number of calls that the
 * last one has made, the bytes that were copied from and to devices so far, and others.
 *
 * The words free=N of=NAME of "reduce" and "sync" let the N-th use of a buffer of more than 64 KiB
 * free it; NAME is "send", "recv" or that of a tensor. Without free=N, the uses are counted. */
void do_cuda(void);
/* Called before and after the calls of the library that these commands are about. `victim`: the
 * buffer that of=NAME names, or NULL. device_end returns whether it was freed. */
void device_begin(void *victim);
bool device_end(void);

#endif
