/* SPDX-License-Identifier: MIT
 *
 * A daemon and the service manager that started it. Without one that listens, and in builds without
 * systemd, nobody is told anything.
 */
#ifndef CC_SERVICE_H
#define CC_SERVICE_H

#include <signal.h>
#include <stdint.h>

enum cc_service_state { CC_SERVICE_READY, CC_SERVICE_ALIVE, CC_SERVICE_STOPPING };

/* How often CC_SERVICE_ALIVE is due, in ms: twice per period of the manager's watchdog, or every 5
 * s for the status alone. 0: never. */
uint32_t cc_service_interval_ms(void);
/* status: a line for operators, NULL: as before. */
void cc_service_notify(enum cc_service_state state, const char *status);

/* SIG_BLOCK before a daemon makes anything, SIG_UNBLOCK once it takes SIGTERM, SIGINT and SIGHUP:
 * so that one that comes while it starts waits, and the end is a clean one. */
void cc_service_mask_signals(int how);

/* As many open files as this process may have; a failure is logged. */
void cc_service_raise_limits(void);

#endif
