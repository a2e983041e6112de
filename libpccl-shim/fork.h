/* SPDX-License-Identifier: MIT
 *
 * What happens at fork(), which other parts register here.
 *
 * A child made by fork() shares nothing with its parent: the child's copies of descriptors are
 * closed right away, so that the agent sees the parent's end although the child lives on, and
 * whatever the parent made is refused there. What must be known to the fork handlers registers with
 * pccl_fork_add; the child forgets the list. Parts that keep state of their own register a function
 * with pccl_fork_handle, which gives the child a state to begin with.
 *
 * Any thread may call all of it. Objects stay their owners'.
 */
#ifndef PCCL_SHIM_FORK_H
#define PCCL_SHIM_FORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libpccl-shim/error.h"

/* From here on forks are handled. Before anything else of this header; as often as one likes. */
pcclResult_t pccl_fork_prepare(void);
/* Differs between a process and its forked children. */
uint32_t pccl_fork_generation(void);

/* A part of the library whose state is the process's own. Static; not to be touched later. */
struct pccl_fork_handler {
	void (*child)(void); /* in the child, which has one thread: takes no lock of the parent */
	bool added;
	struct pccl_fork_handler *next;
};

/* Registers it for all forks to come, in children as well; again does nothing. */
void pccl_fork_handle(struct pccl_fork_handler *h);

/* A descriptor that forked children must not keep open. Part of the owner's object.
 *
 * The program may close it (closefrom) and be given its number for a file of its own. So whatever
 * is written to it, read from it or shut down is checked before, where that is not too dear, and
 * what was lost is never closed. */
struct pccl_fork_fd {
	_Atomic int fd; /* -1: none, or lost */
	dev_t dev;
	ino_t ino;
	mode_t type;
	struct pccl_fork_fd *next, *prev;
};

/* Registers fd (-1: does nothing but set f->fd). */
void pccl_fork_add(struct pccl_fork_fd *f, int fd);
/* Is it still what was registered? Also in a signal handler. Of an eventfd it tells only that it is
 * something like that. */
bool pccl_fork_holds(const struct pccl_fork_fd *f);
/* After one was found lost: forgets all others that are, and all eventfds. These stay open, rather
 * than that a file of the program is closed. */
void pccl_fork_forget_lost(void);
/* Takes it off the list and closes it, unless it is lost. */
void pccl_fork_close(struct pccl_fork_fd *f);

#endif
