/* SPDX-License-Identifier: MIT */
#include "pcclagentd/local/process.h"

#include <dirent.h>
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

static int open_file(uint32_t pid, const char *name)
{
	char path[48];

	snprintf(path, sizeof path, "/proc/%u/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static void close_file(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void loc_process_open(struct process *p, int sock, uint32_t pid)
{
	*p = (struct process){
		.pid = pid, .pidfd = open_pidfd(sock, pid), .stat_fd = -1, .sched_fd = -1};
	if (p->pidfd < 0 || pid == 0)
		return;
	p->stat_fd = open_file(pid, "stat");
	p->sched_fd = open_file(pid, "schedstat");
	/* If the process is alive now, its pid was not used again, so the files that were just
	 * opened are its own. */
	if (has_ended(p->pidfd)) {
		close_file(&p->stat_fd);
		close_file(&p->sched_fd);
	}
}

void loc_process_close(struct process *p)
{
	close_file(&p->pidfd);
	close_file(&p->stat_fd);
	close_file(&p->sched_fd);
}

/* Reads the file, or "" if it cannot be read. */
static void read_file(int fd, char *buf, size_t size)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, buf, size - 1, 0);

	buf[n > 0 ? n : 0] = '\0';
}

/* Reads the main thread's time on a CPU, and how often it was given a CPU. A sleeping process has
 * to run before it can become stopped. So while this text stays the same, the process is asleep.
 * Kernels that do not count report zeroes; then the text is set to "". */
static void read_sched(const struct process *p, char sched[PROCESS_SCHED_SIZE])
{
	read_file(p->sched_fd, sched, PROCESS_SCHED_SIZE);
	if (strncmp(sched, "0 0 0", 5) == 0)
		sched[0] = '\0';
}

/* Returns the state from a text "PID (NAME) STATE ..."; '\0': unknown. The process chooses the
 * name, which may contain parentheses. */
static char read_state(int stat_fd)
{
	char buf[128], *end;

	read_file(stat_fd, buf, sizeof buf);
	end = strrchr(buf, ')');
	return end && end[1] == ' ' ? end[2] : '\0';
}

static bool thread_runs(int tasks, const char *thread)
{
	char path[48];
	bool runs;
	int fd;

	snprintf(path, sizeof path, "%.32s/stat", thread);
	fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	runs = read_state(fd) == 'R';
	close_file(&fd);
	return runs;
}

bool loc_process_runs(const struct process *p)
{
	const struct dirent *e;
	bool runs = false;
	char path[48];
	DIR *dir;

	if (p->stat_fd < 0)
		return false;
	snprintf(path, sizeof path, "/proc/%u/task", p->pid);
	dir = opendir(path);
	while (dir && !runs && (e = readdir(dir)) != NULL)
		runs = e->d_name[0] != '.' && thread_runs(dirfd(dir), e->d_name);
	if (dir)
		closedir(dir);
	return runs;
}

bool loc_process_is_stopped(struct process *p)
{
	char sched[PROCESS_SCHED_SIZE], state;

	if (p->stat_fd < 0)
		return false;
	read_sched(p, sched);
	if (sched[0] && strcmp(sched, p->slept) == 0)
		return false;
	state = read_state(p->stat_fd);
	memcpy(p->slept, state == 'S' ? sched : "", state == 'S' ? sizeof sched : 1);
	return state == 'T' || state == 't';
}
