/* SPDX-License-Identifier: MIT
 *
 * Connects to an agent: finds its socket, or starts a private agent if there is none. Any thread.
 * One process at a time starts an agent; the others wait for it. A private agent detaches itself
 * and ends by itself, so no process has to wait for its end.
 *
 * Errors: pcclAgentUnavailable (there is no agent, or it cannot be started), pcclPermissionDenied
 * (the agent's socket refuses this user), pcclInvalidUsage (a wrong environment variable),
 * pcclOutOfMemory.
 */
#ifndef PCCL_SHIM_SPAWN_H
#define PCCL_SHIM_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/un.h>

#include "libpccl-shim/error.h"

#define PCCL_SOCKET_PATH_MAX sizeof(((struct sockaddr_un *)NULL)->sun_path)

/*
 * Connects to an agent. If PCCL_AGENT_SOCKET is set, connects to the socket that it names, and to
 * no other. Otherwise connects to the system's agent, or, if there is none, to the user's private
 * agent, which is started if it is not running. Blocks for a bounded time (starting takes up to 10
 * s). On success *ret_fd is a blocking, close-on-exec socket that belongs to the caller, `path`
 * (PCCL_SOCKET_PATH_MAX bytes) has the path of the agent's socket, and *ret_private says whether
 * the agent is private. Reads the environment.
 */
pcclResult_t pccl_spawn_connect(int *ret_fd, char *path, bool *ret_private);

/*
 * Connects again to the socket that pccl_spawn_connect has returned in `path`. If the agent is
 * private and not running, starts it with the environment as it was last read. Never starts any
 * other kind of agent: the service manager or an operator restarts such an agent.
 */
pcclResult_t pccl_spawn_reconnect(int *ret_fd, char *path, bool private);

/* Resets the lock in a forked child. */
void pccl_spawn_after_fork(void);

/* Sets the sentence for a failed start of the program `name` at `path` with this errno, and returns
 * its code. A start can fail although the program exists. env: the environment variable that can
 * name another path. */
pcclResult_t pccl_spawn_fail(const char *path, const char *name, const char *env, int error);

#endif
