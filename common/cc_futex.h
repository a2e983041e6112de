/* SPDX-License-Identifier: MIT
 *
 * Futex words, also in memory that processes share.
 */
#ifndef CC_FUTEX_H
#define CC_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleeps while *word == expected, for at most timeout_ns (UINT64_MAX: without a bound). Returns 0
 * after a wake-up or a signal, or if the value differs. Returns CC_ERR_TIMEOUT when the time is
 * over. */
int cc_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void cc_futex_wake(_Atomic uint32_t *word, int n);

#endif
