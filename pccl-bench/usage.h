/* SPDX-License-Identifier: MIT
 *
 * The processor time and memory of processes.
 */
#ifndef BCH_USAGE_H
#define BCH_USAGE_H

#include <stdint.h>
#include <sys/types.h>

/* Returns the CPU time of all threads of a process so far in ns, or 0 if there is no such process.
 */
uint64_t bch_usage_cpu_ns(pid_t pid);
/* Returns the memory of a process in bytes. A page that several processes share is divided equally
 * among them (Pss). Returns 0 if the memory is unknown. */
uint64_t bch_usage_memory(pid_t pid);

#endif
