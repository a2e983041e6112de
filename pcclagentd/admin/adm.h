/* SPDX-License-Identifier: MIT
 *
 * What pcclctl sees of an agent, and may tell it.
 */
#ifndef ADM_H
#define ADM_H

#include <stdint.h>

#include "pcclagentd/base/stats.h"

struct adm;
struct base;
struct ops;

struct adm_ops {
	void (*get_stats)(void *arg, struct agentd_stats *ret);
	/* Processes are to be looked at now: while all is quiet that is done too seldom. */
	void (*look)(void *arg);
};

/* Listens on cfg.admin_fd, which is the listener's then. NULL: no memory. */
struct adm *adm_new(struct base *b, struct ops *o, const struct adm_ops *ops, void *arg);
void adm_free(struct adm *a); /* NULL is fine */

#endif
