/* SPDX-License-Identifier: MIT
 *
 * Reaching an agent: where its socket is, and starting a private one when there is none. Any
 * thread; one at a time starts an agent, the others wait for it. A private agent is nobody's child
 * to wait for: it ends by itself.
 *
 * Errors: pcclAgentUnavailable (there is none, or it cannot be started), pcclPermissionDenied (it
 * is there and refuses this user), pcclInvalidUsage (the environment), pcclOutOfMemory.
 */
#ifndef PCCL_SHIM_SPAWN_H
#define PCCL_SHIM_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/un.h>

#include "libpccl-shim/error.h"

#define PCCL_SOCKET_PATH_MAX sizeof(((struct sockaddr_un *)NULL)->sun_path)

/*
 * Connects to, in this order and stopping at the first that exists: the socket that
 * PCCL_AGENT_SOCKET names (only that one, if set); the system's agent; the user's private agent,
 * started if need be. Blocks for a bounded time (starting takes up to 10 s). On success *ret_fd is
 * a blocking, close-on-exec socket, the caller's, path (PCCL_SOCKET_PATH_MAX bytes) says where it
 * leads, and *ret_private whether to a private agent. Reads the environment.
 */
pcclResult_t pccl_spawn_connect(int *ret_fd, char *path, bool *ret_private);

/*
 * Connects again to where an agent was, as pccl_spawn_connect said. The system's, or one that was
 * named, is brought back by whoever looks after it, and nothing takes its place; a private one is
 * started, if need be, with what the environment said when it was last read.
 */
pcclResult_t pccl_spawn_reconnect(int *ret_fd, char *path, bool private);

/* In a forked child. */
void pccl_spawn_after_fork(void);

/* Says why starting `name` at path failed with this errno, which only sometimes is that it is not
 * installed. env: the variable that names another path. */
pcclResult_t pccl_spawn_fail(const char *path, const char *name, const char *env, int error);

#endif
