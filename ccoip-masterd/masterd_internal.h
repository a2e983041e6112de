/* SPDX-License-Identifier: MIT
 *
 * Between masterd.c and admin.c.
 */
#ifndef MASTERD_INTERNAL_H
#define MASTERD_INTERNAL_H

#include "daemon/cc_admin.h"
#include "ccoip-masterd/masterd.h"

/* Serves pcclctl on fd, which it owns from now on. NULL when memory is exhausted. */
struct cc_admin *masterd_admin_new(struct masterd *m, struct cc_loop *l, int fd);

const struct cc_admin *masterd_admin(const struct masterd *m);
/* An operator's: the run is over. */
void masterd_reset(struct masterd *m);

#endif
