/* SPDX-License-Identifier: MIT
 *
 * The agent daemon as a library: main.c and the tests make one of these. Everything runs in the
 * thread that calls agentd_run; the engines' threads are inside.
 */
#ifndef AGENTD_H
#define AGENTD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pcclagentd/base/config.h"
#include "pcclagentd/base/stats.h"

struct agentd;

/* Opens the TCP ports. NULL, with the reason logged; the descriptors in cfg are closed then. */
struct agentd *agentd_new(const struct agentd_config *cfg);
/* Runs until agentd_stop or the idle time is over. 0, or CC_ERR_* after a failure. */
int agentd_run(struct agentd *d);
/* Ends orderly: masters get what was sent to them, processes a goodbye, so that they come back by
 * the next agent; then agentd_run returns. Loop thread. */
void agentd_stop(struct agentd *d, const char *why);
void agentd_free(struct agentd *d);

/* These replace what the configuration said so far of where masters are. Loop thread. */
void agentd_set_masters(struct agentd *d, const struct agentd_masters *m);

/* Calls fn in the loop when the signal arrives. 0 or CC_ERR_*. */
int agentd_on_signal(struct agentd *d, int signo, void (*fn)(void *arg, int signo), void *arg);
/* Calls fn every interval_ms while the agent runs. 0 or CC_ERR_NOMEM. */
int agentd_every(struct agentd *d, uint32_t interval_ms, void (*fn)(void *arg), void *arg);

void agentd_get_stats(const struct agentd *d, struct agentd_stats *ret);

#endif
