/* SPDX-License-Identifier: MIT */
/* LD_PRELOAD for the settings of bench/compare in which all contenders have cubic: every TCP socket
 * starts with it. A network namespace cannot replace this, because its default can only be a
 * congestion control that the host allows to everybody, and cubic need not be one of these. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char congestion[] = "cubic";

/* Fails rather than returning a socket with another congestion control. */
int socket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK), error;
	int fd = (int)syscall(SYS_socket, domain, type, protocol);

	if (fd < 0 || (domain != AF_INET && domain != AF_INET6) || kind != SOCK_STREAM)
		return fd;
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, strlen(congestion)) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}
