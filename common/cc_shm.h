/* SPDX-License-Identifier: MIT
 *
 * Sealed anonymous memory for sharing with another process.
 */
#ifndef CC_SHM_H
#define CC_SHM_H

#include <stddef.h>

/* Creates a memfd of size bytes (rounded up to pages) with the seals F_SEAL_SHRINK | F_SEAL_GROW |
 * F_SEAL_SEAL, and maps it for reading and writing. Returns 0, CC_ERR_IO, CC_ERR_NOMEM or
 * CC_ERR_INVAL. */
int cc_shm_create(const char *name, size_t size, int *ret_fd, void **ret_map);
/* Does the same for memory that other processes receive only through cc_shm_read_only. If the
 * system has no /proc, the memory is sealed so that only this mapping can write to it. */
int cc_shm_create_own(const char *name, size_t size, int *ret_fd, void **ret_map);
/* Returns the name of the system call that failed in this thread's last failed cc_shm_create. */
const char *cc_shm_failed_call(void);
/* Maps `size` bytes of received memory. Checks the seals, and that the memory has at least `size`
 * bytes. If the descriptor does not allow writing, maps the memory for reading only. The caller
 * still owns fd, which stays open. */
int cc_shm_map(int fd, size_t size, void **ret_map);
/* Maps memory that another process created, for reading and writing. Like cc_shm_map, but the
 * memory must have exactly `size` bytes, be writable, and consist of ordinary pages, which are
 * always available. Returns CC_ERR_PERM or CC_ERR_INVAL for other memory. Before it knows that fd
 * is sealed memory, it makes no call on fd that may block. */
int cc_shm_adopt(int fd, size_t size, void **ret_map);
/* Opens another descriptor of the same memory for reading only, for processes that must not change
 * it. Returns the descriptor, which the caller owns, or CC_ERR_IO if there is no /proc and the
 * memory was not created with cc_shm_create_own. */
int cc_shm_read_only(int fd);
void cc_shm_unmap(void *map, size_t size);

#endif
