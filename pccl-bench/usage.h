/* SPDX-License-Identifier: MIT
 *
 * What processes use.
 */
#ifndef BCH_USAGE_H
#define BCH_USAGE_H

#include <stdint.h>
#include <sys/types.h>

/* CPU time of all threads of a process so far, ns; 0 if there is none. */
uint64_t bch_usage_cpu_ns(pid_t pid);
/* Its memory, bytes: pages that several processes share count for each of them in equal parts
 * (Pss). 0 if it cannot be told. */
uint64_t bch_usage_memory(pid_t pid);

#endif
