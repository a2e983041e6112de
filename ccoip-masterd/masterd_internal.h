/* SPDX-License-Identifier: MIT
 *
 * Functions that masterd.c and admin.c share.
 */
#ifndef MASTERD_INTERNAL_H
#define MASTERD_INTERNAL_H

#include "daemon/cc_admin.h"
#include "ccoip-masterd/masterd.h"

/* Serves pcclctl on fd, which it owns from now on. Returns NULL when memory is exhausted. */
struct cc_admin *masterd_admin_new(struct masterd *m, struct cc_loop *l, int fd);

const struct cc_admin *masterd_admin(const struct masterd *m);
/* Resets the run for an operator: kicks all peers, so that the next run starts from nothing. */
void masterd_reset(struct masterd *m);
/* Lets the next optimization measure all links again, for an operator. */
void masterd_measure(struct masterd *m);

#endif
