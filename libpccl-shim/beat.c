/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/beat.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libpccl-shim/fork.h"
#include "libpccl-shim/thread.h"

static void *answer_asks(void *arg)
{
	struct pccl_fork_fd *sock = arg;
	char ask;
	ssize_t n = 1;

	while ((n > 0 || (n < 0 && errno == EINTR)) && pccl_fork_holds(sock)) {
		n = recv(sock->fd, &ask, sizeof ask, 0);
		/* If there is no room, the agent still has answers to read. */
		if (n > 0 && pccl_fork_holds(sock))
			(void)send(sock->fd, &ask, sizeof ask, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	pccl_fork_close(sock);
	free(sock);
	return NULL;
}

void pccl_beat_start(int fd)
{
	struct pccl_fork_fd *sock = calloc(1, sizeof *sock);
	sigset_t all, old;
	pthread_t thread;
	int err;

	if (!sock) {
		close(fd);
		return;
	}
	pccl_fork_add(sock, fd);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, answer_asks, sock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err == 0) {
		pthread_detach(thread);
		return;
	}
	pccl_fork_close(sock);
	free(sock);
}
