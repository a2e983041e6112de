/* SPDX-License-Identifier: MIT
 *
 * The agent daemon as a library: main.c and the tests create one. Everything runs in the thread
 * that calls agentd_run, except for the threads of the engines and a few short-lived helper
 * threads.
 */
#ifndef AGENTD_H
#define AGENTD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pcclagentd/base/config.h"
#include "pcclagentd/base/stats.h"

struct agentd;

/* Creates an agent and opens its TCP ports. On failure, logs the reason, closes the descriptors in
 * cfg, and returns NULL. */
struct agentd *agentd_new(const struct agentd_config *cfg);
/* Runs until agentd_stop, or until the idle time is over. Returns 0, or CC_ERR_* after a failure.
 */
int agentd_run(struct agentd *d);
/* Ends the agent in an orderly way, after which agentd_run returns. Masters still get the messages
 * that were sent to them. Processes get a goodbye, so that they attach to the next agent. Loop
 * thread.
 */
void agentd_stop(struct agentd *d, const char *why);
void agentd_free(struct agentd *d);

/* Sets the new addresses of masters from the configuration. These addresses replace the addresses
 * that an earlier configuration has set. Loop thread. */
void agentd_set_masters(struct agentd *d, const struct agentd_masters *m);

/* Calls fn in the loop when the signal arrives. Returns 0 or CC_ERR_*. */
int agentd_on_signal(struct agentd *d, int signo, void (*fn)(void *arg, int signo), void *arg);
/* Calls fn every interval_ms while the agent runs. Returns 0 or CC_ERR_NOMEM. */
int agentd_every(struct agentd *d, uint32_t interval_ms, void (*fn)(void *arg), void *arg);

void agentd_get_stats(const struct agentd *d, struct agentd_stats *ret);

#endif
