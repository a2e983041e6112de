/* SPDX-License-Identifier: MIT
 *
 * The processes of a benchmark: a master, agents, peers. All of them die with this one.
 */
#ifndef BCH_PROCS_H
#define BCH_PROCS_H

#include <limits.h>
#include <sys/types.h>

#include "pccl-bench/board.h"
#include "pccl-bench/hosts.h"

enum bch_role { BCH_MASTER, BCH_AGENT, BCH_PEER };

struct bch_child {
	enum bch_role role;
	uint32_t number; /* counts within the role; for an agent, the number of its host */
	pid_t pid;       /* 0: the process has ended */
	int status;      /* from waitpid */
};

#define BCH_CHILDREN_MAX (1 + BCH_HOSTS_MAX + BCH_PEERS_MAX)
#define BCH_FOLDER_SIZE  80

struct bch_procs {
	const struct bch_options *options;
	struct bch_hosts hosts;
	struct bch_board *board;
	char folder[BCH_FOLDER_SIZE]; /* for sockets and logs */
	struct cc_addr master;
	struct bch_child children[BCH_CHILDREN_MAX];
	uint32_t n_children;
};

/* Creates hosts, board and folder. Returns 0 or CC_ERR_IO. This and the following functions print
 * errors on standard error. */
int bch_procs_init(struct bch_procs *c, const struct bch_options *o);
/* Starts the master, unless --master names one. The master accepts connections at once. Only the
 * master of another library does not: it wakes the coordinator when it is ready. */
int bch_procs_start_master(struct bch_procs *c);
/* Starts the peers, and agents unless the peers use an existing agent. */
int bch_procs_start_peers(struct bch_procs *c);

/* Records which processes have ended. bch_procs_left returns how many processes of a role are left.
 */
void bch_procs_reap(struct bch_procs *c);
uint32_t bch_procs_left(const struct bch_procs *c, enum bch_role role);
void bch_procs_kill(const struct bch_procs *c, enum bch_role role, int signal);
/* Prints lines like "peer 3 ended with status 69: pcclConnect returned 6: ..." on standard error,
 * about processes that ended by themselves with an error. Returns their number. */
uint32_t bch_procs_complain(const struct bch_procs *c);
/* Prints the ends of all logs on standard error. */
void bch_procs_print_logs(const struct bch_procs *c);

/* Removes the folder and the hosts. To be called when no process is left. */
void bch_procs_clear(struct bch_procs *c);

#endif
