/* SPDX-License-Identifier: MIT
 *
 * A second kind of user memory, for tests: like that of a device, its addresses are the
 * application's, and no CPU can access them. What it holds is seen at other addresses.
 */
#ifndef DUMMY_H
#define DUMMY_H

#include <stddef.h>
#include <stdint.h>

#define DUMMY_SIZE ((size_t)64 << 20)

/* All of it; the process ends if anybody reads or writes there. */
uint8_t *dummy_memory(void);
/* What this address of it holds. */
uint8_t *dummy_seen(const void *at);

#endif
