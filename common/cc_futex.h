/* SPDX-License-Identifier: MIT
 *
 * Futex words that may lie in memory shared between processes.
 */
#ifndef CC_FUTEX_H
#define CC_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleeps while *word == expected, at most timeout_ns (UINT64_MAX: no bound). Returns 0 when woken,
 * the value differs or a signal came; CC_ERR_TIMEOUT. */
int cc_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void cc_futex_wake(_Atomic uint32_t *word, int n);

#endif
