/* SPDX-License-Identifier: MIT
 *
 * Sealed anonymous memory that can be handed to another process.
 */
#ifndef CC_SHM_H
#define CC_SHM_H

#include <stddef.h>

/* The maker's side: memfd of exactly size bytes (rounded up to pages), seals
 * F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, mapped read-write. 0 or CC_ERR_IO/CC_ERR_NOMEM. */
int cc_shm_create(const char *name, size_t size, int *ret_fd, void **ret_map);
/* The same for memory that others get by cc_shm_read_only alone. Where the system has no /proc it
 * is sealed against all writing but through this mapping. */
int cc_shm_create_own(const char *name, size_t size, int *ret_fd, void **ret_map);
/* The system call that this thread's last cc_shm_create has failed in. */
const char *cc_shm_failed_call(void);
/* The receiver's side: checks seals and that the size is at least `size`, maps `size` bytes, for
 * reading only if that is all that the descriptor allows. fd stays open and owned by the caller. */
int cc_shm_map(int fd, size_t size, void **ret_map);
/* Memory that somebody else brought and that will be written: like cc_shm_map, and of exactly
 * `size` bytes, writable, and of ordinary pages, which are there whenever they are touched. Does
 * nothing with fd that may block unless it is such memory. CC_ERR_PERM, CC_ERR_INVAL: it is not. */
int cc_shm_adopt(int fd, size_t size, void **ret_map);
/* Another descriptor of the same memory, for reading only: what is handed to processes that may
 * look at it but not change it. The descriptor, owned by the caller, or CC_ERR_IO: there is no
 * /proc, and the memory is not of cc_shm_create_own. */
int cc_shm_read_only(int fd);
void cc_shm_unmap(void *map, size_t size);

#endif
