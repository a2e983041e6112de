/* SPDX-License-Identifier: MIT
 *
 * Between the two files of the decoder of wire_master.h. wire_get_ functions return 0 or a negative
 * enum cc_err with *why set; what they have allocated by then belongs to *m.
 */
#ifndef WIRE_MASTER_INTERNAL_H
#define WIRE_MASTER_INTERNAL_H

#include "proto/ccoip.pb-c.h"
#include "proto/wire_master.h"

#define WIRE_ID_LIMIT "must be 16 bytes, not all zero"

/* Zeroed, never NULL for n == 0; NULL on failure with *err and *why set. */
void *wire_new_array(size_t n, size_t size, int *err, const char **why);
/* missing: what to say if p is NULL. */
int wire_get_world(
	const Ccoip__World *p, struct wm_world *m, const char **why, const char *missing);
int wire_get_resume(const Ccoip__Resume *p, struct wm_resume *m, const char **why);
int wire_get_op_query(const Ccoip__OpQuery *p, struct wm_op_query *m, const char **why);
int wire_get_op_outcomes(const Ccoip__OpOutcomes *p, struct wm_op_outcomes *m, const char **why);

#endif
