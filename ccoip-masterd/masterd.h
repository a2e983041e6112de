/* SPDX-License-Identifier: MIT
 *
 * The master: accepts agents, decodes what they send, feeds the state machine of core/ and carries
 * out what it decides. All of the program but its command line, so that tests can be a master. One
 * thread.
 */
#ifndef MASTERD_H
#define MASTERD_H

#include <stddef.h>
#include <stdint.h>

#include "ccoip-masterd/core/ccm.h"

#define MASTERD_LISTEN_MAX 16u

struct masterd_config {
	int listen_fds[MASTERD_LISTEN_MAX]; /* listening TCP sockets */
	uint32_t n_listen;
	int admin_fd;              /* listening AF_UNIX stream socket, or -1 */
	int parent_fd;             /* its end of file ends the master, a byte its run too; or -1 */
	uint32_t max_conns;        /* beyond, connections without a hello go, or new ones */
	uint32_t hello_timeout_ms; /* for the first whole message of a connection */
	size_t max_out;            /* bytes queued for one agent; beyond, it is lost */
	size_t max_buffered;       /* bytes kept for all agents without members */
	uint32_t log_level;        /* enum cc_log_level */
	const char *state_dir;     /* where the journal is, or NULL; needed in masterd_new only */
	uint32_t host_timeout_ms, agent_lease_ms, recovery_ms; /* 0: the defaults of ccm.h */
	struct cc_bounds bounds;                               /* likewise */
};

void masterd_config_init(struct masterd_config *cfg);

struct masterd;

/* Owns the descriptors of cfg from now on, also when it fails: NULL, after a line in the log, and
 * *exit_code is one of sysexits.h. */
struct masterd *masterd_new(const struct masterd_config *cfg, int *exit_code);
/* Runs until masterd_stop, masterd_end or the end of the parent. 0 or CC_ERR_*. */
int masterd_run(struct masterd *m);
/* The run can be taken over by another master. */
void masterd_stop(struct masterd *m, const char *why);
/* The run is over: its peers are told, and why; within a second. */
void masterd_end(struct masterd *m, const char *why);
/* Closes all connections. NULL is fine. */
void masterd_free(struct masterd *m);

/* Calls fn in the loop when the signal arrives. 0 or CC_ERR_*. */
int masterd_on_signal(struct masterd *m, int signo, void (*fn)(void *arg, int signo), void *arg);
/* Calls fn every interval_ms while the master runs. 0 or CC_ERR_NOMEM. */
int masterd_every(struct masterd *m, uint32_t interval_ms, void (*fn)(void *arg), void *arg);

struct masterd_stats {
	uint32_t conns;   /* open, with those that have not said hello */
	uint64_t refused; /* connections closed for what they sent, or did not send */
};
void masterd_get_stats(const struct masterd *m, struct masterd_stats *ret);
const struct ccm *masterd_core(const struct masterd *m);

#endif
