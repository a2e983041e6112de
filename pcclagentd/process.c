/* SPDX-License-Identifier: MIT */
#include "pcclagentd/process.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_pidfd(int sock, uint32_t pid)
{
#ifdef SO_PEERPIDFD
	int pidfd;
	socklen_t len = sizeof pidfd;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
		return pidfd;
#else
	(void)sock;
#endif
	return pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

void process_open(struct process *p, int sock, uint32_t pid)
{
	char path[32];

	*p = (struct process){.pid = pid, .pidfd = open_pidfd(sock, pid), .stat_fd = -1};
	if (p->pidfd < 0 || pid == 0)
		return;
	snprintf(path, sizeof path, "/proc/%u/stat", pid);
	p->stat_fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	/* If it lives now its number has not been used for another one that we just opened. */
	if (p->stat_fd >= 0 && has_ended(p->pidfd)) {
		close(p->stat_fd);
		p->stat_fd = -1;
	}
}

void process_close(struct process *p)
{
	if (p->pidfd >= 0)
		close(p->pidfd);
	if (p->stat_fd >= 0)
		close(p->stat_fd);
	p->pidfd = p->stat_fd = -1;
}

bool process_is_stopped(const struct process *p)
{
	char buf[128];
	const char *end;
	ssize_t n;

	if (p->stat_fd < 0)
		return false;
	n = pread(p->stat_fd, buf, sizeof buf - 1, 0);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	/* "PID (NAME) STATE ...": the name is the process's choice, parentheses included. */
	end = strrchr(buf, ')');
	return end && end[1] == ' ' && (end[2] == 'T' || end[2] == 't');
}
