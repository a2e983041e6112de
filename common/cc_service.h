/* SPDX-License-Identifier: MIT
 *
 * The connection between a daemon and the service manager that started it. Without a service
 * manager that listens, and in builds without systemd, nothing is sent.
 */
#ifndef CC_SERVICE_H
#define CC_SERVICE_H

#include <signal.h>
#include <stdint.h>

enum cc_service_state { CC_SERVICE_READY, CC_SERVICE_ALIVE, CC_SERVICE_STOPPING };

/* Returns the interval of CC_SERVICE_ALIVE in ms. It is half of the period of the manager's
 * watchdog, but at most 5 s, so that the status stays current. 0 means never. */
uint32_t cc_service_interval_ms(void);
/* Sends the state. `status` is a line for operators; with NULL the last line stays. */
void cc_service_notify(enum cc_service_state state, const char *status);

/* Blocks or unblocks SIGTERM, SIGINT and SIGHUP. A daemon calls this with SIG_BLOCK when it starts,
 * and with SIG_UNBLOCK when it can handle these signals. A signal that comes during the start
 * waits, so the daemon ends cleanly. */
void cc_service_mask_signals(int how);

/* Raises the limit of open files to the maximum of this process. Logs a failure. */
void cc_service_raise_limits(void);

#endif
