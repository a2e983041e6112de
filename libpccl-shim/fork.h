/* SPDX-License-Identifier: MIT
 *
 * Handles fork(). Other parts of the library register their descriptors and handlers here.
 *
 * A child made by fork() shares nothing with its parent. The child's copies of descriptors are
 * closed at once, so that the agent notices when the parent ends, even if the child lives longer.
 * In the child, all objects of the parent are refused. Descriptors are registered with
 * pccl_fork_add; the child forgets this list. A part with its own state registers a function with
 * pccl_fork_handle, which initializes this state in the child.
 *
 * Any thread may call all functions. Registered objects still belong to their owners.
 */
#ifndef PCCL_SHIM_FORK_H
#define PCCL_SHIM_FORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libpccl-shim/error.h"

/* Starts the handling of forks. Must be called before any other function of this header; may be
 * called again. */
pcclResult_t pccl_fork_prepare(void);
/* Returns a number that differs between a process and its forked children. */
uint32_t pccl_fork_generation(void);

/* A part of the library with state of its own. A static object that is not changed after
 * registration. */
struct pccl_fork_handler {
	/* Called in the child, which has one thread. Must not take a lock of the parent. */
	void (*child)(void);
	bool added;
	struct pccl_fork_handler *next;
};

/* Registers a handler for all later forks, including those of children. If the handler is
 * registered already, does nothing. */
void pccl_fork_handle(struct pccl_fork_handler *h);

/* A descriptor that forked children must not keep open. The struct is part of the owner's object.
 *
 * The program may close the descriptor (closefrom), and a file of the program may then get its
 * number. So the library checks the descriptor before it writes, reads or shuts down, unless that
 * costs too much. It never closes a descriptor that was lost in this way. */
struct pccl_fork_fd {
	_Atomic int fd; /* -1 if there is none, or it is lost */
	dev_t dev;
	ino_t ino;
	mode_t type;
	struct pccl_fork_fd *next, *prev;
};

/* Registers `fd`. If fd is -1, only sets f->fd. */
void pccl_fork_add(struct pccl_fork_fd *f, int fd);
/* Is the descriptor still the registered file? May be called in a signal handler. For an eventfd,
 * the check cannot distinguish it from another eventfd or similar file. */
bool pccl_fork_holds(const struct pccl_fork_fd *f);
/* To be called when a descriptor was found to be lost. Forgets all other lost descriptors, and all
 * eventfds. Eventfds stay open, because closing them could close a file of the program. */
void pccl_fork_forget_lost(void);
/* Removes the descriptor from the list and closes it, unless it is lost. */
void pccl_fork_close(struct pccl_fork_fd *f);

#endif
