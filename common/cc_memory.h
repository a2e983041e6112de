/* SPDX-License-Identifier: MIT
 *
 * How much memory this process may use.
 */
#ifndef CC_MEMORY_H
#define CC_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define CC_MEMORY_WHERE 256

/* The least limit of the memory cgroup that this process is in and of those above it, as far as
 * they can be seen, in bytes; version 1 and 2. UINT64_MAX: none. root: "", or where a test has its
 * own /proc/self and cgroups. where: which file says so. */
uint64_t cc_memory_cgroup(const char *root, char where[CC_MEMORY_WHERE]);

#endif
