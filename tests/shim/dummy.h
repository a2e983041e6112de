/* SPDX-License-Identifier: MIT
 *
 * A second kind of user memory, for tests. As with the memory of a device, the application has its
 * addresses, but no CPU can access them. Tests see its contents at other addresses.
 */
#ifndef DUMMY_H
#define DUMMY_H

#include <stddef.h>
#include <stdint.h>

#define DUMMY_SIZE ((size_t)64 << 20)
/* The kind. tests/cuda has another one, with the same functions. */
#ifndef DUMMY_KIND
#define DUMMY_KIND pccl_buf_dummy
#endif

/* Returns the start of this memory. A read or a write there ends the process. */
uint8_t *dummy_memory(void);
/* Returns the address at which a test sees the byte at this address. */
uint8_t *dummy_seen(const void *at);

#endif
