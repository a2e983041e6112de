/* SPDX-License-Identifier: MIT
 *
 * The limit of the memory of this process.
 */
#ifndef CC_MEMORY_H
#define CC_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define CC_MEMORY_WHERE 256

/* Returns the lowest memory limit, in bytes, of the memory cgroup of this process and of the
 * visible cgroups above it, in version 1 and 2. Returns UINT64_MAX if there is no limit. `root` is
 * "", or in tests a folder with its own /proc/self and cgroups. `where` gets the file that contains
 * the limit. */
uint64_t cc_memory_cgroup(const char *root, char where[CC_MEMORY_WHERE]);

#endif
