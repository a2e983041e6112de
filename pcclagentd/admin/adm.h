/* SPDX-License-Identifier: MIT
 *
 * The tables that pcclctl shows of an agent, and the commands that it can send.
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
	/* Checks at once which processes are stopped. While the agent is quiet, its regular checks
	 * are too rare for pcclctl. */
	void (*look)(void *arg);
};

/* Listens on cfg.admin_fd, and takes the descriptor over. Returns NULL if there is no memory. */
struct adm *adm_new(struct base *b, struct ops *o, const struct adm_ops *ops, void *arg);
void adm_free(struct adm *a); /* NULL is fine */

#endif
