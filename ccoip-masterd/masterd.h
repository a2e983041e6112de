/* SPDX-License-Identifier: MIT
 *
 * The master: accepts agents, decodes their messages, feeds the state machine of core/ and carries
 * out its actions. This is the whole program except its command line, so that tests can run a
 * master. One thread.
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
	int admin_fd;       /* listening AF_UNIX stream socket, or -1 */
	int parent_fd;      /* end of file on it ends the master, a byte also ends the run; or -1 */
	uint32_t max_conns; /* if there are more, the oldest one without a hello is closed */
	uint32_t hello_timeout_ms; /* time limit of the first whole message of a connection */
	size_t max_out;            /* bytes queued for one agent; an agent with more is lost */
	size_t max_buffered;       /* bytes kept for all agents without members */
	uint32_t log_level;        /* enum cc_log_level */
	const char *state_dir; /* the folder of the journal, or NULL; used by masterd_new only */
	uint32_t host_timeout_ms, agent_lease_ms, recovery_ms; /* 0: the defaults of ccm.h */
	struct cc_bounds bounds;                               /* 0: the defaults */
	uint32_t benchmark_ms;                                 /* as in ccm.h */
	uint32_t algorithm;                                    /* as in ccm.h */
};

void masterd_config_init(struct masterd_config *cfg);

struct masterd;

/* Makes a master. Owns the descriptors of cfg from now on, even if it fails. On failure logs the
 * reason and returns NULL, and *exit_code is one of sysexits.h. */
struct masterd *masterd_new(const struct masterd_config *cfg, int *exit_code);
/* Runs until masterd_stop, masterd_end or the end of the parent. Returns 0 or CC_ERR_*. */
int masterd_run(struct masterd *m);
/* Ends the master. Another master can take its run over. */
void masterd_stop(struct masterd *m, const char *why);
/* Ends the run and the master, and tells the peers why. Takes two seconds at most. */
void masterd_end(struct masterd *m, const char *why);
/* Closes all connections. NULL is fine. */
void masterd_free(struct masterd *m);

/* Calls fn in the loop when the signal arrives. Returns 0 or CC_ERR_*. */
int masterd_on_signal(struct masterd *m, int signo, void (*fn)(void *arg, int signo), void *arg);
/* Calls fn every interval_ms while the master runs. Returns 0 or CC_ERR_NOMEM. */
int masterd_every(struct masterd *m, uint32_t interval_ms, void (*fn)(void *arg), void *arg);

struct masterd_stats {
	uint32_t conns;   /* open connections, including those without a hello */
	uint64_t refused; /* connections closed because of a bad or a missing message */
};
void masterd_get_stats(const struct masterd *m, struct masterd_stats *ret);
const struct ccm *masterd_core(const struct masterd *m);

#endif
